/* SPDX-License-Identifier: MIT */
/* Training options: tables of options.def as data, and setting, getting and checking by name. */
#include <assert.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

static const OptionEntry rows[] = {
#define OPTIONS Options
#define OWNER   "general"
#include "option_rows.inc"
#include "options.def"
};
#define SET(ID, ...) { __VA_ARGS__ },
const DefaultSet default_sets[DEFAULTS_COUNT] = {
#include "defaults.def"
};

static const struct {
	int set;
	const char *option, *value;
} older[] = {
#define OLDER(ID, OPTION, VALUE) { DEFAULTS_##ID, OPTION, VALUE },
#include "defaults.def"
};

const OptionTable general_options = { OWNER, offsetof(Options, owned), rows, COUNT(rows) };

static const OptionEntry *row_at(size_t i, const OptionTable **table)
{
	for (const OptionTable *const *t = option_tables; *t; i -= (*t++)->rows) {
		if (i < (*t)->rows) {
			*table = *t;
			return &(*t)->row[i];
		}
	}
	return NULL;
}

static const OptionEntry *find_own(const char *name, const OptionTable **table)
{
	const OptionEntry *row;
	for (size_t i = 0; (row = row_at(i, table)); i++)
		if (strcmp(row->shown.name, name) == 0)
			return row;
	return NULL;
}

/* By its name, or by a word of other programs that means the same. */
static const OptionEntry *find(const char *name, const OptionTable **table)
{
	const OptionEntry *row = find_own(name, table);
	const char *same;
	return row || !option_hint(name, &same) || !same ? row : find_own(same, table);
}

const char *option_name(const char *name)
{
	const OptionTable *table;
	const OptionEntry *row = find(name, &table);
	return row ? row->shown.name : NULL;
}

void *options_of(const Options *o, const OptionTable *table)
{
	size_t at = 0;
	if (table == &general_options)
		return (void *)o;
	for (const OptionTable *const *t = option_tables + 1; *t != table; t++)
		at += round_up((*t)->size, 8);
	assert(at + table->size <= OPTIONS_OWNED);
	return (void *)(o->owned + at);
}

static void *field_of(const Options *o, const OptionTable *table, const OptionEntry *row)
{
	return (char *)options_of(o, table) + row->offset;
}

const mp_option *option_at(size_t i)
{
	const OptionTable *table;
	const OptionEntry *row = row_at(i, &table);
	return row ? &row->shown : NULL;
}

bool option_is_fixed(const char *name)
{
	const OptionTable *table;
	const OptionEntry *row = find(name, &table);
	return row && row->shown.changes_result;
}

bool option_is_set(Arena *a, const Options *o, const char *name)
{
	const OptionTable *table;
	return strcmp(option_get(a, o, name), find(name, &table)->shown.default_value) != 0;
}

static const struct {
	const char *word, *option, *says; /* says NULL: the same */
} foreign[] = {
#define SAME(WORD, OPTION)        { WORD, OPTION, NULL },
#define OTHER(WORD, OPTION, SAYS) { WORD, OPTION, SAYS },
#include "words.def"
};

const char *option_hint(const char *word, const char **same)
{
	*same = NULL;
	for (size_t i = 0; i < COUNT(foreign); i++) {
		if (strcmp(foreign[i].word, word) != 0)
			continue;
		*same = foreign[i].says ? NULL : foreign[i].option;
		return foreign[i].says ? foreign[i].says : foreign[i].option;
	}
	return NULL;
}

static const char *unknown(Ctx *cx, const char *name, const char **remedy)
{
	size_t count = 0;
	while (option_at(count))
		count++;
	const char **names = NEW(&cx->scratch, count, const char *);
	for (size_t i = 0; i < count; i++)
		names[i] = option_at(i)->name;
	Buf what = { .arena = &cx->scratch }, right = { .arena = &cx->scratch };
	buf_printf(&what, "there is no option '%s'", name);
	const char *same, *hint = option_hint(name, &same), *near = nearest_name(name, names, count);
	if (hint)
		buf_puts(&right, hint);
	else if (near)
		buf_printf(&right, "did you mean '%s'?", near);
	else
		buf_puts(&right, "'microprop train --help' lists the options");
	*remedy = right.s;
	return what.s;
}

