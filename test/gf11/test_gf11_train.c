/* SPDX-License-Identifier: MIT */
/* Training on the simulated GF11 against the oracle: random networks of every kind, on any number of processors; the
 * examples; resuming from checkpoints; refused input.
 *
 * Tolerances are those of doc/gf11.md: NEAR for outputs and gradients (sigmoid by table; the same proportion for errors
 * of a case), CURVE for the error of an epoch. */
#include "gf11_nets.h"

#include "gf11_sum.h"

#define NEAR   5e-3 /* of the largest gradient of the network, and of outputs */
#define NEARER 1e-5 /* the same, with sigmoid power2 */
#define CURVE  1e-3 /* of the error of an epoch: three digits */

/* Vectors of both sides, and the largest number of the second one's. */
typedef struct Pair {
	double *a, *b;
	uint64_t n;
	double reach;
} Pair;

static Pair pair_new(uint64_t n)
{
	return (Pair){ calloc(n + 1, sizeof(double)), calloc(n + 1, sizeof(double)), n, 0 };
}

static void pair_free(Pair *p)
{
	free(p->a);
	free(p->b);
}

static double worst_ever[2][3]; /* shown with MICROPROP_LOUD */

static void pair_near(Pair *p, int what, const char *name, double least, const Side *s)
{
	double worst = 0, near = gf11_own(&s->opt)->sigmoid == SIGMOID_TABLE ? NEAR : NEARER;
	uint64_t at = 0;
	p->reach = least;
	for (uint64_t i = 0; i < p->n; i++)
		p->reach = fmax(p->reach, fabs(p->b[i]));
	for (uint64_t i = 0; i < p->n; i++)
		if (!(fabs(p->a[i] - p->b[i]) <= worst)) {
			worst = fabs(p->a[i] - p->b[i]);
			at = i;
		}
	worst_ever[gf11_own(&s->opt)->sigmoid][what] = fmax(worst_ever[gf11_own(&s->opt)->sigmoid][what], worst / p->reach);
	if (!(worst <= near * p->reach))
		print_error("%s%u procs: %s %llu is %g, should be %g, largest %g\n", s->text,
		            (unsigned)gf11_own(&s->opt)->procs, name, (unsigned long long)at, p->a[at], p->b[at], p->reach);
	assert_true(worst <= near * p->reach);
}

/* ---- agreement on random networks ---- */

static void same_outputs(Side *a, Side *b, uint64_t cases)
{
	Pair p = pair_new(cases * a->net->outputs);
	Tally ta = { 0 }, tb = { 0 };
	assert_int_equal(a->target->evaluate(a->program, 0, cases, &a->stop, p.a, &ta), MP_OK);
	assert_int_equal(b->target->evaluate(b->program, 0, cases, &b->stop, p.b, &tb), MP_OK);
	pair_near(&p, 0, "output", 1, a);
	assert_int_equal(ta.cases, tb.cases);
	assert_int_equal(ta.scored, tb.scored);
	assert_true(fabs(ta.error - tb.error) <= 5 * NEAR * (1 + fabs(tb.error)));
	pair_free(&p);
}

static void same_vectors(Side *a, Side *b, int which, double least)
{
	static const char *const names[] = { "weight", "step", "gradient" };
	Pair p = pair_new(a->net->links);
	if (which == 2) {
		a->target->gradient(a->program, p.a);
		b->target->gradient(b->program, p.b);
	} else {
		a->target->get(a->program, which, 0, ALL_LINKS, p.a);
		b->target->get(b->program, which, 0, ALL_LINKS, p.b);
	}
	pair_near(&p, which == 2 ? 1 : 2, names[which], least, a);
	pair_free(&p);
}

static void make_equal(Side *ref, const Side *gf11)
{
	double *v = calloc(ref->net->links + 1, sizeof *v);
	for (int which = 0; which < 2; which++) {
		gf11->target->get(gf11->program, which, 0, ALL_LINKS, v);
		ref->target->set(ref->program, which, 0, ALL_LINKS, v);
	}
	free(v);
}

