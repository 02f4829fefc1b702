/* SPDX-License-Identifier: MIT */
/* Fills idle slots of a routine with receives from the disks. In: a scheduled routine, or none; the chain through
 * the switch. Out: a routine as long as before that also receives rows into DRAM.
 *
 *   row: transfer, transfer, ... (each passes on what the one before brought), store, flush
 *
 * Rows of a block are interleaved, step by step, and block follows block: transfers have that order in every routine.
 * Two sets of registers and words of SRAM alternate, so that blocks overlap. Must hold: no operation of the routine
 * moves; the registers are ones that it never uses; the result goes through the checker. */
#include <string.h>

#include "gf11_net.h"

#define NOT_FOUND UINT32_MAX

typedef struct Placed {
	uint32_t line;
	uint8_t unit;
} Placed;

typedef struct Weave {
	Ctx *cx;
	const Machine *m;
	const Chain *c;
	Line *line;
	uint32_t lines;
	uint8_t *port, *sram; /* [lines + 1] taken in this cycle */
	uint16_t *reg;        /* [2 * side] of rows, one set after the other; then the one that holds 0 */
	uint16_t zero;
	uint32_t zero_at;
	uint32_t sets;              /* of registers */
	uint32_t *stored, *flushed; /* [2 * side] when a register and a word of SRAM are free again */
	uint32_t transfer;          /* when the last one was issued, plus spacing */
	Placed *placed;
	uint32_t places; /* of the present block */
	uint32_t first_rec;
	uint32_t taken; /* transfers */
	double need, rate;
} Weave;

uint32_t chain_side(const Machine *m)
{
	enum { IN_FLIGHT = 4 };
	return (uint32_t)round_up(IN_FLIGHT, (uint64_t)m->dram_banks);
}

/* ---- what is taken ---- */

static void occupy(Weave *w, int op, uint32_t t, uint8_t taken)
{
	const FormInfo *f = &forms[ops[op].form];
	const uint32_t cycle[] = { t, t + 1, t + (uint32_t)op_latency(w->m, op) - 1 };
	for (int k = 0; k < 3; k++) {
		if (f->port & 1 << k)
			w->port[cycle[k]] = taken;
		if (f->sram & 1 << k)
			w->sram[cycle[k]] = taken;
	}
}

static bool sram_free(const Weave *w, uint32_t t)
{
	uint32_t around = (uint32_t)w->m->sram_interval - 1, first = t > around ? t - around : 0;
	for (uint32_t k = first; k <= t + around && k < w->lines; k++)
		if (w->sram[k])
			return false;
	return true;
}

/* DRAM starts some cycles apart, and longer in the same bank; bases are multiples of the banks. */
static bool dram_free(const Weave *w, uint32_t t, uint32_t bank)
{
	int64_t busy = w->m->dram_busy, interval = w->m->dram_interval, around = (busy > interval ? busy : interval) - 1;
	int64_t first = t > around ? t - around : 0;
	for (int64_t k = first; k <= t + around && k < w->lines; k++) {
		const Micro *u = &w->line[k].slot[UNIT_DRAM];
		int64_t apart = k > t ? k - t : t - k;
		if (u->op != GOP_NONE && (apart < interval || (apart < busy && u->far.off % w->m->dram_banks == bank)))
			return false;
	}
	return true;
}

/* Cycles from an issue until nothing of it is under way. */
static int64_t lasts(const Weave *w, int op)
{
	int64_t longest = op_latency(w->m, op), busy = 1;
	if (ops[op].unit == UNIT_DRAM)
		busy = w->m->dram_busy > w->m->dram_interval ? w->m->dram_busy : w->m->dram_interval;
	if (ops[op].unit == UNIT_SWITCH)
		busy = w->m->switch_interval;
	if (forms[ops[op].form].sram & AT_START && w->m->sram_interval > busy)
		busy = w->m->sram_interval;
	return busy > longest ? busy : longest;
}

static bool is_free(const Weave *w, int op, uint32_t t, uint32_t bank)
{
	const FormInfo *f = &forms[ops[op].form];
	uint32_t last = t + (uint32_t)op_latency(w->m, op) - 1;
	if (w->line[t].slot[ops[op].unit].op != GOP_NONE)
		return false;
	if ((f->port & AT_START && w->port[t]) || (f->port & AT_LAST && w->port[last]))
		return false;
	if (f->sram & AT_START && !sram_free(w, t))
		return false;
	return ops[op].unit != UNIT_DRAM || dram_free(w, t, bank);
}

static uint32_t find(const Weave *w, int op, uint32_t from, uint32_t bank)
{
	for (uint32_t t = from; t + lasts(w, op) <= w->lines; t++)
		if (is_free(w, op, t, bank))
			return t;
	return NOT_FOUND;
}

