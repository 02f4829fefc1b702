/* SPDX-License-Identifier: MIT */
/* Restarts of networks that fit into a multiprocessor: each block trains one of its own. In: a program with data bound,
 * seeds. Out: the result that a run with each seed would have.
 *
 * A job trains all networks for some epochs; one whose seed has ended gets the next seed before the next job. The
 * kernel is that of a team of one block, with weights of its own (EmitSource.solo). */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "cuda.h"
#include "emit.h"
#include "pass.h"

extern const Target target_cpu;

enum {
	LEAST_NETWORKS = 8,
	SOLO_UPDATES = 4096,
	ORDERED_EPOCHS = 8
}; /* ORDERED_EPOCHS: of a job, where networks have orders of their own */
#define NO_SEED UINT64_MAX

typedef struct SoloSlot {
	uint64_t number; /* of its seed; NO_SEED: idle */
	uint64_t epoch;  /* finished */
	Order *order;
} SoloSlot;

typedef struct SoloRun {
	Cuda *c;
	Restarts *all;
	Solo s;
	SoloSlot *slot;
	Until until;
	Update update;
	uint64_t examples, batch, each; /* each: updates of an epoch */
	uint64_t epochs;                /* of the job at hand */
	uint32_t busy;
	bool shuffled, *idle;
	bool scheduled; /* numbers change from one update to the next */
	double *param;  /* [networks][updates][P_COUNT] of a job, then */
	uint32_t *cases;
	double *v; /* [links] */
} SoloRun;

/* ---- which networks ---- */

static bool solo_fits(SoloRun *r)
{
	const Cuda *c = r->c;
	const Options *o = c->opt;
	const Data *d = c->now->of;

	r->examples = run_examples(c->net, d);
	r->batch = o->batch == BATCH_ALL ? r->examples : min_u64((uint64_t)o->batch, r->examples);
	r->shuffled = o->shuffle < 0 ? r->batch < r->examples : o->shuffle != 0;
	if (c->now->streamed || c->net->timed || c->net->noisy || d->seq || !d->targets || !r->batch ||
	    leaf_count(r->batch) > 1 || c->now->longest > 1)
		return false;
	r->each = ceil_div(r->examples, r->batch);
	r->scheduled = c->rule->needs_count || o->schedule != SCHEDULE_CONSTANT || o->warmup > 0;
	if (c->rule->needs_norm || c->net->tie)
		return false;
	return (uint64_t)o->updates % r->each == 0 && (r->all->own >= LEAST_NETWORKS || !c->gpu->driver);
}

/* ---- seeds ---- */

static float *weights_of(const SoloRun *r, uint32_t i) { return r->s.w + i * solo_floats(&r->c->job); }

static void slot_begin(SoloRun *r, uint32_t i, uint64_t number)
{
	Cuda *c = r->c;
	uint64_t seed = r->all->first + number;
	float *state[MAX_STATE] = { NULL };

	r->slot[i].number = number;
	r->slot[i].epoch = 0;
	if (r->slot[i].order) {
		r->slot[i].order->seed = seed;
		order_forget(r->slot[i].order);
	}
	net_weights(c->net, seed, 0, ALL_LINKS, r->v);
	target_cpu.set(c->cpu, 0, 0, ALL_LINKS, r->v);
	for (int k = 0; k < c->rule->states; k++) {
		for (Unit u = 0; u < c->net->units; u++)
			for (uint64_t l = c->net->row[u]; l < c->net->row[u + 1]; l++)
				r->v[l] = rule_start(c->rule, k, c->opt, (double)net_block(c->net, u, l)->rate);
		target_cpu.set(c->cpu, k + 1, 0, ALL_LINKS, r->v);
		state[k] = r->s.state[k] + i * solo_floats(&c->job);
	}
	weights_put(c, weights_of(r, i), r->s.copies + i * solo_copies(c->copy_floats),
	            c->half ? r->s.half + i * solo_floats(&c->job) : NULL, state);
	arena_free(&c->temp);
	r->idle[i] = false;
	r->busy++;
}

