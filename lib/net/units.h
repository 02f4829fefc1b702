/* SPDX-License-Identifier: MIT */
/* Unit functions (units.def) and error functions: units.c.  A header of its own, since the kernels of target cpu need
 * nothing else of a network. */
#ifndef UNITS_H
#define UNITS_H

#include <math.h>
#include <stdbool.h>

enum {
#define UNIT(ID, ...) FN_##ID,
#include "units.def"
	FN_COUNT
};
typedef struct UnitFn {
	const char *name, *formula;
	double (*value)(double net);             /* softmax: exp; divided by the sum over the group afterwards */
	double (*slope)(double net, double out); /* softmax: NULL */
	double low, high;                        /* range of the outputs */
} UnitFn;
extern const UnitFn unit_fns[FN_COUNT];

enum { ERR_SQUARED, ERR_CROSS_ENTROPY, ERR_DIVERGENCE, ERR_COUNT };
typedef struct ErrorFn {
	const char *name, *formula;
	double (*value)(double out, double target);
	double (*slope)(double out, double target); /* d value / d out */
	double low, high;                           /* outputs must lie in this range */
	int matched;                                /* the unit function whose slope cancels, -1 if none */
	bool only_matched;                          /* defined for that unit function only */
} ErrorFn;
extern const ErrorFn error_fns[ERR_COUNT];
bool error_fits(int error, int fn); /* may outputs of this unit function be trained with it? */

#endif
