/* SPDX-License-Identifier: MIT */
/* mma.m16n8k16, bf16 operands, f32 sums. In: fragments, distributed over lanes as the PTX manual says. Out: d = a b
 * + c.
 *
 * Products of bf16 numbers are exact. Here c and the 16 products are added in double precision, in order, and
 * rounded once to f32, to nearest. A GPU keeps fewer bits; which ones depends on its architecture. Both results
 * agree to some units in the last place of the largest term. */
#include <string.h>

#include "emulator.h"

enum { ROWS = 16, COLS = 8, DEPTH = 16 };

double bf16_value(uint32_t two, uint32_t which)
{
	uint32_t bits = which ? two & 0xffff0000u : two << 16;
	float f;

	memcpy(&f, &bits, sizeof f);
	return (double)f;
}

void mma_execute(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	double a[ROWS][DEPTH], b[COLS][DEPTH];
	uint32_t d[4][LANES];

	if (mask != UINT32_MAX)
		grid_fail(g, w, NO_LANE, "only lanes 0x%08x of the warp execute it, and all must", mask);
	for (uint32_t k = 0; k < 6; k++) {
		const uint32_t *v = operand_lanes(g, w, i->a[k]);
		for (uint32_t l = 0; l < LANES; l++)
			for (uint32_t h = 0; h < 2; h++) {
				uint32_t side = l / 4, deep = 2 * (l % 4) + h;
				if (k < 4)
					a[side + 8 * (k % 2)][deep + 8 * (k / 2)] = bf16_value(v[l], h);
				else
					b[side][deep + 8 * (k - 4)] = bf16_value(v[l], h);
			}
	}
	for (uint32_t k = 0; k < 4; k++) {
		const uint32_t *c = operand_lanes(g, w, i->a[6 + k]);
		for (uint32_t l = 0; l < LANES; l++) {
			const double *x = a[l / 4 + 8 * (k / 2)], *y = b[2 * (l % 4) + k % 2];
			float start, f;
			memcpy(&start, &c[l], sizeof start);
			double sum = (double)start;
			for (uint32_t n = 0; n < DEPTH; n++)
				sum += x[n] * y[n];
			f = float_of_double(sum, false);
			memcpy(&d[k][l], &f, sizeof f);
		}
	}
	for (uint32_t k = 0; k < 4; k++) {
		memcpy(w->reg + (uint64_t)i->d[k] * LANES, d[k], sizeof d[k]);
		w->defined[i->d[k]] = mask;
	}
}
