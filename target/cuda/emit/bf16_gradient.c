/* SPDX-License-Identifier: MIT */
/* bf16: gradients by mma. In: bf16 activations and deltas of a chunk of rows. Out: the sum of a slice of a leaf, in
 * global memory; single_block: the update. Must hold: rows are added in steps of 16, in order; the slices of a leaf are
 * added one after the other.
 *
 * A gradient is the transpose of one operand's columns times the other's columns; ldmatrix transposes both. Cycles for
 * 128 rows, 204 x 60 and 61 x 26 weights, 16 warps of 2 x 4 tiles: 8 steps, each 16 x 16 of shared memory and
 * 16 / 4 x 8 x 6.4 of tensor cores. */
#include "bf16_emit.h"

enum { UNROLLED_ROWS = 32, STEPS = 2 }; /* of an iteration: rows, steps of 16 */

/* ---- plan ---- */

/* A matrix narrower than the task's tiles gets more of them in the other direction, `most` in all. Where inputs are
 * bits, the tiles of a task lie in one word, or are whole words. */
static void task_fit(const Kernel *k, const DeviceStep *g, uint32_t most, Bf16Task *t)
{
	t->wide = min_u32(t->wide, (uint32_t)ceil_div(g->cols, 8));
	if (bit_columns(k, g->c, g->c_col) && t->wide % 3 == 0)
		t->wide = t->wide / 3 * 2;
	while (2 * t->high <= TILES_HIGH && 16 * t->high < g->depth && 2 * t->high * t->wide <= most)
		t->high *= 2;
	while (2 * t->wide <= TILES_WIDE && 8 * t->wide < g->cols && 2 * t->high * t->wide <= most)
		t->wide *= 2;
}

static uint32_t tasks_of(const Kernel *k, uint32_t high, uint32_t wide, Bf16Task *task)
{
	const EmitSource *s = k->s;
	uint32_t all = 0;

	for (uint32_t i = s->list->gradient; i < s->list->steps; i++) {
		const DeviceStep *g = &s->step[i];
		Bf16Task t = { .high = high, .wide = wide, .first = all };
		while (t.high > 1 && 16 * (t.high / 2) >= g->depth)
			t.high /= 2;
		if (s->adds_side_warps)
			task_fit(k, g, high * wide, &t);
		t.down = (uint32_t)ceil_div(g->depth, 16 * t.high);
		t.across = (uint32_t)ceil_div(g->cols, 8 * t.wide);
		all += t.down * t.across;
		if (task)
			task[i - s->list->gradient] = t;
	}
	return all;
}

/* Cost model: cycles of 16 rows, the most of instruction issue (0.7 a cycle and scheduler), shared memory and tensor
 * cores. A tile of inputs that are bits takes five instructions and hardly any shared memory. */
static double step_cycles(const Kernel *k, uint32_t at_once, uint32_t high, uint32_t wide)
{
	const DeviceStep *g = &k->s->step[k->s->list->gradient];
	bool down_bits = bit_columns(k, g->a, g->a_col), across_bits = bit_columns(k, g->c, g->c_col);
	uint32_t each = (at_once + 3) / 4, tiles = high * wide;
	double down = down_bits ? 10.0 * high : high, across = across_bits ? 5.0 * wide : 0.5 * wide;
	double issue = each * (down + across + tiles * (k->bf16->side_warps && !k->s->adds_side_warps ? 3.0 : 1.0)) / 0.7;
	double shared = at_once * ((down_bits ? 1.0 : 4.0) * high + (across_bits ? 0.5 : 2.0) * wide);
	double most = issue > shared ? issue : shared, tensor = each * tiles * 6.4;

	return most > tensor ? most : tensor;
}

void bf16_gradient_plan(Kernel *k)
{
	uint32_t warps = k->bf16->warps, best_high = 1, best_wide = 1;
	double least = 0;

	for (uint32_t high = 1; high <= 4; high *= 2)
		for (uint32_t wide = 1; wide <= 8; wide += wide < 4 ? 1 : 2) {
			uint32_t tasks = tasks_of(k, high, wide, NULL), at_once = min_u32(tasks, warps);
			double cost = (double)ceil_div(tasks, warps) * (step_cycles(k, at_once, high, wide) + 60);
			if (high * wide > WARP_TILES || (high * wide > (k->bf16->side_warps ? 12 : 8) && k->s->team_blocks == 1))
				continue;
			if (!least || cost < least) {
				least = cost;
				best_high = high;
				best_wide = wide;
			}
		}
	k->bf16->tasks = tasks_of(k, best_high, best_wide, k->bf16->task);
	k->bf16->rounds = (uint32_t)max_u64(1, ceil_div(k->bf16->tasks, warps));
}

