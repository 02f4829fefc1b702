/* SPDX-License-Identifier: MIT */
/* Back-propagation for one network, compiled.  In: a Plan, options, a machine.  Out: processors with tables in their
 * memories and a controller that holds every routine, scheduled and checked.
 *
 *   refuse what the machine cannot do -> bundles, chunks -> layout -> record, schedule, check, load */
#include <string.h>

#include "gf11_net.h"

const char *const sum_names[SUMS] = { "ring", "tree", "pipelined", "halving" };
const char *const sigmoid_names[2] = { "table", "power2" };
const char *const ring_names[RING_KINDS] = { "cut", "whole" };
const char *const tree_names[TREE_KINDS] = { "apart", "overlapped" };
const char *const compiler_names[2] = { "1989", "best" };

enum { MOVE_WORDS = 2048, OUTPUT_UNITS = 512, MOST_MOVES = 8, MOVE_STEP = 64 };

/* ---- what cannot be done ---- */

static void refuse_outputs(const Bp *b)
{
	const ErrorFn *e = &error_fns[b->opt->error];
	for (uint32_t i = 0; i < b->net->groups; i++) {
		const Group *g = &b->net->group[i];
		bool sigmoid2 = e->matched == FN_SIGMOID && g->fn == FN_SIGMOID2;
		if (g->role == ROLE_OUTPUT && e->matched >= 0 && g->integrate == INTEGRATE_OUTPUT)
			fail(b->cx, MP_BAD_INPUT, "use error squared, or integrate input",
			     "group %s: target gf11 cannot train units that integrate their output with error %s, for which it "
			     "would "
			     "have to divide",
			     g->name, e->name);
		if (g->role == ROLE_OUTPUT && e->matched >= 0 && e->matched != g->fn && !sigmoid2)
			fail(b->cx, MP_BAD_INPUT, "use error squared, or another unit function for the outputs",
			     "group %s: target gf11 cannot train %s units with error %s, for which it would have to divide",
			     g->name, unit_fns[g->fn].name, e->name);
	}
}

static void refuse(const Bp *b)
{
	const Net *net = b->net;
	for (uint32_t i = 0; i < net->groups; i++)
		if (net->group[i].fn >= FN_EVERYWHERE)
			fail_at(b->cx, net->group[i].at, "use another unit function, or --target cpu or ref",
			        "target gf11 has no unit function %s", unit_fns[net->group[i].fn].name);
	if (bp_remembers(net) && b->opt->bptt != BPTT_COPY)
		fail(b->cx, MP_BAD_INPUT, "use --bptt copy, or --target cpu or ref",
		     "target gf11 keeps one case of a sequence: errors cannot go back through time");
	if (b->rule->needs_norm)
		fail(b->cx, MP_BAD_INPUT, "use another rule, or --target ref",
		     "target gf11 has no rule %s: it would have to sum all weight changes before it applies the first",
		     b->rule->name);
	uint64_t arrays = layout_arrays(b);
	if (net->links > (uint64_t)b->m->dram / arrays)
		fail(b->cx, MP_BAD_INPUT, "use a smaller network, or a machine file with more DRAM",
		     "%llu weights take %llu words of DRAM each; %s has %lld", (unsigned long long)net->links,
		     (unsigned long long)arrays, b->m->name, (long long)b->m->dram);
	if (b->o.procs < 1 || b->o.procs > b->m->processors)
		fail(b->cx, MP_BAD_INPUT, "ask for 1 or more, and not more than the machine has", "%u processors: %s has %lld",
		     b->o.procs, b->m->name, (long long)b->m->processors);
	uint64_t lines = 2 * (uint64_t)b->o.bundle * (uint64_t)b->m->dram_interval; /* to fetch weights and changes */
	if (lines > (uint64_t)b->m->block)
		fail(b->cx, MP_BAD_INPUT, "ask for smaller bundles",
		     "a bundle of %u weights takes %llu lines of microcode to fetch; the longest subroutine of %s is %lld",
		     b->o.bundle, (unsigned long long)lines, b->m->name, (long long)b->m->block);
	refuse_outputs(b);
}

