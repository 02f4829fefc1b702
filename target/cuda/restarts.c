/* SPDX-License-Identifier: MIT */
/* Restarts on the GPU. In: a program with data bound, seeds. Out: the result that a run with each seed would have.
 *
 * A tiny network has a thread for each seed (emit/lanes.c): the GPU makes the initial weights and trains; the host
 * computes fingerprints. Others have a multiprocessor for each seed (solo.c). What the GPU does not cover, target cpu
 * trains in lanes of its vectors. */
#include <math.h>
#include <string.h>

#include "cuda.h"
#include "emit.h"
#include "pass.h"

extern const Target target_cpu;

enum {
	LANE_LINKS = 256,     /* weights, their changes and state should be registers of a thread */
	LANE_THREADS = 256,   /* of a block: 255 registers each */
	LEAST_SEEDS = 256,    /* fewer are faster on target cpu */
	MOST_SEEDS = 1 << 20, /* of a launch */
};

typedef struct LaneRun {
	Cuda *c;
	Restarts *all;
	LaneSource s;
	LaneJob job;
	Until until;
	uint32_t pitch;
	float *w; /* of the seeds of a launch, on the host */
	LaneResult *result;
	uint64_t *number; /* [count] of the launch's seeds */
} LaneRun;

/* ---- is the network one for lanes? ---- */

static bool lanes_fit(const Cuda *c, const Restarts *all)
{
	const Net *net = c->net;
	const Data *d = c->now->of;
	const Options *o = c->opt;
	const Layout *l = c->cpu->layout;
	uint64_t examples = run_examples(net, d);
	bool full = o->batch == BATCH_ALL || (uint64_t)o->batch >= examples, shuffled = o->shuffle > 0;

	if (net->timed || net->shaped || net->links > LANE_LINKS || net->weights || l->own_errors || d->seq || d->weight ||
	    !d->targets)
		return false;
	if (!full || shuffled || examples > LEAF_EXAMPLES || c->rule->needs_norm || c->rule->needs_count ||
	    o->schedule != SCHEDULE_CONSTANT || o->warmup > 0 || !c->now->right_here)
		return false;
	if (o->error != ERR_SQUARED && o->error != ERR_CROSS_ENTROPY)
		return false;
	for (uint32_t i = 0; i < l->forwards; i++) {
		const Part *p = &l->part[l->forward[i]];
		if (p->fn == FN_SOFTMAX || (p->role == ROLE_OUTPUT && o->error == ERR_CROSS_ENTROPY && p->fn != FN_SIGMOID))
			return false;
	}
	return all->own >= LEAST_SEEDS || !c->gpu->driver;
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

/* False: a target is missing. */
static bool source_data(LaneSource *s, const Data *d)
{
	Arena *a = &s->cx->scratch;
	float *x = NEW(a, d->cases * d->inputs + 1, float), *y = NEW(a, d->cases * d->targets + 1, float);
	uint32_t *top = NEW(a, d->cases + 1, uint32_t);

	s->binary = true;
	for (uint64_t i = 0; i < d->cases; i++) {
		float *row = y + i * d->targets;
		data_x(d, i, x + i * d->inputs);
		data_y(d, i, row);
		for (uint32_t n = 0; n < d->targets; n++) {
			if (isnan(row[n]))
				return false;
			s->binary &= row[n] == 0 || row[n] == 1;
			top[i] = row[n] > row[top[i]] ? n : top[i];
		}
		if (d->targets == 1)
			top[i] = row[0] > s->middle;
	}
	s->x = x;
	s->y = y;
	s->top = top;
	s->cases = d->cases;
	return true;
}

/* The least number of cases whose share reaches what is wanted. */
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
	LaneSource *s = &r->s;
	Update u;

	*s = (LaneSource){ .cx = c->cx,
		               .net = c->net,
		               .formula = &c->formula,
		               .states = (uint32_t)c->rule->states,
		               .error = o->error,
		               .offset = (float)o->prime_offset,
		               .threshold = (float)o->threshold,
		               .middle = c->now->middle,
		               .threads = c->gpu->driver ? LANE_THREADS : c->gpu->emit_threads };
	source_units(s, c->cpu->layout);
	if (!source_data(s, c->now->of))
		return false;
	update_fill(o, 1, 0, 1, &u);
	memcpy(s->param, u.param, sizeof s->param);
	for (uint32_t v = 0; v < s->states; v++)
		s->start[v] = rule_start(c->rule, (int)v, o, 1);
	until_parse(o->until, &r->until);
	s->least_right = least_cases(r->until.right, s->cases);
	s->least_within = least_cases(r->until.within, s->cases);
	s->until_error = r->until.error;
	uint64_t most = o->epochs && (!o->updates || o->epochs < o->updates) ? (uint64_t)o->epochs : (uint64_t)o->updates;
	s->most_epochs = (uint32_t)min_u64(most, UINT32_MAX);
	return most <= UINT32_MAX;
}

