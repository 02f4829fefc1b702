/* SPDX-License-Identifier: MIT */
/* A machine that runs one routine. In: a routine, a number of processors. Out: a controller that has it loaded, with
 * relocation registers set to disjoint regions behind the tables; memory with tables and pseudo-random data; a checksum
 * of memory after the run.
 *
 * Data depends on the address and the processor alone, so however the routine is run, the checksum must be the same.
 * Words that are loaded and used as an index are small whole numbers, all others floats in [-1, 1). */
#include <assert.h>
#include <inttypes.h>
#include <xxhash.h>

#include "gf11_bench.h"

enum { STREAM_RUN = 80, MOST_PROCESSORS = 4096, BASES = 256 };
enum { OF_SRAM, OF_DRAM, MEMORIES };
enum { INDICES = 64 }; /* look-ups and puts go to so many words */

/* Words that a routine addresses through each relocation register. */
typedef struct Reach {
	uint64_t words[MEMORIES][BASES];
} Reach;

Runner *runner_new(Ctx *cx, const Machine *m, uint32_t procs, uint32_t threads)
{
	Runner *w = NEW(&cx->keep, 1, Runner);
	Switch *sw = switch_new(cx, m);
	*w = (Runner){ .cx = cx, .m = m, .sw = sw, .p = processors_new(cx, m, sw, procs, threads) };
	return w;
}

/* ---- memory ---- */

static void reach_add(Reach *reach, const Micro *u)
{
	const FormInfo *f = &forms[ops[u->op].form];
	uint64_t *s = &reach->words[OF_SRAM][u->mem.base], *d = &reach->words[OF_DRAM][u->far.base];
	uint64_t last = (uint64_t)u->mem.off + (f->access[0].indexed || f->access[1].indexed ? INDICES - 1 : 0);
	if (f->uses & USES_MEM && last >= *s)
		*s = last + 1;
	if (f->uses & USES_FAR && u->far.off >= *d)
		*d = (uint64_t)u->far.off + 1;
}

static bool is_spill(const Runner *w, const Micro *u)
{
	return u->rec == UINT32_MAX && forms[ops[u->op].form].uses & USES_MEM && u->mem.base == 0 &&
	       u->mem.off >= w->result;
}

/* ---- which words are indices ---- */

/* Where the word in a register was loaded from, plus 1; 0: it is a result. */
typedef struct Arrival {
	uint64_t done;
	uint32_t from;
	uint16_t dst;
} Arrival;
typedef struct Origins {
	Runner *w;
	const Controller *c;
	uint32_t *reg, *spilled; /* [registers]; [words of SRAM] */
	Arrival *coming;
	uint32_t count;
} Origins;

static uint32_t origin_of(const Origins *o, const Micro *u)
{
	if (u->op != GOP_LOAD)
		return 0;
	return is_spill(o->w, u) ? o->spilled[u->mem.off] : o->c->base[u->mem.base] + u->mem.off + 1;
}

static void origins_arrive(Origins *o, uint64_t now)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < o->count; i++) {
		Arrival a = o->coming[i];
		if (a.done == now)
			o->reg[a.dst] = a.from;
		else
			o->coming[kept++] = a;
	}
	o->count = kept;
}

static void origins_issue(Origins *o, const Micro *u, uint64_t now)
{
	unsigned uses = forms[ops[u->op].form].uses;
	uint32_t index = u->op == GOP_LOOKUP ? o->reg[u->a] : u->op == GOP_PUT ? o->reg[u->b] : 0;
	if (index && index <= (uint64_t)o->w->m->sram)
		o->w->index[index - 1] = true;
	if (u->op == GOP_STORE && is_spill(o->w, u))
		o->spilled[u->mem.off] = o->reg[u->a];
	if (uses & USES_DST)
		o->coming[o->count++] = (Arrival){ now + (uint64_t)op_latency(o->w->m, u->op), origin_of(o, u), u->dst };
}

/* ---- loading and filling ---- */

/* SPEC of `K=SPEC` for this configuration; NULL: none. */
static const char *route_of(const Runner *w, uint32_t number)
{
	static const char form[] = "write K=SPEC, such as 0=ring, 1=tree:2, 2=random:7 or 3=FILE with lines of two ports";
	const char *found = NULL;
	for (size_t i = 0; i < w->routes; i++) {
		Scan s = scan_spec(w->cx, "--route", w->route[i]);
		uint32_t k = scan_index(&s, "configuration", (uint32_t)w->m->configurations, form);
		if (!scan_word(&s, "=") || scan_peek(&s) < 0)
			fail_at(w->cx, scan_here(&s), form, "here = and routes are missing");
		found = k == number ? w->route[i] + s.at : found;
	}
	return found;
}

/* The next one. Configuration 0 joins buddies, i and i ^ 1; k sends k processors further.  A ring can do one step. */
static void configuration_store(Runner *w)
{
	uint32_t procs = w->p->procs, k = w->sw->stored;
	const char *spec = route_of(w, k);
	assert(procs > 0);
	uint16_t *to = NEW(&w->cx->scratch, w->sw->ports, uint16_t);
	for (uint32_t i = 0; i < w->sw->ports; i++) {
		uint32_t step = w->m->ring_only ? (i + 1) % procs : k ? (i + k) % procs : i ^ 1;
		to[i] = (uint16_t)(i < procs && step < procs ? step : NO_ROUTE);
	}
	if (spec)
		permutation_make(w->cx, spec, procs, w->sw->ports, to);
	switch_store(w->cx, w->sw, to);
}

