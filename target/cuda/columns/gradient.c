/* SPDX-License-Identifier: MIT */
/* The gradient and the rule, where the weights are. In: activations of the block's columns, deltas. Out: new weights
 * and rule state; weights to outputs also in all other blocks. Must hold: rows are summed in order.
 *
 * Weights to outputs: a thread has one of the block's group, and reads four rows of both operands at a time. Weights
 * from inputs: a thread has an input and a column, and adds the rows of its list. */
#include "columns.h"

/* ---- weights ---- */

static void global_move(Columns *c, Reg is, uint32_t v, Reg at, const DevicePanel *p, Reg row, Reg col, bool out)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg there = variable_at(k, v, p, mad(e, row, p->row, col));

	if (!out) {
		Reg x = zero_float(e);
		ins(e, "@$ ld.global.f32 $, [$]", is, x, there);
		ins(e, "@$ st.shared.f32 [$], $", is, at, x);
		return;
	}
	Reg x = load(e, REG_F, "ld.shared.f32", at, 0);
	ins(e, "@$ st.global.f32 [$], $", is, there, x);
	if (v == 1 && p->copy != NO_COPY)
		ins(e, "@$ st.global.f32 [$], $", is,
		    place(e, place(e, place_at(e, POINTER(k, copies), p->copy * 4), col, p->copy_row * 4), row, 4), x);
}

/* Weights from inputs and the true unit, of the block's columns: [input][column]. */
static void from_move(Columns *c, bool out)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t all = (c->inputs + c->lists->bias) * c->own;
	Loop l = loop_begin(e, k->tid, imm(all), k->s->threads);
	Reg row = divide(e, l.i, c->own), col = add(e, c->first_column, modulo(e, l.i, c->own, row));
	Reg is = less(e, col, imm(c->hidden));

	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		if (c->state[v])
			global_move(c, is, v, add(e, mad(e, l.i, 4, k->memory), imm(c->at_from + (v - 1) * c->from_size)), c->from,
			            row, col, out);
	loop_end(e, &l);
}

/* A weight from unit `unit` to output o. */
static void to_place(Columns *c, Reg is, uint32_t v, Reg at, Reg unit, Reg o, bool out)
{
	bool across = c->to->bias_across;

	global_move(c, is, v, at, c->to, across ? o : unit, across ? unit : o, out);
}

/* Of a group of weights to outputs: unit and output of the network; the true unit is the last. */
typedef struct GroupPlace {
	Reg unit, output, is; /* P: it is one */
} GroupPlace;

static GroupPlace group_place(Columns *c, Reg slot, Reg own)
{
	Emit *e = c->k->e;
	GroupPlace g = { .unit = mad(e, c->row_group, c->group_units, slot),
		             .output = mad(e, c->output_group, c->group_outputs, own) };
	uint32_t units = c->hidden + (c->to->bias != NO_BIAS);
	Reg is_true =
		op2(e, REG_P, "and.pred", same(e, c->row_group, imm(c->bias_group)), same(e, slot, imm(c->bias_slot)));
	Reg is = op2(e, REG_P, "and.pred", less(e, g.unit, imm(c->hidden)), less(e, slot, imm(c->group_units)));

	g.is = op2(e, REG_P, "and.pred", op2(e, REG_P, "or.pred", is, is_true), less(e, g.output, imm(c->outputs)));
	g.is = op2(e, REG_P, "and.pred", g.is, less(e, g.unit, imm(units)));
	return g;
}

static Reg own_at(Columns *c, Reg slot, Reg own)
{
	Emit *e = c->k->e;

	return add(e, mad(e, slot, c->group_outputs * 4, mad(e, own, 4, c->k->memory)), imm(c->at_own));
}

