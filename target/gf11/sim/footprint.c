/* SPDX-License-Identifier: MIT */
/* Memory and register footprint of a routine.  In: microwords.  Out: every directly addressed memory word, with its
 * access times; registers written; ranges of indexed accesses; switch configurations.
 * Must hold: cycles are those of the cycle-accurate interpreter: reads see write-backs of the same cycle. */
#include <stdlib.h>
#include <string.h>

#include "footprint.h"

static int compare(const void *x, const void *y)
{
	const WordUse *a = x, *b = y;
	if (a->far != b->far)
		return a->far ? 1 : -1;
	if (a->base != b->base)
		return a->base < b->base ? -1 : 1;
	return (a->off > b->off) - (a->off < b->off);
}

static void join(WordUse *a, const WordUse *b)
{
	a->reads_end = max_u32(a->reads_end, b->reads_end);
	a->first_write = !a->writes || (b->writes && b->first_write < a->first_write) ? b->first_write : a->first_write;
	a->writes += b->writes;
}

static void add_indexed(Footprint *f, const Routine *r, Addr a, bool put)
{
	uint32_t words = r->code && r->code->index_limit ? r->code->index_limit[a.base] : 0;
	f->puts |= put;
	for (uint32_t i = 0; i < f->indexes; i++)
		if (f->indexed[i].base == a.base && f->indexed[i].put == put)
			return;
	f->indexed[f->indexes++] = (Indexed){ a.base, put, words };
}

static void add_micro(Footprint *f, const Machine *m, const Routine *r, uint32_t line, const Micro *u)
{
	int form = ops[u->op].form;
	uint32_t done = line + (uint32_t)op_latency(m, u->op);
	f->alu += ops[u->op].unit == UNIT_ALU;
	if (forms[form].uses & USES_DST)
		f->registers[u->dst / 64] |= (uint64_t)1 << u->dst % 64;
	if (form == FORM_XFER) {
		uint32_t configuration = u->k.u;
		uint32_t i = 0;
		while (i < f->uses && f->use[i].configuration != configuration)
			i++;
		if (i == f->uses)
			f->use[f->uses++] = (ConfigUse){ configuration, 0, line };
		f->use[i].times++;
	}
	for (int i = 0; i < 2; i++) {
		const MemAccess *t = &forms[form].access[i];
		Addr a = t->dram ? u->far : u->mem;
		if (!t->is)
			continue;
		if (t->indexed)
			add_indexed(f, r, a, t->write);
		else
			f->word[f->words++] = (WordUse){ t->dram, a.base, a.off, t->write ? 0 : line + 1, t->write, done };
	}
}

Footprint *footprint_make(Ctx *cx, const Machine *m, const Routine *r)
{
	Footprint *f = NEW(&cx->keep, 1, Footprint), count = { 0 };
	for (uint32_t t = 0; t < r->lines; t++)
		for (int unit = 0; unit < UNITS; unit++) {
			const Micro *u = &r->line[t].slot[unit];
			if (u->op == GOP_NONE)
				continue;
			const FormInfo *form = &forms[ops[u->op].form];
			for (int i = 0; i < 2; i++) {
				count.words += form->access[i].is && !form->access[i].indexed;
				count.indexes += form->access[i].is && form->access[i].indexed;
			}
			count.uses += ops[u->op].form == FORM_XFER;
		}
	uint32_t most = min_u32(count.uses, (uint32_t)m->configurations);
	f->word = NEW(&cx->keep, count.words, WordUse);
	f->indexed = NEW(&cx->keep, count.indexes, Indexed);
	f->use = NEW(&cx->keep, most, ConfigUse);
	for (uint32_t t = 0; t < r->lines; t++)
		for (int unit = 0; unit < UNITS; unit++)
			if (r->line[t].slot[unit].op != GOP_NONE)
				add_micro(f, m, r, t, &r->line[t].slot[unit]);
	/* Merges duplicates. */
	qsort(f->word, f->words, sizeof *f->word, compare);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < f->words; i++) {
		if (kept && compare(&f->word[kept - 1], &f->word[i]) == 0)
			join(&f->word[kept - 1], &f->word[i]);
		else
			f->word[kept++] = f->word[i];
	}
	f->words = kept;
	for (uint32_t i = 0; i < f->words; i++)
		f->written += f->word[i].writes > 0;
	return f;
}

/* ---- one word in one call ---- */

static const WordUse *find(const Footprint *f, uint32_t low, uint32_t high, uint32_t off)
{
	const WordUse *end = f->word + high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (f->word[middle].off < off)
			low = middle + 1;
		else
			high = middle;
	}
	return f->word + low < end && f->word[low].off == off ? &f->word[low] : NULL;
}

WordAccess footprint_access(const Footprint *f, const Machine *m, const uint32_t *base, bool far, uint32_t addr)
{
	WordUse all = { 0 };
	WordAccess a = { 0 };
	for (uint32_t from = 0, end; from < f->words; from = end) {
		/* First word under another base, or the end. */
		uint32_t low = from, high = f->words;
		while (low < high) {
			uint32_t middle = low + (high - low) / 2;
			if (f->word[middle].far == f->word[from].far && f->word[middle].base == f->word[from].base)
				low = middle + 1;
			else
				high = middle;
		}
		end = low;
		uint32_t at = base[f->word[from].base];
		const WordUse *n = f->word[from].far == far && addr >= at ? find(f, from, end, addr - at) : NULL;
		if (n)
			join(&all, n);
	}
	a = (WordAccess){ .reads_end = all.reads_end, .writes = all.writes, .first_write = all.first_write };
	for (uint32_t i = 0; i < f->indexes && !far; i++) {
		const Indexed *x = &f->indexed[i];
		uint32_t sram = (uint32_t)m->sram, behind = (addr + sram - base[x->base] % sram) % sram;
		if (x->words && behind >= x->words)
			continue;
		a.looked_up |= !x->put;
		a.put |= x->put;
	}
	return a;
}
