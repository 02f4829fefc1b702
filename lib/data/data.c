/* SPDX-License-Identifier: MIT */
/* Data: access to cases, packing, and the table of formats, which are recognized by name first and then by content.
 *
 * In: a path, or make:SPEC for a built-in set.  Out: Data that passed data_check (validate.c). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data.h"

/* ---- access ---- */

void data_x(const Data *d, uint64_t i, float *row)
{
	if (!d->x_indptr) {
		dtype_row(d->x_type, d->x, i * d->inputs, d->inputs, row);
		return;
	}
	memset(row, 0, d->inputs * sizeof *row);
	for (uint64_t k = d->x_indptr[i]; k < d->x_indptr[i + 1]; k++)
		row[d->x_indices[k]] = d->x_values ? d->x_values[k] : 1.0f;
}

void data_y(const Data *d, uint64_t i, float *row)
{
	if (!d->targets)
		return;
	dtype_row(d->y_type, d->y, i * d->targets, d->targets, row);
	for (uint32_t k = 0; d->mask && k < d->targets; k++)
		if (!d->mask[i * d->targets + k])
			row[k] = NAN;
}

/* Bytes from .. from + len of a mapped file, without waiting for them. */
static void prefetch_bytes(const void *base, uint64_t from, uint64_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = ((uintptr_t)base + from) / page * page;

	if (base && len)
		madvise((void *)begin, (uintptr_t)base + from + len - begin, MADV_WILLNEED);
}

void data_prefetch(const Data *d, uint64_t first, uint64_t count)
{
	uint64_t begin, last, cases;

	if (!d->mapped || !count)
		return;
	data_example(d, first, &begin, &cases);
	data_example(d, first + count - 1, &last, &cases);
	cases += last - begin;
	if (d->x_indptr) {
		uint64_t from = d->x_indptr[begin], n = d->x_indptr[begin + cases] - from;
		prefetch_bytes(d->x_indices, from * sizeof *d->x_indices, n * sizeof *d->x_indices);
		prefetch_bytes(d->x_values, from * sizeof *d->x_values, n * sizeof *d->x_values);
	} else {
		uint64_t row = (uint64_t)d->inputs * dtypes[d->x_type].size;
		prefetch_bytes(d->x, begin * row, cases * row);
	}
	uint64_t row = (uint64_t)d->targets * dtypes[d->y_type].size;
	prefetch_bytes(d->y, begin * row, cases * row);
}

int64_t row_one_of_n(const float *row, uint32_t n)
{
	int64_t one = -1;
	for (uint32_t k = 0; k < n; k++) {
		if (row[k] == 0)
			continue;
		if (row[k] != 1 || one >= 0)
			return -1;
		one = k;
	}
	return one;
}

uint64_t data_examples(const Data *d) { return d->seq ? d->sequences : d->cases; }

void data_example(const Data *d, uint64_t e, uint64_t *first, uint64_t *count)
{
	*first = d->seq ? d->seq[e] : e;
	*count = d->seq ? d->seq[e + 1] - d->seq[e] : 1;
}

/* ---- size ---- */

/* If some arrays are mapped the reader has counted the others. */
void data_count_bytes(Data *d)
{
	if (d->mapped)
		return;
	uint64_t y = d->targets * d->cases, n = sizeof *d;
	n += d->x_indptr ? (d->cases + 1) * 8 + d->x_indptr[d->cases] * (d->x_values ? 8 : 4)
	                 : d->cases * d->inputs * dtypes[d->x_type].size;
	n += y ? y * dtypes[d->y_type].size : 0;
	n += (d->mask ? y : 0) + (d->seq ? (d->sequences + 1) * 8 : 0) + (d->weight ? d->cases * 4 : 0) +
	     (d->ticks ? d->cases * 4 : 0);
	for (uint64_t i = 0; d->names && i < d->cases; i++)
		n += sizeof(Text) + d->names[i].len;
	for (uint32_t i = 0; d->code_names && i < d->code_count; i++)
		n += sizeof(Text) + d->code_names[i].len;
	for (uint32_t i = 0; i < d->class_count; i++)
		n += sizeof *d->classes + strlen(d->classes[i]) + 1;
	for (uint32_t i = 0; i < d->columns; i++)
		n += sizeof *d->column + strlen(d->column[i].name) + 1;
	n += d->codes ? (uint64_t)d->code_count * d->targets * 8 : 0;
	n += d->scale.kind != SCALE_NONE ? (uint64_t)d->inputs * 16 : 0;
	for (uint32_t i = 0; i < d->extras; i++)
		n += sizeof(Extra) + d->extra[i].len;
	d->bytes = n;
}

/* ---- packing ---- */

enum { MIN_SPARSITY = 8 }; /* inputs per one: then index lists are smaller than bytes */

/* Number of ones if all values are 0 or 1; UINT64_MAX if not, or as soon as there are more than `limit`. */
static uint64_t count_ones(const Data *d, uint64_t cases, uint64_t limit)
{
	uint64_t count = cases * d->inputs, ones = 0;
	float chunk[256];
	for (uint64_t i = 0; i < count; i += COUNT(chunk)) {
		uint64_t n = min_u64(count - i, COUNT(chunk));
		dtype_row(d->x_type, d->x, i, n, chunk);
		for (uint64_t k = 0; k < n; k++) {
			if (chunk[k] == 1)
				ones++;
			else if (chunk[k] != 0)
				return UINT64_MAX;
		}
		if (ones > limit)
			return UINT64_MAX;
	}
	return ones;
}

