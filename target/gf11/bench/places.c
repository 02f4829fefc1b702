/* SPDX-License-Identifier: MIT */
/* Places of a processor's memory as text.  In: `sram:100..107@3=1.5,2`.  Out: memory, words, processors, values.
 *
 *   sram | dram | reg | cond : [bN+]FIRST[..LAST] [@PROC[..PROC]] [=VALUE,... | :float|int|hex]
 *
 * bN: from relocation register N on.  Without @: all processors. */
#include <string.h>

#include "gf11_bench.h"

enum { MAX_WORDS = 1 << 16 };

const char *const as_names[AS_KINDS] = { "float", "int", "hex" };
static const char *const memory_names[PLACES] = { "reg", "sram", "dram", "cond" };
static const char place_form[] =
	"write sram:100, sram:100..107, sram:b1+0..7, dram:4000, reg:4 or cond:0, and @3 or @0..7 for some processors";
static const char set_form[] = "write PLACE=VALUES, such as sram:100=1.5,2,3 (floats), reg:4=7i (integer), "
							   "sram:b1+0..7=0 (a range) or dram:8@3=0x3f800000 (bits, of processor 3)";
static const char show_form[] =
	"write a place, such as sram:200..207, reg:0..7@3 or cond:0, and :int or :hex behind it where words are no floats";

/* NUMBER[..LAST] below limit; the count. */
static uint32_t scan_range(Scan *s, const char *what, uint32_t limit, uint32_t *first, bool *ranged)
{
	*first = scan_index(s, what, limit, place_form);
	*ranged = scan_word(s, "..");
	if (!*ranged)
		return 1;
	Loc at = scan_here(s);
	uint32_t last = scan_index(s, what, limit, place_form);
	if (last < *first)
		fail_at(s->cx, at, "write the smaller number first", "the range ends before it begins");
	return last - *first + 1;
}

static Place scan_place(Scan *s, const Machine *m, uint32_t procs)
{
	Place p = { .procs = procs };
	const uint32_t words[PLACES] = { (uint32_t)m->registers, (uint32_t)m->sram, (uint32_t)m->dram,
		                             (uint32_t)m->conditions };
	static const char *const what[PLACES] = { "register", "word of SRAM", "word of DRAM", "condition code" };
	while (p.memory < PLACES && !scan_word(s, memory_names[p.memory]))
		p.memory++;
	if (p.memory == PLACES)
		fail_at(s->cx, scan_here(s), place_form, "here one of sram, dram, reg and cond is missing");
	scan_colon(s, place_form);
	bool memory = p.memory == IN_SRAM || p.memory == IN_DRAM;
	if (memory && scan_word(s, "b")) {
		p.base = scan_index(s, "relocation register", (uint32_t)m->relocations, place_form);
		if (!scan_word(s, "+"))
			fail_at(s->cx, scan_here(s), place_form, "here + and an offset are missing");
	}
	p.count = scan_range(s, what[p.memory], words[p.memory], &p.first, &p.ranged);
	if (scan_word(s, "@")) {
		bool ranged;
		p.procs = scan_range(s, "processor", procs, &p.proc, &ranged);
	}
	return p;
}

Place place_read(Ctx *cx, const Machine *m, uint32_t procs, const char *option, const char *spec)
{
	Scan s = scan_spec(cx, option, spec);
	Place p = scan_place(&s, m, procs);
	p.as = p.memory == PLACE_COND ? AS_INT : AS_FLOAT;
	for (int as = 0; as < AS_KINDS && scan_peek(&s) == ':'; as++) {
		Scan ahead = s;
		ahead.at++;
		if (scan_word(&ahead, as_names[as])) {
			p.as = as;
			s = ahead;
			break;
		}
	}
	scan_end(&s, show_form);
	return p;
}

