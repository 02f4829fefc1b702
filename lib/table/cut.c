/* SPDX-License-Identifier: MIT */
/* Rows to train on and rows held out.  In: a table, its schema, a share or a fold.  Out: the part of every row.
 *
 * Rows are ranked by a random number each, inside their class if the cut is stratified; the first of every rank order
 * are held out.  Folds deal the same order out round-robin, so that they are disjoint and cover all rows.  The same
 * seed gives the same parts.  Sequences stay whole: then the unit is the sequence, and classes do not count. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

typedef struct Ranked {
	uint32_t class;
	uint64_t random, row;
} Ranked;

static int by_rank(const void *a, const void *b)
{
	const Ranked *x = a, *y = b;
	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->random != y->random)
		return x->random < y->random ? -1 : 1;
	return x->row < y->row ? -1 : 1;
}

static bool target_missing(const Schema *s, const Frame *t, const double *value)
{
	bool any = false, targets = false;
	for (uint32_t i = 0; i < t->columns; i++) {
		if (s->column[i].role != COLUMN_TARGET)
			continue;
		targets = true;
		any |= !isnan(value[i]);
	}
	return targets && !any;
}

/* A number of its own for each class; numbers of classes may be negative or large. */
static uint32_t class_of(const Schema *s, const Frame *t, const double *value)
{
	for (uint32_t i = 0; i < t->columns; i++) {
		if (s->column[i].role == COLUMN_TARGET && !isnan(value[i]))
			return fabs(value[i]) < 9e18 ? (uint32_t)(int64_t)value[i] : 0;
	}
	return 0;
}

/* The number of the sequence of every row; NULL: there are none. */
static const uint64_t *sequences(Ctx *cx, const Frame *t, const Schema *s)
{
	int64_t column = -1;
	for (uint32_t i = 0; i < s->columns; i++)
		if (s->column[i].role == COLUMN_SEQUENCE)
			column = i;
	if (column < 0 && !(t->data && t->data->seq))
		return NULL;
	uint64_t *number = NEW(&cx->scratch, t->rows, uint64_t), n = 0;
	for (uint64_t i = 1; i < t->rows; i++) {
		const FrameColumn *c = column < 0 ? NULL : &t->column[column];
		bool begins = c ? c->word[i] != NO_WORD && c->word[i] != c->word[i - 1] : i == t->data->seq[n + 1];
		n += begins;
		number[i] = n;
	}
	return number;
}

static bool held_out(const Cut *cut, uint64_t rank, uint64_t of)
{
	if (cut->folds)
		return rank % cut->folds == cut->fold;
	uint64_t want = (uint64_t)floor(cut->share * (double)of + 0.5);
	return rank < min_u64(want, of - 1); /* one at least is trained on */
}

/* By the column of folds: the fold with the number cut->fold, in the order of their names. */
static void cut_column(Ctx *cx, const Frame *t, const FrameColumn *c, const Cut *cut, uint8_t *part)
{
	if (cut->folds != c->words.count || c->missing)
		fail_at(cx, (Loc){ t->src, c->off }, "write a fold in every row, and leave --folds out",
		        "column '%s' has %u folds, and %llu rows without one", text_shown(cx, c->name), c->words.count,
		        (unsigned long long)c->missing);
	uint32_t chosen = 0;
	for (uint32_t i = 0; i < c->words.count; i++) {
		uint32_t before = 0;
		for (uint32_t k = 0; k < c->words.count; k++)
			before += class_order(c->words.text[k], c->words.text[i]) < 0;
		chosen = before == cut->fold ? i : chosen;
	}
	for (uint64_t i = 0; i < t->rows; i++)
		if (part[i] != PART_DROPPED)
			part[i] = c->word[i] == chosen ? PART_HELD_OUT : PART_TRAIN;
}

uint8_t *table_cut(Ctx *cx, const Frame *t, const Schema *s, const Cut *cut)
{
	uint8_t *part = NEW(&cx->keep, t->rows, uint8_t);
	double *value = NEW(&cx->scratch, t->columns, double);
	Ranked *ranked = NEW(&cx->scratch, t->rows, Ranked);
	const uint64_t *sequence = sequences(cx, t, s);
	bool stratify = cut->stratify && s->task != TASK_REGRESSION && !sequence;
	uint64_t n = 0, dropped = 0;
	for (uint64_t i = 0; i < t->rows; i++) {
		row_values(t, i, value);
		if (target_missing(s, t, value) && !sequence) {
			part[i] = PART_DROPPED;
			dropped++;
			continue;
		}
		if (sequence && i && sequence[i] == sequence[i - 1])
			continue; /* goes with the row before */
		ranked[n++] = (Ranked){ stratify ? class_of(s, t, value) : 0, random_u64(cut->seed, STREAM_SPLIT, i), i };
	}
	if (dropped && cut->first)
		note(cx, NULL, "%llu row%s no target and %s left out", (unsigned long long)dropped,
		     dropped > 1 ? "s have" : " has", dropped > 1 ? "are" : "is");
	if (n < 2)
		fail(cx, MP_BAD_INPUT, "give more cases", "%s has %s", t->name,
		     !n         ? "no case with a target"
		     : sequence ? "one sequence only"
		                : "one case only");
	qsort(ranked, n, sizeof *ranked, by_rank);
	uint64_t offset = 0; /* folds go on where the class before ended, so that they are of one size */
	for (uint64_t first = 0, end; first < n; first = end) {
		for (end = first; end < n && ranked[end].class == ranked[first].class; end++)
			;
		for (uint64_t i = first; i < end; i++)
			part[ranked[i].row] =
				held_out(cut, cut->folds ? offset + i - first : i - first, end - first) ? PART_HELD_OUT : PART_TRAIN;
		offset += end - first;
	}
	for (uint64_t i = 1; sequence && i < t->rows; i++)
		if (sequence[i] == sequence[i - 1])
			part[i] = part[i - 1];
	for (uint32_t i = 0; cut->folds && i < s->columns; i++)
		if (s->column[i].role == COLUMN_FOLD)
			cut_column(cx, t, &t->column[i], cut, part);
	return part;
}
