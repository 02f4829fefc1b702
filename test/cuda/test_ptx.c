/* SPDX-License-Identifier: MIT */
/* The PTX emulator: each instruction, and each mistake that it must refuse. */
#include <math.h>

#include "ptx.h"
#include "test.h"

enum { MOST = 4096 };

/* Kernel k(in, out): the preamble loads tid, both pointers and the address of this thread's word of each. */
static const char head[] =
	".version 7.0\n.target sm_80\n.address_size 64\n"
	".extern .shared .align 16 .b8 dynamic[];\n"
	".global .align 16 .b32 table[4] = { 10, 20, -1, 0x1f };\n"
	".visible .entry k(.param .u64 p_in, .param .u64 p_out, .param .u32 p_n)\n{\n"
	".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %d<16>; .reg .f32 %f<16>; .reg .f64 %g<8>;\n"
	".reg .u32 %tid, %cta, %n; .reg .u64 %in, %out, %my_in, %my_out; .reg .b16 %h<4>;\n"
	"mov.u32 %tid, %tid.x; mov.u32 %cta, %ctaid.x; ld.param.u32 %n, [p_n];\n"
	"ld.param.u64 %in, [p_in]; ld.param.u64 %out, [p_out];\n"
	"mul.wide.u32 %my_in, %tid, 4; add.u64 %my_out, %my_in, %out; add.u64 %my_in, %my_in, %in;\n";

typedef struct Bench {
	Ctx cx;
	EmulatorOptions opt;
	Emulator *e;
	uint32_t *in, *out; /* [MOST] of the device */
	Launch l;
	const char *text;
	uint32_t n;
} Bench;

static void bench_open(Bench *b, EmulatorOptions o)
{
	memset(b, 0, sizeof *b);
	ctx_init(&b->cx, NULL);
	b->opt = o;
	b->l = (Launch){ .blocks = 1, .threads = 32 };
}

static void make(Ctx *cx, void *arg)
{
	Bench *b = arg;

	b->e = emulator_new(cx, &b->opt);
	b->in = emulator_alloc(b->e, MOST * sizeof *b->in);
	b->out = emulator_alloc(b->e, MOST * sizeof *b->out);
	for (uint32_t i = 0; i < MOST; i++)
		b->in[i] = i, b->out[i] = 0;
}

static void launch(Ctx *cx, void *arg)
{
	Bench *b = arg;
	Buf text = { .arena = &cx->keep };
	void *param[] = { &b->in, &b->out, &b->n };

	buf_puts(&text, strstr(b->text, ".entry") ? "" : head);
	buf_puts(&text, b->text);
	buf_puts(&text, strstr(b->text, ".entry") ? "" : "\n}\n");
	Module *m = emulator_load(b->e, text.s, text.len);
	b->l.param = param;
	emulator_launch(b->e, emulator_kernel(m, "k"), &b->l);
	emulator_unload(m);
}

static void bench_start(Bench *b, EmulatorOptions o)
{
	bench_open(b, o);
	assert_int_equal(guarded(&b->cx, make, b), MP_OK);
}

static void works(Bench *b, const char *text)
{
	b->text = text;
	if (guarded(&b->cx, launch, b) != MP_OK) {
		print_error("%s\n%s\n", text, ctx_messages(&b->cx));
		assert_true(false);
	}
}

/* Fails with a message that has these words. */
static void fails(Bench *b, const char *text, const char *words)
{
	b->text = text;
	if (guarded(&b->cx, launch, b) == MP_OK || !strstr(ctx_messages(&b->cx), words)) {
		print_error("%s\nexpected: %s\nmessage: %s\n", text, words, ctx_messages(&b->cx));
		assert_true(false);
	}
	messages_drop(&b->cx, 0);
	b->cx.errors = 0;
}

static const EmulatorOptions plain = { 0 };

/* ---- each instruction ---- */

