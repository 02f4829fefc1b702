/* SPDX-License-Identifier: MIT */
/* The switch: every setting is verified by tokens; small networks against brute force; dead parts are avoided, or named
 * in the error. */
#include <unistd.h>

#include "test.h"

#include "gf11_study.h"

enum { SEED_STREAM = 90, MOST = MAX_CROSSBAR * MAX_CROSSBAR };

/* A switch of n x n ports with the memory it lives in. */
typedef struct Trial {
	Ctx cx;
	Machine m;
	Switch *s;
	Setting set;
	uint16_t to[MOST];
	const char *why;
	uint64_t draws;
} Trial;

static void bench_make(Ctx *cx, void *arg)
{
	Trial *b = arg;
	b->s = switch_new(cx, &b->m);
	b->set = setting_new(&cx->keep, b->s);
}

static Machine machine(uint32_t n)
{
	return (
		Machine){ .name = "test", .processors = n * n, .crossbar = n, .switch_ports = n * n, .configurations = 1024 };
}

static Trial *bench_on(Machine m)
{
	Trial *b = calloc(1, sizeof *b);
	assert_non_null(b);
	b->m = m;
	ctx_init(&b->cx, NULL);
	assert_int_equal(guarded(&b->cx, bench_make, b), MP_OK);
	return b;
}

static Trial *bench_new(uint32_t n) { return bench_on(machine(n)); }

static void bench_free(Trial *b)
{
	ctx_free(&b->cx);
	free(b);
}

static uint32_t draw(Trial *b, uint32_t below) { return (uint32_t)random_below(7, SEED_STREAM, b->draws++, below); }

static void nobody_sends(Trial *b) { memset(b->to, 0xFF, sizeof b->to); }

static void routes_well(Trial *b)
{
	bool done = switch_route(b->s, b->to, &b->set, &b->why);
	if (!done)
		print_error("not routed: %s\n", b->why);
	assert_true(done);
	assert_null(b->why);
	assert_true(switch_verify(b->s, b->to, &b->set));
	for (uint32_t p = 0; p < b->s->ports; p++)
		assert_int_equal(switch_follow(b->s, &b->set, p), b->to[p]);
}

static void holds(const char *text, const char *words)
{
	if (!strstr(text, words))
		print_error("'%s' is not in: %s\n", words, text);
	assert_non_null(strstr(text, words));
}

static void refused(Trial *b, const char *words)
{
	assert_false(switch_route(b->s, b->to, &b->set, &b->why));
	holds(b->why, words);
}

/* ---- permutations of all kinds ---- */

static void random_ones(void **state)
{
	(void)state;
	static const uint32_t sizes[] = { 1, 2, 3, 5, 7, 16, 24, 24, 24, 31, 64 };
	for (size_t k = 0; k < COUNT(sizes); k++) {
		Trial *b = bench_new(sizes[k]);
		uint32_t ports = b->s->ports;
		for (uint64_t seed = 0; seed < 40; seed++) {
			permutation_random(100 * k + seed, ports, ports, b->to);
			routes_well(b);
			permutation_random(100 * k + seed, ports, draw(b, ports + 1), b->to);
			routes_well(b);
		}
		bench_free(b);
	}
}

/* The regular ones are the hard ones for colouring greedily. */
static void regular_ones(void **state)
{
	(void)state;
	Trial *b = bench_new(24);
	uint32_t n = 24, ports = n * n;
	for (uint32_t kind = 0; kind < 6; kind++) {
		for (uint32_t p = 0; p < ports; p++) {
			const uint32_t to[] = { p,
				                    ports - 1 - p,
				                    p % n * n + p / n,
				                    (p + n) % ports,
				                    (p * 5) % ports,
				                    (p / n * 7 % n) * n + (p % n * 5 + p / n) % n };
			b->to[p] = (uint16_t)to[kind];
		}
		routes_well(b);
	}
	for (uint32_t by = 1; by < ports; by += 5) {
		for (uint32_t p = 0; p < ports; p++)
			b->to[p] = (uint16_t)((p + by) % ports);
		routes_well(b);
	}
	bench_free(b);
}

