/* SPDX-License-Identifier: MIT */
/* Lists of numbers on the command line.  In: a word such as 1..64:x2,100.  Out: the numbers it stands for, in order,
 * each inside its limits, or a message with the remedy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

enum { MAX_VALUES = 100000 };

typedef struct Ranges {
	Ctx *cx;
	const char *option, *word;
	const Param *row;
	double *value;
	uint32_t count;
	uint64_t cap;
} Ranges;

static _Noreturn void range_fail(const Ranges *r)
{
	Buf remedy = { .arena = &r->cx->scratch };
	buf_printf(&remedy,
	           "write %s from %.15g to %.15g: N, FROM..TO, FROM..TO:STEP or FROM..TO:xFACTOR, several with "
	           "commas between",
	           r->row->real ? "numbers" : "whole numbers", r->row->low, r->row->high);
	fail(r->cx, MP_BAD_INPUT, remedy.s, "%s cannot be '%s'", r->option, r->word);
}

static double number_take(const Ranges *r, const char **p)
{
	char *end;
	double v = strtod(*p, &end);
	if (end != *p && *end == 'K') { /* as in files of parameters */
		v *= 1024;
		end++;
	}
	if (end == *p || !isfinite(v) || (!r->row->real && v != floor(v)))
		range_fail(r);
	*p = end;
	return v;
}

static void value_add(Ranges *r, double v)
{
	if (r->count == MAX_VALUES)
		fail(r->cx, MP_BAD_INPUT, "ask for fewer", "%s: more than %d values", r->option, MAX_VALUES);
	if (v < r->row->low || v > r->row->high)
		range_fail(r);
	r->value = arena_reserve(&r->cx->scratch, r->value, r->count, &r->cap, sizeof *r->value);
	r->value[r->count++] = v;
}

/* strtod would take the point of `1..3` for a decimal point. */
static double first_take(const Ranges *r, const char **p)
{
	const char *dots = strstr(*p, "..");
	const char *comma = strchr(*p, ',');
	if (!dots || (comma && comma < dots))
		return number_take(r, p);
	const char *text = arena_copy(&r->cx->scratch, *p, (size_t)(dots - *p));
	double v = number_take(r, &text);
	if (*text)
		range_fail(r);
	*p = dots;
	return v;
}

static const char *range_take(Ranges *r, const char *p)
{
	double from = first_take(r, &p), to = from, step = 1, factor = 1;
	if (strncmp(p, "..", 2) == 0) {
		p += 2;
		to = number_take(r, &p);
		if (strncmp(p, ":x", 2) == 0) {
			p += 2;
			factor = number_take(r, &p);
			step = 0;
		} else if (*p == ':') {
			p++;
			step = number_take(r, &p);
		}
	}
	if ((*p && *p != ',') || to < from || step < 0 || (step == 0 && (factor <= 1 || from <= 0)))
		range_fail(r);
	for (uint64_t i = 0;; i++) {
		double v = step > 0 ? from + (double)i * step : r->count && i ? r->value[r->count - 1] * factor : from;
		if (v > to * (1 + 1e-12))
			break;
		value_add(r, v);
	}
	return *p ? p + 1 : p;
}

uint32_t range_read(Ctx *cx, const char *option, const char *word, const Param *row, double **value)
{
	Ranges r = { .cx = cx, .option = option, .word = word, .row = row };
	const char *p = word;
	do
		p = range_take(&r, p);
	while (*p || p[-1] == ',');
	*value = r.value;
	return r.count;
}
