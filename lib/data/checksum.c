/* SPDX-License-Identifier: MIT */
/* A number that stands for all that training sees of a data set, so that a run is resumed on the data it began
 * with, and ranks of a job train on the same. In: Data, or some of its cases. Out: checksums; those of cases add up
 * to that of the data. Must hold: how data is stored makes no difference: rows, index lists, bytes, a mask or NaN;
 * for a rank may read it in another way. And how a checksum is written. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "data.h"

/* A row is cut into pieces; those of zeros count for nothing, so that of index lists only few have to be written
 * out. */
enum { ROW_PIECE = 256 };

static uint64_t add(uint64_t hash, const void *bytes, uint64_t len)
{
	return bytes ? XXH3_64bits_withSeed(bytes, len, hash) : hash;
}

/* Of equal numbers, equal bits. */
static uint64_t add_piece(uint64_t hash, uint32_t piece, float *v, uint32_t count)
{
	uint32_t bits, any = 0;

	for (uint32_t k = 0; k < count; k++) {
		v[k] += 0.0f; /* no -0 */
		memcpy(&bits, &v[k], sizeof bits);
		any |= bits;
	}
	return any ? add(hash + piece, v, count * sizeof *v) : hash;
}

static uint64_t add_dense(uint64_t hash, DType type, const void *v, uint64_t first, uint32_t columns)
{
	float row[ROW_PIECE];

	for (uint32_t k = 0; k < columns; k += ROW_PIECE) {
		uint32_t count = columns - k < ROW_PIECE ? columns - k : ROW_PIECE;
		dtype_row(type, v, first + k, count, row);
		hash = add_piece(hash, k / ROW_PIECE, row, count);
	}
	return hash;
}

static uint64_t add_list(uint64_t hash, const Data *d, uint64_t i)
{
	float row[ROW_PIECE];

	for (uint64_t k = d->x_indptr[i], end = d->x_indptr[i + 1]; k < end;) {
		uint32_t piece = d->x_indices[k] / ROW_PIECE, first = piece * ROW_PIECE;
		uint32_t count = d->inputs - first < ROW_PIECE ? d->inputs - first : ROW_PIECE;
		memset(row, 0, sizeof row);
		for (; k < end && d->x_indices[k] - first < count; k++)
			row[d->x_indices[k] - first] = d->x_values ? d->x_values[k] : 1.0f;
		hash = add_piece(hash, piece, row, count);
	}
	return hash;
}

/* What has no target is one and the same NaN. */
static uint64_t add_targets(uint64_t hash, const Data *d, uint64_t i)
{
	float row[ROW_PIECE];

	for (uint32_t k = 0; k < d->targets; k += ROW_PIECE) {
		uint32_t count = d->targets - k < ROW_PIECE ? d->targets - k : ROW_PIECE;
		uint64_t first = i * d->targets + k;
		dtype_row(d->y_type, d->y, first, count, row);
		for (uint32_t j = 0; j < count; j++)
			row[j] = isnan(row[j]) || (d->mask && !d->mask[first + j]) ? NAN : row[j];
		hash = add_piece(hash, k / ROW_PIECE, row, count);
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
