/* SPDX-License-Identifier: MIT */
/* Which examples come next. In: the order of an epoch, how many examples of it are used. Out: batches, with the
 * examples of the next one behind, so that a target may prefetch them. */
#include <string.h>

#include "loop.h"

enum { PICKS_AHEAD = 64 }; /* examples picked at a time, besides those of this batch and the next */

void batches_init(Batches *b, Arena *a, bool shuffled)
{
	b->capacity = 2 * b->batch + PICKS_AHEAD;
	if (shuffled)
		b->picked = NEW(a, b->capacity, uint64_t);
}

void batches_epoch(Batches *b, uint64_t epoch, uint64_t done)
{
	order_epoch(b->order, epoch);
	b->first = done;
	b->count = 0;
	b->prefetched = done / SHUFFLE_BLOCK;
}

void batches_prefetch(Batches *b, uint64_t done)
{
	uint64_t blocks = done / SHUFFLE_BLOCK + 2, count;

	for (; b->prefetch && b->prefetched < blocks; b->prefetched++) {
		uint64_t first = order_block(b->order, b->prefetched, &count);
		data_prefetch(b->data, first, count);
	}
}

/* `count` examples from place `done` of the epoch; those picked before are kept. */
static const uint64_t *pick(Batches *b, uint64_t done, uint64_t count)
{
	uint64_t used = done - b->first;

	if (used + count > b->count) {
		uint64_t kept = b->count - used;
		memmove(b->picked, b->picked + used, kept * sizeof *b->picked);
		b->first = done;
		b->count = min_u64(b->capacity, b->examples - done);
		for (uint64_t i = kept; i < b->count; i++)
			b->picked[i] = order_at(b->order, done + i);
		used = 0;
	}
	return b->picked + used;
}

Batch batches_next(Batches *b, uint64_t done)
{
	uint64_t left = b->examples - done;
	Batch out = { .first = done, .count = min_u64(b->batch, left) };

	batches_prefetch(b, done);
	out.next_count = min_u64(b->batch, left - out.count);
	if (b->picked)
		out.example = pick(b, done, out.count + out.next_count);
	return out;
}
