/* SPDX-License-Identifier: MIT */
/* The passes. In: lists and targets of the update, weights. Out: activations, deltas. Must hold: every sum is one chain
 * in the order of its sources or targets. */
#include "columns.h"
#include "units.h"

static void fma_to(Emit *e, Reg sum, Reg a, Reg b) { ins(e, "fma.rn.ftz.f32 $, $, $, $", sum, a, b, sum); }

/* ---- hidden units ---- */

/* By column, of the block's own: in their place in its group. */
static Reg own_columns(Columns *c)
{
	Emit *e = c->k->e;
	Reg slot = op2(e, REG_R, "sub.u32", c->k->member, mul(e, c->row_group, c->across));

	return add(e, mad(e, c->parity, c->act_t_size, mad(e, slot, c->own * c->pitch, c->k->memory)), imm(c->at_act_t));
}

/* Of the last block that has columns, some may be none: the true unit is there. */
static void column_store(Columns *c, Reg at, uint32_t n, Reg v)
{
	Emit *e = c->k->e;

	if (c->hidden % c->own == 0)
		ins(e, "st.shared.f32 [$+#], $", at, n * c->pitch, v);
	else
		ins(e, "@$ st.shared.f32 [$+#], $", less(e, add(e, c->first_column, imm(n)), imm(c->hidden)), at, n * c->pitch,
		    v);
}

/* Weights of number `pair` >> 16 * high of a list, of the lane's copy; past the last input is the row of -0. */
static Reg list_weight(Columns *c, Reg copy, Reg pair, uint32_t high)
{
	Emit *e = c->k->e;
	Reg i = high ? op2(e, REG_R, "shr.u32", pair, imm(16)) : op2(e, REG_R, "and.b32", pair, imm(0xffff));

	return mad(e, op2(e, REG_R, "min.u32", i, imm(c->inputs + 1)), c->from_row, copy);
}

/* A row: a quad goes to the block that has the row, and by column to the gradient. */
static void hidden_row(Columns *c, Reg row)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg list = add(e, mad(e, row, c->list_row, c->now), imm(c->at_lists));
	Reg at_part = op2(e, REG_R, "sub.u32", row, mul(e, c->part, c->part_rows)),
		owner = divide(e, at_part, c->part_block);
	Reg within = add(e, c->base, modulo(e, at_part, c->part_block, owner)), sum[MOST_COLUMNS];
	Reg copy = mad(e, op2(e, REG_R, "and.b32", c->lane, imm(c->from_copies - 1)), 16, k->memory);
	uint32_t longest = k->s->list_longest, quad_size = 16 * c->from_copies;

	for (uint32_t q = 0; q < c->own_quads; q++) {
		if (c->lists->bias)
			load_quad(e, "shared", sum + 4 * q, copy, c->at_from + c->inputs * c->from_row + q * quad_size);
		for (uint32_t i = 0; i < 4 && !c->lists->bias; i++)
			sum[4 * q + i] = zero_float(e);
	}
	for (uint32_t j = 0; j < longest; j += 8) {
		Reg pair[4];
		for (uint32_t i = 0; i < 4; i++)
			pair[i] = reg(e, REG_R);
		ins(e, "ld.shared.v4.u32 {$, $, $, $}, [$+#]", pair[0], pair[1], pair[2], pair[3], list, 2 * j);
		for (uint32_t i = 0; i < 8 && j + i < longest; i++) {
			Reg at = list_weight(c, copy, pair[i / 2], i % 2);
			for (uint32_t q = 0; q < c->own_quads; q++) {
				Reg w[4];
				load_quad(e, "shared", w, at, c->at_from + q * quad_size);
				for (uint32_t n = 0; n < 4; n++)
					ins(e, "add.rn.ftz.f32 $, $, $", sum[4 * q + n], w[n], sum[4 * q + n]);
			}
		}
	}
	Reg to = remote(c, owner,
	                add(e, mad(e, within, 16, mad(e, c->first_column, c->act_quad / 4, k->memory)), imm(c->at_act)));
	Reg by_column = mad(e, row, 4, mad(e, c->part, RING * 4, own_columns(c))),
		bar = remote(c, owner, part_bar(c, BAR_ACT));
	for (uint32_t q = 0; q < c->own_quads; q++) {
		for (uint32_t n = 0; n < 4; n++)
			sum[4 * q + n] = unit_value(e, c->hidden_fn, sum[4 * q + n]);
		Reg quad = add(e, op2(e, REG_R, "shr.u32", c->first_column, imm(2)), imm(q));
		Reg sends = less(e, quad, imm(c->quads)); /* the last block may have fewer */
		quad_send(c, sends, to, q * c->act_quad, sum + 4 * q, bar);
		for (uint32_t n = 0; n < 4; n++)
			column_store(c, by_column, 4 * q + n, sum[4 * q + n]);
	}
}

