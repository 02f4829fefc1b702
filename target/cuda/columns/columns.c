/* SPDX-License-Identifier: MIT */
/* The plan, and the loop of updates of the workers. In: steps of the device. Out: the text, or why there is none. */
#include <stdlib.h>

#include "columns.h"
#include "units.h"

/* ---- steps ---- */

/* The steps that the kernel is made for, in their order. */
static const char *steps_find(Columns *c)
{
	const EmitSource *s = c->k->s;
	const DeviceStep *units = NULL;

	for (uint32_t i = 0; i < s->list->steps; i++) {
		const DeviceStep *d = &s->step[i];
		switch (d->kind) {
		case STEP_MARK:
		case STEP_ONE:
		case STEP_SCORES:
		case STEP_CODES: break;
		case STEP_INDEX:
			if (c->index)
				return "several lists";
			c->index = d;
			break;
		case STEP_UNITS:
			if (units || !c->index || c->out || d->c_col != c->index->c_col || d->cols != c->index->cols)
				return "units";
			units = d;
			break;
		case STEP_PRODUCT:
			if (!c->index || c->back)
				return "several layers";
			*(c->out ? &c->back : &c->out) = d;
			break;
		case STEP_ERRORS:
			if (!c->out || c->errors)
				return "several groups of outputs";
			c->errors = d;
			break;
		case STEP_DELTAS:
			if (!is_late(c->k, d))
				return "deltas";
			break;
		case STEP_GRADIENT: c->dense = d; break;
		case STEP_GRADIENT_INDEX: c->lists = d; break;
		default: return "a kind of step";
		}
	}
	if (!c->index || !c->out || !c->errors || !c->back || !c->dense || !c->lists ||
	    s->list->steps - s->list->gradient != 2)
		return "layers";
	if (c->index->sigmoid == (units != NULL) || (units && units->fn == FN_SOFTMAX))
		return "units";
	c->hidden_fn = units ? units->fn : FN_SIGMOID;
	return NULL;
}

/* Do the steps fit together, with nothing else between them? */
static const char *steps_check(const Columns *c)
{
	const EmitSource *s = c->k->s;
	const DeviceStep *x = c->index, *o = c->out, *b = c->back;
	const float *zero = s->job->zero;

	if (x->low || x->depth != s->job->data.inputs || c->lists->low || c->lists->depth != x->depth ||
	    c->lists->cols != x->cols || x->start != (c->lists->bias ? x->b + (size_t)x->depth * x->b_row : zero))
		return "inputs";
	if (late_errors(c->k, o) != c->errors || c->errors->c >= BUFS || o->a != BUF_ACT || o->a_col != x->c_col ||
	    o->depth != x->cols || o->cols != s->job->outputs || !o->start)
		return "outputs";
	if (b->start != zero || b->after != AFTER_DELTAS || b->keeps_net || b->c_col != x->c_col || b->cols != x->cols ||
	    b->depth != o->cols || b->a_col != c->errors->c_col || b->fn == FN_SOFTMAX ||
	    (o->start == zero) != (c->to->bias == NO_BIAS))
		return "errors of hidden units";
	uint32_t sources = x->cols + (c->to->bias != NO_BIAS);
	bool by_source = c->dense->a == BUF_ACT;
	if ((by_source ? c->dense->depth : c->dense->cols) != sources ||
	    (by_source ? c->dense->cols : c->dense->depth) != o->cols || c->to->bias_across == by_source)
		return "weights";
	return NULL;
}

static const char *covered(const EmitSource *s)
{
	const Job *j = s->job;

	if (s->cluster < 2 || s->cluster > MOST_CLUSTER || s->teams != 1 || s->solo || s->half || s->test ||
	    s->mode != JOB_UPDATE)
		return "the job";
	if (s->kinds_of_leaves != 1 || s->leaves[0] != 1 || s->leaf_rows > 512)
		return "leaves";
	if (j->timed || j->noisy || j->noise || j->data.weight || needs_pending(s) || j->criteria)
		return "noise, weights of cases, or a rule that needs all weights";
	if (!j->data.from || j->data.value || !j->data.short_list)
		return "inputs";
	if (j->panels != 2 || s->panel[0].kind || s->panel[1].kind)
		return "links of several kinds";
	return NULL;
}

