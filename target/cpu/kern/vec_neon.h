/* SPDX-License-Identifier: MIT */
/* A vector of 16 floats as four quarters, for ARM's 64-bit CPUs; vec_generic.h specifies each operation.
 *
 * FPCR.FZ is set (cpu_enter): operands are flushed as the contract says, results before rounding. For sums, quotients
 * and roots that is the same (flush.h). Of a product or fused multiply-add, ARM makes 0 where the contract has 2^-126,
 * if the exact result lies between 2^-126 - 2^-151 and 2^-126. v_mul and v_fma find this out by computing the result a
 * second time, 2^64 times as large, where nothing underflows: if that is 2^-62, the result is 2^-126. (If an operand
 * is so large that scaling overflows, a result below 2^-126 is exact, and flushed everywhere.) Products, which have no
 * time for that, use v_fma_noting and look at the flag of FPSR for underflow before they store anything. */
#ifndef VEC_H
#define VEC_H

#include <arm_neon.h>

#include "flush.h"

#define VEC_ACCUMULATORS 5     /* vectors that hold sums in a product: 20 of 32 registers; with 6, gcc spills some */
#define VEC_DEEPEST      80    /* depth of a part of a product, where a is read by columns */
#define VEC_STRIP        32768 /* bytes of b that a product works on at a time */
#define VEC_ALIKE        1     /* 1: a strip of b is copied if its rows map to few sets of the cache */
#define VEC_APART \
	1024 /* floats from one row of b to the next from which on it is copied, for each is on another page */
#define VEC_TOGETHER 1 /* vectors whose sigmoids are computed interleaved */
#define VEC_OVERLAP  0 /* 1: sums over lists go on while sigmoids of the row before are computed */

typedef struct V {
	float32x4_t a, b, c, d;
} V;
typedef struct I {
	int32x4_t a, b, c, d;
} I;
typedef struct M {
	uint32x4_t a, b, c, d;
} M;

/* ---- quarters ---- */

static inline float32x4_t quarter_up(float32x4_t a) { return vmulq_n_f32(a, 0x1p64f); }

/* r, or 2^-126 with its sign where `up`, 2^64 times what r should be, says so: r is that, or a zero. */
static inline float32x4_t quarter_least(float32x4_t r, float32x4_t up)
{
	uint32x4_t least = vandq_u32(vceqq_f32(vabsq_f32(up), vdupq_n_f32(0x1p-62f)), vdupq_n_u32(0x00800000));
	return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(r), least));
}

static inline float32x4_t quarter_mul(float32x4_t a, float32x4_t b)
{
	return quarter_least(vmulq_f32(a, b), vmulq_f32(quarter_up(a), b));
}
static inline float32x4_t quarter_fma(float32x4_t a, float32x4_t b, float32x4_t c)
{
	return quarter_least(vfmaq_f32(c, a, b), vfmaq_f32(quarter_up(c), quarter_up(a), b));
}
/* Bits that are copied are not flushed by the CPU. */
static inline float32x4_t quarter_flush(float32x4_t a)
{
	uint32x4_t bits = vreinterpretq_u32_f32(a), normal = vtstq_u32(bits, vdupq_n_u32(0x7f800000));
	return vreinterpretq_f32_u32(vandq_u32(bits, vorrq_u32(normal, vdupq_n_u32(0x80000000))));
}
static inline float32x4_t quarter_min(float32x4_t a, float32x4_t b)
{
	return quarter_flush(vbslq_f32(vcltq_f32(a, b), a, b));
}
static inline float32x4_t quarter_max(float32x4_t a, float32x4_t b)
{
	return quarter_flush(vbslq_f32(vcgtq_f32(a, b), a, b));
}
static inline uint64x2_t quarter_times(int32x4_t a, int32x4_t b)
{
	return vmull_u32(vmovn_u64(vreinterpretq_u64_s32(a)), vmovn_u64(vreinterpretq_u64_s32(b)));
}

/* ---- numbers ---- */

