/* SPDX-License-Identifier: MIT */
/* Processes that share the leaves of every batch.  In: each rank's sums of the largest subtrees of its leaves, and their
 * tallies.  Out: on every rank the sum and the tally of the whole batch.
 *
 * Must hold: the bits are those of one process.  So only sums of whole subtrees travel, and they join as the tree of leaves
 * (leaves.c) says, wherever that is done:
 *
 *   together   few weights: everyone gets all sums and joins them all; one message each way
 *   halving    ranks and leaves are powers of two: pairs of ranks exchange halves, then pairs of pairs halves of these, ...; each
 *              ends with a part of the total, and the parts go back the same way
 *   parts      else: each rank joins one part of the weights, for which all others send it theirs; then everyone gets all parts
 *
 * The last two move each weight about twice, whatever the number of ranks.
 *
 * Everyone meets once a batch and says how it went.  A rank that ends early says that it leaves, in a word of the same length,
 * so that the others end too. */
#include <stdio.h>
#include <string.h>

#include "guard.h"
#include "ranks.h"

enum { LANE = 16 };               /* floats: parts begin at multiples */
enum { FEW_FLOATS = 1 << 14 };    /* all sums of a batch together: latency counts, not length */

Ranks *ranks_new(Ctx *cx, const Comm *comm)
{
	Ranks *k = NEW(&cx->keep, 1, Ranks);

	k->comm = comm;
	k->all = NEW(&cx->keep, comm->size, Saying);
	return k;
}

/* ---- meeting ---- */

static void heard(Ctx *cx, const Ranks *k, uint32_t rank)
{
	const Saying *w = &k->all[rank];
	const char *text = w->text, *colon = strstr(text, "error: ");
	int length = (int)strcspn(colon ? colon + 7 : text, "\n");

	fail(cx, w->status == MP_BAD_INPUT ? MP_BAD_INPUT : MP_FAILED, NULL, "rank %u of %u ended early: %.*s", rank, k->comm->size,
	     length ? length : 20, length ? (colon ? colon + 7 : text) : "it said no more");
}

static void say(Ranks *k, int kind)
{
	k->own.kind = kind;
	k->comm->gather(k->comm->self, &k->own, sizeof k->own, k->all);
	for (uint32_t i = 0; i < k->comm->size; i++)
		k->gone |= k->all[i].kind != kind;
}

void ranks_meet(Ctx *cx, Ranks *k, int kind)
{
	say(k, kind);
	for (uint32_t i = 0; i < k->comm->size; i++)
		if (k->all[i].kind == SAY_LEAVE)
			heard(cx, k, i);
}

void ranks_same(Ctx *cx, Ranks *k)
{
	static const struct { const char *what, *remedy; } same[SAMES] = {
		[SAME_PROGRAM] = { "another microprop", "install the same program on all hosts" },
		[SAME_NET] = { "another network", "give all ranks the same topology file" },
		[SAME_OPTIONS] = { "other options", "start all ranks with the same options" },
		[SAME_DATA] = { "other data", "give all ranks the same data" },
		[SAME_TEST] = { "other test data", "give all ranks the same data" },
		[SAME_WEIGHTS] = { "other weights to begin with", "resume all ranks from the same checkpoint" },
	};

	for (uint32_t i = 1; i < k->comm->size; i++)
		for (int s = 0; s < SAMES; s++)
			if (k->all[i].same[s] != k->all[0].same[s]) {
				k->gone = true;             /* all see it and leave without another word */
				fail(cx, MP_BAD_INPUT, same[s].remedy, "rank %u has %s than rank 0", i, same[s].what);
			}
}

void ranks_look(Ctx *cx, Ranks *k, int which, const Data *d, const ErrorFn *e, Glance *of)
{
	*of = (Glance){ 0 };
	for (uint32_t i = 0; i < k->comm->size; i++)
		look_add(of, &k->all[i].look[which]);
	k->gone = true;                             /* if there is something wrong, all say so themselves */
	look_tell(cx, d, e, of);
	k->gone = false;
}

