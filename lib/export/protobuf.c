/* SPDX-License-Identifier: MIT */
/* Protocol buffer messages, written.  In: fields in order.  Out: their bytes (wire types 0, 2 and 5). */
#include <string.h>

#include "export.h"

static void varint(Buf *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		buf_add(b, &(uint8_t){ (uint8_t)(v | 0x80) }, 1);
	buf_add(b, &(uint8_t){ (uint8_t)v }, 1);
}

void pb_varint(Buf *b, int field, uint64_t v)
{
	varint(b, (uint64_t)field << 3);
	varint(b, v);
}

void pb_float(Buf *b, int field, float v)
{
	varint(b, (uint64_t)field << 3 | 5);
	buf_add(b, &v, sizeof v);
}

void pb_bytes(Buf *b, int field, const void *bytes, size_t len)
{
	varint(b, (uint64_t)field << 3 | 2);
	varint(b, len);
	if (len)
		buf_add(b, bytes, len);
}

void pb_text(Buf *b, int field, const char *text) { pb_bytes(b, field, text, strlen(text)); }

void pb_message(Buf *b, int field, const Buf *message) { pb_bytes(b, field, message->s, message->len); }
