/* SPDX-License-Identifier: MIT */
/* exp, log, tanh and cos(pi x) in double.
 *
 * In: any double, infinities and NaN included.  Out: the value within two units in the last place.
 * Must hold: the same bits on every CPU.  libm is not used: it picks other code where there is a fused
 * multiply-add.  Here every step is one rounded operation in a fixed order.  The series are those of Taylor, cut
 * where the rest is below half a unit in the last place, so that each coefficient can be checked by eye. */
#include <math.h>
#include <string.h>

#include "base.h"

/* ln 2 in two parts: the first has 21 zero bits at its end, so that k * LN2_HIGH is exact for every exponent k. */
#define LN2_HIGH    6.93147180369123816490e-01
#define LN2_LOW     1.90821492927058770002e-10
#define LN2_INVERSE 1.44269504088896338700e+00
#define PI          3.14159265358979323846
#define PI_LOW      1.22464679914735317722e-16 /* what PI lacks */
#define SQRT2       1.41421356237309504880

static double from_bits(uint64_t bits)
{
	double x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static uint64_t to_bits(double x)
{
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

/* 2^k for exponents of normal numbers. */
static double power_of_two(int k) { return from_bits((uint64_t)(k + 1023) << 52); }

/* c[0] + c[1] x + c[2] x^2 + ... by Horner's rule. */
static double series(const double *c, int count, double x)
{
	double sum = c[count - 1];

	for (int i = count - 2; i >= 0; i--)
		sum = sum * x + c[i];
	return sum;
}

/* e^x = 2^k e^r with |r| <= ln 2 / 2, and e^r = 1 + r + r^2 (1/2! + r/3! + ...). */
double arith_exp(double x)
{
	static const double inverse_factorial[] = {
		1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
		1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
	};

	if (x != x)
		return x;
	if (x > 710)
		return INFINITY;
	if (x < -746)
		return 0;
	int k = (int)floor(x * LN2_INVERSE + 0.5);
	double high = x - k * LN2_HIGH, low = k * LN2_LOW;
	double r = high - low;
	double rest = (high - r) - low; /* what r lost in rounding */
	double y = 1 + (r + (rest + r * r * series(inverse_factorial, COUNT(inverse_factorial), r)));
	int half = k / 2; /* 2^k itself may lie beyond the normal numbers */

	return y * power_of_two(half) * power_of_two(k - half);
}

/* ln x = k ln 2 + ln(1 + f) with 1 + f in sqrt(1/2) .. sqrt(2).  With s = f / (2 + f) the series is ln(1 + f) = 2 s
 * + s R, R = 2/3 s^2 + 2/5 s^4 + ...; written as f - (f^2/2 - s (f^2/2 + R)) it keeps the bits of f. */
static const double log_series[] = {
	2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23,
};

double arith_log(double x)
{
	int k = 0;

	if (x != x || x == INFINITY)
		return x;
	if (x <= 0)
		return x < 0 ? NAN : -INFINITY;
	if (x < power_of_two(-1022)) { /* denormal: shift into the normal numbers */
		x *= power_of_two(54);
		k = -54;
	}
	uint64_t bits = to_bits(x);
	k += (int)(bits >> 52) - 1023;
	double m = from_bits((bits & 0xfffffffffffff) | (uint64_t)1023 << 52);
	if (m > SQRT2) {
		m *= 0.5;
		k++;
	}
	double f = m - 1, s = f / (2 + f), z = s * s;
	double half = 0.5 * f * f, r = z * series(log_series, COUNT(log_series), z);

	return k * LN2_HIGH - ((half - (s * (half + r) + k * LN2_LOW)) - f);
}

enum { LOGS = 8 };

/* Of positive, normal numbers; without a branch, so that compilers use vectors. The exponent is a double at once. */
static inline __attribute__((always_inline)) void logs_of(const double *x, double *y)
{
	double k[LOGS], m[LOGS], f[LOGS], z[LOGS], sum[LOGS];

	for (int i = 0; i < LOGS; i++)
		k[i] = from_bits(to_bits(x[i]) >> 52 | (uint64_t)0x433 << 52) - (0x1p52 + 1023);
	for (int i = 0; i < LOGS; i++)
		m[i] = from_bits((to_bits(x[i]) & 0xfffffffffffff) | (uint64_t)1023 << 52);
	for (int i = 0; i < LOGS; i++) {
		k[i] = m[i] > SQRT2 ? k[i] + 1 : k[i];
		f[i] = (m[i] > SQRT2 ? m[i] * 0.5 : m[i]) - 1;
		m[i] = f[i] / (2 + f[i]);
		z[i] = m[i] * m[i];
		sum[i] = log_series[COUNT(log_series) - 1];
	}
	for (int c = COUNT(log_series) - 2; c >= 0; c--)
		for (int i = 0; i < LOGS; i++)
			sum[i] = sum[i] * z[i] + log_series[c];
	for (int i = 0; i < LOGS; i++) {
		double half = 0.5 * f[i] * f[i], r = z[i] * sum[i];
		y[i] = k[i] * LN2_HIGH - ((half - (m[i] * (half + r) + k[i] * LN2_LOW)) - f[i]);
	}
}

#if defined __x86_64__
__attribute__((target("avx2"))) static void logs_avx2(const double *x, double *y) { logs_of(x, y); }
__attribute__((target("avx512f"))) static void logs_avx512(const double *x, double *y) { logs_of(x, y); }
#endif
static void logs_any(const double *x, double *y) { logs_of(x, y); }

void arith_logs(const double *x, size_t n, double *y)
{
	void (*of)(const double *, double *) = logs_any;

#if defined __x86_64__
	of = __builtin_cpu_supports("avx512f") ? logs_avx512 : __builtin_cpu_supports("avx2") ? logs_avx2 : logs_any;
#endif
	for (; n >= LOGS; n -= LOGS, x += LOGS, y += LOGS) {
		bool normal = true;
		for (int i = 0; i < LOGS; i++)
			normal &= x[i] >= 0x1p-1022 && x[i] < INFINITY;
		if (normal)
			of(x, y);
		for (int i = 0; !normal && i < LOGS; i++)
			y[i] = arith_log(x[i]);
	}
	for (size_t i = 0; i < n; i++)
		y[i] = arith_log(x[i]);
}

/* Near zero Lambert's fraction tanh x = x / (1 + u), u = x^2 / (3 + x^2 / (5 + ...)), which loses no small x; from 1
 * on 1 - 2 / (e^2x + 1), where the error of e^2x no longer counts. */
double arith_tanh(double x)
{
	double a = fabs(x);

	if (a < 1) {
		double z = x * x, u = 0;

		for (int odd = 23; odd >= 3; odd -= 2)
			u = z / (odd + u);
		return x / (1 + u);
	}
	double t = 1 - 2 / (arith_exp(2 * a) + 1);

	return x < 0 ? -t : t;
}

/* The argument is folded into 0 .. 1/4, every step of it exact; there cos or sin of pi x is a short series. */
double arith_cospi(double x)
{
	static const double cosine[] = {
		-1.0 / 2,       1.0 / 24,        -1.0 / 720,         1.0 / 40320,
		-1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000,
	};
	static const double sine[] = {
		-1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
		-1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000,
	};
	double a = fabs(x), sign = 1;

	a -= 2 * floor(a * 0.5); /* infinity becomes NaN here */
	if (a > 1)
		a = 2 - a;
	if (a > 0.5) {
		a = 1 - a;
		sign = -1;
	}
	bool small = a <= 0.25;
	double b = small ? a : 0.5 - a, y = PI * b, z = y * y;

	if (small)
		return sign * (1 + z * series(cosine, COUNT(cosine), z));
	return sign * (y + (y * z * series(sine, COUNT(sine), z) + PI_LOW * b));
}
