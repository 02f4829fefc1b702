/* SPDX-License-Identifier: MIT */
/* The same bits on the cpu target: on every example, whatever the vectors, the number of threads and the form of
 * the inputs; in the order of sums that doc/arithmetic.md promises; in pieces; after stopping and going on. */
#include <pthread.h>

#include "cpu_nets.h"
#include "guard.h"
#include "runs.h"

/* ---- every example in every way ---- */

static const char *const inputs[] = { "dense", "index" }, *const thread_counts[] = { "1", "2", "3", "8" };

typedef struct Course {
	const char *file; /* of an example, or the text of a network that names its data */
	double share;     /* of the data; 1: all of it */
	const char *option[5][2];
} Course;

/* Grammatical strings are about eight letters long: with 48 hidden units threads share sequences. */
static const char remembering[] =
	"group letter 7 input\ngroup memory 48 context\ngroup hidden 48 tanh\ngroup follows 7 output\n"
	"copy hidden -> memory start 0.5\nconnect letter, memory, true -> hidden\nconnect hidden, true -> follows\n"
	"train rate 0.001 error cross-entropy\ndata \"make:reber\"\n";

/* Scattered links, in several lists, some frozen; from inputs, from contexts, around a group. */
static const char scattered[] =
	"group input 203 input\ngroup a 70\ngroup b 40 tanh\ngroup output 26 output\n"
	"connect input, true -> a random 0.06 seed 1\nconnect input -> b random 0.03 seed 2 rate 0.5\nconnect a -> b "
	"random 0.1 seed 3\n"
	"connect a -> output random 0.05 seed 4 frozen\nconnect b -> output random 0.2 seed 5\nconnect true -> output\n"
	"train rate 0.001 error cross-entropy\ndata \"make:letters\"\n";
static const char scattered_memory[] =
	"group letter 7 input\ngroup memory 90 context\ngroup hidden 90 tanh\ngroup follows 7 output\n"
	"copy hidden -> memory start 0.5\nconnect letter, true -> hidden\nconnect memory -> hidden random 0.06 seed 1\n"
	"connect hidden -> follows random 0.1 seed 2\nconnect true -> follows\ntrain rate 0.001 error cross-entropy\ndata "
	"\"make:reber\"\n";

/* Links in all directions, groups that integrate: 240 cases of five ticks. */
static const char settling[] =
	"group input 203 input\ngroup a 50 integrate input\ngroup output 26 output start 0.5\ngroup b 17 tanh integrate "
	"output dt 0.7\nconnect input, true -> a\nconnect a, b, true -> output\nconnect output -> b, a\nconnect b -> b\n"
	"train ticks 5 targets-from 3 rate 0.001 error cross-entropy\ndata \"make:letters\"\n";

/* Noise of everything, dropout, shared weights, groups with errors of their own; and in a network that settles. */
static const char noisy[] =
	"group input 203 input\ngroup hidden 50 gain 1.1\ngroup output 26 output error cross-entropy error-scale 0.5 "
	"criterion 0.3 target-radius 0.05\nconnect input, true -> hidden decay 0.001 limits 2\nconnect hidden, true -> "
	"output\nnoise input uniform 0.05\nnoise hidden net gaussian 0.1\nnoise hidden gaussian 0.05\ndropout hidden "
	"0.2\nnoise input -> hidden gaussian 0.02\ntrain rate 0.001\ndata \"make:letters\"\n";
static const char noisy_settling[] =
	"group input 203 input\ngroup a 50 integrate input\ngroup output 26 output start 0.5\ngroup b 50 tanh integrate "
	"output dt 0.7\nconnect input, true -> a\nconnect input -> b tied input -> a\nconnect a, b, true -> "
	"output\nconnect output -> b, a\nnoise a net gaussian 0.1\nnoise b uniform 0.1\ndropout b 0.1\ntrain ticks 5 "
	"targets-from 3 rate 0.001 error cross-entropy\ndata \"make:letters\"\n";

/* Of letters there are 240 cases, one leaf, or 721, which are two: for threads to share leaves, or cases and then
 * weights. */
