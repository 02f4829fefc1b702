/* SPDX-License-Identifier: MIT */
/* Statistics of data.
 *
 * In: checked data.  Out: mp_data_info, its arrays in cx->keep: sizes, ranges, density, and the class balance, which is
 * how often each distinct target vector occurs, most frequent first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "data.h"

enum { MAX_CLASSES = 1000, SLOTS = 4096, SHOWN = 32 }; /* a vector's first 32 values name it */

typedef struct Class {
	float *y;
	uint64_t cases;
	uint32_t order;
} Class;
typedef struct Classes {
	Class item[MAX_CLASSES];
	uint32_t count;
	uint16_t slot[SLOTS]; /* 0, or number of the class + 1 */
} Classes;

static void extend_range(double v, double *min, double *max)
{
	if (!(v >= *min)) /* true of the initial NaN */
		*min = v;
	if (!(v <= *max))
		*max = v;
}

static void describe_inputs(Ctx *cx, const Data *d, mp_data_info *info)
{
	uint64_t filled = 0, all = d->cases * d->inputs;
	info->min = info->max = NAN;
	if (d->x_indptr) {
		uint64_t count = d->x_indptr[d->cases];
		for (uint64_t i = 0; i < count; i++) {
			double v = d->x_values ? (double)d->x_values[i] : 1;
			filled += v != 0;
			extend_range(v, &info->min, &info->max);
		}
		if (count < all)
			extend_range(0, &info->min, &info->max);
	} else {
		float *row = NEW(&cx->scratch, d->inputs, float), low = INFINITY, high = -INFINITY;
		for (uint64_t i = 0; i < d->cases; i++) {
			data_x(d, i, row);
			for (uint32_t k = 0; k < d->inputs; k++) {
				filled += row[k] != 0;
				low = row[k] < low ? row[k] : low;
				high = row[k] > high ? row[k] : high;
			}
		}
		if (low <= high) { /* there are some; all are finite */
			info->min = (double)low;
			info->max = (double)high;
		}
	}
	info->density = (double)filled / (double)all;
}

/* Counts the vector; false once there are too many distinct ones. */
static bool class_add(Ctx *cx, Classes *c, const float *y, uint32_t targets)
{
	size_t bytes = targets * sizeof *y;
	uint64_t at = XXH3_64bits(y, bytes) % SLOTS;
	for (; c->slot[at]; at = (at + 1) % SLOTS) {
		Class *k = &c->item[c->slot[at] - 1];
		if (memcmp(k->y, y, bytes) == 0) {
			k->cases++;
			return true;
		}
	}
	if (c->count == MAX_CLASSES)
		return false;
	Class *k = &c->item[c->count];
	k->y = NEW(&cx->scratch, targets, float);
	memcpy(k->y, y, bytes);
	k->cases = 1;
	k->order = c->count++;
	c->slot[at] = (uint16_t)c->count;
	return true;
}

static int by_count(const void *a, const void *b)
{
	const Class *p = a, *q = b;
	if (p->cases != q->cases)
		return p->cases < q->cases ? 1 : -1;
	return p->order < q->order ? -1 : 1;
}

static const Text *code_name(const Data *d, const float *y)
{
	for (uint32_t c = 0; d->code_names && c < d->code_count; c++) {
		const double *code = d->codes + (size_t)c * d->targets;
		uint32_t k = 0;
		while (k < d->targets && (float)code[k] == y[k])
			k++;
		if (k == d->targets)
			return &d->code_names[c];
	}
	return NULL;
}

static const char *class_name(Ctx *cx, const Data *d, const float *y)
{
	Buf b = { .arena = &cx->keep };
	const Text *code = code_name(d, y);
	int64_t index = d->targets > 1 ? row_one_of_n(y, d->targets) : -1;
	if (code)
		return arena_copy(&cx->keep, code->s, code->len);
	if (index >= 0) {
		buf_printf(&b, "%lld", (long long)index);
		return b.s;
	}
	for (uint32_t k = 0; k < d->targets && k < SHOWN; k++) {
		if (k)
			buf_puts(&b, " ");
		if (isnan(y[k]))
			buf_puts(&b, "?");
		else
			buf_printf(&b, "%g", (double)y[k]);
	}
	if (d->targets > SHOWN)
		buf_puts(&b, " ...");
	return b.s;
}

static void name_classes(Ctx *cx, const Data *d, Classes *c, mp_data_info *info)
{
	uint64_t *cases = NEW(&cx->keep, c->count, uint64_t);
	const char **names = NEW(&cx->keep, c->count, const char *);
	qsort(c->item, c->count, sizeof c->item[0], by_count);
	for (uint32_t i = 0; i < c->count; i++) {
		cases[i] = c->item[i].cases;
		names[i] = class_name(cx, d, c->item[i].y);
	}
	info->classes = c->count;
	info->class_cases = cases;
	info->class_names = names;
}

static void describe_targets(Ctx *cx, const Data *d, mp_data_info *info)
{
	if (!d->targets)
		return;
	info->target_min = info->target_max = NAN;
	Classes *classes = NEW(&cx->scratch, 1, Classes);
	float *row = NEW(&cx->scratch, d->targets, float);
	bool few = true;
	for (uint64_t i = 0; i < d->cases; i++) {
		uint32_t missing = 0;
		data_y(d, i, row);
		for (uint32_t k = 0; k < d->targets; k++) {
			if (isnan(row[k])) {
				row[k] = NAN; /* one NaN and one zero: equal vectors have equal bytes */
				missing++;
			} else {
				row[k] += 0.0f;
				extend_range((double)row[k], &info->target_min, &info->target_max);
			}
		}
		info->missing += missing;
		if (few && missing < d->targets)
			few = class_add(cx, classes, row, d->targets);
	}
	if (isnan(info->target_min)) /* there is not one target */
		info->target_min = info->target_max = 0;
	if (few)
		name_classes(cx, d, classes, info);
}

void data_describe(Ctx *cx, const Data *d, mp_data_info *info)
{
	memset(info, 0, sizeof *info);
	info->name = d->name;
	info->storage = d->x_indptr ? "index" : dtypes[d->x_type].name;
	info->cases = d->cases;
	info->sequences = d->sequences;
	info->inputs = d->inputs;
	info->targets = d->targets;
	info->bytes = d->bytes;
	info->mapped = d->mapped;
	info->weighted = d->weight != NULL;
	info->named = d->names != NULL;
	info->scale = scale_names[d->scale.kind];
	info->codes = d->code_count;
	info->extras = d->extras;
	const char **extra = NEW(&cx->keep, d->extras, const char *);
	for (uint32_t i = 0; i < d->extras; i++)
		extra[i] = d->extra[i].key;
	info->extra = extra;
	describe_inputs(cx, d, info);
	describe_targets(cx, d, info);
}
