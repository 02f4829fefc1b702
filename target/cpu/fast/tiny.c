/* SPDX-License-Identifier: MIT */
/* Tiny networks: whole epochs in one kernel call. In: a program and the data bound to it. Out: the table of small.h,
 * cases transposed into lanes; weights copied in and out. Updates after few cases are prepared by tiny_steps.c.
 *
 * With a call for each layer most of the time would go into calls: 8-3-8 has 500 multiply-adds an epoch. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "small_net.h"

enum { MOST_ROWS = 60, MOST_CASES = LEAF_EXAMPLES };

/* Offsets of a link's weight: in the program's arrays, and here. */
typedef struct Place {
	uint64_t wide;
	uint32_t tiny;
} Place;

struct TinyRun {
	Tiny t;
	TinySteps *steps; /* NULL: batches are larger */
	Sweep sweep;
	Place *place; /* [links] */
	uint64_t places;
	uint32_t *place_of;         /* [links] offset of a link's weight, by link */
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

	if (net->units > MOST_ROWS || net->timed || net->shaped || p->rule->needs_norm ||
	    cpu_own(p->opt)->precision != PRECISION_FP32)
		return false;
	if (p->layout->outputs > 1) /* plain_vector sums the errors of one part */
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
	const Data *d = p->bound->data;

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

/* ---- weights: [sources][LANES], rows by unit, lanes by computed unit ---- */

/* Outputs have the first lanes. */
static void take_lanes(const Net *net, TinyRun *r)
{
	uint8_t output = 0, lane = (uint8_t)net->outputs;

	for (Unit u = 1; u < net->units; u++)
		if (net_group(net, u)->role != ROLE_INPUT)
			r->lane_of[u] = net_group(net, u)->role == ROLE_OUTPUT ? output++ : lane++;
}

static void find_place(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	TinyRun *r = arg;

	(void)unit;
	r->place[r->places++] = (Place){ place, r->place_of[link] };
}

static void take_weights(Arena *a, const Program *p, TinyRun *r)
{
	const Net *net = p->net;
	uint32_t *real = NEW(a, net->units * LANES / 32 + 1, uint32_t), last = 0;

	r->place_of = NEW(a, net->links, uint32_t);
	for (Unit u = 1; u < net->units; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			uint32_t place = r->place_of[i] = net_source(net, u, i) * LANES + r->lane_of[u];
			real[place / 32] |= 1u << place % 32;
			last = max_u32(last, place);
		}
	r->t.sources = (uint32_t)round_up(last / LANES + 1, 4);
	r->sweep.formula = &p->formula;
	r->sweep.n = r->t.sources * LANES;
	r->sweep.real = real;
	for (int i = 0; i < 2 + p->rule->states; i++)
		r->sweep.variable[i] = floats_take(a, (size_t)(net->units + 3) * LANES); /* rows without targets are read */
	r->place = NEW(a, net->links, Place);
	layout_links(p->layout, 0, net->links, find_place, r);
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

/* Masks of pair_score. */
static void take_masks(Arena *a, Tiny *t)
{
	const SmallNet *s = &t->net;
	uint32_t *wanted = NEW(a, s->outputs, uint32_t), *before = NEW(a, s->outputs, uint32_t);

	for (uint32_t i = 0; i < t->cases; i++) {
		const float *y = s->y + i * s->y_row;
		uint32_t top = first_largest(y, s->outputs);
		for (uint32_t j = 0; j < s->outputs; j++) {
			uint32_t bit = i + j % 2 * PAIR_CASES;
			wanted[j / 2] |= (uint32_t)(j == top) << bit;
			before[j / 2] |= (uint32_t)(s->outputs > 1 ? j < top : y[j] > s->middle) << bit;
		}
	}
	t->wanted = wanted;
	t->before = before;
}

static void take_cases(Ctx *cx, Arena *a, const Program *p, TinyRun *r)
{
	Tiny *t = &r->t;
	uint32_t cases = (uint32_t)p->bound->data->cases, chunk = (uint32_t)ceil_div(cases, LANES);
	uint32_t *lane = NEW(&cx->scratch, chunk * LANES, uint32_t);

	t->cases = cases;
	t->pairs = cases <= PAIR_CASES;
	t->net = small_make(a, p->layout, p->opt, &(SmallShape){ t->pairs ? LANE_PAIR : LANE_CASE, chunk, r->lane_of },
	                    r->place_of);
	small_data(&cx->scratch, &t->net, p, false);
	assert(t->net.plain);
	small_arrays(a, &t->net, p->layout);
	t->net.w = r->sweep.variable[1];
	for (uint32_t i = 0; i < chunk * LANES; i++)
		lane[i] = min_u32(i, cases);
	p->kern->small_load(&t->net, chunk, 0, lane);
	if (t->pairs)
		take_masks(a, t);
	t->net.x = t->net.y = t->net.top = NULL; /* scratch */
}

TinyRun *tiny_make(Ctx *cx, Arena *a, const Program *p)
{
	bool binary;

	if (!fits_net(p) || !fits_data(p, &binary))
		return NULL;
	TinyRun *r = NEW(a, 1, TinyRun);
	r->t.momentum = strcmp(p->rule->name, "momentum") == 0;
	take_lanes(p->net, r);
	take_weights(a, p, r);
	if (p->bound->data->cases <= MOST_CASES && (binary || p->opt->error == ERR_SQUARED))
		take_cases(cx, a, p, r);
	r->steps = tiny_steps_make(cx, a, p, r->t.momentum, r->lane_of);
	return r;
}

/* ---- training ---- */

static void set_update(TinyRun *r, const Updates *s, uint64_t number)
{
	for (int i = 0; !(s->same && number) && i < P_COUNT; i++)
		r->sweep.param[i] = (float)s->update[s->same ? 0 : number].param[i];
}

/* One update an epoch, cases in their order. */
static uint64_t run_epochs(Program *p, TinyRun *r, const Updates *s)
{
	uint64_t done = 0;

	r->t.net.threshold = (float)p->bound->scorer.threshold;
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

	r->steps->threshold = (float)p->bound->scorer.threshold;
	while (done < s->count && !*s->stop) {
		uint64_t left = s->examples - place, most = (s->same ? s->count - done : 1) * s->batch,
				 cases = min_u64(left, most);
		TinyOrder order = {
			.example = s->example ? s->example + examples : NULL, .first = place, .cases = cases, .batch = s->batch
		};
		set_update(r, s, done);
		p->kern->tiny_steps(r->steps, &r->sweep, &order, t);
		if (!isfinite(t->error))
			return 0;
		done += ceil_div(cases, s->batch);
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
