/* SPDX-License-Identifier: MIT */
/* The checker of microcode: each rule by a routine that violates only this rule; then random programs whose schedules
 * are changed at random.  A changed schedule must be refused, or be equivalent: accepted ones are executed cycle by
 * cycle and compared with the recording executed in its order. */
#include "gf11_toy.h"

/* ---- rules one by one ---- */

/* Microcode in short: operations by cycle, without empty lines and columns; says NULL: valid. */
typedef struct Case {
	uint32_t lines;
	const char *text, *says;
} Case;

static const Case rules_of_machine[] = {
	{ 9, "0 || load s[1] -> r1; 3 | fadd r1, r1 -> r2", NULL },
	{ 9, "0 || load s[1] -> r1; 2 | fadd r1, r1 -> r2", "reads r1, which is undefined here" },
	{ 7, "0 || load s[1] -> r1; 3 | fadd r1, r1 -> r2", "after the routine's 7 lines" },
	{ 9, "0 || load s[1] -> r1; 3 | select c0, r1, r1 -> r2", "reads c0, which is undefined" },
	/* port: both cycles of a look-up, the arrival of a transfer */
	{ 9, "0 || load s[1] -> r1; 3 || lookup s[1+r1] -> r2; 4 || load s[2] -> r3", "the register port in cycle 4" },
	{ 9, "0 || load s[1] -> r1; 3 || lookup s[1+r1] -> r2; 5 || load s[2] -> r3", NULL },
	{ 12, "0 || load s[1] -> r1; 3 |||| xfer k0, r1 -> r2; 8 || load s[2] -> r3", "the register port in cycle 8" },
	{ 12, "0 || load s[1] -> r1; 3 || load s[2] -> r3 || xfer k0, r1 -> r2", "the register port in cycle 3" },
	/* SRAM: a word fetched arrives in the cycle of a load; a put one cycle late */
	{ 12, "0 ||| fetch d[1] -> s[1]; 7 || load s[2] -> r1", "static memory in cycle 7" },
	{ 12, "0 ||| fetch d[1] -> s[1]; 6 || load s[2] -> r1", NULL },
	{ 20, "0 || load s[2] -> r1; 3 || put r1 -> s[4+r1]; 4 ||| flush s[1] -> d[1]", "static memory in cycle 4" },
	/* DRAM: interval and bank; the switch's interval */
	{ 20, "0 ||| fetch d[1] -> s[1]; 3 ||| fetch d[2] -> s[2]", "can start again in cycle 4" },
	{ 20, "0 ||| fetch d[1] -> s[1]; 4 ||| fetch d[b1+5] -> s[2]", "bank 1 is busy until cycle 6" },
	{ 20, "0 ||| fetch d[1] -> s[1]; 4 ||| fetch d[b1+6] -> s[2]", NULL },
	{ 20, "0 || load s[2] -> r1; 3 |||| xfer k0, r1 -> r2; 6 |||| xfer k1, r1 -> r3", "can start again in cycle 7" },
	/* two results at once, in registers and in memory */
	{ 9, "0 | const 0x1 -> r1; 2 || load s[1] -> r1", "two results are written to r1 in cycle 5" },
	{ 12, "0 | const 0x1 -> r1 || fetch d[1] -> s[7]; 6 || store r1 -> s[7]",
	  "two results are written to SRAM word 7 in cycle 8" },
	/* what a masked move keeps must be there */
	{ 12, "0 || load s[1] -> r1; 3 | int.lt r1, r1 -> c0; 8 | movem c0, r1 -> r2", "after the routine's" },
	{ 13, "0 || load s[1] -> r1; 3 | int.lt r1, r1 -> c0; 8 | movem c0, r1 -> r2",
	  "reads r2, which is undefined here" },
	{ 13,
	  "0 || load s[1] -> r1; 3 | int.lt r1, r1 -> c0; 8 | movem c0, r1 -> r2; "
	  "9 || load s[2] -> r2",
	  NULL },
};

typedef struct Parsed {
	const Machine *m;
	uint32_t lines;
	const char *text;
	Routine *r;
} Parsed;

