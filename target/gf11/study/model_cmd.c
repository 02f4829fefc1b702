/* SPDX-License-Identifier: MIT */
/* microprop gf11 model and efficiency. In: a network, a machine, numbers of processors. Out: the performance model of
 * section 6.1 beside simulated epochs and the report's measurements; the share of useful cycles in compiled routines
 * (section 6.2.2). */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gf11_study.h"

/* ---- model ---- */

typedef struct ModelRow {
	uint32_t procs;
	ModelOutput out;
	double bare;         /* MCPS by the equations of section 6.1, which leave out host calls */
	double limit, paper; /* paper 0: not measured in 1989 */
	Epoch sim;           /* total 0: not simulated */
} ModelRow;

enum { MODEL_COLUMNS = 21, SIMULATED_TOTAL = 18, SIMULATED_MCPS, MEASURED };
static const Column model_columns[MODEL_COLUMNS] = {
	{ "procs", "procs", .width = 5 },
	{ "forward", "forward", 11, "%.0f", .exact = "%.10g" },
	{ "backward", "backward", 11, "%.0f", .exact = "%.10g" },
	{ "units", "units", 9, "%.0f", .exact = "%.10g" },
	{ "memory", "memory", 11, "%.0f", .exact = "%.10g" },
	{ "communication", "update", 11, "%.0f", .exact = "%.10g" },
	{ "host", "host", 11, "%.0f", .exact = "%.10g" },
	{ "total", "total", 12, "%.0f", .exact = "%.10g" },
	{ "mcps", "MCPS", 9, .format = "%.4g" },
	{ "mcps_equations", "section 6.1", 11, .format = "%.4g" },
	{ "limit", "limit", 7, .format = "%.0f" },
	{ "megaflops", "Mflops", 7, .format = "%.0f" },
	{ "forward", .object = "simulated" },
	{ "backward", .object = "simulated" },
	{ "units", .object = "simulated" },
	{ "memory", .object = "simulated" },
	{ "update", .object = "simulated" },
	{ "host", .object = "simulated" },
	{ "total", "simulated", 12, .object = "simulated" },
	{ "mcps", "MCPS", 9, "%.4g", .object = "simulated" },
	{ "measured_1989", "1989", 6, "%g", .exact = "%g" },
};

static void model_optima(const CommandRun *c, const ModelInput *in, Buf *text)
{
	ModelInput bare = *in;
	bare.host_call = 0;
	uint32_t most = in->C < 1e6 ? (uint32_t)in->C : 1000000, here = (uint32_t)c->m->processors;
	const struct {
		const char *key, *text;
		const ModelInput *in;
	} rows[] = {
		{ "optimum", "section 6.1", &bare },
		{ "optimum_with_host", "with the host's calls", in },
	};
	for (size_t i = 0; i < (in->printed ? 1 : COUNT(rows)); i++) {
		double closed = model_optimum(rows[i].in);
		uint32_t search = model_search(rows[i].in, most), machine = model_search(rows[i].in, here);
		jw_start(c->json, rows[i].key, '{');
		jw_real(c->json, "closed", NULL, closed);
		jw_count(c->json, "search", search);
		jw_count(c->json, "machine", machine);
		jw_end(c->json, '}');
		buf_printf(text, "# best number of processors, %s: %.4g in closed form, %u by search, %u on %s\n", rows[i].text,
		           closed, search, machine, c->m->name);
	}
}

/* Few processors cannot hold all cases: there is no program then. */
static bool cases_fit(const CommandRun *c, const Plan *plan, uint64_t cases, uint32_t procs)
{
	uint64_t words = plan->net->inputs + plan->net->outputs + 1 + (uint64_t)c->m->dram_banks;
	return (cases + procs - 1) / procs * words + 3 * plan->W + plan->W / 16 <= (uint64_t)c->m->dram;
}

static ModelRow model_row(const CommandRun *c, const Plan *plan, uint64_t cases, ModelInput in, uint32_t procs)
{
	EpochSpec s = epoch_spec(c, plan, cases), simulated;
	ModelRow r = { .procs = procs, .limit = model_limit(plan, c->m, procs) };
	in.P = s.o.procs = procs;
	if (in.printed || in.whole)
		r.out = model_epoch(&in);
	else if (cases_fit(c, plan, cases, procs))
		r.out = model_program(c->cx, &s);
	in.host_call = 0;
	r.bare = model_epoch(&in).mcps;
	if (plan_is_nettalk(plan, cases))
		r.paper = table1_mcps(procs, in.sum);
	if (c->simulate && cases_fit(c, plan, cases, procs)) {
		simulated = epoch_spec(c, plan, cases);
		simulated.o.procs = procs;
		r.sim = epoch_isolated(c->cx, &simulated);
	}
	return r;
}

