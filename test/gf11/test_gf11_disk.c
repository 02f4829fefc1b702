/* SPDX-License-Identifier: MIT */
/* Data from disks: memory holds what the host would have written, for any number of processors and disks; training
 * gives the same bits; the accounting adds up; both claims of section 10.1 hold. */
#include <unistd.h>

#include "gf11_nets.h"

#include "gf11_study.h"

/* ---- a machine and a program by hand ---- */

typedef struct Small { /* a machine with little memory, and how it is used */
	int64_t processors, disks, dram, banks, buffer;
	int compiler;
	bool traced;
	uint32_t threads;
	const char *fault;
	double capacity; /* MB; 0: no limit */
} Small;

static const char text[] =
	"group in 5 input\ngroup hidden 9\ngroup out 3 output\nconnect in -> hidden\nconnect hidden -> out\n"
	"connect true -> hidden, out\n";

typedef struct Made {
	Net *net;
	Machine *m;
	Bp *b;
	Faults *faults;
} Made;
typedef struct Make {
	Small s;
	uint64_t cases;
	int disks;
	bool dry;
	Made made;
} Make;

static void make_body(Ctx *cx, void *arg)
{
	Make *a = arg;
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "small.topo", .text = text, .len = strlen(text) };
	a->made.net = net_parse(cx, src, DEFAULTS_1989);
	const Options *opt = &a->made.net->options;
	Machine *m = a->made.m = machine_open(cx, "gf11");
	m->processors = a->s.processors ? a->s.processors : m->processors;
	m->disks = a->s.disks ? a->s.disks : m->disks;
	m->dram = a->s.dram ? a->s.dram : m->dram;
	m->dram_banks = a->s.banks ? a->s.banks : m->dram_banks;
	m->disk_buffer = a->s.buffer ? a->s.buffer : m->disk_buffer;
	Caps caps;
	target_gf11.caps(&caps);
	BpOptions o = { .sum = SUM_TREE,
		            .sigmoid = SIGMOID_POWER2,
		            .compiler = a->s.compiler,
		            .threads = a->s.threads,
		            .traced = a->s.traced,
		            .disks = a->disks,
		            .dry = a->dry };
	if (a->s.fault) {
		o.faults = a->made.faults = faults_new(cx, m, 1);
		faults_add(o.faults, a->s.fault);
	}
	Bp *b = a->made.b = bp_new(cx, plan_make(cx, a->made.net, &caps), opt, m, &o, a->cases);
	sum_compile(b);
	disk_compile(b);
	double *w = NEW(&cx->scratch, a->made.net->links, double);
	net_weights(a->made.net, 1, 0, ALL_LINKS, w);
	if (!a->dry)
		bp_weights_write(b, 0, w);
}

static Made make(Ctx *cx, Small s, uint64_t cases, int disks, bool dry)
{
	Make a = { s, cases, disks, dry, { 0 } };
	ctx_init(cx, NULL);
	Status status = guarded(cx, make_body, &a);
	if (status != MP_OK)
		print_error("%s\n", ctx_messages(cx));
	assert_int_equal(status, MP_OK);
	return a.made;
}

/* ---- what arrives ---- */

typedef struct Part {
	Bp *b;
	const Data *d;
	uint64_t *part;
	uint64_t count;
} Part;

static void take_body(Ctx *cx, void *arg)
{
	Part *a = arg;
	(void)cx;
	disk_order(a->b, a->d, a->part, a->count);
	disk_take(a->b);
}

/* Every word of the part's room is what bp_load_cases writes there, but for those that a disk got wrong; every
 * other word stays. */