/* ---- memory ---- */

static uint32_t take(Columns *c, uint64_t bytes)
{
	Kernel *k = c->k;
	uint32_t at = k->bytes;

	k->bytes = (uint32_t)min_u64(k->bytes + round_up(bytes, 16), UINT32_MAX / 2);
	return at;
}

static uint32_t odd_quads(uint32_t floats) { return (((floats + 3) / 4) | 1) * 16; } /* rows begin in other banks */

/* Of all rows of an update. */
static uint32_t error_bytes(const Columns *c) { return (uint32_t)round_up((uint64_t)c->rows * 4 + 128, 128); }
static uint32_t verdict_bytes(const Columns *c) { return (uint32_t)round_up((uint64_t)c->rows + 32, 128); }

static void plan_memory(Columns *c)
{
	Kernel *k = c->k;
	const EmitSource *s = k->s;
	uint32_t states = 0;

	for (uint32_t v = 2; v < 2 + MAX_STATE; v++)
		states = c->state[v] ? v - 1 : states;
	c->at_bars = take(c, 8 * BARS);
	c->at_bad = take(c, 4);
	c->at_stop = take(c, 8);
	k->at_cycles = take(c, 8 * (1 + SPENT_KINDS + STEPS_TIMED));
	c->at_rank = take(c, (uint64_t)c->inputs * 4);
	/* weights of inputs, of the true unit, and a row of -0 that lists are filled up with */
	c->from_size = (uint32_t)round_up((uint64_t)(c->inputs + 2) * c->own * 4, 16);
	c->at_from = take(c, (uint64_t)c->from_size * (1 + states));
	/* quads of units in different banks, outputs of a unit side by side */
	c->unit_row = c->output_quads * 16;
	c->quad_row = 4 * c->unit_row + 16;
	c->to_size = (c->hidden / 4 + 1) * c->quad_row; /* with the true unit */
	c->at_to = take(c, 2 * (uint64_t)c->to_size);
	c->own_size = c->slots * c->group_outputs * 4;
	c->at_own = take(c, (uint64_t)c->own_size * (1 + states));
	c->act_row = odd_quads(4 * c->quads);
	c->at_act = take(c, (uint64_t)c->act_row * k->block_rows);
	c->delta_row = odd_quads(4 * c->output_quads);
	c->at_delta = take(c, (uint64_t)c->delta_row * k->block_rows);
	c->pitch = (uint32_t)round_up((uint64_t)c->rows * 4 + 128, 128) + 16; /* a turn past the last is read */
	c->at_column = take(c, (uint64_t)c->pitch * c->own);
	c->act_t_size = c->pitch * c->slots;
	c->at_act_t = take(c, 2 * (uint64_t)c->act_t_size);
	c->at_delta_t = take(c, (uint64_t)c->pitch * c->group_outputs);
	c->hidden_pad = (uint32_t)round_up(s->leaf_rows, ROWS_TURN);
	c->at_hidden = take(c, (uint64_t)(c->hidden_pad + 1 + ROWS_TURN) * c->own * 4); /* rows past the last are read */
	k->bytes = (uint32_t)round_up(k->bytes, 128);
	c->at_cases = k->bytes;
	c->at_count = take(c, 4);
	c->at_numbers = take(c, 8 * P_COUNT);
	c->at_lists = take(c, (uint64_t)c->rows * c->list_row);
	k->bytes = (uint32_t)round_up(k->bytes, 128);
	c->at_image = take(c, c->image + 4 * 2 * LIST_PAD); /* groups past the last list are read */
	k->target_row = (uint32_t)(s->job->data.targets | 1) * 4;
	k->at_targets = take(c, (uint64_t)k->target_row * k->row_space + 16);
	k->at_own = take(c, s->job->data.code_count ? k->row_space * sizeof(CodeOwn) : 0);
	k->late_row = (late_at(k, NULL, false) / 16 | 1) * 16;
	k->at_late = take(c, (uint64_t)k->late_row * k->row_space);
	k->bytes = (uint32_t)round_up(k->bytes, 128);
	c->cases_size = k->bytes - c->at_cases;
	take(c, c->cases_size);
	c->at_errors = 0;
	c->at_verdicts = c->at_errors + 2 * error_bytes(c);
}

