/* SPDX-License-Identifier: MIT */
/* What exported C files compute with: C99, no allocation, no library.  evaluate.c compiles this text, and c.c copies
 * the sections that a network needs into the files it writes; a section ends where the next comment `section:` begins.
 *
 * Must hold: the same operations in the same order as the kernels of target cpu (functions.h, units.inc there), each
 * rounded once to float32, numbers below 2^-126 taken as zero: so the same bits. */
#ifndef RUNTIME_H
#define RUNTIME_H

/* section: base */
#include <float.h>
#include <stdint.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16 /* 16: float16 is float16, and float is float */
#error "float32 arithmetic is needed: -mfpmath=sse"
#endif
#ifdef __FAST_MATH__
#error "-ffast-math changes results"
#endif

/* Every operation is rounded once, and numbers below 2^-126 are zero.  A CPU with fused multiply-add in its vector unit
 * does that by itself while a mode is set.  Elsewhere operations run in double precision: sums and products of floats
 * lose nothing that a second rounding could see, and fused() rounds to odd first. */
#if defined __FMA__ && defined __AVX__ && !defined PORTABLE
#include <immintrin.h>
#define FLUSH_BEGIN               \
	unsigned mode = _mm_getcsr(); \
	_mm_setcsr(mode | 0x8040) /* FTZ, DAZ */
#define FLUSH_END _mm_setcsr(mode)
#define VECTORS
#define fused(a, b, c) __builtin_fmaf(a, b, c)
#define add(a, b)      ((a) + (b))
#define sub(a, b)      ((a) - (b))
#define mul(a, b)      ((a) * (b))
#define over(a, b)     ((a) / (b))
#define COMPUTES       __attribute__((noinline)) /* arithmetic must not move out of the mode */
#else
#define FLUSH_BEGIN (void)0
#define FLUSH_END   (void)0
#define COMPUTES

static float narrow(double v)
{
	return v < 0x1.ffffffp-127 && v > -0x1.ffffffp-127 ? (v < 0 ? -0.0f : 0.0f) : (float)v;
}

static float fused(float a, float b, float c) /* a b + c */
{
	double p = (double)a * (double)b, s = p + (double)c, back = s - p;
	double lost = (p - (s - back)) + ((double)c - back);
	int64_t bits;

	if (lost < 0 || lost > 0) {
		memcpy(&bits, &s, sizeof bits);
		bits = (bits - ((lost < 0) != (s < 0))) | 1; /* towards zero, then odd */
		memcpy(&s, &bits, sizeof s);
	}
	return narrow(s);
}

#define add(a, b)  narrow((double)(a) + (double)(b))
#define sub(a, b)  narrow((double)(a) - (double)(b))
#define mul(a, b)  narrow((double)(a) * (double)(b))
#define over(a, b) narrow((double)(a) / (double)(b))
#endif

static float flushed(float x) { return x < FLT_MIN && x > -FLT_MIN ? (x < 0 ? -0.0f : 0.0f) : x; }

/* section: bits */
static uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static float with_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof x);
	return x;
}

/* section: magnitude */
static float magnitude(float x) { return with_bits(bits_of(x) & 0x7fffffffu); }

/* section: dense */
/* Sums of up to 8 `vectors` units, a constant, go on over all sources. */
#ifdef VECTORS
static inline __attribute__((always_inline)) void dense_block(float *sum, int count, int vectors, const float *from,
                                                              int sources, const float *w, int stride)
{
	float buffer[64] = { 0 };
	__m256 s[8];
	int i, k, some = count < 8 * vectors ? count : 8 * vectors;

	memcpy(buffer, sum, (size_t)some * sizeof *sum);
	for (k = 0; k < vectors; k++)
		s[k] = _mm256_loadu_ps(buffer + 8 * k);
	for (i = 0; i < sources; i++, w += stride) {
		__m256 x = _mm256_set1_ps(from[i]);
		if (from[i] == 0)
			continue;
		for (k = 0; k < vectors; k++)
			s[k] = _mm256_fmadd_ps(x, _mm256_loadu_ps(w + 8 * k), s[k]);
	}
	for (k = 0; k < vectors; k++)
		_mm256_storeu_ps(buffer + 8 * k, s[k]);
	memcpy(sum, buffer, (size_t)some * sizeof *sum);
}
#else
static void dense_block(float *sum, int count, int vectors, const float *from, int sources, const float *w, int stride)
{
	int i, k, some = count < 8 * vectors ? count : 8 * vectors;

	for (i = 0; i < sources; i++, w += stride)
		for (k = 0; from[i] != 0 && k < some; k++)
			sum[k] = fused(from[i], w[k], sum[k]);
}
#endif