/* Past the last row; nothing is read, which others may write by now. */
static void hidden_none(Columns *c, Reg row)
{
	Emit *e = c->k->e;

	Reg at = mad(e, row, 4, mad(e, c->part, RING * 4, own_columns(c)));
	for (uint32_t n = 0; n < c->own; n++)
		column_store(c, at, n, imm_f(0));
}

void hidden_emit(Columns *c)
{
	Emit *e = c->k->e;
	uint32_t none = if_begin(e, c->has_columns);

	remark(e, "activations of %u columns, all rows", c->own);
	for (uint32_t t = 0; t < c->turns; t++) {
		Reg at = add(e, c->team_thread, imm(t * c->team_warps * 32)), row = mad(e, c->part, c->part_rows, at);
		uint32_t other = if_begin(e, less(e, at, imm(c->part_rows)));
		uint32_t past = if_begin(e, less(e, row, c->rows_now)), end = label(e);
		hidden_row(c, row);
		ins(e, "bra L#", end);
		if_end(e, past);
		hidden_none(c, row);
		label_here(e, end);
		if_end(e, other);
	}
	if_end(e, none);
}

/* To the other blocks that have this group of hidden units: copies of the device, a lane for each. Stores would keep
 * loads of other warps waiting. */
void columns_send(Columns *c, uint32_t first_warp, uint32_t warps)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg thread = op2(e, REG_R, "sub.u32", c->team_thread, imm(first_warp * 32));

	remark(e, "activations to groups");
	Loop l = loop_begin(e, thread, imm(c->own * c->across), warps * 32);
	Reg unit = divide(e, l.i, c->across), other = modulo(e, l.i, c->across, unit);
	Reg rank = mad(e, c->row_group, c->across, other), is = op2(e, REG_P, "setp.ne.u32", rank, k->member);
	uint32_t none = if_begin(e, op2(e, REG_P, "and.pred", is, less(e, add(e, c->first_column, unit), imm(c->hidden))));
	Reg at = mad(e, unit, c->pitch, mad(e, c->part, c->part_pitch, own_columns(c)));
	bulk_fence(k, false);
	bulk_send(c, remote(c, rank, at), at, c->part_rows * 4, remote(c, rank, group_bar(c, c->part)));
	if_end(e, none);
	loop_end(e, &l);
}

/* ---- outputs ---- */

enum { MOST_HIGH = 2 };      /* rows of a thread */
enum { SETS = 3, TURN = 6 }; /* of operands: that are under way, of a turn of the loop, whose end waits for loads */

/* A product: sums over sources of rows x, x_step bytes apart, by weights of two or four columns side by side; where
 * `across`, over quads of the weights of each column. */
typedef struct Product {
	uint32_t sources, wide; /* columns of a thread */
	Reg x, w;
	uint32_t x_step, x_quad, w_quad;
	bool across;
} Product;

/* Operands of four sources. */
typedef struct Operands {
	Reg x[MOST_HIGH][4], w[4][4];
} Operands;

static Operands operands_new(Emit *e)
{
	Operands o;

	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t n = 0; n < 4; n++) {
			if (i < MOST_HIGH)
				o.x[i][n] = reg(e, REG_F);
			o.w[i][n] = reg(e, REG_F);
		}
	return o;
}

