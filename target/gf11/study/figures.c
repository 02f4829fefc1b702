/* SPDX-License-Identifier: MIT */
/* microprop gf11 figures [N...]. In: a machine. Out: the report's figures 1 to 12 as SVG in a folder; 8 to 11 also as
 * CSV: model of section 6.1, measurements of 1989, simulation; likewise, without N, Table 1 with every summation method
 * in best mode. The drawings (1 to 7, 12) are in drawings.c. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "gf11_study.h"

enum { MAX_POINTS = 16 };
typedef struct Points {
	double x[MAX_POINTS], y[MAX_POINTS], computation[MAX_POINTS], communication[MAX_POINTS];
	uint32_t count;
} Points;

/* One summation method: the model as a line over all numbers of processors, measurements as points. */
typedef struct Curves {
	int sum;
	uint32_t most;
	double *procs, *mcps, *computation, *communication, *total; /* [most] of the model; milliseconds */
	Points paper, sim;                                          /* y: MCPS */
	double paper_total[MAX_POINTS], sim_total[MAX_POINTS];
} Curves;

/* ---- data ---- */

static double milliseconds(const CommandRun *c, double cycles) { return 1e-6 * c->m->clock * cycles; }

static uint64_t curves_simulated(const CommandRun *c, const Plan *plan, Curves *v)
{
	uint64_t cycles = 0;
	EpochSpec s = epoch_spec(c, plan, NETTALK_CASES);
	double *procs;
	uint32_t count = procs_read(c, &procs);
	s.o.sum = v->sum;
	for (uint32_t i = 0; i < count; i++) {
		s.o.procs = (uint32_t)procs[i];
		Epoch e = epoch_isolated(c->cx, &s);
		uint32_t n = v->sim.count++;
		v->sim.x[n] = procs[i];
		v->sim.y[n] = e.mcps;
		v->sim.communication[n] = milliseconds(c, (double)e.update);
		v->sim.computation[n] = milliseconds(c, (double)(e.total - e.update));
		v->sim_total[n] = milliseconds(c, (double)e.total);
		cycles += e.total;
	}
	return cycles;
}

/* ---- CSV ---- */

static TableCell at_procs(const Points *p, const double *v, double procs)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (p->x[i] == procs)
			return tc_real(v[i]);
	return tc_none();
}

static void csv_speed(const Curves *v, Buf *b)
{
	static const Column columns[] = {
		{ .key = "procs" }, { .key = "model_mcps" }, { .key = "measured_1989_mcps" }, { .key = "simulated_mcps" }
	};
	const Table t = { .column = columns, .columns = COUNT(columns), .csv = b };
	table_start(&t, NULL);
	for (uint32_t i = 0; i < v->most; i++)
		table_row(&t, (TableCell[]){ tc_count(i + 1), tc_real(v->mcps[i]), at_procs(&v->paper, v->paper.y, v->procs[i]),
		                             at_procs(&v->sim, v->sim.y, v->procs[i]) });
}

static void csv_split(const Curves *v, Buf *b)
{
	static const Column columns[] = {
		{ .key = "procs" },
		{ .key = "model_computation_ms" },
		{ .key = "model_communication_ms" },
		{ .key = "model_total_ms" },
		{ .key = "measured_1989_total_ms" },
		{ .key = "simulated_computation_ms" },
		{ .key = "simulated_communication_ms" },
		{ .key = "simulated_total_ms" },
	};
	const Table t = { .column = columns, .columns = COUNT(columns), .csv = b };
	table_start(&t, NULL);
	for (uint32_t i = 0; i < v->most; i++) {
		double procs = v->procs[i];
		table_row(&t, (TableCell[]){ tc_count(i + 1), tc_real(v->computation[i]), tc_real(v->communication[i]),
		                             tc_real(v->total[i]), at_procs(&v->paper, v->paper_total, procs),
		                             at_procs(&v->sim, v->sim.computation, procs),
		                             at_procs(&v->sim, v->sim.communication, procs),
		                             at_procs(&v->sim, v->sim_total, procs) });
	}
}

