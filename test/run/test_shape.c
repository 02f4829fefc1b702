/* SPDX-License-Identifier: MIT */
/* Noise and the settings of single groups and blocks on target ref: gradients against central differences with the
 * noise held fixed. */
#include <math.h>

#include "toy.h"

enum { MOST_LINKS = 200, CASES = 6, MOST_IN = 8, MOST_OUT = 8 };

static float xs[CASES * MOST_IN], ys[CASES * MOST_OUT];

static void bind(Toy *t)
{
	assert_true(t->net->inputs <= MOST_IN && t->net->outputs <= MOST_OUT && t->net->links <= MOST_LINKS);
	for (uint32_t i = 0; i < CASES * t->net->inputs; i++)
		xs[i] = (float)(2 * random_unit(7, STREAM_DATA, i) - 1);
	for (uint32_t i = 0; i < CASES * t->net->outputs; i++)
		ys[i] = i % 5 == 3 || i / t->net->outputs == 4 ? NAN : (float)(0.1 + 0.8 * random_unit(8, STREAM_DATA, i));
	toy_bind(t, CASES, xs, ys);
	toy_weights(t, 5, 0.9);
}

/* ---- gradients ---- */

/* As measured in training: with noise. */
static double error_of(Toy *t, double *w, uint64_t link, double value)
{
	double old[MOST_LINKS];
	memcpy(old, w, t->net->links * sizeof *w);
	for (uint64_t i = 0; i < t->net->links; i++) /* links that share the weight change with it */
		if (i == link || (t->net->tie && t->net->tie[i] == link))
			w[i] = value;
	target_ref.set(t->program, 0, 0, ALL_LINKS, w);
	memcpy(w, old, t->net->links * sizeof *w);
	Tally tally = toy_learn(t, (Batch){ .count = run_examples(t->net, &t->data), .update = 3 });
	toy_forget(t);
	return tally.error;
}

static void check_gradient(const char *text)
{
	const double h = 1e-5;
	double g[MOST_LINKS], w[MOST_LINKS], largest = 0;
	Toy t;
	toy_open(&t, text);
	bind(&t);
	target_ref.get(t.program, 0, 0, ALL_LINKS, w);
	for (uint64_t i = 0; i < t.net->links; i++)
		w[i] = w[t.net->tie ? t.net->tie[i] : i];
	target_ref.set(t.program, 0, 0, ALL_LINKS, w);
	toy_learn(&t, (Batch){ .count = run_examples(t.net, &t.data), .update = 3 });
	target_ref.gradient(t.program, g);
	toy_forget(&t);
	for (uint64_t i = 0; t.net->tie && i < t.net->links; i++)
		if (t.net->tie[i] != i)
			g[t.net->tie[i]] += g[i];
	for (uint64_t i = 0; i < t.net->links; i++) {
		if (t.net->tie && t.net->tie[i] != i)
			continue;
		double near = (error_of(&t, w, i, w[i] + h) - error_of(&t, w, i, w[i] - h)) / (2 * h);
		double far = (error_of(&t, w, i, w[i] + 2 * h) - error_of(&t, w, i, w[i] - 2 * h)) / (4 * h);
		double want = (4 * near - far) / 3;
		largest = fmax(largest, fabs(want));
		if (fabs(g[i] - want) > 1e-6 * fabs(want) + 1e-8)
			print_error("%slink %llu: gradient %.12g, differences %.12g\n", text, (unsigned long long)i, g[i], want);
		assert_true(fabs(g[i] - want) <= 1e-6 * fabs(want) + 1e-8);
	}
	assert_true(largest > 1e-3);
	toy_close(&t);
}

#define PLAIN    "group x 3 input\ngroup h 5 tanh\ngroup o 3 sigmoid output\n"
#define LINKS    "connect x, true -> h\nconnect h, true -> o\n"
#define SETTLING "group x 3 input\ngroup h 4 tanh integrate input\ngroup o 3 sigmoid output integrate output\n"
#define LOOP     "connect x, o, true -> h\nconnect h, true -> o\ntrain ticks 4 targets-from 2 dt 0.4 error squared\n"