static void arrives(Small s, uint64_t cases)
{
	uint64_t wrong = 0;
	Ctx cx;
	Dice dice = { 3, 0 };
	Made k = make(&cx, s, cases, DISKS_ON, false);
	Bp *b = k.b;
	Cases c = cases_make(&dice, k.net, 4 * cases);
	uint64_t count = cases < (uint64_t)b->at.slots * b->o.procs ? cases : (uint64_t)b->at.slots * b->o.procs;
	uint64_t *part = calloc(count, sizeof *part);
	for (uint64_t i = 0; i < count; i++)
		part[i] = (i * 13 + 5) % (4 * cases);
	size_t words = (size_t)b->at.dram_end * b->p->lanes;
	uint32_t *before = malloc(words * sizeof *before), *after = malloc(words * sizeof *after);
	memcpy(before, b->p->dram, words * sizeof *before);
	assert_int_equal(guarded(&cx, take_body, &(Part){ b, &c.d, part, count }), MP_OK);
	memcpy(after, b->p->dram, words * sizeof *after);
	memcpy(b->p->dram, before, words * sizeof *before);
	assert_int_equal(b->loaded, count);
	bp_load_cases(b, &c.d, part, count);
	for (size_t w = 0; w < words; w++)
		if (s.fault && after[w] != b->p->dram[w]) {
			uint32_t bits = after[w] ^ b->p->dram[w];
			assert_int_equal(w % b->p->lanes % b->disk->disks, 1);
			assert_int_equal(bits & (bits - 1), 0);
			wrong++;
		} else if (w % b->p->lanes < b->o.procs && after[w] != b->p->dram[w]) {
			print_error("%lld processors, %lld disks: word %zu of processor %zu is %08x, not %08x\n",
			            (long long)s.processors, (long long)s.disks, w / b->p->lanes, w % b->p->lanes, after[w],
			            b->p->dram[w]);
			assert_true(false);
		}
	if (s.fault) {
		assert_true(wrong > 0);
		assert_int_equal(wrong, k.faults->happened[FAULT_DISK]);
	}
	free(before);
	free(after);
	free(part);
	cases_free(&c);
	ctx_free(&cx);
}

static void test_arrives(void **state)
{
	(void)state;
	static const int64_t procs[] = { 1, 2, 3, 8, 10, 13, 20, 67, 130 }, disks[] = { 1, 3, 10 };
	for (size_t i = 0; i < COUNT(procs); i++)
		for (size_t k = 0; k < COUNT(disks); k++)
			arrives((Small){ .processors = procs[i],
			                 .disks = disks[k],
			                 .dram = 2048,
			                 .compiler = (int)(i + k) % 2,
			                 .threads = 1 + (uint32_t)i % 3 },
			        9 * (uint64_t)procs[i] - 4);
	arrives((Small){ .processors = 13, .disks = 3, .dram = 2048, .traced = true }, 100);
	arrives((Small){ .processors = 13, .disks = 3, .dram = 2048, .banks = 1 }, 100);
	arrives((Small){ .processors = 13, .disks = 3, .dram = 4096, .banks = 16, .compiler = COMPILER_BEST }, 100);
	arrives((Small){ .processors = 29, .disks = 2, .dram = 2048, .buffer = 16 }, 100);
}

/* A bit of one word in some hundred, of one disk: in as many words of memory as the log says, of its processors. */
static void test_wrong_words(void **state)
{
	(void)state;
	arrives((Small){ .processors = 12, .disks = 3, .dram = 2048, .fault = "disk:1:0.01" }, 12 * 60);
	arrives((Small){ .processors = 12, .disks = 3, .dram = 2048, .fault = "disk:1:0.02", .compiler = COMPILER_BEST },
	        12 * 60);
}

/* ---- training ---- */

/* A machine file in a temporary place: DRAM so small that streaming happens with small data. */
static const char *machine_file(char path[64], const Small *s)
{
	strcpy(path, "/tmp/microprop-disk-XXXXXX");
	FILE *f = fdopen(mkstemp(path), "w");
	assert_non_null(f);
	fprintf(f, "base gf11\nprocessors %lld assumed\ndram %lld words assumed\ndisks %lld units assumed\n",
	        (long long)s->processors, (long long)s->dram, (long long)s->disks);
	if (s->capacity > 0)
		fprintf(f, "disk-capacity %g MB assumed\n", s->capacity);
	if (s->buffer)
		fprintf(f, "disk-buffer %lld words assumed\n", (long long)s->buffer);
	assert_int_equal(fclose(f), 0);
	return path;
}

typedef struct Lesson {
	uint64_t batch;
	uint32_t epochs;
	bool tests, shuffled;
} Lesson;

