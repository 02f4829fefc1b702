/* SPDX-License-Identifier: MIT */
/* What must hold for any network and data: names and order of units, order and weight of cases, cuts of a batch, zero
 * inputs, frozen links, storage of the inputs, stopping. */
#include <math.h>

#include "toy.h"

enum { LINKS = 100, CASES = 1500 }; /* three leaves */

static const char plain[] = "group x 3 input\ngroup h 5\ngroup k 2 tanh\ngroup o 2 output\n"
							"connect x, true -> h\nconnect x[0], h -> k\nconnect h, k, true -> o\nconnect h -> h\n";

static float xs[CASES * 3], ys[CASES * 2];

static int fill_data(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < COUNT(xs); i++)
		xs[i] = (float)(2 * random_unit(1, STREAM_DATA, i) - 1);
	for (uint32_t i = 0; i < COUNT(ys); i++)
		ys[i] = i % 7 == 3 ? NAN : random_unit(2, STREAM_DATA, i) < 0.5 ? 0.0f : 1.0f;
	return 0;
}

static void open_plain(Toy *t, uint64_t cases)
{
	toy_open(t, plain);
	toy_bind(t, cases, xs, ys);
	toy_weights(t, 3, 1);
	assert_true(t->net->links <= LINKS);
}

static void assert_near(const double *a, const double *b, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		assert_true(fabs(a[i] - b[i]) <= 1e-12 * (1 + fabs(a[i])));
}

static void update(Toy *t, uint64_t number)
{
	Update u;
	update_fill(&t->net->options, number, 0, 0, &u);
	target_ref.apply(t->program, &u);
}

/* ---- units ---- */

/* Do both links go between the same units?  By name, but unit i of h in the one is unit 4 - i in the other. */
static bool same_link(const Net *a, uint64_t i, Unit to_a, const Net *b, uint64_t j, Unit to_b)
{
	char name[4][40];
	net_unit_name(a, net_source(a, net_target(a, i), i), name[0], 40);
	net_unit_name(a, to_a, name[1], 40);
	net_unit_name(b, net_source(b, net_target(b, j), j), name[2], 40);
	net_unit_name(b, to_b, name[3], 40);
	for (int k = 0; k < 2; k++)
		if (name[k][0] == 'h')
			name[k][2] = (char)('0' + '4' - name[k][2]);
	return strcmp(name[0], name[2]) == 0 && strcmp(name[1], name[3]) == 0;
}

static uint64_t find_link(const Net *a, uint64_t i, Unit to_a, const Net *b)
{
	for (Unit u = 0; u < b->units; u++)
		for (uint64_t j = b->row[u]; j < b->row[u + 1]; j++)
			if (same_link(a, i, to_a, b, j, u))
				return j;
	assert_true(false);
	return 0;
}

/* Groups in another order, h's units numbered backwards. */
static void test_permuting_units(void **state)
{
	(void)state;
	Toy a, b;
	double wa[LINKS], wb[LINKS], ga[LINKS], gb[LINKS], back[LINKS];
	uint64_t map[LINKS];
	open_plain(&a, 20);
	toy_open(&b, "group o 2 output\ngroup h 5\ngroup x 3 input\ngroup k 2 tanh\n"
	             "connect h[1] -> h[0]\nconnect h[2] -> h[0:1]\nconnect h[3] -> h[0:2]\nconnect h[4] -> h[0:3]\n"
	             "connect true, k, h -> o\nconnect h, x[0] -> k\nconnect true, x -> h\n");
	toy_bind(&b, 20, xs, ys);
	assert_int_equal(a.net->links, b.net->links);
	target_ref.get(a.program, 0, 0, ALL_LINKS, wa);
	for (Unit u = 0; u < a.net->units; u++)
		for (uint64_t i = a.net->row[u]; i < a.net->row[u + 1]; i++) {
			map[i] = find_link(a.net, i, u, b.net);
			wb[map[i]] = wa[i];
		}
	target_ref.set(b.program, 0, 0, ALL_LINKS, wb);
	assert_true(fabs(toy_error(&a) - toy_error(&b)) < 1e-13);
	toy_gradient(&a, ga);
	toy_gradient(&b, gb);
	for (uint64_t i = 0; i < a.net->links; i++)
		back[i] = gb[map[i]];
	assert_near(ga, back, a.net->links);
	toy_close(&a);
	toy_close(&b);
}

