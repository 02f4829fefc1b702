/* SPDX-License-Identifier: MIT */
/* The ceiling of multiply-adds: generic. */
#include "vec_generic.h"

#define CEILING ceiling_generic
#include "ceiling.inc"
