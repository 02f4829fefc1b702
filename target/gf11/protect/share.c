/* SPDX-License-Identifier: MIT */
/* An array that all processors hold, stored once, distributed over all of them: each stores the words of its slots.
 * In: the array in DRAM, or the distributed form. Out: the other of the two.
 *
 * Scatter selects by the processor's number, word by word, without the switch. Gather runs in steps of 1, 2, 4 ...
 * processors: the owner of a word starts with it, all others with zero, and each ORs what it receives; after log2 P
 * steps all hold the word. It is used rarely, so it need not be as fast as sums, and it needs no per-processor
 * addresses.
 *
 * Where the update has owners (rows), theirs is the share of the weights, and this is how they agree with the
 * others. */
#include <assert.h>

#include "gf11_protect.h"

enum { AHEAD = 12, WAVE = 16 };

typedef struct Part {
	uint32_t first, end;
	bool begins;
} Part;

/* ---- routines ---- */

static uint32_t owner(const Protect *t, uint32_t slot)
{
	return (slot % t->b->o.procs + t->shares.shift) % t->b->o.procs;
}

static uint32_t kept_words(const Protect *t, uint32_t slots) { return (slots + t->b->o.procs - 1) / t->b->o.procs; }

static Cond is_mine(Gen *g, const Protect *t, Reg self, uint32_t slot)
{
	return g_compare(g, GOP_INT_EQ, self, g_const_bits(g, owner(t, slot)));
}

static void kept_fetch(Gen *g, uint32_t buffer, uint32_t words)
{
	for (uint32_t u = 0; u < words; u++)
		g_fetch(g, near_word(buffer + u), (Addr){ PROTECT_INTO, u });
}

static Code *record_take(const Protect *t, const Part *p, uint32_t slots)
{
	Gen *g = gen_record(t->b->cx, t->b->m, "share take");
	uint32_t words = kept_words(t, slots), kept = protect_buffer(t), buffer = kept + words;
	Reg self = g_load(g, sum_word(WORD_SELF)), *mine = NEW(&t->b->cx->scratch, words, Reg);
	if (!p->begins)
		kept_fetch(g, kept, words);
	for (uint32_t u = 0; u < words; u++)
		mine[u] = p->begins ? g_const_bits(g, 0) : g_load(g, near_word(kept + u));
	for (uint32_t k = p->first; k < p->end + AHEAD; k++) {
		if (k < p->end)
			g_fetch(g, near_word(buffer + k - p->first), (Addr){ PROTECT_FROM, k });
		if (k < p->first + AHEAD)
			continue;
		uint32_t slot = k - AHEAD;
		Cond is = is_mine(g, t, self, slot);
		g_move_masked(g, mine[slot / t->b->o.procs], is, g_load(g, near_word(buffer + slot - p->first)));
	}
	for (uint32_t u = 0; u < words; u++) {
		g_store(g, near_word(kept + u), mine[u]);
		g_flush(g, (Addr){ PROTECT_INTO, u }, near_word(kept + u));
	}
	return sum_code(g, false);
}

static Code *record_give(const Protect *t, const Part *p, uint32_t slots)
{
	Gen *g = gen_record(t->b->cx, t->b->m, "share give");
	uint32_t words = kept_words(t, slots), kept = protect_buffer(t), buffer = kept + words;
	Reg *mine = NEW(&t->b->cx->scratch, words, Reg);
	kept_fetch(g, kept, words);
	for (uint32_t u = 0; u < words; u++)
		mine[u] = g_load(g, near_word(kept + u));
	for (uint32_t first = p->first; first < p->end; first += WAVE) {
		uint32_t end = first + WAVE < p->end ? first + WAVE : p->end;
		/* Slots first .. end - 1 interleaved, to hide the latency of the switch. */
		uint32_t at = buffer + (first - p->first);
		Reg self = g_load(g, sum_word(WORD_SELF)), none = g_const_bits(g, 0), word[WAVE] = { 0 };
		for (uint32_t i = first; i < end; i++) {
			Cond is = is_mine(g, t, self, i);
			word[i - first] = g_select(g, is, mine[i / t->b->o.procs], none);
		}
		for (uint32_t level = 0; level < t->levels; level++)
			for (uint32_t i = 0; i < end - first; i++)
				word[i] = g_op(g, GOP_OR, word[i], protect_hop(g, t, level, word[i]));
		for (uint32_t i = first; i < end; i++) {
			g_store(g, near_word(at + i - first), word[i - first]);
			g_flush(g, (Addr){ PROTECT_FROM, i }, near_word(at + i - first));
		}
	}
	return sum_code(g, false);
}

