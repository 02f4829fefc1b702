/* SPDX-License-Identifier: MIT */
/* Requests that take several jobs: on streamed data, or with an order of examples. In: a request of any size. Out:
 * jobs, of which one is prepared while the one before runs. Must hold: the same sums and tallies as of a single job.
 *
 * Updates that fit into a slot stay whole. A larger batch, or a test, is divided into ranges of leaves; the host
 * joins their sums in the order of doc/arithmetic.md. */
#include <assert.h>
#include <string.h>

#include "cuda.h"

extern const Target target_cpu;

/* Cases of some examples, at most. */
static uint64_t max_cases(const Cuda *c, uint64_t examples) { return examples * c->bound->longest; }

bool stream_fits(const Cuda *c, uint64_t batch)
{
	return !c->bound->streamed || max_cases(c, batch) <= c->bound->slot_cases;
}

/* ---- updates ---- */

/* The rest of a request after `done` updates. */
static Work work_after(const Work *w, uint64_t done)
{
	Work rest = *w;

	for (uint64_t k = 0; k < done; k++) {
		uint64_t n = min_u64(w->batch, w->examples - rest.done);
		rest.example = rest.example ? rest.example + n : NULL;
		rest.done = rest.done + n == w->examples ? 0 : rest.done + n;
		if (!rest.done) {
			rest.tally++;
			rest.epoch++;
			rest.epochs--;
		}
	}
	rest.count -= done;
	rest.passed += done;
	rest.update += w->same ? 0 : done;
	rest.first_update += done;
	return rest;
}

static uint64_t updates_run(Cuda *c, const Work *w)
{
	JobRun run[SLOTS];
	Work rest = *w;
	uint64_t done = 0;

	bool more = job_prepare(c, &rest, &run[0]);
	for (uint32_t k = 0; more; k++) {
		JobRun *r = &run[k % SLOTS];
		uint64_t planned = r->updates;
		job_start(c, r, k ? r->work.tally : NULL);
		rest = work_after(&r->work, planned);
		more = rest.count && rest.epochs && job_prepare(c, &rest, &run[(k + 1) % SLOTS]);
		uint64_t some = job_finish(c, r);
		done += some;
		more &= some == planned && !c->last.stop && !c->last.infinite && !(w->lazy && *w->lazy->stop);
	}
	return done;
}

/* ---- ranges of leaves ---- */

/* A subtree of leaves that fits into a slot. */
typedef struct LeafRange {
	uint32_t first, end;
	uint32_t joins; /* of the two topmost sums of the stack, after this range */
} LeafRange;

typedef struct Ranges {
	Cuda *c;
	const Work *w;
	uint64_t examples; /* of the batch */
	uint32_t leaves;   /* of the batch */
	uint32_t count;
	LeafRange range[MAX_LEAVES]; /* [count] in order */
} Ranges;

static uint64_t range_examples(const Ranges *r, uint32_t first, uint32_t end)
{
	uint64_t low, high, n;

	leaf_range(r->examples, r->leaves, first, &low, &n);
	leaf_range(r->examples, r->leaves, end - 1, &high, &n);
	return high + n - low;
}

/* Divides a subtree until its parts fit. */
static void ranges_cut(Ranges *r, uint32_t first, uint32_t end)
{
	const Cuda *c = r->c;

	if (max_cases(c, range_examples(r, first, end)) <= c->bound->slot_cases) {
		r->range[r->count++] = (LeafRange){ first, end, 0 };
		return;
	}
	if (end - first == 1)
		fail(c->cx, MP_BAD_INPUT, "use --target cpu, or a smaller batch",
		     "%s has too little memory for %llu examples at a time", c->gpu->name,
		     (unsigned long long)range_examples(r, first, end));
	uint32_t middle = first + leaf_split(end - first);
	ranges_cut(r, first, middle);
	ranges_cut(r, middle, end);
	r->range[r->count - 1].joins++;
}

/* Sums of subtrees that wait for their sibling. */
typedef struct SubtreeSums {
	float *sum[JOIN_LEVELS + 2];
	uint32_t depth;
} SubtreeSums;

