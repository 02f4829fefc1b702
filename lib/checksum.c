/* SPDX-License-Identifier: MIT */
/* A number that stands for all that training sees of a data set, so that a run is resumed on the data it began with.
 * Storage counts: the same cases as index lists and as rows have different checksums.
 * And how a checksum is written. */
#include <stdio.h>
#include <xxhash.h>

#include "lib.h"

static uint64_t add(uint64_t hash, const void *bytes, uint64_t len)
{
	return bytes ? XXH3_64bits_withSeed(bytes, len, hash) : hash;
}

uint64_t data_checksum(const Data *d)
{
	uint64_t sizes[] = { d->cases, d->inputs, d->targets, d->sequences, (uint64_t)d->x_type, (uint64_t)d->y_type };
	uint64_t ones = d->x_indptr ? d->x_indptr[d->cases] : 0, targets = d->cases * d->targets;
	uint64_t h = add(0, sizes, sizeof sizes);

	h = add(h, d->x, d->cases * d->inputs * dtypes[d->x_type].size);
	h = add(h, d->x_indptr, (d->cases + 1) * sizeof *d->x_indptr);
	h = add(h, d->x_indices, ones * sizeof *d->x_indices);
	h = add(h, d->x_values, ones * sizeof *d->x_values);
	h = add(h, d->y, targets * dtypes[d->y_type].size);
	h = add(h, d->mask, targets);
	h = add(h, d->seq, (d->sequences + 1) * sizeof *d->seq);
	return add(h, d->weight, d->cases * sizeof *d->weight);
}

void digest_text(const struct XXH3_state_s *hash, char out[33])
{
	XXH128_canonical_t bytes;
	XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(hash));
	for (size_t i = 0; i < sizeof bytes.digest; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes.digest[i]);
}
