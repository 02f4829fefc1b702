/* SPDX-License-Identifier: MIT */
/* bf16: forward and backward pass of a block's rows, layer by layer. In: bf16 operands in shared memory. Out: columns
 * of rows in fp32 and bf16. Must hold: a sum begins with its start and adds its sources in steps of 16, in order.
 *
 * Cycles for 128 rows of 203 sources and 60 units, 16 warps of 2 x 2 tiles: 13 steps, each 16 x 12 of shared memory (an
 * ldmatrix of four matrices takes 4) and 16 / 4 x 4 x 6.4 of tensor cores. */
#include <assert.h>
#include <stdlib.h>

#include "bf16_emit.h"
#include "units.h"

/* ---- fragments ---- */

/* Matrices of 8 x 8: of each, a lane has two elements in a register. */
void fragments_load(Kernel *k, Reg *f, uint32_t matrices, bool transposed, Reg at, uint32_t offset)
{
	Emit *e = k->e;
	const char *trans = transposed ? ".trans" : "";

	for (uint32_t i = 0; i < matrices; i++)
		f[i] = reg(e, REG_R);
	buf_printf(&e->text, "\tldmatrix.sync.aligned.m8n8.x%u%s.shared.b16 {", matrices, trans);
	for (uint32_t i = 0; i < matrices; i++)
		buf_printf(&e->text, "%s%%r%u", i ? ", " : "", f[i].n);
	buf_printf(&e->text, "}, [%%r%u+%u];\n", at.n, offset);
}

/* sum = a b + start, or + sum. */
void multiply_add(Emit *e, const Reg sum[4], const Reg a[4], const Reg b[2], const Reg *start)
{
	if (!start)
		start = sum;
	ins(e, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$, $, $, $}, {$, $, $, $}, {$, $}, {$, $, $, $}",
	    sum[0], sum[1], sum[2], sum[3], a[0], a[1], a[2], a[3], b[0], b[1], start[0], start[1], start[2], start[3]);
}

void mma_sums_new(Emit *e, Reg (*sum)[4], uint32_t tiles)
{
	for (uint32_t i = 0; i < 4 * tiles; i++)
		sum[i / 4][i % 4] = reg(e, REG_F);
}

void mma_sums_fill(Emit *e, Reg (*sum)[4], uint32_t tiles, Reg value)
{
	for (uint32_t i = 0; i < 4 * tiles; i++)
		ins(e, "mov.f32 $, $", sum[i / 4][i % 4], value);
}

void mma_sums_add(Emit *e, Reg (*to)[4], Reg (*from)[4], uint32_t tiles)
{
	for (uint32_t i = 0; i < 4 * tiles; i++)
		ins(e, "add.rn.ftz.f32 $, $, $", to[i / 4][i % 4], to[i / 4][i % 4], from[i / 4][i % 4]);
}

void mma_zeros_new(Emit *e, Reg zero[4])
{
	for (uint32_t i = 0; i < 4; i++)
		zero[i] = op1(e, REG_F, "mov.f32", imm_f(0));
}

/* ---- tasks ---- */

/* Cost model: cycles of all warps. Steps of 16 sources, each bound by shared memory, tensor cores or the latency of a
 * warp; then some 40 instructions for each sum, at a lower issue rate if there are few warps. */
static double task_cycles(const Bf16Task *t, uint32_t warps, uint32_t steps, bool bits)
{
	uint32_t tasks = t->down * t->across, at_once = min_u32(tasks, warps), tiles = t->high * t->wide;
	double shared = at_once * ((bits ? 1 : 4) * t->high + t->wide * 2.0), tensor = (at_once + 3) / 4 * tiles * 6.4;
	double most = shared > tensor ? shared : tensor, alone = 35 + 6.4 * tiles;
	double sums = (at_once + 3) / 4 * tiles * 160 * (at_once <= 4 ? 1.6 : at_once <= 8 ? 1.2 : 1);

	return (double)ceil_div(tasks, warps) * (steps * (most > alone ? most : alone) + sums);
}

/* A task may have tiles past the last column only up to the next full 16, which weights are padded to. */
static Bf16Task task_choose(uint32_t rows, uint32_t cols, uint32_t warps, uint32_t steps, bool bits)
{
	uint32_t down = rows / 16, across = (uint32_t)ceil_div(cols, 8);
	Bf16Task best = { 0 };
	double least = 0;

	for (uint32_t high = 1; high <= TILES_HIGH; high *= 2)
		for (uint32_t wide = 1; wide <= TILES_WIDE; wide++) {
			Bf16Task t = { .high = high, .wide = wide, .down = down / high };
			t.across = (uint32_t)ceil_div(across, wide);
			if (down % high || high * wide > WARP_TILES || t.across * wide > round_up(across, 2) + (wide == 3))
				continue;
			double cost = task_cycles(&t, warps, steps, bits);
			if (!least || cost < least) {
				least = cost;
				best = t;
			}
		}
	return best;
}

