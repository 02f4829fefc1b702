/* SPDX-License-Identifier: MIT */
/* What kernels need of a device: numbers of threads, barriers, atomic operations, single rounded operations.
 *
 * For NVPTX these are instructions; else functions of emulate.c, where a thread of the device is a fiber. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __NVPTX__

#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))
extern SHARED float block_memory[] __attribute__((aligned(16))); /* as much as the launch asks for */
static inline SHARED float *shared_memory(void) { return block_memory; }
static inline uint32_t thread_number(void) { return (uint32_t)__nvvm_read_ptx_sreg_tid_x(); }
static inline uint32_t thread_count(void) { return (uint32_t)__nvvm_read_ptx_sreg_ntid_x(); }
static inline uint32_t block_number(void) { return (uint32_t)__nvvm_read_ptx_sreg_ctaid_x(); }
static inline uint32_t block_count(void) { return (uint32_t)__nvvm_read_ptx_sreg_nctaid_x(); }
static inline void block_barrier(void) { __syncthreads(); }
/* Of the first `threads` threads of a block. */
static inline void workers_barrier(uint32_t threads) { __nvvm_barrier_sync_cnt(1, threads); }
static inline void memory_fence(void) { __nvvm_membar_gl(); }
static inline void atomic_add(uint32_t *at, uint32_t n) { __nvvm_atom_add_gen_i((int *)at, (int)n); }
static inline void atomic_or(uint32_t *at, uint32_t bits) { __nvvm_atom_or_gen_i((int *)at, (int)bits); }
static inline void spin(void) {}
static inline uint64_t clock_cycles(void) { return (uint64_t)__nvvm_read_ptx_sreg_clock64(); }
static inline void device_trap(void) { __builtin_trap(); }
/* Brings a float, and those beside it, to the L1 cache. */
static inline void touch_one(const GLOBAL float *p) { __asm__ volatile("prefetch.global.L1 [%0];" ::"l"(p)); }
static inline float f_fma(float a, float b, float c) { return __nvvm_fma_rn_ftz_f(a, b, c); }
static inline float f_sqrt(float a) { return __nvvm_sqrt_rn_ftz_f(a); }
static inline double d_sqrt(double a) { return __nvvm_sqrt_rn_d(a); }

#else

#define GLOBAL
#define SHARED
float *shared_memory(void); /* of the block */
uint32_t thread_number(void);
uint32_t thread_count(void);
uint32_t block_number(void);
uint32_t block_count(void);
void block_barrier(void);
static inline void workers_barrier(uint32_t threads) /* all threads work: there are too few to divide them */
{
	(void)threads;
	block_barrier();
}
void spin(void); /* others run */
static inline void memory_fence(void) {}
static inline uint64_t clock_cycles(void) { return 0; }
static inline void device_trap(void) {}
static inline void touch_one(const float *p) { (void)*(const volatile float *)p; } /* it must be readable */
static inline void atomic_add(uint32_t *at, uint32_t n) { *at += n; }              /* fibers share one thread */
static inline void atomic_or(uint32_t *at, uint32_t bits) { *at |= bits; }
static inline float f_sqrt(float a) { return __builtin_sqrtf(a); }
static inline double d_sqrt(double a) { return __builtin_sqrt(a); }

/* As in vec_generic.h: the product is exact in double, the sum is rounded to odd. */
static inline float f_fma(float a, float b, float c)
{
	double p = (double)a * (double)b, wide = (double)c;
	double s = p + wide, back = s - p, lost = (p - (s - back)) + (wide - back);
	int64_t bits;

	__builtin_memcpy(&bits, &s, sizeof bits);
	if (lost < 0 || lost > 0)
		bits = (bits + ((lost < 0) == (s < 0) ? 0 : -1)) | 1; /* towards zero, then odd */
	__builtin_memcpy(&s, &bits, sizeof s);
	return (float)s;
}

#endif

typedef float Quad __attribute__((vector_size(16)));

static inline uint32_t bits_of(float a)
{
	uint32_t bits;
	__builtin_memcpy(&bits, &a, sizeof bits);
	return bits;
}

static inline float float_of(uint32_t bits)
{
	float a;
	__builtin_memcpy(&a, &bits, sizeof a);
	return a;
}

/* ---- vectors of one float, for functions.h and values.inc of target cpu ---- */

#define VEC_TOGETHER 1
typedef float V;
typedef int32_t I;
typedef bool M;
static inline V v_set(float x) { return x; }
static inline V v_add(V a, V b) { return a + b; }
static inline V v_sub(V a, V b) { return a - b; }
static inline V v_mul(V a, V b) { return a * b; }
static inline V v_div(V a, V b) { return a / b; }
static inline V v_fma(V a, V b, V c) { return f_fma(a, b, c); }
static inline V v_neg(V a) { return float_of(bits_of(a) ^ 0x80000000u); }
static inline V v_abs(V a) { return float_of(bits_of(a) & 0x7fffffffu); }
static inline V v_fnma(V a, V b, V c) { return f_fma(v_neg(a), b, c); }
static inline V v_mla(V a, V b, V c) { return f_fma(a, b, c); }
static inline V v_mls(V a, V b, V c) { return v_fnma(a, b, c); }
static inline V v_scale(V a, V b) { return a * b; }
static inline V v_min(V a, V b) { return a < b ? a : b; }
static inline V v_max(V a, V b) { return a > b ? a : b; }
static inline V v_sign_from(V a, V b) { return float_of((bits_of(a) & 0x7fffffffu) | (bits_of(b) & 0x80000000u)); }
static inline M v_lt(V a, V b) { return a < b; }
static inline M v_le(V a, V b) { return a <= b; }
static inline M v_eq(V a, V b) { return a == b; }
static inline V v_select(M m, V a, V b) { return m ? a : b; }
static inline M m_or(M a, M b) { return a || b; }
static inline uint32_t m_bits(M m) { return m ? 0xffff : 0; }
static inline I v_bits(V a) { return (I)bits_of(a); }
static inline V i_float(I a) { return float_of((uint32_t)a); }
static inline V i_value(I a) { return (float)a; }
static inline I i_set(int32_t x) { return x; }
static inline I i_sub(I a, I b) { return (I)((uint32_t)a - (uint32_t)b); }
static inline I i_shl23(I a) { return (I)((uint32_t)a << 23); }
static inline I i_sar23(I a) { return a >> 23; }
static inline V v_or_one(V x, V e) { return x < 0 ? e : 1; }
static inline V v_times_power(V a, V n, V z)
{
	(void)n;
	return a * i_float(i_shl23(v_bits(z)));
}

#endif