/* Fewer ports than the crossbars have, as where processors were never built. */
static void ports_left_out(void **state)
{
	(void)state;
	Machine m = machine(5);
	m.switch_ports = m.processors = 22;
	Trial *b = bench_on(m);
	for (uint64_t seed = 0; seed < 100; seed++) {
		permutation_random(seed, 22, 22, b->to);
		routes_well(b);
	}
	b->to[0] = 22;
	refused(b, "port 0 cannot send to port 22: the switch has ports 0 to 21");
	bench_free(b);
}

static void swap(uint16_t *a, uint16_t *b)
{
	uint16_t t = *a;
	*a = *b;
	*b = t;
}

/* All permutations of the first `k` ports, the rest as they are; every `step`-th is routed. */
static uint64_t all_orders(Trial *b, uint32_t k, uint64_t seen, uint64_t step)
{
	if (k <= 1) {
		if (seen % step == 0)
			routes_well(b);
		return seen + 1;
	}
	for (uint32_t i = 0; i < k; i++) {
		swap(&b->to[i], &b->to[k - 1]);
		seen = all_orders(b, k - 1, seen, step);
		swap(&b->to[i], &b->to[k - 1]);
	}
	return seen;
}

/* How many routes go from crossbar to crossbar: all matrices with n in every row and column, filled cell by cell.
 * These are all permutations but for the order of ports inside crossbars. */
static uint32_t all_matrices(Trial *b, uint32_t cell, uint32_t row_left, uint32_t *col_used)
{
	uint32_t n = b->s->n, i = cell / n, o = cell % n, count = 0;
	if (cell == n * n) {
		routes_well(b);
		return 1;
	}
	uint32_t room = n - col_used[o], most = row_left < room ? row_left : room;
	for (uint32_t k = o == n - 1 ? row_left : 0; k <= most; k++) {
		for (uint32_t r = 0; r < k; r++)
			b->to[i * n + n - row_left + r] = (uint16_t)(o * n + col_used[o] + r);
		col_used[o] += k;
		count += all_matrices(b, cell + 1, o == n - 1 ? n : row_left - k, col_used);
		col_used[o] -= k;
	}
	return count;
}

static void small_networks(void **state)
{
	(void)state;
	static const struct {
		uint32_t n, matrices;
		uint64_t orders, step;
	} cases[] = {
		{ 2, 3, 24, 1 },
		{ 3, 55, 362880, 1 },
		{ 4, 10147, 0, 0 },
	};
	for (size_t k = 0; k < COUNT(cases); k++) {
		Trial *b = bench_new(cases[k].n);
		uint32_t col_used[4] = { 0 }, n = cases[k].n;
		assert_int_equal(all_matrices(b, 0, n, col_used), cases[k].matrices);
		for (uint32_t p = 0; p < n * n; p++)
			b->to[p] = (uint16_t)p;
		if (cases[k].step)
			assert_int_equal(all_orders(b, n * n, 0, cases[k].step), cases[k].orders);
		bench_free(b);
	}
}

/* ---- dead parts ---- */

/* Silences ports until every crossbar has at most `most` in use on both sides. */
static void thin_out(Trial *b, uint32_t most)
{
	uint32_t n = b->s->n, in[MAX_CROSSBAR] = { 0 }, out[MAX_CROSSBAR] = { 0 }, start = draw(b, n * n);
	for (uint32_t k = 0; k < n * n; k++) {
		uint32_t p = (k + start) % (n * n), q = b->to[p];
		if (q == NO_ROUTE)
			continue;
		if (in[p / n] == most || out[q / n] == most) {
			b->to[p] = NO_ROUTE;
			continue;
		}
		in[p / n]++;
		out[q / n]++;
	}
}

