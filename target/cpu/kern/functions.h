/* SPDX-License-Identifier: MIT */
/* Unit functions of vectors of 16 floats, in terms of the vec_*.h that was included before.
 *
 * In: any floats.  Out: the function of each.  Must hold: every step is one rounded operation, so that every machine
 * gives the same bits; finite for all finite arguments (v_exp: up to 88.72), the limits at infinity, NaN stays NaN.
 *
 * Largest errors over all floats; u is 2^-23, the spacing of floats from 1 to 2:
 *
 *                 absolute      relative, where the value is 2^-125 or more
 *   v_exp                       0.8 u; below 2^-125.5 it is 0
 *   v_log                       0.9 u
 *   v_softplus                  3.3 u
 *   v_sigmoid     0.85 u        2.6 u for x > -20, 3.3 u below
 *   v_sigmoid2    0.85 u        2.6 u
 *   v_tanh        1.1 u         2 u
 *   v_gaussian    0.55 u        0.9 u
 *
 * No divisions: one of 16 floats takes the time of twenty or more fused multiply-adds.
 *
 * v_mla, v_mls and v_scale are v_fma, v_fnma and v_mul where no result is inexact and below 2^-125: there every way to
 * flush subnormal numbers gives the same, and ARM needs one instruction, not seven or eight (vec_neon.h). */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include <math.h>
#include <stdbool.h>

#include "units.h"

/* Loops over a few vectors are written out in full, or they would not stay in registers. */
#if defined __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE         static inline __attribute__((always_inline))
#define EACH(i, count) UNROLL for (uint32_t i = 0; i < (count); i++)

#define LN2_HIGH    0x1.62e430p-1f /* with LN2_LOW 48 bits of ln 2 */
#define LN2_LOW     -0x1.05c610p-29f
#define LN2_INVERSE 0x1.715476p+0f

/* 1.5 2^23 and a little: adding it to a small number rounds that to a whole one, and leaves number + 127 in the low
 * bits, where i_shl23 makes the exponent of 2^number of it. For -127 that is zero, as it should be. */
#define WHOLE (0x1.8p23f + 127)

/* c[0] + c[1] x + ... by Horner's rule. */
static inline __attribute__((always_inline)) V v_series(const float *c, int count, V x)
{
	V sum = v_set(c[count - 1]);

	for (int i = count - 2; i >= 0; i--)
		sum = v_mla(sum, x, v_set(c[i]));
	return sum;
}

/* e^x.  The series is twice e^r, and 2^n is halved, so that the largest results do not overflow on the way. */
static inline V v_exp(V x)
{
	static const float c[] = {
		2, 0x1p+1f, 0x1.fffffcp-1f, 0x1.555418p-2f, 0x1.555824p-4f, 0x1.126804p-6f, 0x1.6ae6b6p-9f,
	};
	V whole = v_set(WHOLE - 1);

	x = v_min(v_set(89), v_max(v_set(-87.3f), x));
	V z = v_mla(x, v_set(LN2_INVERSE), whole), n = v_sub(z, whole);
	V r = v_mls(n, v_set(LN2_LOW), v_mls(n, v_set(LN2_HIGH), x));

	return v_scale(v_series(c, 7, r), i_float(i_shl23(v_bits(z))));
}

/* ln 2^n (1 + f) = n ln 2 + f - f^2/2 + f^3 P(f) for 1 + f in sqrt(1/2) .. sqrt(2). */
static inline V v_log_series(V n, V f)
{
	static const float c[] = {
		0x1.5556d8p-2f, -0x1.00037cp-2f, 0x1.98d862p-3f, -0x1.5383e6p-3f,
		0x1.3170f2p-3f, -0x1.242366p-3f, 0x1.644aa2p-4f,
	};
	V ff = v_mul(f, f);
	V tail = v_fma(v_mul(ff, f), v_series(c, 7, f), v_mul(n, v_set(LN2_LOW)));

	return v_fma(n, v_set(LN2_HIGH), v_add(f, v_fma(ff, v_set(-0.5f), tail)));
}

#define ROOT_HALF_BITS 0x3f3504f3 /* sqrt(1/2) */

