/* SPDX-License-Identifier: MIT */
/* Snapshots of weights and rule state in processor memory (section 10.4). In: regions of DRAM. Out: a copy with
 * checksums in another region, and the words restored from it.
 *
 * Placement `own`: every processor copies all its words. Where all processors hold the same words, a damaged copy is
 * corrected on restore by a vote between the word and those of the two processors to the left: if these two agree, they
 * win; else the own word counts if its checksum matches. Words that one processor alone holds (owners' state) have a
 * checksum only: on mismatch they are restored as zeros if the rule state starts at zero, else the snapshot is invalid;
 * owners take their weights from the array that all hold.
 *
 * Placement `spread`: each processor keeps the words it owns, 1 / P of all (share.c); such a snapshot is invalid if any
 * checksum mismatches. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "gf11_protect.h"

enum { MOST_CHUNK = 512, AHEAD = 12, RESTORE_LINES = 20 };

static Addr expected(const Protect *t, uint32_t word)
{
	return near_word(NEAR_PARTIAL + 2 * (uint32_t)t->b->m->dram_banks + word);
}

static uint32_t sums_stride(const Protect *t) { return round_to(EXPECTED_WORDS, (uint32_t)t->b->m->dram_banks); }

/* ---- routines ---- */

/* Reads words from DRAM and adds them to the checksum; with `save` writes them to the copy. */
static void chunk_sums(Gen *g, const Protect *t, uint32_t words, bool save, Reg *x, Reg *b)
{
	uint32_t buffer = protect_buffer(t);
	Sums sum = sums_open(g, 1, g_const_bits(g, 16));
	for (uint32_t k = 0; k < words + AHEAD; k++) {
		if (k < words)
			g_fetch(g, near_word(buffer + k), (Addr){ PROTECT_FROM, k });
		if (k < AHEAD)
			continue;
		uint32_t i = k - AHEAD;
		Reg number = g_const_bits(g, i + 1);
		sums_add(&sum, g_load(g, near_word(buffer + i)), number);
		if (save)
			g_flush(g, (Addr){ PROTECT_INTO, i }, near_word(buffer + i));
	}
	sums_end(&sum, x, b);
}

static Code *record_save(const Protect *t, uint32_t words)
{
	Gen *g = gen_record(t->b->cx, t->b->m, "copy save");
	Reg x, b;
	chunk_sums(g, t, words, true, &x, &b);
	g_store(g, expected(t, EXPECTED_X), x);
	g_store(g, expected(t, EXPECTED_B), b);
	g_store(g, expected(t, EXPECTED_TWICE), b);
	for (uint32_t i = 0; i < VERDICT; i++)
		g_flush(g, (Addr){ PROTECT_SUMS, i }, expected(t, i));
	return sum_code(g, false);
}

static Reg voted(Gen *g, const Protect *t, Cond fine, Reg own)
{
	Reg left = g_xfer(g, t->ring, own);
	Reg known = g_select(g, fine, own, left);
	if (t->b->o.procs < 3)
		return known;
	Reg second = g_xfer(g, t->ring, left);
	Cond same = g_compare(g, GOP_INT_EQ, left, second);
	return g_select(g, same, left, known);
}

static Code *record_restore(const Protect *t, uint32_t words, bool vote)
{
	Gen *g = gen_record(t->b->cx, t->b->m, "copy restore");
	uint32_t buffer = protect_buffer(t);
	Reg x, b;
	for (uint32_t i = 0; i < VERDICT; i++)
		g_fetch(g, expected(t, i), (Addr){ PROTECT_SUMS, i });
	chunk_sums(g, t, words, false, &x, &b);
	Cond fine = sums_match(g, expected(t, 0), x, b);
	Reg none = g_const_bits(g, 0), one = g_const_bits(g, 1), bad = g_select(g, fine, none, one);
	Reg count = g_load(g, near_word(NEAR_COUNT));
	g_store(g, near_word(NEAR_COUNT), g_op(g, GOP_IADD, count, bad));
	for (uint32_t k = 0; k < words; k++) {
		Reg own = g_load(g, near_word(buffer + k));
		g_store(g, near_word(buffer + k), vote ? voted(g, t, fine, own) : g_select(g, fine, own, none));
		g_flush(g, (Addr){ PROTECT_INTO, k }, near_word(buffer + k));
	}
	return sum_code(g, false);
}

