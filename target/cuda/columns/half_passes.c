/* SPDX-License-Identifier: MIT */
/* bf16: the passes. In: bits and targets of the update, rounded weights. Out: activations in the block of the row,
 * deltas of outputs, deltas of hidden units in the block of the column. Must hold: a sum begins with its start and adds
 * sources in steps of 16, in order. */
#include "columns.h"
#include "units.h"

enum { HIGH = 2 };        /* tiles of 16 rows of a warp: a slice */
enum { NAMED_TILES = 8 }; /* barriers of warps that share rows */

/* ---- quads ---- */

static Reg is_odd(Columns *c)
{
	Emit *e = c->k->e;

	return op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", c->lane, imm(1)), imm(0));
}

void lanes_quad(Columns *c, const Reg sum[4], Reg q[4])
{
	Emit *e = c->k->e;
	Reg odd = is_odd(c), other[2];

	for (uint32_t i = 0; i < 2; i++) {
		Reg send = op3(e, REG_F, "selp.f32", sum[i], sum[2 + i], odd);
		other[i] = op1(e, REG_F, "mov.b32", lanes_xor(e, op1(e, REG_R, "mov.b32", send), 1));
	}
	for (uint32_t i = 0; i < 2; i++) {
		q[i] = op3(e, REG_F, "selp.f32", other[i], sum[i], odd);
		q[2 + i] = op3(e, REG_F, "selp.f32", sum[2 + i], other[i], odd);
	}
}

/* Of a tile, the row and the quad of columns that the lane has then. */
static Reg quad_row(Columns *c)
{
	Emit *e = c->k->e;
	Reg odd = op2(e, REG_R, "and.b32", c->lane, imm(1));

	return mad(e, odd, 8, c->k->half->row_of_lane);
}

static Reg quad_col(Columns *c)
{
	Emit *e = c->k->e;

	return op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", c->lane, imm(1)), imm(1));
}

/* ---- hidden units ---- */

/* Net inputs of 32 rows from `row` on. */
static void hidden_sums(Columns *c, Reg row, Reg (*sum)[4])
{
	Kernel *k = c->k, *one = update_kernel(c);
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Reg a = bits_row_at(one, h->in, row), b = add(e, mad(e, c->lane, h->from_pitch, k->memory), imm(h->at_from));
	uint32_t steps = (uint32_t)ceil_div(c->inputs, 16);

	for (uint32_t j = 0; j < h->tiles; j++) {
		Reg start[2] = { reg(e, REG_F), reg(e, REG_F) };
		ins(e, "ld.shared.v2.f32 {$, $}, [$+#]", start[0], start[1], mad(e, k->half->col_of_lane, 4, k->memory),
		    h->at_start + 32 * j);
		for (uint32_t i = 0; i < 4 * HIGH; i++)
			sum[i / 4 * h->tiles + j][i % 4] = op1(e, REG_F, "mov.f32", start[i % 2]);
	}
	for (uint32_t step = 0; step < steps; step += 2) {
		Reg f[HIGH][2][4], w[4];
		for (uint32_t t = 0; t < HIGH; t++) {
			Reg word[2];
			for (uint32_t r = 0; r < 2; r++)
				word[r] = load(e, REG_R, "ld.shared.u32", a, (16 * t + 8 * r) * k->half->bits_row + 2 * step);
			bits_fragments(k, word, 2, f[t]);
		}
		for (uint32_t j = 0; j < h->tiles; j++) {
			fragments_load(k, w, 4, true, b, 16 * step * h->from_pitch + 16 * j);
			for (uint32_t s = 0; s < 2 && step + s < steps; s++)
				for (uint32_t t = 0; t < HIGH; t++)
					multiply_add(e, sum[t * h->tiles + j], f[t][s], w + 2 * s, NULL);
		}
	}
}