void data_pack(Ctx *cx, Data *d)
{
	if (d->x_indptr || d->mapped || !d->x || d->cases == 0 || d->inputs == 0)
		return;
	uint64_t ones = count_ones(d, d->cases, d->cases * d->inputs / MIN_SPARSITY);
	if (ones == UINT64_MAX || ones >= (d->cases * d->inputs + MIN_SPARSITY - 1) / MIN_SPARSITY)
		return;
	uint64_t *indptr = NEW(&cx->keep, d->cases + 1, uint64_t), have = 0;
	uint32_t *indices = NEW(&cx->keep, ones, uint32_t);
	float *row = NEW(&cx->scratch, d->inputs, float);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, row);
		for (uint32_t k = 0; k < d->inputs; k++)
			if (row[k] != 0)
				indices[have++] = k;
		indptr[i + 1] = have;
	}
	d->x = NULL;
	d->x_indptr = indptr;
	d->x_indices = indices;
	d->x_values = NULL;
	data_count_bytes(d);
}

/* Judged by the first cases. */
static bool seems_sparse(const Data *d)
{
	uint64_t cases = min_u64(d->cases, 256);

	return count_ones(d, cases, cases * d->inputs / MIN_SPARSITY) != UINT64_MAX;
}

void data_set_inputs(Ctx *cx, Data *d, Npy *x, int place)
{
	d->x = x->data;
	d->x_type = x->type;
	if (place == ARRAYS_COPIED || x->block || (place == ARRAYS_SHARED && seems_sparse(d)))
		data_pack(cx, d);
	if (d->x)
		d->x = npy_keep(cx, d, x, place, T_COUNT);
	else
		npy_drop(cx, x);
}

/* ---- formats ---- */

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
	return strchr("0123456789+-.[", t.s[0]) || memchr(t.s, ':', t.len) || text_keyword(t);
}

static bool looks_csv(const Src *s) { return is_plain_text(s) && has_separator(first_line(s)); }

/* In the order in which the content is tested. */
typedef struct Format {
	const char *name;
	const char *suffix[3];
	bool binary;
	bool (*looks)(const Src *);
	Data *(*read)(Ctx *, const Src *, const DataOptions *);
	void (*write)(Ctx *, const Data *, const char *); /* NULL: it is only read */
} Format;

static const Format formats[] = {
	{ "npz", { ".npz" }, true, looks_npz, read_npz, write_npz },
	{ "npy", { ".npy" }, true, looks_npy, read_npy, write_npy },
	{ "idx", { ".idx", ".idx.gz" }, true, looks_idx, read_idx, write_idx },
	{ "lens-binary", { ".bex" }, true, looks_lens_binary, read_lens_binary, NULL },
	{ "nettalk", { NULL }, false, looks_nettalk, read_nettalk, NULL },
	{ "snns", { ".pat" }, false, looks_snns, read_snns, write_snns },
	{ "snns-results", { ".res" }, false, looks_snns_results, read_snns_results, NULL },
	{ "lens", { ".ex" }, false, looks_lens, read_lens, write_lens },
	{ "fann", { ".data" }, false, looks_fann, read_fann, write_fann },
	{ "text", { ".txt" }, false, looks_text, read_text, write_text },
	{ "csv", { ".csv", ".tsv" }, false, looks_csv, read_csv, write_csv },
};
static bool looks_binary(const Src *head)
{
	for (size_t i = 0; i < COUNT(formats); i++)
		if (formats[i].binary && formats[i].looks(head))
			return true;
	return false;
}

static const char format_remedy[] = "formats: npz, npy, idx (MNIST), csv or tsv, text (.txt), the NETtalk corpus, SNNS "
									"(.pat, .res), FANN (.data), LENS "
									"(.ex, .bex); say which with the format option";

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
		{ opt->partner, "partner", "npy, idx or snns-results" },
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

void data_note_lost(Ctx *cx, const Data *d, const char *format, unsigned holds)
{
	const struct {
		bool there;
		unsigned bit;
		const char *what;
	} parts[] = {
		{ d->seq, HOLDS_SEQ, "sequence boundaries" },
		{ d->weight, HOLDS_WEIGHT, "case weights" },
		{ d->ticks, HOLDS_TICKS, "ticks of cases" },
		{ d->names, HOLDS_NAMES, "case names" },
		{ d->codes && !d->classes, HOLDS_CODES, "the code table" },
		{ d->classes, HOLDS_CODES, "names of classes" },
		{ d->scale.kind != SCALE_NONE, HOLDS_SCALE, "the scale of the inputs" },
		{ d->extras, HOLDS_EXTRA, "keys of other programs" },
		{ !columns_numbered(d), HOLDS_COLUMNS, "names of columns" },
	};
	for (size_t i = 0; i < COUNT(parts); i++)
		if (parts[i].there && !(holds & parts[i].bit))
			note(cx, "write npz to keep everything", "%s has no place for %s: left out", format, parts[i].what);
}
