/* SPDX-License-Identifier: MIT */
/* Many seeds of one network at once. In: a program with data bound. Out: a result for each seed, as its run would
 * end.
 *
 * Each thread has sixteen lanes. All lanes of a thread go through an epoch together, batch by batch; a lane whose
 * seed has come to its end takes the next seed before the next epoch. So lanes are at different epochs and, where
 * examples are shuffled, at different cases, but always at the same place of an epoch. Must hold: what a lane
 * computes depends on its seed alone. */
#include <math.h>
#include <string.h>

#include "restarts.h"

enum {
	CHUNK_BYTES = 32768, /* of what the cases in hand take: little more than the nearest cache */
	CHUNK_MOST = 64,
	LANES_BYTES = 1048576, /* of weights, sums and state of sixteen seeds: beyond, one seed at a time is faster */
	SEED_LINKS = 48,       /* a seed for so many links at least, or sixteen: fewer are faster one by one */
	DATA_BYTES = 1 << 28,  /* of inputs and targets as dense rows */
	LOOK_WORK = 2000000    /* connections between two looks at the clock */
};
#define NOBODY UINT64_MAX

/* Links that stand side by side and are updated alike. */
typedef struct Stretch {
	uint32_t first, count, kind;
} Stretch;

/* What all threads share. */
typedef struct Common {
	Program *p;
	Restarts *all;
	Seeds *seeds;
	uint32_t *place_of; /* [links] */
	Stretch *stretch;
	uint32_t stretches;
	double *rate;
	uint32_t kinds;  /* [kinds] factors on the rate */
	uint8_t *frozen; /* [links] */
	Until until;
	uint64_t examples, batch, longest;
	double batch_work; /* connections in a batch, about */
	bool shuffled;
	bool by_example; /* a chunk is one example of each lane: sequences */
	bool resident;   /* all cases stand in one chunk, the same for all lanes, and stay there */
	bool moving;     /* numbers of an update change from one to the next */
	SeedEnds ends;
	struct Sixteen *sixteen; /* [sixteens] a thread's each; there may be more threads */
	uint32_t sixteens;
} Common;

typedef struct Lane {
	uint64_t number;        /* of its seed; NOBODY: it has none */
	uint64_t epoch, update; /* in which it began */
	Order *order;
} Lane;

/* A thread's sixteen. */
typedef struct Sixteen {
	Common *common;
	Seeds s;
	Lane lane[LANES];
	uint32_t busy; /* lanes with a seed */
	bool loaded;   /* the resident chunk */
	float *state[MAX_STATE];
	float *sum[MAX_SUMS];
	uint64_t epochs, updates; /* so far, whosever */
	uint64_t end;             /* the epoch in which the next lane comes to the limit of epochs */
	SeedTally leaf[MAX_SUMS];
	SeedTally epoch, last; /* last: of the epoch before */
	uint32_t *cases;       /* [chunk][LANES] */
	float *param;          /* [kinds][P_COUNT][LANES] */
	double *v;             /* [links] of one lane */
	float *out, *y, *room; /* [chunk] rows of outputs and targets of one lane, for code words */
	uint8_t *verdict;      /* [chunk] */
	double work;           /* since the last look at the clock */
	unsigned csr;          /* what cpu_leave wants */
} Sixteen;

/* ---- lanes take seeds ---- */

static void spread(float *to, const uint32_t *place_of, const double *v, uint64_t links, uint32_t lane)
{
	for (uint64_t i = 0; i < links; i++)
		to[(size_t)place_of[i] * LANES + lane] = (float)v[i];
}

static void gather(const float *from, const uint32_t *place_of, double *v, uint64_t links, uint32_t lane)
{
	for (uint64_t i = 0; i < links; i++)
		v[i] = from[(size_t)place_of[i] * LANES + lane];
}

static void params_set(Sixteen *g, uint32_t lane, const Update *u)
{
	for (uint32_t k = 0; k < g->common->kinds; k++) {
		float *to = g->param + (size_t)k * P_COUNT * LANES + lane;
		for (int i = 0; i < P_COUNT; i++)
			to[i * LANES] = (float)u->param[i];
		to[P_RATE * LANES] = (float)(u->param[P_RATE] * g->common->rate[k]);
	}
}

