/* SPDX-License-Identifier: MIT */
/* Kernels for CPUs with AVX-512 (F, BW, VL, DQ). */
#include "amx.h"

#include "vec_avx512.h"

#include "kernels.inc"
#include "half.inc"

const Kern kern_avx512 = { .name = "avx512", KERNELS };
const HalfKern half_avx512 = { .name = "avx512", HALF_KERNELS };
