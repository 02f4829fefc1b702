/* SPDX-License-Identifier: MIT */
/* Operations against plain C; recording against simulation, through a plain interpreter of recorded code; errors. */
#include <float.h>
#include <math.h>

#include "test.h"

#include "gf11_code.h"

/* ---- the table of operations -------------------------------------------------------------------- */

static float as_float(uint32_t u)
{
	float f;
	memcpy(&f, &u, sizeof f);
	return f;
}

static uint32_t as_bits(float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return u;
}

static int32_t as_int(uint32_t u)
{
	int32_t i;
	memcpy(&i, &u, sizeof i);
	return i;
}

/* Single results by way of double: exact sums and products of two floats rounded once (53 >= 2 * 24 + 2 bits). */
static double as_double(uint32_t u) { return (double)as_float(u); }
static uint32_t want_fadd(uint32_t a, uint32_t b) { return as_bits((float)(as_double(a) + as_double(b))); }
static uint32_t want_fsub(uint32_t a, uint32_t b) { return as_bits((float)(as_double(a) - as_double(b))); }
static uint32_t want_fmul(uint32_t a, uint32_t b) { return as_bits((float)(as_double(a) * as_double(b))); }

static uint32_t want_floor(uint32_t a, uint32_t b)
{
	(void)b;
	return as_bits((float)floor(as_double(a)));
}

static uint32_t want_fix(uint32_t a, uint32_t b)
{
	(void)b;
	double v = as_double(a);
	if (isnan(v))
		return 0;
	v = trunc(v);
	v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
	return (uint32_t)(int64_t)v;
}

static uint32_t want_flt(uint32_t a, uint32_t b)
{
	(void)b;
	return as_bits((float)(double)as_int(a));
}
static uint32_t want_fneg(uint32_t a, uint32_t b)
{
	(void)b;
	return a + 0x80000000u;
}
static uint32_t want_fabs(uint32_t a, uint32_t b)
{
	(void)b;
	return a << 1 >> 1;
}
static uint32_t want_iadd(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a + b); }
static uint32_t want_isub(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a + ~b + 1); }
static uint32_t want_imul(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b); }
static uint32_t want_and(uint32_t a, uint32_t b) { return ~(~a | ~b); }
static uint32_t want_or(uint32_t a, uint32_t b) { return ~(~a & ~b); }
static uint32_t want_xor(uint32_t a, uint32_t b) { return (a | b) - (a & b); }
static uint32_t want_shl(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a << b % 32); }
static uint32_t want_shr(uint32_t a, uint32_t b) { return (uint32_t)(((uint64_t)a << 32 >> b % 32) >> 32); }
static uint32_t want_lt(uint32_t a, uint32_t b) { return as_double(a) < as_double(b); }
static uint32_t want_le(uint32_t a, uint32_t b) { return as_double(a) <= as_double(b); }
static uint32_t want_eq(uint32_t a, uint32_t b) { return as_double(a) == as_double(b); }
static uint32_t want_ilt(uint32_t a, uint32_t b) { return (int64_t)as_int(a) - (int64_t)as_int(b) < 0; }
static uint32_t want_ieq(uint32_t a, uint32_t b) { return !(a ^ b); }
static uint32_t want_a(uint32_t a, uint32_t b)
{
	(void)b;
	return a;
}

static uint32_t (*const wanted[GOPS])(uint32_t, uint32_t) = {
	[GOP_FADD] = want_fadd,  [GOP_FSUB] = want_fsub, [GOP_FMUL] = want_fmul, [GOP_FLOOR] = want_floor,
	[GOP_FIX] = want_fix,    [GOP_FLT] = want_flt,   [GOP_FNEG] = want_fneg, [GOP_FABS] = want_fabs,
	[GOP_IADD] = want_iadd,  [GOP_ISUB] = want_isub, [GOP_IMUL] = want_imul, [GOP_AND] = want_and,
	[GOP_OR] = want_or,      [GOP_XOR] = want_xor,   [GOP_SHL] = want_shl,   [GOP_SHR] = want_shr,
	[GOP_FLT_LT] = want_lt,  [GOP_FLT_LE] = want_le, [GOP_FLT_EQ] = want_eq, [GOP_INT_LT] = want_ilt,
	[GOP_INT_EQ] = want_ieq, [GOP_MOVE] = want_a,    [GOP_MOVEM] = want_a,
};

