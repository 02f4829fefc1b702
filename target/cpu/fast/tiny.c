/* SPDX-License-Identifier: MIT */
/* Tiny networks: what the kernels that run whole epochs of them need. In: a program and the data bound to it. Out:
 * a table of units and links, cases turned so that sixteen of them stand side by side; and weights there and back.
 * Updates after few cases go another way, which tiny_steps.c prepares.
 *
 * Most of a small network's time would go into calls: 8-3-8 with its eight cases is 500 multiply-adds an epoch. */
#include <math.h>
#include <string.h>

#include "fast.h"

enum { MOST_ROWS = 60, MOST_CASES = LEAF_EXAMPLES };

typedef struct Place {
	uint64_t wide;
	uint32_t tiny;
} Place; /* of a link: in the program's arrays, and here */

struct TinyRun {
	Tiny t;
	TinySteps *steps; /* NULL: not in this way */
	Sweep sweep;
	Place *place; /* [links] */
	uint64_t places;
	uint8_t lane_of[MOST_ROWS]; /* by unit */
};

static bool known_function(const Group *g)
{
	return g->fn == FN_SIGMOID || g->fn == FN_TANH || g->fn == FN_RELU || g->fn == FN_LINEAR;
}

/* Plain groups of units, plain blocks of links. */
static bool fits_net(const Program *p)
{
	const Net *net = p->net;
	uint32_t computed = 0;

	if (net->units > MOST_ROWS || net->copies || p->rule->needs_norm || cpu_own(p->opt)->precision != PRECISION_FP32)
		return false;
	if (p->layout->outputs > 1) /* errors of a case are summed part by part */
		return false;
	for (uint32_t i = 0; i < net->blocks; i++)
		if (net->block[i].frozen || net->block[i].rate != 1)
			return false;
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		bool given = g->role == ROLE_INPUT;
		if (!given && !known_function(g))
			return false;
		if (g->role == ROLE_OUTPUT && p->opt->error != ERR_SQUARED && error_fns[p->opt->error].matched != g->fn)
			return false;
		computed += given ? 0 : g->size;
	}
	for (Unit u = 0; u < net->units && computed <= LANES; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			Unit from = net_source(net, u, i);
			if (from && net_group(net, from)->role == ROLE_OUTPUT)
				return false;
		}
	return computed <= LANES;
}

/* Every case has every target.  *binary: and they are 0 or 1. */
static bool fits_data(const Program *p, bool *binary)
{
	const Data *d = p->data;

	if (d->cases > TINY_CASES || d->seq || d->weight || d->code_count || !d->targets)
		return false;
	*binary = true;
	for (uint64_t i = 0; i < d->cases * d->targets; i++) {
		double y = dtype_get(d->y_type, d->y, i);
		if (isnan(y) || (d->mask && !d->mask[i]))
			return false;
		*binary = *binary && (y == 0 || y == 1);
	}
	return true;
}

/* ---- the network ---- */

static TinyUnit unit_of(const Program *p, const TinyRun *r, Unit u, uint8_t *from, uint8_t *to, uint16_t *ins,
                        uint16_t *outs)
{
	const Net *net = p->net;
	TinyUnit t = { .row = (uint8_t)u, .lane = r->lane_of[u], .in = *ins, .out = *outs };

	for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
		Unit source = net_source(net, u, i);
		if (source)
			from[(*ins)++] = (uint8_t)source;
		t.bias |= source == 0;
	}
	for (Unit v = 1; v < net->units; v++)
		for (uint64_t i = net->row[v]; i < net->row[v + 1]; i++)
			if (net_source(net, v, i) == u)
				to[(*outs)++] = r->lane_of[v];
	t.ins = (uint16_t)(*ins - t.in);
	t.outs = (uint16_t)(*outs - t.out);
	return t;
}

static void take_units(Arena *a, const Program *p, TinyRun *r)
{
	const Net *net = p->net;
	const Layout *l = p->layout;
	uint8_t *from = NEW(a, net->links, uint8_t), *to = NEW(a, net->links, uint8_t);
	uint8_t *output = NEW(a, net->outputs, uint8_t);
	TinyUnit *unit = NEW(a, LANES, TinyUnit);
	TinyPart *tiny_part = NEW(a, l->forwards, TinyPart);
	uint16_t ins = 0, outs = 0;
	uint8_t output_lane = 0, lane = (uint8_t)net->outputs;

	for (Unit u = 1; u < net->units; u++)
		if (net_group(net, u)->role != ROLE_INPUT)
			r->lane_of[u] = net_group(net, u)->role == ROLE_OUTPUT ? output_lane++ : lane++;
	for (uint32_t i = 0; i < l->forwards; i++) {
		const Part *part = &l->part[l->forward[i]];
		tiny_part[i] = (TinyPart){ r->t.units, r->t.units + part->count, part->fn, part->role == ROLE_OUTPUT };
		if (part->role == ROLE_OUTPUT)
			r->t.output_fn = part->fn;
		for (uint32_t k = 0; k < part->count; k++) {
			if (part->role == ROLE_OUTPUT)
				output[part->output + k] = (uint8_t)r->t.units;
			unit[r->t.units++] = unit_of(p, r, part->first + k, from, to, &ins, &outs);
		}
	}
	r->t.unit = unit;
	r->t.part = tiny_part;
	r->t.parts = l->forwards;
	r->t.from = from;
	r->t.to = to;
	r->t.output = output;
	r->t.outputs = net->outputs;
	Unit last = 0;
	for (Unit u = 0; u < net->units; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++)
			last = net_source(net, u, i) > last ? net_source(net, u, i) : last;
	r->t.sources = (last + 4) / 4 * 4;
}

