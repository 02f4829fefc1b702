/* SPDX-License-Identifier: MIT */
/* Messages that all ranks exchange: at the start, once a batch, and when a rank leaves. In: a message of each rank.
 * Out: on every rank the same merged message.
 *
 * All messages have one length, whatever their kind: a rank that fails sends LEAVE instead of the message the others
 * expect, so that they fail too instead of waiting for ever. Messages of neighbouring ranks merge into one (tallies by
 * the tree of leaves), so an exchange takes log2(ranks) steps of constant length. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ranks.h"

#define NO_RANK UINT32_MAX

Ranks *ranks_new(Ctx *cx, const Comm *comm)
{
	Ranks *k = NEW(&cx->keep, 1, Ranks);

	k->comm = comm;
	k->programs = NEW(&cx->keep, comm->size, uint64_t);
	return k;
}

/* Another build may have other messages, and deadlock: this comes first, and its form never changes. */
void ranks_check_program(Ctx *cx, Ranks *k, uint64_t own)
{
	const Comm *c = k->comm;
	const uint64_t *all = k->programs;
	uint32_t unreadable = 0, other = 0;

	c->allgather(c->self, &own, sizeof own, k->programs);
	while (unreadable < c->size && all[unreadable])
		unreadable++;
	while (other < c->size && all[other] == all[0])
		other++;
	k->ended = unreadable < c->size || other < c->size; /* all ranks know, and fail without a message */
	if (unreadable < c->size)
		fail(cx, MP_BAD_INPUT, "mount /proc there, and let the program's file be read",
		     "rank %u cannot read its own program, /proc/self/exe", unreadable);
	if (other < c->size)
		fail(cx, MP_BAD_INPUT, "install the same program on all hosts", "rank %u has another microprop than rank 0",
		     other);
}

/* ---- messages of neighbouring ranks are merged ---- */

/* Tallies of the maximal subtrees of leaves low .. high - 1, from those of low .. middle - 1 and middle .. high - 1. */
typedef struct Merge {
	const Tally *a, *b;
	uint32_t low, middle, high;
	Message *out;
} Merge;

static Tally merge_one(Merge *m, uint32_t first, uint32_t end)
{
	if (end <= m->middle)
		return *m->a++;
	if (first >= m->middle)
		return *m->b++;
	uint32_t middle = first + leaf_split(end - first);
	Tally a = merge_one(m, first, middle), b = merge_one(m, middle, end);
	tally_add(&a, &b);
	return a;
}

static void merge_subtrees(Merge *m, uint32_t first, uint32_t end)
{
	if (end <= m->low || first >= m->high)
		return;
	if (first >= m->low && end <= m->high) {
		m->out->tally[m->out->tallies++] = merge_one(m, first, end);
		return;
	}
	uint32_t middle = first + leaf_split(end - first);
	merge_subtrees(m, first, middle);
	merge_subtrees(m, middle, end);
}

static void merge_tallies(Message *a, const Message *b, uint32_t ranks)
{
	Tally lower[MOST_SUMS];
	Merge m = { .a = lower, .b = b->tally, .out = a };
	uint32_t unused;

	assert(a->leaves == b->leaves);
	if (!a->leaves)
		return;
	memcpy(lower, a->tally, sizeof lower);
	a->tallies = 0;
	rank_leaves(a->leaves, ranks, a->first, &m.low, &unused);
	rank_leaves(a->leaves, ranks, b->first, &m.middle, &unused);
	rank_leaves(a->leaves, ranks, b->end - 1, &unused, &m.high);
	merge_subtrees(&m, 0, a->leaves);
}

static void merge_votes(Message *a, const Message *b)
{
	for (int i = 0; i < VOTES && b->vote[i].ranks; i++) {
		Vote *v = a->vote;
		while (v < a->vote + VOTES && v->ranks && v->checksum != b->vote[i].checksum)
			v++;
		if (v == a->vote + VOTES) /* more different votes than fit: no majority */
			continue;
		v->first = v->ranks ? v->first : b->vote[i].first;
		v->checksum = b->vote[i].checksum;
		v->update = b->vote[i].update;
		v->ranks += b->vote[i].ranks;
	}
}