/* A copy of all weights to outputs; those of the block's group, with their state. */
static void to_move(Columns *c, bool out)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t units = c->hidden + (c->to->bias != NO_BIAS);

	if (!out) { /* the true unit's are behind those of others, in global memory too */
		Loop l = loop_begin(e, k->tid, imm(units * c->outputs), k->s->threads);
		Reg n = divide(e, l.i, c->outputs), o = modulo(e, l.i, c->outputs, n);
		to_place(c, less(e, imm(0), imm(1)), 1, mad(e, o, 4, unit_place(c, n, imm(0))), n, o, false);
		loop_end(e, &l);
	}
	Loop s = loop_begin(e, k->tid, imm(c->slots * c->group_outputs), k->s->threads);
	Reg slot = divide(e, s.i, c->group_outputs), own = modulo(e, s.i, c->group_outputs, slot);
	GroupPlace g = group_place(c, slot, own);
	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		if (c->state[v])
			to_place(c, g.is, v, add(e, own_at(c, slot, own), imm((v - 1) * c->own_size)), g.unit, g.output, out);
	loop_end(e, &s);
}

void weights_move(Columns *c, bool out)
{
	remark(c->k->e, out ? "weights to global memory" : "weights");
	from_move(c, out);
	to_move(c, out);
}

/* ---- the rule ---- */

/* Numbers of the update, from shared memory. */
static Reg number_load(Columns *c, uint32_t p)
{
	return load(c->k->e, REG_G, "ld.shared.f64", c->now, c->at_numbers + 8 * p);
}

static PlaceNumbers rule_begin(Columns *c, const DevicePanel *p)
{
	Kernel *k = c->k;
	const Formula *f = k->s->formula;
	RuleNumbers n = { .rate = number_load(c, P_RATE) };

	for (uint32_t i = 0; i < f->ops; i++)
		if (f->op[i].op == OP_PARAM && f->op[i].a != P_RATE)
			n.param[f->op[i].a] = op1(k->e, REG_F, "cvt.rn.f32.f64", number_load(c, f->op[i].a));
	return known_numbers(k, &n, &k->s->factor[p->factor]);
}

/* A weight at `at`, and its state, each `size` bytes behind the other. Returns the new weight. */
static Reg rule_place(Columns *c, const PlaceNumbers *n, Reg g, Reg at, uint32_t size)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Formula *f = k->s->formula;
	uint32_t loads = formula_uses(f, OP_LOAD), stores = formula_uses(f, OP_STORE);
	Reg variable[2 + MAX_STATE] = { g };

	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		variable[v] = loads >> v & 1 ? load(e, REG_F, "ld.shared.f32", at, (v - 1) * size) : imm_f(0);
	place_values(k, n, variable);
	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		if (stores >> v & 1)
			ins(e, "st.shared.f32 [$+#], $", at, (v - 1) * size, variable[v]);
	Reg none = op2(e, REG_F, "sub.rn.ftz.f32", variable[1], variable[1]);
	infinite_check(k, op2(e, REG_P, "setp.neu.ftz.f32", none, imm_f(0)));
	return variable[1];
}

/* ---- weights to outputs ---- */

/* Eight rows of both operands. */
typedef struct RowQuads {
	Reg a[8], b[8];
} RowQuads;

static RowQuads quads_new(Emit *e)
{
	RowQuads q;

	for (uint32_t i = 0; i < 8; i++) {
		q.a[i] = reg(e, REG_F);
		q.b[i] = reg(e, REG_F);
	}
	return q;
}

static void quads_load(Emit *e, const RowQuads *q, Reg a, Reg b, uint32_t offset)
{
	for (uint32_t i = 0; i < 8; i += 4) {
		load_quad_to(e, "shared", q->a + i, a, offset + 4 * i);
		load_quad_to(e, "shared", q->b + i, b, offset + 4 * i);
	}
}

static void quads_add(Emit *e, const RowQuads *q, Reg sum)
{
	for (uint32_t i = 0; i < 8; i++)
		ins(e, "fma.rn.ftz.f32 $, $, $, $", sum, q->a[i], q->b[i], sum);
}