static inline V v_set(float x)
{
	float32x4_t q = vdupq_n_f32(x);
	return (V){ q, q, q, q };
}
static inline V v_load(const float *p)
{
	return (V){ vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12) };
}
static inline V v_load_first(const float *p, uint32_t n)
{
	float first[16] = { 0 };

	memcpy(first, p, n * sizeof *first);
	return v_load(first);
}
static inline void v_store(float *p, V x)
{
	vst1q_f32(p, x.a);
	vst1q_f32(p + 4, x.b);
	vst1q_f32(p + 8, x.c);
	vst1q_f32(p + 12, x.d);
}
static inline V v_add(V x, V y)
{
	return (V){ vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b), vaddq_f32(x.c, y.c), vaddq_f32(x.d, y.d) };
}
static inline V v_sub(V x, V y)
{
	return (V){ vsubq_f32(x.a, y.a), vsubq_f32(x.b, y.b), vsubq_f32(x.c, y.c), vsubq_f32(x.d, y.d) };
}
static inline V v_div(V x, V y)
{
	return (V){ vdivq_f32(x.a, y.a), vdivq_f32(x.b, y.b), vdivq_f32(x.c, y.c), vdivq_f32(x.d, y.d) };
}
static inline V v_sqrt(V x) { return (V){ vsqrtq_f32(x.a), vsqrtq_f32(x.b), vsqrtq_f32(x.c), vsqrtq_f32(x.d) }; }
static inline V v_neg(V x) { return (V){ vnegq_f32(x.a), vnegq_f32(x.b), vnegq_f32(x.c), vnegq_f32(x.d) }; }
static inline V v_abs(V x) { return (V){ vabsq_f32(x.a), vabsq_f32(x.b), vabsq_f32(x.c), vabsq_f32(x.d) }; }
/* Not inline, as the kernels have many of these; most registers of the caller stay as they are. */
#define CALLED static __attribute__((noinline, unused, aarch64_vector_pcs))

CALLED V v_mul(V x, V y)
{
	return (V){ quarter_mul(x.a, y.a), quarter_mul(x.b, y.b), quarter_mul(x.c, y.c), quarter_mul(x.d, y.d) };
}
CALLED V v_fma(V x, V y, V z)
{
	return (V){ quarter_fma(x.a, y.a, z.a), quarter_fma(x.b, y.b, z.b), quarter_fma(x.c, y.c, z.c),
		        quarter_fma(x.d, y.d, z.d) };
}
static inline V v_fnma(V x, V y, V z) { return v_fma(v_neg(x), y, z); }
static inline V v_scale(V x, V y)
{
	return (V){ vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b), vmulq_f32(x.c, y.c), vmulq_f32(x.d, y.d) };
}
static inline V v_mla(V x, V y, V z)
{
	return (V){ vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
		        vfmaq_f32(z.d, x.d, y.d) };
}
static inline V v_mls(V x, V y, V z)
{
	return (V){ vfmsq_f32(z.a, x.a, y.a), vfmsq_f32(z.b, x.b, y.b), vfmsq_f32(z.c, x.c, y.c),
		        vfmsq_f32(z.d, x.d, y.d) };
}
static inline V v_min(V x, V y)
{
	return (V){ quarter_min(x.a, y.a), quarter_min(x.b, y.b), quarter_min(x.c, y.c), quarter_min(x.d, y.d) };
}
static inline V v_max(V x, V y)
{
	return (V){ quarter_max(x.a, y.a), quarter_max(x.b, y.b), quarter_max(x.c, y.c), quarter_max(x.d, y.d) };
}

/* ---- results that were flushed ---- */

#define VEC_NOTES 1
enum { FPSR_UNDERFLOW = 1 << 3 };

static inline V v_fma_noting(V x, V y, V z) { return v_mla(x, y, z); }
static inline void notes_clear(void) { __asm__ volatile("msr fpsr, xzr" : : : "memory"); }
static inline void notes_wait(V *x) { __asm__ volatile("" : "+w"(x->a), "+w"(x->b), "+w"(x->c), "+w"(x->d)); }
static inline bool notes_tiny(void)
{
	uint64_t flags;

	__asm__ volatile("mrs %0, fpsr" : "=r"(flags) : : "memory");
	return flags & FPSR_UNDERFLOW;
}

