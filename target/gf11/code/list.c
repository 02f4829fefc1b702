/* SPDX-License-Identifier: MIT */
/* List scheduling: cycle by cycle, each unit takes the most urgent of the operations that can start.
 * In: the graph, priorities, limits of registers and conditions.  Out: the cycle of every node.
 * What must hold: the nodes in their own order keep within the limits; then every schedule made here does, and none
 * gets stuck.
 *
 * Forward and backward are one text: backward, cycle u stands for cycle -u of the routine and edges are taken the
 * other way round. Nodes have a rank, their place in the order of the walk.
 *
 * Limits are kept as a banker keeps his: room[j] is the number of places taken just before the node of rank j, if
 * from here on all goes in the order of ranks. A node that would run ahead and lift any room[j] over the limit has
 * to wait; the node whose turn it is never does. A place counts from the first to the last node that touches the
 * web, so results on their way count too: the real demand, from arrival to last read, is smaller.
 *
 * Far beyond the node whose turn it is, room is given more sparingly: what is taken there is held long, and the
 * nodes in between would have to go one after the other. */
#include <assert.h>
#include <string.h>

#include "schedule.h"

enum { QUEUE_ALU, QUEUE_IN, QUEUE_OUT, QUEUE_DRAM, QUEUE_SWITCH, QUEUES }; /* port: towards registers, and from them */
enum { NEAR, FAR, SIDES };                                                 /* in the window, and beyond */
enum { TRIES = 8 }; /* candidates looked at before a unit stays idle */
static const uint8_t most_tries[SIDES] = { TRIES, 2 };
enum { RANK_BITS = 28, RANK_MASK = (1 << RANK_BITS) - 1 }; /* of a node's rank in its key */
enum { GONE = -(1 << 30) };                                /* room of ranks that are past */

typedef struct Queue {
	uint64_t *key;
	uint32_t count;
} Queue; /* a heap, most urgent first */
/* nodes that can start from here on; what is taken */
typedef struct Cycle {
	uint32_t first;
	uint8_t port, sram;
} Cycle;
typedef struct Room {
	int32_t most, add;
} Room; /* the largest of its part, after add to all of that */
typedef struct Rooms {
	Room *room;
	uint32_t leaves;
} Rooms; /* a tree: add to the first ranks, find the largest */

/* Uses of a resource, as the walk counts cycles: all of them together; from the issue of an operation to the
 * beginning of its use at least, less than 0 backward; from the end of a use to the end of the routine at least. */
typedef struct Ahead {
	int32_t work, begin, way;
} Ahead;

struct List {
	const Graph *g;
	Arena *arena;
	const Trial *trial;
	int32_t *time;
	Queue queue[QUEUES][SIDES];
	Cycle *cycle;
	uint32_t cycles; /* [cycles] */
	int32_t origin;  /* entry of cycle 0 */
	uint32_t *next;  /* of the list in a cycle */
	uint32_t *waits; /* edges still open */
	int32_t *ready;
	uint8_t *issued, *queued; /* queued: in a queue, 1 + which side */
	uint32_t *touched;        /* by web, how often */
	Rooms rooms[2];
	int kinds;                /* of registers, and of conditions if there are any */
	uint32_t *refused, freed; /* 1 + how often room came free when a node last found none */
	uint32_t turn;            /* the lowest rank not issued */
	uint32_t left;            /* operations not issued */
	int32_t now;
	bool late;                    /* the schedule gets too long */
	int32_t free[RES_SWITCH + 1]; /* units: the next cycle they can start in */
	int32_t *bank_free;
	Ahead ahead[2][RES_SWITCH + 1]; /* forward and backward: what a trial starts with */
	int32_t work[RES_SWITCH + 1];   /* of operations not issued */
};

static uint32_t rank_of(const List *l, uint32_t node) { return l->trial->backward ? l->g->nodes - 1 - node : node; }

