/* SPDX-License-Identifier: MIT */
/* Points of a plane with their names, as a self-contained SVG.  In: coordinates, in one scale for both axes.  Out: the
 * text of the file.
 *
 * A name stands beside its point, at the first of eight places where it covers no other name; where there is none it is
 * left out, and the title says how many are. */
#include <math.h>
#include <string.h>

#include "plot.h"

enum { WIDTH = 720, LEFT = 76, RIGHT = 24, TOP = 46, BOTTOM = 60, SIDE = 560, FONT = 11, LONGEST = 20, PLACES = 8 };

typedef struct Box {
	double left, top, right, bottom;
} Box;

static bool overlap(const Box *a, const Box *b)
{
	return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

static const struct {
	double dx, dy; /* of the baseline, from the point */
	char anchor;
} places[PLACES] = {
	{ 7, 4, 's' },  { -7, 4, 'e' },  { 0, -8, 'm' }, { 0, 17, 'm' },
	{ 6, -6, 's' }, { -6, -6, 'e' }, { 6, 14, 's' }, { -6, 14, 'e' },
};

static Box box_of(double x, double y, int place, size_t length)
{
	double width = 0.62 * FONT * (double)length, at = x + places[place].dx, base = y + places[place].dy;
	double left = places[place].anchor == 's' ? at : places[place].anchor == 'e' ? at - width : at - width / 2;
	return (Box){ left, base - 0.8 * FONT, left + width, base + 2 };
}

typedef struct Plane {
	const PlanePlot *p;
	double (*at)[2]; /* on the canvas */
	Box frame, *box; /* of names that are drawn: right > left */
	int *place;
	uint32_t hidden;
} Plane;

static bool is_free(const Plane *d, uint32_t i, const Box *b)
{
	if (b->left < d->frame.left || b->right > d->frame.right || b->top < d->frame.top || b->bottom > d->frame.bottom)
		return false;
	for (uint32_t k = 0; k < i; k++)
		if (d->box[k].right > d->box[k].left && overlap(b, &d->box[k]))
			return false;
	for (uint32_t k = 0; k < d->p->points; k++) {
		const Box dot = { d->at[k][0] - 3, d->at[k][1] - 3, d->at[k][0] + 3, d->at[k][1] + 3 };
		if (k != i && overlap(b, &dot))
			return false;
	}
	return true;
}

static void names_place(Plane *d)
{
	for (uint32_t i = 0; i < d->p->points; i++) {
		size_t length = svg_length(d->p->name[i]);
		length = length > LONGEST ? LONGEST : length;
		for (int k = 0; k < PLACES && !(d->box[i].right > d->box[i].left); k++) {
			Box b = box_of(d->at[i][0], d->at[i][1], k, length);
			if (!is_free(d, i, &b))
				continue;
			d->box[i] = b;
			d->place[i] = k;
		}
		d->hidden += length && !(d->box[i].right > d->box[i].left);
	}
}

/* One scale for both axes: distances can be read in any direction. */
static void axes_fit(const PlanePlot *p, Axis *x, Axis *y, double tick[2][AXIS_TICKS])
{
	double low[2] = { INFINITY, INFINITY }, high[2] = { -INFINITY, -INFINITY };
	for (uint32_t i = 0; i < p->points; i++)
		for (int k = 0; k < 2; k++) {
			low[k] = fmin(low[k], p->at[i][k]);
			high[k] = fmax(high[k], p->at[i][k]);
		}
	double across = WIDTH - LEFT - RIGHT, up = SIDE - TOP - BOTTOM;
	double unit = fmax((high[0] - low[0]) / across, (high[1] - low[1]) / up) * 1.12;
	unit = unit > 0 ? unit : 1 / up;
	double middle[] = { (low[0] + high[0]) / 2, (low[1] + high[1]) / 2 }, half[] = { across * unit / 2, up * unit / 2 };
	Axis *axis[] = { x, y };
	for (int k = 0; k < 2; k++) {
		Axis nice = { 0 };
		axis_nice(&nice, middle[k] - half[k], middle[k] + half[k], tick[k]);
		axis[k]->low = middle[k] - half[k];
		axis[k]->high = middle[k] + half[k];
		for (uint32_t i = 0; i < nice.ticks; i++)
			if (tick[k][i] >= axis[k]->low && tick[k][i] <= axis[k]->high)
				tick[k][axis[k]->ticks++] = fabs(tick[k][i]) < 1e-9 * half[k] ? 0 : tick[k][i];
		axis[k]->tick = tick[k];
	}
}

static void frame(const Plane *d, const Axis *x, const Axis *y, Buf *out)
{
	double right = d->frame.right, bottom = d->frame.bottom;
	for (uint32_t i = 0; i < x->ticks; i++) {
		double at = LEFT + (x->tick[i] - x->low) / (x->high - x->low) * (right - LEFT);
		buf_printf(out, "<path d=\"M%.1f %.1fV%d\" stroke=\"%s\"/>\n", at, bottom, TOP,
		           x->tick[i] == 0 ? "#bbb" : "#e8e8e8");
		svg_tick(out, at, bottom + 20, "middle", x->tick[i]);
	}
	for (uint32_t i = 0; i < y->ticks; i++) {
		double at = bottom - (y->tick[i] - y->low) / (y->high - y->low) * (bottom - TOP);
		buf_printf(out, "<path d=\"M%d %.1fH%.1f\" stroke=\"%s\"/>\n", LEFT, at, right,
		           y->tick[i] == 0 ? "#bbb" : "#e8e8e8");
		svg_tick(out, LEFT - 9, at + 4.5, "end", y->tick[i]);
	}
	buf_printf(out, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#444\"/>\n", LEFT,
	           TOP, right - LEFT, bottom - TOP);
	draw_text(out, (LEFT + right) / 2, SIDE - 16, "middle", 14, d->p->x);
	buf_printf(out, "<text transform=\"translate(20 %.0f) rotate(-90)\" text-anchor=\"middle\" font-size=\"14\">",
	           (TOP + bottom) / 2);
	svg_text(out, d->p->y, 60);
	buf_puts(out, "</text>\n");
}

static void point(Buf *out, double x, double y, uint32_t set)
{
	const char *colour = plot_colours[set % PLOT_COLOURS];
	if (set % 3 == 0)
		buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\"/>\n", x, y, colour);
	else if (set % 3 == 1)
		buf_printf(
			out,
			"<rect x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\" fill=\"#fff\" stroke=\"%s\" stroke-width=\"1.6\"/>\n",
			x - 3, y - 3, colour);
	else
		buf_printf(out, "<path d=\"M%.1f %.1fl3.6 6.2h-7.2z\" fill=\"#fff\" stroke=\"%s\" stroke-width=\"1.6\"/>\n", x,
		           y - 4, colour);
}

