/* SPDX-License-Identifier: MIT */
/* A dictionary of texts: each different one gets a number, counted from 0 in the order of first appearance.
 * The texts are not copied and must outlive the dictionary. */
#include <string.h>
#include <xxhash.h>

#include "base.h"

enum { FIRST_SLOTS = 64, MAX_SLOTS = 1 << 30 };

static bool same(Text a, Text b) { return a.len == b.len && (a.len == 0 || memcmp(a.s, b.s, a.len) == 0); }

/* The slot that holds the text, or the empty one where it would go. */
static uint32_t find_slot(const Dict *d, Text t)
{
	uint32_t at = (uint32_t)XXH3_64bits(t.s, t.len) & (d->slots - 1);
	while (d->slot[at] && !same(d->text[d->slot[at] - 1], t))
		at = (at + 1) & (d->slots - 1);
	return at;
}

static void grow(Dict *d)
{
	if (d->slots == MAX_SLOTS)
		fail(d->arena->cx, MP_BAD_INPUT, "split the file", "there are more than %u different words", d->count);
	uint32_t slots = d->slots ? d->slots * 2 : FIRST_SLOTS;
	d->text = arena_grow(d->arena, d->text, d->slots / 2, slots / 2, sizeof *d->text);
	d->slot = NEW(d->arena, slots, uint32_t);
	d->slots = slots;
	for (uint32_t i = 0; i < d->count; i++)
		d->slot[find_slot(d, d->text[i])] = i + 1;
}

uint32_t dict_add(Dict *d, Text t)
{
	if (d->count == d->slots / 2)
		grow(d);
	uint32_t at = find_slot(d, t);
	if (!d->slot[at]) {
		d->text[d->count++] = t;
		d->slot[at] = d->count;
	}
	return d->slot[at] - 1;
}

bool dict_find(const Dict *d, Text t, uint32_t *number)
{
	if (d->slots == 0)
		return false;
	uint32_t at = find_slot(d, t);
	if (!d->slot[at])
		return false;
	*number = d->slot[at] - 1;
	return true;
}
