/* SPDX-License-Identifier: MIT */
/* bf16: products and gradients of warpgroups (wgmma, compute capability 9.0), where one block has all of the network.
 * In: operands of rows in registers; weights, activations and deltas in shared memory. Out: sums with the bits of mma,
 * in two thirds of the time; the update.
 *
 * Matrices in shared memory are core matrices of 8 x 8 elements, 128 bytes, with rows of 16 bytes: the 8 x 8 sums of a
 * warp, rounded, are 32 contiguous words. A core matrix serves as either operand: the descriptor says which of its
 * dimensions is summed over.
 *
 * Gradients: of the input weights, each of three warpgroups has 64 inputs by all hidden units, with bits of inputs
 * expanded to operands in registers; the last one also has up to 16 remaining inputs, the tail, by mma. Side warps have
 * those of the output weights. Slices of 32 rows are added one after the other. Must hold: async_proxy_fence lies
 * between stores and the barrier after which products read them. */
#include "bf16_emit.h"
#include "units.h"

enum {
	WARPGROUP_WARPS = WARPGROUP_THREADS / 32,
	MOST_TILES = 8,
	TAIL_TILES = 2,
	SLICE = 32,
	SLICE_STEPS = SLICE / 16,
	MOST_SLICES = 4
};
enum { INPUT_WEIGHTS, OUTPUT_WEIGHTS, GRADIENTS }; /* gradients */

/* Operands of a gradient: activations of sources, deltas of targets. The rows of the panel are either. */
typedef struct Sides {
	uint32_t sources, source_buf, source_col, targets, target_buf, target_col;
	bool by_target;
} Sides;

static Sides sides(const Kernel *k, uint32_t i)
{
	const DeviceStep *g = nth_gradient(k, i);

	if (g->a == BUF_DELTA)
		return (Sides){ g->cols, g->c, g->c_col, g->depth, g->a, g->a_col, true };
	return (Sides){ g->depth, g->a, g->a_col, g->cols, g->c, g->c_col, false };
}

/* In this file, rows of a gradient are sources, columns targets. */
static uint32_t rows_tiles(const Kernel *k, uint32_t i) { return (uint32_t)ceil_div(sides(k, i).sources, 16); }
static uint32_t columns_tiles(const Kernel *k, uint32_t i) { return (uint32_t)ceil_div(sides(k, i).targets, 8); }

/* Blocks of 64 inputs. Up to 16 remaining inputs are the tail; more of them are a block. */
static uint32_t input_blocks(const Kernel *k)
{
	uint32_t all = sides(k, INPUT_WEIGHTS).sources;

	return all / WARPGROUP_ROWS + (all % WARPGROUP_ROWS > 16);
}
static bool has_tail(const Kernel *k) { return sides(k, INPUT_WEIGHTS).sources > WARPGROUP_ROWS * input_blocks(k); }
static const InputColumns *input_bits(const Kernel *k, uint32_t i)
{
	Sides s = sides(k, i);

	return bit_columns(k, s.source_buf, s.source_col);
}

/* The true unit is the last source. */
static bool panel_fits(const Kernel *k, uint32_t i)
{
	const DevicePanel *p = gradient_panel(k, i);
	Sides s = sides(k, i);

	return p->bias_across == s.by_target && p->bias == s.sources - 1 &&
	       p->cols == (s.by_target ? s.sources : s.targets);
}

bool warpgroup_gradients_fit(const Kernel *k)
{
	return gradient_steps(k) == GRADIENTS && k->s->job->panels == GRADIENTS && input_bits(k, INPUT_WEIGHTS) &&
	       !input_bits(k, OUTPUT_WEIGHTS) && columns_tiles(k, INPUT_WEIGHTS) <= MOST_TILES &&
	       columns_tiles(k, OUTPUT_WEIGHTS) <= MOST_TILES / 2 && rows_tiles(k, OUTPUT_WEIGHTS) <= WARPGROUP_WARPS &&
	       input_blocks(k) && input_blocks(k) <= WARPGROUPS && panel_fits(k, INPUT_WEIGHTS) &&
	       panel_fits(k, OUTPUT_WEIGHTS);
}

