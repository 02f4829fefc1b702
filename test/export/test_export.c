/* SPDX-License-Identifier: MIT */
/* Exported C gives the bits of predict: every unit function, every kind of link, contexts, settling, numbers that
 * underflow, and networks by chance (EXPORT_NETWORKS=N of them); compiled by $CC, with and without fused multiply-add.
 * So do steps of a predictor.  The measured cost of 8 bits is that of the compiled file. */
#include "test.h"

#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "api.h"
#include "export.h"
#include "microprop/export.h"
#include "microprop/predict.h"

enum { CASES = 60, SEQUENCES = 6, BY_CHANCE = 8, MOST_BY_CHANCE = 200 };

typedef struct Network {
	const char *name, *text;
	double weight, input; /* largest */
} Network;

static const Network networks[] = {
	{ "functions",
	  "group in 5 input\ngroup a 33 sigmoid\ngroup b 9 tanh\ngroup c 9 relu\ngroup d 9 gaussian\ngroup e 9 sigmoid2\n"
	  "group f 9 elliott\ngroup g 9 softsign\ngroup h 9 stepwise\ngroup i 9 stepwise_tanh\ngroup o 3 sigmoid output\n"
	  "group p 3 tanh output\ngroup q 3 linear output\ngroup r 3 gaussian output\ngroup s 3 sigmoid2 output\n"
	  "group t 3 elliott output\ngroup u 3 softsign output\ngroup v 3 stepwise output\ngroup w 3 stepwise_tanh output\n"
	  "connect in, true -> a, b, c, d, e, f, g, h, i\n"
	  "connect a, b, c, d, e, f, g, h, i, true -> o, p, q, r, s, t, u, v, w\n",
	  1, 2 },
	{ "softmaxes",
	  "group in 5 input\ngroup a 19 softmax\ngroup b 41 softmax output\nconnect in, true -> a\nconnect a, true -> b\n",
	  40, 2 },
	{ "steep",
	  "group in 5 input\ngroup a 20 sigmoid\ngroup b 20 tanh\ngroup c 3 sigmoid output\nconnect in -> a, b\n"
	  "connect a, b -> c\n",
	  60, 9 },
	{ "underflow",
	  "group in 5 input\ngroup a 40 linear\ngroup b 9 tanh output\nconnect in, true -> a\nconnect a -> b\n", 3e-19,
	  1e-19 },
	{ "skips",
	  "group p 2 input\ngroup a 5 tanh\ngroup b 5 tanh\ngroup c 1 output\nconnect p, true -> a\n"
	  "connect p, true, a -> b\nconnect p, true, a, b -> c\n",
	  2, 2 },
	{ "sparse",
	  "group in 30 input\ngroup a 20 tanh\ngroup b 30 sigmoid\ngroup c 6 output\nconnect in -> a random 0.2\n"
	  "connect in -> b one-to-one\nconnect true -> b\nconnect a -> b[3:20] random 0.3 seed 7\nconnect a[1] -> c[2]\n"
	  "connect b[2:9], true -> c\nconnect a -> a\n",
	  1, 2 },
	{ "several",
	  "group x 3 input\ngroup a 6 tanh\ngroup y 2 output\ngroup z 4 input\ngroup b 5 relu\ngroup w 3 softmax output\n"
	  "connect x, z, true -> a\nconnect a, y, z -> b\nconnect a, true -> y\nconnect b, x -> w\n",
	  2, 2 },
	{ "elman",
	  "group in 3 input\ngroup h 9 tanh\ngroup out 4 output\ngroup memory 9 context\ngroup older 9 context\n"
	  "copy h -> memory start 0.5\ncopy memory -> older\nconnect in, memory, older, true -> h\n"
	  "connect h, true -> out\n",
	  1, 2 },
	{ "settles",
	  "group in 4 input\ngroup a 6 sigmoid integrate input dt 0.7\ngroup b 5 tanh integrate output start 0.25\n"
	  "group c 3 output\nconnect in, true, b, c -> a\nconnect a, true, b -> b\nconnect a, b, true -> c\n"
	  "train ticks 5 dt 0.3 inputs-until 3\n",
	  1.5, 2 },
};

