/* SPDX-License-Identifier: MIT */
/* Compiler best: keeps the machine busier than the compiler of 1989. In: a network, cases for each processor. Out:
 * bundles, layout and routines for whole groups of cases, and the calls that drive.c makes with them.
 *
 * One call takes a bundle over all cases of a group, and while it computes it fetches the weights, weight changes and
 * inputs that the next call needs and flushes the changes of the call before.  So there are few calls, and DRAM is
 * waited for only where a group begins and ends.  More cases in a group would gain nothing once the moves are hidden,
 * but calls may only be so long: bundles are smaller, the more cases there are. */
#include <assert.h>

#include "gf11_net.h"

enum { FEWEST_SOURCES = 4 }; /* of a bundle: fewer would load and store net inputs too often */
enum { UNIT_LINES = 5000 };  /* of a call of units: there are few of these, and long ones schedule badly */

/* ---- how many cases ---- */

/* Lines that a few sources of the widest level take for each case. */
static uint32_t lines_of_sources(const Bp *b)
{
	uint32_t most = 1;
	for (uint32_t level = 0; level < b->plan->levels; level++) {
		const Level *v = &b->plan->level[level];
		uint32_t units = 0, arithmetic = 2;
		for (uint32_t i = 0; i < v->spans; i++) {
			Span s = b->plan->span[v->span + i];
			units += s.count;
			for (Unit u = s.first; u < s.first + s.count; u++)
				for (uint64_t l = b->net->row[u]; l < b->net->row[u + 1]; l++)
					if (b->back[net_source(b->net, u, l)])
						arithmetic = 4;
		}
		most = max_u32(most, min_u32(units, 64) * arithmetic * FEWEST_SOURCES);
	}
	return most;
}

/* Words of each of the four caches with so many cases in a group: no bundle is larger. */
static uint32_t cache_for(const Bp *b, uint32_t cases)
{
	uint64_t links = b->best->lines / (2 * (uint64_t)cases), largest = b->o.bundle ? b->o.bundle : 1024;
	uint64_t most = min_u64(max_u64(links, 64), max_u64(largest, 64)); /* a single source is not cut */
	return (uint32_t)round_up(min_u64(most, b->net->links), (uint64_t)b->m->dram_banks);
}

static uint32_t cases_that_fit(const Bp *b, uint64_t slots, uint64_t room)
{
	uint32_t cases = (uint32_t)min_u64(slots, b->best->lines / lines_of_sources(b));
	for (cases = cases ? cases : 1; cases > 1; cases--) {
		uint64_t caches = max_u64(4 * (uint64_t)cache_for(b, cases), MIN_SCRATCH);
		if (caches + (uint64_t)cases * b->at.case_words <= room)
			break;
	}
	return cases;
}

bool best_fits(const Bp *b, uint32_t cases, bool *resident)
{
	uint64_t room = b->at.spill - b->at.weight_cache, weights = b->net->links + b->net->links / 16 + 64;
	*resident = 2 * weights + (uint64_t)cases * b->at.case_words <= room;
	return cases_that_fit(b, cases, room) == cases;
}

/* ---- layout ---- */

/* Sequences run step by step, and a step may have too few cases to hide the moves of weights: these stay in SRAM if
 * they fit. */
static bool stays(const Bp *b)
{
	const Layout *at = &b->at;
	return (b->o.sequences || b->settling) &&
	       at->scratch + max_u64(2 * (uint64_t)at->words, MIN_SCRATCH) + (uint64_t)at->group * at->case_words <=
	           at->spill;
}

/* Words of one kind of all cases of a group stand side by side.
 * Caches of bundles cut for this group, then the cases; false if they do not fit. */
