/* SPDX-License-Identifier: MIT */
/* The performance model against the figures of the report; simulated epochs: parts add up, dry runs count what is
 * executed, and Table 1 is reproduced; plots; ranges. */
#include <math.h>
#include <unistd.h>

#include "gf11_command.h"

#include "gf11_study.h"

static Ctx *cx_new(void)
{
	Ctx *cx = calloc(1, sizeof *cx);
	assert_non_null(cx);
	ctx_init(cx, NULL);
	return cx;
}

static void cx_end(Ctx *cx)
{
	ctx_free(cx);
	free(cx);
}

#define NEAR(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

/* ---- model ---- */

static void model_body(Ctx *cx, void *arg)
{
	const Plan *plan = plan_open(cx, NULL);
	const Machine *m = machine_open(cx, "gf11");
	ModelInput in;
	(void)arg;
	assert_true(plan_is_nettalk(plan, 12022));
	assert_false(plan_is_nettalk(plan, 12021));
	model_input(&in, plan, m, 12022);
	assert_true(in.calls > 30 && in.calls < 36); /* "some 34" */
	in.host_call = 0;
	in.P = 512;
	for (in.sum = 0; in.sum < SUMS; in.sum++) {
		ModelOutput out = model_epoch(&in);
		NEAR(out.forward + out.backward + out.memory + out.communication + out.host, out.total, 1e-6);
		NEAR(out.mcps, 20 * in.W * in.C / out.total, 1e-9);
		NEAR(out.forward, 2 * 13826 * 12022 / 512.0, 1e-6);
	}
	in.sum = SUM_TREE;
	assert_true(model_epoch(&in).communication == 4 * 13826 * 9);
	in.P = 513;
	assert_true(model_epoch(&in).communication == 4 * 13826 * 10);
	in.P = 1;
	assert_true(model_epoch(&in).communication == 0);
	in.sum = SUM_RING;
	in.P = 512;
	assert_true(model_epoch(&in).communication == 4 * 13826 * 512.0);

	NEAR(model_limit(plan, m, 356), 20 * 356 / (4 + 2 * (in.W - in.Wi) / in.W), 1e-9); /* the model's Wi: 4.23 */
	in.P = 566;
	in.sum = SUM_HALVING;
	NEAR(model_epoch(&in).communication, 8 * 13826 * 565 / 566.0, 1e-6);
}

static void optimum_body(Ctx *cx, void *arg)
{
	const Plan *plan = plan_open(cx, NULL);
	ModelInput in;
	(void)arg;
	model_input(&in, plan, machine_open(cx, "gf11"), 12022);
	in.host_call = 0;
	in.sum = SUM_RING;
	assert_int_equal(model_search(&in, 566), 120);
	NEAR(model_optimum(&in), 120, 0.5);
	in.sum = SUM_TREE;
	double right = model_optimum(&in);
	in.printed = true;
	NEAR(model_optimum(&in) * 0.693147, right, 1); /* the print lacks ln 2 */
	in.printed = false;
	uint32_t searched = model_search(&in, 12022); /* the logarithm goes up in steps: a power of two near it */
	assert_true(searched == 8192 && fabs(right - searched) < searched / 2.0);
}

static void printed_body(Ctx *cx, void *arg)
{
	const Plan *plan = plan_open(cx, NULL);
	ModelInput in;
	(void)arg;
	model_input(&in, plan, machine_open(cx, "gf11"), 12022);
	in.sum = SUM_TREE;
	in.P = 64;
	in.printed = true;
	ModelOutput out = model_epoch(&in);
	assert_true(out.communication == 4 * 64 * 13826.0 && out.host == 0);
	NEAR(out.mcps, 20 / out.total, 1e-15);
	in.printed = false;
	in.whole = true;
	in.P = 356;
	assert_true(model_epoch(&in).forward == 2 * 13826 * 34.0);
	assert_true(model_epoch(&in).memory == 4 * (3 * 13826 + 1586) * 2.0);
}

