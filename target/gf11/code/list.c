/* SPDX-License-Identifier: MIT */
/* List scheduling: cycle by cycle, each unit issues the ready operation with the highest priority.
 * In: the dependence graph, priorities, limits of registers and conditions.  Out: the issue cycle of every node.
 * Must hold: program order obeys the limits; then every schedule does, and none deadlocks.
 *
 * One implementation for both directions: backward, cycle u stands for cycle -u of the routine and edges are
 * reversed.  The rank of a node is its position in program order, in the direction of scheduling.
 *
 * Register pressure is limited by the banker's algorithm: pressure[j] is the number of registers in use just before
 * the node of rank j if everything not yet issued runs in rank order.  A node that would raise any pressure[j] above
 * the limit waits; the node of the lowest rank never does.  A web counts from its first to its last reference, so
 * results in flight count too: true pressure, from write-back to last read, is lower.
 *
 * Nodes far ahead of the lowest rank get a lower limit: they hold registers for long, which would serialize the
 * nodes in between. */
#include <assert.h>
#include <string.h>

#include "schedule.h"

enum { QUEUE_ALU, QUEUE_IN, QUEUE_OUT, QUEUE_DRAM, QUEUE_SWITCH, QUEUES }; /* port: register writes, register reads */
enum { NEAR, FAR, SIDES };                                                 /* within the window, beyond it */
enum { TRIES = 8 }; /* candidates tried before a unit stays idle */
static const uint8_t max_tries[SIDES] = { TRIES, 2 };
enum { RANK_BITS = 28, RANK_MASK = (1 << RANK_BITS) - 1 }; /* rank field of a queue key */
enum { GONE = -(1 << 30) };                                /* pressure of retired ranks */

/* nodes that become ready in this cycle; resources occupied */
typedef struct CycleState {
	uint32_t first;
	uint8_t port, sram;
} CycleState;
typedef struct PressureNode {
	int32_t max, add;
} PressureNode; /* maximum of its subtree, including `add`, which applies to the whole subtree */
typedef struct PressureTree {
	PressureNode *node;
	uint32_t leaves;
} PressureTree; /* segment tree: prefix add, global maximum */

/* Per resource, in scheduling direction: busy cycles of all uses; minimum from issue to the start of a use (negative
 * backward); minimum from the end of a use to the end of the routine. */
typedef struct Remaining {
	int32_t work, begin, tail;
} Remaining;

struct ListScheduler {
	const DepGraph *g;
	Arena *arena;
	const Trial *trial;
	int32_t *time;
	KeyHeap queue[QUEUES][SIDES];
	CycleState *cycle;
	uint32_t cycles;      /* allocated */
	int32_t origin;       /* index of cycle 0 */
	uint32_t *next;       /* list links of cycle[].first */
	uint32_t *preds_left; /* predecessors not yet issued */
	int32_t *ready;
	uint8_t *issued, *queued; /* queued: 1 + side of its queue entry; 0: none */
	uint32_t *refs_done;      /* [webs] references issued */
	PressureTree pressure[2];
	int classes;                 /* register classes: 2 if there are conditions */
	uint32_t *blocked, releases; /* blocked: 1 + value of `releases` when the node was last rejected for pressure */
	uint32_t next_rank;          /* lowest rank not issued */
	uint32_t left;               /* operations not issued */
	int32_t now;
	bool too_long;                /* exceeds max_length */
	int32_t free[RES_SWITCH + 1]; /* next cycle in which a unit can start */
	int32_t *bank_free;
	Remaining remaining[2][RES_SWITCH + 1]; /* [backward] initial values */
	int32_t work[RES_SWITCH + 1];           /* busy cycles of operations not issued */
};

static uint32_t rank_of(const ListScheduler *l, uint32_t node)
{
	return l->trial->backward ? l->g->nodes - 1 - node : node;
}

static uint32_t node_of(const ListScheduler *l, uint32_t rank) { return rank_of(l, rank); }

static bool is_far(const ListScheduler *l, uint32_t node) { return rank_of(l, node) - l->next_rank > l->trial->window; }