static uint32_t node_of(const List *l, uint32_t rank) { return rank_of(l, rank); }

static bool is_far(const List *l, uint32_t node) { return rank_of(l, node) - l->turn > l->trial->window; }

/* ---- rooms -------------------------------------------------------------------------------------- */

static void rooms_init(Arena *a, Rooms *r, uint32_t ranks)
{
	for (r->leaves = 1; r->leaves < ranks + 1; r->leaves *= 2)
		;
	r->room = NEW(a, 2 * (size_t)r->leaves, Room);
}

/* False: it is as before. */
static bool rooms_up(Rooms *r, uint32_t at)
{
	int32_t left = r->room[2 * at].most, right = r->room[2 * at + 1].most, before = r->room[at].most;
	r->room[at].most = (left > right ? left : right) + r->room[at].add;
	return r->room[at].most != before;
}

/* Adds to the rooms of ranks 0 .. last. Without branches, for nobody could foretell them: on an odd way the part
 * before is added to as a whole. */
static void rooms_add(Rooms *r, uint32_t last, int32_t amount)
{
	uint32_t at = last + r->leaves;
	int32_t most = r->room[at].most += amount;
	while (at > 1) {
		Room *other = &r->room[at ^ 1];
		int32_t whole = amount & -(int32_t)(at & 1);
		other->most += whole;
		other->add += whole;
		at /= 2;
		most = (most > other->most ? most : other->most) + r->room[at].add;
		r->room[at].most = most;
	}
}

static void rooms_pass(Rooms *r, uint32_t rank)
{
	uint32_t at = rank + r->leaves;
	r->room[at].most = GONE;
	while (at /= 2)
		if (!rooms_up(r, at))
			return;
}

/* As if all went in order: a web takes room before each rank after its first up to its last. */
static void rooms_start(List *l)
{
	const Graph *g = l->g;
	for (int k = 0; k < l->kinds; k++)
		memset(l->rooms[k].room, 0, 2 * (size_t)l->rooms[k].leaves * sizeof(Room));
	for (uint32_t i = 0; i < g->webs; i++) {
		const Web *w = &g->web[i];
		uint32_t a = rank_of(l, w->first), b = rank_of(l, w->last);
		Room *leaf = l->rooms[w->cond].room + l->rooms[w->cond].leaves;
		leaf[(a < b ? a : b) + 1].most++;
		leaf[(a < b ? b : a) + 1].most--;
	}
	for (int k = 0; k < l->kinds; k++) {
		Rooms *r = &l->rooms[k];
		for (uint32_t i = 1; i < r->leaves; i++)
			r->room[r->leaves + i].most += r->room[r->leaves + i - 1].most;
		for (uint32_t at = r->leaves; at-- > 1;)
			rooms_up(r, at);
	}
}

/* ---- webs --------------------------------------------------------------------------------------- */

/* Changes the rooms for one web that the node touches; sign -1 takes it back. */
static void web_count(List *l, uint32_t web, int sign)
{
	const Web *w = &l->g->web[web];
	uint32_t a = rank_of(l, w->first), b = rank_of(l, w->last);
	uint32_t first = a < b ? a : b, last = a < b ? b : a;
	Rooms *r = &l->rooms[w->cond];
	uint32_t touched = l->touched[web];
	if (!touched)
		rooms_add(r, first, sign);
	if (touched + 1 == w->touches)
		rooms_add(r, last, -sign);
}

static void webs_count(List *l, uint32_t node, int sign)
{
	const Node *n = &l->g->node[node];
	if (n->dst != NOTHING)
		web_count(l, n->dst, sign);
	for (int k = 0; k < 3; k++)
		if (n->read[k] != NOTHING)
			web_count(l, n->read[k], sign);
}

static void webs_touch(List *l, uint32_t node)
{
	const Node *n = &l->g->node[node];
	const uint32_t web[] = { n->dst, n->read[0], n->read[1], n->read[2] };
	for (size_t k = 0; k < COUNT(web); k++)
		if (web[k] != NOTHING)
			l->freed += ++l->touched[web[k]] == l->g->web[web[k]].touches;
}

