/* SPDX-License-Identifier: MIT */
/* Checker: does a routine obey the rules of the machine, and does it compute what was recorded?
 * In: microwords, with their recording if there is one.  Out: the first violation as a message, or NULL.
 * Must hold: it reads the tables of operations and machine and shares no code with the scheduler, so that a bug must
 * occur twice to pass.
 *
 *   fields     valid units, registers, conditions, addresses, configurations
 *   end        every result is written and every resource free when the last line ends
 *   resources  initiation intervals, port, memory accesses, banks: the table of forms in gf11_machine.h
 *   values     cycle by cycle, the definition of every value in a register: no undefined reads, no colliding writes
 *   recording  each recorded operation is issued once, reads the recorded values, and preserves the order of reads and
 *              writes of each memory word
 *
 * Memory words alias if base and offset are equal; an indexed access aliases every word of its base, and, if the
 * recording allows overlapping bases, any access aliases the words of other bases.  Only spill slots alias nothing
 * else; execute_bad_bases keeps other regions below them. */
#include <stdlib.h>
#include <string.h>

#include "gf11_code.h"

#define NONE  UINT32_MAX /* no value, no operation, not recorded */
#define GIVEN (NONE - 1) /* the value that the host has set */

typedef struct Issue { /* one operation, in the order of lines and columns */
	const Micro *micro;
	uint32_t at, done; /* issue cycle; first cycle that can use the result */
	uint32_t value;    /* recorded operation whose result it carries: itself, or the spilled one */
	uint32_t word[2];  /* memory words accessed, as in forms[].access */
	uint8_t unit, form;
} Issue;

typedef struct Expected {
	uint32_t a, b, cc, old;
} Expected; /* definitions that an operation must read */

typedef struct Checker {
	Ctx *cx;
	const Machine *m;
	const Routine *r;
	const Code *code; /* NULL: machine rules only */
	Issue *issue;
	uint32_t issues;
	uint32_t *by_done;  /* issues in order of write-back */
	uint32_t words;     /* number of distinct memory words */
	Expected *expected; /* [recs] */
	uint32_t *issue_of; /* [recs] */
} Checker;

/* ---- initiation intervals ----------------------------------------------------------------------- */

static const size_t intervals[UNITS] = {
	/* offset of the parameter; the port has none */
	[UNIT_ALU] = offsetof(Machine, alu_interval),
	[UNIT_DRAM] = offsetof(Machine, dram_interval),
	[UNIT_SWITCH] = offsetof(Machine, switch_interval),
};

static int64_t unit_interval(const Machine *m, int unit)
{
	return unit == UNIT_PORT ? 1 : *(const int64_t *)(const void *)((const char *)m + intervals[unit]);
}

/* ---- messages ----------------------------------------------------------------------------------- */

static void name_recorded(const Checker *c, Buf *b, uint32_t rec)
{
	if (c->code && rec < c->code->recs)
		buf_printf(b, "%s of recorded operation %u", ops[c->code->rec[rec].op].name, rec);
	else
		buf_puts(b, "nothing");
}

/* i NULL: of no operation */
PRINTF_LIKE(3, 4)
static const char *fault_at(const Checker *c, const Issue *i, const char *fmt, ...)
{
	Buf b = { .arena = &c->cx->scratch };
	buf_puts(&b, c->r->name ? c->r->name : "routine");
	if (i)
		buf_printf(&b, ": cycle %u, %s", i->at, unit_names[i->unit]);
	if (i && i->micro->op < GOPS)
		buf_printf(&b, ", %s", ops[i->micro->op].name);
	if (i && c->code)
		buf_printf(&b, i->micro->rec == NONE ? " (spill)" : " (recorded operation %u)", i->micro->rec);
	buf_puts(&b, ": ");
	va_list ap;
	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	return b.s;
}

/* ---- fields ------------------------------------------------------------------------------------- */