/* ---- pressure -------------------------------------------------------------------------------------- */

/* False: unchanged. */
static bool tree_up(PressureTree *r, uint32_t at)
{
	int32_t left = r->node[2 * at].max, right = r->node[2 * at + 1].max, before = r->node[at].max;
	r->node[at].max = (left > right ? left : right) + r->node[at].add;
	return r->node[at].max != before;
}

/* Adds to ranks 0 .. last.  Branch-free, since the branches are unpredictable: at a right child the left sibling
 * gets the amount as a whole. */
static void tree_add(PressureTree *r, uint32_t last, int32_t amount)
{
	uint32_t at = last + r->leaves;
	int32_t max = r->node[at].max += amount;
	while (at > 1) {
		PressureNode *other = &r->node[at ^ 1];
		int32_t whole = amount & -(int32_t)(at & 1);
		other->max += whole;
		other->add += whole;
		at /= 2;
		max = (max > other->max ? max : other->max) + r->node[at].add;
		r->node[at].max = max;
	}
}

static void tree_retire(PressureTree *r, uint32_t rank)
{
	uint32_t at = rank + r->leaves;
	r->node[at].max = GONE;
	while (at /= 2)
		if (!tree_up(r, at))
			return;
}

/* ---- webs --------------------------------------------------------------------------------------- */

/* Adds one reference of the web to the pressure; sign -1: undoes it. */
static void web_count(ListScheduler *l, uint32_t web, int sign)
{
	const Web *w = &l->g->web[web];
	uint32_t a = rank_of(l, w->first), b = rank_of(l, w->last);
	uint32_t first = a < b ? a : b, last = a < b ? b : a;
	PressureTree *r = &l->pressure[w->cond];
	uint32_t refs_done = l->refs_done[web];
	if (!refs_done)
		tree_add(r, first, sign);
	if (refs_done + 1 == w->refs)
		tree_add(r, last, -sign);
}

static void webs_count(ListScheduler *l, uint32_t node, int sign)
{
	const DepNode *n = &l->g->node[node];
	if (n->dst != NONE)
		web_count(l, n->dst, sign);
	for (int k = 0; k < 3; k++)
		if (n->read[k] != NONE)
			web_count(l, n->read[k], sign);
}

/* ---- cycles ------------------------------------------------------------------------------------- */

static CycleState *cycle_at(ListScheduler *l, int32_t when)
{
	uint32_t at = (uint32_t)(when + l->origin);
	if (at >= l->cycles) {
		uint32_t capacity = 2 * l->cycles > at ? 2 * l->cycles : 2 * at;
		l->cycle = arena_grow(l->arena, l->cycle, l->cycles, capacity, sizeof *l->cycle);
		for (uint32_t i = l->cycles; i < capacity; i++)
			l->cycle[i].first = NONE;
		l->cycles = capacity;
	}
	return &l->cycle[at];
}

/* First cycle of a use, in scheduling direction. */
static int32_t use_start(const ListScheduler *l, const ResourceUse *u)
{
	return l->trial->backward ? l->now - u->at - u->busy + 1 : l->now + u->at;
}

static int32_t *free_of(ListScheduler *l, const ResourceUse *u, uint32_t node)
{
	return u->resource == RES_BANK ? &l->bank_free[l->g->node[node].bank] : &l->free[u->resource];
}

static bool use_fits(ListScheduler *l, const ResourceUse *u, uint32_t node)
{
	if (u->resource != RES_PORT && u->resource != RES_SRAM)
		return l->now >= *free_of(l, u, node);
	int32_t start = use_start(l, u);
	for (int32_t k = 0; k < u->busy; k++) {
		const CycleState *c = cycle_at(l, start + k);
		if (u->resource == RES_PORT ? c->port : c->sram)
			return false;
	}
	return true;
}

