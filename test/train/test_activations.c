/* SPDX-License-Identifier: MIT */
/* Activations of groups: cpu gives those of ref; output groups together are the outputs, to the bit; inputs are those
 * of the data, contexts those of the case before. */
#include <math.h>

#include "api.h"
#include "microprop/inside.h"
#include "test.h"

typedef struct Case {
	const char *net, *data;
} Case;

static const Case list[] = {
	{ "group in 2 input\ngroup hidden 3\ngroup out 1 output\nconnect in, true -> hidden\nconnect in, hidden, true -> "
	  "out\n",
	  "make:xor" },
	{ "group a 3 input\ngroup b 5 input\ngroup h 20 tanh\ngroup k 6 relu\ngroup p 2 output\ngroup q 6 linear output\n"
	  "connect a, true -> h\nconnect h, b, true -> k random 0.3\nconnect k, true -> p\nconnect k, p -> q\n",
	  "make:encoder:8-3" },
	{ "group letter 7 input\ngroup hidden 10\ngroup follows 7 output\ngroup memory 10 context\n"
	  "copy hidden -> memory start 0.5\nconnect letter, memory, true -> hidden\nconnect hidden, true -> follows\n",
	  "make:reber" },
	{ "group window 203 input\ngroup hidden 60\ngroup sound 26 output\nconnect window -> hidden\nconnect hidden -> "
	  "sound\n"
	  "connect true -> hidden, sound\n",
	  "make:letters" },
};

typedef struct Fixture {
	mp_net *net;
	mp_data *data;
	uint64_t cases;
} Fixture;

static Fixture open(const Case *c)
{
	Fixture f;
	const mp_data_info *info;
	if (net_parse_1989(&f.net, c->net, "test.topo", NULL) != MP_OK)
		print_error("%s", mp_net_messages(f.net));
	assert_int_equal(
		mp_data_open(&f.data, c->data, &(mp_data_options){ .size = sizeof(mp_data_options), .first = 700 }, NULL),
		MP_OK);
	assert_int_equal(mp_data_get_info(f.data, &info), MP_OK);
	f.cases = info->cases;
	return f;
}

static mp_run *run_on(const Fixture *f, const char *target, const char *threads)
{
	mp_run *r;
	assert_int_equal(mp_run_new(&r, f->net, NULL), MP_OK);
	assert_int_equal(mp_run_set(r, "target", target), MP_OK);
	assert_int_equal(mp_run_set(r, "threads", threads), MP_OK);
	return r;
}

static double *taken(mp_run *r, const Fixture *f, const Group *g)
{
	double *v = calloc(f->cases * g->size, sizeof *v);
	assert_int_equal(mp_run_activations(r, f->data, g->name, 0, v), MP_OK);
	return v;
}

static void groups_agree(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(list); i++) {
		Fixture f = open(&list[i]);
		mp_run *cpu = run_on(&f, "cpu", "1"), *many = run_on(&f, "cpu", "3"), *ref = run_on(&f, "ref", "1");
		const Net *net = f.net->net;
		double *out = calloc(f.cases * net->outputs, sizeof *out);
		assert_int_equal(mp_run_test(cpu, f.data, NULL, out), MP_OK);
		uint32_t input = 0, output = 0;
		for (uint32_t k = 0; k < net->groups; k++) {
			const Group *g = &net->group[k];
			double *a = taken(cpu, &f, g), *b = taken(many, &f, g), *c = taken(ref, &f, g);
			float x[256];
			assert_memory_equal(a, b, f.cases * g->size * sizeof *a);
			for (uint64_t j = 0; j < f.cases * g->size; j++) {
				uint64_t one = j / g->size;
				uint32_t unit = (uint32_t)(j % g->size);
				assert_true(fabs(a[j] - c[j]) < 1e-5);
				if (g->role == ROLE_OUTPUT)
					assert_true(a[j] == out[one * net->outputs + output + unit]);
				mp_data_get_case(f.data, one, x, NULL);
				if (g->role == ROLE_INPUT)
					assert_true(a[j] == (double)x[input + unit]);
			}
			input += g->role == ROLE_INPUT ? g->size : 0;
			output += g->role == ROLE_OUTPUT ? g->size : 0;
			free(a), free(b), free(c);
		}
		double *again = calloc(f.cases * net->outputs, sizeof *again); /* what was watched is over */
		assert_int_equal(mp_run_test(cpu, f.data, NULL, again), MP_OK);
		assert_memory_equal(out, again, f.cases * net->outputs * sizeof *out);
		free(again), free(out);
		mp_run_close(cpu), mp_run_close(many), mp_run_close(ref);
		mp_data_close(f.data), mp_net_close(f.net);
	}
}

