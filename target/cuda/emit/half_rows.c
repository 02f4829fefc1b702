/* SPDX-License-Identifier: MIT */
/* bf16: steps of the forward and backward pass of a block's rows. In: rounded operands in shared memory. Out: columns
 * of rows as floats and rounded. Must hold: a sum begins with its start and adds its sources in steps of 16, in order.
 *
 * Counts of cycles, for 128 rows of 203 sources and 60 units with 16 warps of 2 x 2 tiles: 13 steps, each 16 x 12 of
 * shared memory (an ldmatrix of four matrices takes 4), 16 / 4 x 4 x 6.4 of tensor cores. */
#include <assert.h>
#include <stdlib.h>

#include "half_emit.h"
#include "units.h"

/* ---- fragments ---- */

/* Each matrix is 8 x 8: a register of two numbers for every lane. */
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

/* ---- tasks ---- */

/* Of all warps together: steps of 16 sources, each bound by shared memory, tensor cores or the latency of a warp; then
 * some 40 instructions for each sum, which a few warps cannot issue without a pause. */
static double task_cycles(const HalfTask *t, uint32_t warps, uint32_t steps, bool bits)
{
	uint32_t tasks = t->down * t->across, at_once = min_u32(tasks, warps), tiles = t->high * t->wide;
	double shared = at_once * ((bits ? 1 : 4) * t->high + t->wide * 2.0), tensor = (at_once + 3) / 4 * tiles * 6.4;
	double most = shared > tensor ? shared : tensor, alone = 35 + 6.4 * tiles;
	double sums = (at_once + 3) / 4 * tiles * 160 * (at_once <= 4 ? 1.6 : at_once <= 8 ? 1.2 : 1);

	return (double)ceil_div(tasks, warps) * (steps * (most > alone ? most : alone) + sums);
}

/* Columns past the last tile are read only where the next full 16 has them. */
static HalfTask task_choose(uint32_t rows, uint32_t cols, uint32_t warps, uint32_t steps, bool bits)
{
	uint32_t down = rows / 16, across = (uint32_t)ceil_div(cols, 8);
	HalfTask best = { 0 };
	double least = 0;

	for (uint32_t high = 1; high <= TILES_HIGH; high *= 2)
		for (uint32_t wide = 1; wide <= TILES_WIDE; wide++) {
			HalfTask t = { .high = high, .wide = wide, .down = down / high };
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

static void two_load(Emit *e, Reg v[2], Reg at, uint32_t offset)
{
	v[0] = reg(e, REG_F);
	v[1] = reg(e, REG_F);
	ins(e, "ld.shared.v2.f32 {$, $}, [$+#]", v[0], v[1], at, offset);
}

static void sums_begin(Kernel *k, const DeviceStep *s, const HalfTask *t, Reg floats, Sums *x)
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
			bool meets = a[x].buf == buf && a[x].col < col + count && col < a[x].col + a[x].count;
			bool operand = s->kind == STEP_GRADIENT || (s->kind == STEP_PRODUCT && !x);
			if (meets && operand && !a[x].writes)
				return true;
			if (meets && a[x].writes && s->kind != STEP_ONE && a[x].col <= col && a[x].col + a[x].count >= col + count)
				return false;
		}
	}
	return false;
}

/* Two adjacent columns of a row, as floats and rounded, where they are needed. */
typedef struct Stores {
	bool floats, halves, whole; /* whole: columns come in pairs */
	uint32_t float_at, half_at; /* bytes in a row */
	Reg float_row, half_row;    /* addresses of the lane's first sum */
	uint32_t cols;
	bool checked; /* the last tiles have columns past the last */
} Stores;