static void use_take(ListScheduler *l, const ResourceUse *u, uint32_t node)
{
	if (u->resource != RES_PORT && u->resource != RES_SRAM) {
		*free_of(l, u, node) = l->now + u->busy; /* in both directions the next start is this far away */
		return;
	}
	int32_t start = use_start(l, u);
	for (int32_t k = 0; k < u->busy; k++) {
		CycleState *c = cycle_at(l, start + k);
		*(u->resource == RES_PORT ? &c->port : &c->sram) = 1;
	}
}

/* ---- queues ------------------------------------------------------------------------------------- */

/* Larger is more urgent: priority, then rank.  The low bits identify the node. */
static uint64_t key_of(const ListScheduler *l, uint32_t node)
{
	const int64_t middle = (int64_t)1 << (63 - RANK_BITS);
	int64_t priority = l->trial->priority[node];
	assert(priority >= -middle && priority < middle);
	return (uint64_t)(priority + middle) << RANK_BITS | (RANK_MASK - rank_of(l, node));
}

static uint32_t key_node(const ListScheduler *l, uint64_t key)
{
	return node_of(l, RANK_MASK - (uint32_t)(key & RANK_MASK));
}

static int queue_of(const ListScheduler *l, uint32_t node)
{
	static const uint8_t of_unit[UNITS] = {
		[UNIT_ALU] = QUEUE_ALU, [UNIT_PORT] = QUEUE_OUT, [UNIT_DRAM] = QUEUE_DRAM, [UNIT_SWITCH] = QUEUE_SWITCH
	};
	const Timing *s = node_timing(l->g, node);
	return s->unit == UNIT_PORT && l->g->node[node].dst != NONE ? QUEUE_IN : of_unit[s->unit];
}

/* ---- issue -------------------------------------------------------------------------------------- */

static void node_queue(ListScheduler *l, uint32_t node)
{
	int side = is_far(l, node) ? FAR : NEAR;
	l->queued[node] = (uint8_t)(1 + side);
	heap_push(&l->queue[queue_of(l, node)][side], key_of(l, node));
}

static void node_place(ListScheduler *l, uint32_t node, int32_t when);

/* All predecessors are issued: joins are placed at once, operations become ready in their cycle. */
static void node_release(ListScheduler *l, uint32_t node)
{
	if (l->g->node[node].op == GOP_NONE) {
		node_place(l, node, l->ready[node]);
	} else if (l->ready[node] <= l->now) {
		node_queue(l, node);
	} else {
		CycleState *c = cycle_at(l, l->ready[node]);
		l->next[node] = c->first;
		c->first = node;
	}
}

static void node_place(ListScheduler *l, uint32_t node, int32_t when)
{
	const DepGraph *g = l->g;
	const uint32_t *at = l->trial->backward ? g->in_at : g->out_at;
	const DepEdge *edge = l->trial->backward ? g->in : g->out;
	l->time[node] = when;
	l->issued[node] = 1;
	for (uint32_t e = at[node]; e < at[node + 1]; e++) {
		uint32_t to = edge[e].node;
		if (when + edge[e].delay > l->ready[to])
			l->ready[to] = when + edge[e].delay;
		if (!--l->preds_left[to])
			node_release(l, to);
	}
}

static bool node_fits(ListScheduler *l, uint32_t node)
{
	const Timing *s = node_timing(l->g, node);
	for (int k = 0; k < s->uses; k++)
		if (!use_fits(l, &s->use[k], node))
			return false;
	/* Allocates the registers of a node if the rest can still run in rank order within the limits. */
	if (l->blocked[node] == 1 + l->releases && rank_of(l, node) != l->next_rank)
		return false; /* nothing released since the last attempt */
	const Trial *t = l->trial;
	int32_t before[2] = { 0 };
	for (int k = 0; k < l->classes; k++)
		before[k] = l->pressure[k].node[1].max;
	webs_count(l, node, 1);
	bool far = is_far(l, node), fits = true;
	for (int k = 0; k < l->classes; k++) {
		int32_t max = l->pressure[k].node[1].max;
		fits &= max <= t->limit[k] - far * t->reserve[k] || max <= before[k];
	}
	if (!fits && rank_of(l, node) != l->next_rank) {
		webs_count(l, node, -1);
		l->blocked[node] = 1 + l->releases;
		return false;
	}
	const DepNode *n = &l->g->node[node];
	const uint32_t web[] = { n->dst, n->read[0], n->read[1], n->read[2] };
	for (size_t k = 0; k < COUNT(web); k++)
		if (web[k] != NONE)
			l->releases += ++l->refs_done[web[k]] == l->g->web[web[k]].refs;
	return true;
}