/* The program's model against its simulation: within 3 %. The last rows are those that lower bounds of the routines'
 * lengths do not predict: few weights in a long row of halving; a long rule after the tree's sums. */
static void program_body(Ctx *cx, void *arg)
{
	static const struct {
		uint32_t shape[3], procs;
		int sum, compiler;
		bool adam;
	} rows[] = {
		{ { 203, 60, 26 }, 8, SUM_RING, COMPILER_1989, false },
		{ { 203, 60, 26 }, 100, SUM_TREE, COMPILER_1989, false },
		{ { 203, 60, 26 }, 566, SUM_PIPELINED, COMPILER_BEST, false },
		{ { 203, 60, 26 }, 8, SUM_HALVING, COMPILER_BEST, false },
		{ { 64, 32, 16 }, 100, SUM_RING, COMPILER_BEST, false },
		{ { 64, 32, 16 }, 566, SUM_TREE, COMPILER_BEST, false },
		{ { 64, 32, 16 }, 8, SUM_PIPELINED, COMPILER_1989, false },
		{ { 64, 32, 16 }, 100, SUM_HALVING, COMPILER_1989, false },
		{ { 24, 24, 24 }, 566, SUM_RING, COMPILER_1989, false },
		{ { 24, 24, 24 }, 8, SUM_TREE, COMPILER_BEST, false },
		{ { 24, 24, 24 }, 100, SUM_PIPELINED, COMPILER_BEST, false },
		{ { 24, 24, 24 }, 566, SUM_HALVING, COMPILER_1989, false },
		{ { 100, 10, 3 }, 8, SUM_RING, COMPILER_BEST, false },
		{ { 100, 10, 3 }, 100, SUM_TREE, COMPILER_1989, false },
		{ { 100, 10, 3 }, 566, SUM_PIPELINED, COMPILER_1989, false },
		{ { 12, 12, 12 }, 512, SUM_HALVING, COMPILER_BEST, false },
		{ { 8, 3, 8 }, 356, SUM_HALVING, COMPILER_BEST, false },
		{ { 8, 3, 8 }, 512, SUM_HALVING, COMPILER_BEST, false },
		{ { 8, 3, 8 }, 566, SUM_HALVING, COMPILER_BEST, false },
		{ { 24, 24, 24 }, 566, SUM_TREE, COMPILER_1989, true },
		{ { 24, 24, 24 }, 16, SUM_RING, COMPILER_BEST, true },
	};
	(void)arg;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const Plan *plan = plan_layers(cx, rows[i].shape[0], rows[i].shape[1], rows[i].shape[2]);
		Options opt = plan->net->options;
		while (rows[i].adam && strcmp(rules[opt.rule].name, "adam") != 0)
			opt.rule++;
		EpochSpec s = { .plan = plan, .opt = &opt, .m = machine_open(cx, "gf11") };
		s.o = (BpOptions){ .procs = rows[i].procs, .sum = rows[i].sum, .compiler = rows[i].compiler };
		s.o.threads = 1;
		s.o.dry = true;
		s.cases = 24 * (uint64_t)s.o.procs;
		double simulated = epoch_isolated(cx, &s).mcps, model = model_program(cx, &s).mcps, ratio = model / simulated;
		bool near = ratio > 0.97 && ratio < 1.03;
		if (!near)
			print_error("%s, %u processors, sum %s, compiler %s: model %g, simulated %g\n", plan->net->name, s.o.procs,
			            sum_names[s.o.sum], compiler_names[s.o.compiler], model, simulated);
		assert_true(near);
	}
}

static void runs(void (*body)(Ctx *, void *))
{
	Ctx *cx = cx_new();
	Status s = guarded(cx, body, NULL);
	if (s)
		print_error("%s", ctx_messages(cx));
	assert_int_equal(s, MP_OK);
	cx_end(cx);
}

static void test_model(void **state)
{
	(void)state;
	runs(model_body);
	runs(optimum_body);
	runs(printed_body);
	runs(program_body);
}

