/* SPDX-License-Identifier: MIT */
/* CSV to Data.  In: the mapped file.  Out: inputs and targets as float32, checked and packed.
 *
 * The first line names the columns; columns.c decides what each is for.  Every other line that is not blank is a case.
 * Numbers are parsed straight from the file; fields may be quoted, "" standing for a quote, and must end on their line.
 * Where other characters separate fields, a comma is a decimal point.  An empty target means that there is none.  A
 * target column is a label, made one-of-n, if an option says so or if its first value is not a number; classes are in
 * the order of their names, numbers before words.  If the options give the classes, a lone target column is a label
 * with these classes, in their order; with several target columns they are ignored.  Consecutive cases with the same
 * text in the sequence column are a sequence; an empty field continues the sequence above. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

typedef struct Csv {
	Ctx *cx;
	const Src *src;
	const CsvColumns *cols;
	uint64_t rows; /* read so far */
	uint64_t cap;  /* allocated */
	float *x, *weight;
	float *y;      /* [rows, target columns]: value or number of the class, NaN: none */
	Dict *classes; /* [target columns] */
	bool given;    /* the options give the classes */
	bool comma;    /* a decimal comma was noted */
	Buf names;
	Text *name; /* [rows] only lengths until the end: `names` is still reallocated */
	uint64_t *seq, sequences;
	Text sequence; /* of the row above */
} Csv;

static Loc at_ptr(const Csv *r, const char *p) { return (Loc){ r->src, (size_t)(p - r->src->text) }; }

/* ---- fields ---- */

static const char *quoted_field(Ctx *cx, const Src *s, const char *p, const char *eol, char sep, Text *t)
{
	const char *start = p++, *from = p;
	size_t doubled = 0;
	for (; p < eol; p++) {
		if (*p != '"')
			continue;
		if (p + 1 == eol || p[1] != '"')
			break;
		doubled++;
		p++;
	}
	if (p == eol) {
		error_at(cx, (Loc){ s, (size_t)(start - s->text) },
		         "end it with a quote on the same line; write a quote inside as \"\"",
		         "this quoted field does not end");
		return NULL;
	}
	*t = (Text){ from, (uint32_t)(p - from) };
	if (doubled) {
		char *copy = arena_copy(&cx->scratch, from, t->len);
		uint32_t len = 0;
		for (uint32_t i = 0; i < t->len; i++) {
			copy[len++] = from[i];
			i += from[i] == '"';
		}
		*t = (Text){ copy, len };
	}
	for (p++; p < eol && *p != sep; p++) {
		if (*p != ' ') {
			error_at(cx, (Loc){ s, (size_t)(p - s->text) },
			         "put all of the field between the quotes; write a quote inside as \"\"",
			         "there is text after the closing quote");
			return NULL;
		}
	}
	return p;
}

const char *csv_field(Ctx *cx, const Src *s, const char *p, const char *eol, char sep, Text *t)
{
	while (p < eol && *p == ' ')
		p++;
	if (p < eol && *p == '"')
		return quoted_field(cx, s, p, eol, sep, t);
	const char *from = p, *to = memchr(p, sep, (size_t)(eol - p));
	if (!to)
		to = eol;
	p = to;
	while (to > from && to[-1] == ' ')
		to--;
	*t = (Text){ from, (uint32_t)(to - from) };
	return p;
}

int csv_number(Text t, char sep, float *v)
{
	char copy[64];
	if (!t.len)
		return CSV_NO_NUMBER;
	if (number_read(t.s, t.s + t.len, v) == t.s + t.len)
		return CSV_NUMBER;
	const char *comma = memchr(t.s, ',', t.len);
	if (sep == ',' || !comma || t.len > sizeof copy || memchr(t.s, '.', t.len))
		return CSV_NO_NUMBER;
	memcpy(copy, t.s, t.len);
	copy[comma - t.s] = '.';
	return number_read(copy, copy + t.len, v) == copy + t.len ? CSV_COMMA : CSV_NO_NUMBER;
}

double csv_double(Text t)
{
	char copy[64];
	char *comma = t.len <= sizeof copy ? memchr(memcpy(copy, t.s, t.len), ',', t.len) : NULL;
	if (!comma)
		return number_double(t.s, t.s + t.len);
	*comma = '.';
	return number_double(copy, copy + t.len);
}

