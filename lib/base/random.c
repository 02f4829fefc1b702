/* SPDX-License-Identifier: MIT */
/* Random numbers by counter (Philox 4x32-10, Salmon et al. 2011), and the order of examples made from them.
 * A number depends on (seed, stream, index) alone, so any thread or rank can compute any of them. */
#include <string.h>
#include <xxhash.h>

#include "base.h"

/* Consecutive counters computed together: each is a long dependent chain of multiplications. */
enum { DRAWS = 16 };

static inline void philox(uint32_t ctr[4][DRAWS], int n, uint32_t key0, uint32_t key1)
{
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < n; i++) {
			uint64_t a = (uint64_t)0xD2511F53u * ctr[0][i], b = (uint64_t)0xCD9E8D57u * ctr[2][i];
			ctr[0][i] = (uint32_t)(b >> 32) ^ ctr[1][i] ^ key0;
			ctr[1][i] = (uint32_t)b;
			ctr[2][i] = (uint32_t)(a >> 32) ^ ctr[3][i] ^ key1;
			ctr[3][i] = (uint32_t)a;
		}
		key0 += 0x9E3779B9u;
		key1 += 0xBB67AE85u;
	}
}

static inline void draws(uint64_t seed, uint32_t stream, uint32_t sub, uint64_t index, int n, uint64_t *out)
{
	uint32_t ctr[4][DRAWS];
	for (int i = 0; i < n; i++) {
		ctr[0][i] = (uint32_t)(index + (uint64_t)i);
		ctr[1][i] = (uint32_t)((index + (uint64_t)i) >> 32);
		ctr[2][i] = stream;
		ctr[3][i] = sub;
	}
	philox(ctr, n, (uint32_t)seed, (uint32_t)(seed >> 32));
	for (int i = 0; i < n; i++)
		out[i] = (uint64_t)ctr[1][i] << 32 | ctr[0][i];
}

static uint64_t draw(uint64_t seed, uint32_t stream, uint32_t sub, uint64_t index)
{
	uint64_t random;
	draws(seed, stream, sub, index, 1, &random);
	return random;
}

uint64_t random_u64(uint64_t seed, uint32_t stream, uint64_t index) { return draw(seed, stream, 0, index); }

double random_unit(uint64_t seed, uint32_t stream, uint64_t index)
{
	return (double)(random_u64(seed, stream, index) >> 40) / 16777216.0;
}

void random_units(uint64_t seed, uint32_t stream, uint64_t index, uint64_t count, double *out)
{
	uint64_t random[DRAWS];

	for (uint64_t i = 0; i < count; i += DRAWS) {
		int n = (int)min_u64(count - i, DRAWS);
		if (n == DRAWS)
			draws(seed, stream, 0, index + i, DRAWS, random);
		else
			draws(seed, stream, 0, index + i, n, random);
		for (int k = 0; k < n; k++)
			out[i + (uint64_t)k] = (double)(random[k] >> 40) / 16777216.0;
	}
}

static uint64_t below(uint64_t random, uint64_t n) { return (random >> 32) * n >> 32; }

uint64_t random_below(uint64_t seed, uint32_t stream, uint64_t index, uint64_t n)
{
	return below(random_u64(seed, stream, index), n);
}

uint64_t random_key(uint64_t seed, uint32_t stream, uint32_t sub, uint64_t index)
{
	return draw(seed, stream, sub, index);
}

void random_draws(uint64_t key, const uint32_t counter[4], uint32_t word[4])
{
	uint32_t ctr[4][DRAWS];
	for (int i = 0; i < 4; i++)
		ctr[i][0] = counter[i];
	philox(ctr, 1, (uint32_t)key, (uint32_t)(key >> 32));
	for (int i = 0; i < 4; i++)
		word[i] = ctr[i][0];
}

/* ---- order of examples ---- */

static uint64_t block_count(const Order *o) { return ceil_div(o->examples, SHUFFLE_BLOCK); }

Order *order_new(Arena *a, uint64_t examples, uint64_t seed, bool shuffled)
{
	Order *o = NEW(a, 1, Order);
	o->examples = examples;
	o->seed = seed;
	o->shuffled = shuffled;
	if (shuffled)
		o->blocks = NEW(a, block_count(o), uint32_t);
	order_forget(o);
	return o;
}

void order_forget(Order *o)
{
	o->epoch = o->block = UINT64_MAX;
	o->count = 0;
	o->hash = o->picked_hash = 0;
	o->damaged = false;
}

/* Each is 0 where nothing is made yet. */
static uint64_t order_hash(const Order *o)
{
	const uint64_t made[] = { o->epoch, o->short_at, o->block };
	if (!o->shuffled || o->epoch == UINT64_MAX)
		return 0;
	uint64_t hash = XXH3_64bits_withSeed(o->blocks, block_count(o) * sizeof *o->blocks, XXH3_64bits(made, sizeof made));
	return o->block == UINT64_MAX ? hash : XXH3_64bits_withSeed(o->inside, sizeof o->inside, hash);
}