static void instructions(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint32_t want; /* in out[0], of lane 0 */
	} rows[] = {
		{ "mov.u32 %r1, 7; mov.u32 %r2, 5; sub.u32 %r0, %r2, %r1;", -2u },
	};
	Bench b;

	bench_start(&b, plain);
	for (uint32_t i = 0; i < COUNT(rows); i++) {
		char text[2000];
		snprintf(text, sizeof text, "%s st.global.u32 [%%my_out], %%r0;", rows[i].text);
		works(&b, text);
		if (b.out[0] != rows[i].want) {
			print_error("%s gives 0x%08x, not 0x%08x\n", rows[i].text, b.out[0], rows[i].want);
			assert_true(false);
		}
	}
	ctx_free(&b.cx);
}

/* Sum of a block by a tree in shared memory, then of all blocks by the last one to arrive. */
static const char reduction[] =
	"ld.global.u32 %r1, [%my_in]; mov.u32 %r2, dynamic; shl.b32 %r3, %tid, 2; add.u32 %r2, %r2, %r3;\n"
	"st.shared.u32 [%r2], %r1;\n"
	"mov.u32 %r4, 64;\n"
	"loop: bar.sync 0;\n"
	"setp.lt.u32 %p1, %tid, %r4;\n"
	"@!%p1 bra skip;\n"
	"shl.b32 %r5, %r4, 2; add.u32 %r5, %r5, %r2;\n"
	"ld.shared.u32 %r6, [%r5]; ld.shared.u32 %r7, [%r2]; add.u32 %r7, %r7, %r6; st.shared.u32 [%r2], %r7;\n"
	"skip: shr.u32 %r4, %r4, 1; setp.ne.u32 %p2, %r4, 0; @%p2 bra loop;\n"
	"bar.sync 0;\n"
	"setp.ne.u32 %p3, %tid, 0; @%p3 bra end;\n"
	"ld.shared.u32 %r8, [dynamic]; red.relaxed.gpu.global.add.u32 [%out], %r8;\n"
	"end: exit;";

/* All blocks meet at a counter that thread 0 polls, then read what another block wrote. */
static const char meeting[] =
	"mov.u32 %r1, %nctaid.x;\n"
	"mad.lo.u32 %r2, %cta, 4, 64; cvt.u64.u32 %d1, %r2; add.u64 %d1, %d1, %out;\n"
	"add.u32 %r3, %cta, 100; setp.ne.u32 %p1, %tid, 0;\n"
	"@!%p1 st.global.u32 [%d1], %r3;\n"
	"bar.sync 0;\n"
	"@%p1 bra met;\n"
	"fence.acq_rel.gpu; atom.relaxed.gpu.global.add.u32 %r4, [%out], 1;\n"
	"poll: ld.relaxed.gpu.global.u32 %r5, [%out]; setp.lt.u32 %p2, %r5, %r1; @%p2 bra poll;\n"
	"fence.acq_rel.gpu;\n"
	"met: bar.sync 0;\n"
	"add.u32 %r6, %cta, 1; rem.u32 %r6, %r6, %r1; mad.lo.u32 %r6, %r6, 4, 64; cvt.u64.u32 %d2, %r6; add.u64 %d2, %d2, "
	"%out;\n"
	"ld.global.u32 %r7, [%d2]; mad.lo.u32 %r8, %cta, 4, 128; cvt.u64.u32 %d3, %r8; add.u64 %d3, %d3, %out;\n"
	"@!%p1 st.global.u32 [%d3], %r7;";

static void grids(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		Bench b;
		bench_start(&b, (EmulatorOptions){ .seed = seed, .races = true });
		b.l = (Launch){ .blocks = 5, .threads = 128, .shared = 512 };
		works(&b, reduction);
		assert_int_equal(b.out[0], 5 * 127 * 64);
		b.out[0] = 0;
		works(&b, meeting);
		for (uint32_t i = 0; i < 5; i++)
			assert_int_equal(b.out[32 + i], 100 + (i + 1) % 5);
		ctx_free(&b.cx);
	}
}

/* ---- what must be refused ---- */