/* ln x of normal numbers above zero. */
static inline V v_log_normal(V x)
{
	I bits = v_bits(x), k = i_sar23(i_sub(bits, i_set(ROOT_HALF_BITS)));

	return v_log_series(i_value(k), v_sub(i_float(i_sub(bits, i_shl23(k))), v_set(1)));
}

/* The same of x up to 1 where 1 - x is known to more places than x tells. */
static inline V v_log_with(V x, V one_less)
{
	I bits = v_bits(x), k = i_sar23(i_sub(bits, i_set(ROOT_HALF_BITS)));
	V f = v_sub(i_float(i_sub(bits, i_shl23(k))), v_set(1));

	return v_log_series(i_value(k), v_select(v_le(i_float(i_set(ROOT_HALF_BITS)), x), v_neg(one_less), f));
}

static inline V v_log(V x)
{
	V zero = v_set(0), infinity = v_set(INFINITY);
	V low = v_select(v_lt(x, zero), v_set(NAN), v_neg(infinity));
	V y = v_select(v_lt(zero, x), v_log_normal(x), low);

	return v_select(v_lt(x, infinity), y, x); /* infinity and NaN are what they are */
}

/* p / (1 + e) for e in 0 .. 1: a parabola meets 1 / (1 + e) within 1 / 99 (Chebyshev), two steps of Newton's square
 * that twice; the first of them is part of this. Of d, which is 1 + e, the last bit is lost; the second step can look
 * at e itself for one more operation. */
static inline V v_near_one_over(V e, V d)
{
	V y = v_mla(v_mla(v_set(32 / 99.0f), e, v_set(-80 / 99.0f)), e, v_set(98 / 99.0f));

	return v_mla(y, v_mls(d, y, v_set(1)), y);
}

static inline V v_over_one_and(V p, V e, bool exact)
{
	V one = v_set(1), d = v_add(e, one), y = v_near_one_over(e, d);
	V q = v_mul(p, y);
	return v_fma(q, exact ? v_fnma(e, y, v_sub(one, y)) : v_mls(d, y, one), q);
}

/* The sigmoid of x, from e = e^-|x|: 1 / (1 + e), below zero e / (1 + e). */
static inline V v_sigmoid_from(V x, V e) { return v_over_one_and(v_select(v_lt(x, v_set(0)), e, v_set(1)), e, false); }

static const float sigmoid_series[] = {
	/* e^-r */
	1, -0x1.fffff6p-1f, 0x1.fffdc4p-2f, -0x1.555a6ep-3f, 0x1.573b0cp-5f, -0x1.0fa7aap-7f,
};

/* e^-|x|.  What ln 2 lacks as one float shows only where it is tiny. */
static inline V v_sigmoid_power(V x)
{
	V whole = v_set(WHOLE), a = v_min(v_set(88), v_abs(x));
	V z = v_mla(a, v_set(-LN2_INVERSE), whole), n = v_sub(z, whole);
	V r = v_mla(n, v_set(LN2_HIGH), a);

	return v_scale(v_series(sigmoid_series, 6, r), i_float(i_shl23(v_bits(z))));
}

/* 1 / (1 + e^-x) */
static inline V v_sigmoid(V x) { return v_sigmoid_from(x, v_sigmoid_power(x)); }

/* ln(1 + e^x), from e = e^-|x|; 1 + e is halved from sqrt(2) on. */
static inline V v_softplus(V x)
{
	V zero = v_set(0), one = v_set(1), e = v_sigmoid_power(x);
	M halved = v_lt(v_set(0x1.a82798p-2f), e);
	V log = v_log_series(v_select(halved, one, zero), v_select(halved, v_mul(v_set(0.5f), v_sub(e, one)), e));

	return v_add(v_max(zero, x), log);
}

/* The same bits for `count` vectors, a constant, VEC_TOGETHER at most. One is a chain of some 60 cycles, and few of
 * them fit into what a CPU looks ahead: so every step is done for all vectors before the next, and in between,
 * `meanwhile` does something else, if there is such. Where one has to be waited for, v_sigmoid is sooner there:
 * 8-3-8 online takes 3 % less. */