static Stores stores_of(Kernel *k, uint32_t number, uint32_t buf, const Sums *x, Reg floats)
{
	const DeviceStep *s = &k->s->step[number];
	Stores t = { .floats = buf < BUFS && has_floats(k, buf, s->c_col), .whole = s->cols % 2 == 0, .cols = s->cols };

	t.halves = has_halves(k, buf, s->c_col) && operand_later(k, number, buf, s->c_col, s->cols);
	t.float_row = floats;
	t.float_at = t.floats ? column_at(k, buf, s->c_col) : 0;
	t.half_at = t.halves ? half_column(k, buf, s->c_col) : 0;
	t.half_row = add(k->e, mad(k->e, x->row, k->half->row, mad(k->e, x->col, 2, k->memory)), imm(k->half->at_rows));
	t.checked = true;
	return t;
}

/* Columns 8 j of the task, row 8 r; real: the row is one. */
static void pair_store(Kernel *k, const Stores *t, uint32_t j, uint32_t r, Reg col, Reg real, const Reg v[2])
{
	Emit *e = k->e;
	uint32_t to = t->float_at + 8 * r * k->row + 32 * j, half_to = t->half_at + 8 * r * k->half->row + 16 * j;
	Reg has = op2(e, REG_P, "and.pred", real, less(e, add(e, col, imm(8 * j)), imm(t->cols)));

	if (t->whole) {
		if (t->floats)
			ins(e, "@$ st.shared.v2.f32 [$+#], {$, $}", has, t->float_row, to, v[0], v[1]);
		if (t->halves)
			ins(e, "@$ st.shared.u32 [$+#], $", has, t->half_row, half_to, half_pair(e, v[0], v[1]));
		return;
	}
	for (uint32_t i = 0; i < 2; i++) {
		if (i)
			has = op2(e, REG_P, "and.pred", real, less(e, add(e, col, imm(8 * j + 1)), imm(t->cols)));
		if (t->floats)
			ins(e, "@$ st.shared.f32 [$+#], $", has, t->float_row, to + 4 * i, v[i]);
		if (t->halves)
			ins(e, "@$ st.shared.u16 [$+#], $", has, t->half_row, half_to + 2 * i,
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

void half_outputs(Kernel *k, const DeviceStep *s, const DeviceStep *errors, const Sums *x, uint32_t r, uint32_t j,
                  Reg real, Reg v[2])
{
	Emit *e = k->e;
	Reg row = add(e, x->row, imm(8 * r)), col = add(e, x->col, imm(8 * j)), weight = imm_f(1), out[2];
	Reg late = mad(e, row, k->late_row, mad(e, col, 4, k->memory)), word = imm(0);
	Reg y = mad(e, row, k->target_row, k->half->y_bits ? cases_memory(k) : mad(e, col, 4, cases_memory(k)));
	Reg has = op2(e, REG_P, "and.pred", real, less(e, col, imm(s->cols)));

	for (uint32_t i = 0; i < 2; i++)
		out[i] = unit_value(e, s->fn, v[i]);
	ins(e, "@$ st.shared.v2.f32 [$+#], {$, $}", has, late, k->at_late + late_at(k, errors, false), out[0], out[1]);
	if (errors->known_net)
		ins(e, "@$ st.shared.v2.f32 [$+#], {$, $}", has, late, k->at_late + late_at(k, errors, true), v[0], v[1]);
	if (errors->c >= BUFS)
		return;
	if (k->s->job->data.weight) {
		Reg number = reg(e, REG_R);
		case_load(k, number, add(e, k->row0, row), real);
		weight = load(e, REG_F, "ld.global.nc.f32", place(e, POINTER(k, data.weight), number, 4), 0);
	}
	if (k->half->y_bits)
		word = op2(e, REG_R, "shr.u32", load(e, REG_R, "ld.shared.u32", y, k->at_targets), x->col);
	for (uint32_t i = 0; i < 2; i++) {
		ErrorOf of = { .fn = s->fn, .error = errors->error, .known_net = errors->known_net, .out = out[i] };
		of.net = errors->known_net ? v[i] : out[i];
		if (k->half->y_bits) {
			of.y = y_bit(e, word, (errors->y + 8 * j + i) % 32);
		} else {
			of.y = op1(e, REG_F, "mov.f32", imm_f(0));
			ins(e, "@$ ld.shared.f32 $, [$+#]", has, of.y, y, k->at_targets + 4 * (errors->y + i));
		}
		Reg known = k->half->y_bits ? imm(1) : is_number(e, of.y);
		v[i] = output_delta(e, errors, &of, known, weight, imm_f(0));
	}
}

static void sums_end(Kernel *k, uint32_t number, const HalfTask *t, Reg floats, Sums *x)
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	Stores own = stores_of(k, number, s->c, x, floats);
	const DeviceStep *late = late_errors(k, s);
	Stores to = late                      ? stores_of(k, number, late->c, x, floats)
	            : s->after == AFTER_UNITS ? stores_of(k, number, BUF_ACT, x, floats)
	                                      : own;

	for (uint32_t h = 0; h < t->high; h++)
		for (uint32_t r = 0; r < 2; r++) {
			uint32_t down = 2 * h + r;
			Reg real = less(e, add(e, x->row, imm(8 * down)), k->my_rows);
			for (uint32_t j = 0; j < t->wide; j++) {
				Reg *v = x->sum[h * t->wide + j] + 2 * r;
				if (late) {
					half_outputs(k, s, late, x, down, j, real, v);
				} else if (s->after == AFTER_UNITS) {
					if (s->c != BUF_ACT)
						pair_store(k, &own, j, down, x->col, real, v);
					for (uint32_t i = 0; i < 2; i++)
						v[i] = unit_value(e, s->fn, v[i]);
				} else if (s->after == AFTER_DELTAS) {
					pair_deltas(k, s, floats, 8 * down * k->row + 32 * j, v);
				}
				if (!late || late->c < BUFS)
					pair_store(k, &to, j, down, x->col, real, v);
			}
		}
}

/* ---- products ---- */

/* Fragments of rows for a step of 16 sources; bits: those of two steps are made together. */
static void rows_load(Kernel *k, const DeviceStep *s, const HalfTask *t, Reg a, uint32_t step, Reg f[TILES_HIGH][2][4])
{
	bool bits = bits_of(k, s->a, s->a_col) != NULL;

	for (uint32_t h = 0; h < t->high; h++) {
		if (!bits)
			fragments_load(k, f[h][step % 2], 4, false, a, 16 * h * k->half->row + 32 * step);
		if (!bits || step % 2)
			continue;
		Reg word[2];
		for (uint32_t r = 0; r < 2; r++)
			word[r] = load(k->e, REG_R, "ld.shared.u32", a, (16 * h + 8 * r) * k->half->bits_row + 2 * step);
		bits_fragments(k, word, 2, f[h]);
	}
}

static void product_step(Kernel *k, const DeviceStep *s, const HalfTask *t, Reg a, Reg b, uint32_t pitch, uint32_t step,
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

static void product_task(Kernel *k, uint32_t number, const HalfTask *t, Reg task)
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	const Half *h = k->half;
	Reg down = divide(e, task, t->across), across = modulo(e, task, t->across, down);
	Reg row = mul(e, down, 16 * t->high), col = mul(e, across, 8 * t->wide), a = reg(e, REG_R), b = reg(e, REG_R);
	Sums x = { .row = add(e, row, h->row_of_lane), .col = add(e, col, h->col_of_lane) };
	Reg floats = mad(e, x.row, k->row, mad(e, x.col, 4, rows_base(k)));
	const HalfRegion *w = half_region(k, s);
	uint32_t steps = w && s->b != k->s->job->zero ? (uint32_t)ceil_div(s->depth, 16) : 0, done = 0;
	const InputColumns *bits = steps ? bits_of(k, s->a, s->a_col) : NULL;
	Reg fa[TILES_HIGH][2][4];

	uint32_t past = if_begin(e, less(e, row, k->my_rows));
	sums_begin(k, s, t, floats, &x);
	if (bits)
		ins(e, "mov.u32 $, $", a, bits_row_at(k, bits, row));
	if (steps) {
		if (!bits) {
			ins(e, "add.u32 $, $, $", a, mad(e, row, h->row, k->memory), h->place[0]);
			ins(e, "add.u32 $, $, #", a, a, h->at_rows + half_column(k, s->a, s->a_col));
		}
		Reg first = s->by_depth ? mul(e, col, 2) : mul(e, col, w->pitch);
		ins(e, "add.u32 $, $, $", b, add(e, first, k->memory), lane_place(k, w->pitch, !s->by_depth));
		ins(e, "add.u32 $, $, #", b, b, w->at);
	}
	if (steps > STEPS_KNOWN) {
		enum { TURN = 4 };
		Loop l = loop_count(e, steps / TURN);
		for (; done < TURN; done++)
			product_step(k, s, t, a, b, w->pitch, done, fa, &x);
		ins(e, "add.u32 $, $, #", a, a, bits ? 2 * TURN : 32 * TURN);
		ins(e, "add.u32 $, $, #", b, b, s->by_depth ? 16 * TURN * w->pitch : 32 * TURN);
		loop_end(e, &l);
		steps %= TURN;
		done = 0;
	}
	for (; done < steps; done++)
		product_step(k, s, t, a, b, w->pitch, done, fa, &x);
	sums_end(k, number, t, floats, &x);
	if_end(e, past);
}

static void product_emit(Kernel *k, uint32_t number)
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	uint32_t warps = k->s->threads / 32;
	HalfTask t = task_choose(k->block_rows, s->cols, warps, (uint32_t)ceil_div(s->depth, 16),
	                         bits_of(k, s->a, s->a_col) != NULL);
	uint32_t tasks = t.down * t.across;

	remark(e, "product %u x %u, bf16: a warp has %u x 16 rows by %u x 8", s->depth, s->cols, t.high, t.wide);
	for (uint32_t first = 0; first < tasks; first += warps) {
		Reg task = add(e, k->half->warp, imm(first));
		uint32_t end = 0;
		if (first + warps > tasks)
			end = if_begin(e, less(e, task, imm(tasks)));
		product_task(k, number, &t, task);
		if (first + warps > tasks)
			if_end(e, end);
	}
}

/* ---- one layer of hidden units: a warp takes 16 rows through all steps ----
 *
 * What is computed of the rows stays in registers: sums of a product have the places of the next one's operands. Only
 * what gradients and verdicts read is stored, and what several warps compute of the same rows. */

enum { MOST_SPLIT = 4 };

/* A network with one layer of hidden units. */
typedef struct Through {
	const DeviceStep *hidden, *outputs, *errors, *back;
	uint32_t number[3]; /* of the three products */
} Through;
/* Rows of a warp: 16. */
typedef struct ThroughRows {
	Reg row, real[2];   /* of the lane: its first row; are its rows, 8 apart, there */
	Reg base, half_row; /* first row of the warp; address of rounded values of the lane's first row */
} ThroughRows;
/* Tiles of a product that a warp has, of `split` warps with the same rows. */
typedef struct Tiles {
	Reg first;            /* or an integer, */
	uint32_t most, tiles; /* which is `most` at most */
	Reg col;              /* the lane's first column */
} Tiles;
static bool through_find(const Kernel *k, Through *t)
{
	uint32_t products = 0;

	for (uint32_t i = 0; i < k->s->list->gradient; i++)
		switch (k->s->step[i].kind) {
		case STEP_PRODUCT:
			if (products == 3)
				return false;
			t->number[products++] = i;
			break;
		case STEP_LOAD:
		case STEP_MARK:
		case STEP_ONE:
		case STEP_ERRORS:
		case STEP_SCORES:
		case STEP_CODES: break;
		default: return false;
		}
	if (products != 3)
		return false;
	t->hidden = &k->s->step[t->number[0]];
	t->outputs = &k->s->step[t->number[1]];
	t->back = &k->s->step[t->number[2]];
	t->errors = late_errors(k, t->outputs);
	return true;
}

static bool is_chained(const DeviceStep *s, uint32_t buf, const DeviceStep *from)
{
	return s->a == buf && s->a_col == from->c_col && s->depth == from->cols;
}

static bool through_fits(const Kernel *k, const Through *t)
{
	const float *zero = k->s->job->zero;
	const DeviceStep *all[] = { t->hidden, t->outputs, t->back };

	for (uint32_t i = 0; i < 3; i++)
		if (all[i]->b == zero || !all[i]->start || all[i]->keeps_net || all[i]->cols % 2 ||
		    all[i]->cols > 8 * TILES_WIDE || ceil_div(all[i]->depth, 16) > STEPS_KNOWN)
			return false;
	return t->hidden->after == AFTER_UNITS && !late_errors(k, t->hidden) && t->errors && t->errors->c == BUF_DELTA &&
	       t->outputs->cols <= 4 * TILES_WIDE && t->back->after == AFTER_DELTAS && t->back->c == BUF_DELTA &&
	       is_chained(t->outputs, BUF_ACT, t->hidden) && is_chained(t->back, BUF_DELTA, t->outputs) &&
	       t->back->c_col == t->hidden->c_col && t->back->cols == t->hidden->cols;
}

bool half_is_through(const Kernel *k)
{
	Through t;

	return k->judged && !k->s->test && !k->s->tiled && through_find(k, &t) && through_fits(k, &t);
}

static uint32_t tiles_across(const DeviceStep *s) { return (uint32_t)ceil_div(s->cols, 8); }

static Tiles tiles_of_side(Kernel *k, const DeviceStep *s, Reg side, uint32_t split)
{
	uint32_t each = (uint32_t)ceil_div(tiles_across(s), split);
	Tiles t = { .first = mul(k->e, side, each), .most = each * (split - 1), .tiles = each };

	t.col = add(k->e, k->half->col_of_lane, mul(k->e, t.first, 8));
	return t;
}

/* Weights of a product, for these tiles and from column 8 first of them on. */
static Reg weights_place(Kernel *k, const DeviceStep *s, const Tiles *t, uint32_t first)
{
	const HalfRegion *w = half_region(k, s);
	uint32_t tile = s->by_depth ? 16 : 8 * w->pitch;
	Reg lanes = add(k->e, lane_place(k, w->pitch, !s->by_depth), mul(k->e, t->first, tile));

	return add(k->e, add(k->e, k->memory, lanes), imm(w->at + tile * first));
}

/* Sums begin with weights from the true unit, or 0. */
static void through_sums(Kernel *k, const DeviceStep *s, const Tiles *t, uint32_t first, uint32_t tiles, Reg (*sum)[4])
{
	Emit *e = k->e;
	bool zero = s->start == k->s->job->zero;
	Reg at = mad(e, t->col, 4, k->memory), start[2] = { imm_f(0), imm_f(0) };

	for (uint32_t j = 0; j < tiles; j++) {
		if (!zero)
			two_load(e, start, at, weight_at(k, s->start) + 32 * (first + j));
		for (uint32_t i = 0; i < 4; i++)
			sum[j][i] = op1(e, REG_F, "mov.f32", start[i % 2]);
	}
}

/* Operands that are in rows: address of the warp's fragments. */
static Reg rows_place(Kernel *k, const DeviceStep *s, const ThroughRows *x)
{
	return add(k->e, add(k->e, mad(k->e, x->base, k->half->row, k->memory), k->half->place[0]),
	           imm(k->half->at_rows + half_column(k, s->a, s->a_col)));
}

/* Products of operands in registers, [tiles][2 rows] pairs of columns, or, if there are none, in rows. */
static void through_multiply(Kernel *k, const DeviceStep *s, const ThroughRows *x, Reg (*a)[2], const Tiles *t,
                             uint32_t first, uint32_t tiles, Reg (*sum)[4])
{
	Reg b = weights_place(k, s, t, first), f[4], rows = a ? b : rows_place(k, s, x);
	uint32_t pitch = half_region(k, s)->pitch;

	for (uint32_t step = 0; step < ceil_div(s->depth, 16); step++) {
		Reg fa[4];
		uint32_t at = s->by_depth ? 16 * step * pitch : 32 * step;
		if (!a)
			fragments_load(k, fa, 4, false, rows, 32 * step);
		for (uint32_t i = 0; a && i < 4; i++)
			fa[i] = a[2 * step + i / 2][i % 2];
		for (uint32_t j = 0; j < tiles; j += 2) {
			uint32_t some = min_u32(2, tiles - j);
			fragments_load(k, f, 2 * some, s->by_depth, b, at + (s->by_depth ? 16 * j : 8 * j * pitch));
			for (uint32_t n = 0; n < some; n++)
				multiply_add(k->e, sum[j + n], fa, f + 2 * n, NULL);
		}
	}
}

/* Two rounded values of tile j, row 8 r: 0 past the last column. Stored in rows. */
static Reg through_pair(Kernel *k, const DeviceStep *s, const ThroughRows *x, const Tiles *t, uint32_t buf, uint32_t j,
                        uint32_t r, const Reg v[2])
{
	Emit *e = k->e;
	Reg pair = half_pair(e, v[0], v[1]), has = x->real[r], at = mad(e, t->col, 2, x->half_row);

	if (8 * (t->most + j + 1) > s->cols) {
		Reg inside = less(e, add(e, t->col, imm(8 * j)), imm(s->cols));
		pair = op3(e, REG_R, "selp.u32", pair, imm(0), inside);
		has = op2(e, REG_P, "and.pred", has, inside);
	}
	ins(e, "@$ st.shared.u32 [$+#], $", has, at, half_column(k, buf, s->c_col) + 8 * r * k->half->row + 16 * j, pair);
	return pair;
}

static void through_hidden(Kernel *k, const Through *t, const ThroughRows *x, const Tiles *some, Sums *sums)
{
	const DeviceStep *s = t->hidden;
	HalfTask task = { .high = 1, .wide = some->tiles };
	Reg fa[TILES_HIGH][2][4];
	const InputColumns *bits = bits_of(k, s->a, s->a_col);

	through_sums(k, s, some, 0, some->tiles, sums->sum);
	Reg a = bits ? bits_row_at(k, bits, x->base) : rows_place(k, s, x), b = weights_place(k, s, some, 0);
	for (uint32_t step = 0; step < ceil_div(s->depth, 16); step++)
		product_step(k, s, &task, a, b, half_region(k, s)->pitch, step, fa, sums);
}

/* Net inputs become outputs. */
static void through_units(Kernel *k, const Through *t, const ThroughRows *x, const Tiles *some, Sums *sums,
                          Reg (*pair)[2])
{
	const DeviceStep *s = t->hidden;

	for (uint32_t j = 0; j < some->tiles; j++) {
		Reg *v = sums->sum[j];
		for (uint32_t i = 0; i < 4; i++)
			v[i] = unit_value(k->e, s->fn, v[i]);
		for (uint32_t r = 0; r < 2; r++)
			pair[j][r] = through_pair(k, s, x, some, BUF_ACT, j, r, v + 2 * r);
	}
}

static void through_outputs(Kernel *k, const Through *t, const ThroughRows *x, const Tiles *some, Reg (*a)[2],
                            Reg (*pair)[2])
{
	const DeviceStep *s = t->outputs;
	Sums sums = { .row = x->row, .col = some->col };

	through_sums(k, s, some, 0, some->tiles, sums.sum);
	through_multiply(k, s, x, a, some, 0, some->tiles, sums.sum);
	for (uint32_t i = 0; i < 2 * some->tiles; i++) {
		uint32_t j = i / 2, r = i % 2;
		half_outputs(k, s, t->errors, &sums, r, j, x->real[r], sums.sum[j] + 2 * r);
		pair[j][r] = through_pair(k, s, x, some, BUF_DELTA, j, r, sums.sum[j] + 2 * r);
	}
}

/* A few tiles at a time: sums of gradients and outputs take most registers. */
static void through_back(Kernel *k, const Through *t, const ThroughRows *x, const Tiles *some, Reg (*a)[2],
                         const Sums *out)
{
	enum { AT_ONCE = 4 };
	Emit *e = k->e;
	const DeviceStep *s = t->back;

	for (uint32_t first = 0; first < some->tiles; first += AT_ONCE) {
		uint32_t tiles = min_u32(AT_ONCE, some->tiles - first);
		Reg sum[AT_ONCE][4];
		through_sums(k, s, some, first, tiles, sum);
		through_multiply(k, s, x, a, some, first, tiles, sum);
		for (uint32_t i = 0; i < 2 * tiles; i++) {
			uint32_t j = i / 2, r = i % 2;
			Reg v[2];
			for (uint32_t n = 0; n < 2; n++) {
				Reg o = out->sum[first + j][2 * r + n], slope = slope_offset(e, s, unit_slope(e, s->fn, o, o));
				v[n] = op2(e, REG_F, "mul.rn.ftz.f32", sum[j][2 * r + n], slope);
			}
			through_pair(k, s, x, some, BUF_DELTA, first + j, r, v);
		}
	}
}

static ThroughRows through_rows_of(Kernel *k, Reg base)
{
	Emit *e = k->e;
	ThroughRows x = { .base = base, .row = add(e, base, k->half->row_of_lane) };

	for (uint32_t r = 0; r < 2; r++)
		x.real[r] = less(e, add(e, x.row, imm(8 * r)), k->my_rows);
	x.half_row = add(e, mad(e, x.row, k->half->row, k->memory), imm(k->half->at_rows));
	return x;
}

/* Tiles of all warps of the same rows are read: up to the next full 16 columns there are some. */
static bool splits(const DeviceStep *s, uint32_t split)
{
	return ceil_div(tiles_across(s), split) * split * 8 <= round_up(s->cols, 16);
}

/* Warps that have the same 16 rows: some, where there are so many. */
static uint32_t through_split(const Kernel *k, const Through *t, uint32_t warps)
{
	for (uint32_t split = k->s->sided ? MOST_SPLIT : 2; split > 1; split /= 2)
		if (k->block_rows / 16 * split <= warps && splits(t->hidden, split) && splits(t->outputs, split))
			return split;
	return 1;
}

/* Late rows are overwritten in the middle of the way, or by any warp. */
uint32_t half_judged_threads(const Kernel *k)
{
	uint32_t warps = k->half->warps, tiles = k->block_rows / 16;
	Through t;

	if (k->half->through && tiles <= warps && through_find(k, &t))
		return 32 * tiles * through_split(k, &t, warps);
	return 32 * warps;
}

static void judged_wait(Kernel *k)
{
	if (k->half->apart && k->half->direct)
		ins(k->e, "bar.sync #, #", ROWS_JUDGED, half_judged_threads(k) + SIDE_THREADS);
}

/* Warps of the same rows. tile: R */
static void side_meet(Kernel *k, Reg tile, uint32_t split)
{
	if (split > 1)
		ins(k->e, "bar.sync $, #", add(k->e, tile, imm(SIDES_MEET)), 32 * split);
}

static void through_side(Kernel *k, const Through *t, const ThroughRows *x, Reg tile, Reg side, uint32_t split,
                         bool waits)
{
	Reg act[2 * TILES_WIDE][2], delta[2 * TILES_WIDE][2], none = op1(k->e, REG_R, "mov.u32", imm(0));
	Tiles hidden = tiles_of_side(k, t->hidden, side, split), outputs = tiles_of_side(k, t->outputs, side, split);
	Sums sums;

	for (uint32_t j = 0; j < 2 * TILES_WIDE; j++)
		for (uint32_t r = 0; r < 2; r++)
			act[j][r] = delta[j][r] = none; /* past the last tile */
	through_hidden(k, t, x, &hidden, &sums);
	through_units(k, t, x, &hidden, &sums, act);
	side_meet(k, tile, split);
	if (waits)
		judged_wait(k);
	through_outputs(k, t, x, &outputs, split > 1 ? NULL : act, delta);
	side_meet(k, tile, split);
	through_back(k, t, x, &hidden, split > 1 ? NULL : delta, &sums);
}

/* Warps without rows make words of inputs meanwhile, if there are such. */
static void half_through(Kernel *k)
{
	Emit *e = k->e;
	const Half *h = k->half;
	uint32_t tiles = k->block_rows / 16, warps = k->s->threads / 32, others = label(e), end = label(e);
	bool loops = tiles > warps;
	Through t;

	if (!through_find(k, &t))
		return;
	uint32_t split = through_split(k, &t, warps);
	remark(e, "16 rows of %u warps through all layers", split);
	if (loops)
		judged_wait(k);
	if (tiles * split >= warps)
		bits_turn(k, 0, 1);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", h->warp, imm(tiles * split)), others);
	Loop l = { 0 };
	if (loops)
		l = loop_begin(e, h->warp, imm(tiles), warps);
	Reg tile = loops ? l.i : divide(e, h->warp, split), side = imm(0);
	if (split > 1)
		side = modulo(e, h->warp, split, tile);
	Reg base = mul(e, tile, 16);
	uint32_t past = if_begin(e, less(e, base, k->my_rows));
	ThroughRows x = through_rows_of(k, base);
	through_side(k, &t, &x, tile, side, split, !loops);
	if (!loops)
		ins(e, "bra L#", end);
	if_end(e, past);
	if (!loops)
		judged_wait(k); /* those without rows are waited for, too */
	if (loops)
		loop_end(e, &l);
	ins(e, "bra L#", end);
	label_here(e, others);
	if (tiles * split < warps)
		bits_turn(k, tiles * split, 1);
	label_here(e, end);
}

/* ---- other steps ---- */

/* Columns that a step other than a product has written, rounded. */
static void columns_round(Kernel *k, uint32_t number)
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	const Half *h = k->half;
	Access a[8];
	uint32_t n = step_access(k, s, a);

	for (uint32_t i = 0; i < n; i++) {
		if (!a[i].writes || !has_halves(k, a[i].buf, a[i].col) ||
		    !operand_later(k, number, a[i].buf, a[i].col, a[i].count))
			continue;
		Loop l = loop_begin(e, k->tid, mul(e, k->my_rows, a[i].count), k->s->threads);
		Reg row = divide(e, l.i, a[i].count), col = modulo(e, l.i, a[i].count, row);
		Reg v = load(e, REG_F, "ld.shared.f32", mad(e, row, k->row, mad(e, col, 4, k->memory)),
		             k->at_rows + column_at(k, a[i].buf, a[i].col));
		ins(e, "st.shared.u16 [$+#], $", mad(e, row, h->row, mad(e, col, 2, k->memory)),
		    h->at_rows + half_column(k, a[i].buf, a[i].col), op1(e, REG_H, "cvt.rn.bf16.f32", v));
		loop_end(e, &l);
		barrier_block(e);
	}
}

/* Errors round what they write at once; verdicts come last. */
void half_steps(Kernel *k, uint32_t first, uint32_t end)
{
	if (k->half->through) {
		half_through(k);
		barrier_block(k->e);
		spent(k, SPENT_KINDS + 2);
		return;
	}
	if (!k->s->tiled) {
		judged_wait(k);
		bits_turn(k, 0, 1);
	}
	for (uint32_t i = first; i < end; i++) {
		const DeviceStep *d = &k->s->step[i];
		if (d->kind == STEP_ERRORS && k->judged)
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
