/* SPDX-License-Identifier: MIT */
/* Target cuda, emulated, against target cpu: random networks with a bit of everything, to the last bit. The order in
 * which threads of the device run is another in every network. */
#include "cpu_nets.h"
#include "cuda.h"

extern const Target target_cuda;

enum { EPOCHS = 3 };

typedef struct Trial {
	Draft t;
	Cases c;
	Side cpu, cuda;
	uint64_t links, examples, cases, *order;
	double *a, *b;
} Trial;

static void show(const Trial *t)
{
	print_error("%s%llu cases, %llu examples%s, order %s\n", t->t.text, (unsigned long long)t->cases,
	            (unsigned long long)t->examples, t->cuda.way.index ? ", index lists" : "", getenv("MICROPROP_CUDA"));
}

static void same_numbers(const Trial *t, const char *what, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (memcmp(&t->a[i], &t->b[i], sizeof *t->a) != 0) {
			show(t);
			print_error("%s %llu is %.9g, on target cpu %.9g\n", what, (unsigned long long)i, t->b[i], t->a[i]);
			assert_true(false);
		}
}

static void same_tally(const Trial *t, const char *what, Tally a, Tally b)
{
	if (memcmp(&a.error, &b.error, sizeof a.error) == 0 && a.cases == b.cases && a.scored == b.scored &&
	    a.right == b.right && a.within == b.within && a.weight == b.weight)
		return;
	show(t);
	print_error("%s: error %.17g of %llu, %llu right, %llu within; on target cpu %.17g of %llu, %llu, %llu\n", what,
	            b.error, (unsigned long long)b.scored, (unsigned long long)b.right, (unsigned long long)b.within,
	            a.error, (unsigned long long)a.scored, (unsigned long long)a.right, (unsigned long long)a.within);
	assert_true(false);
}

static Tally side_test(Side *s, uint64_t count, double *out)
{
	Tally t = { 0 };
	side_ok(s, s->target->evaluate(s->program, 0, count, &s->stop, out, &t));
	return t;
}

static void same_outputs(Trial *t)
{
	Tally want = side_test(&t->cpu, t->examples, t->a);
	same_tally(t, "outputs", want, side_test(&t->cuda, t->examples, t->b));
	same_numbers(t, "output", t->cases * t->cpu.net->outputs);
}

static void same_weights(Trial *t)
{
	for (int which = 0; which <= rules[t->cpu.opt.rule].states; which++) {
		t->cpu.target->get(t->cpu.program, which, 0, ALL_LINKS, t->a);
		t->cuda.target->get(t->cuda.program, which, 0, ALL_LINKS, t->b);
		same_numbers(t, which ? "state" : "weight", t->links);
	}
}

static void take_gradient(const Side *s, double *g)
{
	s->target->gradient(s->program, g);
	for (uint64_t i = 0; i < s->net->links; i++)
		if (net_block(s->net, net_target(s->net, i), i)->frozen)
			g[i] = 0;
}

/* One update by accumulate and apply. */
static void same_update(Trial *t, Batch b, uint64_t number)
{
	b.update = number - 1;
	Tally want = side_learn(&t->cpu, b);
	same_tally(t, "a batch", want, side_learn(&t->cuda, b));
	take_gradient(&t->cpu, t->a);
	take_gradient(&t->cuda, t->b);
	same_numbers(t, "gradient", t->links);
	side_update(&t->cpu, number);
	side_update(&t->cuda, number);
	same_weights(t);
}

/* Epochs whose counts were left out, in all networks. */
static uint64_t uncounted;

/* Counts of an epoch that nobody reads may be missing, nothing else. */
static void same_epoch(const Trial *t, Tally want, Tally have, bool counted)
{
	if (!counted && !have.right && !have.within) {
		uncounted += want.right || want.within;
		want.right = want.within = 0;
	}
	same_tally(t, "an epoch", want, have);
}

/* Several in one launch, of some examples each; shuffled: in another order; same: with the same numbers, and few
 * counts. */