uint32_t warpgroup_row_threads(const Kernel *k)
{
	return (uint32_t)ceil_div(k->block_rows, WARPGROUP_ROWS) * WARPGROUP_THREADS;
}

/* ---- instructions ---- */

void warpgroups_begin(Kernel *k)
{
	Emit *e = k->e;

	k->bf16->wgmma_base = op2(e, REG_R, "shr.u32", k->memory, imm(4));
	Loop l = loop_begin(e, k->tid, imm(WARPGROUP_SPARE / 16), k->s->threads);
	ins(e, "st.shared.v4.u32 [$+#], {0, 0, 0, 0}", mad(e, l.i, 16, k->memory),
	    k->bf16->at_rows + k->bf16->row * k->block_rows);
	loop_end(e, &l);
}

void async_proxy_fence(Kernel *k) { ins(k->e, "fence.proxy.async.shared::cta"); }

static void wgmma_fence(Emit *e) { ins(e, "wgmma.fence.sync.aligned"); }
static void wgmma_commit(Emit *e) { ins(e, "wgmma.commit_group.sync.aligned"); }
static void wgmma_wait_group(Emit *e, uint32_t left) { ins(e, "wgmma.wait_group.sync.aligned #", left); }

/* An operand in shared memory. Bytes: of its first core matrix, from one to the next along the depth, and across it. */
typedef struct MatrixOperand {
	uint32_t at, deep, across;
	bool transposed; /* a row of a core matrix has one depth */
} MatrixOperand;

static Reg descriptor(Kernel *k, const MatrixOperand *t)
{
	Emit *e = k->e;
	Reg low = add(e, k->bf16->wgmma_base, imm(t->at / 16 | t->deep / 16 << 16)), d = reg(e, REG_D);

	ins(e, "mov.b64 $, {$, $}", d, low, op1(e, REG_R, "mov.u32", imm(t->across / 16)));
	return d;
}

/* A depth of 16. a: registers; NULL: a_matrix. keeps: adds to the sums, else sets them */
static void wgmma_issue(Kernel *k, Reg (*sum)[4], uint32_t tiles, const Reg *a, const MatrixOperand *a_matrix,
                        const MatrixOperand *b, bool keeps)
{
	Emit *e = k->e;
	Reg b_at = descriptor(k, b), a_at = a ? b_at : descriptor(k, a_matrix);

	buf_printf(&e->text, "\twgmma.mma_async.sync.aligned.m64n%uk16.f32.bf16.bf16 {", 8 * tiles);
	for (uint32_t i = 0; i < 4 * tiles; i++)
		buf_printf(&e->text, "%s%%f%u", i ? ", " : "", sum[i / 4][i % 4].n);
	if (a)
		ins(e, "}, {$, $, $, $}, $, #, 1, 1, #", a[0], a[1], a[2], a[3], b_at, keeps, b->transposed);
	else
		ins(e, "}, $, $, #, 1, 1, #, #", a_at, b_at, keeps, a_matrix->transposed, b->transposed);
}

/* ---- products of rows ---- */

static MatrixOperand weights_operand(Kernel *k, const DeviceStep *s, uint32_t step)
{
	const Bf16Region *w = bf16_region(k, s);
	uint32_t eight = 8 * w->pitch, tile = bf16_tile_stride(k);

	if (s->after != AFTER_DELTAS) /* sums over sources */
		return (MatrixOperand){ w->at + 2 * eight * step, eight, tile, true };
	return (MatrixOperand){ w->at + 2 * tile * step, tile, eight, false };
}

static bool from_zero(const Kernel *k, const DeviceStep *s) { return s->start == k->s->job->zero; }

