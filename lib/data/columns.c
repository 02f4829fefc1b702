/* SPDX-License-Identifier: MIT */
/* Roles of the columns of a CSV file.  In: the header line and the options.  Out: CsvColumns.
 *
 * The separator is the most frequent of comma, semicolon and tab in the header.  Items of a list of columns are
 * separated by commas: a name; a number, counted from 1; a range A:B of either, both ends included; or *, all columns
 * not named elsewhere.  A name with a comma is put in double quotes.  A name that looks like a number takes
 * precedence.  Inputs keep the order of their list.
 *
 * Without options the last column is the target and all others are inputs, unless every name is of the form that our
 * own writer uses: x1 x2 ... inputs, y1 y2 ... targets, class (a label), and sequence, weight, name.  A column that an
 * option names as one of the last three may be called anything; the others still count. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data.h"

enum { SEPARATOR_IN = 1 << 20 }; /* bytes of the header that show the separator */
enum { IN_INPUTS = 1, IN_TARGETS = 2, IN_LABELS = 4, IN_OTHERS = 8 };

/* A list of columns under construction. */
typedef struct Pick {
	const char *what; /* the option's name, for messages */
	uint32_t *col;
	uint32_t count;
	int64_t star; /* where in it the rest goes; -1: nowhere */
	uint8_t bit;  /* marks its columns in Planner.used */
} Pick;

typedef struct Planner {
	Ctx *cx;
	const Src *src;
	CsvColumns *c;
	Dict dict;          /* names */
	uint32_t *first_of; /* [names] the first column of this name */
	bool *twice;        /* [names] there is another */
	uint8_t *used;      /* [columns] lists that name it, a bit each */
} Planner;

/* ---- the header ---- */

static char find_separator(const char *p, const char *eol)
{
	static const char seps[] = { ',', ';', '\t' };
	size_t count[COUNT(seps)] = { 0 }, best = 0;
	bool quoted = false;
	eol = eol - p < SEPARATOR_IN ? eol : p + SEPARATOR_IN;
	for (; p < eol; p++) {
		quoted ^= *p == '"';
		for (size_t i = 0; i < COUNT(seps); i++)
			count[i] += !quoted && *p == seps[i];
	}
	for (size_t i = 1; i < COUNT(seps); i++)
		if (count[i] > count[best])
			best = i;
	return seps[best];
}

/* Numbers are names only if they count the columns, as some programs write: 0,1,2 or 1,2,3. */
static bool counts_columns(const CsvColumns *c)
{
	uint64_t start = c->col[0].name.len == 1 && c->col[0].name.s[0] == '0' ? 0 : 1;
	for (uint32_t i = 0; i < c->count; i++) {
		char number[24];
		int len = snprintf(number, sizeof number, "%llu", (unsigned long long)(start + i));
		if (c->col[i].name.len != (uint32_t)len || memcmp(c->col[i].name.s, number, (size_t)len) != 0)
			return false;
	}
	return true;
}

/* Do the fields of the line below have the same kinds, number or text, as those of the first? */
static bool same_kinds(Ctx *cx, const Src *s, const CsvColumns *c)
{
	size_t off = c->body;
	const char *p, *eol;
	if (!csv_line(s, &off, &p, &eol))
		return false;
	for (uint32_t i = 0; i < c->count; i++, p++) {
		Text field;
		float v;
		p = csv_field(cx, s, p, eol, c->sep, &field);
		if (!p)
			check_errors(cx);
		if (!csv_number(field, c->sep, &v) != !csv_number(c->col[i].name, c->sep, &v))
			return false;
		if (p == eol)
			return i + 1 == c->count;
	}
	return false;
}

/* Whether the first line names the columns.  A line of numbers does if it counts them, as some programs write; one with
 * numbers among texts unless the line below is of the same kind, except for a series such as years. */
static bool has_names(Ctx *cx, const Src *s, const CsvColumns *c)
{
	bool series = true;
	float before = 0;
	uint32_t numbers = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		float v;
		if (!csv_number(c->col[i].name, c->sep, &v))
			continue;
		series = series && v == rintf(v) && (numbers == 0 || v == before + 1);
		before = v;
		numbers++;
	}
	if (numbers == 0 || counts_columns(c))
		return true;
	if (numbers == c->count)
		return false;
	return (series && numbers > 1) || !same_kinds(cx, s, c);
}

