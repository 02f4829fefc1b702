/* SPDX-License-Identifier: MIT */
/* Elementary functions against libm in extended precision, unit and error functions, leaves, scores. */
#include <math.h>

#include "test.h"

/* Distance in units in the last place of the true value. */
static double ulps(double got, long double want)
{
	double w = (double)want;
	if (got == w || (isnan(got) && isnan(w)))
		return 0;
	double ulp = nextafter(fabs(w), INFINITY) - fabs(w);
	return (double)(fabsl((long double)got - want) / ulp);
}

static double worst(double (*fn)(double), long double (*libm)(long double), double low, double high, int steps)
{
	double most = 0;
	for (int i = 0; i <= steps; i++) {
		double x = low + (high - low) * ((double)i / steps);
		double off = ulps(fn(x), libm(x));
		most = off > most ? off : most;
	}
	return most;
}

static void test_exp(void **state)
{
	(void)state;
	assert_true(worst(arith_exp, expl, -1, 1, 100000) < 1.5);
	assert_true(worst(arith_exp, expl, -708, 709.7, 100000) < 1.5);
	assert_true(worst(arith_exp, expl, -745, -708, 10000) < 1.5);
	assert_true(arith_exp(0) == 1 && arith_exp(-0.0) == 1);
	assert_true(arith_exp(1) == 0x1.5bf0a8b14576ap+1); /* the very bits, on any machine */
	assert_true(arith_exp(709.79) == INFINITY && arith_exp(1e308) == INFINITY && arith_exp(INFINITY) == INFINITY);
	assert_true(isfinite(arith_exp(709.78)));
	assert_true(arith_exp(-746) == 0 && arith_exp(-1e308) == 0 && arith_exp(-INFINITY) == 0);
	assert_true(arith_exp(-745) > 0);
	assert_true(arith_exp(1e-300) == 1);
	assert_true(isnan(arith_exp(NAN)));
}

static void test_log(void **state)
{
	(void)state;
	assert_true(worst(arith_log, logl, 0.5, 2, 100000) < 1.5);
	assert_true(worst(arith_log, logl, 1e-3, 1e3, 100000) < 1.5);
	for (int k = -1074; k < 1024; k++)
		assert_true(ulps(arith_log(ldexp(1.3, k)), logl(ldexp(1.3, k))) < 1.5);
	assert_true(arith_log(1) == 0);
	assert_true(arith_log(2) == 0x1.62e42fefa39efp-1);
	assert_true(arith_log(0) == -INFINITY && arith_log(-0.0) == -INFINITY);
	assert_true(arith_log(INFINITY) == INFINITY);
	assert_true(isnan(arith_log(-1)) && isnan(arith_log(-INFINITY)) && isnan(arith_log(NAN)));
	assert_true(ulps(arith_log(0x1p-1074), logl(0x1p-1074L)) < 1.5);
}

/* Blocks of eight, those with anything else than normal numbers, and the rest. */
static void test_logs(void **state)
{
	enum { COUNT_LOGS = 1003 };
	static const double odd[] = { 0, -0.0, -1, INFINITY, -INFINITY, NAN, 0x1p-1074, 0x1p-1022, 1.7976931348623157e308 };
	static double x[COUNT_LOGS], y[COUNT_LOGS];
	(void)state;
	for (int i = 0; i < COUNT_LOGS; i++)
		x[i] = i % 37 == 5 ? odd[i / 37 % 9] : ldexp(1 + i / 997.0, i * 7 % 2000 - 1000);
	arith_logs(x, COUNT_LOGS, y);
	for (int i = 0; i < COUNT_LOGS; i++) {
		double one = arith_log(x[i]);
		assert_true(isnan(one) ? isnan(y[i]) : y[i] == one);
	}
}

static void test_tanh(void **state)
{
	(void)state;
	assert_true(worst(arith_tanh, tanhl, -1.2, 1.2, 100000) < 2);
	assert_true(worst(arith_tanh, tanhl, -25, 25, 100000) < 2);
	for (int k = -1000; k < 0; k++)
		assert_true(ulps(arith_tanh(ldexp(1.7, k)), tanhl(ldexpl(1.7, k))) < 2);
	assert_true(arith_tanh(0) == 0 && signbit(arith_tanh(-0.0)));
	assert_true(arith_tanh(1e-300) == 1e-300 && arith_tanh(-1e-300) == -1e-300);
	assert_true(arith_tanh(50) == 1 && arith_tanh(-50) == -1);
	assert_true(arith_tanh(INFINITY) == 1 && arith_tanh(-INFINITY) == -1 && arith_tanh(1e308) == 1);
	assert_true(isnan(arith_tanh(NAN)));
	for (double x = 0; x < 3; x += 0.01)
		assert_true(arith_tanh(-x) == -arith_tanh(x));
}

