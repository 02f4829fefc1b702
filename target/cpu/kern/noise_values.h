/* SPDX-License-Identifier: MIT */
/* Random numbers of noise and dropout, in terms of the vec_*.h that was included before: lib/run/noise.c defines them.
 * In: words of the generator. Out: numbers. Target cuda includes it with vectors of one float. */
#ifndef NOISE_VALUES_H
#define NOISE_VALUES_H

#include "functions.h"

/* 1 + t / 2^23 of the upper 23 bits of a word, exact. */
static inline V v_one_and(I word) { return i_float(i_add(i_shr9(word), i_set(0x3f800000))); }

/* (2 t + 1) / 2^23 - 1, exact. */
static inline V v_uniform(I word) { return v_fma(v_set(2), v_sub(v_one_and(word), v_set(1.5f)), v_set(0x1p-23f)); }

static inline V v_normal(I word)
{
	static const float near[] = { 1.50140941f,     0.246640727f,   -0.00417768164f, -0.00125372503f, 0.00021858087f,
		                          -4.39150654e-6f, -3.5233877e-6f, 3.43273939e-7f,  2.81022636e-8f };
	static const float far[] = { 2.83297682f,     1.00167406f,    0.00943887047f,  -0.0076224613f,  0.00573950773f,
		                         -0.00367342844f, 0.00134934322f, 0.000100950558f, -0.000200214257f };
	V x = v_uniform(word), w = v_neg(v_log_normal(v_fnma(x, x, v_set(1))));
	V p = v_select(v_lt(w, v_set(5)), v_series(near, 9, v_sub(w, v_set(2.5f))),
	               v_series(far, 9, v_sub(v_sqrt(w), v_set(3))));

	return v_mul(v_mul(v_set(0x1.6a09e6p+0f), x), p);
}

/* A factor for dropout, a number to add for the others. kind: a constant. */
INLINE V v_noise(int kind, I word, V amount, V scale)
{
	if (kind == NOISE_KIND_DROPOUT)
		return v_select(v_lt(v_sub(v_one_and(word), v_set(1)), amount), v_set(0), scale);
	return kind == NOISE_KIND_UNIFORM ? v_uniform(word) : v_normal(word);
}

#endif
