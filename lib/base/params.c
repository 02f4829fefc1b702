/* SPDX-License-Identifier: MIT */
/* Files of named numbers.  In: lines `name value [unit] provenance`, `#` comments, and optionally `base NAME` first,
 * the file of the same kind that gives the values missing here.  Out: a struct in which every parameter of the kind
 * has a value inside its range, and a provenance.  Errors are collected and reported together. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

enum { MAX_BASES = 8 };

static const char *const kinds[] = {
	[FROM_REPORT] = "seed",
	[FROM_PUBLISHED] = "published",
	[FROM_MEASURED] = "measured",
	[FROM_ASSUMED] = "assumed",
};

typedef struct Reader {
	Params p;
	const Src *src;       /* being read */
	const char *at, *end; /* what is left of the line, its comment cut off */
	uint32_t bases;       /* depth of `base` */
} Reader;

static void read_file(Reader *r, const Src *src);

/* ---- finding files ------------------------------------------------------------------------------ */

static const Src *built_in_find(Ctx *cx, const ParamKind *kind, const char *name)
{
	for (size_t i = 0; i < kind->files; i++) {
		if (strcmp(kind->file[i].name, name) != 0)
			continue;
		Buf file = { .arena = &cx->keep };
		buf_printf(&file, "%s.%s", name, kind->what);
		Src *src = NEW(&cx->keep, 1, Src);
		src->name = file.s;
		src->text = (const char *)kind->file[i].text;
		src->len = strlen(src->text);
		return src;
	}
	return NULL;
}