static uint32_t routine_for(Protect *t, uint32_t words, uint32_t how, bool save)
{
	bool vote = how == REGION_VOTE && !save;
	for (uint32_t i = 0; i < t->copy_routines; i++) {
		const CopyRoutine *r = &t->copy[i];
		if (r->words == words && r->save == save && (r->how == REGION_VOTE && !save) == vote)
			return r->routine;
	}
	assert(t->copy_routines < COUNT(t->copy));
	uint32_t routine = sum_load(t->b, save ? record_save(t, words) : record_restore(t, words, vote));
	t->copy[t->copy_routines++] = (CopyRoutine){ words, how, save, routine };
	return routine;
}

/* Magnitudes compare as integers; NaN is larger than all. */
static Code *record_largest(const Protect *t, uint32_t words)
{
	Gen *g = gen_record(t->b->cx, t->b->m, "largest weight");
	uint32_t buffer = protect_buffer(t), ways = words < MOST_WAYS ? words : MOST_WAYS;
	Reg most[MOST_WAYS];
	most[0] = g_load(g, near_word(NEAR_COUNT));
	for (uint32_t i = 1; i < ways; i++)
		most[i] = g_const_bits(g, 0);
	for (uint32_t k = 0; k < words + AHEAD; k++) {
		if (k < words)
			g_fetch(g, near_word(buffer + k), (Addr){ PROTECT_FROM, k });
		if (k < AHEAD)
			continue;
		Reg size = g_op(g, GOP_FABS, g_load(g, near_word(buffer + k - AHEAD)), 0), *way = &most[k % ways];
		Cond less = g_compare(g, GOP_INT_LT, *way, size);
		*way = g_select(g, less, size, *way);
	}
	for (uint32_t i = 1; i < ways; i++) {
		Cond less = g_compare(g, GOP_INT_LT, most[0], most[i]);
		most[0] = g_select(g, less, most[i], most[0]);
	}
	g_store(g, near_word(NEAR_COUNT), most[0]);
	return sum_code(g, false);
}

/* ---- regions ---- */

static void region_add(Protect *t, uint32_t at, uint32_t words, uint32_t how, uint32_t *copy, uint32_t *chunks)
{
	if (!words)
		return;
	assert(t->regions < MOST_REGIONS);
	t->region[t->regions++] = (Region){ .at = at, .words = words, .how = how, .copy = *copy, .sums = *chunks };
	*copy += words;
	*chunks += (words + t->chunk - 1) / t->chunk;
}

/* Range of words that owners hold. */
static void own_extent(const Bp *b, uint32_t *low, uint32_t *end)
{
	*low = UINT32_MAX;
	*end = 0;
	for (uint32_t i = 0; i < b->at.words; i++) {
		SumHome home = sum_home(b, i);
		for (uint32_t k = 0; k <= state_count(b); k++) {
			uint32_t word = k < state_count(b) ? state_word(&home, k) : home.weight;
			*low = word < *low ? word : *low;
			*end = word >= *end ? word + 1 : *end;
		}
	}
	*low = *low / (uint32_t)b->m->dram_banks * (uint32_t)b->m->dram_banks;
}

static bool starts_at_zero(const Bp *b)
{
	for (int k = 0; k < b->rule->states; k++)
		if (rule_start(b->rule, k, b->opt, 1) != 0)
			return false;
	return true;
}

static void regions_make(Protect *t, uint32_t *copy, uint32_t *chunks)
{
	const Bp *b = t->b;
	bool everywhere = sum_home(b, 0).everywhere;
	uint32_t vote = b->o.procs > 1 ? REGION_VOTE : REGION_NEEDED, low, end;
	if (t->spread && everywhere) {
		for (uint32_t i = 0; i < t->shareds; i++)
			region_add(t, t->shared[i].kept, t->shares.rows * t->shares.own, REGION_NEEDED, copy, chunks);
		return;
	}
	if (!t->spread)
		region_add(t, b->at.weights, b->at.words, vote, copy, chunks);
	if (everywhere) {
		for (uint32_t k = 0; k < state_count(b); k++)
			region_add(t, state_first(b, k), b->at.words, vote, copy, chunks);
		return;
	}
	own_extent(b, &low, &end);
	bool needed = t->spread || !starts_at_zero(b);
	region_add(t, low, round_to(end - low, (uint32_t)b->m->dram_banks), needed ? REGION_NEEDED : REGION_ALONE, copy,
	           chunks);
}

