/* SPDX-License-Identifier: MIT */
/* Operations in program order as text and back.  In: text, one operation a line, or a listing of microcode, whose
 * comments hold them.  Out: a Code, as if instruction functions had recorded it.
 *
 *   routine axpy                 # optional: else the name of the file
 *   const 2.0 -> a               # 1.5 float, 7i integer, 0x3f800000 bits
 *   load s[b1+40] -> x
 *   fmul a, x -> p
 *   store p -> s[200]
 *
 * A register or condition has any name of letters, digits, _ and .; an operation may write a name again, which makes
 * a new value.  Words on a line of their own: `update` (the report's measure counts transfers), `overlap` (regions
 * under different bases may overlap), `limit b1 64` (indexed accesses under b1 stay in its first 64 words).
 * Must hold: what operations_print writes reads back as the same operations. */
#include <stdlib.h>
#include <string.h>

#include "operand.h"

enum { MAX_RECS = 1 << 20, MAX_NAME = 40 };

/* Name -> the value that it means at this line. */
typedef struct Names {
	const char *what, *word, *source; /* register, v0, load s[100] */
	Dict dict;
	uint32_t *now; /* [capacity] number of the value by index in dict */
	uint32_t capacity;
	const char **name; /* [values] */
	uint32_t values, value_capacity;
} Names;

typedef struct OpsReader {
	Reader rd;
	Code *code;
	uint32_t capacity;
	Names reg, cond;
} OpsReader;

/* ---- names -------------------------------------------------------------------------------------- */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool read_name(OpsReader *o, const Names *n, Text *name)
{
	Reader *rd = &o->rd;
	reader_skip(rd);
	const char *from = rd->src->text + rd->at;
	size_t len = 0, most = rd->end - rd->at;
	while (len < most && (is_letter(from[len]) || (len && (is_digit(from[len]) || from[len] == '.'))))
		len++;
	Buf b = { .arena = &rd->cx->scratch };
	buf_printf(&b, "a %s is written as a name, like %s or total", n->what, n->word);
	if (!len) {
		size_t word = reader_word(rd);
		return word
		           ? reader_error(rd, rd->at, b.s, "expected a %s, found '%.*s'", n->what, (int)min_u64(word, 40), from)
		           : reader_error(rd, rd->at, b.s, "expected a %s here", n->what);
	}
	if (len > MAX_NAME)
		return reader_error(rd, rd->at, "40 characters are the most", "this name has %zu characters", len);
	*name = (Text){ from, (uint32_t)len };
	rd->at += len;
	return true;
}

static bool read_value(OpsReader *o, Names *n, uint32_t *value)
{
	Text name = { NULL, 0 };
	uint32_t i;
	if (!read_name(o, n, &name))
		return false;
	if (dict_find(&n->dict, name, &i)) {
		*value = n->now[i];
		return true;
	}
	Arena *a = &o->rd.cx->scratch;
	const char **known = NEW(a, n->dict.count + 1, const char *);
	for (uint32_t k = 0; k < n->dict.count; k++)
		known[k] = arena_copy(a, n->dict.text[k].s, n->dict.text[k].len);
	const char *word = arena_copy(a, name.s, name.len), *near = nearest_name(word, known, n->dict.count);
	Buf b = { .arena = a };
	if (near && strlen(near) > 2)
		buf_printf(&b, "did you mean %s? A value comes from an operation above that ends in `-> %s`", near, word);
	else
		buf_printf(&b, "write above it an operation that ends in `-> %s`, such as %s -> %s", word, n->source, word);
	return reader_error(&o->rd, o->rd.at - name.len, b.s, "%s %s is read before any operation writes it", n->what,
	                    word);
}

/* A new value under this name. */
static bool define(OpsReader *o, Names *n, uint32_t *value)
{
	Text name = { NULL, 0 };
	if (!read_name(o, n, &name))
		return false;
	Arena *keep = &o->rd.cx->keep;
	uint32_t i = dict_add(&n->dict, name);
	n->now = list_more(keep, n->now, n->dict.count, &n->capacity, sizeof *n->now);
	n->name = list_more(keep, n->name, n->values, &n->value_capacity, sizeof *n->name);
	n->name[n->values] = arena_copy(keep, name.s, name.len);
	*value = n->now[i] = n->values++;
	return true;
}

