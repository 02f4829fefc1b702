/* SPDX-License-Identifier: MIT */
/* Cases on the device. In: the data that target cpu has bound. Out: arrays of DeviceData; or, if they are larger than
 * the memory for data, two slots that cases are streamed through: one is filled while the device reads the other. Must
 * hold: what a kernel reads of a case does not depend on where the case is stored. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "pass.h"

enum { STAGED_BYTES = 1 << 24 };                    /* pinned memory that all cases are uploaded through */
enum { SLOT_SHARE = 16, MAX_SLOT_BYTES = 1 << 30 }; /* a slot has a share of the memory, up to a limit */

/* ---- arrays of cases ---- */

/* Of a case, with the longest index list. */
static uint64_t case_bytes(const DeviceBound *b)
{
	const DeviceData *d = &b->data;
	uint64_t bytes = d->targets * sizeof(float) + (b->has_y_bits ? sizeof(uint32_t) : 0) +
	                 (b->has_weight ? sizeof(float) : 0) + (b->codes.own ? sizeof(CodeOwn) : 0);

	if (!b->csr.used)
		return bytes + d->x_row * sizeof(float) + d->xh_row * sizeof(uint16_t) + d->bits_row * sizeof(uint32_t);
	bytes += sizeof(uint64_t) + (b->csr.has_padded ? d->short_row * sizeof(uint16_t) : 0);
	return bytes + b->csr.longest * (sizeof(uint32_t) + (b->csr.has_values ? sizeof(float) : 0));
}

/* May a case occur several times? In a slot, once for each epoch that the job has. */
typedef enum CaseKind { ALL_DIFFERENT, SOME_AGAIN } CaseKind;

/* alloc: device_alloc or gpu_host_memory */
static CaseArrays case_arrays(DeviceMemory *m, const DeviceBound *b, uint64_t cases, CaseKind kind,
                              void *(*alloc)(DeviceMemory *owner, uint64_t bytes))
{
	const DeviceData *d = &b->data;
	uint64_t most = cases * b->csr.longest, entries = kind == ALL_DIFFERENT ? min_u64(most, b->csr.entries) : most;
	CaseArrays a = { .cases = cases, .entries = entries };

	if (d->x_row)
		a.x = alloc(m, cases * d->x_row * sizeof *a.x);
	if (d->xh_row)
		a.xh = alloc(m, cases * d->xh_row * sizeof *a.xh);
	if (d->bits_row)
		a.bits = alloc(m, cases * d->bits_row * sizeof *a.bits);
	if (b->csr.used) {
		a.from = alloc(m, (cases + 1) * sizeof *a.from);
		a.index = alloc(m, entries * sizeof *a.index);
	}
	if (b->csr.has_values)
		a.value = alloc(m, entries * sizeof *a.value);
	if (b->csr.has_padded)
		a.short_list = alloc(m, cases * d->short_row * sizeof *a.short_list);
	if (d->targets)
		a.y = alloc(m, cases * d->targets * sizeof *a.y);
	if (b->has_y_bits)
		a.y_bits = alloc(m, cases * sizeof *a.y_bits);
	if (b->has_weight)
		a.weight = alloc(m, cases * sizeof *a.weight);
	if (b->codes.own)
		a.own = alloc(m, cases * sizeof *a.own);
	return a;
}

/* DeviceData gets the addresses of `a`. */
static void use_arrays(DeviceData *d, const CaseArrays *a)
{
	d->x = a->x;
	d->xh = a->xh;
	d->bits = a->bits;
	d->from = a->from;
	d->index = a->index;
	d->value = a->value;
	d->short_list = a->short_list;
	d->y = a->y;
	d->y_bits = a->y_bits;
	d->weight = a->weight;
	d->own = a->own;
}

/* ---- filling ---- */

/* Cases that are converted into host arrays. */
typedef struct Filling {
	const DeviceBound *b;
	const Layout *l;
	const Data *d;
	const CaseArrays *to;
	const uint64_t *number; /* [count] which cases; NULL: first, first + 1, ... */
	uint64_t first, count;
	uint64_t entries; /* of the index lists of all cases before these */
	uint32_t threads;
	float *row; /* [threads][inputs] scratch */
} Filling;