void copies_make(Protect *t)
{
	const Bp *b = t->b;
	uint32_t banks = (uint32_t)b->m->dram_banks, copy = 0, chunks = 0;
	t->chunk = min_u32(sum_lines(b) / RESTORE_LINES, b->at.scratch_words - protect_buffer(t));
	t->chunk = (t->chunk < MOST_CHUNK ? t->chunk : MOST_CHUNK) / banks * banks;
	if (!t->chunk)
		fail(b->cx, MP_BAD_INPUT, "use a machine file with longer blocks and more SRAM, or set memory-checkpoint 0",
		     "copies of weights do not fit in %u words of SRAM", b->at.scratch_words);
	if (!b->at.words)
		return;
	uint32_t rest = b->at.words % t->chunk;
	t->largest[0] = b->at.words >= t->chunk ? sum_load(t->b, record_largest(t, t->chunk)) : 0;
	t->largest[1] = rest ? sum_load(t->b, record_largest(t, rest)) : 0;
	regions_make(t, &copy, &chunks);
	for (uint32_t i = 0; i < COPIES; i++)
		t->place[i] = protect_reserve(t, copy + (uint64_t)chunks * sums_stride(t));
	for (uint32_t i = 0; i < t->regions; i++) {
		Region *r = &t->region[i];
		r->sums = copy + r->sums * sums_stride(t);
		for (uint32_t first = 0; first < r->words; first += t->chunk) {
			uint32_t words = r->words - first < t->chunk ? r->words - first : t->chunk;
			routine_for(t, words, r->how, true);
			routine_for(t, words, r->how, false);
		}
	}
}

/* ---- copying ---- */

static void region_move(Protect *t, const Region *r, uint32_t copy, bool save)
{
	uint32_t sums = t->place[copy] + r->sums;
	for (uint32_t first = 0; first < r->words; first += t->chunk, sums += sums_stride(t)) {
		uint32_t words = r->words - first < t->chunk ? r->words - first : t->chunk;
		uint32_t there = t->place[copy] + r->copy + first, here = r->at + first;
		protect_call(t, routine_for(t, words, r->how, save), save ? here : there, save ? there : here, sums);
	}
}

void copy_save(Protect *t, uint32_t copy)
{
	bool everywhere = sum_home(t->b, 0).everywhere;
	for (uint32_t i = 0; i < t->shareds && t->spread && everywhere; i++)
		shares_take(t, &t->shared[i]);
	for (uint32_t i = 0; i < t->regions; i++)
		region_move(t, &t->region[i], copy, true);
	t->state[copy] = COPY_NEW;
	t->guard->copies++;
}

bool copy_restore(Protect *t, uint32_t copy)
{
	bool everywhere = sum_home(t->b, 0).everywhere;
	for (uint32_t i = 0; i < t->regions; i++) {
		protect_clear(t);
		region_move(t, &t->region[i], copy, false);
		for (uint32_t proc = 0; proc < t->b->o.procs && t->region[i].how == REGION_NEEDED; proc++)
			if (protect_count(t, proc))
				return false;
	}
	for (uint32_t i = 0; i < t->shareds; i++) {
		if (t->spread)
			shares_give(t, &t->shared[i]);
		else if (!everywhere)
			shares_take(t, &t->shared[i]);
	}
	return true;
}

static int smaller_first(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

double largest_weight(Protect *t)
{
	uint32_t *size = NEW(&t->b->cx->scratch, t->b->o.procs, uint32_t);
	protect_clear(t);
	for (uint32_t first = 0; first < t->b->at.words; first += t->chunk)
		protect_call(t, t->largest[first + t->chunk > t->b->at.words], t->b->at.weights + first, 0, 0);
	for (uint32_t proc = 0; proc < t->b->o.procs; proc++)
		size[proc] = protect_count(t, proc);
	qsort(size, t->b->o.procs, sizeof *size, smaller_first);
	Cell middle = { .u = size[(t->b->o.procs - 1) / 2] };
	return isfinite(middle.f) ? (double)middle.f : INFINITY;
}
