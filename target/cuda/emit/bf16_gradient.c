/* SPDX-License-Identifier: MIT */
/* bf16: gradients. In: rounded activations and deltas of a chunk of rows. Out: the sum of a slice of a leaf in global
 * memory, or the update itself. Must hold: rows are added in steps of 16, in order; a leaf of which one block has all
 * slices adds their sums one after the other.
 *
 * A sum is the product of the transposed columns of one side with those of the other: ldmatrix transposes both. Counts
 * of cycles, for 128 rows, 204 x 60 and 61 x 26 weights, 16 warps of 2 x 4 tiles: 8 steps, each 16 x 16 of shared
 * memory and 16 / 4 x 8 x 6.4 of tensor cores. */
#include "bf16_emit.h"

enum { TURN_ROWS = 32, STEPS = 2 }; /* STEPS: of a turn */

/* ---- inputs that are all 0 or 1 ----
 *
 * Of a bit for each input of a row, where bit_place puts it, fragments of 0 and 1 in bf16 are made in registers. A row
 * takes 32 bytes where 203 inputs in bf16 take 416, and fragments take no bandwidth of shared memory. Gradients need
 * words of an input, a bit for each of 32 rows: bits_transpose makes them, squares of 32 x 32 bits at a time; or they find
 * them in words of rows. */

/* ONE: 1 in bf16; SPARE: bytes that tiles read past the last input; WORD: inputs of a word. */
enum { SQUARE = 32, ONE = 0x3f80, SPARE = 256, WORD = 32 };

const InputColumns *bit_columns(const Kernel *k, uint32_t buf, uint32_t col)
{
	return k->bf16->bits ? input_of(k, buf, col) : NULL;
}

/* All that steps read of inputs begins with the first column of a part. */
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
	if (!k->bf16->warpgroups) /* there, few loads are worth the memory */
		k->bf16->bits_row = (k->bf16->bits_row / 16 | 1) * 16;
	k->bf16->transposed_row = s->job->data.bits_row * SQUARE * 4;
}

/* Blocks with side threads take gradients from words of rows. */
bool has_transposed_bits(const Kernel *k) { return k->bf16->bits && !k->s->test && !k->s->adds_side_warps; }

uint64_t bits_bytes(const Kernel *k, uint32_t rows) { return (uint64_t)k->bf16->bits_row * rows; }

uint64_t transposed_bytes(const Kernel *k, uint32_t rows)
{
	return has_transposed_bits(k) ? ceil_div(rows, SQUARE) * k->bf16->transposed_row + SPARE : 0;
}

/* Of the chunk, under way. */
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

/* Words of inputs from words of rows, up to `most` squares at a time for each warp from `first` on: instructions of one
 * wait for each other, those of several are under way together. */
void bits_transpose(Kernel *k, uint32_t first, uint32_t most)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	uint32_t words = k->s->job->data.bits_row, squares = (uint32_t)ceil_div(k->block_rows, SQUARE) * words;
	uint32_t warps = k->s->threads / 32 - first, each = min_u32(most, max_u32(1, squares / warps));

	if (!has_transposed_bits(k))
		return;
	remark(e, "words of inputs");
	uint32_t there = 0;
	if (h->single_slice) {
		there = unless_begin(e, op2(e, REG_P, "setp.eq.u64", h->staged_leaf, h->transposed_leaf));
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
		if_end(e, there);
}

static Reg pair_of_bits(Emit *e, Reg x, uint32_t pair)
{
	Reg both = op2(e, REG_R, "and.b32", x, imm(0x00010001u << pair));

	return op2(e, REG_R, "mul.lo.u32", both, imm(ONE >> pair));
}

/* 32 of what is summed, for two steps, of the `count` tiles of 8 columns or rows that the lane's words are of. */
void bits_fragments(Kernel *k, const Reg *word, uint32_t count, Reg f[2][4])
{
	for (uint32_t r = 0; r < count; r++) {
		Reg x = op2(k->e, REG_R, "shr.u32", word[r], k->bf16->bits_shift);
		for (uint32_t pair = 0; pair < 4; pair++)
			f[pair / 2][pair % 2 * count + r] = pair_of_bits(k->e, x, pair);
	}
}