static void operands_load(Columns *c, const Product *p, const Operands *o, uint32_t quad)
{
	Emit *e = c->k->e;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t offset = quad * p->w_quad + i * c->unit_row;
		if (p->wide == 4)
			load_quad_to(e, "shared", o->w[i], p->w, offset);
		else
			ins(e, "ld.shared.v2.f32 {$, $}, [$+#]", o->w[i][0], o->w[i][1], p->w, offset);
	}
	for (uint32_t h = 0; h < c->high; h++)
		load_quad_to(e, "shared", o->x[h], p->x, quad * p->x_quad + h * p->x_step);
}

static void operands_add(Columns *c, const Product *p, const Operands *o, uint32_t sources, Reg sum[][4])
{
	Emit *e = c->k->e;

	for (uint32_t i = 0; i < sources; i++)
		for (uint32_t h = 0; h < c->high; h++)
			for (uint32_t n = 0; n < p->wide; n++)
				fma_to(e, sum[h][n], o->x[h][i], p->across ? o->w[n][i] : o->w[i][n]);
}

/* Sets of operands follow each other: when one was added, it is loaded again. */
static void product_emit(Columns *c, const Product *p, Reg sum[][4])
{
	Emit *e = c->k->e;
	uint32_t all = (uint32_t)ceil_div(p->sources, 4), turns = all > SETS ? (all - SETS) / TURN : 0, done = turns * TURN;
	Operands o[SETS];

	for (uint32_t i = 0; i < SETS; i++)
		o[i] = operands_new(e);
	for (uint32_t i = 0; i < min_u32(SETS, all); i++)
		operands_load(c, p, &o[i], i);
	if (turns) {
		Loop l = loop_count(e, turns);
		ins(e, ".pragma \"nounroll\"");
		for (uint32_t i = 0; i < TURN; i++) {
			operands_add(c, p, &o[i % SETS], 4, sum);
			operands_load(c, p, &o[i % SETS], SETS + i);
		}
		ins(e, "add.u32 $, $, #", p->x, p->x, p->x_quad * TURN);
		ins(e, "add.u32 $, $, #", p->w, p->w, p->w_quad * TURN);
		loop_end(e, &l);
	}
	for (uint32_t i = done; i < all; i++) {
		operands_add(c, p, &o[i % SETS], min_u32(4, p->sources - 4 * i), sum);
		if (i + SETS < all)
			operands_load(c, p, &o[i % SETS], i + SETS - done);
	}
}

/* Of columns side by side: two or four. */
static void columns_store(Emit *e, uint32_t wide, Reg at, uint32_t offset, const Reg v[4])
{
	if (wide == 4)
		store_quad(e, "shared", at, offset, v);
	else
		ins(e, "st.shared.v2.f32 [$+#], {$, $}", at, offset, v[0], v[1]);
}

