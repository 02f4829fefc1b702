/* SPDX-License-Identifier: MIT */
/* Unit functions (the table is units.def) and error functions, in double precision.
 *
 * In: a unit's net input, or an output and its target.  Out: values and slopes in double.
 * Must hold: finite for all finite arguments; the error of a case is zero where outputs and targets agree. */
#include <assert.h>
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

static double softsign_value(double net) { return isinf(net) ? copysign(1, net) : net / (1 + fabs(net)); }
static double softsign_slope(double net, double out)
{
	(void)net;
	return (1 - fabs(out)) * (1 - fabs(out));
}

static double elliott_value(double net) { return 0.5 + 0.5 * softsign_value(net); }
static double elliott_slope(double net, double out)
{
	double rest = 1 - fabs(2 * out - 1);
	(void)net;
	return 0.5 * rest * rest;
}

static double steps_value(const StepLines *s, double net)
{
	if (!(net >= s->x[0]))
		return isnan(net) ? net : s->low;
	for (int i = 0; i + 1 < STEP_POINTS; i++)
		if (net < s->x[i + 1])
			return s->y[i] + steps_slope(s, i) * (net - s->x[i]);
	return s->high;
}

/* Zero outside the lines. */
static double steps_slope_at(const StepLines *s, double out)
{
	if (out < s->y[0] || out >= s->y[STEP_POINTS - 1])
		return 0;
	for (int i = 0; i + 1 < STEP_POINTS; i++)
		if (out < s->y[i + 1])
			return steps_slope(s, i);
	return out; /* NaN */
}

static double stepwise_value(double net) { return steps_value(&sigmoid_steps, net); }
static double stepwise_slope(double net, double out)
{
	(void)net;
	return steps_slope_at(&sigmoid_steps, out);
}
static double stepwise_tanh_value(double net) { return steps_value(&tanh_steps, net); }
static double stepwise_tanh_slope(double net, double out)
{
	(void)net;
	return steps_slope_at(&tanh_steps, out);
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

/* Where all targets are 0 or 1, one of the two terms is 0. False: they are not; nothing was done. */
static bool cross_bits(const double *out, const float *target, uint32_t count, double *value)
{
	double ratio[32 + 8];
	bool bits = true;

	assert(count <= 32);
	for (uint32_t j = 0; j < count; j++)
		bits &= target[j] == 0 || target[j] == 1;
	for (uint32_t j = 0; bits && j < count; j++) {
		double o = off_both(out[j]);
		ratio[j] = target[j] == 1 ? o : 1 - o;
	}
	for (uint32_t j = count; bits && j % 8; j++)
		ratio[j] = 1;
	for (uint32_t j = 0; bits && j < count; j += 8)
		for (uint32_t k = j; k < j + 8; k++)
			ratio[k] = 1 / ratio[k];
	if (bits)
		arith_logs(ratio, round_up(count, 8), ratio);
	for (uint32_t j = 0; bits && j < count; j++)
		value[j] = out[j] == (double)target[j] || ratio[j] < 0 ? 0 : ratio[j] + 0.0;
	return bits;
}

/* Logarithms of many outputs at once; padded to blocks of eight with ones. */
void cross_values(const double *out, const float *target, uint32_t count, double *value)
{
	enum { BLOCK = 32 };
	double ratio[2 * BLOCK + 8];

	for (uint32_t i = 0; i < count; i += BLOCK) {
		uint32_t some = min_u32(count - i, BLOCK), n = 0;
		if (cross_bits(out + i, target + i, some, value + i))
			continue;
		for (uint32_t j = i; j < i + some; j++) {
			double t = (double)target[j], o = off_both(out[j]);
			ratio[n] = t / o; /* overwritten by the next if it does not count: no branch */
			n += t > 0;
			ratio[n] = (1 - t) / (1 - o);
			n += 1 - t > 0;
		}
		for (uint32_t k = n; k % 8; k++)
			ratio[k] = 1;
		arith_logs(ratio, round_up(n, 8), ratio);
		n = 0;
		for (uint32_t j = i; j < i + some; j++) {
			double t = (double)target[j], a = t > 0 ? t * ratio[n++] : 0, b = 1 - t > 0 ? (1 - t) * ratio[n++] : 0;
			value[j] = out[j] == t || a + b < 0 ? 0 : a + b;
		}
	}
}

static double cross_slope(double out, double target)
{
	double o = off_both(out);

	return (out - target) / (o * (1 - o));
}

/* From logarithms, which know what the output itself has lost to rounding. */
static double cross_from_logs(double out, double ln_out, double ln_rest, double target)
{
	double sum = 0;

	if (target > 0)
		sum += target * (arith_log(target) - ln_out);
	if (target < 1)
		sum += (1 - target) * (arith_log(1 - target) - ln_rest);
	return (out == target && target > 0 && target < 1) || sum < 0 ? 0 : sum;
}

static double divergence_from_logs(double out, double ln_out, double ln_rest, double target)
{
	(void)out;
	(void)ln_rest;
	return target > 0 ? target * (arith_log(target) - ln_out) : 0;
}

/* Of one output alone this may be negative; summed over a softmax group it is not. */
static double divergence_value(double out, double target) { return surprise(target, off_zero(out)); }
static double divergence_slope(double out, double target) { return -target / off_zero(out); }

const ErrorFn error_fns[ERR_COUNT] = {
	[ERR_SQUARED] = {
		"squared", "1/2 (o - t)^2", squared_value, squared_slope, NULL, -INFINITY, INFINITY, -1, false,
	},
	[ERR_CROSS_ENTROPY] = {
		"cross-entropy", "t ln(t / o) + (1 - t) ln((1 - t) / (1 - o))",
		cross_value, cross_slope, cross_from_logs, 0, 1, FN_SIGMOID, false,
	},
	[ERR_DIVERGENCE] = {
		"divergence", "t ln(t / o)", divergence_value, divergence_slope, divergence_from_logs, 0, 1, FN_SOFTMAX, true,
	},
};

/* ---- logarithms of outputs, from net inputs ---- */

/* ln(1 + e) for e of -1/2 or more, also where 1 + e is 1. */
static double log_of_one_and(double e)
{
	double sum = 1 + e;

	return sum == 1 ? e : arith_log(sum) * (e / (sum - 1));
}

/* ln(1 + e^x) */
static double softplus(double x) { return (x > 0 ? x : 0) + log_of_one_and(arith_exp(-fabs(x))); }

/* With d = -ln of the sum of e^(x - largest) over all units but the largest, the largest output is 1 / (1 + e^-d). */
typedef struct SoftmaxLogs {
	uint32_t top; /* the first of the largest */
	double largest, distance, ln_sum;
} SoftmaxLogs;

/* Net inputs in double precision, or in single, `step` apart. */
typedef struct NetInputs {
	const void *at;
	bool single;
	size_t step;
} NetInputs;

static double net_at(const NetInputs *n, uint32_t i)
{
	return n->single ? (double)((const float *)n->at)[i * n->step] : ((const double *)n->at)[i * n->step];
}

static SoftmaxLogs softmax_logs(const NetInputs *net, uint32_t count)
{
	SoftmaxLogs l = { .largest = -INFINITY };
	double second = -INFINITY, sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		double x = net_at(net, i);
		if (i == 0 || x > l.largest) {
			second = i ? l.largest : second;
			l.largest = x;
			l.top = i;
		} else if (x > second) {
			second = x;
		}
	}
	for (uint32_t i = 0; i < count; i++)
		if (i != l.top)
			sum += arith_exp(net_at(net, i) - second);
	l.distance = count > 1 ? l.largest - second - arith_log(sum) : -arith_log(0x1p-115); /* as target cpu */
	l.ln_sum = softplus(-l.distance);
	return l;
}