/* ---- a warp's tiles ---- */

typedef struct GradientTask {
	const DeviceStep *step;
	uint32_t number; /* of the gradient */
	const Bf16Task *task;
	Reg row, col; /* of the lane's first sum in the matrix */
	Reg a, b;     /* addresses of the operands' fragments in row 0 */
	bool bits[2]; /* operands are inputs of one bit: a, b; without transposed words, their places: */
	BitsInputs in[2];
	uint32_t end; /* label */
} GradientTask;

/* if the warp has a task of this gradient in this round */
static GradientTask gradient_begin(Kernel *k, uint32_t number, uint32_t round, bool places)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	const DeviceStep *g = nth_gradient(k, number);
	const Bf16Task *t = &h->task[number];
	Reg own = add(e, h->warp, imm(round * h->warps - t->first)); /* a large number if it is before the first */
	GradientTask x = {
		.step = g, .number = number, .task = t, .end = if_begin(e, less(e, own, imm(t->down * t->across)))
	};
	Reg down = divide(e, own, t->across), across = modulo(e, own, t->across, down);

	Reg row = mul(e, down, 16 * t->high), col = mul(e, across, 8 * t->wide);
	x.row = add(e, row, h->row_of_lane);
	x.col = add(e, col, h->col_of_lane);
	if (places) {
		x.a = reg(e, REG_R);
		x.b = reg(e, REG_R);
		const InputColumns *down_bits = bit_columns(k, g->a, g->a_col), *across_bits = bit_columns(k, g->c, g->c_col);
		x.bits[0] = down_bits != NULL;
		x.bits[1] = across_bits != NULL;
		if (down_bits && has_transposed_bits(k))
			ins(e, "mov.u32 $, $", x.a, bits_input_at(k, down_bits, row));
		else if (down_bits)
			x.in[0] = bits_inputs(k, down_bits, row);
		else
			ins(e, "add.u32 $, $, #", x.a, mad(e, row, 2, add(e, k->memory, h->ldmatrix[1])),
			    h->at_rows + bf16_column(k, g->a, g->a_col));
		if (across_bits && has_transposed_bits(k))
			ins(e, "mov.u32 $, $", x.b, bits_input_at(k, across_bits, col));
		else if (across_bits)
			x.in[1] = bits_inputs(k, across_bits, col);
		else
			ins(e, "add.u32 $, $, #", x.b, mad(e, col, 2, add(e, k->memory, h->ldmatrix[0])),
			    h->at_rows + bf16_column(k, g->c, g->c_col));
	}
	return x;
}

static uint32_t tiles_of(const GradientTask *x) { return x->task->high * x->task->wide; }

/* Tiles first .. first + count - 1 of one direction. */
typedef struct TileRange {
	uint32_t first, count;
} TileRange;

/* Adds 32 rows in two steps, for a range of tiles. a, b: fragments of both steps */
static void tiles_add(Kernel *k, const GradientTask *x, Reg (*sum)[4], TileRange down, TileRange across,
                      Reg (*a)[STEPS][4], Reg (*b)[STEPS][2])
{
	for (uint32_t step = 0; step < STEPS; step++)
		for (uint32_t i = 0; i < down.count * across.count; i++) {
			uint32_t h = i / across.count, j = i % across.count;
			multiply_add(k->e, sum[(down.first + h) * x->task->wide + across.first + j], a[h][step], b[j][step], NULL);
		}
}

/* Fragments of tiles down the matrix, for both steps. */
static void down_load(Kernel *k, const GradientTask *x, TileRange t, Reg (*a)[STEPS][4])
{
	for (uint32_t step = 0; step < STEPS; step++) {
		Reg f[2 * TILES_HIGH][2];
		if (x->bits[0])
			bits_rows(k, &x->in[0], 16 * step, 2 * t.first, 2 * t.count, f);
		for (uint32_t h = 0; h < t.count; h++)
			if (x->bits[0])
				for (uint32_t i = 0; i < 4; i++)
					a[h][step][i] = f[2 * h + i % 2][i / 2];
			else
				fragments_load(k, a[h][step], 4, true, x->a, 16 * step * k->bf16->row + 32 * (t.first + h));
	}
}

