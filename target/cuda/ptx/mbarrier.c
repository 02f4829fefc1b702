/* SPDX-License-Identifier: MIT */
/* mbarrier, and st.async, which counts at one. In: an instruction and its lanes. Out: the barrier's word, memory,
 * the predicate of a wait. Must hold: what precedes an arrival, or was stored, is ordered before what follows a wait
 * for the phase.
 *
 * The word, from its lowest bit on: pending arrivals, arrivals of a phase, transaction bytes (may be negative: they
 * may come before they are expected), phase. */
#include <string.h>

#include "emulator.h"

enum { COUNT_BITS = 20, BYTES_BITS = 21, MAX_COUNT = (1 << COUNT_BITS) - 1 };
typedef struct Mbarrier {
	uint32_t pending, expected, phase;
	int32_t bytes;
} Mbarrier;

static Mbarrier unpack(uint64_t v)
{
	Mbarrier b = { .pending = (uint32_t)v & MAX_COUNT, .expected = (uint32_t)(v >> COUNT_BITS) & MAX_COUNT };

	b.bytes = (int32_t)(v >> 2 * COUNT_BITS & ((1u << BYTES_BITS) - 1)) - MAX_COUNT;
	b.phase = (uint32_t)(v >> (2 * COUNT_BITS + BYTES_BITS)) & 1;
	return b;
}

static uint64_t pack(const Mbarrier *b)
{
	return b->pending | (uint64_t)b->expected << COUNT_BITS |
	       (uint64_t)(uint32_t)(b->bytes + MAX_COUNT) << 2 * COUNT_BITS |
	       (uint64_t)b->phase << (2 * COUNT_BITS + BYTES_BITS) | (uint64_t)1 << 63;
}

static Mbarrier find(Grid *g, const Warp *w, uint32_t lane, const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof v);
	if (!(v >> 63))
		grid_fail(g, w, lane, "no mbarrier is there: mbarrier.init comes first");
	return unpack(v);
}

/* races: odd and even phases have a released clock each. */
static uint64_t clock_of(const uint8_t *at, uint32_t phase) { return (uintptr_t)at + phase; }

/* arrivals: 0 or 1. bytes: expected (positive) or complete (negative). copy: the bulk copy that completes, or NULL */
static void arrive(Grid *g, Warp *w, uint32_t lane, uint8_t *at, uint32_t arrivals, int32_t bytes, const Bulk *copy)
{
	Mbarrier b = find(g, w, lane, at);
	bool first = b.pending == b.expected && !b.bytes;

	if (g->races && copy)
		races_bulk_landed(g, copy, clock_of(at, b.phase), first);
	else if (g->races)
		races_release(g, w, clock_of(at, b.phase), true, first);
	if (arrivals > b.pending)
		grid_fail(g, w, lane, "the mbarrier has all arrivals of its phase");
	b.pending -= arrivals;
	b.bytes += bytes;
	if (b.bytes > MAX_COUNT || b.bytes < -MAX_COUNT)
		grid_fail(g, w, lane, "an mbarrier counts up to 2^20 - 1 bytes");
	if (!b.pending && !b.bytes) {
		b.phase ^= 1;
		b.pending = b.expected;
	}
	uint64_t v = pack(&b);
	memcpy(at, &v, sizeof v);
	g->idle = 0;
}

void mbarrier_bytes(Grid *g, const Bulk *b) { arrive(g, b->by, b->lane, b->bar, 0, -(int32_t)b->bytes, b); }

void mbarrier_execute(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	const uint8_t *failed[LANES] = { NULL };
	uint32_t done = 0;

	for (uint32_t l = 0; l < LANES; l++) {
		if (!(mask >> l & 1))
			continue;
		Mbarrier b = { .pending = 0 };
		uint8_t *at = shared_place(g, w, i, l, 8,
		                           i->sub == M_INIT   ? ACCESS_WRITE
		                           : i->sub == M_WAIT ? ACCESS_ATOMIC_READ
		                                              : ACCESS_ATOMIC);
		uint32_t x = i->sources > 1 ? lane_value(g, w, i->a[1], l) : 0;
		switch (i->sub) {
		case M_INIT:
			b.pending = b.expected = x;
			if (!x || x > MAX_COUNT)
				grid_fail(g, w, l, "an mbarrier of %u arrivals: 1 to 2^20 - 1", x);
			uint64_t v = pack(&b);
			memcpy(at, &v, sizeof v);
			races_bar_made(g, w, at);
			break;
		case M_ARRIVE: arrive(g, w, l, at, 1, 0, NULL); break;
		case M_EXPECT: arrive(g, w, l, at, 1, (int32_t)x, NULL); break;
		case M_WAIT:
			b = find(g, w, l, at);
			if (b.phase != (x & 1)) {
				done |= 1u << l;
				if (g->races)
					races_acquire(g, w, clock_of(at, x & 1), true);
			} else {
				failed[l] = at;
			}
			break;
		}
	}
	if (i->sub != M_WAIT)
		return;
	for (uint32_t l = 0; g->bulks && l < LANES; l++)
		if (failed[l] && (!l || failed[l] != failed[l - 1]))
			bulk_polled(g, failed[l]);
	uint32_t *pred = w->reg + (uint64_t)i->d[0] * LANES;
	*pred = (*pred & ~mask) | done;
	w->defined[i->d[0]] |= mask;
	if (done == mask)
		races_warp_sync(w);
	else
		g->budget = 0; /* another warp runs before the next poll */
}

/* [a + target], values, [mbarrier + offset] */
void store_async_execute(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	for (uint32_t l = 0; l < LANES; l++) {
		if (!(mask >> l & 1))
			continue;
		Insn data = *i, barrier = *i;
		uint32_t value[4], bytes = 4u * i->width;
		data.offset = i->target;
		barrier.a[0] = i->a[1 + i->width];
		for (uint32_t k = 0; k < i->width; k++)
			value[k] = lane_value(g, w, i->a[1 + k], l);
		memcpy(shared_place(g, w, &data, l, bytes, ACCESS_WRITE), value, bytes);
		arrive(g, w, l, shared_place(g, w, &barrier, l, 8, ACCESS_ATOMIC), 0, -(int32_t)bytes, NULL);
	}
}
