/* SPDX-License-Identifier: MIT */
/* Switch test at the start of a program (section 8): processors send host-generated words through every
 * configuration in use, and the host verifies what arrived. In: a machine, ports, configurations. Out: dead parts,
 * located; the ports that the program gets, and settings that delivered every word.
 *
 * Words identify their sender, and half of them are the complement of the other half, so that stuck wires and misrouted
 * words are detected. An intermittent port may deliver all its words; more words lower that probability.
 *
 * When words are lost, further settings locate the part. In setting r of n, port j of crossbar x sends through middle
 * crossbar j + r to crossbar x + r, so that every port, link and crossbar is combined with many others. For parts that
 * remain indistinguishable, single paths follow. The part is marked dead, all configurations are rerouted, and the test
 * restarts. */
#include <assert.h>
#include <string.h>

#include "gf11_diagnose.h"

/* words that a port sends through a configuration; their addresses in SRAM */
enum { WORDS = 16, WORD_IN = 0, WORD_OUT = WORDS };
enum { MOST_ROUNDS = 64 };

/* ---- the bench: processors that send ---- */

typedef struct Bench {
	Ctx *cx;
	SwitchTest *t;
	Switch *sw; /* without known dead parts */
	Processors *p;
	Routine *send;   /* through configuration 0 */
	uint8_t *tested; /* [ports] */
	uint32_t *lane;  /* [ports] number of the port among the processors */
} Bench;

/* Neither it nor its complement is 0, nor a word of another port. */
static uint32_t word_of(uint32_t port, uint32_t i)
{
	uint32_t w = (port + 1) << 16 | (0x5A5Au ^ (i / 2 * 0x1111u) ^ port);
	return i % 2 ? ~w : w;
}

static Routine *make_send(Ctx *cx, const Machine *m)
{
	Gen *g = gen_record(cx, m, "switch test");
	for (uint32_t i = 0; i < WORDS; i++)
		g_store(g, (Addr){ 0, WORD_OUT + i }, g_xfer(g, 0, g_load(g, (Addr){ 0, WORD_IN + i })));
	return test_routine(cx, m, gen_end(g));
}

/* The same routine through another configuration. */
static Routine *send_through(Ctx *cx, const Routine *model, uint32_t configuration)
{
	Routine *r = NEW(&cx->keep, 1, Routine);
	*r = *model;
	r->line = NEW(&cx->keep, model->lines, Line);
	memcpy(r->line, model->line, model->lines * sizeof *r->line);
	for (uint32_t i = 0; i < r->lines; i++)
		if (r->line[i].slot[UNIT_SWITCH].op != GOP_NONE)
			r->line[i].slot[UNIT_SWITCH].k.u = configuration;
	return r;
}

static Bench bench_new(Ctx *cx, SwitchTest *t)
{
	Bench b = { .cx = cx, .t = t, .sw = switch_new(cx, t->m), .send = make_send(cx, t->m) };
	b.p = processors_new(cx, t->m, b.sw, t->candidates, 1);
	processors_map(cx, b.p, t->candidate);
	b.tested = NEW(&cx->scratch, b.sw->ports, uint8_t);
	b.lane = NEW(&cx->scratch, b.sw->ports, uint32_t);
	for (uint32_t i = 0; i < t->candidates; i++) {
		b.tested[t->candidate[i]] = 1;
		b.lane[t->candidate[i]] = i;
	}
	return b;
}

/* ---- received words ---- */

/* The port that sent this word, or NO_ROUTE. */
static uint32_t sender_of(const Bench *b, uint32_t word, uint32_t i)
{
	for (uint32_t port = 0; port < b->sw->ports; port++)
		if (b->tested[port] && word_of(port, i) == word)
			return port;
	return NO_ROUTE;
}

static bool through_dead(const Bench *b, Trip w)
{
	uint32_t part[TRIP_PARTS], parts = trip_parts(b->sw, w, part);
	for (uint32_t i = 0; i < parts; i++)
		if (b->t->known->dead.port[part[i]])
			return true;
	return false;
}

