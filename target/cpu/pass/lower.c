/* SPDX-License-Identifier: MIT */
/* Lowering. In: a layout with its weights, bound data. Out: the list of steps that a chunk of rows goes through.
 *
 * A pass visits parts, and for each its panels; a panel is one Product. Must hold: sums run over panels in the order
 * of the layout, each continuing the one before, so a unit's sum is one chain however it is cut.
 *
 * Sequences of a recurrent network are computed in parallel: time step t computes case t of all sequences that have
 * one. Parts and panels that do not depend on contexts are computed for all rows at once, before or after. */
#include <assert.h>

#include "pass.h"

typedef struct Lower {
	const Program *p;
	const Bound *b;
	const Layout *l;
	List *list;
	uint32_t capacity;
	int kind;
	bool noisy;      /* passes have noise */
	bool fused;      /* outputs, errors and scores are one step */
	bool first_sums; /* sums go to ROW_DELTA, where ticks begin with them */
} Lower;

/* ---- the list ---- */

static void stage(Lower *m, const char *name, int each)
{
	List *list = m->list;

	assert(list->stages < MAX_STAGES);
	list->stage[list->stages++] = (Stage){ .name = name, .each = each, .first = list->steps, .end = list->steps };
}

static Step *add(Lower *m, StepFn *run, const Part *t)
{
	List *list = m->list;
	Step *st = &list->step[list->steps++];

	assert(list->steps <= m->capacity);
	list->stage[list->stages - 1].end = list->steps;
	st->run = run;
	st->part = t;
	return st;
}

/* Steps of the buffers of a part. */
static Step *add_rows(Lower *m, StepFn *run, const Part *t, int a, int c)
{
	Step *st = add(m, run, t);

	st->a = (uint8_t)a;
	st->c = (uint8_t)c;
	st->a_col = st->c_col = t->col;
	return st;
}

static uint32_t most_steps(const Layout *l) { return 20 * l->parts + 3 * l->panels + l->outlets + 8; }

/* ---- weights ---- */

Form form_by_source(const Program *p, const Panel *panel)
{
	return panel->by_source ? (Form){ p->w + panel->at, panel->row, false }
	                        : (Form){ p->copies + panel->copy, panel->copy_row, false };
}

Form form_by_target(const Program *p, const Panel *panel)
{
	if (panel->by_source && panel->copy == NONE)
		return (Form){ p->w + panel->at, panel->row, true };
	return panel->by_source ? (Form){ p->copies + panel->copy, panel->copy_row, false }
	                        : (Form){ p->w + panel->at, panel->row, false };
}

/* ---- forward ---- */

bool reads_index(const Program *p, const Bound *b, const Panel *panel)
{
	return b->index && from_inputs(p->layout, panel);
}

/* Where the sums of a part begin: with bias weights, or at zero; *k skips a panel that has only these. */
static const float *sums_start(const Lower *m, const Part *t, uint32_t *k)
{
	const Panel *panel = &m->l->panel[t->in];

	if (t->ins && panel->from == 0 && !panel->list) {
		++*k;
		return form_by_source(m->p, panel).w;
	}
	for (uint32_t i = 0; i < t->ins; i++)
		if (panel[i].bias) {
			Form w = form_by_source(m->p, &panel[i]);
			return w.w + panel[i].sources * w.row;
		}
	return m->p->zero;
}

/* Panels of a stepped part that come before the first one whose sources are stepped too are summed for all rows at
 * once: the number of that one. */
static uint32_t first_stepped(const Layout *l, const Part *t)
{
	uint32_t k = t->in;

	for (; k < t->in + t->ins && !l->panel[k].list; k++) {
		const Part *from = &l->part[l->panel[k].from];
		if (from->role == ROLE_CONTEXT || from->phase == PHASE_STEPPED)
			break;
	}
	return k;
}

static const Group *part_group(const Lower *m, const Part *t) { return &m->p->net->group[t->group]; }

static int part_error(const Lower *m, const Part *t)
{
	return group_error(part_group(m, t), (int)(m->b->scorer.err - error_fns));
}

static bool keeps_net(const Lower *m, const Part *t) { return part_keeps_net(t, part_error(m, t)); }

static bool has_noise(const Lower *m, const Part *t, int place)
{
	return m->noisy && t->group >= 0 && part_group(m, t)->noise[place].kind;
}