static bool layout_group(Bp *b)
{
	Layout *at = &b->at;
	bundles_make_for(b, at->group, b->best->lines);
	for (uint32_t i = 0; i < b->bundles; i++)
		at->cache_words = max_u32(at->cache_words, b->bundle[i].words);
	at->resident = stays(b);
	at->cache_words = at->resident ? at->words : at->cache_words;
	uint32_t half = (at->resident ? 1 : 2) * at->cache_words;
	at->scratch_words = max_u32(2 * half, MIN_SCRATCH);
	at->change_cache = at->weight_cache + half;
	at->cases = at->scratch + at->scratch_words;
	return at->cases + (uint64_t)at->group * at->case_words <= at->spill;
}

static bool layout_sram(Bp *b, uint64_t slots)
{
	Layout *at = &b->at;
	uint32_t first = layout_ends(b);
	at->weight_cache = at->scratch = first;
	slots = b->o.sequences ? sequences_side(b) : slots;
	uint32_t most = cases_that_fit(b, slots, at->spill - first);
	most = b->o.group ? min_u32(b->o.group, most) : most;
	assert(most > 0 && slots > 0);
	uint64_t groups = (slots + most - 1) / most;
	at->case_step = 1;
	at->group = at->stride = at->data_side = b->o.sequences ? most : (uint32_t)((slots + groups - 1) / groups);
	at->data_step = round_up(at->group, (uint64_t)b->m->dram_banks);
	at->data_words = layout_data(b) * at->data_step;
	if (!layout_group(b) || (!layout_blocks(b, groups) && b->best->lines))
		return false;
	layout_dram(b, (b->o.sequences ? sequences_steps(b) : groups) * at->group);
	b->best->nowhere = at->dram_end;
	b->changes_start = !at->resident && at->dram_end + 2 * (uint64_t)at->cache_words <= (uint64_t)b->m->dram;
	at->dram_end += b->changes_start ? 2 * at->cache_words : 0;
	return true;
}

/* Inputs go with the bundle that is the first to use them; those of networks with copies all with the first bundle,
 * since they may be copied and nothing else. */
static void find_fresh(Bp *b)
{
	uint32_t *user = NEW(&b->cx->scratch, b->net->units, uint32_t);
	for (Unit u = 0; u < b->net->units; u++)
		user[u] = b->net->copies ? 0 : UINT32_MAX;
	for (uint32_t j = b->bundles; j-- > 0;)
		for (uint32_t i = 0; i < b->bundle[j].links; i++)
			user[b->bundle[j].link[i].source] = j;
	for (int fill = 0; fill < 2; fill++) { /* count, then fill */
		for (uint32_t i = 0; i < b->net->inputs; i++) {
			BpFresh *f = user[b->input[i]] < b->bundles ? &b->best->fresh[user[b->input[i]]] : NULL;
			if (f && fill)
				f->input[f->inputs] = i;
			if (f)
				f->inputs++;
		}
		for (BpFresh *f = b->best->fresh; !fill && f < b->best->fresh + b->bundles; f++)
			*f = (BpFresh){ .input = NEW(&b->cx->keep, f->inputs, uint32_t) };
	}
}

static bool plan_with(Bp *b, uint64_t slots, uint32_t lines)
{
	BpBest *best = b->best;
	b->at = (Layout){ 0 };
	b->bundle = NULL;
	b->chunk = NULL;
	b->bundles = b->chunks = b->slopes = 0;
	best->lines = lines;
	layout_case(b);
	if (!layout_sram(b, slots))
		return false;
	for (uint32_t i = 0; i < 2; i++) {
		best->weight[i] = b->at.weight_cache + i * b->at.cache_words;
		best->change[i] = b->at.change_cache + i * b->at.cache_words;
	}
	best->fresh = NEW(&b->cx->keep, b->bundles, BpFresh);
	best->forward = NEW(&b->cx->keep, b->bundles, Routine *);
	best->backward = NEW(&b->cx->keep, b->bundles, Routine *);
	find_fresh(b);
	return true;
}

