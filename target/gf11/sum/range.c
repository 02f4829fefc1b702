/* SPDX-License-Identifier: MIT */
/* The range check of section 8: a total weight change that is too large, or no number, becomes zero and is counted.
 * In: totals on their way to the rule. Out: those, or zero; a bit in DRAM for each weight that a processor caught;
 * on the host, how often each processor caught each weight.
 *
 * A weight costs six operations, two of them before the rule can begin, in cycles that switch and DRAM leave idle;
 * 32 weights cost one move to DRAM. Bits are written in every update, so nothing has to clear them. A word behind
 * the tables is not zero if a processor caught anything: the host reads nothing else while all are zero. */
#include <assert.h>

#include "gf11_sum.h"

enum { BITS = 32, APART = 8 }; /* weights of a word; of a part of it, where these are joined later */

/* ---- recording ---- */

bool range_checked(const Bp *b) { return b->range > 0; }

uint32_t range_words(const Bp *b, uint32_t weights)
{
	return range_checked(b) ? round_to((weights + BITS - 1) / BITS, (uint32_t)b->m->dram_banks) : 0;
}

int64_t range_time(const Bp *b) { return range_checked(b) ? 3 * b->m->alu_latency : 0; }

uint32_t range_alu(const Bp *b) { return range_checked(b) ? 6 : 0; }

Range range_open(Gen *g, const Bp *b, uint32_t weights, Addr near, Addr far)
{
	Range r = { .g = g, .near = near, .far = far, .weights = weights, .on = range_checked(b) };
	if (!r.on)
		return r;
	r.limit = g_load(g, sum_word(WORD_LIMIT));
	r.zero = g_load(g, sum_word(WORD_ZERO));
	r.caught = g_load(g, sum_word(WORD_CAUGHT));
	r.group = NEW(&b->cx->scratch, (weights + APART - 1) / APART, RangeGroup);
	return r;
}

/* Bits of a group are joined two and two, so that none waits for all before it. */
static void bit_add(Range *r, RangeGroup *group, Reg bit)
{
	for (uint32_t n = group->count++; n & 1; n /= 2)
		bit = g_op(r->g, GOP_OR, group->part[--group->parts], bit);
	group->part[group->parts++] = bit;
}

static void word_end(Range *r, uint32_t number, Reg bits)
{
	Addr near = { r->near.base, r->near.off + number };
	g_store(r->g, near, bits);
	g_flush(r->g, (Addr){ r->far.base, r->far.off + number }, near);
	r->caught = g_op(r->g, GOP_OR, r->caught, bits);
}

static void group_end(Range *r, uint32_t number)
{
	RangeGroup *group = &r->group[number];
	Reg bits = group->part[--group->parts];
	while (group->parts)
		bits = g_op(r->g, GOP_OR, group->part[--group->parts], bits);
	if (r->apart)
		g_store(r->g, (Addr){ r->near.base, r->near.off + number }, bits);
	else
		word_end(r, number, bits);
}

Reg range_check(Range *r, Reg total, uint32_t i)
{
	if (!r->on)
		return total;
	uint32_t each = r->apart ? APART : BITS, rest = r->weights - i / each * each;
	RangeGroup *group = &r->group[i / each];
	Reg bit = g_const_bits(r->g, 1u << i % BITS), size = g_op(r->g, GOP_FABS, total, 0);
	Cond inside = g_compare(r->g, GOP_FLT_LE, size, r->limit); /* not so if it is no number */
	Reg checked = g_select(r->g, inside, total, r->zero);
	bit_add(r, group, g_select(r->g, inside, r->zero, bit));
	if (group->count == (rest < each ? rest : each))
		group_end(r, i / each);
	return checked;
}

void range_close(const Range *r)
{
	if (r->on && !r->apart)
		g_store(r->g, sum_word(WORD_CAUGHT), r->caught);
}

/* Parts of words are loaded before words go where they stand: word k covers parts of words up to k alone. */
void range_join(Range *r)
{
	for (uint32_t k = 0; r->on && k * BITS < r->weights; k++) {
		uint32_t first = k * (BITS / APART), end = (r->weights + APART - 1) / APART;
		Reg bits = g_load(r->g, (Addr){ r->near.base, r->near.off + first });
		for (uint32_t i = first + 1; i < end && i < first + BITS / APART; i++)
			bits = g_op(r->g, GOP_OR, bits, g_load(r->g, (Addr){ r->near.base, r->near.off + i }));
		word_end(r, k, bits);
	}
	range_close(r);
}

/* ---- places ---- */

/* Behind all else in DRAM. */
uint32_t range_room(Bp *b, uint32_t words)
{
	uint32_t at = round_to(b->at.dram_end, (uint32_t)b->m->dram_banks);
	if (!words)
		return at;
	if ((uint64_t)at + words > (uint64_t)b->m->dram)
		fail(b->cx, MP_BAD_INPUT, "train without range-check, use a smaller network, or a machine file with more DRAM",
		     "range-check: there is no room in DRAM for %u words of bits behind the %u in use; %s has %lld", words,
		     b->at.dram_end, b->m->name, (long long)b->m->dram);
	b->at.dram_end = at + words;
	if (b->p->dram_used)
		b->p->dram_used = b->at.dram_end;
	return at;
}

