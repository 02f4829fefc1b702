/* SPDX-License-Identifier: MIT */
/* Many seeds at once: each seed's result is that of a run by itself, to the last bit, whatever the network, the
 * options, the threads and the vector unit; and what becomes of the run they are asked of. */
#include "runs.h"

#include "isa.h"
#include "target.h"

typedef struct Work {
	const char *net, *data;
	const char *options; /* "rate 0.1 rule adam" */
	uint64_t count;
	int lanes; /* are they expected to go side by side? */
} Work;

#define XOR     "group i 2 input\ngroup h 2\ngroup o 1 output\nconnect i, true -> h\nconnect h, true -> o\n"
#define ENCODER "group i 8 input\ngroup h 3\ngroup o 8 output\nconnect i, true -> h\nconnect h, true -> o\n"
#define PARITY  "group i 4 input\ngroup h 8 tanh\ngroup o 1 output\nconnect i, true -> h\nconnect h, true -> o\n"
#define SPIRALS                                                                                                 \
	"group p 2 input\ngroup a 5 tanh\ngroup b 5 tanh\ngroup c 5 tanh\ngroup o 1 output\nconnect p, true -> a\n" \
	"connect p, true, a -> b\nconnect p, true, a, b -> c\nconnect p, true, a, b, c -> o\n"
#define LETTERS "group i 203 input\ngroup h 5\ngroup o 26 output\nconnect i, true -> h\nconnect h, true -> o\n"
#define REBER                                                                                  \
	"group l 7 input\ngroup h 5\ngroup f 7 output\ngroup m 5 context\ncopy h -> m start 0.5\n" \
	"connect l, m, true -> h\nconnect h, true -> f\n"

static mp_data *data_of(const char *name)
{
	mp_data *d;
	assert_int_equal(mp_data_open(&d, name, NULL, NULL), MP_OK);
	return d;
}

static void set_options(mp_run *run, const char *options)
{
	char text[256], *rest = text;
	snprintf(text, sizeof text, "%s", options);
	for (char *name; (name = strtok_r(rest, " ", &rest)) != NULL;)
		need(run, mp_run_set(run, name, strtok_r(rest, " ", &rest)));
}

static mp_run *run_with(const mp_net *net, const char *options)
{
	mp_run *run = run_of(net);
	need(run, mp_run_set(run, "target", "cpu"));
	set_options(run, options);
	return run;
}

static void same_real(double a, double b)
{
	if (memcmp(&a, &b, sizeof a))
		print_error("%.17g is not %.17g\n", a, b);
	assert_memory_equal(&a, &b, sizeof a);
}

/* The seed alone. */
static void check_seed(const mp_net *net, const mp_data *data, const char *options, const mp_seed *s)
{
	char number[32];
	mp_run *run = run_with(net, options);
	snprintf(number, sizeof number, "%llu", (unsigned long long)s->seed);
	need(run, mp_run_set(run, "seed", number));
	mp_status status = mp_run_train(run, data, NULL, NULL, NULL);
	const mp_report *r = mp_run_get_report(run);
	assert_int_equal(status, s->failed ? MP_FAILED : MP_OK);
	if (!s->failed) {
		if (strcmp(s->fingerprint, r->fingerprint))
			print_error("seed %s, %s\n", number, options);
		assert_string_equal(s->fingerprint, r->fingerprint);
		assert_int_equal(s->epochs, r->epoch);
		assert_int_equal(s->solved, r->solved);
		same_real(s->error, r->error);
		same_real(s->right, r->right);
		same_real(s->within, r->within);
	}
	mp_run_close(run);
}

