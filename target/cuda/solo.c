/* SPDX-License-Identifier: MIT */
/* Restarts of networks that fit into a multiprocessor: each block trains one of its own. In: a program with data bound,
 * seeds. Out: the result that a run with each seed would have.
 *
 * A job trains a set of networks for some epochs; one whose seed has ended gets the next seed before the next job of
 * its set. Where there are seeds enough, two sets alternate: the host computes fingerprints and initial weights of
 * one while the GPU trains the other, whose job that of this one follows at once. The kernel is that of a team of one
 * block, with weights of its own (EmitSource.solo). */
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "cuda.h"
#include "lanes.h"
#include "pass.h"

extern const Target target_cpu;

enum { SOLO_UPDATES = 4096, SETS = 2 };
#define NO_SEED     UINT64_MAX
#define ORDER_BYTES (96.0 * (1 << 20)) /* of a job, where networks have orders of their own */
#define OPEN_WORK   8e10               /* links times cases of a job whose seeds may end at any epoch, and idle then */

typedef struct SoloSlot {
	uint64_t number; /* of its seed; NO_SEED: idle */
	uint64_t epoch;  /* finished */
	Order *order;
	bool begins, ends; /* here, between two jobs */
	mp_seed result;
} SoloSlot;

/* Examples in the order of each network: those of blocks are shuffled on the device. */
typedef struct SoloOrders {
	OrderEpoch *epoch, *device_epoch; /* [networks][epochs] */
	OrderBlock *block, *device_block; /* the same, [blocks] each */
	uint32_t *cases;                  /* of the device: [networks][epochs][examples] */
	uint32_t tasks;
} SoloOrders;

/* Networks of a job. Host arrays of weights are those that begin or end. */
typedef struct SoloSet {
	struct SoloRun *r;
	Solo s;
	SoloSlot *slot;
	bool *idle;
	bool has_weights; /* of the seeds that begin, or they are */
	bool making;      /* made by this thread: */
	pthread_t thread;
	uint32_t busy;
	uint64_t epochs; /* of the job at hand */
	JobRun job;
	void *event;           /* its job has ended */
	bool running, has_run; /* has_run: its results are to be looked at */
	Tally none;
	float *w, *copies; /* [networks] on the host, as on the device */
	uint16_t *half;
	SoloOrders orders;
	double *param; /* [networks][updates][P_COUNT] of a job */
} SoloSet;

typedef struct SoloRun {
	Cuda *c;
	Restarts *all;
	SoloSet set[SETS];
	uint32_t sets, networks; /* networks: of a set */
	Until until;
	Update update;
	uint64_t examples, batch, each; /* each: updates of an epoch */
	uint64_t most_epochs;           /* of a job */
	bool shuffled;
	GpuKernel order_kernel;
	uint32_t order_blocks;   /* of an epoch */
	bool scheduled;          /* numbers change from one update to the next */
	uint64_t *place;         /* [links] of their weights */
	float *first_w;          /* [floats] weights of any seed: what is no link */
	float *state[MAX_STATE]; /* [networks][solo_floats] that every seed begins with */
	double *v;               /* [threads][links] */
	float *links;            /* [threads][links] */
} SoloRun;

/* ---- which networks ---- */

bool seed_suits_block(const Net *net, const Options *o, const Data *d)
{
	uint64_t examples = run_examples(net, d);
	uint64_t batch = o->batch == BATCH_ALL ? examples : min_u64((uint64_t)o->batch, examples);

	return !net->timed && !net->noisy && !net->tie && !d->seq && d->targets && batch && leaf_count(batch) == 1 &&
	       !rules[o->rule].needs_norm && (uint64_t)o->updates % ceil_div(examples, batch) == 0;
}

static bool solo_fits(SoloRun *r)
{
	const Cuda *c = r->c;
	const Options *o = c->opt;
	const Data *d = c->bound->source;

	r->examples = run_examples(c->net, d);
	r->batch = o->batch == BATCH_ALL ? r->examples : min_u64((uint64_t)o->batch, r->examples);
	r->shuffled = o->shuffle < 0 ? r->batch < r->examples : o->shuffle != 0;
	if (!seed_suits_block(c->net, o, d) || c->bound->streamed || c->bound->longest > 1)
		return false;
	r->each = ceil_div(r->examples, r->batch);
	r->scheduled = c->rule->needs_count || o->schedule != SCHEDULE_CONSTANT || o->warmup > 0;
	return r->all->own >= LEAST_NETWORKS || !c->gpu->driver;
}

