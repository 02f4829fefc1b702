/* SPDX-License-Identifier: MIT */
/* bf16: products and gradients of warpgroups (wgmma, compute capability 9.0), where one block has all of the network.
 * In: operands of rows in registers; weights, activations and deltas in shared memory. Out: sums with the bits of mma,
 * which takes half as long again; the update.
 *
 * Matrices in shared memory are tiles of 8 x 8 numbers, 128 bytes, rows of 16 bytes: what a warp has in registers of
 * 8 x 8 sums is, rounded, 32 words that follow each other. A tile serves both sides: descriptors say which is summed.
 *
 * Who adds gradients: of weights from inputs, whose bits become operands in registers, each of three warpgroups has 64
 * inputs by all units, the last of them also up to 16 inputs past these, by mma; of weights to outputs, side threads.
 * Slices of 32 rows are added one after the other. Must hold: stores are published (async_proxy_fence) before the
 * barrier after which products read them. */
#include "bf16_emit.h"
#include "units.h"

enum {
	WARPGROUP_WARPS = WARPGROUP_THREADS / 32,
	MOST_TILES = 8,
	LEFT_TILES = 2,
	SLICE = 32,
	SLICE_STEPS = SLICE / 16,
	MOST_SLICES = 4
};
enum { WEIGHTS_IN, WEIGHTS_OUT, GRADIENTS }; /* gradients */

static const DeviceStep *gradient(const Kernel *k, uint32_t i) { return &k->s->step[k->s->list->gradient + i]; }
static const DevicePanel *panel(const Kernel *k, uint32_t i) { return &k->s->panel[gradient(k, i)->panel]; }

/* Columns of rows whose products are summed: of sources, and deltas of targets. A panel has either as its rows. */
typedef struct Sides {
	uint32_t sources, source_buf, source_col, targets, target_buf, target_col;
	bool by_target;
} Sides;

static Sides sides(const Kernel *k, uint32_t i)
{
	const DeviceStep *g = gradient(k, i);

	if (g->a == BUF_DELTA)
		return (Sides){ g->cols, g->c, g->c_col, g->depth, g->a, g->a_col, true };
	return (Sides){ g->depth, g->a, g->a_col, g->cols, g->c, g->c_col, false };
}

/* Here, rows of a gradient are sources, columns targets. */
static uint32_t rows_tiles(const Kernel *k, uint32_t i) { return (uint32_t)ceil_div(sides(k, i).sources, 16); }
static uint32_t columns_tiles(const Kernel *k, uint32_t i) { return (uint32_t)ceil_div(sides(k, i).targets, 8); }

/* Inputs, 64 at a time: a few past the last are left. */
static uint32_t input_blocks(const Kernel *k)
{
	uint32_t all = sides(k, WEIGHTS_IN).sources;

	return all / WARPGROUP_ROWS + (all % WARPGROUP_ROWS > 16);
}
static bool inputs_left(const Kernel *k) { return sides(k, WEIGHTS_IN).sources > WARPGROUP_ROWS * input_blocks(k); }
static const InputColumns *input_bits(const Kernel *k, uint32_t i)
{
	Sides s = sides(k, i);

	return bit_columns(k, s.source_buf, s.source_col);
}

/* The true unit is the last source. */
static bool panel_fits(const Kernel *k, uint32_t i)
{
	const DevicePanel *p = panel(k, i);
	Sides s = sides(k, i);

	return p->bias_across == s.by_target && p->bias == s.sources - 1 &&
	       p->cols == (s.by_target ? s.sources : s.targets);
}

