/* SPDX-License-Identifier: MIT */
/* A leaf recomputed by another rank. In: the batch that all ranks have just summed, and the leaf of each whose checksum
 * was stored. Out: for two pairs of ranks, this with the next and this with the previous, both results for the leaf.
 *
 *     rank 0         rank 1         rank 2
 *     its leaf  -->  recomputes
 *                    its leaf  -->  recomputes
 *     recomputes  <------------     its leaf
 *
 * Bits must agree, so any difference is a fault. Then both compute it a second time and verify their state and data:
 * so both know which was wrong, and that one reports it. All ranks take part at the same time, and nothing is reported
 * here: a rollback request would not be received as one. */
#include "parts.h"
#include "ranks.h"

uint32_t rank_leaf(const Run *r, const Batch *b, uint32_t rank, uint64_t update)
{
	uint32_t first, last;

	rank_leaves(leaf_count(b->count), r->ranks->comm->size, rank, &first, &last);
	if (first == last)
		return NO_LEAF;
	return first + (uint32_t)random_below((uint64_t)r->opt.seed, STREAM_SPLIT, update, last - first);
}

/* Both ranks of a pair know that it exists, so sends match receives. Between two ranks there are two pairs: the own
 * leaf goes first. */
static void exchange(const Comm *c, Pair pair[PAIRS], int attempt)
{
	Pair *own = &pair[PAIR_OWN], *theirs = &pair[PAIR_THEIRS];

	if (theirs->differs)
		c->receive(c->self, &theirs->other[attempt], sizeof theirs->other[attempt], theirs->rank);
	if (own->differs)
		c->receive(c->self, &own->other[attempt], sizeof own->other[attempt], own->rank);
	if (own->differs)
		c->send(c->self, &own->own[attempt], sizeof own->own[attempt], own->rank);
	if (theirs->differs)
		c->send(c->self, &theirs->own[attempt], sizeof theirs->own[attempt], theirs->rank);
	c->wait(c->self);
}

static Computed compute(Run *r, const Batch *b, uint32_t leaf, uint32_t attempt, bool intact)
{
	int core = -1;
	uint64_t checksum = intact ? r->target->guard->recompute(r->program, b, leaf, attempt, &core) : 0;

	return (Computed){ .checksum = checksum, .core = core, .intact = intact };
}

void pairs_compare(Run *r, const Batch *b, const Monitor *m, uint64_t update, PairFn *readable, PairFn *intact,
                   void *guard, Pair pair[PAIRS])
{
	const Comm *c = r->ranks->comm;
	uint32_t next = (c->rank + 1) % c->size, previous = (c->rank + c->size - 1) % c->size;
	Pair *own = &pair[PAIR_OWN], *theirs = &pair[PAIR_THEIRS];

	*own = (Pair){ .leaf = m->leaf, .rank = next, .differs = m->leaf != NO_LEAF };
	*theirs = (Pair){ .leaf = rank_leaf(r, b, previous, update), .rank = previous };
	theirs->differs = theirs->leaf != NO_LEAF;
	own->own[0] = (Computed){ .checksum = m->leaf_checksum, .core = m->leaf_core, .intact = true };
	if (theirs->differs)
		theirs->own[0] = compute(r, b, theirs->leaf, 0, readable(guard, b, theirs->leaf));
	exchange(c, pair, 0);
	for (int i = 0; i < PAIRS; i++) {
		pair[i].differs &= pair[i].own[0].checksum != pair[i].other[0].checksum;
		if (pair[i].differs)
			pair[i].own[1] = compute(r, b, pair[i].leaf, 1, pair[i].own[0].intact);
		if (pair[i].differs)
			pair[i].own[1].intact &= intact(guard, b, pair[i].leaf);
	}
	exchange(c, pair, 1);
}

/* A rank with corrupted state or data reports that instead. If neither was wrong only the first time, the owner of the
 * leaf reports. */
const char *pair_fault(Arena *a, const Pair *p, bool is_own)
{
	Buf b = { .arena = a };
	bool own_wrong = p->own[1].checksum == p->other[0].checksum,
		 other_wrong = p->other[1].checksum == p->own[0].checksum;

	if (!p->differs || (p->own[1].intact && !p->other[1].intact) ||
	    (!own_wrong && (other_wrong || !is_own) && p->own[1].intact))
		return NULL;
	if (own_wrong)
		buf_printf(&b,
		           "core %d computed leaf %u of the batch wrongly: core %d of rank %u has another result, and core "
		           "%d agrees with that",
		           p->own[0].core, p->leaf, p->other[0].core, p->rank, p->own[1].core);
	else
		buf_printf(&b, "leaf %u of the batch comes out differently on core %d and on core %d of rank %u", p->leaf,
		           p->own[0].core, p->other[0].core, p->rank);
	return b.s;
}
