/* SPDX-License-Identifier: MIT */
/* bf16 on target cuda, emulated: gradients of random networks against double precision with the same operands rounded;
 * the same bits for any blocks, threads and order of them, and by either way to make an update. */
#include "cpu_nets.h"

extern const Target target_cuda;

enum { NETWORKS = 12, UPDATES = 4 };

typedef struct Trial {
	char text[2048];
	Dice d;
	Side s;
	Cases c;
	uint64_t cases, links;
	bool wide;      /* layers of so many weights that they are cut into tiles, if shared memory has no room for them */
	bool bits;      /* inputs are 0 or 1, */
	bool rough;     /* but one of the last case */
	bool roles;     /* one layer of hidden units, targets are 0 or 1: warps of a block have different work */
	uint64_t least; /* cases */
	double *w, *gradient, *after; /* [links] */
	Tally tally[UPDATES];
	jmp_buf *edge; /* NULL, or where a job that fails ends */
} Trial;

/* ---- networks ---- */

static uint32_t size_of(const Trial *t, Dice *d)
{
	if (t->wide)
		return 130 + roll(d, 40);
	return one_in(d, 3) ? 16 * (1 + roll(d, 3)) : 1 + roll(d, 45);
}

static void draft_layers(Trial *t)
{
	static const char *const fns[] = { "", " tanh", " relu", "" };
	static const char *const rules_known[] = { "momentum", "adam", "rprop", "doug", "quickprop" };
	Dice *d = &t->d;
	uint32_t hidden = 1 + (t->roles ? 0 : roll(d, 2)), groups = t->wide || t->roles ? 1 : 1 + roll(d, 2), n = 0;
	bool cross = one_in(d, 2);
	char *p = t->text, *end = p + sizeof t->text;

	p += snprintf(p, (size_t)(end - p), "defaults 1989\n");
	for (uint32_t i = 0; i < groups; i++)
		p += snprintf(p, (size_t)(end - p), "group in%u %u input\n", i, size_of(t, d));
	for (uint32_t i = 0; i < hidden; i++)
		p += snprintf(p, (size_t)(end - p), "group h%u %u%s\n", i, t->roles ? 2 * (1 + roll(d, 32)) : size_of(t, d),
		              fns[t->roles ? 0 : roll(d, COUNT(fns))]);
	p += snprintf(p, (size_t)(end - p), "group out %u output\n", t->roles ? 2 * (1 + roll(d, 16)) : 1 + roll(d, 30));
	for (uint32_t i = 0; i < groups; i++)
		p += snprintf(p, (size_t)(end - p), "connect in%u -> h0\n", i);
	for (n = 1; n < hidden; n++)
		p += snprintf(p, (size_t)(end - p), "connect h%u -> h%u\n", n - 1, n);
	p += snprintf(p, (size_t)(end - p), "connect h%u -> out\n%s", hidden - 1,
	              !t->wide && !t->roles && one_in(d, 3) ? "connect in0 -> out\n" : "");
	p += snprintf(p, (size_t)(end - p), "connect true -> out%s\n", !t->roles && one_in(d, 4) ? "" : ", h0");
	snprintf(p, (size_t)(end - p), "train precision bf16 rate 0.01 momentum 0.5 rule %s error %s\n",
	         rules_known[roll(d, COUNT(rules_known))], cross ? "cross-entropy" : "squared");
}

/* ---- double precision with operands rounded ---- */

static double rounded(double x)
{
	float f = (float)x;
	uint32_t b;

	memcpy(&b, &f, sizeof b);
	b = (b + 0x7fff + (b >> 16 & 1)) & 0xffff0000u;
	memcpy(&f, &b, sizeof f);
	return (double)f;
}

typedef struct Exact {
	double *act, *net, *delta; /* [units] */
	double *g, *size, *most;   /* [links] gradient, sum of the terms' sizes, largest term */
} Exact;

static void exact_forward(const Trial *t, const Exact *e, uint64_t i)
{
	const Net *net = t->s.net;
	uint32_t input = 0;

	e->act[0] = 1;
	for (Unit u = 1; u < net->units; u++) {
		const Group *g = net_group(net, u);
		if (g->role == ROLE_INPUT) {
			e->act[u] = (double)t->c.x[i * net->inputs + input++];
			continue;
		}
		e->net[u] = 0;
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
			Unit from = net_source(net, u, l);
			e->net[u] += from ? rounded(t->w[l]) * rounded(e->act[from]) : t->w[l];
		}
		e->act[u] = unit_fns[g->fn].value(e->net[u]);
	}
}

