/* SPDX-License-Identifier: MIT */
/* Scheduling driver.
 * In: recorded code, a machine, a search budget.  Out: a routine with its report.
 * Must hold: deterministic: equal code on an equal machine gives the same routine.
 *
 *   source   recorded order; if its register pressure is too high, another order, or spilling
 *   level 0  list scheduling by critical path, forward and backward; then forward-backward justification of the best
 *   level 1  randomized priorities with fixed seeds; exhaustive search of small blocks
 *
 * The search ends when the lower bound is met. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "schedule.h"

enum { WIDE = 32 };                               /* limit of conditions in flight, per physical condition */
enum { FIRST_BUDGET = 100000, FIRST_TRIALS = 4 }; /* placements of level 0; minimum number of trials */
enum { START_COST = 8 };                          /* nodes initialized at the cost of one placement */
enum { NEAR_ENOUGH = 512 };                       /* level 0 stops at bound + bound / 512 */
enum {
	PRESCHEDULED_GOOD = 32,
	PRESCHEDULED_ENOUGH = 4,
	PRESCHEDULED_WINDOW = 1024
};                  /* the same for prescheduled code */
enum { GOOD = 32 }; /* within bound / 32 no other order is tried */

typedef struct Search {
	DepGraph *g;
	ListScheduler *list;
	Allocator *allocator;
	Bounds bounds;
	int32_t limit[2]; /* the machine's, less a reserve for results without a reader */
	int64_t *priority;
	int32_t *time, *best;
	int32_t length, target; /* of best; stop at target */
	int32_t cutoff;         /* longer trials are abandoned */
	uint32_t window;        /* of the best trial */
	int32_t conditions;
	uint64_t left; /* remaining placements */
	bool proven;
} Search;

static bool good_enough(const Search *s) { return s->length <= s->target; }

/* ---- trials ------------------------------------------------------------------------------------- */

/* Runs one trial and keeps the best schedule; false: abandoned, or too many registers. */
static bool try_list(Search *s, bool backward, uint32_t window, int32_t conditions)
{
	const DepGraph *g = s->g;
	Trial t = { backward,
		        s->priority,
		        { s->limit[0], conditions },
		        window,
		        { s->limit[0] / 2, conditions / 2 },
		        s->length < s->cutoff ? s->length : s->cutoff };
	bool done = list_schedule(s->list, &t, s->time);
	uint32_t cost = g->nodes / START_COST + 1 + list_placed(s->list);
	s->left = s->left > cost ? s->left - cost : 0;
	if (!done)
		return false;
	int32_t most[2], length = graph_length(g, s->time);
	pressure_scheduled(s->allocator, s->time, most);
	if (most[0] > g->m->registers || most[1] > g->m->conditions)
		return false;
	if (length < s->length) {
		s->length = length;
		s->window = window;
		s->conditions = conditions;
		memcpy(s->best, s->time, g->nodes * sizeof *s->best);
	}
	return true;
}

static void priority_by_tail(Search *s)
{
	for (uint32_t i = 0; i < s->g->nodes; i++)
		s->priority[i] = s->g->res_tail[i];
}

static void priority_by_head(Search *s)
{
	for (uint32_t i = 0; i < s->g->nodes; i++)
		s->priority[i] = s->g->res_head[i];
}

static void priority_by_order(Search *s)
{
	for (uint32_t i = 0; i < s->g->nodes; i++)
		s->priority[i] = -(int64_t)i;
}

/* Readers of conditions first (backward: writers), to shorten their live ranges. */
static void conditions_first(Search *s, bool backward)
{
	const DepGraph *g = s->g;
	for (uint32_t i = 0; i < g->nodes; i++) {
		const DepNode *n = &g->node[i];
		if (backward ? n->dst != NONE && g->web[n->dst].cond : n->read[2] != NONE)
			s->priority[i] += INT32_MAX;
	}
}

/* Justification: schedules right, then left, by the cycles of the best schedule, while that shortens it. */
static void justify_both_ways(Search *s)
{
	for (int32_t before = INT32_MAX; s->length < before && !good_enough(s) && s->left;) {
		before = s->length;
		for (uint32_t i = 0; i < s->g->nodes; i++)
			s->priority[i] = s->best[i];
		if (!try_list(s, true, s->window, s->conditions))
			return;
		for (uint32_t i = 0; i < s->g->nodes; i++)
			s->priority[i] = -(int64_t)s->time[i];
		try_list(s, false, s->window, s->conditions);
	}
}

