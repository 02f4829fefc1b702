/* SPDX-License-Identifier: MIT */
/* Update rules: each against a trace worked out by hand, the formula compiler, schedules, and the manual's formulas. */
#include <math.h>

#include "toy.h"

/* ---- traces ----
 * One weight from an input that is always 1 to a linear output whose target is 0: E = w^2 / 2, so the gradient is
 * w itself.  The numbers are chosen so that every step is exact in binary. */

typedef struct Bowl {
	Toy t;
	float x, y;
	uint64_t updates;
} Bowl;

static void bowl_open(Bowl *b, char *text, size_t size, const char *options, double w)
{
	snprintf(text, size, "group x 1 input\ngroup o 1 linear output\nconnect x -> o\ntrain %s\n", options);
	toy_open(&b->t, text);
	b->x = 1;
	b->y = 0;
	b->updates = 0;
	toy_bind(&b->t, 1, &b->x, &b->y);
	target_ref.set(b->t.program, 0, 0, ALL_LINKS, &w);
}

static double bowl_get(Bowl *b, int which)
{
	double v;
	target_ref.get(b->t.program, which, 0, ALL_LINKS, &v);
	return v;
}

/* One update; the weight afterwards. */
static double bowl_step(Bowl *b)
{
	Update u;
	toy_learn(&b->t, (Batch){ .count = 1 });
	update_fill(&b->t.net->options, ++b->updates, 0, 0, &u);
	target_ref.apply(b->t.program, &u);
	return bowl_get(b, 0);
}

static void trace(const char *options, double start, const double *want, int steps)
{
	char text[400];
	Bowl b;
	bowl_open(&b, text, sizeof text, options, start);
	for (int i = 0; i < steps; i++) {
		double w = bowl_step(&b);
		if (fabs(w - want[i]) > 1e-15) {
			print_error("%s: step %d gives %.17g instead of %.17g\n", options, i + 1, w, want[i]);
			assert_true(false);
		}
	}
	toy_close(&b.t);
}

#define TRACE(options, start, ...) \
	trace(options, start, (const double[]){ __VA_ARGS__ }, COUNT(((const double[]){ __VA_ARGS__ })))

/* step = 1/2 step - 1/4 w:   w 1, step -0.25 | 0.75, -0.125 - 0.1875 | 0.4375, -0.15625 - 0.109375 */
static void test_momentum(void **state)
{
	(void)state;
	TRACE("rate 0.25 momentum 0.5", 1, 0.75, 0.4375, 0.171875);
	/* decay 1/2: s = 1.5 w:  1 - 0.375 | 0.625: step -0.1875 - 0.234375 */
	TRACE("rate 0.25 momentum 0.5 decay 0.5", 1, 0.625, 0.203125);
}

/* move = -1/4 w, step = 1/2 step + move, w += 1/2 step + move:
 * w 1:     move -0.25,    step -0.25,    w = 1 - 0.125 - 0.25
 * w 0.625: move -0.15625, step -0.28125, w = 0.625 - 0.140625 - 0.15625 */
static void test_nesterov(void **state)
{
	(void)state;
	TRACE("rule nesterov rate 0.25 momentum 0.5", 1, 0.625, 0.328125);
}

/* Longer than 1: the gradient is 1.  w 4, step -0.25 | 3.75, -0.125 - 0.25 | 3.375, -0.1875 - 0.25.  Below 1 it is
 * left alone. */
static void test_doug(void **state)
{
	(void)state;
	TRACE("rule doug rate 0.25 momentum 0.5", 4, 3.75, 3.375, 2.9375);
	TRACE("rule doug rate 0.25 momentum 0.5", 1, 0.75, 0.4375, 0.171875);
}

/* mu 2, so shrink = 2/3; the slope s is w, p the slope before, d the last step.
 * w 1:         d = 0: d = -0.25 * 1
 * w 0.75:      s >= 2/3 p = 0.667: d = -0.25 * 0.75 + 2 * -0.25 = -0.6875
 * w 0.0625:    s < 2/3 p = 0.5: jump d s / (p - s) = -0.6875 * 0.0625 / 0.6875 = -0.0625; d = -0.015625 - 0.0625
 * w -0.015625: s < 0 < 2/3 p: jump = -0.078125 * -0.015625 / 0.078125 = 0.015625: the vertex
 * w 0:         s = 0 > 2/3 p: jump 0, no gradient */
