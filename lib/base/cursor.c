/* SPDX-License-Identifier: MIT */
/* Words and numbers of a text whose line breaks mean little, as files of older simulators are.
 * In: a text file.  Out: one word or number after the other, each with its place; failures say what was expected. */
#include <math.h>
#include <string.h>

#include "base.h"

enum { CTRL_Z = 0x1a }; /* some editors of that time end a text with it */

/* The first control byte ends the text if it is Ctrl-Z; any other is refused, so that nothing behind it is looked at:
 * a hole in a sparse file may be terabytes. */
static size_t text_end(const Src *src)
{
	enum { SLICE = 1 << 16 };
	size_t released = 0;
	for (size_t at = 0, n; at < src->len; at += n) {
		n = min_u64(src->len - at, SLICE);
		const char *found = control_find(src->text + at, n);
		if (found)
			return *found == CTRL_Z ? (size_t)(found - src->text) : src->len;
		src_release(src, &released, at + n);
	}
	return src->len;
}

Cursor cursor_open(Ctx *cx, const Src *src, char comment)
{
	Src *own = NEW(&cx->keep, 1, Src); /* places of messages and of networks point to it */
	*own = *src;
	own->len = text_end(src);
	src_check_text(cx, own);
	return (Cursor){ .cx = cx, .src = own, .at = src_text_start(own), .comment = comment };
}

Loc cursor_loc(const Cursor *c) { return (Loc){ c->src, c->at }; }

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static void skip(Cursor *c, bool lines)
{
	for (; c->at < c->src->len; c->at++) {
		char b = c->src->text[c->at];
		if (c->comment && b == c->comment && (!c->comment_lines || c->at == 0 || c->src->text[c->at - 1] == '\n')) {
			const char *eol = memchr(c->src->text + c->at, '\n', c->src->len - c->at);
			c->at = eol ? (size_t)(eol - c->src->text) : c->src->len;
			if (c->at == c->src->len)
				return;
			b = '\n';
		}
		if (!is_blank(b) || (b == '\n' && !lines))
			return;
	}
}

char cursor_peek(Cursor *c)
{
	skip(c, true);
	return c->at < c->src->len ? c->src->text[c->at] : '\0';
}

char cursor_peek_line(Cursor *c)
{
	skip(c, false);
	char b = c->at < c->src->len ? c->src->text[c->at] : '\n';
	return b;
}

bool cursor_take(Cursor *c, char b)
{
	if (cursor_peek(c) != b || b == '\0')
		return false;
	c->at++;
	return true;
}

Text cursor_word(Cursor *c)
{
	cursor_peek(c);
	size_t from = c->at;
	while (c->at < c->src->len && !is_blank(c->src->text[c->at]))
		c->at++;
	return (Text){ c->src->text + from, (uint32_t)min_u64(c->at - from, UINT32_MAX) };
}

Text cursor_line(Cursor *c)
{
	const char *from = c->src->text + c->at, *eol = memchr(from, '\n', c->src->len - c->at);
	size_t len = eol ? (size_t)(eol - from) : c->src->len - c->at;
	c->at += len + (eol != NULL);
	while (len && is_blank(from[len - 1]))
		len--;
	while (len && is_blank(*from)) {
		from++;
		len--;
	}
	return (Text){ from, (uint32_t)min_u64(len, UINT32_MAX) };
}

bool cursor_number(Cursor *c, double *v)
{
	float f;
	char first = cursor_peek(c);
	const char *p = c->src->text + c->at, *end = c->src->text + c->src->len;
	if ((first < '0' || first > '9') && (!first || !strchr("+-.", first)))
		return false;
	const char *past = number_read(p, end, &f);
	if (!past || isnan(f) || (isinf(f) && (past[-1] | 0x20) > '9')) /* the words nan and inf */
		return false;
	*v = number_double(p, past);
	if (!isfinite(*v))
		return false;
	c->at = (size_t)(past - c->src->text);
	return true;
}

bool cursor_whole(Cursor *c, uint64_t *v)
{
	cursor_peek(c);
	const char *text = c->src->text;
	size_t at = c->at;
	uint64_t n = 0;
	for (; at < c->src->len && text[at] >= '0' && text[at] <= '9'; at++) {
		if (n > (UINT64_MAX - 9) / 10)
			return false;
		n = n * 10 + (uint64_t)(text[at] - '0');
	}
	if (at == c->at)
		return false;
	c->at = at;
	*v = n;
	return true;
}

void cursor_expected(Cursor *c, const char *what, const char *remedy)
{
	cursor_peek(c);
	Cursor look = *c;
	Text word = cursor_word(&look);
	if (word.len)
		fail_at(c->cx, cursor_loc(c), remedy, "%s should stand here, not '%s'", what, text_shown(c->cx, word));
	fail_at(c->cx, cursor_loc(c), remedy, "the file ends where %s should stand", what);
}

uint64_t cursor_need_whole(Cursor *c, const char *what, uint64_t low, uint64_t high)
{
	uint64_t v;
	cursor_peek(c);
	Cursor start = *c;
	if (!cursor_whole(c, &v))
		cursor_expected(&start, what, "a whole number");
	if (v < low || v > high)
		fail_at(c->cx, cursor_loc(&start), NULL, "%s is %llu; it is from %llu to %llu", what, (unsigned long long)v,
		        (unsigned long long)low, (unsigned long long)high);
	return v;
}

double cursor_need_number(Cursor *c, const char *what)
{
	double v;
	cursor_peek(c);
	Cursor start = *c;
	if (!cursor_number(c, &v))
		cursor_expected(&start, what, "a decimal number such as 0.5 or -1e-3");
	if (c->at < c->src->len && !is_blank(c->src->text[c->at]) && !strchr(",;:|)]}#", c->src->text[c->at]))
		cursor_expected(&start, what, "a decimal number such as 0.5 or -1e-3, with a blank after it");
	return v;
}

uint64_t cursor_numbers_left(const Cursor *c) { return (c->src->len - c->at + 1) / 2; }
