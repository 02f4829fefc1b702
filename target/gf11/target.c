/* SPDX-License-Identifier: MIT */
/* Training on the simulated GF11: the hooks that the training loop calls.  In: a plan, options, data, batches.
 * Out: tallies, weights, and the time that passed on the machine's clock.
 *
 * Case i of a batch goes to processor i mod P; all leaves of a batch are taken at once, for the order of sums is
 * the machine's own: each processor adds up its cases in order, then option `sum` reduces over the processors.
 * Sequences of recurrent networks go whole to one processor: see sequences.c. Scores are added up in the order of
 * the batch all the same.
 * Outputs are scored from simulated memory while they are there. Scoring, loading cases, reading and writing weights
 * is done by the host and takes no simulated time, as in the report.
 *
 * The machine can be built only when it is known how many cases a batch has. It stands in a context of its own, so
 * that a larger one can take its place; weights and rule state move over. A batch that has more cases than there is
 * room for is loaded in parts that are multiples of P: every processor sees the same cases in the same order. With
 * option `disks` the parts come from disks (disk.c), the next one while the present one is trained on. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gf11_diagnose.h"
#include "gf11_protect.h"

extern const Target target_gf11;

enum { WEIGHTS, CHANGES, STATES }; /* as bp_weights_read counts them */

struct Program {
	Ctx *cx; /* of the run */
	const Plan *plan;
	const Net *net;
	const Options *opt; /* the run's */
	const Gf11Options *gf11;
	const Machine *m;
	uint32_t procs;
	const uint16_t *port; /* [procs] of the machine; NULL: the first */
	const Switch *known;  /* dead parts of its switch; NULL: none */
	const Rule *rule;
	/* [links] weights and rule state while there is no machine, and when one replaces another */
	double *vector[1 + MAX_STATE];
	double *none;  /* [links] zeroes */
	RangeLog *log; /* what the range check caught; NULL: there is none */

	Ctx own;                      /* all memory of the machine; its failures are handed on */
	Bp *bp;                       /* NULL: not built yet */
	uint64_t capacity, requested; /* cases that it holds at once, a multiple of procs; those requested */
	int error;                    /* error function that it was compiled for */
	uint64_t cycles;              /* of machines before it */
	Faults *faults;               /* in cx; NULL: none */
	uint64_t tested;              /* cycles of diagnosis: no part of training */
	bool pending;                 /* there are weight changes */
	Protect *protect;             /* NULL: nothing is asked for */
	Guard guard;                  /* what it remembers */
	uint64_t batch;               /* cases of the pending changes */
	bool failed;                  /* in an update, which cannot say so */

	const Data *data; /* bound */
	Scorer scorer;
	uint64_t held;                    /* capacity of these arrays: */
	uint64_t *wanted, *loaded, *next; /* cases; next: those of the part that comes next */
	uint64_t *slot;                   /* which of these a case of the batch is; NULL: the same one */
	Packer *packer;                   /* of recurrent networks, */
	uint32_t lanes;                   /* which take so many sequences of this data side by side, */
	uint64_t steps;                   /* so many cases of each at once at most; */
	uint32_t most_lanes;              /* more do not fit into its memories */
	uint64_t most_steps;
	uint64_t trained, processed; /* cases, and with padding: of accumulating passes */
	uint64_t loads;              /* how many are loaded; 0: none, or those of other data */
	Tally *scored;               /* of each case */
	const Data *at_start;        /* data that came from disks when training began, and stay */
	DiskAccount disk;            /* of machines before this one */
	float *y;                    /* [threads * outputs] targets of a case */
	double *out;                 /* likewise, its outputs */
};

static void gf11_caps(Caps *caps) { *caps = (Caps){ .target = "gf11", .lanes = 566, .bundle = 1000 }; }

/* ---- compiling ---- */

