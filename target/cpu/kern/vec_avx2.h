/* SPDX-License-Identifier: MIT */
/* A vector of 16 floats as two halves, with AVX2 and FMA; vec_generic.h specifies each operation. */
#ifndef VEC_H
#define VEC_H

#include <immintrin.h>
#include <stdint.h>

#include "flush.h"

#define VEC_ACCUMULATORS 6  /* registers that hold sums in a product, counted in pairs; the rest hold operands */
#define VEC_DEEPEST      80 /* depth of a part of a product, where a is read by columns */
#define VEC_STRIP \
	32768 /* bytes of b that a product works on at a time: less than the L1 cache, which also holds rows of a and c */
#define VEC_ALIKE 1 /* 1: a strip of b is copied if its rows map to few sets of the cache */
#define VEC_APART \
	1024 /* floats from one row of b to the next from which on it is copied, for each is on another page */
#define VEC_TOGETHER 1 /* vectors whose sigmoids are computed interleaved */
#define VEC_OVERLAP  1 /* 1: sums over lists go on while sigmoids of the row before are computed */

typedef struct V {
	__m256 l, h;
} V;
typedef struct I {
	__m256i l, h;
} I;
typedef struct M {
	__m256 l, h;
} M;

static inline V v_set(float x) { return (V){ _mm256_set1_ps(x), _mm256_set1_ps(x) }; }
static inline V v_load(const float *p) { return (V){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) }; }
static inline V v_load_first(const float *p, uint32_t n)
{
	__m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), count = _mm256_set1_epi32((int32_t)n);
	__m256i high = _mm256_add_epi32(low, _mm256_set1_epi32(8));
	return (V){ _mm256_maskload_ps(p, _mm256_cmpgt_epi32(count, low)),
		        _mm256_maskload_ps(p + 8, _mm256_cmpgt_epi32(count, high)) };
}
static inline void v_store(float *p, V a)
{
	_mm256_storeu_ps(p, a.l);
	_mm256_storeu_ps(p + 8, a.h);
}
static inline V v_add(V a, V b) { return (V){ _mm256_add_ps(a.l, b.l), _mm256_add_ps(a.h, b.h) }; }
static inline V v_sub(V a, V b) { return (V){ _mm256_sub_ps(a.l, b.l), _mm256_sub_ps(a.h, b.h) }; }
static inline V v_mul(V a, V b) { return (V){ _mm256_mul_ps(a.l, b.l), _mm256_mul_ps(a.h, b.h) }; }
static inline V v_div(V a, V b) { return (V){ _mm256_div_ps(a.l, b.l), _mm256_div_ps(a.h, b.h) }; }
static inline V v_sqrt(V a) { return (V){ _mm256_sqrt_ps(a.l), _mm256_sqrt_ps(a.h) }; }
static inline V v_fma(V a, V b, V c) { return (V){ _mm256_fmadd_ps(a.l, b.l, c.l), _mm256_fmadd_ps(a.h, b.h, c.h) }; }
static inline V v_fnma(V a, V b, V c)
{
	return (V){ _mm256_fnmadd_ps(a.l, b.l, c.l), _mm256_fnmadd_ps(a.h, b.h, c.h) };
}
static inline V v_mla(V a, V b, V c) { return v_fma(a, b, c); }
static inline V v_mls(V a, V b, V c) { return v_fnma(a, b, c); }
static inline V v_scale(V a, V b) { return v_mul(a, b); }
#define VEC_NOTES 0
static inline V v_fma_noting(V a, V b, V c) { return v_fma(a, b, c); }
static inline void notes_clear(void) {}
static inline void notes_wait(V *x) { (void)x; }
static inline bool notes_tiny(void) { return false; }
static inline V v_min(V a, V b) { return (V){ _mm256_min_ps(a.l, b.l), _mm256_min_ps(a.h, b.h) }; }
static inline V v_max(V a, V b) { return (V){ _mm256_max_ps(a.l, b.l), _mm256_max_ps(a.h, b.h) }; }
static inline V v_neg(V a)
{
	__m256 sign = _mm256_set1_ps(-0.0f);
	return (V){ _mm256_xor_ps(a.l, sign), _mm256_xor_ps(a.h, sign) };
}
static inline V v_abs(V a)
{
	__m256 sign = _mm256_set1_ps(-0.0f);
	return (V){ _mm256_andnot_ps(sign, a.l), _mm256_andnot_ps(sign, a.h) };
}
static inline V v_sign_from(V a, V b)
{
	__m256 sign = _mm256_set1_ps(-0.0f);
	return (V){ _mm256_or_ps(_mm256_andnot_ps(sign, a.l), _mm256_and_ps(sign, b.l)),
		        _mm256_or_ps(_mm256_andnot_ps(sign, a.h), _mm256_and_ps(sign, b.h)) };
}

