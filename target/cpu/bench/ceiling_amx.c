/* SPDX-License-Identifier: MIT */
/* The ceiling of tile products: bf16 in, fp32 sums.  In: repeats.  Out: floating-point operations done.  Must hold: the
 * process may use tiles (isa_has). */
#include <immintrin.h>
#include <string.h>

#include "ceiling.h"

/* Operand of LDTILECFG. */
typedef struct Shape {
	uint8_t palette, start_row, reserved[14];
	uint16_t bytes[16]; /* in a row, for each tile */
	uint8_t rows[16];
} Shape;

double ceiling_amx(uint64_t repeats)
{
	enum { TILES = 8, PRODUCTS = 4, OPERATIONS = 2 * 16 * 16 * 32 };
	_Alignas(64) Shape shape;

	memset(&shape, 0, sizeof shape);
	shape.palette = 1;
	for (int i = 0; i < TILES; i++) {
		shape.bytes[i] = 64;
		shape.rows[i] = 16;
	}
	__asm__ volatile("" : : "r"(&shape) : "memory"); /* gcc 12 does not know that loading a shape reads it */
	_tile_loadconfig(&shape);
	_tile_zero(0);
	_tile_zero(1);
	_tile_zero(2);
	_tile_zero(3);
	_tile_zero(4);
	_tile_zero(5);
	_tile_zero(6);
	_tile_zero(7);
	for (uint64_t i = 0; i < repeats; i++) {
		_tile_dpbf16ps(0, 4, 6);
		_tile_dpbf16ps(1, 4, 7);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(3, 5, 7);
	}
	_tile_release();
	return (double)repeats * PRODUCTS * OPERATIONS;
}
