/* SPDX-License-Identifier: MIT */
/* Commands of the GF11 through the public header: what they report, what they refuse, and any allocation may fail. */
#include "test.h"

typedef struct Output { char s[1 << 20]; size_t len; } Output;

static Output output;

static void output_add(void *user, const char *text, size_t len)
{
	Output *o = user;
	assert_true(o->len + len < sizeof o->s);
	memcpy(o->s + o->len, text, len);
	o->len += len;
	o->s[o->len] = '\0';
}

/* Runs the words, which end with NULL; says is a part of the report or of the messages. */
static void command(mp_status expected, const char *says, const char *const *words)
{
	int count = 0;
	mp_tool *tool;
	while (words[count])
		count++;
	output.len = 0;
	output.s[0] = '\0';
	mp_status status = mp_tool_run(&tool, "gf11", count, words, output_add, &output, NULL);
	const char *text = status ? mp_tool_messages(tool) : output.s;
	if (status != expected || !strstr(text, says))
		print_error("status %d, '%s' is not in: %s\n", status, says, text);
	assert_int_equal(status, expected);
	assert_non_null(strstr(text, says));
	assert_true(!status || output.len == 0);
	mp_tool_close(tool);
}

#define RUN(status, says, ...) command(status, says, (const char *const[]){ __VA_ARGS__, NULL })

static void test_reports(void **state)
{
	(void)state;
	RUN(MP_OK, "# machine gf11-356", "machine", "gf11-356");
	RUN(MP_OK, "\"dram-banks\": 16", "machine", "--machine=gf11-banks16", "--json");
	RUN(MP_OK, "routine matrix-vector", "microcode", "matrix-vector", "--level=0");
	RUN(MP_OK, "\"checked\": true", "microcode", "dot", "--level=0", "--json");
	RUN(MP_OK, "\"verified\": true", "switch", "ring", "--json");
	RUN(MP_OK, "simulated cycles, 566 processors", "efficiency", "--routines", "--level=0");
	RUN(MP_OK, "\"name\": \"sigmoid-table\"", "efficiency", "--routines", "--level=0", "--json");
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
	RUN(MP_BAD_INPUT, "microcode needs an operand", "microcode");
	RUN(MP_BAD_INPUT, "one operand too many", "microcode", "dot", "dot");
	RUN(MP_BAD_INPUT, "there is no routine 'dots'", "microcode", "dots");
	RUN(MP_BAD_INPUT, "efficiency of what?", "efficiency");
	RUN(MP_BAD_INPUT, "trace to where?", "trace", "dot");
	assert_int_equal(mp_tool_run(&tool, "gf11", 0, NULL, output_add, &output, NULL), MP_BAD_INPUT);
	mp_tool_close(tool);
	assert_int_equal(mp_tool_run(&tool, "cray", 0, NULL, output_add, &output, NULL), MP_BAD_INPUT);
	assert_non_null(strstr(mp_tool_messages(tool), "gf11"));
	mp_tool_close(tool);
	mp_tool_close(NULL);
	assert_non_null(strstr(mp_tool_messages(NULL), "memory"));
}

static void fail_each(int count, const char *const *words)
{
	mp_status status = MP_NO_MEMORY;
	for (long n = 1; status == MP_NO_MEMORY; n++) {
		Meter meter = { .fail_at = n };
		mp_allocator alloc = { meter_resize, &meter };
		mp_tool *tool;
		output.len = 0;
		status = mp_tool_run(&tool, "gf11", count, words, output_add, &output, &alloc);
		mp_tool_close(tool);
		assert_int_equal(meter.live, 0);
		assert_true(n < 5000);
	}
	assert_int_equal(status, MP_OK);
}

static void test_any_allocation_may_fail(void **state)
{
	(void)state;
	fail_each(2, (const char *const[]){ "machine", "--json" });
	fail_each(3, (const char *const[]){ "microcode", "matrix-vector", "--level=0" });
	fail_each(3, (const char *const[]){ "switch", "tree:2", "--json" });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_any_allocation_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
