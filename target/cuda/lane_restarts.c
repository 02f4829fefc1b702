/* SPDX-License-Identifier: MIT */
/* Restarts of a tiny network, one thread per seed (lanes/lanes.c), or several for the last seeds (lanes/groups.c).
 * In: a program with data bound, seeds. Out: the result that a run with each seed would have.
 *
 * The GPU makes initial weights and trains in stages, a launch each. A stage ends when so many seeds have ended; it
 * hands the others over to the next one, so that no warp is left with few active lanes. The host computes
 * fingerprints of the seeds that ended in one stage while the GPU runs the next. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "cuda.h"
#include "lanes.h"
#include "pass.h"

enum {
	LANE_LINKS = 256,    /* limit: weights, gradients and rule state are registers of a thread */
	GROUP_THREADS = 384, /* threads of a block of groups.c; half as many if a seed has more links than GROUP_LINKS */
	GROUP_LINKS = 64,    /* their registers are enough for GROUP_THREADS */
	MAX_SEEDS = 1 << 20, /* of a set of launches */
	LANE_STAGES = 64
};

/* Counters on the device, whose addresses LaneJob has. From COUNT_STAGES on each stage has two: seeds in its list, and
 * how many of these were taken. */
enum { COUNT_NEXT, COUNT_ENDED, COUNT_STAGES, COUNTERS = COUNT_STAGES + 2 * LANE_STAGES + 1 };

typedef struct LaneRun {
	Cuda *c;
	Restarts *all;
	LaneSource source;
	LaneJob job;
	Until until;
	GpuKernel lanes;      /* a thread per seed */
	GpuKernel groups;     /* a group of threads per seed; only if group_count */
	uint32_t group_count; /* groups of a launch; 0: there is no such kernel */
	uint32_t pitch;       /* floats of the weights of a seed, padded to quads */
	uint32_t *counter;    /* device: [COUNTERS] */
	uint32_t *list[2];    /* device: seeds that a stage hands over; stages alternate */
	/* stages */
	uint32_t stages;
	uint32_t stop[LANE_STAGES]; /* seeds that have ended when a stage ends */
	void *event[LANE_STAGES];   /* set when a stage is done */
	uint32_t *ended;            /* pinned: [LANE_STAGES] results after a stage */
	/* results, in the order in which seeds have ended */
	float *w;            /* pinned: [seeds][pitch] */
	LaneResult *result;  /* pinned: [seeds] */
	uint32_t first, end; /* of the results that the last stage left */
	uint64_t number;     /* of the first seed of these launches */
	uint64_t *numbers;   /* [seeds] number of the seed of each result */
} LaneRun;

/* ---- which networks ---- */

bool seed_suits_thread(const Net *net, const Options *o, const Data *d)
{
	const Rule *rule = &rules[o->rule];
	uint64_t examples = run_examples(net, d);
	bool full = o->batch == BATCH_ALL || (uint64_t)o->batch >= examples, shuffled = o->shuffle > 0;

	if (net->timed || net->shaped || net->links > LANE_LINKS || net->weights || d->seq || d->weight || !d->targets)
		return false;
	if (!full || shuffled || examples > LEAF_EXAMPLES || rule->needs_norm || rule->needs_count ||
	    o->schedule != SCHEDULE_CONSTANT || o->warmup > 0)
		return false;
	return o->error == ERR_SQUARED || o->error == ERR_CROSS_ENTROPY;
}

static bool lanes_fit(const Cuda *c, const Restarts *all)
{
	const Options *o = c->opt;
	const Layout *l = c->cpu->layout;

	if (!seed_suits_thread(c->net, o, c->bound->source) || l->own_errors || !c->bound->right_here)
		return false;
	for (uint32_t i = 0; i < l->forwards; i++) {
		const Part *p = &l->part[l->forward[i]];
		if (p->fn == FN_SOFTMAX || (p->role == ROLE_OUTPUT && o->error == ERR_CROSS_ENTROPY && p->fn != FN_SIGMOID))
			return false;
	}
	return all->own >= LEAST_LANES || !c->gpu->driver;
}

/* ---- the source of the kernel ---- */

static void source_units(LaneSource *s, const Layout *l)
{
	LaneUnit *unit = NEW(&s->cx->scratch, s->net->units, LaneUnit);
	uint32_t *input = NEW(&s->cx->scratch, s->net->inputs + 1, uint32_t), inputs = 0;

	for (uint32_t i = 0; i < l->forwards; i++) {
		const Part *p = &l->part[l->forward[i]];
		bool output = p->role == ROLE_OUTPUT;
		for (uint32_t n = 0; n < p->count; n++)
			unit[s->computed++] = (LaneUnit){ .unit = p->first + n,
				                              .part = l->forward[i],
				                              .fn = p->fn,
				                              .output = output ? (int32_t)(p->output + n) : -1,
				                              .matched = output && error_fns[s->error].matched == p->fn };
	}
	for (uint32_t k = 0; k < s->net->groups; k++)
		for (uint32_t i = 0; i < s->net->group[k].size && s->net->group[k].role == ROLE_INPUT; i++)
			input[inputs++] = s->net->group[k].first + i;
	s->unit = unit;
	s->input = input;
}

