/* SPDX-License-Identifier: MIT */
/* Vectors of 16 floats in plain C, for any CPU.
 *
 * V is 16 floats, I 16 32-bit integers, M a mask of 16 lanes.  Every operation on V is one correctly rounded IEEE
 * operation per lane, so that a kernel made of them gives the same bits on every machine. Subnormal numbers count as
 * zero: on x86 because the caller has set the CPU so (cpu_enter), elsewhere because the operations here flush them
 * (flush.h says when). */
#ifndef VEC_H
#define VEC_H

#include "flush.h"

#if defined __wasm_simd128__ && !FLUSH_BY_CPU
#include <wasm_simd128.h>
#define BY_QUARTERS 1 /* operations of four floats that seldom have to be computed again, exactly */
#else
#define BY_QUARTERS 0
#endif

#define VEC_ACCUMULATORS 2     /* registers that hold sums in a product */
#define VEC_DEEPEST      256   /* depth of a part of a product, where a is read by columns */
#define VEC_STRIP        32768 /* bytes of b that a product works on at a time */
#define VEC_ALIKE        1     /* 1: a strip of b is copied if its rows map to few sets of the cache */
#define VEC_APART \
	1024 /* floats from one row of b to the next from which on it is copied, for each is on another page */
#define VEC_TOGETHER 1 /* vectors whose sigmoids are computed interleaved */
#define VEC_OVERLAP  1 /* 1: sums over lists go on while sigmoids of the row before are computed */

typedef float V __attribute__((vector_size(64)));
typedef int32_t I __attribute__((vector_size(64)));
typedef I M; /* -1 or 0 in every lane */

static inline V v_set(float x) { return (V){ x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x }; }
static inline V v_load(const float *p)
{
	V a;
	memcpy(&a, p, sizeof a);
	return a;
}
static inline V v_load_first(const float *p, uint32_t n) /* the first n, 0 .. 16, then zeros; touches no more */
{
	V a = { 0 };

	for (uint32_t i = 0; i < n; i++)
		a[i] = p[i];
	return a;
}
static inline void v_store(float *p, V a) { memcpy(p, &a, sizeof a); }
/* Subnormal numbers become zeros of the same sign. */
static inline V v_flush_all(V a)
{
	I normal = ((I)a & 0x7f800000) != 0;
	return (V)((I)a & (normal | INT32_MIN));
}
/* Operations that flush are many instructions: not inline, as kernels have hundreds of each. */
#if FLUSH_BY_CPU
#define V_OP static inline
static inline V v_flush(V a) { return a; }
#else
#define V_OP static __attribute__((noinline, unused))
static inline V v_flush(V a) { return v_flush_all(a); }
#endif

#if BY_QUARTERS

/* WebAssembly: operations of four floats, and a test whether flushing would have mattered anywhere; there the exact
 * form below computes all 16 again.
 *
 * Sums: a subnormal operand can change only a sum below 2^-100, so that the test looks at the sum alone; one that is
 * exactly 0 is right as it is. Products and fused multiply-adds: operands are subnormal, or a result is 2^-126 at most;
 * the double sum, narrowed, is what one rounding gives unless it lies half-way between two floats. 2 bits - 1 orders
 * numbers by size, with 0 as the largest. */
typedef struct Quarters {
	v128_t of[4];
} Quarters;

#define NORMAL_SIZE 0x01000000u /* of 2^-126 and less: size_least is below this */
#define SUM_SIZE    0x1b000000u /* 2^-100 */

static inline Quarters quarters_of(V a)
{
	Quarters q;
	memcpy(&q, &a, sizeof q);
	return q;
}
static inline V quarters_join(const Quarters *q)
{
	V a;
	memcpy(&a, q, sizeof a);
	return a;
}
static inline v128_t size_least(v128_t least, v128_t x)
{
	return wasm_u32x4_min(least, wasm_i32x4_sub(wasm_i32x4_shl(x, 1), wasm_i32x4_splat(1)));
}
static inline bool size_below(v128_t least, uint32_t bound)
{
	return wasm_v128_any_true(wasm_u32x4_lt(least, wasm_i32x4_splat((int32_t)bound)));
}
static inline v128_t doubles_low(v128_t x) { return wasm_f64x2_promote_low_f32x4(x); }
static inline v128_t doubles_high(v128_t x)
{
	return wasm_f64x2_promote_low_f32x4(wasm_i32x4_shuffle(x, x, 2, 3, 2, 3));
}
static inline v128_t half_way(v128_t s) /* of doubles: between two floats */
{
	return wasm_i64x2_eq(wasm_v128_and(s, wasm_i64x2_splat(0x1fffffff)), wasm_i64x2_splat(0x10000000));
}

