/* SPDX-License-Identifier: MIT */
/* The text format of data, written.  In: checked data.  Out: a file that txt.c reads back exactly: inputs, targets and
 * weights as float32, codes and scales as float64, with as few digits as that takes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

static void put_double(Buf *b, double v)
{
	static const int digits[] = { 6, 9, 15, 17 };
	char text[40];
	double back = NAN;
	for (size_t i = 0; i < COUNT(digits) && back != v; i++) {
		snprintf(text, sizeof text, "%.*g", digits[i], v);
		back = strtod(text, NULL);
	}
	char *comma = strchr(text, ','); /* some locales write one */
	if (comma)
		*comma = '.';
	buf_puts(b, text);
}

static void put_name(Buf *b, const Text *t)
{
	buf_puts(b, "\"");
	for (uint32_t i = 0; i < t->len; i++) {
		unsigned char c = (unsigned char)t->s[i];
		size_t e = 0;
		while (e < TEXT_ESCAPES && text_escapes[e][1] != (char)c)
			e++;
		if (e < TEXT_ESCAPES)
			buf_printf(b, "\\%c", text_escapes[e][0]);
		else if (c < ' ' || c == 127)
			buf_printf(b, "\\x%02x", c);
		else
			buf_add(b, &t->s[i], 1);
	}
	buf_puts(b, "\"");
}

static void put_doubles(Buf *b, const char *word, const double *v, uint32_t count)
{
	buf_puts(b, word);
	for (uint32_t i = 0; i < count; i++) {
		buf_puts(b, " ");
		put_double(b, v[i]);
	}
	buf_puts(b, "\n");
}

static void put_head(Buf *b, const Data *d)
{
	buf_printf(b, "inputs %" PRIu32 "\ntargets %" PRIu32 "\n", d->inputs, d->targets);
	for (uint32_t i = 0; d->codes && i < d->code_count; i++) {
		char number[16];
		snprintf(number, sizeof number, "%" PRIu32, i);
		buf_puts(b, "code ");
		put_name(b, d->code_names ? &d->code_names[i] : &(Text){ number, (uint32_t)strlen(number) });
		put_doubles(b, "", d->codes + (size_t)i * d->targets, d->targets);
	}
	if (d->scale.kind != SCALE_NONE) {
		buf_printf(b, "scale %s\n", scale_names[d->scale.kind]);
		put_doubles(b, "offset", d->scale.offset, d->inputs);
		put_doubles(b, "factor", d->scale.factor, d->inputs);
	}
}

static void put_list(Buf *b, const Data *d, uint64_t i)
{
	buf_puts(b, "[");
	for (uint64_t k = d->x_indptr[i]; k < d->x_indptr[i + 1]; k++) {
		buf_printf(b, k > d->x_indptr[i] ? " %" PRIu32 : "%" PRIu32, d->x_indices[k]);
		if (d->x_values && d->x_values[k] != 1) {
			buf_puts(b, "=");
			number_put(b, d->x_values[k]);
		}
	}
	buf_puts(b, "]");
}

static void put_case(Buf *b, const Data *d, uint64_t i, float *row)
{
	if (d->names) {
		put_name(b, &d->names[i]);
		buf_puts(b, " ");
	}
	if (d->x_indptr) {
		put_list(b, d, i);
	} else {
		data_x(d, i, row);
		for (uint32_t k = 0; k < d->inputs; k++) {
			buf_puts(b, k ? " " : "");
			number_put(b, row[k]);
		}
	}
	data_y(d, i, row);
	for (uint32_t k = 0; k < d->targets; k++) {
		buf_puts(b, k ? " " : " : ");
		if (isnan(row[k]))
			buf_puts(b, "?");
		else
			number_put(b, row[k]);
	}
	if (d->weight) {
		buf_puts(b, " weight ");
		number_put(b, d->weight[i]);
	}
	if (d->ticks && d->ticks[i])
		buf_printf(b, " ticks %" PRIu32, d->ticks[i]);
	buf_puts(b, "\n");
}

void write_text(Ctx *cx, const Data *d, const char *path)
{
	OutFile *f = file_create(cx, &cx->scratch, path);
	Buf b = { .arena = &cx->scratch };
	float *row = NEW(&cx->scratch, d->inputs > d->targets ? d->inputs : d->targets, float);
	uint64_t s = 0;
	data_note_lost(cx, d, "text", ~(unsigned)(HOLDS_EXTRA | HOLDS_COLUMNS | (d->codes ? 0 : HOLDS_CODES)));
	put_head(&b, d);
	for (uint64_t i = 0; i < d->cases; i++) {
		if (d->seq && d->seq[s] == i) {
			buf_puts(&b, "sequence\n");
			s++;
		}
		put_case(&b, d, i, row);
		file_write(f, b.s, b.len);
		b.len = 0;
	}
	file_commit(cx, f);
}