static void lane_begin(Sixteen *g, uint32_t i, uint64_t number)
{
	const Common *c = g->common;
	const Program *p = c->p;
	const Net *net = p->net;
	uint64_t seed = c->all->first + number;
	Lane *l = &g->lane[i];
	Update u;

	l->number = number;
	l->epoch = g->epochs;
	l->update = g->updates;
	net_weights(net, seed, 0, ALL_LINKS, g->v);
	spread(g->s.w, c->place_of, g->v, net->links, i);
	for (int k = 0; k < p->rule->states; k++) {
		for (Unit unit = 0; unit < net->units; unit++)
			for (uint64_t link = net->row[unit]; link < net->row[unit + 1]; link++)
				g->v[link] = rule_start(p->rule, k, p->opt, net_block(net, unit, link)->rate);
		spread(g->state[k], c->place_of, g->v, net->links, i);
	}
	if (l->order) {
		l->order->seed = seed;
		l->order->epoch = l->order->block = UINT64_MAX;
	}
	update_fill(p->opt, 1, 0, (double)c->batch / (double)c->examples, &u);
	params_set(g, i, &u);
}

/* Idle lanes take seeds.  Lanes that find none stay idle: they compute, and nobody looks. */
static void lanes_fill(Sixteen *g)
{
	uint64_t limit = (uint64_t)g->common->p->opt->epochs;

	for (uint32_t i = 0; g->busy < LANES && i < LANES; i++) {
		uint64_t number;
		if (g->lane[i].number != NOBODY || !restarts_take(g->common->all, &number))
			continue;
		lane_begin(g, i, number);
		g->busy++;
	}
	if (g->end > g->epochs && g->end != UINT64_MAX)
		return;
	g->end = UINT64_MAX; /* 0 is no limit: there is no such epoch */
	for (uint32_t i = 0; i < LANES; i++)
		if (g->lane[i].number != NOBODY && limit && g->lane[i].epoch + limit < g->end)
			g->end = g->lane[i].epoch + limit;
}

static void lane_end(Sixteen *g, uint32_t i, mp_seed *result)
{
	const Common *c = g->common;

	result->seed = c->all->first + g->lane[i].number;
	gather(g->s.w, c->place_of, g->v, c->p->net->links, i);
	if (!weights_finite(g->v, c->p->net->links))
		*result = (mp_seed){ .seed = result->seed, .failed = 1, .epochs = result->epochs };
	if (!result->failed)
		weights_fingerprint(g->v, c->p->net->links, false, result->fingerprint);
	restarts_end(c->all, g->lane[i].number, result);
	g->lane[i].number = NOBODY;
	g->busy--;
}

/* Does the lane end here, in the middle of an epoch or behind it?  t: of its last whole epoch, or of what there is. */
static void lane_look(Sixteen *g, uint32_t i, const SeedTally *t, bool whole)
{
	const Common *c = g->common;
	const Lane *l = &g->lane[i];
	uint64_t epoch = g->epochs - l->epoch, updates = g->updates - l->update;
	Tally own = { t->error[i], (uint64_t)t->cases[i], (uint64_t)t->scored[i], (uint64_t)t->right[i],
		          (uint64_t)t->within[i] };
	mp_seed result = { 0 };

	if (l->number == NOBODY)
		return;
	bool ends = seed_ends(c->p->opt, &c->until, &own, epoch, updates, &result);
	if (!isfinite(g->epoch.error[i]))
		result = (mp_seed){ .failed = 1, .epochs = epoch - whole };
	if (ends || result.failed)
		lane_end(g, i, &result);
}

/* After an epoch: whom may it have ended? */
static void lanes_look(Sixteen *g)
{
	const Common *c = g->common;
	bool all = g->epochs == g->end || c->p->opt->updates;
	uint32_t due = all ? 0xffff : c->p->kern->seeds_due(&g->epoch, &c->ends);

	for (uint32_t i = 0; due >> i; i++)
		if (due >> i & 1)
			lane_look(g, i, &g->epoch, true);
}

/* ---- a leaf ---- */

static void tallies_add(SeedTally *restrict into, const SeedTally *restrict t)
{
	for (int i = 0; i < LANES; i++) {
		into->error[i] += t->error[i];
		into->cases[i] += t->cases[i];
		into->scored[i] += t->scored[i];
		into->right[i] += t->right[i];
		into->within[i] += t->within[i];
	}
}

