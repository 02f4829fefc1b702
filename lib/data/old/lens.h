/* SPDX-License-Identifier: MIT */
/* Example sets of LENS between their readers (lens_ex.c for text, lens_bex.c for binary files) and data (lens.c).
 *
 * An example is some events, each a case here; an example of several is a sequence.  Inputs and targets of an event are
 * a default value and then ranges, which set units of a group, or of all input (target) groups counted together.  How
 * many units there are is known from option `groups`, or else from the largest number that the file uses.
 * A header of its own: its types concern these three files only. */
#ifndef LENS_H
#define LENS_H

#include "old.h"

enum { LENS_INPUT, LENS_TARGET, LENS_SIDES };

typedef struct LensRange {
	Text group;         /* empty: units are counted over all groups of its side */
	bool all;           /* every unit gets `value` */
	bool listed;        /* units number[at ..] get `value`, else `first` and those after it get number[at ..] */
	uint32_t first;     /* unit of the first number, if not listed */
	uint64_t at, count; /* in LensSet.number */
	float value;        /* NaN: no target */
	Loc where;
} LensRange;

typedef struct LensEvent {
	float rest[LENS_SIDES];   /* value of units that no range sets */
	float active[LENS_SIDES]; /* of units listed without a value */
	uint64_t range[LENS_SIDES], ranges[LENS_SIDES];
	bool given[LENS_SIDES];
} LensEvent;

typedef struct LensExample {
	Text name;
	float freq;
	uint64_t event, events;
} LensExample;

typedef struct LensSet {
	Ctx *cx;
	const Src *src;
	const DataOptions *opt;
	float *number;
	uint64_t numbers, number_cap;
	LensRange *range;
	uint64_t ranges, range_cap;
	LensEvent *event;
	uint64_t events, event_cap;
	LensExample *example;
	uint64_t examples, example_cap;
	bool timed; /* min, max or grace were given, which was noted */
} LensSet;

enum { LENS_EVENTS = 1000000 }; /* of an example */

LensExample *lens_example(LensSet *s, Loc at); /* the next one, without events */
/* count events to the last example, as `like`. */
void lens_events(LensSet *s, uint64_t count, const LensEvent *like, Loc at);
LensRange *lens_range(LensSet *s, Loc at);
void lens_number(LensSet *s, float v); /* to the last range */
/* Ranges from `first` on are those of this side of an event of the last example. */
void lens_give(LensSet *s, uint64_t event, int side, uint64_t first, Loc at);
void lens_time(LensSet *s, Loc at);      /* notes that times are left out */
void lens_procedure(LensSet *s, Loc at); /* fails, or notes if lossy, that there is a Tcl procedure */
Data *lens_data(LensSet *s);

#endif