/* Data as dense rows. False: a target is missing. */
static bool source_data(LaneSource *s, const Data *d)
{
	Arena *a = &s->cx->scratch;
	float *x = NEW(a, d->cases * d->inputs + 1, float), *y = NEW(a, d->cases * d->targets + 1, float);
	uint32_t *class = NEW(a, d->cases + 1, uint32_t);

	s->binary = true;
	for (uint64_t i = 0; i < d->cases; i++) {
		float *row = y + i * d->targets;
		data_x(d, i, x + i * d->inputs);
		data_y(d, i, row);
		for (uint32_t n = 0; n < d->targets; n++) {
			if (isnan(row[n]))
				return false;
			s->binary &= row[n] == 0 || row[n] == 1;
			class[i] = row[n] > row[class[i]] ? n : class[i];
		}
		if (d->targets == 1)
			class[i] = row[0] > s->middle;
	}
	s->x = x;
	s->y = y;
	s->target_class = class;
	s->cases = d->cases;
	return true;
}

/* The least number of cases whose share of all reaches `share`; UINT32_MAX: none does. */
static uint32_t least_cases(double share, uint64_t cases)
{
	for (uint64_t n = 0; !isnan(share) && n <= cases; n++)
		if (share_of(n, cases) >= share)
			return (uint32_t)n;
	return UINT32_MAX;
}

static bool source_make(LaneRun *r)
{
	Cuda *c = r->c;
	const Options *o = c->opt;
	LaneSource *s = &r->source;
	Update u;

	*s = (LaneSource){ .cx = c->cx,
		               .net = c->net,
		               .formula = &c->formula,
		               .states = (uint32_t)c->rule->states,
		               .error = o->error,
		               .offset = (float)o->prime_offset,
		               .threshold = (float)o->threshold,
		               .middle = c->bound->middle,
		               .threads = c->gpu->driver ? LANE_THREADS : c->gpu->block_threads,
		               .shared = c->gpu->block_shared };
	source_units(s, c->cpu->layout);
	if (!source_data(s, c->bound->source))
		return false;
	update_fill(o, 1, 0, 1, &u);
	memcpy(s->param, u.param, sizeof s->param);
	for (uint32_t v = 0; v < s->states; v++)
		s->start[v] = rule_start(c->rule, (int)v, o, 1);
	until_parse(o->until, &r->until);
	s->end_right = least_cases(r->until.right, s->cases);
	s->end_within = least_cases(r->until.within, s->cases);
	s->until_error = r->until.error;
	uint64_t most = o->epochs && (!o->updates || o->epochs < o->updates) ? (uint64_t)o->epochs : (uint64_t)o->updates;
	s->most_epochs = (uint32_t)min_u64(most, UINT32_MAX);
	return most <= UINT32_MAX;
}

/* ---- launches ---- */

/* Of initial weights: [links] lowest, width. */
static const double *ranges_make(LaneRun *r)
{
	const Net *net = r->c->net;
	double *range = NEW(&r->c->cx->scratch, 2 * (uint64_t)r->pitch, double);

	for (Unit u = 0; u < net->units; u++)
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++)
			net_weight_range(net, u, l, &range[2 * l], &range[2 * l + 1]);
	return range;
}

static void seed_result(LaneRun *r, uint32_t i)
{
	const LaneResult *from = &r->result[i];
	const float *w = r->w + (uint64_t)i * r->pitch;
	uint64_t links = r->c->net->links, cases = r->source.cases;
	Tally t = { from->error, cases, cases, from->right, from->within, (double)cases };
	mp_seed result = { 0 };
	bool finite = true;

	seed_ends(r->c->opt, &r->until, &t, from->epochs, from->epochs, &result);
	for (uint64_t l = 0; l < links; l++)
		finite &= w[l] - w[l] == 0;
	if (!isfinite(from->error))
		result = (mp_seed){ .failed = 1, .epochs = from->epochs - 1 };
	else if (!finite)
		result = (mp_seed){ .failed = 1, .epochs = from->epochs };
	if (!result.failed)
		floats_fingerprint(w, links, result.fingerprint);
	r->numbers[i] = r->number + (uint64_t)from->number * r->all->ranks;
	result.seed = r->all->first + r->numbers[i];
	r->all->seed[r->numbers[i]] = result;
}

