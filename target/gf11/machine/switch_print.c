/* SPDX-License-Identifier: MIT */
/* The switch as text.  In: a setting.  Out: a summary, a drawing of the three stages with a few routes, and the setting
 * of every crossbar.
 *
 * A crossbar is a box of two lines: its number, the number of routes through it.  Wires leave a box on the upper line
 * and enter on the lower one; the drawn routes share no crossbar, so that wires cross but never overlap. */
#include <stdio.h>
#include <stdlib.h>

#include "gf11_machine.h"

enum { DRAWN = 8, GAP = 2 * DRAWN + 3, ROWS = 2 * MAX_CROSSBAR };
enum { UP = 1, DOWN = 2, LEFT = 4, RIGHT = 8 };
static const char *const strokes[16] = {
	" ", "╵", "╷", "│", "╴", "╯", "╮", "┤", "╶", "╰", "╭", "├", "─", "┴", "┬", "┼"
};

typedef struct Picture {
	uint32_t n, paths;
	Path path[DRAWN];
	uint32_t through[3][MAX_CROSSBAR]; /* routes through a crossbar */
	uint8_t gap[2][ROWS][GAP];         /* strokes between the stages */
} Picture;

static uint32_t count_through(const Switch *s, const uint16_t *to, const Setting *set,
                              uint32_t through[3][MAX_CROSSBAR])
{
	uint32_t routes = 0;
	for (uint32_t p = 0; p < s->ports; p++) {
		if (to[p] == NO_ROUTE)
			continue;
		Path path = switch_path(s, set, p);
		routes++;
		for (int stage = 0; stage < 3; stage++)
			through[stage][path.box[stage]]++;
	}
	return routes;
}

/* ---- choosing and drawing routes ---- */

static bool shares_box(const Picture *pic, const Path *path)
{
	for (uint32_t i = 0; i < pic->paths; i++)
		for (int stage = 0; stage < 3; stage++)
			if (pic->path[i].box[stage] == path->box[stage])
				return true;
	return false;
}

/* From the upper line of box a over column col to the lower line of box b. */
static void draw_wire(uint8_t gap[ROWS][GAP], uint32_t a, uint32_t b, uint32_t col)
{
	uint32_t start = 2 * a, end = 2 * b + 1;
	for (uint32_t c = 0; c < col; c++)
		gap[start][c] |= LEFT | RIGHT;
	for (uint32_t c = col + 1; c < GAP; c++)
		gap[end][c] |= LEFT | RIGHT;
	for (uint32_t r = start < end ? start : end; r < (start < end ? end : start); r++) {
		gap[r][col] |= DOWN;
		gap[r + 1][col] |= UP;
	}
	gap[start][col] |= LEFT;
	gap[end][col] |= RIGHT;
}

/* Column order that minimizes crossings: downward wires from the lowest start up, then upward ones. */
static void draw_stage(Picture *pic, int stage)
{
	uint32_t col = 1;
	for (int down = 1; down >= 0; down--) {
		for (uint32_t k = 0; k < pic->paths; k++) {
			const Path *path = &pic->path[down ? pic->paths - 1 - k : k];
			if ((path->box[stage + 1] >= path->box[stage]) != (down == 1))
				continue;
			draw_wire(pic->gap[stage], path->box[stage], path->box[stage + 1], col);
			col += 2;
		}
	}
}

/* ---- printing the picture ---- */

static const Path *path_at(const Picture *pic, int stage, uint32_t box)
{
	for (uint32_t i = 0; i < pic->paths; i++)
		if (pic->path[i].box[stage] == box)
			return &pic->path[i];
	return NULL;
}

/* Beside an input or output crossbar: the route drawn there and the range of its ports. */
static void print_side(const Picture *pic, const Switch *s, uint32_t row, int stage, Buf *out)
{
	uint32_t box = row / 2, first = box * s->n, last = first + s->n - 1;
	const Path *path = path_at(pic, stage, box);
	bool left = stage == 0, wire = (row % 2 == 0) == left;
	char range[32];
	snprintf(range, sizeof range, "%u-%u", first, last < s->ports ? last : s->ports - 1);
	if (!wire && first < s->ports)
		buf_printf(out, left ? "%11s " : " %s", range);
	else if (wire && path && left)
		buf_printf(out, "%c %7u ──", (char)('A' + (path - pic->path)), path->from);
	else if (wire && path)
		buf_printf(out, "── %c %u", (char)('A' + (path - pic->path)), path->to);
	else if (left)
		buf_printf(out, "%12s", "");
}

static void print_picture(const Picture *pic, const Switch *s, Buf *out)
{
	buf_printf(out, "%9s%9s%*s%*s%9s\n\n", "ports", "input", GAP + 6, "middle", GAP + 6, "output", "ports");
	for (uint32_t row = 0; row < 2 * pic->n; row++) {
		print_side(pic, s, row, 0, out);
		for (int stage = 0; stage < 3; stage++) {
			uint32_t box = row / 2;
			if (row % 2 == 0)
				buf_printf(out, "┌ %2u ┐", box);
			else if (s->dead.crossbar[stage][box])
				buf_puts(out, "└dead┘");
			else
				buf_printf(out, "└ %2u ┘", pic->through[stage][box]);
			for (uint32_t c = 0; stage < 2 && c < GAP; c++)
				buf_puts(out, strokes[pic->gap[stage][row][c]]);
		}
		print_side(pic, s, row, 2, out);
		/* Ends the line without trailing blanks. */
		while (out->len && out->s[out->len - 1] == ' ')
			out->s[--out->len] = 0;
		buf_puts(out, "\n");
	}
	buf_puts(out, "\nIn a box: number of the crossbar, and routes through it.");
	if (pic->paths)
		buf_printf(out, "  %s %u of the routes, with the ports they join.", pic->paths > 1 ? "Drawn:" : "Drawn is",
		           pic->paths);
	buf_puts(out, "\n");
}