static void name_columns(Ctx *cx, CsvColumns *c)
{
	for (uint32_t i = 0; i < c->count; i++) {
		Buf b = { .arena = &cx->scratch };
		buf_printf(&b, "c%u", i + 1);
		c->col[i].name = (Text){ b.s, (uint32_t)b.len };
	}
}

/* Before there is a record of each. */
static void check_columns(const Planner *p, const char *at, const char *eol)
{
	uint64_t separators = 0;
	for (; (at = memchr(at, p->c->sep, (size_t)(eol - at))) != NULL; at++)
		if (++separators >= MAX_UNITS)
			fail_at(p->cx, (Loc){ p->src, (size_t)(at - p->src->text) }, "cut it into smaller parts",
			        "the header has more columns than a network can have units (%u)", MAX_UNITS);
}

static void read_header(Planner *p)
{
	const Src *s = p->src;
	const char *text = s->text + src_text_start(s), *end = s->text + s->len;
	while (text < end && (*text == '\n' || *text == '\r' || *text == ' '))
		text++;
	if (text == end)
		fail_at(p->cx, (Loc){ s, s->len }, "the first line names the columns, the others hold one case each",
		        "the file is empty");
	const char *eol = memchr(text, '\n', (size_t)(end - text));
	if (!eol)
		eol = end;
	CsvColumns *c = p->c;
	c->body = (size_t)(eol - s->text) + (eol < end);
	if (eol > text && eol[-1] == '\r')
		eol--;
	c->sep = find_separator(text, eol);
	check_columns(p, text, eol);
	uint64_t cap = 0;
	for (const char *at = text;;) {
		c->col = arena_reserve(&p->cx->scratch, c->col, c->count, &cap, sizeof *c->col);
		CsvColumn *col = &c->col[c->count++];
		*col = (CsvColumn){ .off = (size_t)(at - s->text), .x = -1, .y = -1 };
		at = csv_field(p->cx, s, at, eol, c->sep, &col->name);
		if (!at)
			check_errors(p->cx);
		if (at == eol)
			break;
		at++;
	}
	c->header = has_names(p->cx, s, c);
	if (!c->header) {
		name_columns(p->cx, c);
		c->body = (size_t)(text - s->text);
	}
}

/* ---- lists of columns ---- */

static Loc header_at(const Planner *p) { return (Loc){ p->src, p->c->col[0].off }; }

static void index_names(Planner *p)
{
	uint32_t n = p->c->count;
	p->dict.arena = &p->cx->scratch;
	p->first_of = NEW(&p->cx->scratch, n, uint32_t);
	p->twice = NEW(&p->cx->scratch, n, bool);
	p->used = NEW(&p->cx->scratch, n, uint8_t);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t known = p->dict.count, name = dict_add(&p->dict, p->c->col[i].name);
		if (name == known)
			p->first_of[name] = i;
		else
			p->twice[name] = true;
	}
}

/* "the columns are a, b, c", or the nearest one. */
static const char *column_remedy(Planner *p, Text word)
{
	Arena *a = &p->cx->scratch;
	uint32_t n = p->dict.count < 200 ? p->dict.count : 200;
	const char **names = NEW(a, n, const char *);
	for (uint32_t i = 0; i < n; i++)
		names[i] = arena_copy(a, p->dict.text[i].s, p->dict.text[i].len);
	const char *near = nearest_name(arena_copy(a, word.s, word.len), names, n);
	Buf b = { .arena = a };
	if (near) {
		buf_printf(&b, "did you mean '%.40s'?", near);
		return b.s;
	}
	buf_printf(&b, "there are %u columns:", p->c->count);
	for (uint32_t i = 0; i < n && i < 12; i++)
		buf_printf(&b, "%s %.40s", i ? "," : "", names[i]);
	buf_puts(&b, p->dict.count > 12 ? ", ..." : "");
	return b.s;
}

