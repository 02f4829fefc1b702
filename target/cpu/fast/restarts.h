/* SPDX-License-Identifier: MIT */
/* Many seeds of one network in lanes: seeds.c makes the tables, restarts.c runs them. */
#ifndef RESTARTS_H
#define RESTARTS_H

#include "fast.h"

/* ---- seeds.c ---- */

/* Everything of Seeds that threads share but the data; place_of[link] says where a link's weight is. */
Seeds *seeds_make(Arena *arena, const Layout *l, const Options *opt, uint32_t chunk, uint32_t *place_of);
/* The data, as dense rows; returns how many cases are scored.  uneven: lanes may come to have no case. */
uint64_t seeds_data(Arena *arena, Seeds *s, const Program *p, bool uneven);
float *lanes_take(Arena *arena, size_t vectors); /* zeroed, on a cache line */
static inline size_t padded(size_t n) { return (n + LANES - 1) / LANES * LANES; }

/* ---- restarts.c ---- */

bool cpu_restarts(Ctx *cx, Program *p, Restarts *all); /* as Target.restarts */

#endif
