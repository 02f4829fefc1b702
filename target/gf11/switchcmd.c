/* SPDX-License-Identifier: MIT */
/* microprop gf11 switch: in comes what to route and which parts are dead, out the settings as text or a line of
 * JSON.  A range of seeds, random:1..10000, routes, verifies and times them all, and stores as many as the machine
 * holds. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gf11.h"

enum { MOST = 1000000 };                  /* permutations in one go */

typedef struct Tour {
	Switch *sw;
	uint16_t *to;
	Setting set;
	uint64_t permutations, routes, routed, verified;     /* routes: of the last permutation */
	double seconds;
	const char *reason;                                  /* why the first that failed did */
} Tour;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void route_one(Ctx *cx, Tour *t)
{
	const char *why;
	double start = now();
	bool done = switch_route(t->sw, t->to, &t->set, &why);
	t->seconds += now() - start;
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

/* random:FIRST..LAST; false if spec is something else. */
static bool range_parse(const char *spec, uint64_t *first, uint64_t *last)
{
	int end = 0;
	return sscanf(spec, "random:%19" SCNu64 "..%19" SCNu64 "%n", first, last, &end) == 2 && !spec[end];
}

static void route_range(Ctx *cx, Tour *t, uint64_t first, uint64_t last)
{
	if (last < first || last - first >= MOST)
		fail(cx, MP_BAD_INPUT, "write random:FIRST..LAST with LAST at most a million beyond FIRST",
		     "random:%" PRIu64 "..%" PRIu64 " is no range of seeds that can be routed", first, last);
	for (uint64_t seed = first; seed <= last; seed++) {
		permutation_random(seed, t->sw->ports, t->sw->ports, t->to);
		route_one(cx, t);
	}
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

static void print_json(const Tour *t, Buf *out)
{
	static const char *const truth[] = { "false", "true" };
	buf_printf(out, "{\"ports\": %u, \"permutations\": %" PRIu64 ", \"routes\": %" PRIu64
	           ", \"routed\": %s, \"verified\": %s, ", t->sw->ports, t->permutations, t->routes,
	           truth[t->routed == t->permutations], truth[t->verified == t->permutations]);
	buf_printf(out, "\"stored\": %u, \"microseconds\": %.3f, \"middle_used\": %u, \"reason\": ", t->sw->stored,
	           1e6 * t->seconds / (double)t->permutations, middle_used(t));
	if (t->reason)
		json_put(out, t->reason);
	else
		buf_puts(out, "null");
	buf_puts(out, "}\n");
}

void switch_command(Ctx *cx, const Machine *m, const char *spec, const char *const *dead, size_t deads, bool json,
                    Buf *out)
{
	static const char remedy[] = "route less, or use a machine whose switch can carry it";
	Tour t = { .sw = switch_new(cx, m) };
	uint64_t first, last;
	for (size_t i = 0; i < deads; i++)
		dead_add(cx, t.sw, dead[i]);
	t.to = NEW(&cx->scratch, t.sw->ports, uint16_t);
	t.set = setting_new(&cx->scratch, t.sw);
	bool range = range_parse(spec, &first, &last);
	if (range) {
		route_range(cx, &t, first, last);
	} else {
		permutation_make(cx, spec, (uint32_t)m->processors, t.sw->ports, t.to);
		route_one(cx, &t);
	}
	if (json)
		print_json(&t, out);
	else if (t.reason && !range)
		fail(cx, MP_FAILED, remedy, "the switch cannot be set so: %s", t.reason);
	else if (t.reason)
		fail(cx, MP_FAILED, remedy, "%" PRIu64 " of %" PRIu64 " permutations cannot be routed: %s",
		     t.permutations - t.routed, t.permutations, t.reason);
	else if (range)
		buf_printf(out, "%" PRIu64 " permutations of %" PRIu64 " routes: all routed, %" PRIu64
		           " verified by tokens, %u stored; %.1f microseconds each to route\n", t.permutations,
		           t.routes, t.verified, t.sw->stored, 1e6 * t.seconds / (double)t.permutations);
	else
		switch_print(t.sw, t.to, &t.set, out);
}