/* With code words: is the nearest one the right one?  Lane by lane, in rows. */
static void codes_tally(Sixteen *g, uint32_t cases, uint64_t first, const uint32_t *lane, SeedTally *t)
{
	const Program *p = g->common->p;
	const Seeds *s = &g->s;
	size_t width = padded(s->outputs);

	for (uint32_t i = 0; i < LANES; i++) {
		for (uint32_t c = 0; c < cases; c++) {
			const float *y = s->y + (lane ? lane[c * LANES + i] : first + c) * s->y_row;
			g->verdict[c] = 0;
			for (uint32_t n = 0; n < s->outputs; n++) {
				g->out[c * width + n] = s->act[((size_t)s->output[n] * s->chunk + c) * LANES + i];
				g->y[c * s->outputs + n] = y[n];
				g->verdict[c] |= isnan(y[n]) ? 0 : VERDICT_SCORED;
			}
		}
		codes_right(p->codes, &(CodesArgs){ .scorer = &p->scorer,
		                                    .kern = p->kern,
		                                    .most = p->layout->largest_output,
		                                    .rows = cases,
		                                    .out = g->out,
		                                    .y = g->y,
		                                    .row = width,
		                                    .room = g->room,
		                                    .verdict = g->verdict });
		for (uint32_t c = 0; c < cases; c++)
			t->right[i] += (g->verdict[c] & VERDICT_RIGHT) != 0;
	}
}

static void run_chunk(Sixteen *g, uint32_t cases, uint64_t first, const uint32_t *lane, bool fresh, float *sum,
                      SeedTally *t)
{
	const Kern *kern = g->common->p->kern;

	if (!g->loaded)
		kern->seeds_load(&g->s, cases, first, lane);
	g->loaded = g->common->resident;
	kern->seeds_pass(&g->s, cases, fresh, sum, t);
	if (g->common->p->codes)
		codes_tally(g, cases, first, lane, t);
}

/* Which examples stand at a place of the epoch: the same in all lanes, or in each its own. */
static uint64_t example_at(const Sixteen *g, uint32_t lane, uint64_t place)
{
	return g->common->shuffled ? order_at(g->lane[lane].order, place) : place;
}

/* Which cases stand in a lane's places of the epoch. Of a single block of the order the inside is all there is to
 * it. */
static void lane_cases(const Sixteen *g, uint32_t lane, uint64_t at, uint32_t cases)
{
	Order *o = g->lane[lane].order;
	bool single = o->examples <= SHUFFLE_BLOCK;

	for (uint32_t c = 0; c < cases; c++)
		g->cases[c * LANES + lane] = (uint32_t)(single ? o->inside[at + c] : order_at(o, at + c));
}

/* Examples that are cases: chunks of them. */
static void leaf_of_cases(Sixteen *g, uint64_t at, uint64_t count, float *sum, SeedTally *t)
{
	uint32_t chunk = g->s.chunk;

	for (uint64_t i = 0; i < count; i += chunk) {
		uint32_t cases = count - i < chunk ? (uint32_t)(count - i) : chunk;
		for (uint32_t l = 0; g->common->shuffled && l < LANES; l++)
			lane_cases(g, l, at + i, cases);
		run_chunk(g, cases, at + i, g->common->shuffled ? g->cases : NULL, i == 0, sum, t);
	}
}

/* Examples that are sequences, one at a time in each lane; shorter ones end with cases that have no targets. */
static void leaf_of_sequences(Sixteen *g, uint64_t at, uint64_t count, float *sum, SeedTally *t)
{
	const Program *p = g->common->p;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t first[LANES], cases[LANES], longest = 0;
		for (uint32_t l = 0; l < LANES; l++) {
			run_example(p->net, p->data, example_at(g, l, at + i), &first[l], &cases[l]);
			longest = cases[l] > longest ? cases[l] : longest;
			t->cases[l] += (float)cases[l];
		}
		for (uint32_t l = 0; l < LANES; l++)
			for (uint32_t c = 0; c < longest; c++)
				g->cases[c * LANES + l] = (uint32_t)(c < cases[l] ? first[l] + c : p->data->cases);
		run_chunk(g, (uint32_t)longest, first[0], g->common->shuffled ? g->cases : NULL, i == 0, sum, t);
	}
}

static void run_leaf(Sixteen *g, uint64_t at, uint64_t count, float *sum, SeedTally *t)
{
	*t = (SeedTally){ 0 };
	if (g->common->by_example) {
		leaf_of_sequences(g, at, count, sum, t);
		return;
	}
	leaf_of_cases(g, at, count, sum, t);
	for (int i = 0; i < LANES; i++)
		t->cases[i] = (float)count;
}

