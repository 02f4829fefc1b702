/* SPDX-License-Identifier: MIT */
/* Plots as self-contained SVGs. In: series of points, two axes, linear or logarithmic; or bars. Out: the text of the
 * file.
 *
 * Lines are clipped by the frame; points are drawn over all lines; the legend is in a corner of the frame. Coordinates
 * are in user units, y downwards. */
#include <math.h>
#include <string.h>

#include "plot.h"

const char *const plot_colours[PLOT_COLOURS] = {
	PLOT_BLUE, PLOT_ORANGE, PLOT_GREEN, PLOT_PURPLE, "#e69f00", "#56b4e9"
};

enum { WIDTH = 720, HEIGHT = 460, LEFT = 76, RIGHT = 24, TOP = 46, BOTTOM = 60, LEGEND_LINE = 20, LONGEST = 80 };

static double along(const Axis *a, double v)
{
	return a->log ? (arith_log(v) - arith_log(a->low)) / (arith_log(a->high) - arith_log(a->low))
	              : (v - a->low) / (a->high - a->low);
}

static double at_x(const Plot *p, double v) { return LEFT + along(&p->x, v) * (WIDTH - LEFT - RIGHT); }

static double at_y(const Plot *p, double v) { return HEIGHT - BOTTOM - along(&p->y, v) * (HEIGHT - TOP - BOTTOM); }

static bool drawable(const Axis *a, double v) { return isfinite(v) && (!a->log || v > 0); }

/* Escaped first: XML has no control characters, not even as references. */
/* ---- text: of any bytes, cut to `most` characters; what XML does not allow is U+FFFD ---- */

size_t svg_length(const char *s)
{
	size_t n = 0;
	for (size_t i = 0, len = strlen(s), step; i < len; i += step ? step : 1, n++) {
		uint32_t c;
		step = utf8_read(s + i, len - i, &c);
	}
	return n;
}

void svg_cut(Buf *out, const char *s, size_t most)
{
	size_t len = strlen(s), n = svg_length(s) > most ? most - 1 : most, i = 0;
	for (uint32_t c; i < len && n > 0; n--) {
		size_t step = utf8_read(s + i, len - i, &c);
		if (!step || c < ' ' || c == 0xFFFE || c == 0xFFFF)
			buf_puts(out, "\xEF\xBF\xBD");
		else
			buf_add(out, s + i, step);
		i += step ? step : 1;
	}
	buf_puts(out, i < len ? "\xE2\x80\xA6" : "");
}

void svg_text(Buf *out, const char *s, size_t most)
{
	Buf cut = { .arena = out->arena };
	svg_cut(&cut, s, most);
	for (const char *c = cut.s; *c; c++) {
		if (*c == '&' || *c == '<' || *c == '>')
			buf_printf(out, "&#%d;", *c);
		else
			buf_add(out, c, 1);
	}
}

static void text_put(Buf *out, const char *s) { svg_text(out, s, LONGEST); }

/* ---- frame ---- */

