/* SPDX-License-Identifier: MIT */
/* Execution of a routine: fast (the sequence of translate.c and fuse.c, in blocks of processors over threads) and
 * traced (cycle-accurate interpreter).
 * Must hold: both leave the same bits in memory, on any CPU and any number of threads. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cell.h"
#include "execute.h"

/* ---- preparing ---------------------------------------------------------------------------------- */

/* Can regions of two relocation registers of one memory overlap, at least one of them written? */
static bool may_overlap(const Flow *f)
{
	for (uint32_t i = 1; i < f->spaces; i++)
		for (uint32_t j = i + 1; j < f->spaces; j++)
			if (f->space[i].far == f->space[j].far && (f->space[i].written || f->space[j].written))
				return true;
	return false;
}

/* The largest window for which there are slots: it gives the fewest barriers.  Updates of 566 processors take a tenth
 * less with 1024 than with 256. */
static Sequence *sequence_for(Flow *f, bool no_alias)
{
	static const uint32_t window[] = { 1024, 256, 0 };
	Sequence *s = NULL;
	for (size_t i = 0; i < COUNT(window) && !s; i++)
		s = sequence_make(f, no_alias, window[i]);
	assert(s);
	return s;
}

Prepared *execute_prepare(Ctx *cx, const Processors *p, const Routine *r)
{
	Flow *f = flow_make(cx, p, r);
	Prepared *q = NEW(&cx->keep, 1, Prepared);
	q->name = r->name;
	q->spill_low = routine_spill_low(p->m, r);
	q->space = f->space;
	q->spaces = f->spaces;
	q->no_alias = sequence_for(f, true);
	q->may_alias = may_overlap(f) ? sequence_for(f, false) : q->no_alias;
	q->route = f->route;
	q->routes = p->sw ? p->sw->stored : 0;
	return q;
}

void execute_update_routes(const Processors *p, Prepared *r)
{
	for (uint32_t k = 0; k < r->routes; k++)
		if (r->route[k])
			route_fill(p, k, r->route[k]);
}

static uint32_t base_value(const uint32_t *base, uint32_t n) { return base && n ? base[n] : 0; }

const char *execute_bad_bases(const Processors *p, const Prepared *r, const uint32_t *base, char *buf, size_t size)
{
	for (uint32_t i = 1; i < r->spaces; i++) {
		const Space *s = &r->space[i];
		uint64_t at = base_value(base, s->base), words = (uint64_t)(s->far ? p->m->dram : p->m->sram);
		const char *memory = s->far ? "DRAM" : "SRAM";
		if (at + s->high >= words) {
			snprintf(buf, size,
			         "%s: address %llu (relocation register %u holds %llu) is outside the %llu "
			         "words of %s",
			         r->name, (unsigned long long)(at + s->high), s->base, (unsigned long long)at,
			         (unsigned long long)words, memory);
			return buf;
		}
		if (!s->far && s->base && at + s->last >= r->spill_low) {
			snprintf(buf, size,
			         "%s: word %llu (relocation register %u holds %llu) overlaps the spill slots, from %u on", r->name,
			         (unsigned long long)(at + s->last), s->base, (unsigned long long)at, r->spill_low);
			return buf;
		}
		if (s->far && at % (uint64_t)p->m->dram_banks) {
			snprintf(buf, size,
			         "%s: relocation register %u holds %llu, not a multiple of the %lld DRAM "
			         "banks",
			         r->name, s->base, (unsigned long long)at, (long long)p->m->dram_banks);
			return buf;
		}
	}
	return NULL;
}

/* ---- fast --------------------------------------------------------------------------------------- */

typedef struct RunArgs {
	Processors *p;
	const Kernel *kernel;
	const PreparedCall *call;
	uint32_t calls;
} RunArgs;

static const uint32_t no_base[256];