static uint64_t drawn;
static double draw(double most) { return (2 * random_unit(7, STREAM_DATA, drawn++) - 1) * most; }
static uint32_t below(uint32_t n) { return (uint32_t)random_below(7, STREAM_DATA, drawn++, n); }

/* ---- networks by chance --------------------------------------------------------------------------- */

static char texts[MOST_BY_CHANCE][4000], names[MOST_BY_CHANCE][8];
static Network all[COUNT(networks) + MOST_BY_CHANCE];
static size_t count; /* of all */

static void put(char *text, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void put(char *text, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text + strlen(text), sizeof texts[0] - strlen(text), fmt, ap);
	va_end(ap);
	assert_true(strlen(text) + 1 < sizeof texts[0]);
}

/* Links to group `to` from most of the groups before it: all of them, some, or one to one.  To the output also from
 * groups that nothing else uses. */
static void put_links(char *text, const uint32_t *size, bool *used, uint32_t groups, uint32_t to, const char *name)
{
	uint32_t linked = 0;
	for (uint32_t from = 0; from < groups; from++) {
		bool last = from + 1 == groups && !linked, needed = *name == 'o' && !used[from];
		if (!last && !needed && below(3) == 0)
			continue;
		linked++;
		used[from] = true;
		put(text, "connect g%u -> %s%u", from, name, to);
		if (*name == 'g' && size[from] == size[to] && below(2))
			put(text, " one-to-one");
		else if (size[from] > 8 && below(3) == 0)
			put(text, " random 0.%u seed %u", 3 + below(6), 1 + below(100));
		put(text, "\n");
	}
	if (below(4))
		put(text, "connect true -> %s%u\n", name, to);
}

static void network_by_chance(uint32_t i)
{
	static const char *const functions[] = { "sigmoid", "tanh",     "relu",     "gaussian",      "sigmoid2", "elliott",
		                                     "linear",  "softsign", "stepwise", "stepwise_tanh", "softmax" };
	uint32_t size[16], inputs = 1 + below(2), contexts = i % 2 ? 1 + below(2) : 0, hidden = 1 + below(4), n = 0;
	bool used[16] = { false };
	char *text = texts[i];
	for (; n < inputs; n++)
		put(text, "group g%u %u input\n", n, size[n] = 1 + below(40));
	for (; n < inputs + contexts; n++)
		put(text, "group g%u %u context\n", n, size[n] = 1 + below(20));
	for (; n < inputs + contexts + hidden; n++) { /* the first ones are copied: they have the sizes of the contexts */
		uint32_t copied = n - contexts;
		size[n] = copied >= inputs && copied < inputs + contexts ? size[copied] : 1 + below(40);
		put(text, "group g%u %u %s\n", n, size[n], functions[below(COUNT(functions))]);
		put_links(text, size, used, n, n, "g");
	}
	for (uint32_t c = 0; c < contexts; c++)
		if (c < hidden)
			put(text, "copy g%u -> g%u start 0.%u\n", inputs + contexts + c, inputs + c, below(10));
		else
			put(text, "group h%u %u\nconnect g0 -> h%u\ncopy h%u -> g%u\n", c, size[inputs + c], c, c, inputs + c);
	put(text, "group o0 %u %s output\n", 1 + below(20), functions[below(COUNT(functions))]);
	put_links(text, size, used, n, 0, "o");
	snprintf(names[i], sizeof names[i], "net%u", i);
	all[COUNT(networks) + i] = (Network){ names[i], text, 0.2 + 3 * random_unit(7, STREAM_DATA, drawn++), 2 };
}

