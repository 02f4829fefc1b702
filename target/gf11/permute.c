/* SPDX-License-Identifier: MIT */
/* What the user writes about the switch: in come words for a permutation (`ring`, `tree:3`, `random:7`, a file) or
 * for a dead part (`link:input:3:5`), out the permutation, or a mark in the switch.  All numbers count from 0 and
 * are inside the machine when they leave here; whatever is not is reported at its place. */
#include <inttypes.h>
#include <string.h>

#include "gf11.h"

enum { STREAM_SWITCH = 64 };              /* of random numbers; lib's own streams have small numbers */

/* ---- reading numbers ---- */

typedef struct Scan { Ctx *cx; const Src *src; size_t at; } Scan;

static Loc here(const Scan *s)
{
	return (Loc){ s->src, s->at };
}

static int peek(const Scan *s)
{
	return s->at < s->src->len ? (unsigned char)s->src->text[s->at] : -1;
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

/* Digits of a number, saturating; false if there are none. */
static bool scan_number(Scan *s, uint64_t *value)
{
	*value = 0;
	if (!is_digit(peek(s)))
		return false;
	for (; is_digit(peek(s)); s->at++) {
		uint64_t digit = (uint64_t)(peek(s) - '0');
		*value = *value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *value * 10 + digit;
	}
	return true;
}

/* A number that what is meant has, from 0 to limit - 1. */
static uint32_t scan_index(Scan *s, const char *what, uint32_t limit, const char *remedy)
{
	Loc at = here(s);
	uint64_t value;
	if (!scan_number(s, &value))
		fail_at(s->cx, at, remedy, "here the number of a %s is missing", what);
	if (value >= limit)
		fail_at(s->cx, at, remedy, "there is no %s %" PRIu64 ": they are numbered 0 to %u", what, value,
		        limit - 1);
	return (uint32_t)value;
}

static void scan_colon(Scan *s, const char *remedy)
{
	if (peek(s) != ':')
		fail_at(s->cx, here(s), remedy, "here ':' and a number are missing");
	s->at++;
}

static void scan_end(const Scan *s, const char *remedy)
{
	if (peek(s) >= 0)
		fail_at(s->cx, here(s), remedy, "there is too much here");
}

/* Skips `word` if it stands here. */
static bool scan_word(Scan *s, const char *word)
{
	size_t len = strlen(word);
	if (s->src->len - s->at < len || memcmp(s->src->text + s->at, word, len) != 0)
		return false;
	s->at += len;
	return true;
}

static Scan scan_spec(Ctx *cx, const char *name, const char *spec)
{
	Src *src = NEW(&cx->scratch, 1, Src);
	*src = (Src){ .name = name, .text = spec, .len = strlen(spec) };
	return (Scan){ cx, src, 0 };
}

/* ---- permutations ---- */

static void permutation_shift(uint32_t procs, uint32_t by, uint16_t *to)
{
	for (uint32_t p = 0; p < procs; p++)
		to[p] = (uint16_t)((p + by) % procs);
}

static void make_tree(Scan *s, uint32_t procs, uint16_t *to)
{
	static const char remedy[] = "write tree:K, where processor i sends to i + 2^K";
	uint32_t steps = 0;
	while ((1u << steps) < procs)
		steps++;
	if (!steps)
		fail_at(s->cx, here(s), "use a machine with more processors", "one processor has nobody to send to");
	uint32_t step = scan_index(s, "step", steps, remedy);
	scan_end(s, remedy);
	permutation_shift(procs, 1u << step, to);
}

void permutation_random(uint64_t seed, uint32_t ports, uint32_t routes, uint16_t *to)
{
	uint16_t order[2][MAX_CROSSBAR * MAX_CROSSBAR];      /* senders, receivers: shuffled from the inside out */
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

static void make_random(Scan *s, uint32_t ports, uint16_t *to)
{
	static const char remedy[] = "write random:SEED, or random:SEED:ROUTES to use some of the ports";
	uint64_t seed, routes = ports;
	if (!scan_number(s, &seed))
		fail_at(s->cx, here(s), remedy, "here the seed is missing");
	if (peek(s) == ':') {
		s->at++;
		Loc at = here(s);
		if (!scan_number(s, &routes) || routes > ports)
			fail_at(s->cx, at, remedy, "here a number of routes from 0 to %u is missing", ports);
	}
	scan_end(s, remedy);
	permutation_random(seed, ports, (uint32_t)routes, to);
}

/* ---- a permutation from a file ---- */

typedef struct Reading { uint32_t ports; uint16_t *to, *by; } Reading; /* by: who sends to a port, or NO_ROUTE */

static void skip_blanks(Scan *s)
{
	while (peek(s) == ' ' || peek(s) == '\t' || peek(s) == '\r')
		s->at++;
}

static void skip_line(Scan *s)
{
	while (peek(s) >= 0 && peek(s) != '\n')
		s->at++;
}

static bool read_port(Scan *s, uint32_t ports, Loc *at, uint32_t *port)
{
	static const char remedy[] = "write a line `from to` for every route, comments after #";
	uint64_t value;
	skip_blanks(s);
	*at = here(s);
	if (!scan_number(s, &value)) {
		error_at(s->cx, *at, remedy, "here the number of a port is missing");
		return false;
	}
	if (value >= ports) {
		error_at(s->cx, *at, remedy, "there is no port %" PRIu64 ": they are numbered 0 to %u", value,
		         ports - 1);
		return false;
	}
	*port = (uint32_t)value;
	return true;
}

static void read_route(Scan *s, Reading *r)
{
	static const char remedy[] = "a port sends to one port and receives from one: remove one of the two lines";
	Loc from_at, to_at;
	uint32_t from, to;
	if (!read_port(s, r->ports, &from_at, &from) || !read_port(s, r->ports, &to_at, &to))
		return;
	skip_blanks(s);
	if (peek(s) >= 0 && peek(s) != '\n' && peek(s) != '#')
		error_at(s->cx, here(s), "write one route a line, comments after #", "there is too much on this line");
	else if (r->to[from] != NO_ROUTE)
		error_at(s->cx, from_at, remedy, "port %u sends to port %u already", from, r->to[from]);
	else if (r->by[to] != NO_ROUTE)
		error_at(s->cx, to_at, remedy, "port %u receives from port %u already", to, r->by[to]);
	else {
		r->to[from] = (uint16_t)to;
		r->by[to] = (uint16_t)from;
	}
}

static void read_routes(Ctx *cx, const Src *src, uint32_t ports, uint16_t *to)
{
	Reading r = { ports, to, NEW(&cx->scratch, ports, uint16_t) };
	memset(r.by, 0xFF, ports * sizeof *r.by);
	Scan s = { cx, src, 0 };
	for (; peek(&s) >= 0; s.at++) {
		skip_blanks(&s);
		if (peek(&s) >= 0 && peek(&s) != '\n' && peek(&s) != '#')
			read_route(&s, &r);
		skip_line(&s);
	}
	check_errors(cx);
}

void permutation_make(Ctx *cx, const char *spec, uint32_t procs, uint32_t ports, uint16_t *to)
{
	Scan s = scan_spec(cx, "permutation", spec);
	memset(to, 0xFF, ports * sizeof *to);                /* NO_ROUTE */
	if (strcmp(spec, "ring") == 0)
		permutation_shift(procs, 1, to);
	else if (scan_word(&s, "tree:"))
		make_tree(&s, procs, to);
	else if (scan_word(&s, "random:"))
		make_random(&s, ports, to);
	else
		read_routes(cx, src_open(cx, &cx->scratch, spec), ports, to);
}

/* ---- dead parts ---- */

static const char dead_remedy[] = "write crossbar:STAGE:N, link:STAGE:N:M or port:P, where STAGE is input, "
                                  "middle or output, for a link the one it comes from";

static uint32_t scan_stage(Scan *s, uint32_t stages)
{
	static const char *const names[] = { "input", "middle", "output" };
	Loc at = here(s);
	uint64_t number;
	for (uint32_t i = 0; i < 3; i++) {
		if (!scan_word(s, names[i]))
			continue;
		if (i >= stages)
			fail_at(s->cx, at, dead_remedy, "no links go from the output stage to another");
		return i;
	}
	if (!scan_number(s, &number) || number >= stages)
		fail_at(s->cx, at, dead_remedy, "here the name of a stage is missing");
	return (uint32_t)number;
}

static void dead_crossbar(Scan *s, Switch *sw)
{
	uint32_t stage = scan_stage(s, 3);
	scan_colon(s, dead_remedy);
	uint32_t number = scan_index(s, "crossbar", sw->n, dead_remedy);
	scan_end(s, dead_remedy);
	sw->dead.crossbar[stage][number] = 1;
}

static void dead_link(Scan *s, Switch *sw)
{
	uint32_t stage = scan_stage(s, 2);
	scan_colon(s, dead_remedy);
	uint32_t from = scan_index(s, "crossbar", sw->n, dead_remedy);
	scan_colon(s, dead_remedy);
	uint32_t to = scan_index(s, "crossbar", sw->n, dead_remedy);
	scan_end(s, dead_remedy);
	sw->dead.link[stage][from * sw->n + to] = 1;
}

static void dead_port(Scan *s, Switch *sw)
{
	uint32_t port = scan_index(s, "port", sw->ports, dead_remedy);
	scan_end(s, dead_remedy);
	sw->dead.port[port] = 1;
}

void dead_add(Ctx *cx, Switch *s, const char *spec)
{
	static const struct { const char *word; bool network; void (*add)(Scan *, Switch *); } kinds[] = {
		{ "crossbar:", true, dead_crossbar }, { "link:", true, dead_link }, { "port:", false, dead_port },
	};
	Scan scan = scan_spec(cx, "--dead", spec);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		if (!scan_word(&scan, kinds[i].word))
			continue;
		if (kinds[i].network && s->m->ring_only)
			fail_at(cx, (Loc){ scan.src, 0 }, "write port:P",
			        "this machine is a ring: it has no crossbars and no links between them");
		kinds[i].add(&scan, s);
		return;
	}
	fail_at(cx, here(&scan), dead_remedy, "the switch has no such part");
}
