/* SPDX-License-Identifier: MIT */
/* Text example files of LENS (.ex), read and written.
 *
 *     set      = { whole number } { field } [ ";" ] { example }
 *     example  = { "name:" S | "freq:" R | "proc:" S | events } { block } ";"
 *     block    = "[" { event | event-event | "*" } { field } "]"  |  letter { range }
 *     letter   = "I:" | "T:" | "B:" (dense)  |  "i:" | "t:" | "b:" (sparse)
 *     range    = [ "(" [ group ] [ first ] ")" ] { R }  |  [ "{" [ group ] [ value ] "}" ] { unit | unit-unit | "*" }
 *     field    = "proc:" S | "max:" R | "min:" R | "grace:" R | "defI:" R | "actI:" R | "defT:" R | "actT:" R
 *
 * A line that begins with # is a comment.  A lone - is no value.  The first I and T after an event list are those of
 * all its events; any other is that of the event after the last that has one. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lens.h"

typedef struct Reader {
	Cursor c;
	LensSet set;
	LensEvent usual; /* what the fields of the set say */
	/* of the current example */
	const uint32_t *listed[LENS_SIDES]; /* events that the next I or T is for; NULL: the one after the last */
	uint64_t listed_count;
	uint64_t next[LENS_SIDES];
} Reader;

/* ---- words -------------------------------------------------------------------------------------- */

static bool at_text(const Cursor *c, const char *text)
{
	size_t n = strlen(text);
	return c->src->len - c->at >= n && memcmp(c->src->text + c->at, text, n) == 0;
}

static bool take_text(Cursor *c, const char *text)
{
	cursor_peek(c);
	if (!at_text(c, text))
		return false;
	c->at += strlen(text);
	return true;
}

/* A word, or anything in brackets or quotes. */
static Text take_string(Cursor *c)
{
	static const char open[] = "{([\"", close[] = "})]\"";
	char first = cursor_peek(c);
	const char *kind = first ? strchr(open, first) : NULL;
	if (!kind) {
		size_t from = c->at;
		while (c->at < c->src->len && !strchr(" \t\r\n;", c->src->text[c->at]))
			c->at++;
		return (Text){ c->src->text + from, (uint32_t)min_u64(c->at - from, UINT32_MAX) };
	}
	Loc at = cursor_loc(c);
	size_t from = ++c->at, depth = 1;
	for (; c->at < c->src->len; c->at++) {
		char b = c->src->text[c->at];
		if (b == '\\')
			c->at++;
		else if (b == close[kind - open] && --depth == 0)
			break;
		else if (b == first && first != '"')
			depth++;
	}
	if (c->at >= c->src->len)
		fail_at(c->cx, at, "close it", "the text in %c%c does not end", *kind, close[kind - open]);
	c->at++;
	return (Text){ c->src->text + from, (uint32_t)min_u64(c->at - 1 - from, UINT32_MAX) };
}

/* A number; a lone - is NaN. */
static bool take_real(Cursor *c, float *v)
{
	double d;
	if (cursor_peek(c) == '-') {
		char next = c->at + 1 < c->src->len ? c->src->text[c->at + 1] : ' ';
		if (strchr(" \t\r\n});", next)) {
			c->at++;
			*v = NAN;
			return true;
		}
	}
	if (!cursor_number(c, &d))
		return false;
	*v = (float)d;
	return true;
}

/* ---- fields ------------------------------------------------------------------------------------- */

static bool take_field(Reader *r, LensEvent *e)
{
	static const char *const values[] = { "defI:", "actI:", "defT:", "actT:" };
	static const char *const times[] = { "max:", "min:", "grace:" };
	Cursor *c = &r->c;
	float v;
	cursor_peek(c);
	Loc at = cursor_loc(c);
	if (take_text(c, "proc:")) {
		take_string(c);
		lens_procedure(&r->set, at);
		return true;
	}
	for (size_t i = 0; i < COUNT(times); i++) {
		if (!take_text(c, times[i]))
			continue;
		if (!take_real(c, &v))
			cursor_expected(c, "a time", "a number, or - for none");
		lens_time(&r->set, at);
		return true;
	}
	for (size_t i = 0; i < COUNT(values); i++) {
		if (!take_text(c, values[i]))
			continue;
		if (!take_real(c, &v))
			cursor_expected(c, "a value", "a number, or - for none");
		(i % 2 ? e->active : e->rest)[i / 2] = v;
		return true;
	}
	return false;
}

