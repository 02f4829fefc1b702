/* SPDX-License-Identifier: MIT */
/* The plan, the start and end of the kernel, the loop over updates of the workers. In: steps of the device. Out: PTX
 * text, or why the kernel does not cover the job. Must hold: what is planned fits into shared memory. */
#include <stdlib.h>

#include "columns.h"
#include "units.h"

/* ---- steps ---- */

/* Finds the steps of a network with one hidden layer, which must be in this order. */
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
			if (c->step.hidden)
				return "several lists";
			c->step.hidden = d;
			break;
		case STEP_UNITS:
			if (units || !c->step.hidden || c->step.outputs || d->c_col != c->step.hidden->c_col ||
			    d->cols != c->step.hidden->cols)
				return "units";
			units = d;
			break;
		case STEP_PRODUCT:
			if (!c->step.hidden || c->step.back)
				return "several layers";
			*(c->step.outputs ? &c->step.back : &c->step.outputs) = d;
			break;
		case STEP_ERRORS:
			if (!c->step.outputs || c->step.errors)
				return "several groups of outputs";
			c->step.errors = d;
			break;
		case STEP_DELTAS:
			if (!is_deferred(c->k, d))
				return "deltas";
			break;
		case STEP_GRADIENT: c->step.output_gradient = d; break;
		case STEP_GRADIENT_INDEX: c->step.input_gradient = d; break;
		default: return step_words(d->kind);
		}
	}
	if (!c->step.hidden || !c->step.outputs || !c->step.errors || !c->step.back || !c->step.output_gradient ||
	    !c->step.input_gradient || s->list->steps - s->list->gradient != 2)
		return "layers";
	if (c->step.hidden->sigmoid == (units != NULL) || (units && units->fn == FN_SOFTMAX))
		return "units";
	c->step.hidden_fn = units ? units->fn : FN_SIGMOID;
	return NULL;
}

/* Are they all of the network: does each step read what the one before writes? */
static const char *steps_check(const Columns *c)
{
	const EmitSource *s = c->k->s;
	const DeviceStep *x = c->step.hidden, *o = c->step.outputs, *b = c->step.back;
	const float *zero = s->job->zero;

	if (x->low || x->depth != s->job->data.inputs || c->step.input_gradient->low ||
	    c->step.input_gradient->depth != x->depth || c->step.input_gradient->cols != x->cols ||
	    x->start != (c->step.input_gradient->bias ? x->b + (size_t)x->depth * x->b_row : zero))
		return "inputs";
	if (deferred_errors(c->k, o) != c->step.errors || c->step.errors->c >= BUFS || o->a != BUF_ACT ||
	    o->a_col != x->c_col || o->depth != x->cols || o->cols != s->job->outputs || !o->start)
		return "outputs";
	if (b->start != zero || b->after != AFTER_DELTAS || b->keeps_net || b->c_col != x->c_col || b->cols != x->cols ||
	    b->depth != o->cols || b->a_col != c->step.errors->c_col || b->fn == FN_SOFTMAX ||
	    (o->start == zero) != (c->output_panel->bias == NO_BIAS))
		return "errors of hidden units";
	uint32_t sources = x->cols + (c->output_panel->bias != NO_BIAS);
	bool by_source = c->step.output_gradient->a == BUF_ACT;
	if ((by_source ? c->step.output_gradient->depth : c->step.output_gradient->cols) != sources ||
	    (by_source ? c->step.output_gradient->cols : c->step.output_gradient->depth) != o->cols ||
	    c->output_panel->bias_across == by_source)
		return "weights";
	return NULL;
}

