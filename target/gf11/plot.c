/* SPDX-License-Identifier: MIT */
/* A plot as a self-contained SVG.  In: series of points, two axes, linear or logarithmic.  Out: the text of the file.
 *
 * Lines are clipped by the frame, points stand above all lines, the legend inside the frame, in a corner.  Coordinates
 * are in user units (pixels where nothing scales them), y downwards. */
#include <math.h>

#include "commands.h"

enum { WIDTH = 720, HEIGHT = 460, LEFT = 76, RIGHT = 24, TOP = 46, BOTTOM = 60, LEGEND_LINE = 20 };

static double along(const Axis *a, double v)
{
	return a->log ? (arith_log(v) - arith_log(a->low)) / (arith_log(a->high) - arith_log(a->low)) : (v - a->low) / (a->high - a->low);
}

static double at_x(const Plot *p, double v)
{
	return LEFT + along(&p->x, v) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const Plot *p, double v)
{
	return HEIGHT - BOTTOM - along(&p->y, v) * (HEIGHT - TOP - BOTTOM);
}

static bool drawable(const Axis *a, double v)
{
	return isfinite(v) && (!a->log || v > 0);
}

static void text_put(Buf *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '&' || *s == '<' || *s == '>')
			buf_printf(out, "&#%d;", *s);
		else
			buf_add(out, s, 1);
	}
}

/* ---- frame ---- */

static void head(const Plot *p, Buf *out)
{
	buf_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
	           "font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" font-size=\"13\" fill=\"#222\">\n<title>",
	           WIDTH, HEIGHT, WIDTH, HEIGHT);
	text_put(out, p->title);
	buf_printf(out, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH, HEIGHT);
	buf_printf(out, "<clipPath id=\"frame\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n", LEFT, TOP,
	           WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
	buf_printf(out, "<text x=\"%d\" y=\"28\" font-size=\"15\" font-weight=\"bold\">", LEFT);
	text_put(out, p->title);
	buf_puts(out, "</text>\n");
}

static void grid(const Plot *p, Buf *out)
{
	int bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
	buf_puts(out, "<g stroke=\"#e4e4e4\" stroke-width=\"1\">\n");
	for (uint32_t i = 0; i < p->x.ticks; i++)
		buf_printf(out, "<path d=\"M%.1f %dV%d\"/>\n", at_x(p, p->x.tick[i]), bottom, TOP);
	for (uint32_t i = 0; i < p->y.ticks; i++)
		buf_printf(out, "<path d=\"M%d %.1fH%d\"/>\n", LEFT, at_y(p, p->y.tick[i]), right);
	buf_puts(out, "</g>\n");
}

/* 1,000 and 0.05, as people write them. */
static void tick_text(Buf *out, double v)
{
	if (v >= 1000)
		buf_printf(out, "%.0f,%03.0f", floor(v / 1000), v - 1000 * floor(v / 1000));
	else
		buf_printf(out, "%g", v);
}

static void axes(const Plot *p, Buf *out)
{
	int bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
	buf_printf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#444\"/>\n", LEFT, TOP,
	           right - LEFT, bottom - TOP);
	buf_puts(out, "<g stroke=\"#444\">\n");
	for (uint32_t i = 0; i < p->x.ticks; i++)
		buf_printf(out, "<path d=\"M%.1f %dv5\"/>\n", at_x(p, p->x.tick[i]), bottom);
	for (uint32_t i = 0; i < p->y.ticks; i++)
		buf_printf(out, "<path d=\"M%d %.1fh-5\"/>\n", LEFT, at_y(p, p->y.tick[i]));
	buf_puts(out, "</g>\n<g text-anchor=\"middle\">\n");
	for (uint32_t i = 0; i < p->x.ticks; i++) {
		buf_printf(out, "<text x=\"%.1f\" y=\"%d\">", at_x(p, p->x.tick[i]), bottom + 20);
		tick_text(out, p->x.tick[i]);
		buf_puts(out, "</text>\n");
	}
	buf_printf(out, "<text x=\"%d\" y=\"%d\" font-size=\"14\">", (LEFT + right) / 2, HEIGHT - 16);
	text_put(out, p->x.label);
	buf_printf(out, "</text>\n<text transform=\"translate(20 %d) rotate(-90)\" font-size=\"14\">", (TOP + bottom) / 2);
	text_put(out, p->y.label);
	buf_puts(out, "</text>\n</g>\n<g text-anchor=\"end\">\n");
	for (uint32_t i = 0; i < p->y.ticks; i++) {
		buf_printf(out, "<text x=\"%d\" y=\"%.1f\">", LEFT - 9, at_y(p, p->y.tick[i]) + 4.5);
		tick_text(out, p->y.tick[i]);
		buf_puts(out, "</text>\n");
	}
	buf_puts(out, "</g>\n");
}

