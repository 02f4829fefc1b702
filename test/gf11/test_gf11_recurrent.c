/* SPDX-License-Identifier: MIT */
/* Recurrent networks on the simulated GF11: the examples are solved on any number of processors, as on ref and cpu;
 * packing of sequences; batches in parts; resuming; data that exceeds memory.
 *
 * test_gf11_random.c compares random recurrent networks with ref, test_gf11_scalar.c compares all bits. */
#include "gf11_nets.h"

#include "gf11_sum.h"

#define CURVE 1e-3 /* of the error of an epoch */

typedef struct Course {
	const char *file, *target, *procs, *compiler, *batch, *rate;
} Course;

static mp_run *run_course(const Course *c, mp_net **net, mp_data **data)
{
	char path[512];
	snprintf(path, sizeof path, "%s/examples/%s", SOURCE_DIR, c->file);
	assert_int_equal(mp_net_open(net, path, NULL), MP_OK);
	assert_int_equal(mp_data_open(data, mp_net_get_info(*net)->data, NULL, NULL), MP_OK);
	mp_run *run = run_of(*net);
	need(run, mp_run_set(run, "target", c->target));
	need(run, mp_run_set(run, "procs", c->procs));
	need(run, mp_run_set(run, "compiler", c->compiler));
	need(run, mp_run_set(run, "batch", c->batch));
	need(run, mp_run_set(run, "rate", c->rate));
	return run;
}

/* Solved, in the same number of epochs as on `like`, each with the same error. */
static void same_course(const Course *c, const char *like)
{
	Course other = *c;
	mp_net *net, *net_like;
	mp_data *data, *data_like;
	other.target = like;
	mp_run *a = run_course(c, &net, &data), *b = run_course(&other, &net_like, &data_like);
	need(a, mp_run_train(a, data, NULL, NULL, NULL));
	need(b, mp_run_train(b, data_like, NULL, NULL, NULL));
	size_t points = 0;
	const mp_point *x, *y;
	double worst = 0;
	assert_true(mp_run_get_report(a)->solved && mp_run_get_report(b)->solved);
	for (; (x = mp_run_get_point(a, points)) && (y = mp_run_get_point(b, points)); points++)
		worst = fmax(worst, fabs(x->error - y->error) / y->error);
	assert_null(mp_run_get_point(a, points));
	assert_null(mp_run_get_point(b, points));
	if (getenv("MICROPROP_LOUD") || worst > CURVE)
		print_message("%s, %s processors, compiler %s, like %s: %zu epochs, error off by %g at most\n", c->file,
		              c->procs, c->compiler, like, points, worst);
	assert_true(worst <= CURVE);
	mp_run_close(a);
	mp_run_close(b);
	mp_data_close(data);
	mp_data_close(data_like);
	mp_net_close(net);
	mp_net_close(net_like);
}

/* On 1 to 566 processors; MICROPROP_NETWORKS: on all of these numbers. */
static void examples_are_solved(void **state)
{
	(void)state;
	enum { NUMBERS = 5 };
	static const char *const procs[NUMBERS] = { "1", "2", "7", "356", "566" }, *const compilers[] = { "1989", "best" };
	static const struct {
		Course course;
		bool quick[NUMBERS];
	} row[] = {
		{ { .file = "temporal-xor.topo", .batch = "all", .rate = "0.1" }, { true, true, true, true, true } },
		{ { .file = "reber.topo", .batch = "32", .rate = "0.007" }, { false, true, true, false, false } },
		{ { .file = "letter-sequences.topo", .batch = "8", .rate = "0.003" }, { false, false, true, false, false } },
	};
	for (size_t i = 0; i < COUNT(row); i++)
		for (size_t k = 0; k < NUMBERS * COUNT(compilers); k++) {
			Course c = row[i].course;
			c.target = "gf11";
			c.procs = procs[k / 2];
			c.compiler = compilers[k % 2];
			if (row[i].quick[k / 2] || getenv("MICROPROP_NETWORKS"))
				same_course(&c, k % 3 ? "cpu" : "ref");
		}
}

/* ---- packing ---- */

typedef struct Packing {
	const uint64_t *length;
	uint64_t count;
	uint32_t procs, lanes;
	BpPacked p;
} Packing;

static void packing_body(Ctx *cx, void *arg)
{
	Packing *a = arg;
	a->p = sequences_pack(packer_new(&cx->keep, a->count), a->length, a->count, a->procs, a->lanes);
}