/* ---- threads of the host ---- */

static uint32_t thread_count(const SoloRun *r) { return r->c->cpu->pool ? pool_threads(r->c->cpu->pool) : 1; }

static void on_threads(SoloSet *s, PoolFn *fn)
{
	Pool *pool = s->r->c->cpu->pool;

	if (pool)
		pool_run(pool, fn, s);
	else
		fn(s, 0);
}

/* ---- seeds ---- */

static uint64_t w_row(const SoloRun *r) { return solo_floats(&r->c->job); }
static uint64_t copy_row(const SoloRun *r) { return solo_copies(r->c->transposed_floats); }

/* v: [links] */
static void weights_make(SoloSet *s, uint32_t i, uint64_t number, double *v)
{
	const SoloRun *r = s->r;
	const Cuda *c = r->c;
	float *w = s->w + i * w_row(r);

	net_weights(c->net, r->all->first + number, 0, ALL_LINKS, v);
	memcpy(w, r->first_w, c->floats * sizeof *w);
	for (uint64_t l = 0; l < c->net->links; l++)
		w[r->place[l]] = (float)v[l];
	weights_copies(c, w, s->copies + i * copy_row(r));
	if (c->half)
		weights_halves(c, w, s->half + i * w_row(r));
}

static void weights_begin(void *arg, uint32_t thread)
{
	SoloSet *s = arg;
	SoloRun *r = s->r;

	for (uint32_t i = thread; i < r->networks; i += thread_count(r))
		if (s->slot[i].begins)
			weights_make(s, i, s->slot[i].number, r->v + thread * r->c->net->links);
}

/* Seeds are taken one after the other: those of the first set are known before. */
static uint64_t first_number(const SoloRun *r, uint32_t i) { return i * (uint64_t)r->all->ranks + r->all->rank; }

static void weights_first(void *arg, uint32_t thread)
{
	SoloSet *s = arg;
	SoloRun *r = s->r;

	for (uint32_t i = thread; i < r->networks; i += thread_count(r))
		weights_make(s, i, first_number(r, i), r->v + thread * r->c->net->links);
}

static void *weights_thread(void *set)
{
	on_threads(set, weights_first);
	return NULL;
}

/* Also after a failure, before memory is freed. */
static void weights_join(void *set)
{
	SoloSet *s = set;

	if (s->making)
		pthread_join(s->thread, NULL);
	s->making = false;
}

/* Networks from `first` on that begin. */
static void run_upload(SoloSet *s, uint64_t first, uint64_t count)
{
	SoloRun *r = s->r;
	Cuda *c = r->c;
	uint64_t at = first * w_row(r), copy = first * copy_row(r), floats = count * w_row(r);

	gpu_upload_begin(c->gpu, s->s.w + at, s->w + at, floats * sizeof(float), STREAM_COPY);
	for (int k = 0; k < c->rule->states; k++)
		gpu_upload_begin(c->gpu, s->s.state[k] + at, r->state[k], floats * sizeof(float), STREAM_COPY);
	gpu_upload_begin(c->gpu, s->s.copies + copy, s->copies + copy, count * copy_row(r) * sizeof(float), STREAM_COPY);
	if (c->half)
		gpu_upload_begin(c->gpu, s->s.half + at, s->half + at, floats * sizeof(uint16_t), STREAM_COPY);
}

static void slots_fill(SoloSet *s)
{
	SoloRun *r = s->r;
	uint32_t begun = 0;

	for (uint32_t i = 0; i < r->networks; i++) {
		SoloSlot *slot = &s->slot[i];
		uint64_t number;
		slot->begins = slot->number == NO_SEED && restarts_take(r->all, &number);
		if (!slot->begins)
			continue;
		slot->number = number;
		slot->epoch = 0;
		if (slot->order) {
			slot->order->seed = r->all->first + number;
			order_forget(slot->order);
		}
		s->idle[i] = false;
		begun++;
	}
	s->busy += begun;
	if (!begun)
		return;
	for (uint32_t i = 0; i < r->networks; i++)
		assert(!s->has_weights || !s->slot[i].begins || s->slot[i].number == first_number(r, i));
	if (!s->has_weights)
		on_threads(s, weights_begin);
	s->has_weights = false;
	for (uint32_t i = 0, end; i < r->networks; i = end) {
		for (end = i + 1; end < r->networks && s->slot[end].begins == s->slot[i].begins; end++)
			;
		if (s->slot[i].begins)
			run_upload(s, i, end - i);
	}
}

