/* SPDX-License-Identifier: MIT */
/* Recorder and simulator.  In: calls of instruction functions by a routine written in C.  Out: the list of
 * operations (Code), or, when simulating, their effect on all processors at once (report, section 2).
 *
 * Both modes make the same checks and number registers alike, so a routine that records also simulates.  Operations
 * take effect in call order; the scheduler handles latencies.
 * Must hold: a register or condition is written once, by the call that returns it; only g_move_masked modifies one. */
#include <assert.h>
#include <string.h>

#include "gf11_code.h"

struct Gen {
	Ctx *cx;
	Arena arena; /* freed when the block ends */
	const Machine *m;
	Code code; /* while recording, its lists grow in the arena */
	uint32_t rec_capacity;
	Processors *p;        /* NULL: recording */
	const uint32_t *base; /* NULL: all 0 */
	uint32_t taken;       /* simulating: words consumed of each disk */
	uint32_t *reg;
	uint32_t reg_capacity; /* simulating: register r is reg + r * lanes */
	uint8_t *cond;
	uint32_t cond_capacity;
};

/* ---- checks, the same in both modes ------------------------------------------------------------- */

static void check_made(const Gen *g, const char *what, uint32_t number, uint32_t end)
{
	if (number >= end)
		fail(g->cx, MP_BAD_INPUT, "use only what an earlier call returned", "%s: %s %u is used before it is defined",
		     g->code.name, what, number);
}

static uint32_t base_of(const Gen *g, Addr a) { return g->base && a.base ? g->base[a.base] : 0; }

static void check_address(const Gen *g, const char *memory, int64_t words, Addr a)
{
	if (a.base >= g->m->relocations)
		fail(g->cx, MP_BAD_INPUT, "use fewer address bases, or a machine file with more relocations",
		     "%s: there is no relocation register %u, the machine has %lld", g->code.name, a.base,
		     (long long)g->m->relocations);
	uint64_t at = (uint64_t)base_of(g, a) + a.off;
	if (at >= (uint64_t)words)
		fail(g->cx, MP_BAD_INPUT, "use less memory, or a machine file with more",
		     "%s: address %llu is outside the %lld words of %s", g->code.name, (unsigned long long)at, (long long)words,
		     memory);
}

static void check(const Gen *g, const Rec *r)
{
	unsigned uses = forms[ops[r->op].form].uses;
	if (uses & USES_A)
		check_made(g, "register", r->a, g->code.regs);
	if (uses & USES_B)
		check_made(g, "register", r->b, g->code.regs);
	if (uses & READS_CC)
		check_made(g, "condition", r->cc, g->code.conds);
	if (ops[r->op].form == FORM_MASKED)
		check_made(g, "register", r->dst, g->code.regs);
	if (uses & USES_MEM)
		check_address(g, "SRAM", g->m->sram, r->mem);
	if (g->m->fixed_address == NO_PUT && ops[r->op].form == FORM_PUT)
		fail(g->cx, MP_BAD_INPUT, "use a machine file with fixed-address 0",
		     "%s: %s stores at an address of each processor, which %s cannot", g->code.name, ops[r->op].name,
		     g->m->name ? g->m->name : "this machine");
	if (g->m->fixed_address == NO_INDEX && forms[ops[r->op].form].access[0].indexed)
		fail(g->cx, MP_BAD_INPUT, "compute it, as --sigmoid power2 does, or use a machine file with fixed-address 0",
		     "%s: %s needs indexed addressing, which %s does not have", g->code.name, ops[r->op].name,
		     g->m->name ? g->m->name : "this machine");
	if (uses & USES_FAR) {
		check_address(g, "DRAM", g->m->dram, r->far);
		Addr a = r->far;
		if (base_of(g, a) % g->m->dram_banks)
			fail(g->cx, MP_BAD_INPUT,
			     "set it to a multiple of dram-banks, so that the bank of an address is known beforehand",
			     "%s: relocation register %u holds %u, the machine has %lld DRAM banks", g->code.name, a.base,
			     base_of(g, a), (long long)g->m->dram_banks);
	}
	if (ops[r->op].form == FORM_XFER) {
		uint32_t k = r->k.u;
		int64_t count = !g->p ? g->m->configurations : g->p->sw ? g->p->sw->stored : 0;
		if (k >= count)
			fail(g->cx, MP_BAD_INPUT, "store the configuration first",
			     "%s: there is no switch configuration %u of %lld", g->code.name, k, (long long)count);
	}
}

