/* SPDX-License-Identifier: MIT */
/* Restarts: many seeds of one network at once. In: a program with data bound. Out: the result that a run with each
 * seed would have.
 *
 * Each thread trains 16 seeds, one in each lane. All lanes of a thread go through an epoch together, batch by batch; a
 * lane whose seed is finished takes the next seed before the next epoch. So lanes are at different epochs and, if
 * examples are shuffled, at different cases, but always at the same position of an epoch. Must hold: the results of a
 * lane depend on its seed alone. */
#include <math.h>
#include <string.h>

#include "small_net.h"

enum {
	CHUNK_BYTES = 32768, /* of the activations and errors of a chunk: about an L1 cache */
	MOST_CHUNK = 64,
	LANES_BYTES = 1048576, /* of weights, sums and state of 16 seeds: beyond, one seed at a time is faster */
	SEED_LINKS = 48,       /* fewer than 16 seeds are faster one by one if there are more links for each */
	DATA_BYTES = 1 << 28,  /* of inputs and targets as dense rows */
	POLL_WORK = 2000000    /* connections between two calls of the progress function */
};
#define NO_SEED UINT64_MAX

/* Contiguous weights with one factor on the rate. */
typedef struct UpdateRange {
	uint32_t first, count, kind;
} UpdateRange;

/* Shared by all threads. */
typedef struct Search {
	Program *p;
	Restarts *all;
	SmallNet net;       /* without the arrays of a thread */
	uint32_t *place_of; /* [links] */
	UpdateRange *range;
	uint32_t ranges;
	double *rate; /* [kinds] factors on the rate */
	uint32_t kinds;
	uint8_t *frozen; /* [links] */
	Until until;
	uint64_t examples, batch, longest;
	double batch_work; /* connections in a batch, roughly */
	bool shuffled;
	bool sequences; /* a chunk is one sequence of each lane */
	bool resident;  /* all cases fit in one chunk, the same for all lanes: loaded once */
	bool scheduled; /* parameters change from one update to the next */
	LaneLimits limits;
	struct Worker *worker; /* [workers] one a thread; there may be more threads */
	uint32_t workers;
} Search;

typedef struct SeedLane {
	uint64_t number;        /* of its seed; NO_SEED: idle */
	uint64_t epoch, update; /* in which it began */
	Order *order;
} SeedLane;

/* A thread and its 16 lanes. */
typedef struct Worker {
	Search *search;
	SmallNet s;
	SeedLane lane[LANES];
	uint32_t busy; /* lanes with a seed */
	bool loaded;   /* the resident chunk */
	float *state[MAX_STATE];
	float *sum[MAX_SUMS];
	uint64_t epochs, updates; /* since the start, of all seeds */
	uint64_t end;             /* the next epoch in which a lane reaches the limit of epochs */
	LaneTally leaf[MAX_SUMS];
	LaneTally epoch, last;         /* last: of the previous epoch */
	uint32_t *cases;               /* [chunk][LANES] */
	float *param;                  /* [kinds][P_COUNT][LANES] */
	double *v;                     /* [links] of one lane */
	float *out, *y, *code_scratch; /* [chunk] rows of outputs and targets of one lane, for code words */
	uint8_t *verdict;              /* [chunk] */
	double work;                   /* since the last poll */
	unsigned csr;                  /* MXCSR of the caller */
} Worker;

/* ---- seeds in lanes ---- */

static void spread(float *to, const uint32_t *place_of, const double *v, uint64_t links, uint32_t lane)
{
	for (uint64_t i = 0; i < links; i++)
		to[place_of[i] + lane] = (float)v[i];
}

static void gather(const float *from, const uint32_t *place_of, double *v, uint64_t links, uint32_t lane)
{
	for (uint64_t i = 0; i < links; i++)
		v[i] = from[place_of[i] + lane];
}

