/* SPDX-License-Identifier: MIT */
/* Faults on the GF11: what is executed fast, with some processors once more cycle by cycle, leaves the memory and the log of
 * a machine that is traced from beginning to end, for every kind of fault and every way of summing.  What a fault does where
 * that can be said; what is written into the log; what the user may write and what is said about the rest. */
#include <math.h>

#include "toy.h"

#include "../target/gf11/backprop.h"
#include "../target/gf11/execute.h"
#include "../target/gf11/faults.h"

enum { CASES = 19, PROCS = 7, MOST_LINKS = 200, UPDATES = 3 };
static const uint16_t scattered[PROCS] = { 40, 3, 17, 100, 565, 24, 311 };

static const char net_text[] =
	"group in 3 input\n"
	"group hidden 5\n"
	"group wide 4 tanh\n"
	"group out 2 output\n"
	"connect in, true -> hidden\n"
	"connect hidden, true -> wide\n"
	"connect wide, hidden, true -> out\n";

/* ---- a few updates on a machine with faults ---- */

typedef struct Trial {
	Toy *toy;
	const char *spec;         /* NULL: no faults at all */
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
	target_ref.get(t->toy->program, 0, w);
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
		if (memcmp(a->p->dram + (size_t)word * a->p->lanes, b->p->dram + (size_t)word * b->p->lanes, PROCS * sizeof(uint32_t)))
			return (int64_t)1 << 32 | word;
	for (uint32_t word = 0; word < (uint32_t)a->m->sram; word++)
		if (memcmp(a->p->sram + (size_t)word * a->p->lanes, b->p->sram + (size_t)word * b->p->lanes, PROCS * sizeof(uint32_t)))
			return word;
	return -1;
}

static void same_memory(const Trial *a, const Trial *b)
{
	int64_t at = first_difference(a->b, b->b);
	if (at >= 0)
		print_error("%s, sum %s: %s word %u differs\n", a->spec, sum_names[a->o.sum], at >> 32 ? "DRAM" : "SRAM", (uint32_t)at);
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
	return a->cycle == b->cycle && a->fault == b->fault && a->proc == b->proc && a->place == b->place && a->addr == b->addr
	       && a->bit == b->bit;
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

static const struct { const char *spec; int kind; } every[] = {
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
	{ "dead:3,dead:565,stuck:3:reg:1:1,alu:3:1,flip:50:reg,misroute:100:0.1,port:17,stuck:40:dram:300:29,flip:0.02", FAULT_FLIP },
};

static void fast_and_traced(int sum, int compiler, int sigmoid)
{
	Toy toy;
	toy_make(&toy);
	for (size_t i = 0; i < COUNT(every); i++) {
		Trial fast = { .toy = &toy, .spec = every[i].spec, .seed = i + 1 };
		fast.o = (BpOptions){ .procs = PROCS, .port = scattered, .sum = sum, .compiler = compiler, .sigmoid = sigmoid, .threads = 1 };
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

static void tree(void **state) { (void)state; fast_and_traced(SUM_TREE, COMPILER_1989, SIGMOID_POWER2); }
static void ring(void **state) { (void)state; fast_and_traced(SUM_RING, COMPILER_1989, SIGMOID_TABLE); }
static void pipelined(void **state) { (void)state; fast_and_traced(SUM_PIPELINED, COMPILER_BEST, SIGMOID_POWER2); }
static void halving(void **state) { (void)state; fast_and_traced(SUM_HALVING, COMPILER_BEST, SIGMOID_TABLE); }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tree),
		cmocka_unit_test(ring),
		cmocka_unit_test(pipelined),
		cmocka_unit_test(halving),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
