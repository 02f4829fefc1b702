/* SPDX-License-Identifier: MIT */
/* Dependence graph of a block.
 * In: recorded code, in a valid order.  Out: nodes, edges with delays, webs, critical path lengths.
 * Must hold: edges go from lower to higher numbers; issue cycles that respect all delays preserve the value of every
 * register, condition and memory word read.
 *
 *   true dependence     result -> reader         latency
 *   anti-dependence     reader -> masked move    1 - latency
 *   output dependence   result -> masked move    difference of latencies + 1
 *
 * and the same for memory, where store, put, fetch and flush write.  Every definition of a register starts a new
 * web, so only masked moves cause anti- and output dependences there.  Memory words alias if base and offset are
 * equal; an indexed access aliases every word of its base, and, if bases may overlap, any access every word of other
 * bases. */
#include <assert.h>
#include <string.h>

#include "schedule.h"

/* ---- reservation tables: the forms in gf11_machine.h --------------------------------------------- */

static void resource_add(Timing *s, uint8_t resource, int64_t at, int64_t busy)
{
	const ResourceUse *last = s->uses ? &s->use[s->uses - 1] : NULL;
	if (last && last->resource == resource && last->at == at)
		return; /* a one-cycle transfer uses the port once */
	s->use[s->uses++] = (ResourceUse){ resource, (int32_t)at, (int32_t)busy };
	if (at + busy > s->span)
		s->span = (int32_t)(at + busy);
}

static void resource_add_at(Timing *s, uint8_t resource, unsigned when, int64_t busy)
{
	if (when & AT_START)
		resource_add(s, resource, 0, busy);
	if (when & AT_NEXT)
		resource_add(s, resource, 1, busy);
	if (when & AT_LAST)
		resource_add(s, resource, s->latency - 1, busy);
}

static void timing_fill(const Machine *m, int op, Timing *s)
{
	const FormInfo *form = &forms[ops[op].form];
	int32_t latency = (int32_t)op_latency(m, op);
	*s = (Timing){ .unit = ops[op].unit, .form = ops[op].form, .latency = latency, .span = latency };
	resource_add_at(s, RES_ALU, s->unit == UNIT_ALU ? AT_START : 0, m->alu_interval);
	resource_add_at(s, RES_DRAM, s->unit == UNIT_DRAM ? AT_START : 0, m->dram_interval);
	resource_add_at(s, RES_BANK, s->unit == UNIT_DRAM ? AT_START : 0, m->dram_busy);
	resource_add_at(s, RES_SWITCH, s->unit == UNIT_SWITCH ? AT_START : 0, m->switch_interval);
	resource_add_at(s, RES_PORT, form->port, 1);
	resource_add_at(s, RES_SRAM, form->sram, m->sram_interval);
}

/* ---- building ----------------------------------------------------------------------------------- */

typedef struct RawEdge {
	uint32_t from, to;
	int32_t delay;
} RawEdge;
typedef struct Cons {
	uint32_t node, next;
} Cons; /* singly linked lists of nodes; index 0: end */
typedef struct NodeSet {
	uint32_t first, delay;
} NodeSet; /* one node that represents a set; first NONE: empty */

typedef struct VReg {
	uint32_t web, writer, readers;
} VReg; /* virtual register; readers of its current value */
typedef struct MemWord {
	uint64_t key;
	uint32_t epoch, writer, readers;
} MemWord;                 /* key 0: free entry */
typedef struct MemRegion { /* words under one base since the last indexed write */
	uint32_t epoch;
	uint32_t indexed_writer; /* that write */
	uint32_t reads, writes;  /* lists: direct reads; direct writes not yet in `written` */
	uint32_t indexed_reads;  /* list: indexed reads not yet in `indexed_read` */
	NodeSet written, indexed_read;
} MemRegion;

/* All accesses under one base so far, as seen by bases that may alias it. */
typedef struct BaseHistory {
	uint32_t list[2];
	NodeSet set[2];
} BaseHistory; /* [write]; list: accesses not yet in the set */

typedef struct Builder {
	Ctx *cx;
	Arena *arena;
	DepGraph *g;
	RawEdge *edge;
	size_t edges;
	uint32_t edge_capacity;
	size_t *last_edge; /* [node_capacity] last edge from a node, plus 1 */
	Cons *cons;
	uint32_t conses, cons_capacity;
	VReg *vreg[2]; /* registers, conditions */
	MemWord *word;
	uint64_t word_mask;
	MemRegion *region[2];    /* SRAM, DRAM: [bases + 1], the last one for spill slots */
	BaseHistory *history[2]; /* NULL: bases do not alias */
	uint32_t bases[2];
	uint32_t node_capacity;
} Builder;

