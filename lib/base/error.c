/* SPDX-License-Identifier: MIT */
/* Messages: what is wrong, where, and what would be right.
 *
 *     net.topo:3:9: error: there is no group 'hiden'
 *       connect hiden -> out
 *               ^
 *       did you mean 'hidden'?
 *
 * Messages collect as text in the context; failing unwinds to its setjmp (edge).  An out-of-memory message must not
 * allocate: it goes into a fixed buffer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

enum { LINE_SHOWN = 160 }; /* longer lines are shown around the place */

static _Noreturn void unwind(Ctx *cx, Status status)
{
	cx->status = status;
	longjmp(*cx->edge, 1);
}

/* The line of `at`, its number and the column, both from 1. */
static const char *find_line(Loc at, size_t *line, size_t *col, size_t *len)
{
	const char *text = at.src->text;
	size_t off = at.off < at.src->len ? at.off : at.src->len, start = 0;
	*line = 1;
	for (size_t i = 0; i < off; i++) {
		if (text[i] == '\n') {
			++*line;
			start = i + 1;
		}
	}
	*col = off - start + 1;
	const char *end = memchr(text + start, '\n', at.src->len - start);
	*len = end ? (size_t)(end - (text + start)) : at.src->len - start;
	if (*len && text[start + *len - 1] == '\r')
		--*len;
	return text + start;
}

static void show_line(Buf *b, const char *s, size_t len, size_t col)
{
	size_t from = 0;
	if (col > LINE_SHOWN / 2 && len > LINE_SHOWN)
		from = col - LINE_SHOWN / 2;
	size_t shown = len - (from < len ? from : len);
	if (shown > LINE_SHOWN)
		shown = LINE_SHOWN;
	buf_puts(b, "  ");
	for (size_t i = 0; i < shown; i++) {
		char c = s[from + i];
		char plain = (c >= ' ' && c != 127) || (c & 0x80) ? c : ' ';
		buf_add(b, &plain, 1);
	}
	buf_puts(b, "\n  ");
	for (size_t i = from + 1; i < col; i++) /* UTF-8 continuation bytes take no column */
		if (i > len || (s[i - 1] & 0xC0) != 0x80)
			buf_puts(b, " ");
	buf_puts(b, "^\n");
}

static void message(Ctx *cx, Loc at, const char *kind, const char *remedy, const char *fmt, va_list ap)
{
	Buf *b = &cx->messages;
	b->arena = &cx->keep;
	size_t start = b->len;
	size_t line = 0, col = 0, len = 0;
	const char *s = NULL;
	if (at.src && at.src->binary)
		buf_printf(b, "%s:1:%zu: ", at.src->name, at.off + 1);
	else if (at.src) {
		s = find_line(at, &line, &col, &len);
		buf_printf(b, "%s:%zu:%zu: ", at.src->name, line, col);
	}
	buf_printf(b, "%s: ", kind);
	buf_vprintf(b, fmt, ap);
	if (at.src && at.src->binary)
		buf_printf(b, " (at byte %zu)", at.off);
	for (char *c = b->s + start; *c; c++) /* quotes from a file may hold escape sequences */
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	buf_puts(b, "\n");
	if (s)
		show_line(b, s, len, col);
	if (remedy)
		buf_printf(b, "  %s\n", remedy);
}

void error_at(Ctx *cx, Loc at, const char *remedy, const char *fmt, ...)
{
	if (++cx->errors <= MAX_ERRORS) {
		va_list ap;
		va_start(ap, fmt);
		message(cx, at, "error", remedy, fmt, ap);
		va_end(ap);
	}
	if (cx->errors > MAX_ERRORS)
		unwind(cx, MP_BAD_INPUT);
}

void note_at(Ctx *cx, Loc at, const char *remedy, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	message(cx, at, "note", remedy, fmt, ap);
	va_end(ap);
}

void note(Ctx *cx, const char *remedy, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	message(cx, (Loc){ 0 }, "note", remedy, fmt, ap);
	va_end(ap);
}

void fail_at(Ctx *cx, Loc at, const char *remedy, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	cx->errors++;
	message(cx, at, "error", remedy, fmt, ap);
	va_end(ap);
	unwind(cx, MP_BAD_INPUT);
}

void fail(Ctx *cx, Status status, const char *remedy, const char *fmt, ...)
{
	cx->errors++;
	if (status == MP_NO_MEMORY) { /* the message itself must not need memory */
		if (!cx->starved) {
			cx->starved = true;
			va_list ap;
			va_start(ap, fmt);
			size_t n = (size_t)snprintf(cx->last_words, sizeof cx->last_words, "error: ");
			n += (size_t)vsnprintf(cx->last_words + n, sizeof cx->last_words - n, fmt, ap);
			if (n < sizeof cx->last_words && remedy)
				snprintf(cx->last_words + n, sizeof cx->last_words - n, "\n  %s\n", remedy);
			va_end(ap);
		}
		unwind(cx, status);
	}
	va_list ap;
	va_start(ap, fmt);
	message(cx, (Loc){ 0 }, "error", remedy, fmt, ap);
	va_end(ap);
	unwind(cx, status);
}

void check_errors(Ctx *cx)
{
	if (cx->errors)
		unwind(cx, MP_BAD_INPUT);
}

void fail_recorded(Ctx *cx, Status status)
{
	cx->errors++;
	unwind(cx, status);
}

const char *ctx_messages(const Ctx *cx)
{
	if (cx->starved)
		return cx->last_words;
	return cx->messages.s ? cx->messages.s : "";
}

/* Edit distance with transpositions (Damerau-Levenshtein); any value over `limit` if it is larger. */
static size_t distance(const char *a, const char *b, size_t limit)
{
	enum { MAX_LEN = 40 };
	size_t n = strlen(a), m = strlen(b);
	if (n > MAX_LEN || m > MAX_LEN || n > m + limit || m > n + limit)
		return limit + 1;
	size_t rows[3][MAX_LEN + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];
	for (size_t j = 0; j <= m; j++)
		last[j] = j;
	memset(rows[0], 0, sizeof rows[0]);
	for (size_t i = 1; i <= n; i++) {
		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t d = last[j - 1] + (a[i - 1] != b[j - 1]);
			if (last[j] + 1 < d)
				d = last[j] + 1;
			if (now[j - 1] + 1 < d)
				d = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < d)
				d = before[j - 2] + 1;
			now[j] = d;
		}
		size_t *t = before;
		before = last;
		last = now;
		now = t;
	}
	return last[m];
}

const char *nearest_name(const char *word, const char *const *names, size_t count)
{
	size_t best = strlen(word) / 3 + 1; /* a third of the letters may be wrong */
	const char *found = NULL;
	for (size_t i = 0; i < count; i++) {
		size_t d = distance(word, names[i], best);
		if (d < best || (d == best && !found)) {
			best = d;
			found = names[i];
		}
	}
	return found;
}