/* Three updates, each from the same weights: all cases, some of them in another order, all again. */
static void agree(uint64_t seed, uint32_t most, uint32_t procs)
{
	Draft t;
	Side gf11, ref;
	Options opt;
	options_init(&opt, DEFAULTS_1989);
	draft(&t, seed, most, FN_EVERYWHERE);
	gf11_own(&opt)->procs = procs;
	opt.threads = 1;
	gf11_own(&opt)->sum = (int)roll(&t.d, 4);
	gf11_own(&opt)->sigmoid = roll(&t.d, 3) == 0;
	gf11_own(&opt)->compiler = (int)roll(&t.d, 2);
	side_open(&gf11, &target_gf11, t.text, opt);
	side_open(&ref, &target_ref, t.text, opt);
	uint64_t cases = 1 + roll(&t.d, 2 * procs + 3), order[128];
	Cases c = cases_make(&t.d, gf11.net, cases);
	side_take(&gf11, &c.d);
	side_take(&ref, &c.d);
	same_outputs(&gf11, &ref, cases);
	for (uint64_t i = 0; i < cases; i++)
		order[i] = (i * 7 + 3) % cases;
	for (uint64_t update = 0; update < 3; update++) {
		Batch b = { .example = update == 1 ? order : NULL, .count = update == 1 ? 1 + cases / 2 : cases };
		make_equal(&ref, &gf11);
		Tally x = side_learn(&gf11, b), y = side_learn(&ref, b);
		assert_int_equal(x.cases, y.cases);
		assert_true(fabs(x.error - y.error) <= 5 * NEAR * (1 + fabs(y.error)));
		same_vectors(&gf11, &ref, 2, 0.1);
		side_update(&gf11, update + 1);
		side_update(&ref, update + 1);
		same_vectors(&gf11, &ref, 0, 0.1);
		same_vectors(&gf11, &ref, 1, 0.05);
	}
	make_equal(&ref, &gf11);
	same_outputs(&gf11, &ref, cases);
	cases_free(&c);
	ctx_free(&gf11.cx);
	ctx_free(&ref.cx);
}

/* MICROPROP_NETWORKS=N: N more, of up to 200 units. */
static void random_networks_agree(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++)
		agree(seed, 30, 1 + (uint32_t)(seed * 13 % 40));
	const char *more = getenv("MICROPROP_NETWORKS");
	for (uint64_t seed = 1000; more && seed < 1000 + strtoull(more, NULL, 10); seed++)
		agree(seed, 1 + (uint32_t)(seed * 37 % 200), 1 + (uint32_t)(seed * 13 % 40));
	if (getenv("MICROPROP_LOUD"))
		for (int i = 0; i < 2; i++)
			print_message("%s, worst: outputs %g, gradients %g, weights and steps %g\n", sigmoid_names[i],
			              worst_ever[i][0], worst_ever[i][1], worst_ever[i][2]);
}

/* ---- learning curves of the examples ---- */

typedef struct Course {
	const char *file, *procs, *epochs, *option[4][2];
} Course;

static mp_run *run_on(const mp_net *net, const char *target, const Course *c, mp_data *data)
{
	mp_run *run = run_of(net);
	need(run, mp_run_set(run, "target", target));
	need(run, mp_run_set(run, "procs", c->procs));
	need(run, mp_run_set(run, "epochs", c->epochs));
	need(run, mp_run_set(run, "until", "never"));
	for (size_t i = 0; i < COUNT(c->option) && c->option[i][0]; i++)
		need(run, mp_run_set(run, c->option[i][0], c->option[i][1]));
	need(run, mp_run_train(run, data, NULL, NULL, NULL));
	return run;
}

static void same_curve(const Course *c)
{
	char path[512];
	mp_net *net;
	mp_data *data;
	snprintf(path, sizeof path, "%s/examples/%s", SOURCE_DIR, c->file);
	assert_int_equal(mp_net_open(&net, path, NULL), MP_OK);
	assert_int_equal(mp_data_open(&data, mp_net_get_info(net)->data, NULL, NULL), MP_OK);
	mp_run *a = run_on(net, "gf11", c, data), *b = run_on(net, "ref", c, data);
	size_t points = 0;
	const mp_point *x, *y;
	double worst = 0;
	for (; (x = mp_run_get_point(a, points)) && (y = mp_run_get_point(b, points)); points++)
		worst = fmax(worst, fabs(x->error - y->error) / y->error);
	assert_null(mp_run_get_point(a, points));
	assert_null(mp_run_get_point(b, points));
	if (getenv("MICROPROP_LOUD") || worst > CURVE)
		print_message("%s: %zu epochs, error off by %g at most\n", c->file, points, worst);
	assert_true(worst <= CURVE);
	assert_true(mp_run_get_report(a)->simulated_seconds > 0);
	assert_true(mp_run_get_report(a)->simulated_mcps > 0);
	assert_true(mp_run_get_report(b)->simulated_seconds == 0);
	mp_run_close(a);
	mp_run_close(b);
	mp_data_close(data);
	mp_net_close(net);
}

