/* SPDX-License-Identifier: MIT */
/* The table of a small network (kern/small.h), which tiny.c and restarts.c run. */
#ifndef SMALL_NET_H
#define SMALL_NET_H

#include "fast.h"

typedef struct SmallShape {
	LaneKind lane;
	uint32_t chunk;         /* vectors of a unit; LANE_PAIR: 1 */
	const uint8_t *lane_of; /* LANE_CASE, LANE_PAIR: [units] lanes of computed units, contiguous in a part; else NULL */
} SmallShape;

/* Everything that threads share but the data. place_of [links]: offset of a link's weight in floats; LANE_SEED: made
 * here, else given. */
SmallNet small_make(Arena *arena, const Layout *l, const Options *opt, const SmallShape *shape, uint32_t *place_of);
/* The data, as dense rows; returns how many cases are scored, and their weight. uneven: a lane may lack a case. */
Tally small_data(Arena *arena, SmallNet *s, const Program *p, bool uneven);
void small_arrays(Arena *arena, SmallNet *s, const Layout *l); /* for a thread, all but the weights */

uint32_t first_largest(const float *y, uint32_t n); /* its position */

#endif