void svg_head(const char *title, int height, Buf *out)
{
	buf_printf(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
		"font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" font-size=\"13\" fill=\"#222\">\n<title>",
		WIDTH, height, WIDTH, height);
	text_put(out, title);
	buf_printf(out, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH, height);
	buf_printf(out, "<clipPath id=\"frame\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n", LEFT,
	           TOP, WIDTH - LEFT - RIGHT, height - TOP - BOTTOM);
	buf_printf(out, "<text x=\"%d\" y=\"28\" font-size=\"15\" font-weight=\"bold\">", LEFT);
	text_put(out, title);
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

/* 0.05, 1,000, 200k, 1.5M. */
static void tick_text(Buf *out, double v)
{
	double size = fabs(v);
	if (size >= 1e5 && size < 1e15) {
		int unit = size < 1e6 ? 0 : size < 1e9 ? 1 : size < 1e12 ? 2 : 3;
		static const double units[] = { 1e3, 1e6, 1e9, 1e12 };
		buf_printf(out, "%g%c", v / units[unit], "kMGT"[unit]);
	} else if (size >= 1000 && size < 1e5)
		buf_printf(out, "%s%.0f,%03.0f", v < 0 ? "-" : "", floor(size / 1000), fmod(size, 1000));
	else
		buf_printf(out, "%g", v);
}

void svg_tick(Buf *out, double x, double y, const char *anchor, double v)
{
	buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
	tick_text(out, v);
	buf_puts(out, "</text>\n");
}

void axis_nice(Axis *a, double low, double high, double tick[AXIS_TICKS])
{
	static const double steps[] = { 1, 2, 5, 10 };
	if (!(high > low)) {
		double around = fabs(low) > 0 ? fabs(low) / 10 : 1;
		low -= around;
		high += around;
	}
	double power = 1, step = 0;
	for (; power * 10 <= (high - low) / 5; power *= 10)
		;
	for (; power > (high - low) / 5 && power > 1e-300; power /= 10)
		;
	for (size_t i = 0; i < COUNT(steps) && (step == 0 || (high - low) / step > 6); i++)
		step = steps[i] * power;
	double first = floor(low / step), last = ceil(high / step);
	a->low = first * step;
	a->high = last * step;
	a->tick = tick;
	a->ticks = 0;
	for (double at = first; at <= last && a->ticks < AXIS_TICKS; at++)
		tick[a->ticks++] = at * step;
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

static bool is_line(const Series *s) { return s->mark == MARK_LINE || s->mark == MARK_DASHES; }

/* Dots are for many points. Discs are filled, squares and triangles open: distinguishable where they overlap, and
 * without colour. */
static void mark(Buf *out, const Series *s, double x, double y)
{
	if (s->mark == MARK_DOT)
		buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\" fill-opacity=\"0.55\"/>\n", x, y,
		           s->colour);
	else if (s->mark == MARK_DISC)
		buf_printf(out,
		           "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" fill=\"%s\" stroke=\"#fff\" "
		           "stroke-width=\"0.8\"/>\n",
		           x, y, s->colour);
	else if (s->mark == MARK_SQUARE)
		buf_printf(out,
		           "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"none\" stroke=\"%s\" "
		           "stroke-width=\"1.8\"/>\n",
		           x - 5, y - 5, s->colour);
	else
		buf_printf(out, "<path d=\"M%.1f %.1fl6 10.4h-12z\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"/>\n", x,
		           y - 7, s->colour);
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

/* Where a value is drawn, inside the frame: bands reach beyond it. */
static double on_frame(double y) { return y < TOP ? TOP : y > HEIGHT - BOTTOM ? HEIGHT - BOTTOM : y; }

/* There along the upper limit, and back along the lower one. */
static void band_draw(const Plot *p, const Series *s, const Band *b, Buf *out)
{
	bool pen = false;
	buf_puts(out, "<path d=\"");
	for (uint32_t k = 0; k < 2 * s->points; k++) {
		uint32_t i = k < s->points ? k : 2 * s->points - 1 - k;
		double y = k < s->points ? b->high[i] : b->low[i];
		if (!drawable(&p->x, s->x[i]) || !drawable(&p->y, b->low[i]) || !drawable(&p->y, b->high[i]))
			continue;
		buf_printf(out, "%c%.1f %.1f", pen ? 'L' : 'M', at_x(p, s->x[i]), on_frame(at_y(p, y)));
		pen = true;
	}
	buf_printf(out, "z\" fill=\"%s\" fill-opacity=\"0.18\"/>\n", s->colour);
}

static void series(const Plot *p, Buf *out)
{
	buf_puts(out, p->corner & LEGEND_BELOW ? "<g>\n" : "<g clip-path=\"url(#frame)\">\n");
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

/* A line or mark from x on, and its label. */
static void legend_entry(Buf *out, const Series *s, bool band, int x, int y, size_t most)
{
	if (band)
		buf_printf(out, "<rect x=\"%d\" y=\"%d\" width=\"28\" height=\"12\" fill=\"%s\" fill-opacity=\"0.18\"/>\n", x,
		           y - 6, s->colour);
	if (is_line(s)) {
		buf_printf(out, "<path d=\"M%d %dh28", x, y);
		stroke(out, s);
	} else {
		mark(out, s, x + 14, y);
	}
	buf_printf(out, "<text x=\"%d\" y=\"%d\">", x + 37, y + 4);
	svg_text(out, s->label, most);
	buf_puts(out, "</text>\n");
}

/* Columns below the frame, as many as fit. */
typedef struct Below {
	uint32_t columns, rows;
	size_t most; /* characters of a label */
} Below;

static size_t longest_label(const Plot *p)
{
	size_t longest = 1;
	for (uint32_t k = 0; k < p->count; k++) {
		size_t len = svg_length(p->series[k].label);
		longest = len > longest ? len : longest;
	}
	return longest;
}

static Below legend_below(const Plot *p)
{
	enum { GLYPH = 8, MARK = 48, SPACE = WIDTH - LEFT - RIGHT };
	Below b = { .most = longest_label(p) };
	b.most = b.most > (SPACE - MARK) / GLYPH ? (SPACE - MARK) / GLYPH : b.most;
	b.columns = (uint32_t)(SPACE / (MARK + GLYPH * (int)b.most));
	b.rows = (p->count + b.columns - 1) / b.columns;
	b.columns = b.rows ? (p->count + b.rows - 1) / b.rows : 1;
	return b;
}

static void legend(const Plot *p, bool bands, Buf *out)
{
	size_t longest = longest_label(p);
	if (p->corner & LEGEND_BELOW) {
		Below b = legend_below(p);
		for (uint32_t k = 0; k < p->count; k++)
			legend_entry(out, &p->series[k], bands, LEFT + (int)(k / b.rows) * (WIDTH - LEFT - RIGHT) / (int)b.columns,
			             HEIGHT + 4 + LEGEND_LINE * (int)(k % b.rows), b.most);
		return;
	}
	int width = 58 + (int)(longest * 7), height = 12 + LEGEND_LINE * (int)p->count;
	int left = p->corner & CORNER_RIGHT ? WIDTH - RIGHT - 12 - width : LEFT + 12;
	int top = p->corner & CORNER_BOTTOM ? HEIGHT - BOTTOM - 12 - height : TOP + 12;
	buf_printf(out,
	           "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" fill=\"#fff\" fill-opacity=\"0.92\" "
	           "stroke=\"#bbb\"/>\n",
	           left, top, width, height);
	for (uint32_t k = 0; k < p->count; k++)
		legend_entry(out, &p->series[k], bands, left + 9, top + 16 + LEGEND_LINE * (int)k, LONGEST);
}

void plot_bands_svg(const Plot *p, const Band *band, Buf *out)
{
	int below = p->corner & LEGEND_BELOW ? LEGEND_LINE * (int)legend_below(p).rows : 0;
	svg_head(p->title, HEIGHT + below, out);
	grid(p, out);
	axes(p, out);
	for (uint32_t k = 0; band && k < p->count; k++)
		band_draw(p, &p->series[k], &band[k], out);
	series(p, out);
	legend(p, band, out);
	buf_puts(out, "</svg>\n");
}

void plot_svg(const Plot *p, Buf *out) { plot_bands_svg(p, NULL, out); }

/* ---- tornado ---- */

enum { FROM = 150, TO = WIDTH - 60, STEP = 30, THICK = 10 };

typedef struct Ratios {
	double low, high;
} Ratios; /* logarithmic */

static double on_scale(Ratios s, double v)
{
	return FROM + (TO - FROM) * (arith_log(v) - arith_log(s.low)) / (arith_log(s.high) - arith_log(s.low));
}

/* With margins for the labels of the ends. */
static Ratios scale_of(const Tornado *t)
{
	Ratios s = { 0.7, 1.4 };
	for (uint32_t i = 0; i < t->bars; i++)
		for (int k = 0; k < 2; k++) {
			s.low = fmin(s.low, t->bar[i].end[k].low);
			s.high = fmax(s.high, t->bar[i].end[k].high);
		}
	double margin = arith_exp(0.18 * (arith_log(s.high) - arith_log(s.low)));
	return (Ratios){ s.low / margin, s.high * margin };
}

static void scale_draw(const Tornado *t, Ratios s, int bottom, Buf *out)
{
	static const double tick[] = { 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
		                           0.7,   1,     1.4,   2,    5,    10,   20,  50,  100 };
	for (size_t i = 0; i < COUNT(tick); i++) {
		bool close = tick[i] == 0.7 || tick[i] == 1.4; /* only where 0.5 and 2 are far away */
		if (tick[i] < s.low || tick[i] > s.high || (close && s.high / s.low > 6))
			continue;
		double x = on_scale(s, tick[i]);
		buf_printf(
			out,
			"<path d=\"M%.1f %dV%d\" stroke=\"%s\"/>\n<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x,
			TOP, bottom, tick[i] == 1 ? "#444" : "#e4e4e4", x, bottom + 18, tick[i]);
	}
	buf_printf(out, "<text x=\"%d\" y=\"%d\" font-size=\"14\" text-anchor=\"middle\">", (FROM + TO) / 2, bottom + 42);
	text_put(out, t->axis);
	buf_puts(out, "</text>\n");
}

static void end_name(double x, int y, const char *anchor, const char *name, Buf *out)
{
	if (!name[0])
		return;
	buf_printf(out, "<text x=\"%.1f\" y=\"%d\" font-size=\"10\" text-anchor=\"%s\">", x, y, anchor);
	text_put(out, name);
	buf_puts(out, "</text>\n");
}

static void bar_draw(const Tornado *t, Ratios s, uint32_t i, Buf *out)
{
	const TornadoBar *bar = &t->bar[i];
	int top = TOP + STEP * (int)i + (STEP - 2 * THICK) / 2;
	buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", FROM - 8, top + THICK + 4);
	text_put(out, bar->label);
	buf_puts(out, "</text>\n");
	for (int k = 0; k < 2; k++) {
		double left = on_scale(s, bar->end[k].low), right = on_scale(s, bar->end[k].high);
		int y = top + k * THICK;
		buf_printf(out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", left, y, right - left,
		           THICK - 1, t->colour[k]);
		end_name(left - 3, y + 8, "end", bar->end[k].low_value, out);
		end_name(right + 3, y + 8, "start", bar->end[k].high_value, out);
	}
}

void tornado_svg(const Tornado *t, Buf *out)
{
	Ratios s = scale_of(t);
	int bottom = TOP + STEP * (int)t->bars;
	svg_head(t->title, bottom + BOTTOM, out);
	scale_draw(t, s, bottom, out);
	for (uint32_t i = 0; i < t->bars; i++)
		bar_draw(t, s, i, out);
	for (int k = 0; k < 2; k++) {
		int y = bottom + 8 + 18 * k;
		buf_printf(out, "<rect x=\"%d\" y=\"%d\" width=\"24\" height=\"%d\" fill=\"%s\"/>\n<text x=\"%d\" y=\"%d\">", 8,
		           y, THICK, t->colour[k], 38, y + 10);
		text_put(out, t->group[k]);
		buf_puts(out, "</text>\n");
	}
	buf_puts(out, "</svg>\n");
}

/* ---- drawings ---- */

void drawing_start(Buf *out, const char *title, int width, int height)
{
	buf_printf(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
		"font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" font-size=\"13\" fill=\"#222\">\n<title>",
		width, height, width, height);
	text_put(out, title);
	buf_printf(out,
	           "</title>\n<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
	           "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#333\"/></marker></defs>\n"
	           "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n<text x=\"24\" y=\"28\" font-size=\"15\" "
	           "font-weight=\"bold\">",
	           width, height);
	text_put(out, title);
	buf_puts(out, "</text>\n");
}

void drawing_end(Buf *out) { buf_puts(out, "</svg>\n"); }

void draw_text(Buf *out, double x, double y, const char *anchor, int size, const char *text)
{
	buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\">", x, y, anchor, size);
	text_put(out, text);
	buf_puts(out, "</text>\n");
}

void draw_box(Buf *out, double x, double y, double width, double height, const char *fill, const char *text)
{
	buf_printf(out,
	           "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"3\" fill=\"%s\" stroke=\"#333\"/>\n", x,
	           y, width, height, fill);
	if (text)
		draw_text(out, x + width / 2, y + height / 2 + 4.5, "middle", 12, text);
}

void draw_arrow(Buf *out, double x, double y, double to_x, double to_y, bool head)
{
	buf_printf(out, "<path d=\"M%.1f %.1fL%.1f %.1f\" fill=\"none\" stroke=\"#333\" stroke-width=\"1.2\"%s/>\n", x, y,
	           to_x, to_y, head ? " marker-end=\"url(#arrow)\"" : "");
}

void draw_shape(Buf *out, const double (*point)[2], uint32_t points, const char *fill, double opacity)
{
	buf_puts(out, "<path d=\"");
	for (uint32_t i = 0; i < points; i++)
		buf_printf(out, "%c%.1f %.1f", i ? 'L' : 'M', point[i][0], point[i][1]);
	buf_printf(out, "z\" fill=\"%s\" fill-opacity=\"%.2f\" stroke=\"#333\" stroke-width=\"0.8\"/>\n", fill, opacity);
}
