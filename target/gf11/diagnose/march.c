/* SPDX-License-Identifier: MIT */
/* March tests of memories and registers: every word in use is written with a value and its complement, and read
 * back. In: ranges of memory in use, registers in use, processors. Out: which of them have a bad bit.
 *
 *   word i of a memory <- (first + i * STEP) ^ mask      STEP is odd: all words differ
 *
 * Processors run the test themselves. `first` advances from call to call in a processor's own word, so that one
 * routine covers all of memory; in the read pass they OR all differing bits and add up the words read. The host
 * knows the expected sum, so a processor that always returns zero is detected.
 *
 * The four work words are in SRAM, outside the range under test. Registers are tested through SRAM: that routine is
 * written line by line, since the scheduler would choose registers itself. */
#include <string.h>

#include "gf11_diagnose.h"

enum { NEAR = 1, FAR, WORK }; /* relocation registers */
enum { WORK_FIRST, WORK_MASK, WORK_DIFFERENT, WORK_SUM, WORK_WORDS };
enum { CHUNK = 256, TREES = 8 }; /* words per call; independent sums */
static const uint32_t STEP = 0x9E3779B1u;

typedef struct Marcher {
	Ctx *cx;
	March *t;
	Controller *c;
	uint32_t chunk; /* a multiple of the banks of DRAM */
} Marcher;

/* ---- routines ---- */

static Addr work(uint32_t word) { return (Addr){ WORK, word }; }

static uint32_t march_load(Marcher *k, Code *code) { return controller_load(k->c, test_routine(k->cx, k->t->m, code)); }

typedef struct Pattern {
	Reg first, mask;
} Pattern;

static Pattern pattern_open(Gen *g)
{
	Reg first = g_load(g, work(WORK_FIRST));
	return (Pattern){ first, g_load(g, work(WORK_MASK)) };
}

static Reg pattern_word(Gen *g, Pattern p, uint32_t i)
{
	Reg at = g_op(g, GOP_IADD, p.first, g_const_bits(g, i * STEP));
	return g_op(g, GOP_XOR, at, p.mask);
}

static void pattern_close(Gen *g, Pattern p, uint32_t words)
{
	g_store(g, work(WORK_FIRST), g_op(g, GOP_IADD, p.first, g_const_bits(g, words * STEP)));
}

static uint32_t load_fill(Marcher *k, uint32_t words, bool far)
{
	Gen *g = gen_record(k->cx, k->t->m, "march fill");
	Pattern p = pattern_open(g);
	for (uint32_t i = 0; i < words; i++) {
		g_store(g, (Addr){ NEAR, i }, pattern_word(g, p, i));
		if (far)
			g_flush(g, (Addr){ FAR, i }, (Addr){ NEAR, i });
	}
	pattern_close(g, p, words);
	return march_load(k, gen_end(g));
}

static uint32_t load_look(Marcher *k, uint32_t words, bool far)
{
	Gen *g = gen_record(k->cx, k->t->m, "march look");
	Pattern p = pattern_open(g);
	Reg different[TREES], sum[TREES];
	for (uint32_t i = 0; i < words; i++) {
		if (far)
			g_fetch(g, (Addr){ NEAR, i }, (Addr){ FAR, i });
		Reg word = g_load(g, (Addr){ NEAR, i });
		Reg differs = g_op(g, GOP_XOR, word, pattern_word(g, p, i));
		different[i % TREES] = i < TREES ? differs : g_op(g, GOP_OR, different[i % TREES], differs);
		sum[i % TREES] = i < TREES ? word : g_op(g, GOP_IADD, sum[i % TREES], word);
	}
	Reg all = g_load(g, work(WORK_DIFFERENT)), total = g_load(g, work(WORK_SUM));
	for (uint32_t i = 0; i < TREES && i < words; i++) {
		all = g_op(g, GOP_OR, all, different[i]);
		total = g_op(g, GOP_IADD, total, sum[i]);
	}
	g_store(g, work(WORK_DIFFERENT), all);
	g_store(g, work(WORK_SUM), total);
	pattern_close(g, p, words);
	return march_load(k, gen_end(g));
}

/* Word i of the pattern to the i-th register in use, then all of them to SRAM. */
static uint32_t load_registers(Marcher *k, uint32_t words, uint32_t mask)
{
	const Machine *m = k->t->m;
	uint32_t wait = (uint32_t)m->alu_latency, last = words * (uint32_t)m->alu_interval + wait;
	Routine *r = NEW(&k->cx->keep, 1, Routine);
	r->name = "march registers";
	r->lines = last + words * (uint32_t)m->sram_interval;
	r->line = NEW(&k->cx->keep, r->lines, Line);
	for (uint32_t i = 0; i < r->lines; i++)
		for (int unit = 0; unit < UNITS; unit++)
			r->line[i].slot[unit] = (Micro){ .op = GOP_NONE };
	for (uint32_t i = 0, reg = 0; i < words; i++, reg++) {
		while (!k->t->reg[reg])
			reg++;
		r->line[i * (uint32_t)m->alu_interval].slot[UNIT_ALU] =
			(Micro){ .op = GOP_CONST, .dst = (uint16_t)reg, .k = { .u = i * STEP ^ mask }, .rec = UINT32_MAX };
		r->line[last + i * (uint32_t)m->sram_interval].slot[UNIT_PORT] =
			(Micro){ .op = GOP_STORE, .a = (uint16_t)reg, .mem = { NEAR, i }, .rec = UINT32_MAX };
	}
	return controller_load(k->c, test_checked(k->cx, m, r));
}