static bool fresh_alike(const Bp *b, const BpFresh *x, const BpFresh *y)
{
	for (uint32_t i = 0; i < x->inputs && x->inputs == y->inputs; i++)
		if (x->input[i] - x->input[0] != y->input[i] - y->input[0] ||
		    b->input[x->input[i]] - b->input[x->input[0]] != b->input[y->input[i]] - b->input[y->input[0]])
			return false;
	return x->inputs == y->inputs;
}

/* Is the code of bundle i that of the one before?  Their neighbours have to be alike too. */
static bool same_as_before(const Bp *b, uint32_t i)
{
	const BpBundle *n = &b->bundle[i];
	const BpFresh *fresh = b->best->fresh;
	return i > 1 && i + 2 < b->bundles && bundles_alike(b, n, n - 1) && n[1].links == n->links &&
	       n[-2].links == n[-1].links && n[-2].input == n[-1].input && fresh_alike(b, &fresh[i + 1], &fresh[i]);
}

/* Schedules what bundles need.  Does every call fit into a block?  That is known only now. */
static bool bundles_fit(const Bp *b)
{
	const BpBest *best = b->best;
	for (uint32_t i = 0; i < b->bundles; i++) {
		bool same = same_as_before(b, i);
		best->forward[i] = same ? best->forward[i - 1] : bp_schedule(b, record_forward(b, i));
		best->backward[i] = same ? best->backward[i - 1] : bp_schedule(b, record_backward(b, i));
		if (best->forward[i]->lines > b->m->block || best->backward[i]->lines > b->m->block)
			return false;
	}
	return true;
}

/* First as long as calls may be, but for what a schedule loses; shorter, with smaller bundles, if that does not do. */
void best_plan(Bp *b, uint64_t slots)
{
	b->best = NEW(&b->cx->keep, 1, BpBest);
	uint32_t lines = (uint32_t)(b->m->block * 15 / 16);
	while (!plan_with(b, slots, lines) || !bundles_fit(b)) {
		if (lines == 0)
			fail(b->cx, MP_BAD_INPUT, "use a smaller network, or a machine file with more SRAM and longer blocks",
			     "bundles of %u weights and a case of %u words do not fit in the %lld words of SRAM of %s",
			     b->at.cache_words, b->at.case_words, (long long)b->m->sram, b->m->name);
		lines /= 2;
	}
}

/* ---- routines ---- */

static Code *activate(const UnitsCode *u, uint32_t cases) { return record_activate(u->b, u->k, cases); }
static Code *unit_error(const UnitsCode *u, uint32_t cases) { return record_unit_error(u->b, u->k, cases); }
static Code *copies(const UnitsCode *u, uint32_t cases) { return record_copies(u->b, u->first, cases); }
static Code *output_error(const UnitsCode *u, uint32_t cases)
{
	return record_output_error(u->b, u->unit, u->units, cases);
}

/* Equal shares of a group that keep to UNIT_LINES, by the recording for one case. false: there is nothing to do. Data
 * are fetched from DRAM, where a call's cases have to begin at the first bank: shares of copies are multiples of it. */
bool best_calls(Bp *b, BpCalls *c, const UnitsCode *u, uint64_t unit)
{
	Report r;
	Code *one = u->record(u, 1);
	if (!one)
		return false;
	bound_fill(b->cx, b->m, one, &r);
	uint32_t lines = r.bound_resource + r.bound_resource / 8 + 1, most = min_u32(b->best->lines, UNIT_LINES) / lines;
	uint32_t parts = (uint32_t)ceil_div(b->at.group, most ? most : 1), each = (uint32_t)ceil_div(b->at.group, parts);
	c->each = min_u32((uint32_t)round_up(each, unit), b->at.group);
	c->routine[0] = bp_load(b, u->record(u, c->each));
	if (b->at.group % c->each)
		c->routine[1] = bp_load(b, u->record(u, b->at.group % c->each));
	return true;
}

