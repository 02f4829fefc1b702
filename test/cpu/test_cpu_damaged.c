/* SPDX-License-Identifier: MIT */
/* Damaged copies of random networks, many at once: each has the bits of a test of its own, with zeros for the weights
 * out of units that are removed, or with the weights that are others. */
#include "cpu_nets.h"
#include "pass.h"

enum { NETWORKS = 7, TRIALS = 90 };

typedef struct Trial {
	Draft t;
	Cases c;
	Side s;
	uint8_t *removed; /* [NETWORKS][units] */
	uint64_t *link, links;
	double *weight, *w, *damaged, *out, *own;
	Tally *tally, *one;
	uint64_t cases;
	bool done;
} Trial;

/* Contexts of a removed unit are removed, too: those that hold it, and those that hold these. */
static void roll_removed(Trial *t, uint8_t *removed, bool contexts)
{
	const Net *net = t->s.net;
	uint32_t one_of = 2 + roll(&t->t.d, 4);
	for (uint32_t i = 0; i < net->groups; i++)
		for (uint32_t j = 0; j < net->group[i].size; j++)
			removed[net->group[i].first + j] = net->group[i].role != ROLE_INPUT &&
			                                   (contexts || net->group[i].role != ROLE_CONTEXT) &&
			                                   one_in(&t->t.d, one_of);
	for (uint32_t again = 0; again < net->copies; again++)
		for (uint32_t k = 0; k < net->copies; k++) {
			const Group *from = &net->group[net->copy[k].from_group], *to = &net->group[net->copy[k].to_group];
			for (uint32_t j = 0; j < to->size; j++)
				removed[to->first + j] |= removed[from->first + j];
		}
}

static bool outputs_removed(const Net *net, const uint8_t *removed)
{
	for (uint32_t i = 0; i < net->groups; i++)
		if (net->group[i].role == ROLE_OUTPUT && memchr(removed + net->group[i].first, 1, net->group[i].size))
			return true;
	return false;
}

static void outputs_silence(const Net *net, const uint8_t *removed, double *out)
{
	for (uint32_t i = 0; i < net->groups; i++)
		for (uint32_t j = 0; net->group[i].role == ROLE_OUTPUT && j < net->group[i].size; j++, out++)
			*out = removed[net->group[i].first + j] ? 0 : *out;
}

static void assert_same(const Trial *t, const char *what, double a, double b)
{
	if (a == b || (isnan(a) && isnan(b)))
		return;
	print_error("%s is %.17g, alone %.17g\n", what, a, b);
	print_error("%s\n", t->t.text);
	assert_true(false);
}

/* By one network after the other, with damaged weights. */
static void compare(Trial *t, uint32_t count, bool tallies)
{
	Side *s = &t->s;
	const Net *net = s->net;
	uint64_t examples = run_examples(net, &t->c.dense);
	for (uint32_t k = 0; k < count; k++) {
		const uint8_t *removed = t->removed + (size_t)k * net->units;
		Tally all = { 0 };
		memcpy(t->damaged, t->w, net->links * sizeof *t->w);
		for (uint64_t i = 0; i < t->links; i++)
			t->damaged[t->link[i]] = t->weight[i];
		for (Unit u = 1; u < net->units; u++)
			for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++)
				t->damaged[l] = removed[net_source(net, u, l)] ? 0 : t->damaged[l];
		s->target->set(s->program, 0, 0, ALL_LINKS, t->damaged);
		memset(t->one, 0, t->cases * sizeof *t->one);
		s->target->watch->cases(s->program, t->one);
		side_ok(s, s->target->evaluate(s->program, 0, examples, &s->stop, t->own, &all));
		for (uint64_t i = 0; i < t->cases; i++) {
			const Tally *a = &t->tally[k * t->cases + i], *b = &t->one[i];
			outputs_silence(net, removed, t->own + i * net->outputs);
			for (uint32_t j = 0; j < net->outputs; j++)
				assert_same(t, "output", t->out[(k * t->cases + i) * net->outputs + j], t->own[i * net->outputs + j]);
			if (!tallies || outputs_removed(net, removed))
				continue;
			assert_same(t, "error", a->error, b->error);
			assert_true(a->cases == b->cases && a->scored == b->scored && a->right == b->right &&
			            a->within == b->within && a->weight == b->weight);
		}
	}
	s->target->set(s->program, 0, 0, ALL_LINKS, t->w);
}

static void run_damaged(Ctx *cx, void *arg)
{
	Trial *t = arg;
	const Net *net = t->s.net;
	uint32_t count = t->links ? 1 : NETWORKS;
	Damages d = { count, t->removed, t->links, t->link, t->weight };
	memset(t->tally, 0, NETWORKS * t->cases * sizeof *t->tally);
	t->done = t->s.target->watch->damaged(cx, t->s.program, &d, NULL, t->out) &&
	          t->s.target->watch->damaged(cx, t->s.program, &d, t->tally, NULL);
	for (uint32_t k = 0; k < count; k++)
		for (uint64_t i = 0; i < t->cases; i++)
			outputs_silence(net, t->removed + (size_t)k * net->units, t->out + (k * t->cases + i) * net->outputs);
}

