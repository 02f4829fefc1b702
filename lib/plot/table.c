/* SPDX-License-Identifier: MIT */
/* Tables. In: columns, then rows of cells. Out: aligned text, JSON objects in an array, CSV. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plot.h"

static bool empty(const TableCell *cell)
{
	return cell->kind == CELL_NONE || (cell->kind == CELL_REAL && isnan(cell->real)) ||
	       (cell->kind == CELL_TEXT && !cell->text);
}

static void cell_print(Buf *out, const TableCell *cell, const char *format)
{
	switch (cell->kind) {
	case CELL_TEXT: buf_text(out, cell->text, strlen(cell->text), TEXT_SHOWN); break;
	case CELL_COUNT: buf_printf(out, "%" PRIu64, cell->count); break;
	case CELL_REAL: buf_printf(out, format ? format : fabs(cell->real) < 1000 ? "%.4g" : "%.0f", cell->real); break;
	case CELL_FLAG: buf_puts(out, cell->flag ? "yes" : "no"); break;
	}
}

/* ---- text ---- */

/* A blank separates columns. */
static void field_print(Buf *out, const Column *c, bool first, const char *text)
{
	buf_printf(out, "%s%*s", first ? "" : " ", c->width, text);
}

static void line_end(Buf *out)
{
	while (out->len && out->s[out->len - 1] == ' ')
		out->len--;
	buf_puts(out, "\n");
}

static void text_row(const Table *t, const TableCell *cell, uint32_t cells)
{
	bool first = true;

	for (uint32_t i = 0; i < cells; i++) {
		const Column *c = &t->column[i];
		Buf text = { .arena = t->text->arena };
		TableCell shown = cell[i];
		if (!c->title)
			continue;
		if (shown.kind == CELL_REAL && c->percent)
			shown.real *= 100;
		if (empty(&shown))
			buf_puts(&text, "-");
		else
			cell_print(&text, &shown, c->format);
		if (shown.mark)
			buf_add(&text, &shown.mark, 1);
		field_print(t->text, c, first, text.s ? text.s : "");
		first = false;
	}
}

static void text_head(const Table *t)
{
	bool first = true;

	for (uint32_t i = 0; i < t->columns; i++) {
		if (!t->column[i].title)
			continue;
		field_print(t->text, &t->column[i], first, t->column[i].title);
		first = false;
	}
	line_end(t->text);
}

/* ---- CSV ---- */

/* RFC 4180: quoted where a comma, quote or line break stands in it. */
static void csv_text(Buf *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		buf_puts(out, text);
		return;
	}
	buf_puts(out, "\"");
	for (; *text; text++) {
		if (*text == '"')
			buf_puts(out, "\"");
		buf_add(out, text, 1);
	}
	buf_puts(out, "\"");
}

/* Of `cells` values; the others are empty. cell NULL: the keys. */
static void csv_row(const Table *t, const TableCell *cell, uint32_t cells)
{
	bool first = true;

	for (uint32_t i = 0; i < t->columns; i++) {
		const Column *c = &t->column[i];
		if (!c->key)
			continue;
		buf_puts(t->csv, first ? "" : ",");
		first = false;
		if (!cell && c->object)
			buf_printf(t->csv, "%s_", c->object);
		if (!cell)
			csv_text(t->csv, c->key);
		else if (i < cells && !empty(&cell[i]) && cell[i].kind == CELL_TEXT)
			csv_text(t->csv, cell[i].text);
		else if (i < cells && !empty(&cell[i]))
			cell_print(t->csv, &cell[i], c->exact ? c->exact : "%.6g");
	}
	buf_puts(t->csv, "\n");
}

/* ---- JSON ---- */

static void json_cell(JsonWriter *j, const Column *c, const TableCell *cell)
{
	switch (cell->kind) {
	case CELL_TEXT: jw_text(j, c->key, cell->text); break;
	case CELL_COUNT: jw_count(j, c->key, cell->count); break;
	case CELL_REAL: jw_real(j, c->key, c->exact, cell->real); break;
	case CELL_FLAG: jw_flag(j, c->key, cell->flag); break;
	}
}

/* An object all of whose cells are missing is left out. */
static void json_cells(const Table *t, const TableCell *cell, uint32_t cells)
{
	const char *open = NULL;

	for (uint32_t i = 0; i < cells; i++) {
		const Column *c = &t->column[i];
		if (!c->key || cell[i].kind == CELL_NONE)
			continue;
		bool same = open && c->object && strcmp(open, c->object) == 0;
		if (open && !same)
			jw_end(t->json, '}');
		if (c->object && !same)
			jw_start(t->json, c->object, '{');
		open = c->object;
		json_cell(t->json, c, &cell[i]);
	}
	if (open)
		jw_end(t->json, '}');
}

/* ---- all three ---- */

void table_start(const Table *t, const char *key)
{
	if (t->text)
		text_head(t);
	if (t->json)
		jw_start(t->json, key, '[');
	if (t->csv)
		csv_row(t, NULL, 0);
}

void table_end(const Table *t)
{
	if (t->json)
		jw_end(t->json, ']');
}

void table_members(const Table *t, const TableCell *cell) { json_cells(t, cell, t->columns); }

void table_row(const Table *t, const TableCell *cell) { table_row_failed(t, cell, t->columns, NULL, NULL); }

void table_row_failed(const Table *t, const TableCell *cell, uint32_t cells, const char *key, const char *why)
{
	if (t->text) {
		text_row(t, cell, cells);
		if (why)
			buf_printf(t->text, "  %s", text_escaped(t->text->arena, why));
		line_end(t->text);
	}
	if (t->csv)
		csv_row(t, cell, cells);
	if (!t->json)
		return;
	jw_start(t->json, NULL, '{');
	json_cells(t, cell, cells);
	if (why)
		jw_text(t->json, key, why);
	jw_end(t->json, '}');
}
