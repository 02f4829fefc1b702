/* SPDX-License-Identifier: MIT */
/* Operations as text: their operands, in the order of one table.  Printer and readers (microcode.c: words of microcode,
 * operations.c: operations in program order) use that table, so they cannot differ. */
#include <string.h>

#include "operand.h"

const char *const op_syntax[FORMS] = {
	[FORM_RR] = "a,b>d",     [FORM_R] = "a>d",   [FORM_CMP] = "a,b>c", [FORM_SELECT] = "c,a,b>d",
	[FORM_MASKED] = "c,a>d", [FORM_IMM] = "k>d", [FORM_LOAD] = "m>d",  [FORM_STORE] = "a>m",
	[FORM_LOOKUP] = "i>d",   [FORM_PUT] = "a>j", [FORM_FETCH] = "f>m", [FORM_FLUSH] = "m>f",
	[FORM_XFER] = "x,a>d",
};

static void print_name(const char *const *name, char letter, uint32_t number, Buf *out)
{
	if (name && name[number])
		buf_puts(out, name[number]);
	else
		buf_printf(out, "%c%u", letter, number);
}

static void print_address(char memory, Addr a, Buf *out)
{
	if (a.base)
		buf_printf(out, "%c[b%u+%u", memory, a.base, a.off);
	else
		buf_printf(out, "%c[%u", memory, a.off);
}

void operation_print(int op, const Operands *o, Buf *out)
{
	buf_printf(out, "%s ", ops[op].name);
	for (const char *l = op_syntax[ops[op].form]; *l; l++) {
		char what = *l;
		switch (what) {
		case ',': buf_puts(out, ", "); break;
		case '>': buf_puts(out, " -> "); break;
		case 'd': print_name(o->reg_name, o->reg, o->dst, out); break;
		case 'a': print_name(o->reg_name, o->reg, o->a, out); break;
		case 'b': print_name(o->reg_name, o->reg, o->b, out); break;
		case 'c': print_name(o->cond_name, o->cond, o->cc, out); break;
		case 'k': buf_printf(out, "0x%08x", o->k.u); break;
		case 'x': buf_printf(out, "k%u", o->k.u); break;
		case 'f':
			print_address('d', o->far, out);
			buf_puts(out, "]");
			break;
		default:
			print_address('s', o->mem, out);
			if (what != 'm') {
				buf_puts(out, "+");
				print_name(o->reg_name, o->reg, what == 'i' ? o->a : o->b, out);
			}
			buf_puts(out, "]");
		}
	}
}

/* ---- reading ------------------------------------------------------------------------------------ */

bool reader_error(Reader *rd, size_t off, const char *remedy, const char *fmt, ...)
{
	Buf b = { .arena = &rd->cx->scratch };
	va_list ap;
	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	error_at(rd->cx, (Loc){ rd->src, off }, remedy, "%s", b.s);
	return false;
}

void reader_skip(Reader *rd)
{
	while (rd->at < rd->end && (rd->src->text[rd->at] == ' ' || rd->src->text[rd->at] == '\t'))
		rd->at++;
}

bool reader_line(Reader *rd)
{
	const char *text = rd->src->text;
	while (rd->next < rd->src->len) {
		rd->at = rd->next;
		const char *end = memchr(text + rd->at, '\n', rd->src->len - rd->at);
		rd->end = end ? (size_t)(end - text) : rd->src->len;
		rd->next = rd->end + (end != NULL);
		const char *comment = memchr(text + rd->at, '#', rd->end - rd->at);
		if (comment)
			rd->end = (size_t)(comment - text);
		while (rd->end > rd->at && strchr(" \t\r", text[rd->end - 1]) && text[rd->end - 1])
			rd->end--;
		reader_skip(rd);
		if (rd->at < rd->end)
			return true;
	}
	rd->at = rd->end = rd->src->len;
	return false;
}

char reader_peek(const Reader *rd) { return rd->at < rd->end ? rd->src->text[rd->at] : '\0'; }

static bool is_word(const Reader *rd) { return reader_peek(rd) > ' ' && !strchr(",|", reader_peek(rd)); }

size_t reader_word(const Reader *rd)
{
	Reader ahead = *rd;
	while (is_word(&ahead))
		ahead.at++;
	return ahead.at - rd->at;
}

bool reader_accept(Reader *rd, const char *mark)
{
	size_t len = strlen(mark);
	if (rd->end - rd->at < len || memcmp(rd->src->text + rd->at, mark, len) != 0)
		return false;
	rd->at += len;
	return true;
}

bool reader_expect(Reader *rd, const char *mark, const char *remedy)
{
	reader_skip(rd);
	if (reader_accept(rd, mark))
		return true;
	size_t len = reader_word(rd);
	if (len)
		return reader_error(rd, rd->at, remedy, "expected '%s', found '%.*s'", mark, len < 40 ? (int)len : 40,
		                    rd->src->text + rd->at);
	return reader_error(rd, rd->at, remedy, "expected '%s' here", mark);
}

bool reader_number(Reader *rd, const char *what, uint64_t limit, uint32_t *value)
{
	size_t start = rd->at;
	uint64_t n = 0;
	for (; reader_peek(rd) >= '0' && reader_peek(rd) <= '9'; rd->at++)
		n = n <= UINT32_MAX ? n * 10 + (uint64_t)(reader_peek(rd) - '0') : n;
	if (rd->at == start)
		return reader_error(rd, start, "write digits", "%s has no number", what);
	if (n >= limit) {
		Buf b = { .arena = &rd->cx->scratch };
		buf_printf(&b, "on this machine it goes up to %llu", (unsigned long long)limit - 1);
		return reader_error(rd, start, b.s, "%s %.*s is too large", what,
		                    rd->at - start < 40 ? (int)(rd->at - start) : 40, rd->src->text + start);
	}
	*value = (uint32_t)n;
	return true;
}

bool reader_named(Reader *rd, const char *letter, const char *what, int64_t limit, uint32_t *value)
{
	Buf b = { .arena = &rd->cx->scratch };
	buf_printf(&b, "a %s is written %s and its number, like %s3", what, letter, letter);
	return reader_expect(rd, letter, b.s) && reader_number(rd, what, (uint64_t)limit, value);
}

bool reader_address(Reader *rd, bool dram, const char *remedy, bool indexed, Addr *a)
{
	uint32_t n = 0;
	if (!reader_expect(rd, dram ? "d[" : "s[", remedy))
		return false;
	if (reader_accept(rd, "b")) {
		if (!reader_number(rd, "base", (uint64_t)rd->m->relocations, &n) || !reader_expect(rd, "+", remedy))
			return false;
		a->base = (uint16_t)n;
	}
	return reader_number(rd, "offset", (uint64_t)(dram ? rd->m->dram : rd->m->sram), &a->off) &&
	       (!indexed || reader_expect(rd, "+", remedy));
}

void reader_end(Reader *rd)
{
	reader_skip(rd);
	if (rd->at < rd->end)
		reader_error(rd, rd->at, "leave it out, or write # before it", "unexpected text at the end of the line");
}
