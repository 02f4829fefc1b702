/* SPDX-License-Identifier: MIT */
/* Arenas, growing text, sub-contexts, messages, nearest names, random numbers and the order of examples. */
#include <math.h>

#include "test.h"

static void blocks_are_zeroed_aligned_and_freed(void **state)
{
	(void)state;
	Meter m = { 0 };
	Ctx cx;
	ctx_init(&cx, &(Alloc){ meter_resize, &m });
	size_t sizes[] = { 0, 1, 15, 63, 64, 65, 1000, 16383, 16384, 65536, 1000000 };
	for (int round = 0; round < 50; round++) {
		for (size_t i = 0; i < COUNT(sizes); i++) {
			char *p = arena_alloc(&cx.keep, sizes[i], 1);
			assert_int_equal((uintptr_t)p % (sizes[i] < 64 ? 16 : 64), 0);
			for (size_t k = 0; k < sizes[i]; k++)
				assert_int_equal(p[k], 0);
			memset(p, 0xAA, sizes[i]);
		}
	}
	ctx_free(&cx);
	assert_int_equal(m.live, 0);
}

static void growing_keeps_what_was_there(void **state)
{
	(void)state;
	Meter m = { 0 };
	Ctx cx;
	ctx_init(&cx, &(Alloc){ meter_resize, &m });
	uint32_t *a = NULL, *b = NULL;
	size_t n = 0;
	for (size_t grown = 1; grown < 300000; grown = grown * 3 / 2 + 1) {
		a = arena_grow(&cx.keep, a, n, grown, sizeof *a);
		b = arena_grow(&cx.scratch, b, n, grown, sizeof *b);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(a[i], b[i]);
		for (size_t i = n; i < grown; i++) {
			assert_int_equal(a[i] | b[i], 0);
			a[i] = b[i] = (uint32_t)(i * 2654435761u);
		}
		n = grown;
	}
	assert_ptr_equal(arena_grow(&cx.keep, a, n, n - 1, sizeof *a), a);
	ctx_free(&cx);
	assert_int_equal(m.live, 0);
}

static void reserved_arrays_grow_one_by_one(void **state)
{
	(void)state;
	Meter m = { 0 };
	Ctx cx;
	ctx_init(&cx, &(Alloc){ meter_resize, &m });
	uint64_t *v = NULL, cap = 0;
	for (uint64_t n = 0; n < 5000; n++) {
		v = arena_reserve(&cx.keep, v, n, &cap, sizeof *v);
		assert_true(n < cap);
		v[n] = n * n;
	}
	for (uint64_t n = 0; n < 5000; n++)
		assert_int_equal(v[n], n * n);
	ctx_free(&cx);
	assert_int_equal(m.live, 0);
}

/* ---- sub-contexts ---- */

static void note_and_fail(Ctx *own, void *arg)
{
	NEW(&own->keep, 100000, char);
	note(own, NULL, "inside");
	if (arg)
		fail(own, MP_BAD_INPUT, "do it right", "wrong %s", (const char *)arg);
}

static void run_sub(Ctx *cx, void *arg) { with_subcontext(cx, note_and_fail, arg); }

/* Messages and failures reach the outer context, memory of the sub-context does not outlive the call. */
static void sub_contexts_forward_and_free(void **state)
{
	(void)state;
	static const char *const words[] = { NULL, "number" };
	for (size_t i = 0; i < COUNT(words); i++) {
		Meter m = { 0 };
		Ctx cx;
		ctx_init(&cx, &(Alloc){ meter_resize, &m });
		Status status = guarded(&cx, run_sub, (void *)(uintptr_t)words[i]);
		assert_int_equal(status, i ? MP_BAD_INPUT : MP_OK);
		assert_string_equal(ctx_messages(&cx),
		                    i ? "note: inside\nerror: wrong number\n  do it right\n" : "note: inside\n");
		assert_true(m.bytes < 200000);
		ctx_free(&cx);
		assert_int_equal(m.live, 0);
	}
}