static void seeds_end(void *arg, uint32_t thread)
{
	SoloSet *s = arg;
	SoloRun *r = s->r;
	uint64_t links = r->c->net->links;
	float *v = r->links + thread * links;

	for (uint32_t i = thread; i < r->networks; i += thread_count(r)) {
		SoloSlot *slot = &s->slot[i];
		mp_seed *result = &slot->result;
		bool finite = true;
		if (!slot->ends)
			continue;
		for (uint64_t l = 0; l < links; l++) {
			v[l] = s->w[i * w_row(r) + r->place[l]];
			finite &= v[l] - v[l] == 0;
		}
		if (!result->failed && !finite)
			*result = (mp_seed){ .failed = 1, .epochs = result->epochs };
		else if (!result->failed)
			floats_fingerprint(v, links, result->fingerprint);
		result->seed = r->all->first + slot->number;
		restarts_end(r->all, slot->number, result);
	}
}

/* After a job: does the seed end here? */
static bool slot_ends(SoloSet *s, uint32_t i)
{
	SoloRun *r = s->r;
	const JobResult *from = &s->s.result[i];
	const Tally *tally = s->s.tally + i * SOLO_EPOCHS, *last = from->epoch ? &tally[from->epoch - 1] : NULL;
	SoloSlot *slot = &s->slot[i];
	mp_seed *result = &slot->result;

	assert(s->s.tally);
	slot->epoch += from->epoch;
	*result = (mp_seed){ 0 };
	if (last && !isfinite(last->error))
		*result = (mp_seed){ .failed = 1, .epochs = slot->epoch - 1 };
	else if (from->stop && from->epoch < SOLO_EPOCHS && !isfinite(tally[from->epoch].error))
		*result = (mp_seed){ .failed = 1, .epochs = slot->epoch };
	return result->failed || seed_ends(r->c->opt, &r->until, last, slot->epoch, slot->epoch * r->each, result);
}

/* Seeds that have ended in the last job of the set. */
static void slots_check(SoloSet *s)
{
	SoloRun *r = s->r;
	uint32_t ended = 0, first = r->networks, end = 0;

	for (uint32_t i = 0; i < r->networks; i++) {
		s->slot[i].ends = s->slot[i].number != NO_SEED && slot_ends(s, i);
		if (!s->slot[i].ends)
			continue;
		first = ended ? first : i;
		end = i + 1;
		ended++;
	}
	if (!ended)
		return;
	gpu_download_begin(r->c->gpu, s->w + first * w_row(r), s->s.w + first * w_row(r),
	                   (end - first) * w_row(r) * sizeof(float), STREAM_COPY);
	gpu_copies_wait(r->c->gpu);
	on_threads(s, seeds_end);
	for (uint32_t i = first; i < end; i++)
		if (s->slot[i].ends) {
			s->slot[i].number = NO_SEED;
			s->idle[i] = true;
		}
	s->busy -= ended;
	restarts_report(r->all);
}

/* ---- how long ---- */

/* Of a job, at most. */
static uint64_t longest_job(const SoloRun *r)
{
	const Until *u = &r->until;
	double each = (double)r->examples * (double)r->c->net->links, networks = r->networks, most = SOLO_EPOCHS;
	bool open = !isnan(u->error) || !isnan(u->right) || !isnan(u->within);

	most = fmin(most, fmin(JOB_WORK / each, (double)(SOLO_UPDATES / r->each)));
	if (open)
		most = fmin(most, OPEN_WORK / (each * networks));
	if (r->shuffled)
		most = fmin(most, ORDER_BYTES / ((double)r->examples * networks * sizeof(uint32_t)));
	return most < 1 ? 1 : (uint64_t)most;
}