uint32_t columns_each(uint32_t hidden, uint32_t blocks)
{
	uint32_t own = 4; /* a power of two: lanes of a warp divide them evenly */

	while (own * blocks < hidden)
		own *= 2;
	return own;
}

/* As many groups of outputs as of hidden units, or fewer; none is empty. */
static void plan_groups(Columns *c)
{
	for (c->across = c->blocks; c->across > 1; c->across--) {
		uint32_t each = (uint32_t)ceil_div(c->output_quads, c->across);
		if (c->blocks % c->across == 0 && c->across * c->across <= c->blocks &&
		    each * (c->across - 1) < c->output_quads)
			break;
	}
	c->down = c->blocks / c->across;
	c->group_outputs = 4 * (uint32_t)ceil_div(c->output_quads, c->across);
	c->group_units = c->slots = c->across * c->own;
	c->bias_group = c->bias_slot = NO_BIAS;
	if (c->to->bias != NO_BIAS) { /* behind the last hidden unit */
		c->bias_group = min_u32(c->hidden / c->group_units, c->down - 1);
		c->bias_slot = c->hidden - c->bias_group * c->group_units;
		c->slots = max_u32(c->slots, c->bias_slot + 1);
	}
}

static const char *plan(Columns *c, const EmitSource *s, uint32_t image)
{
	Kernel *k = c->k;
	const char *why = covered(s);

	k->s = s;
	if (why)
		return why;
	c->from = c->to = NULL;
	plan_judged(k);
	if (!k->judged)
		return "errors";
	why = steps_find(c);
	if (why)
		return why;
	c->from = &s->panel[c->lists->panel];
	c->to = &s->panel[c->dense->panel];
	why = steps_check(c);
	if (why)
		return why;
	uint32_t loads = formula_uses(s->formula, OP_LOAD) | formula_uses(s->formula, OP_STORE);
	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		c->state[v] = v == 1 || loads >> v & 1;
	c->blocks = s->cluster;
	c->inputs = s->job->data.inputs;
	c->hidden = c->index->cols;
	c->outputs = c->out->cols;
	c->quads = (uint32_t)ceil_div(c->hidden, 4);
	c->output_quads = (uint32_t)ceil_div(c->outputs, 4);
	c->own = columns_each(c->hidden, c->blocks);
	c->own_quads = c->own / 4;
	k->block_rows = (uint32_t)round_up(ceil_div(s->leaf_rows, c->blocks), 4);
	k->row_space = k->block_rows + 1;
	c->rows = k->block_rows * c->blocks;
	c->workers = s->threads - SIDE_WARPS * 32;
	c->warps = c->workers / 32;
	c->turns = (uint32_t)ceil_div(c->rows, c->workers);
	c->all_turns = (uint32_t)ceil_div(c->rows, 32);
	c->own_turns = (uint32_t)ceil_div(k->block_rows, 32);
	if (c->own > MOST_COLUMNS || c->all_turns > MOST_TURNS || c->warps < 2)
		return "hidden units, or rows";
	plan_groups(c);
	c->dense_warps = min_u32((uint32_t)ceil_div(c->slots * c->group_outputs, 32), max_u32(1, c->warps / 3));
	c->pass_first = c->warps >= 12 ? 8 : c->dense_warps;
	c->pass_warps = c->warps >= 12 ? 4 : c->warps - c->dense_warps;
	c->store_warps = c->warps >= 12 ? c->pass_first : c->warps;
	c->to_bytes = (c->hidden + (c->to->bias != NO_BIAS)) * c->output_quads * 16;
	if (ceil_div(c->slots * c->group_outputs, c->dense_warps * 32) > DENSE_ROUNDS)
		return "weights to outputs";
	c->image = image;
	c->list_row = k->list_row = (uint32_t)round_up(s->list_longest, LIST_PAD) * 2;
	k->workers = c->workers;
	k->bytes = 0;
	plan_memory(c);
	return k->bytes > s->shared ? "shared memory" : NULL;
}

