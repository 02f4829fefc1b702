/* SPDX-License-Identifier: MIT */
/* Summing in a tree (section 4.4.2).  On step i processor p sends its sum to processor p + 2^i and adds what it
 * receives; after log2 P steps each has the total.  Where P is no power of two the leftover processors send theirs to
 * their buddies first, and receive the total at the end; processors that have no part in that mask their operations
 * by condition codes.
 *
 * As in 1989: weights of a call side by side (loops interchanged, section 6.2.1); what comes from DRAM before and
 * goes back after is not overlapped with the sums, or is (TREE_OVERLAPPED, section 6.2.2). Best: rounds of about a
 * dozen weights, sums and moves overlapped. */
#include "gf11_sum.h"

enum { CHUNK_1989 = 64, GROUP_1989 = 16 };

/* Before: what a buddy gets from its leftover is added.  After: leftovers take the total. */
static void tree_step(Chunk *c, uint32_t step, uint32_t i)
{
	const BpSum *s = c->s;
	Reg *sum = &c->sum[i];
	uint32_t level = s->leftovers ? step - 1 : step;
	if (s->leftovers && step == 0)
		g_move_masked(c->g, *sum, c->buddy, g_fadd(c->g, *sum, g_xfer(c->g, s->to_buddy, *sum)));
	else if (level < s->levels)
		*sum = g_fadd(c->g, *sum, g_xfer(c->g, s->up[level], *sum));
	else
		g_move_masked(c->g, *sum, c->leftover, g_xfer(c->g, s->from_buddy, *sum));
}

static void roles_load(Chunk *c)
{
	if (!c->s->leftovers)
		return;
	Reg zero = g_load(c->g, sum_word(WORD_ZERO));
	c->buddy = g_compare(c->g, GOP_INT_LT, g_load(c->g, sum_word(WORD_BUDDY)), zero);
	c->leftover = g_compare(c->g, GOP_INT_LT, g_load(c->g, sum_word(WORD_LEFTOVER)), zero);
}

/* ---- 1989 ---- */

static Code *record_fetch(const Bp *b, uint32_t n)
{
	Chunk c = chunk_open(b, "update.fetch", n);
	chunk_moves_all(&c, MOVE_CHANGE_IN, MOVE_STATE_IN);
	chunk_moves_all(&c, MOVE_FACTOR_IN, MOVE_FACTOR_IN);
	return sum_code(c.g, false);
}

/* All totals are ready only when the switch is done, and the range check would add to that: with the check, weights are
 * summed in groups, so that totals of one group are checked during the transfers of the next. */
static Code *record_sum(const Bp *b, uint32_t n)
{
	Chunk c = chunk_open(b, "update.sum", n);
	uint32_t steps = sum_steps(SUM_TREE, b->o.procs);
	roles_load(&c);
	chunk_rates(&c);
	c.range.apart = true;
	for (uint32_t i = 0; i < n; i++)
		c.sum[i] = chunk_change(&c, i);
	for (uint32_t first = 0, end; first < n; first = end) {
		end = c.range.on && n - first >= 2 * GROUP_1989 ? first + GROUP_1989 : n;
		for (uint32_t step = 0; step < steps; step++)
			for (uint32_t i = first; i < end; i++)
				tree_step(&c, step, i);
		for (uint32_t i = first; i < end; i++)
			chunk_update(&c, i);
	}
	range_close(&c.range);
	return sum_code(c.g, c.range.on);
}

static Code *record_flush(const Bp *b, uint32_t n)
{
	Chunk c = chunk_open(b, "update.flush", n);
	chunk_moves_all(&c, MOVE_ZERO, MOVE_WEIGHT_OUT);
	chunk_range(&c);
	range_join(&c.range);
	return sum_code(c.g, false);
}

static uint32_t make_apart(Bp *b, uint32_t n, Routine ***routine)
{
	Code *code[] = { record_fetch(b, n), record_sum(b, n), record_flush(b, n) };
	Routine *part[COUNT(code)];
	for (size_t i = 0; i < COUNT(code); i++)
		part[i] = bp_schedule(b, code[i]);
	*routine = NEW(&b->cx->scratch, 1, Routine *);
	**routine = routine_join(b->cx, b->m, "tree update", part, COUNT(part));
	return 1;
}

/* ---- best ---- */

static uint32_t make_together(Bp *b, uint32_t n, Routine ***routine)
{
	Chunk c = chunk_open(b, "tree update", n);
	roles_load(&c);
	chunk_together(&c, tree_step, sum_steps(SUM_TREE, b->o.procs), b->m->switch_latency + b->m->alu_latency);
	*routine = NEW(&b->cx->scratch, 1, Routine *);
	**routine = bp_schedule(b, sum_code(c.g, true));
	return 1;
}

void tree_compile(Bp *b)
{
	BpSum *s = b->summing;
	for (uint32_t level = 0; level < s->levels; level++)
		s->up[level] = sum_shift(b, 1u << s->levels, 1u << level);
	uint32_t steps = sum_steps(SUM_TREE, b->o.procs), sums = steps * (uint32_t)b->m->switch_interval;
	uint32_t moves = chunk_moves(b) * (uint32_t)b->m->dram_interval, alu = steps + s->rule->alu + range_alu(b);
	if (b->o.compiler == COMPILER_1989 && b->o.tree == TREE_APART)
		chunks_compile(b,
		               chunk_size(b, (sums > alu ? sums : alu) + moves, chunk_words(b), b->o.update ? 0 : CHUNK_1989),
		               make_apart);
	else
		chunks_compile(b, chunk_size(b, chunk_lines(b, steps), chunk_words(b), 0), make_together);
}
