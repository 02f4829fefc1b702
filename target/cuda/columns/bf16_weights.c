/* SPDX-License-Identifier: MIT */
/* Gradient and rule, bf16. In: bf16 activations and deltas. Out: new weights and rule state; new bf16 weights in all
 * blocks that use them. Must hold: rows of a slice are added in steps of 16 from 0 on, slice sums in order. */
#include "columns.h"

enum { TILE = 512, SLICE = 32 };

static void sums_start(Emit *e, Reg sum[4], float value)
{
	for (uint32_t i = 0; i < 4; i++)
		sum[i] = op1(e, REG_F, "mov.f32", imm_f(value));
}

/* ---- output weights: sums of the block's slices ---- */

/* A tile of the gradient, summed over a slice of the block's rows. */
typedef struct SliceSum {
	Reg a, b;    /* addresses of operands */
	Reg to, bar; /* cluster addresses: of the sums, of their barrier */
	Reg sum[4];
	Reg fa[2][4], fb[2][2]; /* fragments of two steps */
} SliceSum;

static SliceSum slice_sum_new(Columns *c, Reg tile)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Reg down = divide(e, tile, h->unit_tiles), across = modulo(e, tile, h->unit_tiles, down);
	Reg slot = divide(e, tile, c->blocks), rank = modulo(e, tile, c->blocks, slot);
	Reg to = add(e, mad(e, slot, TILE, mad(e, c->reg.lane, 16, k->memory)), imm(h->smem.slice_sums));
	SliceSum x;

	x.a = add(e, add(e, mad(e, down, 32, k->memory), ldmatrix_offset(k, h->smem.delta_row, true)),
	          imm(h->smem.delta_bf16));
	x.b = add(e, add(e, mad(e, across, 16, k->memory), ldmatrix_offset(k, h->smem.act_row, false)),
	          imm(h->smem.act_bf16));
	rank = op2(e, REG_R, "sub.u32", imm(c->blocks - 1), rank);
	x.to = cluster_address(c, rank, mad(e, mul(e, k->member, k->block_rows / SLICE), h->smem.block_master_size, to));
	x.bar = cluster_address(c, rank, bar_address(c, BAR_DELTA));
	return x;
}

void bf16_slice_sums(Columns *c, uint32_t first, uint32_t warps)
{
	enum { AT_ONCE = 2 };
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	uint32_t tiles = h->output_tiles * h->unit_tiles, at_once = tiles % (AT_ONCE * warps) == 0 ? AT_ONCE : 1;
	Reg zero[4];

	remark(e, "sums of weights to outputs");
	sums_start(e, zero, 0);
	Loop l = loop_begin(e, op2(e, REG_R, "sub.u32", c->reg.warp, imm(first)), imm(tiles), at_once * warps);
	SliceSum x[AT_ONCE];
	for (uint32_t i = 0; i < at_once; i++)
		x[i] = slice_sum_new(c, add(e, l.i, imm(i * warps)));
	for (uint32_t s = 0; s < k->block_rows / SLICE; s++) {
		for (uint32_t i = 0; i < 2 * at_once; i++) {
			SliceSum *d = &x[i / 2];
			fragments_load(k, d->fa[i % 2], 4, true, d->a, (SLICE * s + 16 * (i % 2)) * h->smem.delta_row);
			fragments_load(k, d->fb[i % 2], 2, true, d->b, (SLICE * s + 16 * (i % 2)) * h->smem.act_row);
		}
		for (uint32_t i = 0; i < at_once; i++)
			for (uint32_t j = 0; j < 4; j++)
				x[i].sum[j] = reg(e, REG_F);
		for (uint32_t i = 0; i < 2 * at_once; i++)
			multiply_add(e, x[i % at_once].sum, x[i % at_once].fa[i / at_once], x[i % at_once].fb[i / at_once],
			             i < at_once ? zero : NULL);
		for (uint32_t i = 0; i < at_once; i++)
			quad_send(c, imm(1), x[i].to, s * h->smem.block_master_size, x[i].sum, x[i].bar);
	}
	loop_end(e, &l);
}

/* ---- output weights: the block's tiles ---- */

