/* SPDX-License-Identifier: MIT */
/* Calls of kernels that a single case is. In: a layout, weights and a space. Out: a list of them, forward and then
 * backward with all updates, in which nothing is left to find out but where the case's inputs are. Must hold: what
 * the passes of run.c do with a row, these do, in the same order of sums. */
#include <assert.h>
#include <string.h>

#include "online.h"

/* after so many updates, full rounds of slots, all rows catch up: how late they are is counted in 32 bits */
enum { LATEST = 1 << 16 };

static const Panel *panel_of(const Program *p, const Call *c) { return &p->layout->panel[c->panel]; }

/* Outputs of a panel's sources: inputs may stand in the data. */
static const float *sources_at(const Program *p, const Panel *panel)
{
	const Space *s = &p->space[0];

	return s->direct && from_inputs(p->layout, panel) ? s->direct + panel->source - p->layout->part[panel->from].col
	                                                  : s->act + panel->source;
}

/* ---- what calls do ---- */

static void call_product(Program *p, Call *c) { p->kern->product(&c->product); }

/* Sums over inputs; those of a case that was known are begun, and ended. */
static void call_inputs(Program *p, Call *c)
{
	if (p->online->own[c->panel].ahead) {
		if (p->online->known == p->space[0].cases[0])
			return;
		own_move(p, c->panel, false);
	}
	c->product.a = sources_at(p, panel_of(p, c));
	p->kern->product(&c->product);
}

static void call_lists(Program *p, Call *c) { p->kern->lists_forward(&c->lists); }

/* Rows of the panel that the case's list names catch up, and sums are formed. */
static void call_late(Program *p, Call *c)
{
	const Space *s = &p->space[0];
	const uint32_t *index = s->index[0], *end = index + s->lengths[0];
	Late *l = &c->late;

	while (index < end && *index < l->low)
		index++;
	while (end > index && end[-1] >= l->low + l->sources)
		end--;
	l->index = index;
	l->count = (uint32_t)(end - index);
	l->value = p->data->x_values ? s->values[0] + (index - s->index[0]) : NULL;
	l->now = p->online->now;
	p->kern->late(l);
	if (l->sigmoid && c->part->one)
		l->c[c->part->count] = 1;
}

static void call_turned(Program *p, Call *c)
{
	p->online->own[c->panel].finite = p->kern->turned(&c->turned);
	if (c->turned.sigmoid && c->part->one)
		c->turned.c[c->part->count] = 1;
}

static void call_errors(Program *p, Call *c)
{
	Space *s = &p->space[0];

	c->errors.y = s->target + c->part->output;
	c->scores.y = s->target;
	s->value[0] = 0;
	p->kern->errors(&c->errors);
	p->kern->scores(&c->scores);
}

static void call_score(Program *p, Call *c)
{
	(void)c;
	p->space[0].late = false;
	rows_score(p, &p->space[0], 0, 1, true);
}

static void call_units(Program *p, Call *c)
{
	p->kern->units(&c->rows, c->part->fn, c->net, c->out);
	if (c->part->one)
		c->out[c->part->count] = 1;
}

static void call_zero(Program *p, Call *c)
{
	(void)p;
	memset(c->out, 0, (c->part->count + LANES - 1) / LANES * LANES * sizeof *c->out);
}

static void call_back(Program *p, Call *c)
{
	c->block.finite = p->online->own[c->panel].finite;
	p->kern->outer_block(&c->block);
}

static void call_deltas(Program *p, Call *c)
{
	p->kern->deltas(&c->rows, c->part->fn, c->part->fn == FN_SIGMOID ? (float)p->opt->prime_offset : 0, c->net, c->act,
	                c->out);
}

/* The true unit's weights begin sums and are wanted in a row, also where weights stand by target. */
static void copy_bias(const Program *p, const Panel *panel)
{
	const float *w = p->w + panel->at + panel->sources;
	float *to = p->copies + panel->copy + (size_t)panel->sources * panel->copy_row;

	for (uint32_t t = 0; t < panel->targets; t++)
		to[t] = w[(size_t)t * panel->row];
}

static void call_outer(Program *p, Call *c)
{
	const Panel *panel = panel_of(p, c);

	*(panel->by_source ? &c->outer.a : &c->outer.b) = sources_at(p, panel);
	p->kern->outer(&c->outer);
	if (!panel->by_source && panel->bias)
		copy_bias(p, panel);
}