Assign assign_read(Ctx *cx, const Machine *m, uint32_t procs, const char *option, const char *spec)
{
	Scan s = scan_spec(cx, option, spec);
	Assign a = { .place = scan_place(&s, m, procs) };
	if (!scan_word(&s, "="))
		fail_at(cx, scan_here(&s), set_form, "here = and values are missing");
	uint32_t capacity = 0;
	do {
		a.value = list_more(&cx->keep, a.value, a.values, &capacity, sizeof *a.value);
		const char *p = s.src->text + s.at, *end = s.src->text + s.src->len,
				   *past = cell_read(p, end, &a.value[a.values]);
		if (!past)
			fail_at(cx, scan_here(&s), set_form, "this is no value");
		s.at = (size_t)(past - s.src->text);
		if (a.place.memory == PLACE_COND)
			a.value[a.values].u = a.value[a.values].u != 0;
		if (++a.values > MAX_WORDS)
			fail_at(cx, scan_here(&s), "set them in several steps", "these are more than %d values", MAX_WORDS);
	} while (scan_word(&s, ","));
	scan_end(&s, set_form);
	if (!a.place.ranged)
		a.place.count = a.values;
	else if (a.values != 1 && a.values != a.place.count)
		fail_at(cx, scan_here(&s), "give as many values as words, or one for all of them",
		        "the place has %u words, and these are %u values", a.place.count, a.values);
	return a;
}

const bool *assigns_given(Ctx *cx, const Machine *m, const Assign *a, size_t count)
{
	bool *given = NULL;
	for (const Assign *end = a + count; a < end; a++) {
		const Place *p = &a->place;
		uint32_t skip = p->memory == PLACE_COND ? (uint32_t)m->registers : 0;
		uint32_t limit = (uint32_t)(p->memory == PLACE_COND ? m->conditions : m->registers);
		if (p->memory != IN_REG && p->memory != PLACE_COND)
			continue;
		if (!given)
			given = NEW(&cx->keep, (size_t)(m->registers + m->conditions), bool);
		for (uint32_t i = p->first; i < limit && i - p->first < p->count; i++)
			given[skip + i] = true;
	}
	return given;
}

/* ---- values in and out ---- */

uint32_t bench_address(const Workbench *b, const Place *p)
{
	const uint64_t words[PLACES] = { (uint64_t)b->m->registers, (uint64_t)b->m->sram, (uint64_t)b->m->dram,
		                             (uint64_t)b->m->conditions };
	uint64_t first = (uint64_t)p->first + (p->base ? b->k->base[p->base] : 0), end = first + p->count;
	if (end > words[p->memory]) {
		Buf remedy = { .arena = &b->cx->scratch };
		buf_printf(&remedy, "the last one is %s:%llu", memory_names[p->memory],
		           (unsigned long long)words[p->memory] - 1);
		fail(b->cx, MP_BAD_INPUT, remedy.s, "%s:%llu..%llu is not there", memory_names[p->memory],
		     (unsigned long long)first, (unsigned long long)end - 1);
	}
	return (uint32_t)first;
}

uint32_t bench_word(const Workbench *b, int memory, uint32_t address, uint32_t proc)
{
	const Processors *p = b->w->p;
	switch (memory) {
	case IN_REG: return *processors_register(p, address, proc);
	case PLACE_COND: return *processors_register(p, (uint32_t)b->m->registers + address, proc);
	default: return (memory == IN_DRAM ? p->dram : p->sram)[(size_t)address * p->lanes + proc];
	}
}

void bench_put(Workbench *b, int memory, uint32_t address, uint32_t proc, uint32_t word)
{
	if (memory == IN_REG || memory == PLACE_COND)
		*processors_register(b->w->p, address + (memory == IN_REG ? 0 : (uint32_t)b->m->registers), proc) = word;
	else
		host_write(b->k, proc, memory == IN_DRAM, address, &(Cell){ .u = word }, 1);
}