/* ---- operands ----------------------------------------------------------------------------------- */

const char *cell_read(const char *p, const char *end, Cell *cell)
{
	const char *at = p;
	bool minus = at < end && *at == '-';
	at += minus;
	if (!minus && end - p > 2 && p[0] == '0' && (p[1] | 32) == 'x') {
		static const char digits[] = "0123456789abcdef";
		uint64_t n = 0;
		const char *d;
		for (at = p + 2; at < end && *at && (d = strchr(digits, *at | 32)) && n <= UINT32_MAX; at++)
			n = n * 16 + (uint64_t)(d - digits);
		cell->u = (uint32_t)n;
		return at > p + 2 && n <= UINT32_MAX ? at : NULL;
	}
	uint64_t n = 0;
	const char *first = at;
	for (; at < end && is_digit(*at) && n <= UINT32_MAX; at++)
		n = n * 10 + (uint64_t)(*at - '0');
	if (at > first && at < end && *at == 'i') {
		if (n > (minus ? (uint64_t)1 << 31 : UINT32_MAX))
			return NULL;
		cell->u = minus ? 0u - (uint32_t)n : (uint32_t)n;
		return at + 1;
	}
	return number_read(p, end, &cell->f);
}

static bool read_constant(Reader *rd, Cell *k)
{
	reader_skip(rd);
	size_t len = reader_word(rd);
	const char *from = rd->src->text + rd->at;
	if (!len || cell_read(from, from + len, k) != from + len)
		return reader_error(rd, rd->at, "a constant is written 1.5 (float), 7i (integer) or 0x3f800000 (32 bits)",
		                    "this is no constant");
	rd->at += len;
	return true;
}

static bool read_address(OpsReader *o, char what, Rec *r)
{
	static const char *const remedy[] = { "an SRAM address is written s[40] or s[b1+40]",
		                                  "a DRAM address is written d[40] or d[b1+40]",
		                                  "an indexed address is written s[40+v3] or s[b1+40+v3]" };
	bool dram = what == 'f', indexed = what == 'i' || what == 'j';
	const char *form = remedy[indexed ? 2 : dram];
	return reader_address(&o->rd, dram, form, indexed, dram ? &r->far : &r->mem) &&
	       (!indexed || read_value(o, &o->reg, what == 'i' ? &r->a : &r->b)) && reader_expect(&o->rd, "]", form);
}

static bool read_operand(OpsReader *o, char what, Rec *r)
{
	const OpInfo *op = &ops[r->op];
	Reader *rd = &o->rd;
	reader_skip(rd);
	switch (what) {
	case ',': return reader_expect(rd, ",", "operands are separated by commas");
	case '>': return reader_expect(rd, "->", "the place of the result is written after ->");
	case 'd': return op->form == FORM_MASKED ? read_value(o, &o->reg, &r->dst) : define(o, &o->reg, &r->dst);
	case 'a': return read_value(o, &o->reg, &r->a);
	case 'b': return read_value(o, &o->reg, &r->b);
	case 'c': return forms[op->form].uses & WRITES_CC ? define(o, &o->cond, &r->dst) : read_value(o, &o->cond, &r->cc);
	case 'k': return read_constant(rd, &r->k);
	case 'x': return reader_named(rd, "k", "configuration", rd->m->configurations, &r->k.u);
	default: return read_address(o, what, r);
	}
}

/* ---- lines -------------------------------------------------------------------------------------- */