static const uint32_t words[] = {
	0,          1,          2,          31,         32,         33,
	0x7F,       0x80,       0xFFFF,     0x10000,    0x80000000, 0x80000001, /* -0; denormal; most negative integer */
	0x007FFFFF, 0x00800000, 0x807FFFFF, 0x80800000,                         /* largest denormals, smallest normals */
	0x3F800000, 0xBF800000, 0x3F7FFFFF, 0x3F800001,                         /* around 1 */
	0x3F000000, 0xBF000000, 0x40200000, 0xC0200000,                         /* halves */
	0x4B000000, 0x4B800000, 0x4B800001, 0xCB7FFFFF,                         /* around 2^24 */
	0x4EFFFFFF, 0x4F000000, 0xCEFFFFFF, 0xCF000000, 0xCF000001,             /* around 2^31 */
	0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,                         /* largest, infinite */
	0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, /* NaNs, quiet and not; largest integer, -1 */
	0x12345678, 0xDEADBEEF, 0x40490FDB, 0xC2F6E979, 0x1E3CE508, 0x5F3759DF,
};

/* The machine has one NaN; plain C may give any. */
static uint32_t one_nan(int op, uint32_t word)
{
	bool arithmetic = op == GOP_FADD || op == GOP_FSUB || op == GOP_FMUL || op == GOP_FLOOR;
	return arithmetic && isnan(as_float(word)) ? 0x7FC00000 : word;
}

static void same(int op, uint32_t a, uint32_t b, uint32_t got, uint32_t want)
{
	if (got == want)
		return;
	print_error("%s of %08x and %08x is %08x, not %08x\n", ops[op].name, a, b, got, want);
	assert_true(false);
}

static void the_table_is_proven(void **state)
{
	(void)state;
	for (int op = 0; op < GOPS; op++) {
		bool special = ops[op].form == FORM_SELECT || ops[op].form == FORM_IMM;
		assert_int_equal(wanted[op] || special, ops[op].unit == UNIT_ALU);
		for (size_t i = 0; i < COUNT(words); i++) {
			for (size_t k = 0; k < COUNT(words); k++) {
				Cell a = { .u = words[i] }, b = { .u = words[k] }, c = { .u = 0xC0FFEE };
				for (int cc = 0; cc < 2; cc++) {
					uint32_t want = op == GOP_SELECT  ? (cc ? a.u : b.u)
					                : op == GOP_CONST ? c.u
					                : wanted[op]      ? wanted[op](a.u, b.u)
					                                  : a.u;
					same(op, a.u, b.u, op_value(op, a, b, cc, c).u, one_nan(op, want));
				}
			}
		}
	}
}

static void names_and_forms_are_complete(void **state)
{
	(void)state;
	Machine m = { .alu_latency = 25, .sram_latency = 4, .dram_latency = 16, .switch_latency = 20 };
	for (int op = 0; op < GOPS; op++) {
		assert_non_null(ops[op].name);
		assert_int_equal(op_find(ops[op].name, strlen(ops[op].name)), op);
		assert_true(forms[ops[op].form].uses != 0);
		assert_true(*ops[op].about && ops[op].unit < UNITS);
	}
	assert_int_equal(op_find("fad", 3), -1);
	assert_int_equal(op_find("", 0), -1);
	assert_int_equal(op_latency(&m, GOP_FADD), 25);
	assert_int_equal(op_latency(&m, GOP_LOAD), 4);
	assert_int_equal(op_latency(&m, GOP_FLUSH), 16);
	assert_int_equal(op_latency(&m, GOP_XFER), 20);
}

/* ---- a small machine ---------------------------------------------------------------------------- */

enum { PROCS = 5, SRAM = 96, DRAM = 128, BASES = 4, CONFIGURATIONS = 3 };

static const Machine small = { .name = "small",
	                           .processors = PROCS,
	                           .registers = 64,
	                           .sram = SRAM,
	                           .dram = DRAM,
	                           .conditions = 4,
	                           .relocations = BASES,
	                           .dram_banks = 4,
	                           .switch_ports = 9,
	                           .crossbar = 3,
	                           .configurations = CONFIGURATIONS };

