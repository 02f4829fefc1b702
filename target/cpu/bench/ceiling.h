/* SPDX-License-Identifier: MIT */
/* Arithmetic and nothing else: how fast the vector units could go if nothing had to be fetched. */
#ifndef CEILING_H
#define CEILING_H

#include <stdint.h>

/* Multiply-adds in registers, `turns` times as many as a turn has; how many floating-point operations that were. */
typedef double CeilingFn(uint64_t turns);
extern CeilingFn ceiling_generic, ceiling_avx2, ceiling_avx512;
extern CeilingFn ceiling_amx; /* tiles of bf16, sums in fp32 */

#endif
