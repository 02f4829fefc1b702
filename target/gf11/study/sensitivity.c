/* SPDX-License-Identifier: MIT */
/* microprop gf11 calibrate --sensitivity [NAME...]. In: a machine. Out: the error of every cell of Table 1 for each
 * assumed parameter and each choice of the compiler that the report leaves open, over its plausible range; which values
 * the table rules out; a figure with --out.
 *
 * One thing changes at a time. The host's call is fitted anew for each value, to the same cells, except where it is the
 * thing that changes. A value is ruled out if the mean error over all cells is RULED_OUT points above that of the
 * standard machine: the print is rounded to 1 MCPS, 4 % of its smallest cells. */
#include <math.h>
#include <string.h>

#include "gf11_study.h"

enum { RULED_OUT = 2, MOST_VALUES = 8, RING_512 = 14, MOST_ROWS = 96 };

/* What changes: parameters of the machine, or a field of BpOptions. */
typedef struct Assumption {
	const char *name, *about;
	const char *row[2]; /* machine parameters; NULL: none */
	size_t option;      /* offset in BpOptions, if there is no row */
	double value[MOST_VALUES];
	double second[MOST_VALUES]; /* of row[1] */
	bool whole;                 /* ring in one call */
} Assumption;

static const Assumption assumptions[] = {
	{ "switch-latency", "assumed", .row = { "switch-latency" }, .value = { 4, 10, 20, 30, 36, 39, 60 } },
	{ "switch-latency, 1 call", "assumed", .row = { "switch-latency" }, .value = { 4, 20, 30, 36, 39 }, .whole = true },
	{ "sram-latency", "assumed", .row = { "sram-latency" }, .value = { 1, 2, 4, 8, 16 } },
	{ "lookup-latency", "assumed", .row = { "lookup-latency" }, .value = { 2, 6, 12, 25 } },
	{ "store-latency", "assumed", .row = { "store-latency" }, .value = { 1, 4, 8 } },
	{ "dram-latency", "assumed", .row = { "dram-latency" }, .value = { 4, 16, 32, 64 } },
	{ "dram-banks", "assumed, busy for 4 cycles each", .row = { "dram-banks", "dram-busy" }, .value = { 1, 2, 4, 8 },
	  .second = { 4, 8, 16, 32 } },
	{ "conditions", "assumed", .row = { "conditions" }, .value = { 4, 8, 16 } },
	{ "relocations", "assumed", .row = { "relocations" }, .value = { 16, 32 } },
	{ "host-call", "fitted", .row = { "host-call" }, .value = { 0, 80, 120, 160, 200, 240, 320 } },
	{ "bundle", "chosen; the report: on the order of 1000", .option = offsetof(BpOptions, bundle),
	  .value = { 480, 600, 720, 840, 1000, 1200 } },
	{ "update", "chosen; weights in an update call", .option = offsetof(BpOptions, update),
	  .value = { 8, 16, 32, 64, 128 } },
	{ "tree", "chosen; 0: DRAM moves apart, 1: overlapped", .option = offsetof(BpOptions, tree), .value = { 0, 1 } },
};

typedef struct Effect {
	const Assumption *of;
	double value;
	Table1Errors e;
	bool out;
	const char *why; /* NULL, or why there is no such program */
} Effect;

typedef struct Trial {
	const CommandRun *c;
	const Plan *plan;
	Effect *to;
	uint32_t k;
	uint64_t cycles;
} Trial;

