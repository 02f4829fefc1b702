/* SPDX-License-Identifier: MIT */
/* Buffers. In: a layout and data. Out: arrays for weights; for each thread rows of cases and sums of weight changes,
 * written first by the thread that will use them. Must hold: buffers that are large enough stay; a capacity is set
 * when its arrays are allocated, for memory may run out before and the next call goes on from there. */
#include <string.h>

#include "half.h"

enum {
	CHUNK_BYTES = 393216, /* of the cache that the rows of a chunk fill; */
	DENSE_BYTES = 688128, /* with dense inputs, which are mostly read in the data and not in the row; */
	/* up to this many rows may fill twice as much as the weights: these come from memory for every chunk */
	LARGE_ROWS = 256,
	LEAST_ROWS = 48,
	MOST_ROWS = 512,
	SETTLING = 2,   /* but ticks, of which all cases have about as many, need fewer; */
	CASES = 32,     /* cases at a time that a time step should have */
	SEQUENCES = 4,  /* times as many where there are sequences, so that time steps are not too short */
	HALF_ROWS = 256 /* with bf16: a multiple of 32, so that no 32 of a sum is cut, and sums stay in tiles for eight */
};

/* ---- weights ---- */

static size_t floats_full(size_t n) { return round_up(n, LANES) + LANES; }

/* The arena aligns arrays that are as long as a cache line to one. */
float *floats_take(Arena *a, size_t n) { return arena_alloc(a, floats_full(n), sizeof(float)); }

/* Pages that are never written to take no memory. */
static float *floats_room(Arena *a, size_t n) { return arena_alloc_raw(a, floats_full(n), sizeof(float)); }

uint32_t longest_row(const Layout *l)
{
	uint32_t longest = l->cols;

	for (const Panel *panel = l->panel; panel < l->panel + l->panels; panel++)
		if (!panel->list)
			longest = max_u32(longest, max_u32(panel->row, panel->copy_row));
	return longest;
}

void weights_take(Ctx *cx, Program *p, Layout *l)
{
	p->layout = l;
	p->w = floats_room(&cx->keep, l->floats + LANES);
	p->copies = floats_room(&cx->keep, l->copy_floats + LANES);
	p->zero = floats_take(&cx->keep, longest_row(l) + LANES);
	p->pending = (Pending){ .v = arena_alloc_raw(&cx->keep, l->floats + LANES, sizeof *p->pending.v),
		                    .full = p->pending.full,
		                    .untouched = true };
	for (int k = 0; k < p->rule->states; k++)
		p->state[k] = floats_room(&cx->keep, l->floats + LANES);
	p->half = cpu_own(p->opt)->precision == PRECISION_BF16 ? halves_make(cx, l, p->isa) : NULL;
}

void weights_clear(Program *p, int which)
{
	float *v = which ? p->state[which - 1] : p->w;

	memset(v, 0, floats_full(p->layout->floats + LANES) * sizeof *v);
	if (!which)
		memset(p->copies, 0, floats_full(p->layout->copy_floats + LANES) * sizeof *p->copies);
}

void weights_drop(Ctx *cx, const Program *p, int which)
{
	arena_drop(&cx->keep, which ? p->state[which - 1] : p->w, floats_full(p->layout->floats + LANES), sizeof(float));
}

void copies_drop(Ctx *cx, const Program *p)
{
	arena_drop(&cx->keep, p->copies, floats_full(p->layout->copy_floats + LANES), sizeof(float));
	arena_drop(&cx->keep, p->pending.lent ? p->pending.spare : p->pending.v, p->layout->floats + LANES, sizeof(float));
}

/* ---- threads ---- */

/* Sums that a thread has at most: whole subtrees before and inside the current one. */
static uint32_t sums_needed(uint32_t leaves)
{
	uint32_t sums = 2;

	if (leaves < 2)
		return 1;
	for (uint32_t n = 1; n < leaves; n *= 2)
		sums += 2;
	return sums;
}