/* Pushes Job.pending, then joins as often as a range says. */
static void sum_push(Cuda *c, SubtreeSums *s, uint32_t joins)
{
	float **top = &s->sum[s->depth++];

	if (!*top)
		*top = NEW(&c->temp_sums, c->floats, float);
	gpu_download(c->gpu, *top, c->job.pending, c->floats * sizeof(float));
	for (; joins; joins--, s->depth--)
		target_cpu.ranks->add(c->cpu, s->sum[s->depth - 2], s->sum[s->depth - 1], c->floats);
}

/* A range as a request of its own. A test writes to its part of Work.out. */
static Work range_work(const Ranges *r, const LeafRange *of, Tally *tally)
{
	Work w = *r->w;
	const Cuda *c = r->c;
	uint64_t low, first, begin, n;

	w.leaf_first = of->first;
	w.leaf_end = of->end;
	w.tally = tally;
	w.epochs = 1;
	if (!w.out)
		return w;
	leaf_range(r->examples, r->leaves, of->first, &low, &n);
	run_example(c->net, c->bound->source, r->w->first, &first, &n);
	run_example(c->net, c->bound->source, r->w->first + low, &begin, &n);
	w.out += (begin - first) * c->job.watched_count;
	w.out_cases = 0;
	for (uint64_t e = 0; e < range_examples(r, of->first, of->end); e++) {
		run_example(c->net, c->bound->source, r->w->first + low + e, &begin, &n);
		w.out_cases += n;
	}
	return w;
}

static void ranges_run(Ranges *r, Tally *leaf_tally)
{
	Cuda *c = r->c;
	bool sums = r->w->mode == JOB_SUM, before = c->pending_full;
	JobRun run[SLOTS];
	SubtreeSums stack = { .depth = 0 };
	Tally unused[SLOTS] = { { 0 } }; /* tallies of leaves are read instead */

	if (sums && before)
		sum_push(c, &stack, 0);
	c->pending_full = false;
	Work w = range_work(r, &r->range[0], &unused[0]);
	job_prepare(c, &w, &run[0]);
	for (uint32_t k = 0; k < r->count; k++) {
		const LeafRange *of = &r->range[k];
		job_start(c, &run[k % SLOTS], NULL);
		if (k + 1 < r->count) {
			unused[(k + 1) % SLOTS] = (Tally){ 0 };
			w = range_work(r, of + 1, &unused[(k + 1) % SLOTS]);
			job_prepare(c, &w, &run[(k + 1) % SLOTS]);
		}
		job_finish(c, &run[k % SLOTS]);
		gpu_download(c->gpu, leaf_tally + of->first, c->device_tally, (of->end - of->first) * sizeof(Tally));
		if (sums)
			sum_push(c, &stack, of->joins);
	}
	if (!sums)
		return;
	if (before)
		target_cpu.ranks->add(c->cpu, stack.sum[0], stack.sum[1], c->floats);
	gpu_upload(c->gpu, c->job.pending, stack.sum[0], c->floats * sizeof(float));
	c->pending_full = before;
}

uint64_t stream_run(Cuda *c, const Work *w)
{
	Ranges *r;

	assert(!w->networks);
	if (w->mode == JOB_UPDATE)
		return updates_run(c, w);
	c->temp_sums.cx = c->cx;
	r = NEW(&c->temp_sums, 1, Ranges);
	*r = (Ranges){ .c = c, .w = w, .examples = min_u64(w->batch, w->examples) };
	r->leaves = leaf_count(r->examples);
	uint32_t first = w->leaf_first, end = w->leaf_end ? w->leaf_end : r->leaves;
	Tally *leaf_tally = NEW(&c->temp_sums, r->leaves + 1, Tally);
	if (w->mode == JOB_SUM || !w->leaf_end) {
		ranges_cut(r, first, end);
	} else { /* a test of a rank: leaves need not be a subtree */
		for (uint32_t leaf = first; leaf < end; leaf++)
			ranges_cut(r, leaf, leaf + 1);
	}
	ranges_run(r, leaf_tally);
	if (w->leaf_end) /* a rank reads them there */
		gpu_upload(c->gpu, c->device_tally, leaf_tally + first, (end - first) * sizeof(Tally));
	Tally all = tally_leaves(leaf_tally, first, end);
	tally_add(w->tally, &all);
	arena_free(&c->temp_sums);
	return 1;
}
