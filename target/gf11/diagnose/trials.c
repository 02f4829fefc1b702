/* SPDX-License-Identifier: MIT */
/* Coverage of the diagnosis. In: a diagnosis, and injected faults. Out: faults detected, faults missed although
 * they change what the program computes, good processors refused (false positives). Also for many machines with one
 * fault each.
 *
 * Trials of processors: in memory tests and isolated training no processor depends on another, so a machine with
 * one faulty processor and a machine with many are equivalent for each of them. Trial i is processor i of one
 * machine; a few processors are fault-free and represent all others of trial i. (The test compares some trials with
 * machines of their own.) Processors that the memory tests refuse are removed before training, as in diagnose.
 *
 * Trials of the switch: a faulty part changes what other processors receive, so each trial has its own switch. */
#include <string.h>

#include <xxhash.h>

#include "gf11_diagnose.h"
#include "gf11_sum.h"

enum { STREAM_CASES = 66 };

static bool of_processor(const Fault *f)
{
	return f->kind == FAULT_DEAD || f->kind == FAULT_STUCK || f->kind == FAULT_ALU;
}

bool fault_scored(const Fault *f) { return f->kind != FAULT_FLIP && f->kind != FAULT_DISK; }

static uint32_t part_of(const Switch *s, const Fault *f)
{
	switch (f->kind) {
	case FAULT_CROSSBAR: return part_crossbar(s, f->stage, f->n);
	case FAULT_LINK: return part_link(s, f->stage, f->n, f->m);
	default: return f->proc; /* port, misroute */
	}
}

static bool located(const SwitchTest *t, uint32_t part)
{
	for (uint32_t i = 0; i < t->locateds; i++)
		for (uint32_t k = 0; k < t->located[i].parts; k++)
			if (t->located[i].part[k] == part)
				return true;
	return false;
}

static bool fault_found(const Diagnosis *d, const Fault *f)
{
	if (of_processor(f))
		return f->proc < d->processors && d->verdict[f->proc] != PROC_FINE && d->verdict[f->proc] != PROC_NO_ROUTE;
	return located(&d->switches, part_of(d->switches.known, f));
}

/* ---- effect of a fault on a program ---- */

typedef struct Truth {
	Diagnosis *d;
	Faults *faults;                /* NULL: none */
	uint64_t expected[2], seen[2]; /* hashes of outputs, errors and DRAM after a pass, after an update */
	bool differs;
} Truth;

static uint64_t state_hash(const Bp *b)
{
	XXH64_hash_t sum = XXH64(b->result, (size_t)b->at.slots * b->o.procs * b->at.outputs * sizeof *b->result, 0);
	sum = XXH64(b->p->sram + (size_t)b->at.total * b->p->lanes, b->o.procs * sizeof(uint32_t), sum);
	for (uint32_t word = b->at.weights; word < b->at.dram_end; word++)
		sum = XXH64(b->p->dram + (size_t)word * b->p->lanes, b->o.procs * sizeof(uint32_t), sum);
	return sum;
}

/* Runs the program on all processors. */
static void truth_body(Ctx *own, void *arg)
{
	Truth *t = arg;
	BpOptions o = t->d->o;
	o.procs = t->d->processors;
	o.faults = t->faults;
	Bp *b = bp_new(own, t->d->plan, t->d->opt, t->d->m, &o, t->d->cases);
	if (!b->summing)
		sum_compile(b);
	uint64_t cases = (uint64_t)b->at.slots * b->o.procs, inputs = b->net->inputs, outputs = b->net->outputs, drawn = 0;
	Arena *scratch = &b->cx->scratch;
	float *x = NEW(scratch, cases * inputs, float), *y = NEW(scratch, cases * outputs, float);
	double *w = NEW(scratch, b->net->links, double);
	uint64_t *number = NEW(scratch, cases, uint64_t);
	for (uint64_t i = 0; i < cases * inputs; i++)
		x[i] = (float)random_unit(2, STREAM_CASES, drawn++);
	for (uint64_t i = 0; i < cases * outputs; i++)
		y[i] = random_unit(2, STREAM_CASES, drawn++) < 0.5;
	for (uint64_t i = 0; i < cases; i++)
		number[i] = i;
	const Data data = { .name = "trial",
		                .cases = cases,
		                .inputs = (uint32_t)inputs,
		                .targets = (uint32_t)outputs,
		                .x = x,
		                .x_type = T_F32,
		                .y = y,
		                .y_type = T_F32 };
	for (int which = 0; which <= 2; which += 2) {
		for (uint64_t i = 0; i < b->net->links; i++)
			w[i] = random_unit(2, STREAM_CASES, drawn++) - 0.5;
		bp_weights_write(b, which, w);
	}
	bp_load_cases(b, &data, number, cases);
	if (t->faults)
		faults_apply(t->faults, b->p);
	bp_accumulate(b);
	t->seen[0] = state_hash(b);
	t->differs = t->faults && t->seen[0] != t->expected[0];
	if (t->differs)
		return;
	Update u = test_update(b->opt);
	sum_update(b, &u);
	t->seen[1] = state_hash(b);
	t->differs = t->faults && t->seen[1] != t->expected[1];
}