/* Remedy for a name that is neither built in nor a file. */
static const char *no_such(Ctx *cx, const ParamKind *kind, const char *name)
{
	const char **names = NEW(&cx->scratch, kind->files, const char *);
	Buf b = { .arena = &cx->keep };
	for (size_t i = 0; i < kind->files; i++)
		names[i] = kind->file[i].name;
	const char *near = nearest_name(name, names, kind->files);
	if (near)
		buf_printf(&b, "did you mean '%s'? ", near);
	buf_printf(&b, "give the path of a %s file, or one of those built in: ", kind->what);
	for (size_t i = 0; i < kind->files; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", names[i]);
	return b.s;
}

const Src *params_find(Ctx *cx, const ParamKind *kind, const char *name)
{
	const Src *src = built_in_find(cx, kind, name);
	bool path = strpbrk(name, "./") || strcmp(name, "-") == 0;
	if (!src && !path && access(name, R_OK) != 0)
		fail(cx, MP_BAD_INPUT, no_such(cx, kind, name), "there is no %s '%s'", kind->what, name);
	return src ? src : src_open(cx, &cx->keep, name);
}

/* ---- one line ----------------------------------------------------------------------------------- */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static Loc here(const Reader *r, const char *p) { return (Loc){ r->src, (size_t)(p - r->src->text) }; }

static void skip_blanks(Reader *r)
{
	while (r->at < r->end && is_blank(*r->at))
		r->at++;
}

/* The next word, copied; "" at the end of the line.  *at is where it starts. */
static const char *next_word(Reader *r, const char **at)
{
	skip_blanks(r);
	*at = r->at;
	while (r->at < r->end && !is_blank(*r->at))
		r->at++;
	return arena_copy(&r->p.cx->scratch, *at, (size_t)(r->at - *at));
}

static const Param *row_find(const ParamKind *kind, const char *name)
{
	for (size_t i = 0; i < kind->rows; i++)
		if (strcmp(kind->row[i].name, name) == 0)
			return &kind->row[i];
	return NULL;
}

static void unknown_name(Reader *r, const char *at, const char *name)
{
	const ParamKind *kind = r->p.kind;
	const char **names = NEW(&r->p.cx->scratch, kind->rows + 1, const char *);
	Buf b = { .arena = &r->p.cx->scratch };
	for (size_t i = 0; i < kind->rows; i++)
		names[i] = kind->row[i].name;
	names[kind->rows] = "base";
	const char *near = nearest_name(name, names, kind->rows + 1);
	if (near)
		buf_printf(&b, "did you mean '%s'?", near);
	else
		buf_printf(&b, "machines/%s.%s has them all", kind->whole, kind->what);
	error_at(r->p.cx, here(r, at), b.s, "a %s has no parameter '%s'", kind->what, name);
}

/* "50", "0.5", "16K"; NaN if it is no number. */
static double number_of(const char *word)
{
	size_t digits = strspn(word, "0123456789.eE+-");
	char *end;
	double v = strtod(word, &end);
	if (end != word + digits || digits == 0)
		return NAN;
	if (*end == 'K') {
		v *= 1024;
		end++;
	}
	return *end ? NAN : v;
}

static bool read_number(Reader *r, const Param *row)
{
	const char *at, *word = next_word(r, &at);
	double v = number_of(word);
	if (v >= row->low && v <= row->high && (row->real || v == floor(v))) {
		void *field = (char *)r->p.into + row->offset;
		if (row->real)
			*(double *)field = v;
		else
			*(int64_t *)field = (int64_t)v;
		return true;
	}
	Buf b = { .arena = &r->p.cx->scratch };
	buf_printf(&b, "%s takes a %s from %.15g to %.15g", row->name, row->real ? "number" : "whole number", row->low,
	           row->high);
	error_at(r->p.cx, here(r, at), b.s, *word ? "%s cannot be '%s'" : "%s has no value%s", row->name, word);
	return false;
}

static bool read_unit(Reader *r, const Param *row)
{
	if (!*row->unit)
		return true;
	const char *at, *word = next_word(r, &at);
	if (strcmp(word, row->unit) == 0)
		return true;
	Buf b = { .arena = &r->p.cx->scratch };
	buf_printf(&b, "write '%s' after the value", row->unit);
	error_at(r->p.cx, here(r, at), b.s, "%s is counted in %s%s%s%s", row->name, row->unit, *word ? ", not '" : "", word,
	         *word ? "'" : "");
	return false;
}

/* §2, §6.2.1 */
static bool is_section(const char *word)
{
	static const char sign[] = "\xC2\xA7";
	if (strncmp(word, sign, 2) != 0 || !word[2])
		return false;
	return word[2 + strspn(word + 2, "0123456789.")] == '\0';
}

/* A kind, the section if it is the report (written `seed`), and perhaps a remark in parentheses. */
static bool read_provenance(Reader *r, const Param *row)
{
	static const char right[] = "end the line with 'seed \xC2\xA7N' (the section), 'published', 'measured' or "
								"'assumed', and perhaps a remark in parentheses";
	const char *start, *at, *word = next_word(r, &start);
	Provenance from = { .kind = FROM_REPORT };
	while (from.kind < COUNT(kinds) && strcmp(word, kinds[from.kind]) != 0)
		from.kind++;
	if (from.kind == COUNT(kinds)) {
		error_at(r->p.cx, here(r, start), right,
		         *word ? "where %s comes from cannot be '%s'" : "where does %s come from?%s", row->name, word);
		return false;
	}
	if (from.kind == FROM_REPORT && !is_section(next_word(r, &at))) {
		error_at(r->p.cx, here(r, at), right, "the section of the report is missing");
		return false;
	}
	skip_blanks(r);
	if (r->at < r->end && (*r->at != '(' || r->end[-1] != ')')) {
		error_at(r->p.cx, here(r, r->at), right, "the line does not end after where %s comes from", row->name);
		return false;
	}
	from.text = arena_copy(&r->p.cx->keep, start, (size_t)(r->end - start));
	r->p.from[row - r->p.kind->row] = from;
	return true;
}

static size_t line_of(Loc at)
{
	size_t line = 1;
	for (size_t i = 0; i < at.off; i++)
		line += at.src->text[i] == '\n';
	return line;
}

static void read_parameter(Reader *r, const char *at, const char *name)
{
	const Param *row = row_find(r->p.kind, name);
	if (!row) {
		unknown_name(r, at, name);
		return;
	}
	Loc *given = &r->p.at[row - r->p.kind->row];
	if (given->src == r->src) {
		error_at(r->p.cx, here(r, at), "remove one of the two lines", "%s has its value in line %zu already", name,
		         line_of(*given));
		return;
	}
	*given = here(r, at); /* even if the rest is wrong: it is not missing */
	(void)(read_number(r, row) && read_unit(r, row) && read_provenance(r, row));
}

/* A path is relative to the folder of the file that names it. */
static const char *base_path(const Reader *r, const char *name)
{
	const char *slash = strrchr(r->src->name, '/');
	Buf b = { .arena = &r->p.cx->keep };
	if (slash && *name != '/')
		buf_add(&b, r->src->name, (size_t)(slash + 1 - r->src->name));
	buf_puts(&b, name);
	return b.s;
}

static void read_base(Reader *r, const char *at)
{
	const char *name_at, *rest_at, *name = next_word(r, &name_at);
	for (size_t i = 0; i < r->p.kind->rows; i++) {
		if (r->p.at[i].src == r->src) {
			error_at(r->p.cx, here(r, at), "move it above all parameters", "the base stands below a parameter");
			return;
		}
	}
	if (*next_word(r, &rest_at)) {
		error_at(r->p.cx, here(r, rest_at), "write nothing behind it", "a base is one name");
		return;
	}
	if (r->bases == MAX_BASES) {
		error_at(r->p.cx, here(r, at), "let one of the files stand on its own", "bases go round in a circle");
		return;
	}
	const Src *src = built_in_find(r->p.cx, r->p.kind, name);
	if (!src) {
		const char *path = base_path(r, name);
		if (!*name || access(path, R_OK) != 0) {
			error_at(r->p.cx, here(r, name_at), no_such(r->p.cx, r->p.kind, name), "there is no %s '%s'",
			         r->p.kind->what, name);
			return;
		}
		src = src_open(r->p.cx, &r->p.cx->keep, path);
	}
	Reader outer = *r;
	r->bases++;
	read_file(r, src);
	r->src = outer.src;
	r->at = outer.at;
	r->end = outer.end;
}

/* ---- a whole file ------------------------------------------------------------------------------- */

static void read_line(Reader *r)
{
	const char *at, *word = next_word(r, &at);
	if (strcmp(word, "base") == 0)
		read_base(r, at);
	else if (*word)
		read_parameter(r, at, word);
}

static void read_file(Reader *r, const Src *src)
{
	src_check_text(r->p.cx, src);
	const char *text = src->text, *end = src->text + src->len;
	while (text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		if (!eol)
			eol = end;
		const char *comment = memchr(text, '#', (size_t)(eol - text));
		r->src = src;
		r->at = text;
		r->end = comment ? comment : eol;
		while (r->end > r->at && is_blank(r->end[-1]))
			r->end--;
		read_line(r);
		text = eol + (eol < end);
	}
	r->src = src;
}

static void check_all_given(const Reader *r)
{
	const ParamKind *kind = r->p.kind;
	Buf names = { .arena = &r->p.cx->scratch }, remedy = { .arena = &r->p.cx->scratch };
	size_t missing = 0;
	for (size_t i = 0; i < kind->rows; i++)
		if (!r->p.at[i].src && kind->row[i].optional)
			r->p.from[i] = (Provenance){ FROM_ASSUMED, "assumed" };
		else if (!r->p.at[i].src)
			buf_printf(&names, "%s%s", missing++ ? ", " : "", kind->row[i].name);
	if (!missing)
		return;
	buf_printf(&remedy, "give it a value, or begin the file with 'base %s' to change only what differs", kind->whole);
	error_at(r->p.cx, (Loc){ r->src, r->src->len }, remedy.s, "the %s is not complete, it has no %s", kind->what,
	         names.s);
}

Params params_read(Ctx *cx, const ParamKind *kind, const Src *src, void *into)
{
	Reader r = { .p = { cx, kind, into, NEW(&cx->keep, kind->rows, Provenance), NEW(&cx->keep, kind->rows, Loc) } };
	read_file(&r, src);
	check_all_given(&r);
	check_errors(cx);
	return r.p;
}

Loc param_at(const Params *p, const char *name) { return p->at[row_find(p->kind, name) - p->kind->row]; }

const char *params_name(Ctx *cx, const Src *src)
{
	const char *slash = strrchr(src->name, '/'), *name = slash ? slash + 1 : src->name;
	const char *dot = strrchr(name, '.');
	return arena_copy(&cx->keep, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

/* ---- print -------------------------------------------------------------------------------------- */

/* The shortest text that reads back as the same value. */
static void value_print(const void *values, const Param *row, char *out, size_t size)
{
	const void *field = (const char *)values + row->offset;
	if (!row->real) {
		snprintf(out, size, "%lld", (long long)*(const int64_t *)field);
		return;
	}
	double v = *(const double *)field;
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(out, size, "%.*g", digits, v);
		if (strtod(out, NULL) == v)
			break;
	}
}

void params_print(const ParamKind *kind, const char *name, const Provenance *origin, const void *values, Buf *out)
{
	enum { WIDTH = 30 }; /* of the provenance */
	buf_printf(out, "# %s %s\n", kind->what, name ? name : "");
	for (size_t i = 0; i < kind->rows; i++) {
		const Param *row = &kind->row[i];
		const char *from = origin ? origin[i].text : kinds[FROM_ASSUMED];
		char value[40];
		int columns = 0;
		for (const char *s = from; *s; s++)
			columns += (*s & 0xC0) != 0x80; /* the section sign is two bytes wide and one column */
		value_print(values, row, value, sizeof value);
		buf_printf(out, "%-15s %10s %-9s  %s%*s# %s\n", row->name, value, row->unit, from,
		           columns < WIDTH ? WIDTH - columns : 1, "", row->about);
	}
}
