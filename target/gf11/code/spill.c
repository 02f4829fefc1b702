/* SPDX-License-Identifier: MIT */
/* Fewer words at once: another order of the same operations, and words put away in SRAM.
 * In: a source.  Out: one that needs fewer registers and conditions when it runs in its order.
 * What must hold: the new source computes the same; spilled words have slots of their own, from the last word of SRAM
 * down. */
#include <string.h>

#include "schedule.h"

/* ---- another order ------------------------------------------------------------------------------ */

/* From the end towards the beginning, always the operation that lowers the demand most: a word begins to take its place
 * at its last reader and gives it back at its first writer.  Of equals the later one; or, deep, the one whose cost was
 * found last: then what has been begun is followed to its beginning. */
typedef struct Step {
	int32_t cost;
	uint32_t tie, node;
} Step;
typedef struct Reorder {
	const Graph *g;
	bool deep;
	Step *heap;
	uint32_t steps, room, found;
	uint32_t *toucher, *touch_at; /* nodes of each web: [webs + 1] */
	uint32_t *touched;            /* of each web, how many are placed */
	uint32_t *waits;
	uint8_t *placed;
	Arena *arena;
} Reorder;

enum { COND_GAIN = 64 }; /* conditions are few: each is given back soon */
enum { SHARED = 8 };     /* a word touched more often stays long, whoever begins */

static bool step_before(Step a, Step b) { return a.cost != b.cost ? a.cost < b.cost : a.tie > b.tie; }

static int32_t node_cost(const Reorder *o, uint32_t node);