void ranks_leave(Ranks *k, int status, const char *text)
{
	if (k->gone)
		return;
	k->own = (Saying){ .status = status };
	snprintf(k->own.text, sizeof k->own.text, "%s", text);
	say(k, SAY_LEAVE);
	for (uint32_t i = 0; i < k->comm->size; i++)
		k->own.status = k->all[i].status > k->own.status ? k->all[i].status : k->own.status;
}

/* ---- who has which leaves ---- */

/* The place near `at` that the highest power of two divides. */
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
	*first = *end = begin + count;
	if (low < leaves)
		leaf_range(count, leaves, low, first, &unused), *first += begin;
	if (high < leaves)
		leaf_range(count, leaves, high, end, &unused), *end += begin;
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

uint32_t rank_sums(uint32_t leaves, uint32_t ranks, uint32_t rank)
{
	uint32_t first, last;

	rank_leaves(leaves, ranks, rank, &first, &last);
	return subtree_count(leaves, first, last);
}

uint32_t ranks_sums(uint32_t leaves, uint32_t ranks)
{
	uint32_t sums = 0;

	for (uint32_t i = 0; i < ranks; i++)
		sums += rank_sums(leaves, ranks, i);
	return sums;
}

/* The same; with many ranks it is worth remembering. */
static uint32_t all_sums(Ranks *k, uint32_t leaves)
{
	if (k->counted_leaves != leaves) {
		k->counted_leaves = leaves;
		k->counted_sums = ranks_sums(leaves, k->comm->size);
	}
	return k->counted_sums;
}

static bool power_of_two(uint32_t n)
{
	return n && (n & (n - 1)) == 0;
}

int ranks_way(uint64_t floats, uint32_t sums, uint32_t leaves, uint32_t ranks)
{
	if (floats * sums <= FEW_FLOATS)
		return WAY_TOGETHER;
	return power_of_two(ranks) && power_of_two(leaves) && leaves >= ranks ? WAY_HALVING : WAY_PARTS;
}

/* ---- joining ---- */

/* Walks the tree down to subtrees that one rank has; these come in order. */
typedef struct Joining {
	Run *r;
	uint32_t leaves, rank;            /* rank: whose leaves the walk is in */
	uint32_t next;                    /* tallies of that rank, or own sums, used so far */
	uint64_t first, floats;           /* part of the weights */
	float *const *own;                /* own sums */
	float *in;                        /* the next of the others' */
} Joining;

/* Does one rank have all leaves of [first, end)?  Then the walk is in its leaves. */
static bool one_has(Joining *j, uint32_t first, uint32_t end)
{
	const Comm *c = j->r->ranks->comm;
	uint32_t low, high;

	for (rank_leaves(j->leaves, c->size, j->rank, &low, &high); first >= high; rank_leaves(j->leaves, c->size, j->rank, &low, &high)) {
		j->rank++;
		j->next = 0;
	}
	return end <= high;
}

static float *join_sums(Joining *j, uint32_t first, uint32_t end)
{
	if (one_has(j, first, end)) {
		float *sum = j->in;
		if (j->rank == j->r->ranks->comm->rank)
			return j->own[j->next++] + j->first;
		j->in += j->floats;
		return sum;
	}
	uint32_t middle = first + leaf_split(end - first);
	float *a = join_sums(j, first, middle), *b = join_sums(j, middle, end);
	j->r->target->join(j->r->program, a, b, j->floats);
	return a;
}

static Tally join_tallies(Joining *j, uint32_t first, uint32_t end)
{
	if (one_has(j, first, end))
		return j->r->ranks->all[j->rank].tally[j->next++];
	uint32_t middle = first + leaf_split(end - first);
	Tally a = join_tallies(j, first, middle), b = join_tallies(j, middle, end);
	tally_add(&a, &b);
	return a;
}

