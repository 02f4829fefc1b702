/* SPDX-License-Identifier: MIT */
/* Specs of permutations, multicasts and dead parts.  In: `ring`, `tree:3`, `random:7`, `broadcast:0`, a file of
 * routes, or `link:input:3:5`.  Out: a permutation, the sender of each port, or a mark in Switch.dead.  Must hold: all
 * numbers count from 0 and are in range; anything else is reported with its location. */
#include <inttypes.h>
#include <string.h>

#include "gf11_machine.h"

enum { STREAM_SWITCH = 64 }; /* random stream; streams of lib/ have small numbers */

/* ---- permutations ---- */

static void permutation_shift(uint32_t procs, uint32_t by, uint16_t *to)
{
	for (uint32_t p = 0; p < procs; p++)
		to[p] = (uint16_t)((p + by) % procs);
}

void permutation_random(uint64_t seed, uint32_t ports, uint32_t routes, uint16_t *to)
{
	uint16_t order[2][MAX_CROSSBAR * MAX_CROSSBAR]; /* senders, receivers: inside-out Fisher-Yates shuffle */
	for (uint32_t i = 0; i < ports; i++) {
		to[i] = NO_ROUTE;
		for (uint32_t side = 0; side < 2; side++) {
			uint64_t j = random_below(seed, STREAM_SWITCH + side, i, i + 1);
			order[side][i] = order[side][j];
			order[side][j] = (uint16_t)i;
		}
	}
	for (uint32_t i = 0; i < routes; i++)
		to[order[0][i]] = order[1][i];
}

/* ---- a permutation from a file ---- */

typedef struct RouteReader {
	uint32_t ports;
	uint16_t *to, *by; /* by: sender of a port, or NO_ROUTE */
	bool fans, many;   /* a port may send to several; one does */
} RouteReader;

static bool read_port(Scan *s, uint32_t ports, Loc *at, uint32_t *port)
{
	static const char remedy[] = "write a line `from to` for every route, comments after #";
	uint64_t value;
	scan_blanks(s);
	*at = scan_here(s);
	if (!scan_number(s, &value)) {
		error_at(s->cx, *at, remedy, "here the number of a port is missing");
		return false;
	}
	if (value >= ports) {
		error_at(s->cx, *at, remedy, "there is no port %" PRIu64 ": they are numbered 0 to %u", value, ports - 1);
		return false;
	}
	*port = (uint32_t)value;
	return true;
}

static void read_route(Scan *s, RouteReader *r)
{
	static const char remedy[] = "a port sends to one port and receives from one: remove one of the two lines";
	Loc from_at, to_at;
	uint32_t from, to;
	if (!read_port(s, r->ports, &from_at, &from) || !read_port(s, r->ports, &to_at, &to))
		return;
	scan_blanks(s);
	if (scan_peek(s) >= 0 && scan_peek(s) != '\n' && scan_peek(s) != '#')
		error_at(s->cx, scan_here(s), "write one route a line, comments after #",
		         "unexpected text at the end of the line");
	else if (r->to[from] != NO_ROUTE && !r->fans)
		error_at(s->cx, from_at, remedy, "port %u sends to port %u already", from, r->to[from]);
	else if (r->by[to] != NO_ROUTE)
		error_at(s->cx, to_at, remedy, "port %u receives from port %u already", to, r->by[to]);
	else {
		r->many |= r->to[from] != NO_ROUTE;
		r->to[from] = (uint16_t)to;
		r->by[to] = (uint16_t)from;
	}
}

static void read_routes(Ctx *cx, const Src *src, RouteReader *r)
{
	memset(r->to, 0xFF, r->ports * sizeof *r->to); /* NO_ROUTE */
	memset(r->by, 0xFF, r->ports * sizeof *r->by);
	Scan s = { cx, src, 0 };
	src_check_text(cx, src);
	for (; scan_peek(&s) >= 0; s.at++) {
		scan_blanks(&s);
		if (scan_peek(&s) >= 0 && scan_peek(&s) != '\n' && scan_peek(&s) != '#')
			read_route(&s, r);
		scan_line(&s);
	}
	check_errors(cx);
}

