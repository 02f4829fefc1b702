/* SPDX-License-Identifier: MIT */
/* Many seeds of one network: a seed in each lane.
 *
 * Every number of the network is here a vector: sixteen floats, one for each seed. So weights are [links][LANES],
 * and what a unit does in the cases of a chunk is [units][chunk][LANES]. A seed's sums run through its own lane
 * alone, in canonical order, and with the operations of the other kernels: its bits are those of a run by itself. */
#ifndef SEEDS_H
#define SEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target.h"

enum { BUNCH_UNITS = 4 };

/* A few units side by side that have the same sources (forward, gradient), or the same targets (backward). Their
 * weights are told in the order of sums: all of the first source, all of the second, ... */
typedef struct SeedBunch {
	uint32_t unit, count;
	uint32_t links;  /* of each unit */
	uint32_t other;  /* the units at the other ends are those of rows other[0] .. other[links - 1] */
	uint32_t weight; /* the first of its weights; backward: of its places */
	bool bias;       /* the first source is the true unit */
	bool still;      /* all its weights are frozen: no gradient is wanted */
} SeedBunch;

/* Units that are computed alike: a Part of the layout. */
typedef struct SeedPart {
	uint32_t unit, count;
	int fn;
	bool output, context;    /* context: nothing is computed forward */
	uint32_t target;         /* number of its first output */
	bool matched;            /* error and unit function match: what goes back is the delta itself */
	bool own;                /* an output that others build on */
	bool carried;            /* errors come to it from the next case, through a context */
	uint32_t bunch, bunches; /* forward */
	uint32_t back, backs;    /* backward */
} SeedPart;

typedef struct SeedCopy {
	uint32_t from, to, count;
	float start;
} SeedCopy; /* units; to: a context */

typedef struct Seeds {
	uint32_t units, chunk; /* rows of units are chunk vectors long */
	uint32_t inputs, outputs;
	const uint32_t *input, *output; /* their units */
	const SeedPart *part;
	uint32_t parts; /* sources before targets */
	const SeedBunch *bunch, *back;
	const uint32_t *from, *to; /* rows, as floats from the first: what `other` of bunch and back counts in */
	const uint32_t *place;     /* of weights, for `back` */
	uint32_t bunches;
	const SeedCopy *copy;
	uint32_t copies;
	bool full_bptt; /* errors go back through contexts */
	int error;      /* ERR_... */
	float offset;   /* on the slope of sigmoid units */
	float threshold, middle;
	bool right;  /* is to be found out here: there are no code words */
	bool known;  /* no target is missing */
	bool binary; /* all targets that there are, are 0 or 1 */
	bool plain;  /* known, without weights, all outputs one part; with cross-entropy, matched and binary */
	const float *x, *y, *weight; /* dense rows of all cases, and one more without targets; weight may be NULL */
	const float *wanted; /* as y: 1 for the first largest target, else 0; a lone one: 1 if it is above the middle */
	size_t x_row, y_row; /* in full sixteens */
	float *w;
	float *act, *err, *net, *own; /* net and own: NULL if nobody asks */
	/* y, wanted [outputs][chunk][LANES] and weight [chunk][LANES] of the cases in hand */
	float *target, *aim, *importance;
} Seeds;

/* Of the cases so far, for each seed; counts stay below 2^24.  Who calls counts the cases. */
typedef struct SeedTally {
	double error[16];
	float cases[16], scored[16], right[16], within[16];
} SeedTally;

/* Tallies from which on a seed may have come to its end: counts no less, errors less. */
typedef struct SeedEnds {
	float right, within;
	double error;
} SeedEnds;

#endif