void csv_note_comma(Ctx *cx, const Src *s, size_t off)
{
	note_at(cx, (Loc){ s, off }, "write digits only where it separates thousands",
	        "fields are separated by other characters: a comma is read as a decimal point");
}

/* A number of this file; the first with a decimal comma is noted. */
static int file_number(Csv *r, Text t, const char *at, float *v)
{
	int kind = csv_number(t, r->cols->sep, v);
	if (kind == CSV_COMMA && !r->comma)
		csv_note_comma(r->cx, r->src, (size_t)(at - r->src->text));
	r->comma |= kind == CSV_COMMA;
	return kind;
}

static const char *number_remedy(Text t, const char *otherwise)
{
	static const char starts[] = "0123456789+-.";
	if (!t.len)
		return otherwise;
	if (memchr(t.s, ',', t.len))
		return "write a decimal point instead of the comma";
	return memchr(starts, *t.s, sizeof starts - 1) ? "write a plain number, such as 12, -0.5 or 1e-3" : otherwise;
}

static void read_input(Csv *r, CsvColumn *col, Text t, const char *at, float *x)
{
	static const char remedy[] = "leave the column out with --inputs, or make it the target with --labels";
	if (!t.len)
		error_at(r->cx, at_ptr(r, at), "fill it in, or leave the column out with --inputs", "input '%s' is empty here",
		         text_shown(r->cx, col->name));
	else if (!file_number(r, t, at, x)) {
		if (!col->text) /* once for a column of texts */
			error_at(r->cx, at_ptr(r, at), number_remedy(t, remedy), "'%s' is not a number, and '%s' is an input",
			         text_shown(r->cx, t), text_shown(r->cx, col->name));
		col->text |= r->rows == 0;
	} else if (!isfinite(*x))
		error_at(r->cx, at_ptr(r, at), "write a finite number, or leave the case out", "input '%s' is not finite here",
		         text_shown(r->cx, col->name));
}

static void read_label(Csv *r, const CsvColumn *col, Text t, const char *at, float *y)
{
	Dict *classes = &r->classes[col->y];
	uint32_t class;
	if (r->given && !dict_find(classes, t, &class)) {
		classes_unknown(r->cx, at_ptr(r, at), t, classes);
		return;
	}
	class = dict_add(classes, t);
	if (class >= LABEL_CLASSES)
		fail_at(r->cx, at_ptr(r, at), "choose another target with --targets, or group the values",
		        "label '%s' has more than %d different values", text_shown(r->cx, col->name), LABEL_CLASSES);
	*y = (float)class;
}

static void read_target(Csv *r, const CsvColumn *col, Text t, const char *at, float *y)
{
	*y = NAN;
	if (!t.len)
		return;
	if (col->label) {
		read_label(r, col, t, at, y);
	} else if (!file_number(r, t, at, y)) {
		error_at(r->cx, at_ptr(r, at), number_remedy(t, "if its text is a class, name the column with --labels"),
		         "'%s' is not a number, and '%s' is a target", text_shown(r->cx, t), text_shown(r->cx, col->name));
	} else if (isinf(*y)) {
		error_at(r->cx, at_ptr(r, at), "write a finite number, or nothing where there is no target",
		         "target '%s' is not finite here", text_shown(r->cx, col->name));
	}
}

bool csv_weight(Ctx *cx, const Src *s, size_t off, Text t, int kind, float v)
{
	static const char remedy[] = "write a number, zero or more";
	if (kind != CSV_NO_NUMBER && isfinite(v) && v >= 0)
		return true;
	error_at(cx, (Loc){ s, off }, kind == CSV_NO_NUMBER ? number_remedy(t, remedy) : remedy,
	         "'%s' is no weight of a case", text_shown(cx, t));
	return false;
}

_Noreturn void csv_no_weight(Ctx *cx, const Src *s, size_t off, Text name)
{
	fail_at(cx, (Loc){ s, off }, "give the cases that count a weight above 0, or choose another column",
	        "all weights in column '%s' are 0", text_shown(cx, name));
}

