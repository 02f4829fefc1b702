/* SPDX-License-Identifier: MIT */
/* The scheduler: random programs on random machines, run cycle by cycle and compared with the recording, and checked;
 * bounds never exceed lengths; optimal schedules of tiny blocks against brute force; target lengths of bundles and unit
 * routines; blocks that are too long; the cache. */
#include "gf11_toy.h"

typedef struct Job {
	const Machine *m;
	Code *code;
	ScheduleOptions o;
	Routine *r;
} Job;

static void job_run(Ctx *cx, void *arg)
{
	Job *j = arg;
	j->r = schedule(cx, j->m, j->code, &j->o);
}

static Routine *scheduled(Ctx *cx, const Machine *m, Code *code, int level)
{
	Job j = { .m = m, .code = code, .o = { .level = level, .seconds = 0.02 } };
	if (guarded(cx, job_run, &j) != MP_OK)
		print_error("%s", ctx_messages(cx));
	assert_non_null(j.r);
	return j.r;
}

static void expect_valid(Ctx *cx, const Machine *m, const Routine *r)
{
	const char *why = check_routine(cx, m, r);
	if (why)
		print_error("%s\n", why);
	assert_null(why);
	const Report *p = &r->report;
	assert_true(p->cycles == r->lines);
	assert_true(p->bound <= p->cycles);
	assert_true(p->bound_resource <= p->bound && p->bound_path <= p->bound && p->bound_hrt <= p->bound);
	assert_true(p->registers <= m->registers);
}

static void expect_same_values(const Machine *m, const Code *code, const Routine *r, uint64_t seed)
{
	static Memory recorded, run;
	memory_fill(&recorded, seed);
	run = recorded;
	run_recorded(code, &recorded);
	run_microwords(m, r, &run);
	assert_true(memory_same(&recorded, &run));
}

/* ---- random programs ---- */

static Machine random_machine(Dice *d)
{
	Machine m = toy_machine();
	m.alu_latency = 1 + roll(d, 25);
	m.alu_interval = 1 + roll(d, 4) / 3;
	m.sram_latency = 1 + roll(d, 5);
	m.sram_interval = 1 + roll(d, 4) / 3;
	m.lookup_latency = 1 + roll(d, 7);
	m.store_latency = 1 + roll(d, 4);
	m.dram_latency = 1 + roll(d, 16);
	m.dram_banks = 1 + roll(d, 4);
	m.dram_busy = 1 + roll(d, 16);
	m.switch_latency = 1 + roll(d, 20);
	m.registers = roll(d, 2) ? TOY_REGISTERS : 8 + roll(d, 12);
	m.block = 20480;
	return m;
}

static void test_random(void **state)
{
	(void)state;
	uint32_t spilled = 0, optimal = 0;
	for (uint64_t seed = 1; seed <= 120; seed++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Dice d = { seed, 0 };
		Machine m = random_machine(&d);
		Code *code = toy_program(&cx, &m, seed, 4 + roll(&d, 100));
		Routine *r = scheduled(&cx, &m, code, seed % 10 == 0);
		expect_valid(&cx, &m, r);
		expect_same_values(&m, code, r, seed);
		spilled += r->report.spills > 0;
		optimal += r->report.optimal;
		ctx_free(&cx);
	}
	assert_true(spilled > 10);
	assert_true(optimal > 30);
}

/* Registers and conditions written anew, which the recorder never does. */
static void test_rewritten(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 120; seed++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Dice d = { seed + 5000, 0 };
		Machine m = random_machine(&d);
		enum { REGS = 6, CONDS = 2, OPS = 60 };
		Rec rec[OPS];
		for (uint32_t i = 0; i < OPS; i++) {
			static const uint8_t some[] = { GOP_IADD,  GOP_FMUL, GOP_INT_LT, GOP_SELECT,
				                            GOP_MOVEM, GOP_LOAD, GOP_STORE,  GOP_XFER };
			uint8_t op = i < REGS ? GOP_LOAD : i < REGS + CONDS ? GOP_INT_EQ : some[roll(&d, COUNT(some))];
			bool cmp = ops[op].form == FORM_CMP;
			uint32_t dst = roll(&d, cmp ? CONDS : REGS);
			rec[i] = (Rec){ .op = op,
				            .dst = i < REGS           ? i
				                   : i < REGS + CONDS ? i - REGS
				                                      : dst,
				            .a = roll(&d, REGS),
				            .b = roll(&d, REGS),
				            .cc = roll(&d, CONDS),
				            .mem = toy_address(&d),
				            .k.u = roll(&d, 4) };
		}
		Code code = { .name = "rewritten", .rec = rec, .recs = OPS, .regs = REGS, .conds = CONDS };
		Routine *r = scheduled(&cx, &m, &code, 0);
		expect_valid(&cx, &m, r);
		expect_same_values(&m, &code, r, seed);
		ctx_free(&cx);
	}
}

