/* SPDX-License-Identifier: MIT */
/* npz: the bytes as a zip file; or, because no mutation keeps a checksum right, as members that are zipped here.
 *
 * A member is: key number | type number | dimensions | up to 2 sizes | bytes up to the next separator (0xFE). */
#include <stdio.h>
#include <zlib.h>

#include "fuzz.h"

static const char *const names[] = { "x",        "x_indptr", "x_indices", "x_values", "x_shape", "y",
	                                 "seq",      "mask",     "weight",    "names",    "codes",   "code_names",
	                                 "x_offset", "x_factor", "x_scale",   "other" };
static const char *const types[] = { "<f4", "<f8", "<f2", "|u1", "|i1", "<u2", ">i2", "<u4",
	                                 "<i4", "<u8", "<i8", "|b1", "<U1", "|S5", "<U6", ">f4" };
static const int widths[] = { 4, 8, 2, 1, 1, 2, 2, 4, 4, 8, 8, 1, 4, 5, 24, 4 };

static void put(Buf *b, uint64_t v, int bytes)
{
	for (; bytes-- > 0; v >>= 8)
		buf_add(b, &(char){ (char)(v & 255) }, 1);
}

static void put_common(Buf *b, const Buf *npy, const char *name)
{
	put(b, 20, 2), put(b, 0, 2), put(b, 0, 2), put(b, 0, 4);
	put(b, crc32(0, (const Bytef *)npy->s, (uInt)npy->len), 4);
	put(b, npy->len, 4), put(b, npy->len, 4), put(b, strlen(name), 2), put(b, 0, 2);
}

static void put_member(Buf *zip, Buf *directory, const Buf *npy, const char *name)
{
	size_t at = zip->len;
	put(zip, 0x04034b50, 4);
	put_common(zip, npy, name);
	buf_puts(zip, name);
	buf_add(zip, npy->s, npy->len);
	put(directory, 0x02014b50, 4), put(directory, 20, 2);
	put_common(directory, npy, name);
	put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 4), put(directory, at, 4);
	buf_puts(directory, name);
}

/* One member from p on; returns where the next starts. */
static const uint8_t *build(Ctx *cx, Buf *zip, Buf *directory, const uint8_t *p, const uint8_t *end)
{
	Buf npy = { .arena = &cx->scratch };
	char head[128], name[32];
	int type = p[1] & 15, dims = p[2] % 3;
	const uint8_t *body = p + 5, *stop = memchr(body, 0xFE, (size_t)(end - body));
	stop = stop ? stop : end;
	size_t len = (size_t)(stop - body);
	unsigned rows = p[3], cols = p[4];
	if (dims == 1)
		rows = p[3] < 128 ? (unsigned)(len / (size_t)widths[type]) : p[3];
	int n = snprintf(head, sizeof head,
	                 dims == 0   ? "{'descr': '%s', 'fortran_order': %s, 'shape': ()}"
	                 : dims == 1 ? "{'descr': '%s', 'fortran_order': %s, 'shape': (%u,)}"
	                             : "{'descr': '%s', 'fortran_order': %s, 'shape': (%u, %u)}",
	                 types[type], p[2] & 64 ? "True" : "False", rows, cols);
	buf_add(&npy, "\x93NUMPY\x01", 8);
	put(&npy, (uint64_t)n, 2);
	buf_add(&npy, head, (size_t)n);
	size_t want = (dims == 0 ? 1 : dims == 1 ? rows : rows * cols) * (size_t)widths[type];
	for (size_t i = 0; i < want && i < 4096; i++)
		put(&npy, len ? body[i % len] : 0, 1);
	snprintf(name, sizeof name, "%s.npy", names[p[0] & 15]);
	put_member(zip, directory, &npy, name);
	return stop + 1;
}

static void read_use(Ctx *cx, const Src *s)
{
	Src file = *s;
	file.binary = true;
	Buf zip = { .arena = &cx->keep }, directory = { .arena = &cx->scratch };
	if (s->len > 0 && s->text[0] != 'P') {
		const uint8_t *p = (const uint8_t *)s->text, *end = p + s->len;
		int members = 0;
		for (; members < 16 && p < end && end - p >= 6; members++)
			p = build(cx, &zip, &directory, p, end);
		size_t at = zip.len;
		buf_add(&zip, directory.s, directory.len);
		put(&zip, 0x06054b50, 4), put(&zip, 0, 4);
		put(&zip, (uint64_t)members, 2), put(&zip, (uint64_t)members, 2);
		put(&zip, directory.len, 4), put(&zip, at, 4), put(&zip, 0, 2);
		file.text = zip.s;
		file.len = zip.len;
	}
	mp_data_info info;
	Data *d = read_npz(cx, &file, &(DataOptions){ .first = s->len % 7 });
	data_describe(cx, d, &info);
	if (data_examples(d) > 1)
		data_split(cx, d, 0.5, 1, true);
	if (d->scale.kind == SCALE_NONE && d->cases * d->inputs < 100000)
		data_scale_fit(cx, d, SCALE_RANGE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_use, data, size);
	return 0;
}
