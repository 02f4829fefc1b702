/* SPDX-License-Identifier: MIT */
/* Processes that share the leaves of every batch. In: each rank's sums of the largest subtrees of its leaves, and
 * their tallies. Out: on every rank the sum and the tally of the whole batch.
 *
 * Must hold: the bits are those of one process. So only sums of whole subtrees travel, and they join as the tree of
 * leaves (leaves.c) says, wherever that is done:
 *
 *   together   few weights: everyone gets all sums and joins them all; one message each way
 *   halving    ranks and leaves are powers of two: pairs of ranks exchange halves, then pairs of pairs halves of
 *              these, ...; each ends with a part of the total, and the parts go back the same way
 *   parts      else: each rank joins one part of the weights, for which all others send it theirs; then everyone
 *              gets all parts
 *
 * The last two move each weight about twice, whatever the number of ranks.
 *
 * Everyone meets once a batch and says how it went. A rank that ends early says that it leaves, in a word of the
 * same length, so that the others end too. What ranks say adds up on the way, tallies by the same tree: what comes
 * and goes does not grow with their number. */
#include <stdio.h>
#include <string.h>

#include "guard.h"
#include "ranks.h"

enum { LANE = 16 }; /* floats: parts begin at multiples */
enum { NOBODY = UINT32_MAX };
enum { FEW_FLOATS = 1 << 14 }; /* all sums of a batch together: latency counts, not length */

Ranks *ranks_new(Ctx *cx, const Comm *comm)
{
	Ranks *k = NEW(&cx->keep, 1, Ranks);

	k->comm = comm;
	k->programs = NEW(&cx->keep, comm->size, uint64_t);
	return k;
}

/* Other programs may meet in other words, and wait for ever: this is said first, and its form never changes. */
void ranks_greet(Ctx *cx, Ranks *k, uint64_t own)
{
	const Comm *c = k->comm;
	const uint64_t *all = k->programs;
	uint32_t mute = 0, odd = 0;

	c->gather(c->self, &own, sizeof own, k->programs);
	while (mute < c->size && all[mute])
		mute++;
	while (odd < c->size && all[odd] == all[0])
		odd++;
	k->gone = mute < c->size || odd < c->size; /* all see it and leave without another word */
	if (mute < c->size)
		fail(cx, MP_BAD_INPUT, "mount /proc there, and let the program's file be read",
		     "rank %u cannot read its own program, /proc/self/exe", mute);
	if (odd < c->size)
		fail(cx, MP_BAD_INPUT, "install the same program on all hosts", "rank %u has another microprop than rank 0",
		     odd);
}

/* ---- what ranks in a row say ---- */

static bool power_of_two(uint32_t n) { return n && (n & (n - 1)) == 0; }

/* Tallies of the largest subtrees of leaves low .. high - 1, from those below the middle and those from there on. */
typedef struct Mixing {
	const Tally *a, *b;
	uint32_t low, middle, high;
	Saying *out;
} Mixing;

static Tally mix_one(Mixing *m, uint32_t first, uint32_t end)
{
	if (end <= m->middle)
		return *m->a++;
	if (first >= m->middle)
		return *m->b++;
	uint32_t middle = first + leaf_split(end - first);
	Tally a = mix_one(m, first, middle), b = mix_one(m, middle, end);
	tally_add(&a, &b);
	return a;
}

static void mix_tallies(Mixing *m, uint32_t first, uint32_t end)
{
	if (end <= m->low || first >= m->high)
		return;
	if (first >= m->low && end <= m->high) {
		m->out->tally[m->out->tallies++] = mix_one(m, first, end);
		return;
	}
	uint32_t middle = first + leaf_split(end - first);
	mix_tallies(m, first, middle);
	mix_tallies(m, middle, end);
}

static void add_tallies(Saying *a, const Saying *b, uint32_t ranks)
{
	Tally lower[MOST_SUMS];
	Mixing m = { .a = lower, .b = b->tally, .out = a };
	uint32_t unused;

	if (!a->leaves)
		return;
	memcpy(lower, a->tally, sizeof lower);
	a->tallies = 0;
	rank_leaves(a->leaves, ranks, a->first, &m.low, &unused);
	rank_leaves(a->leaves, ranks, b->first, &m.middle, &unused);
	rank_leaves(a->leaves, ranks, b->end - 1, &unused, &m.high);
	mix_tallies(&m, 0, a->leaves);
}

