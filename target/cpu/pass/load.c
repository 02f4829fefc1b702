/* SPDX-License-Identifier: MIT */
/* Loading cases. In: the cases that a chunk's rows hold. Out: inputs and targets in those rows, or where they can be
 * read in the data itself. */
#include <string.h>

#include "half.h"

enum {
	CASES_AHEAD = 12,   /* prefetch distance: the rows of a tile; */
	MAX_PREFETCH = 2048 /* bytes of a case */
};

/* ---- prefetching ---- */

static void prefetch(const void *base, uint64_t from, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes && i < MAX_PREFETCH; i += 64) /* no bytes: base may be NULL */
		__builtin_prefetch((const char *)base + from + i);
}

/* The hardware prefetches contiguous cases by itself. */
void case_prefetch(const Data *d, uint64_t i)
{
	uint64_t row = (uint64_t)d->targets * dtypes[d->y_type].size;

	if (d->x_indptr)
		prefetch(d->x_indices, d->x_indptr[i] * sizeof *d->x_indices,
		         (d->x_indptr[i + 1] - d->x_indptr[i]) * sizeof *d->x_indices);
	else
		prefetch(d->x, i * d->inputs * dtypes[d->x_type].size, (uint64_t)d->inputs * dtypes[d->x_type].size);
	prefetch(d->y, i * row, row);
}

void cases_prefetch(const Data *d, const uint64_t *example, uint64_t first, uint64_t count)
{
	for (uint64_t i = 0; i < count && i < CASES_AHEAD; i++)
		case_prefetch(d, example ? example[i] : first + i);
}

/* ---- reading in place ---- */

/* Products read up to a vector past the end of a row, so other cases must follow. */
static bool inputs_in_place(const Program *p, const Chunk *c, uint32_t rows)
{
	const Data *d = p->bound->data;
	const Layout *l = p->layout;

	if (p->half || l->noisy_inputs || l->inputs != 1 || l->has_links || l->copies_inputs ||
	    (!c->contiguous && (l->inputs_by_source || p->net->timed)) || !ticks_constant(&p->bound->ticks, d))
		return false;
	if (d->x_indptr || d->x_type != T_F32 || (uintptr_t)d->x % sizeof(float))
		return false;
	uint64_t last = ceil_div(LANES, d->inputs), end = d->cases > last ? d->cases - last : 0;
	for (uint32_t m = 0; m < rows; m++)
		if (c->cases[m] >= end)
			return false;
	return true;
}

static bool targets_in_place(const Data *d)
{
	return d->y_type == T_F32 && !d->mask && (uintptr_t)d->y % sizeof(float) == 0;
}

void chunk_locate(const Program *p, Space *s, uint32_t rows)
{
	const Data *d = p->bound->data;
	Chunk *c = &s->chunk;

	c->contiguous = true;
	for (uint32_t m = 1; m < rows; m++)
		c->contiguous &= c->cases[m] == c->cases[0] + m;
	c->inputs = NULL;
	c->by_input = NULL;
	if (p->half)
		half_find(p, p->half, s->half, c->cases, c->contiguous);
	if (inputs_in_place(p, c, rows))
		c->inputs = (const float *)d->x + (c->contiguous ? c->cases[0] * d->inputs : 0);
	c->target = s->rows.y;
	c->target_at = NULL;
	if (d->y && targets_in_place(d) && (c->contiguous || !p->bound->codes)) {
		c->target = (const float *)d->y + (c->contiguous ? c->cases[0] * d->targets : 0);
		c->target_at = c->contiguous ? NULL : c->cases;
	}
}

/* ---- loading ---- */

static void load_inputs(const Program *p, Space *s, uint32_t row)
{
	const Layout *l = p->layout;
	const Data *d = p->bound->data;
	float *act = s->rows.row[ROW_ACT] + (size_t)row * l->cols, *x = s->scratch.x;
	uint64_t i = s->chunk.cases[row];

	if (p->net->settles && s->chunk.tick[row].number >= p->bound->ticks.inputs_end) {
		for (uint32_t k = 0; k < l->parts; k++)
			if (l->part[k].role == ROLE_INPUT && l->part[k].group >= 0)
				memset(act + l->part[k].col, 0, l->part[k].count * sizeof *act);
		return;
	}
	if (l->inputs == 1) {
		data_x(d, i, act + l->part[l->input].col);
		return;
	}
	data_x(d, i, x);
	for (uint32_t k = 0; k < l->parts; k++) {
		const Part *t = &l->part[k];
		if (t->role == ROLE_INPUT && t->group >= 0)
			memcpy(act + t->col, x + t->input, t->count * sizeof *act);
	}
}

/* Index lists are always read in place. */
static inline void locate_lists(const Data *d, Space *s, uint32_t first, uint32_t rows)
{
	const uint64_t *cases = s->chunk.cases, *from = d->x_indptr;

	for (uint32_t m = first; m < first + rows; m++) {
		s->rows.index[m] = d->x_indices + from[cases[m]];
		s->rows.lengths[m] = (uint32_t)(from[cases[m] + 1] - from[cases[m]]);
	}
	for (uint32_t m = first; d->x_values && m < first + rows; m++)
		s->rows.values[m] = d->x_values + from[cases[m]];
}

/* Those of ticks before the first that has targets are not read. */
static void load_targets(const Program *p, const Space *s, uint32_t row)
{
	const Data *d = p->bound->data;

	if (!p->net->settles || s->chunk.tick[row].number >= p->bound->ticks.targets_from)
		data_y(d, s->chunk.cases[row], s->rows.y + (size_t)row * d->targets);
}

void rows_load(const Program *p, Space *s, uint32_t first, uint32_t rows, bool targets)
{
	const Bound *b = p->bound;
	const Data *d = b->data;
	const Layout *l = p->layout;
	const Chunk *c = &s->chunk;
	bool inputs = !c->inputs && (!p->half || l->has_links),
		 copied = inputs && (!b->index || l->has_links || l->copies_inputs);

	if (p->half)
		half_load(p, p->half, s->half, c->cases, first, rows);
	for (uint32_t m = first; inputs && (copied || !c->contiguous) && m < first + rows; m++) {
		if (!c->contiguous && m + CASES_AHEAD < first + rows)
			case_prefetch(d, c->cases[m + CASES_AHEAD]);
		if (copied)
			load_inputs(p, s, m);
	}
	if (b->index)
		locate_lists(d, s, first, rows);
	for (uint32_t m = first; b->index && p->net->settles && m < first + rows; m++)
		if (c->tick[m].number >= b->ticks.inputs_end)
			s->rows.lengths[m] = 0;
	for (uint32_t m = first; targets && c->target == s->rows.y && m < first + rows; m++)
		load_targets(p, s, m);
	for (uint32_t m = first; d->weight && m < first + rows; m++)
		s->rows.weight[m] = d->weight[c->cases[m]];
}

void row_load(const Program *p, Space *s, bool in_place, bool targets)
{
	const Data *d = p->bound->data;
	Chunk *c = &s->chunk;

	if (!p->bound->index || !targets || !targets_in_place(d) || d->weight) {
		chunk_locate(p, s, 1);
		c->inputs = in_place ? c->inputs : NULL;
		rows_load(p, s, 0, 1, targets);
		return;
	}
	c->inputs = NULL;
	c->target = (const float *)d->y + c->cases[0] * d->targets;
	c->target_at = NULL;
	locate_lists(d, s, 0, 1);
}
