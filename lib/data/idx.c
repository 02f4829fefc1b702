/* SPDX-License-Identifier: MIT */
/* IDX, the format of MNIST.  In: a file of cases and a file of labels, either gzipped or not.  Out: Data, and back.
 *
 *     0  0  type  dims | dim[0] dim[1] ... 4 bytes each | elements      all numbers big-endian
 *
 * The first dimension counts the cases, the others together are the inputs.  Bytes stay bytes, 0 to 255: scale them
 * with --scale range.  One-dimensional integer labels become one-of-n; anything else in the second file is taken as the
 * targets themselves.
 *
 * The second file is found by name: `images` becomes `labels` and `idx3` becomes `idx1`, as MNIST has it; a name
 * without `images` gets `-labels` before its ending.  Either may end in .gz. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "data.h"

enum { MAX_DIMS = 8, HEAD_BYTES = 4, DIM_BYTES = 4 };
enum { MAX_RATIO = 1032 }; /* of deflate: a header that needs more is wrong */

typedef struct Idx {
	const Src *src; /* unpacked */
	DType type;
	int dims;
	uint64_t cases, columns;
	size_t body; /* offset of the first element */
} Idx;

static const struct {
	uint8_t code;
	DType type;
} types[] = {
	{ 0x08, T_U8 }, { 0x09, T_I8 }, { 0x0B, T_I16 }, { 0x0C, T_I32 }, { 0x0D, T_F32 }, { 0x0E, T_F64 },
};

static const char cut_remedy[] = "the file is cut off or damaged: get it again";

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- header ---- */

/* The first four bytes: type and number of dimensions. */
static void parse_magic(Ctx *cx, Idx *h, const uint8_t *p)
{
	if (p[0] || p[1])
		fail_at(cx, (Loc){ h->src, 0 }, "IDX files start with two zero bytes, a type and a number of dimensions",
		        "this is no IDX file");
	size_t i = 0;
	while (i < COUNT(types) && types[i].code != p[2])
		i++;
	if (i == COUNT(types))
		fail_at(cx, (Loc){ h->src, 2 }, "types are 8 and 9 (bytes), 11 and 12 (whole numbers), 13 and 14 (floating)",
		        "element type %u is not known", p[2]);
	if (p[3] < 1 || p[3] > MAX_DIMS)
		fail_at(cx, (Loc){ h->src, 3 }, "save an array of 1 to 8 dimensions",
		        "an array of %u dimensions cannot be read", p[3]);
	h->type = types[i].type;
	h->dims = p[3];
	h->body = HEAD_BYTES + (size_t)h->dims * DIM_BYTES;
}

/* The dimensions; returns the length of the whole file. */
static uint64_t parse_dims(Ctx *cx, Idx *h, const uint8_t *dims)
{
	h->cases = big_endian(dims);
	h->columns = 1;
	if (!h->cases)
		fail_at(cx, (Loc){ h->src, HEAD_BYTES }, "give it at least one case", "there are no cases in the file");
	for (int i = 1; i < h->dims; i++) {
		size_t off = HEAD_BYTES + (size_t)i * DIM_BYTES;
		uint32_t n = big_endian(dims + (size_t)i * DIM_BYTES);
		if (!n)
			fail_at(cx, (Loc){ h->src, off }, "give every dimension at least one element", "dimension %d is empty",
			        i + 1);
		h->columns *= n; /* at most MAX_UNITS times 2^32 */
		if (h->columns > MAX_UNITS)
			fail_at(cx, (Loc){ h->src, off }, "cut it into smaller parts",
			        "a case has more values than a network can have units (%u)", MAX_UNITS);
	}
	return h->body + h->cases * h->columns * dtypes[h->type].size;
}

static void check_length(Ctx *cx, const Idx *h, uint64_t whole)
{
	if (h->src->len < whole)
		fail_at(cx, (Loc){ h->src, h->src->len }, cut_remedy,
		        "the file ends after %zu bytes, but its header says %" PRIu64, h->src->len, whole);
	if (h->src->len > whole)
		fail_at(cx, (Loc){ h->src, (size_t)whole }, cut_remedy, "the file has %zu bytes, but its header says %" PRIu64,
		        h->src->len, whole);
}

