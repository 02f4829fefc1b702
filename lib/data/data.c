/* SPDX-License-Identifier: MIT */
/* Data: access to cases, packing, and notes of what a format has no place for. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data.h"
#include "system.h"

/* ---- access ---- */

void data_x(const Data *d, uint64_t i, float *row)
{
	if (!d->x_indptr) {
		dtype_row(d->x_type, d->x, i * d->inputs, d->inputs, row);
		return;
	}
	memset(row, 0, d->inputs * sizeof *row);
	for (uint64_t k = d->x_indptr[i]; k < d->x_indptr[i + 1]; k++)
		row[d->x_indices[k]] = d->x_values ? d->x_values[k] : 1.0f;
}

void data_y(const Data *d, uint64_t i, float *row)
{
	if (!d->targets)
		return;
	dtype_row(d->y_type, d->y, i * d->targets, d->targets, row);
	for (uint32_t k = 0; d->mask && k < d->targets; k++)
		if (!d->mask[i * d->targets + k])
			row[k] = NAN;
}

/* Bytes from .. from + len of a mapped file, without waiting for them. */
static void prefetch_bytes(const void *base, uint64_t from, uint64_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = ((uintptr_t)base + from) / page * page;

	if (base && len)
		madvise((void *)begin, (uintptr_t)base + from + len - begin, MADV_WILLNEED);
}

void data_prefetch(const Data *d, uint64_t first, uint64_t count)
{
	uint64_t begin, last, cases;

	if (!d->mapped || !count)
		return;
	data_example(d, first, &begin, &cases);
	data_example(d, first + count - 1, &last, &cases);
	cases += last - begin;
	if (d->x_indptr) {
		uint64_t from = d->x_indptr[begin], n = d->x_indptr[begin + cases] - from;
		prefetch_bytes(d->x_indices, from * sizeof *d->x_indices, n * sizeof *d->x_indices);
		prefetch_bytes(d->x_values, from * sizeof *d->x_values, n * sizeof *d->x_values);
	} else {
		uint64_t row = (uint64_t)d->inputs * dtypes[d->x_type].size;
		prefetch_bytes(d->x, begin * row, cases * row);
	}
	uint64_t row = (uint64_t)d->targets * dtypes[d->y_type].size;
	prefetch_bytes(d->y, begin * row, cases * row);
}

int64_t row_one_of_n(const float *row, uint32_t n)
{
	int64_t one = -1;
	for (uint32_t k = 0; k < n; k++) {
		if (row[k] == 0)
			continue;
		if (row[k] != 1 || one >= 0)
			return -1;
		one = k;
	}
	return one;
}

uint64_t data_examples(const Data *d) { return d->seq ? d->sequences : d->cases; }

void data_example(const Data *d, uint64_t e, uint64_t *first, uint64_t *count)
{
	*first = d->seq ? d->seq[e] : e;
	*count = d->seq ? d->seq[e + 1] - d->seq[e] : 1;
}

/* ---- size ---- */

/* If some arrays are mapped the reader has counted the others. */
void data_count_bytes(Data *d)
{
	if (d->mapped)
		return;
	uint64_t y = d->targets * d->cases, n = sizeof *d;
	n += d->x_indptr ? (d->cases + 1) * 8 + d->x_indptr[d->cases] * (d->x_values ? 8 : 4)
	                 : d->cases * d->inputs * dtypes[d->x_type].size;
	n += y ? y * dtypes[d->y_type].size : 0;
	n += (d->mask ? y : 0) + (d->seq ? (d->sequences + 1) * 8 : 0) + (d->weight ? d->cases * 4 : 0) +
	     (d->ticks ? d->cases * 4 : 0);
	for (uint64_t i = 0; d->names && i < d->cases; i++)
		n += sizeof(Text) + d->names[i].len;
	for (uint32_t i = 0; d->code_names && i < d->code_count; i++)
		n += sizeof(Text) + d->code_names[i].len;
	for (uint32_t i = 0; i < d->class_count; i++)
		n += sizeof *d->classes + strlen(d->classes[i]) + 1;
	for (uint32_t i = 0; i < d->columns; i++)
		n += sizeof *d->column + strlen(d->column[i].name) + 1;
	n += d->codes ? (uint64_t)d->code_count * d->targets * 8 : 0;
	n += d->scale.kind != SCALE_NONE ? (uint64_t)d->inputs * 16 : 0;
	for (uint32_t i = 0; i < d->extras; i++)
		n += sizeof(Extra) + d->extra[i].len;
	d->bytes = n;
}

