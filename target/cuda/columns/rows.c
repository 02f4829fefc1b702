/* SPDX-License-Identifier: MIT */
/* Forward and backward passes, fp32. In: index lists and targets of the update, weights. Out: activations, deltas. Must
 * hold: every sum is one chain, in the order of its sources or targets. */
#include "columns.h"
#include "units.h"

static void fma_to(Emit *e, Reg sum, Reg a, Reg b) { ins(e, "fma.rn.ftz.f32 $, $, $, $", sum, a, b, sum); }

/* ---- hidden units ---- */

/* act_t of the block's columns: activations by column, at their place in the unit group. */
static Reg columns_address(Columns *c)
{
	Emit *e = c->k->e;
	Reg slot = op2(e, REG_R, "sub.u32", c->k->member, mul(e, c->reg.unit_group, c->output_groups));

	return add(e, mad(e, c->reg.parity, c->smem.act_t_size, mad(e, slot, c->block_cols * c->smem.column, c->k->memory)),
	           imm(c->smem.act_t));
}

/* Column n of the block, at `at`. In the last block some columns may not exist: the true unit is stored there. */
static void column_store(Columns *c, Reg at, uint32_t n, Reg v)
{
	Emit *e = c->k->e;

	if (c->hidden % c->block_cols == 0)
		ins(e, "st.shared.f32 [$+#], $", at, n * c->smem.column, v);
	else
		ins(e, "@$ st.shared.f32 [$+#], $", less(e, add(e, c->reg.first_column, imm(n)), imm(c->hidden)), at,
		    n * c->smem.column, v);
}

/* Address of the weights of one of two inputs of a list, in the lane's copy. Padding selects the row of -0. */
static Reg list_weight(Columns *c, Reg copy, Reg pair, uint32_t high)
{
	Emit *e = c->k->e;
	Reg i = high ? op2(e, REG_R, "shr.u32", pair, imm(16)) : op2(e, REG_R, "and.b32", pair, imm(0xffff));

	return mad(e, op2(e, REG_R, "min.u32", i, imm(c->inputs + 1)), c->smem.input_w_row, copy);
}

/* Activations of a row: sent to the block of the row, stored by column for the gradient. */
static void hidden_row(Columns *c, Reg row)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg list = add(e, mad(e, row, c->list_row, c->reg.cases), imm(c->smem.csr));
	Reg at_part = op2(e, REG_R, "sub.u32", row, mul(e, c->reg.part, c->part_rows)),
		owner = divide(e, at_part, c->part_block_rows);
	Reg within = add(e, c->reg.first_row, modulo(e, at_part, c->part_block_rows, owner)), sum[MAX_COLUMNS];
	Reg copy = mad(e, op2(e, REG_R, "and.b32", c->reg.lane, imm(c->input_w_copies - 1)), 16, k->memory);
	uint32_t longest = k->s->list_longest, quad_size = 16 * c->input_w_copies;

	for (uint32_t q = 0; q < c->block_quads; q++) {
		if (c->step.input_gradient->bias)
			load_quad(e, "shared", sum + 4 * q, copy,
			          c->smem.input_w + c->inputs * c->smem.input_w_row + q * quad_size);
		for (uint32_t i = 0; i < 4 && !c->step.input_gradient->bias; i++)
			sum[4 * q + i] = zero_float(e);
	}
	for (uint32_t j = 0; j < longest; j += 8) {
		Reg pair[4];
		for (uint32_t i = 0; i < 4; i++)
			pair[i] = reg(e, REG_R);
		ins(e, "ld.shared.v4.u32 {$, $, $, $}, [$+#]", pair[0], pair[1], pair[2], pair[3], list, 2 * j);
		for (uint32_t i = 0; i < 8 && j + i < longest; i++) {
			Reg at = list_weight(c, copy, pair[i / 2], i % 2);
			for (uint32_t q = 0; q < c->block_quads; q++) {
				Reg w[4];
				load_quad(e, "shared", w, at, c->smem.input_w + q * quad_size);
				for (uint32_t n = 0; n < 4; n++)
					ins(e, "add.rn.ftz.f32 $, $, $", sum[4 * q + n], w[n], sum[4 * q + n]);
			}
		}
	}
	Reg to = cluster_address(
		c, owner,
		add(e, mad(e, within, 16, mad(e, c->reg.first_column, c->smem.act_quad / 4, k->memory)), imm(c->smem.act)));
	Reg by_column = mad(e, row, 4, mad(e, c->reg.part, CHAIN_AHEAD * 4, columns_address(c))),
		bar = cluster_address(c, owner, part_bar(c, BAR_ACT));
	for (uint32_t q = 0; q < c->block_quads; q++) {
		for (uint32_t n = 0; n < 4; n++)
			sum[4 * q + n] = unit_value(e, c->step.hidden_fn, sum[4 * q + n]);
		Reg quad = add(e, op2(e, REG_R, "shr.u32", c->reg.first_column, imm(2)), imm(q));
		Reg sends = less(e, quad, imm(c->hidden_quads)); /* the last block may have fewer */
		quad_send(c, sends, to, q * c->smem.act_quad, sum + 4 * q, bar);
		for (uint32_t n = 0; n < 4; n++)
			column_store(c, by_column, 4 * q + n, sum[4 * q + n]);
	}
}