/* Lower bound from the issue of a node to the end of the routine. */
static int32_t tail_of(const DepGraph *g, bool backward, uint32_t node)
{
	return (backward ? g->res_head : g->res_tail)[node];
}

static void node_issue(ListScheduler *l, uint32_t node)
{
	const Timing *s = node_timing(l->g, node);
	for (int k = 0; k < s->uses; k++) {
		use_take(l, &s->use[k], node);
		if (s->use[k].resource != RES_BANK)
			l->work[s->use[k].resource] -= s->use[k].busy;
	}
	node_place(l, node, l->now);
	l->too_long |= l->now + tail_of(l->g, l->trial->backward, node) > l->trial->max_length;
	l->left--;
	/* A node that enters the window is queued again on the near side; its far entry becomes stale. */
	while (l->next_rank < l->g->nodes && l->issued[node_of(l, l->next_rank)]) {
		for (int k = 0; k < l->classes; k++)
			tree_retire(&l->pressure[k], l->next_rank);
		l->next_rank++;
		l->releases++;
		if (l->trial->window >= l->g->nodes - l->next_rank)
			continue;
		uint32_t ahead = node_of(l, l->next_rank + l->trial->window);
		if (l->queued[ahead] == 1 + FAR && !l->issued[ahead])
			node_queue(l, ahead);
	}
}

static bool is_stale(const ListScheduler *l, uint64_t key, int side)
{
	uint32_t node = key_node(l, key);
	return l->issued[node] || l->queued[node] != 1 + side;
}

/* The queue with the most urgent top among those with tries left; drops stale entries. */
static int queue_best(const ListScheduler *l, KeyHeap *const *queue, int queues, const uint8_t *tries)
{
	int best = -1;
	for (int k = 0; k < queues; k++) {
		KeyHeap *q = queue[k];
		while (q->count && is_stale(l, q->key[0], k % SIDES))
			heap_pop(q);
		if (!q->count || tries[k] == max_tries[k % SIDES])
			continue;
		if (best < 0 || q->key[0] > queue[best]->key[0])
			best = k;
	}
	return best;
}

/* Issues the most urgent node that fits and requeues those rejected.  Queues come in pairs, near and far. */
static void unit_issue(ListScheduler *l, KeyHeap *const *queue, int queues)
{
	uint64_t back[QUEUES * SIDES * TRIES];
	uint8_t tries[QUEUES * SIDES] = { 0 }, from[QUEUES * SIDES * TRIES];
	uint32_t backs = 0, found = NONE;
	for (int k; found == NONE && (k = queue_best(l, queue, queues, tries)) >= 0;) {
		uint64_t key = heap_pop(queue[k]);
		uint32_t node = key_node(l, key);
		if (node_fits(l, node)) {
			found = node;
			continue;
		}
		tries[k]++;
		from[backs] = (uint8_t)k;
		back[backs++] = key;
	}
	while (backs--)
		heap_push(queue[from[backs]], back[backs]);
	if (found != NONE)
		node_issue(l, found);
}

/* Guarantees progress: the node of the lowest rank may be behind rejected ones in its queue. */
static void next_issue(ListScheduler *l)
{
	if (l->next_rank == l->g->nodes)
		return;
	uint32_t node = node_of(l, l->next_rank);
	if (!l->preds_left[node] && l->ready[node] <= l->now && node_fits(l, node))
		node_issue(l, node);
}

static bool queues_empty(const ListScheduler *l)
{
	for (int k = 0; k < QUEUES; k++)
		if (l->queue[k][NEAR].count || l->queue[k][FAR].count)
			return false;
	return true;
}

