/* SPDX-License-Identifier: MIT */
/* The table writer: the same rows as text, JSON and CSV. */
#include <math.h>

#include "test.h"

#include "plot.h"

static const Column columns[] = {
	{ "name", "name", .width = -6 },
	{ "count", "n", .width = 4 },
	{ "share", "%", 5, "%.1f", "%.4f", .percent = true },
	{ .key = "exact" },
	{ "x", .object = "inner" },
	{ "y", "y", 8, .object = "inner" },
	{ .title = "" },
};

static void rows(const Table *t)
{
	table_start(t, "rows");
	table_row(t, (TableCell[]){ tc_text("a,b"), tc_marked(tc_count(7), '*'), tc_real(0.125), tc_real(1.0 / 3),
	                            tc_count(1), tc_real(12345.6), tc_text("") });
	table_row(t, (TableCell[]){ tc_text("say \"x\""), tc_none(), tc_real(NAN), tc_flag(true), tc_none(), tc_none(),
	                            tc_text("remark") });
	table_row_failed(t, (TableCell[]){ tc_text("c") }, 1, "error", "no room");
	table_row(t,
	          (TableCell[]){ tc_text(NULL), tc_count(0), tc_real(-1), tc_real(0), tc_none(), tc_real(0.5), tc_none() });
	table_end(t);
}

static void body(Ctx *cx, void *arg)
{
	Buf text = { .arena = &cx->keep }, json = text, csv = text, members = text;
	JsonWriter j = { .out = &json }, object = { .out = &members };
	(void)arg;
	rows(&(Table){ columns, COUNT(columns), &text, &j, &csv });
	assert_string_equal(text.s, "name      n     %        y\n"
	                            "a,b      7*  12.5    12346\n"
	                            "say \"x\"    -     -        - remark\n"
	                            "c       no room\n"
	                            "-         0 -100.0      0.5 -\n");
	assert_string_equal(
		json.s,
		"\"rows\": [{\"name\": \"a,b\", \"count\": 7, \"share\": 0.1250, \"exact\": 0.333333, \"inner\": {\"x\": 1, "
		"\"y\": 12345.6}}, {\"name\": \"say \\\"x\\\"\", \"share\": null, \"exact\": true}, "
		"{\"name\": \"c\", \"error\": \"no room\"}, "
		"{\"name\": null, \"count\": 0, \"share\": -1.0000, \"exact\": 0, \"inner\": {\"y\": 0.5}}]");
	assert_string_equal(csv.s, "name,count,share,exact,inner_x,inner_y\n"
	                           "\"a,b\",7,0.1250,0.333333,1,12345.6\n"
	                           "\"say \"\"x\"\"\",,,yes,,\n"
	                           "c,,,,,\n"
	                           ",0,-1.0000,0,,0.5\n");
	const Table t = { .column = columns, .columns = 2, .json = &object };
	jw_start(&object, NULL, '{');
	table_members(&t, (TableCell[]){ tc_text("c"), tc_count(3) });
	jw_end(&object, '}');
	assert_string_equal(members.s, "{\"name\": \"c\", \"count\": 3}");
}

static void test_outputs(void **state)
{
	Ctx cx;
	(void)state;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, body, NULL), MP_OK);
	ctx_free(&cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_outputs) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