static void is_packed(const Packing *a, uint64_t total, uint64_t longest)
{
	uint64_t bins = (uint64_t)a->procs * a->lanes, filled = 0, fullest = 0, *load = calloc(bins, sizeof *load);
	uint8_t *taken = calloc(bins * (a->p.steps + 1), 1);
	for (uint64_t i = 0; i < a->count; i++)
		for (uint64_t t = 0; t < a->length[i]; t++, filled++) {
			assert_true(a->p.place[i].bin < bins && a->p.place[i].begin + t < a->p.steps);
			uint8_t *place = &taken[a->p.place[i].bin * (a->p.steps + 1) + a->p.place[i].begin + t];
			assert_false(*place); /* no two in one place */
			*place = 1;
			load[a->p.place[i].bin]++;
		}
	assert_int_equal(filled, total);
	for (uint64_t i = 0; i < bins; i++) {
		assert_true(i == 0 || load[i] <= load[i - 1]); /* from the fullest */
		fullest += i % a->procs == 0 ? load[i] : 0;
	}
	assert_int_equal(a->p.steps, load[0]);
	assert_int_equal(a->p.lane_steps, fullest);
	assert_true(a->p.steps <= total / bins + longest); /* when the last one came to the fullest, all were as full */
	free(taken);
	free(load);
}

static void sequences_are_packed(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		Dice d = { seed, 0 };
		uint64_t length[60], total = 0, longest = 0;
		Packing a = { .length = length, .count = 1 + roll(&d, 60), .procs = 1 + roll(&d, 9), .lanes = 1 + roll(&d, 5) };
		Ctx cx;
		for (uint64_t i = 0; i < a.count; i++) {
			length[i] = roll(&d, 30);
			total += length[i];
			longest = length[i] > longest ? length[i] : longest;
		}
		ctx_init(&cx, NULL);
		assert_int_equal(guarded(&cx, packing_body, &a), MP_OK);
		is_packed(&a, total, longest);
		ctx_free(&cx);
	}
}

/* Sequences of 1 to 8 cases fill four processors evenly; of five, four have a case less than the first. */
static void padding_is_reported(void **state)
{
	(void)state;
	static const struct {
		const char *procs, *compiler, *says;
	} row[] = {
		{ "1", "1989", "{\"padding\": 0}" },   { "4", "1989", "{\"padding\": 0}" },
		{ "5", "1989", "{\"padding\": 0.1}" }, { "36", "1989", "{\"padding\": 0.875}" },
		{ "5", "best", "{\"padding\": 0.1}" },
	};
	float x[36 * 2] = { 0 }, y[36] = { 0 };
	uint64_t seq[9] = { 0 };
	mp_net *net =
		net_of("group x 2 input\ngroup h 3\ngroup o 1 output\ngroup c 3 context\ncopy h -> c\nconnect x, c -> h\n"
	           "connect h -> o\ntrain epochs 2 until never\n");
	mp_data *data;
	for (uint64_t i = 0; i < 8; i++)
		seq[i + 1] = seq[i] + i + 1;
	assert_int_equal(mp_data_new(&data, 36, 2, 1, x, y, seq, 8, NULL), MP_OK);
	for (size_t i = 0; i < COUNT(row); i++) {
		mp_run *run = run_of(net);
		need(run, mp_run_set(run, "target", "gf11"));
		need(run, mp_run_set(run, "procs", row[i].procs));
		need(run, mp_run_set(run, "compiler", row[i].compiler));
		need(run, mp_run_train(run, data, NULL, NULL, NULL));
		assert_string_equal(mp_run_get_figures(run), row[i].says);
		mp_run_close(run);
	}
	mp_data_close(data);
	mp_net_close(net);
}

/* ---- resuming, testing, memory limits ---- */

static const char small[] =
	"group x 3 input\ngroup h 5\ngroup k 3 tanh\ngroup o 2 output\ngroup c 5 context\ngroup e 5 context\n"
	"copy h -> c start 0.5\ncopy c -> e\nconnect x, c, true -> h\nconnect h, e -> k\nconnect h, k, true -> o\n"
	"train rate 0.3 momentum 0.9 epochs 6 until never\n";

enum { CASES = 90 };

