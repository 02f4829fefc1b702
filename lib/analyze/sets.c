/* SPDX-License-Identifier: MIT */
/* Sets of cases.  In: a text such as regular=reg*,exception=exc*,first=1..10|15.  Out: which cases each set holds. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze.h"

static const char remedy[] = "write NAME=CASES, several with commas between; CASES are numbers (1..10), or patterns of "
							 "names (reg*), several with | between";

const char *case_name(Arena *a, const Data *d, uint64_t i)
{
	Buf b = { .arena = a };
	if (d->names && d->names[i].len)
		return arena_copy(a, d->names[i].s, d->names[i].len);
	buf_printf(&b, "%" PRIu64, i + 1);
	return b.s;
}

/* A number, or FROM..TO. */
static bool numbers_read(const char *word, uint64_t *first, uint64_t *last)
{
	char *end;
	if (*word < '0' || *word > '9')
		return false;
	*first = *last = strtoull(word, &end, 10);
	if (strncmp(end, "..", 2) == 0 && end[2] >= '0' && end[2] <= '9')
		*last = strtoull(end + 2, &end, 10);
	return !*end && *first >= 1 && *last >= *first;
}

static void cases_add(Ctx *cx, const Data *d, const char *word, CaseSet *s)
{
	uint64_t first = 0, last = 0, before = s->cases;
	bool numbers = numbers_read(word, &first, &last);
	if (numbers && last > d->cases)
		fail(cx, MP_BAD_INPUT, remedy, "--sets: '%s' holds case %" PRIu64 ", but %s has %" PRIu64 " cases", s->name,
		     last, d->name, d->cases);
	for (uint64_t i = 0; i < d->cases; i++) {
		bool in = numbers && i + 1 >= first && i < last;
		if (!numbers && d->names)
			in = fnmatch(word, case_name(&cx->scratch, d, i), 0) == 0;
		s->cases += in && !s->holds[i];
		s->holds[i] |= in;
	}
	if (s->cases == before && !numbers)
		fail(cx, MP_BAD_INPUT, d->names ? remedy : "give the numbers of cases: 1..10",
		     d->names ? "--sets: no further case of %s has a name like '%s'"
		              : "--sets: cases of %s have no names, so none is like '%s'",
		     d->name, word);
}

static void set_read(Ctx *cx, const Data *d, char *text, CaseSet *s)
{
	char *equals = strchr(text, '=');
	if (!equals || equals == text || !equals[1])
		fail(cx, MP_BAD_INPUT, remedy, "--sets cannot be '%s'", text);
	*equals = '\0';
	*s = (CaseSet){ .name = text, .holds = NEW(&cx->scratch, d->cases, uint8_t) };
	for (char *p = equals + 1; p;) {
		char *bar = strchr(p, '|');
		if (bar)
			*bar = '\0';
		cases_add(cx, d, p, s);
		p = bar ? bar + 1 : NULL;
	}
}

uint32_t sets_read(Ctx *cx, const Data *d, const char *text, CaseSet **set)
{
	uint32_t count = 1;
	for (const char *p = text; p && *p; p++)
		count += *p == ',';
	CaseSet *s = *set = NEW(&cx->scratch, count, CaseSet);
	if (!text) {
		*s = (CaseSet){ "all", memset(NEW(&cx->scratch, d->cases, uint8_t), 1, d->cases), d->cases };
		return 1;
	}
	char *p = arena_copy(&cx->scratch, text, strlen(text));
	for (uint32_t i = 0; i < count; i++) {
		char *comma = strchr(p, ',');
		if (comma)
			*comma = '\0';
		set_read(cx, d, p, &s[i]);
		for (uint32_t k = 0; k < i; k++)
			if (strcmp(s[k].name, s[i].name) == 0)
				fail(cx, MP_BAD_INPUT, "give each set a name of its own", "--sets: two sets are called '%s'",
				     s[i].name);
		p = comma ? comma + 1 : p;
	}
	return count;
}
