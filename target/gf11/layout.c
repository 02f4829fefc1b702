/* SPDX-License-Identifier: MIT */
/* Where everything lies in a processor's memories.  In: bundles and chunks, cases each processor is to hold.
 * Out: Layout, or a refusal that gives the number of words wanted and there (section 9). */
#include "backprop.h"

static uint64_t round_up(uint64_t words, uint64_t to)
{
	return (words + to - 1) / to * to;
}

/* Words of a case in SRAM. */
void layout_case(Bp *b)
{
	Layout *at = &b->at;
	uint32_t computed = 0, gaussian = 0;
	at->units = b->net->units;
	at->outputs = b->net->outputs;
	b->net_word = NEW(&b->cx->keep, at->units, uint32_t);
	for (Unit u = 0; u < at->units; u++) {
		b->net_word[u] = computed;
		computed += b->plan->level_of[u] > 0;
		gaussian += b->plan->level_of[u] > 0 && net_group(b->net, u)->fn == FN_GAUSSIAN;
	}
	at->case_out = 0;
	at->case_net = at->units;
	at->case_target = at->case_net + computed;
	at->case_weight = at->case_target + at->outputs;
	at->case_slope = at->case_weight + 1;
	at->case_words = at->case_slope + gaussian;
}

/* Cases one after the other, at least two words for each unit, as in the report (section 6.1): input units have no net
 * input, targets and weight take that place.  In DRAM inputs, targets and weight. */
static void layout_cases(Bp *b)
{
	Layout *at = &b->at;
	uint32_t words = 2 * (at->units - 1);
	at->case_words = at->case_step = at->case_words > words ? at->case_words : words;
	at->stride = at->data_side = at->data_step = 1;
	at->data_words = (uint32_t)round_up((uint64_t)b->net->inputs + at->outputs + 1, (uint64_t)b->m->dram_banks);
}

/* A network whose weights and changes leave room for some cases stays in SRAM during an update. */
static void layout_caches(Bp *b, uint64_t slots, uint64_t room)
{
	enum { CASES_BESIDE = 16 };
	Layout *at = &b->at;
	uint64_t beside = (slots < CASES_BESIDE ? slots : CASES_BESIDE) * at->case_words;
	for (uint32_t i = 0; i < b->bundles; i++)
		at->cache_words = at->cache_words > b->bundle[i].words ? at->cache_words : b->bundle[i].words;
	at->resident = 2 * (uint64_t)at->words + beside <= room;
	if (at->resident)
		at->cache_words = at->words;
	at->scratch = at->weight_cache;
	at->scratch_words = 2 * at->cache_words > MIN_SCRATCH ? 2 * at->cache_words : MIN_SCRATCH;
	at->change_cache = at->weight_cache + at->scratch_words / 2;
}

uint32_t layout_ends(Bp *b)
{
	Layout *at = &b->at;
	uint32_t first = TABLE_WORDS + 4, beside = first + MIN_SCRATCH + SPILL_WORDS;
	uint64_t sram = (uint64_t)b->m->sram;
	if (sram < (uint64_t)beside + at->case_words)
		fail(b->cx, MP_BAD_INPUT, "use a smaller network, or a machine file with more SRAM",
		     "a case of %u units takes %u words of SRAM beside %u for tables and caches; %s has %llu", at->units - 1,
		     at->case_words, beside, b->m->name, (unsigned long long)sram);
	at->total = TABLE_WORDS;
	at->spill = (uint32_t)sram - SPILL_WORDS;
	return first;
}

static void layout_sram(Bp *b, uint64_t slots)
{
	Layout *at = &b->at;
	uint32_t first = layout_ends(b);
	at->weight_cache = first;
	layout_caches(b, slots, at->spill - first);
	at->cases = at->scratch + at->scratch_words;
	uint64_t group = at->cases < at->spill ? (at->spill - at->cases) / at->case_words : 0;
	if (!group)
		fail(b->cx, MP_BAD_INPUT, "ask for smaller bundles or a smaller network",
		     "bundles of %u weights and a case of %u words do not fit: %u words of SRAM, %s has %llu",
		     at->cache_words, at->case_words, at->cases + at->case_words + SPILL_WORDS, b->m->name,
		     (unsigned long long)b->m->sram);
	at->group = (uint32_t)(group < slots ? group : slots);
}

void layout_dram(Bp *b, uint64_t slots)
{
	Layout *at = &b->at;
	uint64_t dram = (uint64_t)b->m->dram, arrays = b->factor ? 4 : 3, weights = arrays * at->words;
	uint64_t cases = slots / at->data_side * at->data_words;
	if (slots > dram || cases + weights > dram)
		fail(b->cx, MP_BAD_INPUT, "use more processors, a smaller batch or network, or a machine file with more DRAM",
		     "%llu cases, %llu words of data, and %s words for each of %llu weights are %llu words of DRAM; %s has %llu",
		     (unsigned long long)slots, (unsigned long long)cases, b->factor ? "four" : "three",
		     (unsigned long long)b->net->links,
		     (unsigned long long)(cases + weights), b->m->name, (unsigned long long)dram);
	at->slots = (uint32_t)slots;
	at->data = 0;
	at->weights = (uint32_t)cases;
	at->changes = at->weights + at->words;
	at->steps = at->changes + at->words;
	at->factors = at->steps + at->words;
	at->dram_end = at->weights + (uint32_t)weights;
}

void layout_make(Bp *b, uint64_t slots)
{
	layout_case(b);
	layout_cases(b);
	layout_sram(b, slots);
	layout_dram(b, slots);
}
