/* SPDX-License-Identifier: MIT */
/* The report's drawings: figures 1 to 7 and 12. In: a machine. Out: SVG files, drawn from the structures that the
 * simulator uses: the machine's parameters (1), case data in the memories of four processors (2), the table and the
 * routine of the sigmoid (3), stored configurations of the switch (4, 5, 12), bundles and groups of a compiled network
 * (6, 7). */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gf11_study.h"

/* ---- figure 1: the machine ---- */

static void draw_machine(const CommandRun *c, const char *title, Buf *b)
{
	enum { SHOWN = 4, LEFT = 150, STEP = 130, TOP = 130 };
	const Machine *m = c->m;
	uint32_t disks = machine_disks(m);
	drawing_start(b, title, 720, 500);
	draw_box(b, 24, 60, 100, 40, FILL_B, "host");
	draw_box(b, 200, 60, 300, 40, FILL_B,
	         draw_label(c->cx, "controller: %lld lines of microcode", (long long)m->microcode));
	draw_arrow(b, 124, 80, 198, 80, true);
	draw_text(b, 510, 84, "start", 12, draw_label(c->cx, "%lld relocation registers", (long long)m->relocations));
	for (uint32_t i = 0; i < SHOWN; i++) {
		double x = 24 + i * (STEP + 18.0);
		uint32_t number = i + 1 < SHOWN ? i : (uint32_t)m->processors - 1;
		if (i + 1 == SHOWN)
			draw_text(b, x + 12, TOP + 76, "middle", 20, "...");
		x += i + 1 == SHOWN ? 30 : 0;
		draw_arrow(b, 350, 100, x + STEP / 2.0, TOP - 2, true);
		draw_box(b, x, TOP, STEP, 150, FILL_0, NULL);
		draw_text(b, x + STEP / 2.0, TOP + 18, "middle", 12, draw_label(c->cx, "processor %u", number));
		draw_box(b, x + 4, TOP + 26, STEP - 8, 26, FILL_A,
		         draw_label(c->cx, "ALU, depth %lld", (long long)m->alu_latency));
		draw_box(b, x + 4, TOP + 56, STEP - 8, 26, FILL_A,
		         draw_label(c->cx, "%lld registers", (long long)m->registers));
		draw_box(b, x + 4, TOP + 86, STEP - 8, 26, FILL_A,
		         draw_label(c->cx, "SRAM %lldK words", (long long)m->sram / 1024));
		draw_box(b, x + 4, TOP + 116, STEP - 8, 26, FILL_A,
		         draw_label(c->cx, "DRAM %lldK words", (long long)m->dram / 1024));
		draw_arrow(b, x + STEP / 2.0, TOP + 150, x + STEP / 2.0, TOP + 188, true);
		draw_arrow(b, x + STEP / 2.0 + 14, TOP + 190, x + STEP / 2.0 + 14, TOP + 152, true);
	}
	draw_box(b, 24, TOP + 190, 672, 70, FILL_C, NULL);
	draw_text(b, 360, TOP + 220, "middle", 13,
	          m->ring_only
	              ? "a ring"
	              : draw_label(c->cx, "Benes network: 3 stages of %lld crossbars of %lld ports, %lld ports in all",
	                           (long long)m->crossbar, (long long)m->crossbar, (long long)m->switch_ports));
	draw_text(b, 360, TOP + 242, "middle", 13,
	          draw_label(c->cx, "%lld configurations, a word every %lld cycles", (long long)m->configurations,
	                     (long long)m->switch_interval));
	for (uint32_t i = 0; i < disks && i < 10; i++) {
		draw_box(b, 24 + i * 68.0, TOP + 300, 58, 36, FILL_B, draw_label(c->cx, "disk %u", i));
		draw_arrow(b, 24 + i * 68.0 + 29, TOP + 300, 24 + i * 68.0 + 29, TOP + 262, true);
	}
	draw_text(b, 24, TOP + 358, "start", 12,
	          draw_label(c->cx, "%u disks of %g MB and %g MB/s; %lld processors", disks, m->disk_capacity, m->disk_rate,
	                     (long long)m->processors));
	drawing_end(b);
}

/* ---- programs of small networks ---- */