/* ---- sums ---- */

static Reg rows_base(Kernel *k) { return add(k->e, k->memory, imm(k->at_rows)); }

void two_load(Emit *e, Reg v[2], Reg at, uint32_t offset)
{
	v[0] = reg(e, REG_F);
	v[1] = reg(e, REG_F);
	ins(e, "ld.shared.v2.f32 {$, $}, [$+#]", v[0], v[1], at, offset);
}

static void sums_begin(Kernel *k, const DeviceStep *s, const Bf16Task *t, Reg floats, Sums *x)
{
	Emit *e = k->e;
	const float *zero = k->s->job->zero;

	for (uint32_t j = 0; j < t->wide; j++) {
		Reg start[2];
		if (s->start && s->start != zero)
			two_load(e, start, mad(e, x->col, 4, k->memory), weight_at(k, s->start) + 32 * j);
		for (uint32_t h = 0; h < t->high; h++)
			for (uint32_t r = 0; r < 2; r++) {
				Reg *to = x->sum[h * t->wide + j] + 2 * r;
				if (!s->start) {
					two_load(e, to, floats, (16 * h + 8 * r) * k->row + column_at(k, s->c, s->c_col) + 32 * j);
					continue;
				}
				for (uint32_t i = 0; i < 2; i++)
					to[i] = op1(e, REG_F, "mov.f32", s->start == zero ? imm_f(0) : start[i]);
			}
	}
}

bool operand_later(const Kernel *k, uint32_t i, uint32_t buf, uint32_t col, uint32_t count)
{
	for (uint32_t n = i + 1; n < k->s->list->steps; n++) {
		const DeviceStep *s = &k->s->step[n];
		Access a[8];
		uint32_t all = step_access(k, s, a);
		for (uint32_t x = 0; x < all; x++) {
			bool overlaps = a[x].buf == buf && a[x].col < col + count && col < a[x].col + a[x].count;
			bool operand = s->kind == STEP_GRADIENT || (s->kind == STEP_PRODUCT && !x);
			if (overlaps && operand && !a[x].writes)
				return true;
			if (overlaps && a[x].writes && s->kind != STEP_ONE && a[x].col <= col &&
			    a[x].col + a[x].count >= col + count)
				return false;
		}
	}
	return false;
}

/* Two adjacent columns of a row: which forms later steps read, and where they are. */
typedef struct Stores {
	bool floats, bf16, even;    /* even: number of columns */
	uint32_t float_at, bf16_at; /* bytes in a row */
	Reg float_row, bf16_row;    /* addresses of the lane's first sum */
	uint32_t cols;
} Stores;

static Stores stores_of(Kernel *k, uint32_t number, uint32_t buf, const Sums *x, Reg floats)
{
	const DeviceStep *s = &k->s->step[number];
	Stores t = { .floats = buf < BUFS && has_floats(k, buf, s->c_col), .even = s->cols % 2 == 0, .cols = s->cols };

	t.bf16 = has_bf16(k, buf, s->c_col) && operand_later(k, number, buf, s->c_col, s->cols);
	t.float_row = floats;
	t.float_at = t.floats ? column_at(k, buf, s->c_col) : 0;
	t.bf16_at = t.bf16 ? bf16_column(k, buf, s->c_col) : 0;
	t.bf16_row = add(k->e, mad(k->e, x->row, k->bf16->row, mad(k->e, x->col, 2, k->memory)), imm(k->bf16->at_rows));
	return t;
}