static inline M v_lt(V a, V b)
{
	return (M){ _mm256_cmp_ps(a.l, b.l, _CMP_LT_OQ), _mm256_cmp_ps(a.h, b.h, _CMP_LT_OQ) };
}
static inline M v_le(V a, V b)
{
	return (M){ _mm256_cmp_ps(a.l, b.l, _CMP_LE_OQ), _mm256_cmp_ps(a.h, b.h, _CMP_LE_OQ) };
}
static inline M v_eq(V a, V b)
{
	return (M){ _mm256_cmp_ps(a.l, b.l, _CMP_EQ_OQ), _mm256_cmp_ps(a.h, b.h, _CMP_EQ_OQ) };
}
static inline M v_nan(V a)
{
	return (M){ _mm256_cmp_ps(a.l, a.l, _CMP_UNORD_Q), _mm256_cmp_ps(a.h, a.h, _CMP_UNORD_Q) };
}
static inline V v_select(M m, V a, V b)
{
	return (V){ _mm256_blendv_ps(b.l, a.l, m.l), _mm256_blendv_ps(b.h, a.h, m.h) };
}
static inline M m_and(M a, M b) { return (M){ _mm256_and_ps(a.l, b.l), _mm256_and_ps(a.h, b.h) }; }
static inline M m_or(M a, M b) { return (M){ _mm256_or_ps(a.l, b.l), _mm256_or_ps(a.h, b.h) }; }
static inline M m_but(M a, M b) { return (M){ _mm256_andnot_ps(b.l, a.l), _mm256_andnot_ps(b.h, a.h) }; }
static inline uint32_t m_bits(M m)
{
	return (uint32_t)_mm256_movemask_ps(m.l) | (uint32_t)_mm256_movemask_ps(m.h) << 8;
}
static inline M m_of(uint32_t bits)
{
	__m256i low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), high = _mm256_slli_epi32(low, 8);
	__m256i all = _mm256_set1_epi32((int32_t)bits);
	return (M){ _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, low), low)),
		        _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, high), high)) };
}
static inline M m_first(uint32_t n)
{
	__m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), count = _mm256_set1_epi32((int32_t)n);
	__m256i high = _mm256_add_epi32(low, _mm256_set1_epi32(8));
	return (M){ _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, low)),
		        _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, high)) };
}

static inline I v_bits(V a) { return (I){ _mm256_castps_si256(a.l), _mm256_castps_si256(a.h) }; }
static inline V i_float(I a) { return (V){ _mm256_castsi256_ps(a.l), _mm256_castsi256_ps(a.h) }; }
static inline V i_value(I a) { return (V){ _mm256_cvtepi32_ps(a.l), _mm256_cvtepi32_ps(a.h) }; }
static inline I i_set(int32_t x) { return (I){ _mm256_set1_epi32(x), _mm256_set1_epi32(x) }; }
static inline I i_add(I a, I b) { return (I){ _mm256_add_epi32(a.l, b.l), _mm256_add_epi32(a.h, b.h) }; }
static inline I i_sub(I a, I b) { return (I){ _mm256_sub_epi32(a.l, b.l), _mm256_sub_epi32(a.h, b.h) }; }
static inline I i_and(I a, I b) { return (I){ _mm256_and_si256(a.l, b.l), _mm256_and_si256(a.h, b.h) }; }
static inline I i_xor(I a, I b) { return (I){ _mm256_xor_si256(a.l, b.l), _mm256_xor_si256(a.h, b.h) }; }
static inline I i_shr9(I a) { return (I){ _mm256_srli_epi32(a.l, 9), _mm256_srli_epi32(a.h, 9) }; }
static inline I i_shl23(I a) { return (I){ _mm256_slli_epi32(a.l, 23), _mm256_slli_epi32(a.h, 23) }; }
static inline I i_sar23(I a) { return (I){ _mm256_srai_epi32(a.l, 23), _mm256_srai_epi32(a.h, 23) }; }
static inline I i_load(const void *p)
{
	return (I){ _mm256_loadu_si256(p), _mm256_loadu_si256((const __m256i *)p + 1) };
}
static inline I i_times(I a, I b) { return (I){ _mm256_mul_epu32(a.l, b.l), _mm256_mul_epu32(a.h, b.h) }; }
static inline I i_odd(I a) { return (I){ _mm256_srli_epi64(a.l, 32), _mm256_srli_epi64(a.h, 32) }; }
static inline I i_add64(I a, I b) { return (I){ _mm256_add_epi64(a.l, b.l), _mm256_add_epi64(a.h, b.h) }; }