static Options options_for(const Small *s, const char *machine, int disks, const Lesson *lesson)
{
	Options opt;
	options_init(&opt, DEFAULTS_1989);
	gf11_own(&opt)->machine = machine;
	gf11_own(&opt)->disks = disks;
	gf11_own(&opt)->compiler = s->compiler;
	gf11_own(&opt)->sigmoid = SIGMOID_POWER2;
	opt.threads = 1;
	opt.batch = lesson->batch ? (int64_t)lesson->batch : BATCH_ALL;
	return opt;
}

/* Epochs of batches as the training loop makes them. */
static void train(Side *s, const Cases *c, const Lesson *lesson)
{
	uint64_t n = c->d.cases, size = lesson->batch ? lesson->batch : n, *order = calloc(n, sizeof *order), updates = 0;
	for (uint32_t epoch = 0; epoch < lesson->epochs; epoch++) {
		for (uint64_t i = 0; i < n; i++)
			order[i] = (i * 11 + epoch) % n;
		for (uint64_t done = 0; done < n; done += size) {
			uint64_t count = n - done < size ? n - done : size, left = n - done - count;
			Batch b = { .first = done, .count = count, .next_count = left < size ? left : size };
			b.example = lesson->shuffled ? order + done : NULL;
			side_learn(s, b);
			side_update(s, ++updates);
		}
		if (lesson->tests) {
			Tally t = { 0 };
			assert_int_equal(s->target->evaluate(s->program, 0, n, &s->stop, NULL, &t), MP_OK);
			assert_int_equal(t.cases, n);
		}
	}
	free(order);
}

static double carried_most; /* share of words received by routines of bundles */

/* On a small machine with disks, on one that holds everything, and on the oracle. */
static void learns_the_same(Small s, uint64_t cases, Lesson lesson)
{
	char path[64];
	Dice dice = { 5, 0 };
	Side streamed, hosted, ref;
	const char *machine = machine_file(path, &s);
	side_open(&streamed, &target_gf11, text, options_for(&s, machine, DISKS_AUTO, &lesson));
	Small roomy = s;
	roomy.dram = 65536;
	char other[64];
	side_open(&hosted, &target_gf11, text, options_for(&s, machine_file(other, &roomy), DISKS_OFF, &lesson));
	side_open(&ref, &target_ref, text, options_for(&s, machine, DISKS_OFF, &lesson));
	Cases c = cases_make(&dice, ref.net, cases);
	side_take(&streamed, &c.d);
	side_take(&hosted, &c.d);
	side_take(&ref, &c.d);
	train(&streamed, &c, &lesson);
	train(&hosted, &c, &lesson);
	train(&ref, &c, &lesson);
	double *a = calloc(ref.net->links, sizeof *a), *b = calloc(ref.net->links, sizeof *b),
		   *r = calloc(ref.net->links, sizeof *r);
	for (int which = 0; which < 2; which++) {
		streamed.target->get(streamed.program, which, 0, ALL_LINKS, a);
		hosted.target->get(hosted.program, which, 0, ALL_LINKS, b);
		ref.target->get(ref.program, which, 0, ALL_LINKS, r);
		for (uint64_t i = 0; i < ref.net->links; i++) {
			assert_true(a[i] == b[i]);
			assert_true(fabs(a[i] - r[i]) <= 1e-3 * (1 + fabs(r[i])));
		}
	}
	assert_true(streamed.target->simulator->cycles(streamed.program) >
	            hosted.target->simulator->cycles(hosted.program));
	Buf json = { .arena = &streamed.cx.keep };
	streamed.target->simulator->report(streamed.program, &json);
	assert_non_null(json.s);
	assert_non_null(strstr(json.s, "\"disk_mbs\": "));
	assert_non_null(strstr(json.s, "\"limit\": \""));
	const char *carried = strstr(json.s, "\"disk_carried_share\": ");
	assert_non_null(carried);
	carried_most = fmax(carried_most, strtod(strchr(carried, ':') + 1, NULL));
	free(a);
	free(b);
	free(r);
	cases_free(&c);
	ctx_free(&streamed.cx);
	ctx_free(&hosted.cx);
	ctx_free(&ref.cx);
	remove(path);
	remove(other);
}