/* All rows, 16 at a time; past the last row both operands are 0, or one is. */
static void dense_rows(Columns *c, Reg a, Reg b, Reg sum)
{
	Emit *e = c->k->e;
	Reg full = op2(e, REG_R, "and.b32", add(e, c->rows_now, imm(15)), imm(~15u));
	RowQuads q[2] = { quads_new(e), quads_new(e) };
	Reg at_a = op1(e, REG_R, "mov.u32", a), at_b = op1(e, REG_R, "mov.u32", b);

	quads_load(e, &q[0], at_a, at_b, 0);
	Loop l = loop_begin(e, imm(0), full, 16);
	quads_load(e, &q[1], at_a, at_b, 32);
	quads_add(e, &q[0], sum);
	quads_load(e, &q[0], at_a, at_b, 64);
	quads_add(e, &q[1], sum);
	ins(e, "add.u32 $, $, 64", at_a, at_a);
	ins(e, "add.u32 $, $, 64", at_b, at_b);
	loop_end(e, &l);
}

/* New weights to all blocks, in quads. */
static void weights_send(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t each = c->group_outputs / 4, quads = c->slots * each, threads = c->dense_warps * 32;
	Reg next = op2(e, REG_R, "xor.b32", c->parity, imm(1));

	Loop l = loop_begin(e, k->tid, imm(quads * c->blocks), threads);
	Reg rank = divide(e, l.i, quads), rest = modulo(e, l.i, quads, rank), slot = divide(e, rest, each), v[4];
	Reg own = mul(e, modulo(e, rest, each, slot), 4);
	GroupPlace g = group_place(c, slot, own);
	load_quad(e, "shared", v, own_at(c, slot, own), 0);
	Reg to = mad(e, g.output, 4, unit_place(c, g.unit, next));
	quad_send(c, g.is, remote(c, rank, to), 0, v, remote(c, rank, bar_at(c, BAR_ACT)));
	loop_end(e, &l);
}

void dense_emit(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t threads = c->dense_warps * 32, rounds = (uint32_t)ceil_div(c->slots * c->group_outputs, threads);
	Reg sum[DENSE_ROUNDS], slot[DENSE_ROUNDS], own[DENSE_ROUNDS];

	Reg units = valid_units(c, c->row_group), has = op2(e, REG_P, "setp.ne.u32", units, imm(0));
	if (c->to->bias != NO_BIAS)
		has = op2(e, REG_P, "or.pred", has, same(e, c->row_group, imm(c->bias_group)));
	bar_wait(c, bar_at(c, BAR_GROUP), c->parity); /* also without weights: the next phase begins then */
	bar_wait(c, bar_at(c, BAR_DELTA), c->parity);
	spent(k, SPENT_KINDS + 6);
	uint32_t none = if_begin(e, has);
	for (uint32_t r = 0; r < rounds; r++) {
		Reg task = op2(e, REG_R, "min.u32", add(e, k->tid, imm(r * threads)), imm(c->slots * c->group_outputs - 1));
		own[r] = divide(e, task, c->slots);
		slot[r] = modulo(e, task, c->slots, own[r]);
		sum[r] = zero_float(e);
		Reg a = mad(e, c->parity, c->act_t_size, mad(e, slot[r], c->pitch, k->memory));
		dense_rows(c, add(e, a, imm(c->at_act_t)), add(e, mad(e, own[r], c->pitch, k->memory), imm(c->at_delta_t)),
		           sum[r]);
	}
	spent(k, SPENT_KINDS + 7);
	if_end(e, none);
	tallied_wait(c);
	uint32_t also = if_begin(e, has);
	PlaceNumbers n = rule_begin(c, c->to);
	for (uint32_t r = 0; r < rounds; r++) {
		GroupPlace g = group_place(c, slot[r], own[r]);
		Reg is = op2(e, REG_P, "and.pred", g.is,
		             less(e, add(e, k->tid, imm(r * threads)), imm(c->slots * c->group_outputs)));
		uint32_t other = if_begin(e, is);
		rule_place(c, &n, sum[r], own_at(c, slot[r], own[r]), c->own_size);
		if_end(e, other);
	}
	meet(c, NAMED_DENSE, c->dense_warps);
	weights_send(c);
	if_end(e, also);
	spent(k, SPENT_KINDS + 8);
}

