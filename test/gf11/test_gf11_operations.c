/* SPDX-License-Identifier: MIT */
/* Operations in program order as text: what is printed reads back as the same operations, also from the comments of a
 * scheduled listing; what is wrong is reported with place and remedy.  Random programs: scheduled and executed by the
 * simulator they leave the memory that a sequential interpretation leaves. */
#include "gf11_toy.h"

#include "gf11_bench.h"

static Machine *machine; /* gf11 */

static Src *source(Ctx *cx, const char *text)
{
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "text", .text = text, .len = strlen(text) };
	return src;
}

static void same_code(const Code *a, const Code *b)
{
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->recs, b->recs);
	assert_int_equal(a->regs, b->regs);
	assert_int_equal(a->conds, b->conds);
	assert_int_equal(a->update, b->update);
	for (uint32_t i = 0; i < a->recs; i++) {
		const Rec *x = &a->rec[i], *y = &b->rec[i];
		unsigned uses = forms[ops[x->op].form].uses;
		assert_int_equal(x->op, y->op);
		assert_int_equal(x->dst, y->dst);
		assert_int_equal(x->a, y->a);
		assert_int_equal(x->b, y->b);
		assert_int_equal(x->cc, y->cc);
		assert_int_equal(x->mem.base, y->mem.base);
		assert_int_equal(x->mem.off, y->mem.off);
		assert_int_equal(x->far.base, y->far.base);
		assert_int_equal(x->far.off, y->far.off);
		if (uses & USES_K)
			assert_int_equal(x->k.u, y->k.u);
	}
}

/* ---- text and back ---- */

static void round_trip(Ctx *cx, Code *code)
{
	Buf text = { .arena = &cx->keep }, again = text, listing = text;
	operations_print(machine, code, &text);
	Code *read = operations_parse(cx, machine, source(cx, text.s));
	same_code(code, read);
	operations_print(machine, read, &again);
	assert_string_equal(text.s, again.s);
	const Routine *r = routine_schedule(cx, machine, read, 0);
	microcode_print(machine, r, &listing);
	same_code(code, operations_parse(cx, machine, source(cx, listing.s)));
}

static void library_body(Ctx *cx, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < routine_def_count; i++)
		round_trip(cx, routine_record(cx, machine, &routine_defs[i]));
}

static void library_routines(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, library_body, NULL), MP_OK);
	ctx_free(&cx);
}

/* A name that is written again is a new value; the old one goes on where it was read. */
static void names_body(Ctx *cx, void *arg)
{
	(void)arg;
	static const char text[] = "routine names # of values\n"
							   "const 1.5 -> x\r\n"
							   "const -7i -> n\n"
							   "const 0x00000001 -> bits\n\n"
							   "fadd x, x -> x\n"
							   "int.lt n, bits -> w\n"
							   "  movem w, x -> bits\n"
							   "store bits -> s[2000]\n"
							   "limit b1 8\n"
							   "lookup s[b1+3+n] -> x\n"
							   "put x -> s[b1+3+n]\n"
							   "overlap\nupdate";
	Code *c = operations_parse(cx, machine, source(cx, text));
	assert_string_equal(c->name, "names");
	assert_int_equal(c->recs, 9);
	assert_int_equal(c->regs, 5);
	assert_int_equal(c->conds, 1);
	assert_true(c->update && c->bases_overlap && c->index_limit[1] == 8);
	assert_true(c->rec[0].k.f == 1.5f && c->rec[1].k.i == -7 && c->rec[2].k.u == 1);
	assert_true(c->rec[3].a == 0 && c->rec[3].b == 0 && c->rec[3].dst == 3);
	assert_true(c->rec[5].dst == 2 && c->rec[5].a == 3);
	assert_true(c->rec[7].mem.base == 1 && c->rec[7].mem.off == 3 && c->rec[7].a == 1);
	assert_true(c->rec[8].a == 4 && c->rec[8].b == 1);
	assert_string_equal(c->reg_name[3], "x");
	round_trip(cx, c);
}

static void names_of_values(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, names_body, NULL), MP_OK);
	ctx_free(&cx);
}

/* ---- values ---- */

static void constants(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t len;
		uint32_t bits;
	} good[] = {
		{ "1.5", 3, 0x3fc00000 },         { "2", 1, 0x40000000 },
		{ "-0", 2, 0x80000000 },          { "7i", 2, 7 },
		{ "-1i", 3, 0xffffffff },         { "4294967295i", 11, 0xffffffff },
		{ "0x3F800000", 10, 0x3f800000 }, { "-2147483648i", 12, 1u << 31 },
		{ "1e2,", 3, 0x42c80000 },
	};
	static const char *const bad[] = { "", "x", "-", "0x", "0x100000000", "4294967296i", "-2147483649i", "i" };
	for (size_t i = 0; i < COUNT(good); i++) {
		Cell c;
		const char *end = good[i].text + strlen(good[i].text), *past = cell_read(good[i].text, end, &c);
		assert_ptr_equal(past, good[i].text + good[i].len);
		assert_int_equal(c.u, good[i].bits);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		const char *end = bad[i] + strlen(bad[i]), *past = cell_read(bad[i], end, &(Cell){ 0 });
		assert_true(!past || past < end);
	}
}

