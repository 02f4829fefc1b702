/* SPDX-License-Identifier: MIT */
/* Commands of the GF11 through the public header: reports, refused input, failing allocations. */
#include <unistd.h>

#include "gf11_command.h"

static void test_reports(void **state)
{
	(void)state;
	RUN(MP_OK, "# machine gf11-356", "machine", "gf11-356");
	RUN(MP_OK, "\"dram-banks\": {\"value\": 16, \"unit\": \"banks\", \"from\": \"assumed", "machine",
	    "--machine=gf11-banks16", "--json");
	RUN(MP_OK, "routine matrix-vector", "microcode", "matrix-vector", "--level=0");
	RUN(MP_OK, "\"checked\": true", "microcode", "dot", "--level=0", "--json");
	RUN(MP_OK, "\"verified\": true", "switch", "ring", "--json");
	RUN(MP_OK, "simulated cycles, 566 processors", "efficiency", "--routines", "--level=0");
	RUN(MP_OK, "\"name\": \"sigmoid-table\"", "efficiency", "--routines", "--level=0", "--json");
}

/* Last members of every report; JSON must be valid. */
static void ends_well(void)
{
	static const char *const keys[] = { "simulated_cycles", "processors", "simulated_seconds", "host_seconds",
		                                "times_real_time" };
	char key[40];
	assert_memory_equal(output.s, "{\"machine\": ", 12);
	assert_memory_equal(output.s + output.len - 2, "}\n", 3);
	for (size_t i = 0; i < COUNT(keys); i++) {
		snprintf(key, sizeof key, "\"%s\": ", keys[i]);
		assert_non_null(strstr(output.s, key));
	}
}

