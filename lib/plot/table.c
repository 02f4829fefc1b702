/* SPDX-License-Identifier: MIT */
/* Tables. In: columns, then rows of cells. Out: aligned text, JSON objects in an array, or CSV. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plot.h"

static void cell_print(Buf *out, const TableCell *cell, const char *format)
{
	switch (cell->kind) {
	case CELL_TEXT: buf_puts(out, cell->text); break;
	case CELL_COUNT: buf_printf(out, "%" PRIu64, cell->count); break;
	case CELL_REAL: buf_printf(out, format ? format : "%.6g", cell->real); break;
	case CELL_FLAG: buf_puts(out, cell->flag ? "yes" : "no"); break;
	}
}

static bool empty(const TableCell *cell)
{
	return cell->kind == CELL_NONE || (cell->kind == CELL_REAL && isnan(cell->real)) ||
	       (cell->kind == CELL_TEXT && !cell->text);
}

static void pad(Buf *out, size_t count)
{
	while (count--)
		buf_puts(out, " ");
}

/* Text and its mark, aligned in the column; a blank separates columns. */
static void field_print(const Table *t, const Column *c, bool first, const char *text, size_t len)
{
	size_t width = (size_t)(c->width < 0 ? -c->width : c->width);

	buf_puts(t->out, first ? "" : " ");
	if (c->width > 0 && len < width)
		pad(t->out, width - len);
	buf_add(t->out, text, len);
	if (c->width < 0 && len < width)
		pad(t->out, width - len);
}

static void text_row(const Table *t, const TableCell *cell, uint32_t cells)
{
	bool first = true;

	for (uint32_t i = 0; i < cells; i++) {
		Buf text = { .arena = t->out->arena };
		if (!t->column[i].title)
			continue;
		if (empty(&cell[i]))
			buf_puts(&text, "-");
		else
			cell_print(&text, &cell[i], t->column[i].format);
		if (cell[i].mark)
			buf_add(&text, &cell[i].mark, 1);
		field_print(t, &t->column[i], first, text.s ? text.s : "", text.len);
		first = false;
	}
}

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

static void csv_row(const Table *t, const TableCell *cell, uint32_t cells)
{
	bool first = true;

	for (uint32_t i = 0; i < t->columns; i++) {
		if (!t->column[i].key)
			continue;
		buf_puts(t->out, first ? "" : ",");
		first = false;
		if (i >= cells || empty(&cell[i]))
			continue;
		if (cell[i].kind == CELL_TEXT)
			csv_text(t->out, cell[i].text);
		else
			cell_print(t->out, &cell[i], t->column[i].exact);
	}
	buf_puts(t->out, "\n");
}

static void json_cells(const Table *t, const TableCell *cell, uint32_t cells)
{
	for (uint32_t i = 0; i < cells; i++) {
		const Column *c = &t->column[i];
		if (!c->key)
			continue;
		switch (cell[i].kind) {
		case CELL_TEXT: jw_text(t->json, c->key, cell[i].text); break;
		case CELL_COUNT: jw_count(t->json, c->key, cell[i].count); break;
		case CELL_REAL: jw_real(t->json, c->key, c->exact, cell[i].real); break;
		case CELL_FLAG: jw_flag(t->json, c->key, cell[i].flag); break;
		}
	}
}

void table_head(const Table *t)
{
	bool first = true;

	for (uint32_t i = 0; i < t->columns && t->mode != TABLE_JSON; i++) {
		const Column *c = &t->column[i];
		const char *name = t->mode == TABLE_CSV ? c->key : c->title;
		if (!name)
			continue;
		if (t->mode == TABLE_CSV) {
			buf_puts(t->out, first ? "" : ",");
			csv_text(t->out, name);
		} else {
			field_print(t, c, first, name, strlen(name));
		}
		first = false;
	}
	if (t->mode != TABLE_JSON)
		buf_puts(t->out, "\n");
}

void table_row(const Table *t, const TableCell *cell) { table_row_failed(t, cell, t->columns, NULL); }

void table_row_failed(const Table *t, const TableCell *cell, uint32_t cells, const char *why)
{
	switch (t->mode) {
	case TABLE_TEXT:
		text_row(t, cell, cells);
		buf_printf(t->out, why ? "  %s\n" : "\n", why);
		break;
	case TABLE_CSV: csv_row(t, cell, cells); break;
	case TABLE_JSON:
		jw_start(t->json, NULL, '{');
		json_cells(t, cell, cells);
		if (why)
			jw_text(t->json, "error", why);
		jw_end(t->json, '}');
		break;
	}
}
