/* SPDX-License-Identifier: MIT */
/* Scanner for specs of machine parts: numbers, names, colons.  In: a location in a text.  Out: values in range;
 * anything else is reported with its location and the correct form. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gf11_machine.h"

Loc scan_here(const Scan *s) { return (Loc){ s->src, s->at }; }

int scan_peek(const Scan *s) { return s->at < s->src->len ? (unsigned char)s->src->text[s->at] : -1; }

static bool is_digit(int c) { return c >= '0' && c <= '9'; }

bool scan_number(Scan *s, uint64_t *value)
{
	*value = 0;
	if (!is_digit(scan_peek(s)))
		return false;
	for (; is_digit(scan_peek(s)); s->at++) {
		uint64_t digit = (uint64_t)(scan_peek(s) - '0');
		*value = *value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *value * 10 + digit;
	}
	return true;
}

uint32_t scan_index(Scan *s, const char *what, uint32_t limit, const char *remedy)
{
	Loc at = scan_here(s);
	uint64_t value;
	if (!scan_number(s, &value))
		fail_at(s->cx, at, remedy, "here the number of a %s is missing", what);
	if (value >= limit)
		fail_at(s->cx, at, remedy, "there is no %s %" PRIu64 ": they are numbered 0 to %u", what, value, limit - 1);
	return (uint32_t)value;
}

void scan_colon(Scan *s, const char *remedy)
{
	if (scan_peek(s) != ':')
		fail_at(s->cx, scan_here(s), remedy, "here ':' and a number are missing");
	s->at++;
}

void scan_end(const Scan *s, const char *remedy)
{
	if (scan_peek(s) >= 0)
		fail_at(s->cx, scan_here(s), remedy, "unexpected text here");
}

bool scan_word(Scan *s, const char *word)
{
	size_t len = strlen(word);
	if (s->src->len - s->at < len || memcmp(s->src->text + s->at, word, len) != 0)
		return false;
	s->at += len;
	return true;
}

Scan scan_spec(Ctx *cx, const char *name, const char *spec)
{
	Src *src = NEW(&cx->scratch, 1, Src);
	*src = (Src){ .name = name, .text = spec, .len = strlen(spec) };
	return (Scan){ cx, src, 0 };
}

void scan_blanks(Scan *s)
{
	while (scan_peek(s) == ' ' || scan_peek(s) == '\t' || scan_peek(s) == '\r')
		s->at++;
}

void scan_line(Scan *s)
{
	while (scan_peek(s) >= 0 && scan_peek(s) != '\n')
		s->at++;
}

const char *const stage_names[3] = { "input", "middle", "output" };

uint32_t scan_stage(Scan *s, uint32_t stages, const char *remedy)
{
	Loc at = scan_here(s);
	uint64_t number;
	for (uint32_t i = 0; i < 3; i++) {
		if (!scan_word(s, stage_names[i]))
			continue;
		if (i >= stages)
			fail_at(s->cx, at, remedy, "no links go from the output stage to another");
		return i;
	}
	if (!scan_number(s, &number) || number >= stages)
		fail_at(s->cx, at, remedy, "here the name of a stage is missing");
	return (uint32_t)number;
}

/* Decimal numbers only: strtod would also accept inf, nan and hexadecimal. */
double scan_real(Scan *s, const char *what, double low, double high, const char *remedy)
{
	char text[64];
	size_t len = 0;
	Loc at = scan_here(s);
	while (scan_peek(s) > 0 && strchr("0123456789.eE+-", scan_peek(s)) && len < sizeof text - 1)
		text[len++] = s->src->text[s->at++];
	text[len] = '\0';
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end)
		fail_at(s->cx, at, remedy, "here the %s is missing", what);
	if (!(value >= low && value <= high))
		fail_at(s->cx, at, remedy, "the %s %s is not between %g and %g", what, text, low, high);
	return value;
}
