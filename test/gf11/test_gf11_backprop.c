/* SPDX-License-Identifier: MIT */
/* Back-propagation compiled for the GF11 against target ref: outputs and gradients of small networks of every kind, on
 * 1 to 40 processors, within the error of single precision and the sigmoid table.  Results do not depend on threads,
 * tracing or bundles; bundles share routines; the accounting adds up; invalid input is refused. */
#include <math.h>

#include "toy.h"

#include "gf11_sum.h"

enum { CASES = 19, MAX_IN = 24, MAX_OUT = 16, MOST_LINKS = 2000 };

static float xs[CASES * MAX_IN], ys[CASES * MAX_OUT], case_weights[CASES];

/* Inputs in -1 .. 1, targets in 0.1 .. 0.9, every fifth one missing, all of case 4; every case has a weight. */
static void fill_data(const Net *net)
{
	assert_true(net->inputs <= MAX_IN && net->outputs <= MAX_OUT && net->links <= MOST_LINKS);
	for (uint32_t i = 0; i < CASES * net->inputs; i++)
		xs[i] = (float)(2 * random_unit(7, STREAM_DATA, i) - 1);
	for (uint32_t i = 0; i < CASES * net->outputs; i++)
		ys[i] = i % 5 == 3 || i / net->outputs == 4 ? NAN : (float)(0.1 + 0.8 * random_unit(8, STREAM_DATA, i));
	for (uint32_t i = 0; i < CASES; i++)
		case_weights[i] = (float)(0.5 + random_unit(9, STREAM_DATA, i));
}

/* ---- a network on the machine ---- */

typedef struct Job {
	Toy *toy;
	BpOptions o;
	int64_t sram; /* words; 0: as the machine has */
	uint64_t cases;
	Bp *bp;
	double *gradient;
} Job;

static void job_build(Ctx *cx, void *arg)
{
	Job *j = arg;
	Machine *m = machine_open(cx, "gf11");
	m->sram = j->sram ? j->sram : m->sram;
	j->bp = bp_new(cx, j->toy->plan, &j->toy->net->options, m, &j->o, j->cases);
}

static void job_run(Ctx *cx, void *arg)
{
	Job *j = arg;
	double w[MOST_LINKS];
	job_build(cx, j);
	target_ref.get(j->toy->program, 0, 0, ALL_LINKS, w);
	bp_weights_write(j->bp, 0, w);
	bp_load_cases(j->bp, &j->toy->data, NULL, j->cases);
	bp_accumulate(j->bp);
	bp_gradient(j->bp, j->gradient);
}

static void learn(Job *j, uint64_t cases, double *gradient)
{
	j->cases = cases;
	j->gradient = gradient;
	toy_ok(j->toy, guarded(&j->toy->cx, job_run, j));
}

static double largest(const double *v, uint64_t n)
{
	double most = 0;
	for (uint64_t i = 0; i < n; i++)
		most = fmax(most, fabs(v[i]));
	return most;
}

static void assert_near(const Job *j, const char *what, const double *a, const double *b, uint64_t n, double tolerance)
{
	double scale = fmax(largest(b, n), 1e-3);
	for (uint64_t i = 0; i < n; i++)
		if (!(fabs(a[i] - b[i]) <= tolerance * scale)) {
			print_error("%s\nerror %s, %u processors, bundle %u: %s %llu is %.9g, ref has %.9g\n", j->toy->text,
			            error_fns[j->toy->net->options.error].name, j->o.procs, j->o.bundle, what,
			            (unsigned long long)i, a[i], b[i]);
			assert_true(false);
		}
}