/* Two bases on the same words: only the order of the recording is right. */
static void test_overlap(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Machine m = toy_machine();
		Gen *g = gen_record(&cx, &m, "overlap");
		Dice d = { seed, 0 };
		Reg r[40];
		for (uint32_t i = 0; i < COUNT(r); i++) { /* toy_base[1] = 64: the same words under bases 0 and 1 */
			uint16_t base = (uint16_t)roll(&d, 2);
			Addr a = { base, roll(&d, 3) + (base ? 0 : 64) };
			r[i] = g_load(g, a);
			a.base = (uint16_t)roll(&d, 2);
			a.off = roll(&d, 3) + (a.base ? 0 : 64);
			g_store(g, a, g_op(g, GOP_IADD, r[i], r[roll(&d, i + 1)]));
		}
		Code *code = gen_end(g);
		code->bases_overlap = true;
		Routine *out = scheduled(&cx, &m, code, 0);
		expect_valid(&cx, &m, out);
		expect_same_values(&m, code, out, seed);
		ctx_free(&cx);
	}
}

/* Words of one base are distinguished, also where bases overlap: nothing here has to wait for anything but its
 * operands. */
static void test_overlap_words(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Machine *m = machine_open(&cx, "gf11");
	Gen *g = gen_record(&cx, m, "words");
	g_load(g, (Addr){ 2, 0 });
	g_fetch(g, (Addr){ 1, 0 }, (Addr){ 3, 0 });
	g_store(g, (Addr){ 1, 2 }, g_load(g, (Addr){ 1, 1 }));
	Code *code = gen_end(g);
	code->bases_overlap = true;
	Routine *r = scheduled(&cx, m, code, 1);
	expect_valid(&cx, m, r);
	assert_true(r->report.optimal);
	assert_int_equal(r->report.cycles, m->dram_latency);
	ctx_free(&cx);
}

/* ---- everything tried ---- */

typedef struct Brute {
	const Machine *m;
	const Code *code;
	uint32_t at[8];
	uint32_t end;
} Brute;

static uint32_t end_of(const Brute *b, uint32_t i) { return b->at[i] + (uint32_t)op_latency(b->m, b->code->rec[i].op); }

static bool apart(uint32_t a, uint32_t b, int64_t busy) { return llabs((int64_t)a - b) >= busy; }

/* Operation k after operation i of the code, i < k: results, memory, and what they share.  Loads, stores, ALU and
 * masked moves only. */
static bool pair_ok(const Brute *b, uint32_t i, uint32_t k)
{
	const Rec *x = &b->code->rec[i], *y = &b->code->rec[k];
	unsigned xu = forms[ops[x->op].form].uses, yu = forms[ops[y->op].form].uses;
	bool xw = xu & USES_DST, masked = ops[y->op].form == FORM_MASKED;
	int64_t busy = ops[x->op].unit == UNIT_PORT ? b->m->sram_interval : b->m->alu_interval;
	if (ops[x->op].unit == ops[y->op].unit && !apart(b->at[i], b->at[k], busy))
		return false;
	bool latest = xw; /* does y see the word of x? */
	for (uint32_t j = i + 1; j < k; j++)
		latest &= !(forms[ops[b->code->rec[j].op].form].uses & USES_DST && b->code->rec[j].dst == x->dst);
	if (latest && ((yu & USES_A && y->a == x->dst) || (yu & USES_B && y->b == x->dst)) && b->at[k] < end_of(b, i))
		return false;
	if (masked && xw && y->dst == x->dst && end_of(b, k) <= end_of(b, i))
		return false;
	if (masked && ((xu & USES_A && x->a == y->dst) || (xu & USES_B && x->b == y->dst)) && b->at[i] >= end_of(b, k))
		return false;
	if (xu & WRITES_CC && yu & READS_CC && y->cc == x->dst && b->at[k] < end_of(b, i))
		return false;
	if (!(xu & yu & USES_MEM))
		return true;
	if (x->mem.base == y->mem.base ? x->mem.off != y->mem.off : !b->code->bases_overlap)
		return true;
	bool xs = x->op == GOP_STORE, ys = y->op == GOP_STORE;
	if (xs)
		return ys ? end_of(b, k) > end_of(b, i) : b->at[k] >= end_of(b, i);
	return !ys || b->at[i] < end_of(b, k);
}