static void test_learns_the_same(void **state)
{
	(void)state;
	for (int compiler = 0; compiler < 2; compiler++) {
		Small s = { .processors = 13, .disks = 3, .dram = 480, .compiler = compiler };
		learns_the_same(s, 400, (Lesson){ .epochs = 3 });
		learns_the_same(s, 400, (Lesson){ .epochs = 2, .batch = 90 });
		learns_the_same(s, 400, (Lesson){ .epochs = 2, .batch = 90, .shuffled = true, .tests = true });
		s.disks = 1;
		s.buffer = 64;
		learns_the_same(s, 300, (Lesson){ .epochs = 3, .tests = true });
		s.processors = 6;
		s.disks = 10;
		learns_the_same(s, 300, (Lesson){ .epochs = 2 });
	}
	assert_true(carried_most > 0.5);
}

/* ---- the account ---- */

static void stream_body(Ctx *cx, void *arg)
{
	Bp *b = arg;
	uint64_t room = (uint64_t)b->at.slots * b->o.procs;
	Update u;
	(void)cx;
	update_fill(b->opt, 1, 0, 0, &u);
	disk_order(b, NULL, NULL, room);
	disk_take(b);
	for (int part = 0; part < 4; part++) {
		disk_order(b, NULL, NULL, room);
		bp_accumulate(b);
		sum_update(b, &u);
		disk_take(b);
	}
}

/* Every cycle is accounted for; disks never exceed their bandwidth; slower disks, more waiting. */
static void test_account(void **state)
{
	(void)state;
	double waited[3];
	for (int compiler = 0; compiler < 2; compiler++)
		for (int k = 0; k < 3; k++) {
			Ctx cx;
			Made made = make(
				&cx,
				(Small){ .processors = 60, .disks = (int64_t[]){ 10, 3, 1 }[k], .dram = 900, .compiler = compiler },
				5000, DISKS_ON, true);
			Bp *b = made.b;
			assert_int_equal(b->at.data_buffers, 2);
			assert_int_equal(guarded(&cx, stream_body, b), MP_OK);
			DiskAccount none = { 0 }, a = disk_account(b, &none);
			assert_true(a.cycles == b->cycles_forward + b->cycles_backward + b->cycles_units + b->cycles_moves +
			                            b->cycles_update + b->cycles_receive + b->cycles_wait +
			                            b->c->account.call_cycles);
			assert_true(a.cycles == bp_cycles(b));
			double most = b->disk->rate * b->disk->disks * (double)a.cycles;
			assert_true((double)a.words <= most + b->disk->disks);
			assert_true(a.bytes == 4 * a.rows * b->o.procs);
			assert_true(a.rows == 5 * b->disk->rows);
			assert_true(a.carried <= a.rows);
			assert_true(a.load > 0 && a.load_wait <= a.wait);
			waited[k] = (double)(a.wait - a.load_wait) / (double)a.cycles;
			assert_true(k == 0 || waited[k] >= waited[k - 1]);
			assert_true(k > 0 || !disk_is_limit(&a));
			assert_true(k < 2 || compiler == COMPILER_1989 || disk_is_limit(&a));
			ctx_free(&cx);
		}
}

/* Parts that take the same cycles are not all gone through when nothing is executed: the figures are those of going
 * through them. */
static void epochs_body(Ctx *cx, void *arg)
{
	Make *a = arg;
	make_body(cx, a);
	EpochSpec s = {
		.plan = a->made.b->plan, .opt = &a->made.net->options, .m = a->made.m, .o = a->made.b->o, .cases = a->cases
	};
	Epoch e[2];
	s.cases = 9 * epoch_simulate(cx, &s, NULL).part + 17;
	for (int i = 0; i < 2; i++) {
		s.o.dry = i;
		e[i] = epoch_simulate(cx, &s, NULL);
	}
	assert_true(s.cases >= 8 * e[0].part && e[0].wait + e[0].carried + e[0].receive > 0);
	assert_memory_equal(&e[0], &e[1], sizeof e[0]);
}

