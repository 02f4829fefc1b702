/* SPDX-License-Identifier: MIT */
/* bf16: gradients. In: rounded activations and deltas of a chunk of rows. Out: the sum of a slice of a leaf in global
 * memory, or the update itself. Must hold: rows are added in steps of 16, in order; a leaf of which one block has all
 * slices adds their sums one after the other.
 *
 * A sum is the product of the transposed columns of one side with those of the other: ldmatrix transposes both. Counts
 * of cycles, for 128 rows, 204 x 60 and 61 x 26 weights, 16 warps of 2 x 4 tiles: 8 steps, each 16 x 16 of shared
 * memory and 16 / 4 x 8 x 6.4 of tensor cores. */
#include "half_emit.h"

enum { MOST_TILES = 16, TURN_ROWS = 32 };

/* ---- plan ---- */

static uint32_t tasks_of(const Kernel *k, uint32_t high, uint32_t wide, HalfTask *task)
{
	const EmitSource *s = k->s;
	uint32_t all = 0;

	for (uint32_t i = s->list->gradient; i < s->list->steps; i++) {
		const DeviceStep *g = &s->step[i];
		HalfTask t = { .high = high, .wide = wide, .first = all };
		while (t.high > 1 && 16 * (t.high / 2) >= g->depth)
			t.high /= 2;
		t.down = (uint32_t)ceil_div(g->depth, 16 * t.high);
		t.across = (uint32_t)ceil_div(g->cols, 8 * wide);
		all += t.down * t.across;
		if (task)
			task[i - s->list->gradient] = t;
	}
	return all;
}

/* Cycles of 16 rows: instructions of a scheduler, of which 0.7 a cycle are issued; shared memory; tensor cores. Where
 * inputs are bits, a tile of them takes five instructions and hardly any shared memory. */
static double step_cycles(const Kernel *k, uint32_t at_once, uint32_t high, uint32_t wide)
{
	const DeviceStep *g = &k->s->step[k->s->list->gradient];
	bool down_bits = bits_of(k, g->a, g->a_col), across_bits = bits_of(k, g->c, g->c_col);
	uint32_t each = (at_once + 3) / 4, tiles = high * wide;
	double down = down_bits ? 10.0 * high : high, across = across_bits ? 5.0 * wide : 0.5 * wide;
	double issue = each * (down + across + tiles * (k->half->apart ? 3.0 : 1.0)) / 0.7;
	double shared = at_once * ((down_bits ? 1.0 : 4.0) * high + (across_bits ? 0.5 : 2.0) * wide);
	double most = issue > shared ? issue : shared, tensor = each * tiles * 6.4;

	return most > tensor ? most : tensor;
}

void half_gradient_plan(Kernel *k)
{
	uint32_t warps = k->half->warps, best_high = 1, best_wide = 1;
	double least = 0;

	for (uint32_t high = 1; high <= 4; high *= 2)
		for (uint32_t wide = 1; wide <= 8; wide += wide < 4 ? 1 : 2) {
			uint32_t tasks = tasks_of(k, high, wide, NULL), at_once = min_u32(tasks, warps);
			double cost = (double)ceil_div(tasks, warps) * (step_cycles(k, at_once, high, wide) + 60);
			if (high * wide > MOST_TILES || (high * wide > (k->half->apart ? 12 : 8) && k->s->team_blocks == 1))
				continue;
			if (!least || cost < least) {
				least = cost;
				best_high = high;
				best_wide = wide;
			}
		}
	k->half->tasks = tasks_of(k, best_high, best_wide, k->half->task);
	k->half->rounds = (uint32_t)max_u64(1, ceil_div(k->half->tasks, warps));
}

/* ---- a warp's tiles ---- */

typedef struct GradientTask {
	const DeviceStep *step;
	const HalfTask *task;
	Reg row, col; /* of the lane's first sum in the matrix */
	Reg a, b;     /* addresses of fragments in row 0, */
	bool bits[2]; /* or of words of inputs */
	uint32_t end; /* label */
} GradientTask;

