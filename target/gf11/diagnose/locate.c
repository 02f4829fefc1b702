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
	e->failed = list_more(&e->cx->scratch, e->failed, e->failures, &e->capacity, sizeof *e->failed);
	e->failed[e->failures++] = w;
}

void evidence_stray(Evidence *e, uint32_t port) { e->stray[port] = 1; }

/* ---- explaining ---- */

typedef struct Explain {
	const Evidence *e;
	uint8_t *done;     /* [failures] explained */
	uint32_t *through; /* [parts] unexplained failures through each suspect */
} Explain;

/* A misrouted word identifies its sender; then this failure does not implicate other parts. */
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

/* Are both on the same failed paths? */
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

/* A failed path of good parts fails intermittently: the sending port is the suspect. */
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
		memset(x.through, 0, part_count(e->s) * sizeof *x.through);
		for (uint32_t f = 0; f < e->failures; f++) {
			uint32_t part[TRIP_PARTS], parts = trip_parts(e->s, e->failed[f], part);
			for (uint32_t i = 0; i < parts && !x.done[f]; i++)
				x.through[part[i]] += suspect(e, part[i], e->failed[f]);
		}
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

/* Ranges of senders, middle crossbars and receivers: all paths through one part. */
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

bool evidence_path(const Evidence *e, uint32_t part, const uint8_t *tested, Trip *w)
{
	if (e->s->m->ring_only) /* its paths cannot be chosen */
		return false;
	if (part >= e->s->ports) {
		Ways ways = ways_through(e->s, part);
		return ways_search(e, part, tested, &ways, w);
	}
	Ways sends = ways_all(e->s), receives = sends;
	sends.from = receives.to = part;
	sends.from_end = receives.to_end = part + 1;
	return ways_search(e, part, tested, &sends, w) || ways_search(e, part, tested, &receives, w);
}
