/* SPDX-License-Identifier: MIT */
/* Diagnosis before a run (section 8). In: a network and how it will be compiled, a machine, the number of processors
 * wanted. Out: a verdict on every processor, dead parts of the switch, and the processors that run the program.
 *
 * What a program uses depends on its number of processors: with fewer, each has more cases, at more addresses, and the
 * switch has other settings. So after each refusal the program is compiled for the remaining ones, and whatever it uses
 * beyond what was tested is tested, until a program has passed with exactly the processors that will run it. */
#include <string.h>

#include "gf11_diagnose.h"
#include "gf11_protect.h"

const char *const verdict_names[PROC_VERDICTS] = { "fine", "memory", "result", "port", "no route" };

/* ---- what the tests share ---- */

Routine *test_checked(Ctx *cx, const Machine *m, Routine *r)
{
	const char *fault = check_routine(cx, m, r);
	if (fault)
		fail(cx, MP_FAILED, NULL, "%s: the lines break a rule of the machine: %s", r->name, fault);
	return r;
}

Routine *test_routine(Ctx *cx, const Machine *m, Code *code)
{
	return test_checked(cx, m, schedule(cx, m, code, &(ScheduleOptions){ .level = 0 }));
}

/* Parameters of the run's rule, except those that may be 0 at the start of a schedule. */
Update test_update(const Options *opt)
{
	Update u;
	update_fill(opt, 1, 0, 1, &u);
	u.param[P_RATE] = 0.25;
	u.param[P_MOMENTUM] = 0.5;
	return u;
}

/* Adds the cycles of this controller to the clock of the faults; returns them. */
uint64_t clock_on(Faults *faults, const Controller *c)
{
	uint64_t cycles = c->account.cycles + c->account.call_cycles;
	if (faults)
		faults->before += cycles;
	return cycles;
}

/* ---- what a program needs ---- */

typedef struct NeedsArgs {
	Diagnosis *d;
	Needs *n;
} NeedsArgs;

static void needs_registers(const Bp *b, uint8_t *reg)
{
	for (uint32_t i = 0; i < b->c->routines; i++) {
		const Routine *r = b->c->routine[i];
		for (uint32_t line = 0; line < r->lines; line++) {
			for (int unit = 0; unit < UNITS; unit++) {
				const Micro *u = &r->line[line].slot[unit];
				if (u->op != GOP_NONE && forms[ops[u->op].form].uses & USES_DST)
					reg[u->dst] = 1;
			}
		}
	}
}

static bool spills(const Bp *b)
{
	for (uint32_t i = 0; i < b->c->routines; i++)
		if (b->c->routine[i]->report.spills)
			return true;
	return false;
}

/* Checksums and snapshots of the run, after all other data; does not touch the file of an earlier run. */
static const Protect *protect_for(Bp *b, const Options *opt)
{
	Gf11Options *o = NEW(&b->cx->keep, 1, Gf11Options);
	*o = *gf11_own(opt);
	if (strcmp(o->machine_memory, "none") != 0 && !o->data_check)
		o->data_check = 1;
	o->machine_memory = "none";
	return protect_new(b, o, NEW(&b->cx->keep, 1, Guard));
}

/* Compiles the program for a fault-free machine, without executing anything. */
static void needs_body(Ctx *own, void *arg)
{
	NeedsArgs *a = arg;
	BpOptions o = a->d->o;
	o.procs = a->n->procs;
	o.dry = true;
	o.faults = NULL;
	Bp *b = bp_new(own, a->d->plan, a->d->opt, a->d->m, &o, a->d->cases);
	if (!b->summing)
		sum_compile(b);
	disk_compile(b);
	const Protect *protect = protect_for(b, a->d->opt);
	const Layout *at = &b->at;
	a->n->sram_end = b->summing->borrows ? at->spill : at->cases + at->group * at->case_words;
	a->n->spill = spills(b) ? at->spill : (uint32_t)b->m->sram;
	a->n->dram_end = protect && protect->dram_end > at->dram_end ? protect->dram_end : at->dram_end;
	needs_registers(b, a->n->reg);
	Ctx *cx = a->d->cx;
	a->n->wanted.procs = b->o.procs;
	a->n->wanted.count = b->sw->stored;
	a->n->wanted.to = NEW(&cx->keep, a->n->wanted.count, uint16_t *);
	for (uint32_t k = 0; k < a->n->wanted.count; k++) {
		a->n->wanted.to[k] = NEW(&cx->keep, a->n->wanted.procs, uint16_t);
		memcpy(a->n->wanted.to[k], b->sw->to[k], a->n->wanted.procs * sizeof *a->n->wanted.to[k]);
	}
}