static void check_data(const mp_net *net, const mp_data *data, const Work *w)
{
	mp_run *run = run_with(net, w->options);
	mp_status status = mp_run_restarts(run, data, NULL, w->count, NULL, NULL, NULL);
	const mp_restarts *m = mp_run_get_restarts(run);
	if (status != MP_OK)
		print_error("%s", mp_run_messages(run));
	assert_int_equal(status, m->failed == w->count ? MP_FAILED : MP_OK);
	assert_int_equal(m->done, w->count);
	assert_int_equal(m->count, w->count);
	if (m->lanes != w->lanes)
		print_error("lanes %d: %s\n", m->lanes, w->options);
	assert_int_equal(m->lanes, w->lanes);
	for (uint64_t i = 0; i < m->done; i++) {
		assert_int_equal(mp_run_get_seed(run, i)->seed, mp_run_get_seed(run, 0)->seed + i);
		check_seed(net, data, w->options, mp_run_get_seed(run, i));
	}
	mp_run_close(run);
}

static void check(const Work *w)
{
	mp_net *net = net_of(w->net);
	mp_data *data = data_of(w->data);
	check_data(net, data, w);
	mp_data_close(data);
	mp_net_close(net);
}

static void check_all(const Work *w, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(&w[i]);
}

static void test_examples(void **state)
{
	static const Work works[] = {
		{ XOR, "make:xor", "rate 0.5 epochs 200", 37, 1 },
		{ XOR, "make:xor", "rate 0.5 epochs 60 batch 1", 19, 1 },
		{ XOR, "make:xor", "rate 0.5 epochs 60 batch 3 shuffle off", 19, 1 },
		{ ENCODER, "make:encoder:8-3", "rate 0.3 prime-offset 0.1 epochs 150 threads 2", 35, 1 },
		{ ENCODER, "make:encoder:8-3", "rule quickprop rate 0.5 prime-offset 0.1 decay 0.0001 epochs 100", 17, 1 },
		{ PARITY, "make:parity:4", "error cross-entropy rate 0.1 epochs 150", 33, 1 },
		{ PARITY, "make:parity:4", "error cross-entropy rate 0.05 epochs 10 batch 5 shuffle off", 3, 1 },
		{ PARITY, "make:parity:4", "error cross-entropy rate 0.05 epochs 10 shuffle on", 3, 1 },
		{ SPIRALS, "make:spirals", "rule adam rate 0.01 error cross-entropy epochs 12", 18, 1 },
		{ SPIRALS, "make:spirals", "rate 0.01 batch 7 error cross-entropy epochs 4 threads 3", 50, 1 },
	};
	(void)state;
	check_all(works, COUNT(works));
}

static void test_rules(void **state)
{
	static const char *const extra[] = { "", "schedule cosine", "schedule step step-epochs 7", "warmup 5.5",
		                                 "batch 3 warmup 2" };
	(void)state;
	for (uint32_t r = 0; r < rule_count; r++)
		for (size_t i = 0; i < COUNT(extra); i++) {
			char options[200];
			snprintf(options, sizeof options, "rule %s rate 0.05 decay 0.001 epochs 25 %s", rules[r].name, extra[i]);
			check(&(Work){ ENCODER, "make:encoder:8-3", options, 5, 1 });
		}
}

static void test_ends(void **state)
{
	static const Work works[] = {
		{ XOR, "make:xor", "rate 0.5 updates 57 batch 1", 18, 1 },
		{ XOR, "make:xor", "rate 0.5 updates 3 batch 1", 3, 1 },
		{ XOR, "make:xor", "rate 0.5 updates 57", 3, 1 },
		{ XOR, "make:xor", "rate 0.5 until error:0.1,right:0.9 epochs 500", 18, 1 },
		{ XOR, "make:xor", "rate 0.5 until never epochs 1", 1, 1 },
		{ XOR, "make:xor", "rate 0.5 threshold 0.1 until within:0.75 epochs 300", 20, 1 },
	};
	(void)state;
	check_all(works, COUNT(works));
}

/* All unit functions, errors that go with them, blocks with rates of their own, frozen ones, gaps, single links,
 * outputs that others build on. */