static void test_parts_that_are_the_same(void **state)
{
	(void)state;
	for (int k = 0; k < 4; k++) {
		Ctx cx;
		Make a = { { .processors = 60, .disks = (int64_t[]){ 10, 3, 1, 2 }[k], .dram = 900, .compiler = k % 2 },
			       12345,
			       DISKS_ON,
			       true,
			       { 0 } };
		ctx_init(&cx, NULL);
		Status status = guarded(&cx, epochs_body, &a);
		if (status != MP_OK)
			print_error("%s\n", ctx_messages(&cx));
		assert_int_equal(status, MP_OK);
		ctx_free(&cx);
	}
}

/* Section 10.1: "the entire DRAM of each processor can be filled in less than 15 seconds, and our NETTALK data set
 * could be loaded in a fraction of a second". 230 words a case, 12,022 of them. */
static void test_claims(void **state)
{
	(void)state;
	Ctx cx;
	Made made = make(&cx, (Small){ 0 }, 566, DISKS_ON, true);
	disk_order_rows(made.b, 524288);
	disk_take(made.b);
	double seconds = 50e-9 * (double)bp_cycles(made.b), bytes = 566 * 524288.0 * 4;
	assert_true(seconds < 15 && seconds > bytes / 80e6);
	ctx_free(&cx);
	made = make(&cx, (Small){ 0 }, 566, DISKS_ON, true);
	disk_order_rows(made.b, 22 * 232);
	disk_take(made.b);
	seconds = 50e-9 * (double)bp_cycles(made.b);
	assert_true(seconds > 0.13 && seconds < 0.2);
	ctx_free(&cx);
}

/* ---- what is refused ---- */

static void refused(const char *net, Options opt, const char *why)
{
	Side s = { .target = &target_gf11, .text = net, .opt = opt };
	Dice dice = { 7, 0 };
	ctx_init(&s.cx, NULL);
	Status status = guarded(&s.cx, side_build, &s);
	if (status == MP_OK) {
		Cases c = cases_make(&dice, s.net, 500);
		s.data = c.d;
		status = guarded(&s.cx, side_bind, &s);
		cases_free(&c);
	}
	if (status != MP_BAD_INPUT)
		print_error("%s is not refused\n", why);
	assert_int_equal(status, MP_BAD_INPUT);
	if (!strstr(ctx_messages(&s.cx), why))
		print_error("%s\n", ctx_messages(&s.cx));
	assert_non_null(strstr(ctx_messages(&s.cx), why));
	ctx_free(&s.cx);
}

static void test_refused(void **state)
{
	(void)state;
	char path[64];
	Lesson lesson = { 0 };
	Small none = { .processors = 13, .disks = 0, .dram = 480 }, tight = { .processors = 13, .disks = 3, .dram = 280 };
	refused(text, options_for(&none, machine_file(path, &none), DISKS_ON, &lesson), "there is no disk on");
	refused(text, options_for(&none, path, DISKS_AUTO, &lesson), "DRAM");
	remove(path);
	refused(text, options_for(&tight, machine_file(path, &tight), DISKS_AUTO, &lesson), "words of DRAM");
	tight.compiler = COMPILER_BEST;
	refused(text, options_for(&tight, path, DISKS_AUTO, &lesson), "words of DRAM");
	remove(path);
	Small many = { .processors = 500, .disks = 1, .dram = 480, .buffer = 16 };
	refused(text, options_for(&many, machine_file(path, &many), DISKS_ON, &lesson), "takes 500 transfers");
	remove(path);
	Small full = { .processors = 13, .disks = 3, .dram = 480, .capacity = 0.001 };
	refused(text, options_for(&full, machine_file(path, &full), DISKS_ON, &lesson), "disks of");
	remove(path);
	Options ring = options_for(&none, "gf11-ring", DISKS_ON, &lesson);
	gf11_own(&ring)->sum = SUM_RING;
	refused(text, ring, "there is no disk on gf11-ring");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arrives),
		cmocka_unit_test(test_wrong_words),
		cmocka_unit_test(test_learns_the_same),
		cmocka_unit_test(test_account),
		cmocka_unit_test(test_parts_that_are_the_same),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
