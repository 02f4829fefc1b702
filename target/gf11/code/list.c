/* SPDX-License-Identifier: MIT */
/* ListScheduler scheduling: cycle by cycle, each unit takes the max urgent of the operations that can start.
 * In: the graph, priorities, limits of registers and conditions.  Out: the cycle of every node.
 * What must hold: the nodes in their own order keep within the limits; then every schedule made here does, and none
 * gets stuck.
 *
 * Forward and backward are one text: backward, cycle u stands for cycle -u of the routine and edges are taken the
 * other tail round. Nodes have a rank, their place in the order of the walk.
 *
 * Limits are kept as a banker keeps his: room[j] is the number of places taken just before the node of rank j, if
 * from here on all goes in the order of ranks. A node that would run ahead and lift any room[j] over the limit has
 * to wait; the node whose next_rank it is never does. A place counts from the first to the last node that refs the
 * web, so results on their tail count too: the real demand, from arrival to last read, is smaller.
 *
 * Far beyond the node whose next_rank it is, room is given more sparingly: what is taken there is held long, and the
 * nodes in between would have to go one after the other. */
#include <assert.h>
#include <string.h>

#include "schedule.h"

enum { QUEUE_ALU, QUEUE_IN, QUEUE_OUT, QUEUE_DRAM, QUEUE_SWITCH, QUEUES }; /* port: towards registers, and from them */
enum { NEAR, FAR, SIDES };                                                 /* in the window, and beyond */
enum { TRIES = 8 }; /* candidates looked at before a unit stays idle */
static const uint8_t max_tries[SIDES] = { TRIES, 2 };
enum { RANK_BITS = 28, RANK_MASK = (1 << RANK_BITS) - 1 }; /* of a node's rank in its key */
enum { GONE = -(1 << 30) };                                /* room of ranks that are past */

typedef struct ReadyQueue {
	uint64_t *key;
	uint32_t count;
} ReadyQueue; /* a heap, max urgent first */
/* nodes that can start from here on; what is taken */
typedef struct CycleState {
	uint32_t first;
	uint8_t port, sram;
} CycleState;
typedef struct PressureNode {
	int32_t max, add;
} PressureNode; /* the largest of its part, after add to all of that */
typedef struct PressureTree {
	PressureNode *node;
	uint32_t leaves;
} PressureTree; /* a tree: add to the first ranks, find the largest */

/* Uses of a resource, as the walk counts cycles: all of them together; from the issue of an operation to the
 * beginning of its use at least, less than 0 backward; from the end of a use to the end of the routine at least. */
typedef struct Remaining {
	int32_t work, begin, tail;
} Remaining;

struct ListScheduler {
	const DepGraph *g;
	Arena *arena;
	const Trial *trial;
	int32_t *time;
	ReadyQueue queue[QUEUES][SIDES];
	CycleState *cycle;
	uint32_t cycles;      /* [cycles] */
	int32_t origin;       /* entry of cycle 0 */
	uint32_t *next;       /* of the list in a cycle */
	uint32_t *preds_left; /* edges still open */
	int32_t *ready;
	uint8_t *issued, *queued; /* queued: in a queue, 1 + which side */
	uint32_t *refs_done;      /* by web, how often */
	PressureTree pressure[2];
	int classes;                 /* of registers, and of conditions if there are any */
	uint32_t *blocked, releases; /* 1 + how often room came free when a node last found none */
	uint32_t next_rank;          /* the lowest rank not issued */
	uint32_t left;               /* operations not issued */
	int32_t now;
	bool too_long;                /* the schedule gets too long */
	int32_t free[RES_SWITCH + 1]; /* units: the next cycle they can start in */
	int32_t *bank_free;
	Remaining remaining[2][RES_SWITCH + 1]; /* forward and backward: what a trial starts with */
	int32_t work[RES_SWITCH + 1];           /* of operations not issued */
};

static uint32_t rank_of(const ListScheduler *l, uint32_t node)
{
	return l->trial->backward ? l->g->nodes - 1 - node : node;
}

static uint32_t node_of(const ListScheduler *l, uint32_t rank) { return rank_of(l, rank); }

static bool is_far(const ListScheduler *l, uint32_t node) { return rank_of(l, node) - l->next_rank > l->trial->window; }

/* ---- pressure -------------------------------------------------------------------------------------- */

static void tree_init(Arena *a, PressureTree *r, uint32_t ranks)
{
	for (r->leaves = 1; r->leaves < ranks + 1; r->leaves *= 2)
		;
	r->node = NEW(a, 2 * (size_t)r->leaves, PressureNode);
}

