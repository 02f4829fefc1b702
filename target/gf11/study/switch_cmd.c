/* SPDX-License-Identifier: MIT */
/* microprop gf11 switch. In: a permutation, a broadcast or multicasts, dead parts. Out: the settings of the switch, or
 * why there are none. A range of seeds, random:1..10000, optionally with a number of routes, random:1..10000:500,
 * routes, verifies and times all of them, and stores as many as the machine holds. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gf11_study.h"

enum { MAX_PERMUTATIONS = 1000000 };

typedef struct Tour {
	Switch *sw;
	uint16_t *to;
	Setting set;
	uint64_t permutations, routes, routed, verified; /* routes: of the last permutation */
	double seconds;
	const char *reason; /* of the first failure */
} Tour;

static void route_one(Ctx *cx, Tour *t)
{
	const char *why;
	double start = clock_seconds();
	bool done = switch_route(t->sw, t->to, &t->set, &why);
	t->seconds += clock_seconds() - start;
	t->permutations++;
	t->routes = 0;
	for (uint32_t p = 0; p < t->sw->ports; p++)
		t->routes += t->to[p] != NO_ROUTE;
	if (!done) {
		if (!t->reason)
			t->reason = arena_copy(&cx->scratch, why, strlen(why));
		return;
	}
	t->routed++;
	t->verified += switch_verify(t->sw, t->to, &t->set);
	if (t->sw->stored < t->sw->m->configurations)
		switch_store(cx, t->sw, t->to);
}

/* Parses a number and the delimiter that must follow; false on a mismatch. */
static bool number_take(const char **p, const char *behind, uint64_t *value)
{
	char *end;
	if (**p < '0' || **p > '9')
		return false;
	*value = strtoull(*p, &end, 10);
	size_t len = strlen(behind);
	*p = end + len;
	return len ? strncmp(end, behind, len) == 0 : *end == '\0';
}

typedef struct Seeds {
	uint64_t first, last, routes;
} Seeds;

/* random:FIRST..LAST[:ROUTES]; false: another kind of spec, such as random:SEED. */
static bool seeds_parse(Ctx *cx, const char *spec, uint64_t ports, Seeds *s)
{
	static const char remedy[] = "write random:FIRST..LAST or random:FIRST..LAST:ROUTES, with LAST less than a million "
								 "beyond FIRST and not more routes than ports";
	if (strncmp(spec, "random:", 7) != 0 || !strstr(spec, ".."))
		return false;
	const char *p = spec + 7, *last;
	s->routes = ports;
	bool good = number_take(&p, "..", &s->first);
	last = p;
	good = good && (number_take(&p, "", &s->last) ||
	                (p = last, number_take(&p, ":", &s->last) && number_take(&p, "", &s->routes)));
	if (!good || s->last < s->first || s->last - s->first >= MAX_PERMUTATIONS || s->routes > ports)
		fail(cx, MP_BAD_INPUT, remedy, "%s is no range of seeds that can be routed", spec);
	return true;
}

static uint32_t middle_used(const Tour *t)
{
	uint32_t used = 0, n = t->sw->n;
	for (uint32_t m = 0; m < n && !t->sw->m->ring_only; m++) {
		uint32_t y = 0;
		while (y < n && t->set.middle[m * n + y] == NO_ROUTE)
			y++;
		used += y < n;
	}
	return used;
}

/* A port that sends to several. */
static const char *multicast_command(Ctx *cx, const Switch *sw, const char *spec, const uint16_t *from,
                                     JsonWriter *json, Buf *text, Buf *svg)
{
	Fan set = fan_new(&cx->scratch, sw);
	const char *why;
	uint32_t routes = 0, senders = 0;
	double start = clock_seconds();
	bool routed = switch_multicast(sw, from, &set, &why);
	double seconds = clock_seconds() - start;
	bool verified = routed && multicast_verify(sw, from, &set);
	uint8_t *sends = NEW(&cx->scratch, sw->ports, uint8_t);
	for (uint32_t q = 0; q < sw->ports; q++) {
		if (from[q] == NO_ROUTE)
			continue;
		routes++;
		senders += !sends[from[q]];
		sends[from[q]] = 1;
	}
	jw_count(json, "ports", sw->ports);
	jw_count(json, "senders", senders);
	jw_count(json, "routes", routes);
	jw_flag(json, "routed", routed);
	jw_flag(json, "verified", verified);
	jw_real(json, "microseconds", "%.3f", 1e6 * seconds);
	jw_text(json, "reason", routed ? NULL : why);
	buf_printf(text, "%u ports receive from %u: %s; %.1f microseconds\n", routes, senders,
	           !routed    ? "not routed"
	           : verified ? "routed, verified by tokens"
	                      : "routed, but tokens do not arrive",
	           1e6 * seconds);
	if (routed && svg)
		switch_svg(cx, sw, draw_label(cx, "the switch set for %.80s", spec), NULL, &set, svg);
	Buf b = { .arena = &cx->scratch };
	if (!routed)
		buf_printf(&b, "the switch cannot be set so: %s", why);
	else if (!verified)
		buf_puts(&b, "the setting does not carry the tokens where it should, a fault of the router: please report it");
	return b.s;
}

