/* SPDX-License-Identifier: MIT */
/* microprop gf11 program. In: a network, a machine, a number of processors. Out: the routines it is compiled to, how
 * often an epoch calls each; with --routine the scheduled lines of one, with --timeline the epoch in the order of
 * time. */
#include <inttypes.h>

#include "gf11_study.h"

static const Column program_columns[] = {
	{ "routine", "routine", .width = 7 },
	{ "name", "name", .width = -20 },
	{ "operations", "operations", .width = 10 },
	{ "cycles", "cycles", .width = 7 },
	{ "percent_of_bound", "bound %", 8, "%.1f", .exact = "%.2f" },
	{ "registers", "registers", .width = 9 },
	{ "calls", "calls", .width = 9 },
};

static void routine_print(const CommandRun *c, const Controller *k)
{
	Buf text = { .arena = &c->cx->scratch };
	uint32_t number = (uint32_t)whole_number(c, "routine", c->routine, 0, k->routines - 1);
	microcode_print(c->m, k->routine[number], &text);
	buf_add(c->text, text.s, text.len);
	jw_count(c->json, "routine", number);
	jw_text(c->json, "microcode", text.s);
}

void run_program(CommandRun *c)
{
	const Plan *plan = plan_open(c->cx, c->operand[0]);
	EpochSpec s = epoch_spec(c, plan, c->cases ? c->cases : NETTALK_CASES);
	Bp *b;
	Timeline timeline;
	if (c->timeline)
		s.timeline = &timeline;
	s.o.procs = procs_one(c);
	c->used = s.o.procs;
	Epoch e = epoch_simulate(c->cx, &s, &b);
	const Controller *k = b->c;
	if (c->routine) {
		routine_print(c, k);
	} else if (c->timeline) {
		timeline_print(c, &timeline);
	} else {
		const Table t = report_table(c, program_columns, COUNT(program_columns));
		table_start(&t, "routines");
		for (uint32_t i = 0; i < k->routines; i++) {
			const Report *p = &k->routine[i]->report;
			table_row(&t, (const TableCell[]){ tc_count(i), tc_text(k->routine[i]->name), tc_count(p->operations),
			                                   tc_count(p->cycles), tc_real(100.0 * p->bound / p->cycles),
			                                   tc_count(p->registers), tc_count(k->called[i]) });
		}
		table_end(&t);
	}
	report_end(c, e.total, 0);
}