/* Outputs are kept as they were before their noise: slopes are made of them. */
static int clean_buffer(const Lower *m, const Part *t)
{
	return has_noise(m, t, NOISE_AT_OUTPUT) || has_noise(m, t, NOISE_AT_DROPOUT) ? ROW_CLEAN : ROW_ACT;
}

static int net_buffer(const Lower *m, const Part *t) { return keeps_net(m, t) ? ROW_NET : ROW_ACT; }

static int sum_buffer(const Lower *m, const Part *t) { return m->first_sums ? ROW_DELTA : net_buffer(m, t); }

static bool is_damaged(const Lower *m) { return m->kind == LOWER_DAMAGED || m->kind == LOWER_ROLLED; }

/* The group whose units a context holds, as they were in the step before. */
static const Group *copied_group(const Net *net, int32_t context)
{
	for (uint32_t i = 0; i < net->copies; i++)
		if (net->copy[i].to_group == context)
			return &net->group[net->copy[i].from_group];
	return NULL;
}

/* Where a step of alternating ticks reads its sources. */
static void roll_source(const Lower *m, const Part *from, Step *st)
{
	if (from->role != ROLE_CONTEXT) {
		st->constant = from->phase == PHASE_BEFORE;
		return;
	}
	const Group *to = &m->p->net->group[from->group], *g = copied_group(m->p->net, from->group);
	assert(g);
	st->before = true;
	st->zero = to->start == 0;
	st->a_before = m->l->col_of[g->first + (from->first - to->first)] + (st->a_col - from->col);
}

/* start NULL: sums continue those in c. */
static void add_panel(Lower *m, const Part *t, const Panel *panel, const float *start, bool sigmoid)
{
	const Part *from = &m->l->part[panel->from];
	Form w = form_by_source(m->p, panel);
	size_t cols = m->l->cols;
	Step *st;

	if (panel->list) {
		st = add_rows(m, run_links, t, ROW_ACT, net_buffer(m, t));
		st->links = &panel->list->forward;
		st->link_weights = m->p->w + panel->at;
	} else if (reads_index(m->p, m->b, panel)) {
		uint32_t low = from->input + panel->source - from->col;
		st = add_rows(m, run_index, t, ROW_ACT, sum_buffer(m, t));
		st->lists = (Lists){ .cols = panel->targets,
			                 .low = low,
			                 .high = low + panel->sources,
			                 .b = w.w,
			                 .b_row = w.row,
			                 .start = start,
			                 .start_row = start ? 0 : cols,
			                 .c_row = cols,
			                 .sigmoid = sigmoid };
	} else {
		st = add_rows(m, m->p->half ? run_product_bf16 : run_product, t, ROW_ACT, sum_buffer(m, t));
		st->a_col = panel->source;
		st->from_data = from_inputs(m->l, panel);
		st->product = (Product){ .cols = panel->targets,
			                     .depth = panel->sources,
			                     .a_row = cols,
			                     .a_step = 1,
			                     .b = w.w,
			                     .b_row = w.row,
			                     .start = start,
			                     .start_row = start ? 0 : cols,
			                     .c_row = cols,
			                     .far = st->from_data };
		if (m->kind == LOWER_ROLLED)
			roll_source(m, from, st);
	}
	st->panel = panel;
}

/* Sums over panels first .. end - 1. Says whether they are sigmoids already: index lists are summed and squashed at
 * once. */
static bool add_sums(Lower *m, const Part *t, uint32_t first, uint32_t end)
{
	uint32_t k = t->in;
	const float *start = sums_start(m, t, &k);
	bool sigmoid = false;

	if (first > t->in) {
		start = NULL;
		k = first;
	} else if (k == end) { /* nothing but where they start */
		Step *st = add_rows(m, run_product, t, sum_buffer(m, t), sum_buffer(m, t));
		st->product =
			(Product){ .cols = t->count, .a_row = m->l->cols, .b = m->p->zero, .start = start, .c_row = m->l->cols };
	}
	for (; k < end; k++, start = NULL) {
		const Panel *panel = &m->l->panel[k];
		sigmoid = m->kind != LOWER_ONLINE && !panel->list && reads_index(m->p, m->b, panel) &&
		          k + 1 == t->in + t->ins && t->fn == FN_SIGMOID && !keeps_net(m, t) && !t->shaped;
		add_panel(m, t, panel, start, sigmoid);
		m->list->step[m->list->steps - 1].held = m->kind == LOWER_ROLLED && k == first && first > t->in;
	}
	return sigmoid;
}