/* Do the remaining uses of some resource no longer fit below max_length? */
static bool cannot_improve(const ListScheduler *l)
{
	for (int r = 0; r <= RES_SWITCH; r++) {
		const Remaining *a = &l->remaining[l->trial->backward][r];
		if (l->work[r] && l->now + a->begin + l->work[r] + a->tail > l->trial->max_length)
			return true;
	}
	return false;
}

static void remaining_fill(const DepGraph *g, bool backward, Remaining *remaining)
{
	for (int r = 0; r <= RES_SWITCH; r++)
		remaining[r] = (Remaining){ 0, INT32_MAX, INT32_MAX };
	for (uint32_t i = 0; i < g->nodes; i++) {
		const Timing *s = node_timing(g, i);
		for (int k = 0; k < s->uses; k++) {
			const ResourceUse *u = &s->use[k];
			if (u->resource == RES_BANK)
				continue;
			Remaining *a = &remaining[u->resource];
			int32_t begin = backward ? 1 - u->at - u->busy : u->at, tail = tail_of(g, backward, i) - begin - u->busy;
			a->work += u->busy;
			a->begin = begin < a->begin ? begin : a->begin;
			a->tail = tail < a->tail ? tail : a->tail;
		}
	}
}

static void schedule_start(ListScheduler *l)
{
	const DepGraph *g = l->g;
	const uint32_t *at = l->trial->backward ? g->out_at : g->in_at;
	memset(l->free, 0, sizeof l->free);
	memset(l->bank_free, 0, (size_t)g->m->dram_banks * sizeof *l->bank_free);
	memset(l->issued, 0, g->nodes);
	memset(l->queued, 0, g->nodes);
	memset(l->blocked, 0, g->nodes * sizeof *l->blocked);
	memset(l->refs_done, 0, g->webs * sizeof *l->refs_done);
	for (uint32_t i = 0; i < l->cycles; i++)
		l->cycle[i] = (CycleState){ .first = NONE };
	for (int k = 0; k < QUEUES; k++)
		l->queue[k][NEAR].count = l->queue[k][FAR].count = 0;
	for (int r = 0; r <= RES_SWITCH; r++)
		l->work[r] = l->remaining[l->trial->backward][r].work;
	l->next_rank = 0;
	l->left = g->source->recs;
	l->now = 0;
	l->too_long = false;
	l->releases = 0;
	/* Pressure in rank order: a web counts for each rank after its first up to its last reference. */
	for (int k = 0; k < l->classes; k++)
		memset(l->pressure[k].node, 0, 2 * (size_t)l->pressure[k].leaves * sizeof(PressureNode));
	for (uint32_t i = 0; i < g->webs; i++) {
		const Web *w = &g->web[i];
		uint32_t a = rank_of(l, w->first), b = rank_of(l, w->last);
		PressureNode *leaf = l->pressure[w->cond].node + l->pressure[w->cond].leaves;
		leaf[(a < b ? a : b) + 1].max++;
		leaf[(a < b ? b : a) + 1].max--;
	}
	for (int k = 0; k < l->classes; k++) {
		PressureTree *r = &l->pressure[k];
		for (uint32_t i = 1; i < r->leaves; i++)
			r->node[r->leaves + i].max += r->node[r->leaves + i - 1].max;
		for (uint32_t n = r->leaves; n-- > 1;)
			tree_up(r, n);
	}
	for (int k = 0; k < l->classes; k++)
		tree_retire(&l->pressure[k], g->nodes); /* no rank follows the last */
	for (uint32_t i = 0; i < g->nodes; i++) {
		l->preds_left[i] = at[i + 1] - at[i];
		l->ready[i] = l->trial->backward ? node_timing(g, i)->span : 0;
	}
	for (uint32_t i = 0; i < g->nodes; i++) /* joins always have predecessors */
		if (at[i + 1] == at[i] && g->node[i].op != GOP_NONE)
			node_release(l, i);
}