/* Windows of the list scheduler, most promising first. */
static const uint32_t windows[] = { 256, UINT32_MAX, 512, 128, 1024, 64 };

static void first_trial(Search *s, bool backward, uint32_t window, int32_t conditions)
{
	if (good_enough(s) || !s->left)
		return;
	(backward ? priority_by_head : priority_by_tail)(s);
	if (conditions > s->limit[1])
		conditions_first(s, backward);
	try_list(s, backward, window, conditions);
}

/* Trials longer than `most` are abandoned: better ones are likely, and long ones take long. */
static void search_first(Search *s, int32_t most)
{
	uint64_t few = FIRST_TRIALS * (uint64_t)s->g->nodes;
	s->left = few > FIRST_BUDGET ? few : FIRST_BUDGET;
	s->target = s->bounds.best + s->bounds.best / NEAR_ENOUGH;
	s->cutoff = most;
	if (s->g->source->prescheduled) {
		priority_by_order(s);
		try_list(s, false, PRESCHEDULED_WINDOW, WIDE * s->limit[1]);
		if (s->length > s->bounds.best + s->bounds.best / PRESCHEDULED_GOOD)
			try_list(s, false, UINT32_MAX, WIDE * s->limit[1]);
		if (s->length <= s->bounds.best + s->bounds.best / PRESCHEDULED_ENOUGH)
			s->left = 0;
	}
	/* Trial limits count results in flight, which need no register yet.  That matters for the few conditions: relax
	 * their limit first, and check the true pressure afterwards. */
	for (size_t k = 0; k < COUNT(windows) && !good_enough(s) && s->left; k++) {
		for (int wide = s->g->webs_of[1] ? WIDE : 1; wide; wide /= WIDE) {
			first_trial(s, false, windows[k], wide * s->limit[1]);
			first_trial(s, true, windows[k], wide * s->limit[1]);
		}
	}
	s->cutoff = INT32_MAX;
	justify_both_ways(s);
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return x ^ x >> 31;
}

static void search_randomized(Search *s)
{
	justify_both_ways(s);
	for (uint64_t round = 1; !good_enough(s) && s->left; round++) {
		bool backward = round % 2;
		uint64_t noise = (uint64_t)8 << round / 2 % 8;
		if (backward)
			priority_by_head(s);
		else
			priority_by_tail(s);
		if (round / 16 % 2)
			conditions_first(s, backward);
		for (uint32_t i = 0; i < s->g->nodes; i++)
			s->priority[i] = s->priority[i] * 4 + (int64_t)(mix(round << 32 | i) % noise);
		int32_t before = s->length;
		try_list(s, backward, windows[round / 2 % COUNT(windows)], round / 4 % 2 ? s->limit[1] : WIDE * s->limit[1]);
		if (s->length < before)
			justify_both_ways(s);
	}
}

/* ---- candidate orders and spilling -------------------------------------------------------------- */

/* Results without a reader occupy a register for one cycle that the trial limits do not count: at most one per unit. */
static void limits_fill(const DepGraph *g, int32_t limit[2])
{
	limit[0] = (int32_t)g->m->registers - (g->dead[0] ? UNITS : 0);
	limit[1] = (int32_t)g->m->conditions - (g->dead[1] && g->m->conditions > 1);
}

/* Code that barely fits leaves no registers for overlap, and the list scheduler serializes it.  If the result is far
 * above the bound, other orders and extra spilling are tried.  Fractions of the registers freed by extra spilling: */
static const double slacks[] = { 0, 1 / 12., 1 / 6., 1 / 4. };
enum { RECORDED, DEPTH_FIRST, NEAR_RECORDED, ORDERS, SPILLED = ORDERS, CANDIDATES = SPILLED + COUNT(slacks) };
enum { MIN_REGISTERS = UNITS }; /* operands and result */

typedef struct Candidates {
	Ctx *cx;
	Arena *work;
	const Machine *m;
	DepGraph *order[ORDERS];
	int32_t most[ORDERS][2]; /* register pressure of each, by class */
	bool fits[ORDERS];
	uint32_t unbounded; /* NONE: spilling is possible */
} Candidates;

static void order_measure(Candidates *c, int order, DepGraph *g)
{
	int32_t limit[2];
	limits_fill(g, limit);
	c->order[order] = g;
	pressure_ordered(allocator_new(c->work, g), c->most[order]);
	c->fits[order] = c->most[order][0] <= limit[0] && c->most[order][1] <= limit[1];
}

