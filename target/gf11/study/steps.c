/* SPDX-License-Identifier: MIT */
/* microprop gf11 steps, and figures 4, 5 and 12 of the report. In: a summation method, a number of processors. Out:
 * whose weight changes each processor has summed after every step, as text, JSON and SVG, from the configurations of
 * the switch that the compiled sum uses. */
#include <stdio.h>
#include <string.h>

#include "gf11_study.h"

enum { MOST_PROCS = 24, MOST_STEPS = 2 * MOST_PROCS };

const char *draw_label(Ctx *cx, const char *fmt, ...)
{
	char text[200];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return arena_copy(&cx->scratch, text, strlen(text));
}

/* Contributors of what a processor holds after a step, as a set of bits. */
typedef struct Steps {
	uint32_t procs, steps;
	const uint16_t *to[MOST_STEPS];            /* [steps] configuration of each step */
	uint32_t set[MOST_STEPS + 1][MOST_PROCS];  /* [steps + 1] */
	uint32_t slot[MOST_STEPS + 1][MOST_PROCS]; /* pipelined: which weight; else unused */
	const char *left[MOST_STEPS + 1];          /* names of the rows */
	bool slots;
} Steps;

/* "1-3,7" */
static const char *set_text(const CommandRun *c, uint32_t set, uint32_t procs)
{
	Buf b = { .arena = &c->cx->scratch };
	for (uint32_t i = 0; i < procs; i++) {
		uint32_t end = i;
		if (!(set >> i & 1))
			continue;
		while (end + 1 < procs && set >> (end + 1) & 1)
			end++;
		buf_printf(&b, "%s%u", b.len ? "," : "", i);
		if (end > i)
			buf_printf(&b, "-%u", end);
		i = end;
	}
	return b.len ? b.s : "";
}

static const char *held_text(const CommandRun *c, const Steps *s, uint32_t k, uint32_t p)
{
	const char *text = set_text(c, s->set[k][p], s->procs);
	return s->slots ? draw_label(c->cx, "w%u: %s", s->slot[k][p], text) : text;
}

/* ---- the three methods ---- */

/* What arrives over the configuration: the sender of each processor, or NO_ROUTE. */
static void senders(const uint16_t *to, uint32_t procs, uint32_t *from)
{
	for (uint32_t p = 0; p < procs; p++)
		from[p] = NO_ROUTE;
	for (uint32_t p = 0; p < procs; p++)
		if (to[p] < procs)
			from[to[p]] = p;
}

static void steps_ring(const CommandRun *c, const Bp *p, Steps *s)
{
	uint32_t other[MOST_PROCS], next[MOST_PROCS], from[MOST_PROCS];
	s->steps = s->procs - 1;
	memcpy(other, s->set[0], sizeof other);
	for (uint32_t k = 0; k < s->steps; k++) {
		s->to[k] = p->sw->to[p->summing->ring];
		senders(s->to[k], s->procs, from);
		for (uint32_t i = 0; i < s->procs; i++) {
			next[i] = other[from[i]];
			s->set[k + 1][i] = s->set[k][i] | next[i];
		}
		memcpy(other, next, sizeof other);
		s->left[k + 1] = draw_label(c->cx, "step %u", k + 1);
	}
}

/* Leftovers send to their buddies first and get the total last. */
static void steps_tree(const CommandRun *c, const Bp *p, Steps *s)
{
	const BpSum *sum = p->summing;
	uint32_t from[MOST_PROCS], before = sum->leftovers > 0;
	s->steps = sum->levels + 2 * before;
	for (uint32_t k = 0; k < s->steps; k++) {
		bool first = before && k == 0, last = before && k + 1 == s->steps;
		s->to[k] = p->sw->to[first ? sum->to_buddy : last ? sum->from_buddy : sum->up[k - before]];
		senders(s->to[k], s->procs, from);
		for (uint32_t i = 0; i < s->procs; i++) {
			uint32_t got = from[i] == NO_ROUTE ? 0 : s->set[k][from[i]];
			s->set[k + 1][i] = last && got ? got : s->set[k][i] | got;
		}
		s->left[k + 1] = first ? "leftovers" : last ? "to leftovers" : draw_label(c->cx, "step %u", k - before);
	}
}

/* A word goes round: at first each processor sends its change of its own slot; what comes is of the slot before. */
static void steps_pipelined(const CommandRun *c, const Bp *p, Steps *s)
{
	uint32_t from[MOST_PROCS];
	s->steps = 2 * (s->procs - 1);
	s->slots = true;
	for (uint32_t i = 0; i < s->procs; i++)
		s->slot[0][i] = i;
	for (uint32_t k = 0; k < s->steps; k++) {
		s->to[k] = p->sw->to[p->summing->ring];
		senders(s->to[k], s->procs, from);
		for (uint32_t i = 0; i < s->procs; i++) {
			s->slot[k + 1][i] = s->slot[k][from[i]];
			s->set[k + 1][i] = s->set[k][from[i]] | 1u << i;
		}
		s->left[k + 1] =
			draw_label(c->cx, k < s->procs - 1 ? "sum, step %u" : "weights, step %u", k % (s->procs - 1) + 1);
	}
}