static bool no_operation(Reader *rd, const char *word, size_t len)
{
	const char *names[GOPS];
	for (int op = 0; op < GOPS; op++)
		names[op] = ops[op].name;
	const char *shown = arena_copy(&rd->cx->scratch, word, len < 40 ? len : 40);
	const char *near = nearest_name(shown, names, GOPS);
	Buf b = { .arena = &rd->cx->scratch };
	if (near) {
		buf_printf(&b, "did you mean %s? Its form: ", near);
		op_example(op_find(near, strlen(near)), &b);
	} else
		buf_puts(&b, "microprop gf11 ops lists them; a line is one operation, like fadd v0, v1 -> v2");
	return reader_error(rd, rd->at, b.s, "there is no operation '%s'", shown);
}

static bool check_machine(Reader *rd, size_t at, int op)
{
	int form = ops[op].form;
	bool lacks = rd->m->fixed_address == NO_INDEX ? forms[form].access[0].indexed
	                                              : rd->m->fixed_address == NO_PUT && form == FORM_PUT;
	return !lacks || reader_error(rd, at, "use a machine file with fixed-address 0",
	                              "%s needs an address of each processor's own, which machine %s does not have",
	                              ops[op].name, rd->m->name ? rd->m->name : "?");
}

/* The operation from here to the end of the line. */
static bool read_operation(OpsReader *o)
{
	Reader *rd = &o->rd;
	reader_skip(rd);
	size_t len = reader_word(rd), start = rd->at;
	const char *word = rd->src->text + rd->at;
	int op = op_find(word, len);
	if (op < 0)
		return no_operation(rd, word, len);
	if (!check_machine(rd, start, op))
		return false;
	Rec r = { .op = (uint8_t)op };
	rd->at += len;
	for (const char *l = op_syntax[ops[op].form]; *l; l++)
		if (!read_operand(o, *l, &r))
			return false;
	reader_skip(rd);
	if (rd->at < rd->end) {
		Buf b = { .arena = &rd->cx->scratch };
		buf_puts(&b, "its form: ");
		op_example(op, &b);
		return reader_error(rd, rd->at, b.s, "%s needs nothing more", ops[op].name);
	}
	Code *c = o->code;
	if (c->recs == MAX_RECS)
		fail_at(rd->cx, (Loc){ rd->src, start }, "cut it into several routines", "there are more than %d operations",
		        MAX_RECS);
	c->rec = list_more(&rd->cx->keep, c->rec, c->recs, &o->capacity, sizeof *c->rec);
	c->rec[c->recs++] = r;
	return true;
}

static bool read_limit(OpsReader *o)
{
	static const char remedy[] = "write limit b1 64: indexed accesses under b1 stay in its first 64 words";
	Reader *rd = &o->rd;
	uint32_t base = 0, words = 0;
	reader_skip(rd);
	if (!reader_expect(rd, "b", remedy) || !reader_number(rd, "base", (uint64_t)rd->m->relocations, &base))
		return false;
	reader_skip(rd);
	if (!reader_number(rd, "limit", (uint64_t)rd->m->sram + 1, &words))
		return false;
	if (!o->code->index_limit)
		o->code->index_limit = NEW(&rd->cx->keep, (size_t)rd->m->relocations, uint32_t);
	o->code->index_limit[base] = words;
	reader_end(rd);
	return true;
}

static bool is_word(Reader *rd, const char *word)
{
	size_t len = strlen(word);
	if (reader_word(rd) != len || memcmp(rd->src->text + rd->at, word, len) != 0)
		return false;
	rd->at += len;
	return true;
}

static void read_routine_name(OpsReader *o)
{
	Reader *rd = &o->rd;
	reader_skip(rd);
	if (rd->at == rd->end)
		fail_at(rd->cx, (Loc){ rd->src, rd->at }, "write it after the word routine", "the routine has no name");
	o->code->name = arena_copy(&rd->cx->keep, rd->src->text + rd->at, rd->end - rd->at);
}

/* A line that is no operation; false: it is one. */
static bool read_word(OpsReader *o)
{
	Reader *rd = &o->rd;
	if (is_word(rd, "routine"))
		read_routine_name(o);
	else if (is_word(rd, "update"))
		o->code->update = true, reader_end(rd);
	else if (is_word(rd, "overlap"))
		o->code->bases_overlap = true, reader_end(rd);
	else if (is_word(rd, "limit"))
		read_limit(o);
	else
		return false;
	return true;
}

