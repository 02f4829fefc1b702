/* SPDX-License-Identifier: MIT */
/* From microwords to data flow.  In: a routine.  Out: its operations as nodes with their operands, without timing.
 *
 * Timing is static: the cycles of operand reads and write-backs are known, so the lines become a sorted list of
 * events, and a register holds the node written back last.  An operation becomes a node when it reads its operands;
 * memory writes and masked moves, which depend on the state at write-back, become nodes then, with the operands read
 * at issue.
 * Must hold: within a cycle write-backs precede reads, in issue order. */
#include <assert.h>
#include <string.h>

#include "execute.h"

typedef struct IssueEvent {
	const Micro *micro;
	uint32_t line, value, a, b, cc;
} IssueEvent;
typedef struct Events { /* by cycle; within a cycle write-backs, then issues */
	IssueEvent *issue;
	uint32_t issues;
	uint32_t *event; /* 2 * issue + (0 write-back, 1 issue) */
} Events;

/* ---- what a routine may contain ----------------------------------------------------------------- */

static void check_number(Ctx *cx, const Routine *r, uint32_t line, const char *what, uint64_t number, uint64_t limit)
{
	if (number >= limit)
		fail(cx, MP_BAD_INPUT, "use the machine file that the routine was made for",
		     "%s: line %u uses %s %llu, the machine has %llu", r->name, line, what, (unsigned long long)number,
		     (unsigned long long)limit);
}

/* ---- events ------------------------------------------------------------------------------------- */

uint32_t routine_cycles(const Machine *m, const Routine *r)
{
	uint64_t end = r->lines;
	for (uint32_t t = 0; t < r->lines; t++)
		for (int unit = 0; unit < UNITS; unit++) {
			const Micro *u = &r->line[t].slot[unit];
			if (u->op < GOPS && t + (uint64_t)op_latency(m, u->op) > end)
				end = t + (uint64_t)op_latency(m, u->op);
		}
	return (uint32_t)end;
}

/* If operations carry numbers of a recording, those without one are spill operations. */
uint32_t routine_spill_low(const Machine *m, const Routine *r)
{
	uint32_t low = (uint32_t)m->sram;
	bool recorded = false;
	for (uint32_t t = 0; t < r->lines; t++)
		for (int unit = 0; unit < UNITS; unit++) {
			const Micro *u = &r->line[t].slot[unit];
			recorded |= u->op < GOPS && u->rec != NOT_RECORDED;
			if (unit == UNIT_PORT && u->op < GOPS && u->rec == NOT_RECORDED && u->mem.off < low)
				low = u->mem.off;
		}
	return recorded ? low : (uint32_t)m->sram;
}

static void collect(Ctx *cx, const Processors *p, const Routine *r, Events *e)
{
	for (uint32_t t = 0; t < r->lines; t++)
		for (int unit = 0; unit < UNITS; unit++)
			e->issues += r->line[t].slot[unit].op != GOP_NONE;
	e->issue = NEW(&cx->scratch, e->issues, IssueEvent);
	e->event = NEW(&cx->scratch, 2 * (size_t)e->issues, uint32_t);
	uint32_t n = 0, cycles = routine_cycles(p->m, r);
	uint32_t *start = NEW(&cx->scratch, 2 * (size_t)cycles + 3, uint32_t);
	for (uint32_t t = 0; t < r->lines; t++)
		for (int unit = 0; unit < UNITS; unit++) {
			const Micro *u = &r->line[t].slot[unit];
			if (u->op == GOP_NONE)
				continue;
			const Machine *m = p->m;
			check_number(cx, r, t, "operation", u->op, GOPS);
			unsigned uses = forms[ops[u->op].form].uses;
			uint64_t registers = (uint64_t)m->registers;
			if (uses & USES_DST)
				check_number(cx, r, t, "register", u->dst, registers);
			if (uses & USES_A)
				check_number(cx, r, t, "register", u->a, registers);
			if (uses & USES_B)
				check_number(cx, r, t, "register", u->b, registers);
			if (uses & (READS_CC | WRITES_CC))
				check_number(cx, r, t, "condition code", u->cc, (uint64_t)m->conditions);
			if (uses & USES_MEM) {
				check_number(cx, r, t, "relocation register", u->mem.base, (uint64_t)m->relocations);
				check_number(cx, r, t, "SRAM word", u->mem.off, (uint64_t)m->sram);
			}
			if (uses & USES_FAR) {
				check_number(cx, r, t, "relocation register", u->far.base, (uint64_t)m->relocations);
				check_number(cx, r, t, "DRAM word", u->far.off, (uint64_t)m->dram);
			}
			if (ops[u->op].form == FORM_XFER)
				check_number(cx, r, t, "switch configuration", u->k.u, p->sw ? p->sw->stored : 0);
			e->issue[n++] = (IssueEvent){ .micro = u, .line = t };
			start[2 * t + 1 + 1]++;
			start[2 * (t + op_latency(p->m, u->op)) + 1]++;
		}
	for (uint32_t i = 1; i < 2 * cycles + 3; i++)
		start[i] += start[i - 1];
	n = 0;
	for (uint32_t t = 0; t < r->lines; t++)
		for (int unit = 0; unit < UNITS; unit++) {
			const Micro *u = &r->line[t].slot[unit];
			if (u->op == GOP_NONE)
				continue;
			e->event[start[2 * t + 1]++] = 2 * n + 1;
			e->event[start[2 * (t + op_latency(p->m, u->op))]++] = 2 * n;
			n++;
		}
}

