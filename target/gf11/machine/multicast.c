/* SPDX-License-Identifier: MIT */
/* Broadcasts and multicasts through the switch (report, section 2, note 2). In: for each port the port it receives
 * from. Out: the input of every output of every crossbar, or the reason why none was found. Must hold: each output of a
 * crossbar has one input; no part in use is dead. multicast_verify shares no code with the router: it simulates tokens.
 *
 * A crossbar may join an input to several outputs, so a word can branch in each stage. A sender needs one or more
 * middle crossbars that together reach all its output crossbars; a link to or from a middle crossbar carries one
 * sender. Every permutation can be routed; sets of multicasts need not be routable at all, as the network has only
 * as many middle crossbars as a crossbar has ports. Senders that reach many output crossbars are routed first,
 * each by the middle crossbars that cover most of what it lacks; if that fails, in other orders, branching earlier
 * or later, with a fixed sequence of random numbers. */
#include <stdio.h>
#include <string.h>

#include "gf11_machine.h"

enum { TRIES = 200, STREAM_MULTICAST = 66, WHY = 640 };

typedef struct Spread {
	const Switch *s;
	const uint16_t *from;
	Fan *out;
	uint64_t reach[MAX_CROSSBAR * MAX_CROSSBAR]; /* output crossbars of each sender */
	uint16_t order[MAX_CROSSBAR * MAX_CROSSBAR], senders;
	uint64_t used[2][MAX_CROSSBAR]; /* middle crossbars taken at an input crossbar; at an output crossbar */
	uint32_t try;                   /* 0: lowest middle crossbars first; else from a random one on */
	uint32_t stuck;                 /* sender that found no middle crossbar */
	uint64_t lacks;
} Spread;

static uint32_t bits(uint64_t set)
{
	uint32_t count = 0;
	for (; set; set &= set - 1)
		count++;
	return count;
}

Fan fan_new(Arena *a, const Switch *s)
{
	uint32_t size = s->n * s->n;
	uint16_t *all = NEW(a, 3 * (size_t)size, uint16_t);
	return (Fan){ all, all + size, all + 2 * size };
}

/* Output crossbars that sender p can reach by middle crossbar m, of those it lacks. */
static uint64_t covers(const Spread *v, uint32_t p, uint32_t m, uint64_t lacks)
{
	const Switch *s = v->s;
	uint32_t x = p / s->n;
	uint64_t set = 0;
	if (s->dead.crossbar[1][m] || s->dead.link[0][x * s->n + m] || v->used[0][x] >> m & 1)
		return 0;
	for (uint32_t y = 0; y < s->n; y++)
		if (lacks >> y & 1 && !s->dead.link[1][m * s->n + y] && !(v->used[1][y] >> m & 1))
			set |= (uint64_t)1 << y;
	return set;
}

static bool sender_route(Spread *v, uint32_t p)
{
	uint32_t n = v->s->n, x = p / n;
	for (uint64_t lacks = v->reach[p]; lacks;) {
		uint64_t most = 0;
		uint32_t by = 0, first = v->try ? (uint32_t)random_below(v->try, STREAM_MULTICAST + 1, p, n) : 0;
		for (uint32_t k = 0; k < n; k++) {
			uint32_t m = (first + k) % n;
			uint64_t set = covers(v, p, m, lacks);
			if (bits(set) > bits(most)) {
				most = set;
				by = m;
			}
		}
		if (!most) {
			v->stuck = p;
			v->lacks = lacks;
			return false;
		}
		/* A sender that branches early can leave room for others: every other try takes a part. */
		uint64_t part = most & random_u64(v->try, STREAM_MULTICAST + 2, p * n + bits(lacks));
		most = v->try % 2 && part ? part : most;
		v->used[0][x] |= (uint64_t)1 << by;
		v->out->in[x * n + by] = (uint16_t)(p % n);
		for (uint32_t y = 0; y < n; y++) {
			if (!(most >> y & 1))
				continue;
			v->used[1][y] |= (uint64_t)1 << by;
			v->out->middle[by * n + y] = (uint16_t)x;
			for (uint32_t q = 0; q < n; q++)
				if (v->from[y * n + q] == p)
					v->out->out[y * n + q] = (uint16_t)by;
		}
		lacks &= ~most;
	}
	return true;
}

