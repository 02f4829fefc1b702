/* SPDX-License-Identifier: MIT */
/* Data of tlearn: inputs in NAME.data, targets in NAME.teach, starts of sequences in NAME.reset.
 *
 *     distributed | localist
 *     N
 *     N rows: numbers; or the units that are on, from 1, as 1,3-5
 *
 * A row of targets may begin with the number of the time step from which it holds, counted from 0: steps before the
 * first have no targets, and the last row holds to the end.  `*` is no target.  A reset file is a count and that many
 * time steps.  Rows may be broken anywhere; the number of columns follows from that of all numbers, or from the network
 * (option groups). */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "old.h"

typedef struct Rows { /* a .data or .teach file */
	Cursor c;
	bool localist;
	uint64_t rows;
	size_t body;      /* offset of the first row */
	uint64_t words;   /* of a row */
	uint64_t largest; /* localist: unit */
} Rows;

bool looks_tlearn(const Src *s) { return src_begins(s, "distributed", '\0') || src_begins(s, "localist", '\0'); }

/* ---- rows --------------------------------------------------------------------------------------- */

/* The next number or range of a list such as 1,3-5; false at its end. */
static bool take_units(Cursor *c, Text list, uint32_t *at, uint64_t *first, uint64_t *last)
{
	if (*at >= list.len)
		return false;
	for (int i = 0; i < 2; i++) {
		uint64_t *v = i ? last : first;
		uint32_t from = *at;
		for (*v = 0; *at < list.len && list.s[*at] >= '0' && list.s[*at] <= '9' && *v <= MAX_UNITS; ++*at)
			*v = *v * 10 + (uint64_t)(list.s[*at] - '0');
		if (*at == from || *v > MAX_UNITS)
			fail_at(c->cx, (Loc){ c->src, (size_t)(list.s - c->src->text) }, "numbers from 1, such as 1,3-5",
			        "'%s' is no list of units", text_shown(c->cx, list));
		if (i == 0 && (*at == list.len || list.s[*at] != '-')) {
			*last = *first;
			break;
		}
		*at += i == 0;
	}
	bool more = *at < list.len;
	if (*first > *last || (more && (list.s[*at] != ',' || *at + 1 == list.len)))
		fail_at(c->cx, (Loc){ c->src, (size_t)(list.s - c->src->text) }, "numbers from 1, such as 1,3-5",
		        "'%s' is no list of units", text_shown(c->cx, list));
	++*at;
	return true;
}

static Rows rows_open(Ctx *cx, const Src *s, const char *what)
{
	Rows r = { .c = cursor_open(cx, s, '\0') };
	Cursor *c = &r.c;
	r.localist = src_begins(c->src, "localist", '\0');
	if (!looks_tlearn(c->src))
		cursor_expected(c, "'distributed' or 'localist'", "files of tlearn (.data, .teach) begin with one of these");
	cursor_word(c);
	r.rows = cursor_need_whole(c, what, 1, INT64_MAX);
	if (r.rows > cursor_numbers_left(c))
		fail_at(cx, (Loc){ c->src, c->src->len }, "check that the file is complete",
		        "the file is too short for %" PRIu64 " rows", r.rows);
	r.body = c->at;
	uint64_t words = 0;
	while (cursor_word(c).len)
		words++;
	if (words % r.rows || !words)
		fail_at(cx, (Loc){ c->src, c->src->len }, "the second line says how many rows there are",
		        "%" PRIu64 " words do not make %" PRIu64 " rows", words, r.rows);
	r.words = words / r.rows;
	c->at = r.body;
	for (uint64_t i = 0; r.localist && i < words; i++) {
		Text t = cursor_word(c);
		uint64_t first, last;
		for (uint32_t at = 0; (i + 1) % r.words == 0 && take_units(c, t, &at, &first, &last);)
			r.largest = max_u64(r.largest, last);
	}
	c->at = r.body;
	return r;
}

static uint32_t columns(const Rows *r, uint64_t n)
{
	if (n > MAX_UNITS)
		fail_at(r->c.cx, (Loc){ r->c.src, 0 }, "a network has fewer units", "a row has %" PRIu64 " numbers", n);
	return (uint32_t)n;
}

