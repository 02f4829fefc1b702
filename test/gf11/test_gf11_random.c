/* SPDX-License-Identifier: MIT */
/* Random networks on the simulated GF11 against the oracle: up to 200 units of all functions, sparse blocks, skipping
 * and single links, contexts, settling, frozen blocks, rates of blocks, decay; 1 to 40 processors; all combinations of
 * compilers, summation methods, sigmoids and rules. Compares outputs, errors, gradients, and weights and rule state
 * after each of three updates, each from the same weights.
 *
 * A few by default; MICROPROP_NETWORKS=N for N more of any size, MICROPROP_LOUD prints the differences. Tolerances are
 * those of doc/gf11.md: NEAR of the largest output or gradient of the network, NEARER with sigmoid power2. Rules that
 * depend on the sign of a gradient, or divide by the difference of two, may diverge where that is about zero: one
 * weight in twenty may. */
#include "gf11_nets.h"

#include "gf11_sum.h"

#define NEAR   5e-3
#define NEARER 1e-5

enum { OUTPUT, GRADIENT, WEIGHT, STATE, VECTORS = STATE + MAX_STATE };
static const struct {
	const char *name;
	double least;
} vectors[VECTORS] = {
	/* least: that the largest counts for */
	{ "output", 1 },         { "gradient", 0.1 },      { "weight", 0.1 },
	{ "first state", 0.05 }, { "second state", 0.05 }, { "third state", 0.05 },
};

typedef struct Match {
	Side gf11, ref;
	uint64_t seed, cases, examples;
} Match;

static double worst_ever[2][VECTORS];

static const Rule *rule_of(const Match *m) { return &rules[m->gf11.opt.rule]; }

static bool decides_smoothly(const Match *m) { return rule_of(m)->states == 1; }

static void near_enough(const Match *m, int what, const double *a, const double *b, uint64_t n)
{
	const Gf11Options *o = gf11_own(&m->gf11.opt);
	double reach = vectors[what].least, worst = 0, far = o->sigmoid == SIGMOID_TABLE ? NEAR : NEARER;
	uint64_t at = 0, others = what < WEIGHT || decides_smoothly(m) ? 0 : 1 + n / 20;
	for (uint64_t i = 0; i < n; i++)
		reach = fmax(reach, fabs(b[i]));
	for (uint64_t i = 0; i < n; i++) {
		double off = fabs(a[i] - b[i]);
		if (!(off <= far * reach) && others) {
			others--;
		} else if (!(off <= worst)) {
			worst = off;
			at = i;
		}
	}
	bool near = worst <= far * reach;
	worst_ever[o->sigmoid][what] = fmax(worst_ever[o->sigmoid][what], worst / reach);
	if (!near)
		print_error("%sseed %llu, %d processors, rule %s, compiler %s, sum %s, sigmoid %s: %s %llu is %.9g, should be "
		            "%.9g; largest %g\n",
		            m->gf11.text, (unsigned long long)m->seed, (int)o->procs, rule_of(m)->name,
		            compiler_names[o->compiler], sum_names[o->sum], sigmoid_names[o->sigmoid], vectors[what].name,
		            (unsigned long long)at, a[at], b[at], reach);
	assert_true(near);
}

static double *vector_of(const Side *s, int what)
{
	double *v = calloc(s->net->links + 1, sizeof *v);
	if (what == GRADIENT)
		s->target->gradient(s->program, v);
	else
		s->target->get(s->program, what - WEIGHT, 0, ALL_LINKS, v);
	return v;
}

static void both_near(const Match *m, int what)
{
	double *a = vector_of(&m->gf11, what), *b = vector_of(&m->ref, what);
	near_enough(m, what, a, b, m->ref.net->links);
	free(a);
	free(b);
}

