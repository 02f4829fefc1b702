/* SPDX-License-Identifier: MIT */
/* JSON out.  Members come in one by one; what goes out is always valid JSON in UTF-8: text is escaped, bytes that are
 * not UTF-8 (file names may hold any) become U+FFFD, numbers are the shortest that read back as the same double,
 * whole ones without an exponent. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Length of the UTF-8 sequence at s, 0 if it is not one (too long, cut short, a surrogate, past U+10FFFF). */
static size_t utf8_length(const unsigned char *s)
{
	static const struct {
		unsigned char low, high, second_low, second_high;
		size_t length;
	} lead[] = {
		{ 0x00, 0x7F, 0x00, 0x00, 1 }, { 0xC2, 0xDF, 0x80, 0xBF, 2 }, { 0xE0, 0xE0, 0xA0, 0xBF, 3 },
		{ 0xE1, 0xEC, 0x80, 0xBF, 3 }, { 0xED, 0xED, 0x80, 0x9F, 3 }, { 0xEE, 0xEF, 0x80, 0xBF, 3 },
		{ 0xF0, 0xF0, 0x90, 0xBF, 4 }, { 0xF1, 0xF3, 0x80, 0xBF, 4 }, { 0xF4, 0xF4, 0x80, 0x8F, 4 },
	};
	for (size_t i = 0; i < COUNT(lead); i++) {
		if (s[0] < lead[i].low || s[0] > lead[i].high)
			continue;
		if (lead[i].length > 1 && (s[1] < lead[i].second_low || s[1] > lead[i].second_high))
			return 0;
		for (size_t k = 2; k < lead[i].length; k++)
			if ((s[k] & 0xC0) != 0x80)
				return 0;
		return lead[i].length;
	}
	return 0;
}

static void quote(FILE *f, const char *text)
{
	static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: the byte, the letter after the backslash */
	const unsigned char *s = (const unsigned char *)text;
	fputc('"', f);
	while (*s) {
		size_t n = utf8_length(s);
		const char *pair = NULL;
		for (size_t i = 0; i + 1 < sizeof named - 1; i += 2)
			if ((unsigned char)named[i] == *s)
				pair = &named[i];
		if (!n)
			fputs("\xEF\xBF\xBD", f);
		else if (pair)
			fprintf(f, "\\%c", pair[1]);
		else if (*s < 0x20 || *s == 0x7F)
			fprintf(f, "\\u%04x", *s);
		else
			fwrite(s, 1, n, f);
		s += n ? n : 1;
	}
	fputc('"', f);
}

/* What stands before a member: comma, line, key. */
static void member(Json *j, const char *key)
{
	if (j->more)
		fputs(j->lines ? "," : ", ", j->f);
	if (j->lines && j->depth)
		fprintf(j->f, "\n%*s", 2 * j->depth, "");
	if (key) {
		quote(j->f, key);
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
		quote(j->f, value);
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

void json_real(Json *j, const char *key, double value)
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
