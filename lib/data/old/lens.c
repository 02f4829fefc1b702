/* SPDX-License-Identifier: MIT */
/* Example sets of LENS to data.  In: examples, events and ranges as a reader found them.  Out: a case for each
 * event. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lens.h"

/* ---- what the readers add ------------------------------------------------------------------------ */

LensExample *lens_example(LensSet *s, Loc at)
{
	if (s->examples >= LENS_EVENTS * 4ull)
		fail_at(s->cx, at, "cut the file into smaller ones", "there are more than 4,000,000 examples");
	s->example = arena_reserve(&s->cx->scratch, s->example, s->examples, &s->example_cap, sizeof *s->example);
	LensExample *e = &s->example[s->examples++];
	*e = (LensExample){ .freq = 1, .event = s->events };
	return e;
}

void lens_events(LensSet *s, uint64_t count, const LensEvent *like, Loc at)
{
	LensExample *e = &s->example[s->examples - 1];
	if (count == 0 || count > LENS_EVENTS || s->events + count > LENS_EVENTS * 4ull)
		fail_at(s->cx, at, "an example has from 1 to 1,000,000 events, a file 4,000,000",
		        "%" PRIu64 " events cannot be read here", count);
	for (uint64_t i = 0; i < count; i++) {
		s->event = arena_reserve(&s->cx->scratch, s->event, s->events, &s->event_cap, sizeof *s->event);
		s->event[s->events++] = *like;
	}
	e->events += count;
}

LensRange *lens_range(LensSet *s, Loc at)
{
	s->range = arena_reserve(&s->cx->scratch, s->range, s->ranges, &s->range_cap, sizeof *s->range);
	LensRange *r = &s->range[s->ranges++];
	*r = (LensRange){ .at = s->numbers, .where = at };
	return r;
}

void lens_number(LensSet *s, float v)
{
	s->number = arena_reserve(&s->cx->scratch, s->number, s->numbers, &s->number_cap, sizeof *s->number);
	s->number[s->numbers++] = v;
	s->range[s->ranges - 1].count++;
}

void lens_give(LensSet *s, uint64_t event, int side, uint64_t first, Loc at)
{
	LensExample *e = &s->example[s->examples - 1];
	const char *what = side == LENS_INPUT ? "inputs" : "targets";
	if (event >= e->events)
		fail_at(s->cx, at, "write the number of events before them",
		        "the example has %" PRIu64 " events; these %s are those of one more", e->events, what);
	LensEvent *v = &s->event[e->event + event];
	if (v->given[side])
		fail_at(s->cx, at, "leave one of them out", "event %" PRIu64 " has its %s already", event, what);
	v->given[side] = true;
	v->range[side] = first;
	v->ranges[side] = s->ranges - first;
}

void lens_time(LensSet *s, Loc at)
{
	if (!s->timed)
		note_at(s->cx, at, NULL, "times of events (min, max, grace) are left out: an event is one case");
	s->timed = true;
}

void lens_procedure(LensSet *s, Loc at)
{
	static const char what[] = "a Tcl procedure, which cannot be run here";
	if (!s->opt || !s->opt->lossy)
		fail_at(s->cx, at, "import it with --lossy to leave that out", "the examples hold %s", what);
	note_at(s->cx, at, NULL, "left out: %s", what);
}

/* ---- units -------------------------------------------------------------------------------------- */

typedef struct LensGroup {
	Text name;
	uint32_t first, size;
} LensGroup;
typedef struct Side { /* groups of the network, if they are known */
	LensGroup *group;
	uint32_t groups;
	uint32_t units;
} Side;