static const char *check_address(const Checker *c, const Issue *i, bool dram)
{
	Addr a = dram ? i->micro->far : i->micro->mem;
	int64_t words = dram ? c->m->dram : c->m->sram;
	if (a.base >= c->m->relocations)
		return fault_at(c, i, "there is no relocation register %u, the machine has %lld", a.base,
		                (long long)c->m->relocations);
	if (a.off >= words)
		return fault_at(c, i, "offset %u is outside the %lld words of %s", a.off, (long long)words,
		                dram ? "DRAM" : "SRAM");
	return NULL;
}

static const char *check_numbers(const Checker *c, const Issue *i)
{
	const Micro *u = i->micro;
	unsigned uses = forms[i->form].uses;
	const uint32_t reg[] = { uses & USES_DST ? u->dst : 0, uses & USES_A ? u->a : 0, uses & USES_B ? u->b : 0 };
	for (size_t k = 0; k < COUNT(reg); k++)
		if (reg[k] >= c->m->registers)
			return fault_at(c, i, "there is no register %u, the machine has %lld", reg[k], (long long)c->m->registers);
	if (uses & (READS_CC | WRITES_CC) && u->cc >= c->m->conditions)
		return fault_at(c, i, "there is no condition code %u, the machine has %lld", u->cc,
		                (long long)c->m->conditions);
	if (c->m->fixed_address == NO_PUT && i->form == FORM_PUT)
		return fault_at(c, i, "the machine has no indexed stores");
	if (c->m->fixed_address == NO_INDEX && forms[i->form].access[0].indexed)
		return fault_at(c, i, "the machine has no indexed addressing");
	if (i->form == FORM_XFER && u->k.u >= c->m->configurations)
		return fault_at(c, i, "there is no switch configuration %u, the machine holds %lld", u->k.u,
		                (long long)c->m->configurations);
	const char *why = uses & USES_MEM ? check_address(c, i, false) : NULL;
	return !why && uses & USES_FAR ? check_address(c, i, true) : why;
}

static const char *check_micro(const Checker *c, uint32_t cycle, int unit, const Micro *u)
{
	Issue i = { .micro = u, .at = cycle, .unit = (uint8_t)unit };
	if (u->op >= GOPS)
		return fault_at(c, &i, "there is no operation of number %u", u->op);
	if (ops[u->op].unit != unit)
		return fault_at(c, &i, "this operation belongs to unit %s", unit_names[ops[u->op].unit]);
	i.form = ops[u->op].form;
	return check_numbers(c, &i);
}

/* Also counts the issues. */
static const char *check_fields(Checker *c)
{
	const Routine *r = c->r;
	if (r->lines > c->m->block)
		return fault_at(c, NULL, "%u lines are more than the %lld of a block", r->lines, (long long)c->m->block);
	for (uint32_t t = 0; t < r->lines; t++) {
		for (int unit = 0; unit < UNITS; unit++) {
			const Micro *u = &r->line[t].slot[unit];
			if (u->op == GOP_NONE)
				continue;
			const char *why = check_micro(c, t, unit, u);
			if (why)
				return why;
			c->issues++;
		}
	}
	return NULL;
}

/* ---- issues and the memory words they access ----------------------------------------------------- */

/* an access, and where to store the number of its word */
typedef struct WordRef {
	bool dram;
	Addr at;
	uint32_t *number;
} WordRef;

static int word_compare(const void *a, const void *b)
{
	const WordRef *x = a, *y = b;
	if (x->dram != y->dram)
		return x->dram - y->dram;
	if (x->at.base != y->at.base)
		return x->at.base - y->at.base;
	return (x->at.off > y->at.off) - (x->at.off < y->at.off);
}