/* For every port its receiver and the middle crossbar on the way; null: it sends nothing. */
static void paths_json(const Tour *t, JsonWriter *json)
{
	for (int k = 0; k < 2; k++) {
		jw_start(json, k ? "middle" : "to", '[');
		for (uint32_t p = 0; p < t->sw->ports; p++) {
			Path path = switch_path(t->sw, &t->set, p);
			if (path.to == NO_ROUTE)
				jw_text(json, NULL, NULL);
			else
				jw_count(json, NULL, k ? path.box[1] : path.to);
		}
		jw_end(json, ']');
	}
}

const char *switch_command(Ctx *cx, const Machine *m, const char *spec, const char *const *dead, size_t deads,
                           bool paths, JsonWriter *json, Buf *text, Buf *svg)
{
	Tour t = { .sw = switch_new(cx, m) };
	Seeds seeds;
	for (size_t i = 0; i < deads; i++)
		dead_add(cx, t.sw, dead[i]);
	t.to = NEW(&cx->scratch, t.sw->ports, uint16_t);
	t.set = setting_new(&cx->scratch, t.sw);
	if (multicast_make(cx, spec, (uint32_t)m->processors, t.sw->ports, t.to))
		return multicast_command(cx, t.sw, spec, t.to, json, text, svg);
	bool range = seeds_parse(cx, spec, t.sw->ports, &seeds);
	if (range) {
		for (uint64_t seed = seeds.first; seed - seeds.first <= seeds.last - seeds.first; seed++) {
			permutation_random(seed, t.sw->ports, (uint32_t)seeds.routes, t.to);
			route_one(cx, &t);
		}
	} else {
		permutation_make(cx, spec, (uint32_t)m->processors, t.sw->ports, t.to);
		route_one(cx, &t);
	}
	jw_count(json, "ports", t.sw->ports);
	jw_count(json, "permutations", t.permutations);
	jw_count(json, "routes", t.routes);
	jw_flag(json, "routed", t.routed == t.permutations);
	jw_flag(json, "verified", t.verified == t.permutations);
	jw_count(json, "stored", t.sw->stored);
	jw_real(json, "microseconds", "%.3f", 1e6 * t.seconds / (double)t.permutations);
	jw_count(json, "middle_used", middle_used(&t));
	jw_text(json, "reason", t.reason);
	if (paths && !range && t.routed && !m->ring_only)
		paths_json(&t, json);
	if (range)
		buf_printf(text,
		           "%" PRIu64 " permutations of %" PRIu64 " routes: %" PRIu64 " routed, %" PRIu64
		           " verified by tokens, %u stored; %.1f microseconds each to route\n",
		           t.permutations, t.routes, t.routed, t.verified, t.sw->stored,
		           1e6 * t.seconds / (double)t.permutations);
	else if (t.routed)
		switch_print(t.sw, t.to, &t.set, text);
	if (range && svg)
		fail(cx, MP_BAD_INPUT, "name one seed, such as random:7", "--svg draws one setting, not those of many seeds");
	if (t.routed && svg)
		switch_svg(cx, t.sw, draw_label(cx, "the switch set for %.80s", spec), &t.set, NULL, svg);
	Buf why = { .arena = &cx->scratch };
	if (t.reason && t.permutations == 1)
		buf_printf(&why, "the switch cannot be set so: %s", t.reason);
	else if (t.reason)
		buf_printf(&why, "%" PRIu64 " of %" PRIu64 " permutations cannot be routed: %s", t.permutations - t.routed,
		           t.permutations, t.reason);
	else if (t.verified < t.routed)
		buf_printf(&why,
		           "%" PRIu64 " of %" PRIu64 " settings do not carry the tokens where they should, a fault of the "
		           "router: please report it",
		           t.routed - t.verified, t.routed);
	return why.s;
}