/* ---- weights from inputs ---- */

/* Rows of a group of a list: 16-bit numbers, two in a register. */
typedef struct ListGroup {
	Reg pair[4], x[LIST_PAD];
} ListGroup;

static ListGroup group_new(Emit *e)
{
	ListGroup g;

	for (uint32_t i = 0; i < 4; i++)
		g.pair[i] = reg(e, REG_R);
	for (uint32_t m = 0; m < LIST_PAD; m++)
		g.x[m] = reg(e, REG_F);
	return g;
}

static void group_numbers(Emit *e, const ListGroup *g, Reg at, uint32_t offset)
{
	ins(e, "ld.shared.v4.u32 {$, $, $, $}, [$+#]", g->pair[0], g->pair[1], g->pair[2], g->pair[3], at, offset);
}

static void group_load(Columns *c, const ListGroup *g, Reg from)
{
	Emit *e = c->k->e;

	for (uint32_t m = 0; m < LIST_PAD; m++) {
		Reg row = m % 2 ? op2(e, REG_R, "shr.u32", g->pair[m / 2], imm(16))
		                : op2(e, REG_R, "and.b32", g->pair[m / 2], imm(0xffff));
		ins(e, "ld.shared.f32 $, [$]", g->x[m], mad(e, row, c->own * 4, from));
	}
}

static void group_add(Emit *e, const ListGroup *g, Reg sum)
{
	for (uint32_t m = 0; m < LIST_PAD; m++)
		ins(e, "add.rn.ftz.f32 $, $, $", sum, g->x[m], sum);
}

/* One group is loaded while the other is added, and the numbers of the next; groups past the last are those of another
 * list, and not added. */
static void list_rows(Columns *c, Reg word, Reg from, Reg sum)
{
	Emit *e = c->k->e;
	uint32_t bytes = 2 * LIST_PAD, starts = (uint32_t)round_up((uint64_t)c->inputs * 4, 16);
	Reg at = reg(e, REG_R), left = op2(e, REG_R, "shr.u32", word, imm(16));
	ListGroup g[2] = { group_new(e), group_new(e) };

	ins(e, "add.u32 $, $, #", at, mad(e, op2(e, REG_R, "and.b32", word, imm(0xffff)), bytes, c->now),
	    c->at_image + starts);
	uint32_t done = unless_begin(e, same(e, left, imm(0))), top = label(e);
	group_numbers(e, &g[0], at, 0);
	group_numbers(e, &g[1], at, bytes);
	group_load(c, &g[0], from);
	label_here(e, top);
	group_load(c, &g[1], from);
	group_numbers(e, &g[0], at, 2 * bytes);
	group_add(e, &g[0], sum);
	ins(e, "@$ bra L#", same(e, left, imm(1)), done);
	group_load(c, &g[0], from);
	group_numbers(e, &g[1], at, 3 * bytes);
	group_add(e, &g[1], sum);
	ins(e, "add.u32 $, $, #", at, at, 2 * bytes);
	ins(e, "sub.u32 $, $, 2", left, left);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", left, imm(0)), top);
	if_end(e, done);
}

/* Lists of a warp, one after the other. */
static void list_loop(Columns *c, const PlaceNumbers *n, Reg warp, uint32_t warps, uint32_t lists, uint32_t all,
                      Reg column, Reg own, Reg from)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Loop l = loop_begin(e, mul(e, warp, lists), imm(all), warps * lists);
	Reg rank = add(e, l.i, own);
	uint32_t past = if_begin(e, less(e, rank, imm(all)));
	Reg input = load(e, REG_R, "ld.shared.u32", mad(e, rank, 4, k->memory), c->at_rank);
	Reg word = load(e, REG_R, "ld.shared.u32", mad(e, input, 4, c->now), c->at_image), sum = zero_float(e);

	list_rows(c, word, from, sum);
	Reg at = add(e, mad(e, input, c->own * 4, mad(e, column, 4, k->memory)), imm(c->at_from));
	rule_place(c, n, sum, at, c->from_size);
	if_end(e, past);
	loop_end(e, &l);
}