/* Units from net inputs; deltas from errors, which are formed of `late` rows later. first: byte of the first column */
static void outputs_end(Columns *c, Reg first, Reg row, Reg sum[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const DeviceStep *errors = c->errors, *deltas = late_deltas(k, errors);
	Reg at = add(e, c->base, row), here = add(e, first, c->now);
	Reg late = add(e, mad(e, at, k->late_row, here), imm(k->at_late));
	Reg y = add(e, mad(e, at, k->target_row, here), imm(k->at_targets)), out[4];
	Reg is_row = less(e, row, k->my_rows);

	for (uint32_t i = 0; i < c->wide; i++)
		out[i] = unit_value(e, c->out->fn, sum[i]);
	columns_store(e, c->wide, late, late_at(k, errors, false), out);
	if (errors->known_net)
		columns_store(e, c->wide, late, late_at(k, errors, true), sum);
	for (uint32_t i = 0; i < c->wide; i++) {
		ErrorOf of = { .fn = c->out->fn, .error = errors->error, .known_net = errors->known_net, .out = out[i] };
		of.net = errors->known_net ? sum[i] : out[i];
		of.y = load(e, REG_F, "ld.shared.f32", y, 4 * (errors->y + i));
		Reg net = sum[i];
		sum[i] = output_delta(e, errors, &of, is_number(e, of.y), imm_f(1), imm_f(0));
		if (deltas) {
			Reg slope = unit_slope(e, deltas->fn, deltas->keeps_net ? net : out[i], out[i]);
			slope = op2(e, REG_F, "add.rn.ftz.f32", slope, imm_f(deltas->offset));
			sum[i] = op2(e, REG_F, "mul.rn.ftz.f32", sum[i], slope);
		}
		sum[i] = op3(e, REG_F, "selp.f32", sum[i], imm_f(0), is_row);
	}
	columns_store(e, c->wide, add(e, mad(e, at, c->delta_row, add(e, first, k->memory)), imm(c->at_delta)), 0, sum);
}

/* A task of the passes: some rows, by some columns. A thread has one, or one after the other. */
typedef struct PassTask {
	Reg group, across;
	uint32_t end;
} PassTask;

static uint32_t pass_tiles(uint32_t groups, uint32_t across)
{
	return (uint32_t)(ceil_div(groups, LANES_DOWN) * ceil_div(across, LANES_ACROSS));
}

static PassTask task_begin(Columns *c, uint32_t round, uint32_t warps, uint32_t groups, uint32_t columns)
{
	Emit *e = c->k->e;
	uint32_t down = (uint32_t)ceil_div(groups, LANES_DOWN);
	Reg tile = add(e, c->team_warp, imm(round * warps));
	Reg across = divide(e, tile, down), at = modulo(e, tile, down, across);
	PassTask t = { .group = mad(e, at, LANES_DOWN, lane_down(c)),
		           .across = mad(e, across, LANES_ACROSS, lane_across(c)) };

	Reg is = op2(e, REG_P, "and.pred", less(e, t.group, imm(groups)), less(e, t.across, imm(columns)));
	t.end = if_begin(e, op2(e, REG_P, "and.pred", is, less(e, t.group, c->k->my_rows)));
	return t;
}

void outputs_emit(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t groups = c->part_block / c->high, across = (uint32_t)ceil_div(c->outputs, c->wide);
	bool starts = c->out->start != k->s->job->zero;

	remark(e, "outputs of %u rows", c->part_block);
	for (uint32_t round = 0; round * c->pass_warps < pass_tiles(groups, across); round++) {
		PassTask t = task_begin(c, round, c->pass_warps, groups, across);
		Reg first = mul(e, t.across, 4 * c->wide), group = t.group, sum[MOST_HIGH][4], start[4];
		Product p = { c->hidden, c->wide, reg(e, REG_R), reg(e, REG_R), groups * 16, c->act_quad, c->quad_row, false };
		Reg true_unit = add(e, first, unit_place(c, imm(c->hidden), c->parity));
		for (uint32_t n = 0; n < c->wide; n++)
			start[n] = starts ? load(e, REG_F, "ld.shared.f32", true_unit, 4 * n) : imm_f(0);
		for (uint32_t h = 0; h < c->high; h++)
			for (uint32_t n = 0; n < c->wide; n++)
				sum[h][n] = op1(e, REG_F, "mov.f32", start[n]);
		ins(e, "add.u32 $, $, #", p.x, mad(e, add(e, c->base, group), 16, k->memory), c->at_act);
		ins(e, "add.u32 $, $, $", p.w, add(e, first, k->memory), mad(e, c->parity, c->to_size, imm(c->at_to)));
		product_emit(c, &p, sum);
		for (uint32_t h = 0; h < c->high; h++)
			outputs_end(c, first, add(e, group, imm(h * groups)), sum[h]);
		if_end(e, t.end);
	}
}

/* Quads of rows, to the blocks that have this group of outputs. Rows past the last are 0. */
void deltas_send(Columns *c, uint32_t first, uint32_t warps)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t quads = c->part_block / 4;
	Reg bar = part_bar(c, BAR_DELTA);

	remark(e, "deltas of outputs to groups");
	Reg thread = op2(e, REG_R, "sub.u32", c->team_thread, imm(first * 32));
	Loop l = loop_begin(e, thread, imm(c->outputs * quads), warps * 32);
	Reg o = divide(e, l.i, quads), quad = modulo(e, l.i, quads, o), v[4], row = mul(e, quad, 4); /* rows side by side */
	Reg from = mad(e, add(e, c->base, row), c->delta_row, mad(e, o, 4, k->memory)), all = less(e, imm(0), imm(1));
	for (uint32_t i = 0; i < 4; i++) {
		v[i] = zero_float(e);
		ins(e, "@$ ld.shared.f32 $, [$+#]", less(e, add(e, row, imm(i)), k->my_rows), v[i], from,
		    c->at_delta + i * c->delta_row);
	}
	Reg group = divide(e, o, c->group_outputs), own = modulo(e, o, c->group_outputs, group);
	Reg at = mad(e, add(e, k->row0, row), 4, mad(e, c->part, RING * 4, k->memory));
	Reg to = add(e, mad(e, own, c->pitch, at), imm(c->at_delta_t));
	for (uint32_t i = 0; i < c->down; i++) {
		Reg rank = add(e, group, imm(i * c->across));
		quad_send(c, all, remote(c, rank, to), 0, v, remote(c, rank, bar));
	}
	loop_end(e, &l);
}

