/* SPDX-License-Identifier: MIT */
/* A file as a table.  In: a CSV file, or data of another format.  Out: a Frame: every column in use as numbers, or as
 * words with a dictionary.
 *
 * A CSV file is read twice: the first pass counts what each column holds, the second one stores it.  So memory is that
 * of the values, whatever the file is like.  A column is a category if it holds texts that are no numbers, or if an
 * option says so; a column that is nearly all numbers but not quite is an error at its first text.
 *
 * Numbers are float32.  Where that would merge different ones, such as times in seconds since 1970, the column is wide:
 * its numbers are float64, so that offsets are subtracted before they are rounded. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats.h"
#include "table.h"

bool is_missing(Text t)
{
	static const char *const words[] = { "NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "?" };
	for (size_t i = 0; t.len && i < COUNT(words); i++)
		if (text_is(t, words[i]))
			return true;
	return t.len == 0;
}

/* ---- one pass over the rows of a CSV file ---- */

typedef void FieldFn(Ctx *cx, Frame *t, FrameColumn *c, uint64_t row, Text field, size_t off);

static void each_field(Ctx *cx, Frame *t, const CsvColumns *c, uint64_t rows, FieldFn *fn)
{
	const char *p, *eol;
	size_t off = c->body, released = 0;
	t->rows = 0;
	for (; t->rows < rows && csv_line(t->src, &off, &p, &eol); t->rows++) {
		const char *line = p;
		for (uint32_t i = 0;; i++, p++) {
			Text field;
			size_t at = (size_t)(p - t->src->text);
			p = csv_field(cx, t->src, p, eol, c->sep, &field);
			if (!p)
				break;
			if (i < t->columns && t->column[i].used)
				fn(cx, t, &t->column[i], t->rows, field, at);
			if (p < eol)
				continue;
			if (i + 1 != t->columns)
				error_at(cx, (Loc){ t->src, (size_t)(line - t->src->text) },
				         "give every line one field per column of the header",
				         "this line has %u fields, but there are %u columns", i + 1, t->columns);
			break;
		}
		src_release(t->src, &released, off);
	}
	check_errors(cx);
}

enum { SHORT_NUMBER = 7 };               /* characters: no two such numbers are the same in float32 */
enum { WIDE_RATIO = 4096 };              /* largest number over range: float32 leaves less than 12 bits of precision */
static const float whole_all = 16777216; /* 2^24: from here on float32 merges whole numbers */
static const double whole_all64 = 9007199254740992; /* 2^53, float64 likewise */

/* A number that float32 may round. */
static void count_precision(FrameColumn *c, Text field, float v, size_t off)
{
	c->lengthy |= field.len > SHORT_NUMBER;
	if (fabsf(v) < whole_all)
		return;
	double exact = csv_double(field);
	c->inexact |= exact != (double)v;
	if (fabs(exact) < whole_all64 || c->rounded || memchr(field.s, '.', field.len))
		return;
	char text[64];
	int n = snprintf(text, sizeof text, "%.0f", exact);
	if (n < (int)sizeof text && (uint32_t)n == field.len && memcmp(text, field.s, field.len) != 0)
		c->rounded = off;
}

static void count_field(Ctx *cx, Frame *t, FrameColumn *c, uint64_t row, Text field, size_t off)
{
	float v = NAN;
	(void)row;
	int number = csv_number(field, t->roles->sep, &v);
	if (c->weight && !csv_weight(cx, t->src, off, field, number, v))
		return;
	if (number == CSV_COMMA && !t->comma)
		csv_note_comma(cx, t->src, off);
	t->comma |= number == CSV_COMMA;
	if (number && isfinite(v)) {
		c->low = !c->numbers || (double)v < c->low ? (double)v : c->low;
		c->high = !c->numbers || (double)v > c->high ? (double)v : c->high;
		c->whole = (!c->numbers || c->whole) && v == rintf(v);
		c->numbers++;
		count_precision(c, field, v, off);
	} else if (is_missing(field)) {
		c->missing++;
	} else if (number) {
		c->first_infinite = c->infinite++ ? c->first_infinite : off;
	} else if (c->texts++ == 0) {
		c->first_text = off;
	}
}

