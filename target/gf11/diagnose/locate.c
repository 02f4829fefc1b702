/* SPDX-License-Identifier: MIT */
/* Locating the faulty part of the switch. In: paths that delivered their words, paths that did not. Out: parts that
 * explain the failures.
 *
 * A part on a path that always delivers is good. The other parts of a failed path are suspects. Few parts fail at
 * once, so the suspect on the most failed paths is taken first, and the failures it explains are removed (greedy
 * set cover). Suspects on the same failed paths are indistinguishable by these observations; a further path through
 * one of them and otherwise good parts distinguishes them. Where no such path exists (the only link of the only
 * port in use of a crossbar) they stay together, and no user of these ports can observe the difference. */
#include <string.h>

#include "gf11_diagnose.h"

enum { INPUT, MIDDLE, OUTPUT, STAGES };

/* ---- parts ---- */

uint32_t part_crossbar(const Switch *s, uint32_t stage, uint32_t x) { return s->ports + stage * s->n + x; }

uint32_t part_link(const Switch *s, uint32_t stage, uint32_t x, uint32_t y)
{
	return s->ports + STAGES * s->n + (stage * s->n + x) * s->n + y;
}

static uint32_t part_count(const Switch *s)
{
	return s->m->ring_only ? s->ports : part_link(s, MIDDLE, s->n - 1, s->n - 1) + 1;
}

uint32_t trip_parts(const Switch *s, Trip w, uint32_t part[TRIP_PARTS])
{
	part[0] = w.from;
	part[1] = w.to;
	if (s->m->ring_only)
		return 2;
	uint32_t i = w.from / s->n, o = w.to / s->n;
	part[2] = part_crossbar(s, INPUT, i);
	part[3] = part_crossbar(s, MIDDLE, w.middle);
	part[4] = part_crossbar(s, OUTPUT, o);
	part[5] = part_link(s, INPUT, i, w.middle);
	part[6] = part_link(s, MIDDLE, w.middle, o);
	return TRIP_PARTS;
}

/* Then its number is that of the port. */
static bool part_is_port(const Switch *s, uint32_t part) { return part < s->ports; }

/* Where `dead` keeps the part. */
static uint8_t *part_flag(const Dead *d, const Switch *s, uint32_t part)
{
	if (part < s->ports)
		return &d->port[part];
	part -= s->ports;
	if (part < STAGES * s->n)
		return &d->crossbar[part / s->n][part % s->n];
	part -= STAGES * s->n;
	return &d->link[part / (s->n * s->n)][part % (s->n * s->n)];
}

void part_kill(Dead *d, const Switch *s, uint32_t part) { *part_flag(d, s, part) = 1; }

bool part_dead(const Dead *d, const Switch *s, uint32_t part) { return *part_flag(d, s, part); }

void part_print(const Switch *s, uint32_t part, Buf *out)
{
	uint32_t n = s->n;
	if (part < s->ports) {
		buf_printf(out, "port:%u", part);
		return;
	}
	part -= s->ports;
	if (part < STAGES * n) {
		buf_printf(out, "crossbar:%s:%u", stage_names[part / n], part % n);
		return;
	}
	part -= STAGES * n;
	buf_printf(out, "link:%s:%u:%u", stage_names[part / (n * n)], part / n % n, part % n);
}

void suspects_print(const Switch *s, const Suspects *list, Buf *out)
{
	for (uint32_t i = 0; i < list->parts; i++) {
		buf_puts(out, i ? " or " : "");
		part_print(s, list->part[i], out);
	}
}

/* ---- evidence ---- */

Evidence *evidence_new(Ctx *cx, const Switch *s)
{
	Evidence *e = NEW(&cx->scratch, 1, Evidence);
	*e = (Evidence){ .cx = cx,
		             .s = s,
		             .good = NEW(&cx->scratch, part_count(s), uint8_t),
		             .stray = NEW(&cx->scratch, s->ports, uint8_t) };
	return e;
}

void evidence_good(Evidence *e, Trip w)
{
	uint32_t part[TRIP_PARTS], parts = trip_parts(e->s, w, part);
	for (uint32_t i = 0; i < parts; i++)
		e->good[part[i]] = 1;
}

void evidence_failed(Evidence *e, Trip w)
{
	if (e->failures == e->room) {
		uint32_t room = e->room ? 2 * e->room : 64;
		e->failed = arena_grow(&e->cx->scratch, e->failed, e->room, room, sizeof *e->failed);
		e->room = room;
	}
	e->failed[e->failures++] = w;
}

void evidence_stray(Evidence *e, uint32_t port) { e->stray[port] = 1; }

/* ---- explaining ---- */

typedef struct Explain {
	const Evidence *e;
	uint8_t *done;     /* [failures] explained */
	uint32_t *through; /* [parts] failures that are not, through each suspect */
} Explain;

/* A word that came out elsewhere names the port that lost it; then this failure says nothing of other parts. */
static bool suspect(const Evidence *e, uint32_t part, Trip w)
{
	if (e->stray[w.from])
		return part == w.from;
	return !e->good[part];
}

static bool lies_on(const Evidence *e, uint32_t part, Trip w)
{
	uint32_t on[TRIP_PARTS], parts = trip_parts(e->s, w, on);
	for (uint32_t i = 0; i < parts; i++)
		if (on[i] == part)
			return suspect(e, part, w);
	return false;
}