static void errors_near(const Match *m, const Tally *a, const Tally *b)
{
	double near = gf11_own(&m->gf11.opt)->sigmoid == SIGMOID_TABLE ? 5 * NEAR : 5 * NEARER;
	assert_int_equal(a->cases, b->cases);
	assert_int_equal(a->scored, b->scored);
	if (!(fabs(a->error - b->error) <= near * (1 + fabs(b->error))))
		print_error("%sseed %llu: error %.9g, should be %.9g\n", m->gf11.text, (unsigned long long)m->seed, a->error,
		            b->error);
	assert_true(fabs(a->error - b->error) <= near * (1 + fabs(b->error)));
}

static Tally outputs_of(Side *s, uint64_t examples, double *out)
{
	Tally t = { 0 };
	side_ok(s, s->target->evaluate(s->program, 0, examples, &s->stop, out, &t));
	return t;
}

static void outputs_near(Match *m)
{
	uint64_t n = m->cases * m->ref.net->outputs;
	double *a = calloc(n + 1, sizeof *a), *b = calloc(n + 1, sizeof *b);
	Tally x = outputs_of(&m->gf11, m->examples, a), y = outputs_of(&m->ref, m->examples, b);
	near_enough(m, OUTPUT, a, b, n);
	errors_near(m, &x, &y);
	free(a);
	free(b);
}

/* The oracle continues from the weights and the rule state of the machine. */
static void make_equal(const Match *m)
{
	for (int which = 0; which <= rule_of(m)->states; which++) {
		double *v = vector_of(&m->gf11, WEIGHT + which);
		m->ref.target->set(m->ref.program, which, 0, ALL_LINKS, v);
		free(v);
	}
}

static bool is_frozen(const Net *net, uint64_t link) { return net_block(net, net_target(net, link), link)->frozen; }

/* Frozen links stay as they are, to the bit. */
static void update(Match *m, uint64_t number)
{
	const Net *net = m->gf11.net;
	int vectors_kept = 1 + rule_of(m)->states;
	double *before[1 + MAX_STATE], *after[1 + MAX_STATE];
	for (int which = 0; which < vectors_kept; which++)
		before[which] = vector_of(&m->gf11, WEIGHT + which);
	side_update(&m->gf11, number);
	side_update(&m->ref, number);
	for (int which = 0; which < vectors_kept; which++) {
		after[which] = vector_of(&m->gf11, WEIGHT + which);
		for (uint64_t i = 0; i < net->links; i++)
			if (is_frozen(net, i))
				assert_memory_equal(&before[which][i], &after[which][i], sizeof(double));
		free(before[which]);
		free(after[which]);
	}
}

/* All cases, some of them in another order, all again. */
static void learn(Match *m)
{
	uint64_t *order = calloc(m->examples, sizeof *order);
	for (uint64_t i = 0; i < m->examples; i++)
		order[i] = (i * 7 + 3) % m->examples;
	for (uint64_t number = 1; number <= 3; number++) {
		Batch b = { .example = number == 2 ? order : NULL, .count = number == 2 ? 1 + m->examples / 2 : m->examples };
		make_equal(m);
		Tally x = side_learn(&m->gf11, b), y = side_learn(&m->ref, b);
		errors_near(m, &x, &y);
		both_near(m, GRADIENT);
		update(m, number);
		for (int k = 0; k <= rule_of(m)->states; k++)
			both_near(m, WEIGHT + k);
	}
	free(order);
}

/* Steps, or sizes of steps, that an earlier run left: frozen ones must stay. Means without their squares would be
 * no state that a run can leave. */
static void steps_start(const Match *m)
{
	double *step = vector_of(&m->gf11, STATE);
	bool size = strcmp(rule_of(m)->state[0], "size") == 0;
	for (uint64_t i = 0; i < m->gf11.net->links; i++)
		step[i] = (float)(0.02 * random_unit(m->seed, STREAM_DATA, i) - (size ? 0 : 0.01));
	if (strcmp(rule_of(m)->state[0], "mean") != 0)
		m->gf11.target->set(m->gf11.program, 1, 0, ALL_LINKS, step);
	free(step);
}