/* Tile j of the task, row 8 r. real: P, it is a row of the chunk */
static void pair_store(Kernel *k, const Stores *t, uint32_t j, uint32_t r, Reg col, Reg real, const Reg v[2])
{
	Emit *e = k->e;
	uint32_t to = t->float_at + 8 * r * k->row + 32 * j, bf16_to = t->bf16_at + 8 * r * k->bf16->row + 16 * j;
	Reg has = op2(e, REG_P, "and.pred", real, less(e, add(e, col, imm(8 * j)), imm(t->cols)));

	if (t->even) {
		if (t->floats)
			ins(e, "@$ st.shared.v2.f32 [$+#], {$, $}", has, t->float_row, to, v[0], v[1]);
		if (t->bf16)
			ins(e, "@$ st.shared.u32 [$+#], $", has, t->bf16_row, bf16_to, bf16_pair(e, v[0], v[1]));
		return;
	}
	for (uint32_t i = 0; i < 2; i++) {
		if (i)
			has = op2(e, REG_P, "and.pred", real, less(e, add(e, col, imm(8 * j + 1)), imm(t->cols)));
		if (t->floats)
			ins(e, "@$ st.shared.f32 [$+#], $", has, t->float_row, to + 4 * i, v[i]);
		if (t->bf16)
			ins(e, "@$ st.shared.u16 [$+#], $", has, t->bf16_row, bf16_to + 2 * i,
			    op1(e, REG_H, "cvt.rn.bf16.f32", v[i]));
	}
}

static void pair_deltas(Kernel *k, const DeviceStep *s, Reg at, uint32_t offset, Reg v[2])
{
	Emit *e = k->e;
	Reg out[2], net[2];

	two_load(e, out, at, offset + column_at(k, BUF_ACT, s->c_col));
	if (s->keeps_net)
		two_load(e, net, at, offset + column_at(k, BUF_NET, s->c_col));
	for (uint32_t i = 0; i < 2; i++) {
		Reg slope = unit_slope(e, s->fn, s->keeps_net ? net[i] : out[i], out[i]);
		slope = op2(e, REG_F, "add.rn.ftz.f32", slope, imm_f(s->offset));
		v[i] = op2(e, REG_F, "mul.rn.ftz.f32", v[i], slope);
	}
}

Reg bf16_target_word(Kernel *k, const Sums *x, uint32_t r)
{
	Emit *e = k->e;
	Reg at = mad(e, add(e, x->row, imm(8 * r)), k->target_row, cases_memory(k));

	return op2(e, REG_R, "shr.u32", load(e, REG_R, "ld.shared.u32", at, k->at_targets), x->col);
}

void bf16_outputs(Kernel *k, const DeviceStep *s, const DeviceStep *errors, const Sums *x, uint32_t r, uint32_t j,
                  Reg real, Reg v[2])
{
	Emit *e = k->e;
	Reg row = add(e, x->row, imm(8 * r)), col = add(e, x->col, imm(8 * j)), weight = imm_f(1), out[2];
	Reg late = mad(e, row, k->deferred_row, mad(e, col, 4, k->memory)), word = imm(0);
	Reg y = k->bf16->y_bits ? imm(0) : mad(e, row, k->target_row, mad(e, col, 4, cases_memory(k)));
	Reg has = op2(e, REG_P, "and.pred", real, less(e, col, imm(s->cols)));

	for (uint32_t i = 0; i < 2; i++)
		out[i] = unit_value(e, s->fn, v[i]);
	ins(e, "@$ st.shared.v2.f32 [$+#], {$, $}", has, late, k->at_deferred + deferred_at(k, errors, false), out[0],
	    out[1]);
	if (errors->known_net)
		ins(e, "@$ st.shared.v2.f32 [$+#], {$, $}", has, late, k->at_deferred + deferred_at(k, errors, true), v[0],
		    v[1]);
	if (errors->c >= BUFS)
		return;
	if (k->s->job->data.weight) {
		Reg number = reg(e, REG_R);
		case_load(k, number, add(e, k->row0, row), real);
		weight = load(e, REG_F, "ld.global.nc.f32", place(e, POINTER(k, data.weight), number, 4), 0);
	}
	if (k->bf16->y_bits)
		word = x->has_targets ? x->target[r] : bf16_target_word(k, x, r);
	for (uint32_t i = 0; i < 2; i++) {
		ErrorOf of = { .fn = s->fn, .error = errors->error, .known_net = errors->known_net, .out = out[i] };
		of.net = errors->known_net ? v[i] : out[i];
		if (k->bf16->y_bits) {
			of.y = y_bit(e, word, (errors->y + 8 * j + i) % 32);
		} else {
			of.y = op1(e, REG_F, "mov.f32", imm_f(0));
			ins(e, "@$ ld.shared.f32 $, [$+#]", has, of.y, y, k->at_targets + 4 * (errors->y + i));
		}
		Reg known = k->bf16->y_bits ? imm(1) : is_number(e, of.y);
		v[i] = output_delta(e, errors, &of, known, weight, imm_f(0));
	}
}