/* ---- loading ---- */

/* Words that found no register go to the end of SRAM, where nothing else may lie. */
static void check_spills(const Bp *b, const Routine *r)
{
	for (uint32_t i = 0; r->report.spills && i < r->lines; i++) {
		const Micro *u = &r->line[i].slot[UNIT_PORT];
		if (u->op != GOP_NONE && u->rec == UINT32_MAX && u->mem.off < b->at.spill)
			fail(b->cx, MP_BAD_INPUT, "ask for smaller bundles, or use a machine file with more registers",
			     "%s: more than %d words find no register of the %lld of %s", r->name, SPILL_WORDS,
			     (long long)b->m->registers, b->m->name);
	}
}

Routine *bp_schedule(const Bp *b, Code *code)
{
	const ScheduleOptions o = { .level = b->o.estimate ? LEVEL_ESTIMATE : 0 };
	Machine unlimited = *b->m;
	if (!b->o.estimate) /* an estimate knows the block */
		unlimited.block = INT32_MAX;
	return schedule_cached(b->cx, b->cache, &unlimited, code, &o);
}

/* Counts routines that exceed the microcode store, so that the message gives the total number of lines. */
static bool overflow_add(Bp *b, const Routine *r)
{
	struct Overflow *y = b->overflow;
	bool fits = r->lines > b->m->block || (int64_t)b->c->lines + r->lines <= b->m->microcode;
	for (uint32_t i = 0; !y->routines && i < b->c->routines; i++)
		fits |= b->c->routine[i] == r;
	for (uint32_t i = 0; i < y->routines; i++)
		if (y->routine[i] == r)
			return true;
	if (fits && !y->routines)
		return false;
	y->routine = arena_grow(&b->cx->scratch, y->routine, y->routines, y->routines + 1u, sizeof(Routine *));
	y->routine[y->routines++] = r;
	return true;
}

uint32_t bp_load_routine(Bp *b, Routine *r)
{
	if (!r->report.checked && !b->o.estimate) {
		const char *fault = check_routine(b->cx, b->m, r);
		if (fault)
			fail(b->cx, MP_FAILED, NULL, "%s: the schedule breaks a rule of the machine: %s", r->name, fault);
		r->report.checked = true;
		check_spills(b, r);
	}
	return b->overflow && overflow_add(b, r) ? 0 : controller_load(b->c, r);
}

uint32_t bp_load(Bp *b, Code *code) { return bp_load_routine(b, bp_schedule(b, code)); }

/* ---- routines ---- */

/* A sixteenth of a block is left to what a schedule loses. */
uint32_t moves_a_call(const Machine *m)
{
	uint64_t banks = (uint64_t)m->dram_banks, moves = (uint64_t)(m->block - m->block / 16) / (uint64_t)m->dram_interval;
	return (uint32_t)(moves > banks ? moves / banks * banks : banks);
}

static void load_case_moves(Bp *b)
{
	uint32_t words = b->net->inputs + b->at.outputs + 1, most = moves_a_call(b->m);
	most = most < MOVE_WORDS ? most : MOVE_WORDS;
	b->fetch_cases = (words + most - 1) / most;
	b->fetch_case = NEW(&b->cx->keep, b->fetch_cases, uint32_t);
	for (uint32_t i = 0, first = 0; i < b->fetch_cases; i++, first += most) {
		uint32_t count = words - first < most ? words - first : most;
		b->fetch_case[i] = bp_load(b, record_fetch_case(b, first, count));
	}
}

/* How many different sizes of bundles there are, as far as it matters. */
static uint32_t bundle_sizes(const Bp *b)
{
	uint32_t size[MOST_MOVES + 1], sizes = 0;
	for (uint32_t i = 0; i < b->bundles && sizes <= MOST_MOVES; i++) {
		uint32_t k = 0;
		while (k < sizes && size[k] != b->bundle[i].words)
			k++;
		if (k == sizes)
			size[sizes++] = b->bundle[i].words;
	}
	return sizes;
}

