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
		default: return step_words(d->kind);
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

	if (s->cluster < 2 || s->cluster > MOST_CLUSTER || s->teams != 1 || s->solo || s->test || s->mode != JOB_UPDATE)
		return "the job";
	if (s->kinds_of_leaves != 1 || s->leaves[0] != 1 || s->leaf_rows > 512)
		return "leaves";
	if (j->timed || j->noisy || j->noise || j->data.weight || needs_pending(s) || j->criteria)
		return "noise, weights of cases, or a rule that needs all weights";
	if (!s->half && (!j->data.from || j->data.value || !j->data.short_list))
		return "inputs";
	if (j->panels != 2 || s->panel[0].kind || s->panel[1].kind)
		return "links of several kinds";
	return NULL;
}

/* ---- memory ---- */

uint32_t take(Columns *c, uint64_t bytes)
{
	Kernel *k = c->k;
	uint32_t at = k->bytes;

	k->bytes = (uint32_t)min_u64(k->bytes + round_up(bytes, 16), UINT32_MAX / 2);
	return at;
}

static uint32_t odd_quads(uint32_t floats) { return (((floats + 3) / 4) | 1) * 16; } /* rows begin in other banks */

uint32_t plan_states(const Columns *c)
{
	uint32_t states = 0;

	for (uint32_t v = 2; v < 2 + MAX_STATE; v++)
		states = c->state[v] ? v - 1 : states;
	return states;
}

void plan_cases_begin(Columns *c)
{
	Kernel *k = c->k;

	c->at_bars = take(c, 8 * BARS);
	c->at_bad = take(c, MOST_CLUSTER * 4); /* of each block */
	c->at_stop = take(c, 8 * (1 + stop_words(c)));
	c->at_ended = take(c, 4);
	k->at_cycles = take(c, 8 * (1 + SPENT_KINDS + STEPS_TIMED));
	k->at_doubles = take(c, tally_bytes(k));
	k->at_judged = take(c, (uint64_t)round_up(c->rows, 32) * 8);
	k->bytes = (uint32_t)round_up(k->bytes, 128);
	c->at_cases = k->bytes;
	c->at_count = take(c, 4);
	c->at_numbers = take(c, 8 * P_COUNT);
}

void plan_cases_end(Columns *c)
{
	Kernel *k = c->k;
	const DeviceData *d = &k->s->job->data;

	k->target_row = k->half && k->half->y_bits ? 4 : (uint32_t)(d->targets | 1) * 4;
	k->at_targets = take(c, (uint64_t)k->target_row * k->row_space + 16);
	k->at_own = take(c, d->code_count ? k->row_space * sizeof(CodeOwn) : 0);
	k->late_row = (late_at(k, NULL, false) / 16 | 1) * 16;
	k->at_late = take(c, (uint64_t)k->late_row * k->row_space);
	k->bytes = (uint32_t)round_up(k->bytes, 128);
	c->cases_size = k->bytes - c->at_cases;
	take(c, c->cases_size);
}

