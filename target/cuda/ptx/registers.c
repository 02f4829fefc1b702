/* SPDX-License-Identifier: MIT */
/* Register allocation. In: a kernel whose virtual registers have slots of their own. Out: the same kernel; registers
 * whose live ranges do not overlap share a slot, so that a warp has kilobytes of registers, not megabytes.
 *
 * Liveness by backward data flow over basic blocks; linear scan over live ranges. Must hold: the simulator finds the
 * same errors. A register that may be read before it is written is live from the first instruction on, so that its
 * slot has no other register's value. Divergent lanes may use one slot for two registers at the same time: every
 * lane has its own words of it, since all registers of a slot have the same width. Time and memory are bounded by
 * the length of the text; kernels that would need more keep their slots. */
#include <string.h>

#include "emulator.h"

enum { BITS = 64 };
enum { FEW_SLOTS = 1 << 12, SLOTS_EACH = 8 }; /* slots that are allocated, at most: some, and some per instruction */
enum { MAX_LIVENESS_WORDS = 1 << 20, MAX_PASSES = 1000 }; /* of all basic blocks; over them */
typedef enum RegisterKind { KIND_WORD, KIND_WIDE, KIND_PREDICATE, KINDS } RegisterKind;

typedef struct Range { /* of instructions; last < first: none */
	uint32_t first, last;
} Range;

typedef struct Allocator {
	Kernel *k;
	Arena *a;
	uint32_t slots;
	/* by first slot of a register */
	uint8_t *kind;   /* [slots] RegisterKind */
	Range *live;     /* [slots] live range */
	uint32_t *cross; /* [slots] 1 + bit in liveness sets; 0: the register is local to a basic block */
	uint32_t *start; /* [blocks + 1] first instruction */
	uint32_t *block; /* [length + 1] basic block of an instruction */
	uint32_t blocks;
	uint32_t crossing;               /* registers that are live across blocks */
	uint32_t words;                  /* of a liveness set */
	uint64_t *in, *out, *used, *set; /* [blocks][words] live in, live out, upward exposed uses, definitions */
} Allocator;

/* ---- operands ---- */

typedef void OperandFn(Allocator *s, uint32_t at, uint32_t *slot, bool result);

static bool is_register(uint32_t slot) { return slot < CONSTANT; }

/* Sources before results. */
static void operands_visit(Allocator *s, uint32_t at, OperandFn *fn)
{
	Insn *i = &s->k->code[at];

	if (is_register(i->guard))
		fn(s, at, &i->guard, false);
	for (uint32_t n = 0; n < i->sources; n++)
		if (is_register(i->a[n]))
			fn(s, at, &i->a[n], false);
	for (uint32_t n = 0; n < i->results; n++)
		if (is_register(i->d[n]))
			fn(s, at, &i->d[n], true);
}

static void code_visit(Allocator *s, OperandFn *fn)
{
	for (uint32_t at = 0; at < s->k->length; at++)
		operands_visit(s, at, fn);
}

/* Is it a definition of all lanes? Under a predicate, other lanes keep the old value. */
static bool overwrites(const Insn *i) { return i->guard == NO_SLOT; }

/* ---- basic blocks ---- */

static bool ends_block(const Insn *i) { return i->op == OP_BRANCH || i->op == OP_EXIT || i->op == OP_TRAP; }

static void blocks_find(Allocator *s)
{
	const Kernel *k = s->k;
	bool *begins = NEW(s->a, k->length + 1, bool);

	begins[0] = true;
	for (uint64_t at = 0; at < k->length; at++) {
		if (k->code[at].op == OP_BRANCH)
			begins[k->code[at].target] = true;
		if (ends_block(&k->code[at]))
			begins[at + 1] = true;
	}
	s->block = NEW(s->a, k->length + 1, uint32_t);
	s->start = NEW(s->a, k->length + 2, uint32_t);
	for (uint32_t at = 0; at < k->length; at++) {
		if (begins[at])
			s->start[s->blocks++] = at;
		s->block[at] = s->blocks - 1;
	}
	s->start[s->blocks] = (uint32_t)k->length;
}

/* ---- registers that are live across blocks ---- */

static void range_add(Range *r, uint32_t at)
{
	r->first = min_u32(r->first, at);
	r->last = max_u32(r->last, at);
}

static void occurrence(Allocator *s, uint32_t at, uint32_t *slot, bool result)
{
	Range *r = &s->live[*slot];
	bool first = r->first > r->last;

	if (first ? !result || !overwrites(&s->k->code[at]) : s->block[r->first] != s->block[at])
		s->cross[*slot] = 1;
	range_add(r, at);
}

