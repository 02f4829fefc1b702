/* SPDX-License-Identifier: MIT */
/* The report's performance model (section 6.1), applied to ranks. In: a cluster, rates of a rank, a network's counts.
 * Out: seconds of an epoch by phase, for a number of ranks.
 *
 * Which leaves a rank has, which sums are sent and how they are reduced is computed by the functions of ranks.c. A rank
 * that starts k messages of b bytes together and waits takes latency + k overhead + b / bandwidth; it sends and
 * receives at the same time, so the larger of the two counts. The vote before each update is recursive doubling: log2
 * steps. All ranks wait for the slowest: in each phase the busiest rank counts. */
#include <assert.h>
#include <math.h>

#include "model.h"
#include "ranks.h"

static const double ln_2 = 0.69314718055994530942;

/* A batch divided among ranks. */
typedef struct Cut {
	uint32_t leaves, ranks, sums;    /* of the whole batch */
	uint32_t most_leaves, most_sums; /* of one rank */
	uint64_t examples;               /* the most of one rank */
	uint32_t busy;                   /* ranks with a leaf */
	int way;
} Cut;

/* How much slower each of `users` of a resource is if it serves `capacity` at a time; 0: any number. */
static double contention(double users, int64_t capacity)
{
	return capacity && users > (double)capacity ? users / (double)capacity : 1;
}

static double message_seconds(const Cluster *c, const Cut *k, double messages, double bytes)
{
	return 1e-6 * (c->latency + messages * c->overhead * contention(k->ranks, c->cores)) +
	       1e-6 * bytes / c->bandwidth * contention(k->ranks, c->links);
}

static double join_seconds(const Cluster *c, const Rates *r, const Cut *k, double floats)
{
	return floats * r->join * contention(k->ranks, c->cores);
}

static Cut cut_batch(const Workload *w, uint64_t examples, uint32_t ranks)
{
	Cut k = { .leaves = leaf_count(examples), .ranks = ranks };

	for (uint32_t i = 0; i < ranks; i++) {
		uint32_t first, last;
		uint64_t from, to = examples, count;
		rank_leaves(k.leaves, ranks, i, &first, &last);
		if (first == last)
			continue;
		leaf_range(examples, k.leaves, first, &from, &count);
		if (last < k.leaves)
			leaf_range(examples, k.leaves, last, &to, &count);
		uint32_t sums = subtree_count(k.leaves, first, last);
		k.busy++;
		k.sums += sums;
		k.examples = max_u64(k.examples, to - from);
		k.most_leaves = (uint32_t)max_u64(k.most_leaves, last - first);
		k.most_sums = (uint32_t)max_u64(k.most_sums, sums);
	}
	k.way = reduce_algorithm(w->floats, k.sums, k.leaves, ranks);
	return k;
}

/* ---- methods of reduction: seconds; bytes and messages of the busiest rank are added to `out` ---- */

static double reduce_gather(const Cluster *c, const Rates *r, const Workload *w, const Cut *k, Scaling *out)
{
	double floats = (double)w->floats;

	out->messages = (uint64_t)k->most_sums * (k->ranks - 1);
	out->bytes = 4 * w->floats * out->messages;
	double in = k->sums - 1; /* at most */
	double moved = fmax((double)out->messages, in);
	return message_seconds(c, k, moved, 4 * floats * moved) + join_seconds(c, r, k, floats * k->sums);
}

static double reduce_scatter(const Cluster *c, const Rates *r, const Workload *w, const Cut *k, Scaling *out)
{
	uint64_t part = slice_first(w->floats, k->ranks, k->ranks) - slice_first(w->floats, k->ranks - 1, k->ranks);
	double there = (double)((w->floats - part) * k->most_sums), in = (double)part * (k->sums - 1),
		   back = (double)(w->floats - part);
	double messages = fmax((double)k->most_sums * (k->ranks - 1), k->sums - 1);

	out->messages = ((uint64_t)k->most_sums + 1) * (k->ranks - 1);
	out->bytes = 4 * (w->floats - part) * (k->most_sums + 1);
	return message_seconds(c, k, messages, 4 * fmax(there, in)) + join_seconds(c, r, k, (double)part * k->sums) +
	       message_seconds(c, k, k->ranks - 1, 4 * back);
}

