/* SPDX-License-Identifier: MIT */
/* Routines for the workbench.  In: the name of a library routine, a text of operations, a listing of microcode.
 * Out: a routine that the checker has passed. */
#include <string.h>
#include <unistd.h>

#include "gf11_bench.h"

void routine_names(Buf *out)
{
	buf_puts(out, "the routines are:");
	for (size_t i = 0; i < routine_def_count; i++)
		buf_printf(out, " %s", routine_defs[i].name);
}

Routine *routine_schedule(Ctx *cx, const Machine *m, Code *code, int level)
{
	Routine *r = schedule(cx, m, code, &(ScheduleOptions){ .level = level });
	const char *fault = check_routine(cx, m, r);
	if (fault)
		fail(cx, MP_FAILED, "this is a fault of the scheduler, please report it",
		     "%s: the schedule breaks a rule of the machine: %s", code->name, fault);
	r->report.checked = true;
	r->report.in_order = bound_in_order(cx, m, r->code);
	return r;
}

Routine *routine_make(Ctx *cx, const Machine *m, const RoutineDef *def, int level)
{
	Routine *r = routine_schedule(cx, m, routine_record(cx, m, def), level);
	r->update = def->update;
	if (def->update)
		r->report.report_measure = (double)(m->switch_interval * r->report.transfers) / r->report.cycles;
	return r;
}

Routine *routine_read(Ctx *cx, const Machine *m, const Src *src, int level, const bool *given)
{
	if (operations_are(src))
		return routine_schedule(cx, m, operations_parse(cx, m, src), level);
	Routine *r = microcode_parse(cx, m, src);
	r->given = given;
	const char *fault = check_routine(cx, m, r);
	if (fault)
		fail(cx, MP_BAD_INPUT, "change the microcode, or take the machine it was made for with --machine",
		     "%s breaks a rule of the machine %s: %s", src->name, m->name, fault);
	r->report.checked = true;
	r->report.cycles = routine_cycles(m, r);
	for (uint32_t t = 0; t < r->lines; t++)
		for (uint32_t unit = 0; unit < UNITS; unit++)
			r->report.operations += r->line[t].slot[unit].op != GOP_NONE;
	return r;
}

Routine *routine_open(Ctx *cx, const Machine *m, const char *name, int level, const bool *given)
{
	const RoutineDef *def = routine_find(name);
	if (def)
		return routine_make(cx, m, def, level);
	if (strpbrk(name, "./") || strcmp(name, "-") == 0 || access(name, R_OK) == 0)
		return routine_read(cx, m, src_open(cx, &cx->keep, name), level, given);
	Buf names = { .arena = &cx->scratch };
	routine_names(&names);
	fail(cx, MP_BAD_INPUT, names.s, "there is no routine '%s', and no such file", name);
}
