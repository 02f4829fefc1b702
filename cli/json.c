/* SPDX-License-Identifier: MIT */
/* JSON out.  Members come in one by one; what goes out is always valid JSON in UTF-8: text is escaped, bytes that are
 * not UTF-8 (file names may hold any) become U+FFFD, numbers are the shortest that read back as the same double,
 * whole ones without an exponent. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* What stands before a member: comma, line, key. */
static void member(Json *j, const char *key)
{
	if (j->more)
		fputs(j->lines ? "," : ", ", j->f);
	if (j->lines && j->depth)
		fprintf(j->f, "\n%*s", 2 * j->depth, "");
	if (key) {
		show_json(j->f, key);
		fputs(": ", j->f);
	}
	j->more = true;
}

void json_open(Json *j, const char *key, char bracket)
{
	member(j, key);
	fputc(bracket, j->f);
	j->depth++;
	j->more = false;
}

void json_close(Json *j, char bracket)
{
	j->depth--;
	if (j->lines && j->more)
		fprintf(j->f, "\n%*s", 2 * j->depth, "");
	fputc(bracket, j->f);
	j->more = true;
}

void json_text(Json *j, const char *key, const char *value)
{
	member(j, key);
	if (value)
		show_json(j->f, value);
	else
		fputs("null", j->f);
}

void number_print(FILE *f, double value)
{
	char s[40];
	if (fabs(value) < 1e15 && value == floor(value)) {
		fprintf(f, "%.0f", value);
		return;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(s, sizeof s, "%.*g", digits, value);
		if (strtod(s, NULL) == value)
			break;
	}
	fputs(s, f);
}

void json_number(Json *j, const char *key, double value)
{
	member(j, key);
	if (isfinite(value))
		number_print(j->f, value);
	else
		fputs("null", j->f);
}

void json_count(Json *j, const char *key, uint64_t value)
{
	member(j, key);
	fprintf(j->f, "%llu", (unsigned long long)value);
}

void json_bool(Json *j, const char *key, bool value)
{
	member(j, key);
	fputs(value ? "true" : "false", j->f);
}

void json_members(Json *j, const char *object)
{
	size_t len = object ? strlen(object) : 0;
	if (len <= strlen("{}"))
		return;
	member(j, NULL);
	fwrite(object + 1, 1, len - 2, j->f);
}

void json_end(Json *j)
{
	json_close(j, '}');
	fputc('\n', j->f);
}