void run_model(CommandRun *c)
{
	const Plan *plan = plan_open(c->cx, c->operand[0]);
	uint64_t cases = c->cases ? c->cases : NETTALK_CASES, simulated = 0;
	double *procs;
	uint32_t count = procs_read(c, &procs);
	ModelInput in;
	model_input(&in, plan, c->m, cases);
	in.sum = compile_options(c).sum;
	in.printed = c->printed;
	in.whole = c->whole;
	if (c->bundle)
		in.B = (double)c->bundle;
	if (in.M <= 2 * in.B)
		fail(c->cx, MP_BAD_INPUT, "write a smaller --bundle", "two caches of %.0f words do not fit %.0f words of SRAM",
		     in.B, in.M);
	Buf optima = { .arena = &c->cx->scratch };
	Column column[MODEL_COLUMNS];
	Table t = report_table(c, column, MODEL_COLUMNS);
	memcpy(column, model_columns, sizeof column);
	if (!c->simulate)
		column[SIMULATED_TOTAL].title = column[SIMULATED_MCPS].title = NULL;
	if (!plan_is_nettalk(plan, cases))
		column[MEASURED].title = NULL;
	buf_printf(c->text, "# %s: W %.0f, Wi %.0f, U %.0f; C %.0f cases; B %.0f, M %.0f; sum %s%s%s; cycles of an epoch\n",
	           text_escaped(c->text->arena, plan->net->name), in.W, in.Wi, in.U, in.C, in.B, in.M, sum_names[in.sum],
	           in.whole ? "; whole cases" : "", in.printed ? "; as printed, errata and all" : "");
	jw_text(c->json, "network", plan->net->name);
	jw_count(c->json, "W", plan->W);
	jw_count(c->json, "Wi", plan->Wi);
	jw_count(c->json, "U", plan->U);
	jw_count(c->json, "cases", cases);
	jw_text(c->json, "sum", sum_names[in.sum]);
	jw_real(c->json, "flops_per_connection", "%.6g", model_flops(plan));
	model_optima(c, &in, &optima);
	table_start(&t, "rows");
	for (uint32_t i = 0; i < count; i++) {
		ModelRow r = model_row(c, plan, cases, in, (uint32_t)procs[i]);
		simulated += r.sim.total;
		const ModelOutput *o = &r.out;
		const Epoch *e = &r.sim;
		TableCell cell[MODEL_COLUMNS] = { tc_count(r.procs) };
		const double model[] = { o->forward, o->backward, o->units, o->memory, o->communication,           o->host,
			                     o->total,   o->mcps,     r.bare,   r.limit,   o->mcps * model_flops(plan) };
		for (size_t k = 0; k < COUNT(model); k++)
			if (o->total > 0 || k == COUNT(model) - 2 || k == COUNT(model) - 3)
				cell[1 + k] = tc_real(model[k]);
		const uint64_t cycles[] = { e->forward, e->backward, e->units, e->moves, e->update, e->host, e->total };
		for (size_t k = 0; k < COUNT(cycles) && e->total; k++)
			cell[SIMULATED_MCPS - COUNT(cycles) + k] = tc_count(cycles[k]);
		if (e->total)
			cell[SIMULATED_MCPS] = tc_real(e->mcps);
		if (r.paper > 0)
			cell[MEASURED] = tc_real(r.paper);
		table_row(&t, cell);
	}
	table_end(&t);
	buf_puts(c->text, optima.s);
	report_end(c, simulated, 0);
}

/* ---- efficiency by network ---- */

/* Sums over all calls. */
typedef struct PassCycles {
	uint64_t arithmetic, cycles, bound;
} PassCycles;
enum { PART_FORWARD, PART_BACKWARD, PART_UNITS, PARTS };

/* Names the compiler gives its routines. */
static const struct {
	const char *name;
	int part;
} part_names[] = {
	{ "forward", PART_FORWARD },    { "backward", PART_BACKWARD }, { "activate", PART_UNITS },
	{ "output error", PART_UNITS }, { "unit error", PART_UNITS },
};

static void parts_of(const Controller *k, PassCycles *part)
{
	for (uint32_t i = 0; i < k->routines; i++) {
		const Routine *r = k->routine[i];
		for (size_t j = 0; j < COUNT(part_names); j++) {
			if (strcmp(part_names[j].name, r->name) != 0)
				continue;
			PassCycles *p = &part[part_names[j].part];
			p->arithmetic += k->called[i] * r->report.arithmetic;
			p->cycles += k->called[i] * k->cycles[i];
			p->bound += k->called[i] * r->report.bound;
		}
	}
}

