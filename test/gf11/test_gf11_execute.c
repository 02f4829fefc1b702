/* SPDX-License-Identifier: MIT */
/* The executor: fast equals traced equals simulated, bit for bit, on hand-made routines, on random microwords and on
 * random programs, for all kernels, one thread and two; the controller's limits and accounts.  More threads, and the
 * switch: test_gf11_threads.c. */
#include "test.h"

#include "execute.h"
#include "gf11_short.h"

#if defined __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#elif defined __has_feature
#if __has_feature(address_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif
enum { PROGRAMS = SANITIZED ? 600 : 2500, MICROWORDS = SANITIZED ? 60 : 250 };
enum { PROCS = 70, SRAM = 96, DRAM = 64, REGISTERS = 128, CONDITIONS = 8, BASES = 4 };

/* Two blocks of processors, the second not full. */
static Machine small_machine(void)
{
	return (Machine){ .name = "small",
		              .processors = PROCS,
		              .registers = REGISTERS,
		              .sram = SRAM,
		              .dram = DRAM,
		              .conditions = CONDITIONS,
		              .relocations = BASES,
		              SHORT_PIPELINES,
		              .switch_ports = 81,
		              .crossbar = 9,
		              .configurations = 4,
		              .microcode = 4096,
		              .block = 2048,
		              .host_call = 100,
		              .host_word = 10 };
}

/* Knuth's generator: programs need many small numbers, and no quality. */
typedef struct Dice {
	uint64_t state;
} Dice;
static uint32_t roll(Dice *d, uint32_t n)
{
	d->state = d->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((d->state >> 32) * n >> 32);
}

/* Words as programs have them, and words at the edges: infinities, several NaN, the smallest numbers, whole numbers.
 * */
static uint32_t any_word(Dice *d)
{
	static const uint32_t edges[] = { 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7fa00000, 1,
		                              0x80000000, 0x00800000, 0x4f000000, 0xcf000000, 0x7fffffff };
	switch (roll(d, 8)) {
	case 0: return edges[roll(d, COUNT(edges))];
	case 1: return roll(d, 100);
	default: return (Cell){ .f = (float)roll(d, 1 << 24) / (1 << 22) - 2 }.u;
	}
}

/* The first words of SRAM, and all of DRAM. */
static bool same_words(const Processors *p, const Processors *q, uint32_t words)
{
	for (uint32_t w = 0; w < words; w++)
		if (memcmp(p->sram + w * p->lanes, q->sram + w * q->lanes, PROCS * sizeof *p->sram))
			return false;
	for (uint32_t w = 0; w < DRAM; w++)
		if (memcmp(p->dram + w * p->lanes, q->dram + w * q->lanes, PROCS * sizeof *p->dram))
			return false;
	return true;
}

static bool same(const Processors *p, const Processors *q) { return same_words(p, q, SRAM); }

/* A machine with its switch and three sets of processors: of one thread, of two, and those of the other opinion. */
typedef struct Bench {
	Ctx cx;
	Machine m;
	Switch *sw;
	Processors *one, *two, *other;
	uint32_t words[1024]; /* what memory is filled with */
	uint32_t *image;      /* of both memories, as they start */
} Bench;

static uint32_t first_word(const Bench *b, bool far, uint32_t w, uint32_t proc)
{
	return b->words[far ? (w * 89 + proc * 37 + 11) % 1024 : (w * 97 + proc * 31) % 1024];
}

static void fill(const Bench *b, Processors *p)
{
	memcpy(p->sram, b->image, SRAM * p->lanes * sizeof *p->sram);
	memcpy(p->dram, b->image + SRAM * p->lanes, DRAM * p->lanes * sizeof *p->dram);
}

static void bench_open(Ctx *cx, void *arg)
{
	Bench *b = arg;
	b->sw = switch_new(cx, &b->m);
	for (uint64_t k = 0; k < 4; k++) {
		uint16_t to[81];
		permutation_random(k, 81, k == 3 ? 40 : 81, to);
		switch_store(cx, b->sw, to);
	}
	b->one = processors_new(cx, &b->m, b->sw, PROCS, 1);
	b->two = processors_new(cx, &b->m, b->sw, PROCS, 2);
	b->other = processors_new(cx, &b->m, b->sw, PROCS, 1);
	Dice d = { 7 };
	for (uint32_t i = 0; i < COUNT(b->words); i++)
		b->words[i] = any_word(&d);
	uint32_t lanes = b->one->lanes;
	b->image = NEW(&cx->keep, (SRAM + DRAM) * lanes, uint32_t);
	for (uint32_t w = 0; w < SRAM + DRAM; w++)
		for (uint32_t i = 0; i < lanes; i++)
			b->image[w * lanes + i] = first_word(b, w >= SRAM, w < SRAM ? w : w - SRAM, i);
}