/* Takes the places a node needs, if that leaves room for all to go on in order. */
static bool places_take(List *l, uint32_t node)
{
	if (l->refused[node] == 1 + l->freed && rank_of(l, node) != l->turn)
		return false; /* nothing has changed since */
	const Trial *t = l->trial;
	int32_t before[2] = { 0 };
	for (int k = 0; k < l->kinds; k++)
		before[k] = l->rooms[k].room[1].most;
	webs_count(l, node, 1);
	bool far = is_far(l, node), fits = true;
	for (int k = 0; k < l->kinds; k++) {
		int32_t most = l->rooms[k].room[1].most;
		fits &= most <= t->limit[k] - far * t->reserve[k] || most <= before[k];
	}
	if (!fits && rank_of(l, node) != l->turn) {
		webs_count(l, node, -1);
		l->refused[node] = 1 + l->freed;
		return false;
	}
	webs_touch(l, node);
	return true;
}

/* ---- cycles ------------------------------------------------------------------------------------- */

static Cycle *cycle_at(List *l, int32_t when)
{
	uint32_t at = (uint32_t)(when + l->origin);
	if (at >= l->cycles) {
		uint32_t room = 2 * l->cycles > at ? 2 * l->cycles : 2 * at;
		l->cycle = arena_grow(l->arena, l->cycle, l->cycles, room, sizeof *l->cycle);
		for (uint32_t i = l->cycles; i < room; i++)
			l->cycle[i].first = NOTHING;
		l->cycles = room;
	}
	return &l->cycle[at];
}

/* First cycle, as the walk counts, that a use takes. */
static int32_t use_start(const List *l, const Use *u)
{
	return l->trial->backward ? l->now - u->at - u->busy + 1 : l->now + u->at;
}

static int32_t *free_of(List *l, const Use *u, uint32_t node)
{
	return u->resource == RES_BANK ? &l->bank_free[l->g->node[node].bank] : &l->free[u->resource];
}

static bool use_fits(List *l, const Use *u, uint32_t node)
{
	if (u->resource != RES_PORT && u->resource != RES_SRAM)
		return l->now >= *free_of(l, u, node);
	int32_t start = use_start(l, u);
	for (int32_t k = 0; k < u->busy; k++) {
		const Cycle *c = cycle_at(l, start + k);
		if (u->resource == RES_PORT ? c->port : c->sram)
			return false;
	}
	return true;
}

static void use_take(List *l, const Use *u, uint32_t node)
{
	if (u->resource != RES_PORT && u->resource != RES_SRAM) {
		*free_of(l, u, node) = l->now + u->busy; /* both ways: the next start is so far away at least */
		return;
	}
	int32_t start = use_start(l, u);
	for (int32_t k = 0; k < u->busy; k++) {
		Cycle *c = cycle_at(l, start + k);
		*(u->resource == RES_PORT ? &c->port : &c->sram) = 1;
	}
}

/* ---- queues ------------------------------------------------------------------------------------- */

/* Larger is more urgent: by priority, then by rank.  The lower bits say which node it is. */
static uint64_t key_of(const List *l, uint32_t node)
{
	const int64_t middle = (int64_t)1 << (63 - RANK_BITS);
	int64_t priority = l->trial->priority[node];
	assert(priority >= -middle && priority < middle);
	return (uint64_t)(priority + middle) << RANK_BITS | (RANK_MASK - rank_of(l, node));
}

static uint32_t key_node(const List *l, uint64_t key) { return node_of(l, RANK_MASK - (uint32_t)(key & RANK_MASK)); }