static void store_field(Ctx *cx, Frame *t, FrameColumn *c, uint64_t row, Text field, size_t off)
{
	(void)off;
	if (c->number || c->exact) {
		float v;
		bool number = csv_number(field, t->roles->sep, &v) && isfinite(v);
		if (c->number) {
			c->number[row] = number ? v : NAN;
			return;
		}
		double exact = c->exact[row] = number ? csv_double(field) : (double)NAN;
		if (!number)
			return;
		c->low = fmin(c->low, exact);
		c->high = fmax(c->high, exact);
		c->whole &= exact == rint(exact);
		return;
	}
	uint32_t known = c->words.count;
	c->word[row] = is_missing(field) ? NO_WORD : dict_add(&c->words, field);
	if (c->words.count > known) /* the field may lie in scratch memory */
		c->words.text[known].s = arena_copy(&cx->keep, field.s, field.len);
}

/* ---- kinds ---- */

static void check_mixed(Ctx *cx, const Frame *t, const FrameColumn *c)
{
	bool measured = !c->whole || c->high - c->low >= 20; /* not a code such as 1, 2, A */
	if (c->numbers <= c->texts || !measured)
		return;
	Text name = c->name;
	error_at(cx, (Loc){ t->src, c->first_text },
	         "write a number, or nothing where a value is missing; --category NAME makes a column a category",
	         "this is not a number, but %" PRIu64 " of %" PRIu64 " values of column '%s' are", c->numbers,
	         c->numbers + c->texts, text_shown(cx, name));
}

/* Too large for float32, or infinite. */
static void check_infinite(Ctx *cx, const Frame *t, const FrameColumn *c)
{
	if (c->infinite && c->numbers + c->infinite > c->texts)
		error_at(cx, (Loc){ t->src, c->first_infinite },
		         "write numbers up to 3.4e38, perhaps in other units, or nothing where a value is missing",
		         "this number is too large; column '%s' has %" PRIu64 " such", text_shown(cx, c->name), c->infinite);
}

/* Those of a schema are as they were in training. */
static void set_wide(Ctx *cx, const Frame *t, FrameColumn *c, bool known)
{
	if (!known)
		c->wide = c->inexact || (c->lengthy && fmax(fabs(c->low), fabs(c->high)) >= WIDE_RATIO * (c->high - c->low));
	if (c->wide && c->rounded)
		note_at(cx, (Loc){ t->src, c->rounded }, "subtract an offset from the column, or make it a category",
		        "column '%s' holds whole numbers that float64 does not: they are rounded to 16 digits",
		        text_shown(cx, c->name));
}

static void set_kinds(Ctx *cx, Frame *t, const bool *category, bool known)
{
	for (uint32_t i = 0; i < t->columns; i++) {
		FrameColumn *c = &t->column[i];
		if (!c->used)
			continue;
		if (c->weight) {
			check_errors(cx);
			if (c->high <= 0)
				csv_no_weight(cx, t->src, c->off, c->name);
			continue;
		}
		if (!category[i])
			check_infinite(cx, t, c);
		c->kind = category[i] || c->texts ? VALUE_CATEGORY : VALUE_NUMBER;
		if (c->kind == VALUE_CATEGORY && !category[i])
			check_mixed(cx, t, c);
		if (c->kind == VALUE_NUMBER && c->whole && c->low == 0 && c->high == 1)
			c->kind = VALUE_BINARY;
		else if (c->kind == VALUE_NUMBER)
			set_wide(cx, t, c, known);
	}
	check_errors(cx);
}

/* Columns that a schema reads as categories hold words, even if all of them are numbers. */
static void mark_schema(Ctx *cx, Frame *t, const Schema *s, bool *category)
{
	Dict names = { .arena = &cx->scratch };
	for (uint32_t i = 0; i < s->columns; i++)
		dict_add(&names, (Text){ s->column[i].name, (uint32_t)strlen(s->column[i].name) });
	for (uint32_t i = 0; i < t->columns; i++) {
		uint32_t k;
		if (!dict_find(&names, t->column[i].name, &k))
			continue;
		const Field *c = &s->column[k];
		t->column[i].used = c->role != COLUMN_UNUSED;
		t->column[i].weight = c->role == COLUMN_WEIGHT;
		t->column[i].wide = c->wide;
		category[i] = c->role == COLUMN_NAME || c->role == COLUMN_SEQUENCE || c->role == COLUMN_FOLD ||
		              (c->role != COLUMN_WEIGHT && c->kind == VALUE_CATEGORY);
	}
}