/* ---- launches ---- */

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
	uint64_t links = r->c->net->links, cases = r->s.cases;
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
	result.seed = r->all->first + r->number[i];
	r->all->seed[r->number[i]] = result;
}

static void results_share(void *arg, uint32_t thread)
{
	LaneRun *r = arg;
	uint32_t threads = r->c->cpu->pool ? pool_threads(r->c->cpu->pool) : 1;
	uint64_t count = r->job.count, first = count * thread / threads, end = count * (thread + 1) / threads;

	for (uint64_t i = first; i < end; i++)
		seed_result(r, (uint32_t)i);
	restarts_count(r->all, r->number + first, end - first);
}

static bool lanes_launch(LaneRun *r, const GpuKernel *k, uint64_t most)
{
	Cuda *c = r->c;
	uint32_t count = 0, zero = 0;

	while (count < most && restarts_take(r->all, &r->number[count]))
		count++;
	if (!count)
		return false;
	r->job.count = count;
	r->job.stride = r->all->ranks;
	r->job.first = r->all->first + r->number[0];
	gpu_upload(c->gpu, r->job.next, &zero, sizeof zero);
	r->job.mode = LANES_MAKE;
	gpu_launch(c->gpu, k, &r->job, c->gpu->blocks);
	r->job.mode = LANES_TRAIN;
	gpu_launch(c->gpu, k, &r->job, c->gpu->blocks);
	gpu_download(c->gpu, r->w, r->job.w, (uint64_t)count * r->pitch * sizeof *r->w);
	gpu_download(c->gpu, r->result, r->job.result, count * sizeof *r->result);
	if (c->cpu->pool)
		pool_run(c->cpu->pool, results_share, r);
	else
		results_share(r, 0);
	restarts_report(r->all);
	return true;
}

/* As many seeds as a few seconds are enough for. */
static uint64_t launch_seeds(const LaneRun *r)
{
	double each = (double)r->s.net->links * (double)r->s.cases * (r->s.most_epochs ? (double)r->s.most_epochs : 1e5);

	return min_u64(min_u64(r->all->own, MOST_SEEDS), max_u64(1 << 14, (uint64_t)(1e13 / each)));
}

static bool lanes_run(Cuda *c, Restarts *all)
{
	LaneRun *r = NEW(&c->cx->scratch, 1, LaneRun);
	DeviceMemory *memory = &c->calls; /* freed with the program: freeing takes longer than training */
	Buf text = { .arena = &c->cx->scratch };
	GpuKernel *kernel = NEW(&c->cx->keep, 1, GpuKernel);

	r->c = c;
	r->all = all;
	if (!source_make(r))
		return false;
	r->pitch = (uint32_t)round_up(c->net->links, 4);
	uint64_t most = launch_seeds(r), data = r->s.cases * sizeof(float);
	lanes_text(&r->s, &c->cx->scratch, &text);
	text_dump(c, &text, NULL);
	kernel->threads = r->s.threads;
	gpu_load(memory, text.s, text.len, kernel);
	r->job.w = device_alloc(memory, most * r->pitch * sizeof *r->w);
	r->job.result = device_alloc(memory, most * sizeof *r->result);
	r->job.next = device_alloc(memory, sizeof *r->job.next);
	r->job.range = device_put(memory, ranges_make(r), 2 * (uint64_t)r->pitch * sizeof(double));
	r->job.x = device_put(memory, r->s.x, data * c->net->inputs);
	r->job.y = device_put(memory, r->s.y, data * c->net->outputs);
	r->job.top = device_put(memory, r->s.top, r->s.cases * sizeof *r->s.top);
	r->w = gpu_host_memory(memory, most * r->pitch * sizeof *r->w);
	r->result = gpu_host_memory(memory, most * sizeof *r->result);
	r->number = NEW(&c->cx->scratch, most + 1, uint64_t);
	all->began = all->reported = clock_seconds(); /* the kernel is ready */
	while (lanes_launch(r, kernel, most))
		;
	return true;
}

static bool cuda_run_restarts(Ctx *cx, Program *p, Restarts *all)
{
	Cuda *c = cuda_of(p);

	if (c->half) {
		if (!solo_run(c, all))
			fail(cx, MP_BAD_INPUT, "leave --precision out, or use --target cpu",
			     "target cuda has no bf16 kernel for restarts of this network and batch");
		return true;
	}
	if ((lanes_fit(c, all) && lanes_run(c, all)) || solo_run(c, all))
		return true;
	if (target_cpu.restarts->run(cx, c->cpu, all)) {
		all->note =
			"the GPU has no kernel that trains many seeds of this network: target cpu has, with the same results";
		return true;
	}
	all->note = "no kernel trains many seeds of this network at once: the GPU trains one after the other";
	return false;
}

const RestartHooks cuda_restarts = { .run = cuda_run_restarts };