static int set_up(void **state)
{
	Bench *b = calloc(1, sizeof *b);
	ctx_init(&b->cx, NULL);
	b->m = small_machine();
	assert_int_equal(guarded(&b->cx, bench_open, b), MP_OK);
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	Bench *b = *state;
	ctx_free(&b->cx);
	free(b);
	return 0;
}

static void start(Bench *b)
{
	fill(b, b->one);
	fill(b, b->two);
	fill(b, b->other);
}

/* ---- hand-made routines ------------------------------------------------------------------------- */

static Routine *empty_routine(Ctx *cx, const char *name, uint32_t lines)
{
	Routine *r = NEW(&cx->keep, 1, Routine);
	*r = (Routine){ .name = name, .line = NEW(&cx->keep, lines, Line), .lines = lines };
	for (uint32_t t = 0; t < lines; t++)
		for (int unit = 0; unit < UNITS; unit++)
			r->line[t].slot[unit].op = GOP_NONE;
	return r;
}

static void put(Routine *r, uint32_t t, Micro u)
{
	assert_true(t < r->lines && r->line[t].slot[ops[u.op].unit].op == GOP_NONE);
	r->line[t].slot[ops[u.op].unit] = u;
}

/* Runs r traced on `other`, and fast in all ways; everything must agree. */
static void run_all(Bench *b, Ctx *cx, const Routine *r, const uint32_t *base)
{
	start(b);
	execute_traced(b->other, r, base, NULL, NULL);
	Prepared *q = execute_prepare(cx, b->two, r);
	char why[200];
	assert_null(execute_bad_bases(b->two, q, base, why, sizeof why));
	execute_fast(b->two, q, base);
	assert_true(same(b->two, b->other));
	for (uint32_t kernel = 0; kernel < kernel_count; kernel++) {
		if (!kernel_runs(kernel))
			continue;
		fill(b, b->one);
		execute_with(b->one, q->may_alias, q, base, kernel);
		assert_true(same(b->one, b->other));
	}
	fill(b, b->one);
	execute_with(b->one, sequence_make(flow_make(cx, b->one, r), false, 0), q, base, kernel_count - 1);
	assert_true(same(b->one, b->other));
}

static uint32_t sram_word(const Processors *p, uint32_t w, uint32_t proc) { return p->sram[w * p->lanes + proc]; }

/* A register can be read while its next value is under way: the old word is there up to the cycle before. */
static void exposed(Ctx *cx, void *arg)
{
	Bench *b = arg;
	Routine *r = empty_routine(cx, "exposed", 30);
	put(r, 0, (Micro){ .op = GOP_CONST, .dst = 1, .k.u = 11 });
	put(r, 6, (Micro){ .op = GOP_CONST, .dst = 1, .k.u = 22 });
	put(r, 10, (Micro){ .op = GOP_STORE, .a = 1, .mem = { 0, 0 } });
	put(r, 11, (Micro){ .op = GOP_STORE, .a = 1, .mem = { 0, 1 } });
	put(r, 12, (Micro){ .op = GOP_LOAD, .dst = 2, .mem = { 0, 1 } }); /* too early: the word before */
	put(r, 13, (Micro){ .op = GOP_LOAD, .dst = 3, .mem = { 0, 1 } });
	put(r, 16, (Micro){ .op = GOP_STORE, .a = 2, .mem = { 0, 2 } });
	put(r, 17, (Micro){ .op = GOP_STORE, .a = 3, .mem = { 0, 3 } });
	run_all(b, cx, r, NULL);
	assert_int_equal(sram_word(b->one, 0, 5), 11);
	assert_int_equal(sram_word(b->one, 1, 5), 22);
	assert_int_equal(sram_word(b->one, 2, 5), first_word(b, false, 1, 5));
	assert_int_equal(sram_word(b->one, 3, 5), 22);
}

