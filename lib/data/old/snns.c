/* SPDX-License-Identifier: MIT */
/* Patterns of SNNS (.pat) read and written, and its results (.res) read.
 *
 * A pattern file is a header of lines `key : value` in a fixed order and then numbers: for each pattern inputs,
 * outputs and, where the header counts classes, the name of its class.  # begins a comment.
 * A result file holds outputs of a network, the targets of our data; inputs are those of the file, if it has them, or
 * of the patterns it was made from. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "old.h"

static const char pat_title[] = "SNNS pattern definition file";
static const char res_title[] = "SNNS result file";

bool looks_snns(const Src *s) { return src_begins(s, pat_title, '#'); }

bool looks_snns_results(const Src *s) { return src_begins(s, res_title, '#'); }

/* ---- header ------------------------------------------------------------------------------------- */

/* The text, blanks in it counting as one; false, and the cursor is where it was, if something else stands here. */
static bool take_words(Cursor *c, const char *text)
{
	Cursor start = *c;
	for (cursor_peek(c); *text; text++) {
		if (*text == ' ') {
			cursor_peek(c);
			continue;
		}
		if (c->at >= c->src->len || c->src->text[c->at] != *text) {
			*c = start;
			return false;
		}
		c->at++;
	}
	return true;
}

static bool take_key(Cursor *c, const char *key)
{
	Cursor start = *c;
	if (take_words(c, key) && cursor_take(c, ':'))
		return true;
	*c = start;
	return false;
}

static uint64_t need_count(Cursor *c, const char *key, uint64_t low)
{
	Buf what = { .arena = &c->cx->scratch };
	buf_printf(&what, "'%s : N'", key);
	if (!take_key(c, key))
		cursor_expected(c, what.s, "the lines of the header have a fixed order");
	return cursor_need_whole(c, key, low, MAX_UNITS);
}

/* Fails, or notes where `lossy`, that something of the file has no place here. */
static void lost(Cursor *c, bool lossy, Loc at, const char *what)
{
	if (!lossy)
		fail_at(c->cx, at, "import it with --lossy to leave that out", "%s", what);
	note_at(c->cx, at, NULL, "left out: %s", what);
}

static void skip_list(Cursor *c)
{
	if (!cursor_take(c, '['))
		cursor_expected(c, "a list in brackets", "[ 1 2 ]");
	while (!cursor_take(c, ']'))
		cursor_need_number(c, "a number of the list, or ]");
}

enum { IN, OUT, SIDES, MOST_DIMENSIONS = 2 };
typedef struct PatHead {
	uint64_t cases;
	uint64_t units[SIDES]; /* of a pattern; with variable dimensions, of a place in it */
	uint64_t dims[SIDES];  /* variable dimensions */
	uint64_t size[SIDES][MOST_DIMENSIONS];
	bool classes;
} PatHead;

/* Patterns that might have been of different sizes. */
static void read_dimensions(Cursor *c, PatHead *h)
{
	static const char *const count[] = { "No. of variable input dimensions", "No. of variable output dimensions" };
	static const char *const most[] = { "Maximum input dimensions", "Maximum output dimensions" };
	for (int i = 0; i < SIDES; i++) {
		if (!take_key(c, count[i]))
			continue;
		h->dims[i] = cursor_need_whole(c, count[i], 0, MOST_DIMENSIONS);
		if (!take_key(c, most[i]))
			cursor_expected(c, most[i], "the lines of the header have a fixed order");
		skip_list(c);
	}
}

static void read_optional(Cursor *c, bool lossy, PatHead *h)
{
	Loc at;
	read_dimensions(c, h);
	if (take_key(c, "No. of classes")) {
		h->classes = cursor_need_whole(c, "No. of classes", 0, MAX_UNITS) > 0;
		cursor_peek(c);
		at = cursor_loc(c);
		if (take_key(c, "Class redistribution")) {
			skip_list(c);
			note_at(c->cx, at, "give the cases weights if some should count more",
			        "the class redistribution is left out: every pattern is one case");
		}
	}
	cursor_peek(c);
	at = cursor_loc(c);
	if (!take_key(c, "Remap function"))
		return;
	Text name = cursor_word(c);
	if (!text_is(name, "None"))
		lost(c, lossy, at, "a remap function changes the targets");
	if (take_key(c, "Remap parameters"))
		skip_list(c);
}

