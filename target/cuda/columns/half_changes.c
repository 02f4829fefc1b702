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
	Reg to = mad(e, q->row, h->to_pitch, mad(e, q->col, 2, base)), bar = bar_at(c, BAR_WEIGHTS);
	Reg start = add(e, mad(e, q->row, 4, base), imm(h->to_start));

	for (uint32_t i = 0; i < c->blocks; i++) {
		Reg there = remote(c, imm(i), bar);
		ins(e, "@$ st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [$], {$, $}, [$]", q->is_row,
		    remote(c, imm(i), to), q->half[0], q->half[1], there);
		if (c->to->bias != NO_BIAS)
			ins(e, "@$ st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$], $, [$]", q->is_bias,
			    remote(c, imm(i), start), op1(e, REG_R, "mov.b32", q->w[c->hidden % 4]), there);
	}
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

/* A slice of 32 rows. a, b: addresses of the lane's words of inputs and of deltas */
static void slice_add(Columns *c, Reg a, Reg b, uint32_t slice, const Reg zero[4], Reg (*sum)[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Reg word[2], f[2][4];

	for (uint32_t r = 0; r < 2; r++)
		word[r] = load(e, REG_R, "ld.shared.u32", a, slice * k->half->transposed_row + 32 * r);
	bits_fragments(k, word, 2, f);
	for (uint32_t j = 0; j < h->tiles; j++) {
		Reg d[4], own[4];
		for (uint32_t i = 0; i < 4; i++)
			own[i] = reg(e, REG_F);
		fragments_load(k, d, 4, true, b, slice * SLICE * h->hidden_pitch + 16 * j);
		multiply_add(e, own, f[0], d, zero);
		multiply_add(e, own, f[1], d + 2, NULL);
		for (uint32_t i = 0; i < 4; i++)
			ins(e, "add.rn.ftz.f32 $, $, $", sum[j][i], sum[j][i], own[i]);
	}
}

/* Several slices at a time: what one waits for is computed beside the others. */
static void slices_add(Columns *c, Reg a, Reg b, Reg (*sum)[4])
{
	enum { AT_ONCE = 4 };
	Emit *e = c->k->e;
	Reg left = op2(e, REG_R, "shr.u32", add(e, c->rows_now, imm(SLICE - 1)), imm(5)), zero[4];
	uint32_t top = label(e), rest = label(e), done = label(e), each[] = { AT_ONCE, 1 };

	sums_start(e, zero, 0);
	for (uint32_t w = 0; w < 2; w++) {
		label_here(e, w ? rest : top);
		ins(e, "@$ bra L#", less(e, left, imm(each[w])), w ? done : rest);
		for (uint32_t i = 0; i < each[w]; i++)
			slice_add(c, a, b, i, zero, sum);
		ins(e, "add.u32 $, $, #", a, a, each[w] * c->k->half->transposed_row);
		ins(e, "add.u32 $, $, #", b, b, each[w] * SLICE * c->half->hidden_pitch);
		ins(e, "sub.u32 $, $, #", left, left, each[w]);
		ins(e, "bra L#", w ? rest : top);
	}
	label_here(e, done);
}

/* New weights of a tile: rounded ones, and what sums begin with. */
static void tile_round(Columns *c, Reg row, uint32_t j, const Reg w[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Reg own = add(e, k->half->col_of_lane, imm(8 * j)), to = mad(e, row, h->from_pitch, mad(e, own, 2, k->memory));
	Reg is =
		op2(e, REG_P, "and.pred", less(e, own, imm(c->own)), less(e, add(e, c->first_column, own), imm(c->hidden)));

	for (uint32_t r = 0; r < 2; r++) {
		Reg at = add(e, row, imm(8 * r)), here = op2(e, REG_P, "and.pred", is, less(e, at, imm(c->inputs)));
		ins(e, "@$ st.shared.u32 [$+#], $", here, to, h->at_from + 8 * r * h->from_pitch,
		    half_pair(e, w[2 * r], w[2 * r + 1]));
		if (c->from->bias != NO_BIAS)
			ins(e, "@$ st.shared.v2.f32 [$+#], {$, $}", op2(e, REG_P, "and.pred", is, same(e, at, imm(c->inputs))),
			    mad(e, own, 4, k->memory), h->at_start, w[2 * r], w[2 * r + 1]);
	}
}

static void from_tile(Columns *c, const PlaceNumbers *n, Reg down)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Reg sum[MOST_COLUMNS / 8][4], a = reg(e, REG_R), b = reg(e, REG_R);

	ins(e, "mov.u32 $, $", a, bits_input_at(k, h->in, mul(e, down, 16)));
	ins(e, "add.u32 $, $, #", b, mad(e, c->lane, h->hidden_pitch, k->memory), h->at_hidden);
	for (uint32_t j = 0; j < h->tiles; j++)
		sums_start(e, sum[j], -0.0f);
	slices_add(c, a, b, sum);
	spent(k, SPENT_KINDS + 8);
	tallied_wait(c);
	for (uint32_t j = 0; j < h->tiles; j++) {
		Reg w[4], at = mad(e, mad(e, down, h->tiles, imm(j)), TILE, mad(e, c->lane, 16, k->memory));
		rule_quad(c, n, sum[j], add(e, at, imm(h->at_master)), h->master_size, w);
		tile_round(c, mad(e, down, 16, k->half->row_of_lane), j, w);
	}
}

/* Tiles of weights to outputs, whose sums come first; then those from inputs, by all warps. */
void half_rules(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	uint32_t to = h->down % c->warps + h->own_tiles <= c->warps ? h->down % c->warps : 0; /* the first warp of these */

	remark(e, "weights to outputs, bf16");
	for (uint32_t slot = 0; slot < h->own_tiles; slot++) {
		uint32_t other = if_begin(e, same(e, c->warp, imm((to + slot) % c->warps)));
		PlaceNumbers m = rule_begin(c, c->to);
		bar_wait(c, bar_at(c, BAR_DELTA), c->parity);
		tallied_wait(c);
		own_tile(c, &m, slot);
		if_end(e, other);
	}
	remark(e, "weights from inputs, bf16");
	PlaceNumbers n = rule_begin(c, c->from);
	bar_wait(c, bar_at(c, BAR_HIDDEN), c->parity);
	spent(k, SPENT_KINDS + 7);
	uint32_t none = if_begin(e, c->has_columns);
	Loop l = loop_begin(e, c->warp, imm(h->down), c->warps);
	from_tile(c, &n, l.i);
	loop_end(e, &l);
	if_end(e, none);
	tallied_wait(c);
}