/* A row past the last one: zeros. Reads nothing, since the prefetching warp may be writing lists. */
static void hidden_none(Columns *c, Reg row)
{
	Emit *e = c->k->e;

	Reg at = mad(e, row, 4, mad(e, c->reg.part, CHAIN_AHEAD * 4, columns_address(c)));
	for (uint32_t n = 0; n < c->block_cols; n++)
		column_store(c, at, n, imm_f(0));
}

void hidden_emit(Columns *c)
{
	Emit *e = c->k->e;
	uint32_t none = if_begin(e, c->reg.has_columns);

	remark(e, "activations of %u columns, all rows", c->block_cols);
	for (uint32_t t = 0; t < c->worker_rows; t++) {
		Reg at = add(e, c->reg.part_thread, imm(t * c->part_warps * 32)), row = mad(e, c->reg.part, c->part_rows, at);
		uint32_t other = if_begin(e, less(e, at, imm(c->part_rows)));
		uint32_t past = if_begin(e, less(e, row, c->reg.rows)), end = label(e);
		hidden_row(c, row);
		ins(e, "bra L#", end);
		if_end(e, past);
		hidden_none(c, row);
		label_here(e, end);
		if_end(e, other);
	}
	if_end(e, none);
}

/* To the other blocks of the unit group: bulk copies, a lane each. Remote stores would delay loads of other warps. */
void activations_send(Columns *c, uint32_t first_warp, uint32_t warps)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg thread = op2(e, REG_R, "sub.u32", c->reg.part_thread, imm(first_warp * 32));

	remark(e, "activations to groups");
	Loop l = loop_begin(e, thread, imm(c->block_cols * c->output_groups), warps * 32);
	Reg unit = divide(e, l.i, c->output_groups), other = modulo(e, l.i, c->output_groups, unit);
	Reg rank = mad(e, c->reg.unit_group, c->output_groups, other), is = op2(e, REG_P, "setp.ne.u32", rank, k->member);
	uint32_t none =
		if_begin(e, op2(e, REG_P, "and.pred", is, less(e, add(e, c->reg.first_column, unit), imm(c->hidden))));
	Reg at = mad(e, unit, c->smem.column, mad(e, c->reg.part, c->smem.part_column, columns_address(c)));
	bulk_fence(k, false);
	bulk_send(c, cluster_address(c, rank, at), at, c->part_rows * 4,
	          cluster_address(c, rank, group_bar(c, c->reg.part)));
	if_end(e, none);
	loop_end(e, &l);
}

/* ---- outputs ---- */

enum { MAX_THREAD_ROWS = 2 };
enum {
	SETS = 3,  /* of operands, whose loads are in flight: software pipeline */
	UNROLL = 6 /* sets of an iteration, at whose end the compiler waits for all loads */
};