void best_load(Bp *b)
{
	BpBest *best = b->best;
	best->activate = NEW(&b->cx->keep, b->chunks, BpCalls);
	best->unit_error = NEW(&b->cx->keep, b->chunks, BpCalls);
	best->output_error = NEW(&b->cx->keep, b->at.outputs, BpCalls);
	uint32_t next = 0;
	do {
		Code *open = record_best_open(b, &next);
		best->open = arena_grow(&b->cx->keep, best->open, best->opens, best->opens + 1, sizeof *best->open);
		if (open->recs)
			best->open[best->opens++] = bp_load(b, open);
	} while (next);
	if (b->settling && b->bundles)
		best->reopen = bp_load(b, record_move(b, MOVE_WEIGHTS | MOVE_CHANGES, b->bundle[b->bundles - 1].links));
	best->close = b->bundles ? bp_load(b, record_move(b, MOVE_BACK, b->bundle[0].links)) : 0;
	for (uint32_t i = 0; i < b->bundles && b->at.resident; i++) {
		b->bundle[i].fetch_both = bp_load(b, record_move(b, MOVE_WEIGHTS | MOVE_CHANGES, b->bundle[i].words));
		b->bundle[i].flush = bp_load(b, record_move(b, MOVE_BACK, b->bundle[i].words));
	}
	for (uint32_t i = 0; i < b->bundles; i++) {
		b->bundle[i].forward = bp_load_routine(b, best->forward[i]);
		b->bundle[i].backward = bp_load_routine(b, best->backward[i]);
	}
	for (uint32_t i = 0; i < b->chunks; i++) {
		BpChunk *k = &b->chunk[i];
		best_calls(b, &best->activate[i], &(UnitsCode){ activate, .b = b, .k = k }, 1);
		k->has_error = best_calls(b, &best->unit_error[i], &(UnitsCode){ unit_error, .b = b, .k = k }, 1);
	}
	const BpUnit *unit = output_units(b);
	for (uint32_t first = 0, units; first < b->at.outputs; first += units) {
		units = output_error_units(b, unit, first);
		best_calls(b, &best->output_error[b->output_errors++],
		           &(UnitsCode){ output_error, .b = b, .unit = unit + first, .units = units }, 1);
	}
	best->copies = NEW(&b->cx->keep, b->copies, BpCalls);
	for (uint32_t first = 0; first < b->copies; first += copies_a_call(b, first))
		best_calls(b, &best->copies[b->copy_calls++], &(UnitsCode){ copies, .b = b, .first = first },
		           (uint64_t)b->m->dram_banks);
}

/* ---- the host's program ---- */

static uint32_t row_at(const Bp *b) { return b->at.cases + tick_at(b, b->tick); }
static uint32_t word_at(const Bp *b, uint32_t word) { return row_at(b) + word * b->at.stride; }

static void bases_data(Bp *b, uint32_t block, uint32_t bundle)
{
	const BpFresh *f = &b->best->fresh[bundle];
	if (f->inputs) {
		controller_base(b->c, BP_NEAR_DATA, word_at(b, b->at.case_out + b->input[f->input[0]]));
		controller_base(b->c, BP_FAR_DATA, block + f->input[0] * b->at.data_step);
	}
}

static void bases_bundle(Bp *b, uint32_t bundle)
{
	const BpBundle *n = &b->bundle[bundle];
	const BpBest *best = b->best;
	controller_base(b->c, BP_CASE, row_at(b));
	controller_base(b->c, BP_OUT, word_at(b, b->at.case_out + n->source));
	controller_base(b->c, BP_BACK, word_at(b, b->at.case_net + b->net_word[n->source]));
	controller_base(b->c, BP_NET, word_at(b, b->at.case_net + b->net_word[n->target]));
	controller_base(b->c, BP_NEAR_WEIGHTS, b->at.resident ? b->at.weight_cache + n->first : best->weight[bundle % 2]);
	controller_base(b->c, BP_NEAR_CHANGES, b->at.resident ? b->at.change_cache + n->first : best->change[bundle % 2]);
	controller_base(b->c, BP_NEXT_WEIGHTS, best->weight[(bundle + 1) % 2]);
	controller_base(b->c, BP_NEXT_CHANGES, best->change[(bundle + 1) % 2]);
}

