/* SPDX-License-Identifier: MIT */
/* Kernels for ARM's 64-bit CPUs. */
#include "amx.h"

#include "vec_neon.h"

#include "kernels.inc"
#include "half.inc"

const Kern kern_neon = { .name = "neon", KERNELS };
const HalfKern half_neon = { .name = "neon", HALF_KERNELS };
