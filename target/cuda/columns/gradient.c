/* SPDX-License-Identifier: MIT */
/* The gradient and the rule, where the weights are. In: activations of the block's columns, deltas. Out: new weights
 * and rule state; weights to outputs also in all other blocks. Must hold: rows are summed in order.
 *
 * Weights to outputs: a thread has one, and reads four rows of both operands at a time. Weights from inputs: a thread
 * has an input and a column, and adds the rows of its list. */
#include "columns.h"

enum { STAGED_ROWS = 128 }; /* that are waited for together */

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

/* A weight of a unit of the block and its state, by the unit's number there. */
static void own_move(Columns *c, Reg is, Reg own, Reg unit, Reg o, bool out)
{
	Emit *e = c->k->e;
	Reg at = add(e, mad(e, own, c->unit_row, mad(e, o, 4, c->k->memory)), imm(c->at_own));

	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		if (c->state[v])
			to_place(c, is, v, add(e, at, imm((v - 1) * c->own_size)), unit, o, out);
}

static Reg is_last(Columns *c) { return same(c->k->e, c->k->member, imm(c->blocks - 1)); }

/* A copy of all weights to outputs; those of the block's units, with their state. */
static void to_move(Columns *c, bool out)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg all = less(e, imm(0), imm(1)), n, o, unit;

	if (!out) {
		Loop l = loop_begin(e, k->tid, imm(c->hidden * c->outputs), k->s->threads);
		n = divide(e, l.i, c->outputs);
		o = modulo(e, l.i, c->outputs, n);
		to_place(c, all, 1, mad(e, o, 4, unit_place(c, n)), n, o, false);
		loop_end(e, &l);
	}
	Loop s = loop_begin(e, k->tid, imm(c->own * c->outputs), k->s->threads);
	n = divide(e, s.i, c->outputs);
	o = modulo(e, s.i, c->outputs, n);
	unit = add(e, c->first_column, n);
	own_move(c, less(e, unit, imm(c->hidden)), n, unit, o, out);
	loop_end(e, &s);
	if (c->to->bias == NO_BIAS)
		return;
	Loop b = loop_begin(e, k->tid, imm(c->outputs), k->s->threads);
	if (!out)
		to_place(c, all, 1, add(e, mad(e, b.i, 4, k->memory), imm(c->at_to_bias)), imm(c->to->bias), b.i, false);
	own_move(c, is_last(c), imm(c->own), imm(c->to->bias), b.i, out);
	loop_end(e, &b);
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

static uint32_t staged_parts(const Columns *c) { return (uint32_t)ceil_div(c->rows, STAGED_ROWS); }

/* Deltas of some rows after the other, a group of copies each. */
static void dense_stage(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t each = (uint32_t)ceil_div(c->outputs, c->dense_warps), quads = STAGED_ROWS / 4;

	remark(e, "deltas of outputs");
	for (uint32_t part = 0; part < staged_parts(c); part++) {
		for (uint32_t i = 0; i < each; i++) {
			Reg o = add(e, c->warp, imm(i * c->dense_warps)), quad = add(e, c->lane, imm(part * quads));
			Reg is = op2(e, REG_P, "and.pred", less(e, o, imm(c->outputs)), less(e, quad, imm(c->rows / 4)));
			ins(e, "@$ cp.async.cg.shared.global [$+#], [$], 16", is, mad(e, o, c->pitch, mad(e, quad, 16, k->memory)),
			    c->at_delta_t, place(e, place(e, c->exchange, o, c->rows * 4), quad, 16));
		}
		ins(e, "cp.async.commit_group");
	}
}

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

/* Rows of a part that has come; 16 at a time, past the last row both operands are 0. */
static void dense_rows(Columns *c, uint32_t part, Reg a, Reg b, Reg sum)
{
	Emit *e = c->k->e;
	Reg full = op2(e, REG_R, "and.b32", add(e, c->rows_now, imm(15)), imm(~15u));
	Reg end = op2(e, REG_R, "min.u32", full, imm((part + 1) * STAGED_ROWS)), first = imm(part * STAGED_ROWS);
	uint32_t none = if_begin(e, less(e, first, end));
	RowQuads q[2] = { quads_new(e), quads_new(e) };
	Reg at_a = op1(e, REG_R, "mov.u32", add(e, a, imm(part * STAGED_ROWS * 4)));
	Reg at_b = op1(e, REG_R, "mov.u32", add(e, b, imm(part * STAGED_ROWS * 4)));

	quads_load(e, &q[0], at_a, at_b, 0);
	Loop l = loop_begin(e, first, end, 16);
	quads_load(e, &q[1], at_a, at_b, 32);
	quads_add(e, &q[0], sum);
	Reg more = op3(e, REG_R, "selp.u32", imm(64), imm(0), less(e, add(e, l.i, imm(16)), end)); /* else those again */
	ins(e, "add.u32 $, $, $", at_a, at_a, more);
	ins(e, "add.u32 $, $, $", at_b, at_b, more);
	quads_load(e, &q[0], at_a, at_b, 0);
	quads_add(e, &q[1], sum);
	loop_end(e, &l);
	if_end(e, none);
}