static long double cospil(long double x) { return cosl(3.14159265358979323846264338327950288L * x); }

static void test_cospi(void **state)
{
	(void)state;
	for (double x = -2; x <= 2; x += 1.0 / 4096)
		assert_true(fabsl(arith_cospi(x) - cospil(x)) < 2.5e-16L);
	for (double x = 0; x <= 0.45; x += 1.0 / 4096)
		assert_true(ulps(arith_cospi(x), cospil(x)) < 2);
	assert_true(arith_cospi(0) == 1 && arith_cospi(1) == -1 && arith_cospi(2) == 1 && arith_cospi(-3) == -1);
	assert_true(arith_cospi(0.5) == 0 && arith_cospi(1.5) == 0 && arith_cospi(-0.5) == 0);
	assert_true(arith_cospi(0x1p52 + 1) == -1 && arith_cospi(1e300) == 1);
	assert_true(fabs(arith_cospi(1.0 / 3) - 0.5) < 2e-16);
	assert_true(isnan(arith_cospi(INFINITY)) && isnan(arith_cospi(NAN)));
}

/* ---- units ---- */

static void test_unit_functions(void **state)
{
	(void)state;
	const double h = 1e-6;
	for (int fn = 0; fn < FN_COUNT; fn++) {
		const UnitFn *f = &unit_fns[fn];
		assert_non_null(f->name);
		for (double x = -4.05; x < 4; x += 0.1) {
			double out = f->value(x), slope = (f->value(x + h) - f->value(x - h)) / (2 * h);
			if (fn == FN_SOFTMAX)
				continue; /* a matter of the group */
			assert_true(out >= f->low && out <= f->high);
			assert_true(fabs(f->slope(x, out) - slope) < 1e-8);
		}
		assert_true(isnan(f->value(NAN)));
	}
	assert_true(unit_fns[FN_SIGMOID].value(0) == 0.5);
	assert_true(unit_fns[FN_SIGMOID].value(-1000) == 0 && unit_fns[FN_SIGMOID].value(1000) == 1);
	assert_true(unit_fns[FN_SIGMOID2].value(1) == 2.0 / 3 && unit_fns[FN_SIGMOID2].value(-2000) == 0);
	assert_true(unit_fns[FN_GAUSSIAN].value(1e200) == 0 && unit_fns[FN_GAUSSIAN].slope(1e200, 0) == 0);
	assert_true(unit_fns[FN_RELU].value(-1) == 0 && unit_fns[FN_RELU].slope(0, 0) == 0);
}

static void test_error_functions(void **state)
{
	(void)state;
	const double h = 1e-7;
	for (int err = 0; err < ERR_COUNT; err++) {
		const ErrorFn *e = &error_fns[err];
		for (double t = 0; t <= 1; t += 0.125) {
			assert_true(fabs(e->value(t, t)) < 1e-15);
			for (double o = 0.03; o < 1; o += 0.1) {
				double slope = (e->value(o + h, t) - e->value(o - h, t)) / (2 * h);
				assert_true(fabs(e->slope(o, t) - slope) < 1e-5);
				assert_true(err == ERR_DIVERGENCE || e->value(o, t) >= 0);
			}
		}
		for (int k = 0; k < 4; k++) /* saturated, right or wrong: finite */
			assert_true(isfinite(e->value(k & 1, k >> 1)) && isfinite(e->slope(k & 1, k >> 1)));
		assert_true(isnan(e->value(NAN, 0.5)));
	}
	assert_true(error_fns[ERR_SQUARED].value(0.75, 0.25) == 0.125);
	assert_true(fabs(error_fns[ERR_CROSS_ENTROPY].value(0.25, 1) - log(4)) < 1e-15);
	assert_true(fabs(error_fns[ERR_CROSS_ENTROPY].value(0, 1) - 40 * log(2)) < 1e-12);
	assert_true(fabs(error_fns[ERR_DIVERGENCE].value(0.25, 0.5) - 0.5 * log(2)) < 1e-15);
}

static void test_error_fits(void **state)
{
	(void)state;
	for (int fn = 0; fn < FN_COUNT; fn++) {
		assert_true(error_fits(ERR_SQUARED, fn));
		assert_int_equal(error_fits(ERR_CROSS_ENTROPY, fn), unit_fns[fn].low >= 0 && unit_fns[fn].high <= 1);
		assert_int_equal(error_fits(ERR_DIVERGENCE, fn), fn == FN_SOFTMAX);
	}
}

/* ---- leaves ---- */

