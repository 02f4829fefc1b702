/* SPDX-License-Identifier: MIT */
/* Ports for a program on a machine whose switch has dead parts. In: usable ports, parts known to be dead, the
 * configurations of a program of P processors. Out: its processors as ports, and a setting for every configuration;
 * fewer processors where there are not enough routes.
 *
 * A crossbar that lost a path to the middle stage carries one word less. That need not cost a processor: in the
 * tree only a power of two of them exchange words, leftovers communicate with their buddies only (section 4.4.2).
 * So if the ports in their order cannot be routed, they are distributed round-robin over all crossbars, which
 * spreads the leftovers. Only processors that still have no route are left out. */
#include <string.h>

#include "gf11_diagnose.h"

enum { INPUT, MIDDLE, OUTPUT };

/* ---- which ports ---- */

bool port_dead(const Switch *s, uint32_t port)
{
	const Dead *d = &s->dead;
	return d->port[port] || (!s->m->ring_only && (d->crossbar[INPUT][port / s->n] || d->crossbar[OUTPUT][port / s->n]));
}

typedef struct Choice {
	Ctx *cx;
	const Switch *s;
	uint16_t *candidate;
	uint32_t candidates; /* usable ones, in order */
	uint32_t most;
	WantedFn *wanted;
	void *user;
	Placed *out;
	uint32_t capacity; /* of out->setting and out->to */
} Choice;

/* The first candidates in order, or round-robin over the crossbars. */
static void choose(const Choice *c, bool dealt)
{
	Placed *out = c->out;
	uint32_t n = c->s->n, count = 0;
	out->procs = c->most && c->most < c->candidates ? c->most : c->candidates;
	for (uint32_t row = 0; row < (dealt ? n : 1); row++)
		for (uint32_t i = 0; i < c->candidates && count < out->procs; i++)
			if (!dealt || c->candidate[i] % n == row)
				out->port[count++] = c->candidate[i];
}

/* ---- routes ---- */

static void to_ports(const Choice *c, const Wanted *w, uint32_t k, uint16_t *to)
{
	memset(to, 0xFF, c->s->ports * sizeof *to); /* NO_ROUTE */
	for (uint32_t i = 0; i < w->procs; i++)
		if (w->to[k][i] != NO_ROUTE)
			to[c->out->port[i]] = c->out->port[w->to[k][i]];
}

static void settings_reserve(Choice *c, uint32_t count)
{
	Placed *out = c->out;
	Arena *keep = &c->cx->keep;
	if (count <= c->capacity)
		return;
	out->setting = arena_grow(keep, out->setting, c->capacity, count, sizeof *out->setting);
	out->to = arena_grow(keep, out->to, c->capacity, count, sizeof *out->to);
	for (; c->capacity < count; c->capacity++) {
		out->setting[c->capacity] = setting_new(keep, c->s);
		out->to[c->capacity] = NEW(keep, c->s->ports, uint16_t);
	}
}

static bool route_all(Choice *c, const Wanted *w)
{
	Placed *out = c->out;
	settings_reserve(c, w->count);
	out->count = w->count;
	for (uint32_t k = 0; k < w->count; k++) {
		to_ports(c, w, k, out->to[k]);
		if (!switch_route(c->s, out->to[k], &out->setting[k], NULL))
			return false;
	}
	return true;
}

/* ---- processors left out ---- */

/* Live paths between crossbar x of the first (last) stage and the middle stage. */
static uint32_t ways(const Switch *s, int stage, uint32_t x)
{
	uint32_t count = 0;
	for (uint32_t m = 0; m < s->n; m++)
		count += !s->dead.crossbar[MIDDLE][m] &&
		         !(stage == INPUT ? s->dead.link[0][x * s->n + m] : s->dead.link[1][m * s->n + x]);
	return count;
}

/* Largest number of words that ports of crossbar x send (receive) in one configuration. */
static uint32_t busiest(const Choice *c, int stage, uint32_t x)
{
	uint32_t most = 0;
	for (uint32_t k = 0; k < c->out->count; k++) {
		uint32_t words = 0;
		for (uint32_t p = 0; p < c->s->ports; p++) {
			uint32_t to = c->out->to[k][p];
			words += to != NO_ROUTE && (stage == INPUT ? p : to) / c->s->n == x;
		}
		most = words > most ? words : most;
	}
	return most;
}

static uint32_t excess(const Choice *c, int stage, uint32_t x)
{
	uint32_t words = busiest(c, stage, x), can = ways(c->s, stage, x);
	return words > can ? words - can : 0;
}

/* The last `count` candidates of crossbar x. */
static void leave_out(Choice *c, uint32_t x, uint32_t count)
{
	for (uint32_t i = c->candidates; i-- > 0 && count;) {
		if (c->candidate[i] / c->s->n != x)
			continue;
		c->out->left_out[c->out->left_outs++] = c->candidate[i];
		memmove(c->candidate + i, c->candidate + i + 1, (--c->candidates - i) * sizeof *c->candidate);
		count--;
	}
}

static bool has_candidate(const Choice *c, uint32_t x)
{
	for (uint32_t i = 0; i < c->candidates; i++)
		if (c->candidate[i] / c->s->n == x)
			return true;
	return false;
}

Placed *survivors_place(Ctx *cx, const Switch *known, const uint16_t *candidate, uint32_t count, uint32_t most,
                        WantedFn *wanted, void *user)
{
	Choice c = { .cx = cx,
		         .s = known,
		         .candidate = NEW(&cx->scratch, count, uint16_t),
		         .most = most,
		         .wanted = wanted,
		         .user = user,
		         .out = NEW(&cx->keep, 1, Placed) };
	c.out->port = NEW(&cx->keep, count, uint16_t);
	c.out->left_out = NEW(&cx->keep, count, uint16_t);
	for (uint32_t i = 0; i < count; i++)
		if (!port_dead(known, candidate[i]))
			c.candidate[c.candidates++] = candidate[i];
	while (c.candidates) {
		for (int dealt = 0; dealt < (known->m->ring_only ? 1 : 2); dealt++) {
			choose(&c, dealt);
			if (route_all(&c, wanted(user, c.out->procs)))
				return c.out;
		}
		/* Leave out ports of crossbars with more words than routes; if there are none, one of the crossbar with the
		 * fewest routes. */
		uint32_t before = c.candidates, n = c.s->n, tightest = 0, fewest = UINT32_MAX;
		for (uint32_t k = 0; k < c.out->count; k++) /* all, not only those before the failed one */
			to_ports(&c, c.wanted(c.user, c.out->procs), k, c.out->to[k]);
		for (uint32_t x = 0; x < n; x++) {
			uint32_t in = excess(&c, INPUT, x), out = excess(&c, OUTPUT, x), can = ways(c.s, INPUT, x);
			can = ways(c.s, OUTPUT, x) < can ? ways(c.s, OUTPUT, x) : can;
			leave_out(&c, x, in > out ? in : out);
			if (can < fewest && has_candidate(&c, x)) {
				fewest = can;
				tightest = x;
			}
		}
		if (c.candidates == before)
			leave_out(&c, tightest, 1);
	}
	fail(cx, MP_FAILED, "repair the switch", "so much of the switch is dead that not one processor is left");
}
