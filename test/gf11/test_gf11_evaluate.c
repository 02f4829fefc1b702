/* SPDX-License-Identifier: MIT */
/* Commands sums, updates and evaluate: reports are consistent, variants that must be slower are, and variants that a
 * machine does not support have a row with the reason. */
#include <math.h>
#include <unistd.h>

#include "gf11_command.h"

#include "gf11_study.h"

#define ENCODER SOURCE_DIR "/examples/encoder-8-3-8.topo"

static const char *word(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));
	assert_non_null(s);
	return s;
}

static bool is(const json_t *row, const char *key, const char *value) { return strcmp(word(row, key), value) == 0; }

/* ---- sums ---- */

static void check_study(const json_t *study)
{
	const json_t *rows = json_object_get(study, "rows"), *crossovers = json_object_get(study, "crossovers");
	double ring = 0, least = 0, weights = number(study, "weights");
	assert_true(json_array_size(rows) >= 12);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		double cost = number(row, "cycles_per_weight"), ideal = number(row, "switch_per_weight");
		assert_true(fabs(cost * weights - number(row, "update") - 160 * number(row, "calls")) < 0.01);
		assert_true(cost >= ideal && fabs(cost / ideal - number(row, "overhead")) < 1e-3);
		if (is(row, "sum", "ring")) { /* the first of its processors, and dearer with more of them */
			assert_true(cost > ring);
			ring = cost;
			least = INFINITY;
		}
		least = fmin(least, cost);
		if (json_is_true(json_object_get(row, "best")))
			assert_true(cost == least);
	}
	assert_true(json_array_size(crossovers) >= 4);
	for (size_t i = 0; i < json_array_size(crossovers); i++) {
		const json_t *x = json_array_get(crossovers, i);
		assert_true(number(x, "from") >= 2 && number(x, "from") <= 20);
		assert_string_not_equal(word(x, "faster"), word(x, "slower"));
	}
}

static void machine_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void test_sums(void **state)
{
	(void)state;
	machine_write("twenty.machine", "base gf11\nprocessors 20 assumed\n");
	RUN(MP_OK, "\"studies\"", "sums", "--net=" ENCODER, "--procs=3,8,13", "--machine=twenty.machine", "--json");
	json_t *j = output_json(), *studies = json_object_get(j, "studies");
	assert_int_equal(json_array_size(studies), 2);
	for (size_t i = 0; i < 2; i++)
		check_study(json_array_get(studies, i));
	assert_true(is(json_array_get(studies, 0), "compiler", "1989") &&
	            is(json_array_get(studies, 1), "compiler", "best"));
	json_decref(j);
	RUN(MP_OK, "takes less than", "sums", "--net=" ENCODER, "--procs=4", "--compiler=best", "--machine=twenty.machine");
	RUN(MP_BAD_INPUT, "figures show both compilers", "sums", "--net=" ENCODER, "--compiler=best", "--out=x");
	RUN(MP_BAD_INPUT, "--procs cannot be '21'", "sums", "--net=" ENCODER, "--procs=21", "--machine=twenty.machine");
	unlink("twenty.machine");
}

/* At a crossover point the order changes: the faster method is slower just before. */
static void crossing_body(Ctx *cx, void *arg)
{
	Machine *m = NEW(&cx->keep, 1, Machine);
	CommandRun c = { .cx = cx, .m = m };
	const Plan *plan = plan_layers(cx, 20, 13, 7);
	Crossing x[MAX_CROSSINGS];
	(void)arg;
	*m = *machine_open(cx, "gf11");
	m->processors = 40;
	uint32_t count = crossings_find(&c, plan, COMPILER_1989, x), beyond = 0;
	for (uint32_t i = 0; i < count; i++) {
		double cost[2][2];
		if (x[i].from < 4)
			continue;
		for (uint32_t k = 0; k < 4; k++) {
			EpochSpec s = epoch_spec(&c, plan, 24 * (x[i].from - 1 + k / 2));
			s.o.procs = x[i].from - 1 + k / 2;
			s.o.sum = k % 2 ? x[i].faster : x[i].slower;
			Epoch e = epoch_isolated(cx, &s);
			cost[k / 2][k % 2] = (double)(e.update + e.update_calls * 160);
		}
		assert_true(cost[0][1] >= cost[0][0] && cost[1][1] < cost[1][0]);
		beyond++;
	}
	assert_true(beyond >= 1); /* the tree overtakes the ring */
}

static void guarded_run(void (*body)(Ctx *, void *))
{
	Ctx *cx = calloc(1, sizeof *cx);
	assert_non_null(cx);
	ctx_init(cx, NULL);
	Status s = guarded(cx, body, NULL);
	if (s)
		print_error("%s", ctx_messages(cx));
	assert_int_equal(s, MP_OK);
	ctx_free(cx);
	free(cx);
}

