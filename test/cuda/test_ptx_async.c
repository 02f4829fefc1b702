/* SPDX-License-Identifier: MIT */
/* The PTX emulator: copies of the device that take their time, fences between the two proxies, lanes that run ahead of
 * others. Each kernel works whenever its copies land; with one statement changed, it must be refused. */
#include "ptx_bench.h"

enum { SEEDS = 12 };

/* Words that threads have stored to global memory, and words of the input, copied to shared memory; each copy has an
 * mbarrier of its own. Then all that the copies read or wrote is overwritten. */
static const char staged[] =
	"mov.u32 %r3, dynamic; add.u32 %r4, %r3, 8; mov.u32 %r1, 512; mov.u32 %r9, 0; shl.b32 %r6, %tid, 2;\n"
	"add.u32 %r6, %r6, %r3; setp.eq.u32 %p1, %tid, 0; setp.eq.u32 %p4, %tid, 40; add.u32 %r5, %tid, 100;\n"
	"@%p1 mbarrier.init.shared.b64 [%r3], 1; @%p1 mbarrier.init.shared.b64 [%r4], 1;\n"
	"fence.proxy.async.shared::cta; st.global.u32 [%my_out+4096], %r5; fence.proxy.async.global; bar.sync 0;\n"
	"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512;\n"
	"@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 512;\n"
	"@%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3+16], [%out+4096], %r1, [%r3];\n"
	"@%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3+528], [%in+512], %r1, [%r4];\n"
	"first: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r9; @!%p2 bra first; ld.shared.u32 %r7, [%r6+16];\n"
	"second: mbarrier.try_wait.parity.shared.b64 %p2, [%r4], %r9; @!%p2 bra second; ld.shared.u32 %r8, [%r6+528];\n"
	"add.u32 %r7, %r7, %r8; st.global.u32 [%my_out], %r7; st.global.u32 [%my_out+4096], %tid;\n"
	"st.shared.u32 [%r6+528], %tid;";

/* Each block copies to the next one what cp.async has brought, and overwrites it when that block has it. */
static const char across[] =
	"mov.u32 %r1, 3; add.u32 %r2, %cta, 1; rem.u32 %r2, %r2, %r1; mov.u32 %r3, dynamic; mov.u32 %r9, 0;\n"
	"setp.eq.u32 %p1, %tid, 0; setp.eq.u32 %p4, %tid, 40; setp.eq.u32 %p5, %cta, 1; mov.u32 %r7, 512;\n"
	"@%p1 mbarrier.init.shared.b64 [%r3], 1; fence.proxy.async.shared::cluster;\n"
	"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
	"mapa.shared::cluster.u32 %r4, %r3, %r2; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512;\n"
	"shl.b32 %r6, %tid, 2; add.u32 %r6, %r6, %r3; cp.async.ca.shared.global [%r6+16], [%my_in], 4;\n"
	"cp.async.wait_all; fence.proxy.async.shared::cta; bar.sync 0;\n"
	"@%p4 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4+528], [%r3+16], %r7, [%r4];\n"
	"poll: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r9; @!%p2 bra poll; ld.shared.u32 %r5, [%r6+528];\n"
	"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
	"xor.b32 %r8, %tid, 127; st.shared.u32 [%r6+16], %r8; @%p5 st.global.u32 [%my_out], %r5;";

/* Copies to the same place in turns: where threads have read, the next copy needs a barrier before it, and no fence. */
static const char turns[] =
	"mov.u32 %r3, dynamic; mov.u32 %r1, 512; mov.u32 %r9, 0; mov.u32 %r7, 0; shl.b32 %r6, %tid, 2;\n"
	"add.u32 %r6, %r6, %r3; setp.eq.u32 %p1, %tid, 0; mov.u64 %d1, %in;\n"
	"@%p1 mbarrier.init.shared.b64 [%r3], 1; st.shared.u32 [%r6+16], %tid; fence.proxy.async.shared::cta; bar.sync 0;\n"
	"turn: @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512;\n"
	"@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3+16], [%d1], %r1, [%r3];\n"
	"and.b32 %r2, %r9, 1;\n"
	"poll: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r2; @!%p2 bra poll; ld.shared.u32 %r8, [%r6+16];\n"
	"add.u32 %r7, %r7, %r8; add.u64 %d1, %d1, 512; add.u32 %r9, %r9, 1; bar.sync 1;\n"
	"setp.lt.u32 %p3, %r9, 4; @%p3 bra turn; st.global.u32 [%my_out], %r7;";

