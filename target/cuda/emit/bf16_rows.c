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

/* ---- inputs that are all 0 or 1, one bit each ----
 *
 * Words of rows have a bit for each of 32 inputs where bit_place puts it; operand fragments of 0 and 1 in bf16 are made
 * of them in registers.
 *
 * A row takes 32 bytes where 203 inputs in bf16 take 416, and fragments take no bandwidth of shared memory. Products
 * need words of rows. Gradients need the bits of one input in 32 rows: bits_transpose makes such words, by squares of
 * 32 x 32 bits; or a lane selects its bits from words of rows (bits_rows). */

/* ONE: 1 in bf16; SPARE: bytes that tiles read past the last input; WORD: inputs of a word. */
enum { SQUARE = 32, ONE = 0x3f80, SPARE = 256, WORD = 32 };

const InputColumns *bit_columns(const Kernel *k, uint32_t buf, uint32_t col)
{
	return k->bf16->bits ? input_of(k, buf, col) : NULL;
}

/* Steps must read inputs as operands only, and from the first column of a part on. */
void bits_plan(Kernel *k)
{
	const EmitSource *s = k->s;

	k->bf16->bits = false;
	k->bf16->bits_row = k->bf16->transposed_row = 0;
	if (!s->job->data.bits_row || s->tiled)
		return;
	for (uint32_t i = 0; i < s->list->steps; i++) {
		const DeviceStep *d = &s->step[i];
		Access a[8];
		uint32_t n = d->kind == STEP_ONE || d->kind == STEP_LOAD ? 0 : step_access(k, d, a);
		for (uint32_t x = 0; x < n; x++) {
			const InputColumns *in = input_of(k, a[x].buf, a[x].col);
			bool operand = d->kind == STEP_GRADIENT || (d->kind == STEP_PRODUCT && !x);
			if (in && (!operand || a[x].col != in->col))
				return;
		}
	}
	k->bf16->bits = true;
	k->bf16->bits_row = s->job->data.bits_row * 4;
	if (!k->bf16->warpgroups) /* against bank conflicts; warpgroups have too few loads to be worth the memory */
		k->bf16->bits_row = (k->bf16->bits_row / 16 | 1) * 16;
	k->bf16->transposed_row = s->job->data.bits_row * SQUARE * 4;
}

/* With additional side warps, gradients read words of rows. */
bool has_transposed_bits(const Kernel *k) { return k->bf16->bits && !k->s->test && !k->s->adds_side_warps; }

uint64_t bits_bytes(const Kernel *k, uint32_t rows) { return (uint64_t)k->bf16->bits_row * rows; }

uint64_t transposed_bytes(const Kernel *k, uint32_t rows)
{
	return has_transposed_bits(k) ? ceil_div(rows, SQUARE) * k->bf16->transposed_row + SPARE : 0;
}

void bits_stage(Kernel *k)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	uint32_t each = k->s->job->data.bits_row / 4;

	remark(e, "inputs, a bit each");
	Loop l = loop_begin(e, k->tid, mul(e, k->my_rows, each), k->s->threads);
	Reg row = divide(e, l.i, each), part = modulo(e, l.i, each, row), number = reg(e, REG_R);
	case_load(k, number, add(e, k->row0, row), less(e, row, k->my_rows));
	ins(e, "cp.async.cg.shared.global [$+#], [$], 16", mad(e, row, h->bits_row, mad(e, part, 16, k->memory)),
	    h->at_bits, place(e, place(e, POINTER(k, data.bits), number, each * 16), part, 16));
	loop_end(e, &l);
}

Reg bit_column(Emit *e, Reg place)
{
	Reg pair = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", place, imm(1)), imm(6));
	Reg eight = op2(e, REG_R, "shl.b32", op2(e, REG_R, "and.b32", place, imm(3)), imm(3));

	return add(e, add(e, pair, eight), op2(e, REG_R, "shr.u32", place, imm(4)));
}

void squares_transpose(Kernel *k, Reg *x, uint32_t count)
{
	static const uint32_t low[] = { 0x0000ffff, 0x00ff00ff, 0x0f0f0f0f, 0x33333333, 0x55555555 };
	Emit *e = k->e;

	for (uint32_t d = 16, i = 0; d; d /= 2, i++) {
		Reg upper = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", k->bf16->lane, imm(d)), imm(0));
		Reg kept = op3(e, REG_R, "selp.u32", imm(~low[i]), imm(low[i]), upper);
		Reg shift = op3(e, REG_R, "selp.u32", imm(32 - d), imm(d), upper), changed = op1(e, REG_R, "not.b32", kept);
		Reg y[SQUARES_AT_ONCE];
		for (uint32_t n = 0; n < count; n++)
			y[n] = lanes_xor(e, x[n], d);
		for (uint32_t n = 0; n < count; n++) {
			Reg z = op2(e, REG_R, "and.b32", op3(e, REG_R, "shf.l.wrap.b32", y[n], y[n], shift), changed);
			x[n] = op2(e, REG_R, "or.b32", op2(e, REG_R, "and.b32", x[n], kept), z);
		}
	}
}