/* ---- SVG ---- */

static double largest(const double *v, uint32_t count)
{
	double most = 0;
	for (uint32_t i = 0; i < count; i++)
		most = v[i] > most ? v[i] : most;
	return most;
}

/* A linear axis from 0 to at least `most`, ticks at 1, 2 or 5 times a power of ten. */
static Axis axis_linear(Arena *a, const char *label, double most)
{
	static const double steps[] = { 1, 2, 5 };
	double step = 1;
	for (uint32_t i = 0; most / step > 8; i++)
		step = steps[i % 3] * (i < 3 ? 1 : i < 6 ? 10 : i < 9 ? 100 : 1000);
	uint32_t ticks = (uint32_t)ceil(most / step) + 1;
	double *tick = NEW(a, ticks, double);
	for (uint32_t i = 0; i < ticks; i++)
		tick[i] = i * step;
	return (Axis){ label, 0, tick[ticks - 1], false, tick, ticks };
}

static void svg_speed(Arena *a, const Curves *v, const char *title, Buf *b)
{
	const Series series[] = {
		{ "predicted: model of section 6.1", PLOT_BLUE, MARK_LINE, v->procs, v->mcps, v->most },
		{ "measured in 1989: Table 1", PLOT_BLACK, MARK_DISC, v->paper.x, v->paper.y, v->paper.count },
		{ "simulated, 1989 program", PLOT_ORANGE, MARK_SQUARE, v->sim.x, v->sim.y, v->sim.count },
	};
	double most =
		fmax(fmax(largest(v->mcps, v->most), largest(v->sim.y, v->sim.count)), largest(v->paper.y, v->paper.count));
	const Plot plot = {
		.title = title,
		.series = series,
		.count = COUNT(series),
		.corner = v->sum == SUM_RING ? CORNER_RIGHT : 0,
		.x = axis_linear(a, "Processors", v->most),
		.y = axis_linear(a, "Millions of connections per second", most * 1.06),
	};
	plot_svg(&plot, b);
}

static void svg_split(Arena *a, const Curves *v, const char *title, Buf *b)
{
	static const double x_tick[] = { 8, 16, 32, 64, 128, 256, 512 };
	static const double y_tick[] = { 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000 };
	const Series series[] = {
		{ "computation, predicted", PLOT_BLUE, MARK_LINE, v->procs, v->computation, v->most },
		{ "communication, predicted", PLOT_ORANGE, MARK_LINE, v->procs, v->communication, v->most },
		{ "total, predicted", PLOT_GREEN, MARK_DASHES, v->procs, v->total, v->most },
		{ "total, measured in 1989", PLOT_BLACK, MARK_DISC, v->paper.x, v->paper_total, v->paper.count },
		{ "computation, simulated", PLOT_BLUE, MARK_SQUARE, v->sim.x, v->sim.computation, v->sim.count },
		{ "communication, simulated", PLOT_ORANGE, MARK_TRIANGLE, v->sim.x, v->sim.communication, v->sim.count },
	};
	const Plot plot = {
		.title = title,
		.series = series,
		.count = COUNT(series),
		.corner = v->sum == SUM_TREE ? CORNER_RIGHT : CORNER_RIGHT | CORNER_BOTTOM,
		.x = { "Processors", 7, fmax(600, v->most + 20), true, x_tick, COUNT(x_tick) },
		.y = { "Milliseconds per epoch", v->sum == SUM_TREE ? 4 : 2, 12000, true, y_tick, COUNT(y_tick) },
	};
	(void)a;
	plot_svg(&plot, b);
}

/* ---- files ---- */

static const char *folder_of(const CommandRun *c) { return c->write ? c->write : "figures"; }

void folder_make(const CommandRun *c)
{
	if (mkdir(folder_of(c), 0777) && errno != EEXIST)
		fail(c->cx, MP_FAILED, "name another folder with --out", "%s: %s", folder_of(c), strerror(errno));
}

