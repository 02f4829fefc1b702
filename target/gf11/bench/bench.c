/* SPDX-License-Identifier: MIT */
/* A routine loaded into a machine.  In: a routine, processors, values set by the host.  Out: the machine before,
 * during and after a call, cycle by cycle. */
#include <string.h>

#include "gf11_bench.h"

static void bases_set(Workbench *b)
{
	static const char form[] = "write N=ADDRESS, such as 1=2000";
	for (size_t i = 0; i < b->spec->bases; i++) {
		Scan s = scan_spec(b->cx, "--base", b->spec->base[i]);
		uint32_t n = scan_index(&s, "relocation register", (uint32_t)b->m->relocations, form);
		if (!scan_word(&s, "="))
			fail_at(b->cx, scan_here(&s), form, "here = and an address are missing");
		uint32_t address = scan_index(&s, "word", (uint32_t)(b->m->sram > b->m->dram ? b->m->sram : b->m->dram), form);
		scan_end(&s, form);
		controller_base(b->k, n, address);
	}
}

Workbench *bench_open(Ctx *cx, const char *name, const Src *src, const WorkbenchSpec *spec)
{
	Workbench *b = NEW(&cx->keep, 1, Workbench);
	*b = (Workbench){ .cx = cx, .m = spec->m, .spec = spec };
	uint32_t procs = spec->procs ? spec->procs : (uint32_t)b->m->processors;
	if (procs > b->m->processors)
		fail(cx, MP_BAD_INPUT, "use fewer", "%s has %lld processors, not %u", b->m->name, (long long)b->m->processors,
		     procs);
	b->set = NEW(&cx->keep, spec->sets + 1, Assign);
	for (size_t i = 0; i < spec->sets; i++)
		b->set[i] = assign_read(cx, b->m, procs, "--set", spec->set[i]);
	const bool *given = assigns_given(cx, b->m, b->set, spec->sets);
	b->r = src ? routine_read(cx, b->m, src, spec->level, given) : routine_open(cx, b->m, name, spec->level, given);
	b->w = runner_new(cx, b->m, procs, spec->threads ? spec->threads : 1);
	b->w->route = spec->route;
	b->w->routes = spec->routes;
	b->k = runner_load(b->w, b->r);
	bases_set(b);
	bench_start(b);
	return b;
}

void bench_start(Workbench *b)
{
	const Processors *p = b->w->p;
	memset(p->reg, 0, (size_t)p->blocks * p->slots * LANES * sizeof *p->reg);
	if (b->started) {
		memset(p->sram, 0, (size_t)b->m->sram * p->lanes * sizeof *p->sram);
		for (uint32_t t = 0; t < b->r->lines; t++) {
			const Micro *u = &b->r->line[t].slot[UNIT_DRAM];
			uint64_t at = u->op == GOP_FLUSH ? (uint64_t)b->k->base[u->far.base] + u->far.off : UINT64_MAX;
			if (at < (uint64_t)b->m->dram)
				memset(p->dram + (size_t)at * p->lanes, 0, p->lanes * sizeof *p->dram);
		}
	}
	b->started = true;
	runner_fill(b->w, b->k, b->spec->zero);
	for (size_t i = 0; i < b->spec->sets; i++)
		bench_assign(b, &b->set[i]);
	if (b->t)
		traced_restart(b->t, b->w->p, b->r, b->k->base);
}

bool bench_step(Workbench *b)
{
	if (!b->t) {
		char why[200];
		if (execute_bad_bases(b->w->p, b->k->prepared[0], b->k->base, why, sizeof why))
			fail(b->cx, MP_BAD_INPUT, "set the relocation register to another address before the call", "%s", why);
		b->t = traced_new(b->cx, b->w->p, b->r, b->k->base);
	}
	return traced_step(b->t, NULL, NULL);
}

uint64_t bench_now(const Workbench *b) { return b->t ? traced_now(b->t) : 0; }

bool bench_ended(const Workbench *b)
{
	uint32_t flights = 0;
	if (b->t)
		traced_flights(b->t, &flights);
	return bench_now(b) >= b->r->lines && !flights;
}