static void compare_outputs(const Job *j, double tolerance)
{
	const uint32_t outputs = j->toy->net->outputs;
	double mine[CASES * MAX_OUT], ref[CASES * MAX_OUT];
	Tally t = { 0 };
	for (uint64_t i = 0; i < j->cases; i++)
		for (uint32_t k = 0; k < outputs; k++)
			mine[i * outputs + k] = (double)bp_outputs(j->bp, i)[k];
	assert_int_equal(target_ref.evaluate(j->toy->program, 0, j->cases, &j->toy->stop, ref, &t), MP_OK);
	assert_near(j, "output", mine, ref, j->cases * outputs, tolerance);
	if (j->toy->net->options.error == ERR_SQUARED)
		assert_true(fabs(bp_total_error(j->bp) - t.error) <= 3 * tolerance * fmax(t.error, 1));
}

static double tolerance_of(int sigmoid) { return sigmoid == SIGMOID_TABLE ? 3e-3 : 3e-5; }

/* The two compilers differ in time, not in arithmetic. */
static void compare_compilers(Job *j, const double *gradient)
{
	double other[MOST_LINKS];
	const Bp *before = j->bp;
	j->o.compiler = COMPILER_BEST;
	learn(j, j->cases, other);
	assert_memory_equal(gradient, other, j->toy->net->links * sizeof *other);
	assert_memory_equal(before->result, j->bp->result, j->cases * j->toy->net->outputs * sizeof(float));
}

/* Gradient and outputs of this network against ref; both: also from the other compiler. */
static void compare(const char *text, BpOptions o, bool both)
{
	Toy toy;
	double mine[MOST_LINKS], ref[MOST_LINKS];
	toy_open(&toy, text);
	fill_data(toy.net);
	toy.data.weight = case_weights;
	toy_bind(&toy, CASES, xs, ys);
	toy_weights(&toy, 5, 0.7);
	Job j = { .toy = &toy, .o = o };
	learn(&j, CASES, mine);
	toy_gradient(&toy, ref);
	assert_near(&j, "gradient", mine, ref, toy.net->links, tolerance_of(o.sigmoid));
	compare_outputs(&j, tolerance_of(o.sigmoid));
	if (both)
		compare_compilers(&j, mine);
	toy_close(&toy);
}

/* ---- networks of every kind ---- */

/* groups has a place for the hidden and one for the output function. */
typedef struct Kind {
	const char *groups, *links;
	bool inside;
} Kind;

static const Kind kinds[] = {
	{ "group x 3 input\ngroup h 4 %s\ngroup o 3 %s output\n", "connect x, true -> h\nconnect h, true -> o\n", false },
	{ "group x 3 input\ngroup h 4 %s\ngroup o 3 %s output\n", "connect x -> h\nconnect h -> o\n", false },
	{ "group x 3 input\ngroup h 4 %s\ngroup o 3 %s output\n", "connect x, true -> h\nconnect x, h, true -> o\n",
	  false },
	{ "group x 3 input\ngroup h 3 %s\ngroup o 3 %s output\n",
	  "connect x -> h one-to-one\nconnect true -> h\nconnect h -> o\n", false },
	{ "group x 4 input\ngroup h 5 %s\ngroup o 3 %s output\n",
	  "connect x -> h random 0.6 seed 3\nconnect h -> o random 0.7 seed 4\nconnect true -> h, o\n", false },
	{ "group x 4 input\ngroup h 4 %s\ngroup o 3 %s output\n",
	  "connect x[0:1] -> h[0:2]\nconnect x[2:3] -> h[2:3]\nconnect h[0:2] -> o\n"
	  "connect h[3] -> o[1]\nconnect true -> o\n",
	  false },
	{ "group x 3 input\ngroup h 3 %s\ngroup o 2 %s output\ngroup p 3 %2$s output\n",
	  "connect x, true -> h\nconnect h -> o, p\nconnect o -> p\n", false },
	{ "group x 3 input\ngroup h 3 %s\ngroup k 3 tanh\ngroup o 2 %s output\n",
	  "connect x, true -> h\nconnect x, h -> k\nconnect h, k, true -> o\n", false },
	{ "group o 2 %2$s output\ngroup h 3 %1$s\ngroup x 3 input\n", "connect x, true -> h\nconnect h -> o\n", false },
	{ "group x 3 input\ngroup h 4 %s\ngroup o 3 %s output\n",
	  "connect x, true -> h\nconnect h -> h\nconnect h -> o\nconnect o[0] -> o[1:2]\n", true },
};