/* ---- simulating --------------------------------------------------------------------------------- */

static uint32_t *reg_row(const Gen *g, Reg r) { return g->reg + (size_t)r * g->p->lanes; }

static uint8_t *cond_row(const Gen *g, Cond c) { return g->cond + (size_t)c * g->p->lanes; }

static uint32_t *sram_row(const Gen *g, Addr a) { return g->p->sram + ((size_t)base_of(g, a) + a.off) * g->p->lanes; }

static uint32_t *dram_row(const Gen *g, Addr a) { return g->p->dram + ((size_t)base_of(g, a) + a.off) * g->p->lanes; }

static void simulate_alu(Gen *g, const Rec *r)
{
	unsigned uses = forms[ops[r->op].form].uses;
	const uint32_t *a = uses & USES_A ? reg_row(g, r->a) : NULL;
	const uint32_t *b = uses & USES_B ? reg_row(g, r->b) : NULL;
	const uint8_t *cc = uses & READS_CC ? cond_row(g, r->cc) : NULL;
	uint32_t *dst = uses & USES_DST ? reg_row(g, r->dst) : NULL;
	uint8_t *set = uses & WRITES_CC ? cond_row(g, r->dst) : NULL;
	bool masked = ops[r->op].form == FORM_MASKED;
	assert((set || dst) && (!masked || cc));
	for (uint32_t i = 0; i < g->p->lanes; i++) {
		Cell x = { .u = a ? a[i] : 0 }, y = { .u = b ? b[i] : 0 };
		Cell value = op_value(r->op, x, y, cc && cc[i], r->k);
		if (set)
			set[i] = value.u != 0;
		else if (!masked || cc[i])
			dst[i] = value.u;
	}
}

/* Wraps modulo the SRAM size: every computed address is valid. */
static size_t own_address(const Gen *g, Addr mem, uint32_t index)
{
	return (uint32_t)(base_of(g, mem) + mem.off + index) % (uint32_t)g->m->sram;
}

/* Spilling relies on index_limit. */
static void check_reach(const Gen *g, Addr mem, const uint32_t *index)
{
	uint32_t words = g->code.index_limit ? g->code.index_limit[mem.base] : 0;
	for (uint32_t i = 0; i < g->p->procs && words; i++)
		if (mem.off + index[i] >= words)
			fail(g->cx, MP_BAD_INPUT, "keep the index below its limit, or raise the limit",
			     "%s: processor %u accesses word %u under base %u, beyond its index limit of %u", g->code.name, i,
			     mem.off + index[i], mem.base, words);
}

static void simulate_lookup(Gen *g, const Rec *r)
{
	const uint32_t *index = reg_row(g, r->a);
	uint32_t *dst = reg_row(g, r->dst);
	check_reach(g, r->mem, index);
	for (uint32_t i = 0; i < g->p->lanes; i++)
		dst[i] = g->p->sram[own_address(g, r->mem, index[i]) * g->p->lanes + i];
}

static void simulate_put(Gen *g, const Rec *r)
{
	const uint32_t *value = reg_row(g, r->a), *index = reg_row(g, r->b);
	check_reach(g, r->mem, index);
	for (uint32_t i = 0; i < g->p->lanes; i++)
		g->p->sram[own_address(g, r->mem, index[i]) * g->p->lanes + i] = value[i];
}