/* Numbers words in address order. */
static void number_words(Checker *c)
{
	WordRef *word = NEW(&c->cx->scratch, 2 * (size_t)c->issues, WordRef);
	size_t refs = 0;
	for (uint32_t n = 0; n < c->issues; n++) {
		Issue *i = &c->issue[n];
		for (int k = 0; k < 2; k++) {
			const MemAccess *access = &forms[i->form].access[k];
			if (access->is)
				word[refs++] = (WordRef){ access->dram, access->dram ? i->micro->far : i->micro->mem, &i->word[k] };
		}
	}
	if (refs)
		qsort(word, refs, sizeof *word, word_compare);
	for (size_t k = 0; k < refs; k++) {
		if (k == 0 || word_compare(&word[k - 1], &word[k]))
			c->words++;
		*word[k].number = c->words - 1;
	}
}

/* ---- end ---------------------------------------------------------------------------------------- */

static const char *check_end(const Checker *c)
{
	for (uint32_t n = 0; n < c->issues; n++) {
		const Issue *i = &c->issue[n];
		if (i->done > c->r->lines)
			return fault_at(c, i, "its result is available in cycle %u, after the routine's %u lines", i->done,
			                c->r->lines);
		int64_t busy = unit_interval(c->m, i->unit);
		if (i->unit == UNIT_DRAM && c->m->dram_busy > busy)
			busy = c->m->dram_busy;
		if (forms[i->form].port & AT_NEXT)
			busy = 2;
		if (i->at + busy > c->r->lines)
			return fault_at(c, i, "it is busy until cycle %lld, after the routine's %u lines",
			                (long long)(i->at + busy), c->r->lines);
	}
	return NULL;
}

/* ---- resources ---------------------------------------------------------------------------------- */

/* Marks the cycles in which issue n occupies an exclusive resource; user[cycle]: issue + 1. */
static const char *take(const Checker *c, uint32_t *user, uint32_t n, unsigned when, const char *what)
{
	const Issue *i = &c->issue[n];
	const uint32_t cycle[] = { i->at, i->at + 1, i->done - 1 };
	for (unsigned k = 0; k < COUNT(cycle); k++) {
		uint32_t *u = &user[cycle[k]];
		if (!(when & 1u << k) || *u == n + 1)
			continue;
		if (*u)
			return fault_at(c, i, "resource conflict: %s in cycle %u is used by %s of cycle %u", what, cycle[k],
			                ops[c->issue[*u - 1].micro->op].name, c->issue[*u - 1].at);
		*u = n + 1;
	}
	return NULL;
}

static const char *check_accesses(const Checker *c)
{
	uint32_t *port = NEW(&c->cx->scratch, (size_t)c->r->lines + 2, uint32_t);
	uint32_t *sram = NEW(&c->cx->scratch, (size_t)c->r->lines + 2, uint32_t);
	for (uint32_t n = 0; n < c->issues; n++) {
		const char *why = take(c, port, n, forms[c->issue[n].form].port, "the register port");
		if (!why)
			why = take(c, sram, n, forms[c->issue[n].form].sram, "static memory");
		if (why)
			return why;
	}
	int64_t free_at = 0;
	for (uint32_t t = 0; t <= c->r->lines; t++) {
		if (!sram[t])
			continue;
		const Issue *i = &c->issue[sram[t] - 1];
		if (t < free_at)
			return fault_at(c, i, "resource conflict: static memory in cycle %u is busy until cycle %lld", t,
			                (long long)free_at);
		free_at = t + c->m->sram_interval;
		if (free_at > c->r->lines)
			return fault_at(c, i, "it keeps SRAM busy until cycle %lld, after the %u lines", (long long)free_at,
			                c->r->lines);
	}
	return NULL;
}