static bool brute(Brute *b, uint32_t k)
{
	if (k == b->code->recs)
		return true;
	for (b->at[k] = 0; end_of(b, k) <= b->end; b->at[k]++) {
		bool ok = true;
		for (uint32_t i = 0; i < k && ok; i++)
			ok = pair_ok(b, i, k);
		if (ok && brute(b, k + 1))
			return true;
	}
	return false;
}

static Addr tiny_address(Dice *d, uint32_t bases)
{
	uint16_t base = (uint16_t)roll(d, bases);
	return (Addr){ base, roll(d, 2) };
}

static Code *tiny_program(Ctx *cx, const Machine *m, Dice *d, uint32_t most, uint32_t bases)
{
	Gen *g = gen_record(cx, m, "tiny");
	Reg reg[8] = { g_load(g, (Addr){ 0, 0 }) };
	uint32_t regs = 1;
	Cond c = g_compare(g, GOP_INT_LT, reg[0], reg[0]);
	for (uint32_t i = 2; i < most; i++) {
		Reg a = reg[roll(d, regs)], b = reg[roll(d, regs)];
		switch (roll(d, 5)) {
		case 0: reg[regs++] = g_load(g, tiny_address(d, bases)); break;
		case 1: g_store(g, tiny_address(d, bases), a); break;
		case 2: g_move_masked(g, a, c, b); break;
		default: reg[regs++] = g_fadd(g, a, b);
		}
	}
	return gen_end(g);
}

static void test_exact(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Dice d = { seed + 900, 0 };
		Machine m = toy_machine();
		m.alu_latency = 1 + roll(&d, 4);
		m.sram_latency = 1 + roll(&d, 3);
		m.store_latency = 1 + roll(&d, 3);
		m.alu_interval = 1 + roll(&d, 2);
		uint32_t bases = seed > 150 ? 3 : 1, most = 3 + roll(&d, 4);
		Code *code = tiny_program(&cx, &m, &d, most, bases);
		code->bases_overlap = seed % 4 > 0;
		Routine *r = scheduled(&cx, &m, code, 1);
		expect_valid(&cx, &m, r);
		assert_true(r->report.optimal);
		Brute b = { .m = &m, .code = code };
		for (b.end = 1; !brute(&b, 0); b.end++)
			;
		/* brute force does not require that the machine is free at the end */
		uint32_t busy = m.alu_interval > m.alu_latency ? (uint32_t)m.alu_interval : 0;
		assert_in_range(r->report.cycles, b.end, b.end + busy);
		if (!busy)
			assert_int_equal(r->report.cycles, b.end);
		ctx_free(&cx);
	}
}

/* ---- lengths ---- */

static void test_targets(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t percent;
	} want[] = {
		{ "forward", 98 },       { "backward", 97 },       { "backward-input", 97 },
		{ "sigmoid-table", 90 }, { "sigmoid-powers", 90 },
	};
	Ctx cx;
	ctx_init(&cx, NULL);
	Machine *m = machine_open(&cx, "gf11");
	for (size_t i = 0; i < COUNT(want); i++) {
		Routine *r = scheduled(&cx, m, routine_record(&cx, m, routine_find(want[i].name)), 0);
		expect_valid(&cx, m, r);
		assert_true(r->report.bound * 100 >= want[i].percent * r->report.cycles);
		assert_int_equal(r->report.spills, 0);
	}
	ctx_free(&cx);
}

/* Shapes that need nearly all registers, or more. */
static void test_tight(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t size[4], percent;
	} want[] = {
		{ "forward", { 4, 250 }, 98 },
		{ "backward", { 250, 3 }, 80 },
		{ "sigmoid-table", { 250 }, 95 },
	};
	Ctx cx;
	ctx_init(&cx, NULL);
	Machine *m = machine_open(&cx, "gf11");
	for (size_t i = 0; i < COUNT(want); i++) {
		RoutineDef def = *routine_find(want[i].name);
		memcpy(def.size, want[i].size, sizeof def.size);
		Routine *r = scheduled(&cx, m, routine_record(&cx, m, &def), 0);
		expect_valid(&cx, m, r);
		assert_true(r->report.bound * 100 >= want[i].percent * r->report.cycles);
	}
	ctx_free(&cx);
}