/* ---- event lists -------------------------------------------------------------------------------- */

static void take_events(Reader *r)
{
	Cursor *c = &r->c;
	LensExample *e = &r->set.example[r->set.examples - 1];
	uint32_t *list = NEW(&c->cx->scratch, e->events, uint32_t);
	uint64_t count = 0, a, b;
	bool any = false;
	for (char next; (next = cursor_peek(c)) == '*' || (next >= '0' && next <= '9');) {
		Loc at = cursor_loc(c);
		if (cursor_take(c, '*')) {
			a = 0;
			b = e->events - 1;
		} else {
			a = cursor_whole(c, &a) ? a : UINT64_MAX; /* more than there can be */
			b = a;
			if (cursor_take(c, '-') && !cursor_whole(c, &b))
				cursor_expected(c, "the last event of a range", "0-3");
		}
		if (a > b || b >= e->events || b - a >= e->events - count)
			fail_at(c->cx, at, "events are numbered from 0, and each is named once",
			        "the example has %" PRIu64 " events; this list does not fit", e->events);
		for (; a <= b; a++)
			list[count++] = (uint32_t)a;
		any = true;
	}
	for (; !any && count < e->events; count++)
		list[count] = (uint32_t)count;
	while (cursor_peek(c) != ']') {
		LensEvent before = r->set.event[e->event + (count ? list[0] : 0)], given = before;
		if (!take_field(r, &given))
			cursor_expected(c, "a field such as defT:, or ]", "[ 0-2 defT:- ]");
		for (uint64_t i = 0; i < count; i++) {
			LensEvent *v = &r->set.event[e->event + list[i]];
			for (int k = 0; k < LENS_SIDES; k++) {
				if (memcmp(&given.rest[k], &before.rest[k], sizeof(float)) != 0)
					v->rest[k] = given.rest[k];
				if (memcmp(&given.active[k], &before.active[k], sizeof(float)) != 0)
					v->active[k] = given.active[k];
			}
		}
	}
	cursor_take(c, ']');
	for (int k = 0; k < LENS_SIDES; k++)
		r->listed[k] = list;
	r->listed_count = count;
}

/* ---- ranges ------------------------------------------------------------------------------------- */

static LensRange *start_range(Reader *r, bool sparse, float active)
{
	cursor_peek(&r->c);
	LensRange *range = lens_range(&r->set, cursor_loc(&r->c));
	range->listed = sparse;
	range->value = active;
	return range;
}

/* ( group first ) or { group value }: either or both. */
static void take_bracket(Reader *r, LensRange *range)
{
	Cursor *c = &r->c;
	char close = cursor_take(c, '(') ? ')' : '}';
	if (close == '}')
		cursor_take(c, '{');
	while (!cursor_take(c, close)) {
		uint64_t first;
		Cursor before = *c;
		if (close == ')' && cursor_whole(c, &first)) {
			if (first >= MAX_UNITS)
				fail_at(c->cx, cursor_loc(&before), "units are numbered from 0", "unit %" PRIu64 " is named", first);
			range->first = (uint32_t)first;
		} else if (close != '}' || !take_real(c, &range->value)) {
			char next = cursor_peek(c);
			size_t from = c->at;
			if (!next || next == ';')
				cursor_expected(c, close == ')' ? "a group, a unit or )" : "a group, a value or }",
				                "close the bracket");
			if (strchr("{([\"", next)) {
				range->group = take_string(c);
				continue;
			}
			while (c->at < c->src->len && !strchr(" \t\r\n;", c->src->text[c->at]) && c->src->text[c->at] != close)
				c->at++;
			range->group = (Text){ c->src->text + from, (uint32_t)min_u64(c->at - from, UINT32_MAX) };
		}
	}
}

static void take_units(Reader *r)
{
	Cursor *c = &r->c;
	for (char next; (next = cursor_peek(c)) == '*' || (next >= '0' && next <= '9');) {
		LensRange *range = &r->set.range[r->set.ranges - 1];
		uint64_t a, b;
		Loc at = cursor_loc(c);
		if (cursor_take(c, '*')) {
			range->all = true;
			continue;
		}
		a = cursor_whole(c, &a) ? a : UINT64_MAX; /* more than there can be */
		b = a;
		if (cursor_peek(c) == '-') {
			cursor_take(c, '-');
			if (!cursor_whole(c, &b))
				cursor_expected(c, "the last unit of a range", "3-7");
		}
		if (b < a || b >= MAX_UNITS || r->set.numbers + (b - a) > 1u << 25)
			fail_at(c->cx, at, "units are numbered from 0, and a range ascends", "these units cannot be");
		for (; a <= b; a++)
			lens_number(&r->set, (float)a);
	}
}

