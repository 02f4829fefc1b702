/* SPDX-License-Identifier: MIT */
/* Protocol buffer messages.  In: bytes of any file.  Out: fields, one after the other; what does not lie inside its
 * message is an error at its byte. */
#include <string.h>

#include "message.h"

static const char remedy[] = "is the file complete? export it anew";

static uint8_t byte_at(const Message *m, size_t at) { return (uint8_t)m->src->text[at]; }

static uint64_t varint(Message *m)
{
	uint64_t v = 0;
	for (int shift = 0; shift < 64; shift += 7) {
		if (m->at >= m->end)
			fail_at(m->cx, (Loc){ m->src, m->at }, remedy, "a number does not end inside its message");
		uint8_t b = byte_at(m, m->at++);
		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80)
			return v;
	}
	fail_at(m->cx, (Loc){ m->src, m->at - 1 }, remedy, "a number has more than ten bytes");
}

static uint64_t fixed(Message *m, size_t bytes)
{
	uint64_t v = 0;
	if (m->end - m->at < bytes)
		fail_at(m->cx, (Loc){ m->src, m->at }, remedy, "a number does not end inside its message");
	memcpy(&v, m->src->text + m->at, bytes);
	m->at += bytes;
	return v;
}

bool message_varint(Message *m, uint64_t *v)
{
	if (m->at >= m->end)
		return false;
	*v = varint(m);
	return true;
}

bool message_next(Message *m, MessageField *f)
{
	if (m->at >= m->end)
		return false;
	*f = (MessageField){ .loc = { m->src, m->at } };
	uint64_t tag = varint(m);
	f->number = (uint32_t)(tag >> 3);
	f->wire = (int)(tag & 7);
	if (tag >> 3 == 0 || tag >> 3 > 536870911)
		fail_at(m->cx, f->loc, remedy, "a field cannot have the number %llu", (unsigned long long)(tag >> 3));
	switch (f->wire) {
	case WIRE_VARINT: f->value = varint(m); return true;
	case WIRE_64: f->value = fixed(m, 8); return true;
	case WIRE_32: f->value = fixed(m, 4); return true;
	case WIRE_BYTES: {
		uint64_t len = varint(m);
		if (len > m->end - m->at)
			fail_at(m->cx, f->loc, remedy, "%llu bytes cannot follow: %zu are left", (unsigned long long)len,
			        m->end - m->at);
		f->bytes = (Message){ m->cx, m->src, m->at, m->at + len };
		m->at += len;
		return true;
	}
	default: fail_at(m->cx, f->loc, remedy, "there is no wire type %d", f->wire);
	}
}

void message_need(const MessageField *f, const Message *m, int wire, const char *what)
{
	if (f->wire != wire)
		fail_at(m->cx, f->loc, remedy, "%s has the wire type %d, not %d", what, f->wire, wire);
}

const char *message_text(const MessageField *f, const Message *m, const char *what)
{
	message_need(f, m, WIRE_BYTES, what);
	size_t len = f->bytes.end - f->bytes.at;
	const char *s = m->src->text + f->bytes.at;
	name_check(m->cx, f->loc, what, (Text){ s, (uint32_t)len });
	return arena_copy(&m->cx->scratch, s, len);
}
