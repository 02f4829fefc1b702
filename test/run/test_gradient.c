/* SPDX-License-Identifier: MIT */
/* The gradient of target ref against central differences of its error: every unit function, hidden and output, with
 * every error function that goes with it, over all kinds of links, with and without sequences.  Every data set has
 * case weights, outputs without a target and a case without any. */
#include <math.h>

#include "toy.h"

enum { MAX_LINKS_HERE = 200, CASES = 6, MAX_IN = 8, MAX_OUT = 8 };

/* groups has a place for the hidden and one for the output function. */
typedef struct Kind {
	const char *name, *groups, *links;
	bool inside;
} Kind;

/* Links inside a group do not go with softmax, which needs the whole group at once. */
static const Kind kinds[] = {
	{ "plain", "group x 3 input\ngroup h 4 %s\ngroup o 3 %s output\n", "connect x, true -> h\nconnect h, true -> o\n",
	  false },
	{ "without true", "group x 3 input\ngroup h 4 %s\ngroup o 3 %s output\n", "connect x -> h\nconnect h -> o\n",
	  false },
	{ "skip", "group x 3 input\ngroup h 4 %s\ngroup o 3 %s output\n", "connect x, true -> h\nconnect x, h, true -> o\n",
	  false },
	{ "one-to-one", "group x 3 input\ngroup h 3 %s\ngroup o 3 %s output\n",
	  "connect x -> h one-to-one\nconnect true -> h\nconnect h -> o\n", false },
	{ "random", "group x 4 input\ngroup h 5 %s\ngroup o 3 %s output\n",
	  "connect x -> h random 0.6 seed 3\nconnect h -> o random 0.7 seed 4\nconnect true -> h, o\n", false },
	{ "slices", "group x 4 input\ngroup h 4 %s\ngroup o 3 %s output\n",
	  "connect x[0:1] -> h[0:2]\nconnect x[2:3] -> h[2:3]\nconnect h[0:2] -> o\n"
	  "connect h[3] -> o[1]\nconnect true -> o\n",
	  false },
	{ "two outputs", "group x 3 input\ngroup h 3 %s\ngroup o 2 %s output\ngroup p 3 sigmoid output\n",
	  "connect x, true -> h\nconnect h -> o, p\nconnect o -> p\n", false },
	{ "two hidden", "group x 3 input\ngroup h 3 %s\ngroup k 3 tanh\ngroup o 2 %s output\n",
	  "connect x, true -> h\nconnect x, h -> k\nconnect h, k, true -> o\n", false },
	{ "output before hidden", "group o 2 %2$s output\ngroup h 3 %1$s\ngroup x 3 input\n",
	  "connect x, true -> h\nconnect h -> o\n", false },
	{ "inside", "group x 3 input\ngroup h 4 %s\ngroup o 3 %s output\n",
	  "connect x, true -> h\nconnect h -> h\nconnect h -> o\nconnect o[0] -> o[1:2]\n", true },
};

/* Contexts: hidden (Elman), output (Jordan), an input (delay line), and a context again. */
static const Kind memories[] = {
	{ "elman", "group x 2 input\ngroup m 3 context\ngroup h 3 %s\ngroup o 2 %s output\n",
	  "connect x, m, true -> h\nconnect h, true -> o\ncopy h -> m start 0.5\n", false },
	{ "jordan", "group x 2 input\ngroup m 2 context\ngroup h 3 %s\ngroup o 2 %s output\n",
	  "connect x, m, true -> h\nconnect h, true -> o\ncopy o -> m\n", false },
	{ "delay",
	  "group x 2 input\ngroup before 2 context\ngroup m 3 context\ngroup n 3 context\n"
	  "group h 3 %s\ngroup o 2 %s output\n",
	  "connect x, before, m, n, true -> h\nconnect h, true -> o\ncopy x -> before\n"
	  "copy h -> m start -0.25\ncopy m -> n\n",
	  false },
};