/* ---- gzip ---- */

typedef struct Gunzip {
	Ctx *cx;
	const Src *src;
	z_stream z;
	size_t fed, released;
	bool ended;
} Gunzip;

/* Unpacks up to n bytes; returns how many there were. */
static size_t gunzip_some(Gunzip *g, uint8_t *out, size_t n)
{
	enum { MAX_OUT = 1 << 30 };
	size_t have = 0;
	while (have < n && !g->ended) {
		size_t in = min_u64(g->src->len - g->fed, READ_CHUNK), capacity = min_u64(n - have, MAX_OUT);
		g->z.next_in = (z_const Bytef *)(g->src->text + g->fed);
		g->z.avail_in = (uInt)in;
		g->z.next_out = out + have;
		g->z.avail_out = (uInt)capacity;
		int rc = inflate(&g->z, Z_NO_FLUSH);
		g->fed += in - g->z.avail_in;
		src_release(g->src, &g->released, g->fed);
		have += capacity - g->z.avail_out;
		g->ended = rc == Z_STREAM_END;
		if (rc != Z_OK && rc != Z_STREAM_END)
			fail_at(g->cx, (Loc){ g->src, g->fed }, cut_remedy, "the compressed data %s",
			        rc == Z_BUF_ERROR ? "end too early" : "are damaged");
	}
	return have;
}

static void gunzip_all(Gunzip *g, uint8_t *out, size_t n)
{
	if (gunzip_some(g, out, n) < n)
		fail_at(g->cx, (Loc){ g->src, g->fed }, cut_remedy, "the compressed data end before the file is whole");
}

static bool is_gzip(const Src *s) { return s->len >= 2 && memcmp(s->text, "\x1f\x8b", 2) == 0; }

/* The whole file unpacked, in keep; its length must be what its header says. */
static const Src *gunzip(Ctx *cx, const Src *s)
{
	Gunzip g = { .cx = cx, .src = s, .z = { .zalloc = zlib_alloc, .zfree = zlib_free, .opaque = &cx->scratch } };
	if (inflateInit2(&g.z, 16 + MAX_WBITS) != Z_OK)
		fail(cx, MP_FAILED, NULL, "zlib does not start");
	uint8_t head[HEAD_BYTES + MAX_DIMS * DIM_BYTES], more;
	Idx h = { .src = s };
	gunzip_all(&g, head, HEAD_BYTES);
	parse_magic(cx, &h, head);
	gunzip_all(&g, head + HEAD_BYTES, h.body - HEAD_BYTES);
	uint64_t whole = parse_dims(cx, &h, head + HEAD_BYTES);
	if (whole / MAX_RATIO > s->len)
		fail_at(cx, (Loc){ s, 0 }, cut_remedy, "%zu compressed bytes cannot hold the %" PRIu64 " that the header says",
		        s->len, whole);
	unpacked_check(cx, (Loc){ s, 0 }, whole);
	uint8_t *text = NEW(&cx->keep, whole + 1, uint8_t);
	memcpy(text, head, h.body);
	gunzip_all(&g, text + h.body, (size_t)whole - h.body);
	if (gunzip_some(&g, &more, 1))
		fail_at(cx, (Loc){ s, g.fed }, cut_remedy, "there are more elements than the header says");
	Src *out = NEW(&cx->keep, 1, Src);
	*out = (Src){ .name = s->name, .text = (const char *)text, .len = (size_t)whole, .binary = true };
	return out;
}

static Idx idx_parse(Ctx *cx, const Src *s)
{
	Idx h = { .src = is_gzip(s) ? gunzip(cx, s) : s };
	const uint8_t *p = (const uint8_t *)h.src->text;
	if (h.src->len < HEAD_BYTES)
		fail_at(cx, (Loc){ h.src, h.src->len }, cut_remedy, "the file is too short for an IDX header");
	parse_magic(cx, &h, p);
	if (h.src->len < h.body)
		fail_at(cx, (Loc){ h.src, h.src->len }, cut_remedy, "the file ends inside its header");
	check_length(cx, &h, parse_dims(cx, &h, p + HEAD_BYTES));
	return h;
}