static void dead_middle(void **state)
{
	(void)state;
	Trial *b = bench_new(24);
	for (uint32_t dead = 0; dead < 24; dead++) {
		memset(b->s->dead.crossbar[1], 0, 24);
		b->s->dead.crossbar[1][dead] = 1;
		for (uint64_t seed = 0; seed < 8; seed++) {
			permutation_random(24 * seed + dead, 576, 576, b->to);
			refused(b, "24 of the ports 0 to 23 of input crossbar 0 send, but it reaches only 23 middle");
			thin_out(b, 23);
			routes_well(b);
			for (uint32_t y = 0; y < 24; y++)
				assert_int_equal(b->set.middle[dead * 24 + y], NO_ROUTE);
		}
	}
	for (uint32_t dead = 0; dead < 16; dead++)
		b->s->dead.crossbar[1][dead] = 1;
	permutation_random(1, 576, 576, b->to);
	thin_out(b, 8 - (uint32_t)b->s->dead.crossbar[1][23]);
	routes_well(b);
	bench_free(b);
}

/* One dead link costs one port of its crossbar and nothing else: all others may be in use. */
static void dead_link_tight(void **state)
{
	(void)state;
	Trial *b = bench_new(24);
	for (uint64_t seed = 0; seed < 100; seed++) {
		uint32_t x = draw(b, 24), m = draw(b, 24);
		bool first = draw(b, 2);
		uint8_t *flag = first ? &b->s->dead.link[0][x * 24 + m] : &b->s->dead.link[1][m * 24 + x];
		*flag = 1;
		permutation_random(seed, 576, 576, b->to);
		refused(b, first ? "the link from input crossbar" : "the link from middle crossbar");
		uint32_t p = 0;
		while ((first ? p : b->to[p]) / 24 != x)
			p++;
		b->to[p] = NO_ROUTE;
		routes_well(b);
		*flag = 0;
	}
	bench_free(b);
}

static void dead_links_many(void **state)
{
	(void)state;
	Trial *b = bench_new(24);
	for (uint64_t seed = 0; seed < 60; seed++) {
		memset(b->s->dead.link[0], 0, 576);
		memset(b->s->dead.link[1], 0, 576);
		for (uint32_t k = 0; k < 48; k++)
			b->s->dead.link[k % 2][draw(b, 576)] = 1;
		permutation_random(seed, 576, 576, b->to);
		thin_out(b, 18);
		routes_well(b);
	}
	bench_free(b);
}

/* Is there any setting?  Tries all middle crossbars for all routes. */
static bool brute_force(const Switch *s, const uint16_t *to, uint32_t p, uint32_t *in_used, uint32_t *out_used)
{
	while (p < s->ports && to[p] == NO_ROUTE)
		p++;
	if (p == s->ports)
		return true;
	uint32_t i = p / s->n, o = to[p] / s->n;
	for (uint32_t m = 0; m < s->n; m++) {
		uint32_t b = 1u << m;
		if (s->dead.crossbar[1][m] || s->dead.link[0][i * s->n + m] || s->dead.link[1][m * s->n + o] ||
		    (in_used[i] | out_used[o]) & b)
			continue;
		in_used[i] |= b;
		out_used[o] |= b;
		bool found = brute_force(s, to, p + 1, in_used, out_used);
		in_used[i] &= ~b;
		out_used[o] &= ~b;
		if (found)
			return true;
	}
	return false;
}

static void dead_against_brute_force(void **state)
{
	(void)state;
	uint32_t possible = 0, impossible = 0, search = 0;
	for (uint32_t n = 2; n <= 4; n++) {
		Trial *b = bench_new(n);
		for (uint64_t seed = 0; seed < 400; seed++) {
			memset(b->s->dead.link[0], 0, n * n);
			memset(b->s->dead.link[1], 0, n * n);
			for (uint32_t k = draw(b, n + 2); k > 0; k--)
				b->s->dead.link[k % 2][draw(b, n * n)] = 1;
			uint32_t in_used[4] = { 0 }, out_used[4] = { 0 };
			permutation_random(seed, n * n, n * n / 2 + draw(b, n * n / 2), b->to);
			if (brute_force(b->s, b->to, 0, in_used, out_used)) {
				routes_well(b);
				possible++;
			} else {
				refused(b, "dead");
				impossible++;
				search += strstr(b->why, "no setting was found") != NULL;
			}
		}
		bench_free(b);
	}
	assert_true(possible > 300 && impossible > 100 && search > 0);
}

