/* SPDX-License-Identifier: MIT */
/* The ceiling of multiply-adds: avx2. */
#include "vec_avx2.h"

#define CEILING ceiling_avx2
#include "ceiling.inc"
