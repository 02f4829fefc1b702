/* SPDX-License-Identifier: MIT */
/* What is true of eight living things (after Rumelhart 1990, Rogers and McClelland 2004).  Out: a case for each item
 * and relation; inputs are these two, targets all attributes that the relation leads to.  A case is named by its item.
 *
 * Attributes hold for all, for plants or animals, for one of four kinds, or for a single item: they covary.  The last
 * two hold for two items of different kinds, as often as what belongs to a kind, but with nothing else. */
#include <string.h>

#include "make.h"

enum { ITEMS = 8, RELATIONS = 4 };
static const char *const items[ITEMS] = { "elm", "fir", "tulip", "poppy", "heron", "finch", "carp", "trout" };
enum { ISA, IS, CAN, HAS };
enum { ALL = 0xff, PLANT = 0x0f, TREE = 0x03, FLOWER = 0x0c, ANIMAL = 0xf0, BIRD = 0x30, FISH = 0xc0 };
static const struct {
	uint8_t relation, of; /* bit i: item i */
} attributes[] = {
	/* living thing, plant, animal, tree, flower, bird, fish, and a name each */
	{ ISA, ALL },
	{ ISA, PLANT },
	{ ISA, ANIMAL },
	{ ISA, TREE },
	{ ISA, FLOWER },
	{ ISA, BIRD },
	{ ISA, FISH },
	{ ISA, 1 << 0 },
	{ ISA, 1 << 1 },
	{ ISA, 1 << 2 },
	{ ISA, 1 << 3 },
	{ ISA, 1 << 4 },
	{ ISA, 1 << 5 },
	{ ISA, 1 << 6 },
	{ ISA, 1 << 7 },
	/* tall, sweet-smelling; evergreen, early, grey, small, slow, spotted */
	{ IS, TREE },
	{ IS, FLOWER },
	{ IS, 1 << 1 },
	{ IS, 1 << 2 },
	{ IS, 1 << 4 },
	{ IS, 1 << 5 },
	{ IS, 1 << 6 },
	{ IS, 1 << 7 },
	/* grow; make food of light; bloom; move, eat, see; fly, swim; wade */
	{ CAN, ALL },
	{ CAN, PLANT },
	{ CAN, FLOWER },
	{ CAN, ANIMAL },
	{ CAN, ANIMAL },
	{ CAN, ANIMAL },
	{ CAN, BIRD },
	{ CAN, FISH },
	{ CAN, 1 << 4 },
	/* roots, leaves, stem; bark; petals; skin, eyes; feathers, wings; scales, gills */
	{ HAS, PLANT },
	{ HAS, PLANT },
	{ HAS, PLANT },
	{ HAS, TREE },
	{ HAS, FLOWER },
	{ HAS, ANIMAL },
	{ HAS, ANIMAL },
	{ HAS, BIRD },
	{ HAS, BIRD },
	{ HAS, FISH },
	{ HAS, FISH },
	/* red (poppy, finch), old (elm, carp) */
	{ IS, 1 << 3 | 1 << 5 },
	{ IS, 1 << 0 | 1 << 6 },
};

Data *make_semantics(Ctx *cx, Request *q)
{
	enum { TARGETS = COUNT(attributes), INPUTS = ITEMS + RELATIONS };
	float *x, *y;
	Data *d = set_new(cx, ITEMS * RELATIONS, INPUTS, TARGETS, &x, &y);
	Text *names = NEW(&cx->keep, d->cases, Text);
	(void)q;
	for (uint32_t i = 0; i < ITEMS * RELATIONS; i++, x += INPUTS, y += TARGETS) {
		uint32_t item = i / RELATIONS, relation = i % RELATIONS;
		x[item] = x[ITEMS + relation] = 1;
		for (uint32_t a = 0; a < TARGETS; a++)
			y[a] = attributes[a].relation == relation && (attributes[a].of >> item & 1);
		names[i] = (Text){ items[item], (uint32_t)strlen(items[item]) };
	}
	d->names = names;
	return d;
}