/* Across it: of two tiles, or of all where inputs are bits. */
static void across_load(Kernel *k, const GradientTask *x, TileRange t, Reg (*b)[STEPS][2])
{
	for (uint32_t step = 0; step < STEPS; step++) {
		Reg f[TILES_WIDE][2], pair[4];
		if (x->bits[1])
			bits_rows(k, &x->in[1], 16 * step, t.first, t.count, f);
		else
			fragments_load(k, pair, x->task->wide > 1 ? 4 : 2, true, x->b, 16 * step * k->bf16->row + 16 * t.first);
		for (uint32_t j = 0; j < t.count; j++)
			for (uint32_t i = 0; i < 2; i++)
				b[j][step][i] = x->bits[1] ? f[j][i] : pair[2 * j + i];
	}
}

/* 32 rows, one pair of tiles across at a time, so that few fragments are live besides the sums. */
static void rows_add_by_pairs(Kernel *k, const GradientTask *x, Reg (*sum)[4])
{
	uint32_t wide = x->task->wide;
	TileRange down = { 0, x->task->high };
	Reg a[TILES_HIGH][STEPS][4], b[TILES_WIDE][STEPS][2];

	down_load(k, x, down, a);
	if (x->bits[1])
		across_load(k, x, (TileRange){ 0, wide }, b);
	for (uint32_t j = 0; j < wide; j += 2) {
		TileRange two = { j, min_u32(2, wide - j) };
		if (!x->bits[1])
			across_load(k, x, two, b + j);
		tiles_add(k, x, sum, down, two, a, b + j);
	}
	for (uint32_t side = 0; side < 2; side++) {
		Reg at = x->bits[side] ? x->in[side].at : side ? x->b : x->a;
		ins(k->e, "add.u32 $, $, #", at, at, UNROLLED_ROWS * (x->bits[side] ? k->bf16->bits_row : k->bf16->row));
	}
}

/* 32 rows, with transposed words of inputs. start: NULL, or what the first step adds to */
static void rows_add(Kernel *k, const GradientTask *x, Reg (*sum)[4], const Reg *start)
{
	uint32_t row = k->bf16->row;
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
	for (uint32_t step = 0; step < UNROLLED_ROWS / 16; step++) {
		for (uint32_t h = 0; !x->bits[0] && h < x->task->high; h++)
			fragments_load(k, a[h][step], 4, true, x->a, 16 * step * row + 32 * h);
		for (uint32_t j = 0; !x->bits[1] && j < x->task->wide; j += 2)
			fragments_load(k, b[j], x->task->wide > 1 ? 4 : 2, true, x->b, 16 * step * row + 16 * j);
		for (uint32_t h = 0; h < x->task->high; h++)
			for (uint32_t j = 0; j < x->task->wide; j++)
				multiply_add(k->e, sum[h * x->task->wide + j], a[h][step], x->bits[1] ? of_bits[j][step] : b[j],
				             step ? NULL : start);
	}
	ins(k->e, "add.u32 $, $, #", x->a, x->a, x->bits[0] ? k->bf16->transposed_row : UNROLLED_ROWS * row);
	ins(k->e, "add.u32 $, $, #", x->b, x->b, x->bits[1] ? k->bf16->transposed_row : UNROLLED_ROWS * row);
}

/* A slice without rows is -0, which changes no sum. */
static Reg first_value(Kernel *k)
{
	return op3(k->e, REG_F, "selp.f32", imm_f(0), imm_f(-0.0f), less(k->e, k->bf16->first, k->rows));
}

/* ---- sums of a slice ---- */