/* ---- hidden units, backward ---- */

/* out: activations of the quad; all are read before the first delta is sent, which lets the next ones be stored. */
static void back_end(Columns *c, Reg row, const Reg out[4], Reg to, Reg bar, Reg sum[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;

	for (uint32_t i = 0; i < 4; i++) {
		Reg slope = unit_slope(e, c->back->fn, out[i], out[i]);
		slope = op2(e, REG_F, "add.rn.ftz.f32", slope, imm_f(c->back->offset));
		sum[i] = op2(e, REG_F, "mul.rn.ftz.f32", sum[i], slope);
	}
	quad_send(c, less(e, row, k->my_rows), mad(e, add(e, k->row0, row), c->own * 4, to), 0, sum, bar);
}

void errors_back(Columns *c, uint32_t warps)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t groups = c->part_block / c->high, tiles = pass_tiles(groups, c->quads);

	remark(e, "deltas of hidden units, %u rows", c->part_block);
	for (uint32_t round = 0; round * warps < tiles; round++) {
		PassTask t = task_begin(c, round, warps, groups, c->quads);
		Reg quad = t.across, group = t.group, sum[MOST_HIGH][4];
		Product p = { c->outputs, 4, reg(e, REG_R), reg(e, REG_R), groups * c->delta_row, 16, 16, true };
		for (uint32_t h = 0; h < c->high; h++)
			for (uint32_t n = 0; n < 4; n++)
				sum[h][n] = zero_float(e);
		ins(e, "add.u32 $, $, #", p.x, mad(e, add(e, c->base, group), c->delta_row, k->memory), c->at_delta);
		ins(e, "add.u32 $, $, $", p.w, mad(e, quad, c->quad_row, k->memory),
		    mad(e, c->parity, c->to_size, imm(c->at_to)));
		product_emit(c, &p, sum);
		Reg owner = divide(e, quad, c->own_quads), own = modulo(e, quad, c->own_quads, owner);
		Reg to = remote(c, owner, add(e, mad(e, own, 16, k->memory), imm(c->at_hidden)));
		Reg bar = remote(c, owner, part_bar(c, BAR_HIDDEN));
		Reg act = add(e, mad(e, add(e, c->base, group), 16, mad(e, quad, c->act_quad, k->memory)), imm(c->at_act)),
			out[MOST_HIGH][4];
		for (uint32_t h = 0; h < c->high; h++)
			load_quad(e, "shared", out[h], act, h * groups * 16);
		for (uint32_t h = 0; h < c->high; h++)
			back_end(c, add(e, group, imm(h * groups)), out[h], to, bar, sum[h]);
		if_end(e, t.end);
	}
}