void bench_assign(Workbench *b, const Assign *a)
{
	const Place *p = &a->place;
	uint32_t first = bench_address(b, p);
	for (uint32_t proc = p->proc; proc < p->proc + p->procs; proc++)
		for (uint32_t i = 0; i < p->count; i++)
			bench_put(b, p->memory, first + i, proc, a->value[a->values == 1 ? 0 : i].u);
}

static void cell_print(Cell c, int as, Buf *out)
{
	if (as == AS_INT)
		buf_printf(out, "%d", c.i);
	else if (as == AS_HEX)
		buf_printf(out, "0x%08x", c.u);
	else
		number_put(out, c.f);
}

/* Words of a processor, eight a line, each line with the address of its first. */
static void words_print(const Workbench *b, const Place *p, uint32_t first, uint32_t proc, Buf *text)
{
	enum { A_LINE = 8 };
	for (uint32_t i = 0; i < p->count; i++) {
		if (i % A_LINE == 0)
			buf_printf(text, "%s%7u ", i ? "\n" : "", first + i);
		buf_puts(text, " ");
		cell_print((Cell){ .u = bench_word(b, p->memory, first + i, proc) }, p->as, text);
	}
	buf_puts(text, "\n");
}

static void words_json(const Workbench *b, const Place *p, uint32_t first, uint32_t proc, JsonWriter *json)
{
	jw_start(json, "values", '[');
	for (uint32_t i = 0; i < p->count; i++) {
		Cell c = { .u = bench_word(b, p->memory, first + i, proc) };
		if (p->as == AS_FLOAT)
			jw_real(json, NULL, "%.9g", (double)c.f);
		else if (p->as == AS_INT)
			jw_real(json, NULL, "%.0f", (double)c.i);
		else
			jw_count(json, NULL, c.u);
	}
	jw_end(json, ']');
	jw_start(json, "bits", '[');
	for (uint32_t i = 0; i < p->count; i++)
		jw_count(json, NULL, bench_word(b, p->memory, first + i, proc));
	jw_end(json, ']');
}

static bool words_same(const Workbench *b, const Place *p, uint32_t first, uint32_t one, uint32_t other)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (bench_word(b, p->memory, first + i, one) != bench_word(b, p->memory, first + i, other))
			return false;
	return true;
}

/* Neighbours with the same words are shown together; in text at most MOST_SHOWN of such groups. */
void bench_show(Workbench *b, const Place *p, Buf *text, JsonWriter *json)
{
	enum { MOST_SHOWN = 16 };
	uint32_t first = bench_address(b, p), end = p->proc + p->procs, shown = 0;
	jw_start(json, NULL, '{');
	jw_text(json, "place", memory_names[p->memory]);
	jw_count(json, "first", first);
	jw_count(json, "last", first + p->count - 1);
	jw_text(json, "as", as_names[p->as]);
	jw_start(json, "processors", '[');
	for (uint32_t from = p->proc, to; from < end; from = to) {
		for (to = from + 1; to < end && words_same(b, p, first, from, to);)
			to++;
		jw_start(json, NULL, '{');
		jw_count(json, "first", from);
		jw_count(json, "last", to - 1);
		words_json(b, p, first, from, json);
		jw_end(json, '}');
		if (shown++ == MOST_SHOWN)
			buf_printf(text, "... processors %u to %u differ too; write @%u..%u behind the place, or --json\n", from,
			           end - 1, from, end - 1);
		if (shown > MOST_SHOWN)
			continue;
		buf_printf(text, "%s:%u", memory_names[p->memory], first);
		if (p->count > 1)
			buf_printf(text, "..%u", first + p->count - 1);
		if (from == 0 && to == b->w->p->procs)
			buf_printf(text, to == 1 ? ", the processor\n" : ", all %u processors\n", to);
		else
			buf_printf(text, to == from + 1 ? ", processor %u\n" : ", processors %u to %u\n", from, to - 1);
		words_print(b, p, first, from, text);
	}
	jw_end(json, ']');
	jw_end(json, '}');
}