static bool can_train(int error, int fn)
{
	int matched = error_fns[error].matched;
	return error_fits(error, fn) && (matched < 0 || matched == fn || (matched == FN_SIGMOID && fn == FN_SIGMOID2));
}

static void compare_kind(const Kind *k, int hidden, int output, int error, uint32_t round)
{
	char groups[400], text[900];
	snprintf(groups, sizeof groups, k->groups, unit_fns[hidden].name, unit_fns[output].name);
	snprintf(text, sizeof text, "%s%strain error %s prime-offset %s\n", groups, k->links, error_fns[error].name,
	         round % 2 ? "0.1" : "0");
	BpOptions o = { .procs = 1 + round * 7 % 40,
		            .sigmoid = round % 3 == 0 ? SIGMOID_TABLE : SIGMOID_POWER2,
		            .bundle = round % 4 == 1 ? 1 + round % 9 : 0,
		            .threads = 1 };
	compare(text, o, round % 3 == 0);
}

/* Every unit function, hidden and output, in every kind of network; all error functions. */
static void every_kind(void **state)
{
	(void)state;
	uint32_t round = 0;
	for (size_t k = 0; k < COUNT(kinds); k++)
		for (int fn = (int)k % 2; fn < FN_EVERYWHERE; fn += 2) {
			int output = (int)(k + 3 * (size_t)fn) % FN_EVERYWHERE, error = (int)round % ERR_COUNT;
			while (!can_train(error, output))
				error = (error + 1) % ERR_COUNT;
			if (!kinds[k].inside || (fn != FN_SOFTMAX && output != FN_SOFTMAX))
				compare_kind(&kinds[k], fn, output, error, round);
			round++;
		}
}

static void every_error(void **state)
{
	(void)state;
	uint32_t round = 0;
	for (int error = 0; error < ERR_COUNT; error++)
		for (int fn = 0; fn < FN_EVERYWHERE; fn++)
			for (size_t k = 0; k < COUNT(kinds); k += 6, round += 5)
				if (can_train(error, fn))
					compare_kind(&kinds[k], FN_SIGMOID, fn, error, round);
}

/* ---- one network, run in different ways ---- */

static const char middle[] =
	"group x 20 input\ngroup h 30\ngroup k 12 tanh\ngroup o 7 output\n"
	"connect x, true -> h\nconnect h -> k\nconnect x, k, true -> o\nconnect h -> o random 0.5 seed 2\n";

static void middle_with(BpOptions o, double *gradient, Toy *toy)
{
	toy_open(toy, middle);
	fill_data(toy->net);
	toy_bind(toy, CASES, xs, ys);
	toy_weights(toy, 5, 0.7);
	Job j = { .toy = toy, .o = o };
	learn(&j, CASES, gradient);
}

static void threads_and_tracing(void **state)
{
	(void)state;
	double fast[MOST_LINKS], other[MOST_LINKS];
	Toy toy;
	const BpOptions ways[] = { { .procs = 40, .threads = 2 }, { .procs = 40, .threads = 1, .traced = true } };
	middle_with((BpOptions){ .procs = 40, .threads = 1 }, fast, &toy);
	uint64_t links = toy.net->links;
	toy_close(&toy);
	for (size_t i = 0; i < COUNT(ways); i++) {
		middle_with(ways[i], other, &toy);
		assert_memory_equal(fast, other, links * sizeof *fast);
		toy_close(&toy);
	}
}

static void bundles_of_any_size(void **state)
{
	(void)state;
	for (uint32_t bundle = 1; bundle < 700; bundle = bundle * 4 + 1)
		compare(middle, (BpOptions){ .procs = 3 + bundle % 37, .bundle = bundle, .threads = 1 }, bundle == 5);
	for (uint32_t procs = 3; procs <= 40; procs += 17)
		compare(middle, (BpOptions){ .procs = procs, .threads = 1, .sigmoid = SIGMOID_POWER2 }, procs == 20);
}

