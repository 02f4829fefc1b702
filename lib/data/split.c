/* SPDX-License-Identifier: MIT */
/* Splits of data: a random share of the examples, the rest, or the first cases.
 *
 * In: data.  Out: data of its own memory with some of the examples in their old order, and all that belongs to them:
 * names, weights, masks, codes, classes, scale, keys of other programs.  Sequences stay whole; index lists stay index
 * lists. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data.h"

/* Consecutive cases. */
typedef struct Slice {
	uint64_t first, count;
} Slice;
typedef struct Pick {
	Slice *slice;
	uint64_t slices, cap, cases;
} Pick;

static void pick_add(Ctx *cx, Pick *p, uint64_t first, uint64_t count)
{
	p->cases += count;
	if (p->slices && p->slice[p->slices - 1].first + p->slice[p->slices - 1].count == first) {
		p->slice[p->slices - 1].count += count;
		return;
	}
	p->slice = arena_reserve(&cx->scratch, p->slice, p->slices, &p->cap, sizeof *p->slice);
	p->slice[p->slices++] = (Slice){ first, count };
}

/* Rows of `width` bytes, those of the picked cases, to `out`. */
static void copy_rows(const Pick *p, const void *from, size_t width, void *out)
{
	char *to = out;
	for (uint64_t i = 0; i < p->slices; i++) {
		size_t len = p->slice[i].count * width;
		if (len)
			memcpy(to, (const char *)from + p->slice[i].first * width, len);
		to += len;
	}
}

static void *take_rows(Ctx *cx, const Pick *p, const void *from, size_t width)
{
	if (!from)
		return NULL;
	void *out = arena_alloc(&cx->keep, p->cases, width);
	copy_rows(p, from, width, out);
	return out;
}

static void *copy_all(Ctx *cx, const void *from, uint64_t count, size_t size)
{
	if (!from)
		return NULL;
	void *out = arena_alloc(&cx->keep, count, size);
	if (count)
		memcpy(out, from, count * size);
	return out;
}

static void take_lists(Ctx *cx, const Pick *p, const Data *d, Data *part)
{
	uint64_t *indptr = NEW(&cx->keep, p->cases + 1, uint64_t), n = 0, have = 0;
	for (uint64_t i = 0; i < p->slices; i++)
		for (uint64_t k = p->slice[i].first; k < p->slice[i].first + p->slice[i].count; k++) {
			have += d->x_indptr[k + 1] - d->x_indptr[k];
			indptr[++n] = have;
		}
	uint32_t *indices = NEW(&cx->keep, have, uint32_t);
	float *values = d->x_values ? NEW(&cx->keep, have, float) : NULL;
	have = 0;
	for (uint64_t i = 0; i < p->slices; i++) {
		uint64_t from = d->x_indptr[p->slice[i].first];
		uint64_t count = d->x_indptr[p->slice[i].first + p->slice[i].count] - from;
		if (count)
			memcpy(indices + have, d->x_indices + from, count * sizeof *indices);
		if (count && values)
			memcpy(values + have, d->x_values + from, count * sizeof *values);
		have += count;
	}
	part->x_indptr = indptr;
	part->x_indices = indices;
	part->x_values = values;
}

static const Text *copy_texts(Ctx *cx, const Text *from, uint64_t count)
{
	if (!from)
		return NULL;
	Text *t = copy_all(cx, from, count, sizeof *t);
	assert(t);
	size_t total = 0;
	for (uint64_t i = 0; i < count; i++)
		total += t[i].len;
	char *pool = NEW(&cx->keep, total + 1, char);
	for (uint64_t i = 0; i < count; i++) {
		if (t[i].len)
			memcpy(pool, t[i].s, t[i].len);
		t[i].s = pool;
		pool += t[i].len;
	}
	return t;
}

/* Sequences of the picked cases: every boundary of d inside a slice, and the end of each slice. */
static void take_sequences(Ctx *cx, const Pick *p, const Data *d, Data *part)
{
	uint64_t *seq = NEW(&cx->scratch, d->sequences + 1, uint64_t), n = 0, done = 0, s = 0;
	for (uint64_t i = 0; i < p->slices; i++) {
		uint64_t first = p->slice[i].first, end = first + p->slice[i].count;
		while (d->seq[s] < first)
			s++;
		for (; s < d->sequences && d->seq[s + 1] <= end; s++)
			seq[++n] = done + d->seq[s + 1] - first;
		done += p->slice[i].count;
	}
	part->seq = copy_all(cx, seq, n + 1, sizeof *seq);
	part->sequences = n;
}

/* An array of another program with one row per case is split too; any other is copied. */
static Extra take_extra(Ctx *cx, const Pick *p, const Data *d, const Extra *e)
{
	Npy a;
	Extra out = { arena_copy(&cx->keep, e->key, strlen(e->key)), NULL, e->len };
	if (!npy_peek(e->npy, e->len, &a) || a.dims == 0 || a.dim[0] != d->cases || (a.fortran && a.dims > 1)) {
		out.npy = copy_all(cx, e->npy, e->len, 1);
		return out;
	}
	char head[NPY_HEADER];
	size_t row = a.count / d->cases * a.width;
	a.dim[0] = p->cases;
	size_t n = npy_header_like(&a, a.dim, a.dims, head, sizeof head);
	out.len = n + p->cases * row;
	char *bytes = NEW(&cx->keep, out.len, char);
	memcpy(bytes, head, n);
	copy_rows(p, a.data, row, bytes + n);
	out.npy = bytes;
	return out;
}