static inline __m256i i_wide8(__m256i a, __m256i b, __m256i *high)
{
	__m256i even = _mm256_mul_epu32(a, b), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), b);
	*high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
	return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
static inline I i_wide(I a, uint32_t b, I *high)
{
	__m256i all = _mm256_set1_epi32((int32_t)b), l = i_wide8(a.l, all, &high->l);
	return (I){ l, i_wide8(a.h, all, &high->h) };
}

/* 1, or e, which is no more, where x is below zero. */
static inline V v_or_one(V x, V e) { return v_select(v_lt(x, v_set(0)), e, v_set(1)); }
/* a 2^n, with a 1 or more where n is -127, and z is n + WHOLE of functions.h: 0 if that is tiny. */
static inline V v_times_power(V a, V n, V z)
{
	(void)n;
	return v_mul(a, i_float(i_shl23(v_bits(z))));
}

static inline float v_sum(V a)
{
	__m256 h = _mm256_add_ps(a.l, a.h);
	__m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));

	q = _mm_add_ps(q, _mm_movehl_ps(q, q));
	return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}

static inline float v_largest(V a)
{
	__m256 h = _mm256_max_ps(a.l, a.h);
	__m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));

	q = _mm_max_ps(q, _mm_movehl_ps(q, q));
	return _mm_cvtss_f32(_mm_max_ss(q, _mm_shuffle_ps(q, q, 1)));
}

/* Eight rows of eight: elements inside halves by two rounds of unpacking, then the halves themselves. */
static inline void v_transpose8(__m256 r[8])
{
	__m256 t[8];

	for (int i = 0; i < 8; i += 2) {
		t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
		t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
	}
	for (int i = 0; i < 8; i += 4)
		for (int k = 0; k < 2; k++) {
			r[i + 2 * k] = _mm256_shuffle_ps(t[i + k], t[i + 2 + k], 0x44);
			r[i + 2 * k + 1] = _mm256_shuffle_ps(t[i + k], t[i + 2 + k], 0xee);
		}
	for (int i = 0; i < 4; i++) {
		t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
		t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
	}
	for (int i = 0; i < 8; i++)
		r[i] = t[i];
}

static inline void v_transpose16(V r[16])
{
	__m256 q[4][8]; /* upper left, upper right, lower left, lower right */

	for (int i = 0; i < 8; i++) {
		q[0][i] = r[i].l;
		q[1][i] = r[i].h;
		q[2][i] = r[i + 8].l;
		q[3][i] = r[i + 8].h;
	}
	for (int k = 0; k < 4; k++)
		v_transpose8(q[k]);
	for (int i = 0; i < 8; i++) {
		r[i] = (V){ q[0][i], q[2][i] };
		r[i + 8] = (V){ q[1][i], q[3][i] };
	}
}

static inline void v_transpose12(V r[16]) { v_transpose16(r); }

static inline void v_transpose_pairs(V r[8])
{
	__m256 q[2][8]; /* rows 0 to 7, rows 8 to 15 */

	for (int i = 0; i < 8; i++) {
		q[i / 4][i % 4 * 2] = r[i].l;
		q[i / 4][i % 4 * 2 + 1] = r[i].h;
	}
	v_transpose8(q[0]);
	v_transpose8(q[1]);
	for (int i = 0; i < 8; i++)
		r[i] = (V){ q[0][i], q[1][i] };
}

static inline V v_pick(const float *base, const uint32_t slot[16])
{
	return (V){ _mm256_i32gather_ps(base, _mm256_loadu_si256((const __m256i *)slot), 4),
		        _mm256_i32gather_ps(base, _mm256_loadu_si256((const __m256i *)(slot + 8)), 4) };
}

static inline V v_load8_twice(const float *p) { return (V){ _mm256_loadu_ps(p), _mm256_loadu_ps(p) }; }
static inline V v_two(float x, float y) { return (V){ _mm256_set1_ps(x), _mm256_set1_ps(y) }; }
static inline __m256 v_eight_lane(V a, uint32_t i)
{
	/* which takes i by its low three bits */
	return _mm256_permutevar8x32_ps(i < 8 ? a.l : a.h, _mm256_set1_epi32((int32_t)i));
}
static inline V v_lane(V a, uint32_t i)
{
	__m256 x = v_eight_lane(a, i);
	return (V){ x, x };
}
static inline float f_lane(V a, uint32_t i) { return _mm256_cvtss_f32(v_eight_lane(a, i)); }
static inline V v_swap(V a) { return (V){ a.h, a.l }; }

#endif
