/* SPDX-License-Identifier: MIT */
/* Updates by rows: each processor owns a word in every block of a row, and it alone updates that. Shared by pipelined
 * ring and halving: ownership, per-processor addresses, DRAM moves beside other operations.
 *
 * DRAM addresses are the same in all processors, so owners keep what is theirs side by side: where otherwise all
 * rule state would stand, first the states they own, one after the other, row after row, then their weights. These
 * copies avoid fetching all weights: 1 / P of the moves. Factors that they own stand likewise at the
 * beginning of that array. */
#include "gf11_sum.h"

/* ---- geometry ---- */

bool rows_make(const Bp *b, uint32_t blocks, uint32_t shift, Rows *r)
{
	uint32_t banks = (uint32_t)b->m->dram_banks, slots = blocks * b->o.procs;
	*r = (Rows){ .blocks = blocks, .words = slots / banks * banks, .own = round_to(blocks, banks), .shift = shift };
	if (b->o.procs < 3 || !r->words || !b->at.words)
		return false;
	r->rows = (b->at.words + r->words - 1) / r->words;
	uint64_t states = (uint64_t)b->rule->states;
	return (states + 1) * r->rows * r->own <= states * b->at.words;
}

uint32_t row_words(const Bp *b, int64_t row)
{
	const Rows *r = &b->summing->rows;
	if (row < 0 || row >= r->rows)
		return 0;
	uint32_t rest = b->at.words - (uint32_t)row * r->words;
	return rest < r->words ? rest : r->words;
}

/* Scratch, and the cases behind it: they come from DRAM again for the next pass. */
uint32_t rows_room(const Bp *b)
{
	uint32_t all = b->at.spill > b->at.scratch ? b->at.spill - b->at.scratch : 0;
	return all > b->at.scratch_words ? all : b->at.scratch_words;
}

Code *record_true_units(const Bp *b)
{
	const Layout *at = &b->at;
	Gen *g = gen_record(b->cx, b->m, "true units");
	Reg one = g_const(g, 1);
	for (uint32_t t = 0; t == 0 || t < b->ticks.each; t++)
		for (uint32_t i = 0; i < at->group; i++)
			g_store(g, (Addr){ 0, at->cases + tick_at(b, t) + at->case_out * at->stride + i * at->case_step }, one);
	return sum_code(g, false);
}

/* Buffers may overwrite the cases, which every pass fetches again; only outputs of true units must be restored. */
void rows_borrow(Bp *b, uint32_t words)
{
	const Layout *at = &b->at;
	if (words <= at->scratch_words || !at->group)
		return;
	b->summing->restore = sum_load(b, record_true_units(b));
	b->summing->borrows = true;
}

uint32_t rows_routine(Bp *b, uint64_t key, RecordFn *record, const void *what)
{
	BpSum *s = b->summing;
	for (uint32_t i = 0; i < s->knowns; i++)
		if (s->known[i].key == key)
			return s->known[i].routine;
	uint32_t routine = sum_load(b, record(b, what));
	if (s->knowns < COUNT(s->known))
		s->known[s->knowns++] = (Known){ key, routine };
	return routine;
}

uint32_t rows_kept(const Bp *b) { return 1 + (uint32_t)b->rule->states + (b->factor != NULL) + range_checked(b); }

/* ---- what owners keep ---- */

/* In DRAM, `row` rows from where SUM_STATES stands. */
static Kept own_words(const Bp *b, uint32_t row, uint32_t block)
{
	const Rows *r = &b->summing->rows;
	uint32_t at = row * r->own + block, array = r->rows * r->own, states = (uint32_t)b->rule->states;
	Kept k = { .weight = { SUM_STATES, states * array + at }, .factor = sum_factor(b, at) };
	for (uint32_t s = 0; s < states; s++)
		k.state[s] = (Addr){ SUM_STATES, s * array + at };
	return k;
}

Kept near_words(const Bp *b, Addr at, uint32_t block)
{
	uint32_t own = b->summing->rows.own, states = (uint32_t)b->rule->states;
	Kept k = { .weight = { at.base, at.off + block }, .factor = { at.base, at.off + (1 + states) * own + block } };
	for (uint32_t s = 0; s < states; s++)
		k.state[s] = (Addr){ at.base, at.off + (1 + s) * own + block };
	return k;
}