/* Estimated lines of a slot. */
static uint32_t slot_lines(const Protect *t, bool take)
{
	const Machine *m = t->b->m;
	uint32_t dram = (uint32_t)m->dram_interval, sends = protect_hops(t) * (uint32_t)m->switch_interval;
	uint32_t conditions = (uint32_t)(m->alu_latency / m->conditions) + 2;
	uint32_t lines = take || sends < dram ? dram : sends + sends / 4 + 8;
	return lines > conditions ? lines : conditions;
}

static const ShareRoutine *routine_for(Protect *t, bool take, uint32_t slots)
{
	for (uint32_t i = 0; i < t->share_routines; i++)
		if (t->share[i].take == take && t->share[i].slots == slots)
			return &t->share[i];
	assert(t->share_routines < COUNT(t->share));
	ShareRoutine *r = &t->share[t->share_routines++];
	uint32_t most = min_u32(sum_lines(t->b) / slot_lines(t, take),
	                        t->b->at.scratch_words - protect_buffer(t) - kept_words(t, slots));
	if (!most || kept_words(t, slots) > 64)
		fail(t->b->cx, MP_BAD_INPUT,
		     "use a machine file with longer blocks, or set checkpoint-place own and agree host",
		     "weights cannot be shared by processors in blocks of %lld lines", (long long)t->b->m->block);
	*r = (ShareRoutine){ take, slots, (slots + most - 1) / most, NULL };
	r->routine = NEW(&t->b->cx->keep, r->parts, uint32_t);
	for (uint32_t i = 0; i < r->parts; i++) {
		Part p = { slots * i / r->parts, slots * (i + 1) / r->parts, i == 0 };
		r->routine[i] = sum_load(t->b, take ? record_take(t, &p, slots) : record_give(t, &p, slots));
	}
	return r;
}

/* ---- arrays ---- */

static uint32_t slots_of(const Protect *t, uint32_t row)
{
	uint32_t rest = t->b->at.words - row * t->shares.slots;
	return rest < t->shares.slots ? rest : t->shares.slots;
}

/* Is this the distribution of the owners' weights? */
static bool owners_agree(const Protect *t)
{
	const Shares *s = &t->shares;
	for (uint32_t i = 0; i < t->b->at.words; i++) {
		SumHome home = sum_home(t->b, i);
		uint32_t slot = i % s->slots;
		if (home.proc != owner(t, slot) ||
		    home.weight != t->shared[0].kept + i / s->slots * s->own + slot / t->b->o.procs)
			return false;
	}
	return true;
}

/* The distribution of the update if it has owners; else one or a few slots per processor, for weights and rule
 * state. */
void shares_make(Protect *t)
{
	const Bp *b = t->b;
	Shares *s = &t->shares;
	uint32_t banks = (uint32_t)b->m->dram_banks;
	if (!b->at.words)
		return;
	if (!sum_home(b, 0).everywhere) {
		const Rows *r = &b->summing->rows;
		*s = (Shares){ r->words, r->rows, r->shift, r->own };
		t->shared[t->shareds++] = (Shared){ b->at.weights, sum_home(b, 0).weight };
		assert(owners_agree(t));
	} else if (t->spread) {
		*s = (Shares){ .slots = round_to(b->o.procs, banks) };
		s->own = round_to(kept_words(t, s->slots), banks);
		s->rows = (b->at.words + s->slots - 1) / s->slots;
		for (uint32_t k = 0; k <= state_count(b); k++) {
			uint32_t array = k ? state_first(b, k - 1) : b->at.weights;
			t->shared[t->shareds++] = (Shared){ array, protect_reserve(t, (uint64_t)s->rows * s->own) };
		}
	}
	for (uint32_t i = 0; i < s->rows; i++) {
		routine_for(t, true, slots_of(t, i));
		if (t->spread)
			routine_for(t, false, slots_of(t, i));
	}
}

static void shares_move(Protect *t, const Shared *a, bool take)
{
	sum_words_write(t->b);
	for (uint32_t i = 0; i < t->shares.rows; i++) {
		const ShareRoutine *r = routine_for(t, take, slots_of(t, i));
		for (uint32_t k = 0; k < r->parts; k++)
			protect_call(t, r->routine[k], a->array + i * t->shares.slots, a->kept + i * t->shares.own, 0);
	}
}

void shares_take(Protect *t, const Shared *a) { shares_move(t, a, true); }

void shares_give(Protect *t, const Shared *a) { shares_move(t, a, false); }