static DepGraph *order_fitting(Candidates *c, int order)
{
	if (!c->order[order]) {
		Source *s = source_reorder(c->work, c->order[RECORDED], order == DEPTH_FIRST);
		order_measure(c, order, graph_build(c->cx, c->work, c->m, s));
	}
	return c->fits[order] ? c->order[order] : NULL;
}

static int64_t registers_left(const Machine *m, size_t slack)
{
	return m->registers - UNITS - (int64_t)(slacks[slack] * (double)m->registers);
}

/* The order with the lowest register pressure. */
static int order_best(const Candidates *c)
{
	int best = -1;
	for (int k = 0; k < ORDERS; k++)
		if (c->most[k][1] <= c->m->conditions && (best < 0 || c->most[k][0] < c->most[best][0]))
			best = k;
	return best;
}

/* NULL: not needed, or SRAM has too few free words. */
static DepGraph *order_spilled(Candidates *c, size_t slack)
{
	int64_t limit = registers_left(c->m, slack);
	int order = order_best(c);
	if (order < 0 || limit < MIN_REGISTERS || c->unbounded != NONE || (c->fits[order] && c->most[order][0] <= limit))
		return NULL;
	Source *s = source_spill(c->work, c->m, c->order[order]->source, (uint32_t)limit);
	return s ? graph_build(c->cx, c->work, c->m, s) : NULL;
}

/* Near the register limit: other candidates may be better. */
static bool is_tight(const Candidates *c)
{
	return c->most[RECORDED][0] > registers_left(c->m, COUNT(slacks) - 1) || !c->fits[RECORDED];
}

/* ---- microwords --------------------------------------------------------------------------------- */

static Micro micro_make(const DepGraph *g, const DepNode *n, const uint32_t *phys)
{
	const Rec *r = &g->source->rec[n->rec];
	unsigned uses = forms[ops[r->op].form].uses;
	Micro u = { .op = r->op, .rec = g->source->origin[n->rec] };
	if (uses & USES_DST)
		u.dst = (uint16_t)phys[n->dst];
	if (uses & USES_A)
		u.a = (uint16_t)phys[n->from[0]];
	if (uses & USES_B)
		u.b = (uint16_t)phys[n->from[1]];
	if (uses & READS_CC)
		u.cc = (uint8_t)phys[n->from[2]];
	if (uses & WRITES_CC)
		u.cc = (uint8_t)phys[n->dst];
	if (uses & USES_MEM)
		u.mem = r->mem;
	if (uses & USES_FAR)
		u.far = r->far;
	if (uses & USES_K)
		u.k = r->k;
	return u;
}

static void lines_empty(Ctx *cx, Routine *r, uint32_t lines)
{
	r->report.cycles = r->lines = lines;
	r->line = NEW(&cx->keep, lines, Line);
	for (uint32_t t = 0; t < lines; t++)
		for (int unit = 0; unit < UNITS; unit++)
			r->line[t].slot[unit] = (Micro){ .op = GOP_NONE, .rec = NONE };
}

/* ---- driver ------------------------------------------------------------------------------------- */

static void work_free(void *arena) { arena_free(arena); }

static void search_init(Search *s, Arena *work, DepGraph *g)
{
	*s = (Search){ .g = g, .bounds = bound_graph(work, g), .allocator = allocator_new(work, g) };
	s->list = list_new(work, g); /* needs res_head and res_tail of bound_graph */
	limits_fill(g, s->limit);
	s->priority = NEW(work, g->nodes, int64_t);
	s->time = NEW(work, g->nodes, int32_t);
	s->best = NEW(work, g->nodes, int32_t);
	serial_schedule(g, s->best);
	s->length = graph_length(g, s->best);
}

/* Without a search: the shortest of three list schedules, by critical path, forward and backward, with any number of
 * registers, and in recorded order, with those of the machine if it fits them.  Dependences, latencies and busy units
 * count; the other orders that a search tries, and spilling, do not.  If a routine can fit a block, a search makes it
 * fit. */