/* Sums of `count` units go on over `sources` others; w[sources][stride], with zeros behind the units of a row. */
static void dense(float *sum, int count, const float *from, int sources, const float *w)
{
	int stride = count < 4 ? count : (count + 7) / 8 * 8, i, j = 0;

	for (i = 0; i < sources && stride < 4; i++)
		for (j = 0; j < count; j++)
			sum[j] = fused(from[i], w[i * count + j], sum[j]);
	if (stride < 4)
		return;
	for (; j + 64 <= stride; j += 64)
		dense_block(sum + j, count - j, 8, from, sources, w + j, stride);
	for (; j + 32 <= stride; j += 32)
		dense_block(sum + j, count - j, 4, from, sources, w + j, stride);
	for (; j < stride; j += 8)
		dense_block(sum + j, count - j, 1, from, sources, w + j, stride);
}

/* section: links */
/* Single links: those of unit `first` + j are row[j] .. row[j + 1] - 1. */
static void links(float *u, int first, int count, const int32_t *row, const int32_t *from, const float *w)
{
	int j;
	int32_t k;

	for (j = 0; j < count; j++) {
		float s = u[first + j];
		for (k = row[j]; k < row[j + 1]; k++)
			s = fused(u[from[k]], w[k], s);
		u[first + j] = s;
	}
}

/* section: int8 */
/* As dense(), with w[count][sources] in 8 bits: a weight is w scale[j], a source q / inverse. */
static void dense8(float *sum, int count, const float *from, int sources, float inverse, const int8_t *w,
                   const float *scale, int8_t *q)
{
	int i, j;

	for (i = 0; i < sources; i++) {
		float x = mul(from[i], inverse);
		x = x > 127 ? 127 : x < -127 ? -127 : x;
		q[i] = (int8_t)(x < 0 ? x - 0.5f : x + 0.5f);
	}
	for (j = 0; j < count; j++, w += sources) {
		int32_t all = 0;
		for (i = 0; i < sources; i++)
			all += (int32_t)q[i] * w[i];
		sum[j] = fused((float)all, scale[j], sum[j]);
	}
}

/* section: integrate */
/* What a group integrates moves from its last value towards the new one, by dt. */
static void integrate(float *u, float *last, int count, float dt)
{
	int j;

	for (j = 0; j < count; j++) {
		volatile float step = mul(dt, sub(u[j], last[j])); /* rounded by itself */
		u[j] = last[j] = add(last[j], step);
	}
}

/* section: series */
#define LN2_HIGH    0x1.62e430p-1f
#define LN2_LOW     -0x1.05c610p-29f
#define LN2_INVERSE 0x1.715476p+0f
#define WHOLE       (0x1.8p23f + 127) /* rounds to a whole number n, and leaves n + 127 in the low bits */

static float series(const float *c, int count, float x)
{
	float sum = c[count - 1];
	int i;

	for (i = count - 2; i >= 0; i--)
		sum = fused(sum, x, c[i]);
	return sum;
}

static float power_of_two(float z) { return with_bits(bits_of(z) << 23); }

/* section: over_one_and */
/* p / (1 + e) */
static float over_one_and(float p, float e, int exact)
{
	float d = add(e, 1.0f), q;
	float y = fused(fused(32 / 99.0f, e, -80 / 99.0f), e, 98 / 99.0f);

	y = fused(y, fused(-d, y, 1.0f), y);
	q = mul(p, y);
	return fused(q, exact ? fused(-e, y, sub(1.0f, y)) : fused(-d, y, 1.0f), q);
}

/* section: sigmoid */
static void sigmoid(float *u, int count)
{
	static const float c[] = { 1, -0x1.fffff6p-1f, 0x1.fffdc4p-2f, -0x1.555a6ep-3f, 0x1.573b0cp-5f, -0x1.0fa7aap-7f };
	int j;

	for (j = 0; j < count; j++) {
		float x = u[j], a = magnitude(x);
		a = 88 < a ? 88 : a;
		float z = fused(a, -LN2_INVERSE, WHOLE), n = sub(z, WHOLE), r = fused(n, LN2_HIGH, a);
		float e = mul(series(c, 6, r), power_of_two(z));
		u[j] = over_one_and(x < 0 ? e : 1, e, 0);
	}
}