static const Course courses[] = {
	{ "xor.topo", 1, { { "epochs", "30" } } },
	{ "xor.topo", 1, { { "batch", "1" }, { "epochs", "5" } } },
	{ "encoder-8-3-8.topo", 1, { { "epochs", "30" } } },
	{ "encoder-8-3-8.topo", 1, { { "batch", "1" }, { "epochs", "5" } } },
	{ "encoder-10-5-10.topo", 1, { { "epochs", "30" } } },
	{ "encoder-10-5-10.topo", 1, { { "batch", "4" }, { "epochs", "5" }, { "rate", "0.01" } } },
	{ "parity-4.topo", 1, { { "epochs", "30" } } },
	{ "parity-4.topo", 1, { { "batch", "1" }, { "epochs", "3" } } },
	{ "spirals.topo", 1, { { "epochs", "5" } } },
	{ "spirals.topo", 1, { { "batch", "16" }, { "epochs", "2" }, { "rule", "rprop" } } },
	{ "reber.topo", 1, { { "updates", "60" } } },
	{ "reber.topo", 1, { { "batch", "all" }, { "epochs", "2" }, { "bptt", "full" }, { "rate", "0.001" } } },
	{ "temporal-xor.topo", 1, { { "updates", "20" } } },
	{ "temporal-xor.topo", 1, { { "batch", "all" }, { "epochs", "2" }, { "bptt", "full" }, { "rate", "0.001" } } },
	{ "letters.topo", 0.02, { { "epochs", "1" } } },
	{ "letters.topo", 0.02, { { "batch", "1" }, { "updates", "50" } } },
	{ "letters.topo", 0.06, { { "batch", "all" }, { "epochs", "2" }, { "rate", "0.001" } } },
	{ "letters.topo", 0.06, { { "batch", "700" }, { "epochs", "1" }, { "rate", "0.001" }, { "rule", "adam" } } },
	{ remembering, 1, { { "batch", "all" }, { "epochs", "1" }, { "bptt", "full" } } },
	{ remembering, 1, { { "batch", "100" }, { "epochs", "1" } } },
	{ scattered, 0.06, { { "batch", "all" }, { "epochs", "2" } } },
	{ scattered, 0.02, { { "batch", "1" }, { "updates", "20" } } },
	{ scattered_memory, 1, { { "batch", "all" }, { "epochs", "1" }, { "bptt", "full" } } },
	{ settling, 0.06, { { "batch", "all" }, { "epochs", "1" } } },
	{ noisy, 0.06, { { "batch", "all" }, { "epochs", "2" } } },
	{ noisy, 0.02, { { "batch", "1" }, { "updates", "20" } } },
	{ noisy_settling, 0.02, { { "batch", "all" }, { "epochs", "1" } } },
	{ settling, 0.02, { { "batch", "16" }, { "epochs", "1" }, { "bptt", "2" }, { "inputs-until", "3" } } },
};

/* What came out, as text: fingerprint of the weights, error and shares of the last epoch. */
typedef char Outcome[200];
static Outcome want[COUNT(courses)];

static mp_data *course_data(const Course *c, const mp_net *net)
{
	mp_data *all, *some, *rest;
	assert_int_equal(mp_data_open(&all, mp_net_get_info(net)->data, NULL, NULL), MP_OK);
	if (c->share == 1)
		return all;
	assert_int_equal(mp_data_split(all, c->share, 1, &some, &rest), MP_OK);
	mp_data_close(all);
	mp_data_close(rest);
	return some;
}

static mp_net *course_net(const Course *c)
{
	char path[512];
	mp_net *net;
	if (strchr(c->file, '\n'))
		return net_of(c->file);
	snprintf(path, sizeof path, "%s/examples/%s", SOURCE_DIR, c->file);
	assert_int_equal(mp_net_open(&net, path, NULL), MP_OK);
	return net;
}

static mp_run *course_run(const Course *c, const mp_net *net)
{
	mp_run *run = run_of(net);
	need(run, mp_run_set(run, "target", "cpu"));
	need(run, mp_run_set(run, "until", "never"));
	for (size_t i = 0; i < COUNT(c->option) && c->option[i][0]; i++)
		need(run, mp_run_set(run, c->option[i][0], c->option[i][1]));
	return run;
}

static void run_course(const Course *c, const mp_net *net, const mp_data *data, const char *threads, const char *input,
                       Outcome out)
{
	mp_run *run = course_run(c, net);
	need(run, mp_run_set(run, "threads", threads));
	need(run, mp_run_set(run, "input", input));
	need(run, mp_run_train(run, data, NULL, NULL, NULL));
	const mp_report *r = mp_run_get_report(run);
	snprintf(out, sizeof(Outcome), "%s, error %a, right %a, within %a", r->fingerprint, r->total_error, r->right,
	         r->within);
	mp_run_close(run);
}

static void same_outcome(const Course *c, const Outcome have, const Outcome wanted, const char *isa,
                         const char *threads, const char *input)
{
	if (strcmp(have, wanted) == 0)
		return;
	print_error(
		"%s, batch %s, MICROPROP_ISA=%s, threads %s, input %s: %s\nbut on generic, threads 1, input dense: %s\n",
		c->file, c->option[0][1], isa, threads, input, have, wanted);
	assert_true(false);
}

static void courses_on(int isa)
{
	if (!isa_has(isa))
		skip();
	setenv("MICROPROP_ISA", isa_name(isa), 1);
	for (size_t i = 0; i < COUNT(courses); i++) {
		const Course *c = &courses[i];
		mp_net *net = course_net(c);
		mp_data *data = course_data(c, net);
		for (size_t k = 0; k < COUNT(thread_counts) * COUNT(inputs); k++) {
			const char *threads = thread_counts[k / 2], *input = inputs[k % 2];
			Outcome have;
			run_course(c, net, data, threads, input, have);
			if (!want[i][0])
				strcpy(want[i], have);
			same_outcome(c, have, want[i], isa_name(isa), threads, input);
		}
		mp_data_close(data);
		mp_net_close(net);
	}
	unsetenv("MICROPROP_ISA");
}

