/* SPDX-License-Identifier: MIT */
/* Controller and host.  In: routines, relocation registers, calls.  Out: executed calls, and accounting of their time.
 *
 * The controller holds a limited number of microcode lines and runs one routine at a time, from its first line to its
 * last; the host sets the relocation registers before each call.  Cycles of routines, call overhead and host time for
 * memory access are counted separately (report, sections 2 and 4.2).
 *
 * Routines have no branches, so their cost does not depend on data: a dry run does the same accounting without
 * executing anything. */
#include <assert.h>
#include <string.h>

#include "execute.h"

/* Deferred calls.  A call takes tens of microseconds, and a block loses its cache contents while the other blocks
 * run: it is better to run many calls per block.  A NETtalk pass (1989 compiler, 566 processors, one core) takes 93
 * instead of 123 ms. */
enum { MAX_CALLS = 256, MAX_BASES = 256 };
struct CallQueue {
	bool open;
	PreparedCall call[MAX_CALLS];
	uint32_t calls;
	uint32_t number[MAX_CALLS]; /* routine */
	uint32_t *base;             /* [MAX_CALLS * relocations] */
};

Controller *controller_new(Ctx *cx, Processors *p)
{
	assert(p->m->relocations <= MAX_BASES);
	Controller *c = NEW(&cx->keep, 1, Controller);
	*c = (Controller){ .cx = cx,
		               .m = p->m,
		               .p = p,
		               .base = NEW(&cx->keep, MAX_BASES, uint32_t),
		               .queue = NEW(&cx->keep, 1, struct CallQueue) };
	c->queue->base = NEW(&cx->keep, (size_t)p->m->relocations * MAX_CALLS, uint32_t);
	return c;
}

uint32_t controller_load(Controller *c, const Routine *r)
{
	for (uint32_t i = 0; i < c->routines; i++)
		if (c->routine[i] == r)
			return i;
	if (r->lines > c->m->block)
		fail(c->cx, MP_BAD_INPUT, "cut the routine into parts, or use a machine file with longer blocks",
		     "%s has %u lines of microcode; the longest subroutine of %s is %lld: %lld too many", r->name, r->lines,
		     c->m->name, (long long)c->m->block, (long long)(r->lines - c->m->block));
	if ((int64_t)c->lines + r->lines > c->m->microcode)
		fail(c->cx, MP_BAD_INPUT, "share routines by relocation, or use a machine file with more microcode",
		     "%s does not fit: %u lines with %u in use already; the controller of %s holds %lld: %lld too many",
		     r->name, r->lines, c->lines, c->m->name, (long long)c->m->microcode,
		     (long long)((int64_t)c->lines + r->lines - c->m->microcode));
	if (c->routines == c->capacity) {
		uint32_t capacity = c->capacity ? 2 * c->capacity : 16;
		Arena *keep = &c->cx->keep;
		c->routine = arena_grow(keep, c->routine, c->capacity, capacity, sizeof *c->routine);
		c->prepared = arena_grow(keep, c->prepared, c->capacity, capacity, sizeof *c->prepared);
		c->cycles = arena_grow(keep, c->cycles, c->capacity, capacity, sizeof *c->cycles);
		c->called = arena_grow(keep, c->called, c->capacity, capacity, sizeof *c->called);
		c->capacity = capacity;
	}
	c->prepared[c->routines] = c->dry ? NULL : execute_prepare(c->cx, c->p, r);
	c->cycles[c->routines] = routine_cycles(c->m, r);
	c->routine[c->routines] = r;
	c->lines += r->lines;
	c->routines++;
	if (c->faults)
		faults_loaded(c, c->routines - 1);
	return c->routines - 1;
}

void controller_base(Controller *c, uint32_t n, uint32_t address)
{
	if (n == 0 || n >= c->m->relocations)
		fail(c->cx, MP_BAD_INPUT, "use registers from 1 on; register 0 is always 0",
		     "relocation register %u cannot be set: %s has %lld", n, c->m->name, (long long)c->m->relocations);
	c->base[n] = address;
}

void controller_flush(Controller *c)
{
	struct CallQueue *q = c->queue;
	if (q->calls)
		execute_calls(c->p, q->call, q->calls);
	for (uint32_t i = 0; i < q->calls && c->faults; i++)
		faults_after_call(c->faults, c, q->number[i], q->call[i].base);
	q->calls = 0;
}

void controller_defer_calls(Controller *c, bool calls)
{
	controller_flush(c);
	c->queue->open = calls;
}

