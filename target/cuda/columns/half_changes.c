/* SPDX-License-Identifier: MIT */
/* bf16: gradients and the rule. In: rounded activations and deltas. Out: new weights and rule state; rounded weights to
 * outputs in all blocks. Must hold: rows of a slice are added in steps of 16 from 0 on, sums of slices in order. */
#include "columns.h"

enum { TILE = 512, SLICE = 32 };

static void sums_start(Emit *e, Reg sum[4], float value)
{
	for (uint32_t i = 0; i < 4; i++)
		sum[i] = op1(e, REG_F, "mov.f32", imm_f(value));
}

/* ---- weights to outputs: sums of the block's slices ---- */

void half_dense(Columns *c, uint32_t first, uint32_t warps)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	uint32_t a_pitch = h->delta_pitch, b_pitch = h->act_pitch;
	Reg zero[4];

	remark(e, "sums of weights to outputs");
	sums_start(e, zero, 0);
	Reg own = op2(e, REG_R, "sub.u32", c->warp, imm(first)), bar = bar_at(c, BAR_DELTA);
	Loop l = loop_begin(e, own, imm(h->to_down * h->to_across), warps);
	Reg down = divide(e, l.i, h->to_across), across = modulo(e, l.i, h->to_across, down);
	Reg a = add(e, add(e, mad(e, down, 32, k->memory), lane_place(k, a_pitch, true)), imm(h->at_delta_h));
	Reg b = add(e, add(e, mad(e, across, 16, k->memory), lane_place(k, b_pitch, false)), imm(h->at_act_h));
	Reg slot = divide(e, l.i, c->blocks), rank = modulo(e, l.i, c->blocks, slot);
	rank = op2(e, REG_R, "sub.u32", imm(c->blocks - 1), rank);
	Reg to = add(e, mad(e, slot, TILE, mad(e, c->lane, 16, k->memory)), imm(h->at_sums));
	Reg number = mul(e, k->member, k->block_rows / SLICE);
	to = remote(c, rank, mad(e, number, h->own_size, to));
	bar = remote(c, rank, bar);
	for (uint32_t s = 0; s < k->block_rows / SLICE; s++) {
		Reg sum[4], fa[4], fb[2];
		sums_start(e, sum, 0);
		for (uint32_t step = 0; step < 2; step++) {
			fragments_load(k, fa, 4, true, a, (SLICE * s + 16 * step) * a_pitch);
			fragments_load(k, fb, 2, true, b, (SLICE * s + 16 * step) * b_pitch);
			multiply_add(e, sum, fa, fb, step ? NULL : zero);
		}
		quad_send(c, less(e, imm(0), imm(1)), to, s * h->own_size, sum, bar);
	}
	loop_end(e, &l);
}

/* ---- weights to outputs: the block's tiles ---- */

/* Of a tile, a quad of weights of each lane. */
typedef struct SentQuad {
	Reg row, col, w[4];
	Reg is_row, is_bias; /* P */
	Reg half[2];
} SentQuad;

/* Sums of a lane are pairs of rows 8 apart: two lanes make quads of them, the first one of the upper row. */
static void lanes_quad(Columns *c, const Reg sum[4], Reg q[4])
{
	Emit *e = c->k->e;
	Reg odd = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", c->lane, imm(1)), imm(0)), other[2];

	for (uint32_t i = 0; i < 2; i++) {
		Reg send = op3(e, REG_F, "selp.f32", sum[i], sum[2 + i], odd);
		other[i] = op1(e, REG_F, "mov.b32", lanes_xor(e, op1(e, REG_R, "mov.b32", send), 1));
	}
	for (uint32_t i = 0; i < 2; i++) {
		q[i] = op3(e, REG_F, "selp.f32", other[i], sum[i], odd);
		q[2 + i] = op3(e, REG_F, "selp.f32", sum[2 + i], other[i], odd);
	}
}