static void slots_fill(SoloRun *r)
{
	for (uint32_t i = 0; i < r->s.networks; i++) {
		uint64_t number;
		if (r->slot[i].number == NO_SEED && restarts_take(r->all, &number))
			slot_begin(r, i, number);
	}
}

static void slot_end(SoloRun *r, uint32_t i, mp_seed *result)
{
	Cuda *c = r->c;

	result->seed = r->all->first + r->slot[i].number;
	if (!result->failed) {
		gpu_download(c->gpu, c->cpu->w, weights_of(r, i), c->floats * sizeof(float));
		target_cpu.get(c->cpu, 0, 0, ALL_LINKS, r->v);
		if (weights_finite(r->v, c->net->links))
			weights_fingerprint(r->v, c->net->links, false, result->fingerprint);
		else
			*result = (mp_seed){ .seed = result->seed, .failed = 1, .epochs = result->epochs };
	}
	restarts_end(r->all, r->slot[i].number, result);
	r->slot[i].number = NO_SEED;
	r->idle[i] = true;
	r->busy--;
}

/* After a job: ends the seed if it ends here. */
static void slot_check(SoloRun *r, uint32_t i)
{
	const JobResult *from = &r->s.result[i];
	const Tally *tally = r->s.tally + i * SOLO_EPOCHS, *last = from->epoch ? &tally[from->epoch - 1] : NULL;
	SoloSlot *s = &r->slot[i];
	mp_seed result = { 0 };

	assert(r->s.tally);
	s->epoch += from->epoch;
	if (last && !isfinite(last->error))
		result = (mp_seed){ .failed = 1, .epochs = s->epoch - 1 };
	else if (from->stop && from->epoch < SOLO_EPOCHS && !isfinite(tally[from->epoch].error))
		result = (mp_seed){ .failed = 1, .epochs = s->epoch };
	if (result.failed || seed_ends(r->c->opt, &r->until, last, s->epoch, s->epoch * r->each, &result))
		slot_end(r, i, &result);
}

/* ---- jobs ---- */

/* Examples of the next epochs, in the order of each network. */
static void orders_make(void *arg, uint32_t thread)
{
	SoloRun *r = arg;
	uint32_t threads = r->c->cpu->pool ? pool_threads(r->c->cpu->pool) : 1;

	for (uint32_t i = thread; i < r->s.networks; i += threads) {
		uint32_t *to = r->cases + i * r->epochs * r->examples;
		SoloSlot *s = &r->slot[i];
		for (uint64_t e = 0; s->number != NO_SEED && e < r->epochs; e++) {
			order_epoch(s->order, s->epoch + e);
			for (uint64_t k = 0; k < r->examples; k++)
				*to++ = (uint32_t)order_at(s->order, k);
		}
	}
}

/* As many epochs as every seed needs at least. */
static uint64_t job_epochs(const SoloRun *r)
{
	const Options *o = r->c->opt;
	uint64_t epochs = r->shuffled || r->scheduled ? ORDERED_EPOCHS : SOLO_EPOCHS, most = (uint64_t)o->epochs;
	double each = (double)r->examples * (double)r->c->net->links;

	epochs = min_u64(epochs, max_u64(1, min_u64((uint64_t)(JOB_WORK / each), SOLO_UPDATES / r->each)));

	if (o->updates && (!most || (uint64_t)o->updates / r->each < most))
		most = (uint64_t)o->updates / r->each;
	for (uint32_t i = 0; most && i < r->s.networks; i++)
		if (r->slot[i].number != NO_SEED)
			epochs = min_u64(epochs, most - r->slot[i].epoch);
	return epochs;
}

/* Numbers of the updates of the next epochs, for each network. */
static void params_make(SoloRun *r)
{
	const Options *o = r->c->opt;
	uint64_t count = r->epochs * r->each;
	Update u;

	for (uint32_t i = 0; i < r->s.networks; i++)
		for (uint64_t k = 0; k < count && r->slot[i].number != NO_SEED; k++) {
			uint64_t epoch = r->slot[i].epoch + k / r->each, done = k % r->each * r->batch;
			uint64_t n = min_u64(r->batch, r->examples - done);
			update_fill(o, r->slot[i].epoch * r->each + 1 + k, (double)epoch + (double)done / (double)r->examples,
			            (double)n / (double)r->examples, &u);
			memcpy(r->param + (i * count + k) * P_COUNT, u.param, sizeof u.param);
		}
	r->s.param = r->param;
	r->s.params = count;
}

