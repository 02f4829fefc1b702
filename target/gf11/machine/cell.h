/* SPDX-License-Identifier: MIT */
/* Helpers for the meanings in ops.def, shared by the simulating recorder, the cycle-accurate interpreter and the fast
 * kernels.  Kernels expand the same expressions in loops over lanes, so everything here must vectorize: selects, no
 * branches. */
#ifndef CELL_H
#define CELL_H

#include <math.h>

#include "gf11_machine.h"

enum { CELL_NAN = 0x7fc00000 };

static inline float cell_floor(float v) { return floorf(v); }

/* Clamp before converting: C leaves out-of-range conversions undefined. */
static inline int32_t cell_fix(float v)
{
	float inside = v >= -0x1p31f && v < 0x1p31f ? v : 0;
	int32_t whole = (int32_t)inside;
	whole = v >= 0x1p31f ? INT32_MAX : whole;
	return v < -0x1p31f ? INT32_MIN : whole;
}

/* Canonical NaN: which operand's NaN payload a CPU propagates depends on operand order, which the compiler chooses. */
static inline Cell from_float(float v)
{
	Cell c = { .f = v };
	c.u = v == v ? c.u : CELL_NAN;
	return c;
}

static inline Cell from_int(int32_t v) { return (Cell){ .i = v }; }
static inline Cell from_bits(uint32_t v) { return (Cell){ .u = v }; }
static inline Cell from_cell(Cell v) { return v; }

/* Dispatch on the type of a meaning; comparisons are int, 0 or 1. */
#define CELL(v) _Generic((v), float : from_float, int32_t : from_int, uint32_t : from_bits, Cell : from_cell)(v)

#endif
