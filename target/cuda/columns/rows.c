/* SPDX-License-Identifier: MIT */
/* The passes. In: lists and targets of the update, weights. Out: activations, deltas. Must hold: every sum is one chain
 * in the order of its sources or targets. */
#include "columns.h"
#include "units.h"

static void fma_to(Emit *e, Reg sum, Reg a, Reg b) { ins(e, "fma.rn.ftz.f32 $, $, $, $", sum, a, b, sum); }

/* ---- hidden units ---- */

/* Weights of number `pair` >> 16 * high of a list; past the last input is the row of -0. */
static Reg list_weight(Columns *c, Reg pair, uint32_t high)
{
	Emit *e = c->k->e;
	Reg i = high ? op2(e, REG_R, "shr.u32", pair, imm(16)) : op2(e, REG_R, "and.b32", pair, imm(0xffff));

	return mad(e, op2(e, REG_R, "min.u32", i, imm(c->inputs + 1)), c->own * 4, c->k->memory);
}

/* A row: a quad goes to the block that has the row, and by column to the gradient. */
static void hidden_row(Columns *c, Reg row)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg list = add(e, mad(e, row, c->list_row, c->now), imm(c->at_lists));
	Reg owner = divide(e, row, k->block_rows), within = modulo(e, row, k->block_rows, owner), sum[MOST_COLUMNS];
	uint32_t longest = k->s->list_longest;

	for (uint32_t q = 0; q < c->own_quads; q++) {
		if (c->lists->bias)
			load_quad(e, "shared", sum + 4 * q, k->memory, c->at_from + c->inputs * c->own * 4 + 16 * q);
		for (uint32_t i = 0; i < 4 && !c->lists->bias; i++)
			sum[4 * q + i] = zero_float(e);
	}
	for (uint32_t j = 0; j < longest; j += 8) {
		Reg pair[4];
		for (uint32_t i = 0; i < 4; i++)
			pair[i] = reg(e, REG_R);
		ins(e, "ld.shared.v4.u32 {$, $, $, $}, [$+#]", pair[0], pair[1], pair[2], pair[3], list, 2 * j);
		for (uint32_t i = 0; i < 8 && j + i < longest; i++) {
			Reg at = list_weight(c, pair[i / 2], i % 2);
			for (uint32_t q = 0; q < c->own_quads; q++) {
				Reg w[4];
				load_quad(e, "shared", w, at, c->at_from + 16 * q);
				for (uint32_t n = 0; n < 4; n++)
					ins(e, "add.rn.ftz.f32 $, $, $", sum[4 * q + n], w[n], sum[4 * q + n]);
			}
		}
	}
	Reg to =
		remote(c, owner, add(e, mad(e, within, c->act_row, mad(e, c->first_column, 4, k->memory)), imm(c->at_act)));
	Reg by_column = add(e, mad(e, row, 4, k->memory), imm(c->at_column)), bar = remote(c, owner, bar_at(c, BAR_ACT));
	for (uint32_t q = 0; q < c->own_quads; q++) {
		for (uint32_t n = 0; n < 4; n++)
			sum[4 * q + n] = unit_value(e, c->hidden_fn, sum[4 * q + n]);
		Reg quad = add(e, op2(e, REG_R, "shr.u32", c->first_column, imm(2)), imm(q));
		Reg sends = less(e, quad, imm(c->quads)); /* the last block may have fewer */
		quad_send(c, sends, to, 16 * q, sum + 4 * q, bar);
		for (uint32_t n = 0; n < 4; n++)
			ins(e, "st.shared.f32 [$+#], $", by_column, (4 * q + n) * c->pitch, sum[4 * q + n]);
	}
}

/* Past the last row; nothing is read, which others may write by now. */
static void hidden_none(Columns *c, Reg row)
{
	Emit *e = c->k->e;

	for (uint32_t n = 0; n < c->own; n++)
		ins(e, "st.shared.f32 [$+#], 0f00000000", mad(e, row, 4, c->k->memory), c->at_column + n * c->pitch);
}