static void mark_roles(Ctx *cx, Frame *t, const CsvColumns *c, const DataOptions *opt, bool *category)
{
	for (uint32_t i = 0; i < t->columns; i++) {
		const CsvColumn *col = &c->col[i];
		bool word = c->names == i || c->sequence == i || c->fold == i;
		t->column[i].used = col->x >= 0 || col->y >= 0 || c->weight == i || word;
		t->column[i].weight = c->weight == i;
		category[i] = word || col->label;
	}
	columns_mark(cx, t->src, c, "--category", opt ? opt->category : NULL, category);
	if (c->weight >= 0 && category[c->weight])
		fail_at(cx, (Loc){ t->src, c->col[c->weight].off }, "choose another column with --weight",
		        "column '%s' holds the weights of cases: it cannot be a text", text_shown(cx, c->col[c->weight].name));
}

static void check_names(Ctx *cx, const Frame *t)
{
	Dict seen = { .arena = &cx->scratch };
	for (uint32_t i = 0; i < t->columns; i++) {
		const FrameColumn *c = &t->column[i];
		uint32_t known = seen.count;
		if (dict_add(&seen, c->name) != known)
			error_at(cx, (Loc){ t->src, c->off }, "give every column a name of its own", "two columns are called '%s'",
			         text_shown(cx, c->name));
	}
	check_errors(cx);
}

Frame *table_csv(Ctx *cx, const Src *s, const DataOptions *opt, const Schema *schema)
{
	src_check_text(cx, s);
	Frame *t = NEW(&cx->keep, 1, Frame);
	const CsvColumns *c = schema ? columns_header(cx, s) : columns_plan(cx, s, opt);
	t->name = s->name;
	t->src = s;
	t->columns = c->count;
	t->header = c->header;
	t->roles = c;
	if (t->columns > MAX_COLUMNS)
		fail_at(cx, (Loc){ s, 0 }, "choose another file, or use npz for many inputs", "%u columns are more than %d",
		        t->columns, MAX_COLUMNS);
	t->column = NEW(&cx->keep, t->columns, FrameColumn);
	bool *category = NEW(&cx->scratch, t->columns, bool);
	for (uint32_t i = 0; i < t->columns; i++) {
		Text name = c->col[i].name;
		t->column[i].name = (Text){ arena_copy(&cx->keep, name.s, name.len), name.len };
		t->column[i].off = c->col[i].off;
	}
	check_names(cx, t);
	if (schema)
		mark_schema(cx, t, schema, category);
	else
		mark_roles(cx, t, c, opt, category);

	uint64_t rows = opt && opt->first ? opt->first : UINT64_MAX;
	each_field(cx, t, c, rows, count_field);
	if (!t->rows)
		fail_at(cx, (Loc){ s, s->len }, "write a line with one field per column for each case",
		        "there are no cases below the header");
	set_kinds(cx, t, category, schema != NULL);
	for (uint32_t i = 0; i < t->columns; i++) {
		FrameColumn *col = &t->column[i];
		if (!col->used)
			continue;
		col->words.arena = &cx->keep;
		if (col->kind == VALUE_CATEGORY)
			col->word = NEW(&cx->keep, t->rows, uint32_t);
		else if (col->wide) {
			col->exact = NEW(&cx->keep, t->rows, double);
			col->low = INFINITY;
			col->high = -INFINITY;
			col->whole = true;
		} else
			col->number = NEW(&cx->keep, t->rows, float);
	}
	each_field(cx, t, c, rows, store_field);
	return t;
}

/* ---- other formats ---- */