static const char *check_starts(const Checker *c)
{
	int64_t unit_free[UNITS] = { 0 };
	int64_t *bank_free = NEW(&c->cx->scratch, (size_t)c->m->dram_banks, int64_t);
	for (uint32_t n = 0; n < c->issues; n++) {
		const Issue *i = &c->issue[n];
		if (i->at < unit_free[i->unit])
			return fault_at(c, i, "resource conflict: the unit can start again in cycle %lld",
			                (long long)unit_free[i->unit]);
		unit_free[i->unit] = i->at + unit_interval(c->m, i->unit);
		if (i->unit != UNIT_DRAM)
			continue;
		uint32_t bank = i->micro->far.off % (uint32_t)c->m->dram_banks;
		if (i->at < bank_free[bank])
			return fault_at(c, i, "bank conflict: bank %u is busy until cycle %lld", bank, (long long)bank_free[bank]);
		bank_free[bank] = i->at + c->m->dram_busy;
	}
	return NULL;
}

/* ---- recording: the values each operation must read ---------------------------------------------- */

static bool same_addr(Addr a, Addr b) { return a.base == b.base && a.off == b.off; }

/* Each recorded operation is issued once, with its addresses and constants; the rest must be spill operations. */
static const char *check_issued(Checker *c)
{
	const Code *code = c->code;
	c->issue_of = NEW(&c->cx->scratch, code->recs, uint32_t);
	memset(c->issue_of, 0xFF, code->recs * sizeof *c->issue_of);
	for (uint32_t n = 0; n < c->issues; n++) {
		const Issue *i = &c->issue[n];
		const Micro *u = i->micro;
		if (u->rec == NONE) {
			if (u->op != GOP_LOAD && u->op != GOP_STORE && u->op != GOP_MOVE)
				return fault_at(c, i, "it was not recorded and is not a spill operation");
			continue;
		}
		if (u->rec >= code->recs)
			return fault_at(c, i, "only %u operations were recorded", code->recs);
		const Rec *r = &code->rec[u->rec];
		unsigned uses = forms[i->form].uses;
		if (u->op != r->op)
			return fault_at(c, i, "the recorded operation is %s", ops[r->op].name);
		if ((uses & USES_MEM && !same_addr(u->mem, r->mem)) || (uses & USES_FAR && !same_addr(u->far, r->far)))
			return fault_at(c, i, "its address differs from the recorded one");
		if (uses & USES_K && u->k.u != r->k.u)
			return fault_at(c, i, "0x%08x was recorded, not 0x%08x", r->k.u, u->k.u);
		if (c->issue_of[u->rec] != NONE)
			return fault_at(c, i, "it was issued already, in cycle %u", c->issue[c->issue_of[u->rec]].at);
		c->issue_of[u->rec] = n;
	}
	for (uint32_t k = 0; k < code->recs; k++)
		if (c->issue_of[k] == NONE)
			return fault_at(c, NULL, "recorded operation %u, %s, is not issued", k, ops[code->rec[k].op].name);
	return NULL;
}

/* ---- values ------------------------------------------------------------------------------------- */

typedef struct RegState {
	uint32_t value, since;
} RegState; /* definition; cycle of write-back, plus 1 */
typedef struct Values {
	RegState *reg, *cond, *word; /* word: last write; value for spill slots only */
	uint8_t *spill;              /* [words] 1: used by the recording, 2: spill slot, 3: both (invalid) */
} Values;

static const char *read_value(const Checker *c, const Issue *i, char kind, uint32_t number, uint32_t value,
                              uint32_t expected)
{
	if (value == NONE)
		return fault_at(c, i, "it reads %c%u, which is undefined here", kind, number);
	if (!c->code || i->micro->rec == NONE || value == expected)
		return NULL;
	Buf b = { .arena = &c->cx->scratch };
	buf_printf(&b, "it reads %c%u, which holds the result of ", kind, number);
	name_recorded(c, &b, value);
	buf_puts(&b, ", not of ");
	name_recorded(c, &b, expected);
	return fault_at(c, i, "%s", b.s);
}

