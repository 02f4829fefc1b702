/* SPDX-License-Identifier: MIT */
/* The host reads and writes weights, weight changes and rule state, beside the machine: not part of the simulated
 * time. In: vectors in the order of the links. Out: words of DRAM where the update expects them. */
#include "gf11_sum.h"

static Cell *dram_word(const Bp *b, uint64_t word, uint32_t proc)
{
	return (Cell *)(b->p->dram + (size_t)word * b->p->lanes + proc);
}

enum { WEIGHTS, CHANGES, STATES }; /* which array, as the caller counts them */

/* Words of a weight in its owner, if it has one. */
static SumHome home_of(const Bp *b, uint64_t link)
{
	return b->summing ? sum_home(b, b->place[link]) : (SumHome){ .everywhere = true };
}

/* Its word in an array that all processors have, or its owner alone. */
static uint32_t word_of(const Bp *b, const SumHome *home, int which, uint64_t link)
{
	if (which >= STATES && !home->everywhere)
		return home->state[which - STATES];
	uint32_t array = which >= STATES    ? b->at.states + (uint32_t)(which - STATES) * b->at.words
	                 : which == CHANGES ? b->at.changes
	                                    : b->at.weights;
	return array + b->place[link];
}

void bp_weights_write(Bp *b, int which, const double *v)
{
	controller_defer_calls(b->c, false); /* a pass that failed may have left some */
	b->started |= which == CHANGES;
	for (uint64_t i = 0; i < b->net->links; i++) {
		SumHome home = home_of(b, i);
		Cell *word = dram_word(b, word_of(b, &home, which, i), 0);
		for (uint32_t proc = 0; proc < b->o.procs; proc++)
			if (which < STATES || home.everywhere || proc == home.proc)
				word[proc].f = (float)v[i];
		if (which == WEIGHTS && !home.everywhere)
			dram_word(b, home.weight, home.proc)->f = (float)v[i];
	}
	if (b->c->faults && !b->o.dry) /* faults also apply to words that the host wrote */
		faults_apply_words(b->c->faults, b->p, true, b->at.weights, b->at.dram_end - b->at.weights);
}

/* Changes of the epoch before stand there until the next pass clears them. */
static bool changes_gone(const Bp *b) { return b->changes_start && !b->started; }

void bp_weights_some(const Bp *b, int which, uint32_t proc, uint64_t first, uint64_t count, double *v)
{
	for (uint64_t i = first; i < first + count; i++) {
		SumHome home = home_of(b, i);
		uint32_t word = word_of(b, &home, which, i);
		uint32_t from = which >= STATES && !home.everywhere ? home.proc : proc;
		v[i - first] = which == CHANGES && changes_gone(b) ? 0 : (double)dram_word(b, word, from)->f;
	}
}

void bp_weights_read(const Bp *b, int which, uint32_t proc, double *v)
{
	bp_weights_some(b, which, proc, 0, b->net->links, v);
}

void bp_gradient(const Bp *b, double *v)
{
	for (uint64_t i = 0; i < b->net->links; i++) {
		const Cell *word = dram_word(b, b->at.changes + b->place[i], 0);
		v[i] = 0;
		for (uint32_t proc = 0; proc < b->o.procs && !changes_gone(b); proc++)
			v[i] += (double)word[proc].f;
	}
}

/* All processors get the word of the first one. */
static void align_row(const Processors *p, uint32_t word)
{
	uint32_t *row = p->dram + (size_t)word * p->lanes, first = *row;
	for (const uint32_t *end = row + (size_t)p->blocks * LANES; row < end; row += LANES)
		for (uint32_t l = 0; l < LANES; l++)
			row[l] = first;
}

static void align_share(void *arg, uint32_t thread)
{
	const Bp *b = arg;
	uint64_t words = b->at.words, threads = b->p->threads;
	for (uint64_t i = words * thread / threads; i < words * (thread + 1) / threads; i++) {
		align_row(b->p, b->at.weights + (uint32_t)i);
		for (uint32_t k = 0; k < (uint32_t)b->rule->states; k++)
			align_row(b->p, b->at.states + k * b->at.words + (uint32_t)i);
	}
}

/* Processors that add in orders of their own drift apart by roundings, and a checkpoint holds one set of weights: the
 * host gives all of them those of the first.  What one processor sends round is the same everywhere already. */
void bp_weights_align(Bp *b)
{
	if (sum_home(b, 0).everywhere)
		pool_run(b->p->pool, align_share, b);
}