/* ---- listings ----------------------------------------------------------------------------------- */

/* Lines `routine` and `lines`, or words of microcode. */
static bool is_listing(const Src *src)
{
	Reader rd = { .src = src };
	while (reader_line(&rd)) {
		if (is_word(&rd, "lines") || memchr(src->text + rd.at, '|', rd.end - rd.at))
			return true;
		if (!is_word(&rd, "routine") && !is_word(&rd, "update"))
			return false;
	}
	return false;
}

typedef struct Comment { /* one recorded operation: its number, where its text begins and ends */
	uint32_t number;
	size_t at, end;
} Comment;
typedef struct Comments {
	Comment *comment;
	uint32_t count, capacity;
} Comments;

/* Number in parentheses at the end of a column; NOT_RECORDED: none. */
static uint32_t column_number(const char *from, const char *end)
{
	while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	const char *open = end;
	while (open > from && open[-1] != '(' && open[-1] != '|')
		open--;
	if (open == from || open[-1] != '(' || end[-1] != ')')
		return NOT_RECORDED;
	uint64_t n = 0;
	for (; open < end - 1; open++)
		n = is_digit(*open) && n < UINT32_MAX ? n * 10 + (uint64_t)(*open - '0') : NOT_RECORDED;
	return n < NOT_RECORDED ? (uint32_t)n : NOT_RECORDED;
}

/* The comment of a line has its operations in the order of the columns, `;` between them, `spill` for those that were
 * not recorded. */
static void comments_of_line(Reader *rd, size_t hash, size_t end, Comments *c)
{
	const char *text = rd->src->text;
	size_t at = hash + 1, column = rd->at;
	for (int unit = 0; unit < UNITS; unit++) {
		const char *bar = memchr(text + column, '|', rd->end - column);
		if (!bar)
			break;
		column = (size_t)(bar - text) + 1;
		const char *next = memchr(text + column, '|', rd->end - column);
		size_t stop = next ? (size_t)(next - text) : rd->end, first = column;
		while (first < stop && (text[first] == ' ' || text[first] == '\t'))
			first++;
		column = next ? stop : rd->end;
		if (first == stop)
			continue;
		if (at > end)
			fail_at(rd->cx, (Loc){ rd->src, first }, "write the operation as recorded after #, or leave the column out",
			        "the comment of this line does not have this operation");
		const char *semicolon = memchr(text + at, ';', end - at);
		size_t item_end = semicolon ? (size_t)(semicolon - text) : end;
		uint32_t number = column_number(text + first, text + stop);
		if (number != NOT_RECORDED) {
			c->comment = list_more(&rd->cx->scratch, c->comment, c->count, &c->capacity, sizeof *c->comment);
			c->comment[c->count++] = (Comment){ number, at, item_end };
		}
		at = item_end + 1;
	}
}

static int comment_order(const void *a, const void *b)
{
	const Comment *x = a, *y = b;
	return x->number < y->number ? -1 : x->number > y->number ? 1 : x->at < y->at ? -1 : x->at > y->at;
}

