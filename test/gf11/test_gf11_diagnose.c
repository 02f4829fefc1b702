/* SPDX-License-Identifier: MIT */
/* Diagnosis: on small machines every part of the switch is broken once and must be located; every kind of processor
 * fault must be found, without false positives; a program on the survivors of a faulty machine computes the bits of a
 * fault-free one. */
#include "test.h"

#include "gf11_study.h"
#include "gf11_diagnose.h"

/* ---- machines ---- */

typedef struct Small {
	Machine m;
	const Plan *plan;
} Small;

static Small small_machine(Ctx *cx, uint32_t processors, uint32_t ports, uint32_t crossbar)
{
	Small s = { .m = *machine_open(cx, "gf11"), .plan = plan_layers(cx, 5, 4, 3) };
	s.m.processors = processors;
	s.m.switch_ports = ports;
	s.m.crossbar = crossbar;
	return s;
}

static Diagnosis diagnosis_of(const Small *s, int sum, int compiler)
{
	return (Diagnosis){ .plan = s->plan,
		                .opt = &s->plan->net->options,
		                .m = &s->m,
		                .cases = 40,
		                .o = { .sum = sum, .compiler = compiler, .threads = 1 },
		                .processors = (uint32_t)s->m.processors };
}

static void in_context(void (*body)(Ctx *cx, void *arg), void *arg)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	if (guarded(&cx, body, arg) != MP_OK)
		print_error("%s", ctx_messages(&cx));
	assert_int_equal(cx.status, MP_OK);
	ctx_free(&cx);
}

/* ---- the switch ---- */

/* Scored with knowledge of the fault: exactly that part is located, and every word arrives. */
static void expect_located(Ctx *cx, const Small *s, int sum, const char *spec, bool exactly)
{
	Diagnosis d = diagnosis_of(s, sum, COMPILER_1989);
	Score score = { 0 };
	uint8_t found[4] = { 0 }, changes[4] = { 0 };
	d.faults = faults_new(cx, &s->m, 1);
	faults_add(d.faults, spec);
	diagnose(cx, &d);
	score_diagnosis(&d, &score, found, changes);
	if (score.missed || score.false_alarms || (changes[0] && !found[0]))
		print_error("%s: sum %s: found %d, changes %d, %d false alarms\n", spec, sum_names[sum], found[0], changes[0],
		            (int)score.false_alarms);
	assert_int_equal(score.missed, 0);
	assert_int_equal(score.false_alarms, 0);
	assert_true(found[0] || !changes[0]);
	if (exactly && found[0]) {
		Buf text = { .arena = &cx->scratch };
		assert_int_equal(d.switches.locateds, 1);
		assert_int_equal(d.switches.located[0].parts, 1);
		part_print(d.switches.known, d.switches.located[0].part[0], &text);
		assert_string_equal(text.s, spec);
	}
	assert_true(d.switches.placed->procs > 0);
}

typedef struct Broken {
	const char *spec;
	int sum;
} Broken;

static void broken_part(Ctx *cx, void *arg)
{
	const Broken *b = arg;
	Small s = small_machine(cx, 14, 16, 4);
	expect_located(cx, &s, b->sum, b->spec, true);
}

/* Summation methods alternate. */
static void locate_part(const char *spec)
{
	static uint32_t turn;
	in_context(broken_part, &(Broken){ spec, turn++ % 2 ? SUM_TREE : SUM_PIPELINED });
}

static void every_part_is_located(void **state)
{
	(void)state;
	static const char *const stages[] = { "input", "middle", "output" };
	char spec[40];
	for (int i = 0; i < 16; i++) {
		snprintf(spec, sizeof spec, "port:%d", i);
		locate_part(spec);
	}
	for (int i = 0; i < 12; i++) {
		snprintf(spec, sizeof spec, "crossbar:%s:%d", stages[i / 4], i % 4);
		locate_part(spec);
	}
	for (int i = 0; i < 32; i++) {
		snprintf(spec, sizeof spec, "link:%s:%d:%d", stages[i / 16], i / 4 % 4, i % 4);
		locate_part(spec);
	}
}