/* False: there is no kernel for it. */
static bool job_run(SoloRun *r)
{
	Cuda *c = r->c;
	Solo *s = &r->s;
	Tally none = { 0 };

	r->epochs = job_epochs(r);
	s->cases = r->shuffled ? r->cases : NULL;
	if (r->shuffled && c->cpu->pool)
		pool_run(c->cpu->pool, orders_make, r);
	else if (r->shuffled)
		orders_make(r, 0);
	if (r->scheduled)
		params_make(r);
	memset(s->tally, 0, (uint64_t)s->networks * SOLO_EPOCHS * sizeof *s->tally);
	memset(s->result, 0, s->networks * sizeof *s->result);
	for (uint32_t i = 0; i < s->networks; i++)
		s->result[i].stop = r->idle[i];
	Work w = { .mode = JOB_UPDATE,
		       .examples = r->examples,
		       .batch = r->batch,
		       .count = r->epochs * r->each,
		       .update = &r->update,
		       .same = !r->scheduled,
		       .until = &r->until,
		       .tally = &none,
		       .epochs = 1,
		       .solo = s };
	return work_run(c, &w) != NO_KERNEL;
}

static void solo_take(SoloRun *r, DeviceMemory *m)
{
	Cuda *c = r->c;
	Solo *s = &r->s;
	Arena *a = &c->cx->scratch;
	uint64_t n = s->networks, floats = n * solo_floats(&c->job) * sizeof(float);

	s->w = device_alloc(m, floats);
	for (int k = 0; k < c->rule->states; k++)
		s->state[k] = device_alloc(m, floats);
	s->copies = device_alloc(m, n * solo_copies(c->copy_floats) * sizeof(float));
	if (c->half)
		s->half = device_alloc(m, n * solo_floats(&c->job) * sizeof *s->half);
	s->row_error = device_alloc(m, n * c->job.row_capacity * sizeof(float));
	s->verdict = device_alloc(m, n * c->job.row_capacity);
	s->leaf_tally = device_alloc(m, n * sizeof(Tally));
	s->result = NEW(a, n, JobResult);
	s->tally = NEW(a, n * SOLO_EPOCHS, Tally);
	s->idle = r->idle = NEW(a, n, bool);
	r->slot = NEW(a, n, SoloSlot);
	r->v = NEW(a, c->net->links, double);
	r->cases = r->shuffled ? NEW(a, n * ORDERED_EPOCHS * r->examples, uint32_t) : NULL;
	r->param = r->scheduled ? NEW(a, n * ORDERED_EPOCHS * r->each * P_COUNT, double) : NULL;
	for (uint32_t i = 0; i < n; i++) {
		r->slot[i].number = NO_SEED;
		r->idle[i] = true;
		if (r->shuffled)
			r->slot[i].order = order_new(a, r->examples, 0, true);
	}
}

bool solo_run(Cuda *c, Restarts *all)
{
	SoloRun *r = NEW(&c->cx->scratch, 1, SoloRun);
	DeviceMemory memory = { .gpu = c->gpu, .arena = { .cx = c->cx } };

	r->c = c;
	r->all = all;
	if (!solo_fits(r))
		return false;
	until_parse(c->opt->until, &r->until);
	update_fill(c->opt, 1, 0, (double)r->batch / (double)r->examples, &r->update);
	r->s.networks = (uint32_t)min_u64(c->gpu->blocks, all->own);
	solo_take(r, &memory);
	bool covered = job_run(r); /* all are idle: makes the kernel */
	all->began = all->reported = clock_seconds();
	for (; covered && !all->run->stop; restarts_report(all)) {
		slots_fill(r);
		if (!r->busy)
			break;
		job_run(r);
		for (uint32_t i = 0; i < r->s.networks; i++)
			if (r->slot[i].number != NO_SEED)
				slot_check(r, i);
	}
	device_free(&memory);
	c->host_newer = true;
	return covered;
}