static __attribute__((noinline)) V v_add_exact(V a, V b) { return v_flush(v_flush(a) + v_flush(b)); }

V_OP V v_add(V a, V b)
{
	Quarters x = quarters_of(a), y = quarters_of(b);
	v128_t least = wasm_i32x4_splat(-1);

	for (int i = 0; i < 4; i++) {
		x.of[i] = wasm_f32x4_add(x.of[i], y.of[i]);
		least = size_least(least, x.of[i]);
	}
	return size_below(least, SUM_SIZE) ? v_add_exact(a, b) : quarters_join(&x);
}

V_OP V v_sub(V a, V b)
{
	Quarters x = quarters_of(a), y = quarters_of(b);
	v128_t least = wasm_i32x4_splat(-1);

	for (int i = 0; i < 4; i++) {
		x.of[i] = wasm_f32x4_sub(x.of[i], y.of[i]);
		least = size_least(least, x.of[i]);
	}
	return size_below(least, SUM_SIZE) ? v_add_exact(a, (V)((I)b ^ INT32_MIN)) : quarters_join(&x);
}

#else

V_OP V v_add(V a, V b) { return v_flush(v_flush(a) + v_flush(b)); }
V_OP V v_sub(V a, V b) { return v_flush(v_flush(a) - v_flush(b)); }

#endif

V_OP V v_div(V a, V b) { return v_flush(v_flush(a) / v_flush(b)); }

V_OP V v_sqrt(V a)
{
	a = v_flush(a);
	for (int i = 0; i < 16; i++)
		a[i] = sqrtf(a[i]);
	return a;
}

/* Two products in double, as baseline x86-64 can: exact. */
typedef float Pair __attribute__((vector_size(8)));
typedef double Doubles __attribute__((vector_size(16)));
typedef int64_t Double_bits __attribute__((vector_size(16)));
typedef struct Pairs {
	Pair of[8];
} Pairs;

static inline Pairs pairs_of(V a)
{
	Pairs p;
	memcpy(&p, &a, sizeof p);
	return p;
}

/* f_narrow of both. */
static inline Pair pair_narrow(Doubles x)
{
#if !FLUSH_BY_CPU
	Double_bits sign = (Double_bits)x & INT64_MIN;
	Doubles size = (Doubles)((Double_bits)x & INT64_MAX), least = { LEAST_NORMAL, LEAST_NORMAL };
	Double_bits tiny = size < TINY_BELOW, below = size < (double)LEAST_NORMAL;
	x = (Doubles)((((below & (Double_bits)least) | (~below & (Double_bits)size)) & ~tiny) | sign);
#endif
	return __builtin_convertvector(x, Pair);
}

V_OP V v_mul(V a, V b)
{
#if FLUSH_BY_CPU
	return a * b;
#else
#if BY_QUARTERS
	Quarters p = quarters_of(a), q = quarters_of(b);
	v128_t least = wasm_i32x4_splat(-1);
	for (int i = 0; i < 4; i++) {
		least = size_least(size_least(least, p.of[i]), q.of[i]);
		p.of[i] = wasm_f32x4_mul(p.of[i], q.of[i]);
		least = size_least(least, p.of[i]);
	}
	if (!size_below(least, NORMAL_SIZE))
		return quarters_join(&p);
#endif
	Pairs x = pairs_of(v_flush(a)), y = pairs_of(v_flush(b));

	for (int i = 0; i < 8; i++)
		x.of[i] = pair_narrow(__builtin_convertvector(x.of[i], Doubles) * __builtin_convertvector(y.of[i], Doubles));
	memcpy(&a, &x, sizeof a);
	return a;
#endif
}

/* f_fma of two without an instruction for it. What infinities and NaN lose is NaN and changes nothing. */
static inline Pair pair_fma(Pair a, Pair b, Pair c)
{
	Doubles p = __builtin_convertvector(a, Doubles) * __builtin_convertvector(b, Doubles),
			wide = __builtin_convertvector(c, Doubles);
	Doubles s = p + wide, back = s - p, lost = (p - (s - back)) + (wide - back);
	Double_bits below = lost < 0, odd = below | (lost > 0);
	Double_bits bits = ((Double_bits)s + (odd & (below ^ (s < 0)))) | (odd & 1); /* towards zero, then odd */

	return pair_narrow((Doubles)bits);
}