static void contexts_are_of_the_case_before(void **state)
{
	(void)state;
	Fixture f = open(&list[2]);
	mp_run *r = run_on(&f, "cpu", "1");
	const Net *net = f.net->net;
	double *hidden = taken(r, &f, &net->group[1]), *memory = taken(r, &f, &net->group[3]);
	const Data *d = f.data->data;
	for (uint64_t e = 0; e < data_examples(d); e++) {
		uint64_t first, count;
		data_example(d, e, &first, &count);
		for (uint64_t i = first; i < first + count; i++)
			for (uint32_t k = 0; k < 10; k++)
				assert_true(memory[i * 10 + k] == (i == first ? 0.5 : hidden[(i - 1) * 10 + k]));
	}
	free(hidden), free(memory);
	mp_run_close(r), mp_data_close(f.data), mp_net_close(f.net);
}

/* The last tick is that of the outputs; errors of cases, summed, are those of the test. */
static void ticks_can_be_watched(void **state)
{
	static const char settling[] =
		"group letters 21 input\ngroup hidden 9\ngroup sound 26 output\ngroup meaning 30 output\n"
		"connect letters, true -> hidden\nconnect hidden, meaning, true -> sound\n"
		"connect hidden, sound, true -> meaning\ntrain ticks 5 targets-from 3 inputs-until 2\n";
	(void)state;
	Fixture f = open(&(Case){ settling, "make:triangle" });
	mp_run *cpu = run_on(&f, "cpu", "2"), *ref = run_on(&f, "ref", "1");
	const Group *g = &f.net->net->group[2], *in = &f.net->net->group[0];
	double *last = taken(cpu, &f, g), *before = calloc(f.cases * g->size, sizeof *before), *a, *b;
	a = calloc(f.cases * g->size, sizeof *a);
	b = calloc(f.cases * g->size, sizeof *b);
	assert_int_equal(mp_run_get_ticks(cpu), 5);
	for (uint32_t tick = 1; tick <= 5; tick++) {
		assert_int_equal(mp_run_activations(cpu, f.data, "sound", tick, a), MP_OK);
		assert_int_equal(mp_run_activations(ref, f.data, "sound", tick, b), MP_OK);
		for (uint64_t i = 0; i < f.cases * g->size; i++)
			assert_true(fabs(a[i] - b[i]) < 1e-5);
		assert_true(memcmp(a, before, f.cases * g->size * sizeof *a) != 0);
		memcpy(before, a, f.cases * g->size * sizeof *a);
		assert_int_equal(mp_run_activations(cpu, f.data, "letters", tick, a), MP_OK);
		double sum = 0;
		for (uint64_t i = 0; i < f.cases * in->size; i++)
			sum += a[i];
		assert_true((sum > 0) == (tick <= 2));
	}
	assert_memory_equal(before, last, f.cases * g->size * sizeof *last);
	assert_int_equal(mp_run_activations(cpu, f.data, "sound", 6, a), MP_BAD_INPUT);
	uint32_t ticks[80] = { [3] = 7, [5] = 2 }; /* others as the options say */
	memcpy(b, last, f.cases * g->size * sizeof *b);
	f.data->data->ticks = ticks;
	for (uint32_t tick = 0; tick <= 7; tick++) {
		assert_int_equal(mp_run_activations(cpu, f.data, "sound", tick, a), MP_OK);
		assert_int_equal(mp_run_activations(ref, f.data, "sound", tick, b), MP_OK);
		for (uint64_t i = 0; i < f.cases * g->size; i++) {
			uint64_t one = i / g->size;
			bool has = tick <= (one == 3 ? 7 : one == 5 ? 2 : 5);
			assert_true(has ? fabs(a[i] - b[i]) < 1e-5 : isnan(a[i]) && isnan(b[i]));
		}
	}
	free(last), free(before), free(a), free(b);
	mp_run_close(cpu), mp_run_close(ref), mp_data_close(f.data), mp_net_close(f.net);
}

static void refusals_say_why(void **state)
{
	(void)state;
	Fixture f = open(&list[0]);
	mp_run *r = run_on(&f, "cpu", "1"), *simulated = run_on(&f, "gf11", "1");
	double v[16];
	assert_int_equal(mp_run_activations(r, f.data, "hiden", 0, v), MP_BAD_INPUT);
	assert_non_null(strstr(mp_run_messages(r), "did you mean 'hidden'?"));
	assert_int_equal(mp_run_activations(simulated, f.data, "hidden", 0, v), MP_BAD_INPUT);
	assert_non_null(strstr(mp_run_messages(simulated), "use target cpu or ref"));
	mp_run_close(r), mp_run_close(simulated), mp_data_close(f.data), mp_net_close(f.net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_agree),
		cmocka_unit_test(contexts_are_of_the_case_before),
		cmocka_unit_test(ticks_can_be_watched),
		cmocka_unit_test(refusals_say_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
