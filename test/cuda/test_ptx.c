/* SPDX-License-Identifier: MIT */
/* The PTX emulator: each instruction, and each mistake that it must refuse. */
#include <math.h>

#include "isa.h"
#include "ptx_bench.h"
#define FLUSH_BY_CPU 0
#include "flush.h"

static const EmulatorOptions plain = { 0 };

/* ---- each instruction ---- */

static void instructions(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint32_t want; /* in out[0], of lane 0 */
	} rows[] = {
		{ "add.u32 %r0, 7, -9;", -2u },
		{ "sub.s32 %r0, 5, 7;", -2u },
		{ "mul.lo.u32 %r0, 0x10001, 0x10003;", 0x10001u * 0x10003u },
		{ "mul.hi.u32 %r0, 0x80000000, 6;", 3 },
		{ "mul.hi.s32 %r0, -2, 3;", -1u },
		{ "mov.u64 %d1, 0x8000000000000000; mul.hi.u64 %d2, %d1, 6; cvt.u32.u64 %r0, %d2;", 3 },
		{ "mul.wide.u32 %d1, -1, 16; shr.u64 %d1, %d1, 32; cvt.u32.u64 %r0, %d1;", 15 },
		{ "mul.wide.s32 %d1, -1, 16; shr.s64 %d1, %d1, 3; cvt.u32.u64 %r0, %d1;", -2u },
		{ "mad.lo.s32 %r0, -3, 4, 5;", -7u },
		{ "mov.u64 %d1, 4; mad.wide.u32 %d2, 3, 5, %d1; cvt.u32.u64 %r0, %d2;", 19 },
		{ "mov.u64 %d1, 4; mad.wide.s32 %d2, -3, 5, %d1; cvt.s32.s64 %r0, %d2;", -11u },
		{ "mov.u64 %d1, 4; mad.lo.u64 %d2, %d1, %d1, 1; cvt.u32.u64 %r0, %d2;", 17 },
		{ "add.u64 %d1, 5, 6; sub.s64 %d1, %d1, 20; mul.lo.u64 %d1, %d1, -1; cvt.u32.u64 %r0, %d1;", 9 },
		{ "div.u32 %r0, -1, 16;", 0x0fffffff },
		{ "div.s32 %r0, -17, 4;", -4u },
		{ "rem.u32 %r0, 17, 5;", 2 },
		{ "rem.s32 %r0, -17, 5;", -2u },
		{ "mov.u64 %d1, 1000; div.u64 %d2, %d1, 7; rem.u64 %d3, %d1, 7; mad.lo.u64 %d2, %d2, 10, %d3; cvt.u32.u64 %r0, "
		  "%d2;",
		  1426 },
		{ "min.u32 %r0, -1, 3;", 3 },
		{ "min.s32 %r0, -1, 3;", -1u },
		{ "max.u32 %r0, -1, 3;", -1u },
		{ "max.s32 %r0, -1, 3;", 3 },
		{ "max.s64 %d0, -1, 3; min.u64 %d0, %d0, -1; min.s64 %d1, -5, %d0; max.u64 %d2, %d1, %d0; cvt.u32.u64 %r0, "
		  "%d2;",
		  -5u },
		{ "neg.s32 %r0, 3;", -3u },
		{ "abs.s32 %r0, -3;", 3 },
		{ "neg.s64 %d0, 3; cvt.u32.u64 %r0, %d0;", -3u },
		{ "and.b32 %r1, 0xff0, 0x0ff; or.b32 %r2, %r1, 1; xor.b32 %r3, %r2, 3; not.b32 %r0, %r3;", ~0xf2u },
		{ "and.b64 %d1, 0xff0, 0x0ff; or.b64 %d2, %d1, 1; xor.b64 %d3, %d2, 3; not.b64 %d4, %d3; cvt.u32.u64 %r0, %d4;",
		  ~0xf2u },
		{ "lop3.b32 %r0, 0xf0, 0xcc, 0xaa, 0x96;", 0xf0 ^ 0xcc ^ 0xaa },
		{ "shl.b32 %r0, 3, 4;", 48 },
		{ "shl.b32 %r0, 3, 32;", 0 },
		{ "shr.u32 %r0, -1, 28;", 15 },
		{ "shr.s32 %r0, -16, 2;", -4u },
		{ "shr.s32 %r0, -16, 99;", -1u },
		{ "mov.b64 %d0, 3; shl.b64 %d0, %d0, 33; shr.u64 %d0, %d0, 32; cvt.u32.u64 %r0, %d0;", 6 },
		{ "shf.l.wrap.b32 %r0, 0x80000001, 0x7, 1;", 15 },
		{ "shf.r.wrap.b32 %r0, 0x10, 0x1, 4;", 0x10000001 },
		{ "popc.b32 %r0, 0xf0f0;", 8 },
		{ "mov.b64 %d0, -1; popc.b64 %r0, %d0;", 64 },
		{ "clz.b32 %r0, 0x00010000;", 15 },
		{ "clz.b32 %r0, 0;", 32 },
		{ "brev.b32 %r0, 6;", 0x60000000 },
		{ "bfind.u32 %r0, 0x00010000;", 16 },
		{ "bfind.u32 %r0, 0;", -1u },
		{ "bfe.u32 %r0, 0x12345678, 8, 12;", 0x456 },
		{ "bfi.b32 %r0, 0xab, 0x11223344, 8, 8;", 0x1122ab44 },
		{ "prmt.b32 %r0, 0x33221100, 0x77665544, 0x7610;", 0x77661100 },
		{ "prmt.b32 %r0, 0x80, 0, 0x8880;", 0xffffff80 },
		{ "dp4a.u32.u32 %r0, 0x01020304, 0x01010102, 5;", 1 + 2 + 3 + 8 + 5 },
		{ "dp2a.lo.u32.u32 %r0, 0x10000002, 0xffff0103, 5;", 3 * 2 + 0x1000 + 5 },
		{ "mov.b64 %d0, {1, 2}; mov.b64 {%r1, %r2}, %d0; mad.lo.u32 %r0, %r2, 16, %r1;", 33 },
		{ "mov.u32 %r1, 0x00050003; mov.b32 {%h0, %h1}, %r1; mov.b32 %r0, {%h1, %h0};", 0x00030005 },
		{ "cvt.u16.u32 %h0, 0x12345; cvt.u32.u16 %r0, %h0;", 0x2345 },
		{ "cvt.s64.s32 %d0, -5; shr.u64 %d0, %d0, 60; cvt.u32.u64 %r0, %d0;", 15 },
		{ "cvt.rn.f32.s32 %f0, -7; mov.b32 %r0, %f0;", 0xc0e00000 },
		{ "cvt.rn.f32.u32 %f0, 0x1000001; mov.b32 %r0, %f0;", 0x4b800000 },
		{ "cvt.rn.f32.u64 %f0, 3; cvt.rzi.s32.f32 %r0, %f0;", 3 },
		{ "cvt.rzi.s32.f32 %r0, 0fC0200000;", -2u },
		{ "cvt.rni.s32.f32 %r0, 0f40600000;", 4 },
		{ "cvt.rzi.u32.f32 %r0, 0fC0200000;", 0 },
		{ "cvt.rzi.u32.f32 %r0, 0f7F800000;", -1u },
		{ "cvt.rni.f32.f32 %f0, 0f40200000; mov.b32 %r0, %f0;", 0x40000000 },
		{ "cvt.f64.f32 %g0, 0f3FC00000; add.rn.f64 %g1, %g0, %g0; cvt.rzi.s32.f64 %r0, %g1;", 3 },
		{ "cvt.rn.f64.s32 %g0, -3; mul.rn.f64 %g0, %g0, %g0; sqrt.rn.f64 %g0, %g0; neg.f64 %g0, %g0; cvt.rzi.s32.f64 "
		  "%r0, %g0;",
		  -3u },
		{ "mov.f64 %g0, 0d4008000000000000; div.rn.f64 %g1, %g0, %g0; fma.rn.f64 %g1, %g0, %g0, %g1; cvt.rn.f32.f64 "
		  "%f0, %g1; "
		  "mov.b32 %r0, %f0;",
		  0x41200000 },
		{ "mov.f64 %g0, 0d4008000000000000; sub.rn.f64 %g1, %g0, 0d4010000000000000; min.f64 %g2, %g0, %g1; abs.f64 "
		  "%g2, %g2; "
		  "max.f64 %g2, %g2, %g1; cvt.rzi.u32.f64 %r0, %g2;",
		  1 },
		{ "cvt.rn.f32.f64 %f0, 0d37F0000000000000; mov.b32 %r0, %f0;", 0x00200000 },     /* 2^-128 stays subnormal */
		{ "cvt.rn.ftz.f32.f64 %f0, 0dB7F0000000000000; mov.b32 %r0, %f0;", 0x80000000 }, /* or becomes zero */
		{ "ex2.approx.ftz.f32 %f0, 0fC0200000; mov.b32 %r0, %f0;", 0x3e3504f3 },         /* 2^-2.5 */
		{ "ex2.approx.ftz.f32 %f0, 0f43100000; mov.b32 %r0, %f0;", 0x7f800000 },
		{ "ex2.approx.ftz.f32 %f0, 0fC3000000; mov.b32 %r0, %f0;", 0 }, /* 2^-128 */
		{ "rcp.approx.ftz.f32 %f0, 0f40400000; mov.b32 %r0, %f0;", 0x3eaaaaab },
		{ "rcp.approx.ftz.f32 %f0, 0f7F800000; mov.b32 %r0, %f0;", 0 },
		{ "cvt.rn.bf16x2.f32 %r0, 0f3F800000, 0f40008000;", 0x3f804000 },
		{ "cvt.rn.bf16x2.f32 %r0, 0f3F800000, 0f40018000;", 0x3f804002 },
		{ "setp.lt.u32 %p0, 1, -1; selp.u32 %r0, 4, 5, %p0;", 4 },
		{ "setp.lt.s32 %p0, 1, -1; selp.b32 %r0, 4, 5, %p0;", 5 },
		{ "setp.hs.u32 %p0|%p1, 1, 1; selp.u32 %r1, 4, 5, %p0; selp.u32 %r2, 40, 50, %p1; add.u32 %r0, %r1, %r2;", 54 },
		{ "setp.eq.u32 %p0, 1, 1; setp.ne.and.u64 %p1, 1, 1, %p0; setp.ge.or.s64 %p2, -1, 1, !%p1; selp.u32 %r0, 4, 5, "
		  "%p2;",
		  4 },
		{ "mov.f32 %f0, 0f7FC00000; setp.lt.f32 %p0, %f0, %f0; setp.ltu.f32 %p1, %f0, %f0; setp.nan.f32 %p2, %f0, %f0; "
		  "setp.num.f32 %p3, %f0, %f0; setp.ne.f32 %p4, %f0, %f0; selp.u32 %r1, 1, 0, %p0; selp.u32 %r2, 2, 0, %p1; "
		  "selp.u32 %r3, 4, 0, %p2; selp.u32 %r4, 8, 0, %p3; selp.u32 %r5, 16, 0, %p4; add.u32 %r1, %r1, %r2; "
		  "add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4; add.u32 %r0, %r1, %r5;",
		  6 },
		{ "mov.f32 %f0, 0f7FC00000; min.NaN.ftz.f32 %f0, %f0, 0f3F800000; mov.b32 %r0, %f0;", 0x7fffffff },
		{ "mov.f32 %f0, 0f7FC00000; max.NaN.f32 %f0, 0f3F800000, %f0; mov.b32 %r0, %f0;", 0x7fffffff },
		{ "mov.f32 %f0, 0f40000000; min.NaN.ftz.f32 %f0, %f0, 0f3F800000; mov.b32 %r0, %f0;", 0x3f800000 },
		{ "setp.eq.f32 %p0, 0f00000001, 0f00000000; selp.u32 %r0, 1, 0, %p0;", 0 },
		{ "setp.eq.ftz.f32 %p0, 0f00000001, 0f00000000; selp.u32 %r0, 1, 0, %p0;", 1 },
		{ "setp.gt.f64 %p0, 0d4008000000000000, 0d4000000000000000; not.pred %p1, %p0; xor.pred %p2, %p0, %p1; "
		  "and.pred %p3, %p2, "
		  "%p0; or.pred %p4, %p3, %p1; mov.pred %p5, %p4; selp.u32 %r0, 1, 0, %p5;",
		  1 },
		/* registers share slots: a sum carried around a loop, one set in some turns only; lanes apart */
		{ "mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r5, 7; top: and.b32 %r3, %r1, 1; setp.eq.u32 %p0, %r3, 0; "
		  "@%p0 bra even; add.u32 %r4, %r5, %r1; even: @!%p0 add.u32 %r2, %r2, %r4; add.u32 %r1, %r1, 1; "
		  "setp.lt.u32 %p1, %r1, 10; @%p1 bra top; mov.u32 %r0, %r2;",
		  60 },
		{ "mov.u32 %r1, 3; mov.u32 %r2, 0; mov.u32 %r6, 5; top: setp.eq.u32 %p0, %r2, 1; @%p0 bra later; mov.u32 %r4, "
		  "%r6; later: add.u32 %r5, %r2, 9; add.u32 %r2, %r2, 1; mov.u32 %r6, %r5; setp.lt.u32 %p1, %r2, %r1; "
		  "@%p1 bra top; mad.lo.u32 %r0, %r4, 100, %r6;",
		  1011 },
		{ "and.b32 %r1, %tid, 1; setp.eq.u32 %p0, %r1, 0; mov.u32 %r2, 1; @%p0 bra even; add.u32 %r3, %tid, 1; "
		  "xor.b32 %r4, %r3, %tid; sub.u32 %r5, %r3, %tid; bra both; even: cvt.u64.u32 %d1, %tid; add.u64 %d2, %d1, 2; "
		  "cvt.u32.u64 %r6, %d2; sub.u32 %r5, %r6, %tid; sub.u32 %r5, %r5, 1; both: add.u32 %r0, %r5, %r2;",
		  2 },
		/* far more registers than instructions: these keep their slots */
		{ "{ .reg .u32 %x<1048576>; mov.u32 %x1048575, 5; add.u32 %r0, %x1048575, 1; }", 6 },
		{ "mov.u64 %d1, table; ld.global.v2.u32 {_, %r1}, [%d1]; ld.global.s32 %r2, [table+8]; add.u32 %r0, %r1, %r2;",
		  19 },
		{ "mov.u32 %r1, 0x80ff; st.shared.u16 [dynamic], %r1; ld.shared.u8 %r2, [dynamic]; ld.shared.s8 %r3, "
		  "[dynamic+1]; "
		  "add.u32 %r0, %r2, %r3;",
		  127 },
		{ "mov.b64 %d1, 0x100000002; st.shared.b64 [dynamic], %d1; ld.shared.v2.b32 {%r1, %r2}, [dynamic]; shl.b32 "
		  "%r1, %r1, 8; "
		  "or.b32 %r0, %r1, %r2;",
		  0x201 },
		{ "{ .reg .u32 %x; .local .align 4 .b32 mine[2]; mov.u32 %x, mine; st.local.u32 [%x+4], %tid; ld.local.u32 "
		  "%r0, "
		  "[mine+4]; }",
		  0 },
		{ "mov.u32 %r1, %laneid; mov.u32 %r2, %lanemask_gt; mov.u32 %r3, %ntid.x; add.u32 %r2, %r2, %r1; add.u32 %r0, "
		  "%r2, %r3;",
		  0xfffffffeu + 32 },
		{ "mov.u32 %r1, 5; st.shared.u32 [dynamic], %r1; bar.warp.sync -1; setp.eq.u32 %p0, %tid, 0; @%p0 "
		  "atom.shared.cas.b32 %r2, "
		  "[dynamic], 5, 9; @%p0 atom.shared.exch.b32 %r3, [dynamic], 20; @%p0 atom.shared.max.s32 %r4, [dynamic], -1; "
		  "@%p0 atom.shared.inc.u32 %r5, [dynamic], 20; @%p0 atom.shared.or.b32 %r6, [dynamic], 6; "
		  "@%p0 atom.shared.dec.u32 %r7, [dynamic], 7; @%p0 red.shared.and.b32 [dynamic], 12; @%p0 ld.shared.u32 %r0, "
		  "[dynamic]; "
		  "@!%p0 mov.u32 %r0, 0;",
		  4 },
		{ "shfl.sync.bfly.b32 %r0, %tid, 5, 31, -1;", 5 },
		{ "shfl.sync.down.b32 %r0|%p0, %tid, 4, 31, -1;", 4 },
		{ "shfl.sync.up.b32 %r0|%p0, %tid, 4, 0, -1; selp.u32 %r0, 9, 7, %p0;", 7 },
		{ "shfl.sync.idx.b32 %r0, %tid, 9, 0x1807, -1;", 1 },
		{ "setp.gt.u32 %p0, %tid, 27; vote.sync.ballot.b32 %r0, %p0, -1;", 0xf0000000 },
		{ "setp.gt.u32 %p0, %tid, 27; vote.sync.any.pred %p1, %p0, -1; vote.sync.all.pred %p2, !%p0, -1; selp.u32 %r1, "
		  "1, 0, "
		  "%p1; selp.u32 %r2, 2, 0, %p2; add.u32 %r0, %r1, %r2;",
		  1 },
		{ "and.b32 %r1, %tid, 3; match.any.sync.b32 %r0, %r1, -1;", 0x11111111 },
		{ "redux.sync.add.u32 %r0, %tid, -1;", 31 * 16 },
		{ "redux.sync.min.s32 %r0, -4, -1;", -4u },
		{ "setp.gt.u32 %p0, %tid, 27; bar.red.popc.u32 %r0, 0, %p0;", 4 },
		{ "setp.gt.u32 %p0, %tid, 27; bar.red.or.pred %p1, 0, !%p0; bar.red.and.pred %p2, 1, 32, %p0; selp.u32 %r1, 1, "
		  "0, %p1; "
		  "selp.u32 %r2, 2, 0, %p2; add.u32 %r0, %r1, %r2;",
		  1 },
		{ "mov.u32 %r0, 0; loop: add.u32 %r0, %r0, 3; setp.lt.u32 %p0, %r0, 30; @%p0 bra.uni loop;", 30 },
		{ "cvta.to.global.u64 %d1, %in; prefetch.global.L2 [%d1]; nanosleep.u32 20; membar.gl; "
		  "ld.global.nc.L1::no_allocate.v4.u32 "
		  "{%r1,%r2,%r3,%r4}, [%d1+16]; add.u32 %r0, %r1, %r4;",
		  11 },
	};
	Bench b;

	bench_start(&b, plain);
	b.l.shared = 64;
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