static void test_quickprop(void **state)
{
	(void)state;
	TRACE("rule quickprop rate 0.25 mu 2", 1, 0.75, 0.0625, -0.015625, 0, 0);
	TRACE("rule quickprop rate 0.25 mu 2", -1, -0.75, -0.0625, 0.015625, 0, 0);
	/* decay 1 on the slope: s = 2 w;  w 1: d = -0.5 | 0.5, s = 1, p = 2, 1 < 4/3: jump -0.5 * 1 / 1; d = -0.25 - 0.5 */
	TRACE("rule quickprop rate 0.25 mu 2 decay 1", 1, 0.5, -0.25);
}

static double quickprop_from(double w, double step, double slope)
{
	char text[400];
	Bowl b;
	bowl_open(&b, text, sizeof text, "rule quickprop rate 0.25 mu 2", w);
	target_ref.set(b.t.program, 1, 0, ALL_LINKS, &step);
	target_ref.set(b.t.program, 2, 0, ALL_LINKS, &slope);
	bowl_step(&b);
	assert_true(bowl_get(&b, 2) == w); /* the slope it was taken at */
	step = bowl_get(&b, 1);
	toy_close(&b.t);
	return step;
}

static void test_quickprop_off_the_path(void **state)
{
	(void)state;
	assert_true(quickprop_from(-1, -1, -1) == 0); /* equal slopes, uphill: no parabola */
	assert_true(quickprop_from(1, 1, 1) == 0);
	assert_true(quickprop_from(-0.375, -1, -0.5) == -2); /* jump -1 * -0.375 / -0.125 = -3: the limit is 2 */
	assert_true(quickprop_from(0.375, 1, 0.5) == 2);
	assert_true(quickprop_from(-2, -1, 1) == -1 * -2.0 / 3);
	assert_true(quickprop_from(0, 0, 0) == 0);
}

/* size 0.25, up 1.5, down 0.5, at most 0.5:
 * w 1: 0.25 | 0.75: 0.375 | 0.375: 0.5 (not 0.5625) | -0.125: sign changed, 0.25 and rest | 0.25 | 0.125: changed,
 * 0.125 and rest | 0.125 | 0: no sign, no step */
static void test_rprop(void **state)
{
	(void)state;
	TRACE("rule rprop step-start 0.25 up 1.5 down 0.5 step-max 0.5", 1, 0.75, 0.375, -0.125, -0.125, 0.125, 0.125, 0,
	      0);
	/* the smallest step is 0.25: 0.5 | 0.25 and rest | 0.25 */
	TRACE("rule rprop step-start 0.5 up 1 down 0.25 step-min 0.25", 0.25, -0.25, -0.25, 0);
}

/* own rate r 0.25, + 0.125 or halved; mean m halves its past; momentum 0.5:
 * w 1:        m 0:        r 0.25,  m 0.5,      step -0.25
 * w 0.75:     m > 0:      r 0.375, m 0.625,    step -0.125 - 0.28125
 * w 0.34375:  m > 0:      r 0.5,   m 0.484375, step -0.203125 - 0.171875
 * w -0.03125: m > 0 > s:  r 0.25,  m ...,      step -0.1875 + 0.0078125 */
static void test_delta_bar_delta(void **state)
{
	(void)state;
	TRACE("rule delta-bar-delta rate 0.25 kappa 0.125 phi 0.5 theta 0.5 momentum 0.5", 1, 0.75, 0.34375, -0.03125,
	      -0.2109375);
}

/* Means 1/2 and 3/4.  First update: mean 0.5 * 2 = 1, root of 0.25 * 4 = 1.
 * Then w 0.875: mean (0.25 + 0.4375) / (1 - 1/4), square (0.1875 + 0.19140625) / (1 - 9/16). */
static void test_adam(void **state)
{
	(void)state;
	TRACE("rule adam rate 0.125 beta1 0.5 beta2 0.75 epsilon 0", 1, 0.875,
	      0.875 - 0.125 * (0.6875 * 4 / 3) / sqrt(0.37890625 * 16 / 7));
	TRACE("rule adam rate 0.125 beta1 0.5 beta2 0.75 epsilon 1", 1, 1 - 0.125 / 2);
	TRACE("rule adam rate 0.125 epsilon 0", 0, 0, 0); /* nothing over nothing is no step */
}