static void call_bias(Program *p, Call *c) { p->kern->outer(&c->outer); }

/* All rows are late by one update more, and those of the list owe its gradient. */
static void call_owe(Program *p, Call *c)
{
	const Late *l = c->listed;
	const Lag *lag = l->lag;

	c->owe.now = l->now;
	c->owe.rate = c->outer.rate;
	c->owe.momentum = c->outer.momentum;
	if ((l->now & (lag->slots - 1)) == 0) /* the slots are used anew: nobody may owe what is in them */
		catch_up(p, c->panel, l->now % LATEST != 0);
	p->kern->owe(&c->owe);
	for (uint32_t k = 0; k < l->count; k++)
		lag->owed[l->index[k] - l->low] = l->value ? l->value[k] : 1;
}

/* Inputs of the case after this one, if its sums can begin; NULL: they cannot. */
static const float *next_inputs(const Program *p, const Panel *panel)
{
	const Data *d = p->data;

	if (p->online->next == NO_CASE || d->x_type != T_F32 || d->x_indptr || (uintptr_t)d->x % sizeof(float))
		return NULL;
	return (const float *)d->x + p->online->next * d->inputs + panel->source - p->layout->part[panel->from].col;
}

static void call_ahead(Program *p, Call *c)
{
	Online *on = p->online;
	Own *own = &on->own[c->panel];
	const Panel *panel = panel_of(p, c);

	c->outer.a = sources_at(p, panel);
	c->block.next = next_inputs(p, panel);
	own_move(p, c->panel, c->block.next != NULL);
	if (!c->block.next) {
		p->kern->outer(&c->outer);
		return;
	}
	c->block.finite = own->finite;
	own->finite = p->kern->outer_block(&c->block);
	on->known = on->next;
}

/* ---- the list ---- */

/* Sums of panels and of nothing, units, scores; errors from nothing and of outlets, deltas; weights and the true
 * unit's. */
uint32_t calls_most(const Layout *l) { return 4 * l->parts + 3 * l->panels + l->outlets + 1; }

static Call *add(Program *p, uint32_t *count, void (*run)(Program *p, Call *c))
{
	Online *on = p->online;
	Call *c = &on->call[on->forwards + on->backwards];

	assert(on->forwards + on->backwards < calls_most(p->layout));
	++*count;
	*c = (Call){ .run = run };
	return c;
}

static Call *add_forward(Program *p, void (*run)(Program *p, Call *c)) { return add(p, &p->online->forwards, run); }

static Call *add_back(Program *p, void (*run)(Program *p, Call *c)) { return add(p, &p->online->backwards, run); }

/* Where the sums of a part begin; *k skips the panel that has nothing else. */
static const float *sums_start(const Program *p, const Part *t, uint32_t *k)
{
	for (uint32_t i = t->in; i < t->in + t->ins; i++)
		if (p->online->own[i].bias)
			return p->online->own[i].bias;
	return first_weights(p, t, k);
}

static float *net_of(const Program *p, const Part *t)
{
	return (t->fn == FN_GAUSSIAN ? p->space[0].net : p->space[0].act) + t->col;
}

static Turned turned_of(const Program *p, uint32_t i, const float *a, const float *start, float *c)
{
	const Panel *panel = &p->layout->panel[i];
	const Own *own = &p->online->own[i];
	bool back = panel->by_source;
	Turned t = { .cols = back ? panel->sources : panel->targets,
		         .depth = back ? panel->targets : panel->sources,
		         .a = a,
		         .b = p->w + panel->at,
		         .row = panel->row,
		         .sixteen = LANES,
		         .start = start,
		         .c = c };

	if (own->block) {
		t.b = own->block;
		t.row = 2 * LANES;
		t.sixteen = (size_t)own->rows * 2 * LANES;
		t.full = true;
	}
	return t;
}