static void take_extras(Ctx *cx, const Pick *p, const Data *d, Data *part)
{
	part->extras = d->extras;
	part->extra = NEW(&cx->keep, d->extras, Extra);
	for (uint32_t i = 0; i < d->extras; i++)
		part->extra[i] = take_extra(cx, p, d, &d->extra[i]);
}

static void take_tables(Ctx *cx, const Data *d, Data *part)
{
	part->code_count = d->code_count;
	part->codes = copy_all(cx, d->codes, (uint64_t)d->code_count * d->targets, sizeof *d->codes);
	if (d->code_names)
		part->code_names = copy_texts(cx, d->code_names, d->code_count);
	part->classes = classes_copy(&cx->keep, d->classes, d->class_count);
	part->class_count = d->class_count;
	part->column = columns_copy(&cx->keep, d->column, d->columns);
	part->columns = d->columns;
	if (d->scale.kind != SCALE_NONE) {
		part->scale.kind = d->scale.kind;
		part->scale.offset = copy_all(cx, d->scale.offset, d->inputs, sizeof *d->scale.offset);
		part->scale.factor = copy_all(cx, d->scale.factor, d->inputs, sizeof *d->scale.factor);
	}
}

static Data *pick_take(Ctx *cx, const Pick *p, const Data *d)
{
	Data *part = NEW(&cx->keep, 1, Data);
	part->name = arena_copy(&cx->keep, d->name, strlen(d->name));
	part->cases = p->cases;
	part->inputs = d->inputs;
	part->targets = d->targets;
	part->x_type = d->x_type;
	part->y_type = d->y_type;
	if (d->x_indptr)
		take_lists(cx, p, d, part);
	else
		part->x = take_rows(cx, p, d->x, (size_t)d->inputs * dtypes[d->x_type].size);
	if (d->targets) {
		part->y = take_rows(cx, p, d->y, (size_t)d->targets * dtypes[d->y_type].size);
		part->mask = take_rows(cx, p, d->mask, d->targets);
	}
	part->weight = take_rows(cx, p, d->weight, sizeof *d->weight);
	part->ticks = take_rows(cx, p, d->ticks, sizeof *d->ticks);
	if (d->names) {
		Text *names = NEW(&cx->scratch, p->cases, Text);
		copy_rows(p, d->names, sizeof *names, names);
		part->names = copy_texts(cx, names, p->cases);
	}
	if (d->seq)
		take_sequences(cx, p, d, part);
	take_tables(cx, d, part);
	take_extras(cx, p, d, part);
	data_check(cx, part, (Loc){ 0 }); /* also counts its bytes */
	return part;
}

/* Picks exactly round(share * examples) of the examples, each subset being as likely as any other: example e is taken
 * with probability (still wanted) / (still to come). */
Data *data_split(Ctx *cx, const Data *d, double share, uint64_t seed, bool rest)
{
	uint64_t n = data_examples(d);
	if (!(share > 0 && share < 1))
		fail(cx, MP_BAD_INPUT, "give a share between 0 and 1, such as 0.8", "data cannot be split at %g", share);
	if (n < 2)
		fail(cx, MP_BAD_INPUT, "use the data as it is", "%s has one example only and cannot be split", d->name);
	double exact = floor(share * (double)n + 0.5);
	uint64_t wanted = exact < 1 ? 1 : exact > (double)(n - 1) ? n - 1 : (uint64_t)exact;
	Pick p = { 0 };
	for (uint64_t e = 0; e < n; e++) {
		double u = ldexp((double)(random_u64(seed, STREAM_SPLIT, e) >> 11), -53);
		bool in = u * (double)(n - e) < (double)wanted;
		wanted -= in;
		if (in == rest)
			continue;
		uint64_t first, count;
		data_example(d, e, &first, &count);
		pick_add(cx, &p, first, count);
	}
	return pick_take(cx, &p, d);
}

/* Only sizes change, and arrays of other programs with one row per case. */
void data_truncate(Ctx *cx, Data *d, uint64_t cases)
{
	if (cases == 0 || cases >= d->cases)
		return;
	if (d->seq) {
		uint64_t s = 0;
		while (s < d->sequences && d->seq[s + 1] <= cases)
			s++;
		if (s == 0)
			fail(cx, MP_BAD_INPUT, "take more cases: sequences stay whole",
			     "the first sequence of %s has %" PRIu64 " cases, more than %" PRIu64, d->name, d->seq[1], cases);
		cases = d->seq[s];
		d->sequences = s;
	}
	Pick p = { .slice = &(Slice){ 0, cases }, .slices = 1, .cases = cases };
	for (uint32_t i = 0; i < d->extras; i++)
		d->extra[i] = take_extra(cx, &p, d, &d->extra[i]);
	d->cases = cases;
}
