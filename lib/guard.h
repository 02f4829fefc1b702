/* SPDX-License-Identifier: MIT */
/* guard: training that finds bits which changed by themselves, tells of them and goes on from before.
 *
 * What rests is sealed: a checksum of it is made when it was written and looked at when it is used. Types that a
 * target and the guard share come first, then the calls of the loop (train.c), in their order. */
#ifndef GUARD_H
#define GUARD_H

#include "lib.h"
#include "seal.h"

enum { GUARD_OFF, GUARD_LIGHT, GUARD_FULL };

uint64_t seal_of(const void *at, uint64_t bytes); /* of up to a piece; Target.seal is the same number, faster */

/* Memory of a target that nobody but an update writes to: weights, their other forms, rule state. */
typedef struct Region {
	const char *name;
	void *at;
	uint64_t bytes;
} Region;
enum { MOST_REGIONS = 12 };

/* When a test may change bits: a leaf's sum is made and not sealed yet; it rests; then the moments of an update. */
enum { MOMENT_MADE, MOMENT_RESTS, MOMENT_BATCH, MOMENT_SUMMED, MOMENT_APPLIED, MOMENT_EPOCH, MOMENTS };
/* sum: of the first two; NULL: the pending sum rests as well */
typedef void MomentFn(void *user, int moment, void *sum, uint64_t bytes);

/* What a guard and a target have in common while a run trains. */
#define NO_LEAF UINT32_MAX
typedef struct Watch {
	bool sums;  /* sums of weight changes are to be sealed where they rest */
	int broken; /* how many were not what they had been; atomic */
	/* [pieces of all regions] NULL, or an update adds seals of the state as it found and as it left it */
	uint64_t *was, *is;
	float reach;     /* largest total weight change of the last update; infinite: one was no number; 0: not known */
	uint32_t leaf;   /* of the batch in hand, is to be noted: */
	uint64_t made;   /* its sum and tally as they were made, */
	int core;        /* and where; -1: on several; */
	uint32_t thread; /* by which thread */
	MomentFn *moment;
	void *user; /* for tests */
} Watch;
void watch_moment(const Watch *w, int moment, void *sum, uint64_t bytes);

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