static void texts_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ "add.f32 %f0, %f1, %f2;", "write .rn" },
		{ "mul.ftz.f32 %f0, %f1, %f2;", "write .rn" },
		{ "nonsense.u32 %r0;", "nonsense.u32 is not known" },
		{ "add.u32 %r0, %r1, %d1;", "is .b64, the instruction takes .u32" },
		{ "add.rn.f32 %f0, %f1, 1;", "write 0fXXXXXXXX" },
		{ "add.u32 %r0, %r1, %r99;", "'%r99' is none" },
		{ "add.u32 %r0, %r1;", "expected ','" },
		{ "add.u32 %r0, %r1, 4294967296;", "too large" },
		{ "bra nowhere;", "no label nowhere" },
		{ "a: a: exit;", "two labels" },
		{ "ld.global.u32 %r0, [%r1];", "in a register of 64 bits" },
		{ "ld.global.u32 %r0, [%d1-4];", "expected ']'" },
		{ "ld.global.v4.f64 {%g0,%g1,%g2,%g3}, [%d1];", "not known" },
		{ "ld.global.v2.f32 {%f0,%f1,%f2}, [%d1];", "expected 2 registers" },
		{ "ld.release.gpu.global.u32 %r0, [%d1];", "not known" },
		{ "atom.global.add.f32 %f0, [%d1], %f1;", "depends on the schedule" },
		{ "cp.async.cg.shared.global [%r0], [%d0], 8;", "16 with .cg" },
		{ "add.u32 %r0, %tid.x, 1;", "'%tid.x' is none" },
		{ "/* no end", "comment without an end" },
		{ "setp.lt.b32 %p0, %r0, %r1;", "not known" },
	};
	Bench b;

	bench_start(&b, plain);
	for (uint32_t i = 0; i < COUNT(rows); i++)
		fails(&b, rows[i].text, rows[i].words);
	ctx_free(&b.cx);
}

static void runs_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ "add.u32 %r0, %r1, 1;", "never written (block 0, thread 0)" },
		{ "setp.gt.u32 %p0, %tid, 3; @%p0 mov.u32 %r1, 1; add.u32 %r0, %r1, 1;", "never written (block 0, thread 0)" },
		{ "@%p0 mov.u32 %r1, 1;", "the predicate was never written" },
		{ "ld.global.u32 %r0, [%in+16384];", "no allocation holds them" },
		{ "ld.global.v2.u32 {%r0,%r1}, [%my_in];", "misaligned (block 0, thread 1)" },
		{ "mov.u32 %r1, 0; st.global.u32 [%in+-4], %r1;", "no allocation holds them" },
		{ "ld.shared.u32 %r0, [dynamic+4];", "was never written" },
		{ "mov.u32 %r1, 1; st.shared.u32 [dynamic+256], %r1;", "of .shared memory, which has 256" },
		{ "mov.u32 %r1, 1; st.shared.u8 [dynamic], %r1; ld.shared.u16 %r0, [dynamic];", "was never written" },
		{ "setp.gt.u32 %p0, %tid, 3; @%p0 bra out; bar.sync 0; out:", "of the warp reach this barrier" },
		{ "bar.sync 1, 64;", "not whole warps of a block of 32" },
		{ "forever: bra forever;", "waits for nothing" },
		{ "trap;", "trap" },
		{ "setp.gt.u32 %p0, %tid, 3; @%p0 bra out; shfl.sync.bfly.b32 %r0, %tid, 1, 31, -1; out:",
		  "the mask is 0xffffffff" },
		{ "shfl.sync.idx.b32 %r0, %r1, 1, 31, -1;", "never written" },
		{ "cp.async.ca.shared.global [dynamic], [%in], 4; cp.async.commit_group; ld.shared.u32 %r0, [dynamic];",
		  "a copy by cp.async is on its way" },
		{ "cp.async.ca.shared.global [dynamic], [%in], 4; cp.async.wait_group 0; ld.shared.u32 %r0, [dynamic];",
		  "a copy by cp.async is on its way" },
		{ "mov.u32 %r0, 1; st.global.u32 [%in+8], %r0; ld.param.u32 %r0, [p_n+4];", "of .param memory, which has 20" },
	};
	Bench b;

	for (uint64_t seed = 0; seed < 3; seed++) {
		bench_start(&b, (EmulatorOptions){ .seed = seed, .idle = 10000 });
		b.l.shared = 256;
		for (uint32_t i = 0; i < COUNT(rows); i++)
			fails(&b, rows[i].text, rows[i].words);
		ctx_free(&b.cx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions),
		cmocka_unit_test(grids),
		cmocka_unit_test(texts_refused),
		cmocka_unit_test(runs_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
