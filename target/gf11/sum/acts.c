/* SPDX-License-Identifier: MIT */
/* Acts: pieces of a recording with the cycle each should start in.  In: acts in any order.  Out: the same by time. */
#include <stdlib.h>

#include "gf11_sum.h"

void acts_add(Acts *a, int64_t at, Act act)
{
	if (a->acts == a->capacity) {
		uint32_t capacity = a->capacity ? 2 * a->capacity : 1024;
		a->act = arena_grow(a->arena, a->act, a->capacity, capacity, sizeof *a->act);
		a->capacity = capacity;
	}
	act.at = at;
	act.number = a->acts;
	a->act[a->acts++] = act;
}

static int act_order(const void *x, const void *y)
{
	const Act *a = x, *b = y;
	return a->at != b->at ? (a->at < b->at ? -1 : 1) : a->number < b->number ? -1 : 1;
}

void acts_sort(Acts *a)
{
	if (a->acts)
		qsort(a->act, a->acts, sizeof *a->act, act_order);
}