/* ---- simulated epochs ---- */

static void epochs_body(Ctx *cx, void *arg)
{
	const Plan *plan = plan_layers(cx, 20, 13, 7);
	const Machine *m = machine_open(cx, "gf11");
	(void)arg;
	for (int sum = 0; sum < SUMS; sum++) {
		EpochSpec s = { .plan = plan, .opt = &plan->net->options, .m = m, .cases = 29 };
		s.o = (BpOptions){ .procs = 6, .sum = sum, .threads = 1 };
		Epoch executed = epoch_simulate(cx, &s, NULL);
		s.o.dry = true;
		s.o.cache = schedule_cache_new(cx);
		Epoch counted = epoch_simulate(cx, &s, NULL), again = epoch_simulate(cx, &s, NULL);
		assert_memory_equal(&executed, &counted, sizeof counted);
		assert_memory_equal(&again, &counted, sizeof counted);
		assert_true(counted.forward + counted.backward + counted.units + counted.moves + counted.update +
		                counted.host ==
		            counted.total);
		assert_true(counted.host == counted.calls * (uint64_t)m->host_call);
		NEAR(counted.mcps, 20.0 * (double)plan->W * 29 / (double)counted.total, 1e-9);
		NEAR(counted.seconds, 50e-9 * (double)counted.total, 1e-12);
	}
}

/* The ring hides the latency of the switch behind other weights, in as many calls as that takes. */
static void latency_body(Ctx *cx, void *arg)
{
	static const int64_t latency[] = { 20, 36, 37, 40, 41, 100 };
	uint64_t usual = 0;
	(void)arg;
	for (size_t i = 0; i < COUNT(latency); i++) {
		const Plan *plan = plan_layers(cx, 20, 13, 7);
		Machine *m = NEW(&cx->keep, 1, Machine);
		*m = *machine_open(cx, "gf11");
		m->switch_latency = latency[i];
		EpochSpec s = { .plan = plan, .opt = &plan->net->options, .m = m, .cases = 512 };
		s.o = (BpOptions){ .procs = 512, .sum = SUM_RING, .threads = 1, .dry = true };
		uint64_t update = epoch_simulate(cx, &s, NULL).update;
		usual = usual ? usual : update;
		assert_true(update < usual + usual / 25);
	}
}

/* Routines are cut to the machine's blocks, however short. */
static void blocks_body(Ctx *cx, void *arg)
{
	const Plan *plan = plan_layers(cx, 60, 40, 7);
	(void)arg;
	for (int i = 0; i < 6; i++) {
		Machine *m = NEW(&cx->keep, 1, Machine);
		*m = *machine_open(cx, "gf11");
		m->block = 1024 << i / 2;
		EpochSpec s = { .plan = plan, .opt = &plan->net->options, .m = m, .cases = 40 };
		s.o = (BpOptions){ .procs = 2, .sum = SUM_TREE, .compiler = i % 2, .threads = 1, .dry = true };
		assert_true(epoch_simulate(cx, &s, NULL).total > 0);
	}
}

static void test_epochs(void **state)
{
	(void)state;
	runs(epochs_body);
	runs(latency_body);
	runs(blocks_body);
}

/* ---- commands ---- */

/* Layers of few units: where a chain of 25 cycles an addition takes one and a half times as long as the arithmetic,
 * trees make the code that much shorter; nowhere longer, and nothing changes where the chain is not the bound
 * (section 10.3). */