/* A fragment has pairs of two rows 8 apart: two adjacent lanes exchange pairs, so that each has a quad of one row. */
static void lanes_quad(Columns *c, const Reg sum[4], Reg q[4])
{
	Emit *e = c->k->e;
	Reg odd = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", c->reg.lane, imm(1)), imm(0)), other[2];

	for (uint32_t i = 0; i < 2; i++) {
		Reg send = op3(e, REG_F, "selp.f32", sum[i], sum[2 + i], odd);
		other[i] = op1(e, REG_F, "mov.b32", lanes_xor(e, op1(e, REG_R, "mov.b32", send), 1));
	}
	for (uint32_t i = 0; i < 2; i++) {
		q[i] = op3(e, REG_F, "selp.f32", other[i], sum[i], odd);
		q[2 + i] = op3(e, REG_F, "selp.f32", sum[2 + i], other[i], odd);
	}
}

/* Block i, counted from this one on: not all blocks send to the same one at the same time. */
static Reg rotated_rank(Columns *c, uint32_t i)
{
	Emit *e = c->k->e;
	Reg rank = add(e, c->k->member, imm(i));

	return op3(e, REG_R, "selp.u32", rank, add(e, rank, imm(-c->blocks)), less(e, rank, imm(c->blocks)));
}

/* Sends new weights of a tile to all blocks, for the next update: 8 bytes per lane, contiguous. */
static void tile_send(Columns *c, Reg down, Reg across, const Reg w[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Reg base = add(e, mad(e, op2(e, REG_R, "xor.b32", c->reg.parity, imm(1)), h->smem.output_w_size, k->memory),
	               imm(h->smem.output_w));
	Reg row = mad(e, op2(e, REG_R, "and.b32", c->reg.lane, imm(1)), 8, k->bf16->row_of_lane), q[4], v[4], half[2], bar;
	Reg quad = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", c->reg.lane, imm(1)), imm(1));
	Reg col = mad(e, across, 8, mul(e, quad, 4)), to = mad(e, across, h->smem.output_w_tile, mad(e, down, 256, base));

	to = mad(e, row, 16, mad(e, quad, 8, to));
	lanes_quad(c, w, q);
	for (uint32_t i = 0; i < 4; i++)
		v[i] = op3(e, REG_F, "selp.f32", q[i], imm_f(0), less(e, add(e, col, imm(i)), imm(c->hidden)));
	for (uint32_t i = 0; i < 2; i++)
		half[i] = bf16_pair(e, v[2 * i], v[2 * i + 1]);
	bar = bar_address(c, BAR_ACT);
	uint32_t none = if_begin(e, less(e, across, imm((uint32_t)ceil_div(c->hidden, 8))));
	for (uint32_t i = 0; i < c->blocks; i++) {
		Reg rank = rotated_rank(c, i);
		words_send(c, imm(1), cluster_address(c, rank, to), 0, half, 2, cluster_address(c, rank, bar));
	}
	if_end(e, none);
	if (c->output_panel->bias == NO_BIAS)
		return;
	uint32_t other = if_begin(e, same(e, across, imm(c->hidden / 8)));
	Reg own = mad(e, down, 16, row), bias = op1(e, REG_R, "mov.b32", q[c->hidden % 4]);
	Reg is = op2(e, REG_P, "and.pred", same(e, col, imm(c->hidden & ~3u)), less(e, own, imm(c->outputs)));
	Reg start = add(e, mad(e, own, 4, base), imm(h->smem.output_start));
	for (uint32_t i = 0; i < c->blocks; i++) {
		Reg rank = rotated_rank(c, i);
		words_send(c, is, cluster_address(c, rank, start), 0, &bias, 1, cluster_address(c, rank, bar));
	}
	if_end(e, other);
}

static void block_tile_update(Columns *c, const PlaceNumbers *n, uint32_t slot)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Reg tile = bf16_block_tile(c, slot), down = divide(e, tile, h->unit_tiles),
		across = modulo(e, tile, h->unit_tiles, down);
	Reg at = mad(e, c->reg.lane, 16, k->memory), sum[4], (*x)[4];

	uint32_t none = if_begin(e, less(e, tile, imm(h->output_tiles * h->unit_tiles)));
	x = (Reg(*)[4])NEW(&k->s->cx->scratch, 4 * (size_t)h->slices, Reg);
	for (uint32_t s = 0; s < h->slices; s++)
		load_quad(e, "shared", x[s], at, h->smem.slice_sums + s * h->smem.block_master_size + slot * TILE);
	for (uint32_t i = 0; i < 4; i++)
		sum[i] = op1(e, REG_F, "mov.f32", x[0][i]);
	for (uint32_t s = 1; s < h->slices; s++)
		for (uint32_t i = 0; i < 4; i++)
			ins(e, "add.rn.ftz.f32 $, $, $", sum[i], sum[i], x[s][i]);
	Reg own = add(e, at, imm(h->smem.block_master + slot * TILE));
	RuleQuad q = { .weight = own, .at = own, .size = h->smem.block_master_size };
	quad_update(c, n, sum, &q);
	tile_send(c, down, across, q.v[1]);
	if_end(e, none);
}