static void examples_learn_as_on_ref(void **state)
{
	(void)state;
	static const Course course[] = {
		{ "xor.topo", "3", "60", { { "sum", "ring" } } },
		{ "xor.topo", "4", "60", { { "batch", "1" } } },
		{ "encoder-8-3-8.topo", "5", "40", { { "sum", "pipelined" } } },
		{ "parity-4.topo", "7", "40", { { "sum", "halving" } } },
		{ "spirals.topo", "40", "5", { { "rule", "momentum" }, { "sigmoid", "power2" } } },
	};
	for (size_t i = 0; i < COUNT(course); i++)
		same_curve(&course[i]);
}

static const char letters[] = "group window 203 input\ngroup hidden 60\ngroup sound 26 output\n"
							  "connect window -> hidden\nconnect hidden -> sound\nconnect true -> hidden, sound\n"
							  "train rate 0.001 momentum 0.9\n";

/* The network of the report; a few hundred of its cases here, all of them with MICROPROP_NETWORKS. */
static void letters_learn_as_on_ref(void **state)
{
	(void)state;
	bool long_test = getenv("MICROPROP_NETWORKS");
	mp_net *net = net_of(letters);
	mp_data *all, *few, *rest;
	Course c = { "letters", long_test ? "356" : "64", long_test ? "20" : "2", { { NULL, NULL } } };
	assert_int_equal(mp_data_open(&all, "make:letters", NULL, NULL), MP_OK);
	assert_int_equal(mp_data_split(all, 0.02, 1, &few, &rest), MP_OK);
	mp_data *data = long_test ? all : few;
	mp_run *a = run_on(net, "gf11", &c, data), *b = run_on(net, "ref", &c, data);
	double x = mp_run_get_report(a)->error, y = mp_run_get_report(b)->error;
	if (getenv("MICROPROP_LOUD"))
		print_message("letters: error %g on gf11, %g on ref; %g simulated MCPS\n", x, y,
		              mp_run_get_report(a)->simulated_mcps);
	assert_true(fabs(x - y) <= CURVE * y);
	mp_run_close(a);
	mp_run_close(b);
	mp_data_close(all);
	mp_data_close(few);
	mp_data_close(rest);
	mp_net_close(net);
}

/* ---- the same bits ---- */

static mp_run *run_set(const mp_net *net, const char *const (*option)[2])
{
	mp_run *run = run_of(net);
	need(run, mp_run_set(run, "target", "gf11"));
	need(run, mp_run_set(run, "procs", "6"));
	need(run, mp_run_set(run, "until", "never"));
	for (; (*option)[0]; option++)
		need(run, mp_run_set(run, (*option)[0], (*option)[1]));
	return run;
}

static const char small[] =
	"group x 3 input\ngroup h 4\ngroup k 3 tanh\ngroup o 2 output\n"
	"connect x, true -> h\nconnect x, h -> k\nconnect h, k, true -> o\ntrain rate 0.3 momentum 0.9 epochs 6\n";

static mp_data *small_data(void)
{
	float x[20 * 3], y[20 * 2];
	mp_data *data;
	for (uint32_t i = 0; i < COUNT(x); i++)
		x[i] = (float)(2 * random_unit(1, STREAM_DATA, i) - 1);
	for (uint32_t i = 0; i < COUNT(y); i++)
		y[i] = (float)random_unit(2, STREAM_DATA, i);
	assert_int_equal(mp_data_new(&data, 20, 3, 2, x, y, NULL, 0, NULL), MP_OK);
	return data;
}

/* However weight changes are summed, and stopped in the middle of an epoch. */
static void resuming_gives_the_same_bits(void **state)
{
	(void)state;
	static const char *const sums[] = { "ring", "tree", "pipelined", "halving" }, *const batches[] = { "all", "7" };
	mp_net *net = net_of(small);
	mp_data *data = small_data();
	for (size_t i = 0; i < COUNT(sums) * COUNT(batches); i++) {
		const char *const option[][2] = { { "sum", sums[i / 2] }, { "batch", batches[i % 2] }, { NULL, NULL } };
		mp_run *whole = run_set(net, option), *first = run_set(net, option), *rest = run_of(net);
		resuming_changes_nothing(whole, first, rest, data);
		assert_string_equal(mp_run_get_report(whole)->fingerprint, mp_run_get_report(rest)->fingerprint);
		assert_true(mp_run_get_report(whole)->simulated_seconds == mp_run_get_report(rest)->simulated_seconds);
		mp_run_close(whole);
		mp_run_close(first);
		mp_run_close(rest);
	}
	mp_data_close(data);
	mp_net_close(net);
}

