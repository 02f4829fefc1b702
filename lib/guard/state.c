/* SPDX-License-Identifier: MIT */
/* State under guard: what only updates write to. In: a target's regions, between updates. Out: whether they still
 * are what they were; copies of them, and a run that stands where one of these was made.
 *
 * Copies are all made at the same updates by all ranks of a job, and have the same bits. So ranks go back together:
 * they say what their copies are worth, take the latest that most of them have, and whoever does not have it gets
 * it from one who does. Must hold: which one that is follows from what all have heard, and from nothing else. */
#include <string.h>
#include <xxhash.h>

#include "guard_data.h"
#include "ranks.h"

static uint64_t seal_piece(const State *s, const void *at, uint64_t bytes)
{
	return s->r->target->guard->checksum ? s->r->target->guard->checksum(s->r->program, at, bytes)
	                                     : checksum_of(at, bytes);
}

/* ---- seals ---- */

void state_seal(State *s)
{
	uint64_t *seal = s->seal;
	for (uint32_t i = 0; i < s->regions; i++)
		for (uint64_t at = 0; at < s->region[i].bytes; at += CHECKSUM_BLOCK)
			*seal++ = seal_piece(s, (uint8_t *)s->region[i].at + at, checksum_block_size(s->region[i].bytes, at));
}

static const char *what_changed(const State *s, const Region *region, uint64_t at, uint64_t should, uint64_t is)
{
	Buf b = { .arena = &s->r->cx.scratch };
	uint64_t size = checksum_block_size(region->bytes, at), bit;
	if (flipped_bit(size, should, is, &bit))
		buf_printf(&b, "bit %llu of number %llu of the %s changed by itself", (unsigned long long)bit % 32,
		           (unsigned long long)(8 * at + bit) / 32, region->name);
	else
		buf_printf(&b, "some of bytes %llu to %llu of the %s changed by themselves", (unsigned long long)at,
		           (unsigned long long)(at + size - 1), region->name);
	return b.s;
}

const char *state_look(const State *s, const uint64_t *found)
{
	uint64_t piece = 0;
	for (uint32_t i = 0; i < s->regions; i++)
		for (uint64_t at = 0; at < s->region[i].bytes; at += CHECKSUM_BLOCK, piece++) {
			const Region *region = &s->region[i];
			uint64_t is = found ? found[piece]
			                    : seal_piece(s, (uint8_t *)region->at + at, checksum_block_size(region->bytes, at));
			if (is != s->seal[piece])
				return what_changed(s, region, at, s->seal[piece], is);
		}
	return NULL;
}

/* ---- copies ---- */

static Kept kept_new(const State *s)
{
	return (Kept){ .bytes = arena_alloc_raw(s->arena, s->bytes, 1),
		           .seal = NEW(s->arena, s->pieces, uint64_t),
		           .best = s->r->opt.keep_best ? arena_alloc(s->arena, best_bytes(s->r), 1) : NULL };
}

bool state_take(State *s)
{
	Region now[MOST_REGIONS] = { { 0 } };
	uint32_t regions = s->r->target->guard->regions(s->r->program, now);
	if (s->seal && regions == s->regions && memcmp(now, s->region, sizeof now) == 0)
		return false;
	memcpy(s->region, now, sizeof now);
	s->regions = regions;
	s->bytes = s->pieces = 0;
	for (uint32_t i = 0; i < regions; i++) {
		s->bytes += now[i].bytes;
		s->pieces += checksum_blocks(now[i].bytes);
	}
	s->seal = NEW(s->arena, s->pieces, uint64_t);
	for (int i = 0; i < COPIES; i++)
		s->kept[i] = kept_new(s);
	return true;
}

/* Time that passed is not part of where a run stands. */
static uint64_t place_word(const Position *at)
{
	Position p = *at;
	p.seconds = 0;
	return XXH3_64bits(&p, sizeof p);
}