static void reasons(void **state)
{
	(void)state;
	Trial *b = bench_new(4);
	nobody_sends(b);
	b->to[1] = 3;
	b->to[6] = 3;
	refused(b, "ports 1 and 6 both send to port 3");
	b->to[6] = 4;
	b->s->dead.port[4] = 1;
	refused(b, "port 6 cannot send to port 4: port 4 is dead");
	b->s->dead.port[4] = 0;
	b->s->dead.crossbar[0][1] = 1;
	refused(b, "ports 4 to 7 cannot send: their input crossbar 1 is dead");
	b->s->dead.crossbar[0][1] = 0;
	b->s->dead.crossbar[2][0] = 1;
	refused(b, "ports 0 to 3 cannot receive: their output crossbar 0 is dead");
	b->s->dead.crossbar[2][0] = 0;
	for (uint32_t m = 0; m < 4; m++)
		b->s->dead.link[m / 2][m < 2 ? 4 + m : 4 * m + 1] = 1; /* input 1 reaches 2, 3; 0, 1 reach output 1 */
	refused(b, "port 6 cannot send to port 4: of the routes from input crossbar 1 to output crossbar 1, "
	           "1 in number, the middle stage can carry 0: the link from");
	holds(b->why, "the link from input crossbar 1 to middle crossbar 0");
	b->to[6] = 8;
	routes_well(b);
	bench_free(b);
}

/* ---- verifying ---- */

static void faults_are_found(void **state)
{
	(void)state;
	Trial *b = bench_new(5);
	permutation_random(3, 25, 25, b->to);
	routes_well(b);
	uint16_t *stage[3] = { b->set.in, b->set.middle, b->set.out };
	for (uint32_t k = 0; k < 3 * 25; k++) {
		uint16_t *at = &stage[k / 25][k % 25], old = *at;
		*at = (uint16_t)((old + 1) % 5); /* two inputs on one output */
		assert_false(switch_verify(b->s, b->to, &b->set));
		*at = NO_ROUTE;
		assert_false(switch_verify(b->s, b->to, &b->set));
		*at = old;
		if (k % 5) {
			swap(at, at - 1);
			assert_false(switch_verify(b->s, b->to, &b->set));
			swap(at, at - 1);
		}
	}
	uint8_t *flag[] = { &b->s->dead.crossbar[0][2], &b->s->dead.crossbar[1][0], &b->s->dead.crossbar[2][4],
		                &b->s->dead.link[0][7],     &b->s->dead.link[1][9],     &b->s->dead.port[8] };
	for (size_t k = 0; k < COUNT(flag); k++) {
		*flag[k] = 1;
		assert_false(switch_verify(b->s, b->to, &b->set));
		*flag[k] = 0;
	}
	assert_true(switch_verify(b->s, b->to, &b->set));
	bench_free(b);
}

static void routing_does_not_allocate(void **state)
{
	(void)state;
	Meter meter = { 0 };
	Alloc alloc = { meter_resize, &meter };
	Trial *b = calloc(1, sizeof *b);
	assert_non_null(b);
	b->m = machine(24);
	ctx_init(&b->cx, &alloc);
	assert_int_equal(guarded(&b->cx, bench_make, b), MP_OK);
	long calls = meter.calls;
	permutation_random(1, 576, 576, b->to);
	routes_well(b);
	b->s->dead.crossbar[1][0] = 1;
	refused(b, "middle crossbar 0 is dead");
	assert_int_equal(meter.calls, calls);
	bench_free(b);
	assert_int_equal(meter.live, 0);
}

/* ---- configurations ---- */

static void store(Ctx *cx, void *arg)
{
	Trial *b = arg;
	switch_store(cx, b->s, b->to);
}

