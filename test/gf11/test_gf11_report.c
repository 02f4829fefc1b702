/* SPDX-License-Identifier: MIT */
/* The report's statements: every command that is said to show one does so; doc/report.md has the same tables; nothing
 * is missing. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gf11_command.h"

enum { MOST_COMMANDS = 128 };

/* What a command printed, once for all rows that name it. */
typedef struct Ran {
	const char *command;
	char *text;
} Ran;
static Ran ran[MOST_COMMANDS];
static uint32_t commands;

static char *file_text(FILE *f)
{
	size_t len = 0, most = 1 << 16, got;
	char *text = malloc(most);
	assert_non_null(text);
	while ((got = fread(text + len, 1, most - len - 1, f)) > 0) {
		len += got;
		if (most - len < 2) {
			text = realloc(text, most *= 2);
			assert_non_null(text);
		}
	}
	text[len] = '\0';
	return text;
}

static const char *output_of(const char *words)
{
	char line[1024];
	const char *program = getenv("MICROPROP");
	for (uint32_t i = 0; i < commands; i++)
		if (strcmp(ran[i].command, words) == 0)
			return ran[i].text;
	assert_non_null(program);
	assert_memory_equal(words, "microprop ", 10);
	snprintf(line, sizeof line, "'%s' %s 2>&1", program, words + 10);
	FILE *f = popen(line, "r");
	assert_non_null(f);
	assert_true(commands < MOST_COMMANDS);
	ran[commands] = (Ran){ words, file_text(f) };
	pclose(f);
	return ran[commands++].text;
}

static const char *member(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));
	assert_non_null(text);
	return text;
}

/* ctest -R test_gf11_NAME: that there is such a test. */
static bool test_exists(const char *name)
{
	char path[256];
	snprintf(path, sizeof path, "%s/test/gf11/%s.c", SOURCE_DIR, name);
	return access(path, R_OK) == 0;
}

static void test_statements(void **state)
{
	(void)state;
	uint32_t failed = 0;
	if (!getenv("MICROPROP"))
		skip();
	assert_int_equal(chdir(SOURCE_DIR), 0);
	RUN(MP_OK, "\"missing\": ", "report", "--json");
	json_t *j = output_json(), *rows = json_object_get(j, "rows");
	assert_true(number(j, "statements") >= 95 && number(j, "missing") == 0);
	assert_true(number(j, "statements") == number(j, "as_stated") + number(j, "different") + number(j, "missing"));
	assert_true(json_array_size(rows) == number(j, "statements"));
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const char *command = member(row, "command"), *shows = member(row, "shows");
		bool good = strncmp(command, "ctest -R ", 9) == 0 ? test_exists(command + 9)
		                                                  : strstr(output_of(command), shows) != NULL;
		if (!good)
			print_error("section %s, %s: '%s' is not in what this prints: %s\n", member(row, "section"),
			            member(row, "statement"), shows, command);
		failed += !good;
		/* A difference is explained. */
		assert_true(strcmp(member(row, "verdict"), "different") != 0 || *member(row, "why"));
	}
	json_decref(j);
	assert_int_equal(failed, 0);
	for (uint32_t i = 0; i < commands; i++)
		free(ran[i].text);
}

/* The page is what the command prints, behind its first heading. */
static void test_page(void **state)
{
	(void)state;
	FILE *f = fopen(SOURCE_DIR "/doc/report.md", "r");
	assert_non_null(f);
	char *page = file_text(f), *at = strstr(page, "\n<!-- microprop gf11 report -->\n");
	fclose(f);
	assert_non_null(at);
	at = strstr(at + 1, "\n") + 1;
	RUN(MP_OK, "statements: ", "report");
	char *end = strstr(output.s, "\n# ");
	assert_non_null(end);
	*end = '\0';
	if (strcmp(at, output.s) != 0)
		print_error("doc/report.md differs: microprop gf11 report | sed '/^# /d' makes what follows its comment\n");
	assert_string_equal(at, output.s);
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_page), cmocka_unit_test(test_statements) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