static void networks_make(void)
{
	const char *more = getenv("EXPORT_NETWORKS");
	uint32_t by_chance = more ? (uint32_t)atoi(more) : BY_CHANCE;
	if (count)
		return;
	memcpy(all, networks, sizeof networks);
	for (uint32_t i = 0; i < by_chance && i < MOST_BY_CHANCE; i++)
		network_by_chance(i);
	count = COUNT(networks) + by_chance;
}

/* ---- networks with weights and cases ------------------------------------------------------------ */

typedef struct Trained {
	mp_net *net;
	mp_run *run;
	mp_data *data;
	uint32_t inputs, outputs;
	float *flat;
	double *y;
	bool timed;
} Trained;

static void trained_new(Trained *t, const Network *n)
{
	uint64_t seq[SEQUENCES + 1];
	drawn = UINT32_MAX;
	if (net_parse_1989(&t->net, n->text, n->name, NULL) != MP_OK)
		print_error("%s", mp_net_messages(t->net));
	assert_int_equal(mp_run_new(&t->run, t->net, NULL), MP_OK);
	const mp_net_info *info = mp_net_get_info(t->net);
	t->inputs = info->inputs;
	t->outputs = info->outputs;
	t->timed = t->net->net->timed;
	double *w = calloc(info->connections, sizeof *w);
	for (uint64_t i = 0; i < info->connections; i++)
		w[i] = (double)(float)draw(n->weight);
	assert_int_equal(mp_run_set_weights(t->run, w, info->connections), MP_OK);
	free(w);
	t->flat = calloc((size_t)CASES * t->inputs, sizeof *t->flat);
	for (uint32_t i = 0; i < CASES * t->inputs; i++)
		t->flat[i] = random_below(3, STREAM_DATA, drawn, 5) ? (float)draw(n->input) : 0;
	for (int i = 0; i <= SEQUENCES; i++)
		seq[i] = (uint64_t)i * CASES / SEQUENCES;
	assert_int_equal(mp_data_new(&t->data, CASES, t->inputs, 0, t->flat, NULL, t->timed ? seq : NULL,
	                             t->timed ? SEQUENCES : 0, NULL),
	                 MP_OK);
	t->y = calloc((size_t)CASES * t->outputs, sizeof *t->y);
	assert_int_equal(mp_run_test(t->run, t->data, NULL, t->y), MP_OK);
}

static void trained_free(Trained *t)
{
	free(t->flat);
	free(t->y);
	mp_data_close(t->data);
	mp_run_close(t->run);
	mp_net_close(t->net);
}

/* ---- exported files ----------------------------------------------------------------------------- */

static char folder[40];

static void *symbol(void *library, const char *name, const char *ending)
{
	char text[80];
	snprintf(text, sizeof text, "%s_%s", name, ending);
	void *s = dlsym(library, text);
	if (!s)
		print_error("%s: %s\n", text, dlerror());
	assert_non_null(s);
	return s;
}

static void case_of(void *library, const Trained *t, const char *name, void *state, int i, float *y)
{
	const float *x = t->flat + (size_t)i * t->inputs;
	if (t->timed) {
		void (*reset)(void *), (*step)(void *, const float *, float *);
		*(void **)&reset = symbol(library, name, "reset");
		*(void **)&step = symbol(library, name, "step");
		if (i % (CASES / SEQUENCES) == 0)
			reset(state);
		step(state, x, y);
	} else {
		void (*predict)(const float *, float *);
		*(void **)&predict = symbol(library, name, "predict");
		predict(x, y);
	}
}

static void compare(void *library, const Network *n, const Trained *t, const char *how)
{
	float y[64], state[1000]; /* more than any of these networks leaves to its next step */
	for (int i = 0; i < CASES; i++) {
		case_of(library, t, n->name, state, i, y);
		for (uint32_t k = 0; k < t->outputs; k++) {
			float right = (float)t->y[(size_t)i * t->outputs + k];
			if (memcmp(&right, &y[k], sizeof right) != 0) {
				print_error("%s, %s: case %d, output %u is %a, predict gives %a\n", n->name, how, i, k, (double)y[k],
				            (double)right);
				assert_true(false);
			}
		}
	}
}