void permutation_make(Ctx *cx, const char *spec, uint32_t procs, uint32_t ports, uint16_t *to)
{
	Scan s = scan_spec(cx, "permutation", spec);
	memset(to, 0xFF, ports * sizeof *to); /* NO_ROUTE */
	if (strcmp(spec, "ring") == 0)
		permutation_shift(procs, 1, to);
	else if (scan_word(&s, "tree:")) {
		static const char remedy[] = "write tree:K, where processor i sends to i + 2^K";
		uint32_t steps = 0;
		while ((1u << steps) < procs)
			steps++;
		if (!steps)
			fail_at(s.cx, scan_here(&s), "use a machine with more processors", "a single processor has no receiver");
		uint32_t step = scan_index(&s, "step", steps, remedy);
		scan_end(&s, remedy);
		permutation_shift(procs, 1u << step, to);
	} else if (scan_word(&s, "random:")) {
		static const char remedy[] = "write random:SEED, or random:SEED:ROUTES to use some of the ports";
		uint64_t seed, routes = ports;
		if (!scan_number(&s, &seed))
			fail_at(s.cx, scan_here(&s), remedy, "here the seed is missing");
		if (scan_peek(&s) == ':') {
			s.at++;
			Loc at = scan_here(&s);
			if (!scan_number(&s, &routes) || routes > ports)
				fail_at(s.cx, at, remedy, "here a number of routes from 0 to %u is missing", ports);
		}
		scan_end(&s, remedy);
		permutation_random(seed, ports, (uint32_t)routes, to);
	} else {
		RouteReader r = { .ports = ports, .to = to, .by = NEW(&cx->scratch, ports, uint16_t) };
		read_routes(cx, src_open(cx, &cx->scratch, spec), &r);
	}
}

/* ---- broadcasts and multicasts ---- */

bool multicast_make(Ctx *cx, const char *spec, uint32_t procs, uint32_t ports, uint16_t *from)
{
	Scan s = scan_spec(cx, "multicast", spec);
	if (scan_word(&s, "broadcast:")) {
		static const char remedy[] = "write broadcast:PORT: all processors receive from it";
		uint32_t port = scan_index(&s, "port", ports, remedy);
		scan_end(&s, remedy);
		for (uint32_t q = 0; q < ports; q++)
			from[q] = (uint16_t)(q < procs ? port : NO_ROUTE);
		return true;
	}
	if (strcmp(spec, "ring") == 0 || strncmp(spec, "tree:", 5) == 0 || strncmp(spec, "random:", 7) == 0)
		return false;
	RouteReader r = { .ports = ports, .to = NEW(&cx->scratch, ports, uint16_t), .by = from, .fans = true };
	read_routes(cx, src_open(cx, &cx->scratch, spec), &r);
	return r.many;
}

/* ---- dead parts ---- */

static const char dead_remedy[] = "write crossbar:STAGE:N, link:STAGE:N:M or port:P, where STAGE is input, "
								  "middle or output, for a link the one it comes from";

void dead_add(Ctx *cx, Switch *s, const char *spec)
{
	enum { CROSSBAR, LINK, PORT, KINDS };
	static const char *const kinds[KINDS] = { "crossbar:", "link:", "port:" };
	Scan scan = scan_spec(cx, "--dead", spec);
	int kind = 0;
	while (kind < KINDS && !scan_word(&scan, kinds[kind]))
		kind++;
	if (kind == KINDS)
		fail_at(cx, scan_here(&scan), dead_remedy, "the switch has no such part");
	if (kind != PORT && s->m->ring_only)
		fail_at(cx, (Loc){ scan.src, 0 }, "write port:P",
		        "this machine is a ring: it has no crossbars and no links between them");
	uint32_t stage = 0, into = 0;
	if (kind != PORT) {
		stage = scan_stage(&scan, kind == LINK ? 2 : 3, dead_remedy);
		scan_colon(&scan, dead_remedy);
	}
	uint32_t number =
		scan_index(&scan, kind == PORT ? "port" : "crossbar", kind == PORT ? s->ports : s->n, dead_remedy);
	if (kind == LINK) {
		scan_colon(&scan, dead_remedy);
		into = scan_index(&scan, "crossbar", s->n, dead_remedy);
	}
	scan_end(&scan, dead_remedy);
	if (kind == PORT)
		s->dead.port[number] = 1;
	else if (kind == LINK)
		s->dead.link[stage][number * s->n + into] = 1;
	else
		s->dead.crossbar[stage][number] = 1;
}