static const char *covered(const EmitSource *s)
{
	const Job *j = s->job;

	if (s->cluster < 2 || s->cluster > MAX_CLUSTER || s->teams != 1 || s->solo || s->test || s->mode != JOB_UPDATE)
		return "the job";
	if (s->kinds_of_leaves != 1 || s->leaves[0] != 1 || s->leaf_rows > 512)
		return "leaves";
	if (j->timed || j->noisy || j->noise || j->data.weight || needs_pending(s) || j->criteria)
		return "noise, weights of cases, or a rule that needs all weights";
	if (!s->bf16 && (!j->data.from || j->data.value || !j->data.short_list))
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

/* Bytes of a row: an odd number of quads, so that rows begin in different banks. */
static uint32_t odd_quads(uint32_t floats) { return (((floats + 3) / 4) | 1) * 16; }

uint32_t plan_states(const Columns *c)
{
	uint32_t states = 0;

	for (uint32_t v = 2; v < 2 + MAX_STATE; v++)
		states = c->keeps[v] ? v - 1 : states;
	return states;
}

void plan_cases_begin(Columns *c)
{
	Kernel *k = c->k;

	c->smem.bars = take(c, 8 * BARS);
	c->smem.bad = take(c, MAX_CLUSTER * 4); /* of each block */
	c->smem.stop = take(c, 8 * (1 + stop_words(c)));
	c->smem.ended = take(c, 4);
	k->at_cycles = take(c, 8 * (1 + SPENT_KINDS + STEPS_TIMED));
	k->at_doubles = take(c, tally_bytes(k));
	k->at_scores = take(c, (uint64_t)round_up(c->rows, 32) * 8);
	k->bytes = (uint32_t)round_up(k->bytes, 128);
	c->smem.cases = k->bytes;
	c->smem.count = take(c, 4);
	c->smem.params = take(c, 8 * P_COUNT);
}

void plan_cases_end(Columns *c)
{
	Kernel *k = c->k;
	const DeviceData *d = &k->s->job->data;

	k->target_row = k->bf16 && k->bf16->y_bits ? 4 : (uint32_t)(d->targets | 1) * 4;
	k->at_targets = take(c, (uint64_t)k->target_row * k->row_space + 16);
	k->at_own = take(c, d->code_count ? k->row_space * sizeof(CodeOwn) : 0);
	k->deferred_row = (deferred_at(k, NULL, false) / 16 | 1) * 16;
	k->at_deferred = take(c, (uint64_t)k->deferred_row * k->row_space);
	k->bytes = (uint32_t)round_up(k->bytes, 128);
	c->smem.cases_size = k->bytes - c->smem.cases;
	take(c, c->smem.cases_size);
}

static void plan_memory(Columns *c)
{
	Kernel *k = c->k;
	const EmitSource *s = k->s;
	uint32_t states = plan_states(c);

	plan_cases_begin(c);
	c->smem.csr = take(c, (uint64_t)c->rows * c->list_row);
	k->bytes = (uint32_t)round_up(k->bytes, 128);
	c->smem.csc = take(c, c->csc_bytes + 4 * 2 * LIST_PAD); /* loops read groups past the last list */
	plan_cases_end(c);
	k->at_rank = take(c, (uint64_t)c->inputs * 4);
	c->smem.input_w_row = c->block_cols * 4 * c->input_w_copies;
	c->smem.input_w = take(c, (uint64_t)(c->inputs + 2) * c->smem.input_w_row);
	c->smem.input_state_size = (uint32_t)round_up((uint64_t)(c->inputs + 1) * c->block_cols * 4, 16);
	c->smem.input_state = take(c, (uint64_t)c->smem.input_state_size * states) - c->smem.input_state_size;
	c->smem.unit_row = c->output_quads * 16;
	c->smem.unit_quad_row = 4 * c->smem.unit_row + 16;
	c->smem.output_w_size = (c->hidden / 4 + 1) * c->smem.unit_quad_row; /* and the true unit */
	c->smem.output_w = take(c, 2 * (uint64_t)c->smem.output_w_size);
	c->smem.group_w_size = c->group_slots * c->group_outputs * 4;
	c->smem.group_w = take(c, (uint64_t)c->smem.group_w_size * (1 + states));
	c->smem.act_quad = k->block_rows * 16;
	c->smem.act = take(c, (uint64_t)c->smem.act_quad * c->hidden_quads);
	c->smem.delta_row = odd_quads(4 * c->output_quads);
	c->smem.delta = take(c, (uint64_t)c->smem.delta_row * k->block_rows);
	c->smem.part_column = (c->part_rows + CHAIN_AHEAD) * 4;
	c->smem.column = (uint32_t)round_up((uint64_t)c->smem.part_column * c->parts, 128) + 16;
	c->smem.act_t_size = c->smem.column * c->group_slots;
	c->smem.act_t = take(c, 2 * (uint64_t)c->smem.act_t_size);
	c->smem.delta_t = take(c, (uint64_t)c->smem.column * c->group_outputs);
	c->smem.hidden_pad = (uint32_t)round_up(s->leaf_rows, ROWS_TURN);
	c->smem.hidden_delta =
		take(c, (uint64_t)(c->smem.hidden_pad + 1 + CHAIN_AHEAD) * c->block_cols * 4); /* loads run ahead */
	c->smem.bias_sum = take(c, c->block_cols * 4);
}

uint32_t columns_each(uint32_t hidden, uint32_t blocks)
{
	uint32_t own = 4; /* a power of two: divides a warp evenly */

	while (own * blocks < hidden)
		own *= 2;
	return own;
}

/* Divides output weights into a group per block: at most as many output groups as unit groups, none of them empty. */
static void plan_groups(Columns *c)
{
	for (c->output_groups = c->blocks; c->output_groups > 1; c->output_groups--) {
		uint32_t each = (uint32_t)ceil_div(c->output_quads, c->output_groups);
		if (c->blocks % c->output_groups == 0 && c->output_groups * c->output_groups <= c->blocks &&
		    each * (c->output_groups - 1) < c->output_quads)
			break;
	}
	c->unit_groups = c->blocks / c->output_groups;
	c->group_outputs = 4 * (uint32_t)ceil_div(c->output_quads, c->output_groups);
	c->group_units = c->group_slots = c->output_groups * c->block_cols;
	c->bias_group = c->bias_slot = NO_BIAS;
	if (c->output_panel->bias != NO_BIAS) { /* after the last hidden unit */
		c->bias_group = min_u32(c->hidden / c->group_units, c->unit_groups - 1);
		c->bias_slot = c->hidden - c->bias_group * c->group_units;
		c->group_slots = max_u32(c->group_slots, c->bias_slot + 1);
	}
}

/* Two parts, if there are warps enough and iterations of the gradient end with a part. */
static void plan_parts(Columns *c)
{
	Kernel *k = c->k;
	uint32_t leaf = k->s->leaf_rows, most = c->warps == 16 || c->warps == 32 ? MAX_PARTS : 1;

	for (c->parts = most; c->parts > 1; c->parts--)
		if (round_up(ceil_div(leaf, c->blocks), 4 * c->parts) * c->blocks % (CHAIN_AHEAD * c->parts) == 0)
			break;
	k->block_rows = (uint32_t)round_up(ceil_div(leaf, c->blocks), 4 * c->parts);
	c->rows = k->block_rows * c->blocks;
	c->part_rows = c->rows / c->parts;
	c->part_block_rows = k->block_rows / c->parts;
	c->part_warps = c->warps / c->parts;
	c->thread_rows = 2;
	c->thread_cols =
		c->parts > 1 ? 2 : 4; /* many warps hide latency; few need larger register tiles, with fewer loads */
	c->pass_warps = c->parts > 1 ? c->part_warps / 2 : c->warps;
}

void plan_sizes(Columns *c)
{
	const EmitSource *s = c->k->s;
	uint32_t loads = formula_uses(s->formula, OP_LOAD) | formula_uses(s->formula, OP_STORE);

	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		c->keeps[v] = v == 1 || loads >> v & 1;
	c->blocks = s->cluster;
	c->inputs = s->job->data.inputs;
	c->hidden = c->step.hidden->cols;
	c->outputs = c->step.outputs->cols;
	c->hidden_quads = (uint32_t)ceil_div(c->hidden, 4);
	c->output_quads = (uint32_t)ceil_div(c->outputs, 4);
	c->block_cols = columns_each(c->hidden, c->blocks);
	c->block_quads = c->block_cols / 4;
	c->workers = c->k->workers = s->threads - SIDE_WARPS * 32;
	c->warps = c->workers / 32;
	c->tally_blocks = c->blocks < MAX_TALLY_BLOCKS ? 2 : MAX_TALLY_BLOCKS;
	if (s->bf16 && c->tally_blocks >= c->blocks) /* the last block forms none */
		c->tally_blocks /= 2;
}

void plan_lane_rows(Columns *c)
{
	c->k->row_space = c->k->block_rows + 1;
	c->lane_rows = (uint32_t)ceil_div(c->rows, 32);
	c->lane_block_rows = (uint32_t)ceil_div(c->k->block_rows, 32);
}

static const char *plan(Columns *c, const EmitSource *s, uint32_t csc_bytes)
{
	Kernel *k = c->k;
	const char *why = covered(s);

	k->s = s;
	if (why)
		return why;
	c->input_panel = c->output_panel = NULL;
	plan_deferred_scores(k);
	if (!k->deferred_scores)
		return "errors";
	if (s->bf16)
		return bf16_columns_plan(c);
	why = steps_find(c);
	if (why)
		return why;
	c->input_panel = &s->panel[c->step.input_gradient->panel];
	c->output_panel = &s->panel[c->step.output_gradient->panel];
	why = steps_check(c);
	if (why)
		return why;
	plan_sizes(c);
	plan_parts(c);
	plan_lane_rows(c);
	c->worker_rows = (uint32_t)ceil_div(c->part_rows, c->part_warps * 32);
	if (c->block_cols > MAX_COLUMNS || c->lane_rows > MAX_LANE_ROWS || c->warps < 2)
		return "hidden units, or rows";
	plan_groups(c);
	uint32_t tiles = (uint32_t)ceil_div(c->group_slots, LANES_DOWN) * c->group_outputs / LANES_ACROSS;
	c->gradient_warps = min_u32(tiles, c->parts > 1 ? c->part_warps / 2 : max_u32(1, c->warps / 3));
	c->gradient_first = c->parts > 1 ? c->part_warps : c->warps - c->gradient_warps;
	c->output_w_bytes = (c->hidden + (c->output_panel->bias != NO_BIAS)) * c->output_quads * 16;
	if (ceil_div(tiles, c->gradient_warps) > MAX_WARP_TILES)
		return "weights to outputs";
	c->csc_bytes = csc_bytes;
	c->list_row = k->list_row = (uint32_t)round_up(s->list_longest, LIST_PAD) * 2;
	/* a copy for each lane that loads a random row at the same time, in banks of its own, if there is room */
	for (c->input_w_copies = LANES_READ; c->input_w_copies; c->input_w_copies = c->input_w_copies > 1 ? 1 : 0) {
		k->bytes = 0;
		plan_memory(c);
		if (k->bytes <= s->shared)
			break;
	}
	return k->bytes > s->shared ? "shared memory" : NULL;
}

/* ---- addresses ---- */

Reg cluster_address(Columns *c, Reg rank, Reg at) { return op2(c->k->e, REG_R, "mapa.shared::cluster.u32", at, rank); }

Reg unit_address(Columns *c, Reg unit, Reg parity)
{
	Emit *e = c->k->e;
	Reg quad = divide(e, unit, 4), rest = modulo(e, unit, 4, quad);

	return add(e,
	           mad(e, quad, c->smem.unit_quad_row,
	               mad(e, rest, c->smem.unit_row, mad(e, parity, c->smem.output_w_size, c->k->memory))),
	           imm(c->smem.output_w));
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
	Reg high = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", c->reg.lane, imm(1)), imm(6));

	return op2(e, REG_R, "or.b32", high, op2(e, REG_R, "and.b32", c->reg.lane, imm(1)));
}

Reg lane_across(Columns *c)
{
	Emit *e = c->k->e;
	Reg low = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", c->reg.lane, imm(1)), imm(1));

	return mad(e, op2(e, REG_R, "shr.u32", c->reg.lane, imm(4)), 2, low);
}

Reg in_warps(Columns *c, uint32_t first, uint32_t count)
{
	return less(c->k->e, op2(c->k->e, REG_R, "sub.u32", c->reg.warp, imm(first)), imm(count));
}

Reg next_cases(Columns *c)
{
	Emit *e = c->k->e;

	return mad(e, op2(e, REG_R, "xor.b32", c->reg.parity, imm(1)), c->smem.cases_size, c->k->memory);
}

Kernel *update_kernel(Columns *c)
{
	Kernel *one = NEW(&c->k->s->cx->scratch, 1, Kernel);

	*one = *c->k;
	one->memory = c->reg.cases;
	one->rows = c->reg.rows;
	return one;
}

/* ---- prologue ---- */

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

	fill(c, c->smem.input_w + (c->inputs + 1) * c->smem.input_w_row, c->smem.input_w_row, -0.0f);
	fill(c, c->smem.hidden_delta + c->smem.hidden_pad * c->block_cols * 4, c->block_cols * 4, -0.0f);
	if (c->output_panel->bias != NO_BIAS) { /* the true unit: ones */
		uint32_t other = if_begin(e, same(e, c->reg.unit_group, imm(c->bias_group)));
		for (uint32_t i = 0; i < 2; i++)
			fill(c, c->smem.act_t + i * c->smem.act_t_size + c->bias_slot * c->smem.column,
			     c->parts * c->smem.part_column, 1);
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
	if (c->bf16)
		bf16_columns_begin(c);
	else
		lists_begin(c);
	spent_begin(k);
	uint32_t end = if_begin(e, same(e, k->tid, imm(0)));
	bars_begin(c);
	if_end(e, end);
}

/* Derived again in each update, so that they are not live in loops, which need most registers. */
void registers_derive(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;

	c->reg.warp = op2(e, REG_R, "shr.u32", k->tid, imm(5));
	c->reg.lane = op2(e, REG_R, "and.b32", k->tid, imm(31));
	if (c->bf16) {
		bf16_registers(c);
	} else {
		c->reg.first_column = mul(e, k->member, c->block_cols);
		c->reg.unit_group = divide(e, k->member, c->output_groups);
		c->reg.output_group = modulo(e, k->member, c->output_groups, c->reg.unit_group);
	}
	c->reg.has_columns = less(e, c->reg.first_column, imm(c->hidden));
	c->reg.part = imm(0);
	c->reg.part_warp = c->reg.warp;
	if (c->parts > 1) { /* the second part is rotated: its first warps are on other schedulers */
		c->reg.part = op2(e, REG_R, "and.b32", divide(e, c->reg.warp, c->part_warps), imm(1));
		c->reg.part_warp = op2(e, REG_R, "sub.u32", c->reg.warp, mul(e, c->reg.part, c->pass_warps));
		c->reg.part_warp = op2(e, REG_R, "and.b32", c->reg.part_warp, imm(c->part_warps - 1));
	}
	c->reg.part_thread = mad(e, c->reg.part_warp, 32, c->reg.lane);
	c->reg.first_row = mul(e, c->reg.part, c->part_block_rows);
	k->row0 = mad(e, c->reg.part, c->part_rows, mul(e, k->member, c->part_block_rows));
	c->reg.parity = op2(e, REG_R, "and.b32", c->reg.update, imm(1));
	c->reg.pair_parity = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", c->reg.update, imm(1)), imm(1));
	c->reg.tally_block = op2(e, REG_R, "and.b32", c->reg.update, imm(c->tally_blocks - 1));
	c->reg.cases = mad(e, c->reg.parity, c->smem.cases_size, k->memory);
}

static void registers_begin(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;

	k->memory = special_register(e, "memory");
	k->tid = special_register(e, "%tid.x");
	k->block = k->member = special_register(e, "%ctaid.x");
	k->team = k->leaf_number = op1(e, REG_R, "mov.u32", imm(0));
	k->my_rows = reg(e, REG_R);
	c->reg.rows = reg(e, REG_R);
	c->reg.update = op1(e, REG_R, "mov.u32", imm(0));
	registers_derive(c);
}

/* ---- updates ---- */

void update_begin(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;

	ins(e, "ld.shared.u32 $, [$+#]", c->reg.rows, c->reg.cases, c->smem.count);
	ins(e, "mov.u32 $, $", k->my_rows, rows_in(c, k->row0, c->part_block_rows));
}

Reg rows_in(Columns *c, Reg first, uint32_t most)
{
	Emit *e = c->k->e;
	Reg end = op2(e, REG_R, "max.u32", c->reg.rows, first);

	return op2(e, REG_R, "min.u32", op2(e, REG_R, "sub.u32", end, first), imm(most));
}

Reg batch_row(Columns *c, Reg within)
{
	Emit *e = c->k->e;
	Reg part = divide(e, within, c->part_block_rows), rest = modulo(e, within, c->part_block_rows, part);

	return mad(e, part, c->part_rows, mad(e, c->k->member, c->part_block_rows, rest));
}

UpdateLoop updates_begin(Columns *c)
{
	Emit *e = c->k->e;
	UpdateLoop l = { .top = label(e) };

	label_here(e, l.top);
	registers_derive(c);
	return l;
}

void updates_end(Columns *c, const UpdateLoop *l)
{
	Emit *e = c->k->e;

	ins(e, "add.u32 $, $, 1", c->reg.update, c->reg.update);
	ins(e, "@$ bra L#", less(e, c->reg.update, updates_load(c)), l->top);
}

Reg updates_load(Columns *c) { return param_load(c->k->e, REG_R, offsetof(Job, updates)); }

/* Is it the thread that declares the bytes to expect? One of the first part, which begins an update. */
static Reg is_expecting(Columns *c) { return same(c->k->e, c->k->tid, imm(c->part_warps * 32 - 1)); }

/* Declares the bytes that other blocks will send in this update. new_weights: R, bytes of output weights */
static void stores_expect(Columns *c, Reg new_weights)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t other = if_begin(e, is_expecting(c));
	Reg quad = op2(e, REG_R, "shr.u32", c->reg.first_column, imm(2)), quads;

	Reg first = mul(e, c->reg.output_group, c->group_outputs);
	Reg outputs = op2(e, REG_R, "min.u32", op2(e, REG_R, "sub.u32", imm(c->outputs), first), imm(c->group_outputs));
	Reg left = op2(e, REG_R, "max.u32", c->reg.first_column, imm(c->hidden)); /* the block's own columns are not sent */
	left = op2(e, REG_R, "min.u32", op2(e, REG_R, "sub.u32", left, c->reg.first_column), imm(c->block_cols));
	Reg units = op2(e, REG_R, "sub.u32", valid_units(c, c->reg.unit_group), left);
	quads = op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", quad, imm(c->hidden_quads)),
	            quad); /* from its first column on */
	quads = op2(e, REG_R, "min.u32", quads, imm(c->block_quads));
	bar_expect(c, BAR_OUTPUT_W, new_weights);
	for (uint32_t p = 0; p < c->parts; p++) {
		Reg mine = rows_in(c, add(e, mul(e, k->member, c->part_block_rows), imm(p * c->part_rows)), c->part_block_rows);
		bar_expect(c, BAR_ACT + p, mul(e, mine, c->hidden_quads * 16));
		ins(e, "mbarrier.arrive.expect_tx.shared.b64 _, [$], $", group_bar(c, imm(p)), mul(e, units, c->part_rows * 4));
		bar_expect(c, BAR_DELTA + p, mul(e, outputs, c->part_rows * 4));
		Reg all = rows_in(c, imm(p * c->part_rows), c->part_rows);
		bar_expect(c, BAR_HIDDEN + p, op2(e, REG_R, "mul.lo.u32", mul(e, all, 16), quads));
	}
	ins(e, "mbarrier.arrive.expect_tx.shared.b64 _, [$], 4", alternate_bar(c, BAR_GO));
	if_end(e, other);
}

