/* SPDX-License-Identifier: MIT */
/* A confusion matrix as a self-contained SVG.  In: counts and names of classes.  Out: the text of the file.
 *
 * Cells are shaded by their share of the row, so that rare classes are as visible as frequent ones, and carry their
 * counts where these fit.  Names are cut, and left out where lines are too close, so that no label overlaps another. */
#include <stdio.h>

#include "plot.h"

enum { WIDTH = 720, TOP = 58, CELL = 84, GLYPH = 7, LINE = 14, LONGEST = 18, SCALE = 118, TITLES = 30 };

typedef struct Matrix {
	const MatrixPlot *p;
	int left, bottom, names; /* names: characters of the longest, after cutting */
	double cell;
	uint32_t step; /* every step-th class is named */
	bool upright;  /* names below the columns are rotated */
} Matrix;

static Matrix layout(const MatrixPlot *p)
{
	Matrix m = { .p = p, .names = 1 };
	for (uint32_t i = 0; i < p->classes; i++) {
		size_t n = svg_length(p->name[i]);
		m.names = n > (size_t)m.names ? (int)n : m.names;
	}
	m.names = m.names > LONGEST ? LONGEST : m.names;
	m.left = TITLES + 10 + GLYPH * m.names;
	m.left = m.left < 76 ? 76 : m.left;
	m.cell = (double)(WIDTH - m.left - SCALE) / p->classes;
	m.cell = m.cell > CELL ? CELL : m.cell;
	m.step = m.cell >= LINE ? 1 : (uint32_t)(LINE / m.cell) + 1;
	m.upright = GLYPH * m.names > m.cell - 6;
	m.bottom = TOP + (int)(m.cell * p->classes + 0.5);
	return m;
}

/* 999, 12k, 3.4M: at most four characters. */
static void count_text(char *text, size_t size, uint64_t n)
{
	static const char unit[] = " kMGTPE";
	double v = (double)n;
	int u = 0;
	for (; v >= (u ? 999.5 : 9999.5); u++)
		v /= 1000;
	if (u)
		snprintf(text, size, v < 9.95 ? "%.1f%c" : "%.0f%c", v, unit[u]);
	else
		snprintf(text, size, "%.0f", v);
}

static void cells(const Matrix *m, Buf *out)
{
	const MatrixPlot *p = m->p;
	uint32_t n = p->classes;
	double font = m->cell / 2.9;
	font = font > 13 ? 13 : font;
	buf_printf(out, "<g text-anchor=\"middle\" font-size=\"%.1f\">\n", font);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t sum = 0;
		for (uint32_t k = 0; k < n; k++)
			sum += p->count[(size_t)i * n + k];
		for (uint32_t k = 0; k < n; k++) {
			uint64_t c = p->count[(size_t)i * n + k];
			double share = sum ? (double)c / (double)sum : 0, x = m->left + m->cell * k, y = TOP + m->cell * i;
			char text[16];
			if (c)
				buf_printf(out,
				           "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
				           "fill-opacity=\"%.2f\"/>\n",
				           x, y, m->cell, m->cell, i == k ? PLOT_BLUE : PLOT_ORANGE, 0.08 + 0.92 * share);
			count_text(text, sizeof text, c);
			if (font >= 6 && (c || m->cell >= 20))
				buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", x + m->cell / 2,
				           y + m->cell / 2 + font * 0.36,
				           share > 0.5 ? " fill=\"#fff\""
				           : c == 0    ? " fill=\"#999\""
				                       : "",
				           text);
		}
	}
	buf_puts(out, "</g>\n");
}

static void lines(const Matrix *m, Buf *out)
{
	double right = m->left + m->cell * m->p->classes;
	buf_puts(out, "<g stroke=\"#ddd\">\n");
	for (uint32_t i = 1; i < m->p->classes; i++)
		buf_printf(out, "<path d=\"M%.1f %dV%dM%d %.1fH%.1f\"/>\n", m->left + m->cell * i, TOP, m->bottom, m->left,
		           TOP + m->cell * i, right);
	buf_printf(out, "</g>\n<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"none\" stroke=\"#444\"/>\n",
	           m->left, TOP, right - m->left, m->bottom - TOP);
}

static void names(const Matrix *m, Buf *out)
{
	buf_puts(out, "<g text-anchor=\"end\" font-size=\"12\">\n");
	for (uint32_t i = 0; i < m->p->classes; i += m->step) {
		double at = m->cell * (i + 0.5);
		buf_printf(out, "<text x=\"%d\" y=\"%.1f\">", m->left - 6, TOP + at + 4);
		svg_text(out, m->p->name[i], (size_t)m->names);
		buf_puts(out, "</text>\n");
		if (m->upright)
			buf_printf(out, "<text transform=\"translate(%.1f %d) rotate(-90)\">", m->left + at + 4, m->bottom + 6);
		else
			buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", m->left + at, m->bottom + 16);
		svg_text(out, m->p->name[i], (size_t)m->names);
		buf_puts(out, "</text>\n");
	}
	buf_puts(out, "</g>\n");
}

/* What the shades mean. */
static void scale(const Matrix *m, Buf *out)
{
	enum { STEPS = 5, HEIGHT = 20 };
	int x = m->left + (int)(m->cell * m->p->classes) + 22;
	buf_printf(out, "<text x=\"%d\" y=\"%d\" font-size=\"12\">share of row</text>\n", x, TOP + 10);
	for (int i = 0; i < STEPS; i++) {
		double share = 1 - (double)i / (STEPS - 1);
		int y = TOP + 20 + HEIGHT * i;
		for (int k = 0; k < 2; k++)
			buf_printf(out, "<rect x=\"%d\" y=\"%d\" width=\"20\" height=\"%d\" fill=\"%s\" fill-opacity=\"%.2f\"/>\n",
			           x + 20 * k, y, HEIGHT, k ? PLOT_ORANGE : PLOT_BLUE, share > 0 ? 0.08 + 0.92 * share : 0);
		buf_printf(out, "<text x=\"%d\" y=\"%d\" font-size=\"12\">%.0f %%</text>\n", x + 46, y + 14, share * 100);
	}
	int below = TOP + 20 + HEIGHT * STEPS + 16;
	buf_printf(out, "<text x=\"%d\" y=\"%d\" font-size=\"12\">blue: right</text>\n", x, below);
	buf_printf(out, "<text x=\"%d\" y=\"%d\" font-size=\"12\">orange: wrong</text>\n", x, below + 16);
}

void matrix_svg(const MatrixPlot *p, Buf *out)
{
	Matrix m = layout(p);
	int below = m.upright ? 12 + GLYPH * m.names : 22, least = TOP + 190;
	int height = m.bottom + below + TITLES;
	svg_head(p->title, height > least ? height : least, out);
	cells(&m, out);
	lines(&m, out);
	names(&m, out);
	scale(&m, out);
	double middle = m.left + m.cell * p->classes / 2;
	buf_printf(out,
	           "<g text-anchor=\"middle\" font-size=\"14\">\n<text x=\"%.1f\" y=\"%d\">guess</text>\n"
	           "<text transform=\"translate(20 %d) rotate(-90)\">target</text>\n</g>\n</svg>\n",
	           middle, m.bottom + below + 16, (TOP + m.bottom) / 2);
}