/* Sums from one panel; true: they have become outputs. */
static bool add_sums(Program *p, const Part *t, uint32_t i, bool last, const float *start, float *net)
{
	const Panel *panel = &p->layout->panel[i];
	const Part *from = &p->layout->part[panel->from];
	const Lag *lag = &p->online->lag[i];
	const Space *s = &p->space[0];
	uint32_t low = from->input + panel->source - from->col;
	bool inputs = from_inputs(p->layout, panel),
		 made = last && t->fn == FN_SIGMOID && (lag->stamp || (!panel->by_source && !(p->index && inputs)));
	Call *c;

	if (lag->stamp) {
		c = add_forward(p, call_late);
		c->late = (Late){ .lag = lag,
			              .low = low,
			              .sources = panel->sources,
			              .cols = panel->targets,
			              .w = p->w + panel->at,
			              .step = p->state[0] + panel->at,
			              .row = panel->row,
			              .momentum = (float)p->opt->momentum,
			              .start = start,
			              .c = net,
			              .sigmoid = made };
	} else if (p->index && inputs) {
		c = add_forward(p, call_lists);
		c->lists = (Lists){ .rows = 1,
			                .cols = panel->targets,
			                .index = s->index,
			                .value = p->data->x_values ? s->values : NULL,
			                .count = s->lengths,
			                .low = low,
			                .high = low + panel->sources,
			                .b = p->w + panel->at,
			                .b_row = panel->row,
			                .start = start,
			                .c = net };
	} else if (panel->by_source) {
		c = add_forward(p, inputs ? call_inputs : call_product);
		c->product = (Product){ .rows = 1,
			                    .cols = panel->targets,
			                    .depth = panel->sources,
			                    .a = s->act + panel->source,
			                    .a_step = 1,
			                    .b = p->w + panel->at,
			                    .b_row = panel->row,
			                    .start = start,
			                    .c = net };
	} else {
		c = add_forward(p, call_turned);
		c->turned = turned_of(p, i, s->act + panel->source, start, net);
		c->turned.sigmoid = made;
	}
	c->panel = i;
	c->part = t;
	return made;
}

static void add_part(Program *p, const Part *t)
{
	float *net = net_of(p, t);
	uint32_t k = t->in, end = t->in + t->ins;
	const float *start = sums_start(p, t, &k);
	bool made = false;
	Call *c;

	if (k == end) {
		c = add_forward(p, call_product);
		c->product = (Product){ .rows = 1, .cols = t->count, .a = net, .b = net, .start = start, .c = net };
	}
	for (; k < end; k++, start = net)
		made = add_sums(p, t, k, k + 1 == end, start, net);
	if (made)
		return;
	c = add_forward(p, call_units);
	c->part = t;
	c->rows = (Rows){ .rows = 1, .cols = t->count };
	c->net = net;
	c->out = p->space[0].act + t->col;
}

static void add_scores(Program *p)
{
	Errors errors;
	Scores scores;

	if (!p->data->targets)
		return;
	bool alone = row_scoring(p, &p->space[0], &errors, &scores);
	Call *c = add_forward(p, alone ? call_errors : call_score);
	if (!alone)
		return;
	c->part = &p->layout->part[p->layout->output];
	c->errors = errors;
	c->scores = scores;
}

/* One that learns, with weights where they stand. */
static Call *add_learner(Program *p, uint32_t i, void (*run)(Program *p, Call *c))
{
	const Panel *panel = &p->layout->panel[i];
	const Space *s = &p->space[0];
	const float *act = s->act + panel->source, *delta = s->err + p->layout->part[panel->part].col;
	Call *c = add_back(p, run);

	c->panel = i;
	c->learns = true;
	c->outer = (Outer){ .rows = panel->by_source ? panel->sources : panel->targets,
		                .cols = panel->by_source ? panel->targets : panel->sources + panel->bias,
		                .a = panel->by_source ? act : delta,
		                .b = panel->by_source ? delta : act,
		                .bias = panel->bias && panel->by_source,
		                .sources = panel->sources,
		                .w = p->w + panel->at,
		                .step = p->state[0] + panel->at,
		                .row = panel->row };
	return c;
}

static void add_owe(Program *p, uint32_t i)
{
	const Online *on = p->online;
	Call *c = add_learner(p, i, call_owe);
	const Outer *o = &c->outer;
	size_t at = (size_t)o->sources * o->row;

	c->owe = (Owe){
		.lag = &on->lag[i], .cols = o->cols, .delta = o->b, .w = o->bias ? o->w + at : NULL, .step = o->step + at
	};
	for (Call *k = on->call; k < on->call + on->forwards; k++)
		if (k->run == call_late && k->panel == i)
			c->listed = &k->late;
}