static void outputs_wait(Columns *c)
{
	bar_wait(c, bar_address(c, BAR_OUTPUT_W), c->reg.parity); /* mostly complete already */
	bar_wait(c, part_bar(c, BAR_ACT), c->reg.parity);
}

/* One part: all warps compute, then send, then compute. */
static void rows_by_all(Columns *c)
{
	warps_sync(c, imm(NAMED_ACT), c->warps);
	activations_send(c, 0, c->warps);
	outputs_wait(c);
	outputs_emit(c);
	bar_arrive_warp(c, alternate_bar(c, BAR_OUTPUTS));
	warps_sync(c, imm(NAMED_OUTPUTS), c->warps);
	deltas_send(c, 0, c->warps);
	hidden_deltas_emit(c, c->warps);
}

/* Two parts: the first warps of each compute while the others send. The gradient needs activations later than outputs
 * do: those of both parts are sent to groups after those of the second part were sent to rows. */
static void rows_by_parts(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t team = c->part_warps, senders = team - c->pass_warps, end = label(e);
	Reg outputs = add(e, c->reg.part, imm(NAMED_OUTPUTS));

	uint32_t other = if_begin(e, less(e, c->reg.part_warp, imm(c->pass_warps)));
	uint32_t first = if_begin(e, same(e, c->reg.part, imm(1)));
	warps_arrive(c, imm(NAMED_ACT), team + senders); /* activations of all rows were stored */
	if_end(e, first);
	outputs_wait(c);
	spent(k, SPENT_KINDS + 3);
	outputs_emit(c);
	spent(k, SPENT_KINDS + 4);
	bar_arrive_warp(c, alternate_bar(c, BAR_OUTPUTS));
	warps_sync(c, outputs, team);
	spent(k, SPENT_KINDS + 5);
	hidden_deltas_emit(c, c->pass_warps);
	spent(k, SPENT_KINDS + 6);
	ins(e, "bra L#", end);
	if_end(e, other);
	warps_sync(c, imm(NAMED_ACT), team + senders);
	activations_send(c, c->pass_warps, senders);
	warps_sync(c, outputs, team);
	deltas_send(c, c->pass_warps, senders);
	label_here(e, end);
}