static double output_delta(const Trial *t, const Exact *e, uint64_t i, Unit u, uint32_t k)
{
	const Group *g = net_group(t->s.net, u);
	double error = e->act[u] - (double)t->c.y[i * t->s.net->outputs + k];

	if (t->s.opt.error == ERR_CROSS_ENTROPY)
		return error;
	return error * (unit_fns[g->fn].slope(e->net[u], e->act[u]) + t->s.opt.prime_offset);
}

static void exact_backward(const Trial *t, const Exact *e, uint64_t i)
{
	const Net *net = t->s.net;
	uint32_t output = net->outputs;

	memset(e->delta, 0, net->units * sizeof *e->delta);
	for (Unit u = net->units; u-- > 1;) {
		const Group *g = net_group(net, u);
		if (g->role == ROLE_INPUT)
			continue;
		if (g->role == ROLE_OUTPUT)
			e->delta[u] = output_delta(t, e, i, u, --output);
		else
			e->delta[u] *= unit_fns[g->fn].slope(e->net[u], e->act[u]) + t->s.opt.prime_offset;
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
			Unit from = net_source(net, u, l);
			double term = rounded(e->delta[u]) * rounded(e->act[from]);
			e->delta[from] += rounded(t->w[l]) * rounded(e->delta[u]);
			e->g[l] += term;
			e->size[l] += fabs(term);
			e->most[l] = fabs(term) > e->most[l] ? fabs(term) : e->most[l];
		}
	}
}

/* Where an activation lies next to the middle of two bf16 numbers, float and double may round to different ones: that
 * changes the terms of a case by 2^-8 of themselves. All else is rounding of sums. */
static void gradient_is_near(Trial *t)
{
	const Net *net = t->s.net;
	Exact e = { .act = calloc(net->units, sizeof(double)),
		        .net = calloc(net->units, sizeof(double)),
		        .delta = calloc(net->units, sizeof(double)),
		        .g = calloc(t->links, sizeof(double)),
		        .size = calloc(t->links, sizeof(double)),
		        .most = calloc(t->links, sizeof(double)) };
	uint64_t far = 0;

	for (uint64_t i = 0; i < t->cases; i++) {
		exact_forward(t, &e, i);
		exact_backward(t, &e, i);
	}
	for (uint64_t l = 0; l < t->links; l++) {
		double off = fabs(t->gradient[l] - e.g[l]), near = 2e-5 * e.size[l] + 1e-12;
		far += off > near;
		if (off > near + 0x1p-6 * e.most[l]) {
			print_error("%sgradient %llu of %llu cases is %.9g, in double precision %.9g\n", t->text,
			            (unsigned long long)l, (unsigned long long)t->cases, t->gradient[l], e.g[l]);
			assert_true(false);
		}
	}
	if (far * 4 > t->links)
		print_error("%s%llu of %llu gradients are far\n", t->text, (unsigned long long)far,
		            (unsigned long long)t->links);
	assert_true(far * 4 <= t->links);
	void *const all[] = { e.act, e.net, e.delta, e.g, e.size, e.most };
	for (size_t i = 0; i < COUNT(all); i++)
		free(all[i]);
}

/* ---- trials ---- */

static void trial_open(Trial *t, uint64_t seed, const char *how, const char *threads, const char *blocks, bool index)
{
	*t = (Trial){
		.d = { seed }, .wide = t->wide, .bits = t->bits, .rough = t->rough, .roles = t->roles, .least = t->least
	};
	draft_layers(t);
	setenv("MICROPROP_CUDA", how, 1);
	setenv("MICROPROP_CUDA_THREADS", threads, 1);
	setenv("MICROPROP_CUDA_BLOCKS", blocks, 1);
	side_open(&t->s, &target_cuda, t->text,
	          (Way){ .isa = best_isa(), .threads = 1, .batch = BATCH_ALL, .index = index });
	t->links = t->s.net->links;
	t->cases = t->least + 1 + roll(&t->d, one_in(&t->d, 3) ? 700 : 90);
	t->c = cases_make(&t->d, t->s.net, t->cases, true);
	for (uint64_t i = 0; t->bits && i < t->cases * t->s.net->inputs; i++)
		t->c.x[i] = t->c.x[i] > 0;
	for (uint64_t i = 0; t->roles && i < t->cases * t->s.net->outputs; i++)
		t->c.y[i] = t->c.y[i] > 0.5f;
	if (t->rough)
		t->c.x[(t->cases - 1) * t->s.net->inputs] = 0.25f;
	t->w = calloc(t->links, sizeof *t->w);
	t->gradient = calloc(t->links, sizeof *t->gradient);
	t->after = calloc(t->links, sizeof *t->after);
	t->s.target->get(t->s.program, 0, 0, ALL_LINKS, t->w);
	side_take(&t->s, &t->c);
}