/* Declares the slice sums of the next update. */
static void slice_sums_expect(Columns *c)
{
	Emit *e = c->k->e;
	const Bf16Columns *h = c->bf16;
	uint32_t other = if_begin(e, same(e, c->reg.lane, imm(0)));
	Reg tiles = op1(e, REG_R, "mov.u32", imm(0));

	for (uint32_t slot = 0; slot < h->block_tiles; slot++)
		ins(e, "@$ add.u32 $, $, 1", less(e, bf16_block_tile(c, slot), imm(h->output_tiles * h->unit_tiles)), tiles,
		    tiles);
	bar_expect(c, BAR_DELTA, mul(e, tiles, h->slices * TILE));
	if_end(e, other);
}

/* Parameters in shared memory are those of this update until the prefetching warp passes NAMED_END. */
void bf16_output_weights_loop(Columns *c)
{
	Emit *e = c->k->e;

	remark(e, "weights to outputs, bf16");
	slice_sums_expect(c);
	UpdateLoop l = updates_begin(c);
	go_wait(c);
	PlaceNumbers n = params_load(c, c->output_panel);
	bar_wait(c, bar_address(c, BAR_DELTA), c->reg.parity);
	slice_sums_expect(c);
	for (uint32_t slot = 0; slot < c->bf16->block_tiles; slot++)
		block_tile_update(c, &n, slot);
	warps_arrive(c, imm(NAMED_END), c->warps + 2);
	updates_end(c, &l);
}

/* ---- input weights ---- */

/* Adjacent tiles of 16 inputs by 8 columns, of a warp. */
struct InputTiles {
	Reg tile;         /* number among the block's tiles of inputs */
	Reg first;        /* next slice */
	Reg a, b;         /* addresses of the lane's inputs and deltas in that slice */
	uint32_t slices;  /* in registers at the same time */
	Reg (*own)[4];    /* [slices][tiles] sum of a slice */
	Reg (*sum)[4];    /* [tiles] sum of all slices so far */
	Reg (*f)[2][4];   /* [slices] fragments of inputs */
	RuleQuad *weight; /* [tiles] */
	PlaceNumbers rule;
};
typedef struct InputTiles InputTiles;

/* Fragments of inputs: a slice. */
static void slice_fragments(Columns *c, const InputTiles *x, uint32_t slice)
{
	Kernel *k = c->k;
	Reg word[2];

	for (uint32_t r = 0; r < 2; r++)
		word[r] = load(k->e, REG_R, "ld.shared.u32", x->a, slice * k->bf16->transposed_row + 32 * r);
	bits_fragments(k, word, 2, x->f[slice]);
}