static void step_push(Reorder *o, uint32_t node)
{
	Step s = { node_cost(o, node), o->deep ? o->found++ : node, node };
	if (o->steps == o->room) {
		o->heap = arena_grow(o->arena, o->heap, o->room, 2 * (size_t)o->room, sizeof *o->heap);
		o->room *= 2;
	}
	uint32_t at = o->steps++;
	while (at && step_before(s, o->heap[(at - 1) / 2])) {
		o->heap[at] = o->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	o->heap[at] = s;
}

static Step step_pop(Reorder *o)
{
	Step top = o->heap[0], s = o->heap[--o->steps];
	uint32_t at = 0;
	for (uint32_t child; (child = 2 * at + 1) < o->steps; at = child) {
		if (child + 1 < o->steps && step_before(o->heap[child + 1], o->heap[child]))
			child++;
		if (!step_before(o->heap[child], s))
			break;
		o->heap[at] = o->heap[child];
	}
	o->heap[at] = s;
	return top;
}

static int32_t web_cost(const Reorder *o, uint32_t web)
{
	if (web == NOTHING)
		return 0;
	const Web *w = &o->g->web[web];
	int32_t gain = w->cond ? COND_GAIN : 1;
	int32_t taken = !o->touched[web] && w->touches <= SHARED;
	return taken - gain * (o->touched[web] + 1 == w->touches);
}

static int32_t node_cost(const Reorder *o, uint32_t node)
{
	const Node *n = &o->g->node[node];
	int32_t cost = web_cost(o, n->dst);
	for (int k = 0; k < 3; k++)
		cost += web_cost(o, n->read[k]);
	return cost;
}

static void web_touch(Reorder *o, uint32_t web)
{
	if (web == NOTHING)
		return;
	o->touched[web]++;
	if (o->touched[web] != 1 && o->touched[web] + 1 != o->g->web[web].touches)
		return;
	for (uint32_t k = o->touch_at[web]; k < o->touch_at[web + 1]; k++) {
		uint32_t node = o->toucher[k];
		if (!o->placed[node] && !o->waits[node]) /* its cost has changed */
			step_push(o, node);
	}
}

static void touchers_list(Reorder *o)
{
	const Graph *g = o->g;
	o->touch_at = NEW(o->arena, (size_t)g->webs + 1, uint32_t);
	for (uint32_t i = 0; i < g->webs; i++)
		o->touch_at[i + 1] = o->touch_at[i] + g->web[i].touches;
	o->toucher = NEW(o->arena, o->touch_at[g->webs], uint32_t);
	uint32_t *fill = NEW(o->arena, g->webs, uint32_t);
	for (uint32_t i = 0; i < g->nodes; i++) {
		const Node *n = &g->node[i];
		const uint32_t web[] = { n->dst, n->read[0], n->read[1], n->read[2] };
		for (size_t k = 0; k < COUNT(web); k++)
			if (web[k] != NOTHING)
				o->toucher[o->touch_at[web[k]] + fill[web[k]]++] = i;
	}
}

static void node_put(Reorder *o, uint32_t node)
{
	const Graph *g = o->g;
	o->placed[node] = 1;
	web_touch(o, g->node[node].dst);
	for (int k = 0; k < 3; k++)
		web_touch(o, g->node[node].read[k]);
	for (uint32_t e = g->in_at[node]; e < g->in_at[node + 1]; e++)
		if (!--o->waits[g->in[e].node])
			step_push(o, g->in[e].node);
}

/* In another order only webs tell apart what was written to one register at different times. */
static Rec rec_renamed(const Graph *g, const Node *n)
{
	Rec r = g->source->rec[n->rec];
	r.dst = n->dst;
	r.a = n->from[0];
	r.b = n->from[1];
	r.cc = n->from[2];
	return r;
}

Source *source_reorder(Arena *arena, const Graph *g, bool deep)
{
	Reorder o = { .g = g, .deep = deep, .arena = arena, .room = g->nodes + 16 };
	o.heap = NEW(arena, o.room, Step);
	o.touched = NEW(arena, g->webs, uint32_t);
	o.waits = NEW(arena, g->nodes, uint32_t);
	o.placed = NEW(arena, g->nodes, uint8_t);
	touchers_list(&o);
	for (uint32_t i = 0; i < g->nodes; i++)
		o.waits[i] = g->out_at[i + 1] - g->out_at[i];
	for (uint32_t i = 0; i < g->nodes; i++)
		if (!o.waits[i])
			step_push(&o, i);
	const Source *old = g->source;
	Source *s = NEW(arena, 1, Source);
	*s = *old;
	s->regs = s->conds = g->webs;
	s->rec = NEW(arena, s->recs, Rec);
	s->origin = NEW(arena, s->recs, uint32_t);
	uint32_t at = s->recs;
	while (o.steps) {
		Step step = step_pop(&o);
		if (o.placed[step.node])
			continue;
		uint32_t rec = g->node[step.node].rec;
		if (rec != NOTHING) {
			s->rec[--at] = rec_renamed(g, &g->node[step.node]);
			s->origin[at] = old->origin[rec];
		}
		node_put(&o, step.node);
	}
	return s;
}

/* ---- words put away ----------------------------------------------------------------------------- */

typedef struct Held { /* a virtual register of the old source */
	uint32_t name;    /* in the new one */
	uint32_t next;    /* the operation that needs it next; NOTHING: none */
	uint32_t slot;    /* NOTHING: not in SRAM */
	uint32_t at;      /* in resident[]; NOTHING: not in a register */
} Held;

typedef struct Spiller {
	const Machine *m;
	const Source *old;
	Source *s;
	uint32_t room;
	Arena *arena;
	Held *held;
	uint32_t *resident;
	uint32_t residents, limit;
	uint32_t (*next)[3]; /* who needs the words a, b, dst of an operation next */
	uint8_t *used;       /* words the code uses under base 0, from the last down */
	uint32_t slots;
	uint32_t *freed, given, taken; /* slots in the order they came free; how many were used again */
	bool full;                     /* no word of SRAM is left */
} Spiller;

static void emit(Spiller *p, Rec rec, uint32_t origin)
{
	Source *s = p->s;
	if (s->recs == p->room) {
		s->rec = arena_grow(p->arena, s->rec, p->room, 2 * (size_t)p->room, sizeof *s->rec);
		s->origin = arena_grow(p->arena, s->origin, p->room, 2 * (size_t)p->room, sizeof *s->origin);
		p->room *= 2;
	}
	s->rec[s->recs] = rec;
	s->origin[s->recs++] = origin;
	s->spills += origin == NOTHING;
}

/* Slots come back late, so that stores need not wait for loads of what was there before. */
enum { REST = 16 };

static void slot_give(Spiller *p, Held *h)
{
	if (h->slot != NOTHING)
		p->freed[p->given++] = h->slot;
	h->slot = NOTHING;
}

static uint32_t slot_new(Spiller *p)
{
	if (p->given - p->taken > REST)
		return p->freed[p->taken++];
	while (p->slots < p->m->sram && p->used[p->slots])
		p->slots++;
	p->full |= p->slots == p->m->sram;
	return p->full ? 0 : p->slots++;
}

static Addr slot_address(const Spiller *p, uint32_t slot)
{
	return (Addr){ .base = 0, .off = (uint32_t)p->m->sram - 1 - slot };
}

static void leave(Spiller *p, uint32_t reg)
{
	Held *h = &p->held[reg];
	uint32_t last = p->resident[--p->residents];
	p->resident[h->at] = last;
	p->held[last].at = h->at;
	h->at = NOTHING;
}

/* Makes a register free: of the words there the one needed last goes, but none of those that must stay. */
static void make_room(Spiller *p, const uint32_t *stay, int stays)
{
	if (p->residents < p->limit)
		return;
	uint32_t victim = NOTHING;
	for (uint32_t i = 0; i < p->residents; i++) {
		uint32_t reg = p->resident[i];
		bool kept = false;
		for (int k = 0; k < stays; k++)
			kept |= stay[k] == reg;
		if (!kept && (victim == NOTHING || p->held[reg].next > p->held[victim].next))
			victim = reg;
	}
	Held *h = &p->held[victim];
	if (h->slot == NOTHING) {
		h->slot = slot_new(p);
		emit(p, (Rec){ .op = GOP_STORE, .a = h->name, .mem = slot_address(p, h->slot) }, NOTHING);
	}
	leave(p, victim);
}

static void enter(Spiller *p, uint32_t reg, uint32_t name)
{
	p->held[reg].name = name;
	p->held[reg].at = p->residents;
	p->resident[p->residents++] = reg;
}

static void need(Spiller *p, uint32_t reg, const uint32_t *stay, int stays)
{
	Held *h = &p->held[reg];
	if (h->at != NOTHING)
		return;
	make_room(p, stay, stays);
	uint32_t name = p->s->regs++;
	emit(p, (Rec){ .op = GOP_LOAD, .dst = name, .mem = slot_address(p, h->slot) }, NOTHING);
	enter(p, reg, name);
}

/* Who needs each word next, found from the end. */
static void nexts_fill(Spiller *p)
{
	const Source *s = p->old;
	uint32_t *when = NEW(p->arena, s->regs, uint32_t);
	memset(when, 0xFF, s->regs * sizeof *when);
	for (uint32_t i = s->recs; i-- > 0;) {
		const Rec *r = &s->rec[i];
		unsigned uses = forms[ops[r->op].form].uses;
		const uint32_t reg[] = { r->a, r->b, r->dst };
		const unsigned bit[] = { USES_A, USES_B, USES_DST };
		for (int k = 0; k < 3; k++)
			p->next[i][k] = uses & bit[k] ? when[reg[k]] : NOTHING;
		bool masked = ops[r->op].form == FORM_MASKED;
		if (uses & USES_DST)
			when[r->dst] = masked ? i : NOTHING;
		for (int k = 0; k < 2; k++)
			if (uses & bit[k])
				when[reg[k]] = i;
	}
}

static void spill_step(Spiller *p, uint32_t i)
{
	Rec r = p->old->rec[i];
	unsigned uses = forms[ops[r.op].form].uses;
	bool masked = ops[r.op].form == FORM_MASKED;
	uint32_t reg[3];
	int regs = 0;
	if (uses & USES_A)
		reg[regs++] = r.a;
	if (uses & USES_B)
		reg[regs++] = r.b;
	if (masked)
		reg[regs++] = r.dst;
	for (int k = 0; k < regs; k++)
		need(p, reg[k], reg, regs);
	if (uses & USES_A)
		p->held[r.a].next = p->next[i][0];
	if (uses & USES_B)
		p->held[r.b].next = p->next[i][1];
	Rec out = r;
	out.a = uses & USES_A ? p->held[r.a].name : 0;
	out.b = uses & USES_B ? p->held[r.b].name : 0;
	if (masked)
		out.dst = p->held[r.dst].name;
	for (int k = 0; k < regs; k++) { /* words needed no more make room for the result */
		Held *h = &p->held[reg[k]];
		if (h->at == NOTHING || h->next != NOTHING || (masked && reg[k] == r.dst))
			continue;
		leave(p, reg[k]);
		slot_give(p, h);
	}
	if (uses & USES_DST && !masked) {
		Held *h = &p->held[r.dst];
		if (h->at != NOTHING)
			leave(p, r.dst);
		slot_give(p, h);
		make_room(p, NULL, 0);
		*h = (Held){ .next = p->next[i][2], .slot = NOTHING };
		out.dst = p->s->regs++;
		enter(p, r.dst, out.dst);
	}
	emit(p, out, p->old->origin[i]);
	if (!(uses & USES_DST))
		return;
	p->held[r.dst].next = p->next[i][2];
	slot_give(p, &p->held[r.dst]); /* a masked move makes the word in SRAM old */
	if (p->held[r.dst].next == NOTHING)
		leave(p, r.dst);
}

uint32_t source_unreached(const Source *s)
{
	for (uint32_t i = 0; i < s->recs; i++) {
		const Rec *r = &s->rec[i];
		if (forms[ops[r->op].form].touch[0].indexed && !(s->reach && s->reach[r->mem.base]))
			return i;
	}
	return NOTHING;
}

static void mark_used(Spiller *p)
{
	p->used = NEW(p->arena, (size_t)p->m->sram, uint8_t);
	for (uint32_t i = 0; p->old->reach && i < p->old->reach[0]; i++)
		p->used[p->m->sram - 1 - i] = 1;
	for (uint32_t i = 0; i < p->old->recs; i++) {
		const Rec *r = &p->old->rec[i];
		if (forms[ops[r->op].form].uses & USES_MEM && r->mem.base == 0 && r->mem.off < p->m->sram)
			p->used[p->m->sram - 1 - r->mem.off] = 1;
	}
}

Source *source_spill(Arena *arena, const Machine *m, const Source *old, uint32_t limit)
{
	Spiller p = { .m = m, .old = old, .arena = arena, .limit = limit };
	p.s = NEW(arena, 1, Source);
	*p.s = *old;
	p.s->recs = p.s->regs = 0;
	p.room = old->recs + 64;
	p.s->rec = NEW(arena, p.room, Rec);
	p.s->origin = NEW(arena, p.room, uint32_t);
	p.held = NEW(arena, old->regs, Held);
	for (uint32_t i = 0; i < old->regs; i++)
		p.held[i] = (Held){ .next = NOTHING, .slot = NOTHING, .at = NOTHING };
	p.resident = NEW(arena, (size_t)limit + 4, uint32_t);
	p.freed = NEW(arena, old->recs, uint32_t); /* each result gives back one slot at most */
	p.next = arena_alloc(arena, old->recs, sizeof *p.next);
	mark_used(&p);
	nexts_fill(&p);
	for (uint32_t i = 0; i < old->recs && !p.full; i++)
		spill_step(&p, i);
	return p.full ? NULL : p.s;
}
