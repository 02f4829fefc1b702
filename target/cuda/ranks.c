/* SPDX-License-Identifier: MIT */
/* Ranks: processes with a GPU each share the leaves of a batch. In: a range of leaves. Out: sums of its maximal
 * subtrees and tallies of its leaves, in memory of the host. Must hold: a subtree of k leaves is joined like a batch
 * of k leaves, so that a job on its leaves alone has the same bits. */
#include <string.h>

#include "cuda.h"

extern const Target target_cpu;

/* The request of this rank. */
typedef struct Shared {
	Cuda *c;
	const Batch *batch;
	uint32_t first, last; /* leaves of this process */
	Share *out;
} Shared;

static void leaves_run(const Shared *s, uint32_t mode, uint32_t first, uint32_t end)
{
	Cuda *c = s->c;
	Tally all = { 0 };

	c->pending_full = false;
	Work w = batch_work(mode, s->batch, &all);
	w.leaf_first = first;
	w.leaf_end = end;
	work_run(c, &w);
	if (mode == JOB_SUM)
		guard_summed(c, &w, first, end - first);
	gpu_download(c->gpu, c->ranks.leaf_tally + first, c->device_tally, (end - first) * sizeof(Tally));
}

/* Sums of the maximal subtrees among leaves low .. high - 1, a subtree. */
static void subtrees_run(const Shared *s, uint32_t low, uint32_t high)
{
	Cuda *c = s->c;

	if (high <= s->first || low >= s->last)
		return;
	if (low < s->first || high > s->last) {
		uint32_t middle = low + leaf_split(high - low);
		subtrees_run(s, low, middle);
		subtrees_run(s, middle, high);
		return;
	}
	leaves_run(s, JOB_SUM, low, high);
	float **to = &c->ranks.sum[s->out->sums];
	if (!*to)
		*to = NEW(&c->cx->keep, c->floats, float);
	gpu_download(c->gpu, *to, c->job.pending, c->floats * sizeof(float));
	s->out->sum[s->out->sums++] = *to;
}

static Status partial_sums(Program *p, const Batch *b, uint32_t first, uint32_t last, bool learn, const StopFlag *stop,
                           Share *out)
{
	Cuda *c = cuda_of(p);
	Shared s = { .c = c, .batch = b, .first = first, .last = last, .out = out };

	if (*stop)
		return MP_STOPPED;
	if (!c->ranks.leaf_tally)
		c->ranks.leaf_tally = NEW(&c->cx->keep, MAX_LEAVES, Tally);
	if (!c->ranks.total || c->ranks.floats != c->floats) { /* the layout may have changed */
		memset(c->ranks.sum, 0, sizeof c->ranks.sum);
		c->ranks.total = NEW(&c->cx->keep, c->floats, float);
		c->ranks.floats = c->floats;
	}
	*out = (Share){ .floats = c->floats, .total = c->ranks.total, .tally = c->ranks.leaf_tally };
	if (first == last)
		return MP_OK;
	if (learn)
		subtrees_run(&s, 0, leaf_count(b->count));
	else
		leaves_run(&s, JOB_TEST, first, last);
	c->pending_full = false;
	return MP_OK;
}

static void add(Program *p, float *into, const float *from, uint64_t floats)
{
	target_cpu.ranks->add(cuda_of(p)->cpu, into, from, floats);
}

static uint64_t sum_floats(const Program *p) { return target_cpu.ranks->sum_floats(cuda_of((Program *)p)->cpu); }

static void use_total(Program *p)
{
	Cuda *c = cuda_of(p);

	gpu_upload(c->gpu, c->job.pending, c->ranks.total, c->floats * sizeof(float));
	c->pending_full = true;
	guard_pending(c);
}

const RankHooks cuda_ranks = {
	.partial_sums = partial_sums, .add = add, .sum_floats = sum_floats, .use_total = use_total
};