static void params_set(Worker *g, uint32_t lane, const Update *u)
{
	for (uint32_t k = 0; k < g->search->kinds; k++) {
		float *to = g->param + (size_t)k * P_COUNT * LANES + lane;
		for (int i = 0; i < P_COUNT; i++)
			to[i * LANES] = (float)u->param[i];
		to[P_RATE * LANES] = (float)(u->param[P_RATE] * g->search->rate[k]);
	}
}

static void lane_begin(Worker *g, uint32_t i, uint64_t number)
{
	const Search *c = g->search;
	const Program *p = c->p;
	const Net *net = p->net;
	uint64_t seed = c->all->first + number;
	SeedLane *l = &g->lane[i];
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

/* Idle lanes take seeds. A lane for which there is none stays idle: its results are ignored. */
static void lanes_fill(Worker *g)
{
	uint64_t limit = (uint64_t)g->search->p->opt->epochs;

	for (uint32_t i = 0; g->busy < LANES && i < LANES; i++) {
		uint64_t number;
		if (g->lane[i].number != NO_SEED || !restarts_take(g->search->all, &number))
			continue;
		lane_begin(g, i, number);
		g->busy++;
	}
	if (g->end > g->epochs && g->end != UINT64_MAX)
		return;
	g->end = UINT64_MAX; /* 0 is no limit: there is no such epoch */
	for (uint32_t i = 0; i < LANES; i++)
		if (g->lane[i].number != NO_SEED && limit && g->lane[i].epoch + limit < g->end)
			g->end = g->lane[i].epoch + limit;
}

static void lane_end(Worker *g, uint32_t i, mp_seed *result)
{
	const Search *c = g->search;

	result->seed = c->all->first + g->lane[i].number;
	gather(g->s.w, c->place_of, g->v, c->p->net->links, i);
	if (!weights_finite(g->v, c->p->net->links))
		*result = (mp_seed){ .seed = result->seed, .failed = 1, .epochs = result->epochs };
	if (!result->failed)
		weights_fingerprint(g->v, c->p->net->links, false, result->fingerprint);
	restarts_end(c->all, g->lane[i].number, result);
	g->lane[i].number = NO_SEED;
	g->busy--;
}

/* Finishes the lane if its seed ends here. t: of its last whole epoch or, before the first ends, of what is done.
 * whole: at the end of an epoch. */
static void lane_check(Worker *g, uint32_t i, const LaneTally *t, bool whole)
{
	const Search *c = g->search;
	const SeedLane *l = &g->lane[i];
	uint64_t epoch = g->epochs - l->epoch, updates = g->updates - l->update;
	Tally own = { t->error[i],           (uint64_t)t->cases[i],  (uint64_t)t->scored[i],
		          (uint64_t)t->right[i], (uint64_t)t->within[i], c->net.weight ? t->weight[i] : (double)t->scored[i] };
	mp_seed result = { 0 };

	if (l->number == NO_SEED)
		return;
	bool ends = seed_ends(c->p->opt, &c->until, &own, epoch, updates, &result);
	if (!isfinite(g->epoch.error[i]))
		result = (mp_seed){ .failed = 1, .epochs = epoch - whole };
	if (ends || result.failed)
		lane_end(g, i, &result);
}

/* After an epoch: finishes the lanes that have met their stop criterion or limit. */
static void lanes_check(Worker *g)
{
	const Search *c = g->search;
	bool all = g->epochs == g->end || c->p->opt->updates;
	uint32_t due = all ? 0xffff : c->p->kern->seeds_due(&g->epoch, &c->limits);

	for (uint32_t i = 0; due >> i; i++)
		if (due >> i & 1)
			lane_check(g, i, &g->epoch, true);
}

/* ---- a leaf ---- */

static void tallies_add(LaneTally *restrict into, const LaneTally *restrict t)
{
	for (int i = 0; i < LANES; i++) {
		into->error[i] += t->error[i];
		into->weight[i] += t->weight[i];
		into->cases[i] += t->cases[i];
		into->scored[i] += t->scored[i];
		into->right[i] += t->right[i];
		into->within[i] += t->within[i];
	}
}

/* With code words: counts the cases whose nearest word is right, lane by lane. */
static void codes_tally(Worker *g, uint32_t cases, uint64_t first, const uint32_t *lane, LaneTally *t)
{
	const Program *p = g->search->p;
	const SmallNet *s = &g->s;
	size_t width = round_up(s->outputs, LANES);

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
		codes_right(p->bound->codes, &(CodesArgs){ .scorer = &p->bound->scorer,
		                                           .kern = p->kern,
		                                           .most = p->layout->largest_output,
		                                           .rows = cases,
		                                           .out = g->out,
		                                           .y = g->y,
		                                           .row = width,
		                                           .scratch = g->code_scratch,
		                                           .verdict = g->verdict });
		for (uint32_t c = 0; c < cases; c++)
			t->right[i] += (g->verdict[c] & VERDICT_RIGHT) != 0;
	}
}

