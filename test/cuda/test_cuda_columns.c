/* SPDX-License-Identifier: MIT */
/* Kernels of target cuda that have columns of hidden units in each block (target/cuda/columns), emulated, against
 * target cpu to the last bit: several updates in a launch, on networks with one hidden layer and index lists. */
#include "cpu_nets.h"
#include "cuda.h"

extern const Target target_cuda;

enum { EPOCHS = 3, MOST_LIST = 7, CODES = 5 };

typedef struct Net2 {
	Dice d;
	char text[512], cluster[8], threads[8];
	uint32_t inputs, hidden, outputs;
	uint64_t cases, batch;
	bool shuffled, same, coded, gaps;
} Net2;

/* Sizes about multiples of 4 and 8; batches that leave a rest; rules and functions of all kinds that are covered. */
static void roll_net(Net2 *n, uint64_t seed)
{
	static const char *const hidden[] = { "sigmoid", "tanh", "sigmoid2", "elliott" }, *const outputs[] = { "sigmoid",
		                                                                                                   "tanh",
		                                                                                                   "linear" };
	static const char *const rule[] = { "momentum", "rprop", "adam", "quickprop", "nesterov" };
	static const uint32_t clusters[] = { 2, 3, 4, 4 }, threads[] = { 64, 128, 448 };

	*n = (Net2){ .d = { seed, 0 } };
	Dice *d = &n->d;
	uint32_t out = roll(d, COUNT(outputs)), biased = roll(d, 4);
	n->inputs = 2 + roll(d, 40);
	n->hidden = 1 + roll(d, 40);
	n->outputs = 1 + roll(d, 36);
	n->cases = 1 + roll(d, 150);
	n->batch = 1 + roll(d, (uint32_t)n->cases);
	n->shuffled = one_in(d, 2);
	n->same = one_in(d, 2);
	n->coded = one_in(d, 3);
	n->gaps = one_in(d, 3);
	snprintf(n->cluster, sizeof n->cluster, "%u", clusters[roll(d, COUNT(clusters))]);
	snprintf(n->threads, sizeof n->threads, "%u", threads[roll(d, COUNT(threads))]);
	if (one_in(d, 3)) { /* warps and rows enough for two parts, and for lists of many groups */
		n->cases = 130 + roll(d, 60);
		n->batch = one_in(d, 2) ? 33 + roll(d, 32) : 97 + roll(d, 32);
		snprintf(n->cluster, sizeof n->cluster, "4");
		snprintf(n->threads, sizeof n->threads, "512");
	}
	int len = snprintf(n->text, sizeof n->text,
	                   "group in %u input\ngroup hid %u %s\ngroup out %u %s output\n"
	                   "connect in -> hid%s\nconnect hid -> out\ntrain rule %s error %s rate 0.01 momentum 0.9 %s\n",
	                   n->inputs, n->hidden, hidden[roll(d, COUNT(hidden))], n->outputs, outputs[out],
	                   biased % 2 ? "" : " rate 0.5", /* else weights of a matrix have different ones */
	                   rule[roll(d, COUNT(rule))], !out && one_in(d, 2) ? "cross-entropy" : "squared",
	                   one_in(d, 3)   ? "decay 0.001"
	                   : one_in(d, 3) ? "prime-offset 0.1"
	                                  : "");
	if (biased)
		snprintf(n->text + len, sizeof n->text - (size_t)len, "connect true -> %s\n",
		         biased == 1   ? "hid"
		         : biased == 2 ? "out"
		                       : "hid, out");
}

/* Lists of a few inputs, some of which most cases have; empty ones too. */
static Cases roll_cases(Net2 *n, const Net *net)
{
	Cases c = cases_make(&n->d, net, n->cases, true);
	uint64_t at = 0;

	for (uint64_t i = 0; i < n->cases; i++) {
		uint32_t some = roll(&n->d, MOST_LIST + 1), k = roll(&n->d, 2);
		for (; some && k < n->inputs; k += 1 + roll(&n->d, 1 + n->inputs / MOST_LIST), some--)
			c.indices[at++] = k;
		c.indptr[i + 1] = at;
	}
	c.index.x_indptr = c.indptr;
	c.index.x_indices = c.indices;
	c.index.x_values = NULL;
	for (uint64_t i = 0; i < n->cases * n->outputs; i++)
		c.y[i] = n->coded ? (float)c.codes[i / n->outputs % CODES * n->outputs + i % n->outputs] : c.y[i];
	for (uint64_t i = 0; n->gaps && i < n->cases * n->outputs; i++)
		c.y[i] = one_in(&n->d, 6) ? NAN : c.y[i];
	c.index.codes = n->coded ? c.codes : NULL;
	c.index.code_count = n->coded ? CODES : 0;
	return c;
}