/* A reload yields the value last stored in its slot. */
static const char *read_spill(const Checker *c, Values *v, Issue *i)
{
	const Micro *u = i->micro;
	if (u->op == GOP_LOAD) {
		i->value = v->word[i->word[0]].value;
		if (i->value == NONE)
			return fault_at(c, i, "it reloads from a spill slot that holds no value yet");
	} else {
		i->value = v->reg[u->a].value;
	}
	return NULL;
}

static const char *read_operands(const Checker *c, Values *v, Issue *i)
{
	const Micro *u = i->micro;
	unsigned uses = forms[i->form].uses;
	const Expected none = { NONE, NONE, NONE, NONE };
	bool moves = c->code && u->rec == NONE;
	const Expected *expected = c->code && !moves ? &c->expected[u->rec] : &none;
	const char *why = NULL;
	if (uses & USES_A)
		why = read_value(c, i, 'r', u->a, v->reg[u->a].value, expected->a);
	if (!why && uses & USES_B)
		why = read_value(c, i, 'r', u->b, v->reg[u->b].value, expected->b);
	if (!why && uses & READS_CC)
		why = read_value(c, i, 'c', u->cc, v->cond[u->cc].value, expected->cc);
	return !why && moves ? read_spill(c, v, i) : why;
}

static const char *write_back_to(const Checker *c, const Issue *i, RegState *h, const char *where, uint32_t number)
{
	if (h->since == i->done + 1)
		return fault_at(c, i, "two results are written to %s%u in cycle %u", where, number, i->done);
	*h = (RegState){ i->value, i->done + 1 };
	return NULL;
}

static const char *write_back(const Checker *c, Values *v, const Issue *i)
{
	const Micro *u = i->micro;
	unsigned uses = forms[i->form].uses;
	const char *why = NULL;
	if (i->form == FORM_MASKED) /* where the condition is 0 the old value is kept */
		why = read_value(c, i, 'r', u->dst, v->reg[u->dst].value, c->code ? c->expected[u->rec].old : NONE);
	if (!why && uses & USES_DST)
		why = write_back_to(c, i, &v->reg[u->dst], "r", u->dst);
	if (!why && uses & WRITES_CC)
		why = write_back_to(c, i, &v->cond[u->cc], "c", u->cc);
	for (int k = 0; k < 2 && !why; k++) {
		const MemAccess *access = &forms[i->form].access[k];
		if (access->is && access->write && !access->indexed)
			why = write_back_to(c, i, &v->word[i->word[k]], access->dram ? "DRAM word " : "SRAM word ",
			                    access->dram ? u->far.off : u->mem.off);
	}
	return why;
}

/* Spill slots are exclusive: no recorded address and no index may refer to them. */
static const char *check_slot(const Checker *c, Values *v, const Issue *i)
{
	bool moves = i->micro->rec == NONE;
	for (int k = 0; k < 2; k++) {
		if (!forms[i->form].access[k].is)
			continue;
		v->spill[i->word[k]] |= moves ? 2 : 1;
		if (v->spill[i->word[k]] == 3)
			return fault_at(c, i, "the spill slot is at an address that the routine uses");
	}
	if (moves && i->form != FORM_R && i->micro->mem.base)
		return fault_at(c, i, "the spill slot is at a relocated address");
	if (moves && i->form != FORM_R && c->code->index_limit && i->micro->mem.off < c->code->index_limit[0])
		return fault_at(c, i, "the spill slot is among the first %u words, which indexed accesses reach",
		                c->code->index_limit[0]);
	return NULL;
}

static const char *check_slots(const Checker *c, Values *v)
{
	bool spills = false;
	for (uint32_t n = 0; n < c->issues && c->code; n++) {
		const char *why = check_slot(c, v, &c->issue[n]);
		if (why)
			return why;
		spills |= c->issue[n].micro->rec == NONE;
	}
	for (uint32_t n = 0; n < c->issues && spills; n++) {
		const Issue *i = &c->issue[n];
		if (forms[i->form].access[0].indexed && !(c->code->index_limit && c->code->index_limit[i->micro->mem.base]))
			return fault_at(c, i, "its index may reach spill slots: the recording gives no index limit");
	}
	return NULL;
}