/* A middle crossbar less: 3 of 4 ports can send at once.  The tree of 11 needs 8 of them; the ring needs all. */
static void who_is_left_out(Ctx *cx, void *arg)
{
	(void)arg;
	Small s = small_machine(cx, 11, 16, 4);
	Diagnosis tree = diagnosis_of(&s, SUM_TREE, COMPILER_1989), ring = diagnosis_of(&s, SUM_RING, COMPILER_1989);
	tree.faults = ring.faults = faults_new(cx, &s.m, 1);
	faults_add(tree.faults, "crossbar:middle:2");
	diagnose(cx, &tree);
	assert_int_equal(tree.switches.placed->procs, 11);
	diagnose(cx, &ring);
	assert_int_equal(ring.switches.placed->procs, 9);
	assert_int_equal(ring.verdict[3], PROC_NO_ROUTE);
	assert_int_equal(ring.verdict[7], PROC_NO_ROUTE);
	assert_int_equal(ring.verdict[10], PROC_FINE);
}

static void fewest_are_left_out(void **state)
{
	(void)state;
	in_context(who_is_left_out, NULL);
}

static void several_broken(Ctx *cx, void *arg)
{
	(void)arg;
	Small s = small_machine(cx, 60, 64, 8);
	Diagnosis d = diagnosis_of(&s, SUM_HALVING, COMPILER_BEST);
	Score score = { 0 };
	uint8_t found[8], changes[8];
	d.faults = faults_new(cx, &s.m, 1);
	faults_add(
		d.faults,
		"link:input:2:3,port:40,link:middle:5:1,misroute:7:0.3,crossbar:middle:6,dead:11,stuck:30:dram:200:31:1");
	diagnose(cx, &d);
	score_diagnosis(&d, &score, found, changes);
	assert_int_equal(score.injected, 7);
	assert_int_equal(score.detected, 7);
	assert_int_equal(score.false_alarms, 0);
	assert_int_equal(d.verdict[40], PROC_PORT);
	assert_int_equal(d.verdict[7], PROC_PORT);
	assert_int_equal(d.verdict[11], PROC_MEMORY);
	assert_int_equal(d.verdict[30], PROC_MEMORY);
}

static void several_at_once(void **state)
{
	(void)state;
	in_context(several_broken, NULL);
}

static void ring_only(Ctx *cx, void *arg)
{
	(void)arg;
	Small s = small_machine(cx, 9, 16, 4);
	s.m.ring_only = 1;
	expect_located(cx, &s, SUM_RING, "port:4", true);
	expect_located(cx, &s, SUM_PIPELINED, "dead:8", false);
}

static void machine_with_a_ring(void **state)
{
	(void)state;
	in_context(ring_only, NULL);
}

/* ---- processors ---- */

typedef struct Way {
	int sum, compiler;
	bool recurrent;
} Way;

static void whole_machine(Ctx *cx, void *arg)
{
	const Way *w = arg;
	Small s = small_machine(cx, 11, 16, 4);
	if (w->recurrent)
		s.plan = plan_open(cx, SOURCE_DIR "/examples/reber.topo");
	Diagnosis d = diagnosis_of(&s, w->sum, w->compiler);
	uint64_t length[] = { 9, 8, 8, 7, 7, 6, 6, 6, 6, 5, 5, 5, 5, 5, 5 };
	BpSequences sequences = { .length = length, .count = COUNT(length) };
	d.o.sequences = w->recurrent ? &sequences : NULL;
	diagnose(cx, &d);
	assert_int_equal(d.switches.placed->procs, 11);
	assert_int_equal(d.refused, 0);
	assert_int_equal(d.rounds, 1);
}

static void nobody_is_refused_without_cause(void **state)
{
	(void)state;
	for (int sum = 0; sum < SUMS; sum++)
		for (int compiler = 0; compiler < 2; compiler++)
			for (int recurrent = 0; recurrent < 2; recurrent++)
				in_context(whole_machine, &(Way){ sum, compiler, recurrent });
}