/* Where a job that fails ends. */
static void show_failure(const Trial *t)
{
	print_error("%s%llu cases\n", t->text, (unsigned long long)t->cases);
	print_error("%s\n", ctx_messages(&t->s.cx));
	assert_true(false);
}

static void trial_close(Trial *t)
{
	cases_free(&t->c);
	side_close(&t->s);
	free(t->w);
	free(t->gradient);
	free(t->after);
}

/* Some updates, in one launch or one by one. */
static void trial_train(Trial *t, bool at_once, uint64_t batch)
{
	static jmp_buf edge;
	uint64_t each = ceil_div(t->cases, batch);
	Update u[UPDATES];

	memset(t->tally, 0, sizeof t->tally);
	t->s.cx.edge = t->edge ? t->edge : &edge;
	if (!t->edge && setjmp(edge))
		show_failure(t);
	for (uint64_t k = 0; k < UPDATES; k++)
		update_fill(&t->s.opt, 1 + k, 0, 0, &u[k]);
	if (at_once) {
		Updates all = { .examples = t->cases,
			            .batch = batch,
			            .count = UPDATES,
			            .update = u,
			            .until = &(Until){ NAN, NAN, NAN },
			            .stop = &t->s.stop,
			            .tally = t->tally };
		assert_int_equal(t->s.target->run_updates(t->s.program, &all), UPDATES);
	}
	for (uint64_t k = 0; k < UPDATES && !at_once; k++) {
		uint64_t first = k % each * batch;
		side_learn(&t->s, (Batch){ .first = first, .count = min_u64(batch, t->cases - first) });
		t->s.target->apply(t->s.program, &u[k]);
	}
	t->s.target->get(t->s.program, 0, 0, ALL_LINKS, t->after);
}

static void random_networks_are_near(void **state)
{
	static Trial t;
	char how[32];

	(void)state;
	for (uint64_t seed = 1; seed <= NETWORKS; seed++) {
		snprintf(how, sizeof how, "emulate:%llu", (unsigned long long)seed);
		trial_open(&t, seed, how, seed % 3 ? "128" : "512", "4", seed % 2);
		side_learn(&t.s, (Batch){ .count = t.cases });
		t.s.target->gradient(t.s.program, t.gradient);
		gradient_is_near(&t);
		trial_close(&t);
	}
}

static void shapes_have_the_same_bits(void **state)
{
	static const struct {
		const char *how, *threads, *blocks;
		bool index, at_once;
	} ways[] = { { "emulate:2", "128", "4", false, true },
		         { "emulate:3", "256", "1", true, true },
		         { "emulate:4", "512", "3", false, false },
		         { "emulate:5", "64", "7", true, true } };
	static Trial t;

	(void)state;
	for (uint64_t seed = 20; seed < 20 + NETWORKS; seed++) {
		double *first = NULL;
		for (size_t i = 0; i < COUNT(ways); i++) {
			trial_open(&t, seed, ways[i].how, ways[i].threads, ways[i].blocks, ways[i].index);
			trial_train(&t, ways[i].at_once, seed % 2 ? t.cases : 1 + t.cases / 2);
			if (!first)
				first = calloc(t.links, sizeof *first);
			for (uint64_t l = 0; l < t.links && i; l++)
				if (memcmp(&first[l], &t.after[l], sizeof *first) != 0) {
					print_error("%sway %zu: weight %llu is %.9g, not %.9g\n", t.text, i, (unsigned long long)l,
					            t.after[l], first[l]);
					assert_true(false);
				}
			memcpy(first, t.after, t.links * sizeof *first);
			trial_close(&t);
		}
		free(first);
	}
}

/* Inputs that are all 0 or 1 are bits of words: updates that the last case has no part in do not show it. */
static void bits_have_the_results_of_rows(void **state)
{
	static Trial t;

	(void)state;
	for (uint64_t seed = 110; seed < 110 + NETWORKS; seed++) {
		double *first = NULL;
		t.bits = true;
		for (int rough = 0; rough < 2; rough++) {
			t.rough = rough;
			trial_open(&t, seed, seed % 2 ? "emulate:6" : "emulate:7", seed % 3 ? "128" : "512",
			           seed % 4 < 2 ? "1" : "3", false);
			trial_train(&t, true, max_u64(1, (t.cases - 1) / UPDATES));
			first = first ? first : memcpy(calloc(t.links, sizeof *first), t.after, t.links * sizeof *first);
			if (t.cases > UPDATES) { /* else the last case has a part */
				assert_memory_equal(first, t.after, t.links * sizeof *first);
				assert_memory_not_equal(t.w, t.after, t.links * sizeof *first);
			}
			trial_close(&t);
		}
		free(first);
	}
	t.bits = t.rough = false;
}

