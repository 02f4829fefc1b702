/* SPDX-License-Identifier: MIT */
/* Sequences over processors (section 10.5): each goes whole to one processor, so that what its network remembers
 * need not cross the switch. In: lengths of the sequences of a batch. Out: to each a bin and the step it begins at.
 *
 * A processor takes several sequences side by side, its lanes: they stand in SRAM together, and weights that are
 * fetched serve all of them. A bin is a lane of a processor, and is filled with one sequence after the other; all
 * bins take a case at a step. The longest sequence comes first, always to the bin with the fewest cases. Bins are
 * then numbered from the fullest: bin i is lane i / P of processor i mod P, so lanes run out from the last, on all
 * processors at about the same step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gf11_net.h"

/* ---- packing ---- */

struct Packer {
	uint64_t capacity; /* sequences */
	struct Sized {
		uint64_t size, index;
	} * order;        /* [capacity] sequences, later bins, by size */
	uint64_t *load;   /* [capacity] cases of a bin */
	uint64_t *heap;   /* [capacity] bins, the one with the fewest cases on top */
	uint64_t *rank;   /* [capacity] a bin's number, from the fullest */
	BpPlace *place;   /* [capacity] */
	uint64_t *length; /* [capacity] for sequences_arrange */
};

Packer *packer_new(Arena *a, uint64_t sequences)
{
	Packer *k = NEW(a, 1, Packer);
	k->capacity = sequences;
	k->order = arena_alloc(a, sequences, sizeof *k->order);
	k->load = NEW(a, sequences, uint64_t);
	k->heap = NEW(a, sequences, uint64_t);
	k->rank = NEW(a, sequences, uint64_t);
	k->place = NEW(a, sequences, BpPlace);
	k->length = NEW(a, sequences, uint64_t);
	return k;
}

uint64_t packer_capacity(const Packer *k) { return k->capacity; }

uint64_t *packer_lengths(Packer *k) { return k->length; }

static int larger_first(const void *a, const void *b)
{
	const struct Sized *x = a, *y = b;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static bool emptier(const Packer *k, uint64_t a, uint64_t b)
{
	return k->load[a] != k->load[b] ? k->load[a] < k->load[b] : a < b;
}

/* The top of the heap has become fuller. */
static void heap_settle(Packer *k, uint64_t bins)
{
	uint64_t bin = k->heap[0], at = 0;
	for (uint64_t below; (below = 2 * at + 1) < bins; at = below) {
		below += below + 1 < bins && emptier(k, k->heap[below + 1], k->heap[below]);
		if (!emptier(k, k->heap[below], bin))
			break;
		k->heap[at] = k->heap[below];
	}
	k->heap[at] = bin;
}

static void sort_by_size(Packer *k, const uint64_t *size, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		k->order[i] = (struct Sized){ size[i], i };
	qsort(k->order, count, sizeof *k->order, larger_first);
}

BpPacked sequences_pack(Packer *k, const uint64_t *length, uint64_t count, uint32_t procs, uint32_t lanes)
{
	uint64_t bins = (uint64_t)procs * lanes;
	BpPacked p = { .place = k->place };
	bins = bins < count ? bins : count;
	for (uint64_t i = 0; i < bins; i++) {
		k->load[i] = 0;
		k->heap[i] = i; /* all are empty: a heap */
	}
	sort_by_size(k, length, count);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t bin = k->heap[0];
		k->place[k->order[i].index] = (BpPlace){ bin, k->load[bin] };
		k->load[bin] += k->order[i].size;
		heap_settle(k, bins);
	}
	sort_by_size(k, k->load, bins);
	for (uint64_t i = 0; i < bins; i++)
		k->rank[k->order[i].index] = i;
	for (uint64_t i = 0; i < count; i++)
		k->place[i].bin = k->rank[k->place[i].bin];
	p.steps = bins ? k->order[0].size : 0;
	for (uint64_t i = 0; i < bins; i += procs)
		p.lane_steps += k->order[i].size;
	return p;
}

/* ---- how many lanes, how many steps ---- */

static uint64_t step_words(const Bp *b, uint32_t lanes)
{
	uint64_t banks = (uint64_t)b->m->dram_banks, words = layout_data(b);
	return b->best ? words * round_up(lanes, banks) : round_up(words, banks) * lanes;
}

/* Cycles of a pass, about: a link takes an add and a multiply, on the way back twice that. Weights are fetched
 * forward, weights and changes on the way back, and changes are flushed. */
static double pass_cycles(const Bp *b, const BpPacked *p, uint32_t lanes, bool resident)
{
	double links = (double)b->net->links, moves = 4 * links * (double)b->m->dram_interval, compute = 6 * links;
	double calls = (4 * b->plan->levels + links / 500) * (double)(b->m->host_call + 2 * b->m->alu_latency);
	if (resident)
		moves = 0;
	if (b->best)
		return (double)p->steps * ((moves > lanes * compute ? moves : lanes * compute) + calls);
	return (double)p->steps * moves + (double)p->lane_steps * (compute + calls);
}