static inline __attribute__((always_inline)) void v_sigmoids(V *x, uint32_t count, void (*meanwhile)(void *), void *arg)
{
	const float *c = sigmoid_series;
	V whole = v_set(WHOLE), one = v_set(1), z[VEC_TOGETHER], n[VEC_TOGETHER], r[VEC_TOGETHER], e[VEC_TOGETHER],
	  y[VEC_TOGETHER];

	EACH(i, count)
	{
		r[i] = v_min(v_set(88), v_abs(x[i]));
		e[i] = v_set(c[5]);
	}
	EACH(i, count) z[i] = v_mla(r[i], v_set(-LN2_INVERSE), whole);
	EACH(i, count) n[i] = v_sub(z[i], whole);
	if (meanwhile)
		meanwhile(arg);
	EACH(i, count) r[i] = v_mla(n[i], v_set(LN2_HIGH), r[i]);
	EACH(i, count) e[i] = v_mla(e[i], r[i], v_set(c[4]));
	if (meanwhile)
		meanwhile(arg);
	EACH(i, count) e[i] = v_mla(e[i], r[i], v_set(c[3]));
	EACH(i, count) e[i] = v_mla(e[i], r[i], v_set(c[2]));
	if (meanwhile)
		meanwhile(arg);
	EACH(i, count) e[i] = v_mla(e[i], r[i], v_set(c[1]));
	EACH(i, count) e[i] = v_mla(e[i], r[i], v_set(c[0]));
	if (meanwhile)
		meanwhile(arg);
	EACH(i, count) e[i] = v_times_power(e[i], n[i], z[i]);
	EACH(i, count) y[i] = v_mla(v_set(32 / 99.0f), e[i], v_set(-80 / 99.0f));
	EACH(i, count) y[i] = v_mla(y[i], e[i], v_set(98 / 99.0f));
	if (meanwhile)
		meanwhile(arg);
	EACH(i, count) r[i] = v_add(e[i], one);
	EACH(i, count) z[i] = v_mls(r[i], y[i], one);
	if (meanwhile)
		meanwhile(arg);
	EACH(i, count) y[i] = v_mla(y[i], z[i], y[i]);
	EACH(i, count) x[i] = v_mul(v_or_one(x[i], e[i]), y[i]);
	if (meanwhile)
		meanwhile(arg);
	EACH(i, count) z[i] = v_mls(r[i], y[i], one);
	EACH(i, count) x[i] = v_fma(x[i], z[i], x[i]);
}

/* 1 / (1 + 2^-x). */
static inline V v_sigmoid2(V x)
{
	static const float c[] = {
		/* 2^-r */
		1, -0x1.62e42ap-1f, 0x1.ebf9bap-3f, -0x1.c6b758p-5f, 0x1.3ceb32p-7f, -0x1.5bb964p-10f,
	};
	V whole = v_set(WHOLE), a = v_min(v_set(127), v_abs(x));
	V z = v_sub(whole, a), n = v_sub(z, whole), r = v_add(n, a);

	return v_sigmoid_from(x, v_scale(v_series(c, 6, r), i_float(i_shl23(v_bits(z)))));
}

/* tanh |x| = (1 - e) / (1 + e) with e = e^-2|x| = 2^n (1 - r P(r)). m = 1 - e as (1 - 2^n) + 2^n r P(r) keeps small
 * x, for which n is 0. */
static inline V v_tanh(V x)
{
	static const float c[] = {
		/* (1 - e^-2r) / r */
		2, -0x1.fffffep+0f, 0x1.55547ep+0f, -0x1.555652p-1f, 0x1.123d48p-2f, -0x1.6c16a6p-4f,
	};
	V whole = v_set(WHOLE), one = v_set(1), a = v_min(v_set(20), v_abs(x));
	V z = v_mla(a, v_set(-2 * LN2_INVERSE), whole), n = v_sub(z, whole);
	V r = v_mla(n, v_set(LN2_HIGH / 2), a), power = i_float(i_shl23(v_bits(z)));
	V m = v_mla(power, v_mul(r, v_series(c, 6, r)), v_sub(one, power));

	return v_sign_from(v_over_one_and(m, v_sub(one, m), true), x);
}