static double reduce_halving(const Cluster *c, const Rates *r, const Workload *w, const Cut *k, Scaling *out)
{
	double seconds = 0;
	uint64_t part = w->floats;

	for (uint32_t bit = 1; bit < k->ranks; bit *= 2) {
		uint64_t half = part - slice_first(part, 1, 2); /* the larger one */
		seconds += 2 * message_seconds(c, k, 1, 4.0 * (double)half) + join_seconds(c, r, k, (double)half);
		out->messages += 2;
		out->bytes += 8 * half;
		part = half;
	}
	return seconds;
}

typedef double ReduceFn(const Cluster *c, const Rates *r, const Workload *w, const Cut *k, Scaling *out);
static ReduceFn *const reductions[REDUCES] = {
	[REDUCE_GATHER] = reduce_gather,
	[REDUCE_HALVING] = reduce_halving,
	[REDUCE_SCATTER] = reduce_scatter,
};

static double vote_seconds(const Cluster *c, const Cut *k)
{
	double steps = 0;
	uint32_t reach = 1;

	for (; 2 * reach <= k->ranks; reach *= 2)
		steps++;
	steps += reach < k->ranks ? 2 : 0; /* the ranks beyond a power of two */
	return steps * message_seconds(c, k, 1, sizeof(Message));
}

/* Adds batches of one size to the epoch. */
static void add_batch(const Cluster *c, const Rates *r, const Workload *w, uint64_t examples, double times,
                      Scaling *out)
{
	bool alone = out->ranks == 1 || leaf_count(w->batch) < 2;
	Cut k = cut_batch(w, examples, alone ? 1 : out->ranks);
	double cases = (double)w->cases / (double)w->examples;
	Scaling sent = { .way = -1 };

	double compute = (double)k.examples * cases * r->cases, update = r->update;
	if (k.leaves == 1 && r->alone > 0) { /* measured together: what is not the update is computing */
		double whole = r->alone * (double)examples / (double)w->batch;
		update = fmin(update, whole);
		compute = whole - update;
	}
	out->compute += times * compute * contention((double)k.busy * w->threads, c->cores);
	out->update += times * update * contention((alone ? 1.0 : k.ranks) * w->threads, c->cores);
	if (!alone) {
		sent.way = k.way;
		out->vote += times * vote_seconds(c, &k);
		out->reduce += times * reductions[k.way](c, r, w, &k, &sent);
	}
	if (examples == w->batch) {
		out->leaves = k.most_leaves;
		out->sums = k.most_sums;
		out->way = sent.way;
		out->bytes = sent.bytes;
		out->messages = sent.messages;
	}
}

Scaling scaling_epoch(const Cluster *c, const Rates *r, const Workload *w, uint32_t ranks)
{
	Scaling out = { .ranks = ranks, .way = -1 };
	uint64_t full = w->examples / w->batch, rest = w->examples % w->batch;

	assert(ranks && w->batch <= w->examples);
	add_batch(c, r, w, w->batch, (double)full, &out);
	if (rest)
		add_batch(c, r, w, rest, 1, &out);
	out.total = out.compute + out.reduce + out.vote + out.update;
	out.mcps = 1e-6 * (double)w->links * (double)w->cases / out.total;
	return out;
}

/* A batch takes A / R + L log2 R: A the computing of one rank; L a step of the vote and of the reduction and broadcast.
 * The derivative is 0 at R = A ln 2 / L. */
double scaling_optimum(const Cluster *c, const Rates *r, const Workload *w)
{
	double A = (double)w->batch * (double)w->cases / (double)w->examples * r->cases;
	double L = 1e-6 * (3 * (c->latency + c->overhead) + sizeof(Message) / c->bandwidth);

	return fmax(1, A * ln_2 / L);
}
