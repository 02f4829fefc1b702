/* SPDX-License-Identifier: MIT */
/* Guards on an emulated GPU: a bit that flips in memory of the device changes a checksum, and a rollback puts the old
 * weights back; leaves are recomputed. */
#include "cpu_nets.h"
#include "cuda.h"
#include "monitor.h"

extern const Target target_cuda;
enum { CASES = 40 };

static uint64_t checksums(const Side *s, const Region *r, uint32_t regions)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < regions; i++)
		sum = sum * 31 + s->target->guard->checksum(s->program, r[i].at, r[i].bytes);
	return sum;
}

static void flips_are_found_and_undone(void **state)
{
	static const char net[] = "group in 4 input\ngroup hidden 3\ngroup out 2 output\n"
							  "connect in, true -> hidden\nconnect hidden, true -> out\ntrain rule momentum\n";
	const GuardHooks *hooks = target_cuda.guard;
	Side s;
	Dice dice = { .seed = 1 };
	Region region[MOST_REGIONS] = { { 0 } };
	Monitor monitor = { .leaf = NO_LEAF };

	(void)state;
	setenv("MICROPROP_CUDA", "emulate", 1);
	side_open(&s, &target_cuda, net, (Way){ .isa = best_isa(), .threads = 1, .batch = BATCH_ALL });
	Cases cases = cases_make(&dice, s.net, CASES, true);
	side_take(&s, &cases);
	hooks->attach(s.program, NULL);
	hooks->attach(s.program, &monitor);
	side_learn(&s, (Batch){ .count = CASES });
	side_update(&s, 1);
	uint32_t regions = hooks->regions(s.program, region);
	assert_int_equal(regions, 2);
	uint64_t before = checksums(&s, region, regions);
	float *device = ((Cuda *)s.program)->job.w, *snapshot = malloc(region[0].bytes);
	memcpy(snapshot, region[0].at, region[0].bytes);
	for (uint32_t bit = 0; bit < 32; bit += 5) {
		uint32_t word;
		memcpy(&word, device + 1, sizeof word);
		word ^= 1u << bit;
		memcpy(device + 1, &word, sizeof word);
		assert_true(checksums(&s, region, regions) != before);
		memcpy(region[0].at, snapshot, region[0].bytes);
		hooks->attach(s.program, &monitor);
		assert_true(checksums(&s, region, regions) == before);
		side_learn(&s, (Batch){ .count = CASES }); /* the device has the old weights again */
		assert_true(checksums(&s, region, regions) == before);
	}
	free(snapshot);
	cases_free(&cases);
	side_close(&s);
}

/* --guard full: target cpu recomputes a leaf of the device to the bit; a flip in the sum that waits is found. Random
 * networks; more leaves than sums, and streamed ones, too. */
static void leaves_are_recomputed(void **state)
{
	const GuardHooks *hooks = target_cuda.guard;
	enum { MANY = 1400 };

	(void)state;
	setenv("MICROPROP_CUDA", "emulate:2", 1);
	for (uint64_t seed = 1; seed <= 12; seed++) {
		Side s;
		Draft t;
		Monitor m = { .check_sums = true };
		int core;
		draft_like(&t, seed, 6, (Draft){ .shaped = seed % 2, .all = seed % 2 });
		side_open(&s, &target_cuda, t.text,
		          (Way){ .isa = best_isa(), .threads = 1 + (int)(seed % 2), .batch = BATCH_ALL });
		Cases cases = cases_make(&t.d, s.net, s.net->copies ? CASES : MANY, false);
		if (seed % 3 == 0 && !s.net->copies)
			setenv("MICROPROP_CUDA_SLOT", "800", 1);
		side_take(&s, &cases);
		unsetenv("MICROPROP_CUDA_SLOT");
		uint64_t examples = run_examples(s.net, &cases.dense);
		m.leaf = leaf_count(examples) - 1;
		hooks->attach(s.program, &m);
		Batch b = { .count = examples, .update = 3 };
		side_learn(&s, b);
		uint64_t checksum = m.leaf_checksum;
		assert_true(hooks->recompute(s.program, &b, m.leaf, 0, &core) == checksum);
		side_update(&s, 4);
		assert_int_equal(m.corrupted_sums, 0);
		b.update = 4;
		side_learn(&s, b); /* with weights of the device */
		assert_true(m.leaf_checksum != checksum);
		assert_true(hooks->recompute(s.program, &b, m.leaf, 1, &core) == m.leaf_checksum);
		((uint8_t *)((Cuda *)s.program)->job.pending)[2] ^= 4;
		side_update(&s, 5);
		assert_int_equal(m.corrupted_sums, 1);
		hooks->attach(s.program, NULL);
		cases_free(&cases);
		side_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(flips_are_found_and_undone),
		                                cmocka_unit_test(leaves_are_recomputed) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
