/* SPDX-License-Identifier: MIT */
/* microprop gf11 pooling. In: a network, a number of processors. Out: the speed by cases per update, by the equations
 * of section 6.1, by the model of the program and simulated; beside it the report's statements about that curve: four
 * times as many patterns as processors to be efficient (section 7.1), 180 MCPS with an update for every pattern of a
 * processor, 1,900 without communication (section 7.2). */
#include <math.h>

#include "gf11_study.h"

/* Cases of each processor per update; 352 on 512 processors are 180,224 in all. */
static const uint32_t each[] = { 1, 2, 4, 8, 16, 24, 64, 352 };
enum { EACH = COUNT(each), PER_CASE = 0, FOUR = 2 };

typedef struct PoolingRow {
	uint64_t cases;
	double equations, bare; /* MCPS by section 6.1; bare: without communication */
	ModelOutput model;
	Epoch sim;
} PoolingRow;

/* MCPS of an epoch as if its update took no time. */
static double without_update(const CommandRun *c, const Plan *plan, const PoolingRow *r)
{
	return mcps_of(plan, c->m, r->cases, (double)(r->sim.total - r->sim.update));
}

static double model_without_update(const CommandRun *c, const Plan *plan, const PoolingRow *r)
{
	return mcps_of(plan, c->m, r->cases, r->model.total - r->model.communication);
}

static PoolingRow row_make(const CommandRun *c, const Plan *plan, uint32_t procs, uint32_t cases)
{
	PoolingRow r = { .cases = (uint64_t)cases * procs };
	EpochSpec s = epoch_spec(c, plan, r.cases), model = s;
	ModelInput in;
	model_input(&in, plan, c->m, r.cases);
	in.sum = s.o.sum;
	in.P = s.o.procs = model.o.procs = procs;
	in.host_call = 0;
	ModelOutput out = model_epoch(&in);
	r.equations = out.mcps;
	r.bare = mcps_of(plan, c->m, r.cases, out.total - out.communication);
	r.model = model_program(c->cx, &model);
	r.sim = epoch_isolated(c->cx, &s);
	return r;
}

/* ---- the report's estimates ---- */

static const Column estimate_columns[] = {
	{ "estimate", "estimate", .width = -34 },
	{ "report", "report", 7, "%.0f", .exact = "%g" },
	{ "arithmetic", "its terms", 9, .format = "%.0f" },
	{ "equations", "section 6.1", 11, .format = "%.0f" },
	{ "model", "model", 7, .format = "%.0f" },
	{ "simulated", "simulated", 9, .format = "%.0f" },
	{ "why", .title = "why they differ" },
};

static double tree_levels(uint32_t procs) { return ceil(arith_log(procs) / arith_log(2) - 1e-9); }

static void estimates_print(const CommandRun *c, const Plan *plan, uint32_t procs, const PoolingRow *row)
{
	enum { TREE = 4, REST = 20, EFFICIENCY = 60 }; /* cycles of a transfer; other cycles of a weight; percent, 6.2.2 */
	const PoolingRow *one = &row[PER_CASE], *most = &row[EACH - 1];
	double transfers = TREE * tree_levels(procs), rate = 1e3 / c->m->clock * procs;
	bool nettalk = plan->W == 13826 && procs == 512;
	Table t = report_table(c, estimate_columns, COUNT(estimate_columns));
	buf_puts(c->text, "\n");
	table_start(&t, "estimates");
	table_row(&t, (TableCell[]){ tc_text("an update for each case, tree 100 %"), nettalk ? tc_real(180) : tc_none(),
	                             tc_real(rate / (transfers + REST)), tc_real(one->equations), tc_real(one->model.mcps),
	                             tc_real(one->sim.mcps),
	                             tc_text("the report counts no loss in the tree, no DRAM moves of the update") });
	table_row(&t, (TableCell[]){ tc_text("the same, tree at 60 %"), tc_none(),
	                             tc_real(rate / (100.0 / EFFICIENCY * transfers + REST)), tc_none(), tc_none(),
	                             tc_real(one->sim.mcps), tc_text("60 % is the report's own figure, section 6.2.2") });
	table_row(&t, (TableCell[]){ tc_text("no communication"), nettalk ? tc_real(1900) : tc_none(), tc_none(),
	                             tc_real(most->bare), tc_real(model_without_update(c, plan, most)),
	                             tc_real(without_update(c, plan, most)),
	                             tc_text("equations: no pipeline fill, no units, no host calls") });
	table_end(&t);
}