/* What another target can do and this one cannot, yet. */
static void refuse(Ctx *cx, const Net *net, const Options *opt)
{
	net_refuse_shaped(cx, net, "gf11");
	if (rules[opt->rule].needs_norm)
		fail(cx, MP_BAD_INPUT, "set another rule, or train on target ref, which knows all rules",
		     "target gf11 has no rule %s: it would have to sum all weight changes before it applies the first",
		     rules[opt->rule].name);
	if (net->copies && gf11_own(opt)->disks == DISKS_ON)
		fail(cx, MP_BAD_INPUT, "set disks off: the host loads them",
		     "cases of networks that are recurrent or settle do not come from disks");
	if (bp_remembers(net) && opt->bptt != BPTT_COPY)
		fail_at(cx, net->copy[0].at, "set bptt copy, or train it on target cpu or ref",
		        "target gf11 keeps one case of a sequence: errors cannot go back through time");
}

static void machine_end(void *own) { ctx_free(own); }

static Program *gf11_compile(Ctx *cx, const Plan *plan, const Options *opt)
{
	const Net *net = plan->net;
	Program *p = NEW(&cx->keep, 1, Program);
	refuse(cx, net, opt);
	p->cx = cx;
	p->plan = plan;
	p->net = net;
	p->opt = opt;
	p->gf11 = gf11_own(opt);
	p->m = machine_open(cx, p->gf11->machine);
	if (p->gf11->procs > p->m->processors)
		fail(cx, MP_BAD_INPUT, "ask for fewer, or 0 for all", "procs is %lld: %s has %lld processors",
		     (long long)p->gf11->procs, p->m->name, (long long)p->m->processors);
	p->procs = (uint32_t)(p->gf11->procs ? p->gf11->procs : p->m->processors);
	p->rule = &rules[opt->rule];
	for (int k = 0; k <= p->rule->states; k++)
		p->vector[k] = NEW(&cx->keep, net->links, double);
	for (int k = 0; k < p->rule->states; k++)
		for (Unit u = 0; u < net->units; u++)
			for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++)
				p->vector[1 + k][i] = rule_start(p->rule, k, opt, net_block(net, u, i)->rate);
	p->none = NEW(&cx->keep, net->links, double);
	if (p->gf11->range_check > 0)
		p->log = range_log_new(&cx->keep, p->procs);
	ctx_init(&p->own, &cx->alloc);
	arena_defer(&cx->keep, machine_end, &p->own);
	if (*p->gf11->fault) {
		p->faults = faults_new(cx, p->m, (uint64_t)p->gf11->fault_seed);
		faults_add(p->faults, p->gf11->fault);
	}
	return p;
}

/* ---- the machine ---- */

typedef struct Build {
	const Program *p;
	uint64_t cases;
	const BpSequences *sequences;
	Faults *faults;
	Bp *bp;
	int disks;
	uint64_t data;
	Guard *guard;
	Protect *protect;
} Build;

static BpOptions build_options(const Build *a)
{
	const Program *p = a->p;
	return (BpOptions){ .procs = p->procs,
		                .port = p->port,
		                .known = p->known,
		                .faults = a->faults,
		                .sum = p->gf11->sum,
		                .sigmoid = p->gf11->sigmoid,
		                .compiler = p->gf11->compiler,
		                .small = p->gf11->small_layers,
		                .bundle = (uint32_t)p->gf11->bundle,
		                .threads = p->opt->threads ? (uint32_t)p->opt->threads : pool_cores(),
		                .sequences = a->sequences,
		                .disks = a->disks,
		                .data = a->data,
		                .log = p->log };
}

static void build_body(Ctx *own, void *arg)
{
	Build *a = arg;
	BpOptions o = build_options(a);
	a->bp = bp_new(own, a->p->plan, a->p->opt, a->p->m, &o, a->cases);
	if (!a->bp->summing)
		sum_compile(a->bp);
	disk_compile(a->bp);
	if (a->guard)
		a->protect = protect_new(a->bp, a->p->gf11, a->guard);
}

