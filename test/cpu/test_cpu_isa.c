/* SPDX-License-Identifier: MIT */
/* Which kernels this CPU can run, what MICROPROP_ISA chooses, tiny numbers between cpu_enter and cpu_leave,
 * ceilings. */
#include <fenv.h>

#include "test.h"

#include "bench.h"

static const char *const names[ISA_COUNT] = {
	[ISA_GENERIC] = "generic", [ISA_NEON] = "neon", [ISA_AVX2] = "avx2", [ISA_AVX512] = "avx512", [ISA_AMX] = "amx",
};

static void choose_body(Ctx *cx, void *arg) { *(int *)arg = isa_choose(cx); }

/* What MICROPROP_ISA=word chooses, NULL: unset; -1 and *message if that fails. */
static int chosen(const char *word, char *message, size_t room)
{
	int isa = -1;
	Ctx cx;
	if (word)
		setenv("MICROPROP_ISA", word, 1);
	else
		unsetenv("MICROPROP_ISA");
	ctx_init(&cx, NULL);
	Status status = guarded(&cx, choose_body, &isa);
	assert_int_equal(status, isa < 0 ? MP_BAD_INPUT : MP_OK);
	snprintf(message, room, "%s", ctx_messages(&cx));
	ctx_free(&cx);
	unsetenv("MICROPROP_ISA");
	return isa;
}

static void test_names(void **state)
{
	(void)state;
	for (int i = 0; i < ISA_COUNT; i++) {
		assert_string_equal(isa_name(i), names[i]);
		assert_true(!isa_has(i) || (isa_kern(i) && isa_half(i)));
	}
	assert_ptr_equal(isa_kern(ISA_AMX), isa_kern(ISA_AVX512));
	assert_ptr_equal(isa_kern(ISA_GENERIC), &kern_generic);
}

static void test_there(void **state)
{
	(void)state;
	assert_true(isa_has(ISA_GENERIC));
	for (int i = 1; i < ISA_COUNT; i++)
		assert_true(!isa_has(i) || isa_has(i - 1));
#if defined __x86_64__ && !defined MP_PORTABLE
	__builtin_cpu_init();
	bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	assert_int_equal(isa_has(ISA_AVX2), avx2);
	assert_int_equal(isa_has(ISA_AVX512), avx2 && __builtin_cpu_supports("avx512f") &&
	                                          __builtin_cpu_supports("avx512bw") &&
	                                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
#endif
}

static void test_choose(void **state)
{
	char said[500];
	int best = ISA_COUNT - 1;
	(void)state;
	while (!isa_has(best))
		best--;
	assert_int_equal(chosen(NULL, said, sizeof said), best);
	assert_int_equal(chosen("", said, sizeof said), best);
	for (int i = 0; i < ISA_COUNT; i++) {
		assert_int_equal(chosen(names[i], said, sizeof said), isa_has(i) ? i : -1);
		if (!isa_has(i))
			assert_non_null(strstr(said, "which this CPU or its kernel does not have"));
	}
	assert_int_equal(chosen("AVX2", said, sizeof said), -1);
	assert_non_null(strstr(said, "MICROPROP_ISA cannot be 'AVX2'"));
	assert_non_null(strstr(said, "one of: generic"));
}

/* Whatever the caller had set, it has again afterwards. */
static void test_tiny(void **state)
{
	volatile float tiny = 1e-40f, small = 1e-30f, one = 1, bit = 1e-10f;
	(void)state;
	fesetround(FE_UPWARD);
	unsigned before = cpu_enter();
#if (defined __x86_64__ || defined __aarch64__) && !defined MP_PORTABLE
	volatile float kept = tiny * one, made = small * small * 1e20f, sum = one + bit;
	cpu_leave(before);
	assert_true(kept == 0);
	assert_true(made == 0);
	assert_true(sum == 1);
#else
	cpu_leave(before);
#endif
	assert_int_equal(fegetround(), FE_UPWARD);
	volatile float upward = one + bit;
	fesetround(FE_TONEAREST);
	volatile float back = tiny * one;
	assert_true(upward > 1);
	assert_true(back > 0);
}

static void ceiling_body(Ctx *cx, void *arg)
{
	Cpus cpus = cpus_here(cx);
	(void)arg;
	assert_in_range(cpus.count, 1, 1 << 20);
	assert_true(ceiling_gflops(cx, &cpus, cpus.count + 1, ceiling_of(ISA_GENERIC)) > 0);
}

/* Twice the turns are twice the operations; every kernel that can run here runs. */
static void test_ceilings(void **state)
{
	Ctx cx;
	(void)state;
	for (int i = 0; i < ISA_COUNT; i++)
		if (isa_has(i)) {
			double operations = ceiling_of(i)(10);
			assert_true(operations > 0);
			assert_true(ceiling_of(i)(20) == 2 * operations);
		}
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, ceiling_body, NULL), MP_OK);
	ctx_free(&cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_there),    cmocka_unit_test(test_choose),
		cmocka_unit_test(test_tiny),  cmocka_unit_test(test_ceilings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
