/* SPDX-License-Identifier: MIT */
/* Lookup tables and constants of the routines: 1K words of SRAM (section 9 of the report).
 * Out: the words that the host writes to every processor before the first call.
 *
 *     0  TABLE_SIGMOID     1 / (1 + e^-x) at 256 points of [-15, 15]
 *   256  TABLE_RISE        difference to the next point; 0 at the last, so that x = 15 is no special case
 *   512  TABLE_POWER       2^-126, 2^-125, ... 2^125
 *   768  TABLE_RECIPROCAL  128 initial estimates for reciprocal()
 *   896  TABLE_CONSTANT    constants, in the order of K_... */
#include <math.h>
#include <string.h>

#include "gf11_code.h"

enum { POINTS = 256, POWERS = 252, GUESSES = 128 };
#define LOWEST_POWER -126
_Static_assert(TABLE_CONSTANT + CONSTANTS <= TABLE_WORDS, "constants fit the table");

static const Cell constants[CONSTANTS] = {
	[K_ZERO] = { .f = 0 },
	[K_HALF] = { .f = 0.5f },
	[K_ONE] = { .f = 1 },
	[K_BELOW_TWO] = { .f = 0x1.fffffcp0f }, /* 2 - 2^-22: see reciprocal() */
	[K_SIGMOID_LOW] = { .f = -15 },
	[K_SIGMOID_HIGH] = { .f = 15 },
	[K_SIGMOID_SCALE] = { .f = 8.5f }, /* 255 steps over 30 */
	[K_SIGMOID_MIDDLE] = { .f = 127.5f },
	[K_POWER_LOW] = { .f = LOWEST_POWER },
	[K_POWER_HIGH] = { .f = LOWEST_POWER + POWERS - 1 },
	[K_POWER_FIRST] = { .f = -LOWEST_POWER },
	/* 2^h = 1 + h (K_POWER_1 + h (K_POWER_2 + ...)), interpolated at Chebyshev points of [0, 0.5]: error 5.8e-9 */
	[K_POWER_1] = { .f = 0x1.62e430p-1f },
	[K_POWER_2] = { .f = 0x1.ebfb52p-3f },
	[K_POWER_3] = { .f = 0x1.c6d414p-5f },
	[K_POWER_4] = { .f = 0x1.3817fcp-7f },
	[K_POWER_5] = { .f = 0x1.945094p-10f },
	[K_MANTISSA_SHIFT] = { .u = 16 }, /* shifts the 7 upper mantissa bits to the bottom */
	[K_MANTISSA_MASK] = { .u = GUESSES - 1 },
	[K_SIGN_EXPONENT] = { .u = 0xff800000u },
	[K_EXPONENT_BIAS] = { .f = 127 },
	[K_EXPONENT_SHIFT] = { .u = 23 },
	[K_RECIPROCAL_BITS] = { .u = 0x7ef311c7u },
};

static float sigmoid_point(int i) { return (float)(1 / (1 + arith_exp(15 - i / 8.5))); }

void tables_fill(Cell *word)
{
	memset(word, 0, TABLE_WORDS * sizeof *word);
	Cell *value = word + TABLE_SIGMOID;
	Cell *rise = word + TABLE_RISE;
	for (int i = 0; i < POINTS; i++)
		value[i].f = sigmoid_point(i);
	for (int i = 0; i < POINTS - 1; i++)
		rise[i].f = value[i + 1].f - value[i].f;
	for (int i = 0; i < POWERS; i++)
		word[TABLE_POWER + i].f = ldexpf(1, LOWEST_POWER + i);
	/* Initial estimate of 1 / x by the leading mantissa bits, at the middle of their interval.  The exponent of 1.0 is
	 * added twice, so that subtracting sign and exponent of x yields sign and exponent of the estimate. */
	Cell *guess = word + TABLE_RECIPROCAL;
	for (int i = 0; i < GUESSES; i++) {
		Cell middle = { .f = (float)(1 / (1 + (i + 0.5) / GUESSES)) };
		guess[i].u = middle.u + 0x3f800000u;
	}
	memcpy(word + TABLE_CONSTANT, constants, sizeof constants);
}