static void read_row(Rows *r, const char *what, float *row, uint32_t wide)
{
	Cursor *c = &r->c;
	if (r->localist) {
		Text t = cursor_word(c);
		uint64_t first, last;
		for (uint32_t at = 0; take_units(c, t, &at, &first, &last);) {
			if (last > wide)
				fail_at(c->cx, (Loc){ c->src, (size_t)(t.s - c->src->text) }, "units are numbered from 1",
				        "unit %" PRIu64 " is named, but there are %" PRIu32, last, wide);
			for (; first <= last; first++)
				if (first) /* 0: none */
					row[first - 1] = 1;
		}
		return;
	}
	for (uint32_t k = 0; k < wide; k++)
		row[k] = cursor_take(c, '*') ? NAN : (float)cursor_need_number(c, what);
}

/* ---- targets ------------------------------------------------------------------------------------ */

/* Do rows begin with time steps?  Known where the network says how many targets there are; else if they ascend. */
static bool has_times(const Rows *r, uint32_t targets)
{
	uint64_t words = r->words, last = 0, time;
	if (targets && !r->localist)
		return words == targets + 1ull;
	if (words < 2)
		return false;
	if (r->localist)
		return words == 2;
	Cursor c = r->c;
	for (uint64_t i = 0; i < r->rows; i++) {
		Text t = cursor_word(&c);
		Cursor own = c;
		own.at = (size_t)(t.s - c.src->text);
		if (!cursor_whole(&own, &time) || own.at != (size_t)(t.s - c.src->text) + t.len || (i && time <= last))
			return false;
		last = time;
		for (uint64_t k = 1; k < words; k++)
			cursor_word(&c);
	}
	return last > 1;
}

static void read_targets(Ctx *cx, Data *d, const Src *s, uint32_t targets)
{
	Rows r = rows_open(cx, s, "the number of targets");
	bool timed = has_times(&r, targets);
	uint64_t words = r.words - timed;
	d->targets = targets ? targets : columns(&r, r.localist ? r.largest : words);
	if (!d->targets || (!r.localist && words != d->targets) || (r.localist && words != 1))
		fail_at(cx, (Loc){ r.c.src, r.body }, "a row has one number for each output, or a time step and these",
		        "a row has %" PRIu64 " words, and there are %" PRIu32 " outputs", r.words, d->targets);
	if (!timed && r.rows != d->cases)
		fail_at(cx, (Loc){ r.c.src, 0 }, "give every row of inputs one of targets",
		        "there are targets for %" PRIu64 " steps, but %s has %" PRIu64, r.rows, d->name, d->cases);
	if (d->cases > (1ull << 30) / d->targets)
		fail_at(cx, (Loc){ r.c.src, 0 }, "cut the file into smaller ones", "%" PRIu64 " rows of targets are too many",
		        d->cases);
	float *y = NEW(&cx->keep, d->cases * d->targets, float), *row = NEW(&cx->scratch, d->targets, float);
	uint64_t done = 0, before = 0;
	for (uint32_t k = 0; k < d->targets; k++)
		row[k] = NAN; /* before the first time step */
	for (uint64_t i = 0; i <= r.rows; i++) {
		Loc at = cursor_loc(&r.c);
		uint64_t time = i == r.rows ? d->cases : i;
		if (i < r.rows && timed)
			time = cursor_need_whole(&r.c, "a time step", 0, d->cases - 1);
		if (time < done || (i && i < r.rows && time <= before))
			fail_at(cx, at, "time steps count from 0 and ascend", "time step %" PRIu64 " stands here", time);
		for (before = time; done < time; done++)
			memcpy(y + done * d->targets, row, d->targets * sizeof *row);
		if (i == r.rows)
			break;
		memset(row, 0, d->targets * sizeof *row);
		read_row(&r, "a target, or *", row, d->targets);
	}
	if (cursor_peek(&r.c))
		cursor_expected(&r.c, "the end of the file", "the second line says how many rows there are");
	d->y = y;
}

/* ---- sequences ---------------------------------------------------------------------------------- */