static void test_small_layers(void **state)
{
	(void)state;
	static const char *const compilers[] = { "1989", "best" }, *const ways[] = { "forward_into", "backward_out" };
	RUN(MP_OK, "\"forward_into\"", "small", "--units=1..5,7,8,12,16", "--cases=6", "--json");
	json_t *j = output_json();
	for (int k = 0; k < 4; k++) {
		const json_t *rows = json_object_get(j, compilers[k / 2]);
		assert_int_equal(json_array_size(rows), 9);
		for (size_t i = 0; i < json_array_size(rows); i++) {
			const json_t *row = json_array_get(rows, i), *way = json_object_get(row, ways[k % 2]);
			double units = number(row, "units"), work = (k % 2 ? 4 : 2) * units, ratio = number(way, "ratio");
			NEAR(number(way, "straight") / number(way, "tree"), ratio, 1e-3);
			assert_true(ratio > 0.99);
			double least = k % 2 ? 1.6 : 1.55; /* back, the true unit's links come on top */
			if (k / 2 == 0 && units > 1 && 25 / work > least)
				assert_true(ratio > 1.5 && number(way, "share_tree") > 0.6);
			if (25 / work < 1)
				assert_true(ratio == 1 && number(way, "in_a_tree") == 1);
		}
	}
	json_decref(j);
	RUN(MP_BAD_INPUT, "--units", "small", "--units=0..3");
}

/* What the project promises: every tree cell within 8 % (10 % at 8), 5 % on average where nothing was fitted. */
static void test_table1(void **state)
{
	(void)state;
	RUN(MP_OK, "\"best\": []", "table1", "--compiler=1989", "--json");
	json_t *j = output_json(), *rows = json_object_get(j, "rows");
	double sum = 0, count = 0, all = 0;
	assert_int_equal(json_array_size(rows), 15);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		bool tree = strcmp(json_string_value(json_object_get(row, "sum")), "tree") == 0;
		double procs = number(row, "procs"), off = fabs(number(row, "error_pct"));
		NEAR(100 * fabs(number(row, "sim1989") / number(row, "paper") - 1), off, 1e-2);
		assert_true(number(row, "sim1989") < number(row, "limit"));
		assert_true(number(row, "model") > number(row, "model_with_host"));
		assert_true(!tree || off <= (procs == 8 ? 10 : 8));
		NEAR(number(row, "megaflops"), 4.22942 * number(row, "sim1989"), 0.1);
		all += off / 15;
		if ((tree && (procs == 16 || procs == 64 || procs == 256)) || (!tree && procs == 512))
			continue;
		sum += off;
		count++;
	}
	NEAR(sum / count, number(j, "mean_abs_error_pct"), 1e-2);
	assert_true(sum / count <= 5);
	NEAR(all, number(j, "mean_abs_error_all_pct"), 1e-2);
	assert_true(number(j, "mean_abs_error_unfitted_pct") > number(j, "mean_abs_error_pct"));
	assert_true(number(j, "mean_abs_error_text_pct") > number(j, "mean_abs_error_unfitted_pct"));
	json_decref(j);
}

/* What the report leaves open: values that change nothing are not ruled out, the standard one least of all. */
static void test_sensitivity(void **state)
{
	(void)state;
	RUN(MP_OK, "\"ruled_out\": false", "calibrate", "--sensitivity", "relocations", "--json");
	json_t *j = output_json(), *rows = json_object_get(j, "rows");
	assert_int_equal(json_array_size(rows), 2);
	NEAR(number(json_array_get(rows, 0), "mean_all"), number(j, "standard_all"), 1e-6);
	json_decref(j);
	RUN(MP_BAD_INPUT, "nothing is assumed about 'clock'", "calibrate", "--sensitivity", "clock");
	RUN(MP_BAD_INPUT, "with --sensitivity only", "calibrate", "relocations");
}

/* Cycles of an epoch's update; NULL ends the words. */
static double swept(const char *key, const char *const *words)
{
	command(MP_OK, "\"rows\"", words);
	json_t *j = output_json();
	double v = number(json_array_get(json_object_get(j, "rows"), 0), key);
	json_decref(j);
	return v;
}

#define SWEPT(key, ...) swept(key, (const char *const[]){ "sweep", __VA_ARGS__, "--cases=64", "--json", NULL })

/* Overlapped moves make the tree faster; without put halving needs a power of two; a ring in one call waits for a slow
 * switch; the loop of figure 6 moves all weights for every case. */
