/* SPDX-License-Identifier: MIT */
/* Microwords as text and back.  In: a routine.  Out: text that parses to the same words, one line per cycle:
 *
 *   routine sum
 *   lines 60
 *     0 | const 0x3f800000 -> r1 @25 (0) | load s[b1+40] -> r2 @4 (1) |  |
 *   ... 24 empty
 *    25 | fadd r1, r2 -> r3 @50 (2)      |                            |  |     # fadd v0, v1 -> v2
 *
 * `@50` is the first cycle that can use the result, `(2)` the recorded operation; # starts a comment.
 * Must hold: printer and parser use one syntax table, so they cannot differ. */
#include <string.h>

#include "operand.h"

enum { MIN_GAP = 3 }; /* runs of at least this many empty lines are abbreviated */

/* ---- printing ----------------------------------------------------------------------------------- */

void micro_print(const Micro *u, Buf *out)
{
	Operands o = { 'r', 'c', u->dst, u->a, u->b, u->cc, u->mem, u->far, u->k, NULL, NULL };
	operation_print(u->op, &o, out);
}

static void print_slot(const Machine *m, const Micro *u, uint32_t cycle, Buf *out)
{
	if (u->op >= GOPS)
		return;
	micro_print(u, out);
	buf_printf(out, " @%lld", (long long)(cycle + op_latency(m, u->op)));
	if (u->rec != NOT_RECORDED)
		buf_printf(out, " (%u)", u->rec);
}

static void pad(Buf *out, size_t start, size_t width)
{
	while (out->len - start < width)
		buf_puts(out, " ");
}

void rec_print(const Code *code, uint32_t number, Buf *out)
{
	const Rec *rec = &code->rec[number];
	bool compares = forms[ops[rec->op].form].uses & WRITES_CC;
	Operands o = { 'v',      'w',      rec->dst, rec->a,         rec->b,         compares ? rec->dst : rec->cc,
		           rec->mem, rec->far, rec->k,   code->reg_name, code->cond_name };
	operation_print(rec->op, &o, out);
}

static void print_line(const Machine *m, const Routine *r, uint32_t cycle, const size_t *width, Buf *out)
{
	buf_printf(out, "%5u", cycle);
	for (int unit = 0; unit < UNITS; unit++) {
		buf_puts(out, " | ");
		size_t start = out->len;
		print_slot(m, &r->line[cycle].slot[unit], cycle, out);
		pad(out, start, width[unit]);
	}
	const Line *l = &r->line[cycle];
	const char *before = "  # ";
	for (int unit = 0; unit < UNITS; unit++) {
		const Micro *u = &l->slot[unit];
		if (u->op == GOP_NONE || !r->code || (u->rec != NOT_RECORDED && u->rec >= r->code->recs))
			continue;
		buf_puts(out, before);
		before = "; ";
		if (u->rec == NOT_RECORDED)
			buf_puts(out, "spill");
		else
			rec_print(r->code, u->rec, out);
	}
	buf_puts(out, "\n");
}

static uint32_t empty_run(const Routine *r, uint32_t from)
{
	uint32_t t = from;
	for (; t < r->lines; t++)
		for (int unit = 0; unit < UNITS; unit++)
			if (r->line[t].slot[unit].op != GOP_NONE)
				return t - from;
	return t - from;
}

void microcode_print(const Machine *m, const Routine *r, Buf *out)
{
	size_t width[UNITS], begun = out->len;
	/* Widest entry of each column. */
	for (int unit = 0; unit < UNITS; unit++) {
		width[unit] = strlen(unit_names[unit]);
		for (uint32_t t = 0; t < r->lines; t++) {
			out->len = begun;
			print_slot(m, &r->line[t].slot[unit], t, out);
			if (out->len - begun > width[unit])
				width[unit] = out->len - begun;
		}
	}
	out->len = begun;
	buf_puts(out, "# GF11 microcode, one line a cycle, one column a unit.\n"
	              "# fadd r1, r2 -> r3 @50 (7): recorded operation 7, its result in register 3 from cycle 50 on.\n"
	              "# c condition, s[base + offset] SRAM, d[base + offset] DRAM, k switch configuration.\n"
	              "# Last on a line: the operations as recorded, with v registers and w conditions.\n");
	buf_printf(out, "# machine %s", m->name ? m->name : "?");
	if (r->report.bound)
		buf_printf(out, ", lower bound %u cycles, %u registers, %u spills", r->report.bound, r->report.registers,
		           r->report.spills);
	buf_printf(out, "\nroutine %s\nlines %u\n%s#    ", r->name && *r->name ? r->name : "unnamed", r->lines,
	           r->update ? "update\n" : "");
	for (int unit = 0; unit < UNITS; unit++) {
		buf_puts(out, " | ");
		size_t start = out->len;
		buf_puts(out, unit_names[unit]);
		pad(out, start, width[unit]);
	}
	buf_puts(out, "\n");
	for (uint32_t t = 0; t < r->lines; t++) {
		uint32_t empty = empty_run(r, t);
		if (empty < MIN_GAP) {
			print_line(m, r, t, width, out);
		} else {
			buf_printf(out, "... %u empty\n", empty);
			t += empty - 1;
		}
	}
}

