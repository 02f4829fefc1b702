/* SPDX-License-Identifier: MIT */
/* Gradient and rule, fp32. In: activations of the block's columns, deltas. Out: new weights and rule state; new output
 * weights also in all other blocks. Must hold: sums are over rows, in order.
 *
 * Output weights: a thread per weight, four rows of both operands per load. Input weights: a lane per input and quad of
 * columns adds the rows of the input's list (CSC). Weights from the true unit are sums over all rows. */
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

/* Address of the first copy of input weight i, of [input][column]. */
static Reg input_w_address(Columns *c, Reg i)
{
	Emit *e = c->k->e;
	Reg quad = divide(e, i, 4);

	return add(e, mad(e, quad, 16 * c->input_w_copies, mad(e, modulo(e, i, 4, quad), 4, c->k->memory)),
	           imm(c->smem.input_w));
}

/* Input weights of the block's columns, and those from the true unit. */
static void input_weights_move(Columns *c, bool out)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t all = (c->inputs + c->step.input_gradient->bias) * c->block_cols;
	Loop l = loop_begin(e, k->tid, imm(all), k->s->threads);
	Reg row = divide(e, l.i, c->block_cols), col = add(e, c->reg.first_column, modulo(e, l.i, c->block_cols, row));
	Reg is = less(e, col, imm(c->hidden));

	for (uint32_t i = 0; i < (out ? 1 : c->input_w_copies); i++)
		global_move(c, is, 1, add(e, input_w_address(c, l.i), imm(16 * i)), c->input_panel, row, col, out);
	for (uint32_t v = 2; v < 2 + MAX_STATE; v++)
		if (c->keeps[v])
			global_move(
				c, is, v,
				add(e, mad(e, l.i, 4, k->memory), imm(c->smem.input_state + (v - 1) * c->smem.input_state_size)),
				c->input_panel, row, col, out);
	loop_end(e, &l);
}

/* The weight from unit `unit` to output o. */
static void output_weight_move(Columns *c, Reg is, uint32_t v, Reg at, Reg unit, Reg o, bool out)
{
	bool across = c->output_panel->bias_across;

	global_move(c, is, v, at, c->output_panel, across ? o : unit, across ? unit : o, out);
}

/* A weight of the block's group. */
typedef struct GroupPlace {
	Reg unit, output; /* of the network; the true unit is the last */
	Reg is;           /* P: it is a weight */
} GroupPlace;

static GroupPlace group_place(Columns *c, Reg slot, Reg own)
{
	Emit *e = c->k->e;
	GroupPlace g = { .unit = mad(e, c->reg.unit_group, c->group_units, slot),
		             .output = mad(e, c->reg.output_group, c->group_outputs, own) };
	uint32_t units = c->hidden + (c->output_panel->bias != NO_BIAS);
	Reg is_true =
		op2(e, REG_P, "and.pred", same(e, c->reg.unit_group, imm(c->bias_group)), same(e, slot, imm(c->bias_slot)));
	Reg is = op2(e, REG_P, "and.pred", less(e, g.unit, imm(c->hidden)), less(e, slot, imm(c->group_units)));

	g.is = op2(e, REG_P, "and.pred", op2(e, REG_P, "or.pred", is, is_true), less(e, g.output, imm(c->outputs)));
	g.is = op2(e, REG_P, "and.pred", g.is, less(e, g.unit, imm(units)));
	return g;
}

static Reg group_w_address(Columns *c, Reg slot, Reg own)
{
	Emit *e = c->k->e;

	return add(e, mad(e, slot, c->group_outputs * 4, mad(e, own, 4, c->k->memory)), imm(c->smem.group_w));
}

/* A copy of all output weights; master weights of the block's group, with their state. */
static void output_weights_move(Columns *c, bool out)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t units = c->hidden + (c->output_panel->bias != NO_BIAS);

	if (!out) { /* the true unit is last in global memory, too */
		Loop l = loop_begin(e, k->tid, imm(units * c->outputs), k->s->threads);
		Reg n = divide(e, l.i, c->outputs), o = modulo(e, l.i, c->outputs, n);
		output_weight_move(c, less(e, imm(0), imm(1)), 1, mad(e, o, 4, unit_address(c, n, imm(0))), n, o, false);
		loop_end(e, &l);
	}
	Loop s = loop_begin(e, k->tid, imm(c->group_slots * c->group_outputs), k->s->threads);
	Reg slot = divide(e, s.i, c->group_outputs), own = modulo(e, s.i, c->group_outputs, slot);
	GroupPlace g = group_place(c, slot, own);
	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		if (c->keeps[v])
			output_weight_move(c, g.is, v, add(e, group_w_address(c, slot, own), imm((v - 1) * c->smem.group_w_size)),
			                   g.unit, g.output, out);
	loop_end(e, &s);
}