static void add_gap(Buf *b, uint32_t from, uint32_t to)
{
	if (to > from)
		buf_printf(b, "... %u empty\n", to - from);
}

static void parse(Ctx *cx, void *arg)
{
	Parsed *p = arg;
	Buf b = { .arena = &cx->keep };
	uint32_t cycle = 0;
	buf_printf(&b, "routine rule\nlines %u\n", p->lines);
	for (const char *at = p->text; *at;) {
		size_t len = strcspn(at, ";");
		uint32_t here = (uint32_t)strtoul(at, NULL, 10), bars = 0;
		add_gap(&b, cycle, here);
		buf_add(&b, at, len);
		for (size_t i = 0; i < len; i++)
			bars += at[i] == '|';
		buf_printf(&b, "%s\n", &"||||"[bars]);
		cycle = here + 1;
		at += len + strspn(at + len, "; ");
	}
	add_gap(&b, cycle, p->lines);
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "rule", .text = b.s, .len = b.len };
	p->r = microcode_parse(cx, p->m, src);
}

static Routine *routine_of(Ctx *cx, const Machine *m, uint32_t lines, const char *text)
{
	Parsed p = { .m = m, .lines = lines, .text = text };
	if (guarded(cx, parse, &p) != MP_OK)
		print_error("%s", ctx_messages(cx));
	assert_non_null(p.r);
	return p.r;
}

static void expect_fault(Ctx *cx, const Machine *m, const Routine *r, const char *says, const char *about)
{
	const char *why = check_routine(cx, m, r);
	if (!says && why)
		print_error("%s\n%s\n", why, about);
	if (says && (!why || !strstr(why, says)))
		print_error("said: %s\nshould say: %s\n%s\n", why ? why : "nothing", says, about);
	assert_true(says ? why && strstr(why, says) : !why);
}

static void test_rules(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Machine m = toy_machine();
	for (size_t i = 0; i < COUNT(rules_of_machine); i++) {
		const Case *c = &rules_of_machine[i];
		expect_fault(&cx, &m, routine_of(&cx, &m, c->lines, c->text), c->says, c->text);
	}
	ctx_free(&cx);
}

/* Not expressible as text: numbers that do not exist. */
static void test_shape(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Machine m = toy_machine();
	Routine *r = routine_of(&cx, &m, 20,
	                        "0 | const 0x1 -> r1 | load s[1] -> r2 | fetch d[1] -> s[9]; "
	                        "6 | int.lt r1, r2 -> c0 ||| xfer k1, r1 -> r3");
	Micro *fetch = &r->line[0].slot[UNIT_DRAM], *load = &r->line[0].slot[UNIT_PORT];
	Micro *less = &r->line[6].slot[UNIT_ALU], *xfer = &r->line[6].slot[UNIT_SWITCH];
	expect_fault(&cx, &m, r, NULL, "as made");
	fetch->far.off = TOY_DRAM;
	expect_fault(&cx, &m, r, "rule: cycle 0, dram, fetch: offset 256 is outside the 256 words of DRAM", "far");
	fetch->far = (Addr){ TOY_BASES, 1 };
	expect_fault(&cx, &m, r, "there is no relocation register 3", "base");
	fetch->far = (Addr){ 0, 1 };
	load->mem.off = TOY_SRAM;
	expect_fault(&cx, &m, r, "words of SRAM", "near");
	load->mem.off = 0;
	load->dst = TOY_REGISTERS;
	expect_fault(&cx, &m, r, "there is no register 64", "register");
	load->dst = 2;
	less->cc = TOY_CONDITIONS;
	expect_fault(&cx, &m, r, "there is no condition code 8", "condition");
	less->cc = 0;
	xfer->k.u = 4;
	expect_fault(&cx, &m, r, "there is no switch configuration 4", "configuration");
	xfer->k.u = 0;
	less->op = GOP_LOAD;
	expect_fault(&cx, &m, r, "rule: cycle 6, alu, load: this operation belongs to unit port", "column");
	less->op = 200;
	expect_fault(&cx, &m, r, "there is no operation of number 200", "operation");
	less->op = GOP_NONE;
	m.block = 19;
	expect_fault(&cx, &m, r, "20 lines are more than the 19 of a block", "block");
	m.block = 20;
	m.alu_interval = 30;
	expect_fault(&cx, &m, r, "it is busy until cycle 30", "end");
	m.alu_interval = 1;
	m.sram_interval = 8;
	expect_fault(&cx, &m, r, "static memory in cycle 7 is busy until cycle 8", "SRAM interval");
	ctx_free(&cx);
}

