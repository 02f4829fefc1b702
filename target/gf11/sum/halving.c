/* SPDX-License-Identifier: MIT */
/* Summing by halving.  A processor sends half of its words of a row to another that sums them further, and so on
 * until one word is left, the one it owns; new weights go back the same way, doubling.  A weight costs two transfers,
 * whatever the number of processors.
 *
 * P a power of two: at a level of half h, processors p and p ^ h exchange: the one with the bit clear sums the lower
 * half, the other the upper.  What goes and what stays is chosen by select.
 *
 * Any other P (leftovers and buddies would double the cost): processor p counts slots from its own, slot
 * (p + i) mod P being its i-th.  At a level that halves s words to h = (s + 1) / 2, it sends its i-th word, i >= h, to
 * processor p + h, whose (i - h)-th that is.  No selects, but table look-up: each processor begins at another slot.
 *
 * A row takes four steps, and each step works on four rows, so that switch and DRAM are both busy:
 *
 *   step j   changes of row j + 1 come from DRAM
 *            row j is summed; its owners update
 *            new weights of row j - 2 are gathered (their owners have them by then)
 *            those of row j - 3 go to DRAM */
#include <assert.h>

#include "gf11_sum.h"

enum { AHEAD = 1, GATHER = 2, BACK = 3, STEPS_MORE = AHEAD + BACK };
enum { ROW_WORDS = 128, MOST_HALF_BLOCKS = 12 }; /* so long that a step covers the latency of the sums */
enum { BY_CONDITION = 6 };                       /* levels whose bit stays in a condition code, at most */

/* One step of a routine: registers by node, which is a word of some level. */
typedef struct Step {
	int64_t row; /* that is summed */
	bool sums, gathers;
	int64_t begin, gather, updated, gathered; /* cycles: it starts; weights go round, from when; ends of both */
	Moves in, out;
	Reg *sum, *goes, *weight; /* [nodes * blocks] */
	Reg *index;
	Cond *inside; /* [procs] */
} Step;

typedef struct Halving {
	Bp *b;
	const BpSum *s;
	Gen *g;
	bool select;
	uint32_t conditions;                    /* levels whose bit is in a condition code */
	uint32_t size[MOST_LEVELS + 1], levels; /* words left after so many levels */
	uint32_t first[MOST_LEVELS + 2];        /* nodes of a level */
	uint32_t *number;                       /* [procs] words of a row in the order they are taken */
	int64_t *ready;                         /* [nodes] when the sum is there */
	uint32_t base;                          /* row that DRAM pointers stand at */
	int64_t beat, combine, spread;          /* cycles for a word of each block; for one level up, and down */
	Index index;
	Cond bit[MOST_LEVELS + 1];
	Reg mask[MOST_LEVELS + 1];
	Step *step;
	Acts acts;
} Halving;

static void sizes_fill(Halving *h, uint32_t procs)
{
	h->size[0] = procs;
	for (h->levels = 0; h->size[h->levels] > 1; h->levels++) {
		h->size[h->levels + 1] = (h->size[h->levels] + 1) / 2;
		h->first[h->levels + 1] = h->first[h->levels] + h->size[h->levels];
	}
	h->first[h->levels + 1] = h->first[h->levels] + 1;
	h->select = (procs & (procs - 1)) == 0;
}

/* Depth first, so that few words are held at once: a half before the other. */
static void numbers_fill(Halving *h, uint32_t level, uint32_t i, uint32_t *next)
{
	if (!level) {
		h->number[i] = (*next)++;
		return;
	}
	numbers_fill(h, level - 1, i, next);
	if (i + h->size[level] < h->size[level - 1])
		numbers_fill(h, level - 1, i + h->size[level], next);
}

static Reg *node(const Halving *h, Reg *of, uint32_t level, uint32_t i)
{
	return of + (size_t)(h->first[level] + i) * h->s->rows.blocks;
}

