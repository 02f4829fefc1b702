/* SPDX-License-Identifier: MIT */
/* Update rules on the simulated GF11, and the cost of the range check. Every rule is compared with the oracle over
 * many updates from the same start, on several networks, numbers of processors, summation methods, both compilers.
 *
 * quickprop divides by the difference of two slopes and amplifies rounding every few updates, on the cpu target too,
 * which is single precision as well. So the oracle gets the machine's weights and state again every FEW updates; with
 * the other rules it never does. `near` lists the tolerances for the error of each epoch and for all weights. */
#include "gf11_nets.h"

#include "gf11_study.h"

enum { UPDATES = 40, FEW = 10, ALL = UPDATES };

/* alone: updates from the same start */
static const struct {
	const char *rule;
	int alone;
	double near, rate;
} races[] = {
	{ "momentum", ALL, 1e-5, 0.002 }, { "nesterov", ALL, 1e-5, 0.002 },        { "quickprop", FEW, 1e-3, 0.002 },
	{ "rprop", ALL, 1e-4, 0.05 },     { "delta-bar-delta", ALL, 1e-4, 0.001 }, { "adam", ALL, 1e-4, 0.02 },
};

static const char *const networks[] = {
	"group in 8 input\ngroup code 3\ngroup out 8 output\nconnect in, true -> code\nconnect code, true -> out\n",
	"group in 5 input\ngroup h 6 tanh\ngroup out 2 linear output\nconnect in, true -> h rate 0.5\nconnect h, true -> "
	"out\n"
	"connect in -> out frozen\n",
	"group in 6 input\ngroup h 7\ngroup out 4 softmax output\nconnect in, true -> h\nconnect h, true -> out\n"
	"train error divergence decay 0.002\n",
};

static void vectors_near(const Side *a, const Side *b, int which, double near, int update)
{
	uint64_t links = a->net->links;
	double *x = calloc(links, sizeof *x), *y = calloc(links, sizeof *y), reach = 0.1;
	a->target->get(a->program, which, 0, ALL_LINKS, x);
	b->target->get(b->program, which, 0, ALL_LINKS, y);
	for (uint64_t i = 0; i < links; i++)
		reach = fmax(reach, fabs(y[i]));
	for (uint64_t i = 0; i < links; i++) {
		if (!(fabs(x[i] - y[i]) <= near * reach))
			print_error(
				"%s%d processors, %s, %s, update %d: number %llu of vector %d is %.9g, should be %.9g; largest %g\n",
				a->text, (int)gf11_own(&a->opt)->procs, sum_names[gf11_own(&a->opt)->sum],
				compiler_names[gf11_own(&a->opt)->compiler], update, (unsigned long long)i, which, x[i], y[i], reach);
		assert_true(fabs(x[i] - y[i]) <= near * reach);
	}
	free(x);
	free(y);
}

static void make_equal(const Side *from, const Side *to)
{
	double *v = calloc(from->net->links, sizeof *v);
	for (int k = 0; k <= rules[from->opt.rule].states; k++) {
		from->target->get(from->program, k, 0, ALL_LINKS, v);
		to->target->set(to->program, k, 0, ALL_LINKS, v);
	}
	free(v);
}

static void race(size_t which, uint32_t way)
{
	static const uint32_t procs[] = { 1, 3, 8, 13, 40 };
	char text[1024];
	Side gf11, ref;
	Options opt;
	Dice d = { 7 + way, 0 };
	options_init(&opt, DEFAULTS_1989);
	gf11_own(&opt)->procs = procs[way % COUNT(procs)];
	opt.threads = 1;
	gf11_own(&opt)->sigmoid = SIGMOID_POWER2;
	gf11_own(&opt)->sum = (int)(way % SUMS);
	gf11_own(&opt)->compiler = (int)(way / 2 % 2);
	snprintf(text, sizeof text, "%strain rule %s rate %g momentum 0.8 kappa 0.0001\n", networks[way % COUNT(networks)],
	         races[which].rule, races[which].rate);
	side_open(&gf11, &target_gf11, text, opt);
	side_open(&ref, &target_ref, text, opt);
	Cases c = cases_make(&d, gf11.net, 30);
	side_take(&gf11, &c.d);
	side_take(&ref, &c.d);
	for (int update = 1; update <= UPDATES; update++) {
		Batch b = { .count = 30 };
		Tally x = side_learn(&gf11, b), y = side_learn(&ref, b);
		assert_true(fabs(x.error - y.error) <= races[which].near * (1 + fabs(y.error)));
		side_update(&gf11, (uint64_t)update);
		side_update(&ref, (uint64_t)update);
		vectors_near(&gf11, &ref, 0, races[which].near, update);
		if (update % races[which].alone == 0)
			make_equal(&gf11, &ref);
	}
	cases_free(&c);
	ctx_free(&gf11.cx);
	ctx_free(&ref.cx);
}

static void rules_keep_to_the_oracle(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(races); i++)
		for (uint32_t way = 0; way < 5; way++)
			race(i, (uint32_t)i + way);
}

/* What is in the table above is every rule but the one that is refused. */
static void all_rules_are_here(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < rule_count; i++) {
		bool found = rules[i].needs_norm;
		for (size_t k = 0; k < COUNT(races); k++)
			found |= strcmp(races[k].rule, rules[i].name) == 0;
		assert_true(found);
	}
}

/* ---- what the range check costs ---- */

typedef struct Cost {
	int sum, compiler;
	uint32_t procs;
	uint64_t total[2];
} Cost;

static void cost_body(Ctx *cx, void *arg)
{
	static const char text[] =
		"group in 40 input\ngroup h 20\ngroup out 10 output\nconnect in, true -> h\nconnect h, true -> out\n";
	Cost *c = arg;
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "toy.topo", .text = text, .len = strlen(text) };
	Net *net = net_parse(cx, src, DEFAULTS_1989);
	const Plan *plan = plan_make(cx, net, &(Caps){ .target = "gf11", .lanes = 566 });
	for (int checked = 0; checked < 2; checked++) {
		Options opt = net->options;
		gf11_own(&opt)->range_check = checked;
		EpochSpec s = { .plan = plan,
			            .opt = &opt,
			            .m = machine_open(cx, "gf11"),
			            .cases = 24 * c->procs,
			            .o = { .procs = c->procs, .sum = c->sum, .compiler = c->compiler, .threads = 1, .dry = true } };
		c->total[checked] = epoch_simulate(cx, &s, NULL).total;
	}
}

/* Less than a fiftieth of an epoch, by every summation method. */
static void range_check_costs_little(void **state)
{
	(void)state;
	for (int i = 0; i < 4 * SUMS; i++) {
		Ctx cx;
		Cost c = { .sum = i % SUMS, .compiler = i / SUMS % 2, .procs = i / SUMS < 2 ? 8 : 40 };
		ctx_init(&cx, NULL);
		assert_int_equal(guarded(&cx, cost_body, &c), MP_OK);
		assert_true(50 * c.total[1] < 51 * c.total[0]);
		ctx_free(&cx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_keep_to_the_oracle),
		cmocka_unit_test(all_rules_are_here),
		cmocka_unit_test(range_check_costs_little),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