/* ---- against a recording: x = s[1]; s[1] = x + 1; y = s[1]; s[b1+2] = y * x ---- */

static const Case against_recording[] = {
	{ 30,
	  "0 | const 0x1 -> r2 (1) | load s[1] -> r1 (0); 5 | iadd r1, r2 -> r3 (2); "
	  "10 || store r3 -> s[1] (3); 12 || load s[1] -> r4 (4); 15 | imul r4, r1 -> r3 (5); "
	  "20 || store r3 -> s[b1+2] (6)",
	  NULL },
	/* through a slot */
	{ 30,
	  "0 | const 0x1 -> r2 (1) | load s[1] -> r1 (0); 4 || store r1 -> s[200]; "
	  "5 | iadd r1, r2 -> r3 (2); 10 || store r3 -> s[1] (3); 11 || load s[200] -> r9; "
	  "12 || load s[1] -> r4 (4); 15 | imul r4, r9 -> r3 (5); 20 || store r3 -> s[b1+2] (6)",
	  NULL },
	{ 30,
	  "0 | const 0x1 -> r2 (1) | load s[1] -> r1 (0); 4 || store r1 -> s[200]; "
	  "5 | iadd r1, r2 -> r3 (2); 10 || store r3 -> s[1] (3); 11 || load s[201] -> r9; "
	  "12 || load s[1] -> r4 (4); 15 | imul r4, r9 -> r3 (5); 20 || store r3 -> s[b1+2] (6)",
	  "a spill slot that holds no value yet" },
	{ 30,
	  "0 | const 0x1 -> r2 (1) | load s[1] -> r1 (0); "
	  "5 | iadd r1, r2 -> r3 (2) | store r2 -> s[200]; 10 || store r3 -> s[1] (3); "
	  "11 || load s[200] -> r9; 12 || load s[1] -> r4 (4); 15 | imul r4, r9 -> r3 (5); "
	  "20 || store r3 -> s[b1+2] (6)",
	  "reads r9, which holds the result of const of recorded operation 1, not of load of recorded operation 0" },
	{ 30,
	  "0 | const 0x1 -> r2 (1) | load s[1] -> r1 (0); "
	  "5 | iadd r1, r2 -> r3 (2) | store r1 -> s[1]; 10 || store r3 -> s[1] (3); "
	  "12 || load s[1] -> r4 (4); 15 | imul r4, r1 -> r3 (5); 20 || store r3 -> s[b1+2] (6)",
	  "the spill slot is at an address that the routine uses" },
	{ 30,
	  "0 | const 0x1 -> r2 (1) | load s[1] -> r1 (0); "
	  "5 | iadd r1, r2 -> r3 (2) | store r1 -> s[b1+3]; 10 || store r3 -> s[1] (3); "
	  "12 || load s[1] -> r4 (4); 15 | imul r4, r1 -> r3 (5); 20 || store r3 -> s[b1+2] (6)",
	  "the spill slot is at a relocated address" },
	{ 30,
	  "0 | const 0x1 -> r2 (1) | load s[1] -> r1 (0); 5 | iadd r1, r2 -> r3 (2); "
	  "6 | fadd r1, r2 -> r7",
	  "was not recorded" },
	/* operands, old word of memory, missing, twice, another constant, address or operation */
	{ 30,
	  "0 | const 0x1 -> r2 (1) | load s[1] -> r1 (0); 5 | iadd r2, r1 -> r3 (2); "
	  "10 || store r3 -> s[1] (3); 12 || load s[1] -> r4 (4); 15 | imul r4, r1 -> r3 (5); "
	  "20 || store r3 -> s[b1+2] (6)",
	  "cycle 5, alu, iadd (recorded operation 2): it reads r2, which holds" },
	{ 30,
	  "0 | const 0x1 -> r2 (1) | load s[1] -> r1 (0); 5 | iadd r1, r2 -> r3 (2); "
	  "10 || store r3 -> s[1] (3); 11 || load s[1] -> r4 (4); 15 | imul r4, r1 -> r3 (5); "
	  "20 || store r3 -> s[b1+2] (6)",
	  "it reads memory in cycle 11, recorded operation 3, store, only in cycle 12" },
	{ 30, "0 | const 0x1 -> r2 (1) | load s[1] -> r1 (0)", "recorded operation 2, iadd, is not issued" },
	{ 30, "0 | const 0x1 -> r2 (1) | load s[1] -> r1 (0); 1 | const 0x1 -> r2 (1)",
	  "it was issued already, in cycle 0" },
	{ 30, "0 | const 0x2 -> r2 (1) | load s[1] -> r1 (0)", "0x00000001 was recorded, not 0x00000002" },
	{ 30, "0 || load s[2] -> r1 (0)", "its address differs from the recorded one" },
	{ 30, "0 || load s[1] -> r1 (1)", "the recorded operation is const" },
	{ 30, "0 || load s[1] -> r1 (7)", "only 7 operations were recorded" },
};

