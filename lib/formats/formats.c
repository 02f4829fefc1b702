/* SPDX-License-Identifier: MIT */
/* The table of data formats, which are recognized by name first and then by content.
 *
 * In: a path, or make:SPEC for a built-in set.  Out: Data that passed data_check (validate.c). */
#include <stdio.h>
#include <string.h>

#include "formats.h"
#include "make.h"
#include "old.h"

/* The first line that is neither empty nor a comment. */
static Text first_line(const Src *s)
{
	const char *p = s->text, *end = p + s->len;
	while (p < end) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		eol = eol ? eol : end;
		while (p < eol && (*p == ' ' || *p == '\t' || *p == '\r'))
			p++;
		if (p < eol && *p != '#')
			return (Text){ p, (uint32_t)(eol - p < 4096 ? eol - p : 4096) };
		p = eol + 1;
	}
	return (Text){ "", 0 };
}

static bool starts(const Src *s, const char *magic, size_t len)
{
	return s->len >= len && memcmp(s->text, magic, len) == 0;
}

static bool looks_npz(const Src *s) { return starts(s, "PK\3\4", 4) || starts(s, "PK\5\6", 4); }

static bool looks_npy(const Src *s) { return starts(s, "\x93NUMPY", 6); }

static bool looks_idx(const Src *s)
{
	static const char types[] = { 8, 9, 11, 12, 13, 14 };
	if (starts(s, "\x1f\x8b", 2)) /* MNIST comes gzipped */
		return true;
	if (s->len < 4 || s->text[0] != 0 || s->text[1] != 0)
		return false;
	return memchr(types, s->text[2], sizeof types) && s->text[3] >= 1 && s->text[3] <= 4;
}

static size_t span_to(const char *p, const char *end, char c)
{
	const char *found = memchr(p, c, (size_t)(end - p));
	return (size_t)((found ? found : end) - p);
}

/* word TAB sounds TAB stress TAB number, the first three of one length */
static bool is_nettalk_line(const char *p, const char *eol)
{
	size_t n = span_to(p, eol, '\t');
	if (n == 0 || (size_t)(eol - p) < 3 * n + 4)
		return false;
	const char *sounds = p + n + 1, *stress = sounds + n + 1, *number = stress + n + 1;
	return span_to(sounds, eol, '\t') == n && span_to(stress, eol, '\t') == n && *number >= '0' && *number <= '9';
}

/* Some prose may stand before the words. */
static bool looks_nettalk(const Src *s)
{
	enum { LINES = 200 };
	const char *p = s->text, *end = p + s->len;
	for (int i = 0; i < LINES && p < end; i++) {
		const char *eol = p + span_to(p, end, '\n');
		if (is_nettalk_line(p, eol))
			return true;
		p = eol + 1;
	}
	return false;
}

static bool is_plain_text(const Src *s) { return s->len > 0 && !memchr(s->text, 0, s->len < 4096 ? s->len : 4096); }

static bool has_separator(Text line)
{
	return memchr(line.s, ',', line.len) || memchr(line.s, ';', line.len) || memchr(line.s, '\t', line.len);
}

static bool looks_text(const Src *s)
{
	Text t = first_line(s);
	if (!is_plain_text(s) || t.len == 0 || has_separator(t))
		return false;
	const char *colon = memchr(t.s, ':', t.len); /* inputs : targets */
	return strchr("0123456789+-.[\"", t.s[0]) || text_keyword(t) || (colon && strchr(" \t?]0123456789", colon[-1]));
}

static bool looks_csv(const Src *s) { return is_plain_text(s) && has_separator(first_line(s)); }

/* Results of SNNS belong to patterns, which may be in any format. */
static Data *read_results(Ctx *cx, const Src *s, const DataOptions *opt)
{
	return read_snns_results(cx, s, opt, data_open);
}

/* In the order in which the content is tested. */
typedef struct Format {
	const char *name;
	const char *suffix[3];
	bool binary;
	bool sure; /* nothing else looks so */
	bool (*looks)(const Src *);
	Data *(*read)(Ctx *, const Src *, const DataOptions *);
	void (*write)(Ctx *, const Data *, const char *); /* NULL: it is only read */
} Format;

static const Format formats[] = {
	{ "npz", { ".npz" }, true, true, looks_npz, read_npz, write_npz },
	{ "npy", { ".npy" }, true, true, looks_npy, read_npy, write_npy },
	{ "idx", { ".idx", ".idx.gz" }, true, true, looks_idx, read_idx, write_idx },
	{ "lens-binary", { ".bex" }, true, true, looks_lens_binary, read_lens_binary, NULL },
	{ "nettalk", { NULL }, false, true, looks_nettalk, read_nettalk, NULL },
	{ "snns", { ".pat" }, false, true, looks_snns, read_snns, write_snns },
	{ "snns-results", { ".res" }, false, true, looks_snns_results, read_results, NULL },
	{ "lens", { ".ex" }, false, true, looks_lens, read_lens, write_lens },
	{ "tlearn", { NULL }, false, true, looks_tlearn, read_tlearn, NULL },
	{ "fann", { ".data" }, false, true, looks_fann, read_fann, write_fann },
	{ "text", { ".txt" }, false, false, looks_text, read_text, write_text },
	{ "csv", { ".csv", ".tsv" }, false, false, looks_csv, read_csv, write_csv },
};
static bool looks_binary(const Src *head)
{
	for (size_t i = 0; i < COUNT(formats); i++)
		if (formats[i].binary && formats[i].looks(head))
			return true;
	return false;
}