/* a b + c, rounded once. libm's fmaf is slower. Not inline: the kernels have many of these. */
static __attribute__((noinline)) V v_fma_exact(V a, V b, V c)
{
	a = v_flush(a);
	b = v_flush(b);
	c = v_flush(c);
#if FMA_BY_CPU
	V r;
	I near;
	for (int i = 0; i < 16; i++)
		r[i] = __builtin_fmaf(a[i], b[i], c[i]);
	near = ((I)r & INT32_MAX) <= 0x00800000; /* tiny numbers, and those that may have been rounded up from there */
	for (int i = 0; i < 16; i++)
		if (near[i])
			r[i] = f_fma(a[i], b[i], c[i]);
	return r;
#else
	Pairs x = pairs_of(a), y = pairs_of(b), z = pairs_of(c);

	for (int i = 0; i < 8; i++)
		z.of[i] = pair_fma(x.of[i], y.of[i], z.of[i]);
	memcpy(&c, &z, sizeof c);
	return c;
#endif
}

#if BY_QUARTERS

V_OP V v_fma(V a, V b, V c)
{
	Quarters x = quarters_of(a), y = quarters_of(b), z = quarters_of(c);
	v128_t least = wasm_i32x4_splat(-1), half = wasm_i64x2_splat(0);

	for (int i = 0; i < 4; i++) {
		v128_t low = wasm_f64x2_add(wasm_f64x2_mul(doubles_low(x.of[i]), doubles_low(y.of[i])), doubles_low(z.of[i]));
		v128_t high =
			wasm_f64x2_add(wasm_f64x2_mul(doubles_high(x.of[i]), doubles_high(y.of[i])), doubles_high(z.of[i]));
		half = wasm_v128_or(half, wasm_v128_or(half_way(low), half_way(high)));
		least = size_least(size_least(size_least(least, x.of[i]), y.of[i]), z.of[i]);
		z.of[i] = wasm_i64x2_shuffle(wasm_f32x4_demote_f64x2_zero(low), wasm_f32x4_demote_f64x2_zero(high), 0, 2);
		least = size_least(least, z.of[i]);
	}
	if (wasm_v128_any_true(half) || size_below(least, NORMAL_SIZE))
		return v_fma_exact(a, b, c);
	return quarters_join(&z);
}

#else

static inline V v_fma(V a, V b, V c) { return v_fma_exact(a, b, c); }

#endif

static inline V v_fnma(V a, V b, V c) { return v_fma((V)((I)a ^ INT32_MIN), b, c); } /* c - a b, rounded once */
/* The same, and v_mul, where no result is inexact and below 2^-125: other CPUs save instructions. */
static inline V v_mla(V a, V b, V c) { return v_fma(a, b, c); }
static inline V v_mls(V a, V b, V c) { return v_fnma(a, b, c); }
static inline V v_scale(V a, V b) { return v_mul(a, b); }

/* 1: v_fma_noting is v_fma unless notes_tiny says that a result since notes_clear may be wrong: then all of them are
 * computed again with v_fma. notes_wait, of each result before notes_tiny: it has been computed. */
#define VEC_NOTES 0
static inline V v_fma_noting(V a, V b, V c) { return v_fma(a, b, c); }
static inline void notes_clear(void) {}
static inline void notes_wait(V *x) { (void)x; }
static inline bool notes_tiny(void) { return false; }

static inline V v_bits_select(I m, V a, V b) { return (V)((m & (I)a) | (~m & (I)b)); }
V_OP V v_min(V a, V b) /* b where they do not compare */
{
	a = v_flush_all(a);
	b = v_flush_all(b);
	return v_bits_select(a < b, a, b);
}
V_OP V v_max(V a, V b)
{
	a = v_flush_all(a);
	b = v_flush_all(b);
	return v_bits_select(a > b, a, b);
}
static inline V v_neg(V a) { return (V)((I)a ^ INT32_MIN); }
static inline V v_abs(V a) { return (V)((I)a & INT32_MAX); }
/* |a| with the sign of b */
static inline V v_sign_from(V a, V b) { return (V)(((I)a & INT32_MAX) | ((I)b & INT32_MIN)); }

V_OP M v_lt(V a, V b) { return v_flush(a) < v_flush(b); }
V_OP M v_le(V a, V b) { return v_flush(a) <= v_flush(b); }
V_OP M v_eq(V a, V b) { return v_flush(a) == v_flush(b); }
static inline M v_nan(V a) { return a != a; }
static inline V v_select(M m, V a, V b) { return v_bits_select(m, a, b); } /* a where m holds, else b */
static inline M m_and(M a, M b) { return a & b; }
static inline M m_or(M a, M b) { return a | b; }
static inline M m_but(M a, M b) { return a & ~b; } /* a, but not where b */
static inline uint32_t m_bits(M m)                 /* lane i is bit i */
{
	uint32_t bits = 0;

	for (int i = 0; i < 16; i++)
		bits |= (uint32_t)(m[i] & 1) << i;
	return bits;
}
static inline M m_of(uint32_t bits) /* and back: of the lowest 16 bits */
{
	I bit = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768 };

	return (bit & (int32_t)bits) != 0;
}
static inline M m_first(uint32_t n) /* the first n lanes, 0 .. 16 */
{
	return (I){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } < (int32_t)n;
}