static void edge_add(Builder *b, uint32_t from, uint32_t to, int32_t delay)
{
	if (from == to)
		return;
	assert(from < to);
	size_t known = b->last_edge[from]; /* nodes are completed one by one: no edge lies in between */
	if (known && b->edge[known - 1].to == to) {
		if (b->edge[known - 1].delay < delay)
			b->edge[known - 1].delay = delay;
		return;
	}
	b->edge = list_more(b->arena, b->edge, b->edges, &b->edge_capacity, sizeof *b->edge);
	b->edge[b->edges++] = (RawEdge){ from, to, delay };
	b->last_edge[from] = b->edges;
}

static uint32_t cons(Builder *b, uint32_t node, uint32_t next)
{
	b->cons = list_more(b->arena, b->cons, b->conses, &b->cons_capacity, sizeof *b->cons);
	b->cons[b->conses] = (Cons){ node, next };
	return b->conses++;
}

static uint32_t node_new(Builder *b, uint32_t rec, uint8_t op)
{
	DepGraph *g = b->g;
	if (g->nodes == b->node_capacity) {
		uint32_t capacity = 2 * b->node_capacity;
		g->node = arena_grow(b->arena, g->node, b->node_capacity, capacity, sizeof *g->node);
		b->last_edge = arena_grow(b->arena, b->last_edge, b->node_capacity, capacity, sizeof *b->last_edge);
		b->node_capacity = capacity;
	}
	g->node[g->nodes] =
		(DepNode){ .rec = rec, .op = op, .dst = NONE, .from = { NONE, NONE, NONE }, .read = { NONE, NONE, NONE } };
	return g->nodes++;
}

static int32_t latency_of(const Builder *b, uint32_t node) { return node_timing(b->g, node)->latency; }

/* ---- registers and conditions ------------------------------------------------------------------- */

static void web_ref(DepGraph *g, uint32_t web, uint32_t node)
{
	Web *w = &g->web[web];
	if (!w->refs++)
		w->first = node;
	w->last = node;
}

static void read_vreg(Builder *b, uint32_t node, int slot, bool cond, uint32_t number)
{
	DepGraph *g = b->g;
	VReg *p = number < (cond ? g->source->conds : g->source->regs) ? &b->vreg[cond][number] : NULL;
	if (!p || p->web == NONE)
		fail(b->cx, MP_BAD_INPUT, "write it first", "%s: operation %u, %s, reads %s %u, which nothing has written",
		     g->source->name, g->node[node].rec, ops[g->node[node].op].name, cond ? "condition" : "register", number);
	DepNode *n = &g->node[node];
	n->from[slot] = p->web;
	for (int k = 0; k < slot; k++)
		if (n->read[k] == p->web)
			return;
	n->read[slot] = p->web;
	p->readers = cons(b, node, p->readers);
	edge_add(b, p->writer, node, latency_of(b, p->writer));
}

static void write_vreg(Builder *b, uint32_t node, bool cond, uint32_t number)
{
	DepGraph *g = b->g;
	if (number >= (cond ? g->source->conds : g->source->regs))
		fail(b->cx, MP_BAD_INPUT, "count it in the code",
		     "%s: operation %u, %s, writes %s %u, which the code does not have", g->source->name, g->node[node].rec,
		     ops[g->node[node].op].name, cond ? "condition" : "register", number);
	VReg *p = &b->vreg[cond][number];
	g->web[g->webs] = (Web){ .cond = cond };
	g->webs_of[cond]++;
	*p = (VReg){ .web = g->webs++, .writer = node };
	g->node[node].dst = p->web;
}

static void write_masked(Builder *b, uint32_t node, uint32_t number)
{
	DepGraph *g = b->g;
	VReg *p = number < g->source->regs ? &b->vreg[0][number] : NULL;
	if (!p || p->web == NONE)
		fail(b->cx, MP_BAD_INPUT, "write it first",
		     "%s: operation %u, %s, changes register %u, which nothing has written", g->source->name, g->node[node].rec,
		     ops[g->node[node].op].name, number);
	int32_t latency = latency_of(b, node);
	for (uint32_t c = p->readers; c; c = b->cons[c].next)
		edge_add(b, b->cons[c].node, node, 1 - latency);
	edge_add(b, p->writer, node, latency_of(b, p->writer) - latency + 1);
	DepNode *n = &g->node[node];
	n->dst = p->web;
	for (int k = 0; k < 3; k++)
		if (n->read[k] == p->web)
			n->read[k] = NONE;
	p->writer = node;
	p->readers = 0;
}

