/* SPDX-License-Identifier: MIT */
/* Lower register pressure: reordering and spilling to SRAM.
 * In: a source.  Out: one that needs fewer registers and conditions in program order.
 * Must hold: the new source computes the same; spill slots are exclusive, from the last word of SRAM down. */
#include <assert.h>
#include <string.h>

#include "schedule.h"

/* ---- reordering --------------------------------------------------------------------------------- */

/* Greedy bottom-up order: the operation that lowers pressure most goes next; a live range opens at its last reader and
 * closes at its first writer.  Ties: the later operation; depth-first: the one whose cost was computed last. */
typedef struct Reorder {
	const DepGraph *g;
	bool deep;
	KeyHeap heap; /* lowest cost first, then the highest tie: (INT32_MAX - cost) << 32 | tie */
	uint32_t capacity, found;
	uint32_t *found_node;   /* [capacity] deep: node of a tie */
	uint32_t *ref, *ref_at; /* nodes that reference each web: ref[ref_at[web]] .. */
	uint32_t *refs_done;    /* [webs] references placed */
	uint32_t *succs_left;
	uint8_t *placed;
	Arena *arena;
} Reorder;

enum { COND_GAIN = 64 }; /* conditions are scarce: close their live ranges early */
enum { MANY_REFS = 8 };  /* values with more references are live for long in any order */

static int32_t web_cost(const Reorder *o, uint32_t web)
{
	if (web == NONE)
		return 0;
	const Web *w = &o->g->web[web];
	int32_t gain = w->cond ? COND_GAIN : 1;
	int32_t opened = !o->refs_done[web] && w->refs <= MANY_REFS;
	return opened - gain * (o->refs_done[web] + 1 == w->refs);
}

static int32_t node_cost(const Reorder *o, uint32_t node)
{
	const DepNode *n = &o->g->node[node];
	int32_t cost = web_cost(o, n->dst);
	for (int k = 0; k < 3; k++)
		cost += web_cost(o, n->read[k]);
	return cost;
}

static void candidate_push(Reorder *o, uint32_t node)
{
	if (o->found == o->capacity) {
		o->heap.key = arena_grow(o->arena, o->heap.key, o->capacity, 2 * (size_t)o->capacity, sizeof *o->heap.key);
		o->found_node = arena_grow(o->arena, o->found_node, o->capacity, 2 * (size_t)o->capacity, sizeof node);
		o->capacity *= 2;
	}
	uint32_t tie = o->deep ? o->found : node;
	o->found_node[o->found++] = node;
	heap_push(&o->heap, (uint64_t)((int64_t)INT32_MAX - node_cost(o, node)) << 32 | tie);
}

static void web_ref(Reorder *o, uint32_t web)
{
	if (web == NONE)
		return;
	o->refs_done[web]++;
	if (o->refs_done[web] != 1 && o->refs_done[web] + 1 != o->g->web[web].refs)
		return;
	for (uint32_t k = o->ref_at[web]; k < o->ref_at[web + 1]; k++) {
		uint32_t node = o->ref[k];
		if (!o->placed[node] && !o->succs_left[node]) /* its cost has changed */
			candidate_push(o, node);
	}
}

static void refs_list(Reorder *o)
{
	const DepGraph *g = o->g;
	o->ref_at = NEW(o->arena, (size_t)g->webs + 1, uint32_t);
	for (uint32_t i = 0; i < g->webs; i++)
		o->ref_at[i + 1] = o->ref_at[i] + g->web[i].refs;
	o->ref = NEW(o->arena, o->ref_at[g->webs], uint32_t);
	uint32_t *fill = NEW(o->arena, g->webs, uint32_t);
	for (uint32_t i = 0; i < g->nodes; i++) {
		const DepNode *n = &g->node[i];
		const uint32_t web[] = { n->dst, n->read[0], n->read[1], n->read[2] };
		for (size_t k = 0; k < COUNT(web); k++)
			if (web[k] != NONE)
				o->ref[o->ref_at[web[k]] + fill[web[k]]++] = i;
	}
}

static void node_place(Reorder *o, uint32_t node)
{
	const DepGraph *g = o->g;
	o->placed[node] = 1;
	web_ref(o, g->node[node].dst);
	for (int k = 0; k < 3; k++)
		web_ref(o, g->node[node].read[k]);
	for (uint32_t e = g->in_at[node]; e < g->in_at[node + 1]; e++)
		if (!--o->succs_left[g->in[e].node])
			candidate_push(o, g->in[e].node);
}