static bool overlap(const Prepared *r, const uint32_t *base)
{
	for (uint32_t i = 1; i < r->spaces; i++)
		for (uint32_t j = i + 1; j < r->spaces; j++) {
			const Space *a = &r->space[i], *b = &r->space[j];
			if (a->far == b->far && (a->written || b->written) && base[a->base] + a->low <= base[b->base] + b->high &&
			    base[b->base] + b->low <= base[a->base] + a->high)
				return true;
		}
	return false;
}

/* Of the lanes from `lane` on. */
static void frame_fill(const Processors *p, const PreparedCall *c, uint32_t lane, Frame *f)
{
	f->space[0] = (char *)(block_row(p, lane / LANES, 0) + lane % LANES);
	for (uint32_t i = 1; i < c->r->spaces; i++) {
		const Space *s = &c->r->space[i];
		uint32_t *memory = s->far ? p->dram : p->sram;
		f->space[i] = (char *)(memory + (size_t)c->base[s->base] * p->lanes + lane);
	}
	f->base = c->base;
	f->sram = p->sram + lane;
	f->lanes = p->lanes;
	f->words = (uint32_t)p->m->sram;
}

/* Words from disks to the processors of some lanes. */
static void send_disks(const Processors *p, const Transfer *t, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < p->disks; i++) {
		int32_t to = t->route->disk[i];
		if (to >= 0 && (uint32_t)to >= first && (uint32_t)to - first < count)
			block_row(p, (uint32_t)to / LANES, t->dst)[to % LANES] =
				p->disk ? p->disk[(size_t)t->taken * p->disks + i] : 0;
	}
}

/* Transfers of one route are batched. */
static void send_all(const RunArgs *j, const Stage *st, uint32_t lane, uint32_t count)
{
	const Transfer *t = j->call->s->transfer + st->transfer, *end = t + st->transfers;
	for (const Transfer *next; t < end; t = next) {
		for (next = t + 1; next < end && next->route == t->route;)
			next++;
		j->kernel->send(j->p, t, (uint32_t)(next - t), lane, count);
		for (; t < next && t->route->disk; t++)
			send_disks(j->p, t, lane, count);
	}
}

/* First lane of a thread's share.  Shares are half blocks: 9 blocks on two threads would take as long as 10. */
static uint32_t share_first(const Processors *p, uint32_t thread)
{
	return (uint32_t)ceil_div(p->procs, HALF) * thread / p->threads * HALF;
}

/* A whole block, or the half that the share begins or ends with. */
static uint32_t lanes_at(uint32_t lane, uint32_t end) { return lane % LANES || end - lane < LANES ? HALF : LANES; }

/* One call, stage by stage. */
static void run_stages(void *arg, uint32_t thread)
{
	const RunArgs *j = arg;
	Processors *p = j->p;
	const Sequence *s = j->call->s;
	uint32_t first = share_first(p, thread), end = share_first(p, thread + 1), count;
	Frame f;
	for (const Stage *st = s->stage; st < s->stage + s->stages; st++) {
		for (uint32_t lane = first; lane < end && st->insts; lane += count) {
			count = lanes_at(lane, end);
			frame_fill(p, j->call, lane, &f);
			j->kernel->run(s, st, &f, count);
		}
		if (!st->transfers)
			continue;
		pool_barrier(p->pool);
		for (uint32_t lane = first; lane < end; lane += count) {
			count = lanes_at(lane, end);
			send_all(j, st, lane, count);
		}
	}
}

/* Calls without transfers: blocks are independent. */
static void run_blocks(void *arg, uint32_t thread)
{
	const RunArgs *j = arg;
	uint32_t end = share_first(j->p, thread + 1), count;
	Frame f;
	for (uint32_t lane = share_first(j->p, thread); lane < end; lane += count) {
		count = lanes_at(lane, end);
		for (const PreparedCall *c = j->call; c < j->call + j->calls; c++) {
			frame_fill(j->p, c, lane, &f);
			j->kernel->run(c->s, c->s->stage, &f, count);
		}
	}
}