/* ---- packing ---- */

enum { MIN_SPARSITY = 8 }; /* inputs per one: then index lists are smaller than bytes */

/* Number of ones if all values are 0 or 1; UINT64_MAX if not, or as soon as there are more than `limit`. */
static uint64_t count_ones(const Data *d, uint64_t cases, uint64_t limit)
{
	uint64_t count = cases * d->inputs, ones = 0;
	float chunk[256];
	for (uint64_t i = 0; i < count; i += COUNT(chunk)) {
		uint64_t n = min_u64(count - i, COUNT(chunk));
		dtype_row(d->x_type, d->x, i, n, chunk);
		for (uint64_t k = 0; k < n; k++) {
			if (chunk[k] == 1)
				ones++;
			else if (chunk[k] != 0)
				return UINT64_MAX;
		}
		if (ones > limit)
			return UINT64_MAX;
	}
	return ones;
}

void data_pack(Ctx *cx, Data *d)
{
	if (d->x_indptr || d->mapped || !d->x || d->cases == 0 || d->inputs == 0)
		return;
	uint64_t ones = count_ones(d, d->cases, d->cases * d->inputs / MIN_SPARSITY);
	if (ones == UINT64_MAX || ones >= (d->cases * d->inputs + MIN_SPARSITY - 1) / MIN_SPARSITY)
		return;
	uint64_t *indptr = NEW(&cx->keep, d->cases + 1, uint64_t), have = 0;
	uint32_t *indices = NEW(&cx->keep, ones, uint32_t);
	float *row = NEW(&cx->scratch, d->inputs, float);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, row);
		for (uint32_t k = 0; k < d->inputs; k++)
			if (row[k] != 0)
				indices[have++] = k;
		indptr[i + 1] = have;
	}
	d->x = NULL;
	d->x_indptr = indptr;
	d->x_indices = indices;
	d->x_values = NULL;
	data_count_bytes(d);
}

/* Judged by the first cases. */
static bool seems_sparse(const Data *d)
{
	uint64_t cases = min_u64(d->cases, 256);

	return count_ones(d, cases, cases * d->inputs / MIN_SPARSITY) != UINT64_MAX;
}

void data_set_inputs(Ctx *cx, Data *d, Npy *x, int place)
{
	d->x = x->data;
	d->x_type = x->type;
	if (place == ARRAYS_COPIED || x->block || (place == ARRAYS_SHARED && seems_sparse(d)))
		data_pack(cx, d);
	if (d->x)
		d->x = npy_keep(cx, d, x, place, T_COUNT);
	else
		npy_drop(cx, x);
}

void data_note_lost(Ctx *cx, const Data *d, const char *format, unsigned holds)
{
	const struct {
		bool there;
		unsigned bit;
		const char *what;
	} parts[] = {
		{ d->seq, HOLDS_SEQ, "sequence boundaries" },
		{ d->weight, HOLDS_WEIGHT, "case weights" },
		{ d->ticks, HOLDS_TICKS, "ticks of cases" },
		{ d->names, HOLDS_NAMES, "case names" },
		{ d->codes && !d->classes, HOLDS_CODES, "the code table" },
		{ d->classes, HOLDS_CODES, "names of classes" },
		{ d->scale.kind != SCALE_NONE, HOLDS_SCALE, "the scale of the inputs" },
		{ d->extras, HOLDS_EXTRA, "keys of other programs" },
		{ !columns_numbered(d), HOLDS_COLUMNS, "names of columns" },
	};
	for (size_t i = 0; i < COUNT(parts); i++)
		if (parts[i].there && !(holds & parts[i].bit))
			note(cx, "write npz to keep everything", "%s has no place for %s: left out", format, parts[i].what);
}