/* False: it is as before. */
static bool tree_up(PressureTree *r, uint32_t at)
{
	int32_t left = r->node[2 * at].max, right = r->node[2 * at + 1].max, before = r->node[at].max;
	r->node[at].max = (left > right ? left : right) + r->node[at].add;
	return r->node[at].max != before;
}

/* Adds to the pressure of ranks 0 .. last. Without branches, for nobody could foretell them: on an odd tail the part
 * before is added to as a whole. */
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

/* As if all went in order: a web takes room before each rank after its first up to its last. */
static void pressure_start(ListScheduler *l)
{
	const DepGraph *g = l->g;
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
		for (uint32_t at = r->leaves; at-- > 1;)
			tree_up(r, at);
	}
}

/* ---- webs --------------------------------------------------------------------------------------- */

/* Changes the pressure for one web that the node refs; sign -1 takes it back. */
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

static void webs_ref(ListScheduler *l, uint32_t node)
{
	const DepNode *n = &l->g->node[node];
	const uint32_t web[] = { n->dst, n->read[0], n->read[1], n->read[2] };
	for (size_t k = 0; k < COUNT(web); k++)
		if (web[k] != NONE)
			l->releases += ++l->refs_done[web[k]] == l->g->web[web[k]].refs;
}

/* Takes the places a node needs, if that leaves room for all to go on in order. */
static bool registers_take(ListScheduler *l, uint32_t node)
{
	if (l->blocked[node] == 1 + l->releases && rank_of(l, node) != l->next_rank)
		return false; /* nothing has changed since */
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
	webs_ref(l, node);
	return true;
}

/* ---- cycles ------------------------------------------------------------------------------------- */

static CycleState *cycle_at(ListScheduler *l, int32_t when)
{
	uint32_t at = (uint32_t)(when + l->origin);
	if (at >= l->cycles) {
		uint32_t room = 2 * l->cycles > at ? 2 * l->cycles : 2 * at;
		l->cycle = arena_grow(l->arena, l->cycle, l->cycles, room, sizeof *l->cycle);
		for (uint32_t i = l->cycles; i < room; i++)
			l->cycle[i].first = NONE;
		l->cycles = room;
	}
	return &l->cycle[at];
}

/* First cycle, as the walk counts, that a use takes. */
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
		*free_of(l, u, node) = l->now + u->busy; /* both ways: the next start is so far away at least */
		return;
	}
	int32_t start = use_start(l, u);
	for (int32_t k = 0; k < u->busy; k++) {
		CycleState *c = cycle_at(l, start + k);
		*(u->resource == RES_PORT ? &c->port : &c->sram) = 1;
	}
}

/* ---- queues ------------------------------------------------------------------------------------- */

/* Larger is more urgent: by priority, then by rank.  The lower bits say which node it is. */
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

