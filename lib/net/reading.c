/* SPDX-License-Identifier: MIT */
/* The statements `data` and `test`.  In: a file's name, then options that say how to read it, the words of the command
 * line.  Out: the path and mp_data_options of a Net. */
#include <stdlib.h>
#include <string.h>

#include "parse.h"

enum { READ_TEXT, READ_PATH, READ_COUNT, READ_SCALE };
typedef struct Reading {
	const char *word;
	int kind;
	size_t offset;
} Reading;
static const Reading readings[] = {
	{ "format", READ_TEXT, offsetof(mp_data_options, format) },
	{ "inputs", READ_TEXT, offsetof(mp_data_options, inputs) },
	{ "targets", READ_TEXT, offsetof(mp_data_options, targets) },
	{ "labels", READ_TEXT, offsetof(mp_data_options, labels) },
	{ "sequence", READ_TEXT, offsetof(mp_data_options, sequence) },
	{ "weight", READ_TEXT, offsetof(mp_data_options, weight) },
	{ "names", READ_TEXT, offsetof(mp_data_options, names) },
	{ "partner", READ_PATH, offsetof(mp_data_options, partner) },
	{ "first", READ_COUNT, offsetof(mp_data_options, first) },
	{ "scale", READ_SCALE, offsetof(mp_data_options, scale) },
};

static const Reading *reading_find(Parser *p)
{
	const char *names[COUNT(readings)];
	for (size_t i = 0; i < COUNT(readings); i++) {
		if (at_word(p, readings[i].word))
			return &readings[i];
		names[i] = readings[i].word;
	}
	unexpected(p, "an option of reading",
	           remedy_near(p, names, COUNT(names),
	                       "options: format inputs targets labels sequence weight names partner first scale"));
	return NULL;
}

static bool count_read(const char *text, uint64_t *count)
{
	size_t digits = strspn(text, "0123456789");
	*count = digits && digits < 19 && !text[digits] ? strtoull(text, NULL, 10) : 0;
	return *count;
}

static bool is_scale(const char *text)
{
	return strcmp(text, "none") == 0 || strcmp(text, "range") == 0 || strcmp(text, "zscore") == 0;
}

/* One word and its value. */
static bool read_option(Parser *p, mp_data_options *how)
{
	const Reading *r = reading_find(p);
	if (!r)
		return false;
	void *field = (char *)how + r->offset;
	uint64_t count;
	if (r->kind == READ_COUNT ? *(uint64_t *)field != 0 : *(const char **)field != NULL) {
		error_at(p->cx, token_at(p), "keep one of them", "'%s' is given twice", r->word);
		return false;
	}
	p->past = p->lx.at;
	lex_value(&p->lx, &p->tok);
	if (at_end(p) || p->tok.kind == TOK_BAD)
		return unexpected(p, "its value", "every option of reading takes a value");
	char *text = lex_text(&p->cx->keep, &p->tok);
	if ((r->kind == READ_COUNT && !count_read(text, &count)) || (r->kind == READ_SCALE && !is_scale(text)) || !*text) {
		error_at(p->cx, token_at(p),
		         r->kind == READ_COUNT   ? "write a whole number from 1 up"
		         : r->kind == READ_SCALE ? "it is one of none, range, zscore"
		                                 : "give the name of a column, or of several with commas",
		         "%s cannot be '%.*s'", r->word, token_shown(&p->tok), p->tok.s);
		return false;
	}
	if (r->kind == READ_COUNT)
		*(uint64_t *)field = count;
	else
		*(const char **)field = r->kind == READ_PATH ? path_resolve(p, text) : text;
	token_next(p);
	return true;
}

static bool parse_cases(Parser *p, const char *what, const char **field, mp_data_options *how)
{
	Loc at = token_at(p);
	char *path;
	mp_data_options read = { .size = sizeof read };
	if (!parse_path(p, what, &path))
		return false;
	while (!at_end(p))
		if (!read_option(p, &read))
			return false;
	if (!option_once(p, what, at))
		return false;
	*field = path;
	*how = read;
	return true;
}

bool parse_data(Parser *p) { return parse_cases(p, "data", &p->net->data, &p->net->data_how); }

bool parse_test(Parser *p)
{
	Loc at = token_at(p);
	if (!parse_cases(p, "test", &p->net->test, &p->net->test_how))
		return false;
	if (!p->net->test_how.scale)
		return true;
	error_at(p->cx, at, "leave 'scale' out", "test data is scaled as the training data is: by the same numbers");
	return false;
}

void reading_print(const mp_data_options *how, Buf *out)
{
	for (size_t i = 0; i < COUNT(readings); i++) {
		const void *field = (const char *)how + readings[i].offset;
		uint64_t count = readings[i].kind == READ_COUNT ? *(const uint64_t *)field : 0;
		const char *text = readings[i].kind == READ_COUNT ? NULL : *(const char *const *)field;
		if (count)
			buf_printf(out, " %s %llu", readings[i].word, (unsigned long long)count);
		if (!text)
			continue;
		buf_printf(out, " %s ", readings[i].word);
		text_print(text, out);
	}
}
