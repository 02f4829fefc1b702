/* SPDX-License-Identifier: MIT */
/* zip: the container of npz files.
 *
 * Reading: the central directory at the end is used; local headers are skipped, so data descriptors do not matter.
 * Stored and deflated members, zip64.  After zip_open every member lies inside the file.
 *
 *     | local header, name, extra | bytes |  ...  | central directory | (zip64 end, its locator) | end, comment |
 *
 * Writing: stored members, each array 64-byte aligned for use in the mapped file; fixed times, so that the same data
 * gives the same file. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "data.h"

enum { LOCAL = 30, CENTRAL = 46, END = 22, END64 = 56, LOCATOR64 = 20 };
enum {
	SIG_LOCAL = 0x04034b50,
	SIG_CENTRAL = 0x02014b50,
	SIG_END = 0x06054b50,
	SIG_END64 = 0x06064b50,
	SIG_LOCATOR64 = 0x07064b50
};
enum { STORED = 0, DEFLATED = 8, MAX_MEMBERS = 4096, EXTRA_ZIP64 = 1, EXTRA_ALIGN = 0xD935 };
enum { MAX_DEFLATE_RATIO = 1032 };

static const char damaged[] = "the file is damaged or cut short: copy or write it again";

/* ---- little-endian integers ---- */

static uint64_t get(const uint8_t *p, int bytes)
{
	uint64_t v = 0;
	while (bytes-- > 0)
		v = v << 8 | p[bytes];
	return v;
}

static void put(Buf *b, uint64_t v, int bytes)
{
	for (; bytes-- > 0; v >>= 8)
		buf_add(b, &(char){ (char)(v & 255) }, 1);
}

/* ---- reading ---- */

typedef struct Directory {
	uint64_t at, size, entries;
} Directory;

static const uint8_t *bytes_at(const Src *s, uint64_t off) { return (const uint8_t *)s->text + off; }

static size_t find_end(Ctx *cx, const Src *s)
{
	size_t low = s->len > END + 65535 ? s->len - END - 65535 : 0;
	for (size_t i = s->len >= END ? s->len - END + 1 : 0; i-- > low;)
		if (get(bytes_at(s, i), 4) == SIG_END && i + END + get(bytes_at(s, i + 20), 2) == s->len)
			return i;
	fail_at(cx, (Loc){ s, s->len }, "the file is cut short or no npz: write it again with numpy.savez",
	        "there is no zip directory at the end of the file");
}

static Directory find_directory(Ctx *cx, const Src *s)
{
	size_t end = find_end(cx, s);
	const uint8_t *p = bytes_at(s, end);
	Loc at = { s, end };
	Directory d = { get(p + 16, 4), get(p + 12, 4), get(p + 10, 2) };
	if (get(p + 4, 2) != get(p + 6, 2) || get(p + 8, 2) != d.entries)
		fail_at(cx, at, "join the parts into one file", "the zip file is one part of several");
	if (end >= LOCATOR64 && get(p - LOCATOR64, 4) == SIG_LOCATOR64) {
		uint64_t off = get(p - LOCATOR64 + 8, 8);
		if (off > end - LOCATOR64 || end - LOCATOR64 - off < END64 || get(bytes_at(s, off), 4) != SIG_END64)
			fail_at(cx, (Loc){ s, end - LOCATOR64 }, damaged, "the zip64 directory is not where its locator points");
		const uint8_t *wide = bytes_at(s, off);
		d = (Directory){ get(wide + 48, 8), get(wide + 40, 8), get(wide + 32, 8) };
		end = off;
	}
	if (d.at > end || d.size > end - d.at)
		fail_at(cx, at, damaged, "the zip directory lies outside the file");
	if (d.entries > MAX_MEMBERS)
		fail_at(cx, at, "put the data into fewer arrays", "the file has %" PRIu64 " members, more than %d", d.entries,
		        MAX_MEMBERS);
	return d;
}

/* Sizes and offset that do not fit into 32 bits stand in the zip64 extra field, those only, in this order. */
static bool take_zip64(const uint8_t *extra, size_t len, uint64_t *size, uint64_t *packed, uint64_t *at)
{
	uint64_t *field[] = { size, packed, at };
	size_t next = 0, size_of_field = 0;
	const uint8_t *p = NULL;
	for (size_t i = 0; i + 4 <= len && !p; i += 4 + size_of_field) {
		size_of_field = get(extra + i + 2, 2);
		if (size_of_field > len - i - 4)
			return false;
		if (get(extra + i, 2) == EXTRA_ZIP64)
			p = extra + i + 4;
	}
	for (size_t k = 0; k < COUNT(field); k++) {
		if (*field[k] != UINT32_MAX)
			continue;
		if (!p || next + 8 > size_of_field)
			return false;
		*field[k] = get(p + next, 8);
		next += 8;
	}
	return true;
}

