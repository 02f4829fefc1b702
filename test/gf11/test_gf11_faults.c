/* SPDX-License-Identifier: MIT */
/* Fault injection on the GF11: fast execution, with affected processors re-executed cycle by cycle, leaves the memory
 * and the log of a machine that is traced from beginning to end, for every kind of fault and every summation method.
 * Also the effects of single faults, the log, the syntax of specs and its error messages. */
#include <math.h>

#include "toy.h"

#include "gf11_sum.h"
#include "execute.h"

enum { CASES = 19, PROCS = 7, MOST_LINKS = 200, UPDATES = 3 };
static const uint16_t scattered[PROCS] = { 40, 3, 17, 100, 565, 24, 311 };

static const char net_text[] = "group in 3 input\n"
							   "group hidden 5\n"
							   "group wide 4 tanh\n"
							   "group out 2 output\n"
							   "connect in, true -> hidden\n"
							   "connect hidden, true -> wide\n"
							   "connect wide, hidden, true -> out\n";

/* ---- a few updates on a machine with faults ---- */

typedef struct Trial {
	Toy *toy;
	const char *spec; /* NULL: no faults at all */
	uint64_t seed;
	BpOptions o;
	Ctx cx;
	Faults *f;
	Bp *b;
} Trial;

static void trial_body(Ctx *cx, void *arg)
{
	Trial *t = arg;
	double w[MOST_LINKS];
	const Machine *m = machine_open(cx, "gf11");
	if (t->spec) {
		t->f = t->o.faults = faults_new(cx, m, t->seed);
		faults_add(t->f, t->spec);
	}
	t->b = bp_new(cx, t->toy->plan, &t->toy->net->options, m, &t->o, CASES);
	if (!t->b->summing)
		sum_compile(t->b);
	target_ref.get(t->toy->program, 0, 0, ALL_LINKS, w);
	bp_weights_write(t->b, 0, w);
	bp_load_cases(t->b, &t->toy->data, NULL, CASES);
	for (int i = 0; i < UPDATES; i++) {
		Update u;
		update_fill(t->b->opt, (uint64_t)i + 1, 0, 0, &u);
		u.param[P_RATE] = 0.1;
		u.param[P_MOMENTUM] = 0.9;
		bp_accumulate(t->b);
		sum_update(t->b, &u);
	}
}

static void toy_make(Toy *toy)
{
	static float x[CASES * 3], y[CASES * 2];
	toy_open(toy, net_text);
	assert_true(toy->net->links <= MOST_LINKS);
	for (uint32_t i = 0; i < COUNT(x); i++)
		x[i] = (float)(2 * random_unit(7, STREAM_DATA, i) - 1);
	for (uint32_t i = 0; i < COUNT(y); i++)
		y[i] = (float)(0.1 + 0.8 * random_unit(8, STREAM_DATA, i));
	toy_bind(toy, CASES, x, y);
}

static void trial_run(Trial *t)
{
	ctx_init(&t->cx, NULL);
	Status s = guarded(&t->cx, trial_body, t);
	if (s != MP_OK)
		print_error("%s: %s\n", t->spec, ctx_messages(&t->cx));
	assert_int_equal(s, MP_OK);
}

/* The first word that is not the same: -1 in none. */
static int64_t first_difference(const Bp *a, const Bp *b)
{
	for (uint32_t word = 0; word < a->at.dram_end; word++)
		if (memcmp(a->p->dram + (size_t)word * a->p->lanes, b->p->dram + (size_t)word * b->p->lanes,
		           a->o.procs * sizeof(uint32_t)))
			return (int64_t)1 << 32 | word;
	for (uint32_t word = 0; word < (uint32_t)a->m->sram; word++)
		if (memcmp(a->p->sram + (size_t)word * a->p->lanes, b->p->sram + (size_t)word * b->p->lanes,
		           a->o.procs * sizeof(uint32_t)))
			return word;
	return -1;
}

static void same_memory(const Trial *a, const Trial *b)
{
	int64_t at = first_difference(a->b, b->b);
	if (at >= 0)
		print_error("%s, sum %s: %s word %u differs\n", a->spec, sum_names[a->o.sum], at >> 32 ? "DRAM" : "SRAM",
		            (uint32_t)at);
	assert_true(at < 0);
}

