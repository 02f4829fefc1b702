/* SPDX-License-Identifier: MIT */
/* Registers and condition codes for a schedule.
 * In: the graph and the cycle of every node.  Out: how many places are needed at once, and which web gets which.
 * What must hold: a place is free for the next word when the last read of the old one is issued, since the new one
 * arrives later; so a web takes its place from the cycle its first word arrives to its last read or arrival, no longer.
 *
 * Webs are intervals then, and giving each the place that was freed last needs no more places than the most in use at
 * once. */
#include <string.h>

#include "schedule.h"

typedef struct Taken {
	int32_t from, to;
} Taken; /* cycles, both included */

struct Places {
	Arena *arena;
	const Graph *g;
	Taken *taken; /* [webs] */
	int32_t *change[2];
	uint32_t room;           /* by cycle */
	uint32_t *starts, *next; /* lists of webs by cycle */
	uint32_t *ends, *next_end;
	uint32_t *free[2]; /* stacks */
};

Places *places_new(Arena *arena, const Graph *g)
{
	Places *p = NEW(arena, 1, Places);
	p->arena = arena;
	p->g = g;
	p->taken = NEW(arena, g->webs, Taken);
	p->next = NEW(arena, g->webs, uint32_t);
	p->next_end = NEW(arena, g->webs, uint32_t);
	for (int k = 0; k < 2; k++)
		p->free[k] = NEW(arena, g->webs_of[k], uint32_t);
	return p;
}

static void room_for(Places *p, int32_t cycles)
{
	if ((uint32_t)cycles <= p->room)
		return;
	uint32_t room = 2 * (uint32_t)cycles;
	for (int k = 0; k < 2; k++)
		p->change[k] = arena_grow(p->arena, p->change[k], p->room, room, sizeof(int32_t));
	p->starts = arena_grow(p->arena, p->starts, p->room, room, sizeof(uint32_t));
	p->ends = arena_grow(p->arena, p->ends, p->room, room, sizeof(uint32_t));
	p->room = room;
}

static void most_changed(Places *p, int32_t cycles, int32_t most[2])
{
	for (int k = 0; k < 2; k++) {
		int32_t in_use = 0;
		most[k] = 0;
		for (int32_t t = 0; t < cycles; t++) {
			in_use += p->change[k][t];
			most[k] = in_use > most[k] ? in_use : most[k];
		}
	}
}

void pressure_ordered(Places *p, int32_t most[2])
{
	const Graph *g = p->g;
	int32_t steps = (int32_t)g->nodes + 2;
	room_for(p, steps);
	for (int k = 0; k < 2; k++)
		memset(p->change[k], 0, (size_t)steps * sizeof(int32_t));
	for (uint32_t i = 0; i < g->webs; i++) { /* a word nobody reads is there for a moment, too */
		const Web *w = &g->web[i];
		p->change[w->cond][w->first + 1]++;
		p->change[w->cond][(w->last > w->first ? w->last : w->first + 1) + 1]--;
	}
	most_changed(p, steps, most);
}

static void find_taken(Places *p, const int32_t *time)
{
	const Graph *g = p->g;
	for (uint32_t i = 0; i < g->webs; i++)
		p->taken[i] = (Taken){ INT32_MAX, 0 };
	for (uint32_t i = 0; i < g->nodes; i++) {
		const Node *n = &g->node[i];
		if (n->dst != NOTHING) {
			Taken *t = &p->taken[n->dst];
			int32_t there = time[i] + node_shape(g, i)->latency;
			t->from = there < t->from ? there : t->from;
			t->to = there > t->to ? there : t->to;
		}
		for (int k = 0; k < 3; k++)
			if (n->read[k] != NOTHING && time[i] > p->taken[n->read[k]].to)
				p->taken[n->read[k]].to = time[i];
	}
}

void pressure_scheduled(Places *p, const int32_t *time, int32_t most[2])
{
	const Graph *g = p->g;
	int32_t cycles = graph_length(g, time) + 2;
	room_for(p, cycles);
	for (int k = 0; k < 2; k++)
		memset(p->change[k], 0, (size_t)cycles * sizeof(int32_t));
	find_taken(p, time);
	for (uint32_t i = 0; i < g->webs; i++) {
		p->change[g->web[i].cond][p->taken[i].from]++;
		p->change[g->web[i].cond][p->taken[i].to + 1]--;
	}
	most_changed(p, cycles, most);
}

void places_assign(Places *p, const int32_t *time, uint32_t *place)
{
	const Graph *g = p->g;
	int32_t cycles = graph_length(g, time) + 2;
	room_for(p, cycles);
	memset(p->starts, 0xFF, (size_t)cycles * sizeof *p->starts);
	memset(p->ends, 0xFF, (size_t)cycles * sizeof *p->ends);
	find_taken(p, time);
	for (uint32_t i = g->webs; i-- > 0;) {
		p->next[i] = p->starts[p->taken[i].from];
		p->starts[p->taken[i].from] = i;
		p->next_end[i] = p->ends[p->taken[i].to + 1];
		p->ends[p->taken[i].to + 1] = i;
	}
	uint32_t frees[2] = { 0 }, used[2] = { 0 };
	for (int32_t t = 0; t < cycles; t++) {
		for (uint32_t i = p->ends[t]; i != NOTHING; i = p->next_end[i])
			p->free[g->web[i].cond][frees[g->web[i].cond]++] = place[i];
		for (uint32_t i = p->starts[t]; i != NOTHING; i = p->next[i]) {
			bool cond = g->web[i].cond;
			place[i] = frees[cond] ? p->free[cond][--frees[cond]] : used[cond]++;
		}
	}
}