/* The second part begins after the first: at the same time, both would take as long, and the first part would be no
 * sooner done. The gradient's warps, which are of the second part, know then that the update before has ended. */
static void part_wait(Columns *c)
{
	uint32_t first = if_begin(c->k->e, same(c->k->e, c->reg.part, imm(1)));

	warps_sync(c, imm(NAMED_FIRST), c->warps);
	if_end(c->k->e, first);
}

static void part_tell(Columns *c)
{
	uint32_t second = if_begin(c->k->e, same(c->k->e, c->reg.part, imm(0)));

	warps_arrive(c, imm(NAMED_FIRST), c->warps);
	if_end(c->k->e, second);
}

bool gradient_runs_ahead(const Columns *c) { return c->parts > 1; }

static void worker_update(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t lists = label(e), end = label(e), next = label(e);

	hidden_emit(c);
	if (c->parts > 1)
		part_tell(c);
	spent(k, SPENT_KINDS + 2);
	if (c->parts > 1)
		rows_by_parts(c);
	else
		rows_by_all(c);
	ins(e, "@!$ bra L#", in_warps(c, c->gradient_first, c->gradient_warps), lists);
	output_weights_emit(c);
	ins(e, "bra L#", gradient_runs_ahead(c) ? next : end);
	label_here(e, lists);
	input_weights_emit(c);
	label_here(e, end);
	spent(k, SPENT_KINDS + 11);
	warps_sync(c, imm(NAMED_END), c->warps + 1);
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
		part_wait(c);
	update_begin(c);
	stores_expect(c, sent);
	worker_update(c);
	ins(e, "mov.u32 $, #", sent, c->output_w_bytes);
	updates_end(c, &l);
	spent(k, SPENT_GRADIENT);
	/* drain: output weights of the last update are still being sent */
	uint32_t other = if_begin(e, is_expecting(c));
	bar_expect(c, BAR_OUTPUT_W, imm(c->output_w_bytes));
	if_end(e, other);
	bar_wait(c, bar_address(c, BAR_OUTPUT_W), op2(e, REG_R, "and.b32", c->reg.update, imm(1)));
}