const char *data_looks(const Src *src)
{
	Src head = *src;
	head.len = min_u64(src->len, 1 << 20);
	for (size_t i = 0; i < COUNT(formats); i++)
		if (formats[i].sure && formats[i].looks(&head))
			return formats[i].name;
	return NULL;
}

static const char format_remedy[] = "formats: npz, npy, idx (MNIST), csv or tsv, text (.txt), the NETtalk corpus, SNNS "
									"(.pat, .res), FANN (.data), LENS "
									"(.ex, .bex), tlearn (.data); say which with the format option";

/* names of MNIST files: train-images-idx3-ubyte, t10k-labels.idx1-ubyte.gz */
static bool is_idx_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *found = strstr(slash ? slash : path, "idx");
	return found && found[3] >= '1' && found[3] <= '9' && strncmp(found + 4, "-ubyte", 6) == 0;
}

static const Format *format_by_name(const char *path)
{
	size_t n = strlen(path);
	for (size_t i = 0; i < COUNT(formats); i++) {
		for (size_t k = 0; k < COUNT(formats[i].suffix) && formats[i].suffix[k]; k++) {
			size_t len = strlen(formats[i].suffix[k]);
			if (n > len && strcmp(path + n - len, formats[i].suffix[k]) == 0)
				return &formats[i];
		}
		if (formats[i].read == read_idx && is_idx_name(path))
			return &formats[i];
	}
	return NULL;
}

static const Format *format_by_word(Ctx *cx, const char *word)
{
	const char *names[COUNT(formats)];
	for (size_t i = 0; i < COUNT(formats); i++) {
		names[i] = formats[i].name;
		if (strcmp(word, names[i]) == 0)
			return &formats[i];
	}
	const char *near = nearest_name(word, names, COUNT(names));
	Buf b = { .arena = &cx->scratch };
	buf_printf(&b, "did you mean '%s'?", near ? near : "");
	fail(cx, MP_BAD_INPUT, near ? b.s : format_remedy, "there is no data format '%.40s'", word);
}

static const Format *format_find(Ctx *cx, const char *path, const Src *s, const DataOptions *opt)
{
	if (opt && opt->format)
		return format_by_word(cx, opt->format);
	const Format *f = format_by_name(path);
	bool data = f && f->read == read_fann; /* .data: FANN's, tlearn's and that of NETtalk */
	Src head = *s;                         /* a line, or a hole in the file, may be terabytes long */
	head.len = min_u64(s->len, 1 << 20);
	if (data && !starts_fann(&head))
		f = NULL;
	if (!f && head.len == s->len && looks_fann_or_text(&head))
		fail_at(cx, (Loc){ s, 0 }, "say which with --format fann or --format text",
		        "the file may be FANN's or rows of numbers: its first row counts those that follow");
	for (size_t i = 0; !f && i < COUNT(formats); i++)
		if (formats[i].looks(&head))
			f = &formats[i];
	if (!f)
		fail_at(cx, (Loc){ s, 0 }, format_remedy, "neither name nor content of the file tells its format");
	return f;
}

/* Options that the format does not have are errors.  Not so classes: they come with a trained network. */
static void options_fit(Ctx *cx, const DataOptions *opt, const Format *f, const char *path)
{
	if (!opt)
		return;
	const struct {
		const char *value, *option, *formats;
	} only[] = {
		{ opt->inputs, "inputs", "csv" },
		{ opt->targets, "targets", "csv" },
		{ opt->labels, "labels", "csv" },
		{ opt->sequence, "sequence", "csv" },
		{ opt->weight, "weight", "csv" },
		{ opt->names, "names", "csv" },
		{ opt->partner, "partner", "npy, idx, snns-results or tlearn" },
		{ opt->words, "words", "nettalk" },
	};
	for (size_t i = 0; i < COUNT(only); i++) {
		if (!only[i].value || strstr(only[i].formats, f->name))
			continue;
		if (!opt->lenient)
			fail(cx, MP_BAD_INPUT, "leave it out", "option '%s' is for %s; %s is read as %s", only[i].option,
			     only[i].formats, path, f->name);
		note(cx, NULL, "option '%s' is for %s; it does not matter for %s, read as %s", only[i].option, only[i].formats,
		     path, f->name);
	}
}

DataSource data_locate(Ctx *cx, const char *path, const DataOptions *opt)
{
	DataSource from = { .path = path };
	if (strncmp(path, "make:", 5) == 0)
		return from;
	from.src = src_open_data(cx, &cx->keep, path, looks_binary);
	from.format = format_find(cx, path, from.src, opt);
	from.src->binary = from.format->binary;
	from.csv = from.format->read == read_csv;
	options_fit(cx, opt, from.format, path);
	return from;
}

Data *data_load(Ctx *cx, const DataSource *from, const DataOptions *opt)
{
	return from->format ? from->format->read(cx, from->src, opt) : make_data(cx, from->path + 5, opt);
}

Data *data_open(Ctx *cx, const char *path, const DataOptions *opt)
{
	DataSource from = data_locate(cx, path, opt);
	return data_load(cx, &from, opt);
}

void data_write(Ctx *cx, const Data *d, const char *path)
{
	const Format *f = format_by_name(path);
	if (!f || !f->write)
		fail(cx, MP_BAD_INPUT, "end the name in .npz, .npy, .csv, .txt, .idx, .pat, .data or .ex",
		     "the name %s does not tell a format to write", path);
	f->write(cx, d, path);
}