static void test_recording(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	Machine m = toy_machine();
	Gen *g = gen_record(&cx, &m, "rule");
	Reg x = g_load(g, (Addr){ 0, 1 }), one = g_const_bits(g, 1);
	g_store(g, (Addr){ 0, 1 }, g_op(g, GOP_IADD, x, one));
	Reg y = g_load(g, (Addr){ 0, 1 });
	g_store(g, (Addr){ 1, 2 }, g_op(g, GOP_IMUL, y, x));
	const Code *code = gen_end(g);
	for (size_t i = 0; i < COUNT(against_recording); i++) {
		const Case *c = &against_recording[i];
		Routine *r = routine_of(&cx, &m, c->lines, c->text);
		r->code = code;
		expect_fault(&cx, &m, r, c->says, c->text);
	}
	ctx_free(&cx);
}

/* ---- random schedules ---- */

typedef struct Wild {
	const Machine *m;
	const Code *code;
	Routine *r;
	uint32_t end;                      /* all results so far are there */
	uint16_t place[2][TOY_MOST];       /* of virtual registers and conditions */
	uint32_t needed[2][TOY_REGISTERS]; /* last operation that uses the value of a register */
	uint32_t used[2];                  /* places */
	Dice d;
} Wild;

static uint32_t last_use(const Code *code, bool cond, uint32_t number)
{
	for (uint32_t k = code->recs; k-- > 0;) {
		const Rec *r = &code->rec[k];
		unsigned uses = forms[ops[r->op].form].uses;
		if (cond ? uses & READS_CC && r->cc == number
		         : (uses & USES_A && r->a == number) || (uses & USES_B && r->b == number) ||
		               (uses & USES_DST && r->dst == number))
			return k;
	}
	return 0;
}

/* Any register whose word no later operation uses; the checker decides whether it is free in time. */
static uint32_t wild_place(Wild *w, bool cond, uint32_t rec, bool fresh)
{
	uint32_t p = fresh ? w->used[cond] : roll(&w->d, w->used[cond] + 1);
	return p < w->used[cond] && w->needed[cond][p] >= rec ? w->used[cond] : p;
}

