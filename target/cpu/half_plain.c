/* SPDX-License-Identifier: MIT */
/* Products of bf16 numbers on CPUs without tiles.  In: floats.  Out: rows and tiles (kern/amx.h), and sums of products.
 * Must hold: every bit is what AMX gives.  A chain of even or odd k in one 32 is a product sixteen deep that starts at
 * zero, so the kernels for floats do the work; here numbers are rounded, sorted into even and odd, and chains joined. */
#include <string.h>

#include "kern/amx.h"

/* The nearest bf16 number, of two the even one.  Tiny numbers become zero, NaN stays NaN. */
static inline uint32_t half_of(float x)
{
	uint32_t u, size, nearest;

	memcpy(&u, &x, sizeof u);
	size = u & 0x7fffffff;
	nearest = u + 0x7fff + (u >> 16 & 1);
	nearest = size < 0x00800000 ? u & 0x80000000 : nearest;
	nearest = size > 0x7f800000 ? u | 0x00400000 : nearest;
	return nearest >> 16;
}

/* n numbers of a row, from column col on. */
static void row_halves(const Matrix *a, size_t row, uint32_t col, uint32_t n, Half *to)
{
	size_t at = (a->at ? a->at[row] : row) * a->row + col;

	if (a->f)
		for (uint32_t i = 0; i < n; i++)
			to[i] = (Half)half_of(a->f[at + i]);
	else
		memcpy(to, a->h + at, n * sizeof *to);
}

static void plain_rows(uint32_t rows, uint32_t depth, const Matrix *a, Half *to, size_t to_row)
{
	for (uint32_t m = 0; m < rows; m++, to += to_row) {
		row_halves(a, m, 0, depth, to);
		memset(to + depth, 0, (half_blocks(depth) * TILE_DEPTH - depth) * sizeof *to);
	}
}

static void plain_across(uint32_t rows, uint32_t depth, const Matrix *a, Half *to, size_t to_row)
{
	for (uint32_t m = 0; m < rows; m += TILE_ROWS, to += TILE_ROWS * to_row)
		for (uint32_t k = 0; k < half_blocks(depth) * TILE_DEPTH; k++) {
			Half line[TILE_ROWS] = { 0 };
			if (k < depth)
				row_halves(a, k, m, rows - m < TILE_ROWS ? rows - m : TILE_ROWS, line);
			for (uint32_t i = 0; i < TILE_ROWS; i++)
				to[i * to_row + k] = line[i];
		}
}

static void plain_pairs(uint32_t depth, uint32_t cols, const Matrix *b, Half *to)
{
	for (uint32_t n = 0; n < cols; n += LANES)
		for (uint32_t k = 0; k < half_blocks(depth) * TILE_DEPTH; k += 2, to += TILE_DEPTH) {
			Half line[2][LANES] = { { 0 } };
			for (uint32_t odd = 0; odd < 2 && k + odd < depth; odd++)
				row_halves(b, k + odd, n, cols - n < LANES ? cols - n : LANES, line[odd]);
			for (uint32_t i = 0; i < LANES; i++) {
				to[2 * i] = line[0][i];
				to[2 * i + 1] = line[1][i];
			}
		}
}

/* One 32 of the depth, for a few rows and columns. */
enum { STRIP_ROWS = 32, STRIP_COLS = 64, PAIRS = TILE_DEPTH / 2 };
typedef struct Strip {
	uint32_t row, rows, col, cols;
	float a[2][STRIP_ROWS * PAIRS];   /* even k, odd k */
	float b[2][PAIRS * STRIP_COLS];
	float sum[2][STRIP_ROWS * STRIP_COLS];
} Strip;

/* Sixteen pairs: the even and the odd numbers as floats. */
static void pairs_open(const Half *from, float *even, float *odd)
{
	uint32_t pair[PAIRS], low[PAIRS], high[PAIRS];

	memcpy(pair, from, sizeof pair);
	for (uint32_t i = 0; i < PAIRS; i++) {
		low[i] = pair[i] << 16;
		high[i] = pair[i] & 0xffff0000;
	}
	memcpy(even, low, sizeof low);
	memcpy(odd, high, sizeof high);
}

static void strip_open_a(const Multiply *p, Strip *s, size_t block)
{
	for (uint32_t m = 0; m < s->rows; m++)
		pairs_open(p->a + (s->row + m) * p->a_row + block * TILE_DEPTH, s->a[0] + m * PAIRS, s->a[1] + m * PAIRS);
}

static void strip_open_b(const Multiply *p, Strip *s, size_t block)
{
	for (uint32_t n = 0; n < s->cols; n += LANES) {
		const Half *from = p->b + ((s->col + n) / LANES * half_blocks(p->depth) + block) * TILE_SIZE;

		for (uint32_t k = 0; k < PAIRS; k++)
			pairs_open(from + k * TILE_DEPTH, s->b[0] + k * STRIP_COLS + n, s->b[1] + k * STRIP_COLS + n);
	}
}

/* The two chains, and the sum they make. */
static void strip_multiply(const Multiply *p, Strip *s, size_t block)
{
	static const float zero[STRIP_COLS];

	for (int odd = 0; odd < 2; odd++) {
		Product chain = { .rows = s->rows, .cols = s->cols, .depth = PAIRS, .a = s->a[odd], .a_row = PAIRS, .a_step = 1,
		                  .b = s->b[odd], .b_row = STRIP_COLS, .start = zero, .c = s->sum[odd], .c_row = STRIP_COLS };
		p->kern->product(&chain);
	}
	for (uint32_t m = 0; m < s->rows; m++) {
		size_t row = p->at ? p->at[s->row + m] : s->row + m;
		const float *even = s->sum[0] + m * STRIP_COLS, *odd = s->sum[1] + m * STRIP_COLS;
		const float *start = (block ? p->c + row * p->c_row : p->start + row * p->start_row) + s->col;
		float *c = p->c + row * p->c_row + s->col;

		for (uint32_t n = 0; n < s->cols; n++)
			c[n] = start[n] + (even[n] + odd[n]);
	}
}

static inline uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void plain_multiply(const Multiply *p)
{
	uint32_t width = (p->cols + LANES - 1) / LANES * LANES;
	Strip s;

	for (uint32_t m = 0; p->depth == 0 && m < p->rows; m++) {
		size_t row = p->at ? p->at[m] : m;
		memmove(p->c + row * p->c_row, p->start + row * p->start_row, width * sizeof *p->c);
	}
	for (s.col = 0; s.col < width; s.col += STRIP_COLS) {
		s.cols = smaller(width - s.col, STRIP_COLS);
		for (size_t block = 0; block < half_blocks(p->depth); block++) {
			strip_open_b(p, &s, block);
			for (s.row = 0; s.row < p->rows; s.row += STRIP_ROWS) {
				s.rows = smaller(p->rows - s.row, STRIP_ROWS);
				strip_open_a(p, &s, block);
				strip_multiply(p, &s, block);
			}
		}
	}
}

static void plain_nothing(void) { }

const HalfKern half_plain = {
	.name = "plain",
	.enter = plain_nothing,
	.leave = plain_nothing,
	.pack_rows = plain_rows,
	.pack_across = plain_across,
	.pack_pairs = plain_pairs,
	.multiply = plain_multiply,
};
