/* SPDX-License-Identifier: MIT */
/* Training data of FANN: three whole numbers, how many cases, inputs and outputs there are, and then for each case its
 * inputs and outputs, with blanks or line ends between them. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "old.h"

/* ---- is it? -------------------------------------------------------------------------------------- */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* Words of the line at p, whose end goes to *eol; SIZE_MAX if one is no number. */
static size_t line_numbers(const char *p, const char *end, const char **eol)
{
	size_t words = 0;
	const char *found = memchr(p, '\n', (size_t)(end - p));
	*eol = found ? found : end;
	while (p < *eol) {
		float v;
		if (is_blank(*p)) {
			p++;
			continue;
		}
		p = number_read(p, *eol, &v);
		if (!p || (p < *eol && !is_blank(*p)))
			return SIZE_MAX;
		words++;
	}
	return words;
}

typedef struct FannLook {
	uint64_t head[3]; /* cases, inputs, outputs */
	bool headed;      /* the first line is three whole numbers */
	bool complete;    /* numbers are as many as it says */
	bool uniform;     /* all lines hold three numbers */
} FannLook;

static FannLook look_at(const Src *s)
{
	FannLook l = { .uniform = true };
	const char *p = s->text, *end = p + s->len, *eol;
	uint64_t all = 0;
	for (int i = 0; i < 3; i++) {
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		const char *from = p;
		for (; p < end && *p >= '0' && *p <= '9' && p - from < 12; p++)
			l.head[i] = l.head[i] * 10 + (uint64_t)(*p - '0');
		if (p == from || (p < end && !is_blank(*p)))
			return l;
	}
	if (line_numbers(s->text, end, &eol) != 3 || !l.head[0] || !l.head[1])
		return l;
	l.headed = true;
	for (p = eol; p < end; p = eol) {
		size_t n = line_numbers(++p, end, &eol);
		if (n == SIZE_MAX)
			return l;
		l.uniform = l.uniform && (n == 3 || n == 0);
		all += n;
	}
	uint64_t wide = l.head[1] + l.head[2];
	l.complete = all / wide == l.head[0] && all % wide == 0;
	return l;
}

bool looks_fann(const Src *s) { return look_at(s).headed && look_at(s).complete; }

bool starts_fann(const Src *s) { return look_at(s).headed; }

bool looks_fann_or_text(const Src *s)
{
	FannLook l = look_at(s);
	return l.headed && l.complete && l.uniform;
}

/* ---- read and write ------------------------------------------------------------------------------ */

Data *read_fann(Ctx *cx, const Src *s, const DataOptions *opt)
{
	Cursor c = cursor_open(cx, s, '\0');
	Data *d = NEW(&cx->keep, 1, Data);
	d->name = arena_copy(&cx->keep, s->name, strlen(s->name));
	d->cases = cursor_need_whole(&c, "the number of cases", 1, INT64_MAX);
	d->inputs = (uint32_t)cursor_need_whole(&c, "the number of inputs", 1, MAX_UNITS);
	d->targets = (uint32_t)cursor_need_whole(&c, "the number of outputs", 0, MAX_UNITS);
	d->x_type = d->y_type = T_F32;
	uint64_t wide = (uint64_t)d->inputs + d->targets;
	if (d->cases > cursor_numbers_left(&c) / wide)
		fail_at(cx, (Loc){ c.src, c.src->len }, "check that the file is complete",
		        "the file is too short for %" PRIu64 " cases of %" PRIu64 " numbers", d->cases, wide);
	float *x = NEW(&cx->keep, d->cases * d->inputs, float), *y = NEW(&cx->keep, d->cases * d->targets, float);
	d->x = x;
	d->y = d->targets ? y : NULL;
	for (uint64_t i = 0; i < d->cases; i++) {
		for (uint32_t k = 0; k < d->inputs; k++)
			*x++ = (float)cursor_need_number(&c, "an input");
		for (uint32_t k = 0; k < d->targets; k++)
			*y++ = (float)cursor_need_number(&c, "an output");
	}
	if (cursor_peek(&c))
		cursor_expected(&c, "the end of the file", "the first line says how many cases there are");
	if (opt && opt->unlabelled)
		d->targets = 0;
	data_count_bytes(d);
	data_check(cx, d, cursor_loc(&c));
	data_pack(cx, d);
	data_truncate(cx, d, opt ? opt->first : 0);
	return d;
}

void targets_all(Ctx *cx, const Data *d, const char *format, const float *row, uint64_t i)
{
	for (uint32_t k = 0; k < d->targets; k++)
		if (isnan(row[k]))
			fail(cx, MP_BAD_INPUT, "write npz, csv or txt",
			     "%s has no place for a missing target: case %" PRIu64 " has one", format, i);
}

static void put_row(Buf *b, const float *row, uint32_t count)
{
	for (uint32_t k = 0; k < count; k++) {
		buf_puts(b, k ? " " : "");
		number_put(b, row[k]);
	}
	buf_puts(b, "\n");
}

void write_fann(Ctx *cx, const Data *d, const char *path)
{
	OutFile *f = file_create(cx, &cx->scratch, path);
	Buf b = { .arena = &cx->scratch };
	float *row = NEW(&cx->scratch, max_u32(d->inputs, d->targets), float);
	data_note_lost(cx, d, "FANN", 0);
	buf_printf(&b, "%" PRIu64 " %" PRIu32 " %" PRIu32 "\n", d->cases, d->inputs, d->targets);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, row);
		put_row(&b, row, d->inputs);
		data_y(d, i, row);
		targets_all(cx, d, "FANN", row, i);
		put_row(&b, row, d->targets);
		file_write(f, b.s, b.len);
		b.len = 0;
	}
	file_commit(cx, f);
}