/* ---- marching ---- */

static void start(Marcher *k, uint32_t at, uint32_t mask, uint32_t words)
{
	const Cell word[WORK_WORDS] = { [WORK_MASK] = { .u = mask } };
	for (uint32_t i = 0; i < k->t->candidates; i++)
		host_write(k->c, i, false, at, word, words);
}

static uint32_t expected_sum(uint32_t words, uint32_t mask)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < words; i++)
		sum += i * STEP ^ mask;
	return sum;
}

static void judge(Marcher *k, uint32_t at, uint32_t words, uint32_t mask)
{
	uint32_t sum = expected_sum(words, mask);
	for (uint32_t i = 0; i < k->t->candidates; i++) {
		Cell word[WORK_WORDS];
		host_read(k->c, i, false, at, word, WORK_WORDS);
		k->t->bad[i] |= word[WORK_DIFFERENT].u != 0 || word[WORK_SUM].u != sum || word[WORK_MASK].u != mask;
	}
}

/* Words first .. end - 1 of a memory, by calls of `whole` and one of `rest`. */
typedef struct Area {
	bool far;
	uint32_t first, end, near, work;
	uint32_t whole[2], rest[2];
} Area;

static void walk(Marcher *k, const Area *a, bool look)
{
	controller_base(k->c, WORK, a->work);
	for (uint32_t at = a->first; at < a->end; at += k->chunk) {
		controller_base(k->c, NEAR, a->far ? a->near : at);
		controller_base(k->c, FAR, a->far ? at : 0);
		controller_call(k->c, a->end - at < k->chunk ? a->rest[look] : a->whole[look]);
	}
}

static void march_area(Marcher *k, Area a)
{
	uint32_t words = a.end - a.first, rest = words % k->chunk;
	if (words >= k->chunk) {
		a.whole[0] = load_fill(k, k->chunk, a.far);
		a.whole[1] = load_look(k, k->chunk, a.far);
	}
	if (rest) {
		a.rest[0] = load_fill(k, rest, a.far);
		a.rest[1] = load_look(k, rest, a.far);
	}
	for (uint32_t pass = 0; pass < 2 && words; pass++) {
		uint32_t mask = pass ? UINT32_MAX : 0;
		start(k, a.work, mask, WORK_WORDS);
		walk(k, &a, false);
		start(k, a.work, mask, WORK_WORDS);
		walk(k, &a, true);
		judge(k, a.work, words, mask);
	}
}

static void march_registers(Marcher *k)
{
	uint32_t words = 0;
	for (uint32_t i = 0; i < k->t->m->registers; i++)
		words += k->t->reg[i];
	if (!words)
		return;
	uint32_t look = load_look(k, words, false);
	for (uint32_t pass = 0; pass < 2; pass++) {
		uint32_t mask = pass ? UINT32_MAX : 0, write = load_registers(k, words, mask);
		controller_base(k->c, NEAR, WORK_WORDS);
		controller_base(k->c, WORK, 0);
		start(k, 0, mask, WORK_WORDS);
		controller_call(k->c, write);
		controller_call(k->c, look);
		judge(k, 0, words, mask);
	}
}

static void march_body(Ctx *cx, void *arg)
{
	March *t = arg;
	const Machine *m = t->m;
	Switch *sw = switch_new(cx, m);
	Processors *p = processors_new(cx, m, sw, t->candidates, t->threads);
	Marcher k = {
		.cx = cx, .t = t, .c = controller_new(cx, p), .chunk = CHUNK / (uint32_t)m->dram_banks * (uint32_t)m->dram_banks
	};
	uint32_t sram = (uint32_t)m->sram;
	processors_map(cx, p, t->candidate);
	if (t->faults)
		faults_attach(t->faults, k.c);
	march_area(&k, (Area){ .first = 0, .end = t->sram_end, .work = sram - WORK_WORDS });
	march_area(&k, (Area){ .first = t->spill, .end = sram, .work = 0 });
	march_registers(&k);
	march_area(&k, (Area){ .far = true, .first = 0, .end = t->dram_end, .near = WORK_WORDS, .work = 0 });
	t->cycles += clock_on(t->faults, k.c);
	t->host_seconds += k.c->account.host_seconds;
}

void march_test(Ctx *cx, March *t) { with_subcontext(cx, march_body, t); }