/* Two adjacent columns of a lane. */
typedef struct Pair {
	Reg row, col; /* in the matrix */
	Reg real;     /* P: they are weights */
	Reg at;       /* place in the panel */
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

/* Address of the sum of this slice, in the layout of the weights. */
static Reg slice_sum(Kernel *k)
{
	Emit *e = k->e;
	Reg number = mad(e, k->leaf_number, BF16_SLICES, k->bf16->slice);

	return op3(e, REG_D, "mad.wide.u32", number, imm((uint32_t)k->s->job->floats * 4), POINTER(k, sum));
}

/* As tiles: four floats of each lane are contiguous. */
static void tiles_store(Kernel *k, const GradientTask *x, Reg (*sum)[4])
{
	Emit *e = k->e;
	uint32_t number = x->number;
	SumTiles t = sum_tiles(k, number);
	Reg down = divide(e, op2(e, REG_R, "sub.u32", x->row, k->bf16->row_of_lane), 16);
	Reg across = divide(e, op2(e, REG_R, "sub.u32", x->col, k->bf16->col_of_lane), 8);
	Reg to = tile_sum_address(k, k->leaf_number, k->bf16->slice, add(e, mad(e, down, t.across, across), imm(t.first)));

	for (uint32_t i = 0; i < tiles_of(x); i++) {
		uint32_t h = i / x->task->wide, j = i % x->task->wide;
		Reg is = op2(e, REG_P, "and.pred", less(e, add(e, down, imm(h)), imm(t.count / t.across)),
		             less(e, add(e, across, imm(j)), imm(t.across)));
		uint32_t none = if_begin(e, is);
		store_quad(e, "global", to, (h * t.across + j) * 512, sum[i]);
		if_end(e, none);
	}
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
	RuleTiles tiles = { x->row, x->col, x->task->high, x->task->wide, x->step->depth, x->number, sum };

	rule_tiles(k, k->numbers, &k->s->panel[x->step->panel], &tiles);
}

/* ---- the gradient of a slice ---- */

static uint32_t most_tiles(const Kernel *k)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < gradient_steps(k); i++)
		most = max_u32(most, k->bf16->task[i].high * k->bf16->task[i].wide);
	return most;
}

void bf16_sums_begin(Kernel *k)
{
	Bf16 *h = k->bf16;
	uint32_t most = most_tiles(k);

	if (h->rounds > 1 || k->s->test)
		return;
	h->sum = (Reg(*)[4])NEW(&k->s->cx->scratch, 4 * (size_t)most + 1, Reg);
	mma_sums_new(k->e, h->sum, most);
	mma_sums_fill(k->e, h->sum, most, h->single_block ? imm_f(-0.0f) : first_value(k));
}

/* All rows of the chunk, 32 an iteration; rows past the last are 0. */
static void chunk_add(Kernel *k, const GradientTask *x, Reg (*sum)[4])
{
	Emit *e = k->e;
	Reg slice[WARP_TILES][4], zero[4];
	Loop l = loop_begin(e, imm(0), k->my_rows, UNROLLED_ROWS);

	if (k->bf16->single_block) { /* slices of 32 rows */
		mma_zeros_new(e, zero);
		mma_sums_new(k->e, slice, tiles_of(x));
		rows_add(k, x, slice, zero);
		mma_sums_add(e, sum, slice, tiles_of(x));
	} else if (k->s->adds_side_warps) {
		rows_add_by_pairs(k, x, sum);
	} else {
		rows_add(k, x, sum, NULL);
	}
	loop_end(e, &l);
}

void bf16_sums_add(Kernel *k, Reg chunk)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;

	uint32_t other = if_begin(e, less(e, h->warp, imm(h->warps)));
	for (uint32_t round = 0; round < h->rounds; round++)
		for (uint32_t i = 0; i < gradient_steps(k); i++) {
			remark(e, "gradient %u, bf16", i);
			GradientTask x = gradient_begin(k, i, round, true);
			Reg own[WARP_TILES][4], (*sum)[4] = h->rounds > 1 ? own : h->sum;
			if (h->rounds > 1) {
				mma_sums_new(k->e, own, tiles_of(&x));
				mma_sums_fill(e, own, tiles_of(&x), first_value(k));
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

void bf16_sums_end(Kernel *k)
{
	uint32_t other = if_begin(k->e, less(k->e, k->bf16->warp, imm(k->bf16->warps)));
	for (uint32_t i = 0; i < gradient_steps(k) && k->bf16->rounds == 1; i++) {
		GradientTask x = gradient_begin(k, i, 0, false);
		if (k->bf16->single_block)
			sums_apply(k, &x, k->bf16->sum);
		else if (k->bf16->sum_tiles)
			tiles_store(k, &x, k->bf16->sum);
		else
			sums_move(k, &x, k->bf16->sum, true);
		if_end(k->e, x.end);
	}
	if_end(k->e, other);
}