/* Words that an option's argument may name instead of a number. */
static const struct {
	const char *word;
	int64_t value;
} int_words[] = { { "all", BATCH_ALL }, { "auto", INT_AUTO }, { "copy", BPTT_COPY }, { "full", BPTT_FULL } };

/* Does the argument name the word: "all|N"? */
static bool takes_word(const mp_option *o, const char *word)
{
	size_t len = strlen(word);
	for (const char *s = o->argument; s; s = strchr(s, '|') ? strchr(s, '|') + 1 : NULL)
		if (strncmp(s, word, len) == 0 && (s[len] == '|' || !s[len]))
			return true;
	return false;
}

static bool read_int(const OptionEntry *row, const char *value, int64_t *out)
{
	for (size_t i = 0; i < COUNT(int_words); i++) {
		if (takes_word(&row->shown, int_words[i].word) && strcmp(value, int_words[i].word) == 0) {
			*out = int_words[i].value;
			return true;
		}
	}
	char *end;
	errno = 0;
	long long v = strtoll(value, &end, 10);
	if (end == value || *end || errno || (double)v < row->shown.min || (double)v > row->shown.max)
		return false;
	*out = v;
	return true;
}

static bool read_real(const OptionEntry *row, const char *value, double *out)
{
	char *end;
	double v = strtod(value, &end);
	if (end == value || *end || !(v >= row->shown.min && v <= row->shown.max))
		return false;
	*out = v;
	return true;
}