static float part_dt(const Lower *m, const Part *t) { return (float)group_dt(&m->p->net->group[t->group], m->p->opt); }

/* What a part integrates: a is its new value, c moves towards it. */
static void add_integrate(Lower *m, const Part *t, int c, float start)
{
	Step *st = add_rows(m, run_integrate, t, ROW_NET, c);

	st->dt = part_dt(m, t);
	st->start = start;
}

static void add_noise(Lower *m, const Part *t, int place, int a, int c)
{
	Step *st = add_rows(m, run_noise, t, a, c);

	st->noise = &part_group(m, t)->noise[place];
	st->place = place;
}

/* Noise of outputs, then dropout: from buffer `a` to the activations. */
static void add_output_noise(Lower *m, const Part *t, int a)
{
	for (int place = NOISE_AT_OUTPUT; place <= NOISE_AT_DROPOUT; place++)
		if (has_noise(m, t, place)) {
			add_noise(m, t, place, a, ROW_ACT);
			a = ROW_ACT;
		}
}

static void add_gain(Lower *m, const Part *t, int c)
{
	if (part_group(m, t)->gain != 1)
		add_rows(m, run_gain, t, c, c)->offset = (float)part_group(m, t)->gain;
}

static void add_part(Lower *m, const Part *t)
{
	uint32_t first = t->phase == PHASE_STEPPED ? first_stepped(m->l, t) : t->in;
	bool done = add_sums(m, t, first, t->in + t->ins);
	int clean = clean_buffer(m, t);

	if (has_noise(m, t, NOISE_AT_NET))
		add_noise(m, t, NOISE_AT_NET, net_buffer(m, t), net_buffer(m, t));
	add_gain(m, t, net_buffer(m, t));
	if (t->integrate == INTEGRATE_INPUT)
		add_integrate(m, t, ROW_NET, 0);
	if (!done && !(m->fused && t->role == ROLE_OUTPUT))
		add_rows(m, run_units, t, net_buffer(m, t), t->integrate == INTEGRATE_OUTPUT ? ROW_NET : clean);
	if (t->integrate == INTEGRATE_OUTPUT)
		add_integrate(m, t, clean, m->p->net->group[t->group].start);
	add_output_noise(m, t, clean);
	if (is_damaged(m))
		add_rows(m, run_mask, t, ROW_ACT, ROW_ACT);
	if (t->one)
		add_rows(m, run_one, t, ROW_ACT, ROW_ACT);
}

static void add_phase(Lower *m, int phase)
{
	for (uint32_t i = 0; i < m->l->forwards; i++)
		if (m->l->part[m->l->forward[i]].phase == phase)
			add_part(m, &m->l->part[m->l->forward[i]]);
}

/* Sums over sources that do not depend on the step before. */
static void add_first_sums(Lower *m)
{
	const Layout *l = m->l;

	for (uint32_t i = 0; i < l->forwards; i++) {
		const Part *t = &l->part[l->forward[i]];
		if (t->phase == PHASE_STEPPED && first_stepped(l, t) > t->in)
			add_sums(m, t, t->in, first_stepped(l, t));
	}
}

/* What was computed for the first tick of each case holds for the others. */
static void add_spread(Lower *m)
{
	const Layout *l = m->l;

	for (uint32_t i = 0; i < l->forwards; i++) {
		const Part *t = &l->part[l->forward[i]];
		if (t->phase == PHASE_BEFORE)
			add_rows(m, run_spread, t, ROW_ACT, ROW_ACT);
		if (t->phase == PHASE_BEFORE ? keeps_net(m, t) : t->phase == PHASE_STEPPED && first_stepped(l, t) > t->in)
			add_rows(m, run_spread, t, net_buffer(m, t), net_buffer(m, t));
	}
}

/* Contexts, as they are read in a step. */
static void add_contexts(Lower *m)
{
	if (m->kind != LOWER_ROLLED)
		add(m, run_contexts, NULL);
	for (uint32_t i = 0; is_damaged(m) && i < m->l->parts; i++)
		if (m->l->part[i].role == ROLE_CONTEXT) {
			if (m->kind == LOWER_ROLLED)
				add_rows(m, run_starts, &m->l->part[i], ROW_ACT, ROW_ACT);
			add_rows(m, run_mask, &m->l->part[i], ROW_ACT, ROW_ACT);
		}
}

