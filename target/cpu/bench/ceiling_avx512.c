/* SPDX-License-Identifier: MIT */
/* The ceiling of multiply-adds: avx512. */
#include "vec_avx512.h"

#define CEILING ceiling_avx512
#include "ceiling.inc"
