/* SPDX-License-Identifier: MIT */
/* Where everything lies in a processor's memories.  In: bundles and chunks, cases each processor is to hold.
 * Out: Layout, or a refusal that gives the number of words wanted and there (section 9). */
#include "gf11_net.h"

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
		computed += b->plan->level_of[u] > 0 || b->back[u];
		gaussian += b->plan->level_of[u] > 0 && net_group(b->net, u)->fn == FN_GAUSSIAN;
	}
	at->case_out = 0;
	at->case_net = at->units;
	at->case_target = at->case_net + computed;
	at->case_weight = at->case_target + at->outputs;
	at->case_slope = at->case_weight + 1;
	at->case_flag = at->case_slope + gaussian;
	at->case_aside = at->case_flag + 1;
	at->case_kept = at->case_flag + (bp_remembers(b->net) ? 2 : 0);
	at->tick_words = at->case_kept + ticks_kept(b);
	at->case_words = b->ticks.each * at->tick_words;
	if (bp_remembers(b->net))
		copies_list(b);
}

uint32_t layout_data(const Bp *b) { return b->net->inputs + b->net->outputs + 1 + bp_remembers(b->net); }

uint64_t layout_arrays(const Bp *b) { return 2 + (uint64_t)b->rule->states + (b->factor != NULL); }

/* Cases one after the other, at least two words for each unit, as in the report (section 6.1): input units have no net
 * input, targets and weight take that place.  In DRAM inputs, targets and weight. */
static void layout_cases(Bp *b)
{
	Layout *at = &b->at;
	uint32_t words = 2 * (at->units - 1);
	at->tick_words = max_u32(at->tick_words, words);
	at->case_words = at->case_step = b->ticks.each * at->tick_words;
	at->stride = at->data_side = at->data_step = 1;
	at->data_words = (uint32_t)round_up(layout_data(b), (uint64_t)b->m->dram_banks);
}

/* Weights and changes stay in SRAM between updates if some cases fit beside them. */
static bool stays(const Bp *b, uint64_t slots)
{
	enum { CASES_BESIDE = 16 };
	uint64_t beside = (slots < CASES_BESIDE ? slots : CASES_BESIDE) * b->at.case_words;
	return 2 * (uint64_t)b->at.words + beside <= b->at.spill - b->at.weight_cache;
}

/* Words of the cache of weights, and of that of changes. */
static uint32_t cache_for(const Bp *b, uint64_t slots)
{
	uint32_t words = 0;
	for (uint32_t i = 0; i < b->bundles; i++)
		words = max_u32(words, b->bundle[i].words);
	return stays(b, slots) ? b->at.words : words;
}

static uint32_t scratch_for(uint32_t cache_words) { return max_u32(2 * cache_words, MIN_SCRATCH); }

bool layout_fits(const Bp *b, uint32_t cases, bool *resident)
{
	uint64_t caches = b->at.weight_cache + (uint64_t)scratch_for(cache_for(b, cases));
	*resident = stays(b, cases);
	return caches + (uint64_t)cases * b->at.case_words <= b->at.spill;
}

uint32_t layout_ends(Bp *b)
{
	Layout *at = &b->at;
	uint32_t near = b->o.disks == DISKS_ON ? 2 * chain_side(b->m) : 0;
	uint32_t first = TABLE_WORDS + 4, beside = first + near + MIN_SCRATCH + SPILL_WORDS;
	uint64_t sram = (uint64_t)b->m->sram;
	if (sram < (uint64_t)beside + at->case_words && b->ticks.each > 1)
		fail(b->cx, MP_BAD_INPUT, "use fewer ticks, a smaller network, or a machine file with more SRAM",
		     "a case of %u units in %u ticks takes %u words of SRAM, %u for each tick, beside %u for tables and "
		     "caches; %s "
		     "has %llu",
		     at->units - 1, b->ticks.each, at->case_words, at->tick_words, beside, b->m->name,
		     (unsigned long long)sram);
	if (sram < (uint64_t)beside + at->case_words)
		fail(b->cx, MP_BAD_INPUT, "use a smaller network, or a machine file with more SRAM",
		     "a case of %u units takes %u words of SRAM beside %u for tables and caches; %s has %llu", at->units - 1,
		     at->case_words, beside, b->m->name, (unsigned long long)sram);
	at->total = TABLE_WORDS;
	at->disk_near = first;
	at->spill = (uint32_t)sram - SPILL_WORDS;
	return first + near;
}