static bool wild_put(Ctx *cx, Wild *w, uint32_t k, uint32_t t, bool fresh)
{
	const Rec *rec = &w->code->rec[k];
	unsigned uses = forms[ops[rec->op].form].uses;
	bool cond = uses & WRITES_CC, makes = (uses & USES_DST && ops[rec->op].form != FORM_MASKED) || cond;
	Micro *slot = &w->r->line[t].slot[ops[rec->op].unit];
	if (slot->op != GOP_NONE)
		return false;
	uint32_t place = makes ? wild_place(w, cond, k, fresh) : 0;
	if (makes)
		w->place[cond][rec->dst] = (uint16_t)place;
	*slot = (Micro){ .op = rec->op, .mem = rec->mem, .far = rec->far, .k = rec->k, .rec = k };
	slot->a = uses & USES_A ? w->place[0][rec->a] : 0;
	slot->b = uses & USES_B ? w->place[0][rec->b] : 0;
	slot->cc = (uint8_t)(uses & READS_CC ? w->place[1][rec->cc] : cond ? place : 0);
	slot->dst = uses & USES_DST ? w->place[0][rec->dst] : 0;
	if (check_routine(cx, w->m, w->r)) {
		*slot = (Micro){ .op = GOP_NONE, .rec = UINT32_MAX };
		return false;
	}
	uint32_t done = t + (uint32_t)op_latency(w->m, rec->op);
	w->end = done > w->end ? done : w->end;
	if (makes) {
		w->used[cond] += place == w->used[cond];
		w->needed[cond][place] = last_use(w->code, cond, rec->dst);
	}
	return true;
}

static bool wild_try(Ctx *cx, Wild *w, uint32_t k, bool tight)
{
	enum { TRIES = 12 };
	uint32_t tries = tight ? w->end + 8 : TRIES;
	for (uint32_t i = 0; i < tries; i++)
		if (wild_put(cx, w, k, tight ? i : roll(&w->d, w->end + 8), tight))
			return true;
	return wild_put(cx, w, k, w->end + 8, true);
}

/* Puts each operation of a program, in its order, into any cycle and register the checker does not object to, or
 * (tight) into the first such cycle; NULL where nothing but a fresh start helps. */
static Routine *wild_schedule(Ctx *cx, const Machine *m, const Code *code, uint64_t seed, bool tight)
{
	enum { ROOM = 60 };
	Code part = *code;
	Wild *w = NEW(&cx->keep, 1, Wild);
	Routine *r = w->r = NEW(&cx->keep, 1, Routine);
	*r = (Routine){ .name = "wild", .code = &part, .line = NEW(&cx->keep, TOY_MOST, Line) };
	w->m = m;
	w->code = code;
	w->d = (Dice){ seed, 1000000 };
	for (uint32_t t = 0; t < TOY_MOST; t++)
		for (int unit = 0; unit < UNITS; unit++)
			r->line[t].slot[unit] = (Micro){ .op = GOP_NONE, .rec = UINT32_MAX };
	for (uint32_t k = 0; k < code->recs; k++) {
		part.recs = k + 1;
		r->lines = w->end + ROOM;
		assert_true(r->lines < TOY_MOST);
		bool fine = wild_try(cx, w, k, tight);
		arena_free(&cx->scratch);
		if (!fine)
			return NULL;
	}
	r->code = code;
	r->lines = w->end + 2; /* static memory and banks are free again, too */
	return r;
}

static bool same_result(const Machine *m, const Routine *r, const Code *code, uint64_t seed)
{
	Memory recorded, scheduled;
	memory_fill(&recorded, seed);
	memory_fill(&scheduled, seed);
	run_recorded(code, &recorded);
	run_microwords(m, r, &scheduled);
	return memory_same(&recorded, &scheduled);
}

/* ---- changes ---- */

static Micro *any_micro(const Routine *r, Dice *d, uint32_t *cycle)
{
	for (;;) {
		*cycle = roll(d, r->lines);
		Micro *u = &r->line[*cycle].slot[roll(d, UNITS)];
		if (u->op != GOP_NONE)
			return u;
	}
}

static void swap_lines(Routine *r, Dice *d)
{
	uint32_t a, b = roll(d, r->lines);
	any_micro(r, d, &a);
	Line l = r->line[a];
	r->line[a] = r->line[b];
	r->line[b] = l;
}

static void swap_neighbours(Routine *r, Dice *d)
{
	uint32_t a;
	any_micro(r, d, &a);
	if (a + 1 < r->lines) {
		Line l = r->line[a];
		r->line[a] = r->line[a + 1];
		r->line[a + 1] = l;
	}
}

static void drop_line(Routine *r, Dice *d)
{
	uint32_t a = roll(d, r->lines);
	memmove(&r->line[a], &r->line[a + 1], (r->lines - a - 1) * sizeof *r->line);
	r->lines--;
}

