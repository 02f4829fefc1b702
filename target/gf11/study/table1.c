/* SPDX-License-Identifier: MIT */
/* microprop gf11 table1 and calibrate. In: a machine. Out: the report's Table 1 beside simulated epochs of the same
 * network; best mode with every summation method; the host-call cost, which the report does not give, fitted to three
 * cells of the table.
 *
 * Every simulated figure counts the cycles of the compiled program, call by call; it does not use the model of section
 * 6.1, which is shown for comparison. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "gf11_study.h"

/* Table 1 as printed. The rows of 512 processors were timed with wrong results (section 6.3). */
const Table1Cell table1[] = {
	{ 8, SUM_TREE, 26, false },    { 16, SUM_TREE, 55, true },     { 32, SUM_TREE, 112, false },
	{ 64, SUM_TREE, 216, true },   { 128, SUM_TREE, 415, false },  { 256, SUM_TREE, 753, true },
	{ 356, SUM_TREE, 901, false }, { 512, SUM_TREE, 1231, false }, { 8, SUM_RING, 26, false },
	{ 16, SUM_RING, 53, false },   { 32, SUM_RING, 107, false },   { 64, SUM_RING, 170, false },
	{ 128, SUM_RING, 222, false }, { 256, SUM_RING, 180, false },  { 512, SUM_RING, 84, false },
};
const uint32_t table1_cells = COUNT(table1);

const uint32_t best_procs[BEST_ROWS] = { 8, 16, 32, 64, 128, 256, 356, 512, 566 };
enum { CELLS = TABLE1_CELLS };
static_assert(COUNT(table1) == CELLS, "cells of Table 1");

typedef struct Table1 {
	const Plan *plan;
	bool shown[CELLS]; /* --sum chooses */
	Epoch sim[CELLS];
	double model[CELLS], model_host[CELLS];
	BestTable best; /* no rows: not computed */
	Crossing crossing[MAX_CROSSINGS];
	uint32_t crossings;
	uint64_t cycles; /* simulated, total */
} Table1;

double table1_mcps(uint32_t procs, int sum)
{
	for (uint32_t i = 0; i < CELLS; i++)
		if (table1[i].procs == procs && table1[i].sum == sum)
			return table1[i].mcps;
	return 0;
}

/* ---- cells as simulated ---- */

void table1_simulate(const CommandRun *c, const Plan *plan, const Machine *m, const BpOptions *o, Epoch *sim)
{
	EpochSpec s = { .plan = plan, .opt = &plan->net->options, .m = m, .o = *o, .cases = NETTALK_CASES };
	s.o.compiler = COMPILER_1989;
	for (uint32_t i = 0; i < CELLS; i++) {
		s.o.procs = table1[i].procs;
		s.o.sum = table1[i].sum;
		sim[i] = epoch_isolated(c->cx, &s);
	}
}

double table1_rate(const Plan *plan, const Machine *m, const Epoch *e, double host_call)
{
	return mcps_of(plan, m, NETTALK_CASES, (double)(e->total - e->host) + host_call * (double)e->calls);
}

/* Sum of squared log ratios, simulated to printed, of the fitted cells. */
static double misfit(const Plan *plan, const Machine *m, const Epoch *sim, double host_call)
{
	double sum = 0;
	for (uint32_t i = 0; i < CELLS; i++) {
		if (table1[i].fitted) {
			double off = arith_log(table1_rate(plan, m, &sim[i], host_call) / table1[i].mcps);
			sum += off * off;
		}
	}
	return sum;
}

