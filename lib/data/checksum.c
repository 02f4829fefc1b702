/* SPDX-License-Identifier: MIT */
/* A checksum of all that training sees of a data set: a run is resumed on the data it began with, and all ranks train
 * on the same.  In: Data, or some of its cases.  Out: checksums; those of ranges of cases add up.
 * Must hold: storage makes no difference (rows, CSR, bytes, a mask or NaN), because ranks may store it differently. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "data.h"

/* Rows are hashed by slices; slices of zeros are skipped, so that only few of a CSR row are expanded. */
enum { SLICE = 256 };

static uint64_t add(uint64_t hash, const void *bytes, uint64_t len)
{
	return bytes ? XXH3_64bits_withSeed(bytes, len, hash) : hash;
}

/* Equal numbers have equal bits. */
static uint64_t add_slice(uint64_t hash, uint32_t slice, float *v, uint32_t count)
{
	uint32_t bits, any = 0;

	for (uint32_t k = 0; k < count; k++) {
		v[k] += 0.0f; /* no -0 */
		memcpy(&bits, &v[k], sizeof bits);
		any |= bits;
	}
	return any ? add(hash + slice, v, count * sizeof *v) : hash;
}

static uint64_t add_dense(uint64_t hash, DType type, const void *v, uint64_t first, uint32_t columns)
{
	float row[SLICE];

	for (uint32_t k = 0; k < columns; k += SLICE) {
		uint32_t count = min_u32(columns - k, SLICE);
		dtype_row(type, v, first + k, count, row);
		hash = add_slice(hash, k / SLICE, row, count);
	}
	return hash;
}

static uint64_t add_list(uint64_t hash, const Data *d, uint64_t i)
{
	float row[SLICE];

	for (uint64_t k = d->x_indptr[i], end = d->x_indptr[i + 1]; k < end;) {
		uint32_t slice = d->x_indices[k] / SLICE, first = slice * SLICE;
		uint32_t count = min_u32(d->inputs - first, SLICE);
		memset(row, 0, sizeof row);
		for (; k < end && d->x_indices[k] - first < count; k++)
			row[d->x_indices[k] - first] = d->x_values ? d->x_values[k] : 1.0f;
		hash = add_slice(hash, slice, row, count);
	}
	return hash;
}

/* All missing targets are the same NaN. */
static uint64_t add_targets(uint64_t hash, const Data *d, uint64_t i)
{
	float row[SLICE];

	for (uint32_t k = 0; k < d->targets; k += SLICE) {
		uint32_t count = min_u32(d->targets - k, SLICE);
		uint64_t first = i * d->targets + k;
		dtype_row(d->y_type, d->y, first, count, row);
		for (uint32_t j = 0; j < count; j++)
			row[j] = isnan(row[j]) || (d->mask && !d->mask[first + j]) ? NAN : row[j];
		hash = add_slice(hash, k / SLICE, row, count);
	}
	return hash;
}

uint64_t cases_checksum(const Data *d, uint64_t first, uint64_t end)
{
	uint64_t sum = 0;

	for (uint64_t i = first; i < end; i++) {
		uint64_t hash = i * 0x9E3779B97F4A7C15u;
		hash = d->x_indptr ? add_list(hash, d, i) : add_dense(hash, d->x_type, d->x, i * d->inputs, d->inputs);
		hash = add_targets(hash + 1, d, i);
		if (d->ticks)
			hash = add(hash, &d->ticks[i], sizeof *d->ticks);
		sum += add(hash, d->weight ? &d->weight[i] : NULL, sizeof *d->weight);
	}
	return sum;
}

uint64_t data_checksum_with(const Data *d, uint64_t of_cases)
{
	uint64_t sizes[] = { d->cases, d->inputs, d->targets, d->sequences, of_cases };

	return add(add(0, sizes, sizeof sizes), d->seq, (d->sequences + 1) * sizeof *d->seq);
}

uint64_t data_checksum(const Data *d) { return data_checksum_with(d, cases_checksum(d, 0, d->cases)); }
