/* SPDX-License-Identifier: MIT */
/* From data flow to fused instruction sequences.  In: nodes with their operands.  Out: stages of instructions over
 * rows.
 *
 *   order    by levels: everything that needs no transfer, those transfers, everything that needs only those, ...: few
 *            barriers for many transfers
 *   fuse     sums of products become one instruction with its accumulator in vector registers, although the schedule
 *            interleaved them; loads and stores are folded into their consumer or producer; an add of a received word
 *            becomes part of the transfer
 *   slots    linear-scan allocation of the remaining values
 *
 * Must hold: every operation sees the same operands as before, memory included; the same roundings in the same
 * order. */
#include <string.h>

#include "execute.h"

enum { PRIVATE = 8 }; /* slots that a chain may keep live for its own operands */

typedef struct Fuser {
	Flow *f;
	Ctx *cx;
	bool no_alias, fuse;
	uint32_t window;             /* transfers ordered together: bounds the number of live values */
	uint32_t *order, *at;        /* [nodes] node at a position; its inverse */
	uint32_t *key;               /* sort key: 2 * level, plus 1 for transfers */
	uint32_t *uses;              /* number of readers */
	uint32_t *product;           /* FADD of a chain: its product; NONE */
	uint32_t *sent;              /* FADD fused into a transfer: the XFER; NONE */
	uint32_t *limit;             /* last position at which all its folded loads are still valid */
	uint8_t *private_slots_held; /* private slots of the chain so far */
	bool *absorbed;              /* part of a longer chain */
	uint32_t *into;              /* STORE that it is folded into; NONE */
	bool *needed;                /* an instruction reads its slot */
	uint32_t *last;              /* position of the last such read */
	bool *released;
	uint32_t *slot;
	Sequence *s;
	uint32_t inst_capacity, term_capacity, stage_capacity, transfer_capacity;
	uint32_t *free_slot, frees, fresh; /* free slots; first slot never used */
	uint32_t *held, helds;             /* slots that other blocks may still read */
	uint32_t *sent_in;                 /* [slots] number of stages up to the last that sent it; 0: never */
	uint32_t last_key;                 /* of the previous instruction */
	bool full;                         /* out of slots */
} Fuser;

static const FlowNode *node_at(const Fuser *u, uint32_t n) { return &u->f->node[n]; }

/* Alias class of a memory word: if bases may overlap, each memory is one class. */
static uint32_t word_of(const Fuser *u, const FlowNode *n) { return u->no_alias ? n->word : n->far; }

/* ---- order -------------------------------------------------------------------------------------- */

/* Levels of the last accesses: write of each word, of any SRAM word, by index; read by index.  A load depends only
 * on its word, so it never moves below the next write of it. */
typedef struct Levels {
	uint32_t *write, any_write, put, lookup;
} Levels;

static uint32_t memory_level(const Fuser *u, Levels *v, const FlowNode *n, uint32_t level)
{
	uint32_t put = n->far ? 0 : v->put, lookup = n->far ? 0 : v->lookup;
	switch (n->op) {
	case GOP_LOAD: return max_u32(level, max_u32(v->write[word_of(u, n)], put));
	case GOP_STORE:
		level = max_u32(max_u32(level, v->write[word_of(u, n)]), max_u32(put, lookup));
		v->write[word_of(u, n)] = level;
		if (!n->far)
			v->any_write = max_u32(v->any_write, level);
		return level;
	case GOP_LOOKUP:
		level = max_u32(level, max_u32(v->any_write, v->put));
		v->lookup = max_u32(v->lookup, level);
		return level;
	case GOP_PUT: v->put = max_u32(max_u32(level, v->any_write), max_u32(v->put, v->lookup)); return v->put;
	}
	return level;
}

/* The transfer that an add can be fused into: its result has no other reader and does not come from a disk, and the
 * other operand is available before. */
static uint32_t find_sent(const Fuser *u, const FlowNode *add, uint32_t bottom)
{
	for (int i = 0; i < 2 && u->fuse && add->op == GOP_FADD; i++) {
		uint32_t x = add->in[i], other = add->in[1 - i];
		if (node_at(u, x)->op == GOP_XFER && node_at(u, x)->word == NONE && u->uses[x] == 1 &&
		    u->key[other] < u->key[x] && 2 * bottom < u->key[x])
			return x;
	}
	return NONE;
}