/* ---- reading ---- */

/* Frees what gunzip made. */
static void idx_drop(Ctx *cx, const Src *s) { arena_drop(&cx->keep, (char *)(uintptr_t)s->text, s->len + 1, 1); }

/* The elements in native byte order: in place if they are bytes that need no copy. */
static const void *idx_values(Arena *arena, const Idx *h, const Src *file, Data *d, const DataOptions *opt)
{
	const uint8_t *from = (const uint8_t *)h->src->text + h->body;
	size_t size = dtypes[h->type].size;
	uint64_t count = h->cases * h->columns;
	if (size == 1 && h->src != file) /* unpacked: in keep */
		return from;
	if (size == 1 && array_placement(file, opt)) {
		d->mapped = true;
		return from;
	}
	uint8_t *to = arena_alloc(arena, count, size);
	const uint32_t probe = 1;
	bool little = *(const uint8_t *)&probe;
	uint64_t bytes = count * size;
	for (uint64_t at = 0, n; at < bytes; at += n) {
		n = min_u64(bytes - at, READ_CHUNK);
		if (size == 1)
			memcpy(to + at, from + at, n);
		for (uint64_t i = at; size > 1 && i < at + n; i += size)
			for (size_t k = 0; k < size; k++)
				to[i + k] = from[i + (little ? size - 1 - k : k)];
		if (h->src->mapped)
			pages_release(from + at, n);
	}
	if (h->src != file)
		idx_drop(arena->cx, h->src);
	return to;
}

static Loc label_at(const Idx *h, uint64_t i) { return (Loc){ h->src, h->body + i * dtypes[h->type].size }; }

static uint32_t largest_label(Ctx *cx, const Idx *h, const void *values)
{
	double max = 1; /* two classes at least */
	for (uint64_t i = 0; i < h->cases; i++) {
		double v = dtype_get(h->type, values, i);
		if (v < 0 || v >= LABEL_CLASSES)
			fail_at(cx, label_at(h, i), "number the classes from 0",
			        "label %.0f of case %" PRIu64 " is not a class from 0 to %d", v, i, LABEL_CLASSES - 1);
		max = v > max ? v : max;
	}
	return (uint32_t)max;
}

/* Classes are named by their numbers; the options may list them in any order. */
static void take_labels(Ctx *cx, Data *d, const Idx *h, const void *values, const DataOptions *opt)
{
	uint32_t labels = largest_label(cx, h, values) + 1;
	Dict classes = classes_given(opt) ? classes_dict(cx, opt) : (Dict){ .arena = &cx->scratch };
	Text *name = NEW(&cx->scratch, labels, Text);
	int64_t *place = NEW(&cx->scratch, labels, int64_t);
	for (uint32_t i = 0; i < labels; i++) {
		Buf b = { .arena = &cx->scratch };
		buf_printf(&b, "%" PRIu32, i);
		name[i] = (Text){ b.s, (uint32_t)b.len };
		if (!classes_given(opt))
			dict_add(&classes, name[i]);
		uint32_t class;
		place[i] = dict_find(&classes, name[i], &class) ? (int64_t) class : -1;
	}
	d->targets = classes.count;
	uint8_t *y = arena_alloc(&cx->keep, d->cases, d->targets);
	for (uint64_t i = 0; i < d->cases; i++) {
		uint32_t label = (uint32_t)dtype_get(h->type, values, i);
		if (place[label] < 0)
			classes_unknown(cx, label_at(h, i), name[label], &classes);
		else
			y[i * d->targets + (uint64_t)place[label]] = 1;
	}
	check_errors(cx);
	d->y = y;
	d->y_type = T_U8;
	classes_set(cx, d, classes.text, classes.count);
}