/* A name or a number; *col is set if it is one, else false. */
static bool find_column(Planner *p, Text word, uint32_t *col)
{
	uint32_t name;
	if (dict_find(&p->dict, word, &name)) {
		*col = p->first_of[name];
		if (p->twice[name])
			error_at(p->cx, (Loc){ p->src, p->c->col[*col].off }, "use its number instead, counted from 1",
			         "several columns are called '%s'", text_shown(p->cx, word));
		return true;
	}
	uint64_t number = 0;
	for (uint32_t i = 0; i < word.len; i++) {
		if (word.s[i] < '0' || word.s[i] > '9' || number > UINT32_MAX)
			return false;
		number = number * 10 + (uint64_t)(word.s[i] - '0');
	}
	*col = (uint32_t)(number - 1);
	return number >= 1 && number <= p->c->count;
}

static void pick_add(Planner *p, Pick *k, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i <= to; i++) {
		const CsvColumn *col = &p->c->col[i];
		if (p->used[i] & k->bit) {
			error_at(p->cx, (Loc){ p->src, col->off }, "name each column once", "%s lists column '%s' twice", k->what,
			         text_shown(p->cx, col->name));
			return;
		}
		k->col[k->count++] = i;
		p->used[i] |= k->bit;
	}
}

static void pick_item(Planner *p, Pick *k, Text word)
{
	uint32_t from, to;
	if (word.len == 1 && *word.s == '*') {
		k->star = k->count;
		return;
	}
	if (find_column(p, word, &from)) {
		pick_add(p, k, from, from);
		return;
	}
	const char *colon = memchr(word.s, ':', word.len);
	if (colon) {
		Text a = { word.s, (uint32_t)(colon - word.s) }, b = { colon + 1, word.len - a.len - 1 };
		if (find_column(p, a, &from) && find_column(p, b, &to) && from <= to) {
			pick_add(p, k, from, to);
			return;
		}
	}
	error_at(p->cx, header_at(p), column_remedy(p, word), "there is no column '%s' as %s asks for",
	         text_shown(p->cx, word), k->what);
}

static Pick pick_new(Planner *p, const char *what, uint8_t bit)
{
	return (Pick){ .what = what, .star = -1, .bit = bit, .col = NEW(&p->cx->scratch, p->c->count, uint32_t) };
}

static Pick pick_list(Planner *p, const char *what, uint8_t bit, const char *list)
{
	Pick k = pick_new(p, what, bit);
	const Src as_text = { .name = what, .text = list, .len = list ? strlen(list) : 0 };
	const char *end = list ? list + as_text.len : NULL;
	for (const char *at = list; at;) {
		Text word;
		at = csv_field(p->cx, &as_text, at, end, ',', &word);
		if (!at)
			break;
		pick_item(p, &k, word);
		at = at < end ? at + 1 : NULL;
	}
	return k;
}

static int64_t pick_one(Planner *p, const char *what, const char *name)
{
	if (!name)
		return -1;
	Pick k = pick_new(p, what, 0);
	pick_item(p, &k, (Text){ name, (uint32_t)strlen(name) });
	if (k.count != 1)
		error_at(p->cx, header_at(p), "name one column", "%s must be one column", what);
	else
		p->used[k.col[0]] |= IN_OTHERS;
	return k.count == 1 ? (int64_t)k.col[0] : -1;
}

/* The rest of the columns, where the list has its star. */
static void pick_rest(Planner *p, Pick *k)
{
	if (k->star < 0)
		return;
	uint32_t rest = 0;
	for (uint32_t i = 0; i < p->c->count; i++)
		rest += !p->used[i];
	memmove(k->col + k->star + rest, k->col + k->star, (k->count - (size_t)k->star) * sizeof *k->col);
	k->count += rest;
	uint32_t *at = k->col + k->star;
	for (uint32_t i = 0; i < p->c->count; i++) {
		if (!p->used[i]) {
			*at++ = i;
			p->used[i] |= k->bit;
		}
	}
}

/* ---- roles ---- */

enum { OWN_X, OWN_Y, OWN_CLASS, OWN_SEQUENCE, OWN_WEIGHT, OWN_NAME, OWN_KINDS };