/* ---- nodes -------------------------------------------------------------------------------------- */

typedef struct FlowBuilder {
	Flow *f;
	uint32_t *now;       /* [registers + conditions] current node, or NONE */
	uint32_t *table;     /* hash table of memory words: node + 1 that accesses it first */
	uint32_t table_size; /* a power of two */
} FlowBuilder;

static uint32_t add(FlowBuilder *k, FlowNode n)
{
	k->f->node[k->f->nodes] = n;
	return k->f->nodes++;
}

/* Registers are undefined at the start of a call, unless the host has set them; then the routine runs traced. */
static uint32_t read_now(FlowBuilder *k, const IssueEvent *i, uint32_t place)
{
	uint32_t registers = (uint32_t)k->f->p->m->registers;
	bool condition = place >= registers;
	if (k->now[place] == NONE && k->f->r->given && k->f->r->given[place])
		k->now[place] = add(k, (FlowNode){ .op = GOP_CONST, .in = { NONE, NONE, NONE } });
	if (k->now[place] == NONE)
		fail(k->f->cx, MP_BAD_INPUT, "write it at least its latency earlier",
		     "%s: %s in line %u reads %s %u, which is undefined here", k->f->r->name, ops[i->micro->op].name, i->line,
		     condition ? "condition code" : "register", condition ? place - registers : place);
	return k->now[place];
}

static uint32_t condition_place(const Flow *f, uint32_t cc) { return (uint32_t)f->p->m->registers + cc; }

static void use_space(Flow *f, bool far, Addr a, bool written)
{
	uint32_t *s = &f->space_of[2 * a.base + far];
	if (*s == NONE) {
		assert(f->spaces < MAX_SPACES);
		*s = f->spaces++;
		f->space[*s] = (Space){ .far = far, .base = a.base, .low = a.off, .high = a.off };
	}
	Space *space = &f->space[*s];
	space->low = min_u32(space->low, a.off);
	space->high = max_u32(space->high, a.off);
	space->last = max_u32(space->last, a.off);
	space->written |= written;
}

static void use_indexed(Flow *f, Addr a)
{
	use_space(f, false, a, false);
	const Code *code = f->r->code;
	Space *space = &f->space[f->space_of[2 * a.base]];
	uint32_t words = code && code->index_limit ? code->index_limit[a.base] : 0;
	space->last = words > space->last + 1 ? words - 1 : space->last;
}

static uint32_t word_number(FlowBuilder *k, bool far, Addr a, uint32_t node)
{
	uint64_t h = (((uint64_t)a.off << 17 | (uint64_t)a.base << 1 | far) + 1) * 0x9E3779B97F4A7C15u >> 20;
	for (;; h++) {
		uint32_t *entry = &k->table[h & (k->table_size - 1)];
		if (!*entry) {
			*entry = node + 1;
			return k->f->words++;
		}
		const FlowNode *n = &k->f->node[*entry - 1];
		if (n->far == far && n->addr.base == a.base && n->addr.off == a.off)
			return n->word;
	}
}

static uint32_t add_memory(FlowBuilder *k, int op, bool far, Addr a, uint32_t value)
{
	use_space(k->f, far, a, op == GOP_STORE);
	uint32_t n = add(k, (FlowNode){ .op = (uint8_t)op, .far = far, .addr = a, .in = { value, NONE, NONE } });
	k->f->node[n].word = word_number(k, far, a, n);
	return n;
}

/* Distinct source strips of the words of a strip; returns their number. */
static uint32_t find_sources(const int32_t *from, StripSource *source)
{
	uint32_t sources = 0;
	for (uint32_t l = 0; l < STRIP; l++) {
		if (from[l] < 0)
			continue;
		int32_t strip = from[l] - from[l] % STRIP;
		uint32_t i = 0;
		while (i < sources && source[i].from != strip)
			i++;
		if (i == sources)
			source[sources++] = (StripSource){ .from = strip };
		source[i].lanes = (uint16_t)(source[i].lanes | 1u << l);
	}
	return sources;
}