/* Bits of two steps are expanded while the products of the previous two are in flight. */
void wgmma_from_bits(Kernel *k, const DeviceStep *s, Reg row, uint32_t tiles, Reg (*sum)[4])
{
	Emit *e = k->e;
	uint32_t steps = (uint32_t)ceil_div(s->depth, 16);
	Reg word[STEPS_KNOWN][2];

	for (uint32_t step = 0; step < steps; step += 2)
		for (uint32_t r = 0; r < 2; r++)
			word[step][r] = load(e, REG_R, "ld.shared.u32", row, 8 * r * k->bf16->bits_row + 2 * step);
	for (uint32_t step = 0; step < steps; step += 2) {
		Reg f[2][4];
		bits_fragments(k, word[step], 2, f);
		wgmma_fence(e);
		for (uint32_t i = 0; i < 2 && step + i < steps; i++) {
			MatrixOperand b = weights_operand(k, s, step + i);
			wgmma_issue(k, sum, tiles, f[i], NULL, &b, step + i || !from_zero(k, s));
		}
		wgmma_commit(e);
		if (step)
			wgmma_wait_group(e, 1);
	}
	wgmma_wait_group(e, 0);
}

void wgmma_step(Kernel *k, const DeviceStep *s, uint32_t step, Reg (*a)[2], uint32_t tiles, Reg (*sum)[4])
{
	MatrixOperand b = weights_operand(k, s, step);
	Reg f[4];

	for (uint32_t i = 0; i < 4; i++)
		f[i] = a[2 * step + i / 2][i % 2];
	wgmma_fence(k->e);
	wgmma_issue(k, sum, tiles, f, NULL, &b, step || !from_zero(k, s));
	wgmma_commit(k->e);
}

void wgmma_wait_all(Kernel *k) { wgmma_wait_group(k->e, 0); }

void wgmma_from_registers(Kernel *k, const DeviceStep *s, Reg (*a)[2], uint32_t tiles, Reg (*sum)[4])
{
	for (uint32_t step = 0; step < ceil_div(s->depth, 16); step++)
		wgmma_step(k, s, step, a, tiles, sum);
	wgmma_wait_all(k);
}

/* ---- gradients ---- */

/* Gradients that a warpgroup has. Tiles of a warp, in Bf16.sum: of its block of inputs, of outputs, of the tail. */
typedef struct GroupTask {
	bool inputs, tail, outputs;
	uint32_t at_out, at_tail, tiles; /* tiles: of all three */
} GroupTask;

static GroupTask task_of(const Kernel *k, uint32_t group)
{
	GroupTask t = { .inputs = group < input_blocks(k), .outputs = group == WARPGROUP_SIDE };

	t.tail = group == WARPGROUPS - 1 && has_tail(k);
	t.at_out = t.inputs ? columns_tiles(k, INPUT_WEIGHTS) : 0;
	t.at_tail = t.at_out + (t.outputs ? columns_tiles(k, OUTPUT_WEIGHTS) : 0);
	t.tiles = t.at_tail + (t.tail ? TAIL_TILES : 0);
	return t;
}

/* Consecutive warpgroups with equal tasks share their text: the first one after these. */
static uint32_t task_end(const Kernel *k, uint32_t group)
{
	GroupTask t = task_of(k, group);
	uint32_t end = group + 1;

	while (end < WARPGROUPS && task_of(k, end).inputs == t.inputs && task_of(k, end).tail == t.tail)
		end++;
	return end;
}

/* if (the warp is of warpgroups first .. end - 1) */
static uint32_t if_groups(Kernel *k, uint32_t first, uint32_t end)
{
	Reg from = add(k->e, k->bf16->warp, imm(0u - WARPGROUP_WARPS * first));

	return if_begin(k->e, less(k->e, from, imm(WARPGROUP_WARPS * (end - first))));
}

static Reg warp_of_group(Kernel *k) { return op2(k->e, REG_R, "and.b32", k->bf16->warp, imm(WARPGROUP_WARPS - 1)); }

/* Columns of the chunk's rows, from row `row` on; the depth is rows. */
static MatrixOperand columns_operand(const Kernel *k, uint32_t buf, uint32_t col, uint32_t row)
{
	const Bf16 *h = k->bf16;

	return (MatrixOperand){ h->at_rows + bf16_column(k, buf, col) + row * h->row, 8 * h->row, bf16_tile_stride(k),
		                    true };
}

static void words_load(Kernel *k, Reg at, uint32_t row, Reg word[2])
{
	for (uint32_t r = 0; r < 2; r++)
		word[r] = load(k->e, REG_R, "ld.shared.u32", at, row / SLICE * k->bf16->transposed_row + 32 * r);
}

