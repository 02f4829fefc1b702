/* SPDX-License-Identifier: MIT */
/* A vector of 16 floats with AVX-512; vec_generic.h specifies each operation. */
#ifndef VEC_H
#define VEC_H

#include <immintrin.h>
#include <stdint.h>

#include "flush.h"

#define VEC_ACCUMULATORS 27  /* registers that hold sums in a product; the rest hold operands */
#define VEC_DEEPEST      256 /* depth of a part of a product, where a is read by columns */
/* Bytes of b that a product works on at a time: L2 delivers three lines in 27 cycles. */
#define VEC_STRIP        65536
#define VEC_ALIKE        0 /* 1: a strip of b is copied if its rows map to few sets of the cache */
#define VEC_APART \
	2048 /* floats from one row of b to the next from which on it is copied, for each is on another page */
#define VEC_TOGETHER 4 /* vectors whose sigmoids are computed interleaved */
#define VEC_OVERLAP  1 /* 1: sums over lists go on while sigmoids of the row before are computed */

typedef __m512 V;
typedef __m512i I;
typedef __mmask16 M;

static inline V v_set(float x) { return _mm512_set1_ps(x); }
static inline V v_load(const float *p) { return _mm512_loadu_ps(p); }
static inline V v_load_first(const float *p, uint32_t n) { return _mm512_maskz_loadu_ps((M)((1u << n) - 1), p); }
static inline void v_store(float *p, V a) { _mm512_storeu_ps(p, a); }
static inline V v_add(V a, V b) { return _mm512_add_ps(a, b); }
static inline V v_sub(V a, V b) { return _mm512_sub_ps(a, b); }
static inline V v_mul(V a, V b) { return _mm512_mul_ps(a, b); }
static inline V v_div(V a, V b) { return _mm512_div_ps(a, b); }
static inline V v_sqrt(V a) { return _mm512_sqrt_ps(a); }
static inline V v_fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
static inline V v_fnma(V a, V b, V c) { return _mm512_fnmadd_ps(a, b, c); }
static inline V v_mla(V a, V b, V c) { return v_fma(a, b, c); }
static inline V v_mls(V a, V b, V c) { return v_fnma(a, b, c); }
static inline V v_scale(V a, V b) { return v_mul(a, b); }
#define VEC_NOTES 0
static inline V v_fma_noting(V a, V b, V c) { return v_fma(a, b, c); }
static inline void notes_clear(void) {}
static inline void notes_wait(V *x) { (void)x; }
static inline bool notes_tiny(void) { return false; }
static inline V v_min(V a, V b) { return _mm512_min_ps(a, b); }
static inline V v_max(V a, V b) { return _mm512_max_ps(a, b); }
static inline V v_neg(V a)
{
	return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a), _mm512_set1_epi32(INT32_MIN)));
}
static inline V v_abs(V a) { return _mm512_abs_ps(a); }
static inline V v_sign_from(V a, V b)
{
	__m512i sign = _mm512_set1_epi32(INT32_MIN); /* bits of b where it is set, else of a */
	return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(sign, _mm512_castps_si512(b), _mm512_castps_si512(a), 0xca));
}

/* Zen 4 compares and multiplies in the same unit. The sigmoid has that busy, and others idle: so neither is used
 * here. */
static inline V v_or_one(V x, V e)
{
	__m512 below = _mm512_castsi512_ps(_mm512_srai_epi32(_mm512_castps_si512(x), 31));
	return _mm512_max_ps(_mm512_andnot_ps(below, _mm512_set1_ps(1)), e);
}
static inline V v_times_power(V a, V n, V z)
{
	(void)z; /* a NaN makes an n of which nothing is left */
	return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_slli_epi32(_mm512_cvtps_epi32(n), 23)));
}

static inline M v_lt(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline M v_le(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
static inline M v_eq(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline M v_nan(V a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
static inline V v_select(M m, V a, V b) { return _mm512_mask_blend_ps(m, b, a); }
static inline M m_and(M a, M b) { return (M)(a & b); }
static inline M m_or(M a, M b) { return (M)(a | b); }
static inline M m_but(M a, M b) { return (M)(a & ~b); }
static inline uint32_t m_bits(M m) { return m; }
static inline M m_of(uint32_t bits) { return (M)bits; }
static inline M m_first(uint32_t n) { return (M)((1u << n) - 1); }

static inline I v_bits(V a) { return _mm512_castps_si512(a); }
static inline V i_float(I a) { return _mm512_castsi512_ps(a); }
static inline V i_value(I a) { return _mm512_cvtepi32_ps(a); }
static inline I i_set(int32_t x) { return _mm512_set1_epi32(x); }
static inline I i_add(I a, I b) { return _mm512_add_epi32(a, b); }
static inline I i_sub(I a, I b) { return _mm512_sub_epi32(a, b); }
static inline I i_and(I a, I b) { return _mm512_and_si512(a, b); }
static inline I i_xor(I a, I b) { return _mm512_xor_si512(a, b); }
static inline I i_shr9(I a) { return _mm512_srli_epi32(a, 9); }
static inline I i_shl23(I a) { return _mm512_slli_epi32(a, 23); }
static inline I i_sar23(I a) { return _mm512_srai_epi32(a, 23); }
static inline I i_load(const void *p) { return _mm512_loadu_si512(p); }
static inline I i_times(I a, I b) { return _mm512_mul_epu32(a, b); }
static inline I i_odd(I a) { return _mm512_srli_epi64(a, 32); }
static inline I i_add64(I a, I b) { return _mm512_add_epi64(a, b); }

static inline I i_wide(I a, uint32_t b, I *high)
{
	__m512i all = _mm512_set1_epi32((int32_t)b);
	__m512i even = _mm512_mul_epu32(a, all), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), all);
	*high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
	return _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}

/* Lanes i and i + 8, then 4, 2, 1. */
static inline float v_sum(V a)
{
	__m256 h =
		_mm256_add_ps(_mm512_castps512_ps256(a), _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1)));
	__m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));

	q = _mm_add_ps(q, _mm_movehl_ps(q, q));
	return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}