static void trial_body(void *arg)
{
	Trial *t = arg;
	const CommandRun *c = t->c;
	const Assumption *a = t->to->of;
	Machine m = *c->m;
	BpOptions o = compile_options(c);
	const double value[] = { a->value[t->k], a->second[t->k] };
	for (int i = 0; i < 2 && a->row[i]; i++)
		machine_put(&m, machine_row(a->row[i]), value[i]);
	if (!a->row[0])
		memcpy((char *)&o + a->option, &(uint32_t){ (uint32_t)value[0] }, sizeof(uint32_t));
	o.ring = a->whole ? RING_WHOLE : o.ring;
	const Machine *checked = machine_checked(c->cx, &m);
	Epoch sim[TABLE1_CELLS];
	table1_simulate(c, t->plan, checked, &o, sim);
	bool given = a->row[0] && strcmp(a->row[0], "host-call") == 0;
	double host_call = given ? (double)m.host_call : (double)table1_fit(t->plan, checked, sim);
	t->to->e = table1_errors(t->plan, checked, sim, host_call);
	for (uint32_t i = 0; i < TABLE1_CELLS; i++)
		t->cycles += sim[i].total;
}

static bool wanted(const CommandRun *c, const Assumption *a)
{
	for (uint32_t i = 0; i < c->operands; i++)
		if (strncmp(c->operand[i], a->name, strlen(c->operand[i])) == 0)
			return true;
	return !c->operands;
}

static void check_names(const CommandRun *c)
{
	Buf list = { .arena = &c->cx->scratch };
	buf_puts(&list, "write one of:");
	for (size_t k = 0; k < COUNT(assumptions); k++)
		if (!strchr(assumptions[k].name, ','))
			buf_printf(&list, " %s", assumptions[k].name);
	for (uint32_t i = 0; i < c->operands; i++) {
		bool found = false;
		for (size_t k = 0; k < COUNT(assumptions); k++)
			found |= strcmp(c->operand[i], assumptions[k].name) == 0;
		if (!found)
			fail(c->cx, MP_BAD_INPUT, list.s, "nothing is assumed about '%s'", c->operand[i]);
	}
}

/* ---- output ---- */

enum { HEAD = 6 };

static void rows_print(const CommandRun *c, const Effect *row, uint32_t rows)
{
	Column column[HEAD + TABLE1_CELLS + 1] = {
		{ "parameter", "parameter", .width = -32 },
		{ "value", "value", 6, "%g", .exact = "%g" },
		{ "host_call", "call", 5, "%.0f", .exact = "%.0f" },
		{ "mean_all", "15 cells", 8, "%.1f", .exact = "%.3f" },
		{ "mean_unfitted", "12", 5, "%.1f", .exact = "%.3f" },
		{ .key = "ruled_out" },
	};
	static char title[TABLE1_CELLS][12];
	for (uint32_t i = 0; i < TABLE1_CELLS; i++) {
		Buf b = { .arena = &c->cx->scratch };
		buf_printf(&b, "%s%u", table1[i].sum == SUM_RING ? "r" : "t", table1[i].procs);
		memcpy(title[i], b.s, b.len + 1 < sizeof title[i] ? b.len + 1 : sizeof title[i]);
		column[HEAD + i] = (Column){ title[i], title[i], 6, "%.1f", .exact = "%.3f", .object = "cells" };
	}
	column[HEAD + TABLE1_CELLS] = (Column){ .title = "" };
	Table t = report_table(c, column, COUNT(column));
	table_start(&t, "rows");
	for (uint32_t i = 0; i < rows; i++) {
		const Effect *e = &row[i];
		TableCell cell[COUNT(column)] = { tc_text(e->of->name), tc_real(e->value),      tc_real(e->e.host_call),
			                              tc_real(e->e.all),    tc_real(e->e.unfitted), tc_flag(e->out) };
		for (uint32_t k = 0; k < TABLE1_CELLS; k++)
			cell[HEAD + k] = tc_real(e->e.percent[k]);
		cell[HEAD + TABLE1_CELLS] = tc_text(e->out ? " ruled out" : "");
		table_row_failed(&t, cell, e->why ? 2 : t.columns, "error", e->why);
	}
	table_end(&t);
}