static void threads_give_the_same_bits(void **state)
{
	(void)state;
	static const char *const one[][2] = { { "threads", "1" }, { "procs", "300" }, { NULL, NULL } };
	static const char *const two[][2] = { { "threads", "2" }, { "procs", "300" }, { NULL, NULL } };
	mp_net *net = net_of(small);
	mp_data *data = small_data();
	mp_run *a = run_set(net, one), *b = run_set(net, two);
	need(a, mp_run_train(a, data, NULL, NULL, NULL));
	need(b, mp_run_train(b, data, NULL, NULL, NULL));
	same_part(a, b, 0);
	same_part(a, b, 1);
	mp_run_close(a);
	mp_run_close(b);
	mp_data_close(data);
	mp_net_close(net);
}

/* Inputs of 200 cases are more than one routine can fetch. */
static void compilers_give_the_same_bits(void **state)
{
	(void)state;
	enum { MANY = 400, WIDE = 30 };
	static const char *const options[][2][2] = { { { "compiler", "1989" } }, { { "compiler", "best" } } };
	static float x[MANY * WIDE], y[MANY];
	mp_net *net = net_of("group x 30 input\ngroup h 1\ngroup o 1 output\nconnect x, true -> h\nconnect h, true -> o\n"
	                     "train rate 0.01 epochs 2 batch all\n");
	mp_data *data;
	mp_run *run[2];
	for (uint32_t i = 0; i < COUNT(x); i++)
		x[i] = (float)(2 * random_unit(1, STREAM_DATA, i) - 1);
	for (uint32_t i = 0; i < COUNT(y); i++)
		y[i] = (float)random_unit(2, STREAM_DATA, i);
	assert_int_equal(mp_data_new(&data, MANY, WIDE, 1, x, y, NULL, 0, NULL), MP_OK);
	for (int i = 0; i < 2; i++) {
		run[i] = run_set(net, options[i]);
		need(run[i], mp_run_set(run[i], "procs", "2"));
		need(run[i], mp_run_train(run[i], data, NULL, NULL, NULL));
	}
	same_part(run[0], run[1], 0);
	same_part(run[0], run[1], 1);
	mp_run_close(run[0]);
	mp_run_close(run[1]);
	mp_data_close(data);
	mp_net_close(net);
}

/* Testing in between, on more cases than a batch has, changes nothing: the machine grows or takes them in parts. */
static void testing_in_between_changes_nothing(void **state)
{
	(void)state;
	static const char *const batches[] = { "all", "3" };
	mp_net *net = net_of(small);
	mp_data *data = small_data(), *more;
	float x[90] = { 0 }, y[60] = { 0 };
	assert_int_equal(mp_data_new(&more, 30, 3, 2, x, y, NULL, 0, NULL), MP_OK);
	for (size_t i = 0; i < COUNT(batches); i++) {
		const char *const option[][2] = { { "batch", batches[i] }, { NULL, NULL } };
		mp_run *a = run_set(net, option), *b = run_set(net, option);
		testing_changes_nothing(a, b, data, more);
		mp_run_close(a);
		mp_run_close(b);
	}
	mp_data_close(more);
	mp_data_close(data);
	mp_net_close(net);
}

/* ---- stopping, refusing ---- */

static void stopped_batch_leaves_nothing(void **state)
{
	(void)state;
	Side s;
	Options opt;
	options_init(&opt, DEFAULTS_1989);
	gf11_own(&opt)->procs = 4;
	opt.threads = 1;
	side_open(&s, &target_gf11, small, opt);
	Dice d = { 5, 0 };
	Cases c = cases_make(&d, s.net, 10);
	side_take(&s, &c.d);
	double *g = calloc(s.net->links, sizeof *g);
	Batch b = { .count = 10 };
	Tally t = { 0 };
	side_learn(&s, b);
	s.target->gradient(s.program, g);
	assert_true(g[0] != 0);
	s.stop = 1;
	assert_int_equal(s.target->accumulate(s.program, &b, 0, 1, &s.stop, &t), MP_STOPPED);
	assert_int_equal(t.cases, 0);
	s.stop = 0;
	s.target->gradient(s.program, g);
	for (uint64_t i = 0; i < s.net->links; i++)
		assert_true(g[i] == 0);
	free(g);
	cases_free(&c);
	ctx_free(&s.cx);
}

typedef struct Refusal {
	const char *text, *option, *value, *says;
} Refusal;

