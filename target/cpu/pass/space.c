/* SPDX-License-Identifier: MIT */
/* Buffers that threads work in. In: a layout and the data that is bound. Out: for each thread rows of cases and
 * sums of weight changes, first written by the thread that will use them. Must hold: what is there already and
 * large enough stays; how large it is, is said when all of it is there, for memory may run out before and the next
 * call goes on from here. */
#include <string.h>

#include "half.h"

enum {
	CHUNK_BYTES = 393216, /* rows in hand fill about so much of the cache; */
	DENSE_BYTES = 688128, /* with dense inputs so much, for they are mostly read in the data, and not in the row; */
	/* up to so many may fill as much as twice the weights do: these come from memory for every chunk */
	LARGE_ROWS = 256,
	LEAST_ROWS = 48,
	MOST_ROWS = 512,
	SIDE_BY_SIDE = 4, /* times as many where there are sequences, so that steps are not too short */
	HALF_ROWS = 256   /* with bf16: full 32s, so that no 32 of a sum is cut, and sums stay in tiles for eight of them */
};

/* How many sums a thread holds at most: whole subtrees before and inside the one that it is at. */
static uint32_t sums_needed(uint32_t leaves)
{
	uint32_t sums = 2;

	if (leaves < 2)
		return 1;
	for (uint32_t n = 1; n < leaves; n *= 2)
		sums += 2;
	return sums;
}

/* What a thread of a team needs for itself, where the rows are all the first one's. */
static void take_steps(Ctx *cx, const Program *p, Space *s, uint32_t rows)
{
	s->cases = NEW(&cx->keep, rows, uint64_t);
	s->begin = NEW(&cx->keep, rows + 1, uint32_t);
	s->x = p->layout->inputs == 1 ? NULL : floats_take(&cx->keep, p->net->inputs);
	s->step = NEW(&cx->keep, rows, uint32_t);
	s->step_at = NEW(&cx->keep, rows + 2, uint32_t);
	s->bias = floats_take(&cx->keep, p->layout->cols);
	s->links = p->layout->lists ? arena_alloc_raw(&cx->keep, p->layout->link_room, sizeof *s->links) : NULL;
	s->steps_room = rows;
}

static void take_rows(Ctx *cx, const Program *p, Space *s, uint32_t rows)
{
	const Layout *l = p->layout;
	size_t all = (size_t)rows * l->cols, outputs = p->net->outputs;

	s->act = arena_alloc_raw(&cx->keep, all + LANES, sizeof(float));
	s->err = arena_alloc_raw(&cx->keep, all + LANES, sizeof(float));
	s->fresh = true;
	s->net = l->nets ? floats_take(&cx->keep, all + LANES) : NULL;
	s->own = l->owns ? floats_take(&cx->keep, all + LANES) : NULL;
	s->y = floats_take(&cx->keep, rows * outputs + LANES);
	s->out = l->outputs > 1 ? floats_take(&cx->keep, (size_t)rows * l->outputs_padded) : NULL;
	s->weight = floats_take(&cx->keep, rows);
	s->value = floats_take(&cx->keep, rows);
	s->verdict = NEW(&cx->keep, rows, uint8_t);
	s->index = NEW(&cx->keep, rows, const uint32_t *);
	s->values = NEW(&cx->keep, rows, const float *);
	s->lengths = NEW(&cx->keep, rows, uint32_t);
	s->half = p->half ? half_take(cx, p, p->half, rows) : NULL;
	s->rows = rows;
}