/* Data from disks, if there are any and not all of the data fit. */
static Status build(Ctx *cx, Ctx *own, Build *a)
{
	a->disks = a->p->gf11->disks;
	if (a->disks == DISKS_AUTO && (a->p->net->copies || !machine_disks(a->p->m)))
		a->disks = DISKS_OFF;
	Status s = subcontext_run(own, build_body, a);
	if (s != MP_BAD_INPUT || a->disks != DISKS_AUTO)
		return s;
	a->disks = DISKS_ON;
	ctx_free(own);
	ctx_init(own, &cx->alloc);
	return subcontext_run(own, build_body, a);
}

/* ---- diagnosis ---- */

typedef struct Choose {
	Ctx *cx;
	Program *p;
	const Build *a;
} Choose;

static void choose_body(Ctx *own, void *arg)
{
	Choose *a = arg;
	Program *p = a->p;
	Diagnosis d = { .plan = p->plan,
		            .opt = p->opt,
		            .m = p->m,
		            .o = build_options(a->a),
		            .cases = a->a->cases,
		            .processors = (uint32_t)p->m->processors,
		            .faults = p->faults,
		            .switch_only = p->gf11->diagnose <= 0 };
	d.o.procs = (uint32_t)p->gf11->procs;
	d.o.port = NULL;
	d.o.known = NULL;
	diagnose(own, &d);
	diagnosis_note(own, &d);
	const Placed *placed = d.switches.placed;
	if (placed->procs < p->gf11->procs)
		fail(own, MP_FAILED, "ask for fewer, or for 0: all that are approved",
		     "procs is %lld, but only %u processors are "
		     "approved",
		     (long long)p->gf11->procs, placed->procs);
	uint16_t *port = NEW(&a->cx->keep, placed->procs, uint16_t);
	Switch *known = switch_new(a->cx, p->m);
	memcpy(port, placed->port, placed->procs * sizeof *port);
	switch_copy_dead(known, d.switches.known);
	p->procs = placed->procs;
	p->tested += d.cycles;
	if (p->faults) { /* reports count the faults of training alone */
		p->faults->events = 0;
		memset(p->faults->happened, 0, sizeof p->faults->happened);
	}
	p->port = port;
	p->known = known;
}

/* The largest batch of this data, as the processors share it. */
static uint64_t capacity_needed(const Program *p, const Data *d)
{
	uint64_t examples = data_examples(d), longest = 0, cases = d->cases;
	for (uint64_t e = 0; e < examples; e++) {
		uint64_t first, count;
		data_example(d, e, &first, &count);
		longest = count > longest ? count : longest;
	}
	if (p->opt->batch != BATCH_ALL && (uint64_t)p->opt->batch < examples && longest <= cases / (uint64_t)p->opt->batch)
		cases = longest * (uint64_t)p->opt->batch;
	uint64_t slots = (cases + p->procs - 1) / p->procs;
	return (slots ? slots : 1) * p->procs;
}

static int longer_first(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x > *y ? -1 : *x < *y;
}

/* The longest sequences that a batch may have. */
static BpSequences sequences_needed(const Program *p, const Data *d)
{
	uint64_t count = run_examples(p->net, d), first, *length = packer_lengths(p->packer);
	for (uint64_t e = 0; e < count; e++)
		run_example(p->net, d, e, &first, &length[e]);
	qsort(length, count, sizeof *length, longer_first);
	if (p->opt->batch != BATCH_ALL && (uint64_t)p->opt->batch < count)
		count = (uint64_t)p->opt->batch;
	return (BpSequences){ .length = length, .count = count };
}

/* Weights are 0 here, states 1 and up; on the machine changes stand between. */
static int array_of(int which) { return which ? STATES + which - 1 : WEIGHTS; }