/* A processor without a sender receives 0; words sent to a port without a processor are lost. */
static void simulate_xfer(Gen *g, const Rec *r)
{
	const uint32_t *a = reg_row(g, r->a);
	uint32_t *dst = reg_row(g, r->dst);
	memset(dst, 0, g->p->lanes * sizeof *dst);
	for (uint32_t i = 0; i < g->p->procs; i++) {
		uint32_t to = processors_receiver(g->p, r->k.u, i);
		if (to != NO_ROUTE)
			dst[to] = a[i];
	}
	for (uint32_t i = 0; i < g->p->disks; i++) {
		uint32_t to = processors_from_disk(g->p, r->k.u, i);
		if (to != NO_ROUTE)
			dst[to] = g->p->disk ? g->p->disk[(size_t)g->taken * g->p->disks + i] : 0;
	}
	g->taken += processors_disks_send(g->p, r->k.u);
}

/* ---- emit --------------------------------------------------------------------------------------- */

/* Common end of all instruction functions; returns the defined register or condition, if any. */
static uint32_t emit(Gen *g, Rec r)
{
	check(g, &r);
	unsigned uses = forms[ops[r.op].form].uses;
	if (uses & WRITES_CC)
		r.dst = g->code.conds++;
	else if (uses & USES_DST && ops[r.op].form != FORM_MASKED)
		r.dst = g->code.regs++;
	if (!g->p) {
		Code *c = &g->code;
		c->rec = list_more(&g->arena, c->rec, c->recs, &g->rec_capacity, sizeof *c->rec);
		c->rec[c->recs++] = r;
		return r.dst;
	}
	size_t lanes = g->p->lanes, row = lanes * sizeof(uint32_t);
	g->reg = list_more(&g->arena, g->reg, g->code.regs, &g->reg_capacity, lanes * sizeof *g->reg);
	g->cond = list_more(&g->arena, g->cond, g->code.conds, &g->cond_capacity, lanes * sizeof *g->cond);
	switch (ops[r.op].form) {
	case FORM_LOAD: memcpy(reg_row(g, r.dst), sram_row(g, r.mem), row); break;
	case FORM_STORE: memcpy(sram_row(g, r.mem), reg_row(g, r.a), row); break;
	case FORM_LOOKUP: simulate_lookup(g, &r); break;
	case FORM_PUT: simulate_put(g, &r); break;
	case FORM_FETCH: memcpy(sram_row(g, r.mem), dram_row(g, r.far), row); break;
	case FORM_FLUSH: memcpy(dram_row(g, r.far), sram_row(g, r.mem), row); break;
	case FORM_XFER: simulate_xfer(g, &r); break;
	default: simulate_alu(g, &r);
	}
	return r.dst;
}

static void gen_free(void *gen)
{
	Gen *g = gen;
	arena_free(&g->arena);
}

static Gen *gen_new(Ctx *cx, const Machine *m, const char *name)
{
	Gen *g = NEW(&cx->keep, 1, Gen);
	g->cx = g->arena.cx = cx;
	g->m = m;
	g->code.name = arena_copy(&cx->keep, name, strlen(name));
	arena_defer(&cx->keep, gen_free, g);
	return g;
}

Gen *gen_record(Ctx *cx, const Machine *m, const char *name) { return gen_new(cx, m, name); }

Gen *gen_simulate(Ctx *cx, Processors *p, const uint32_t *base)
{
	Gen *g = gen_new(cx, p->m, "simulation");
	g->p = p;
	g->base = base;
	return g;
}

const Machine *gen_machine(const Gen *g) { return g->m; }

static void *keep_list(Gen *g, const void *list, uint32_t count, size_t size)
{
	void *kept = arena_alloc(&g->cx->keep, count, size);
	if (count)
		memcpy(kept, list, count * size);
	return kept;
}