/* Operands of a slice, from bits of inputs. */
static void inputs_make(Kernel *k, Reg at, uint32_t row, Reg f[2][4])
{
	Reg word[2];

	words_load(k, at, row, word);
	bits_fragments(k, word, 2, f);
}

static void inputs_products(Kernel *k, uint32_t row, Reg (*f)[4], Reg (*sum)[4])
{
	Sides s = sides(k, INPUT_WEIGHTS);

	for (uint32_t step = 0; step < SLICE_STEPS; step++) {
		MatrixOperand deltas = columns_operand(k, s.target_buf, s.target_col, row + 16 * step);
		wgmma_issue(k, sum, columns_tiles(k, INPUT_WEIGHTS), f[step], NULL, &deltas, step);
	}
}

static void outputs_products(Kernel *k, uint32_t row, Reg (*sum)[4])
{
	Sides s = sides(k, OUTPUT_WEIGHTS);

	for (uint32_t step = 0; step < SLICE_STEPS; step++) {
		MatrixOperand units = columns_operand(k, s.source_buf, s.source_col, row + 16 * step);
		MatrixOperand deltas = columns_operand(k, s.target_buf, s.target_col, row + 16 * step);
		wgmma_issue(k, sum, columns_tiles(k, OUTPUT_WEIGHTS), NULL, &units, &deltas, step);
	}
}

/* The tail: addresses of its words, and of deltas of the warp's columns. */
typedef struct TailPlaces {
	Reg bits, cols;
} TailPlaces;

static TailPlaces tail_places(Kernel *k)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	Sides s = sides(k, INPUT_WEIGHTS);
	Reg lane = op2(e, REG_R, "and.b32", h->lane, imm(15)), eight = divide(e, h->lane, 16);
	Reg tile = mad(e, warp_of_group(k), TAIL_TILES, eight);
	Reg cols = add(e, core_matrix_offset(e, h->row, lane, mul(e, tile, 8)), k->memory);

	return (TailPlaces){ bits_input_at(k, input_bits(k, INPUT_WEIGHTS), imm(WARPGROUP_ROWS * input_blocks(k))),
		                 add(e, cols, imm(h->at_rows + bf16_column(k, s.target_buf, s.target_col))) };
}

static void tail_products(Kernel *k, const TailPlaces *p, uint32_t row, Reg (*sum)[4])
{
	Reg f[2][4], b[4], zero[4];

	mma_zeros_new(k->e, zero);
	inputs_make(k, p->bits, row, f);
	for (uint32_t step = 0; step < SLICE_STEPS; step++) {
		fragments_load(k, b, 4, true, p->cols, (row + 16 * step) * k->bf16->row);
		for (uint32_t j = 0; j < TAIL_TILES; j++)
			multiply_add(k->e, sum[j], f[step], b + 2 * j, step ? NULL : zero);
	}
}

/* The tail comes first, as mma waits for wgmma. All slices of a full chunk are interleaved. */
static void tail_add(Kernel *k, const GroupTask *t)
{
	Emit *e = k->e;
	uint32_t slices = k->block_rows / SLICE, end = label(e);
	TailPlaces tail = tail_places(k);
	Reg slice[MOST_SLICES][TAIL_TILES][4], f[MOST_SLICES][2][4], b[4], zero[4];

	uint32_t some = if_begin(e, op2(e, REG_P, "setp.gt.u32", k->my_rows, imm(SLICE * (slices - 1)))); /* all */
	mma_zeros_new(e, zero);
	for (uint32_t i = 0; i < slices; i++) {
		mma_sums_new(k->e, slice[i], TAIL_TILES);
		inputs_make(k, tail.bits, SLICE * i, f[i]);
	}
	for (uint32_t step = 0; step < SLICE_STEPS; step++)
		for (uint32_t i = 0; i < slices; i++) {
			fragments_load(k, b, 4, true, tail.cols, (SLICE * i + 16 * step) * k->bf16->row);
			for (uint32_t j = 0; j < TAIL_TILES; j++)
				multiply_add(e, slice[i][j], f[i][step], b + 2 * j, step ? NULL : zero);
		}
	for (uint32_t i = 0; i < slices; i++)
		mma_sums_add(e, k->bf16->sum + t->at_tail, slice[i], TAIL_TILES);
	ins(e, "bra L#", end);
	if_end(e, some);
	for (uint32_t i = 0; i + 1 < slices; i++) {
		ins(e, "@$ bra L#", op2(e, REG_P, "setp.le.u32", k->my_rows, imm(SLICE * i)), end);
		mma_sums_new(k->e, slice[i], TAIL_TILES);
		tail_products(k, &tail, SLICE * i, slice[i]);
		mma_sums_add(e, k->bf16->sum + t->at_tail, slice[i], TAIL_TILES);
	}
	label_here(e, end);
}

