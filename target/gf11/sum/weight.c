/* SPDX-License-Identifier: MIT */
/* The rule for one weight, in acts. In: the code of one weight, from its total on. Out: the same code recorded for
 * a weight of a routine, act by act, so that weights can be interleaved.
 *
 * An operation belongs to the act of the time at which it has to be done, seen from the end: what does not depend
 * on the total is not done, and held, too early. Loads and comparisons go with the operation that uses them; what
 * is stored, and the choice of what stays because it is frozen, is the last act. */
#include <assert.h>
#include <string.h>

#include "gf11_sum.h"

enum { ACT_OPERATIONS = 2 };  /* one after the other, in an act */
enum { CONDITION_WAITS = 1 }; /* operations, one after the other, that a condition may wait for */

/* Loaded once for all weights of a routine. */
static bool is_shared(const Rec *c) { return c->op == GOP_CONST || (c->op == GOP_LOAD && c->mem.base == 0); }

static bool is_kept(const SumRule *r, const Rec *c)
{
	return c->op == GOP_STORE || (forms[ops[c->op].form].uses & USES_DST && c->dst >= r->keeps && !is_shared(c));
}

/* Recorded with the operation that uses it. */
static bool goes_along(const Rec *c) { return c->op == GOP_LOAD || ops[c->op].form == FORM_CMP; }

/* by register, by condition; by rec */
typedef struct Times {
	uint32_t *maker, *tester;
	int64_t *early, *late, *when;
} Times;

static int64_t result_time(const Machine *m, const Rec *c)
{
	return c->op == GOP_LOAD || c->op == GOP_CONST ? 0 : op_latency(m, c->op); /* loads have time */
}

/* Operands of a rec: recs that make them. */
static uint32_t makers(const Times *t, const Rec *c, uint32_t *maker)
{
	unsigned uses = forms[ops[c->op].form].uses;
	uint32_t n = 0;
	if (uses & USES_A)
		maker[n++] = t->maker[c->a];
	if (uses & USES_B)
		maker[n++] = t->maker[c->b];
	if (uses & READS_CC)
		maker[n++] = t->tester[c->cc];
	return n;
}

static int64_t early_fill(const Machine *m, const SumRule *r, Times *t)
{
	int64_t end = 0;
	for (uint32_t i = 0; i < r->code->recs; i++) {
		const Rec *c = &r->code->rec[i];
		uint32_t from[3], n = makers(t, c, from);
		for (uint32_t k = 0; k < n; k++) {
			int64_t there = t->early[from[k]] + result_time(m, &r->code->rec[from[k]]);
			t->early[i] = there > t->early[i] ? there : t->early[i];
		}
		if (forms[ops[c->op].form].uses & WRITES_CC)
			t->tester[c->dst] = i;
		else if (forms[ops[c->op].form].uses & USES_DST)
			t->maker[c->dst] = i;
		int64_t there = t->early[i] + result_time(m, c);
		end = !is_kept(r, c) && there > end ? there : end;
	}
	return end;
}

static Times times_new(const Bp *b, const SumRule *r)
{
	Arena *a = &b->cx->scratch;
	uint32_t recs = r->code->recs;
	return (Times){ NEW(a, r->code->regs, uint32_t), NEW(a, r->code->conds, uint32_t), NEW(a, recs, int64_t),
		            NEW(a, recs, int64_t), NEW(a, recs, int64_t) };
}

bool *rule_waits(const Bp *b, const SumRule *r)
{
	Times t = times_new(b, r);
	uint32_t selects = 0;
	bool *waits = NEW(&b->cx->scratch, r->code->recs, bool);
	early_fill(b->m, r, &t);
	for (uint32_t i = 0; i < r->code->recs; i++) {
		const Rec *c = &r->code->rec[i];
		if (c->op == GOP_SELECT)
			waits[selects++] = t.early[i] - t.early[t.tester[c->cc]] > CONDITION_WAITS * b->m->alu_latency;
	}
	return selects ? waits : NULL;
}

static void late_fill(const Machine *m, const SumRule *r, Times *t, int64_t end)
{
	for (uint32_t i = 0; i < r->code->recs; i++)
		t->late[i] = t->when[i] = end - result_time(m, &r->code->rec[i]);
	for (uint32_t i = r->code->recs; i-- > 0;) {
		const Rec *c = &r->code->rec[i];
		uint32_t from[3], n = makers(t, c, from);
		t->when[i] = goes_along(c) ? t->when[i] : t->late[i];
		for (uint32_t k = 0; k < n && !is_kept(r, c); k++) {
			const Rec *maker = &r->code->rec[from[k]];
			int64_t late = t->late[i] - result_time(m, maker);
			t->late[from[k]] = late < t->late[from[k]] ? late : t->late[from[k]];
			t->when[from[k]] = t->when[i] < t->when[from[k]] ? t->when[i] : t->when[from[k]];
		}
	}
}