static bool read_choice(const OptionEntry *row, const char *value, int *out)
{
	for (int i = 0; row->shown.choices[i]; i++) {
		if (strcmp(row->shown.choices[i], value) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

static bool read_flag(const OptionEntry *row, const char *value, int *out)
{
	static const char *const words[] = { "0", "1", "off", "on", "no", "yes", "false", "true" };
	if (strcmp(value, "auto") == 0 && strcmp(row->shown.default_value, "auto") == 0) {
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

/* Reads all but text, whose memory is up to the caller. */
static bool read_value(const OptionEntry *row, const char *value, void *field)
{
	Until u;
	switch (row->shown.type) {
	case MP_OPTION_INT: return read_int(row, value, field);
	case MP_OPTION_REAL: return read_real(row, value, field);
	case MP_OPTION_CHOICE: return read_choice(row, value, field);
	case MP_OPTION_FLAG: return read_flag(row, value, field);
	case MP_OPTION_TEXT:
	case MP_OPTION_LIST: break;
	}
	return strcmp(row->shown.name, "until") != 0 || until_parse(value, &u);
}

static bool is_text(const OptionEntry *row)
{
	return row->shown.type == MP_OPTION_TEXT || row->shown.type == MP_OPTION_LIST;
}

static const char *default_of(const OptionEntry *row, int defaults)
{
	for (size_t i = 0; i < COUNT(older); i++)
		if (older[i].set == defaults && strcmp(older[i].option, row->shown.name) == 0)
			return older[i].value;
	return row->shown.default_value;
}

const char *option_default(const char *name, int defaults)
{
	const OptionTable *table;
	const OptionEntry *row = find(name, &table);
	return row ? default_of(row, defaults) : NULL;
}

void options_init(Options *o, int defaults)
{
	const OptionTable *table;
	const OptionEntry *row;
	for (size_t i = 0; (row = row_at(i, &table)); i++) {
		void *field = field_of(o, table, row);
		const char *value = default_of(row, defaults);
		bool valid = read_value(row, value, field);
		assert(valid);
		(void)valid;
		if (is_text(row))
			*(const char **)field = value;
	}
}

static void say_right(const mp_option *o, Buf *b)
{
	switch (o->type) {
	case MP_OPTION_INT:
		buf_printf(b, "%s takes a whole number from %.0f", o->name, o->min);
		if (o->max < (double)INT64_MAX)
			buf_printf(b, " to %.0f", o->max);
		for (size_t i = 0; i < COUNT(int_words); i++)
			if (takes_word(o, int_words[i].word))
				buf_printf(b, ", or '%s'", int_words[i].word);
		break;
	case MP_OPTION_REAL: buf_printf(b, "%s takes a number from %g to %g", o->name, o->min, o->max); break;
	case MP_OPTION_CHOICE:
		buf_printf(b, "%s is one of ", o->name);
		for (int i = 0; o->choices[i]; i++)
			buf_printf(b, "%s%s", i ? "|" : "", o->choices[i]);
		break;
	case MP_OPTION_FLAG: buf_printf(b, "%s is on or off", o->name); break;
	case MP_OPTION_TEXT:
	case MP_OPTION_LIST:
		buf_puts(b, "until takes within, within:0.95, right:0.9, error:0.01, several with commas, or never");
		break;
	}
}

const char *option_set(Ctx *cx, Options *o, const char *name, const char *value, const char **remedy)
{
	const OptionTable *table;
	const OptionEntry *row = find(name, &table);
	*remedy = NULL;
	if (!row)
		return unknown(cx, name, remedy);
	void *field = field_of(o, table, row);
	if (read_value(row, value, field)) {
		if (is_text(row))
			*(const char **)field = arena_copy(&cx->fixed, value, strlen(value));
		return NULL;
	}
	Buf what = { .arena = &cx->scratch }, right = { .arena = &cx->scratch };
	buf_printf(&what, "%s cannot be '%s'", name, value);
	say_right(&row->shown, &right);
	*remedy = right.s;
	return what.s;
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

static void int_print(Buf *b, const mp_option *o, int64_t v)
{
	for (size_t i = 0; i < COUNT(int_words); i++) {
		if (int_words[i].value == v && takes_word(o, int_words[i].word)) {
			buf_puts(b, int_words[i].word);
			return;
		}
	}
	buf_printf(b, "%lld", (long long)v);
}

const char *option_get(Arena *a, const Options *o, const char *name)
{
	const OptionTable *table;
	const OptionEntry *row = find(name, &table);
	if (!row)
		return NULL;
	const void *field = field_of(o, table, row);
	Buf b = { .arena = a };
	switch (row->shown.type) {
	case MP_OPTION_INT: int_print(&b, &row->shown, *(const int64_t *)field); break;
	case MP_OPTION_REAL: real_print(&b, *(const double *)field); break;
	case MP_OPTION_CHOICE: buf_puts(&b, row->shown.choices[*(const int *)field]); break;
	case MP_OPTION_FLAG: buf_puts(&b, *(const int *)field < 0 ? "auto" : *(const int *)field ? "on" : "off"); break;
	case MP_OPTION_TEXT:
	case MP_OPTION_LIST: buf_puts(&b, *(const char *const *)field); break;
	}
	return b.s;
}

void options_check(Ctx *cx, const Options *o)
{
	if (o->step_min > o->step_max)
		fail(cx, MP_BAD_INPUT, "set step-min below step-max", "step-min %g is above step-max %g", o->step_min,
		     o->step_max);
	if (o->schedule == SCHEDULE_COSINE && o->epochs == 0)
		fail(cx, MP_BAD_INPUT, "set epochs: the cosine ends there", "schedule cosine needs a number of epochs");
	if (o->ticks > MAX_TICKS / o->intervals)
		fail(cx, MP_BAD_INPUT, "set fewer ticks or intervals", "%lld intervals of %lld ticks are more than %d ticks",
		     (long long)o->intervals, (long long)o->ticks, MAX_TICKS);
	if (o->targets_from > o->ticks * o->intervals)
		fail(cx, MP_BAD_INPUT, "set targets-from to one of these ticks, or give cases more ticks",
		     "targets-from is %lld, and a case has %lld tick%s", (long long)o->targets_from,
		     (long long)(o->ticks * o->intervals), o->ticks * o->intervals == 1 ? "" : "s");
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