void weights_move(Columns *c, bool out)
{
	remark(c->k->e, out ? "weights to global memory" : "weights");
	input_weights_move(c, out);
	output_weights_move(c, out);
}

/* ---- the rule ---- */

/* Parameter p of the update. */
static Reg number_load(Columns *c, uint32_t p)
{
	return load(c->k->e, REG_G, "ld.shared.f64", c->reg.cases, c->smem.params + 8 * p);
}

PlaceNumbers params_load(Columns *c, const DevicePanel *p)
{
	Kernel *k = c->k;
	const Formula *f = k->s->formula;
	RuleNumbers n = { .rate = number_load(c, P_RATE) };

	for (uint32_t i = 0; i < f->ops; i++)
		if (f->op[i].op == OP_PARAM && f->op[i].a != P_RATE)
			n.param[f->op[i].a] = op1(k->e, REG_F, "cvt.rn.f32.f64", number_load(c, f->op[i].a));
	return known_numbers(k, &n, &k->s->factor[p->factor]);
}

/* Updates one weight and its state: variable v is (v - 1) * size bytes behind `at`. Returns the new weight. */
static Reg weight_update(Columns *c, const PlaceNumbers *n, Reg g, Reg weight, Reg at, uint32_t size)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const Formula *f = k->s->formula;
	uint32_t loads = formula_uses(f, OP_LOAD), stores = formula_uses(f, OP_STORE);
	Reg variable[2 + MAX_STATE] = { g };

	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		variable[v] = loads >> v & 1
		                  ? load(e, REG_F, "ld.shared.f32", v == 1 ? weight : at, v == 1 ? 0 : (v - 1) * size)
		                  : imm_f(0);
	place_values(k, n, variable);
	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		if (stores >> v & 1)
			ins(e, "st.shared.f32 [$+#], $", v == 1 ? weight : at, v == 1 ? 0 : (v - 1) * size, variable[v]);
	Reg none = op2(e, REG_F, "sub.rn.ftz.f32", variable[1], variable[1]);
	infinite_check(k, op2(e, REG_P, "setp.neu.ftz.f32", none, imm_f(0)));
	return variable[1];
}

void quad_update(Columns *c, const PlaceNumbers *n, const Reg g[4], RuleQuad *q)
{
	quad_load(c, q);
	quad_rule(c, n, g, q);
	quad_put(c, q);
}

void quad_load(Columns *c, RuleQuad *q)
{
	uint32_t loads = formula_uses(c->k->s->formula, OP_LOAD);

	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		if (loads >> v & 1)
			load_quad(c->k->e, "shared", q->v[v], v == 1 ? q->weight : q->at, v == 1 ? 0 : (v - 1) * q->size);
}

void quad_rule(Columns *c, const PlaceNumbers *n, const Reg g[4], RuleQuad *q)
{
	uint32_t loads = formula_uses(c->k->s->formula, OP_LOAD);

	for (uint32_t i = 0; i < 4; i++) {
		Reg variable[2 + MAX_STATE] = { g[i] };
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			variable[v] = loads >> v & 1 ? q->v[v][i] : imm_f(0);
		place_values(c->k, n, variable);
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			q->v[v][i] = variable[v];
	}
}

void quad_put(Columns *c, const RuleQuad *q)
{
	Emit *e = c->k->e;
	uint32_t stores = formula_uses(c->k->s->formula, OP_STORE);
	Reg bad = op2(e, REG_P, "setp.ne.u32", imm(0), imm(0));

	for (uint32_t i = 0; i < 4; i++) {
		Reg none = op2(e, REG_F, "sub.rn.ftz.f32", q->v[1][i], q->v[1][i]);
		ins(e, "or.pred $, $, $", bad, bad, op2(e, REG_P, "setp.neu.ftz.f32", none, imm_f(0)));
	}
	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		if (stores >> v & 1)
			store_quad(e, "shared", v == 1 ? q->weight : q->at, v == 1 ? 0 : (v - 1) * q->size, q->v[v]);
	infinite_check(c->k, bad);
}

