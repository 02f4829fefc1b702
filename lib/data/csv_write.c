/* SPDX-License-Identifier: MIT */
/* Data to CSV.  Out: a header that columns.c recognizes: the names that the columns had, if they are inputs and a
 * target, which comes last; else x1 x2 ..., y1 y2 ... or class, and sequence, weight, name where the data has them;
 * then a line per case.  Reading it gives the same cases; of a code
 * table only class names come back.
 * A missing target is an empty field. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

typedef struct Writer {
	Ctx *cx;
	const Data *d;
	OutFile *f;
	Buf line;
	float *x, *y;
	bool classes; /* targets are written as the name of the class */
	bool named;   /* columns keep their names */
} Writer;

/* ---- text ---- */

static void put_text(Buf *b, Text t)
{
	bool plain = t.len > 0 && t.s[0] != ' ' && t.s[t.len - 1] != ' ';
	for (uint32_t i = 0; i < t.len && plain; i++)
		plain = t.s[i] != ',' && t.s[i] != '"' && t.s[i] != ';' && t.s[i] != '\t';
	if (plain) {
		buf_add(b, t.s, t.len);
		return;
	}
	buf_puts(b, "\"");
	for (uint32_t i = 0; i < t.len; i++) {
		buf_add(b, &t.s[i], 1);
		if (t.s[i] == '"')
			buf_puts(b, "\"");
	}
	buf_puts(b, "\"");
}

static void check_text(Ctx *cx, Text t, const char *what)
{
	if (t.len && (memchr(t.s, '\n', t.len) || memchr(t.s, '\r', t.len)))
		fail(cx, MP_BAD_INPUT, "write .npz instead", "the name of a %s has a line break in it; CSV cannot hold that",
		     what);
}

/* ---- classes ---- */

/* Names of classes can stand for the targets if reading them gives the same targets back: identity codes, names in the
 * reader's order, every row one-of-n, every class in use. */
static bool can_name_classes(Writer *w)
{
	const Data *d = w->d;
	if (!codes_one_of_n(d))
		return false;
	for (uint32_t i = 0; i < d->targets; i++)
		if (d->code_names[i].len == 0 || (i > 0 && class_order(d->code_names[i - 1], d->code_names[i]) >= 0))
			return false;
	bool *used = NEW(&w->cx->scratch, d->targets, bool);
	uint32_t count = 0;
	for (uint64_t i = 0; i < d->cases; i++) {
		data_y(d, i, w->y);
		int64_t class = row_one_of_n(w->y, d->targets);
		if (class < 0)
			return false;
		count += !used[class];
		used[class] = true;
	}
	return count == d->targets;
}

/* ---- lines ---- */

/* Names of columns are written if reading them gives every column the same role. */
static bool can_name_columns(const Writer *w)
{
	const Data *d = w->d;
	uint32_t targets = 0;
	bool label = false;
	for (uint32_t i = 0; i < d->columns; i++) {
		if (strpbrk(d->column[i].name, "\r\n") || d->column[i].role > COLUMN_TARGET)
			return false;
		targets += d->column[i].role == COLUMN_TARGET;
		label |= d->column[i].label;
	}
	for (uint32_t i = 0; label && i < d->code_count && strcmp(d->column[d->columns - 1].name, "class") != 0; i++) {
		float v;
		Text t = d->code_names[i];
		if (number_read(t.s, t.s + t.len, &v) == t.s + t.len) /* would be read as a number */
			return false;
	}
	return d->columns && label == w->classes && (label || targets == d->targets) && !d->seq && !d->weight &&
	       !d->names && csv_default_roles(d->column, d->columns);
}

static void put_numbered(Buf *b, char letter, uint32_t n)
{
	for (uint32_t i = 1; i <= n; i++)
		buf_printf(b, "%s%c%" PRIu32, b->len ? "," : "", letter, i);
}

static void put_header(Writer *w)
{
	const Data *d = w->d;
	Buf *b = &w->line;
	for (uint32_t i = 0; w->named && i < d->columns; i++) {
		const char *name = d->column[i].name;
		buf_puts(b, i ? "," : "");
		put_text(b, (Text){ name, (uint32_t)strlen(name) });
	}
	if (w->named)
		return;
	put_numbered(b, 'x', d->inputs);
	if (w->classes)
		buf_puts(b, ",class");
	else
		put_numbered(b, 'y', d->targets);
	buf_puts(b, d->seq ? ",sequence" : "");
	buf_puts(b, d->weight ? ",weight" : "");
	buf_puts(b, d->names ? ",name" : "");
}

static void put_case(Writer *w, uint64_t i, uint64_t sequence)
{
	const Data *d = w->d;
	Buf *b = &w->line;
	data_x(d, i, w->x);
	data_y(d, i, w->y);
	for (uint32_t k = 0; k < d->inputs; k++) {
		buf_puts(b, k ? "," : "");
		number_put(b, w->x[k]);
	}
	for (uint32_t k = 0; !w->classes && k < d->targets; k++) {
		buf_puts(b, ",");
		if (!isnan(w->y[k]))
			number_put(b, w->y[k]);
	}
	if (w->classes) {
		buf_puts(b, ",");
		put_text(b, d->code_names[row_one_of_n(w->y, d->targets)]);
	}
	if (d->seq)
		buf_printf(b, ",%" PRIu64, sequence);
	if (d->weight) {
		buf_puts(b, ",");
		number_put(b, d->weight[i]);
	}
	if (d->names) {
		check_text(w->cx, d->names[i], "case");
		buf_puts(b, ",");
		put_text(b, d->names[i]);
	}
}

static void end_line(Writer *w)
{
	buf_puts(&w->line, "\n");
	file_write(w->f, w->line.s, w->line.len);
	w->line.len = 0;
}

void write_csv(Ctx *cx, const Data *d, const char *path)
{
	Writer w = { .cx = cx, .d = d, .line = { .arena = &cx->scratch } };
	w.x = NEW(&cx->scratch, d->inputs, float);
	w.y = NEW(&cx->scratch, d->targets, float);
	w.classes = can_name_classes(&w);
	for (uint32_t i = 0; w.classes && i < d->code_count; i++)
		check_text(cx, d->code_names[i], "class");
	w.named = can_name_columns(&w);
	data_note_lost(cx, d, "CSV",
	               HOLDS_SEQ | HOLDS_WEIGHT | HOLDS_NAMES | (w.classes ? HOLDS_CODES : 0) |
	                   (w.named ? HOLDS_COLUMNS : 0));
	w.f = file_create(cx, &cx->scratch, path);
	put_header(&w);
	end_line(&w);
	uint64_t sequence = 0;
	for (uint64_t i = 0; i < d->cases; i++) {
		sequence += d->seq && i == d->seq[sequence + 1];
		put_case(&w, i, sequence + 1);
		end_line(&w);
	}
	file_commit(cx, w.f);
}