static void examples_on_generic(void **state)
{
	(void)state;
	courses_on(ISA_GENERIC);
}
static void examples_on_neon(void **state)
{
	(void)state;
	courses_on(ISA_NEON);
}
static void examples_on_avx2(void **state)
{
	(void)state;
	courses_on(ISA_AVX2);
}
static void examples_on_avx512(void **state)
{
	(void)state;
	courses_on(ISA_AVX512);
}

/* ---- the order of sums ---- */

/* The contract in plain C, for linear and relu units that go forward only: every sum one chain of fused
 * multiply-adds. */
typedef struct Model {
	const Net *net;
	const Plan *plan;
	const float *w;
	float *out, *delta, *sum;
} Model;

static void model_forward(Model *m, const Span *s, float *out)
{
	const Net *net = m->net;
	for (Unit u = s->first; u < s->first + s->count; u++) {
		uint64_t i = net->row[u], end = net->row[u + 1];
		bool biased = i < end && net_source(net, net_target(net, i), i) == 0;
		float x = biased ? m->w[i++] : 0;
		for (; i < end; i++)
			x = fmaf(out[net_source(net, net_target(net, i), i)], m->w[i], x);
		out[u] = net_group(net, u)->fn == FN_RELU && x <= 0 ? 0 : x;
	}
}

/* The error of a unit: its own, if it is an output, then over its targets in canonical order. */
static float model_error(const Model *m, Unit u, float sum)
{
	const Net *net = m->net;
	for (Unit v = 1; v < net->units; v++)
		for (uint64_t i = net->row[v]; i < net->row[v + 1]; i++)
			if (net_source(net, net_target(net, i), i) == u)
				sum = fmaf(m->delta[v], m->w[i], sum);
	return sum;
}

static void model_case(Model *m, const float *x, const float *y)
{
	const Net *net = m->net;
	const Plan *plan = m->plan;
	uint32_t target = 0;
	m->out[0] = 1;
	for (uint32_t g = 0; g < net->groups; g++)
		for (uint32_t j = 0; net->group[g].role == ROLE_INPUT && j < net->group[g].size; j++)
			m->out[net->group[g].first + j] = *x++;
	for (uint32_t k = 0; k < plan->spans; k++)
		model_forward(m, &plan->span[k], m->out);
	for (uint32_t g = 0; g < net->groups; g++)
		for (uint32_t j = 0; net->group[g].role == ROLE_OUTPUT && j < net->group[g].size; j++)
			m->delta[net->group[g].first + j] = m->out[net->group[g].first + j] - y[target++];
	for (uint32_t k = plan->spans; k-- > 0;)
		for (Unit u = plan->span[k].first; u < plan->span[k].first + plan->span[k].count; u++) {
			const Group *g = net_group(net, u);
			m->delta[u] = model_error(m, u, g->role == ROLE_OUTPUT ? m->delta[u] : 0);
			if (g->fn == FN_RELU && m->out[u] == 0)
				m->delta[u] = 0;
		}
	for (Unit u = 1; u < net->units; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++)
			m->sum[i] = fmaf(m->delta[u], m->out[net_source(net, net_target(net, i), i)], m->sum[i]);
}

static void make_plan(Ctx *cx, void *arg)
{
	Model *m = arg;
	Caps caps;
	target_cpu.caps(&caps);
	m->plan = plan_make(cx, m->net, &caps);
}

/* Networks with nothing but linear and relu units. */
static void sum_as_the_model(uint64_t seed)
{
	static Draft t;
	Side s;
	Dice d = { seed, 0 };
	draft(&t, seed, 40, true);
	for (char *at; (at = strstr(t.text, "sigmoid")) != NULL;)
		memcpy(at, "relu   ", 7);
	for (char *at; (at = strstr(t.text, " tanh")) != NULL;)
		memcpy(at, " relu", 5);
	for (char *at; (at = strstr(t.text, "cross-entropy")) != NULL;)
		memcpy(at, "squared      ", 13);
	side_open(&s, &target_cpu, t.text,
	          (Way){ .isa = best_isa(), .threads = 1, .batch = (int64_t[]){ 0, 1, 16 }[seed % 3] });
	uint64_t links = s.net->links, cases = 1 + roll(&d, 90);
	Cases c = cases_make(&d, s.net, cases, true);
	double *w = calloc(links, sizeof *w), *g = calloc(links, sizeof *g);
	float *weight = calloc(links, sizeof *weight);
	Model m = { .net = s.net,
		        .w = weight,
		        .out = calloc(s.net->units, sizeof(float)),
		        .delta = calloc(s.net->units, sizeof(float)),
		        .sum = calloc(links, sizeof(float)) };
	side_ok(&s, guarded(&s.cx, make_plan, &m));
	side_take(&s, &c);
	side_learn(&s, (Batch){ .count = cases });
	s.target->gradient(s.program, g);
	s.target->get(s.program, 0, 0, ALL_LINKS, w);
	for (uint64_t i = 0; i < links; i++)
		weight[i] = (float)w[i];
	unsigned before = cpu_enter();
	for (uint64_t i = 0; i < cases; i++)
		model_case(&m, c.x + i * s.net->inputs, c.y + i * s.net->outputs);
	cpu_leave(before);
	for (uint64_t i = 0; i < links; i++) {
		if (g[i] != m.sum[i])
			print_error("%s%llu cases: gradient %llu is %a, should be %a\n", t.text, (unsigned long long)cases,
			            (unsigned long long)i, g[i], (double)m.sum[i]);
		assert_true(g[i] == m.sum[i]);
	}
	free(w);
	free(g);
	free(weight);
	free(m.out);
	free(m.delta);
	free(m.sum);
	cases_free(&c);
	side_close(&s);
}