static void results_share(void *arg, uint32_t thread)
{
	LaneRun *r = arg;
	uint32_t threads = host_threads(r->c);
	uint64_t count = r->end - r->first, first = r->first + count * thread / threads;
	uint64_t end = r->first + count * (thread + 1) / threads;

	for (uint64_t i = first; i < end; i++)
		seed_result(r, (uint32_t)i);
	restarts_count(r->all, r->numbers + first, end - first);
}

/* Results up to number `end`, which stages have left since the last call. */
static void results_take(LaneRun *r, uint32_t end)
{
	Cuda *c = r->c;
	uint64_t row = r->pitch * sizeof *r->w, at = r->first = r->end, count = end - r->first;

	r->end = end;
	gpu_download_begin(c->gpu, r->w + at * r->pitch, r->job.end_w + at * r->pitch, count * row, STREAM_COPY);
	gpu_download_begin(c->gpu, r->result + at, r->job.result + at, count * sizeof *r->result, STREAM_COPY);
	gpu_copies_wait(c->gpu);
	host_run(c, results_share, r);
	restarts_report(r->all);
}

/* Where stages end. While seeds are left for all threads, stages only let the host work meanwhile. After that, lanes of
 * a warp become idle one by one: a stage ends whenever half of the seeds have ended, and the next packs the rest into
 * full warps; the last stage has a group of threads per seed. */
static void stages_plan(LaneRun *r, uint32_t count)
{
	uint32_t blocks = r->c->gpu->blocks, lanes = blocks * r->source.threads;
	uint32_t few = r->group_count ? r->group_count : blocks * 128;
	uint32_t each = max_u32(lanes, count / (LANE_STAGES / 2));

	r->stages = 0;
	for (uint64_t n = each; n + lanes < count; n += each)
		r->stop[r->stages++] = (uint32_t)n;
	for (uint32_t left = lanes; left > few; left /= 2)
		if (left < count)
			r->stop[r->stages++] = count - left;
	if (few < count)
		r->stop[r->stages++] = count - few;
	r->stop[r->stages++] = UINT32_MAX;
	assert(r->stages <= LANE_STAGES);
}

static void stage_start(LaneRun *r, uint32_t i)
{
	Cuda *c = r->c;
	const GpuKernel *k = r->group_count && i + 1 == r->stages ? &r->groups : &r->lanes;
	uint32_t *own = r->counter + COUNT_STAGES + 2 * i;

	r->job.stop = r->stop[i];
	r->job.list_count = own;
	r->job.list_taken = own + 1;
	r->job.handed_over_count = own + 2;
	r->job.list = r->list[i % 2];
	r->job.handed_over = r->list[(i + 1) % 2];
	gpu_start(c->gpu, k, &r->job, c->gpu->blocks, STREAM_COMPUTE);
	gpu_download_begin(c->gpu, &r->ended[i], r->job.ended, sizeof *r->ended, STREAM_COMPUTE);
	gpu_event_record(c->gpu, r->event[i]);
}

/* Trains up to `most` seeds. False: none is left. */
static bool lanes_launch(LaneRun *r, uint64_t most)
{
	Cuda *c = r->c;
	uint32_t count = (uint32_t)restarts_take_some(r->all, most, &r->number);
	static const uint32_t zero[COUNTERS];

	if (!count)
		return false;
	stages_plan(r, count);
	r->first = r->end = 0;
	r->job.count = count;
	r->job.stride = r->all->ranks;
	r->job.first = r->all->first + r->number;
	gpu_upload(c->gpu, r->counter, zero, sizeof zero);
	r->job.mode = LANES_MAKE;
	gpu_start(c->gpu, &r->lanes, &r->job, c->gpu->blocks, STREAM_COMPUTE);
	r->job.mode = LANES_TRAIN;
	for (uint32_t i = 0; i < r->stages; i++)
		stage_start(r, i);
	for (uint32_t i = 0; i < r->stages; i++) {
		gpu_event_wait(c->gpu, r->event[i]);
		results_take(r, r->ended[i]);
	}
	assert(r->end == count);
	return true;
}

/* Seeds of a set of launches: they take a few seconds and a quarter of the memory. */
static uint64_t launch_seeds(const LaneRun *r)
{
	double each = (double)r->source.net->links * (double)r->source.cases *
	              (r->source.most_epochs ? (double)r->source.most_epochs : 1e5);
	uint64_t bytes =
		(2 + (uint64_t)r->source.states) * r->pitch * sizeof(float) + sizeof(LaneResult) + sizeof(uint32_t);
	uint64_t fit = max_u64(LEAST_LANES, r->c->gpu->memory / 4 / bytes);

	return min_u64(min_u64(r->all->own, min_u64(fit, MAX_SEEDS)), max_u64(1 << 14, (uint64_t)(1e13 / each)));
}

