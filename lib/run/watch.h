/* SPDX-License-Identifier: MIT */
/* What a guard and a target share while a run trains. */
#ifndef WATCH_H
#define WATCH_H

#include "checksum.h"
#include "run.h"

enum { GUARD_OFF, GUARD_LIGHT, GUARD_FULL };
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

#endif
