/* SPDX-License-Identifier: MIT */
/* A batch shared by ranks. In: each rank's sums of the maximal subtrees of its leaves, and their tallies. Out: on every
 * rank the sum and the tally of the whole batch.
 *
 * The bits are those of one process: only sums of whole subtrees are sent, and they are added in the order of the tree
 * of leaves (leaves.c), by one of three algorithms:
 *
 *   gather    few weights: allgather of all sums, and every rank adds them all; one message each way
 *   halving   ranks and leaves are powers of two: recursive halving (pairs of ranks exchange halves, then pairs of
 *             pairs halves of these, ...), so that each rank has a slice of the total; then recursive doubling
 *   scatter   else: every rank sends slice i of its sums to rank i, which adds them; then an allgather of the slices
 *
 * The last two send each weight about twice, whatever the number of ranks. */
#include <assert.h>
#include <string.h>

#include "ranks.h"

enum { LANE = 16 };            /* floats: slices begin at multiples */
enum { FEW_FLOATS = 1 << 14 }; /* all sums of a batch together: latency counts, not bandwidth */

static bool power_of_two(uint32_t n) { return n && (n & (n - 1)) == 0; }

/* ---- leaves of a rank ---- */

/* The leaf near `at` that the highest power of two divides. */
static uint32_t round_place(uint32_t at, uint32_t near)
{
	uint32_t low = at > near ? at - near : 0, high = at + near;

	for (uint32_t step = MAX_LEAVES; step > 1; step /= 2) {
		uint32_t place = (at + step / 2) / step * step;
		if (place >= low && place <= high && place)
			return place;
	}
	return at;
}

static uint32_t rank_first(uint32_t leaves, uint32_t ranks, uint32_t rank)
{
	uint32_t at = (uint32_t)((uint64_t)leaves * rank / ranks);

	return rank == 0 || rank == ranks ? at : round_place(at, leaves / ranks / 32);
}

void rank_leaves(uint32_t leaves, uint32_t ranks, uint32_t rank, uint32_t *first, uint32_t *last)
{
	*first = rank_first(leaves, ranks, rank);
	*last = rank_first(leaves, ranks, rank + 1);
}

void rank_examples(const Ranks *k, uint64_t examples, uint64_t batch, uint64_t i, uint64_t *first, uint64_t *end)
{
	uint64_t begin = i * batch, left = examples - begin, count = left < batch ? left : batch, unused;
	uint32_t leaves = leaf_count(count), low, high;

	rank_leaves(leaves, k->comm->size, k->comm->rank, &low, &high);
	leaf_range(count, leaves, low, first, &unused);
	leaf_range(count, leaves, high, end, &unused); /* the leaf after the last would begin at the end */
	*first += begin;
	*end += begin;
}

bool rank_cases(const Ranks *k, const Net *net, const Data *d, uint64_t batch, uint64_t i, uint64_t *first,
                uint64_t *end)
{
	uint64_t examples = run_examples(net, d), begin, after, unused;

	rank_examples(k, examples, batch, i, &begin, &after);
	*end = d->cases;
	run_example(net, d, begin < examples ? begin : 0, first, &unused);
	if (after < examples)
		run_example(net, d, after, end, &unused);
	return begin < after;
}

static uint32_t count_inside(uint32_t first, uint32_t end, uint32_t low, uint32_t high)
{
	if (end <= low || first >= high)
		return 0;
	if (first >= low && end <= high)
		return 1;
	uint32_t middle = first + leaf_split(end - first);
	return count_inside(first, middle, low, high) + count_inside(middle, end, low, high);
}

uint32_t subtree_count(uint32_t leaves, uint32_t first, uint32_t last)
{
	return leaves ? count_inside(0, leaves, first, last) : 0;
}

/* Sums that a rank sends: one for each of its maximal subtrees. */
static uint32_t rank_sums(uint32_t leaves, uint32_t ranks, uint32_t rank)
{
	uint32_t first, last;

	rank_leaves(leaves, ranks, rank, &first, &last);
	return subtree_count(leaves, first, last);
}