/* ---- cases ---- */

static void test_permuting_cases(void **state)
{
	(void)state;
	Toy t;
	double g[LINKS], h[LINKS];
	uint64_t order[60];
	open_plain(&t, 60);
	Tally a = toy_learn(&t, (Batch){ .count = 60 });
	target_ref.gradient(t.program, g);
	toy_forget(&t);
	for (uint64_t i = 0; i < 60; i++)
		order[i] = i * 7 % 60;
	Tally b = toy_learn(&t, (Batch){ .example = order, .count = 60 });
	target_ref.gradient(t.program, h);
	assert_near(g, h, t.net->links);
	assert_true(fabs(a.error - b.error) < 1e-12);
	assert_true(a.cases == b.cases && a.scored == b.scored && a.right == b.right && a.within == b.within);
	toy_close(&t);
}

static void test_splitting_a_batch(void **state)
{
	(void)state;
	Toy t;
	double whole[LINKS], parts[LINKS];
	open_plain(&t, CASES);
	Tally a = toy_learn(&t, (Batch){ .count = CASES });
	target_ref.gradient(t.program, whole);
	toy_forget(&t);
	target_ref.gradient(t.program, parts);
	for (uint64_t i = 0; i < t.net->links; i++)
		assert_true(parts[i] == 0); /* forgotten */
	Tally b = toy_learn(&t, (Batch){ .count = 700 });
	Tally c = toy_learn(&t, (Batch){ .first = 700, .count = CASES - 700 });
	tally_add(&b, &c);
	target_ref.gradient(t.program, parts);
	assert_near(whole, parts, t.net->links);
	assert_true(fabs(a.error - b.error) < 1e-10 && a.right == b.right && a.scored == b.scored);
	toy_close(&t);
}

/* The leaves of one batch in several calls give the very bits of one call. */
static void test_leaves_in_several_calls(void **state)
{
	(void)state;
	Toy t;
	double whole[LINKS], parts[LINKS];
	Batch batch = { .count = CASES };
	Tally tally = { 0 };
	open_plain(&t, CASES);
	assert_int_equal(leaf_count(CASES), 3);
	toy_learn(&t, batch);
	target_ref.gradient(t.program, whole);
	toy_forget(&t);
	for (uint32_t leaf = 0; leaf < 3; leaf++)
		assert_int_equal(target_ref.accumulate(t.program, &batch, leaf, leaf + 1, &t.stop, &tally), MP_OK);
	target_ref.gradient(t.program, parts);
	assert_memory_equal(whole, parts, t.net->links * sizeof *whole);
	assert_int_equal(tally.cases, CASES);
	toy_close(&t);
}

/* The tree over leaves, made by hand from one batch per leaf. */
static void test_leaves_join_as_a_tree(void **state)
{
	(void)state;
	Toy t;
	double whole[LINKS], leaf[3][LINKS];
	open_plain(&t, CASES);
	toy_learn(&t, (Batch){ .count = CASES });
	target_ref.gradient(t.program, whole);
	toy_forget(&t);
	for (uint32_t k = 0; k < 3; k++) {
		toy_learn(&t, (Batch){ .first = 500 * k, .count = 500 });
		target_ref.gradient(t.program, leaf[k]);
		toy_forget(&t);
	}
	for (uint64_t i = 0; i < t.net->links; i++)
		assert_true(whole[i] == (leaf[0][i] + leaf[1][i]) + leaf[2][i]);
	toy_close(&t);
}

static void test_weight_two_is_twice(void **state)
{
	(void)state;
	Toy t;
	double g[LINKS], h[LINKS];
	float two[20];
	uint64_t twice[21];
	open_plain(&t, 20);
	for (uint64_t i = 0; i < 21; i++)
		twice[i] = i < 20 ? i : 4;
	Tally a = toy_learn(&t, (Batch){ .example = twice, .count = 21 });
	target_ref.gradient(t.program, g);
	toy_forget(&t);
	for (int i = 0; i < 20; i++)
		two[i] = i == 4 ? 2 : 1;
	t.data.weight = two;
	toy_bind(&t, 20, xs, ys);
	Tally b = toy_learn(&t, (Batch){ .count = 20 });
	target_ref.gradient(t.program, h);
	assert_near(g, h, t.net->links);
	assert_true(fabs(a.error - b.error) < 1e-12);
	toy_close(&t);
}