static void order_nodes(Fuser *u)
{
	Flow *f = u->f;
	uint32_t *key = u->key;
	Levels v = { .write = NEW(&u->cx->scratch, f->words + 2, uint32_t) };
	uint32_t bottom = 0, top = 0, transfers = 0;
	for (uint32_t n = 0; n < f->nodes; n++) {
		const FlowNode *node = &f->node[n];
		uint32_t level = bottom;
		for (int i = 0; i < 3; i++)
			if (node->in[i] != NONE)
				level = max_u32(level, (key[node->in[i]] + 1) / 2);
		level = memory_level(u, &v, node, level);
		bool transfer = node->op == GOP_XFER;
		key[n] = 2 * level + transfer; /* transfers come last in their level */
		u->sent[n] = find_sent(u, node, bottom);
		if (u->sent[n] != NONE)
			key[n] = key[u->sent[n]];
		top = max_u32(top, (key[n] + 1) / 2);
		if (transfer && ++transfers % u->window == 0)
			bottom = top;
	}
	uint32_t *start = NEW(&u->cx->scratch, 2 * (size_t)top + 3, uint32_t);
	for (uint32_t n = 0; n < f->nodes; n++)
		start[key[n] + 1]++;
	for (uint32_t i = 1; i < 2 * top + 3; i++)
		start[i] += start[i - 1];
	for (uint32_t n = 0; n < f->nodes; n++) {
		u->at[n] = start[key[n]]++;
		u->order[u->at[n]] = n;
	}
}

/* ---- fusing ---------------------------------------------------------------------------------------- */

/* Can the load be folded into the operation at pos? */
static bool is_inline(const Fuser *u, uint32_t n, uint32_t pos)
{
	return u->fuse && node_at(u, n)->op == GOP_LOAD && pos <= u->limit[n];
}

static uint32_t load_limit(const Fuser *u, uint32_t n)
{
	return n != NONE && node_at(u, n)->op == GOP_LOAD ? u->limit[n] : NONE;
}

static uint32_t private_slots(const Fuser *u, uint32_t n, uint32_t pos)
{
	return u->uses[n] <= 2 && !is_inline(u, n, pos);
}

static bool is_product(const Fuser *u, uint32_t n) { return node_at(u, n)->op == GOP_FMUL && u->uses[n] == 1; }

/* Add of a product: extends the chain of its other operand, if that has no other reader. */
static void fuse_add(Fuser *u, uint32_t n)
{
	const FlowNode *add = node_at(u, n);
	uint32_t a = add->in[0], b = add->in[1];
	if (a == b || u->sent[n] != NONE)
		return;
	bool first = is_product(u, a), second = is_product(u, b);
	if (!first && !second)
		return;
	uint32_t p = second ? b : a, c = second ? a : b;
	const FlowNode *product = node_at(u, p);
	uint32_t pos = u->at[n];
	u->product[n] = p;
	u->limit[n] = min_u32(load_limit(u, product->in[0]), load_limit(u, product->in[1]));
	u->private_slots_held[n] = (uint8_t)(private_slots(u, product->in[0], pos) + private_slots(u, product->in[1], pos));
	bool goes_on = u->product[c] != NONE && u->uses[c] == 1 && pos <= u->limit[c] &&
	               u->private_slots_held[c] + u->private_slots_held[n] <= PRIVATE;
	if (goes_on) {
		u->absorbed[c] = true;
		u->limit[n] = min_u32(u->limit[n], u->limit[c]);
		u->private_slots_held[n] = (uint8_t)(u->private_slots_held[n] + u->private_slots_held[c]);
	} else {
		u->limit[n] = min_u32(u->limit[n], load_limit(u, c));
	}
	if (pos > u->limit[n]) /* a folded load is about to be overwritten: do not delay further */
		u->limit[n] = pos;
}

