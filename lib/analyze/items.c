/* SPDX-License-Identifier: MIT */
/* Items that are compared: cases, or means over cases with the same name or the same target. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "inside.h"

/* What the targets of a case stand for: code word, class, or the numbers themselves. */
static const char *target_name(Arena *a, const Data *d, uint64_t i, float *y, double *v)
{
	Buf b = { .arena = a };
	uint32_t best = 0;
	data_y(d, i, y);
	for (uint32_t k = 0; k < d->targets; k++) {
		v[k] = isnan(y[k]) ? 0 : (double)y[k];
		best = v[k] > v[best] ? k : best;
	}
	if (d->code_count && d->code_names) {
		const Text *name = &d->code_names[code_nearest(d->codes, d->code_count, d->targets, v, y)];
		return arena_copy(a, name->s, name->len);
	}
	if (d->class_count == d->targets && d->classes)
		return d->classes[best];
	for (uint32_t k = 0; k < d->targets; k++)
		buf_printf(&b, k ? " %g" : "%g", v[k]);
	return b.s;
}

/* The item of each case, [cases]; a->items and names are set. */
static uint32_t *items_number(Analysis *a)
{
	const Data *d = a->s->data;
	Arena *arena = &a->s->cx->scratch;
	uint32_t *item = NEW(arena, d->cases, uint32_t);
	Dict names = { .arena = arena };
	bool by_target = a->average && strcmp(a->average, "target") == 0;
	float *y = NEW(arena, d->targets + 1, float);
	double *v = NEW(arena, d->targets + 1, double);
	if (a->average && !by_target && strcmp(a->average, "name") != 0)
		fail(a->s->cx, MP_BAD_INPUT, "it is name or target", "--average cannot be '%.40s'", a->average);
	if (by_target && !d->targets)
		fail(a->s->cx, MP_BAD_INPUT, "give data with targets, or write --average name",
		     "%s has no targets to average by", d->name);
	if (!a->average && d->cases > MOST_ITEMS)
		fail(a->s->cx, MP_BAD_INPUT, "average over cases with --average target, or take some of them with --first N",
		     "%s has %" PRIu64 " cases; at most %d are compared with one another", d->name, d->cases, MOST_ITEMS);
	for (uint64_t i = 0; i < d->cases; i++) {
		const char *name = by_target ? target_name(arena, d, i, y, v) : a->average ? case_name(arena, d, i) : NULL;
		item[i] = name ? dict_add(&names, (Text){ name, (uint32_t)strlen(name) }) : (uint32_t)i;
		if (names.count > MOST_ITEMS)
			fail(a->s->cx, MP_BAD_INPUT, by_target ? "take some of the cases with --first N" : "write --average target",
			     "--average %s leaves more than %d items", a->average, MOST_ITEMS);
	}
	a->items = a->average ? names.count : (uint32_t)d->cases;
	a->item_name = NEW(arena, a->items + 1, const char *);
	for (uint32_t i = 0; i < a->items; i++)
		a->item_name[i] = a->average ? arena_copy(arena, names.text[i].s, names.text[i].len) : case_name(arena, d, i);
	return item;
}

/* The first set that holds the first case of an item. */
static void items_assign(Analysis *a, const uint32_t *item)
{
	const Data *d = a->s->data;
	a->item_set = NEW(&a->s->cx->scratch, a->items + 1, uint8_t);
	memset(a->item_set, 255, a->items);
	for (uint64_t i = 0; i < d->cases; i++) {
		if (a->item_set[item[i]] != 255)
			continue;
		uint32_t k = 0;
		while (k < a->sets && !a->set[k].holds[i])
			k++;
		a->item_set[item[i]] = (uint8_t)k;
	}
}

void items_make(Analysis *a)
{
	const Data *d = a->s->data;
	Arena *arena = &a->s->cx->scratch;
	const uint32_t *item = items_number(a);
	uint32_t units = a->units;
	a->activation = NEW(arena, d->cases * units, double);
	a->s->activations(a->s->user, a->group, LAST_TICK, a->activation);
	a->x = NEW(arena, (size_t)a->items * units, double);
	double *count = NEW(arena, a->items, double);
	for (uint64_t i = 0; i < d->cases; i++) {
		count[item[i]]++;
		for (uint32_t k = 0; k < units; k++)
			a->x[(size_t)item[i] * units + k] += a->activation[i * units + k];
	}
	for (uint32_t i = 0; i < a->items; i++)
		for (uint32_t k = 0; k < units; k++)
			a->x[(size_t)i * units + k] /= count[i];
	if (a->items < 2)
		fail(a->s->cx, MP_BAD_INPUT, "give more cases", "there are no two items to compare");
	items_assign(a, item);
}