/* if the warp has a task of this gradient in this round */
static GradientTask gradient_begin(Kernel *k, uint32_t number, uint32_t round, bool places)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	const Half *h = k->half;
	const DeviceStep *g = &s->step[s->list->gradient + number];
	const HalfTask *t = &h->task[number];
	Reg own = add(e, h->warp, imm(round * h->warps - t->first)); /* a large number if it is before the first */
	GradientTask x = { .step = g, .task = t, .end = if_begin(e, less(e, own, imm(t->down * t->across))) };
	Reg down = divide(e, own, t->across), across = modulo(e, own, t->across, down);

	Reg row = mul(e, down, 16 * t->high), col = mul(e, across, 8 * t->wide);
	x.row = add(e, row, h->row_of_lane);
	x.col = add(e, col, h->col_of_lane);
	if (places) {
		x.a = reg(e, REG_R);
		x.b = reg(e, REG_R);
		const InputColumns *down_bits = bits_of(k, g->a, g->a_col), *across_bits = bits_of(k, g->c, g->c_col);
		x.bits[0] = down_bits != NULL;
		x.bits[1] = across_bits != NULL;
		if (down_bits)
			ins(e, "mov.u32 $, $", x.a, bits_input_at(k, down_bits, row));
		else
			ins(e, "add.u32 $, $, #", x.a, mad(e, row, 2, add(e, k->memory, h->place[1])),
			    h->at_rows + half_column(k, g->a, g->a_col));
		if (across_bits)
			ins(e, "mov.u32 $, $", x.b, bits_input_at(k, across_bits, col));
		else
			ins(e, "add.u32 $, $, #", x.b, mad(e, col, 2, add(e, k->memory, h->place[0])),
			    h->at_rows + half_column(k, g->c, g->c_col));
	}
	return x;
}

static uint32_t tiles_of(const GradientTask *x) { return x->task->high * x->task->wide; }

/* 32 rows, in two steps. start: what the first adds to. */
static void rows_add(Kernel *k, const GradientTask *x, Reg (*sum)[4], const Reg *start)
{
	uint32_t row = k->half->row;
	Reg a[4][2][4], b[8][2], of_bits[8][2][4], word[2];

	for (uint32_t h = 0; x->bits[0] && h < x->task->high; h++) {
		for (uint32_t r = 0; r < 2; r++)
			word[r] = load(k->e, REG_R, "ld.shared.u32", x->a, 64 * h + 32 * r);
		bits_fragments(k, word, 2, a[h]);
	}
	for (uint32_t j = 0; x->bits[1] && j < x->task->wide; j++) {
		word[0] = load(k->e, REG_R, "ld.shared.u32", x->b, 32 * j);
		bits_fragments(k, word, 1, of_bits[j]);
	}
	for (uint32_t step = 0; step < TURN_ROWS / 16; step++) {
		for (uint32_t h = 0; !x->bits[0] && h < x->task->high; h++)
			fragments_load(k, a[h][step], 4, true, x->a, 16 * step * row + 32 * h);
		for (uint32_t j = 0; !x->bits[1] && j < x->task->wide; j += 2)
			fragments_load(k, b[j], x->task->wide > 1 ? 4 : 2, true, x->b, 16 * step * row + 16 * j);
		for (uint32_t h = 0; h < x->task->high; h++)
			for (uint32_t j = 0; j < x->task->wide; j++)
				multiply_add(k->e, sum[h * x->task->wide + j], a[h][step], x->bits[1] ? of_bits[j][step] : b[j],
				             step ? NULL : start);
	}
	ins(k->e, "add.u32 $, $, #", x->a, x->a, x->bits[0] ? k->half->transposed_row : TURN_ROWS * row);
	ins(k->e, "add.u32 $, $, #", x->b, x->b, x->bits[1] ? k->half->transposed_row : TURN_ROWS * row);
}

static void sums_fill(Emit *e, Reg (*sum)[4], uint32_t tiles, Reg value)
{
	for (uint32_t i = 0; i < tiles; i++)
		for (uint32_t n = 0; n < 4; n++)
			ins(e, "mov.f32 $, $", sum[i][n], value);
}

static void sums_new(Kernel *k, Reg (*sum)[4], uint32_t tiles)
{
	for (uint32_t i = 0; i < tiles; i++)
		for (uint32_t n = 0; n < 4; n++)
			sum[i][n] = reg(k->e, REG_F);
}

/* Of a slice that has no rows: -0, which changes no sum. */
static Reg first_value(Kernel *k)
{
	return op3(k->e, REG_F, "selp.f32", imm_f(0), imm_f(-0.0f), less(k->e, k->half->first, k->rows));
}

/* ---- sums of a slice ---- */

/* for the pairs of columns of a task that are there: row 8 r, tile j */
typedef struct Pair {
	Reg row, col; /* in the matrix */
	Reg real;
	Reg at; /* place in the panel */
} Pair;

static Pair pair_of(Kernel *k, const GradientTask *x, uint32_t tile, uint32_t r)
{
	Emit *e = k->e;
	uint32_t h = tile / x->task->wide, j = tile % x->task->wide;
	Pair p = { .row = add(e, x->row, imm(16 * h + 8 * r)), .col = add(e, x->col, imm(8 * j)) };

	p.real = op2(e, REG_P, "and.pred", less(e, p.row, imm(x->step->depth)), less(e, p.col, imm(x->step->cols)));
	p.at = mad(e, p.row, x->step->sum_row, p.col);
	return p;
}

