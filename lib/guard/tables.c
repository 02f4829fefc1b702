/* SPDX-License-Identifier: MIT */
/* Tables under guard: memory that nothing writes to while a run trains. In: a run whose data is bound. Out: whether
 * its tables are as they were; if not, they are repaired, or training fails.
 *
 * Tables are the network, the plan, options, the program with its steps, layouts, index lists and code tables, the
 * descriptions of data, the numbers of the training loop, and the guard's own lists. Each has a checksum per block and
 * a copy, so that any change can be undone: whichever of table, copy and checksum the other two contradict is
 * replaced. The list of tables has a hash; where that changed, nothing is safe to write to, and training fails. */
#include <string.h>
#include <xxhash.h>

#include "parts.h"

void table_add(void *tables, Region r)
{
	Tables *t = tables;
	if (!r.at || !r.bytes)
		return;
	t->table = arena_reserve(&t->arena, t->table, t->count, &t->capacity, sizeof *t->table);
	t->table[t->count++] = (Table){ .is = r };
}

/* A part of an arena. */
typedef struct Blocks {
	Tables *to;
	const char *name;
} Blocks;

static void block_add(void *arg, void *at, size_t bytes)
{
	const Blocks *b = arg;
	table_add(b->to, (Region){ b->name, at, bytes });
}

void tables_add_arena(Tables *t, const char *name, const Arena *a) { arena_walk(a, block_add, &(Blocks){ t, name }); }

void tables_clear(Tables *t, Run *r)
{
	arena_free(&t->arena);
	*t = (Tables){ .r = r, .arena.cx = &r->cx };
}

static uint64_t list_hash(const Tables *t)
{
	return XXH3_64bits_withSeed(t->table, t->count * sizeof *t->table, t->count);
}

void tables_checksum(Tables *t)
{
	for (Table *k = t->table; k < t->table + t->count; k++) {
		k->checksum = NEW(&t->arena, checksum_blocks(k->is.bytes), uint64_t);
		k->copy = arena_alloc_raw(&t->arena, k->is.bytes, 1);
		memcpy(k->copy, k->is.at, k->is.bytes);
		for (uint64_t at = 0; at < k->is.bytes; at += CHECKSUM_BLOCK)
			k->checksum[at / CHECKSUM_BLOCK] = block_checksum(t->r, k->copy + at, checksum_block_size(k->is.bytes, at));
	}
	t->hash = list_hash(t);
}

/* One block. True: the table had changed. */
static bool block_repair(Tables *t, const Table *k, uint64_t at)
{
	uint8_t *here = (uint8_t *)k->is.at + at, *copy = k->copy + at;
	uint64_t size = checksum_block_size(k->is.bytes, at), *expected = &k->checksum[at / CHECKSUM_BLOCK];
	uint64_t found = block_checksum(t->r, here, size);
	if (found == *expected)
		return false;
	if (memcmp(here, copy, size) == 0) { /* then the checksum changed */
		*expected = found;
		return false;
	}
	if (block_checksum(t->r, copy, size) != *expected)
		fail(&t->r->cx, MP_FAILED, "start again from the last checkpoint, on another machine",
		     "the %s and its copy changed during training: bytes %llu to %llu", k->is.name, (unsigned long long)at,
		     (unsigned long long)(at + size - 1));
	memcpy(here, copy, size);
	return true;
}

const char *tables_mismatch(Tables *t, uint64_t *repaired)
{
	const char *name = NULL;
	if (t->hash != list_hash(t))
		fail(&t->r->cx, MP_FAILED, "start again from the last checkpoint, on another machine",
		     "the list of tables that are verified changed during training");
	for (const Table *k = t->table; k < t->table + t->count; k++)
		for (uint64_t at = 0; at < k->is.bytes; at += CHECKSUM_BLOCK)
			if (block_repair(t, k, at)) {
				++*repaired;
				name = k->is.name;
			}
	if (!name)
		return NULL;
	Buf b = { .arena = &t->r->cx.scratch };
	buf_printf(&b, "the %s changed by itself, and was repaired", name);
	return b.s;
}