static uint64_t filled_case(const Filling *f, uint64_t i) { return f->number ? f->number[i] : f->first + i; }

/* Entries of the index list of a case. Dense inputs that target cpu turned into lists are converted again. row:
 * scratch */
static uint32_t list_length(const Filling *f, uint64_t i, float *row)
{
	uint32_t n = 0;

	if (f->d->x_indptr)
		return (uint32_t)(f->d->x_indptr[i + 1] - f->d->x_indptr[i]);
	data_x(f->d, i, row);
	for (uint32_t k = 0; k < f->d->inputs; k++)
		n += row[k] != 0;
	return n;
}

static void fill_list(const Filling *f, uint64_t i, uint64_t number, float *row)
{
	const CaseArrays *a = f->to;
	uint64_t at = a->from[i] - f->entries, n = a->from[i + 1] - a->from[i], short_row = f->b->data.short_row;

	if (f->d->x_indptr) {
		memcpy(a->index + at, f->d->x_indices + f->d->x_indptr[number], n * sizeof *a->index);
		if (a->value)
			memcpy(a->value + at, f->d->x_values + f->d->x_indptr[number], n * sizeof *a->value);
	} else {
		data_x(f->d, number, row);
		for (uint32_t k = 0, m = 0; k < f->d->inputs; k++)
			if (row[k] != 0) {
				a->index[at + m] = k;
				a->value[at + m++] = row[k];
			}
	}
	if (!a->short_list)
		return;
	memset(a->short_list + i * short_row, 0xff, short_row * sizeof *a->short_list);
	for (uint64_t k = 0; k < n; k++)
		a->short_list[i * short_row + k] = (uint16_t)a->index[at + k];
}

/* bf16: columns of a part of inputs, with the 1 that follows some parts, padded to full vectors. */
static uint32_t bf16_columns(const Part *t)
{
	return t->role == ROLE_INPUT && t->group >= 0 ? (uint32_t)round_up(t->count + t->one, LANES) : 0;
}

static void fill_bf16(const Filling *f, uint64_t i, uint64_t number, float *row)
{
	uint16_t *x = f->to->xh + i * f->b->data.xh_row;

	data_x(f->d, number, row);
	memset(x, 0, f->b->data.xh_row * sizeof *x);
	for (const Part *t = f->l->part; t < f->l->part + f->l->parts; x += bf16_columns(t), t++) {
		for (uint32_t n = 0; bf16_columns(t) && n < t->count; n++)
			x[n] = bf16_of(row[t->input + n]);
		if (bf16_columns(t) && t->one)
			x[t->count] = bf16_of(1);
	}
}

uint32_t bf16_words(const Part *t) { return (uint32_t)round_up(ceil_div(bf16_columns(t), 32), 2); }

static void bit_set(uint32_t *row, uint32_t c) { row[c / 32] |= 1u << bit_place(c % 32); }

/* The same columns as bits. row: inputs of the case */
static void fill_bits(const Filling *f, uint64_t i, const float *row)
{
	uint32_t *x = f->to->bits + i * f->b->data.bits_row;

	memset(x, 0, f->b->data.bits_row * sizeof *x);
	for (const Part *t = f->l->part; t < f->l->part + f->l->parts; x += bf16_words(t), t++) {
		for (uint32_t n = 0; bf16_columns(t) && n < t->count; n++)
			if (row[t->input + n] != 0)
				bit_set(x, n);
		if (bf16_columns(t) && t->one)
			bit_set(x, t->count);
	}
}

/* Are the first `count` values of all rows 0 or 1? */
static bool are_bits(const Cuda *c, const Data *d, uint32_t count, void (*read)(const Data *, uint64_t, float *))
{
	float *row = NEW(&c->cx->scratch, count + 1, float);

	for (uint64_t i = 0; i < d->cases; i++) {
		read(d, i, row);
		for (uint32_t k = 0; k < count; k++)
			if (row[k] != 0 && row[k] != 1)
				return false;
	}
	return true;
}

static bool is_binary(const Cuda *c, const Data *d)
{
	return (d->x_indptr && !d->x_values) || are_bits(c, d, d->inputs, data_x);
}

/* Are all targets 0 or 1, and do those of a case fit into a word? */
static bool has_binary_targets(const Cuda *c, const Data *d)
{
	return d->y && d->targets <= 32 && are_bits(c, d, d->targets, data_y);
}

