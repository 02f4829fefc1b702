/* SPDX-License-Identifier: MIT */
/* What a pass over cases counts (score.c).  A header of its own, since the kernels of target cpu need nothing else of a
 * run. */
#ifndef TALLY_H
#define TALLY_H

#include <stdint.h>

typedef struct Tally {
	double error;
	uint64_t cases, scored, right, within; /* scored: cases with any target */
	double weight;                         /* of the scored cases: the sum of their case weights, or their number */
} Tally;

#endif