static Steps *steps_make(const CommandRun *c, int sum, uint32_t procs)
{
	static void (*const make[])(const CommandRun *c, const Bp *p, Steps *s) = { steps_ring, steps_tree,
		                                                                        steps_pipelined };
	Steps *s = NEW(&c->cx->scratch, 1, Steps);
	const Plan *plan = procs > 8 ? plan_layers(c->cx, 64, 16, 8) : plan_layers(c->cx, 8, 4, 4);
	const Bp *p = small_program(c, plan, (BpOptions){ .procs = procs, .sum = sum, .dry = true }, procs);
	s->procs = procs;
	s->left[0] = "own change";
	for (uint32_t i = 0; i < procs; i++)
		s->set[0][i] = 1u << i;
	make[sum](c, p, s);
	return s;
}

/* ---- output ---- */

static void steps_draw(const CommandRun *c, const char *title, const Steps *s, Buf *b)
{
	int width = 720;
	if (s->procs > 8) /* the text of a box must have space */
		width = (int)(130 + s->procs * ((s->procs > 11 ? 92u : 72u) + (s->slots ? 30u : 0)));
	double left = 110, wide = (width - left - 20) / s->procs, high = 74;
	drawing_start(b, title, width, (int)(66 + (s->steps + 1) * high));
	for (uint32_t p = 0; p < s->procs; p++)
		draw_text(b, left + (p + 0.5) * wide, 56, "middle", 12,
		          draw_label(c->cx, s->procs > 5 ? "proc. %u" : "processor %u", p));
	for (uint32_t k = 0; k <= s->steps; k++) {
		double top = 66 + k * high;
		draw_text(b, 14, top + 22, "start", 12, s->left[k]);
		for (uint32_t p = 0; p < s->procs; p++) {
			bool all = s->set[k][p] == (1u << s->procs) - 1;
			draw_box(b, left + p * wide + 4, top, wide - 8, 34, all ? FILL_C : FILL_A, held_text(c, s, k, p));
			if (k < s->steps && s->to[k][p] < s->procs)
				draw_arrow(b, left + (p + 0.5) * wide, top + 35, left + (s->to[k][p] + 0.5) * wide, top + high - 2,
				           true);
		}
	}
	draw_text(b, 14, 66 + (s->steps + 1) * high - 14, "start", 12,
	          s->slots ? "w1: 1-2: the changes of weight 1 in processors 1 and 2 summed; green: in all"
	                   : "0-2: the changes of processors 0 to 2 summed; green: of all");
	drawing_end(b);
}

void steps_svg(const CommandRun *c, const char *title, int sum, uint32_t procs, Buf *b)
{
	steps_draw(c, title, steps_make(c, sum, procs), b);
}

static void steps_print(const CommandRun *c, const Steps *s)
{
	size_t wide = 4;
	for (uint32_t k = 0; k <= s->steps; k++)
		for (uint32_t p = 0; p < s->procs; p++) {
			size_t len = strlen(held_text(c, s, k, p));
			wide = len > wide ? len : wide;
		}
	buf_printf(c->text, "%-16s", "processor");
	for (uint32_t p = 0; p < s->procs; p++)
		buf_printf(c->text, "  %-*u", p + 1 < s->procs ? (int)wide : 0, p);
	for (uint32_t k = 0; k <= s->steps; k++) {
		buf_printf(c->text, "\n%-16s", s->left[k]);
		for (uint32_t p = 0; p < s->procs; p++)
			buf_printf(c->text, "  %-*s", p + 1 < s->procs ? (int)wide : 0, held_text(c, s, k, p));
	}
	buf_puts(c->text, "\n");
}

static void steps_json(const CommandRun *c, const Steps *s)
{
	jw_start(c->json, "steps", '[');
	for (uint32_t k = 0; k <= s->steps; k++) {
		jw_start(c->json, NULL, '{');
		jw_text(c->json, "name", s->left[k]);
		jw_start(c->json, "has", '[');
		for (uint32_t p = 0; p < s->procs; p++)
			jw_text(c->json, NULL, held_text(c, s, k, p));
		jw_end(c->json, ']');
		if (k < s->steps) {
			jw_start(c->json, "sends_to", '[');
			for (uint32_t p = 0; p < s->procs; p++) {
				if (s->to[k][p] < s->procs)
					jw_count(c->json, NULL, s->to[k][p]);
				else
					jw_text(c->json, NULL, NULL);
			}
			jw_end(c->json, ']');
		}
		jw_end(c->json, '}');
	}
	jw_end(c->json, ']');
}

void run_steps(CommandRun *c)
{
	int sum = choice_read(c->cx, "steps", c->operand[0], sum_names, SUM_PIPELINED + 1);
	uint64_t least = sum == SUM_TREE ? 2 : 3, most = min_u64(MOST_PROCS, (uint64_t)c->m->processors);
	uint32_t procs = (uint32_t)(c->procs ? whole_number(c, "procs", c->procs, least, most) : min_u64(5, most));
	static const char *const how[] = { "in a ring", "in a tree", "in a pipelined ring" };
	const Steps *s = steps_make(c, sum, procs);
	const char *title = draw_label(c->cx, "summing %s over %u processors: %u steps", how[sum], procs, s->steps);
	buf_printf(c->text, "%s; whose changes each has\n", title);
	steps_print(c, s);
	jw_text(c->json, "sum", sum_names[sum]);
	jw_count(c->json, "procs", procs);
	steps_json(c, s);
	if (c->svg) {
		Buf svg = { .arena = &c->cx->scratch };
		steps_draw(c, title, s, &svg);
		svg_write(c, &svg);
	}
}