static void add_votes(Saying *a, const Saying *b)
{
	for (int i = 0; i < VOTES && b->vote[i].ranks; i++) {
		Vote *v = a->vote;
		while (v < a->vote + VOTES && v->ranks && v->word != b->vote[i].word)
			v++;
		if (v == a->vote + VOTES) /* more than can be told apart: so are most */
			continue;
		v->first = v->ranks ? v->first : b->vote[i].first;
		v->word = b->vote[i].word;
		v->update = b->vote[i].update;
		v->ranks += b->vote[i].ranks;
	}
}

/* Whoever differs from the first rank of all: b's first, if that does; else whom b knows. */
static void add_same(Saying *a, const Saying *b)
{
	for (int32_t s = 0; s < SAMES && a->odd == NOBODY; s++)
		if (a->same[s] != b->same[s]) {
			a->odd = b->first;
			a->odd_same = s;
		}
	if (a->odd == NOBODY) {
		a->odd = b->odd;
		a->odd_same = b->odd_same;
	}
}

/* Whoever leaves drowns out whoever wants to go back, and that one all others. */
static int both_kinds(int a, int b)
{
	if (a == SAY_LEAVE || b == SAY_LEAVE)
		return SAY_LEAVE;
	if (a == SAY_BACK || b == SAY_BACK)
		return SAY_BACK;
	return a == b ? a : SAY_MIXED;
}

/* Someone leaves or wants to go back: the first who does, and says why, is heard. */
static void add_call(Saying *a, const Saying *b, int kind)
{
	bool first = a->kind == kind && (kind == SAY_LEAVE || *a->text),
		 second = b->kind == kind && (a->kind != kind || *b->text);

	if (!first && second) {
		a->odd = b->odd;
		a->odd_status = b->odd_status;
		memcpy(a->text, b->text, sizeof a->text);
	}
	a->back = b->back > a->back ? b->back : a->back;
}

/* b, of the ranks behind those of a, is added to a. */
static void add_saying(Saying *a, const Saying *b, uint32_t ranks)
{
	int kind = both_kinds(a->kind, b->kind);

	a->status = b->status > a->status ? b->status : a->status;
	if (kind == SAY_LEAVE || kind == SAY_BACK || kind == SAY_MIXED) {
		add_call(a, b, kind);
		a->kind = kind;
	} else {
		a->stop |= b->stop;
		a->stopped |= b->stopped;
		add_same(a, b);
		add_votes(a, b);
		if (a->kind == SAY_START)
			for (int i = 0; i < LOOKS; i++)
				validation_merge(&a->look[i], &b->look[i]);
		else
			add_tallies(a, b, ranks);
	}
	a->end = b->end;
}

/* ---- meeting ---- */

static void heard(Ctx *cx, const Ranks *k)
{
	const Saying *w = &k->all;
	const char *text = w->text, *colon = strstr(text, "error: ");
	int length = (int)strcspn(colon ? colon + 7 : text, "\n");

	fail(cx, w->odd_status == MP_BAD_INPUT ? MP_BAD_INPUT : MP_FAILED, NULL, "rank %u of %u ended early: %.*s", w->odd,
	     k->comm->size, length ? length : 20, length ? (colon ? colon + 7 : text) : "it said no more");
}

/* Exchanges what was said so far with another rank, which has that of the ranks behind, or before. */
static void exchange(Ranks *k, uint32_t other)
{
	const Comm *c = k->comm;
	Saying b;

	c->receive(c->self, &b, sizeof b, other);
	c->send(c->self, &k->all, sizeof k->all, other);
	c->wait(c->self);
	if (b.first < k->all.first) {
		Saying upper = k->all;
		k->all = b;
		b = upper;
	}
	add_saying(&k->all, &b, c->size);
}

static void pass(Ranks *k, bool gives, uint32_t other)
{
	const Comm *c = k->comm;

	if (gives)
		c->send(c->self, &k->all, sizeof k->all, other);
	else
		c->receive(c->self, &k->all, sizeof k->all, other);
	c->wait(c->self);
}

/* Pairs exchange what they said, then pairs of pairs, ... Where ranks are no power of two, the first few come in
 * twos, of which one speaks for both. */