/* Eight rows of a column, from address `at` on. */
static void column_load(Columns *c, const Reg x[8], Reg at, uint32_t row)
{
	for (uint32_t i = 0; i < 8; i++)
		ins(c->k->e, "ld.shared.f32 $, [$+#]", x[i], at, (row + i) * c->own * 4);
}

static void column_add(Emit *e, const Reg x[8], Reg sum)
{
	for (uint32_t i = 0; i < 8; i++)
		ins(e, "add.rn.ftz.f32 $, $, $", sum, x[i], sum);
}

/* Weights from the true unit: all rows, by a lane for each column. Rows past the last full turn are read with others
 * behind them, which count as -0. */
static void bias_emit(Columns *c, const PlaceNumbers *n)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t none = if_begin(e, less(e, c->lane, imm(c->own)));
	Reg x[2][8], sum = zero_float(e), at = reg(e, REG_R);
	Reg full = op2(e, REG_R, "and.b32", c->rows_now, imm(~15u)), rest = op2(e, REG_R, "and.b32", c->rows_now, imm(15));

	for (uint32_t i = 0; i < 16; i++)
		x[i / 8][i % 8] = reg(e, REG_F);
	ins(e, "add.u32 $, $, #", at, mad(e, c->lane, 4, k->memory), c->at_hidden);
	column_load(c, x[0], at, 0);
	Loop l = loop_begin(e, imm(0), full, 16);
	column_load(c, x[1], at, 8);
	column_add(e, x[0], sum);
	column_load(c, x[0], at, 16);
	column_add(e, x[1], sum);
	ins(e, "add.u32 $, $, #", at, at, 16 * c->own * 4);
	loop_end(e, &l);
	column_load(c, x[1], at, 8);
	for (uint32_t i = 0; i < 15; i++)
		ins(e, "add.rn.ftz.f32 $, $, $", sum,
		    op3(e, REG_F, "selp.f32", x[i / 8][i % 8], imm_f(-0.0f), less(e, imm(i), rest)), sum);
	rule_place(c, n, sum, add(e, mad(e, c->lane, 4, k->memory), imm(c->at_from + c->inputs * c->own * 4)),
	           c->from_size);
	if_end(e, none);
}

void lists_emit(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t lists = 32 / c->own, warps = c->warps - c->dense_warps, all = c->inputs;
	Reg column = modulo(e, c->lane, c->own, divide(e, c->lane, c->own)), own = divide(e, c->lane, c->own);
	Reg from = add(e, mad(e, column, 4, k->memory), imm(c->at_hidden));
	Reg warp = op2(e, REG_R, "sub.u32", c->warp, imm(c->dense_warps));

	remark(e, "weights from inputs: %u lists in a warp", lists);
	bar_wait(c, bar_at(c, BAR_HIDDEN), c->parity);
	tallied_wait(c);
	uint32_t none = if_begin(e, c->has_columns);
	PlaceNumbers n = rule_begin(c, c->from);
	if (c->lists->bias) { /* the last one */
		uint32_t other = if_begin(e, same(e, warp, imm(warps - 1))), end = label(e);
		bias_emit(c, &n);
		if (warps > 1)
			ins(e, "bra L#", end);
		if_end(e, other);
		warps -= warps > 1;
		list_loop(c, &n, warp, warps, lists, all, column, own, from);
		label_here(e, end);
	} else {
		list_loop(c, &n, warp, warps, lists, all, column, own, from);
	}
	if_end(e, none);
}