/* ---- errors ---- */

typedef struct Wrong {
	const char *text, *message;
} Wrong;

static void wrong_body(Ctx *cx, void *arg)
{
	const Wrong *w = arg;
	operations_parse(cx, machine, source(cx, w->text));
}

static void errors(void **state)
{
	(void)state;
	static const Wrong wrong[] = {
		{ "", "text:1:1: error: there is no operation in this text" },
		{ "load s[100] -> x\nfad x, x -> y", "text:2:1: error: there is no operation 'fad'" },
		{ "fadd x, x -> y", "text:1:6: error: register x is read before any operation writes it" },
		{ "load s[1] -> x\nselect x, x, x -> y",
		  "text:2:8: error: condition x is read before any operation writes it" },
		{ "load s[16384] -> x", "text:1:8: error: offset 16384 is too large" },
		{ "load s[b99+1] -> x", "text:1:9: error: base 99 is too large" },
		{ "load s[1] - x", "text:1:11: error: expected '->', found '-'" },
		{ "load s[1] ->", "text:1:13: error: expected a register here" },
		{ "load s[1] -> x y", "text:1:16: error: load needs nothing more" },
		{ "const 1.5.5 -> x", "text:1:7: error: this is no constant" },
		{ "xfer k4000, x -> y", "text:1:7: error: configuration 4000 is too large" },
		{ "limit 4 4", "text:1:7: error: expected 'b', found '4'" },
		{ "routine", "text:1:8: error: the routine has no name" },
		{ "update it", "text:1:8: error: unexpected text at the end of the line" },
		{ "load s[1] -> x\x01", "text:1:15: error: " },
		{ "routine a\nlines 1\n0 | | load s[1] -> r0 @4 (0) | | # load s[1] -> x\n0 | | load s[1] -> r0 (0) | | # load "
		  "s[1] "
		  "-> x",
		  "recorded operation 0 is here twice" },
		{ "routine a\nlines 1\n0 | fneg r0 -> r0 (0) | load s[1] -> r0 @4 (0) | | # load s[1] -> x",
		  "the comment of this line does not have this operation" },
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Wrong one = wrong[i];
		assert_int_equal(guarded(&cx, wrong_body, &one), MP_BAD_INPUT);
		if (!strstr(ctx_messages(&cx), wrong[i].message))
			print_error("'%s' is reported as\n%s", wrong[i].text, ctx_messages(&cx));
		assert_non_null(strstr(ctx_messages(&cx), wrong[i].message));
		ctx_free(&cx);
	}
}

/* ---- random programs ---- */

enum { PROGRAMS = 30, PROCS = 5 };

static void random_body(Ctx *cx, void *arg)
{
	uint64_t seed = *(uint64_t *)arg;
	Buf text = { .arena = &cx->keep };
	Code *code = toy_program(cx, machine, seed, 20 + (uint32_t)seed * 5);
	operations_print(machine, code, &text);
	const WorkbenchSpec spec = { .m = machine, .procs = PROCS, .threads = 1 };
	uint64_t sum[3];
	for (int way = 0; way < 3; way++) {
		Workbench *b = bench_open(cx, NULL, source(cx, text.s), &spec);
		assert_non_null(b->r->code);
		assert_true(b->r->report.checked);
		if (way == 0) {
			Gen *g = gen_simulate(cx, b->w->p, b->k->base);
			gen_replay(g, b->r->code);
			gen_end(g);
		} else if (way == 1)
			controller_call(b->k, 0);
		else
			while (bench_step(b))
				;
		sum[way] = runner_checksum(b->w);
	}
	assert_int_equal(sum[0], sum[1]);
	assert_int_equal(sum[0], sum[2]);
}

static void random_programs(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		Status s = guarded(&cx, random_body, &seed);
		if (s != MP_OK)
			print_error("seed %d: %s", (int)seed, ctx_messages(&cx));
		assert_int_equal(s, MP_OK);
		ctx_free(&cx);
	}
}

static void open_machine(Ctx *cx, void *arg)
{
	(void)arg;
	machine = machine_open(cx, "gf11");
}

int main(void)
{
	Ctx cx;
	ctx_init(&cx, NULL);
	if (guarded(&cx, open_machine, NULL) != MP_OK)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(library_routines), cmocka_unit_test(names_of_values), cmocka_unit_test(constants),
		cmocka_unit_test(errors),           cmocka_unit_test(random_programs),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	ctx_free(&cx);
	return failed;
}
