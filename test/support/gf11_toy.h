/* SPDX-License-Identifier: MIT */
/* For tests of microwords: a machine with short pipelines, random programs, and one processor that runs either the
 * recording in its order or the microwords cycle by cycle, written as plainly as the rules allow. */
#ifndef GF11_TOY_H
#define GF11_TOY_H

#include "test.h"

#include "gf11_short.h"
#include "gf11_sim.h"

enum {
	TOY_SRAM = 256,
	TOY_DRAM = 256,
	TOY_REGISTERS = 64,
	TOY_CONDITIONS = 8,
	TOY_BASES = 3,
	TOY_OFFSETS = 8,
	TOY_SPILL = 192,
	TOY_MOST = 512
}; /* spilled words start at TOY_SPILL */
static const uint32_t toy_base[TOY_BASES] = { 0, 64, 128 };

static inline Machine toy_machine(void)
{
	return (Machine){ .name = "toy",
		              .processors = 1,
		              .registers = TOY_REGISTERS,
		              .sram = TOY_SRAM,
		              .dram = TOY_DRAM,
		              .conditions = TOY_CONDITIONS,
		              .relocations = TOY_BASES,
		              SHORT_PIPELINES,
		              .switch_ports = 4,
		              .crossbar = 2,
		              .configurations = 4,
		              .microcode = 4096,
		              .block = 1024 };
}

/* ---- random programs ---- */

typedef struct Dice {
	uint64_t seed, count;
} Dice;
static inline uint32_t roll(Dice *d, uint32_t n) { return (uint32_t)random_below(d->seed, STREAM_DATA, d->count++, n); }

static inline Addr toy_address(Dice *d) { return (Addr){ (uint16_t)roll(d, TOY_BASES), roll(d, TOY_OFFSETS) }; }

typedef struct Toy {
	Gen *g;
	Dice d;
	Reg reg[TOY_MOST];
	uint32_t regs;
	Cond cond[TOY_MOST];
	uint32_t conds;
} Toy;

static inline Reg toy_any(Toy *t) { return t->reg[roll(&t->d, t->regs)]; }

static inline void toy_keep(Toy *t, Reg r) { t->reg[t->regs++] = r; }

static inline void toy_alu(Toy *t)
{
	static const uint8_t some[] = { GOP_IADD, GOP_ISUB, GOP_XOR, GOP_IMUL, GOP_FADD, GOP_FMUL, GOP_MOVE, GOP_FNEG };
	uint8_t op = some[roll(&t->d, COUNT(some))];
	toy_keep(t, g_op(t->g, op, toy_any(t), toy_any(t)));
}

/* Indexed accesses stay near their base, as the rules of memory order require. */
static inline void toy_index(Toy *t)
{
	Reg mask = g_const_bits(t->g, TOY_OFFSETS - 1), index = g_op(t->g, GOP_AND, toy_any(t), mask);
	bool read = roll(&t->d, 2);
	Addr table = toy_address(&t->d);
	g_index_limit(t->g, table.base, 2 * TOY_OFFSETS);
	if (read)
		toy_keep(t, g_lookup(t->g, table, index));
	else
		g_put(t->g, table, index, toy_any(t));
}

static inline void toy_condition(Toy *t)
{
	if (t->conds == 0 || (roll(&t->d, 2) && t->conds < TOY_CONDITIONS))
		t->cond[t->conds++] = g_compare(t->g, roll(&t->d, 2) ? GOP_INT_LT : GOP_INT_EQ, toy_any(t), toy_any(t));
	else if (roll(&t->d, 2))
		toy_keep(t, g_select(t->g, t->cond[roll(&t->d, t->conds)], toy_any(t), toy_any(t)));
	else
		g_move_masked(t->g, toy_any(t), t->cond[roll(&t->d, t->conds)], toy_any(t));
}

/* About `size` operations; ends by storing, so that results show. */
static inline Code *toy_program(Ctx *cx, const Machine *m, uint64_t seed, uint32_t size)
{
	Toy t = { .g = gen_record(cx, m, "toy"), .d = { seed, 0 } };
	toy_keep(&t, g_load(t.g, toy_address(&t.d)));
	toy_keep(&t, g_const_bits(t.g, roll(&t.d, 1000)));
	for (uint32_t i = 3; i < size; i++) {
		switch (roll(&t.d, 12)) {
		case 0:
		case 1:
		case 2: toy_alu(&t); break;
		case 3: toy_condition(&t); break;
		case 4: toy_index(&t); break;
		case 5:
		case 6: toy_keep(&t, g_load(t.g, toy_address(&t.d))); break;
		case 7:
		case 8: g_store(t.g, toy_address(&t.d), toy_any(&t)); break;
		case 9: g_fetch(t.g, toy_address(&t.d), toy_address(&t.d)); break;
		case 10: g_flush(t.g, toy_address(&t.d), toy_address(&t.d)); break;
		default: toy_keep(&t, g_xfer(t.g, roll(&t.d, 4), toy_any(&t)));
		}
	}
	g_store(t.g, toy_address(&t.d), t.reg[t.regs - 1]);
	return gen_end(t.g);
}

