/* SPDX-License-Identifier: MIT */
/* Binary example files of LENS (.bex).  Whole numbers and floats are big-endian, 4 bytes; a text ends with NUL; a flag
 * is a byte:
 *
 *     0xAAAAAAAA, 4, text proc, 7 floats, examples
 *     example: text name, text proc, float freq, events, headers, header.., inputs, inputs.., targets, targets..
 *     header:  event, text proc, 7 floats: max min grace defI actI defT actT
 *     inputs:  event list, ranges, flag shared; if 1, an event list: those whose targets these are
 *     targets: event list, ranges
 *     event list: count, events; a negative one ends a span from the one before
 *     ranges:  count; each: text group, units, flag sparse; sparse: float value, units (the first -1: all; a negative
 *              one ends a span); dense: first unit, floats */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lens.h"

static const unsigned char magic[] = { 0xaa, 0xaa, 0xaa, 0xaa };

bool looks_lens_binary(const Src *s) { return s->len >= 8 && memcmp(s->text, magic, sizeof magic) == 0; }

typedef struct Reader {
	Ctx *cx;
	const Src *src;
	size_t at;
	LensSet set;
	LensEvent usual;
} Reader;

static Loc here(const Reader *r) { return (Loc){ r->src, r->at }; }

static const unsigned char *take(Reader *r, size_t n, const char *what)
{
	if (r->src->len - r->at < n)
		fail_at(r->cx, here(r), "check that the file is complete", "the file ends inside %s", what);
	const unsigned char *p = (const unsigned char *)r->src->text + r->at;
	r->at += n;
	return p;
}