Source *source_reorder(Arena *arena, const DepGraph *g, bool deep)
{
	Reorder o = { .g = g, .deep = deep, .arena = arena, .capacity = g->nodes + 16 };
	o.heap.key = NEW(arena, o.capacity, uint64_t);
	o.found_node = NEW(arena, o.capacity, uint32_t);
	o.refs_done = NEW(arena, g->webs, uint32_t);
	o.succs_left = NEW(arena, g->nodes, uint32_t);
	o.placed = NEW(arena, g->nodes, uint8_t);
	refs_list(&o);
	for (uint32_t i = 0; i < g->nodes; i++)
		o.succs_left[i] = g->out_at[i + 1] - g->out_at[i];
	for (uint32_t i = 0; i < g->nodes; i++)
		if (!o.succs_left[i])
			candidate_push(&o, i);
	const Source *old = g->source;
	Source *s = NEW(arena, 1, Source);
	*s = *old;
	s->regs = s->conds = g->webs;
	s->rec = NEW(arena, s->recs, Rec);
	s->origin = NEW(arena, s->recs, uint32_t);
	uint32_t at = s->recs;
	while (o.heap.count) {
		uint32_t tie = (uint32_t)heap_pop(&o.heap), node = deep ? o.found_node[tie] : tie;
		if (o.placed[node])
			continue;
		uint32_t rec = g->node[node].rec;
		if (rec != NONE) {
			/* Renames registers to webs: the new order may interleave different values of one register. */
			const DepNode *n = &g->node[node];
			Rec r = g->source->rec[n->rec];
			r.dst = n->dst;
			r.a = n->from[0];
			r.b = n->from[1];
			r.cc = n->from[2];
			s->rec[--at] = r;
			s->origin[at] = old->origin[rec];
		}
		node_place(&o, node);
	}
	return s;
}

/* ---- spilling ----------------------------------------------------------------------------------- */

typedef struct SpillReg { /* virtual register of the old source */
	uint32_t name;        /* register in the new source */
	uint32_t next;        /* next operation that reads it; NONE: dead */
	uint32_t slot;        /* NONE: not in SRAM */
	uint32_t at;          /* index in resident[]; NONE: not in a register */
} SpillReg;

typedef struct Spiller {
	const Machine *m;
	const Source *old;
	Source *s;
	uint32_t capacity;
	Arena *arena;
	SpillReg *vreg;
	uint32_t *resident;
	uint32_t residents, limit;
	uint32_t (*next)[3]; /* next use of a, b, dst after an operation */
	uint8_t *used;       /* [sram] words used under base 0, counted from the last */
	uint32_t slots;
	uint32_t *free_slot, freed, reused; /* slots in order of release; number released, number reused */
	bool full;                          /* SRAM exhausted */
} Spiller;

static void emit(Spiller *p, Rec rec, uint32_t origin)
{
	Source *s = p->s;
	if (s->recs == p->capacity) {
		s->rec = arena_grow(p->arena, s->rec, p->capacity, 2 * (size_t)p->capacity, sizeof *s->rec);
		s->origin = arena_grow(p->arena, s->origin, p->capacity, 2 * (size_t)p->capacity, sizeof *s->origin);
		p->capacity *= 2;
	}
	s->rec[s->recs] = rec;
	s->origin[s->recs++] = origin;
	s->spills += origin == NONE;
}

/* Delay before a slot is reused, so that stores need not wait for earlier reloads. */
enum { SLOT_DELAY = 16 };

static void slot_free(Spiller *p, SpillReg *h)
{
	if (h->slot != NONE)
		p->free_slot[p->freed++] = h->slot;
	h->slot = NONE;
}

static uint32_t slot_new(Spiller *p)
{
	if (p->freed - p->reused > SLOT_DELAY)
		return p->free_slot[p->reused++];
	while (p->slots < p->m->sram && p->used[p->slots])
		p->slots++;
	p->full |= p->slots == p->m->sram;
	return p->full ? 0 : p->slots++;
}

static Addr slot_address(const Spiller *p, uint32_t slot)
{
	return (Addr){ .base = 0, .off = (uint32_t)p->m->sram - 1 - slot };
}

static void reg_release(Spiller *p, uint32_t reg)
{
	SpillReg *h = &p->vreg[reg];
	uint32_t last = p->resident[--p->residents];
	p->resident[h->at] = last;
	p->vreg[last].at = h->at;
	h->at = NONE;
}

/* Frees a register: evicts the value with the furthest next use (Belady), except those in `stay`. */
static void evict(Spiller *p, const uint32_t *stay, int stays)
{
	if (p->residents < p->limit)
		return;
	uint32_t victim = NONE;
	for (uint32_t i = 0; i < p->residents; i++) {
		uint32_t reg = p->resident[i];
		bool kept = false;
		for (int k = 0; k < stays; k++)
			kept |= stay[k] == reg;
		if (!kept && (victim == NONE || p->vreg[reg].next > p->vreg[victim].next))
			victim = reg;
	}
	SpillReg *h = &p->vreg[victim];
	if (h->slot == NONE) {
		h->slot = slot_new(p);
		emit(p, (Rec){ .op = GOP_STORE, .a = h->name, .mem = slot_address(p, h->slot) }, NONE);
	}
	reg_release(p, victim);
}

