/* SPDX-License-Identifier: MIT */
/* Lowering: the steps of target cpu become steps of the device. In: the program of target cpu with its layout and its
 * lists of steps, bound data. Out: the same steps with device addresses, tables of columns, the data.
 *
 * Weights have the places of target cpu. The device also has the transpose of every matrix that some pass reads along
 * the other dimension. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "cuda.h"
#include "pass.h"

_Static_assert((int)BUF_ACT == ROW_ACT && (int)BUF_DELTA == ROW_DELTA && (int)BUF_NET == ROW_NET &&
                   (int)BUF_ERROR == ROW_ERROR && (int)BUF_HELD == ROW_HELD && (int)BUF_CLEAN == ROW_CLEAN,
               "steps name buffers as target cpu does");

const void *layout_of(const Program *cpu) { return cpu->layout; }

/* ---- bf16 ---- */

bool wants_bf16(const Options *o) { return cpu_own(o)->precision == PRECISION_BF16; }

uint16_t bf16_of(float x)
{
	uint32_t b;

	memcpy(&b, &x, sizeof b);
	return x != x ? 0x7fff : (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

/* ---- steps ---- */

typedef struct Lower {
	Cuda *c;
	const Program *p;
	const Layout *l;
	DeviceBound *b;
	DeviceStep *step; /* of the list, on the host */
	DeviceList *list;
	bool learn;          /* the list trains; else it tests */
	bool backward;       /* the current stage is one of the backward pass */
	bool noisy;          /* weights of the list have noise */
	const float *w;      /* device: weights that steps read, */
	const float *copies; /* and their transposes */
	Program view;        /* target cpu's program with the weights that its steps read */
} Lower;

static DeviceStep *step_add(Lower *m, int kind)
{
	DeviceStep *d = &m->step[m->list->steps++];

	*d = (DeviceStep){ .kind = (uint8_t)kind };
	return d;
}

/* Weights of a panel as rows by source: row `source`; *row: floats of a row. */
static const float *weights_by_source(const Lower *m, const Panel *p, uint32_t source, uint32_t *row)
{
	uint32_t i = (uint32_t)(p - m->l->panel);
	const float *w = p->by_source ? m->w + p->at : m->copies + m->c->tables.transposed_at[i];

	*row = p->by_source ? p->row : m->c->tables.transposed_row[i];
	return w + (size_t)source * *row;
}

/* The same as rows by target: the first row. */
static const float *weights_by_target(const Lower *m, const Panel *p, uint32_t *row)
{
	uint32_t i = (uint32_t)(p - m->l->panel);

	*row = p->by_source ? m->c->tables.transposed_row[i] : p->row;
	return p->by_source ? m->copies + m->c->tables.transposed_at[i] : m->w + p->at;
}

/* Initial values of sums: where the device has the row that target cpu starts from. It is NULL (sums continue), zeros,
 * or a row of weights from the true unit (bias). */
static const float *start_of(const Lower *m, const float *start)
{
	uint32_t row;

	if (!start)
		return NULL;
	for (uint32_t i = 0; start != m->p->zero && i < m->l->panels; i++) {
		const Panel *p = &m->l->panel[i];
		uint32_t source = p->bias ? p->sources : 0;
		if (p->list || (!p->bias && p->from != 0))
			continue;
		Form w = form_by_source(&m->view, p);
		if (start == w.w + source * w.row)
			return weights_by_source(m, p, source, &row);
	}
	assert(start == m->p->zero);
	return m->c->job.zero;
}

static void lower_product(Lower *m, const Step *st)
{
	const Panel *p = st->panel;
	DeviceStep *d = step_add(m, STEP_PRODUCT);
	const Part *from = p ? &m->l->part[p->from] : NULL;

	d->a = st->a;
	d->c = st->c;
	d->a_col = st->a_col;
	d->c_col = st->c_col;
	d->cols = st->product.cols;
	d->depth = st->product.depth;
	d->start = start_of(m, st->product.start);
	d->b_row = 0;
	d->b = m->c->job.zero;
	d->wide = true;
	if (p && !m->backward)
		d->b = weights_by_source(m, p, 0, &d->b_row);
	if (p && m->backward) {
		d->b = weights_by_target(m, p, &d->b_row);
		d->wide = d->c_col % 4 == 0 && (d->cols % 4 == 0 || d->c_col + d->cols == from->col + from->count);
	}
	if (p) {
		d->half_at = p->at;
		d->half_row = p->row;
		d->by_depth = p->by_source != m->backward;
		d->to_end = !m->backward || d->c_col + d->cols == from->col + from->count;
	}
}

static void lower_index(Lower *m, const Step *st)
{
	DeviceStep *d = step_add(m, STEP_INDEX);

	d->c = st->c;
	d->c_col = st->c_col;
	d->cols = st->lists.cols;
	d->low = st->lists.low;
	d->depth = st->lists.high - st->lists.low;
	d->b = weights_by_source(m, st->panel, 0, &d->b_row);
	d->start = start_of(m, st->lists.start);
	d->sigmoid = st->lists.sigmoid;
}

/* Columns that links read. */
static const uint32_t *link_columns(Lower *m, const LinkSums *s, uint64_t links)
{
	uint32_t *col = NEW(&m->c->cx->scratch, links + 1, uint32_t);

	for (uint64_t k = 0; k < links; k++)
		col[k] = s->strip[s->slot[k] / LANES] + s->slot[k] % LANES;
	return device_put(&m->b->memory, col, links * sizeof *col);
}

static void lower_links(Lower *m, const Step *st)
{
	const LinkSums *s = st->links;
	DeviceStep *d = step_add(m, STEP_LINKS);

	d->a = st->a;
	d->c = st->c;
	d->go_on = st->run == run_links_back;
	d->b = m->w + st->panel->at;
	d->units = s->units;
	d->links = s->first[s->units];
	d->col = link_columns(m, s, d->links);
	d->unit = device_put(&m->b->memory, s->unit, s->units * sizeof *s->unit);
	d->link = device_put(&m->b->memory, s->first, (s->units + 1) * sizeof *s->first);
	d->order = s->order ? device_put(&m->b->memory, s->order, d->links * sizeof *s->order) : NULL;
}

static int part_error(const Lower *m, const Part *t)
{
	int option = (int)(m->p->bound->scorer.err - error_fns);

	return t->group < 0 ? option : group_error(&m->c->net->group[t->group], option);
}

static DeviceStep *lower_part(Lower *m, int kind, const Step *st)
{
	DeviceStep *d = step_add(m, kind);

	d->a = st->a;
	d->c = st->c;
	d->a_col = d->c_col = st->part->col;
	d->cols = st->part->count;
	d->fn = (uint8_t)st->part->fn;
	d->keeps_net = part_keeps_net(st->part, part_error(m, st->part));
	return d;
}

static void lower_load(Lower *m, const Step *st)
{
	const Layout *l = m->l;

	(void)st;
	if (!m->b->data.from)
		step_add(m, STEP_LOAD);
	else if (l->has_links || l->copies_inputs)
		step_add(m, STEP_SCATTER);
	if (m->b->csr.used && m->learn)
		step_add(m, STEP_MARK);
}

/* Softmax: deltas need the errors of the whole row, so they are a step of their own. */
static void lower_errors(Lower *m, const Step *st)
{
	const Errors *e = &st->errors;
	DeviceStep d = { .kind = STEP_ERRORS, .c = st->c == ROW_NONE ? BUFS : st->c };

	d.a_col = d.c_col = st->part->col;
	d.cols = st->part->count;
	d.fn = (uint8_t)e->fn;
	d.error = (uint8_t)e->error;
	d.known_net = d.keeps_net = part_keeps_net(st->part, e->error) && st->part->integrate != INTEGRATE_OUTPUT;
	d.y = st->part->output;
	d.first = st->part == &m->l->part[m->l->output];
	d.deltas = e->deltas && d.fn != FN_SOFTMAX;
	d.offset = e->offset;
	d.scale = st->error_scale;
	d.near = st->near;
	*step_add(m, STEP_ERRORS) = d;
	if (e->deltas && d.fn == FN_SOFTMAX && d.c != BUFS) {
		*step_add(m, STEP_DELTAS) = d;
		m->step[m->list->steps - 1].kind = STEP_DELTAS;
	}
}

static void lower_scores(Lower *m, const Step *st)
{
	step_add(m, STEP_SCORES);
	m->b->right_here = st->scores.right;
}

/* target cpu: outputs, errors and scores of a row in one step. */
static void lower_outcomes(Lower *m, const Step *st)
{
	DeviceStep *d = step_add(m, STEP_UNITS);

	d->a = d->c = BUF_ACT;
	d->a_col = d->c_col = st->part->col;
	d->cols = st->part->count;
	d->fn = (uint8_t)st->part->fn;
	lower_errors(m, st);
	lower_scores(m, st);
}

static void lower_carry(Lower *m, const Step *st)
{
	const Net *net = m->c->net;
	const Part *t = st->part;
	uint32_t *col = NEW(&m->c->cx->scratch, (size_t)net->copies * t->count + 1, uint32_t), units = 0;
	Unit first = t->group >= 0 ? t->first - net->group[t->group].first : 0;

	for (uint32_t k = 0; k < net->copies; k++) {
		const Group *to = &net->group[net->copy[k].to_group];
		if (net->copy[k].from_group != t->group)
			continue;
		for (uint32_t j = 0; j < t->count; j++)
			col[units * t->count + j] = m->l->col_of[to->first + first + j];
		units++;
	}
	if (!units)
		return;
	DeviceStep *d = lower_part(m, STEP_CARRY, st);
	d->units = units;
	d->col = device_put(&m->b->memory, col, (uint64_t)units * t->count * sizeof *col);
}

static void lower_integrate(Lower *m, const Step *st)
{
	DeviceStep *d = lower_part(m, st->run == run_integrate ? STEP_INTEGRATE : STEP_INTEGRATE_BACK, st);

	d->dt = st->dt;
	d->begin = st->run == run_integrate ? st->start : 0;
	d->carried = st->run == run_integrate_back && st->carried;
}

static void lower_noise(Lower *m, const Step *st)
{
	DeviceStep *d = lower_part(m, STEP_NOISE, st);

	d->noise = (uint8_t)st->noise->kind;
	d->noise_at = (uint8_t)st->place;
	d->amount = st->noise->amount;
	d->scale = (float)(1 / (1 - st->noise->exact));
	d->group = (uint32_t)st->part->group;
	d->low = st->part->first - m->c->net->group[st->part->group].first;
}

static void lower_near(Lower *m, const Step *st)
{
	const Group *g = &m->c->net->group[st->part->group];
	DeviceStep *d = step_add(m, STEP_NEAR);

	d->a_col = st->part->col;
	d->cols = st->part->count;
	d->y = st->part->output;
	d->radius = g->target_radius;
	d->zero_radius = g->zero_radius;
}

static void lower_gradient(Lower *m, const Step *st)
{
	const Panel *p = st->panel;
	DeviceStep *d = step_add(m, STEP_GRADIENT);

	d->a = p->by_source ? BUF_ACT : BUF_DELTA;
	d->c = p->by_source ? BUF_DELTA : BUF_ACT;
	d->a_col = p->by_source ? p->source : st->part->col;
	d->c_col = p->by_source ? st->part->col : p->source;
	d->depth = panel_rows(p);
	d->cols = panel_cols(p);
	d->at = p->at;
	d->panel = m->c->tables.panel_number[p - m->l->panel];
	d->sum_row = p->row;
	d->wide = d->c_col % 4 == 0;
}

static void lower_gradient_index(Lower *m, const Step *st)
{
	const Panel *p = st->panel;
	DeviceStep *d = step_add(m, STEP_GRADIENT_INDEX);

	d->c_col = st->part->col;
	d->cols = p->targets;
	d->low = st->lists.low;
	d->depth = p->sources;
	d->bias = p->bias;
	d->at = p->at;
	d->panel = m->c->tables.panel_number[p - m->l->panel];
	d->sum_row = p->row;
}

static void lower_gradient_links(Lower *m, const Step *st)
{
	const LinkList *list = st->panel->list;
	DeviceStep *d = step_add(m, STEP_GRADIENT_LINKS);

	d->c_col = st->part->col;
	d->links = list->links;
	d->at = st->panel->at;
	d->panel = m->c->tables.panel_number[st->panel - m->l->panel];
	d->col = link_columns(m, &list->forward, list->links);
	d->to = device_put(&m->b->memory, list->to, list->links * sizeof *list->to);
}

static void lower_one(Lower *m, const Step *st) { step_add(m, STEP_ONE)->c_col = st->c_col + st->part->count; }
static void lower_gain(Lower *m, const Step *st) { lower_part(m, STEP_GAIN, st)->offset = st->offset; }
static void lower_deltas(Lower *m, const Step *st) { lower_part(m, STEP_DELTAS, st)->offset = st->offset; }

/* Steps of target cpu, by the function that runs them. STEP_CONTEXTS and STEP_CODES have no operands; other STEP_ kinds
 * here are element-wise steps on a part. */
enum { BY_FUNCTION = STEP_KINDS, NOT_NEEDED }; /* besides STEP_ kinds */
static const struct {
	StepFn *run;
	int kind;                                /* STEP_ of the device, BY_FUNCTION or NOT_NEEDED */
	void (*lower)(Lower *m, const Step *st); /* BY_FUNCTION */
} lowerings[] = {
	{ run_load, BY_FUNCTION, lower_load },
	{ run_product, BY_FUNCTION, lower_product },
	{ run_product_bf16, BY_FUNCTION, lower_product },
	{ run_back_bf16, BY_FUNCTION, lower_product },
	{ run_index, BY_FUNCTION, lower_index },
	{ run_links, BY_FUNCTION, lower_links },
	{ run_links_back, BY_FUNCTION, lower_links },
	{ run_units, STEP_UNITS, NULL },
	{ run_one, BY_FUNCTION, lower_one },
	{ run_contexts, STEP_CONTEXTS, NULL },
	{ run_integrate, BY_FUNCTION, lower_integrate },
	{ run_integrate_back, BY_FUNCTION, lower_integrate },
	{ run_noise, BY_FUNCTION, lower_noise },
	{ run_gain, BY_FUNCTION, lower_gain },
	{ run_near, BY_FUNCTION, lower_near },
	{ run_errors, BY_FUNCTION, lower_errors },
	{ run_outcomes, BY_FUNCTION, lower_outcomes },
	{ run_scores, BY_FUNCTION, lower_scores },
	{ run_codes, STEP_CODES, NULL },
	{ run_zero, STEP_ZERO, NULL },
	{ run_copy_error, STEP_COPY_ERROR, NULL },
	{ run_add_error, STEP_ADD_ERROR, NULL },
	{ run_carry, BY_FUNCTION, lower_carry },
	{ run_deltas, BY_FUNCTION, lower_deltas },
	{ run_gradient, BY_FUNCTION, lower_gradient },
	{ run_gradient_bf16, BY_FUNCTION, lower_gradient },
	{ run_gradient_index, BY_FUNCTION, lower_gradient_index },
	{ run_gradient_links, BY_FUNCTION, lower_gradient_links },
	/* scores read outputs where they are and know their thresholds; all ticks of a case are computed */
	{ run_gather, NOT_NEEDED, NULL },
	{ run_spread, NOT_NEEDED, NULL },
	{ run_within, NOT_NEEDED, NULL },
};

static void lower_step(Lower *m, const Step *st)
{
	size_t i = 0;

	while (i < COUNT(lowerings) && lowerings[i].run != st->run)
		i++;
	assert(i < COUNT(lowerings)); /* every step of target cpu is in the table */
	int kind = lowerings[i].kind;
	if (kind == BY_FUNCTION)
		lowerings[i].lower(m, st);
	else if (kind == STEP_CONTEXTS || kind == STEP_CODES)
		step_add(m, kind);
	else if (kind != NOT_NEEDED)
		lower_part(m, kind, st);
}

/* The device computes all rows, also those that target cpu skips: equal ones, rows without targets. */
static uint32_t stage_kind(int each)
{
	return each == EACH_TIME ? RUN_TIME : each == EACH_TIME_BACK ? RUN_TIME_BACK : RUN_ROWS;
}

/* ---- peephole ---- */

/* Can the element-wise step b run in the epilogue of product a? It must process exactly the columns that a computes. */
static bool fuses(const DeviceStep *a, const DeviceStep *b)
{
	if (a->kind != STEP_PRODUCT || !a->wide || a->after || a->c_col != b->c_col || a->cols != b->cols ||
	    b->fn == FN_SOFTMAX)
		return false;
	return (b->kind == STEP_UNITS && b->a == a->c && b->c == BUF_ACT) ||
	       (b->kind == STEP_DELTAS && a->c == BUF_DELTA && b->a == BUF_ACT);
}

/* Fuses steps from `first` on with the products before them; least: first step that may take part. */
static void fuse_steps(DeviceList *list, DeviceStep *step, uint32_t first, uint32_t least)
{
	uint32_t n = first;

	for (uint32_t i = first; i < list->steps; i++) {
		const DeviceStep *b = &step[i];
		if (n > least && fuses(&step[n - 1], b)) {
			step[n - 1].after = b->kind == STEP_UNITS ? AFTER_UNITS : AFTER_DELTAS;
			step[n - 1].fn = b->fn;
			step[n - 1].offset = b->offset;
			step[n - 1].keeps_net = b->kind == STEP_DELTAS && b->keeps_net;
		} else {
			step[n++] = *b;
		}
	}
	list->steps = n;
}

static void lower_list(Lower *m, const List *from, DeviceList *to, bool learn)
{
	m->b->memory.arena.cx = m->c->cx;
	m->step = NEW(&m->b->memory.arena, 3 * from->steps + 8, DeviceStep);
	m->list = to;
	m->learn = learn;
	m->noisy = m->p->noisy && (learn || m->c->opt->noise);
	m->w = m->noisy ? m->c->job.noisy : m->c->job.w;
	m->copies = m->noisy ? m->c->job.noisy_copies : m->c->job.copies;
	m->view = m->noisy ? noisy_view(m->p) : *m->p;
	*to = (DeviceList){ 0 };
	assert(from->stages <= DEVICE_STAGES);
	for (uint32_t k = 0; k < from->stages; k++) {
		const Stage *g = &from->stage[k];
		uint32_t first = to->steps;
		if (k == from->gradient)
			to->gradient = first;
		m->backward = k >= from->backward;
		for (uint32_t i = g->first; i < g->end; i++)
			lower_step(m, &from->step[i]);
		bool alike = k && k < from->gradient && stage_kind(g->each) == RUN_ROWS && to->stages &&
		             to->stage[to->stages - 1].each == RUN_ROWS; /* steps of both stages may be fused */
		fuse_steps(to, m->step, first, alike ? to->stage[to->stages - 1].first : first);
		if (k < from->gradient)
			to->stage[to->stages++] = (DeviceStage){ stage_kind(g->each), first, to->steps };
	}
	if (from->gradient == from->stages)
		to->gradient = to->steps;
	to->step = device_put(&m->b->memory, m->step, to->steps * sizeof *m->step);
}

/* ---- tables of the layout ---- */

/* Threshold of each output, for scores. */
static const float *criteria_put(Cuda *c, DeviceMemory *to)
{
	const Layout *l = c->cpu->layout;
	float *threshold = NEW(&c->cx->scratch, c->net->outputs + 1, float);

	for (const Part *t = l->part; t < l->part + l->parts; t++)
		for (uint32_t j = 0; t->role == ROLE_OUTPUT && j < t->count; j++)
			threshold[t->output + j] =
				(float)group_criterion(&c->net->group[t->group], c->cpu->bound->scorer.threshold);
	return device_put(to, threshold, c->net->outputs * sizeof *threshold);
}

/* Where inputs come from, which columns are 1, where outputs are. Also bf16: places of inputs in DeviceData.xh and
 * DeviceData.bits. */
static void lower_columns(Cuda *c, DeviceMemory *to)
{
	const Layout *l = c->cpu->layout;
	Job *j = &c->job;
	InputColumns *in = NEW(&to->arena, l->parts, InputColumns);
	uint32_t *ones = NEW(&to->arena, l->parts + 1, uint32_t), *out = NEW(&to->arena, c->net->outputs + 1, uint32_t);
	uint32_t inputs = 0, one = 0, halves = 0, words = 0;

	ones[one++] = 0;
	for (const Part *t = l->part; t < l->part + l->parts; t++) {
		if (t->role == ROLE_INPUT && t->group >= 0) {
			InputColumns *i = &in[inputs++];
			*i = (InputColumns){ .col = t->col, .input = t->input, .count = t->count, .half = halves, .word = words };
			i->halves = (uint32_t)round_up(t->count + t->one, LANES);
			halves += i->halves;
			words += bf16_words(t);
		}
		if (t->one)
			ones[one++] = t->col + t->count;
		for (uint32_t n = 0; t->role == ROLE_OUTPUT && n < t->count; n++)
			out[t->output + n] = t->col + n;
	}
	c->tables.input = in;
	c->tables.ones = ones;
	c->tables.output = out;
	j->input = device_put(to, in, inputs * sizeof *in);
	j->input_columns = inputs;
	j->ones = device_put(to, ones, one * sizeof *ones);
	j->one_columns = one;
	j->output = device_put(to, out, c->net->outputs * sizeof *out);
	j->outputs = c->net->outputs;
	j->output_col = l->outputs == 1 ? out[0] : 0;
}

/* Columns of contexts, and those that they copy from the row before. */
static void lower_context_columns(Cuda *c, DeviceMemory *to)
{
	const Layout *l = c->cpu->layout;
	const Net *net = c->net;
	uint32_t contexts = 0;

	for (uint32_t k = 0; k < net->copies; k++)
		contexts += net->group[net->copy[k].to_group].size;
	ContextColumn *context = NEW(&c->cx->scratch, contexts + 1, ContextColumn);
	contexts = 0;
	for (uint32_t k = 0; k < net->copies; k++) {
		const Group *to_group = &net->group[net->copy[k].to_group], *from = &net->group[net->copy[k].from_group];
		for (uint32_t n = 0; n < to_group->size; n++)
			context[contexts++] =
				(ContextColumn){ l->col_of[to_group->first + n], l->col_of[from->first + n], (float)to_group->start };
	}
	c->job.context = device_put(to, context, contexts * sizeof *context);
	c->job.contexts = contexts;
}

static void lower_layout(Cuda *c, DeviceMemory *to)
{
	const Layout *l = c->cpu->layout;

	lower_columns(c, to);
	lower_context_columns(c, to);
	c->job.criteria = l->criteria ? criteria_put(c, to) : NULL;
	c->job.zero = device_alloc(to, (longest_row(l) + LANES) * sizeof(float));
}

void lower_watched(Cuda *c, Span units)
{
	const Layout *l = c->cpu->layout;
	uint32_t count = units.count ? units.count : c->net->outputs;
	uint32_t *col = NEW(&c->cx->scratch, count + 1, uint32_t);

	for (uint32_t j = 0; j < units.count; j++)
		col[j] = l->col_of[units.first + j];
	c->job.watched = units.count ? device_put(&c->weights, col, count * sizeof *col) : c->job.output;
	c->job.watched_count = count;
}

/* ---- all ---- */

void lower_data(Cuda *c, DeviceBound *b)
{
	const Bound *from = c->cpu->bound;
	const Data *d = from->data;
	Lower m = { .c = c, .p = c->cpu, .l = c->cpu->layout, .b = b };

	b->data = (DeviceData){ .inputs = d->inputs, .targets = d->y ? d->targets : 0, .code_count = d->code_count };
	b->csr.used = from->index;
	b->csr.has_values = b->csr.has_padded = false;
	b->csr.entries = b->csr.longest = 0;
	b->middle = (float)from->scorer.middle;
	b->longest = from->longest;
	b->ticks = from->ticks;
	float *nans = NEW(&c->cx->scratch, d->targets + 1, float);
	for (uint32_t k = 0; k < d->targets; k++)
		nans[k] = NAN;
	b->no_targets = device_put(&b->memory, nans, d->targets * sizeof *nans);
	b->examples = run_examples(c->net, d);
	data_put(c, b);
	if (!c->job.input) /* the layout is new */
		lower_layout(c, &c->weights);
	lower_watched(c, c->watch.units);
	c->job.timed = c->net->timed;
	lower_list(&m, &from->learn, &b->learn, true);
	b->learn_step = m.step;
	lower_list(&m, &from->test, &b->test, false);
	b->test_step = m.step;
	b->kernels = NULL;
}