static void sums_run_in_canonical_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++)
		sum_as_the_model(seed);
}

/* ---- leaves ---- */

/* About 350 links: 6,400 of its cases are work enough for threads. */
static const char wide[] = "group x 20 input\ngroup h 12 tanh\ngroup o 8 output\nconnect x, true -> h\nconnect h, true "
						   "-> o\ntrain rate 0.001 batch all\n";

static double *gradient_of(Side *s, Batch b)
{
	double *g = calloc(s->net->links, sizeof *g);
	side_learn(s, b);
	s->target->gradient(s->program, g);
	side_update(s, 1);
	return g;
}

/* Each leaf by itself, joined as lib/leaves.c says. */
static double *gradient_by_leaves(Side *s, uint64_t count, const double *w)
{
	uint32_t leaves = leaf_count(count), depth = 0;
	uint64_t links = s->net->links, first, size;
	double *stack[16];
	for (uint32_t leaf = 0; leaf < leaves; leaf++) {
		leaf_range(count, leaves, leaf, &first, &size);
		s->target->set(s->program, 0, 0, ALL_LINKS, w);
		stack[depth++] = gradient_of(s, (Batch){ .first = first, .count = size });
		for (uint32_t joins = leaf_joins(leaf, leaves); joins; joins--) {
			depth--;
			for (uint64_t i = 0; i < links; i++)
				stack[depth - 1][i] = (float)stack[depth - 1][i] + (float)stack[depth][i];
			free(stack[depth]);
		}
	}
	assert_int_equal(depth, 1);
	return stack[0];
}

static void leaves_join_as_the_tree_says(void **state)
{
	(void)state;
	static const uint64_t counts[] = { 513, 1500, 3584, 6400, 6657 }; /* 2, 3, 7, 13 and 14 leaves */
	static const int threads[] = { 1, 2, 3, 5, 8 };
	Side one;
	Dice d = { 11, 0 };
	side_open(&one, &target_cpu, wide, (Way){ .isa = best_isa(), .threads = 1 });
	Cases c = cases_make(&d, one.net, 6657, true);
	double *w = calloc(one.net->links, sizeof *w);
	side_take(&one, &c);
	one.target->get(one.program, 0, 0, ALL_LINKS, w);
	for (size_t i = 0; i < COUNT(counts); i++) {
		double *wanted = gradient_by_leaves(&one, counts[i], w);
		for (size_t k = 0; k < COUNT(threads); k++) {
			Side s;
			side_open(&s, &target_cpu, wide, (Way){ .isa = best_isa(), .threads = threads[k], .index = k % 2 });
			side_take(&s, &c);
			double *g = gradient_of(&s, (Batch){ .count = counts[i] });
			same_vector(wanted, g, s.net->links);
			free(g);
			side_close(&s);
		}
		free(wanted);
	}
	free(w);
	cases_free(&c);
	side_close(&one);
}

/* Several calls for one batch, cut anywhere; and two batches that wait for one update. */
static void batches_come_in_pieces(void **state)
{
	(void)state;
	static const uint32_t cuts[][5] = { { 0, 7 }, { 0, 1, 7 }, { 0, 4, 7 }, { 0, 6, 7 }, { 0, 2, 3, 5, 7 } };
	Side s;
	Dice d = { 12, 0 };
	side_open(&s, &target_cpu, wide, (Way){ .isa = best_isa(), .threads = 3 });
	Cases c = cases_make(&d, s.net, 3584, true);
	uint64_t links = s.net->links;
	double *w = calloc(links, sizeof *w), *g = calloc(links, sizeof *g), *wanted = NULL;
	side_take(&s, &c);
	s.target->get(s.program, 0, 0, ALL_LINKS, w);
	for (size_t i = 0; i < COUNT(cuts); i++) {
		Batch b = { .count = 3584 };
		Tally t = { 0 };
		for (int twice = 0; twice < 2; twice++)
			for (int k = 0; k < 4 && cuts[i][k] < 7; k++)
				side_ok(&s, s.target->accumulate(s.program, &b, cuts[i][k], cuts[i][k + 1], &s.stop, &t));
		assert_int_equal(t.cases, 2 * 3584);
		s.target->gradient(s.program, g);
		side_update(&s, 1);
		s.target->set(s.program, 0, 0, ALL_LINKS, w);
		if (!wanted)
			wanted = memcpy(calloc(links, sizeof *wanted), g, links * sizeof *g);
		same_vector(wanted, g, links);
	}
	free(w);
	free(g);
	free(wanted);
	cases_free(&c);
	side_close(&s);
}

