/* SPDX-License-Identifier: MIT */
/* Online learning from index lists: rows of weights whose inputs are rarely on owe an update and follow their last
 * change for hundreds of cases, longer than deltas are kept. Whatever lists hold, the bits must be those of dense
 * inputs. */
#include "cpu_nets.h"
#include "runs.h"

enum { CASES = 1400, INPUTS = 23, TARGETS = 3 };

static const char *const nets[] = {
	/* Two layers from the inputs, one around the other; more columns than four vectors. */
	"group x 23 input\ngroup a 67\ngroup b 5 tanh\ngroup o 3 output\nconnect x, true -> a\nconnect x -> b\nconnect a, "
	"b, true -> o\n",
	/* Inputs in two groups, some frozen, no hidden layer for one of them. */
	"group x 13 input\ngroup y 10 input\ngroup h 20 relu\ngroup o 3 output linear\nconnect x, true -> h\nconnect y -> "
	"h frozen\n"
	"connect h -> o\nconnect y, true -> o\n",
};
static const char *const options[][3][2] = {
	{ { "epochs", "2" } },
	{ { "epochs", "2" }, { "schedule", "cosine" }, { "shuffle", "false" } },
	{ { "epochs", "1" }, { "updates", "700" }, { "error", "squared" } },
};

/* Values are between -0.5 and 0.5; tiny ones make gradients that are too small for a float, whose zeros have a sign
 * all the same. */
typedef enum Kind { ONES, VALUES, TINY } Kind;

static float input_of(Kind kind, double unit)
{
	return kind == ONES ? 1 : ((float)unit - 0.5f) * (kind == TINY ? 0x1p-122f : 1);
}

/* Input i is on in one case of 2^(i / 2), the last in two cases that are far apart. */
static mp_data *rare(Kind kind)
{
	float *x = calloc((size_t)CASES * INPUTS, sizeof *x), *y = calloc((size_t)CASES * TARGETS, sizeof *y);
	mp_data *data;
	for (uint64_t i = 0; i < CASES; i++) {
		for (uint64_t k = 0; k < INPUTS - 1; k++)
			if (random_unit(5, STREAM_DATA, i * INPUTS + k) * (double)(1u << k / 2) < 1)
				x[i * INPUTS + k] = input_of(kind, random_unit(6, STREAM_DATA, i * INPUTS + k));
		x[i * INPUTS + INPUTS - 1] = i == 3 || i == 1200;
		y[i * TARGETS + i % TARGETS] = 1;
	}
	assert_int_equal(mp_data_new(&data, CASES, INPUTS, TARGETS, x, y, NULL, 0, NULL), MP_OK);
	free(x);
	free(y);
	return data;
}

static mp_run *taught(const mp_net *net, const mp_data *data, const char *rate, const char *input,
                      const char *const (*option)[2])
{
	mp_run *run = run_of(net);
	need(run, mp_run_set(run, "target", "cpu"));
	need(run, mp_run_set(run, "batch", "1"));
	need(run, mp_run_set(run, "rate", rate));
	need(run, mp_run_set(run, "until", "never"));
	need(run, mp_run_set(run, "input", input));
	for (size_t i = 0; i < 3 && option[i][0]; i++)
		need(run, mp_run_set(run, option[i][0], option[i][1]));
	need(run, mp_run_train(run, data, NULL, NULL, NULL));
	return run;
}

static void same_from_lists(const char *text, const mp_data *data, const char *rate, const char *const (*option)[2])
{
	mp_net *net = net_of(text);
	mp_run *dense = taught(net, data, rate, "dense", option), *index = taught(net, data, rate, "index", option);
	same_part(dense, index, 0);
	same_part(dense, index, 1);
	assert_true(mp_run_get_report(dense)->total_error == mp_run_get_report(index)->total_error);
	mp_run_close(dense);
	mp_run_close(index);
	mp_net_close(net);
}

static void lists_are_dense_inputs(int isa, Kind kind)
{
	if (!isa_has(isa))
		skip();
	mp_data *data = rare(kind);
	const char *rate = kind == TINY ? "1" : "0.01";
	setenv("MICROPROP_ISA", isa_name(isa), 1);
	for (size_t n = 0; n < COUNT(nets); n++)
		for (size_t k = 0; k < COUNT(options); k++)
			same_from_lists(nets[n], data, rate, options[k]);
	unsetenv("MICROPROP_ISA");
	mp_data_close(data);
}

static void ones_on_generic(void **state)
{
	(void)state;
	lists_are_dense_inputs(ISA_GENERIC, ONES);
}
static void values_on_generic(void **state)
{
	(void)state;
	lists_are_dense_inputs(ISA_GENERIC, VALUES);
}
static void tiny_on_generic(void **state)
{
	(void)state;
	lists_are_dense_inputs(ISA_GENERIC, TINY);
}
static void ones_on_neon(void **state)
{
	(void)state;
	lists_are_dense_inputs(ISA_NEON, ONES);
}
static void values_on_neon(void **state)
{
	(void)state;
	lists_are_dense_inputs(ISA_NEON, VALUES);
}
static void tiny_on_neon(void **state)
{
	(void)state;
	lists_are_dense_inputs(ISA_NEON, TINY);
}
static void ones_on_avx2(void **state)
{
	(void)state;
	lists_are_dense_inputs(ISA_AVX2, ONES);
}
static void values_on_avx2(void **state)
{
	(void)state;
	lists_are_dense_inputs(ISA_AVX2, VALUES);
}
static void tiny_on_avx2(void **state)
{
	(void)state;
	lists_are_dense_inputs(ISA_AVX2, TINY);
}
static void ones_on_avx512(void **state)
{
	(void)state;
	lists_are_dense_inputs(ISA_AVX512, ONES);
}
static void values_on_avx512(void **state)
{
	(void)state;
	lists_are_dense_inputs(ISA_AVX512, VALUES);
}
static void tiny_on_avx512(void **state)
{
	(void)state;
	lists_are_dense_inputs(ISA_AVX512, TINY);
}

/* So many updates that all rows catch up, because they are counted. */
static void counts_of_updates_do_not_end(void **state)
{
	(void)state;
	static const char *const option[3][2] = { { "epochs", "48" } };
	mp_data *data = rare(ONES);
	same_from_lists(nets[1], data, "0.0001", option);
	mp_data_close(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ones_on_generic),
		cmocka_unit_test(values_on_generic),
		cmocka_unit_test(tiny_on_generic),
		cmocka_unit_test(ones_on_neon),
		cmocka_unit_test(ones_on_avx2),
		cmocka_unit_test(values_on_neon),
		cmocka_unit_test(values_on_avx2),
		cmocka_unit_test(tiny_on_neon),
		cmocka_unit_test(tiny_on_avx2),
		cmocka_unit_test(ones_on_avx512),
		cmocka_unit_test(values_on_avx512),
		cmocka_unit_test(tiny_on_avx512),
		cmocka_unit_test(counts_of_updates_do_not_end),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