/* "a:3,b:2>c:4": input groups, then target groups. */
static bool groups_read(Ctx *cx, const char *text, Side side[LENS_SIDES])
{
	static const char remedy[] = "write input groups, > and target groups: --groups 'letters:26,word:4>sound:10'";
	if (!text)
		return false;
	for (int i = 0; i < LENS_SIDES; i++)
		side[i].group = NEW(&cx->scratch, strlen(text) + 1, LensGroup);
	for (int i = 0; *text;) {
		while (*text == ' ')
			text++;
		size_t n = strcspn(text, ":,>"), digits = text[n] == ':' ? strspn(text + n + 1, "0123456789") : 0;
		if (!n || !digits || digits > 8)
			fail(cx, MP_BAD_INPUT, remedy, "--groups: a group is written NAME:SIZE");
		LensGroup *g = &side[i].group[side[i].groups++];
		*g = (LensGroup){ .name = { text, (uint32_t)n }, .first = side[i].units };
		for (size_t k = 0; k < digits; k++)
			g->size = g->size * 10 + (uint32_t)(text[n + 1 + k] - '0');
		if (!g->size || g->size > MAX_UNITS - side[i].units)
			fail(cx, MP_BAD_INPUT, remedy, "--groups: a network has from 1 to %u units", MAX_UNITS);
		side[i].units += g->size;
		text += n + 1 + digits;
		while (*text == ' ')
			text++;
		if (*text == '>' && i == 0)
			i = 1;
		else if (*text && *text != ',')
			fail(cx, MP_BAD_INPUT, remedy, "--groups: '%.40s' is not understood", text);
		text += *text != '\0';
	}
	if (!side[LENS_INPUT].units)
		fail(cx, MP_BAD_INPUT, remedy, "--groups names no input group");
	return true;
}

bool groups_units(Ctx *cx, const char *groups, uint32_t units[LENS_SIDES])
{
	Side side[LENS_SIDES] = { 0 };
	if (!groups_read(cx, groups, side))
		return false;
	for (int i = 0; i < LENS_SIDES; i++)
		units[i] = side[i].units;
	return true;
}

/* Units that a range is about, in its side; false: the network has no such group. */
static bool range_units(const Ctx *cx, const Side *side, const LensRange *r, uint32_t *first, uint32_t *count)
{
	*first = 0;
	*count = side->units;
	if (!r->group.len)
		return true;
	const char *name = name_made((Arena *)&cx->scratch, r->group);
	for (uint32_t i = 0; i < side->groups; i++) {
		if (!text_is(side->group[i].name, name))
			continue;
		*first = side->group[i].first;
		*count = side->group[i].size;
		return true;
	}
	return false;
}

static uint64_t range_largest(const LensSet *s, const LensRange *r)
{
	uint64_t largest = 0;
	if (!r->listed)
		return r->count ? r->first + r->count : 0;
	for (uint64_t i = 0; i < r->count; i++)
		largest = max_u64(largest, (uint64_t)s->number[r->at + i] + 1);
	return largest;
}

/* Without groups: as many as the largest number of a unit says. */
static uint32_t units_used(LensSet *s, int side)
{
	uint64_t units = 0;
	for (uint64_t i = 0; i < s->events; i++) {
		const LensEvent *e = &s->event[i];
		for (uint64_t k = 0; k < e->ranges[side]; k++) {
			const LensRange *r = &s->range[e->range[side] + k];
			if (r->group.len)
				fail_at(s->cx, r->where, "name the network first, or give --groups 'a:3,b:2>c:4'",
				        "how large group '%s' is, and where it stands, only a network can tell",
				        text_shown(s->cx, r->group));
			units = max_u64(units, range_largest(s, r));
		}
	}
	if (units > MAX_UNITS)
		fail_at(s->cx, (Loc){ s->src, 0 }, "a network has fewer units", "unit %" PRIu64 " is named", units - 1);
	return (uint32_t)units;
}

/* ---- cases -------------------------------------------------------------------------------------- */

static void set_range(LensSet *s, const Side *side, const LensRange *r, int which, float *row)
{
	uint32_t first, count;
	if (!range_units(s->cx, side, r, &first, &count))
		return; /* as LENS does: the examples may be for several networks */
	if (range_largest(s, r) > count)
		fail_at(s->cx, r->where, "units are numbered from 0",
		        "unit %" PRIu64 " is named, but there are %" PRIu32 " %s units here", range_largest(s, r) - 1, count,
		        which == LENS_INPUT ? "input" : "target");
	row += first;
	for (uint32_t i = 0; r->all && i < count; i++)
		row[i] = r->value;
	for (uint64_t i = 0; i < r->count; i++)
		if (r->listed)
			row[(uint32_t)s->number[r->at + i]] = r->value;
		else
			row[r->first + i] = s->number[r->at + i];
}

static void set_row(LensSet *s, const Side *side, const LensEvent *e, int which, float *row)
{
	for (uint32_t i = 0; i < side->units; i++)
		row[i] = e->rest[which];
	for (uint64_t k = 0; k < e->ranges[which]; k++)
		set_range(s, side, &s->range[e->range[which] + k], which, row);
}