static void layout_sram(Bp *b, uint64_t slots)
{
	Layout *at = &b->at;
	at->weight_cache = layout_ends(b);
	if (b->o.sequences)
		slots = sequences_side(b);
	at->resident = stays(b, slots);
	at->cache_words = cache_for(b, slots);
	at->scratch = at->weight_cache;
	at->scratch_words = scratch_for(at->cache_words);
	at->change_cache = at->weight_cache + at->scratch_words / 2;
	at->cases = at->scratch + at->scratch_words;
	uint64_t group = at->cases < at->spill ? (at->spill - at->cases) / at->case_words : 0;
	if (!group)
		fail(b->cx, MP_BAD_INPUT, "ask for smaller bundles or a smaller network",
		     "bundles of %u weights and a case of %u words do not fit: %u words of SRAM, %s has %llu", at->cache_words,
		     at->case_words, at->cases + at->case_words + SPILL_WORDS, b->m->name, (unsigned long long)b->m->sram);
	group = b->o.group && b->o.group < group ? b->o.group : group;
	at->group = (uint32_t)(group < slots ? group : slots);
}

/* Words of DRAM for weights; the compiler of today clears changes beside them. */
static uint64_t array_words(const Bp *b)
{
	return layout_arrays(b) * b->at.words + (b->best ? 2 * (uint64_t)b->at.cache_words : 0);
}

/* Words of a buffer for so many blocks of cases: whole blocks of rows come from disks. */
static uint64_t buffer_words(const Bp *b, uint64_t blocks)
{
	return round_up(blocks * b->at.data_words, b->o.disks == DISKS_ON ? chain_side(b->m) : 1);
}

static uint64_t all_blocks(const Bp *b, uint64_t blocks)
{
	uint64_t across = (uint64_t)b->o.procs * b->at.data_side, all = (b->o.data + across - 1) / across;
	return all > blocks ? all : blocks;
}

uint64_t layout_blocks(const Bp *b, uint64_t blocks)
{
	uint64_t dram = (uint64_t)b->m->dram, arrays = array_words(b), all = all_blocks(b, blocks);
	uint64_t most = dram < arrays ? 0 : (dram - arrays) / 2 / chain_side(b->m) * chain_side(b->m) / b->at.data_words;
	if (b->o.disks != DISKS_ON || (all == blocks && buffer_words(b, all) + arrays <= dram))
		return blocks;
	return blocks < most ? blocks : most;
}

/* Data that exceed DRAM are double-buffered: one part is trained on while the next is received from disks. */
static void layout_buffers(Bp *b, uint64_t blocks)
{
	Layout *at = &b->at;
	uint64_t all = all_blocks(b, blocks);
	if (b->o.disks == DISKS_AUTO && all * at->data_words + array_words(b) > (uint64_t)b->m->dram)
		fail(b->cx, MP_BAD_INPUT, "set disks on",
		     "%llu cases for each processor do not fit into the %lld words of DRAM of %s",
		     (unsigned long long)(all * at->data_side), (long long)b->m->dram, b->m->name);
	at->data_buffers =
		b->o.disks == DISKS_ON && (all > blocks || buffer_words(b, all) + array_words(b) > (uint64_t)b->m->dram) ? 2
																												 : 1;
}

void layout_dram(Bp *b, uint64_t slots)
{
	Layout *at = &b->at;
	uint64_t dram = (uint64_t)b->m->dram, arrays = layout_arrays(b), weights = arrays * at->words;
	layout_buffers(b, slots / at->data_side);
	if (at->data_buffers > 1)
		slots = layout_blocks(b, slots / at->data_side) * at->data_side;
	uint64_t room = buffer_words(b, slots / at->data_side), cases = at->data_buffers * room;
	if (!slots || slots > dram || cases + weights > dram)
		fail(b->cx, MP_BAD_INPUT,
		     "use more processors, fewer cases (--cases or --batch), a smaller network, or a machine file with more "
		     "DRAM",
		     "%llu cases, %llu words of data, and %llu words for each of %llu weights are %llu words of DRAM; %s has "
		     "%llu",
		     (unsigned long long)slots, (unsigned long long)cases, (unsigned long long)arrays,
		     (unsigned long long)b->net->links, (unsigned long long)(cases + weights), b->m->name,
		     (unsigned long long)dram);
	at->slots = (uint32_t)slots;
	at->data = 0;
	at->buffer_words = (uint32_t)room;
	at->weights = (uint32_t)cases;
	at->changes = at->weights + at->words;
	at->states = at->changes + at->words;
	at->factors = at->states + (uint32_t)b->rule->states * at->words;
	at->dram_end = at->weights + (uint32_t)weights;
}

void layout_make(Bp *b, uint64_t slots)
{
	const Layout *at = &b->at;
	layout_case(b);
	layout_cases(b);
	layout_sram(b, slots);
	layout_dram(b, b->o.sequences ? sequences_steps(b) * at->group : slots);
}