/* Tallies of the largest subtrees of [low, high), in order. */
static void own_tallies(Saying *w, const Tally *leaf, uint32_t first, uint32_t end, uint32_t low, uint32_t high)
{
	if (end <= low || first >= high)
		return;
	if (first >= low && end <= high) {
		w->tally[w->tallies++] = tally_leaves(leaf, first, end);
		return;
	}
	uint32_t middle = first + leaf_split(end - first);
	own_tallies(w, leaf, first, middle, low, high);
	own_tallies(w, leaf, middle, end, low, high);
}

/* ---- sums of all ranks ---- */

static void put(Ranks *k, const float *from, uint64_t floats, uint32_t to)
{
	if (floats)
		k->comm->send(k->comm->self, from, floats * sizeof *from, to);
	k->sent += floats * sizeof *from;
}

static void get(Ranks *k, float *to, uint64_t floats, uint32_t from)
{
	if (floats)
		k->comm->receive(k->comm->self, to, floats * sizeof *to, from);
}

uint64_t part_first(uint64_t floats, uint32_t part, uint32_t parts)
{
	return floats / LANE * part / parts * LANE;
}

/* Floats first .. first + floats - 1 of all others' sums, in the order of ranks, are on their way to the inbox. */
static void get_all(Ranks *k, uint32_t leaves, uint64_t floats)
{
	float *in = k->inbox;

	for (uint32_t i = 0; i < k->comm->size; i++)
		for (uint32_t n = i == k->comm->rank ? 0 : rank_sums(leaves, k->comm->size, i); n; n--, in += floats)
			get(k, in, floats, i);
}

static void sum_together(Run *r, Share *s, uint32_t leaves)
{
	Ranks *k = r->ranks;
	Joining j = { .r = r, .leaves = leaves, .floats = s->floats, .own = s->sum, .in = k->inbox };

	get_all(k, leaves, s->floats);
	for (uint32_t i = 1; i < k->comm->size; i++)
		for (uint32_t n = 0; n < s->sums; n++)
			put(k, s->sum[n], s->floats, (k->comm->rank + i) % k->comm->size);
	k->comm->wait(k->comm->self);
	memcpy(s->total, join_sums(&j, 0, leaves), s->floats * sizeof *s->total);
}

static void sum_parts(Run *r, Share *s, uint32_t leaves)
{
	Ranks *k = r->ranks;
	uint32_t size = k->comm->size, rank = k->comm->rank;
	uint64_t first = part_first(s->floats, rank, size), floats = part_first(s->floats, rank + 1, size) - first;
	Joining j = { .r = r, .leaves = leaves, .first = first, .floats = floats, .own = s->sum, .in = k->inbox };

	get_all(k, leaves, floats);
	for (uint32_t i = 1; i < size; i++) {
		uint32_t to = (rank + i) % size;
		uint64_t begin = part_first(s->floats, to, size), end = part_first(s->floats, to + 1, size);
		for (uint32_t n = 0; n < s->sums; n++)
			put(k, s->sum[n] + begin, end - begin, to);
	}
	k->comm->wait(k->comm->self);
	memcpy(s->total + first, join_sums(&j, 0, leaves), floats * sizeof *s->total);
	for (uint32_t i = 1; i < size; i++) {
		uint32_t from = (rank + size - i) % size;
		uint64_t begin = part_first(s->floats, from, size);
		get(k, s->total + begin, part_first(s->floats, from + 1, size) - begin, from);
		put(k, s->total + first, floats, (rank + i) % size);
	}
	k->comm->wait(k->comm->self);
}

static void sum_halving(Run *r, Share *s)
{
	Ranks *k = r->ranks;
	uint32_t rank = k->comm->rank, size = k->comm->size, steps = 0;
	uint64_t low = 0, high = s->floats, cut[32], end[32];
	float *v = s->sum[0];

	for (uint32_t bit = 1; bit < size; bit *= 2, steps++) {
		uint64_t middle = low + (high - low) / 2 / LANE * LANE;
		bool upper = rank & bit;
		cut[steps] = upper ? low : middle;          /* what the other one keeps: cut .. end */
		end[steps] = upper ? middle : high;
		low = upper ? middle : low;
		high = upper ? high : middle;
		get(k, k->inbox, high - low, rank ^ bit);
		put(k, v + cut[steps], end[steps] - cut[steps], rank ^ bit);
		k->comm->wait(k->comm->self);
		if (high > low)
			r->target->join(r->program, v + low, k->inbox, high - low);
	}
	while (steps-- > 0) {
		get(k, v + cut[steps], end[steps] - cut[steps], rank ^ 1u << steps);
		put(k, v + low, high - low, rank ^ 1u << steps);
		k->comm->wait(k->comm->self);
		low = cut[steps] < low ? cut[steps] : low;
		high = end[steps] > high ? end[steps] : high;
	}
	memcpy(s->total, v, s->floats * sizeof *s->total);
}