static RegState *states_new(const Checker *c, size_t count)
{
	RegState *h = NEW(&c->cx->scratch, count, RegState);
	for (size_t i = 0; i < count; i++)
		h[i].value = NONE;
	return h;
}

static const char *check_values(Checker *c)
{
	Values v = { states_new(c, (size_t)c->m->registers), states_new(c, (size_t)c->m->conditions),
		         states_new(c, c->words), NEW(&c->cx->scratch, c->words, uint8_t) };
	for (int64_t i = 0; c->r->given && i < c->m->registers + c->m->conditions; i++)
		if (c->r->given[i])
			*(i < c->m->registers ? &v.reg[i] : &v.cond[i - c->m->registers]) = (RegState){ .value = GIVEN };
	const char *why = check_slots(c, &v);
	uint32_t issued = 0, done = 0;
	for (uint32_t t = 0; t <= c->r->lines && !why; t++) {
		for (; done < c->issues && c->issue[c->by_done[done]].done == t && !why; done++)
			why = write_back(c, &v, &c->issue[c->by_done[done]]);
		for (; issued < c->issues && c->issue[issued].at == t && !why; issued++)
			why = read_operands(c, &v, &c->issue[issued]);
	}
	return why;
}

/* ---- recording: order of memory ----------------------------------------------------------------- */

typedef struct LatestAccess {
	uint32_t at, rec;
} LatestAccess; /* latest cycle, plus 1, and its operation; 0: none */
typedef struct Accesses {
	LatestAccess read, write;
} Accesses; /* by the recorded operations so far */
typedef struct MemoryOrder {
	Accesses *word, *indexed[2], *all[2];
} MemoryOrder; /* by word; by memory and base */

static void accesses_add(Accesses *s, bool write, uint32_t cycle, uint32_t rec)
{
	LatestAccess *p = write ? &s->write : &s->read;
	if (cycle + 1 > p->at)
		*p = (LatestAccess){ cycle + 1, rec };
}

/* An access in `cycle` (of the read, or of the write-back) must follow all accesses in s. */
static const char *check_after(const Checker *c, const Issue *i, const Accesses *s, bool write, uint32_t cycle)
{
	const Rec *rec = c->code->rec;
	if (s->write.at && (write ? cycle + 1 <= s->write.at : cycle + 1 < s->write.at))
		return fault_at(c, i, "it %s memory in cycle %u, recorded operation %u, %s, only in cycle %u",
		                write ? "writes" : "reads", cycle, s->write.rec, ops[rec[s->write.rec].op].name,
		                s->write.at - 1);
	if (write && s->read.at && cycle + 1 <= s->read.at)
		return fault_at(c, i, "it writes memory in cycle %u, recorded operation %u, %s, reads it in cycle %u", cycle,
		                s->read.rec, ops[rec[s->read.rec].op].name, s->read.at - 1);
	return NULL;
}

static const char *check_access(const Checker *c, MemoryOrder *o, uint32_t rec, int k)
{
	const Issue *i = &c->issue[c->issue_of[rec]];
	const MemAccess *access = &forms[i->form].access[k];
	uint32_t base = access->dram ? i->micro->far.base : i->micro->mem.base;
	uint32_t cycle = access->write ? i->done : i->at;
	Accesses *all = &o->all[access->dram][base], *indexed = &o->indexed[access->dram][base],
			 *word = &o->word[i->word[k]];
	const char *why = check_after(c, i, access->indexed ? all : indexed, access->write, cycle);
	if (!why && !access->indexed)
		why = check_after(c, i, word, access->write, cycle);
	for (uint32_t other = 0; c->code->bases_overlap && other < c->m->relocations && !why; other++)
		if (other != base)
			why = check_after(c, i, &o->all[access->dram][other], access->write, cycle);
	accesses_add(all, access->write, cycle, rec);
	accesses_add(access->indexed ? indexed : word, access->write, cycle, rec);
	return why;
}

