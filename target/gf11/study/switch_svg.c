/* SPDX-License-Identifier: MIT */
/* A setting of the switch as SVG. In: a setting, or one in which a port sends to several. Out: three columns of
 * crossbars, the links that carry a route coloured by the crossbar it comes from, dead parts in red. */
#include <stdio.h>
#include <string.h>

#include "gf11_study.h"

enum { BOX_WIDE = 70, GAP = 6, TOP = 66, COLUMNS = 260, LEFT = 110 };
#define DEAD "#c00000"

typedef struct Canvas {
	const Switch *s;
	uint32_t n;
	double box;        /* height of a crossbar */
	uint16_t *link[2]; /* [n * n] port whose word the link carries; NO_ROUTE: none */
	uint16_t *out;     /* [ports] port whose word arrives */
	uint32_t routes;
	Buf *b;
} Canvas;

static double box_x(int stage) { return LEFT + stage * COLUMNS; }

static double box_y(const Canvas *k, uint32_t i) { return TOP + i * (k->box + GAP); }

/* Height of input or output i of a crossbar. */
static double pin_y(const Canvas *k, uint32_t box, uint32_t i) { return box_y(k, box) + (i + 0.5) * k->box / k->n; }

static void collect(Canvas *k, const Setting *set, const Fan *fan)
{
	uint32_t n = k->n, ports = k->s->ports;
	for (uint32_t p = 0; p < ports && set; p++) {
		Path path = switch_path(k->s, set, p);
		if (path.to == NO_ROUTE)
			continue;
		k->link[0][path.box[0] * n + path.box[1]] = (uint16_t)p;
		k->link[1][path.box[1] * n + path.box[2]] = (uint16_t)p;
		k->out[path.to] = (uint16_t)p;
	}
	for (uint32_t i = 0; i < n * n && fan; i++)
		if (fan->in[i] != NO_ROUTE)
			k->link[0][i] = (uint16_t)(i / n * n + fan->in[i]);
	for (uint32_t i = 0; i < n * n && fan; i++)
		if (fan->middle[i] != NO_ROUTE)
			k->link[1][i] = k->link[0][fan->middle[i] * n + i / n];
	for (uint32_t i = 0; i < ports && fan; i++)
		if (fan->out[i] != NO_ROUTE)
			k->out[i] = k->link[1][fan->out[i] * n + i / n];
	for (uint32_t i = 0; i < ports; i++)
		k->routes += k->out[i] != NO_ROUTE;
}

static void line(const Canvas *k, double x, double y, double to_x, double to_y, const char *colour, const char *more)
{
	buf_printf(k->b, "<path d=\"M%.1f %.2fL%.1f %.2f\" stroke=\"%s\" stroke-width=\"%s\"%s/>\n", x, y, to_x, to_y,
	           colour, k->routes > 60 ? "0.7" : "1.4", more);
}

static const char *colour_of(const Canvas *k, uint32_t port) { return plot_colours[port / k->n % PLOT_COLOURS]; }

static void draw_links(const Canvas *k)
{
	uint32_t n = k->n;
	for (int stage = 0; stage < 2; stage++)
		for (uint32_t i = 0; i < n * n; i++) {
			uint32_t from = i / n, to = i % n, port = k->link[stage][i];
			double x = box_x(stage) + BOX_WIDE, to_x = box_x(stage + 1), y = pin_y(k, from, to),
				   to_y = pin_y(k, to, from);
			if (k->s->dead.link[stage][i])
				line(k, x, y, to_x, to_y, DEAD, " stroke-dasharray=\"5 3\"");
			else if (port != NO_ROUTE)
				line(k, x, y, to_x, to_y, colour_of(k, port), " stroke-opacity=\"0.75\"");
		}
}