/* ---- memory ------------------------------------------------------------------------------------- */

/* Merges a list of nodes and `set` into one node (a join if there are several); writes are delayed by their latency. */
static void set_add(Builder *b, NodeSet *set, uint32_t list, bool writes)
{
	if (!list)
		return;
	if (set->first == NONE && !b->cons[list].next) {
		*set = (NodeSet){ b->cons[list].node, writes ? (uint32_t)latency_of(b, b->cons[list].node) : 0 };
		return;
	}
	uint32_t join = node_new(b, NONE, GOP_NONE);
	if (set->first != NONE)
		edge_add(b, set->first, join, (int32_t)set->delay);
	for (uint32_t c = list; c; c = b->cons[c].next)
		edge_add(b, b->cons[c].node, join, writes ? latency_of(b, b->cons[c].node) : 0);
	*set = (NodeSet){ join, 0 };
}

static void depend_on_list(Builder *b, uint32_t list, uint32_t node, bool writes, int32_t delay)
{
	for (uint32_t c = list; c; c = b->cons[c].next)
		edge_add(b, b->cons[c].node, node, delay + (writes ? latency_of(b, b->cons[c].node) : 0));
}

static void depend_on_writer(Builder *b, uint32_t writer, uint32_t node, int32_t delay)
{
	if (writer != NONE)
		edge_add(b, writer, node, delay + latency_of(b, writer));
}

static void indexed_access(Builder *b, MemRegion *r, uint32_t node, bool write)
{
	int32_t gap = 1 - latency_of(b, node); /* written after the old word is read or written */
	depend_on_writer(b, r->indexed_writer, node, write ? gap : 0);
	if (!write) {
		if (r->written.first != NONE)
			edge_add(b, r->written.first, node, (int32_t)r->written.delay);
		r->indexed_reads = cons(b, node, r->indexed_reads);
		return;
	}
	depend_on_list(b, r->reads, node, false, gap);
	depend_on_list(b, r->writes, node, true, gap);
	depend_on_list(b, r->indexed_reads, node, false, gap);
	if (r->written.first != NONE)
		edge_add(b, r->written.first, node, (int32_t)r->written.delay + gap);
	if (r->indexed_read.first != NONE)
		edge_add(b, r->indexed_read.first, node, gap);
	*r = (MemRegion){
		.epoch = r->epoch + 1, .indexed_writer = node, .written = { NONE, 0 }, .indexed_read = { NONE, 0 }
	};
}

static MemWord *word_find(Builder *b, bool dram, Addr a)
{
	uint64_t key = ((uint64_t)dram << 48 | (uint64_t)a.base << 32 | a.off) + 1;
	uint64_t at = (key * 0x9E3779B97F4A7C15u) >> 32 & b->word_mask;
	while (b->word[at].key && b->word[at].key != key)
		at = (at + 1) & b->word_mask;
	if (!b->word[at].key)
		b->word[at] = (MemWord){ .key = key, .writer = NONE };
	return &b->word[at];
}

static void direct_access(Builder *b, MemRegion *r, MemWord *w, uint32_t node, bool write)
{
	if (w->epoch != r->epoch) {
		w->epoch = r->epoch;
		w->writer = NONE;
		w->readers = 0;
	}
	int32_t gap = write ? 1 - latency_of(b, node) : 0;
	depend_on_writer(b, w->writer, node, gap);
	depend_on_writer(b, r->indexed_writer, node, gap);
	if (!write) {
		w->readers = cons(b, node, w->readers);
		r->reads = cons(b, node, r->reads);
		return;
	}
	depend_on_list(b, w->readers, node, false, gap);
	if (r->indexed_read.first != NONE)
		edge_add(b, r->indexed_read.first, node, gap);
	w->writer = node;
	w->readers = 0;
	r->writes = cons(b, node, r->writes);
}

/* Dependences on other bases: before the node is created, and after. */
static void alias_prepare(Builder *b, const MemAccess *x, uint32_t base)
{
	for (uint32_t i = 0; b->history[x->dram] && i < b->bases[x->dram]; i++) {
		BaseHistory *p = &b->history[x->dram][i];
		for (int write = !x->write; write < 2 && i != base; write++) { /* reads depend on writes only */
			set_add(b, &p->set[write], p->list[write], write);
			p->list[write] = 0;
		}
	}
}