/* A network that remembers, and nothing to remember: online learning computes all of its units, too. */
static void sequences_of_one_case(void **state)
{
	(void)state;
	enum { CASES = 9 };
	Side plain, online;
	Dice d = { 14, 0 };
	side_open(&plain, &target_cpu, remembering, (Way){ .isa = best_isa(), .threads = 1 });
	side_open(&online, &target_cpu, remembering, (Way){ .isa = best_isa(), .threads = 1, .batch = 1 });
	Cases c = cases_make(&d, plain.net, CASES, true);
	for (uint64_t i = 0; i <= CASES; i++)
		c.seq[i] = i;
	c.dense.seq = c.seq;
	c.dense.sequences = CASES;
	side_take(&plain, &c);
	side_take(&online, &c);
	for (uint64_t i = 0; i < CASES; i++) {
		double *wanted = gradient_of(&plain, (Batch){ .first = i, .count = 1 }),
			   *g = gradient_of(&online, (Batch){ .first = i, .count = 1 });
		same_vector(wanted, g, plain.net->links);
		free(wanted);
		free(g);
	}
	cases_free(&c);
	side_close(&plain);
	side_close(&online);
}

/* Are they the same numbers, with the same signs where they are zero? */
static void same_bits(const double *wanted, const double *have, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (memcmp(&wanted[i], &have[i], sizeof *have) && !(isnan(wanted[i]) && isnan(have[i]))) {
			print_error("number %llu is %.9g, not %.9g\n", (unsigned long long)i, have[i], wanted[i]);
			assert_true(false);
		}
}

static void same_weights(Side *a, Side *b)
{
	double *x = calloc(a->net->links, sizeof *x), *y = calloc(a->net->links, sizeof *y);
	for (int which = 0; which < 2; which++) {
		a->target->get(a->program, which, 0, ALL_LINKS, x);
		b->target->get(b->program, which, 0, ALL_LINKS, y);
		same_bits(x, y, a->net->links);
	}
	free(x);
	free(y);
}

/* One weight is `one` and grows by a quarter of it; last changes of the others are zeros of either sign. */
static void set_weights(Side *s, double one)
{
	double *v = calloc(s->net->links, sizeof *v);
	net_weights(s->net, 1, 0, ALL_LINKS, v);
	v[s->net->links / 3] = one;
	s->target->set(s->program, 0, 0, ALL_LINKS, v);
	for (uint64_t i = 0; i < s->net->links; i++)
		v[i] = i == s->net->links / 3 ? one / 4 : i % 2 ? -0.0 : 0;
	s->target->set(s->program, 1, 0, ALL_LINKS, v);
	free(v);
}

/* Online, where the next case is known and then comes, or does not: also with a weight that becomes infinite, and
 * products that are too small for a float. */
static void next_case_is_known(void **state)
{
	static const struct {
		const char *train;
		float x;
		double one;
	} kinds[] = {
		{ "rate 0.1", 1, 0.1 },        { "rate 0.1 decay 0.01", 1, 0.1 },
		{ "rate 1e-30", 1e-37f, 0.1 }, { "rate 1", 1e-20f, 0.1 },
		{ "rate 1e6", 1, 0.1 },        { "rate 1e6", 1e30f, 0.1 },
		{ "rate 0.1", 1, 3.3e38 },     { "rate 0.2", 1, 3.3e38 },
	};
	enum { CASES = 40, UPDATES = 300 };
	(void)state;
	for (uint32_t k = 0; k < COUNT(kinds); k++)
		for (int isa = 0; isa <= best_isa(); isa++) {
			Side plain, online;
			Dice d = { 15 + k, 0 };
			char text[300];
			snprintf(text, sizeof text,
			         "group x 20 input\ngroup h 19\ngroup g 37\ngroup o 21 output\nconnect x, true -> h\nconnect h, "
			         "true -> g\n"
			         "connect h, g, true -> o\ntrain momentum 0.9 %s\n",
			         kinds[k].train);
			side_open(&plain, &target_cpu, text, (Way){ .isa = isa, .threads = 1 });
			side_open(&online, &target_cpu, text, (Way){ .isa = isa, .threads = 1, .batch = 1 });
			Cases c = cases_make(&d, plain.net, CASES, true);
			for (uint64_t i = 0; i < CASES * plain.net->inputs; i++)
				c.x[i] *= one_in(&d, 5) ? 0 : one_in(&d, 2) ? -kinds[k].x : kinds[k].x;
			side_take(&plain, &c);
			side_take(&online, &c);
			set_weights(&plain, kinds[k].one);
			set_weights(&online, kinds[k].one);
			for (uint64_t i = 0, at = 0; i < UPDATES; i++, at = one_in(&d, 20) ? roll(&d, CASES) : (at + 1) % CASES) {
				Batch b = { .first = at, .count = 1, .next_count = CASES - 1 - at };
				side_learn(&plain, b);
				side_learn(&online, b);
				side_update(&plain, i + 1);
				side_update(&online, i + 1);
				if (i == 1 || one_in(&d, 10))
					same_weights(&plain, &online);
			}
			same_weights(&plain, &online);
			cases_free(&c);
			side_close(&plain);
			side_close(&online);
		}
}

