/* SPDX-License-Identifier: MIT */
/* Steps of a single case. In: the list of steps (lower.c) for one row. Out: the same with fused steps in place of some
 * (a peephole pass), and with all arguments but where the case's inputs and targets are. Fused are sums with the
 * sigmoids of them, errors of a panel's sources with the update of its weights, the update with sums of the next
 * case; transposed copies of weights are not used, so they need not be updated. Must hold: each sum is formed in the
 * order of the list. */
#include <assert.h>
#include <string.h>

#include "online.h"

/* After this many updates, a multiple of all slots, all rows are flushed: updates are counted in 32 bits. */
enum { MOST_DEFERRED = 1 << 16 };

static const Panel *panel_of(const Program *p, const OnlineStep *st) { return &p->layout->panel[st->panel]; }

/* Activations of a panel's sources: inputs may be in the data. */
static const float *sources_at(const Program *p, const Panel *panel)
{
	const Space *s = &p->space[0];

	return s->chunk.inputs && from_inputs(p->layout, panel)
	           ? s->chunk.inputs + panel->source - p->layout->part[panel->from].col
	           : s->rows.row[ROW_ACT] + panel->source;
}

/* ---- what steps do ---- */

/* A step of the list as it is. */
static void do_step(const Program *p, OnlineStep *st)
{
	st->of->run(p, &p->space[0], st->of, &(Slice){ .rows = 1, .threads = 1 });
}

static void do_product(const Program *p, OnlineStep *st) { p->kern->product(&st->product); }

/* Sums over inputs, unless the last update formed them. */
static void do_inputs(const Program *p, OnlineStep *st)
{
	if (p->online->packed[st->panel].ahead) {
		if (p->online->begun == p->space[0].chunk.cases[0])
			return;
		packed_move(p, st->panel, false);
	}
	st->product.a = sources_at(p, panel_of(p, st));
	p->kern->product(&st->product);
}

static void do_index(const Program *p, OnlineStep *st) { p->kern->lists_forward(&st->lists); }

/* Rows of the panel that the case's list names are brought up to date, and sums are formed. */
static void do_lazy(const Program *p, OnlineStep *st)
{
	const RowSpace *s = &p->space[0].rows;
	const uint32_t *index = s->index[0], *end = index + s->lengths[0];
	LazyRows *l = &st->lazy;

	while (index < end && *index < l->low)
		index++;
	while (end > index && end[-1] >= l->low + l->sources)
		end--;
	l->index = index;
	l->count = (uint32_t)(end - index);
	l->value = p->bound->data->x_values ? s->values[0] + (index - s->index[0]) : NULL;
	l->now = p->online->now;
	p->kern->lazy_rows(l);
	if (l->sigmoid && st->part->one)
		l->c[st->part->count] = 1;
}

static void do_row_product(const Program *p, OnlineStep *st)
{
	p->online->packed[st->panel].finite = p->kern->row_product(&st->row_product);
	if (st->row_product.sigmoid && st->part->one)
		st->row_product.c[st->part->count] = 1;
}

static void do_errors(const Program *p, OnlineStep *st)
{
	Space *s = &p->space[0];

	st->errors.y = s->chunk.target + st->part->output;
	st->scores.y = s->chunk.target;
	s->rows.error[0] = 0;
	p->kern->errors(&st->errors);
	p->kern->scores(&st->scores);
}

static void do_units(const Program *p, OnlineStep *st)
{
	p->kern->units(&st->rows, st->part->fn, st->net, st->out);
	if (st->part->one)
		st->out[st->part->count] = 1;
}

static void do_zero(const Program *p, OnlineStep *st)
{
	(void)p;
	memset(st->out, 0, round_up(st->part->count, LANES) * sizeof *st->out);
}

static void do_errors_and_update(const Program *p, OnlineStep *st)
{
	st->block.finite = p->online->packed[st->panel].finite;
	p->kern->outer_block(&st->block);
}

static void do_deltas(const Program *p, OnlineStep *st)
{
	p->kern->deltas(&st->rows, st->part->fn, st->of->offset, st->net, st->act, st->out);
}

/* Bias weights start sums and are needed in a row, also where weights are by target. */
static void copy_bias(const Program *p, const Panel *panel)
{
	const float *w = p->w + panel->at + panel->sources;
	float *to = p->copies + panel->copy + (size_t)panel->sources * panel->copy_row;

	for (uint32_t t = 0; t < panel->targets; t++)
		to[t] = w[(size_t)t * panel->row];
}

static void do_update(const Program *p, OnlineStep *st)
{
	const Panel *panel = panel_of(p, st);

	*(panel->by_source ? &st->outer.a : &st->outer.b) = sources_at(p, panel);
	p->kern->outer(&st->outer);
	if (!panel->by_source && panel->bias)
		copy_bias(p, panel);
}