/* Bits of the next slice are expanded while products are in flight. */
static void slices_add(Kernel *k, const GroupTask *t)
{
	Emit *e = k->e;
	uint32_t end = label(e);
	Reg word[MOST_SLICES][2], f[2][4], slice[2 * MOST_TILES][4];

	if (t->tail)
		tail_add(k, t);
	if (t->inputs) {
		Reg bits = bits_input_at(k, input_bits(k, INPUT_WEIGHTS), mul(e, k->bf16->warp, 16));
		for (uint32_t row = 0; row < k->block_rows; row += SLICE) /* all loads in flight together */
			words_load(k, bits, row, word[row / SLICE]);
		bits_fragments(k, word[0], 2, f);
	}
	for (uint32_t row = 0; row < k->block_rows; row += SLICE) {
		ins(e, "@$ bra L#", op2(e, REG_P, "setp.le.u32", k->my_rows, imm(row)), end);
		mma_sums_new(k->e, slice, t->at_tail);
		wgmma_fence(e);
		if (t->inputs)
			inputs_products(k, row, f, slice);
		if (t->outputs)
			outputs_products(k, row, slice + t->at_out);
		wgmma_commit(e);
		if (t->inputs && row + SLICE < k->block_rows)
			bits_fragments(k, word[row / SLICE + 1], 2, f);
		wgmma_wait_group(e, 0);
		mma_sums_add(e, k->bf16->sum, slice, t->at_tail);
	}
	label_here(e, end);
}

void warpgroup_gradient(Kernel *k, uint32_t group)
{
	uint32_t last = group == WARPGROUP_SIDE ? WARPGROUP_SIDE + 1 : WARPGROUPS;

	for (uint32_t g = group, end; g < last; g = end) {
		GroupTask t = task_of(k, g);
		end = task_end(k, g);
		if (!t.tiles)
			continue;
		remark(k->e, "gradients by a warpgroup: %u tiles of a warp", t.tiles);
		uint32_t others = if_groups(k, g, end);
		slices_add(k, &t);
		if_end(k->e, others);
	}
}

void warpgroup_sums_begin(Kernel *k, uint32_t group)
{
	Bf16 *h = k->bf16;
	uint32_t tiles = task_of(k, group).tiles;

	for (uint32_t g = group; g < WARPGROUPS; g++)
		tiles = max_u32(tiles, task_of(k, g).tiles);
	h->sum = (Reg(*)[4])NEW(&k->s->cx->scratch, 4 * (size_t)tiles + 1, Reg);
	for (uint32_t i = 0; i < 4 * tiles; i++)
		h->sum[i / 4][i % 4] = op1(k->e, REG_F, "mov.f32", imm_f(-0.0f));
}

void rows_read_wait(Kernel *k) { ins(k->e, "bar.sync #, #", NAMED_ROWS_READ, (WARPGROUPS + 1) * WARPGROUP_THREADS); }

/* ---- weights ----
 *
 * bf16 weights are core matrices, rows are sources. fp32 weights and rule state have the layout of accumulators: tiles
 * of 16 x 8, 512 bytes, 16 of each lane. */

enum { KEPT_TILE = 512 };

static uint32_t kept_first(const Kernel *k, uint32_t number)
{
	return number == INPUT_WEIGHTS ? 0 : rows_tiles(k, INPUT_WEIGHTS) * columns_tiles(k, INPUT_WEIGHTS);
}