static void run_chunk(Worker *g, uint32_t cases, uint64_t first, const uint32_t *lane, bool fresh, float *sum,
                      LaneTally *t)
{
	const Kern *kern = g->search->p->kern;

	if (!g->loaded)
		kern->small_load(&g->s, cases, first, lane);
	g->loaded = g->search->resident;
	kern->seeds_pass(&g->s, cases, fresh, sum, t);
	if (g->search->p->bound->codes)
		codes_tally(g, cases, first, lane, t);
}

/* The example at a position of the epoch. */
static uint64_t example_at(const Worker *g, uint32_t lane, uint64_t place)
{
	return g->search->shuffled ? order_at(g->lane[lane].order, place) : place;
}

/* The cases of a lane from a position on. An order of a single block is its permutation. */
static void lane_cases(const Worker *g, uint32_t lane, uint64_t at, uint32_t cases)
{
	Order *o = g->lane[lane].order;
	bool single = o->examples <= SHUFFLE_BLOCK;

	for (uint32_t c = 0; c < cases; c++)
		g->cases[c * LANES + lane] = (uint32_t)(single ? o->inside[at + c] : order_at(o, at + c));
}

/* Examples that are cases: chunks of them. */
static void leaf_of_cases(Worker *g, uint64_t at, uint64_t count, float *sum, LaneTally *t)
{
	uint32_t chunk = g->s.chunk;

	for (uint64_t i = 0; i < count; i += chunk) {
		uint32_t cases = (uint32_t)min_u64(count - i, chunk);
		for (uint32_t l = 0; g->search->shuffled && l < LANES; l++)
			lane_cases(g, l, at + i, cases);
		run_chunk(g, cases, at + i, g->search->shuffled ? g->cases : NULL, i == 0, sum, t);
	}
}

/* Examples that are sequences, one at a time in each lane; shorter ones end with cases that have no targets. */
static void leaf_of_sequences(Worker *g, uint64_t at, uint64_t count, float *sum, LaneTally *t)
{
	const Program *p = g->search->p;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t first[LANES], cases[LANES], longest = 0;
		for (uint32_t l = 0; l < LANES; l++) {
			run_example(p->net, p->bound->data, example_at(g, l, at + i), &first[l], &cases[l]);
			longest = max_u64(longest, cases[l]);
			t->cases[l] += (float)cases[l];
		}
		for (uint32_t l = 0; l < LANES; l++)
			for (uint32_t c = 0; c < longest; c++)
				g->cases[c * LANES + l] = (uint32_t)(c < cases[l] ? first[l] + c : p->bound->data->cases);
		run_chunk(g, (uint32_t)longest, first[0], g->search->shuffled ? g->cases : NULL, i == 0, sum, t);
	}
}

static void run_leaf(Worker *g, uint64_t at, uint64_t count, float *sum, LaneTally *t)
{
	*t = (LaneTally){ 0 };
	if (g->search->sequences) {
		leaf_of_sequences(g, at, count, sum, t);
		return;
	}
	leaf_of_cases(g, at, count, sum, t);
	for (int i = 0; i < LANES; i++)
		t->cases[i] = (float)count;
}

/* ---- a batch ---- */