/* Skips the local header; checks that the bytes lie inside the file. */
static void find_bytes(Ctx *cx, const Src *s, ZipMember *m, Loc entry, uint64_t limit)
{
	uint64_t local = m->at;
	size_t name_len = strlen(m->name);
	if (local > limit || limit - local < LOCAL || get(bytes_at(s, local), 4) != SIG_LOCAL)
		fail_at(cx, entry, damaged, "member '%s' is not where the directory says", m->name);
	const uint8_t *p = bytes_at(s, local);
	uint64_t skip = LOCAL + get(p + 26, 2) + get(p + 28, 2);
	if (limit - local < skip || get(p + 26, 2) != name_len || memcmp(p + LOCAL, m->name, name_len) != 0)
		fail_at(cx, (Loc){ s, local }, damaged, "the header of member '%s' does not match the directory", m->name);
	m->at = local + skip;
	if (m->packed > limit - m->at)
		fail_at(cx, entry, damaged, "member '%s' is longer than the file", m->name);
}

static void check_kind(Ctx *cx, const ZipMember *m, unsigned flags, Loc at)
{
	if (flags & 1)
		fail_at(cx, at, "write it without a password", "member '%s' is encrypted", m->name);
	if (m->method != STORED && m->method != DEFLATED)
		fail_at(cx, at, "write it with numpy.savez or numpy.savez_compressed",
		        "member '%s' is packed with method %u, which is neither stored nor deflated", m->name, m->method);
	if (m->method == STORED && m->size != m->packed)
		fail_at(cx, at, damaged, "member '%s' is stored, but its two sizes differ", m->name);
	if (m->size / MAX_DEFLATE_RATIO > m->packed)
		fail_at(cx, at, damaged, "member '%s' says it unpacks to more than its bytes can hold", m->name);
}

/* One entry of the directory; returns where the next begins. */
static uint64_t take_entry(Ctx *cx, const Src *s, uint64_t off, uint64_t end, uint64_t limit, ZipMember *m)
{
	Loc at = { s, off };
	if (end - off < CENTRAL || get(bytes_at(s, off), 4) != SIG_CENTRAL)
		fail_at(cx, at, damaged, "the zip directory has no entry here");
	const uint8_t *p = bytes_at(s, off);
	uint64_t name_len = get(p + 28, 2), extra_len = get(p + 30, 2);
	uint64_t len = CENTRAL + name_len + extra_len + get(p + 32, 2);
	if (end - off < len)
		fail_at(cx, at, damaged, "an entry of the zip directory is longer than the directory");
	if (name_len == 0)
		fail_at(cx, at, damaged, "a member of the zip file has no name");
	name_check(cx, at, "member", (Text){ (const char *)p + CENTRAL, (uint32_t)name_len });
	m->name = arena_copy(&cx->keep, (const char *)p + CENTRAL, name_len);
	m->method = (uint16_t)get(p + 10, 2);
	m->crc = (uint32_t)get(p + 16, 4);
	m->packed = get(p + 20, 4);
	m->size = get(p + 24, 4);
	m->at = get(p + 42, 4);
	if (!take_zip64(p + CENTRAL + name_len, extra_len, &m->size, &m->packed, &m->at))
		fail_at(cx, at, damaged, "member '%s' lacks its 64-bit sizes", m->name);
	check_kind(cx, m, (unsigned)get(p + 8, 2), at);
	find_bytes(cx, s, m, at, limit);
	return off + len;
}

Zip *zip_open(Ctx *cx, const Src *s)
{
	Directory d = find_directory(cx, s);
	Zip *z = NEW(&cx->scratch, 1, Zip);
	z->src = s;
	z->member = NEW(&cx->scratch, d.entries, ZipMember);
	uint64_t off = d.at, total = 0;
	for (uint64_t i = 0; i < d.entries; i++) {
		ZipMember *m = &z->member[z->members];
		uint64_t entry = off;
		off = take_entry(cx, s, off, d.at + d.size, d.at, m);
		if (m->name[strlen(m->name) - 1] == '/') /* a folder */
			continue;
		for (uint32_t k = 0; k < z->members; k++)
			if (strcmp(z->member[k].name, m->name) == 0)
				fail_at(cx, (Loc){ s, entry }, "give each array a name of its own", "member '%s' is there twice",
				        m->name);
		total += m->packed; /* each at most the file's length: no overflow */
		if (total > s->len)
			fail_at(cx, (Loc){ s, entry }, damaged, "members overlap in the file");
		z->members++;
	}
	return z;
}