static inline I v_bits(V a) { return (I)a; }
static inline V i_float(I a) { return (V)a; }                          /* the same bits */
static inline V i_value(I a) { return __builtin_convertvector(a, V); } /* the same number */
static inline I i_set(int32_t x) { return (I){ 0 } + x; }
typedef uint32_t Wrapping __attribute__((vector_size(64)));
static inline I i_add(I a, I b) { return (I)((Wrapping)a + (Wrapping)b); }
static inline I i_sub(I a, I b) { return (I)((Wrapping)a - (Wrapping)b); }
static inline I i_and(I a, I b) { return a & b; }
static inline I i_xor(I a, I b) { return a ^ b; }
static inline I i_shr9(I a) { return (I)((Wrapping)a >> 9); }
static inline I i_shl23(I a) { return (I)((Wrapping)a << 23); }
static inline I i_sar23(I a) { return a >> 23; }
static inline I i_load(const void *p)
{
	I a;
	memcpy(&a, p, sizeof a);
	return a;
}
typedef uint64_t Wide __attribute__((vector_size(64))); /* eight pairs of lanes, the even one below */
/* even lanes, unsigned, to pairs */
static inline I i_times(I a, I b) { return (I)(((Wide)a & 0xffffffff) * ((Wide)b & 0xffffffff)); }
static inline I i_odd(I a) { return (I)((Wide)a >> 32); }            /* odd lanes, where the even ones were */
static inline I i_add64(I a, I b) { return (I)((Wide)a + (Wide)b); } /* pairs */

/* The product of every lane with b, unsigned: its lower words, and in *high the upper ones. */
static inline I i_wide(I a, uint32_t b, I *high)
{
	Wide even = ((Wide)a & 0xffffffff) * b, odd = ((Wide)a >> 32) * b;

	*high = (I)((even >> 32) | (odd & 0xffffffff00000000));
	return (I)((even & 0xffffffff) | (odd << 32));
}

/* 1, or e, which is no more, where x is below zero. */
static inline V v_or_one(V x, V e) { return v_select(v_lt(x, v_set(0)), e, v_set(1)); }
/* a 2^n, with a 1 or more where n is -127, and z is n + WHOLE of functions.h: 0 if that is tiny. */
static inline V v_times_power(V a, V n, V z)
{
	(void)n;
	return v_scale(a, i_float(i_shl23(v_bits(z))));
}

/* The sum of all lanes: i and i + 8, then 4, 2, 1. */
V_OP float v_sum(V a)
{
	for (int n = 8; n; n /= 2)
		for (int i = 0; i < n; i++)
			a[i] = f_add(a[i], a[i + n]);
	return a[0];
}

V_OP float v_largest(V a) /* no lane may be NaN */
{
	a = v_flush_all(a);
	float x = a[0];

	for (int i = 1; i < 16; i++)
		x = a[i] > x ? a[i] : x;
	return x;
}

static inline void v_transpose16(V r[16]) /* rows become columns */
{
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < i; j++) {
			float x = r[i][j];
			r[i][j] = r[j][i];
			r[j][i] = x;
		}
}

static inline void v_transpose12(V r[16]) { v_transpose16(r); }

/* 16 rows of 8, two in a vector, become 8 rows of 16. */
static inline void v_transpose_pairs(V r[8])
{
	V t[8];

	for (int i = 0; i < 16; i++)
		for (int k = 0; k < 8; k++)
			t[k][i] = r[i / 2][i % 2 * 8 + k];
	memcpy(r, t, sizeof t);
}

static inline V v_pick(const float *base, const uint32_t slot[16]) /* base[slot[i]] */
{
	V a;

	for (int i = 0; i < 16; i++)
		a[i] = base[slot[i]];
	return a;
}

static inline V v_load8_twice(const float *p) /* in both halves */
{
	V a;

	memcpy(&a, p, 32);
	memcpy((char *)&a + 32, p, 32);
	return a;
}
static inline V v_two(float x, float y) /* one in each half */
{
	return (V){ x, x, x, x, x, x, x, x, y, y, y, y, y, y, y, y };
}
static inline float f_lane(V a, uint32_t i) { return a[i]; }    /* one of the lanes, */
static inline V v_lane(V a, uint32_t i) { return v_set(a[i]); } /* and in every lane */
static inline V v_swap(V a)                                     /* lanes i and i + 8 change places */
{
	V b;

	for (int i = 0; i < 16; i++)
		b[i] = a[(i + 8) % 16];
	return b;
}

#endif