/* Two passes, an update, a pass: weight changes add up until the update, then start anew; all the same in both
 * compilers, also where cases come in several groups. */
typedef struct Epochs {
	Job job;
	double weights[MOST_LINKS], changes[2][MOST_LINKS], gone[MOST_LINKS];
} Epochs;

static void epochs_run(Ctx *cx, void *arg)
{
	Epochs *e = arg;
	(void)cx;
	Bp *b = e->job.bp;
	bp_accumulate(b);
	bp_gradient(b, e->changes[0]);
	sum_compile(b);
	Update u;
	update_fill(b->opt, 1, 0, 0, &u);
	u.param[P_RATE] = 0.01;
	u.param[P_MOMENTUM] = 0.9;
	sum_update(b, &u);
	bp_gradient(b, e->gone);
	bp_accumulate(b);
	bp_gradient(b, e->changes[1]);
	bp_weights_read(b, 0, 1, e->weights);
	for (uint64_t i = 0, links = b->net->links, some; i < links; i += some) {
		double piece[7];
		some = links - i < COUNT(piece) ? links - i : COUNT(piece);
		bp_weights_some(b, 0, 1, i, some, piece);
		assert_memory_equal(piece, e->weights + i, some * sizeof *piece);
	}
}

static void epochs_follow(void **state)
{
	(void)state;
	static Epochs e[2];
	for (int compiler = 0; compiler < 2; compiler++) {
		Toy toy;
		double first[MOST_LINKS];
		toy_open(&toy, middle);
		fill_data(toy.net);
		toy_bind(&toy, CASES, xs, ys);
		toy_weights(&toy, 5, 0.7);
		e[compiler].job = (Job){ .toy = &toy,
			                     .sram = 2800,
			                     .o = { .procs = 2, .threads = 1, .sum = SUM_TREE, .compiler = compiler } };
		learn(&e[compiler].job, CASES, first);
		toy_ok(&toy, guarded(&toy.cx, epochs_run, &e[compiler]));
		assert_true(e[compiler].job.bp->at.group < e[compiler].job.bp->at.slots);
		for (uint64_t i = 0; i < toy.net->links; i++) {
			assert_true(fabs(e[compiler].changes[0][i] - 2 * first[i]) <= 1e-5 * (1 + fabs(first[i])));
			assert_true(e[compiler].gone[i] == 0);
		}
		assert_memory_equal(e[0].weights, e[compiler].weights, toy.net->links * sizeof(double));
		assert_memory_equal(e[0].changes, e[compiler].changes, sizeof e[0].changes);
		toy_close(&toy);
	}
}

/* ---- NETtalk's shape ---- */

static const char nettalk[] = "group window 203 input\ngroup hidden 60\ngroup sound 26 output\n"
							  "connect window -> hidden\nconnect hidden -> sound\nconnect true -> hidden, sound\n";

/* Seventeen bundles of 12 sources and 60 units share two forward routines (the first opens the sums), one backward. */
static void bundles_share_routines(void **state)
{
	(void)state;
	Toy toy;
	toy_open(&toy, nettalk);
	Job j = { .toy = &toy, .o = { .procs = 2, .threads = 1 }, .cases = 50 };
	toy_ok(&toy, guarded(&toy.cx, job_build, &j));
	const Bp *b = j.bp;
	assert_int_equal(b->bundles, 20);
	for (uint32_t i = 0; i < 17; i++) {
		assert_int_equal(b->bundle[i].links, 720);
		assert_true(b->bundle[i].input);
		assert_int_equal(b->bundle[i].backward, b->bundle[0].backward);
		assert_int_equal(b->bundle[i].forward, b->bundle[i ? 1 : 0].forward);
	}
	assert_false(b->bundle[17].input || b->bundle[19].input);
	for (uint32_t i = 0; i < b->c->routines; i++) {
		assert_true(b->c->routine[i]->report.checked);
		assert_int_equal(b->c->routine[i]->report.spills, 0);
	}
	assert_int_equal(b->at.group, 24);
	toy_close(&toy);
}