bool warpgroup_gradients_fit(const Kernel *k)
{
	return k->s->list->steps - k->s->list->gradient == GRADIENTS && k->s->job->panels == GRADIENTS &&
	       input_bits(k, WEIGHTS_IN) && !input_bits(k, WEIGHTS_OUT) && columns_tiles(k, WEIGHTS_IN) <= MOST_TILES &&
	       columns_tiles(k, WEIGHTS_OUT) <= MOST_TILES / 2 && rows_tiles(k, WEIGHTS_OUT) <= WARPGROUP_WARPS &&
	       input_blocks(k) && input_blocks(k) <= WARPGROUPS && panel_fits(k, WEIGHTS_IN) && panel_fits(k, WEIGHTS_OUT);
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

static void products_begin(Emit *e) { ins(e, "wgmma.fence.sync.aligned"); }
static void products_commit(Emit *e) { ins(e, "wgmma.commit_group.sync.aligned"); }
static void products_wait(Emit *e, uint32_t left) { ins(e, "wgmma.wait_group.sync.aligned #", left); }

/* Tiles from byte `at` on: so many bytes from one to the next in the depth, and across it. */
typedef struct Tiled {
	uint32_t at, deep, across;
	bool transposed; /* rows of a tile are of one depth */
} Tiled;

static Reg descriptor(Kernel *k, const Tiled *t)
{
	Emit *e = k->e;
	Reg low = add(e, k->bf16->wgmma_base, imm(t->at / 16 | t->deep / 16 << 16)), d = reg(e, REG_D);

	ins(e, "mov.b64 $, {$, $}", d, low, op1(e, REG_R, "mov.u32", imm(t->across / 16)));
	return d;
}

/* 16 of the depth. a: registers, or tiles of a_tiled; keeps: added to what the sums are */
static void product(Kernel *k, Reg (*sum)[4], uint32_t tiles, const Reg *a, const Tiled *a_tiled, const Tiled *b,
                    bool keeps)
{
	Emit *e = k->e;
	Reg b_at = descriptor(k, b), a_at = a ? b_at : descriptor(k, a_tiled);

	buf_printf(&e->text, "\twgmma.mma_async.sync.aligned.m64n%uk16.f32.bf16.bf16 {", 8 * tiles);
	for (uint32_t i = 0; i < 4 * tiles; i++)
		buf_printf(&e->text, "%s%%f%u", i ? ", " : "", sum[i / 4][i % 4].n);
	if (a)
		ins(e, "}, {$, $, $, $}, $, #, 1, 1, #", a[0], a[1], a[2], a[3], b_at, keeps, b->transposed);
	else
		ins(e, "}, $, $, #, 1, 1, #, #", a_at, b_at, keeps, a_tiled->transposed, b->transposed);
}

/* ---- products of rows ---- */

static Tiled weights_tiled(Kernel *k, const DeviceStep *s, uint32_t step)
{
	const Bf16Region *w = bf16_region(k, s);
	uint32_t eight = 8 * w->pitch, tile = bf16_tile_stride(k);

	if (s->after != AFTER_DELTAS) /* sums over sources */
		return (Tiled){ w->at + 2 * eight * step, eight, tile, true };
	return (Tiled){ w->at + 2 * tile * step, tile, eight, false };
}

static bool from_zero(const Kernel *k, const DeviceStep *s) { return s->start == k->s->job->zero; }

/* Operands of two steps are made of bits while products of those before are under way. */
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
		products_begin(e);
		for (uint32_t i = 0; i < 2 && step + i < steps; i++) {
			Tiled b = weights_tiled(k, s, step + i);
			product(k, sum, tiles, f[i], NULL, &b, step + i || !from_zero(k, s));
		}
		products_commit(e);
		if (step)
			products_wait(e, 1);
	}
	products_wait(e, 0);
}

void wgmma_step(Kernel *k, const DeviceStep *s, uint32_t step, Reg (*a)[2], uint32_t tiles, Reg (*sum)[4])
{
	Tiled b = weights_tiled(k, s, step);
	Reg f[4];

	for (uint32_t i = 0; i < 4; i++)
		f[i] = a[2 * step + i / 2][i % 2];
	products_begin(k->e);
	product(k, sum, tiles, f, NULL, &b, step || !from_zero(k, s));
	products_commit(k->e);
}

void wgmma_wait_all(Kernel *k) { products_wait(k->e, 0); }