/* What a thread of a team needs for itself, where all rows are those of space 0. */
static void chunk_take(Ctx *cx, const Program *p, Space *s, uint32_t rows)
{
	Chunk *c = &s->chunk;
	const Layout *l = p->layout;

	c->cases = NEW(&cx->keep, rows, uint64_t);
	c->tick = p->net->settles ? NEW(&cx->keep, rows, TickRow) : NULL;
	c->case_at = p->net->settles ? NEW(&cx->keep, rows, uint32_t) : NULL;
	c->begin = NEW(&cx->keep, rows + 1, uint32_t);
	c->carried = NEW(&cx->keep, rows, bool);
	c->step = NEW(&cx->keep, rows, uint32_t);
	c->step_at = NEW(&cx->keep, rows + 2, uint32_t);
	s->scratch.x = l->inputs == 1 ? NULL : floats_take(&cx->keep, p->net->inputs);
	s->scratch.bias = floats_take(&cx->keep, l->cols);
	s->scratch.links = l->has_links ? arena_alloc_raw(&cx->keep, l->link_scratch, sizeof(float)) : NULL;
	c->capacity = rows;
}

static void rows_take(Ctx *cx, const Program *p, Space *s, uint32_t rows)
{
	const Layout *l = p->layout;
	RowSpace *to = &s->rows;
	size_t all = (size_t)rows * l->cols, outputs = p->net->outputs;

	to->row[ROW_ACT] = arena_alloc_raw(&cx->keep, all + LANES, sizeof(float));
	to->row[ROW_DELTA] = arena_alloc_raw(&cx->keep, all + LANES, sizeof(float));
	s->untouched = true;
	to->row[ROW_NET] = NULL;
	to->row[ROW_CLEAN] = l->cleans ? floats_take(&cx->keep, all + LANES) : NULL;
	to->row[ROW_HELD] = l->integrates ? floats_take(&cx->keep, all + LANES) : NULL;
	to->row[ROW_ERROR] = l->own_errors ? floats_take(&cx->keep, all + LANES) : NULL;
	to->y = floats_take(&cx->keep, rows * outputs + LANES);
	to->near = l->radii ? floats_take(&cx->keep, rows * outputs + LANES) : NULL;
	to->scaled = p->net->shaped ? floats_take(&cx->keep, rows) : NULL;
	to->out = l->outputs > 1 ? floats_take(&cx->keep, (size_t)rows * l->outputs_padded) : NULL;
	to->weight = floats_take(&cx->keep, rows);
	to->error = floats_take(&cx->keep, rows);
	to->verdict = NEW(&cx->keep, rows, uint8_t);
	to->index = NEW(&cx->keep, rows, const uint32_t *);
	to->values = NEW(&cx->keep, rows, const float *);
	to->lengths = NEW(&cx->keep, rows, uint32_t);
	s->half = p->half ? half_take(cx, p, p->half, rows) : NULL;
	to->capacity = rows;
}

static bool set_one(float *at)
{
	bool wrong = *at != 1;

	*at = 1;
	return wrong;
}

/* The true unit, and columns that are always 1; nothing else writes to them. Returns how many were not. */
static uint64_t set_ones(const Layout *l, const RowSpace *s)
{
	uint64_t wrong = 0;

	for (uint32_t m = 0; m < s->capacity; m++) {
		float *act = s->row[ROW_ACT] + (size_t)m * l->cols;
		wrong += set_one(act);
		for (uint32_t k = 0; k < l->parts; k++)
			if (l->part[k].one)
				wrong += set_one(act + l->part[k].col + l->part[k].count);
	}
	return wrong;
}

/* By the thread that will use them, so that their pages are on its memory node. */
static void rows_touch(void *arg, uint32_t thread)
{
	const Program *p = arg;
	const Layout *l = p->layout;
	Space *s = &p->space[thread];
	size_t all = (size_t)s->rows.capacity * l->cols + LANES;

	if (!s->untouched)
		return;
	s->untouched = false;
	memset(s->rows.row[ROW_ACT], 0, all * sizeof(float));
	memset(s->rows.row[ROW_DELTA], 0, all * sizeof(float));
	set_ones(l, &s->rows);
}

uint64_t rows_mend(Program *p)
{
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < p->threads; i++)
		wrong += set_ones(p->layout, &p->space[i].rows);
	return wrong;
}

/* ---- rows at a time ---- */

/* Columns of a row that are used: index lists are read in the data. */
static uint64_t columns_used(const Program *p, const Bound *b)
{
	const Layout *l = p->layout;
	uint64_t cols = l->cols;

	for (uint32_t k = 0; b->index && !l->has_links && !l->copies_inputs && k < l->parts; k++)
		if (l->part[k].role == ROLE_INPUT && l->part[k].group >= 0)
			cols -= l->part[k].count / LANES * LANES;
	return cols;
}

