/* SPDX-License-Identifier: MIT */
/* Products of bf16 numbers: the forms of their operands, and what multiplies them.
 *
 * bf16 is the upper half of a float. Operands are rounded to it, to nearest and of two to the even one; products of
 * two are exact in a float, sums are floats.
 *
 *   a[m][k]    rows, padded with zeros to full 32s of k
 *   b[k][n]    tiles of 32 k and 16 n, 16 lines of 32 numbers each; line r has pairs:
 *              b[k + 2r][n], b[k + 2r + 1][n], b[k + 2r][n + 1], b[k + 2r + 1][n + 1], ...
 *              First come the tiles of the first 16 n, k = 0, 32, 64, ..., then those of the next; zeros fill the
 *              last ones
 *
 * What 32 k add to a sum is part of the definition (it is what TDPBF16PS does): products of even k are one chain of
 * fused multiply-adds that starts at zero, those of odd k another, the two are added, and this is added to the sum.
 * Tiny numbers count as zero. The 32s are counted from k = 0. */
#ifndef AMX_H
#define AMX_H

#include "kern.h"

enum { TILE_ROWS = 16, TILE_DEPTH = 32, TILE_SIZE = TILE_ROWS * TILE_DEPTH };

typedef uint16_t Half; /* a bf16 number */

/* c[m][n] = start[m][n] + a[m][k] b[k][n] summed over k. */
typedef struct Multiply {
	uint32_t rows, cols, depth;
	const Half *a; /* readable in multiples of 16 rows */
	size_t a_row;
	const Half *b;      /* tiles */
	const float *start; /* start_row 0: the same row for all */
	size_t start_row;
	float *c; /* may be start */
	size_t c_row;
	const uint32_t *at; /* NULL, or the numbers of the rows of c (and start, unless start_row is 0) */
} Multiply;

/* A matrix to be packed: of floats, or of numbers that are halves already. */
typedef struct Matrix {
	const float *f; /* NULL: see h */
	const Half *h;
	size_t row;
	const uint32_t *at; /* NULL, or the numbers of its rows; packing rows alone knows these */
} Matrix;

typedef struct HalfKern {
	const char *name;
	void (*enter)(void); /* before a thread multiplies, and when it is done */
	void (*leave)(void);
	void (*pack_rows)(uint32_t rows, uint32_t depth, const Matrix *a, Half *to, size_t to_row);   /* from a[m][k] */
	void (*pack_across)(uint32_t rows, uint32_t depth, const Matrix *a, Half *to, size_t to_row); /* from a[k][m] */
	void (*pack_pairs)(uint32_t depth, uint32_t cols, const Matrix *b, Half *to); /* tiles, from b[k][n] */
	void (*multiply)(const Multiply *p);
} HalfKern;

extern const HalfKern half_generic, half_neon, half_avx2, half_avx512, half_amx; /* the same bits from all */

static inline size_t half_blocks(size_t depth) { return (depth + TILE_DEPTH - 1) / TILE_DEPTH; }
/* Halves in a row of a. An odd number of cache lines, so that rows that lie below each other do not compete for a
 * set. */
static inline size_t half_row(size_t depth) { return (half_blocks(depth) | 1) * TILE_DEPTH; }
/* Halves in rows of a, in multiples of 16 rows, and in the tiles of b. */
static inline size_t half_room_rows(size_t rows, size_t depth)
{
	return (rows + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS * half_row(depth);
}
static inline size_t half_room_tiles(size_t depth, size_t cols)
{
	return (cols + LANES - 1) / LANES * half_blocks(depth) * TILE_SIZE;
}

#endif