static void print_events(const Trial *t, uint64_t from)
{
	for (uint64_t i = from; i < t->f->events && i < from + 3; i++) {
		Buf b = { .arena = &t->f->cx->scratch };
		fault_event_json(t->f, &t->f->event[i], &b);
		print_error("\t%s\n", b.s);
	}
}

static bool same_event(const FaultEvent *a, const FaultEvent *b)
{
	return a->cycle == b->cycle && a->fault == b->fault && a->proc == b->proc && a->place == b->place &&
	       a->addr == b->addr && a->bit == b->bit;
}

static void same_log(const Trial *a, const Trial *b)
{
	for (uint64_t i = 0; i < a->f->events || i < b->f->events; i++) {
		if (i < a->f->events && i < b->f->events && same_event(&a->f->event[i], &b->f->event[i]))
			continue;
		print_error("%s, sum %s: event %llu of %llu and %llu\n", a->spec, sum_names[a->o.sum], (unsigned long long)i,
		            (unsigned long long)a->f->events, (unsigned long long)b->f->events);
		print_events(a, i);
		print_events(b, i);
		assert_true(false);
	}
	assert_memory_equal(a->f->happened, b->f->happened, sizeof a->f->happened);
}

/* ---- fast and traced ---- */

static const struct {
	const char *spec;
	int kind;
} every[] = {
	{ "dead:17", FAULT_DEAD },
	{ "stuck:3:reg:5:30", FAULT_STUCK },
	{ "stuck:40:sram:1100:23:1", FAULT_STUCK },
	{ "stuck:40:dram:130:30:1", FAULT_STUCK },
	{ "stuck:40:dram:200:3:0,stuck:311:dram:90:23,stuck:24:sram:1040:31", FAULT_STUCK },
	{ "flip:100:reg", FAULT_FLIP },
	{ "flip:0.3:reg", FAULT_FLIP },
	{ "flip:1:sram", FAULT_FLIP },
	{ "flip:0.05:dram,flip:20:reg", FAULT_FLIP },
	{ "alu:565:0.001", FAULT_ALU },
	{ "alu:100:1", FAULT_ALU },
	{ "port:24", FAULT_PORT },
	{ "crossbar:input:0", FAULT_CROSSBAR },
	{ "crossbar:middle:0", FAULT_CROSSBAR },
	{ "crossbar:output:4", FAULT_CROSSBAR },
	{ "link:input:0:0", FAULT_LINK },
	{ "misroute:40:0.01", FAULT_MISROUTE },
	{ "misroute:3:1", FAULT_MISROUTE },
	{ "dead:3,dead:565,stuck:3:reg:1:1,alu:3:1,flip:50:reg,misroute:100:0.1,port:17,stuck:40:dram:300:29,flip:0.02",
	  FAULT_FLIP },
};

static void fast_and_traced(int sum, int compiler, int sigmoid)
{
	Toy toy;
	toy_make(&toy);
	for (size_t i = 0; i < COUNT(every); i++) {
		Trial fast = { .toy = &toy, .spec = every[i].spec, .seed = i + 1 };
		fast.o = (BpOptions){
			.procs = PROCS, .port = scattered, .sum = sum, .compiler = compiler, .sigmoid = sigmoid, .threads = 1
		};
		Trial traced = fast;
		traced.o.traced = true;
		trial_run(&fast);
		trial_run(&traced);
		same_log(&fast, &traced);
		same_memory(&fast, &traced);
		if (!fast.f->happened[every[i].kind] && sum == SUM_TREE)
			print_error("%s never happens\n", every[i].spec);
		assert_true(fast.f->happened[every[i].kind] || sum != SUM_TREE);
		ctx_free(&fast.cx);
		ctx_free(&traced.cx);
	}
	toy_close(&toy);
}

static void tree(void **state)
{
	(void)state;
	fast_and_traced(SUM_TREE, COMPILER_1989, SIGMOID_POWER2);
}
static void ring(void **state)
{
	(void)state;
	fast_and_traced(SUM_RING, COMPILER_1989, SIGMOID_TABLE);
}
static void pipelined(void **state)
{
	(void)state;
	fast_and_traced(SUM_PIPELINED, COMPILER_BEST, SIGMOID_POWER2);
}
static void halving(void **state)
{
	(void)state;
	fast_and_traced(SUM_HALVING, COMPILER_BEST, SIGMOID_TABLE);
}