static void test_variants(void **state)
{
	(void)state;
	assert_true(SWEPT("update", "tree=overlapped", "procs=8") < 0.7 * SWEPT("update", "tree=apart", "procs=8"));
	assert_true(SWEPT("update", "fixed-address=2", "procs=64", "sum=halving") <
	            0.5 * SWEPT("update", "fixed-address=2", "procs=48", "sum=halving"));
	assert_true(SWEPT("update", "ring=whole", "switch-latency=39", "procs=512", "sum=ring") >
	            1.15 * SWEPT("update", "ring=cut", "switch-latency=39", "procs=512", "sum=ring"));
	assert_true(SWEPT("memory", "group=1", "procs=4") > 6 * SWEPT("memory", "group=16", "procs=4"));
}

/* The shipped machine has been calibrated: fitting again gives its constant, but for what a better schedule moves. */
static void test_calibrate(void **state)
{
	(void)state;
	char path[] = "/tmp/test_gf11_model_XXXXXX";
	int fd = mkstemp(path);
	char out[64];
	assert_true(fd >= 0);
	close(fd);
	snprintf(out, sizeof out, "--out=%s", path);
	RUN(MP_OK, "host_call", "calibrate", "--sum=tree", "--json", out);
	json_t *j = output_json();
	NEAR(number(j, "host_call"), number(j, "was"), 10);
	double host_call = number(j, "host_call");
	json_decref(j);
	RUN(MP_OK, "assumed (calibrated)", "machine", path);
	RUN(MP_OK, "parameters", "machine", path, "--json");
	j = output_json();
	assert_true(number(json_object_get(json_object_get(j, "parameters"), "host-call"), "value") == host_call);
	json_decref(j);
	unlink(path);
}

static void test_other_commands(void **state)
{
	(void)state;
	char topo[] = SOURCE_DIR "/examples/letters.topo";
	RUN(MP_OK, "120 by search", "model", topo, "--sum=ring");
	RUN(MP_OK, "measured_1989\": 901", "model", topo, "--procs=356", "--json");
	RUN(MP_OK, "simulated\": {", "model", topo, "--procs=356", "--simulate", "--json");
	json_t *j = output_json(), *row = json_array_get(json_object_get(j, "rows"), 0);
	json_t *sim = json_object_get(row, "simulated");
	NEAR(number(sim, "forward") + number(sim, "backward") + number(sim, "units") + number(sim, "memory") +
	         number(sim, "update") + number(sim, "host"),
	     number(sim, "total"), 0);
	json_decref(j);
	RUN(MP_OK, "as printed", "model", topo, "--printed", "--procs=1..3");
	RUN(MP_OK, "\"update\": {\"ring\"", "efficiency", SOURCE_DIR "/examples/encoder-8-3-8.topo", "--json", "--procs=4");
	RUN(MP_OK, "sum,host-call,forward", "sweep", "sum=tree,ring", "host-call=0..200:100", "--csv", "--procs=16");
	RUN(MP_OK, "alu-latency", "sweep", "alu-latency=5,25", "--cases=60", "--procs=2");
}

static void test_refused(void **state)
{
	(void)state;
	char topo[] = SOURCE_DIR "/examples/letters.topo";
	RUN(MP_BAD_INPUT, "model needs an operand", "model");
	RUN(MP_BAD_INPUT, "--procs cannot be '0'", "model", topo, "--procs=0");
	RUN(MP_BAD_INPUT, "--procs cannot be '9..8'", "model", topo, "--procs=9..8");
	RUN(MP_BAD_INPUT, "--procs cannot be '1,'", "model", topo, "--procs=1,");
	RUN(MP_BAD_INPUT, "--procs cannot be '1..9:0'", "model", topo, "--procs=1..9:0");
	RUN(MP_BAD_INPUT, "--procs cannot be '567'", "model", topo, "--procs=567");
	RUN(MP_BAD_INPUT, "--sum cannot be 'star'", "model", topo, "--sum=star");
	RUN(MP_BAD_INPUT, "do not fit", "model", topo, "--bundle=9000");
	RUN(MP_BAD_INPUT, "there is no parameter 'latency'", "sweep", "latency=1..2");
	RUN(MP_BAD_INPUT, "does not say", "sweep", "alu-latency");
	RUN(MP_BAD_INPUT, "alu-latency cannot be '0..2'", "sweep", "alu-latency=0..2");
	RUN(MP_BAD_INPUT, "switch ports", "sweep", "processors=600");
	RUN(MP_BAD_INPUT, "combinations", "sweep", "alu-latency=1..200", "sram-latency=1..200");
	RUN(MP_BAD_INPUT, "fitted to cells of the tree", "calibrate", "--sum=ring");
	RUN(MP_BAD_INPUT, "up to 512", "table1", "--machine=gf11-356");
	RUN(MP_FAILED, "/no-such-folder/x", "figures", "--out=/no-such-folder/x");
}

