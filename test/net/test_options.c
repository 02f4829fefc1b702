/* SPDX-License-Identifier: MIT */
/* The table of options: defaults, setting and getting by name, refusing with a remedy. */
#include <math.h>

#include "test.h"

static void every_option_reads_back(void **state)
{
	(void)state;
	Ctx cx;
	Options o, copy;
	ctx_init(&cx, NULL);
	options_init(&o, DEFAULTS_NEWEST);
	options_init(&copy, DEFAULTS_NEWEST);
	size_t i = 0;
	for (const mp_option *row; (row = option_at(i)); i++) {
		const char *remedy, *text = option_get(&cx.keep, &o, row->name);
		assert_string_equal(text, row->default_value);
		assert_null(option_set(&cx, &copy, row->name, text, &remedy));
		assert_string_equal(option_get(&cx.keep, &copy, row->name), text);
		assert_true(*row->help);
	}
	assert_true(i > 30);
	assert_null(option_get(&cx.keep, &o, "no-such"));
	ctx_free(&cx);
}

static void choices_name_the_tables(void **state)
{
	(void)state;
	Ctx cx;
	Options o;
	ctx_init(&cx, NULL);
	options_init(&o, DEFAULTS_1989);
	for (uint32_t i = 0; i < rule_count; i++) {
		o.rule = (int)i;
		assert_string_equal(option_get(&cx.keep, &o, "rule"), rules[i].name);
	}
	for (int i = 0; i < ERR_COUNT; i++) {
		o.error = i;
		assert_string_equal(option_get(&cx.keep, &o, "error"), error_fns[i].name);
	}
	ctx_free(&cx);
}

static void exact_values(void **state)
{
	(void)state;
	Ctx cx;
	Options o;
	const char *remedy;
	ctx_init(&cx, NULL);
	options_init(&o, DEFAULTS_1989);
	assert_null(option_set(&cx, &o, "rate", "0.1", &remedy));
	assert_string_equal(option_get(&cx.keep, &o, "rate"), "0.1");
	o.rate = 1.0 / 3;
	assert_null(option_set(&cx, &o, "rate", option_get(&cx.keep, &o, "rate"), &remedy));
	assert_true(o.rate == 1.0 / 3);
	assert_null(option_set(&cx, &o, "batch", "17", &remedy));
	assert_int_equal(o.batch, 17);
	assert_null(option_set(&cx, &o, "batch", "all", &remedy));
	assert_int_equal(o.batch, BATCH_ALL);
	assert_null(option_set(&cx, &o, "shuffle", "off", &remedy));
	assert_int_equal(o.shuffle, 0);
	assert_null(option_set(&cx, &o, "rule", "quickprop", &remedy));
	assert_string_equal(rules[o.rule].name, "quickprop");
	assert_true(option_is_fixed("rate"));
	assert_false(option_is_fixed("epochs"));
	assert_false(option_is_fixed("nonsense"));
	ctx_free(&cx);
}

static void wrong_values_are_refused_with_a_remedy(void **state)
{
	(void)state;
	static const char *const wrong[][3] = {
		{ "rat", "1", "did you mean 'rate'?" }, { "zzzzzz", "1", "--help" },
		{ "rate", "fast", "a number from" },    { "rate", "-1", "a number from" },
		{ "rate", "nan", "a number from" },     { "rate", "1x", "a number from" },
		{ "rate", "", "a number from" },        { "batch", "0", "or 'all'" },
		{ "batch", "1.5", "or 'all'" },         { "epochs", "99999999999999999999", "a whole number" },
		{ "rule", "slow", "one of momentum" },  { "keep-best", "maybe", "on or off" },
		{ "keep-best", "auto", "on or off" },   { "until", "done", "within" },
		{ "until", "within:2", "within" },      { "until", "error", "within" },
		{ "until", "within,", "within" },       { "until", "right:0.5;error:1", "within" },
		{ "seed", "-1", "whole number" },       { "until", "", "within" },
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		Ctx cx;
		Options o;
		const char *remedy;
		ctx_init(&cx, NULL);
		options_init(&o, DEFAULTS_1989);
		assert_non_null(option_set(&cx, &o, wrong[i][0], wrong[i][1], &remedy));
		assert_non_null(strstr(remedy, wrong[i][2]));
		ctx_free(&cx);
	}
}

static void until_is_taken_apart(void **state)
{
	(void)state;
	Until u;
	assert_true(until_parse("within", &u));
	assert_true(u.within == 1 && isnan(u.right) && isnan(u.error));
	assert_true(until_parse("error:0.01,right:0.9,within:0.5", &u));
	assert_true(u.within == 0.5 && u.right == 0.9 && u.error == 0.01);
	assert_true(until_parse("never", &u));
	assert_true(isnan(u.within) && isnan(u.right) && isnan(u.error));
}

static void check(Ctx *cx, void *o) { options_check(cx, o); }

static void contradictions_are_found(void **state)
{
	(void)state;
	static const char *const sets[][4] = {
		{ "step-min", "2", "step-max", "1" },
		{ "schedule", "cosine", "epochs", "0" },
		{ "until", "never", "epochs", "0" },
	};
	for (size_t i = 0; i < COUNT(sets); i++) {
		Ctx cx;
		Options o;
		const char *remedy;
		ctx_init(&cx, NULL);
		options_init(&o, DEFAULTS_1989);
		assert_int_equal(guarded(&cx, check, &o), MP_OK);
		assert_null(option_set(&cx, &o, sets[i][0], sets[i][1], &remedy));
		assert_null(option_set(&cx, &o, sets[i][2], sets[i][3], &remedy));
		assert_int_equal(guarded(&cx, check, &o), MP_BAD_INPUT);
		ctx_free(&cx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option_reads_back),
		cmocka_unit_test(choices_name_the_tables),
		cmocka_unit_test(exact_values),
		cmocka_unit_test(wrong_values_are_refused_with_a_remedy),
		cmocka_unit_test(until_is_taken_apart),
		cmocka_unit_test(contradictions_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
