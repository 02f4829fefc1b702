/* SPDX-License-Identifier: MIT */
/* The switch (report, section 2).  In: a partial permutation of the ports.  Out: the setting of every crossbar of the
 * three stages, or the reason why none exists.  Must hold: each crossbar joins an input to at most one output and vice
 * versa, and no route uses a dead part.  switch_verify shares no code with the router: it simulates tokens.
 *
 * A route passes one input, one middle and one output crossbar; a middle crossbar has one link to each crossbar of the
 * other stages, so choosing middle crossbars is edge colouring (route.c). */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "gf11_machine.h"

enum { WHY = 640 };
enum { INPUT, MIDDLE, OUTPUT };

size_t dead_size(const Switch *s) { return s->ports + 3 * s->n + 2 * (size_t)s->n * s->n; }

Dead dead_new(Arena *a, const Switch *s)
{
	uint8_t *port = NEW(a, dead_size(s), uint8_t), *box = port + s->ports, *link = box + 3 * s->n;
	return (Dead){ { box, box + s->n, box + 2 * s->n }, { link, link + s->n * s->n }, port };
}

void switch_copy_dead(Switch *s, const Switch *from) { memcpy(s->dead.port, from->dead.port, dead_size(s)); }

Switch *switch_new(Ctx *cx, const Machine *m)
{
	Switch *s = NEW(&cx->keep, 1, Switch);
	uint32_t n = (uint32_t)m->crossbar, ports = (uint32_t)m->switch_ports;
	if (!m->ring_only && ports > n * n)
		fail(cx, MP_BAD_INPUT, "write fewer switch-ports, or a larger crossbar",
		     "three stages of %u crossbars of %u ports make a switch of %u ports, not %u", n, n, n * n, ports);
	if (m->processors > m->switch_ports)
		fail(cx, MP_BAD_INPUT, "write fewer processors, or more switch-ports",
		     "%u switch ports are too few for %u processors", ports, (uint32_t)m->processors);
	s->m = m;
	s->n = n;
	s->ports = ports;
	s->dead = dead_new(&cx->keep, s);
	s->setting = NEW(&cx->keep, (size_t)m->configurations, Setting);
	s->to = NEW(&cx->keep, (size_t)m->configurations, uint16_t *);
	s->why = NEW(&cx->keep, WHY, char);
	return s;
}

/* Entries of one stage of a setting. */
static uint32_t stage_size(const Switch *s) { return s->m->ring_only ? s->ports : s->n * s->n; }

Setting setting_new(Arena *a, const Switch *s)
{
	uint32_t size = stage_size(s);
	uint16_t *all = NEW(a, 3 * size, uint16_t);
	return (Setting){ all, all + size, all + 2 * size };
}

/* ---- reasons ---- */

