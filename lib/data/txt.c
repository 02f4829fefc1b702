/* SPDX-License-Identifier: MIT */
/* The text format of data, read: one case a line, readable and writable by hand; doc/data.md specifies it.
 *
 *     inputs 3                   how many (needed before index lists only; else taken from the first case)
 *     targets 2
 *     code yes 1 0               a code table: name and target vector
 *     scale range                the inputs were scaled; their offsets and factors follow
 *     offset 0 0 0
 *     factor 1 1 0.5
 *     sequence                   the next case begins a sequence
 *     "a name" 0 1 0.5 : 1 ?  weight 2 ticks 12
 *     [0 2=0.5] : 0 1            inputs that are not 0: index, or index=value
 *     # a comment
 *
 * In: the file.  Out: checked data, or the errors of all lines together. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

/* An array that grows. */
typedef struct Vec {
	void *v;
	uint64_t count, cap;
} Vec;
typedef struct Names {
	Vec text, bytes;
} Names; /* Text whose s is set at the end, and the bytes of all of them */

typedef struct Reader {
	Ctx *cx;
	const Src *src;
	const char *p, *eol, *end;
	bool bad; /* this line has an error */
	bool unlabelled;
	bool known_inputs, known_targets; /* how many there are */
	bool lists;                       /* the first case is an index list */
	uint32_t inputs, targets;
	uint64_t cases;
	Vec x;                       /* dense: float [cases * inputs] */
	Vec indptr, indices, values; /* lists; values only once one is not 1 */
	Vec y, weight, seq;          /* float, float, uint64_t; weights only once there is one */
	Names names, code_names;     /* names only once a case has one */
	Vec codes;                   /* double */
	Vec offset, factor;          /* double */
	int scale;
	bool weighted, named, ticked;
	Vec ticks;
	Vec list;        /* uint32_t: of the current case */
	Vec list_values; /* float */
} Reader;

/* Capacity for the whole file if the rest is like the part read, and an eighth more: pages never touched cost nothing,
 * and vec_keep trims them.  Between 9/8 and 8 times the old one, since the rest may differ. */
static uint64_t vec_capacity(const Reader *r, const Vec *v)
{
	double share = (double)(r->p - r->src->text + 1) / (double)(r->src->len + 1),
		   whole = (double)v->count / share * 1.125;
	uint64_t max = v->cap * 8, min = v->cap + v->cap / 8;
	return whole >= (double)max ? max : whole < (double)min ? min : (uint64_t)whole;
}

/* Not zeroed. */
static void *vec_add(Reader *r, Vec *v, uint64_t count, size_t size)
{
	if (!v->v || v->cap - v->count < count) {
		uint64_t cap = v->cap ? vec_capacity(r, v) : 64;
		if (cap - v->count < count)
			cap = v->count + count;
		v->v = arena_grow_raw(&r->cx->scratch, v->v, v->cap, cap, size);
		v->cap = cap;
	}
	v->count += count;
	return (char *)v->v + (v->count - count) * size;
}

static void add_float(Reader *r, Vec *v, float value) { *(float *)vec_add(r, v, 1, sizeof value) = value; }

/* Pads with ones up to `count`. */
static void add_ones(Reader *r, Vec *v, uint64_t count)
{
	while (v->count < count)
		add_float(r, v, 1);
}

/* ---- words of a line ---- */

static Loc here(const Reader *r, const char *p) { return (Loc){ r->src, (size_t)(p - r->src->text) }; }

/* Records an error and skips the rest of the line. */
static void wrong(Reader *r, const char *at, const char *remedy, const char *fmt, ...) PRINTF_LIKE(4, 5);
static void wrong(Reader *r, const char *at, const char *remedy, const char *fmt, ...)
{
	char text[200];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	error_at(r->cx, here(r, at), remedy, "%s", text);
	r->bad = true;
	r->p = r->eol;
}

