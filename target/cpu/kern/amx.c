/* SPDX-License-Identifier: MIT */
/* Products of bf16 numbers with AMX.  In: floats.  Out: rows and tiles (amx.h), and sums of products.
 *
 * Multiplying: a block of the result, two tiles by two, stays in tile registers over the whole depth. It takes four
 * loads for four products; a load from the L1 cache costs half a product. The operand with fewer tiles is run
 * through in the inner loop, so that it stays in a near cache.
 *
 * What must hold: the process may use tiles (isa_has), and the thread has called enter. */
#include <immintrin.h>
#include <string.h>

#include "amx.h"

/* ---- operands ----------------------------------------------------------------------------------- */

static inline __mmask16 first_lanes(uint32_t n) { return n >= LANES ? 0xffff : (__mmask16)((1u << n) - 1); }

/* Thirty-two numbers: low, then high. */
static inline __m512i halves(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }

/* low[0] high[0] low[1] high[1] ... */
static inline __m512i pairs(__m512 low, __m512 high)
{
	const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
	                                       21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
	return _mm512_permutexvar_epi16(order, halves(low, high));
}

static inline __m512i row_halves(const Matrix *a, size_t at, uint32_t left)
{
	if (!a->f)
		return _mm512_maskz_loadu_epi16(left >= TILE_DEPTH ? 0xffffffff : (1u << left) - 1, a->h + at);
	return halves(_mm512_maskz_loadu_ps(first_lanes(left), a->f + at),
	              _mm512_maskz_loadu_ps(first_lanes(left > LANES ? left - LANES : 0), a->f + at + LANES));
}

static void pack_rows(uint32_t rows, uint32_t depth, const Matrix *a, Half *to, size_t to_row)
{
	for (uint32_t m = 0; m < rows; m++, to += to_row) {
		size_t at = (a->at ? a->at[m] : m) * a->row;
		uint32_t k = 0;

		for (; a->f && k + TILE_DEPTH <= depth; k += TILE_DEPTH)
			_mm512_storeu_si512(to + k, halves(_mm512_loadu_ps(a->f + at + k), _mm512_loadu_ps(a->f + at + k + LANES)));
		for (; k < depth; k += TILE_DEPTH)
			_mm512_storeu_si512(to + k, row_halves(a, at + k, depth - k));
	}
}