static void test_weight_zero_is_nothing(void **state)
{
	(void)state;
	Toy t;
	double g[LINKS];
	float zero[5] = { 0 };
	open_plain(&t, 5);
	t.data.weight = zero;
	toy_bind(&t, 5, xs, ys);
	assert_true(toy_error(&t) == 0);
	toy_gradient(&t, g);
	for (uint64_t i = 0; i < t.net->links; i++)
		assert_true(g[i] == 0);
	toy_close(&t);
}

static void test_mask_is_nan(void **state)
{
	(void)state;
	Toy t;
	double g[LINKS], h[LINKS];
	static float full[40];
	static uint8_t mask[40];
	open_plain(&t, 20);
	double error = toy_error(&t);
	toy_gradient(&t, g);
	for (int i = 0; i < 40; i++) {
		mask[i] = !isnan(ys[i]);
		full[i] = mask[i] ? ys[i] : 0.75f;
	}
	t.data.mask = mask;
	toy_bind(&t, 20, xs, full);
	toy_gradient(&t, h);
	assert_memory_equal(g, h, t.net->links * sizeof *g);
	assert_true(error == toy_error(&t));
	toy_close(&t);
}

/* ---- inputs and links ---- */

static void test_zero_inputs(void **state)
{
	(void)state;
	Toy t;
	double g[LINKS];
	float x[30];
	open_plain(&t, 10);
	for (int i = 0; i < 30; i++)
		x[i] = i % 3 == 1 ? 0 : xs[i];
	toy_bind(&t, 10, x, ys);
	toy_gradient(&t, g);
	const Group *in = &t.net->group[0];
	for (uint64_t i = 0; i < t.net->links; i++)
		assert_int_equal(g[i] == 0, net_source(t.net, net_target(t.net, i), i) == in->first + 1);
	toy_close(&t);
}

static void test_index_lists_are_dense_rows(void **state)
{
	(void)state;
	enum { N = 16 };
	static float x[N * 3];
	uint64_t indptr[N + 1] = { 0 };
	uint32_t indices[N * 3];
	double g[LINKS], h[LINKS];
	Toy t;
	for (uint32_t i = 0; i < N; i++) {
		indptr[i + 1] = indptr[i];
		for (uint32_t j = 0; j < 3; j++)
			if ((i >> j) & 1) {
				x[i * 3 + j] = 1;
				indices[indptr[i + 1]++] = j;
			}
	}
	open_plain(&t, 1);
	toy_bind(&t, N, x, ys);
	toy_gradient(&t, g);
	t.data.x_indptr = indptr;
	t.data.x_indices = indices;
	toy_bind(&t, N, NULL, ys);
	toy_gradient(&t, h);
	assert_memory_equal(g, h, t.net->links * sizeof *g);
	toy_close(&t);
}

static void test_frozen_blocks_stay(void **state)
{
	(void)state;
	for (uint32_t r = 0; r < rule_count; r++) {
		char text[400];
		Toy t;
		double before[LINKS], after[LINKS];
		snprintf(text, sizeof text,
		         "group x 3 input\ngroup h 5\ngroup o 2 output\nconnect x -> h frozen\nconnect true -> h\n"
		         "connect h -> o\ntrain rule %s decay 0.01\n",
		         rules[r].name);
		toy_open(&t, text);
		toy_bind(&t, 20, xs, ys);
		toy_weights(&t, 3, 1);
		target_ref.get(t.program, 0, 0, ALL_LINKS, before);
		for (uint64_t i = 1; i <= 5; i++) {
			toy_learn(&t, (Batch){ .count = 20 });
			update(&t, i);
		}
		target_ref.get(t.program, 0, 0, ALL_LINKS, after);
		for (uint64_t i = 0; i < t.net->links; i++)
			assert_int_equal(before[i] == after[i], net_block(t.net, net_target(t.net, i), i)->frozen);
		toy_close(&t);
	}
}