/* Running out of memory unwinds through zlib; its memory is freed with the arena. */
void *zlib_alloc(void *arena, unsigned count, unsigned size) { return arena_alloc(arena, count, size); }

void zlib_free(void *arena, void *block) { (void)arena, (void)block; }

void unpacked_check(Ctx *cx, Loc at, uint64_t bytes)
{
	if (bytes > memory_total() / 2)
		fail_at(cx, at, "unpack it, so that it is mapped, or use a machine with more memory",
		        "it unpacks to %" PRIu64 " bytes, more than half the memory of this machine", bytes);
}

static const char *inflate_all(Ctx *cx, const Zip *z, const ZipMember *m)
{
	size_t released = (size_t)m->at;
	unpacked_check(cx, (Loc){ z->src, m->at }, m->size);
	char *out = arena_alloc(&cx->scratch, m->size, 1);
	z_stream f = { .zalloc = zlib_alloc, .zfree = zlib_free, .opaque = &cx->scratch };
	uint64_t in = 0, have = 0;
	int rc = inflateInit2(&f, -15);
	while (rc == Z_OK) {
		uint64_t more = m->packed - in, capacity = m->size - have;
		f.next_in = (Bytef *)(uintptr_t)bytes_at(z->src, m->at + in);
		f.avail_in = (uInt)min_u64(more, READ_CHUNK);
		f.next_out = (Bytef *)out + have;
		f.avail_out = (uInt)min_u64(capacity, READ_CHUNK);
		uInt in_before = f.avail_in, out_before = f.avail_out;
		rc = inflate(&f, Z_NO_FLUSH);
		in += in_before - f.avail_in;
		have += out_before - f.avail_out;
		src_release(z->src, &released, (size_t)(m->at + in));
	}
	inflateEnd(&f);
	if (rc != Z_STREAM_END || have != m->size || in != m->packed)
		fail_at(cx, (Loc){ z->src, m->at + in }, damaged, "member '%s' does not unpack to its %" PRIu64 " bytes",
		        m->name, m->size);
	return out;
}

Src *zip_read(Ctx *cx, const Zip *z, const ZipMember *m)
{
	Src *s = NEW(&cx->keep, 1, Src);
	Buf name = { .arena = &cx->keep };
	buf_printf(&name, "%s(%s)", z->src->name, m->name);
	s->name = name.s;
	s->binary = true;
	s->len = m->size;
	s->text = m->method == DEFLATED ? inflate_all(cx, z, m) : z->src->text + m->at;
	s->mapped = m->method != DEFLATED && z->src->mapped;
	return s;
}

void zip_wrong(Ctx *cx, Loc at, const char *member)
{
	fail_at(cx, at, damaged, "the checksum of member '%s' is wrong", member);
}

void zip_check(Ctx *cx, const Zip *z, const ZipMember *m, const Src *bytes)
{
	uLong crc = crc32_z(0, NULL, 0);
	for (size_t at = 0, released = 0, n; at < bytes->len; at += n) {
		n = min_u64(bytes->len - at, READ_CHUNK);
		crc = crc32_z(crc, (const Bytef *)bytes->text + at, n);
		src_release(bytes, &released, at + n);
	}
	if (crc != m->crc)
		zip_wrong(cx, (Loc){ z->src, m->at }, m->name);
}

/* ---- writing ---- */

struct ZipOut {
	OutFile *file;
	uint64_t wide_from; /* sizes and offsets from here on need 64 bits */
	uint64_t at;        /* bytes written so far */
	uint64_t members;
	Buf head, directory;
};

ZipOut *zip_create(Ctx *cx, const char *path, uint64_t wide_from)
{
	ZipOut *z = NEW(&cx->scratch, 1, ZipOut);
	z->wide_from = wide_from < UINT32_MAX ? wide_from : UINT32_MAX;
	z->head.arena = z->directory.arena = &cx->scratch;
	z->file = file_create(cx, &cx->scratch, path);
	return z;
}

