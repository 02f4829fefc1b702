/* SPDX-License-Identifier: MIT */
/* Index lists on the device. In: data with such lists. Out: the lists as they are; filled up to one length, for
 * generated kernels; which inputs most cases have. */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

/* Index lists of 16-bit numbers, all of one length: filled up with NO_INPUT. */
static void put_short_lists(Cuda *c, DeviceBound *b, const Data *d)
{
	size_t row = b->data.short_row = (uint32_t)round_up(b->list_longest, 8);

	if (d->inputs >= NO_INPUT || row > 64)
		return;
	uint16_t *list = arena_alloc_raw(&c->cx->scratch, d->cases * row + 1, sizeof *list);
	memset(list, 0xff, d->cases * row * sizeof *list);
	for (uint64_t i = 0; i < d->cases; i++)
		for (uint64_t k = d->x_indptr[i]; k < d->x_indptr[i + 1]; k++)
			list[i * row + k - d->x_indptr[i]] = (uint16_t)d->x_indices[k];
	b->data.short_list = device_put(&b->memory, list, d->cases * row * sizeof *list);
}

typedef struct Frequency {
	uint64_t cases;
	uint32_t input;
} Frequency;

static int by_frequency(const void *a, const void *b)
{
	const Frequency *x = a, *y = b;

	if (x->cases != y->cases)
		return x->cases < y->cases ? 1 : -1;
	return x->input < y->input ? -1 : 1;
}

static void put_ranks(Cuda *c, DeviceBound *b, const Data *d)
{
	Frequency *f = NEW(&c->cx->scratch, d->inputs + 1, Frequency);
	uint32_t *rank = NEW(&c->cx->scratch, d->inputs + 1, uint32_t);

	for (uint32_t i = 0; i < d->inputs; i++)
		f[i].input = i;
	for (uint64_t i = 0; i < d->x_indptr[d->cases]; i++)
		f[d->x_indices[i]].cases++;
	qsort(f, d->inputs, sizeof *f, by_frequency);
	for (uint32_t i = 0; i < d->inputs; i++)
		rank[i] = f[i].input;
	b->data.rank = device_put(&b->memory, rank, d->inputs * sizeof *rank);
}

static void put_lists(DeviceBound *b, const Data *d)
{
	uint64_t n = d->x_indptr[d->cases];

	b->list_longest = 0;
	for (uint64_t i = 0; i < d->cases; i++)
		b->list_longest = (uint32_t)max_u64(b->list_longest, d->x_indptr[i + 1] - d->x_indptr[i]);
	b->data.from = device_put(&b->memory, d->x_indptr, (d->cases + 1) * sizeof *d->x_indptr);
	b->data.index = device_put(&b->memory, d->x_indices, n * sizeof *d->x_indices);
	b->data.value = d->x_values ? device_put(&b->memory, d->x_values, n * sizeof *d->x_values) : NULL;
}

void lists_put(Cuda *c, DeviceBound *b, const Data *d)
{
	put_lists(b, d);
	put_short_lists(c, b, d);
	put_ranks(c, b, d);
}