/* More than one block of processors, and threads. */
static void blocks_and_threads(void **state)
{
	(void)state;
	Toy toy;
	toy_make(&toy);
	Trial t[2] = { { .toy = &toy,
		             .spec = "dead:65,stuck:2:reg:7:29,flip:0.05:reg,flip:0.001:dram,alu:69:0.0003,crossbar:middle:3,"
		                     "misroute:66:0.01" } };
	t[0].o = (BpOptions){ .procs = 70, .sum = SUM_TREE, .threads = 2 };
	t[1] = t[0];
	t[1].o.traced = true;
	trial_run(&t[0]);
	trial_run(&t[1]);
	same_log(&t[0], &t[1]);
	same_memory(&t[0], &t[1]);
	ctx_free(&t[0].cx);
	ctx_free(&t[1].cx);
	toy_close(&toy);
}

/* ---- what faults do ---- */

static uint32_t dram(const Trial *t, uint32_t word, uint32_t lane)
{
	return t->b->p->dram[(size_t)word * t->b->p->lanes + lane];
}

static uint32_t lane_of(const Trial *t, uint32_t proc) { return t->b->p->at_port[proc]; }

/* Runs with and without these faults. */
static void beside(Toy *toy, const char *spec, Trial *with, Trial *without)
{
	*without =
		(Trial){ .toy = toy, .seed = 1, .o = { .procs = PROCS, .port = scattered, .sum = SUM_TREE, .threads = 1 } };
	*with = *without;
	with->spec = spec;
	trial_run(with);
	trial_run(without);
}

static uint32_t bit_of_weight(const Trial *t, uint32_t lane, uint32_t bit)
{
	return dram(t, t->b->at.weights, lane) >> bit & 1;
}

/* Faults of processors that are not in the program, that never happen, or that have no effect: the same bits. */
static void nothing_happens(void **state)
{
	(void)state;
	static const char *const idle[] = { "dead:200,stuck:201:reg:1:1,alu:202:1,misroute:203:1,port:204",
		                                "flip:0",
		                                "alu:3:0",
		                                "flip:1e-15",
		                                "",
		                                "disk:1:1",
		                                "stuck:3:dram:500000:4:0",
		                                "misroute:3:0" };
	Toy toy;
	Trial with, without;
	toy_make(&toy);
	for (size_t i = 0; i < COUNT(idle); i++) {
		beside(&toy, idle[i], &with, &without);
		same_memory(&with, &without);
		assert_int_equal(with.f->events, 0);
		assert_int_equal(bp_cycles(with.b), bp_cycles(without.b));
		ctx_free(&with.cx);
		ctx_free(&without.cx);
	}
	toy_close(&toy);
}

/* The sign of this weight never changes in these updates: one way stuck is no fault, the other is one at once. */
static void stuck_as_it_is(void **state)
{
	(void)state;
	Toy toy;
	Trial with, without;
	char spec[40];
	toy_make(&toy);
	beside(&toy, "", &with, &without);
	uint32_t addr = with.b->at.weights, sign = bit_of_weight(&with, lane_of(&with, 17), 31);
	for (uint32_t value = 0; value < 2; value++) {
		ctx_free(&with.cx);
		ctx_free(&without.cx);
		snprintf(spec, sizeof spec, "stuck:17:dram:%u:31:%u", addr, value);
		beside(&toy, spec, &with, &without);
		assert_int_equal(bit_of_weight(&with, lane_of(&with, 17), 31), value);
		assert_int_equal(with.f->events > 0, value != sign);
		assert_int_equal(first_difference(with.b, without.b) >= 0, value != sign);
	}
	ctx_free(&with.cx);
	ctx_free(&without.cx);
	toy_close(&toy);
}