/* ---- series ---- */

static bool is_line(const Series *s)
{
	return s->mark == MARK_LINE || s->mark == MARK_DASHES;
}

/* Discs are filled, squares and triangles open: they can be told apart where they meet, and without colour. */
static void mark(Buf *out, const Series *s, double x, double y)
{
	if (s->mark == MARK_DISC)
		buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" fill=\"%s\" stroke=\"#fff\" "
		           "stroke-width=\"0.8\"/>\n", x, y, s->colour);
	else if (s->mark == MARK_SQUARE)
		buf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"none\" stroke=\"%s\" "
		           "stroke-width=\"1.8\"/>\n", x - 5, y - 5, s->colour);
	else
		buf_printf(out, "<path d=\"M%.1f %.1fl6 10.4h-12z\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"/>\n", x, y - 7,
		           s->colour);
}

static void stroke(Buf *out, const Series *s)
{
	buf_printf(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-linejoin=\"round\"%s/>\n", s->colour,
	           s->mark == MARK_DASHES ? " stroke-dasharray=\"7 4\"" : "");
}

static void line(const Plot *p, const Series *s, Buf *out)
{
	bool pen = false;
	buf_puts(out, "<path d=\"");
	for (uint32_t i = 0; i < s->points; i++) {
		if (!drawable(&p->x, s->x[i]) || !drawable(&p->y, s->y[i])) {
			pen = false;
			continue;
		}
		buf_printf(out, "%c%.1f %.1f", pen ? 'L' : 'M', at_x(p, s->x[i]), at_y(p, s->y[i]));
		pen = true;
	}
	stroke(out, s);
}

static void series(const Plot *p, Buf *out)
{
	buf_puts(out, "<g clip-path=\"url(#frame)\">\n");
	for (uint32_t k = 0; k < p->count; k++)
		if (is_line(&p->series[k]))
			line(p, &p->series[k], out);
	buf_puts(out, "</g>\n");
	for (uint32_t k = 0; k < p->count; k++) {
		const Series *s = &p->series[k];
		for (uint32_t i = 0; i < s->points && !is_line(s); i++)
			if (drawable(&p->x, s->x[i]) && drawable(&p->y, s->y[i]))
				mark(out, s, at_x(p, s->x[i]), at_y(p, s->y[i]));
	}
}

static void legend(const Plot *p, Buf *out)
{
	size_t longest = 0;
	for (uint32_t k = 0; k < p->count; k++) {
		size_t len = 0;
		while (p->series[k].label[len])
			len++;
		longest = len > longest ? len : longest;
	}
	int width = 58 + (int)(longest * 7), height = 12 + LEGEND_LINE * (int)p->count;
	int left = p->corner & CORNER_RIGHT ? WIDTH - RIGHT - 12 - width : LEFT + 12;
	int top = p->corner & CORNER_BOTTOM ? HEIGHT - BOTTOM - 12 - height : TOP + 12;
	buf_printf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" fill=\"#fff\" fill-opacity=\"0.92\" "
	           "stroke=\"#bbb\"/>\n", left, top, width, height);
	for (uint32_t k = 0; k < p->count; k++) {
		const Series *s = &p->series[k];
		int y = top + 16 + LEGEND_LINE * (int)k;
		if (is_line(s)) {
			buf_printf(out, "<path d=\"M%d %dh28", left + 9, y);
			stroke(out, s);
		} else {
			mark(out, s, left + 23, y);
		}
		buf_printf(out, "<text x=\"%d\" y=\"%d\">", left + 46, y + 4);
		text_put(out, s->label);
		buf_puts(out, "</text>\n");
	}
}

void plot_svg(const Plot *p, Buf *out)
{
	head(p, out);
	grid(p, out);
	axes(p, out);
	series(p, out);
	legend(p, out);
	buf_puts(out, "</svg>\n");
}