enum { PLAIN, MEMORY, SETTLING }; /* kinds of networks */

static void agree(uint64_t seed, uint32_t units, uint32_t procs, int way, int kind)
{
	bool memory = kind == MEMORY;
	Draft t;
	Match m = { .seed = seed };
	Options opt;
	options_init(&opt, DEFAULTS_1989);
	gf11_own(&opt)->procs = procs;
	opt.threads = 1;
	gf11_own(&opt)->sum = way % SUMS;
	gf11_own(&opt)->compiler = way / SUMS % 2;
	draft(&t, seed, units, FN_EVERYWHERE);
	gf11_own(&opt)->sigmoid = roll(&t.d, 3) == 0;
	if (memory)
		draft_memory(&t);
	if (kind == SETTLING)
		draft_settling(&t);
	if (roll(&t.d, 2))
		draft_rates(&t);
	if (memory && roll(&t.d, 2))
		say(&t, "train batch %u\n", 1 + roll(&t.d, 9)); /* capacity: larger batches are split */
	const Rule *rule = &rules[seed % rule_count];
	if (!rule->needs_norm)
		say(&t, "train rule %s\n", rule->name);
	side_open(&m.gf11, &target_gf11, t.text, opt);
	side_open(&m.ref, &target_ref, t.text, opt);
	m.cases = m.examples = 1 + roll(&t.d, (memory ? 8 : 2) * procs + 3);
	Cases c = cases_make(&t.d, m.gf11.net, m.cases);
	if (memory && roll(&t.d, 8))
		cases_cut(&t.d, &c, 6);
	m.examples = run_examples(m.gf11.net, &c.d);
	side_take(&m.gf11, &c.d);
	side_take(&m.ref, &c.d);
	steps_start(&m);
	outputs_near(&m);
	learn(&m);
	make_equal(&m);
	outputs_near(&m);
	cases_free(&c);
	ctx_free(&m.gf11.cx);
	ctx_free(&m.ref.cx);
}

static void small_networks_agree(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 24; seed++)
		agree(seed, 1 + (uint32_t)(seed * 5 % 40), 1 + (uint32_t)(seed * 13 % 40), (int)seed, PLAIN);
}

static void settling_networks_agree(void **state)
{
	(void)state;
	for (uint64_t seed = 301; seed <= 324; seed++)
		agree(seed, 4 + (uint32_t)(seed * 5 % 30), 1 + (uint32_t)(seed * 13 % 9), (int)seed, SETTLING);
}

static void recurrent_networks_agree(void **state)
{
	(void)state;
	for (uint64_t seed = 201; seed <= 224; seed++)
		agree(seed, 4 + (uint32_t)(seed * 5 % 40), 1 + (uint32_t)(seed * 13 % 9), (int)seed, MEMORY);
}

static void large_networks_agree(void **state)
{
	(void)state;
	for (uint64_t seed = 101; seed <= 104; seed++)
		agree(seed, 200, 1 + (uint32_t)(seed * 17 % 40), (int)seed, PLAIN);
	const char *more = getenv("MICROPROP_NETWORKS");
	for (uint64_t seed = 1000; more && seed < 1000 + strtoull(more, NULL, 10); seed++)
		agree(seed, 1 + (uint32_t)(seed * 37 % 200), 1 + (uint32_t)(seed * 13 % 40), (int)(seed * 3), (int)(seed % 3));
	for (int k = 0; k < 2 && getenv("MICROPROP_LOUD"); k++)
		for (int what = 0; what < VECTORS; what++)
			print_message("sigmoid %s: %s off by %g of the largest\n", sigmoid_names[k], vectors[what].name,
			              worst_ever[k][what]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_networks_agree),
		cmocka_unit_test(recurrent_networks_agree),
		cmocka_unit_test(settling_networks_agree),
		cmocka_unit_test(large_networks_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
