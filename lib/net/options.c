/* SPDX-License-Identifier: MIT */
/* Training options: the table of options.def as data, and setting, getting and checking by name. */
#include <assert.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

enum { FREE, FIXED };
enum { K_INT, K_REAL, K_CHOICE, K_FLAG, K_TEXT, K_LIST };

typedef struct OptionRow {
	int kind, when;
	size_t offset;
	double low, high;
	mp_option shown; /* a choice's argument is its list of names */
} OptionRow;

static const OptionRow table[] = {
#define INT(f, name, when, d, lo, hi, arg, help) \
	{ K_INT, when, offsetof(Options, f), (double)(lo), (double)(hi), { name, arg, d, help, 0 } },
#define REAL(f, name, when, d, lo, hi, arg, help) \
	{ K_REAL, when, offsetof(Options, f), lo, hi, { name, arg, d, help, 0 } },
#define CHOICE(f, name, when, d, choices, help) \
	{ K_CHOICE, when, offsetof(Options, f), 0, 0, { name, choices, d, help, 0 } },
#define FLAG(f, name, when, d, help)      { K_FLAG, when, offsetof(Options, f), 0, 0, { name, NULL, d, help, 0 } },
#define TEXT(f, name, when, d, arg, help) { K_TEXT, when, offsetof(Options, f), 0, 0, { name, arg, d, help, 0 } },
#define LIST(f, name, when, d, arg, help) { K_LIST, when, offsetof(Options, f), 0, 0, { name, arg, d, help, 1 } },
#include "options.def"
};

static const OptionRow *find(const char *name)
{
	for (size_t i = 0; i < COUNT(table); i++)
		if (strcmp(table[i].shown.name, name) == 0)
			return &table[i];
	return NULL;
}

const mp_option *option_at(size_t i) { return i < COUNT(table) ? &table[i].shown : NULL; }

bool option_is_fixed(const char *name)
{
	const OptionRow *row = find(name);
	return row && row->when == FIXED;
}

static const char *unknown(Ctx *cx, const char *name, const char **remedy)
{
	const char *names[COUNT(table)];
	for (size_t i = 0; i < COUNT(table); i++)
		names[i] = table[i].shown.name;
	Buf what = { .arena = &cx->scratch }, right = { .arena = &cx->scratch };
	buf_printf(&what, "there is no option '%s'", name);
	const char *near = nearest_name(name, names, COUNT(table));
	if (near)
		buf_printf(&right, "did you mean '%s'?", near);
	else
		buf_puts(&right, "'microprop train --help' lists the options");
	*remedy = right.s;
	return what.s;
}

/* The number of `value` among "a|b|c", or -1. */
static int choice_find(const char *choices, const char *value)
{
	size_t len = strlen(value);
	int n = 0;
	for (const char *s = choices; s; n++) {
		const char *end = strchr(s, '|');
		if (len == (end ? (size_t)(end - s) : strlen(s)) && memcmp(s, value, len) == 0)
			return n;
		s = end ? end + 1 : NULL;
	}
	return -1;
}

static bool is_batch(const OptionRow *row) { return row->offset == offsetof(Options, batch); }

static bool read_int(const OptionRow *row, const char *value, int64_t *out)
{
	if (is_batch(row) && strcmp(value, "all") == 0) {
		*out = BATCH_ALL;
		return true;
	}
	char *end;
	errno = 0;
	long long v = strtoll(value, &end, 10);
	if (end == value || *end || errno || (double)v < row->low || (double)v > row->high)
		return false;
	*out = v;
	return true;
}

static bool read_real(const OptionRow *row, const char *value, double *out)
{
	char *end;
	double v = strtod(value, &end);
	if (end == value || *end || !(v >= row->low && v <= row->high))
		return false;
	*out = v;
	return true;
}

static bool read_choice(const OptionRow *row, const char *value, int *out)
{
	int v = choice_find(row->shown.argument, value);
	if (v >= 0)
		*out = v;
	return v >= 0;
}

static bool read_flag(const OptionRow *row, const char *value, int *out)
{
	static const char *const words[] = { "0", "1", "off", "on", "no", "yes", "false", "true" };
	if (strcmp(value, "auto") == 0 && strcmp(row->shown.standard, "auto") == 0) {
		*out = -1;
		return true;
	}
	for (size_t i = 0; i < COUNT(words); i++) {
		if (strcmp(value, words[i]) == 0) {
			*out = (int)(i & 1);
			return true;
		}
	}
	return false;
}

/* Reads all but text, whose memory is the caller's matter. */
static bool read_value(const OptionRow *row, const char *value, void *field)
{
	switch (row->kind) {
	case K_INT: return read_int(row, value, field);
	case K_REAL: return read_real(row, value, field);
	case K_CHOICE: return read_choice(row, value, field);
	case K_FLAG: return read_flag(row, value, field);
	}
	Until u;
	return row->offset != offsetof(Options, until) || until_parse(value, &u);
}