/* ---- weights ---- */

static void take_weights(Arena *a, const Program *p, TinyRun *r)
{
	const Net *net = p->net;
	uint32_t *real = NEW(a, r->t.sources * LANES / 32 + 1, uint32_t);

	r->sweep.formula = &p->formula;
	r->sweep.n = r->t.sources * LANES;
	r->sweep.real = real;
	for (int i = 0; i < 2 + p->rule->states; i++)
		/* rows without targets may be looked at */
		r->sweep.variable[i] = floats_take(a, (size_t)(net->units + 3) * LANES);
	for (Unit u = 1; u < net->units; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			uint32_t place = net_source(net, u, i) * LANES + r->lane_of[u];
			real[place / 32] |= 1u << place % 32;
		}
}

typedef struct Finding {
	const Program *p;
	TinyRun *r;
} Finding;

static void find_place(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	const Finding *f = arg;

	f->r->place[f->r->places++] = (Place){ place, net_source(f->p->net, unit, link) * LANES + f->r->lane_of[unit] };
}

static void take_places(Arena *a, const Program *p, TinyRun *r)
{
	r->place = NEW(a, p->net->links, Place);
	layout_links(p->layout, 0, p->net->links, find_place, &(Finding){ .p = p, .r = r });
}

static void carry_in(const Program *p, TinyRun *r)
{
	for (int i = 0; i <= p->rule->states; i++) {
		const float *wide = i ? p->state[i - 1] : p->w;
		for (uint64_t k = 0; k < r->places; k++)
			r->sweep.variable[1 + i][r->place[k].tiny] = wide[r->place[k].wide];
	}
}

static void carry_out(Program *p, const TinyRun *r)
{
	for (int i = 0; i <= p->rule->states; i++) {
		float *wide = i ? p->state[i - 1] : p->w;
		for (uint64_t k = 0; k < r->places; k++)
			wide[r->place[k].wide] = r->sweep.variable[1 + i][r->place[k].tiny];
	}
	update_copies(p);
}

static bool all_finite(const TinyRun *r)
{
	for (uint64_t k = 0; k < r->places; k++)
		if (!isfinite(r->sweep.variable[1][r->place[k].tiny]))
			return false;
	return true;
}

/* ---- cases ---- */

uint32_t tiny_largest(const float *y, uint32_t n)
{
	uint32_t at = 0;

	for (uint32_t j = 1; j < n; j++)
		if (y[j] > y[at])
			at = j;
	return at;
}

static void take_case(const Program *p, TinyRun *r, uint64_t i, float *x, float *y, uint32_t *wanted, uint32_t *before)
{
	Tiny *t = &r->t;
	size_t width = t->eight ? LANES / 2 : LANES, block = i / width, lane = i % width, input = 0;

	data_x(p->data, i, x);
	data_y(p->data, i, y);
	t->act[block * width + lane] = 1;
	for (Unit u = 1; u < p->net->units; u++)
		if (net_group(p->net, u)->role == ROLE_INPUT)
			t->act[(u * t->blocks + block) * width + lane] = x[input++];
	uint32_t top = tiny_largest(y, t->outputs);
	for (uint32_t j = 0; j < t->outputs; j++) {
		size_t word = t->eight ? j / 2 : j * t->blocks + block, bit = lane + (t->eight ? j % 2 * width : 0);
		t->y[(j * t->blocks + block) * width + lane] = y[j];
		wanted[word] |= (uint32_t)(j == top) << bit;
		before[word] |= (uint32_t)(t->outputs > 1 ? j < top : y[j] > t->middle) << bit;
	}
}