static Text number_name(Ctx *cx, char letter, uint32_t i)
{
	Buf b = { .arena = &cx->keep };
	buf_printf(&b, "%c%u", letter, i + 1);
	return (Text){ b.s, (uint32_t)b.len };
}

/* True if every case has a one-of-n target; then *class numbers them. */
static bool one_of_n(Ctx *cx, const Data *d, uint32_t **class)
{
	float *row = NEW(&cx->scratch, d->targets, float);
	*class = NEW(&cx->keep, d->cases, uint32_t);
	for (uint64_t i = 0; d->targets > 1 && i < d->cases; i++) {
		data_y(d, i, row);
		int64_t one = row_one_of_n(row, d->targets);
		if (one < 0)
			return false;
		(*class)[i] = (uint32_t)one;
	}
	return d->targets > 1;
}

static void class_column(Ctx *cx, const Data *d, FrameColumn *c)
{
	c->kind = VALUE_CATEGORY;
	c->words.arena = &cx->keep;
	for (uint32_t i = 0; i < d->targets; i++) {
		Buf b = { .arena = &cx->keep };
		buf_printf(&b, "%u", i);
		Text name = { b.s, (uint32_t)b.len };
		if (d->classes)
			name = (Text){ d->classes[i], (uint32_t)strlen(d->classes[i]) };
		dict_add(&c->words, name);
	}
}

/* A number of data in the type of the file; *v is NaN or that number in float32. */
static void data_exact(const Data *d, uint64_t row, uint32_t column, double *v)
{
	bool input = column < d->inputs;
	DType type = input ? d->x_type : d->y_type;
	if (isnan(*v) || (input && d->x_indptr) || type == T_F32 || dtypes[type].size < sizeof(float))
		return;
	*v = input ? dtype_get(d->x_type, d->x, row * d->inputs + column)
	           : dtype_get(d->y_type, d->y, row * d->targets + column - d->inputs);
}

static void count_number(const Frame *t, uint64_t row, uint32_t column, double v)
{
	FrameColumn *c = &t->column[column];
	double exact = v;
	if (isnan(v)) {
		c->missing++;
		return;
	}
	c->low = !c->numbers || v < c->low ? v : c->low;
	c->high = !c->numbers || v > c->high ? v : c->high;
	c->whole = (!c->numbers || c->whole) && v == rint(v);
	c->numbers++;
	data_exact(t->data, row, column, &exact);
	c->lengthy |= exact != v;
	c->inexact |= exact != v && fabs(v) >= (double)whole_all;
}

static void count_rows(Ctx *cx, Frame *t, bool known)
{
	double *row = NEW(&cx->scratch, t->columns, double);
	for (int pass = 0; pass < 2; pass++) { /* wide columns are counted again in their own type */
		for (uint64_t i = 0; i < t->rows && (pass == 0 || t->wide); i++) {
			row_values(t, i, row);
			for (uint32_t k = 0; k < t->columns; k++)
				if (t->column[k].kind != VALUE_CATEGORY && (pass == 0 || t->column[k].wide))
					count_number(t, i, k, row[k]);
		}
		for (uint32_t k = 0; k < t->columns && pass == 0 && !known; k++) {
			FrameColumn *c = &t->column[k];
			set_wide(cx, t, c, false);
			t->wide |= c->wide;
			if (c->wide)
				c->numbers = c->missing = 0;
		}
	}
	for (uint32_t k = 0; k < t->columns; k++) {
		FrameColumn *c = &t->column[k];
		if (c->kind == VALUE_NUMBER && c->numbers && c->whole && c->low == 0 && c->high == 1)
			c->kind = VALUE_BINARY;
	}
}

/* Columns have the names that data keeps, if each has its own; else x1, x2, ..., y1, y2, ..., or class. */
static bool take_names(Ctx *cx, const Data *d, Frame *t)
{
	Dict seen = { .arena = &cx->scratch };
	if (d->columns < t->columns)
		return false;
	for (uint32_t i = 0; i < t->columns; i++) {
		const DataColumn *c = &d->column[i];
		Text name = { c->name, (uint32_t)strlen(c->name) };
		bool target = i >= d->inputs;
		if (!name.len || c->role != (target ? COLUMN_TARGET : COLUMN_INPUT) || c->label != (target && t->class) ||
		    dict_add(&seen, name) != i)
			return false;
		t->column[i].name = name;
	}
	return true;
}