/* ---- reading ------------------------------------------------------------------------------------ */

static bool read_constant(Reader *rd, uint32_t *value)
{
	static const char remedy[] = "a constant is written as its 32 bits, like 0x3f800000 for 1.0";
	static const char digits[] = "0123456789abcdef";
	if (!reader_expect(rd, "0x", remedy))
		return false;
	size_t start = rd->at;
	uint64_t n = 0;
	for (const char *d; reader_peek(rd) && (d = strchr(digits, reader_peek(rd) | 32)) && *d; rd->at++)
		n = n <= UINT32_MAX ? n * 16 + (uint64_t)(d - digits) : n;
	if (rd->at == start || n > UINT32_MAX)
		return reader_error(rd, start, remedy, "these are not 1 to 8 hexadecimal digits");
	*value = (uint32_t)n;
	return true;
}

/* s[40]  s[b1+40]  s[b1+40+r3]  d[b2+8] */
static bool read_address(Reader *rd, bool dram, Addr *a, uint16_t *index)
{
	static const char *const remedy[] = { "an SRAM address is written s[40] or s[b1+40]",
		                                  "a DRAM address is written d[40] or d[b1+40]",
		                                  "an indexed address is written s[40+r3] or s[b1+40+r3]" };
	const char *form = remedy[index ? 2 : dram];
	uint32_t n = 0;
	if (!reader_address(rd, dram, form, index, a))
		return false;
	if (index) {
		if (!reader_named(rd, "r", "register", rd->m->registers, &n))
			return false;
		*index = (uint16_t)n;
	}
	return reader_expect(rd, "]", form);
}

static bool read_register(Reader *rd, uint16_t *reg)
{
	uint32_t n = 0;
	bool fine = reader_named(rd, "r", "register", rd->m->registers, &n);
	*reg = (uint16_t)n;
	return fine;
}

static bool read_operand(Reader *rd, char what, Micro *u)
{
	uint32_t n = 0;
	bool fine;
	reader_skip(rd);
	switch (what) {
	case ',': return reader_expect(rd, ",", "operands are separated by commas");
	case '>': return reader_expect(rd, "->", "the place of the result is written after ->");
	case 'd': return read_register(rd, &u->dst);
	case 'a': return read_register(rd, &u->a);
	case 'b': return read_register(rd, &u->b);
	case 'c':
		fine = reader_named(rd, "c", "condition", rd->m->conditions, &n);
		u->cc = (uint8_t)n;
		return fine;
	case 'k': return read_constant(rd, &u->k.u);
	case 'x': return reader_named(rd, "k", "configuration", rd->m->configurations, &u->k.u);
	case 'f': return read_address(rd, true, &u->far, NULL);
	case 'm': return read_address(rd, false, &u->mem, NULL);
	default: return read_address(rd, false, &u->mem, what == 'i' ? &u->a : &u->b);
	}
}

static bool read_name(Reader *rd, int unit, Micro *u)
{
	size_t len = reader_word(rd);
	const char *word = rd->src->text + rd->at;
	int op = op_find(word, len);
	if (op >= 0 && ops[op].unit == unit) {
		u->op = (uint8_t)op;
		rd->at += len;
		return true;
	}
	Buf b = { .arena = &rd->cx->scratch };
	if (op >= 0) {
		buf_printf(&b, "write it in column %d, %s", ops[op].unit + 1, unit_names[ops[op].unit]);
		return reader_error(rd, rd->at, b.s, "%s is no operation of unit %s", ops[op].name, unit_names[unit]);
	}
	const char *names[GOPS];
	size_t count = 0;
	buf_printf(&b, "unit %s has", unit_names[unit]);
	for (int k = 0; k < GOPS; k++) {
		if (ops[k].unit == unit) {
			names[count++] = ops[k].name;
			buf_printf(&b, " %s", ops[k].name);
		}
	}
	const char *near = nearest_name(arena_copy(&rd->cx->scratch, word, len < 40 ? len : 40), names, count);
	if (near) {
		b.len = 0;
		buf_printf(&b, "did you mean %s?", near);
	}
	if (!len)
		return reader_error(rd, rd->at, b.s, "expected the name of an operation here");
	return reader_error(rd, rd->at, b.s, "there is no operation '%.*s'", len < 40 ? (int)len : 40, word);
}

/* Cycle of the result: optional, but must be correct. */
static bool read_time(Reader *rd, const Micro *u, uint32_t cycle)
{
	reader_skip(rd);
	size_t start = rd->at;
	uint32_t done = 0;
	if (!reader_accept(rd, "@"))
		return true;
	if (!reader_number(rd, "cycle", UINT32_MAX, &done))
		return false;
	int64_t right = cycle + op_latency(rd->m, u->op);
	if (done == right)
		return true;
	Buf b = { .arena = &rd->cx->scratch };
	buf_printf(&b, "write @%lld, or leave it out; another machine file may have other latencies", (long long)right);
	return reader_error(rd, start, b.s, "the result of %s issued in cycle %u is not there in cycle %u", ops[u->op].name,
	                    cycle, done);
}