static void configurations(void **state)
{
	(void)state;
	Trial *b = bench_new(24);
	b->s->dead.port[9] = 1;
	permutation_random(0, 576, 576, b->to);
	assert_int_equal(guarded(&b->cx, store, b), MP_BAD_INPUT);
	holds(ctx_messages(&b->cx), "configuration 0 cannot be set: port ");
	b->s->dead.port[9] = 0;
	for (uint32_t k = 0; k < 1024; k++) {
		permutation_random(k, 576, 576, b->to);
		assert_int_equal(guarded(&b->cx, store, b), MP_OK);
	}
	assert_int_equal(b->s->stored, 1024);
	assert_int_equal(guarded(&b->cx, store, b), MP_BAD_INPUT);
	holds(ctx_messages(&b->cx), "the switch holds 1024 configurations and all are taken");
	for (uint32_t k = 0; k < 1024; k++) {
		permutation_random(k, 576, 576, b->to);
		assert_memory_equal(b->s->to[k], b->to, 576 * sizeof *b->to);
		assert_true(switch_verify(b->s, b->to, &b->s->setting[k]));
	}
	bench_free(b);
}

static void ring_machine(void **state)
{
	(void)state;
	Machine m = machine(4);
	m.ring_only = 1;
	m.processors = 13;
	m.switch_ports = 20; /* no crossbars, so no such limit */
	Trial *b = bench_on(m);
	for (uint32_t procs = 1; procs <= 13; procs++) {
		nobody_sends(b);
		for (uint32_t p = 0; p < procs; p++)
			b->to[p] = (uint16_t)((p + 1) % procs);
		routes_well(b);
	}
	b->s->dead.port[5] = 1;
	refused(b, "port 5 is dead");
	b->s->dead.port[5] = 0;
	swap(&b->to[3], &b->to[7]);
	refused(b, "port 3 cannot send to port 8: this machine joins its processors in a ring");
	nobody_sends(b);
	routes_well(b);
	b->to[15] = 16;
	refused(b, "port 15 cannot send to port 16: this machine joins");
	bench_free(b);
}

/* ---- what the user writes ---- */

typedef struct Asked {
	Trial *b;
	const char *spec;
	const char *const *dead;
	size_t deads;
	bool json;
	Buf out;
} Asked;

static void make(Ctx *cx, void *arg)
{
	Asked *a = arg;
	permutation_make(cx, a->spec, (uint32_t)a->b->m.processors, a->b->s->ports, a->b->to);
}

static void kill_part(Ctx *cx, void *arg)
{
	Asked *a = arg;
	dead_add(cx, a->b->s, a->spec);
}

static void command(Ctx *cx, void *arg)
{
	Asked *a = arg;
	Buf text = { .arena = &cx->keep }, json = text;
	const char *why =
		switch_command(cx, &a->b->m, a->spec, a->dead, a->deads, false, &(JsonWriter){ .out = &json }, &text, NULL);
	a->out = a->json ? json : text;
	if (why)
		fail(cx, MP_FAILED, NULL, "%s", why);
}

static void fails_with(Trial *b, void (*body)(Ctx *, void *), const char *spec, const char *words)
{
	Asked a = { .b = b, .spec = spec };
	messages_drop(&b->cx, 0);
	b->cx.errors = 0;
	assert_int_equal(guarded(&b->cx, body, &a), MP_BAD_INPUT);
	holds(ctx_messages(&b->cx), words);
	b->cx.errors = 0;
}

static void makes(Trial *b, const char *spec)
{
	Asked a = { .b = b, .spec = spec };
	assert_int_equal(guarded(&b->cx, make, &a), MP_OK);
	routes_well(b);
}

static const char *file_with(const char *text)
{
	static char path[64];
	snprintf(path, sizeof path, "switch-%ld.routes", (long)getpid());
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	return path;
}