static void what_it_cannot_do_is_refused(void **state)
{
	(void)state;
	static const char memory[] = "group x 3 input\ngroup h 2\ngroup o 2 output\ngroup c 2 context\n"
								 "copy h -> c\nconnect x, c -> h\nconnect h -> o\n";
	static const Refusal refusal[] = {
		{ small, "rule", "doug", "target gf11 has no rule doug" },
		{ small, "procs", "567", "procs is 567: gf11 has 566 processors" },
		{ small, "machine", "nowhere.machine", "nowhere.machine" },
		{ memory, "bptt", "full", "errors cannot go back through time" },
		{ "group x 9000 input\ngroup o 2 output\nconnect x -> o\n", "epochs", "1", "SRAM" },
	};
	mp_data *data = small_data();
	for (size_t i = 0; i < COUNT(refusal); i++) {
		mp_net *net = net_of(refusal[i].text);
		mp_run *run = run_of(net);
		need(run, mp_run_set(run, "target", "gf11"));
		need(run, mp_run_set(run, refusal[i].option, refusal[i].value));
		mp_data *own = data;
		if (mp_net_get_info(net)->inputs != 3) {
			float *x = calloc(9000, sizeof *x), y[2] = { 0 };
			assert_int_equal(mp_data_new(&own, 1, 9000, 2, x, y, NULL, 0, NULL), MP_OK);
			free(x);
		}
		assert_int_equal(mp_run_train(run, own, NULL, NULL, NULL), MP_BAD_INPUT);
		expect_words(mp_run_messages(run), refusal[i].says);
		if (own != data)
			mp_data_close(own);
		mp_run_close(run);
		mp_net_close(net);
	}
	mp_data_close(data);
}

/* Memory that runs out anywhere while the machine is built: a message, no leak, and it can be tried again. */
static void memory_may_run_out(void **state)
{
	(void)state;
	mp_net *net = net_of(small);
	mp_data *data = small_data();
	bool done = false;
	long step = 1;
	for (long at = 1; !done; at += step, step += at / 8) {
		Meter m = { .fail_at = at };
		mp_allocator alloc = { sizeof alloc, meter_resize, &m };
		mp_run *run;
		mp_status s = mp_run_new(&run, net, &alloc);
		if (s == MP_OK && (s = mp_run_set(run, "target", "gf11")) == MP_OK &&
		    (s = mp_run_set(run, "procs", "2")) == MP_OK && (s = mp_run_set(run, "epochs", "1")) == MP_OK)
			s = mp_run_train(run, data, NULL, NULL, NULL);
		assert_true(s == MP_OK || s == MP_NO_MEMORY);
		if (run && s == MP_NO_MEMORY)
			expect_words(mp_run_messages(run), "out of memory");
		done = s == MP_OK;
		mp_run_close(run);
		assert_int_equal(m.live, 0);
	}
	mp_data_close(data);
	mp_net_close(net);
}

static void keep_piece(void *user, const char *text, size_t len)
{
	Buf *b = user;
	buf_add(b, text, len);
}

static void program_can_be_printed(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	jmp_buf edge;
	cx.edge = &edge;
	Buf text = { .arena = &cx.keep };
	char with[1024];
	snprintf(with, sizeof with, "%strain procs 16\n", small);
	mp_net *net = net_of(with), *large = net_of("group x 9000 input\ngroup o 2 output\nconnect x -> o\n");
	assert_int_equal(setjmp(edge), 0);
	assert_int_equal(mp_net_print(net, "program", "gf11", keep_piece, &text), MP_OK);
	expect_words(text.s, "16 processors of gf11");
	expect_words(text.s, "microcode");
	assert_int_equal(mp_net_print(large, "program", "gf11", keep_piece, &text), MP_BAD_INPUT);
	expect_words(mp_net_messages(large), "SRAM");
	mp_net_close(net);
	mp_net_close(large);
	ctx_free(&cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_networks_agree),
		cmocka_unit_test(examples_learn_as_on_ref),
		cmocka_unit_test(letters_learn_as_on_ref),
		cmocka_unit_test_setup_teardown(resuming_gives_the_same_bits, make_folder, remove_folder),
		cmocka_unit_test(threads_give_the_same_bits),
		cmocka_unit_test(compilers_give_the_same_bits),
		cmocka_unit_test(testing_in_between_changes_nothing),
		cmocka_unit_test(stopped_batch_leaves_nothing),
		cmocka_unit_test(what_it_cannot_do_is_refused),
		cmocka_unit_test(memory_may_run_out),
		cmocka_unit_test(program_can_be_printed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