/* ---- a batch ---- */

static void batch_learn_seeds(Sixteen *g, uint64_t at, uint64_t count)
{
	uint32_t leaves = leaf_count(count), depth = 0;

	for (uint32_t leaf = 0; leaf < leaves; leaf++) {
		uint64_t first, n;
		leaf_range(count, leaves, leaf, &first, &n);
		run_leaf(g, at + first, n, g->sum[depth], &g->leaf[depth]);
		depth++;
		for (uint32_t joins = leaf_joins(leaf, leaves); joins; joins--, depth--) {
			g->common->p->kern->add(g->sum[depth - 2], g->sum[depth - 1], (size_t)g->common->p->net->links * LANES);
			tallies_add(&g->leaf[depth - 2], &g->leaf[depth - 1]);
		}
	}
}

static void params_move(Sixteen *g, uint64_t at, uint64_t count)
{
	const Common *c = g->common;
	Update u;

	for (uint32_t i = 0; i < LANES; i++) {
		const Lane *l = &g->lane[i];
		if (l->number == NOBODY)
			continue;
		update_fill(c->p->opt, g->updates - l->update + 1,
		            (double)(g->epochs - l->epoch) + (double)at / (double)c->examples,
		            (double)count / (double)c->examples, &u);
		params_set(g, i, &u);
	}
}

static void params_clip(Sixteen *g)
{
	const Common *c = g->common;
	const Program *p = c->p;

	for (uint32_t i = 0; i < LANES; i++) {
		gather(g->sum[0], c->place_of, g->v, p->net->links, i);
		float clip = (float)(1 / fmax(1, rule_norm(g->v, c->frozen, p->net->links)));
		for (uint32_t k = 0; k < c->kinds; k++)
			g->param[((size_t)k * P_COUNT + P_CLIP) * LANES + i] = clip;
	}
}

static void batch_update(Sixteen *g, uint64_t at, uint64_t count)
{
	const Common *c = g->common;
	const Program *p = c->p;
	float *const base[] = { g->sum[0], g->s.w, g->state[0], g->state[1], g->state[2] };

	if (c->moving)
		params_move(g, at, count);
	if (p->rule->needs_norm)
		params_clip(g);
	for (uint32_t i = 0; i < c->stretches; i++) {
		const Stretch *s = &c->stretch[i];
		Sweep sweep = { .formula = &p->formula,
			            .own = g->param + (size_t)s->kind * P_COUNT * LANES,
			            .n = (size_t)s->count * LANES };
		for (int k = 0; k < 2 + p->rule->states; k++)
			sweep.variable[k] = base[k] + (size_t)s->first * LANES;
		p->kern->update(&sweep);
	}
	g->updates++;
}

/* Seeds whose last update this was, in the middle of an epoch: they are told as of the epoch before, if there was
 * one. */
static void updates_end(Sixteen *g)
{
	uint64_t limit = (uint64_t)g->common->p->opt->updates;

	for (uint32_t i = 0; i < LANES; i++)
		if (g->updates - g->lane[i].update == limit)
			lane_look(g, i, g->epochs == g->lane[i].epoch ? &g->epoch : &g->last, false);
}

/* ---- an epoch ---- */

static bool look(Sixteen *g)
{
	const Common *c = g->common;

	g->work += c->batch_work;
	if (g->work < LOOK_WORK || g != c->sixteen) /* thread 0 is the caller's */
		return !c->all->run->stop;
	g->work = 0;
	cpu_leave(g->csr); /* whoever is told has the CPU as it was */
	restarts_look(c->all);
	cpu_enter();
	return !c->all->run->stop;
}

/* False: it is to stop. */
static bool sixteen_epoch(Sixteen *g)
{
	const Common *c = g->common;

	for (uint32_t i = 0; c->shuffled && i < LANES; i++) {
		order_epoch(g->lane[i].order, g->epochs - g->lane[i].epoch);
		order_at(g->lane[i].order, 0); /* makes the inside of the first block */
	}
	for (uint64_t at = 0, count; at < c->examples; at += count) {
		count = c->examples - at < c->batch ? c->examples - at : c->batch;
		if (!look(g))
			return false;
		batch_learn_seeds(g, at, count);
		if (at)
			tallies_add(&g->epoch, &g->leaf[0]);
		else
			g->epoch = g->leaf[0];
		batch_update(g, at, count);
		if (c->p->opt->updates && at + count < c->examples)
			updates_end(g);
	}
	if (c->p->opt->updates)
		g->last = g->epoch;
	g->epochs++;
	return true;
}