void hidden_emit(Columns *c)
{
	Emit *e = c->k->e;
	uint32_t none = if_begin(e, c->has_columns);

	remark(e, "activations of %u columns, all rows", c->own);
	for (uint32_t t = 0; t < c->turns; t++) {
		Reg row = add(e, c->k->tid, imm(t * c->workers));
		uint32_t past = if_begin(e, less(e, row, c->rows_now)), end = label(e);
		hidden_row(c, row);
		ins(e, "bra L#", end);
		if_end(e, past);
		uint32_t none_either = if_begin(e, less(e, row, imm(c->rows)));
		hidden_none(c, row);
		if_end(e, none_either);
		label_here(e, end);
	}
	if_end(e, none);
}

/* Quads of rows, to the blocks that have this group of hidden units. */
void columns_send(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t quads = c->rows / 4;
	Reg first = mul(e, c->row_group, c->across);           /* of these blocks */
	Reg slot = op2(e, REG_R, "sub.u32", k->member, first); /* of this one's columns, in their number */
	Reg place = mad(e, c->parity, c->act_t_size, mad(e, slot, c->own * c->pitch, k->memory));

	remark(e, "activations to groups");
	Loop l = loop_begin(e, k->tid, imm(c->own * quads), c->store_warps * 32);
	Reg unit = divide(e, l.i, quads), quad = modulo(e, l.i, quads, unit), v[4];
	uint32_t past = if_begin(e, less(e, add(e, c->first_column, unit), imm(c->hidden)));
	Reg offset = mad(e, unit, c->pitch, mul(e, quad, 16)), all = less(e, imm(0), imm(1));
	load_quad(e, "shared", v, add(e, k->memory, offset), c->at_column);
	Reg to = add(e, add(e, place, offset), imm(c->at_act_t));
	for (uint32_t i = 0; i < c->across; i++) {
		Reg rank = add(e, first, imm(i));
		quad_send(c, all, remote(c, rank, to), 0, v, remote(c, rank, bar_at(c, BAR_GROUP)));
	}
	if_end(e, past);
	loop_end(e, &l);
}

/* ---- outputs ---- */

enum { HIGH = 2, BACK_HIGH = 4 }; /* rows of a thread; by four columns */

/* Operands of four sources. */
typedef struct Operands {
	Reg x[BACK_HIGH][4], w[4][4];
} Operands;

static Operands operands_new(Emit *e)
{
	Operands o;

	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t n = 0; n < 4; n++) {
			o.x[i][n] = reg(e, REG_F);
			o.w[i][n] = reg(e, REG_F);
		}
	return o;
}

/* Rows of x are x_step bytes apart, those of weights unit_row. */
static void operands_load(Columns *c, const Operands *o, Reg x, uint32_t high, uint32_t x_step, Reg w, uint32_t at_x,
                          uint32_t at_w)
{
	Emit *e = c->k->e;

	for (uint32_t i = 0; i < 4; i++)
		load_quad_to(e, "shared", o->w[i], w, at_w + i * c->unit_row);
	for (uint32_t h = 0; h < high; h++)
		load_quad_to(e, "shared", o->x[h], x, at_x + h * x_step);
}

/* Sums over sources: weights are quads of columns. */
static void forward_add(Emit *e, const Operands *o, uint32_t sources, Reg sum[][4])
{
	for (uint32_t i = 0; i < sources; i++)
		for (uint32_t h = 0; h < HIGH; h++)
			for (uint32_t n = 0; n < 4; n++)
				fma_to(e, sum[h][n], o->x[h][i], o->w[i][n]);
}

/* Sums over outputs: weights are quads of these. */
static void backward_add(Emit *e, const Operands *o, uint32_t outputs, Reg sum[][4])
{
	for (uint32_t i = 0; i < outputs; i++)
		for (uint32_t h = 0; h < BACK_HIGH; h++)
			for (uint32_t n = 0; n < 4; n++)
				fma_to(e, sum[h][n], o->x[h][i], o->w[n][i]);
}