static void read_resets(Ctx *cx, Data *d, const Src *s)
{
	Cursor c = cursor_open(cx, s, '\0');
	uint64_t count = cursor_need_whole(&c, "the number of resets", 0, d->cases);
	uint64_t *seq = NEW(&cx->keep, count + 2, uint64_t), last = 0;
	d->sequences = 1;
	for (uint64_t i = 0; i < count; i++, cursor_peek(&c)) {
		cursor_peek(&c);
		Loc at = cursor_loc(&c);
		uint64_t time = cursor_need_whole(&c, "a time step", 0, d->cases - 1);
		if (i && time <= last)
			fail_at(cx, at, "time steps count from 0 and ascend", "time step %" PRIu64 " stands here", time);
		last = time;
		if (time)
			seq[d->sequences++] = time;
	}
	if (cursor_peek(&c))
		cursor_expected(&c, "the end of the file", "the first line says how many resets there are");
	seq[d->sequences] = d->cases;
	d->seq = seq;
}

/* NAME.teach and NAME.reset of NAME.data; NULL: there is none. */
static const Src *beside(Ctx *cx, const Src *s, const char *suffix)
{
	size_t n = strlen(s->name);
	if (s->name[0] == '<')
		return NULL;
	n -= n > 5 && strcmp(s->name + n - 5, ".data") == 0 ? 5 : 0;
	Buf b = { .arena = &cx->keep };
	buf_add(&b, s->name, n);
	buf_puts(&b, suffix);
	return access(b.s, R_OK) == 0 ? src_open(cx, &cx->keep, b.s) : NULL;
}

Data *read_tlearn(Ctx *cx, const Src *s, const DataOptions *opt)
{
	uint32_t units[2] = { 0 }; /* of the network, if it is known */
	size_t n = strlen(s->name);
	if (n > 6 && strcmp(s->name + n - 6, ".teach") == 0)
		fail_at(cx, (Loc){ s, 0 }, "name the inputs (.data): targets are found beside them, or with --partner",
		        "this file holds targets");
	Rows r = rows_open(cx, s, "the number of rows");
	groups_units(cx, opt ? opt->groups : NULL, units);
	uint64_t words = r.words;
	Data *d = NEW(&cx->keep, 1, Data);
	d->name = arena_copy(&cx->keep, s->name, strlen(s->name));
	d->cases = r.rows;
	d->inputs = columns(&r, r.localist ? max_u64(units[0], r.largest) : words);
	d->x_type = d->y_type = T_F32;
	if (r.localist && words != 1)
		fail_at(cx, (Loc){ r.c.src, r.body }, "a row is one list without blanks, such as 1,3-5",
		        "a row has %" PRIu64 " words", words);
	if (!d->inputs)
		fail_at(cx, (Loc){ r.c.src, r.body }, "units are numbered from 1", "the rows name no unit");
	if (d->cases > (1ull << 30) / d->inputs)
		fail_at(cx, (Loc){ r.c.src, 0 }, "cut the file into smaller ones", "%" PRIu64 " rows of inputs are too many",
		        d->cases);
	float *x = NEW(&cx->keep, d->cases * d->inputs, float);
	for (uint64_t i = 0; i < d->cases; i++)
		read_row(&r, "an input", x + i * d->inputs, d->inputs);
	for (uint64_t i = 0; i < d->cases * d->inputs; i++)
		if (isnan(x[i]))
			fail_at(cx, (Loc){ r.c.src, r.body }, "only targets (.teach) may be missing", "an input is *");
	d->x = x;
	const Src *teach = opt && opt->partner ? src_open(cx, &cx->keep, opt->partner) : beside(cx, s, ".teach");
	const Src *resets = beside(cx, s, ".reset");
	if (teach && !(opt && opt->unlabelled))
		read_targets(cx, d, teach, units[1]);
	if (resets)
		read_resets(cx, d, resets);
	data_count_bytes(d);
	data_check(cx, d, cursor_loc(&r.c));
	data_pack(cx, d);
	data_truncate(cx, d, opt ? opt->first : 0);
	return d;
}