static void count_through(Explain *x)
{
	const Evidence *e = x->e;
	memset(x->through, 0, part_count(e->s) * sizeof *x->through);
	for (uint32_t f = 0; f < e->failures; f++) {
		uint32_t part[TRIP_PARTS], parts = trip_parts(e->s, e->failed[f], part);
		for (uint32_t i = 0; i < parts && !x->done[f]; i++)
			x->through[part[i]] += suspect(e, part[i], e->failed[f]);
	}
}

/* Do both lie on the same failures? */
static bool alike(const Explain *x, uint32_t a, uint32_t b)
{
	const Evidence *e = x->e;
	if (x->through[a] != x->through[b])
		return false;
	for (uint32_t f = 0; f < e->failures; f++)
		if (!x->done[f] && lies_on(e, a, e->failed[f]) != lies_on(e, b, e->failed[f]))
			return false;
	return true;
}

static Suspects take_best(Explain *x, uint32_t best)
{
	const Evidence *e = x->e;
	Suspects s = { .part = { best }, .parts = 1 };
	for (uint32_t part = 0; part < part_count(e->s) && s.parts < MOST_ALIKE; part++)
		if (part != best && x->through[part] && alike(x, best, part))
			s.part[s.parts++] = part;
	for (uint32_t f = 0; f < e->failures; f++)
		x->done[f] |= lies_on(e, best, e->failed[f]);
	return s;
}

/* A failed path all of whose parts are good fails now and then: where its words come from is to blame. */
static Suspects take_flaky(Explain *x, uint32_t failure)
{
	const Evidence *e = x->e;
	Suspects s = { .part = { e->failed[failure].from }, .parts = 1 };
	for (uint32_t f = 0; f < e->failures; f++)
		x->done[f] |= e->failed[f].from == e->failed[failure].from;
	return s;
}

uint32_t evidence_explain(const Evidence *e, Suspects **list)
{
	Arena *a = &e->cx->scratch;
	Explain x = { e, NEW(a, e->failures, uint8_t), NEW(a, part_count(e->s), uint32_t) };
	uint32_t count = 0;
	*list = NEW(a, e->failures, Suspects);
	for (;;) {
		uint32_t best = 0, failure = 0;
		count_through(&x);
		for (uint32_t part = 1; part < part_count(e->s); part++)
			best = x.through[part] > x.through[best] ? part : best;
		while (failure < e->failures && x.done[failure])
			failure++;
		if (failure == e->failures)
			return count;
		(*list)[count++] = x.through[best] ? take_best(&x, best) : take_flaky(&x, failure);
	}
}

/* ---- one more path ---- */

/* Paths from these ports by these middle crossbars to those ports: all of them go through a part. */
typedef struct Ways {
	uint32_t from, from_end, middle, middle_end, to, to_end;
} Ways;

static Ways ways_all(const Switch *s) { return (Ways){ 0, s->ports, 0, s->n, 0, s->ports }; }

static void ways_end(const Switch *s, uint32_t x, uint32_t *first, uint32_t *end)
{
	*first = x * s->n;
	*end = *first + s->n < s->ports ? *first + s->n : s->ports;
}

static Ways ways_through(const Switch *s, uint32_t part)
{
	Ways w = ways_all(s);
	uint32_t n = s->n, crossbar = part - s->ports, link = crossbar - STAGES * n;
	bool is_link = crossbar >= STAGES * n;
	int stage = is_link ? (int)(link / (n * n)) : (int)(crossbar / n);
	uint32_t x = is_link ? link / n % n : crossbar % n, y = link % n;
	if (stage == INPUT)
		ways_end(s, x, &w.from, &w.from_end);
	if (stage == OUTPUT || (is_link && stage == MIDDLE))
		ways_end(s, is_link ? y : x, &w.to, &w.to_end);
	if (stage == MIDDLE || is_link) {
		w.middle = is_link && stage == INPUT ? y : x;
		w.middle_end = w.middle + 1;
	}
	return w;
}

static bool answers(const Evidence *e, uint32_t part, Trip w)
{
	uint32_t on[TRIP_PARTS], parts = trip_parts(e->s, w, on);
	for (uint32_t i = 0; i < parts; i++)
		if (on[i] != part && !e->good[on[i]])
			return false;
	return true;
}

static bool ways_search(const Evidence *e, uint32_t part, const uint8_t *tested, const Ways *in, Trip *w)
{
	for (uint32_t from = in->from; from < in->from_end; from++) {
		if (!tested[from] || (from != part && !e->good[from]))
			continue;
		for (uint32_t middle = in->middle; middle < in->middle_end; middle++) {
			for (uint32_t to = in->to; to < in->to_end; to++) {
				*w = (Trip){ (uint16_t)from, (uint16_t)middle, (uint16_t)to };
				if (tested[to] && answers(e, part, *w))
					return true;
			}
		}
	}
	return false;
}

bool evidence_question(const Evidence *e, uint32_t part, const uint8_t *tested, Trip *w)
{
	if (e->s->m->ring_only) /* its paths are what they are */
		return false;
	if (!part_is_port(e->s, part)) {
		Ways ways = ways_through(e->s, part);
		return ways_search(e, part, tested, &ways, w);
	}
	Ways sends = ways_all(e->s), receives = sends;
	sends.from = receives.to = part;
	sends.from_end = receives.to_end = part + 1;
	return ways_search(e, part, tested, &sends, w) || ways_search(e, part, tested, &receives, w);
}