void plane_svg(const PlanePlot *p, Buf *out)
{
	Arena *a = out->arena;
	double tick[2][AXIS_TICKS];
	Axis x = { .label = p->x }, y = { .label = p->y };
	Plane d = { .p = p, .frame = { LEFT, TOP, WIDTH - RIGHT, SIDE - BOTTOM } };
	axes_fit(p, &x, &y, tick);
	d.at = arena_alloc(a, p->points, sizeof *d.at);
	d.box = NEW(a, p->points, Box);
	d.place = NEW(a, p->points, int);
	for (uint32_t i = 0; i < p->points; i++) {
		d.at[i][0] = LEFT + (p->at[i][0] - x.low) / (x.high - x.low) * (d.frame.right - LEFT);
		d.at[i][1] = d.frame.bottom - (p->at[i][1] - y.low) / (y.high - y.low) * (d.frame.bottom - TOP);
	}
	names_place(&d);
	Buf title = { .arena = a };
	buf_puts(&title, p->title);
	if (d.hidden)
		buf_printf(&title, " (%u names left out)", d.hidden);
	uint32_t sets = p->set_name ? p->sets : 0, columns = 3;
	drawing_start(out, title.s, WIDTH, SIDE + (sets ? 8 + 20 * (int)((sets + columns - 1) / columns) : 0));
	frame(&d, &x, &y, out);
	for (uint32_t i = 0; i < p->points; i++)
		point(out, d.at[i][0], d.at[i][1], p->set ? p->set[i] : 0);
	buf_printf(out, "<g font-size=\"%d\">\n", FONT);
	for (uint32_t i = 0; i < p->points; i++) {
		if (!(d.box[i].right > d.box[i].left))
			continue;
		char anchor = places[d.place[i]].anchor;
		buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", d.at[i][0] + places[d.place[i]].dx,
		           d.at[i][1] + places[d.place[i]].dy,
		           anchor == 's'   ? "start"
		           : anchor == 'e' ? "end"
		                           : "middle");
		svg_text(out, p->name[i], LONGEST);
		buf_puts(out, "</text>\n");
	}
	buf_puts(out, "</g>\n");
	for (uint32_t i = 0; i < sets; i++) {
		double left = LEFT + (double)(i % columns) * (WIDTH - LEFT - RIGHT) / columns,
			   at = SIDE + 6 + 20.0 * (i / columns);
		point(out, left + 6, at - 4, i);
		buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\">", left + 20, at);
		svg_text(out, p->set_name[i], 22);
		buf_puts(out, "</text>\n");
	}
	drawing_end(out);
}