/* ---- the curve ---- */

static const Column columns[] = {
	{ "cases_each", "each", .width = 5 },
	{ "cases", "cases", .width = 8 },
	{ "mcps_equations", "section 6.1", 11, .format = "%.1f" },
	{ "model", "model", 8, .format = "%.1f" },
	{ "simulated", "simulated", 9, .format = "%.1f" },
	{ "megaflops", "Mflops", 7, .format = "%.0f" },
	{ "efficiency", "% of no communication", 21, .format = "%.1f", .exact = "%.4f", .percent = true },
	{ "update_share", "% in update", 11, .format = "%.1f", .exact = "%.4f", .percent = true },
};

static void figure(const CommandRun *c, const Plan *plan, uint32_t procs, const PoolingRow *row)
{
	static const double y_tick[] = { 10, 20, 30, 40, 50, 60, 70, 80, 90, 100 };
	double x[EACH], model[EACH], sim[EACH];
	const PoolingRow *most = &row[EACH - 1];
	for (uint32_t i = 0; i < EACH; i++) {
		x[i] = each[i];
		model[i] = 100 * row[i].equations / most->bare;
		sim[i] = 100 * row[i].sim.mcps / without_update(c, plan, most);
	}
	const Series series[] = {
		{ "equations of section 6.1", PLOT_BLUE, MARK_LINE, x, model, EACH },
		{ "simulated", PLOT_ORANGE, MARK_SQUARE, x, sim, EACH },
	};
	Buf title = { .arena = &c->cx->scratch }, svg = title;
	buf_printf(&title, "Speed by cases per update, %u processors, %s", procs, plan->net->name);
	static const double x_tick[] = { 1, 2, 4, 8, 16, 24, 64, 352 };
	const Plot plot = { .title = title.s,
		                .series = series,
		                .count = COUNT(series),
		                .x = { "Cases of a processor per update (the report: 4 to be efficient)", 0.9, 400, true,
		                       x_tick, COUNT(x_tick) },
		                .y = { "Percent of the speed without communication", 0, 105, false, y_tick, COUNT(y_tick) } };
	plot_svg(&plot, &svg);
	folder_make(c);
	figure_write(c, "pooling", "svg", &svg);
}

void run_pooling(CommandRun *c)
{
	const Plan *plan = plan_open(c->cx, c->operands ? c->operand[0] : NULL);
	uint32_t procs = c->procs ? procs_one(c) : c->m->processors < 512 ? (uint32_t)c->m->processors : 512;
	PoolingRow row[EACH];
	uint64_t cycles = 0;
	c->used = procs;
	for (uint32_t i = 0; i < EACH; i++) {
		row[i] = row_make(c, plan, procs, each[i]);
		cycles += row[i].sim.total;
	}
	Table t = report_table(c, columns, COUNT(columns));
	buf_printf(c->text, "# %s, %u processors, sum %s: MCPS by cases of a processor per update\n\n", plan->net->name,
	           procs, sum_names[compile_options(c).sum]);
	jw_text(c->json, "network", plan->net->name);
	jw_count(c->json, "procs", procs);
	table_start(&t, "rows");
	for (uint32_t i = 0; i < EACH; i++) {
		const PoolingRow *r = &row[i];
		table_row(&t,
		          (TableCell[]){ tc_count(each[i]), tc_count(r->cases), tc_real(r->equations), tc_real(r->model.mcps),
		                         tc_real(r->sim.mcps), tc_real(r->sim.mcps * model_flops(plan)),
		                         tc_real(r->sim.mcps / without_update(c, plan, &row[EACH - 1])),
		                         tc_real((double)r->sim.update / (double)r->sim.total) });
	}
	table_end(&t);
	jw_real(c->json, "efficiency_at_4", "%.4f", row[FOUR].sim.mcps / without_update(c, plan, &row[EACH - 1]));
	estimates_print(c, plan, procs, row);
	if (c->write) {
		jw_start(c->json, "files", '[');
		figure(c, plan, procs, row);
		jw_end(c->json, ']');
	}
	report_end(c, cycles, 0);
}