static char peek(Reader *r)
{
	while (r->p < r->eol && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r'))
		r->p++;
	if (r->p < r->eol && *r->p == '#')
		r->p = r->eol;
	return r->p < r->eol ? *r->p : '\0';
}

static Text word_at(const char *p, const char *end)
{
	const char *start = p;
	static const bool ends[256] = {
		[' '] = 1, ['\t'] = 1, ['\r'] = 1, [':'] = 1, ['['] = 1, [']'] = 1, ['='] = 1, ['#'] = 1, ['"'] = 1
	};
	while (p < end && !ends[(unsigned char)*p])
		p++;
	return (Text){ start, (uint32_t)(p - start) };
}

/* A line has no more numbers than a network can have units; more are not stored. */
static bool fits(Reader *r, uint64_t count)
{
	if (count >= MAX_UNITS)
		wrong(r, r->p, "cut it into smaller parts", "the line has more numbers than a network can have units (%u)",
		      MAX_UNITS);
	return !r->bad;
}

static bool is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }

/* A finite number, or NaN for ? and nan where `missing` allows it. */
static bool take_number(Reader *r, float *v, bool missing)
{
	peek(r);
	Text t = word_at(r->p, r->eol);
	bool none = text_is(t, "?") || text_is(t, "nan") || text_is(t, "NaN") || text_is(t, "NAN");
	if (none && missing) {
		*v = NAN;
	} else if (none) {
		wrong(r, t.s, "replace it by a number, or leave out the case", "only targets can be missing");
	} else if (t.len == 0) {
		wrong(r, t.s, "write a number", "there is no number here");
	} else if (number_read(t.s, t.s + t.len, v) != t.s + t.len) {
		wrong(r, t.s, "write numbers as 3, -0.5 or 1e-3", "'%s' is not a number", text_shown(r->cx, t));
	} else if (!isfinite(*v)) {
		wrong(r, t.s, "write a number below 3.4e38", "'%s' is too large", text_shown(r->cx, t));
	}
	if (!r->bad)
		r->p = t.s + t.len;
	return !r->bad;
}

/* The same in double precision, for tables. */
static bool take_double(Reader *r, double *v)
{
	float f;
	peek(r);
	Text t = word_at(r->p, r->eol);
	if (!take_number(r, &f, false))
		return false;
	char copy[64], *end;
	*v = (double)f; /* float precision if there are very many digits */
	if (t.len >= sizeof copy)
		return true;
	snprintf(copy, sizeof copy, "%.*s", (int)t.len, t.s);
	*v = strtod(copy, &end);
	if (*end == '.') { /* the locale has another decimal point */
		*end = ',';
		*v = strtod(copy, &end);
	}
	return true;
}

static bool take_whole(Reader *r, uint64_t max, uint64_t *v)
{
	peek(r);
	Text t = word_at(r->p, r->eol);
	*v = 0;
	for (uint32_t i = 0; i < t.len; i++) {
		if (t.s[i] < '0' || t.s[i] > '9' || *v > max) {
			t.len = t.s[i] < '0' || t.s[i] > '9' ? 0 : t.len;
			break;
		}
		*v = *v * 10 + (uint64_t)(t.s[i] - '0');
	}
	if (t.len == 0)
		wrong(r, t.s, "write 0, 1, 2, ...", "there is no whole number here");
	else if (*v > max)
		wrong(r, t.s, "write a smaller number", "the number is over %" PRIu64, max);
	else
		r->p = t.s + t.len;
	return !r->bad;
}

const char text_escapes[TEXT_ESCAPES][2] = {
	{ 'n', '\n' }, { 't', '\t' }, { 'r', '\r' }, { '"', '"' }, { '\\', '\\' },
};

static int hex_digit(char c)
{
	static const char digits[16] = "0123456789abcdef";
	const char *found = memchr(digits, c, sizeof digits);
	return found ? (int)(found - digits) : -1;
}

/* One character of a quoted text, after a backslash perhaps; -1: wrong. */
static int take_char(Reader *r)
{
	if (*r->p != '\\')
		return (unsigned char)*r->p++;
	if (r->eol - r->p >= 4 && r->p[1] == 'x' && hex_digit(r->p[2]) >= 0 && hex_digit(r->p[3]) >= 0) {
		char c = (char)(hex_digit(r->p[2]) * 16 + hex_digit(r->p[3]));
		if (control_find(&c, 1)) {
			wrong(r, r->p, "leave it out; \\n, \\t and \\r may stay", "a name cannot have control byte 0x%02x",
			      (unsigned char)c);
			return -1;
		}
		r->p += 4;
		return (unsigned char)c;
	}
	for (size_t i = 0; i < TEXT_ESCAPES; i++)
		if (r->eol - r->p >= 2 && r->p[1] == text_escapes[i][0]) {
			r->p += 2;
			return text_escapes[i][1];
		}
	wrong(r, r->p, "write \\\\ for a backslash; there are also \\\" \\n \\t \\r and \\x41", "this is no known escape");
	return -1;
}