static void batch_learn_seeds(Worker *g, uint64_t at, uint64_t count)
{
	uint32_t leaves = leaf_count(count), depth = 0;

	for (uint32_t leaf = 0; leaf < leaves; leaf++) {
		uint64_t first, n;
		leaf_range(count, leaves, leaf, &first, &n);
		run_leaf(g, at + first, n, g->sum[depth], &g->leaf[depth]);
		depth++;
		for (uint32_t joins = leaf_joins(leaf, leaves); joins; joins--, depth--) {
			g->search->p->kern->add(g->sum[depth - 2], g->sum[depth - 1], (size_t)g->search->p->net->links * LANES);
			tallies_add(&g->leaf[depth - 2], &g->leaf[depth - 1]);
		}
	}
}

static void params_schedule(Worker *g, uint64_t at, uint64_t count)
{
	const Search *c = g->search;
	Update u;

	for (uint32_t i = 0; i < LANES; i++) {
		const SeedLane *l = &g->lane[i];
		if (l->number == NO_SEED)
			continue;
		update_fill(c->p->opt, g->updates - l->update + 1,
		            (double)(g->epochs - l->epoch) + (double)at / (double)c->examples,
		            (double)count / (double)c->examples, &u);
		params_set(g, i, &u);
	}
}

static void params_clip(Worker *g)
{
	const Search *c = g->search;
	const Program *p = c->p;

	for (uint32_t i = 0; i < LANES; i++) {
		gather(g->sum[0], c->place_of, g->v, p->net->links, i);
		float clip = (float)(1 / fmax(1, rule_norm(g->v, c->frozen, p->net->links)));
		for (uint32_t k = 0; k < c->kinds; k++)
			g->param[((size_t)k * P_COUNT + P_CLIP) * LANES + i] = clip;
	}
}

static void batch_update(Worker *g, uint64_t at, uint64_t count)
{
	const Search *c = g->search;
	const Program *p = c->p;
	float *const base[] = { g->sum[0], g->s.w, g->state[0], g->state[1], g->state[2] };

	if (c->scheduled)
		params_schedule(g, at, count);
	if (p->rule->needs_norm)
		params_clip(g);
	for (uint32_t i = 0; i < c->ranges; i++) {
		const UpdateRange *s = &c->range[i];
		Sweep sweep = { .formula = &p->formula,
			            .own = g->param + (size_t)s->kind * P_COUNT * LANES,
			            .n = (size_t)s->count * LANES };
		for (int k = 0; k < 2 + p->rule->states; k++)
			sweep.variable[k] = base[k] + (size_t)s->first * LANES;
		p->kern->update(&sweep);
	}
	g->updates++;
}

/* Finishes seeds that reach the limit of updates inside an epoch: they report the previous one, if there is one. */
static void updates_end(Worker *g)
{
	uint64_t limit = (uint64_t)g->search->p->opt->updates;

	for (uint32_t i = 0; i < LANES; i++)
		if (g->updates - g->lane[i].update == limit)
			lane_check(g, i, g->epochs == g->lane[i].epoch ? &g->epoch : &g->last, false);
}

/* ---- an epoch ---- */

static bool poll(Worker *g)
{
	const Search *c = g->search;

	g->work += c->batch_work;
	if (g->work < POLL_WORK || g != c->worker) /* thread 0 is the caller's */
		return !c->all->run->stop;
	g->work = 0;
	cpu_leave(g->csr); /* the progress function runs with the caller's MXCSR */
	restarts_report(c->all);
	cpu_enter();
	return !c->all->run->stop;
}

