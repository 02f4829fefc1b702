/* SPDX-License-Identifier: MIT */
/* A tree of clusters, as a self-contained SVG and as text.  In: merges of leaves, nearest first.  Out: leaves below
 * each other, each merge at its distance along the axis.  Of the two nodes of a merge, the one with the first leaf is
 * above. */
#include <math.h>
#include <string.h>

#include "plot.h"

enum { WIDTH = 720, TOP = 46, LINE = 16, GLYPH = 7, LONGEST = 24, RIGHT = 30, BELOW = 62, COLUMNS = 48 };

/* Depth first, without recursion: a tree may be a chain. */
uint32_t *tree_order(Arena *a, const TreePlot *t)
{
	uint32_t n = t->leaves, depth = 0, count = 0;
	uint32_t *order = NEW(a, n + 1, uint32_t), *stack = NEW(a, 2 * n + 2, uint32_t), *first = NEW(a, 2 * n, uint32_t);
	for (uint32_t i = 0; i < 2 * n - 1; i++)
		first[i] = i < n                                                 ? i
		           : first[t->merge[i - n].a] < first[t->merge[i - n].b] ? first[t->merge[i - n].a]
		                                                                 : first[t->merge[i - n].b];
	if (n)
		stack[depth++] = 2 * n - 2;
	while (depth) {
		uint32_t node = stack[--depth];
		if (node < n) {
			order[count++] = node;
			continue;
		}
		const Merge *m = &t->merge[node - n];
		bool swapped = first[m->a] > first[m->b];
		stack[depth++] = swapped ? m->a : m->b;
		stack[depth++] = swapped ? m->b : m->a;
	}
	return order;
}

/* Rows of all nodes: of leaves by their order, of merges in the middle of their two. */
static double *rows_of(Arena *a, const TreePlot *t)
{
	double *row = NEW(a, 2 * (size_t)t->leaves, double);
	uint32_t *order = tree_order(a, t);
	for (uint32_t i = 0; i < t->leaves; i++)
		row[order[i]] = i;
	for (uint32_t i = 0; i + 1 < t->leaves; i++)
		row[t->leaves + i] = (row[t->merge[i].a] + row[t->merge[i].b]) / 2;
	return row;
}

static double height_of(const TreePlot *t, uint32_t node)
{
	return node < t->leaves ? 0 : t->merge[node - t->leaves].distance;
}

static double highest(const TreePlot *t)
{
	double most = 0;
	for (uint32_t i = 0; i + 1 < t->leaves; i++)
		most = fmax(most, t->merge[i].distance);
	return most;
}

void tree_svg(const TreePlot *t, Buf *out)
{
	double *row = rows_of(out->arena, t), tick[AXIS_TICKS];
	size_t longest = 1;
	for (uint32_t i = 0; i < t->leaves; i++)
		longest = svg_length(t->name[i]) > longest ? svg_length(t->name[i]) : longest;
	longest = longest > LONGEST ? LONGEST : longest;
	double left = 24 + GLYPH * (double)longest + 8, wide = WIDTH - RIGHT - left;
	int bottom = TOP + LINE * (int)t->leaves + 6;
	Axis axis = { .label = t->axis };
	axis_nice(&axis, 0, highest(t) > 0 ? highest(t) : 1, tick);
	drawing_start(out, t->title, WIDTH, bottom + BELOW);
	for (uint32_t i = 0; i < axis.ticks; i++) {
		double x = left + wide * tick[i] / axis.high;
		buf_printf(out, "<path d=\"M%.1f %dV%d\" stroke=\"#e4e4e4\"/>\n", x, TOP, bottom);
		buf_printf(out, "<path d=\"M%.1f %dv5\" stroke=\"#444\"/>\n", x, bottom);
		svg_tick(out, x, bottom + 20, "middle", tick[i]);
	}
	buf_printf(out, "<path d=\"M%.1f %dH%.1f\" stroke=\"#444\"/>\n", left, bottom, left + wide);
	buf_puts(out, "<g fill=\"none\" stroke=\"" PLOT_BLUE "\" stroke-width=\"1.6\">\n");
	for (uint32_t i = 0; i + 1 < t->leaves; i++) {
		const Merge *m = &t->merge[i];
		double at = left + wide * m->distance / axis.high;
		buf_printf(out, "<path d=\"M%.1f %.1fH%.1fV%.1fH%.1f\"/>\n", left + wide * height_of(t, m->a) / axis.high,
		           TOP + LINE * (row[m->a] + 0.5), at, TOP + LINE * (row[m->b] + 0.5),
		           left + wide * height_of(t, m->b) / axis.high);
	}
	buf_puts(out, "</g>\n<g text-anchor=\"end\" font-size=\"12\">\n");
	for (uint32_t i = 0; i < t->leaves; i++) {
		buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\">", left - 8, TOP + LINE * (row[i] + 0.5) + 4);
		svg_text(out, t->name[i], longest);
		buf_puts(out, "</text>\n");
	}
	buf_puts(out, "</g>\n");
	draw_text(out, left + wide / 2, bottom + 46, "middle", 14, t->axis);
	drawing_end(out);
}

void tree_text(const TreePlot *t, Buf *out)
{
	uint32_t n = t->leaves, *order = tree_order(out->arena, t);
	double *row = rows_of(out->arena, t), most = highest(t);
	char(*canvas)[COLUMNS + 2] = arena_alloc(out->arena, n, sizeof *canvas);
	size_t longest = 1;
	for (uint32_t i = 0; i < n; i++) {
		memset(canvas[i], ' ', COLUMNS + 1);
		longest = svg_length(t->name[i]) > longest ? svg_length(t->name[i]) : longest;
	}
	longest = longest > LONGEST ? LONGEST : longest;
	for (uint32_t i = 0; i + 1 < n; i++) {
		const uint32_t node[] = { t->merge[i].a, t->merge[i].b };
		int at = most > 0 ? (int)(COLUMNS * t->merge[i].distance / most + 0.5) : 0, end[2];
		for (int k = 0; k < 2; k++) {
			int from = most > 0 ? (int)(COLUMNS * height_of(t, node[k]) / most + 0.5) : 0;
			end[k] = (int)row[node[k]];
			for (int c = from; c < at; c++)
				canvas[end[k]][c] = canvas[end[k]][c] == ' ' ? '-' : canvas[end[k]][c];
			canvas[end[k]][at] = '+';
		}
		for (int r = (end[0] < end[1] ? end[0] : end[1]) + 1; r < (end[0] < end[1] ? end[1] : end[0]); r++)
			canvas[r][at] = canvas[r][at] == ' ' ? '|' : canvas[r][at];
	}
	for (uint32_t i = 0; i < n; i++) {
		Buf name = { .arena = out->arena };
		svg_cut(&name, t->name[order[i]], longest);
		int end = COLUMNS;
		while (end > 0 && canvas[i][end] == ' ')
			end--;
		const char *shown = text_escaped(out->arena, name.s ? name.s : "");
		buf_printf(out, "%*s%s %.*s\n", (int)(longest - svg_length(shown) < LONGEST ? longest - svg_length(shown) : 0),
		           "", shown, end + 1, canvas[i]);
	}
	buf_printf(out, "%*s0%*.4g  %s\n", (int)longest + 1, "", COLUMNS, most, t->axis);
}
