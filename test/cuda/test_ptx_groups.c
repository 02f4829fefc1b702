/* SPDX-License-Identifier: MIT */
/* The PTX emulator: products of warpgroups, and each mistake in them that it must refuse. */
#include "ptx_bench.h"

enum { ROWS = 64, COLS = 16, DEEP = 16, HALVES = ROWS * DEEP, TILE = 64 };
/* Where halves are, in shared memory as in global: a and b by rows of 16 bytes in tiles, then both transposed. */
enum {
	AT_A = 0,
	AT_AT = HALVES,
	AT_B = 2 * HALVES,
	AT_BT = 2 * HALVES + COLS * DEEP,
	ALL = 2 * HALVES + 2 * COLS * DEEP
};

/* All halves to shared memory; tiles of a are 128 bytes apart in the depth, 256 across; likewise those of b. */
#define BEGIN                                                                                                       \
	"mov.u32 %r0, dynamic; shl.b32 %r1, %tid, 4; add.u32 %r1, %r1, %r0; mul.wide.u32 %d1, %tid, 16;\n"              \
	"add.u64 %d1, %d1, %in; cp.async.cg.shared.global [%r1], [%d1], 16;\n"                                          \
	"cp.async.cg.shared.global [%r1+2048], [%d1+2048], 16; cp.async.cg.shared.global [%r1+4096], [%d1+4096], 16;\n" \
	"cp.async.wait_all; fence.proxy.async.shared::cta; bar.sync 0; shr.u32 %r2, %r0, 4;\n"                          \
	"mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; mov.f32 %f4, %f0;\n"            \
	"mov.f32 %f5, %f0; mov.f32 %f6, %f0; mov.f32 %f7, %f0; mov.u32 %r9, 16;\n"                                      \
	"add.u32 %r3, %r2, 0x80000; mov.b64 %d2, {%r3, %r9}; add.u32 %r3, %r2, 0x80080; mov.b64 %d3, {%r3, %r9};\n"     \
	"add.u32 %r3, %r2, 0x80100; mov.b64 %d4, {%r3, %r9}; add.u32 %r3, %r2, 0x80120; mov.b64 %d5, {%r3, %r9};\n"     \
	"wgmma.fence.sync.aligned;\n"
#define SUMS    "{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}"
#define PRODUCT "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 " SUMS ", "
#define END                                                                                           \
	"wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; mul.wide.u32 %d6, %tid, 32;\n" \
	"add.u64 %d6, %d6, %out; st.global.v4.f32 [%d6], {%f0,%f1,%f2,%f3}; st.global.v4.f32 [%d6+16], "  \
	"{%f4,%f5,%f6,%f7};"
/* Operand a of a warp in registers: rows 16 q .. of a. */
#define FRAGMENTS                                                                                                     \
	"shr.u32 %r4, %tid, 5; shl.b32 %r4, %r4, 9; and.b32 %r5, %tid, 7; shl.b32 %r5, %r5, 4; add.u32 %r4, %r4, %r5;\n"  \
	"and.b32 %r5, %tid, 8; shl.b32 %r5, %r5, 5; add.u32 %r4, %r4, %r5; and.b32 %r5, %tid, 16; shl.b32 %r5, %r5, 3;\n" \
	"add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r0;\n"                                                                 \
	"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10,%r11,%r12,%r13}, [%r4];\n"

static uint16_t half_of_small(int x)
{
	float f = (float)x;
	uint32_t b;

	memcpy(&b, &f, sizeof b);
	return (uint16_t)(b >> 16);
}

/* Of a matrix of `deep` columns in tiles of 8 x 8. */
static uint32_t tiled(uint32_t row, uint32_t col, uint32_t deep)
{
	return (row / 8 * (deep / 8) + col / 8) * TILE + row % 8 * 8 + col % 8;
}

static int a_of(uint32_t row, uint32_t k) { return (int)(row * 7 + k * 3) % 11 - 5; }
static int b_of(uint32_t k, uint32_t col) { return (int)(k * 5 + col) % 9 - 3; }

static void bench_fill(Bench *t)
{
	bench_start(t, (EmulatorOptions){ .seed = 1, .races = true });
	t->l = (Launch){ .blocks = 1, .threads = 128, .shared = 3 * 128 * 16 };
	uint16_t *half = (uint16_t *)t->in;
	/* a transposed tile has the same place */
	for (uint32_t row = 0; row < ROWS; row++)
		for (uint32_t k = 0; k < DEEP; k++) {
			uint32_t tile = tiled(row, k, DEEP) / TILE * TILE;
			half[AT_A + tiled(row, k, DEEP)] = half[AT_AT + tile + k % 8 * 8 + row % 8] = half_of_small(a_of(row, k));
		}
	for (uint32_t col = 0; col < COLS; col++)
		for (uint32_t k = 0; k < DEEP; k++) {
			uint32_t tile = tiled(col, k, DEEP) / TILE * TILE;
			half[AT_B + tiled(col, k, DEEP)] = half[AT_BT + tile + k % 8 * 8 + col % 8] = half_of_small(b_of(k, col));
		}
}