/* A masked move leaves what is there when it arrives, not what was there when it was issued. */
static void masked(Ctx *cx, void *arg)
{
	Bench *b = arg;
	Routine *r = empty_routine(cx, "masked", 40);
	put(r, 0, (Micro){ .op = GOP_CONST, .dst = 1, .k.u = 1 });
	put(r, 1, (Micro){ .op = GOP_CONST, .dst = 2, .k.u = 2 });
	put(r, 6, (Micro){ .op = GOP_INT_LT, .cc = 3, .a = 2, .b = 1 });   /* false everywhere */
	put(r, 11, (Micro){ .op = GOP_IADD, .dst = 2, .a = 2, .b = 1 });   /* 3, from 16 on */
	put(r, 12, (Micro){ .op = GOP_MOVEM, .dst = 2, .cc = 3, .a = 1 }); /* arrives at 17 */
	put(r, 20, (Micro){ .op = GOP_STORE, .a = 2, .mem = { 0, 0 } });
	run_all(b, cx, r, NULL);
	assert_int_equal(sram_word(b->one, 0, 69), 3);
}

/* Words move between the memories as they are when the move starts. */
static void moves(Ctx *cx, void *arg)
{
	Bench *b = arg;
	Routine *r = empty_routine(cx, "moves", 40);
	put(r, 0, (Micro){ .op = GOP_FETCH, .mem = { 1, 0 }, .far = { 2, 5 } });
	put(r, 4, (Micro){ .op = GOP_FLUSH, .mem = { 1, 0 }, .far = { 2, 6 } }); /* before the fetched word is there */
	put(r, 8, (Micro){ .op = GOP_FLUSH, .mem = { 1, 0 }, .far = { 2, 7 } });
	uint32_t base[BASES] = { 0, 20, 8, 0 };
	run_all(b, cx, r, base);
	const Processors *p = b->one;
	assert_int_equal(p->dram[14 * p->lanes + 3], first_word(b, false, 20, 3));
	assert_int_equal(p->dram[15 * p->lanes + 3], first_word(b, true, 13, 3));
	assert_int_equal(sram_word(p, 20, 3), first_word(b, true, 13, 3));
}

/* Sums of products, interleaved as a schedule does it: one instruction each, and the same roundings as one by one. */
static void chains(Ctx *cx, void *arg)
{
	Bench *b = arg;
	enum { SUMS = 6, TERMS = 9, FIRST = 20 };
	Routine *r = empty_routine(cx, "chains", 2 * SUMS * TERMS + 60);
	for (uint32_t j = 0; j < SUMS; j++)
		put(r, j, (Micro){ .op = GOP_CONST, .dst = (uint16_t)j });
	for (uint32_t i = 0; i < TERMS; i++)
		put(r, i, (Micro){ .op = GOP_LOAD, .dst = (uint16_t)(SUMS + i), .mem = { 0, i } });
	for (uint32_t i = 0, k = 0; i < TERMS; i++)
		for (uint32_t j = 0; j < SUMS; j++, k++) {
			uint16_t w = (uint16_t)(40 + k % 8), product = (uint16_t)(60 + k % 8), sum = (uint16_t)j;
			uint32_t t = FIRST + 2 * k;
			put(r, t, (Micro){ .op = GOP_LOAD, .dst = w, .mem = { 1, TERMS + k } });
			put(r, t + 4, (Micro){ .op = GOP_FMUL, .dst = product, .a = w, .b = (uint16_t)(SUMS + i) });
			put(r, t + 9, (Micro){ .op = GOP_FADD, .dst = sum, .a = sum, .b = product });
		}
	for (uint32_t j = 0; j < SUMS; j++)
		put(r, r->lines - SUMS + j, (Micro){ .op = GOP_STORE, .a = (uint16_t)j, .mem = { 2, 80 + j } });
	run_all(b, cx, r, NULL);
	const Prepared *q = execute_prepare(cx, b->one, r);
	assert_int_equal(q->no_alias->insts, SUMS + SUMS); /* constants, sums: words are read where they are used */
	assert_int_equal(q->no_alias->terms, SUMS * TERMS);
	start(b);
	const uint32_t *sram = b->other->sram, lanes = b->other->lanes;
	for (uint32_t j = 0; j < SUMS; j++) {
		float sum = 0;
		for (uint32_t i = 0; i < TERMS; i++) {
			Cell w = { .u = sram[(TERMS + i * SUMS + j) * lanes + 9] }, x = { .u = sram[i * lanes + 9] };
			volatile float product = w.f * x.f;
			sum = sum + product;
		}
		execute_fast(b->one, q, NULL);
		Cell got = { .u = sram_word(b->one, 80 + j, 9) };
		assert_true(got.f == sum || (got.u == 0x7fc00000 && sum != sum));
	}
}