/* Of all ranks; cached, as it takes long with many. */
static uint32_t all_sums(Ranks *k, uint32_t leaves)
{
	if (k->counted_leaves != leaves) {
		k->counted_leaves = leaves;
		k->counted_sums = 0;
		for (uint32_t i = 0; i < k->comm->size; i++)
			k->counted_sums += rank_sums(leaves, k->comm->size, i);
	}
	return k->counted_sums;
}

int reduce_algorithm(uint64_t floats, uint32_t sums, uint32_t leaves, uint32_t ranks)
{
	if (floats * sums <= FEW_FLOATS)
		return REDUCE_GATHER;
	return power_of_two(ranks) && power_of_two(leaves) && leaves >= ranks ? REDUCE_HALVING : REDUCE_SCATTER;
}

/* ---- adding up ---- */

/* Walks down the tree to subtrees that belong to one rank; these come in order. */
typedef struct TreeSum {
	Run *r;
	uint32_t leaves, rank;  /* rank: owner of the current leaves */
	uint32_t next;          /* own sums used so far */
	uint64_t first, floats; /* slice of the weights */
	float *const *own;      /* own sums */
	float *in;              /* next sum of another rank */
} TreeSum;

/* True if one rank, which becomes j->rank, has all leaves of [first, end). */
static bool one_owner(TreeSum *j, uint32_t first, uint32_t end)
{
	const Comm *c = j->r->ranks->comm;
	uint32_t low, high;

	for (rank_leaves(j->leaves, c->size, j->rank, &low, &high); first >= high;
	     rank_leaves(j->leaves, c->size, j->rank, &low, &high)) {
		j->rank++;
		j->next = 0;
	}
	return end <= high;
}

static float *tree_sum(TreeSum *j, uint32_t first, uint32_t end)
{
	if (one_owner(j, first, end)) {
		float *sum = j->in;
		if (j->rank == j->r->ranks->comm->rank)
			return j->own[j->next++] + j->first;
		j->in += j->floats;
		return sum;
	}
	uint32_t middle = first + leaf_split(end - first);
	float *a = tree_sum(j, first, middle), *b = tree_sum(j, middle, end);
	j->r->target->ranks->add(j->r->program, a, b, j->floats);
	return a;
}

void own_tallies(Message *m, const Tally *leaf, uint32_t first, uint32_t end, uint32_t low, uint32_t high)
{
	if (end <= low || first >= high)
		return;
	if (first >= low && end <= high) {
		m->tally[m->tallies++] = tally_leaves(leaf, first, end);
		return;
	}
	uint32_t middle = first + leaf_split(end - first);
	own_tallies(m, leaf, first, middle, low, high);
	own_tallies(m, leaf, middle, end, low, high);
}

/* ---- allreduce ---- */

static void send_floats(Ranks *k, const float *from, uint64_t floats, uint32_t to)
{
	if (floats)
		k->comm->send(k->comm->self, from, floats * sizeof *from, to);
	k->sent += floats * sizeof *from;
}

static void receive_floats(Ranks *k, float *to, uint64_t floats, uint32_t from)
{
	if (floats)
		k->comm->receive(k->comm->self, to, floats * sizeof *to, from);
}

uint64_t slice_first(uint64_t floats, uint32_t slice, uint32_t slices) { return floats / LANE * slice / slices * LANE; }

/* Start to receive `floats` of every sum of the other ranks, in the order of ranks. */
static void receive_all(Ranks *k, uint32_t leaves, uint64_t floats)
{
	float *in = k->received;

	for (uint32_t i = 0; i < k->comm->size; i++)
		for (uint32_t n = i == k->comm->rank ? 0 : rank_sums(leaves, k->comm->size, i); n; n--, in += floats)
			receive_floats(k, in, floats, i);
}