static void (*const side_loop[SIDE_WARPS])(Columns *c) = {
	[SIDE_PREFETCH] = prefetch_loop, [SIDE_SCORE] = score_loop, [SIDE_TALLY] = tally_loop, [SIDE_DECIDE] = decide_loop
};

/* All warps, from the first update to the end of the job. output_weights: bf16, a label */
static void roles_emit(Columns *c, uint32_t output_weights)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t side[SIDE_WARPS];

	for (uint32_t i = 0; i < SIDE_WARPS; i++) {
		side[i] = label(e);
		ins(e, "@$ bra L#", same(e, c->reg.warp, imm(c->warps + i)), side[i]);
	}
	if (c->bf16)
		bf16_workers(c);
	else
		workers_emit(c);
	for (uint32_t i = 0; i < SIDE_WARPS; i++) {
		ins(e, "bra L#", c->done);
		label_here(e, side[i]);
		registers_derive(c);
		if (c->bf16 && i >= SIDE_TALLY) { /* a warp of each block that would be idle */
			Reg is_last = same(e, k->member, imm(c->blocks - 1));
			ins(e, i == SIDE_TALLY ? "@$ bra L#" : "@!$ bra L#", is_last, output_weights);
		}
		side_loop[i](c);
	}
	if (c->bf16) {
		ins(e, "bra L#", c->done);
		label_here(e, output_weights);
		registers_derive(c);
		bf16_output_weights_loop(c);
	}
	label_here(e, c->done);
	registers_derive(c);
}