static void *compiled(const char *flags)
{
	const char *given = getenv("CC"), *compiler = given ? given : "gcc"; /* in build/sanitize it is clang */
	char command[400], library[100];
	static int number;
	snprintf(library, sizeof library, "%s/lib%d.so", folder, ++number);
	snprintf(command, sizeof command, "%s -std=c99 -Wall -Wextra -Werror -pedantic %s -shared -fPIC %s/*.c -o %s",
	         compiler, flags, folder, library);
	if (system(command) != 0) {
		print_error("%s\n", command);
		assert_true(false);
	}
	void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!loaded)
		print_error("%s\n", dlerror());
	assert_non_null(loaded);
	return loaded;
}

static void folder_begin(void)
{
	strcpy(folder, "/tmp/export-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
}

static void folder_end(void)
{
	char command[100];
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

enum { WAYS = 2 };
static const char *way_flags(int way)
{
#if defined __x86_64__
	if (way == 1 && __builtin_cpu_supports("fma"))
		return "-O2 -march=x86-64-v3";
#endif
	return way == 0 ? "-O0" : "-O2";
}

static void c_has_the_bits_of_predict(void **unused)
{
	static Trained t[COUNT(all)];
	(void)unused;
	folder_begin();
	networks_make();
	for (size_t i = 0; i < count; i++) {
		char path[100];
		trained_new(&t[i], &all[i]);
		snprintf(path, sizeof path, "%s/%s.c", folder, all[i].name);
		mp_exported e = { .size = sizeof e };
		assert_int_equal(mp_run_export_model(t[i].run, path, NULL, &e), MP_OK);
		assert_string_equal(e.format, "c");
		assert_int_equal(e.inputs, t[i].inputs);
	}
	for (int w = 0; w < WAYS; w++) {
		void *library = compiled(way_flags(w));
		for (size_t i = 0; i < count; i++)
			compare(library, &all[i], &t[i], way_flags(w));
		dlclose(library);
	}
	for (size_t i = 0; i < count; i++)
		trained_free(&t[i]);
	folder_end();
}

static void steps_have_the_bits_of_predict(void **unused)
{
	int stepped = 0;
	(void)unused;
	networks_make();
	for (size_t i = 0; i < count; i++) {
		Trained t = { 0 };
		mp_predictor *p;
		trained_new(&t, &all[i]);
		assert_int_equal(mp_predictor_new(&p, t.run, NULL), MP_OK);
		for (int c = 0; c < CASES && t.net->net->copies; c++) {
			if (c % (CASES / SEQUENCES) == 0)
				assert_int_equal(mp_predictor_reset(p), MP_OK);
			memcpy(mp_predictor_inputs(p), t.flat + (size_t)c * t.inputs, t.inputs * sizeof *t.flat);
			const double *y = mp_predictor_step(p);
			assert_ptr_equal(y, mp_predictor_outputs(p));
			assert_memory_equal(y, t.y + (size_t)c * t.outputs, t.outputs * sizeof *y);
			stepped++;
		}
		mp_predictor_close(p);
		trained_free(&t);
	}
	assert_true(stepped >= 4 * CASES);
}

static void steps_that_cannot_be_say_why(void **unused)
{
	mp_net *net;
	mp_run *run;
	mp_predictor *p;
	(void)unused;
	assert_int_equal(net_parse_1989(&net,
	                                "group in 1 input\ngroup m 2 context\ngroup h 2\ngroup o 1 output\ncopy h -> m\n"
	                                "connect in, m -> h\nconnect h -> o\n",
	                                "net", NULL),
	                 MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_set(run, "target", "ref"), MP_OK);
	assert_int_equal(mp_predictor_new(&p, run, NULL), MP_OK);
	assert_null(mp_predictor_step(p));
	assert_int_equal(mp_predictor_reset(p), MP_BAD_INPUT);
	assert_non_null(strstr(mp_predictor_messages(p), "target cpu only"));
	assert_non_null(mp_predictor_run(p));
	mp_predictor_close(p);
	mp_run_close(run);
	mp_net_close(net);
}

/* ---- 8 bits ------------------------------------------------------------------------------------- */

/* What was measured is what the compiled file does. */
static void loss_compare(void *library, const Network *n, const Trained *t, const mp_exported *e)
{
	float y[64], state[1000];
	double largest = 0, squares = 0, changed = 0;
	for (int i = 0; i < CASES; i++) {
		const double *right = t->y + (size_t)i * t->outputs;
		uint32_t best = 0, best8 = 0;
		case_of(library, t, n->name, state, i, y);
		for (uint32_t k = 0; k < t->outputs; k++) {
			double off = fabs((double)y[k] - right[k]);
			largest = fmax(largest, off);
			squares += off * off;
			best = right[k] > right[best] ? k : best;
			best8 = y[k] > y[best8] ? k : best8;
		}
		changed += best != best8;
	}
	assert_true(fabs(largest - e->largest_difference) <= 1e-7);
	assert_true(fabs(sqrt(squares / (CASES * t->outputs)) - e->rms) <= 1e-7);
	if (t->outputs > 1)
		assert_true(fabs(changed / CASES - e->changed) <= 1e-9);
}

static void eight_bits_cost_what_was_measured(void **unused)
{
	static const int chosen[] = { 0, 4, 5, 7 }; /* functions, skips, sparse, elman */
	Trained t[COUNT(chosen)] = { 0 };
	mp_exported e[COUNT(chosen)];
	(void)unused;
	folder_begin();
	for (size_t i = 0; i < COUNT(chosen); i++) {
		char path[100];
		const Network *n = &networks[chosen[i]];
		trained_new(&t[i], n);
		snprintf(path, sizeof path, "%s/%s.c", folder, n->name);
		e[i] = (mp_exported){ .size = sizeof e[i] };
		mp_export how = { .size = sizeof how, .calibration = t[i].data };
		assert_int_equal(mp_run_export_model(t[i].run, path, &how, &e[i]), MP_OK);
		assert_int_equal(e[i].calibration_cases, CASES);
		assert_true(e[i].largest_difference > 0 && e[i].largest_difference < 0.1);
		assert_true(e[i].rms < 0.05);
		assert_true(isnan(e[i].right));
		assert_true(e[i].bytes_int8 < e[i].bytes);
	}
	for (int w = 0; w < WAYS; w++) {
		void *library = compiled(way_flags(w));
		for (size_t i = 0; i < COUNT(chosen); i++)
			loss_compare(library, &networks[chosen[i]], &t[i], &e[i]);
		dlclose(library);
	}
	for (size_t i = 0; i < COUNT(chosen); i++)
		trained_free(&t[i]);
	folder_end();
}

/* ---- what formats cannot express ----------------------------------------------------------------- */

static void refused(const Network *n, const char *path, const mp_export *how, const char *words)
{
	Trained t = { 0 };
	trained_new(&t, n);
	assert_int_equal(mp_run_export_model(t.run, path, how, NULL), MP_BAD_INPUT);
	assert_non_null(strstr(mp_run_messages(t.run), words));
	trained_free(&t);
}

static void refusals_say_why(void **unused)
{
	const Network *settles = &networks[COUNT(networks) - 1];
	mp_export xml = { .size = sizeof xml, .format = "xml" };
	(void)unused;
	refused(settles, "/tmp/never.onnx", NULL, "settles over ticks");
	refused(&networks[0], "/tmp/never.bin", NULL, "does not tell a format");
	refused(&networks[0], "/tmp/never.c", &xml, "no format 'xml'");
	assert_int_not_equal(access("/tmp/never.onnx", F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c_has_the_bits_of_predict),
		cmocka_unit_test(steps_have_the_bits_of_predict),
		cmocka_unit_test(steps_that_cannot_be_say_why),
		cmocka_unit_test(eight_bits_cost_what_was_measured),
		cmocka_unit_test(refusals_say_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