/* ---- output weights ---- */

enum { GRADIENT_AHEAD = 16 }; /* rows whose loads are in flight */

/* Four rows of both operands. */
typedef struct RowQuads {
	Reg a[4], b[4];
} RowQuads;

static void quads_load(Emit *e, const RowQuads *q, Reg a, Reg b, uint32_t row)
{
	load_quad_to(e, "shared", q->a, a, 4 * row);
	load_quad_to(e, "shared", q->b, b, 4 * row);
}

static void quads_add(Emit *e, const RowQuads *q, Reg sum)
{
	for (uint32_t i = 0; i < 4; i++)
		ins(e, "fma.rn.ftz.f32 $, $, $, $", sum, q->a[i], q->b[i], sum);
}

/* sum += a * b over rows, 16 at a time; past the last row one operand is 0. Loads run GRADIENT_AHEAD rows ahead. */
static void chain_add(Columns *c, Reg a, Reg b, Reg rows, Reg sum)
{
	Emit *e = c->k->e;
	Reg left = op2(e, REG_R, "and.b32", add(e, rows, imm(15)), imm(~15u));
	Reg at_a = op1(e, REG_R, "mov.u32", a), at_b = op1(e, REG_R, "mov.u32", b);
	uint32_t top = label(e), rest = label(e), next = label(e), done = label(e);
	RowQuads q[GRADIENT_AHEAD / 4];

	for (uint32_t i = 0; i < GRADIENT_AHEAD / 4; i++)
		for (uint32_t n = 0; n < 4; n++) {
			q[i].a[n] = reg(e, REG_F);
			q[i].b[n] = reg(e, REG_F);
		}
	ins(e, "@$ bra L#", less(e, left, imm(CHAIN_UNROLL)), rest);
	for (uint32_t i = 0; i < GRADIENT_AHEAD; i += 4)
		quads_load(e, &q[i / 4], at_a, at_b, i);
	label_here(e, top);
	ins(e, ".pragma \"nounroll\"");
	for (uint32_t i = 0; i < CHAIN_UNROLL; i += 4) {
		quads_add(e, &q[i % GRADIENT_AHEAD / 4], sum);
		quads_load(e, &q[i % GRADIENT_AHEAD / 4], at_a, at_b, GRADIENT_AHEAD + i);
	}
	ins(e, "add.u32 $, $, #", at_a, at_a, 4 * CHAIN_UNROLL);
	ins(e, "add.u32 $, $, #", at_b, at_b, 4 * CHAIN_UNROLL);
	ins(e, "sub.u32 $, $, #", left, left, CHAIN_UNROLL);
	ins(e, "@!$ bra L#", less(e, left, imm(CHAIN_UNROLL)), top);
	label_here(e, rest);
	ins(e, "@$ bra L#", same(e, left, imm(0)), done);
	label_here(e, next);
	ins(e, ".pragma \"nounroll\"");
	for (uint32_t i = 0; i < 16; i += 4)
		quads_load(e, &q[i / 4], at_a, at_b, i);
	for (uint32_t i = 0; i < 16; i += 4)
		quads_add(e, &q[i / 4], sum);
	ins(e, "add.u32 $, $, 64", at_a, at_a);
	ins(e, "add.u32 $, $, 64", at_b, at_b);
	ins(e, "sub.u32 $, $, 16", left, left);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", left, imm(0)), next);
	label_here(e, done);
}

/* New weights of a warp's tile, to all blocks. */
static void weights_send(Columns *c, Reg first_slot, Reg first_output)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg next = op2(e, REG_R, "xor.b32", c->reg.parity, imm(1)), v[4];
	Reg rank = divide(e, c->reg.lane, LANES_DOWN), slot = add(e, first_slot, modulo(e, c->reg.lane, LANES_DOWN, rank));
	GroupPlace g = group_place(c, slot, first_output);

	g.is = op2(e, REG_P, "and.pred", g.is, less(e, slot, imm(c->group_slots)));
	uint32_t none = if_begin(e, g.is);
	load_quad(e, "shared", v, group_w_address(c, slot, first_output), 0);
	Reg to = mad(e, g.output, 4, unit_address(c, g.unit, next)), bar = bar_address(c, BAR_OUTPUT_W);
	for (uint32_t i = 0; i < c->blocks; i += 32 / LANES_DOWN) {
		Reg block = add(e, rank, imm(i));
		quad_send(c, less(e, block, imm(c->blocks)), cluster_address(c, block, to), 0, v,
		          cluster_address(c, block, bar));
	}
	if_end(e, none);
}