static void zip_put(ZipOut *z, const void *bytes, size_t len)
{
	file_write(z->file, bytes, len);
	z->at += len;
}

/* A size or offset in a 32-bit field: all ones if the zip64 field holds it. */
static uint64_t small(const ZipOut *z, uint64_t v) { return v < z->wide_from ? v : UINT32_MAX; }

/* Fields common to local header and directory entry, from "version needed" on; the time is 1 January 1980. */
static void put_common(const ZipOut *z, Buf *b, uint32_t crc, uint64_t size, size_t name_len, size_t extra_len)
{
	put(b, 45, 2);
	put(b, 0, 2);
	put(b, STORED, 2);
	put(b, 0, 2);
	put(b, 0x21, 2);
	put(b, crc, 4);
	put(b, small(z, size), 4);
	put(b, small(z, size), 4);
	put(b, name_len, 2);
	put(b, extra_len, 2);
}

/* Local header with an extra field that aligns the bytes after it to 64. */
static void put_local(ZipOut *z, const char *name, uint32_t crc, uint64_t size)
{
	Buf *b = &z->head;
	bool big = size >= z->wide_from;
	size_t name_len = strlen(name), wide = big ? 20 : 0;
	size_t pad = (64 - (z->at + LOCAL + name_len + wide) % 64) % 64;
	if (pad && pad < 4)
		pad += 64;
	b->len = 0;
	put(b, SIG_LOCAL, 4);
	put_common(z, b, crc, size, name_len, wide + pad);
	buf_puts(b, name);
	if (big) {
		put(b, EXTRA_ZIP64, 2);
		put(b, 16, 2);
		put(b, size, 8);
		put(b, size, 8);
	}
	if (pad) {
		static const char zeros[64];
		put(b, EXTRA_ALIGN, 2);
		put(b, pad - 4, 2);
		buf_add(b, zeros, pad - 4);
	}
	zip_put(z, b->s, b->len);
	assert(z->at % 64 == 0);
}

static void put_entry(ZipOut *z, const char *name, uint32_t crc, uint64_t size, uint64_t local)
{
	Buf *b = &z->directory;
	bool big_size = size >= z->wide_from, big_at = local >= z->wide_from;
	size_t fields = (big_size ? 16 : 0) + (big_at ? 8 : 0);
	put(b, SIG_CENTRAL, 4);
	put(b, 45, 2);
	put_common(z, b, crc, size, strlen(name), fields ? 4 + fields : 0);
	put(b, 0, 2); /* comment, disk, attributes */
	put(b, 0, 2);
	put(b, 0, 2);
	put(b, 0, 4);
	put(b, small(z, local), 4);
	buf_puts(b, name);
	if (!fields)
		return;
	put(b, EXTRA_ZIP64, 2);
	put(b, fields, 2);
	if (big_size) {
		put(b, size, 8);
		put(b, size, 8);
	}
	if (big_at)
		put(b, local, 8);
}

void zip_add(ZipOut *z, const char *name, const void *head, size_t head_len, const void *body, size_t len)
{
	uint64_t local = z->at, size = head_len + len;
	uLong crc = crc32_z(0, head, head_len);
	if (len)
		crc = crc32_z(crc, body, len);
	put_local(z, name, (uint32_t)crc, size);
	put_entry(z, name, (uint32_t)crc, size, local);
	zip_put(z, head, head_len);
	zip_put(z, body, len);
	z->members++;
}

void zip_commit(Ctx *cx, ZipOut *z)
{
	Buf *b = &z->directory;
	uint64_t at = z->at, size = b->len, end = at + size;
	if (at >= z->wide_from) {
		put(b, SIG_END64, 4);
		put(b, END64 - 12, 8);
		put(b, 45, 2);
		put(b, 45, 2);
		put(b, 0, 4);
		put(b, 0, 4);
		put(b, z->members, 8);
		put(b, z->members, 8);
		put(b, size, 8);
		put(b, at, 8);
		put(b, SIG_LOCATOR64, 4);
		put(b, 0, 4);
		put(b, end, 8);
		put(b, 1, 4);
	}
	put(b, SIG_END, 4);
	put(b, 0, 4);
	put(b, z->members, 2);
	put(b, z->members, 2);
	put(b, small(z, size), 4);
	put(b, small(z, at), 4);
	put(b, 0, 2);
	zip_put(z, b->s, b->len);
	file_commit(cx, z->file);
}