/* Every case has the same ticks, of which only the last counts; contexts are columns of the step before; and lists of
 * links, which read any column, would need them all in both blocks. */
bool can_roll(const Program *p, const Bound *b)
{
	const Net *net = p->net;

	if (!net->settles || p->half || p->layout->has_links || b->data->ticks || b->longest != b->ticks.each ||
	    b->ticks.targets_from + 1 != b->ticks.each || !ticks_constant(&b->ticks, b->data))
		return false;
	for (uint32_t i = 0; i < net->copies; i++) {
		const Group *from = &net->group[net->copy[i].from_group];
		if (from->role == ROLE_CONTEXT || from->role == ROLE_INPUT || !group_contiguous(p->layout, from))
			return false;
		for (uint32_t k = 0; k < p->layout->parts; k++)
			if (p->layout->part[k].group == net->copy[i].from_group && p->layout->part[k].phase != PHASE_STEPPED)
				return false;
	}
	return true;
}

static void lower_rolled(Lower *m)
{
	stage(m, "forward", EACH_ROW);
	add(m, run_load, NULL);
	add_phase(m, PHASE_BEFORE);
	m->first_sums = true;
	add_first_sums(m);
	m->first_sums = false;
	stage(m, "forward", EACH_TICK);
	add_contexts(m);
	add_phase(m, PHASE_STEPPED);
	stage(m, "forward", EACH_ROW);
	add_phase(m, PHASE_AFTER);
}

static void lower_forward(Lower *m)
{
	/* bf16 rounds inputs by rows */
	bool constant = m->p->net->settles && !m->p->half && ticks_constant(&m->b->ticks, m->b->data) &&
	                !(m->noisy && m->p->net->noisy);

	stage(m, "forward", EACH_ROW);
	add(m, run_load, NULL);
	for (const Part *t = m->l->part; t < m->l->part + m->l->parts; t++)
		if (t->role == ROLE_INPUT)
			add_output_noise(m, t, ROW_ACT);
	if (constant)
		stage(m, "forward", EACH_CASE);
	add_phase(m, PHASE_BEFORE);
	if (!m->p->net->timed)
		return;
	add_first_sums(m);
	if (constant) {
		stage(m, "forward", EACH_ROW);
		add_spread(m);
	}
	stage(m, "forward", EACH_TIME);
	add_contexts(m);
	add_phase(m, PHASE_STEPPED);
	stage(m, "forward", EACH_ROW);
	add_phase(m, PHASE_AFTER);
}

/* ---- scores ---- */

static bool is_matched(const Lower *m, const Part *t)
{
	return t->role == ROLE_OUTPUT && error_fns[part_error(m, t)].matched == t->fn && t->integrate != INTEGRATE_OUTPUT;
}

static float slope_offset(const Lower *m, const Part *t)
{
	return t->fn == FN_SIGMOID ? (float)m->p->opt->prime_offset : 0;
}

/* Can outputs be computed with their errors and scores? */
static bool fuses_outputs(const Lower *m)
{
	const Layout *l = m->l;
	const Part *t = &l->part[l->output];

	if (m->kind != LOWER_LEARN || m->p->half || l->outputs != 1 || t->fn != FN_SIGMOID || t->outs || !t->level ||
	    t->integrate || t->shaped || m->p->opt->error != ERR_SQUARED || m->b->data->weight || !m->b->data->targets)
		return false;
	for (uint32_t k = 0; k < m->p->net->copies; k++)
		if (m->p->net->copy[k].from_group == t->group)
			return false;
	for (uint32_t k = t->in; k < t->in + t->ins; k++)
		if (reads_index(m->p, m->b, &l->panel[k]))
			return false;
	return t->count > 1 && t->count <= OUTCOME_COLS;
}

/* Errors of a part become deltas at once where no others are added to them. */
static void add_errors(Lower *m, const Part *t)
{
	int to = m->kind == LOWER_TEST || is_damaged(m) ? ROW_NONE : t->own_error ? ROW_ERROR : ROW_DELTA;
	bool near = t->shaped && group_has_radius(part_group(m, t));
	if (near)
		add(m, run_near, t);
	Step *st = add_rows(m, m->fused ? run_outcomes : run_errors, t, ROW_ACT, to);

	st->errors = (Errors){ .of = { .cols = t->count, .row = m->l->cols },
		                   .error = part_error(m, t),
		                   .fn = t->integrate == INTEGRATE_OUTPUT ? FN_GAUSSIAN : t->fn,
		                   .y_row = m->b->data->targets,
		                   .deltas = t->level && !t->own_error && !is_matched(m, t) && t->fn != FN_LINEAR,
		                   .offset = slope_offset(m, t) };
	st->error_scale = (float)part_group(m, t)->error_scale;
	st->near = near;
}