/* Extends an end of a bar by one value. */
static void end_take(const CommandRun *c, TornadoEnd *end, double ratio, double value)
{
	Buf b = { .arena = &c->cx->scratch };
	buf_printf(&b, "%g", value);
	if (!end->low_value || ratio < end->low) {
		end->low = ratio;
		end->low_value = b.s;
	}
	if (!end->high_value || ratio > end->high) {
		end->high = ratio;
		end->high_value = b.s;
	}
}

/* For each assumption the range of the mean error and of the ring at 512, relative to the standard machine. */
static void figure(const CommandRun *c, const Effect *row, uint32_t rows, const Table1Errors *standard)
{
	TornadoBar bar[COUNT(assumptions)] = { 0 };
	uint32_t bars = 0;
	for (uint32_t i = 0; i < rows; i++) {
		if (row[i].why)
			continue;
		if (!bars || bar[bars - 1].label != row[i].of->name)
			bar[bars++].label = row[i].of->name;
		end_take(c, &bar[bars - 1].end[0], row[i].e.all / standard->all, row[i].value);
		end_take(c, &bar[bars - 1].end[1], fabs(row[i].e.percent[RING_512] / standard->percent[RING_512]),
		         row[i].value);
	}
	Buf svg = { .arena = &c->cx->scratch }, csv = svg;
	const Tornado t = { .title = "Table 1 by assumption: error relative to the standard machine",
		                .axis = "ratio of errors",
		                .group = { "mean of 15 cells", "ring at 512" },
		                .colour = { PLOT_BLUE, PLOT_ORANGE },
		                .bar = bar,
		                .bars = bars };
	tornado_svg(&t, &svg);
	buf_puts(&csv, "row,parameter,value,mean_all,ring_512,ruled_out\n");
	for (uint32_t i = 0; i < rows; i++)
		if (!row[i].why)
			buf_printf(&csv, "%u,\"%s\",%g,%.3f,%.3f,%d\n", i + 1, row[i].of->name, row[i].value, row[i].e.all,
			           row[i].e.percent[RING_512], row[i].out);
	folder_make(c);
	jw_start(c->json, "files", '[');
	figure_write(c, "sensitivity", "csv", &csv);
	figure_write(c, "sensitivity", "svg", &svg);
	jw_end(c->json, ']');
}

void run_sensitivity(CommandRun *c)
{
	const Plan *plan = plan_open(c->cx, NULL);
	Effect row[MOST_ROWS] = { 0 };
	uint32_t rows = 0;
	uint64_t cycles = 0;
	Epoch sim[TABLE1_CELLS];
	BpOptions o = compile_options(c);
	check_names(c);
	table1_simulate(c, plan, c->m, &o, sim);
	Table1Errors standard = table1_errors(plan, c->m, sim, (double)table1_fit(plan, c->m, sim));
	for (size_t k = 0; k < COUNT(assumptions); k++) {
		const Assumption *a = &assumptions[k];
		for (uint32_t i = 0; wanted(c, a) && i < MOST_VALUES && (!i || a->value[i] > 0); i++) {
			Effect *e = &row[rows++];
			*e = (Effect){ .of = a, .value = a->value[i] };
			Trial t = { c, plan, e, i, 0 };
			e->why = attempt(c->cx, trial_body, &t);
			e->out = !e->why && e->e.all > standard.all + RULED_OUT;
			cycles += t.cycles;
		}
	}
	buf_printf(
		c->text,
		"# Table 1: error of every cell in percent, t: tree, r: ring; the standard machine: %.1f %% over 15 "
		"cells, %.1f %% over\n# the 12 not fitted. call: host-call, fitted anew for every value; ruled out: more "
		"than %d points above the standard\n\n",
		standard.all, standard.unfitted, RULED_OUT);
	jw_real(c->json, "standard_all", "%.3f", standard.all);
	jw_real(c->json, "standard_unfitted", "%.3f", standard.unfitted);
	rows_print(c, row, rows);
	if (c->write)
		figure(c, row, rows, &standard);
	report_end(c, cycles, 0);
}