static void async_start(Bench *b, const char *text, uint64_t seed, bool races)
{
	uint32_t blocks = text == across ? 3 : 1;

	bench_start(b, (EmulatorOptions){ .seed = seed, .races = races });
	b->l = (Launch){ .blocks = blocks, .threads = 128, .cluster = blocks, .shared = 1040 };
}

static void copies_land_at_any_time(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 2 * (uint64_t)SEEDS; seed++) {
		Bench b;
		uint64_t executed[2];
		for (uint32_t run = 0; run < 2; run++) { /* the same seed, the same run */
			async_start(&b, staged, seed, seed & 1);
			works(&b, staged);
			for (uint32_t i = 0; i < 128; i++)
				assert_int_equal(b.out[i], 100 + i + 128 + i);
			executed[run] = emulator_executed(b.e);
			ctx_free(&b.cx);
		}
		assert_int_equal(executed[0], executed[1]);
		async_start(&b, across, seed, seed & 1);
		works(&b, across);
		for (uint32_t i = 0; i < 128; i++)
			assert_int_equal(b.out[i], i);
		ctx_free(&b.cx);
		async_start(&b, turns, seed, seed & 1);
		works(&b, turns);
		for (uint32_t i = 0; i < 128; i++)
			assert_int_equal(b.out[i], 4 * i + 128 * 6);
		ctx_free(&b.cx);
	}
}

typedef struct Change {
	const char *text, *words;
	uint32_t n; /* of such statements: this one */
	const char *instead, *message;
} Change;

static void changed_fails(const Change *c, uint64_t seed, bool races)
{
	char text[3000];
	Bench b;

	async_start(&b, c->text, seed, races);
	assert_true(mutant(text, c->text, c->words, c->n, c->instead));
	fails(&b, text, c->message);
	ctx_free(&b.cx);
}

#define SOURCE \
	"@%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3+16], [%out+4096], %r1, [%r3];"
#define ACROSS \
	"@%p4 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4+528], [%r3+16], %r7, [%r4];"
#define ON_WAY  "a copy by cp.async.bulk in line "
#define CHANGED "the source of a copy was overwritten before the copy was complete"
#define NOTHING "a copy that nothing waited for"

/* When copies land as late as they can, without a look at races. */
static void late_copies(void **state)
{
	(void)state;
	static const Change rows[] = {
		{ staged, "@!%p2", 0, "", ON_WAY },
		{ staged, "@!%p2", 1, "", ON_WAY },
		{ staged, "mbarrier.try_wait", 0, "mbarrier.try_wait.parity.shared.b64 %p2, [%r4], %r9;", ON_WAY },
		{ staged, "mbarrier.try_wait", 1, "mbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r9;", ON_WAY },
		{ staged, "@%p4", 0, SOURCE "st.global.u32 [%my_out+4096], %tid;", CHANGED },
		{ staged, "@%p4", 0, SOURCE "bar.sync 0; st.shared.u32 [%r6+16], %tid;", ON_WAY },
		{ staged, "@%p4", 0, SOURCE SOURCE, ON_WAY },
		{ staged, "@%p4", 0, SOURCE "exit;", NOTHING },
		{ across, "@!%p2", 0, "", "shared word at" }, /* or not issued yet */
		{ across, "@%p4", 0, ACROSS "bar.sync 0; st.shared.u32 [%r6+16], %r9;", CHANGED },
		{ across, "@%p4", 0, ACROSS "exit;", NOTHING },
		{ turns, "@!%p2", 0, "", ON_WAY },
	};

	for (uint32_t i = 0; i < COUNT(rows); i++)
		changed_fails(&rows[i], 0, false);
}

#define NO_FENCE "a race: no fence.proxy.async lies between this copy and the write in line "
#define NO_INIT  "a race: no fence.proxy.async lies between this copy and mbarrier.init"