static void permutations(void **state)
{
	(void)state;
	Machine m = machine(4);
	m.processors = 13;
	Trial *b = bench_on(m);
	makes(b, "ring");
	assert_int_equal(b->to[12], 0);
	assert_int_equal(b->to[13], NO_ROUTE);
	makes(b, "tree:3");
	assert_int_equal(b->to[6], 1);
	makes(b, "random:18446744073709551615");
	makes(b, "random:1:0");
	assert_int_equal(b->to[0], NO_ROUTE);
	makes(b, "random:1:7");
	fails_with(b, make, "tree:4", "permutation:1:6: error: there is no step 4: they are numbered 0 to 3");
	fails_with(b, make, "tree:", "permutation:1:6: error: here the number of a step is missing");
	fails_with(b, make, "tree:1x", "permutation:1:7: error: unexpected text here");
	fails_with(b, make, "random:x", "here the seed is missing");
	fails_with(b, make, "random:1:17", "permutation:1:10: error: here a number of routes from 0 to 16 is missing");
	fails_with(b, make, "no-such.file", "no-such.file");
	makes(b, file_with("# two routes\n\n 3 4 # one\r\n15\t0"));
	assert_int_equal(b->to[3], 4);
	assert_int_equal(b->to[15], 0);
	assert_int_equal(b->to[4], NO_ROUTE);
	makes(b, file_with(""));
	fails_with(b, make, file_with("1 2\n3"), ":2:2: error: here the number of a port is missing");
	fails_with(b, make, file_with("1 16\n"), ":1:3: error: there is no port 16: they are numbered 0 to 15");
	fails_with(b, make, file_with("1 99999999999999999999999\n"), ":1:3: error: there is no port 18446744073709551615");
	fails_with(b, make, file_with("1 2 3\n"), ":1:5: error: unexpected text at the end of the line");
	fails_with(b, make, file_with("1 2\n1 3\n"), ":2:1: error: port 1 sends to port 2 already");
	fails_with(b, make, file_with("1 2\n0 2\n"), ":2:3: error: port 2 receives from port 1 already");
	fails_with(b, make, file_with("one two\n"), ":1:1: error: here the number of a port is missing");
	remove(file_with(""));
	bench_free(b);
}

static void dead_words(void **state)
{
	(void)state;
	Trial *b = bench_new(4);
	static const char *const good[] = { "crossbar:input:3", "crossbar:1:2", "link:input:1:2", "link:1:3:0", "port:15" };
	for (size_t k = 0; k < COUNT(good); k++) {
		Asked a = { .b = b, .spec = good[k] };
		assert_int_equal(guarded(&b->cx, kill_part, &a), MP_OK);
	}
	const Dead *d = &b->s->dead;
	assert_true(d->crossbar[0][3] && d->crossbar[1][2] && d->link[0][6] && d->link[1][12] && d->port[15]);
	fails_with(b, kill_part, "", "--dead:1:1: error: the switch has no such part");
	fails_with(b, kill_part, "disk:3", "--dead:1:1: error: the switch has no such part");
	fails_with(b, kill_part, "port:16", "--dead:1:6: error: there is no port 16");
	fails_with(b, kill_part, "crossbar:4:1", "--dead:1:10: error: here the name of a stage is missing");
	fails_with(b, kill_part, "crossbar:middle", "--dead:1:16: error: here ':' and a number are missing");
	fails_with(b, kill_part, "link:output:1:1", "no links go from the output stage");
	fails_with(b, kill_part, "link:0:1:4", "--dead:1:10: error: there is no crossbar 4");
	fails_with(b, kill_part, "port:1:2", "--dead:1:7: error: unexpected text here");
	b->m.ring_only = 1;
	fails_with(b, kill_part, "crossbar:0:1", "this machine is a ring");
	bench_free(b);
}

static void says(Asked *a, const char *words) { holds(a->out.s, words); }