void wgmma_from_registers(Kernel *k, const DeviceStep *s, Reg (*a)[2], uint32_t tiles, Reg (*sum)[4])
{
	for (uint32_t step = 0; step < ceil_div(s->depth, 16); step++)
		wgmma_step(k, s, step, a, tiles, sum);
	wgmma_wait_all(k);
}

/* ---- gradients ---- */

/* What a warpgroup has of the gradients; a warp has tiles of their sums, one part after the other. */
typedef struct GroupTask {
	bool inputs, left, outputs;      /* weights from 64 inputs, from those that are left, to outputs */
	uint32_t at_out, at_left, tiles; /* in Bf16.sum */
} GroupTask;

static GroupTask task_of(const Kernel *k, uint32_t group)
{
	GroupTask t = { .inputs = group < input_blocks(k), .outputs = group == WARPGROUP_SIDE };

	t.left = group == WARPGROUPS - 1 && inputs_left(k);
	t.at_out = t.inputs ? columns_tiles(k, WEIGHTS_IN) : 0;
	t.at_left = t.at_out + (t.outputs ? columns_tiles(k, WEIGHTS_OUT) : 0);
	t.tiles = t.at_left + (t.left ? LEFT_TILES : 0);
	return t;
}

/* The one after those from this one on that have the same code. */
static uint32_t groups_alike(const Kernel *k, uint32_t group)
{
	GroupTask t = task_of(k, group);
	uint32_t end = group + 1;

	while (end < WARPGROUPS && task_of(k, end).inputs == t.inputs && task_of(k, end).left == t.left)
		end++;
	return end;
}

/* if (the warp is of one of these warpgroups) */
static uint32_t if_groups(Kernel *k, uint32_t first, uint32_t end)
{
	Reg from = add(k->e, k->bf16->warp, imm(0u - WARPGROUP_WARPS * first));

	return if_begin(k->e, less(k->e, from, imm(WARPGROUP_WARPS * (end - first))));
}

static Reg warp_of_group(Kernel *k) { return op2(k->e, REG_R, "and.b32", k->bf16->warp, imm(WARPGROUP_WARPS - 1)); }

/* Columns of rows, which are summed over. */
static Tiled columns_tiled(const Kernel *k, uint32_t buf, uint32_t col, uint32_t row)
{
	const Bf16 *h = k->bf16;

	return (Tiled){ h->at_rows + bf16_column(k, buf, col) + row * h->row, 8 * h->row, bf16_tile_stride(k), true };
}

static void words_load(Kernel *k, Reg at, uint32_t row, Reg word[2])
{
	for (uint32_t r = 0; r < 2; r++)
		word[r] = load(k->e, REG_R, "ld.shared.u32", at, row / SLICE * k->bf16->transposed_row + 32 * r);
}

/* Operands of a slice, from words of inputs. */
static void inputs_make(Kernel *k, Reg at, uint32_t row, Reg f[2][4])
{
	Reg word[2];

	words_load(k, at, row, word);
	bits_fragments(k, word, 2, f);
}

static void inputs_products(Kernel *k, uint32_t row, Reg (*f)[4], Reg (*sum)[4])
{
	Sides s = sides(k, WEIGHTS_IN);

	for (uint32_t step = 0; step < SLICE_STEPS; step++) {
		Tiled deltas = columns_tiled(k, s.target_buf, s.target_col, row + 16 * step);
		product(k, sum, columns_tiles(k, WEIGHTS_IN), f[step], NULL, &deltas, step);
	}
}

static void outputs_products(Kernel *k, uint32_t row, Reg (*sum)[4])
{
	Sides s = sides(k, WEIGHTS_OUT);

	for (uint32_t step = 0; step < SLICE_STEPS; step++) {
		Tiled units = columns_tiled(k, s.source_buf, s.source_col, row + 16 * step);
		Tiled deltas = columns_tiled(k, s.target_buf, s.target_col, row + 16 * step);
		product(k, sum, columns_tiles(k, WEIGHTS_OUT), NULL, &units, &deltas, step);
	}
}

