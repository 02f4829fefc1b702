/* SPDX-License-Identifier: MIT */
/* make: built-in data sets.  All are the same on every machine; random ones draw from
 * random_u64(seed, STREAM_DATA, 0, 1, 2, ...) in order. */
#ifndef MAKE_H
#define MAKE_H

#include "data.h"

Data *make_data(Ctx *cx, const char *spec, const DataOptions *opt); /* generate.c: "parity:4" */

/* ---- inside the module ---------------------------------------------------------------------------- */

/* Arguments of a generator: numbers after the name, "8-3" being a = 8 and b = 3. */
typedef struct Request {
	uint64_t a, b, seed;
	uint64_t draws; /* random numbers drawn so far */
} Request;
typedef Data *Make(Ctx *cx, Request *q);

uint32_t draw(Request *q, uint32_t n); /* 0 .. n - 1 */
/* Data of this size, all 0. */
Data *set_new(Ctx *cx, uint64_t cases, uint32_t inputs, uint32_t targets, float **x, float **y);

Make make_letters, make_triangle, make_past_tense, make_family_tree, make_clubs, make_club_probes, make_semantics,
	make_sentences;

#endif