/* ---- floats, against those of this CPU and flush.h ---- */

enum { FLOATS = 1024, FLOAT_OPS = 8 };
#define FLAGS 0x3fu /* of MXCSR: exceptions so far */

/* A number near the edges: zeros, subnormals, the least normal numbers, ordinary ones, infinite, NaN. */
static uint32_t edge_float(uint64_t seed, uint64_t i)
{
	static const uint32_t exponent[] = { 0, 0, 1, 1, 2, 62, 63, 64, 65, 66, 102, 103, 126, 127, 128, 254 };
	uint64_t r = random_u64(seed, 1, i);
	uint32_t kind = (uint32_t)r % 64, mantissa = (uint32_t)(r >> 16) & 0x7fffff, sign = (uint32_t)(r >> 63) << 31;

	if (kind < 2)
		return sign | (kind ? 0x7f800000 : 0x7fc00000);
	if (kind < 20)
		mantissa = kind & 1 ? mantissa & 3 : 0x7fffff - (mantissa & 3);
	return sign | exponent[r >> 40 & 15] << 23 | mantissa;
}

static float float_of(uint32_t b)
{
	float f;
	memcpy(&f, &b, sizeof f);
	return f;
}

static uint32_t bits_of(float f)
{
	uint32_t b;
	memcpy(&b, &f, sizeof b);
	return f != f ? 0x7fffffff : b;
}