/* Inputs that are left: address of their words, and of deltas of the warp's columns. */
typedef struct LeftPlaces {
	Reg bits, cols;
} LeftPlaces;

static LeftPlaces left_places(Kernel *k)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	Sides s = sides(k, WEIGHTS_IN);
	Reg lane = op2(e, REG_R, "and.b32", h->lane, imm(15)), eight = divide(e, h->lane, 16);
	Reg tile = mad(e, warp_of_group(k), LEFT_TILES, eight);
	Reg cols = add(e, core_matrix_offset(e, h->row, lane, mul(e, tile, 8)), k->memory);

	return (LeftPlaces){ bits_input_at(k, input_bits(k, WEIGHTS_IN), imm(WARPGROUP_ROWS * input_blocks(k))),
		                 add(e, cols, imm(h->at_rows + bf16_column(k, s.target_buf, s.target_col))) };
}

static void left_products(Kernel *k, const LeftPlaces *p, uint32_t row, Reg (*sum)[4])
{
	Reg f[2][4], b[4], zero[4];

	mma_zeros_new(k->e, zero);
	inputs_make(k, p->bits, row, f);
	for (uint32_t step = 0; step < SLICE_STEPS; step++) {
		fragments_load(k, b, 4, true, p->cols, (row + 16 * step) * k->bf16->row);
		for (uint32_t j = 0; j < LEFT_TILES; j++)
			multiply_add(k->e, sum[j], f[step], b + 2 * j, step ? NULL : zero);
	}
}

/* Inputs that are left, before others: slices of a full chunk are under way together, as mma waits for products of
 * warpgroups. */
static void left_add(Kernel *k, const GroupTask *t)
{
	Emit *e = k->e;
	uint32_t slices = k->block_rows / SLICE, end = label(e);
	LeftPlaces left = left_places(k);
	Reg slice[MOST_SLICES][LEFT_TILES][4], f[MOST_SLICES][2][4], b[4], zero[4];

	uint32_t some = if_begin(e, op2(e, REG_P, "setp.gt.u32", k->my_rows, imm(SLICE * (slices - 1)))); /* all */
	mma_zeros_new(e, zero);
	for (uint32_t i = 0; i < slices; i++) {
		mma_sums_new(k->e, slice[i], LEFT_TILES);
		inputs_make(k, left.bits, SLICE * i, f[i]);
	}
	for (uint32_t step = 0; step < SLICE_STEPS; step++)
		for (uint32_t i = 0; i < slices; i++) {
			fragments_load(k, b, 4, true, left.cols, (SLICE * i + 16 * step) * k->bf16->row);
			for (uint32_t j = 0; j < LEFT_TILES; j++)
				multiply_add(e, slice[i][j], f[i][step], b + 2 * j, step ? NULL : zero);
		}
	for (uint32_t i = 0; i < slices; i++)
		mma_sums_add(e, k->bf16->sum + t->at_left, slice[i], LEFT_TILES);
	ins(e, "bra L#", end);
	if_end(e, some);
	for (uint32_t i = 0; i + 1 < slices; i++) {
		ins(e, "@$ bra L#", op2(e, REG_P, "setp.le.u32", k->my_rows, imm(SLICE * i)), end);
		mma_sums_new(k->e, slice[i], LEFT_TILES);
		left_products(k, &left, SLICE * i, slice[i]);
		mma_sums_add(e, k->bf16->sum + t->at_left, slice[i], LEFT_TILES);
	}
	label_here(e, end);
}

