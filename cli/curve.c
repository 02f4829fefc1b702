/* SPDX-License-Identifier: MIT */
/* Learning curves.  The points of a run come in; out goes a drawing made of characters: braille dots where the terminal
 * shows UTF-8, plain ASCII elsewhere.  Test data is drawn with a dotted line (ASCII: another letter), so that it can be
 * distinguished from training data without colours. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MAX_WIDTH = 64, MIN_WIDTH = 16, HEIGHT = 8, LABEL = 9, MAX_DOTS_X = 2 * MAX_WIDTH, MAX_DOTS_Y = 4 * HEIGHT };
enum { TRAIN_DOT = 1, TEST_DOT = 2 };

typedef struct Canvas {
	int width, dots_x, dots_y; /* width in characters; a character is dots_x / width dots wide */
	unsigned char dot[MAX_DOTS_Y][MAX_DOTS_X];
} Canvas;

typedef struct Axis {
	double low, high;
	bool log;
} Axis;

typedef double Series(const mp_point *p);

static double error_of(const mp_point *p) { return p->error; }

static double test_error_of(const mp_point *p) { return p->test_error; }

static double right_of(const mp_point *p) { return p->right; }

static double test_right_of(const mp_point *p) { return p->test_right; }

/* Where v stands on the axis, 0 to 1. */
static double axis_place(const Axis *a, double v)
{
	if (a->log)
		return log(v / a->low) / log(a->high / a->low);
	return (v - a->low) / (a->high - a->low);
}

static double axis_value(const Axis *a, double place)
{
	return a->log ? a->low * pow(a->high / a->low, place) : a->low + (a->high - a->low) * place;
}

/* An axis for errors: from zero, or logarithmic where they span more than a factor of thirty. */
static Axis axis_fit(const Curve *c)
{
	Axis a = { .low = INFINITY };
	for (size_t i = 0; i < c->points; i++) {
		double v = c->point[i].error, test = c->tested ? c->point[i].test_error : v;
		if (!isfinite(v) || !isfinite(test))
			continue;
		a.low = fmin(a.low, fmin(v, test));
		a.high = fmax(a.high, fmax(v, test));
	}
	a.log = a.low > 0 && isfinite(a.low) && a.high > 30 * a.low;
	if (!a.log)
		a.low = 0;
	if (!(a.high > a.low))
		a.high = a.low + 1;
	return a;
}

static void draw_line(Canvas *cv, int x0, int y0, int x1, int y1, unsigned char mark)
{
	int dx = abs(x1 - x0), dy = -abs(y1 - y0), sx = x0 < x1 ? 1 : -1, sy = y0 < y1 ? 1 : -1, err = dx + dy;
	for (;;) {
		if (mark == TRAIN_DOT || cv->dots_x == cv->width || x0 % 3 == 0)
			cv->dot[y0][x0] |= mark;
		if (x0 == x1 && y0 == y1)
			return;
		int twice = 2 * err;
		if (twice >= dy) {
			err += dy;
			x0 += sx;
		}
		if (twice <= dx) {
			err += dx;
			y0 += sy;
		}
	}
}

static int dot_at(double place, int dots)
{
	double d = floor(place * (dots - 1) + 0.5);
	return d < 0 ? 0 : d > dots - 1 ? dots - 1 : (int)d;
}

static void draw_series(Canvas *cv, const Curve *c, Series *of, const Axis *y, unsigned char mark)
{
	size_t n = c->points;
	double first = (double)c->point[0].epoch, last = (double)c->point[n - 1].epoch;
	bool pen = false;
	for (size_t i = 0, x0 = 0, y0 = 0; i < n; i++) {
		double epoch = (double)c->point[i].epoch, v = of(&c->point[i]);
		if (!isfinite(v)) /* a line from the point before to the next one */
			continue;
		size_t x1 = (size_t)dot_at(last > first ? (epoch - first) / (last - first) : 0, cv->dots_x);
		size_t y1 = (size_t)dot_at(1 - axis_place(y, v), cv->dots_y);
		draw_line(cv, (int)(pen ? x0 : x1), (int)(pen ? y0 : y1), (int)x1, (int)y1, mark);
		x0 = x1;
		y0 = y1;
		pen = true;
	}
}