/* With relocation registers on the same words, a store through one is seen through the other. */
static void overlapping(Ctx *cx, void *arg)
{
	Bench *b = arg;
	Routine *r = empty_routine(cx, "overlapping", 60);
	put(r, 0, (Micro){ .op = GOP_LOAD, .dst = 1, .mem = { 1, 0 } });
	put(r, 1, (Micro){ .op = GOP_CONST, .dst = 2, .k.f = 3 });
	put(r, 6, (Micro){ .op = GOP_STORE, .a = 2, .mem = { 2, 0 } });
	put(r, 9, (Micro){ .op = GOP_FMUL, .dst = 3, .a = 1, .b = 2 });
	put(r, 14, (Micro){ .op = GOP_FADD, .dst = 3, .a = 3, .b = 2 });
	put(r, 20, (Micro){ .op = GOP_STORE, .a = 3, .mem = { 3, 0 } });
	for (uint32_t k = 0; k < 8; k++)
		run_all(b, cx, r, (uint32_t[BASES]){ 0, 10 + (k & 1), 10 + (k >> 1 & 1), 10 + (k >> 2 & 1) });
	start(b);
	execute_fast(b->one, execute_prepare(cx, b->one, r), (uint32_t[BASES]){ 0, 10, 10, 11 });
	Cell loaded = { .u = first_word(b, false, 10, 0) }, got = { .u = sram_word(b->one, 11, 0) };
	assert_true(got.f == loaded.f * 3 + 3 || loaded.f != loaded.f);
}

static void count_event(void *user, const TraceEvent *e)
{
	uint64_t *sum = user;
	sum[0]++;
	sum[1] += e->cycle * (e->unit + 1);
	sum[2] += e->done;
}

/* Every issue is called back once, with its cycle, unit and the cycle its result is there. */
static void traced(Ctx *cx, void *arg)
{
	Bench *b = arg;
	Routine *r = empty_routine(cx, "traced", 12);
	put(r, 0, (Micro){ .op = GOP_LOAD, .dst = 1, .mem = { 0, 0 } });
	put(r, 3, (Micro){ .op = GOP_FNEG, .dst = 2, .a = 1 });
	put(r, 11, (Micro){ .op = GOP_XFER, .dst = 3, .a = 2, .k.u = 0 });
	uint64_t sum[3] = { 0 };
	execute_traced(b->one, r, NULL, count_event, sum);
	assert_int_equal(sum[0], 3);
	assert_int_equal(sum[1], 3 * 1 + 11 * (UNIT_SWITCH + 1));
	assert_int_equal(sum[2], 3 + 8 + 17);
	assert_int_equal(routine_cycles(&b->m, r), 17);
}

static void hand_made(void **state)
{
	static void (*const bodies[])(Ctx *, void *) = { exposed, masked, moves, chains, overlapping, traced };
	for (size_t i = 0; i < COUNT(bodies); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		assert_int_equal(guarded(&cx, bodies[i], *state), MP_OK);
		ctx_free(&cx);
	}
}

/* ---- refusals ----------------------------------------------------------------------------------- */

static void refuse_one(Ctx *cx, void *arg)
{
	Bench *b = *(void **)arg;
	const Micro *u = ((void **)arg)[1];
	Routine *r = empty_routine(cx, "bad", 4);
	put(r, 2, *u);
	execute_prepare(cx, b->one, r);
}

static void refusals(void **state)
{
	static const struct {
		Micro micro;
		const char *says;
	} bad[] = {
		{ { .op = GOP_CONST, .dst = REGISTERS }, "register 128" },
		{ { .op = GOP_FADD, .dst = 1, .a = 5, .b = 5 }, "reads register 5, which is undefined here" },
		{ { .op = GOP_MOVEM, .cc = CONDITIONS }, "condition code 8" },
		{ { .op = GOP_LOAD, .mem = { BASES, 0 } }, "relocation register 4" },
		{ { .op = GOP_LOAD, .mem = { 0, SRAM } }, "SRAM word 96" },
		{ { .op = GOP_FETCH, .far = { 0, DRAM } }, "DRAM word 64" },
		{ { .op = GOP_XFER, .k.u = 4 }, "switch configuration 4" },
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Micro u = bad[i].micro;
		void *arg[] = { *state, &u };
		assert_int_equal(guarded(&cx, refuse_one, arg), MP_BAD_INPUT);
		assert_non_null(strstr(ctx_messages(&cx), bad[i].says));
		ctx_free(&cx);
	}
}

/* ---- random microwords -------------------------------------------------------------------------- */

enum { SOME = 12, WORDS = 6, READY = 24, RANDOM = 60 }; /* registers, words in use; when all are set; lines */