/* A machine that holds so many cases; weights and rule state are copied from the one before. */
static void machine_build(Ctx *cx, Program *p, uint64_t cases, const BpSequences *sequences, uint64_t data)
{
	if (p->bp) {
		for (int k = 0; k <= p->rule->states; k++)
			bp_weights_read(p->bp, array_of(k), 0, p->vector[k]);
		p->cycles += bp_cycles(p->bp);
		if (p->faults)
			p->faults->before = p->cycles + p->tested;
		p->disk = disk_account(p->bp, &p->disk);
	}
	p->bp = NULL;
	p->protect = NULL;
	p->pending = false;
	ctx_free(&p->own);
	ctx_init(&p->own, &cx->alloc);
	Build a = { .p = p, .cases = cases, .sequences = sequences, .faults = p->faults, .data = data, .guard = &p->guard };
	Status s = build(cx, &p->own, &a);
	for (int disks = -1; s == MP_OK && (p->gf11->diagnose > 0 || p->gf11->switch_test > 0) && a.disks != disks;) {
		disks = a.disks; /* where data lie depends on them: more is to be tested if they change */
		ctx_free(&p->own);
		ctx_init(&p->own, &cx->alloc);
		with_subcontext(cx, choose_body, &(Choose){ cx, p, &a });
		s = build(cx, &p->own, &a);
	}
	if (s != MP_OK)
		subcontext_fail(cx, &p->own, s);
	subcontext_messages(cx, &p->own);
	p->bp = a.bp;
	p->protect = a.protect;
	p->error = p->opt->error;
	for (int k = 0; k <= p->rule->states; k++)
		bp_weights_write(p->bp, array_of(k), p->vector[k]);
	p->requested = cases;
	p->capacity = (uint64_t)p->bp->at.slots * p->procs;
	uint64_t held = p->capacity > p->held ? p->capacity : p->held;
	p->wanted = arena_grow(&cx->keep, p->wanted, p->held, held, sizeof *p->wanted);
	p->loaded = arena_grow(&cx->keep, p->loaded, p->held, held, sizeof *p->loaded);
	p->scored = arena_grow(&cx->keep, p->scored, p->held, held, sizeof *p->scored);
	if (p->bp->disk)
		p->next = arena_grow(&cx->keep, p->next, p->next ? p->held : 0, held, sizeof *p->next);
	if (sequences)
		p->slot = arena_grow(&cx->keep, p->slot, p->held, held, sizeof *p->slot);
	p->y = NEW(&cx->keep, (size_t)p->bp->p->threads * p->net->outputs, float);
	p->out = NEW(&cx->keep, (size_t)p->bp->p->threads * p->net->outputs, double);
	p->held = held;
	p->at_start = NULL;
}

typedef struct Lanes {
	const Bp *b;
	const BpSequences *s;
	uint32_t lanes;
} Lanes;

static void lanes_body(Ctx *own, void *arg)
{
	Lanes *a = arg;
	(void)own;
	a->lanes = sequences_lanes(a->b, a->s);
}

/* For these, the longest first, whatever the machine at hand has; but not more than any has. */
static void lanes_choose(Ctx *cx, Program *p, const BpSequences *s)
{
	Lanes a = { p->bp, s, 0 };
	Status status = subcontext_run(&p->own, lanes_body, &a);
	if (status != MP_OK)
		subcontext_fail(cx, &p->own, status);
	p->lanes = a.lanes < p->most_lanes ? a.lanes : p->most_lanes;
	uint64_t steps = sequences_pack(p->packer, s->length, s->count, p->procs, p->lanes).steps;
	p->steps = steps < p->most_steps || s->count == 0 ? steps
	           : p->most_steps > s->length[0]         ? p->most_steps
	                                                  : s->length[0];
}

static void build_for_sequences(Ctx *cx, Program *p, BpSequences *s)
{
	p->most_lanes = UINT32_MAX;
	p->most_steps = UINT64_MAX;
	s->steps = p->steps > s->steps ? p->steps : s->steps;
	machine_build(cx, p, 0, s, 0);
	uint32_t group = p->bp->at.group;
	uint64_t steps = p->bp->at.slots / group;
	lanes_choose(cx, p, s);
	if (p->lanes > group) {
		p->most_lanes = group;
		lanes_choose(cx, p, s);
	}
	p->most_steps = p->steps > steps ? steps : UINT64_MAX;
	p->steps = p->steps > steps ? steps : p->steps;
}

