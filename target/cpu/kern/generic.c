/* SPDX-License-Identifier: MIT */
/* Kernels in plain C, for any CPU. */
#include "kern.h"

#include "vec_generic.h"

#include "kernels.inc"

const Kern kern_generic = { .name = "generic", KERNELS };