/* Rule state that every seed begins with: [states][pitch]. */
static const float *starts_make(LaneRun *r)
{
	const Net *net = r->c->net;
	float *start = NEW(&r->c->cx->scratch, (uint64_t)r->source.states * r->pitch + 1, float);

	for (Unit u = 0; u < net->units; u++)
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++)
			for (uint32_t v = 0; v < r->source.states; v++)
				start[(uint64_t)v * r->pitch + l] = (float)(r->source.start[v] * (double)net_block(net, u, l)->rate);
	return start;
}

static void kernels_load(LaneRun *r, DeviceMemory *memory)
{
	Cuda *c = r->c;
	Buf text = { .arena = &c->cx->scratch }, group_text = { .arena = &c->cx->scratch };
	LaneSource s = r->source;
	uint32_t threads = group_threads(&s), links = 0;

	lanes_text(&s, &c->cx->scratch, &text, &r->lanes.shared);
	r->lanes.threads = s.threads;
	gpu_load(memory, text.s, text.len, &r->lanes);
	if (c->gpu->driver)
		s.threads = r->pitch <= GROUP_LINKS ? GROUP_THREADS : GROUP_THREADS / 2;
	s.threads = s.threads / 32 * 32;
	if (threads && s.threads)
		groups_text(&s, &c->cx->scratch, &group_text, &r->groups.shared);
	buf_add(&text, group_text.s, group_text.len);
	text_dump(c, &text, NULL);
	if (!group_text.len || r->groups.shared > c->gpu->block_shared)
		return;
	r->groups.threads = s.threads;
	gpu_load(memory, group_text.s, group_text.len, &r->groups);
	const GroupLink *link = group_links(&s, &links);
	r->job.link = device_put(memory, link, links * sizeof *link);
	r->group_count = c->gpu->blocks * s.threads / threads;
}

/* Device arrays of up to `seeds` seeds, and pinned arrays that results return to. */
static void seeds_alloc(LaneRun *r, DeviceMemory *m, uint64_t seeds)
{
	LaneJob *j = &r->job;
	uint64_t rows = seeds * r->pitch * sizeof *r->w;

	j->w = device_alloc(m, rows);
	j->result = device_alloc(m, seeds * sizeof *r->result);
	j->end_w = device_alloc(m, rows);
	j->state = device_alloc(m, rows * r->source.states);
	j->epoch = device_alloc(m, seeds * sizeof *j->epoch);
	r->counter = device_alloc(m, COUNTERS * sizeof *r->counter);
	j->next = r->counter + COUNT_NEXT;
	j->ended = r->counter + COUNT_ENDED;
	for (uint32_t i = 0; i < 2; i++)
		r->list[i] = device_alloc(m, (uint64_t)r->c->gpu->blocks * r->source.threads * sizeof *r->list[i]);
	r->w = gpu_host_memory(m, rows);
	r->result = gpu_host_memory(m, seeds * sizeof *r->result);
	r->ended = gpu_host_memory(m, LANE_STAGES * sizeof *r->ended);
	r->numbers = NEW(&r->c->cx->scratch, seeds + 1, uint64_t);
	for (uint32_t i = 0; i < LANE_STAGES; i++)
		r->event[i] = gpu_event(m);
}

/* What all seeds share: data, initial weights and state. */
static void tables_put(LaneRun *r, DeviceMemory *m)
{
	const LaneSource *s = &r->source;
	LaneJob *j = &r->job;
	const SparsePlan *sparse = sparse_plan(s);

	j->range = device_put(m, ranges_make(r), 2 * (uint64_t)r->pitch * sizeof(double));
	if (sparse)
		j->rows = device_put(m, sparse_rows(s, sparse), s->cases * sparse->row_words * sizeof(uint32_t));
	j->start = device_put(m, starts_make(r), (uint64_t)s->states * r->pitch * sizeof(float));
	j->x = device_put(m, s->x, s->cases * s->net->inputs * sizeof(float));
	j->y = device_put(m, s->y, s->cases * s->net->outputs * sizeof(float));
	j->target_class = device_put(m, s->target_class, s->cases * sizeof *s->target_class);
}

bool lanes_run(Cuda *c, Restarts *all)
{
	if (!lanes_fit(c, all))
		return false;
	LaneRun *r = NEW(&c->cx->scratch, 1, LaneRun);
	DeviceMemory *memory = &c->calls; /* kept until the program ends: freeing takes longer than training */

	r->c = c;
	r->all = all;
	if (!source_make(r))
		return false;
	r->pitch = (uint32_t)round_up(c->net->links, 4);
	all->parallel = min_u64((uint64_t)c->gpu->blocks * r->source.threads, all->own);
	uint64_t most = launch_seeds(r);
	kernels_load(r, memory);
	seeds_alloc(r, memory, most);
	tables_put(r, memory);
	all->began = all->reported = clock_seconds(); /* kernels are compiled */
	while (lanes_launch(r, most))
		;
	return true;
}