static void say(Ranks *k, int kind)
{
	uint32_t rank = k->comm->rank, size = k->comm->size, speakers = 1;

	while (2 * speakers <= size)
		speakers *= 2;
	uint32_t twos = size - speakers, number = rank < 2 * twos ? rank / 2 : rank - twos;
	bool in_two = rank < 2 * twos, speaks = !in_two || rank % 2 == 0;
	k->own.kind = kind;
	k->own.first = rank;
	k->own.end = rank + 1;
	k->own.odd = kind == SAY_LEAVE || kind == SAY_BACK ? rank : NOBODY;
	k->own.odd_status = k->own.status;
	k->all = k->own;
	if (in_two && speaks) {
		Saying b;
		k->comm->receive(k->comm->self, &b, sizeof b, rank + 1);
		k->comm->wait(k->comm->self);
		add_saying(&k->all, &b, size);
	} else if (in_two) {
		pass(k, true, rank - 1);
	}
	for (uint32_t bit = 1; speaks && bit < speakers; bit *= 2) {
		uint32_t other = number ^ bit;
		exchange(k, other < twos ? 2 * other : other + twos);
	}
	if (in_two)
		pass(k, speaks, speaks ? rank + 1 : rank - 1);
	k->gone |= k->all.kind != kind && k->all.kind != SAY_BACK;
}

bool ranks_meet(Ctx *cx, Ranks *k, int kind)
{
	say(k, kind);
	if (k->all.kind == SAY_LEAVE)
		heard(cx, k);
	if (k->all.kind == SAY_MIXED)
		fail(cx, MP_BAD_INPUT, "start all ranks with the same command", "the ranks are not at the same work");
	return k->all.kind == SAY_BACK;
}

void ranks_back(Ctx *cx, Ranks *k, int copy, const char *why)
{
	k->own = (Saying){ .back = copy };
	snprintf(k->own.text, sizeof k->own.text, "%s", why);
	ranks_meet(cx, k, SAY_BACK);
}

void ranks_same(Ctx *cx, Ranks *k)
{
	static const struct {
		const char *what, *remedy;
	} same[SAMES] = {
		[SAME_FILE] = { "another file name on its command line", "start all ranks with the same command line" },
		[SAME_NET] = { "another network", "give all ranks the same topology file" },
		[SAME_OPTIONS] = { "other options", "start all ranks with the same options" },
		[SAME_DATA] = { "other data", "give all ranks the same data" },
		[SAME_TEST] = { "other test data", "give all ranks the same data" },
		[SAME_WEIGHTS] = { "other weights to begin with", "resume all ranks from the same checkpoint" },
	};

	if (k->all.odd == NOBODY)
		return;
	k->gone = true; /* all see it and leave without another word */
	fail(cx, MP_BAD_INPUT, same[k->all.odd_same].remedy, "rank %u has %s than rank 0", k->all.odd,
	     same[k->all.odd_same].what);
}

void ranks_look(Ctx *cx, Ranks *k, int which, const Data *d, const ErrorFn *e, Validation *of)
{
	*of = k->all.look[which];
	k->gone = true; /* if there is something wrong, all say so themselves */
	validation_finish(cx, d, e, of);
	k->gone = false;
}

void ranks_leave(Ranks *k, int status, const char *text)
{
	if (k->gone)
		return;
	k->own = (Saying){ .status = status };
	snprintf(k->own.text, sizeof k->own.text, "%s", text);
	say(k, SAY_LEAVE);
	k->own.status = k->all.status;
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

/* That a rank sends: its largest subtrees. */
static uint32_t rank_sums(uint32_t leaves, uint32_t ranks, uint32_t rank)
{
	uint32_t first, last;

	rank_leaves(leaves, ranks, rank, &first, &last);
	return subtree_count(leaves, first, last);
}

/* Of all ranks; with many it is worth remembering. */
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
	uint32_t leaves, rank;  /* rank: whose leaves the walk is in */
	uint32_t next;          /* own sums used so far */
	uint64_t first, floats; /* part of the weights */
	float *const *own;      /* own sums */
	float *in;              /* the next of the others' */
} Joining;

/* Does one rank have all leaves of [first, end)?  Then the walk is in its leaves. */
static bool one_has(Joining *j, uint32_t first, uint32_t end)
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
	j->r->target->ranks->add(j->r->program, a, b, j->floats);
	return a;
}

