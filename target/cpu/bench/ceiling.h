/* SPDX-License-Identifier: MIT */
/* Peak arithmetic: operands stay in registers. */
#ifndef CEILING_H
#define CEILING_H

#include <stdint.h>

/* Multiply-adds in `repeats` repetitions; returns the number of floating-point operations. */
typedef double CeilingFn(uint64_t repeats);
extern CeilingFn ceiling_generic, ceiling_neon, ceiling_avx2, ceiling_avx512;
extern CeilingFn ceiling_amx; /* tiles of bf16, sums in fp32 */

#endif