/* A name in quotes, or a bare word if `bare`; else none. */
static void take_name(Reader *r, Names *names, bool bare)
{
	uint64_t before = names->bytes.count;
	if (peek(r) == '"') {
		const char *start = r->p++;
		while (!r->bad && r->p < r->eol && *r->p != '"') {
			int c = take_char(r);
			if (c >= 0)
				*(char *)vec_add(r, &names->bytes, 1, 1) = (char)c;
		}
		if (!r->bad && r->p == r->eol)
			wrong(r, start, "end the name with \"", "the name does not end on this line");
		else if (!r->bad)
			r->p++;
	} else if (bare) {
		Text t = word_at(r->p, r->eol);
		if (t.len == 0)
			wrong(r, r->p, "write a name, in quotes if it has blanks", "there is no name here");
		else
			memcpy(vec_add(r, &names->bytes, t.len, 1), t.s, t.len);
		if (!r->bad)
			r->p += t.len;
	}
	*(Text *)vec_add(r, &names->text, 1, sizeof(Text)) = (Text){ NULL, (uint32_t)(names->bytes.count - before) };
}

static void want_end(Reader *r)
{
	if (!r->bad && peek(r))
		wrong(r, r->p, "put it on a line of its own, or take it out", "the line should end here");
}

/* ---- keyword lines ---- */

static void line_size(Reader *r, uint32_t *size, bool *known, const char *what)
{
	uint64_t n;
	peek(r);
	const char *at = r->p;
	if (!take_whole(r, MAX_UNITS, &n))
		return;
	if (*known && *size != n) {
		wrong(r, at, "say it once, before the first case", "the cases have %" PRIu32 " %s already", *size, what);
		return;
	}
	*size = (uint32_t)n;
	*known = true;
}

static void line_inputs(Reader *r) { line_size(r, &r->inputs, &r->known_inputs, "inputs"); }

static void line_targets(Reader *r) { line_size(r, &r->targets, &r->known_targets, "targets"); }

static void line_sequence(Reader *r)
{
	uint64_t *last = r->seq.count ? (uint64_t *)r->seq.v + r->seq.count - 1 : NULL;
	if (!last && r->cases)
		wrong(r, r->p, "write 'sequence' before the first case, too", "the cases above belong to no sequence");
	else if (last && *last == r->cases && !r->cx->errors)
		wrong(r, r->p, "put at least one case into each sequence", "the sequence above has no cases");
	else
		*(uint64_t *)vec_add(r, &r->seq, 1, sizeof(uint64_t)) = r->cases;
}

static void line_code(Reader *r)
{
	peek(r);
	const char *start = r->p;
	uint32_t n = 0;
	take_name(r, &r->code_names, true);
	for (; !r->bad && peek(r); n++) {
		double v;
		if (fits(r, n) && take_double(r, &v))
			*(double *)vec_add(r, &r->codes, 1, sizeof v) = v;
	}
	if (r->bad)
		return;
	if (!r->known_targets && n > 0) {
		r->targets = n;
		r->known_targets = true;
	}
	if (n != r->targets || n == 0)
		wrong(r, start, "give the code one number for every target",
		      "the code has %" PRIu32 " numbers, but there are %" PRIu32 " targets", n, r->targets);
}

static void line_scale(Reader *r)
{
	peek(r);
	Text t = word_at(r->p, r->eol);
	int kind = scale_find(t);
	if (kind < 0)
		wrong(r, r->p, "write none, range or zscore", "'%s' is no kind of scale", text_shown(r->cx, t));
	else
		r->scale = kind;
	if (!r->bad)
		r->p += t.len;
}

static void line_doubles(Reader *r, Vec *v)
{
	peek(r);
	if (v->count)
		wrong(r, r->p, "take out one of the two", "this line is there twice");
	while (!r->bad && peek(r)) {
		double value;
		if (fits(r, v->count) && take_double(r, &value))
			*(double *)vec_add(r, v, 1, sizeof value) = value;
	}
}

