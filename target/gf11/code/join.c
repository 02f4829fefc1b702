/* SPDX-License-Identifier: MIT */
/* Concatenation of routines.  In: routines.  Out: one that runs them in sequence, without overlap.
 * Must hold: a part ends with all results written and all units free. */
#include <string.h>

#include "gf11_code.h"

Code *code_join(Ctx *cx, const char *name, Routine *const *part, uint32_t parts)
{
	Code *code = NEW(&cx->keep, 1, Code);
	code->name = name;
	for (uint32_t i = 0; i < parts; i++)
		code->recs += part[i]->code->recs;
	code->rec = NEW(&cx->keep, code->recs, Rec);
	code->recs = 0;
	for (uint32_t i = 0; i < parts; i++) {
		const Code *from = part[i]->code;
		for (uint32_t k = 0; k < from->recs; k++) {
			Rec r = from->rec[k];
			/* Renumbers virtual registers and conditions after those of the preceding parts. */
			unsigned uses = forms[ops[r.op].form].uses;
			r.dst += uses & USES_DST ? code->regs : uses & WRITES_CC ? code->conds : 0;
			r.a += uses & USES_A ? code->regs : 0;
			r.b += uses & USES_B ? code->regs : 0;
			r.cc += uses & READS_CC ? code->conds : 0;
			code->rec[code->recs++] = r;
		}
		code->regs += from->regs;
		code->conds += from->conds;
		code->bases_overlap |= from->bases_overlap;
		code->update |= from->update;
	}
	return code;
}

Routine *routine_join(Ctx *cx, const Machine *m, const char *name, Routine *const *part, uint32_t parts)
{
	Routine *r = NEW(&cx->keep, 1, Routine);
	Code *code = code_join(cx, arena_copy(&cx->keep, name, strlen(name)), part, parts);
	r->name = code->name;
	r->code = code;
	r->update = code->update;
	for (uint32_t i = 0; i < parts; i++)
		r->lines += part[i]->lines;
	r->line = NEW(&cx->keep, r->lines, Line);
	uint32_t line = 0, recs = 0;
	for (uint32_t i = 0; i < parts; i++) {
		for (uint32_t k = 0; k < part[i]->lines; k++, line++) {
			r->line[line] = part[i]->line[k];
			for (int unit = 0; unit < UNITS; unit++)
				if (r->line[line].slot[unit].rec != NOT_RECORDED)
					r->line[line].slot[unit].rec += recs;
		}
		recs += part[i]->code->recs;
	}
	/* Bounds are those of all operations together, so the cost of not overlapping the parts is visible. */
	Report *to = &r->report;
	bound_fill(cx, m, r->code, to);
	to->cycles = r->lines;
	for (uint32_t i = 0; i < parts; i++) {
		const Report *from = &part[i]->report;
		to->registers = max_u32(to->registers, from->registers);
		to->spills += from->spills;
		to->seconds += from->seconds;
	}
	to->optimal = to->cycles == to->bound;
	to->report_measure = routine_measure(m, r);
	return r;
}