/* Which weight a thread has: four units by eight outputs in a warp; of the true unit, 32 outputs. */
typedef struct DenseTask {
	Reg unit, output, is_mine; /* unit: in the block; the last one is the true unit */
} DenseTask;

static DenseTask dense_task(Columns *c, uint32_t round)
{
	Emit *e = c->k->e;
	uint32_t across = (uint32_t)ceil_div(c->outputs, 8), plain = across * c->own_quads;
	Reg group = add(e, c->warp, imm(round * c->dense_warps)), is_true = op2(e, REG_P, "setp.ge.u32", group, imm(plain));
	Reg down = divide(e, group, across), right = modulo(e, group, across, down);
	Reg unit = mad(e, down, 4, op2(e, REG_R, "and.b32", c->lane, imm(3)));
	Reg output = mad(e, right, 8, op2(e, REG_R, "shr.u32", c->lane, imm(2)));
	DenseTask t = { .unit = op3(e, REG_R, "selp.u32", imm(c->own), unit, is_true) };
	Reg past = op2(e, REG_R, "sub.u32", group, imm(plain));

	t.output = op3(e, REG_R, "selp.u32", mad(e, past, 32, c->lane), output, is_true);
	Reg real = less(e, add(e, c->first_column, unit), imm(c->hidden)), last = is_last(c);
	if (c->to->bias == NO_BIAS)
		last = less(e, imm(1), imm(0));
	Reg mine = op2(e, REG_P, "or.pred", op2(e, REG_P, "and.pred", is_true, last),
	               op2(e, REG_P, "and.pred", op1(e, REG_P, "not.pred", is_true), real));
	mine = op2(e, REG_P, "and.pred", mine, less(e, group, imm(c->dense_groups)));
	t.is_mine = op2(e, REG_P, "and.pred", mine, less(e, t.output, imm(c->outputs)));
	return t;
}

/* The new weight goes to all blocks. */
static void dense_end(Columns *c, const PlaceNumbers *n, const DenseTask *t, Reg sum)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t none = if_begin(e, t->is_mine);
	Reg at = add(e, mad(e, t->unit, c->unit_row, mad(e, t->output, 4, k->memory)), imm(c->at_own));
	Reg w = rule_place(c, n, sum, at, c->own_size), bar = bar_at(c, BAR_ACT);
	Reg to = op3(e, REG_R, "selp.u32", add(e, k->memory, imm(c->at_to_bias)),
	             unit_place(c, add(e, c->first_column, t->unit)), same(e, t->unit, imm(c->own)));

	to = mad(e, t->output, 4, to);
	for (uint32_t rank = 0; rank < c->blocks; rank++)
		ins(e, "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [$], $, [$]", remote(c, imm(rank), to), w,
		    remote(c, imm(rank), bar));
	if_end(e, none);
}

void dense_emit(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t rounds = (uint32_t)ceil_div(c->dense_groups, c->dense_warps), parts = staged_parts(c);
	Reg sums[DENSE_ROUNDS];
	DenseTask task[DENSE_ROUNDS];
	Reg has = c->has_columns;

	if (c->to->bias != NO_BIAS)
		has = op2(e, REG_P, "or.pred", has, is_last(c));
	uint32_t none = if_begin(e, has);
	bar_wait(c, bar_at(c, BAR_DELTA), c->parity);
	spent(k, SPENT_KINDS + 5);
	dense_stage(c);
	for (uint32_t round = 0; round < rounds; round++) {
		DenseTask t = task[round] = dense_task(c, round);
		Reg unit = op2(e, REG_R, "min.u32", t.unit, imm(c->own)), sum = sums[round] = zero_float(e);
		Reg output = op2(e, REG_R, "min.u32", t.output, imm(c->outputs - 1));
		Reg a = add(e, mad(e, unit, c->pitch, k->memory), imm(c->at_act_t));
		Reg b = add(e, mad(e, output, c->pitch, k->memory), imm(c->at_delta_t));
		for (uint32_t part = 0; part < parts; part++) {
			if (!round) {
				ins(e, "cp.async.wait_group #", parts - 1 - part);
				meet(c, NAMED_DENSE, c->dense_warps);
				spent(k, SPENT_KINDS + 6);
			}
			dense_rows(c, part, a, b, sum);
			spent(k, SPENT_KINDS + 7);
		}
	}
	bar_wait(c, bar_at(c, BAR_HIDDEN), c->parity); /* other blocks have used the weights */
	if_end(e, none);
	tallied_wait(c);
	uint32_t also = if_begin(e, has);
	PlaceNumbers n = rule_begin(c, c->to);
	for (uint32_t round = 0; round < rounds; round++)
		dense_end(c, &n, &task[round], sums[round]);
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