/* Every rule brings the error down, with weights that stay finite. */
static void test_rules_learn(void **state)
{
	(void)state;
	for (uint32_t r = 0; r < rule_count; r++) {
		char text[400];
		Toy t;
		snprintf(text, sizeof text,
		         "group x 3 input\ngroup h 5\ngroup o 2 output\nconnect x, true -> h\n"
		         "connect h, true -> o\ntrain rule %s rate 0.02\n",
		         rules[r].name);
		toy_open(&t, text);
		toy_bind(&t, 20, xs, ys);
		toy_weights(&t, 3, 1);
		double before = toy_error(&t);
		for (uint64_t i = 1; i <= 100; i++) {
			toy_learn(&t, (Batch){ .count = 20 });
			update(&t, i);
		}
		double after = toy_error(&t);
		assert_true(isfinite(after) && after < 0.9 * before);
		toy_close(&t);
	}
}

/* ---- the target's hooks ---- */

static void test_evaluate_agrees(void **state)
{
	(void)state;
	Toy t;
	static double out[CASES * 2];
	Tally a = { 0 };
	open_plain(&t, CASES);
	assert_int_equal(target_ref.evaluate(t.program, 0, CASES, &t.stop, out, &a), MP_OK);
	Tally b = toy_learn(&t, (Batch){ .count = CASES });
	assert_memory_equal(&a, &b, sizeof a); /* the same leaves, the same bits */
	Tally by_hand = { 0 };
	Scorer s;
	scorer_init(&s, &t.net->options, &t.data);
	for (int i = 0; i < CASES; i++)
		score_case(&s, out + 2 * i, NULL, ys + 2 * i, 1, &by_hand);
	assert_true(fabs(a.error - by_hand.error) < 1e-9 && a.right == by_hand.right && a.within == by_hand.within);
	double last[2];
	assert_int_equal(target_ref.evaluate(t.program, CASES - 1, 1, &t.stop, last, &a), MP_OK);
	assert_true(last[0] == out[CASES * 2 - 2] && last[1] == out[CASES * 2 - 1]);
	toy_close(&t);
}

static void test_without_targets(void **state)
{
	(void)state;
	Toy t;
	double out[10], same[10];
	Tally tally = { 0 };
	open_plain(&t, 5);
	target_ref.evaluate(t.program, 0, 5, &t.stop, out, &tally);
	t.data.targets = 0;
	t.data.y = NULL;
	assert_int_equal(guarded(&t.cx, toy_bind_body, &t), MP_OK);
	tally = (Tally){ 0 };
	assert_int_equal(target_ref.evaluate(t.program, 0, 5, &t.stop, same, &tally), MP_OK);
	assert_memory_equal(out, same, sizeof out);
	assert_true(tally.cases == 5 && tally.scored == 0 && tally.error == 0);
	toy_close(&t);
}

static void test_stopping(void **state)
{
	(void)state;
	Toy t;
	double w[LINKS], after[LINKS];
	Tally tally = { 0 };
	open_plain(&t, 20);
	target_ref.get(t.program, 0, 0, ALL_LINKS, w);
	toy_learn(&t, (Batch){ .count = 20 });
	toy_forget(&t);
	update(&t, 1); /* nothing is pending, so nothing happens */
	target_ref.get(t.program, 0, 0, ALL_LINKS, after);
	assert_memory_equal(w, after, t.net->links * sizeof *w);
	t.stop = 1;
	assert_int_equal(target_ref.evaluate(t.program, 0, 20, &t.stop, NULL, &tally), MP_STOPPED);
	toy_close(&t);
}