/* ---- settings and summary ---- */

static void print_stage(const Switch *s, int stage, const uint16_t *join, Buf *out)
{
	buf_printf(out, "\n%s stage: outputs that inputs 0 to %u of each crossbar are joined to\n", stage_names[stage],
	           s->n - 1);
	for (uint32_t x = 0; x < s->n; x++) {
		buf_printf(out, "%4u:", x);
		for (uint32_t y = 0; y < s->n; y++) {
			uint32_t z = join[x * s->n + y];
			if (z == NO_ROUTE)
				buf_puts(out, "  -");
			else
				buf_printf(out, " %2u", z);
		}
		buf_puts(out, "\n");
	}
}

static void print_dead(const Switch *s, Buf *out)
{
	const Dead *d = &s->dead;
	for (int stage = 0; stage < 3; stage++)
		for (uint32_t x = 0; x < s->n; x++)
			if (d->crossbar[stage][x])
				buf_printf(out, "dead: %s crossbar %u\n", stage_names[stage], x);
	for (int stage = 0; stage < 2; stage++)
		for (uint32_t i = 0; i < s->n * s->n; i++)
			if (d->link[stage][i])
				buf_printf(out, "dead: link from %s crossbar %u to %s crossbar %u\n", stage_names[stage], i / s->n,
				           stage_names[stage + 1], i % s->n);
	for (uint32_t p = 0; p < s->ports; p++)
		if (d->port[p])
			buf_printf(out, "dead: port %u\n", p);
}

static void print_verdict(const Switch *s, const uint16_t *to, const Setting *set, Buf *out)
{
	buf_puts(out,
	         switch_verify(s, to, set)
	             ? "verified: every token pushed through came out where it should, and nothing came out elsewhere\n"
	             : "wrong: tokens pushed through do not come out where they should\n");
}

/* The first route of an input crossbar that shares no crossbar with those chosen before. */
static void choose_path(Picture *pic, const Switch *s, const uint16_t *to, const Setting *set, uint32_t box)
{
	for (uint32_t p = box * s->n; p < (box + 1) * s->n && p < s->ports && pic->paths < DRAWN; p++) {
		if (to[p] == NO_ROUTE)
			continue;
		Path path = switch_path(s, set, p);
		if (shares_box(pic, &path))
			continue;
		pic->path[pic->paths++] = path;
		return;
	}
}

static int by_source(const void *a, const void *b)
{
	uint32_t from = ((const Path *)a)->from, other = ((const Path *)b)->from;
	return (from > other) - (from < other);
}

/* Few routes: those that share a crossbar with one drawn are listed. */
static void print_undrawn(const Picture *pic, const Switch *s, const uint16_t *to, const Setting *set, uint32_t routes,
                          Buf *out)
{
	for (uint32_t p = 0; routes <= DRAWN && p < s->ports; p++) {
		bool drawn = to[p] == NO_ROUTE;
		for (uint32_t i = 0; i < pic->paths; i++)
			drawn |= pic->path[i].from == p;
		if (drawn)
			continue;
		Path path = switch_path(s, set, p);
		buf_printf(out, "not drawn: %u ─▶ ", path.from);
		buf_printf(out, "input %u ─▶ middle %u ─▶ ", path.box[0], path.box[1]);
		buf_printf(out, "output %u ─▶ %u\n", path.box[2], path.to);
	}
}

void switch_print(const Switch *s, const uint16_t *to, const Setting *set, Buf *out)
{
	if (s->m->ring_only) {
		uint32_t procs = 0;
		while (procs < s->ports && to[procs] != NO_ROUTE)
			procs++;
		buf_printf(out, "ring of %u processors, no switch\n", procs);
		print_dead(s, out);
		print_verdict(s, to, set, out);
		if (procs > 3)
			buf_printf(out, "\n0 ─▶ 1 ─▶ 2 ─▶ ... ─▶ %u ─▶ 0\n", procs - 1);
		return;
	}
	Picture pic = { .n = s->n };
	uint32_t routes = count_through(s, to, set, pic.through), used[3] = { 0 };
	for (int stage = 0; stage < 3; stage++)
		for (uint32_t x = 0; x < s->n; x++)
			used[stage] += pic.through[stage][x] > 0;
	buf_printf(out, "switch of %u ports: 3 stages of %u crossbars, each %u x %u\n", s->ports, s->n, s->n, s->n);
	buf_printf(out, "routes: %u, through %u input, %u middle and %u output crossbars\n", routes, used[0], used[1],
	           used[2]);
	print_dead(s, out);
	print_verdict(s, to, set, out);
	buf_puts(out, "\n");
	/* From every few input crossbars, then from the others. */
	uint32_t step = s->n > DRAWN ? s->n / DRAWN : 1;
	for (uint32_t i = 0; i < s->n; i += step)
		choose_path(&pic, s, to, set, i);
	for (uint32_t i = 0; i < s->n; i++)
		if (i % step)
			choose_path(&pic, s, to, set, i);
	qsort(pic.path, pic.paths, sizeof *pic.path, by_source);
	draw_stage(&pic, 0);
	draw_stage(&pic, 1);
	print_picture(&pic, s, out);
	print_undrawn(&pic, s, to, set, routes, out);
	print_stage(s, 0, set->in, out);
	print_stage(s, 1, set->middle, out);
	print_stage(s, 2, set->out, out);
}
