/* SPDX-License-Identifier: MIT */
/* Small networks: whole passes in one call. One table and one kernel text (small.inc) serve three layouts:
 *
 *   LANE_SEED  a lane is a seed   a vector is one case          weights [links][LANES], loaded
 *   LANE_CASE  a lane is a case   a vector is 16 cases          weights [sources][LANES], one float broadcast
 *   LANE_PAIR  at most 8 cases    a vector is 8 cases of two    weights [sources][LANES], two floats broadcast
 *                                 adjacent units
 *
 * Lanes of weights [sources][LANES] are the computed units. Activations are [units][chunk][LANES], of LANE_PAIR
 * [units][8]. Every sum is one chain in canonical order, as in the other kernels: the bits are the same. */
#ifndef SMALL_H
#define SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tally.h"
#include "units.h"
#include "util.h"

typedef enum LaneKind { LANE_SEED, LANE_CASE, LANE_PAIR } LaneKind;
enum { TILE_UNITS = 4, PAIR_CASES = 8, PAIR_UNITS = 2 * TILE_UNITS }; /* units of a tile at most; of LANE_PAIR */

/* The k-th link of every unit of a tile: they have the unit at the other end in common. All in floats. */
typedef struct SmallLink {
	uint32_t row;    /* of the other end in act (forward) or err (backward) */
	uint32_t weight; /* of the tile's first unit */
	uint32_t next;   /* from one unit's weight to the next one's */
} SmallLink;

/* Adjacent units of a part with the same sources (forward, gradient) or the same targets (backward). */
typedef struct SmallTile {
	uint32_t unit, err, count; /* rows of the first unit in act and err */
	uint32_t link, links;      /* of each unit, in the order of sums */
	bool bias;                 /* forward: the first source is the true unit */
	bool frozen;               /* all its weights: no gradient */
} SmallTile;

/* Adjacent units with one function: a Part of the layout. */
typedef struct SmallPart {
	uint32_t unit, err, count; /* rows of the first unit in act and err */
	int fn;
	bool output, context; /* context: not computed forward */
	uint32_t target;      /* number of its first output */
	bool matched;         /* error and unit function match: output - target is the delta */
	bool is_source;       /* an output that other units read */
	bool keeps_net;       /* its net inputs are kept in SmallNet.net */
	bool carried;         /* receives errors of the next case through a context */
	uint32_t tile, tiles; /* forward */
	uint32_t back, backs; /* backward */
} SmallPart;

typedef struct SmallCopy {
	uint32_t from, to, count; /* units; to: a context */
	float start;
} SmallCopy;

typedef struct SmallNet {
	uint32_t units, chunk; /* vectors of a unit */
	size_t step;           /* floats of a unit: chunk * LANES, of LANE_PAIR 8 */
	uint32_t inputs, outputs;
	const uint32_t *input, *output; /* their units, ascending */
	const SmallPart *part;          /* sources before targets */
	uint32_t parts;
	const SmallTile *tile; /* the forward ones, then the backward ones */
	uint32_t tiles;        /* forward */
	const SmallLink *link;
	const SmallCopy *copy;
	uint32_t copies;
	bool full_bptt; /* errors propagate through contexts */
	int error;      /* ERR_... */
	float offset;   /* on the slope of sigmoid units */
	float threshold, middle;
	bool score_right; /* in the kernel: there are no code words */
	bool known;       /* no target is missing */
	bool binary;      /* all targets that exist are 0 or 1 */
	bool plain;       /* known, no case weights, one part of outputs; with cross-entropy matched and binary */
	/* Dense rows of all cases and a row without targets; weight may be NULL. top: 1 for the first largest target, else
	 * 0; of a single target: 1 if it is above the middle. */
	const float *x, *y, *top, *weight;
	size_t x_row, y_row; /* padded to LANES */
	float *w;
	float *act, *err, *net, *own_err; /* net, own_err: NULL if unused; own_err: of outputs that are sources */
	/* Of the loaded cases: y, top [outputs][chunk][LANES] and weight [chunk][LANES] */
	float *target, *target_top, *case_weight;
} SmallNet;

/* Of each seed; counts stay below 2^24.  The caller counts the cases. */
typedef struct LaneTally {
	double error[16], weight[16]; /* weight: of the scored cases, with case weights; else 0 */
	float cases[16], scored[16], right[16], within[16];
} LaneTally;

/* A seed may have met its stop criterion if a count is no less or the error is less. */
typedef struct LaneLimits {
	float right, within;
	double error;
} LaneLimits;

/* ---- tiny: no more computed units than lanes ---------------------------------------------------- */

/* A pass over all cases and an update in one call; LANE_PAIR or LANE_CASE. */
typedef struct Tiny {
	SmallNet net;
	uint32_t cases, sources; /* sources: rows of weights, a multiple of 4 */
	bool pairs;              /* LANE_PAIR */
	bool momentum;           /* the rule, without anything else */
	/* LANE_PAIR, a word for two outputs (bits 0 to 7, 8 to 15), a bit for each case: the output has the first largest
	 * target; that one comes later (of a single output: the target is above the middle). */
	const uint32_t *wanted, *before;
} Tiny;

/* Updates after one or a few cases: lanes are units, outputs first and in their order. */
typedef struct TinyLink {
	uint8_t row, lane; /* of a computed unit: its row of weights as a source, its own lane */
} TinyLink;
typedef struct TinyStage {     /* units that are computed together */
	uint32_t lanes;            /* a bit for each */
	uint32_t row, lane, units; /* of the first one; the others follow */
	int fn;
	bool is_output;
	bool inputs;          /* are among its sources */
	const TinyLink *from; /* its other sources, */
	const uint8_t *to;    /* and lanes of its targets: of any of its units, in canonical order */
	uint32_t froms, tos;
} TinyStage;
typedef struct TinySteps {
	uint32_t given, sources, outputs; /* rows: true and inputs; all that have targets */
	const TinyStage *stage;           /* sources before targets */
	uint32_t stages;
	const uint8_t *lane;    /* [sources] of the computed ones */
	const uint16_t *real;   /* [sources] lanes that are links */
	const float *x;         /* [cases][given] true and inputs */
	const uint8_t *listed;  /* [cases][given - 1] rows of inputs: those that are not zero, then the others, */
	const uint8_t *on;      /* [cases] and how many are not */
	const float *y;         /* [cases][LANES], padded with zeros */
	const uint8_t *top;     /* [cases] the first largest target */
	bool matched, momentum; /* matched: cross-entropy of sigmoids; else squared error */
	float offset, threshold, middle;
} TinySteps;
typedef struct TinyOrder {
	const uint64_t *example; /* NULL: first, first + 1, ... */
	uint64_t first, cases, batch;
} TinyOrder;

#endif