static void fill_share(void *arg, uint32_t thread)
{
	const Filling *f = arg;
	const CaseArrays *a = f->to;
	const DeviceData *d = &f->b->data;
	float *row = f->row + (uint64_t)thread * d->inputs;

	for (uint64_t i = f->count * thread / f->threads; i < f->count * (thread + 1) / f->threads; i++) {
		uint64_t number = filled_case(f, i);
		if (a->x) { /* 1 follows the inputs */
			memset(a->x + i * d->x_row + d->inputs, 0, (d->x_row - d->inputs) * sizeof *a->x);
			data_x(f->d, number, a->x + i * d->x_row);
			a->x[i * d->x_row + d->inputs] = 1;
		}
		if (a->xh)
			fill_bf16(f, i, number, row);
		if (a->bits)
			fill_bits(f, i, row);
		if (a->from)
			fill_list(f, i, number, row);
		if (a->y)
			data_y(f->d, number, a->y + i * d->targets);
		if (a->y_bits) {
			a->y_bits[i] = 0;
			for (uint32_t n = 0; n < d->targets; n++)
				a->y_bits[i] |= (uint32_t)(a->y[i * d->targets + n] != 0) << n;
		}
		if (a->weight)
			a->weight[i] = f->d->weight[number];
		if (a->own)
			a->own[i] = f->b->codes.own[number];
	}
}

/* Converts cases, by all threads of the host. */
static void fill(Cuda *c, Filling *f)
{
	Pool *pool = c->cpu->pool;

	f->l = c->cpu->layout;
	f->threads = pool && f->count >= 256 ? pool_threads(pool) : 1;
	f->row = NEW(&c->temp, (uint64_t)f->threads * f->d->inputs + 1, float);
	if (f->to->from)
		f->to->from[0] = f->entries;
	for (uint64_t i = 0; f->to->from && i < f->count; i++)
		f->to->from[i + 1] = f->to->from[i] + list_length(f, filled_case(f, i), f->row);
	assert(!f->to->from || f->to->from[f->count] - f->entries <= f->to->entries);
	if (f->threads > 1)
		pool_run(pool, fill_share, f);
	else
		fill_share(f, 0);
}

static void upload_overlapped(Gpu *m, void *to, const void *from, uint64_t bytes)
{
	gpu_upload_begin(m, to, from, bytes, STREAM_COPY);
}

typedef void CopyFn(Gpu *m, void *to, const void *from, uint64_t bytes);

/* Copies the host arrays to cases `first` and on of the device arrays. */
static void arrays_copy(Cuda *c, const Filling *f, const CaseArrays *to, uint64_t first, CopyFn *copy)
{
	const CaseArrays *a = f->to;
	const DeviceData *d = &f->b->data;
	uint64_t n = f->count, entries = a->from ? a->from[n] - f->entries : 0;

	if (a->x)
		copy(c->gpu, to->x + first * d->x_row, a->x, n * d->x_row * sizeof *a->x);
	if (a->xh)
		copy(c->gpu, to->xh + first * d->xh_row, a->xh, n * d->xh_row * sizeof *a->xh);
	if (a->bits)
		copy(c->gpu, to->bits + first * d->bits_row, a->bits, n * d->bits_row * sizeof *a->bits);
	if (a->from) {
		copy(c->gpu, to->from + first, a->from, (n + 1) * sizeof *a->from);
		copy(c->gpu, to->index + f->entries, a->index, entries * sizeof *a->index);
	}
	if (a->value)
		copy(c->gpu, to->value + f->entries, a->value, entries * sizeof *a->value);
	if (a->short_list)
		copy(c->gpu, to->short_list + first * d->short_row, a->short_list, n * d->short_row * sizeof *a->short_list);
	if (a->y)
		copy(c->gpu, to->y + first * d->targets, a->y, n * d->targets * sizeof *a->y);
	if (a->y_bits)
		copy(c->gpu, to->y_bits + first, a->y_bits, n * sizeof *a->y_bits);
	if (a->weight)
		copy(c->gpu, to->weight + first, a->weight, n * sizeof *a->weight);
	if (a->own)
		copy(c->gpu, to->own + first, a->own, n * sizeof *a->own);
}