static void test_networks(void **state)
{
	static const Work works[] = {
		{ "group i 4 input\ngroup h 7 relu\ngroup g 5 gaussian\ngroup s 3 sigmoid2\ngroup o 1 linear output\n"
		  "connect i, true -> h\nconnect i, h -> g\nconnect g, true -> s rate 0.5\nconnect s, g, true -> o\n",
		  "make:parity:4", "rate 0.02 epochs 20", 9, 1 },
		{ "group i 8 input\ngroup h 3 softmax\ngroup o 8 softmax output\nconnect i, true -> h\nconnect h, true -> o\n",
		  "make:encoder:8-3", "error divergence rate 0.1 epochs 20", 9, 1 },
		{ "group i 8 input\ngroup h 3\ngroup o 8 softmax output\nconnect i, true -> h\nconnect h, true -> o\n",
		  "make:encoder:8-3", "error cross-entropy rate 0.1 epochs 20", 9, 1 },
		{ "group i 8 input\ngroup h 18\ngroup o 8 softmax output\nconnect i, true -> h\nconnect h, true -> o\n",
		  "make:encoder:8-3", "error squared rate 0.1 epochs 20 batch 3", 9, 1 },
		{ "group i 8 input\ngroup h 6\ngroup o 8 output\nconnect i -> h random 0.4 seed 3\nconnect true -> h frozen\n"
		  "connect h, true -> o rate 0.25\n",
		  "make:encoder:8-3", "rule doug rate 0.5 epochs 20", 9, 1 },
		{ "group i 8 input\ngroup a 3\ngroup o 4 output\ngroup p 4 tanh output\nconnect i, true -> a\nconnect a, true "
		  "-> o\n"
		  "connect o, a, true -> p\n",
		  "make:encoder:8-3", "rate 0.1 epochs 20", 9, 1 },
		{ "group i 8 input\ngroup o 8 output\nconnect i -> o one-to-one\nconnect o -> o later\nconnect i[0] -> o[5] "
		  "rate 2\n",
		  "make:encoder:8-3", "rate 0.1 epochs 20", 9, 1 },
	};
	(void)state;
	check_all(works, COUNT(works));
}

static float noise(uint64_t i) { return (float)(random_unit(5, STREAM_DATA, i) * 2 - 1); }

/* Cases from memory: targets that are missing, weights, many cases, two groups of outputs of which one leads on. */
static void check_made(const char *text, uint64_t cases, uint32_t inputs, uint32_t targets, bool holes, bool weighted,
                       uint64_t sequences, const char *options)
{
	float *x = malloc(cases * inputs * sizeof *x), *y = malloc(cases * targets * sizeof *y),
		  *weight = malloc(cases * sizeof *weight);
	uint64_t seq[64] = { 0 };
	for (uint64_t i = 0; i < cases * inputs; i++)
		x[i] = noise(i);
	for (uint64_t i = 0; i < cases * targets; i++) {
		float r = noise(1000000 + i);
		y[i] = holes && r > 0.6f ? NAN : holes ? (r + 1) / 2 : r > 0;
	}
	for (uint64_t i = 0; i < cases; i++)
		weight[i] = 1 + noise(2000000 + i) / 2;
	for (uint64_t i = 1; i <= sequences; i++)
		seq[i] = i == sequences ? cases : seq[i - 1] + 1 + (i * 7 + i * i) % (cases / sequences);
	mp_data *data;
	assert_int_equal(mp_data_new(&data, cases, inputs, targets, x, y, sequences ? seq : NULL, sequences, NULL), MP_OK);
	if (weighted)
		data->data->weight = weight;
	mp_net *net = net_of(text);
	check_data(net, data, &(Work){ .options = options, .count = 19, .lanes = 1 });
	mp_net_close(net);
	mp_data_close(data);
	free(x);
	free(y);
	free(weight);
}