void own_fetch(Gen *g, const Bp *b, uint32_t row, Addr at)
{
	uint32_t blocks = b->summing->rows.blocks;
	for (uint32_t u = 0; u < blocks; u++)
		g_fetch(g, near_words(b, at, u).weight, own_words(b, row, u).weight);
	for (int s = 0; s < b->rule->states; s++)
		for (uint32_t u = 0; u < blocks; u++)
			g_fetch(g, near_words(b, at, u).state[s], own_words(b, row, u).state[s]);
	for (uint32_t u = 0; u < blocks && b->factor; u++)
		g_fetch(g, near_words(b, at, u).factor, own_words(b, row, u).factor);
}

void own_update(Gen *g, const Bp *b, uint32_t row, Addr at, const Reg *total)
{
	const Rows *r = &b->summing->rows;
	Rates rates = sum_rates(g, b);
	Addr bits = { at.base, at.off + (rows_kept(b) - 1) * r->own };
	Range range = range_open(g, b, r->blocks, bits, (Addr){ SUM_FLAGS, row * range_words(b, r->blocks) });
	for (uint32_t u = 0; u < r->blocks; u++) {
		Kept near = near_words(b, at, u), far = own_words(b, row, u);
		weight_update(g, b, &rates, &near, range_check(&range, total[u], u));
		for (int s = 0; s < b->rule->states; s++)
			g_flush(g, far.state[s], near.state[s]);
		g_flush(g, far.weight, near.weight);
	}
	range_close(&range);
}

/* ---- per-processor addresses ---- */

Index index_load(Gen *g)
{
	Reg self = g_load(g, sum_word(WORD_SELF));
	return (Index){ self, g_load(g, sum_word(WORD_WRAPPED)) };
}

Reg index_after(Gen *g, const BpSum *s, Index x, uint32_t i)
{
	if (!i)
		return x.self;
	Cond inside = g_compare(g, GOP_INT_LT, x.self, g_const_bits(g, s->procs - i));
	return g_select(g, inside, x.self, x.wrapped);
}

/* ---- DRAM moves ---- */

Moves moves_new(Gen *g, const Machine *m) { return (Moves){ .g = g, .unit = (uint32_t)m->dram_banks }; }

static void move_add(Moves *m, Move move)
{
	if (move.words)
		m->move[m->moves++] = move;
}

void moves_fetch(Moves *m, Addr near, Addr far, uint32_t words)
{
	move_add(m, (Move){ .near = near, .far = far, .words = words, .fetch = true });
}

void moves_flush(Moves *m, Addr far, Addr near, uint32_t words)
{
	move_add(m, (Move){ .near = near, .far = far, .words = words });
}

void moves_zero(Moves *m, const Bp *b, Addr far, uint32_t words)
{
	move_add(m, (Move){ .far = far, .words = b->changes_start ? 0 : words, .zero = true });
}

/* Whole cycles through the banks: consecutive moves in one bank would wait for each other. */
static uint32_t move_until(const Moves *m, const Move *v, uint32_t part, uint32_t whole)
{
	return part >= whole ? v->words : (uint32_t)((uint64_t)v->words * part / whole) / m->unit * m->unit;
}

void moves_skip(Moves *m, uint32_t part, uint32_t whole)
{
	for (uint32_t i = 0; i < m->moves; i++)
		m->move[i].done = move_until(m, &m->move[i], part, whole);
}

static void move_word(Gen *g, const Move *v, uint32_t word)
{
	Addr near = v->zero ? sum_word(WORD_ZERO) : (Addr){ v->near.base, v->near.off + word };
	Addr far = { v->far.base, v->far.off + word };
	if (v->fetch)
		g_fetch(g, near, far);
	else
		g_flush(g, far, near);
}

void moves_advance(Moves *m, uint32_t part, uint32_t whole)
{
	for (uint32_t i = 0; i < m->moves; i++) {
		Move *v = &m->move[i];
		for (uint32_t until = move_until(m, v, part, whole); v->done < until; v->done++)
			move_word(m->g, v, v->done);
	}
}