static void alias_access(Builder *b, const MemAccess *x, uint32_t base, uint32_t node)
{
	if (!b->history[x->dram])
		return;
	int32_t gap = x->write ? 1 - latency_of(b, node) : 0;
	for (uint32_t i = 0; i < b->bases[x->dram]; i++) {
		const BaseHistory *p = &b->history[x->dram][i];
		for (int write = !x->write; write < 2 && i != base; write++)
			if (p->set[write].first != NONE)
				edge_add(b, p->set[write].first, node, (int32_t)p->set[write].delay + gap);
	}
	uint32_t *list = &b->history[x->dram][base].list[x->write];
	*list = cons(b, node, *list);
}

static Addr address_of(const MemAccess *x, const Rec *r) { return x->dram ? r->far : r->mem; }

/* Spill slots alias nothing else. */
static MemRegion *region_of(Builder *b, const MemAccess *x, const Rec *r)
{
	bool spill = b->g->source->origin[r - b->g->source->rec] == NONE;
	return &b->region[x->dram][spill ? b->bases[x->dram] : address_of(x, r).base];
}

static void add_record(Builder *b, uint32_t rec)
{
	DepGraph *g = b->g;
	const Rec *r = &g->source->rec[rec];
	for (int k = 0; k < 2; k++) {
		const MemAccess *x = &forms[ops[r->op].form].access[k];
		if (!x->is)
			continue;
		uint32_t base = address_of(x, r).base;
		MemRegion *region = region_of(b, x, r);
		/* Joins must precede the nodes that depend on them, so they are created before the node. */
		if (x->indexed && !x->write) {
			set_add(b, &region->written, region->writes, true);
			region->writes = 0;
		} else if (!x->indexed && x->write) {
			set_add(b, &region->indexed_read, region->indexed_reads, false);
			region->indexed_reads = 0;
		}
		if (region - b->region[x->dram] == base)
			alias_prepare(b, x, base);
	}
	uint32_t node = node_new(b, rec, r->op);
	if (forms[ops[r->op].form].uses & USES_FAR)
		g->node[node].bank = (uint8_t)(r->far.off % (uint32_t)g->m->dram_banks);
	int form = ops[r->op].form;
	unsigned uses = forms[form].uses;
	if (uses & USES_A)
		read_vreg(b, node, 0, false, r->a);
	if (uses & USES_B)
		read_vreg(b, node, 1, false, r->b);
	if (uses & READS_CC)
		read_vreg(b, node, 2, true, r->cc);
	if (form == FORM_MASKED)
		write_masked(b, node, r->dst);
	else if (uses & USES_DST)
		write_vreg(b, node, false, r->dst);
	if (uses & WRITES_CC)
		write_vreg(b, node, true, r->dst);
	const DepNode *n = &g->node[node];
	if (n->dst != NONE)
		web_ref(g, n->dst, node);
	for (int k = 0; k < 3; k++)
		if (n->read[k] != NONE)
			web_ref(g, n->read[k], node);
	for (int k = 0; k < 2; k++) {
		const MemAccess *x = &forms[ops[r->op].form].access[k];
		if (!x->is)
			continue;
		Addr a = address_of(x, r);
		MemRegion *region = region_of(b, x, r);
		if (x->indexed)
			indexed_access(b, region, node, x->write);
		else
			direct_access(b, region, word_find(b, x->dram, a), node, x->write);
		if (region - b->region[x->dram] == a.base)
			alias_access(b, x, a.base, node);
	}
}

/* ---- adjacency lists, critical paths ------------------------------------------------------------- */

static DepEdge *edges_sort(const Builder *b, bool by_from, uint32_t **at)
{
	uint32_t n = b->g->nodes;
	*at = NEW(b->arena, (size_t)n + 2, uint32_t);
	DepEdge *edge = NEW(b->arena, b->edges, DepEdge);
	for (size_t i = 0; i < b->edges; i++)
		(*at)[(by_from ? b->edge[i].from : b->edge[i].to) + 2]++;
	for (uint32_t i = 2; i < n + 2; i++)
		(*at)[i] += (*at)[i - 1];
	for (size_t i = 0; i < b->edges; i++) {
		const RawEdge *l = &b->edge[i];
		edge[(*at)[(by_from ? l->from : l->to) + 1]++] = (DepEdge){ by_from ? l->to : l->from, l->delay };
	}
	return edge;
}