/* Address of the lane's words: of row `row` of a product. */
Reg bits_row_at(Kernel *k, const InputColumns *in, Reg row)
{
	const Bf16 *h = k->bf16;

	return add(k->e, mad(k->e, add(k->e, row, h->row_of_lane), h->bits_row, cases_memory(k)),
	           imm(h->at_bits + 4 * in->word));
}

/* Of input `input` of the part, for the first rows. */
Reg bits_input_at(Kernel *k, const InputColumns *in, Reg input)
{
	const Bf16 *h = k->bf16;

	return add(k->e, mad(k->e, add(k->e, input, h->row_of_lane), 4, k->memory), imm(h->at_transposed + 128 * in->word));
}

/* From words of rows: a lane takes those of two, and finds four of its inputs in a half of each. */

/* Those from input `input` on, a multiple of 8, up to the end of its word, or whole words. */
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

/* Fragments of rows `row` .. row + 15, for `count` tiles of 8 inputs, from tile `first` on: of the first 8 rows, and of
 * the others. */
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

/* ---- plan ---- */

/* Tiles that a narrow matrix does not have go to the other side, up to `most` of them. Where inputs are bits, tiles of
 * a task are in one word, or have whole ones. */
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

/* Cycles of 16 rows: instructions of a scheduler, of which 0.7 a cycle are issued; shared memory; tensor cores. Where
 * inputs are bits, a tile of them takes five instructions and hardly any shared memory. */
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
	const Bf16Task *task;
	Reg row, col; /* of the lane's first sum in the matrix */
	Reg a, b;     /* addresses of fragments in row 0, */
	bool bits[2]; /* or where they are among inputs */
	BitsInputs in[2];
	uint32_t end; /* label */
} GradientTask;

/* if the warp has a task of this gradient in this round */
static GradientTask gradient_begin(Kernel *k, uint32_t number, uint32_t round, bool places)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	const Bf16 *h = k->bf16;
	const DeviceStep *g = &s->step[s->list->gradient + number];
	const Bf16Task *t = &h->task[number];
	Reg own = add(e, h->warp, imm(round * h->warps - t->first)); /* a large number if it is before the first */
	GradientTask x = { .step = g, .task = t, .end = if_begin(e, less(e, own, imm(t->down * t->across))) };
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

/* Tiles first .. first + count - 1 of a side. */
typedef struct Tiled {
	uint32_t first, count;
} Tiled;

static void sums_new(Kernel *k, Reg (*sum)[4], uint32_t tiles)
{
	for (uint32_t i = 0; i < tiles; i++)
		for (uint32_t n = 0; n < 4; n++)
			sum[i][n] = reg(k->e, REG_F);
}

/* Tiles of `some` of both sides, of 32 rows in two steps. a, b: fragments for both. */
static void tiles_add(Kernel *k, const GradientTask *x, Reg (*sum)[4], Tiled down, Tiled across, Reg (*a)[STEPS][4],
                      Reg (*b)[STEPS][2])
{
	for (uint32_t step = 0; step < STEPS; step++)
		for (uint32_t i = 0; i < down.count * across.count; i++) {
			uint32_t h = i / across.count, j = i % across.count;
			multiply_add(k->e, sum[(down.first + h) * x->task->wide + across.first + j], a[h][step], b[j][step], NULL);
		}
}

/* Fragments of tiles of the matrix' rows, for both steps. */
static void down_load(Kernel *k, const GradientTask *x, Tiled t, Reg (*a)[STEPS][4])
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

/* Of its columns: two, or all where inputs are bits. */
static void across_load(Kernel *k, const GradientTask *x, Tiled t, Reg (*b)[STEPS][2])
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