/* ---- what was caught ---- */

enum { LOG_SLOTS = 1 << 16, LOG_TRIES = 64 }; /* a full log must not be searched for every weight of every processor */

RangeLog *range_log_new(Arena *a, uint32_t procs)
{
	RangeLog *log = NEW(a, 1, RangeLog);
	log->slot = NEW(a, LOG_SLOTS, RangeSlot);
	log->of_proc = NEW(a, procs, uint64_t);
	return log;
}

/* Open addressing; what finds no slot is still counted by processor and in all. */
static void log_add(RangeLog *log, uint32_t proc, uint64_t link)
{
	uint64_t key = (link + 1) << 16 | proc, at = key * 0x9e3779b97f4a7c15u >> 48;
	log->caught++;
	log->of_proc[proc]++;
	for (uint32_t tries = 0; tries < LOG_TRIES; tries++, at = (at + 1) % LOG_SLOTS) {
		RangeSlot *s = &log->slot[at];
		if (s->key && s->key != key)
			continue;
		s->key = key;
		s->count++;
		return;
	}
}

uint64_t range_count(const RangeLog *log, uint32_t proc, uint64_t link)
{
	uint64_t key = (link + 1) << 16 | proc, at = key * 0x9e3779b97f4a7c15u >> 48;
	for (uint32_t tries = 0; tries < LOG_TRIES && log->slot[at].key; tries++, at = (at + 1) % LOG_SLOTS)
		if (log->slot[at].key == key)
			return log->slot[at].count;
	return 0;
}

/* Bits of weights that stand at `far` in a processor: weight i is at place `first` + i * step. Padding between bundles
 * holds no weights. */
static void bits_collect(Bp *b, uint32_t proc, uint32_t far, uint32_t weights, uint32_t first, uint32_t step)
{
	for (uint32_t k = 0; k * BITS < weights; k++) {
		Cell word;
		host_read(b->c, proc, true, far + k, &word, 1);
		for (uint32_t i = k * BITS; i < weights && i < (k + 1) * BITS; i++) {
			uint32_t place = first + i * step;
			if (word.u >> i % BITS & 1 && place < b->at.words && b->summing->link_at[place] != UINT64_MAX)
				log_add(b->log, proc, b->summing->link_at[place]);
		}
	}
}

static void proc_collect(Bp *b, uint32_t proc)
{
	const BpSum *s = b->summing;
	const Rows *r = &s->rows;
	for (uint32_t i = 0; i < s->calls; i++)
		if (s->call[i].weights)
			bits_collect(b, proc, s->call[i].base[SUM_FLAGS], s->call[i].weights, s->call[i].first, 1);
	for (uint32_t row = 0; row < r->rows; row++) {
		uint32_t own = (proc + s->procs - r->shift) % s->procs, end = row_words(b, row);
		uint32_t weights = own < end ? (uint32_t)ceil_div(end - own, s->procs) : 0;
		bits_collect(b, proc, s->flags + row * range_words(b, r->blocks), weights, row * r->words + own, s->procs);
	}
}

void range_collect(Bp *b)
{
	for (uint32_t proc = 0; proc < b->o.procs; proc++) {
		Cell caught, none = { 0 };
		host_read(b->c, proc, false, SUM_WORDS_AT + WORD_CAUGHT, &caught, 1);
		if (!caught.u)
			continue;
		proc_collect(b, proc);
		host_write(b->c, proc, false, SUM_WORDS_AT + WORD_CAUGHT, &none, 1);
	}
}

/* Weights by their places, and a log if the caller has none. */
void range_prepare(Bp *b)
{
	BpSum *s = b->summing;
	if (!range_checked(b))
		return;
	s->link_at = NEW(&b->cx->keep, b->at.words, uint64_t);
	for (uint32_t i = 0; i < b->at.words; i++)
		s->link_at[i] = b->net ? UINT64_MAX : i;
	for (uint64_t i = 0; b->net && i < b->net->links; i++)
		s->link_at[b->place[i]] = i;
	if (!b->log)
		b->log = range_log_new(&b->cx->keep, b->o.procs);
}

/* How many; the processor that caught most, and the weight it caught most often. */
void range_report(const RangeLog *log, uint32_t procs, Buf *json)
{
	uint32_t proc = 0;
	uint64_t link = 0, count = 0;
	buf_printf(json, "%s\"range_caught\": %llu", json->len ? ", " : "", (unsigned long long)log->caught);
	if (!log->caught)
		return;
	for (uint32_t i = 0; i < procs; i++)
		proc = log->of_proc[i] > log->of_proc[proc] ? i : proc;
	for (const RangeSlot *s = log->slot; s < log->slot + LOG_SLOTS; s++)
		if (s->key && (s->key & 0xFFFF) == proc && (s->count > count || (s->count == count && s->key >> 16 <= link))) {
			count = s->count;
			link = (s->key >> 16) - 1;
		}
	buf_printf(json,
	           ", \"range_worst_processor\": %u, \"range_worst_processor_caught\": %llu, \"range_worst_weight\": %llu, "
	           "\"range_worst_weight_caught\": %llu",
	           proc, (unsigned long long)log->of_proc[proc], (unsigned long long)link, (unsigned long long)count);
}