static void same_updates(Trial *t, uint64_t number, uint64_t batch, bool shuffled, bool same)
{
	enum { BEFORE = 1000 }; /* epochs: counts of none of the next few are needed */
	uint64_t each = (t->examples + batch - 1) / batch, count = EPOCHS * each < 20 ? EPOCHS * each : 20, at = 0,
			 done = 0;
	Update *u = calloc(count, sizeof *u);
	uint64_t *order = calloc(count * batch, sizeof *order);
	Tally want[EPOCHS] = { { 0 } }, have[EPOCHS] = { { 0 } };

	for (uint64_t k = 0; k < count; k++)
		update_fill(&t->cpu.opt, number + (same ? 0 : k), 0, 0, &u[k]);
	for (uint64_t k = 0; k < count; k++) {
		uint64_t first = k % each * batch, n = t->examples - first < batch ? t->examples - first : batch;
		for (uint64_t i = 0; i < n; i++)
			order[at + i] = t->order[first + i];
		Tally some = side_learn(
			&t->cpu,
			(Batch){ .example = shuffled ? order + at : NULL, .first = first, .count = n, .update = number - 1 + k });
		tally_add(&want[k / each], &some);
		t->cpu.target->apply(t->cpu.program, &u[k]);
		at += n;
	}
	Updates all = { .examples = t->examples,
		            .batch = batch,
		            .count = count,
		            .before = number - 1,
		            .example = shuffled ? order : NULL,
		            .update = u,
		            .same = same,
		            .until = &(Until){ NAN, NAN, NAN },
		            .stop = &t->cuda.stop,
		            .tally = have,
		            .epoch = BEFORE,
		            .few_counts = same };
	if (stream_fits((const Cuda *)t->cuda.program, batch)) {
		done = t->cuda.target->run_updates(t->cuda.program, &all);
		assert_int_equal(done, count);
	} else { /* a batch at a time, as the trainer then does */
		assert_int_equal(t->cuda.target->run_updates(t->cuda.program, &all), 0);
		for (uint64_t k = 0, from = 0; k < count; k++) {
			uint64_t first = k % each * batch, n = t->examples - first < batch ? t->examples - first : batch;
			Tally some = side_learn(&t->cuda, (Batch){ .example = shuffled ? order + from : NULL,
			                                           .first = first,
			                                           .count = n,
			                                           .update = number - 1 + k });
			tally_add(&have[k / each], &some);
			t->cuda.target->apply(t->cuda.program, &u[k]);
			from += n;
		}
	}
	assert_false(epoch_counted(BEFORE + 1) || epoch_counted(BEFORE + EPOCHS));
	for (uint64_t k = 0; k * each < count; k++)
		same_epoch(t, want[k], have[k], !same || (k + 2) * each > count);
	same_weights(t);
	free(u);
	free(order);
}

/* A kernel that is there is not compiled again, and the time that it took stays what it was. */
static void compiled_once(Trial *t)
{
	double once = target_cuda.time->compile(t->cuda.program);

	assert_true(once > 0);
	side_test(&t->cuda, t->examples, NULL);
	assert_true(target_cuda.time->compile(t->cuda.program) == once);
}

/* Linear units that remember may learn to grow without bounds, and numbers that are none end a job. */
static bool is_tame(Trial *t) { return side_test(&t->cpu, t->examples, NULL).error < 1e4 * (double)t->cases; }

/* Each goes on from what the other has, as if from its checkpoint. */
static void swap_sides(Trial *t)
{
	for (int which = 0; which <= rules[t->cpu.opt.rule].states; which++) {
		t->cpu.target->get(t->cpu.program, which, 0, ALL_LINKS, t->a);
		t->cuda.target->get(t->cuda.program, which, 0, ALL_LINKS, t->b);
		t->cpu.target->set(t->cpu.program, which, 0, ALL_LINKS, t->b);
		t->cuda.target->set(t->cuda.program, which, 0, ALL_LINKS, t->a);
	}
}