/* ---- factors, frozen links, whole-vector length ---- */

static void test_rate_factor_and_frozen(void **state)
{
	(void)state;
	for (uint32_t r = 0; r < rule_count; r++) {
		char text[400];
		Toy t;
		Update u;
		float x[] = { 1, 1, 1 }, y = 0;
		double w[] = { 0.5, 0.5, 0.5 }, after[3], kept[3], s[3];
		snprintf(text, sizeof text,
		         "group a 1 input\ngroup b 1 input\ngroup c 1 input\n"
		         "group o 1 linear output\nconnect a -> o\nconnect b -> o rate 0.5\nconnect c -> o frozen\n"
		         "train rule %s momentum 0 epsilon 0\n",
		         rules[r].name);
		toy_open(&t, text);
		toy_bind(&t, 1, x, &y);
		target_ref.set(t.program, 0, 0, ALL_LINKS, w);
		for (int k = 0; k < rules[r].states; k++) {
			target_ref.get(t.program, k + 1, 0, ALL_LINKS, s);
			assert_true(s[0] == rule_start(&rules[r], k, &t.net->options, 1));
			assert_true(s[1] == 0.5 * s[0]);
		}
		target_ref.get(t.program, 1, 0, ALL_LINKS, kept);
		toy_learn(&t, (Batch){ .count = 1 });
		update_fill(&t.net->options, 1, 0, 0, &u);
		target_ref.apply(t.program, &u);
		target_ref.get(t.program, 0, 0, ALL_LINKS, after);
		assert_true(after[0] < 0.5);
		assert_true(fabs((after[1] - 0.5) - 0.5 * (after[0] - 0.5)) < 1e-15); /* half the step */
		assert_true(after[2] == 0.5);
		target_ref.get(t.program, 1, 0, ALL_LINKS, s);
		assert_true(s[2] == kept[2]); /* state is left alone too */
		toy_close(&t);
	}
}

/* Numbers of the topology that are no floats: ref has them in double. */
static void test_exact_numbers(void **state)
{
	(void)state;
	Toy t;
	Update u;
	float x = 1, y = 0;
	double w[] = { 1, 1 }, g[2];
	toy_open(&t,
	         "group a 1 input\ngroup h 1 linear\ngroup m 1 context\ngroup o 1 linear output\nconnect a -> h frozen\n"
	         "connect m -> o rate 0.1\ncopy h -> m start 0.3\ntrain rate 1 momentum 0\n");
	toy_bind(&t, 1, &x, &y);
	target_ref.set(t.program, 0, 0, ALL_LINKS, w);
	toy_learn(&t, (Batch){ .count = 1 });
	target_ref.gradient(t.program, g);
	assert_true(g[1] == 0.3 * 0.3);
	update_fill(&t.net->options, 1, 0, 0, &u);
	target_ref.apply(t.program, &u);
	target_ref.get(t.program, 0, 0, ALL_LINKS, w);
	assert_true(w[1] == 1 - 0.1 * (0.3 * 0.3));
	toy_close(&t);
}

/* Inputs 3 and 4, output 1: the gradient (3, 4) has length 5; a frozen link does not count. */
static void test_doug_length(void **state)
{
	(void)state;
	Toy t;
	Update u;
	float x[] = { 3, 4, 100 }, y = 0;
	double w[] = { 3, -2, 0 };
	toy_open(&t, "group a 2 input\ngroup c 1 input\ngroup o 1 linear output\nconnect a -> o\nconnect c -> o frozen\n"
	             "train rule doug rate 0.5\n");
	toy_bind(&t, 1, x, &y);
	target_ref.set(t.program, 0, 0, ALL_LINKS, w);
	toy_learn(&t, (Batch){ .count = 1 });
	update_fill(&t.net->options, 1, 0, 0, &u);
	target_ref.apply(t.program, &u);
	target_ref.get(t.program, 0, 0, ALL_LINKS, w);
	assert_true(fabs(w[0] - (3 - 0.5 * 0.6)) < 1e-15 && fabs(w[1] - (-2 - 0.5 * 0.8)) < 1e-15 && w[2] == 0);
	toy_close(&t);
}