void execute_with(Processors *p, const Sequence *s, const Prepared *r, const uint32_t *base, uint32_t kernel)
{
	assert(!base || base[0] == 0);
	PreparedCall c = { r, s, base ? base : no_base };
	pool_run(p->pool, run_stages, &(RunArgs){ p, &kernels[kernel], &c, 1 });
}

PreparedCall execute_call(const Prepared *r, const uint32_t *base)
{
	base = base ? base : no_base;
	return (PreparedCall){ r, r->may_alias != r->no_alias && overlap(r, base) ? r->may_alias : r->no_alias, base };
}

void execute_calls(Processors *p, const PreparedCall *call, uint32_t count)
{
	pool_run(p->pool, run_blocks, &(RunArgs){ p, &kernels[kernel_best()], call, count });
}

void execute_fast(Processors *p, const Prepared *r, const uint32_t *base)
{
	PreparedCall c = execute_call(r, base);
	execute_with(p, c.s, r, c.base, kernel_best());
}

/* ---- traced ------------------------------------------------------------------------------------- */

struct TracedRun {
	Processors *p;
	const Routine *r;
	const uint32_t *base;
	const FaultHooks *w; /* NULL: no fault injection */
	uint64_t now;
	uint16_t watch[4096];
	uint32_t watches; /* watched processors */
	InFlight flight[UNITS * 1024];
	uint32_t flights;              /* in issue order */
	uint64_t busy[(1 << 16) / 64]; /* bitmap of temporaries in use */
	uint32_t taken;                /* words consumed of each disk */
};

static uint32_t *word_at(const Processors *p, uint32_t slot, uint32_t proc)
{
	return &block_row(p, proc / LANES, slot)[proc % LANES];
}

static uint32_t row_take(TracedRun *t)
{
	uint32_t first = (uint32_t)(t->p->m->registers + t->p->m->conditions);
	for (uint32_t i = 0; first + i < t->p->slots; i++)
		if (!(t->busy[i / 64] >> i % 64 & 1)) {
			t->busy[i / 64] |= (uint64_t)1 << i % 64;
			return first + i;
		}
	assert(!"more results under way than the latencies allow");
	return 0;
}

static void row_free(TracedRun *t, uint32_t row)
{
	uint32_t i = row - (uint32_t)(t->p->m->registers + t->p->m->conditions);
	t->busy[i / 64] &= ~((uint64_t)1 << i % 64);
}

static uint32_t address_of(const TracedRun *t, bool far, Addr a)
{
	uint32_t at = base_value(t->base, a.base) + a.off;
	assert(at < (uint64_t)(far ? t->p->m->dram : t->p->m->sram));
	(void)far;
	return at;
}

static uint32_t own_address(const TracedRun *t, Addr a, uint32_t index)
{
	return (base_value(t->base, a.base) + a.off + index) % (uint32_t)t->p->m->sram;
}

static uint32_t *memory_at(const TracedRun *t, bool far, uint32_t at, uint32_t proc)
{
	return (far ? t->p->dram : t->p->sram) + (size_t)at * t->p->lanes + proc;
}

/* Destination of the word of a processor; *wrong: misrouted by a fault. */
static uint32_t send_to(const TracedRun *t, const Setting *set, uint32_t proc, bool *wrong)
{
	const Processors *p = t->p;
	uint32_t port = p->port[proc], to = switch_follow(p->sw, set, port), really = to;
	if (to != NO_ROUTE && t->w && t->w->route)
		really = t->w->route(t->w->user, proc, t->now, to);
	*wrong = really != to;
	if (to == NO_ROUTE || (p->mute && p->mute[proc]) || (!*wrong && !switch_delivers(p->sw, set, port)))
		return NO_ROUTE;
	return p->at_port[really];
}