static void sums_end(Kernel *k, uint32_t number, const Bf16Task *t, Reg floats, Sums *x)
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	Stores own = stores_of(k, number, s->c, x, floats);
	const DeviceStep *deferred = deferred_errors(k, s);
	Stores to = deferred                  ? stores_of(k, number, deferred->c, x, floats)
	            : s->after == AFTER_UNITS ? stores_of(k, number, BUF_ACT, x, floats)
	                                      : own;

	for (uint32_t h = 0; h < t->high; h++)
		for (uint32_t r = 0; r < 2; r++) {
			uint32_t down = 2 * h + r;
			Reg real = less(e, add(e, x->row, imm(8 * down)), k->my_rows);
			for (uint32_t j = 0; j < t->wide; j++) {
				Reg *v = x->sum[h * t->wide + j] + 2 * r;
				if (deferred) {
					bf16_outputs(k, s, deferred, x, down, j, real, v);
				} else if (s->after == AFTER_UNITS) {
					if (s->c != BUF_ACT)
						pair_store(k, &own, j, down, x->col, real, v);
					for (uint32_t i = 0; i < 2; i++)
						v[i] = unit_value(e, s->fn, v[i]);
				} else if (s->after == AFTER_DELTAS) {
					pair_deltas(k, s, floats, 8 * down * k->row + 32 * j, v);
				}
				if (!deferred || deferred->c < BUFS)
					pair_store(k, &to, j, down, x->col, real, v);
			}
		}
}

/* ---- products ---- */

/* Fragments of rows for a step of 16 sources; of bits, for two steps at once. */
static void rows_load(Kernel *k, const DeviceStep *s, const Bf16Task *t, Reg a, uint32_t step, Reg f[TILES_HIGH][2][4])
{
	bool bits = bit_columns(k, s->a, s->a_col) != NULL;

	for (uint32_t h = 0; h < t->high; h++) {
		if (!bits)
			fragments_load(k, f[h][step % 2], 4, false, a, 16 * h * k->bf16->row + 32 * step);
		if (!bits || step % 2)
			continue;
		Reg word[2];
		for (uint32_t r = 0; r < 2; r++)
			word[r] = load(k->e, REG_R, "ld.shared.u32", a, (16 * h + 8 * r) * k->bf16->bits_row + 2 * step);
		bits_fragments(k, word, 2, f[h]);
	}
}

void bf16_product_step(Kernel *k, const DeviceStep *s, const Bf16Task *t, Reg a, Reg b, uint32_t pitch, uint32_t step,
                       Reg fa[TILES_HIGH][2][4], Sums *x)
{
	Reg fb[4];
	uint32_t b_at = s->by_depth ? 16 * step * pitch : 32 * step;

	rows_load(k, s, t, a, step, fa);
	for (uint32_t j = 0; j < t->wide; j += 2) {
		uint32_t some = min_u32(2, t->wide - j);
		fragments_load(k, fb, 2 * some, s->by_depth, b, b_at + (s->by_depth ? 16 * j : 8 * j * pitch));
		for (uint32_t h = 0; h < t->high; h++)
			for (uint32_t n = 0; n < some; n++)
				multiply_add(k->e, x->sum[h * t->wide + j + n], fa[h][step % 2], fb + 2 * n, NULL);
	}
}

static void product_task(Kernel *k, uint32_t number, const Bf16Task *t, Reg task)
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	const Bf16 *h = k->bf16;
	Reg down = divide(e, task, t->across), across = modulo(e, task, t->across, down);
	Reg row = mul(e, down, 16 * t->high), col = mul(e, across, 8 * t->wide), a = reg(e, REG_R), b = reg(e, REG_R);
	Sums x = { .row = add(e, row, h->row_of_lane), .col = add(e, col, h->col_of_lane) };
	Reg floats = mad(e, x.row, k->row, mad(e, x.col, 4, rows_base(k)));
	const Bf16Region *w = bf16_region(k, s);
	uint32_t steps = w && s->b != k->s->job->zero ? (uint32_t)ceil_div(s->depth, 16) : 0, done = 0;
	const InputColumns *bits = steps ? bit_columns(k, s->a, s->a_col) : NULL;
	Reg fa[TILES_HIGH][2][4];

	uint32_t past = if_begin(e, less(e, row, k->my_rows));
	sums_begin(k, s, t, floats, &x);
	if (bits)
		ins(e, "mov.u32 $, $", a, bits_row_at(k, bits, row));
	if (steps) {
		if (!bits) {
			ins(e, "add.u32 $, $, $", a, mad(e, row, h->row, k->memory), h->ldmatrix[0]);
			ins(e, "add.u32 $, $, #", a, a, h->at_rows + bf16_column(k, s->a, s->a_col));
		}
		Reg first = s->by_depth ? mul(e, col, 2) : mul(e, col, w->pitch);
		ins(e, "add.u32 $, $, $", b, add(e, first, k->memory), ldmatrix_offset(k, w->pitch, !s->by_depth));
		ins(e, "add.u32 $, $, #", b, b, w->at);
	}
	if (steps > STEPS_KNOWN) {
		enum { UNROLL = 4 };
		Loop l = loop_count(e, steps / UNROLL);
		for (; done < UNROLL; done++)
			bf16_product_step(k, s, t, a, b, w->pitch, done, fa, &x);
		ins(e, "add.u32 $, $, #", a, a, bits ? 2 * UNROLL : 32 * UNROLL);
		ins(e, "add.u32 $, $, #", b, b, s->by_depth ? 16 * UNROLL * w->pitch : 32 * UNROLL);
		loop_end(e, &l);
		steps %= UNROLL;
		done = 0;
	}
	for (; done < steps; done++)
		bf16_product_step(k, s, t, a, b, w->pitch, done, fa, &x);
	sums_end(k, number, t, floats, &x);
	if_end(e, past);
}