static void test_crossings(void **state)
{
	(void)state;
	guarded_run(crossing_body);
}

/* The extended table stands beside what was there; without best mode it is empty. */
static void test_table1_keys(void **state)
{
	(void)state;
	RUN(MP_OK, "\"best\": [], \"extended\": {\"rows\": [], \"crossovers\": []}, ", "table1", "--compiler=1989",
	    "--sum=tree", "--json");
	RUN(MP_BAD_INPUT, "has no option '--extended'", "table2", "--extended");
}

/* ---- evaluate ---- */

static const json_t *row_find(const json_t *j, const char *compiler, const char *feature, const char *value)
{
	const json_t *rows = json_object_get(j, "rows");
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		if (is(row, "compiler", compiler) && is(row, "feature", feature) && is(row, "value", value))
			return row;
	}
	print_error("no row %s, %s, %s\n", compiler, feature, value);
	assert_true(false);
	return NULL;
}

static void check_rows(const json_t *j)
{
	const json_t *rows = json_object_get(j, "rows");
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i), *base = row_find(j, word(row, "compiler"), "base", "");
		assert_true(fabs(number(row, "mcps") / number(base, "mcps") - number(row, "ratio")) < 1e-4);
		assert_true(number(row, "adds") > 0 && number(row, "multiplies") > 0);
		assert_true(number(row, "adds") + number(row, "multiplies") + number(row, "choices") <=
		            number(row, "cycles") - number(row, "host"));
		double parts = number(row, "forward") + number(row, "backward") + number(row, "units") + number(row, "memory") +
		               number(row, "update") + number(row, "host");
		assert_true(parts == number(row, "cycles"));
	}
}

static void check_tornado(const json_t *j)
{
	const json_t *bars = json_object_get(j, "tornado");
	size_t half = json_array_size(bars) / 2;
	double before = INFINITY;
	assert_true(half > 15);
	for (size_t i = 0; i < half; i++) {
		const json_t *old = json_array_get(bars, i), *new = json_array_get(bars, half + i);
		assert_string_equal(word(old, "feature"), word(new, "feature"));
		assert_true(number(old, "low") <= 1 && number(old, "high") >= 1);
		double effect = fmax(number(old, "high") / number(old, "low"), number(new, "high") / number(new, "low"));
		assert_true(effect <= before * (1 + 1e-4));
		before = effect;
	}
}

static void test_evaluate(void **state)
{
	(void)state;
	RUN(MP_OK, "\"tornado\"", "evaluate", ENCODER, "--procs=16", "--cases=64", "--json");
	json_t *j = output_json();
	check_rows(j);
	check_tornado(j);
	for (int i = 0; i < 2; i++) {
		const char *compiler = compiler_names[i];
		assert_true(number(row_find(j, compiler, "host call", "0"), "host") == 0);
		assert_true(number(row_find(j, compiler, "host call", "1000"), "ratio") < 1);
		assert_true(number(row_find(j, compiler, "arithmetic", "half"), "ratio") < 1);
		assert_true(number(row_find(j, compiler, "processors", "/4"), "ratio") <
		            number(row_find(j, compiler, "processors", "/2"), "ratio"));
		assert_true(number(row_find(j, compiler, "addresses", "fixed"), "own_addresses") == 0);
		assert_true(number(row_find(j, compiler, "base", ""), "own_addresses") > 0);
		assert_true(is(row_find(j, compiler, "interconnection", "ring, fixed"), "sum", "ring"));
		assert_true(is(row_find(j, compiler, "summing", "pipelined"), "sum", "pipelined"));
	}
	json_decref(j);
}

/* A routine that is valid on the standard machine is valid on a more capable one: evaluate relies on it. */
static void easing_body(Ctx *cx, void *arg)
{
	const Machine *base = machine_open(cx, "gf11");
	(void)arg;
	for (size_t i = 0; i < routine_def_count; i++) {
		Routine *r = schedule(cx, base, routine_record(cx, base, &routine_defs[i]), &(ScheduleOptions){ .level = 0 });
		Machine *m = NEW(&cx->keep, 1, Machine);
		*m = *base;
		m->registers = 512;
		m->conditions = 16;
		m->sram *= 4;
		m->block *= 4;
		m->dram_interval = m->switch_interval = m->dram_busy = 1;
		assert_null(check_routine(cx, m, r));
	}
}

static void test_easing(void **state)
{
	(void)state;
	guarded_run(easing_body);
	RUN(MP_OK, "\"rows\"", "evaluate", ENCODER, "--procs=13", "--cases=26", "--compiler=1989", "--json");
	json_t *j = output_json();
	static const char *const easier[][2] = { { "registers", "512" },     { "SRAM size", "64K" },
		                                     { "SRAM size", "512K" },    { "DRAM interval", "2" },
		                                     { "DRAM interval", "1" },   { "switch interval", "2" },
		                                     { "switch interval", "1" }, { "block", "80K" } };
	for (size_t i = 0; i < COUNT(easier); i++)
		assert_true(number(row_find(j, "1989", easier[i][0], easier[i][1]), "ratio") >= 1);
	assert_true(number(row_find(j, "1989", "banks and interval", "16, 1"), "ratio") >=
	            number(row_find(j, "1989", "DRAM banks", "16"), "ratio"));
	json_decref(j);
}

