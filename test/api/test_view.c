/* SPDX-License-Identifier: MIT */
/* Data in arrays of the caller trains as copies do; predictors give the bits of mp_run_test. */
#include <math.h>

#include "api.h"
#include "microprop/data.h"
#include "microprop/inside.h"
#include "microprop/predict.h"
#include "test.h"

enum { CASES = 40, INPUTS = 3 };
static const char net_text[] = "group in 3 input\ngroup h 5\ngroup out 2 softmax output\nconnect in, true -> h\n"
							   "connect h, true -> out\ntrain epochs 3 batch 8 threads 1\n";

typedef struct Arrays {
	float x[CASES * INPUTS], y[CASES * 2], values[CASES * INPUTS], weight[CASES];
	double wide[CASES * INPUTS];
	uint8_t mask[CASES * 2];
	uint64_t indptr[CASES + 1];
	uint32_t indices[CASES * INPUTS];
} Arrays;

static void fill(Arrays *a)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < CASES; i++) {
		for (uint32_t k = 0; k < INPUTS; k++) {
			float v = (float)((i * 7 + k * 5) % 11) / 4 - 1;
			a->x[i * INPUTS + k] = v;
			a->wide[i * INPUTS + k] = v;
			if (v == 0)
				continue;
			a->indices[n] = k;
			a->values[n++] = v;
		}
		a->indptr[i + 1] = n;
		a->y[i * 2] = i % 3 == 0;
		a->y[i * 2 + 1] = i % 3 != 0;
		a->weight[i] = 1;
		a->mask[i * 2] = a->mask[i * 2 + 1] = 1;
	}
}

static mp_cases cases_of(const Arrays *a)
{
	return (mp_cases){ .size = sizeof(mp_cases), .cases = CASES, .inputs = INPUTS, .targets = 2, .x = a->x, .y = a->y };
}

static void trained(const mp_net *net, const mp_data *d, char fingerprint[33])
{
	mp_run *run;
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_train(run, d, NULL, NULL, NULL), MP_OK);
	strcpy(fingerprint, mp_run_get_report(run)->fingerprint);
	assert_string_equal(mp_run_get_fingerprint(run), fingerprint);
	mp_run_close(run);
}

static void views_train_as_copies(void **state)
{
	(void)state;
	static Arrays a;
	const char *classes[] = { "third", "other" }, *inputs[] = { "a", "b", "c" }, *target = "kind";
	char copied[33], viewed[33];
	mp_net *net;
	mp_data *d;
	fill(&a);
	assert_int_equal(mp_net_parse(&net, net_text, "n", NULL), MP_OK);
	assert_int_equal(mp_data_new(&d, CASES, INPUTS, 2, a.x, a.y, NULL, 0, NULL), MP_OK);
	trained(net, d, copied);
	mp_data_close(d);
	for (int kind = 0; kind < 4; kind++) {
		mp_cases c = cases_of(&a);
		if (kind == 1) {
			c.x = a.wide;
			c.x_type = "float64";
		}
		if (kind == 2) {
			c.x = NULL;
			c.x_indptr = a.indptr;
			c.x_indices = a.indices;
			c.x_values = a.values;
		}
		if (kind == 3) {
			c.weight = a.weight;
			c.mask = a.mask;
			c.classes = classes;
			c.class_count = 2;
			c.input_names = inputs;
			c.target_names = &target;
			c.name = "kinds";
		}
		assert_int_equal(mp_data_view(&d, &c, NULL), MP_OK);
		trained(net, d, viewed);
		assert_string_equal(viewed, copied);
		uint32_t count;
		const char *const *got = mp_data_get_classes(d, &count);
		assert_int_equal(count, kind == 3 ? 2 : 0);
		assert_true(kind != 3 || !strcmp(got[1], "other"));
		mp_data_close(d);
	}
	mp_net_close(net);
}

static void wrong_views_are_refused(void **state)
{
	(void)state;
	static Arrays a;
	mp_data *d;
	const char *one[] = { "a" }, *inputs[] = { "a", "b", "c" };
	uint64_t seq[] = { 0, 7, 5, CASES };
	fill(&a);
	for (int kind = 0; kind < 8; kind++) {
		mp_cases c = cases_of(&a);
		switch (kind) {
		case 0: c.size = 1; break;
		case 1: c.x_type = "complex64"; break;
		case 2: c.x = NULL; break;
		case 3: c.y = NULL; break;
		case 4: c.classes = one, c.class_count = 1; break;
		case 5: c.seq = seq, c.sequences = 3; break;
		case 6: c.input_names = inputs; break;
		default: a.x[4] = NAN;
		}
		assert_int_equal(mp_data_view(&d, &c, NULL), MP_BAD_INPUT);
		assert_true(*mp_data_messages(d) && mp_data_get_error(d, 0)->remedy);
		mp_data_close(d);
	}
}