/* The operations in program order: by their number, since the scheduler has changed their order. */
static void read_listing(OpsReader *o)
{
	Reader *rd = &o->rd;
	const char *text = rd->src->text;
	Comments c = { 0 };
	while (reader_line(rd)) {
		const char *newline = memchr(text + rd->at, '\n', rd->src->len - rd->at);
		size_t stop = newline ? (size_t)(newline - text) : rd->src->len;
		const char *hash = memchr(text + rd->at, '#', stop - rd->at);
		if (is_word(rd, "routine"))
			read_routine_name(o);
		else if (is_word(rd, "update"))
			o->code->update = true;
		else if (is_digit(reader_peek(rd)) && hash)
			comments_of_line(rd, (size_t)(hash - text), stop, &c);
	}
	if (!c.count)
		fail_at(
			rd->cx, (Loc){ rd->src, 0 },
			"take a listing that gf11 microcode ROUTINE or gf11 schedule has printed, or write operations, one a line",
			"no line of this microcode has its operation as recorded in a comment");
	qsort(c.comment, c.count, sizeof *c.comment, comment_order);
	for (uint32_t i = 0; i < c.count; i++) {
		if (c.comment[i].number != i)
			fail_at(rd->cx, (Loc){ rd->src, c.comment[i].at }, "take the whole listing",
			        c.comment[i].number < i ? "recorded operation %u is here twice"
			                                : "recorded operation %u is missing",
			        c.comment[i].number < i ? c.comment[i].number : i);
		rd->at = c.comment[i].at;
		rd->end = c.comment[i].end;
		while (rd->end > rd->at && strchr(" \t\r", text[rd->end - 1]))
			rd->end--;
		read_operation(o);
	}
}

/* ---- the whole text ----------------------------------------------------------------------------- */

bool operations_are(const Src *src)
{
	size_t len = strlen(src->name);
	if (len > 4 && strcmp(src->name + len - 4, ".ops") == 0)
		return true;
	Reader rd = { .src = src };
	while (reader_line(&rd)) {
		if (is_word(&rd, "routine") || is_word(&rd, "update"))
			continue;
		return op_find(src->text + rd.at, reader_word(&rd)) >= 0 || is_word(&rd, "limit") || is_word(&rd, "overlap");
	}
	return false;
}

/* Name of the file without folders and ending. */
static const char *default_name(Ctx *cx, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	size_t len = dot && dot > name ? (size_t)(dot - name) : strlen(name), i = 0;
	while (i < len && (is_letter(name[i]) || is_digit(name[i]) || name[i] == '-' || name[i] == '.'))
		i++;
	return i < len || !len || strcmp(name, "-") == 0 ? "unnamed" : arena_copy(&cx->keep, name, len);
}

Code *operations_parse(Ctx *cx, const Machine *m, const Src *src)
{
	src_check_text(cx, src);
	OpsReader o = {
		.rd = { .cx = cx, .m = m, .src = src, .next = src_text_start(src) },
		.code = NEW(&cx->keep, 1, Code),
		.reg = { .what = "register", .word = "v0", .source = "load s[100]", .dict = { .arena = &cx->scratch } },
		.cond = { .what = "condition", .word = "w0", .source = "flt.lt v0, v1", .dict = { .arena = &cx->scratch } }
	};
	o.code->name = default_name(cx, src->name);
	if (is_listing(src))
		read_listing(&o);
	else
		while (reader_line(&o.rd))
			if (!read_word(&o))
				read_operation(&o);
	check_errors(cx);
	if (!o.code->recs)
		fail_at(cx, (Loc){ src, src->len }, "write one a line, like fadd v0, v1 -> v2; microprop gf11 ops lists them",
		        "there is no operation in this text");
	o.code->regs = o.reg.values;
	o.code->conds = o.cond.values;
	o.code->reg_name = o.reg.name;
	o.code->cond_name = o.cond.name;
	return o.code;
}

void operations_print(const Machine *m, const Code *code, Buf *out)
{
	buf_printf(out, "routine %s\n%s%s", code->name, code->update ? "update\n" : "",
	           code->bases_overlap ? "overlap\n" : "");
	for (uint32_t base = 0; code->index_limit && base < m->relocations; base++)
		if (code->index_limit[base])
			buf_printf(out, "limit b%u %u\n", base, code->index_limit[base]);
	for (uint32_t i = 0; i < code->recs; i++) {
		rec_print(code, i, out);
		buf_puts(out, "\n");
	}
}

void op_example(int op, Buf *out)
{
	static const Operands o = { .reg = 'v', .cond = 'w', .dst = 2, .b = 1, .mem = { 0, 100 }, .far = { 0, 4000 } };
	if (ops[op].form == FORM_IMM)
		buf_printf(out, "%s 1.5 -> v2", ops[op].name);
	else
		operation_print(op, &o, out);
}
