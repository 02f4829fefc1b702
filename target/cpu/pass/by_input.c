/* SPDX-License-Identifier: MIT */
/* Transposed index lists (CSC of a chunk). In: the bound data, whose lists are by case (CSR), and how a run cuts it
 * into chunks. Out: for each chunk and each input the rows that have it. The gradient of an input's weights then stays
 * in registers while the deltas of its rows are added, instead of going to the cache and back for each.
 *
 * Unless examples are shuffled chunks are the same in every epoch, so each is transposed once: when it is first used,
 * by the thread that computes it, without allocating. Must hold: rows of an input are in order, for so are sums. */
#include <string.h>

#include "pass.h"

enum {
	MOST_MIB = 256, /* lists are transposed if that takes no more, */
	LEAST_ROWS = 3  /* and if an input has this many rows of a chunk on average: below, nothing is gained */
};

typedef struct ByInput {
	uint32_t chunks;
	uint64_t *begin;    /* [chunks + 1] first cases */
	InputRows *lists;   /* [chunks] run NULL: not transposed yet */
	uint64_t *checksum; /* [chunks] of a list and all it points to, while a guard is attached */
	InputRun *run;      /* [chunks][inputs] */
	uint16_t *row;      /* as many as there are indices, those of a chunk in the places of its indices; */
	float *value;       /* so are these */
	uint32_t *next;     /* [threads][inputs] how many rows an input has; then where its next row goes */
	uint32_t *counts;   /* [threads][chunk rows + 2] of a counting sort */
	uint32_t most;      /* rows of a chunk */
} ByInput;

/* Cases of a batch.  0: they are shuffled. */
static uint64_t batch_cases(const Options *opt, uint64_t cases)
{
	uint64_t batch = opt->batch == BATCH_ALL || (uint64_t)opt->batch > cases ? cases : (uint64_t)opt->batch;
	bool shuffled = opt->shuffle < 0 ? batch < cases : opt->shuffle != 0;

	return shuffled ? 0 : batch;
}

/* Cuts all cases as batch.c does.  begin: NULL, or where first cases go; returns how many chunks there are. */
static uint64_t cut(const Bound *b, uint64_t batch, uint64_t *begin)
{
	uint64_t cases = b->data->cases, chunks = 0;

	for (uint64_t at = 0, count; at < cases; at += count) {
		count = min_u64(cases - at, batch);
		uint32_t leaves = leaf_count(count);
		for (uint32_t leaf = 0; leaf < leaves; leaf++) {
			uint64_t first, n;
			leaf_range(count, leaves, leaf, &first, &n);
			for (uint64_t i = 0; i < n; i += b->chunk, chunks++)
				if (begin)
					begin[chunks] = at + first + i;
		}
	}
	if (begin)
		begin[chunks] = cases;
	return chunks;
}

ByInput *by_input_make(const Program *p, Bound *b)
{
	Arena *a = &b->work;
	const Data *d = b->data;
	uint64_t batch = batch_cases(p->opt, d->cases);

	if (!b->index || p->net->timed || d->seq || !batch || b->chunk > UINT16_MAX)
		return NULL;
	uint64_t ones = d->x_indptr[d->cases], chunks = cut(b, batch, NULL);
	if (ones / LEAST_ROWS / d->inputs < chunks ||
	    ones > ((uint64_t)MOST_MIB << 20) / (sizeof(InputRun) + sizeof(uint16_t) + sizeof(float)))
		return NULL;
	ByInput *t = NEW(&b->arena, 1, ByInput);
	t->chunks = (uint32_t)chunks;
	t->most = b->chunk;
	t->begin = NEW(&b->arena, chunks + 1, uint64_t);
	t->lists = NEW(a, chunks, InputRows);
	t->checksum = NEW(a, chunks, uint64_t);
	t->run = arena_alloc_raw(a, chunks * d->inputs, sizeof *t->run);
	t->row = arena_alloc_raw(a, ones, sizeof *t->row);
	t->value = d->x_values ? arena_alloc_raw(a, ones, sizeof *t->value) : NULL;
	t->next = NEW(a, (size_t)p->threads * d->inputs, uint32_t);
	t->counts = NEW(a, (size_t)p->threads * (t->most + 2), uint32_t);
	cut(b, batch, t->begin);
	return t;
}