/* All ranges after a letter. */
static void take_ranges(Reader *r, bool sparse, float active)
{
	Cursor *c = &r->c;
	for (bool open = false;;) {
		char next = cursor_peek(c);
		float v;
		if (next == '(' || next == '{') {
			sparse = next == '{';
			take_bracket(r, start_range(r, sparse, active));
			open = true;
		} else if (sparse && (next == '*' || (next >= '0' && next <= '9'))) {
			if (!open)
				start_range(r, true, active);
			open = true;
			take_units(r);
		} else if (!sparse && take_real(c, &v)) {
			if (!open)
				start_range(r, false, active);
			open = true;
			lens_number(&r->set, v);
		} else {
			return;
		}
	}
}

/* The events that the next values of this side are for. */
static uint64_t events_for(Reader *r, int side, const uint32_t **list)
{
	uint32_t *one = NEW(&r->c.cx->scratch, 1, uint32_t);
	*list = r->listed[side];
	r->listed[side] = NULL;
	if (*list)
		return r->listed_count;
	*one = (uint32_t)min_u64(r->next[side], UINT32_MAX);
	*list = one;
	return 1;
}

static bool take_block(Reader *r)
{
	static const struct {
		const char *word;
		bool sparse, input, target;
	} letters[] = {
		{ "I:", false, true, false }, { "i:", true, true, false }, { "T:", false, false, true },
		{ "t:", true, false, true },  { "B:", false, true, true }, { "b:", true, true, true },
	};
	Cursor *c = &r->c;
	LensExample *e = &r->set.example[r->set.examples - 1];
	if (cursor_take(c, '[')) {
		take_events(r);
		return true;
	}
	for (size_t i = 0; i < COUNT(letters); i++) {
		Loc at = cursor_loc(c);
		if (!take_text(c, letters[i].word))
			continue;
		int side = letters[i].input ? LENS_INPUT : LENS_TARGET;
		const uint32_t *list;
		uint64_t count = events_for(r, side, &list), first = r->set.ranges;
		uint64_t of = count && list[0] < e->events ? list[0] : 0;
		take_ranges(r, letters[i].sparse, r->set.event[e->event + of].active[side]);
		for (int k = side; k < LENS_SIDES; k++) {
			if (k == LENS_TARGET && !letters[i].target)
				continue;
			if (k != side && r->listed[k])
				count = events_for(r, k, &list);
			for (uint64_t n = 0; n < count; n++) {
				lens_give(&r->set, list[n], k, first, at);
				r->next[k] = max_u64(r->next[k], list[n] + 1ull);
			}
		}
		return true;
	}
	return false;
}

/* ---- examples ----------------------------------------------------------------------------------- */

static void take_example(Reader *r)
{
	Cursor *c = &r->c;
	uint64_t events = 1;
	cursor_peek(c);
	Loc at = cursor_loc(c), count_at = at;
	LensExample *e = lens_example(&r->set, at);
	for (;;) {
		char next = cursor_peek(c);
		Loc here = cursor_loc(c);
		if (take_text(c, "name:")) {
			e->name = take_string(c);
		} else if (take_text(c, "freq:")) {
			if (!take_real(c, &e->freq) || !(e->freq >= 0))
				cursor_expected(c, "a frequency", "a number, 0 or more");
		} else if (take_text(c, "proc:")) {
			take_string(c);
			lens_procedure(&r->set, here);
		} else if (next >= '0' && next <= '9') {
			count_at = here;
			events = cursor_need_whole(c, "the number of events", 1, LENS_EVENTS);
		} else {
			break;
		}
	}
	lens_events(&r->set, events, &r->usual, count_at);
	r->listed[0] = r->listed[1] = NULL;
	r->next[0] = r->next[1] = 0;
	while (!cursor_take(c, ';'))
		if (!take_block(r))
			cursor_expected(c, "inputs (I: or i:), targets (T: or t:) or ;", "an example ends with ;");
}

