/* SPDX-License-Identifier: MIT */
/* Unit functions (the table is units.def) and error functions, in double precision.
 *
 * In: a unit's net input, or an output and its target.  Out: values and slopes in double.
 * Must hold: finite for all finite arguments; the error of a case is zero where outputs and targets agree. */
#include <math.h>

#include "net.h"

/* ---- unit functions ---- */

static double sigmoid_value(double net) { return 1 / (1 + arith_exp(-net)); }
static double sigmoid_slope(double net, double out)
{
	(void)net;
	return out * (1 - out);
}

static double tanh_value(double net) { return arith_tanh(net); }
static double tanh_slope(double net, double out)
{
	(void)net;
	return 1 - out * out;
}

static double linear_value(double net) { return net; }
static double linear_slope(double net, double out)
{
	(void)net;
	(void)out;
	return 1;
}

static double relu_value(double net) { return net <= 0 ? 0 : net; } /* NaN stays NaN */
static double relu_slope(double net, double out)
{
	(void)out;
	return net > 0;
}

static double softmax_value(double net) { return arith_exp(net); }
#define softmax_slope NULL

static double gaussian_value(double net) { return arith_exp(-(net * net)); }
static double gaussian_slope(double net, double out) { return -2 * net * out; }

/* The report's first sigmoid (section 4.3), cheap on a machine that has 2^n in a table. */
#define LN2 0.69314718055994530942
static double sigmoid2_value(double net) { return 1 / (1 + arith_exp(-net * LN2)); }
static double sigmoid2_slope(double net, double out)
{
	(void)net;
	return LN2 * out * (1 - out);
}

const UnitFn unit_fns[FN_COUNT] = {
#define UNIT(ID, name, formula, low, high) [FN_##ID] = { #name, formula, name##_value, name##_slope, low, high },
#include "units.def"
};

/* ---- error functions ---- */

/* Before a logarithm or a division an output is kept this far from 0 and 1: a wrong, saturated unit costs at most
 * 40 ln 2 = 27.7, and its slope stays finite. */
#define SMALLEST_OUTPUT 0x1p-40

static double off_zero(double out) { return out < SMALLEST_OUTPUT ? SMALLEST_OUTPUT : out; } /* NaN stays */
static double off_both(double out) { return out > 1 - SMALLEST_OUTPUT ? 1 - SMALLEST_OUTPUT : off_zero(out); }

/* t ln(t / o), zero for t = 0. */
static double surprise(double target, double out) { return target > 0 ? target * arith_log(target / out) : 0; }

static double squared_value(double out, double target) { return 0.5 * (out - target) * (out - target); }
static double squared_slope(double out, double target) { return out - target; }

/* Less the entropy of the target itself, so that the best output costs nothing also where targets are not 0 or 1. */
static double cross_value(double out, double target)
{
	double o = off_both(out), sum = surprise(target, o) + surprise(1 - target, 1 - o);

	return out == target || sum < 0 ? 0 : sum; /* rounding may fall below zero; NaN stays */
}

static double cross_slope(double out, double target)
{
	double o = off_both(out);

	return (out - target) / (o * (1 - o));
}

/* Of one output alone this may be negative; summed over a softmax group it is not. */
static double divergence_value(double out, double target) { return surprise(target, off_zero(out)); }
static double divergence_slope(double out, double target) { return -target / off_zero(out); }

const ErrorFn error_fns[ERR_COUNT] = {
	[ERR_SQUARED] = {
		"squared", "1/2 (o - t)^2", squared_value, squared_slope, -INFINITY, INFINITY, -1, false,
	},
	[ERR_CROSS_ENTROPY] = {
		"cross-entropy", "t ln(t / o) + (1 - t) ln((1 - t) / (1 - o))",
		cross_value, cross_slope, 0, 1, FN_SIGMOID, false,
	},
	[ERR_DIVERGENCE] = {
		"divergence", "t ln(t / o)", divergence_value, divergence_slope, 0, 1, FN_SOFTMAX, true,
	},
};

bool error_fits(int error, int fn)
{
	const ErrorFn *e = &error_fns[error];

	return e->only_matched ? fn == e->matched : unit_fns[fn].low >= e->low && unit_fns[fn].high <= e->high;
}