/* A product of rows x by weights w: a register tile of thread_rows rows by `wide` columns. Rows are x_step bytes apart.
 * by_unit: w has sources side by side (backward), else columns (forward). */
typedef struct Product {
	uint32_t sources, wide; /* columns of a thread */
	Reg x, w;
	uint32_t x_step, x_quad, w_quad;
	bool by_unit;
} Product;

/* Operands of four sources. */
typedef struct Operands {
	Reg x[MAX_THREAD_ROWS][4], w[4][4];
} Operands;

static Operands operands_new(Emit *e)
{
	Operands o;

	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t n = 0; n < 4; n++) {
			if (i < MAX_THREAD_ROWS)
				o.x[i][n] = reg(e, REG_F);
			o.w[i][n] = reg(e, REG_F);
		}
	return o;
}

static void operands_load(Columns *c, const Product *p, const Operands *o, uint32_t quad)
{
	Emit *e = c->k->e;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t offset = quad * p->w_quad + i * c->smem.unit_row;
		if (p->wide == 4)
			load_quad_to(e, "shared", o->w[i], p->w, offset);
		else
			ins(e, "ld.shared.v2.f32 {$, $}, [$+#]", o->w[i][0], o->w[i][1], p->w, offset);
	}
	for (uint32_t h = 0; h < c->thread_rows; h++)
		load_quad_to(e, "shared", o->x[h], p->x, quad * p->x_quad + h * p->x_step);
}

static void operands_add(Columns *c, const Product *p, const Operands *o, uint32_t sources, Reg sum[][4])
{
	Emit *e = c->k->e;

	for (uint32_t i = 0; i < sources; i++)
		for (uint32_t h = 0; h < c->thread_rows; h++)
			for (uint32_t n = 0; n < p->wide; n++)
				fma_to(e, sum[h][n], o->x[h][i], p->by_unit ? o->w[n][i] : o->w[i][n]);
}

/* Software pipeline: when a set of operands was added, it is loaded again. */
static void product_emit(Columns *c, const Product *p, Reg sum[][4])
{
	Emit *e = c->k->e;
	uint32_t all = (uint32_t)ceil_div(p->sources, 4), turns = all > SETS ? (all - SETS) / UNROLL : 0,
			 done = turns * UNROLL;
	Operands o[SETS];

	for (uint32_t i = 0; i < SETS; i++)
		o[i] = operands_new(e);
	for (uint32_t i = 0; i < min_u32(SETS, all); i++)
		operands_load(c, p, &o[i], i);
	if (turns) {
		Loop l = loop_count(e, turns);
		ins(e, ".pragma \"nounroll\"");
		for (uint32_t i = 0; i < UNROLL; i++) {
			operands_add(c, p, &o[i % SETS], 4, sum);
			operands_load(c, p, &o[i % SETS], SETS + i);
		}
		ins(e, "add.u32 $, $, #", p->x, p->x, p->x_quad * UNROLL);
		ins(e, "add.u32 $, $, #", p->w, p->w, p->w_quad * UNROLL);
		loop_end(e, &l);
	}
	for (uint32_t i = done; i < all; i++) {
		operands_add(c, p, &o[i % SETS], min_u32(4, p->sources - 4 * i), sum);
		if (i + SETS < all)
			operands_load(c, p, &o[i % SETS], i + SETS - done);
	}
}

/* Adjacent columns: two or four. */
static void columns_store(Emit *e, uint32_t wide, Reg at, uint32_t offset, const Reg v[4])
{
	if (wide == 4)
		store_quad(e, "shared", at, offset, v);
	else
		ins(e, "st.shared.v2.f32 [$+#], {$, $}", at, offset, v[0], v[1]);
}

/* Epilogue: outputs from net inputs, deltas from errors. Outputs are stored, so that a side warp scores them later.
 * first: byte of the first column */
