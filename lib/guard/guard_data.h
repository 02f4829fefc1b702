/* SPDX-License-Identifier: MIT */
/* What the files of a guard share: state and its copies (guard_state.c); seals of data, and a bit that changed put
 * right (guard_data.c); leaves that two ranks compute (guard_ranks.c). */
#ifndef GUARD_DATA_H
#define GUARD_DATA_H

#include "guard.h"

/* ---- guard_state.c ---- */

/* Copies: a recent one, and those of where this pass over the data and the one before began; the later comes first. */
enum { COPY_RECENT, COPY_PASS, COPY_BEFORE, COPIES };
typedef struct Kept {
	bool valid;
	Position at, best_at;
	uint64_t place; /* what sealed the position */
	uint8_t *bytes; /* all regions, one after the other */
	uint64_t *seal;
	void *best; /* with keep-best */
} Kept;

typedef struct State {
	Run *r;
	Arena *arena;
	Region region[MOST_REGIONS];
	uint32_t regions;
	uint64_t bytes, pieces; /* of all regions */
	uint64_t *seal;         /* [pieces] as they should be */
	Kept kept[COPIES];
} State;

bool state_take(State *s); /* regions as they are now; true: others than before, without seals or copies */
void state_seal(State *s);
/* NULL: all is as sealed; else what is not.  found: seals, if they are made */
const char *state_look(const State *s, const uint64_t *found);
void state_keep(State *s, int copy); /* the state has its seals */
/* The latest good copy, not before `newest` in their list; -1: there is none, or someone has had enough. Ranks
 * choose together. */
int state_choose(State *s, int newest, bool *enough, uint64_t *broken);
void state_restore(State *s, int copy);

/* ---- guard_data.c ---- */

typedef struct DataSeals DataSeals;
DataSeals *data_seals_new(Arena *a, const Data *d, Run *r); /* nothing is sealed yet */
/* seals these cases as they are; how many pieces were not */
uint64_t data_seals_add(DataSeals *s, const Data *d, uint64_t first, uint64_t end);
/* NULL: what is sealed of examples first .. first + count - 1 (count 0: of everything) is as it was. Else what was
 * wrong; it was put right, and *repaired counts, or it fails; repaired NULL: it is only told. */
const char *data_seals_look(DataSeals *s, const Data *d, const Net *net, uint64_t first, uint64_t count,
                            uint64_t *repaired);
/* The one bit of a piece whose change would make this of its seal, if there is one. */
bool flipped_bit(uint64_t bytes, uint64_t should, uint64_t is, uint64_t *bit);

/* ---- guard_ranks.c ---- */

/* of a leaf; not well: state or data are not as they were */
typedef struct Computed {
	uint64_t word;
	int32_t core;
	uint32_t well;
} Computed;
typedef struct Pair {
	bool differs;              /* what the two have made of it */
	uint32_t leaf, rank;       /* rank: the other one */
	Computed own[2], other[2]; /* and once more, if they differ */
} Pair;
enum { PAIR_OWN, PAIR_THEIRS, PAIRS }; /* a leaf of this rank, with the next; a leaf of the rank before */
typedef bool PairFn(void *guard, const Batch *b, uint32_t leaf);

/* the leaf of a rank that is looked at; or NO_LEAF */
uint32_t rank_leaf(const Run *r, const Batch *b, uint32_t rank, uint64_t update);
/* All ranks come.  readable: may the leaf's cases be used?  well: are state and data as they were? */
void pairs_compare(Run *r, const Batch *b, const Monitor *w, uint64_t update, PairFn *readable, PairFn *well,
                   void *guard, Pair pair[PAIRS]);
const char *pair_fault(Arena *a, const Pair *p, bool is_own); /* NULL: there is none, or the other one tells */

#endif