static void take_targets(Ctx *cx, Data *d, const Src *labels, const DataOptions *opt)
{
	Idx h = idx_parse(cx, labels);
	if (h.cases != d->cases)
		fail_at(cx, (Loc){ h.src, HEAD_BYTES }, "name the file that belongs to these cases with --partner",
		        "there are %" PRIu64 " labels for %" PRIu64 " cases", h.cases, d->cases);
	bool whole = h.type != T_F32 && h.type != T_F64;
	if (h.dims == 1 && whole) {
		take_labels(cx, d, &h, idx_values(&cx->scratch, &h, labels, &(Data){ 0 }, opt), opt);
		return;
	}
	d->targets = (uint32_t)h.columns;
	d->y_type = h.type;
	d->y = idx_values(&cx->keep, &h, labels, d, opt);
}

Data *idx_data(Ctx *cx, const Src *images, const Src *labels, const DataOptions *opt)
{
	Idx h = idx_parse(cx, images);
	Data *d = NEW(&cx->keep, 1, Data);
	d->name = arena_copy(&cx->keep, images->name, strlen(images->name));
	d->cases = h.cases;
	d->inputs = (uint32_t)h.columns;
	d->x_type = h.type;
	d->x = idx_values(&cx->keep, &h, images, d, opt);
	if (labels)
		take_targets(cx, d, labels, opt);
	if (d->mapped)
		d->bytes = sizeof *d + (uint64_t)d->targets * d->cases * dtypes[d->y_type].size;
	data_check(cx, d, (Loc){ h.src, h.body });
	const void *x = d->x;
	data_pack(cx, d);
	if (!d->x && h.src != images && dtypes[h.type].size == 1)
		idx_drop(cx, h.src);
	else if (!d->x)
		arena_drop(&cx->keep, (void *)(uintptr_t)x, d->cases * d->inputs, dtypes[h.type].size);
	return d;
}

/* ---- names ---- */

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);
	return n > m && strcmp(s + n - m, end) == 0;
}

static const char *last_images(const char *path)
{
	const char *slash = strrchr(path, '/'), *found = NULL;
	for (const char *p = slash ? slash : path; (p = strstr(p, "images")) != NULL; p++)
		found = p;
	return found;
}

static const char *partner_name(Arena *a, const char *path)
{
	static const char *const endings[] = { ".idx.gz", ".idx", ".gz", "" };
	Buf b = { .arena = a };
	const char *images = last_images(path);
	if (images) {
		buf_add(&b, path, (size_t)(images - path));
		buf_puts(&b, "labels");
		size_t at = b.len;
		buf_puts(&b, images + strlen("images"));
		char *idx = strstr(b.s + at, "idx");
		if (idx && idx[3] >= '1' && idx[3] <= '9')
			idx[3] = '1';
		return b.s;
	}
	size_t i = 0;
	while (i + 1 < COUNT(endings) && !ends_in(path, endings[i]))
		i++;
	buf_add(&b, path, strlen(path) - strlen(endings[i]));
	buf_printf(&b, "-labels%s", endings[i]);
	return b.s;
}

/* The labels' file if it exists, with or without .gz. */
static const char *find_partner(Ctx *cx, const char *name)
{
	if (access(name, F_OK) == 0)
		return name;
	Buf b = { .arena = &cx->scratch };
	buf_add(&b, name, strlen(name) - (ends_in(name, ".gz") ? 3 : 0));
	buf_puts(&b, ends_in(name, ".gz") ? "" : ".gz");
	return access(b.s, F_OK) == 0 ? b.s : NULL;
}

Data *read_idx(Ctx *cx, const Src *s, const DataOptions *opt)
{
	const char *wanted = opt && opt->partner ? opt->partner : NULL, *partner = wanted;
	if (!wanted && s->name[0] != '<' && !(opt && opt->unlabelled)) {
		wanted = partner_name(&cx->scratch, s->name);
		partner = find_partner(cx, wanted);
	}
	Src *labels = partner ? src_open_data(cx, &cx->keep, partner, src_any) : NULL;
	if (labels)
		labels->binary = true;
	Data *d = idx_data(cx, s, labels, opt);
	if (wanted && !partner)
		note(cx, "name it with --partner if there is one", "there are no labels: no file %s", wanted);
	data_truncate(cx, d, opt ? opt->first : 0);
	return d;
}