static void test_data(void **state)
{
	static const char two[] = "group i 3 input\ngroup h 4\ngroup o 3 output\ngroup p 20 output\nconnect i, true -> h\n"
							  "connect h, true -> o\nconnect o, h, true -> p\n";
	static const char small[] =
		"group i 3 input\ngroup h 2 tanh\ngroup o 2 output\nconnect i, true -> h\nconnect h, i, true -> o\n";
	static const char memory[] = "group i 3 input\ngroup h 4 tanh\ngroup o 2 output\ngroup c 4 context\ncopy h -> c\n"
								 "group d 2 context\ncopy o -> d\nconnect i, c, d, true -> h\nconnect h, true -> o\n";
	(void)state;
	check_made(two, 37, 3, 23, false, false, 0, "rate 0.05 epochs 5");
	check_made(two, 37, 3, 23, true, true, 0, "rate 0.05 epochs 5 batch 4");
	check_made(two, 37, 3, 23, true, true, 0, "error cross-entropy rate 0.02 epochs 5");
	check_made(two, 37, 3, 23, false, true, 0, "error cross-entropy rate 0.02 epochs 5 batch 10");
	check_made(small, 5000, 3, 2, false, false, 0, "rate 0.001 epochs 2 threads 2");
	check_made(small, 1500, 3, 2, true, false, 0, "rate 0.001 epochs 2 batch 1200");
	check_made(small, 200, 3, 2, true, false, 12, "rate 0.01 epochs 3 batch 3");
	check_made(memory, 200, 3, 2, true, true, 12, "rate 0.01 epochs 3 batch 3");
	check_made(memory, 200, 3, 2, true, true, 12, "rate 0.01 epochs 3 batch 3 bptt full");
	check_made(memory, 200, 3, 2, false, false, 12, "rate 0.01 epochs 3 bptt full error cross-entropy");
	check_made(memory, 60, 3, 2, false, false, 0, "rate 0.01 epochs 3");
}

static void test_sequences(void **state)
{
	static const Work works[] = {
		{ REBER, "make:reber", "batch 1 rate 0.02 error cross-entropy epochs 2", 18, 1 },
		{ REBER, "make:reber", "batch 8 rate 0.02 error cross-entropy epochs 2 bptt full shuffle off", 5, 1 },
		{ "group b 1 input\ngroup h 4\ngroup n 1 output\ngroup m 4 context\ncopy h -> m start 0.5\nconnect b, m, true "
		  "-> h\n"
		  "connect h, true -> n\n",
		  "make:temporal-xor", "batch 1 rate 0.1 epochs 3 bptt full", 17, 1 },
		{ "group b 1 input\ngroup h 4\ngroup n 1 output\ngroup m 4 context\ncopy h -> m start 0.5\nconnect b, true -> "
		  "h\n"
		  "connect m, h, true -> n\n",
		  "make:temporal-xor", "batch 1 rate 0.1 epochs 3 bptt full", 17, 1 },
	};
	(void)state;
	check_all(works, COUNT(works));
}

/* What is not for lanes goes one by one, with the same report. */
static void test_others(void **state)
{
	static const Work works[] = {
		{ LETTERS, "make:letters", "batch 16 rate 0.02 error cross-entropy epochs 1", 2, 0 },
		{ SPIRALS, "make:spirals", "rate 0.02 epochs 2", 2, 0 },
		{ XOR, "make:xor", "target ref rate 0.5 epochs 300", 4, 0 },
		{ "group i 8 input\ngroup h 3000\ngroup o 8 output\nconnect i, true -> h\nconnect h, true -> o\n",
		  "make:encoder:8-3", "rate 0.0001 epochs 2", 3, 0 },
		{ "group i 8 input\ngroup h 3000\ngroup o 8 output\nconnect i, true -> h\nconnect h, true -> o\n",
		  "make:encoder:8-3", "rate 0.0001 epochs 2 batch 1", 3, 0 },
	};
	(void)state;
	check_all(works, COUNT(works));
}

/* Code words, with lanes: letters, its inputs made dense by being few. */
static void test_codes(void **state)
{
	mp_net *net = net_of(LETTERS);
	mp_data *data = data_of("make:letters");
	Data *d = data->data;
	uint64_t cases = 300;
	float *x = NEW(&data->cx.keep, cases * d->inputs, float);
	(void)state;
	for (uint64_t i = 0; i < cases; i++)
		data_x(d, i, x + i * d->inputs);
	d->cases = cases;
	d->x = x;
	d->x_type = T_F32;
	d->x_indptr = NULL;
	check_data(net, data,
	           &(Work){ .options = "batch 16 rate 0.02 error cross-entropy epochs 3", .count = 18, .lanes = 1 });
	check_data(net, data, &(Work){ .options = "rate 0.002 epochs 3 threads 2", .count = 17, .lanes = 1 });
	mp_data_close(data);
	mp_net_close(net);
}