static void slice_multiply(Columns *c, const InputTiles *x, uint32_t slice, const Reg zero[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;

	for (uint32_t j = 0; j < h->col_tiles; j++) {
		Reg d[4], *own = x->own[slice * h->col_tiles + j];
		for (uint32_t i = 0; i < 4; i++)
			own[i] = reg(e, REG_F);
		fragments_load(k, d, 4, true, x->b, slice * SLICE * h->smem.hidden_delta_row + 16 * j);
		multiply_add(e, own, x->f[slice][0], d, zero);
		multiply_add(e, own, x->f[slice][1], d + 2, NULL);
	}
}

/* Sums of the warp's slices. Fragments of the first `ahead` were made before. */
static void slices_multiply(Columns *c, const InputTiles *x, uint32_t ahead)
{
	Reg zero[4];

	sums_start(c->k->e, zero, 0);
	for (uint32_t s = 0; s < x->slices; s++) {
		if (s >= ahead)
			slice_fragments(c, x, s);
		slice_multiply(c, x, s, zero);
	}
}

/* Adds sums of slices that have rows, in order. */
static void slices_join(Columns *c, const InputTiles *x)
{
	Emit *e = c->k->e;
	uint32_t tiles = c->bf16->col_tiles;

	for (uint32_t s = 0; s < x->slices; s++) {
		Reg is = less(e, mul(e, add(e, x->first, imm(s)), SLICE), c->reg.rows);
		for (uint32_t i = 0; i < 4 * tiles; i++) {
			Reg sum = x->sum[i / 4][i % 4];
			ins(e, "@$ add.rn.ftz.f32 $, $, $", is, sum, sum, x->own[s * tiles + i / 4][i % 4]);
		}
	}
}

/* Block i of the others that have the same columns. */
static Reg other_share(Columns *c, uint32_t i)
{
	Emit *e = c->k->e;
	const Bf16Columns *h = c->bf16;
	Reg share = add(e, h->share, imm(i + 1));

	share = op3(e, REG_R, "selp.u32", share, add(e, share, imm(-h->shares)), less(e, share, imm(h->shares)));
	return mad(e, h->group, h->shares, share);
}

/* Stores new weights of a tile in all blocks that have the columns: bf16, or initial values of sums. Tiles of 16 inputs
 * take a path without branches. */
static void tile_publish(Columns *c, Reg row, uint32_t j, const Reg w[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Reg own = add(e, k->bf16->col_of_lane, imm(8 * j)), bar = bar_address(c, BAR_INPUT_W);
	Reg to = add(e, mad(e, row, h->smem.input_w_row, mad(e, own, 2, k->memory)), imm(h->smem.input_w)), half[2];
	Reg start = add(e, mad(e, own, 4, k->memory), imm(h->smem.hidden_start));
	Reg first = op2(e, REG_R, "sub.u32", row, k->bf16->row_of_lane);
	uint32_t end = label(e);

	for (uint32_t r = 0; r < 2; r++)
		half[r] = bf16_pair(e, w[2 * r], w[2 * r + 1]);
	uint32_t some = if_begin(e, less(e, first, imm(c->inputs < 16 ? 0 : c->inputs - 15)));
	for (uint32_t i = 0; i < h->shares - 1; i++) {
		Reg rank = other_share(c, i), there = cluster_address(c, rank, bar), at = cluster_address(c, rank, to);
		for (uint32_t r = 0; r < 2; r++)
			words_send(c, imm(1), at, 8 * r * h->smem.input_w_row, half + r, 1, there);
	}
	for (uint32_t r = 0; r < 2; r++)
		ins(e, "st.shared.u32 [$+#], $", to, 8 * r * h->smem.input_w_row, half[r]);
	ins(e, "bra L#", end);
	if_end(e, some);
	for (uint32_t r = 0; r < 2; r++) {
		Reg at = add(e, row, imm(8 * r)), is_input = less(e, at, imm(c->inputs)), bias[2];
		Reg is_bias = same(e, at, imm(c->inputs));
		for (uint32_t i = 0; i < 2; i++)
			bias[i] = op1(e, REG_R, "mov.b32", w[2 * r + i]);
		ins(e, "@$ st.shared.u32 [$+#], $", is_input, to, 8 * r * h->smem.input_w_row, half[r]);
		if (c->input_panel->bias != NO_BIAS)
			ins(e, "@$ st.shared.v2.u32 [$], {$, $}", is_bias, start, bias[0], bias[1]);
		for (uint32_t i = 0; i < h->shares - 1; i++) {
			Reg rank = other_share(c, i), there = cluster_address(c, rank, bar);
			words_send(c, is_input, cluster_address(c, rank, to), 8 * r * h->smem.input_w_row, half + r, 1, there);
			if (c->input_panel->bias != NO_BIAS)
				words_send(c, is_bias, cluster_address(c, rank, start), 0, bias, 2, there);
		}
	}
	label_here(e, end);
}

/* Loads parameters of the rule, master weights and their state. */
static void weights_load(Columns *c, InputTiles *x)
{
	Emit *e = c->k->e;
	const Bf16Columns *h = c->bf16;

	x->rule = params_load(c, c->input_panel);
	for (uint32_t j = 0; j < h->col_tiles; j++) {
		Reg at = mad(e, mad(e, x->tile, h->col_tiles, imm(j)), TILE, mad(e, c->reg.lane, 16, c->k->memory));
		Reg master = add(e, at, imm(h->smem.input_master));
		x->weight[j] = (RuleQuad){ .weight = master, .at = master, .size = h->smem.input_master_size };
		quad_load(c, &x->weight[j]);
	}
}

/* Applies the rule and publishes new weights. */
static void input_tiles_update(Columns *c, const InputTiles *x)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Reg row = mad(e, add(e, bf16_first_tile(c), x->tile), 16, k->bf16->row_of_lane);

	spent(k, SPENT_KINDS + 8);
	if (h->shares > 1) { /* blocks without rows have used the old weights when their slice sums are here */
		uint32_t all = if_begin(e, less(e, c->reg.rows, imm(16 * (h->shares - 1) + 1)));
		bar_wait(c, bar_address(c, BAR_DELTA), c->reg.parity);
		if_end(e, all);
	}
	for (uint32_t j = 0; j < h->col_tiles; j++) {
		quad_rule(c, &x->rule, x->sum[j], &x->weight[j]);
		tile_publish(c, row, j, x->weight[j].v[1]);
	}
}

static void input_tiles_put(Columns *c, const InputTiles *x)
{
	for (uint32_t j = 0; j < c->bf16->col_tiles; j++)
		quad_put(c, &x->weight[j]);
}

/* Tiles of input tile `tile` of the block; the warp's slices begin with `first`. */
static InputTiles *input_tiles_new(Columns *c, Reg tile, uint32_t first)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Bf16Columns *h = c->bf16;
	Arena *a = &k->s->cx->scratch;
	InputTiles *x = NEW(a, 1, InputTiles);
	Reg input = mul(e, add(e, bf16_first_tile(c), tile), 16), row = add(e, c->reg.lane, imm(first * SLICE));

	*x = (InputTiles){ .tile = tile, .first = reg(e, REG_R), .a = reg(e, REG_R), .b = reg(e, REG_R) };
	for (x->slices = SLICES_KEPT / h->col_tiles; h->slices / h->tile_warps % x->slices;)
		x->slices--;
	x->own = (Reg(*)[4])NEW(a, 4 * (size_t)x->slices * h->col_tiles, Reg);
	x->sum = (Reg(*)[4])NEW(a, 4 * (size_t)h->col_tiles, Reg);
	x->f = (Reg(*)[2][4])NEW(a, 8 * (size_t)x->slices, Reg);
	x->weight = NEW(a, h->col_tiles, RuleQuad);
	ins(e, "mov.u32 $, #", x->first, first);
	ins(e, "add.u32 $, $, #", x->a, bits_input_at(k, h->input, input), first * k->bf16->transposed_row);
	ins(e, "add.u32 $, $, #", x->b, mad(e, row, h->smem.hidden_delta_row, k->memory), h->smem.hidden_delta);
	for (uint32_t j = 0; j < h->col_tiles; j++)
		sums_start(e, x->sum[j], -0.0f);
	return x;
}

