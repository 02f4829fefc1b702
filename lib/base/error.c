/* SPDX-License-Identifier: MIT */
/* Messages: what is wrong, where, and what would be right.
 *
 *     net.topo:3:9: error: there is no group 'hiden'
 *       connect hiden -> out
 *               ^
 *       did you mean 'hidden'?
 *
 * Messages collect in the handle, as records (mp_error) and as one text made from them; failing unwinds to the edge
 * set by the public call. Running out of memory while writing a message must not recurse: such a message goes into a
 * fixed buffer. */
#include <assert.h>
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
	size_t seen = min_u64(at.src->len - start, off - start + LINE_SHOWN + 1); /* a line may be terabytes long */
	const char *end = memchr(text + start, '\n', seen);
	*len = end ? (size_t)(end - (text + start)) : seen;
	if (*len && text[start + *len - 1] == '\r')
		--*len;
	return text + start;
}

/* A caret under column `col`.  Every character takes one column: tabs become blanks, what is not shown '?'. */
static void show_line(Buf *b, const char *s, size_t len, size_t col)
{
	size_t from = 0, before = 0;
	if (col > LINE_SHOWN / 2 && len > LINE_SHOWN)
		for (from = col - LINE_SHOWN / 2; from < col - 1 && (s[from] & 0xC0) == 0x80; from++)
			;
	size_t end = len - from < LINE_SHOWN ? len : from + LINE_SHOWN;
	buf_puts(b, "  ");
	for (size_t i = from, n; i < end; i += n) {
		uint32_t c;
		size_t read = utf8_read(s + i, len - i, &c);
		bool shown = read && !char_is_hidden(c);
		n = read ? read : 1;
		buf_add(b, shown ? s + i : c == '\t' && read ? " " : "?", shown ? n : 1);
		before += i + 1 < col;
	}
	buf_printf(b, "\n  %*s^\n", (int)before, "");
}

/* The text form of a message. */
static void print(const mp_error *e, bool binary, Buf *b)
{
	if (e->file && binary)
		buf_printf(b, "%s:1:%llu: ", e->file, (unsigned long long)e->offset + 1);
	else if (e->file)
		buf_printf(b, "%s:%llu:%llu: ", e->file, (unsigned long long)e->line, (unsigned long long)e->column);
	buf_printf(b, "%s: %s", e->severity == MP_NOTE ? "note" : "error", e->text);
	if (e->file && binary)
		buf_printf(b, " (at byte %llu)", (unsigned long long)e->offset);
	buf_puts(b, "\n");
	if (e->excerpt)
		buf_puts(b, e->excerpt);
	if (e->remedy)
		buf_printf(b, "  %s\n", e->remedy);
}

static void record(Ctx *cx, const mp_error *e)
{
	if (cx->message_count == cx->message_cap) {
		size_t cap = cx->message_cap ? 2 * cx->message_cap : 4;
		cx->message = arena_grow(&cx->said, cx->message, cx->message_cap, cap, sizeof *cx->message);
		cx->message_cap = cap;
	}
	Diagnostic m = { *e, cx->messages.len };
	print(e, e->file && !e->line, &cx->messages);
	cx->message[cx->message_count++] = m;
}

static void message(Ctx *cx, Loc at, mp_severity severity, const char *remedy, const char *fmt, va_list ap)
{
	Arena *a = &cx->said;
	mp_error e = { .size = sizeof e, .severity = severity };
	Buf text = { .arena = a }, excerpt = { .arena = a };
	buf_vprintf(&text, fmt, ap);
	e.text = message_escaped(a, text.s ? text.s : "");
	e.remedy = remedy ? message_escaped(a, remedy) : NULL;
	if (at.src) {
		e.file = text_escaped(a, at.src->name);
		e.offset = at.off;
	}
	if (at.src && !at.src->binary) {
		size_t line, column, len;
		const char *s = find_line(at, &line, &column, &len);
		e.line = line;
		e.column = column;
		show_line(&excerpt, s, len, column);
		e.excerpt = excerpt.s;
	}
	record(cx, &e);
}

void error_at(Ctx *cx, Loc at, const char *remedy, const char *fmt, ...)
{
	if (++cx->errors <= MAX_ERRORS) {
		va_list ap;
		va_start(ap, fmt);
		message(cx, at, MP_ERROR, remedy, fmt, ap);
		va_end(ap);
	}
	if (cx->errors > MAX_ERRORS)
		unwind(cx, MP_BAD_INPUT);
}

void note_at(Ctx *cx, Loc at, const char *remedy, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	message(cx, at, MP_NOTE, remedy, fmt, ap);
	va_end(ap);
}

void note(Ctx *cx, const char *remedy, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	message(cx, (Loc){ 0 }, MP_NOTE, remedy, fmt, ap);
	va_end(ap);
}

void fail_at(Ctx *cx, Loc at, const char *remedy, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	cx->errors++;
	message(cx, at, MP_ERROR, remedy, fmt, ap);
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
			vsnprintf(cx->last_text, sizeof cx->last_text, fmt, ap);
			va_end(ap);
			cx->last = (mp_error){ .size = sizeof cx->last, .text = cx->last_text };
			int n = snprintf(cx->last_words, sizeof cx->last_words, "error: %s\n", cx->last_text);
			if (remedy)
				snprintf(cx->last_words + n, sizeof cx->last_words - (size_t)n, "  %s\n", remedy);
		}
		unwind(cx, status);
	}
	va_list ap;
	va_start(ap, fmt);
	message(cx, (Loc){ 0 }, MP_ERROR, remedy, fmt, ap);
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

const mp_error *ctx_error(const Ctx *cx, size_t i)
{
	if (cx->starved)
		return i ? NULL : &cx->last;
	return i < cx->message_count ? &cx->message[i].shown : NULL;
}

void messages_drop(Ctx *cx, size_t from)
{
	if (from < cx->message_count) {
		assert(cx->message && cx->messages.s);
		cx->messages.len = cx->message[from].at;
		cx->messages.s[cx->messages.len] = '\0';
		cx->message_count = from;
	}
	if (from == 0) {
		arena_free(&cx->said);
		cx->messages = (Buf){ .arena = &cx->said };
		cx->message = NULL;
		cx->message_count = cx->message_cap = 0;
	}
}

static const char *copied(Arena *a, const char *text) { return text ? arena_copy(a, text, strlen(text)) : NULL; }

void messages_move(Ctx *to, Ctx *from)
{
	const mp_error *e;
	for (size_t i = 0; (e = ctx_error(from, i)); i++) {
		mp_error own = *e;
		own.file = copied(&to->said, e->file);
		own.text = copied(&to->said, e->text);
		own.excerpt = copied(&to->said, e->excerpt);
		own.remedy = copied(&to->said, e->remedy);
		record(to, &own);
	}
	messages_drop(from, 0);
}

/* Edit distance with swaps of neighbours, given up past `limit`. */
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