static Addr any_address(Dice *d) { return (Addr){ (uint16_t)roll(d, BASES), roll(d, WORDS) }; }

static Micro any_micro(Dice *d, uint32_t unit)
{
	uint8_t op;
	do
		op = (uint8_t)roll(d, GOPS);
	while (ops[op].unit != unit);
	if (unit == UNIT_ALU && roll(d, 2))
		op = roll(d, 2) ? GOP_FMUL : GOP_FADD;
	return (Micro){ .op = op,
		            .cc = (uint8_t)roll(d, 3),
		            .dst = (uint16_t)roll(d, SOME),
		            .a = (uint16_t)roll(d, SOME),
		            .b = (uint16_t)roll(d, SOME),
		            .mem = any_address(d),
		            .far = any_address(d),
		            .k.u = unit == UNIT_SWITCH ? roll(d, 4) : any_word(d) };
}

/* Anything issued at any time: registers rewritten while read, words of memory under several names. */
static Routine *any_routine(Ctx *cx, Dice *d)
{
	Routine *r = empty_routine(cx, "random", READY + RANDOM + 20 + SOME);
	for (uint32_t i = 0; i < SOME; i++)
		put(r, i, (Micro){ .op = GOP_LOAD, .dst = (uint16_t)i, .mem = { 0, i } });
	for (uint32_t i = 0; i < 3; i++)
		put(r, SOME + 3 + i, (Micro){ .op = GOP_FLT_LT, .cc = (uint8_t)i, .a = (uint16_t)i, .b = 7 });
	bool plain = roll(d, 2);
	for (uint32_t t = READY; t < READY + RANDOM; t++)
		for (uint32_t unit = 0; unit < UNITS; unit++) {
			if (roll(d, unit == UNIT_ALU ? 2 : 5))
				continue;
			Micro u = any_micro(d, unit);
			if (!plain || (u.op != GOP_PUT && u.op != GOP_XFER))
				put(r, t, u);
		}
	for (uint32_t i = 0; i < SOME; i++)
		put(r, r->lines - SOME + i, (Micro){ .op = GOP_STORE, .a = (uint16_t)i, .mem = { 0, 64 + i } });
	return r;
}

static void random_microwords_body(Ctx *cx, void *arg)
{
	Bench *b = ((void **)arg)[0];
	Dice *d = ((void **)arg)[1];
	Routine *r = any_routine(cx, d);
	uint32_t base[BASES] = { 0, roll(d, 3) * 4, roll(d, 3) * 4, roll(d, 3) * 4 };
	run_all(b, cx, r, base);
}

static void random_microwords(void **state)
{
	for (uint64_t seed = 0; seed < MICROWORDS; seed++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Dice d = { seed };
		assert_int_equal(guarded(&cx, random_microwords_body, (void *[]){ *state, &d }), MP_OK);
		ctx_free(&cx);
	}
}

/* ---- random programs: recorded and scheduled, simulated ----------------------------------------- */

typedef struct Maker {
	Gen *g;
	Dice d;
	Reg reg[128];
	uint32_t regs;
	Cond cond[CONDITIONS];
	uint32_t conds;
} Maker;

static Reg any_reg(Maker *k) { return k->reg[roll(&k->d, k->regs)]; }

static void keep(Maker *k, Reg r) { k->reg[k->regs++] = r; }

static void make_alu(Maker *k)
{
	uint8_t op;
	do
		op = (uint8_t)roll(&k->d, GOPS);
	while (ops[op].form != FORM_RR && ops[op].form != FORM_R);
	keep(k, g_op(k->g, op, any_reg(k), any_reg(k)));
}

static void make_sum(Maker *k)
{
	keep(k, g_fadd(k->g, any_reg(k), g_fmul(k->g, any_reg(k), g_load(k->g, any_address(&k->d)))));
}

static void make_condition(Maker *k)
{
	static const uint8_t compares[] = { GOP_FLT_LT, GOP_FLT_LE, GOP_FLT_EQ, GOP_INT_LT, GOP_INT_EQ };
	if (k->conds == 0 || (k->conds < CONDITIONS && roll(&k->d, 2)))
		k->cond[k->conds++] = g_compare(k->g, compares[roll(&k->d, COUNT(compares))], any_reg(k), any_reg(k));
	Cond c = k->cond[roll(&k->d, k->conds)];
	if (roll(&k->d, 2))
		keep(k, g_select(k->g, c, any_reg(k), any_reg(k)));
	else
		g_move_masked(k->g, any_reg(k), c, any_reg(k));
}