static void file_write_text(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void checksum_take(char sum[24])
{
	const char *at = strstr(output.s, "\"checksum\": ");
	assert_non_null(at);
	snprintf(sum, 24, "%.18s", at + 12);
}

/* However it is run, memory is the same afterwards; so it is when the text of its microcode is assembled. */
static void test_run(void **state)
{
	(void)state;
	static const char slow[] = "base gf11\nsram-interval 2 cycles assumed\n";
	char first[24], sum[24], path[40];
	snprintf(path, sizeof path, "commands-%ld.mc", (long)getpid());
	RUN(MP_OK, "\"routine_cycles\": 330, ", "run", "matrix-vector", "--level=0", "--procs=70", "--threads=1", "--json");
	ends_well();
	checksum_take(first);
	RUN(MP_OK, "\"mode\": \"fast\", \"threads\": 2", "run", "matrix-vector", "--procs=70", "--threads=2", "--json");
	checksum_take(sum);
	assert_string_equal(first, sum);
	RUN(MP_OK, "\"mode\": \"traced\"", "run", "matrix-vector", "--level=0", "--procs=70", "--traced", "--json");
	checksum_take(sum);
	assert_string_equal(first, sum);
	RUN(MP_OK, "\"calls\": 0, ", "run", "matrix-vector", "--level=0", "--procs=70", "--simulate", "--json");
	checksum_take(sum);
	assert_string_equal(first, sum);
	RUN(MP_OK, "# assembles back to the same words", "microcode", "matrix-vector", "--level=0");
	file_write_text(path, output.s, output.len);
	RUN(MP_OK, "\"assembles_back\": true", "microcode", path, "--json");
	ends_well();
	RUN(MP_OK, "\"operations\": 444, \"cycles\": 330, \"checked\": true}", "run", path, "--procs=70", "--json");
	checksum_take(sum);
	assert_string_equal(first, sum);
	RUN(MP_OK, "checksum of memory    ", "run", path, "--procs=3");
	RUN(MP_BAD_INPUT, "it has no recorded calls", "run", path, "--simulate");
	file_write_text("slow.machine", slow, sizeof slow - 1);
	RUN(MP_BAD_INPUT, "breaks a rule of the machine slow", "microcode", path, "--machine=slow.machine");
	remove(path);
	remove("slow.machine");
	RUN(MP_OK, "on gf11-ring, fast", "run", "exchange", "--level=0", "--machine=gf11-ring", "--procs=9");
	RUN(MP_BAD_INPUT, "--procs cannot be '567'", "run", "dot", "--procs=567");
	RUN(MP_BAD_INPUT, "--traced or to --simulate?", "run", "dot", "--traced", "--simulate");
}

/* One that fails is a line of the report, and the report goes out. */
static void test_failing(void **state)
{
	(void)state;
	static const char little[] = "base gf11\nsram 3K words assumed\n";
	file_write_text("short.machine", little, sizeof little - 1);
	RUN(MP_FAILED, "3 of 19 routines do not run on short", "efficiency", "--routines", "--level=0",
	    "--machine=short.machine", "--json");
	remove("short.machine");
	ends_well();
	assert_non_null(strstr(output.s, "{\"name\": \"backward\", \"error\": \"address "));
	assert_non_null(strstr(output.s, "{\"name\": \"dot\", \"operations\": 512, "));
	RUN(MP_FAILED, "port 3 is dead", "switch", "random:7", "--dead=port:3", "--json");
	ends_well();
	assert_non_null(strstr(output.s, "\"routed\": false"));
	RUN(MP_FAILED, "3 of 3 permutations cannot be routed", "switch", "random:1..3", "--dead=port:3");
}

static void test_refused(void **state)
{
	(void)state;
	mp_tool *tool;
	RUN(MP_BAD_INPUT, "did you mean 'microcode'", "micrcode", "dot");
	RUN(MP_BAD_INPUT, "has no option '--dead'", "microcode", "dot", "--dead=port:1");
	RUN(MP_BAD_INPUT, "has no option '--'", "microcode", "dot", "--");
	RUN(MP_BAD_INPUT, "--json takes no value", "microcode", "dot", "--json=1");
	RUN(MP_BAD_INPUT, "--level needs a value", "microcode", "dot", "--level");
	RUN(MP_BAD_INPUT, "--level cannot be '-1'", "microcode", "dot", "--level=-1");
	RUN(MP_BAD_INPUT, "--level cannot be '99999999999999999999'", "microcode", "dot", "--level=99999999999999999999");
	RUN(MP_BAD_INPUT, "run needs an operand", "run");
	RUN(MP_BAD_INPUT, "one operand too many", "microcode", "dot", "dot");
	RUN(MP_BAD_INPUT, "there is no routine 'dots'", "microcode", "dots");
	RUN(MP_BAD_INPUT, "the routines are: forward backward", "run");
	RUN(MP_OK, "forward            weighted sums of a bundle", "microcode");
	RUN(MP_BAD_INPUT, "which machine, 'gf11' or --machine 'gf11-ring'?", "machine", "gf11", "--machine=gf11-ring");
	RUN(MP_BAD_INPUT, "trace to where?", "trace", "dot");
	assert_int_equal(mp_tool_run(&tool, "gf11", 0, NULL, output_add, &output, NULL), MP_BAD_INPUT);
	mp_tool_close(tool);
	assert_int_equal(mp_tool_run(&tool, "cray", 0, NULL, output_add, &output, NULL), MP_BAD_INPUT);
	assert_non_null(strstr(mp_tool_messages(tool), "gf11"));
	mp_tool_close(tool);
	mp_tool_close(NULL);
	assert_non_null(strstr(mp_tool_messages(NULL), "memory"));
}

static void test_any_allocation_may_fail(void **state)
{
	(void)state;
	fail_each(2, (const char *const[]){ "machine", "--json" }, 1);
	fail_each(3, (const char *const[]){ "microcode", "matrix-vector", "--level=0" }, 1);
	fail_each(3, (const char *const[]){ "switch", "tree:2", "--json" }, 1);
	fail_each(4, (const char *const[]){ "run", "look-up", "--level=0", "--procs=2" }, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_failing),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_any_allocation_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
