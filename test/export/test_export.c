/* SPDX-License-Identifier: MIT */
/* Exported C gives the bits of predict: every unit function, every kind of link, contexts, settling, a scale, numbers
 * that underflow; compiled by the compilers that are here, with and without fused multiply-add. */
#include "test.h"

#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <unistd.h>

#include "api.h"
#include "export.h"
#include "microprop/export.h"

enum { CASES = 60, SEQUENCES = 6 };

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

/* ---- networks with weights and cases ------------------------------------------------------------ */

static uint64_t drawn;
static double draw(double most) { return (2 * random_unit(7, STREAM_DATA, drawn++) - 1) * most; }

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

static char folder[] = "/tmp/export-test-XXXXXX";

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
	float y[64], state[1000];
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

static void *compiled(const char *compiler, const char *flags)
{
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

static void c_has_the_bits_of_predict(void **unused)
{
	static Trained t[COUNT(networks)];
	const char *given = getenv("CC"), *compiler = given ? given : "gcc"; /* in build/sanitize it is clang */
	const char *const ways[] = { "-O0", __builtin_cpu_supports("fma") ? "-O2 -march=x86-64-v3" : "-O2" };
	(void)unused;
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < COUNT(networks); i++) {
		char path[100];
		trained_new(&t[i], &networks[i]);
		snprintf(path, sizeof path, "%s/%s.c", folder, networks[i].name);
		mp_exported e = { .size = sizeof e };
		assert_int_equal(mp_run_export_model(t[i].run, path, NULL, &e), MP_OK);
		assert_string_equal(e.format, "c");
		assert_int_equal(e.inputs, t[i].inputs);
	}
	for (size_t w = 0; w < COUNT(ways); w++) {
		void *library = compiled(compiler, ways[w]);
		for (size_t i = 0; i < COUNT(networks); i++)
			compare(library, &networks[i], &t[i], ways[w]);
		dlclose(library);
	}
	for (size_t i = 0; i < COUNT(networks); i++)
		trained_free(&t[i]);
	char command[100];
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

/* ---- 8 bits ------------------------------------------------------------------------------------- */

static void eight_bits_cost_little(void **unused)
{
	Trained t = { 0 };
	char path[] = "/tmp/export-test-8-XXXXXX.c";
	(void)unused;
	trained_new(&t, &networks[0]);
	int f = mkstemps(path, 2);
	assert_true(f >= 0);
	close(f);
	mp_exported e = { .size = sizeof e };
	assert_int_equal(
		mp_run_export_model(t.run, path, &(mp_export){ .size = sizeof(mp_export), .calibration = t.data }, &e), MP_OK);
	assert_int_equal(e.calibration_cases, CASES);
	assert_true(e.largest_difference > 0 && e.largest_difference < 0.1);
	assert_true(e.rms < 0.02);
	assert_true(isnan(e.right));
	assert_true(e.bytes_int8 < e.bytes);
	unlink(e.second);
	unlink(path);
	trained_free(&t);
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
		cmocka_unit_test(eight_bits_cost_little),
		cmocka_unit_test(refusals_say_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