Bp *small_program(const CommandRun *c, const Plan *plan, BpOptions o, uint64_t cases)
{
	o.compiler = COMPILER_1989;
	o.threads = 1;
	Bp *b = bp_new(c->cx, plan, &plan->net->options, c->m, &o, cases);
	if (!b->summing)
		sum_compile(b);
	return b;
}

/* ---- figure 2: cases over processors, read back from the simulated memories ---- */

static void draw_cases(const CommandRun *c, const char *title, Buf *b)
{
	enum { PROCS = 4, CASES = 10, ROW = 28 };
	const Plan *plan = plan_layers(c->cx, 2, 3, 1);
	BpOptions o = { .procs = PROCS, .sum = SUM_TREE };
	Bp *p = small_program(c, plan, o, CASES);
	Data *d = NEW(&c->cx->keep, 1, Data);
	float *x = NEW(&c->cx->keep, (size_t)CASES * 2, float), *y = NEW(&c->cx->keep, CASES, float);
	for (uint32_t i = 0; i < CASES; i++)
		x[2 * i] = (float)(i + 1);
	*d = (Data){
		.name = "cases", .cases = CASES, .inputs = 2, .targets = 1, .x = x, .x_type = T_F32, .y = y, .y_type = T_F32
	};
	bp_load_cases(p, d, NULL, CASES);
	drawing_start(b, title, 720, 420);
	draw_text(b, 90, 62, "middle", 13, "input-output cases");
	draw_text(b, 510, 62, "middle", 13, "copies of the network on different processors");
	for (uint32_t i = 0; i < CASES; i++)
		draw_box(b, 40, 76 + i * (ROW + 4.0), 100, ROW, FILL_B, draw_label(c->cx, "case %u", i));
	for (uint32_t proc = 0; proc < PROCS; proc++) {
		double left = 330, top = 76 + proc * 82.0;
		draw_box(b, left, top, 370, 72, FILL_0, NULL);
		draw_text(b, left + 10, top + 18, "start", 12,
		          draw_label(c->cx, "processor %u: %llu weights, their changes", proc, (unsigned long long)plan->W));
		for (uint32_t u = 0; u < 6; u++) {
			double ux = left + 300 + u % 3 * 26.0, uy = top + 20 + u / 3 * 34.0;
			draw_box(b, ux - 7, uy - 7, 14, 14, FILL_A, NULL);
			for (uint32_t k = 0; u >= 3 && k < 3; k++)
				draw_arrow(b, left + 300 + k * 26.0, top + 27, ux, uy - 8, false);
		}
		for (uint32_t slot = 0, shown = 0; slot < p->at.slots; slot++) {
			Cell word[2];
			host_read(p->c, proc, true, p->at.data + slot * p->at.data_words, word, 2);
			uint32_t number = (uint32_t)word[0].f;
			if (!number) /* padding */
				continue;
			draw_box(b, left + 10 + shown * 84.0, top + 30, 76, 30, FILL_B, draw_label(c->cx, "case %u", number - 1));
			draw_arrow(b, 142, 76 + (number - 1) * (ROW + 4.0) + ROW / 2.0, left - 2, top + 24 + shown * 14.0, true);
			shown++;
		}
	}
	drawing_end(b);
}

/* ---- figure 3: the sigmoid by table ---- */