/* ---- addresses ---- */

Reg remote(Columns *c, Reg rank, Reg at) { return op2(c->k->e, REG_R, "mapa.shared::cluster.u32", at, rank); }

Reg unit_place(Columns *c, Reg unit, Reg parity)
{
	Emit *e = c->k->e;
	Reg quad = divide(e, unit, 4), rest = modulo(e, unit, 4, quad);

	return add(e, mad(e, quad, c->quad_row, mad(e, rest, c->unit_row, mad(e, parity, c->to_size, c->k->memory))),
	           imm(c->at_to));
}

Reg valid_units(Columns *c, Reg group)
{
	Emit *e = c->k->e;
	Reg first = mul(e, group, c->group_units);
	Reg left = op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", first, imm(c->hidden)), first);

	return op2(e, REG_R, "min.u32", left, imm(c->group_units));
}

Reg in_warps(Columns *c, uint32_t first, uint32_t count)
{
	return less(c->k->e, op2(c->k->e, REG_R, "sub.u32", c->warp, imm(first)), imm(count));
}

Reg other_cases(Columns *c)
{
	Emit *e = c->k->e;

	return mad(e, op2(e, REG_R, "xor.b32", c->parity, imm(1)), c->cases_size, c->k->memory);
}

Kernel *update_kernel(Columns *c, Reg parity)
{
	Kernel *one = NEW(&c->k->s->cx->scratch, 1, Kernel);
	Emit *e = c->k->e;

	*one = *c->k;
	one->memory = c->now;
	one->rows = c->rows_now;
	one->row_error = place(e, place_at(e, c->exchange, c->at_errors), parity, error_bytes(c));
	one->verdict = place(e, place_at(e, c->exchange, c->at_verdicts), parity, verdict_bytes(c));
	return one;
}

/* ---- the beginning ---- */

static Reg special(Emit *e, const char *name)
{
	Reg r = reg(e, REG_R);

	buf_printf(&e->text, "\tmov.u32 %%r%u, %s;\n", r.n, name);
	return r;
}

static void fill(Columns *c, uint32_t at, uint32_t bytes, float value)
{
	Emit *e = c->k->e;
	Loop l = loop_begin(e, mul(e, c->k->tid, 4), imm(bytes), c->k->s->threads * 4);

	ins(e, "st.shared.f32 [$+#], $", add(e, l.i, c->k->memory), at, imm_f(value));
	loop_end(e, &l);
}

static void memory_begin(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Loop l = loop_begin(e, mul(e, k->tid, 16), imm(k->bytes), k->s->threads * 16);

	ins(e, "st.shared.v4.f32 [$], {0f00000000, 0f00000000, 0f00000000, 0f00000000}", add(e, l.i, k->memory));
	loop_end(e, &l);
	barrier_block(e);
	fill(c, c->at_from + (c->inputs + 1) * c->own * 4, c->own * 4, -0.0f);
	fill(c, c->at_hidden + c->hidden_pad * c->own * 4, c->own * 4, -0.0f);
	if (c->to->bias != NO_BIAS) { /* the true unit */
		uint32_t other = if_begin(e, same(e, c->row_group, imm(c->bias_group)));
		for (uint32_t i = 0; i < 2; i++)
			fill(c, c->at_act_t + i * c->act_t_size + c->bias_slot * c->pitch, c->rows * 4, 1);
		if_end(e, other);
	}
	Loop r = loop_begin(e, k->tid, imm(c->inputs), k->s->threads);
	Reg input = load(e, REG_R, "ld.global.nc.u32", place(e, POINTER(k, data.rank), r.i, 4), 0);
	ins(e, "st.shared.u32 [$+#], $", mad(e, r.i, 4, k->memory), c->at_rank, input);
	loop_end(e, &r);
	uint32_t end = if_begin(e, same(e, k->tid, imm(0)));
	Reg now = reg(e, REG_D);
	ins(e, "mov.u64 $, %clock64", now);
	ins(e, "st.shared.u64 [$+#], $", k->memory, k->at_cycles, now);
	bars_begin(c);
	if_end(e, end);
}