void warpgroup_region(Bf16Region *r, bool by_target)
{
	r->by_target = by_target;
	r->space = (uint32_t)round_up(by_target ? r->row : r->rows, 16);
	r->pitch = (uint32_t)round_up(by_target ? r->rows : r->row, 16) * 2;
}

void warpgroup_kept_plan(Kernel *k)
{
	uint32_t tiles = kept_first(k, OUTPUT_WEIGHTS) + rows_tiles(k, OUTPUT_WEIGHTS) * columns_tiles(k, OUTPUT_WEIGHTS);

	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		if (formula_variables(k) >> v & 1)
			k->bf16->panel[0].at[v] = shared_take(k, (uint64_t)tiles * KEPT_TILE);
}

Reg core_matrix_offset(Emit *e, uint32_t pitch, Reg row, Reg col)
{
	Reg tile = mad(e, divide(e, row, 8), 8 * pitch, mul(e, divide(e, col, 8), 128));
	Reg here = mad(e, modulo(e, row, 8, divide(e, row, 8)), 16, mul(e, modulo(e, col, 8, divide(e, col, 8)), 2));

	return add(e, tile, here);
}

/* Between global and shared memory, element by element: when a job begins and ends. */
void warpgroup_kept_move(Kernel *k, bool out)
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < GRADIENTS; i++) {
		const DevicePanel *p = gradient_panel(k, i);
		Sides s = sides(k, i);
		uint32_t across = columns_tiles(k, i), tiles = rows_tiles(k, i) * across;
		Loop l = loop_begin(e, k->tid, imm(tiles * 128), k->s->threads);
		Reg tile = divide(e, l.i, 128), in = modulo(e, l.i, 128, tile), lane = divide(e, in, 4);
		Reg down = divide(e, tile, across), n = modulo(e, in, 4, lane), lane_row = divide(e, lane, 4);
		Reg row = add(e, mad(e, down, 16, lane_row), mul(e, divide(e, n, 2), 8));
		Reg col = mad(e, modulo(e, tile, across, down), 8, mul(e, modulo(e, lane, 4, lane_row), 2));
		col = add(e, col, modulo(e, n, 2, divide(e, n, 2)));
		Reg real = op2(e, REG_P, "and.pred", less(e, row, imm(s.sources)), less(e, col, imm(s.targets)));
		Reg here = add(e, mad(e, l.i, 4, k->memory), imm(kept_first(k, i) * KEPT_TILE));
		uint32_t none = if_begin(e, real);
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++) {
			if (!(formula_variables(k) >> v & 1))
				continue;
			Reg there = variable_at(k, v, p, s.by_target ? mad(e, col, p->row, row) : mad(e, row, p->row, col));
			if (out)
				ins(e, "st.global.f32 [$], $", there, load(e, REG_F, "ld.shared.f32", here, k->bf16->panel[0].at[v]));
			else
				ins(e, "st.shared.f32 [$+#], $", here, k->bf16->panel[0].at[v],
				    load(e, REG_F, "ld.global.f32", there, 0));
		}
		if_end(e, none);
		loop_end(e, &l);
	}
}

void warpgroup_weights_move(Kernel *k, bool out)
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < k->bf16->regions; i++) {
		const Bf16Region *r = &k->bf16->region[i];
		Loop l = loop_begin(e, k->tid, imm(r->rows * r->row), k->s->threads);
		Reg row = divide(e, l.i, r->row), col = modulo(e, l.i, r->row, row);
		Reg at = r->by_target ? core_matrix_offset(e, r->pitch, col, row) : core_matrix_offset(e, r->pitch, row, col);
		Reg here = add(e, at, k->memory);
		Reg there = place(e, place_at(e, POINTER(k, half), r->from * 2), l.i, 2);
		if (out)
			ins(e, "st.global.u16 [$], $", there, load(e, REG_H, "ld.shared.u16", here, r->at));
		else
			ins(e, "st.shared.u16 [$+#], $", here, r->at, load(e, REG_H, "ld.global.u16", there, 0));
		loop_end(e, &l);
	}
}

/* ---- the update ---- */