/* Instructions of one square depend on each other; those of several overlap. */
void bits_transpose(Kernel *k, uint32_t first, uint32_t most)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	uint32_t words = k->s->job->data.bits_row, squares = (uint32_t)ceil_div(k->block_rows, SQUARE) * words;
	uint32_t warps = k->s->threads / 32 - first, each = min_u32(most, max_u32(1, squares / warps));

	if (!has_transposed_bits(k))
		return;
	remark(e, "words of inputs");
	uint32_t done = 0;
	if (h->single_slice) {
		done = unless_begin(e, op2(e, REG_P, "setp.eq.u64", h->staged_leaf, h->transposed_leaf));
		ins(e, "mov.u64 $, $", h->transposed_leaf, h->staged_leaf);
	}
	Reg col = bit_column(e, h->lane), x[SQUARES_AT_ONCE], number[SQUARES_AT_ONCE];
	Loop l = loop_begin(e, add(e, h->warp, imm(-first)), imm(squares), warps * each);
	for (uint32_t i = 0; i < each; i++) {
		number[i] = i ? add(e, l.i, imm(i * warps)) : l.i;
		Reg at = i ? op2(e, REG_R, "min.u32", number[i], imm(squares - 1)) : number[i];
		Reg down = divide(e, at, words), word = modulo(e, at, words, down);
		Reg row = op2(e, REG_R, "min.u32", mad(e, down, SQUARE, col), imm(k->block_rows - 1));
		x[i] = load(e, REG_R, "ld.shared.u32", mad(e, row, h->bits_row, mad(e, word, 4, cases_memory(k))), h->at_bits);
	}
	for (uint32_t i = 0; i < each; i++)
		squares_transpose(k, x + i, 1);
	for (uint32_t i = 0; i < each; i++) {
		uint32_t past = i ? if_begin(e, less(e, number[i], imm(squares))) : 0;
		ins(e, "st.shared.u32 [$+#], $", mad(e, number[i], SQUARE * 4, mad(e, col, 4, k->memory)), h->at_transposed,
		    x[i]);
		if (i)
			if_end(e, past);
	}
	loop_end(e, &l);
	if (h->single_slice)
		if_end(e, done);
}

static Reg pair_of_bits(Emit *e, Reg x, uint32_t pair)
{
	Reg both = op2(e, REG_R, "and.b32", x, imm(0x00010001u << pair));

	return op2(e, REG_R, "mul.lo.u32", both, imm(ONE >> pair));
}

void bits_fragments(Kernel *k, const Reg *word, uint32_t count, Reg f[2][4])
{
	for (uint32_t r = 0; r < count; r++) {
		Reg x = op2(k->e, REG_R, "shr.u32", word[r], k->bf16->bits_shift);
		for (uint32_t pair = 0; pair < 4; pair++)
			f[pair / 2][pair % 2 * count + r] = pair_of_bits(k->e, x, pair);
	}
}

Reg bits_row_at(Kernel *k, const InputColumns *in, Reg row)
{
	const Bf16 *h = k->bf16;

	return add(k->e, mad(k->e, add(k->e, row, h->row_of_lane), h->bits_row, cases_memory(k)),
	           imm(h->at_bits + 4 * in->word));
}

Reg bits_input_at(Kernel *k, const InputColumns *in, Reg input)
{
	const Bf16 *h = k->bf16;

	return add(k->e, mad(k->e, add(k->e, input, h->row_of_lane), 4, k->memory), imm(h->at_transposed + 128 * in->word));
}

BitsInputs bits_inputs(Kernel *k, const InputColumns *in, Reg input)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	Reg odd = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", h->row_of_lane, imm(1)), imm(0));
	Reg word = op2(e, REG_R, "shr.u32", input, imm(5)), tile = op2(e, REG_R, "and.b32", divide(e, input, 8), imm(3));
	BitsInputs x = { .half = op3(e, REG_R, "selp.u32", imm(0x7632), imm(0x5410), odd), .at = reg(e, REG_R) };

	x.shift = mad(e, op2(e, REG_R, "shr.u32", h->row_of_lane, imm(1)), 4, tile); /* bit_place */
	ins(e, "add.u32 $, $, #", x.at, mad(e, h->col_of_lane, h->bits_row, mad(e, word, 4, cases_memory(k))),
	    h->at_bits + 4 * in->word);
	return x;
}

void bits_rows(Kernel *k, const BitsInputs *x, uint32_t row, uint32_t first, uint32_t count, Reg (*f)[2])
{
	Emit *e = k->e;

	for (uint32_t t = 0, end; t < count; t = end)
		for (uint32_t r = 0; r < 2; r++) {
			uint32_t word = (first + t) / (WORD / 8);
			Reg two[2];
			for (uint32_t i = 0; i < 2; i++)
				two[i] = load(e, REG_R, "ld.shared.u32", x->at, (row + 8 * r + i) * k->bf16->bits_row + 4 * word);
			Reg both = op2(e, REG_R, "shr.u32", op3(e, REG_R, "prmt.b32", two[0], two[1], x->half), x->shift);
			for (end = t; end < count && (first + end) / (WORD / 8) == word; end++)
				f[end][r] = pair_of_bits(e, both, (first + end) % (WORD / 8));
		}
}