static void sixteen_work(void *arg, uint32_t thread)
{
	Common *c = arg;

	if (thread >= c->sixteens)
		return;
	Sixteen *g = &c->sixteen[thread];
	g->csr = cpu_enter();
	for (lanes_fill(g); g->busy && sixteen_epoch(g); lanes_fill(g))
		lanes_look(g);
	cpu_leave(g->csr);
}

/* ---- buffers ---- */

/* Counts are a little too low and the error a little too high, so that who may have ended is looked at. */
static SeedEnds ends_of(const Until *u, uint64_t cases, uint64_t scored)
{
	return (SeedEnds){ .right = isnan(u->right) ? INFINITY : (float)(u->right * (double)scored * (1 - 1e-6)),
		               .within = isnan(u->within) ? INFINITY : (float)(u->within * (double)scored * (1 - 1e-6)),
		               .error = isnan(u->error) ? -INFINITY : u->error * (double)cases * (1 + 1e-6) };
}

static void take_stretches(Ctx *cx, Common *c)
{
	const Net *net = c->p->net;
	uint32_t *kind = NEW(&cx->scratch, net->links, uint32_t); /* by place; 0: frozen, else one more than its number */

	c->rate = NEW(&cx->scratch, net->blocks + 1, double);
	c->stretch = NEW(&cx->scratch, net->links + 1, Stretch);
	c->frozen = NEW(&cx->scratch, net->links, uint8_t);
	for (uint64_t i = 0; i < net->links; i++) {
		const Block *b = net_block(net, net_target(net, i), i);
		uint32_t k = 0;
		c->frozen[i] = b->frozen;
		while (k < c->kinds && c->rate[k] != b->rate)
			k++;
		if (k == c->kinds)
			c->rate[c->kinds++] = b->rate;
		kind[c->place_of[i]] = b->frozen ? 0 : k + 1;
	}
	for (uint32_t i = 0, n; i < net->links; i += n) {
		for (n = 1; i + n < net->links && kind[i + n] == kind[i]; n++)
			;
		if (kind[i])
			c->stretch[c->stretches++] = (Stretch){ i, n, kind[i] - 1 };
	}
}

static uint32_t sums_needed(uint32_t leaves)
{
	uint32_t sums = 2;

	for (uint32_t n = 1; n < leaves; n *= 2)
		sums++;
	return sums;
}

static void take_sixteen(Ctx *cx, Common *c, Sixteen *g)
{
	const Program *p = c->p;
	const Layout *l = p->layout;
	size_t links = p->net->links, rows = (size_t)p->net->units * c->seeds->chunk;

	g->common = c;
	g->s = *c->seeds;
	g->s.w = lanes_take(&cx->scratch, links);
	for (int k = 0; k < p->rule->states; k++)
		g->state[k] = lanes_take(&cx->scratch, links);
	for (uint32_t i = 0; i < sums_needed(leaf_count(c->batch)); i++)
		g->sum[i] = lanes_take(&cx->scratch, links);
	g->s.act = lanes_take(&cx->scratch, rows);
	g->s.err = lanes_take(&cx->scratch, rows);
	g->s.net = l->nets ? lanes_take(&cx->scratch, rows) : NULL;
	g->s.own = l->owns ? lanes_take(&cx->scratch, rows) : NULL;
	g->s.target = lanes_take(&cx->scratch, (size_t)p->net->outputs * c->seeds->chunk);
	g->s.aim = lanes_take(&cx->scratch, (size_t)p->net->outputs * c->seeds->chunk);
	g->s.importance = lanes_take(&cx->scratch, c->seeds->chunk);
	for (uint32_t i = 0; i < c->seeds->chunk * LANES; i++)
		g->s.act[i] = 1; /* the true unit */
	g->cases = NEW(&cx->scratch, (size_t)c->seeds->chunk * LANES, uint32_t);
	g->param = lanes_take(&cx->scratch, (size_t)c->kinds * P_COUNT);
	g->v = NEW(&cx->scratch, links, double);
	if (p->codes) {
		g->out = lanes_take(&cx->scratch, (size_t)c->seeds->chunk * padded(p->net->outputs) / LANES);
		g->y = lanes_take(&cx->scratch, (size_t)c->seeds->chunk * padded(p->net->outputs) / LANES + 1);
		g->room = lanes_take(&cx->scratch, codes_room(p->codes) / LANES + 1);
		g->verdict = NEW(&cx->scratch, c->seeds->chunk, uint8_t);
	}
	for (uint32_t i = 0; i < LANES; i++) {
		g->lane[i].number = NOBODY;
		if (c->shuffled)
			g->lane[i].order = order_new(&cx->scratch, c->examples, 0, true);
	}
}