/* Part of a gradient: 16 rows by `tiles` tiles of 8 columns. */
typedef struct SumPart {
	uint32_t number, tiles;
	Reg down, across;       /* first tile */
	uint32_t rows, columns; /* bounds of the numbers of its rows and columns */
	Reg (*sum)[4];
} SumPart;

typedef struct PartPlaces {
	Reg kept, bf16; /* addresses of the lane's weights in the first tile: fp32, bf16 */
	Reg row[2], col;
	const Bf16Region *region;
	const WeightRegion *start; /* weights from the true unit, which sums start with */
	bool has_last;             /* the part may have the last row, that of the true unit */
} PartPlaces;

static PartPlaces part_places(Kernel *k, const SumPart *x)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	const DevicePanel *p = gradient_panel(k, x->number);
	const Job *j = k->s->job;
	uint32_t across = columns_tiles(k, x->number);
	PartPlaces t = { .has_last = x->rows > p->bias };
	Reg tile = add(e, mad(e, x->down, across, x->across), imm(kept_first(k, x->number)));

	for (uint32_t i = 0; i < h->regions; i++)
		if (h->region[i].from == p->at)
			t.region = &h->region[i];
	t.start = region_of(k, p->bias_across ? j->copies + p->copy + (uint64_t)p->bias * p->copy_row
	                                      : j->w + p->at + (uint64_t)p->bias * p->row);
	t.kept = add(e, mad(e, tile, KEPT_TILE, mul(e, h->lane, 16)), k->memory);
	Reg rounded = mad(e, x->down, 16 * t.region->pitch, mad(e, x->across, bf16_tile_stride(k), k->memory));
	t.bf16 = add(e, mad(e, h->lane, 4, rounded), imm(t.region->at));
	for (uint32_t r = 0; r < 2; r++)
		t.row[r] = add(e, mad(e, x->down, 16, h->row_of_lane), imm(8 * r));
	t.col = mad(e, x->across, 8, h->col_of_lane);
	return t;
}

/* Stores two new weights of tile j, row 8 r: bf16, or the start of sums if they are from the true unit. */
static void pair_store(Kernel *k, const SumPart *x, const PartPlaces *t, uint32_t j, uint32_t r, const Reg w[2])
{
	Emit *e = k->e;
	const DevicePanel *p = gradient_panel(k, x->number);
	uint32_t at = 8 * r * t->region->pitch + bf16_tile_stride(k) * j, columns = sides(k, x->number).targets;
	bool checks = x->columns > columns;
	Reg pair = bf16_pair(e, w[0], w[1]), col = add(e, t->col, imm(8 * j)), is = reg(e, REG_P);

	if (columns % 2) /* 0 past the last column */
		pair = op3(e, REG_R, "selp.u32", pair, op2(e, REG_R, "and.b32", pair, imm(0xffff)),
		           less(e, add(e, col, imm(1)), imm(columns)));
	if (checks)
		is = less(e, col, imm(columns));
	if (t->has_last) {
		Reg above = less(e, t->row[r], imm(p->bias)), last = same(e, t->row[r], imm(p->bias));
		ins(e, "@$ st.shared.v2.f32 [$+#], {$, $}", checks ? op2(e, REG_P, "and.pred", is, last) : last,
		    mad(e, col, 4, k->memory), t->start->at, w[0], w[1]);
		is = checks ? op2(e, REG_P, "and.pred", is, above) : above;
	}
	if (checks || t->has_last)
		ins(e, "@$ st.shared.u32 [$+#], $", is, t->bf16, at, pair);
	else
		ins(e, "st.shared.u32 [$+#], $", t->bf16, at, pair);
}

