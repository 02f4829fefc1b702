/* SPDX-License-Identifier: MIT */
/* Restarts, one network per block: every block trains a network of its own, with its weights in shared memory. In: a
 * program with data bound, seeds. Out: the result that a run with each seed would have.
 *
 * A job trains a set of networks for some epochs. A network whose seed has ended gets the next seed before the next
 * job of its set. If there are enough seeds, two sets are double buffered: the host computes fingerprints and
 * initial weights of one set while the GPU trains the other. The kernel is that of teams of one block, each with its
 * own weights (EmitSource.solo). */
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "cuda.h"
#include "lanes.h"
#include "pass.h"

extern const Target target_cpu;

enum { SETS = 2, MAX_JOB_UPDATES = 4096 };
#define NO_SEED         UINT64_MAX
#define JOB_ORDER_BYTES (96.0 * (1 << 20)) /* of a job: orders of examples, if networks have their own */
#define OPEN_JOB_WORK   8e10 /* links times cases of a job if seeds may end at any epoch: their blocks are idle then */

/* A network of a set, and the seed that it is trained with. */
typedef struct NetworkSlot {
	uint64_t number; /* of the seed; NO_SEED: idle */
	uint64_t epoch;  /* epochs finished */
	Order *order;    /* of examples; NULL: file order */
	bool begins;     /* it got a new seed before this job */
	bool ends;       /* its seed ended in the last job */
	mp_seed result;
} NetworkSlot;

/* Orders of examples of a job, by network and epoch. The host shuffles blocks of examples, the device the examples of
 * each block (orders.c). */
typedef struct SetOrders {
	OrderEpoch *epoch, *device_epoch; /* [networks][epochs] */
	OrderBlock *block, *device_block; /* [networks][epochs][blocks] */
	uint32_t *cases;                  /* device: [networks][epochs][examples] */
	uint32_t tasks;                   /* blocks of this job */
} SetOrders;

/* Networks that a job trains, one per block. */
typedef struct NetworkSet {
	struct BlockRun *r;
	Networks device;   /* arrays of the job */
	NetworkSlot *slot; /* [networks] */
	bool *idle;        /* [networks] no seed */
	uint32_t active;   /* networks with a seed */
	uint64_t epochs;   /* of the next job, or of the one that runs */
	JobRun job;
	void *event;      /* set when the job is done */
	bool running;     /* the job was started */
	bool has_results; /* the job has finished; slots were not updated yet */
	Tally unused;     /* networks have their own tallies */
	SetOrders orders;
	double *param; /* [networks][updates][P_COUNT] of a job; NULL: all updates are alike */
	/* pinned copies of device arrays: weights of seeds that begin or end */
	float *host_w, *host_copies;
	uint16_t *host_bf16;
	/* The first seeds' weights are made by a thread while the kernel is compiled. */
	bool weights_ready, thread_running;
	pthread_t thread;
} NetworkSet;

typedef struct BlockRun {
	Cuda *c;
	Restarts *all;
	NetworkSet set[SETS];
	uint32_t sets;
	uint32_t networks; /* of a set */
	Until until;
	Update update;
	uint64_t examples, batch;
	uint64_t epoch_updates; /* updates of an epoch */
	uint64_t max_epochs;    /* of a job */
	bool shuffled;
	bool params_change; /* rate or other parameters change from update to update */
	GpuKernel order_kernel;
	uint32_t epoch_blocks;           /* blocks of examples of an epoch */
	uint64_t *place;                 /* [links] places of weights */
	float *template_w;               /* [floats] weights of some seed: padding is the same for all */
	float *initial_state[MAX_STATE]; /* [networks][solo_floats] rule state that every seed begins with */
	double *canonical;               /* [threads][links] scratch */
	float *final_w;                  /* [threads][links] scratch */
} BlockRun;

/* ---- which networks ---- */

bool seed_suits_block(const Net *net, const Options *o, const Data *d)
{
	uint64_t examples = run_examples(net, d);
	uint64_t batch = o->batch == BATCH_ALL ? examples : min_u64((uint64_t)o->batch, examples);

	return !net->timed && !net->noisy && !net->tie && !d->seq && d->targets && batch && leaf_count(batch) == 1 &&
	       !rules[o->rule].needs_norm && (uint64_t)o->updates % ceil_div(examples, batch) == 0;
}