static bool attempt_route(Spread *v)
{
	size_t bytes = (size_t)v->s->n * v->s->n * sizeof(uint16_t);
	memset(v->used, 0, sizeof v->used);
	memset(v->out->in, 0xFF, bytes); /* NO_ROUTE */
	memset(v->out->middle, 0xFF, bytes);
	memset(v->out->out, 0xFF, bytes);
	for (uint32_t i = 0; i < v->senders; i++)
		if (!sender_route(v, v->order[i]))
			return false;
	return true;
}

/* By the number of output crossbars, most first; equal ones in random order, the first time by number. */
static void order_make(Spread *v, uint32_t try)
{
	v->senders = 0;
	for (uint32_t size = v->s->n; size > 0; size--) {
		uint32_t first = v->senders;
		for (uint32_t p = 0; p < v->s->ports; p++)
			if (bits(v->reach[p]) == size)
				v->order[v->senders++] = (uint16_t)p;
		for (uint32_t i = first; try && i < v->senders; i++) {
			uint32_t k = first + (uint32_t)random_below(try, STREAM_MULTICAST, i, i - first + 1);
			uint16_t swap = v->order[i];
			v->order[i] = v->order[k];
			v->order[k] = swap;
		}
	}
}

bool switch_multicast(const Switch *s, const uint16_t *from, Fan *out, const char **why)
{
	Spread v = { .s = s, .from = from, .out = out };
	*why = s->why;
	if (s->m->ring_only) {
		snprintf(s->why, WHY, "this machine joins its processors in a ring: a port sends to one port");
		return false;
	}
	for (uint32_t q = 0; q < s->ports; q++) {
		uint32_t p = from[q];
		if (p == NO_ROUTE)
			continue;
		if (s->dead.port[p] || s->dead.port[q] || s->dead.crossbar[0][p / s->n] || s->dead.crossbar[2][q / s->n]) {
			snprintf(s->why, WHY, "port %u cannot send to port %u: a port or crossbar between them is dead", p, q);
			return false;
		}
		v.reach[p] |= (uint64_t)1 << (q / s->n);
	}
	for (uint32_t try = 0; try < TRIES; try++) {
		v.try = try;
		order_make(&v, try);
		if (attempt_route(&v)) {
			*why = NULL;
			return true;
		}
	}
	v.try = 0; /* the reason that its first try gives */
	order_make(&v, 0);
	attempt_route(&v);
	uint32_t x = v.stuck / s->n;
	snprintf(
		s->why, WHY,
		"no setting was found for port %u, which lacks %u output crossbars: input crossbar %u has %u of its %u "
		"links to the middle stage in use%s; the network routes every permutation, but not every set of multicasts",
		v.stuck, bits(v.lacks), x, bits(v.used[0][x]), s->n,
		bits(v.used[0][x]) < s->n ? ", and the others lead to middle crossbars that send other words there" : "");
	return false;
}

bool multicast_verify(const Switch *s, const uint16_t *from, const Fan *set)
{
	uint32_t n = s->n;
	for (uint32_t q = 0; q < s->ports; q++) {
		uint32_t y = q / n, m = set->out[q], x = m < n ? set->middle[m * n + y] : NO_ROUTE;
		uint32_t i = x < n ? set->in[x * n + m] : NO_ROUTE;
		uint32_t token = i < n ? x * n + i : NO_ROUTE;
		bool dead = token != NO_ROUTE && (s->dead.crossbar[0][x] || s->dead.crossbar[1][m] || s->dead.crossbar[2][y] ||
		                                  s->dead.link[0][x * n + m] || s->dead.link[1][m * n + y]);
		if (token != from[q] || dead)
			return false;
	}
	return true;
}