static void queue_push(ReadyQueue *q, uint64_t key)
{
	uint32_t at = q->count++;
	while (at && key > q->key[(at - 1) / 2]) {
		q->key[at] = q->key[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	q->key[at] = key;
}

static uint64_t queue_pop(ReadyQueue *q)
{
	uint64_t top = q->key[0], key = q->key[--q->count];
	uint32_t at = 0;
	for (uint32_t child; (child = 2 * at + 1) < q->count; at = child) {
		child += child + 1 < q->count && q->key[child + 1] > q->key[child];
		if (q->key[child] <= key)
			break;
		q->key[at] = q->key[child];
	}
	q->key[at] = key;
	return top;
}

static int queue_of(const ListScheduler *l, uint32_t node)
{
	static const uint8_t of_unit[UNITS] = {
		[UNIT_ALU] = QUEUE_ALU, [UNIT_PORT] = QUEUE_OUT, [UNIT_DRAM] = QUEUE_DRAM, [UNIT_SWITCH] = QUEUE_SWITCH
	};
	const Timing *s = node_timing(l->g, node);
	return s->unit == UNIT_PORT && l->g->node[node].dst != NONE ? QUEUE_IN : of_unit[s->unit];
}

/* ---- the walk ----------------------------------------------------------------------------------- */

static void node_queue(ListScheduler *l, uint32_t node)
{
	int side = is_far(l, node) ? FAR : NEAR;
	l->queued[node] = (uint8_t)(1 + side);
	queue_push(&l->queue[queue_of(l, node)][side], key_of(l, node));
}

static void node_defer(ListScheduler *l, uint32_t node)
{
	if (l->ready[node] <= l->now) {
		node_queue(l, node);
		return;
	}
	CycleState *c = cycle_at(l, l->ready[node]);
	l->next[node] = c->first;
	c->first = node;
}

/* Nodes that come into the window change the side; their place on the other is stale from then on. */
static void next_advance(ListScheduler *l)
{
	while (l->next_rank < l->g->nodes && l->issued[node_of(l, l->next_rank)]) {
		for (int k = 0; k < l->classes; k++)
			tree_retire(&l->pressure[k], l->next_rank);
		l->next_rank++;
		l->releases++;
		if (l->trial->window >= l->g->nodes - l->next_rank)
			continue;
		uint32_t node = node_of(l, l->next_rank + l->trial->window);
		if (l->queued[node] == 1 + FAR && !l->issued[node])
			node_queue(l, node);
	}
}

static void node_place(ListScheduler *l, uint32_t node, int32_t when);

/* All that it waited for is placed: a join is, too, at once; an operation goes to the cycle it can start in. */
static void node_release(ListScheduler *l, uint32_t node)
{
	if (l->g->node[node].op == GOP_NONE)
		node_place(l, node, l->ready[node]);
	else
		node_defer(l, node);
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
	return registers_take(l, node);
}

/* From the issue of a node to the end of the routine, at least. */
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
	next_advance(l);
}

static bool is_stale(const ListScheduler *l, uint64_t key, int side)
{
	uint32_t node = key_node(l, key);
	return l->issued[node] || l->queued[node] != 1 + side;
}

/* The queue with the max urgent node on top, of those with tries left; stale nodes are dropped. */
static int queue_best(const ListScheduler *l, ReadyQueue *const *queue, int queues, const uint8_t *tries)
{
	int best = -1;
	for (int k = 0; k < queues; k++) {
		ReadyQueue *q = queue[k];
		while (q->count && is_stale(l, q->key[0], k % SIDES))
			queue_pop(q);
		if (!q->count || tries[k] == max_tries[k % SIDES])
			continue;
		if (best < 0 || q->key[0] > queue[best]->key[0])
			best = k;
	}
	return best;
}

/* Issues the max urgent node that fits; those looked at in vain go back.  Queues come in pairs, near and far. */
static void unit_issue(ListScheduler *l, ReadyQueue *const *queue, int queues)
{
	uint64_t back[QUEUES * SIDES * TRIES];
	uint8_t tries[QUEUES * SIDES] = { 0 }, from[QUEUES * SIDES * TRIES];
	uint32_t backs = 0, found = NONE;
	for (int k; found == NONE && (k = queue_best(l, queue, queues, tries)) >= 0;) {
		uint64_t key = queue_pop(queue[k]);
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
		queue_push(queue[from[backs]], back[backs]);
	if (found != NONE)
		node_issue(l, found);
}

/* The node whose next_rank it is may hide behind others that have to wait for room. */
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

static void cycle_open(ListScheduler *l)
{
	CycleState *c = cycle_at(l, l->now);
	uint32_t node = c->first;
	c->first = NONE;
	while (node != NONE) {
		uint32_t next = l->next[node];
		node_queue(l, node);
		node = next;
	}
}

/* Is there more to do on some resource than the cycles left allow?  So a trial ends as soon as it has lost too many. */
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
	pressure_start(l);
	for (int k = 0; k < l->classes; k++)
		tree_retire(&l->pressure[k], g->nodes); /* nothing comes after the last */
	for (uint32_t i = 0; i < g->nodes; i++) {
		l->preds_left[i] = at[i + 1] - at[i];
		l->ready[i] = l->trial->backward ? node_timing(g, i)->span : 0;
	}
	for (uint32_t i = 0; i < g->nodes; i++) /* a join always preds_left for something */
		if (at[i + 1] == at[i] && g->node[i].op != GOP_NONE)
			node_release(l, i);
}

bool list_schedule(ListScheduler *l, const Trial *trial, int32_t *time)
{
	ReadyQueue *const unit[][4] = {
		/* the units with few starts first */
		{ &l->queue[QUEUE_SWITCH][NEAR], &l->queue[QUEUE_SWITCH][FAR] },
		{ &l->queue[QUEUE_DRAM][NEAR], &l->queue[QUEUE_DRAM][FAR] },
		{ &l->queue[QUEUE_IN][NEAR], &l->queue[QUEUE_IN][FAR], &l->queue[QUEUE_OUT][NEAR], &l->queue[QUEUE_OUT][FAR] },
		{ &l->queue[QUEUE_ALU][NEAR], &l->queue[QUEUE_ALU][FAR] },
	};
	/* the port is kept by cycle: always free here */
	static const uint8_t needs[] = { RES_SWITCH, RES_DRAM, RES_PORT, RES_ALU };
	l->trial = trial;
	l->time = time;
	schedule_start(l);
	while (l->left && !l->too_long) {
		cycle_open(l);
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
	for (int k = 0; k < l->classes; k++)
		tree_init(arena, &l->pressure[k], g->nodes);
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