/* section: sigmoid2 */
static void sigmoid2(float *u, int count)
{
	static const float c[] = { 1, -0x1.62e42ap-1f, 0x1.ebf9bap-3f, -0x1.c6b758p-5f, 0x1.3ceb32p-7f, -0x1.5bb964p-10f };
	int j;

	for (j = 0; j < count; j++) {
		float x = u[j], a = magnitude(x);
		a = 127 < a ? 127 : a;
		float z = sub(WHOLE, a), n = sub(z, WHOLE), r = add(n, a);
		float e = mul(series(c, 6, r), power_of_two(z));
		u[j] = over_one_and(x < 0 ? e : 1, e, 0);
	}
}

/* section: tanh */
static void hyperbolic(float *u, int count)
{
	static const float c[] = { 2, -0x1.fffffep+0f, 0x1.55547ep+0f, -0x1.555652p-1f, 0x1.123d48p-2f, -0x1.6c16a6p-4f };
	int j;

	for (j = 0; j < count; j++) {
		float x = u[j], a = magnitude(x);
		a = 20 < a ? 20 : a;
		float z = fused(a, -2 * LN2_INVERSE, WHOLE), n = sub(z, WHOLE), r = fused(n, LN2_HIGH / 2, a);
		float power = power_of_two(z), m = fused(power, mul(r, series(c, 6, r)), sub(1.0f, power));
		float y = over_one_and(m, sub(1.0f, m), 1);
		u[j] = with_bits((bits_of(y) & 0x7fffffffu) | (bits_of(x) & 0x80000000u));
	}
}

/* section: relu */
static void relu(float *u, int count)
{
	int j;

	for (j = 0; j < count; j++)
		u[j] = 0 > u[j] ? 0 : u[j];
}

/* section: gaussian */
static void gaussian(float *u, int count)
{
	static const float c[] = {
		1, -0x1p+0f, 0x1.fffffcp-2f, -0x1.555418p-3f, 0x1.555824p-5f, -0x1.126804p-7f, 0x1.6ae6b6p-10f
	};
	int j;

	for (j = 0; j < count; j++) {
		float a = magnitude(u[j]), square, lost;
		a = 9.39f < a ? 9.39f : a;
		square = mul(a, a);
		lost = fused(a, a, -square);
		float z = fused(square, -LN2_INVERSE, WHOLE), n = sub(z, WHOLE);
		float r = add(lost, fused(n, LN2_LOW, fused(n, LN2_HIGH, square)));
		u[j] = mul(series(c, 7, r), power_of_two(z));
	}
}

/* section: softmax */
static float exponential(float x)
{
	static const float c[] = {
		2, 0x1p+1f, 0x1.fffffcp-1f, 0x1.555418p-2f, 0x1.555824p-4f, 0x1.126804p-6f, 0x1.6ae6b6p-9f
	};
	x = -87.3f > x ? -87.3f : x;
	x = 89 < x ? 89 : x;
	float z = fused(x, LN2_INVERSE, WHOLE - 1), n = sub(z, WHOLE - 1);
	float r = fused(-n, LN2_LOW, fused(-n, LN2_HIGH, x));

	return mul(series(c, 7, r), power_of_two(z));
}

/* The sum runs in 16 lanes, which are joined in a tree. */
static void softmax(float *u, int count)
{
	float lane[16] = { 0 }, largest = with_bits(0xff800000u), share; /* -infinity */
	int j, n;

	for (j = 0; j < count; j++)
		largest = u[j] > largest ? u[j] : largest;
	for (j = 0; j < count; j++) {
		u[j] = exponential(sub(u[j], largest));
		lane[j % 16] = add(lane[j % 16], u[j]);
	}
	for (n = 8; n; n /= 2)
		for (j = 0; j < n; j++)
			lane[j] = add(lane[j], lane[j + n]);
	share = over(1.0f, lane[0]);
	for (j = 0; j < count; j++)
		u[j] = mul(u[j], share);
}

/* section: softsign */
static float softsign_of(float x)
{
	float d = add(1.0f, magnitude(x));

	return over(x, d);
}

/* section: softsigns */
static void softsign(float *u, int count)
{
	int j;

	for (j = 0; j < count; j++)
		u[j] = softsign_of(u[j]);
}

/* section: elliott */
static void elliott(float *u, int count)
{
	int j;

	for (j = 0; j < count; j++)
		u[j] = fused(0.5f, softsign_of(u[j]), 0.5f);
}

/* section: steps */
/* Lines between points: s is x[6], y[6], slope[5], low, high. */
static void steps(float *u, int count, const float *s)
{
	int i, j;

	for (j = 0; j < count; j++) {
		float x = u[j], y = s[17];
		for (i = 0; i < 5; i++)
			y = x < s[i] ? y : fused(s[12 + i], sub(x, s[i]), s[6 + i]);
		y = x < s[5] ? y : s[18];
		u[j] = x != x ? x : y;
	}
}

/* section: end */
#endif
