/* SPDX-License-Identifier: MIT */
/* JSON out. In: members and elements, one by one. Out: their text, with commas between them; strings quoted and
 * escaped (escape.c). One flag is enough for any nesting: after a container is
 * closed, the one around it is not empty. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

void json_put(Buf *b, const char *text)
{
	buf_puts(b, "\"");
	buf_text(b, text, strlen(text), TEXT_JSON);
	buf_puts(b, "\"");
}

static void member_start(JsonWriter *j, const char *key)
{
	if (j->comma)
		buf_puts(j->out, ", ");
	j->comma = true;
	if (!key)
		return;
	json_put(j->out, key);
	buf_puts(j->out, ": ");
}

void jw_start(JsonWriter *j, const char *key, char bracket)
{
	member_start(j, key);
	buf_add(j->out, &bracket, 1);
	j->comma = false;
}

void jw_end(JsonWriter *j, char bracket)
{
	buf_add(j->out, &bracket, 1);
	j->comma = true;
}

void jw_text(JsonWriter *j, const char *key, const char *text)
{
	member_start(j, key);
	if (text)
		json_put(j->out, text);
	else
		buf_puts(j->out, "null");
}

void jw_count(JsonWriter *j, const char *key, uint64_t n)
{
	member_start(j, key);
	buf_printf(j->out, "%" PRIu64, n);
}

void jw_real(JsonWriter *j, const char *key, const char *format, double v)
{
	member_start(j, key);
	if (isfinite(v))
		buf_printf(j->out, format ? format : "%.6g", v);
	else
		buf_puts(j->out, "null");
}

void jw_flag(JsonWriter *j, const char *key, bool flag)
{
	member_start(j, key);
	buf_puts(j->out, flag ? "true" : "false");
}

/* ---- names ---- */

const char *name_escape(Arena *arena, const char *name)
{
	Buf b = { .arena = arena };
	buf_puts(&b, "");
	for (const char *s = name, *end = s + strlen(s); s < end;) {
		uint32_t c;
		size_t n = utf8_read(s, (size_t)(end - s), &c);
		if (n == 0)
			buf_printf(&b, "\\x%02X", (unsigned char)*s);
		else
			buf_add(&b, *s == '\\' ? (const void *)"\\\\" : s, *s == '\\' ? 2 : n);
		s += n ? n : 1;
	}
	return b.s;
}

char *name_read(Arena *arena, const char *text)
{
	char *name = arena_copy(arena, text, strlen(text)), *to = name;
	for (const char *s = text; *s; s++) {
		if (*s != '\\') {
			*to++ = *s;
			continue;
		}
		s++;
		unsigned byte = '\\';
		if (*s == 'x') {
			char digits[3] = { s[1], s[1] ? s[2] : '\0', '\0' };
			if (strspn(digits, "0123456789ABCDEF") != 2)
				return NULL;
			byte = (unsigned)strtoul(digits, NULL, 16);
			s += 2;
		} else if (*s != '\\') {
			return NULL;
		}
		*to++ = (char)byte;
		if (control_find(to - 1, 1))
			return NULL;
	}
	*to = '\0';
	return name;
}
