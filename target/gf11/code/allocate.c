/* SPDX-License-Identifier: MIT */
/* Register allocation for a schedule.
 * In: the dependence graph, the issue cycle of every node.  Out: register pressure; the physical register of every web.
 * Must hold: a register is free as soon as the last read of its value is issued, since the next value is written later;
 * so a live range extends exactly from the first write-back to the last read or write-back.
 *
 * Live ranges are intervals: linear scan, reusing the most recently freed register, needs no more registers than the
 * peak pressure. */
#include <string.h>

#include "schedule.h"

typedef struct LiveRange {
	int32_t from, to;
} LiveRange; /* inclusive */

struct Allocator {
	Arena *arena;
	const DepGraph *g;
	LiveRange *range; /* [webs] */
	int32_t *change[2];
	uint32_t capacity;       /* cycles allocated */
	uint32_t *starts, *next; /* lists of webs by cycle */
	uint32_t *ends, *next_end;
	uint32_t *free[2]; /* stacks */
};

Allocator *allocator_new(Arena *arena, const DepGraph *g)
{
	Allocator *p = NEW(arena, 1, Allocator);
	p->arena = arena;
	p->g = g;
	p->range = NEW(arena, g->webs, LiveRange);
	p->next = NEW(arena, g->webs, uint32_t);
	p->next_end = NEW(arena, g->webs, uint32_t);
	for (int k = 0; k < 2; k++)
		p->free[k] = NEW(arena, g->webs_of[k], uint32_t);
	return p;
}

static void grow(Allocator *p, int32_t cycles)
{
	if ((uint32_t)cycles <= p->capacity)
		return;
	uint32_t capacity = 2 * (uint32_t)cycles;
	for (int k = 0; k < 2; k++)
		p->change[k] = arena_grow(p->arena, p->change[k], p->capacity, capacity, sizeof(int32_t));
	p->starts = arena_grow(p->arena, p->starts, p->capacity, capacity, sizeof(uint32_t));
	p->ends = arena_grow(p->arena, p->ends, p->capacity, capacity, sizeof(uint32_t));
	p->capacity = capacity;
}

static void peak_pressure(Allocator *p, int32_t cycles, int32_t peak[2])
{
	for (int k = 0; k < 2; k++) {
		int32_t in_use = 0;
		peak[k] = 0;
		for (int32_t t = 0; t < cycles; t++) {
			in_use += p->change[k][t];
			peak[k] = in_use > peak[k] ? in_use : peak[k];
		}
	}
}

void pressure_ordered(Allocator *p, int32_t peak[2])
{
	const DepGraph *g = p->g;
	int32_t steps = (int32_t)g->nodes + 2;
	grow(p, steps);
	for (int k = 0; k < 2; k++)
		memset(p->change[k], 0, (size_t)steps * sizeof(int32_t));
	for (uint32_t i = 0; i < g->webs; i++) { /* a value without a reader is live for one step */
		const Web *w = &g->web[i];
		p->change[w->cond][w->first + 1]++;
		p->change[w->cond][(w->last > w->first ? w->last : w->first + 1) + 1]--;
	}
	peak_pressure(p, steps, peak);
}

static void find_live_ranges(Allocator *p, const int32_t *time)
{
	const DepGraph *g = p->g;
	for (uint32_t i = 0; i < g->webs; i++)
		p->range[i] = (LiveRange){ INT32_MAX, 0 };
	for (uint32_t i = 0; i < g->nodes; i++) {
		const DepNode *n = &g->node[i];
		if (n->dst != NONE) {
			LiveRange *t = &p->range[n->dst];
			int32_t there = time[i] + node_timing(g, i)->latency;
			t->from = there < t->from ? there : t->from;
			t->to = there > t->to ? there : t->to;
		}
		for (int k = 0; k < 3; k++)
			if (n->read[k] != NONE && time[i] > p->range[n->read[k]].to)
				p->range[n->read[k]].to = time[i];
	}
}

void pressure_scheduled(Allocator *p, const int32_t *time, int32_t peak[2])
{
	const DepGraph *g = p->g;
	int32_t cycles = graph_length(g, time) + 2;
	grow(p, cycles);
	for (int k = 0; k < 2; k++)
		memset(p->change[k], 0, (size_t)cycles * sizeof(int32_t));
	find_live_ranges(p, time);
	for (uint32_t i = 0; i < g->webs; i++) {
		p->change[g->web[i].cond][p->range[i].from]++;
		p->change[g->web[i].cond][p->range[i].to + 1]--;
	}
	peak_pressure(p, cycles, peak);
}

void allocate_registers(Allocator *p, const int32_t *time, uint32_t *phys)
{
	const DepGraph *g = p->g;
	int32_t cycles = graph_length(g, time) + 2;
	grow(p, cycles);
	memset(p->starts, 0xFF, (size_t)cycles * sizeof *p->starts);
	memset(p->ends, 0xFF, (size_t)cycles * sizeof *p->ends);
	find_live_ranges(p, time);
	for (uint32_t i = g->webs; i-- > 0;) {
		p->next[i] = p->starts[p->range[i].from];
		p->starts[p->range[i].from] = i;
		p->next_end[i] = p->ends[p->range[i].to + 1];
		p->ends[p->range[i].to + 1] = i;
	}
	uint32_t frees[2] = { 0 }, used[2] = { 0 };
	for (int32_t t = 0; t < cycles; t++) {
		for (uint32_t i = p->ends[t]; i != NONE; i = p->next_end[i])
			p->free[g->web[i].cond][frees[g->web[i].cond]++] = phys[i];
		for (uint32_t i = p->starts[t]; i != NONE; i = p->next[i]) {
			bool cond = g->web[i].cond;
			phys[i] = frees[cond] ? p->free[cond][--frees[cond]] : used[cond]++;
		}
	}
}
