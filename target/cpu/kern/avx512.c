/* SPDX-License-Identifier: MIT */
/* Kernels for CPUs with AVX-512 (F, BW, VL, DQ). */
#include "kern.h"

#include "vec_avx512.h"

#include "kernels.inc"

const Kern kern_avx512 = { .name = "avx512", KERNELS };
