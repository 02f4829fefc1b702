/* SPDX-License-Identifier: MIT */
/* Machine files.  In: lines `name value [unit] provenance`, `#` comments, and first perhaps `base NAME`, the machine
 * file whose values hold where this one gives none.  Out: a Machine in which every parameter of machine.def has a value
 * inside its range and a provenance, and no two contradict each other.  Faults are collected and reported together. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gf11.h"

const MachineRow machine_rows[] = {
#define MACHINE_INT(f, name, unit, low, high, about) { name, unit, about, offsetof(Machine, f), false, low, high },
#define MACHINE_REAL(f, name, unit, low, high, about) { name, unit, about, offsetof(Machine, f), true, low, high },
#include "machine.def"
};
enum { ROWS = COUNT(machine_rows), MOST_BASES = 8 };
const size_t machine_row_count = ROWS;

static const char *const kinds[] = { [FROM_SEED] = "seed", [FROM_PUBLISHED] = "published", [FROM_ASSUMED] = "assumed" };

/* The files of machines/, put in by CMake, so that the library needs no data folder. */
static const struct { const char *name; const unsigned char *text; } built_in[] = {
#define MACHINE_FILE(name, ...) { name, (const unsigned char[]){ __VA_ARGS__, 0 } },
#include "machines.def"
};

typedef struct Reader {
	Ctx *cx;
	Machine *m;
	Provenance *from;         /* [ROWS] */
	Loc at[ROWS];             /* of the line that gave the value; src NULL: none has */
	const Src *src;           /* being read */
	const char *p, *end;      /* what is left of the line, its comment cut off */
	uint32_t bases;           /* files this one is the base of, directly or not */
} Reader;

static void read_file(Reader *r, const Src *src);

/* ---- finding files ----------------------------------------------------------------------------------------------- */

static const Src *built_in_find(Ctx *cx, const char *name)
{
	for (size_t i = 0; i < COUNT(built_in); i++) {
		if (strcmp(built_in[i].name, name) != 0)
			continue;
		Buf file = { .arena = &cx->keep };
		buf_printf(&file, "%s.machine", name);
		Src *src = NEW(&cx->keep, 1, Src);
		src->name = file.s;
		src->text = (const char *)built_in[i].text;
		src->len = strlen(src->text);
		return src;
	}
	return NULL;
}

/* What to say about a name that is neither built in nor a file. */
static const char *no_machine(Ctx *cx, const char *name)
{
	const char *names[COUNT(built_in)];
	Buf b = { .arena = &cx->keep };
	for (size_t i = 0; i < COUNT(built_in); i++)
		names[i] = built_in[i].name;
	const char *near = nearest_name(name, names, COUNT(names));
	if (near)
		buf_printf(&b, "did you mean '%s'? ", near);
	buf_puts(&b, "give the path of a machine file, or one of those built in: ");
	for (size_t i = 0; i < COUNT(names); i++)
		buf_printf(&b, "%s%s", i ? ", " : "", names[i]);
	return b.s;
}

/* ---- one line ---------------------------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static Loc here(const Reader *r, const char *p)
{
	return (Loc){ r->src, (size_t)(p - r->src->text) };
}

static void skip_blanks(Reader *r)
{
	while (r->p < r->end && is_blank(*r->p))
		r->p++;
}

/* The next word, copied; "" at the end of the line.  *at is where it starts. */
static const char *next_word(Reader *r, const char **at)
{
	skip_blanks(r);
	*at = r->p;
	while (r->p < r->end && !is_blank(*r->p))
		r->p++;
	return arena_copy(&r->cx->scratch, *at, (size_t)(r->p - *at));
}

static const MachineRow *row_find(const char *name)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(machine_rows[i].name, name) == 0)
			return &machine_rows[i];
	return NULL;
}