static void plan_memory(Columns *c)
{
	Kernel *k = c->k;
	const EmitSource *s = k->s;
	uint32_t states = plan_states(c);

	plan_cases_begin(c);
	c->at_lists = take(c, (uint64_t)c->rows * c->list_row);
	k->bytes = (uint32_t)round_up(k->bytes, 128);
	c->at_image = take(c, c->image + 4 * 2 * LIST_PAD); /* groups past the last list are read */
	plan_cases_end(c);
	k->at_rank = take(c, (uint64_t)c->inputs * 4);
	/* weights of inputs, of the true unit, and a row of -0 that lists are filled up with; behind it state */
	c->from_row = c->own * 4 * c->from_copies;
	c->at_from = take(c, (uint64_t)(c->inputs + 2) * c->from_row);
	c->from_size = (uint32_t)round_up((uint64_t)(c->inputs + 1) * c->own * 4, 16);
	c->at_from_state = take(c, (uint64_t)c->from_size * states) - c->from_size;
	/* quads of units in different banks, outputs of a unit side by side */
	c->unit_row = c->output_quads * 16;
	c->quad_row = 4 * c->unit_row + 16;
	c->to_size = (c->hidden / 4 + 1) * c->quad_row; /* with the true unit */
	c->at_to = take(c, 2 * (uint64_t)c->to_size);
	c->own_size = c->slots * c->group_outputs * 4;
	c->at_own = take(c, (uint64_t)c->own_size * (1 + states));
	c->act_quad = k->block_rows * 16; /* quads of columns of all rows: other blocks store these side by side */
	c->at_act = take(c, (uint64_t)c->act_quad * c->quads);
	c->delta_row = odd_quads(4 * c->output_quads);
	c->at_delta = take(c, (uint64_t)c->delta_row * k->block_rows);
	c->part_pitch = (c->part_rows + RING) * 4;
	c->pitch = (uint32_t)round_up((uint64_t)c->part_pitch * c->parts, 128) + 16;
	c->act_t_size = c->pitch * c->slots;
	c->at_act_t = take(c, 2 * (uint64_t)c->act_t_size);
	c->at_delta_t = take(c, (uint64_t)c->pitch * c->group_outputs);
	c->hidden_pad = (uint32_t)round_up(s->leaf_rows, ROWS_TURN);
	c->at_hidden = take(c, (uint64_t)(c->hidden_pad + 1 + RING) * c->own * 4); /* rows past the last are read */
	c->at_bias = take(c, c->own * 4);
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

/* Two parts need warps for their passes; turns of gradients end with a part. */
static void plan_parts(Columns *c)
{
	Kernel *k = c->k;
	uint32_t leaf = k->s->leaf_rows, most = c->warps == 16 || c->warps == 32 ? MOST_PARTS : 1;

	for (c->parts = most; c->parts > 1; c->parts--)
		if (round_up(ceil_div(leaf, c->blocks), 4 * c->parts) * c->blocks % (RING * c->parts) == 0)
			break;
	k->block_rows = (uint32_t)round_up(ceil_div(leaf, c->blocks), 4 * c->parts);
	c->rows = k->block_rows * c->blocks;
	c->part_rows = c->rows / c->parts;
	c->part_block = k->block_rows / c->parts;
	c->team_warps = c->warps / c->parts;
	c->high = 2;
	c->wide = c->parts > 1 ? 2 : 4; /* many warps wait less for loads, few load less */
	c->pass_warps = c->parts > 1 ? c->team_warps / 2 : c->warps;
}

/* Of the network and the cluster. */
void plan_sizes(Columns *c)
{
	const EmitSource *s = c->k->s;
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
	c->workers = c->k->workers = s->threads - SIDE_WARPS * 32;
	c->warps = c->workers / 32;
	c->tallies = c->blocks < MOST_TALLIES ? 2 : MOST_TALLIES;
	if (s->half && c->tallies >= c->blocks) /* the last block has none */
		c->tallies /= 2;
}

/* Of rows: those of a block are known. */
void plan_row_turns(Columns *c)
{
	c->k->row_space = c->k->block_rows + 1;
	c->all_turns = (uint32_t)ceil_div(c->rows, 32);
	c->own_turns = (uint32_t)ceil_div(c->k->block_rows, 32);
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
	if (s->half)
		return half_columns_plan(c);
	why = steps_find(c);
	if (why)
		return why;
	c->from = &s->panel[c->lists->panel];
	c->to = &s->panel[c->dense->panel];
	why = steps_check(c);
	if (why)
		return why;
	plan_sizes(c);
	plan_parts(c);
	plan_row_turns(c);
	c->turns = (uint32_t)ceil_div(c->part_rows, c->team_warps * 32);
	if (c->own > MOST_COLUMNS || c->all_turns > MOST_TURNS || c->warps < 2)
		return "hidden units, or rows";
	plan_groups(c);
	uint32_t tiles =
		(uint32_t)ceil_div(c->slots, LANES_DOWN) * c->group_outputs / LANES_ACROSS; /* of weights to outputs */
	c->dense_warps = min_u32(tiles, c->parts > 1 ? c->team_warps / 2 : max_u32(1, c->warps / 3));
	c->dense_first = c->parts > 1 ? c->team_warps : c->warps - c->dense_warps;
	c->to_bytes = (c->hidden + (c->to->bias != NO_BIAS)) * c->output_quads * 16;
	if (ceil_div(tiles, c->dense_warps) > DENSE_ROUNDS)
		return "weights to outputs";
	c->image = image;
	c->list_row = k->list_row = (uint32_t)round_up(s->list_longest, LIST_PAD) * 2;
	/* lanes that read random weights at a time have a copy each, in banks of its own, if there is room */
	for (c->from_copies = LANES_READ; c->from_copies; c->from_copies = c->from_copies > 1 ? 1 : 0) {
		k->bytes = 0;
		plan_memory(c);
		if (k->bytes <= s->shared)
			break;
	}
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

Reg lane_down(Columns *c)
{
	Emit *e = c->k->e;
	Reg high = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", c->lane, imm(1)), imm(6));

	return op2(e, REG_R, "or.b32", high, op2(e, REG_R, "and.b32", c->lane, imm(1)));
}

Reg lane_across(Columns *c)
{
	Emit *e = c->k->e;
	Reg low = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", c->lane, imm(1)), imm(1));

	return mad(e, op2(e, REG_R, "shr.u32", c->lane, imm(4)), 2, low);
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

Kernel *update_kernel(Columns *c)
{
	Kernel *one = NEW(&c->k->s->cx->scratch, 1, Kernel);

	*one = *c->k;
	one->memory = c->now;
	one->rows = c->rows_now;
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

static void lists_begin(Columns *c)
{
	Emit *e = c->k->e;

	fill(c, c->at_from + (c->inputs + 1) * c->from_row, c->from_row, -0.0f);
	fill(c, c->at_hidden + c->hidden_pad * c->own * 4, c->own * 4, -0.0f);
	if (c->to->bias != NO_BIAS) { /* the true unit */
		uint32_t other = if_begin(e, same(e, c->row_group, imm(c->bias_group)));
		for (uint32_t i = 0; i < 2; i++)
			fill(c, c->at_act_t + i * c->act_t_size + c->bias_slot * c->pitch, c->parts * c->part_pitch, 1);
		if_end(e, other);
	}
	ranks_stage(c->k);
}

static void memory_begin(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Loop l = loop_begin(e, mul(e, k->tid, 16), imm(k->bytes), k->s->threads * 16);

	ins(e, "st.shared.v4.f32 [$], {0f00000000, 0f00000000, 0f00000000, 0f00000000}", add(e, l.i, k->memory));
	loop_end(e, &l);
	barrier_block(e);
	if (c->half)
		half_columns_begin(c);
	else
		lists_begin(c);
	spent_begin(k);
	uint32_t end = if_begin(e, same(e, k->tid, imm(0)));
	bars_begin(c);
	if_end(e, end);
}

/* What can be derived of the thread, the block and the update is derived again in each update: it need not be kept in
 * registers, of which loops need most. */
void places_derive(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;

	c->warp = op2(e, REG_R, "shr.u32", k->tid, imm(5));
	c->lane = op2(e, REG_R, "and.b32", k->tid, imm(31));
	if (c->half) {
		half_places(c);
	} else {
		c->first_column = mul(e, k->member, c->own);
		c->row_group = divide(e, k->member, c->across);
		c->output_group = modulo(e, k->member, c->across, c->row_group);
	}
	c->has_columns = less(e, c->first_column, imm(c->hidden));
	c->part = imm(0);
	c->team_warp = c->warp;
	if (c->parts >
	    1) { /* the first warps of both teams are on different schedulers: the second one begins with others */
		c->part = op2(e, REG_R, "and.b32", divide(e, c->warp, c->team_warps), imm(1));
		c->team_warp = op2(e, REG_R, "sub.u32", c->warp, mul(e, c->part, c->pass_warps));
		c->team_warp = op2(e, REG_R, "and.b32", c->team_warp, imm(c->team_warps - 1));
	}
	c->team_thread = mad(e, c->team_warp, 32, c->lane);
	c->base = mul(e, c->part, c->part_block);
	k->row0 = mad(e, c->part, c->part_rows, mul(e, k->member, c->part_block));
	c->parity = op2(e, REG_R, "and.b32", c->update, imm(1));
	c->second = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", c->update, imm(1)), imm(1));
	c->turn = op2(e, REG_R, "and.b32", c->update, imm(c->tallies - 1));
	c->now = mad(e, c->parity, c->cases_size, k->memory);
}

static void registers_begin(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;

	k->memory = special(e, "memory");
	k->tid = special(e, "%tid.x");
	k->block = k->member = special(e, "%ctaid.x");
	k->team = k->leaf_number = op1(e, REG_R, "mov.u32", imm(0));
	k->my_rows = reg(e, REG_R);
	c->rows_now = reg(e, REG_R);
	c->update = op1(e, REG_R, "mov.u32", imm(0));
	places_derive(c);
}

/* ---- updates ---- */

void update_begin(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;

	ins(e, "ld.shared.u32 $, [$+#]", c->rows_now, c->now, c->at_count);
	ins(e, "mov.u32 $, $", k->my_rows, rows_in(c, k->row0, c->part_block));
}

Reg rows_in(Columns *c, Reg first, uint32_t most)
{
	Emit *e = c->k->e;
	Reg end = op2(e, REG_R, "max.u32", c->rows_now, first);

	return op2(e, REG_R, "min.u32", op2(e, REG_R, "sub.u32", end, first), imm(most));
}

Reg batch_row(Columns *c, Reg within)
{
	Emit *e = c->k->e;
	Reg part = divide(e, within, c->part_block), rest = modulo(e, within, c->part_block, part);

	return mad(e, part, c->part_rows, mad(e, c->k->member, c->part_block, rest));
}

UpdateLoop updates_begin(Columns *c)
{
	Emit *e = c->k->e;
	UpdateLoop l = { .top = label(e) };

	label_here(e, l.top);
	places_derive(c);
	return l;
}

void updates_end(Columns *c, const UpdateLoop *l)
{
	Emit *e = c->k->e;

	ins(e, "add.u32 $, $, 1", c->update, c->update);
	ins(e, "@$ bra L#", less(e, c->update, updates_load(c)), l->top);
}

Reg updates_load(Columns *c)
{
	Reg updates = reg(c->k->e, REG_R);

	ins(c->k->e, "ld.param.u32 $, [job+#]", updates, (uint32_t)offsetof(Job, updates));
	return updates;
}

/* Is it the thread that says what others will store? Of the first team, which begins an update. */
static Reg is_expecting(Columns *c) { return same(c->k->e, c->k->tid, imm(c->team_warps * 32 - 1)); }

/* What other blocks will store here in this update; by one thread. new_weights: R, bytes of weights to outputs */
static void stores_expect(Columns *c, Reg new_weights)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t other = if_begin(e, is_expecting(c));
	Reg quad = op2(e, REG_R, "shr.u32", c->first_column, imm(2)), quads;

	Reg first = mul(e, c->output_group, c->group_outputs);
	Reg outputs = op2(e, REG_R, "min.u32", op2(e, REG_R, "sub.u32", imm(c->outputs), first), imm(c->group_outputs));
	Reg left = op2(e, REG_R, "max.u32", c->first_column, imm(c->hidden)); /* its own columns are there already */
	left = op2(e, REG_R, "min.u32", op2(e, REG_R, "sub.u32", left, c->first_column), imm(c->own));
	Reg units = op2(e, REG_R, "sub.u32", valid_units(c, c->row_group), left);
	quads = op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", quad, imm(c->quads)), quad); /* of all after it */
	quads = op2(e, REG_R, "min.u32", quads, imm(c->own_quads));
	bar_expect(c, BAR_WEIGHTS, new_weights);
	for (uint32_t p = 0; p < c->parts; p++) {
		Reg mine = rows_in(c, add(e, mul(e, k->member, c->part_block), imm(p * c->part_rows)), c->part_block);
		bar_expect(c, BAR_ACT + p, mul(e, mine, c->quads * 16));
		ins(e, "mbarrier.arrive.expect_tx.shared.b64 _, [$], $", group_bar(c, imm(p)), mul(e, units, c->part_rows * 4));
		bar_expect(c, BAR_DELTA + p, mul(e, outputs, c->part_rows * 4));
		Reg all = rows_in(c, imm(p * c->part_rows), c->part_rows);
		bar_expect(c, BAR_HIDDEN + p, op2(e, REG_R, "mul.lo.u32", mul(e, all, 16), quads));
	}
	ins(e, "mbarrier.arrive.expect_tx.shared.b64 _, [$], 4", turn_bar(c, BAR_TALLIED));
	if_end(e, other);
}

static void outputs_wait(Columns *c)
{
	bar_wait(c, bar_at(c, BAR_WEIGHTS), c->parity); /* these come first, mostly */
	bar_wait(c, part_bar(c, BAR_ACT), c->parity);
}

/* Few warps do everything one after the other. */
static void rows_few(Columns *c)
{
	meet(c, imm(NAMED_ACT), c->warps);
	columns_send(c, 0, c->warps);
	outputs_wait(c);
	outputs_emit(c);
	bar_tell(c, turn_bar(c, BAR_LATE));
	meet(c, imm(NAMED_OUTPUTS), c->warps);
	deltas_send(c, 0, c->warps);
	errors_back(c, c->warps);
}

/* In each team: the first warps compute, others send meanwhile. Gradients need activations later than outputs do: those
 * of both parts are sent when those of the second are on their way to outputs. */
static void rows_many(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t team = c->team_warps, senders = team - c->pass_warps, end = label(e);
	Reg outputs = add(e, c->part, imm(NAMED_OUTPUTS));

	uint32_t other = if_begin(e, less(e, c->team_warp, imm(c->pass_warps)));
	uint32_t first = if_begin(e, same(e, c->part, imm(1)));
	tell(c, imm(NAMED_ACT), team + senders); /* activations of all rows are there */
	if_end(e, first);
	outputs_wait(c);
	spent(k, SPENT_KINDS + 3);
	outputs_emit(c);
	spent(k, SPENT_KINDS + 4);
	bar_tell(c, turn_bar(c, BAR_LATE));
	meet(c, outputs, team);
	spent(k, SPENT_KINDS + 5);
	errors_back(c, c->pass_warps);
	spent(k, SPENT_KINDS + 6);
	ins(e, "bra L#", end);
	if_end(e, other);
	meet(c, imm(NAMED_ACT), team + senders);
	columns_send(c, c->pass_warps, senders);
	meet(c, outputs, team);
	deltas_send(c, c->pass_warps, senders);
	label_here(e, end);
}

/* One team after the other: both would take as long as this, and the first part not be there sooner. The dense warps,
 * which are of the second, know then that the update before has ended. */
static void turn_wait(Columns *c)
{
	uint32_t first = if_begin(c->k->e, same(c->k->e, c->part, imm(1)));

	meet(c, imm(NAMED_FIRST), c->warps);
	if_end(c->k->e, first);
}

static void turn_tell(Columns *c)
{
	uint32_t second = if_begin(c->k->e, same(c->k->e, c->part, imm(0)));

	tell(c, imm(NAMED_FIRST), c->warps);
	if_end(c->k->e, second);
}

bool dense_goes_on(const Columns *c) { return c->parts > 1; }

static void worker_update(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t lists = label(e), end = label(e), next = label(e);

	hidden_emit(c);
	if (c->parts > 1)
		turn_tell(c);
	spent(k, SPENT_KINDS + 2);
	if (c->parts > 1)
		rows_many(c);
	else
		rows_few(c);
	ins(e, "@!$ bra L#", in_warps(c, c->dense_first, c->dense_warps), lists);
	dense_emit(c);
	ins(e, "bra L#", dense_goes_on(c) ? next : end);
	label_here(e, lists);
	lists_emit(c);
	label_here(e, end);
	spent(k, SPENT_KINDS + 11);
	meet(c, imm(NAMED_END), c->warps + 1);
	spent(k, SPENT_KINDS + 12);
	label_here(e, next);
}

static void workers_emit(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg sent = op1(e, REG_R, "mov.u32", imm(0));

	UpdateLoop l = updates_begin(c);
	if (c->parts > 1)
		turn_wait(c);
	update_begin(c);
	stores_expect(c, sent);
	worker_update(c);
	ins(e, "mov.u32 $, #", sent, c->to_bytes);
	updates_end(c, &l);
	spent(k, SPENT_GRADIENT);
	/* weights that are still on their way */
	uint32_t other = if_begin(e, is_expecting(c));
	bar_expect(c, BAR_WEIGHTS, imm(c->to_bytes));
	if_end(e, other);
	bar_wait(c, bar_at(c, BAR_WEIGHTS), op2(e, REG_R, "and.b32", c->update, imm(1)));
}

static void (*const side_loop[SIDE_WARPS])(Columns *c) = {
	[SIDE_COPY] = copy_emit, [SIDE_JUDGE] = judge_emit, [SIDE_TALLY] = tally_emit, [SIDE_DECIDE] = decide_emit
};

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
	uint32_t side[SIDE_WARPS], to = label(e);
	c->done = label(e);
	registers_begin(c);
	memory_begin(c);
	if (c->half)
		half_weights_move(c, false);
	else
		weights_move(c, false);
	side_begin(c);
	barrier_block(e);
	cluster_sync(c); /* memory of all blocks is ready */
	for (uint32_t i = 0; i < SIDE_WARPS; i++) {
		side[i] = label(e);
		ins(e, "@$ bra L#", same(e, c->warp, imm(c->warps + i)), side[i]);
	}
	if (c->half)
		half_workers(c);
	else
		workers_emit(c);
	for (uint32_t i = 0; i < SIDE_WARPS; i++) {
		ins(e, "bra L#", c->done);
		label_here(e, side[i]);
		places_derive(c);
		if (c->half && i >= SIDE_TALLY) { /* a warp of each block that would have nothing to do */
			Reg is_last = same(e, k->member, imm(c->blocks - 1));
			ins(e, i == SIDE_TALLY ? "@$ bra L#" : "@!$ bra L#", is_last, to);
		}
		side_loop[i](c);
	}
	if (c->half) {
		ins(e, "bra L#", c->done);
		label_here(e, to);
		places_derive(c);
		half_to_emit(c);
	}
	label_here(e, c->done);
	places_derive(c);
	cluster_sync(c); /* no block ends while others write to it */
	if (c->half)
		half_weights_move(c, true);
	else
		weights_move(c, true);
	spent_store(k);
	ins(e, "ret");
	buf_printf(out,
	           "// columns: %u blocks of %u threads, %u bytes of shared memory, %u columns and %u rows a block, "
	           "%u parts%s\n",
	           c->blocks, own->threads, k->bytes, c->own, k->block_rows, c->parts,
	           c->half && c->half->shares > 1 ? ", columns shared" : "");
	kernel_wrap(e, out, sizeof(Job), own->threads, c->blocks);
	*shape = (ColumnsShape){ .threads = own->threads, .shared = k->bytes };
	return NULL;
}