static void open_trial(Trial *t, uint64_t seed, uint32_t most, Draft kind)
{
	*t = (Trial){ .cases = 0 };
	draft_like(&t->t, seed, most, kind);
	bool index = one_in(&t->t.d, 2);
	side_open(&t->cpu, &target_cpu, t->t.text, (Way){ .isa = best_isa(), .threads = 1, .batch = BATCH_ALL });
	side_open(&t->cuda, &target_cuda, t->t.text,
	          (Way){ .isa = best_isa(), .threads = 1, .batch = one_in(&t->t.d, 3) ? 1 : BATCH_ALL, .index = index });
	t->links = t->cpu.net->links;
	t->cases = t->links < 120 && !t->cpu.net->copies ? 1 + roll(&t->t.d, 1400) : 1 + roll(&t->t.d, 40);
	t->c = cases_make(&t->t.d, t->cpu.net, t->cases, false);
	t->examples = run_examples(t->cpu.net, &t->c.dense);
	t->order = calloc(t->examples, sizeof *t->order);
	for (uint64_t i = 0; i < t->examples; i++)
		t->order[i] = (i * 7 + 3) % t->examples;
	uint64_t most_numbers = t->links > t->cases * t->cpu.net->outputs ? t->links : t->cases * t->cpu.net->outputs;
	t->a = calloc(most_numbers + 1, sizeof *t->a);
	t->b = calloc(most_numbers + 1, sizeof *t->b);
	side_take(&t->cpu, &t->c);
	side_take(&t->cuda, &t->c);
	if (one_in(&t->t.d, 3)) { /* streamed, a leaf at a time */
		uint64_t longest = ((const Cuda *)t->cuda.program)->bound->longest;
		uint64_t leaf = t->examples < LEAF_EXAMPLES ? t->examples : LEAF_EXAMPLES;
		char cases[32];
		snprintf(cases, sizeof cases, "%llu", (unsigned long long)(leaf * longest));
		setenv("MICROPROP_CUDA_SLOT", cases, 1);
		side_take(&t->cuda, &t->c);
		unsetenv("MICROPROP_CUDA_SLOT");
	}
}

static void close_trial(Trial *t)
{
	cases_free(&t->c);
	side_close(&t->cpu);
	side_close(&t->cuda);
	free(t->order);
	free(t->a);
	free(t->b);
}

static void show_failure(const Trial *t)
{
	show(t);
	for (size_t i = 0; i < t->cuda.cx.message_count; i++) {
		const mp_error *e = ctx_error(&t->cuda.cx, i);
		print_error("line %llu: %s\n", (unsigned long long)e->line, e->text);
	}
	assert_true(false);
}

static void agree(uint64_t seed, uint32_t most, Draft kind)
{
	static Trial t;
	static jmp_buf edge;
	char how[32];

	snprintf(how, sizeof how, "emulate:%llu", (unsigned long long)seed);
	if (!getenv("MICROPROP_TEST_GPU")) {
		setenv("MICROPROP_CUDA", how, 1);
		if (seed % 8 == 1) /* several warps score rows */
			setenv("MICROPROP_CUDA_THREADS", seed % 16 == 1 ? "256" : "512", 1);
		else
			unsetenv("MICROPROP_CUDA_THREADS");
	}
	open_trial(&t, seed, most, kind);
	t.cuda.cx.edge = &edge;
	if (setjmp(edge))
		show_failure(&t);
	same_outputs(&t);
	same_update(&t, (Batch){ .count = t.examples }, 1);
	same_update(&t, (Batch){ .example = t.order, .count = 1 + t.examples / 2 }, 2);
	same_outputs(&t);
	compiled_once(&t);
	for (int i = 0; i < 5 && is_tame(&t); i++) {
		const uint64_t batch[] = { t.examples, 1, 1 + t.examples / 3, 1 + t.examples / 2, 1 + t.examples / 2 };
		if (one_in(&t.t.d, 3))
			swap_sides(&t);
		same_updates(&t, 3, batch[i], i == 1 || i == 2, i >= 3);
	}
	close_trial(&t);
}

/* MICROPROP_SEED=N: from network N on, as `make check` does. MICROPROP_NETWORKS=N: N more. MICROPROP_SHARE=K/N: every
 * N-th of them, from the K-th on. MICROPROP_TEST_GPU=1: on a GPU, as MICROPROP_CUDA says. MICROPROP_TEST=NAME: only
 * this test. */