static void the_dead_stay_zero(void **state)
{
	(void)state;
	Toy toy;
	Trial with, without;
	toy_make(&toy);
	beside(&toy, "dead:17", &with, &without);
	uint32_t lane = lane_of(&with, 17);
	for (uint32_t w = 0; w < with.b->at.dram_end; w++)
		assert_int_equal(dram(&with, w, lane), 0);
	for (uint32_t w = 0; w < (uint32_t)with.b->m->sram; w++)
		assert_int_equal(with.b->p->sram[(size_t)w * with.b->p->lanes + lane], 0);
	assert_int_equal(with.f->events, 1);
	assert_int_equal(with.f->event[0].proc, 17);
	const Cell some[2] = { { .u = 1 }, { .u = 2 } };
	Cell back[2];
	host_write(with.b->c, lane, true, 9, some, 2);
	host_read(with.b->c, lane, true, 9, back, 2);
	assert_int_equal(back[0].u | back[1].u, 0);
	ctx_free(&with.cx);
	ctx_free(&without.cx);
	toy_close(&toy);
}

/* Flipped bits in unused words stay flipped; all that differs from a whole machine there is in the log. */
static void flips_are_seen(void **state)
{
	(void)state;
	Toy toy;
	Trial with, without;
	toy_make(&toy);
	beside(&toy, "flip:1e-4:dram", &with, &without);
	uint32_t end = with.b->at.dram_end, seen = 0;
	for (uint64_t i = 0; i < with.f->events; i++) {
		const FaultEvent *e = &with.f->event[i];
		assert_int_equal(e->place, IN_DRAM);
		assert_true(i == 0 || e[-1].cycle <= e->cycle);
		if (e->addr < end)
			continue;
		assert_true(dram(&with, e->addr, lane_of(&with, e->proc)) >> e->bit & 1);
		seen++;
	}
	assert_true(seen > 10);
	double expected = 1e-4 * 32 * 524288.0 * PROCS * 50e-9 * (double)bp_cycles(with.b);
	assert_true(fabs((double)with.f->events - expected) < 5 * sqrt(expected));
	ctx_free(&with.cx);
	ctx_free(&without.cx);
	toy_close(&toy);
}

static void seeds_differ(void **state)
{
	(void)state;
	Toy toy;
	toy_make(&toy);
	Trial t[3];
	for (size_t i = 0; i < COUNT(t); i++) {
		t[i] = (Trial){ .toy = &toy,
			            .spec = "flip:0.01,alu:3:0.001",
			            .seed = i ? 1 : 2,
			            .o = { .procs = PROCS, .port = scattered, .sum = SUM_TREE, .threads = 1 } };
		trial_run(&t[i]);
	}
	same_log(&t[1], &t[2]);
	assert_true(t[0].f->events > 20);
	assert_false(same_event(&t[0].f->event[0], &t[1].f->event[0]));
	for (size_t i = 0; i < COUNT(t); i++)
		ctx_free(&t[i].cx);
	toy_close(&toy);
}

/* ---- the switch ---- */

typedef struct Sent {
	Ctx *cx;
	Machine *m;
	Switch *sw;
	Processors *p;
	Controller *c;
	Faults *f;
	uint32_t routine;
} Sent;

/* Word 0 of each processor goes to word 1 of the next one. */
static void sent_open(Ctx *cx, Sent *s)
{
	*s = (Sent){ .cx = cx, .m = machine_open(cx, "gf11") };
	s->sw = switch_new(cx, s->m);
	s->p = processors_new(cx, s->m, s->sw, 100, 1);
	uint16_t *to = NEW(&cx->scratch, s->sw->ports, uint16_t);
	for (uint32_t i = 0; i < s->sw->ports; i++)
		to[i] = i < 100 ? (uint16_t)((i + 1) % 100) : (uint16_t)NO_ROUTE;
	switch_store(cx, s->sw, to);
	Gen *g = gen_record(cx, s->m, "transfer");
	g_store(g, (Addr){ 0, 1 }, g_xfer(g, 0, g_load(g, (Addr){ 0, 0 })));
	s->c = controller_new(cx, s->p);
	s->routine = controller_load(s->c, schedule(cx, s->m, gen_end(g), &(ScheduleOptions){ .level = 0 }));
	s->f = faults_new(cx, s->m, 1);
	for (uint32_t i = 0; i < 100; i++)
		s->p->sram[i] = 1000 + i;
}