/* Words follow the crossbar settings; those through a broken part are lost.  A misrouted word replaces the one that
 * belongs there. */
static void send(TracedRun *t, const Micro *u, uint32_t row)
{
	const Processors *p = t->p;
	const Setting *set = p->sw->setting ? &p->sw->setting[u->k.u] : NULL;
	uint16_t stray[MAX_CROSSBAR * MAX_CROSSBAR][2];
	uint32_t strays = 0;
	for (uint32_t proc = 0; proc < p->procs; proc++)
		*word_at(p, row, proc) = 0;
	for (uint32_t proc = 0; proc < p->procs; proc++) {
		bool wrong;
		uint32_t to = send_to(t, set, proc, &wrong);
		if (to == NO_ROUTE)
			continue;
		if (wrong) {
			stray[strays][0] = (uint16_t)proc;
			stray[strays++][1] = (uint16_t)to;
		} else {
			*word_at(p, row, to) = *word_at(p, u->a, proc);
		}
	}
	for (uint32_t i = 0; i < p->disks; i++) {
		uint32_t port = switch_follow(p->sw, set, processors_disk_port(p, i)),
				 to = port == NO_ROUTE ? NO_ROUTE : p->at_port[port];
		if (to != NO_ROUTE && switch_delivers(p->sw, set, processors_disk_port(p, i)))
			*word_at(p, row, to) = p->disk ? p->disk[(size_t)t->taken * p->disks + i] : 0;
	}
	t->taken += processors_disks_send(p, u->k.u);
	for (uint32_t i = 0; i < strays; i++)
		*word_at(p, row, stray[i][1]) = *word_at(p, u->a, stray[i][0]);
}

static const uint32_t *register_row(const TracedRun *t, uint32_t block, bool used, uint32_t slot)
{
	static const uint32_t zero[LANES];
	return used ? block_row(t->p, block, slot) : zero;
}

/* The same for a whole block. */
static void issue_block(TracedRun *t, const Micro *u, const InFlight *f, uint32_t block)
{
	const Processors *p = t->p;
	int form = ops[u->op].form;
	unsigned uses = forms[form].uses;
	uint32_t first = block * LANES, *out = block_row(p, block, f->row);
	const uint32_t *a = register_row(t, block, uses & USES_A, u->a), *b = register_row(t, block, uses & USES_B, u->b);
	const uint32_t *cc = register_row(t, block, uses & READS_CC, (uint32_t)p->m->registers + u->cc);
	switch (form) {
	case FORM_LOAD:
	case FORM_FLUSH: memcpy(out, memory_at(t, false, address_of(t, false, u->mem), first), ROW_BYTES); break;
	case FORM_FETCH: memcpy(out, memory_at(t, true, address_of(t, true, u->far), first), ROW_BYTES); break;
	case FORM_LOOKUP:
		for (uint32_t l = 0; l < LANES; l++)
			out[l] = *memory_at(t, false, own_address(t, u->mem, a[l]), first + l);
		break;
	default: op_values(u->op, a, b, cc, u->k, LANES, out);
	}
	if (f->second != NONE)
		memcpy(block_row(p, block, f->second), form == FORM_PUT ? b : cc, ROW_BYTES);
}

/* Destination of a result: register, condition code (place -1) or memory word. */
typedef struct Destination {
	int place;
	uint32_t addr;
	uint32_t *word;
} Destination;

static Destination destination_of(const TracedRun *t, const Micro *u, uint32_t index, uint32_t proc)
{
	uint32_t at = u->dst;
	switch (ops[u->op].form) {
	case FORM_STORE:
	case FORM_FETCH:
		at = address_of(t, false, u->mem);
		return (Destination){ IN_SRAM, at, memory_at(t, false, at, proc) };
	case FORM_PUT:
		at = own_address(t, u->mem, index);
		return (Destination){ IN_SRAM, at, memory_at(t, false, at, proc) };
	case FORM_FLUSH:
		at = address_of(t, true, u->far);
		return (Destination){ IN_DRAM, at, memory_at(t, true, at, proc) };
	case FORM_CMP: return (Destination){ -1, u->cc, word_at(t->p, (uint32_t)t->p->m->registers + u->cc, proc) };
	default: return (Destination){ IN_REG, at, word_at(t->p, at, proc) };
	}
}