/* Input tiles of this block. */
static Reg tiles_down(Columns *c)
{
	Emit *e = c->k->e;
	const Bf16Columns *h = c->bf16;
	Reg first = bf16_first_tile(c), end = op2(e, REG_R, "max.u32", first, imm(h->input_tiles));

	return op2(e, REG_R, "min.u32", op2(e, REG_R, "sub.u32", end, first), imm(h->block_input_tiles));
}

/* ---- a warp has all slices of its tiles ---- */

void bf16_input_weights(Columns *c)
{
	Emit *e = c->k->e;
	const Bf16Columns *h = c->bf16;

	go_wait(c);
	remark(e, "weights from inputs, bf16");
	uint32_t none = if_begin(e, c->reg.has_columns);
	bar_wait(c, bar_address(c, BAR_HIDDEN), c->reg.parity);
	Loop l = loop_begin(e, c->reg.warp, tiles_down(c), c->warps);
	InputTiles *x = input_tiles_new(c, l.i, 0);
	Loop turns = loop_count(e, h->slices / x->slices);
	slices_multiply(c, x, 0);
	slices_join(c, x);
	ins(e, "add.u32 $, $, #", x->first, x->first, x->slices);
	ins(e, "add.u32 $, $, #", x->a, x->a, x->slices * c->k->bf16->transposed_row);
	ins(e, "add.u32 $, $, #", x->b, x->b, x->slices * SLICE * h->smem.hidden_delta_row);
	loop_end(e, &turns);
	weights_load(c, x);
	input_tiles_update(c, x);
	input_tiles_put(c, x);
	loop_end(e, &l);
	if_end(e, none);
	bar_arrive_warp(c, bar_address(c, BAR_INPUT_W));
}

