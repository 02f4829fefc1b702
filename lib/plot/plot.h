/* SPDX-License-Identifier: MIT */
/* plot: output of commands: tables as text, JSON and CSV, figures and drawings as SVG. */
#ifndef PLOT_H
#define PLOT_H

#include "base.h"

/* ---- table.c: rows of cells, written as text, JSON objects and CSV ---- */

enum { CELL_NONE, CELL_TEXT, CELL_COUNT, CELL_REAL, CELL_FLAG };
typedef struct TableCell {
	int kind;
	union {
		const char *text; /* NULL: null in JSON */
		uint64_t count;
		double real; /* not finite: null in JSON */
		bool flag;
	};
	char mark; /* written behind the value in text; 0: none */
} TableCell;
static inline TableCell tc_none(void) { return (TableCell){ .kind = CELL_NONE }; }
static inline TableCell tc_text(const char *text) { return (TableCell){ .kind = CELL_TEXT, .text = text }; }
static inline TableCell tc_count(uint64_t n) { return (TableCell){ .kind = CELL_COUNT, .count = n }; }
static inline TableCell tc_real(double v) { return (TableCell){ .kind = CELL_REAL, .real = v }; }
static inline TableCell tc_flag(bool flag) { return (TableCell){ .kind = CELL_FLAG, .flag = flag }; }
static inline TableCell tc_marked(TableCell cell, char mark)
{
	cell.mark = mark;
	return cell;
}

typedef struct Column {
	const char *key;    /* in JSON and CSV; NULL: only in text */
	const char *title;  /* in text; NULL: only in JSON and CSV */
	int width;          /* of the text column; negative: aligned left; 0: as wide as each cell */
	const char *format; /* of a real in text; NULL: four digits, no exponent from 1,000 on */
	const char *exact;  /* of a real in JSON and CSV; NULL: %.6g */
	const char *object; /* JSON: the key is inside this object, with its neighbours that name the same one */
	bool percent;       /* text: 100 times the value */
} Column;

/* Every row goes to each of the three outputs that is not NULL. */
typedef struct Table {
	const Column *column;
	uint32_t columns;
	Buf *text;
	JsonWriter *json;
	Buf *csv;
} Table;
void table_start(const Table *t, const char *key); /* JSON: starts the array `key`; text and CSV: the heading */
void table_end(const Table *t);
/* A row of t->columns cells. A cell of kind CELL_NONE is '-' in text, empty in CSV and left out of JSON. */
void table_row(const Table *t, const TableCell *cell);
/* A row whose cells from `cells` on are replaced by the reason why they are missing; key: of the reason in JSON. */
void table_row_failed(const Table *t, const TableCell *cell, uint32_t cells, const char *key, const char *why);
/* A row of a table that has no text of its own: the cells as members of the JSON object that is open. */
void table_members(const Table *t, const TableCell *cell);

/* ---- svg.c: a figure as a self-contained SVG ---- */

/* Okabe and Ito's palette, distinguishable with any colour vision. */
#define PLOT_BLUE   "#0072b2"
#define PLOT_ORANGE "#d55e00"
#define PLOT_GREEN  "#009e73"
#define PLOT_PURPLE "#cc79a7"
#define PLOT_BLACK  "#333333"
enum { PLOT_COLOURS = 6 };
extern const char *const plot_colours[PLOT_COLOURS];            /* for lines, in this order */
enum { CORNER_RIGHT = 1, CORNER_BOTTOM = 2, LEGEND_BELOW = 4 }; /* or-ed; 0: top left; below: outside of the frame */
enum { MARK_LINE, MARK_DASHES, MARK_DISC, MARK_SQUARE, MARK_TRIANGLE, MARK_DOT };
/* Points with a NaN are not drawn. */
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
/* Limits and ticks of a linear axis that shows low to high. */
enum { AXIS_TICKS = 12 };
void axis_nice(Axis *a, double low, double high, double tick[AXIS_TICKS]);
/* corner: of the legend */
typedef struct Plot {
	const char *title;
	Axis x, y;
	const Series *series;
	uint32_t count;
	int corner;
} Plot;
void plot_svg(const Plot *p, Buf *out);
/* With a band around each line, from low[i] to high[i]. */
typedef struct Band {
	const double *low, *high; /* [points of the series] */
} Band;
void plot_bands_svg(const Plot *p, const Band *band, Buf *out); /* band: [p->count] */
/* Shared by the files of this module. Text of any bytes, at most `most` characters of it. */
void svg_head(const char *title, int height, Buf *out);
size_t svg_length(const char *s);                                          /* in characters */
void svg_cut(Buf *out, const char *s, size_t most);                        /* the rest becomes an ellipsis */
void svg_tick(Buf *out, double x, double y, const char *anchor, double v); /* the number at a tick */
void svg_text(Buf *out, const char *s, size_t most); /* the same, with what means something in XML escaped */