/* Large blocks go at once, in any order; small ones with the arena. */
static void dropped_blocks_are_gone_once(void **state)
{
	(void)state;
	Meter m = { 0 };
	Ctx cx;
	ctx_init(&cx, &(Alloc){ meter_resize, &m });
	char *small = arena_alloc(&cx.keep, 100, 1), *large[5];
	for (size_t i = 0; i < COUNT(large); i++)
		large[i] = arena_alloc(&cx.keep, 100000 + i, 1);
	large[3] = arena_grow(&cx.keep, large[3], 100003, 200000, 1);
	long before = m.live;
	arena_drop(&cx.keep, small, 100, 1);
	arena_drop(&cx.keep, NULL, 100000, 1);
	assert_int_equal(m.live, before);
	small[99] = 1;
	arena_drop(&cx.keep, large[3], 200000, 1);
	arena_drop(&cx.keep, large[4], 100004, 1);
	arena_drop(&cx.keep, large[0], 100000, 1);
	assert_int_equal(m.live, before - 3);
	memset(large[1], 1, 100001);
	memset(large[2], 1, 100002);
	ctx_free(&cx);
	assert_int_equal(m.live, 0);
}

/* What is left of a block, large or no longer, keeps its bytes; it may be given to another arena, and go there. */
static void trimmed_and_given_blocks(void **state)
{
	(void)state;
	static const size_t sizes[][2] = { { 100, 50 },     { 100000, 99999 }, { 100000, 20000 },
		                               { 100000, 100 }, { 100000, 0 },     { 5000000, 4000000 } };
	Meter m = { 0 };
	Ctx cx;
	ctx_init(&cx, &(Alloc){ meter_resize, &m });
	for (size_t i = 0; i < COUNT(sizes); i++) {
		size_t had = sizes[i][0], left = sizes[i][1], before = m.bytes;
		unsigned char *p = arena_alloc(&cx.scratch, had, 1);
		for (size_t k = 0; k < had; k++)
			p[k] = (unsigned char)(k * 7 + i);
		p = arena_trim(&cx.scratch, p, had, left, 1);
		assert_int_equal((uintptr_t)p % (left < 64 ? 16 : 64), 0);
		if (had > 65536)
			assert_true(m.bytes < before + left + 65536 + 512);
		p = arena_move(&cx.scratch, &cx.keep, p, left, 1);
		for (size_t k = 0; k < left; k++)
			assert_int_equal(p[k], (unsigned char)(k * 7 + i));
		arena_free(&cx.scratch);
		for (size_t k = 0; k < left; k++)
			assert_int_equal(p[k], (unsigned char)(k * 7 + i));
		arena_drop(&cx.keep, p, left, 1);
	}
	ctx_free(&cx);
	assert_int_equal(m.live, 0);
	assert_int_equal(m.bytes, 0);
}

static void count_call(void *arg) { ++*(int *)arg; }

static void deferred_calls_run_once(void **state)
{
	(void)state;
	Ctx cx;
	int calls = 0;
	ctx_init(&cx, NULL);
	arena_defer(&cx.scratch, count_call, &calls);
	arena_defer(&cx.scratch, count_call, &calls);
	arena_free(&cx.scratch);
	assert_int_equal(calls, 2);
	ctx_free(&cx);
	assert_int_equal(calls, 2);
}

static void ask_too_much(Ctx *cx, void *arg)
{
	(void)arg;
	arena_alloc(&cx->keep, SIZE_MAX / 2, 8);
}

static void grow_too_much(Ctx *cx, void *arg)
{
	(void)arg;
	char *p = arena_alloc(&cx->keep, 10, 8);
	arena_grow(&cx->keep, p, 10, SIZE_MAX / 4, 8);
}

static void half_of_memory(Ctx *cx, void *arg)
{
	(void)arg;
	arena_alloc(&cx->keep, SIZE_MAX / 2 - 100, 1);
}

static void too_much_memory_unwinds_with_a_message(void **state)
{
	(void)state;
	void (*bodies[])(Ctx *, void *) = { ask_too_much, grow_too_much, half_of_memory };
	for (size_t i = 0; i < COUNT(bodies); i++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		assert_int_equal(guarded(&cx, bodies[i], NULL), MP_NO_MEMORY);
		assert_non_null(strstr(ctx_messages(&cx), "out of memory"));
		ctx_free(&cx);
	}
}

