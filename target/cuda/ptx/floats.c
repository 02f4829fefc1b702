/* SPDX-License-Identifier: MIT */
/* f32 arithmetic of all lanes. In: bits. Out: bits. Must hold: results are rounded once; NaNs are 0x7fffffff; with
 * .ftz subnormal operands and results become zeros of their sign.
 *
 * GPUs and x86 detect tininess after rounding: a result is subnormal if it is below 2^-126 when rounded to 24 bits
 * with an unbounded exponent. So a result that IEEE arithmetic rounds up to 2^-126 may have to be flushed: is_tiny
 * decides. */
#include <math.h>
#include <string.h>

#include "emulator.h"

enum { NAN_BITS = 0x7fffffff, LEAST_NORMAL = 0x00800000 };
#define SIGN     0x80000000u
#define INFINITE 0x7f800000u

void floats_enter(fenv_t *caller)
{
	fegetenv(caller);
	fesetenv(FE_DFL_ENV);
}

void floats_leave(const fenv_t *caller) { fesetenv(caller); }

static float as_float(uint32_t b)
{
	float f;
	memcpy(&f, &b, sizeof f);
	return f;
}

static uint32_t as_bits(float f)
{
	uint32_t b;
	memcpy(&b, &f, sizeof b);
	return b;
}

static uint32_t flushed(uint32_t b) { return b & INFINITE ? b : b & SIGN; }
float float_flush(float x) { return as_float(flushed(as_bits(x))); }

/* Is the exact result, high + low, below the midpoint of 2^-126 and the next lower number of 24 bits? */
static bool is_tiny(double high, double low)
{
	double midpoint = 0x1p-126 - 0x1p-151;

	if (high < 0)
		high = -high, low = -low;
	return high < midpoint || (high == midpoint && low < 0);
}

float float_of_double(double x, bool ftz)
{
	float f = (float)x;

	if (f != f)
		return as_float(NAN_BITS);
	if (ftz && (as_bits(f) & ~SIGN) <= LEAST_NORMAL && is_tiny(x, 0))
		return as_float(as_bits(f) & SIGN);
	return f;
}

/* 2^x. ex2.approx has two units in the last place on a GPU; here it is rounded to nearest. */
double two_to_the(double x)
{
	double whole = floor(x), f = (x - whole) * 0x1.62e42fefa39efp-1, term = 1, sum = 1;

	if (!(x > -200) || x > 200)
		return x != x ? x : x > 0 ? (double)INFINITY : 0;
	for (int i = 1; i <= 16; i++) {
		term *= f / i;
		sum += term;
	}
	return ldexp(sum, (int)whole);
}

/* .ftz of a result near 2^-126. Operands were flushed before. */
static uint32_t flush_result(FloatOp op, uint32_t bits, float x, float y, float z)
{
	double exact, sum, back;

	if ((bits & ~SIGN) < LEAST_NORMAL)
		return bits & SIGN;
	switch (op) {
	case F_MUL: return is_tiny((double)x * (double)y, 0) ? bits & SIGN : bits;
	case F_DIV:
		return is_tiny((double)x / (double)y, 0) ? bits & SIGN : bits; /* never near the midpoint unless equal */
	case F_FMA:
		exact = (double)x * (double)y;
		sum = exact + (double)z;
		back = sum - exact;
		return is_tiny(sum, (exact - (sum - back)) + ((double)z - back)) ? bits & SIGN : bits;
	default: return bits; /* sums near 2^-126 are exact */
	}
}

/* ---- fused multiply-add, by the instruction if the CPU has it ---- */

static void fma_plain(float *t, const float *x, const float *y, const float *z)
{
	for (int i = 0; i < LANES; i++)
		t[i] = fmaf(x[i], y[i], z[i]);
}

double fma_double(double a, double b, double c) { return fma(a, b, c); }

