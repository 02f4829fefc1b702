/* SPDX-License-Identifier: MIT */
/* Noise.  In: where a number is added, and at what: its key and its counter.  Out: the number, in double precision.
 *
 * Numbers come from the generator of lib/base/random.c.  A key is made of the seed, the number of updates before, the
 * place and the group; a counter of the case in the data, its tick and the unit.  So a number is the same on any thread
 * and rank, in any order, and after resuming.  Of a word of 32 random bits the upper 23 are used: t.  Uniform numbers
 * are (2 t + 1) / 2^23 - 1, between -1 and 1; normal deviates are the quantiles of these, by Giles's polynomials for
 * the inverse of erf (GPU Computing Gems, 2011); dropout compares t / 2^23.  Target cpu computes the same in single
 * precision (target/cpu/kern/noise.inc), with 64 units of a row at a time: hence the order of words. */
#include <math.h>

#include "run.h"

uint64_t noise_key(const Options *o, uint64_t update, int place, uint32_t group)
{
	return random_key((uint64_t)o->seed, STREAM_NOISE + (uint32_t)place, group, update);
}

uint32_t noise_word(uint64_t key, uint64_t i, uint32_t tick, uint32_t unit)
{
	uint32_t word[4], counter[4] = { unit / NOISE_UNITS * 16 + unit % 16, (uint32_t)i, (uint32_t)(i >> 32), tick };
	random_draws(key, counter, word);
	return word[unit / 16 % 4];
}

uint32_t noise_weight_word(uint64_t key, uint64_t link)
{
	uint32_t word[4], counter[4] = { (uint32_t)link, 0, 0, 0 };
	random_draws(key, counter, word);
	return word[0];
}

static double uniform(uint32_t word) { return (2.0 * (word >> 9) + 1) * 0x1p-23 - 1; }

static double series(const double *c, int count, double x)
{
	double sum = c[count - 1];
	for (int i = count - 2; i >= 0; i--)
		sum = fma(sum, x, c[i]);
	return sum;
}

/* sqrt(2) x P(w), w = -ln(1 - x^2). */
static double quantile(double x)
{
	static const double near[] = { 1.50140941,     0.246640727,   -0.00417768164, -0.00125372503, 0.00021858087,
		                           -4.39150654e-6, -3.5233877e-6, 3.43273939e-7,  2.81022636e-8 };
	static const double far[] = { 2.83297682,     1.00167406,    0.00943887047,  -0.0076224613,  0.00573950773,
		                          -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257 };
	double w = -arith_log(fma(-x, x, 1)), p = w < 5 ? series(near, 9, w - 2.5) : series(far, 9, sqrt(w) - 3);
	return 1.4142135623730951 * x * p;
}

double noise_value(int kind, uint32_t word) { return kind == NOISE_UNIFORM ? uniform(word) : quantile(uniform(word)); }

double noise_apply(const Noise *n, uint32_t word, double v)
{
	if (n->kind == NOISE_DROPOUT)
		return (word >> 9) * 0x1p-23 < (double)n->amount ? 0 : v * (1 / (1 - n->exact));
	return fma(n->exact, noise_value(n->kind, word), v);
}
