/* SPDX-License-Identifier: MIT */
/* Scaling: inputs mapped to 0..1 (range) or to mean 0 and deviation 1 (zscore), column by column.
 *
 * In: data as measured.  Out: the same with float32 inputs (x - offset) * factor and the two kept in d->scale, so that
 * other data can be scaled alike.  A column of one value becomes 0 everywhere.
 * Sums run in double over the cases in order, in two passes: the same bits everywhere. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data.h"

const char *const scale_names[] = { [SCALE_NONE] = "none", [SCALE_RANGE] = "range", [SCALE_ZSCORE] = "zscore" };

int scale_find(Text name)
{
	for (size_t i = 0; i < COUNT(scale_names); i++)
		if (text_is(name, scale_names[i]))
			return (int)i;
	return -1;
}

/* Minimum and maximum of every column. */
static void fit_range(const Data *d, float *row, double *low, double *high)
{
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, row);
		for (uint32_t k = 0; k < d->inputs; k++) {
			if (i == 0 || (double)row[k] < low[k])
				low[k] = (double)row[k];
			if (i == 0 || (double)row[k] > high[k])
				high[k] = (double)row[k];
		}
	}
}

static void fit_zscore(const Data *d, float *row, double *mean, double *deviation)
{
	double n = (double)d->cases;
	memset(mean, 0, d->inputs * sizeof *mean);
	memset(deviation, 0, d->inputs * sizeof *deviation);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, row);
		for (uint32_t k = 0; k < d->inputs; k++)
			mean[k] += (double)row[k];
	}
	for (uint32_t k = 0; k < d->inputs; k++)
		mean[k] /= n;
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, row);
		for (uint32_t k = 0; k < d->inputs; k++)
			deviation[k] += ((double)row[k] - mean[k]) * ((double)row[k] - mean[k]);
	}
	for (uint32_t k = 0; k < d->inputs; k++)
		deviation[k] = sqrt(deviation[k] / n);
}

/* Replaces the inputs by scaled ones. */
static void scale_inputs(Ctx *cx, Arena *arena, Data *d)
{
	data_validate(cx, d);
	float *x = NEW(arena, d->cases * d->inputs, float);
	for (uint64_t i = 0; i < d->cases; i++) {
		float *row = x + i * d->inputs;
		data_x(d, i, row);
		for (uint32_t k = 0; k < d->inputs; k++)
			row[k] = (float)(((double)row[k] - d->scale.offset[k]) * d->scale.factor[k]);
	}
	d->x = x;
	d->x_type = T_F32;
	d->x_indptr = NULL;
	d->x_indices = NULL;
	d->x_values = NULL;
	d->bytes += d->mapped ? d->cases * d->inputs * sizeof *x : 0;
	data_check(cx, d, (Loc){ 0 }); /* a scale of other data may not fit at all */
}

static void refuse_twice(Ctx *cx, const Data *d)
{
	fail(cx, MP_BAD_INPUT, "use the original data; it is scaled as the weights or the other data ask for",
	     "the inputs of %s are already scaled (%s), in another way", d->name, scale_names[d->scale.kind]);
}

void data_scale_fit(Ctx *cx, Data *d, int kind)
{
	if (kind == SCALE_NONE)
		return;
	if (d->scale.kind != SCALE_NONE)
		refuse_twice(cx, d);
	float *row = NEW(&cx->scratch, d->inputs, float);
	double *low = NEW(&cx->scratch, d->inputs, double), *high = NEW(&cx->scratch, d->inputs, double);
	double *offset = NEW(&cx->keep, d->inputs, double), *factor = NEW(&cx->keep, d->inputs, double);
	fit_range(d, row, low, high);
	if (kind == SCALE_ZSCORE)
		fit_zscore(d, row, offset, factor);
	for (uint32_t k = 0; k < d->inputs; k++) {
		bool constant = low[k] == high[k];
		double width = kind == SCALE_ZSCORE ? factor[k] : high[k] - low[k];
		if (kind == SCALE_RANGE || constant)
			offset[k] = low[k];
		factor[k] = constant ? 1 : 1 / width;
	}
	d->scale = (Scale){ kind, offset, factor };
	scale_inputs(cx, &cx->keep, d);
}

Scale scale_copy(Arena *arena, const Scale *s, uint32_t inputs)
{
	Scale copy = { s->kind, NULL, NULL };
	if (s->kind == SCALE_NONE)
		return copy;
	copy.offset = NEW(arena, inputs, double);
	copy.factor = NEW(arena, inputs, double);
	memcpy(copy.offset, s->offset, inputs * sizeof *s->offset);
	memcpy(copy.factor, s->factor, inputs * sizeof *s->factor);
	return copy;
}

void data_scale_apply(Ctx *cx, Arena *arena, Data *d, const Scale *s)
{
	size_t bytes = d->inputs * sizeof *s->offset;
	if (s->kind == SCALE_NONE)
		return;
	if (d->scale.kind == s->kind && memcmp(d->scale.offset, s->offset, bytes) == 0 &&
	    memcmp(d->scale.factor, s->factor, bytes) == 0)
		return; /* it was scaled together with the other data */
	if (d->scale.kind != SCALE_NONE)
		refuse_twice(cx, d);
	d->scale = scale_copy(arena, s, d->inputs);
	scale_inputs(cx, arena, d);
}