static void do_update_bias(const Program *p, OnlineStep *st) { p->kern->outer(&st->outer); }

/* One more update is deferred in all rows; in those of the list with its gradient. */
static void do_defer(const Program *p, OnlineStep *st)
{
	const LazyRows *l = st->listed;
	const Lazy *lazy = l->lazy;

	st->defer.now = l->now;
	st->defer.rate = st->outer.rate;
	st->defer.momentum = st->outer.momentum;
	if ((l->now & (lazy->slots - 1)) == 0) /* slots are reused: no row may need what is in them */
		lazy_flush(p, st->panel, l->now % MOST_DEFERRED != 0);
	p->kern->defer(&st->defer);
	for (uint32_t k = 0; k < l->count; k++)
		lazy->input[l->index[k] - l->low] = l->value ? l->value[k] : 1;
}

/* Inputs of the next case; NULL: it is not known, or they cannot be read in place. */
static const float *next_inputs(const Program *p, const Panel *panel)
{
	const Data *d = p->bound->data;

	if (p->online->next == NO_CASE || d->x_type != T_F32 || d->x_indptr || (uintptr_t)d->x % sizeof(float))
		return NULL;
	return (const float *)d->x + p->online->next * d->inputs + panel->source - p->layout->part[panel->from].col;
}

static void do_update_and_next_sums(const Program *p, OnlineStep *st)
{
	Online *on = p->online;
	Packed *packed = &on->packed[st->panel];
	const Panel *panel = panel_of(p, st);

	st->outer.a = sources_at(p, panel);
	st->block.next = next_inputs(p, panel);
	packed_move(p, st->panel, st->block.next != NULL);
	if (!st->block.next) {
		p->kern->outer(&st->outer);
		return;
	}
	st->block.finite = packed->finite;
	packed->finite = p->kern->outer_block(&st->block);
	on->begun = on->next;
}

/* ---- the pass ---- */

/* Every step of the list becomes one, but for an update with bias weights, which may become two. */
uint32_t online_steps_most(const Layout *l) { return 8 * l->parts + 4 * l->panels + l->outlets + 8; }

static OnlineStep *add(const Program *p, bool back, const Step *of, void (*run)(const Program *p, OnlineStep *st))
{
	Online *on = p->online;
	OnlineStep *st = &on->step[on->forwards + on->backwards];

	assert(on->forwards + on->backwards < online_steps_most(p->layout));
	*(back ? &on->backwards : &on->forwards) += 1;
	*st = (OnlineStep){ .run = run, .of = of, .part = of->part };
	st->panel = of->panel ? (uint32_t)(of->panel - p->layout->panel) : 0;
	return st;
}

static float *at(const Program *p, int buffer, uint32_t col) { return p->space[0].rows.row[buffer] + col; }

/* Where the sums of a part start; NULL stands for the sums before. */
static const float *start_of(const Program *p, const Part *t, const float *start, const float *sums)
{
	for (uint32_t i = t->in; start && i < t->in + t->ins; i++)
		if (p->online->packed[i].bias)
			return p->online->packed[i].bias;
	return start ? start : sums;
}

static RowProduct row_product_of(const Program *p, uint32_t i, const float *a, const float *start, float *c)
{
	const Panel *panel = &p->layout->panel[i];
	const Packed *packed = &p->online->packed[i];
	bool back = panel->by_source;
	RowProduct t = { .cols = back ? panel->sources : panel->targets,
		             .depth = back ? panel->targets : panel->sources,
		             .a = a,
		             .b = p->w + panel->at,
		             .row = panel->row,
		             .stride = LANES,
		             .start = start,
		             .c = c };

	if (packed->block) {
		t.b = packed->block;
		t.row = 2 * LANES;
		t.stride = (size_t)packed->rows * 2 * LANES;
		t.full = true;
	}
	return t;
}

/* Does a sigmoid of the sums of this step follow? */
static bool before_sigmoid(const Step *of)
{
	return of[1].run == run_units && of[1].part->fn == FN_SIGMOID && of[1].a == of[1].c;
}