/* Indices stay inside the words of their base. */
static void make_indexed(Maker *k)
{
	Reg index = g_op(k->g, GOP_AND, any_reg(k), g_const_bits(k->g, 3));
	bool read = roll(&k->d, 2);
	Addr table = { (uint16_t)roll(&k->d, BASES), 0 };
	g_index_limit(k->g, table.base, 4);
	if (read)
		keep(k, g_lookup(k->g, table, index));
	else
		g_put(k->g, table, index, any_reg(k));
}

static void make_memory(Maker *k)
{
	switch (roll(&k->d, 5)) {
	case 0: keep(k, g_load(k->g, any_address(&k->d))); break;
	case 1: g_store(k->g, any_address(&k->d), any_reg(k)); break;
	case 2: g_fetch(k->g, any_address(&k->d), any_address(&k->d)); break;
	case 3: g_flush(k->g, any_address(&k->d), any_address(&k->d)); break;
	default: make_indexed(k);
	}
}

static void make_program(Gen *g, uint64_t seed)
{
	static void (*const steps[])(Maker *) = { make_alu, make_sum, make_sum, make_condition, make_memory, make_memory };
	Maker k = { .g = g, .d = { seed } };
	keep(&k, g_load(g, any_address(&k.d)));
	keep(&k, g_const(g, 1.5f));
	for (uint32_t i = roll(&k.d, 20) + 3; i > 0; i--) {
		if (roll(&k.d, 8) == 0)
			keep(&k, g_xfer(g, roll(&k.d, 4), any_reg(&k)));
		steps[roll(&k.d, COUNT(steps))](&k);
	}
	for (uint32_t i = 0; i < k.regs; i += 3)
		g_store(g, (Addr){ 0, 10 + i % 10 }, k.reg[i]);
}

/* One operation after the other, each when the one before is done: right by construction. */
static Routine *schedule_slowly(Ctx *cx, const Machine *m, const Code *code)
{
	Routine *r = empty_routine(cx, "slow", code->recs * 9 + 1);
	uint32_t t = 0;
	for (uint32_t i = 0; i < code->recs; i++) {
		const Rec *rec = &code->rec[i];
		Micro u = { .op = rec->op,
			        .cc = (uint8_t)rec->cc,
			        .dst = (uint16_t)rec->dst,
			        .a = (uint16_t)rec->a,
			        .b = (uint16_t)rec->b,
			        .mem = rec->mem,
			        .far = rec->far,
			        .k = rec->k };
		if (ops[rec->op].form == FORM_CMP)
			u.cc = (uint8_t)rec->dst;
		put(r, t, u);
		t += (uint32_t)op_latency(m, rec->op);
	}
	r->lines = t + 1;
	return r;
}

typedef struct Random {
	Bench *b;
	uint64_t seed;
	uint32_t spilled;
} Random;

/* One of five with few registers, one of thirty searched for longer. */
static Routine *schedule_somehow(Ctx *cx, Machine *m, Code *code, uint64_t seed)
{
	if (seed % 5 == 0)
		m->registers = 9 + (int64_t)(seed / 5 % 4);
	const ScheduleOptions o = { .level = seed % 30 == 1, .seconds = 0.005 };
	Routine *r = schedule(cx, m, code, &o);
	const char *fault = check_routine(cx, m, r);
	if (fault)
		print_error("program %d: %s\n", (int)seed, fault);
	assert_null(fault);
	return r;
}

static void random_program_body(Ctx *cx, void *arg)
{
	Random *random = arg;
	Bench *b = random->b;
	uint64_t seed = random->seed;
	static const uint32_t base[BASES] = { 0, 24, 40, 56 };
	Gen *g = gen_record(cx, &b->m, "random");
	make_program(g, seed);
	Code *code = gen_end(g);
	start(b);
	g = gen_simulate(cx, b->other, base);
	make_program(g, seed);
	gen_end(g);
	Machine m = b->m;
	Routine *slow = schedule_slowly(cx, &m, code), *r = schedule_somehow(cx, &m, code, seed);
	execute_fast(b->one, execute_prepare(cx, b->one, slow), base);
	assert_true(same(b->one, b->other));
	uint32_t words = routine_spill_low(&m, r);
	assert_true((words < SRAM) == (r->report.spills > 0));
	random->spilled += words < SRAM;
	Prepared *q = execute_prepare(cx, b->two, r);
	execute_fast(b->two, q, base);
	assert_true(same_words(b->two, b->other, words));
	fill(b, b->one);
	execute_fast(b->one, q, base);
	assert_true(same_words(b->one, b->other, words));
	fill(b, b->one);
	execute_traced(b->one, r, base, NULL, NULL);
	assert_true(same_words(b->one, b->other, words));
}