/* Settling networks: cycles, links inside a group, all orders; groups that integrate. */
static const Kind settlings[] = {
	{ "loop", "group x 2 input\ngroup h 3 %s\ngroup o 2 %s output start 0.5\ngroup c 2 tanh\n",
	  "connect x, o, true -> h\nconnect h, c, true -> o\nconnect o -> c\ntrain ticks 4 targets-from 3\n", false },
	{ "inside", "group x 2 input\ngroup h 3 %s start -0.25\ngroup o 2 %s output\n",
	  "connect x, h, true -> h\nconnect h, o -> o\ntrain ticks 3 inputs-until 2\n", false },
	{ "synchronous", "group x 2 input start 0.2\ngroup h 3 %s start 0.3\ngroup o 2 %s output\n",
	  "connect x, o, true -> h\nconnect h, true -> o\nconnect h -> h later\n"
	  "train ticks 2 intervals 2 targets-from 4 settle synchronous\n",
	  true },
	{ "integrate input", "group x 2 input\ngroup h 3 %s integrate input\ngroup o 2 %s output integrate input dt 0.7\n",
	  "connect x, o, true -> h\nconnect h, true -> o\ntrain ticks 3 dt 0.4 targets-from 2\n", false },
	{ "without links back", "group x 2 input\ngroup h 3 %s integrate input\ngroup o 2 %s output\n",
	  "connect x, true -> h\nconnect h, true -> o\ntrain ticks 3\n", false },
};
static const Kind integrating = { "integrate output",
	                              "group x 2 input\ngroup h 3 %s integrate output dt 0.8\n"
	                              "group o 2 %s output integrate output start 0.3\n",
	                              "connect x, o, true -> h\nconnect h, true -> o\ntrain ticks 3 dt 0.5\n", false };

static float xs[CASES * MAX_IN], ys[CASES * MAX_OUT];
static float weights[CASES] = { 1, 0.5f, 2, 1.25f, 1, 3 };
static const uint64_t sequences[] = { 0, 3, 4, 6 };

/* Inputs in -1 .. 1, targets in 0.1 .. 0.9, every fifth one missing, all of case 4. */
static void fill_data(uint32_t inputs, uint32_t outputs)
{
	for (uint32_t i = 0; i < CASES * inputs; i++)
		xs[i] = (float)(2 * random_unit(7, STREAM_DATA, i) - 1);
	for (uint32_t i = 0; i < CASES * outputs; i++)
		ys[i] = i % 5 == 3 || i / outputs == 4 ? NAN : (float)(0.1 + 0.8 * random_unit(8, STREAM_DATA, i));
}

static double error_at_weight(Toy *t, double *w, uint64_t link, double value)
{
	double old = w[link];
	w[link] = value;
	target_ref.set(t->program, 0, 0, ALL_LINKS, w);
	w[link] = old;
	return toy_error(t);
}

/* Two central differences, combined so that the error falls with the fourth power of h. */
static double slope_at(Toy *t, double *w, uint64_t i)
{
	const double h = 1e-6; /* lines of relu and stepwise meet: with 1e-4 such a point lay between the two */
	double near = (error_at_weight(t, w, i, w[i] + h) - error_at_weight(t, w, i, w[i] - h)) / (2 * h);
	double far = (error_at_weight(t, w, i, w[i] + 2 * h) - error_at_weight(t, w, i, w[i] - 2 * h)) / (4 * h);
	return (4 * near - far) / 3;
}

static void compare(const Toy *t, uint64_t link, double got, double want)
{
	if (fabs(got - want) <= 1e-6 * fabs(want) + 1e-8)
		return;
	print_error("%slink %llu: gradient %.12g, differences %.12g\n", t->text, (unsigned long long)link, got, want);
	assert_true(false);
}

static void check_gradient(Toy *t)
{
	double g[MAX_LINKS_HERE], w[MAX_LINKS_HERE];
	toy_gradient(t, g);
	target_ref.get(t->program, 0, 0, ALL_LINKS, w);
	for (uint64_t i = 0; i < t->net->links; i++)
		compare(t, i, g[i], slope_at(t, w, i));
	target_ref.set(t->program, 0, 0, ALL_LINKS, w);
}

static double largest_of(const double *v, uint64_t n)
{
	double largest = 0;
	for (uint64_t i = 0; i < n; i++)
		largest = fmax(largest, fabs(v[i]));
	return largest;
}

/* Logarithms bend so sharply near 0 and 1, where they are clamped too, that differences tell nothing there. */
static bool outputs_fine(Toy *t)
{
	double out[CASES * MAX_OUT];
	Tally tally = { 0 };
	if (t->net->options.error == ERR_SQUARED)
		return true;
	target_ref.evaluate(t->program, 0, run_examples(t->net, &t->data), &t->stop, out, &tally);
	for (uint32_t i = 0; i < CASES * t->net->outputs; i++)
		if (out[i] < 1e-3 || out[i] > 0.99)
			return false;
	return true;
}