/* Applies the rule to tile j. value: weights and state */
static void tile_apply(Kernel *k, const PlaceNumbers *n, const SumPart *x, const PartPlaces *t, uint32_t j,
                       Reg value[2 + MAX_STATE][4], Reg finite)
{
	Emit *e = k->e;
	Sides s = sides(k, x->number);
	bool padded = x->rows > s.sources || x->columns > s.targets;

	for (uint32_t i = 0; i < 4; i++) {
		Reg variable[2 + MAX_STATE] = { x->sum[j][i] };
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			variable[v] = value[v][i];
		place_values(k, n, variable);
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			value[v][i] = variable[v];
		Reg w = variable[1];
		if (padded) {
			Reg real = op2(e, REG_P, "and.pred", less(e, t->row[i / 2], imm(s.sources)),
			               less(e, add(e, t->col, imm(8 * j + i % 2)), imm(s.targets)));
			ins(e, "@$ fma.rn.ftz.f32 $, $, 0f00000000, $", real, finite, w, finite);
		} else {
			ins(e, "fma.rn.ftz.f32 $, $, 0f00000000, $", finite, w, finite);
		}
	}
	for (uint32_t r = 0; r < 2; r++)
		pair_store(k, x, t, j, r, value[1] + 2 * r);
}

/* Loads of several tiles come first, so that they overlap. */
static void part_apply(Kernel *k, const SumPart *x)
{
	enum { AT_ONCE = 4 };
	Emit *e = k->e;
	const uint32_t *kept = k->bf16->panel[0].at;
	uint32_t loads = formula_uses(k->s->formula, OP_LOAD), stores = formula_uses(k->s->formula, OP_STORE);
	PartPlaces t = part_places(k, x);
	PlaceNumbers own = known_numbers(k, k->numbers, &k->s->factor[gradient_panel(k, x->number)->factor]);
	Reg finite = zero_float(e), value[AT_ONCE][2 + MAX_STATE][4];

	for (uint32_t first = 0; first < x->tiles; first += AT_ONCE) {
		uint32_t some = min_u32(AT_ONCE, x->tiles - first);
		for (uint32_t j = 0; j < some; j++)
			for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
				if (loads >> v & 1)
					load_quad(e, "shared", value[j][v], t.kept, kept[v] + (first + j) * KEPT_TILE);
				else
					for (uint32_t i = 0; i < 4 && stores >> v & 1; i++)
						value[j][v][i] = zero_float(e);
		for (uint32_t j = 0; j < some; j++) {
			tile_apply(k, &own, x, &t, first + j, value[j], finite);
			for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
				if (stores >> v & 1)
					store_quad(e, "shared", t.kept, kept[v] + (first + j) * KEPT_TILE, value[j][v]);
		}
	}
	infinite_check(k, op2(e, REG_P, "setp.neu.ftz.f32", finite, finite));
}

static void task_apply(Kernel *k, const GroupTask *t)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	uint32_t in = columns_tiles(k, INPUT_WEIGHTS), out = columns_tiles(k, OUTPUT_WEIGHTS);
	uint32_t full = WARPGROUP_WARPS * input_blocks(k);
	Reg own = warp_of_group(k);

	if (t->inputs)
		part_apply(k, &(SumPart){ INPUT_WEIGHTS, in, h->warp, imm(0), 16 * full, 8 * in, h->sum });
	if (t->outputs) {
		uint32_t none = if_begin(e, less(e, own, imm(rows_tiles(k, OUTPUT_WEIGHTS))));
		part_apply(k, &(SumPart){ OUTPUT_WEIGHTS, out, own, imm(0), WARPGROUP_ROWS, 8 * out, h->sum + t->at_out });
		if_end(e, none);
	}
	uint32_t at_once = in == MOST_TILES ? TAIL_TILES : 1;
	for (uint32_t j = 0; t->tail && j < TAIL_TILES; j += at_once) {
		Reg across = add(e, mul(e, own, TAIL_TILES), imm(j));
		uint32_t none = if_begin(e, less(e, across, imm(in)));
		part_apply(k, &(SumPart){ INPUT_WEIGHTS, at_once, imm(full), across, 16 * (full + 1), 8 * in,
		                          h->sum + t->at_tail + j });
		if_end(e, none);
	}
}

void warpgroup_apply(Kernel *k, uint32_t group)
{
	uint32_t last = group == WARPGROUP_SIDE ? WARPGROUP_SIDE + 1 : WARPGROUPS;

	for (uint32_t g = group, end; g < last; g = end) {
		GroupTask t = task_of(k, g);
		end = task_end(k, g);
		uint32_t others = if_groups(k, g, end);
		task_apply(k, &t);
		if_end(k->e, others);
	}
	async_proxy_fence(k);
}