static void random_programs(void **state)
{
	Random r = { .b = *state };
	for (; r.seed < PROGRAMS; r.seed++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		assert_int_equal(guarded(&cx, random_program_body, &r), MP_OK);
		ctx_free(&cx);
	}
	assert_true(r.spilled > PROGRAMS / 20);
}

/* ---- spilled words and relocated ones ----------------------------------------------------------- */

enum { WIDE = 16 };

/* Many words at once, stored over what they were made of. */
static void make_wide(Gen *g)
{
	Reg r[WIDE], sum = g_const_bits(g, 1);
	for (uint32_t i = 0; i < WIDE; i++)
		r[i] = g_load(g, (Addr){ 1, i });
	for (uint32_t i = 0; i < WIDE; i++)
		sum = g_op(g, GOP_IADD, g_op(g, GOP_XOR, sum, r[i]), r[(7 * i + 3) % WIDE]);
	for (uint32_t i = 0; i < WIDE; i++)
		g_store(g, (Addr){ 1, i }, g_op(g, GOP_IADD, sum, r[i]));
}

static Routine *wide_routine(Ctx *cx, const Bench *b, bool table)
{
	Machine m = b->m;
	m.registers = 12;
	Gen *g = gen_record(cx, &m, "wide");
	if (table) {
		g_index_limit(g, 2, 20);
		g_store(g, (Addr){ 2, 0 }, g_lookup(g, (Addr){ 2, 1 }, g_const_bits(g, 2)));
	}
	make_wide(g);
	Routine *r = schedule(cx, &m, gen_end(g), &(ScheduleOptions){ 0, 0 });
	assert_null(check_routine(cx, &m, r));
	assert_true(r->report.spills > 0);
	return r;
}

/* At any address of the data: correct, or refused. */
static void spilling_body(Ctx *cx, void *arg)
{
	Bench *b = arg;
	Routine *r = wide_routine(cx, b, false);
	Prepared *q = execute_prepare(cx, b->two, r);
	uint32_t low = routine_spill_low(&b->m, r), ran = 0;
	assert_true(low > SRAM / 2 && low < SRAM);
	for (uint32_t at = 0; at + WIDE <= SRAM; at++) {
		uint32_t base[BASES] = { 0, at };
		char why[200];
		const char *refused = execute_bad_bases(b->two, q, base, why, sizeof why);
		assert_true((refused != NULL) == (at + WIDE > low));
		if (refused)
			continue;
		start(b);
		make_wide(gen_simulate(cx, b->other, base));
		execute_fast(b->two, q, base);
		assert_true(same_words(b->two, b->other, low));
		ran++;
	}
	assert_true(ran > 0);
}

static void spilling(void **state)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, spilling_body, *state), MP_OK);
	ctx_free(&cx);
}

/* ---- controller and host ------------------------------------------------------------------------ */

static Routine *doubling(Ctx *cx, uint32_t lines)
{
	Routine *r = empty_routine(cx, "doubling", lines);
	put(r, 0, (Micro){ .op = GOP_LOAD, .dst = 1, .mem = { 1, 0 } });
	put(r, 3, (Micro){ .op = GOP_IADD, .dst = 1, .a = 1, .b = 1 });
	put(r, 8, (Micro){ .op = GOP_STORE, .a = 1, .mem = { 1, 0 } });
	return r;
}

static void control_body(Ctx *cx, void *arg)
{
	Bench *b = arg;
	Controller *c = controller_new(cx, b->one);
	Routine *r = doubling(cx, 9);
	uint32_t n = controller_load(c, r);
	assert_int_equal(controller_load(c, r), n);
	assert_int_equal(c->lines, 9);
	Cell w[3] = { { .u = 1 }, { .u = 2 }, { .u = 3 } };
	host_write(c, 69, false, 40, w, 3);
	for (uint32_t i = 0; i < 4; i++) {
		controller_base(c, 1, 40 + i % 3);
		c->traced = i % 2;
		controller_call(c, n);
	}
	host_read(c, 69, false, 40, w, 3);
	assert_int_equal(w[0].u, 4);
	assert_int_equal(w[1].u, 4);
	assert_int_equal(w[2].u, 6);
	assert_int_equal(c->account.calls, 4);
	assert_int_equal(c->account.cycles, 40);
	assert_int_equal(c->account.call_cycles, 400);
	assert_int_equal(c->account.host_words, 6);
	assert_true(c->account.host_seconds == 2 * (1e-6 * 10 * 3));
	Buf out = { .arena = &cx->scratch };
	account_print(c, 0.5, &out);
	assert_non_null(strstr(out.s, "40 in 4 calls, and 400 for calling"));
	assert_non_null(strstr(out.s, "processors            70"));
	assert_non_null(strstr(out.s, "simulated / real      4.4e-05"));
}

