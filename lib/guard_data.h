/* SPDX-License-Identifier: MIT */
/* What the files of a guard share: state and its copies (guard_state.c); seals of data, and a bit that changed put right
 * (guard_data.c). */
#ifndef GUARD_DATA_H
#define GUARD_DATA_H

#include "guard.h"

/* ---- guard_state.c ---- */

/* Copies: a recent one, and those of where this pass over the data and the one before began; the later comes first. */
enum { COPY_RECENT, COPY_PASS, COPY_BEFORE, COPIES };
typedef struct Kept {
	bool valid;
	Position at, best_at;
	uint64_t place;           /* what sealed the position */
	uint8_t *bytes;           /* all regions, one after the other */
	uint64_t *seal;
	double *best;             /* with keep-best */
} Kept;

typedef struct State {
	Run *r;
	Arena *arena;
	Region region[MOST_REGIONS]; uint32_t regions;
	uint64_t bytes, pieces;   /* of all regions */
	uint64_t *seal;           /* [pieces] as they should be */
	Kept kept[COPIES];
} State;

bool state_take(State *s);                                   /* regions as they are now; true: others than before, without seals or copies */
void state_seal(State *s);
const char *state_look(const State *s, const uint64_t *found); /* NULL: all is as sealed; else what is not.  found: seals, if they are made */
void state_keep(State *s, int copy);                         /* the state has its seals */
/* The latest good copy, not before `newest` in their list; -1: there is none, or someone has had enough.  Ranks choose together. */
int state_choose(State *s, int newest, bool *enough, uint64_t *broken);
void state_restore(State *s, int copy);

/* ---- guard_data.c ---- */

typedef struct DataSeals DataSeals;
DataSeals *data_seals_new(Arena *a, const Data *d, Run *r);
/* NULL: examples first .. first + count - 1 (count 0: everything) are as they were.  Else what was wrong; it was put right, and
 * *repaired counts, or it fails. */
const char *data_seals_look(DataSeals *s, const Data *d, const Net *net, uint64_t first, uint64_t count, uint64_t *repaired);
/* The one bit of a piece whose change would make this of its seal, if there is one. */
bool flipped_bit(uint64_t bytes, uint64_t should, uint64_t is, uint64_t *bit);

#endif
