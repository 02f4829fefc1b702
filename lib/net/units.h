/* SPDX-License-Identifier: MIT */
/* Unit functions (units.def) and error functions: units.c.  A header of its own, since the kernels of target cpu need
 * nothing else of a network. */
#ifndef UNITS_H
#define UNITS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* ERR_AUTO is a value of option error only: net_parse and mp_run_set put the choice for the network in its place. */
enum { ERR_SQUARED, ERR_CROSS_ENTROPY, ERR_DIVERGENCE, ERR_COUNT, ERR_AUTO = ERR_COUNT };
typedef struct ErrorFn {
	const char *name, *formula;
	double (*value)(double out, double target);
	double (*slope)(double out, double target); /* d value / d out */
	/* NULL, or the value from logarithms of out and of 1 - out, which is exact where out is all but 0 or 1 */
	double (*from_logs)(double out, double ln_out, double ln_rest, double target);
	double low, high;  /* outputs must lie in this range */
	int matched;       /* the unit function whose slope cancels, -1 if none */
	bool only_matched; /* defined for that unit function only */
} ErrorFn;
extern const ErrorFn error_fns[ERR_COUNT];
bool error_fits(int error, int fn); /* may outputs of this unit function be trained with it? */
/* Of the outputs of a group and of 1 less them, from its net inputs; of functions other than sigmoids and softmax, from
 * outputs that are kept 2^-40 away from 0 and 1. */
typedef struct Logs {
	double out, rest;
} Logs;
void group_logs(int fn, uint32_t count, const double *net, const double *out, Logs *logs);
/* The error of a softmax group: net[i * step] are its net inputs, y[i * y_step] targets, NaN if there is none. */
double softmax_row_error(int error, const float *net, size_t step, const float *y, size_t y_step, uint32_t count);

#endif