static void reg_assign(Spiller *p, uint32_t reg, uint32_t name)
{
	p->vreg[reg].name = name;
	p->vreg[reg].at = p->residents;
	p->resident[p->residents++] = reg;
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
	for (int k = 0; k < regs; k++) { /* reload */
		if (p->vreg[reg[k]].at != NONE)
			continue;
		evict(p, reg, regs);
		uint32_t name = p->s->regs++;
		emit(p, (Rec){ .op = GOP_LOAD, .dst = name, .mem = slot_address(p, p->vreg[reg[k]].slot) }, NONE);
		reg_assign(p, reg[k], name);
	}
	if (uses & USES_A)
		p->vreg[r.a].next = p->next[i][0];
	if (uses & USES_B)
		p->vreg[r.b].next = p->next[i][1];
	Rec out = r;
	out.a = uses & USES_A ? p->vreg[r.a].name : 0;
	out.b = uses & USES_B ? p->vreg[r.b].name : 0;
	if (masked)
		out.dst = p->vreg[r.dst].name;
	for (int k = 0; k < regs; k++) { /* dead operands free registers for the result */
		SpillReg *h = &p->vreg[reg[k]];
		if (h->at == NONE || h->next != NONE || (masked && reg[k] == r.dst))
			continue;
		reg_release(p, reg[k]);
		slot_free(p, h);
	}
	if (uses & USES_DST && !masked) {
		SpillReg *h = &p->vreg[r.dst];
		if (h->at != NONE)
			reg_release(p, r.dst);
		slot_free(p, h);
		evict(p, NULL, 0);
		*h = (SpillReg){ .next = p->next[i][2], .slot = NONE };
		out.dst = p->s->regs++;
		reg_assign(p, r.dst, out.dst);
	}
	emit(p, out, p->old->origin[i]);
	if (!(uses & USES_DST))
		return;
	p->vreg[r.dst].next = p->next[i][2];
	slot_free(p, &p->vreg[r.dst]); /* a masked move invalidates the spilled copy */
	if (p->vreg[r.dst].next == NONE)
		reg_release(p, r.dst);
}

uint32_t source_unbounded_index(const Source *s)
{
	for (uint32_t i = 0; i < s->recs; i++) {
		const Rec *r = &s->rec[i];
		if (forms[ops[r->op].form].access[0].indexed && !(s->index_limit && s->index_limit[r->mem.base]))
			return i;
	}
	return NONE;
}

Source *source_spill(Arena *arena, const Machine *m, const Source *old, uint32_t limit)
{
	assert(limit >= 3); /* two operands and a result, or the old word of a masked move */
	Spiller p = { .m = m, .old = old, .arena = arena, .limit = limit };
	p.s = NEW(arena, 1, Source);
	*p.s = *old;
	p.s->recs = p.s->regs = 0;
	p.capacity = old->recs + 64;
	p.s->rec = NEW(arena, p.capacity, Rec);
	p.s->origin = NEW(arena, p.capacity, uint32_t);
	p.vreg = NEW(arena, old->regs, SpillReg);
	for (uint32_t i = 0; i < old->regs; i++)
		p.vreg[i] = (SpillReg){ .next = NONE, .slot = NONE, .at = NONE };
	p.resident = NEW(arena, (size_t)limit + 4, uint32_t);
	p.free_slot = NEW(arena, old->recs, uint32_t); /* each result releases at most one slot */
	p.next = arena_alloc(arena, old->recs, sizeof *p.next);
	p.used = NEW(p.arena, (size_t)p.m->sram, uint8_t);
	for (uint32_t i = 0; p.old->index_limit && i < p.old->index_limit[0]; i++)
		p.used[p.m->sram - 1 - i] = 1;
	for (uint32_t i = 0; i < p.old->recs; i++) {
		const Rec *r = &p.old->rec[i];
		if (forms[ops[r->op].form].uses & USES_MEM && r->mem.base == 0 && r->mem.off < p.m->sram)
			p.used[p.m->sram - 1 - r->mem.off] = 1;
	}
	/* Next uses, by a backward scan. */
	const Source *s = p.old;
	uint32_t *when = NEW(p.arena, s->regs, uint32_t);
	memset(when, 0xFF, s->regs * sizeof *when);
	for (uint32_t i = s->recs; i-- > 0;) {
		const Rec *r = &s->rec[i];
		unsigned uses = forms[ops[r->op].form].uses;
		const uint32_t reg[] = { r->a, r->b, r->dst };
		const unsigned bit[] = { USES_A, USES_B, USES_DST };
		for (int k = 0; k < 3; k++)
			p.next[i][k] = uses & bit[k] ? when[reg[k]] : NONE;
		bool masked = ops[r->op].form == FORM_MASKED;
		if (uses & USES_DST)
			when[r->dst] = masked ? i : NONE;
		for (int k = 0; k < 2; k++)
			if (uses & bit[k])
				when[reg[k]] = i;
	}
	for (uint32_t i = 0; i < old->recs && !p.full; i++)
		spill_step(&p, i);
	return p.full ? NULL : p.s;
}