/* Do words of a program that is routed without known dead parts cross this part? */
static bool words_cross(Diagnosis *d, uint32_t part)
{
	const Switch *fresh = switch_new(d->cx, d->m);
	uint16_t *all = NEW(&d->cx->scratch, d->processors, uint16_t);
	for (uint32_t i = 0; i < d->processors; i++)
		all[i] = (uint16_t)i;
	const Placed *p =
		survivors_place(d->cx, fresh, all, d->processors, d->o.procs, d->switches.wanted, d->switches.user);
	for (uint32_t k = 0; k < p->count; k++) {
		for (uint32_t port = 0; port < fresh->ports; port++) {
			uint32_t on[TRIP_PARTS], to = p->to[k][port];
			if (to == NO_ROUTE)
				continue;
			uint16_t middle = d->m->ring_only ? 0 : p->setting[k].in[port];
			uint32_t parts = trip_parts(fresh, (Trip){ (uint16_t)port, middle, (uint16_t)to }, on);
			for (uint32_t i = 0; i < parts; i++)
				if (on[i] == part)
					return true;
		}
	}
	return false;
}

/* Does the fault change a result of the program?  Switch: do words cross the part? */
static bool fault_changes(Diagnosis *d, const Fault *f)
{
	if (!of_processor(f))
		return words_cross(d, part_of(d->switches.known, f));
	if (f->proc >= d->processors)
		return false;
	Truth t = { .d = d };
	if (!d->truth_known) {
		with_subcontext(d->cx, truth_body, &t);
		memcpy(d->truth, t.seen, sizeof d->truth);
		d->truth_known = true;
	}
	memcpy(t.expected, d->truth, sizeof t.expected);
	t.faults = faults_new(d->cx, d->m, d->faults ? d->faults->seed : 1);
	faults_set(t.faults, f, 1);
	with_subcontext(d->cx, truth_body, &t);
	return t.differs;
}

/* ---- one diagnosis ---- */

static bool port_is_bad(const Switch *s, const Faults *faults, uint32_t port)
{
	for (uint32_t i = 0; faults && i < faults->faults; i++) {
		const Fault *f = &faults->fault[i];
		bool at = (f->kind == FAULT_PORT || f->kind == FAULT_MISROUTE) && f->proc == port;
		if (at || (f->kind == FAULT_CROSSBAR && f->stage != 1 && f->n == port / s->n))
			return true;
	}
	return false;
}

static bool processor_is_bad(const Faults *faults, uint32_t proc)
{
	for (uint32_t i = 0; faults && i < faults->faults; i++)
		if (of_processor(&faults->fault[i]) && faults->fault[i].proc == proc)
			return true;
	return false;
}

void score_diagnosis(Diagnosis *d, Score *s, uint8_t *found, uint8_t *changes)
{
	for (uint32_t i = 0; d->faults && i < d->faults->faults; i++) {
		const Fault *f = &d->faults->fault[i];
		if (!fault_scored(f))
			continue;
		found[i] = fault_found(d, f);
		changes[i] = fault_changes(d, f);
		s->injected++;
		s->detected += found[i];
		s->missed += !found[i] && changes[i];
		s->harmless += !found[i] && !changes[i];
	}
	for (uint32_t i = 0; i < d->processors; i++) {
		bool refused = d->verdict[i] == PROC_MEMORY || d->verdict[i] == PROC_RESULT;
		s->false_alarms += refused && !processor_is_bad(d->faults, i);
		s->false_alarms += d->verdict[i] == PROC_PORT && !port_is_bad(d->switches.known, d->faults, i);
	}
	s->approved = d->switches.placed->procs;
}

/* ---- trials of processors ---- */

enum { WHOLE = 3 }; /* fault-free processors in a machine of trials */

typedef struct Tried {
	Fault *fault;
	uint32_t count;
	uint8_t *found;
} Tried;

/* Injects the faults that have not been found yet. */
static void set_rest(Faults *faults, Arena *a, const Tried *b)
{
	Fault *rest = NEW(a, b->count, Fault);
	uint32_t count = 0;
	for (uint32_t i = 0; i < b->count; i++)
		if (!b->found[i])
			rest[count++] = b->fault[i];
	faults_set(faults, rest, count);
}

static void try_training(Diagnosis *d, Faults *faults, Tried *b, const uint16_t *all, Score *s)
{
	Alone t = { .plan = d->plan,
		        .opt = d->opt,
		        .m = d->m,
		        .o = d->o,
		        .cases = d->cases,
		        .procs = d->processors,
		        .faults = faults,
		        .known = switch_new(d->cx, d->m),
		        .candidate = all,
		        .candidates = d->processors };
	set_rest(faults, &d->cx->scratch, b);
	alone_train(d->cx, &t);
	d->cycles += t.cycles;
	const uint32_t *right = t.result + (size_t)(d->processors - 1) * RESULTS;
	for (uint32_t i = 0; i < d->processors; i++) {
		bool differs = memcmp(t.result + (size_t)i * RESULTS, right, RESULTS * sizeof *right) != 0;
		if (i >= b->count)
			s->false_alarms += differs;
		else if (differs && !b->found[i]) {
			b->found[i] = 1;
			s->by_training++;
		}
	}
}