static void use_memory(Ctx *cx, void *arg)
{
	(void)arg;
	Buf b = { .arena = &cx->keep };
	for (int i = 0; i < 5000; i++)
		buf_printf(&b, "line %d\n", i);
	arena_defer(&cx->keep, count_call, NEW(&cx->keep, 1, int));
	note(cx, "nothing", "%s", b.s);
	fail(cx, MP_BAD_INPUT, "do better", "all is lost: %.20s", b.s);
}

static void every_failing_allocation_is_survived(void **state)
{
	(void)state;
	Status s = MP_NO_MEMORY;
	for (long n = 1; s == MP_NO_MEMORY; n++) {
		Meter m = { .fail_at = n };
		Ctx cx;
		ctx_init(&cx, &(Alloc){ meter_resize, &m });
		s = guarded(&cx, use_memory, NULL);
		assert_true(*ctx_messages(&cx));
		ctx_free(&cx);
		assert_int_equal(m.live, 0);
	}
	assert_int_equal(s, MP_BAD_INPUT);
}

/* ---- messages ---- */

static const char topo[] = "group a 3 input\nconnect \xC3\xA9 hiden -> out\r\nlast";
static const Src src = { .name = "net.topo", .text = topo, .len = sizeof topo - 1 };

static void two_errors(Ctx *cx, void *arg)
{
	(void)arg;
	error_at(cx, (Loc){ &src, 27 }, "did you mean 'hidden'?", "there is no group '%s'", "hiden");
	error_at(cx, (Loc){ &src, 1000 }, NULL, "the file ends here");
	note_at(cx, (Loc){ &src, 0 }, NULL, "it began here");
	check_errors(cx);
}

static void messages_show_place_line_and_caret(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_string_equal(ctx_messages(&cx), "");
	check_errors(&cx);
	assert_int_equal(guarded(&cx, two_errors, NULL), MP_BAD_INPUT);
	assert_string_equal(ctx_messages(&cx), "net.topo:2:12: error: there is no group 'hiden'\n"
	                                       "  connect \xC3\xA9 hiden -> out\n"
	                                       "            ^\n"
	                                       "  did you mean 'hidden'?\n"
	                                       "net.topo:3:5: error: the file ends here\n"
	                                       "  last\n"
	                                       "      ^\n"
	                                       "net.topo:1:1: note: it began here\n"
	                                       "  group a 3 input\n"
	                                       "  ^\n");
	ctx_free(&cx);
}

static void many_errors(Ctx *cx, void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000; i++)
		error_at(cx, (Loc){ &src, 0 }, NULL, "error %d", i);
}

static void too_many_errors_stop(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	assert_int_equal(guarded(&cx, many_errors, NULL), MP_BAD_INPUT);
	assert_non_null(strstr(ctx_messages(&cx), "error 19"));
	assert_null(strstr(ctx_messages(&cx), "error 20"));
	ctx_free(&cx);
}

static char wide[5000];

static void long_line(Ctx *cx, void *arg)
{
	(void)arg;
	Src s = { .name = "w", .text = wide, .len = sizeof wide };
	memset(wide, 'x', sizeof wide);
	wide[4000] = '!';
	fail_at(cx, (Loc){ &s, 4000 }, NULL, "here");
}

static void binary_place(Ctx *cx, void *arg)
{
	(void)arg;
	Src s = { .name = "b.npz", .text = "PK", .len = 2, .binary = true };
	fail_at(cx, (Loc){ &s, 1 }, NULL, "bad byte");
}

static void long_lines_are_cut_around_the_place(void **state)
{
	(void)state;
	Ctx cx;
	ctx_init(&cx, NULL);
	guarded(&cx, long_line, NULL);
	const char *line = strchr(ctx_messages(&cx), '\n') + 1, *caret = strchr(line, '\n') + 1;
	assert_true(strlen(line) < 400);
	assert_ptr_equal(strchr(line, '!') - line, (void *)(strchr(caret, '^') - caret));
	ctx_free(&cx);
	ctx_init(&cx, NULL);
	guarded(&cx, binary_place, NULL);
	assert_string_equal(ctx_messages(&cx), "b.npz:1:2: error: bad byte (at byte 1)\n");
	ctx_free(&cx);
}