static void product_emit(Kernel *k, uint32_t number)
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	uint32_t warps = k->s->threads / 32;
	Bf16Task t = task_choose(k->block_rows, s->cols, warps, (uint32_t)ceil_div(s->depth, 16),
	                         bit_columns(k, s->a, s->a_col) != NULL);
	uint32_t tasks = t.down * t.across;

	remark(e, "product %u x %u, bf16: a warp has %u x 16 rows by %u x 8", s->depth, s->cols, t.high, t.wide);
	for (uint32_t first = 0; first < tasks; first += warps) {
		Reg task = add(e, k->bf16->warp, imm(first));
		uint32_t end = 0;
		if (first + warps > tasks)
			end = if_begin(e, less(e, task, imm(tasks)));
		product_task(k, number, &t, task);
		if (first + warps > tasks)
			if_end(e, end);
	}
}

/* ---- other steps ---- */

/* Columns that a step other than a product has written, also in bf16. */
static void columns_round(Kernel *k, uint32_t number)
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	const Bf16 *h = k->bf16;
	Access a[8];
	uint32_t n = step_access(k, s, a);

	for (uint32_t i = 0; i < n; i++) {
		if (!a[i].writes || !has_bf16(k, a[i].buf, a[i].col) ||
		    !operand_later(k, number, a[i].buf, a[i].col, a[i].count))
			continue;
		Loop l = loop_begin(e, k->tid, mul(e, k->my_rows, a[i].count), k->s->threads);
		Reg row = divide(e, l.i, a[i].count), col = modulo(e, l.i, a[i].count, row);
		Reg v = load(e, REG_F, "ld.shared.f32", mad(e, row, k->row, mad(e, col, 4, k->memory)),
		             k->at_rows + column_at(k, a[i].buf, a[i].col));
		ins(e, "st.shared.u16 [$+#], $", mad(e, row, h->row, mad(e, col, 2, k->memory)),
		    h->at_rows + bf16_column(k, a[i].buf, a[i].col), op1(e, REG_H, "cvt.rn.bf16.f32", v));
		loop_end(e, &l);
		barrier_block(e);
	}
}

/* Errors store bf16 themselves (row_store). Verdicts are left to the caller. */
void bf16_steps(Kernel *k, uint32_t first, uint32_t end)
{
	if (k->bf16->fuses_layers) {
		bf16_layers(k);
		if (!k->bf16->warpgroups) /* there, all threads synchronize next */
			barrier_block(k->e);
		spent(k, SPENT_KINDS + 2);
		return;
	}
	if (!k->s->tiled) {
		scores_wait(k);
		bits_transpose(k, 0, 1);
	}
	for (uint32_t i = first; i < end; i++) {
		const DeviceStep *d = &k->s->step[i];
		if (d->kind == STEP_ERRORS && k->deferred_scores)
			continue;
		switch (d->kind) {
		case STEP_LOAD:
		case STEP_MARK:
		case STEP_ONE:
		case STEP_SCORES:
		case STEP_CODES: continue;
		case STEP_PRODUCT: product_emit(k, i); break;
		default: row_step(k, d); break;
		}
		barrier_block(k->e);
		if (d->kind != STEP_PRODUCT && d->kind != STEP_ERRORS)
			columns_round(k, i);
		spent(k, SPENT_KINDS + 1 + min_u32(i, 25));
	}
}