/* The kind of a column name of our own writer; -1: none. */
static int own_kind(Text t)
{
	static const char *const words[OWN_KINDS] = { "x", "y", "class", "sequence", "weight", "name" };
	uint32_t len = t.len;
	while (len > 1 && t.s[len - 1] >= '0' && t.s[len - 1] <= '9')
		len--;
	for (int i = 0; i < OWN_KINDS; i++)
		if (strlen(words[i]) == len && memcmp(words[i], t.s, len) == 0 && (i <= OWN_Y || len == t.len))
			return i;
	return -1;
}

/* True if the header is our own writer's, apart from columns that options name; then all roles are set. */
static bool plan_own(Planner *p, Pick *inputs, Pick *targets, Pick *labels)
{
	CsvColumns *c = p->c;
	int64_t *single[OWN_KINDS] = { [OWN_SEQUENCE] = &c->sequence, [OWN_WEIGHT] = &c->weight, [OWN_NAME] = &c->names };
	uint32_t count[OWN_KINDS];
	for (int kind = 0; kind < OWN_KINDS; kind++)
		count[kind] = single[kind] && *single[kind] >= 0;
	for (uint32_t i = 0; i < c->count; i++) {
		if (p->used[i])
			continue;
		int kind = own_kind(c->col[i].name);
		if (kind < 0)
			return false;
		count[kind]++;
	}
	for (int kind = OWN_CLASS; kind < OWN_KINDS; kind++)
		if (count[kind] > 1)
			return false;
	if (!count[OWN_X])
		return false;
	for (uint32_t i = 0; i < c->count; i++) {
		if (p->used[i])
			continue;
		int kind = own_kind(c->col[i].name);
		if (single[kind])
			*single[kind] = i;
		else
			pick_add(p, kind == OWN_X ? inputs : targets, i, i);
		if (kind == OWN_CLASS)
			labels->col[labels->count++] = i;
	}
	return true;
}

/* Names of columns that become inputs though they are those of a role in our own files. */
void columns_note(Ctx *cx, const Src *s, const CsvColumns *c)
{
	static const char *const option[OWN_KINDS] = {
		[OWN_SEQUENCE] = "--sequence", [OWN_WEIGHT] = "--weight", [OWN_NAME] = "--names"
	};
	for (uint32_t i = 0; i < c->count; i++) {
		const CsvColumn *col = &c->col[i];
		int kind = own_kind(col->name);
		if (kind < 0 || !option[kind] || col->x < 0)
			continue;
		Buf b = { .arena = &cx->scratch };
		buf_printf(&b, "if it is none: %s %s", option[kind], text_shown(cx, col->name));
		note_at(cx, (Loc){ s, col->off }, b.s, "column '%s' is an input", text_shown(cx, col->name));
	}
}

bool csv_default_roles(const DataColumn *c, uint32_t count)
{
	uint32_t own = 0, fit = 0, targets = 0;
	for (uint32_t i = 0; i < count; i++) {
		static const int roles[OWN_KINDS] = { COLUMN_INPUT,    COLUMN_TARGET, COLUMN_TARGET,
			                                  COLUMN_SEQUENCE, COLUMN_WEIGHT, COLUMN_NAME };
		Text name = { c[i].name, (uint32_t)strlen(c[i].name) };
		float v;
		int kind = own_kind(name);
		if (!name.len || csv_number(name, ',', &v))
			return false;
		own += kind >= 0;
		fit += kind >= 0 && roles[kind] == c[i].role && (kind == OWN_CLASS) == c[i].label;
		targets += c[i].role == COLUMN_TARGET;
	}
	if (own == count)
		return fit == count;
	return targets == 1 && c[count - 1].role == COLUMN_TARGET;
}

/* The last column without another role. */
static void default_target(Planner *p, Pick *targets)
{
	for (int named = 1; named >= 0; named--) { /* lines that end with a separator have a last column without a name */
		for (uint32_t i = p->c->count; i-- > 0;) {
			if (!p->used[i] && (!named || p->c->col[i].name.len)) {
				pick_add(p, targets, i, i);
				return;
			}
		}
	}
	error_at(p->cx, header_at(p), "name the target with --targets, or say --unlabelled",
	         "no column is left for the target");
}