/* False: the run was stopped. */
static bool worker_epoch(Worker *g)
{
	const Search *c = g->search;

	for (uint32_t i = 0; c->shuffled && i < LANES; i++) {
		order_epoch(g->lane[i].order, g->epochs - g->lane[i].epoch);
		order_at(g->lane[i].order, 0); /* makes the permutation of the first block */
	}
	for (uint64_t at = 0, count; at < c->examples; at += count) {
		count = min_u64(c->examples - at, c->batch);
		if (!poll(g))
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

static void worker_run(void *arg, uint32_t thread)
{
	Search *c = arg;

	if (thread >= c->workers)
		return;
	Worker *g = &c->worker[thread];
	g->csr = cpu_enter();
	for (lanes_fill(g); g->busy && worker_epoch(g); lanes_fill(g))
		lanes_check(g);
	cpu_leave(g->csr);
}

/* ---- buffers ---- */

/* With a margin for rounding: a lane over the limit is then checked exactly. */
static LaneLimits limits_of(const Until *u, double scored, double weight)
{
	return (LaneLimits){ .right = isnan(u->right) ? INFINITY : (float)(u->right * scored * (1 - 1e-6)),
		                 .within = isnan(u->within) ? INFINITY : (float)(u->within * scored * (1 - 1e-6)),
		                 .error = isnan(u->error) ? -INFINITY
		                          : weight > 0    ? u->error * weight * (1 + 1e-6)
		                                          : INFINITY };
}

static void take_ranges(Ctx *cx, Search *c)
{
	const Net *net = c->p->net;
	uint32_t *kind = NEW(&cx->scratch, net->links, uint32_t); /* by weight; 0: frozen, else 1 + its kind */

	c->rate = NEW(&cx->scratch, net->blocks + 1, double);
	c->range = NEW(&cx->scratch, net->links + 1, UpdateRange);
	c->frozen = NEW(&cx->scratch, net->links, uint8_t);
	for (uint64_t i = 0; i < net->links; i++) {
		const Block *b = net_block(net, net_target(net, i), i);
		uint32_t k = 0;
		c->frozen[i] = b->frozen;
		while (k < c->kinds && c->rate[k] != b->rate)
			k++;
		if (k == c->kinds)
			c->rate[c->kinds++] = b->rate;
		kind[c->place_of[i] / LANES] = b->frozen ? 0 : k + 1;
	}
	for (uint32_t i = 0, n; i < net->links; i += n) {
		for (n = 1; i + n < net->links && kind[i + n] == kind[i]; n++)
			;
		if (kind[i])
			c->range[c->ranges++] = (UpdateRange){ i, n, kind[i] - 1 };
	}
}

static uint32_t sums_needed(uint32_t leaves)
{
	uint32_t sums = 2;

	for (uint32_t n = 1; n < leaves; n *= 2)
		sums++;
	return sums;
}

static void take_worker(Ctx *cx, Search *c, Worker *g)
{
	const Program *p = c->p;
	const Layout *l = p->layout;
	size_t links = p->net->links;

	g->search = c;
	g->s = c->net;
	g->s.w = floats_take(&cx->scratch, links * LANES);
	for (int k = 0; k < p->rule->states; k++)
		g->state[k] = floats_take(&cx->scratch, links * LANES);
	for (uint32_t i = 0; i < sums_needed(leaf_count(c->batch)); i++)
		g->sum[i] = floats_take(&cx->scratch, links * LANES);
	small_arrays(&cx->scratch, &g->s, l);
	g->cases = NEW(&cx->scratch, (size_t)c->net.chunk * LANES, uint32_t);
	g->param = floats_take(&cx->scratch, (size_t)c->kinds * P_COUNT * LANES);
	g->v = NEW(&cx->scratch, links, double);
	if (p->bound->codes) {
		g->out = floats_take(&cx->scratch, c->net.chunk * round_up(p->net->outputs, LANES));
		g->y = floats_take(&cx->scratch, c->net.chunk * round_up(p->net->outputs, LANES) + LANES);
		g->code_scratch = floats_take(&cx->scratch, codes_scratch(p->bound->codes));
		g->verdict = NEW(&cx->scratch, c->net.chunk, uint8_t);
	}
	for (uint32_t i = 0; i < LANES; i++) {
		g->lane[i].number = NO_SEED;
		if (c->shuffled)
			g->lane[i].order = order_new(&cx->scratch, c->examples, 0, true);
	}
}

/* ---- is training in lanes faster? ---- */

static uint64_t case_bytes(const Program *p)
{
	bool nets = p->layout->nets || p->opt->error != ERR_SQUARED;
	uint64_t vectors = (2 + nets + p->layout->own_errors) * (uint64_t)p->net->units + p->net->outputs + 1;

	return vectors * LANES * sizeof(float);
}

static uint32_t chunk_cases(Search *c)
{
	uint64_t bytes = case_bytes(c->p), most = CHUNK_BYTES / bytes / 4 * 4;

	if (c->sequences)
		return (uint32_t)c->longest;
	most = most < 4 ? 4 : most > MOST_CHUNK ? MOST_CHUNK : most;
	c->resident =
		!c->shuffled && c->batch == c->examples && c->examples <= MOST_CHUNK && c->examples * bytes <= 4 * CHUNK_BYTES;
	return (uint32_t)(c->resident || most > c->batch ? c->batch : most);
}

/* Sparse inputs: a single run multiplies the nonzero ones only, lanes multiply all. */
static bool is_sparse(const Data *d)
{
	return d->x_indptr && d->x_indptr[d->cases] * 16 < d->cases * (uint64_t)d->inputs;
}

bool lanes_suit(const Net *net, const Options *o, const Data *d, uint64_t seeds)
{
	uint64_t weights = (2 + (uint64_t)rules[o->rule].states) * net->links, vector = LANES * sizeof(float);

	if (net->settles || net->shaped || (net->copies && o->bptt > BPTT_COPY))
		return false;
	if (seeds < LANES && seeds * SEED_LINKS < net->links)
		return false;
	return cpu_own(o)->precision == PRECISION_FP32 && d->targets && weights <= LANES_BYTES / vector && !is_sparse(d) &&
	       (d->cases + 1) <= DATA_BYTES / sizeof(float) / (round_up(d->inputs, LANES) + round_up(d->targets, LANES));
}

static bool fits(const Search *c)
{
	const Program *p = c->p;

	return lanes_suit(p->net, p->opt, p->bound->data, c->all->count) && c->examples &&
	       case_bytes(p) * (c->sequences ? c->longest : 1) <= 8 * LANES_BYTES;
}

static bool is_scheduled(const Program *p)
{
	return p->rule->needs_count || p->opt->schedule != SCHEDULE_CONSTANT || p->opt->warmup > 0;
}

bool cpu_restarts(Ctx *cx, Program *p, Restarts *all)
{
	Search c = { .p = p,
		         .all = all,
		         .examples = run_examples(p->net, p->bound->data),
		         .longest = p->bound->longest,
		         .scheduled = is_scheduled(p) };
	uint64_t batch = (uint64_t)p->opt->batch;

	c.batch = p->opt->batch == BATCH_ALL || batch > c.examples ? c.examples : batch;
	c.shuffled = p->opt->shuffle < 0 ? c.batch < c.examples : p->opt->shuffle != 0;
	c.sequences = p->net->copies || p->bound->data->seq;
	if (!fits(&c))
		return false;
	all->parallel = LANES;
	c.place_of = NEW(&cx->scratch, p->net->links, uint32_t);
	c.net = small_make(&cx->scratch, p->layout, p->opt, &(SmallShape){ LANE_SEED, chunk_cases(&c), NULL }, c.place_of);
	until_parse(p->opt->until, &c.until);
	Tally counted = small_data(&cx->scratch, &c.net, p, c.sequences);
	c.limits = limits_of(&c.until, (double)counted.scored, counted.weight);
	c.batch_work = (double)c.batch * (double)c.longest * (double)p->net->links;
	take_ranges(cx, &c);
	c.workers = (uint32_t)min_u64(ceil_div(all->own, LANES), p->threads);
	c.worker = NEW(&cx->scratch, c.workers, Worker);
	for (uint32_t i = 0; i < c.workers; i++)
		take_worker(cx, &c, &c.worker[i]);
	if (c.workers > 1)
		pool_run(p->pool, worker_run, &c);
	else
		worker_run(&c, 0);
	return true;
}