static void line_offset(Reader *r) { line_doubles(r, &r->offset); }

static void line_factor(Reader *r) { line_doubles(r, &r->factor); }

static const struct {
	const char *word;
	void (*read)(Reader *);
} lines[] = {
	{ "inputs", line_inputs }, { "targets", line_targets }, { "sequence", line_sequence }, { "code", line_code },
	{ "scale", line_scale },   { "offset", line_offset },   { "factor", line_factor },
};

bool text_keyword(Text line)
{
	Text t = word_at(line.s, line.s + line.len);
	for (size_t i = 0; i < COUNT(lines); i++)
		if (text_is(t, lines[i].word))
			return true;
	return false;
}

static void keyword_line(Reader *r)
{
	const char *names[COUNT(lines)];
	Text t = word_at(r->p, r->eol);
	for (size_t i = 0; i < COUNT(lines); i++) {
		names[i] = lines[i].word;
		if (text_is(t, lines[i].word)) {
			r->p += t.len;
			lines[i].read(r);
			want_end(r);
			return;
		}
	}
	const char *near = nearest_name(arena_copy(&r->cx->scratch, t.s, t.len < 40 ? t.len : 40), names, COUNT(names));
	Buf b = { .arena = &r->cx->scratch };
	buf_printf(&b, "did you mean '%s'?", near ? near : "");
	wrong(r, t.s,
	      near ? b.s : "a line is a case, or begins with inputs, targets, sequence, code, scale, offset or factor",
	      "a line cannot begin with '%s'", text_shown(r->cx, t));
}

/* ---- cases ---- */

static void take_list(Reader *r)
{
	const char *start = r->p++;
	int64_t last = -1;
	if (!r->known_inputs)
		wrong(r, start, "write 'inputs N' above the first case",
		      "how many inputs there are must be known before an index list");
	while (!r->bad && peek(r) && *r->p != ']' && *r->p != ':') {
		uint64_t i;
		float v = 1;
		const char *at = r->p;
		if (!take_whole(r, UINT32_MAX, &i))
			break;
		if (i >= r->inputs)
			wrong(r, at, "inputs are numbered from 0", "there is no input %" PRIu64 ": there are %" PRIu32, i,
			      r->inputs);
		else if ((int64_t)i <= last)
			wrong(r, at, "sort the indices and leave out doubles",
			      "index %" PRIu64 " after %" PRId64 ": indices must ascend", i, last);
		last = (int64_t)i;
		if (r->p < r->eol && *r->p == '=') {
			r->p++;
			take_number(r, &v, false);
		}
		*(uint32_t *)vec_add(r, &r->list, 1, sizeof(uint32_t)) = (uint32_t)i;
		add_float(r, &r->list_values, v);
	}
	if (!r->bad && peek(r) != ']')
		wrong(r, start, "end the index list with ]", "the index list does not end on this line");
	else if (!r->bad)
		r->p++;
}

/* Dense numbers up to the colon, zeros included, into list_values. */
static void take_dense(Reader *r)
{
	const char *start = r->p;
	char c;
	while (!r->bad && (c = peek(r)) != '\0' && c != ':' && c != 'w' && c != 't') {
		float v = 0;
		if (fits(r, r->list_values.count) && take_number(r, &v, false))
			add_float(r, &r->list_values, v);
	}
	if (r->bad)
		return;
	if (!r->known_inputs && r->list_values.count <= MAX_UNITS) {
		r->inputs = (uint32_t)r->list_values.count;
		r->known_inputs = true;
	}
	if (r->list_values.count != r->inputs)
		wrong(r, start, "give every case the same number of inputs; targets stand behind a colon",
		      "the case has %" PRIu64 " inputs, others have %" PRIu32, r->list_values.count, r->inputs);
}

static void take_targets(Reader *r)
{
	const char *start = r->p;
	uint64_t before = r->y.count, n = 0;
	bool labelled = peek(r) == ':';
	char c;
	if (labelled)
		r->p++;
	for (; labelled && !r->bad && (c = peek(r)) != '\0' && c != 'w' && c != 't'; n++) {
		float v = 0;
		if (fits(r, n) && take_number(r, &v, true))
			add_float(r, &r->y, v);
	}
	if (r->unlabelled) {
		r->y.count = before;
		return;
	}
	if (!r->known_targets && !r->bad && n <= MAX_UNITS) {
		r->targets = (uint32_t)n;
		r->known_targets = true;
	}
	if (!r->bad && n != r->targets)
		wrong(r, start, "write as many targets as the other cases have, ? where there is none",
		      "the case has %" PRIu64 " targets, others have %" PRIu32, n, r->targets);
}