typedef struct Pair {
	Net2 n;
	Cases c;
	Side cpu, cuda;
	uint64_t count, each, *order;
	Update *u;
	Tally want[EPOCHS], have[EPOCHS];
	double *a, *b;
} Pair;

static void pair_open(Pair *p, uint64_t seed)
{
	*p = (Pair){ .count = 0 };
	roll_net(&p->n, seed);
	setenv("MICROPROP_CUDA_CLUSTER", p->n.cluster, 1);
	setenv("MICROPROP_CUDA_THREADS", p->n.threads, 1);
	side_open(&p->cpu, &target_cpu, p->n.text,
	          (Way){ .isa = best_isa(), .threads = 1, .batch = (int64_t)p->n.batch, .index = true });
	side_open(&p->cuda, &target_cuda, p->n.text,
	          (Way){ .isa = best_isa(), .threads = 1, .batch = (int64_t)p->n.batch, .index = true });
	p->c = roll_cases(&p->n, p->cpu.net);
	side_take(&p->cpu, &p->c);
	side_take(&p->cuda, &p->c);
	p->each = ceil_div(p->n.cases, p->n.batch);
	p->count = min_u64(EPOCHS * p->each, 12);
	p->u = calloc(p->count, sizeof *p->u);
	p->order = calloc(p->count * p->n.batch, sizeof *p->order);
	p->a = calloc(p->cpu.net->links, sizeof *p->a);
	p->b = calloc(p->cpu.net->links, sizeof *p->b);
	for (uint64_t k = 0; k < p->count; k++)
		update_fill(&p->cpu.opt, 1 + (p->n.same ? 0 : k), 0, 0, &p->u[k]);
}

static void pair_close(Pair *p)
{
	void *const all[] = { p->u, p->order, p->a, p->b };

	cases_free(&p->c);
	side_close(&p->cpu);
	side_close(&p->cuda);
	for (size_t i = 0; i < COUNT(all); i++)
		free(all[i]);
}

static void pair_show(const Pair *p)
{
	print_error("%s%llu cases in batches of %llu%s, cluster of %s, %s threads, %s\n%s\n", p->n.text,
	            (unsigned long long)p->n.cases, (unsigned long long)p->n.batch, p->n.shuffled ? ", shuffled" : "",
	            p->n.cluster, p->n.threads, getenv("MICROPROP_CUDA"), ctx_messages(&p->cuda.cx));
}

static void train_cpu(Pair *p)
{
	uint64_t at = 0;

	for (uint64_t k = 0; k < p->count; k++) {
		uint64_t first = k % p->each * p->n.batch, some = min_u64(p->n.batch, p->n.cases - first);
		for (uint64_t i = 0; i < some; i++)
			p->order[at + i] = ((first + i) * 7 + k / p->each) % p->n.cases;
		Tally t = side_learn(
			&p->cpu,
			(Batch){ .example = p->n.shuffled ? p->order + at : NULL, .first = first, .count = some, .update = k });
		tally_add(&p->want[k / p->each], &t);
		p->cpu.target->apply(p->cpu.program, &p->u[k]);
		at += some;
	}
}

static uint64_t run_cuda(Pair *p, const Until *until, bool few_counts)
{
	Updates all = { .examples = p->n.cases,
		            .batch = p->n.batch,
		            .count = p->count,
		            .example = p->n.shuffled ? p->order : NULL,
		            .update = p->u,
		            .same = p->n.same,
		            .until = until,
		            .stop = &p->cuda.stop,
		            .tally = p->have,
		            .epoch = 1000,
		            .few_counts = few_counts };

	return p->cuda.target->run_updates(p->cuda.program, &all);
}

/* Epochs whose counts were left out, in all networks. */
static uint64_t uncounted;

/* Counts of epochs that nobody reads may be missing: all but the last that ends. */
static void train_cuda(Pair *p)
{
	assert_int_equal(run_cuda(p, &(Until){ NAN, NAN, NAN }, p->n.same), p->count);
	for (uint64_t k = 0; p->n.same && (k + 2) * p->each <= p->count; k++) {
		Tally *t = &p->have[k];
		if (t->right || t->within)
			continue;
		t->right = p->want[k].right;
		t->within = p->want[k].within;
		uncounted += t->right || t->within;
	}
}

static bool same_results(Pair *p)
{
	bool same = true;

	for (int which = 0; which <= rules[p->cpu.opt.rule].states; which++) {
		p->cpu.target->get(p->cpu.program, which, 0, ALL_LINKS, p->a);
		p->cuda.target->get(p->cuda.program, which, 0, ALL_LINKS, p->b);
		same &= memcmp(p->a, p->b, p->cpu.net->links * sizeof *p->a) == 0;
	}
	for (uint64_t k = 0; k < EPOCHS; k++)
		same &= memcmp(&p->want[k], &p->have[k], sizeof p->want[k]) == 0;
	return same;
}