static void commands(void **state)
{
	(void)state;
	static const char *const dead[] = { "crossbar:middle:1", "port:3" };
	Trial *b = bench_new(2);
	Asked a = { .b = b, .spec = "random:4" };
	assert_int_equal(guarded(&b->cx, command, &a), MP_OK);
	says(&a, "switch of 4 ports: 3 stages of 2 crossbars, each 2 x 2\n"
	         "routes: 4, through 2 input, 2 middle and 2 output crossbars\n");
	says(&a, "verified: every token");
	says(&a, "output stage: outputs that inputs 0 to 1 of each crossbar are joined to\n");
	a.json = true;
	assert_int_equal(guarded(&b->cx, command, &a), MP_OK);
	says(&a, "\"ports\": 4, \"permutations\": 1, \"routes\": 4, \"routed\": true, \"verified\": true, "
	         "\"stored\": 1, \"microseconds\": ");
	says(&a, "\"middle_used\": 2, \"reason\": null");
	a.spec = "random:1..2000";
	assert_int_equal(guarded(&b->cx, command, &a), MP_OK);
	says(&a, "\"permutations\": 2000, \"routes\": 4, \"routed\": true, \"verified\": true, \"stored\": 1024, ");
	a.dead = dead;
	a.deads = 2;
	a.spec = "ring";
	assert_int_equal(guarded(&b->cx, command, &a), MP_FAILED);
	says(&a, "\"routed\": false, \"verified\": false, \"stored\": 0, ");
	says(&a, "\"reason\": \"port 2 cannot send to port 3: port 3 is dead\"");
	a.json = false;
	assert_int_equal(guarded(&b->cx, command, &a), MP_FAILED);
	holds(ctx_messages(&b->cx), "the switch cannot be set so: port 2 cannot send to port 3: port 3 is dead");
	a.spec = "random:1:0";
	assert_int_equal(guarded(&b->cx, command, &a), MP_OK);
	says(&a, "dead: middle crossbar 1\ndead: port 3\n");
	fails_with(b, command, "random:5..4", "is no range of seeds");
	fails_with(b, command, "random:1..2000000", "is no range of seeds");
	fails_with(b, command, "random:1..4:5", "is no range of seeds");
	fails_with(b, command, "random:1..4:", "is no range of seeds");
	a.deads = 0;
	a.spec = "random:18446744073709551614..18446744073709551615:3";
	assert_int_equal(guarded(&b->cx, command, &a), MP_OK);
	says(&a, "2 permutations of 3 routes: 2 routed, 2 verified");
	b->m.ring_only = 1;
	a.spec = "ring";
	a.deads = 0;
	assert_int_equal(guarded(&b->cx, command, &a), MP_OK);
	says(&a, "ring of 4 processors, no switch\n");
	bench_free(b);
}

static void machines_refused(void **state)
{
	(void)state;
	static const struct {
		int64_t ports, processors;
		const char *words;
	} cases[] = {
		{ 17, 16, "three stages of 4 crossbars of 4 ports make a switch of 16 ports, not 17" },
		{ 12, 13, "12 switch ports are too few for 13 processors" },
	};
	for (size_t k = 0; k < COUNT(cases); k++) {
		Trial *b = calloc(1, sizeof *b);
		assert_non_null(b);
		b->m = machine(4);
		b->m.switch_ports = cases[k].ports;
		b->m.processors = cases[k].processors;
		ctx_init(&b->cx, NULL);
		assert_int_equal(guarded(&b->cx, bench_make, b), MP_BAD_INPUT);
		holds(ctx_messages(&b->cx), cases[k].words);
		bench_free(b);
	}
}

/* ---- multicasts ---- */

static bool fans_out(Trial *b, const uint16_t *from, const char *refusal)
{
	Fan set = fan_new(&b->cx.keep, b->s);
	const char *why;
	bool done = switch_multicast(b->s, from, &set, &why);
	if (done) {
		assert_null(why);
		assert_true(multicast_verify(b->s, from, &set));
		uint32_t q = 0;
		while (q < b->s->ports && from[q] == NO_ROUTE)
			q++;
		if (q < b->s->ports) { /* a lost word is noticed */
			set.out[q] = NO_ROUTE;
			assert_false(multicast_verify(b->s, from, &set));
		}
	} else if (refusal)
		holds(why, refusal);
	return done;
}