static void test_state_goes_out_and_in(void **state)
{
	(void)state;
	Toy t;
	double w[2][LINKS], s[2][LINKS];
	open_plain(&t, 20);
	for (uint64_t i = 1; i <= 3; i++) {
		toy_learn(&t, (Batch){ .count = 20 });
		update(&t, i);
	}
	target_ref.get(t.program, 0, 0, ALL_LINKS, w[0]);
	target_ref.get(t.program, 1, 0, ALL_LINKS, s[0]);
	for (int round = 0; round < 2; round++) { /* the second time from the same state: the same bits */
		target_ref.set(t.program, 0, 0, ALL_LINKS, w[0]);
		target_ref.set(t.program, 1, 0, ALL_LINKS, s[0]);
		toy_learn(&t, (Batch){ .count = 20 });
		update(&t, 4);
		target_ref.get(t.program, 0, 0, ALL_LINKS, round ? w[1] : s[1]);
	}
	assert_memory_equal(w[1], s[1], t.net->links * sizeof(double));
	toy_close(&t);
}

/* Data of other sizes, longer sequences: buffers grow, results stay. */
static void test_rebinding(void **state)
{
	(void)state;
	static const uint64_t seq[] = { 0, 1, 400, 1000 };
	Toy t;
	double g[LINKS], h[LINKS];
	toy_open(&t, "group x 3 input\ngroup m 4 context\ngroup h 4 tanh\ngroup o 2 output\n"
	             "connect x, m, true -> h\nconnect h -> o\ncopy h -> m\ntrain bptt full\n");
	toy_bind(&t, 5, xs, ys);
	toy_weights(&t, 1, 0.5);
	toy_gradient(&t, g);
	t.data.seq = seq;
	t.data.sequences = 3;
	toy_bind(&t, 1000, xs, ys);
	toy_gradient(&t, h);
	t.data.seq = NULL;
	t.data.sequences = 0;
	toy_bind(&t, 5, xs, ys);
	toy_gradient(&t, h);
	assert_memory_equal(g, h, t.net->links * sizeof *g);
	toy_close(&t);
}

static void test_program_text(void **state)
{
	(void)state;
	Toy t;
	toy_open(&t,
	         "group x 2 input\ngroup m 3 context\ngroup h 3 tanh\ngroup o 1 output\n"
	         "connect x, m, true -> h\nconnect h, true -> o\ncopy h -> m\ntrain rule momentum error cross-entropy\n");
	Buf out = { .arena = &t.cx.keep };
	target_ref.print(&t.cx, t.program, NULL, &out);
	assert_string_equal(out.s, "program ref: the network itself, in double precision, one case after the other\n"
	                           "forward\n"
	                           "\tm = h of the case before\n"
	                           "\th[0:2]  tanh of 18 links\n"
	                           "\to[0:0]  sigmoid of 4 links\n"
	                           "backward\n"
	                           "\terror cross-entropy, the same in reverse, truncated at the copy\n"
	                           "update momentum, for each of 22 links\n"
	                           "\tv0 = decay\n"
	                           "\tv1 = w\n"
	                           "\tv2 = g\n"
	                           "\tv3 = fma(v0, v1, v2)\n"
	                           "\tv4 = momentum\n"
	                           "\tv5 = step\n"
	                           "\tv6 = rate\n"
	                           "\tv7 = v6 * v3\n"
	                           "\tv8 = -v7\n"
	                           "\tv9 = fma(v4, v5, v8)\n"
	                           "\tstep = v9\n"
	                           "\tv11 = v1 + v9\n"
	                           "\tw = v11\n");
	toy_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_permuting_units),
		cmocka_unit_test(test_permuting_cases),
		cmocka_unit_test(test_splitting_a_batch),
		cmocka_unit_test(test_leaves_in_several_calls),
		cmocka_unit_test(test_leaves_join_as_a_tree),
		cmocka_unit_test(test_weight_two_is_twice),
		cmocka_unit_test(test_weight_zero_is_nothing),
		cmocka_unit_test(test_mask_is_nan),
		cmocka_unit_test(test_zero_inputs),
		cmocka_unit_test(test_index_lists_are_dense_rows),
		cmocka_unit_test(test_frozen_blocks_stay),
		cmocka_unit_test(test_rules_learn),
		cmocka_unit_test(test_evaluate_agrees),
		cmocka_unit_test(test_without_targets),
		cmocka_unit_test(test_stopping),
		cmocka_unit_test(test_state_goes_out_and_in),
		cmocka_unit_test(test_rebinding),
		cmocka_unit_test(test_program_text),
	};
	return cmocka_run_group_tests(tests, fill_data, NULL);
}