/* ---- guards ---- */

/* A leaf comes to the same word with any threads, and computed again, though chunks are others and the last case is
 * read in another way. */
static void leaves_come_to_one_word(void **state)
{
	static const char text[] =
		"group x 203 input\ngroup h 60\ngroup o 26 output\nconnect x, true -> h\nconnect h, true -> o\n";
	static const uint64_t counts[] = { 512, 700, 1500 };
	enum { CASES = 1600 };
	Dice d = { 16, 0 };
	uint64_t word[COUNT(counts)] = { 0 };
	(void)state;
	for (int threads = 1; threads <= 3; threads++) {
		Side s;
		int core;
		Monitor w = { .check_sums = true, .leaf = 0 };
		side_open(&s, &target_cpu, text, (Way){ .isa = best_isa(), .threads = threads });
		d.count = 0;
		Cases c = cases_make(&d, s.net, CASES, true);
		side_take(&s, &c);
		target_cpu.guard->attach(s.program, &w);
		for (uint32_t k = 0; k < COUNT(counts); k++) {
			uint64_t order[CASES];
			for (uint64_t i = 0; i < CASES; i++)
				order[i] = CASES - 1 - i;
			Batch b = { .example = order, .count = counts[k] };
			side_learn(&s, b);
			for (uint32_t turn = 0; turn < 2; turn++)
				assert_true(target_cpu.guard->recompute(s.program, &b, 0, turn, &core) == w.leaf_checksum);
			assert_true(threads == 1 || w.leaf_checksum == word[k]);
			word[k] = w.leaf_checksum;
			side_update(&s, k + 1);
		}
		cases_free(&c);
		side_close(&s);
	}
}

/* ---- stopping ---- */

static void stopped_batch_leaves_nothing(void **state)
{
	(void)state;
	for (int threads = 1; threads <= 3; threads++)
		for (int pieces = 0; pieces < 2; pieces++) {
			Side s;
			Dice d = { 13, 0 };
			side_open(&s, &target_cpu, wide, (Way){ .isa = best_isa(), .threads = threads });
			Cases c = cases_make(&d, s.net, 6400, true);
			Batch b = { .count = 6400 };
			double *w = calloc(s.net->links, sizeof *w), *g = calloc(s.net->links, sizeof *g);
			Tally t = { 0 };
			side_take(&s, &c);
			s.target->get(s.program, 0, 0, ALL_LINKS, w);
			if (pieces)
				side_ok(&s, s.target->accumulate(s.program, &b, 0, 3, &s.stop, &t));
			s.stop = 1;
			assert_int_equal(s.target->accumulate(s.program, &b, pieces ? 3 : 0, 13, &s.stop, &t), MP_STOPPED);
			assert_int_equal(s.target->evaluate(s.program, 0, 6400, &s.stop, NULL, &t), MP_STOPPED);
			s.stop = 0;
			s.target->gradient(s.program, g);
			for (uint64_t i = 0; i < s.net->links; i++)
				assert_true(g[i] == 0);
			side_update(&s, 1);
			s.target->get(s.program, 0, 0, ALL_LINKS, g);
			same_vector(w, g, s.net->links);
			free(w);
			free(g);
			cases_free(&c);
			side_close(&s);
		}
}

static void *stop_soon(void *run)
{
	usleep(20000);
	mp_run_stop(run);
	return NULL;
}

/* Both halves of a run in ways of their own. */
static void set_way(mp_run *run, uint64_t seed)
{
	static const char *const input[] = { "auto", "dense", "index" };
	setenv("MICROPROP_ISA", isa_name((int)(seed % (uint64_t)(best_isa() + 1))), 1);
	need(run, mp_run_set(run, "threads", thread_counts[seed / 3 % 4]));
	need(run, mp_run_set(run, "input", input[seed / 2 % 3]));
}

static void whole_and_halves(const mp_net *net, const mp_data *data, const Course *c, uint64_t seed,
                             const char *updates)
{
	mp_run *whole = course_run(c, net), *first = course_run(c, net), *rest = run_of(net);
	pthread_t stopper;
	set_way(whole, seed);
	need(whole, mp_run_train(whole, data, NULL, NULL, NULL));
	set_way(first, seed + 5);
	if (updates)
		need(first, mp_run_set(first, "updates", updates));
	else
		assert_int_equal(pthread_create(&stopper, NULL, stop_soon, first), 0);
	mp_status s = mp_run_train(first, data, NULL, NULL, NULL);
	if (!updates)
		pthread_join(stopper, NULL);
	assert_true(s == MP_OK || (!updates && s == MP_STOPPED));
	need(first, mp_run_save(first, in_folder("half.safetensors")));
	need(rest, mp_run_resume(rest, in_folder("half.safetensors")));
	set_way(rest, seed + 10);
	need(rest, mp_run_set(rest, "updates", "0"));
	need(rest, mp_run_train(rest, data, NULL, NULL, NULL));
	for (int k = 0; k <= rules[whole->opt.rule].states; k++)
		same_part(whole, rest, k);
	assert_string_equal(mp_run_get_report(whole)->fingerprint, mp_run_get_report(rest)->fingerprint);
	assert_true(mp_run_get_report(whole)->total_error == mp_run_get_report(rest)->total_error);
	mp_run_close(whole);
	mp_run_close(first);
	mp_run_close(rest);
	unsetenv("MICROPROP_ISA");
}

