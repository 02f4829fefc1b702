/* SPDX-License-Identifier: MIT */
/* What the columns of a table are for.  In: a Frame, roles that options give.  Out: a Schema without offsets and
 * factors, and a line of text for each decision.
 *
 * Inputs: numbers, 0/1, categories; a column that cannot help (one value only, a different text in nearly every row,
 * the numbers of the rows) is not used.  Targets: texts, or whole numbers with few different values, are classes; 0 and
 * 1 are binary; other numbers are a regression. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

enum { NUMBER_CLASSES = 20 }; /* at most, of targets that are whole numbers */
enum { CASES_PER_CLASS = 5 }; /* at least, on average, for these to be classes */
enum { LISTED = 6 };          /* columns or classes in a line */

typedef struct Infer {
	Ctx *cx;
	const Frame *t;
	const InferOptions *how;
	Schema *s;
	Buf unused; /* names of columns that are not used, and why */
} Infer;

static Loc column_at(const Infer *f, const FrameColumn *c) { return (Loc){ f->t->src, c->off }; }

/* ---- categories ---- */

static int by_class(const void *a, const void *b) { return class_order(*(const Text *)a, *(const Text *)b); }

/* Words of a column that stand in some row, in order. */
static void take_words(Infer *f, const FrameColumn *from, Field *c)
{
	Text *word = NEW(&f->cx->scratch, from->words.count, Text);
	uint32_t n = from->words.count;
	if (n)
		memcpy(word, from->words.text, n * sizeof *word);
	if (!f->t->class) /* of one-of-n targets the order is given */
		qsort(word, n, sizeof *word, by_class);
	const char **category = NEW(&f->cx->keep, n, const char *);
	for (uint32_t i = 0; i < n; i++)
		category[i] = arena_copy(&f->cx->keep, word[i].s, word[i].len);
	c->kind = VALUE_CATEGORY;
	c->category = category;
	c->categories = n;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Different numbers of a column, ascending, at most `most` + 1 of them; in scratch. */
static uint32_t different(Infer *f, uint32_t column, uint32_t most, double **value)
{
	double *seen = NEW(&f->cx->scratch, most + 2, double), *row = NEW(&f->cx->scratch, f->t->columns, double);
	uint32_t n = 0;
	for (uint64_t i = 0; i < f->t->rows && n <= most; i++) {
		row_values(f->t, i, row);
		double v = row[column];
		if (isnan(v) || bsearch(&v, seen, n, sizeof v, by_value))
			continue;
		seen[n++] = v;
		qsort(seen, n, sizeof *seen, by_value);
	}
	*value = seen;
	return n;
}

/* The fewest digits that read back as the same number. */
static void put_number(Buf *b, double v)
{
	char text[40];
	if ((double)(float)v == v && fabs(v) < 16777216) {
		number_put(b, (float)v);
		return;
	}
	for (int digits = 15, n = 0; digits <= 17; digits++) {
		n = snprintf(text, sizeof text, "%.*g", digits, v);
		if (number_double(text, text + n) == v)
			break;
	}
	buf_puts(b, text);
}

static void take_numbers(Infer *f, const double *value, uint32_t n, Field *c)
{
	const char **category = NEW(&f->cx->keep, n, const char *);
	for (uint32_t i = 0; i < n; i++) {
		Buf b = { .arena = &f->cx->keep };
		put_number(&b, value[i]);
		category[i] = b.s;
	}
	c->kind = VALUE_CATEGORY;
	c->category = category;
	c->categories = n;
}

/* ---- inputs ---- */

/* 1, 2, 3, ... down the rows. */
static bool numbers_rows(const Infer *f, const FrameColumn *c)
{
	if ((!c->number && !c->exact) || !c->whole || c->missing || f->t->rows < 10 ||
	    c->high - c->low + 1 != (double)f->t->rows)
		return false;
	for (uint64_t i = 1; i < f->t->rows; i++)
		if (c->number ? c->number[i] != c->number[i - 1] + 1 : c->exact[i] != c->exact[i - 1] + 1)
			return false;
	return true;
}

/* NULL: the column can be an input. */
static const char *useless(const Infer *f, const FrameColumn *c)
{
	uint64_t values = f->t->rows - c->missing;
	if (!values)
		return "empty";
	if (c->kind == VALUE_CATEGORY) {
		if (c->words.count == 1 && !c->missing)
			return "one value only";
		if (c->words.count > MAX_CATEGORIES)
			return "too many different texts";
		return c->words.count > 20 && c->words.count > values / 2 ? "a different text in most rows" : NULL;
	}
	if (c->low == c->high && !c->missing)
		return "one value only";
	return numbers_rows(f, c) ? "it numbers the rows" : NULL;
}

static void add_input(Infer *f, uint32_t i, Field *c)
{
	const FrameColumn *from = &f->t->column[i];
	const char *why = f->t->data ? NULL : useless(f, from);
	if (why) {
		buf_printf(&f->unused, "%s'%s' (%s)", f->unused.len ? ", " : "", text_shown(f->cx, from->name), why);
		c->role = COLUMN_UNUSED;
		return;
	}
	c->role = COLUMN_INPUT;
	c->kind = from->kind;
	c->wide = from->wide;
	c->indicator = from->missing > 0;
	if (c->kind == VALUE_CATEGORY)
		take_words(f, from, c);
}

/* ---- targets ---- */

static _Noreturn void bad_target(Infer *f, const FrameColumn *c, const char *what)
{
	fail_at(f->cx, column_at(f, c), "choose another target with --targets", "target '%s' %s",
	        text_shown(f->cx, c->name), what);
}

static void add_target(Infer *f, uint32_t i, Field *c, bool alone)
{
	const FrameColumn *from = &f->t->column[i];
	uint64_t values = f->t->rows - from->missing;
	int task = f->how->task;
	c->role = COLUMN_TARGET;
	if (values < 2)
		bad_target(f, from, values ? "has a value in one row only" : "is empty in every row");
	if (from->kind == VALUE_CATEGORY) {
		if (from->words.count > LABEL_CLASSES || (from->words.count > 20 && from->words.count > values / 2))
			bad_target(f, from, "has a different text in most rows: it names the rows and is no class");
		if (task == TASK_REGRESSION)
			bad_target(f, from, "holds texts, so that there is no regression on it");
		take_words(f, from, c);
	} else {
		double *value = NULL;
		uint32_t n = alone ? different(f, i, task == TASK_CLASSES ? 1000 : NUMBER_CLASSES, &value) : UINT32_MAX;
		bool few = from->whole && n <= NUMBER_CLASSES && values >= (uint64_t)CASES_PER_CLASS * n;
		c->kind = from->kind;
		c->wide = from->wide;
		if (numbers_rows(f, from))
			bad_target(f, from, "numbers the rows: there is nothing to learn");
		if (task == TASK_CLASSES && n > 1000)
			bad_target(f, from, "has more than 1,000 different numbers: these are no classes");
		if (task == TASK_REGRESSION)
			c->kind = VALUE_NUMBER;
		else if (alone && (task == TASK_CLASSES || (task == TASK_NONE && few && c->kind == VALUE_NUMBER)))
			take_numbers(f, value, n, c);
	}
	if (c->kind == VALUE_CATEGORY ? c->categories < 2 : from->low == from->high)
		bad_target(f, from, "has the same value in every row: there is nothing to learn");
}

/* One kind for all targets: numbers, unless all are 0 and 1. */
static void set_task(Infer *f)
{
	Schema *s = f->s;
	uint32_t count[VALUE_KINDS] = { 0 }, targets = 0;
	for (uint32_t i = 0; i < s->columns; i++) {
		if (s->column[i].role == COLUMN_TARGET) {
			count[s->column[i].kind]++;
			targets++;
		}
	}
	if (count[VALUE_CATEGORY] && targets > 1)
		fail_at(f->cx, (Loc){ f->t->src, 0 }, "name one of them with --targets",
		        "several targets of which one is a text: a model has one class, or any number of numbers");
	for (uint32_t i = 0; count[VALUE_NUMBER] && i < s->columns; i++)
		if (s->column[i].role == COLUMN_TARGET)
			s->column[i].kind = VALUE_NUMBER;
	s->task = !targets                ? TASK_NONE
	          : count[VALUE_CATEGORY] ? TASK_CLASSES
	          : count[VALUE_NUMBER]   ? TASK_REGRESSION
	                                  : TASK_BINARY;
}

/* ---- decisions ---- */

static void say_columns(const Infer *f, Buf *b, int role)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < f->s->columns; i++) {
		const Field *c = &f->s->column[i];
		if (c->role != role)
			continue;
		if (n++ < LISTED)
			buf_printf(b, "%s%.40s", n > 1 ? ", " : "", c->name);
	}
	if (n > LISTED)
		buf_printf(b, " and %u more", n - LISTED);
}