/* ---- masks ---- */

static inline M v_lt(V x, V y)
{
	return (M){ vcltq_f32(x.a, y.a), vcltq_f32(x.b, y.b), vcltq_f32(x.c, y.c), vcltq_f32(x.d, y.d) };
}
static inline M v_le(V x, V y)
{
	return (M){ vcleq_f32(x.a, y.a), vcleq_f32(x.b, y.b), vcleq_f32(x.c, y.c), vcleq_f32(x.d, y.d) };
}
static inline M v_eq(V x, V y)
{
	return (M){ vceqq_f32(x.a, y.a), vceqq_f32(x.b, y.b), vceqq_f32(x.c, y.c), vceqq_f32(x.d, y.d) };
}
static inline M v_nan(V x)
{
	M is = v_eq(x, x);
	return (M){ vmvnq_u32(is.a), vmvnq_u32(is.b), vmvnq_u32(is.c), vmvnq_u32(is.d) };
}
static inline V v_select(M m, V x, V y)
{
	return (V){ vbslq_f32(m.a, x.a, y.a), vbslq_f32(m.b, x.b, y.b), vbslq_f32(m.c, x.c, y.c),
		        vbslq_f32(m.d, x.d, y.d) };
}
static inline V v_sign_from(V x, V y)
{
	uint32x4_t sign = vdupq_n_u32(0x80000000);
	return v_select((M){ sign, sign, sign, sign }, y, x);
}
static inline M m_and(M x, M y)
{
	return (M){ vandq_u32(x.a, y.a), vandq_u32(x.b, y.b), vandq_u32(x.c, y.c), vandq_u32(x.d, y.d) };
}
static inline M m_or(M x, M y)
{
	return (M){ vorrq_u32(x.a, y.a), vorrq_u32(x.b, y.b), vorrq_u32(x.c, y.c), vorrq_u32(x.d, y.d) };
}
static inline M m_but(M x, M y)
{
	return (M){ vbicq_u32(x.a, y.a), vbicq_u32(x.b, y.b), vbicq_u32(x.c, y.c), vbicq_u32(x.d, y.d) };
}
static inline uint32_t m_bits(M m)
{
	static const uint8_t place[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
	uint16x8_t low = vcombine_u16(vmovn_u32(m.a), vmovn_u32(m.b)), high = vcombine_u16(vmovn_u32(m.c), vmovn_u32(m.d));
	uint8x16_t bits = vandq_u8(vcombine_u8(vmovn_u16(low), vmovn_u16(high)), vld1q_u8(place));

	return (uint32_t)vaddv_u8(vget_low_u8(bits)) | (uint32_t)vaddv_u8(vget_high_u8(bits)) << 8;
}
static inline M m_of(uint32_t bits)
{
	static const uint32_t place[4] = { 1, 2, 4, 8 };
	uint32x4_t of = vld1q_u32(place);

	return (M){ vtstq_u32(vdupq_n_u32(bits), of), vtstq_u32(vdupq_n_u32(bits >> 4), of),
		        vtstq_u32(vdupq_n_u32(bits >> 8), of), vtstq_u32(vdupq_n_u32(bits >> 12), of) };
}
static inline M m_first(uint32_t n)
{
	static const uint32_t number[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	uint32x4_t count = vdupq_n_u32(n);

	return (M){ vcltq_u32(vld1q_u32(number), count), vcltq_u32(vld1q_u32(number + 4), count),
		        vcltq_u32(vld1q_u32(number + 8), count), vcltq_u32(vld1q_u32(number + 12), count) };
}

/* ---- integers ---- */

static inline I v_bits(V x)
{
	return (I){ vreinterpretq_s32_f32(x.a), vreinterpretq_s32_f32(x.b), vreinterpretq_s32_f32(x.c),
		        vreinterpretq_s32_f32(x.d) };
}
static inline V i_float(I x)
{
	return (V){ vreinterpretq_f32_s32(x.a), vreinterpretq_f32_s32(x.b), vreinterpretq_f32_s32(x.c),
		        vreinterpretq_f32_s32(x.d) };
}
static inline V i_value(I x)
{
	return (V){ vcvtq_f32_s32(x.a), vcvtq_f32_s32(x.b), vcvtq_f32_s32(x.c), vcvtq_f32_s32(x.d) };
}
static inline I i_set(int32_t x)
{
	int32x4_t q = vdupq_n_s32(x);
	return (I){ q, q, q, q };
}
static inline I i_add(I x, I y)
{
	return (I){ vaddq_s32(x.a, y.a), vaddq_s32(x.b, y.b), vaddq_s32(x.c, y.c), vaddq_s32(x.d, y.d) };
}
static inline I i_sub(I x, I y)
{
	return (I){ vsubq_s32(x.a, y.a), vsubq_s32(x.b, y.b), vsubq_s32(x.c, y.c), vsubq_s32(x.d, y.d) };
}
static inline I i_and(I x, I y)
{
	return (I){ vandq_s32(x.a, y.a), vandq_s32(x.b, y.b), vandq_s32(x.c, y.c), vandq_s32(x.d, y.d) };
}
static inline I i_xor(I x, I y)
{
	return (I){ veorq_s32(x.a, y.a), veorq_s32(x.b, y.b), veorq_s32(x.c, y.c), veorq_s32(x.d, y.d) };
}
static inline int32x4_t quarter_shr9(int32x4_t a)
{
	return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), 9));
}
static inline I i_shr9(I x)
{
	return (I){ quarter_shr9(x.a), quarter_shr9(x.b), quarter_shr9(x.c), quarter_shr9(x.d) };
}
static inline I i_shl23(I x)
{
	return (I){ vshlq_n_s32(x.a, 23), vshlq_n_s32(x.b, 23), vshlq_n_s32(x.c, 23), vshlq_n_s32(x.d, 23) };
}
static inline I i_sar23(I x)
{
	return (I){ vshrq_n_s32(x.a, 23), vshrq_n_s32(x.b, 23), vshrq_n_s32(x.c, 23), vshrq_n_s32(x.d, 23) };
}
static inline I i_load(const void *p)
{
	int32_t of[16];

	memcpy(of, p, sizeof of);
	return (I){ vld1q_s32(of), vld1q_s32(of + 4), vld1q_s32(of + 8), vld1q_s32(of + 12) };
}
static inline I i_times(I x, I y)
{
	return (I){ vreinterpretq_s32_u64(quarter_times(x.a, y.a)), vreinterpretq_s32_u64(quarter_times(x.b, y.b)),
		        vreinterpretq_s32_u64(quarter_times(x.c, y.c)), vreinterpretq_s32_u64(quarter_times(x.d, y.d)) };
}
static inline int32x4_t quarter_odd(int32x4_t a)
{
	return vreinterpretq_s32_u64(vshrq_n_u64(vreinterpretq_u64_s32(a), 32));
}
static inline I i_odd(I x) { return (I){ quarter_odd(x.a), quarter_odd(x.b), quarter_odd(x.c), quarter_odd(x.d) }; }
static inline int32x4_t quarter_add64(int32x4_t a, int32x4_t b)
{
	return vreinterpretq_s32_s64(vaddq_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}
static inline I i_add64(I x, I y)
{
	return (I){ quarter_add64(x.a, y.a), quarter_add64(x.b, y.b), quarter_add64(x.c, y.c), quarter_add64(x.d, y.d) };
}

static inline int32x4_t quarter_wide(int32x4_t a, uint32_t b, int32x4_t *high)
{
	uint32x4_t u = vreinterpretq_u32_s32(a);
	uint32x4_t l = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(u), b)),
			   h = vreinterpretq_u32_u64(vmull_n_u32(vget_high_u32(u), b));
	*high = vreinterpretq_s32_u32(vuzp2q_u32(l, h));
	return vreinterpretq_s32_u32(vuzp1q_u32(l, h));
}
static inline I i_wide(I x, uint32_t y, I *high)
{
	I low;
	low.a = quarter_wide(x.a, y, &high->a);
	low.b = quarter_wide(x.b, y, &high->b);
	low.c = quarter_wide(x.c, y, &high->c);
	low.d = quarter_wide(x.d, y, &high->d);
	return low;
}