static uint32_t got(const Sent *s, uint32_t proc) { return s->p->sram[s->p->lanes + proc]; }

static void send_with(Sent *s, const char *spec, bool traced)
{
	faults_set(s->f, NULL, 0);
	faults_add(s->f, spec);
	faults_attach(s->f, s->c);
	s->c->traced = traced;
	controller_call(s->c, s->routine);
}

/* Where a word got lost there is 0, and it is nowhere else. */
static void lost(Sent *s, const char *spec, bool (*is_lost)(const Sent *s, const Path *p))
{
	for (int traced = 0; traced < 2; traced++) {
		send_with(s, spec, traced);
		uint32_t missing = 0;
		for (uint32_t i = 0; i < 100; i++) {
			Path p = switch_path(s->sw, &s->sw->setting[0], i);
			bool gone = is_lost(s, &p);
			missing += gone;
			assert_int_equal(got(s, (i + 1) % 100), gone ? 0 : 1000 + i);
		}
		assert_int_equal(s->f->events, missing > 0);
		assert_true(missing < 100);
	}
}

static bool by_none(const Sent *s, const Path *p)
{
	(void)s;
	(void)p;
	return false;
}
static bool by_port(const Sent *s, const Path *p)
{
	(void)s;
	return p->from == 30 || p->to == 30;
}
static bool by_input(const Sent *s, const Path *p)
{
	(void)s;
	return p->box[0] == 2;
}
static bool by_middle(const Sent *s, const Path *p)
{
	(void)s;
	return p->box[1] == 5;
}
static bool by_output(const Sent *s, const Path *p)
{
	(void)s;
	return p->box[2] == 3;
}
static bool by_link(const Sent *s, const Path *p)
{
	Path third = switch_path(s->sw, &s->sw->setting[0], 3);
	return p->box[0] == third.box[0] && p->box[1] == third.box[1];
}

static void switch_body(Ctx *cx, void *arg)
{
	(void)arg;
	Sent s;
	char link[40];
	sent_open(cx, &s);
	lost(&s, "", by_none);
	lost(&s, "port:30", by_port);
	lost(&s, "crossbar:input:2", by_input);
	lost(&s, "crossbar:1:5", by_middle);
	lost(&s, "crossbar:output:3", by_output);
	Path p = switch_path(s.sw, &s.sw->setting[0], 3);
	snprintf(link, sizeof link, "link:input:%u:%u", p.box[0], p.box[1]);
	lost(&s, link, by_link);
	lost(&s, "port:400,crossbar:input:20", by_none);
	lost(&s, "", by_none); /* mended */
	for (int traced = 0; traced < 2; traced++) {
		send_with(&s, "misroute:7:1", traced);
		assert_int_equal(s.f->events, 1);
		uint32_t port = s.f->event[0].addr;
		assert_int_not_equal(port, 8);
		assert_int_equal(got(&s, 8), 0);
		for (uint32_t i = 0; i < 100; i++)
			assert_int_equal(got(&s, i) == 1007, i == port);
	}
}

static void words_get_lost(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Status s = guarded(&cx, switch_body, NULL);
	if (s != MP_OK)
		print_error("%s\n", ctx_messages(&cx));
	assert_int_equal(s, MP_OK);
	ctx_free(&cx);
}

/* ---- specs, the log, disks ---- */

static void specs_body(Ctx *cx, void *arg)
{
	(void)arg;
	static const char *const same[] = { "dead:565",        "stuck:0:reg:255:31:0", "stuck:7:dram:524287:0:1",
		                                "flip:1e-09",      "flip:1:sram",          "alu:3:0.5",
		                                "port:575",        "misroute:4:1",         "crossbar:output:23",
		                                "link:middle:1:2", "disk:9:0.001" };
	Faults *f = faults_new(cx, machine_open(cx, "gf11"), 5);
	Buf all = { .arena = &cx->scratch };
	for (size_t i = 0; i < COUNT(same); i++)
		buf_printf(&all, "%s%s", i ? "," : "", same[i]);
	faults_add(f, all.s);
	assert_int_equal(f->faults, COUNT(same));
	for (size_t i = 0; i < COUNT(same); i++) {
		Buf b = { .arena = &cx->scratch };
		faults_print(&f->fault[i], &b);
		assert_string_equal(b.s, same[i]);
	}
	uint32_t ones = 0;
	for (uint64_t i = 0; i < 64; i++) {
		f = faults_new(cx, f->m, i);
		faults_add(f, "stuck:1:reg:1:1");
		ones += f->fault[0].value;
	}
	assert_in_range(ones, 16, 48); /* drawn from the seed */
}

