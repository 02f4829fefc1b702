/* SPDX-License-Identifier: MIT */
/* JSON out. In: members and elements, one by one. Out: their text, with commas between them; strings quoted and
 * escaped, bytes that are not UTF-8 written as '?'. One flag is enough for any nesting: after a container is
 * closed, the one around it is not empty. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

/* Readers refuse a header that is not UTF-8. */
size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] < 0x80                   ? 1
	           : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
	           : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
	           : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
	                                         : 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
	bool outside = (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF4 && s[1] > 0x8F);
	return n > 2 && (overlong || outside) ? 0 : n;
}

void json_put(Buf *b, const char *text)
{
	buf_puts(b, "\"");
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		size_t n = utf8_length(s);
		if (n == 0)
			buf_puts(b, "?");
		else if (*s == '"' || *s == '\\')
			buf_printf(b, "\\%c", *s);
		else if (*s < ' ')
			buf_printf(b, "\\u%04x", *s);
		else
			buf_add(b, s, n);
		s += n ? n : 1;
	}
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
	for (const unsigned char *s = (const unsigned char *)name; *s;) {
		size_t n = utf8_length(s);
		if (n == 0)
			buf_printf(&b, "\\x%02X", *s);
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