/* As many epochs as every seed needs at least. */
static uint64_t job_epochs(const SoloSet *s)
{
	const SoloRun *r = s->r;
	const Options *o = r->c->opt;
	uint64_t epochs = r->most_epochs, most = (uint64_t)o->epochs;

	if (o->updates && (!most || (uint64_t)o->updates / r->each < most))
		most = (uint64_t)o->updates / r->each;
	for (uint32_t i = 0; most && i < r->networks; i++)
		if (s->slot[i].number != NO_SEED)
			epochs = min_u64(epochs, most - s->slot[i].epoch);
	return epochs;
}

/* ---- orders of examples ---- */

static void epoch_order(SoloSet *s, uint32_t i, uint64_t e, uint32_t number)
{
	SoloRun *r = s->r;
	SoloSlot *slot = &s->slot[i];
	OrderBlock *block = s->orders.block + (uint64_t)number * r->order_blocks;
	uint32_t at = 0;

	order_epoch(slot->order, slot->epoch + e);
	s->orders.epoch[number] = (OrderEpoch){ .seed = slot->order->seed,
		                                    .at = (i * s->epochs + e) * r->examples * sizeof(uint32_t),
		                                    .number = (uint32_t)(slot->epoch + e) };
	for (uint32_t n = 0; n < r->order_blocks; n++) {
		uint64_t size, first = order_block(slot->order, n, &size);
		block[n] = (OrderBlock){ .first = (uint32_t)first, .at = at, .size = (uint32_t)size };
		at += (uint32_t)size;
	}
}

static void orders_take(SoloSet *s)
{
	SoloRun *r = s->r;
	SoloOrders *o = &s->orders;
	uint32_t epochs = 0;

	for (uint32_t i = 0; i < r->networks; i++)
		for (uint64_t e = 0; s->slot[i].number != NO_SEED && e < s->epochs; e++)
			epoch_order(s, i, e, epochs++);
	o->tasks = epochs * r->order_blocks;
	gpu_upload_begin(r->c->gpu, o->device_epoch, o->epoch, epochs * sizeof *o->epoch, STREAM_COPY);
	gpu_upload_begin(r->c->gpu, o->device_block, o->block, o->tasks * sizeof *o->block, STREAM_COPY);
}

static void orders_start(const SoloSet *s)
{
	const SoloRun *r = s->r;
	OrderJob job = { .tasks = s->orders.tasks,
		             .blocks = r->order_blocks,
		             .epoch = s->orders.device_epoch,
		             .block = s->orders.device_block,
		             .to = s->orders.cases };

	gpu_copies_wait(r->c->gpu);
	gpu_start(r->c->gpu, &r->order_kernel, &job, r->c->gpu->blocks, STREAM_COMPUTE);
}

/* ---- jobs ---- */

/* Numbers of the updates of the next epochs, for each network. */
static void params_make(void *arg, uint32_t thread)
{
	SoloSet *s = arg;
	SoloRun *r = s->r;
	const Options *o = r->c->opt;
	uint64_t count = s->epochs * r->each;
	Update u;

	for (uint32_t i = thread; i < r->networks; i += thread_count(r))
		for (uint64_t k = 0; k < count && s->slot[i].number != NO_SEED; k++) {
			uint64_t epoch = s->slot[i].epoch + k / r->each, done = k % r->each * r->batch;
			uint64_t n = min_u64(r->batch, r->examples - done);
			update_fill(o, s->slot[i].epoch * r->each + 1 + k, (double)epoch + (double)done / (double)r->examples,
			            (double)n / (double)r->examples, &u);
			memcpy(s->param + (i * count + k) * P_COUNT, u.param, sizeof u.param);
		}
}

/* Counts of right cases are those of a seed's last epoch: unless some error or count ends it, the last of a job. */
static uint64_t verdicts_from(const SoloSet *s)
{
	const Until *u = &s->r->until;

	return isnan(u->error) && isnan(u->right) && isnan(u->within) ? (s->epochs - 1) * s->r->each : 0;
}