static void check_weights(const Csv *r)
{
	bool counts = !r->weight;
	for (uint64_t i = 0; !counts && i < r->rows; i++)
		counts = r->weight[i] > 0;
	const CsvColumn *c = counts ? NULL : &r->cols->col[r->cols->weight];
	if (c)
		csv_no_weight(r->cx, r->src, c->off, c->name);
}

static void read_weight(Csv *r, Text t, const char *at)
{
	float *w = &r->weight[r->rows];
	int kind = file_number(r, t, at, w);
	csv_weight(r->cx, r->src, (size_t)(at - r->src->text), t, kind, *w);
}

static void read_sequence(Csv *r, Text t)
{
	bool goes_on = r->rows > 0 && (!t.len || (t.len == r->sequence.len && memcmp(t.s, r->sequence.s, t.len) == 0));
	if (goes_on)
		return;
	r->seq[r->sequences++] = r->rows;
	r->sequence = t;
}

/* Any field that is not a plain number. */
static const char *read_field(Csv *r, uint32_t i, const char *p, const char *eol, float *x, float *y)
{
	const CsvColumns *c = r->cols;
	CsvColumn *col = &c->col[i];
	Text t;
	const char *end = csv_field(r->cx, r->src, p, eol, c->sep, &t);
	if (!end)
		return NULL;
	if (col->x >= 0)
		read_input(r, col, t, p, &x[col->x]);
	if (col->y >= 0)
		read_target(r, col, t, p, &y[col->y]);
	if (c->weight == i)
		read_weight(r, t, p);
	if (c->sequence == i)
		read_sequence(r, t);
	if (c->names == i) {
		buf_add(&r->names, t.s, t.len);
		r->name[r->rows].len = t.len;
	}
	return end;
}

/* ---- rows ---- */

static void wrong_count(Csv *r, const char *at, const char *how)
{
	error_at(r->cx, at_ptr(r, at), "give every line one field per column of the header",
	         "this line has %s fields than the %u columns of the header", how, r->cols->count);
}

static void read_row(Csv *r, const char *p, const char *eol)
{
	const CsvColumns *c = r->cols;
	float *x = r->x + r->rows * c->inputs, *y = r->y + r->rows * c->targets, v;
	for (uint32_t i = 0;; i++) {
		const CsvColumn *col = &c->col[i];
		while (p < eol && *p == ' ')
			p++;
		const char *q = col->plain && !col->label ? number_read(p, eol, &v) : NULL;
		if (q && (q == eol || *q == c->sep) && isfinite(v)) {
			if (col->x >= 0)
				x[col->x] = v;
			if (col->y >= 0)
				y[col->y] = v;
		} else {
			q = read_field(r, i, p, eol, x, y);
		}
		if (!q)
			return;
		if (i + 1 == c->count) {
			if (q < eol)
				wrong_count(r, q, "more");
			return;
		}
		if (q == eol) {
			wrong_count(r, q, "fewer");
			return;
		}
		p = q + 1;
	}
}

bool csv_line(const Src *s, size_t *off, const char **line, const char **eol)
{
	while (*off < s->len) {
		const char *p = s->text + *off, *end = memchr(p, '\n', s->len - *off);
		if (!end)
			end = s->text + s->len;
		*off = (size_t)(end - s->text) + 1;
		while (end > p && (end[-1] == '\r' || end[-1] == ' '))
			end--;
		if (end > p) {
			*line = p;
			*eol = end;
			return true;
		}
	}
	return false;
}

static uint64_t count_lines(const Src *s, size_t off)
{
	uint64_t n = 0;
	size_t released = 0;
	for (const char *p = s->text + off, *end = s->text + s->len; p < end; n++) {
		p = memchr(p, '\n', (size_t)(end - p));
		if (!p)
			return n + 1;
		p++;
		src_release(s, &released, (size_t)(p - s->text));
	}
	return n;
}