static SentQuad sent_quad(Columns *c, Reg down, Reg across, const Reg w[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg odd = op2(e, REG_R, "and.b32", c->lane, imm(1)), v[4];
	Reg quad = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", c->lane, imm(1)), imm(1));
	SentQuad q = { .row = add(e, mad(e, down, 16, k->half->row_of_lane), mul(e, odd, 8)) };

	q.col = mad(e, across, 8, mul(e, quad, 4));
	lanes_quad(c, w, q.w);
	q.is_row = less(e, q.row, imm(c->outputs));
	q.is_bias = op2(e, REG_P, "and.pred", same(e, q.col, imm(c->hidden & ~3u)), q.is_row);
	q.is_row = op2(e, REG_P, "and.pred", q.is_row, less(e, q.col, imm(c->hidden)));
	for (uint32_t i = 0; i < 4; i++)
		v[i] = c->hidden % 4 == 0
		           ? q.w[i]
		           : op3(e, REG_F, "selp.f32", q.w[i], imm_f(0), less(e, add(e, q.col, imm(i)), imm(c->hidden)));
	q.half[0] = half_pair(e, v[0], v[1]);
	q.half[1] = half_pair(e, v[2], v[3]);
	return q;
}

/* New weights to all blocks, for the next update. */
static void tile_send(Columns *c, const SentQuad *q)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Reg base = add(e, mad(e, op2(e, REG_R, "xor.b32", c->parity, imm(1)), h->to_size, k->memory), imm(h->at_to));
	Reg to = mad(e, q->row, h->to_pitch, mad(e, q->col, 2, base)), bar = bar_at(c, BAR_ACT);
	Reg start = add(e, mad(e, q->row, 4, base), imm(h->to_start)), bias = op1(e, REG_R, "mov.b32", q->w[c->hidden % 4]);

	Loop l = loop_count(e, c->blocks);
	Reg there = remote(c, l.i, bar);
	words_send(c, q->is_row, remote(c, l.i, to), 0, q->half, 2, there);
	if (c->to->bias != NO_BIAS)
		words_send(c, q->is_bias, remote(c, l.i, start), 0, &bias, 1, there);
	loop_end(e, &l);
}

static void own_tile(Columns *c, const PlaceNumbers *n, uint32_t slot)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Reg tile = half_tile(c, slot), down = divide(e, tile, h->to_across), across = modulo(e, tile, h->to_across, down);
	Reg at = mad(e, c->lane, 16, k->memory), sum[4], (*x)[4], w[4];

	uint32_t none = if_begin(e, less(e, tile, imm(h->to_down * h->to_across)));
	x = (Reg(*)[4])NEW(&k->s->cx->scratch, 4 * (size_t)h->slices, Reg);
	for (uint32_t s = 0; s < h->slices; s++)
		load_quad(e, "shared", x[s], at, h->at_sums + s * h->own_size + slot * TILE);
	for (uint32_t i = 0; i < 4; i++)
		sum[i] = op1(e, REG_F, "mov.f32", x[0][i]);
	for (uint32_t s = 1; s < h->slices; s++)
		for (uint32_t i = 0; i < 4; i++)
			ins(e, "add.rn.ftz.f32 $, $, $", sum[i], sum[i], x[s][i]);
	rule_quad(c, n, sum, add(e, at, imm(h->at_own + slot * TILE)), h->own_size, w);
	SentQuad q = sent_quad(c, down, across, w);
	tile_send(c, &q);
	if_end(e, none);
}

/* ---- weights from inputs ---- */

/* Some tiles of 16 inputs by 8 columns side by side, of a warp. */
typedef struct FromTiles {
	Reg tile, first; /* down, in the block; the slice that comes next */
	Reg a, b;        /* addresses of the lane's words of inputs and of deltas, in that slice */
	uint32_t slices; /* sums of so many are kept apart */
	Reg (*own)[4];   /* [slices][tiles] */
	Reg (*sum)[4];   /* [tiles] */
} FromTiles;