/* Sums from one panel; true: the next step is done with it. */
static bool add_sums(const Program *p, const Step *of)
{
	const Panel *panel = of->panel;
	uint32_t i = (uint32_t)(panel - p->layout->panel);
	const RowSpace *s = &p->space[0].rows;
	float *c = at(p, of->c, of->c_col);
	bool index = of->run == run_index, sigmoid = before_sigmoid(of);
	const float *start = start_of(p, of->part, index ? of->lists.start : of->product.start, c);

	if (p->online->lazy[i].seen) {
		add(p, false, of, do_lazy)->lazy = (LazyRows){ .lazy = &p->online->lazy[i],
			                                           .low = of->lists.low,
			                                           .sources = panel->sources,
			                                           .cols = panel->targets,
			                                           .w = p->w + panel->at,
			                                           .step = p->state[0] + panel->at,
			                                           .row = panel->row,
			                                           .momentum = (float)p->opt->momentum,
			                                           .start = start,
			                                           .c = c,
			                                           .sigmoid = sigmoid };
		return sigmoid;
	}
	if (index) {
		Lists *l = &add(p, false, of, do_index)->lists;
		*l = of->lists;
		l->rows = 1;
		l->index = s->index;
		l->value = p->bound->data->x_values ? s->values : NULL;
		l->count = s->lengths;
		l->start = start;
		l->c = c;
		return false;
	}
	if (panel->by_source) {
		Product *q = &add(p, false, of, of->from_data ? do_inputs : do_product)->product;
		*q = of->product;
		q->rows = 1;
		q->a = at(p, of->a, of->a_col);
		q->start = start;
		q->c = c;
		q->far = false;
		return false;
	}
	OnlineStep *st = add(p, false, of, do_row_product);
	st->row_product = row_product_of(p, i, at(p, of->a, of->a_col), start, c);
	st->row_product.sigmoid = sigmoid;
	return sigmoid;
}

static void add_start(const Program *p, const Step *of)
{
	Product *q = &add(p, false, of, do_product)->product;

	*q = of->product;
	q->rows = 1;
	q->a = q->c = at(p, of->c, of->c_col);
	q->start = start_of(p, of->part, q->start, q->c);
}

static void add_units(const Program *p, const Step *of, bool back, void (*run)(const Program *p, OnlineStep *st))
{
	OnlineStep *st = add(p, back, of, run);
	const Part *t = of->part;

	st->rows = (Rows){ .rows = 1, .cols = t->count };
	st->act = at(p, ROW_ACT, t->col);
	st->net = back && t->fn != FN_GAUSSIAN ? NULL : at(p, back ? ROW_NET : of->a, t->col);
	st->out = at(p, of->c, t->col);
}

/* Errors and scores of one output part, without code words. */
static void add_errors(const Program *p, const Step *of)
{
	OnlineStep *st = add(p, false, of, do_errors);
	const Part *t = of->part;
	const RowSpace *s = &p->space[0].rows;

	st->errors = of->errors;
	st->errors.of.rows = 1;
	st->errors.out = st->errors.made = at(p, ROW_ACT, t->col);
	st->errors.net = s->row[ROW_NET] ? at(p, ROW_NET, t->col) : NULL;
	st->errors.weight = p->bound->data->weight ? s->weight : NULL;
	st->errors.back = at(p, of->c, t->col);
	st->errors.value = s->error;
	st->scores = of[1].scores;
	st->scores.of.rows = 1;
	st->scores.out = st->errors.out;
	st->scores.threshold = (float)p->bound->scorer.threshold;
	st->scores.verdict = s->verdict;
}

/* A step that learns, with weights in p->w. */
static OnlineStep *add_update(const Program *p, const Step *of, void (*run)(const Program *p, OnlineStep *st))
{
	const Panel *panel = of->panel;
	const float *act = at(p, ROW_ACT, panel->source), *delta = at(p, ROW_DELTA, p->layout->part[panel->part].col);
	OnlineStep *st = add(p, true, of, run);

	st->learns = true;
	st->outer = (Outer){ .rows = panel->by_source ? panel->sources : panel->targets,
		                 .cols = panel->by_source ? panel->targets : panel->sources + panel->bias,
		                 .a = panel->by_source ? act : delta,
		                 .b = panel->by_source ? delta : act,
		                 .bias = panel->bias && panel->by_source,
		                 .sources = panel->sources,
		                 .w = p->w + panel->at,
		                 .step = p->state[0] + panel->at,
		                 .row = panel->row };
	return st;
}

static void add_defer(const Program *p, const Step *of)
{
	const Online *on = p->online;
	OnlineStep *st = add_update(p, of, do_defer);
	const Outer *o = &st->outer;
	size_t bias = (size_t)o->sources * o->row;

	st->defer = (Defer){ .lazy = &on->lazy[st->panel],
		                 .cols = o->cols,
		                 .delta = o->b,
		                 .w = o->bias ? o->w + bias : NULL,
		                 .step = o->step + bias };
	for (OnlineStep *k = on->step; k < on->step + on->forwards; k++)
		if (k->run == do_lazy && k->panel == st->panel)
			st->listed = &k->lazy;
}

/* The bias weights of a packed panel. */
static void add_update_bias(const Program *p, const Step *of)
{
	const Panel *panel = of->panel;
	const Packed *packed = &p->online->packed[panel - p->layout->panel];

	if (!panel->bias)
		return;
	Outer *o = &add_update(p, of, do_update_bias)->outer;
	*o = (Outer){ .rows = 1, .cols = panel->targets, .b = at(p, ROW_DELTA, p->layout->part[panel->part].col) };
	if (packed->ahead) {
		o->w = p->w + panel->at + (size_t)panel->sources * panel->row;
		o->step = p->state[0] + panel->at + (size_t)panel->sources * panel->row;
	} else {
		o->w = packed->bias;
		o->step = packed->bias + packed->rows;
	}
}