static void test_norm_is_a_tree(void **state)
{
	(void)state;
	enum { N = 1100 }; /* three leaves: 367, 367, 366 */
	static double g[N];
	static uint8_t frozen[N];
	double part[3] = { 0 };
	for (int i = 0; i < N; i++) {
		g[i] = random_unit(3, STREAM_DATA, (uint64_t)i) - 0.5;
		part[i < 367 ? 0 : i < 734 ? 1 : 2] += g[i] * g[i];
	}
	assert_true(rule_norm(g, frozen, N) == sqrt((part[0] + part[1]) + part[2]));
	assert_true(rule_norm(g, NULL, N) == rule_norm(g, frozen, N));
	memset(frozen, 1, sizeof frozen);
	frozen[5] = 0;
	assert_true(rule_norm(g, frozen, N) == fabs(g[5]));
	assert_true(rule_norm(g, frozen, 0) == 0);
}

/* ---- schedules ---- */

static void set_options(Ctx *cx, void *arg)
{
	(void)cx;
	options_init(arg, DEFAULTS_1989);
}

static double rate_at(const Options *o, uint64_t update, uint64_t epoch, double part)
{
	Update u;
	update_fill(o, update, (double)epoch + part, 0.25, &u);
	return u.param[P_RATE];
}

static void test_schedules(void **state)
{
	(void)state;
	enum { CONSTANT, STEP, COSINE };
	Ctx cx;
	Options o;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, set_options, &o), MP_OK);
	o.rate = 0.5;
	o.schedule = CONSTANT;
	assert_true(rate_at(&o, 1, 0, 0) == 0.5 && rate_at(&o, 900, 899, 0) == 0.5);
	o.schedule = STEP;
	o.step_epochs = 10;
	o.step_factor = 0.5;
	assert_true(rate_at(&o, 10, 9, 0.9) == 0.5 && rate_at(&o, 11, 10, 0) == 0.25 && rate_at(&o, 1, 35, 0) == 0.0625);
	o.schedule = COSINE;
	o.epochs = 100;
	o.rate_end = 0.1;
	assert_true(rate_at(&o, 1, 0, 0) == 0.5);
	assert_true(fabs(rate_at(&o, 51, 50, 0) - 0.3) < 1e-15);
	assert_true(fabs(rate_at(&o, 51, 25, 0) - (0.1 + 0.2 * (1 + sqrt(0.5)))) < 1e-15);
	assert_true(rate_at(&o, 101, 100, 0) == 0.1 && rate_at(&o, 301, 300, 0) == 0.1);
	o.epochs = 0; /* no last epoch to aim at */
	assert_true(rate_at(&o, 101, 100, 0) == 0.5);
	o.schedule = CONSTANT;
	o.warmup = 4;
	assert_true(rate_at(&o, 1, 0, 0) == 0.03125 && rate_at(&o, 2, 1, 0.25) == 0.1875 && rate_at(&o, 3, 4, 0) == 0.5);
	ctx_free(&cx);
}

static void test_adam_fixes(void **state)
{
	(void)state;
	Options o = { .beta1 = 0.9, .beta2 = 0.999, .warmup = 0 };
	while (strcmp(rules[o.rule].name, "adam"))
		o.rule++;
	for (uint64_t t = 1; t < 2000; t = t * 3 + 1) {
		Update u;
		update_fill(&o, t, 0, 0, &u);
		assert_true(fabs(u.param[P_FIX1] - 1 / (1 - pow(0.9, (double)t))) < 1e-12 * u.param[P_FIX1]);
		assert_true(fabs(u.param[P_FIX2] - 1 / (1 - pow(0.999, (double)t))) < 1e-12 * u.param[P_FIX2]);
		assert_true(u.param[P_CLIP] == 1);
	}
}

/* Formed in double and rounded once; versions before formed them of rounded numbers. */
static void test_numbers_of_the_update(void **state)
{
	(void)state;
	Options o = { .beta1 = 0.9, .beta2 = 0.999, .theta = 0.7, .mu = 1.75 };
	Update u;
	update_fill(&o, 1, 0, 0, &u);
	assert_true(u.param[P_SHARE1] == 1 - 0.9 && u.param[P_SHARE2] == 1 - 0.999 && u.param[P_SHARE] == 1 - 0.7);
	assert_true(u.param[P_SHRINK] == 1.75 / 2.75);
	for (uint32_t r = 0; r < rule_count; r++) {
		bool is_adam = strcmp(rules[r].name, "adam") == 0, is_bar = strcmp(rules[r].name, "delta-bar-delta") == 0;
		o = (Options){ .rule = (int)r, .beta1 = 0.9, .beta2 = 0.999, .theta = 0.7, .mu = 1.75 };
		assert_true(rule_numbers_changed(&o) == is_adam);
		o.beta1 = o.beta2 = 0.75;
		o.theta = 0.95;
		assert_true(rule_numbers_changed(&o) == is_bar);
	}
}