/* A tornado chart: for each label two bars, from the lowest to the highest ratio to 1; each end is labelled with the
 * value that causes it. */
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

/* A drawing: boxes, texts and arrows in user units, y downwards. anchor: start, middle or end. */
void drawing_start(Buf *out, const char *title, int width, int height);
void drawing_end(Buf *out);
void draw_text(Buf *out, double x, double y, const char *anchor, int size, const char *text);
void draw_box(Buf *out, double x, double y, double width, double height, const char *fill, const char *text);
void draw_arrow(Buf *out, double x, double y, double to_x, double to_y, bool head);
void draw_shape(Buf *out, const double (*point)[2], uint32_t points, const char *fill, double opacity); /* a polygon */

/* ---- tree.c: a tree of clusters ---- */

typedef struct Merge { /* of two nodes: leaves are 0 .. n - 1, merge i is node n + i */
	uint32_t a, b;
	double distance;
} Merge;
typedef struct TreePlot {
	const char *title, *axis;
	const char *const *name; /* [leaves] */
	uint32_t leaves;
	const Merge *merge; /* [leaves - 1] */
} TreePlot;
uint32_t *tree_order(Arena *a, const TreePlot *t); /* leaves from top to bottom */
void tree_svg(const TreePlot *t, Buf *out);
void tree_text(const TreePlot *t, Buf *out); /* drawn with characters */

/* ---- plane.c: points with names ---- */

typedef struct PlanePlot {
	const char *title, *x, *y; /* labels of the axes */
	const char *const *name;   /* [points]; a name that has no space left is not drawn */
	double (*at)[2];
	uint32_t points;
	const uint8_t *set;          /* [points] number of its set; NULL: all are in one */
	const char *const *set_name; /* [sets]; NULL: no legend */
	uint32_t sets;
} PlanePlot;
void plane_svg(const PlanePlot *p, Buf *out);

/* ---- bars.c: a value for each name ---- */

typedef struct BarPlot {
	const char *title, *axis;
	const char *const *name; /* [bars] */
	const double *value;     /* [bars] */
	uint32_t bars;
} BarPlot;
void bars_svg(const BarPlot *p, Buf *out);

/* ---- network.c: groups as boxes, blocks as arrows ---- */

typedef struct NetworkBox {
	const char *name, *text;
	uint32_t level; /* row, from the bottom */
	bool ends;      /* input or output: shaded */
} NetworkBox;
typedef struct NetworkArrow {
	uint32_t from, to;
	bool before; /* from the time step before: dashed */
	const char *label;
} NetworkArrow;
typedef struct NetworkPlot {
	const char *title;
	const NetworkBox *box;
	uint32_t boxes;
	const NetworkArrow *arrow;
	uint32_t arrows;
	const char *before; /* what dashed arrows are, for the legend; NULL: there are none */
} NetworkPlot;
void network_svg(const NetworkPlot *p, Buf *out);

/* ---- heat.c: matrices of values, as shades or as squares ---- */

typedef struct HeatPlot {
	const char *title, *rows, *columns, *scale; /* what rows, columns and values are */
	const char *const *row_name, *const *column_name;
	const double *value; /* [height][width]; NaN: left empty */
	uint32_t height, width;
	bool squares;     /* a Hinton diagram: the area of a square is the size of the value, its colour the sign */
	double low, high; /* of the shades; both 0: those of the values */
} HeatPlot;
void heat_svg(const HeatPlot *p, Buf *out);
void heat_text(const HeatPlot *p, Buf *out); /* drawn with characters */

/* ---- matrix.c: a confusion matrix ---- */

typedef struct MatrixPlot {
	const char *title;
	const char *const *name; /* [classes] */
	const uint64_t *count;   /* [classes * classes] row: the target, column: the guess */
	uint32_t classes;
} MatrixPlot;
void matrix_svg(const MatrixPlot *p, Buf *out);

#endif