static inline V v_or_one(V x, V e) { return v_select(v_lt(x, v_set(0)), e, v_set(1)); }
static inline V v_times_power(V a, V n, V z)
{
	(void)n;
	return v_scale(a, i_float(i_shl23(v_bits(z))));
}

/* ---- lanes ---- */

static inline float v_sum(V x)
{
	float32x4_t q = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
	float32x2_t p = vadd_f32(vget_low_f32(q), vget_high_f32(q));

	return vget_lane_f32(vpadd_f32(p, p), 0);
}
static inline float v_largest(V x) { return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.a, x.b), vmaxq_f32(x.c, x.d))); }

static inline float32x4_t quarter_low(float32x4_t a, float32x4_t b)
{
	return vcombine_f32(vget_low_f32(a), vget_low_f32(b));
}
static inline float32x4_t quarter_high(float32x4_t a, float32x4_t b)
{
	return vcombine_f32(vget_high_f32(a), vget_high_f32(b));
}
static inline void transpose4(float32x4_t r[4])
{
	float32x4x2_t t = vtrnq_f32(r[0], r[1]), u = vtrnq_f32(r[2], r[3]);

	r[0] = quarter_low(t.val[0], u.val[0]);
	r[1] = quarter_low(t.val[1], u.val[1]);
	r[2] = quarter_high(t.val[0], u.val[0]);
	r[3] = quarter_high(t.val[1], u.val[1]);
}