/* Two crossbars of two ports in a stage: what any setting at all delivers, against what the router finds. */
static void multicasts_against_brute_force(void **state)
{
	(void)state;
	enum { N = 2, PORTS = 4, OUTPUTS = 12, CHOICES = 3, VECTORS = 625 };
	static bool possible[VECTORS];
	Trial *b = bench_new(N);
	uint32_t settings = 1;
	memset(possible, 0, sizeof possible);
	for (uint32_t i = 0; i < OUTPUTS; i++)
		settings *= CHOICES;
	for (uint32_t k = 0; k < settings; k++) {
		uint32_t digit[OUTPUTS], rest = k, vector = 0;
		for (uint32_t i = 0; i < OUTPUTS; i++, rest /= CHOICES)
			digit[i] = rest % CHOICES;
		for (uint32_t q = PORTS; q-- > 0;) {
			uint32_t m = digit[8 + q], x = m < N ? digit[4 + m * N + q / N] : N, in = x < N ? digit[x * N + m] : N;
			vector = vector * (PORTS + 1) + (in < N ? x * N + in : PORTS);
		}
		possible[vector] = true;
	}
	for (uint32_t v = 0; v < VECTORS; v++) {
		uint16_t from[PORTS];
		for (uint32_t q = 0, rest = v; q < PORTS; q++, rest /= PORTS + 1)
			from[q] = (uint16_t)(rest % (PORTS + 1) < PORTS ? rest % (PORTS + 1) : NO_ROUTE);
		bool routed = fans_out(b, from, "not every set of multicasts");
		if (routed != possible[v])
			print_error("0..3 receive from %u %u %u %u: routed %d\n", from[0], from[1], from[2], from[3], routed);
		assert_int_equal(routed, possible[v]);
	}
	bench_free(b);
}

/* One sender to all, from each port; a sender to one port of every crossbar beside a crossbar full of senders. */
static void multicasts(void **state)
{
	(void)state;
	enum { N = 24, PORTS = N * N };
	Trial *b = bench_new(N);
	uint16_t from[PORTS];
	for (uint32_t p = 0; p < PORTS; p += 25) {
		for (uint32_t q = 0; q < PORTS; q++)
			from[q] = (uint16_t)p;
		assert_true(fans_out(b, from, NULL));
	}
	for (uint32_t q = 0; q < PORTS; q++)
		from[q] = (uint16_t)(q / 2);
	assert_true(fans_out(b, from, NULL));
	memset(from, 0xFF, sizeof from);
	for (uint32_t i = 0; i < N; i++) {
		from[i * N] = 0;
		from[i * N + 1] = (uint16_t)(i ? i : NO_ROUTE);
		from[i * N + 2] = (uint16_t)(N + i);
	}
	assert_false(fans_out(b, from, "input crossbar 1 has 23 of its 24 links"));
	b->s->dead.crossbar[1][0] = 1;
	for (uint32_t q = 0; q < PORTS; q++)
		from[q] = 7;
	assert_true(fans_out(b, from, NULL));
	b->s->dead.port[9] = 1;
	assert_false(fans_out(b, from, "port 7 cannot send to port 9"));
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(multicasts_against_brute_force),
		cmocka_unit_test(multicasts),
		cmocka_unit_test(random_ones),
		cmocka_unit_test(regular_ones),
		cmocka_unit_test(ports_left_out),
		cmocka_unit_test(small_networks),
		cmocka_unit_test(dead_middle),
		cmocka_unit_test(dead_link_tight),
		cmocka_unit_test(dead_links_many),
		cmocka_unit_test(dead_against_brute_force),
		cmocka_unit_test(reasons),
		cmocka_unit_test(faults_are_found),
		cmocka_unit_test(routing_does_not_allocate),
		cmocka_unit_test(configurations),
		cmocka_unit_test(ring_machine),
		cmocka_unit_test(permutations),
		cmocka_unit_test(dead_words),
		cmocka_unit_test(commands),
		cmocka_unit_test(machines_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