/* More cycles per call slow every cell down: the misfit is unimodal. */
int64_t table1_fit(const Plan *plan, const Machine *m, const Epoch *sim)
{
	int64_t low = 0, high = 1000000;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (misfit(plan, m, sim, (double)middle) <= misfit(plan, m, sim, (double)(middle + 1)))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

Table1Errors table1_errors(const Plan *plan, const Machine *m, const Epoch *sim, double host_call)
{
	Table1Errors e = { .host_call = host_call };
	double fitted = 0;
	for (uint32_t i = 0; i < CELLS; i++) {
		e.percent[i] = 100 * (table1_rate(plan, m, &sim[i], host_call) / table1[i].mcps - 1);
		e.all += fabs(e.percent[i]) / CELLS;
		fitted += table1[i].fitted;
		e.unfitted += table1[i].fitted ? 0 : fabs(e.percent[i]);
	}
	e.unfitted /= CELLS - fitted;
	return e;
}

static double error_percent(double mcps, const Table1Cell *cell) { return 100 * (mcps / cell->mcps - 1); }

/* Left out of one of the mean errors: the ring at 512 depends on a latency that the report does not give
 * (sensitivity.c). */
static bool counted(const Table1Cell *cell) { return !cell->fitted && !(cell->sum == SUM_RING && cell->procs == 512); }

static const char *remark(const Table1Cell *cell)
{
	return cell->fitted ? " fitted" : counted(cell) ? "" : " not counted";
}

static double mean_error(const Table1 *t, const double *mcps)
{
	double sum = 0, count = 0;
	for (uint32_t i = 0; i < CELLS; i++) {
		if (t->shown[i] && counted(&table1[i])) {
			sum += fabs(error_percent(mcps[i], &table1[i]));
			count++;
		}
	}
	return count > 0 ? sum / count : 0;
}

static void simulate_cells(const CommandRun *c, Table1 *t)
{
	EpochSpec s = epoch_spec(c, t->plan, NETTALK_CASES);
	int chosen = s.o.sum;
	ModelInput in;
	s.o.compiler = COMPILER_1989;
	model_input(&in, t->plan, c->m, NETTALK_CASES);
	for (uint32_t i = 0; i < CELLS; i++) {
		t->shown[i] = !c->sum || table1[i].sum == chosen;
		if (!t->shown[i])
			continue;
		s.o.procs = table1[i].procs;
		s.o.sum = table1[i].sum;
		t->sim[i] = epoch_isolated(c->cx, &s);
		t->cycles += t->sim[i].total;
		ModelInput with = in, bare;
		with.P = table1[i].procs;
		with.sum = table1[i].sum;
		bare = with;
		bare.host_call = 0;
		t->model[i] = model_epoch(&bare).mcps;
		t->model_host[i] = model_epoch(&with).mcps;
	}
}

/* All summation methods for one number of processors together: most of their code is identical. */
void best_simulate(CommandRun *c, const Plan *plan, BestTable *t)
{
	int chosen = compile_options(c).sum;
	for (; t->rows < BEST_ROWS && best_procs[t->rows] <= c->m->processors; t->rows++) {
		EpochSpec s[SUMS];
		uint32_t count = 0;
		for (int sum = 0; sum < SUMS; sum++) {
			if (c->sum && sum != chosen)
				continue;
			s[count++] = epoch_of(c, plan, NETTALK_CASES, COMPILER_BEST, best_procs[t->rows], sum);
		}
		epochs_isolated(c->cx, s, count);
		for (uint32_t i = 0; i < count; i++) {
			/* A cell that does not compile is left out of the table and reported at its end. */
			const EpochSpec *one = &s[i];
			t->cell[t->rows][one->o.sum] = one->e;
			t->cycles += one->e.total;
			if (one->why) {
				Buf b = { .arena = &c->cx->scratch };
				buf_printf(&b, "best mode, sum %s, %u processors: %s", sum_names[one->o.sum], one->o.procs, one->why);
				c->failure = b.s;
				c->remedy = "the other cells are right";
			}
		}
	}
}

static void check_size(const CommandRun *c)
{
	if (c->m->processors < 512)
		fail(c->cx, MP_BAD_INPUT, "use a machine of 512 processors or more, such as gf11",
		     "Table 1 goes up to 512 processors; %s has %lld", c->m->name, (long long)c->m->processors);
}

static double mean_of(const Table1 *t)
{
	double mcps[CELLS];
	for (uint32_t i = 0; i < CELLS; i++)
		mcps[i] = t->sim[i].mcps;
	return mean_error(t, mcps);
}

/* ---- best mode ---- */

static int fastest(const Epoch *cell)
{
	int best = -1;
	for (int sum = 0; sum < SUMS; sum++)
		if (cell[sum].total && (best < 0 || cell[sum].total < cell[best].total))
			best = sum;
	return best;
}

/* Text of best mode: a row for each number of processors, a column for each method; MCPS and percent of the limit, or
 * cycles of the update. */
static void best_text(const CommandRun *c, const Table1 *t, bool updates)
{
	Column column[2 + 2 * SUMS] = { { .title = "procs", .width = 5 } };
	Table table = text_table(c, column, 1);
	for (int sum = 0; sum < SUMS; sum++) {
		column[table.columns++] = (Column){ .title = sum_names[sum], .width = 10, .format = "%.1f" };
		if (!updates)
			column[table.columns++] = (Column){ .title = "%", .width = 5, .format = "%.1f" };
	}
	if (!updates)
		column[table.columns++] = (Column){ .title = "limit", .width = 7, .format = "%.0f" };
	buf_puts(c->text, updates ? "\n# best mode: cycles of the update; *: the fastest epoch\n"
	                          : "\n# best mode: MCPS and percent of the limit\n");
	table_start(&table, NULL);
	for (uint32_t i = 0; i < t->best.rows; i++) {
		double limit = model_limit(t->plan, c->m, best_procs[i]);
		TableCell cell[COUNT(column)] = { tc_count(best_procs[i]) };
		uint32_t n = 1;
		for (int sum = 0; sum < SUMS; sum++) {
			const Epoch *e = &t->best.cell[i][sum];
			if (updates) {
				char mark = e->total && sum == fastest(t->best.cell[i]) ? '*' : ' ';
				cell[n++] = tc_marked(e->total ? tc_count(e->update) : tc_none(), mark);
				continue;
			}
			cell[n++] = e->total ? tc_real(e->mcps) : tc_none();
			cell[n++] = e->total ? tc_real(100 * e->mcps / limit) : tc_none();
		}
		if (!updates)
			cell[n] = tc_real(limit);
		table_row(&table, cell);
	}
}

static void extended_json(const CommandRun *c, const Table1 *t)
{
	static const Column columns[] = {
		{ .key = "procs" },  { .key = "sum" },          { .key = "mcps" },
		{ .key = "update" }, { .key = "update_calls" }, { "update_cycles_per_weight", .exact = "%.4f" },
		{ .key = "best" },
	};
	Table table = json_table(c, columns, COUNT(columns));
	jw_start(c->json, "extended", '{');
	table_start(&table, "rows");
	for (uint32_t i = 0; i < t->best.rows * SUMS; i++) {
		const Epoch *cell = t->best.cell[i / SUMS], *e = &cell[i % SUMS];
		if (e->total)
			table_row(&table, (TableCell[]){ tc_count(best_procs[i / SUMS]), tc_text(sum_names[i % SUMS]),
			                                 tc_real(e->mcps), tc_count(e->update), tc_count(e->update_calls),
			                                 tc_real((double)e->update / (double)t->plan->W),
			                                 tc_flag((int)(i % SUMS) == fastest(cell)) });
	}
	table_end(&table);
	crossings_print(c, t->crossing, t->crossings, c->extended);
	jw_end(c->json, '}');
}

/* ---- table1 ---- */

static void rows_print(const CommandRun *c, const Table1 *t)
{
	static const Column columns[] = {
		{ "procs", "procs", .width = 5 },
		{ "sum", "sum", .width = 5 },
		{ "paper", "paper", 7, "%g", .exact = "%g" },
		{ "sim1989", "1989", 8, .format = "%.1f" },
		{ "error_pct", "error %", 8, "%.1f", .exact = "%.3f" },
		{ "model", "model", 8, .format = "%.1f" },
		{ .key = "model_with_host" },
		{ "limit", "limit", 7, .format = "%.0f" },
		{ "megaflops", "Mflops", 7, .format = "%.0f" },
		{ .key = "paper_megaflops" },
		{ .key = "cycles" },
		{ .key = "fitted" },
		{ .title = "" },
	};
	Table table = report_table(c, columns, COUNT(columns));
	table_start(&table, "rows");
	for (uint32_t i = 0; i < CELLS; i++) {
		const Table1Cell *cell = &table1[i];
		if (!t->shown[i])
			continue;
		if (i && t->shown[i - 1] && cell->sum != cell[-1].sum)
			buf_puts(c->text, "\n");
		table_row(&table, (TableCell[]){ tc_count(cell->procs), tc_text(sum_names[cell->sum]), tc_real(cell->mcps),
		                                 tc_real(t->sim[i].mcps), tc_real(error_percent(t->sim[i].mcps, cell)),
		                                 tc_real(t->model[i]), tc_real(t->model_host[i]),
		                                 tc_real(model_limit(t->plan, c->m, cell->procs)),
		                                 tc_real(t->sim[i].mcps * model_flops(t->plan)),
		                                 tc_real(cell->mcps * model_flops(t->plan)), tc_count(t->sim[i].total),
		                                 tc_flag(cell->fitted), tc_text(remark(cell)) });
	}
	table_end(&table);
}

static void mean_print(const CommandRun *c, double mean)
{
	buf_printf(c->text, "\n# mean absolute error of the cells not fitted, without the ring at 512: %.1f %%\n", mean);
	jw_real(c->json, "mean_abs_error_pct", "%.3f", mean);
}

/* All cells count here. The text alone: bundles of 1000 weights (section 4.2), the host's call fitted as before, since
 * the text does not give it; and not fitted at all. */
static void errors_print(const CommandRun *c, const Table1 *t)
{
	enum { BUNDLE_TEXT = 1000 };
	Epoch sim[CELLS];
	BpOptions o = compile_options(c);
	Table1Errors here = table1_errors(t->plan, c->m, t->sim, (double)c->m->host_call);
	o.bundle = BUNDLE_TEXT;
	table1_simulate(c, t->plan, c->m, &o, sim);
	double fit = (double)table1_fit(t->plan, c->m, sim);
	Table1Errors text = table1_errors(t->plan, c->m, sim, fit), none = table1_errors(t->plan, c->m, sim, 0);
	buf_printf(c->text,
	           "# mean absolute error of all 15 cells: %.1f %%; of the 12 not fitted: %.1f %%\n"
	           "# from the text alone, bundles of %d weights: %.1f %% of the 12 (host-call %.0f, fitted to the same 3 "
	           "cells);\n# %.1f %% of the 15 if host calls cost nothing\n"
	           "# defaults chosen with the table in sight: host-call (fitted to 3 cells of the tree), bundles of 720 "
	           "weights,\n# 64 weights in an update call of the tree, its DRAM moves apart: microprop gf11 calibrate "
	           "--sensitivity\n",
	           here.all, here.unfitted, BUNDLE_TEXT, text.unfitted, fit, none.all);
	jw_real(c->json, "mean_abs_error_all_pct", "%.3f", here.all);
	jw_real(c->json, "mean_abs_error_unfitted_pct", "%.3f", here.unfitted);
	jw_real(c->json, "mean_abs_error_text_pct", "%.3f", text.unfitted);
	jw_real(c->json, "text_host_call", "%.0f", fit);
	jw_real(c->json, "mean_abs_error_no_fit_pct", "%.3f", none.all);
}

void run_table1(CommandRun *c)
{
	Table1 *t = NEW(&c->cx->keep, 1, Table1);
	bool best = !c->compiler || choice_read(c->cx, "--compiler", c->compiler, compiler_names, 2) == COMPILER_BEST;
	check_size(c);
	t->plan = plan_open(c->cx, NULL);
	simulate_cells(c, t);
	if (best)
		best_simulate(c, t->plan, &t->best);
	if (best && (c->extended || c->as_json))
		t->crossings = crossings_find(c, t->plan, COMPILER_BEST, t->crossing);
	buf_puts(c->text,
	         "# Millions of connections per second: 203-60-26 (NETtalk), 12,022 cases, one update per epoch\n\n");
	rows_print(c, t);
	if (t->best.rows)
		best_text(c, t, false);
	if (t->best.rows)
		buf_puts(c->text, put_note);
	if (c->extended)
		best_text(c, t, true);
	/* JSON of best mode: a row for each number of processors and method. */
	static const Column columns[] = {
		{ .key = "procs" },  { .key = "sum" }, { .key = "mcps" }, { "percent_of_limit", .exact = "%.2f" },
		{ .key = "cycles" },
	};
	Table table = json_table(c, columns, COUNT(columns));
	table_start(&table, "best");
	for (uint32_t i = 0; i < t->best.rows * SUMS; i++) {
		uint32_t procs = best_procs[i / SUMS];
		const Epoch *e = &t->best.cell[i / SUMS][i % SUMS];
		if (e->total)
			table_row(&table,
			          (TableCell[]){ tc_count(procs), tc_text(sum_names[i % SUMS]), tc_real(e->mcps),
			                         tc_real(100 * e->mcps / model_limit(t->plan, c->m, procs)), tc_count(e->total) });
	}
	table_end(&table);
	extended_json(c, t);
	mean_print(c, mean_of(t));
	if (!c->sum)
		errors_print(c, t);
	buf_puts(c->text, "# 1989: every cycle of the program that the authors describe; model: section 6.1, corrected\n"
	                  "# limit: every processor adds or multiplies in every cycle\n");
	report_end(c, t->cycles + t->best.cycles, 0);
}

/* ---- calibrate ---- */

static const Machine *machine_with(const CommandRun *c, int64_t host_call)
{
	Machine *m = NEW(&c->cx->keep, 1, Machine);
	Provenance *from = NEW(&c->cx->keep, machine_row_count, Provenance);
	*m = *c->m;
	m->host_call = host_call;
	for (size_t i = 0; i < machine_row_count; i++) {
		from[i] = m->from[i];
		if (machine_rows[i].offset == offsetof(Machine, host_call))
			from[i] = (Provenance){ FROM_ASSUMED, "assumed (calibrated)" };
	}
	m->from = from;
	return m;
}

void run_calibrate(CommandRun *c)
{
	Table1 *t = NEW(&c->cx->keep, 1, Table1);
	double mcps[CELLS];
	check_size(c);
	if (c->sensitivity) {
		run_sensitivity(c);
		return;
	}
	if (c->operands)
		fail(c->cx, MP_BAD_INPUT, "write calibrate --sensitivity NAME", "calibrate takes '%s' with --sensitivity only",
		     c->operand[0]);
	t->plan = plan_open(c->cx, NULL);
	if (c->sum && choice_read(c->cx, "--sum", c->sum, sum_names, SUMS) != SUM_TREE)
		fail(c->cx, MP_BAD_INPUT, "write --sum tree, or leave it out", "the constant is fitted to cells of the tree");
	simulate_cells(c, t);
	int64_t host_call = table1_fit(t->plan, c->m, t->sim);
	for (uint32_t i = 0; i < CELLS; i++)
		mcps[i] = t->shown[i] ? table1_rate(t->plan, c->m, &t->sim[i], (double)host_call) : 0;
	static const Column columns[] = {
		{ "procs", "procs", .width = 5 },
		{ "sum", "sum", .width = 5 },
		{ "paper", "paper", 7, "%g", .exact = "%g" },
		{ "sim1989", "1989", 8, .format = "%.1f" },
		{ "error_pct", "error %", 8, "%.1f", .exact = "%.3f" },
		{ "calls", "calls", .width = 9 },
		{ .key = "fitted" },
		{ .title = "" },
	};
	Table table = report_table(c, columns, COUNT(columns));
	buf_printf(c->text, "host-call %" PRId64 " cycles fits Table 1 best (%s has %" PRId64 ")\n\n", host_call,
	           c->m->name, c->m->host_call);
	jw_count(c->json, "host_call", (uint64_t)host_call);
	jw_count(c->json, "was", (uint64_t)c->m->host_call);
	table_start(&table, "rows");
	for (uint32_t i = 0; i < CELLS; i++)
		if (t->shown[i])
			table_row(&table, (TableCell[]){ tc_count(table1[i].procs), tc_text(sum_names[table1[i].sum]),
			                                 tc_real(table1[i].mcps), tc_real(mcps[i]),
			                                 tc_real(error_percent(mcps[i], &table1[i])), tc_count(t->sim[i].calls),
			                                 tc_flag(table1[i].fitted), tc_text(remark(&table1[i])) });
	table_end(&table);
	mean_print(c, mean_error(t, mcps));
	if (c->write) {
		const Machine *m = machine_with(c, host_call);
		Buf text = { .arena = &c->cx->scratch };
		OutFile *f = file_create(c->cx, &c->cx->scratch, c->write);
		machine_print(m, &text);
		file_write(f, text.s, text.len);
		file_commit(c->cx, f);
		buf_printf(c->text, "wrote %s\n", text_escaped(c->text->arena, c->write));
	}
	report_end(c, t->cycles, 0);
}
