/* SPDX-License-Identifier: MIT */
/* Zip archives of one array, byte by byte, for tests of what reads them. */
#ifndef ZIPS_H
#define ZIPS_H

#include <zlib.h>

#include "test_data.h"

typedef struct Bytes {
	unsigned char s[8192];
	size_t len;
} Bytes;

static void put(Bytes *b, uint64_t v, int bytes)
{
	for (; bytes-- > 0; v >>= 8)
		b->s[b->len++] = (unsigned char)(v & 255);
}

static void put_bytes(Bytes *b, const void *v, size_t len)
{
	memcpy(b->s + b->len, v, len);
	b->len += len;
}

/* A zip file of one member x.npy: deflated or stored, sizes after the data, 64-bit sizes everywhere, and a comment. */
static void make_zip(Bytes *z, const char *npy, size_t n, bool deflated, bool descriptor, bool wide)
{
	unsigned char packed[2048];
	size_t p = n;
	if (!deflated)
		memcpy(packed, npy, n);
	if (deflated) {
		z_stream s = {
			.next_in = (Bytef *)(uintptr_t)npy, .avail_in = (uInt)n, .next_out = packed, .avail_out = sizeof packed
		};
		deflateInit2(&s, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
		assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
		p = s.total_out;
		deflateEnd(&s);
	}
	uint32_t crc = (uint32_t)crc32(0, (const Bytef *)npy, (uInt)n), none = descriptor ? 0 : crc;
	unsigned flags = descriptor ? 8 : 0, method = deflated ? 8 : 0;
	z->len = 0;
	put(z, 0x04034b50, 4), put(z, 45, 2), put(z, flags, 2), put(z, method, 2), put(z, 0, 4), put(z, none, 4);
	put(z, descriptor ? 0 : p, 4), put(z, descriptor ? 0 : n, 4), put(z, 5, 2), put(z, 0, 2), put_bytes(z, "x.npy", 5);
	put_bytes(z, packed, p);
	if (descriptor)
		put(z, 0x08074b50, 4), put(z, crc, 4), put(z, p, 4), put(z, n, 4);
	size_t at = z->len;
	put(z, 0x02014b50, 4), put(z, 45, 2), put(z, 45, 2), put(z, flags, 2), put(z, method, 2), put(z, 0, 4),
		put(z, crc, 4);
	put(z, wide ? UINT32_MAX : p, 4), put(z, wide ? UINT32_MAX : n, 4), put(z, 5, 2), put(z, wide ? 28 + 5 : 0, 2),
		put(z, 0, 2);
	put(z, 0, 8), put(z, wide ? UINT32_MAX : 0, 4), put_bytes(z, "x.npy", 5);
	if (wide)
		put(z, 77, 2), put(z, 1, 2), put(z, 0, 1), put(z, 1, 2), put(z, 24, 2), put(z, n, 8), put(z, p, 8),
			put(z, 0, 8);
	size_t size = z->len - at;
	if (wide) {
		size_t end = z->len;
		put(z, 0x06064b50, 4), put(z, 44, 8), put(z, 45, 2), put(z, 45, 2), put(z, 0, 8), put(z, 1, 8), put(z, 1, 8);
		put(z, size, 8), put(z, at, 8), put(z, 0x07064b50, 4), put(z, 0, 4), put(z, end, 8), put(z, 1, 4);
	}
	put(z, 0x06054b50, 4), put(z, 0, 4), put(z, wide ? UINT16_MAX : 1, 2), put(z, wide ? UINT16_MAX : 1, 2);
	put(z, wide ? UINT32_MAX : size, 4), put(z, wide ? UINT32_MAX : at, 4), put(z, 7, 2), put_bytes(z, "comment", 7);
}

#endif
