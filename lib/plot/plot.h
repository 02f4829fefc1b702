/* SPDX-License-Identifier: MIT */
/* plot: what commands show: tables as text, JSON or CSV, and figures as SVG. */
#ifndef PLOT_H
#define PLOT_H

#include "base.h"

/* ---- table.c: rows of cells, written as text, JSON objects or CSV ---- */

enum { TABLE_TEXT, TABLE_JSON, TABLE_CSV };
enum { CELL_NONE, CELL_TEXT, CELL_COUNT, CELL_REAL, CELL_FLAG };
typedef struct TableCell {
	int kind;
	union {
		const char *text;
		uint64_t count;
		double real;
		bool flag;
	};
	char mark; /* written behind the number in text; 0: none */
} TableCell;
static inline TableCell tc_text(const char *text) { return (TableCell){ .kind = CELL_TEXT, .text = text }; }
static inline TableCell tc_count(uint64_t n) { return (TableCell){ .kind = CELL_COUNT, .count = n }; }
static inline TableCell tc_real(double v) { return (TableCell){ .kind = CELL_REAL, .real = v }; }
static inline TableCell tc_flag(bool flag) { return (TableCell){ .kind = CELL_FLAG, .flag = flag }; }

typedef struct Column {
	const char *key;    /* in JSON and CSV; NULL: only in text */
	const char *title;  /* in text; NULL: only in JSON and CSV */
	int width;          /* of the text column; negative: aligned left; 0: as wide as each cell */
	const char *format; /* of a real in text; NULL: %.6g */
	const char *exact;  /* of a real in JSON and CSV; NULL: %.6g */
} Column;

typedef struct Table {
	int mode; /* TABLE_... */
	const Column *column;
	uint32_t columns;
	JsonWriter *json; /* TABLE_JSON: inside an array */
	Buf *out;
} Table;
void table_head(const Table *t); /* titles, or keys as the first line of CSV */
/* A row. Cells of kind CELL_NONE are '-' in text, empty in CSV and left out of JSON. */
void table_row(const Table *t, const TableCell *cell);
/* A row whose last cells are a reason why there are none: JSON key "error". */
void table_row_failed(const Table *t, const TableCell *cell, uint32_t cells, const char *why);

/* ---- svg.c: a figure as a self-contained SVG ---- */

/* Okabe and Ito's colours, which people with any kind of colour vision can tell apart. */
#define PLOT_BLUE   "#0072b2"
#define PLOT_ORANGE "#d55e00"
#define PLOT_GREEN  "#009e73"
#define PLOT_PURPLE "#cc79a7"
#define PLOT_BLACK  "#333333"
enum { CORNER_RIGHT = 1, CORNER_BOTTOM = 2 }; /* or-ed; 0: top left */
enum { MARK_LINE, MARK_DASHES, MARK_DISC, MARK_SQUARE, MARK_TRIANGLE };
/* A point with a NaN is left out. */
typedef struct Series {
	const char *label, *colour;
	int mark;
	const double *x, *y;
	uint32_t points;
} Series;
typedef struct Axis {
	const char *label;
	double low, high;
	bool log;
	const double *tick;
	uint32_t ticks;
} Axis;
/* corner: of the legend */
typedef struct Plot {
	const char *title;
	Axis x, y;
	const Series *series;
	uint32_t count;
	int corner;
} Plot;
void plot_svg(const Plot *p, Buf *out);
/* Bars from the least to the most that something makes of 1, two of them for each; the ends are named by what makes
 * them. */
typedef struct TornadoEnd {
	double low, high;
	const char *low_value, *high_value;
} TornadoEnd;
typedef struct TornadoBar {
	const char *label;
	TornadoEnd end[2];
} TornadoBar;
typedef struct Tornado {
	const char *title, *axis, *group[2], *colour[2];
	const TornadoBar *bar;
	uint32_t bars;
} Tornado;
void tornado_svg(const Tornado *t, Buf *out);

#endif
