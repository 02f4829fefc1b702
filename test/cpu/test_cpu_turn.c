/* SPDX-License-Identifier: MIT */
/* Training and test data by turns: random networks of which one keeps what it made of both and the other makes it
 * again every time. Weights, outputs and scores must be the same bits, also when the data behind a pointer has
 * become other data. */
#include "cpu_nets.h"

enum { SETS = 3, ROUNDS = 3, TRIALS = 240 };

typedef struct Trial {
	Draft t;
	Cases c[SETS]; /* to learn, to test on, and others */
	bool index[SETS];
	Side turns, fresh;
	Meter meter;   /* of `turns` */
	double *a, *b; /* room for weights or outputs */
	uint64_t room;
} Trial;

static const Data *set_of(const Trial *t, int which)
{
	return t->index[which] ? &t->c[which].index : &t->c[which].dense;
}

static void turn_body(Ctx *cx, void *arg)
{
	Binding *b = arg;
	b->s->target->rebind(cx, b->s->program, b->data);
	arena_free(&cx->scratch); /* as at the end of a public call: nothing in there may be kept */
}

static void bind_body(Ctx *cx, void *arg)
{
	side_bind(cx, arg);
	arena_free(&cx->scratch);
}

static void go_to(Trial *t, int which)
{
	Binding turns = { &t->turns, set_of(t, which) }, fresh = { &t->fresh, set_of(t, which) };
	side_ok(&t->turns, guarded(&t->turns.cx, turn_body, &turns));
	side_ok(&t->fresh, guarded(&t->fresh.cx, bind_body, &fresh));
}

static void bind_both(Trial *t, int which)
{
	Binding turns = { &t->turns, set_of(t, which) }, fresh = { &t->fresh, set_of(t, which) };
	side_ok(&t->turns, guarded(&t->turns.cx, bind_body, &turns));
	side_ok(&t->fresh, guarded(&t->fresh.cx, bind_body, &fresh));
}

static void same(const Trial *t, const char *what, uint64_t n)
{
	if (memcmp(t->a, t->b, n * sizeof *t->a) == 0)
		return;
	print_error("%s%s differ, %d threads, batch %d\n", t->t.text, what, t->turns.way.threads, (int)t->turns.way.batch);
	assert_true(false);
}

static void same_tally(Tally a, Tally b)
{
	assert_memory_equal(&a.error, &b.error, sizeof a.error);
	assert_true(a.cases == b.cases && a.scored == b.scored && a.right == b.right && a.within == b.within);
}

/* As the trainer goes through an epoch: in one go as far as the target can, then one by one. */
static Tally epoch(Side *s, const Data *d)
{
	uint64_t examples = run_examples(s->net, d),
			 batch = s->way.batch && (uint64_t)s->way.batch < examples ? (uint64_t)s->way.batch : examples;
	Tally t = { 0 };
	Until until;
	Update u;
	until_parse("never", &until);
	update_fill(&s->opt, 1, 0, 0, &u);
	uint64_t done = batch * s->target->run_updates(s->program, &(Updates){ .examples = examples,
	                                                                       .batch = batch,
	                                                                       .count = (examples + batch - 1) / batch,
	                                                                       .update = &u,
	                                                                       .same = true,
	                                                                       .until = &until,
	                                                                       .stop = &s->stop,
	                                                                       .tally = &t });
	for (uint64_t left; done < examples; done += batch) {
		left = examples - done;
		Tally some = side_learn(s, (Batch){ .first = done, .count = left < batch ? left : batch });
		tally_add(&t, &some);
		s->target->apply(s->program, &u);
	}
	return t;
}

static void learn(Trial *t, int which)
{
	Tally turns = epoch(&t->turns, set_of(t, which)), fresh = epoch(&t->fresh, set_of(t, which));
	same_tally(turns, fresh);
	for (int k = 0; k <= rules[t->turns.opt.rule].states; k++) {
		target_cpu.get(t->turns.program, k, 0, ALL_LINKS, t->a);
		target_cpu.get(t->fresh.program, k, 0, ALL_LINKS, t->b);
		same(t, "weights or state", t->turns.net->links);
	}
}

static Tally test(Side *s, const Data *d, double *out)
{
	Tally t = { 0 };
	side_ok(s, target_cpu.evaluate(s->program, 0, run_examples(s->net, d), &s->stop, out, &t));
	return t;
}

static void measure(Trial *t, int which)
{
	const Data *d = set_of(t, which);
	Tally turns = test(&t->turns, d, t->a), fresh = test(&t->fresh, d, t->b);
	same_tally(turns, fresh);
	same(t, "outputs", d->cases * t->turns.net->outputs);
}