/* Records the reason; returns false. */
static bool reject(const Switch *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool reject(const Switch *s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(s->why, WHY, fmt, ap);
	va_end(ap);
	return false;
}

typedef struct Phrase {
	char s[WHY / 2];
	size_t len;
} Phrase;

static void phrase_add(Phrase *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void phrase_add(Phrase *w, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int len = vsnprintf(w->s + w->len, sizeof w->s - w->len, fmt, ap);
	va_end(ap);
	w->len += len > 0 ? (size_t)len : 0;
	if (w->len >= sizeof w->s)
		w->len = sizeof w->s - 1;
}

static bool link_dead(const Switch *s, int stage, uint32_t x, uint32_t m)
{
	return stage == INPUT ? s->dead.link[0][x * s->n + m] : s->dead.link[1][m * s->n + x];
}

/* "middle crossbar 3, the link from input crossbar 2 to middle crossbar 7 and 4 more": at most three are named. */
static void name_dead(const Switch *s, int stage, uint32_t x, bool middles, Phrase *w, uint32_t *named)
{
	for (uint32_t m = 0; m < s->n; m++) {
		bool middle = s->dead.crossbar[MIDDLE][m];
		if (middle ? !middles : !link_dead(s, stage, x, m))
			continue;
		if (++*named > 3)
			continue;
		phrase_add(w, "%s", *named > 1 ? ", " : "");
		if (middle)
			phrase_add(w, "middle crossbar %u", m);
		else if (stage == INPUT)
			phrase_add(w, "the link from input crossbar %u to middle crossbar %u", x, m);
		else
			phrase_add(w, "the link from middle crossbar %u to output crossbar %u", m, x);
	}
}

static void phrase_end(Phrase *w, uint32_t named)
{
	if (named > 3)
		phrase_add(w, " and %u more", named - 3);
	phrase_add(w, named > 1 ? " are dead" : " is dead");
}

static Phrase dead_anywhere(const Switch *s)
{
	Phrase w = { "", 0 };
	uint32_t named = 0;
	for (uint32_t x = 0; x < s->n; x++) {
		name_dead(s, INPUT, x, x == 0, &w, &named);
		name_dead(s, OUTPUT, x, false, &w, &named);
	}
	phrase_end(&w, named);
	return w;
}

/* Dead parts that limit an input crossbar, an output crossbar or routes between the two; if none, all dead parts. */
static Phrase dead_around(const Switch *s, const uint32_t *in, const uint32_t *out)
{
	Phrase w = { "", 0 };
	uint32_t named = 0;
	if (in)
		name_dead(s, INPUT, *in, true, &w, &named);
	if (out)
		name_dead(s, OUTPUT, *out, !in, &w, &named);
	if (!named)
		return dead_anywhere(s);
	phrase_end(&w, named);
	return w;
}

/* ---- routing ---- */

/* One edge per route, in the order of input ports. */
typedef struct RouteGraph {
	uint32_t edges;
	uint8_t from[MAX_CROSSBAR * MAX_CROSSBAR], into[MAX_CROSSBAR * MAX_CROSSBAR];
	uint16_t port[MAX_CROSSBAR * MAX_CROSSBAR]; /* sending port */
	uint64_t forbid[2][MAX_CROSSBAR];
} RouteGraph;

/* Is it a partial permutation of working ports? */
static bool ports_valid(const Switch *s, const uint16_t *to)
{
	uint64_t taken[4096 / 64] = { 0 };
	for (uint32_t p = 0; p < s->ports; p++) {
		uint32_t q = to[p];
		if (q == NO_ROUTE)
			continue;
		if (q >= s->ports)
			return reject(s, "port %u cannot send to port %u: the switch has ports 0 to %u", p, q, s->ports - 1);
		if (s->dead.port[p] || s->dead.port[q])
			return reject(s, "port %u cannot send to port %u: port %u is dead", p, q, s->dead.port[p] ? p : q);
		if (taken[q / 64] >> q % 64 & 1) {
			uint32_t first = 0;
			while (to[first] != q)
				first++;
			return reject(s, "ports %u and %u both send to port %u", first, p, q);
		}
		taken[q / 64] |= (uint64_t)1 << q % 64;
	}
	return true;
}

/* Crossbars and links: the first flag is 0 and each equals its predecessor; memcmp compares many at a time. */
static bool all_alive(const Switch *s)
{
	const uint8_t *flag = s->dead.crossbar[INPUT];
	return !flag[0] && memcmp(flag, flag + 1, dead_size(s) - s->ports - 1) == 0;
}

static void forbid_dead(const Switch *s, RouteGraph *g)
{
	for (uint32_t x = 0; x < s->n; x++) {
		for (uint32_t m = 0; m < s->n; m++) {
			bool middle = s->dead.crossbar[MIDDLE][m];
			g->forbid[0][x] |= (uint64_t)(middle || link_dead(s, INPUT, x, m)) << m;
			g->forbid[1][x] |= (uint64_t)(middle || link_dead(s, OUTPUT, x, m)) << m;
		}
	}
}

static uint32_t count_bits(uint64_t set)
{
	uint32_t count = 0;
	for (; set; set &= set - 1)
		count++;
	return count;
}

/* Has a crossbar of the first or last stage at most as many routes as reachable middle crossbars? */
static bool crossbar_feasible(const Switch *s, const RouteGraph *g, int stage, uint32_t x, uint32_t routes)
{
	static const char *const words[] = { "input", "", "output" }, *const verbs[] = { "send", "", "receive" };
	uint32_t reach = s->n - count_bits(g->forbid[stage == OUTPUT][x]), first = x * s->n;
	uint32_t last = first + s->n > s->ports ? s->ports - 1 : first + s->n - 1;
	if (routes && s->dead.crossbar[stage][x])
		return reject(s, "ports %u to %u cannot %s: their %s crossbar %u is dead", first, last, verbs[stage],
		              words[stage], x);
	if (routes <= reach)
		return true;
	Phrase w = dead_around(s, stage == INPUT ? &x : NULL, stage == OUTPUT ? &x : NULL);
	return reject(s,
	              "%u of the ports %u to %u of %s crossbar %u %s, but it reaches only %u middle crossbars: %s; "
	              "leave out %u of these routes",
	              routes, first, last, words[stage], x, verbs[stage], reach, w.s, routes - reach);
}

/* Necessary conditions: the routes of each crossbar, and of each pair, have enough middle crossbars. */
static bool routes_feasible(const Switch *s, const uint16_t *to, const RouteGraph *g)
{
	uint16_t routes[2][MAX_CROSSBAR] = { 0 }, pairs[MAX_CROSSBAR * MAX_CROSSBAR] = { 0 };
	for (uint32_t e = 0; e < g->edges; e++) {
		routes[0][g->from[e]]++;
		routes[1][g->into[e]]++;
		pairs[g->from[e] * s->n + g->into[e]]++;
	}
	for (uint32_t x = 0; x < s->n; x++)
		if (!crossbar_feasible(s, g, INPUT, x, routes[0][x]) || !crossbar_feasible(s, g, OUTPUT, x, routes[1][x]))
			return false;
	for (uint32_t e = 0; e < g->edges; e++) {
		uint32_t i = g->from[e], o = g->into[e], reach = s->n - count_bits(g->forbid[0][i] | g->forbid[1][o]);
		if (pairs[i * s->n + o] <= reach)
			continue;
		Phrase w = dead_around(s, &i, &o);
		return reject(s,
		              "port %u cannot send to port %u: of the routes from input crossbar %u to output "
		              "crossbar %u, %u in number, the middle stage can carry %u: %s",
		              g->port[e], to[g->port[e]], i, o, pairs[i * s->n + o], reach, w.s);
	}
	return true;
}

/* Necessary condition: a middle crossbar carries at most as many routes as it has working links to crossbars in use. */
static bool middle_stage_feasible(const Switch *s, const RouteGraph *g)
{
	uint64_t in_use[2] = { 0 };
	for (uint32_t e = 0; e < g->edges; e++) {
		in_use[0] |= (uint64_t)1 << g->from[e];
		in_use[1] |= (uint64_t)1 << g->into[e];
	}
	uint32_t capacity = 0;
	for (uint32_t m = 0; m < s->n; m++) {
		uint32_t links[2] = { 0 };
		for (uint32_t x = 0; x < s->n; x++)
			for (uint32_t side = 0; side < 2; side++)
				links[side] += in_use[side] >> x & ~g->forbid[side][x] >> m & 1;
		capacity += min_u32(links[0], links[1]);
	}
	if (g->edges <= capacity)
		return true;
	Phrase w = dead_anywhere(s);
	return reject(s, "of %u routes the middle stage can carry at most %u: %s; leave out %u of them", g->edges, capacity,
	              w.s, g->edges - capacity);
}

/* Ring: each sending processor sends to the next sending one, the last to the first; the rest are bypassed. */
static bool ring_route(const Switch *s, const uint16_t *to, Setting *out)
{
	uint32_t procs = (uint32_t)s->m->processors, first = 0;
	while (first < procs && to[first] == NO_ROUTE)
		first++;
	for (uint32_t p = first; p < s->ports; p++) {
		uint32_t next = p + 1;
		if (to[p] == NO_ROUTE)
			continue;
		while (next < procs && to[next] == NO_ROUTE)
			next++;
		if (p >= procs || to[p] != (next < procs ? next : first))
			return reject(s,
			              "port %u cannot send to port %u: this machine joins its processors in a "
			              "ring, in which each sends to the next and the last to the first",
			              p, to[p]);
	}
	memcpy(out->in, to, s->ports * sizeof *to);
	return true;
}

static bool network_route(const Switch *s, const uint16_t *to, Setting *out)
{
	RouteGraph g;
	uint8_t middle[MAX_CROSSBAR * MAX_CROSSBAR];
	uint32_t n = s->n;
	uint8_t home[MAX_CROSSBAR * MAX_CROSSBAR]; /* crossbar of a port: a lookup is faster than a division */
	for (uint32_t x = 0; x < n; x++)
		memset(home + x * n, (int)x, n);
	g.edges = 0;
	for (uint32_t p = 0; p < s->ports; p++) {
		if (to[p] == NO_ROUTE)
			continue;
		g.port[g.edges] = (uint16_t)p;
		g.from[g.edges] = home[p];
		g.into[g.edges++] = home[to[p]];
	}
	memset(g.forbid, 0, sizeof g.forbid);
	if (!all_alive(s)) {
		forbid_dead(s, &g);
		if (!routes_feasible(s, to, &g) || !middle_stage_feasible(s, &g))
			return false;
	}
	uint32_t stuck = route_colour(n, g.edges, g.from, g.into, (const uint64_t(*)[MAX_CROSSBAR])g.forbid, middle);
	if (stuck < g.edges) {
		uint32_t i = g.from[stuck], o = g.into[stuck], p = g.port[stuck];
		Phrase w = dead_around(s, &i, &o);
		return reject(s,
		              "no setting was found for port %u to port %u (input crossbar %u to output crossbar "
		              "%u) beside the other routes: %s; leave out some routes of these crossbars",
		              p, to[p], i, o, w.s);
	}
	for (uint32_t e = 0; e < g.edges; e++) {
		uint32_t m = middle[e], p = g.port[e], o = g.into[e];
		out->in[p] = (uint16_t)m;
		out->middle[m * n + g.from[e]] = (uint16_t)o;
		out->out[o * n + m] = (uint16_t)(to[p] - o * n);
	}
	return true;
}

bool switch_route(const Switch *s, const uint16_t *to, Setting *out, const char **why)
{
	size_t bytes = stage_size(s) * sizeof *to;
	memset(out->in, 0xFF, bytes); /* NO_ROUTE everywhere */
	memset(out->middle, 0xFF, bytes);
	memset(out->out, 0xFF, bytes);
	bool done = ports_valid(s, to) && (s->m->ring_only ? ring_route(s, to, out) : network_route(s, to, out));
	if (why)
		*why = done ? NULL : s->why;
	return done;
}

uint32_t switch_store(Ctx *cx, Switch *s, const uint16_t *to)
{
	const char *why;
	if (s->stored >= s->m->configurations)
		fail(cx, MP_BAD_INPUT, "use fewer configurations, or a machine file that holds more",
		     "the switch holds %u configurations and all are taken", s->stored);
	to = s->forced ? s->forced : to;
	Setting set = setting_new(&cx->keep, s);
	if (!switch_route(s, to, &set, &why))
		fail(cx, MP_BAD_INPUT,
		     s->m->ring_only ? "sum by ring or pipelined, or use a machine with a switch"
		                     : "route less, or use a machine whose switch can carry it",
		     "configuration %u cannot be set: %s", s->stored, why);
	s->to[s->stored] = NEW(&cx->keep, s->ports, uint16_t);
	memcpy(s->to[s->stored], to, s->ports * sizeof *to);
	s->setting[s->stored] = set;
	return s->stored++;
}

/* ---- the simulated crossbars ---- */

uint32_t switch_follow(const Switch *s, const Setting *set, uint32_t port)
{
	uint32_t n = s->n;
	if (s->m->ring_only)
		return set->in[port];
	uint32_t i = port / n, m = set->in[port];
	uint32_t o = m < n ? set->middle[m * n + i] : NO_ROUTE;
	uint32_t b = o < n ? set->out[o * n + m] : NO_ROUTE;
	return b < n ? o * n + b : NO_ROUTE;
}

Path switch_path(const Switch *s, const Setting *set, uint32_t port)
{
	uint32_t to = switch_follow(s, set, port);
	if (to == NO_ROUTE || s->m->ring_only)
		return (Path){ .from = port, .to = to };
	return (Path){ port, to, { port / s->n, set->in[port], to / s->n } };
}

static bool is_broken(const uint8_t *part, uint32_t i) { return part && part[i]; }

bool switch_delivers(const Switch *s, const Setting *set, uint32_t port)
{
	const Dead *b = &s->broken;
	bool whole =
		!b->port && !b->crossbar[INPUT] && !b->crossbar[MIDDLE] && !b->crossbar[OUTPUT] && !b->link[0] && !b->link[1];
	Path p = { .to = NO_ROUTE };
	if (!whole)
		p = switch_path(s, set, port);
	if (p.to == NO_ROUTE)
		return true;
	bool carries = !is_broken(b->port, p.from) && !is_broken(b->port, p.to);
	for (int stage = 0; stage < 3 && !s->m->ring_only; stage++)
		carries &= !is_broken(b->crossbar[stage], p.box[stage]);
	for (int stage = 0; stage < 2 && !s->m->ring_only; stage++)
		carries &= !is_broken(b->link[stage], p.box[stage] * s->n + p.box[stage + 1]);
	return carries;
}

enum { NO_TOKEN = 0xFFFF };

/* Moves tokens through one stage; false if a token is lost or an output is joined to two inputs. */
static bool stage_push(const uint8_t *dead, const uint16_t *join, uint32_t n, const uint16_t *in, uint16_t *out)
{
	assert(n <= MAX_CROSSBAR);
	memset(out, 0xFF, n * n * sizeof *out);
	for (uint32_t x = 0; x < n; x++) {
		uint64_t joined = 0;
		for (uint32_t y = 0; y < n; y++) {
			uint32_t z = join[x * n + y];
			if (z == NO_ROUTE && in[x * n + y] == NO_TOKEN)
				continue;
			if (z >= n || dead[x] || joined >> z & 1)
				return false;
			joined |= (uint64_t)1 << z;
			out[x * n + z] = in[x * n + y];
		}
	}
	return true;
}

/* The wires between two stages: output y of crossbar x is input x of crossbar y. */
static bool wires_push(const uint8_t *dead, uint32_t n, const uint16_t *in, uint16_t *out)
{
	for (uint32_t x = 0; x < n; x++) {
		for (uint32_t y = 0; y < n; y++) {
			if (in[x * n + y] != NO_TOKEN && dead[x * n + y])
				return false;
			out[y * n + x] = in[x * n + y];
		}
	}
	return true;
}

bool switch_verify(const Switch *s, const uint16_t *to, const Setting *set)
{
	uint16_t at[MAX_CROSSBAR * MAX_CROSSBAR], next[MAX_CROSSBAR * MAX_CROSSBAR];
	const Dead *d = &s->dead;
	uint32_t n = s->n;
	memset(at, 0xFF, sizeof at);
	for (uint32_t p = 0; p < s->ports; p++) /* token: number of the sending port */
		if (to[p] != NO_ROUTE)
			at[p] = (uint16_t)p;
	if (s->m->ring_only) {
		memset(next, 0xFF, sizeof next);
		for (uint32_t p = 0; p < s->ports; p++)
			if (at[p] != NO_TOKEN && set->in[p] < s->ports)
				next[set->in[p]] = at[p];
	} else if (!stage_push(d->crossbar[INPUT], set->in, n, at, next) || !wires_push(d->link[0], n, next, at) ||
	           !stage_push(d->crossbar[MIDDLE], set->middle, n, at, next) || !wires_push(d->link[1], n, next, at) ||
	           !stage_push(d->crossbar[OUTPUT], set->out, n, at, next))
		return false;
	uint32_t sent = 0, arrived = 0;
	for (uint32_t p = 0; p < s->ports; p++) {
		arrived += next[p] != NO_TOKEN;
		if (to[p] == NO_ROUTE)
			continue;
		sent++;
		if (to[p] >= s->ports || next[to[p]] != p || d->port[p] || d->port[to[p]])
			return false;
	}
	return sent == arrived;
}