static void runs_go_on_with_other_data(void **state)
{
	(void)state;
	static Arrays a, b;
	mp_net *net;
	mp_run *run;
	mp_data *first, *second;
	fill(&a);
	fill(&b);
	b.x[0] = 9;
	mp_cases ca = cases_of(&a), cb = cases_of(&b);
	assert_int_equal(mp_net_parse(&net, net_text, "n", NULL), MP_OK);
	assert_int_equal(mp_data_view(&first, &ca, NULL), MP_OK);
	assert_int_equal(mp_data_view(&second, &cb, NULL), MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_train(run, first, NULL, NULL, NULL), MP_OK);
	mp_run_set(run, "epochs", "4");
	assert_int_equal(mp_run_train(run, second, NULL, NULL, NULL), MP_BAD_INPUT);
	assert_int_equal(mp_run_change_data(run), MP_OK);
	assert_int_equal(mp_run_train(run, second, NULL, NULL, NULL), MP_OK);
	assert_true(mp_run_get_report(run)->epoch == 4 && mp_run_get_report(run)->updates == 20);
	mp_run_set(run, "updates", "22"); /* in the middle of an epoch */
	mp_run_set(run, "epochs", "6");
	assert_int_equal(mp_run_train(run, second, NULL, NULL, NULL), MP_OK);
	assert_int_equal(mp_run_change_data(run), MP_BAD_INPUT);
	mp_run_close(run);
	mp_data_close(first);
	mp_data_close(second);
	mp_net_close(net);
}

/* Predictions after some training, with a scale or not, against mp_run_test case by case. */
static void compare(const char *text, const char *target, const char *scale)
{
	static Arrays a;
	mp_net *net;
	mp_run *run;
	mp_data *d, *one;
	mp_predictor *p;
	double want[2];
	fill(&a);
	mp_cases c = cases_of(&a);
	assert_int_equal(mp_net_parse(&net, text, "n", NULL), MP_OK);
	assert_int_equal(mp_data_view(&d, &c, NULL), MP_OK);
	if (scale)
		assert_int_equal(mp_data_scale(d, scale, NULL), MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_set(run, "target", target), MP_OK);
	assert_int_equal(mp_run_train(run, d, NULL, NULL, NULL), MP_OK);
	assert_int_equal(mp_predictor_new(&p, run, NULL), MP_OK);
	for (uint32_t i = 0; i < CASES; i++) {
		assert_int_equal(mp_data_new(&one, 1, INPUTS, 0, a.x + i * INPUTS, NULL, NULL, 0, NULL), MP_OK);
		assert_int_equal(mp_run_test(run, one, NULL, want), MP_OK);
		memcpy(mp_predictor_inputs(p), a.x + i * INPUTS, INPUTS * sizeof(float));
		const double *got = mp_predictor_run(p);
		assert_ptr_equal(got, mp_predictor_outputs(p));
		assert_memory_equal(got, want, sizeof want);
		mp_data_close(one);
	}
	mp_run_close(run); /* the predictor has weights of its own */
	assert_memory_equal(mp_predictor_run(p), want, sizeof want);
	mp_predictor_close(p);
	mp_data_close(d);
	mp_net_close(net);
}

static void predictors_give_the_bits_of_tests(void **state)
{
	(void)state;
	static const char elman[] = "group in 3 input\ngroup h 5\ngroup m 5 context\ngroup out 2 output\n"
								"connect in, m, true -> h\nconnect h, true -> out\ncopy h -> m start 0.5\n"
								"train epochs 2 batch 1\n";
	compare(net_text, "cpu", NULL);
	compare(net_text, "cpu", "zscore");
	compare(net_text, "ref", "range");
	compare(elman, "cpu", NULL);
}

static void predictors_need_a_run(void **state)
{
	(void)state;
	mp_net *net;
	mp_run *run;
	mp_predictor *p;
	assert_int_equal(mp_net_parse(&net, net_text, "n", NULL), MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_set(run, "target", "abacus"), MP_OK);
	assert_int_equal(mp_predictor_new(&p, run, NULL), MP_BAD_INPUT);
	assert_non_null(strstr(mp_predictor_messages(p), "abacus"));
	assert_non_null(mp_predictor_get_error(p, 0));
	assert_null(mp_predictor_run(p));
	mp_predictor_close(p);
	mp_predictor_close(NULL);
	mp_run_close(run);
	mp_net_close(net);
}

/* As `microprop train examples/letters.topo` prints it, and as the Python package has it. */
static void letters_have_their_fingerprint(void **state)
{
	(void)state;
	mp_net *net;
	mp_data *data;
	mp_run *run;
	if (getenv("MICROPROP_ISA")) /* kernels under sanitizers take a minute for it */
		skip();
	assert_int_equal(mp_net_open(&net, SOURCE_DIR "/examples/letters.topo", NULL), MP_OK);
	assert_int_equal(mp_data_open(&data, mp_net_get_info(net)->data, NULL, NULL), MP_OK);
	assert_int_equal(mp_run_new(&run, net, NULL), MP_OK);
	assert_int_equal(mp_run_train(run, data, NULL, NULL, NULL), MP_OK);
	assert_string_equal(mp_run_get_report(run)->fingerprint, "758a46f7bbe022e210edc0b9e808eff1");
	mp_run_close(run);
	mp_data_close(data);
	mp_net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(views_train_as_copies),      cmocka_unit_test(wrong_views_are_refused),
		cmocka_unit_test(runs_go_on_with_other_data), cmocka_unit_test(predictors_give_the_bits_of_tests),
		cmocka_unit_test(predictors_need_a_run),      cmocka_unit_test(letters_have_their_fingerprint),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