Controller *runner_load(Runner *w, const Routine *r)
{
	Controller *c = controller_new(w->cx, w->p);
	Reach *reach = NEW(&w->cx->scratch, 1, Reach);
	w->result = routine_spill_low(w->m, r);
	for (uint32_t t = 0; t < r->lines; t++) {
		const Micro *u = &r->line[t].slot[UNIT_SWITCH];
		while (u->op == GOP_XFER && w->sw->stored <= u->k.u)
			configuration_store(w);
	}
	for (uint32_t t = 0; t < r->lines; t++)
		for (uint32_t unit = 0; unit < UNITS; unit++)
			if (r->line[t].slot[unit].op != GOP_NONE && !is_spill(w, &r->line[t].slot[unit]))
				reach_add(reach, &r->line[t].slot[unit]);
	/* Regions are contiguous, each aligned to the banks. A region that does not fit is refused by the call. */
	uint64_t banks = (uint64_t)w->m->dram_banks, size[MEMORIES] = { (uint64_t)w->m->sram, (uint64_t)w->m->dram };
	w->end[OF_SRAM] = reach->words[OF_SRAM][0] > TABLE_WORDS ? reach->words[OF_SRAM][0] : TABLE_WORDS;
	w->end[OF_DRAM] = reach->words[OF_DRAM][0];
	for (uint32_t n = 1; n < BASES; n++) {
		uint64_t at = 0;
		for (int k = 0; k < MEMORIES; k++)
			if (reach->words[k][n] && w->end[k] > at)
				at = w->end[k];
		at = (at + banks - 1) / banks * banks;
		for (int k = 0; k < MEMORIES; k++)
			if (reach->words[k][n])
				w->end[k] = at + reach->words[k][n];
		if (at)
			controller_base(c, n, (uint32_t)at);
	}
	for (int k = 0; k < MEMORIES; k++)
		w->end[k] = w->end[k] < size[k] ? w->end[k] : size[k];
	/* Words that are loaded and used as an index. */
	Arena *a = &w->cx->scratch;
	const Machine *m = w->m;
	size_t most = (size_t)(m->alu_latency + m->sram_latency + m->lookup_latency + m->switch_latency + UNITS);
	Origins o = { .w = w,
		          .c = c,
		          .reg = NEW(a, (size_t)m->registers, uint32_t),
		          .spilled = NEW(a, (size_t)m->sram, uint32_t),
		          .coming = NEW(a, most, Arrival) };
	w->index = NEW(&w->cx->keep, (size_t)m->sram, bool);
	for (uint32_t t = 0; t < r->lines; t++) {
		origins_arrive(&o, t);
		for (uint32_t unit = 0; unit < UNITS; unit++)
			if (r->line[t].slot[unit].op != GOP_NONE)
				origins_issue(&o, &r->line[t].slot[unit], t);
	}
	controller_load(c, r);
	return c;
}

static Cell data_word(const Runner *w, int memory, uint64_t at, uint32_t proc)
{
	uint64_t number = at * MOST_PROCESSORS + proc;
	if (memory == OF_SRAM && w->index[at])
		return (Cell){ .u = (uint32_t)random_below(0, STREAM_RUN, number, INDICES) };
	return (Cell){ .f = (float)(2 * random_unit((uint64_t)memory, STREAM_RUN, number) - 1) };
}

static void words_write(const Runner *w, Controller *c, int memory, uint64_t from, bool zero, Cell *word)
{
	const Cell nothing = { 0 };
	uint32_t count = (uint32_t)(w->end[memory] > from ? w->end[memory] - from : 0);
	for (uint32_t proc = 0; proc < w->p->procs && count; proc++) {
		for (uint32_t i = 0; i < count; i++)
			word[i] = zero ? nothing : data_word(w, memory, from + i, proc);
		host_write(c, proc, memory == OF_DRAM, (uint32_t)from, word, count);
	}
}

void runner_fill(const Runner *w, Controller *c, bool zero)
{
	uint64_t most = w->end[OF_SRAM] > w->end[OF_DRAM] ? w->end[OF_SRAM] : w->end[OF_DRAM];
	uint32_t tables = w->m->sram < TABLE_WORDS ? (uint32_t)w->m->sram : TABLE_WORDS;
	Cell *word = NEW(&w->cx->scratch, most > TABLE_WORDS ? most : TABLE_WORDS, Cell);
	tables_fill(word);
	for (uint32_t proc = 0; proc < w->p->procs; proc++)
		host_write(c, proc, false, 0, word, tables);
	words_write(w, c, OF_SRAM, TABLE_WORDS, zero, word);
	words_write(w, c, OF_DRAM, 0, zero, word);
}

uint64_t runner_checksum(const Runner *w)
{
	uint64_t h = 0;
	for (uint64_t i = 0; i < w->result; i++)
		h = XXH3_64bits_withSeed(w->p->sram + i * w->p->lanes, w->p->procs * sizeof(uint32_t), h);
	for (uint64_t i = 0; i < w->end[OF_DRAM]; i++)
		h = XXH3_64bits_withSeed(w->p->dram + i * w->p->lanes, w->p->procs * sizeof(uint32_t), h);
	return h;
}