static void observe(const Bench *b, Controller *c, Evidence *e, const Setting *set, const uint16_t *to)
{
	uint16_t *from = NEW(&b->cx->scratch, b->sw->ports, uint16_t);
	memset(from, 0xFF, b->sw->ports * sizeof *from);
	for (uint32_t p = 0; p < b->sw->ports; p++)
		if (b->tested[p] && to[p] != NO_ROUTE)
			from[to[p]] = (uint16_t)p;
	for (uint32_t p = 0; p < b->sw->ports; p++) {
		Cell word[WORDS];
		if (!b->tested[p])
			continue;
		host_read(c, b->lane[p], false, WORD_OUT, word, WORDS);
		uint16_t middle = from[p] != NO_ROUTE && !b->sw->m->ring_only ? set->in[from[p]] : 0;
		/* One path, or a port without a sender (from NO_ROUTE). A wrong word sent by another port is that port's
		 * fault. */
		Trip w = { from[p], middle, (uint16_t)p };
		bool good = true;
		for (uint32_t i = 0; i < WORDS; i++) {
			uint32_t due = w.from != NO_ROUTE ? word_of(w.from, i) : 0;
			if (word[i].u == due)
				continue;
			uint32_t other = sender_of(b, word[i].u, i);
			if (other != NO_ROUTE)
				evidence_stray(e, other);
			good &= other != NO_ROUTE;
		}
		if (w.from == NO_ROUTE || through_dead(b, w))
			continue;
		if (good)
			evidence_good(e, w);
		else
			evidence_failed(e, w);
	}
}

/* Stores these settings, as many at a time as the switch holds, and sends words through each. */
static void bench_try(Bench *b, const Setting *set, uint32_t count, Evidence *e)
{
	Switch *sw = b->sw;
	for (uint32_t first = 0; first < count; first += sw->stored) {
		Controller *c = controller_new(b->cx, b->p);
		if (b->t->faults)
			faults_attach(b->t->faults, c);
		sw->stored = min_u32(count - first, (uint32_t)sw->m->configurations);
		for (uint32_t i = 0; i < b->t->candidates; i++) {
			Cell word[WORDS];
			for (uint32_t k = 0; k < WORDS; k++)
				word[k].u = word_of(b->t->candidate[i], k);
			host_write(c, i, false, WORD_IN, word, WORDS);
		}
		for (uint32_t k = 0; k < sw->stored; k++) {
			uint16_t *to = NEW(&b->cx->scratch, sw->ports, uint16_t);
			for (uint32_t p = 0; p < sw->ports; p++)
				to[p] = (uint16_t)switch_follow(sw, &set[first + k], p);
			sw->setting[k] = set[first + k];
			sw->to[k] = to;
			controller_call(c, controller_load(c, send_through(b->cx, b->send, k)));
			observe(b, c, e, &set[first + k], to);
		}
		b->t->configurations += sw->stored;
		b->t->cycles += clock_on(b->t->faults, c);
		b->t->host_seconds += c->account.host_seconds;
	}
}

/* ---- settings that locate a fault ---- */

static Setting setting_blank(const Bench *b)
{
	Setting s = setting_new(&b->cx->keep, b->sw);
	size_t bytes = (b->sw->m->ring_only ? b->sw->ports : b->sw->n * b->sw->n) * sizeof *s.in;
	memset(s.in, 0xFF, bytes); /* NO_ROUTE */
	memset(s.middle, 0xFF, bytes);
	memset(s.out, 0xFF, bytes);
	return s;
}

static void setting_add(const Bench *b, Setting *s, Trip w)
{
	assert(b->sw->n > 0);
	uint32_t n = b->sw->n, i = w.from / n, o = w.to / n;
	s->in[w.from] = w.middle;
	s->middle[w.middle * n + i] = (uint16_t)o;
	s->out[o * n + w.middle] = (uint16_t)(w.to % n);
}