/* False: there is no kernel for it. */
static bool set_job(SoloSet *s)
{
	SoloRun *r = s->r;
	Cuda *c = r->c;

	s->epochs = job_epochs(s);
	s->s.cases = s->orders.cases;
	if (r->shuffled)
		orders_take(s);
	if (r->scheduled)
		on_threads(s, params_make);
	s->s.param = s->param;
	s->s.params = s->epochs * r->each;
	memset(s->s.tally, 0, (uint64_t)r->networks * SOLO_EPOCHS * sizeof *s->s.tally);
	memset(s->s.result, 0, r->networks * sizeof *s->s.result);
	for (uint32_t i = 0; i < r->networks; i++)
		s->s.result[i].stop = s->idle[i];
	Work w = { .mode = JOB_UPDATE,
		       .examples = r->examples,
		       .batch = r->batch,
		       .count = s->epochs * r->each,
		       .update = &r->update,
		       .same = !r->scheduled,
		       .until = &r->until,
		       .verdicts_from = verdicts_from(s),
		       .tally = &s->none,
		       .epochs = 1,
		       .solo = &s->s };
	return job_prepare(c, &w, &s->job);
}

/* The next job of a set, while that of the other may be running. False: there are no seeds for it. */
static bool set_prepare(SoloSet *s)
{
	if (s->has_run)
		slots_check(s);
	s->has_run = false;
	slots_fill(s);
	return s->busy && set_job(s);
}

static void set_start(SoloSet *s)
{
	if (s->orders.tasks)
		orders_start(s);
	s->job.event = s->event;
	job_start(s->r->c, &s->job, NULL);
	s->running = true;
}

static void set_finish(SoloSet *s)
{
	if (!s->running)
		return;
	job_finish(s->r->c, &s->job);
	s->running = false;
	s->has_run = true;
}

static void sets_run(SoloRun *r)
{
	for (SoloSet *now = &r->set[r->sets - 1]; !r->all->run->stop;) { /* the first one is next */
		SoloSet *next = r->sets > 1 ? &r->set[now == r->set] : now;
		bool ready = next != now && set_prepare(next);
		if (ready) /* the device goes on with it */
			set_start(next);
		set_finish(now);
		if (!ready && !set_prepare(now))
			break;
		if (!ready)
			set_start(now);
		now = ready ? next : now;
	}
	for (uint32_t i = 0; i < r->sets; i++) { /* after a stop */
		set_finish(&r->set[i]);
		if (r->set[i].has_run)
			slots_check(&r->set[i]);
	}
}

/* ---- memory ---- */

static void note_place(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	(void)unit;
	((uint64_t *)arg)[link] = place;
}

/* What all seeds have in common. */
static void run_take(SoloRun *r, DeviceMemory *m)
{
	Cuda *c = r->c;
	Arena *a = &c->cx->scratch;
	uint64_t links = c->net->links;

	r->place = NEW(a, links, uint64_t);
	layout_links(c->cpu->layout, 0, links, note_place, r->place);
	r->v = NEW(a, thread_count(r) * links, double);
	r->links = NEW(a, thread_count(r) * links, float);
	r->first_w = NEW(a, c->floats, float);
	net_weights(c->net, r->all->first, 0, ALL_LINKS, r->v);
	target_cpu.set(c->cpu, 0, 0, ALL_LINKS, r->v);
	memcpy(r->first_w, c->cpu->w, c->floats * sizeof *r->first_w);
	for (int k = 0; k < c->rule->states; k++) {
		for (Unit u = 0; u < c->net->units; u++)
			for (uint64_t l = c->net->row[u]; l < c->net->row[u + 1]; l++)
				r->v[l] = rule_start(c->rule, k, c->opt, (double)net_block(c->net, u, l)->rate);
		target_cpu.set(c->cpu, k + 1, 0, ALL_LINKS, r->v);
		r->state[k] = gpu_host_memory(m, r->networks * w_row(r) * sizeof(float));
		memset(r->state[k], 0, r->networks * w_row(r) * sizeof(float));
		for (uint32_t i = 0; i < r->networks; i++)
			memcpy(r->state[k] + i * w_row(r), c->cpu->state[k], c->floats * sizeof(float));
	}
}

static void order_kernel_load(SoloRun *r, DeviceMemory *m)
{
	enum { MOST_THREADS = 24 };
	Buf text = { .arena = &r->c->cx->scratch };
	GpuKernel *k = &r->order_kernel;

	r->order_blocks = (uint32_t)ceil_div(r->examples, SHUFFLE_BLOCK);
	k->threads = max_u32(1, min_u32(MOST_THREADS, r->c->gpu->block_shared / (2 * SHUFFLE_BLOCK)));
	k->shared = k->threads * 2 * SHUFFLE_BLOCK;
	orders_text(k->threads, &r->c->cx->scratch, &text);
	gpu_load(m, text.s, text.len, k);
}