/* The shape that the kernel has: 0, or parts that rows are cut into. */
static uint32_t column_parts(const char *dump)
{
	char line[256] = "";
	FILE *f = fopen(dump, "r");

	assert_non_null(f);
	assert_non_null(fgets(line, sizeof line, f));
	fclose(f);
	if (getenv("MICROPROP_LOUD"))
		print_message("%s", line);
	return strncmp(line, "// columns", 10) != 0 ? 0 : strstr(line, " 2 parts") ? 2 : 1;
}

static const char dump[] = "cuda-columns.ptx";

static bool fails(Pair *p)
{
	static jmp_buf edge;

	p->cuda.cx.edge = &edge;
	if (setjmp(edge))
		return true;
	train_cuda(p);
	return false;
}

static void emulate(uint64_t seed)
{
	char how[32];

	snprintf(how, sizeof how, "emulate:%llu", (unsigned long long)seed);
	setenv("MICROPROP_CUDA", how, 1);
}

static void columns_agree(void **state)
{
	const char *more = getenv("MICROPROP_NETWORKS"), *from = getenv("MICROPROP_SEED");
	uint64_t first = from ? strtoull(from, NULL, 10) : 1, wanted = 24 + (more ? strtoull(more, NULL, 10) : 0),
			 used[3] = { 0 };
	static Pair p;

	(void)state;
	setenv("MICROPROP_CUDA_DUMP", dump, 1);
	for (uint64_t seed = first; seed < first + wanted; seed++) {
		emulate(seed);
		pair_open(&p, seed);
		train_cpu(&p);
		bool failed = fails(&p), same = !failed && same_results(&p);
		if (!same)
			pair_show(&p);
		assert_true(same);
		used[column_parts(dump)]++;
		pair_close(&p);
	}
	unsetenv("MICROPROP_CUDA_DUMP");
	remove(dump);
	assert_true(uncounted > 3 || from);
	assert_true(used[0] * 2 <= wanted && used[1] > 3 &&
	            used[2] > 3); /* others have a team of one block, or words that are measured one by one */
}

/* The epoch whose error is wanted is the first: of updates that are known to target cpu, all but that one are left. */
static bool stops(Pair *p, uint64_t *broken)
{
	static jmp_buf edge;
	uint64_t count = p->count;

	p->count = min_u64(p->each, count);
	train_cpu(p);
	p->cuda.cx.edge = &edge;
	if (p->count == count || !p->n.same || p->n.shuffled) /* the order is known of these updates only */
		return false;
	if (setjmp(edge)) {
		pair_show(p);
		assert_true(false);
	}
	p->count = count;
	assert_int_equal(run_cuda(p, &(Until){ p->want[0].error / p->want[0].weight * 1.0001, 2, 2 }, false), p->each);
	assert_true(same_results(p));
	for (uint64_t i = 0; i < p->cuda.net->links; i++)
		p->a[i] = 3e38;
	p->cuda.target->set(p->cuda.program, 0, 0, ALL_LINKS, p->a);
	*broken += run_cuda(p, &(Until){ NAN, NAN, NAN }, false) == 1;
	return true;
}

/* A job ends with the epoch that reaches what is wanted, and with the update whose error is no number. */
static void jobs_stop(void **state)
{
	static Pair p;
	uint64_t ended = 0, broken = 0;

	(void)state;
	for (uint64_t seed = 1; seed < 60; seed++) {
		emulate(seed);
		pair_open(&p, seed);
		ended += stops(&p, &broken);
		pair_close(&p);
	}
	assert_true(ended > 4 && broken > 0); /* sigmoids of outputs stay finite */
}

/* A barrier between threads of a block that is left out shows. */
static void mutants_are_caught(void **state)
{
	static const char *const barriers[] = { "1:bar.sync 1,", "1:bar.sync 2,", "1:bar.sync 4," };
	static Pair p;

	(void)state;
	for (size_t i = 0; i < COUNT(barriers); i++) {
		bool caught = false;
		setenv("MICROPROP_CUDA_DROP", barriers[i], 1);
		for (uint64_t seed = 1; seed < 12 && !caught; seed += 2) {
			emulate(seed);
			pair_open(&p, seed);
			train_cpu(&p);
			caught = fails(&p);
			pair_close(&p);
		}
		unsetenv("MICROPROP_CUDA_DROP");
		if (!caught)
			print_error("without %s\n", barriers[i]);
		assert_true(caught);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_agree),
		cmocka_unit_test(jobs_stop),
		cmocka_unit_test(mutants_are_caught),
	};
	cmocka_set_test_filter(getenv("MICROPROP_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
