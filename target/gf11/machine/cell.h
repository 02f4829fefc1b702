/* SPDX-License-Identifier: MIT */
/* What the meanings of ops.def are written in: the one text that simulator, traced and fast execution share.
 * Kernels put the same expressions into loops over lanes, so everything here has to become vector code: choices, no
 * jumps. */
#ifndef CELL_H
#define CELL_H

#include <math.h>

#include "gf11_machine.h"

enum { CELL_NAN = 0x7fc00000 };

static inline float cell_floor(float v) { return floorf(v); }

/* The value converted is always in range: C leaves the others undefined. */
static inline int32_t cell_fix(float v)
{
	float inside = v >= -0x1p31f && v < 0x1p31f ? v : 0;
	int32_t whole = (int32_t)inside;
	whole = v >= 0x1p31f ? INT32_MAX : whole;
	return v < -0x1p31f ? INT32_MIN : whole;
}

/* Arithmetic gives one NaN only: which of two NaN operands a processor hands on depends on the order in which a
 * compiler puts them, and bits must not. */
static inline Cell from_float(float v)
{
	Cell c = { .f = v };
	c.u = v == v ? c.u : CELL_NAN;
	return c;
}

static inline Cell from_int(int32_t v) { return (Cell){ .i = v }; }
static inline Cell from_bits(uint32_t v) { return (Cell){ .u = v }; }
static inline Cell from_cell(Cell v) { return v; }

/* A meaning has the type of its expression: conditions are int, 0 or 1. */
#define CELL(v) _Generic((v), float : from_float, int32_t : from_int, uint32_t : from_bits, Cell : from_cell)(v)

#endif