/* ---- places ---- */

static Addr change_slot(const Halving *h, int64_t row, uint32_t block, uint32_t i)
{
	return (Addr){ (uint16_t)(SUM_BUFFER + row % 2), block * h->s->procs + i };
}

static Addr weight_slot(const Halving *h, int64_t row, uint32_t block, uint32_t i)
{
	return (Addr){ (uint16_t)(SUM_BUFFER + 2 + row % 2), block * h->s->procs + i };
}

/* What owners keep of the two rows that they are at. */
static Addr kept_at(const Halving *h, int64_t row)
{
	return (Addr){ SUM_AT, (uint32_t)(row % 2) * rows_kept(h->b) * h->s->rows.own };
}

/* ---- select ---- */

/* Wide levels hold their bit in a condition code; there are few of these, so narrow ones use a mask. */
static void bits_load(Halving *h)
{
	Reg zero = g_load(h->g, sum_word(WORD_ZERO));
	for (uint32_t k = 1; k <= h->levels; k++) {
		h->mask[k] = g_load(h->g, sum_word(WORD_BIT + h->levels - k));
		if (k <= h->conditions)
			h->bit[k] = g_compare(h->g, GOP_INT_LT, h->mask[k], zero);
	}
}

/* a where the processor's bit of the level is set, else b. */
static Reg choose(Halving *h, uint32_t level, Reg a, Reg b)
{
	if (level <= h->conditions)
		return g_select(h->g, h->bit[level], a, b);
	Reg differ = g_op(h->g, GOP_XOR, a, b);
	return g_op(h->g, GOP_XOR, b, g_op(h->g, GOP_AND, differ, h->mask[level]));
}

/* ---- acts ---- */

/* LIMIT, COMPARE, INDEX: the address of slot i in each processor, which wraps at the end of the block.
 * LEAF loads a change. Sums go up a level in three acts: CHOOSE which of two words goes and which stays; SEND it; ADD
 * it.
 * KEEP: a word that has no other half. OWN, UPDATE: what owners keep is fetched, and updated by the total.
 * START loads a new weight. Weights go down a level in two acts: SPREAD, one becomes two; ARRANGE, each gets its place.
 * PUT stores one. IN, OUT: DRAM moves beside them. */
enum {
	DO_LIMIT,
	DO_COMPARE,
	DO_INDEX,
	DO_LEAF,
	DO_CHOOSE,
	DO_SEND,
	DO_ADD,
	DO_KEEP,
	DO_OWN,
	DO_UPDATE,
	DO_START,
	DO_SPREAD,
	DO_ARRANGE,
	DO_PUT,
	DO_IN,
	DO_OUT
};

/* The part of an act that concerns block u of the row. */
static void act_block(Halving *h, Step *t, const Act *a, uint32_t u)
{
	Gen *g = h->g;
	uint32_t level = a->level, half = h->size[level], below = level ? level - 1 : 0;
	Reg *sum = node(h, t->sum, level, a->i) + u, *goes = node(h, t->goes, level, a->i) + u;
	Reg *lower = node(h, t->sum, below, a->i) + u, *weight = node(h, t->weight, level, a->i) + u;
	Reg *down = node(h, t->weight, below, a->i) + u, *other = down + (size_t)half * h->s->rows.blocks;
	Addr slot;
	switch (a->what) {
	case DO_LEAF:
		slot = change_slot(h, t->row, u, a->i);
		*sum = h->select ? g_load(g, slot) : g_lookup(g, slot, t->index[a->i]);
		break;
	case DO_CHOOSE: {
		Reg upper = node(h, t->sum, below, a->i + half)[u];
		*goes = h->select ? choose(h, level, *lower, upper) : upper;
		*sum = h->select ? choose(h, level, upper, *lower) : *lower;
		break;
	}
	case DO_SEND: *goes = g_xfer(g, h->s->up[level], *goes); break;
	case DO_ADD: *sum = g_fadd(g, *sum, *goes); break;
	case DO_KEEP: *sum = *lower; break;
	case DO_START: *weight = g_load(g, near_words(h->b, kept_at(h, t->row - GATHER), u).weight); break;
	case DO_SPREAD:
		*down = *weight;
		if (a->i + half < h->size[below])
			*other = g_xfer(g, h->s->down[level], *weight);
		break;
	case DO_ARRANGE: {
		Reg mine = *down, theirs = *other;
		*down = choose(h, level, theirs, mine);
		*other = choose(h, level, mine, theirs);
		break;
	}
	case DO_PUT:
		slot = weight_slot(h, t->row - GATHER, u, a->i);
		if (h->select)
			g_store(g, slot, *weight);
		else
			g_put(g, slot, t->index[a->i], *weight);
		break;
	}
}