/* A warp has a tile of weights, or several one after the other; a thread has one weight of each. */
void output_weights_emit(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t down = (uint32_t)ceil_div(c->group_slots, LANES_DOWN), tiles = down * c->group_outputs / LANES_ACROSS;
	uint32_t rounds = (uint32_t)ceil_div(tiles, c->gradient_warps);
	Reg sum[MAX_WARP_TILES], slot[MAX_WARP_TILES], own[MAX_WARP_TILES], is[MAX_WARP_TILES], any[MAX_WARP_TILES],
		a[MAX_WARP_TILES], b[MAX_WARP_TILES];

	Reg units = valid_units(c, c->reg.unit_group), has = op2(e, REG_P, "setp.ne.u32", units, imm(0));
	if (c->output_panel->bias != NO_BIAS)
		has = op2(e, REG_P, "or.pred", has, same(e, c->reg.unit_group, imm(c->bias_group)));
	for (uint32_t r = 0; r < rounds; r++) {
		Reg number = add(e, op2(e, REG_R, "sub.u32", c->reg.warp, imm(c->gradient_first)), imm(r * c->gradient_warps));
		Reg tile = op2(e, REG_R, "min.u32", number, imm(tiles)), across = divide(e, tile, down), all = reg(e, REG_R);
		slot[r] = mul(e, modulo(e, tile, down, across), LANES_DOWN);
		own[r] = mul(e, across, LANES_ACROSS);
		sum[r] = zero_float(e);
		Reg x = add(e, slot[r], lane_down(c)), y = add(e, own[r], lane_across(c));
		is[r] = op2(e, REG_P, "and.pred", less(e, x, imm(c->group_slots)), less(e, y, imm(c->group_outputs)));
		is[r] = op2(e, REG_P, "and.pred", is[r], group_place(c, x, y).is);
		/* a warp without weights sends none: then nothing waits for what it reads */
		ins(e, "vote.sync.ballot.b32 $, $, 0xffffffff", all, is[r]);
		any[r] = op2(e, REG_P, "setp.ne.u32", all, imm(0));
		x = op2(e, REG_R, "min.u32", x, imm(c->group_slots - 1));
		y = op2(e, REG_R, "min.u32", y, imm(c->group_outputs - 1));
		a[r] =
			add(e, mad(e, c->reg.parity, c->smem.act_t_size, mad(e, x, c->smem.column, k->memory)), imm(c->smem.act_t));
		b[r] = add(e, mad(e, y, c->smem.column, k->memory), imm(c->smem.delta_t));
	}
	PlaceNumbers n = params_load(c, c->output_panel);
	go_wait(c);
	if (gradient_runs_ahead(c))
		warps_arrive(c, imm(NAMED_END), c->warps + 1);
	for (uint32_t p = 0; p < c->parts; p++) {
		bar_wait(c, group_bar(c, imm(p)), c->reg.pair_parity); /* also without weights: phases must not be skipped */
		bar_wait(c, bar_address(c, BAR_DELTA + p), c->reg.parity);
		uint32_t row = p * c->smem.part_column;
		for (uint32_t r = 0; r < rounds; r++) {
			uint32_t past = if_begin(e, any[r]);
			chain_add(c, add(e, a[r], imm(row)), add(e, b[r], imm(row)),
			          rows_in(c, imm(p * c->part_rows), c->part_rows), sum[r]);
			if_end(e, past);
		}
	}
	uint32_t also = if_begin(e, has);
	for (uint32_t r = 0; r < rounds; r++) {
		uint32_t other = if_begin(e, is[r]);
		Reg at = group_w_address(c, add(e, slot[r], lane_down(c)), add(e, own[r], lane_across(c)));
		weight_update(c, &n, sum[r], at, at, c->smem.group_w_size);
		if_end(e, other);
	}
	ins(e, "bar.warp.sync 0xffffffff");
	for (uint32_t r = 0; r < rounds; r++) {
		uint32_t past = if_begin(e, any[r]);
		weights_send(c, slot[r], own[r]);
		if_end(e, past);
	}
	if_end(e, also);
}