static Logs softmax_logs_of(const SoftmaxLogs *l, uint32_t i, double net)
{
	double ln_out = i == l->top ? -l->ln_sum : net - l->largest - l->ln_sum;

	return (Logs){ ln_out, i == l->top ? -l->distance - l->ln_sum : log_of_one_and(-arith_exp(ln_out)) };
}

void group_logs(int fn, uint32_t count, const double *net, const double *out, Logs *logs)
{
	SoftmaxLogs l = { 0 };

	if (fn == FN_SOFTMAX)
		l = softmax_logs(&(NetInputs){ net, false, 1 }, count);
	for (uint32_t i = 0; i < count; i++) {
		double x = fn == FN_SIGMOID2 ? net[i] * LN2 : net[i];
		if (fn == FN_SOFTMAX)
			logs[i] = softmax_logs_of(&l, i, x);
		else if (fn == FN_SIGMOID || fn == FN_SIGMOID2)
			logs[i] = (Logs){ -softplus(-x), -softplus(x) };
		else
			logs[i] = (Logs){ arith_log(off_zero(out[i])), arith_log(off_zero(1 - out[i])) };
	}
}

double softmax_row_error(int error, const float *net, size_t step, const float *y, size_t y_step, uint32_t count)
{
	SoftmaxLogs l = softmax_logs(&(NetInputs){ net, true, step }, count);
	double sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		Logs of = softmax_logs_of(&l, i, (double)net[i * step]);
		if (!isnan(y[i * y_step]))
			sum += error_fns[error].from_logs(arith_exp(of.out), of.out, of.rest, (double)y[i * y_step]);
	}
	return sum;
}

bool error_fits(int error, int fn)
{
	const ErrorFn *e = &error_fns[error];

	return e->only_matched ? fn == e->matched : unit_fns[fn].low >= e->low && unit_fns[fn].high <= e->high;
}
