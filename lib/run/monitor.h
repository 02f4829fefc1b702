/* SPDX-License-Identifier: MIT */
/* What a guard (lib/guard) and a target exchange to detect silent data corruption while a run trains. */
#ifndef MONITOR_H
#define MONITOR_H

#include "checksum.h"
#include "run.h"

enum { GUARD_OFF, GUARD_LIGHT, GUARD_FULL };
/* Memory of a target that only updates write to: weights, their other layouts, rule state. */
typedef struct Region {
	const char *name;
	void *at;
	uint64_t bytes;
} Region;
enum { MOST_REGIONS = 12 };

/* Where a test may flip bits: a leaf's sum before its checksum is taken, and after; then the steps of an update. */
enum { HOOK_LEAF_SUM, HOOK_LEAF_STORED, HOOK_BATCH, HOOK_SUMMED, HOOK_APPLIED, HOOK_EPOCH, HOOK_SAVE, HOOK_END, HOOKS };
/* sum: with the first two; NULL: the pending sum is in memory as well */
typedef void TestHookFn(void *user, int hook, void *sum, uint64_t bytes);

#define NO_LEAF UINT32_MAX
typedef struct Monitor {
	bool check_sums;     /* sums of gradients get a checksum when stored, verified when used */
	int corrupted_sums;  /* how many did not match; atomic */
	int corrupted_lists; /* transposed index lists that changed before they were used, and were made anew; atomic */
	/* [checksum blocks of all regions] NULL, or an update adds checksums of the state before and after it */
	uint64_t *before, *after;
	float max_change;       /* largest total weight change of the last update; infinite: one was NaN; 0: not known */
	uint32_t leaf;          /* of the current batch, whose checksum is to be stored; or NO_LEAF */
	uint64_t leaf_checksum; /* of its sum and tally */
	int leaf_core;          /* that computed it; -1: several */
	uint32_t leaf_thread;
	TestHookFn *test_hook;
	void *test_user;
} Monitor;
void test_hook_call(const Monitor *m, int hook, void *sum, uint64_t bytes);

#endif