/* 32 rows, a pair of tiles across after the other, so that few sums are there besides those of the leaf. */
static void rows_add(Kernel *k, const GradientTask *x, Reg (*sum)[4])
{
	uint32_t wide = x->task->wide;
	Tiled down = { 0, x->task->high };
	Reg a[TILES_HIGH][STEPS][4], b[TILES_WIDE][STEPS][2];

	down_load(k, x, down, a);
	if (x->bits[1])
		across_load(k, x, (Tiled){ 0, wide }, b);
	for (uint32_t j = 0; j < wide; j += 2) {
		Tiled two = { j, min_u32(2, wide - j) };
		if (!x->bits[1])
			across_load(k, x, two, b + j);
		tiles_add(k, x, sum, down, two, a, b + j);
	}
	for (uint32_t side = 0; side < 2; side++) {
		Reg at = x->bits[side] ? x->in[side].at : side ? x->b : x->a;
		ins(k->e, "add.u32 $, $, #", at, at, TURN_ROWS * (x->bits[side] ? k->bf16->bits_row : k->bf16->row));
	}
}

/* 32 rows, in two steps, where words of inputs are there. start: what the first adds to. */
static void turned_add(Kernel *k, const GradientTask *x, Reg (*sum)[4], const Reg *start)
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
	ins(k->e, "add.u32 $, $, #", x->a, x->a, x->bits[0] ? k->bf16->transposed_row : TURN_ROWS * row);
	ins(k->e, "add.u32 $, $, #", x->b, x->b, x->bits[1] ? k->bf16->transposed_row : TURN_ROWS * row);
}

static void sums_fill(Emit *e, Reg (*sum)[4], uint32_t tiles, Reg value)
{
	for (uint32_t i = 0; i < tiles; i++)
		for (uint32_t n = 0; n < 4; n++)
			ins(e, "mov.f32 $, $", sum[i][n], value);
}

/* Of a slice that has no rows: -0, which changes no sum. */
static Reg first_value(Kernel *k)
{
	return op3(k->e, REG_F, "selp.f32", imm_f(0), imm_f(-0.0f), less(k->e, k->bf16->first, k->rows));
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
	Reg number = mad(e, k->leaf_number, BF16_SLICES, k->bf16->slice);

	return op3(e, REG_D, "mad.wide.u32", number, imm((uint32_t)k->s->job->floats * 4), POINTER(k, sum));
}

/* As they are in registers. */
static void tiles_store(Kernel *k, const GradientTask *x, Reg (*sum)[4])
{
	Emit *e = k->e;
	uint32_t number = (uint32_t)(x->step - k->s->step) - k->s->list->gradient;
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

static uint32_t most_tiles(const Kernel *k)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < gradients(k); i++)
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
	sums_new(k, h->sum, most);
	sums_fill(k->e, h->sum, most, h->single_block ? imm_f(-0.0f) : first_value(k));
}

/* All rows of the chunk, 32 at a time; those past the last are 0. */
static void chunk_add(Kernel *k, const GradientTask *x, Reg (*sum)[4])
{
	Emit *e = k->e;
	Reg slice[WARP_TILES][4], zero[4];
	Loop l = loop_begin(e, imm(0), k->my_rows, TURN_ROWS);

	if (k->bf16->single_block) { /* a slice has 32 rows */
		for (uint32_t n = 0; n < 4; n++)
			zero[n] = op1(e, REG_F, "mov.f32", imm_f(0));
		sums_new(k, slice, tiles_of(x));
		turned_add(k, x, slice, zero);
		for (uint32_t i = 0; i < tiles_of(x); i++)
			for (uint32_t n = 0; n < 4; n++)
				ins(e, "add.rn.ftz.f32 $, $, $", sum[i][n], sum[i][n], slice[i][n]);
	} else if (k->s->adds_side_warps) {
		rows_add(k, x, sum);
	} else {
		turned_add(k, x, sum, NULL);
	}
	loop_end(e, &l);
}

void bf16_sums_add(Kernel *k, Reg chunk)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;

	uint32_t other = if_begin(e, less(e, h->warp, imm(h->warps)));
	for (uint32_t round = 0; round < h->rounds; round++)
		for (uint32_t i = 0; i < gradients(k); i++) {
			remark(e, "gradient %u, bf16", i);
			GradientTask x = gradient_begin(k, i, round, true);
			Reg own[WARP_TILES][4], (*sum)[4] = h->rounds > 1 ? own : h->sum;
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

void bf16_sums_end(Kernel *k)
{
	uint32_t other = if_begin(k->e, less(k->e, k->bf16->warp, imm(k->bf16->warps)));
	for (uint32_t i = 0; i < gradients(k) && k->bf16->rounds == 1; i++) {
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
