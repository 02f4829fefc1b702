/* SPDX-License-Identifier: MIT */
/* A simulated epoch. In: a network, a machine, compiler options, a number of cases. Out: the cycles of one pass
 * over all cases and one update, by part, from the controller's account.
 *
 * Cycles do not depend on values: all cases are zero. Loading them is not counted, as in the report, unless they
 * are streamed from disks in every epoch. */
#include <assert.h>

#include "gf11_study.h"

static const Data *blank_cases(Ctx *cx, const Net *net, uint64_t cases)
{
	Data *d = NEW(&cx->keep, 1, Data);
	d->name = "zeros";
	d->cases = cases;
	d->inputs = net->inputs;
	d->targets = net->outputs;
	d->x_type = T_F32;
	d->x_indptr = NEW(&cx->keep, cases + 1, uint64_t);
	d->x_indices = NEW(&cx->keep, 1, uint32_t);
	d->y_type = T_U8;
	d->y = NEW(&cx->keep, cases * net->outputs, uint8_t);
	return d;
}

double mcps_of(const Plan *plan, const Machine *m, uint64_t cases, double cycles)
{
	return 1e3 * (double)plan->W * (double)cases * model_ticks(plan) / (cycles * m->clock);
}

static void take_parts(Epoch *e, const Bp *b)
{
	const Account *a = &b->c->account;
	e->forward = b->cycles_forward;
	e->backward = b->cycles_backward;
	e->units = b->cycles_units;
	e->moves = b->cycles_moves;
	e->update = b->cycles_update;
	e->host = a->call_cycles;
	e->calls = a->calls;
	e->receive = b->cycles_receive;
	e->wait = b->cycles_wait;
	e->bytes = b->disk ? b->disk->account.bytes : 0;
	e->carried = b->disk ? 4 * b->disk->account.carried * b->o.procs : 0;
	e->total = bp_cycles(b);
	assert(e->forward + e->backward + e->units + e->moves + e->update + e->host + e->receive + e->wait == e->total);
}

/* e + times * other. */
static Epoch epoch_plus(Epoch e, const Epoch *other, int64_t times)
{
	static const size_t part[] = { offsetof(Epoch, forward), offsetof(Epoch, backward), offsetof(Epoch, units),
		                           offsetof(Epoch, moves),   offsetof(Epoch, update),   offsetof(Epoch, host),
		                           offsetof(Epoch, total),   offsetof(Epoch, receive),  offsetof(Epoch, wait),
		                           offsetof(Epoch, calls),   offsetof(Epoch, bytes),    offsetof(Epoch, carried) };
	for (size_t i = 0; i < COUNT(part); i++)
		*(uint64_t *)(void *)((char *)&e + part[i]) +=
			(uint64_t)times * *(const uint64_t *)(const void *)((const char *)other + part[i]);
	return e;
}

/* Cycles of one part, during which the next is prefetched. */
static Epoch stream_part(Bp *b, const Data *d, uint64_t next, const Update *u)
{
	Epoch e = { 0 }, before = { 0 };
	take_parts(&before, b);
	disk_order(b, d, NULL, next);
	bp_accumulate(b);
	if (u)
		sum_update(b, u);
	disk_take(b);
	take_parts(&e, b);
	return epoch_plus(e, &before, -1);
}

/* A pass in parts and an update; at the end the first part is loaded again. The cycles of a part depend on its cases,
 * those of the next, and the pace of the part before: once the pace repeats, full parts repeat and are not simulated
 * again; an even number of them, because two buffers alternate. */
static Epoch stream_epoch(Bp *b, const Data *d, const EpochSpec *s, const Update *u)
{
	uint64_t capacity = (uint64_t)b->at.slots * b->o.procs;
	double pace = -1;
	Epoch e = { 0 }, part = { 0 };
	for (uint64_t done = 0; done < s->cases;) {
		uint64_t left = s->cases - done - b->loaded, full = b->loaded == capacity ? left / capacity / 2 * 2 : 0;
		double was = b->disk->pace;
		if (s->o.dry && full && was == pace) {
			e = epoch_plus(e, &part, (int64_t)full);
			done += full * capacity;
			continue;
		}
		pace = full ? was : -1;
		done += b->loaded;
		left = left ? left : s->cases;
		part = stream_part(b, d, left < capacity ? left : capacity, done < s->cases ? NULL : u);
		e = epoch_plus(e, &part, 1);
	}
	return e;
}

/* The second epoch: the first one measures the pace. */
static Epoch epoch_streamed(Ctx *cx, const EpochSpec *s, Bp *b, const Update *u)
{
	const Data *d = s->o.dry ? NULL : blank_cases(cx, s->plan->net, s->cases);
	uint64_t capacity = (uint64_t)b->at.slots * b->o.procs;
	disk_compile(b);
	disk_order(b, d, NULL, s->cases < capacity ? s->cases : capacity);
	disk_take(b);
	stream_epoch(b, d, s, u);
	Epoch e = stream_epoch(b, d, s, u);
	e.part = s->cases < capacity ? s->cases : capacity;
	return e;
}

static Epoch epoch_loaded(Ctx *cx, const EpochSpec *s, Bp *b, const Update *u)
{
	Epoch e = { 0 };
	if (s->o.dry)
		b->loaded = s->cases;
	else
		bp_load_cases(b, blank_cases(cx, s->plan->net, s->cases), NULL, s->cases);
	b->c->account = (Account){ 0 };
	if (s->timeline)
		timeline_start(s->timeline, b);
	bp_accumulate(b);
	uint64_t before = b->c->account.calls;
	sum_update(b, u);
	if (s->timeline)
		timeline_end(s->timeline);
	take_parts(&e, b);
	/* Counts microwords, weighted by calls. */
	const Controller *c = b->c;
	for (uint32_t i = 0; i < c->routines; i++) {
		Epoch one = { 0 };
		for (uint32_t t = 0; t < c->routine[i]->lines; t++) {
			const Micro *alu = &c->routine[i]->line[t].slot[UNIT_ALU], *port = &c->routine[i]->line[t].slot[UNIT_PORT];
			int form = alu->op < GOPS ? ops[alu->op].form : FORM_IMM;
			one.adds += alu->op == GOP_FADD || alu->op == GOP_FSUB;
			one.multiplies += alu->op == GOP_FMUL;
			one.choices += form == FORM_CMP || form == FORM_SELECT || form == FORM_MASKED;
			one.own += port->op == GOP_LOOKUP || port->op == GOP_PUT;
		}
		e.adds += c->called[i] * one.adds;
		e.multiplies += c->called[i] * one.multiplies;
		e.choices += c->called[i] * one.choices;
		e.own += c->called[i] * one.own;
	}
	e.update_calls = e.calls - before;
	return e;
}

Epoch epoch_simulate(Ctx *cx, const EpochSpec *s, Bp **made)
{
	Update u;
	Bp *b = bp_new(cx, s->plan, s->opt, s->m, &s->o, s->cases);
	if (!b->summing)
		sum_compile(b);
	update_fill(s->opt, 1, 0, 0, &u);
	Epoch e = (s->o.disks == DISKS_ON ? epoch_streamed : epoch_loaded)(cx, s, b, &u);
	e.sum = b->summing->sum;
	e.seconds = 1e-9 * s->m->clock * (double)e.total;
	e.mcps = mcps_of(s->plan, s->m, s->cases, (double)e.total);
	if (made)
		*made = b;
	return e;
}