/* Seeds whose error is not finite fail by themselves. */
static void test_failing(void **state)
{
	static const Work work = {
		"group i 2 input\ngroup h 3 linear\ngroup o 1 linear output\nconnect i, true -> h\nconnect h, true -> o\n",
		"make:xor", "rate 0.3 momentum 0 epochs 400", 40, 1
	};
	mp_net *net = net_of(work.net);
	mp_data *data = data_of(work.data);
	(void)state;
	check(&work);
	check(&(Work){ work.net, work.data, "rate 0.3 momentum 0 batch 1 updates 101", 40, 1 });
	mp_run *run = run_with(net, work.options);
	need(run, mp_run_restarts(run, data, NULL, work.count, NULL, NULL, NULL));
	const mp_restarts *m = mp_run_get_restarts(run);
	assert_in_range(m->failed, 1, work.count - 1);
	assert_false(mp_run_get_seed(run, m->best)->failed);
	mp_run_close(run);
	mp_net_close(net);
	mp_data_close(data);
}

/* ---- the run afterwards ---- */

static void test_run(void **state)
{
	mp_net *net = net_of(XOR);
	mp_data *data = data_of("make:xor");
	(void)state;
	mp_run *run = run_with(net, "rate 0.5 epochs 1000 seed 11 threads 2");
	assert_null(mp_run_get_restarts(run));
	need(run, mp_run_restarts(run, data, data, 21, NULL, NULL, NULL));
	const mp_restarts *m = mp_run_get_restarts(run);
	const mp_seed *best = mp_run_get_seed(run, m->best);
	for (uint64_t i = 0; i < m->done; i++) {
		assert_true(best->solved || !mp_run_get_seed(run, i)->solved);
		assert_true(!mp_run_get_seed(run, i)->solved || best->epochs <= mp_run_get_seed(run, i)->epochs);
	}
	assert_string_equal(mp_run_get_report(run)->fingerprint, best->fingerprint);
	assert_int_equal(mp_run_get_report(run)->epoch, best->epochs);
	assert_true(m->epochs_min <= m->epochs_median && m->epochs_median <= m->epochs_max);
	assert_int_equal(m->epochs_min, best->epochs);
	char number[32];
	snprintf(number, sizeof number, "%llu", (unsigned long long)best->seed);
	assert_string_equal(mp_run_get(run, "seed"), number);
	mp_run *alone = run_with(net, "rate 0.5 epochs 1000 threads 2");
	need(alone, mp_run_set(alone, "seed", number));
	need(alone, mp_run_train(alone, data, data, NULL, NULL));
	same_part(run, alone, 0);
	same_part(run, alone, 1);
	assert_int_equal(run->points, alone->points);
	assert_int_equal(mp_run_restarts(run, data, NULL, 3, NULL, NULL, NULL), MP_BAD_INPUT);
	expect_words(mp_run_messages(run), "already started");
	mp_run_close(alone);
	mp_run_close(run);
	mp_net_close(net);
	mp_data_close(data);
}

static void refused(const mp_net *net, const mp_data *data, const char *options, uint64_t count, const char *words)
{
	mp_run *run = run_with(net, options);
	assert_int_equal(mp_run_restarts(run, data, NULL, count, NULL, NULL, NULL), MP_BAD_INPUT);
	expect_words(mp_run_messages(run), words);
	assert_null(mp_run_get_restarts(run));
	mp_run_close(run);
}