static void products_of_warpgroups(void **state)
{
	/* products: how many are added to 1, or to nothing */
	static const struct {
		const char *text;
		int start, products;
	} rows[] = {
		{ BEGIN FRAGMENTS PRODUCT "{%r10,%r11,%r12,%r13}, %d4, 1, 1, 1, 0;" END, 1, 1 },
		{ BEGIN FRAGMENTS PRODUCT "{%r10,%r11,%r12,%r13}, %d5, 0, 1, 1, 1;" END, 0, 1 },
		{ BEGIN PRODUCT "%d2, %d4, 1, 1, 1, 0, 0;" END, 1, 1 },
		{ BEGIN PRODUCT "%d3, %d4, 0, 1, 1, 1, 0;" END, 0, 1 },
		{ BEGIN PRODUCT "%d2, %d5, 0, 1, 1, 0, 1;" PRODUCT "%d3, %d5, 1, 1, 1, 1, 1;" END, 0, 2 },
	};
	Bench t;

	(void)state;
	bench_fill(&t);
	for (size_t i = 0; i < COUNT(rows); i++) {
		works(&t, rows[i].text);
		const float *out = (const float *)t.out;
		for (uint32_t n = 0; n < 128 * 8; n++) {
			uint32_t lane = n / 8 % 32, row = n / 256 * 16 + lane / 4 + n / 2 % 2 * 8;
			uint32_t col = n / 4 % 2 * 8 + 2 * (lane % 4) + n % 2;
			int sum = 0;
			for (uint32_t k = 0; k < DEEP; k++)
				sum += a_of(row, k) * b_of(k, col);
			assert_true(out[n] == (float)(rows[i].start + rows[i].products * sum));
		}
	}
	ctx_free(&t.cx);
}

/* Operands come by cp.async: a store of threads, which products see after a fence of proxies. */
static void fences_before_products(void **state)
{
	static const char whole[] = BEGIN PRODUCT "%d2, %d4, 1, 1, 1, 0, 0;" END;
	char text[sizeof whole + 100], early[sizeof text + 100];
	Bench t;

	(void)state;
	bench_fill(&t);
	works(&t, whole);
	assert_true(mutant(text, whole, "fence.proxy", 0, ""));
	fails(&t, text, "no fence.proxy.async lies between this product and the write in line");
	assert_true(mutant(early, text, "cp.async.wait_all", 0, "fence.proxy.async; cp.async.wait_all;"));
	fails(&t, early, "no fence.proxy.async lies between this product and the write in line");
	assert_true(mutant(text, whole, "fence.proxy", 0, "fence.proxy.async.global;"));
	fails(&t, text, "no fence.proxy.async lies between this product and the write in line");
	assert_true(mutant(text, whole, "bar.sync", 0, "bar.sync 0; fence.proxy.async.shared::cta;"));
	works(&t, text);
	ctx_free(&t.cx);
}

static void mistakes_in_products(void **state)
{
	Bench t;

	(void)state;
	bench_fill(&t);
	fails(&t, BEGIN PRODUCT "%d2, %d4, 1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; add.rn.f32 %f9, %f0, %f0;",
	      "was never written");
	fails(&t, BEGIN PRODUCT "%d2, %d4, 1, 1, 1, 0, 0; wgmma.wait_group.sync.aligned 0; add.rn.f32 %f9, %f0, %f0;",
	      "was never written");
	fails(&t,
	      BEGIN PRODUCT "%d2, %d4, 1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.commit_group.sync.aligned;\n"
	                    "wgmma.wait_group.sync.aligned 2; add.rn.f32 %f9, %f0, %f0;",
	      "was never written");
	fails(&t, BEGIN "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f8,%f9,%f10,%f11}, %d2, %d4, 1, 1, 1, 0, 0;",
	      "a sum that the product adds to was never written");
	fails(&t, BEGIN "mov.b64 %d4, {%r3, 0x40000010};" PRODUCT "%d2, %d4, 1, 1, 1, 0, 0;", "swizzled");
	fails(&t,
	      BEGIN "and.b32 %r9, %tid, 1; add.u32 %r9, %r9, 16; mov.b64 %d4, {%r3, %r9};" PRODUCT
	            "%d2, %d4, 1, 1, 1, 0, 0;",
	      "not the same in all lanes");
	fails(&t, BEGIN "add.u32 %r3, %r2, 0x80180; mov.b64 %d4, {%r3, %r9};" PRODUCT "%d2, %d4, 1, 1, 1, 0, 0;",
	      "of .shared memory, which");
	fails(&t, BEGIN "setp.gt.u32 %p0, %tid, 3; @%p0 bra out; " PRODUCT "%d2, %d4, 1, 1, 1, 0, 0; out:", "and all must");
	fails(&t, BEGIN PRODUCT "%d2, %d4, 2, 1, 1, 0, 0;", "expected 0 or 1");
	fails(&t, BEGIN PRODUCT "%d2, %d4, 1, 0, 1, 0, 0;", "signs");
	fails(&t, "wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16 " SUMS ", %d2, %d4, 1, 1, 1, 0, 0;",
	      "is not known");
	fails(&t, "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " SUMS ", %d2, %d4, 1, 1, 1, 0, 0;", "more than 4");
	fails(&t, "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " SUMS ", %d2, %d4, 1, 1, 1, 0, 0;", "expected 16");
	ctx_free(&t.cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_of_warpgroups),
		cmocka_unit_test(fences_before_products),
		cmocka_unit_test(mistakes_in_products),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
