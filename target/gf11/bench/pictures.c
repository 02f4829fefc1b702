/* SPDX-License-Identifier: MIT */
/* A schedule as SVG.  In: microwords.  Out: units by cycles, with dependences on demand; the pipeline, a row for each
 * operation.  Timing is static: nothing is executed. */
#include <stdio.h>
#include <string.h>

#include "gf11_bench.h"

#define FILL_ISSUE "#f3a261"
static const char *const unit_fill[UNITS] = { "#9ecae1", "#fdd0a2", "#c7e9c0", "#dadaeb" };

enum { LEFT = 84, TOP = 64, RIGHT = 30, ROW = 40, WIDEST = 16000, MOST_ROWS = 400 };

typedef struct Issued {
	const Micro *micro;
	uint32_t at, done;
	int unit;
	uint32_t from[3]; /* issue that wrote each register or condition read; UINT32_MAX: none */
} Issued;
typedef struct IssuedList {
	Issued *issue;
	uint32_t count, end; /* end: cycle of the last result */
} IssuedList;

static IssuedList list_issues(Ctx *cx, const Machine *m, const Routine *r)
{
	IssuedList l = { 0 };
	uint32_t capacity = 0;
	for (uint32_t t = 0; t < r->lines; t++)
		for (int unit = 0; unit < UNITS; unit++) {
			const Micro *u = &r->line[t].slot[unit];
			if (u->op == GOP_NONE)
				continue;
			uint32_t done = t + (uint32_t)op_latency(m, u->op);
			l.issue = list_more(&cx->scratch, l.issue, l.count, &capacity, sizeof *l.issue);
			l.issue[l.count++] = (Issued){ u, t, done, unit, { UINT32_MAX, UINT32_MAX, UINT32_MAX } };
			l.end = done > l.end ? done : l.end;
		}
	return l;
}

/* Results become visible in cycle `done`: `now` is the writer that a read in this cycle sees. */
static void find_writers(Ctx *cx, const Machine *m, IssuedList *l)
{
	size_t places = (size_t)(m->registers + m->conditions);
	uint32_t *now = NEW(&cx->scratch, places, uint32_t), *first = NEW(&cx->scratch, (size_t)l->end + 2, uint32_t);
	uint32_t *next = NEW(&cx->scratch, l->count + 1, uint32_t);
	memset(now, 0xFF, places * sizeof *now);
	for (uint32_t i = l->count; i-- > 0;) {
		next[i] = first[l->issue[i].done];
		first[l->issue[i].done] = i + 1;
	}
	for (uint32_t t = 0, i = 0; t <= l->end; t++) {
		for (uint32_t k = first[t]; k; k = next[k - 1]) {
			const Micro *u = l->issue[k - 1].micro;
			unsigned uses = forms[ops[u->op].form].uses;
			if (uses & WRITES_CC)
				now[m->registers + u->cc] = k - 1;
			else if (uses & USES_DST)
				now[u->dst] = k - 1;
		}
		for (; i < l->count && l->issue[i].at == t; i++) {
			const Micro *u = l->issue[i].micro;
			unsigned uses = forms[ops[u->op].form].uses;
			l->issue[i].from[0] = uses & USES_A ? now[u->a] : UINT32_MAX;
			l->issue[i].from[1] = uses & USES_B ? now[u->b] : UINT32_MAX;
			l->issue[i].from[2] = uses & READS_CC ? now[m->registers + u->cc] : UINT32_MAX;
		}
	}
}

static const char *source_text(Ctx *cx, const Routine *r, const Issued *i)
{
	Buf b = { .arena = &cx->scratch };
	if (r->code && i->micro->rec < r->code->recs)
		rec_print(r->code, i->micro->rec, &b);
	else
		micro_print(i->micro, &b);
	return b.s;
}

/* A box with what the operation is, shown where the pointer rests. */
static void draw_op(Ctx *cx, const Routine *r, const Issued *i, double x, double y, double w, double h,
                    const char *fill, Buf *out)
{
	Buf b = { .arena = &cx->scratch };
	buf_printf(&b, "cycle %u, %s: %s; result in cycle %u", i->at, unit_names[i->unit], source_text(cx, r, i), i->done);
	buf_printf(out,
	           "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" stroke=\"#555\" "
	           "stroke-width=\"0.5\"><title>",
	           x, y, w, h, fill);
	svg_text(out, b.s, 200);
	buf_puts(out, "</title></rect>\n");
}