static bool blocks_cover(BlockRun *r)
{
	const Cuda *c = r->c;
	const Options *o = c->opt;
	const Data *d = c->bound->source;

	r->examples = run_examples(c->net, d);
	r->batch = o->batch == BATCH_ALL ? r->examples : min_u64((uint64_t)o->batch, r->examples);
	r->shuffled = o->shuffle < 0 ? r->batch < r->examples : o->shuffle != 0;
	if (!seed_suits_block(c->net, o, d) || c->bound->streamed || c->bound->longest > 1)
		return false;
	r->epoch_updates = ceil_div(r->examples, r->batch);
	r->params_change = c->rule->needs_count || o->schedule != SCHEDULE_CONSTANT || o->warmup > 0;
	return r->all->own >= LEAST_NETWORKS || !c->gpu->driver;
}

/* ---- seeds ---- */

static uint64_t w_row(const BlockRun *r) { return solo_floats(&r->c->job); }
static uint64_t copy_row(const BlockRun *r) { return solo_copies(r->c->transposed_floats); }

/* Initial weights of a seed, as network i of the set. v: [links] scratch */
static void seed_weights_make(NetworkSet *s, uint32_t i, uint64_t number, double *v)
{
	const BlockRun *r = s->r;
	const Cuda *c = r->c;
	float *w = s->host_w + i * w_row(r);

	net_weights(c->net, r->all->first + number, 0, ALL_LINKS, v);
	memcpy(w, r->template_w, c->floats * sizeof *w);
	for (uint64_t l = 0; l < c->net->links; l++)
		w[r->place[l]] = (float)v[l];
	weights_transpose(c, w, s->host_copies + i * copy_row(r));
	if (c->bf16)
		weights_round(c, w, s->host_bf16 + i * w_row(r));
}

static void new_weights_make(void *arg, uint32_t thread)
{
	NetworkSet *s = arg;
	BlockRun *r = s->r;

	for (uint32_t i = thread; i < r->networks; i += host_threads(r->c))
		if (s->slot[i].begins)
			seed_weights_make(s, i, s->slot[i].number, r->canonical + thread * r->c->net->links);
}

/* Seeds are taken in order, so those of the first set are known before they are taken. */
static uint64_t first_number(const BlockRun *r, uint32_t i) { return i * (uint64_t)r->all->ranks + r->all->rank; }

static void first_weights_make(void *arg, uint32_t thread)
{
	NetworkSet *s = arg;
	BlockRun *r = s->r;

	for (uint32_t i = thread; i < r->networks; i += host_threads(r->c))
		seed_weights_make(s, i, first_number(r, i), r->canonical + thread * r->c->net->links);
}

static void *first_weights_thread(void *set)
{
	const NetworkSet *s = set;

	host_run(s->r->c, first_weights_make, set);
	return NULL;
}

/* Deferred: after a failure too, it runs before memory is freed. */
static void first_weights_join(void *set)
{
	NetworkSet *s = set;

	if (s->thread_running)
		pthread_join(s->thread, NULL);
	s->thread_running = false;
}

/* Initial weights and state of networks first .. first + count - 1. */
static void seeds_upload(NetworkSet *s, uint64_t first, uint64_t count)
{
	BlockRun *r = s->r;
	Cuda *c = r->c;
	uint64_t at = first * w_row(r), copy = first * copy_row(r), floats = count * w_row(r);

	gpu_upload_begin(c->gpu, s->device.w + at, s->host_w + at, floats * sizeof(float), STREAM_COPY);
	for (int k = 0; k < c->rule->states; k++)
		gpu_upload_begin(c->gpu, s->device.state[k] + at, r->initial_state[k], floats * sizeof(float), STREAM_COPY);
	gpu_upload_begin(c->gpu, s->device.copies + copy, s->host_copies + copy, count * copy_row(r) * sizeof(float),
	                 STREAM_COPY);
	if (c->bf16)
		gpu_upload_begin(c->gpu, s->device.half + at, s->host_bf16 + at, floats * sizeof(uint16_t), STREAM_COPY);
}