static double share(uint64_t a, uint64_t b) { return b ? (double)a / (double)b : NAN; }

static const Column efficiency_columns[] = {
	{ "network", "network", .width = -16 },
	{ "seed_metric", "report's %", 10, "%.1f", "%.4f", "forward", true },
	{ "percent_of_bound", "bound %", 7, "%.1f", "%.2f", .object = "forward" },
	{ "seed_metric", "report's %", 10, "%.1f", "%.4f", "backward", true },
	{ "percent_of_bound", "bound %", 7, "%.1f", "%.2f", .object = "backward" },
	{ "seed_metric", "report's %", 10, "%.1f", "%.4f", "units", true },
	{ "percent_of_bound", "bound %", 7, "%.1f", "%.2f", .object = "units" },
	{ "ring", "ring", 8, "%.1f", "%.4f", "update", true },
	{ "tree", "tree", 8, "%.1f", "%.4f", "update", true },
};

static uint64_t efficiency_row(const CommandRun *c, const Table *t, const Plan *plan, uint32_t procs)
{
	enum { CASES_EACH = 24 }; /* as NETtalk has on 512 processors */
	static const int sums[] = { SUM_RING, SUM_TREE };
	PassCycles part[PARTS] = { 0 };
	double update[COUNT(sums)];
	uint64_t cycles = 0;
	for (size_t i = 0; i < COUNT(sums); i++) {
		EpochSpec s = epoch_spec(c, plan, (uint64_t)CASES_EACH * procs);
		Bp *b;
		s.o.procs = procs;
		s.o.sum = sums[i];
		Epoch e = epoch_simulate(c->cx, &s, &b);
		cycles += e.total;
		update[i] = share((uint64_t)c->m->switch_interval * sum_steps(sums[i], procs) * plan->W, e.update);
		if (i == 0) {
			parts_of(b->c, part);
			assert(part[PART_FORWARD].cycles == e.forward && part[PART_BACKWARD].cycles == e.backward);
		}
	}
	TableCell cell[COUNT(efficiency_columns)] = { tc_text(plan->net->name) };
	for (int k = 0; k < PARTS; k++) {
		cell[1 + 2 * k] = tc_real(share(part[k].arithmetic, part[k].cycles));
		cell[2 + 2 * k] = tc_real(100 * share(part[k].bound, part[k].cycles));
	}
	cell[1 + 2 * PARTS] = tc_real(update[0]);
	cell[2 + 2 * PARTS] = tc_real(update[1]);
	table_row(t, cell);
	return cycles;
}

void run_networks(CommandRun *c)
{
	static const uint32_t shapes[][3] = {
		{ 203, 60, 26 }, { 203, 120, 26 }, { 256, 64, 16 }, { 64, 32, 16 }, { 24, 24, 24 }, { 12, 12, 12 }, { 8, 3, 8 },
	};
	const MachineRow row = { .low = 2, .high = (double)c->m->processors };
	double *given, procs = 128 < row.high ? 128 : row.high;
	uint64_t cycles = 0;
	if (c->procs && range_read(c->cx, "--procs", c->procs, &row, &given))
		procs = given[0];
	c->cache = schedule_cache_new(c->cx);
	Table t = report_table(c, efficiency_columns, COUNT(efficiency_columns));
	jw_real(c->json, "procs", "%.0f", procs);
	jw_text(c->json, "compiler", compiler_names[compile_options(c).compiler]);
	buf_printf(c->text, "%-16s %18s %18s %18s %17s\n", "", "forward", "backward", "units", "update");
	table_start(&t, "networks");
	if (c->operands)
		cycles = efficiency_row(c, &t, plan_open(c->cx, c->operand[0]), (uint32_t)procs);
	for (size_t i = 0; i < COUNT(shapes) && !c->operands; i++)
		cycles += efficiency_row(c, &t, plan_layers(c->cx, shapes[i][0], shapes[i][1], shapes[i][2]), (uint32_t)procs);
	table_end(&t);
	buf_printf(c->text,
	           "\n# report's %%: cycles that issue an add or a multiply; bound %%: of what no schedule can exceed\n"
	           "# update: cycles the switch needs, of all cycles of the update on %.0f processors (section 6.2.2)\n",
	           procs);
	report_end(c, cycles, 0);
}