/* An operation waits one to three cycles less for its operands. */
static void shorten_latency(Routine *r, Dice *d)
{
	uint32_t a, by = 1 + roll(d, 3);
	Micro *u = any_micro(r, d, &a);
	if (a < by)
		return;
	r->line[a - by].slot[ops[u->op].unit] = *u;
	*u = (Micro){ .op = GOP_NONE, .rec = UINT32_MAX };
}

static void move_operation(Routine *r, Dice *d)
{
	uint32_t a, to = roll(d, r->lines);
	Micro *u = any_micro(r, d, &a), was = *u;
	*u = (Micro){ .op = GOP_NONE, .rec = UINT32_MAX };
	r->line[to].slot[ops[was.op].unit] = was;
}

static void rename_register(Routine *r, Dice *d)
{
	uint32_t cycle, k;
	Micro *u;
	do {
		u = any_micro(r, d, &cycle);
		k = roll(d, 3);
	} while (!(forms[ops[u->op].form].uses & (unsigned[]){ USES_DST, USES_A, USES_B }[k]));
	uint16_t *field[] = { &u->dst, &u->a, &u->b };
	*field[k] = (uint16_t)(*field[k] + 1 + roll(d, 7)) % 16;
}

static void duplicate_operation(Routine *r, Dice *d)
{
	uint32_t a, to = roll(d, r->lines);
	Micro *u = any_micro(r, d, &a);
	r->line[to].slot[ops[u->op].unit] = *u;
}

static void change_address(Routine *r, Dice *d)
{
	uint32_t cycle;
	Micro *u;
	do
		u = any_micro(r, d, &cycle);
	while (!(forms[ops[u->op].form].uses & USES_MEM));
	u->mem.off = (u->mem.off + 1 + roll(d, 7)) % TOY_OFFSETS;
}

/* As if it were not of the recording but a spilled word's. */
static void forget_recording(Routine *r, Dice *d)
{
	uint32_t a;
	any_micro(r, d, &a)->rec = UINT32_MAX;
}

/* A word of the port's into a cycle in which the port is taken already. */
static void crowd_port(Routine *r, Dice *d)
{
	uint32_t a, b;
	Micro *u, *other;
	do {
		u = any_micro(r, d, &a);
		other = any_micro(r, d, &b);
	} while (u->op != GOP_LOAD || (other->op != GOP_XFER && other->op != GOP_LOOKUP && other->op != GOP_PUT));
	Micro was = *u;
	*u = (Micro){ .op = GOP_NONE, .rec = UINT32_MAX };
	r->line[b + (other->op == GOP_XFER ? 5 : 1)].slot[UNIT_PORT] = was;
}

static bool has_both(const Code *code)
{
	bool load = false, other = false;
	for (uint32_t k = 0; k < code->recs; k++) {
		load |= code->rec[k].op == GOP_LOAD;
		other |= code->rec[k].op == GOP_XFER || code->rec[k].op == GOP_LOOKUP || code->rec[k].op == GOP_PUT;
	}
	return load && other;
}

typedef struct Change {
	const char *name;
	void (*make)(Routine *r, Dice *d);
	uint32_t found, harmless;
} Change;

/* Changes a good schedule `times` in each way; what passes must still compute the same. */
static void try_changes(Ctx *cx, const Machine *m, const Routine *good, const Code *code, Change *change,
                        size_t changes, uint32_t times, Dice *d)
{
	Line *line = NEW(&cx->keep, good->lines, Line);
	for (size_t k = 0; k < changes; k++) {
		if (change[k].make == crowd_port && !has_both(code))
			continue;
		for (uint32_t i = 0; i < times; i++) {
			Routine bad = *good;
			bad.line = line;
			memcpy(line, good->line, good->lines * sizeof *line);
			change[k].make(&bad, d);
			if (check_routine(cx, m, &bad)) {
				change[k].found++;
			} else {
				change[k].harmless++;
				for (uint64_t seed = 0; seed < 3; seed++)
					assert_true(same_result(m, &bad, code, seed));
			}
			arena_free(&cx->scratch);
		}
	}
}