static void test_refused(void **state)
{
	mp_net *net = net_of(XOR);
	mp_data *data = data_of("make:xor"), *other = data_of("make:parity:3");
	(void)state;
	refused(net, data, "rate 0.5", 0, "no seeds");
	refused(net, data, "time 3", 5, "limit of time");
	refused(net, data, "seed 9223372036854775807", 2, "more than there are");
	refused(net, data, "patience 3", 5, "test data");
	refused(net, data, "error divergence", 5, "makes no sense");
	refused(net, other, "rate 0.5", 5, "inputs");
	mp_net_close(net);
	mp_data_close(data);
	mp_data_close(other);
}

static int stop_at_once(void *user, mp_run *run, const mp_restarts *m)
{
	assert_true(m->size == sizeof *m);
	assert_null(mp_run_get_seed(run, 0));
	++*(int *)user;
	return 1;
}

/* A search without end, stopped from the report. */
static void test_stopped(void **state)
{
	static const char *const targets[] = { "target cpu until never epochs 1000000000",
		                                   "target ref until never epochs 1000000000" };
	mp_net *net = net_of(XOR);
	mp_data *data = data_of("make:xor");
	(void)state;
	for (size_t i = 0; i < COUNT(targets); i++) {
		int calls = 0;
		mp_run *run = run_with(net, targets[i]);
		assert_int_equal(mp_run_restarts(run, data, NULL, 5, stop_at_once, NULL, &calls), MP_STOPPED);
		assert_int_equal(calls, 1);
		const mp_restarts *m = mp_run_get_restarts(run);
		assert_int_equal(m->count, 5);
		assert_int_equal(m->done, 0);
		mp_run_close(run);
	}
	mp_net_close(net);
	mp_data_close(data);
}

static void test_patience(void **state)
{
	mp_net *net = net_of(PARITY);
	mp_data *data = data_of("make:parity:4");
	(void)state;
	mp_run *run = run_with(net, "rate 2 patience 3 epochs 100");
	need(run, mp_run_restarts(run, data, data, 3, NULL, NULL, NULL));
	const mp_restarts *m = mp_run_get_restarts(run);
	assert_false(m->lanes);
	mp_run *alone = run_with(net, "rate 2 patience 3 epochs 100 seed 2");
	need(alone, mp_run_train(alone, data, data, NULL, NULL));
	assert_string_equal(mp_run_get_seed(run, 1)->fingerprint, mp_run_get_report(alone)->fingerprint);
	mp_run_close(alone);
	mp_run_close(run);
	mp_net_close(net);
	mp_data_close(data);
}

/* Every vector unit of this computer: single runs of the best one, seeds of each. */
static void test_units(void **state)
{
	(void)state;
	for (int isa = 0; isa < ISA_COUNT; isa++) {
		if (!isa_has(isa))
			continue;
		setenv("MICROPROP_ISA", isa_name(isa), 1);
		test_examples(state);
		test_networks(state);
		test_data(state);
	}
	unsetenv("MICROPROP_ISA");
}

/* The n-th request for memory fails, for every n. */
static void test_memory(void **state)
{
	mp_net *net = net_of(XOR);
	mp_data *data = data_of("make:xor");
	mp_status status = MP_NO_MEMORY;
	(void)state;
	for (long n = 1; status == MP_NO_MEMORY; n++) {
		Meter meter = { .fail_at = n };
		mp_allocator alloc = { sizeof alloc, meter_resize, &meter };
		mp_run *run;
		status = mp_run_new(&run, net, &alloc);
		if (status == MP_OK)
			status = mp_run_set(run, "epochs", "5");
		if (status == MP_OK)
			status = mp_run_restarts(run, data, NULL, 3, NULL, NULL, NULL);
		mp_run_close(run);
		assert_int_equal(meter.live, 0);
	}
	assert_int_equal(status, MP_OK);
	mp_net_close(net);
	mp_data_close(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples), cmocka_unit_test(test_rules),   cmocka_unit_test(test_ends),
		cmocka_unit_test(test_networks), cmocka_unit_test(test_data),    cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_others),   cmocka_unit_test(test_codes),   cmocka_unit_test(test_failing),
		cmocka_unit_test(test_run),      cmocka_unit_test(test_refused), cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_patience), cmocka_unit_test(test_units),   cmocka_unit_test(test_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
