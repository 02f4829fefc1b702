/* SPDX-License-Identifier: MIT */
/* Kernels for CPUs with AVX2 and FMA. */
#include "kern.h"

#include "vec_avx2.h"

#include "kernels.inc"

const Kern kern_avx2 = { .name = "avx2", KERNELS };