/* The first rank that differs from rank 0: b's first, if that does; else the one b has found. */
static void merge_mismatch(Message *a, const Message *b)
{
	for (int32_t s = 0; s < MATCHES && a->culprit == NO_RANK; s++)
		if (a->match[s] != b->match[s]) {
			a->culprit = b->first;
			a->mismatch = s;
		}
	if (a->culprit == NO_RANK) {
		a->culprit = b->culprit;
		a->mismatch = b->mismatch;
	}
}

/* Precedence: LEAVE > ROLLBACK > the rest. */
static int merge_kinds(int a, int b)
{
	if (a == MSG_LEAVE || b == MSG_LEAVE)
		return MSG_LEAVE;
	if (a == MSG_ROLLBACK || b == MSG_ROLLBACK)
		return MSG_ROLLBACK;
	return a == b ? a : MSG_MIXED;
}

/* A rank leaves or requests a rollback: the first such rank with a reason prevails. */
static void merge_reason(Message *a, const Message *b, int kind)
{
	bool first = a->kind == kind && (kind == MSG_LEAVE || *a->text),
		 second = b->kind == kind && (a->kind != kind || *b->text);

	if (!first && second) {
		a->culprit = b->culprit;
		a->leave_status = b->leave_status;
		memcpy(a->text, b->text, sizeof a->text);
	}
	a->snapshot = b->snapshot > a->snapshot ? b->snapshot : a->snapshot;
}

/* Merges b, of the ranks that follow those of a, into a. */
static void message_merge(Message *a, const Message *b, uint32_t ranks)
{
	int kind = merge_kinds(a->kind, b->kind);

	assert(a->end == b->first);
	a->status = b->status > a->status ? b->status : a->status;
	if (kind == MSG_LEAVE || kind == MSG_ROLLBACK || kind == MSG_MIXED) {
		merge_reason(a, b, kind);
		a->kind = kind;
	} else {
		a->stop |= b->stop;
		a->stopped |= b->stopped;
		merge_mismatch(a, b);
		merge_votes(a, b);
		if (a->kind == MSG_START)
			for (int i = 0; i < VALIDATES; i++)
				validation_merge(&a->validation[i], &b->validation[i]);
		else
			merge_tallies(a, b, ranks);
	}
	a->end = b->end;
}

/* ---- exchange ---- */

static _Noreturn void other_left(Ctx *cx, const Ranks *k)
{
	const Message *w = &k->all;
	const char *text = w->text, *colon = strstr(text, "error: ");
	int length = (int)strcspn(colon ? colon + 7 : text, "\n");

	fail(cx, w->leave_status == MP_BAD_INPUT ? MP_BAD_INPUT : MP_FAILED, NULL, "rank %u of %u ended early: %.*s",
	     w->culprit, k->comm->size, length ? length : 20, length ? (colon ? colon + 7 : text) : "it gave no reason");
}

/* Exchanges merged messages with a rank that has those of the ranks after, or before. */
static void swap_messages(Ranks *k, uint32_t other)
{
	const Comm *c = k->comm;
	Message b;

	c->receive(c->self, &b, sizeof b, other);
	c->send(c->self, &k->all, sizeof k->all, other);
	c->wait(c->self);
	if (b.first < k->all.first) {
		Message upper = k->all;
		k->all = b;
		b = upper;
	}
	message_merge(&k->all, &b, c->size);
}

static void pass_message(Ranks *k, bool send, uint32_t other)
{
	const Comm *c = k->comm;

	if (send)
		c->send(c->self, &k->all, sizeof k->all, other);
	else
		c->receive(c->self, &k->all, sizeof k->all, other);
	c->wait(c->self);
}

/* An allreduce by recursive doubling: pairs exchange messages, then pairs of pairs, ... If the number of ranks is not
 * a power of two, the first ranks form pairs, of which the even one takes part for both. */