static void write_back_one(const TracedRun *t, const InFlight *f, uint32_t proc)
{
	uint32_t word = *word_at(t->p, f->row, proc);
	uint32_t second = f->second != NONE ? *word_at(t->p, f->second, proc) : 0;
	if (ops[f->micro->op].form == FORM_MASKED && !second)
		return;
	Destination g = destination_of(t, f->micro, second, proc);
	*g.word = t->w && t->w->watched[proc] ? t->w->write(t->w->user, proc, g.place, g.addr, t->now, word) : word;
}

/* A whole row at once if all lanes have one destination; watched processors follow. */
static void write_back_block(const TracedRun *t, const InFlight *f, uint32_t block)
{
	uint32_t first = block * LANES, end = min_u32(first + LANES, t->p->procs);
	if (f->second == NONE)
		memcpy(destination_of(t, f->micro, 0, first).word, block_row(t->p, block, f->row),
		       (end - first) * sizeof(uint32_t));
	else
		for (uint32_t proc = first; proc < end; proc++)
			write_back_one(t, f, proc);
}

static bool only_watched(const TracedRun *t) { return t->w && t->w->only_watched; }

static void issue(TracedRun *t, const Micro *u)
{
	int form = ops[u->op].form;
	assert(t->flights < COUNT(t->flight));
	InFlight *f = &t->flight[t->flights++];
	*f = (InFlight){ u, t->now + (uint64_t)op_latency(t->p->m, u->op), row_take(t), NONE };
	if (form == FORM_PUT || form == FORM_MASKED)
		f->second = row_take(t);
	if (form == FORM_XFER)
		send(t, u, f->row);
	else if (only_watched(t))
		for (uint32_t i = 0; i < t->watches; i++) {
			/* Reads the operands at issue and computes the result. */
			uint32_t proc = t->watch[i];
			const Processors *p = t->p;
			unsigned uses = forms[ops[u->op].form].uses;
			uint32_t *out = word_at(p, f->row, proc);
			Cell a = { .u = uses & USES_A ? *word_at(p, u->a, proc) : 0 };
			Cell b = { .u = uses & USES_B ? *word_at(p, u->b, proc) : 0 };
			bool cc = uses & READS_CC && *word_at(p, (uint32_t)p->m->registers + u->cc, proc);
			switch (ops[u->op].form) {
			case FORM_LOAD:
			case FORM_FLUSH: *out = *memory_at(t, false, address_of(t, false, u->mem), proc); break;
			case FORM_FETCH: *out = *memory_at(t, true, address_of(t, true, u->far), proc); break;
			case FORM_LOOKUP: *out = *memory_at(t, false, own_address(t, u->mem, a.u), proc); break;
			default: *out = op_value(u->op, a, b, cc, u->k).u;
			}
			if (f->second != NONE)
				*word_at(p, f->second, proc) = ops[u->op].form == FORM_PUT ? b.u : cc;
		}
	else
		for (uint32_t block = 0; block < t->p->blocks; block++)
			issue_block(t, u, f, block);
	for (uint32_t i = 0; i < t->watches && ops[u->op].unit == UNIT_ALU; i++) {
		assert(t->w);
		uint32_t *word = word_at(t->p, f->row, t->watch[i]);
		*word = t->w->result(t->w->user, t->watch[i], u, t->now, *word);
	}
}