void figure_write(const CommandRun *c, const char *name, const char *ending, const Buf *text)
{
	Buf path = { .arena = &c->cx->scratch };
	buf_printf(&path, "%s/%s.%s", folder_of(c), name, ending);
	OutFile *f = file_create(c->cx, &c->cx->scratch, path.s);
	file_write(f, text->s, text->len);
	file_commit(c->cx, f);
	jw_text(c->json, NULL, path.s);
	buf_printf(c->text, "wrote %s\n", text_escaped(c->text->arena, path.s));
}

/* ---- Table 1 with every summation method ---- */

static void figure_best(const CommandRun *c, const Plan *plan, const BestTable *t)
{
	Buf csv = { .arena = &c->cx->scratch }, svg = { .arena = &c->cx->scratch };
	enum { HEAD = 2, EACH = 2 };
	Column column[HEAD + EACH * SUMS] = { { .key = "procs" }, { .key = "limit_mcps" } };
	const Table table = { .column = column, .columns = COUNT(column), .csv = &csv };
	for (int sum = 0; sum < SUMS; sum++) {
		column[HEAD + EACH * sum] = (Column){ "mcps", .object = sum_names[sum] };
		column[HEAD + EACH * sum + 1] = (Column){ "update_cycles", .object = sum_names[sum] };
	}
	table_start(&table, NULL);
	for (uint32_t i = 0; i < t->rows; i++) {
		TableCell cell[COUNT(column)] = { tc_count(best_procs[i]), tc_real(model_limit(plan, c->m, best_procs[i])) };
		for (int sum = 0; sum < SUMS; sum++) {
			const Epoch *e = &t->cell[i][sum];
			cell[HEAD + EACH * sum] = e->total ? tc_real(e->mcps) : tc_none();
			cell[HEAD + EACH * sum + 1] = e->total ? tc_count(e->update) : tc_none();
		}
		table_row(&table, cell);
	}
	static const double x_tick[] = { 8, 16, 32, 64, 128, 256, 512 };
	static const double y_tick[] = { 20, 50, 100, 200, 500, 1000, 2000 };
	static const char *const colour[SUMS] = { PLOT_BLACK, PLOT_BLUE, PLOT_ORANGE, PLOT_GREEN };
	double x[BEST_ROWS], limit[BEST_ROWS], y[SUMS][BEST_ROWS];
	Series series[SUMS + 2];
	Points paper = { 0 };
	for (uint32_t i = 0; i < t->rows; i++) {
		x[i] = best_procs[i];
		limit[i] = model_limit(plan, c->m, x[i]);
		for (int sum = 0; sum < SUMS; sum++)
			y[sum][i] = t->cell[i][sum].total ? t->cell[i][sum].mcps : NAN;
	}
	for (uint32_t i = 0; i < table1_cells; i++) {
		if (table1[i].sum != SUM_TREE)
			continue;
		paper.x[paper.count] = table1[i].procs;
		paper.y[paper.count++] = table1[i].mcps;
	}
	series[0] = (Series){ "arithmetic limit", PLOT_PURPLE, MARK_DASHES, x, limit, t->rows };
	for (int sum = 0; sum < SUMS; sum++)
		series[1 + sum] = (Series){ sum_names[sum], colour[sum], MARK_LINE, x, y[sum], t->rows };
	series[SUMS + 1] = (Series){ "measured in 1989, tree", PLOT_BLACK, MARK_DISC, paper.x, paper.y, paper.count };
	const Plot plot = {
		.title = "Table 1 extended: speed by summation method, best mode (NETtalk)",
		.series = series,
		.count = COUNT(series),
		.x = { "Processors", 7, 600, true, x_tick, COUNT(x_tick) },
		.y = { "Millions of connections per second", 20, 3000, true, y_tick, COUNT(y_tick) },
	};
	plot_svg(&plot, &svg);
	figure_write(c, "table1", "csv", &csv);
	figure_write(c, "table1", "svg", &svg);
}

/* ---- the command ---- */