static void fuse_all(Fuser *u)
{
	for (uint32_t pos = 0; pos < u->f->nodes; pos++) {
		uint32_t n = u->order[pos];
		const FlowNode *node = node_at(u, n);
		if (node->op == GOP_FADD)
			fuse_add(u, n);
		if (u->product[n] == NONE && node->op != GOP_LOAD)
			for (int i = 0; i < 3; i++)
				u->limit[n] = min_u32(u->limit[n], load_limit(u, node->in[i]));
	}
	for (uint32_t n = 0; n < u->f->nodes; n++)
		if (node_at(u, n)->op == GOP_STORE) {
			/* Folds a value whose only reader is a store into the store. */
			uint32_t v = node_at(u, n)->in[0];
			if (ops[node_at(u, v)->op].unit == UNIT_ALU && u->sent[v] == NONE && u->uses[v] == 1 &&
			    u->at[n] <= u->limit[v])
				u->into[v] = n;
		}
}

/* ---- what an instruction reads ------------------------------------------------------------------ */

typedef void VisitFn(Fuser *u, uint32_t value, uint32_t pos);

static bool is_transfer(const Fuser *u, uint32_t n) { return node_at(u, n)->op == GOP_XFER || u->sent[n] != NONE; }

/* Of a transfer: the value sent, and the value added, or NONE. */
static uint32_t sent_value(const Fuser *u, uint32_t n)
{
	return node_at(u, u->sent[n] != NONE ? u->sent[n] : n)->in[0];
}

static uint32_t added_value(const Fuser *u, uint32_t n)
{
	const FlowNode *node = node_at(u, n);
	return u->sent[n] == NONE ? NONE : node->in[node->in[0] == u->sent[n]];
}

/* Visits the values that node n, executed at pos, reads from slots. */
static void visit(Fuser *u, uint32_t n, uint32_t pos, VisitFn *fn)
{
	uint32_t in[3] = { node_at(u, n)->in[0], node_at(u, n)->in[1], node_at(u, n)->in[2] };
	while (u->product[n] != NONE) {
		const FlowNode *p = node_at(u, u->product[n]);
		uint32_t rest = node_at(u, n)->in[0] == u->product[n] ? node_at(u, n)->in[1] : node_at(u, n)->in[0];
		for (int i = 0; i < 2; i++)
			if (!is_inline(u, p->in[i], pos))
				fn(u, p->in[i], pos);
		in[0] = rest;
		in[1] = in[2] = NONE;
		if (!u->absorbed[rest])
			break;
		n = rest;
	}
	bool transfer = is_transfer(u, n);
	if (transfer) {
		in[0] = sent_value(u, n);
		in[1] = added_value(u, n);
	}
	for (int i = 0; i < 3; i++)
		if (in[i] != NONE && (transfer || !is_inline(u, in[i], pos)))
			fn(u, in[i], pos);
}

static void need(Fuser *u, uint32_t value, uint32_t pos)
{
	if (!u->needed[value])
		u->last[value] = pos;
	u->needed[value] = true;
}

/* Node executed at a position: its own, the value folded into the store there, or NONE. */
static uint32_t done_at(const Fuser *u, uint32_t pos)
{
	uint32_t n = u->order[pos];
	const FlowNode *node = node_at(u, n);
	if (node->op == GOP_STORE)
		return u->into[node->in[0]] == n ? node->in[0] : n;
	if (node->op == GOP_PUT)
		return n;
	return u->needed[n] && !u->absorbed[n] && u->into[n] == NONE ? n : NONE;
}

/* ---- slots -------------------------------------------------------------------------------------- */

static uint32_t slot_new(Fuser *u)
{
	if (u->frees)
		return u->free_slot[--u->frees];
	if (u->fresh == u->f->p->slots) {
		u->full = true;
		return u->fresh - 1;
	}
	return u->fresh++;
}

/* Other blocks may still execute transfers of the previous stage. */
static bool still_read(const Fuser *u, uint32_t slot)
{
	return u->sent_in[slot] && u->sent_in[slot] + 1 >= u->s->stages;
}