/* Capacity only grows: alternating between training and testing must not rebuild the machine each time. */
static void bind_sequences(Ctx *cx, Program *p, const Data *data)
{
	uint64_t examples = run_examples(p->net, data);
	if (!p->packer || packer_capacity(p->packer) < examples)
		p->packer = packer_new(&cx->keep, examples);
	BpSequences s = sequences_needed(p, data);
	if (p->bp) {
		s.lanes = p->bp->at.group;
		s.steps = p->bp->at.slots / s.lanes;
		lanes_choose(cx, p, &s);
	}
	if (!p->bp || p->lanes > s.lanes || p->steps > s.steps || p->error != p->opt->error)
		build_for_sequences(cx, p, &s);
}

static void refuse_data(Ctx *cx, const Net *net, const Data *data)
{
	if (data->ticks)
		fail(cx, MP_BAD_INPUT, "leave the ticks of cases out, or use target cpu or ref",
		     "%s gives cases ticks of their own: processors of target gf11 compute all cases in the same ticks",
		     data->name);
	if (data_examples(data) < data->cases)
		fail(cx, MP_BAD_INPUT, "give data without sequences, or use target cpu or ref",
		     "%s settles, and %s has sequences: target gf11 keeps the ticks of one case", net->name, data->name);
}

static void gf11_bind(Ctx *cx, Program *p, const Data *data)
{
	uint64_t room = capacity_needed(p, data);
	if (p->net->settles)
		refuse_data(cx, p->net, data);
	if (bp_remembers(p->net))
		bind_sequences(cx, p, data);
	else if (!p->bp || room > p->requested || p->error != p->opt->error)
		machine_build(cx, p, room > p->requested ? room : p->requested, NULL, data->cases);
	p->data = data;
	p->loads = 0;
	scorer_init(&p->scorer, p->opt, data);
}

/* ---- passes ---- */

/* inside: cases of the example that are done */
typedef struct Walk {
	const Batch *b;
	uint64_t example, end, inside;
} Walk;

/* The next cases, as many as the machine holds. */
static uint64_t walk_on(const Program *p, Walk *w, uint64_t *wanted)
{
	uint64_t count = 0, first, cases;
	while (w->example < w->end && count < p->capacity) {
		data_example(p->data, w->b->example ? w->b->example[w->example] : w->b->first + w->example, &first, &cases);
		while (w->inside < cases && count < p->capacity)
			wanted[count++] = first + w->inside++;
		if (w->inside == cases) {
			w->example++;
			w->inside = 0;
		}
	}
	return count;
}

typedef struct Pass {
	Program *p;
	void (*run)(Bp *b); /* bp_accumulate or bp_forward */
	Walk walk;          /* to the cases after these */
	const StopFlag *stop;
	uint64_t count; /* cases loaded, */
	uint64_t slots; /* padding with them */
	double *out;    /* where their outputs go, or NULL */
	Tally *tally;
} Pass;

static void score_slot(const Pass *a, uint64_t i, uint32_t thread)
{
	Program *p = a->p;
	uint32_t outputs = p->net->outputs;
	uint64_t slot = p->slot ? p->slot[i] : i, number = p->loaded[slot] & ~CASE_GOES_ON;
	const TickPlan *ticks = &p->bp->ticks;
	float *y = p->y + (size_t)thread * outputs;
	double *out = a->out ? a->out + i * outputs : p->out + (size_t)thread * outputs;
	double error = 0;
	if (p->data->targets)
		data_y(p->data, number, y);
	for (uint32_t tick = ticks->targets_from; tick < ticks->each; tick++) { /* errors of ticks add up */
		const float *seen = bp_outputs_at(p->bp, slot, tick - ticks->targets_from);
		for (uint32_t k = 0; k < outputs; k++)
			out[k] = seen[k];
		p->scored[i] = (Tally){ .error = error };
		score_case(&p->scorer, out, NULL, y, p->data->weight ? p->data->weight[number] : 1, &p->scored[i]);
		error = p->scored[i].error;
	}
}