/* ---- weights from the true unit ----
 *
 * Sums of the deltas of all rows, in order. A lane has a column and a run of rows. All lanes load their runs at
 * once, so that the chain of additions waits for no load; then the sum passes through the runs in order, from lane
 * to lane. Runs have an odd number of rows, so that they begin in different banks. */

enum { MAX_RUN = 33 };

typedef struct Runs {
	uint32_t count;  /* runs of a warp */
	uint32_t rows;   /* of a run */
	uint32_t all;    /* rows of all runs: the last may have fewer */
	Reg run, column; /* of the lane */
	Reg x[MAX_RUN];
} Runs;

static Runs runs_new(Columns *c)
{
	Emit *e = c->k->e;
	Runs r = { .count = 32 / c->block_cols };

	r.rows = min_u32((uint32_t)ceil_div(c->part_rows, r.count) | 1, MAX_RUN);
	r.all = min_u32(r.count * r.rows, c->part_rows);
	r.run = divide(e, c->reg.lane, c->block_cols);
	r.column = modulo(e, c->reg.lane, c->block_cols, r.run);
	for (uint32_t i = 0; i < r.rows; i++)
		r.x[i] = reg(e, REG_F);
	return r;
}

/* Row i of the run; -0, which changes no sum, unless `is`. */
static void run_load(Columns *c, const Runs *r, uint32_t i, Reg is, Reg at)
{
	Emit *e = c->k->e;

	ins(e, "mov.f32 $, $", r->x[i], imm_f(-0.0f));
	ins(e, "@$ ld.shared.f32 $, [$+#]", is, r->x[i], at, c->smem.hidden_delta + i * c->block_cols * 4);
}

/* Loads runs from row `first` on, up to row `past`. */
static void runs_load(Columns *c, const Runs *r, Reg first, Reg past)
{
	Emit *e = c->k->e;
	uint32_t pitch = c->block_cols * 4, end = label(e);
	Reg row = mad(e, r->run, r->rows, first), at = mad(e, row, pitch, mad(e, r->column, 4, c->k->memory));

	uint32_t some = if_begin(e, op2(e, REG_P, "setp.le.u32", add(e, first, imm(r->all)), past));
	for (uint32_t i = 0; i < r->rows; i++) {
		uint32_t runs = i < r->all ? (uint32_t)ceil_div(r->all - i, r->rows) : 0; /* that have row i */
		if (runs >= r->count)
			ins(e, "ld.shared.f32 $, [$+#]", r->x[i], at, c->smem.hidden_delta + i * pitch);
		else
			run_load(c, r, i, less(e, r->run, imm(runs)), at);
	}
	ins(e, "bra L#", end);
	if_end(e, some);
	for (uint32_t i = 0; i < r->rows; i++)
		run_load(c, r, i, less(e, add(e, row, imm(i)), past), at);
	label_here(e, end);
}

/* A loop, not unrolled: the few warps that execute it would miss the instruction cache. */
static void runs_add(Columns *c, const Runs *r, Reg sum)
{
	Emit *e = c->k->e;
	Loop l = loop_count(e, r->count);

	ins(e, ".pragma \"nounroll\"");
	for (uint32_t i = 0; i < r->rows; i++)
		ins(e, "add.rn.ftz.f32 $, $, $", sum, r->x[i], sum);
	ins(e, "shfl.sync.idx.b32 $, $, $, 31, 0xffffffff", sum, sum, mad(e, l.i, c->block_cols, r->column));
	loop_end(e, &l);
}

/* Warps that only sum deltas: one per part, which loads its rows when they are complete, or one for all; 0: there
 * are no such weights, or a warp with lists does it. */
static uint32_t bias_warps(const Columns *c)
{
	uint32_t warps = c->warps - c->gradient_warps;

	return !c->step.input_gradient->bias || warps == 1 ? 0 : warps > c->parts ? c->parts : 1;
}