/* In an order that nobody knows. */
static void sum_library(Run *r, Share *s)
{
	Ranks *k = r->ranks;

	memset(s->total, 0, s->floats * sizeof *s->total);
	for (uint32_t i = 0; i < s->sums; i++)
		r->target->join(r->program, s->total, s->sum[i], s->floats);
	k->comm->add(k->comm->self, s->total, s->floats);
}

void ranks_sum(Run *r, Share *s, uint32_t leaves)
{
	Ranks *k = r->ranks;
	int way = ranks_way(s->floats, all_sums(k, leaves), leaves, k->comm->size);

	if (k->library)
		sum_library(r, s);
	else if (way == WAY_TOGETHER)
		sum_together(r, s, leaves);
	else if (way == WAY_HALVING)
		sum_halving(r, s);
	else
		sum_parts(r, s, leaves);
	r->target->shared(r->program);
}

void ranks_room(Ctx *cx, Ranks *k, uint64_t floats, uint64_t examples)
{
	uint32_t leaves = leaf_count(examples), sums = all_sums(k, leaves), size = k->comm->size;
	uint64_t part = floats / size + LANE, room = (ranks_way(floats, sums, leaves, size) == WAY_TOGETHER ? floats : part) * sums;

	room = room > floats / 2 + LANE ? room : floats / 2 + LANE;
	if (room > k->room) {
		k->inbox = arena_alloc(&cx->keep, room, sizeof *k->inbox);
		k->room = room;
	}
}

/* ---- a batch ---- */

/* All ranks have the same weights.  One that differs is named, if most agree. */
static void same_guards(Run *r, Ranks *k)
{
	for (uint32_t i = 0; i < k->comm->size; i++) {
		uint32_t others = 0;
		for (uint32_t j = 0; j < k->comm->size; j++)
			others += k->all[j].guard != k->all[i].guard;
		if (2 * others < k->comm->size)
			continue;
		k->gone = true;                             /* all see it and leave without another word */
		guard_rank(r, 2 * others > k->comm->size || k->comm->size > 2 ? i : UINT32_MAX);
	}
}

Status ranks_batch(Run *r, const Batch *b, bool learn, const volatile int *stop, Tally *t)
{
	Ranks *k = r->ranks;
	uint32_t leaves = leaf_count(b->count), first, last;
	Share s;
	bool stopped = false;

	rank_leaves(leaves, k->comm->size, k->comm->rank, &first, &last);
	Status status = r->target->share(r->program, b, first, last, learn, stop, &s);
	k->own = (Saying){ .status = status, .stop = *stop != 0, .seconds = clock_seconds(), .guard = learn ? guard_word(r->guard) : 0 };
	if (status == MP_OK)
		own_tallies(&k->own, s.tally, 0, leaves, first, last);
	ranks_meet(&r->cx, k, SAY_BATCH);
	for (uint32_t i = 0; i < k->comm->size; i++) {
		k->stop |= k->all[i].stop;
		stopped |= k->all[i].status == MP_STOPPED;
	}
	same_guards(r, k);
	k->seconds = k->all[0].seconds;
	if (stopped) {
		k->stop = true;
		return MP_STOPPED;
	}
	Joining j = { .r = r, .leaves = leaves };
	Tally all = join_tallies(&j, 0, leaves);
	tally_add(t, &all);
	if (learn)
		ranks_sum(r, &s, leaves);
	return MP_OK;
}