static void number_crossing(Allocator *s)
{
	for (uint32_t i = 0; i < s->slots; i++)
		if (s->cross[i])
			s->cross[i] = ++s->crossing;
	s->words = (uint32_t)ceil_div(s->crossing, BITS);
}

static bool has_bit(const uint64_t *row, uint32_t bit) { return row[bit / BITS] >> bit % BITS & 1; }
static void set_bit(uint64_t *row, uint32_t bit) { row[bit / BITS] |= (uint64_t)1 << bit % BITS; }

static void block_occurrence(Allocator *s, uint32_t at, uint32_t *slot, bool result)
{
	uint64_t row = (uint64_t)s->block[at] * s->words;
	uint32_t bit = s->cross[*slot] - 1;

	if (!s->cross[*slot])
		return;
	if (!result && !has_bit(s->set + row, bit))
		set_bit(s->used + row, bit);
	if (result && overwrites(&s->k->code[at]))
		set_bit(s->set + row, bit);
}

/* ---- liveness: backward data flow, until it is stable ---- */

static bool flow_back(Allocator *s, uint32_t block)
{
	const Insn *last = &s->k->code[s->start[block + 1] - 1];
	uint64_t row = (uint64_t)block * s->words;
	bool falls = !ends_block(last) || last->guard != NO_SLOT, changed = false;
	const uint64_t *next = falls && block + 1 < s->blocks ? s->in + row + s->words : NULL;
	const uint64_t *target = last->op == OP_BRANCH ? s->in + (uint64_t)s->block[last->target] * s->words : NULL;

	for (uint32_t i = 0; i < s->words; i++) {
		uint64_t out = (next ? next[i] : 0) | (target ? target[i] : 0);
		uint64_t in = s->used[row + i] | (out & ~s->set[row + i]);
		changed |= in != s->in[row + i];
		s->out[row + i] = out;
		s->in[row + i] = in;
	}
	return changed;
}

static bool liveness_find(Allocator *s)
{
	uint64_t all = (uint64_t)s->blocks * s->words;
	bool changed = all > 0;

	if (all > MAX_LIVENESS_WORDS)
		return false;
	s->in = NEW(s->a, all, uint64_t);
	s->out = NEW(s->a, all, uint64_t);
	s->used = NEW(s->a, all, uint64_t);
	s->set = NEW(s->a, all, uint64_t);
	code_visit(s, block_occurrence);
	for (uint32_t pass = 0; changed && pass < MAX_PASSES; pass++) {
		changed = false;
		for (uint32_t b = s->blocks; b-- > 0;)
			changed |= flow_back(s, b);
	}
	return !changed;
}

/* Extends the ranges of all registers of a liveness set to the instruction. */
static void live_at(Allocator *s, const uint64_t *row, uint32_t at, const uint32_t *slot)
{
	for (uint32_t i = 0; i < s->words; i++)
		for (uint64_t left = row[i]; left; left &= left - 1)
			range_add(&s->live[slot[i * BITS + (uint32_t)__builtin_ctzll(left)]], at);
}

/* A live range reaches from the first to the last instruction at which the register is live: no holes. */
static void ranges_extend(Allocator *s)
{
	uint32_t *slot = NEW(s->a, (uint64_t)s->crossing + 1, uint32_t); /* by bit */

	for (uint32_t i = 0; i < s->slots; i++)
		if (s->cross[i])
			slot[s->cross[i] - 1] = i;
	for (uint32_t b = 0; b < s->blocks; b++) {
		live_at(s, s->in + (uint64_t)b * s->words, s->start[b], slot);
		live_at(s, s->out + (uint64_t)b * s->words, s->start[b + 1] - 1, slot);
	}
	for (uint64_t at = 0; at < s->k->length; at++) /* wgmma writes sums later: live everywhere */
		for (uint32_t n = 0; s->k->code[at].list && n < 4u * s->k->code[at].width; n++)
			if (is_register(s->k->code[at].list[n]))
				s->live[s->k->code[at].list[n]] = (Range){ 0, (uint32_t)s->k->length };
	for (uint32_t i = 0; i < SR_COUNT; i++)
		if (s->k->special[i] != NO_SLOT)
			s->live[s->k->special[i]] = (Range){ 0, (uint32_t)s->k->length };
}

/* ---- linear scan ---- */

typedef struct Chain { /* registers by first or last instruction */
	uint32_t *head, *next;
} Chain;