/* On the thread that will use them, so that their pages lie near it. */
static void touch_rows(void *arg, uint32_t thread)
{
	const Program *p = arg;
	const Layout *l = p->layout;
	Space *s = &p->space[thread];
	size_t all = (size_t)s->rows * l->cols + LANES;

	if (!s->fresh)
		return;
	s->fresh = false;
	memset(s->act, 0, all * sizeof *s->act);
	memset(s->err, 0, all * sizeof *s->err);
	for (uint32_t m = 0; m < s->rows; m++) {
		float *act = s->act + (size_t)m * l->cols;
		act[0] = 1; /* the true unit */
		for (uint32_t k = 0; k < l->parts; k++)
			if (l->part[k].one)
				act[l->part[k].col + l->part[k].count] = 1;
	}
}

/* Columns of a row that are used: index lists stand in the data. */
static uint64_t columns_used(const Program *p)
{
	const Layout *l = p->layout;
	uint64_t cols = l->cols;

	for (uint32_t k = 0; p->index && !l->lists && !l->recalled && k < l->parts; k++)
		if (l->part[k].role == ROLE_INPUT && l->part[k].group >= 0)
			cols -= l->part[k].count / LANES * LANES;
	return cols;
}

static uint64_t lesser(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* So many rows that they and what they touch of the weights stay in the cache. */
static uint64_t chunk_rows(const Program *p)
{
	bool dense = !p->index && !p->net->copies;
	uint64_t row = 2 * columns_used(p) * sizeof(float);
	uint64_t near = lesser((dense ? DENSE_BYTES : CHUNK_BYTES) / row, MOST_ROWS);
	uint64_t far = lesser(2 * p->layout->room * sizeof(float) / row, LARGE_ROWS);
	uint64_t rows = larger(larger(near, far), LEAST_ROWS);

	if (p->layout->lists)
		rows = (rows + LINK_ROWS - 1) / LINK_ROWS * LINK_ROWS;
	if (p->half)
		rows = HALF_ROWS;
	if (p->net->copies)
		rows *= SIDE_BY_SIDE;
	return rows;
}

/* A team takes as many rows at a time as its threads would alone: it has to meet less often. With bf16 threads have
 * no room for that. */
static uint64_t team_rows(const Program *p, uint64_t rows)
{
	uint64_t wide = lesser(rows * p->threads, MOST_ROWS * (p->net->copies ? SIDE_BY_SIDE : 1));

	return p->half || wide < rows ? rows : lesser(wide, p->data->cases);
}

void space_take(Ctx *cx, Program *p)
{
	uint64_t examples = run_examples(p->net, p->data), longest = 0, first, count;
	uint32_t sums = sums_needed(leaf_count(examples));

	for (uint64_t e = 0; e < examples; e++) {
		run_example(p->net, p->data, e, &first, &count);
		longest = count > longest ? count : longest;
	}
	p->longest = longest;
	uint64_t rows = lesser(larger(chunk_rows(p), longest), p->data->cases);
	if (rows > UINT32_MAX / 2)
		fail(cx, MP_BAD_INPUT, "cut it into shorter ones", "%s has a sequence of %llu cases", p->data->name,
		     (unsigned long long)longest);
	uint32_t wide = p->team_rows = (uint32_t)team_rows(p, rows);
	for (uint32_t i = 0; i < p->threads; i++) {
		Space *s = &p->space[i];
		uint32_t own = i ? (uint32_t)rows : wide;
		bool helps = i > 0 && leaf_count(examples) == 1 && !p->half; /* never has a leaf to itself */
		if (s->steps_room < wide)
			take_steps(cx, p, s, wide);
		if (!helps && s->rows < own)
			take_rows(cx, p, s, own);
		s->chunk = (uint32_t)rows;
		if (p->codes && s->rooms < codes_room(p->codes)) {
			s->room = floats_take(&cx->keep, codes_room(p->codes));
			s->rooms = codes_room(p->codes);
		}
		for (; !helps && s->sums < sums; s->sums++)
			s->sum[s->sums].v = arena_alloc_raw(&cx->keep, p->layout->room + LANES, sizeof(float));
	}
	if (p->threads > 1)
		pool_run(p->pool, touch_rows, p);
	else
		touch_rows(p, 0);
}