const char *columns_text(const EmitSource *s, uint32_t csc_bytes, Arena *a, Buf *out, ColumnsShape *shape)
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
	const char *why = plan(c, own, csc_bytes);
	if (why)
		return why;
	uint32_t output_weights = label(e);
	c->done = label(e);
	registers_begin(c);
	memory_begin(c);
	if (c->bf16)
		bf16_weights_move(c, false);
	else
		weights_move(c, false);
	prefetch_first(c);
	barrier_block(e);
	cluster_sync(c); /* memory of all blocks is ready */
	roles_emit(c, output_weights);
	cluster_sync(c); /* no block ends before all writes to it are done */
	if (c->bf16)
		bf16_weights_move(c, true);
	else
		weights_move(c, true);
	spent_store(k);
	ins(e, "ret");
	buf_printf(out,
	           "// columns: %u blocks of %u threads, %u bytes of shared memory, %u columns and %u rows a block, "
	           "%u parts%s\n",
	           c->blocks, own->threads, k->bytes, c->block_cols, k->block_rows, c->parts,
	           c->bf16 && c->bf16->shares > 1 ? ", columns shared" : "");
	kernel_wrap(e, out, sizeof(Job), own->threads, c->blocks);
	*shape = (ColumnsShape){ .threads = own->threads, .shared = k->bytes };
	return NULL;
}