/* ---- the formula compiler ---- */

typedef struct Parse {
	Rule rule;
	Formula f;
	Buf out;
} Parse;

static void parse(Ctx *cx, void *arg)
{
	Parse *p = arg;
	formula_parse(cx, &p->rule, &p->f);
	p->out = (Buf){ .arena = &cx->keep };
	formula_print(&p->rule, &p->f, &p->out);
}

static void test_table(void **state)
{
	(void)state;
	static const char order[] = "momentum|nesterov|doug|quickprop|rprop|delta-bar-delta|adam";
	char names[200] = "";
	Ctx cx;
	ctx_init(&cx, NULL);
	for (uint32_t i = 0; i < rule_count; i++) {
		Parse p = { .rule = rules[i] };
		assert_int_equal(guarded(&cx, parse, &p), MP_OK);
		int stores = 0;
		for (uint32_t k = 0; k < p.f.ops; k++) {
			const Op *o = &p.f.op[k];
			stores += o->op == OP_STORE;
			if (o->op > OP_STORE)
				assert_true(o->a < k && o->b < k && o->c < k);
		}
		assert_int_equal(stores, rules[i].states + 1);
		assert_true(rules[i].states >= 1 && rules[i].states <= MAX_STATE);
		strcat(strcat(names, i ? "|" : ""), rules[i].name);
	}
	assert_string_equal(names, order); /* option `rule` counts in this order */
	ctx_free(&cx);
}

static void expect_code(const char *formula, const char *want)
{
	Ctx cx;
	Parse p = { .rule = { .name = "toy", .formula = formula, .states = 2, .state = { "d", "p2" } } };
	ctx_init(&cx, NULL);
	Status s = guarded(&cx, parse, &p);
	if (s != MP_OK)
		print_error("%s\n", cx.messages.s);
	assert_int_equal(s, MP_OK);
	assert_string_equal(p.out.s, want);
	ctx_free(&cx);
}

static void test_formula_code(void **state)
{
	(void)state;
	expect_code("w = w - rate * g;", "\tv0 = w\n\tv1 = rate\n\tv2 = g\n\tv3 = v1 * v2\n\tv4 = v0 - v3\n\tw = v4\n");
	/* a name assigned means its new value, equal ops are one, g may be renamed but is never stored */
	expect_code("g = g + 1.25; d = -g; w = d + g + d", "\tv0 = g\n\tv1 = 1.25\n\tv2 = v0 + v1\n\tv3 = -v2\n\td = v3\n"
	                                                   "\tv5 = v3 + v2\n\tv6 = v5 + v3\n\tw = v6\n");
	/* order of operations */
	expect_code("w = 1 - 2 - 3 * -g / 4", "\tv0 = 1\n\tv1 = 2\n\tv2 = v0 - v1\n\tv3 = 3\n\tv4 = g\n\tv5 = -v4\n"
	                                      "\tv6 = v3 * v5\n\tv7 = 4\n\tv8 = v6 / v7\n\tv9 = v2 - v8\n\tw = v9\n");
	expect_code("w = g > 0 ? d : g >= 1 ? p2 : w",
	            "\tv0 = g\n\tv1 = 0\n\tv2 = v1 < v0\n\tv3 = d\n\tv4 = 1\n"
	            "\tv5 = v4 <= v0\n\tv6 = p2\n\tv7 = w\n\tv8 = v5 ? v6 : v7\n\tv9 = v2 ? v3 : v8\n\tw = v9\n");
	expect_code("w = (g < 1) + (g <= 1)", "\tv0 = g\n\tv1 = 1\n\tv2 = v0 < v1\n\tv3 = v0 <= v1\n"
	                                      "\tv4 = v2 + v3\n\tw = v4\n");
	expect_code("w = fma(g, w, sqrt(abs(min(g, max(w, 1)))))",
	            "\tv0 = g\n\tv1 = w\n\tv2 = 1\n\tv3 = max(v1, v2)\n"
	            "\tv4 = min(v0, v3)\n\tv5 = abs(v4)\n\tv6 = sqrt(v5)\n\tv7 = fma(v0, v1, v6)\n\tw = v7\n");
	expect_code("w = sign(g)", "\tv0 = g\n\tv1 = 0\n\tv2 = 1\n\tv3 = -1\n\tv4 = v0 < v1\n\tv5 = v4 ? v3 : v1\n"
	                           "\tv6 = v1 < v0\n\tv7 = v6 ? v2 : v5\n\tw = v7\n");
}