/* Do all units of a part have the same sources and the same targets? */
static bool alike(const Tiny *t)
{
	for (uint32_t k = 0; k < t->parts; k++)
		for (uint32_t i = t->part[k].first + 1; i < t->part[k].end; i++) {
			const TinyUnit *a = &t->unit[i - 1], *b = &t->unit[i];
			if (a->bias != b->bias || a->ins != b->ins || a->outs != b->outs ||
			    memcmp(t->from + a->in, t->from + b->in, a->ins) || memcmp(t->to + a->out, t->to + b->out, a->outs))
				return false;
		}
	return true;
}

static void take_cases(Ctx *cx, Arena *a, const Program *p, TinyRun *r)
{
	Tiny *t = &r->t;
	float *x = NEW(&cx->scratch, p->net->inputs, float), *y = NEW(&cx->scratch, p->net->outputs, float);

	t->cases = (uint32_t)p->data->cases;
	t->eight = t->cases <= LANES / 2 && p->layout->outputs == 1 && alike(t);
	t->blocks = (t->cases + LANES - 1) / LANES;
	t->act = floats_take(a, (size_t)(p->net->units + 3) / 4 * 4 * t->blocks * LANES);
	t->delta = floats_take(a, (size_t)LANES * t->blocks * LANES);
	t->y = floats_take(a, (size_t)t->outputs * t->blocks * LANES);
	uint32_t *wanted = NEW(a, t->outputs * t->blocks, uint32_t), *before = NEW(a, t->outputs * t->blocks, uint32_t);
	for (uint64_t i = 0; i < t->cases; i++)
		take_case(p, r, i, x, y, wanted, before);
	t->wanted = wanted;
	t->before = before;
}

TinyRun *tiny_make(Ctx *cx, Arena *a, const Program *p)
{
	bool binary;

	if (!fits_net(p) || !fits_data(p, &binary))
		return NULL;
	TinyRun *r = NEW(a, 1, TinyRun);
	r->t.matched = p->opt->error != ERR_SQUARED;
	r->t.momentum = strcmp(p->rule->name, "momentum") == 0;
	r->t.offset = (float)p->opt->prime_offset;
	r->t.middle = (float)p->scorer.middle;
	take_units(a, p, r);
	take_weights(a, p, r);
	take_places(a, p, r);
	if (p->data->cases <= MOST_CASES && (binary || !r->t.matched)) /* for those the kernel has a short way */
		take_cases(cx, a, p, r);
	r->steps = tiny_steps_make(cx, a, p, &r->t, r->lane_of);
	return r;
}

/* ---- running ---- */

static void set_update(TinyRun *r, const Updates *s, uint64_t number)
{
	for (int i = 0; !(s->same && number) && i < P_COUNT; i++)
		r->sweep.param[i] = (float)s->update[s->same ? 0 : number].param[i];
}

/* One update an epoch, cases in their order. */
static uint64_t run_epochs(Program *p, TinyRun *r, const Updates *s)
{
	uint64_t done = 0;

	r->t.threshold = (float)p->scorer.threshold;
	while (done < s->count && !*s->stop) {
		Tally *t = &s->tally[done];
		set_update(r, s, done++);
		p->kern->tiny(&r->t, &r->sweep, t);
		if (!isfinite(t->error))
			return 0;
		if (until_reached(s->until, t))
			break;
	}
	return all_finite(r) ? done : 0;
}

/* Updates that are the same go to the kernel together, up to the end of an epoch. */
static uint64_t run_steps(Program *p, TinyRun *r, const Updates *s)
{
	uint64_t done = 0, place = s->done, examples = 0;
	Tally *t = s->tally;

	r->steps->threshold = (float)p->scorer.threshold;
	while (done < s->count && !*s->stop) {
		uint64_t left = s->examples - place, most = (s->same ? s->count - done : 1) * s->batch,
				 cases = left < most ? left : most;
		TinyOrder order = {
			.example = s->example ? s->example + examples : NULL, .first = place, .cases = cases, .batch = s->batch
		};
		set_update(r, s, done);
		p->kern->tiny_steps(r->steps, &r->sweep, &order, t);
		if (!isfinite(t->error))
			return 0;
		done += (cases + s->batch - 1) / s->batch;
		examples += cases;
		place += cases;
		if (place < s->examples)
			continue;
		place = 0;
		if (until_reached(s->until, t++))
			break;
	}
	return all_finite(r) ? done : 0;
}

uint64_t tiny_updates(Program *p, TinyRun *r, const Updates *s)
{
	bool pooled = r->t.cases && s->batch == s->examples && !s->example && !s->done;
	unsigned before = cpu_enter();
	uint64_t done = 0;

	carry_in(p, r);
	if (pooled)
		done = run_epochs(p, r, s);
	else if (r->steps && s->batch <= LEAF_EXAMPLES)
		done = run_steps(p, r, s);
	if (done)
		carry_out(p, r);
	cpu_leave(before);
	return done;
}