static void add_labels(Planner *p, const Pick *labels, Pick *targets)
{
	for (uint32_t i = 0; i < labels->count; i++) {
		uint32_t col = labels->col[i];
		p->c->col[col].label = true;
		if (!(p->used[col] & targets->bit))
			pick_add(p, targets, col, col);
	}
}

static void set_roles(Planner *p, const Pick *inputs, const Pick *targets)
{
	CsvColumns *c = p->c;
	for (uint32_t i = 0; i < inputs->count; i++)
		c->col[inputs->col[i]].x = i;
	for (uint32_t i = 0; i < targets->count; i++)
		c->col[targets->col[i]].y = i;
	for (uint32_t i = 0; i < c->count; i++) {
		CsvColumn *col = &c->col[i];
		bool single = c->sequence == i || c->weight == i || c->names == i || c->fold == i;
		col->plain = (col->x >= 0 || col->y >= 0) && !single;
		if (col->label && col->x >= 0)
			error_at(p->cx, (Loc){ p->src, col->off }, "make it an input or a label",
			         "column '%s' is a label and an input", text_shown(p->cx, col->name));
	}
	c->inputs = inputs->count;
	c->targets = targets->count;
	c->target = targets->col;
}

CsvColumns *columns_header(Ctx *cx, const Src *s)
{
	Planner p = { .cx = cx, .src = s, .c = NEW(&cx->scratch, 1, CsvColumns) };
	p.c->sequence = p.c->weight = p.c->names = p.c->fold = -1;
	read_header(&p);
	return p.c;
}

void columns_mark(Ctx *cx, const Src *s, const CsvColumns *c, const char *option, const char *list, bool *mark)
{
	Planner p = { .cx = cx, .src = s, .c = (CsvColumns *)c };
	index_names(&p);
	Pick k = pick_list(&p, option, IN_OTHERS, list);
	pick_rest(&p, &k);
	check_errors(cx);
	for (uint32_t i = 0; i < k.count; i++)
		mark[k.col[i]] = true;
}

CsvColumns *columns_plan(Ctx *cx, const Src *s, const DataOptions *opt)
{
	static const DataOptions none;
	if (!opt)
		opt = &none;
	Planner p = { .cx = cx, .src = s, .c = columns_header(cx, s) };
	CsvColumns *c = p.c;
	index_names(&p);
	if (!c->header)
		note_at(cx, header_at(&p), "give it a first line of names, such as a,b,c",
		        "the first line holds no names: the columns are called c1 to c%u", c->count);
	c->sequence = pick_one(&p, "--sequence", opt->sequence);
	c->weight = pick_one(&p, "--weight", opt->weight);
	c->names = pick_one(&p, "--names", opt->names);
	c->fold = pick_one(&p, "--fold", opt->fold);
	Pick inputs = pick_list(&p, "--inputs", IN_INPUTS, opt->inputs);
	Pick targets = pick_list(&p, "--targets", IN_TARGETS, opt->targets);
	Pick labels = pick_list(&p, "--labels", IN_LABELS, opt->labels);
	check_errors(cx);
	if (opt->unlabelled && (opt->targets || opt->labels))
		fail_at(cx, header_at(&p), "leave one of them out",
		        "--unlabelled says that there are no targets, but some are named");

	bool chosen = opt->inputs || opt->targets || opt->labels;
	if (chosen || !plan_own(&p, &inputs, &targets, &labels)) {
		if (!opt->inputs)
			inputs.star = 0;
		add_labels(&p, &labels, &targets);
		if (!targets.count && targets.star < 0 && !opt->unlabelled)
			default_target(&p, &targets);
		pick_rest(&p, &targets);
		pick_rest(&p, &inputs);
	} else {
		c->own = true;
		add_labels(&p, &labels, &targets);
		if (opt->unlabelled)
			targets.count = 0;
	}
	set_roles(&p, &inputs, &targets);
	check_errors(cx);
	if (!c->inputs)
		fail_at(cx, header_at(&p), "name the inputs with --inputs", "no column is left for the inputs");
	return c;
}