/* ---- is it for lanes? ---- */

static uint64_t case_bytes(const Program *p)
{
	uint64_t vectors = (2 + p->layout->nets + p->layout->owns) * (uint64_t)p->net->units + p->net->outputs + 1;

	return vectors * LANES * sizeof(float);
}

static uint32_t chunk_cases(Common *c)
{
	uint64_t bytes = case_bytes(c->p), most = CHUNK_BYTES / bytes / 4 * 4;

	if (c->by_example)
		return (uint32_t)c->longest;
	most = most < 4 ? 4 : most > CHUNK_MOST ? CHUNK_MOST : most;
	c->resident =
		!c->shuffled && c->batch == c->examples && c->examples <= CHUNK_MOST && c->examples * bytes <= 4 * CHUNK_BYTES;
	return (uint32_t)(c->resident || most > c->batch ? c->batch : most);
}

/* Few ones in many inputs: alone, a seed goes through the ones, in a lane through all inputs. */
static bool is_sparse(const Data *d)
{
	return d->x_indptr && d->x_indptr[d->cases] * 16 < d->cases * (uint64_t)d->inputs;
}

static bool fits(const Common *c)
{
	const Program *p = c->p;
	const Data *d = p->data;
	uint64_t weights = (2 + (uint64_t)p->rule->states) * p->net->links, vector = LANES * sizeof(float);

	if (c->all->count < LANES && c->all->count * SEED_LINKS < p->net->links)
		return false;
	return cpu_own(p->opt)->precision == PRECISION_FP32 && c->examples && d->targets &&
	       weights <= LANES_BYTES / vector && case_bytes(p) * (c->by_example ? c->longest : 1) <= 8 * LANES_BYTES &&
	       !is_sparse(d) && (d->cases + 1) <= DATA_BYTES / sizeof(float) / (padded(d->inputs) + padded(d->targets));
}

static bool is_moving(const Program *p)
{
	return p->rule->needs_count || p->opt->schedule != SCHEDULE_CONSTANT || p->opt->warmup > 0;
}

bool cpu_restarts(Ctx *cx, Program *p, Restarts *all)
{
	Common c = {
		.p = p, .all = all, .examples = run_examples(p->net, p->data), .longest = p->longest, .moving = is_moving(p)
	};
	uint64_t batch = (uint64_t)p->opt->batch;

	c.batch = p->opt->batch == BATCH_ALL || batch > c.examples ? c.examples : batch;
	c.shuffled = p->opt->shuffle < 0 ? c.batch < c.examples : p->opt->shuffle != 0;
	c.by_example = p->net->copies || p->data->seq;
	if (!fits(&c))
		return false;
	c.place_of = NEW(&cx->scratch, p->net->links, uint32_t);
	c.seeds = seeds_make(&cx->scratch, p->layout, p->opt, chunk_cases(&c), c.place_of);
	until_parse(p->opt->until, &c.until);
	uint64_t scored = seeds_data(&cx->scratch, c.seeds, p, c.by_example);
	c.ends = ends_of(&c.until, p->data->cases, scored);
	c.batch_work = (double)c.batch * (double)c.longest * (double)p->net->links;
	take_stretches(cx, &c);
	uint64_t most = (all->count + LANES - 1) / LANES;
	c.sixteens = most < p->threads ? (uint32_t)most : p->threads;
	c.sixteen = NEW(&cx->scratch, c.sixteens, Sixteen);
	for (uint32_t i = 0; i < c.sixteens; i++)
		take_sixteen(cx, &c, &c.sixteen[i]);
	if (c.sixteens > 1)
		pool_run(p->pool, sixteen_work, &c);
	else
		sixteen_work(&c, 0);
	return true;
}