/* Stopped between two updates of an epoch, by a limit and by another thread. */
static void resuming_gives_the_same_bits(void **state)
{
	(void)state;
	for (uint32_t rule = 0; rule < rule_count; rule++) {
		const Course c[] = {
			{ "letters.topo",
			  0.02,
			  { { "batch", "48" }, { "epochs", "2" }, { "rate", "0.001" }, { "rule", rules[rule].name } } },
			{ "letters.topo",
			  0.02,
			  { { "batch", "1" }, { "epochs", "1" }, { "rate", "0.001" }, { "rule", rules[rule].name } } },
			{ "reber.topo",
			  1,
			  { { "batch", "20" },
			    { "epochs", "2" },
			    { "rate", "0.001" },
			    { "rule", rules[rule].name },
			    { "bptt", "full" } } },
			{ "encoder-8-3-8.topo", 1, { { "epochs", "9" }, { "rule", rules[rule].name }, { "rate", "0.01" } } },
			{ noisy, 0.02, { { "batch", "48" }, { "epochs", "2" }, { "rule", rules[rule].name } } },
		};
		for (size_t i = 0; i < COUNT(c); i++) {
			mp_net *net = course_net(&c[i]);
			mp_data *data = course_data(&c[i], net);
			whole_and_halves(net, data, &c[i], rule + 7 * i, "7");
			if (rule < 2 && i != 1)
				whole_and_halves(net, data, &c[i], rule + i, NULL);
			mp_data_close(data);
			mp_net_close(net);
		}
	}
}

/* Weights and state are floats, and files have all of each. */
static void files_hold_floats(void **state)
{
	(void)state;
	static const Course c = { "letters.topo", 0.02, { { "epochs", "1" } } };
	mp_net *net = course_net(&c);
	mp_data *data = course_data(&c, net);
	mp_run *run = course_run(&c, net), *loaded = run_of(net);
	size_t len;
	need(run, mp_run_train(run, data, NULL, NULL, NULL));
	need(run, mp_run_save(run, in_folder("a")));
	need(loaded, mp_run_load(loaded, in_folder("a")));
	same_part(run, loaded, 0);
	char *bytes = file_bytes(in_folder("a"), &len);
	uint64_t header;
	memcpy(&header, bytes, sizeof header);
	assert_true(header < len - 8);
	bytes[8 + header] = 0;
	expect_words(bytes + 8, "\"dtype\":\"F32\"");
	assert_null(strstr(bytes + 8, "\"dtype\":\"F64\""));
	free(bytes);
	mp_run_close(run);
	mp_run_close(loaded);
	mp_data_close(data);
	mp_net_close(net);
}

/* One run in several calls, each with inputs in another form. */
static void forms_of_inputs_may_change(void **state)
{
	(void)state;
	static const char *const batches[] = { "1", "16", "all" }, *const forms[] = { "index", "dense", "auto", "dense",
		                                                                          "index" };
	for (size_t i = 0; i < COUNT(batches); i++) {
		const Course c = { "letters.topo", 0.02, { { "batch", batches[i] }, { "epochs", "5" }, { "rate", "0.001" } } };
		mp_net *net = course_net(&c);
		mp_data *data = course_data(&c, net);
		mp_run *whole = course_run(&c, net), *parts = course_run(&c, net);
		need(whole, mp_run_train(whole, data, NULL, NULL, NULL));
		for (size_t k = 0; k < COUNT(forms); k++) {
			char epochs[2] = { (char)('1' + k), 0 };
			need(parts, mp_run_set(parts, "input", forms[k]));
			need(parts, mp_run_set(parts, "epochs", epochs));
			need(parts, mp_run_train(parts, data, NULL, NULL, NULL));
		}
		same_part(whole, parts, 0);
		same_part(whole, parts, 1);
		mp_run_close(whole);
		mp_run_close(parts);
		mp_data_close(data);
		mp_net_close(net);
	}
}

/* ---- testing ---- */