/* Number of bases of one memory, up to the highest in use. */
static uint32_t bases_count(const Source *s, bool dram, bool *several)
{
	uint32_t most = 0;
	*several = false;
	int64_t first = -1;
	for (uint32_t i = 0; i < s->recs; i++) {
		const Rec *r = &s->rec[i];
		if (!(forms[ops[r->op].form].uses & (dram ? USES_FAR : USES_MEM)))
			continue;
		uint32_t base = dram ? r->far.base : r->mem.base;
		most = base > most ? base : most;
		*several |= first >= 0 && first != base;
		first = base;
	}
	return most + 1;
}

DepGraph *graph_build(Ctx *cx, Arena *arena, const Machine *m, const Source *s)
{
	DepGraph *g = NEW(arena, 1, DepGraph);
	g->m = m;
	g->source = s;
	for (int op = 0; op < GOPS; op++)
		timing_fill(m, op, &g->timing[op]);
	g->timing[GOPS].unit = UNITS;
	Builder b = { .cx = cx, .arena = arena, .g = g, .node_capacity = s->recs + 16 };
	for (int dram = 0; dram < 2; dram++) {
		bool several;
		uint32_t bases = bases_count(s, dram, &several);
		b.bases[dram] = bases;
		if (several && s->overlap)
			b.history[dram] = NEW(b.arena, bases, BaseHistory);
		for (uint32_t i = 0; b.history[dram] && i < bases; i++)
			b.history[dram][i].set[0].first = b.history[dram][i].set[1].first = NONE;
		b.region[dram] = NEW(b.arena, (size_t)bases + 1, MemRegion);
		for (uint32_t i = 0; i < bases + 1; i++)
			b.region[dram][i] =
				(MemRegion){ .epoch = 1, .indexed_writer = NONE, .written = { NONE, 0 }, .indexed_read = { NONE, 0 } };
	}
	uint64_t words = 16;
	while (words < 4 * (uint64_t)s->recs) /* at most two words each: load factor 1/2 */
		words *= 2;
	b.word = NEW(b.arena, words, MemWord);
	b.word_mask = words - 1;
	for (int k = 0; k < 2; k++) {
		uint32_t n = k ? s->conds : s->regs;
		b.vreg[k] = NEW(b.arena, n, VReg);
		for (uint32_t i = 0; i < n; i++)
			b.vreg[k][i].web = NONE;
	}
	cons(&b, NONE, 0); /* index 0 ends a list */
	g->node = NEW(arena, b.node_capacity, DepNode);
	b.last_edge = NEW(arena, b.node_capacity, size_t);
	g->web = NEW(arena, (size_t)s->recs + 1, Web);
	for (uint32_t i = 0; i < s->recs; i++)
		add_record(&b, i);
	g->in = edges_sort(&b, false, &g->in_at);
	g->out = edges_sort(&b, true, &g->out_at);
	/* Critical paths. */
	g->head = NEW(arena, g->nodes, int32_t);
	g->tail = NEW(arena, g->nodes, int32_t);
	for (uint32_t i = 0; i < g->nodes; i++)
		for (uint32_t e = g->in_at[i]; e < g->in_at[i + 1]; e++)
			if (g->head[g->in[e].node] + g->in[e].delay > g->head[i])
				g->head[i] = g->head[g->in[e].node] + g->in[e].delay;
	for (uint32_t i = g->nodes; i-- > 0;) {
		g->tail[i] = node_timing(g, i)->span;
		for (uint32_t e = g->out_at[i]; e < g->out_at[i + 1]; e++)
			if (g->tail[g->out[e].node] + g->out[e].delay > g->tail[i])
				g->tail[i] = g->tail[g->out[e].node] + g->out[e].delay;
	}
	for (uint32_t i = 0; i < g->webs; i++)
		g->dead[g->web[i].cond] += g->web[i].refs == 1;
	return g;
}

Source *source_new(Arena *arena, const Code *code)
{
	Source *s = NEW(arena, 1, Source);
	*s = (Source){ .name = code->name ? code->name : "routine",
		           .recs = code->recs,
		           .regs = code->regs,
		           .conds = code->conds,
		           .overlap = code->bases_overlap,
		           .prescheduled = code->prescheduled,
		           .index_limit = code->index_limit };
	s->rec = NEW(arena, code->recs, Rec);
	s->origin = NEW(arena, code->recs, uint32_t);
	for (uint32_t i = 0; i < code->recs; i++) {
		s->rec[i] = code->rec[i];
		s->origin[i] = i;
	}
	return s;
}

int32_t graph_length(const DepGraph *g, const int32_t *time)
{
	int32_t length = 0;
	for (uint32_t i = 0; i < g->nodes; i++)
		if (time[i] + node_timing(g, i)->span > length)
			length = time[i] + node_timing(g, i)->span;
	return length;
}