/* ---- writing ---- */

static void put_be(OutFile *f, uint32_t v)
{
	uint8_t bytes[4] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v };
	file_write(f, bytes, sizeof bytes);
}

static void put_header(OutFile *f, DType type, uint64_t cases, uint32_t columns)
{
	uint32_t dims = columns ? 2 : 1, code = 0;
	for (size_t i = 0; i < COUNT(types); i++)
		if (types[i].type == type)
			code = types[i].code;
	put_be(f, code << 8 | dims);
	put_be(f, (uint32_t)cases);
	if (columns)
		put_be(f, columns);
}

typedef void Row(const Data *d, uint64_t i, float *row);

static bool fits_bytes(const Data *d, Row *get, uint32_t columns, float *row)
{
	for (uint64_t i = 0; i < d->cases; i++) {
		get(d, i, row);
		for (uint32_t k = 0; k < columns; k++)
			if (!(row[k] >= 0 && row[k] <= 255 && row[k] == (float)(uint8_t)row[k]))
				return false;
	}
	return true;
}

/* Rows as bytes if all values are whole and fit, else as float32. */
static void put_rows(Ctx *cx, OutFile *f, const Data *d, Row *get, uint32_t columns)
{
	float *row = NEW(&cx->scratch, columns, float);
	uint8_t *bytes = NEW(&cx->scratch, columns, uint8_t);
	bool small = fits_bytes(d, get, columns, row);
	put_header(f, small ? T_U8 : T_F32, d->cases, columns);
	for (uint64_t i = 0; i < d->cases; i++) {
		get(d, i, row);
		for (uint32_t k = 0; k < columns; k++) {
			uint32_t bits;
			memcpy(&bits, &row[k], sizeof bits);
			bytes[k] = small ? (uint8_t)row[k] : 0;
			if (!small)
				put_be(f, bits);
		}
		if (small)
			file_write(f, bytes, columns);
	}
}

/* Labels give back the same targets if all rows are one-of-n and the last class occurs. */
static bool are_labels(const Data *d, float *row)
{
	bool last = false;
	for (uint64_t i = 0; i < d->cases; i++) {
		data_y(d, i, row);
		int64_t class = row_one_of_n(row, d->targets);
		if (class < 0)
			return false;
		last |= class == (int64_t)d->targets - 1;
	}
	return last && d->targets >= 2 && d->targets <= UINT8_MAX + 1;
}

static void put_targets(Ctx *cx, OutFile *f, const Data *d)
{
	float *row = NEW(&cx->scratch, d->targets, float);
	if (!are_labels(d, row)) {
		put_rows(cx, f, d, data_y, d->targets);
		return;
	}
	put_header(f, T_U8, d->cases, 0);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_y(d, i, row);
		file_write(f, &(uint8_t){ (uint8_t)row_one_of_n(row, d->targets) }, 1);
	}
}

/* Two files, PATH and its labels.  What IDX has no place for is an error where it matters for training, else a note. */
void write_idx(Ctx *cx, const Data *d, const char *path)
{
	if (ends_in(path, ".gz"))
		fail(cx, MP_BAD_INPUT, "write NAME.idx and compress it with gzip", "compressed IDX files are only read");
	if (d->seq || d->weight)
		fail(cx, MP_BAD_INPUT, "write .npz instead", "IDX has no place for %s",
		     d->seq ? "sequences" : "weights of cases");
	if (d->cases > UINT32_MAX)
		fail(cx, MP_BAD_INPUT, "write .npz instead", "%" PRIu64 " cases are too many for IDX", d->cases);
	data_note_lost(cx, d, "IDX", 0);
	OutFile *x = file_create(cx, &cx->scratch, path), *y = NULL;
	put_rows(cx, x, d, data_x, d->inputs);
	if (d->targets) {
		y = file_create(cx, &cx->scratch, partner_name(&cx->scratch, path));
		put_targets(cx, y, d);
	}
	file_commit(cx, x);
	if (y)
		file_commit(cx, y);
}