/* By any seed. */
static void fences_and_waits(void **state)
{
	(void)state;
	static const Change rows[] = {
		{ staged, "fence.proxy.async.shared", 0, "", NO_INIT },
		{ staged, "fence.proxy.async.shared", 0, "fence.proxy.async.global;", NO_INIT },
		{ staged, "fence.proxy.async.global", 0, "", NO_FENCE },
		{ staged, "fence.proxy.async.global", 0, "fence.proxy.async.shared::cta;", NO_FENCE },
		{ staged, "fence.proxy.async.global", 0, "@%p4 fence.proxy.async.global;", NO_FENCE }, /* of one warp of four */
		{ staged, "bar.sync", 0, "st.global.u32 [%my_out+4096], %r5; bar.sync 0;", NO_FENCE },
		/* on its way, or a race */
		{ staged, "mbarrier.try_wait", 0, "setp.eq.u32 %p2, %tid, %tid;", "shared word at" },
		{ staged, "mbarrier.try_wait", 1, "mbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r9;", "shared word at" },
		{ staged, "@%p4", 0, SOURCE "bar.sync 0; st.global.u32 [%my_out+4096], %r5;", "a race: nothing orders" },
		{ across, "fence.proxy.async.shared::cta", 0, "", NO_FENCE },
		{ across, "fence.proxy.async.shared::cta", 0, "fence.proxy.async.global;", NO_FENCE },
		{ across, "@%p4", 0, ACROSS "bar.sync 0; st.shared.u32 [%r6+16], %r9;", "a race: nothing orders" },
		{ turns, "fence.proxy.async", 0, "", NO_INIT },
		{ turns, "bar.sync 1", 0, "", "shared word at" },
		{ turns, "turn: @%p1", 0,
		  "turn: st.shared.u32 [%r6+16], %r7; bar.sync 0;\n"
		  "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512;",
		  NO_FENCE },
	};

	for (uint32_t i = 0; i < COUNT(rows); i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++)
			changed_fails(&rows[i], seed, true);
}

/* A fence of proxies may stand anywhere on the path from the store to the copy. */
static void fences_on_the_path(void **state)
{
	(void)state;
	static const Change rows[] = {
		{ staged, "fence.proxy.async.global", 0, "fence.proxy.async;", NULL },
		{ staged, "bar.sync", 0, "bar.sync 0; fence.proxy.async;", NULL },
		{ across, "bar.sync", 0, "bar.sync 0; @%p4 fence.proxy.async.shared::cta;", NULL },
		{ across, "fence.proxy.async.shared::cta", 0, "bar.sync 0; @%p1 fence.proxy.async;", NULL },
	};
	char text[3000];

	for (uint32_t i = 0; i < COUNT(rows); i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			Bench b;
			async_start(&b, rows[i].text, seed, true);
			assert_true(mutant(text, rows[i].text, rows[i].words, rows[i].n, rows[i].instead));
			works(&b, text);
			ctx_free(&b.cx);
		}
}

/* Lanes of warp 0 poll words that warp 1 stores in two parts; then they wait for an arrival of lane 0. */
static const char ahead[] =
	"mov.u32 %r3, dynamic; mov.u32 %r9, 0; setp.eq.u32 %p1, %tid, 0; @%p1 mbarrier.init.shared.b64 [%r3], 1; bar.sync "
	"0;\n"
	"setp.ge.u32 %p3, %tid, 32; @%p3 bra post;\n"
	"poll: ld.relaxed.gpu.global.u32 %r4, [%my_out]; setp.ne.u32 %p2, %r4, 0; @%p2 bra there; bra poll;\n"
	"there: @%p1 mbarrier.arrive.shared.b64 _, [%r3]; bar.warp.sync 0xffffffff;\n"
	"wait: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r9; @%p2 bra passed; bra wait;\n"
	"passed: add.u32 %r4, %r4, 1; st.global.u32 [%my_out+1024], %r4; bra end;\n"
	"post: setp.ge.u32 %p4, %tid, 40; sub.u64 %d1, %my_out, 128;\n"
	"@%p4 st.relaxed.gpu.global.u32 [%d1], %tid; @!%p4 st.relaxed.gpu.global.u32 [%d1], %tid;\n"
	"end: ret;";

static void lanes_run_ahead(void **state)
{
	(void)state;
	enum { RUNS = 64 };
	char text[3000];
	uint32_t hung = 0;

	assert_true(mutant(text, ahead, "bar.warp.sync", 0, ""));
	for (uint64_t seed = 1; seed <= RUNS; seed++)
		for (uint32_t kind = 0; kind < 3; kind++) { /* the kernel; without its statement; and without such lanes */
			Bench b;
			bench_start(&b, (EmulatorOptions){ .seed = seed, .ahead = kind < 2, .idle = 1 << 12 });
			b.l = (Launch){ .blocks = 1, .threads = 64, .shared = 1040 };
			b.text = kind ? text : ahead;
			bool works = guarded(&b.cx, launch, &b) == MP_OK;
			assert_true(works || (kind == 1 && strstr(ctx_messages(&b.cx), "ahead of others of their warp")));
			for (uint32_t i = 0; i < 32 && works; i++)
				assert_int_equal(b.out[256 + i], 33 + i);
			hung += !works;
			ctx_free(&b.cx);
		}
	assert_in_range(hung, 1, RUNS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_land_at_any_time), cmocka_unit_test(late_copies),
		cmocka_unit_test(fences_and_waits),        cmocka_unit_test(fences_on_the_path),
		cmocka_unit_test(lanes_run_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