static void score_share(void *arg, uint32_t thread)
{
	const Pass *a = arg;
	uint32_t threads = a->p->bp->p->threads;
	for (uint64_t i = a->count * thread / threads; i < a->count * (thread + 1) / threads; i++)
		score_slot(a, i, thread);
}

/* Threads score; one adds up, in the order of the cases: sums do not depend on how many there are. */
static void score_all(Pass *a)
{
	pool_run(a->p->bp->p->pool, score_share, a);
	for (uint64_t i = 0; i < a->count; i++)
		tally_add(a->tally, &a->p->scored[i]);
}

/* The part after this one: of this batch, or of the next; 0: unknown. */
static uint64_t part_after(const Pass *a)
{
	Program *p = a->p;
	Walk w = a->walk;
	const Batch *b = w.b;
	uint64_t count = walk_on(p, &w, p->next), all = data_examples(p->data), batch = (uint64_t)p->opt->batch;
	if (!count && b->next_count) {
		w = (Walk){ b, b->count, b->count + b->next_count, 0 };
		count = walk_on(p, &w, p->next);
	} else if (!count && !b->example) {
		w = (Walk){ &(const Batch){ .first = 0 }, 0, p->opt->batch == BATCH_ALL || batch > all ? all : batch, 0 };
		count = walk_on(p, &w, p->next);
	}
	return count;
}

static void load_from_disks(Pass *a, uint64_t count)
{
	Program *p = a->p;
	if (!disk_ordered(p->bp, p->data, p->loaded, count))
		disk_order(p->bp, p->data, p->loaded, count);
	disk_take(p->bp);
	uint64_t next = p->bp->at.data_buffers > 1 ? part_after(a) : 0;
	if (next && (next != count || memcmp(p->next, p->loaded, next * sizeof *p->next) != 0))
		disk_order(p->bp, p->data, p->next, next);
	p->at_start = p->data;
}

/* Loads the cases wanted unless they are there. Cases that a test replaced are loaded by the host again. */
static void load(Pass *a)
{
	Program *p = a->p;
	uint64_t count = a->slots;
	bool there = count == p->loads && memcmp(p->wanted, p->loaded, count * sizeof *p->wanted) == 0;
	memcpy(p->loaded, p->wanted, count * sizeof *p->wanted);
	p->loads = count;
	if (p->protect)
		there = protect_finds(p->protect, p->data, p->loaded, count, there);
	if (there)
		return;
	bool disks = p->bp->disk && a->run == bp_accumulate && (p->bp->at.data_buffers > 1 || p->at_start != p->data);
	if (disks)
		load_from_disks(a, count);
	else
		bp_load_cases(p->bp, p->data, p->loaded, count);
	if (p->protect)
		protect_loaded(p->protect, disks);
}

static void pass_body(Ctx *own, void *arg)
{
	Pass *a = arg;
	(void)own;
	load(a);
	a->p->bp->stop = a->stop;
	a->run(a->p->bp);
	a->p->bp->stop = NULL;
}

static Status pass_run(Pass *a)
{
	if (*a->stop)
		return MP_STOPPED;
	Status s = subcontext_run(&a->p->own, pass_body, a);
	subcontext_messages(a->p->cx, &a->p->own);
	if (s != MP_OK)
		return MP_FAILED;
	if (*a->stop)
		return MP_STOPPED;
	score_all(a);
	a->out = a->out ? a->out + a->count * a->p->net->outputs : NULL;
	return MP_OK;
}

static Status pass_over_sequences(Pass *a, const Batch *b, uint64_t begin, uint64_t count)
{
	Program *p = a->p;
	Status s = MP_OK;
	for (uint64_t done = 0; done < count && s == MP_OK;) {
		BpArranged to = { .wanted = p->wanted, .slot = p->slot, .lanes = p->lanes, .steps = p->steps };
		done += sequences_arrange(p->packer, p->bp, p->data, b, begin + done, count - done, &to);
		a->count = to.cases;
		a->slots = to.slots;
		s = a->count ? pass_run(a) : s;
	}
	return s;
}