static void take_weight(Reader *r)
{
	float v = 1;
	if (!r->bad && peek(r) == 'w') {
		Text t = word_at(r->p, r->eol);
		if (!text_is(t, "weight"))
			wrong(r, t.s, "write 'weight' and a number, or end the line", "'%s' is not a number", text_shown(r->cx, t));
		else
			r->p += t.len;
		peek(r);
		const char *at = r->p;
		if (!r->bad && take_number(r, &v, false) && v < 0)
			wrong(r, at, "weights are 0 or more", "the weight is negative");
		r->weighted = true;
		add_ones(r, &r->weight, r->cases);
	}
	if (r->weighted)
		add_float(r, &r->weight, v);
}

static void take_ticks(Reader *r)
{
	float v = 0;
	if (!r->bad && peek(r) == 't') {
		Text t = word_at(r->p, r->eol);
		if (!text_is(t, "ticks"))
			wrong(r, t.s, "write 'ticks' and a number, or end the line", "'%s' is not a number", text_shown(r->cx, t));
		else
			r->p += t.len;
		peek(r);
		const char *at = r->p;
		if (!r->bad && take_number(r, &v, false) && !(v >= 1 && v <= MAX_TICKS && v == floorf(v)))
			wrong(r, at, "write a whole number from 1 to 1000000", "a case cannot have these ticks");
		if (!r->ticked)
			memset(vec_add(r, &r->ticks, r->cases, sizeof(uint32_t)), 0, r->cases * sizeof(uint32_t));
		r->ticked = true;
	}
	if (r->ticked)
		*(uint32_t *)vec_add(r, &r->ticks, 1, sizeof(uint32_t)) = r->bad ? 0 : (uint32_t)v;
}

/* The inputs of the current case, dense or CSR as all cases. */
static void store_inputs(Reader *r, bool list)
{
	const uint32_t *index = r->list.v;
	const float *value = r->list_values.v;
	uint64_t n = r->list_values.count;
	if (!r->lists) {
		float *row = vec_add(r, &r->x, r->inputs, sizeof *row);
		if (list)
			memset(row, 0, r->inputs * sizeof *row);
		for (uint64_t i = 0; i < n; i++)
			row[list ? index[i] : i] = value[i];
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		if (!list && value[i] == 0)
			continue;
		if (value[i] != 1 && !r->values.count)
			add_ones(r, &r->values, r->indices.count);
		if (value[i] != 1 || r->values.count)
			add_float(r, &r->values, value[i]);
		*(uint32_t *)vec_add(r, &r->indices, 1, sizeof(uint32_t)) = list ? index[i] : (uint32_t)i;
	}
	*(uint64_t *)vec_add(r, &r->indptr, 1, sizeof(uint64_t)) = r->indices.count;
}

static void case_line(Reader *r)
{
	r->list.count = r->list_values.count = 0;
	if (peek(r) == '"' && !r->named) {
		r->named = true;
		/* those before have none */
		memset(vec_add(r, &r->names.text, r->cases, sizeof(Text)), 0, r->cases * sizeof(Text));
	}
	if (r->named)
		take_name(r, &r->names, false);
	bool list = !r->bad && peek(r) == '[';
	if (list)
		take_list(r);
	else if (!r->bad)
		take_dense(r);
	if (!r->bad)
		take_targets(r);
	if (!r->bad)
		take_weight(r);
	if (!r->bad)
		take_ticks(r);
	want_end(r);
	if (r->bad) /* only further errors matter now */
		return;
	if (r->cases == 0 && list) {
		r->lists = true;
		*(uint64_t *)vec_add(r, &r->indptr, 1, sizeof(uint64_t)) = 0;
	}
	store_inputs(r, list);
	r->cases++;
}

/* ---- to Data ---- */