/* IEEE arithmetic, or with subnormal numbers flushed as flush.h does it. */
static uint32_t float_here(uint32_t op, bool ftz, float x, float y, float z)
{
	x = ftz ? f_flush(x) : x;
	y = ftz ? f_flush(y) : y;
	switch (op) {
	case 0: return bits_of(ftz ? f_add(x, y) : x + y);
	case 1: return bits_of(ftz ? f_sub(x, y) : x - y);
	case 2: return bits_of(ftz ? f_mul(x, y) : x * y);
	case 3: return bits_of(ftz ? f_div(x, y) : x / y);
	case 4: return bits_of(sqrtf(x));
	case 5: return bits_of(ftz ? f_fma(x, y, z) : fmaf(x, y, z));
	case 6: return bits_of(x != x ? y : y != y ? x : x == 0 && y == 0 ? (signbit(x) ? x : y) : x < y ? x : y);
	default: return bits_of(x != x ? y : y != y ? x : x == 0 && y == 0 ? (signbit(x) ? y : x) : x > y ? x : y);
	}
}

static void floats_text(char *text, size_t size, const char *ftz)
{
	static const char *const ops[] = { "add.rn", "sub.rn", "mul.rn", "div.rn", "sqrt.rn", "fma.rn", "min", "max" };
	size_t n =
		(size_t)snprintf(text, size,
	                     "ld.global.f32 %%f1, [%%my_in]; ld.global.f32 %%f2, [%%my_in+4096]; ld.global.f32 %%f3, "
	                     "[%%my_in+8192];\n");

	for (uint32_t i = 0; i < FLOAT_OPS; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s.f32 %%f0, %%f1%s%s; st.global.f32 [%%my_out+%u], %%f0;\n",
		                      ops[i], ftz, i == 4 ? "" : ", %f2", i == 5 ? ", %f3" : "", i * 4 * FLOATS);
}