static int32_t length_estimate(Search *s)
{
	enum { ANY = INT32_MAX / 2 };
	static void (*const priority[])(Search *) = { priority_by_order, priority_by_tail, priority_by_head };
	int32_t best = s->length, most[2];
	pressure_ordered(s->allocator, most);
	bool fits = most[0] <= s->limit[0] && most[1] <= s->limit[1];
	for (size_t k = 0; k < COUNT(priority) && best > s->bounds.best; k++) {
		Trial t = { .priority = s->priority, .limit = { ANY, ANY }, .window = UINT32_MAX, .max_length = best };
		priority[k](s);
		t.backward = priority[k] == priority_by_head;
		if (priority[k] == priority_by_order && fits) {
			t.limit[0] = s->limit[0];
			t.reserve[0] = s->limit[0] / 2;
			t.window = PRESCHEDULED_WINDOW;
		}
		if (list_schedule(s->list, &t, s->time))
			best = min_i32(best, graph_length(s->g, s->time));
	}
	return min_i32(best, max_i32((int32_t)s->g->m->block, s->bounds.best));
}

/* The first candidate close to the bound, or the shortest. */
static void search_candidates(Candidates *c, Search *best)
{
	*best = (Search){ .length = INT32_MAX };
	for (int candidate = 0; candidate < CANDIDATES; candidate++) {
		DepGraph *g =
			candidate < SPILLED ? order_fitting(c, candidate) : order_spilled(c, (size_t)(candidate - SPILLED));
		if (!g)
			continue;
		Search s;
		search_init(&s, c->work, g);
		int32_t good = s.bounds.best + s.bounds.best / GOOD, most = 2 * s.bounds.best;
		search_first(&s, most < best->length ? most : best->length);
		bool better = s.length < best->length;
		if (better)
			*best = s;
		if (best->length <= good || !is_tight(c) || (candidate > SPILLED && !better))
			break; /* more spilling does not help */
	}
	if (!best->g) {
		const Machine *m = c->m;
		const Source *s = c->order[RECORDED]->source;
		if (order_best(c) < 0)
			fail(c->cx, MP_BAD_INPUT, "use a condition sooner after its comparison, or keep it in a register by select",
			     "%s: %d conditions are live at once, and the machine has %lld", s->name, (int)c->most[RECORDED][1],
			     (long long)m->conditions);
		if (c->unbounded != NONE)
			fail(c->cx, MP_BAD_INPUT, "bound the index with g_index_limit, or make the block smaller",
			     "%s: values cannot be spilled to SRAM: the index of operation %u, %s, is unbounded", s->name,
			     c->unbounded, ops[s->rec[c->unbounded].op].name);
		fail(c->cx, MP_BAD_INPUT, "make the block smaller", "%s: spill slots do not fit in %lld words of SRAM", s->name,
		     (long long)m->sram);
	}
	if (best->length > 2 * best->bounds.best)
		search_first(best, INT32_MAX);
}

double routine_measure(const Machine *m, const Routine *r)
{
	double useful = r->update ? (double)m->switch_interval * r->report.transfers : r->report.arithmetic;
	return r->lines ? useful / r->lines : 0;
}

static Routine *routine_make(Ctx *cx, Arena *work, const Machine *m, Code *code, const ScheduleOptions *o)
{
	double begun = clock_seconds();
	Routine *r = NEW(&cx->keep, 1, Routine);
	r->name = code->name;
	r->code = code;
	r->update = code->update;
	report_count(code, &r->report);
	if (!code->recs)
		return r;
	Candidates candidates = { .cx = cx, .work = work, .m = m };
	Source *source = source_new(work, code);
	if (o->level == LEVEL_ESTIMATE) {
		Search s;
		search_init(&s, work, graph_build(cx, work, m, source));
		report_bounds(&s.bounds, &r->report);
		lines_empty(cx, r, (uint32_t)length_estimate(&s));
		return r;
	}
	candidates.unbounded = source_unbounded_index(source);
	order_measure(&candidates, RECORDED, graph_build(cx, work, m, source));
	Search s;
	search_candidates(&candidates, &s);
	s.target = s.bounds.best;
	if (o->level > 0 && !good_enough(&s)) {
		uint64_t n = 1000000; /* placements, about half a second */
		for (int k = 1; k < o->level && k < 8; k++)
			n *= 8;
		double most = o->seconds * 2e6;
		s.left = o->seconds > 0 && most < (double)n ? (uint64_t)most : n;
		if (s.g->nodes <= EXACT_NODES)
			s.proven = exact_search(work, s.g, s.allocator, s.bounds.best, s.best, s.left / 20).complete;
		s.length = graph_length(s.g, s.best);
		if (!s.proven)
			search_randomized(&s);
	}
	s.proven |= good_enough(&s);
	assert(s.length >= s.bounds.best);
	/* of the recording: spilling lengthens a routine, not its bound */
	Bounds b = s.g->source->spills ? bound_graph(work, candidates.order[RECORDED]) : s.bounds;
	report_bounds(&b, &r->report);
	const DepGraph *g = s.g;
	uint32_t *phys = NEW(work, g->webs, uint32_t);
	allocate_registers(s.allocator, s.best, phys);
	for (uint32_t i = 0; i < g->webs; i++)
		if (!g->web[i].cond && phys[i] + 1 > r->report.registers)
			r->report.registers = phys[i] + 1;
	assert(r->report.registers <= g->m->registers);
	lines_empty(cx, r, (uint32_t)s.length);
	for (uint32_t i = 0; i < g->nodes; i++)
		if (g->node[i].op != GOP_NONE)
			r->line[s.best[i]].slot[node_timing(g, i)->unit] = micro_make(g, &g->node[i], phys);
	r->report.spills = s.g->source->spills;
	r->report.optimal = s.length == b.best || (s.proven && !r->report.spills);
	r->report.report_measure = routine_measure(m, r);
	r->report.seconds = clock_seconds() - begun;
	return r;
}