const Needs *needs_of(Diagnosis *d, uint32_t procs)
{
	for (uint32_t i = 0; i < d->need_count; i++)
		if (d->needs[i]->procs == procs)
			return d->needs[i];
	d->needs = list_more(&d->cx->keep, d->needs, d->need_count, &d->need_capacity, sizeof *d->needs);
	Needs *n = NEW(&d->cx->keep, 1, Needs);
	n->procs = procs;
	n->reg = NEW(&d->cx->keep, (size_t)d->m->registers, uint8_t);
	with_subcontext(d->cx, needs_body, &(NeedsArgs){ d, n });
	return d->needs[d->need_count++] = n;
}

static const Wanted *wanted(void *user, uint32_t procs) { return &needs_of(user, procs)->wanted; }

/* ---- remaining processors ---- */

typedef struct List {
	uint16_t *port;
	uint32_t count;
} List;

static List candidates_left(const Diagnosis *d)
{
	List l = { NEW(&d->cx->scratch, d->processors, uint16_t), 0 };
	for (uint32_t i = 0; i < d->processors; i++)
		if (d->verdict[i] == PROC_FINE)
			l.port[l.count++] = (uint16_t)i;
	if (!l.count)
		fail(d->cx, MP_FAILED, "repair the machine", "of %u processors none passed the tests", d->processors);
	return l;
}

static uint32_t wanted_of(const Diagnosis *d, uint32_t count)
{
	return d->o.procs && d->o.procs < count ? d->o.procs : count;
}

/* ---- the tests ---- */

static bool covers(const Needs *tested, const Needs *n, uint32_t registers)
{
	for (uint32_t i = 0; i < registers; i++)
		if (n->reg[i] && !tested->reg[i])
			return false;
	return n->sram_end <= tested->sram_end && n->spill >= tested->spill && n->dram_end <= tested->dram_end;
}

/* Memory and registers; true if a processor was refused. */
static bool test_memory(Diagnosis *d, const Needs *n)
{
	List l = candidates_left(d);
	March t = { .m = d->m,
		        .faults = d->faults,
		        .candidate = l.port,
		        .candidates = l.count,
		        .threads = d->o.threads,
		        .sram_end = n->sram_end,
		        .spill = n->spill,
		        .dram_end = n->dram_end,
		        .reg = n->reg,
		        .bad = NEW(&d->cx->scratch, l.count, uint8_t) };
	bool refused = false;
	march_test(d->cx, &t);
	for (uint32_t i = 0; i < l.count; i++) {
		if (!t.bad[i])
			continue;
		d->verdict[l.port[i]] = PROC_MEMORY;
		refused = true;
	}
	d->marched = *n;
	d->cycles += t.cycles;
	d->host_seconds += t.host_seconds;
	return refused;
}

/* Processors at dead ports. */
static void refuse_dead_ports(Diagnosis *d)
{
	for (uint32_t port = 0; port < d->processors; port++)
		if (d->verdict[port] == PROC_FINE && port_dead(d->switches.known, port))
			d->verdict[port] = PROC_PORT;
}