/* Uploads all cases, some at a time. */
static void cases_put(Cuda *c, DeviceBound *b, const Data *d)
{
	DeviceMemory staged = { .gpu = c->gpu, .arena = { .cx = c->cx } };
	uint64_t some = min_u64(max_u64(1, STAGED_BYTES / case_bytes(b)), max_u64(1, d->cases)), entries = 0;
	CaseArrays host = case_arrays(&staged, b, some, ALL_DIFFERENT, gpu_host_memory);
	CaseArrays to = case_arrays(&b->memory, b, d->cases, ALL_DIFFERENT, device_alloc);

	for (uint64_t first = 0; first < d->cases; first += some) {
		Filling f = {
			.b = b, .d = d, .to = &host, .first = first, .count = min_u64(some, d->cases - first), .entries = entries
		};
		fill(c, &f);
		arrays_copy(c, &f, &to, first, gpu_upload);
		entries = host.from ? host.from[f.count] : 0;
	}
	arena_free(&c->temp);
	device_free(&staged);
	use_arrays(&b->data, &to);
}

/* ---- slots ---- */

/* MICROPROP_CUDA_SLOT=ROWS, for tests: all data is streamed, through slots of so many rows. */
static uint64_t slot_wanted(const Cuda *c) { return environment_number(c->cx, "MICROPROP_CUDA_SLOT", 0); }

static void slots_make(Cuda *c, DeviceBound *b)
{
	uint64_t bytes = min_u64(c->gpu->memory / SLOT_SHARE, MAX_SLOT_BYTES);

	b->slot_cases = slot_wanted(c) ? slot_wanted(c) : min_u64(bytes / case_bytes(b), ROW_CASE);
	for (int i = 0; b->slot_cases && i < SLOTS; i++) {
		b->slot[i].host = case_arrays(&b->memory, b, b->slot_cases, SOME_AGAIN, gpu_host_memory);
		b->slot[i].device = case_arrays(&b->memory, b, b->slot_cases, SOME_AGAIN, device_alloc);
	}
	if (!b->slot_cases)
		fail(c->cx, MP_BAD_INPUT, "use --target cpu", "%s has too little memory for a case of %s", c->gpu->name,
		     b->source ? b->source->name : "the data");
	use_arrays(&b->data, &b->slot[0].device); /* kernels depend on which arrays there are */
}

void slot_fill(Cuda *c, uint32_t slot, const uint64_t *number, uint64_t count, DeviceData *d)
{
	const DeviceBound *b = c->bound;
	const DataSlot *s = &b->slot[slot];
	Filling f = { .b = b, .d = b->source, .to = &s->host, .number = number, .count = count };

	assert(count <= b->slot_cases);
	fill(c, &f);
	arrays_copy(c, &f, &s->device, 0, upload_overlapped);
	use_arrays(d, &s->device);
}

/* ---- code words ---- */

/* Sums and elements of one part of the code words; at: elements before. */
static void part_sums(const CodeWords *w, CodeSum *sum, CodeElement *element, uint32_t at)
{
	for (uint32_t k = 0; k < w->count; k++)
		sum[k] = (CodeSum){ .start = w->start[k], .first = at + w->first[k], .count = w->first[k + 1] - w->first[k] };
	for (uint32_t i = 0; i < w->first[w->count]; i++)
		element[at + i] = (CodeElement){ w->column[i], w->twice ? w->twice[i] : 2 };
}

/* Which code word the target of each case is. */
static CodeOwn *code_owns(const Cuda *c, Arena *a, const Data *d)
{
	const Codes *codes = c->cpu->bound->codes;
	float *y = NEW(&c->cx->scratch, d->targets + 1, float);
	CodeOwn *own = arena_alloc_raw(a, d->cases + 1, sizeof *own);

	if (!d->y)
		memset(own, 0, d->cases * sizeof *own);
	for (uint64_t i = 0; d->y && i < d->cases; i++) {
		bool near;
		data_y(d, i, y);
		own[i] = (CodeOwn){ 0 };
		own[i].word = codes_own(codes, d->codes, y, &near);
		own[i].near = near;
		for (uint32_t k = 0; k < codes_parts(codes); k++)
			own[i].number[k] = codes_number(codes, k, own[i].word);
	}
	return own;
}