void trials_processors(Diagnosis *d, uint64_t trials, uint64_t seed, Score *s)
{
	if (d->processors <= WHOLE)
		fail(d->cx, MP_BAD_INPUT, "use more processors", "trials need %d processors or more", WHOLE + 1);
	const Needs *n = needs_of(d, d->processors);
	uint32_t each = d->processors - WHOLE;
	Arena *keep = &d->cx->keep;
	Tried b = { NEW(keep, each, Fault), 0, NEW(keep, each, uint8_t) };
	uint16_t *all = NEW(keep, d->processors, uint16_t);
	Faults *faults = faults_new(d->cx, d->m, seed);
	for (uint32_t i = 0; i < d->processors; i++)
		all[i] = (uint16_t)i;
	for (uint64_t first = 0; first < trials; first += b.count) {
		b.count = (uint32_t)(trials - first < each ? trials - first : each);
		memset(b.found, 0, each);
		for (uint32_t i = 0; i < b.count; i++) {
			b.fault[i] = fault_random_processor(d->m, seed, first + i, d->processors, n->sram_end, n->dram_end);
			b.fault[i].proc = i;
		}
		March t = { .m = d->m,
			        .faults = faults,
			        .candidate = all,
			        .candidates = d->processors,
			        .threads = d->o.threads,
			        .sram_end = n->sram_end,
			        .spill = n->spill,
			        .dram_end = n->dram_end,
			        .reg = n->reg,
			        .bad = NEW(&d->cx->scratch, d->processors, uint8_t) };
		set_rest(faults, &d->cx->scratch, &b);
		march_test(d->cx, &t);
		d->cycles += t.cycles;
		for (uint32_t i = 0; i < d->processors; i++) {
			if (i >= b.count)
				s->false_alarms += t.bad[i];
			else if (t.bad[i])
				b.found[i] = 1;
			s->by_memory += i < b.count && t.bad[i];
		}
		try_training(d, faults, &b, all, s);
		for (uint32_t i = 0; i < b.count; i++) {
			bool missed = !b.found[i] && fault_changes(d, &b.fault[i]);
			s->detected += b.found[i];
			s->missed += missed;
			s->harmless += !b.found[i] && !missed;
			s->approved += d->processors - b.found[i];
		}
	}
	s->injected = trials;
}

/* ---- trials of the switch ---- */

typedef struct SwitchTrial {
	Diagnosis *d;
	Fault fault;
	uint64_t seed;
	Score *s;
	uint64_t cycles;
} SwitchTrial;

/* Settings that carry every word although this part is dead, verified by pushing tokens. */
static bool settings_hold(Ctx *own, const Machine *m, const Placed *p, uint32_t part)
{
	Switch *truth = switch_new(own, m);
	truth->dead.port[part] = 1;
	for (uint32_t k = 0; k < p->count; k++)
		if (!switch_verify(truth, p->to[k], &p->setting[k]))
			return false;
	return true;
}

static void switch_body(Ctx *own, void *arg)
{
	SwitchTrial *a = arg;
	const Diagnosis *d = a->d;
	uint16_t *all = NEW(&own->keep, d->processors, uint16_t);
	Faults *faults = faults_new(own, d->m, a->seed);
	Score *s = a->s;
	for (uint32_t i = 0; i < d->processors; i++)
		all[i] = (uint16_t)i;
	faults_set(faults, &a->fault, 1);
	SwitchTest t = { .m = d->m,
		             .faults = faults,
		             .candidate = all,
		             .candidates = d->processors,
		             .most = d->o.procs,
		             .wanted = d->switches.wanted,
		             .user = d->switches.user,
		             .known = switch_new(own, d->m) };
	switch_test(own, &t);
	uint32_t part = part_of(t.known, &a->fault), lost = 0;
	bool found = located(&t, part), holds = settings_hold(own, d->m, t.placed, part);
	s->detected += found;
	s->by_switch += found;
	s->missed += !holds;
	s->harmless += !found && holds;
	s->misplaced += t.locateds > found;
	for (uint32_t i = 0; i < d->processors; i++) {
		bool refused = port_dead(t.known, i);
		s->false_alarms += refused && !port_is_bad(t.known, faults, i);
		lost += refused;
	}
	s->approved += d->o.procs ? t.placed->procs : d->processors - lost - t.placed->left_outs;
	a->cycles += t.cycles;
}

void trials_switch(Diagnosis *d, uint64_t trials, uint64_t seed, Score *s)
{
	SwitchTrial a = { .d = d, .s = s, .seed = seed };
	for (uint64_t i = 0; i < trials; i++) {
		a.fault = fault_random_switch(d->m, seed, i);
		with_subcontext(d->cx, switch_body, &a);
	}
	d->cycles += a.cycles;
	s->injected = trials;
}