/* Moves of many sizes would fill the microcode: then sizes are rounded up. Words moved beyond a bundle are the next
 * one's, and are written back unchanged. */
static void load_bundle(Bp *b, uint32_t i, bool rounded)
{
	BpBundle *n = &b->bundle[i];
	uint32_t words = (uint32_t)round_up(n->words, MOVE_STEP);
	if (!rounded || words > b->at.words - n->first || words > b->at.cache_words)
		words = n->words;
	bool alike = i > 0 && bundles_alike(b, n, n - 1); /* spares recording it again */
	n->forward = alike ? n[-1].forward : bp_load(b, record_forward(b, i));
	n->backward = alike ? n[-1].backward : bp_load(b, record_backward(b, i));
	n->fetch = bp_load(b, record_move(b, MOVE_WEIGHTS, words));
	n->fetch_both =
		bp_load(b, record_move(b, n->input && !b->at.resident ? MOVE_CHANGES : MOVE_WEIGHTS | MOVE_CHANGES, words));
	n->flush = bp_load(b, record_move(b, MOVE_BACK, words));
}

BpUnit *output_units(const Bp *b)
{
	BpUnit *unit = NEW(&b->cx->scratch, b->at.outputs, BpUnit);
	for (uint32_t i = 0; i < b->chunks; i++)
		for (uint32_t j = 0; j < b->chunk[i].units; j++)
			if (b->chunk[i].unit[j].output >= 0)
				unit[b->chunk[i].unit[j].output] = b->chunk[i].unit[j];
	return unit;
}

/* Outputs of a group together, some hundreds at a time; those of a softmax group all at once: their errors hang
 * together. */
uint32_t output_error_units(const Bp *b, const BpUnit *unit, uint32_t first)
{
	const Group *g = net_group(b->net, unit[first].unit);
	uint32_t end = first + 1;
	while (end < b->at.outputs && net_group(b->net, unit[end].unit) == g &&
	       (end - first < OUTPUT_UNITS || g->fn == FN_SOFTMAX))
		end++;
	return end - first;
}

static void load_routines(Bp *b)
{
	bool rounded = bundle_sizes(b) > MOST_MOVES;
	const BpUnit *unit = output_units(b);
	load_case_moves(b);
	b->copy_call = NEW(&b->cx->keep, b->copies, uint32_t);
	for (uint32_t first = 0; first < b->copies; first += copies_a_call(b, first))
		b->copy_call[b->copy_calls++] = bp_load(b, record_copies(b, first, 1));
	for (uint32_t i = 0; i < b->bundles; i++)
		load_bundle(b, i, rounded);
	for (BpChunk *k = b->chunk; k < b->chunk + b->chunks; k++) {
		k->activate = bp_load(b, record_activate(b, k, 1));
		Code *error = record_unit_error(b, k, 1);
		k->has_error = error != NULL;
		k->unit_error = error ? bp_load(b, error) : 0;
	}
	b->output_error = NEW(&b->cx->keep, b->at.outputs, uint32_t);
	for (uint32_t first = 0, units; first < b->at.outputs; first += units) {
		units = output_error_units(b, unit, first);
		b->output_error[b->output_errors++] = bp_load(b, record_output_error(b, unit + first, units, 1));
	}
}

/* Loads all routines but those of the update, or says how many lines they are (section 9). */
static void load_all(Bp *b)
{
	struct Overflow overflow = { 0 };
	b->overflow = &overflow;
	b->clear = bp_load(b, record_clear(b));
	(b->best ? best_load : load_routines)(b);
	ticks_load(b);
	b->overflow = NULL;
	int64_t lines = b->c->lines;
	for (uint32_t i = 0; i < overflow.routines; i++)
		lines += overflow.routine[i]->lines;
	if (lines > b->m->microcode)
		fail(b->cx, MP_BAD_INPUT,
		     b->best ? "use --compiler 1989, which takes fewer lines where links have no pattern, or fewer links, or a "
		               "machine file with more microcode"
		             : "link units in equal blocks, which share routines by relocation, use fewer "
		               "links, or a machine file with more microcode",
		     "%u bundles of %llu links take %lld lines of microcode, those of the update not counted; the controller "
		     "of %s holds "
		     "%lld: %lld too many",
		     b->bundles, (unsigned long long)b->net->links, (long long)lines, b->m->name, (long long)b->m->microcode,
		     (long long)(lines - b->m->microcode));
}