static void test_leaf_sizes(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {
		1, 511, 512, 513, 1024, 1025, 5438, 12022, 1000000, 2097152, 2097153, 10000000000
	};
	assert_int_equal(leaf_count(0), 0);
	assert_int_equal(leaf_count(512), 1);
	assert_int_equal(leaf_count(513), 2);
	assert_int_equal(leaf_count(UINT64_MAX), MAX_LEAVES);
	for (size_t k = 0; k < COUNT(sizes); k++) {
		uint32_t leaves = leaf_count(sizes[k]);
		uint64_t next = 0, first, count;
		for (uint32_t i = 0; i < leaves; i++) {
			leaf_range(sizes[k], leaves, i, &first, &count);
			assert_int_equal(first, next);
			assert_true(count == sizes[k] / leaves || count == sizes[k] / leaves + 1);
			next = first + count;
		}
		assert_int_equal(next, sizes[k]);
	}
}

/* The tree as the contract words it: split at the largest power of two below the count. */
static void tree_text(uint32_t first, uint32_t count, char *out)
{
	if (count == 1) {
		out[strlen(out) + 1] = '\0';
		out[strlen(out)] = (char)('a' + first % 26);
		return;
	}
	uint32_t half = 1;
	while (half * 2 < count)
		half *= 2;
	strcat(out, "(");
	tree_text(first, half, out);
	tree_text(first + half, count - half, out);
	strcat(out, ")");
}

static void test_leaf_joins(void **state)
{
	(void)state;
	static char stack[16][400], want[400], joined[400];
	for (uint32_t leaves = 1; leaves <= 70; leaves++) {
		uint32_t depth = 0, most = 0;
		for (uint32_t i = 0; i < leaves; i++) {
			stack[depth][0] = (char)('a' + i % 26);
			stack[depth++][1] = '\0';
			most = depth > most ? depth : most;
			for (uint32_t joins = leaf_joins(i, leaves); joins; joins--, depth--) {
				assert_true(depth >= 2);
				snprintf(joined, sizeof joined, "(%.190s%.190s)", stack[depth - 2], stack[depth - 1]);
				strcpy(stack[depth - 2], joined);
			}
		}
		want[0] = '\0';
		tree_text(0, leaves, want);
		assert_int_equal(depth, 1);
		assert_string_equal(stack[0], want);
		assert_true(most <= 1 + ceil(log2(leaves)));
	}
}

/* ---- scores ---- */

static Tally scored(const Scorer *s, const double *out, const float *target, double weight)
{
	Tally t = { 0 };
	score_case(s, out, NULL, target, weight, &t);
	return t;
}

static void test_score_largest(void **state)
{
	(void)state;
	Scorer s = { .err = &error_fns[ERR_SQUARED], .threshold = 0.4, .targets = 3, .middle = 0.5 };
	float target[] = { 0, 1, 0 }, no_middle[] = { 0, NAN, 1 }, none[] = { NAN, NAN, NAN }, lone[] = { NAN, 1, NAN };
	double good[] = { 0.25, 0.75, 0.25 }, bad[] = { 0.75, 0.5, 0.25 }, tie[] = { 0.5, 0.5, 0.25 };

	Tally t = scored(&s, good, target, 2);
	assert_true(t.error == 2 * 3 * 0.03125 && t.cases == 1 && t.scored == 1 && t.right == 1 && t.within == 1);
	t = scored(&s, bad, target, 1);
	assert_true(t.right == 0 && t.within == 0);
	t = scored(&s, tie, target, 1); /* the first of equals is the guess */
	assert_true(t.right == 0 && t.within == 0);
	t = scored(&s, good, no_middle, 1); /* 0.25 and 0.25: the first; wanted is the last */
	assert_true(t.scored == 1 && t.right == 0 && t.error == 0.03125 + 0.28125);
	t = scored(&s, good, none, 1);
	assert_true(t.cases == 1 && t.scored == 0 && t.error == 0 && t.right == 0 && t.within == 0);
	t = scored(&s, bad, lone, 1); /* one target: on its side of the middle? */
	assert_true(t.scored == 1 && t.right == 0);
	t = scored(&s, good, lone, 1);
	assert_true(t.right == 1);
}

static void test_score_lone_output(void **state)
{
	(void)state;
	float bits[] = { 0, 1, 1, 0 }, signs[] = { -1, 1, NAN, 1 }, bar[] = { -1, 1, 1, 1 };
	uint8_t mask[] = { 0, 1, 1, 1 };
	Data d = { .cases = 4, .inputs = 1, .targets = 1, .y = bits, .y_type = T_F32 };
	Options o = { .error = ERR_SQUARED, .threshold = 0.4 };
	Scorer s;
	double out = 0.3;

	scorer_init(&s, &o, &d);
	assert_true(s.middle == 0.5 && s.targets == 1 && s.err == &error_fns[ERR_SQUARED]);
	assert_true(scored(&s, &out, &bits[1], 1).right == 0);
	assert_true(scored(&s, &out, &bits[0], 1).right == 1);
	d.y = signs;
	scorer_init(&s, &o, &d);
	assert_true(s.middle == 0);
	assert_true(scored(&s, &out, &signs[1], 1).right == 1);
	d.y = bar; /* the only negative one is masked */
	d.mask = mask;
	scorer_init(&s, &o, &d);
	assert_true(s.middle == 0.5);
}

