/* SPDX-License-Identifier: MIT */
/* Summing in a ring (section 4.4.1).  Increments circulate: on each of P - 1 steps a processor sends Neighbor to its
 * right, receives a new one from its left and adds it to Sum.  Additions run beside the switch, and DRAM moves in the
 * empty slots of both (section 6.2.1).
 *
 * A block of microcode holds all steps for some weights.  If that is a few only, it holds a part of the steps for
 * more of them, and Neighbor and Sum wait in SRAM for the next call. */
#include "gf11_sum.h"

enum { FEW = 8, CUT_CHUNK = 64 };

static void ring_step(Chunk *c, uint32_t step, uint32_t i)
{
	(void)step;
	c->other[i] = g_xfer(c->g, c->s->ring, c->other[i]);
	c->sum[i] = g_fadd(c->g, c->sum[i], c->other[i]);
}

/* Cycles from one step of a weight to its next: the addition runs beside the next transfer. */
static int64_t latency(const Bp *b)
{
	return b->m->switch_latency > b->m->alu_latency ? b->m->switch_latency : b->m->alu_latency;
}

/* Lines of a step of n weights: the switch is busy, or waits for the step before. */
static uint32_t step_lines(const Bp *b, uint64_t n)
{
	uint64_t sends = n * (uint64_t)b->m->switch_interval, waits = (uint64_t)latency(b);
	return (uint32_t)(sends > waits ? sends : waits);
}

static uint32_t make_whole(Bp *b, uint32_t n, Routine ***routine)
{
	Chunk c = chunk_open(b, "ring update", n);
	chunk_together(&c, ring_step, b->o.procs - 1, latency(b));
	*routine = NEW(&b->cx->scratch, 1, Routine *);
	**routine = bp_schedule(b, sum_code(c.g, true));
	return 1;
}

/* ---- steps in parts ---- */

/* Neighbor and Sum behind the other words of the chunk. */
static Addr waiting(const Chunk *c, bool sum, uint32_t i)
{
	return (Addr){ SUM_AT, (chunk_words(c->b) + sum) * c->n + i };
}

/* So many of the steps; the first call brings the words from DRAM, the last one takes them back. */
static Code *record_cut(const Bp *b, uint32_t n, uint32_t steps, bool first, bool last)
{
	Chunk c = chunk_open(b, "ring update", n);
	if (first)
		chunk_moves_all(&c, MOVE_CHANGE_IN, MOVE_CHANGE_IN);
	if (last) {
		chunk_moves_all(&c, MOVE_WEIGHT_IN, MOVE_ZERO);
		chunk_moves_all(&c, MOVE_FACTOR_IN, MOVE_FACTOR_IN);
	}
	for (uint32_t i = 0; i < n; i++) {
		c.other[i] = first ? chunk_change(&c, i) : g_load(c.g, waiting(&c, false, i));
		c.sum[i] = first ? c.other[i] : g_load(c.g, waiting(&c, true, i));
	}
	for (uint32_t step = 0; step < steps; step++)
		for (uint32_t i = 0; i < n; i++)
			ring_step(&c, step, i);
	chunk_rates(&c);
	for (uint32_t i = 0; i < n; i++) {
		if (last) {
			chunk_update(&c, i);
			continue;
		}
		g_store(c.g, waiting(&c, false, i), c.other[i]);
		g_store(c.g, waiting(&c, true, i), c.sum[i]);
	}
	if (last) {
		range_close(&c.range);
		chunk_moves_all(&c, MOVE_STATE_OUT, MOVE_WEIGHT_OUT);
	}
	return sum_code(c.g, false);
}

/* Equal parts, so that those in the middle are one routine. */
static uint32_t make_cut(Bp *b, uint32_t n, Routine ***routine)
{
	uint32_t lines = sum_lines(b), steps = b->o.procs - 1,
			 moves = (chunk_moves(b) - 2) * n * (uint32_t)b->m->dram_interval;
	uint32_t alu = (b->summing->rule->alu + range_alu(b)) * n;
	moves = moves > alu ? moves : alu;
	uint32_t fit = (lines > 2 * moves ? lines - moves : lines / 2) / step_lines(b, n);
	fit = fit ? fit : 1;
	uint32_t parts = (steps + fit - 1) / fit, each = (steps + parts - 1) / parts;
	parts = (steps + each - 1) / each;
	*routine = NEW(&b->cx->scratch, parts, Routine *);
	for (uint32_t i = 0; i < parts; i++) {
		uint32_t here = i + 1 < parts ? each : steps - i * each;
		(*routine)[i] = bp_schedule(b, record_cut(b, n, here, i == 0, i + 1 == parts));
	}
	return parts;
}

/* All steps in one routine if they fit for as many weights as hide the latency. */
void ring_compile(Bp *b)
{
	uint32_t steps = sum_steps(SUM_RING, b->o.procs), lines = chunk_lines(b, steps);
	uint32_t whole = chunk_size(b, lines, chunk_words(b), 0);
	uint64_t wanted = b->o.update ? b->o.update : FEW;
	bool fits = wanted * lines <= sum_lines(b) && (uint64_t)steps * step_lines(b, wanted) <= sum_lines(b);
	bool hidden = whole * (uint64_t)b->m->switch_interval > (uint64_t)latency(b);
	if (b->o.procs > 1)
		b->summing->ring = sum_shift(b, b->o.procs, 1);
	if (b->o.ring == RING_WHOLE || (fits && (hidden || b->o.update || whole >= b->at.words)))
		chunks_compile(b, whole, make_whole);
	else
		chunks_compile(b, chunk_size(b, 1, chunk_words(b) + 2, CUT_CHUNK), make_cut);
}