/* Units from net inputs; deltas from errors, which are formed of `late` rows later. */
static void outputs_end(Columns *c, Reg quad, Reg row, Reg sum[4])
{
	Kernel *k = c->k;
	Emit *e = k->e;
	const DeviceStep *errors = c->errors, *deltas = late_deltas(k, errors);
	Reg late = add(e, mad(e, row, k->late_row, mad(e, quad, 16, c->now)), imm(k->at_late)), out[4];
	Reg y = add(e, mad(e, row, k->target_row, mad(e, quad, 16, c->now)), imm(k->at_targets));
	Reg is_row = less(e, row, k->my_rows);

	for (uint32_t i = 0; i < 4; i++)
		out[i] = unit_value(e, c->out->fn, sum[i]);
	store_quad(e, "shared", late, late_at(k, errors, false), out);
	if (errors->known_net)
		store_quad(e, "shared", late, late_at(k, errors, true), sum);
	for (uint32_t i = 0; i < 4; i++) {
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
	store_quad(e, "shared", add(e, mad(e, row, c->delta_row, mad(e, quad, 16, k->memory)), imm(c->at_delta)), 0, sum);
}

/* A task of the passes: a thread of pass_warps has one, or one after the other. */
typedef struct PassTask {
	Reg number;
	uint32_t end;
} PassTask;

static PassTask task_begin(Columns *c, uint32_t round, uint32_t tasks)
{
	Emit *e = c->k->e;
	Reg thread = op2(e, REG_R, "sub.u32", c->k->tid, imm(c->pass_first * 32));
	PassTask t = { .number = add(e, thread, imm(round * c->pass_warps * 32)) };

	t.end = if_begin(e, less(e, t.number, imm(tasks)));
	return t;
}

static uint32_t rounds_of(const Columns *c, uint32_t tasks) { return (uint32_t)ceil_div(tasks, c->pass_warps * 32); }

void outputs_emit(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t groups = k->block_rows / HIGH, tasks = groups * c->output_quads, quads = c->hidden / 4;

	remark(e, "outputs of %u rows", k->block_rows);
	for (uint32_t round = 0; round < rounds_of(c, tasks); round++) {
		PassTask t = task_begin(c, round, tasks);
		Reg quad = divide(e, t.number, groups), group = modulo(e, t.number, groups, quad); /* lanes share weights */
		uint32_t none = if_begin(e, less(e, group, k->my_rows));
		Reg sum[HIGH][4], x = reg(e, REG_R), w = reg(e, REG_R), start[4];
		Operands o[2] = { operands_new(e), operands_new(e) };
		uint32_t step = groups * c->act_row;
		if (c->out->start != k->s->job->zero)
			load_quad(e, "shared", start, mad(e, quad, 16, unit_place(c, imm(c->hidden), c->parity)), 0);
		for (uint32_t h = 0; h < HIGH; h++)
			for (uint32_t n = 0; n < 4; n++)
				sum[h][n] = op1(e, REG_F, "mov.f32", c->out->start == k->s->job->zero ? imm_f(0) : start[n]);
		ins(e, "add.u32 $, $, #", x, mad(e, group, c->act_row, k->memory), c->at_act);
		ins(e, "add.u32 $, $, $", w, mad(e, quad, 16, k->memory), mad(e, c->parity, c->to_size, imm(c->at_to)));
		uint32_t done = 0;
		if (quads)
			operands_load(c, &o[0], x, HIGH, step, w, 0, 0);
		if (quads > 2) { /* two quads in a turn: one is loaded while the other is added */
			Loop l = loop_count(e, (quads - 1) / 2);
			operands_load(c, &o[1], x, HIGH, step, w, 16, c->quad_row);
			forward_add(e, &o[0], 4, sum);
			operands_load(c, &o[0], x, HIGH, step, w, 32, 2 * c->quad_row);
			forward_add(e, &o[1], 4, sum);
			ins(e, "add.u32 $, $, 32", x, x);
			ins(e, "add.u32 $, $, #", w, w, 2 * c->quad_row);
			loop_end(e, &l);
			done = (quads - 1) / 2 * 2;
		}
		for (uint32_t i = done; i < quads; i++) {
			uint32_t of = (i - done) % 2, at = i - done + 1;
			if (i + 1 < quads)
				operands_load(c, &o[1 - of], x, HIGH, step, w, 16 * at, at * c->quad_row);
			forward_add(e, &o[of], 4, sum);
		}
		if (c->hidden % 4) {
			operands_load(c, &o[0], x, HIGH, step, w, 16 * (quads - done), (quads - done) * c->quad_row);
			forward_add(e, &o[0], c->hidden % 4, sum);
		}
		for (uint32_t h = 0; h < HIGH; h++)
			outputs_end(c, quad, add(e, group, imm(h * groups)), sum[h]);
		if_end(e, none);
		if_end(e, t.end);
	}
}

/* Quads of rows, to the blocks that have this group of outputs. Rows past the last are 0. */
void deltas_send(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t quads = k->block_rows / 4;

	remark(e, "deltas of outputs to groups");
	Loop l = loop_begin(e, k->tid, imm(c->outputs * quads), c->store_warps * 32);
	Reg quad = divide(e, l.i, c->outputs), o = modulo(e, l.i, c->outputs, quad), v[4], row = mul(e, quad, 4);
	Reg from = mad(e, row, c->delta_row, mad(e, o, 4, k->memory)), all = less(e, imm(0), imm(1));
	for (uint32_t i = 0; i < 4; i++) {
		v[i] = zero_float(e);
		ins(e, "@$ ld.shared.f32 $, [$+#]", less(e, add(e, row, imm(i)), k->my_rows), v[i], from,
		    c->at_delta + i * c->delta_row);
	}
	Reg group = divide(e, o, c->group_outputs), own = modulo(e, o, c->group_outputs, group);
	Reg to = add(e, mad(e, own, c->pitch, mad(e, add(e, k->row0, row), 4, k->memory)), imm(c->at_delta_t));
	for (uint32_t i = 0; i < c->down; i++) {
		Reg rank = add(e, group, imm(i * c->across));
		quad_send(c, all, remote(c, rank, to), 0, v, remote(c, rank, bar_at(c, BAR_DELTA)));
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

void errors_back(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t groups = k->block_rows / BACK_HIGH, tasks = groups * c->quads, step = groups * c->delta_row;

	remark(e, "deltas of hidden units, %u rows", k->block_rows);
	for (uint32_t round = 0; round < rounds_of(c, tasks); round++) {
		PassTask t = task_begin(c, round, tasks);
		Reg quad = divide(e, t.number, groups), group = modulo(e, t.number, groups, quad), sum[BACK_HIGH][4];
		uint32_t none = if_begin(e, less(e, group, k->my_rows));
		Reg x = reg(e, REG_R), w = reg(e, REG_R);
		Operands o[2] = { operands_new(e), operands_new(e) };
		for (uint32_t h = 0; h < BACK_HIGH; h++)
			for (uint32_t n = 0; n < 4; n++)
				sum[h][n] = zero_float(e);
		ins(e, "add.u32 $, $, #", x, mad(e, group, c->delta_row, k->memory), c->at_delta);
		ins(e, "add.u32 $, $, $", w, mad(e, quad, c->quad_row, k->memory),
		    mad(e, c->parity, c->to_size, imm(c->at_to)));
		operands_load(c, &o[0], x, BACK_HIGH, step, w, 0, 0);
		uint32_t full = c->outputs / 4, done = full > 2 ? (full - 1) / 2 * 2 : 0;
		if (done) {
			Loop l = loop_count(e, done / 2);
			operands_load(c, &o[1], x, BACK_HIGH, step, w, 16, 16);
			backward_add(e, &o[0], 4, sum);
			operands_load(c, &o[0], x, BACK_HIGH, step, w, 32, 32);
			backward_add(e, &o[1], 4, sum);
			ins(e, "add.u32 $, $, 32", x, x);
			ins(e, "add.u32 $, $, 32", w, w);
			loop_end(e, &l);
		}
		for (uint32_t i = done; i < c->output_quads; i++) {
			uint32_t of = (i - done) % 2, at = 16 * (i - done + 1);
			if (i + 1 < c->output_quads)
				operands_load(c, &o[1 - of], x, BACK_HIGH, step, w, at, at);
			backward_add(e, &o[of], min_u32(4, c->outputs - 4 * i), sum);
		}
		Reg owner = divide(e, quad, c->own_quads), own = modulo(e, quad, c->own_quads, owner);
		Reg to = remote(c, owner, add(e, mad(e, own, 16, k->memory), imm(c->at_hidden)));
		Reg bar = remote(c, owner, bar_at(c, BAR_HIDDEN));
		Reg act = add(e, mad(e, group, c->act_row, mad(e, quad, 16, k->memory)), imm(c->at_act)), out[BACK_HIGH][4];
		for (uint32_t h = 0; h < BACK_HIGH; h++)
			load_quad(e, "shared", out[h], act, h * groups * c->act_row);
		for (uint32_t h = 0; h < BACK_HIGH; h++)
			back_end(c, add(e, group, imm(h * groups)), out[h], to, bar, sum[h]);
		if_end(e, none);
		if_end(e, t.end);
	}
}