/* As many rows as stay in the cache with the weights that they use. */
static uint64_t chunk_rows(const Program *p, const Bound *b)
{
	bool dense = !b->index && !p->net->timed;
	uint64_t row = 2 * columns_used(p, b) * sizeof(float);
	uint64_t near = min_u64((dense ? DENSE_BYTES : CHUNK_BYTES) / row, MOST_ROWS);
	uint64_t far = min_u64(2 * p->layout->floats * sizeof(float) / row, LARGE_ROWS);
	uint64_t rows = max_u64(max_u64(near, far), LEAST_ROWS);

	if (p->layout->has_links)
		rows = round_up(rows, LINK_ROWS);
	if (p->half)
		rows = HALF_ROWS;
	if (p->net->settles && !p->half)
		return max_u64(rows * SETTLING, min_u64((uint64_t)CASES * b->ticks.each, MOST_ROWS * SEQUENCES));
	return p->net->timed ? rows * SEQUENCES : rows;
}

/* A team takes as many rows at a time as its threads would alone: fewer barriers. With bf16 threads have no memory for
 * that. */
static uint64_t team_rows(const Program *p, uint64_t rows, uint64_t all)
{
	uint64_t wide = min_u64(rows * p->threads, MOST_ROWS * (p->net->timed ? SEQUENCES : 1));

	return p->half || wide < rows ? rows : min_u64(wide, all);
}

/* Of some part. The error function may be another from one binding to the next. */
static bool nets_kept(const Program *p) { return p->layout->nets || p->opt->error != ERR_SQUARED; }

void space_grow(Ctx *cx, Program *p, uint32_t rows)
{
	Space *s = &p->space[0];

	if (s->chunk.capacity < rows)
		chunk_take(cx, p, s, rows);
	if (s->rows.capacity < rows) {
		rows_take(cx, p, s, rows);
		if (nets_kept(p))
			s->rows.row[ROW_NET] = floats_take(&cx->keep, (size_t)rows * p->layout->cols + LANES);
		rows_touch(p, 0);
	}
}

void space_take(Ctx *cx, Program *p, Bound *b)
{
	uint64_t examples = run_examples(p->net, b->data), longest = 0, first, count;
	uint64_t all = ticks_example(&b->ticks, b->data, 0, b->data->cases);
	uint32_t sums = sums_needed(leaf_count(examples));

	for (uint64_t e = 0; e < examples; e++) {
		run_example(p->net, b->data, e, &first, &count);
		longest = max_u64(longest, ticks_example(&b->ticks, b->data, first, count));
	}
	uint64_t rows = min_u64(max_u64(chunk_rows(p, b), longest), all);
	if (rows > UINT32_MAX / 2)
		fail(cx, MP_BAD_INPUT, "cut it into shorter ones", "%s has a sequence of %llu steps", b->data->name,
		     (unsigned long long)longest);
	b->longest = longest;
	b->chunk = (uint32_t)rows;
	b->team_rows = (uint32_t)team_rows(p, rows, all);
	for (uint32_t i = 0; i < p->threads; i++) {
		Space *s = &p->space[i];
		uint32_t own = i ? b->chunk : b->team_rows;
		bool helps = i > 0 && leaf_count(examples) == 1 && !p->half; /* has no leaf of its own */
		if (s->chunk.capacity < b->team_rows)
			chunk_take(cx, p, s, b->team_rows);
		if (!helps && s->rows.capacity < own)
			rows_take(cx, p, s, own);
		if (!helps && nets_kept(p) && !s->rows.row[ROW_NET])
			s->rows.row[ROW_NET] = floats_take(&cx->keep, (size_t)s->rows.capacity * p->layout->cols + LANES);
		if (b->codes && s->scratch.codes_size < codes_scratch(b->codes)) {
			s->scratch.codes = floats_take(&cx->keep, codes_scratch(b->codes));
			s->scratch.codes_size = codes_scratch(b->codes);
		}
		for (; !helps && s->sums.capacity < sums; s->sums.capacity++)
			s->sums.sum[s->sums.capacity].v = arena_alloc_raw(&cx->keep, p->layout->floats + LANES, sizeof(float));
	}
	if (p->threads > 1)
		pool_run(p->pool, rows_touch, p);
	else
		rows_touch(p, 0);
}