/* Operands of 32 rows. */
static void slice_fragments(Columns *c, const FromTiles *x, uint32_t slice, Reg f[2][4])
{
	Kernel *k = c->k;
	Reg word[2];

	for (uint32_t r = 0; r < 2; r++)
		word[r] = load(k->e, REG_R, "ld.shared.u32", x->a, slice * k->half->transposed_row + 32 * r);
	bits_fragments(k, word, 2, f);
}

static void slice_multiply(Columns *c, const FromTiles *x, uint32_t slice, Reg f[2][4], const Reg zero[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;

	for (uint32_t j = 0; j < h->tiles; j++) {
		Reg d[4], *own = x->own[slice * h->tiles + j];
		for (uint32_t i = 0; i < 4; i++)
			own[i] = reg(e, REG_F);
		fragments_load(k, d, 4, true, x->b, slice * SLICE * h->hidden_pitch + 16 * j);
		multiply_add(e, own, f[0], d, zero);
		multiply_add(e, own, f[1], d + 2, NULL);
	}
}

/* Slices that have rows. */
static void slices_join(Columns *c, const FromTiles *x)
{
	Emit *e = c->k->e;
	uint32_t tiles = c->half->tiles;

	for (uint32_t s = 0; s < x->slices; s++) {
		Reg is = less(e, mul(e, add(e, x->first, imm(s)), SLICE), c->rows_now);
		for (uint32_t i = 0; i < 4 * tiles; i++) {
			Reg sum = x->sum[i / 4][i % 4];
			ins(e, "@$ add.rn.ftz.f32 $, $, $", is, sum, sum, x->own[s * tiles + i / 4][i % 4]);
		}
	}
}

static Reg prefix_at(Columns *c, Reg tile)
{
	Emit *e = c->k->e;

	return add(e, mad(e, tile, c->half->tiles * TILE, mad(e, c->lane, 16, c->k->memory)), imm(c->half->at_prefix));
}

/* Number i of the other blocks that have the same columns. */
static Reg other_share(Columns *c, uint32_t i)
{
	Emit *e = c->k->e;
	const HalfColumns *h = c->half;
	Reg share = add(e, h->share, imm(i + 1));

	share = op3(e, REG_R, "selp.u32", share, add(e, share, imm(-h->shares)), less(e, share, imm(h->shares)));
	return mad(e, h->group, h->shares, share);
}

/* New weights of a tile: rounded ones, and what sums begin with, in all blocks that have the columns. */
static void tile_round(Columns *c, Reg row, uint32_t j, const Reg w[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Reg own = add(e, k->half->col_of_lane, imm(8 * j)), is = less(e, add(e, c->first_column, own), imm(c->hidden));
	Reg to = add(e, mad(e, row, h->from_pitch, mad(e, own, 2, k->memory)), imm(h->at_from));
	Reg start = add(e, mad(e, own, 4, k->memory), imm(h->at_start)), bar = bar_at(c, BAR_FROM);

	for (uint32_t r = 0; r < 2; r++) {
		uint32_t down = 8 * r * h->from_pitch;
		Reg at = add(e, row, imm(8 * r)), is_input = op2(e, REG_P, "and.pred", is, less(e, at, imm(c->inputs)));
		Reg is_bias = op2(e, REG_P, "and.pred", is, same(e, at, imm(c->inputs)));
		Reg half = half_pair(e, w[2 * r], w[2 * r + 1]), bias[2];
		for (uint32_t i = 0; i < 2; i++)
			bias[i] = op1(e, REG_R, "mov.b32", w[2 * r + i]);
		ins(e, "@$ st.shared.u32 [$+#], $", is_input, to, down, half);
		if (c->from->bias != NO_BIAS)
			ins(e, "@$ st.shared.v2.u32 [$], {$, $}", is_bias, start, bias[0], bias[1]);
		for (uint32_t i = 0; i < h->shares - 1; i++) {
			Reg rank = other_share(c, i), there = remote(c, rank, bar);
			words_send(c, is_input, remote(c, rank, to), down, &half, 1, there);
			if (c->from->bias != NO_BIAS)
				words_send(c, is_bias, remote(c, rank, start), 0, bias, 2, there);
		}
	}
}

static void from_update(Columns *c, const PlaceNumbers *n, const FromTiles *x)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Reg row = mad(e, add(e, half_first(c), x->tile), 16, k->half->row_of_lane);

	spent(k, SPENT_KINDS + 8);
	if (h->shares > 1) { /* others have used the weights of this update: those that have rows */
		uint32_t all = if_begin(e, less(e, c->rows_now, imm(16 * (h->shares - 1) + 1)));
		bar_wait(c, bar_at(c, BAR_DELTA), c->parity);
		if_end(e, all);
	}
	for (uint32_t j = 0; j < h->tiles; j++) {
		Reg w[4], at = mad(e, mad(e, x->tile, h->tiles, imm(j)), TILE, mad(e, c->lane, 16, k->memory));
		rule_quad(c, n, x->sum[j], add(e, at, imm(h->at_master)), h->master_size, w);
		tile_round(c, row, j, w);
	}
}

/* Tiles that are number `tile` down in the block; the warp's slices begin with `first`. */
static FromTiles from_tiles(Columns *c, Reg tile, Reg first)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Arena *a = &k->s->cx->scratch;
	FromTiles x = { .tile = tile, .first = reg(e, REG_R), .a = reg(e, REG_R), .b = reg(e, REG_R) };
	Reg input = mul(e, add(e, half_first(c), tile), 16);

	for (x.slices = SLICES_KEPT / h->tiles; h->slices / h->chain % x.slices;)
		x.slices--;
	x.own = (Reg(*)[4])NEW(a, 4 * (size_t)x.slices * h->tiles, Reg);
	x.sum = (Reg(*)[4])NEW(a, 4 * (size_t)h->tiles, Reg);
	ins(e, "mov.u32 $, $", x.first, first);
	ins(e, "mov.u32 $, $", x.a, mad(e, first, k->half->transposed_row, bits_input_at(k, h->in, input)));
	ins(e, "add.u32 $, $, #", x.b, mad(e, mad(e, first, SLICE, c->lane), h->hidden_pitch, k->memory), h->at_hidden);
	for (uint32_t j = 0; j < h->tiles; j++)
		sums_start(e, x.sum[j], -0.0f);
	return x;
}