/* After the first round nothing is made, so nothing is allocated. */
static void rounds(Trial *t, int data, int tests)
{
	long calls = 0;
	for (int i = 0; i < ROUNDS; i++) {
		learn(t, data);
		go_to(t, tests);
		measure(t, tests);
		go_to(t, data);
		if (i)
			assert_int_equal(t->meter.calls, calls);
		calls = t->meter.calls;
	}
}

/* Other cases behind the same addresses, some fewer where there are no sequences. */
static void change(Cases *c, const Net *net)
{
	for (uint64_t i = 0; i < c->dense.cases * net->inputs; i++)
		c->x[i] *= -0.5f;
	for (uint64_t i = 0; i < c->indptr[c->dense.cases]; i++)
		c->values[i] *= -0.5f;
	for (uint64_t i = 0; i < c->dense.cases * net->outputs; i++)
		c->y[i] = c->dense.codes ? c->y[i] : 1 - c->y[i];
	if (!c->dense.seq)
		c->dense.cases = c->index.cases = c->dense.cases / 2 + 1;
}

/* What most networks are: online they have a way of their own. */
static void layers(Draft *t, uint64_t seed)
{
	*t = (Draft){ .d = { seed, 0 } };
	say(t, "group a %u input\ngroup h %u\ngroup o %u output\n", 1 + roll(&t->d, 40), 1 + roll(&t->d, 30),
	    1 + roll(&t->d, 20));
	say(t, "connect a -> h\nconnect h -> o\nconnect true -> h, o\ntrain rate 0.01 momentum 0.9\n");
}

static void open_side(Side *s, Trial *t, Way way, Meter *meter)
{
	side_open(s, &target_cpu, t->t.text, way);
	if (meter)
		s->cx.alloc = (Alloc){ meter_resize, meter }; /* it, too, has its blocks from malloc */
}

static void open_trial(Trial *t, uint64_t seed)
{
	static const char *const inputs[] = { "auto", "index", "dense" };
	static const int64_t batches[] = { BATCH_ALL, 1, 7 };
	Dice *d = &t->t.d;
	if (seed % 3)
		draft(&t->t, seed, seed % 2 ? 6 : 24, seed % 2);
	else
		layers(&t->t, seed);
	say(&t->t, "train input %s precision %s\n", inputs[roll(d, COUNT(inputs))], one_in(d, 4) ? "bf16" : "fp32");
	Way way = { .isa = best_isa(), .threads = 1 + (int)roll(d, 3), .batch = batches[roll(d, COUNT(batches))] };
	open_side(&t->turns, t, way, &t->meter);
	open_side(&t->fresh, t, way, NULL);
	const Net *net = t->turns.net;
	t->room = net->links;
	uint64_t cases = 0;
	bool alike = one_in(d, 2); /* sets of one size are easily taken for one another */
	for (int i = 0; i < SETS; i++) {
		if (!alike || !i)
			cases = 1 + roll(d, one_in(d, 3) ? 700 : 60);
		t->c[i] = cases_make(d, net, cases, seed % 2);
		t->index[i] = one_in(d, 2);
		uint64_t outputs = t->c[i].dense.cases * net->outputs;
		t->room = outputs > t->room ? outputs : t->room;
	}
	t->a = calloc(t->room, sizeof *t->a);
	t->b = calloc(t->room, sizeof *t->b);
}

static void close_trial(Trial *t)
{
	for (int i = 0; i < SETS; i++)
		cases_free(&t->c[i]);
	side_close(&t->turns);
	side_close(&t->fresh);
	free(t->a);
	free(t->b);
}

static void turns_agree(void **state)
{
	const char *more = getenv("MICROPROP_NETWORKS");
	(void)state;
	for (uint64_t seed = 1; seed <= TRIALS + (more ? strtoull(more, NULL, 10) : 0); seed++) {
		Trial *t = calloc(1, sizeof *t);
		open_trial(t, seed);
		bind_both(t, 0);
		rounds(t, 0, 1);
		go_to(t, 2); /* a third comes between, so one of the two has to go */
		measure(t, 2);
		go_to(t, 0);
		rounds(t, 0, 1);
		change(&t->c[0], t->turns.net);
		change(&t->c[1], t->turns.net);
		bind_both(t, 1);
		measure(t, 1);
		bind_both(t, 0);
		rounds(t, 0, 1);
		close_trial(t);
		free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