/* ---- one processor ---- */

typedef struct Memory {
	uint32_t sram[TOY_SRAM], dram[TOY_DRAM];
} Memory;

static inline void memory_fill(Memory *m, uint64_t seed)
{
	for (uint32_t i = 0; i < TOY_SRAM; i++)
		m->sram[i] = (uint32_t)random_below(seed, STREAM_DATA, i, 1000);
	for (uint32_t i = 0; i < TOY_DRAM; i++)
		m->dram[i] = (uint32_t)random_below(seed, STREAM_DATA, TOY_SRAM + i, 1000);
}

static inline bool memory_same(const Memory *a, const Memory *b)
{
	return memcmp(a->sram, b->sram, TOY_SPILL * sizeof *a->sram) == 0 && memcmp(a->dram, b->dram, sizeof a->dram) == 0;
}

/* What one operation does: reads at once, writes through the pointers when its time comes. */
typedef struct Effect {
	uint32_t done;
	uint32_t *word;
	uint8_t *cond;
	uint32_t value;
} Effect;

static inline uint32_t *toy_word(uint32_t *memory, Addr a, uint32_t index)
{
	return &memory[(toy_base[a.base] + a.off + index) % TOY_SRAM];
}

/* A word sent through the switch comes back as one that depends on word and configuration. */
static inline Effect toy_effect(int op, uint32_t a, uint32_t b, bool cc, Addr mem, Addr far, Cell k, Memory *m)
{
	switch (ops[op].form) {
	case FORM_LOAD: return (Effect){ .value = *toy_word(m->sram, mem, 0) };
	case FORM_STORE: return (Effect){ .value = a, .word = toy_word(m->sram, mem, 0) };
	case FORM_LOOKUP: return (Effect){ .value = *toy_word(m->sram, mem, a) };
	case FORM_PUT: return (Effect){ .value = a, .word = toy_word(m->sram, mem, b) };
	case FORM_FETCH: return (Effect){ .value = *toy_word(m->dram, far, 0), .word = toy_word(m->sram, mem, 0) };
	case FORM_FLUSH: return (Effect){ .value = *toy_word(m->sram, mem, 0), .word = toy_word(m->dram, far, 0) };
	case FORM_XFER: return (Effect){ .value = a * 2654435761u + k.u };
	default: return (Effect){ .value = op_value(op, (Cell){ .u = a }, (Cell){ .u = b }, cc, k).u };
	}
}

static inline void run_recorded(const Code *code, Memory *m)
{
	uint32_t reg[TOY_MOST] = { 0 };
	uint8_t cond[TOY_MOST] = { 0 };
	for (uint32_t i = 0; i < code->recs; i++) {
		const Rec *r = &code->rec[i];
		unsigned uses = forms[ops[r->op].form].uses;
		Effect e = toy_effect(r->op, uses & USES_A ? reg[r->a] : 0, uses & USES_B ? reg[r->b] : 0,
		                      uses & READS_CC && cond[r->cc], r->mem, r->far, r->k, m);
		if (e.word)
			*e.word = e.value;
		else if (uses & WRITES_CC)
			cond[r->dst] = e.value != 0;
		else if (ops[r->op].form != FORM_MASKED || cond[r->cc])
			reg[r->dst] = e.value;
	}
}

static inline void run_microwords(const Machine *mc, const Routine *r, Memory *m)
{
	uint32_t reg[TOY_REGISTERS] = { 0 }, count = 0;
	uint8_t cond[TOY_CONDITIONS] = { 0 };
	static Effect effect[TOY_MOST * 4];
	for (uint32_t t = 0; t <= r->lines; t++) {
		for (uint32_t i = 0; i < count; i++) {
			Effect *e = &effect[i];
			if (e->done == t && e->word)
				*e->word = e->value;
			else if (e->done == t && e->cond)
				*e->cond = e->value != 0;
		}
		for (int unit = 0; unit < UNITS && t < r->lines; unit++) {
			const Micro *u = &r->line[t].slot[unit];
			if (u->op == GOP_NONE)
				continue;
			unsigned uses = forms[ops[u->op].form].uses;
			bool cc = uses & READS_CC && cond[u->cc];
			Effect e = toy_effect(u->op, uses & USES_A ? reg[u->a] : 0, uses & USES_B ? reg[u->b] : 0, cc, u->mem,
			                      u->far, u->k, m);
			e.done = t + (uint32_t)op_latency(mc, u->op);
			if (uses & WRITES_CC)
				e.cond = &cond[u->cc];
			else if (uses & USES_DST && (ops[u->op].form != FORM_MASKED || cc))
				e.word = &reg[u->dst];
			assert_true(count < COUNT(effect));
			effect[count++] = e;
		}
	}
}

#endif
