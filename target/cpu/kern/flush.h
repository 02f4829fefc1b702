/* SPDX-License-Identifier: MIT */
/* Single floats as kernels compute them: subnormal operands and results are zeros of the same sign.
 *
 * What x86 does with FTZ and DAZ set is the definition: a result is flushed if, rounded to 24 bits as though there
 * were no smallest exponent, it is below 2^-126 (tininess is detected after rounding). Other CPUs either have no such
 * mode, or flush before rounding (FPCR.FZ of ARM), and then a product just below 2^-126 becomes 0, not 2^-126. So
 * these functions say it in C: on x86 they are the plain operations, and MXCSR does the rest (cpu_enter); elsewhere,
 * and with MP_PORTABLE, they flush in code, and give the same bits whether or not the CPU flushes, too.
 *
 * Sums: of two normal floats a sum below 2^-126 is exact, so that flushing the rounded one is right. Quotients: none
 * lies between 2^-126 - 2^-150 and 2^-126, for 1 - 1/m with m < 2^24 is less than that; the same holds. Products and
 * fused multiply-adds can lie there: they are exact in double, or rounded to odd, and compared before they are
 * narrowed. */
#ifndef FLUSH_H
#define FLUSH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifndef FLUSH_BY_CPU
#if defined __SSE2__ && !defined MP_PORTABLE
#define FLUSH_BY_CPU 1
#else
#define FLUSH_BY_CPU 0
#endif
#endif

/* A fused multiply-add that is one instruction. */
#if defined __FP_FAST_FMAF || defined __ARM_FEATURE_FMA || defined __riscv_flen
#define FMA_BY_CPU 1
#else
#define FMA_BY_CPU 0
#endif

#define LEAST_NORMAL 0x1p-126f
#define TINY_BELOW   0x1.ffffffp-127 /* rounds up to 2^-126, of two to the even one; what is less is flushed */

static inline uint32_t float_bits(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static inline float bits_float(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

/* p + c rounded to odd: towards zero, and where a bit is lost the last one is made 1. Rounding that again, to half as
 * many bits, gives what one rounding would have. */
static inline double sum_to_odd(double p, double c)
{
	double s = p + c, back = s - p, lost = (p - (s - back)) + (c - back); /* exact; NaN beside infinities */
	uint64_t bits;

	memcpy(&bits, &s, sizeof bits);
	if (lost < 0 || lost > 0)
		bits = (bits - ((lost < 0) != (s < 0))) | 1;
	memcpy(&s, &bits, sizeof s);
	return s;
}

#if FLUSH_BY_CPU

static inline float f_flush(float x) { return x; } /* operations do it */
static inline float f_narrow(double x) { return (float)x; }

#else

static inline float f_flush(float x) { return float_bits(x) & 0x7f800000 ? x : bits_float(float_bits(x) & 0x80000000); }

/* Of a number that is exact, or rounded to odd. */
static inline float f_narrow(double x)
{
	double size = fabs(x);

	if (size < (double)LEAST_NORMAL)
		return copysignf(size < TINY_BELOW ? 0 : LEAST_NORMAL, (float)copysign(1, x));
	return (float)x;
}

#endif

static inline float f_add(float a, float b) { return f_flush(f_flush(a) + f_flush(b)); }
static inline float f_sub(float a, float b) { return f_flush(f_flush(a) - f_flush(b)); }
static inline float f_div(float a, float b) { return f_flush(f_flush(a) / f_flush(b)); }
static inline float f_mul(float a, float b)
{
	return FLUSH_BY_CPU ? a * b : f_narrow((double)f_flush(a) * (double)f_flush(b));
}

/* a b + c, rounded once: the product is exact in double. */
static inline float f_fma(float a, float b, float c)
{
	a = f_flush(a);
	b = f_flush(b);
	c = f_flush(c);
	if (FMA_BY_CPU) {
		float r = __builtin_fmaf(a, b, c);
		if (FLUSH_BY_CPU || !(fabsf(r) <= LEAST_NORMAL))
			return r;
	}
	return f_narrow(sum_to_odd((double)a * (double)b, (double)c));
}

#endif