/* Target columns whose first value is not a number are labels. */
static void find_labels(Csv *r, CsvColumns *c, const DataOptions *opt)
{
	r->given = classes_given(opt) && c->targets == 1 && c->col[c->target[0]].x < 0;
	if (r->given)
		c->col[c->target[0]].label = true;
	uint32_t open = c->targets;
	bool *known = NEW(&r->cx->scratch, c->count, bool);
	const char *p, *eol;
	for (uint32_t i = 0; i < c->targets; i++) {
		known[c->target[i]] = c->col[c->target[i]].label;
		open -= known[c->target[i]];
	}
	for (size_t off = c->body; open && csv_line(r->src, &off, &p, &eol);) {
		for (uint32_t i = 0; i < c->count && open; i++) {
			Text t = { 0 };
			float v;
			const char *q = csv_field(r->cx, r->src, p, eol, c->sep, &t);
			if (!q)
				check_errors(r->cx);
			if (c->col[i].y >= 0 && !known[i] && t.len) {
				c->col[i].label = !csv_number(t, c->sep, &v) && c->col[i].x < 0;
				known[i] = true;
				open--;
			}
			if (q == eol)
				break;
			p = q + 1;
		}
	}
}

static void read_rows(Csv *r, const DataOptions *opt)
{
	const CsvColumns *c = r->cols;
	uint64_t first = opt ? opt->first : 0;
	Ctx *cx = r->cx;
	/* A valid line has at least one byte per column: a bound that no crafted header can inflate. */
	uint64_t max = count_lines(r->src, c->body), bytes = r->src->len - c->body;
	max = min_u64(max, bytes / c->count + 1);
	if (first)
		max = min_u64(max, first);
	bool labels = false;
	for (uint32_t i = 0; i < c->targets; i++)
		labels |= c->col[c->target[i]].label;
	r->cap = max;
	r->x = arena_alloc(&cx->keep, max, c->inputs * sizeof(float));
	r->y = arena_alloc(labels ? &cx->scratch : &cx->keep, max, c->targets * sizeof(float));
	r->classes = NEW(&cx->scratch, c->targets, Dict);
	for (uint32_t i = 0; i < c->targets; i++)
		r->classes[i] = r->given ? classes_dict(cx, opt) : (Dict){ .arena = &cx->scratch };
	if (c->weight >= 0)
		r->weight = NEW(&cx->keep, max, float);
	if (c->names >= 0)
		r->name = NEW(&cx->keep, max, Text);
	if (c->sequence >= 0)
		r->seq = NEW(&cx->keep, max + 1, uint64_t);
	r->names.arena = &cx->keep;

	const char *p, *eol;
	for (size_t off = c->body, released = 0; r->rows < max && csv_line(r->src, &off, &p, &eol); r->rows++) {
		read_row(r, p, eol);
		src_release(r->src, &released, off);
	}
	check_errors(cx);
	if (!r->rows) {
		const char *remedy = memchr(r->src->text, '\r', r->src->len)
		                         ? "end lines with a line feed, alone or after the carriage return"
		                         : "write a line with one field per column for each case";
		fail_at(cx, (Loc){ r->src, r->src->len }, remedy, "there are no cases below the header");
	}
}

/* ---- labels ---- */