/* A settling network of full blocks: its ticks alternate between rows. Groups in any order, so that sums may begin with
 * what the tick before was. */
static void draft_full(Draft *t, uint64_t seed)
{
	static const char *const fns[] = { "sigmoid", "tanh", "softsign", "gaussian", "softmax" };
	static const char *const errors[] = { "squared", "cross-entropy" };
	*t = (Draft){ .d = { seed, 0 } };
	uint32_t groups = 3 + roll(&t->d, 3), input = roll(&t->d, groups), output = roll(&t->d, groups);
	output = output == input ? (output + 1) % groups : output;
	for (uint32_t g = 0; g < groups; g++) {
		say(t, "group g%u %u %s", g, 1 + roll(&t->d, 40),
		    g == input    ? "input"
		    : g == output ? "sigmoid output"
		                  : fns[roll(&t->d, COUNT(fns))]);
		if (g != input && one_in(&t->d, 3))
			say(t, " integrate input dt 0.5");
		say(t, g != input && one_in(&t->d, 2) ? " start 0.3\n" : "\n");
	}
	for (uint32_t from = 0; from < groups; from++)
		for (uint32_t to = 0; to < groups; to++)
			if (to != input && (from == input || to == output || one_in(&t->d, 2)))
				say(t, "connect g%u -> g%u\n", from, to);
	for (uint32_t to = 0; to < groups; to++)
		if (to != input && !one_in(&t->d, 3))
			say(t, "connect true -> g%u\n", to);
	say(t, "train ticks %u dt 0.7 error %s\n", 2 + roll(&t->d, 4), errors[roll(&t->d, 2)]);
}

static bool trial(uint64_t seed, uint32_t *rolled)
{
	static Trial t;
	bool settles = seed % 2;
	memset(&t, 0, sizeof t);
	bool plain = seed % 4 == 1;
	if (plain)
		draft_full(&t.t, seed);
	else
		draft_some(&t.t, seed, 24, false, settles);
	side_open(&t.s, &target_cpu, t.t.text,
	          (Way){ .isa = best_isa(), .threads = 1, .batch = 8, .index = seed % 5 == 0 });
	const Net *net = t.s.net;
	if (settles && (plain || !one_in(&t.t.d, 3))) /* only the last tick counts */
		t.s.opt.targets_from = t.s.opt.ticks * t.s.opt.intervals;
	t.cases = 1 + roll(&t.t.d, 60);
	t.c = cases_make(&t.t.d, net, t.cases, plain);
	if (plain) {
		t.c.dense.seq = t.c.index.seq = NULL;
		t.c.dense.ticks = t.c.index.ticks = NULL;
	}
	size_t outs = t.cases * net->outputs;
	t.removed = calloc(NETWORKS, net->units);
	t.link = calloc(net->links, sizeof *t.link);
	t.weight = calloc(net->links, sizeof *t.weight);
	t.w = calloc(net->links, sizeof *t.w);
	t.damaged = calloc(net->links, sizeof *t.w);
	t.out = calloc(NETWORKS * outs, sizeof *t.out);
	t.own = calloc(outs, sizeof *t.out);
	t.tally = calloc(NETWORKS * t.cases, sizeof *t.tally);
	t.one = calloc(t.cases, sizeof *t.one);
	side_take(&t.s, &t.c);
	t.s.target->get(t.s.program, 0, 0, ALL_LINKS, t.w);
	for (uint32_t k = 1; k < NETWORKS; k++)
		roll_removed(&t, t.removed + (size_t)k * net->units, seed % 3 == 0);
	side_ok(&t.s, guarded(&t.s.cx, run_damaged, &t));
	if (t.done)
		compare(&t, NETWORKS, true);
	for (uint64_t l = 0; l < net->links; l++)
		if (one_in(&t.t.d, 3)) {
			t.link[t.links] = l;
			t.weight[t.links++] = one_in(&t.t.d, 2) ? 0 : (double)(float)(t.w[l] * 1.25);
		}
	bool at_once = t.done;
	*rolled += at_once && can_roll(t.s.program, t.s.program->bound);
	if (t.links) {
		side_ok(&t.s, guarded(&t.s.cx, run_damaged, &t));
		assert_true(t.done);
		compare(&t, 1, true);
	}
	void *const all[] = { t.removed, t.link, t.weight, t.w, t.damaged, t.out, t.own, t.tally, t.one };
	for (size_t i = 0; i < COUNT(all); i++)
		free(all[i]);
	cases_free(&t.c);
	side_close(&t.s);
	return at_once;
}

static void copies_have_the_bits_of_networks(void **state)
{
	uint32_t refused = 0, rolled = 0;
	(void)state;
	for (uint64_t seed = 1; seed <= TRIALS; seed++)
		refused += !trial(seed, &rolled);
	assert_true(refused < TRIALS / 6); /* contexts alone */
	assert_true(rolled > TRIALS / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(copies_have_the_bits_of_networks) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