/* Over examples number(0) .. number(count - 1), in as many parts as the capacity requires. */
static Status pass_over(Pass *a, const Batch *b, uint64_t begin, uint64_t count)
{
	Status s = MP_OK;
	if (bp_remembers(a->p->net))
		return pass_over_sequences(a, b, begin, count);
	a->walk = (Walk){ b, begin, begin + count, 0 };
	while (s == MP_OK && (a->count = a->slots = walk_on(a->p, &a->walk, a->p->wanted)) > 0)
		s = pass_run(a);
	return s;
}

/* A batch given up leaves no weight changes. */
static void forget(Program *p)
{
	bp_weights_write(p->bp, CHANGES, p->none);
	p->pending = false;
}

/* ---- protection: its failures and notes become the run's ---- */

enum { PROTECT_BEGIN, PROTECT_AGAIN, PROTECT_UPDATED };
typedef struct Guarded {
	Program *p;
	int step;           /* PROTECT_... */
	const Tally *tally; /* of the batch */
	bool again;         /* out: weights were rolled back, the batch is to be repeated */
} Guarded;

static void guarded_body(Ctx *own, void *arg)
{
	Guarded *a = arg;
	(void)own;
	switch (a->step) {
	case PROTECT_BEGIN: protect_begin(a->p->protect); break;
	case PROTECT_AGAIN: a->again = protect_again(a->p->protect, a->tally); break;
	default: protect_updated(a->p->protect, a->p->batch);
	}
}

static Status guarded(Guarded *a, int step)
{
	Program *p = a->p;
	if (!p->protect)
		return MP_OK;
	a->step = step;
	Status s = subcontext_run(&p->own, guarded_body, a);
	subcontext_messages(p->cx, &p->own);
	return s == MP_OK ? MP_OK : MP_FAILED;
}

/* All cases of the batch; again while weights were rolled back for what came out. */
static Status pass_protected(Pass *a, const Batch *b, uint64_t begin, uint64_t count)
{
	Program *p = a->p;
	Guarded g = { .p = p, .tally = a->tally };
	Status s = p->failed ? MP_FAILED : guarded(&g, PROTECT_BEGIN);
	do {
		g.again = false;
		*a->tally = (Tally){ 0 };
		if (s == MP_OK)
			s = pass_over(a, b, begin, count);
		if (s == MP_OK)
			s = guarded(&g, PROTECT_AGAIN);
		if (g.again)
			forget(p);
	} while (g.again && s == MP_OK);
	p->batch = a->tally->cases;
	return s;
}

static Status gf11_accumulate(Program *p, const Batch *b, uint32_t first, uint32_t last, const StopFlag *stop, Tally *t)
{
	uint32_t leaves = leaf_count(b->count);
	uint64_t begin, size, end, end_size;
	if (first == last)
		return MP_OK;
	leaf_range(b->count, leaves, first, &begin, &size);
	leaf_range(b->count, leaves, last - 1, &end, &end_size);
	Tally tally = { 0 };
	Pass a = { .p = p, .run = bp_accumulate, .stop = stop, .tally = &tally };
	uint64_t before = p->bp->processed;
	Status s = pass_protected(&a, b, begin, end + end_size - begin);
	p->pending = true;
	if (s != MP_OK) {
		forget(p);
		return s;
	}
	tally_add(t, &tally);
	p->trained += tally.cases;
	p->processed += p->bp->processed - before;
	return s;
}

static Status gf11_evaluate(Program *p, uint64_t first, uint64_t count, const StopFlag *stop, double *out, Tally *t)
{
	Pass a = { .p = p, .run = bp_forward, .stop = stop, .out = out, .tally = t };
	if (p->bp->disk)
		disk_pause(p->bp, true);
	Status s = pass_over(&a, &(Batch){ .first = first, .count = count }, 0, count);
	if (p->bp->disk)
		disk_pause(p->bp, false);
	return s;
}

/* What a fault did must not be healed by the host, which copies memory in no time: after the first one nothing is
 * aligned. */
