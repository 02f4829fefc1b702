/* SPDX-License-Identifier: MIT */
/* The ceiling of multiply-adds: NEON. */
#include "vec_neon.h"

#define CEILING ceiling_neon
#include "ceiling.inc"
