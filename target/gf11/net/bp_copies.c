/* SPDX-License-Identifier: MIT */
/* Copies of recurrent networks (section 10.5).  In: the network's copies, a group to a context group each.  Out: a list
 * of pairs of words, (from, to), and microcode made from it.
 *
 * A context holds its source's output of the case before, which is still in the same words of SRAM: copies come first,
 * before the inputs of that case are overwritten. A flag of each case selects: 1.0, or 0.0 at the start of a sequence,
 * where a context has its start value.
 *
 * Must hold: copies act as if simultaneous. A context may be copied further (a longer delay), so a word is written
 * after all pairs that read it; where copies form a cycle, one word is saved first. */
#include "gf11_net.h"

enum { COPIES_A_CALL = 256 };

typedef struct Lister {
	Bp *b;
	uint32_t *readers; /* [groups] copies from it that are still to come */
	int32_t *into;     /* [groups] the copy into it, -1: none, or it is in the list */
} Lister;

static void pair_add(Bp *b, uint32_t from, uint32_t to, float start)
{
	b->copy[b->copies++] = (BpCopy){ from, to, start };
}

static uint32_t word_of(const Bp *b, int32_t group, uint32_t unit)
{
	return b->at.case_out + b->net->group[group].first + unit;
}

static void group_add(Lister *l, int32_t copy)
{
	const Copy *c = &l->b->net->copy[copy];
	const Group *to = &l->b->net->group[c->to_group];
	for (uint32_t i = 0; i < to->size; i++)
		pair_add(l->b, word_of(l->b, c->from_group, i), word_of(l->b, c->to_group, i), to->start);
	l->into[c->to_group] = -1;
	l->readers[c->from_group]--;
}

/* The chain of contexts that depends on this one, if it has no readers: it, then perhaps its source, and so on. */
static void chain_add(Lister *l, int32_t group)
{
	while (l->into[group] >= 0 && l->readers[group] == 0) {
		int32_t copy = l->into[group];
		group_add(l, copy);
		group = l->b->net->copy[copy].from_group;
	}
}

/* Unit by unit: the first word is saved, the others move up, and the last takes the saved one. */
static void ring_add(Lister *l, int32_t first)
{
	Bp *b = l->b;
	const Net *net = b->net;
	int32_t group = first;
	for (uint32_t i = 0; i < net->group[first].size; i++) {
		pair_add(b, word_of(b, first, i), b->at.case_aside, 0);
		do {
			int32_t from = net->copy[l->into[group]].from_group;
			pair_add(b, from == first ? b->at.case_aside : word_of(b, from, i), word_of(b, group, i),
			         net->group[group].start);
			group = from;
		} while (group != first);
	}
	do {
		int32_t from = net->copy[l->into[group]].from_group;
		l->into[group] = -1;
		group = from;
	} while (group != first);
}

/* Copies that are not in chains form cycles: every context has one copy. */
void copies_list(Bp *b)
{
	const Net *net = b->net;
	Arena *scratch = &b->cx->scratch;
	Lister l = { b, NEW(scratch, net->groups, uint32_t), NEW(scratch, net->groups, int32_t) };
	uint64_t most = 0;
	for (uint32_t i = 0; i < net->groups; i++)
		l.into[i] = -1;
	for (uint32_t i = 0; i < net->copies; i++) {
		l.into[net->copy[i].to_group] = (int32_t)i;
		l.readers[net->copy[i].from_group]++;
		most += 2 * (uint64_t)net->group[net->copy[i].to_group].size;
	}
	b->copy = NEW(&b->cx->keep, most, BpCopy);
	b->copies = 0;
	for (uint32_t i = 0; i < net->groups; i++)
		chain_add(&l, (int32_t)i);
	for (uint32_t i = 0; i < net->groups; i++)
		if (l.into[i] >= 0)
			ring_add(&l, (int32_t)i);
}

/* ---- microcode ---- */

uint32_t copies_a_call(const Bp *b, uint32_t first)
{
	return b->copies - first < COPIES_A_CALL ? b->copies - first : COPIES_A_CALL;
}

static Addr word(const Bp *b, uint32_t f, uint32_t i)
{
	return (Addr){ BP_CASE, f * b->at.stride + i * b->at.case_step };
}

/* The report multiplies by the flag; to select by it gives the same, start values other than zero as well, and lets no
 * infinity of one sequence into the next. */
static void copy_case(const Bp *b, Constants *c, uint32_t first, uint32_t i)
{
	Gen *g = c->g;
	Reg flag = g_load(g, word(b, b->at.case_flag, i)), zero = constant(c, K_ZERO), start = zero;
	Cond begins = g_compare(g, GOP_FLT_EQ, flag, zero);
	for (uint32_t k = first; k < first + copies_a_call(b, first); k++) {
		const BpCopy *p = &b->copy[k];
		if (k == first || p->start != p[-1].start)
			start = p->start != 0 ? g_const(g, p->start) : zero;
		Reg before = g_load(g, word(b, p->from, i));
		g_store(g, word(b, p->to, i), g_select(g, begins, start, before));
	}
}

/* Pairs from `first` on; the first call fetches the flags as well, the last words of the cases' data. */
Code *record_copies(const Bp *b, uint32_t first, uint32_t cases)
{
	Constants c = { .g = gen_record(b->cx, b->m, "copies") };
	for (uint32_t i = 0; i < cases && first == 0; i++)
		g_fetch(c.g, word(b, b->at.case_flag, i), (Addr){ BP_FAR_DATA, (layout_data(b) - 1) * b->at.data_step + i });
	for (uint32_t i = 0; i < cases; i++)
		copy_case(b, &c, first, i);
	return gen_end(c.g);
}