static void registers_begin(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;

	k->memory = special(e, "memory");
	k->tid = special(e, "%tid.x");
	k->block = k->member = special(e, "%ctaid.x");
	k->team = k->leaf_number = op1(e, REG_R, "mov.u32", imm(0));
	c->warp = op2(e, REG_R, "shr.u32", k->tid, imm(5));
	c->lane = op2(e, REG_R, "and.b32", k->tid, imm(31));
	c->first_column = mul(e, k->member, c->own);
	c->has_columns = less(e, c->first_column, imm(c->hidden));
	c->row_group = divide(e, k->member, c->across);
	c->output_group = modulo(e, k->member, c->across, c->row_group);
	k->row0 = mul(e, k->member, k->block_rows);
	k->my_rows = reg(e, REG_R);
	c->exchange = POINTER(k, exchange);
	c->parity = op1(e, REG_R, "mov.u32", imm(0));
	c->second = op1(e, REG_R, "mov.u32", imm(0));
	c->now = op1(e, REG_R, "mov.u32", k->memory);
	c->rows_now = reg(e, REG_R);
}

/* ---- updates ---- */

void update_begin(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;

	ins(e, "ld.shared.u32 $, [$+#]", c->rows_now, c->now, c->at_count);
	Reg past = op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", c->rows_now, k->row0), k->row0);
	ins(e, "min.u32 $, $, #", k->my_rows, past, k->block_rows);
}

void turn_over(Columns *c)
{
	Emit *e = c->k->e;

	ins(e, "xor.b32 $, $, $", c->second, c->second, c->parity);
	ins(e, "xor.b32 $, $, 1", c->parity, c->parity);
	ins(e, "mov.u32 $, $", c->now, mad(e, c->parity, c->cases_size, c->k->memory));
}

/* What other blocks will store here in this update; by one thread. new_weights: R, bytes of weights to outputs */
static void stores_expect(Columns *c, Reg new_weights)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t other = if_begin(e, same(e, k->tid, imm(c->workers - 1)));
	Reg quad = op2(e, REG_R, "shr.u32", c->first_column, imm(2)), quads;

	Reg first = mul(e, c->output_group, c->group_outputs);
	Reg outputs = op2(e, REG_R, "min.u32", op2(e, REG_R, "sub.u32", imm(c->outputs), first), imm(c->group_outputs));
	bar_expect(c, BAR_ACT, add(e, mul(e, k->my_rows, c->quads * 16), new_weights));
	bar_expect(c, BAR_GROUP, mul(e, valid_units(c, c->row_group), c->rows * 4));
	bar_expect(c, BAR_DELTA, mul(e, outputs, c->rows * 4));
	quads = op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", quad, imm(c->quads)), quad); /* of all after it */
	quads = op2(e, REG_R, "min.u32", quads, imm(c->own_quads));
	bar_expect(c, BAR_HIDDEN, op2(e, REG_R, "mul.lo.u32", mul(e, c->rows_now, 16), quads));
	if_end(e, other);
}

static void tell(Columns *c, uint32_t named, uint32_t warps) { ins(c->k->e, "bar.arrive #, #", named, warps * 32); }

/* Few warps do everything one after the other; of many, some send while others compute. */
static void rows_few(Columns *c)
{
	Emit *e = c->k->e;

	meet(c, NAMED_ACT, c->warps);
	columns_send(c);
	uint32_t other = if_begin(e, in_warps(c, c->pass_first, c->pass_warps));
	bar_wait(c, bar_at(c, BAR_ACT), c->parity);
	outputs_emit(c);
	if_end(e, other);
	meet(c, NAMED_OUTPUTS, c->warps + 1);
	deltas_send(c);
	uint32_t back = if_begin(e, in_warps(c, c->pass_first, c->pass_warps));
	errors_back(c);
	if_end(e, back);
}