static void draw_sigmoid(const CommandRun *c, const char *title, Buf *b)
{
	enum { PROCS = 64, EACH = 60, COUNT_X = PROCS * EACH };
	Arena *a = &c->cx->scratch;
	const RoutineDef *def = routine_find("sigmoid-table");
	Routine *r = schedule(c->cx, c->m, routine_record(c->cx, c->m, def), &(ScheduleOptions){ .level = 0 });
	Runner *w = runner_new(c->cx, c->m, PROCS, 1);
	Controller *k = runner_load(w, r);
	double *x = NEW(a, COUNT_X, double), *y = NEW(a, COUNT_X, double), point_x[40], point_y[40];
	double largest = 0, sum = 0;
	Cell word[EACH], *table = NEW(a, TABLE_WORDS, Cell);
	uint32_t points = 0;
	runner_fill(w, k, false);
	for (uint32_t proc = 0; proc < PROCS; proc++) {
		for (uint32_t i = 0; i < EACH; i++)
			word[i].f = (float)(-16 + 32.0 * (proc * EACH + i) / (COUNT_X - 1));
		host_write(k, proc, false, k->base[BASE_SRAM], word, EACH);
	}
	controller_call(k, 0);
	for (uint32_t i = 0; i < COUNT_X; i++) {
		host_read(k, i / EACH, false, k->base[BASE_SRAM] + EACH + i % EACH, word, 1);
		x[i] = (float)(-16 + 32.0 * i / (COUNT_X - 1));
		y[i] = word[0].f;
		double error = fabs(y[i] - 1 / (1 + arith_exp(-x[i])));
		largest = error > largest ? error : largest;
		sum += error / COUNT_X;
	}
	tables_fill(table);
	for (uint32_t i = 0; i < 256; i++) {
		double at = -15 + i / 8.5;
		if (at < -4 || at > 0 || points == COUNT(point_x))
			continue;
		point_x[points] = at;
		point_y[points++] = table[TABLE_SIGMOID + i].f;
	}
	double one_x = -15 + 114.5 / 8.5, one_y = y[(uint32_t)((one_x + 16) / 32 * (COUNT_X - 1) + 0.5)];
	const Series series[] = {
		{ "routine sigmoid-table", PLOT_BLUE, MARK_LINE, x, y, COUNT_X },
		{ "points of the table (256 in all)", PLOT_BLACK, MARK_DISC, point_x, point_y, points },
		{ "an interpolated value", PLOT_ORANGE, MARK_SQUARE, &one_x, &one_y, 1 },
	};
	static const double x_tick[] = { -4, -3, -2, -1, 0 }, y_tick[] = { 0, 0.1, 0.2, 0.3, 0.4, 0.5 };
	const Plot plot = { .title = title,
		                .series = series,
		                .count = COUNT(series),
		                .x = { "Net input", -4, 0, false, x_tick, COUNT(x_tick) },
		                .y = { "Output", 0, 0.5, false, y_tick, COUNT(y_tick) } };
	plot_svg(&plot, b);
	buf_printf(c->text, "sigmoid by table: mean error %.2g, largest %.3g\n", sum, largest);
	jw_real(c->json, "mean_error", "%.3g", sum);
	jw_real(c->json, "largest_error", "%.3g", largest);
}

/* ---- figures 4, 5 and 12: sums ---- */

static void draw_ring(const CommandRun *c, const char *title, Buf *b) { steps_svg(c, title, SUM_RING, 5, b); }

static void draw_tree(const CommandRun *c, const char *title, Buf *b) { steps_svg(c, title, SUM_TREE, 8, b); }

static void draw_pipelined(const CommandRun *c, const char *title, Buf *b) { steps_svg(c, title, SUM_PIPELINED, 4, b); }

/* ---- figures 6 and 7: the grid of weights and cases ---- */

/* Projection of (source, target, case). */
static void project(double x, double y, double z, double out[2])
{
	out[0] = 90 + x * 26 + z * 30;
	out[1] = 390 - y * 24 - z * 20;
}

typedef struct GridBlock {
	double x, y, z, to_x, to_y, to_z;
} GridBlock;

static void draw_block(Buf *b, const GridBlock *r, const char *fill, double opacity)
{
	const double corner[3][4][3] = {
		{ { r->x, r->y, r->z }, { r->to_x, r->y, r->z }, { r->to_x, r->to_y, r->z }, { r->x, r->to_y, r->z } },
		{ { r->x, r->to_y, r->z },
		  { r->to_x, r->to_y, r->z },
		  { r->to_x, r->to_y, r->to_z },
		  { r->x, r->to_y, r->to_z } },
		{ { r->to_x, r->y, r->z },
		  { r->to_x, r->to_y, r->z },
		  { r->to_x, r->to_y, r->to_z },
		  { r->to_x, r->y, r->to_z } },
	};
	for (int f = 0; f < 3; f++) {
		double point[4][2];
		for (int i = 0; i < 4; i++)
			project(corner[f][i][0], corner[f][i][1], corner[f][i][2], point[i]);
		draw_shape(b, (const double(*)[2])point, 4, fill, opacity);
	}
}