bool list_schedule(ListScheduler *l, const Trial *trial, int32_t *time)
{
	KeyHeap *const unit[][4] = {
		/* units with long initiation intervals first */
		{ &l->queue[QUEUE_SWITCH][NEAR], &l->queue[QUEUE_SWITCH][FAR] },
		{ &l->queue[QUEUE_DRAM][NEAR], &l->queue[QUEUE_DRAM][FAR] },
		{ &l->queue[QUEUE_IN][NEAR], &l->queue[QUEUE_IN][FAR], &l->queue[QUEUE_OUT][NEAR], &l->queue[QUEUE_OUT][FAR] },
		{ &l->queue[QUEUE_ALU][NEAR], &l->queue[QUEUE_ALU][FAR] },
	};
	/* the port is tracked per cycle: always available here */
	static const uint8_t needs[] = { RES_SWITCH, RES_DRAM, RES_PORT, RES_ALU };
	l->trial = trial;
	l->time = time;
	schedule_start(l);
	while (l->left && !l->too_long) {
		CycleState *c = cycle_at(l, l->now);
		uint32_t node = c->first;
		c->first = NONE;
		while (node != NONE) {
			uint32_t next = l->next[node];
			node_queue(l, node);
			node = next;
		}
		if (!queues_empty(l)) {
			for (size_t k = 0; k < COUNT(unit); k++)
				if (l->now >= l->free[needs[k]])
					unit_issue(l, unit[k], unit[k][2] ? 4 : 2);
			next_issue(l);
		}
		l->now++;
		l->too_long |= l->left && cannot_improve(l);
	}
	if (!trial->backward || l->too_long)
		return !l->too_long;
	int32_t last = 0;
	for (uint32_t i = 0; i < l->g->nodes; i++)
		if (time[i] > last && l->g->node[i].op != GOP_NONE)
			last = time[i];
	for (uint32_t i = 0; i < l->g->nodes; i++)
		time[i] = last - time[i];
	return true;
}

uint32_t list_placed(const ListScheduler *l) { return l->g->source->recs - l->left; }

ListScheduler *list_new(Arena *arena, const DepGraph *g)
{
	ListScheduler *l = NEW(arena, 1, ListScheduler);
	assert(g->nodes <= RANK_MASK);
	l->g = g;
	l->arena = arena;
	int32_t reach = 1;
	for (int op = 0; op < GOPS; op++)
		for (int k = 0; k < g->timing[op].uses; k++)
			if (g->timing[op].use[k].at + g->timing[op].use[k].busy > reach)
				reach = g->timing[op].use[k].at + g->timing[op].use[k].busy;
	l->origin = reach;
	for (int k = 0; k < QUEUES; k++)
		for (int side = 0; side < SIDES; side++)
			l->queue[k][side].key = NEW(arena, (size_t)g->nodes + 1, uint64_t);
	l->next = NEW(arena, g->nodes, uint32_t);
	l->preds_left = NEW(arena, g->nodes, uint32_t);
	l->ready = NEW(arena, g->nodes, int32_t);
	l->issued = NEW(arena, g->nodes, uint8_t);
	l->blocked = NEW(arena, g->nodes, uint32_t);
	l->queued = NEW(arena, g->nodes, uint8_t);
	l->refs_done = NEW(arena, g->webs, uint32_t);
	l->bank_free = NEW(arena, (size_t)g->m->dram_banks, int32_t);
	l->classes = g->webs_of[1] ? 2 : 1;
	for (int k = 0; k < l->classes; k++) {
		PressureTree *r = &l->pressure[k];
		for (r->leaves = 1; r->leaves < g->nodes + 1; r->leaves *= 2)
			;
		r->node = NEW(arena, 2 * (size_t)r->leaves, PressureNode);
	}
	remaining_fill(g, false, l->remaining[false]);
	remaining_fill(g, true, l->remaining[true]);
	l->cycles = 4 * (uint32_t)reach + 2 * g->nodes;
	l->cycle = NEW(arena, l->cycles, CycleState);
	return l;
}

void serial_schedule(const DepGraph *g, int32_t *time)
{
	int32_t now = 0;
	for (uint32_t i = 0; i < g->nodes; i++) {
		time[i] = now;
		now += node_timing(g, i)->span;
	}
}