/* Ring, reversal, and one that sends to a port without a processor and leaves two out. */
static const uint16_t routes[CONFIGURATIONS][9] = {
	{ 1, 2, 3, 4, 0, NO_ROUTE, NO_ROUTE, NO_ROUTE, NO_ROUTE },
	{ 4, 3, 2, 1, 0, NO_ROUTE, NO_ROUTE, NO_ROUTE, NO_ROUTE },
	{ 2, NO_ROUTE, 7, 0, NO_ROUTE, 1, NO_ROUTE, NO_ROUTE, NO_ROUTE },
};

typedef struct World {
	Switch sw;
	uint16_t *to[CONFIGURATIONS], port[PROCS], at_port[9];
	Processors p;
} World;

static uint64_t draw(uint64_t *n) { return random_u64(7, STREAM_DATA, (*n)++); }

static uint32_t draw_below(uint64_t *n, uint32_t limit) { return (uint32_t)(draw(n) % limit); }

static World *world_new(uint64_t seed)
{
	World *w = calloc(1, sizeof *w);
	uint64_t n = seed << 32;
	for (int k = 0; k < CONFIGURATIONS; k++) {
		w->to[k] = malloc(sizeof routes[k]);
		memcpy(w->to[k], routes[k], sizeof routes[k]);
	}
	w->sw = (Switch){ .m = &small, .ports = 9, .n = 3, .to = w->to, .stored = CONFIGURATIONS };
	w->p = (Processors){
		.m = &small, .sw = &w->sw, .port = w->port, .at_port = w->at_port, .procs = PROCS, .lanes = LANES
	};
	for (uint16_t i = 0; i < COUNT(w->at_port); i++)
		w->at_port[i] = i < PROCS ? (w->port[i] = i) : (uint16_t)NO_ROUTE;
	w->p.sram = calloc(SRAM * LANES, sizeof *w->p.sram);
	w->p.dram = calloc(DRAM * LANES, sizeof *w->p.dram);
	for (int i = 0; i < SRAM * LANES; i++)
		w->p.sram[i] = (uint32_t)draw(&n);
	for (int i = 0; i < DRAM * LANES; i++)
		w->p.dram[i] = as_bits((float)draw_below(&n, 1000) * 0.125f - 60);
	return w;
}

static void world_free(World *w)
{
	for (int k = 0; k < CONFIGURATIONS; k++)
		free(w->to[k]);
	free(w->p.sram);
	free(w->p.dram);
	free(w);
}

/* ---- random programs: recorded and interpreted equals simulated --------------------------------- */

static Addr draw_address(uint64_t *n, uint32_t size)
{
	return (Addr){ (uint16_t)draw_below(n, BASES), draw_below(n, size - 20) };
}

static void draw_memory(Gen *g, uint64_t *n, Reg *reg, uint32_t *regs)
{
	Reg a = reg[draw_below(n, *regs)], b = reg[draw_below(n, *regs)];
	switch (draw_below(n, 7)) {
	case 0: reg[(*regs)++] = g_load(g, draw_address(n, SRAM)); break;
	case 1: g_store(g, draw_address(n, SRAM), a); break;
	case 2: reg[(*regs)++] = g_lookup(g, draw_address(n, SRAM), a); break;
	case 3: g_put(g, draw_address(n, SRAM), a, b); break;
	case 4: g_fetch(g, draw_address(n, SRAM), draw_address(n, DRAM)); break;
	case 5: g_flush(g, draw_address(n, DRAM), draw_address(n, SRAM)); break;
	default: reg[(*regs)++] = g_xfer(g, draw_below(n, CONFIGURATIONS), a);
	}
}

static void draw_alu(Gen *g, uint64_t *n, Reg *reg, uint32_t *regs, Cond *last)
{
	Reg a = reg[draw_below(n, *regs)], b = reg[draw_below(n, *regs)];
	int op = (int)draw_below(n, GOPS);
	switch (ops[op].form) {
	case FORM_RR:
	case FORM_R: reg[(*regs)++] = g_op(g, op, a, b); break;
	case FORM_CMP: *last = g_compare(g, op, a, b); break;
	case FORM_SELECT: reg[(*regs)++] = g_select(g, *last, a, b); break;
	case FORM_MASKED: g_move_masked(g, a, *last, b); break;
	default: reg[(*regs)++] = g_const_bits(g, words[draw_below(n, COUNT(words))]);
	}
}

