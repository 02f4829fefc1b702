/* SPDX-License-Identifier: MIT */
/* State under guard: memory that only updates write to. In: a target's regions, between updates. Out: whether they
 * match their checksums; snapshots, and a run restored from one.
 *
 * All ranks of a job take a snapshot at the same update, with the same bits. So they roll back together: they vote with
 * checksums of their snapshots, choose the latest that most of them have, and a rank without it receives it from one
 * that has it. The choice depends on the merged message alone, so all ranks make the same. */
#include <string.h>
#include <xxhash.h>

#include "parts.h"
#include "ranks.h"

/* ---- checksums ---- */

uint64_t block_checksum(const Run *r, const void *at, uint64_t bytes)
{
	const GuardHooks *hooks = r->target->guard;
	return hooks->checksum ? hooks->checksum(r->program, at, bytes) : checksum_of(at, bytes);
}

void state_checksum(State *s)
{
	uint64_t *checksum = s->checksum;
	for (uint32_t i = 0; i < s->regions; i++)
		for (uint64_t at = 0; at < s->region[i].bytes; at += CHECKSUM_BLOCK)
			*checksum++ =
				block_checksum(s->r, (uint8_t *)s->region[i].at + at, checksum_block_size(s->region[i].bytes, at));
}

static const char *mismatch_text(const State *s, const Region *region, uint64_t at, uint64_t expected, uint64_t found)
{
	Buf b = { .arena = &s->r->cx.scratch };
	uint64_t size = checksum_block_size(region->bytes, at), bit;
	if (flipped_bit(size, expected, found, &bit))
		buf_printf(&b, "bit %llu of number %llu of the %s changed by itself", (unsigned long long)bit % 32,
		           (unsigned long long)(8 * at + bit) / 32, region->name);
	else
		buf_printf(&b, "some of bytes %llu to %llu of the %s changed by themselves", (unsigned long long)at,
		           (unsigned long long)(at + size - 1), region->name);
	return b.s;
}

const char *state_mismatch(const State *s, const uint64_t *found)
{
	uint64_t block = 0;
	for (uint32_t i = 0; i < s->regions; i++)
		for (uint64_t at = 0; at < s->region[i].bytes; at += CHECKSUM_BLOCK, block++) {
			const Region *region = &s->region[i];
			uint64_t is =
				found ? found[block]
					  : block_checksum(s->r, (uint8_t *)region->at + at, checksum_block_size(region->bytes, at));
			if (is != s->checksum[block])
				return mismatch_text(s, region, at, s->checksum[block], is);
		}
	return NULL;
}

/* ---- snapshots ---- */

static Snapshot snapshot_new(const State *s)
{
	return (Snapshot){ .bytes = arena_alloc_raw(s->arena, s->bytes, 1),
		               .checksum = NEW(s->arena, s->blocks, uint64_t),
		               .best = s->r->opt.keep_best ? arena_alloc(s->arena, best_bytes(s->r), 1) : NULL };
}

bool state_locate(State *s)
{
	Region now[MOST_REGIONS] = { { 0 } };
	uint32_t regions = s->r->target->guard->regions(s->r->program, now);
	if (s->checksum && regions == s->regions && memcmp(now, s->region, sizeof now) == 0)
		return false;
	memcpy(s->region, now, sizeof now);
	s->regions = regions;
	s->bytes = s->blocks = 0;
	for (uint32_t i = 0; i < regions; i++) {
		s->bytes += now[i].bytes;
		s->blocks += checksum_blocks(now[i].bytes);
	}
	s->checksum = NEW(s->arena, s->blocks, uint64_t);
	for (int i = 0; i < SNAPSHOTS; i++)
		s->snapshot[i] = snapshot_new(s);
	return true;
}

/* Without the time that has passed. */
static uint64_t position_hash(const Position *at)
{
	Position p = *at;
	p.seconds = 0;
	return XXH3_64bits(&p, sizeof p);
}

uint64_t best_hash(const Run *r, const void *weights, const Position *at)
{
	return weights && at->epoch ? XXH3_64bits_withSeed(weights, best_bytes(r), position_hash(at)) : 0;
}