static const Change changes_made[] = {
	{ "swap two lines", swap_lines, 0, 0 },
	{ "swap neighbours", swap_neighbours, 0, 0 },
	{ "drop a line", drop_line, 0, 0 },
	{ "shorten a latency", shorten_latency, 0, 0 },
	{ "move an operation", move_operation, 0, 0 },
	{ "rename a register", rename_register, 0, 0 },
	{ "duplicate an operation", duplicate_operation, 0, 0 },
	{ "change an address", change_address, 0, 0 },
	{ "forget the recording", forget_recording, 0, 0 },
	{ "crowd the port", crowd_port, 0, 0 },
};

static void report_changes(const char *about, const Change *change)
{
	uint32_t found = 0, all = 0;
	for (size_t k = 0; k < COUNT(changes_made); k++) {
		print_message("%-8s%-24s %5u refused, %5u do the same\n", about, change[k].name, change[k].found,
		              change[k].harmless);
		assert_true(change[k].found > 0);
		found += change[k].found;
		all += change[k].found + change[k].harmless;
	}
	print_message("%-8s%u of %u refused, all others do the same\n", about, found, all);
	assert_true(found > all / 3);
}

static void change_wild(bool tight)
{
	Machine m = toy_machine();
	Change change[COUNT(changes_made)];
	memcpy(change, changes_made, sizeof change);
	for (uint64_t seed = 1; seed <= 15; seed++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Dice d = { seed, 2000000 };
		const Code *code = toy_program(&cx, &m, seed, 20);
		const Routine *r = NULL;
		for (uint64_t start = 0; !r; start++)
			r = wild_schedule(&cx, &m, code, seed + 100 * start, tight);
		expect_fault(&cx, &m, r, NULL, "wild");
		for (uint64_t k = 0; k < 5; k++)
			assert_true(same_result(&m, r, code, k));
		try_changes(&cx, &m, r, code, change, COUNT(change), 15, &d);
		ctx_free(&cx);
	}
	report_changes(tight ? "tight" : "wild", change);
}

static void test_wild(void **state)
{
	(void)state;
	change_wild(false);
}

static void test_tight(void **state)
{
	(void)state;
	change_wild(true);
}

/* ---- what the scheduler makes ---- */

typedef struct Scheduling {
	const Machine *m;
	Code *code;
	ScheduleOptions o;
	Routine *r;
} Scheduling;

static void schedule_it(Ctx *cx, void *arg)
{
	Scheduling *s = arg;
	s->r = schedule(cx, s->m, s->code, &s->o);
}

/* Few registers, so that words are spilled, or enough; bases that may overlap, or not. */
static void test_scheduled(void **state)
{
	(void)state;
	Change change[COUNT(changes_made)];
	memcpy(change, changes_made, sizeof change);
	uint32_t spills = 0, made = 0;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Machine m = toy_machine();
		m.registers = seed % 4 < 2 ? 14 : TOY_REGISTERS;
		Dice d = { seed, 2000000 };
		Scheduling s = { .m = &m,
			             .code = toy_program(&cx, &m, 1000 + seed, seed % 3 ? 60 : 25),
			             .o = { .level = (int)(seed / 4 % 2), .seconds = 0.002 } };
		s.code->bases_overlap = seed % 5 == 0;
		if (guarded(&cx, schedule_it, &s) == MP_OK) {
			expect_fault(&cx, &m, s.r, NULL, "scheduled");
			for (uint64_t k = 0; k < 5; k++)
				assert_true(same_result(&m, s.r, s.code, k));
			try_changes(&cx, &m, s.r, s.code, change, COUNT(change), 10, &d);
			spills += s.r->report.spills;
			made++;
		} else {
			print_message("%s", ctx_messages(&cx));
		}
		ctx_free(&cx);
	}
	print_message("%u routines, %u spills\n", made, spills);
	assert_true(made > 12 && spills > 0);
	report_changes("real", change);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules), cmocka_unit_test(test_shape), cmocka_unit_test(test_recording),
		cmocka_unit_test(test_wild),  cmocka_unit_test(test_tight), cmocka_unit_test(test_scheduled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
