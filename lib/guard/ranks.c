/* SPDX-License-Identifier: MIT */
/* A leaf computed again by another rank. In: the batch that all ranks have just summed, and the leaf of each that
 * was noted. Out: for two pairs, that with the next rank and that with the one before, what each of the two has
 * made of the leaf.
 *
 *     rank 0         rank 1         rank 2
 *     its leaf  -->  again
 *                    its leaf  -->  again
 *     again    <---------------     its leaf
 *
 * Must hold: bits agree, so any difference is a fault. Then both compute it once more and look whether their state
 * and data are as they were: so both know who was wrong, and that one tells it. All ranks are here at the same
 * time, and nothing is told here: a rank that said so now would not be understood. */
#include "guard_data.h"
#include "ranks.h"

uint32_t rank_leaf(const Run *r, const Batch *b, uint32_t rank, uint64_t update)
{
	uint32_t first, last;

	rank_leaves(leaf_count(b->count), r->ranks->comm->size, rank, &first, &last);
	if (first == last)
		return NO_LEAF;
	return first + (uint32_t)random_below((uint64_t)r->opt.seed, STREAM_SPLIT, update, last - first);
}

/* Which pairs there are is known to both of each, so both know what will come. Between two ranks there are two
 * pairs: the own leaf goes first. */
static void exchange(const Comm *c, Pair pair[PAIRS], int turn)
{
	Pair *own = &pair[PAIR_OWN], *theirs = &pair[PAIR_THEIRS];

	if (theirs->differs)
		c->receive(c->self, &theirs->other[turn], sizeof theirs->other[turn], theirs->rank);
	if (own->differs)
		c->receive(c->self, &own->other[turn], sizeof own->other[turn], own->rank);
	if (own->differs)
		c->send(c->self, &own->own[turn], sizeof own->own[turn], own->rank);
	if (theirs->differs)
		c->send(c->self, &theirs->own[turn], sizeof theirs->own[turn], theirs->rank);
	c->wait(c->self);
}

static Computed compute(Run *r, const Batch *b, uint32_t leaf, uint32_t turn, bool well)
{
	int core = -1;
	uint64_t word = well ? r->target->guard->recompute(r->program, b, leaf, turn, &core) : 0;

	return (Computed){ .word = word, .core = core, .well = well };
}

void pairs_compare(Run *r, const Batch *b, const Monitor *w, uint64_t update, PairFn *readable, PairFn *well,
                   void *guard, Pair pair[PAIRS])
{
	const Comm *c = r->ranks->comm;
	uint32_t next = (c->rank + 1) % c->size, before = (c->rank + c->size - 1) % c->size;
	Pair *own = &pair[PAIR_OWN], *theirs = &pair[PAIR_THEIRS];

	*own = (Pair){ .leaf = w->leaf, .rank = next, .differs = w->leaf != NO_LEAF };
	*theirs = (Pair){ .leaf = rank_leaf(r, b, before, update), .rank = before };
	theirs->differs = theirs->leaf != NO_LEAF;
	own->own[0] = (Computed){ .word = w->leaf_checksum, .core = w->leaf_core, .well = true };
	if (theirs->differs)
		theirs->own[0] = compute(r, b, theirs->leaf, 0, readable(guard, b, theirs->leaf));
	exchange(c, pair, 0);
	for (int i = 0; i < PAIRS; i++) {
		pair[i].differs &= pair[i].own[0].word != pair[i].other[0].word;
		if (pair[i].differs)
			pair[i].own[1] = compute(r, b, pair[i].leaf, 1, pair[i].own[0].well);
		if (pair[i].differs)
			pair[i].own[1].well &= well(guard, b, pair[i].leaf);
	}
	exchange(c, pair, 1);
}

/* Whoever has broken state or data tells that.  If nobody was wrong only once, the one whose leaf it is tells. */
const char *pair_fault(Arena *a, const Pair *p, bool is_own)
{
	Buf b = { .arena = a };
	bool once = p->own[1].word == p->other[0].word, other_once = p->other[1].word == p->own[0].word;

	if (!p->differs || (p->own[1].well && !p->other[1].well) || (!once && (other_once || !is_own) && p->own[1].well))
		return NULL;
	if (once)
		buf_printf(&b,
		           "core %d computed leaf %u of the batch wrongly: core %d of rank %u has it otherwise, and core %d "
		           "agrees with that",
		           p->own[0].core, p->leaf, p->other[0].core, p->rank, p->own[1].core);
	else
		buf_printf(&b, "leaf %u of the batch comes out differently on core %d and on core %d of rank %u", p->leaf,
		           p->own[0].core, p->other[0].core, p->rank);
	return b.s;
}