/* ---- the account ---- */

/* A thousand links stay in SRAM, or go to and fro with every group of cases where there is little of it: the sums are
 * the same ones. */
static void cycles_add_up(void **state)
{
	(void)state;
	Toy toy;
	double g[2][MOST_LINKS];
	for (int small = 0; small < 2; small++) {
		toy_open(&toy, middle);
		fill_data(toy.net);
		toy_bind(&toy, CASES, xs, ys);
		toy_weights(&toy, 5, 0.7);
		Job j = { .toy = &toy, .o = { .procs = 2, .threads = 1 }, .sram = small ? 3400 : 0 };
		learn(&j, CASES, g[small]);
		const Bp *b = j.bp;
		uint64_t parts = b->cycles_forward + b->cycles_units + b->cycles_backward + b->cycles_moves + b->cycles_update;
		assert_int_equal(parts, b->c->account.cycles);
		assert_int_equal(bp_cycles(b), parts + b->c->account.calls * (uint64_t)b->m->host_call);
		assert_int_equal(b->at.resident, !small);
		assert_true(small ? b->at.group < 8 : b->at.group == 10);
		assert_memory_equal(g[0], g[small], toy.net->links * sizeof *g[0]);
		toy_close(&toy);
	}
}

/* ---- refusals ---- */

static void refused(const char *text, const Job *how, const char *why)
{
	Toy toy;
	toy_open(&toy, text);
	Job j = *how;
	j.toy = &toy;
	assert_int_equal(guarded(&toy.cx, job_build, &j), MP_BAD_INPUT);
	if (!strstr(ctx_messages(&toy.cx), why))
		print_error("%s\n", ctx_messages(&toy.cx));
	assert_non_null(strstr(ctx_messages(&toy.cx), why));
	toy_close(&toy);
}

static void limits(void **state)
{
	(void)state;
	const char *small = "group x 2 input\ngroup o 1 output\nconnect x -> o\n";
	refused(small, &(Job){ .o.procs = 567, .cases = 1 }, "567 processors: gf11 has 566");
	refused(nettalk, &(Job){ .o.procs = 4, .cases = 12022 }, "3006 cases, 697392 words of data");
	refused(small, &(Job){ .o = { .procs = 1, .bundle = 9000 }, .cases = 1 }, "a bundle of 9000 weights");
	refused("group x 5000 input\ngroup h 3000\ngroup o 1 output\nconnect x[0] -> h\nconnect h, x -> o\n",
	        &(Job){ .o.procs = 1, .cases = 1 }, "a case of 8001 units takes");
	refused("group x 600 input\ngroup o 300 output\nconnect x -> o\n", &(Job){ .o.procs = 1, .cases = 1 },
	        "180000 weights take 3 words of DRAM each");
	refused("group x 2 input\ngroup m 2 context\ngroup o 2 output\nconnect x, m -> o\ncopy o -> m\ntrain bptt full\n",
	        &(Job){ .o.procs = 1, .cases = 1 }, "errors cannot go back through time");
	refused("group x 2 input\ngroup o 1 output\nconnect x -> o\ntrain rule doug\n", &(Job){ .o.procs = 1, .cases = 1 },
	        "target gf11 has no rule doug");
	refused("group x 2 input\ngroup o 1 gaussian output\nconnect x -> o\ntrain error cross-entropy\n",
	        &(Job){ .o.procs = 1, .cases = 1 }, "cannot train gaussian units with error cross-entropy");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind),          cmocka_unit_test(every_error),
		cmocka_unit_test(threads_and_tracing), cmocka_unit_test(bundles_of_any_size),
		cmocka_unit_test(epochs_follow),       cmocka_unit_test(bundles_share_routines),
		cmocka_unit_test(cycles_add_up),       cmocka_unit_test(limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
