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
	FN_COUNT,
	FN_EVERYWHERE = FN_SIGMOID2 + 1 /* those before it are on every target; others not on gf11 */
};

/* Straight lines between six points; low and high outside.  Numbers are those of FANN, exact in single precision. */
enum { STEP_POINTS = 6 };
typedef struct StepLines {
	float x[STEP_POINTS], y[STEP_POINTS], low, high;
} StepLines;
static const StepLines sigmoid_steps = {
	{ -0x1.52c582p+1f, -0x1.78e36p+0f, -0x1.193ea8p-1f, 0x1.193ea8p-1f, 0x1.78e35ep+0f, 0x1.52c586p+1f },
	{ 0x1.47ae14p-8f, 0x1.99999ap-5f, 0.25f, 0.75f, 0x1.e66666p-1f, 0x1.fd70a4p-1f },
	0,
	1
};
static const StepLines tanh_steps = { { -0x1.52c586p+1f, -0x1.78e35ep+0f, -0x1.193ea8p-1f, 0x1.193ea8p-1f,
	                                    0x1.78e35ep+0f, 0x1.52c586p+1f },
	                                  { -0x1.fae148p-1f, -0x1.ccccccp-1f, -0.5f, 0.5f, 0x1.ccccccp-1f, 0x1.fae148p-1f },
	                                  -1,
	                                  1 };
static inline double steps_slope(const StepLines *s, int i) /* between points i and i + 1 */
{
	return ((double)s->y[i + 1] - s->y[i]) / ((double)s->x[i + 1] - s->x[i]);
}

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
/* value[i] is the cross-entropy of out[i]: the bits are those of ErrorFn.value. Targets may be NaN, as is the value. */
void cross_values(const double *out, const float *target, uint32_t count, double *value);
/* The error of a softmax group: net[i * step] are its net inputs, y[i * y_step] targets, NaN if there is none. */
double softmax_row_error(int error, const float *net, size_t step, const float *y, size_t y_step, uint32_t count);

#endif