void options_init(Options *o)
{
	for (size_t i = 0; i < COUNT(table); i++) {
		void *field = (char *)o + table[i].offset;
		bool fine = read_value(&table[i], table[i].shown.standard, field);
		assert(fine);
		(void)fine;
		if (table[i].kind >= K_TEXT)
			*(const char **)field = table[i].shown.standard;
	}
}

static void say_right(const OptionRow *row, Buf *b)
{
	const char *name = row->shown.name;
	if (row->kind == K_INT && row->high < (double)INT64_MAX)
		buf_printf(b, "%s takes a whole number from %.0f to %.0f", name, row->low, row->high);
	else if (row->kind == K_INT)
		buf_printf(b, "%s takes a whole number from %.0f%s", name, row->low, is_batch(row) ? ", or 'all'" : "");
	else if (row->kind == K_REAL)
		buf_printf(b, "%s takes a number from %g to %g", name, row->low, row->high);
	else if (row->kind == K_CHOICE)
		buf_printf(b, "%s is one of %s", name, row->shown.argument);
	else if (row->kind == K_FLAG)
		buf_printf(b, "%s is on or off", name);
	else
		buf_puts(b, "until takes within, within:0.95, right:0.9, error:0.01, several with commas, or never");
}

const char *option_set(Ctx *cx, Options *o, const char *name, const char *value, const char **remedy)
{
	const OptionRow *row = find(name);
	*remedy = NULL;
	if (!row)
		return unknown(cx, name, remedy);
	void *field = (char *)o + row->offset;
	if (read_value(row, value, field)) {
		if (row->kind >= K_TEXT)
			*(const char **)field = arena_copy(&cx->keep, value, strlen(value));
		return NULL;
	}
	Buf what = { .arena = &cx->scratch }, right = { .arena = &cx->scratch };
	buf_printf(&what, "%s cannot be '%s'", name, value);
	say_right(row, &right);
	*remedy = right.s;
	return what.s;
}

static void choice_print(Buf *b, const char *choices, int n)
{
	for (; n > 0; n--)
		choices = strchr(choices, '|') + 1;
	const char *end = strchr(choices, '|');
	buf_add(b, choices, end ? (size_t)(end - choices) : strlen(choices));
}

/* Shortest text that reads back as the same double. */
static void real_print(Buf *b, double v)
{
	char s[40];
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(s, sizeof s, "%.*g", digits, v);
		if (strtod(s, NULL) == v)
			break;
	}
	buf_puts(b, s);
}

const char *option_get(Arena *a, const Options *o, const char *name)
{
	const OptionRow *row = find(name);
	if (!row)
		return NULL;
	const void *field = (const char *)o + row->offset;
	Buf b = { .arena = a };
	if (is_batch(row) && o->batch == BATCH_ALL)
		buf_puts(&b, "all");
	else if (row->kind == K_INT)
		buf_printf(&b, "%lld", (long long)*(const int64_t *)field);
	else if (row->kind == K_REAL)
		real_print(&b, *(const double *)field);
	else if (row->kind == K_CHOICE)
		choice_print(&b, row->shown.argument, *(const int *)field);
	else if (row->kind == K_FLAG)
		buf_puts(&b, *(const int *)field < 0 ? "auto" : *(const int *)field ? "on" : "off");
	else
		buf_puts(&b, *(const char *const *)field);
	return b.s;
}

void options_check(Ctx *cx, const Options *o)
{
	if (o->step_min > o->step_max)
		fail(cx, MP_BAD_INPUT, "set step-min below step-max", "step-min %g is above step-max %g", o->step_min,
		     o->step_max);
	if (o->schedule == SCHEDULE_COSINE && o->epochs == 0)
		fail(cx, MP_BAD_INPUT, "set epochs: the cosine ends there", "schedule cosine needs a number of epochs");
	if (o->epochs == 0 && o->updates == 0 && o->time == 0 && strcmp(o->until, "never") == 0)
		fail(cx, MP_BAD_INPUT, "set epochs, updates, time or until", "nothing would ever end this run");
}

bool until_parse(const char *text, Until *u)
{
	*u = (Until){ NAN, NAN, NAN };
	if (strcmp(text, "never") == 0)
		return true;
	for (const char *s = text;; s++) {
		char *end;
		double *value;
		double low = 0, high = 1;
		if (strncmp(s, "within", 6) == 0)
			value = &u->within, s += 6;
		else if (strncmp(s, "right", 5) == 0)
			value = &u->right, s += 5;
		else if (strncmp(s, "error", 5) == 0)
			value = &u->error, s += 5, high = DBL_MAX;
		else
			return false;
		if (*s == ':') {
			*value = strtod(s + 1, &end);
			if (end == s + 1 || !(*value >= low && *value <= high))
				return false;
			s = end;
		} else if (value == &u->error) {
			return false;
		} else {
			*value = 1;
		}
		if (!*s)
			return true;
		if (*s != ',')
			return false;
	}
}