static void lower_scores(Lower *m)
{
	const Layout *l = m->l;

	if (!m->b->data->targets)
		return;
	stage(m, "score", m->b->ticks.targets_from && m->kind != LOWER_ROLLED ? EACH_TARGET : EACH_ROW);
	if (l->outputs > 1)
		add(m, run_gather, NULL);
	for (uint32_t k = 0; k < l->parts; k++)
		if (l->part[k].role == ROLE_OUTPUT)
			add_errors(m, &l->part[k]);
	Step *st = m->fused ? &m->list->step[m->list->steps - 1] : add(m, run_scores, NULL);
	st->scores = (Scores){ .of = { .cols = m->p->net->outputs, .row = l->outputs == 1 ? l->cols : l->outputs_padded },
		                   .y_row = m->b->data->targets,
		                   .middle = (float)m->b->scorer.middle,
		                   .right = !m->b->codes };
	if (m->b->codes)
		add(m, run_codes, NULL);
	if (l->criteria)
		add(m, run_within, NULL);
}

/* ---- backward ---- */

/* Adds to the errors of the sources of an outlet those of its targets. start NULL: to those in c. */
static void add_outlet(Lower *m, const Part *t, const Outlet *o, const float *start)
{
	const Panel *panel = &m->l->panel[o->panel];
	size_t cols = m->l->cols;
	Step *st = add_rows(m,
	                    panel->list  ? run_links_back
	                    : m->p->half ? run_back_bf16
	                                 : run_product,
	                    t, ROW_DELTA, ROW_DELTA);

	st->panel = panel;
	if (panel->list) {
		st->links = o->links;
		st->link_weights = m->p->w + panel->at;
		return;
	}
	Form w = form_by_target(m->p, panel);
	st->a_col = m->l->part[panel->part].col;
	st->c_col = panel->source;
	st->product = (Product){ .cols = panel->sources,
		                     .depth = panel->targets,
		                     .a_row = cols,
		                     .a_step = 1,
		                     .b = w.w,
		                     .b_row = w.row,
		                     .transposed = w.transposed,
		                     .start = start,
		                     .start_row = start ? 0 : cols,
		                     .c_row = cols };
}

static bool is_copied(const Lower *m, const Part *t)
{
	bool copied = false;

	for (uint32_t k = 0; k < m->p->net->copies; k++)
		copied |= m->p->net->copy[k].from_group == t->group;
	return copied;
}

static void add_integrate_back(Lower *m, const Part *t, bool carried)
{
	Step *st = add_rows(m, run_integrate_back, t, ROW_DELTA, ROW_DELTA);

	st->dt = part_dt(m, t);
	st->carried = carried;
}

/* Errors of a part: those against its targets, those of contexts in the next row (carried), those of its targets;
 * then its deltas. Deltas of outputs that lead nowhere were made with their errors. A part whose first outlet is a
 * whole panel needs no zeros to start from. */
static void add_back(Lower *m, const Part *t, bool carried)
{
	const Outlet *o = &m->l->outlet[t->out];
	bool matched = is_matched(m, t);
	carried = carried && (is_copied(m, t) || t->integrate);
	bool whole = !t->own_error && !carried && t->outs && !m->l->panel[o->panel].list &&
	             m->l->panel[o->panel].sources == t->count;

	if (t->role == ROLE_OUTPUT && !t->own_error)
		return;
	if (t->own_error && !matched)
		add_rows(m, run_copy_error, t, ROW_ERROR, ROW_DELTA);
	else if (!whole)
		add_rows(m, run_zero, t, ROW_DELTA, ROW_DELTA);
	if (carried && is_copied(m, t))
		add_rows(m, run_carry, t, ROW_DELTA, ROW_DELTA);
	for (uint32_t i = 0; i < t->outs; i++)
		add_outlet(m, t, &o[i], whole && !i ? m->p->zero : NULL);
	if (has_noise(m, t, NOISE_AT_DROPOUT) && t->level)
		add_noise(m, t, NOISE_AT_DROPOUT, ROW_DELTA, ROW_DELTA);
	if (t->integrate == INTEGRATE_OUTPUT)
		add_integrate_back(m, t, carried);
	if (t->level && t->fn != FN_LINEAR)
		add_rows(m, run_deltas, t, t->integrate == INTEGRATE_OUTPUT ? ROW_NET : clean_buffer(m, t), ROW_DELTA)->offset =
			slope_offset(m, t);
	if (matched)
		add_rows(m, run_add_error, t, ROW_ERROR, ROW_DELTA);
	if (t->integrate == INTEGRATE_INPUT)
		add_integrate_back(m, t, carried);
	add_gain(m, t, ROW_DELTA);
}