/* Of the kernel that was made last. */
static bool first_line_has(const char *dump, const char *text)
{
	char line[256] = "";
	FILE *f = fopen(dump, "r");

	assert_non_null(f);
	assert_non_null(fgets(line, sizeof line, f));
	fclose(f);
	return strstr(line, text) != NULL;
}

/* How an emulated device computes. */
typedef struct KernelWay {
	const char *how, *threads, *blocks, *cluster;
} KernelWay;

/* All ways have the same weights and tallies. counts: networks whose text has this first line, of each way */
static void ways_have_the_same_bits(const KernelWay *way, size_t ways, uint64_t seed0, uint64_t networks,
                                    uint64_t least, const char *line, uint32_t *counts)
{
	static Trial t;
	const char *dump = "cuda-half.ptx";

	setenv("MICROPROP_CUDA_DUMP", dump, 1);
	for (uint64_t seed = seed0; seed < seed0 + networks; seed++) {
		double *first = NULL;
		Tally tally[UPDATES];
		for (size_t i = 0; i < ways; i++) {
			t.bits = t.roles = true;
			t.least = least;
			setenv("MICROPROP_CUDA_CLUSTER", way[i].cluster, 1);
			trial_open(&t, seed, way[i].how, way[i].threads, way[i].blocks, false);
			trial_train(&t, true, seed % 2 ? t.cases : 1 + t.cases / 2);
			counts[i] += first_line_has(dump, line);
			if (!first) {
				first = memcpy(calloc(t.links, sizeof *first), t.after, t.links * sizeof *first);
				memcpy(tally, t.tally, sizeof tally);
			}
			if (memcmp(first, t.after, t.links * sizeof *first) != 0)
				print_error("%sway %zu, %llu cases\n", t.text, i, (unsigned long long)t.cases);
			assert_memory_equal(first, t.after, t.links * sizeof *first);
			assert_memory_equal(tally, t.tally, sizeof tally);
			trial_close(&t);
		}
		free(first);
	}
	t.bits = t.roles = false;
	t.least = 0;
	unsetenv("MICROPROP_CUDA_CLUSTER");
	unsetenv("MICROPROP_CUDA_DUMP");
	remove(dump);
}

/* A kernel whose warps have different work has the bits of others: 640 threads of one block, or of several. */
static void roles_have_the_bits_of_rows(void **state)
{
	static const KernelWay ways[] = { { "emulate:2", "128", "1", "0" },
		                              { "emulate:3", "512", "1", "0" },
		                              { "emulate:4", "512", "4", "0" },
		                              { "emulate:5", "512", "16", "0" } };
	uint32_t different[COUNT(ways)] = { 0 };

	(void)state;
	ways_have_the_same_bits(ways, COUNT(ways), 140, NETWORKS, 0, "of 640 threads", different);
	assert_int_equal(different[0], 0);
	assert_true(different[1] && different[2] && different[3]);
}

/* So has one whose blocks have columns of hidden units: any number of blocks, and of warps. */
static void columns_have_the_bits_of_rows(void **state)
{
	static const KernelWay ways[] = { { "emulate:2", "128", "1", "0" },
		                              { "emulate:3", "512", "16", "16" },
		                              { "emulate:5", "128", "2", "2" },
		                              { "emulate:4", "512", "3", "3" },
		                              { "emulate:7", "256", "5", "5" } };
	uint32_t columns[COUNT(ways)] = { 0 };

	(void)state;
	ways_have_the_same_bits(ways, COUNT(ways), 160, 2 * NETWORKS, 66, "// columns:", columns);
	assert_int_equal(columns[0], 0);
	for (size_t i = 1; i < COUNT(ways); i++)
		assert_true(columns[i]);
}

/* Several blocks may have the same columns: each has some of the rows, and some of the inputs. */
static void shared_columns_have_the_bits_of_rows(void **state)
{
	static const KernelWay ways[] = { { "emulate:2", "128", "1", "0" },
		                              { "emulate:3", "512", "4", "4" },
		                              { "emulate:9", "256", "6", "6" } };
	uint32_t shared[COUNT(ways)] = { 0 };

	(void)state;
	ways_have_the_same_bits(ways, COUNT(ways), 200, 2 * NETWORKS, 200, "columns shared", shared);
	assert_int_equal(shared[0], 0);
	assert_true(shared[1] && shared[2]);
}