static PatHead read_head(Cursor *c, bool lossy)
{
	PatHead h = { 0 };
	if (!take_words(c, pat_title))
		cursor_expected(c, "'SNNS pattern definition file V3.2'", "give the pattern file (.pat) of SNNS");
	Text version = cursor_word(c);
	if (version.len < 2 || (version.s[0] | 0x20) != 'v' || version.s[1] < '1' || version.s[1] > '4')
		fail_at(c->cx, (Loc){ c->src, (size_t)(version.s - c->src->text) }, "versions up to V4.2 are read",
		        "the version is '%s'", text_shown(c->cx, version));
	if (!take_words(c, "generated at"))
		cursor_expected(c, "'generated at'", "the header has this line below the title");
	cursor_line(c);
	h.cases = need_count(c, "No. of patterns", 1);
	h.units[IN] = need_count(c, "No. of input units", 1);
	if (take_key(c, "No. of output units"))
		h.units[OUT] = cursor_need_whole(c, "No. of output units", 0, MAX_UNITS);
	read_optional(c, lossy, &h);
	return h;
}

/* ---- patterns ------------------------------------------------------------------------------------ */

/* No more memory than the file can fill. */
static void check_size(Cursor *c, uint64_t cases, uint64_t wide)
{
	if (wide && cases > cursor_numbers_left(c) / wide)
		fail_at(c->cx, (Loc){ c->src, c->src->len }, "check that the file is complete",
		        "the file is too short for %" PRIu64 " patterns of %" PRIu64 " numbers", cases, wide);
}

static void read_row(Cursor *c, const char *what, float *row, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		row[i] = (float)cursor_need_number(c, what);
}

/* [ 3 2 ]: the size of a pattern of variable dimensions.  All must have that of the first. */
static void take_size(Cursor *c, PatHead *h, int side, bool first)
{
	if (!h->dims[side])
		return;
	cursor_peek(c);
	Loc at = cursor_loc(c);
	if (!cursor_take(c, '['))
		cursor_expected(c, "the size of the pattern in brackets", "[ 3 2 ]");
	for (uint64_t i = 0; i < h->dims[side]; i++) {
		uint64_t n = cursor_need_whole(c, "a size", 1, MAX_UNITS);
		if (!first && n != h->size[side][i])
			fail_at(c->cx, at, "cut the patterns into windows of one size first",
			        "the pattern has another size than the first: a network would see a moving window of it");
		h->size[side][i] = n;
		if (first && (h->units[side] *= n) > MAX_UNITS)
			fail_at(c->cx, at, "networks are smaller", "a pattern of more than %u numbers", MAX_UNITS);
	}
	if (!cursor_take(c, ']'))
		cursor_expected(c, "]", "one number for each variable dimension");
}

/* Sizes stand before the numbers of the first pattern; the cursor stays where it is. */
static void first_sizes(Cursor c, PatHead *h)
{
	take_size(&c, h, IN, true);
	for (uint64_t i = 0; h->dims[OUT] && i < h->units[IN]; i++)
		cursor_need_number(&c, "an input of the pattern");
	take_size(&c, h, OUT, true);
}

static Data *data_of(Ctx *cx, const Src *s, uint64_t cases, uint32_t inputs, uint32_t targets)
{
	Data *d = NEW(&cx->keep, 1, Data);
	d->name = arena_copy(&cx->keep, s->name, strlen(s->name));
	d->cases = cases;
	d->inputs = inputs;
	d->targets = targets;
	d->x_type = d->y_type = T_F32;
	return d;
}

