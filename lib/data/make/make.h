/* SPDX-License-Identifier: MIT */
/* make: built-in data sets. */
#ifndef MAKE_H
#define MAKE_H

#include "data.h"

Data *make_data(Ctx *cx, const char *spec, const DataOptions *opt); /* generate.c, letters.c: "parity:4" */
Data *make_letters(Ctx *cx, uint64_t seed);
Data *make_triangle(Ctx *cx, uint64_t seed);

#endif
