/* SPDX-License-Identifier: MIT */
/* A matrix of values as shades (heat map) or squares (Hinton diagram), as a self-contained SVG and as text.
 *
 * Shades run from white to blue; with values of both signs from orange by white to blue.  Squares: positive values are
 * filled, negative ones open, so that both are told apart without colour.  Names are cut, and every n-th is drawn where
 * lines are too close. */
#include <math.h>
#include <stdio.h>

#include "plot.h"

enum {
	WIDTH = 720,
	TOP = 52,
	GLYPH = 7,
	LINE = 13,
	LONGEST = 18,
	SCALE = 112,
	TITLES = 30,
	LARGEST = 34,
	WIDEST = 60,
	TALLEST = 18,
	MOST_HIGH = 1600
};

typedef struct Heat {
	const HeatPlot *p;
	double low, high;                       /* of the shades */
	double cell, tall, left, bottom, right; /* cell: its width; tall: its height */
	int row_names, column_names;            /* characters */
	uint32_t row_step, column_step;
	bool upright; /* names of columns are rotated */
} Heat;

static int longest(const char *const *name, uint32_t count)
{
	size_t most = 1;
	for (uint32_t i = 0; i < count; i++)
		most = svg_length(name[i]) > most ? svg_length(name[i]) : most;
	return most > LONGEST ? LONGEST : (int)most;
}

static Heat layout(const HeatPlot *p)
{
	Heat h = { .p = p, .low = p->low, .high = p->high };
	for (size_t i = 0; p->low == 0 && p->high == 0 && i < (size_t)p->height * p->width; i++)
		if (!isnan(p->value[i])) {
			h.low = fmin(h.low, p->value[i]);
			h.high = fmax(h.high, p->value[i]);
		}
	if (h.low < 0 || p->squares) { /* symmetric around 0 */
		h.high = fmax(h.high, -h.low);
		h.low = -h.high;
	}
	h.high = h.high > h.low ? h.high : h.low + 1;
	h.row_names = longest(p->row_name, p->height);
	h.column_names = longest(p->column_name, p->width);
	h.left = TITLES + 14 + GLYPH * h.row_names;
	double wide = (WIDTH - h.left - SCALE) / p->width, high = (double)MOST_HIGH / p->height;
	h.cell = p->squares ? fmin(fmin(wide, high), LARGEST) : fmin(wide, WIDEST);
	h.upright = GLYPH * h.column_names > h.cell - 4;
	h.tall = p->squares ? h.cell : fmin(TALLEST, high);
	h.row_step = h.tall >= LINE ? 1 : (uint32_t)(LINE / h.tall) + 1;
	h.column_step = h.cell >= LINE ? 1 : (uint32_t)(LINE / h.cell) + 1;
	h.bottom = TOP + h.tall * p->height;
	h.right = h.left + h.cell * p->width;
	return h;
}

static void shade(const Heat *h, double v, char text[8])
{
	static const int blue[] = { 0, 0x4a, 0x8c }, orange[] = { 0xb3, 0x4f, 0 };
	double share = h->low < 0 ? fabs(v) / h->high : (v - h->low) / (h->high - h->low);
	const int *to = v < 0 && h->low < 0 ? orange : blue;
	int part[3];
	share = share < 0 ? 0 : share > 1 ? 1 : share;
	for (int k = 0; k < 3; k++)
		part[k] = (int)(255 + share * (to[k] - 255) + 0.5);
	snprintf(text, 8, "#%02x%02x%02x", part[0] & 255, part[1] & 255, part[2] & 255);
}

/* Around a middle; size: its side. */
static void square(Buf *out, double x, double y, double size, bool filled)
{
	double line = size > 4 ? 1.4 : 0.7, side = filled ? size : size - line;
	if (side < 0.4)
		return;
	buf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", x - side / 2, y - side / 2, side,
	           side);
	if (filled)
		buf_puts(out, " fill=\"" PLOT_BLUE "\"/>\n");
	else
		buf_printf(out, " fill=\"#fff\" stroke=\"" PLOT_ORANGE "\" stroke-width=\"%.1f\"/>\n", line);
}

static void cells(const Heat *h, Buf *out)
{
	const HeatPlot *p = h->p;
	buf_printf(out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", h->left, TOP,
	           h->right - h->left, h->bottom - TOP, p->squares ? "#ececec" : "#f6f6f6");
	for (uint32_t i = 0; i < p->height; i++)
		for (uint32_t k = 0; k < p->width; k++) {
			double v = p->value[(size_t)i * p->width + k], x = h->left + h->cell * k, y = TOP + h->tall * i;
			char colour[8];
			if (isnan(v))
				continue;
			if (p->squares) {
				square(out, x + h->cell / 2, y + h->cell / 2, 0.94 * h->cell * sqrt(fmin(1, fabs(v) / h->high)),
				       v >= 0);
				continue;
			}
			shade(h, v, colour);
			buf_printf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n", x, y,
			           h->cell + 0.05, h->tall + 0.05, colour);
		}
	buf_printf(out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#444\"/>\n",
	           h->left, TOP, h->right - h->left, h->bottom - TOP);
}

