/* SPDX-License-Identifier: MIT */
/* Which examples come next. In: the order of an epoch, how many examples of it are used. Out: batches, with the
 * examples of the next one behind, so that a target may prefetch them. */
#include "loop.h"

enum { PICKS_AHEAD = 64 }; /* examples picked at a time, besides those of this batch and the next */

void batches_init(Batches *b, Arena *a)
{
	if (b->order->shuffled)
		order_ahead(b->order, a, 2 * b->batch + PICKS_AHEAD);
}

void batches_epoch(Batches *b, uint64_t epoch, uint64_t done)
{
	order_epoch(b->order, epoch);
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

Batch batches_next(Batches *b, uint64_t done)
{
	uint64_t left = b->examples - done;
	Batch out = { .first = done, .count = min_u64(b->batch, left) };

	batches_prefetch(b, done);
	out.next_count = min_u64(b->batch, left - out.count);
	if (b->order->shuffled)
		out.example = order_pick(b->order, done, out.count + out.next_count);
	return out;
}