static const char *check_memory(const Checker *c)
{
	size_t bases = (size_t)c->m->relocations;
	MemoryOrder o = { .word = NEW(&c->cx->scratch, c->words, Accesses) };
	for (int dram = 0; dram < 2; dram++) {
		o.indexed[dram] = NEW(&c->cx->scratch, bases, Accesses);
		o.all[dram] = NEW(&c->cx->scratch, bases, Accesses);
	}
	const char *why = NULL;
	for (uint32_t rec = 0; rec < c->code->recs && !why; rec++)
		for (int k = 0; k < 2 && !why; k++)
			if (forms[ops[c->code->rec[rec].op].form].access[k].is)
				why = check_access(c, &o, rec, k);
	return why;
}

/* ---- driver ------------------------------------------------------------------------------------- */

const char *check_routine(Ctx *cx, const Machine *m, const Routine *r)
{
	Checker c = { .cx = cx, .m = m, .r = r, .code = r->code };
	const char *why = check_fields(&c);
	if (why)
		return why;
	/* Issues in the order of lines and columns. */
	c.issue = NEW(&c.cx->scratch, c.issues, Issue);
	uint32_t n = 0;
	for (uint32_t t = 0; t < c.r->lines; t++) {
		for (int unit = 0; unit < UNITS; unit++) {
			const Micro *u = &c.r->line[t].slot[unit];
			if (u->op == GOP_NONE)
				continue;
			c.issue[n] = (Issue){ .micro = u,
				                  .at = t,
				                  .done = t + (uint32_t)op_latency(c.m, u->op),
				                  .unit = (uint8_t)unit,
				                  .form = ops[u->op].form,
				                  .value = c.code ? u->rec : n };
			n++;
		}
	}
	number_words(&c);
	if ((why = check_end(&c)) || (why = check_accesses(&c)) || (why = check_starts(&c)))
		return why;
	/* Counting sort; stable within a cycle. */
	uint32_t *first = NEW(&c.cx->scratch, (size_t)c.r->lines + 2, uint32_t);
	c.by_done = NEW(&c.cx->scratch, c.issues, uint32_t);
	for (uint32_t i = 0; i < c.issues; i++)
		first[c.issue[i].done + 1]++;
	for (uint32_t t = 0; t < c.r->lines; t++)
		first[t + 1] += first[t];
	for (uint32_t i = 0; i < c.issues; i++)
		c.by_done[first[c.issue[i].done]++] = i;
	if (!c.code)
		return check_values(&c);
	const Code *code = c.code;
	uint32_t *reg = NEW(&c.cx->scratch, code->regs, uint32_t);
	uint32_t *cond = NEW(&c.cx->scratch, code->conds, uint32_t);
	memset(reg, 0xFF, code->regs * sizeof *reg);
	memset(cond, 0xFF, code->conds * sizeof *cond);
	c.expected = NEW(&c.cx->scratch, code->recs, Expected);
	for (uint32_t k = 0; k < code->recs; k++) {
		const Rec *rec = &code->rec[k];
		unsigned uses = forms[ops[rec->op].form].uses;
		c.expected[k] = (Expected){ uses & USES_A ? reg[rec->a] : NONE, uses & USES_B ? reg[rec->b] : NONE,
			                        uses & READS_CC ? cond[rec->cc] : NONE, uses & USES_DST ? reg[rec->dst] : NONE };
		if (uses & USES_DST)
			reg[rec->dst] = k;
		if (uses & WRITES_CC)
			cond[rec->dst] = k;
	}
	if ((why = check_issued(&c)) || (why = check_values(&c)))
		return why;
	return check_memory(&c);
}
