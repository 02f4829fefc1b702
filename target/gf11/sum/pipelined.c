/* SPDX-License-Identifier: MIT */
/* Summing in a pipelined ring (section 10.2).  Each processor starts the sum of a word of its own and sends it to the
 * right; what comes from the left is a sum that lacks its own change of that word, and it adds it and sends it on.
 * After P - 1 steps it has a total, of slot p + 1, which it owns.  New weights then go round in another P - 1 steps.
 * A weight costs two transfers for any number of processors, and a single ring suffices; but each processor
 * accesses another slot: an address is computed for each step, and each word is an indexed load.
 *
 * A step of one word takes the latency of switch and adder, so blocks of a row go side by side.  Rows:
 *
 *   sum row k     new weights of row k - 1 go to DRAM from one buffer; changes are in the other
 *   gather row k  into the buffer where its changes were; changes of row k + 1 come from DRAM into the first
 *
 * Where a block of microcode does not hold all steps they are cut into parts; words on their way wait in SRAM. */
#include "gf11_sum.h"

enum { SUMMING, GATHERING, FLUSHING, FETCHING };
enum { HERE = SUM_BUFFER, THERE = SUM_BUFFER + 1 }; /* buffer of the row; the other */

typedef struct Leg {
	int what;
	uint32_t first, end, steps; /* of the steps */
	uint32_t words;             /* moved between DRAM and the other buffer */
} Leg;

/* ---- scratch: words on their way, then what owners keep ---- */

static Addr in_flight(uint32_t block) { return (Addr){ SUM_AT, block }; }

static Addr kept(const BpSum *s) { return (Addr){ SUM_AT, s->rows.own }; }

static uint32_t scratch_words(const Bp *b, const Rows *r) { return (1 + rows_kept(b)) * r->own; }

static Addr slot(const BpSum *s, uint32_t block, uint32_t i) { return (Addr){ HERE, block * s->procs + i }; }

/* ---- legs ---- */

static void words_keep(Gen *g, const BpSum *s, const Reg *word)
{
	for (uint32_t u = 0; u < s->rows.blocks; u++)
		g_store(g, in_flight(u), word[u]);
}

/* Changes of the slot i after the own one; on step k that is slot P - 1 - k. */
static void record_sums(Gen *g, const Bp *b, const Leg *l, Index x, Moves *moves)
{
	const BpSum *s = b->summing;
	Reg word[MOST_BLOCKS];
	for (uint32_t u = 0; u < s->rows.blocks; u++)
		word[u] = l->first ? g_load(g, in_flight(u)) : g_lookup(g, slot(s, u, 0), x.self);
	if (l->end == l->steps)
		own_fetch(g, b, 0, kept(s));
	for (uint32_t k = l->first; k < l->end; k++) {
		uint32_t i = s->procs - 1 - k;
		Reg index = index_after(g, s, x, i);
		for (uint32_t u = 0; u < s->rows.blocks; u++) {
			Reg sum = g_xfer(g, s->ring, word[u]);
			word[u] = g_fadd(g, sum, g_lookup(g, slot(s, u, i), index));
		}
		moves_advance(moves, k + 1, l->steps);
	}
	if (l->end == l->steps)
		own_update(g, b, 0, kept(s), word);
	else
		words_keep(g, s, word);
}

static void put_all(Gen *g, const BpSum *s, Index x, uint32_t i, const Reg *word)
{
	Reg index = index_after(g, s, x, i);
	for (uint32_t u = 0; u < s->rows.blocks; u++)
		g_put(g, slot(s, u, i), index, word[u]);
}

static void record_gather(Gen *g, const Bp *b, const Leg *l, Index x, Moves *moves)
{
	const BpSum *s = b->summing;
	Reg word[MOST_BLOCKS];
	for (uint32_t u = 0; u < s->rows.blocks; u++)
		word[u] = g_load(g, l->first ? in_flight(u) : near_words(b, kept(s), u).weight);
	if (!l->first)
		put_all(g, s, x, 1, word);
	for (uint32_t k = l->first; k < l->end; k++) {
		for (uint32_t u = 0; u < s->rows.blocks; u++)
			word[u] = g_xfer(g, s->ring, word[u]);
		put_all(g, s, x, k ? s->procs - k : 0, word);
		moves_advance(moves, k + 1, l->steps);
	}
	if (l->end < l->steps)
		words_keep(g, s, word);
}

static Code *leg_record(Bp *b, const void *what)
{
	static const char *const names[] = { "pipelined sums", "pipelined gather", "pipelined flush", "pipelined fetch" };
	const Leg *l = what;
	const BpSum *s = b->summing;
	Gen *g = gen_record(b->cx, b->m, names[l->what]);
	Moves moves = moves_new(g, b->m);
	Addr buffer = { THERE, 0 }, weights = { SUM_WEIGHTS, 0 }, changes = { SUM_CHANGES, 0 };
	if (l->what == GATHERING || l->what == FETCHING) {
		moves_fetch(&moves, buffer, changes, l->words);
	} else {
		moves_flush(&moves, weights, buffer, l->words);
		moves_zero(&moves, b, changes, l->words);
	}
	moves_skip(&moves, l->first, l->steps);
	g_index_limit(g, HERE, s->rows.blocks * b->o.procs);
	if (l->what == SUMMING)
		record_sums(g, b, l, index_load(g), &moves);
	else if (l->what == GATHERING)
		record_gather(g, b, l, index_load(g), &moves);
	moves_advance(&moves, l->end, l->steps);
	return sum_code(g, false);
}

