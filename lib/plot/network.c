/* SPDX-License-Identifier: MIT */
/* A drawing of a network as a self-contained SVG.  In: groups with their levels, arrows between them.  Out: a row of
 * boxes for each level, the lowest at the bottom.
 *
 * Arrows to the next row are straight; those that skip rows, or lead down, run beside all boxes, on the right or on the
 * left; those inside a row or to the box itself are arcs above it.  Labels of arrows stand where they cover no box and
 * no other label; where there is no such place a label is left out. */
#include <math.h>

#include "plot.h"

enum { BOX = 150, TALL = 46, GAP = 46, RISE = 104, TOP = 52, SIDE = 30, LANE = 26, FONT = 11, LONGEST = 18, TRIES = 9 };

typedef struct Rect {
	double left, top, right, bottom;
} Rect;

typedef struct Drawing {
	const NetworkPlot *p;
	Buf *out;
	Rect *box;   /* of the groups */
	Rect *label; /* of the arrows; right 0: none */
	uint32_t levels, left_lanes, right_lanes;
	double middle_left, middle_right; /* of all boxes */
	double width, height;
	uint32_t *leaving, *arriving; /* straight arrows of each box, and how many are drawn */
	uint32_t *left_so_far, *arrived_so_far;
} Drawing;

typedef enum Way { STRAIGHT, RIGHT_SIDE, LEFT_SIDE, ARC } Way;

/* Boxes of a row stand in their order: is this one the last of it, or the first? */
static bool is_outermost(const NetworkPlot *p, uint32_t box, bool right)
{
	for (uint32_t i = 0; i < p->boxes; i++)
		if (p->box[i].level == p->box[box].level && (right ? i > box : i < box))
			return false;
	return true;
}

/* Beside the boxes, on the side where no other box of a row is in between, if there is one. */
static Way way_of(const NetworkPlot *p, const NetworkArrow *a)
{
	uint32_t from = p->box[a->from].level, to = p->box[a->to].level;
	if (to == from || to == from + 1)
		return to == from ? ARC : STRAIGHT;
	bool right = is_outermost(p, a->from, true) && is_outermost(p, a->to, true);
	bool left = is_outermost(p, a->from, false) && is_outermost(p, a->to, false);
	return right == left ? (to > from ? RIGHT_SIDE : LEFT_SIDE) : right ? RIGHT_SIDE : LEFT_SIDE;
}