static void unknown_name(Reader *r, const char *at, const char *name)
{
	const char *names[ROWS + 1];
	Buf b = { .arena = &r->cx->scratch };
	for (size_t i = 0; i < ROWS; i++)
		names[i] = machine_rows[i].name;
	names[ROWS] = "base";
	const char *near = nearest_name(name, names, ROWS + 1);
	if (near)
		buf_printf(&b, "did you mean '%s'?", near);
	else
		buf_puts(&b, "machines/gf11.machine has them all");
	error_at(r->cx, here(r, at), b.s, "a machine has no parameter '%s'", name);
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

static bool read_number(Reader *r, const MachineRow *row)
{
	const char *at, *word = next_word(r, &at);
	double v = number_of(word);
	if (v >= row->low && v <= row->high && (row->real || v == floor(v))) {
		void *field = (char *)r->m + row->offset;
		if (row->real)
			*(double *)field = v;
		else
			*(int64_t *)field = (int64_t)v;
		return true;
	}
	Buf b = { .arena = &r->cx->scratch };
	buf_printf(&b, "%s takes a %s from %.15g to %.15g", row->name, row->real ? "number" : "whole number", row->low,
	           row->high);
	error_at(r->cx, here(r, at), b.s, *word ? "%s cannot be '%s'" : "%s has no value%s", row->name, word);
	return false;
}

static bool read_unit(Reader *r, const MachineRow *row)
{
	if (!*row->unit)
		return true;
	const char *at, *word = next_word(r, &at);
	if (strcmp(word, row->unit) == 0)
		return true;
	Buf b = { .arena = &r->cx->scratch };
	buf_printf(&b, "write '%s' after the value", row->unit);
	error_at(r->cx, here(r, at), b.s, "%s is counted in %s%s%s%s", row->name, row->unit, *word ? ", not '" : "",
	         word, *word ? "'" : "");
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

/* A kind, the section if it is the seed, and a remark in parentheses if one stands there. */
static bool read_provenance(Reader *r, const MachineRow *row)
{
	static const char right[] = "end the line with 'seed \xC2\xA7N' (the section), 'published' or 'assumed', "
		"and perhaps a remark in parentheses";
	const char *start, *at, *word = next_word(r, &start);
	Provenance from = { .kind = FROM_SEED };
	while (from.kind < COUNT(kinds) && strcmp(word, kinds[from.kind]) != 0)
		from.kind++;
	if (from.kind == COUNT(kinds)) {
		error_at(r->cx, here(r, start), right,
		         *word ? "where %s comes from cannot be '%s'" : "where does %s come from?%s", row->name, word);
		return false;
	}
	if (from.kind == FROM_SEED && !is_section(next_word(r, &at))) {
		error_at(r->cx, here(r, at), right, "the section of the report is missing");
		return false;
	}
	skip_blanks(r);
	if (r->p < r->end && (*r->p != '(' || r->end[-1] != ')')) {
		error_at(r->cx, here(r, r->p), right, "the line does not end after where %s comes from", row->name);
		return false;
	}
	from.text = arena_copy(&r->cx->keep, start, (size_t)(r->end - start));
	r->from[row - machine_rows] = from;
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
	const MachineRow *row = row_find(name);
	if (!row) {
		unknown_name(r, at, name);
		return;
	}
	Loc *given = &r->at[row - machine_rows];
	if (given->src == r->src) {
		error_at(r->cx, here(r, at), "remove one of the two lines", "%s has its value in line %zu already",
		         name, line_of(*given));
		return;
	}
	*given = here(r, at);     /* also where the rest is wrong: it is not missing */
	(void)(read_number(r, row) && read_unit(r, row) && read_provenance(r, row));
}

/* A path stands relative to the folder of the file that names it. */
static const char *base_path(const Reader *r, const char *name)
{
	const char *slash = strrchr(r->src->name, '/');
	Buf b = { .arena = &r->cx->keep };
	if (slash && *name != '/')
		buf_add(&b, r->src->name, (size_t)(slash + 1 - r->src->name));
	buf_puts(&b, name);
	return b.s;
}

static void read_base(Reader *r, const char *at)
{
	const char *name_at, *rest_at, *name = next_word(r, &name_at);
	for (size_t i = 0; i < ROWS; i++) {
		if (r->at[i].src == r->src) {
			error_at(r->cx, here(r, at), "move it above all parameters",
			         "the base stands below a parameter");
			return;
		}
	}
	if (*next_word(r, &rest_at)) {
		error_at(r->cx, here(r, rest_at), "write nothing behind it", "a base is one name");
		return;
	}
	if (r->bases == MOST_BASES) {
		error_at(r->cx, here(r, at), "let one of the files stand on its own", "bases go round in a circle");
		return;
	}
	const Src *src = built_in_find(r->cx, name);
	if (!src) {
		const char *path = base_path(r, name);
		if (!*name || access(path, R_OK) != 0) {
			error_at(r->cx, here(r, name_at), no_machine(r->cx, name), "there is no machine '%s'", name);
			return;
		}
		src = src_open(r->cx, &r->cx->keep, path);
	}
	Reader outer = *r;
	r->bases++;
	read_file(r, src);
	r->src = outer.src;
	r->p = outer.p;
	r->end = outer.end;
}

/* ---- a whole file ------------------------------------------------------------------------------------------------ */

static void read_line(Reader *r)
{
	const char *at, *word = next_word(r, &at);
	if (strcmp(word, "base") == 0)
		read_base(r, at);
	else if (*word)
		read_parameter(r, at, word);
}

/* Words are compared as C strings, so a NUL must not hide in one. */
static void check_text(Reader *r, const Src *src)
{
	for (size_t i = 0; i < src->len; i++) {
		unsigned char c = (unsigned char)src->text[i];
		if (c < ' ' && c != '\t' && c != '\r' && c != '\n')
			fail_at(r->cx, (Loc){ src, i }, "give a text file; machines/gf11.machine is one",
			        "byte 0x%02x is not text: this is no machine file", c);
	}
}

static void read_file(Reader *r, const Src *src)
{
	check_text(r, src);
	const char *text = src->text, *end = src->text + src->len;
	while (text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		if (!eol)
			eol = end;
		const char *comment = memchr(text, '#', (size_t)(eol - text));
		r->src = src;
		r->p = text;
		r->end = comment ? comment : eol;
		while (r->end > r->p && is_blank(r->end[-1]))
			r->end--;
		read_line(r);
		text = eol + (eol < end);
	}
	r->src = src;
}

static void check_all_given(const Reader *r)
{
	Buf names = { .arena = &r->cx->scratch };
	size_t missing = 0;
	for (size_t i = 0; i < ROWS; i++)
		if (!r->at[i].src)
			buf_printf(&names, "%s%s", missing++ ? ", " : "", machine_rows[i].name);
	if (missing)
		error_at(r->cx, (Loc){ r->src, r->src->len },
		         "give it a value, or begin the file with 'base gf11' to change only what differs",
		         "the machine is not complete, it has no %s", names.s);
}

static Loc given_at(const Reader *r, const char *name)
{
	return r->at[row_find(name) - machine_rows];
}

static void check_together(const Reader *r)
{
	const Machine *m = r->m;
	if (!m->ring_only && m->crossbar * m->crossbar != m->switch_ports)
		error_at(r->cx, given_at(r, "switch-ports"), "set switch-ports to the square of crossbar",
		         "three stages of crossbars of %lld ports join %lld ports, not %lld", (long long)m->crossbar,
		         (long long)(m->crossbar * m->crossbar), (long long)m->switch_ports);
	if (!m->ring_only && m->processors + m->disks > m->switch_ports)
		error_at(r->cx, given_at(r, "processors"), "set more switch-ports, or fewer processors or disks",
		         "%lld processors and %lld disks do not fit %lld switch ports", (long long)m->processors,
		         (long long)m->disks, (long long)m->switch_ports);
	if (m->block > m->microcode)
		error_at(r->cx, given_at(r, "block"), "set block to no more than microcode",
		         "a block of %lld lines does not fit %lld lines of microcode", (long long)m->block,
		         (long long)m->microcode);
}

/* machines/gf11.machine is called gf11. */
static const char *stem(Ctx *cx, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	return arena_copy(&cx->keep, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

Machine *machine_parse(Ctx *cx, const Src *src)
{
	Reader r = { .cx = cx, .m = NEW(&cx->keep, 1, Machine), .from = NEW(&cx->keep, ROWS, Provenance) };
	r.m->name = stem(cx, src->name);
	r.m->from = r.from;
	read_file(&r, src);
	check_all_given(&r);
	check_errors(cx);
	check_together(&r);
	check_errors(cx);
	return r.m;
}

Machine *machine_open(Ctx *cx, const char *name)
{
	const Src *src = built_in_find(cx, name);
	bool path = strpbrk(name, "./") || strcmp(name, "-") == 0;
	if (!src && !path && access(name, R_OK) != 0)
		fail(cx, MP_BAD_INPUT, no_machine(cx, name), "there is no machine '%s'", name);
	return machine_parse(cx, src ? src : src_open(cx, &cx->keep, name));
}

/* ---- print ------------------------------------------------------------------------------------------------------- */

/* The shortest text that reads back as the same value. */
static void value_print(const Machine *m, const MachineRow *row, char *out, size_t size)
{
	const void *field = (const char *)m + row->offset;
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

void machine_print(const Machine *m, Buf *out)
{
	enum { WIDTH = 30 };      /* of the provenance */
	buf_printf(out, "# machine %s\n", m->name ? m->name : "");
	for (size_t i = 0; i < ROWS; i++) {
		const MachineRow *row = &machine_rows[i];
		const char *from = m->from ? m->from[i].text : kinds[FROM_ASSUMED];
		char value[40];
		int columns = 0;
		for (const char *s = from; *s; s++)
			columns += (*s & 0xC0) != 0x80;   /* the section sign is two bytes wide and one column */
		value_print(m, row, value, sizeof value);
		buf_printf(out, "%-15s %10s %-9s  %s%*s# %s\n", row->name, value, row->unit, from,
		           columns < WIDTH ? WIDTH - columns : 1, "", row->about);
	}
}

uint32_t machine_disks(const Machine *m)
{
	int64_t ports = m->ring_only || m->switch_ports < m->processors ? 0 : m->switch_ports - m->processors;
	return (uint32_t)(m->disk_rate > 0 ? m->disks < ports ? m->disks : ports : 0);
}