/* Gives a seed to every idle network, while there are any. */
static void slots_fill(NetworkSet *s)
{
	BlockRun *r = s->r;
	uint32_t begun = 0;

	for (uint32_t i = 0; i < r->networks; i++) {
		NetworkSlot *slot = &s->slot[i];
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
	s->active += begun;
	if (!begun)
		return;
	for (uint32_t i = 0; i < r->networks; i++)
		assert(!s->weights_ready || !s->slot[i].begins || s->slot[i].number == first_number(r, i));
	if (!s->weights_ready)
		host_run(r->c, new_weights_make, s);
	s->weights_ready = false;
	for (uint32_t i = 0, end; i < r->networks; i = end) {
		for (end = i + 1; end < r->networks && s->slot[end].begins == s->slot[i].begins; end++)
			;
		if (s->slot[i].begins)
			seeds_upload(s, i, end - i);
	}
}

/* Results of seeds that have ended. */
static void seeds_finish(void *arg, uint32_t thread)
{
	NetworkSet *s = arg;
	BlockRun *r = s->r;
	uint64_t links = r->c->net->links;
	float *v = r->final_w + thread * links;

	for (uint32_t i = thread; i < r->networks; i += host_threads(r->c)) {
		NetworkSlot *slot = &s->slot[i];
		mp_seed *result = &slot->result;
		bool finite = true;
		if (!slot->ends)
			continue;
		for (uint64_t l = 0; l < links; l++) {
			v[l] = s->host_w[i * w_row(r) + r->place[l]];
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

/* Adds the results of a job to those of a seed. Returns whether the seed has ended. */
static bool seed_ended(NetworkSet *s, uint32_t i)
{
	BlockRun *r = s->r;
	const JobResult *from = &s->device.result[i];
	const Tally *tally = s->device.tally + i * SOLO_EPOCHS, *last = from->epoch ? &tally[from->epoch - 1] : NULL;
	NetworkSlot *slot = &s->slot[i];
	mp_seed *result = &slot->result;

	assert(s->device.tally);
	slot->epoch += from->epoch;
	*result = (mp_seed){ 0 };
	if (last && !isfinite(last->error))
		*result = (mp_seed){ .failed = 1, .epochs = slot->epoch - 1 };
	else if (from->stop && from->epoch < SOLO_EPOCHS && !isfinite(tally[from->epoch].error))
		*result = (mp_seed){ .failed = 1, .epochs = slot->epoch };
	return result->failed || seed_ends(r->c->opt, &r->until, last, slot->epoch, slot->epoch * r->epoch_updates, result);
}

/* After a job of the set: reports seeds that have ended; their networks become idle. */
static void results_take(NetworkSet *s)
{
	BlockRun *r = s->r;
	uint32_t ended = 0, first = r->networks, end = 0;

	for (uint32_t i = 0; i < r->networks; i++) {
		s->slot[i].ends = s->slot[i].number != NO_SEED && seed_ended(s, i);
		if (!s->slot[i].ends)
			continue;
		first = ended ? first : i;
		end = i + 1;
		ended++;
	}
	if (!ended)
		return;
	gpu_download_begin(r->c->gpu, s->host_w + first * w_row(r), s->device.w + first * w_row(r),
	                   (end - first) * w_row(r) * sizeof(float), STREAM_COPY);
	gpu_copies_wait(r->c->gpu);
	host_run(r->c, seeds_finish, s);
	for (uint32_t i = first; i < end; i++)
		if (s->slot[i].ends) {
			s->slot[i].number = NO_SEED;
			s->idle[i] = true;
		}
	s->active -= ended;
	restarts_report(r->all);
}

/* ---- length of jobs ---- */

/* Epochs of a job, at most. A job with open ends is short, since networks that have ended are idle until it ends. */
static uint64_t job_epochs_limit(const BlockRun *r)
{
	const Until *u = &r->until;
	double each = (double)r->examples * (double)r->c->net->links, networks = r->networks, most = SOLO_EPOCHS;
	bool open = !isnan(u->error) || !isnan(u->right) || !isnan(u->within);

	most = fmin(most, fmin(JOB_WORK / each, (double)(MAX_JOB_UPDATES / r->epoch_updates)));
	if (open)
		most = fmin(most, OPEN_JOB_WORK / (each * networks));
	if (r->shuffled)
		most = fmin(most, JOB_ORDER_BYTES / ((double)r->examples * networks * sizeof(uint32_t)));
	return most < 1 ? 1 : (uint64_t)most;
}

/* Epochs of the next job: no seed reaches its last epoch before the end of the job. */
static uint64_t job_epochs(const NetworkSet *s)
{
	const BlockRun *r = s->r;
	const Options *o = r->c->opt;
	uint64_t epochs = r->max_epochs, most = (uint64_t)o->epochs;

	if (o->updates && (!most || (uint64_t)o->updates / r->epoch_updates < most))
		most = (uint64_t)o->updates / r->epoch_updates;
	for (uint32_t i = 0; most && i < r->networks; i++)
		if (s->slot[i].number != NO_SEED)
			epochs = min_u64(epochs, most - s->slot[i].epoch);
	return epochs;
}

/* ---- orders of examples ---- */

/* Order of blocks of examples in epoch e of the job; its number among all orders of the job. */
static void order_make(NetworkSet *s, uint32_t i, uint64_t e, uint32_t number)
{
	BlockRun *r = s->r;
	NetworkSlot *slot = &s->slot[i];
	OrderBlock *block = s->orders.block + (uint64_t)number * r->epoch_blocks;
	uint32_t at = 0;

	order_epoch(slot->order, slot->epoch + e);
	s->orders.epoch[number] = (OrderEpoch){ .seed = slot->order->seed,
		                                    .at = (i * s->epochs + e) * r->examples * sizeof(uint32_t),
		                                    .number = (uint32_t)(slot->epoch + e) };
	for (uint32_t n = 0; n < r->epoch_blocks; n++) {
		uint64_t size, first = order_block(slot->order, n, &size);
		block[n] = (OrderBlock){ .first = (uint32_t)first, .at = at, .size = (uint32_t)size };
		at += (uint32_t)size;
	}
}

static void orders_upload(NetworkSet *s)
{
	BlockRun *r = s->r;
	SetOrders *o = &s->orders;
	uint32_t epochs = 0;

	for (uint32_t i = 0; i < r->networks; i++)
		for (uint64_t e = 0; s->slot[i].number != NO_SEED && e < s->epochs; e++)
			order_make(s, i, e, epochs++);
	o->tasks = epochs * r->epoch_blocks;
	gpu_upload_begin(r->c->gpu, o->device_epoch, o->epoch, epochs * sizeof *o->epoch, STREAM_COPY);
	gpu_upload_begin(r->c->gpu, o->device_block, o->block, o->tasks * sizeof *o->block, STREAM_COPY);
}

static void orders_launch(const NetworkSet *s)
{
	const BlockRun *r = s->r;
	OrderJob job = { .tasks = s->orders.tasks,
		             .blocks = r->epoch_blocks,
		             .epoch = s->orders.device_epoch,
		             .block = s->orders.device_block,
		             .to = s->orders.cases };

	gpu_copies_wait(r->c->gpu);
	gpu_start(r->c->gpu, &r->order_kernel, &job, r->c->gpu->blocks, STREAM_COMPUTE);
}

/* ---- jobs ---- */

/* Parameters of all updates of the next job, for each network. */
static void params_make(void *arg, uint32_t thread)
{
	NetworkSet *s = arg;
	BlockRun *r = s->r;
	const Options *o = r->c->opt;
	uint64_t count = s->epochs * r->epoch_updates;
	Update u;

	for (uint32_t i = thread; i < r->networks; i += host_threads(r->c))
		for (uint64_t k = 0; k < count && s->slot[i].number != NO_SEED; k++) {
			uint64_t epoch = s->slot[i].epoch + k / r->epoch_updates, done = k % r->epoch_updates * r->batch;
			uint64_t n = min_u64(r->batch, r->examples - done);
			update_fill(o, s->slot[i].epoch * r->epoch_updates + 1 + k,
			            (double)epoch + (double)done / (double)r->examples, (double)n / (double)r->examples, &u);
			memcpy(s->param + (i * count + k) * P_COUNT, u.param, sizeof u.param);
		}
}

/* Only counts of a seed's last epoch are reported. If no error or count can end a seed, it ends with a job, and rows of
 * the job's last epoch alone are scored. */
static uint64_t first_scored_update(const NetworkSet *s)
{
	const Until *u = &s->r->until;

	return isnan(u->error) && isnan(u->right) && isnan(u->within) ? (s->epochs - 1) * s->r->epoch_updates : 0;
}

/* Prepares the job of a set. False: there is no kernel for it. */
static bool set_job_prepare(NetworkSet *s)
{
	BlockRun *r = s->r;
	Cuda *c = r->c;

	s->epochs = job_epochs(s);
	s->device.cases = s->orders.cases;
	if (r->shuffled)
		orders_upload(s);
	if (r->params_change)
		host_run(r->c, params_make, s);
	s->device.param = s->param;
	s->device.params = s->epochs * r->epoch_updates;
	memset(s->device.tally, 0, (uint64_t)r->networks * SOLO_EPOCHS * sizeof *s->device.tally);
	memset(s->device.result, 0, r->networks * sizeof *s->device.result);
	for (uint32_t i = 0; i < r->networks; i++)
		s->device.result[i].stop = s->idle[i];
	Work w = { .mode = JOB_UPDATE,
		       .examples = r->examples,
		       .batch = r->batch,
		       .count = s->epochs * r->epoch_updates,
		       .update = &r->update,
		       .same = !r->params_change,
		       .until = &r->until,
		       .verdicts_from = first_scored_update(s),
		       .tally = &s->unused,
		       .epochs = 1,
		       .networks = &s->device };
	return job_prepare(c, &w, &s->job);
}

/* Prepares the next job of a set, while that of the other set may be running. False: no seeds are left. */
static bool set_prepare(NetworkSet *s)
{
	if (s->has_results)
		results_take(s);
	s->has_results = false;
	slots_fill(s);
	return s->active && set_job_prepare(s);
}

static void set_start(NetworkSet *s)
{
	if (s->orders.tasks)
		orders_launch(s);
	s->job.event = s->event;
	job_start(s->r->c, &s->job, NULL);
	s->running = true;
}

static void set_finish(NetworkSet *s)
{
	if (!s->running)
		return;
	job_finish(s->r->c, &s->job);
	s->running = false;
	s->has_results = true;
}

static void sets_run(BlockRun *r)
{
	for (NetworkSet *now = &r->set[r->sets - 1]; !r->all->run->stop;) { /* the first set is next */
		NetworkSet *next = r->sets > 1 ? &r->set[now == r->set] : now;
		bool ready = next != now && set_prepare(next);
		if (ready) /* queued behind the job of `now` */
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
		if (r->set[i].has_results)
			results_take(&r->set[i]);
	}
}

/* ---- memory ---- */

static void note_place(void *arg, Unit unit, uint64_t link, uint64_t place)
{
	(void)unit;
	((uint64_t *)arg)[link] = place;
}

/* What all seeds have in common: places, initial state, padding. */
static void run_init(BlockRun *r, DeviceMemory *m)
{
	Cuda *c = r->c;
	Arena *a = &c->cx->scratch;
	uint64_t links = c->net->links;

	r->place = NEW(a, links, uint64_t);
	layout_links(c->cpu->layout, 0, links, note_place, r->place);
	r->canonical = NEW(a, host_threads(r->c) * links, double);
	r->final_w = NEW(a, host_threads(r->c) * links, float);
	r->template_w = NEW(a, c->floats, float);
	net_weights(c->net, r->all->first, 0, ALL_LINKS, r->canonical);
	target_cpu.set(c->cpu, 0, 0, ALL_LINKS, r->canonical);
	memcpy(r->template_w, c->cpu->w, c->floats * sizeof *r->template_w);
	for (int k = 0; k < c->rule->states; k++) {
		for (Unit u = 0; u < c->net->units; u++)
			for (uint64_t l = c->net->row[u]; l < c->net->row[u + 1]; l++)
				r->canonical[l] = rule_start(c->rule, k, c->opt, (double)net_block(c->net, u, l)->rate);
		target_cpu.set(c->cpu, k + 1, 0, ALL_LINKS, r->canonical);
		r->initial_state[k] = gpu_host_memory(m, r->networks * w_row(r) * sizeof(float));
		memset(r->initial_state[k], 0, r->networks * w_row(r) * sizeof(float));
		for (uint32_t i = 0; i < r->networks; i++)
			memcpy(r->initial_state[k] + i * w_row(r), c->cpu->state[k], c->floats * sizeof(float));
	}
}

static void order_kernel_load(BlockRun *r, DeviceMemory *m)
{
	enum { MOST_THREADS = 24 };
	Buf text = { .arena = &r->c->cx->scratch };
	GpuKernel *k = &r->order_kernel;

	r->epoch_blocks = (uint32_t)ceil_div(r->examples, SHUFFLE_BLOCK);
	k->threads = max_u32(1, min_u32(MOST_THREADS, r->c->gpu->block_shared / (2 * SHUFFLE_BLOCK)));
	k->shared = k->threads * 2 * SHUFFLE_BLOCK;
	orders_text(k->threads, &r->c->cx->scratch, &text);
	gpu_load(m, text.s, text.len, k);
}

static void *pinned_zeroed(DeviceMemory *m, uint64_t bytes)
{
	void *at = gpu_host_memory(m, bytes);

	memset(at, 0, bytes);
	return at;
}

static void set_init(BlockRun *r, NetworkSet *s, DeviceMemory *m)
{
	Cuda *c = r->c;
	Arena *a = &c->cx->scratch;
	uint64_t n = r->networks, floats = n * w_row(r), copies = n * copy_row(r) * sizeof(float);

	s->r = r;
	s->device.count = r->networks;
	s->device.w = device_alloc(m, floats * sizeof(float));
	for (int k = 0; k < c->rule->states; k++)
		s->device.state[k] = device_alloc(m, floats * sizeof(float));
	s->device.copies = device_alloc(m, copies);
	s->host_w = pinned_zeroed(m, floats * sizeof(float));
	s->host_copies = pinned_zeroed(m, copies);
	if (c->bf16) {
		s->device.half = device_alloc(m, floats * sizeof *s->device.half);
		s->host_bf16 = pinned_zeroed(m, floats * sizeof *s->host_bf16);
	}
	s->device.row_error = device_alloc(m, n * c->job.row_capacity * sizeof(float));
	s->device.verdict = device_alloc(m, n * c->job.row_capacity);
	s->device.leaf_tally = device_alloc(m, n * sizeof(Tally));
	s->event = gpu_event(m);
	s->device.result = NEW(a, n, JobResult);
	s->device.tally = NEW(a, n * SOLO_EPOCHS, Tally);
	s->idle = NEW(a, n, bool);
	s->slot = NEW(a, n, NetworkSlot);
	if (r->shuffled) {
		uint64_t epochs = n * r->max_epochs, blocks = epochs * r->epoch_blocks;
		s->orders.cases = device_alloc(m, epochs * r->examples * sizeof(uint32_t));
		s->orders.device_epoch = device_alloc(m, epochs * sizeof(OrderEpoch));
		s->orders.device_block = device_alloc(m, blocks * sizeof(OrderBlock));
		s->orders.epoch = gpu_host_memory(m, epochs * sizeof(OrderEpoch));
		s->orders.block = gpu_host_memory(m, blocks * sizeof(OrderBlock));
	}
	s->param = r->params_change ? NEW(a, n * r->max_epochs * r->epoch_updates * P_COUNT, double) : NULL;
	for (uint32_t i = 0; i < n; i++) {
		s->slot[i].number = NO_SEED;
		s->idle[i] = true;
		if (r->shuffled)
			s->slot[i].order = order_new(a, r->examples, 0, true);
	}
}

/* Compiles the kernel, by a job in which all networks are idle. A thread makes the weights of the first set meanwhile,
 * unless the job itself needs the pool of host threads (params_make). False: there is no kernel. */
static bool kernel_prepare(BlockRun *r)
{
	NetworkSet *s = r->set;

	arena_defer(&r->c->cx->scratch, first_weights_join, s);
	s->weights_ready = s->thread_running = !r->params_change && !thread_start(&s->thread, first_weights_thread, s);
	bool covered = set_job_prepare(s);
	if (covered) {
		set_start(s);
		set_finish(s);
		s->has_results = false;
	}
	first_weights_join(s);
	return covered;
}

bool blocks_run(Cuda *c, Restarts *all)
{
	BlockRun *r = NEW(&c->cx->scratch, 1, BlockRun);
	DeviceMemory *memory = &c->calls; /* kept until the program ends: freeing takes milliseconds */

	r->c = c;
	r->all = all;
	if (!blocks_cover(r))
		return false;
	until_parse(c->opt->until, &r->until);
	update_fill(c->opt, 1, 0, (double)r->batch / (double)r->examples, &r->update);
	r->networks = (uint32_t)min_u64(c->gpu->blocks, all->own);
	r->sets = all->own >= 2 * (uint64_t)r->networks ? SETS : 1;
	r->max_epochs = job_epochs_limit(r);
	all->parallel = r->networks;
	run_init(r, memory);
	if (r->shuffled)
		order_kernel_load(r, memory);
	for (uint32_t i = 0; i < r->sets; i++)
		set_init(r, &r->set[i], memory);
	bool covered = kernel_prepare(r);
	if (covered) {
		all->began = all->reported = clock_seconds();
		sets_run(r);
	}
	gpu_copies_wait(c->gpu);
	c->host_newer = true;
	return covered;
}
