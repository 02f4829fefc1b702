/* SPDX-License-Identifier: MIT */
/* Networks near the limits of the GF11 (section 9): equal blocks share microcode by relocation, so that they fit; one
 * update agrees with the oracle; an exceeded limit is reported with its numbers. The machine is made small, so that the
 * network can be small too. */
#include "gf11_nets.h"

#include "gf11_sum.h"

enum { BLOCKS = 10, SIZE = 20, CASES = 5 };

/* Equal blocks between two wide layers, each block seen by one output. */
static void say_blocks(Draft *t)
{
	*t = (Draft){ .d = { 7, 0 } };
	say(t, "group in %d input\ngroup hid %d\ngroup out %d output\n", BLOCKS * SIZE, BLOCKS * SIZE, BLOCKS);
	for (int i = 0; i < BLOCKS; i++)
		say(t, "connect in[%d:%d] -> hid[%d:%d]\nconnect hid[%d:%d] -> out[%d]\n", i * SIZE, i * SIZE + SIZE - 1,
		    i * SIZE, i * SIZE + SIZE - 1, i * SIZE, i * SIZE + SIZE - 1, i);
	say(t, "connect true -> hid, out\ntrain rate 0.1 momentum 0.9\n");
}

typedef struct Large {
	const char *text;
	const Cases *c;
	BpOptions o;
	int64_t microcode, dram; /* 0: default */
	Bp *b;
	double *w; /* after one update */
} Large;

static void large_body(Ctx *cx, void *arg)
{
	Large *t = arg;
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "large.topo", .text = t->text, .len = strlen(t->text) };
	Net *net = net_parse(cx, src, DEFAULTS_1989);
	Plan *plan = plan_make(cx, net, &(Caps){ .target = "gf11", .lanes = 1 });
	Machine *m = machine_open(cx, "gf11");
	m->microcode = t->microcode ? t->microcode : m->microcode;
	m->dram = t->dram ? t->dram : m->dram;
	t->w = NEW(&cx->keep, net->links, double);
	net_weights(net, 1, 0, ALL_LINKS, t->w);
	t->b = bp_new(cx, plan, &net->options, m, &t->o, CASES);
	if (!t->b->summing)
		sum_compile(t->b);
	bp_weights_write(t->b, 0, t->w);
	bp_load_cases(t->b, &t->c->d, NULL, CASES);
	bp_accumulate(t->b);
	Update u;
	update_fill(&net->options, 1, 0, 0, &u);
	sum_update(t->b, &u);
	bp_weights_read(t->b, 0, 0, t->w);
}

/* Different routines among the bundles of the first level, on the way back; how many bundles. */
static uint32_t different(const Bp *b, uint32_t *bundles)
{
	uint32_t count = 0;
	*bundles = 0;
	for (uint32_t i = 0; i < b->bundles && b->bundle[i].level == 0; i++, ++*bundles) {
		bool seen = false;
		for (uint32_t k = 0; k < i; k++)
			seen |= b->bundle[k].backward == b->bundle[i].backward;
		count += !seen;
	}
	return count;
}

/* Builds and trains it; `says`: a part of the message it fails with, NULL if it must not. */
static void large(Ctx *cx, Large *t, const char *says)
{
	ctx_init(cx, NULL);
	Status status = guarded(cx, large_body, t);
	if (status != (says ? MP_BAD_INPUT : MP_OK) || (says && !strstr(ctx_messages(cx), says)))
		print_error("status %d: %s\n", status, ctx_messages(cx));
	assert_int_equal(status, says ? MP_BAD_INPUT : MP_OK);
	assert_true(!says || strstr(ctx_messages(cx), says));
}

static Cases blocks_open(Draft *d, Side *ref)
{
	Options opt;
	options_init(&opt, DEFAULTS_1989);
	say_blocks(d);
	side_open(ref, &target_ref, d->text, opt);
	return cases_make(&d->d, ref->net, CASES);
}

static void blocks_share_microcode(void **state)
{
	(void)state;
	Draft d;
	Side ref;
	Cases c = blocks_open(&d, &ref);
	side_take(&ref, &c.d);
	side_learn(&ref, (Batch){ .count = CASES });
	side_update(&ref, 1);
	double *w = calloc(ref.net->links, sizeof *w);
	ref.target->get(ref.program, 0, 0, ALL_LINKS, w);
	for (int compiler = 0; compiler < 2; compiler++) {
		Ctx cx[3];
		Large t = { .text = d.text,
			        .c = &c,
			        .o = {
						.procs = 2, .compiler = compiler, .sum = SUM_TREE, .sigmoid = SIGMOID_POWER2, .threads = 1 } };
		large(&cx[0], &t, NULL);
		for (uint64_t i = 0; i < ref.net->links; i++)
			assert_true(fabs(w[i] - t.w[i]) <= 1e-5);
		uint32_t bundles, routines = different(t.b, &bundles);
		assert_true(bundles >= BLOCKS && routines <= 4);
		Large least = t, less = t;
		least.microcode = t.b->c->lines; /* holds it to the line */
		large(&cx[1], &least, NULL);
		assert_memory_equal(t.w, least.w, ref.net->links * sizeof *w);
		less.microcode = t.b->c->lines / 2;
		large(&cx[2], &less, "lines of microcode, those of the update not counted; the controller of gf11 holds");
		for (int i = 0; i < 3; i++)
			ctx_free(&cx[i]);
	}
	free(w);
	cases_free(&c);
	ctx_free(&ref.cx);
}

/* DRAM that holds weights, changes and steps of the network and its cases to the word will do; less is refused. */
static void dram_limit_is_met_to_the_word(void **state)
{
	(void)state;
	Draft d;
	Side ref;
	Cases c = blocks_open(&d, &ref);
	for (int compiler = 0; compiler < 2; compiler++) {
		Ctx cx[3];
		Large t = { .text = d.text, .c = &c, .o = { .procs = 2, .compiler = compiler, .sum = SUM_TREE, .threads = 1 } };
		large(&cx[0], &t, NULL);
		Large least = t, less = t;
		least.dram = t.b->at.weights + 3 * (int64_t)t.b->at.words;
		large(&cx[1], &least, NULL);
		assert_memory_equal(t.w, least.w, ref.net->links * sizeof *t.w);
		less.dram = least.dram - 1;
		large(&cx[2], &less, "words of DRAM; gf11 has");
		for (int i = 0; i < 3; i++)
			ctx_free(&cx[i]);
	}
	cases_free(&c);
	ctx_free(&ref.cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_share_microcode),
		cmocka_unit_test(dram_limit_is_met_to_the_word),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
