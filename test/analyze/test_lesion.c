/* SPDX-License-Identifier: MIT */
/* Damaged networks: what lesion reports is what a run with these weights gives; any number of threads gives the same
 * text; damage grows with the share; noise is that of its seed. */
#include <jansson.h>
#include <math.h>

#include "analyze.h"
#include "api.h"
#include "microprop/tool.h"
#include "test.h"

static const char elman_net[] = "group letter 7 input\ngroup hidden 10\ngroup follows 7 output\n"
								"group memory 10 context\ncopy hidden -> memory start 0.5\n"
								"connect letter, memory, true -> hidden\nconnect hidden, true -> follows\n"
								"train batch 1 rate 0.02 momentum 0.9 epochs 2 seed 3\n";

typedef struct Fixture {
	mp_net *net;
	mp_data *data;
	mp_run *run;
} Fixture;

static Fixture trained(const char *threads)
{
	Fixture f;
	assert_int_equal(net_parse_1989(&f.net, elman_net, "test.topo", NULL), MP_OK);
	assert_int_equal(mp_data_open(&f.data, "make:reber", NULL, NULL), MP_OK);
	assert_int_equal(mp_run_new(&f.run, f.net, NULL), MP_OK);
	assert_int_equal(mp_run_set(f.run, "threads", threads), MP_OK);
	assert_int_equal(mp_run_train(f.run, f.data, NULL, NULL, NULL), MP_OK);
	return f;
}

static void closed(Fixture *f)
{
	mp_run_close(f->run);
	mp_data_close(f->data);
	mp_net_close(f->net);
}

typedef struct Report {
	char s[400000];
	size_t len;
} Report;

static void add(void *user, const char *text, size_t len)
{
	Report *r = user;
	assert_true(r->len + len < sizeof r->s);
	memcpy(r->s + r->len, text, len);
	r->s[r->len += len] = '\0';
}

static json_t *rows_of(Fixture *f, int argc, const char *const *argv, json_t **root)
{
	static Report r;
	r.len = 0;
	mp_status s = mp_run_study(f->run, f->data, "lesion", argc, argv, add, &r);
	if (s != MP_OK)
		print_error("%s", mp_run_messages(f->run));
	assert_int_equal(s, MP_OK);
	*root = json_loads(r.s, 0, NULL);
	assert_non_null(*root);
	return json_object_get(*root, "rows");
}

static double figure(const json_t *rows, size_t i, const char *measure, const char *what)
{
	return json_real_value(json_object_get(json_object_get(json_array_get(rows, i), measure), what));
}

/* All hidden units removed: neither outputs nor the next case get anything from them but biases. */
static void removal_is_zero_weights(void **state)
{
	(void)state;
	Fixture f = trained("1");
	const Net *net = f.net->net;
	const char *const argv[] = { "--units=hidden", "--share=0,1", "--repeats=3", "--json" };
	json_t *root, *rows = rows_of(&f, COUNT(argv), argv, &root);
	assert_int_equal(json_array_size(rows), 2);
	for (int all = 0; all < 2; all++) {
		double *w = calloc(net->links, sizeof *w), *kept = calloc(net->links, sizeof *w);
		mp_result r = { .size = sizeof r };
		assert_int_equal(mp_run_get_weights(f.run, kept, net->links), MP_OK);
		memcpy(w, kept, net->links * sizeof *w);
		for (Unit u = 1; all && u < net->units; u++)
			for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
				const Group *from = net_group(net, net_source(net, u, l));
				if (from && (!strcmp(from->name, "hidden") || !strcmp(from->name, "memory")))
					w[l] = 0;
			}
		assert_int_equal(mp_run_set_weights(f.run, w, net->links), MP_OK);
		assert_int_equal(mp_run_test(f.run, f.data, &r, NULL), MP_OK);
		assert_int_equal(mp_run_set_weights(f.run, kept, net->links), MP_OK);
		assert_true(fabs(figure(rows, (size_t)all, "error", "mean") - r.error) < 1e-5 * r.error);
		assert_true(fabs(figure(rows, (size_t)all, "within", "mean") - r.within) < 1e-9);
		assert_true(fabs(figure(rows, (size_t)all, "right", "mean") - r.right) < 1e-9);
		assert_true(figure(rows, (size_t)all, "error", "sd") == 0);
		free(w), free(kept);
	}
	json_decref(root);
	closed(&f);
}