/* Ports that send or receive: a stub each, and its number where there is space. */
static void draw_ports(const Canvas *k)
{
	double shown[2] = { -100, -100 };
	bool *sends = NEW(k->b->arena, k->s->ports, bool);
	for (uint32_t p = 0; p < k->s->ports; p++)
		if (k->out[p] != NO_ROUTE)
			sends[k->out[p]] = true;
	for (uint32_t p = 0; p < k->s->ports; p++) {
		double y = pin_y(k, p / k->n, p % k->n);
		bool used[2] = { sends[p], k->out[p] != NO_ROUTE };
		for (int side = 0; side < 2; side++) {
			double x = side ? box_x(2) + BOX_WIDE : LEFT - 14;
			bool dead = k->s->dead.port[p];
			char text[24];
			if (!used[side] && !dead)
				continue;
			line(k, x, y, x + 14, y, dead ? DEAD : colour_of(k, side ? k->out[p] : p), "");
			if (y - shown[side] < 9)
				continue;
			shown[side] = y;
			if (side && k->routes <= 60 && !dead)
				snprintf(text, sizeof text, "%u from %u", p, k->out[p]);
			else
				snprintf(text, sizeof text, "%u", p);
			draw_text(k->b, side ? x + 18 : x - 4, y + 3.5, side ? "start" : "end", 9, text);
		}
	}
}

static void draw_boxes(const Canvas *k)
{
	static const char *const names[] = { "input", "middle", "output" };
	for (int stage = 0; stage < 3; stage++) {
		draw_text(k->b, box_x(stage) + BOX_WIDE / 2.0, TOP - 12, "middle", 13, names[stage]);
		for (uint32_t i = 0; i < k->n; i++) {
			char text[24];
			snprintf(text, sizeof text, "%u", i);
			draw_box(k->b, box_x(stage), box_y(k, i), BOX_WIDE, k->box,
			         k->s->dead.crossbar[stage][i] ? "#f4c7c3" : FILL_0, text);
		}
	}
}

/* A machine whose ports form a ring has no crossbars: a row ends where the next begins. */
static void draw_ring(Ctx *cx, const Switch *s, const char *title, const Setting *set, Buf *out)
{
	enum { A_ROW = 24 };
	drawing_start(out, title, 760, (int)(80 + (s->ports + A_ROW - 1) / A_ROW * 34));
	for (uint32_t p = 0; p < s->ports; p++) {
		char text[16];
		double x = 24 + p % A_ROW * 30.0, y = 50 + p / A_ROW * 34.0;
		snprintf(text, sizeof text, "%u", p);
		draw_box(out, x, y, 22, 18, s->dead.port[p] ? "#f4c7c3" : FILL_A, NULL);
		draw_text(out, x + 11, y + 12.5, "middle", 9, text);
		if (set->in[p] == p + 1 && p % A_ROW + 1 < A_ROW)
			draw_arrow(out, x + 22, y + 9, x + 29, y + 9, true);
		else if (set->in[p] != NO_ROUTE && set->in[p] != p + 1)
			draw_text(out, x + 11, y + 29, "middle", 9, draw_label(cx, "to %u", set->in[p]));
	}
	drawing_end(out);
}

void switch_svg(Ctx *cx, const Switch *s, const char *title, const Setting *set, const Fan *fan, Buf *out)
{
	Canvas k = { .s = s, .n = s->n, .b = out };
	if (s->m->ring_only) {
		draw_ring(cx, s, title, set, out);
		return;
	}
	k.box = s->n > 12 ? 34 : 60;
	for (int i = 0; i < 2; i++) {
		k.link[i] = NEW(&cx->scratch, (size_t)s->n * s->n, uint16_t);
		memset(k.link[i], 0xFF, (size_t)s->n * s->n * sizeof(uint16_t));
	}
	k.out = NEW(&cx->scratch, (size_t)s->n * s->n + s->ports, uint16_t);
	memset(k.out, 0xFF, ((size_t)s->n * s->n + s->ports) * sizeof(uint16_t));
	collect(&k, set, fan);
	double bottom = box_y(&k, s->n);
	drawing_start(out, title, LEFT + 2 * COLUMNS + BOX_WIDE + 110, (int)bottom + 40);
	draw_links(&k);
	draw_ports(&k);
	draw_boxes(&k);
	draw_text(out, 24, bottom + 20, "start", 12,
	          draw_label(cx, "%u routes; a colour for each input crossbar; red: dead", k.routes));
	drawing_end(out);
}