Code *gen_end(Gen *g)
{
	Code *code = NULL;
	if (!g->p) {
		code = NEW(&g->cx->keep, 1, Code);
		*code = g->code;
		code->rec = keep_list(g, g->code.rec, code->recs, sizeof *code->rec);
		if (code->index_limit)
			code->index_limit =
				keep_list(g, g->code.index_limit, (uint32_t)g->m->relocations, sizeof *code->index_limit);
	}
	gen_free(g);
	return code;
}

void gen_replay(Gen *g, const Code *code)
{
	assert(!g->code.regs && !g->code.conds);
	for (uint32_t base = 0; code->index_limit && base < g->m->relocations; base++)
		if (code->index_limit[base])
			g_index_limit(g, (uint16_t)base, code->index_limit[base]);
	for (uint32_t i = 0; i < code->recs; i++) {
		uint32_t dst = emit(g, code->rec[i]);
		assert(dst == code->rec[i].dst);
		(void)dst;
	}
}

/* ---- instruction functions ---------------------------------------------------------------------- */

Reg g_op(Gen *g, int op, Reg a, Reg b)
{
	assert(ops[op].form == FORM_RR || ops[op].form == FORM_R);
	return emit(g, (Rec){ .op = (uint8_t)op, .a = a, .b = ops[op].form == FORM_RR ? b : 0 });
}

Reg g_fadd(Gen *g, Reg a, Reg b) { return g_op(g, GOP_FADD, a, b); }
Reg g_fsub(Gen *g, Reg a, Reg b) { return g_op(g, GOP_FSUB, a, b); }
Reg g_fmul(Gen *g, Reg a, Reg b) { return g_op(g, GOP_FMUL, a, b); }

Cond g_compare(Gen *g, int op, Reg a, Reg b)
{
	assert(ops[op].form == FORM_CMP);
	return emit(g, (Rec){ .op = (uint8_t)op, .a = a, .b = b });
}

Reg g_select(Gen *g, Cond c, Reg a, Reg b) { return emit(g, (Rec){ .op = GOP_SELECT, .cc = c, .a = a, .b = b }); }

void g_move_masked(Gen *g, Reg dst, Cond c, Reg a) { emit(g, (Rec){ .op = GOP_MOVEM, .dst = dst, .cc = c, .a = a }); }

Reg g_const(Gen *g, float value) { return emit(g, (Rec){ .op = GOP_CONST, .k.f = value }); }

Reg g_const_bits(Gen *g, uint32_t bits) { return emit(g, (Rec){ .op = GOP_CONST, .k.u = bits }); }

Reg g_load(Gen *g, Addr mem) { return emit(g, (Rec){ .op = GOP_LOAD, .mem = mem }); }

void g_store(Gen *g, Addr mem, Reg a) { emit(g, (Rec){ .op = GOP_STORE, .mem = mem, .a = a }); }

Reg g_lookup(Gen *g, Addr mem, Reg index) { return emit(g, (Rec){ .op = GOP_LOOKUP, .mem = mem, .a = index }); }

void g_put(Gen *g, Addr mem, Reg index, Reg a) { emit(g, (Rec){ .op = GOP_PUT, .mem = mem, .a = a, .b = index }); }

void g_index_limit(Gen *g, uint16_t base, uint32_t words)
{
	check_address(g, "SRAM", g->m->sram, (Addr){ base, words - 1 });
	if (!g->code.index_limit)
		g->code.index_limit = NEW(&g->arena, (size_t)g->m->relocations, uint32_t);
	if (g->code.index_limit[base] < words)
		g->code.index_limit[base] = words;
}

void g_fetch(Gen *g, Addr mem, Addr far) { emit(g, (Rec){ .op = GOP_FETCH, .mem = mem, .far = far }); }

void g_flush(Gen *g, Addr far, Addr mem) { emit(g, (Rec){ .op = GOP_FLUSH, .mem = mem, .far = far }); }

Reg g_xfer(Gen *g, uint32_t configuration, Reg a)
{
	return emit(g, (Rec){ .op = GOP_XFER, .a = a, .k.u = configuration });
}