static void agree_all(Draft kind, uint64_t wanted)
{
	static const uint32_t sizes[] = { 6, 20, 6, 40, 3 };
	const char *more = getenv("MICROPROP_NETWORKS"), *first = getenv("MICROPROP_SEED"),
			   *share = getenv("MICROPROP_SHARE");
	uint64_t start = first ? strtoull(first, NULL, 10) : 1;
	unsigned part = 0, parts = 1;
	assert_true(!share || (sscanf(share, "%u/%u", &part, &parts) == 2 && part < parts));
	for (uint64_t seed = start + part; seed < start + wanted + (more ? strtoull(more, NULL, 10) : 0); seed += parts) {
		if (getenv("MICROPROP_LOUD"))
			print_message("network %llu\n", (unsigned long long)seed);
		agree(seed, sizes[seed % COUNT(sizes)], kind);
	}
}

static void random_networks_agree(void **state)
{
	(void)state;
	agree_all((Draft){ .plain = false }, 18);
	assert_true(uncounted > 0 || getenv("MICROPROP_SEED"));
}

/* ---- mutants ---- */

/* Barriers of the kernels of a network, at most. */
static uint32_t barriers_of(const char *dump)
{
	char line[256];
	uint32_t n = 0;
	FILE *f = fopen(dump, "r");

	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		n += strcmp(line, "\tbar.sync 0;\n") == 0;
	fclose(f);
	return n;
}

/* An update of all examples, twice: does the kernel fail? It must, or its results are those of target cpu. */
static bool is_caught(uint64_t seed, uint32_t most, Draft kind)
{
	static Trial t;
	static jmp_buf edge;
	volatile bool caught = false;

	open_trial(&t, seed, most, kind);
	t.cuda.cx.edge = &edge;
	if (setjmp(edge))
		caught = true;
	else
		same_updates(&t, 3, t.examples, false, false);
	close_trial(&t);
	return caught;
}

/* Every barrier of two kernels is left out, one at a time: one has rows in shared memory, one in global. */
static void mutants_are_caught(void **state)
{
	static const struct {
		uint64_t seed;
		uint32_t most,
			share; /* percent that are caught: others are redundant, where a thread has the same row in two steps */
	} kernels[] = { { 4, 6, 20 }, { 3, 6, 30 } };
	char dump[] = "cuda-mutant.ptx", number[16];

	(void)state;
	setenv("MICROPROP_CUDA_TIME", "1", 1); /* some barriers are for the clock alone */
	for (size_t i = 0; i < COUNT(kernels); i++) {
		uint32_t caught = 0, all;
		setenv("MICROPROP_CUDA", "emulate:1", 1);
		unsetenv("MICROPROP_CUDA_THREADS");
		setenv("MICROPROP_CUDA_DUMP", dump, 1);
		assert_false(is_caught(kernels[i].seed, kernels[i].most, (Draft){ .plain = false }));
		unsetenv("MICROPROP_CUDA_DUMP");
		all = barriers_of(dump);
		for (uint32_t k = 1; k <= all; k++) {
			snprintf(number, sizeof number, "%u", k);
			setenv("MICROPROP_CUDA_DROP", number, 1);
			bool is = is_caught(kernels[i].seed, kernels[i].most, (Draft){ .plain = false });
			caught += is;
			if (getenv("MICROPROP_LOUD"))
				print_message("kernel %zu without barrier %u of %u: %s\n", i, k, all, is ? "caught" : "the same bits");
		}
		unsetenv("MICROPROP_CUDA_DROP");
		assert_true(caught * 100 >= all * kernels[i].share);
	}
	unsetenv("MICROPROP_CUDA_TIME");
	remove(dump);
}

/* Also where the data states the ticks of each case. */
static void settling_networks_agree(void **state)
{
	(void)state;
	agree_all((Draft){ .settles = true }, 12);
	agree(504, 3, (Draft){ .settles = true }); /* streamed: a slot has one example again and again */
}

/* Noise, settings of groups and blocks, ties, all unit functions. */
static void shaped_networks_agree(void **state)
{
	(void)state;
	agree_all((Draft){ .shaped = true, .all = true }, 14);
	agree_all((Draft){ .shaped = true, .all = true, .settles = true }, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_networks_agree),
		cmocka_unit_test(settling_networks_agree),
		cmocka_unit_test(shaped_networks_agree),
		cmocka_unit_test(mutants_are_caught),
	};
	cmocka_set_test_filter(getenv("MICROPROP_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