/* Inputs by the number of their rows, and with equal numbers in order: the loop over a run that is as long as the one
 * before ends where the CPU predicts. */
static void sort_runs(uint32_t inputs, const uint32_t *rows, uint32_t *counts, uint32_t most, InputRun *run)
{
	memset(counts, 0, (most + 2) * sizeof *counts);
	for (uint32_t i = 0; i < inputs; i++)
		counts[min_u32(rows[i], most) + 1]++;
	for (uint32_t n = 0; n <= most; n++)
		counts[n + 1] += counts[n];
	for (uint32_t i = 0; i < inputs; i++)
		run[counts[min_u32(rows[i], most)]++] = (InputRun){ i, rows[i] };
}

static void transpose(const ByInput *t, const Data *d, uint32_t chunk, uint32_t thread)
{
	uint64_t first = t->begin[chunk], end = t->begin[chunk + 1], at = d->x_indptr[first];
	InputRun *run = t->run + (uint64_t)chunk * d->inputs;
	uint32_t rows = 0, *next = t->next + (size_t)thread * d->inputs;

	memset(next, 0, d->inputs * sizeof *next);
	for (uint64_t k = at; k < d->x_indptr[end]; k++)
		next[d->x_indices[k]]++;
	sort_runs(d->inputs, next, t->counts + (size_t)thread * (t->most + 2), t->most, run);
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

static uint64_t checksum_add(const Program *p, uint64_t sum, const void *at, uint64_t bytes)
{
	for (uint64_t from = 0; from < bytes; from += CHECKSUM_BLOCK)
		sum = 3 * sum + p->kern->checksum((const uint8_t *)at + from, checksum_block_size(bytes, from), 0);
	return sum;
}

static uint64_t list_checksum(const Program *p, const ByInput *t, uint32_t chunk)
{
	const Data *d = p->bound->data;
	uint64_t at = d->x_indptr[t->begin[chunk]], n = d->x_indptr[t->begin[chunk + 1]] - at;
	uint64_t sum = checksum_add(p, 1, &t->lists[chunk], sizeof *t->lists);

	sum = checksum_add(p, sum, t->run + (uint64_t)chunk * d->inputs, d->inputs * sizeof *t->run);
	sum = checksum_add(p, sum, t->row + at, n * sizeof *t->row);
	return t->value ? checksum_add(p, sum, t->value + at, n * sizeof *t->value) : sum;
}

const InputRows *by_input_rows(const Program *p, const Space *s, uint32_t rows)
{
	const ByInput *t = p->bound->by_input;
	uint32_t low = 0, high = t ? t->chunks : 0;

	if (!t || !s->chunk.contiguous)
		return NULL;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (t->begin[middle] <= s->chunk.cases[0])
			low = middle;
		else
			high = middle;
	}
	if (t->begin[low] != s->chunk.cases[0] || t->begin[low + 1] - t->begin[low] != rows)
		return NULL;
	bool checked = p->monitor && p->monitor->check_sums;
	if (t->lists[low].run && checked && list_checksum(p, t, low) != t->checksum[low]) {
		t->lists[low].run = NULL;
		__atomic_fetch_add(&p->monitor->corrupted_lists, 1, __ATOMIC_RELAXED);
	}
	if (!t->lists[low].run) {
		transpose(t, p->bound->data, low, (uint32_t)(s - p->space));
		t->checksum[low] = checked ? list_checksum(p, t, low) : 0;
	}
	return &t->lists[low];
}

void by_input_forget(const Program *p)
{
	const ByInput *t = p->bound ? p->bound->by_input : NULL;

	for (uint32_t i = 0; t && i < t->chunks; i++)
		t->lists[i].run = NULL;
}
