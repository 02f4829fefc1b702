/* SPDX-License-Identifier: MIT */
/* cp.async.bulk to shared memory, with completion at an mbarrier. In: an instruction and its lanes. Out: memory,
 * complete_tx at the mbarrier. Must hold: words that a pending copy will write are marked (WORD_IN_FLIGHT); its
 * source does not change until it completes.
 *
 * A copy keeps its source as of issue and is queued. It completes at once, between runs of warps, or after a failed
 * poll of its mbarrier, as the seed says. Seed 0: as late as possible, which shows most errors: only after more
 * failed polls than a block has warps, since each warp may poll once and go on. A warp that depends on a copy polls,
 * so nothing waits for a copy for ever. */
#include <string.h>

#include "emulator.h"

enum { QUAD = 16 };

/* ---- parsing: [to + target], [from + offset], bytes, [mbarrier] ---- */

bool bulk_parse(Parser *p, Insn *i, Token name)
{
	bool global = ptx_is(name, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes");

	if (!global && !ptx_is(name, "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"))
		return false;
	i->op = OP_CP_BULK;
	i->sub = global;
	i->space = IN_SHARED;
	i->remote = true;
	p->kernel->async = true;
	take_address(p, i, IN_SHARED);
	i->target = (uint32_t)i->offset;
	ptx_expect(p, ",");
	take_address(p, i, global ? IN_GLOBAL : IN_SHARED);
	int64_t from = i->offset;
	add_source(p, i, T_U32);
	ptx_expect(p, ",");
	Token at = p->now;
	take_address(p, i, IN_SHARED);
	if (i->offset)
		parse_fail(p, at, NULL, "an offset from the mbarrier");
	i->offset = from;
	return true;
}

/* ---- the queue ---- */

/* A new last entry, which reuses the memory of a completed copy. */
static Bulk *queue_add(Grid *g, uint32_t bytes)
{
	if (g->bulks == g->bulks_made) {
		g->bulk = arena_reserve(&g->arena, g->bulk, g->bulks_made, &g->bulk_cap, sizeof *g->bulk);
		g->bulk[g->bulks_made++] = (Bulk){ .capacity = 0 };
	}
	Bulk *b = &g->bulk[g->bulks++];
	if (b->capacity < bytes) {
		b->data = arena_alloc(&g->arena, bytes, 1);
		b->capacity = bytes;
	}
	b->bytes = bytes;
	return b;
}

static void queue_remove(Grid *g, uint64_t at)
{
	Bulk b = g->bulk[at];

	g->bulk[at] = g->bulk[--g->bulks];
	g->bulk[g->bulks] = b;
}

const Bulk *bulk_to(const Grid *g, const Block *block, uint64_t address)
{
	for (uint64_t i = 0; i < g->bulks; i++)
		if (g->bulk[i].block == block && address - g->bulk[i].to < g->bulk[i].bytes)
			return &g->bulk[i];
	return NULL;
}

_Noreturn static void copy_fail(Grid *g, const Bulk *b, const char *what)
{
	g->now = b->insn;
	grid_fail(g, b->by, b->lane, "%s", what);
}

static void complete(Grid *g, uint64_t at)
{
	const Bulk *b = &g->bulk[at];
	const Insn *now = g->now;

	if (memcmp(b->from, b->data, b->bytes) != 0)
		copy_fail(g, b, "the source of a copy was overwritten before the copy was complete");
	memcpy(b->block->shared + b->to, b->data, b->bytes);
	for (uint32_t k = 0; k < b->bytes / 4; k++)
		b->block->word[b->to / 4 + k] &= (uint8_t)~WORD_IN_FLIGHT;
	g->now = b->insn;
	mbarrier_bytes(g, b);
	g->now = now;
	g->idle = 0;
	queue_remove(g, at);
}

/* ---- issue ---- */

static void issue(Grid *g, Warp *w, const Insn *i, uint32_t lane)
{
	Insn to = *i, barrier = *i;
	uint32_t bytes = lane_value(g, w, i->a[2], lane), from = lane_value(g, w, i->a[1], lane) + (uint32_t)i->offset;

	if (!bytes || bytes % QUAD)
		grid_fail(g, w, lane, "a copy of %u bytes: a multiple of %d", bytes, QUAD);
	barrier.a[0] = i->a[3];
	barrier.offset = 0;
	Bulk *b = queue_add(g, bytes);
	b->by = w;
	b->lane = (uint8_t)lane;
	b->polled = 0;
	b->insn = i;
	b->block = block_at(g, w, lane_value(g, w, i->a[0], lane) + i->target, lane);
	b->source = i->sub ? NULL : w->block;
	b->bar = shared_place(g, w, &barrier, lane, 8, ACCESS_ATOMIC);
	races_bulk_begin(g, w, b);
	for (uint32_t k = 0; k < bytes; k += QUAD) {
		const uint8_t *quad = i->sub ? global_place(g, w, i->a[1], i->offset + k, lane, QUAD)
		                             : shared_read(g, w, from + k, lane, QUAD, ACCESS_BULK_READ);
		memcpy(b->data + k, quad, QUAD);
		b->from = k ? b->from : quad;
	}
	for (uint32_t k = 0; k < bytes; k += QUAD) {
		to.offset = (int64_t)i->target + k;
		const uint8_t *quad = shared_place(g, w, &to, lane, QUAD, ACCESS_BULK_WRITE);
		b->to = k ? b->to : (uint32_t)(quad - b->block->shared);
	}
	races_bulk_issued(g, w, b);
}

void bulk_execute(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	for (uint32_t l = 0; l < LANES; l++) {
		if (!(mask >> l & 1))
			continue;
		issue(g, w, i, l);
		if (g->e->opt.seed && grid_random(g) % 8 == 0)
			complete(g, g->bulks - 1);
	}
}

/* ---- completion ---- */

/* Completes a random copy, sometimes. */
void bulk_step(Grid *g)
{
	uint64_t r = g->e->opt.seed ? grid_random(g) : 1;

	if (r % 8 == 0)
		complete(g, (r >> 8) % g->bulks);
}

/* A poll of `bar` failed: each copy that counts there completes with probability 1/2, or when it was polled often
 * enough. */
void bulk_polled(Grid *g, const uint8_t *bar)
{
	uint64_t r = g->e->opt.seed ? grid_random(g) : 0;

	for (uint64_t i = g->bulks; i-- > 0;)
		if (g->bulk[i].bar == bar && (r >> i % 64 & 1 || ++g->bulk[i].polled > g->block_warps))
			complete(g, i);
}

void bulk_block_ended(Grid *g, const Block *block)
{
	for (uint64_t i = 0; i < g->bulks; i++)
		if (g->bulk[i].block == block || g->bulk[i].source == block)
			copy_fail(g, &g->bulk[i], "a copy that nothing waited for: a block has ended whose memory it accesses");
}