static void *vec_keep(Reader *r, const Vec *v, size_t size)
{
	Arena *scratch = &r->cx->scratch;
	if (!v->count)
		return arena_alloc(&r->cx->keep, 0, size);
	return arena_move(scratch, &r->cx->keep, arena_trim(scratch, v->v, v->cap, v->count, size), v->count, size);
}

static const Text *names_keep(Reader *r, const Names *n)
{
	Text *t = vec_keep(r, &n->text, sizeof *t);
	const char *bytes = vec_keep(r, &n->bytes, 1);
	for (uint64_t i = 0; i < n->text.count; i++) {
		t[i].s = bytes;
		bytes += t[i].len;
	}
	return t;
}

static void give_inputs(Reader *r, Data *d)
{
	d->cases = r->cases;
	d->inputs = r->inputs;
	d->x_type = T_F32;
	if (!r->lists) {
		d->x = r->x.v;
		if (r->cases && r->inputs)
			data_pack(r->cx, d);
		if (d->x)
			d->x = vec_keep(r, &r->x, sizeof(float));
		else
			arena_drop(&r->cx->scratch, r->x.v, r->x.cap, sizeof(float));
		return;
	}
	d->x_indptr = vec_keep(r, &r->indptr, sizeof(uint64_t));
	d->x_indices = vec_keep(r, &r->indices, sizeof(uint32_t));
	if (r->values.count)
		d->x_values = vec_keep(r, &r->values, sizeof(float));
}

static void give_scale(Reader *r, Data *d)
{
	const char *end = r->src->text + r->src->len;
	if (r->scale == SCALE_NONE)
		return;
	if (r->offset.count != r->inputs || r->factor.count != r->inputs) {
		wrong(r, end, "write 'offset' and 'factor' with one number for every input",
		      "the scale has %" PRIu64 " offsets and %" PRIu64 " factors, but there are %" PRIu32 " inputs",
		      r->offset.count, r->factor.count, r->inputs);
		return;
	}
	d->scale.kind = r->scale;
	d->scale.offset = vec_keep(r, &r->offset, sizeof(double));
	d->scale.factor = vec_keep(r, &r->factor, sizeof(double));
}

static Data *give(Reader *r)
{
	Data *d = NEW(&r->cx->keep, 1, Data);
	d->name = arena_copy(&r->cx->keep, r->src->name, strlen(r->src->name));
	give_inputs(r, d);
	give_scale(r, d);
	d->targets = r->unlabelled ? 0 : r->targets;
	d->y_type = T_F32;
	d->y = vec_keep(r, &r->y, sizeof(float));
	if (r->weighted)
		d->weight = vec_keep(r, &r->weight, sizeof(float));
	if (r->ticked)
		d->ticks = vec_keep(r, &r->ticks, sizeof(uint32_t));
	if (r->named)
		d->names = names_keep(r, &r->names);
	if (r->seq.count) {
		d->sequences = r->seq.count;
		*(uint64_t *)vec_add(r, &r->seq, 1, sizeof(uint64_t)) = r->cases;
		d->seq = vec_keep(r, &r->seq, sizeof(uint64_t));
	}
	if (d->targets && r->codes.count) {
		d->code_count = (uint32_t)r->code_names.text.count;
		d->codes = vec_keep(r, &r->codes, sizeof(double));
		d->code_names = names_keep(r, &r->code_names);
		classes_of_codes(r->cx, d);
	}
	return d;
}

Data *read_text(Ctx *cx, const Src *s, const DataOptions *opt)
{
	src_check_text(cx, s);
	Reader r = { .cx = cx, .src = s, .p = s->text, .end = s->text + s->len, .unlabelled = opt && opt->unlabelled };
	r.p += src_text_start(s);
	for (size_t released = 0; r.p < r.end; src_release(s, &released, (size_t)(r.p - s->text))) {
		const char *eol = memchr(r.p, '\n', (size_t)(r.end - r.p));
		r.eol = eol ? eol : r.end;
		r.bad = false;
		char c = peek(&r);
		if (is_letter(c))
			keyword_line(&r);
		else if (c)
			case_line(&r);
		r.p = eol ? eol + 1 : r.end;
	}
	Data *d = give(&r);
	check_errors(cx);
	data_check(cx, d, (Loc){ s, s->len });
	data_truncate(cx, d, opt ? opt->first : 0);
	return d;
}