/* One cycle: write-backs, then issue. */
static void traced_cycle(TracedRun *t, TraceFn *fn, void *user)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < t->flights; i++) {
		InFlight f = t->flight[i];
		if (f.done != t->now) {
			t->flight[kept++] = f;
			continue;
		}
		for (uint32_t block = 0; block < t->p->blocks && !only_watched(t); block++)
			write_back_block(t, &f, block);
		for (uint32_t k = 0; k < t->watches && (f.second == NONE || only_watched(t)); k++)
			write_back_one(t, &f, t->watch[k]);
		row_free(t, f.row);
		if (f.second != NONE)
			row_free(t, f.second);
	}
	t->flights = kept;
	if (t->w)
		t->w->cycle(t->w->user, t->now);
	for (uint32_t unit = 0; unit < UNITS && t->now < t->r->lines; unit++) {
		const Micro *u = &t->r->line[t->now].slot[unit];
		if (u->op == GOP_NONE)
			continue;
		issue(t, u);
		if (fn)
			fn(user, &(TraceEvent){ t->now, unit, u, t->now + (uint64_t)op_latency(t->p->m, u->op) });
	}
	t->now++;
}

static bool traced_goes_on(const TracedRun *t) { return t->now < t->r->lines || t->flights; }

void execute_hooked(Processors *p, const Routine *r, const uint32_t *base, const FaultHooks *w, TraceFn *fn, void *user)
{
	TracedRun t = { .p = p, .r = r, .base = base, .w = w };
	for (uint32_t i = 0; i < p->procs && w; i++)
		if (w->watched[i])
			t.watch[t.watches++] = (uint16_t)i;
	while (traced_goes_on(&t))
		traced_cycle(&t, fn, user);
}

void execute_traced(Processors *p, const Routine *r, const uint32_t *base, TraceFn *fn, void *user)
{
	execute_hooked(p, r, base, NULL, fn, user);
}

TracedRun *traced_new(Ctx *cx, Processors *p, const Routine *r, const uint32_t *base)
{
	TracedRun *t = NEW(&cx->keep, 1, TracedRun);
	traced_restart(t, p, r, base);
	return t;
}

void traced_restart(TracedRun *t, Processors *p, const Routine *r, const uint32_t *base)
{
	memset(t, 0, sizeof *t);
	t->p = p;
	t->r = r;
	t->base = base;
}

bool traced_step(TracedRun *t, TraceFn *fn, void *user)
{
	if (!traced_goes_on(t))
		return false;
	traced_cycle(t, fn, user);
	return true;
}

uint64_t traced_now(const TracedRun *t) { return t->now; }

const InFlight *traced_flights(const TracedRun *t, uint32_t *count)
{
	*count = t->flights;
	return t->flight;
}

uint32_t traced_result(const TracedRun *t, const InFlight *f, uint32_t proc) { return *word_at(t->p, f->row, proc); }

/* ---- bench -------------------------------------------------------------------------------------- */

Measured execute_measure(Ctx *cx, const Machine *m, const Routine *r, uint32_t procs, uint32_t threads, double seconds)
{
	Switch *sw = switch_new(cx, m);
	Processors *p = processors_new(cx, m, sw, procs, threads);
	size_t words = (size_t)m->sram * p->lanes;
	for (size_t i = 0; i < words; i++)
		p->sram[i] = (Cell){ .f = (float)(i % 1021) / 1021 - 0.5f }.u;
	Prepared *q = execute_prepare(cx, p, r);
	Measured all = { 0 };
	uint64_t cycles = routine_cycles(m, r);
	for (double start = clock_seconds(), end = start; end - start < seconds;) {
		double begin = clock_seconds();
		uint64_t calls = 0;
		for (end = begin; end - begin < seconds / 10; end = clock_seconds(), calls++)
			execute_fast(p, q, NULL);
		double rate = (double)(calls * cycles) * procs / (end - begin);
		all.rate = rate > all.rate ? rate : all.rate;
		all.cycles += calls * cycles;
		all.seconds += end - begin;
	}
	return all;
}