bool looks_lens(const Src *s)
{
	static const char *const words[] = { "name:", "freq:", "proc:", "I:",    "i:",    "T:",    "t:",    "B:",
		                                 "b:",    "max:",  "min:",  "defI:", "actI:", "defT:", "actT:", "grace:" };
	const char *p = s->text, *end = p + s->len;
	for (int skipped = 0; p < end;) {
		if (*p == '#') {
			const char *eol = memchr(p, '\n', (size_t)(end - p));
			p = eol ? eol + 1 : end;
		} else if (strchr(" \t\r\n", *p) && *p) {
			p++;
		} else if ((*p == ';' || (*p >= '0' && *p <= '9')) && skipped < 40) {
			p++;
			skipped++;
		} else {
			break;
		}
	}
	for (size_t i = 0; i < COUNT(words); i++)
		if ((size_t)(end - p) > strlen(words[i]) && memcmp(p, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

Data *read_lens(Ctx *cx, const Src *s, const DataOptions *opt)
{
	Reader *r = NEW(&cx->scratch, 1, Reader);
	uint64_t old;
	r->c = cursor_open(cx, s, '#');
	r->c.comment_lines = true;
	r->set = (LensSet){ .cx = cx, .src = r->c.src, .opt = opt };
	r->usual = (LensEvent){ .active = { 1, 1 } };
	for (int i = 0; i < 2; i++) /* numbers of inputs and targets, in old files */
		if (!cursor_whole(&r->c, &old))
			break;
	while (take_field(r, &r->usual)) {
	}
	cursor_take(&r->c, ';');
	while (cursor_peek(&r->c))
		take_example(r);
	if (!r->set.examples)
		cursor_expected(&r->c, "an example", "I: 0 1 T: 1;");
	return lens_data(&r->set);
}

/* ---- writing ------------------------------------------------------------------------------------ */

static void put_values(Buf *b, const char *letter, const float *row, uint32_t count)
{
	bool binary = count >= 8;
	for (uint32_t k = 0; k < count; k++)
		binary = binary && (row[k] == 0 || row[k] == 1);
	if (binary) {
		buf_printf(b, "%c:", letter[0] | 0x20);
		for (uint32_t k = 0; k < count; k++)
			if (row[k] == 1)
				buf_printf(b, " %" PRIu32, k);
		return;
	}
	buf_printf(b, "%s:", letter);
	for (uint32_t k = 0; k < count; k++) {
		buf_puts(b, " ");
		if (isnan(row[k]))
			buf_puts(b, "-");
		else
			number_put(b, row[k]);
	}
}

static void put_name(Buf *b, Text name)
{
	buf_puts(b, "name:{");
	for (uint32_t i = 0; i < name.len; i++) {
		if (strchr("{}\\", name.s[i]))
			buf_puts(b, "\\");
		buf_add(b, &name.s[i], 1);
	}
	buf_puts(b, "} ");
}

void write_lens(Ctx *cx, const Data *d, const char *path)
{
	OutFile *f = file_create(cx, &cx->scratch, path);
	Buf b = { .arena = &cx->scratch };
	float *row = NEW(&cx->scratch, max_u32(d->inputs, d->targets), float);
	data_note_lost(cx, d, "LENS", HOLDS_SEQ | HOLDS_WEIGHT | HOLDS_NAMES);
	buf_puts(&b, d->targets ? ";\n" : "defT:-;\n");
	for (uint64_t e = 0; e < data_examples(d); e++) {
		uint64_t first, count;
		data_example(d, e, &first, &count);
		if (d->names && d->names[first].len)
			put_name(&b, d->names[first]);
		if (d->weight && d->weight[first] != 1) {
			buf_puts(&b, "freq:");
			number_put(&b, d->weight[first]);
			buf_puts(&b, " ");
		}
		if (count > 1)
			buf_printf(&b, "%" PRIu64 "\n", count);
		for (uint64_t i = first; i < first + count; i++) {
			data_x(d, i, row);
			put_values(&b, "I", row, d->inputs);
			buf_puts(&b, d->targets ? " " : "");
			data_y(d, i, row);
			if (d->targets)
				put_values(&b, "T", row, d->targets);
			buf_puts(&b, i + 1 < first + count ? "\n" : ";\n");
		}
		file_write(f, b.s, b.len);
		b.len = 0;
	}
	file_commit(cx, f);
}