static void add_phase_back(Lower *m, int phase, bool carried)
{
	for (uint32_t i = m->l->forwards; i-- > 0;)
		if (m->l->part[m->l->forward[i]].phase == phase)
			add_back(m, &m->l->part[m->l->forward[i]], carried);
}

static void lower_backward(Lower *m)
{
	const Layout *l = m->l;
	bool timed = m->p->net->timed, full = timed && m->p->opt->bptt != BPTT_COPY;

	m->list->backward = m->list->stages;
	stage(m, "backward", EACH_ROW);
	if (timed)
		add_phase_back(m, PHASE_AFTER, false);
	if (full) {
		stage(m, "backward", EACH_TIME_BACK);
		add_phase_back(m, PHASE_STEPPED, true);
		for (uint32_t i = 0; i < l->parts; i++)
			if (l->part[i].role == ROLE_CONTEXT)
				add_back(m, &l->part[i], true);
		stage(m, "backward", EACH_ROW);
	} else if (timed) {
		add_phase_back(m, PHASE_STEPPED, false);
	}
	add_phase_back(m, PHASE_BEFORE, full);
}

/* ---- gradient ---- */

static void lower_gradient(Lower *m)
{
	const Layout *l = m->l;
	size_t cols = l->cols;

	m->list->gradient = m->list->stages;
	stage(m, "gradient", EACH_ROW);
	for (const Panel *panel = l->panel; panel < l->panel + l->panels; panel++) {
		const Part *t = &l->part[panel->part];
		bool by_source = panel->by_source, index = !panel->list && reads_index(m->p, m->b, panel);
		if (panel->frozen)
			continue;
		Step *st = add_rows(m,
		                    panel->list  ? run_gradient_links
		                    : index      ? run_gradient_index
		                    : m->p->half ? run_gradient_bf16
		                                 : run_gradient,
		                    t, ROW_ACT, ROW_DELTA);
		st->panel = panel;
		st->a_col = panel->list ? 0 : panel->source;
		st->from_data = !panel->list && from_inputs(l, panel);
		if (index) {
			const Part *from = &l->part[panel->from];
			uint32_t low = from->input + panel->source - from->col;
			st->lists = (Lists){ .low = low, .high = low + panel->sources, .delta_row = cols, .sum_row = panel->row };
		} else if (!panel->list) {
			st->product = (Product){ .cols = by_source ? panel->targets : panel->sources + panel->bias,
				                     .a_row = 1,
				                     .a_step = cols,
				                     .b_row = cols,
				                     .c_row = panel->row };
		}
	}
}

List lower(Arena *a, const Program *p, const Bound *b, int kind)
{
	uint32_t capacity = most_steps(p->layout);
	List list = { .step = NEW(a, capacity, Step) };
	bool noisy = p->net->noisy && (kind == LOWER_LEARN || (kind == LOWER_TEST && p->opt->noise));
	Lower m = { .p = p, .b = b, .l = p->layout, .list = &list, .capacity = capacity, .kind = kind, .noisy = noisy };
	Program view;

	if (noisy && p->noisy) { /* steps point to these weights */
		view = noisy_view(p);
		m.p = &view;
	}

	m.fused = fuses_outputs(&m);
	if (kind == LOWER_ROLLED)
		lower_rolled(&m);
	else
		lower_forward(&m);
	lower_scores(&m);
	list.backward = list.gradient = list.stages;
	if (kind != LOWER_TEST && !is_damaged(&m)) {
		lower_backward(&m);
		lower_gradient(&m);
	}
	return list;
}