static uint64_t picked_hash(const Order *o)
{
	return o->count ? XXH3_64bits_withSeed(o->picked, o->count * sizeof *o->picked, o->first) : 0;
}

bool order_intact(Order *o)
{
	if (o->guarded && (o->hash != order_hash(o) || o->picked_hash != picked_hash(o)))
		o->damaged = true;
	return !o->damaged;
}

/* The epoch is the last word of the counter: orders repeat after 2^32 epochs. */
static uint64_t shuffle_draw(const Order *o, uint64_t index)
{
	return draw(o->seed, STREAM_SHUFFLE, (uint32_t)o->epoch, index);
}

void order_epoch(Order *o, uint64_t epoch)
{
	order_intact(o);
	o->count = 0;
	o->picked_hash = 0;
	if (!o->shuffled || o->epoch == epoch)
		return;
	o->epoch = epoch;
	o->block = UINT64_MAX;
	uint64_t n = block_count(o);
	for (uint64_t i = 0; i < n; i++) { /* Fisher-Yates, inside-out */
		uint64_t j = below(shuffle_draw(o, i), i + 1);
		o->blocks[i] = o->blocks[j];
		o->blocks[j] = (uint32_t)i;
	}
	o->short_at = 0;
	while (n && o->blocks[o->short_at] != n - 1)
		o->short_at++;
	o->hash = o->guarded ? order_hash(o) : 0;
}

/* Where an example of the epoch is: in which place of the order of blocks, and where in it. */
typedef struct InBlock {
	uint64_t place, offset, first, size; /* first: example of the block; size: examples of it */
} InBlock;

/* The last, shorter block may stand anywhere; positions after it count as if it were full. */
static InBlock block_at(const Order *o, uint64_t position)
{
	uint64_t n = block_count(o), short_by = n * SHUFFLE_BLOCK - o->examples;

	if (position >= (o->short_at + 1) * SHUFFLE_BLOCK - short_by)
		position += short_by;
	InBlock b = { position / SHUFFLE_BLOCK, position % SHUFFLE_BLOCK, 0, SHUFFLE_BLOCK };
	b.first = o->blocks[b.place] * (uint64_t)SHUFFLE_BLOCK;
	if (o->blocks[b.place] == n - 1)
		b.size -= short_by;
	return b;
}

static void block_shuffle(Order *o, const InBlock *b)
{
	uint64_t random[DRAWS], stream = (o->blocks[b->place] + (uint64_t)1) << 32;

	if (o->block == b->place)
		return;
	order_intact(o);
	o->block = b->place;
	for (uint64_t i = 0; i < b->size; i++) {
		if (i % DRAWS == 0)
			draws(o->seed, STREAM_SHUFFLE, (uint32_t)o->epoch, stream | i, DRAWS, random);
		uint64_t j = below(random[i % DRAWS], i + 1);
		o->inside[i] = o->inside[j];
		o->inside[j] = (uint16_t)i;
	}
	o->hash = o->guarded ? order_hash(o) : 0;
}

void order_copy(Order *o, uint64_t position, uint64_t count, uint64_t *to)
{
	for (uint64_t i = 0; i < count && !o->shuffled; i++)
		to[i] = position + i;
	for (uint64_t done = 0; done < count && o->shuffled;) {
		InBlock b = block_at(o, position + done);
		uint64_t n = min_u64(count - done, b.size > b.offset ? b.size - b.offset : 1); /* a bit may have flipped */
		block_shuffle(o, &b);
		for (uint64_t i = 0; i < n; i++)
			to[done + i] = b.first + o->inside[b.offset + i];
		done += n;
	}
}

uint64_t order_at(Order *o, uint64_t position)
{
	uint64_t example;

	order_copy(o, position, 1, &example);
	return example;
}

void order_ahead(Order *o, Arena *a, uint64_t capacity)
{
	o->picked = NEW(a, capacity, uint64_t);
	o->capacity = capacity;
}

/* Those picked before are kept. */
const uint64_t *order_pick(Order *o, uint64_t position, uint64_t count)
{
	uint64_t used = position - o->first;
	if (!o->count) {
		o->first = position;
		used = 0;
	}
	if (used + count <= o->count)
		return o->picked + used;
	uint64_t kept = o->count - used;
	order_intact(o);
	memmove(o->picked, o->picked + used, kept * sizeof *o->picked);
	o->first = position;
	o->count = 0; /* order_at may verify: nothing is picked meanwhile */
	o->picked_hash = 0;
	uint64_t picks = min_u64(o->capacity, o->examples - position);
	order_copy(o, position + kept, max_u64(picks, kept) - kept, o->picked + kept);
	o->count = picks;
	o->picked_hash = o->guarded ? picked_hash(o) : 0;
	return o->picked;
}

uint64_t order_block(const Order *o, uint64_t place, uint64_t *count)
{
	uint64_t n = block_count(o), block = place < n && o->shuffled ? o->blocks[place] : place,
			 first = block * SHUFFLE_BLOCK;

	*count = place >= n ? 0 : block == n - 1 ? o->examples - first : SHUFFLE_BLOCK;
	return first;
}