static void acts_fill(const Machine *m, SumRule *r, const Times *t)
{
	int64_t act = ACT_OPERATIONS * m->alu_latency;
	for (uint32_t i = 0; i < r->code->recs; i++) {
		const Rec *c = &r->code->rec[i];
		r->act[i] = (uint8_t)(is_kept(r, c) || is_shared(c) || t->when[i] < 0 ? 0 : t->when[i] / act);
		r->acts = r->act[i] >= r->acts ? r->act[i] + 1u : r->acts;
	}
	for (uint32_t i = 0; i < r->code->recs; i++)
		if (is_kept(r, &r->code->rec[i]))
			r->act[i] = (uint8_t)r->acts;
	r->acts++;
}

void rule_plan(const Bp *b, SumRule *r)
{
	uint32_t recs = r->code->recs;
	Times t = times_new(b, r);
	r->length = early_fill(b->m, r, &t);
	late_fill(b->m, r, &t, r->length);
	r->act = NEW(&b->cx->keep, recs, uint8_t);
	acts_fill(b->m, r, &t);
	for (uint32_t i = 0; i < recs; i++) {
		const Rec *c = &r->code->rec[i];
		bool given = is_shared(c) || (c->op == GOP_LOAD && c->dst == r->total);
		r->looks_up |= c->op == GOP_LOOKUP;
		r->alu += ops[c->op].unit == UNIT_ALU && !given;
		r->port += given || ops[c->op].unit != UNIT_PORT ? 0 : c->op == GOP_LOOKUP ? 2 : 1;
	}
}

int64_t rule_time(const Bp *b, uint32_t act)
{
	const SumRule *r = b->summing->rule;
	return act + 1 < r->acts ? act * ACT_OPERATIONS * b->m->alu_latency : r->length;
}

/* ---- recording it again ---- */

Rates sum_rates(Gen *g, const Bp *b)
{
	const SumRule *r = b->summing->rule;
	const Code *code = r->code;
	Rates rates = { r, NEW(&b->cx->scratch, code->regs, Reg), NEW(&b->cx->scratch, code->conds, Cond) };
	for (uint32_t i = 0; i < code->recs; i++) {
		const Rec *c = &code->rec[i];
		if (is_shared(c))
			rates.shared[c->dst] = c->op == GOP_CONST ? g_const_bits(g, c->k.u) : g_load(g, c->mem);
	}
	if (r->looks_up)
		g_index_limit(g, 0, TABLE_WORDS);
	return rates;
}

Reg *weight_open(const Bp *b, const Rates *r, Reg total)
{
	Reg *reg = NEW(&b->cx->scratch, r->rule->code->regs, Reg);
	memcpy(reg, r->shared, r->rule->code->regs * sizeof *reg);
	reg[r->rule->total] = total;
	return reg;
}

static Addr kept_word(const Kept *k, uint32_t variable)
{
	return variable == 1 ? k->weight : variable == RULE_FACTOR ? k->factor : k->state[variable - 2];
}

static void rec_replay(Gen *g, const Rates *r, const Kept *k, Reg *reg, const Rec *c)
{
	switch (ops[c->op].form) {
	case FORM_RR: reg[c->dst] = g_op(g, c->op, reg[c->a], reg[c->b]); break;
	case FORM_R: reg[c->dst] = g_op(g, c->op, reg[c->a], 0); break;
	case FORM_CMP: r->cond[c->dst] = g_compare(g, c->op, reg[c->a], reg[c->b]); break;
	case FORM_SELECT: reg[c->dst] = g_select(g, r->cond[c->cc], reg[c->a], reg[c->b]); break;
	case FORM_LOOKUP: reg[c->dst] = g_lookup(g, c->mem, reg[c->a]); break;
	case FORM_LOAD: reg[c->dst] = g_load(g, kept_word(k, c->mem.off)); break;
	case FORM_STORE: g_store(g, kept_word(k, c->mem.off), reg[c->a]); break;
	default: assert(!"an operation that no rule is made of");
	}
}

void weight_act(Gen *g, const Rates *r, const Kept *k, Reg *reg, uint32_t act)
{
	const Code *code = r->rule->code;
	for (uint32_t i = 0; i < code->recs; i++) {
		const Rec *c = &code->rec[i];
		bool given = is_shared(c) || (c->op == GOP_LOAD && c->dst == r->rule->total);
		if (r->rule->act[i] == act && !given)
			rec_replay(g, r, k, reg, c);
	}
}

void weight_update(Gen *g, const Bp *b, const Rates *r, const Kept *k, Reg total)
{
	Reg *reg = weight_open(b, r, total);
	for (uint32_t act = 0; act < r->rule->acts; act++)
		weight_act(g, r, k, reg, act);
}