/* A routine like any other: it does not know whether it records. */
static void program(Gen *g, uint64_t seed)
{
	enum { PARTS = 3, LENGTH = 60 };
	uint64_t n = seed << 32;
	for (int part = 0; part < PARTS; part++) {
		Reg reg[LENGTH + 2];
		uint32_t regs = 0;
		reg[regs++] = g_const(g, 1.5f);
		reg[regs++] = g_load(g, (Addr){ 1, 3 });
		Cond last = g_compare(g, GOP_INT_LT, reg[0], reg[1]);
		for (int i = 0; i < LENGTH; i++) {
			if (draw(&n) & 1)
				draw_memory(g, &n, reg, &regs);
			else
				draw_alu(g, &n, reg, &regs, &last);
		}
		for (uint32_t i = 0; i < regs; i++)
			g_store(g, (Addr){ 0, i }, reg[i]);
	}
}

typedef struct Plain { /* one processor of the plain interpreter */
	uint32_t reg[1024], sram[SRAM], dram[DRAM];
	bool cond[1024];
} Plain;

static uint32_t place(Addr a, const uint32_t *base) { return base[a.base] + a.off; }

static void interpret(Plain *p, const Rec *r, const uint32_t *base)
{
	Cell a = { .u = p->reg[r->a] }, b = { .u = p->reg[r->b] };
	uint32_t mem = place(r->mem, base), far = place(r->far, base);
	switch (ops[r->op].form) {
	case FORM_LOAD: p->reg[r->dst] = p->sram[mem]; break;
	case FORM_STORE: p->sram[mem] = a.u; break;
	case FORM_LOOKUP: p->reg[r->dst] = p->sram[(mem + a.u) % SRAM]; break;
	case FORM_PUT: p->sram[(mem + b.u) % SRAM] = a.u; break;
	case FORM_FETCH: p->sram[mem] = p->dram[far]; break;
	case FORM_FLUSH: p->dram[far] = p->sram[mem]; break;
	case FORM_CMP: p->cond[r->dst] = op_value(r->op, a, b, false, r->k).u; break;
	case FORM_MASKED:
		if (p->cond[r->cc])
			p->reg[r->dst] = a.u;
		break;
	default: p->reg[r->dst] = op_value(r->op, a, b, p->cond[r->cc], r->k).u;
	}
}

static void interpret_xfer(Plain *p, const Rec *r)
{
	uint32_t sent[PROCS];
	for (int i = 0; i < PROCS; i++) {
		sent[i] = p[i].reg[r->a];
		p[i].reg[r->dst] = 0;
	}
	for (int i = 0; i < PROCS; i++)
		if (routes[r->k.u][i] < PROCS)
			p[routes[r->k.u][i]].reg[r->dst] = sent[i];
}

static void copy_memory(Plain *p, const World *w)
{
	for (int i = 0; i < PROCS; i++) {
		for (int k = 0; k < SRAM; k++)
			p[i].sram[k] = w->p.sram[k * LANES + i];
		for (int k = 0; k < DRAM; k++)
			p[i].dram[k] = w->p.dram[k * LANES + i];
	}
}

static const uint32_t bases[BASES] = { 0, 4, 8, 20 };

static void one_program(Ctx *cx, void *seed)
{
	uint64_t s = *(uint64_t *)seed;
	World *w = world_new(s);
	Plain *p = calloc(PROCS, sizeof *p), *q = calloc(PROCS, sizeof *q);
	copy_memory(p, w);
	Gen *g = gen_record(cx, &small, "random");
	program(g, s);
	const Code *code = gen_end(g);
	for (uint32_t i = 0; i < code->recs; i++) {
		if (ops[code->rec[i].op].form == FORM_XFER)
			interpret_xfer(p, &code->rec[i]);
		for (int k = 0; k < PROCS && ops[code->rec[i].op].form != FORM_XFER; k++)
			interpret(&p[k], &code->rec[i], bases);
	}
	g = gen_simulate(cx, &w->p, bases);
	program(g, s);
	assert_null(gen_end(g));
	copy_memory(q, w);
	for (int i = 0; i < PROCS; i++) {
		assert_memory_equal(p[i].sram, q[i].sram, sizeof p[i].sram);
		assert_memory_equal(p[i].dram, q[i].dram, sizeof p[i].dram);
	}
	free(p);
	free(q);
	world_free(w);
}