/* The warp's slices, in turns. Of two warps, operands of the first slices are made before deltas are there, and the
 * second warp (half: 1) waits for the sum of the first, with the numbers of the rule. */
static void from_sums(Columns *c, const FromTiles *x, Reg half, PlaceNumbers *n)
{
	enum { AHEAD = 4 };
	Emit *e = c->k->e;
	const HalfColumns *h = c->half;
	uint32_t ahead = h->chain > 1 ? min_u32(AHEAD, x->slices) : 0;
	Reg zero[4], f[SLICES_KEPT][2][4];

	sums_start(e, zero, 0);
	for (uint32_t s = 0; s < ahead; s++)
		slice_fragments(c, x, s, f[s]);
	if (h->chain > 1)
		bar_wait(c, mad(e, half, 8, bar_at(c, BAR_HIDDEN)), c->parity);
	spent(c->k, SPENT_KINDS + 7);
	Loop l = loop_count(e, h->slices / h->chain / x->slices);
	for (uint32_t s = 0; s < x->slices; s++) {
		if (s >= ahead)
			slice_fragments(c, x, s, f[s]);
		slice_multiply(c, x, s, f[s], zero);
	}
	if (h->chain > 1) {
		uint32_t first = if_begin(e, op2(e, REG_P, "setp.ne.u32", half, imm(0)));
		*n = rule_begin(c, c->from);
		bar_wait(c, mad(e, x->tile, 8, bar_at(c, BAR_CHAIN)), c->parity);
		for (uint32_t j = 0; j < h->tiles; j++)
			load_quad_to(e, "shared", x->sum[j], prefix_at(c, x->tile), j * TILE);
		if_end(e, first);
	}
	slices_join(c, x);
	ins(e, "add.u32 $, $, #", x->first, x->first, x->slices);
	ins(e, "add.u32 $, $, #", x->a, x->a, x->slices * c->k->half->transposed_row);
	ins(e, "add.u32 $, $, #", x->b, x->b, x->slices * SLICE * h->hidden_pitch);
	loop_end(e, &l);
}