static void act_do(Halving *h, Step *t, const Act *a)
{
	Gen *g = h->g;
	uint32_t row = (uint32_t)t->row - h->base;
	switch (a->what) {
	case DO_LIMIT: t->index[a->i] = g_const_bits(g, h->s->procs - a->i); break;
	case DO_COMPARE: t->inside[a->i] = g_compare(g, GOP_INT_LT, h->index.self, t->index[a->i]); break;
	case DO_INDEX:
		t->index[a->i] = a->i ? g_select(g, t->inside[a->i], h->index.self, h->index.wrapped) : h->index.self;
		break;
	case DO_OWN: own_fetch(g, h->b, row, kept_at(h, t->row)); break;
	case DO_UPDATE: own_update(g, h->b, row, kept_at(h, t->row), node(h, t->sum, a->level, 0)); break;
	case DO_IN: moves_advance(&t->in, a->i + 1, h->s->procs); break;
	case DO_OUT: moves_advance(&t->out, a->i + 1, h->s->procs); break;
	default:
		for (uint32_t u = 0; u < h->s->rows.blocks; u++)
			act_block(h, t, a, u);
	}
}

/* ---- planning ---- */

static void plan(Halving *h, const Step *t, int64_t at, int what, uint32_t level, uint32_t i)
{
	acts_add(&h->acts, at, (Act){ .what = (uint16_t)what, .step = (uint16_t)(t - h->step), .level = level, .i = i });
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

static void plan_indices(Halving *h, const Step *t)
{
	int64_t alu = h->b->m->alu_latency;
	for (uint32_t i = 0; i < h->s->procs && !h->select && (t->sums || t->gathers); i++) {
		int64_t at = t->begin + h->number[i] * h->beat;
		if (i) {
			plan(h, t, at - 3 * alu, DO_LIMIT, 0, i);
			plan(h, t, at - 2 * alu, DO_COMPARE, 0, i);
		}
		plan(h, t, at - alu, DO_INDEX, 0, i);
	}
}

/* Each word as soon as both it is made of are there. */
static void plan_sums(Halving *h, Step *t)
{
	const Machine *m = h->b->m;
	int64_t chosen = h->select ? m->alu_latency : 0;
	for (uint32_t i = 0; i < h->s->procs; i++) {
		int64_t at = t->begin + h->number[i] * h->beat;
		plan(h, t, at, DO_LEAF, 0, i);
		h->ready[i] = at + m->lookup_latency;
	}
	for (uint32_t level = 1; level <= h->levels; level++)
		for (uint32_t i = 0; i < h->size[level]; i++) {
			const int64_t *below = h->ready + h->first[level - 1];
			int64_t *ready = h->ready + h->first[level] + i;
			bool two = i + h->size[level] < h->size[level - 1];
			*ready = two ? later(below[i], below[i + h->size[level]]) : below[i];
			if (!two) {
				plan(h, t, *ready, DO_KEEP, level, i);
				continue;
			}
			plan(h, t, *ready, DO_CHOOSE, level, i);
			plan(h, t, *ready + chosen, DO_SEND, level, i);
			plan(h, t, *ready + chosen + m->switch_latency, DO_ADD, level, i);
			*ready += h->combine;
		}
	int64_t total = later(h->ready[h->first[h->levels]], t->gather + m->dram_latency);
	plan(h, t, t->gather, DO_OWN, 0, 0);
	plan(h, t, total, DO_UPDATE, h->levels, 0);
	t->updated = total + range_time(h->b) + h->s->rule->length + (h->s->frozen ? 4 : 1) * m->alu_latency;
}

/* Each word just in time to reach its slot, one after the other. */
static void plan_gather(Halving *h, Step *t)
{
	int64_t down = h->levels * h->spread;
	plan(h, t, t->gather, DO_START, h->levels, 0);
	for (uint32_t level = h->levels; level > 0; level--)
		for (uint32_t i = 0; i < h->size[level]; i++) {
			int64_t at = t->gather + h->number[i] * h->beat + down - level * h->spread;
			plan(h, t, at, DO_SPREAD, level, i);
			if (h->select)
				plan(h, t, at + h->b->m->switch_latency, DO_ARRANGE, level, i);
		}
	for (uint32_t i = 0; i < h->s->procs; i++)
		plan(h, t, t->gather + h->number[i] * h->beat + down, DO_PUT, 0, i);
	t->gathered = t->gather + h->s->procs * h->beat + down;
}

static Addr far_row(const Halving *h, uint16_t base, int64_t row)
{
	return (Addr){ base, (uint32_t)(row - h->base) * h->s->rows.words };
}

static void plan_moves(Halving *h, Step *t, int64_t out)
{
	const Bp *b = h->b;
	int64_t next = t->row + AHEAD, back = t->row - BACK;
	t->in = moves_new(h->g, b->m);
	t->out = moves_new(h->g, b->m);
	if (row_words(b, next))
		moves_fetch(&t->in, change_slot(h, next, 0, 0), far_row(h, SUM_CHANGES, next), row_words(b, next));
	if (t->sums)
		moves_zero(&t->in, b, far_row(h, SUM_CHANGES, t->row), row_words(b, t->row));
	if (row_words(b, back))
		moves_flush(&t->out, far_row(h, SUM_WEIGHTS, back), weight_slot(h, back, 0, 0), row_words(b, back));
	for (uint32_t i = 0; i < h->s->procs; i++) {
		plan(h, t, t->begin + i * h->beat, DO_IN, 0, i);
		plan(h, t, out + i * h->beat, DO_OUT, 0, i);
	}
}

/* What follows from steps before in the same routine: weights go round after their update, and into slots whose words
 * are in DRAM; these go there when all are in their slots. */
static void plan_step(Halving *h, uint32_t number, int64_t row)
{
	Arena *a = &h->b->cx->scratch;
	Step *t = &h->step[number];
	uint32_t regs = h->first[h->levels + 1] * h->s->rows.blocks;
	int64_t length = h->s->procs * h->beat;
	*t = (Step){ .row = row,
		         .sums = row_words(h->b, row),
		         .gathers = row_words(h->b, row - GATHER),
		         .begin = number * length,
		         .sum = NEW(a, regs, Reg),
		         .goes = NEW(a, regs, Reg),
		         .weight = NEW(a, regs, Reg),
		         .index = NEW(a, h->s->procs, Reg),
		         .inside = NEW(a, h->s->procs, Cond) };
	t->gather = number >= GATHER ? later(t->begin, t[-GATHER].updated) : t->begin;
	int64_t out = number ? later(t->begin, t[-1].gathered) : t->begin;
	if (number)
		t->gather = later(t->gather, t[-1].gather + length);
	plan_indices(h, t);
	if (t->gathers)
		plan_gather(h, t);
	if (t->sums)
		plan_sums(h, t);
	plan_moves(h, t, out);
}

/* ---- calls ---- */

typedef struct StepRange {
	int64_t first;
	uint32_t steps;
} StepRange;

static int64_t rows_end(const Bp *b) { return (int64_t)b->summing->rows.rows + BACK; }

/* Of switch or DRAM, for each word of a row. */
static uint32_t word_cycles(const Bp *b)
{
	uint32_t moves = (b->changes_start ? 2 : 3) * (uint32_t)b->m->dram_interval;
	uint32_t sums = 2 * (uint32_t)b->m->switch_interval;
	return moves > sums ? moves : sums;
}

static uint32_t range_base(const StepRange *t) { return t->first > BACK ? (uint32_t)(t->first - BACK) : 0; }

static Halving *halving_open(Bp *b, const StepRange *t)
{
	const Machine *m = b->m;
	Arena *a = &b->cx->scratch;
	Halving *h = NEW(a, 1, Halving);
	*h = (Halving){ .b = b,
		            .s = b->summing,
		            .g = gen_record(b->cx, m, "halving update"),
		            .base = range_base(t),
		            .step = NEW(a, t->steps, Step),
		            .number = NEW(a, b->o.procs, uint32_t),
		            .acts = { .arena = a } };
	sizes_fill(h, b->o.procs);
	uint32_t next = 0;
	numbers_fill(h, h->levels, 0, &next);
	h->ready = NEW(a, h->first[h->levels + 1], int64_t);
	h->beat = word_cycles(b) * h->s->rows.blocks;
	h->conditions = m->conditions > BY_CONDITION + 2 ? BY_CONDITION
	                : m->conditions > 2              ? (uint32_t)m->conditions - 2
	                                                 : 0;
	h->combine = m->switch_latency + m->alu_latency * (h->select ? 2 : 1);
	h->spread = m->switch_latency + (h->select ? m->alu_latency : 0);
	return h;
}

static Code *range_record(Bp *b, const void *what)
{
	const StepRange *t = what;
	Halving *h = halving_open(b, t);
	for (uint32_t i = 0; i < t->steps; i++)
		plan_step(h, i, t->first + i);
	acts_sort(&h->acts);
	if (h->select)
		bits_load(h);
	else
		h->index = index_load(h->g);
	for (uint32_t i = 0; i < 4 && !h->select; i++)
		g_index_limit(h->g, (uint16_t)(SUM_BUFFER + i), h->s->rows.blocks * b->o.procs);
	for (uint32_t i = 0; i < h->acts.acts; i++) {
		const Act *a = &h->acts.act[i];
		act_do(h, &h->step[a->step], a);
	}
	return sum_code(h->g, true);
}

/* Ranges of steps at the same distance from both ends, as far as it matters, share a routine. */
static uint64_t range_key(const Bp *b, const StepRange *t)
{
	uint64_t before = (uint64_t)t->first + AHEAD, after = (uint64_t)(b->summing->rows.rows - t->first);
	uint64_t far = STEPS_MORE + 2 + t->steps;
	before = before < far ? before : far + before % 2;
	after = after < far ? after : far;
	assert(t->steps <= INT32_MAX);
	return (uint64_t)t->steps << 32 | before << 16 | after;
}

static void range_call(Bp *b, const StepRange *t)
{
	const BpSum *s = b->summing;
	uint32_t base = range_base(t), slots = s->rows.blocks * b->o.procs,
			 buffer = b->at.scratch + 2 * rows_kept(b) * s->rows.own;
	SumCall call = { .routine = rows_routine(b, range_key(b, t), range_record, t),
		             .base = { [SUM_AT] = b->at.scratch,
		                       [SUM_WEIGHTS] = b->at.weights + base * s->rows.words,
		                       [SUM_CHANGES] = b->at.changes + base * s->rows.words,
		                       [SUM_FLAGS] = s->flags + base * range_words(b, s->rows.blocks),
		                       [SUM_STATES] = b->at.states + base * s->rows.own } };
	for (uint32_t i = 0; i < 4; i++)
		call.base[SUM_BUFFER + i] = buffer + i * slots;
	sum_call(b, &call);
}

/* Lines of a step, with what a schedule loses: per-processor addresses keep the port busy all the time. Rows of few
 * processors are short, and latency separates their steps. */
static uint32_t step_lines(const Bp *b, uint32_t blocks)
{
	uint32_t lines = word_cycles(b) * blocks * b->o.procs;
	return lines + lines / (b->o.procs < 8 ? 1 : b->o.procs < 16 ? 3 : 8);
}

/* 0: a step is too long for a block of microcode. */
static uint32_t blocks_for(const Bp *b)
{
	assert(b->o.procs > 0);
	uint32_t blocks = (ROW_WORDS + b->o.procs - 1) / b->o.procs;
	blocks = blocks < MOST_HALF_BLOCKS ? blocks : MOST_HALF_BLOCKS;
	while (blocks && step_lines(b, blocks) > sum_lines(b))
		blocks--;
	return blocks;
}

static uint32_t sram_words(const Bp *b, const Rows *r)
{
	return 2 * rows_kept(b) * r->own + 4 * r->blocks * b->o.procs;
}

bool halving_fits(const Bp *b)
{
	Rows r;
	if (b->m->fixed_address && (b->o.procs & (b->o.procs - 1)))
		return false; /* only the pairs of a power of two do without indices */
	return rows_make(b, blocks_for(b), 0, &r) && sram_words(b, &r) <= rows_room(b);
}

/* Rows summed in a call: as many as its lines allow, an even number, so that buffers are the same in the next. */
static uint32_t steps_per_call(const Bp *b, const Rows *r)
{
	uint32_t steps = sum_lines(b) / step_lines(b, r->blocks);
	if (b->o.update && b->o.update / r->words < steps)
		steps = b->o.update / r->words;
	return steps < 2 ? 1 : steps / 2 * 2;
}

/* Does every call with so many steps fit into a block?  Estimates are good but for few rows, so it is tried. */
static bool calls_fit(Bp *b, uint32_t steps)
{
	uint64_t key[COUNT(b->summing->known)];
	uint32_t keys = 0;
	for (int64_t first = -AHEAD, end = rows_end(b); first < end; first += steps) {
		StepRange t = { first, (uint32_t)(end - first < steps ? end - first : steps) };
		uint32_t k = 0;
		while (k < keys && key[k] != range_key(b, &t))
			k++;
		if (k < keys || keys == COUNT(key))
			continue;
		key[keys++] = range_key(b, &t);
		if (bp_schedule(b, range_record(b, &t))->lines > b->m->block)
			return false;
	}
	return true;
}

void halving_compile(Bp *b)
{
	BpSum *s = b->summing;
	Halving h = { 0 };
	sizes_fill(&h, b->o.procs);
	rows_make(b, blocks_for(b), 0, &s->rows);
	s->flags = range_room(b, s->rows.rows * range_words(b, s->rows.blocks));
	for (uint32_t k = 1; k <= h.levels; k++) {
		s->up[k] = h.select ? sum_exchange(b, h.size[k]) : sum_shift(b, b->o.procs, h.size[k]);
		s->down[k] = h.select ? s->up[k] : sum_shift(b, b->o.procs, b->o.procs - h.size[k]);
	}
	uint32_t steps = steps_per_call(b, &s->rows);
	while (steps > 1 && !calls_fit(b, steps))
		steps = steps > 2 ? steps - 2 : 1;
	for (int64_t first = -AHEAD, end = rows_end(b); first < end; first += steps) {
		StepRange t = { first, (uint32_t)(end - first < steps ? end - first : steps) };
		range_call(b, &t);
	}
	rows_borrow(b, sram_words(b, &s->rows));
}