static void codes_put(Cuda *c, DeviceBound *b, const Data *d)
{
	const Codes *codes = c->cpu->bound->codes;
	CodeTables *t = &b->codes;
	uint32_t parts = codes_parts(codes), sums = 0, elements = 0;

	t->own = code_owns(c, &b->memory.arena, d);
	for (uint32_t i = 0; i < parts; i++) {
		const CodeWords *w = codes_words(codes, i);
		b->data.part_count[i] = w->count;
		sums += w->count;
		elements += w->first[w->count];
	}
	b->memory.arena.cx = c->cx;
	CodeSum *sum = NEW(&b->memory.arena, sums + 1, CodeSum);
	CodeElement *element = NEW(&b->memory.arena, elements + 1, CodeElement);
	t->sum = sum;
	t->element = element;
	part_sums(codes_words(codes, 0), sum, element, 0);
	if (parts > 1)
		part_sums(codes_words(codes, 1), sum + b->data.part_count[0], element,
		          codes_words(codes, 0)->first[b->data.part_count[0]]);
	t->longest = 0;
	t->twice = elements ? element[0].twice : 2;
	for (uint32_t i = 0; i < sums; i++)
		t->longest = max_u32(t->longest, sum[i].count);
	for (uint32_t i = 0; i < elements; i++)
		t->twice = t->twice == element[i].twice ? t->twice : 0;
	t->bits = d->targets <= 64;
	for (uint64_t i = 0; i < (uint64_t)d->code_count * d->targets; i++)
		t->bits &= d->codes[i] == 0 || d->codes[i] == 1;
	b->data.codes = device_put(&b->memory, d->codes, (uint64_t)d->code_count * d->targets * sizeof *d->codes);
	b->data.sums = device_put(&b->memory, sum, sums * sizeof *sum);
	b->data.element = device_put(&b->memory, element, elements * sizeof *element);
	b->data.code_largest = codes_largest(codes);
	b->data.largest_output = c->cpu->layout->largest_output;
	b->data.code_unit = codes_words(codes, 0)->twice || codes_words(codes, parts - 1)->twice ? 0x1p-24 : 0x1p-53;
}

/* ---- all ---- */

/* Do the cases not fit? Two fifths of the memory are for data, of which two sets may be bound. */
static bool is_larger(const Cuda *c, const DeviceBound *b, uint64_t cases)
{
	uint64_t bytes = cases * case_bytes(b), entry = sizeof(uint32_t) + (b->csr.has_values ? sizeof(float) : 0),
			 other = 0;

	if (b->csr.used)
		bytes = cases * (case_bytes(b) - b->csr.longest * entry) + b->csr.entries * entry;
	for (int i = 0; i < DEVICE_BOUNDS; i++)
		other += &c->bindings[i] != b && c->bindings[i].source ? c->bindings[i].bytes : 0;
	return slot_wanted(c) || cases > ROW_CASE || bytes + other > c->gpu->memory / 5 * 2;
}

void data_put(Cuda *c, DeviceBound *b)
{
	const Bound *from = c->cpu->bound;
	const Data *d = from->data;

	b->has_weight = d->weight != NULL;
	b->codes.own = NULL;
	if (from->index)
		csr_put(c, b, d);
	for (uint32_t k = 0; c->bf16 && !from->index && k < c->cpu->layout->parts; k++)
		b->data.xh_row += bf16_columns(&c->cpu->layout->part[k]);
	if (b->data.xh_row && is_binary(c, d)) {
		for (uint32_t k = 0; k < c->cpu->layout->parts; k++)
			b->data.bits_row += bf16_words(&c->cpu->layout->part[k]);
		b->data.bits_row = (uint32_t)round_up(b->data.bits_row, 4);
	}
	b->has_y_bits = has_binary_targets(c, d);
	if (!c->bf16 && !from->index)
		b->data.x_row = (uint32_t)round_up(d->inputs + 1, 4);
	if (from->codes)
		codes_put(c, b, d);
	b->streamed = is_larger(c, b, d->cases);
	if (b->streamed)
		slots_make(c, b);
	else
		cases_put(c, b, d);
	b->bytes = (b->streamed ? SLOTS * b->slot_cases : d->cases) * case_bytes(b);
}