/* Braille: the eight dots of a character are bits of U+2800, in an order that grew by accident. */
static void print_braille(const Canvas *cv, int row, int col, bool colour, FILE *f)
{
	static const unsigned char bit[4][2] = { { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 } };
	unsigned dots = 0, marks = 0;
	for (int y = 0; y < 4; y++) {
		for (int x = 0; x < 2; x++) {
			unsigned char m = cv->dot[4 * row + y][2 * col + x];
			dots |= m ? bit[y][x] : 0;
			marks |= m;
		}
	}
	if (!dots) {
		fputc(' ', f);
		return;
	}
	const char *on = marks & TRAIN_DOT ? "\033[36m" : "\033[33m";
	fprintf(f, "%s\xE2%c%c%s", colour ? on : "", 0xA0 + (int)(dots >> 6), 0x80 + (int)(dots & 0x3F),
	        colour ? "\033[0m" : "");
}

static void print_ascii(const Canvas *cv, int row, int col, bool colour, FILE *f)
{
	(void)colour;
	fputc(" *o*"[cv->dot[row][col]], f);
}

/* Labels at the left end, the middle and the right end of the axis below. */
static void print_epochs(const Curve *c, int width, const Screen *screen, FILE *f)
{
	Formatted left = format_count(c->point[0].epoch), right = format_count(c->point[c->points - 1].epoch);
	int gap = width - (int)strlen(left.s) - (int)strlen(right.s);
	fprintf(f, "%*s %s", LABEL, "", screen->unicode ? "└" : "+");
	for (int i = 0; i < width; i++)
		fputs(screen->unicode ? "─" : "-", f);
	fprintf(f, "\n%*s  %s%*s%s  epochs\n", LABEL, "", left.s, gap > 1 ? gap : 1, "", right.s);
}

typedef struct Panel {
	const char *title;
	Series *train, *test;
	Axis axis;
	Formatted (*label)(double);
} Panel;

static void panel_draw(const Panel *p, const Curve *c, const Screen *screen, FILE *f)
{
	Canvas cv = { .width = screen->columns - LABEL - 4 };
	cv.width = cv.width > MAX_WIDTH ? MAX_WIDTH : cv.width < MIN_WIDTH ? MIN_WIDTH : cv.width;
	cv.dots_x = screen->unicode ? 2 * cv.width : cv.width;
	cv.dots_y = screen->unicode ? 4 * HEIGHT : HEIGHT;
	draw_series(&cv, c, p->train, &p->axis, TRAIN_DOT);
	if (c->tested)
		draw_series(&cv, c, p->test, &p->axis, TEST_DOT);
	fprintf(f, "\n%*s  %s%s%s\n", LABEL, "", p->title, p->axis.log ? ", logarithmic" : "",
	        !c->tested        ? ""
	        : screen->unicode ? " (test data dotted)"
	                          : " (test data: o)");
	for (int row = 0; row < HEIGHT; row++) {
		bool labelled = row == 0 || row == HEIGHT / 2 || row == HEIGHT - 1;
		double place = row == HEIGHT / 2 ? 0.5 : row ? 0 : 1;
		fprintf(f, "%*s %s", LABEL, labelled ? p->label(axis_value(&p->axis, place)).s : "",
		        !screen->unicode ? "|"
		        : labelled       ? "┤"
		                         : "│");
		int end = cv.width; /* no blanks at the end of a line */
		for (bool empty = true; empty && end > 0; end -= empty)
			for (int y = row * cv.dots_y / HEIGHT; y < (row + 1) * cv.dots_y / HEIGHT; y++)
				for (int x = (end - 1) * cv.dots_x / cv.width; x < end * cv.dots_x / cv.width; x++)
					empty = empty && !cv.dot[y][x];
		for (int col = 0; col < end; col++)
			(screen->unicode ? print_braille : print_ascii)(&cv, row, col, screen->colour, f);
		fputc('\n', f);
	}
	print_epochs(c, cv.width, screen, f);
}

void curve_draw(const Curve *c, const Screen *screen, FILE *f)
{
	if (c->points < 2)
		return;
	const Panel panels[] = {
		{ "error per case", error_of, test_error_of, axis_fit(c), format_real },
		{ "share of cases right", right_of, test_right_of, { .low = 0, .high = 1 }, format_share },
	};
	for (size_t i = 0; i < COUNT(panels); i++)
		panel_draw(&panels[i], c, screen, f);
}