static void release(Fuser *u, uint32_t value, uint32_t pos)
{
	if (u->last[value] != pos || u->released[value]) /* may be read twice */
		return;
	u->released[value] = true;
	if (still_read(u, u->slot[value]))
		u->held[u->helds++] = u->slot[value];
	else
		u->free_slot[u->frees++] = u->slot[value];
}

/* ---- instructions ------------------------------------------------------------------------------- */

static Inst *add_inst(Fuser *u, Inst i)
{
	u->s->inst = list_more(&u->cx->keep, u->s->inst, u->s->insts, &u->inst_capacity, sizeof(Inst));
	u->s->inst[u->s->insts] = i;
	u->s->stage[u->s->stages - 1].insts++;
	return &u->s->inst[u->s->insts++];
}

static void add_stage(Fuser *u)
{
	u->s->stage = list_more(&u->cx->keep, u->s->stage, u->s->stages, &u->stage_capacity, sizeof(Stage));
	u->s->stage[u->s->stages++] = (Stage){ .inst = u->s->insts, .transfer = u->s->transfers };
}

static RowRef memory_place(const Fuser *u, const FlowNode *n)
{
	return (RowRef){ n->addr.off * (u->f->p->lanes / LANES), u->f->space_of[2 * n->addr.base + n->far] };
}

static RowRef place_of(const Fuser *u, uint32_t value, uint32_t pos)
{
	if (value == NONE)
		return (RowRef){ 0, 0 };
	return is_inline(u, value, pos) ? memory_place(u, node_at(u, value)) : (RowRef){ u->slot[value], 0 };
}

/* Terms of the chain that ends in n, in order. */
static void put_chain(Fuser *u, uint32_t n, uint32_t pos, Inst *i)
{
	uint32_t count = 0, rest = n;
	for (uint32_t c = n;; c = rest, count++) {
		const FlowNode *add = node_at(u, c);
		rest = add->in[0] == u->product[c] ? add->in[1] : add->in[0];
		if (!u->absorbed[rest])
			break;
	}
	i->op = KOP_CHAIN;
	i->a = place_of(u, rest, pos);
	i->first = u->s->terms;
	i->terms = ++count;
	while (u->s->terms + count > u->term_capacity)
		u->s->term = list_more(&u->cx->keep, u->s->term, u->term_capacity, &u->term_capacity, sizeof(Term));
	u->s->terms += count;
	for (uint32_t c = n, t = u->s->terms; count > 0; count--) {
		const FlowNode *add = node_at(u, c), *p = node_at(u, u->product[c]);
		RowRef x = place_of(u, p->in[0], pos), y = place_of(u, p->in[1], pos);
		u->s->term[--t] = x.space ? (Term){ y, x } : (Term){ x, y };
		c = add->in[0] == u->product[c] ? add->in[1] : add->in[0];
	}
}

static Inst plain_inst(const Fuser *u, uint32_t n, uint32_t pos)
{
	const FlowNode *node = node_at(u, n);
	Inst i = { .op = node->op, .k = node->k, .base = node->addr.base };
	if (node->op == GOP_LOAD) {
		i.a = memory_place(u, node);
		return i;
	}
	i.a = place_of(u, node->in[0], pos);
	i.b = place_of(u, node->in[1], pos);
	i.c = place_of(u, node->in[2], pos);
	if (node->op == GOP_LOOKUP || node->op == GOP_PUT) {
		i.op = node->op == GOP_PUT ? KOP_PUT : KOP_LOOKUP;
		i.k.u = node->addr.off;
	}
	return i;
}