static void test_report(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Machine *m = machine_open(&cx, "gf11");
	Gen *g = gen_record(&cx, m, "sum");
	Reg a = g_load(g, (Addr){ 1, 0 }), b = g_load(g, (Addr){ 1, 1 });
	g_store(g, (Addr){ 1, 2 }, g_fadd(g, a, g_xfer(g, 3, b)));
	Code *code = gen_end(g);
	Routine *r = scheduled(&cx, m, code, 1);
	expect_valid(&cx, m, r);
	const Report *p = &r->report;
	uint32_t path = (uint32_t)(m->sram_latency + m->switch_latency + m->alu_latency + m->store_latency);
	assert_int_equal(p->operations, 5);
	assert_int_equal(p->arithmetic, 1);
	assert_int_equal(p->transfers, 1);
	assert_int_equal(p->bound_path, path);
	assert_int_equal(p->cycles, path);
	assert_true(p->optimal);
	assert_true(p->report_measure == 1.0 / path);
	code->update = true;
	assert_true(scheduled(&cx, m, code, 0)->report.report_measure == 4.0 / path);
	Report again = { 0 };
	bound_fill(&cx, m, code, &again);
	assert_int_equal(again.bound, p->bound);
	Code nothing = { .name = "nothing" };
	assert_int_equal(scheduled(&cx, m, &nothing, 1)->lines, 0);
	ctx_free(&cx);
}

/* ---- limits ---- */

/* Many words alive at once: all loaded, then used in the same order. */
static Code *wide_program(Ctx *cx, const Machine *m, uint32_t words, bool turned)
{
	Gen *g = gen_record(cx, m, "wide");
	Reg *r = NEW(&cx->keep, words, Reg), sum = g_const_bits(g, 1);
	for (uint32_t i = 0; i < words; i++)
		r[i] = g_op(g, GOP_IADD, g_load(g, (Addr){ 1, i % 8 }), g_const_bits(g, i));
	for (uint32_t i = 0; i < words; i++) {
		sum = g_op(g, GOP_IMUL, sum, r[turned ? words - 1 - i : i]);
		g_store(g, (Addr){ 1, i % 8 }, sum); /* later loads could not stand before: nothing can be put off */
	}
	return gen_end(g);
}

static void test_spill(void **state)
{
	(void)state;
	for (int turned = 0; turned < 2; turned++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Machine m = toy_machine();
		m.registers = 16;
		Code *code = wide_program(&cx, &m, 60, turned);
		Routine *r = scheduled(&cx, &m, code, 0);
		expect_valid(&cx, &m, r);
		expect_same_values(&m, code, r, 1);
		assert_true(r->report.spills > 0 && r->report.registers <= 16);
		ctx_free(&cx);
	}
}

/* Loads recorded far too early need no spilling: another order does. */
static void test_reorder(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Machine *m = machine_open(&cx, "gf11");
	Gen *g = gen_record(&cx, m, "early");
	enum { WORDS = 600 };
	Reg r[WORDS], sum[30];
	for (uint32_t i = 0; i < WORDS; i++)
		r[i] = g_load(g, (Addr){ 1, i });
	for (uint32_t i = 0; i < COUNT(sum); i++)
		sum[i] = g_const(g, 0);
	for (uint32_t i = 0; i < WORDS; i++)
		sum[i % COUNT(sum)] = g_fadd(g, sum[i % COUNT(sum)], r[i]);
	for (uint32_t i = 0; i < COUNT(sum); i++)
		g_store(g, (Addr){ 2, i }, sum[i]);
	Routine *out = scheduled(&cx, m, gen_end(g), 0);
	expect_valid(&cx, m, out);
	assert_int_equal(out->report.spills, 0);
	assert_true(out->report.bound * 100 >= 95 * out->report.cycles);
	ctx_free(&cx);
}

static void expect_failure(Job *j, const char *says)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, job_run, j), MP_BAD_INPUT);
	if (!strstr(ctx_messages(&cx), says))
		print_error("%s\n", ctx_messages(&cx));
	assert_non_null(strstr(ctx_messages(&cx), says));
	ctx_free(&cx);
}