static void nearest_names(void **state)
{
	(void)state;
	const char *names[] = { "hidden", "output", "letters", "momentum" };
	assert_string_equal(nearest_name("hiden", names, 4), "hidden");
	assert_string_equal(nearest_name("mometnum", names, 4), "momentum");
	assert_string_equal(nearest_name("letter", names, 4), "letters");
	assert_null(nearest_name("zzzz", names, 4));
	assert_null(nearest_name("", names, 4));
	assert_null(nearest_name("a-very-long-name-that-is-longer-than-forty-letters", names, 4));
}

/* ---- random numbers ---- */

static void numbers_never_change(void **state)
{
	(void)state;
	/* Philox 4x32-10 with key 0 and counter 0 (Random123's known-answer test): 6627e8d5 e169c58d ... */
	assert_true(random_u64(0, 0, 0) == 0xe169c58d6627e8d5u);
	assert_true(random_u64(1, STREAM_WEIGHTS, 0) != random_u64(1, STREAM_SHUFFLE, 0));
	double sum = 0;
	uint64_t count[10] = { 0 };
	for (uint64_t i = 0; i < 100000; i++) {
		double u = random_unit(7, STREAM_DATA, i);
		assert_true(u >= 0 && u < 1 && (double)(float)u == u);
		sum += u;
		count[random_below(7, STREAM_SPLIT, i, 10)]++;
	}
	assert_true(fabs(sum / 100000 - 0.5) < 0.005);
	for (int i = 0; i < 10; i++)
		assert_in_range(count[i], 9500, 10500);
}

static void order_is_a_permutation(void **state)
{
	(void)state;
	uint64_t sizes[] = { 1, 2, 5, 4095, 4096, 4097, 12022, 3 * 4096 };
	for (size_t s = 0; s < COUNT(sizes); s++) {
		Ctx cx;
		ctx_init(&cx, NULL);
		uint64_t n = sizes[s];
		uint8_t *seen = NEW(&cx.scratch, n, uint8_t);
		uint64_t *first = NEW(&cx.scratch, n, uint64_t);
		Order *o = order_new(&cx.keep, n, 1, true), *again = order_new(&cx.keep, n, 1, true);
		for (uint64_t epoch = 0; epoch < 3; epoch++) {
			uint64_t moved = 0;
			order_epoch(o, epoch);
			order_epoch(again, epoch);
			for (uint64_t i = 0; i < n; i++) {
				uint64_t e = order_at(o, i);
				assert_true(e < n && seen[e] == epoch);
				seen[e]++;
				moved += epoch && first[i] != e;
				first[i] = e;
			}
			if (n > 100 && epoch)
				assert_true(moved > n / 2);
			for (uint64_t i = n; i-- > 0;) /* any position, in any order */
				assert_int_equal(order_at(again, i), first[i]);
			for (uint64_t i = 0; i < n; i += 777) { /* runs over the ends of blocks */
				uint64_t run[777], count = n - i < 777 ? n - i : 777;
				order_copy(again, i, count, run);
				assert_memory_equal(run, first + i, count * sizeof *run);
			}
		}
		o = order_new(&cx.keep, n, 1, false);
		order_epoch(o, 5);
		for (uint64_t i = 0; i < n; i++)
			assert_int_equal(order_at(o, i), i);
		ctx_free(&cx);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_zeroed_aligned_and_freed),
		cmocka_unit_test(growing_keeps_what_was_there),
		cmocka_unit_test(dropped_blocks_are_gone_once),
		cmocka_unit_test(trimmed_and_given_blocks),
		cmocka_unit_test(deferred_calls_run_once),
		cmocka_unit_test(too_much_memory_unwinds_with_a_message),
		cmocka_unit_test(every_failing_allocation_is_survived),
		cmocka_unit_test(messages_show_place_line_and_caret),
		cmocka_unit_test(too_many_errors_stop),
		cmocka_unit_test(long_lines_are_cut_around_the_place),
		cmocka_unit_test(reserved_arrays_grow_one_by_one),
		cmocka_unit_test(sub_contexts_forward_and_free),
		cmocka_unit_test(nearest_names),
		cmocka_unit_test(numbers_never_change),
		cmocka_unit_test(order_is_a_permutation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