static inline float v_largest(V a) { return _mm512_reduce_max_ps(a); }

/* Four rows inside quarters, by two rounds of unpacking: row k gets column k of every quarter. */
static inline void v_transpose4(V r[4])
{
	V a = _mm512_unpacklo_ps(r[0], r[1]), b = _mm512_unpackhi_ps(r[0], r[1]), c = _mm512_unpacklo_ps(r[2], r[3]),
	  d = _mm512_unpackhi_ps(r[2], r[3]);

	r[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(c)));
	r[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(c)));
	r[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(b), _mm512_castps_pd(d)));
	r[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(b), _mm512_castps_pd(d)));
}

/* Fours of rows, then the quarters themselves. */
static inline void v_transpose16(V r[16])
{
	for (int i = 0; i < 16; i += 4)
		v_transpose4(r + i);
	for (int i = 0; i < 4; i++) {
		V a = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88), b = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
		V c = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd), d = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
		r[i] = _mm512_shuffle_f32x4(a, b, 0x88);
		r[i + 8] = _mm512_shuffle_f32x4(a, b, 0xdd);
		r[i + 4] = _mm512_shuffle_f32x4(c, d, 0x88);
		r[i + 12] = _mm512_shuffle_f32x4(c, d, 0xdd);
	}
}

/* The last four rows are zeros: 48 shuffles, not 64. */
static inline void v_transpose12(V r[16])
{
	for (int i = 0; i < 12; i += 4)
		v_transpose4(r + i);
	for (int i = 0; i < 4; i++) {
		V a = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88), c = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd),
		  last = r[i + 8];
		r[i] = _mm512_maskz_shuffle_f32x4(0xfff, a, last, 0x08);
		r[i + 8] = _mm512_maskz_shuffle_f32x4(0xfff, a, last, 0x2d);
		r[i + 4] = _mm512_maskz_shuffle_f32x4(0xfff, c, last, 0x18);
		r[i + 12] = _mm512_maskz_shuffle_f32x4(0xfff, c, last, 0x3d);
	}
}

/* Four rows to quarters of one column each, then the quarters. */
static inline void v_transpose_pairs(V r[8])
{
	__m512i low = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
	V t[8];

	for (int i = 0; i < 4; i++) {
		t[i] = _mm512_permutex2var_ps(r[2 * i], low, r[2 * i + 1]);
		t[i + 4] = _mm512_permutex2var_ps(r[2 * i], _mm512_add_epi32(low, _mm512_set1_epi32(4)), r[2 * i + 1]);
	}
	for (int i = 0; i < 8; i += 4) {
		V a = _mm512_shuffle_f32x4(t[i], t[i + 1], 0x88), b = _mm512_shuffle_f32x4(t[i + 2], t[i + 3], 0x88);
		V c = _mm512_shuffle_f32x4(t[i], t[i + 1], 0xdd), d = _mm512_shuffle_f32x4(t[i + 2], t[i + 3], 0xdd);
		r[i] = _mm512_shuffle_f32x4(a, b, 0x88);
		r[i + 1] = _mm512_shuffle_f32x4(c, d, 0x88);
		r[i + 2] = _mm512_shuffle_f32x4(a, b, 0xdd);
		r[i + 3] = _mm512_shuffle_f32x4(c, d, 0xdd);
	}
}

static inline V v_pick(const float *base, const uint32_t slot[16])
{
	return _mm512_i32gather_ps(_mm512_loadu_si512(slot), base, 4);
}

static inline V v_load8_twice(const float *p) { return _mm512_broadcast_f32x8(_mm256_loadu_ps(p)); }
static inline V v_two(float x, float y) { return _mm512_mask_broadcastss_ps(_mm512_set1_ps(x), 0xff00, _mm_set_ss(y)); }
static inline V v_lane(V a, uint32_t i) { return _mm512_permutexvar_ps(_mm512_set1_epi32((int32_t)i), a); }
static inline float f_lane(V a, uint32_t i) { return _mm512_cvtss_f32(v_lane(a, i)); }
static inline V v_swap(V a) { return _mm512_shuffle_f32x4(a, a, 0x4e); }

#endif