/* Operands of the next slice are made while products are under way. */
static void slices_add(Kernel *k, const GroupTask *t)
{
	Emit *e = k->e;
	uint32_t end = label(e);
	Reg word[MOST_SLICES][2], f[2][4], slice[2 * MOST_TILES][4];

	if (t->left)
		left_add(k, t);
	if (t->inputs) {
		Reg bits = bits_input_at(k, input_bits(k, WEIGHTS_IN), mul(e, k->bf16->warp, 16));
		for (uint32_t row = 0; row < k->block_rows; row += SLICE) /* all are under way together */
			words_load(k, bits, row, word[row / SLICE]);
		bits_fragments(k, word[0], 2, f);
	}
	for (uint32_t row = 0; row < k->block_rows; row += SLICE) {
		ins(e, "@$ bra L#", op2(e, REG_P, "setp.le.u32", k->my_rows, imm(row)), end);
		mma_sums_new(k->e, slice, t->at_left);
		products_begin(e);
		if (t->inputs)
			inputs_products(k, row, f, slice);
		if (t->outputs)
			outputs_products(k, row, slice + t->at_out);
		products_commit(e);
		if (t->inputs && row + SLICE < k->block_rows)
			bits_fragments(k, word[row / SLICE + 1], 2, f);
		products_wait(e, 0);
		mma_sums_add(e, k->bf16->sum, slice, t->at_left);
	}
	label_here(e, end);
}