static uint32_t take_word(Reader *r, const char *what)
{
	const unsigned char *p = take(r, 4, what);
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int32_t take_int(Reader *r, const char *what)
{
	uint32_t w = take_word(r, what);
	int32_t v;
	memcpy(&v, &w, sizeof v);
	return v;
}

static float take_float(Reader *r, const char *what)
{
	uint32_t w = take_word(r, what);
	float v;
	memcpy(&v, &w, sizeof v);
	return v;
}

/* How many things follow, of `least` bytes each. */
static uint32_t take_count(Reader *r, const char *what, size_t least)
{
	Loc at = here(r);
	int32_t n = take_int(r, what);
	if (n < 0 || (uint64_t)n > (r->src->len - r->at) / least)
		fail_at(r->cx, at, "check that the file is complete", "there cannot be %" PRId32 " %s", n, what);
	return (uint32_t)n;
}

static Text take_text(Reader *r, const char *what)
{
	const char *from = r->src->text + r->at, *end = memchr(from, 0, r->src->len - r->at);
	Loc at = here(r);
	if (!end)
		fail_at(r->cx, at, "check that the file is complete", "the file ends inside %s", what);
	Text t = { from, (uint32_t)min_u64((size_t)(end - from), UINT32_MAX) };
	name_check(r->cx, at, what, t);
	r->at += (size_t)(end - from) + 1;
	return t;
}

static void take_procedure(Reader *r)
{
	Loc at = here(r);
	if (take_text(r, "a procedure").len)
		lens_procedure(&r->set, at);
}

/* max min grace defI actI defT actT */
static void take_fields(Reader *r, LensEvent *e)
{
	for (int i = 0; i < 3; i++)
		take_float(r, "times");
	for (int i = 0; i < LENS_SIDES; i++) {
		e->rest[i] = take_float(r, "default values");
		e->active[i] = take_float(r, "default values");
	}
}

typedef struct EventList {
	uint32_t *event;
	uint64_t count;
} EventList;

static EventList take_events(Reader *r)
{
	const LensExample *e = &r->set.example[r->set.examples - 1];
	uint32_t n = take_count(r, "entries of an event list", 4);
	EventList l = { NEW(&r->cx->scratch, e->events, uint32_t), 0 };
	for (uint32_t i = 0; i < n; i++) {
		Loc at = here(r);
		int64_t v = take_int(r, "an event list"), from = v, to = v;
		if (v < 0) {
			from = l.count ? (int64_t)l.event[l.count - 1] + 1 : 0;
			to = -v;
		}
		if (from > to || (uint64_t)to >= e->events || (uint64_t)(to - from) >= e->events - l.count)
			fail_at(r->cx, at, "events are numbered from 0, and each is named once",
			        "the example has %" PRIu64 " events; event %" PRId64 " is named", e->events, to);
		for (; from <= to; from++)
			l.event[l.count++] = (uint32_t)from;
	}
	return l;
}

static void take_sparse(Reader *r, LensRange *range, uint32_t units)
{
	int64_t last = -1;
	range->listed = true;
	range->value = take_float(r, "a value");
	for (uint32_t i = 0; i < units; i++) {
		Loc at = here(r);
		int64_t v = take_int(r, "units"), from = v, to = v;
		if (v == -1 && i == 0) {
			range->all = true;
			continue;
		}
		if (v < 0) {
			from = last + 1;
			to = -v;
		}
		if (from > to || to >= MAX_UNITS || r->set.numbers + (uint64_t)(to - from) > 1u << 25)
			fail_at(r->cx, at, "units are numbered from 0", "these units cannot be");
		for (last = to; from <= to; from++) {
			lens_number(&r->set, (float)from);
			range = &r->set.range[r->set.ranges - 1];
		}
	}
}

static void take_ranges(Reader *r)
{
	uint32_t n = take_count(r, "ranges", 6);
	for (uint32_t i = 0; i < n; i++) {
		LensRange *range = lens_range(&r->set, here(r));
		range->group = take_text(r, "the name of a group");
		uint32_t units = take_count(r, "units of a range", 4);
		bool sparse = *take(r, 1, "a range") != 0;
		if (sparse) {
			take_sparse(r, range, units);
			continue;
		}
		Loc at = here(r);
		int32_t first = take_int(r, "a range");
		if (first < 0 || first >= (int32_t)MAX_UNITS)
			fail_at(r->cx, at, "units are numbered from 0", "unit %" PRId32 " is named", first);
		range->first = (uint32_t)first;
		for (uint32_t k = 0; k < units; k++)
			lens_number(&r->set, take_float(r, "values"));
	}
}

static void take_side(Reader *r, int side)
{
	uint32_t n = take_count(r, side == LENS_INPUT ? "sets of inputs" : "sets of targets", 8);
	for (uint32_t i = 0; i < n; i++) {
		Loc at = here(r);
		EventList events = take_events(r);
		uint64_t first = r->set.ranges;
		take_ranges(r);
		for (uint64_t k = 0; k < events.count; k++)
			lens_give(&r->set, events.event[k], side, first, at);
		if (side == LENS_TARGET || !*take(r, 1, "a flag"))
			continue;
		events = take_events(r);
		for (uint64_t k = 0; k < events.count; k++)
			lens_give(&r->set, events.event[k], LENS_TARGET, first, at);
	}
}

static void take_example(Reader *r)
{
	LensExample *e = lens_example(&r->set, here(r));
	e->name = take_text(r, "the name of an example");
	take_procedure(r);
	Loc at = here(r);
	e->freq = take_float(r, "a frequency");
	if (!(e->freq >= 0) || isinf(e->freq))
		fail_at(r->cx, at, "frequencies are 0 or more", "a frequency is not a number that can be");
	at = here(r);
	int32_t events = take_int(r, "the number of events");
	lens_events(&r->set, events < 0 ? 0 : (uint64_t)events, &r->usual, at);
	uint32_t headers = take_count(r, "event headers", 33);
	for (uint32_t i = 0; i < headers; i++) {
		at = here(r);
		int32_t event = take_int(r, "an event header");
		if (event < 0 || event >= events)
			fail_at(r->cx, at, "events are numbered from 0", "event %" PRId32 " is named", event);
		take_procedure(r);
		take_fields(r, &r->set.event[r->set.example[r->set.examples - 1].event + (uint32_t)event]);
	}
	take_side(r, LENS_INPUT);
	take_side(r, LENS_TARGET);
}

Data *read_lens_binary(Ctx *cx, const Src *s, const DataOptions *opt)
{
	Reader *r = NEW(&cx->scratch, 1, Reader);
	Src *own = NEW(&cx->keep, 1, Src);
	*own = *s;
	own->binary = true;
	*r = (Reader){ .cx = cx, .src = own, .set = { .cx = cx, .src = own, .opt = opt } };
	if (!looks_lens_binary(s))
		fail_at(cx, here(r), "give a binary example file (.bex) of LENS", "the file does not begin with 0xAAAAAAAA");
	r->at = sizeof magic;
	uint32_t size = take_word(r, "the header");
	if (size != 4)
		fail_at(cx, (Loc){ own, sizeof magic }, "save it with a LENS of single precision",
		        "its numbers have %" PRIu32 " bytes", size);
	take_procedure(r);
	take_fields(r, &r->usual);
	uint32_t examples = take_count(r, "examples", 22);
	for (uint32_t i = 0; i < examples; i++)
		take_example(r);
	if (r->at < s->len)
		fail_at(cx, here(r), "check that the file was copied as binary", "%zu bytes follow the last example",
		        s->len - r->at);
	return lens_data(&r->set);
}