/* Weights with which there is something to see: units of kind relu may all be off. */
static void lively_weights(Toy *t)
{
	double g[MAX_LINKS_HERE] = { 0 };
	assert_true(t->net->links <= MAX_LINKS_HERE);
	for (uint64_t seed = 5; largest_of(g, t->net->links) < 1e-3 || !outputs_fine(t); seed++) {
		assert_true(seed < 500);
		toy_weights(t, seed, 0.9);
		toy_gradient(t, g);
	}
}

static void bind_data(Toy *t, bool in_sequences)
{
	assert_true(t->net->inputs <= MAX_IN && t->net->outputs <= MAX_OUT);
	fill_data(t->net->inputs, t->net->outputs);
	t->data.weight = weights;
	if (in_sequences) {
		t->data.seq = sequences;
		t->data.sequences = COUNT(sequences) - 1;
	}
	toy_bind(t, CASES, xs, ys);
	lively_weights(t);
}

static void topology(char *text, size_t size, const Kind *kind, int hidden, int output, int error, const char *bptt)
{
	int n = snprintf(text, size, kind->groups, unit_fns[hidden].name, unit_fns[output].name);
	snprintf(text + n, size - (size_t)n, "%strain error %s bptt %s\n", kind->links, error_fns[error].name, bptt);
}

/* Calls check with every pair of functions and every error that goes with the outputs. */
typedef void Check(const char *text, int hidden, int output);

static void each_net(const Kind *kind, const char *bptt, Check *check)
{
	char text[1000];
	for (int hidden = 0; hidden < FN_COUNT; hidden++)
		for (int output = 0; output < FN_COUNT; output++)
			for (int error = 0; error < ERR_COUNT; error++) {
				if (kind->inside && (hidden == FN_SOFTMAX || output == FN_SOFTMAX))
					continue;
				if (!error_fits(error, output) || (hidden >= FN_EVERYWHERE && output != FN_LINEAR) ||
				    (output >= FN_EVERYWHERE && hidden != FN_TANH))
					continue;
				topology(text, sizeof text, kind, hidden, output, error, bptt);
				check(text, hidden, output);
			}
}

static void check_plain(const char *text, int hidden, int output)
{
	Toy t;
	(void)hidden, (void)output;
	toy_open(&t, text);
	bind_data(&t, false);
	check_gradient(&t);
	toy_close(&t);
}

static void check_sequences(const char *text, int hidden, int output)
{
	Toy t;
	(void)hidden, (void)output;
	toy_open(&t, text);
	bind_data(&t, true);
	check_gradient(&t);
	toy_close(&t);
}

static void test_every_topology(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(kinds); k++)
		each_net(&kinds[k], "copy", check_plain);
}

static void test_through_time(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(memories); k++)
		each_net(&memories[k], "full", check_sequences);
}

/* No boundaries in the data: one sequence of all cases. */
static void test_one_long_sequence(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(memories); k++)
		each_net(&memories[k], "full", check_plain);
}

/* Gaussian units do not integrate their outputs. */
static void check_integrating(const char *text, int hidden, int output)
{
	if (hidden != FN_GAUSSIAN && output != FN_GAUSSIAN)
		check_sequences(text, hidden, output);
}

static void test_settling(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(settlings); k++) {
		each_net(&settlings[k], "full", check_plain);
		each_net(&settlings[k], "full", check_sequences);
	}
	each_net(&integrating, "full", check_integrating);
}

/* A network without memory does not mind where sequences begin. */
static void test_sequences_without_memory(void **state)
{
	(void)state;
	each_net(&kinds[2], "full", check_sequences);
}

/* ---- truncated at the copy ---- */

/* What an Elman network's hidden units were at each case, read off a network whose outputs they are. */
static void record_contexts(const Toy *elman, int hidden, double *contexts)
{
	char text[500];
	Toy t;
	double w[MAX_LINKS_HERE], out[CASES * 3];
	Tally tally = { 0 };
	snprintf(text, sizeof text,
	         "group x 2 input\ngroup m 3 context\ngroup h 3 %s output\nconnect x, m, true -> h\n"
	         "copy h -> m start 0.5\n",
	         unit_fns[hidden].name);
	toy_open(&t, text);
	t.data.seq = sequences;
	t.data.sequences = COUNT(sequences) - 1;
	toy_bind(&t, CASES, xs, ys);
	target_ref.get(elman->program, 0, 0, ALL_LINKS, w); /* links to h come first in both */
	target_ref.set(t.program, 0, 0, ALL_LINKS, w);
	target_ref.evaluate(t.program, 0, t.data.sequences, &t.stop, out, &tally);
	for (uint32_t s = 0; s < t.data.sequences; s++)
		for (uint64_t i = sequences[s]; i < sequences[s + 1]; i++)
			for (int j = 0; j < 3; j++)
				contexts[i * 3 + (uint64_t)j] = i == sequences[s] ? 0.5 : out[(i - 1) * 3 + (uint64_t)j];
	toy_close(&t);
}

