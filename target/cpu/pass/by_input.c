/* SPDX-License-Identifier: MIT */
/* Index lists by input. In: the data that is bound, whose lists are by case, and how a run cuts it into chunks.
 * Out: for each chunk and each input the rows that have it. In the gradient sums of an input then stay in registers
 * while the deltas of its rows are added, instead of going to the cache and back for each.
 *
 * Unless examples are shuffled chunks are the same in every epoch, so each is turned once: when it is first in
 * hand, by the thread that works on it. Must hold: rows of an input are in order, for so are sums. */
#include <stdlib.h>
#include <string.h>

#include "pass.h"

enum {
	MOST_MIB = 256, /* lists are turned if that takes no more, */
	LEAST_ROWS = 3  /* and if an input has so many rows of a chunk on average: with fewer there is nothing to gain */
};

typedef struct ByInput {
	uint32_t chunks;
	uint64_t *begin;  /* [chunks + 1] first cases */
	InputRows *lists; /* [chunks] without runs: not turned yet */
	InputRun *run;    /* [chunks][inputs] */
	uint16_t *row;    /* as many as there are indices, those of a chunk in the places of its indices; */
	float *value;     /* so are these */
	uint32_t *next;   /* [threads][inputs] where the next row of an input goes */
} ByInput;

/* Cases of a batch; all of them if it is pooled.  0: they are shuffled. */
static uint64_t batch_cases(const Options *opt, uint64_t cases)
{
	uint64_t batch = opt->batch == BATCH_ALL || (uint64_t)opt->batch > cases ? cases : (uint64_t)opt->batch;
	bool shuffled = opt->shuffle < 0 ? batch < cases : opt->shuffle != 0;

	return shuffled ? 0 : batch;
}

/* Cuts all cases as batch.c does.  begin: NULL, or where first cases go; returns how many chunks there are. */
static uint64_t cut(const Program *p, uint64_t batch, uint64_t *begin)
{
	uint64_t cases = p->data->cases, chunk = p->space[0].chunk, chunks = 0;

	for (uint64_t at = 0, count; at < cases; at += count) {
		count = cases - at < batch ? cases - at : batch;
		uint32_t leaves = leaf_count(count);
		for (uint32_t leaf = 0; leaf < leaves; leaf++) {
			uint64_t first, n;
			leaf_range(count, leaves, leaf, &first, &n);
			for (uint64_t i = 0; i < n; i += chunk, chunks++)
				if (begin)
					begin[chunks] = at + first + i;
		}
	}
	if (begin)
		begin[chunks] = cases;
	return chunks;
}

ByInput *by_input_make(Arena *a, const Program *p)
{
	const Data *d = p->data;
	uint64_t batch = batch_cases(p->opt, d->cases);

	if (!p->index || p->net->copies || d->seq || !batch || p->space[0].chunk > UINT16_MAX)
		return NULL;
	uint64_t ones = d->x_indptr[d->cases], chunks = cut(p, batch, NULL);
	if (ones / LEAST_ROWS / d->inputs < chunks ||
	    ones > ((uint64_t)MOST_MIB << 20) / (sizeof(InputRun) + sizeof(uint16_t) + sizeof(float)))
		return NULL;
	ByInput *t = NEW(a, 1, ByInput);
	t->chunks = (uint32_t)chunks;
	t->begin = NEW(a, chunks + 1, uint64_t);
	t->lists = NEW(a, chunks, InputRows);
	t->run = arena_alloc_raw(a, chunks * d->inputs, sizeof *t->run);
	t->row = arena_alloc_raw(a, ones, sizeof *t->row);
	t->value = d->x_values ? arena_alloc_raw(a, ones, sizeof *t->value) : NULL;
	t->next = NEW(a, (size_t)p->threads * d->inputs, uint32_t);
	cut(p, batch, t->begin);
	return t;
}

/* Runs as long as the one before end where the CPU expects them to. */
static int fewer_rows(const void *a, const void *b)
{
	const InputRun *x = a, *y = b;

	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->source < y->source ? -1 : x->source > y->source;
}

static void turn(const ByInput *t, const Data *d, uint32_t chunk, uint32_t *next)
{
	uint64_t first = t->begin[chunk], end = t->begin[chunk + 1], at = d->x_indptr[first];
	InputRun *run = t->run + (uint64_t)chunk * d->inputs;
	uint32_t rows = 0;

	for (uint32_t i = 0; i < d->inputs; i++)
		run[i] = (InputRun){ i, 0 };
	for (uint64_t k = at; k < d->x_indptr[end]; k++)
		run[d->x_indices[k]].end++;
	qsort(run, d->inputs, sizeof *run, fewer_rows);
	for (uint32_t i = 0; i < d->inputs; i++) {
		next[run[i].source] = rows;
		rows += run[i].end;
		run[i].end = rows;
	}
	for (uint64_t i = first; i < end; i++)
		for (uint64_t k = d->x_indptr[i]; k < d->x_indptr[i + 1]; k++) {
			uint64_t place = at + next[d->x_indices[k]]++;
			t->row[place] = (uint16_t)(i - first);
			if (t->value)
				t->value[place] = d->x_values[k];
		}
	t->lists[chunk] =
		(InputRows){ .runs = d->inputs, .run = run, .row = t->row + at, .value = t->value ? t->value + at : NULL };
}

const InputRows *by_input_rows(const Program *p, const Space *s, uint32_t rows)
{
	const ByInput *t = p->by_input;
	uint32_t low = 0, high = t ? t->chunks : 0;

	if (!t || !s->in_turn)
		return NULL;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (t->begin[middle] <= s->cases[0])
			low = middle;
		else
			high = middle;
	}
	if (t->begin[low] != s->cases[0] || t->begin[low + 1] - t->begin[low] != rows)
		return NULL;
	if (!t->lists[low].run)
		turn(t, p->data, low, t->next + (size_t)(s - p->space) * p->data->inputs);
	return &t->lists[low];
}