static void draw_cycles(double left, double top, double bottom, double cycle, uint32_t from, uint32_t end, Buf *out)
{
	static const uint32_t steps[] = { 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000 };
	size_t s = 0;
	while (s + 1 < COUNT(steps) && steps[s] * cycle < 46)
		s++;
	for (uint32_t t = from; t <= end; t += steps[s]) {
		char text[16];
		double x = left + (t - from) * cycle;
		snprintf(text, sizeof text, "%u", t);
		buf_printf(out, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#ddd\"/>\n", x, top, bottom);
		draw_text(out, x, top - 6, "middle", 11, text);
	}
}

static const char *title_of(Ctx *cx, const Machine *m, const Routine *r, const char *what, uint32_t end)
{
	Buf b = { .arena = &cx->scratch };
	buf_printf(&b, "%s of %s on %s: %u cycles", what, r->name, m->name, end);
	return b.s;
}

static uint32_t busy_cycles(const Machine *m, const Issued *i)
{
	const int64_t interval[UNITS] = { m->alu_interval, 1, m->dram_interval, m->switch_interval };
	int form = ops[i->micro->op].form;
	return form == FORM_LOOKUP || form == FORM_PUT ? 2 : (uint32_t)interval[i->unit];
}

/* Pixels of a cycle, so that the drawing is as wide as it may be and names have space where there are few cycles. */
static double cycle_width(uint32_t end, double total)
{
	double wide = total / (end + 1);
	wide = wide > 28 ? 28 : wide < 3 ? 3 : wide;
	return wide * end > WIDEST ? (double)WIDEST / end : wide;
}

static void draw_dependences(const IssuedList *l, double cycle, Buf *out)
{
	for (uint32_t i = 0; i < l->count; i++)
		for (int k = 0; k < 3; k++) {
			uint32_t from = l->issue[i].from[k];
			if (from == UINT32_MAX || (k == 1 && from == l->issue[i].from[0]))
				continue;
			const Issued *a = &l->issue[from], *b = &l->issue[i];
			double x = LEFT + (a->at + 0.5) * cycle, to_x = LEFT + (b->at + 0.5) * cycle;
			double y = TOP + a->unit * ROW + 14, to_y = TOP + b->unit * ROW + 14, bow = a->unit == b->unit ? -20 : 0;
			buf_printf(out,
			           "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" fill=\"none\" stroke=\"%s\" "
			           "stroke-opacity=\"0.45\" marker-end=\"url(#arrow)\"/>\n",
			           x, y, x + (to_x - x) * 0.4, y + bow, to_x - (to_x - x) * 0.4, to_y + bow, to_x, to_y,
			           plot_colours[a->unit]);
		}
}

/* Cycles from..to as one strip, its top at `top`. */
static void draw_strip(double top, double cycle, uint32_t from, uint32_t to, Buf *out)
{
	double right = LEFT + (to - from) * cycle;
	draw_cycles(LEFT, top, top + UNITS * ROW, cycle, from, to, out);
	for (int unit = 0; unit < UNITS; unit++) {
		draw_text(out, LEFT - 10, top + unit * ROW + 22, "end", 13, unit_names[unit]);
		buf_printf(out, "<path d=\"M%d %.1fH%.1f\" stroke=\"#999\"/>\n", LEFT, top + (unit + 1.0) * ROW - 6, right);
	}
}

/* A long schedule is several strips, one below the other; with dependences it is one. */
void schedule_svg(Ctx *cx, const Machine *m, const Routine *r, bool dependences, Buf *out)
{
	enum { STRIP = UNITS * ROW + 44, WIDE = 2100 };
	IssuedList l = list_issues(cx, m, r);
	double cycle = dependences         ? cycle_width(l.end, WIDE)
	               : l.end < WIDE / 36 ? 36
	               : l.end > WIDE / 3  ? 3
	                                   : WIDE / (l.end + 1.0);
	uint32_t a_strip = dependences || l.end * cycle <= WIDE ? l.end + 1 : (uint32_t)(WIDE / cycle / 50) * 50;
	uint32_t strips = l.end / a_strip + 1;
	double bottom = TOP + strips * (double)STRIP - 44;
	int width = (int)(LEFT + (strips > 1 ? a_strip : l.end) * cycle + RIGHT);
	drawing_start(out, title_of(cx, m, r, "schedule", l.end), width < 560 ? 560 : width, (int)bottom + 54);
	for (uint32_t i = 0; i < strips; i++)
		draw_strip(TOP + i * (double)STRIP, cycle, i * a_strip, min_u32(l.end, (i + 1) * a_strip), out);
	uint32_t busy[UNITS] = { 0 };
	for (uint32_t i = 0; i < l.count; i++) {
		const Issued *a = &l.issue[i];
		uint32_t cycles = busy_cycles(m, a), strip = a->at / a_strip;
		double x = LEFT + (a->at - strip * a_strip) * cycle, y = TOP + strip * (double)STRIP + a->unit * ROW + 4;
		busy[a->unit] += cycles;
		draw_op(cx, r, a, x, y, cycle * cycles, ROW - 12, unit_fill[a->unit], out);
		if (cycle * cycles >= 7.0 * (double)strlen(ops[a->micro->op].name) && !dependences)
			draw_text(out, x + cycle * cycles / 2, y + 18, "middle", 10, ops[a->micro->op].name);
	}
	if (dependences) {
		find_writers(cx, m, &l);
		draw_dependences(&l, cycle, out);
	}
	Buf note = { .arena = &cx->scratch };
	buf_puts(&note, "busy:");
	for (int unit = 0; unit < UNITS; unit++)
		buf_printf(&note, " %s %.0f %%%s", unit_names[unit], l.end ? 100.0 * busy[unit] / l.end : 0,
		           unit + 1 < UNITS ? "," : "");
	draw_text(out, LEFT, bottom + 22, "start", 12, note.s);
	draw_text(out, LEFT, bottom + 40, "start", 12,
	          dependences ? "arrows: from the operation that makes a value to those that read it"
	                      : "a box: cycles in which the operation occupies its unit");
	drawing_end(out);
}

/* Issue in a strong colour, then the cycles until the result; waiting for operands is to the left of a row. */
void pipeline_svg(Ctx *cx, const Machine *m, const Routine *r, Buf *out)
{
	enum { LINE = 15, NAMES = 250 };
	IssuedList l = list_issues(cx, m, r);
	uint32_t rows = l.count < MOST_ROWS ? l.count : MOST_ROWS, end = 0;
	for (uint32_t i = 0; i < rows; i++)
		end = l.issue[i].done > end ? l.issue[i].done : end;
	double cycle = cycle_width(end, 1400), bottom = TOP + rows * (double)LINE;
	drawing_start(out, title_of(cx, m, r, "pipeline", l.end), (int)(NAMES + end * cycle + RIGHT), (int)bottom + 40);
	draw_cycles(NAMES, TOP, bottom, cycle, 0, end, out);
	for (uint32_t i = 0; i < rows; i++) {
		const Issued *a = &l.issue[i];
		double y = TOP + i * (double)LINE + 2, x = NAMES + a->at * cycle;
		Buf name = { .arena = &cx->scratch };
		svg_cut(&name, source_text(cx, r, a), 36);
		draw_text(out, NAMES - 8, y + 10, "end", 11, name.s);
		draw_op(cx, r, a, x, y, (a->done - a->at) * cycle, LINE - 4, unit_fill[a->unit], out);
		draw_op(cx, r, a, x, y, cycle, LINE - 4, FILL_ISSUE, out);
	}
	double x = NAMES;
	for (int unit = 0; unit < UNITS; unit++, x += 90) {
		buf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"11\" fill=\"%s\" stroke=\"#555\"/>\n", x,
		           bottom + 14, unit_fill[unit]);
		draw_text(out, x + 20, bottom + 24, "start", 12, unit_names[unit]);
	}
	Buf note = { .arena = &cx->scratch };
	if (rows < l.count)
		buf_printf(&note, "issue; the first %u of %u operations", rows, l.count);
	buf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"11\" fill=\"%s\" stroke=\"#555\"/>\n", x,
	           bottom + 14, FILL_ISSUE);
	draw_text(out, x + 20, bottom + 24, "start", 12, rows < l.count ? note.s : "issue");
	drawing_end(out);
}
