/* SPDX-License-Identifier: MIT */
/* Index lists of cases (CSR). In: data with such lists. Out: their shape; whether the device also gets them padded to
 * one length, as 16-bit indices; inputs by falling frequency. */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

enum { MAX_PADDED = 64 }; /* entries of a padded list */

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

static void ranks_put(Cuda *c, DeviceBound *b, const Data *d)
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

void csr_put(Cuda *c, DeviceBound *b, const Data *d)
{
	b->csr.longest = 0;
	for (uint64_t i = 0; i < d->cases; i++)
		b->csr.longest = (uint32_t)max_u64(b->csr.longest, d->x_indptr[i + 1] - d->x_indptr[i]);
	b->csr.entries = d->x_indptr[d->cases];
	b->csr.has_values = d->x_values != NULL;
	b->data.short_row = (uint32_t)round_up(b->csr.longest, 8);
	b->csr.has_padded = d->inputs < NO_INPUT && b->data.short_row <= MAX_PADDED;
	ranks_put(c, b, d);
}