/* Transfers need all blocks: such a call is not deferred. */
void controller_enqueue(Controller *c, uint32_t routine)
{
	struct CallQueue *q = c->queue;
	const Prepared *r = c->prepared[routine];
	PreparedCall call = execute_call(r, c->base);
	if (!q->open || call.s->transfers) {
		controller_flush(c);
		execute_fast(c->p, r, c->base);
		if (c->faults)
			faults_after_call(c->faults, c, routine, c->base);
		return;
	}
	if (q->calls == MAX_CALLS)
		controller_flush(c);
	size_t bases = (size_t)c->m->relocations;
	call.base = memcpy(q->base + q->calls * bases, c->base, bases * sizeof *c->base);
	q->number[q->calls] = routine;
	q->call[q->calls++] = call;
}

static void execute(Controller *c, uint32_t routine)
{
	char why[200];
	if (execute_bad_bases(c->p, c->prepared[routine], c->base, why, sizeof why))
		fail(c->cx, MP_BAD_INPUT, "set the relocation register to another address before the call", "%s", why);
	if (c->faults) {
		faults_call(c->faults, c, routine);
		return;
	}
	if (!c->traced && !c->routine[routine]->given) {
		controller_enqueue(c, routine);
		return;
	}
	controller_flush(c);
	execute_traced(c->p, c->routine[routine], c->base, c->trace, c->trace_user);
}

void controller_call(Controller *c, uint32_t routine)
{
	assert(routine < c->routines);
	if (c->watch)
		c->watch(c->watch_user);
	if (!c->dry)
		execute(c, routine);
	c->called[routine]++;
	c->account.calls++;
	c->account.cycles += c->cycles[routine];
	c->account.call_cycles += (uint64_t)c->m->host_call;
}

/* ---- host --------------------------------------------------------------------------------------- */

/* First of `count` words, `lanes` apart; adds the host time. */
static uint32_t *host_words(Controller *c, uint32_t proc, bool dram, uint32_t addr, uint32_t count)
{
	uint64_t words = (uint64_t)(dram ? c->m->dram : c->m->sram), end = (uint64_t)addr + count;
	if (proc >= c->p->procs)
		fail(c->cx, MP_BAD_INPUT, "number processors from 0", "the host asks for processor %u of %u", proc,
		     c->p->procs);
	if (end > words)
		fail(c->cx, MP_BAD_INPUT, "use less memory, or a machine file with more",
		     "the host asks for words %u to %llu of the %llu of %s", addr, (unsigned long long)end - 1,
		     (unsigned long long)words, dram ? "DRAM" : "SRAM");
	controller_flush(c);
	c->account.host_words += count;
	c->account.host_seconds += 1e-6 * c->m->host_word * count;
	return (dram ? c->p->dram : c->p->sram) + (size_t)addr * c->p->lanes + proc;
}

void host_write(Controller *c, uint32_t proc, bool dram, uint32_t addr, const Cell *w, uint32_t count)
{
	uint32_t *at = host_words(c, proc, dram, addr, count);
	for (uint32_t i = 0; i < count && !c->dry; i++)
		at[(size_t)i * c->p->lanes] = w[i].u;
	if (c->faults && !c->dry)
		faults_apply_words(c->faults, c->p, dram, addr, count);
}

void host_read(Controller *c, uint32_t proc, bool dram, uint32_t addr, Cell *w, uint32_t count)
{
	const uint32_t *at = host_words(c, proc, dram, addr, count);
	for (uint32_t i = 0; i < count; i++)
		w[i].u = at[(size_t)i * c->p->lanes];
}

void account_print(const Controller *c, double host_seconds, Buf *out)
{
	const Account *a = &c->account;
	uint64_t cycles = a->cycles + a->call_cycles;
	double simulated = 1e-9 * c->m->clock * (double)cycles;
	buf_printf(out, "simulated cycles      %llu in %llu calls, and %llu for calling\n", (unsigned long long)a->cycles,
	           (unsigned long long)a->calls, (unsigned long long)a->call_cycles);
	buf_printf(out, "processors            %u\n", c->p->procs);
	buf_printf(out, "simulated seconds     %.6g, and %.6g of the host for %llu words\n", simulated, a->host_seconds,
	           (unsigned long long)a->host_words);
	buf_printf(out, "seconds taken         %.6g\n", host_seconds);
	if (host_seconds > 0)
		buf_printf(out, "simulated / real      %.4g\n", simulated / host_seconds);
}
