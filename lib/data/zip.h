/* SPDX-License-Identifier: MIT */
/* zip: the container of npz, read and written. */
#ifndef ZIP_H
#define ZIP_H

#include "data.h"

typedef struct Member {
	const char *name;
	uint64_t at;           /* of its bytes in the file */
	uint64_t packed, size; /* in the file, and unpacked */
	uint32_t crc;
	uint16_t method; /* 0 stored, 8 deflated */
} Member;
typedef struct Zip {
	const Src *src;
	Member *member;
	uint32_t members;
} Zip;
Zip *zip_open(Ctx *cx, const Src *s);                  /* in scratch; every member lies inside the file */
Src *zip_read(Ctx *cx, const Zip *z, const Member *m); /* its bytes; deflated ones in scratch */
void zip_check(Ctx *cx, const Zip *z, const Member *m, const Src *bytes); /* its checksum */
void zip_wrong(Ctx *cx, Loc at, const char *member);                      /* that is wrong: fails */
typedef struct ZipOut ZipOut;
/* wide_from: sizes from here on are written in 64 bits; UINT32_MAX, or less in a test. */
ZipOut *zip_create(Ctx *cx, const char *path, uint64_t wide_from);
/* 64-byte aligned */
void zip_add(ZipOut *z, const char *name, const void *head, size_t head_len, const void *body, size_t len);
void zip_commit(Ctx *cx, ZipOut *z);

#endif