static void say_inputs(const Infer *f, Buf *b)
{
	uint32_t count[VALUE_KINDS] = { 0 }, missing = 0;
	for (uint32_t i = 0; i < f->s->columns; i++) {
		if (f->s->column[i].role == COLUMN_INPUT) {
			count[f->s->column[i].kind]++;
			missing += f->s->column[i].indicator;
		}
	}
	static const char *const scaling[] = {
		[SCALE_NONE] = "as they are", [SCALE_RANGE] = "scaled to 0..1", [SCALE_ZSCORE] = "z-scored"
	};
	buf_puts(b, "inputs: ");
	say_columns(f, b, COLUMN_INPUT);
	buf_puts(b, " (");
	const char *comma = "";
	if (count[VALUE_NUMBER]) {
		buf_printf(b, "%u number%s, %s", count[VALUE_NUMBER], count[VALUE_NUMBER] > 1 ? "s" : "", scaling[f->s->scale]);
		comma = "; ";
	}
	if (count[VALUE_BINARY]) {
		buf_printf(b, "%s%u of 0 and 1", comma, count[VALUE_BINARY]);
		comma = "; ";
	}
	if (count[VALUE_CATEGORY])
		buf_printf(b, "%s%u categor%s, one-of-n", comma, count[VALUE_CATEGORY],
		           count[VALUE_CATEGORY] > 1 ? "ies" : "y");
	if (missing)
		buf_printf(b, "; %u with missing values: mean, or a category of its own, and an indicator", missing);
	buf_puts(b, "); change with --inputs, --category, --scale\n");
}