static uint64_t longest_of(const BpSequences *s)
{
	uint64_t longest = 1;
	for (uint64_t i = 0; i < s->count; i++)
		longest = max_u64(longest, s->length[i]);
	return longest;
}

/* Do the lanes fit into SRAM, and the longest sequence into DRAM? */
static bool lanes_fit(const Bp *b, uint32_t lanes, uint64_t longest, bool *resident)
{
	uint64_t weights = layout_arrays(b) * (b->net->links + b->net->links / 8), dram = (uint64_t)b->m->dram;
	*resident = false;
	if (weights > dram || longest > (dram - weights) / step_words(b, lanes))
		return false;
	return (b->best ? best_fits : layout_fits)(b, lanes, resident);
}

/* One, two, four and so on, or as many as give every sequence a lane.  More than MOST_LANES would gain next to nothing:
 * the moves of weights are hidden, or few beside the work. */
uint32_t sequences_lanes(const Bp *b, const BpSequences *s)
{
	enum { MOST_LANES = 16 };
	uint64_t each = (s->count + b->o.procs - 1) / b->o.procs, longest = longest_of(s);
	uint32_t most = each < 1 ? 1 : each < MOST_LANES ? (uint32_t)each : MOST_LANES, best = 1;
	double least = INFINITY;
	Packer *k = packer_new(&b->cx->scratch, s->count);
	for (uint32_t lanes = 1; lanes <= most; lanes = lanes < most && 2 * lanes > most ? most : 2 * lanes) {
		bool resident, fits = lanes_fit(b, lanes, longest, &resident);
		if (lanes > 1 && !fits)
			break;
		BpPacked p = sequences_pack(k, s->length, s->count, b->o.procs, lanes);
		double cycles = pass_cycles(b, &p, lanes, resident);
		if (cycles < least) {
			best = lanes;
			least = cycles;
		}
	}
	return best;
}

uint32_t sequences_side(const Bp *b)
{
	uint32_t lanes = sequences_lanes(b, b->o.sequences);
	return lanes > b->o.sequences->lanes ? lanes : b->o.sequences->lanes;
}

/* As many steps as the largest batch takes, or as DRAM holds: then it is loaded in parts. */
uint64_t sequences_steps(const Bp *b)
{
	const BpSequences *s = b->o.sequences;
	Packer *k = packer_new(&b->cx->scratch, s->count);
	uint64_t steps = sequences_pack(k, s->length, s->count, b->o.procs, b->at.group).steps, longest = longest_of(s);
	uint64_t dram = (uint64_t)b->m->dram, weights = layout_arrays(b) * b->at.words, words = step_words(b, b->at.group);
	uint64_t most = weights < dram ? (dram - weights) / words : 0;
	if (longest > most)
		fail(
			b->cx, MP_BAD_INPUT,
			"cut it into shorter sequences, use a smaller network, or a machine file with more DRAM",
			"a sequence of %llu cases takes %llu words of data, and stays on one processor; %s has %llu words of DRAM, "
			"less %llu for weights: room for %llu cases",
			(unsigned long long)longest, (unsigned long long)(longest * words), b->m->name, (unsigned long long)dram,
			(unsigned long long)weights, (unsigned long long)most);
	steps = steps > s->steps ? steps : s->steps;
	steps = steps > longest ? steps : longest;
	return steps < most ? steps : most;
}

/* ---- a batch ---- */

static uint64_t example_at(const Batch *batch, uint64_t i)
{
	return batch->example ? batch->example[i] : batch->first + i;
}

uint64_t sequences_arrange(Packer *k, const Bp *b, const Data *d, const Batch *batch, uint64_t begin, uint64_t count,
                           BpArranged *to)
{
	uint64_t procs = b->o.procs, across = procs * b->at.group, places = procs * to->lanes * to->steps, first, length;
	BpPacked p;
	count = min_u64(count, min_u64(k->capacity, places)); /* a sequence has a case or more */
	for (uint64_t i = 0, left = places; i < count; i++) { /* not more cases than there are places */
		run_example(b->net, d, example_at(batch, begin + i), &first, &k->length[i]);
		if (k->length[i] > left)
			count = i;
		else
			left -= k->length[i];
	}
	while ((p = sequences_pack(k, k->length, count, b->o.procs, to->lanes)).steps > to->steps)
		count -= count / 8 + 1; /* as many as there are bins always fit */
	to->slots = across * p.steps;
	to->cases = 0;
	for (uint64_t i = 0; i < to->slots; i++)
		to->wanted[i] = NO_CASE;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t slot = p.place[i].begin * across + p.place[i].bin;
		run_example(b->net, d, example_at(batch, begin + i), &first, &length);
		for (uint64_t t = 0; t < length; t++, slot += across) {
			to->wanted[slot] = (first + t) | (t ? CASE_GOES_ON : 0);
			to->slot[to->cases++] = slot;
		}
	}
	return count;
}