static void recorded_equals_simulated(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		assert_int_equal(guarded(&cx, one_program, &seed), MP_OK);
		ctx_free(&cx);
	}
}

/* ---- faults, in both modes ---------------------------------------------------------------------- */

static void bad_register(Gen *g) { g_fadd(g, g_const(g, 1), 17); }
static void bad_condition(Gen *g) { g_select(g, 0, g_const(g, 1), g_const(g, 1)); }
static void bad_masked(Gen *g)
{
	Reg a = g_const(g, 1);
	g_move_masked(g, 5, g_compare(g, GOP_FLT_EQ, a, a), a);
}
static void bad_sram(Gen *g) { g_load(g, (Addr){ 0, SRAM }); }
static void bad_dram(Gen *g) { g_fetch(g, (Addr){ 0, 0 }, (Addr){ 0, DRAM }); }
static void bad_base(Gen *g) { g_load(g, (Addr){ BASES, 0 }); }
static void bad_route(Gen *g) { g_xfer(g, CONFIGURATIONS, g_const(g, 1)); }
static void far_sram(Gen *g) { g_load(g, (Addr){ 3, SRAM - 20 }); }
static void odd_base(Gen *g) { g_flush(g, (Addr){ 2, 0 }, (Addr){ 0, 0 }); }

typedef struct Fault {
	void (*make)(Gen *);
	const char *message;
	bool simulated_only;
} Fault;
typedef struct Attempt {
	const Fault *fault;
	World *w;
	const uint32_t *base;
} Attempt;

static void attempt(Ctx *cx, void *arg)
{
	Attempt *a = arg;
	Gen *g = a->w ? gen_simulate(cx, &a->w->p, a->base) : gen_record(cx, &small, "faulty");
	a->fault->make(g);
	gen_end(g);
}

static void faults_are_named(void **state)
{
	(void)state;
	static const uint32_t odd[BASES] = { 0, 4, 6, 20 };
	static const Fault faults[] = {
		{ bad_register, "register 17 is used before it is defined", false },
		{ bad_condition, "condition 0 is used before it is defined", false },
		{ bad_masked, "register 5 is used before it is defined", false },
		{ bad_sram, "address 96 is outside the 96 words of SRAM", false },
		{ bad_dram, "address 128 is outside the 128 words of DRAM", false },
		{ bad_base, "there is no relocation register 4", false },
		{ bad_route, "there is no switch configuration 3", false },
		{ far_sram, "address 96 is outside the 96 words of SRAM", true },
		{ odd_base, "relocation register 2 holds 6, the machine has 4 DRAM banks", true },
	};
	World *w = world_new(1);
	for (size_t i = 0; i < 2 * COUNT(faults); i++) {
		Attempt a = { &faults[i / 2], i % 2 ? w : NULL, odd };
		Meter m = { 0 };
		Ctx cx;
		ctx_init(&cx, &(Alloc){ meter_resize, &m });
		Status s = guarded(&cx, attempt, &a);
		assert_int_equal(s, a.fault->simulated_only && !a.w ? MP_OK : MP_BAD_INPUT);
		if (s != MP_OK)
			assert_non_null(strstr(ctx_messages(&cx), a.fault->message));
		ctx_free(&cx);
		assert_int_equal(m.live, 0);
	}
	world_free(w);
}

static void both_modes(Ctx *cx, void *arg)
{
	World *w = arg;
	Gen *g = gen_record(cx, &small, "example");
	program(g, 3);
	gen_end(g);
	g = gen_simulate(cx, &w->p, NULL);
	program(g, 3);
	gen_end(g);
}

static void running_out_of_memory_is_reported(void **state)
{
	(void)state;
	World *w = world_new(2);
	Status s = MP_NO_MEMORY;
	for (long n = 1; s == MP_NO_MEMORY; n++) {
		Meter m = { .fail_at = n };
		Ctx cx;
		ctx_init(&cx, &(Alloc){ meter_resize, &m });
		s = guarded(&cx, both_modes, w);
		ctx_free(&cx);
		assert_int_equal(m.live, 0);
	}
	assert_int_equal(s, MP_OK);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_proven),
		cmocka_unit_test(names_and_forms_are_complete),
		cmocka_unit_test(recorded_equals_simulated),
		cmocka_unit_test(faults_are_named),
		cmocka_unit_test(running_out_of_memory_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
