/* SPDX-License-Identifier: MIT */
/* Sums of weight changes: how they join, and their checksums while a guard is attached. In: sums of leaves on a
 * thread's stack. Out: the pending sum. Must hold: a checksum is taken when a sum is complete and checked when it
 * is next read. */
#include <assert.h>
#include <string.h>
#include <xxhash.h>

#include "pass.h"

enum { BLOCK_FLOATS = CHECKSUM_BLOCK / sizeof(float) };

static bool is_monitored(const Program *p) { return p->monitor && p->monitor->check_sums; }

uint64_t sum_checksum(const Program *p, const float *v, uint64_t at, uint64_t n)
{
	uint64_t checksum = 0;

	for (uint64_t end = at + n, next; at < end; at = next) {
		next = min_u64((at / BLOCK_FLOATS + 1) * BLOCK_FLOATS, end);
		checksum += checksum_block_factor(at / BLOCK_FLOATS) *
		            p->kern->checksum(v + at, (next - at) * sizeof *v, (uint32_t)(at % BLOCK_FLOATS / CHECKSUM_WORDS));
	}
	return checksum;
}

static uint64_t whole_checksum(const Program *p, const float *v) { return sum_checksum(p, v, 0, p->layout->floats); }

static void note_mismatch(const Program *p) { __atomic_fetch_add(&p->monitor->corrupted_sums, 1, __ATOMIC_RELAXED); }

void sum_check(const Program *p, const Sum *sum)
{
	if (is_monitored(p) && whole_checksum(p, sum->v) != sum->checksum)
		note_mismatch(p);
}

/* ---- leaves ---- */

/* Row padding holds garbage that depends on chunking; zero it before hashing. */
static void padding_clear(const Program *p, float *v)
{
	for (const Panel *q = p->layout->panel; q < p->layout->panel + p->layout->panels; q++) {
		uint64_t cols = q->list ? q->list->links : q->by_source ? q->targets : q->sources + q->bias;
		for (float *row = v + q->at, *end = row + panel_size(q); row < end; row += q->row)
			memset(row + cols, 0, (q->row - cols) * sizeof *row);
	}
}

static uint64_t with_tally(uint64_t checksum, const Tally *t) { return XXH3_64bits_withSeed(t, sizeof *t, checksum); }

uint64_t leaf_checksum(const Program *p, float *v, const Tally *t)
{
	padding_clear(p, v);
	return with_tally(whole_checksum(p, v), t);
}

void leaf_done(const Program *p, uint32_t leaf, Sum *sum, uint32_t thread, int core)
{
	Monitor *w = p->monitor;

	if (!is_monitored(p))
		return;
	test_hook_call(w, HOOK_LEAF_SUM, sum->v, p->layout->floats * sizeof *sum->v);
	padding_clear(p, sum->v);
	sum->checksum = whole_checksum(p, sum->v);
	if (leaf == w->leaf) {
		w->leaf_checksum = with_tally(sum->checksum, &p->tally[leaf]);
		w->leaf_core = core;
		w->leaf_thread = thread;
	}
	test_hook_call(w, HOOK_LEAF_STORED, sum->v, p->layout->floats * sizeof *sum->v);
}

/* ---- joins ---- */

/* Written first by the thread that uses it, so that its pages are on that thread's memory node; sums that are never
 * used take no memory. */
Sum *sum_next(const Program *p, SumStack *s)
{
	Sum *sum = &s->sum[s->depth];

	assert(s->depth < s->capacity);
	if (s->depth == s->touched) {
		memset(sum->v, 0, (p->layout->floats + LANES) * sizeof *sum->v);
		s->touched++;
	}
	return sum;
}

/* Piece by piece, so that each is in the cache while its checksums are computed. */
static void join_checked(const Program *p, Sum *into, const Sum *from)
{
	uint64_t a = 0, b = 0, joined = 0, floats = p->layout->floats;

	for (uint64_t at = 0, n; at < floats; at += n) {
		n = min_u64(floats - at, BLOCK_FLOATS);
		a += sum_checksum(p, into->v, at, n);
		b += sum_checksum(p, from->v, at, n);
		p->kern->add(into->v + at, from->v + at, n);
		joined += sum_checksum(p, into->v, at, n);
	}
	if (a != into->checksum || b != from->checksum)
		note_mismatch(p);
	into->checksum = joined;
}

void sums_join(const Program *p, Sum *into, const Sum *from)
{
	if (is_monitored(p))
		join_checked(p, into, from);
	else
		p->kern->add(into->v, from->v, p->layout->floats);
}

void sums_join_top(const Program *p, SumStack *s)
{
	s->depth--;
	sums_join(p, &s->sum[s->depth - 1], &s->sum[s->depth]);
}

/* ---- the pending sum ---- */

void pending_touch(Program *p)
{
	Pending *d = &p->pending;
	float *own = d->lent ? d->spare : d->v;

	if (d->untouched)
		memset(own, 0, (p->layout->floats + LANES) * sizeof *own);
	d->untouched = false;
}

void pending_own(Program *p)
{
	Pending *d = &p->pending;

	if (!d->lent)
		return;
	pending_touch(p);
	d->lent->v = d->spare;
	d->lent = NULL;
	d->spare = NULL;
}

/* The array of the first sum is borrowed instead of copied: most often an update uses it before threads need it
 * again, and then the pending sum's own array is never written to. */
void pending_add(Program *p, Sum *sum)
{
	Pending *d = &p->pending;

	if (d->full) {
		Sum pending = { d->v, d->checksum };
		sums_join(p, &pending, sum);
		d->checksum = pending.checksum;
		return;
	}
	if (!d->lent)
		d->spare = d->v;
	d->lent = sum;
	d->v = sum->v;
	d->checksum = sum->checksum;
	d->full = true;
}

void pending_checksum(Program *p) { p->pending.checksum = is_monitored(p) ? whole_checksum(p, p->pending.v) : 0; }