#if defined __x86_64__
__attribute__((target("fma"))) static void fma_fast(float *t, const float *x, const float *y, const float *z)
{
	for (int i = 0; i < LANES; i++)
		t[i] = __builtin_fmaf(x[i], y[i], z[i]);
}
#endif

static void fma_lanes(float *t, const float *x, const float *y, const float *z)
{
#if defined __x86_64__
	if (__builtin_cpu_supports("fma")) {
		fma_fast(t, x, y, z);
		return;
	}
#endif
	fma_plain(t, x, y, z);
}

static float smaller(float x, float y)
{
	if (x == 0 && y == 0)
		return as_float(as_bits(x) | as_bits(y));
	return x < y || y != y ? x : y;
}

static float larger(float x, float y)
{
	if (x == 0 && y == 0)
		return as_float(as_bits(x) & as_bits(y));
	return x > y || y != y ? x : y;
}

static void compute(FloatOp op, float *t, const float *x, const float *y, const float *z)
{
	switch (op) {
	case F_ADD:
		for (int i = 0; i < LANES; i++)
			t[i] = x[i] + y[i];
		break;
	case F_SUB:
		for (int i = 0; i < LANES; i++)
			t[i] = x[i] - y[i];
		break;
	case F_MUL:
		for (int i = 0; i < LANES; i++)
			t[i] = x[i] * y[i];
		break;
	case F_DIV:
		for (int i = 0; i < LANES; i++)
			t[i] = x[i] / y[i];
		break;
	case F_FMA: fma_lanes(t, x, y, z); break;
	case F_SQRT:
		for (int i = 0; i < LANES; i++)
			t[i] = sqrtf(x[i]);
		break;
	case F_MIN:
		for (int i = 0; i < LANES; i++)
			t[i] = smaller(x[i], y[i]);
		break;
	case F_MAX:
		for (int i = 0; i < LANES; i++)
			t[i] = larger(x[i], y[i]);
		break;
	case F_MIN_NAN:
		for (int i = 0; i < LANES; i++)
			t[i] = x[i] != x[i] ? x[i] : y[i] != y[i] ? y[i] : smaller(x[i], y[i]);
		break;
	case F_MAX_NAN:
		for (int i = 0; i < LANES; i++)
			t[i] = x[i] != x[i] ? x[i] : y[i] != y[i] ? y[i] : larger(x[i], y[i]);
		break;
	case F_NEG:
	case F_ABS: break;
	}
}

static void take(float *to, const uint32_t *from, bool ftz)
{
	uint32_t bits[LANES];

	for (int i = 0; ftz && i < LANES; i++)
		bits[i] = from[i] & INFINITE ? from[i] : from[i] & SIGN;
	memcpy(to, ftz ? bits : from, LANES * sizeof *to);
}

void floats_apply(FloatOp op, bool ftz, uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c)
{
	float x[LANES], y[LANES], z[LANES], t[LANES];
	uint32_t small = 0;

	take(x, a, ftz);
	if (op == F_NEG || op == F_ABS) {
		memcpy(d, x, sizeof x);
		for (int i = 0; i < LANES; i++)
			d[i] = op == F_NEG ? d[i] ^ SIGN : d[i] & ~SIGN;
		return;
	}
	if (b)
		take(y, b, ftz);
	if (c)
		take(z, c, ftz);
	compute(op, t, x, b ? y : x, c ? z : x);
	memcpy(d, t, sizeof t);
	for (int i = 0; i < LANES; i++) {
		uint32_t size = d[i] & ~SIGN;
		d[i] = size > INFINITE ? NAN_BITS : d[i];
		small |= size - 1 < LEAST_NORMAL;
	}
	for (int i = 0; ftz && small && i < LANES; i++)
		if ((d[i] & ~SIGN) - 1 < LEAST_NORMAL)
			d[i] = flush_result(op, d[i], x[i], b ? y[i] : 0, c ? z[i] : 0);
}