static void test_score_codes(void **state)
{
	(void)state;
	const double codes[] = { 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 0 }; /* the last is a twin of the second */
	Scorer s = { .err = &error_fns[ERR_SQUARED], .threshold = 0.4, .targets = 3, .codes = codes, .code_count = 4 };
	float second[] = { 1, 1, 0 }, third[] = { 0, 1, 1 }, part[] = { NAN, 1, NAN };
	double near_second[] = { 0.6, 0.6, 0.1 }, between[] = { 0.5, 1, 0.5 };

	assert_true(scored(&s, near_second, second, 1).right == 1);
	assert_true(scored(&s, near_second, third, 1).right == 0);
	assert_true(scored(&s, between, second, 1).right == 1); /* none is strictly nearer */
	assert_true(scored(&s, between, third, 1).right == 1);
	assert_true(scored(&s, near_second, part, 1).right == 1); /* over what has a target */
	assert_int_equal(code_nearest(codes, 4, 3, between, NULL), 1);
	assert_int_equal(code_nearest(codes, 4, 3, between, third), 1);
	near_second[0] = NAN;
	assert_true(scored(&s, near_second, second, 1).right == 0);
}

/* Logarithms of outputs from net inputs, where outputs are rounded to 0 or 1. */
static void test_group_logs(void **state)
{
	(void)state;
	Logs logs[3];
	double out[3] = { 0.5, 0.5, 0.5 };
	for (double x = -100; x <= 100; x += 0.37) {
		double net[3] = { x, 0, -1 }, other = log1p(exp(-1.0)), far = x - other; /* of the first against the others */
		double want[] = { -fmax(0, x) - log1p(exp(-fabs(x))), -fmax(0, -x) - log1p(exp(-fabs(x))) };
		group_logs(FN_SIGMOID, 1, net, out, logs);
		assert_true(fabs(logs[0].rest - want[0]) <= 1e-14 * fabs(want[0]));
		assert_true(fabs(logs[0].out - want[1]) <= 1e-14 * fabs(want[1]));
		group_logs(FN_SOFTMAX, 3, net, out, logs);
		want[0] = -fmax(0, far) - log1p(exp(-fabs(far)));
		want[1] = -fmax(0, -far) - log1p(exp(-fabs(far)));
		assert_true(fabs(logs[0].rest - want[0]) <= 1e-13 * fabs(want[0]));
		assert_true(fabs(logs[0].out - want[1]) <= 1e-13 * fabs(want[1]));
	}
}

static void test_tally(void **state)
{
	(void)state;
	Tally a = { 1.5, 4, 3, 2, 1, 3.5 }, b = { 0.25, 10, 9, 8, 7, 0 };
	tally_add(&a, &b);
	assert_true(a.error == 1.75 && a.cases == 14 && a.scored == 12 && a.right == 10 && a.within == 8);
	assert_true(a.weight == 3.5 && tally_mean(&a) == 0.5 && tally_mean(&b) == 0);
}

typedef struct Check {
	Options o;
	Data d;
} Check;

static void check(Ctx *cx, void *arg)
{
	Check *c = arg;
	targets_check(cx, &c->o, &c->d);
}

static void test_targets_check(void **state)
{
	(void)state;
	float y[] = { 0, 1, NAN, 2 };
	uint8_t mask[] = { 1, 1, 1, 0 };
	Check c = { .o.error = ERR_SQUARED,
		        .d = { .name = "toy", .cases = 2, .inputs = 1, .targets = 2, .y = y, .y_type = T_F32 } };
	Ctx cx;

	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, check, &c), MP_OK);
	c.o.error = ERR_CROSS_ENTROPY;
	c.d.mask = mask;
	assert_int_equal(guarded(&cx, check, &c), MP_OK);
	c.d.mask = NULL;
	assert_int_equal(guarded(&cx, check, &c), MP_BAD_INPUT);
	assert_non_null(strstr(cx.messages.s, "target 2 of case 2 is 2"));
	ctx_free(&cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exp),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_logs),
		cmocka_unit_test(test_tanh),
		cmocka_unit_test(test_cospi),
		cmocka_unit_test(test_unit_functions),
		cmocka_unit_test(test_error_functions),
		cmocka_unit_test(test_error_fits),
		cmocka_unit_test(test_leaf_sizes),
		cmocka_unit_test(test_leaf_joins),
		cmocka_unit_test(test_score_largest),
		cmocka_unit_test(test_score_lone_output),
		cmocka_unit_test(test_score_codes),
		cmocka_unit_test(test_tally),
		cmocka_unit_test(test_group_logs),
		cmocka_unit_test(test_targets_check),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