static void put_node(Fuser *u, uint32_t n, uint32_t pos)
{
	const FlowNode *there = node_at(u, u->order[pos]);
	bool transfer = is_transfer(u, n);
	if (u->s->stage[u->s->stages - 1].transfers && u->key[u->order[pos]] != u->last_key) {
		add_stage(u);
		uint32_t kept = 0;
		for (uint32_t i = 0; i < u->helds; i++)
			if (still_read(u, u->held[i]))
				u->held[kept++] = u->held[i];
			else
				u->free_slot[u->frees++] = u->held[i];
		u->helds = kept;
	}
	u->last_key = u->key[u->order[pos]];
	Inst i = { 0 };
	if (u->product[n] != NONE)
		put_chain(u, n, pos, &i);
	else if (!transfer)
		i = plain_inst(u, n, pos);
	if (transfer)
		u->sent_in[u->slot[sent_value(u, n)]] = u->s->stages;
	visit(u, n, pos, release);
	if (there->op == GOP_STORE) {
		i.dst = memory_place(u, there);
	} else if (there->op != GOP_PUT) {
		u->slot[n] = slot_new(u);
		i.dst = (RowRef){ u->slot[n], 0 };
	}
	if (transfer) {
		uint32_t x = u->sent[n] != NONE ? u->sent[n] : n, add = added_value(u, n);
		u->s->transfer =
			list_more(&u->cx->keep, u->s->transfer, u->s->transfers, &u->transfer_capacity, sizeof(Transfer));
		u->s->transfer[u->s->transfers++] =
			(Transfer){ u->slot[n], u->slot[sent_value(u, n)], add == NONE ? NONE : u->slot[add],
			            u->f->route[node_at(u, x)->k.u], node_at(u, x)->word };
		u->s->stage[u->s->stages - 1].transfers++;
	} else
		add_inst(u, i);
}

Sequence *sequence_make(Flow *f, bool no_alias, uint32_t window)
{
	bool fuse = window > 0;
	Arena *scratch = &f->cx->scratch;
	Fuser u = { .f = f,
		        .cx = f->cx,
		        .no_alias = no_alias,
		        .fuse = fuse,
		        .window = max_u32(window, 1),
		        .s = NEW(&f->cx->keep, 1, Sequence) };
	uint32_t **numbers[] = { &u.order, &u.at,   &u.key,  &u.uses, &u.product, &u.limit,
		                     &u.into,  &u.last, &u.slot, &u.sent, &u.held };
	for (size_t i = 0; i < COUNT(numbers); i++)
		*numbers[i] = NEW(scratch, f->nodes, uint32_t);
	uint32_t **none[] = { &u.product, &u.limit, &u.into, &u.last };
	for (size_t i = 0; i < COUNT(none); i++)
		memset(*none[i], 0xFF, f->nodes * sizeof **none[i]);
	u.private_slots_held = NEW(scratch, f->nodes, uint8_t);
	u.absorbed = NEW(scratch, f->nodes, bool);
	u.needed = NEW(scratch, f->nodes, bool);
	u.released = NEW(scratch, f->nodes, bool);
	u.free_slot = NEW(scratch, f->p->slots, uint32_t);
	u.sent_in = NEW(scratch, f->p->slots, uint32_t);
	for (uint32_t n = 0; n < u.f->nodes; n++)
		for (int i = 0; i < 3; i++)
			if (node_at(&u, n)->in[i] != NONE)
				u.uses[node_at(&u, n)->in[i]]++;
	order_nodes(&u);
	if (fuse) {
		/* Loads: position of the next write of the word. */
		uint32_t *next = NEW(&u.cx->scratch, u.f->words + 2, uint32_t), put = NONE;
		memset(next, 0xFF, (u.f->words + 2) * sizeof *next);
		for (uint32_t pos = u.f->nodes; pos-- > 0;) {
			const FlowNode *n = node_at(&u, u.order[pos]);
			if (n->op == GOP_STORE)
				next[word_of(&u, n)] = pos;
			else if (n->op == GOP_PUT)
				put = pos;
			else if (n->op == GOP_LOAD)
				u.limit[u.order[pos]] = n->far ? next[word_of(&u, n)] : min_u32(next[word_of(&u, n)], put);
		}
		fuse_all(&u);
	}
	for (uint32_t pos = u.f->nodes; pos-- > 0;) {
		uint32_t n = done_at(&u, pos);
		if (n != NONE)
			visit(&u, n, pos, need);
	}
	add_stage(&u);
	for (uint32_t pos = 0; pos < f->nodes && !u.full; pos++) {
		uint32_t n = done_at(&u, pos);
		if (n != NONE)
			put_node(&u, n, pos);
	}
	if (u.full)
		return NULL;
	sequence_prefetch(f->cx, u.s);
	return u.s;
}