/* `count` sequences of different lengths, of the same cases. */
static mp_data *cut_into(uint64_t sequences)
{
	float x[CASES * 3], y[CASES * 2];
	uint64_t seq[CASES + 1];
	mp_data *data;
	for (uint32_t i = 0; i < COUNT(x); i++)
		x[i] = (float)(2 * random_unit(1, STREAM_DATA, i) - 1);
	for (uint32_t i = 0; i < COUNT(y); i++)
		y[i] = (float)random_unit(2, STREAM_DATA, i);
	for (uint64_t i = 0; i <= sequences; i++)
		seq[i] = i + i * i * (CASES - sequences) / (sequences * sequences);
	assert_int_equal(mp_data_new(&data, CASES, 3, 2, x, y, seq, sequences, NULL), MP_OK);
	return data;
}

static mp_run *small_run(const mp_net *net, const char *procs, const char *compiler, const char *batch)
{
	mp_run *run = run_of(net);
	need(run, mp_run_set(run, "target", "gf11"));
	need(run, mp_run_set(run, "procs", procs));
	need(run, mp_run_set(run, "compiler", compiler));
	need(run, mp_run_set(run, "batch", batch));
	return run;
}

static const char *const compilers[] = { "1989", "best" }, *const batches[] = { "all", "7" };

/* Stopped in the middle of an epoch, and on two threads. */
static void resuming_gives_the_same_bits(void **state)
{
	(void)state;
	mp_net *net = net_of(small);
	mp_data *data = cut_into(30);
	for (int i = 0; i < 4; i++) {
		mp_run *whole = small_run(net, "6", compilers[i / 2], batches[i % 2]), *rest = run_of(net);
		mp_run *first = small_run(net, "6", compilers[i / 2], batches[i % 2]);
		need(whole, mp_run_set(whole, "threads", "2"));
		resuming_changes_nothing(whole, first, rest, data);
		mp_run_close(whole);
		mp_run_close(first);
		mp_run_close(rest);
	}
	mp_data_close(data);
	mp_net_close(net);
}

/* On more, fewer, longer and shorter sequences: the machine grows, the weights stay the same. */
static void testing_in_between_changes_nothing(void **state)
{
	(void)state;
	static const uint64_t others[] = { 2, 8, 60, 90 };
	mp_net *net = net_of(small);
	mp_data *data = cut_into(30);
	for (size_t i = 0; i < 4 * COUNT(others); i++) {
		mp_data *other = cut_into(others[i / 4]);
		mp_run *a = small_run(net, "4", compilers[i / 2 % 2], batches[i % 2]);
		mp_run *b = small_run(net, "4", compilers[i / 2 % 2], batches[i % 2]);
		testing_changes_nothing(a, b, data, other);
		mp_run_close(a);
		mp_run_close(b);
		mp_data_close(other);
	}
	mp_data_close(data);
	mp_net_close(net);
}

/* A batch that exceeds DRAM is processed in parts; a sequence must fit. */
static void small_memories_do(void **state)
{
	(void)state;
	static const char machine[] = "base gf11\ndram 632 words assumed\n";
	mp_net *net = net_of(small);
	mp_data *data = cut_into(45), *one = cut_into(1);
	put_bytes(in_folder("small.machine"), machine, strlen(machine));
	for (int i = 0; i < 2; i++) {
		mp_run *a = small_run(net, "2", compilers[i], "all"), *b = small_run(net, "2", compilers[i], "all");
		mp_run *c = small_run(net, "2", compilers[i], "all");
		need(a, mp_run_set(a, "machine", in_folder("small.machine")));
		need(a, mp_run_train(a, data, NULL, NULL, NULL));
		need(b, mp_run_train(b, data, NULL, NULL, NULL));
		double x = mp_run_get_report(a)->error, y = mp_run_get_report(b)->error;
		assert_true(fabs(x - y) <= CURVE * y);
		need(c, mp_run_set(c, "machine", in_folder("small.machine")));
		assert_int_equal(mp_run_train(c, one, NULL, NULL, NULL), MP_BAD_INPUT);
		expect_words(mp_run_messages(c), "a sequence of 90 cases takes");
		mp_run_close(a);
		mp_run_close(b);
		mp_run_close(c);
	}
	mp_data_close(data);
	mp_data_close(one);
	mp_net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples_are_solved),
		cmocka_unit_test(sequences_are_packed),
		cmocka_unit_test(padding_is_reported),
		cmocka_unit_test_setup_teardown(resuming_gives_the_same_bits, make_folder, remove_folder),
		cmocka_unit_test(testing_in_between_changes_nothing),
		cmocka_unit_test_setup_teardown(small_memories_do, make_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
