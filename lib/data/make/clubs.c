/* SPDX-License-Identifier: MIT */
/* Members of two clubs (after the Jets and Sharks of McClelland 1981).  A member has a name and five properties, each
 * mostly that of the club.  In: a seed.  Out: cues and what they recall, all that is known of the member.
 *
 * make_clubs has two cues for each member, the name alone and all properties.  make_club_probes has others, which a
 * network completes that was trained on those: all properties but one, with the targets of that member, and a club
 * alone, whose targets are the most common properties of its members; names have no target there. */
#include <math.h>
#include <string.h>

#include "make.h"

enum { CLUBS = 2, MEMBERS = 24, PROPERTIES = 5, TYPICAL_OF_8 = 7 };
static const char *const names[MEMBERS] = { "Abe",  "Bob", "Cal", "Dan", "Eli", "Fay", "Gus", "Hal",
	                                        "Ian",  "Jay", "Kim", "Lou", "Max", "Ned", "Oz",  "Pam",
	                                        "Quin", "Rex", "Sam", "Tom", "Una", "Val", "Wes", "Zoe" };
/* Club (Herons, Otters), age (20s, 30s, 40s), school (primary, secondary, college), status (single, married,
 * divorced), work (sailor, cook, clerk). */
static const uint32_t values[PROPERTIES] = { CLUBS, 3, 3, 3, 3 };
static const uint32_t typical[CLUBS][PROPERTIES] = { { 0, 0, 0, 0, 0 }, { 1, 1, 1, 1, 1 } };
enum { UNITS = MEMBERS + CLUBS + 4 * 3 };

typedef struct Club {
	uint32_t value[MEMBERS][PROPERTIES];
} Club;

static uint32_t unit_of(uint32_t property, uint32_t value)
{
	uint32_t unit = MEMBERS + value;
	for (uint32_t p = 0; p < property; p++)
		unit += values[p];
	return unit;
}

/* Different from all members before in at least two properties. */
static bool distinct(const Club *c, uint32_t member)
{
	for (uint32_t m = 0; m < member; m++) {
		uint32_t same = 0;
		for (uint32_t p = 0; p < PROPERTIES; p++)
			same += c->value[m][p] == c->value[member][p];
		if (same > PROPERTIES - 2)
			return false;
	}
	return true;
}

static void make_members(Club *c, Request *q)
{
	enum { TRIES = 10000 };
	for (uint32_t m = 0; m < MEMBERS; m++) {
		uint32_t club = m % CLUBS, tries = 0;
		do {
			for (uint32_t p = 0; p < PROPERTIES; p++) {
				bool as_club = p == 0 || draw(q, 8) < TYPICAL_OF_8;
				c->value[m][p] = as_club ? typical[club][p] : draw(q, values[p]);
			}
		} while (!distinct(c, m) && ++tries < TRIES);
	}
}

/* The value that most members of a club have. */
static uint32_t commonest(const Club *c, uint32_t club, uint32_t property)
{
	uint32_t count[3] = { 0 }, best = 0;
	for (uint32_t m = 0; m < MEMBERS; m++)
		count[c->value[m][property]] += c->value[m][0] == club;
	for (uint32_t v = 1; v < values[property]; v++)
		best = count[v] > count[best] ? v : best;
	return best;
}

static void put_member(const Club *c, uint32_t m, float *row)
{
	row[m] = 1;
	for (uint32_t p = 0; p < PROPERTIES; p++)
		row[unit_of(p, c->value[m][p])] = 1;
}

static Text put_name(Ctx *cx, const char *fmt, const char *name, uint32_t n)
{
	Buf b = { .arena = &cx->keep };
	buf_printf(&b, fmt, name, n);
	return (Text){ b.s, (uint32_t)b.len };
}

Data *make_clubs(Ctx *cx, Request *q)
{
	float *x, *y;
	Club c;
	Data *d = set_new(cx, 2 * MEMBERS, UNITS, UNITS, &x, &y);
	Text *name = NEW(&cx->keep, d->cases, Text);
	make_members(&c, q);
	for (uint32_t i = 0; i < 2 * MEMBERS; i++, x += UNITS, y += UNITS) {
		uint32_t m = i / 2;
		put_member(&c, m, y);
		if (i % 2) {
			memcpy(x, y, UNITS * sizeof *x);
			x[m] = 0;
		} else {
			x[m] = 1;
		}
		name[i] = put_name(cx, i % 2 ? "properties.%s" : "name.%s", names[m], 0);
	}
	d->names = name;
	return d;
}

Data *make_club_probes(Ctx *cx, Request *q)
{
	static const char *const club_names[CLUBS] = { "Herons", "Otters" };
	float *x, *y;
	Club c;
	Data *d = set_new(cx, MEMBERS * PROPERTIES + CLUBS, UNITS, UNITS, &x, &y);
	Text *name = NEW(&cx->keep, d->cases, Text);
	make_members(&c, q);
	for (uint32_t i = 0; i < MEMBERS * PROPERTIES; i++, x += UNITS, y += UNITS) {
		uint32_t m = i / PROPERTIES, hidden = i % PROPERTIES;
		put_member(&c, m, y);
		memcpy(x, y, UNITS * sizeof *x);
		x[m] = x[unit_of(hidden, c.value[m][hidden])] = 0;
		name[i] = put_name(cx, "without-%2$u.%1$s", names[m], hidden + 1);
	}
	for (uint32_t club = 0; club < CLUBS; club++, x += UNITS, y += UNITS) {
		x[unit_of(0, club)] = 1;
		for (uint32_t m = 0; m < MEMBERS; m++)
			y[m] = NAN;
		for (uint32_t p = 0; p < PROPERTIES; p++)
			y[unit_of(p, commonest(&c, club, p))] = 1;
		name[MEMBERS * PROPERTIES + club] = put_name(cx, "club.%s", club_names[club], 0);
	}
	d->names = name;
	return d;
}
