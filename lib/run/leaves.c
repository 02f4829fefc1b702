/* SPDX-License-Identifier: MIT */
/* Leaves of a batch, and the tree in which their sums are added.
 *
 * In: the number of examples of a batch.  Out: leaves of equal size (+-1), and how many joins follow each.
 * Both depend on the number of examples alone, never on threads, ranks or machines.
 *
 * The tree splits a run of leaves at the largest power of two below its length:
 *
 *     7 leaves:  ((0 1) (2 3)) ((4 5) 6)
 *
 * A walk through the leaves in order keeps a stack of sums: push the leaf's sum, then add the two topmost leaf_joins
 * times.  The stack never holds more than 1 + log2(leaves) sums between leaves, and one at the
 * end. */
#include "run.h"

uint32_t leaf_count(uint64_t examples) { return (uint32_t)min_u64(ceil_div(examples, LEAF_EXAMPLES), MAX_LEAVES); }

/* The first examples % leaves leaves are one longer. */
void leaf_range(uint64_t examples, uint32_t leaves, uint32_t leaf, uint64_t *first, uint64_t *count)
{
	uint64_t size = examples / leaves, longer = examples % leaves;

	*first = leaf * size + min_u64(leaf, longer);
	*count = size + (leaf < longer);
}

/* At the largest power of two below n. */
uint32_t leaf_split(uint32_t n)
{
	uint32_t half = 1;

	while (2 * half < n)
		half *= 2;
	return half;
}

/* After leaf number i (from 0), i + 1 leaves are done: every power of two that divides i + 1 completes a subtree.
 * After the last leaf what remains on the stack, one sum for each one bit of the count, joins too. */
uint32_t leaf_joins(uint32_t leaf, uint32_t leaves) { return leaf_joins_from(leaf, leaves, 0); }

/* Subtrees that begin before leaf `first` are not complete here. */
uint32_t leaf_joins_from(uint32_t leaf, uint32_t leaves, uint32_t first)
{
	uint32_t done = leaf + 1, joins = 0;

	for (uint32_t size = 2; done % size == 0 && done - size >= first; size *= 2)
		joins++;
	if (done == leaves)
		for (uint32_t rest = done & (done - 1); rest && (rest & (rest - 1)) >= first; rest &= rest - 1)
			joins++;
	return joins;
}