/* Of a tile: rows from that of the lane on, and its quad among the block's columns. */
static void hidden_send(Columns *c, Reg row, Reg own, Reg sum[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Reg q[4], owner = divide(e, row, k->block_rows), within = modulo(e, row, k->block_rows, owner);
	Reg quad = mad(e, k->member, c->own_quads, own);

	for (uint32_t i = 0; i < 4; i++)
		sum[i] = unit_value(e, c->index->fn, sum[i]);
	lanes_quad(c, sum, q);
	Reg is = op2(e, REG_P, "and.pred", less(e, own, imm(c->own_quads)), less(e, quad, imm(c->quads)));
	is = op2(e, REG_P, "and.pred", is, less(e, row, c->rows_now));
	Reg to = add(e, mad(e, within, h->act_row, mad(e, quad, 16, k->memory)), imm(h->at_act));
	quad_send(c, is, remote(c, owner, to), 0, q, remote(c, owner, bar_at(c, BAR_ACT)));
}

/* One quad of columns: lanes whose columns are none take those of the other tile. */
static void hidden_narrow(Columns *c, Reg row, Reg (*sum)[4])
{
	Emit *e = c->k->e;
	Reg high = quad_col(c), is = op2(e, REG_P, "setp.ne.u32", high, imm(0)), both[4];

	for (uint32_t i = 0; i < 4; i++) {
		Reg other = op1(e, REG_F, "mov.b32", lanes_xor(e, op1(e, REG_R, "mov.b32", sum[1][i]), 2));
		both[i] = op3(e, REG_F, "selp.f32", other, sum[0][i], is);
	}
	hidden_send(c, mad(e, high, 16, add(e, row, quad_row(c))), op1(e, REG_R, "mov.u32", imm(0)), both);
}

void half_hidden(Columns *c)
{
	Emit *e = c->k->e;
	const HalfColumns *h = c->half;
	uint32_t none = if_begin(e, c->has_columns);
	Reg sum[HIGH * MOST_COLUMNS / 8][4];

	remark(e, "activations of %u columns, all rows, bf16", c->own);
	Loop l = loop_begin(e, mul(e, c->warp, 32), c->rows_now, c->warps * 32);
	hidden_sums(c, l.i, sum);
	if (c->own_quads == 1)
		hidden_narrow(c, l.i, sum);
	for (uint32_t t = 0; t < HIGH && c->own_quads > 1; t++)
		for (uint32_t j = 0; j < h->tiles; j++)
			hidden_send(c, add(e, add(e, l.i, imm(16 * t)), quad_row(c)), add(e, quad_col(c), imm(2 * j)),
			            sum[t * h->tiles + j]);
	loop_end(e, &l);
	if_end(e, none);
}

/* Words of inputs, for the gradient: as emit makes them, of all rows. */
void half_turn(Columns *c)
{
	Kernel *k = c->k, *one = NEW(&k->s->cx->scratch, 1, Kernel);
	Half *h = NEW(&k->s->cx->scratch, 1, Half);
	EmitSource *s = NEW(&k->s->cx->scratch, 1, EmitSource);
	uint32_t first = c->pass_warps < c->warps ? c->pass_warps : 0;

	*one = *k;
	*h = *k->half;
	*s = *k->s;
	h->apart = true; /* cases are there by turns */
	h->cases_offset = op2(k->e, REG_R, "sub.u32", c->now, k->memory);
	s->threads = c->workers;
	one->s = s;
	one->half = h;
	one->block_rows = c->rows;
	bits_turn(one, first, TURNED_AT_ONCE);
}

/* ---- rows of the block ---- */

/* Of a warp: 16 rows, some tiles of each product. */
typedef struct RowTile {
	Reg tile, side; /* of the block's; which of the warps that share it */
	Reg base, row;  /* first row, in the block; that of the lane */
	Reg real[2];    /* P: rows, 8 apart, of the batch */
	Reg act, act_h; /* addresses of the lane's first pair */
	Reg to;         /* of weights to outputs, of this update */
} RowTile;

/* Tiles of a product: the first one, R, and how many. */
typedef struct Side {
	Reg first, col; /* col: the lane's first column */
	uint32_t tiles;
} Side;

static Side side_of(Columns *c, const RowTile *x, uint32_t cols)
{
	Emit *e = c->k->e;
	Side s = { .tiles = (uint32_t)ceil_div(ceil_div(cols, 8), c->half->split) };

	s.first = mul(e, x->side, s.tiles);
	s.col = mad(e, s.first, 8, c->k->half->col_of_lane);
	return s;
}

static RowTile row_tile(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	RowTile x = { .tile = divide(e, c->warp, h->split) };

	x.side = modulo(e, c->warp, h->split, x.tile);
	x.base = mul(e, x.tile, 16);
	x.row = add(e, x.base, k->half->row_of_lane);
	for (uint32_t r = 0; r < 2; r++)
		x.real[r] = less(e, add(e, x.row, imm(8 * r)), k->my_rows);
	x.act = add(e, mad(e, x.row, h->act_row, mad(e, k->half->col_of_lane, 4, k->memory)), imm(h->at_act));
	x.act_h = add(e, mad(e, x.row, h->act_pitch, mad(e, k->half->col_of_lane, 2, k->memory)), imm(h->at_act_h));
	x.to = add(e, mad(e, c->parity, h->to_size, k->memory), imm(h->at_to));
	return x;
}

static void pair_load(Emit *e, Reg v[2], Reg at, uint32_t offset)
{
	v[0] = reg(e, REG_F);
	v[1] = reg(e, REG_F);
	ins(e, "ld.shared.v2.f32 {$, $}, [$+#]", v[0], v[1], at, offset);
}

/* Activations of 16 columns, rounded: the warps of the tile store some each for the gradient. */
static void act_fragments(Columns *c, const RowTile *x, uint32_t step, Reg f[4])
{
	Emit *e = c->k->e;
	const HalfColumns *h = c->half;

	for (uint32_t i = 0; i < 4; i++) {
		Reg v[2];
		uint32_t r = i % 2, col = 16 * step + i / 2 * 8;
		pair_load(e, v, x->act, 8 * r * h->act_row + 4 * col);
		f[i] = half_pair(e, v[0], v[1]);
		Reg is = same(e, x->side, imm(step % h->split));
		if (col + 8 > c->hidden)
			is = op2(e, REG_P, "and.pred", is, less(e, add(e, c->k->half->col_of_lane, imm(col)), imm(c->hidden)));
		ins(e, "@$ st.shared.u32 [$+#], $", is, x->act_h, 8 * r * h->act_pitch + 2 * col, f[i]);
	}
}

/* A product with weights to outputs, which lie side by side for an output: forward, of operands in registers, or
 * backward, if there are none, of deltas of outputs. */
static void tile_product(Columns *c, uint32_t depth, const RowTile *x, const Side *side, Reg (*act)[4], Reg (*sum)[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	bool by_depth = !act;
	uint32_t pitch = h->to_pitch, tile = by_depth ? 16 : 8 * pitch;
	Reg b = add(e, add(e, x->to, lane_place(k, pitch, !by_depth)), mul(e, side->first, tile));
	Reg a = add(e, add(e, mad(e, x->base, h->delta_pitch, k->memory), lane_place(k, h->delta_pitch, false)),
	            imm(h->at_delta_h));

	for (uint32_t step = 0; step < ceil_div(depth, 16); step++) {
		Reg f[4], w[4];
		if (!act)
			fragments_load(k, f, 4, false, a, 32 * step);
		for (uint32_t j = 0; j < side->tiles; j += 2) {
			uint32_t some = min_u32(2, side->tiles - j);
			fragments_load(k, w, 2 * some, by_depth, b, (by_depth ? 16 * step * pitch : 32 * step) + j * tile);
			for (uint32_t n = 0; n < some; n++)
				multiply_add(e, sum[j + n], act ? act[step] : f, w + 2 * n, NULL);
		}
	}
}

static void outputs_pass(Columns *c, const RowTile *x)
{
	Kernel *k = c->k, *one = update_kernel(c);
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	const DeviceStep *s = c->out;
	Side side = side_of(c, x, c->outputs);
	Sums sums = { .row = x->row, .col = side.col };
	Reg act[STEPS_KNOWN][4];

	for (uint32_t step = 0; step < ceil_div(c->hidden, 16); step++)
		act_fragments(c, x, step, act[step]);
	for (uint32_t j = 0; j < side.tiles; j++) {
		Reg start[2] = { imm_f(0), imm_f(0) };
		if (c->to->bias != NO_BIAS)
			pair_load(e, start, mad(e, side.col, 4, x->to), h->to_start + 32 * j);
		for (uint32_t i = 0; i < 4; i++)
			sums.sum[j][i] = op1(e, REG_F, "mov.f32", start[i % 2]);
	}
	tile_product(c, c->hidden, x, &side, act, sums.sum);
	for (uint32_t i = 0; i < 2 * side.tiles; i++) {
		uint32_t j = i / 2, r = i % 2;
		Reg *v = sums.sum[j] + 2 * r, col = add(e, side.col, imm(8 * j));
		half_outputs(one, s, c->errors, &sums, r, j, x->real[r], v);
		Reg is = op2(e, REG_P, "and.pred", x->real[r], less(e, col, imm(c->outputs)));
		Reg pair = op3(e, REG_R, "selp.u32", half_pair(e, v[0], v[1]), imm(0), is);
		Reg at = mad(e, x->row, h->delta_pitch, mad(e, side.col, 2, k->memory));
		ins(e, "st.shared.u32 [$+#], $", at, h->at_delta_h + 8 * r * h->delta_pitch + 16 * j, pair);
	}
}

/* Deltas of a tile to the block of their columns: two lanes make quads of them. */
static void hidden_back(Columns *c, const RowTile *x, Reg first, uint32_t j, const Reg pair[2])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Reg odd = is_odd(c), send = op3(e, REG_R, "selp.u32", pair[0], pair[1], odd), other = lanes_xor(e, send, 1);
	Reg low = op3(e, REG_R, "selp.u32", other, pair[0], odd), high = op3(e, REG_R, "selp.u32", pair[1], other, odd);
	Reg quad = add(e, mad(e, first, 2, quad_col(c)), imm(2 * j)), owner = divide(e, quad, c->own_quads);
	Reg own = modulo(e, quad, c->own_quads, owner), row = add(e, add(e, k->row0, x->base), quad_row(c));
	Reg to = add(e, mad(e, row, h->hidden_pitch, mad(e, own, 8, k->memory)), imm(h->at_hidden));

	ins(e, "@$ st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [$], {$, $}, [$]",
	    less(e, quad, imm(c->quads)), remote(c, owner, to), low, high, remote(c, owner, bar_at(c, BAR_HIDDEN)));
}

static void back_pass(Columns *c, const RowTile *x)
{
	Emit *e = c->k->e;
	const HalfColumns *h = c->half;
	const DeviceStep *s = c->back;
	Side side = side_of(c, x, c->hidden);
	Reg sum[TILES_WIDE][4], act = mad(e, side.first, 32, x->act);

	for (uint32_t i = 0; i < 4 * side.tiles; i++)
		sum[i / 4][i % 4] = op1(e, REG_F, "mov.f32", imm_f(0));
	tile_product(c, c->outputs, x, &side, NULL, sum);
	for (uint32_t j = 0; j < side.tiles; j++) {
		Reg pair[2];
		for (uint32_t r = 0; r < 2; r++) {
			Reg o[2], v[2];
			pair_load(e, o, act, 8 * r * h->act_row + 32 * j);
			for (uint32_t n = 0; n < 2; n++)
				v[n] = op2(e, REG_F, "mul.rn.ftz.f32", sum[j][2 * r + n],
				           slope_offset(e, s, unit_slope(e, s->fn, o[n], o[n])));
			pair[r] = op3(e, REG_R, "selp.u32", half_pair(e, v[0], v[1]), imm(0), x->real[r]);
		}
		hidden_back(c, x, side.first, j, pair);
	}
}

/* Rows of a slice that has any are sent, others have no deltas. */
static void rows_none(Columns *c, const RowTile *x)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const HalfColumns *h = c->half;
	Side side = side_of(c, x, c->outputs);
	Reg at = mad(e, x->row, h->delta_pitch, mad(e, side.col, 2, k->memory));

	for (uint32_t i = 0; i < 2 * side.tiles; i++)
		ins(e, "st.shared.u32 [$+#], 0", at, h->at_delta_h + 8 * (i % 2) * h->delta_pitch + 16 * (i / 2));
}

void half_rows_pass(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	RowTile x = row_tile(c);
	uint32_t others = c->warps - c->pass_warps, past = label(e), end = label(e);
	Reg slice = op2(e, REG_R, "and.b32", x.base, imm(~31u)), any = less(e, slice, k->my_rows);

	remark(e, "outputs and deltas: %u warps have 16 rows", c->half->split);
	ins(e, "@!$ bra L#", any, past);
	outputs_pass(c, &x);
	bar_tell(c, turn_bar(c, BAR_LATE));
	if (c->half->split > 1)
		meet(c, add(e, x.tile, imm(NAMED_TILES)), c->half->split);
	else
		ins(e, "bar.warp.sync 0xffffffff");
	if (others)
		tell(c, imm(NAMED_OUTPUTS), c->warps);
	spent(k, SPENT_KINDS + 4);
	back_pass(c, &x);
	ins(e, "bra L#", end);
	label_here(e, past);
	rows_none(c, &x);
	bar_tell(c, turn_bar(c, BAR_LATE));
	if (others)
		tell(c, imm(NAMED_OUTPUTS), c->warps);
	label_here(e, end);
}