static void finish(Ctx *cx, Data *d, const DataOptions *opt, Loc end)
{
	if (opt && opt->unlabelled)
		d->targets = 0;
	data_count_bytes(d);
	data_check(cx, d, end);
	data_pack(cx, d);
	data_truncate(cx, d, opt ? opt->first : 0);
}

Data *read_snns(Ctx *cx, const Src *s, const DataOptions *opt)
{
	Cursor c = cursor_open(cx, s, '#');
	PatHead h = read_head(&c, opt && opt->lossy);
	first_sizes(c, &h);
	uint32_t inputs = (uint32_t)h.units[IN], outputs = (uint32_t)h.units[OUT];
	check_size(&c, h.cases, h.units[IN] + h.units[OUT] + h.classes);
	Data *d = data_of(cx, s, h.cases, inputs, outputs);
	float *x = NEW(&cx->keep, h.cases * inputs, float), *y = NEW(&cx->keep, h.cases * outputs, float);
	Text *names = h.classes ? NEW(&cx->keep, h.cases, Text) : NULL;
	for (uint64_t i = 0; i < h.cases; i++) {
		take_size(&c, &h, IN, false);
		read_row(&c, "an input of the pattern", x + i * inputs, inputs);
		take_size(&c, &h, OUT, false);
		read_row(&c, "an output of the pattern", y + i * outputs, outputs);
		if (!names)
			continue;
		Text t = cursor_word(&c);
		if (!t.len)
			cursor_expected(&c, "the name of a class", "one word after the numbers of every pattern");
		names[i] = (Text){ arena_copy(&cx->keep, t.s, t.len), t.len };
	}
	if (cursor_peek(&c))
		cursor_expected(&c, "the end of the file", "the header says how many patterns there are");
	d->x = x;
	d->y = outputs ? y : NULL;
	d->names = names;
	finish(cx, d, opt, cursor_loc(&c));
	return d;
}

static void put_row(Buf *b, const char *what, uint64_t i, const float *row, uint32_t count)
{
	enum { IN_A_LINE = 10 };
	buf_printf(b, "# %s pattern %" PRIu64 ":\n", what, i + 1);
	for (uint32_t k = 0; k < count; k++) {
		number_put(b, row[k]);
		buf_puts(b, (k + 1) % IN_A_LINE && k + 1 < count ? " " : "\n");
	}
}

void write_snns(Ctx *cx, const Data *d, const char *path)
{
	OutFile *f = file_create(cx, &cx->scratch, path);
	Buf b = { .arena = &cx->scratch };
	float *row = NEW(&cx->scratch, max_u32(d->inputs, d->targets), float);
	data_note_lost(cx, d, "SNNS", 0);
	buf_printf(&b, "%s V3.2\ngenerated at a time that is not recorded\n\n\n", pat_title);
	buf_printf(&b, "No. of patterns : %" PRIu64 "\nNo. of input units : %" PRIu32 "\n", d->cases, d->inputs);
	if (d->targets)
		buf_printf(&b, "No. of output units : %" PRIu32 "\n", d->targets);
	buf_puts(&b, "\n");
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, row);
		put_row(&b, "Input", i, row, d->inputs);
		data_y(d, i, row);
		targets_all(cx, d, "SNNS", row, i);
		if (d->targets)
			put_row(&b, "Output", i, row, d->targets);
		file_write(f, b.s, b.len);
		b.len = 0;
	}
	file_commit(cx, f);
}

/* ---- results ------------------------------------------------------------------------------------ */

typedef struct ResHead {
	uint64_t first, last; /* patterns, from 1 */
	uint32_t inputs, outputs;
	bool has_inputs, has_targets;
} ResHead;

