/* SPDX-License-Identifier: MIT */
/* Software prefetch.  In: a sequence.  Out: for each instruction, the rows that soon have their first access.
 *
 * Rows of a block are too far apart for hardware prefetchers, but all are known in advance.  Only first accesses are
 * prefetched: later ones usually hit the cache.  A NETtalk epoch on 566 processors (best, halving, one core) takes 109
 * instead of 126 ms, compared to prefetching every row of every chain. */
#include <string.h>

#include "execute.h"

enum { DISTANCE = 16 }; /* operations ahead; 8 to 32 perform alike */

typedef struct Prefetcher {
	Sequence *s;
	RowRef *table; /* hash table of rows seen; space 0: free */
	uint32_t size; /* a power of two */
	uint32_t *at;  /* [rows] operations before the first access */
} Prefetcher;

static uint32_t inst_cost(const Inst *i) { return i->op == KOP_CHAIN ? i->terms : 1; }

/* Slots are cached. */
static void touch(Prefetcher *a, RowRef p, uint32_t now)
{
	if (!p.space)
		return;
	uint64_t h = (((uint64_t)p.off << 10 | p.space) + 1) * 0x9E3779B97F4A7C15u >> 20;
	for (; a->table[h & (a->size - 1)].space; h++) {
		RowRef seen = a->table[h & (a->size - 1)];
		if (seen.off == p.off && seen.space == p.space)
			return;
	}
	a->table[h & (a->size - 1)] = p;
	a->at[a->s->prefetches] = now;
	a->s->prefetch[a->s->prefetches++] = p;
}

void sequence_prefetch(Ctx *cx, Sequence *s)
{
	uint32_t most = 4 * s->insts + 2 * s->terms;
	Prefetcher a = { .s = s, .size = 64, .at = NEW(&cx->scratch, most, uint32_t) };
	while (a.size < 2 * most)
		a.size *= 2;
	a.table = NEW(&cx->scratch, a.size, RowRef);
	s->prefetch = NEW(&cx->scratch, most, RowRef);
	uint32_t now = 0, row = 0;
	for (uint32_t n = 0; n < s->insts; now += inst_cost(&s->inst[n++])) {
		const Inst *i = &s->inst[n];
		touch(&a, i->a, now);
		touch(&a, i->b, now);
		touch(&a, i->c, now);
		for (uint32_t t = 0; i->op == KOP_CHAIN && t < i->terms; t++) {
			touch(&a, s->term[i->first + t].x, now + t);
			touch(&a, s->term[i->first + t].y, now + t);
		}
		touch(&a, i->dst, now);
	}
	/* Attaches each row to the last instruction that is early enough. */
	now = 0;
	for (uint32_t n = 0; n < s->insts; n++) {
		Inst *i = &s->inst[n];
		now += inst_cost(i);
		i->prefetch = row;
		while (row < s->prefetches && a.at[row] < now + DISTANCE)
			row++;
		i->prefetches = row - i->prefetch;
	}
	const RowRef *found = s->prefetch;
	s->prefetch = NEW(&cx->keep, s->prefetches, RowRef);
	memcpy(s->prefetch, found, s->prefetches * sizeof *found);
}