static void expect_wrong(const char *formula, const char *want)
{
	Ctx cx;
	Parse p = { .rule = { .name = "toy", .formula = formula, .states = 1, .state = { "d" } } };
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, parse, &p), MP_FAILED);
	if (!strstr(cx.messages.s, want))
		print_error("%s\n", cx.messages.s);
	assert_non_null(strstr(cx.messages.s, want));
	ctx_free(&cx);
}

static void test_formula_faults(void **state)
{
	(void)state;
	char long_text[4000] = "w = 0";
	expect_wrong("", "name expected");
	expect_wrong("w g", "'=' expected");
	expect_wrong("w = nothing", "unknown name");
	expect_wrong("w = rates", "unknown name");
	expect_wrong("w = sin(g)", "unknown function");
	expect_wrong("w = fma(g, w)", "another argument expected");
	expect_wrong("w = abs(g", "')' expected");
	expect_wrong("w = (g", "')' expected");
	expect_wrong("w = g +", "number, name or '(' expected");
	expect_wrong("w = g ? 1", "':' expected");
	expect_wrong("w = g w", "character 7 of its formula: ';' or the end expected");
	for (int i = 1; i <= 100; i++)
		sprintf(long_text + strlen(long_text), " + %d", i);
	expect_wrong(long_text, "too many operations");
	long_text[0] = '\0';
	for (int i = 0; i < 70; i++)
		sprintf(long_text + strlen(long_text), "a%d = g;", i);
	expect_wrong(long_text, "too many names");
}

/* ---- the manual ---- */

static char *read_whole(const char *path)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	static char text[200000];
	size_t n = fread(text, 1, sizeof text - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

/* doc/arithmetic.md gives each rule under its name, a statement a line, as rules.def has it. */
static void test_manual_has_the_formulas(void **state)
{
	(void)state;
	char *manual = read_whole(SOURCE_DIR "/doc/arithmetic.md");
	for (uint32_t i = 0; i < rule_count; i++) {
		char head[100], lines[2000] = "\n";
		snprintf(head, sizeof head, "### %s\n", rules[i].name);
		const char *section = strstr(manual, head);
		if (!section)
			print_error("no section for %s\n", rules[i].name);
		assert_non_null(section);
		for (const char *s = rules[i].formula; *s;) {
			size_t len = strcspn(s, ";");
			sprintf(lines + strlen(lines), "    %.*s\n", (int)len, s);
			s += len + (s[len] == ';');
		}
		const char *found = strstr(section, lines), *next = strstr(section + 1, "\n### ");
		if (!found || (next && found > next))
			print_error("%s:%s", rules[i].name, lines);
		assert_true(found && (!next || found < next));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_momentum),
		cmocka_unit_test(test_nesterov),
		cmocka_unit_test(test_doug),
		cmocka_unit_test(test_quickprop),
		cmocka_unit_test(test_quickprop_off_the_path),
		cmocka_unit_test(test_rprop),
		cmocka_unit_test(test_delta_bar_delta),
		cmocka_unit_test(test_adam),
		cmocka_unit_test(test_rate_factor_and_frozen),
		cmocka_unit_test(test_exact_numbers),
		cmocka_unit_test(test_doug_length),
		cmocka_unit_test(test_norm_is_a_tree),
		cmocka_unit_test(test_schedules),
		cmocka_unit_test(test_adam_fixes),
		cmocka_unit_test(test_numbers_of_the_update),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_formula_code),
		cmocka_unit_test(test_formula_faults),
		cmocka_unit_test(test_manual_has_the_formulas),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