/* Places the operation in the first free slot from cycle `from` on; the cycle, or NOT_FOUND. */
static uint32_t place(Weave *w, Micro u, uint32_t from)
{
	uint32_t t = find(w, u.op, from, u.far.off % (uint32_t)w->m->dram_banks);
	if (t == NOT_FOUND)
		return t;
	w->line[t].slot[ops[u.op].unit] = u;
	occupy(w, u.op, t, 1);
	w->placed[w->places++] = (Placed){ t, ops[u.op].unit };
	return t;
}

static void take_back(Weave *w)
{
	while (w->places > 0) {
		Placed p = w->placed[--w->places];
		Micro *u = &w->line[p.line].slot[p.unit];
		occupy(w, u->op, p.line, 0);
		*u = (Micro){ .op = GOP_NONE };
	}
}

/* ---- recording: what is woven in, in the order of the rows ---- */

static uint32_t block_recs(const Chain *c) { return (c->steps + 2) * c->side; }

static Addr near_at(const Chain *c, uint32_t block, uint32_t row)
{
	return (Addr){ 0, c->near + block % 2 * c->side + row };
}

static Code *record_rows(Ctx *cx, const Machine *m, const Chain *c, uint32_t blocks)
{
	Gen *g = gen_record(cx, m, "receive");
	Reg *row = NEW(&cx->scratch, c->side, Reg), zero = g_load(g, (Addr){ 0, TABLE_CONSTANT + K_ZERO });
	for (uint32_t i = 0; i < blocks; i++) {
		for (uint32_t step = 0; step < c->steps; step++)
			for (uint32_t k = 0; k < c->side; k++)
				row[k] = g_xfer(g, c->configuration, step ? row[k] : zero);
		for (uint32_t k = 0; k < c->side; k++) {
			g_store(g, near_at(c, i, k), row[k]);
			g_flush(g, (Addr){ BP_DISK, i * c->side + k }, near_at(c, i, k));
		}
	}
	return gen_end(g);
}

/* ---- placing ---- */

/* What the disks must have read before the routine begins, so that they have this word when it is taken. */
static void note_need(Weave *w, uint32_t t)
{
	double need = ++w->taken - w->rate * t;
	w->need = need > w->need ? need : w->need;
}

static bool place_end(Weave *w, uint32_t block, uint32_t row, uint32_t there)
{
	const Chain *c = w->c;
	uint32_t r = block % w->sets * c->side + row, s = block % 2 * c->side + row;
	uint32_t rec = w->first_rec + 1 + block * block_recs(c) + c->steps * c->side + 2 * row;
	uint32_t from = max_u32(there, w->flushed[s]);
	uint32_t t = place(w, (Micro){ .op = GOP_STORE, .a = w->reg[r], .mem = near_at(c, block, row), .rec = rec }, from);
	if (t == NOT_FOUND)
		return false;
	w->stored[r] = t;
	t = place(
		w,
		(Micro){
			.op = GOP_FLUSH, .mem = near_at(c, block, row), .far = { BP_DISK, block * c->side + row }, .rec = rec + 1 },
		t + (uint32_t)op_latency(w->m, GOP_STORE));
	w->flushed[s] = t;
	return t != NOT_FOUND;
}

static bool place_block(Weave *w, uint32_t block)
{
	const Chain *c = w->c;
	uint32_t *there = NEW(&w->cx->scratch, c->side, uint32_t), recs = w->first_rec + 1 + block * block_recs(c);
	const uint16_t *reg = w->reg + block % w->sets * c->side;
	for (uint32_t k = 0; k < c->side; k++)
		there[k] = max_u32(w->zero_at, w->stored[block % w->sets * c->side + k]);
	for (uint32_t step = 0; step < c->steps; step++)
		for (uint32_t k = 0; k < c->side; k++) {
			Micro u = { .op = GOP_XFER,
				        .dst = reg[k],
				        .a = step ? reg[k] : w->zero,
				        .k.u = c->configuration,
				        .rec = recs + step * c->side + k };
			uint32_t t = place(w, u, max_u32(there[k], w->transfer));
			if (t == NOT_FOUND)
				return false;
			note_need(w, t);
			w->transfer = t + c->spacing;
			there[k] = t + (uint32_t)op_latency(w->m, GOP_XFER);
		}
	for (uint32_t k = 0; k < c->side; k++)
		if (!place_end(w, block, k, there[k]))
			return false;
	return true;
}

/* As many blocks as fit; one that does not is removed again. */
static uint32_t place_blocks(Weave *w, uint32_t most)
{
	uint32_t blocks = 0;
	for (; blocks < most; blocks++) {
		uint32_t taken = w->taken;
		double need = w->need;
		w->places = 0;
		if (place_block(w, blocks))
			continue;
		take_back(w);
		w->taken = taken;
		w->need = need;
		break;
	}
	return blocks;
}

