/* SPDX-License-Identifier: MIT */
/* The model of ranks on a cluster: parts add up, a better cluster is not slower, its best number is where the
 * calculus says. */
#include "test.h"

#include <math.h>

#include "model.h"

static const Cluster ethernet = { .latency = 50, .overhead = 5, .bandwidth = 117 };
static const Rates rates = { 1e-6, 1e-10, 1e-5, 0 };
static const Workload work = {
	.links = 13826, .floats = 14000, .examples = 2097152, .cases = 2097152, .batch = 2097152, .threads = 1
};

static void parts_add_up(void **state)
{
	(void)state;
	for (uint32_t ranks = 1; ranks <= 4096; ranks = ranks * 3 / 2 + 1) {
		Scaling s = scaling_epoch(&ethernet, &rates, &work, ranks);
		assert_true(fabs(s.compute + s.reduce + s.vote + s.update - s.total) <= 1e-12 * s.total);
		/* the busiest has a fair share */
		assert_true(s.compute * ranks >= 0.999 * (double)work.cases * rates.cases);
		assert_true(s.leaves >= (4096 + ranks - 1) / ranks && s.leaves <= 4096);
	}
	Scaling one = scaling_epoch(&ethernet, &rates, &work, 1);
	assert_true(one.reduce == 0 && one.vote == 0 && one.bytes == 0 && one.way == -1);
}

static void better_is_not_slower(void **state)
{
	(void)state;
	for (uint32_t ranks = 2; ranks <= 4096; ranks = ranks * 3 / 2 + 1) {
		Cluster wide = ethernet, near = ethernet, busy = ethernet;
		wide.bandwidth *= 2;
		near.latency /= 2;
		busy.cores = 2;
		double now = scaling_epoch(&ethernet, &rates, &work, ranks).total;
		assert_true(scaling_epoch(&wide, &rates, &work, ranks).total < now);
		assert_true(scaling_epoch(&near, &rates, &work, ranks).total < now);
		assert_true(scaling_epoch(&busy, &rates, &work, ranks).total >= now);
	}
}

/* With powers of two in both, the sum of the terms of the calculus is the model, but for what does not change with
 * ranks. */
static void the_best_is_where_calculus_says(void **state)
{
	(void)state;
	Cluster far = ethernet;
	far.latency *= 10; /* or the best would be past 4096 */
	double closed = scaling_optimum(&far, &rates, &work), best = 1e300;
	uint32_t at = 0;
	for (uint32_t ranks = 2; ranks <= 4096; ranks *= 2) {
		double total = scaling_epoch(&far, &rates, &work, ranks).total;
		if (total < best) {
			best = total;
			at = ranks;
		}
	}
	assert_true(closed < 4096 && at > closed / 2 && at < closed * 2);
}

/* A batch of one leaf takes what was measured of it, on any number of ranks; larger ones do not. */
static void one_leaf_takes_what_was_measured(void **state)
{
	(void)state;
	Workload w = work;
	Rates r = rates;
	r.alone = 3e-5;
	for (uint32_t ranks = 1; ranks <= 4; ranks *= 2) {
		w.batch = 16;
		Scaling s = scaling_epoch(&ethernet, &r, &w, ranks);
		double batches = (double)w.examples / 16;
		assert_true(fabs(s.total - batches * 3e-5) < 1e-9 * s.total &&
		            fabs(s.update - batches * r.update) < 1e-9 * s.total);
		w.batch = 1024;
		assert_true(scaling_epoch(&ethernet, &r, &w, ranks).total == scaling_epoch(&ethernet, &rates, &w, ranks).total);
	}
	r.alone = r.update / 2; /* sum and update in one sweep: less than an update by itself */
	w.batch = 1;
	Scaling s = scaling_epoch(&ethernet, &r, &w, 1);
	assert_true(s.compute == 0 && fabs(s.total - (double)w.examples * r.alone) < 1e-9 * s.total);
}

static void small_batches_meet_more_often(void **state)
{
	(void)state;
	Workload few = work, tiny = work;
	few.batch = 8192;
	tiny.batch = 512;
	Scaling pooled = scaling_epoch(&ethernet, &rates, &work, 8), often = scaling_epoch(&ethernet, &rates, &few, 8);
	assert_true(often.vote > 200 * pooled.vote && often.reduce > 100 * pooled.reduce);
	Scaling alone = scaling_epoch(&ethernet, &rates, &tiny, 8);
	assert_true(alone.way == -1 && alone.reduce == 0 && alone.vote == 0); /* one leaf: rank 0 trains */
	assert_true(alone.total >= scaling_epoch(&ethernet, &rates, &work, 1).total);
}

static void a_cluster_prints_as_it_reads(void **state)
{
	(void)state;
	Ctx cx;
	jmp_buf edge;
	ctx_init(&cx, NULL);
	cx.edge = &edge;
	if (setjmp(edge))
		assert_string_equal(ctx_messages(&cx), "");
	static const char *const names[] = { "ethernet", "loopback" };
	for (size_t i = 0; i < COUNT(names); i++) {
		Buf first = { .arena = &cx.keep }, again = { .arena = &cx.keep };
		cluster_print(cluster_open(&cx, names[i]), &first);
		Src src = { .name = names[i], .text = first.s, .len = first.len };
		cluster_print(cluster_parse(&cx, &src), &again);
		assert_string_equal(first.s, again.s);
	}
	ctx_free(&cx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_add_up),
		cmocka_unit_test(better_is_not_slower),
		cmocka_unit_test(the_best_is_where_calculus_says),
		cmocka_unit_test(one_leaf_takes_what_was_measured),
		cmocka_unit_test(small_batches_meet_more_often),
		cmocka_unit_test(a_cluster_prints_as_it_reads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