/* Single paths that distinguish suspects; false if none is left. */
static bool try_paths(Bench *b, Evidence *e)
{
	Suspects *list;
	uint32_t count = evidence_explain(e, &list), paths = 0;
	Setting *set = NEW(&b->cx->scratch, (size_t)count * MOST_ALIKE, Setting);
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < list[i].parts && list[i].parts > 1; k++) {
			Trip w;
			if (!evidence_path(e, list[i].part[k], b->tested, &w))
				continue;
			set[paths] = setting_blank(b);
			setting_add(b, &set[paths++], w);
		}
	}
	if (paths)
		bench_try(b, set, paths, e);
	return paths;
}

static void locate(Bench *b, Evidence *e)
{
	enum { MOST_PATH_ROUNDS = 8 }; /* each round clears or convicts a part */
	if (b->sw->m->ring_only)
		return;
	uint32_t n = b->sw->n, ports = b->sw->ports;
	Setting *set = NEW(&b->cx->scratch, n, Setting);
	for (uint32_t r = 0; r < n; r++) {
		set[r] = setting_blank(b);
		for (uint32_t p = 0; p < ports; p++) {
			uint32_t middle = (p % n + r) % n, to = (p / n + r) % n * n + middle;
			if (to < ports)
				setting_add(b, &set[r], (Trip){ (uint16_t)p, (uint16_t)middle, (uint16_t)to });
		}
	}
	bench_try(b, set, n, e);
	for (uint32_t i = 0; i < MOST_PATH_ROUNDS && try_paths(b, e); i++)
		;
}

/* ---- rounds ---- */

void located_add(Ctx *cx, SwitchTest *t, const Suspects *s)
{
	t->located = list_more(&cx->keep, t->located, t->locateds, &t->capacity, sizeof *t->located);
	t->located[t->locateds++] = *s;
}

/* Marks the parts that explain the failures as dead; false if all of them were known. */
static bool mark(Ctx *cx, SwitchTest *t, const Evidence *e)
{
	Suspects *list;
	bool found = false;
	uint32_t count = evidence_explain(e, &list);
	for (uint32_t i = 0; i < count; i++) {
		bool fresh = false;
		for (uint32_t k = 0; k < list[i].parts; k++) {
			fresh |= !t->known->dead.port[list[i].part[k]];
			t->known->dead.port[list[i].part[k]] = 1;
		}
		if (!fresh)
			continue;
		found = true;
		located_add(cx, t, &list[i]);
	}
	return found;
}

/* Misrouted words without a failed path: the word arrived at a port without a sender, twice. */
static bool anything_wrong(const Evidence *e) { return e->failures || memchr(e->stray, 1, e->s->ports); }

static bool test_round(Ctx *cx, Bench *b, SwitchTest *t)
{
	Evidence *e = evidence_new(cx, b->sw);
	t->placed = survivors_place(cx, t->known, t->candidate, t->candidates, t->most, t->wanted, t->user);
	t->rounds++;
	bench_try(b, t->placed->setting, t->placed->count, e);
	if (!anything_wrong(e))
		return true;
	locate(b, e);
	/* A port whose word was misrouted lost it, even if all its other words arrived. */
	for (uint32_t p = 0; p < e->s->ports; p++)
		if (e->stray[p])
			evidence_failed(e, (Trip){ (uint16_t)p, 0, (uint16_t)p });
	if (!mark(cx, t, e))
		fail(cx, MP_FAILED, "inspect the machine", "words are lost in the switch, and no part of it explains that");
	return false;
}

void switch_test(Ctx *cx, SwitchTest *t)
{
	Bench b = bench_new(cx, t);
	while (!test_round(cx, &b, t))
		if (t->rounds == MOST_ROUNDS)
			fail(cx, MP_FAILED, "inspect the machine", "after %d rounds of tests the switch still loses words",
			     MOST_ROUNDS);
}
