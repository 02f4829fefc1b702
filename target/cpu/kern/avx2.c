/* SPDX-License-Identifier: MIT */
/* Kernels for CPUs with AVX2 and FMA. */
#include "amx.h"

#include "vec_avx2.h"

#include "kernels.inc"
#include "half.inc"

const Kern kern_avx2 = { .name = "avx2", KERNELS };
const HalfKern half_avx2 = { .name = "avx2", HALF_KERNELS };