static bool place_zero(Weave *w)
{
	uint32_t t = place(
		w, (Micro){ .op = GOP_LOAD, .dst = w->zero, .mem = { 0, TABLE_CONSTANT + K_ZERO }, .rec = w->first_rec }, 0);
	w->zero_at = t + (uint32_t)op_latency(w->m, GOP_LOAD);
	return t != NOT_FOUND;
}

/* ---- the routine ---- */

/* Registers that the routine never uses; false if there are too few for one set. */
static bool find_registers(Weave *w)
{
	uint32_t registers = (uint32_t)w->m->registers, found = 0, wanted = 2 * w->c->side + 1;
	bool *used = NEW(&w->cx->scratch, registers, bool);
	for (uint32_t t = 0; t < w->lines; t++)
		for (int unit = 0; unit < UNITS; unit++) {
			const Micro *u = &w->line[t].slot[unit];
			unsigned uses = u->op == GOP_NONE ? 0 : forms[ops[u->op].form].uses;
			if (uses & USES_DST)
				used[u->dst] = true;
			if (u->op != GOP_NONE && ops[u->op].form == FORM_XFER)
				return false;
		}
	w->reg = NEW(&w->cx->scratch, wanted, uint16_t);
	for (uint32_t i = 0; i < registers && found < wanted; i++)
		if (!used[i])
			w->reg[found++] = (uint16_t)i;
	if (found <= w->c->side)
		return false;
	w->sets = found == wanted ? 2 : 1;
	w->zero = w->reg[found - 1];
	return true;
}

static bool weave_start(Weave *w, const Routine *base, uint32_t most)
{
	const Chain *c = w->c;
	uint32_t each = (c->steps + 1) * (uint32_t)(c->side * c->spacing + w->m->switch_latency + w->m->dram_busy);
	w->lines = base ? base->lines : most / c->side * each + 1000;
	w->line = NEW(&w->cx->keep, w->lines, Line);
	w->port = NEW(&w->cx->scratch, (size_t)w->lines + 2, uint8_t);
	w->sram = NEW(&w->cx->scratch, (size_t)w->lines + 2, uint8_t);
	w->stored = NEW(&w->cx->scratch, 2 * (size_t)c->side, uint32_t);
	w->flushed = NEW(&w->cx->scratch, 2 * (size_t)c->side, uint32_t);
	w->placed = NEW(&w->cx->scratch, (size_t)block_recs(c) + 1, Placed);
	for (uint32_t t = 0; t < w->lines; t++)
		for (int unit = 0; unit < UNITS; unit++) {
			w->line[t].slot[unit] = base ? base->line[t].slot[unit] : (Micro){ .op = GOP_NONE };
			if (base && w->line[t].slot[unit].op != GOP_NONE)
				occupy(w, w->line[t].slot[unit].op, t, 1);
		}
	return find_registers(w);
}

static Code *join_codes(Ctx *cx, const Routine *base, Code *rows)
{
	if (!base)
		return rows;
	Routine added = { .name = rows->name, .code = rows };
	Code *code = code_join(cx, arena_copy(&cx->keep, base->name, strlen(base->name)),
	                       (Routine *const[]){ (Routine *)base, &added }, 2);
	code->index_limit = base->code->index_limit;
	return code;
}

static uint32_t used_lines(const Weave *w)
{
	int64_t end = 0;
	for (uint32_t t = 0; t < w->lines; t++)
		for (int unit = 0; unit < UNITS; unit++) {
			int op = w->line[t].slot[unit].op;
			end = op != GOP_NONE && t + lasts(w, op) > end ? t + lasts(w, op) : end;
		}
	return (uint32_t)end;
}

Woven weave(Ctx *cx, const Machine *m, const Chain *c, const Routine *base, uint32_t most, double rate)
{
	Weave w = { .cx = cx, .m = m, .c = c, .rate = rate, .first_rec = base ? base->code->recs : 0 };
	if (!weave_start(&w, base, most) || !place_zero(&w))
		return (Woven){ 0 };
	uint32_t blocks = place_blocks(&w, most / c->side);
	if (!blocks)
		return (Woven){ 0 };
	Routine *r = NEW(&cx->keep, 1, Routine);
	Code *code = join_codes(cx, base, record_rows(cx, m, c, blocks));
	*r = (Routine){ .name = code->name, .line = w.line, .lines = base ? base->lines : used_lines(&w), .code = code };
	if (base)
		r->report = base->report;
	else
		bound_fill(cx, m, code, &r->report);
	r->report.cycles = r->lines;
	r->report.checked = false;
	r->report.registers += w.sets * c->side + 1;
	r->report.transfers = blocks * c->side * c->steps;
	return (Woven){ r, blocks * c->side, w.need };
}