static void random_body(Ctx *cx, void *arg)
{
	(void)arg;
	const Machine *m = machine_open(cx, "gf11"), *ring_machine = machine_open(cx, "gf11-ring");
	Faults *f = faults_new(cx, m, 1), *r = faults_new(cx, ring_machine, 1);
	uint32_t kinds[FAULT_KINDS] = { 0 };
	for (uint64_t i = 0; i < 400; i++) {
		const Fault any[3] = { fault_random_processor(m, 9, i, 40, 2000, 3000), fault_random_switch(m, 9, i),
			                   fault_random_switch(ring_machine, 9, i) };
		for (int k = 0; k < 3; k++) {
			Buf b = { .arena = &cx->scratch };
			faults_print(&any[k], &b);
			faults_set(k < 2 ? f : r, NULL, 0);
			faults_add(k < 2 ? f : r, b.s); /* or it fails */
			kinds[any[k].kind]++;
		}
		assert_true(any[0].proc < 40 && any[0].addr < 3000 && (any[0].places != 1 << IN_SRAM || any[0].addr < 2000));
	}
	static const int expected[] = { FAULT_DEAD, FAULT_STUCK, FAULT_ALU, FAULT_PORT, FAULT_CROSSBAR, FAULT_LINK };
	for (size_t i = 0; i < COUNT(expected); i++)
		assert_true(kinds[expected[i]] > 40);
}

static void disk_body(Ctx *cx, void *arg)
{
	(void)arg;
	enum { WORDS = 20000 };
	uint32_t *word = NEW(&cx->keep, 2 * WORDS, uint32_t);
	Faults *f = faults_new(cx, machine_open(cx, "gf11"), 3);
	faults_add(f, "disk:2:0.01,disk:4:1");
	faults_disk(f, 77, 1, word, WORDS, 2);
	assert_int_equal(f->events, 0);
	for (uint32_t i = 0; i < WORDS; i += 100) /* in parts as in one */
		faults_disk(f, 77, 2, word + 2 * (size_t)i, 100, 2);
	assert_in_range(f->events, 130, 270);
	uint64_t turned = 0;
	for (uint32_t i = 0; i < 2 * WORDS; i++)
		for (uint32_t bit = 0; bit < 32; bit++)
			turned += word[i] >> bit & 1;
	assert_int_equal(turned, f->events);
	faults_disk(f, 78, 4, word, 5, 1);
	assert_int_equal(f->events, turned + 5);
	Buf b = { .arena = &cx->scratch };
	fault_event_json(f, &f->event[turned + 4], &b);
	assert_non_null(strstr(b.s, "\"kind\": \"disk\", \"fault\": \"disk:4:1\", \"disk\": 4, \"word\": 4, \"bit\": "));
}

static void bodies(void **state)
{
	(void)state;
	static void (*const body[])(Ctx *, void *) = { specs_body, random_body, disk_body };
	for (size_t i = 0; i < COUNT(body); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Status s = guarded(&cx, body[i], NULL);
		if (s != MP_OK)
			print_error("%s\n", ctx_messages(&cx));
		assert_int_equal(s, MP_OK);
		ctx_free(&cx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tree),
		cmocka_unit_test(ring),
		cmocka_unit_test(pipelined),
		cmocka_unit_test(halving),
		cmocka_unit_test(blocks_and_threads),
		cmocka_unit_test(nothing_happens),
		cmocka_unit_test(stuck_as_it_is),
		cmocka_unit_test(the_dead_stay_zero),
		cmocka_unit_test(flips_are_seen),
		cmocka_unit_test(seeds_differ),
		cmocka_unit_test(words_get_lost),
		cmocka_unit_test(bodies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
