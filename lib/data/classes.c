/* SPDX-License-Identifier: MIT */
/* Classes: the different texts of a label, and which target each became; names of columns.  In: the texts that a file
 * has, or the list that a run was trained on.  Out: Data.classes and a code table.
 *
 * With a given list, a class is the target at its place in the list, whether it occurs or not, so that data read for a
 * trained network has the targets of its training. */
#include <stdio.h>
#include <string.h>

#include "data.h"

enum { LISTED = 8 }; /* classes in a message */

bool classes_given(const DataOptions *opt) { return opt && opt->classes && opt->class_count; }

Dict classes_dict(Ctx *cx, const DataOptions *opt)
{
	Dict d = { .arena = &cx->scratch };
	if (opt->class_count > LABEL_CLASSES)
		fail(cx, MP_BAD_INPUT, "group them", "%u classes are given, but a label has at most %d", opt->class_count,
		     LABEL_CLASSES);
	for (uint32_t i = 0; i < opt->class_count; i++) {
		const char *name = opt->classes[i];
		if (dict_add(&d, (Text){ name, (uint32_t)strlen(name) }) != i)
			fail(cx, MP_BAD_INPUT, "list every class once", "class '%.40s' is given twice", name);
	}
	return d;
}

void classes_unknown(Ctx *cx, Loc at, Text label, const Dict *classes)
{
	Buf b = { .arena = &cx->scratch };
	buf_puts(&b, "leave out the case, or correct it: the classes are");
	for (uint32_t i = 0; i < classes->count && i < LISTED; i++) {
		Text t = classes->text[i];
		buf_printf(&b, "%s %s", i ? "," : "", text_shown(cx, t));
	}
	buf_puts(&b, classes->count > LISTED ? ", ..." : "");
	error_at(cx, at, b.s, "'%s' is none of the %u classes that were learnt", text_shown(cx, label), classes->count);
}

/* None for many classes: the largest output gives the same guess. */
static void set_codes(Ctx *cx, Data *d)
{
	uint32_t n = d->class_count;
	if (n > CODED_CLASSES)
		return;
	double *codes = NEW(&cx->keep, (size_t)n * n, double);
	Text *names = NEW(&cx->keep, n, Text);
	for (uint32_t i = 0; i < n; i++) {
		codes[(size_t)i * n + i] = 1;
		names[i] = (Text){ d->classes[i], (uint32_t)strlen(d->classes[i]) };
	}
	d->codes = codes;
	d->code_names = names;
	d->code_count = n;
}

void classes_set(Ctx *cx, Data *d, const Text *name, uint32_t count)
{
	if (!count)
		return;
	const char **classes = NEW(&cx->keep, count, const char *);
	for (uint32_t i = 0; i < count; i++)
		classes[i] = arena_copy(&cx->keep, name[i].s, name[i].len);
	d->classes = classes;
	d->class_count = count;
	set_codes(cx, d);
}

const char *const *classes_copy(Arena *a, const char *const *from, uint32_t count)
{
	if (!from)
		return NULL;
	const char **to = NEW(a, count, const char *);
	for (uint32_t i = 0; i < count; i++)
		to[i] = arena_copy(a, from[i], strlen(from[i]));
	return to;
}

bool codes_one_of_n(const Data *d)
{
	uint32_t n = d->targets;
	if (!d->codes || !d->code_names || d->code_count != n)
		return false;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < n; k++)
			if (d->codes[(size_t)i * n + k] != (i == k))
				return false;
	return true;
}

void classes_of_codes(Ctx *cx, Data *d)
{
	if (d->classes || d->targets < 2 || d->targets > LABEL_CLASSES || !codes_one_of_n(d))
		return;
	Dict seen = { .arena = &cx->scratch };
	const char **classes = NEW(&cx->keep, d->targets, const char *);
	for (uint32_t i = 0; i < d->targets; i++) {
		Text t = d->code_names[i];
		if (t.len == 0 || memchr(t.s, 0, t.len) || dict_add(&seen, t) != i)
			return;
		classes[i] = arena_copy(&cx->keep, t.s, t.len);
	}
	d->classes = classes;
	d->class_count = d->targets;
}

const DataColumn *columns_copy(Arena *a, const DataColumn *from, uint32_t count)
{
	if (!from)
		return NULL;
	DataColumn *to = NEW(a, count, DataColumn);
	for (uint32_t i = 0; i < count; i++) {
		to[i] = from[i];
		to[i].name = arena_copy(a, from[i].name, strlen(from[i].name));
	}
	return to;
}

bool columns_numbered(const Data *d)
{
	for (uint32_t i = 0; i < d->columns; i++) {
		char name[16] = "class";
		const DataColumn *c = &d->column[i];
		if (c->role > COLUMN_TARGET)
			continue;
		if (!c->label)
			snprintf(name, sizeof name, i < d->inputs ? "x%u" : "y%u", i < d->inputs ? i + 1 : i - d->inputs + 1);
		if (strcmp(c->name, name) != 0)
			return false;
	}
	return true;
}
