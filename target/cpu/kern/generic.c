/* SPDX-License-Identifier: MIT */
/* Kernels in plain C, for any CPU. */
#include "amx.h"

#include "vec_generic.h"

#include "kernels.inc"
#include "half.inc"

const Kern kern_generic = { .name = "generic", KERNELS };
const HalfKern half_generic = { .name = "generic", HALF_KERNELS };