void snapshot_take(State *s, int which)
{
	const Run *r = s->r;
	Snapshot *k = &s->snapshot[which];
	uint8_t *to = k->bytes;
	for (uint32_t i = 0; i < s->regions; to += s->region[i++].bytes)
		memcpy(to, s->region[i].at, s->region[i].bytes);
	memcpy(k->checksum, s->checksum, s->blocks * sizeof *k->checksum);
	k->at = r->at;
	k->best_at = r->best_at;
	k->position_hash = position_hash(&k->at);
	if (k->best)
		memcpy(k->best, r->best_weights, best_bytes(r));
	k->best_hash = s->best_hash;
	k->valid = true;
}

static bool snapshot_intact(const State *s, const Snapshot *k)
{
	const uint8_t *bytes = k->bytes;
	uint64_t n = 0;
	for (uint32_t i = 0; i < s->regions; bytes += s->region[i++].bytes)
		for (uint64_t at = 0; at < s->region[i].bytes; at += CHECKSUM_BLOCK)
			if (k->checksum[n++] != block_checksum(s->r, bytes + at, checksum_block_size(s->region[i].bytes, at)))
				return false;
	return k->position_hash == position_hash(&k->at) && k->best_hash == best_hash(s->r, k->best, &k->best_at);
}

void snapshot_restore(State *s, int which)
{
	Run *r = s->r;
	const Snapshot *k = &s->snapshot[which];
	const uint8_t *from = k->bytes;
	double seconds = r->at.seconds;
	for (uint32_t n = 0; n < s->regions; from += s->region[n++].bytes)
		memcpy(s->region[n].at, from, s->region[n].bytes);
	memcpy(s->checksum, k->checksum, s->blocks * sizeof *s->checksum);
	r->at = k->at;
	r->at.seconds = seconds;
	r->best_at = k->best_at;
	if (k->best)
		memcpy(r->best_weights, k->best, best_bytes(r));
	s->best_hash = k->best_hash;
}

/* ---- choice ---- */

/* The same on all ranks; 0: there is none, or it is corrupted. */
static uint64_t snapshot_checksum(State *s, int which, uint64_t *corrupted)
{
	const Snapshot *k = &s->snapshot[which];
	if (!k->valid)
		return 0;
	if (snapshot_intact(s, k))
		return XXH3_64bits_withSeed(k->checksum, s->blocks * sizeof *k->checksum, k->position_hash) | 1;
	s->snapshot[which].valid = false;
	++*corrupted;
	return 0;
}

/* The snapshot of most ranks, unless as many have another of the same update; NULL: none. */
static const Vote *majority(const Vote *v)
{
	const Vote *most = NULL;
	for (int i = 0; i < VOTES && v[i].ranks; i++) {
		uint32_t against = 0;
		for (int k = 0; k < VOTES && v[k].ranks; k++)
			against += k != i && v[k].checksum && v[k].update == v[i].update ? v[k].ranks : 0;
		if (v[i].checksum && v[i].ranks > against && (!most || v[i].ranks > most->ranks))
			most = &v[i];
	}
	return most;
}

/* From rank `from` to all. */
static void snapshot_broadcast(State *s, int which, uint32_t from)
{
	const Comm *c = s->r->ranks->comm;
	Snapshot *k = &s->snapshot[which];
	c->broadcast(c->self, k->bytes, s->bytes, from);
	c->broadcast(c->self, k->checksum, s->blocks * sizeof *k->checksum, from);
	c->broadcast(c->self, &k->at, sizeof k->at, from);
	c->broadcast(c->self, &k->best_at, sizeof k->best_at, from);
	c->broadcast(c->self, &k->position_hash, sizeof k->position_hash, from);
	c->broadcast(c->self, &k->best_hash, sizeof k->best_hash, from);
	if (k->best)
		c->broadcast(c->self, k->best, best_bytes(s->r), from);
	k->valid = true;
}

int snapshot_choose(State *s, int newest, bool *give_up, uint64_t *corrupted)
{
	Ranks *k = s->r->ranks;
	for (int i = newest; i < SNAPSHOTS; i++) {
		Message own = { .status = *give_up,
			            .vote = { { snapshot_checksum(s, i, corrupted), 1, k ? k->comm->rank : 0,
			                        s->snapshot[i].at.updates } } };
		if (k) {
			k->own = own;
			ranks_exchange(&s->r->cx, k, MSG_SNAPSHOT);
		}
		const Message *all = k ? &k->all : &own;
		*give_up = all->status != 0;
		const Vote *v = majority(all->vote);
		if (*give_up)
			return -1;
		if (v && k && v->ranks < k->comm->size)
			snapshot_broadcast(s, i, v->first);
		if (v)
			return i;
	}
	return -1;
}