/* Rows that are not possible have a reason; the others are complete. */
static void test_infeasible(void **state)
{
	(void)state;
	RUN(MP_OK, "\"error\": \"configuration 0 cannot be set", "evaluate", SOURCE_DIR "/examples/xor.topo", "--procs=5",
	    "--cases=10", "--machine=gf11-ring", "--compiler=1989", "--json");
	json_t *j = output_json();
	assert_non_null(json_object_get(row_find(j, "1989", "summing", "tree"), "error"));
	assert_non_null(json_object_get(row_find(j, "1989", "summing", "ring"), "mcps"));
	json_decref(j);
	RUN(MP_OK, "joins its processors in a ring", "sweep", "ring-only=1", "sum=tree,ring", "--procs=5", "--cases=10",
	    "--net=" ENCODER);
	RUN(MP_OK, "which gf11 does not have", "sweep", "fixed-address=1", "sigmoid=table,power2", "--procs=4", "--cases=8",
	    "--net=" ENCODER);
	RUN(MP_BAD_INPUT, "--procs cannot be '567'", "evaluate", ENCODER, "--procs=567");
	RUN(MP_BAD_INPUT, "--compiler cannot be 'worst'", "evaluate", ENCODER, "--compiler=worst");
	RUN(MP_FAILED, "/no-such-folder/x", "evaluate", ENCODER, "--out=/no-such-folder/x");
}

/* The same code on a machine that can start the next transfer sooner is never slower. */
static void test_monotone(void **state)
{
	(void)state;
	static const struct {
		const char *sweep, *part;
	} cases[] = {
		{ "switch-interval=1,2,4,8,16", "update" },
		{ "host-call=0..640:160", "host" },
		{ "dram-interval=4,8,16", "memory" },
		{ "alu-interval=1,2,4", "forward" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		RUN(MP_OK, "\"rows\"", "sweep", cases[i].sweep, "--procs=64", "--cases=640", "--json");
		json_t *j = output_json();
		const json_t *rows = json_object_get(j, "rows");
		for (size_t k = 1; k < json_array_size(rows); k++)
			assert_true(number(json_array_get(rows, k), cases[i].part) >=
			            number(json_array_get(rows, k - 1), cases[i].part));
		json_decref(j);
	}
}

static void test_drawings(void **state)
{
	(void)state;
	static const char *const files[] = { "evaluated/tornado-1.svg", "evaluated/evaluate.csv" };
	char text[200];
	RUN(MP_OK, "wrote evaluated/tornado-1.svg", "evaluate", SOURCE_DIR "/examples/xor.topo", "--procs=4", "--cases=8",
	    "--compiler=1989", "--out=evaluated");
	for (size_t i = 0; i < COUNT(files); i++) {
		FILE *f = fopen(files[i], "r");
		assert_non_null(f);
		assert_non_null(fgets(text, sizeof text, f));
		assert_non_null(strstr(text, i ? "network,compiler,feature,value,sum,mcps,ratio,cycles" : "<svg"));
		fclose(f);
		unlink(files[i]);
	}
	rmdir("evaluated");
}

/* ---- disks ---- */

/* Nothing is faster than data that is there in no time, also where it is more than DRAM holds. */
static void test_disks(void **state)
{
	static const char *const cases[] = { "--cases=3000", "--cases=12022", "--cases=12345" };
	(void)state;
	machine_write("three.machine", "base gf11\nprocessors 3 assumed\n");
	for (size_t i = 0; i < COUNT(cases); i++) {
		RUN(MP_OK, "\"rows\"", "disks", SOURCE_DIR "/examples/letters.topo", "--procs=1,2,3", cases[i],
		    "--machine=three.machine", "--json");
		json_t *all = output_json(), *row;
		size_t k;
		json_array_foreach(json_object_get(all, "rows"), k, row)
			assert_true(number(row, "mcps") > 0 && number(row, "mcps") <= number(row, "mcps_loaded"));
		assert_int_equal(k, 3);
		json_decref(all);
	}
	unlink("three.machine");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_disks),       cmocka_unit_test(test_sums),     cmocka_unit_test(test_crossings),
		cmocka_unit_test(test_table1_keys), cmocka_unit_test(test_evaluate), cmocka_unit_test(test_easing),
		cmocka_unit_test(test_infeasible),  cmocka_unit_test(test_monotone), cmocka_unit_test(test_drawings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