/* ---- two warps divide the slices of a tile: one without rows has the first half, one with rows the rest ---- */

enum { SLICES_AHEAD = 4 }; /* whose fragments of inputs are made before deltas arrive */

/* Named barrier of the two warps of a tile: one that is free. Of 16, 1, 2, 4, 6 and 8 to 11 have other uses. */
static Reg chain_named(Columns *c, Reg tile)
{
	const uint32_t named = 0x0fedc753; /* 4 bits each: BF16_CHAINS of them */
	Emit *e = c->k->e;

	return op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", imm(named), mul(e, tile, 4)), imm(15));
}

static Reg prefix_at(Columns *c, Reg tile)
{
	Emit *e = c->k->e;

	return add(e, mad(e, tile, c->bf16->col_tiles * TILE, mad(e, c->reg.lane, 16, c->k->memory)),
	           imm(c->bf16->smem.prefix));
}

/* Number of the warp's tile. */
static Reg warp_tile(Columns *c, uint32_t half)
{
	return half ? c->reg.warp : op2(c->k->e, REG_R, "sub.u32", c->reg.warp, imm(c->pass_warps));
}

static Reg has_tile(Columns *c, uint32_t half)
{
	return op2(c->k->e, REG_P, "and.pred", c->reg.has_columns, less(c->k->e, warp_tile(c, half), tiles_down(c)));
}

/* A warp without a tile makes fragments of another one's: registers defined in a branch would be live all the time. */
InputTiles *bf16_input_begin(Columns *c, uint32_t half)
{
	Emit *e = c->k->e;
	const Bf16Columns *h = c->bf16;
	Reg last = op2(e, REG_R, "sub.u32", imm(h->input_tiles - 1), bf16_first_tile(c));
	InputTiles *x = input_tiles_new(c, op2(e, REG_R, "min.s32", warp_tile(c, half), last), half * (h->slices / 2));

	for (uint32_t s = 0; s < min_u32(SLICES_AHEAD, x->slices); s++)
		slice_fragments(c, x, s);
	return x;
}

/* Waits for deltas. The word that comes with them says whether the job goes on. */
static void bf16_multiply(Columns *c, const InputTiles *x, uint32_t half)
{
	Emit *e = c->k->e;

	bar_wait(c, bar_address(c, BAR_HIDDEN + half), c->reg.parity);
	spent(c->k, SPENT_KINDS + 7);
	Reg stop = load(e, REG_R, "ld.shared.u32", mad(e, c->reg.parity, 4, c->k->memory), c->smem.stop + 8 * (1 + half));
	slices_multiply(c, x, SLICES_AHEAD);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", stop, imm(0)), c->done);
}

void bf16_input_first(Columns *c, const InputTiles *x)
{
	Emit *e = c->k->e;
	uint32_t end = label(e), none = if_begin(e, has_tile(c, 0));

	bf16_multiply(c, x, 0);
	slices_join(c, x);
	for (uint32_t j = 0; j < c->bf16->col_tiles; j++)
		store_quad(e, "shared", prefix_at(c, x->tile), j * TILE, x->sum[j]);
	warps_arrive(c, chain_named(c, x->tile), 2);
	ins(e, "bra L#", end);
	if_end(e, none);
	go_wait(c);
	label_here(e, end);
	bar_arrive_warp(c, bar_address(c, BAR_INPUT_W));
}

void bf16_input_second(Columns *c)
{
	Emit *e = c->k->e;
	uint32_t end = label(e), none = if_begin(e, has_tile(c, 1));
	InputTiles *x = bf16_input_begin(c, 1);

	bf16_multiply(c, x, 1);
	weights_load(c, x);
	warps_sync(c, chain_named(c, x->tile), 2);
	for (uint32_t j = 0; j < c->bf16->col_tiles; j++)
		load_quad_to(e, "shared", x->sum[j], prefix_at(c, x->tile), j * TILE);
	slices_join(c, x);
	input_tiles_update(c, x);
	bar_arrive_warp(c, bar_address(c, BAR_INPUT_W)); /* others wait for nothing after this */
	input_tiles_put(c, x);
	ins(e, "bra L#", end);
	if_end(e, none);
	go_wait(c);
	bar_arrive_warp(c, bar_address(c, BAR_INPUT_W));
	label_here(e, end);
}