int class_order(Text a, Text b)
{
	float va = 0, vb = 0;
	bool na = csv_number(a, ',', &va) && isfinite(va), nb = csv_number(b, ',', &vb) && isfinite(vb);
	if (na != nb)
		return na ? -1 : 1;
	if (na && va != vb)
		return va < vb ? -1 : 1;
	uint32_t len = a.len < b.len ? a.len : b.len;
	int order = len ? memcmp(a.s, b.s, len) : 0;
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

typedef struct Class {
	Text name;
	uint32_t id;
} Class;

static int by_name(const void *a, const void *b)
{
	return class_order(((const Class *)a)->name, ((const Class *)b)->name);
}

/* Sorts the classes unless they were given; place[id] is the new place of class `id`. */
static uint32_t *sort_classes(Ctx *cx, Dict *d, bool given)
{
	Class *class = NEW(&cx->scratch, d->count, Class);
	uint32_t *place = NEW(&cx->scratch, d->count, uint32_t);
	for (uint32_t i = 0; i < d->count; i++)
		class[i] = (Class){ d->text[i], i };
	if (!given)
		qsort(class, d->count, sizeof *class, by_name);
	for (uint32_t i = 0; i < d->count; i++) {
		place[class[i].id] = i;
		d->text[i] = class[i].name;
	}
	return place;
}

/* Expands label columns to one column per class. */
static void spread_labels(Csv *r, Data *d)
{
	const CsvColumns *c = r->cols;
	uint32_t **place = NEW(&r->cx->scratch, c->targets, uint32_t *);
	uint64_t width = 0;
	for (uint32_t i = 0; i < c->targets; i++) {
		bool label = c->col[c->target[i]].label;
		if (label)
			place[i] = sort_classes(r->cx, &r->classes[i], r->given);
		width += label && r->classes[i].count ? r->classes[i].count : 1;
	}
	if (width > MAX_UNITS)
		fail_at(r->cx, (Loc){ r->src, 0 }, "choose fewer with --targets", "the labels need %llu targets",
		        (unsigned long long)width);
	d->targets = (uint32_t)width;
	float *y = arena_alloc(&r->cx->keep, r->rows, width * sizeof(float));
	d->y = y;
	for (uint64_t row = 0; row < r->rows; row++) {
		for (uint32_t i = 0; i < c->targets; i++) {
			float v = r->y[row * c->targets + i];
			uint32_t n = place[i] && r->classes[i].count ? r->classes[i].count : 1;
			for (uint32_t j = 0; j < n; j++)
				y[j] = !place[i] || isnan(v) ? v : (float)(place[i][(uint32_t)v] == j);
			y += n;
		}
	}
}

/* Inputs in order, targets in order, the rest. */
static void keep_columns(Ctx *cx, const CsvColumns *c, Data *d)
{
	const int64_t single[] = { c->names, c->weight, c->sequence };
	static const int roles[] = { COLUMN_NAME, COLUMN_WEIGHT, COLUMN_SEQUENCE };
	if (!c->header)
		return;
	uint32_t n = c->inputs + c->targets;
	DataColumn *column = NEW(&cx->keep, n + COUNT(roles), DataColumn);
	for (uint32_t i = 0; i < c->count; i++) {
		const CsvColumn *col = &c->col[i];
		const char *name = arena_copy(&cx->keep, col->name.s, col->name.len);
		if (col->x >= 0)
			column[col->x] = (DataColumn){ name, COLUMN_INPUT, false };
		if (col->y >= 0)
			column[c->inputs + (uint64_t)col->y] = (DataColumn){ name, COLUMN_TARGET, col->label };
	}
	for (size_t i = 0; i < COUNT(roles); i++) {
		if (single[i] < 0)
			continue;
		Text name = c->col[single[i]].name;
		column[n++] = (DataColumn){ arena_copy(&cx->keep, name.s, name.len), roles[i], false };
	}
	d->column = column;
	d->columns = n;
}

Data *read_csv(Ctx *cx, const Src *s, const DataOptions *opt)
{
	src_check_text(cx, s);
	CsvColumns *c = columns_plan(cx, s, opt);
	if (!opt || !opt->inputs)
		columns_note(cx, s, c);
	Csv r = { .cx = cx, .src = s, .cols = c };
	find_labels(&r, c, opt);
	read_rows(&r, opt);
	check_weights(&r);

	Data *d = NEW(&cx->keep, 1, Data);
	d->name = arena_copy(&cx->keep, s->name, strlen(s->name));
	d->cases = r.rows;
	d->inputs = c->inputs;
	d->targets = c->targets;
	d->x = r.x;
	d->y = c->targets ? r.y : NULL;
	d->x_type = d->y_type = T_F32;
	d->weight = r.weight;
	bool labels = false;
	for (uint32_t i = 0; i < c->targets; i++)
		labels |= c->col[c->target[i]].label;
	if (labels)
		spread_labels(&r, d);
	if (labels && c->targets == 1) /* a lone label names the guesses */
		classes_set(cx, d, r.classes[0].text, r.classes[0].count);
	if (r.seq) {
		r.seq[r.sequences] = r.rows;
		d->seq = r.seq;
		d->sequences = r.sequences;
	}
	const char *name = r.names.s;
	for (uint64_t i = 0; r.name && i < r.rows; i++) {
		r.name[i].s = name ? name : "";
		name += name ? r.name[i].len : 0;
	}
	d->names = r.name;
	keep_columns(cx, c, d);
	data_check(cx, d, (Loc){ s, 0 });
	data_pack(cx, d);
	if (!d->x)
		arena_drop(&cx->keep, r.x, r.cap, c->inputs * sizeof *r.x);
	return d;
}