static void check_inputs(LensSet *s, const LensEvent *e, const float *row, uint32_t units)
{
	for (uint32_t i = 0; i < units; i++)
		if (!isfinite(row[i]))
			fail_at(s->cx, e->ranges[0] ? s->range[e->range[0]].where : (Loc){ s->src, 0 },
			        "give every input a value, or cut the network where that unit computes its own",
			        "input %" PRIu32 " has no value: LENS computes it from the unit's links", i);
}

static void give_names(LensSet *s, Data *d)
{
	bool any = false;
	for (uint64_t i = 0; i < s->examples; i++)
		any = any || s->example[i].name.len;
	if (!any)
		return;
	Text *name = NEW(&s->cx->keep, d->cases, Text);
	for (uint64_t i = 0; i < s->examples; i++) {
		const LensExample *e = &s->example[i];
		char *own_name = arena_copy(&s->cx->keep, e->name.s, e->name.len);
		for (uint32_t k = 0; k < e->name.len; k++) /* a name may span lines */
			own_name[k] = strchr("\t\r\n", own_name[k]) ? ' ' : own_name[k];
		Text own = { own_name, e->name.len };
		for (uint64_t k = 0; k < e->events; k++)
			name[e->event + k] = own;
	}
	d->names = name;
}

/* Examples of several events are sequences; frequencies become weights. */
static void give_examples(LensSet *s, Data *d)
{
	bool several = false, weighted = false;
	for (uint64_t i = 0; i < s->examples; i++) {
		several = several || s->example[i].events > 1;
		weighted = weighted || s->example[i].freq != 1;
	}
	if (several) {
		uint64_t *seq = NEW(&s->cx->keep, s->examples + 1, uint64_t);
		for (uint64_t i = 0; i < s->examples; i++)
			seq[i] = s->example[i].event;
		seq[s->examples] = d->cases;
		d->seq = seq;
		d->sequences = s->examples;
	}
	if (!weighted)
		return;
	note_at(s->cx, (Loc){ s->src, 0 }, NULL,
	        "frequencies became case weights, as under pseudoExampleFreq; LENS ignores them unless told otherwise");
	float *weight = NEW(&s->cx->keep, d->cases, float);
	for (uint64_t i = 0; i < s->examples; i++)
		for (uint64_t k = 0; k < s->example[i].events; k++)
			weight[s->example[i].event + k] = s->example[i].freq;
	d->weight = weight;
}

Data *lens_data(LensSet *s)
{
	Ctx *cx = s->cx;
	Side side[LENS_SIDES] = { 0 };
	Loc whole = { s->src, 0 };
	if (!groups_read(cx, s->opt ? s->opt->groups : NULL, side))
		for (int i = 0; i < LENS_SIDES; i++)
			side[i].units = units_used(s, i);
	uint64_t wide = (uint64_t)side[0].units + side[1].units;
	if (wide && s->events > (1ull << 27) / wide)
		fail_at(cx, whole, "cut the file into smaller ones", "%" PRIu64 " events of %" PRIu64 " units are too many",
		        s->events, wide);
	Data *d = NEW(&cx->keep, 1, Data);
	d->name = arena_copy(&cx->keep, s->src->name, strlen(s->src->name));
	d->cases = s->events;
	d->inputs = side[LENS_INPUT].units;
	d->targets = side[LENS_TARGET].units;
	d->x_type = d->y_type = T_F32;
	float *x = NEW(&cx->keep, d->cases * d->inputs, float), *y = NEW(&cx->keep, d->cases * d->targets, float);
	for (uint64_t i = 0; i < s->events; i++) {
		set_row(s, &side[LENS_INPUT], &s->event[i], LENS_INPUT, x + i * d->inputs);
		check_inputs(s, &s->event[i], x + i * d->inputs, d->inputs);
		set_row(s, &side[LENS_TARGET], &s->event[i], LENS_TARGET, y + i * d->targets);
	}
	d->x = x;
	d->y = d->targets ? y : NULL;
	give_names(s, d);
	give_examples(s, d);
	if (s->opt && s->opt->unlabelled)
		d->targets = 0;
	data_count_bytes(d);
	data_check(cx, d, whole);
	data_pack(cx, d);
	data_truncate(cx, d, s->opt ? s->opt->first : 0);
	return d;
}
