/* SPDX-License-Identifier: MIT */
/* Data on the device. In: the data that target cpu has bound. Out: the same in memory of the device. */
#include <assert.h>
#include <string.h>

#include "cuda.h"
#include "pass.h"

static void put_targets(Cuda *c, DeviceBound *b, const Data *d)
{
	float *y = arena_alloc_raw(&c->cx->scratch, d->cases * d->targets + 1, sizeof *y);

	for (uint64_t i = 0; i < d->cases; i++)
		data_y(d, i, y + i * d->targets);
	b->data.y = device_put(&b->memory, y, d->cases * d->targets * sizeof *y);
}

static void put_inputs(Cuda *c, DeviceBound *b, const Data *d)
{
	size_t row = b->data.x_row = (uint32_t)round_up(d->inputs + 1, 4); /* 1 follows the inputs */
	float *x = arena_alloc(&c->cx->scratch, d->cases * row + 4, sizeof *x);

	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, x + i * row);
		x[i * row + d->inputs] = 1;
	}
	b->data.x = device_put(&b->memory, x, d->cases * row * sizeof *x);
}

/* Inputs as bf16, in the order of their columns, with a 1 behind those of a part that wants one. */
static void put_halves(Cuda *c, DeviceBound *b, const Data *d)
{
	const Layout *l = c->cpu->layout;
	size_t row = 0, at;

	for (uint32_t k = 0; k < l->parts; k++)
		if (l->part[k].role == ROLE_INPUT && l->part[k].group >= 0)
			row += round_up(l->part[k].count + l->part[k].one, LANES);
	b->data.xh_row = (uint32_t)row;
	uint16_t *x = arena_alloc(&c->cx->scratch, d->cases * row + LANES, sizeof *x);
	float *value = NEW(&c->cx->scratch, d->inputs + 1, float);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, value);
		at = i * row;
		for (uint32_t k = 0; k < l->parts; k++) {
			const Part *t = &l->part[k];
			if (t->role != ROLE_INPUT || t->group < 0)
				continue;
			for (uint32_t n = 0; n < t->count; n++)
				x[at + n] = half_of(value[t->input + n]);
			if (t->one)
				x[at + t->count] = half_of(1);
			at += round_up(t->count + t->one, LANES);
		}
	}
	b->data.xh = device_put(&b->memory, x, d->cases * row * sizeof *x);
}

/* Sums of one part of the words. */
static void part_sums(const CodeWords *w, CodeSum *sum, CodeElement *element, uint32_t at)
{
	for (uint32_t k = 0; k < w->count; k++)
		sum[k] = (CodeSum){ .start = w->start[k], .first = at + w->first[k], .count = w->first[k + 1] - w->first[k] };
	for (uint32_t i = 0; i < w->first[w->count]; i++)
		element[at + i] = (CodeElement){ w->column[i], w->twice ? w->twice[i] : 2 };
}

static void put_codes(Cuda *c, DeviceBound *b, const Data *d)
{
	const Layout *l = c->cpu->layout;
	const Codes *codes = c->cpu->bound->codes;
	uint32_t parts = codes_parts(codes), sums = 0, elements = 0;
	float *y = NEW(&c->cx->scratch, d->targets + 1, float);
	CodeOwn *own = NEW(&c->cx->scratch, d->cases + 1, CodeOwn);

	for (uint32_t i = 0; i < parts; i++) {
		const CodeWords *w = codes_words(codes, i);
		b->data.part_count[i] = w->count;
		sums += w->count;
		elements += w->first[w->count];
	}
	CodeSum *sum = NEW(&c->cx->scratch, sums + 1, CodeSum);
	CodeElement *element = NEW(&c->cx->scratch, elements + 1, CodeElement);
	part_sums(codes_words(codes, 0), sum, element, 0);
	if (parts > 1)
		part_sums(codes_words(codes, 1), sum + b->data.part_count[0], element,
		          codes_words(codes, 0)->first[b->data.part_count[0]]);
	for (uint64_t i = 0; d->y && i < d->cases; i++) {
		bool near;
		data_y(d, i, y);
		own[i].word = codes_own(codes, d->codes, y, &near);
		own[i].near = near;
		for (uint32_t k = 0; k < parts; k++)
			own[i].number[k] = codes_number(codes, k, own[i].word);
	}
	b->code_longest = 0;
	b->code_twice = elements ? element[0].twice : 2;
	for (uint32_t i = 0; i < sums; i++)
		b->code_longest = max_u32(b->code_longest, sum[i].count);
	for (uint32_t i = 0; i < elements; i++)
		b->code_twice = b->code_twice == element[i].twice ? b->code_twice : 0;
	b->data.codes = device_put(&b->memory, d->codes, (uint64_t)d->code_count * d->targets * sizeof *d->codes);
	b->data.own = device_put(&b->memory, own, d->cases * sizeof *own);
	b->data.sums = device_put(&b->memory, sum, sums * sizeof *sum);
	b->data.element = device_put(&b->memory, element, elements * sizeof *element);
	b->data.code_largest = codes_largest(codes);
	b->data.largest_output = l->largest_output;
	b->data.code_unit = codes_words(codes, 0)->twice || codes_words(codes, parts - 1)->twice ? 0x1p-24 : 0x1p-53;
}

void data_put(Cuda *c, DeviceBound *b)
{
	const Bound *from = c->cpu->bound;
	const Data *d = from->data;

	if (from->index)
		lists_put(c, b, d);
	else if (c->half)
		put_halves(c, b, d);
	else
		put_inputs(c, b, d);
	if (d->y)
		put_targets(c, b, d);
	if (d->weight)
		b->data.weight = device_put(&b->memory, d->weight, d->cases * sizeof *d->weight);
	if (from->codes)
		put_codes(c, b, d);
}