static bool read_slot(Reader *rd, int unit, uint32_t cycle, Micro *u)
{
	reader_skip(rd);
	if (rd->at == rd->end || reader_peek(rd) == '|')
		return true;
	Micro read = { .op = GOP_NONE, .rec = NOT_RECORDED };
	if (!read_name(rd, unit, &read))
		return false;
	for (const char *l = op_syntax[ops[read.op].form]; *l; l++)
		if (!read_operand(rd, *l, &read))
			return false;
	if (!read_time(rd, &read, cycle))
		return false;
	reader_skip(rd);
	if (reader_accept(rd, "(") &&
	    (!reader_number(rd, "recorded operation", NOT_RECORDED, &read.rec) ||
	     !reader_expect(rd, ")", "the recorded operation is written in parentheses, like (17)")))
		return false;
	reader_skip(rd);
	if (rd->at < rd->end && reader_peek(rd) != '|')
		return reader_error(rd, rd->at, "a column ends with | or with its line", "%s needs nothing more",
		                    ops[read.op].name);
	*u = read;
	return true;
}

/* Stops at the first error of a line; the next lines are still parsed. */
static bool read_line(Reader *rd, uint32_t cycle, Line *l)
{
	static const char remedy[] = "a line is: cycle | alu | port | dram | switch";
	for (int unit = 0; unit < UNITS; unit++)
		if (!reader_expect(rd, "|", remedy) || !read_slot(rd, unit, cycle, &l->slot[unit]))
			return false;
	reader_skip(rd);
	return rd->at == rd->end || reader_error(rd, rd->at, remedy, "there are too many columns");
}

/* Number of lines in `... 13 empty`. */
static uint32_t read_gap(Reader *rd, uint32_t left)
{
	static const char remedy[] = "lines left out are written `... 13 empty`";
	size_t start = rd->at;
	uint32_t n = 0;
	reader_skip(rd);
	if (!reader_number(rd, "gap", UINT32_MAX, &n) || !reader_expect(rd, "empty", remedy))
		check_errors(rd->cx);
	if (n > left)
		fail_at(rd->cx, (Loc){ rd->src, start }, "change it, or the number after the word lines",
		        "the routine has only %u lines more, not %u", left, n);
	reader_end(rd);
	return n;
}

static void read_cycle(Reader *rd, Routine *r, uint32_t cycle)
{
	size_t start = rd->at;
	uint32_t n = 0;
	if (cycle == r->lines)
		fail_at(rd->cx, (Loc){ rd->src, start }, "leave it out, or change the number after the word lines",
		        "this is more than the routine's %u lines", r->lines);
	if (!reader_number(rd, "cycle", UINT32_MAX, &n))
		check_errors(rd->cx);
	if (n != cycle)
		fail_at(rd->cx, (Loc){ rd->src, start }, "number the lines from 0; lines left out are written `... 13 empty`",
		        "this is line %u, not %u", cycle, n);
	read_line(rd, cycle, &r->line[cycle]);
}

Routine *microcode_parse(Ctx *cx, const Machine *m, const Src *src)
{
	Reader rd = { .cx = cx, .m = m, .src = src };
	Routine *r = NEW(&cx->keep, 1, Routine);
	src_check_text(cx, src);
	static const char start[] = "a routine begins with the lines `routine NAME` and `lines NUMBER`";
	reader_line(&rd);
	if (!reader_expect(&rd, "routine", start))
		check_errors(rd.cx);
	reader_skip(&rd);
	if (rd.at == rd.end)
		fail_at(rd.cx, (Loc){ rd.src, rd.at }, "write it after the word routine", "the routine has no name");
	r->name = arena_copy(&rd.cx->keep, rd.src->text + rd.at, rd.end - rd.at);
	reader_line(&rd);
	bool fine = reader_expect(&rd, "lines", start);
	reader_skip(&rd);
	if (!fine || !reader_number(&rd, "lines", (uint64_t)rd.m->block + 1, &r->lines))
		check_errors(rd.cx);
	reader_end(&rd);
	check_errors(rd.cx);
	r->line = NEW(&cx->keep, r->lines, Line);
	for (uint32_t t = 0; t < r->lines; t++)
		for (int unit = 0; unit < UNITS; unit++)
			r->line[t].slot[unit] = (Micro){ .op = GOP_NONE, .rec = NOT_RECORDED };
	uint32_t cycle = 0;
	while (reader_line(&rd)) {
		if (cycle == 0 && !r->update && reader_accept(&rd, "update")) {
			r->update = true;
			reader_end(&rd);
		} else if (reader_accept(&rd, "...")) {
			cycle += read_gap(&rd, r->lines - cycle);
		} else {
			read_cycle(&rd, r, cycle++);
		}
	}
	if (cycle < r->lines)
		error_at(cx, (Loc){ src, src->len },
		         "add them, empty ones as `... 13 empty`, or change the number after the word lines",
		         "%u of the routine's %u lines are missing", r->lines - cycle, r->lines);
	check_errors(cx);
	r->report.cycles = r->lines;
	return r;
}