static inline __m512i halves_to_pairs(__m256i low, __m256i high)
{
	return _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

/* 16 columns of rows k and k + 1, interleaved. */
static inline __attribute__((always_inline)) __m512i whole_pairs(const Matrix *b, uint32_t k, uint32_t col, bool floats)
{
	size_t at = k * b->row + col;

	if (floats)
		return pairs(_mm512_loadu_ps(b->f + at), _mm512_loadu_ps(b->f + at + b->row));
	return halves_to_pairs(_mm256_loadu_si256((const void *)(b->h + at)),
	                       _mm256_loadu_si256((const void *)(b->h + at + b->row)));
}

/* The same at an edge: some lanes are not there, and rows from depth on are zero. */
static inline __m512i edge_pairs(const Matrix *b, uint32_t k, uint32_t depth, uint32_t col, __mmask16 lanes)
{
	__mmask16 first = k < depth ? lanes : 0, second = k + 1 < depth ? lanes : 0;
	size_t at = (k < depth ? k : 0) * b->row + col, next = at + (second ? b->row : 0);

	if (b->f)
		return pairs(_mm512_maskz_loadu_ps(first, b->f + at), _mm512_maskz_loadu_ps(second, b->f + next));
	return halves_to_pairs(_mm256_maskz_loadu_epi16(first, b->h + at), _mm256_maskz_loadu_epi16(second, b->h + next));
}

/* The 16 lines of a tile of b. */
static inline __attribute__((always_inline)) void tile_pairs(const Matrix *b, uint32_t k, uint32_t depth, uint32_t col,
                                                             uint32_t cols, __m512i line[16])
{
	bool whole = k + TILE_DEPTH <= depth && col + LANES <= cols;

	if (whole && b->f)
		for (uint32_t i = 0; i < 16; i++)
			line[i] = whole_pairs(b, k + 2 * i, col, true);
	else if (whole)
		for (uint32_t i = 0; i < 16; i++)
			line[i] = whole_pairs(b, k + 2 * i, col, false);
	else
		for (uint32_t i = 0; i < 16; i++)
			line[i] = edge_pairs(b, k + 2 * i, depth, col, first_lanes(cols - col));
}

static void pack_pairs(uint32_t depth, uint32_t cols, const Matrix *b, Half *to)
{
	for (uint32_t n = 0; n < cols; n += LANES)
		for (uint32_t k = 0; k < depth; k += TILE_DEPTH, to += TILE_SIZE) {
			__m512i line[16];
			tile_pairs(b, k, depth, n, cols, line);
			for (uint32_t i = 0; i < 16; i++)
				_mm512_storeu_si512(to + i * TILE_DEPTH, line[i]);
		}
}

/* Transposes 16 rows of 16 pairs. */
static inline void transpose(__m512i r[16])
{
	__m512i t[16];

	for (int i = 0; i < 16; i += 2) {
		t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
		t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
	}
	for (int i = 0; i < 16; i += 4) {
		r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
		r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
		r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
		r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
	}
	for (int i = 0; i < 4; i++) { /* quarters: 4 x 4 of them */
		t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
		t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
		t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
		t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
	}
	for (int i = 0; i < 4; i++) {
		r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
		r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
		r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
		r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
	}
}

static void pack_across(uint32_t rows, uint32_t depth, const Matrix *a, Half *to, size_t to_row)
{
	for (uint32_t m = 0; m < rows; m += TILE_ROWS, to += TILE_ROWS * to_row)
		for (uint32_t k = 0; k < depth; k += TILE_DEPTH) {
			__m512i line[16];
			tile_pairs(a, k, depth, m, rows, line);
			transpose(line);
			for (uint32_t i = 0; i < 16; i++)
				_mm512_storeu_si512(to + i * to_row + k, line[i]);
		}
}

/* ---- tiles -------------------------------------------------------------------------------------- */

/* What the CPU reads to learn the shape of its tiles. */
typedef struct Shape {
	uint8_t palette, start_row, reserved[14];
	uint16_t bytes[16]; /* in a row, for each tile */
	uint8_t rows[16];
} Shape;

/* gcc 12 does not know that tile instructions read and write memory. */
static inline void memory_settles(void) { __asm__ volatile("" ::: "memory"); }

static void tiles_enter(void)
{
	_Alignas(64) Shape shape;

	memset(&shape, 0, sizeof shape);
	shape.palette = 1;
	for (int i = 0; i < 8; i++) {
		shape.bytes[i] = TILE_DEPTH * sizeof(Half);
		shape.rows[i] = TILE_ROWS;
	}
	__asm__ volatile("" : : "r"(&shape) : "memory");
	_tile_loadconfig(&shape);
}

static void tiles_leave(void) { _tile_release(); }

/* One tile of the result: where its sums start and go.  Where it hangs over the last row, or rows are numbered, they
 * pass through `edge`. */
typedef struct Corner {
	const float *start;
	float *c;
	size_t start_bytes, c_bytes; /* from row to row */
	uint32_t row, col;
	bool through;
	_Alignas(64) float edge[TILE_ROWS * LANES];
} Corner;

static inline size_t row_at(const Multiply *p, uint32_t m) { return p->at ? p->at[m] : m; }

static void edge_fill(const Multiply *p, Corner *q)
{
	for (uint32_t r = 0; r < TILE_ROWS; r++) {
		bool there = q->row + r < p->rows;
		const float *from = there ? p->start + row_at(p, q->row + r) * p->start_row + q->col : p->start;
		_mm512_store_ps(q->edge + r * LANES, _mm512_maskz_loadu_ps(there ? 0xffff : 0, from));
	}
}

static void edge_empty(const Multiply *p, const Corner *q)
{
	for (uint32_t r = 0; r < TILE_ROWS && q->row + r < p->rows; r++)
		_mm512_storeu_ps(p->c + row_at(p, q->row + r) * p->c_row + q->col, _mm512_load_ps(q->edge + r * LANES));
}

static inline void corner_open(const Multiply *p, Corner *q, uint32_t row, uint32_t col)
{
	q->row = row;
	q->col = col;
	q->through = p->at || row + TILE_ROWS > p->rows;
	q->start = q->edge;
	q->c = q->edge;
	q->start_bytes = q->c_bytes = LANES * sizeof(float);
	if (q->through) {
		edge_fill(p, q);
	} else {
		q->start = p->start + row * p->start_row + col;
		q->start_bytes = p->start_row * sizeof(float);
		q->c = p->c + row * p->c_row + col;
		q->c_bytes = p->c_row * sizeof(float);
	}
}

/* A block of the result: one or two tiles high and wide, which are constants where this is inlined. */
static inline __attribute__((always_inline)) void block(const Multiply *p, uint32_t m, uint32_t n, bool high, bool wide)
{
	size_t blocks = half_blocks(p->depth);
	const Half *a = p->a + m * TILE_ROWS * p->a_row, *b = p->b + n * blocks * TILE_SIZE;
	const size_t a_next = TILE_ROWS * p->a_row, b_next = blocks * TILE_SIZE;
	const size_t a_bytes = p->a_row * sizeof(Half), b_bytes = TILE_DEPTH * sizeof(Half);
	Corner q[4];

	for (int i = 0; i < 4; i++)
		if ((i < 2 || high) && (i % 2 == 0 || wide))
			corner_open(p, &q[i], (m + i / 2) * TILE_ROWS, (n + i % 2) * LANES);
	memory_settles();
	_tile_loadd(0, q[0].start, q[0].start_bytes);
	if (wide)
		_tile_loadd(1, q[1].start, q[1].start_bytes);
	if (high)
		_tile_loadd(2, q[2].start, q[2].start_bytes);
	if (high && wide)
		_tile_loadd(3, q[3].start, q[3].start_bytes);
	for (size_t j = 0; j < blocks; j++, a += TILE_DEPTH, b += TILE_SIZE) {
		_tile_loadd(4, a, a_bytes);
		_tile_loadd(6, b, b_bytes);
		_tile_dpbf16ps(0, 4, 6);
		if (wide) {
			_tile_loadd(7, b + b_next, b_bytes);
			_tile_dpbf16ps(1, 4, 7);
		}
		if (high) {
			_tile_loadd(5, a + a_next, a_bytes);
			_tile_dpbf16ps(2, 5, 6);
		}
		if (high && wide)
			_tile_dpbf16ps(3, 5, 7);
	}
	_tile_stored(0, q[0].c, q[0].c_bytes);
	if (wide)
		_tile_stored(1, q[1].c, q[1].c_bytes);
	if (high)
		_tile_stored(2, q[2].c, q[2].c_bytes);
	if (high && wide)
		_tile_stored(3, q[3].c, q[3].c_bytes);
	memory_settles();
	for (int i = 0; i < 4; i++)
		if ((i < 2 || high) && (i % 2 == 0 || wide) && q[i].through)
			edge_empty(p, &q[i]);
}

static void block_at(const Multiply *p, uint32_t m, uint32_t n, bool high, bool wide)
{
	if (high && wide)
		block(p, m, n, true, true);
	else if (high)
		block(p, m, n, true, false);
	else if (wide)
		block(p, m, n, false, true);
	else
		block(p, m, n, false, false);
}

static void multiply(const Multiply *p)
{
	uint32_t high = (p->rows + TILE_ROWS - 1) / TILE_ROWS, wide = (p->cols + LANES - 1) / LANES;

	if (high < wide) {
		for (uint32_t n = 0; n < wide; n += 2)
			for (uint32_t m = 0; m < high; m += 2)
				block_at(p, m, n, m + 1 < high, n + 1 < wide);
	} else {
		for (uint32_t m = 0; m < high; m += 2)
			for (uint32_t n = 0; n < wide; n += 2)
				block_at(p, m, n, m + 1 < high, n + 1 < wide);
	}
}

const HalfKern half_amx = {
	.name = "amx",
	.enter = tiles_enter,
	.leave = tiles_leave,
	.pack_rows = pack_rows,
	.pack_across = pack_across,
	.pack_pairs = pack_pairs,
	.multiply = multiply,
};