/* e^(-x^2).  The square is taken with what its rounding loses. */
static inline V v_gaussian(V x)
{
	static const float c[] = {
		/* e^-r */
		1, -0x1p+0f, 0x1.fffffcp-2f, -0x1.555418p-3f, 0x1.555824p-5f, -0x1.126804p-7f, 0x1.6ae6b6p-10f,
	};
	V whole = v_set(WHOLE), a = v_min(v_set(9.39f), v_abs(x)), square = v_mul(a, a), lost = v_fma(a, a, v_neg(square));
	V z = v_mla(square, v_set(-LN2_INVERSE), whole), n = v_sub(z, whole);
	V r = v_add(lost, v_mla(n, v_set(LN2_LOW), v_mla(n, v_set(LN2_HIGH), square)));

	return v_scale(v_series(c, 7, r), i_float(i_shl23(v_bits(z))));
}

static inline V v_same(V x) { return x; }
static inline V v_relu(V x) { return v_max(v_set(0), x); } /* NaN stays NaN */

/* Functions of other simulators. */
static inline V v_softsign(V x) { return v_div(x, v_add(v_set(1), v_abs(x))); }
static inline V v_elliott(V x) { return v_fma(v_set(0.5f), v_softsign(x), v_set(0.5f)); }

static inline V v_steps(V x, const StepLines *s)
{
	V y = v_set(s->low);
	for (int i = 0; i + 1 < STEP_POINTS; i++) {
		V line = v_fma(v_set((float)steps_slope(s, i)), v_sub(x, v_set(s->x[i])), v_set(s->y[i]));
		y = v_select(v_lt(x, v_set(s->x[i])), y, line);
	}
	y = v_select(v_lt(x, v_set(s->x[STEP_POINTS - 1])), y, v_set(s->high));
	return v_select(v_nan(x), x, y);
}
static inline V v_stepwise(V x) { return v_steps(x, &sigmoid_steps); }
static inline V v_stepwise_tanh(V x) { return v_steps(x, &tanh_steps); }

/* ---- slopes, of net input and output ---- */

static inline V v_sigmoid_slope(V net, V out)
{
	(void)net;
	return v_fnma(out, out, out);
}
static inline V v_tanh_slope(V net, V out)
{
	(void)net;
	return v_fnma(out, out, v_set(1));
}
static inline V v_linear_slope(V net, V out)
{
	(void)net;
	(void)out;
	return v_set(1);
}
static inline V v_relu_slope(V net, V out)
{
	(void)net;
	return v_select(v_lt(v_set(0), out), v_set(1), v_set(0));
}
static inline V v_gaussian_slope(V net, V out) { return v_mul(v_mul(v_set(-2), net), out); }
static inline V v_sigmoid2_slope(V net, V out) { return v_mul(v_set(LN2_HIGH), v_sigmoid_slope(net, out)); }
static inline V v_softsign_slope(V net, V out)
{
	V rest = v_sub(v_set(1), v_abs(out));
	(void)net;
	return v_mul(rest, rest);
}
static inline V v_elliott_slope(V net, V out)
{
	V rest = v_sub(v_set(1), v_abs(v_fma(v_set(2), out, v_set(-1))));
	(void)net;
	return v_mul(v_mul(v_set(0.5f), rest), rest);
}
static inline V v_steps_slope(const StepLines *s, V out)
{
	V slope = v_set(0);
	for (int i = 0; i + 1 < STEP_POINTS; i++)
		slope = v_select(v_lt(out, v_set(s->y[i])), slope, v_set((float)steps_slope(s, i)));
	slope = v_select(v_lt(out, v_set(s->y[STEP_POINTS - 1])), slope, v_set(0));
	return v_select(v_nan(out), out, slope);
}
static inline V v_stepwise_slope(V net, V out)
{
	(void)net;
	return v_steps_slope(&sigmoid_steps, out);
}
static inline V v_stepwise_tanh_slope(V net, V out)
{
	(void)net;
	return v_steps_slope(&tanh_steps, out);
}

#endif