static bool is_whole(const Program *p)
{
	uint64_t happened = 0;
	for (int k = 0; k < FAULT_KINDS && p->faults; k++)
		happened += p->faults->happened[k];
	return !happened;
}

static void gf11_apply(Program *p, const Update *u)
{
	if (!p->pending)
		return;
	assert(u->rule == p->rule);
	sum_update(p->bp, u);
	if (p->gf11->agree == AGREE_HOST && is_whole(p))
		bp_weights_align(p->bp);
	p->pending = false;
	Guarded g = { .p = p };
	p->failed = guarded(&g, PROTECT_UPDATED) != MP_OK;
}

/* ---- weights ---- */

static void gf11_get(const Program *p, int which, uint64_t first, uint64_t count, double *v)
{
	uint64_t some = net_chunk(p->net, first, count);
	if (p->bp)
		bp_weights_some(p->bp, array_of(which), 0, first, some, v);
	else
		memcpy(v, p->vector[which] + first, some * sizeof *v);
}

static void gf11_set(Program *p, int which, uint64_t first, uint64_t count, const double *v)
{
	double *to = p->vector[which];
	uint64_t some = net_chunk(p->net, first, count);
	for (uint64_t i = 0; i < some; i++)
		to[first + i] = (float)v[i];
	if (p->bp && first + some == p->net->links)
		bp_weights_write(p->bp, array_of(which), to);
}

static void gf11_gradient(const Program *p, double *v)
{
	if (p->bp && p->pending)
		bp_gradient(p->bp, v);
	else
		memset(v, 0, p->net->links * sizeof *v);
}

static uint64_t gf11_cycles(const Program *p) { return p->cycles + (p->bp ? bp_cycles(p->bp) : 0); }

static double gf11_cycle(const Program *p) { return 1e-9 * p->m->clock; }

/* ---- figures ---- */

static void gf11_report(const Program *p, Buf *json)
{
	if (p->log)
		range_report(p->log, p->procs, json);
	if (bp_remembers(p->net) && p->processed) /* share of padding: sequences differ in length and number */
		buf_printf(json, "%s\"padding\": %.6g", json->len ? ", " : "", 1 - share_of(p->trained, p->processed));
	if (p->faults) {
		buf_printf(json, "%s\"faults\": ", json->len ? ", " : "");
		faults_json(p->faults, json);
	}
	if (p->bp && p->bp->disk)
		disk_report(p->bp, &p->disk, json);
	protect_report(p->gf11, &p->guard, p->bp, json);
}

static void gf11_finish(Ctx *cx, Program *p)
{
	if (p->faults && *p->gf11->fault_log)
		faults_write_log(cx, p->faults, p->gf11->fault_log);
}

/* ---- the program in words ---- */

/* A machine for one case a processor, made for this.  It goes with the text, and who asked for that is told what
 * fails. */
static void gf11_print(Ctx *cx, Program *p, const Data *data, Buf *out)
{
	(void)data;
	Ctx *own = NEW(out->arena, 1, Ctx);
	ctx_init(own, &cx->alloc);
	arena_defer(out->arena, machine_end, own);
	Build a = { .p = p, .cases = p->procs };
	Status s = build(cx, own, &a);
	if (s != MP_OK)
		subcontext_fail(out->arena->cx, own, s);
	bp_print(a.bp, out);
}

static const SimulatorHooks simulator_hooks = {
	.cycles = gf11_cycles,
	.cycle = gf11_cycle,
	.report = gf11_report,
	.finish = gf11_finish,
	.faults = true,
};

const Target target_gf11 = {
	.name = "gf11",
	.about = "the simulated machine of 1989: single precision, cases shared by its processors",
	.caps = gf11_caps,
	.compile = gf11_compile,
	.print = gf11_print,
	.bind = gf11_bind,
	.accumulate = gf11_accumulate,
	.apply = gf11_apply,
	.evaluate = gf11_evaluate,
	.get = gf11_get,
	.set = gf11_set,
	.gradient = gf11_gradient,
	.simulator = &simulator_hooks,
};
