/* SPDX-License-Identifier: MIT */
/* guard: training that finds bits which changed by themselves, tells of them and goes on from before.
 *
 * What rests is sealed: a checksum of it is made when it was written and looked at when it is used. Types that a
 * target and the guard share come first, then the calls of the loop (train.c), in their order. */
#ifndef GUARD_H
#define GUARD_H

#include "monitor.h"

typedef struct Guard Guard;

/* What was found, for reports and tests. */
typedef struct GuardCount {
	uint64_t state, sums, data, leaves, jumps, position, copies; /* faults, by what they were in */
	uint64_t repaired;                                           /* bits of data put right */
	uint64_t rollbacks, replays; /* replays: of what was odd and came out the same again: no faults */
	/* states looked at, leaves computed again, copies kept, passes over the data */
	uint64_t checks, again, kept, passes;
	uint64_t sealed; /* pieces of data */
} GuardCount;

/* The data is bound; NULL: option guard is off. batch: this rank reads its own cases of such batches alone; 0: it
 * reads everything. */
Guard *guard_begin(Run *r, const Data *data, Order *order, uint64_t batch);
/* Each may roll the run back to an earlier Position: then it is false.  They fail where that does not help. */
bool guard_epoch(Guard *g);                   /* an epoch begins */
bool guard_place(Guard *g);                   /* the Position is used: is it what it was? */
bool guard_batch(Guard *g, const Batch *b);   /* before a batch is computed, */
bool guard_sums(Guard *g);                    /* before its sums are given away, */
bool guard_summed(Guard *g, const Batch *b);  /* before its update, */
bool guard_applied(Guard *g, const Tally *t); /* after it; the Position is the next one's */
void guard_moved(Guard *g);                   /* the loop has changed the Position */
bool guard_state(Guard *g);                   /* before weights are given away */
bool guard_end(Guard *g);                     /* before the result is */
const GuardCount *guard_count(const Guard *g);
uint32_t guard_copies(const Guard *g, Region *r); /* for tests: where they are; recent first, three at most */

/* Ranks (ranks.c): what each says when they meet, and what it means. */
enum { DUE_COPY, DUE_PASS, DUE_LEAF };
uint32_t guard_due(const Guard *g);          /* bits: by this rank's clock it is time for that */
uint64_t guard_word(const Guard *g);         /* what must be the same on all ranks; 0: nothing is known */
void guard_leaves(Guard *g, const Batch *b); /* the batch is summed: if they are due, neighbours compute leaves again */
void guard_together(Guard *g, const char *what); /* some said SAY_BACK, or all know what is wrong: all go back */

#endif