static void floats(void **state)
{
	(void)state;
	char text[2000];
	Bench b;

	bench_start(&b, plain);
	b.out = emulator_alloc(b.e, FLOAT_OPS * FLOATS * sizeof *b.out);
	b.l.threads = FLOATS;
	for (uint64_t round = 0; round < 40; round++) {
		bool ftz = round & 1;
		for (uint64_t i = 0; i < 3 * FLOATS; i++)
			b.in[i] = edge_float(7 + round, i);
		floats_text(text, sizeof text, ftz ? ".ftz" : "");
		unsigned before = cpu_enter(), flushing = cpu_enter();
		works(&b, text); /* whatever the mode of the caller, who has it again afterwards */
		assert_int_equal(cpu_enter() & ~FLAGS, flushing & ~FLAGS);
		cpu_leave(before);
		for (uint32_t op = 0; op < FLOAT_OPS; op++)
			for (uint32_t i = 0; i < FLOATS; i++) {
				uint32_t x = b.in[i], y = b.in[i + FLOATS], z = b.in[i + 2 * FLOATS], got = b.out[op * FLOATS + i];
				uint32_t want = float_here(op, ftz, float_of(x), float_of(y), float_of(z));
				if (got != want) {
					print_error("op %u of %08x %08x %08x%s: %08x, here %08x\n", op, x, y, z, ftz ? ", ftz" : "", got,
					            want);
					assert_true(false);
				}
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
	"setp.eq.u32 %p4, %tid, 127; @%p4 st.global.u32 [%d1], %r3;\n"
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

/* Two buffers of 128 words: the next is copied while the last is added up. Every thread reads what another copied. */
static const char pipeline[] = "mov.u32 %r1, dynamic; shl.b32 %r2, %tid, 2; add.u32 %r3, %r1, %r2;\n"
							   "xor.b32 %r4, %tid, 127; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r1;\n"
							   "mov.u32 %r5, 0; mov.u32 %r6, 0; mov.u64 %d1, %my_in;\n"
							   "cp.async.ca.shared.global [%r3], [%d1], 4; cp.async.commit_group;\n"
							   "loop: add.u64 %d1, %d1, 512; xor.b32 %r3, %r3, 512;\n"
							   "cp.async.ca.shared.global [%r3], [%d1], 4; cp.async.commit_group;\n"
							   "cp.async.wait_group 1;\n"
							   "bar.sync 1, 128;\n"
							   "ld.shared.u32 %r7, [%r4]; add.u32 %r5, %r5, %r7; xor.b32 %r4, %r4, 512;\n"
							   "bar.sync 0;\n"
							   "add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 4; @%p1 bra loop;\n"
							   "st.global.u32 [%my_out], %r5;";

/* Flags instead of barriers: a release, and an acquire that polls. */
static const char flags[] = "setp.ne.u32 %p1, %cta, 0; @%p1 bra reader;\n"
							"st.global.u32 [%my_out+256], %tid; bar.sync 0;\n"
							"setp.ne.u32 %p2, %tid, 0; @%p2 bra end;\n"
							"st.release.gpu.global.u32 [%out], 1; bra end;\n"
							"reader:\n"
							"poll: ld.acquire.gpu.global.u32 %r1, [%out]; setp.eq.u32 %p3, %r1, 0; @%p3 bra poll;\n"
							"bar.warp.sync -1; ld.global.u32 %r2, [%my_out+256]; st.global.u32 [%my_out+512], %r2;\n"
							"end:";

/* Words that are their own flags, in two places that alternate: the thread that has read one resets it after it has
 * arrived at the barrier of this turn, so before others store to it in the turn after the next. */
static const char posted[] =
	"mov.u32 %r1, 0; mov.u32 %r2, 0; setp.ne.u32 %p1, %tid, 0; setp.eq.u32 %p4, %cta, 0; xor.b32 %r3, %cta, 1;\n"
	"mad.lo.u32 %r4, %cta, 256, 2048; mad.lo.u32 %r4, %tid, 4, %r4; mad.lo.u32 %r5, %r3, 256, 2048;\n"
	"mad.lo.u32 %r5, %tid, 4, %r5;\n"
	"turn: and.b32 %r6, %r1, 1;\n"
	"mad.lo.u32 %r7, %r6, 1024, %r4; cvt.u64.u32 %d1, %r7; add.u64 %d1, %d1, %out;\n"
	"mad.lo.u32 %r7, %r6, 1024, %r5; cvt.u64.u32 %d2, %r7; add.u64 %d2, %d2, %out;\n"
	"add.u32 %r8, %r1, 7; st.relaxed.gpu.global.u32 [%d1], %r8;\n"
	"poll: ld.relaxed.gpu.global.u32 %r8, [%d2]; setp.eq.u32 %p2, %r8, 0; @%p2 bra poll; add.u32 %r2, %r2, %r8;\n"
	"bar.sync 0; @!%p1 red.release.gpu.global.add.u32 [%out], 1;\n"
	"st.relaxed.gpu.global.u32 [%d2], 0;\n"
	"add.u32 %r1, %r1, 1; shl.b32 %r9, %r1, 1; @%p1 bra met;\n"
	"wait: ld.acquire.gpu.global.u32 %r8, [%out]; setp.lt.u32 %p3, %r8, %r9; @%p3 bra wait;\n"
	"met: bar.sync 1; setp.lt.u32 %p3, %r1, 4; @%p3 bra turn; @%p4 st.global.u32 [%my_out+256], %r2;";

static void mutants_are_caught(void **state)
{
	(void)state;
	static const struct {
		const char *text, *words, *instead;
		uint32_t count; /* of such statements */
		const char *message;
	} rows[] = {
		{ reduction, "bar.sync", "", 1, "shared word at" },
		{ meeting, "bar.sync", "", 2, "a race" },
		{ meeting, "fence", "", 2, "a race" },
		{ meeting, "fence", "fence.acq_rel.cta;", 2, "a race" },
		{ pipeline, "bar.sync", "", 2, "shared word at" },
		{ pipeline, "cp.async.wait", "", 1, "is on its way" },
		{ pipeline, "cp.async.wait", "cp.async.wait_group 2;", 1, "is on its way" },
		{ pipeline, "cp.async.commit", "", 2, "is on its way" },
		{ flags, "bar.sync", "", 1, "a race" },
		{ flags, "st.release", "st.relaxed.gpu.global.u32 [%out], 1;", 1, "a race" },
		{ flags, "ld.acquire", "ld.relaxed.gpu.global.u32 %r1, [%out];", 1, "a race" },
		{ flags, "ld.acquire", "ld.acquire.cta.global.u32 %r1, [%out];", 1, "a race" },
		{ flags, "ld.acquire", "ld.global.u32 %r1, [%out];", 1, "a race" },
		{ posted, "and.b32 %r6", "mov.u32 %r6, 0;", 1, "a race" },
		{ posted, "@!%p1 red.release", "@!%p1 red.relaxed.gpu.global.add.u32 [%out], 1;", 1, "a race" },
		{ posted, "bar.sync 1", "", 1, "a race" },
	};
	char text[3000];

	for (uint32_t i = 0; i < COUNT(rows); i++)
		for (uint64_t seed = 0; seed < 6; seed++) {
			Bench b;
			bench_start(&b, (EmulatorOptions){ .seed = seed, .races = true });
			bool pair = rows[i].text == flags || rows[i].text == posted;
			b.l = (Launch){ .blocks = pair ? 2 : rows[i].text == pipeline ? 1 : 3, .shared = 1024 };
			b.l.threads = pair ? 64 : 128;
			works(&b, rows[i].text);
			if (rows[i].text == pipeline)
				assert_int_equal(b.out[5], 4 * 122 + 128 * 6);
			if (rows[i].text == posted)
				assert_int_equal(b.out[64 + 5], 7 + 8 + 9 + 10);
			memset(b.out, 0, MOST * sizeof *b.out);
			for (uint32_t n = 0; n < rows[i].count; n++) {
				assert_true(mutant(text, rows[i].text, rows[i].words, n, rows[i].instead));
				fails(&b, text, rows[i].message);
				memset(b.out, 0, MOST * sizeof *b.out);
			}
			ctx_free(&b.cx);
		}
}

/* Blocks of a cluster write, meet at its barrier, read what the next block wrote; twice. Work between arriving and
 * waiting needs nothing of the others. */
static const char cluster[] =
	"mov.u32 %r9, 0; mov.u32 %r1, 3;\n"
	"again: add.u32 %r3, %cta, %r9; mad.lo.u32 %r2, %cta, 4, 64; cvt.u64.u32 %d1, %r2; add.u64 %d1, %d1, %out;\n"
	"setp.eq.u32 %p4, %tid, 127; @%p4 st.global.u32 [%d1], %r3;\n"
	"barrier.cluster.arrive.release.aligned; mul.lo.u32 %r8, %tid, 3; barrier.cluster.wait.acquire.aligned;\n"
	"add.u32 %r6, %cta, 1; rem.u32 %r6, %r6, %r1; mad.lo.u32 %r6, %r6, 4, 64; cvt.u64.u32 %d2, %r6;\n"
	"add.u64 %d2, %d2, %out; ld.global.u32 %r7, [%d2]; setp.eq.u32 %p5, %tid, 5;\n"
	"mad.lo.u32 %r8, %cta, 4, 128; cvt.u64.u32 %d3, %r8; add.u64 %d3, %d3, %out; @%p5 st.global.u32 [%d3], %r7;\n"
	"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
	"add.u32 %r9, %r9, 100; setp.lt.u32 %p1, %r9, 200; @%p1 bra again;";

/* A block writes to shared memory of the next one, which reads it after the barrier. */
static const char remote[] =
	"mov.u32 %r1, 3; add.u32 %r2, %cta, 1; rem.u32 %r2, %r2, %r1; mov.u32 %r3, 16; setp.eq.u32 %p4, %tid, 40;\n"
	"mapa.shared::cluster.u32 %r4, %r3, %r2; @%p4 st.shared::cluster.u32 [%r4+4], %cta;\n"
	"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
	"ld.shared.u32 %r5, [%r3+4]; mad.lo.u32 %r6, %cta, 4, 128; cvt.u64.u32 %d1, %r6; add.u64 %d1, %d1, %out;\n"
	"setp.eq.u32 %p5, %tid, 7; @%p5 st.global.u32 [%d1], %r5;\n"
	"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";

/* The same, counted at a barrier in that memory, which warps wait for. */
static const char counted[] =
	"mov.u32 %r1, 3; add.u32 %r2, %cta, 1; rem.u32 %r2, %r2, %r1; mov.u32 %r3, 16; setp.eq.u32 %p4, %tid, 40;\n"
	"setp.eq.u32 %p1, %tid, 0; @%p1 mbarrier.init.shared.b64 [%r3+16], 1; mov.u32 %r9, 0;\n"
	"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
	"mapa.shared::cluster.u32 %r4, %r3, %r2;\n"
	"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3+16], 4;\n"
	"@%p4 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4+4], %cta, [%r4+16];\n"
	"poll: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p2, [%r3+16], %r9; @!%p2 bra poll;\n"
	"ld.shared.u32 %r5, [%r3+4]; mad.lo.u32 %r6, %cta, 4, 128; cvt.u64.u32 %d1, %r6; add.u64 %d1, %d1, %out;\n"
	"setp.eq.u32 %p5, %tid, 7; @%p5 st.global.u32 [%d1], %r5;\n"
	"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";

/* Words of global memory that the device copies: a thread says how many bytes, another one asks for them. */
static const char bulk[] =
	"mov.u32 %r3, 16; mov.u32 %r9, 0; setp.eq.u32 %p1, %tid, 0; setp.eq.u32 %p4, %tid, 40;\n"
	"@%p1 mbarrier.init.shared.b64 [%r3], 1; fence.proxy.async; bar.sync 0;\n"
	"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 64; mov.u32 %r1, 64; fence.proxy.async.shared::cta;\n"
	"@%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3+16], [%in+32], %r1, [%r3];\n"
	"poll: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r9; @!%p2 bra poll;\n"
	"and.b32 %r4, %tid, 15; shl.b32 %r4, %r4, 2; ld.shared.u32 %r5, [%r4+32]; st.global.u32 [%my_out], %r5;";

/* From shared memory to that of the next block. */
static const char bulk_across[] =
	"mov.u32 %r1, 3; add.u32 %r2, %cta, 1; rem.u32 %r2, %r2, %r1; mov.u32 %r3, 16; setp.eq.u32 %p4, %tid, 40;\n"
	"setp.eq.u32 %p1, %tid, 0; @%p1 mbarrier.init.shared.b64 [%r3+16], 1; mov.u32 %r9, 0; mov.u32 %r7, 16;\n"
	"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
	"mapa.shared::cluster.u32 %r4, %r3, %r2; add.u32 %r8, %r4, 16;\n"
	"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3+16], 16;\n"
	"@%p1 st.shared.v4.u32 [%r3+32], {%cta, %cta, %cta, %cta}; bar.sync 0; fence.proxy.async.shared::cta;\n"
	"@%p4 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4+48], [%r3+32], %r7, [%r8];\n"
	"poll: mbarrier.try_wait.parity.shared.b64 %p2, [%r3+16], %r9; @!%p2 bra poll;\n"
	"ld.shared.u32 %r5, [%r3+60]; mad.lo.u32 %r6, %cta, 4, 128; cvt.u64.u32 %d1, %r6; add.u64 %d1, %d1, %out;\n"
	"setp.eq.u32 %p5, %tid, 7; @%p5 st.global.u32 [%d1], %r5;\n"
	"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";

static void bulk_copies(void **state)
{
	(void)state;
	char text[3000];

	for (uint64_t seed = 0; seed < 4; seed++) {
		Bench b;
		bench_start(&b, (EmulatorOptions){ .seed = seed, .races = true });
		b.l = (Launch){ .blocks = 1, .threads = 128, .shared = 96 };
		works(&b, bulk);
		for (uint32_t i = 0; i < 128; i++)
			assert_int_equal(b.out[i], 8 + i % 16);
		assert_true(mutant(text, bulk, "poll:", 0, "poll:"));
		fails(&b, text, ""); /* a race, or a word that was never written */
		assert_true(mutant(text, bulk, "mov.u32 %r1, 64", 0, "mov.u32 %r1, 60;"));
		fails(&b, text, "a copy of 60 bytes: a multiple of 16");
		assert_true(mutant(text, bulk, "mov.u32 %r1, 64", 0, "mov.u32 %r1, 128;"));
		fails(&b, text, "of .shared memory, which has 96");
		b.l = (Launch){ .blocks = 3, .threads = 128, .cluster = 3, .shared = 96 };
		works(&b, bulk_across);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(b.out[32 + i], (i + 2) % 3);
		assert_true(mutant(text, bulk_across, "poll:", 0, "poll:"));
		fails(&b, text, ""); /* a race, or a word that was never written */
		assert_true(mutant(text, bulk_across, "bar.sync 0", 0, ""));
		fails(&b, text, ""); /* likewise */
		ctx_free(&b.cx);
	}
}

static void remote_memory(void **state)
{
	(void)state;
	char text[3000];

	for (uint64_t seed = 0; seed < 8; seed++) {
		Bench b;
		bench_start(&b, (EmulatorOptions){ .seed = seed, .races = true });
		b.l = (Launch){ .blocks = 3, .threads = 128, .cluster = 3, .shared = 64 };
		works(&b, remote);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(b.out[32 + i], (i + 2) % 3);
		sprintf(text, "%.*s%s", (int)(strstr(remote, "barrier") - remote), remote, strstr(remote, "ld.shared"));
		fails(&b, text, ""); /* a race, or a word that was never written */
		assert_true(mutant(text, remote, "mov.u32 %r3, 16", 0, "mov.u32 %r3, 64;"));
		fails(&b, text, "of .shared memory, which has 64");
		assert_true(mutant(text, remote, "rem.u32", 0, "mov.u32 %r2, 3;"));
		fails(&b, text, "of a cluster of 3");
		assert_true(mutant(text, remote, "mov.u32 %r3, 16", 0, "mov.u32 %r3, 18;"));
		fails(&b, text, "are misaligned");
		works(&b, counted);
		assert_int_equal(b.out[33], 0);
		assert_true(mutant(text, counted, "poll:", 0, "poll:"));
		fails(&b, text, ""); /* a race, or a word that was never written */
		assert_true(mutant(text, counted, "@%p1 mbarrier.init", 0, ""));
		fails(&b, text, "was never written");
		ctx_free(&b.cx);
	}
}

static void clusters(void **state)
{
	(void)state;
	char text[3000];

	for (uint64_t seed = 0; seed < 8; seed++) {
		Bench b;
		bench_start(&b, (EmulatorOptions){ .seed = seed, .races = true });
		b.l = (Launch){ .blocks = 3, .threads = 128, .cluster = 3, .shared = 64 };
		works(&b, cluster);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(b.out[32 + i], 100 + (i + 1) % 3);
		assert_true(mutant(text, cluster, "barrier.cluster.wait", 0, ""));
		fails(&b, text, "again without having waited");
		assert_true(mutant(text, cluster, "barrier.cluster.arrive", 1, ""));
		fails(&b, text, "without having arrived");
		b.l.cluster = 1; /* each block is one of its own */
		fails(&b, cluster, "a race");
		b.l.cluster = 2;
		fails(&b, cluster, "in clusters of 2");
		b.l.cluster = 3;
		fails(&b,
		      "setp.eq.u32 %p1, %cta, 1; @%p1 bra end; barrier.cluster.arrive.release.aligned;\n"
		      "forever: setp.ne.u32 %p1, %cta, 7; barrier.cluster.wait.acquire.aligned; bra done;\n"
		      "end: barrier.cluster.wait.acquire.aligned; done:",
		      "without having arrived");
		fails(&b, "setp.gt.u32 %p0, %tid, 3; @%p0 bra out; barrier.cluster.arrive.release.aligned; out:",
		      "of the warp reach this barrier");
		ctx_free(&b.cx);
	}
}

/* Warps that write different bytes of one word do not race. */
static const char bytes_of_words[] =
	"mov.u32 %r1, dynamic; and.b32 %r2, %tid, 31; shl.b32 %r2, %r2, 2; shr.u32 %r3, %tid, 5;\n"
	"add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.shared.u8 [%r1], %r3; ld.shared.u8 %r4, "
	"[%r1];\n"
	"cvt.u64.u32 %d1, %tid; add.u64 %d1, %d1, %out; st.global.u8 [%d1], %r4;";

static void bytes_do_not_race(void **state)
{
	(void)state;
	Bench b;

	bench_start(&b, (EmulatorOptions){ .seed = 3, .races = true });
	b.l = (Launch){ .blocks = 1, .threads = 128, .shared = 128 };
	works(&b, bytes_of_words);
	assert_int_equal(b.out[9], 0x01010101);
	fails(&b, "shr.u32 %r3, %tid, 5; st.shared.u8 [dynamic], %r3;", "a race");
	ctx_free(&b.cx);
}

/* ---- tensor cores ---- */

/* In: a [16][16], its transpose, b [16][8], its transpose [8][16], all bf16. Out: a b + 1 from plain forms, and from
 * the transposed ones. */
static const char matrices[] =
	"mov.u32 %r0, dynamic; shl.b32 %r1, %tid, 4; add.u32 %r1, %r1, %r0; mul.wide.u32 %d1, %tid, 16; add.u64 %d1, %d1, "
	"%in;\n"
	"cp.async.cg.shared.global [%r1], [%d1], 16; cp.async.cg.shared.global [%r1+512], [%d1+512], 16;\n"
	"cp.async.cg.shared.global [%r1+1024], [%d1+1024], 16; cp.async.wait_all; bar.sync 0;\n"
	"and.b32 %r2, %tid, 15; shr.u32 %r3, %tid, 4; shl.b32 %r3, %r3, 4; mad.lo.u32 %r4, %r2, 32, %r3; add.u32 %r4, %r4, "
	"%r0;\n"
	"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10,%r11,%r12,%r13}, [%r4];\n"
	"mad.lo.u32 %r5, %r2, 16, %r0; ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14,%r15}, [%r5+1024];\n"
	"mov.f32 %f0, 0f3F800000;\n"
	"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r10,%r11,%r12,%r13}, {%r14,%r15},"
	" {%f0,%f0,%f0,%f0};\n"
	"mul.wide.u32 %d2, %tid, 16; add.u64 %d2, %d2, %out; st.global.v4.f32 [%d2], {%f1,%f2,%f3,%f4};\n"
	"and.b32 %r6, %tid, 7; shr.u32 %r7, %tid, 4; shl.b32 %r7, %r7, 3; add.u32 %r7, %r7, %r6; and.b32 %r8, %tid, 8;\n"
	"shl.b32 %r8, %r8, 1; mad.lo.u32 %r9, %r7, 32, %r8; add.u32 %r9, %r9, %r0;\n"
	"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r10,%r11,%r12,%r13}, [%r9+512];\n"
	"mad.lo.u32 %r9, %r6, 32, %r8; add.u32 %r9, %r9, %r0;\n"
	"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r14}, [%r9+1280]; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r15}, "
	"[%r9+1296];\n"
	"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r10,%r11,%r12,%r13}, {%r14,%r15},"
	" {%f0,%f0,%f0,%f0};\n"
	"st.global.v4.f32 [%d2+512], {%f1,%f2,%f3,%f4};";

static uint16_t half_of_small(int x)
{
	float f = (float)x;
	uint32_t b;

	memcpy(&b, &f, sizeof b);
	return (uint16_t)(b >> 16);
}

static void tensor_cores(void **state)
{
	(void)state;
	enum { ROWS = 16, COLS = 8, DEEP = 16 };
	int a[ROWS][DEEP], b[DEEP][COLS];
	uint16_t *half;
	float *out;
	Bench t;

	bench_start(&t, (EmulatorOptions){ .seed = 1, .races = true });
	t.l.shared = 1536;
	half = (uint16_t *)t.in;
	out = (float *)t.out;
	for (int i = 0; i < ROWS; i++)
		for (int k = 0; k < DEEP; k++) {
			a[i][k] = (i * 7 + k * 3) % 11 - 5;
			half[i * DEEP + k] = half[256 + k * ROWS + i] = half_of_small(a[i][k]);
		}
	for (int k = 0; k < DEEP; k++)
		for (int n = 0; n < COLS; n++) {
			b[k][n] = (k * 5 + n) % 9 - 3;
			half[512 + k * COLS + n] = half[640 + n * DEEP + k] = half_of_small(b[k][n]);
		}
	works(&t, matrices);
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < 4; i++) {
			int row = lane / 4 + 8 * (i / 2), col = 2 * (lane % 4) + i % 2, sum = 1;
			for (int k = 0; k < DEEP; k++)
				sum += a[row][k] * b[k][col];
			assert_true(out[4 * lane + i] == (float)sum);
			assert_true(out[128 + 4 * lane + i] == (float)sum);
		}
	fails(
		&t,
		"setp.gt.u32 %p0, %tid, 3; @%p0 bra out; mov.u32 %r0, dynamic; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, "
		"[%r0]; out:",
		"and all must");
	fails(&t, "mov.u32 %r0, dynamic; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r0+8];", "misaligned");
	fails(&t, "mov.u32 %r0, dynamic; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r0+64];", "was never written");
	ctx_free(&t.cx);
}

/* ---- what must be refused ---- */

static void texts_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ "add.f32 %f0, %f1, %f2;", "write .rn" },
		{ "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {_}, [%r3];", "every result here needs a register" },
		{ "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {_, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, "
		  "{%f0, %f1, %f2, %f3};",
		  "every result here needs a register" },
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
		{ "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r2}, {%f0,%f1,%f2,%f3};",
		  "not known" },
		{ "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r2}, {%f0,%f1,%f2,%f3};",
		  "expected 4 registers" },
		{ "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0,%r1}, [%r2];", "expected 4 registers" },
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
		/* other registers had its slot, if any could */
		{ "mov.u32 %r1, 1; add.u32 %r2, %r1, 1; add.u32 %r2, %r2, 1; setp.gt.u32 %p0, %tid, 3; @%p0 bra over; mov.u32 "
		  "%r3, "
		  "1; over: add.u32 %r0, %r3, 1;",
		  "never written (block 0, thread 4)" },
		{ "mov.u32 %r1, 1; top: add.u32 %r4, %r1, 1; setp.eq.u32 %p0, %r1, 2; @%p0 bra over; mov.u32 %r3, 1; over: "
		  "add.u32 "
		  "%r0, %r3, %r4; setp.lt.u32 %p1, %r1, 2; @%p1 add.u32 %r1, %r1, 1; @%p1 add.u32 %r5, %r4, 1; @%p1 bra top; "
		  "add.u32 %r6, %r5, 1; add.u32 %r7, %r8, %r6;",
		  "never written (block 0, thread 0)" },
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
		cmocka_unit_test(instructions), cmocka_unit_test(floats),
		cmocka_unit_test(grids),        cmocka_unit_test(mutants_are_caught),
		cmocka_unit_test(clusters),     cmocka_unit_test(remote_memory),
		cmocka_unit_test(bulk_copies),  cmocka_unit_test(bytes_do_not_race),
		cmocka_unit_test(tensor_cores), cmocka_unit_test(texts_refused),
		cmocka_unit_test(runs_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