void warpgroup_gradient(Kernel *k, uint32_t group)
{
	uint32_t last = group == WARPGROUP_SIDE ? WARPGROUP_SIDE + 1 : WARPGROUPS;

	for (uint32_t g = group, end; g < last; g = end) {
		GroupTask t = task_of(k, g);
		end = groups_alike(k, g);
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
 * Rounded ones are in tiles, rows are sources. Floats and rule state are as warps have sums of them: tiles of 16 x 8,
 * 512 bytes, 16 of a lane. */

enum { KEPT_TILE = 512 };

static uint32_t kept_first(const Kernel *k, uint32_t number)
{
	return number == WEIGHTS_IN ? 0 : rows_tiles(k, WEIGHTS_IN) * columns_tiles(k, WEIGHTS_IN);
}

static uint32_t variables(const Kernel *k)
{
	return formula_uses(k->s->formula, OP_LOAD) | formula_uses(k->s->formula, OP_STORE);
}

void warpgroup_region(Bf16Region *r, bool by_target)
{
	r->by_target = by_target;
	r->space = (uint32_t)round_up(by_target ? r->row : r->rows, 16);
	r->pitch = (uint32_t)round_up(by_target ? r->rows : r->row, 16) * 2;
}

void warpgroup_kept_plan(Kernel *k)
{
	uint32_t tiles = kept_first(k, WEIGHTS_OUT) + rows_tiles(k, WEIGHTS_OUT) * columns_tiles(k, WEIGHTS_OUT);

	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		if (variables(k) >> v & 1)
			k->bf16->panel[0].at[v] = shared_take(k, (uint64_t)tiles * KEPT_TILE);
}

Reg core_matrix_offset(Emit *e, uint32_t pitch, Reg row, Reg col)
{
	Reg tile = mad(e, divide(e, row, 8), 8 * pitch, mul(e, divide(e, col, 8), 128));
	Reg here = mad(e, modulo(e, row, 8, divide(e, row, 8)), 16, mul(e, modulo(e, col, 8, divide(e, col, 8)), 2));

	return add(e, tile, here);
}

/* Between global and shared memory, one by one: when a job begins and ends. */
void warpgroup_kept_move(Kernel *k, bool out)
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < GRADIENTS; i++) {
		const DevicePanel *p = panel(k, i);
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
			if (!(variables(k) >> v & 1))
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

/* A part of a gradient: a tile of 16 rows, some tiles of 8 columns. */
typedef struct SumPart {
	uint32_t number, tiles;
	Reg down, across;       /* first tile */
	uint32_t rows, columns; /* its rows and columns are below these */
	Reg (*sum)[4];
} SumPart;

typedef struct PartPlaces {
	Reg kept, half; /* addresses of the lane's numbers in the first tile */
	Reg row[2], col;
	const Bf16Region *region;
	const WeightRegion *start; /* that sums begin with */
	bool has_last;             /* the last row, of weights from the true unit, may be among its rows */
} PartPlaces;

static PartPlaces part_places(Kernel *k, const SumPart *x)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	const DevicePanel *p = panel(k, x->number);
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
	Reg half = mad(e, x->down, 16 * t.region->pitch, mad(e, x->across, bf16_tile_stride(k), k->memory));
	t.half = add(e, mad(e, h->lane, 4, half), imm(t.region->at));
	for (uint32_t r = 0; r < 2; r++)
		t.row[r] = add(e, mad(e, x->down, 16, h->row_of_lane), imm(8 * r));
	t.col = mad(e, x->across, 8, h->col_of_lane);
	return t;
}

/* New weights of a row of a tile: rounded; those from the true unit. */
static void pair_store(Kernel *k, const SumPart *x, const PartPlaces *t, uint32_t j, uint32_t r, const Reg w[2])
{
	Emit *e = k->e;
	const DevicePanel *p = panel(k, x->number);
	uint32_t at = 8 * r * t->region->pitch + bf16_tile_stride(k) * j, columns = sides(k, x->number).targets;
	bool checks = x->columns > columns;
	Reg half = bf16_pair(e, w[0], w[1]), col = add(e, t->col, imm(8 * j)), is = reg(e, REG_P);

	if (columns % 2) /* past the last is 0 */
		half = op3(e, REG_R, "selp.u32", half, op2(e, REG_R, "and.b32", half, imm(0xffff)),
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
		ins(e, "@$ st.shared.u32 [$+#], $", is, t->half, at, half);
	else
		ins(e, "st.shared.u32 [$+#], $", t->half, at, half);
}

/* The rule for a tile. value: weights and state */
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

/* Loads of some tiles come first, so that they are under way together. */
static void part_apply(Kernel *k, const SumPart *x)
{
	enum { AT_ONCE = 4 };
	Emit *e = k->e;
	const uint32_t *kept = k->bf16->panel[0].at;
	uint32_t loads = formula_uses(k->s->formula, OP_LOAD), stores = formula_uses(k->s->formula, OP_STORE);
	PartPlaces t = part_places(k, x);
	PlaceNumbers own = known_numbers(k, k->numbers, &k->s->factor[panel(k, x->number)->factor]);
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
	uint32_t in = columns_tiles(k, WEIGHTS_IN), out = columns_tiles(k, WEIGHTS_OUT);
	uint32_t full = WARPGROUP_WARPS * input_blocks(k);
	Reg own = warp_of_group(k);

	if (t->inputs)
		part_apply(k, &(SumPart){ WEIGHTS_IN, in, h->warp, imm(0), 16 * full, 8 * in, h->sum });
	if (t->outputs) {
		uint32_t none = if_begin(e, less(e, own, imm(rows_tiles(k, WEIGHTS_OUT))));
		part_apply(k, &(SumPart){ WEIGHTS_OUT, out, own, imm(0), WARPGROUP_ROWS, 8 * out, h->sum + t->at_out });
		if_end(e, none);
	}
	uint32_t at_once = in == MOST_TILES ? LEFT_TILES : 1;
	for (uint32_t j = 0; t->left && j < LEFT_TILES; j += at_once) {
		Reg across = add(e, mul(e, own, LEFT_TILES), imm(j));
		uint32_t none = if_begin(e, less(e, across, imm(in)));
		part_apply(
			k, &(SumPart){ WEIGHTS_IN, at_once, imm(full), across, 16 * (full + 1), 8 * in, h->sum + t->at_left + j });
		if_end(e, none);
	}
}

void warpgroup_apply(Kernel *k, uint32_t group)
{
	uint32_t last = group == WARPGROUP_SIDE ? WARPGROUP_SIDE + 1 : WARPGROUPS;

	for (uint32_t g = group, end; g < last; g = end) {
		GroupTask t = task_of(k, g);
		end = groups_alike(k, g);
		uint32_t others = if_groups(k, g, end);
		task_apply(k, &t);
		if_end(k->e, others);
	}
	async_proxy_fence(k);
}