static void rows_many(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t end = label(e), sends = if_begin(e, in_warps(c, 0, c->store_warps));

	meet(c, NAMED_ACT, c->warps);
	columns_send(c);
	spent(k, SPENT_KINDS + 3);
	meet(c, NAMED_OUTPUTS, c->warps + 1);
	spent(k, SPENT_KINDS + 4);
	deltas_send(c);
	spent(k, SPENT_KINDS + 5);
	ins(e, "bra L#", end);
	if_end(e, sends);
	tell(c, NAMED_ACT, c->warps); /* activations of their rows are there */
	uint32_t other = if_begin(e, in_warps(c, c->pass_first, c->pass_warps));
	bar_wait(c, bar_at(c, BAR_ACT), c->parity);
	outputs_emit(c);
	meet(c, NAMED_OUTPUTS, c->warps + 1);
	errors_back(c);
	ins(e, "bra L#", end);
	if_end(e, other);
	tell(c, NAMED_OUTPUTS, c->warps + 1);
	label_here(e, end);
}

static void worker_update(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t lists = label(e), end = label(e);

	hidden_emit(c);
	spent(k, SPENT_ROWS);
	if (c->warps >= 12)
		rows_many(c);
	else
		rows_few(c);
	ins(e, "@!$ bra L#", in_warps(c, 0, c->dense_warps), lists);
	dense_emit(c);
	ins(e, "bra L#", end);
	label_here(e, lists);
	lists_emit(c);
	label_here(e, end);
	meet(c, NAMED_END, c->warps + 1);
	spent(k, SPENT_GRADIENT);
}

static void workers_emit(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg left = reg(e, REG_R), sent = op1(e, REG_R, "mov.u32", imm(0));
	uint32_t top = label(e);

	ins(e, "ld.param.u32 $, [job+#]", left, (uint32_t)offsetof(Job, updates));
	label_here(e, top);
	update_begin(c);
	stores_expect(c, sent);
	worker_update(c);
	ins(e, "mov.u32 $, #", sent, c->to_bytes);
	turn_over(c);
	ins(e, "sub.u32 $, $, 1", left, left);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", left, imm(0)), top);
	/* weights that are still on their way */
	uint32_t other = if_begin(e, same(e, k->tid, imm(c->workers - 1)));
	bar_expect(c, BAR_ACT, imm(c->to_bytes));
	if_end(e, other);
	bar_wait(c, bar_at(c, BAR_ACT), c->parity);
}

const char *columns_text(const EmitSource *s, uint32_t image, Arena *a, Buf *out, ColumnsShape *shape)
{
	Columns *c = NEW(a, 1, Columns);
	Kernel *k = NEW(a, 1, Kernel);
	Emit *e = NEW(a, 1, Emit);
	EmitSource *own = NEW(a, 1, EmitSource);

	*own = *s;
	own->threads += SIDE_WARPS * 32;
	c->k = k;
	k->e = e;
	e->text.arena = a;
	k->times_steps = getenv("MICROPROP_CUDA_TIME") != NULL;
	const char *why = plan(c, own, image);
	if (why)
		return why;
	uint32_t side = label(e), tallies = label(e);
	c->done = label(e);
	registers_begin(c);
	memory_begin(c);
	weights_move(c, false);
	side_begin(c);
	barrier_block(e);
	cluster_sync(c); /* memory of all blocks is ready */
	ins(e, "@$ bra L#", same(e, c->warp, imm(c->warps)), side);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.gt.u32", c->warp, imm(c->warps)), tallies);
	workers_emit(c);
	ins(e, "bra L#", c->done);
	label_here(e, side);
	side_emit(c);
	ins(e, "bra L#", c->done);
	label_here(e, tallies);
	tally_emit(c);
	label_here(e, c->done);
	cluster_sync(c); /* no block ends while others write to it */
	weights_move(c, true);
	spent_store(k);
	ins(e, "ret");
	buf_printf(out, "// columns: %u blocks of %u threads, %u bytes of shared memory, %u columns and %u rows a block\n",
	           c->blocks, own->threads, k->bytes, c->own, k->block_rows);
	kernel_wrap(e, out, sizeof(Job), own->threads, c->blocks);
	*shape = (ColumnsShape){ .threads = own->threads,
		                     .shared = k->bytes,
		                     .exchange = c->at_verdicts + 2 * verdict_bytes(c) };
	return NULL;
}