static void outputs_end(Columns *c, Reg first, Reg row, Reg sum[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const DeviceStep *errors = c->step.errors, *deltas = deferred_deltas(k, errors);
	Reg at = add(e, c->reg.first_row, row), here = add(e, first, c->reg.cases);
	Reg late = add(e, mad(e, at, k->deferred_row, here), imm(k->at_deferred));
	Reg y = add(e, mad(e, at, k->target_row, here), imm(k->at_targets)), out[4];
	Reg is_row = less(e, row, k->my_rows);

	for (uint32_t i = 0; i < c->thread_cols; i++)
		out[i] = unit_value(e, c->step.outputs->fn, sum[i]);
	columns_store(e, c->thread_cols, late, deferred_at(k, errors, false), out);
	if (errors->known_net)
		columns_store(e, c->thread_cols, late, deferred_at(k, errors, true), sum);
	for (uint32_t i = 0; i < c->thread_cols; i++) {
		ErrorOf of = {
			.fn = c->step.outputs->fn, .error = errors->error, .known_net = errors->known_net, .out = out[i]
		};
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
	columns_store(e, c->thread_cols,
	              add(e, mad(e, at, c->smem.delta_row, add(e, first, k->memory)), imm(c->smem.delta)), 0, sum);
}

/* A register tile of a thread: rows `group` + i * groups, columns across * wide ... In rounds, if there are more
 * tiles. */
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
	Reg tile = add(e, c->reg.part_warp, imm(round * warps));
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
	uint32_t groups = c->part_block_rows / c->thread_rows, across = (uint32_t)ceil_div(c->outputs, c->thread_cols);
	bool starts = c->step.outputs->start != k->s->job->zero;

	remark(e, "outputs of %u rows", c->part_block_rows);
	for (uint32_t round = 0; round * c->pass_warps < pass_tiles(groups, across); round++) {
		PassTask t = task_begin(c, round, c->pass_warps, groups, across);
		Reg first = mul(e, t.across, 4 * c->thread_cols), group = t.group, sum[MAX_THREAD_ROWS][4], start[4];
		Product p = { c->hidden,   c->thread_cols,   reg(e, REG_R),         reg(e, REG_R),
			          groups * 16, c->smem.act_quad, c->smem.unit_quad_row, false };
		Reg true_unit = add(e, first, unit_address(c, imm(c->hidden), c->reg.parity));
		for (uint32_t n = 0; n < c->thread_cols; n++)
			start[n] = starts ? load(e, REG_F, "ld.shared.f32", true_unit, 4 * n) : imm_f(0);
		for (uint32_t h = 0; h < c->thread_rows; h++)
			for (uint32_t n = 0; n < c->thread_cols; n++)
				sum[h][n] = op1(e, REG_F, "mov.f32", start[n]);
		ins(e, "add.u32 $, $, #", p.x, mad(e, add(e, c->reg.first_row, group), 16, k->memory), c->smem.act);
		ins(e, "add.u32 $, $, $", p.w, add(e, first, k->memory),
		    mad(e, c->reg.parity, c->smem.output_w_size, imm(c->smem.output_w)));
		product_emit(c, &p, sum);
		for (uint32_t h = 0; h < c->thread_rows; h++)
			outputs_end(c, first, add(e, group, imm(h * groups)), sum[h]);
		if_end(e, t.end);
	}
}

/* Quads of rows, to all blocks of the output group. Rows past the last are 0. */
void deltas_send(Columns *c, uint32_t first, uint32_t warps)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t quads = c->part_block_rows / 4;
	Reg bar = part_bar(c, BAR_DELTA);

	remark(e, "deltas of outputs to groups");
	Reg thread = op2(e, REG_R, "sub.u32", c->reg.part_thread, imm(first * 32));
	Loop l = loop_begin(e, thread, imm(c->outputs * quads), warps * 32);
	Reg o = divide(e, l.i, quads), quad = modulo(e, l.i, quads, o), v[4], row = mul(e, quad, 4); /* adjacent rows */
	Reg from = mad(e, add(e, c->reg.first_row, row), c->smem.delta_row, mad(e, o, 4, k->memory)),
		all = less(e, imm(0), imm(1));
	for (uint32_t i = 0; i < 4; i++) {
		v[i] = zero_float(e);
		ins(e, "@$ ld.shared.f32 $, [$+#]", less(e, add(e, row, imm(i)), k->my_rows), v[i], from,
		    c->smem.delta + i * c->smem.delta_row);
	}
	Reg group = divide(e, o, c->group_outputs), own = modulo(e, o, c->group_outputs, group);
	Reg at = mad(e, add(e, k->row0, row), 4, mad(e, c->reg.part, CHAIN_AHEAD * 4, k->memory));
	Reg to = add(e, mad(e, own, c->smem.column, at), imm(c->smem.delta_t));
	for (uint32_t i = 0; i < c->unit_groups; i++) {
		Reg rank = add(e, group, imm(i * c->output_groups));
		quad_send(c, all, cluster_address(c, rank, to), 0, v, cluster_address(c, rank, bar));
	}
	loop_end(e, &l);
}