static void gradients_with_noise(void **state)
{
	static const char *const texts[] = {
		PLAIN LINKS "noise x gaussian 0.3\n",
		PLAIN LINKS "noise x uniform 0.3\n",
		PLAIN LINKS "noise h net gaussian 0.5\n",
		PLAIN LINKS "noise h uniform 0.4\n",
		PLAIN LINKS "noise h net gaussian 0.5\nnoise h gaussian 0.2\ndropout h 0.3\ndropout x 0.2\n",
		PLAIN LINKS "noise o gaussian 0.2\nnoise o net uniform 0.3\ndropout o 0.2\ntrain error squared\n",
		PLAIN LINKS "noise x -> h gaussian 0.3\nnoise true -> o uniform 0.2\n",
		"group x 3 input\ngroup h 5 gaussian\ngroup o 3 softmax output\n" LINKS
		"noise h net gaussian 0.3\nnoise h gaussian 0.2\nnoise o net gaussian 0.3\ntrain error divergence\n",
		"group x 3 input\ngroup h 5 softmax\ngroup o 3 output\n" LINKS "noise h gaussian 0.2\ndropout h 0.4\n",
		"group x 3 input\ngroup m 5 context\ngroup h 5 tanh\ngroup o 3 sigmoid output\ncopy h -> m\n"
		"connect x, m, true -> h\nconnect h, true -> o\nnoise h gaussian 0.2\nnoise h net uniform 0.3\ndropout h 0.3\n"
		"train bptt full\n",
		SETTLING LOOP "noise h net gaussian 0.3\nnoise h gaussian 0.1\nnoise o gaussian 0.2\n",
		SETTLING LOOP "dropout h 0.3\ndropout o 0.2\nnoise x uniform 0.1\nnoise o net gaussian 0.2\n",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		check_gradient(texts[i]);
}

static void gradients_with_settings(void **state)
{
	static const char *const texts[] = {
		"group x 3 input\ngroup h 5 tanh gain 1.7\ngroup o 3 sigmoid output gain 0.6\n" LINKS,
		"group x 3 input\ngroup h 5 gaussian gain 1.7\ngroup o 3 softmax output gain 0.6 error divergence\n" LINKS,
		"group x 3 input\ngroup h 5 tanh\ngroup o 3 sigmoid output gain 2 error cross-entropy\n" LINKS,
		"group x 3 input\ngroup h 5 tanh\ngroup o 3 sigmoid output error cross-entropy error-scale 2.5\n"
		"group q 2 tanh output error squared error-scale 0.3\ngroup s 3 softmax output error divergence\n" LINKS
		"connect h, o -> q\nconnect h -> s\n",
		"group x 3 input\ngroup h 5 tanh\ngroup o 3 sigmoid output target-radius 0.1 error cross-entropy\n"
		"group q 2 tanh output zero-error-radius 0.3\ngroup s 3 softmax output error divergence target-radius "
		"0.1\n" LINKS "connect h, o -> q\nconnect h -> s\n",
		"group x 3 input\ngroup h 5 tanh integrate input gain 1.5\ngroup o 3 sigmoid output integrate output gain "
		"0.7\n" LOOP,
		"group x 3 input\ngroup h 5 tanh\ngroup k 5 tanh\ngroup o 3 sigmoid output\nconnect x -> h\nconnect h -> k\n"
		"connect k -> o tied x -> h transposed\nconnect true -> h\nconnect true -> k tied true -> h\nconnect true -> "
		"o\n"
		"connect x -> o\n",
		"group x 4 input\ngroup h 5 tanh\ngroup k 5 tanh\ngroup o 3 output\nconnect x -> h random 0.6 seed 2\n"
		"connect h -> k\nconnect k -> o\nconnect x -> k tied x -> h\nconnect h -> o tied k -> o\n"
		"noise x -> h gaussian 0.2\n",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		check_gradient(texts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradients_with_noise),
		cmocka_unit_test(gradients_with_settings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