/* The truncated gradient is that of a network which gets the same contexts as inputs.  They pass through a float on
 * the way, hence the tolerance. */
static void check_truncated(const char *text, int hidden, int output)
{
	char held_text[1000];
	Toy elman, held;
	double contexts[CASES * 3], g[MAX_LINKS_HERE], want[MAX_LINKS_HERE], w[MAX_LINKS_HERE];
	float wide[CASES * 5];
	toy_open(&elman, text);
	bind_data(&elman, true);
	toy_gradient(&elman, g);
	record_contexts(&elman, hidden, contexts);

	snprintf(held_text, sizeof held_text,
	         "group x 2 input\ngroup m 3 input\ngroup h 3 %s\ngroup o 2 %s output\n"
	         "connect x, m, true -> h\nconnect h, true -> o\ntrain error %s\n",
	         unit_fns[hidden].name, unit_fns[output].name, error_fns[elman.net->options.error].name);
	toy_open(&held, held_text);
	for (int i = 0; i < CASES; i++)
		for (int j = 0; j < 5; j++)
			wide[i * 5 + j] = j < 2 ? xs[i * 2 + j] : (float)contexts[i * 3 + j - 2];
	held.data.weight = weights;
	toy_bind(&held, CASES, wide, ys);
	target_ref.get(elman.program, 0, 0, ALL_LINKS, w);
	target_ref.set(held.program, 0, 0, ALL_LINKS, w);
	check_gradient(&held);
	toy_gradient(&held, want);
	assert_int_equal(held.net->links, elman.net->links);
	for (uint64_t i = 0; i < held.net->links; i++)
		assert_true(fabs(g[i] - want[i]) <= 1e-5 * largest_of(want, held.net->links));
	toy_close(&held);
	toy_close(&elman);
}

static void test_truncated_at_the_copy(void **state)
{
	(void)state;
	each_net(&memories[0], "copy", check_truncated);
}

/* Truncated and full differ as soon as there is something to carry. */
static void test_full_is_not_truncated(void **state)
{
	(void)state;
	char text[1000];
	double g[2][MAX_LINKS_HERE], apart = 0;
	for (int full = 0; full < 2; full++) {
		Toy t;
		topology(text, sizeof text, &memories[0], FN_TANH, FN_SIGMOID, ERR_SQUARED, full ? "full" : "copy");
		toy_open(&t, text);
		bind_data(&t, true);
		toy_gradient(&t, g[full]);
		if (full)
			for (uint64_t i = 0; i < t.net->links; i++)
				apart = fmax(apart, fabs(g[0][i] - g[1][i]));
		toy_close(&t);
	}
	assert_true(apart > 1e-3);
}

/* ---- what differences cannot see ---- */

/* One weight from an input of 1 to one sigmoid output, saturated on the wrong side. */
static double saturated(const char *options, double w)
{
	char text[200];
	float x = 1, y = 1;
	double g;
	Toy t;
	snprintf(text, sizeof text, "group x 1 input\ngroup o 1 sigmoid output\nconnect x -> o\ntrain %s\n", options);
	toy_open(&t, text);
	toy_bind(&t, 1, &x, &y);
	target_ref.set(t.program, 0, 0, ALL_LINKS, &w);
	toy_gradient(&t, &g);
	toy_close(&t);
	return g;
}

static void test_saturated_units_still_learn(void **state)
{
	(void)state;
	assert_true(saturated("error squared", -800) == 0);
	assert_true(saturated("error cross-entropy", -800) == -1);
	/* w = 0: o = 1/2, so (o - t) (o (1 - o) + offset) = -1/2 * (1/4 + 1/8) */
	assert_true(saturated("error squared prime-offset 0.125", 0) == -0.1875);
	assert_true(saturated("error squared prime-offset 0.125", -800) == -0.125);
	assert_true(saturated("error cross-entropy prime-offset 0.125", 0) == -0.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_topology),           cmocka_unit_test(test_through_time),
		cmocka_unit_test(test_one_long_sequence),        cmocka_unit_test(test_settling),
		cmocka_unit_test(test_sequences_without_memory), cmocka_unit_test(test_truncated_at_the_copy),
		cmocka_unit_test(test_full_is_not_truncated),    cmocka_unit_test(test_saturated_units_still_learn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