static void say_target(const Infer *f, Buf *b)
{
	const Field *c = schema_target(f->s, 0);
	if (!c)
		return;
	buf_puts(b, "target: ");
	say_columns(f, b, COLUMN_TARGET);
	if (f->s->task == TASK_CLASSES) {
		buf_printf(b, ", %u classes:", c->categories);
		for (uint32_t i = 0; i < c->categories && i < LISTED; i++)
			buf_printf(b, " %.40s", c->category[i]);
		buf_puts(b, c->categories > LISTED ? " ...; softmax outputs" : "; softmax outputs");
	} else {
		buf_puts(b, f->s->task == TASK_BINARY ? ", 0 or 1; sigmoid outputs" : ", numbers, z-scored; linear outputs");
	}
	buf_puts(b, "; change with --targets, --task\n");
}

/* Columns whose names alone give them a role. */
static void say_named(const Infer *f, Buf *b)
{
	for (uint32_t i = 0; f->t->roles && f->t->roles->own && i < f->s->columns; i++) {
		const Field *c = &f->s->column[i];
		bool single = c->role == COLUMN_NAME || c->role == COLUMN_WEIGHT || c->role == COLUMN_SEQUENCE;
		if (single && !strcmp(c->name, column_roles[c->role]))
			buf_printf(b, "%s: column '%s', because of its name; change with --targets: then it is an input\n",
			           column_roles[c->role], c->name);
	}
}

static void say(const Infer *f)
{
	Buf *b = f->how->decisions;
	if (!b)
		return;
	if (!f->t->header && f->t->src)
		buf_puts(b, "columns: the first line holds no names, so they are called c1, c2, ...\n");
	say_inputs(f, b);
	say_named(f, b);
	if (f->unused.len)
		buf_printf(b, "not used: %s\n", f->unused.s);
	say_target(f, b);
}

/* ---- all of it ---- */

static void single_role(const Infer *f, int64_t column, int role)
{
	if (column < 0)
		return;
	Field *c = &f->s->column[column];
	if (c->role == COLUMN_TARGET || c->role == COLUMN_WEIGHT)
		fail_at(f->cx, column_at(f, &f->t->column[column]), "choose another column for one of them",
		        "column '%.40s' cannot be the %s and the %s of cases", c->name, column_roles[c->role],
		        column_roles[role]);
	c->role = role;
}

static void check_folds(const Infer *f, int64_t column)
{
	const FrameColumn *c = column < 0 ? NULL : &f->t->column[column];
	if (c && (c->words.count < 2 || c->words.count > MAX_FOLDS))
		fail_at(f->cx, column_at(f, c), "give 2 to 100 folds a name each", "column '%s' names %u fold%s",
		        text_shown(f->cx, c->name), c->words.count, c->words.count == 1 ? "" : "s");
}

Schema *schema_infer(Ctx *cx, const Frame *t, const InferOptions *how)
{
	Infer f = { .cx = cx, .t = t, .how = how, .s = NEW(&cx->keep, 1, Schema), .unused.arena = &cx->scratch };
	Schema *s = f.s;
	s->scale = how->scale >= 0 ? how->scale : t->images ? SCALE_RANGE : SCALE_ZSCORE;
	s->columns = t->columns;
	s->column = NEW(&cx->keep, t->columns, Field);
	uint32_t targets = 0, first_target = t->data ? t->data->inputs : 0;
	for (uint32_t i = 0; i < t->columns; i++)
		targets += t->data ? i >= first_target : t->roles->col[i].y >= 0;
	for (uint32_t i = 0; i < t->columns; i++) {
		Field *c = &s->column[i];
		c->name = arena_copy(&cx->keep, t->column[i].name.s, t->column[i].name.len);
		c->factor = 1;
		if (t->data ? i >= first_target : t->roles->col[i].y >= 0)
			add_target(&f, i, c, targets == 1);
		else if (t->data || t->roles->col[i].x >= 0)
			add_input(&f, i, c);
	}
	if (t->roles) {
		single_role(&f, t->roles->names, COLUMN_NAME);
		single_role(&f, t->roles->weight, COLUMN_WEIGHT);
		single_role(&f, t->roles->sequence, COLUMN_SEQUENCE);
		single_role(&f, t->roles->fold, COLUMN_FOLD);
		check_folds(&f, t->roles->fold);
	}
	set_task(&f);
	schema_units(cx, s);
	if (!s->inputs)
		fail_at(cx, (Loc){ t->src, 0 }, "choose them with --inputs", "no column is of use as an input: %s",
		        f.unused.s ? f.unused.s : "all are targets");
	say(&f);
	return s;
}