/* Weights and changes of a bundle in DRAM: where this call fetches from. */
static void bases_far(Bp *b, uint32_t bundle)
{
	controller_base(b->c, BP_FAR_WEIGHTS, b->at.weights + b->bundle[bundle].first);
	controller_base(b->c, BP_FAR_CHANGES, b->at.changes + b->bundle[bundle].first);
}

void best_units(Bp *b, const BpChunk *k, const BpCalls *c)
{
	for (uint32_t i = 0; i < b->at.group; i += c->each) {
		controller_base(b->c, BP_CASE, row_at(b) + i);
		if (k) {
			controller_base(b->c, BP_OUT, word_at(b, b->at.case_out + k->first) + i);
			controller_base(b->c, BP_NET, word_at(b, b->at.case_net + b->net_word[k->first]) + i);
			controller_base(b->c, BP_SLOPE, word_at(b, b->at.case_slope + k->slope) + i);
		}
		bp_call(b, c->routine[b->at.group - i < c->each], &b->cycles_units);
	}
}

static void call_copies(Bp *b, uint32_t block, const BpCalls *c)
{
	for (uint32_t i = 0; i < b->at.group; i += c->each) {
		controller_base(b->c, BP_CASE, b->at.cases + i);
		controller_base(b->c, BP_FAR_DATA, block + i);
		bp_call(b, c->routine[b->at.group - i < c->each], &b->cycles_moves);
	}
}

/* Where a call clears changes: those of the bundle, or nothing that matters. */
static void base_clear(Bp *b, uint32_t bundle)
{
	controller_base(b->c, BP_FAR_BACK, b->best->start ? b->at.changes + b->bundle[bundle].first : b->best->nowhere);
}

void best_open(Bp *b, uint32_t first)
{
	BpBest *best = b->best;
	best->block = b->at.data + first / b->at.group * b->at.data_words;
	for (uint32_t i = 0; i < b->copy_calls; i++)
		call_copies(b, best->block, &best->copies[i]);
	controller_base(b->c, BP_FAR_TARGETS, best->block + b->net->inputs * b->at.data_step);
	controller_base(b->c, BP_CASE, row_at(b));
	if (b->bundles) {
		bases_bundle(b, 0);
		bases_far(b, 0);
		bases_data(b, best->block, 0);
		base_clear(b, 0);
	}
	for (uint32_t i = 0; i < best->opens; i++)
		bp_call(b, best->open[i], &b->cycles_moves);
}

void best_forward(Bp *b, uint32_t n)
{
	bool last = n + 1 == b->bundles;
	bases_bundle(b, n);
	bases_far(b, last ? n : n + 1);
	base_clear(b, n);
	if (!last)
		bases_data(b, b->best->block, n + 1);
	bp_call(b, b->bundle[n].forward, &b->cycles_forward);
}

/* The tick after this one has gone back through all bundles. */
void best_reopen(Bp *b)
{
	if (!b->bundles || b->at.resident)
		return;
	bases_bundle(b, b->bundles - 1);
	bases_far(b, b->bundles - 1);
	bp_call(b, b->best->reopen, &b->cycles_moves);
}

void best_backward(Bp *b, uint32_t n)
{
	bases_bundle(b, n);
	bases_far(b, n ? n - 1 : 0);
	if (n + 1 < b->bundles)
		controller_base(b->c, BP_FAR_BACK, b->at.changes + b->bundle[n + 1].first);
	bp_call(b, b->bundle[n].backward, &b->cycles_backward);
	if (n || b->at.resident)
		return;
	bases_far(b, 0);
	bp_call(b, b->best->close, &b->cycles_moves);
}