/* Sources and targets of the bundle's links, counted from those of the first bundle; its level's only. */
static GridBlock bundle_range(const Bp *p, const BpBundle *n, uint32_t first, uint32_t cases)
{
	Unit low = UINT32_MAX, high = 0, bottom = UINT32_MAX, top = 0;
	for (uint32_t i = 0; i < n->links; i++) {
		low = n->link[i].source < low ? n->link[i].source : low;
		high = n->link[i].source > high ? n->link[i].source : high;
		bottom = n->link[i].target < bottom ? n->link[i].target : bottom;
		top = n->link[i].target > top ? n->link[i].target : top;
	}
	Unit base = p->bundle[0].link[0].target;
	return (GridBlock){ low, bottom - base, first, high + 1, top + 1 - base, first + cases };
}

/* One case at a time over all bundles of the level, or a bundle over all cases of a group. */
static void draw_grid(const CommandRun *c, const char *title, bool grouped, Buf *b)
{
	enum { CASES = 6, GROUP = 3, INPUTS = 15, HIDDEN = 8, BUNDLE = 32 };
	const Plan *plan = plan_layers(c->cx, INPUTS, HIDDEN, 2);
	BpOptions o = { .procs = 1, .sum = SUM_TREE, .dry = true, .bundle = BUNDLE, .group = grouped ? GROUP : 1 };
	const Bp *p = small_program(c, plan, o, CASES);
	uint32_t bundles = 0;
	while (bundles < p->bundles && p->bundle[bundles].level == p->bundle[0].level)
		bundles++;
	drawing_start(b, title, 720, 470);
	for (int chosen = 0; chosen < 2; chosen++)
		for (uint32_t z = CASES; z-- > 0;) /* from the back; what is in SRAM over all others */
			for (uint32_t i = bundles; i-- > 0;) {
				GridBlock r = bundle_range(p, &p->bundle[i], z, 1);
				if ((z < p->at.group && (!grouped || i == 1)) == chosen)
					draw_block(b, &r, chosen ? "#f3a261" : FILL_A, chosen ? 1 : 0.3);
			}
	draw_text(b, 90 + 13 * INPUTS, 420, "middle", 13,
	          draw_label(c->cx, "input unit (true unit and %d inputs)", INPUTS));
	draw_text(b, 20, 290, "start", 13, "output");
	draw_text(b, 20, 306, "start", 13, "unit");
	draw_text(b, 632, 330, "start", 13, draw_label(c->cx, "%d cases", CASES));
	draw_text(b, 24, 450, "start", 12,
	          grouped ? draw_label(c->cx, "in SRAM at once: one of %u bundles of %u weights, for a group of %u cases",
	                               bundles, p->bundle[1].links, p->at.group)
	                  : draw_label(c->cx, "in SRAM at once: all %u bundles, for %u case", bundles, p->at.group));
	drawing_end(b);
}

static void draw_one_case(const CommandRun *c, const char *title, Buf *b) { draw_grid(c, title, false, b); }

static void draw_group(const CommandRun *c, const char *title, Buf *b) { draw_grid(c, title, true, b); }

/* ---- all of them ---- */

static const struct {
	uint32_t number;
	const char *title;
	void (*draw)(const CommandRun *c, const char *title, Buf *b);
} drawings[] = {
	{ 1, "Figure 1: the architecture of the GF11", draw_machine },
	{ 2, "Figure 2: cases over copies of the network", draw_cases },
	{ 3, "Figure 3: the sigmoid by table lookup", draw_sigmoid },
	{ 4, "Figure 4: summing in a ring; whose changes each sum has", draw_ring },
	{ 5, "Figure 5: summing in a tree; whose changes each sum has", draw_tree },
	{ 6, "Figure 6: all weights for one case", draw_one_case },
	{ 7, "Figure 7: a subset of the weights for several cases", draw_group },
	{ 12, "Figure 12: pipelined summing in a ring", draw_pipelined },
};

void drawings_make(const CommandRun *c, Buf *svg)
{
	assert(COUNT(drawings) == DRAWINGS);
	for (size_t i = 0; i < COUNT(drawings); i++) {
		svg[i] = (Buf){ .arena = &c->cx->scratch };
		if (figure_wanted(c, drawings[i].number))
			drawings[i].draw(c, drawings[i].title, &svg[i]);
	}
}

void drawings_write(const CommandRun *c, const Buf *svg)
{
	for (size_t i = 0; i < COUNT(drawings); i++)
		if (svg[i].len)
			figure_write(c, draw_label(c->cx, "figure%u", drawings[i].number), "svg", &svg[i]);
}