static Frame *table_data(Ctx *cx, const Data *d, const Schema *s)
{
	Frame *t = NEW(&cx->keep, 1, Frame);
	t->name = d->name;
	t->data = d;
	t->rows = d->cases;
	t->images = d->x_type == T_U8 && !d->x_indptr;
	bool classes = one_of_n(cx, d, &t->class);
	if (!classes)
		t->class = NULL;
	uint64_t columns = (uint64_t)d->inputs + (classes ? 1 : d->targets);
	if (columns > MAX_COLUMNS)
		fail(cx, MP_BAD_INPUT, "write a topology file for it", "%s has %u inputs, more than the %d of a table", d->name,
		     d->inputs, MAX_COLUMNS);
	t->columns = (uint32_t)columns;
	t->column = NEW(&cx->keep, t->columns, FrameColumn);
	for (uint32_t i = 0; i < t->columns; i++) {
		FrameColumn *c = &t->column[i];
		c->used = true;
		c->name = i < d->inputs ? number_name(cx, 'x', i) : number_name(cx, 'y', i - d->inputs);
		if (classes && i == d->inputs)
			c->name = (Text){ "class", 5 };
	}
	if (take_names(cx, d, t))
		t->unscale = d->scale.kind != SCALE_NONE;
	if (classes)
		class_column(cx, d, &t->column[d->inputs]);
	for (uint32_t i = 0, k; s && i < t->columns; i++) {
		t->column[i].wide = schema_find(s, t->column[i].name, &k) && s->column[k].wide;
		t->wide |= t->column[i].wide;
	}
	count_rows(cx, t, s != NULL);
	return t;
}

Frame *table_open(Ctx *cx, const char *path, const DataOptions *opt, const Schema *schema)
{
	DataSource from = data_locate(cx, path, opt);
	return from.csv ? table_csv(cx, from.src, opt, schema) : table_data(cx, data_load(cx, &from, opt), schema);
}

/* Data holds float32; in the upper half of `value` they are overwritten only after they were read. */
static void data_values(const Frame *t, uint64_t row, double *value)
{
	const Data *d = t->data;
	float *narrow = (float *)(void *)value + t->columns;
	data_x(d, row, narrow);
	if (!t->class)
		data_y(d, row, narrow + d->inputs);
	for (uint32_t i = 0; i < t->columns - (t->class != NULL); i++)
		value[i] = (double)narrow[i];
	for (uint32_t i = 0; t->wide && i < t->columns - (t->class != NULL); i++)
		if (t->column[i].wide)
			data_exact(d, row, i, &value[i]);
	if (t->class)
		value[d->inputs] = t->class[row];
	for (uint32_t i = 0; t->unscale && i < d->inputs; i++)
		value[i] = value[i] / d->scale.factor[i] + d->scale.offset[i];
}

void row_values(const Frame *t, uint64_t row, double *value)
{
	if (t->data) {
		data_values(t, row, value);
		return;
	}
	for (uint32_t i = 0; i < t->columns; i++) {
		const FrameColumn *c = &t->column[i];
		if (c->used)
			value[i] = c->number                 ? (double)c->number[row]
			           : c->exact                ? c->exact[row]
			           : c->word[row] == NO_WORD ? (double)NAN
			                                     : (double)c->word[row];
	}
}

Loc field_at(Ctx *cx, const Frame *t, uint64_t row, uint32_t column, Text *field)
{
	const char *p = NULL, *eol = NULL;
	size_t off = t->roles->body;
	for (uint64_t i = 0; i <= row; i++)
		if (!csv_line(t->src, &off, &p, &eol))
			return (Loc){ t->src, 0 };
	for (uint32_t i = 0;; i++, p++) {
		Loc at = { t->src, (size_t)(p - t->src->text) };
		p = csv_field(cx, t->src, p, eol, t->roles->sep, field);
		if (i == column || !p || p == eol)
			return at;
	}
}