/* ---- hidden units, backward ---- */

/* Epilogue: deltas from sums. out: activations of the quad; all are read before the first delta is sent, after which
 * other blocks may store new ones. */
static void back_end(Columns *c, Reg row, const Reg out[4], Reg to, Reg bar, Reg sum[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;

	for (uint32_t i = 0; i < 4; i++) {
		Reg slope = unit_slope(e, c->step.back->fn, out[i], out[i]);
		slope = op2(e, REG_F, "add.rn.ftz.f32", slope, imm_f(c->step.back->offset));
		sum[i] = op2(e, REG_F, "mul.rn.ftz.f32", sum[i], slope);
	}
	quad_send(c, less(e, row, k->my_rows), mad(e, add(e, k->row0, row), c->block_cols * 4, to), 0, sum, bar);
}

void hidden_deltas_emit(Columns *c, uint32_t warps)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t groups = c->part_block_rows / c->thread_rows, tiles = pass_tiles(groups, c->hidden_quads);

	remark(e, "deltas of hidden units, %u rows", c->part_block_rows);
	for (uint32_t round = 0; round * warps < tiles; round++) {
		PassTask t = task_begin(c, round, warps, groups, c->hidden_quads);
		Reg quad = t.across, group = t.group, sum[MAX_THREAD_ROWS][4];
		Product p = { c->outputs, 4, reg(e, REG_R), reg(e, REG_R), groups * c->smem.delta_row, 16, 16, true };
		for (uint32_t h = 0; h < c->thread_rows; h++)
			for (uint32_t n = 0; n < 4; n++)
				sum[h][n] = zero_float(e);
		ins(e, "add.u32 $, $, #", p.x, mad(e, add(e, c->reg.first_row, group), c->smem.delta_row, k->memory),
		    c->smem.delta);
		ins(e, "add.u32 $, $, $", p.w, mad(e, quad, c->smem.unit_quad_row, k->memory),
		    mad(e, c->reg.parity, c->smem.output_w_size, imm(c->smem.output_w)));
		product_emit(c, &p, sum);
		Reg owner = divide(e, quad, c->block_quads), own = modulo(e, quad, c->block_quads, owner);
		Reg to = cluster_address(c, owner, add(e, mad(e, own, 16, k->memory), imm(c->smem.hidden_delta)));
		Reg bar = cluster_address(c, owner, part_bar(c, BAR_HIDDEN));
		Reg act = add(e, mad(e, add(e, c->reg.first_row, group), 16, mad(e, quad, c->smem.act_quad, k->memory)),
		              imm(c->smem.act)),
			out[MAX_THREAD_ROWS][4];
		for (uint32_t h = 0; h < c->thread_rows; h++)
			load_quad(e, "shared", out[h], act, h * groups * 16);
		for (uint32_t h = 0; h < c->thread_rows; h++)
			back_end(c, add(e, group, imm(h * groups)), out[h], to, bar, sum[h]);
		if_end(e, t.end);
	}
}