/* Tiles of this block, down. */
static Reg tiles_down(Columns *c)
{
	Emit *e = c->k->e;
	const HalfColumns *h = c->half;
	Reg first = half_first(c), end = op2(e, REG_R, "max.u32", first, imm(h->down));

	return op2(e, REG_R, "min.u32", op2(e, REG_R, "sub.u32", end, first), imm(h->own_down));
}

/* Each warp has all slices of its tiles. */
static void from_whole(Columns *c)
{
	Emit *e = c->k->e;
	PlaceNumbers n = rule_begin(c, c->from);

	bar_wait(c, bar_at(c, BAR_HIDDEN), c->parity);
	Loop l = loop_begin(e, c->warp, tiles_down(c), c->warps);
	FromTiles x = from_tiles(c, l.i, imm(0));
	from_sums(c, &x, imm(0), &n);
	from_update(c, &n, &x);
	loop_end(e, &l);
}

/* A warp sums the first half of the slices, another one goes on with the others. */
static void from_halves(Columns *c)
{
	Emit *e = c->k->e;
	const HalfColumns *h = c->half;
	Reg half = divide(e, c->warp, h->own_down), tile = modulo(e, c->warp, h->own_down, half);
	Reg is = op2(e, REG_P, "and.pred", less(e, half, imm(2)), less(e, tile, tiles_down(c)));
	uint32_t none = if_begin(e, is), end = label(e);
	FromTiles x = from_tiles(c, tile, mul(e, half, h->slices / 2));
	PlaceNumbers n;

	from_sums(c, &x, half, &n);
	uint32_t other = if_begin(e, same(e, half, imm(0)));
	for (uint32_t j = 0; j < h->tiles; j++)
		store_quad(e, "shared", prefix_at(c, x.tile), j * TILE, x.sum[j]);
	bar_tell(c, mad(e, x.tile, 8, bar_at(c, BAR_CHAIN)));
	ins(e, "bra L#", end);
	if_end(e, other);
	from_update(c, &n, &x);
	label_here(e, end);
	if_end(e, none);
}

/* Tiles of weights to outputs, whose sums come first; then those from inputs, by all warps. */
void half_rules(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	uint32_t busy = h->chain * h->own_down % c->warps, to = busy + h->own_tiles <= c->warps ? busy : 0;

	tallied_wait(c);
	remark(e, "weights to outputs, bf16");
	for (uint32_t slot = 0; slot < h->own_tiles; slot++) {
		uint32_t other = if_begin(e, same(e, c->warp, imm((to + slot) % c->warps)));
		PlaceNumbers m = rule_begin(c, c->to);
		bar_wait(c, bar_at(c, BAR_DELTA), c->parity);
		own_tile(c, &m, slot);
		if_end(e, other);
	}
	remark(e, "weights from inputs, bf16");
	uint32_t none = if_begin(e, c->has_columns);
	if (h->chain > 1)
		from_halves(c);
	else
		from_whole(c);
	if_end(e, none);
	bar_tell(c, bar_at(c, BAR_FROM));
}
