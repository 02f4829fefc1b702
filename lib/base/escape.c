/* SPDX-License-Identifier: MIT */
/* Text from outside, escaped: names in data, file names, words of a command line.  In: any bytes.  Out: valid UTF-8
 * without characters that a terminal or a viewer interprets: C0, DEL, C1, directions (overrides, isolates, marks) and
 * separators of lines.  This is the only place that knows them; messages, tables, plots, JSON and the command line
 * all call it.
 *
 *     TEXT_SHOWN   \n \r \t \x1b \u202e, bytes that are not UTF-8 as \x80; cut after MAX_SHOWN bytes
 *     TEXT_LINES   the same, but tabs and ends of lines pass, and nothing is cut
 *     TEXT_JSON    the inside of a JSON string; bytes that are not UTF-8 become U+FFFD
 *
 * Escaping twice gives the same as once, as a backslash is not escaped (but in JSON). */
#include <stdio.h>
#include <string.h>

#include "base.h"

size_t utf8_read(const char *text, size_t len, uint32_t *c)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = len == 0                      ? 0
	           : s[0] < 0x80                 ? 1
	           : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
	           : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
	           : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
	                                         : 0;
	if (n == 0 || n > len)
		return 0;
	*c = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xC0) != 0x80)
			return 0;
		*c = *c << 6 | (s[i] & 0x3F);
	}
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	return *c < least[n] || *c > 0x10FFFF || (*c >= 0xD800 && *c < 0xE000) ? 0 : n;
}

bool char_is_hidden(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{ 0x00, 0x1F },     { 0x7F, 0x9F },     { 0x061C, 0x061C }, { 0x200E, 0x200F },
		{ 0x2028, 0x202E }, { 0x2066, 0x2069 }, { 0xFEFF, 0xFEFF },
	};
	if (c >= ' ' && c < 0x7F)
		return false;
	for (size_t i = 0; i < COUNT(hidden); i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return true;
	return false;
}

static const char named[] =
	"\nn\rr\tt\bb\ff\"\"\\\\"; /* the byte, the letter after the backslash; the last four: JSON */
enum { NAMED_SHOWN = 6, NAMED_JSON = sizeof named - 1 };

/* The escape of the character of n bytes at s, n 0: a byte that is none; "": it stands for itself. */
static void escape(char out[16], const char *s, size_t n, uint32_t c, int form)
{
	out[0] = '\0';
	if (n == 0 && form == TEXT_JSON)
		strcpy(out, "\xEF\xBF\xBD");
	else if (n == 0)
		snprintf(out, 16, "\\x%02x", (unsigned char)*s);
	else if (form == TEXT_LINES && (c == '\n' || c == '\t'))
		return;
	for (int i = 0; n && !out[0] && i < (form == TEXT_JSON ? NAMED_JSON : NAMED_SHOWN); i += 2)
		if ((unsigned char)named[i] == c)
			snprintf(out, 16, "\\%c", named[i + 1]);
	if (n && !out[0] && char_is_hidden(c))
		snprintf(out, 16, form == TEXT_JSON || c >= 0x80 ? "\\u%04x" : "\\x%02x", c);
}

/* Where to cut at `max` bytes, before the character that does not fit. */
static size_t cut_at(const char *s, size_t max)
{
	size_t len = max;
	while (len > max - 4 && (s[len] & 0xC0) == 0x80)
		len--;
	return len;
}

void text_write(const char *s, size_t whole, int form, mp_write_fn *write, void *user)
{
	size_t len = form == TEXT_SHOWN && whole > MAX_SHOWN ? cut_at(s, CUT_SHOWN) : whole, begun = 0, i = 0;
	while (i < len) {
		char out[16];
		uint32_t c = 0;
		if (s[i] >= ' ' && s[i] < 127 && (form != TEXT_JSON || (s[i] != '"' && s[i] != '\\'))) {
			i++;
			continue;
		}
		size_t n = utf8_read(s + i, len - i, &c);
		escape(out, s + i, n, c, form);
		if (out[0] && i > begun)
			write(user, s + begun, i - begun);
		if (out[0])
			write(user, out, strlen(out));
		i += n ? n : 1;
		begun = out[0] ? i : begun;
	}
	if (len > begun)
		write(user, s + begun, len - begun);
	if (len < whole) {
		char cut[40];
		snprintf(cut, sizeof cut, "... (%zu bytes)", whole);
		write(user, cut, strlen(cut));
	}
}

static void add(void *user, const char *text, size_t len) { buf_add(user, text, len); }

void buf_text(Buf *b, const char *text, size_t len, int form)
{
	buf_puts(b, "");
	text_write(text, len, form, add, b);
}

const char *text_escaped(Arena *a, const char *text)
{
	Buf b = { .arena = a };
	buf_text(&b, text, strlen(text), TEXT_SHOWN);
	return b.s;
}

const char *text_shown(Ctx *cx, Text t)
{
	enum { SHOWN = 40 };
	Buf b = { .arena = &cx->scratch };
	if (t.len <= SHOWN) {
		buf_text(&b, t.s, t.len, TEXT_SHOWN);
		return b.s;
	}
	buf_text(&b, t.s, cut_at(t.s, SHOWN), TEXT_SHOWN);
	buf_printf(&b, "... (%u bytes)", t.len);
	return b.s;
}

/* Words of a message that are too long to be read, such as a name of megabytes. */
const char *message_escaped(Arena *a, const char *text)
{
	Buf b = { .arena = a };
	size_t len;
	buf_puts(&b, "");
	for (const char *p = text; *p; p += len) {
		len = strcspn(p, " ");
		bool quote = len > MAX_SHOWN && p[len - 1] == '\'';
		buf_text(&b, p, len - quote, TEXT_SHOWN);
		buf_puts(&b, quote ? "'" : "");
		for (; p[len] == ' '; len++)
			buf_puts(&b, " ");
	}
	return b.s;
}