/* Continues the sums with the rows of a part. is_left: those of the part before are in shared memory. */
static void bias_part(Columns *c, const Runs *r, uint32_t part, bool is_left, Reg sum)
{
	Emit *e = c->k->e;
	Reg first = imm(part * c->part_rows), past = op2(e, REG_R, "min.u32", c->reg.rows, imm((part + 1) * c->part_rows));
	bool once = c->part_rows <= r->count * r->rows;

	bar_wait(c, bar_address(c, BAR_HIDDEN + part), c->reg.parity);
	spent(c->k, SPENT_KINDS + 7 + 2 * part);
	if (once)
		runs_load(c, r, first, past);
	if (is_left) {
		warps_sync(c, imm(NAMED_BIAS), 2);
		ins(e, "ld.shared.f32 $, [$+#]", sum, mad(e, r->column, 4, c->k->memory), c->smem.bias_sum);
	}
	if (once) {
		runs_add(c, r, sum);
	} else {
		Loop l = loop_begin(e, first, past, r->all);
		runs_load(c, r, l.i, past);
		runs_add(c, r, sum);
		loop_end(e, &l);
	}
	spent(c->k, SPENT_KINDS + 8 + 2 * part);
}

/* warp: its number among those that sum deltas */
static void bias_emit(Columns *c, const PlaceNumbers *n, Reg warp)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	bool shared = bias_warps(c) > 1;
	uint32_t done = label(e);
	Runs r = runs_new(c);
	Reg sum = zero_float(e), has = less(e, c->reg.lane, imm(c->block_cols));

	go_wait(c);
	for (uint32_t p = 0; p < c->parts; p++) {
		uint32_t other = shared ? if_begin(e, same(e, warp, imm(p))) : 0;
		bias_part(c, &r, p, shared && p, sum);
		if (shared && p + 1 < c->parts) {
			ins(e, "@$ st.shared.f32 [$+#], $", has, mad(e, r.column, 4, k->memory), c->smem.bias_sum, sum);
			ins(e, "bar.warp.sync 0xffffffff");
			warps_arrive(c, imm(NAMED_BIAS), 2);
			ins(e, "bra L#", done);
		}
		if (shared)
			if_end(e, other);
	}
	uint32_t none = if_begin(e, has);
	Reg at = input_w_address(c, add(e, c->reg.lane, imm(c->inputs * c->block_cols)));
	Reg w = weight_update(
		c, n, sum, at,
		add(e, mad(e, c->reg.lane, 4, k->memory), imm(c->smem.input_state + c->inputs * c->block_cols * 4)),
		c->smem.input_state_size);
	for (uint32_t i = 1; i < c->input_w_copies; i++)
		ins(e, "st.shared.f32 [$+#], $", at, 16 * i, w);
	if_end(e, none);
	label_here(e, done);
}

/* ---- input weights ---- */

/* Updates quad q of an input's weights, and all copies; adjacent lanes begin with different copies, in other banks. */
static void input_weights_update(Columns *c, const PlaceNumbers *n, const Reg g[4], Reg input, Reg q)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg first =
		add(e, mad(e, input, c->smem.input_w_row, mad(e, q, 16 * c->input_w_copies, k->memory)), imm(c->smem.input_w));
	Reg copy = op2(e, REG_R, "shl.b32", op2(e, REG_R, "and.b32", c->reg.lane, imm(c->input_w_copies - 1)), imm(4));
	RuleQuad quad = { .weight = add(e, first, copy),
		              .at =
		                  add(e, mad(e, input, c->block_cols * 4, mad(e, q, 16, k->memory)), imm(c->smem.input_state)),
		              .size = c->smem.input_state_size };

	quad_update(c, n, g, &quad);
	for (uint32_t i = 1; i < c->input_w_copies; i++)
		store_quad(e, "shared", add(e, first, op2(e, REG_R, "xor.b32", copy, imm(16 * i))), 0, quad.v[1]);
}

/* Waits for the deltas of all rows. */
static void hidden_wait(Columns *c)
{
	go_wait(c);
	for (uint32_t p = 0; p < c->parts; p++)
		bar_wait(c, bar_address(c, BAR_HIDDEN + p), c->reg.parity);
}

/* The input of a rank (by falling length of lists), and its list. */
static void list_find(Columns *c, Kernel *one, Reg rank, GradientPart *p)
{
	Emit *e = c->k->e;
	Reg at = mad(e, op2(e, REG_R, "min.u32", rank, imm(c->inputs - 1)), 4, c->k->memory);

	p->input = load(e, REG_R, "ld.shared.u32", at, c->k->at_rank);
	p->word = list_word(one, p->input);
}