static void test_refused(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Machine m = toy_machine();
	m.block = 16;
	expect_failure(&(Job){ .m = &m, .code = wide_program(&cx, &m, 20, false) },
	               "lines are more than the 16 of a block");
	m = toy_machine();
	m.conditions = 2;
	Gen *g = gen_record(&cx, &m, "many");
	Reg a = g_load(g, (Addr){ 0, 0 });
	Cond c[3];
	for (int i = 0; i < 3; i++)
		c[i] = g_compare(g, GOP_INT_LT, a, a);
	for (int turn = 0; turn < 2; turn++) /* each select needs the one before: all three live at once */
		for (int i = 0; i < 3; i++)
			a = g_select(g, c[i], a, a);
	g_store(g, (Addr){ 0, 0 }, a);
	expect_failure(&(Job){ .m = &m, .code = gen_end(g) }, "many: 3 conditions are live at once, and the machine has 2");
	m.registers = 8;
	g = gen_record(&cx, &m, "anywhere");
	Reg index = g_load(g, (Addr){ 1, 0 }), word[12];
	for (uint32_t i = 0; i < COUNT(word); i++)
		word[i] = g_lookup(g, (Addr){ 1, i }, index);
	for (uint32_t i = 0; i < COUNT(word); i++) /* each put may change what later lookups would find */
		g_put(g, (Addr){ 1, 0 }, index, word[i]);
	Code *anywhere = gen_end(g);
	expect_failure(&(Job){ .m = &m, .code = anywhere },
	               "anywhere: values cannot be spilled to SRAM: the index of operation 1, lookup, is unbounded");
	anywhere->index_limit = NEW(&cx.keep, (size_t)m.relocations, uint32_t);
	anywhere->index_limit[1] = TOY_SRAM / 2;
	Routine *spilled = scheduled(&cx, &m, anywhere, 0);
	expect_valid(&cx, &m, spilled);
	assert_true(spilled->report.spills > 0);
	anywhere->index_limit[1] = 0;
	assert_non_null(strstr(check_routine(&cx, &m, spilled), "its index may reach spill slots"));
	anywhere->index_limit = NULL;
	Rec undefined[] = { { .op = GOP_FADD, .dst = 0, .a = 1, .b = 1 } };
	Code code = { .name = "undefined", .rec = undefined, .recs = 1, .regs = 2 };
	expect_failure(&(Job){ .m = &m, .code = &code }, "undefined: operation 0, fadd, reads register 1");
	ctx_free(&cx);
}

/* ---- the same again ---- */

static void test_same(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Machine m = toy_machine();
	ScheduleCache *cache = schedule_cache_new(&cx);
	ScheduleOptions o = { .level = 1, .seconds = 0.02 };
	Routine *a = schedule_cached(&cx, cache, &m, toy_program(&cx, &m, 7, 80), &o);
	assert_ptr_equal(a, schedule_cached(&cx, cache, &m, toy_program(&cx, &m, 7, 80), &o));
	assert_ptr_not_equal(a, schedule_cached(&cx, cache, &m, toy_program(&cx, &m, 8, 80), &o));
	m.alu_latency++;
	assert_ptr_not_equal(a, schedule_cached(&cx, cache, &m, toy_program(&cx, &m, 7, 80), &o));
	m.alu_latency--;
	Routine *b = scheduled(&cx, &m, toy_program(&cx, &m, 7, 80), 1);
	assert_int_equal(a->lines, b->lines);
	for (uint32_t t = 0; t < a->lines; t++)
		for (int u = 0; u < UNITS; u++) {
			const Micro *x = &a->line[t].slot[u], *y = &b->line[t].slot[u];
			assert_true(x->op == y->op && x->dst == y->dst && x->a == y->a && x->b == y->b);
			assert_true(x->cc == y->cc && x->rec == y->rec);
		}
	ctx_free(&cx);
}

static void starved(Ctx *cx, void *arg)
{
	const Machine *m = arg;
	ScheduleOptions o = { .level = 0 };
	schedule(cx, m, toy_program(cx, m, 3, 60), &o);
}

static void test_memory(void **state)
{
	(void)state;
	Machine m = toy_machine();
	m.registers = 12;
	Status status = MP_NO_MEMORY;
	for (long n = 1; status != MP_OK; n++) {
		Meter meter = { .fail_at = n };
		Alloc alloc = { .resize = meter_resize, .user = &meter };
		Ctx cx;
		ctx_init(&cx, &alloc);
		status = guarded(&cx, starved, &m);
		assert_true(status == MP_OK || status == MP_NO_MEMORY);
		ctx_free(&cx);
		assert_int_equal(meter.live, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),        cmocka_unit_test(test_rewritten), cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_overlap_words), cmocka_unit_test(test_tight),     cmocka_unit_test(test_exact),
		cmocka_unit_test(test_targets),       cmocka_unit_test(test_report),    cmocka_unit_test(test_spill),
		cmocka_unit_test(test_reorder),       cmocka_unit_test(test_refused),   cmocka_unit_test(test_same),
		cmocka_unit_test(test_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