/* ---- calls ---- */

/* Lines of one step, of `blocks` words: switch, DRAM, or the latency of the chain. */
static uint32_t step_lines(const Bp *b, int what, uint32_t blocks)
{
	const Machine *m = b->m;
	uint32_t moves = what == SUMMING && !b->changes_start ? 2 : 1;
	uint32_t dram = moves * blocks * (uint32_t)m->dram_interval, sends = blocks * (uint32_t)m->switch_interval;
	uint32_t chain = (uint32_t)(m->switch_latency + (what == SUMMING ? m->alu_latency : 0));
	uint32_t most = dram > sends ? dram : sends;
	return most > chain ? most : chain;
}

static uint32_t parts_of(const Bp *b, int what, uint32_t blocks, uint32_t steps)
{
	uint64_t lines = (uint64_t)steps * step_lines(b, what, blocks), room = sum_lines(b);
	uint64_t parts = (lines + room - 1) / room;
	return (uint32_t)(parts < steps ? parts : steps);
}

static void leg_call(Bp *b, int what, uint32_t row, uint32_t moved, uint32_t words)
{
	const BpSum *s = b->summing;
	bool travels = what == SUMMING || what == GATHERING;
	uint32_t steps = travels ? b->o.procs - 1 : (words ? words : 1);
	uint32_t parts = travels ? parts_of(b, what, s->rows.blocks, steps) : parts_of(b, SUMMING, 1, steps);
	uint32_t slots = s->rows.blocks * b->o.procs, buffer = b->at.scratch + scratch_words(b, &s->rows);
	for (uint32_t i = 0; i < parts; i++) {
		Leg l = { what, steps * i / parts, steps * (i + 1) / parts, steps, words };
		uint64_t key = ((uint64_t)what << 56 | (uint64_t)i << 40) + words;
		SumCall call = { .routine = rows_routine(b, key, leg_record, &l),
			             .base = { [SUM_AT] = b->at.scratch,
			                       [SUM_WEIGHTS] = b->at.weights + moved * s->rows.words,
			                       [SUM_CHANGES] = b->at.changes + moved * s->rows.words,
			                       [SUM_STATES] = b->at.states + row * s->rows.own,
			                       [SUM_FLAGS] = s->flags + row * range_words(b, s->rows.blocks),
			                       [HERE] = buffer + row % 2 * slots,
			                       [THERE] = buffer + (row + 1) % 2 * slots } };
		sum_call(b, &call);
	}
}

/* Blocks in a row: few rows have little between, many blocks take long to fetch before and to flush after. */
static uint32_t blocks_for(const Bp *b, Rows *best)
{
	uint64_t least = UINT64_MAX;
	for (uint32_t blocks = 1; blocks <= MOST_BLOCKS; blocks++) {
		Rows r;
		bool fits =
			rows_make(b, blocks, b->o.procs - 1, &r) && scratch_words(b, &r) + 2 * blocks * b->o.procs <= rows_room(b);
		if (!fits || (b->o.update && b->o.update < r.words && blocks > 1))
			continue;
		uint32_t steps = b->o.procs - 1,
				 calls = parts_of(b, SUMMING, blocks, steps) + parts_of(b, GATHERING, blocks, steps);
		uint64_t row = (uint64_t)steps * (step_lines(b, SUMMING, blocks) + step_lines(b, GATHERING, blocks)) +
		               (uint64_t)calls * (uint64_t)b->m->host_call;
		uint64_t all = row * r.rows + 2 * (uint64_t)r.words * (uint64_t)b->m->dram_interval;
		if (all >= least)
			continue;
		least = all;
		*best = r;
	}
	return least < UINT64_MAX ? best->blocks : 0;
}

bool pipelined_fits(const Bp *b)
{
	Rows r;
	return !b->m->fixed_address && blocks_for(b, &r) > 0;
}

void pipelined_compile(Bp *b)
{
	BpSum *s = b->summing;
	blocks_for(b, &s->rows);
	s->ring = sum_shift(b, b->o.procs, 1);
	s->flags = range_room(b, s->rows.rows * range_words(b, s->rows.blocks));
	leg_call(b, FETCHING, 1, 0, row_words(b, 0)); /* as if the row before were there: row 0 is its other buffer's */
	for (uint32_t row = 0; row < s->rows.rows; row++) {
		leg_call(b, SUMMING, row, row ? row - 1 : 0, row ? row_words(b, row - 1) : 0);
		leg_call(b, GATHERING, row, row + 1, row_words(b, (int64_t)row + 1));
	}
	leg_call(b, FLUSHING, s->rows.rows, s->rows.rows - 1, row_words(b, s->rows.rows - 1));
	rows_borrow(b, scratch_words(b, &s->rows) + 2 * s->rows.blocks * b->o.procs);
}
