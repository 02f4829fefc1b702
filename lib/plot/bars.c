/* SPDX-License-Identifier: MIT */
/* A bar for each name, as a self-contained SVG.  In: values of either sign.  Out: bars below each other, from 0. */
#include <math.h>

#include "plot.h"

enum { WIDTH = 720, TOP = 46, LINE = 18, GLYPH = 7, LONGEST = 24, RIGHT = 30, BELOW = 62 };

void bars_svg(const BarPlot *p, Buf *out)
{
	double low = 0, high = 0, tick[AXIS_TICKS];
	size_t longest = 1;
	for (uint32_t i = 0; i < p->bars; i++) {
		low = fmin(low, p->value[i]);
		high = fmax(high, p->value[i]);
		longest = svg_length(p->name[i]) > longest ? svg_length(p->name[i]) : longest;
	}
	longest = longest > LONGEST ? LONGEST : longest;
	double left = 24 + GLYPH * (double)longest + 8, wide = WIDTH - RIGHT - left;
	int bottom = TOP + LINE * (int)p->bars + 6;
	Axis axis = { .label = p->axis };
	axis_nice(&axis, low, high, tick);
	double zero = left - wide * axis.low / (axis.high - axis.low);
	drawing_start(out, p->title, WIDTH, bottom + BELOW);
	for (uint32_t i = 0; i < axis.ticks; i++) {
		double x = zero + wide * tick[i] / (axis.high - axis.low);
		buf_printf(out, "<path d=\"M%.1f %dV%d\" stroke=\"%s\"/>\n", x, TOP, bottom, tick[i] == 0 ? "#444" : "#e4e4e4");
		svg_tick(out, x, bottom + 18, "middle", tick[i]);
	}
	for (uint32_t i = 0; i < p->bars; i++) {
		double to = zero + wide * p->value[i] / (axis.high - axis.low), y = TOP + LINE * (double)i + 3;
		buf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", fmin(zero, to), y,
		           fabs(to - zero), LINE - 4, p->value[i] < 0 ? PLOT_ORANGE : PLOT_BLUE);
		buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" font-size=\"12\">", left - 8, y + LINE - 7);
		svg_text(out, p->name[i], longest);
		buf_puts(out, "</text>\n");
	}
	draw_text(out, left + wide / 2, bottom + 44, "middle", 14, p->axis);
	drawing_end(out);
}