/* ---- the whole ---- */

static void find_ends(Bp *b)
{
	uint32_t inputs = 0, outputs = 0;
	b->input = NEW(&b->cx->keep, b->net->inputs, Unit);
	b->output = NEW(&b->cx->keep, b->net->outputs, Unit);
	for (uint32_t i = 0; i < b->net->groups; i++) {
		const Group *g = &b->net->group[i];
		for (uint32_t j = 0; j < g->size; j++) {
			if (g->role == ROLE_INPUT)
				b->input[inputs++] = g->first + j;
			if (g->role == ROLE_OUTPUT)
				b->output[outputs++] = g->first + j;
		}
	}
}

static void word_fill(Bp *b, uint32_t word, Cell v)
{
	uint32_t *row = b->p->sram + (size_t)word * b->p->lanes;
	for (uint32_t i = 0; i < b->p->procs; i++)
		row[i] = v.u;
}

/* What stays in SRAM from the beginning: tables, and the outputs of the true units. */
static void memory_start(Bp *b)
{
	Cell *table = NEW(&b->cx->scratch, TABLE_WORDS, Cell);
	tables_fill(table);
	for (uint32_t i = 0; i < TABLE_WORDS; i++)
		word_fill(b, i, table[i]);
	for (uint32_t t = 0; t < b->ticks.each; t++)
		for (uint32_t i = 0; i < b->at.group; i++)
			word_fill(b, b->at.cases + tick_at(b, t) + b->at.case_out * b->at.stride + i * b->at.case_step,
			          (Cell){ .f = 1 });
}

Bp *bp_new(Ctx *cx, const Plan *plan, const Options *opt, const Machine *m, const BpOptions *o, uint64_t cases)
{
	double begun = clock_seconds();
	Bp *b = NEW(&cx->keep, 1, Bp);
	*b = (Bp){ .cx = cx,
		       .plan = plan,
		       .net = plan->net,
		       .opt = opt,
		       .gf11 = gf11_own(opt),
		       .rule = &rules[opt->rule],
		       .o = *o,
		       .m = m,
		       .decay = (float)opt->decay,
		       .range = (float)gf11_own(opt)->range_check,
		       .log = o->log };
	b->o.procs = o->procs ? o->procs : (uint32_t)m->processors;
	b->cache = o->cache ? o->cache : schedule_cache_new(cx);
	refuse(b);
	find_ends(b);
	ticks_plan(b);
	uint64_t slots = cases ? (cases + b->o.procs - 1) / b->o.procs : 1;
	if (o->compiler == COMPILER_BEST) {
		best_plan(b, slots);
	} else {
		bundles_make(b);
		layout_make(b, slots);
	}
	b->sw = switch_new(cx, m);
	b->sw->forced = o->alone;
	if (o->known)
		switch_copy_dead(b->sw, o->known);
	b->p = processors_new(cx, m, b->sw, b->o.procs, o->threads ? o->threads : 1);
	if (o->port)
		processors_map(cx, b->p, o->port);
	b->c = controller_new(cx, b->p);
	b->c->traced = o->traced;
	b->c->dry = o->dry;
	load_all(b);
	b->p->dram_used = b->at.dram_end;
	if (!o->dry)
		memory_start(b);
	if (b->o.sequences)
		b->lanes = NEW(&cx->keep, b->at.slots / b->at.group, uint32_t);
	if (o->faults)
		faults_attach(o->faults, b->c);
	b->result = arena_alloc(&cx->keep, (size_t)b->at.slots * b->o.procs * (b->ticks.each - b->ticks.targets_from),
	                        b->at.outputs * sizeof *b->result);
	b->compile_seconds = clock_seconds() - begun;
	return b;
}