static OuterBlock block_of(const Packed *packed, const Outer *of, const float *start, float *c)
{
	return (OuterBlock){
		.of = of, .block = packed->block, .stride = (size_t)packed->rows * 2 * LANES, .start = start, .c = c
	};
}

/* Errors of a panel's sources; where its weights are packed they are updated in the same pass. */
static void add_outlet(const Program *p, const Step *of)
{
	const Panel *panel = of->panel;
	uint32_t i = (uint32_t)(panel - p->layout->panel);
	const float *delta = at(p, ROW_DELTA, of->a_col);
	float *error = at(p, ROW_DELTA, of->c_col);
	const float *start = of->product.start ? of->product.start : error;

	if (p->online->packed[i].block) {
		OnlineStep *st = add_update(p, of, do_errors_and_update);
		st->outer.cols = panel->sources;
		st->block = block_of(&p->online->packed[i], &st->outer, start, error);
		add_update_bias(p, of);
	} else if (panel->by_source) {
		add(p, true, of, do_row_product)->row_product = row_product_of(p, i, delta, start, error);
	} else { /* frozen */
		Product *q = &add(p, true, of, do_product)->product;
		*q = of->product;
		q->rows = 1;
		q->a = delta;
		q->start = start;
		q->c = error;
	}
}

/* Sums of the next case overwrite activations of this one, so these steps come last. */
static void add_next_sums(const Program *p, const Step *of)
{
	add_update_bias(p, of);
	OnlineStep *st = add_update(p, of, do_update_and_next_sums);
	st->outer.bias = false;
	for (const OnlineStep *k = p->online->step; k < p->online->step + p->online->forwards; k++)
		if (k->panel == st->panel && k->run == do_inputs)
			st->block = block_of(&p->online->packed[st->panel], &st->outer, k->product.start, k->product.c);
}

void online_steps_make(Program *p)
{
	Online *on = p->online;
	const List *list = &p->bound->online;
	const Step *step = list->step, *back = step + list->stage[list->backward].first,
			   *gradient = step + list->stage[list->gradient].first, *end = step + list->steps;
	bool one_output = p->layout->outputs == 1 && !p->bound->codes;

	on->forwards = on->backwards = 0;
	on->set = false;
	for (const Step *of = step; of < back; of++) {
		if (of->run == run_product && !of->panel)
			add_start(p, of);
		else if (of->run == run_product || of->run == run_index)
			of += add_sums(p, of);
		else if (of->run == run_units)
			add_units(p, of, false, do_units);
		else if (of->run == run_errors && one_output)
			add_errors(p, of++);
		else if (of->run != run_load && of->run != run_one) /* a case is loaded before; ones are set with units */
			add(p, false, of, do_step);
	}
	for (const Step *of = back; of < gradient; of++) {
		if (of->run == run_product)
			add_outlet(p, of);
		else if (of->run == run_deltas)
			add_units(p, of, true, do_deltas);
		else
			add_units(p, of, true, do_zero);
	}
	for (const Step *of = gradient; of < end; of++) {
		uint32_t i = (uint32_t)(of->panel - p->layout->panel);
		on->lazy[i].ones = !p->bound->data->x_values;
		if (on->lazy[i].seen)
			add_defer(p, of);
		else if (!on->packed[i].block)
			add_update(p, of, do_update);
	}
	for (const Step *of = gradient; of < end; of++)
		if (on->packed[of->panel - p->layout->panel].ahead)
			add_next_sums(p, of);
}

void online_print(const Program *p, Buf *out)
{
	static const struct {
		void (*run)(const Program *p, OnlineStep *st);
		const char *name;
	} fused[] = {
		{ do_lazy, "lazy rows, index" }, { do_row_product, "row product" },
		{ do_errors, "errors, scores" }, { do_errors_and_update, "errors and update" },
		{ do_update, "update" },         { do_update_bias, "update bias" },
		{ do_defer, "defer update" },    { do_update_and_next_sums, "update and next sums" },
	};
	const Online *on = p->online;

	for (uint32_t i = 0; i < on->forwards + on->backwards; i++) {
		const char *name = NULL;
		if (i == 0 || i == on->forwards)
			buf_puts(out, i ? "backward and update: one row\n" : "forward and scores: one row\n");
		for (size_t k = 0; k < COUNT(fused); k++)
			name = fused[k].run == on->step[i].run ? fused[k].name : name;
		step_print(p, p->bound, on->step[i].of, name, out);
	}
}
