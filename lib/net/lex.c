/* SPDX-License-Identifier: MIT */
/* Tokens of a topology file.  In: its text.  Out: one token at a time, pointing into the text.
 *
 * A statement ends before a later line that does not begin with a blank; a line that does continues the statement.
 * Comments and empty lines change nothing, so TOK_END is decided only when the next token is found. */
#include <math.h>
#include <string.h>

#include "parse.h"

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

static bool is_letter(char c) { return (unsigned char)((c | 32) - 'a') < 26 || c == '_'; }

static bool is_inner(char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '+'; }

/* NUL at the end of the file: inside there are none. */
static char peek(const Lexer *lx, size_t ahead)
{
	return lx->at + ahead < lx->src->len ? lx->src->text[lx->at + ahead] : '\0';
}

static bool is_arrow(const Lexer *lx) { return peek(lx, 0) == '-' && peek(lx, 1) == '>'; }

void lex_init(Lexer *lx, Ctx *cx, const Src *src)
{
	src_check_text(cx, src);
	lx->cx = cx;
	lx->src = src;
	lx->at = lx->line = lx->ended = src_text_start(src);
}

/* Moves to the next token; true if a statement ends before it. */
static bool skip_blanks(Lexer *lx)
{
	const char *text = lx->src->text;
	size_t len = lx->src->len, at = lx->at;
	for (; at < len; at++) {
		if (text[at] == '\n') {
			lx->line = at + 1;
		} else if (text[at] == '#') {
			const char *end = memchr(text + at, '\n', len - at);
			at = end ? (size_t)(end - text) - 1 : len - 1;
		} else if (!is_blank(text[at])) {
			break;
		}
	}
	lx->at = at;
	if (at < len && at == lx->line && at != lx->ended) {
		lx->ended = at; /* once for each place */
		return true;
	}
	return false;
}

static void take(Lexer *lx, Token *t, int kind, size_t len)
{
	t->kind = kind;
	t->s = lx->src->text + lx->at;
	t->len = len;
	t->off = lx->at;
	lx->at += len;
}

static void take_text(Lexer *lx, Token *t)
{
	size_t len = 1;
	for (; peek(lx, len) != '"'; len++) {
		if (peek(lx, len) == '\\')
			len++;
		if (!peek(lx, len) || peek(lx, len) == '\n') {
			error_at(lx->cx, (Loc){ lx->src, lx->at }, "close it with \" on the same line", "this text has no end");
			take(lx, t, TOK_BAD, 1);
			return;
		}
	}
	take(lx, t, TOK_TEXT, len + 1);
	t->s++;
	t->len -= 2;
}

static void take_word(Lexer *lx, Token *t, int kind)
{
	const char *text = lx->src->text;
	size_t at = lx->at, len = lx->src->len;
	while (at < len && is_inner(text[at]) && !(text[at] == '-' && at + 1 < len && text[at + 1] == '>'))
		at++;
	take(lx, t, kind, at - lx->at);
}

/* A whole UTF-8 character is shown, so that the message stays readable. */
static void refuse(Lexer *lx, Token *t)
{
	unsigned char c = (unsigned char)peek(lx, 0);
	size_t len = 1;
	while (c >= 0xC0 && len < 4 && ((unsigned char)peek(lx, len) & 0xC0) == 0x80)
		len++;
	Loc at = { lx->src, lx->at };
	const char *remedy = c == '\'' ? "write texts in double quotes"
	                               : "names are made of letters, digits, '_', '-' and '.'; comments start with '#'";
	if (c < 0x80 || len > 1)
		error_at(lx->cx, at, remedy, "'%.*s' means nothing here", (int)len, lx->src->text + lx->at);
	else
		error_at(lx->cx, at, "save the file as UTF-8", "byte 0x%02x is not text", c);
	take(lx, t, TOK_BAD, len);
}

void lex_next(Lexer *lx, Token *t)
{
	static const char marks[] = ",[]:";
	static const int kinds[] = { TOK_COMMA, TOK_OPEN, TOK_CLOSE, TOK_COLON };
	if (skip_blanks(lx)) {
		take(lx, t, TOK_END, 0);
		return;
	}
	char c = peek(lx, 0);
	const char *mark = c ? strchr(marks, c) : NULL;
	if (lx->at >= lx->src->len)
		take(lx, t, TOK_EOF, 0);
	else if (is_letter(c))
		take_word(lx, t, TOK_WORD);
	else if (is_arrow(lx))
		take(lx, t, TOK_ARROW, 2);
	else if (is_inner(c))
		take_word(lx, t, TOK_NUMBER);
	else if (mark)
		take(lx, t, kinds[mark - marks], 1);
	else if (c == '"')
		take_text(lx, t);
	else
		refuse(lx, t);
}

void lex_value(Lexer *lx, Token *t)
{
	bool ends = skip_blanks(lx);
	size_t len = 0;
	if (ends || lx->at >= lx->src->len) {
		take(lx, t, ends ? TOK_END : TOK_EOF, 0);
		return;
	}
	if (peek(lx, 0) == '"') {
		take_text(lx, t);
		return;
	}
	while (peek(lx, len) && !is_blank(peek(lx, len)) && peek(lx, len) != '\n' && peek(lx, len) != '#')
		len++;
	take(lx, t, TOK_WORD, len);
}

void lex_skip(Lexer *lx)
{
	const char *text = lx->src->text;
	size_t len = lx->src->len;
	while (lx->at < len) {
		const char *end = memchr(text + lx->at, '\n', len - lx->at);
		lx->at = end ? (size_t)(end - text) + 1 : len;
		char c = peek(lx, 0);
		if (c && c != '\n' && c != '#' && !is_blank(c))
			break;
	}
	lx->line = lx->ended = lx->at;
}

bool lex_whole(const Token *t, uint64_t *v)
{
	uint64_t n = 0;
	if (t->kind != TOK_NUMBER)
		return false;
	for (size_t i = 0; i < t->len; i++) {
		unsigned d = (unsigned char)(t->s[i] - '0');
		if (d > 9 || n > (UINT64_MAX - d) / 10)
			return false;
		n = n * 10 + d;
	}
	*v = n;
	return true;
}

bool lex_real(const Token *t, float *v)
{
	return t->kind == TOK_NUMBER && number_read(t->s, t->s + t->len, v) == t->s + t->len && isfinite(*v);
}

char *lex_text(Arena *a, const Token *t)
{
	char *s = arena_copy(a, t->s, t->len);
	size_t n = 0;
	for (size_t i = 0; i < t->len; i++) {
		if (t->kind == TOK_TEXT && s[i] == '\\')
			i++;
		s[n++] = s[i];
	}
	s[n] = '\0';
	return s;
}