static void names(const Heat *h, Buf *out)
{
	const HeatPlot *p = h->p;
	buf_puts(out, "<g text-anchor=\"end\" font-size=\"11\">\n");
	for (uint32_t i = 0; i < p->height; i += h->row_step) {
		buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\">", h->left - 6, TOP + h->tall * (i + 0.5) + 4);
		svg_text(out, p->row_name[i], (size_t)h->row_names);
		buf_puts(out, "</text>\n");
	}
	for (uint32_t k = 0; k < p->width; k += h->column_step) {
		double at = h->left + h->cell * (k + 0.5);
		if (h->upright)
			buf_printf(out, "<text transform=\"translate(%.1f %.1f) rotate(-90)\">", at + 4, h->bottom + 6);
		else
			buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", at, h->bottom + 16);
		svg_text(out, p->column_name[k], (size_t)h->column_names);
		buf_puts(out, "</text>\n");
	}
	buf_puts(out, "</g>\n");
}

/* What shades or areas mean. */
static void scale(const Heat *h, Buf *out)
{
	enum { STEPS = 5, HEIGHT = 22, SIZE = 20 };
	double x = h->right + 18;
	buf_printf(out, "<text x=\"%.1f\" y=\"%d\" font-size=\"12\">", x, TOP + 8);
	svg_text(out, h->p->scale, 11);
	buf_puts(out, "</text>\n");
	for (int i = 0; i < STEPS; i++) {
		double v = h->high - (h->high - h->low) * i / (STEPS - 1), y = TOP + 18 + HEIGHT * i;
		char colour[8];
		shade(h, v, colour);
		if (h->p->squares)
			square(out, x + SIZE / 2.0, y + HEIGHT / 2.0, SIZE * sqrt(fabs(v) / h->high), v >= 0);
		else
			buf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"%s\" stroke=\"#999\"/>\n", x,
			           y, SIZE, HEIGHT, colour);
		buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"12\">%.3g</text>\n", x + SIZE + 6, y + 15,
		           fabs(v) < 1e-12 * h->high ? 0 : v);
	}
}

void heat_svg(const HeatPlot *p, Buf *out)
{
	Heat h = layout(p);
	double below = h.bottom + (h.upright ? 12 + GLYPH * h.column_names : 22), least = TOP + 150;
	drawing_start(out, p->title, WIDTH, (int)fmax(below + TITLES, least));
	cells(&h, out);
	names(&h, out);
	scale(&h, out);
	draw_text(out, (h.left + h.right) / 2, below + 14, "middle", 14, p->columns);
	buf_printf(out, "<text transform=\"translate(20 %.0f) rotate(-90)\" text-anchor=\"middle\" font-size=\"14\">",
	           (TOP + fmax(h.bottom, TOP + 60)) / 2);
	svg_text(out, p->rows, 40);
	buf_puts(out, "</text>\n");
	drawing_end(out);
}

/* Ten sizes of each sign: digits, and letters for negative values. */
void heat_text(const HeatPlot *p, Buf *out)
{
	Heat h = layout(p);
	buf_printf(out, "# %s; %s in columns, %s in rows\n", p->title, p->columns, p->rows);
	for (uint32_t i = 0; i < p->height; i++) {
		Buf name = { .arena = out->arena };
		svg_cut(&name, p->row_name[i], LONGEST);
		const char *shown = text_escaped(out->arena, name.s ? name.s : "");
		size_t length = svg_length(shown);
		buf_printf(out, "%*s%s ", length < (size_t)h.row_names ? (int)((size_t)h.row_names - length) : 0, "", shown);
		for (uint32_t k = 0; k < p->width; k++) {
			double v = p->value[(size_t)i * p->width + k], largest = fmax(h.high, -h.low);
			int size = isnan(v) ? 0 : (int)(9.999 * fmin(1, fabs(v) / largest));
			buf_printf(out, "%c", isnan(v) ? ' ' : size == 0 ? '.' : v < 0 ? 'a' + size - 1 : '0' + size);
		}
		buf_puts(out, "\n");
	}
	buf_printf(out, "# 9: %.3g or near it, . less than a tenth of it%s\n", fmax(h.high, -h.low),
	           h.low < 0 ? "; i: the same, negative; a: a tenth of it, negative" : "");
}