static void test_any_allocation_may_fail(void **state)
{
	(void)state;
	fail_each(3, (const char *const[]){ "model", SOURCE_DIR "/examples/xor.topo", "--procs=4" }, 1);
	fail_each(5,
	          (const char *const[]){ "sweep", "host-call=1,2", "--net=" SOURCE_DIR "/examples/xor.topo", "--procs=2",
	                                 "--cases=4" },
	          41);
}

/* ---- plots, ranges ---- */

static void plot_body(Ctx *cx, void *arg)
{
	static const double x[] = { 1, 10, 100 }, y[] = { 0.5, NAN, 50 }, tick[] = { 1, 1000 };
	const Series series[] = { { "a < b", "#000", MARK_LINE, x, y, 3 },
		                      { "c", "#111", MARK_DISC, x, y, 3 },
		                      { "d", "#222", MARK_SQUARE, x, y, 3 },
		                      { "e", "#333", MARK_TRIANGLE, x, y, 3 } };
	const Plot plot = { .title = "T & U",
		                .series = series,
		                .count = 4,
		                .x = { "x", 1, 100, true, tick, 1 },
		                .y = { "y", 0, 2000, false, tick, 2 } };
	Buf b = { .arena = &cx->scratch };
	(void)arg;
	plot_svg(&plot, &b);
	assert_non_null(strstr(b.s, "T &#38; U"));
	assert_non_null(strstr(b.s, "a &#60; b"));
	assert_non_null(strstr(b.s, ">1,000<"));
	assert_null(strstr(b.s, "nan"));
	assert_string_equal(b.s + b.len - 7, "</svg>\n");
	size_t discs = 0;
	for (const char *s = b.s; (s = strstr(s, "<circle")) != NULL; s++)
		discs++;
	assert_int_equal(discs, 3); /* two points, one in the legend */
}

static void range_body(Ctx *cx, void *arg)
{
	const MachineRow whole = { .low = 1, .high = 1000 }, real = { .low = 0, .high = 9, .real = true };
	double *v;
	(void)arg;
	assert_int_equal(range_read(cx, "n", "8..512:x2,566", &whole, &v), 8);
	assert_true(v[0] == 8 && v[6] == 512 && v[7] == 566);
	assert_int_equal(range_read(cx, "n", "1..3", &whole, &v), 3);
	assert_int_equal(range_read(cx, "n", "1..10:4", &whole, &v), 3);
	assert_true(v[2] == 9);
	assert_int_equal(range_read(cx, "n", "0.5..1.5:0.25", &real, &v), 5);
	NEAR(v[4], 1.5, 0);
}

static void test_plots_and_ranges(void **state)
{
	(void)state;
	runs(plot_body);
	runs(range_body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_small_layers),
		cmocka_unit_test(test_table1),
		cmocka_unit_test(test_calibrate),
		cmocka_unit_test(test_sensitivity),
		cmocka_unit_test(test_variants),
		cmocka_unit_test(test_other_commands),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_any_allocation_may_fail),
		cmocka_unit_test(test_plots_and_ranges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