static ResHead read_res_head(Cursor *c)
{
	ResHead h = { 0 };
	if (!take_words(c, res_title))
		cursor_expected(c, "'SNNS result file V1.4-3D'", "give the result file (.res) of SNNS");
	cursor_line(c);
	if (!take_words(c, "generated at"))
		cursor_expected(c, "'generated at'", "the header has this line below the title");
	cursor_line(c);
	need_count(c, "No. of patterns", 1);
	h.inputs = (uint32_t)need_count(c, "No. of input units", 1);
	h.outputs = (uint32_t)need_count(c, "No. of output units", 1);
	h.first = need_count(c, "startpattern", 1);
	h.last = need_count(c, "endpattern", h.first);
	for (;;) {
		if (take_words(c, "input patterns included"))
			h.has_inputs = true;
		else if (take_words(c, "teaching output included"))
			h.has_targets = true;
		else
			return h;
	}
}

/* #3.1: pattern and sub-pattern. */
static void take_mark(Cursor *c, uint64_t pattern)
{
	uint64_t p, part;
	cursor_peek(c);
	Loc at = cursor_loc(c);
	bool good = cursor_take(c, '#') && cursor_whole(c, &p) && cursor_take(c, '.') && cursor_whole(c, &part);
	if (!good || p != pattern)
		fail_at(c->cx, at, "each pattern begins with a line such as #1.1",
		        "results of pattern %" PRIu64 " should follow", pattern);
	if (part != 1)
		fail_at(c->cx, at, "cut the patterns into windows of fixed size first", "sub-patterns are not read");
}

/* The patterns that the results belong to: option partner, or the file of the same name with .pat. */
static const Data *res_patterns(Cursor *c, const DataOptions *opt, DataOpen *read, const ResHead *h)
{
	const char *name = opt && opt->partner ? opt->partner : NULL;
	if (!name) {
		size_t n = strlen(c->src->name);
		n -= n > 4 && strcmp(c->src->name + n - 4, ".res") == 0 ? 4 : 0;
		Buf b = { .arena = &c->cx->scratch };
		buf_add(&b, c->src->name, n);
		buf_puts(&b, ".pat");
		name = b.s;
		if (access(name, R_OK) != 0)
			fail_at(c->cx, (Loc){ c->src, 0 }, "give the patterns it was made from with --partner FILE.pat",
			        "the file holds no inputs, and there is no %s", name);
	}
	const Data *d = read(c->cx, name, NULL);
	if (d->inputs != h->inputs || d->cases < h->last)
		fail_at(c->cx, (Loc){ c->src, 0 }, "give the patterns it was made from with --partner FILE.pat",
		        "%s has %" PRIu64 " patterns of %" PRIu32 " inputs; the results are of %" PRIu64 " of %" PRIu32, name,
		        d->cases, d->inputs, h->last, h->inputs);
	return d;
}

Data *read_snns_results(Ctx *cx, const Src *s, const DataOptions *opt, DataOpen *read)
{
	Cursor c = cursor_open(cx, s, '\0');
	ResHead h = read_res_head(&c);
	uint64_t cases = h.last - h.first + 1;
	check_size(&c, cases, (uint64_t)h.outputs * (h.has_targets ? 2 : 1) + (h.has_inputs ? h.inputs : 0) + 1);
	const Data *patterns = h.has_inputs ? NULL : res_patterns(&c, opt, read, &h);
	Data *d = data_of(cx, s, cases, h.inputs, h.outputs);
	float *x = NEW(&cx->keep, cases * h.inputs, float), *y = NEW(&cx->keep, cases * h.outputs, float);
	for (uint64_t i = 0; i < cases; i++) {
		float *out = y + i * h.outputs;
		take_mark(&c, h.first + i);
		if (h.has_inputs)
			read_row(&c, "an input", x + i * h.inputs, h.inputs);
		else
			data_x(patterns, h.first - 1 + i, x + i * h.inputs);
		if (h.has_targets)
			read_row(&c, "a teaching output", out, h.outputs);
		read_row(&c, "an output", out, h.outputs);
	}
	if (cursor_peek(&c))
		cursor_expected(&c, "the end of the file", "the header says how many patterns there are");
	d->x = x;
	d->y = y;
	finish(cx, d, opt, cursor_loc(&c));
	return d;
}