/* Fault number i by itself on a machine of its own, by the whole procedure. */
static bool refused_by_itself(Ctx *cx, const Small *s, const Fault *f)
{
	Diagnosis d = diagnosis_of(s, SUM_TREE, COMPILER_1989);
	d.faults = faults_new(cx, &s->m, 1);
	faults_set(d.faults, f, 1);
	diagnose(cx, &d);
	assert_true(d.refused <= 1);
	return d.verdict[f->proc] != PROC_FINE;
}

static void trials(Ctx *cx, void *arg)
{
	(void)arg;
	enum { TRIALS = 60, BY_THEMSELVES = 12 };
	Small s = small_machine(cx, 30, 36, 6);
	Diagnosis d = diagnosis_of(&s, SUM_TREE, COMPILER_1989);
	Score processors = { 0 }, switches = { 0 }, few = { 0 };
	diagnosis_begin(cx, &d);
	trials_processors(&d, TRIALS, 3, &processors);
	assert_int_equal(processors.injected, TRIALS);
	assert_int_equal(processors.missed, 0);
	assert_int_equal(processors.false_alarms, 0);
	assert_true(processors.detected > TRIALS / 2);
	assert_int_equal(processors.detected + processors.harmless, TRIALS);
	trials_switch(&d, TRIALS, 3, &switches);
	assert_int_equal(switches.missed, 0);
	assert_int_equal(switches.false_alarms, 0);
	assert_int_equal(switches.misplaced, 0);
	assert_true(switches.detected > TRIALS / 2);
	/* Side by side or each by itself, the same are found. */
	uint32_t refused = 0;
	const Needs *n = needs_of(&d, 30);
	for (uint64_t i = 0; i < BY_THEMSELVES; i++) {
		Fault f = fault_random_processor(&s.m, 3, i, 30, n->sram_end, n->dram_end);
		refused += refused_by_itself(cx, &s, &f);
	}
	trials_processors(&d, BY_THEMSELVES, 3, &few);
	assert_int_equal(few.detected, refused);
}

static void trials_find_all(void **state)
{
	(void)state;
	in_context(trials, NULL);
}

/* Training finds by itself what is wrong only in arithmetic. */
static void only_training(Ctx *cx, void *arg)
{
	(void)arg;
	Small s = small_machine(cx, 12, 16, 4);
	uint16_t all[12];
	uint8_t common[12];
	for (uint16_t i = 0; i < 12; i++)
		all[i] = i;
	Alone t = { .plan = s.plan,
		        .opt = &s.plan->net->options,
		        .m = &s.m,
		        .o = { .sum = SUM_TREE, .threads = 1 },
		        .cases = 40,
		        .procs = 5,
		        .faults = faults_new(cx, &s.m, 1),
		        .known = switch_new(cx, &s.m),
		        .candidate = all,
		        .candidates = 12 };
	faults_add(t.faults, "alu:3:0.01,stuck:9:sram:1024:30:1,alu:10:1");
	alone_train(cx, &t);
	assert_int_equal(t.rounds, 3);
	assert_int_equal(alone_common(&t, common), 9);
	for (uint32_t i = 0; i < 12; i++)
		assert_int_equal(common[i], i != 3 && i != 9 && i != 10);
}

static void training_finds_wrong_sums(void **state)
{
	(void)state;
	in_context(only_training, NULL);
}

/* ---- the survivors compute what a whole machine computes ---- */

enum { CASES = 40 };