static void reduce_gather(Run *r, Share *s, uint32_t leaves)
{
	Ranks *k = r->ranks;
	TreeSum j = { .r = r, .leaves = leaves, .floats = s->floats, .own = s->sum, .in = k->received };

	receive_all(k, leaves, s->floats);
	for (uint32_t i = 1; i < k->comm->size; i++)
		for (uint32_t n = 0; n < s->sums; n++)
			send_floats(k, s->sum[n], s->floats, (k->comm->rank + i) % k->comm->size);
	k->comm->wait(k->comm->self);
	memcpy(s->total, tree_sum(&j, 0, leaves), s->floats * sizeof *s->total);
}

static void reduce_scatter(Run *r, Share *s, uint32_t leaves)
{
	Ranks *k = r->ranks;
	uint32_t size = k->comm->size, rank = k->comm->rank;
	uint64_t first = slice_first(s->floats, rank, size), floats = slice_first(s->floats, rank + 1, size) - first;
	TreeSum j = { .r = r, .leaves = leaves, .first = first, .floats = floats, .own = s->sum, .in = k->received };

	receive_all(k, leaves, floats);
	for (uint32_t i = 1; i < size; i++) {
		uint32_t to = (rank + i) % size;
		uint64_t begin = slice_first(s->floats, to, size), end = slice_first(s->floats, to + 1, size);
		for (uint32_t n = 0; n < s->sums; n++)
			send_floats(k, s->sum[n] + begin, end - begin, to);
	}
	k->comm->wait(k->comm->self);
	memcpy(s->total + first, tree_sum(&j, 0, leaves), floats * sizeof *s->total);
	for (uint32_t i = 1; i < size; i++) {
		uint32_t from = (rank + size - i) % size;
		uint64_t begin = slice_first(s->floats, from, size);
		receive_floats(k, s->total + begin, slice_first(s->floats, from + 1, size) - begin, from);
		send_floats(k, s->total + first, floats, (rank + i) % size);
	}
	k->comm->wait(k->comm->self);
}

static void reduce_halving(Run *r, Share *s)
{
	Ranks *k = r->ranks;
	uint32_t rank = k->comm->rank, size = k->comm->size, steps = 0;
	uint64_t low = 0, high = s->floats, cut[32], end[32];
	float *v = s->sum[0];

	for (uint32_t bit = 1; bit < size; bit *= 2, steps++) {
		uint64_t middle = low + (high - low) / 2 / LANE * LANE;
		bool upper = rank & bit;
		cut[steps] = upper ? low : middle; /* what the other one keeps: cut .. end */
		end[steps] = upper ? middle : high;
		low = upper ? middle : low;
		high = upper ? high : middle;
		receive_floats(k, k->received, high - low, rank ^ bit);
		send_floats(k, v + cut[steps], end[steps] - cut[steps], rank ^ bit);
		k->comm->wait(k->comm->self);
		if (high > low)
			r->target->ranks->add(r->program, v + low, k->received, high - low);
	}
	memcpy(s->total + low, v + low, (high - low) * sizeof *v);
	while (steps-- > 0) {
		receive_floats(k, s->total + cut[steps], end[steps] - cut[steps], rank ^ 1u << steps);
		send_floats(k, s->total + low, high - low, rank ^ 1u << steps);
		k->comm->wait(k->comm->self);
		low = cut[steps] < low ? cut[steps] : low;
		high = end[steps] > high ? end[steps] : high;
	}
}

/* By the MPI library, in an order that is not known. */
static void reduce_mpi(Run *r, Share *s)
{
	Ranks *k = r->ranks;

	memset(s->total, 0, s->floats * sizeof *s->total);
	for (uint32_t i = 0; i < s->sums; i++)
		r->target->ranks->add(r->program, s->total, s->sum[i], s->floats);
	k->comm->allreduce(k->comm->self, s->total, s->floats);
}