/* The true unit's weights of a panel that has others in an order of their own. */
static void add_bias(Program *p, uint32_t i)
{
	const Panel *panel = &p->layout->panel[i];
	const Own *own = &p->online->own[i];

	if (!panel->bias)
		return;
	Outer *o = &add_learner(p, i, call_bias)->outer;
	*o = (Outer){ .rows = 1,
		          .cols = panel->targets,
		          .b = p->space[0].err + p->layout->part[panel->part].col,
		          .w = own->bias,
		          .step = own->bias + own->rows };
	if (own->ahead) {
		o->w = p->w + panel->at + (size_t)panel->sources * panel->row;
		o->step = p->state[0] + panel->at + (size_t)panel->sources * panel->row;
	}
}

static OuterBlock block_of(const Own *own, const Outer *of, const float *start, float *c)
{
	return (
		OuterBlock){ .of = of, .block = own->block, .sixteen = (size_t)own->rows * 2 * LANES, .start = start, .c = c };
}

/* Errors of an outlet's sources, and in the same pass its weights. */
static void add_outlet(Program *p, const Outlet *o, const float *start)
{
	uint32_t i = o->panel;
	const Panel *panel = &p->layout->panel[i];
	const float *delta = p->space[0].err + p->layout->part[panel->part].col;
	float *err = p->space[0].err + panel->source;
	Call *c;

	start = start ? start : err;
	if (p->online->own[i].block) {
		c = add_learner(p, i, call_back);
		c->outer.cols = panel->sources;
		c->block = block_of(&p->online->own[i], &c->outer, start, err);
		add_bias(p, i);
	} else if (panel->by_source) {
		c = add_back(p, call_turned);
		c->panel = i;
		c->turned = turned_of(p, i, delta, start, err);
	} else { /* frozen */
		c = add_back(p, call_product);
		c->product = (Product){ .rows = 1,
			                    .cols = panel->sources,
			                    .depth = panel->targets,
			                    .a = delta,
			                    .a_step = 1,
			                    .b = p->w + panel->at,
			                    .b_row = panel->row,
			                    .start = start,
			                    .c = err };
	}
}

/* Errors of a hidden part, which become its deltas. */
static void add_errors(Program *p, const Part *t)
{
	const Outlet *o = &p->layout->outlet[t->out];
	bool plain = t->outs && p->layout->panel[o->panel].sources == t->count;
	float *err = p->space[0].err + t->col;

	if (!plain) {
		Call *c = add_back(p, call_zero);
		c->part = t;
		c->out = err;
	}
	for (uint32_t i = 0; i < t->outs; i++)
		add_outlet(p, &o[i], plain && !i ? p->zero : NULL);
	if (t->fn == FN_LINEAR)
		return;
	Call *c = add_back(p, call_deltas);
	c->part = t;
	c->rows = (Rows){ .rows = 1, .cols = t->count };
	c->net = t->fn == FN_GAUSSIAN ? net_of(p, t) : NULL;
	c->act = p->space[0].act + t->col;
	c->out = err;
}

/* Sums of the next case go where outputs of this one stand, so they come last. */
static void add_ahead(Program *p, uint32_t i)
{
	const Own *own = &p->online->own[i];
	const Part *t = &p->layout->part[p->layout->panel[i].part];
	uint32_t k = t->in;

	add_bias(p, i);
	Call *c = add_learner(p, i, call_ahead);
	c->outer.bias = false;
	c->block = block_of(own, &c->outer, sums_start(p, t, &k), net_of(p, t));
}

void calls_make(Program *p)
{
	const Layout *l = p->layout;
	Online *on = p->online;

	on->forwards = on->backwards = 0;
	on->set = false;
	for (uint32_t i = 0; i < l->forwards; i++)
		add_part(p, &l->part[l->forward[i]]);
	add_scores(p);
	for (uint32_t i = l->forwards; i-- > 0;)
		if (l->part[l->forward[i]].role != ROLE_OUTPUT)
			add_errors(p, &l->part[l->forward[i]]);
	for (uint32_t i = 0; i < l->panels; i++) {
		on->lag[i].ones = !p->data->x_values;
		if (on->lag[i].stamp)
			add_owe(p, i);
		else if (!l->panel[i].frozen && !on->own[i].block)
			add_learner(p, i, call_outer);
	}
	for (uint32_t i = 0; i < l->panels; i++)
		if (on->own[i].ahead)
			add_ahead(p, i);
}