static Chain chain_new(const Allocator *s)
{
	return (Chain){ NEW(s->a, s->k->length + 2, uint32_t), NEW(s->a, (uint64_t)s->slots + 1, uint32_t) };
}

static void chain_add(Chain *c, uint32_t at, uint32_t slot)
{
	c->next[slot] = c->head[at];
	c->head[at] = slot + 1;
}

/* A register gets the free slot of its kind that was freed last, or a new one. to: number within the kind; count:
 * slots of each kind */
static void linear_scan(const Allocator *s, uint32_t *to, uint32_t count[KINDS])
{
	Chain begins = chain_new(s), ends = chain_new(s);
	uint32_t *left[KINDS], lefts[KINDS] = { 0 };

	for (int i = 0; i < KINDS; i++)
		left[i] = NEW(s->a, (uint64_t)s->slots + 1, uint32_t);
	for (uint32_t i = 0; i < s->slots; i++)
		if (s->live[i].first <= s->live[i].last) {
			chain_add(&begins, s->live[i].first, i);
			chain_add(&ends, s->live[i].last + 1,
			          i); /* after it: results of an instruction do not overwrite its sources */
		}
	for (uint64_t at = 0; at < s->k->length + 1; at++) {
		for (uint32_t i = ends.head[at]; i; i = ends.next[i - 1]) {
			uint8_t kind = s->kind[i - 1];
			left[kind][lefts[kind]++] = to[i - 1];
		}
		for (uint32_t i = begins.head[at]; i; i = begins.next[i - 1]) {
			uint8_t kind = s->kind[i - 1];
			to[i - 1] = lefts[kind] ? left[kind][--lefts[kind]] : count[kind]++;
		}
	}
}

static void slots_replace(Allocator *s, const uint32_t *to)
{
	Kernel *k = s->k;

	for (uint64_t at = 0; at < k->length; at++) {
		Insn *i = &k->code[at];
		if (is_register(i->guard))
			i->guard = to[i->guard];
		for (uint32_t n = 0; n < i->sources; n++)
			i->a[n] = is_register(i->a[n]) ? to[i->a[n]] : i->a[n];
		for (uint32_t n = 0; n < i->results; n++)
			i->d[n] = is_register(i->d[n]) ? to[i->d[n]] : i->d[n];
		for (uint32_t n = 0; i->list && n < 4u * i->width; n++)
			i->list[n] = is_register(i->list[n]) ? to[i->list[n]] : i->list[n];
	}
	for (int i = 0; i < SR_COUNT; i++)
		if (k->special[i] != NO_SLOT)
			k->special[i] = to[k->special[i]];
}

static void kinds_find(Allocator *s, const Registers *all, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		bool wide = type_bytes(all[i].type) == 8;
		RegisterKind kind = all[i].type == T_PRED ? KIND_PREDICATE : wide ? KIND_WIDE : KIND_WORD;
		for (uint32_t n = 0; n < all[i].count; n++)
			s->kind[all[i].slot + (wide ? 2 * n : n)] = (uint8_t)kind;
	}
}

void registers_allocate(Kernel *k, Arena *a, const Registers *all, uint64_t count)
{
	if (k->slots > FEW_SLOTS + SLOTS_EACH * k->length)
		return;
	Allocator s = { .k = k, .a = a, .slots = k->slots };
	uint32_t *to = NEW(a, (uint64_t)k->slots + 1, uint32_t), each[KINDS] = { 0 };

	s.kind = NEW(a, (uint64_t)k->slots + 1, uint8_t);
	s.live = NEW(a, (uint64_t)k->slots + 1, Range);
	s.cross = NEW(a, (uint64_t)k->slots + 1, uint32_t);
	for (uint32_t i = 0; i < s.slots; i++)
		s.live[i].first = UINT32_MAX;
	kinds_find(&s, all, count);
	blocks_find(&s);
	code_visit(&s, occurrence);
	number_crossing(&s);
	if (!liveness_find(&s))
		return;
	ranges_extend(&s);
	linear_scan(&s, to, each);
	for (uint32_t i = 0; i < s.slots; i++) /* 64-bit ones first: they need adjacent slots */
		to[i] = s.kind[i] == KIND_WIDE   ? 2 * to[i]
		        : s.kind[i] == KIND_WORD ? 2 * each[KIND_WIDE] + to[i]
		                                 : 2 * each[KIND_WIDE] + each[KIND_WORD] + to[i];
	slots_replace(&s, to);
	k->slots = 2 * each[KIND_WIDE] + each[KIND_WORD] + each[KIND_PREDICATE];
}