void route_fill(const Processors *p, uint32_t k, SwitchRoute *r)
{
	uint32_t lanes = p->blocks * LANES;
	memset(r->part, 0, lanes * sizeof *r->part);
	for (uint32_t i = 0; i < lanes; i++)
		r->from[i] = -1;
	for (uint32_t i = 0; i < p->procs; i++) {
		uint32_t to = processors_receiver(p, k, i);
		if (to != NO_ROUTE)
			r->from[to] = (int32_t)(i / LANES * p->slots * LANES + i % LANES);
	}
	for (uint32_t i = 0; r->disk && i < p->disks; i++) {
		uint32_t to = processors_from_disk(p, k, i);
		r->disk[i] = to == NO_ROUTE ? -1 : (int32_t)to;
	}
	for (uint32_t s = 0; s < lanes / STRIP; s++)
		r->first[s + 1] = r->first[s] + find_sources(r->from + s * STRIP, r->part + r->first[s]);
}

static void make_route(Flow *f, uint32_t k)
{
	uint32_t lanes = f->p->blocks * LANES;
	if (f->route[k])
		return;
	SwitchRoute *r = f->route[k] = NEW(&f->cx->keep, 1, SwitchRoute);
	*r = (SwitchRoute){ NEW(&f->cx->keep, lanes, int32_t), NEW(&f->cx->keep, lanes / STRIP + 1, uint32_t),
		                NEW(&f->cx->keep, lanes, StripSource), NULL };
	if (processors_disks_send(f->p, k))
		r->disk = NEW(&f->cx->keep, f->p->disks, int32_t);
	route_fill(f->p, k, r);
}

static void issue(FlowBuilder *k, IssueEvent *i)
{
	const Micro *u = i->micro;
	int form = ops[u->op].form;
	unsigned uses = forms[form].uses;
	uint32_t taken = NONE;
	i->a = uses & USES_A ? read_now(k, i, u->a) : NONE;
	i->b = uses & USES_B ? read_now(k, i, u->b) : NONE;
	i->cc = uses & READS_CC ? read_now(k, i, condition_place(k->f, u->cc)) : NONE;
	switch (form) {
	case FORM_MASKED:
	case FORM_STORE:
	case FORM_PUT: return; /* at write-back */
	case FORM_LOAD:
	case FORM_FLUSH: i->value = add_memory(k, GOP_LOAD, false, u->mem, NONE); return;
	case FORM_FETCH: i->value = add_memory(k, GOP_LOAD, true, u->far, NONE); return;
	case FORM_LOOKUP: use_indexed(k->f, u->mem); break;
	case FORM_XFER:
		make_route(k->f, u->k.u);
		taken = k->f->route[u->k.u]->disk ? k->f->taken++ : NONE;
		break;
	}
	i->value = add(k, (FlowNode){ .op = u->op, .addr = u->mem, .k = u->k, .in = { i->a, i->b, i->cc }, .word = taken });
}

static void write_back(FlowBuilder *k, const IssueEvent *i)
{
	const Micro *u = i->micro;
	switch (ops[u->op].form) {
	case FORM_STORE: add_memory(k, GOP_STORE, false, u->mem, i->a); return;
	case FORM_FETCH: add_memory(k, GOP_STORE, false, u->mem, i->value); return;
	case FORM_FLUSH: add_memory(k, GOP_STORE, true, u->far, i->value); return;
	case FORM_PUT:
		use_indexed(k->f, u->mem);
		add(k, (FlowNode){ .op = GOP_PUT, .addr = u->mem, .in = { i->a, i->b, NONE } });
		return;
	case FORM_MASKED: {
		uint32_t old = read_now(k, i, u->dst);
		k->now[u->dst] = add(k, (FlowNode){ .op = GOP_SELECT, .in = { i->a, old, i->cc } });
		return;
	}
	case FORM_CMP: k->now[condition_place(k->f, u->cc)] = i->value; return;
	default: k->now[u->dst] = i->value;
	}
}

Flow *flow_make(Ctx *cx, const Processors *p, const Routine *r)
{
	Events e = { 0 };
	collect(cx, p, r, &e);
	uint32_t places = (uint32_t)(p->m->registers + p->m->conditions);
	Flow *f = NEW(&cx->scratch, 1, Flow);
	*f = (Flow){ .cx = cx, .p = p, .r = r, .spaces = 1 };
	f->node = NEW(&cx->scratch, 2 * (size_t)e.issues + (r->given ? places : 0), FlowNode);
	f->space = NEW(&cx->keep, MAX_SPACES, Space);
	f->space_of = NEW(&cx->scratch, 2 * (size_t)p->m->relocations, uint32_t);
	f->route = NEW(&cx->keep, p->sw ? p->sw->stored : 0, SwitchRoute *);
	FlowBuilder k = { .f = f, .now = NEW(&cx->scratch, places, uint32_t), .table_size = 64 };
	while (k.table_size < 4 * e.issues)
		k.table_size *= 2;
	k.table = NEW(&cx->scratch, k.table_size, uint32_t);
	memset(k.now, 0xFF, places * sizeof *k.now);
	memset(f->space_of, 0xFF, 2 * (size_t)p->m->relocations * sizeof *f->space_of);
	for (uint32_t n = 0; n < 2 * e.issues; n++) {
		IssueEvent *i = &e.issue[e.event[n] / 2];
		if (e.event[n] % 2)
			issue(&k, i);
		else
			write_back(&k, i);
	}
	return f;
}