static bool covers(const Rect *a, const Rect *b)
{
	return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

static bool is_free(const Drawing *d, uint32_t arrow, const Rect *r)
{
	for (uint32_t i = 0; i < d->p->boxes; i++)
		if (covers(r, &d->box[i]))
			return false;
	for (uint32_t i = 0; i < arrow; i++)
		if (d->label[i].right > 0 && covers(r, &d->label[i]))
			return false;
	return r->left >= 2 && r->right <= d->width - 2 && r->top >= 36; /* below the title */
}

/* At the first of some points that is free. */
static void label_put(Drawing *d, uint32_t arrow, double (*at)[2], int points)
{
	const char *text = d->p->arrow[arrow].label;
	double wide = 0.62 * FONT * (double)svg_length(text) + 4;
	for (int i = 0; text && *text && i < points; i++) {
		Rect r = { at[i][0] - wide / 2, at[i][1] - 0.5 * FONT - 2, at[i][0] + wide / 2, at[i][1] + 0.5 * FONT + 2 };
		if (!is_free(d, arrow, &r))
			continue;
		d->label[arrow] = r;
		buf_printf(d->out,
		           "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#fff\" fill-opacity=\"0.85\"/>\n",
		           r.left, r.top, wide, r.bottom - r.top);
		draw_text(d->out, at[i][0], at[i][1] + 0.36 * FONT, "middle", FONT, text);
		return;
	}
}

static void layout(Drawing *d)
{
	const NetworkPlot *p = d->p;
	uint32_t widest = 1, in_row, placed;
	for (uint32_t i = 0; i < p->boxes; i++)
		d->levels = p->box[i].level + 1 > d->levels ? p->box[i].level + 1 : d->levels;
	for (uint32_t row = 0; row < d->levels; row++) {
		in_row = 0;
		for (uint32_t i = 0; i < p->boxes; i++)
			in_row += p->box[i].level == row;
		widest = in_row > widest ? in_row : widest;
	}
	for (uint32_t i = 0; i < p->arrows; i++) {
		Way way = way_of(p, &p->arrow[i]);
		d->left_lanes += way == LEFT_SIDE;
		d->right_lanes += way == RIGHT_SIDE;
		d->leaving[p->arrow[i].from] += way == STRAIGHT;
		d->arriving[p->arrow[i].to] += way == STRAIGHT;
	}
	double wide = BOX * (double)widest + GAP * (double)(widest - 1), left = SIDE + LANE * (double)d->left_lanes;
	left += d->left_lanes ? 24 : 0;
	d->middle_left = left;
	d->middle_right = left + wide;
	d->width = fmax(d->middle_right + SIDE + LANE * (double)d->right_lanes + (d->right_lanes ? 24 : 0), 420);
	d->height = TOP + RISE * (double)d->levels + 30;
	for (uint32_t row = 0; row < d->levels; row++) {
		in_row = placed = 0;
		for (uint32_t i = 0; i < p->boxes; i++)
			in_row += p->box[i].level == row;
		double x = left + (wide - BOX * (double)in_row - GAP * (double)(in_row ? in_row - 1 : 0)) / 2;
		double y = TOP + 30 + RISE * (double)(d->levels - 1 - row);
		for (uint32_t i = 0; i < p->boxes; i++)
			if (p->box[i].level == row) {
				double at = x + (BOX + GAP) * (double)placed++;
				d->box[i] = (Rect){ at, y, at + BOX, y + TALL };
			}
	}
}

static void path_end(const Drawing *d, const NetworkArrow *a)
{
	buf_printf(d->out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.4\"%s marker-end=\"url(#%s)\"/>\n",
	           a->before ? PLOT_ORANGE : "#333", a->before ? " stroke-dasharray=\"6 4\"" : "",
	           a->before ? "before" : "arrow");
}

static void straight(Drawing *d, const NetworkArrow *a, double at[TRIES][2])
{
	const Rect *from = &d->box[a->from], *to = &d->box[a->to];
	double x = from->left + BOX * (d->left_so_far[a->from]++ + 1.0) / (d->leaving[a->from] + 1);
	double end = to->left + BOX * (d->arrived_so_far[a->to]++ + 1.0) / (d->arriving[a->to] + 1);
	buf_printf(d->out, "<path d=\"M%.1f %.1fL%.1f %.1f", x, from->top, end, to->bottom + 2);
	path_end(d, a);
	static const double share[TRIES] = { 0.5, 0.35, 0.65, 0.25, 0.75, 0.42, 0.58, 0.3, 0.7 };
	for (int i = 0; i < TRIES; i++) {
		at[i][0] = x + share[i] * (end - x);
		at[i][1] = from->top + share[i] * (to->bottom - from->top);
	}
}

/* Out of the side of one box, along a lane, into the side of the other. */
static void beside(Drawing *d, const NetworkArrow *a, bool right, uint32_t lane, double at[TRIES][2])
{
	const Rect *from = &d->box[a->from], *to = &d->box[a->to];
	double x = right ? d->middle_right + 20 + LANE * (double)lane : d->middle_left - 20 - LANE * (double)lane;
	double out_x = right ? from->right : from->left, in_x = right ? to->right + 2 : to->left - 2;
	double y = from->top + (right ? 0.3 : 0.7) * TALL, end = to->top + (right ? 0.7 : 0.3) * TALL;
	buf_printf(d->out, "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1fS%.1f %.1f %.1f %.1f", out_x, y, x, y, x, y,
	           x, (y + end) / 2, x, end, in_x, end);
	path_end(d, a);
	for (int i = 0; i < TRIES; i++) {
		at[i][0] = x;
		at[i][1] = (y + end) / 2 + (i % 2 ? -1 : 1) * 7.0 * i;
	}
}

static void arc(Drawing *d, const NetworkArrow *a, double at[TRIES][2])
{
	const Rect *from = &d->box[a->from], *to = &d->box[a->to];
	double x = from->right - 34, end = a->from == a->to ? from->right - 8 : to->left + BOX / 2.0, y = from->top;
	double high = y - (a->from == a->to ? 26 : 34);
	if (a->from != a->to && end < x)
		x = from->left + 34;
	buf_printf(d->out, "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x, y, x, high, end, high, end, y - 2);
	path_end(d, a);
	for (int i = 0; i < TRIES; i++) {
		at[i][0] = (x + end) / 2 + (i % 2 ? -1 : 1) * 5.0 * i;
		at[i][1] = high - 6 - 6.0 * (i / 3); /* above the arc, which reaches three quarters of the way */
	}
}

/* Lines first, then boxes and labels over them. */
void network_svg(const NetworkPlot *p, Buf *out)
{
	Arena *a = out->arena;
	Drawing d = { .p = p, .out = out };
	d.box = NEW(a, p->boxes, Rect);
	d.label = NEW(a, p->arrows + 1, Rect);
	d.leaving = NEW(a, p->boxes, uint32_t);
	d.arriving = NEW(a, p->boxes, uint32_t);
	d.left_so_far = NEW(a, p->boxes, uint32_t);
	d.arrived_so_far = NEW(a, p->boxes, uint32_t);
	double(*at)[TRIES][2] = arena_alloc(a, p->arrows + 1, sizeof *at);
	uint32_t lanes[2] = { 0, 0 };
	layout(&d);
	drawing_start(out, p->title, (int)d.width, (int)d.height);
	buf_puts(out, "<defs><marker id=\"before\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
	              "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"" PLOT_ORANGE
	              "\"/></marker></defs>\n");
	for (uint32_t i = 0; i < p->arrows; i++) {
		Way way = way_of(p, &p->arrow[i]);
		if (way == STRAIGHT)
			straight(&d, &p->arrow[i], at[i]);
		else if (way == ARC)
			arc(&d, &p->arrow[i], at[i]);
		else
			beside(&d, &p->arrow[i], way == RIGHT_SIDE, lanes[way == RIGHT_SIDE]++, at[i]);
	}
	for (uint32_t i = 0; i < p->boxes; i++) {
		const Rect *r = &d.box[i];
		Buf name = { .arena = a };
		svg_cut(&name, p->box[i].name, LONGEST);
		draw_box(out, r->left, r->top, BOX, TALL, p->box[i].ends ? "#dbe9f6" : "#fff", NULL);
		draw_text(out, r->left + BOX / 2.0, r->top + 19, "middle", 13, name.s ? name.s : "");
		draw_text(out, r->left + BOX / 2.0, r->top + 36, "middle", FONT, p->box[i].text);
	}
	for (uint32_t i = 0; i < p->arrows; i++)
		label_put(&d, i, at[i], TRIES);
	double y = d.height - 16;
	buf_printf(out, "<path d=\"M24 %.1fh28\" stroke=\"#333\" stroke-width=\"1.4\" marker-end=\"url(#arrow)\"/>\n",
	           y - 4);
	draw_text(out, 58, y, "start", FONT, "number of links");
	if (p->before) {
		buf_printf(out,
		           "<path d=\"M170 %.1fh28\" stroke=\"" PLOT_ORANGE
		           "\" stroke-width=\"1.4\" stroke-dasharray=\"6 4\" marker-end=\"url(#before)\"/>\n",
		           y - 4);
		draw_text(out, 204, y, "start", FONT, p->before);
	}
	drawing_end(out);
}