void ranks_allreduce(Run *r, Share *s, uint32_t leaves)
{
	Ranks *k = r->ranks;
	int algorithm = reduce_algorithm(s->floats, all_sums(k, leaves), leaves, k->comm->size);

	if (k->mpi_sum)
		reduce_mpi(r, s);
	else if (algorithm == REDUCE_GATHER)
		reduce_gather(r, s, leaves);
	else if (algorithm == REDUCE_HALVING)
		reduce_halving(r, s);
	else
		reduce_scatter(r, s, leaves);
	r->target->ranks->use_total(r->program);
}

void ranks_reserve(Ctx *cx, Ranks *k, uint64_t floats, uint64_t examples)
{
	uint32_t leaves = leaf_count(examples), sums = all_sums(k, leaves), size = k->comm->size;
	uint64_t slice = floats / size + LANE,
			 capacity = (reduce_algorithm(floats, sums, leaves, size) == REDUCE_GATHER ? floats : slice) * sums;

	capacity = max_u64(capacity, floats / 2 + LANE);
	if (capacity > k->capacity) {
		k->received = arena_alloc(&cx->keep, capacity, sizeof *k->received);
		k->capacity = capacity;
	}
}

/* ---- a batch ---- */

/* NULL: all ranks have the same weights; else the mismatch. A rank in the minority is named, if there is a majority. */
static const char *weights_mismatch(Run *r, const Ranks *k)
{
	Buf b = { .arena = &r->cx.scratch };
	const Vote *v = k->all.vote;
	uint32_t minority = UINT32_MAX;
	bool majority = false;

	if (v[0].ranks == k->comm->size)
		return NULL;
	for (int i = 0; i < VOTES && v[i].ranks; i++) {
		bool is_majority = 2 * v[i].ranks > k->comm->size;
		majority |= is_majority;
		minority = is_majority ? minority : min_u32(minority, v[i].first);
	}
	if (!majority)
		return "the ranks' weights differ";
	buf_printf(&b, "rank %u has other weights than most", minority);
	return b.s;
}

Status ranks_vote(Run *r, Message own, int kind)
{
	Ranks *k = r->ranks;
	const RankObserver *o = k->observer;

	own.vote[0] = (Vote){ .ranks = 1, .first = k->comm->rank };
	if (o)
		TRY(o->before_vote(k->observer_self, &own));
	k->own = own;
	bool requested = ranks_exchange(&r->cx, k, kind);
	const char *mismatch = requested ? NULL : weights_mismatch(r, k);
	k->due = requested || mismatch ? 0 : k->all.due;
	if (!requested && !mismatch)
		return MP_OK;
	assert(o);
	o->roll_back(k->observer_self, mismatch);
	return ROLLED_BACK;
}

Status ranks_batch(Run *r, const Batch *b, bool learn, const StopFlag *stop, Tally *t)
{
	Ranks *k = r->ranks;
	uint32_t leaves = leaf_count(b->count), first, last;
	Share s;

	rank_leaves(leaves, k->comm->size, k->comm->rank, &first, &last);
	Status status = r->target->ranks->partial_sums(r->program, b, first, last, learn, stop, &s);
	Message own = { .status = status,
		            .stop = *stop != 0,
		            .stopped = status == MP_STOPPED,
		            .seconds = r->at.seconds,
		            .leaves = leaves };
	if (status == MP_OK)
		own_tallies(&own, s.tally, 0, leaves, first, last);
	TRY(ranks_vote(r, own, MSG_BATCH));
	k->stop |= k->all.stop;
	k->seconds = k->all.seconds;
	if (k->all.stopped) {
		k->stop = true;
		return MP_STOPPED;
	}
	assert(k->all.tallies == 1);
	tally_add(t, &k->all.tally[0]);
	if (learn)
		ranks_allreduce(r, &s, leaves);
	if (learn && k->observer)
		k->observer->after_reduce(k->observer_self, b);
	return MP_OK;
}