/* Training; true if a processor was refused, or more dead parts of the switch were found. */
static bool test_training(Diagnosis *d)
{
	List l = candidates_left(d);
	uint8_t *common = NEW(&d->cx->scratch, l.count, uint8_t);
	Alone t = { .plan = d->plan,
		        .opt = d->opt,
		        .m = d->m,
		        .o = d->o,
		        .cases = d->cases,
		        .procs = d->switches.placed->procs,
		        .faults = d->faults,
		        .known = d->switches.known,
		        .candidate = l.port,
		        .candidates = l.count };
	alone_train(d->cx, &t);
	d->cycles += t.cycles;
	d->host_seconds += t.host_seconds;
	if (!alone_common(&t, common))
		fail(d->cx, MP_FAILED, "test more processors at once",
		     "processors differ, and none of their results is more common "
		     "than the others: there is no majority to decide which is right");
	bool refused = t.loop.locateds > 0;
	for (uint32_t i = 0; i < t.loop.locateds; i++)
		located_add(d->cx, &d->switches, &t.loop.located[i]);
	refuse_dead_ports(d);
	for (uint32_t i = 0; i < l.count; i++) {
		if (common[i] || d->verdict[l.port[i]] != PROC_FINE)
			continue;
		d->verdict[l.port[i]] = t.reached[i] ? PROC_RESULT : PROC_NO_ROUTE;
		refused = true;
	}
	return refused;
}

void diagnosis_begin(Ctx *cx, Diagnosis *d)
{
	d->cx = cx;
	d->verdict = NEW(&cx->keep, d->processors, uint8_t);
	d->marched = (Needs){ .reg = NEW(&cx->keep, (size_t)d->m->registers, uint8_t), .spill = (uint32_t)d->m->sram };
	d->switches = (SwitchTest){
		.m = d->m, .faults = d->faults, .most = d->o.procs, .wanted = wanted, .user = d, .known = switch_new(cx, d->m)
	};
}

void diagnose(Ctx *cx, Diagnosis *d)
{
	diagnosis_begin(cx, d);
	for (bool again = true; again;) {
		const Needs *n = needs_of(d, wanted_of(d, candidates_left(d).count));
		d->rounds++;
		again = false;
		if (!d->switch_only && !covers(&d->marched, n, (uint32_t)d->m->registers))
			again = test_memory(d, n);
		if (again)
			continue;
		List l = candidates_left(d);
		SwitchTest *t = &d->switches;
		t->candidate = l.port;
		t->candidates = l.count;
		uint64_t cycles = t->cycles;
		double host = t->host_seconds;
		switch_test(d->cx, t);
		d->cycles += t->cycles - cycles;
		d->host_seconds += t->host_seconds - host;
		refuse_dead_ports(d);
		for (uint32_t i = 0; i < t->placed->left_outs; i++)
			d->verdict[t->placed->left_out[i]] = PROC_NO_ROUTE;
		if (d->switch_only)
			break;
		n = needs_of(d, d->switches.placed->procs);
		again = !covers(&d->marched, n, (uint32_t)d->m->registers) || test_training(d);
	}
	for (uint32_t i = 0; i < d->processors; i++)
		d->refused += d->verdict[i] == PROC_MEMORY || d->verdict[i] == PROC_RESULT;
}

/* ---- report ---- */

void diagnosis_note(Ctx *cx, const Diagnosis *d)
{
	static const char *const words[PROC_VERDICTS] = {
		NULL, "bad memory or arithmetic", "other results than most", "dead port", "no route left through the switch",
	};
	Buf out = { .arena = &cx->scratch };
	uint32_t fine = 0;
	for (uint32_t i = 0; i < d->processors; i++)
		fine += d->verdict[i] == PROC_FINE;
	buf_printf(&out, d->switch_only ? "switch tested: %u of %u processors can be used" : "%u of %u processors approved",
	           fine, d->processors);
	for (int verdict = PROC_MEMORY; verdict < PROC_VERDICTS; verdict++) {
		enum { SHOWN = 20 };
		uint32_t shown = 0;
		for (uint32_t k = 0; k < d->processors; k++) {
			if (d->verdict[k] != verdict)
				continue;
			if (shown++ == 0)
				buf_printf(&out, "; %s: %u", words[verdict], k);
			else if (shown <= SHOWN)
				buf_printf(&out, ", %u", k);
		}
		if (shown > SHOWN)
			buf_printf(&out, " and %u more", shown - SHOWN);
	}
	for (uint32_t i = 0; i < d->switches.locateds; i++) {
		buf_puts(&out, i ? ", " : "; dead in the switch: ");
		suspects_print(d->switches.known, &d->switches.located[i], &out);
	}
	note(cx, NULL, "%s", out.s);
}