static bool is_tiled(const char *dump) { return first_line_has(dump, "// tiles:"); }

static void tiles_have_the_bits_of_rows(void **state)
{
	static const struct {
		const char *how, *threads, *blocks, *shared;
	} ways[] = { { "emulate:2", "128", "4", "232448" }, { "emulate:3", "256", "3", "104000" } };
	static Trial t;
	const char *dump = "cuda-half.ptx";

	(void)state;
	setenv("MICROPROP_CUDA_DUMP", dump, 1);
	for (uint64_t seed = 40; seed < 44; seed++) {
		double *first = NULL;
		for (size_t i = 0; i < COUNT(ways); i++) {
			setenv("MICROPROP_CUDA_SHARED", ways[i].shared, 1);
			t.wide = true;
			trial_open(&t, seed, ways[i].how, ways[i].threads, ways[i].blocks, false);
			trial_train(&t, true, seed % 2 ? t.cases : 1 + t.cases / 2);
			if (!first)
				first = calloc(t.links, sizeof *first);
			if (rules[t.s.opt.rule].needs_norm) /* tiles have no sum of all squares */
				assert_false(i);
			else
				assert_int_equal(is_tiled(dump), i);
			assert_true(!i || memcmp(first, t.after, t.links * sizeof *first) == 0);
			memcpy(first, t.after, t.links * sizeof *first);
			bool norm = rules[t.s.opt.rule].needs_norm;
			trial_close(&t);
			if (norm)
				break;
		}
		free(first);
	}
	t.wide = false;
	unsetenv("MICROPROP_CUDA_SHARED");
	unsetenv("MICROPROP_CUDA_DUMP");
	remove(dump);
}

/* ---- mutants ---- */

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

/* Two updates of the kernel fail, or have other results. */
static bool is_caught(uint64_t seed, const char *blocks, double **want)
{
	static Trial t;
	static jmp_buf edge;
	volatile bool caught = false;

	trial_open(&t, seed, "emulate:1", "128", blocks, false);
	t.edge = &edge;
	if (setjmp(edge))
		caught = true;
	else
		trial_train(&t, true, t.cases);
	if (!*want)
		*want = memcpy(calloc(t.links, sizeof **want), t.after, t.links * sizeof **want);
	caught |= memcmp(*want, t.after, t.links * sizeof **want) != 0;
	trial_close(&t);
	return caught;
}

/* Every barrier of two kernels is left out, one at a time: of one block, and of several with slices of a leaf. */
static void mutants_are_caught(void **state)
{
	static const struct {
		uint64_t seed;
		const char *blocks;
	} kernels[] = { { 61, "1" }, { 62, "3" } };
	const char *dump = "cuda-half.ptx";
	char number[16];

	(void)state;
	for (size_t i = 0; i < COUNT(kernels); i++) {
		double *want = NULL;
		uint32_t caught = 0, all;
		setenv("MICROPROP_CUDA_DUMP", dump, 1);
		assert_false(is_caught(kernels[i].seed, kernels[i].blocks, &want));
		unsetenv("MICROPROP_CUDA_DUMP");
		all = barriers_of(dump);
		for (uint32_t k = 1; k <= all; k++) {
			snprintf(number, sizeof number, "%u", k);
			setenv("MICROPROP_CUDA_DROP", number, 1);
			bool is = is_caught(kernels[i].seed, kernels[i].blocks, &want);
			caught += is;
			if (getenv("MICROPROP_LOUD"))
				print_message("kernel %zu without barrier %u of %u: %s\n", i, k, all, is ? "caught" : "the same bits");
		}
		unsetenv("MICROPROP_CUDA_DROP");
		assert_true(caught * 100 >= all * 30);
		free(want);
	}
	remove(dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_networks_are_near),      cmocka_unit_test(shapes_have_the_same_bits),
		cmocka_unit_test(bits_have_the_results_of_rows), cmocka_unit_test(roles_have_the_bits_of_rows),
		cmocka_unit_test(columns_have_the_bits_of_rows), cmocka_unit_test(shared_columns_have_the_bits_of_rows),
		cmocka_unit_test(tiles_have_the_bits_of_rows),   cmocka_unit_test(mutants_are_caught),
	};
	cmocka_set_test_filter(getenv("MICROPROP_TEST"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