/* A lane has a list and a quad of columns, or several lists one after the other. As few warps as possible, since shared
 * memory is the bottleneck. If a lane has one list, it loads all but the deltas before these are complete. */
static void lists_loop(Columns *c, const PlaceNumbers *n, Reg warp, uint32_t warps)
{
	Kernel *k = c->k, *one = update_kernel(c);
	Emit *e = k->e;
	uint32_t each = 32 / c->block_quads;
	Reg own = divide(e, c->reg.lane, c->block_quads), q = modulo(e, c->reg.lane, c->block_quads, own);
	Reg first = mul(e, warp, each), rank = add(e, first, own);
	GradientPart p = { .b_row = c->block_cols * 4, .b = add(e, mad(e, q, 16, k->memory), imm(c->smem.hidden_delta)) };
	bool once = warps * each >= c->inputs;
	ListRows *rows = NULL;
	Loop l = { 0 };

	one->at_csc_start = c->smem.csc;
	one->at_csc = c->smem.csc + (uint32_t)round_up((uint64_t)c->inputs * 4, 16);
	if (once) {
		list_find(c, one, rank, &p);
		rows = list_rows_begin(one, 4, p.word);
	}
	hidden_wait(c);
	if (!once) {
		l = loop_begin(e, first, imm(c->inputs), warps * each);
		rank = add(e, l.i, own);
	}
	uint32_t past = if_begin(e, less(e, rank, imm(c->inputs)));
	for (uint32_t i = 0; i < 4; i++)
		p.sum[0][i] = zero_float(e);
	if (once) {
		list_rows_end(one, rows, &p);
	} else {
		list_find(c, one, rank, &p);
		list_rows_add(one, 4, &p);
	}
	input_weights_update(c, n, p.sum[0], p.input, q);
	if_end(e, past);
	if (!once)
		loop_end(e, &l);
}

/* Number of a warp among those that do not form the output gradient. The first ones sum deltas. If there are enough
 * warps, those are of one scheduler, whose warps get lists last: their shuffles would wait behind loads. */
static Reg lists_warp(Columns *c)
{
	enum { SCHEDULERS = 4 };
	Emit *e = c->k->e;
	uint32_t warps = c->warps - c->gradient_warps, each = warps / SCHEDULERS;
	Reg is_late = op2(e, REG_P, "setp.ge.u32", c->reg.warp, imm(c->gradient_first));
	Reg i =
		op3(e, REG_R, "selp.u32", op2(e, REG_R, "sub.u32", c->reg.warp, imm(c->gradient_warps)), c->reg.warp, is_late);

	if (warps % SCHEDULERS || each < MAX_PARTS)
		return i;
	Reg turn = divide(e, i, SCHEDULERS), scheduler = modulo(e, i, SCHEDULERS, turn);
	Reg apart = op3(e, REG_R, "selp.u32", op2(e, REG_R, "xor.b32", turn, imm(1)),
	                add(e, turn, imm(each * (SCHEDULERS - 1))), less(e, turn, imm(2)));
	return op3(e, REG_R, "selp.u32", apart, add(e, mad(e, turn, SCHEDULERS - 1, scheduler), imm(2)),
	           same(e, scheduler, imm(SCHEDULERS - 1)));
}

void input_weights_emit(Columns *c)
{
	Emit *e = c->k->e;
	uint32_t warps = c->warps - c->gradient_warps, end = label(e), lists = label(e);
	Reg warp = lists_warp(c);

	remark(e, "weights from inputs");
	PlaceNumbers n = params_load(c, c->input_panel);
	uint32_t none = if_begin(e, c->reg.has_columns), bias = bias_warps(c);
	if (c->step.input_gradient->bias) {
		ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", warp, imm(bias ? bias : 1)), lists);
		bias_emit(c, &n, warp);
		if (bias)
			ins(e, "bra L#", end);
		label_here(e, lists);
	}
	lists_loop(c, &n, op2(e, REG_R, "sub.u32", warp, imm(bias)), warps - bias);
	ins(e, "bra L#", end);
	if_end(e, none);
	hidden_wait(c); /* also without columns: phases must not be skipped */
	label_here(e, end);
}