static const struct {
	uint32_t number;
	const char *name, *title;
	int sum;
	void (*csv)(const Curves *v, Buf *b);
	void (*svg)(Arena *a, const Curves *v, const char *title, Buf *b);
} figures[] = {
	{ 8, "figure8", "Figure 8: speed, ring summation (NETtalk)", SUM_RING, csv_speed, svg_speed },
	{ 9, "figure9", "Figure 9: epoch time, ring summation (NETtalk)", SUM_RING, csv_split, svg_split },
	{ 10, "figure10", "Figure 10: speed, tree summation (NETtalk)", SUM_TREE, csv_speed, svg_speed },
	{ 11, "figure11", "Figure 11: epoch time, tree summation (NETtalk)", SUM_TREE, csv_split, svg_split },
};

enum { MOST_FIGURE = 12 };

bool figure_wanted(const CommandRun *c, uint32_t number)
{
	for (uint32_t i = 0; i < c->operands; i++)
		if (whole_number(c, "figure", c->operand[i], 1, MOST_FIGURE) == number)
			return true;
	return !c->operands;
}

static bool sum_wanted(const CommandRun *c, int sum)
{
	for (size_t i = 0; i < COUNT(figures); i++)
		if (figures[i].sum == sum && figure_wanted(c, figures[i].number))
			return true;
	return false;
}

void run_figures(CommandRun *c)
{
	Buf drawn[DRAWINGS];
	const Plan *plan = plan_open(c->cx, NULL);
	Arena *a = &c->cx->scratch;
	Curves curves[SUMS] = { 0 };
	static const int sums[] = { SUM_RING, SUM_TREE };
	uint64_t cycles = 0;
	BestTable *best = NEW(a, 1, BestTable);
	folder_make(c);
	drawings_make(c, drawn);
	for (size_t i = 0; i < COUNT(sums); i++) {
		Curves *v = &curves[sums[i]];
		if (!sum_wanted(c, sums[i]))
			continue;
		v->sum = sums[i];
		ModelInput in;
		model_input(&in, plan, c->m, NETTALK_CASES);
		in.sum = v->sum;
		in.host_call = 0; /* as in the report's prediction */
		v->most = (uint32_t)c->m->processors;
		double **const arrays[] = { &v->procs, &v->mcps, &v->computation, &v->communication, &v->total };
		for (size_t k = 0; k < COUNT(arrays); k++)
			*arrays[k] = NEW(a, v->most, double);
		for (uint32_t k = 0; k < v->most; k++) {
			in.P = k + 1;
			ModelOutput out = model_epoch(&in);
			v->procs[k] = in.P;
			v->mcps[k] = out.mcps;
			v->communication[k] = milliseconds(c, out.communication);
			v->computation[k] = milliseconds(c, out.total - out.communication);
			v->total[k] = milliseconds(c, out.total);
		}
		for (uint32_t j = 0; j < table1_cells; j++) {
			if (table1[j].sum != v->sum)
				continue;
			uint32_t n = v->paper.count++;
			v->paper.x[n] = table1[j].procs;
			v->paper.y[n] = table1[j].mcps;
			v->paper_total[n] = 1e-3 * (double)plan->W * NETTALK_CASES / table1[j].mcps;
		}
		cycles += curves_simulated(c, plan, v);
	}
	if (!c->operands)
		best_simulate(c, plan, best);
	jw_start(c->json, "files", '[');
	drawings_write(c, drawn);
	for (size_t i = 0; i < COUNT(figures); i++) {
		if (!figure_wanted(c, figures[i].number))
			continue;
		Buf csv = { .arena = a }, svg = { .arena = a };
		figures[i].csv(&curves[figures[i].sum], &csv);
		figures[i].svg(a, &curves[figures[i].sum], figures[i].title, &svg);
		figure_write(c, figures[i].name, "csv", &csv);
		figure_write(c, figures[i].name, "svg", &svg);
	}
	if (!c->operands)
		figure_best(c, plan, best);
	jw_end(c->json, ']');
	report_end(c, cycles + best->cycles, 0);
}