static void threads_do_not_matter(void **state)
{
	static const char *const threads[] = { "1", "2", "3", "8" };
	static Report first, other;
	const char *const argv[] = { "--units=hidden,follows", "--links=memory->hidden,true->follows", "--repeats=7",
		                         "--sets=B=B,rest=2..20|T|40", "--share=0..1:0.25" };
	const char *const noise[] = { "--units=hidden", "--links=letter->hidden", "--repeats=5", "--noise",
		                          "--share=0,0.5,2" };
	(void)state;
	for (size_t i = 0; i < COUNT(threads); i++) {
		Fixture f = trained(threads[i]);
		Report *r = i ? &other : &first;
		r->len = 0;
		assert_int_equal(mp_run_study(f.run, f.data, "lesion", COUNT(argv), argv, add, r), MP_OK);
		assert_int_equal(mp_run_study(f.run, f.data, "lesion", COUNT(noise), noise, add, r), MP_OK);
		assert_string_equal(r->s, first.s);
		closed(&f);
	}
}

static void spreads_are_those_of_student(void **state)
{
	(void)state;
	const double v[] = { 1, 2, 3, 4 };
	Spread s = spread_of(v, 4);
	assert_true(s.n == 4 && s.mean == 2.5 && fabs(s.sd - 1.2909944487) < 1e-9);
	assert_true(fabs(s.high - 2.5 - 3.1824 * 1.2909944487 / 2) < 1e-9 && fabs(s.low + s.high - 5) < 1e-12);
	const double same[] = { 0.1, 0.1, 0.1 };
	assert_true(spread_of(same, 3).mean == 0.1 && spread_of(same, 3).sd == 0);
	double many[1000];
	for (int i = 0; i < 1000; i++)
		many[i] = i % 2;
	s = spread_of(many, 1000);
	assert_true(fabs((s.high - s.mean) / (s.sd / sqrt(1000)) - 1.9623) < 1e-4);
}

static void noise_has_its_size(void **state)
{
	(void)state;
	Fixture f = trained("1");
	const char *const argv[] = { "--links=letter->hidden", "--noise", "--share=0,0.2,5", "--repeats=10", "--json" };
	json_t *root, *rows = rows_of(&f, COUNT(argv), argv, &root);
	double intact = figure(rows, 0, "error", "mean"), little = figure(rows, 1, "error", "mean"),
		   much = figure(rows, 2, "error", "mean");
	assert_true(intact < little && little < much && figure(rows, 1, "error", "sd") > 0);
	assert_true(figure(rows, 1, "error", "low") < little && little < figure(rows, 1, "error", "high"));
	json_decref(root);
	closed(&f);
}

static void refusals_say_why(void **state)
{
	static const struct {
		const char *word, *says;
	} wrong[] = {
		{ "--units=hiden", "did you mean 'hidden'?" },
		{ "--links=hidden", "write FROM->TO" },
		{ "--links=follows->letter", "there is no link follows->letter" },
		{ "--links=a->hidden", "has no group 'a'" },
		{ "--share=0..2:0.5", "from 0 to 1" },
		{ "--share=", "--share cannot be ''" },
		{ "--sets=a", "NAME=CASES" },
		{ "--sets=a=9999999", "holds case 9999999" },
		{ "--sets=a=Q*", "no further case" },
		{ "--sets=a=1,a=2", "two sets are called 'a'" },
		{ "--repeats=0", "whole number from 1" },
		{ "--measure=speed", "right, within or error" },
		{ "--what=1", "no option '--what'" },
	};
	static Report r;
	(void)state;
	Fixture f = trained("1");
	for (size_t i = 0; i < COUNT(wrong); i++) {
		assert_int_equal(mp_run_study(f.run, f.data, "lesion", 1, &wrong[i].word, add, &r), MP_BAD_INPUT);
		if (!strstr(mp_run_messages(f.run), wrong[i].says))
			print_error("%s: %s", wrong[i].word, mp_run_messages(f.run));
		assert_non_null(strstr(mp_run_messages(f.run), wrong[i].says));
	}
	assert_int_equal(mp_run_study(f.run, f.data, "astrology", 0, NULL, add, &r), MP_BAD_INPUT);
	assert_int_equal(mp_run_study(f.run, NULL, "lesion", 0, NULL, add, &r), MP_BAD_INPUT);
	closed(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removal_is_zero_weights),
		cmocka_unit_test(threads_do_not_matter),
		cmocka_unit_test(spreads_are_those_of_student),
		cmocka_unit_test(noise_has_its_size),
		cmocka_unit_test(refusals_say_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