/* By blocks of four rows and columns, in memory: there are not enough registers for all of it. */
static inline void v_transpose16(V r[16])
{
	float from[16][16], to[16][16];

	for (int i = 0; i < 16; i++)
		v_store(from[i], r[i]);
	for (int i = 0; i < 16; i += 4)
		for (int j = 0; j < 16; j += 4) {
			float32x4_t q[4] = { vld1q_f32(from[i] + j), vld1q_f32(from[i + 1] + j), vld1q_f32(from[i + 2] + j),
				                 vld1q_f32(from[i + 3] + j) };
			transpose4(q);
			for (int k = 0; k < 4; k++)
				vst1q_f32(to[j + k] + i, q[k]);
		}
	for (int i = 0; i < 16; i++)
		r[i] = v_load(to[i]);
}

static inline void v_transpose12(V r[16]) { v_transpose16(r); }

static inline void v_transpose_pairs(V r[8])
{
	float from[8][16], to[8][16];

	for (int i = 0; i < 8; i++)
		v_store(from[i], r[i]);
	for (int i = 0; i < 16; i++)
		for (int k = 0; k < 8; k++)
			to[k][i] = from[i / 2][i % 2 * 8 + k];
	for (int i = 0; i < 8; i++)
		r[i] = v_load(to[i]);
}

static inline V v_pick(const float *base, const uint32_t slot[16])
{
	float of[16];

	for (int i = 0; i < 16; i++)
		of[i] = base[slot[i]];
	return v_load(of);
}

static inline V v_load8_twice(const float *p)
{
	float32x4_t low = vld1q_f32(p), high = vld1q_f32(p + 4);
	return (V){ low, high, low, high };
}
static inline V v_two(float x, float y)
{
	float32x4_t low = vdupq_n_f32(x), high = vdupq_n_f32(y);
	return (V){ low, low, high, high };
}
static inline float f_lane(V x, uint32_t i)
{
	float of[16];

	v_store(of, x);
	return of[i];
}
static inline V v_lane(V x, uint32_t i) { return v_set(f_lane(x, i)); }
static inline V v_swap(V x) { return (V){ x.c, x.d, x.a, x.b }; }

#endif
