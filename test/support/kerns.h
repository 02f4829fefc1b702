/* SPDX-License-Identifier: MIT */
/* The kernels that this CPU can run, for tests that hold them to plain loops. */
#ifndef KERNS_H
#define KERNS_H

#include "isa.h"
#include "kern.h"
#include "target.h"

#if defined __x86_64__ && !defined MP_PORTABLE
#include <immintrin.h>
#endif

enum { MOST_KERNS = 3 };
static const Kern *kerns[MOST_KERNS];
static int kern_count;

/* Tiny numbers count as zero from here on, as kernels want it. */
static inline void kerns_find(void)
{
	kerns[kern_count++] = &kern_generic;
#if defined __x86_64__ && !defined MP_PORTABLE
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		kerns[kern_count++] = &kern_avx2;
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
	    __builtin_cpu_supports("avx512dq"))
		kerns[kern_count++] = &kern_avx512;
	_mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined __aarch64__ && !defined MP_PORTABLE
	kerns[kern_count++] = &kern_neon;
	cpu_enter();
#endif
}

#endif