static void allreduce_message(Ranks *k, int kind)
{
	uint32_t rank = k->comm->rank, size = k->comm->size, active_ranks = 1;

	while (2 * active_ranks <= size)
		active_ranks *= 2;
	uint32_t pairs = size - active_ranks, number = rank < 2 * pairs ? rank / 2 : rank - pairs;
	bool in_pair = rank < 2 * pairs, active = !in_pair || rank % 2 == 0;
	k->own.kind = kind;
	k->own.first = rank;
	k->own.end = rank + 1;
	k->own.culprit = kind == MSG_LEAVE || kind == MSG_ROLLBACK ? rank : NO_RANK;
	k->own.leave_status = k->own.status;
	k->all = k->own;
	if (in_pair && active) {
		Message b;
		k->comm->receive(k->comm->self, &b, sizeof b, rank + 1);
		k->comm->wait(k->comm->self);
		message_merge(&k->all, &b, size);
	} else if (in_pair) {
		pass_message(k, true, rank - 1);
	}
	for (uint32_t bit = 1; active && bit < active_ranks; bit *= 2) {
		uint32_t other = number ^ bit;
		swap_messages(k, other < pairs ? 2 * other : other + pairs);
	}
	if (in_pair)
		pass_message(k, active, active ? rank + 1 : rank - 1);
	k->ended |= k->all.kind != kind && k->all.kind != MSG_ROLLBACK;
}

bool ranks_exchange(Ctx *cx, Ranks *k, int kind)
{
	allreduce_message(k, kind);
	if (k->all.kind == MSG_LEAVE)
		other_left(cx, k);
	if (k->all.kind == MSG_MIXED)
		fail(cx, MP_BAD_INPUT, "start all ranks with the same command", "the ranks are not at the same work");
	return k->all.kind == MSG_ROLLBACK;
}

void ranks_request_rollback(Ctx *cx, Ranks *k, int snapshot, const char *reason)
{
	k->own = (Message){ .snapshot = snapshot };
	snprintf(k->own.text, sizeof k->own.text, "%s", reason);
	ranks_exchange(cx, k, MSG_ROLLBACK);
}

void ranks_check_match(Ctx *cx, Ranks *k)
{
	static const struct {
		const char *what, *remedy;
	} fields[MATCHES] = {
		[MATCH_FILE] = { "another file name on its command line", "start all ranks with the same command line" },
		[MATCH_NET] = { "another network", "give all ranks the same topology file" },
		[MATCH_RESTARTS] = { "another number of restarts", "start all ranks with the same --restarts" },
		[MATCH_OPTIONS] = { "other options", "start all ranks with the same options" },
		[MATCH_DATA] = { "other data", "give all ranks the same data" },
		[MATCH_TEST] = { "other test data", "give all ranks the same data" },
		[MATCH_WEIGHTS] = { "other weights to begin with", "resume all ranks from the same checkpoint" },
	};

	if (k->all.culprit == NO_RANK)
		return;
	k->ended = true; /* all ranks know, and fail without a message */
	fail(cx, MP_BAD_INPUT, fields[k->all.mismatch].remedy, "rank %u has %s than rank 0", k->all.culprit,
	     fields[k->all.mismatch].what);
}

void ranks_check_option(Ctx *cx, Ranks *k, const char *option)
{
	if (k->all.culprit == NO_RANK)
		return;
	k->ended = true;
	fail(cx, MP_BAD_INPUT, "start all ranks with the same options", "rank %u has another --%s than rank 0",
	     k->all.culprit, option);
}

void ranks_check_data(Ctx *cx, Ranks *k, int which, const Data *d, const ErrorFn *e, Validation *of)
{
	*of = k->all.validation[which];
	k->ended = true; /* if it is invalid, every rank reports that itself */
	validation_finish(cx, d, e, of);
	k->ended = false;
}

void ranks_leave(Ranks *k, int status, const char *text)
{
	if (k->ended)
		return;
	k->own = (Message){ .status = status };
	snprintf(k->own.text, sizeof k->own.text, "%s", text);
	allreduce_message(k, MSG_LEAVE);
	k->own.status = k->all.status;
}