static void *host_take(DeviceMemory *m, uint64_t bytes)
{
	void *at = gpu_host_memory(m, bytes);

	memset(at, 0, bytes);
	return at;
}

static void set_take(SoloRun *r, SoloSet *s, DeviceMemory *m)
{
	Cuda *c = r->c;
	Arena *a = &c->cx->scratch;
	uint64_t n = r->networks, floats = n * w_row(r), copies = n * copy_row(r) * sizeof(float);

	s->r = r;
	s->s.networks = r->networks;
	s->s.w = device_alloc(m, floats * sizeof(float));
	for (int k = 0; k < c->rule->states; k++)
		s->s.state[k] = device_alloc(m, floats * sizeof(float));
	s->s.copies = device_alloc(m, copies);
	s->w = host_take(m, floats * sizeof(float));
	s->copies = host_take(m, copies);
	if (c->half) {
		s->s.half = device_alloc(m, floats * sizeof *s->s.half);
		s->half = host_take(m, floats * sizeof *s->half);
	}
	s->s.row_error = device_alloc(m, n * c->job.row_capacity * sizeof(float));
	s->s.verdict = device_alloc(m, n * c->job.row_capacity);
	s->s.leaf_tally = device_alloc(m, n * sizeof(Tally));
	s->event = gpu_event(m);
	s->s.result = NEW(a, n, JobResult);
	s->s.tally = NEW(a, n * SOLO_EPOCHS, Tally);
	s->s.idle = s->idle = NEW(a, n, bool);
	s->slot = NEW(a, n, SoloSlot);
	if (r->shuffled) {
		uint64_t epochs = n * r->most_epochs, blocks = epochs * r->order_blocks;
		s->orders.cases = device_alloc(m, epochs * r->examples * sizeof(uint32_t));
		s->orders.device_epoch = device_alloc(m, epochs * sizeof(OrderEpoch));
		s->orders.device_block = device_alloc(m, blocks * sizeof(OrderBlock));
		s->orders.epoch = gpu_host_memory(m, epochs * sizeof(OrderEpoch));
		s->orders.block = gpu_host_memory(m, blocks * sizeof(OrderBlock));
	}
	s->param = r->scheduled ? NEW(a, n * r->most_epochs * r->each * P_COUNT, double) : NULL;
	for (uint32_t i = 0; i < n; i++) {
		s->slot[i].number = NO_SEED;
		s->idle[i] = true;
		if (r->shuffled)
			s->slot[i].order = order_new(a, r->examples, 0, true);
	}
}

/* Makes the kernel, by a job in which all networks are idle, and meanwhile, as it takes longer, weights of the first
 * set: unless threads of the host make numbers of updates. */
static bool kernel_make(SoloRun *r)
{
	SoloSet *s = r->set;

	arena_defer(&r->c->cx->scratch, weights_join, s);
	s->has_weights = s->making = !r->scheduled && !thread_start(&s->thread, weights_thread, s);
	bool covered = set_job(s);
	if (covered) {
		set_start(s);
		set_finish(s);
		s->has_run = false;
	}
	weights_join(s);
	return covered;
}

bool solo_run(Cuda *c, Restarts *all)
{
	SoloRun *r = NEW(&c->cx->scratch, 1, SoloRun);
	DeviceMemory *memory = &c->calls; /* freed with the program: that takes milliseconds */

	r->c = c;
	r->all = all;
	if (!solo_fits(r))
		return false;
	until_parse(c->opt->until, &r->until);
	update_fill(c->opt, 1, 0, (double)r->batch / (double)r->examples, &r->update);
	r->networks = (uint32_t)min_u64(c->gpu->blocks, all->own);
	r->sets = all->own >= 2 * (uint64_t)r->networks ? SETS : 1;
	r->most_epochs = longest_job(r);
	all->parallel = r->networks;
	run_take(r, memory);
	if (r->shuffled)
		order_kernel_load(r, memory);
	for (uint32_t i = 0; i < r->sets; i++)
		set_take(r, &r->set[i], memory);
	bool covered = kernel_make(r);
	if (covered) {
		all->began = all->reported = clock_seconds();
		sets_run(r);
	}
	gpu_copies_wait(c->gpu);
	c->host_newer = true;
	return covered;
}
