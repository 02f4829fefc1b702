/* SPDX-License-Identifier: MIT */
/* Table 1 extended: every summation method on 8 to 566 processors, as a report and as figures. Slow: dozens of
 * programs for NETtalk's network are compiled in best mode. */
#include <unistd.h>

#include "gf11_command.h"

static void check_row(const json_t *row, double *fastest, bool *marked)
{
	double mcps = number(row, "mcps"), procs = number(row, "procs");
	const char *sum = json_string_value(json_object_get(row, "sum"));
	assert_true(mcps > 0 && mcps < procs * 20 / 4.2);
	assert_true(number(row, "update") > 13826 * 7); /* two transfers of four cycles, but for one of the processors */
	if (strcmp(sum, "ring") == 0) {
		assert_true(*marked); /* of the processors before */
		*fastest = 0;
		*marked = false;
	}
	if (json_is_true(json_object_get(row, "best"))) {
		assert_false(*marked);
		assert_true(mcps > *fastest);
		*marked = true;
	}
	*fastest = mcps > *fastest ? mcps : *fastest;
}

static void test_extended(void **state)
{
	(void)state;
	double fastest = 0;
	bool marked = true, tree = false;
	RUN(MP_OK, "\"extended\"", "table1", "--json");
	json_t *j = output_json(), *extended = json_object_get(j, "extended"), *rows = json_object_get(extended, "rows");
	assert_int_equal(json_array_size(rows), 36);
	for (size_t i = 0; i < json_array_size(rows); i++)
		check_row(json_array_get(rows, i), &fastest, &marked);
	assert_true(marked && fastest > 2000);
	const json_t *crossovers = json_object_get(extended, "crossovers");
	for (size_t i = 0; i < json_array_size(crossovers); i++) {
		const json_t *x = json_array_get(crossovers, i);
		tree |= strcmp(json_string_value(json_object_get(x, "faster")), "tree") == 0 &&
		        strcmp(json_string_value(json_object_get(x, "slower")), "ring") == 0 && number(x, "from") <= 16;
	}
	assert_true(tree);
	json_decref(j);
}

static void test_figures(void **state)
{
	(void)state;
	static const char *const names[] = { "figure8", "figure9", "figure10", "figure11", "table1" };
	char path[64], line[128];
	RUN(MP_OK, "\"drawn/table1.svg\"", "figures", "--out=drawn", "--json");
	for (size_t i = 0; i < 2 * COUNT(names); i++) {
		snprintf(path, sizeof path, "drawn/%s.%s", names[i / 2], i % 2 ? "svg" : "csv");
		FILE *f = fopen(path, "r");
		assert_non_null(f);
		assert_non_null(fgets(line, sizeof line, f));
		assert_non_null(strstr(line, i % 2 ? "<svg" : "procs,"));
		fclose(f);
		unlink(path);
	}
	rmdir("drawn");
}

/* Drawings; those of 8 to 11 and the table are left out. */
static void test_drawings(void **state)
{
	(void)state;
	static const char *const names[] = { "1", "2", "3", "4", "5", "6", "7", "12" };
	char path[64], text[4096];
	RUN(MP_OK, "\"largest_error\": 0.000166", "figures", "--out=drawings", "--json", "1", "2", "3", "4", "5", "6", "7",
	    "12");
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof path, "drawings/figure%s.svg", names[i]);
		FILE *f = fopen(path, "r");
		assert_non_null(f);
		assert_true(fread(text, 1, sizeof text, f) > 1000);
		assert_memory_equal(text, "<svg", 4);
		fclose(f);
		unlink(path);
	}
	assert_int_equal(rmdir("drawings"), 0);
	RUN(MP_BAD_INPUT, "--figure cannot be '13'", "figures", "13", "--out=drawings");
	rmdir("drawings");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_extended), cmocka_unit_test(test_figures),
		                                cmocka_unit_test(test_drawings) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