void state_keep(State *s, int copy)
{
	const Run *r = s->r;
	Kept *k = &s->kept[copy];
	uint8_t *to = k->bytes;
	for (uint32_t i = 0; i < s->regions; to += s->region[i++].bytes)
		memcpy(to, s->region[i].at, s->region[i].bytes);
	memcpy(k->seal, s->seal, s->pieces * sizeof *k->seal);
	k->at = r->at;
	k->best_at = r->best_at;
	k->place = place_word(&k->at);
	if (k->best)
		memcpy(k->best, r->best_weights, best_bytes(r));
	k->valid = true;
}

static bool copy_is_good(const State *s, const Kept *k)
{
	const uint8_t *bytes = k->bytes;
	uint64_t n = 0;
	for (uint32_t i = 0; i < s->regions; bytes += s->region[i++].bytes)
		for (uint64_t at = 0; at < s->region[i].bytes; at += CHECKSUM_BLOCK)
			if (k->seal[n++] != seal_piece(s, bytes + at, checksum_block_size(s->region[i].bytes, at)))
				return false;
	return k->place == place_word(&k->at);
}

void state_restore(State *s, int copy)
{
	Run *r = s->r;
	const Kept *k = &s->kept[copy];
	const uint8_t *from = k->bytes;
	double seconds = r->at.seconds;
	for (uint32_t n = 0; n < s->regions; from += s->region[n++].bytes)
		memcpy(s->region[n].at, from, s->region[n].bytes);
	memcpy(s->seal, k->seal, s->pieces * sizeof *s->seal);
	r->at = k->at;
	r->at.seconds = seconds;
	r->best_at = k->best_at;
	if (k->best)
		memcpy(r->best_weights, k->best, best_bytes(r));
}

/* ---- which of them ---- */

/* The same wherever the copy is; 0: there is none, or it is broken. */
static uint64_t copy_word(State *s, int copy, uint64_t *broken)
{
	const Kept *k = &s->kept[copy];
	if (!k->valid)
		return 0;
	if (copy_is_good(s, k))
		return XXH3_64bits_withSeed(k->seal, s->pieces * sizeof *k->seal, k->place) | 1;
	s->kept[copy].valid = false;
	++*broken;
	return 0;
}

/* The copy that most have, unless as many have another of the same update; NULL: there is none. */
static const Vote *most_have(const Vote *v)
{
	const Vote *most = NULL;
	for (int i = 0; i < VOTES && v[i].ranks; i++) {
		uint32_t against = 0;
		for (int k = 0; k < VOTES && v[k].ranks; k++)
			against += k != i && v[k].word && v[k].update == v[i].update ? v[k].ranks : 0;
		if (v[i].word && v[i].ranks > against && (!most || v[i].ranks > most->ranks))
			most = &v[i];
	}
	return most;
}

/* From rank `from` to those whose copy is another. */
static void copy_spread(State *s, int copy, uint32_t from)
{
	const Comm *c = s->r->ranks->comm;
	Kept *k = &s->kept[copy];
	c->spread(c->self, k->bytes, s->bytes, from);
	c->spread(c->self, k->seal, s->pieces * sizeof *k->seal, from);
	c->spread(c->self, &k->at, sizeof k->at, from);
	c->spread(c->self, &k->best_at, sizeof k->best_at, from);
	c->spread(c->self, &k->place, sizeof k->place, from);
	if (k->best)
		c->spread(c->self, k->best, best_bytes(s->r), from);
	k->valid = true;
}

int state_choose(State *s, int newest, bool *enough, uint64_t *broken)
{
	Ranks *k = s->r->ranks;
	for (int i = newest; i < COPIES; i++) {
		Saying own = { .status = *enough,
			           .vote = { { copy_word(s, i, broken), 1, k ? k->comm->rank : 0, s->kept[i].at.updates } } };
		if (k) {
			k->own = own;
			ranks_meet(&s->r->cx, k, SAY_COPIES);
		}
		const Saying *all = k ? &k->all : &own;
		*enough = all->status != 0;
		const Vote *v = most_have(all->vote);
		if (*enough)
			return -1;
		if (v && k && v->ranks < k->comm->size)
			copy_spread(s, i, v->first);
		if (v)
			return i;
	}
	return -1;
}