/* Where the sum of this slice is. */
static Reg slice_sum(Kernel *k)
{
	Emit *e = k->e;
	Reg number = mad(e, k->leaf_number, HALF_SLICES, k->half->slice);

	return op3(e, REG_D, "mad.wide.u32", number, imm((uint32_t)k->s->job->floats * 4), POINTER(k, sum));
}

static void sums_move(Kernel *k, const GradientTask *x, Reg (*sum)[4], bool out)
{
	Emit *e = k->e;
	Reg base = place_at(e, slice_sum(k), x->step->at * 4);

	for (uint32_t i = 0; i < tiles_of(x); i++)
		for (uint32_t r = 0; r < 2; r++) {
			Pair p = pair_of(k, x, i, r);
			if (out)
				ins(e, "@$ st.global.v2.f32 [$], {$, $}", p.real, place(e, base, p.at, 4), sum[i][2 * r],
				    sum[i][2 * r + 1]);
			else
				ins(e, "@$ ld.global.v2.f32 {$, $}, [$]", p.real, sum[i][2 * r], sum[i][2 * r + 1],
				    place(e, base, p.at, 4));
		}
}

/* ---- the update from registers ---- */

static void sums_apply(Kernel *k, const GradientTask *x, Reg (*sum)[4])
{
	RuleTiles tiles = { x->row,
		                x->col,
		                x->task->high,
		                x->task->wide,
		                x->step->depth,
		                (uint32_t)(x->step - k->s->step) - k->s->list->gradient,
		                sum };

	rule_tiles(k, k->numbers, &k->s->panel[x->step->panel], &tiles);
}

/* ---- what others call ---- */

static uint32_t gradients(const Kernel *k) { return k->s->list->steps - k->s->list->gradient; }

void half_sums_begin(Kernel *k)
{
	Half *h = k->half;
	uint32_t most = 0;

	for (uint32_t i = 0; i < gradients(k); i++)
		most = max_u32(most, h->task[i].high * h->task[i].wide);
	if (h->rounds > 1 || k->s->test)
		return;
	h->sum = (Reg(*)[4])NEW(&k->s->cx->scratch, 4 * (size_t)most + 1, Reg);
	sums_new(k, h->sum, most);
	sums_fill(k->e, h->sum, most, h->direct ? imm_f(-0.0f) : first_value(k));
}

/* All rows of the chunk, 32 at a time; those past the last are 0. */
static void chunk_add(Kernel *k, const GradientTask *x, Reg (*sum)[4])
{
	Emit *e = k->e;
	Reg slice[MOST_TILES][4], zero[4];
	Loop l = loop_begin(e, imm(0), k->my_rows, TURN_ROWS);

	if (k->half->direct) { /* a slice has 32 rows */
		for (uint32_t n = 0; n < 4; n++)
			zero[n] = op1(e, REG_F, "mov.f32", imm_f(0));
		sums_new(k, slice, tiles_of(x));
		rows_add(k, x, slice, zero);
		for (uint32_t i = 0; i < tiles_of(x); i++)
			for (uint32_t n = 0; n < 4; n++)
				ins(e, "add.rn.ftz.f32 $, $, $", sum[i][n], sum[i][n], slice[i][n]);
	} else {
		rows_add(k, x, sum, NULL);
	}
	loop_end(e, &l);
}

void half_changes(Kernel *k, Reg chunk)
{
	Emit *e = k->e;
	Half *h = k->half;

	uint32_t other = if_begin(e, less(e, h->warp, imm(h->warps)));
	for (uint32_t round = 0; round < h->rounds; round++)
		for (uint32_t i = 0; i < gradients(k); i++) {
			remark(e, "gradient %u, bf16", i);
			GradientTask x = gradient_begin(k, i, round, true);
			Reg own[MOST_TILES][4], (*sum)[4] = h->rounds > 1 ? own : h->sum;
			if (h->rounds > 1) {
				sums_new(k, own, tiles_of(&x));
				sums_fill(e, own, tiles_of(&x), first_value(k));
				uint32_t fresh = if_begin(e, op2(e, REG_P, "setp.ne.u32", chunk, imm(0)));
				sums_move(k, &x, own, false);
				if_end(e, fresh);
			}
			chunk_add(k, &x, sum);
			if (h->rounds > 1)
				sums_move(k, &x, own, true);
			if_end(e, x.end);
		}
	if_end(e, other);
}

void half_sums_end(Kernel *k)
{
	uint32_t other = if_begin(k->e, less(k->e, k->half->warp, imm(k->half->warps)));
	for (uint32_t i = 0; i < gradients(k) && k->half->rounds == 1; i++) {
		GradientTask x = gradient_begin(k, i, 0, false);
		if (k->half->direct)
			sums_apply(k, &x, k->half->sum);
		else
			sums_move(k, &x, k->half->sum, true);
		if_end(k->e, x.end);
	}
	if_end(k->e, other);
}