void tallies_own(Saying *w, const Tally *leaf, uint32_t first, uint32_t end, uint32_t low, uint32_t high)
{
	if (end <= low || first >= high)
		return;
	if (first >= low && end <= high) {
		w->tally[w->tallies++] = tally_leaves(leaf, first, end);
		return;
	}
	uint32_t middle = first + leaf_split(end - first);
	tallies_own(w, leaf, first, middle, low, high);
	tallies_own(w, leaf, middle, end, low, high);
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

uint64_t part_first(uint64_t floats, uint32_t part, uint32_t parts) { return floats / LANE * part / parts * LANE; }

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
		cut[steps] = upper ? low : middle; /* what the other one keeps: cut .. end */
		end[steps] = upper ? middle : high;
		low = upper ? middle : low;
		high = upper ? high : middle;
		get(k, k->inbox, high - low, rank ^ bit);
		put(k, v + cut[steps], end[steps] - cut[steps], rank ^ bit);
		k->comm->wait(k->comm->self);
		if (high > low)
			r->target->ranks->add(r->program, v + low, k->inbox, high - low);
	}
	memcpy(s->total + low, v + low, (high - low) * sizeof *v);
	while (steps-- > 0) {
		get(k, s->total + cut[steps], end[steps] - cut[steps], rank ^ 1u << steps);
		put(k, s->total + low, high - low, rank ^ 1u << steps);
		k->comm->wait(k->comm->self);
		low = cut[steps] < low ? cut[steps] : low;
		high = end[steps] > high ? end[steps] : high;
	}
}

/* In an order that nobody knows. */
static void sum_library(Run *r, Share *s)
{
	Ranks *k = r->ranks;

	memset(s->total, 0, s->floats * sizeof *s->total);
	for (uint32_t i = 0; i < s->sums; i++)
		r->target->ranks->add(r->program, s->total, s->sum[i], s->floats);
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
	r->target->ranks->use_total(r->program);
}

void ranks_room(Ctx *cx, Ranks *k, uint64_t floats, uint64_t examples)
{
	uint32_t leaves = leaf_count(examples), sums = all_sums(k, leaves), size = k->comm->size;
	uint64_t part = floats / size + LANE,
			 room = (ranks_way(floats, sums, leaves, size) == WAY_TOGETHER ? floats : part) * sums;

	room = room > floats / 2 + LANE ? room : floats / 2 + LANE;
	if (room > k->room) {
		k->inbox = arena_alloc(&cx->keep, room, sizeof *k->inbox);
		k->room = room;
	}
}

/* ---- a batch ---- */

/* All ranks have the same weights, or what is wrong.  One that differs is named, if most agree. */
static const char *differs(Run *r, const Ranks *k)
{
	Buf b = { .arena = &r->cx.scratch };
	const Vote *v = k->all.vote;
	uint32_t odd = NOBODY;
	bool most = false;

	if (v[0].ranks == k->comm->size)
		return NULL;
	for (int i = 0; i < VOTES && v[i].ranks; i++) {
		bool is_most = 2 * v[i].ranks > k->comm->size;
		most |= is_most;
		odd = !is_most && v[i].first < odd ? v[i].first : odd;
	}
	if (!most)
		return "the ranks' weights differ";
	buf_printf(&b, "rank %u has other weights than most", odd);
	return b.s;
}

bool ranks_gather(Run *r, Saying own, int kind)
{
	Ranks *k = r->ranks;

	k->back = r->guard && !guard_sums(r->guard);
	if (k->back)
		return true;
	k->own = own;
	k->own.vote[0] = (Vote){ .word = r->guard ? guard_word(r->guard) : 0, .ranks = 1, .first = k->comm->rank };
	k->own.due = r->guard ? guard_due(r->guard) : 0;
	k->back = ranks_meet(&r->cx, k, kind);
	const char *wrong = k->back ? NULL : differs(r, k);
	k->due = k->back || wrong ? 0 : k->all.due;
	k->back |= wrong != NULL;
	if (k->back)
		guard_together(r->guard, wrong);
	return k->back;
}

Status ranks_batch(Run *r, const Batch *b, bool learn, const volatile int *stop, Tally *t)
{
	Ranks *k = r->ranks;
	uint32_t leaves = leaf_count(b->count), first, last;
	Share s;

	rank_leaves(leaves, k->comm->size, k->comm->rank, &first, &last);
	Status status = r->target->ranks->partial_sums(r->program, b, first, last, learn, stop, &s);
	Saying own = { .status = status,
		           .stop = *stop != 0,
		           .stopped = status == MP_STOPPED,
		           .seconds = clock_seconds(),
		           .leaves = leaves };
	if (status == MP_OK)
		tallies_own(&own, s.tally, 0, leaves, first, last);
	if (ranks_gather(r, own, SAY_BATCH))
		return MP_OK;
	k->stop |= k->all.stop;
	k->seconds = k->all.seconds;
	if (k->all.stopped) {
		k->stop = true;
		return MP_STOPPED;
	}
	tally_add(t, &k->all.tally[0]);
	if (learn)
		ranks_sum(r, &s, leaves);
	if (learn && r->guard)
		guard_leaves(r->guard, b);
	return MP_OK;
}
