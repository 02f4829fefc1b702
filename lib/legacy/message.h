/* SPDX-License-Identifier: MIT */
/* Protocol buffer messages, read field by field (message.c). */
#ifndef MESSAGE_H
#define MESSAGE_H

#include "legacy.h"

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };
typedef struct Message { /* bytes at .. end - 1 of a file */
	Ctx *cx;
	const Src *src;
	size_t at, end;
} Message;
typedef struct MessageField {
	uint32_t number;
	int wire;
	uint64_t value; /* WIRE_VARINT, WIRE_32, WIRE_64 */
	Message bytes;  /* WIRE_BYTES */
	Loc loc;
} MessageField;
bool message_next(Message *m, MessageField *f); /* false at the end; fails where the bytes are no message */
/* Fails unless the field has this wire type. */
void message_need(const MessageField *f, const Message *m, int wire, const char *what);
const char *message_text(const MessageField *f, const Message *m, const char *what); /* without control bytes */
bool message_varint(Message *m, uint64_t *v); /* the next of a packed field; false at the end */

#endif