Routine *schedule(Ctx *cx, const Machine *m, Code *code, const ScheduleOptions *o)
{
	Arena *work = NEW(&cx->scratch, 1, Arena); /* freed at the end, or with scratch on failure */
	work->cx = cx;
	arena_defer(&cx->scratch, work_free, work);
	Routine *r = routine_make(cx, work, m, code, o);
	arena_free(work);
	if (r->lines > m->block && o->level != LEVEL_ESTIMATE)
		fail(cx, MP_BAD_INPUT, "record it as several routines", "%s: %u lines are more than the %lld of a block",
		     code->name ? code->name : "routine", r->lines, (long long)m->block);
	return r;
}

/* ---- schedule cache ----------------------------------------------------------------------------- */

typedef struct CacheEntry {
	XXH128_hash_t hash;
	Routine *routine;
	struct CacheEntry *next;
} CacheEntry;
struct ScheduleCache {
	CacheEntry *entry[256];
};

ScheduleCache *schedule_cache_new(Ctx *cx) { return NEW(&cx->keep, 1, ScheduleCache); }

Routine *schedule_cached(Ctx *cx, ScheduleCache *cache, const Machine *m, Code *code, const ScheduleOptions *o)
{
	/* Field by field: padding bytes are undefined. */
	enum { WORDS = 10 };
	size_t bases = code->index_limit ? (size_t)m->relocations : 0;
	uint32_t *words = NEW(&cx->scratch, (size_t)code->recs * WORDS + 6 + bases, uint32_t), *w = words;
	for (uint32_t i = 0; i < code->recs; i++) {
		const Rec *r = &code->rec[i];
		const uint32_t field[WORDS] = { r->op,       r->dst,     r->a,        r->b,       r->cc,
			                            r->mem.base, r->mem.off, r->far.base, r->far.off, r->k.u };
		memcpy(w, field, sizeof field);
		w += WORDS;
	}
	const uint32_t rest[] = { code->regs,   code->conds,        code->bases_overlap,
		                      code->update, code->prescheduled, (uint32_t)o->level };
	memcpy(w, rest, sizeof rest);
	w += COUNT(rest);
	if (bases)
		memcpy(w, code->index_limit, bases * sizeof *w);
	w += bases;
	Machine plain = *m;
	plain.name = NULL;
	plain.from = NULL;
	const XXH128_hash_t parts[] = { XXH3_128bits(words, (size_t)(w - words) * sizeof *w),
		                            XXH3_128bits(&plain, sizeof plain), XXH3_128bits(&o->seconds, sizeof o->seconds) };
	XXH128_hash_t hash = XXH3_128bits(parts, sizeof parts);
	CacheEntry **list = &cache->entry[hash.low64 & (COUNT(cache->entry) - 1)];
	for (CacheEntry *k = *list; k; k = k->next)
		if (XXH128_isEqual(k->hash, hash))
			return k->routine;
	CacheEntry *k = NEW(&cx->keep, 1, CacheEntry);
	*k = (CacheEntry){ hash, schedule(cx, m, code, o), *list };
	*list = k;
	return k->routine;
}