static void control(void **state)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, control_body, *state), MP_OK);
	ctx_free(&cx);
}

static void long_block(Ctx *cx, void *arg)
{
	controller_load(controller_new(cx, ((Bench *)arg)->one), doubling(cx, 2049));
}
static void much_code(Ctx *cx, void *arg)
{
	Controller *c = controller_new(cx, ((Bench *)arg)->one);
	for (int i = 0; i < 3; i++)
		controller_load(c, doubling(cx, 2000));
}
static void base_zero(Ctx *cx, void *arg) { controller_base(controller_new(cx, ((Bench *)arg)->one), 0, 5); }
static void base_outside(Ctx *cx, void *arg)
{
	Controller *c = controller_new(cx, ((Bench *)arg)->one);
	uint32_t n = controller_load(c, doubling(cx, 9));
	controller_base(c, 1, SRAM);
	controller_call(c, n);
}
static void base_bank(Ctx *cx, void *arg)
{
	Controller *c = controller_new(cx, ((Bench *)arg)->one);
	Routine *r = empty_routine(cx, "fetching", 2);
	put(r, 0, (Micro){ .op = GOP_FETCH, .mem = { 0, 0 }, .far = { 2, 1 } });
	uint32_t n = controller_load(c, r);
	controller_base(c, 2, 6);
	controller_call(c, n);
}
static void base_spilled(Ctx *cx, void *arg)
{
	Controller *c = controller_new(cx, ((Bench *)arg)->one);
	uint32_t n = controller_load(c, wide_routine(cx, arg, false));
	controller_base(c, 1, SRAM - WIDE);
	controller_call(c, n);
}
static void table_spilled(Ctx *cx, void *arg)
{
	Controller *c = controller_new(cx, ((Bench *)arg)->one);
	uint32_t n = controller_load(c, wide_routine(cx, arg, true));
	controller_base(c, 2, SRAM - 20);
	controller_call(c, n);
}
static void host_outside(Ctx *cx, void *arg)
{
	Cell w[2];
	host_read(controller_new(cx, ((Bench *)arg)->one), 0, true, DRAM - 1, w, 2);
}
static void host_nobody(Ctx *cx, void *arg)
{
	Cell w[2] = { { 0 }, { 0 } };
	host_write(controller_new(cx, ((Bench *)arg)->one), PROCS, true, 0, w, 2);
}
static void too_many(Ctx *cx, void *arg) { processors_new(cx, &((Bench *)arg)->m, NULL, PROCS + 1, 1); }

static void control_refusals(void **state)
{
	static const struct {
		void (*body)(Ctx *, void *);
		const char *says;
	} rows[] = {
		{ long_block, "doubling has 2049 lines of microcode; the longest subroutine of small is 2048: 1 too many" },
		{ much_code, "doubling does not fit: 2000 lines with 4000 in use already; the controller of small "
		             "holds 4096: 1904 too many" },
		{ base_zero, "relocation register 0 cannot be set" },
		{ base_outside, "address 96 (relocation register 1 holds 96) is outside the 96 words of SRAM" },
		{ base_bank, "relocation register 2 holds 6, not a multiple of the 4 DRAM banks" },
		{ base_spilled, "wide: word 95 (relocation register 1 holds 80) overlaps the spill slots" },
		{ table_spilled, "wide: word 95 (relocation register 2 holds 76) overlaps the spill slots" },
		{ host_outside, "words 63 to 64 of the 64 of DRAM" },
		{ host_nobody, "processor 70 of 70" },
		{ too_many, "71 processors" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		assert_int_equal(guarded(&cx, rows[i].body, *state), MP_BAD_INPUT);
		assert_non_null(strstr(ctx_messages(&cx), rows[i].says));
		ctx_free(&cx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hand_made),        cmocka_unit_test(refusals), cmocka_unit_test(random_microwords),
		cmocka_unit_test(random_programs),  cmocka_unit_test(spilling), cmocka_unit_test(control),
		cmocka_unit_test(control_refusals),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