static void queue_push(Queue *q, uint64_t key)
{
	uint32_t at = q->count++;
	while (at && key > q->key[(at - 1) / 2]) {
		q->key[at] = q->key[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	q->key[at] = key;
}

static uint64_t queue_pop(Queue *q)
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

static int queue_of(const List *l, uint32_t node)
{
	static const uint8_t of_unit[UNITS] = {
		[UNIT_ALU] = QUEUE_ALU, [UNIT_PORT] = QUEUE_OUT, [UNIT_DRAM] = QUEUE_DRAM, [UNIT_SWITCH] = QUEUE_SWITCH
	};
	const Shape *s = node_shape(l->g, node);
	return s->unit == UNIT_PORT && l->g->node[node].dst != NOTHING ? QUEUE_IN : of_unit[s->unit];
}

/* ---- the walk ----------------------------------------------------------------------------------- */

static void node_queue(List *l, uint32_t node)
{
	int side = is_far(l, node) ? FAR : NEAR;
	l->queued[node] = (uint8_t)(1 + side);
	queue_push(&l->queue[queue_of(l, node)][side], key_of(l, node));
}

static void node_wait(List *l, uint32_t node)
{
	if (l->ready[node] <= l->now) {
		node_queue(l, node);
		return;
	}
	Cycle *c = cycle_at(l, l->ready[node]);
	l->next[node] = c->first;
	c->first = node;
}

/* Nodes that come into the window change the side; their place on the other is stale from then on. */
static void turn_pass(List *l)
{
	while (l->turn < l->g->nodes && l->issued[node_of(l, l->turn)]) {
		for (int k = 0; k < l->kinds; k++)
			rooms_pass(&l->rooms[k], l->turn);
		l->turn++;
		l->freed++;
		if (l->trial->window >= l->g->nodes - l->turn)
			continue;
		uint32_t node = node_of(l, l->turn + l->trial->window);
		if (l->queued[node] == 1 + FAR && !l->issued[node])
			node_queue(l, node);
	}
}

static void node_place(List *l, uint32_t node, int32_t when);

/* All that it waited for is placed: a join is, too, at once; an operation goes to the cycle it can start in. */
static void node_release(List *l, uint32_t node)
{
	if (l->g->node[node].op == GOP_NONE)
		node_place(l, node, l->ready[node]);
	else
		node_wait(l, node);
}

static void node_place(List *l, uint32_t node, int32_t when)
{
	const Graph *g = l->g;
	const uint32_t *at = l->trial->backward ? g->in_at : g->out_at;
	const Edge *edge = l->trial->backward ? g->in : g->out;
	l->time[node] = when;
	l->issued[node] = 1;
	for (uint32_t e = at[node]; e < at[node + 1]; e++) {
		uint32_t to = edge[e].node;
		if (when + edge[e].delay > l->ready[to])
			l->ready[to] = when + edge[e].delay;
		if (!--l->waits[to])
			node_release(l, to);
	}
}

static bool node_fits(List *l, uint32_t node)
{
	const Shape *s = node_shape(l->g, node);
	for (int k = 0; k < s->uses; k++)
		if (!use_fits(l, &s->use[k], node))
			return false;
	return places_take(l, node);
}

/* From the issue of a node to the end of the routine, at least. */
static int32_t way_of(const Graph *g, bool backward, uint32_t node) { return (backward ? g->early : g->late)[node]; }

static void node_issue(List *l, uint32_t node)
{
	const Shape *s = node_shape(l->g, node);
	for (int k = 0; k < s->uses; k++) {
		use_take(l, &s->use[k], node);
		if (s->use[k].resource != RES_BANK)
			l->work[s->use[k].resource] -= s->use[k].busy;
	}
	node_place(l, node, l->now);
	l->late |= l->now + way_of(l->g, l->trial->backward, node) > l->trial->most;
	l->left--;
	turn_pass(l);
}

static bool is_stale(const List *l, uint64_t key, int side)
{
	uint32_t node = key_node(l, key);
	return l->issued[node] || l->queued[node] != 1 + side;
}

/* The queue with the most urgent node on top, of those with tries left; stale nodes are dropped. */
static int queue_best(const List *l, Queue *const *queue, int queues, const uint8_t *tries)
{
	int best = -1;
	for (int k = 0; k < queues; k++) {
		Queue *q = queue[k];
		while (q->count && is_stale(l, q->key[0], k % SIDES))
			queue_pop(q);
		if (!q->count || tries[k] == most_tries[k % SIDES])
			continue;
		if (best < 0 || q->key[0] > queue[best]->key[0])
			best = k;
	}
	return best;
}

/* Issues the most urgent node that fits; those looked at in vain go back.  Queues come in pairs, near and far. */
static void unit_issue(List *l, Queue *const *queue, int queues)
{
	uint64_t back[QUEUES * SIDES * TRIES];
	uint8_t tries[QUEUES * SIDES] = { 0 }, from[QUEUES * SIDES * TRIES];
	uint32_t backs = 0, found = NOTHING;
	for (int k; found == NOTHING && (k = queue_best(l, queue, queues, tries)) >= 0;) {
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
	if (found != NOTHING)
		node_issue(l, found);
}

/* The node whose turn it is may hide behind others that have to wait for room. */
static void turn_issue(List *l)
{
	if (l->turn == l->g->nodes)
		return;
	uint32_t node = node_of(l, l->turn);
	if (!l->waits[node] && l->ready[node] <= l->now && node_fits(l, node))
		node_issue(l, node);
}

static bool queues_empty(const List *l)
{
	for (int k = 0; k < QUEUES; k++)
		if (l->queue[k][NEAR].count || l->queue[k][FAR].count)
			return false;
	return true;
}

static void cycle_open(List *l)
{
	Cycle *c = cycle_at(l, l->now);
	uint32_t node = c->first;
	c->first = NOTHING;
	while (node != NOTHING) {
		uint32_t next = l->next[node];
		node_queue(l, node);
		node = next;
	}
}

/* Is there more to do on some resource than the cycles left allow?  So a trial ends as soon as it has lost too many. */
static bool is_hopeless(const List *l)
{
	for (int r = 0; r <= RES_SWITCH; r++) {
		const Ahead *a = &l->ahead[l->trial->backward][r];
		if (l->work[r] && l->now + a->begin + l->work[r] + a->way > l->trial->most)
			return true;
	}
	return false;
}

static void ahead_fill(const Graph *g, bool backward, Ahead *ahead)
{
	for (int r = 0; r <= RES_SWITCH; r++)
		ahead[r] = (Ahead){ 0, INT32_MAX, INT32_MAX };
	for (uint32_t i = 0; i < g->nodes; i++) {
		const Shape *s = node_shape(g, i);
		for (int k = 0; k < s->uses; k++) {
			const Use *u = &s->use[k];
			if (u->resource == RES_BANK)
				continue;
			Ahead *a = &ahead[u->resource];
			int32_t begin = backward ? 1 - u->at - u->busy : u->at, way = way_of(g, backward, i) - begin - u->busy;
			a->work += u->busy;
			a->begin = begin < a->begin ? begin : a->begin;
			a->way = way < a->way ? way : a->way;
		}
	}
}

static void walk_start(List *l)
{
	const Graph *g = l->g;
	const uint32_t *at = l->trial->backward ? g->out_at : g->in_at;
	memset(l->free, 0, sizeof l->free);
	memset(l->bank_free, 0, (size_t)g->m->dram_banks * sizeof *l->bank_free);
	memset(l->issued, 0, g->nodes);
	memset(l->queued, 0, g->nodes);
	memset(l->refused, 0, g->nodes * sizeof *l->refused);
	memset(l->touched, 0, g->webs * sizeof *l->touched);
	for (uint32_t i = 0; i < l->cycles; i++)
		l->cycle[i] = (Cycle){ .first = NOTHING };
	for (int k = 0; k < QUEUES; k++)
		l->queue[k][NEAR].count = l->queue[k][FAR].count = 0;
	for (int r = 0; r <= RES_SWITCH; r++)
		l->work[r] = l->ahead[l->trial->backward][r].work;
	l->turn = 0;
	l->left = g->source->recs;
	l->now = 0;
	l->late = false;
	l->freed = 0;
	rooms_start(l);
	for (int k = 0; k < l->kinds; k++)
		rooms_pass(&l->rooms[k], g->nodes); /* nothing comes after the last */
	for (uint32_t i = 0; i < g->nodes; i++) {
		l->waits[i] = at[i + 1] - at[i];
		l->ready[i] = l->trial->backward ? node_shape(g, i)->span : 0;
	}
	for (uint32_t i = 0; i < g->nodes; i++) /* a join always waits for something */
		if (at[i + 1] == at[i] && g->node[i].op != GOP_NONE)
			node_release(l, i);
}

bool list_schedule(List *l, const Trial *trial, int32_t *time)
{
	Queue *const unit[][4] = {
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
	walk_start(l);
	while (l->left && !l->late) {
		cycle_open(l);
		if (!queues_empty(l)) {
			for (size_t k = 0; k < COUNT(unit); k++)
				if (l->now >= l->free[needs[k]])
					unit_issue(l, unit[k], unit[k][2] ? 4 : 2);
			turn_issue(l);
		}
		l->now++;
		l->late |= l->left && is_hopeless(l);
	}
	if (!trial->backward || l->late)
		return !l->late;
	int32_t last = 0;
	for (uint32_t i = 0; i < l->g->nodes; i++)
		if (time[i] > last && l->g->node[i].op != GOP_NONE)
			last = time[i];
	for (uint32_t i = 0; i < l->g->nodes; i++)
		time[i] = last - time[i];
	return true;
}

uint32_t list_placed(const List *l) { return l->g->source->recs - l->left; }

List *list_new(Arena *arena, const Graph *g)
{
	List *l = NEW(arena, 1, List);
	assert(g->nodes <= RANK_MASK);
	l->g = g;
	l->arena = arena;
	int32_t reach = 1;
	for (int op = 0; op < GOPS; op++)
		for (int k = 0; k < g->shape[op].uses; k++)
			if (g->shape[op].use[k].at + g->shape[op].use[k].busy > reach)
				reach = g->shape[op].use[k].at + g->shape[op].use[k].busy;
	l->origin = reach;
	for (int k = 0; k < QUEUES; k++)
		for (int side = 0; side < SIDES; side++)
			l->queue[k][side].key = NEW(arena, (size_t)g->nodes + 1, uint64_t);
	l->next = NEW(arena, g->nodes, uint32_t);
	l->waits = NEW(arena, g->nodes, uint32_t);
	l->ready = NEW(arena, g->nodes, int32_t);
	l->issued = NEW(arena, g->nodes, uint8_t);
	l->refused = NEW(arena, g->nodes, uint32_t);
	l->queued = NEW(arena, g->nodes, uint8_t);
	l->touched = NEW(arena, g->webs, uint32_t);
	l->bank_free = NEW(arena, (size_t)g->m->dram_banks, int32_t);
	l->kinds = g->webs_of[1] ? 2 : 1;
	for (int k = 0; k < l->kinds; k++)
		rooms_init(arena, &l->rooms[k], g->nodes);
	ahead_fill(g, false, l->ahead[false]);
	ahead_fill(g, true, l->ahead[true]);
	l->cycles = 4 * (uint32_t)reach + 2 * g->nodes;
	l->cycle = NEW(arena, l->cycles, Cycle);
	return l;
}

void serial_schedule(const Graph *g, int32_t *time)
{
	int32_t now = 0;
	for (uint32_t i = 0; i < g->nodes; i++) {
		time[i] = now;
		now += node_shape(g, i)->span;
	}
}
