/* SPDX-License-Identifier: MIT */
/* Exact scheduling of small blocks: branch and bound with iterative deepening.
 * In: the dependence graph, a lower bound, a schedule.  Out: an optimal schedule and proof, or the best found within
 * the step limit.
 *
 * For a given length every operation has a window of issue cycles.  Propagation narrows windows along edges
 * (negative delays included) and around resource conflicts with operations whose window is a single cycle; a set of
 * windows too narrow for its operations ends the branch.  Branching: the operation with the earliest window issues
 * there, or later.  Register pressure is checked when all cycles are fixed. */
#include <assert.h>
#include <string.h>

#include "schedule.h"

typedef struct Window {
	int32_t from, to;
} Window;
typedef struct Windows {
	Window at[EXACT_NODES];
} Windows;

typedef struct ExactSearch {
	const DepGraph *g;
	Allocator *allocator;
	uint64_t steps, limit;
	int32_t *time; /* schedule found */
} ExactSearch;

static bool propagate_edges(const DepGraph *g, Windows *w, bool *changed)
{
	for (uint32_t i = 0; i < g->nodes; i++) {
		for (uint32_t e = g->in_at[i]; e < g->in_at[i + 1]; e++) {
			Window *from = &w->at[g->in[e].node], *to = &w->at[i];
			int32_t delay = g->in[e].delay;
			if (from->from + delay > to->from) {
				to->from = from->from + delay;
				*changed = true;
			}
			if (to->to - delay < from->to) {
				from->to = to->to - delay;
				*changed = true;
			}
			if (from->from > from->to || to->from > to->to)
				return false;
		}
	}
	return true;
}

/* Removes from window u the cycles whose use would conflict with that of an operation issued in cycle t. */
static bool avoid_conflict(const ResourceUse *taken, int32_t t, const ResourceUse *use, Window *u, bool *changed)
{
	int32_t first = t + taken->at - use->busy + 1 - use->at, last = t + taken->at + taken->busy - 1 - use->at;
	if (u->from >= first && u->from <= last) {
		u->from = last + 1;
		*changed = true;
	}
	if (u->to >= first && u->to <= last) {
		u->to = first - 1;
		*changed = true;
	}
	return u->from <= u->to;
}

static bool avoid_pair(const DepGraph *g, uint32_t fixed, uint32_t other, Windows *w, bool *changed)
{
	const Timing *a = node_timing(g, fixed), *b = node_timing(g, other);
	for (int i = 0; i < a->uses; i++)
		for (int k = 0; k < b->uses; k++) {
			if (a->use[i].resource != b->use[k].resource)
				continue;
			if (a->use[i].resource == RES_BANK && g->node[fixed].bank != g->node[other].bank)
				continue;
			if (!avoid_conflict(&a->use[i], w->at[fixed].from, &b->use[k], &w->at[other], changed))
				return false;
		}
	return true;
}

static bool propagate_resources(const DepGraph *g, Windows *w, bool *changed)
{
	for (uint32_t i = 0; i < g->nodes; i++) {
		if (w->at[i].from != w->at[i].to || !node_timing(g, i)->uses)
			continue;
		for (uint32_t k = 0; k < g->nodes; k++)
			if (k != i && !avoid_pair(g, i, k, w, changed))
				return false;
	}
	return true;
}

/* Are the windows wide enough for all first uses of each resource? */
static bool resource_feasible(const DepGraph *g, const Windows *w, uint32_t resource)
{
	Window job[EXACT_NODES];
	int32_t jobs = 0, busy = 1;
	for (uint32_t i = 0; i < g->nodes; i++) {
		const Timing *s = node_timing(g, i);
		if (!s->uses || s->use[0].resource != resource)
			continue;
		busy = s->use[0].busy;
		int32_t at = jobs++;
		for (; at && job[at - 1].to > w->at[i].to; at--)
			job[at] = job[at - 1];
		job[at] = w->at[i];
	}
	for (int32_t a = 0; a < jobs; a++) {
		int32_t inside = 0;
		for (int32_t k = 0; k < jobs; k++) {
			if (job[k].from < job[a].from)
				continue;
			inside++;
			if ((inside - 1) * busy > job[k].to - job[a].from)
				return false;
		}
	}
	return true;
}

static bool propagate(ExactSearch *f, Windows *w)
{
	f->steps++;
	for (bool changed = true; changed;) {
		changed = false;
		if (!propagate_edges(f->g, w, &changed) || !propagate_resources(f->g, w, &changed))
			return false;
	}
	for (uint32_t r = 0; r < RES_BANK; r++)
		if (!resource_feasible(f->g, w, r))
			return false;
	return true;
}

static bool registers_suffice(ExactSearch *f, const Windows *w)
{
	const DepGraph *g = f->g;
	for (uint32_t i = 0; i < g->nodes; i++)
		f->time[i] = w->at[i].from;
	if (g->webs_of[0] <= g->m->registers && g->webs_of[1] <= g->m->conditions)
		return true;
	int32_t peak[2];
	pressure_scheduled(f->allocator, f->time, peak);
	return peak[0] <= g->m->registers && peak[1] <= g->m->conditions;
}

/* w is propagated; true: schedule in f->time. */
static bool branch(ExactSearch *f, Windows *w)
{
	for (;;) {
		const DepGraph *g = f->g;
		uint32_t node = NONE; /* with the earliest window */
		for (uint32_t i = 0; i < g->nodes; i++) {
			const Window *a = &w->at[i];
			if (a->from == a->to || g->node[i].op == GOP_NONE)
				continue;
			const Window *b = node == NONE ? NULL : &w->at[node];
			if (!b || a->from < b->from || (a->from == b->from && a->to < b->to))
				node = i;
		}
		if (node == NONE)
			return registers_suffice(f, w);
		if (f->steps >= f->limit)
			return false;
		Windows then = *w;
		then.at[node].to = then.at[node].from;
		if (propagate(f, &then) && branch(f, &then))
			return true;
		w->at[node].from++;
		if (!propagate(f, w))
			return false;
	}
}

static bool search_length(ExactSearch *f, int32_t length)
{
	const DepGraph *g = f->g;
	Windows w = { 0 };
	for (uint32_t i = 0; i < g->nodes; i++) {
		w.at[i] = (Window){ g->head[i], length - g->tail[i] };
		if (w.at[i].from > w.at[i].to)
			return false;
	}
	return propagate(f, &w) && branch(f, &w);
}

Exact exact_search(Arena *arena, const DepGraph *g, Allocator *p, int32_t bound, int32_t *time, uint64_t limit)
{
	Exact result = { 0 };
	if (g->nodes > EXACT_NODES)
		return result;
	ExactSearch f = { .g = g, .allocator = p, .limit = limit, .time = NEW(arena, g->nodes, int32_t) };
	int32_t length = graph_length(g, time), tried = bound;
	for (; tried < length && f.steps < limit; tried++) {
		if (search_length(&f, tried)) {
			memcpy(time, f.time, g->nodes * sizeof *time);
			length = tried;
		}
	}
	result.complete = f.steps < limit || length == bound;
	f.limit += limit; /* no proof: try for something shorter */
	while (!result.complete && length > bound && search_length(&f, length - 1)) {
		memcpy(time, f.time, g->nodes * sizeof *time);
		length = graph_length(g, time);
	}
	result.steps = f.steps;
	return result;
}
