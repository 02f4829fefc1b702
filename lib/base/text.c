/* SPDX-License-Identifier: MIT */
/* Control bytes in text.  In: a text file, or a name from a binary one.  Out: nothing, or failure at the first control
 * byte: C0 other than tab, CR and LF, or DEL.  A CR must end its line.
 *
 * Names are compared and printed as C strings, and a crash can leave a tail of zeros behind, so no reader accepts
 * such bytes anywhere, comments included. */
#include <stdio.h>
#include <string.h>

#include "base.h"

static inline bool is_control(unsigned char c) { return (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 127; }

bool text_is(Text t, const char *word) { return strlen(word) == t.len && memcmp(t.s, word, t.len) == 0; }

const char *control_find(const char *s, size_t len)
{
	enum { BLOCK = 64 }; /* the compiler makes vector code of a loop of known length */
	size_t i = 0;
	for (; i + BLOCK <= len; i += BLOCK) {
		unsigned char any = 0;
		for (size_t k = 0; k < BLOCK; k++) {
			unsigned char c = (unsigned char)s[i + k];
			any |= (unsigned char)((c < ' ') & (c != '\t') & (c != '\n') & (c != '\r')) | (c == 127);
		}
		if (any)
			break;
	}
	for (; i < len; i++)
		if (is_control((unsigned char)s[i]))
			return s + i;
	return NULL;
}

static const char *control_name(unsigned char c)
{
	return c == 0 ? " (NUL)" : c == 27 ? " (escape)" : c == 12 ? " (form feed)" : c == 127 ? " (DEL)" : "";
}

static _Noreturn void control_refuse(Ctx *cx, const Src *src, const char *at)
{
	enum { LOOK = 1 << 20 }; /* a hole in a sparse file may be terabytes */
	const char *last = src->text + src->len, *p = at, *end = last - at < LOOK ? last : at + LOOK;
	unsigned char c = (unsigned char)*at;
	while (p < end && !*p)
		p++;
	fail_at(cx, (Loc){ src, (size_t)(at - src->text) },
	        p == last && at > src->text
	            ? "the rest of the file is NUL bytes, as a crash can leave them: use another copy of it"
	            : "save the file as plain text (UTF-8), without control bytes other than tab and line ends",
	        "byte 0x%02x%s is not text", c, control_name(c));
}

/* Carriage returns stand at the end of a line only; several may. */
static void returns_check(Ctx *cx, const Src *src, const char *p, const char *end)
{
	const char *last = src->text + src->len;
	while (p < end && (p = memchr(p, '\r', (size_t)(end - p))) != NULL) {
		const char *at = p;
		while (p < last && *p == '\r')
			p++;
		if (p < last && *p != '\n')
			fail_at(cx, (Loc){ src, (size_t)(at - src->text) }, "end lines with LF or CR LF",
			        "there is a carriage return inside the line");
	}
}

void src_check_text(Ctx *cx, const Src *src)
{
	enum { SLICE = 1 << 16 }; /* stays in the cache for the second look */
	size_t released = 0;
	for (size_t at = 0, n; at < src->len; at += n) {
		n = min_u64(src->len - at, SLICE);
		const char *found = control_find(src->text + at, n);
		if (found)
			control_refuse(cx, src, found);
		returns_check(cx, src, src->text + at, src->text + at + n);
		src_release(src, &released, at + n);
	}
}

size_t src_text_start(const Src *src) { return src->len >= 3 && memcmp(src->text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; }

bool src_begins(const Src *src, const char *text, char comment)
{
	size_t at = src_text_start(src), n = strlen(text);
	while (at < src->len && (strchr(" \t\r\n", src->text[at]) || (comment && src->text[at] == comment))) {
		const char *eol = memchr(src->text + at, '\n', src->len - at);
		at = src->text[at] != comment ? at + 1 : eol ? (size_t)(eol - src->text) : src->len;
	}
	return src->len - at >= n && memcmp(src->text + at, text, n) == 0;
}

void name_check(Ctx *cx, Loc at, const char *what, Text name)
{
	const char *found = control_find(name.s, name.len);
	if (!found)
		return;
	unsigned char c = (unsigned char)*found;
	fail_at(cx, at, "write it again without control bytes", "%s '%s' has byte 0x%02x%s in it", what,
	        text_shown(cx, name), c, control_name(c));
}