/* Testing in between, on more cases than there are to learn and in another form, changes nothing. */
static void testing_in_between_changes_nothing(void **state)
{
	(void)state;
	static const char *const batches[] = { "all", "16", "1" };
	const Course few = { "letters.topo", 0.02, { { NULL, NULL } } },
				 more = { "letters.topo", 0.08, { { NULL, NULL } } };
	mp_net *net = course_net(&few);
	mp_data *data = course_data(&few, net), *test = course_data(&more, net);
	for (size_t i = 0; i < COUNT(batches); i++)
		for (size_t k = 0; k < COUNT(inputs); k++) {
			const Course c = {
				NULL,
				1,
				{ { "batch", batches[i] }, { "epochs", "2" }, { "rate", "0.001" }, { "threads", thread_counts[i] } }
			};
			mp_run *a = course_run(&c, net), *b = course_run(&c, net);
			mp_result first = { .size = sizeof first }, second = first;
			need(a, mp_run_set(a, "input", inputs[k]));
			need(a, mp_run_test(a, test, &first, NULL));
			need(a, mp_run_train(a, data, test, NULL, NULL));
			need(b, mp_run_train(b, data, NULL, NULL, NULL));
			same_part(a, b, 0);
			same_part(a, b, 1);
			need(a, mp_run_test(a, test, &first, NULL));
			need(b, mp_run_test(b, test, &second, NULL));
			assert_true(first.total_error == second.total_error && first.right == second.right &&
			            first.within == second.within);
			assert_true(mp_run_get_report(a)->test_total_error == first.total_error);
			mp_run_close(a);
			mp_run_close(b);
		}
	mp_data_close(data);
	mp_data_close(test);
	mp_net_close(net);
}

/* Nor does it if the lists of the test data have values, and those to learn from are all ones. */
static void testing_on_values_changes_nothing(void **state)
{
	(void)state;
	enum { CASES = 9 };
	static const char *const batches[] = { "1", "16" };
	const Course few = { "letters.topo", 0.02, { { NULL, NULL } } };
	mp_net *net = course_net(&few);
	mp_data *data = course_data(&few, net), *test;
	assert_true(data->data->x_indptr && !data->data->x_values);
	uint32_t n = data->data->inputs, targets = data->data->targets;
	float *x = calloc((size_t)CASES * n, sizeof *x), *y = calloc((size_t)CASES * targets, sizeof *y);
	for (size_t i = 0; i < (size_t)CASES * n; i++)
		x[i] = (float)random_unit(3, STREAM_DATA, i);
	assert_int_equal(mp_data_new(&test, CASES, n, targets, x, y, NULL, 0, NULL), MP_OK);
	for (size_t i = 0; i < COUNT(batches); i++) {
		const Course c = { NULL,
			               1,
			               { { "batch", batches[i] }, { "epochs", "3" }, { "rate", "0.001" }, { "input", "index" } } };
		mp_run *a = course_run(&c, net), *b = course_run(&c, net);
		need(a, mp_run_train(a, data, test, NULL, NULL));
		need(b, mp_run_train(b, data, NULL, NULL, NULL));
		same_part(a, b, 0);
		same_part(a, b, 1);
		mp_run_close(a);
		mp_run_close(b);
	}
	free(x);
	free(y);
	mp_data_close(data);
	mp_data_close(test);
	mp_net_close(net);
}

/* Outputs of cases without targets are those of the same cases with them. */
static void unlabelled_cases_have_outputs(void **state)
{
	(void)state;
	enum { CASES = 37 };
	float x[CASES * 20], y[CASES * 8];
	double with[CASES * 8], without[CASES * 8];
	mp_data *a, *b;
	mp_result result = { .size = sizeof result };
	mp_net *net = net_of(wide);
	mp_run *run = run_of(net);
	for (size_t i = 0; i < COUNT(x); i++)
		x[i] = (float)random_unit(1, STREAM_DATA, i);
	for (size_t i = 0; i < COUNT(y); i++)
		y[i] = (float)random_unit(2, STREAM_DATA, i);
	assert_int_equal(mp_data_new(&a, CASES, 20, 8, x, y, NULL, 0, NULL), MP_OK);
	assert_int_equal(mp_data_new(&b, CASES, 20, 0, x, NULL, NULL, 0, NULL), MP_OK);
	need(run, mp_run_set(run, "target", "cpu"));
	need(run, mp_run_test(run, b, NULL, without));
	need(run, mp_run_test(run, a, &result, with));
	assert_int_equal(result.cases, CASES);
	same_vector(with, without, COUNT(with));
	need(run, mp_run_test(run, a, NULL, without));
	same_vector(with, without, COUNT(with));
	mp_run_close(run);
	mp_data_close(a);
	mp_data_close(b);
	mp_net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples_on_generic),
		cmocka_unit_test(examples_on_neon),
		cmocka_unit_test(examples_on_avx2),
		cmocka_unit_test(examples_on_avx512),
		cmocka_unit_test(sums_run_in_canonical_order),
		cmocka_unit_test(leaves_join_as_the_tree_says),
		cmocka_unit_test(batches_come_in_pieces),
		cmocka_unit_test(sequences_of_one_case),
		cmocka_unit_test(next_case_is_known),
		cmocka_unit_test(leaves_come_to_one_word),
		cmocka_unit_test(stopped_batch_leaves_nothing),
		cmocka_unit_test(resuming_gives_the_same_bits),
		cmocka_unit_test(files_hold_floats),
		cmocka_unit_test(forms_of_inputs_may_change),
		cmocka_unit_test(testing_in_between_changes_nothing),
		cmocka_unit_test(testing_on_values_changes_nothing),
		cmocka_unit_test(unlabelled_cases_have_outputs),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