static void train_some(Bp *b, double *w)
{
	static float x[CASES * 5], y[CASES * 3];
	Data d = {
		.name = "some", .cases = CASES, .inputs = 5, .targets = 3, .x = x, .x_type = T_F32, .y = y, .y_type = T_F32
	};
	for (uint32_t i = 0; i < CASES * 5; i++)
		x[i] = (float)random_unit(1, STREAM_DATA, i);
	for (uint32_t i = 0; i < CASES * 3; i++)
		y[i] = (float)random_unit(2, STREAM_DATA, i);
	for (uint64_t i = 0; i < b->net->links; i++)
		w[i] = random_unit(3, STREAM_DATA, i) - 0.5;
	if (!b->summing)
		sum_compile(b);
	bp_weights_write(b, 0, w);
	for (int which = 1; which <= 2; which++) {
		for (uint64_t i = 0; i < b->net->links; i++)
			w[i] = 0;
		bp_weights_write(b, which, w);
	}
	bp_load_cases(b, &d, NULL, CASES);
	Update u = test_update(b->opt);
	for (int i = 0; i < 3; i++) {
		bp_accumulate(b);
		sum_update(b, &u);
	}
	bp_weights_read(b, 0, b->o.procs - 1, w);
}

static void survivors(Ctx *cx, void *arg)
{
	const Way *w = arg;
	Small s = small_machine(cx, 30, 36, 6);
	Diagnosis d = diagnosis_of(&s, w->sum, w->compiler);
	d.faults = faults_new(cx, &s.m, 1);
	faults_add(d.faults, "dead:3,alu:17:0.1,link:input:1:4,crossbar:middle:0,port:20");
	diagnose(cx, &d);
	const Placed *p = d.switches.placed;
	assert_true(p->procs >= 22 && p->procs <= 27);
	BpOptions o = d.o, whole = d.o;
	o.procs = whole.procs = p->procs;
	o.port = p->port;
	o.known = d.switches.known;
	o.faults = d.faults;
	double got[100], expected[100];
	train_some(bp_new(cx, s.plan, d.opt, &s.m, &o, CASES), got);
	train_some(bp_new(cx, s.plan, d.opt, &s.m, &whole, CASES), expected);
	assert_memory_equal(got, expected, s.plan->net->links * sizeof *got);
}

static void survivors_train_as_whole_machines(void **state)
{
	(void)state;
	for (int sum = 0; sum < SUMS; sum++)
		in_context(survivors, &(Way){ sum, sum % 2, false });
}

/* ---- ambiguous cases ---- */

/* Rare enough that the memory tests may see nothing and training something; then it is one word against another. */
static void two_opinions(Ctx *cx, void *arg)
{
	Small s = small_machine(cx, 2, 4, 2);
	Diagnosis d = diagnosis_of(&s, SUM_TREE, COMPILER_1989);
	d.faults = faults_new(cx, &s.m, *(uint64_t *)arg);
	faults_add(d.faults, "alu:1:0.00001");
	diagnose(cx, &d);
}

static void all_fail(Ctx *cx, void *arg)
{
	(void)arg;
	Small s = small_machine(cx, 2, 4, 2);
	Diagnosis d = diagnosis_of(&s, SUM_TREE, COMPILER_1989);
	d.faults = faults_new(cx, &s.m, 1);
	faults_add(d.faults, "dead:0,dead:1");
	diagnose(cx, &d);
}

static bool fails_with(void (*body)(Ctx *cx, void *arg), void *arg, const char *words)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	bool failed = guarded(&cx, body, arg) == MP_FAILED && strstr(ctx_messages(&cx), words);
	ctx_free(&cx);
	return failed;
}

static void says_what_cannot_be_done(void **state)
{
	(void)state;
	bool tied = false;
	for (uint64_t seed = 1; seed <= 40 && !tied; seed++)
		tied = fails_with(two_opinions, &seed, "there is no majority to decide which is right");
	assert_true(tied);
	assert_true(fails_with(all_fail, NULL, "none passed the tests"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_is_located),
		cmocka_unit_test(fewest_are_left_out),
		cmocka_unit_test(several_at_once),
		cmocka_unit_test(machine_with_a_ring),
		cmocka_unit_test(nobody_is_refused_without_cause),
		cmocka_unit_test(trials_find_all),
		cmocka_unit_test(training_finds_wrong_sums),
		cmocka_unit_test(survivors_train_as_whole_machines),
		cmocka_unit_test(says_what_cannot_be_done),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
