/* SPDX-License-Identifier: MIT */
/* Data races: happens-before by vector clocks. In: accesses, barriers, fences, acquire and release of warps. Out: an
 * error at the second access of a race. Must hold: order is derived from synchronization, not from the schedule, so
 * that most races show on any schedule.
 *
 * Every warp has a vector clock: for each warp, the number up to which its accesses happen before the warp's next
 * one. Barriers join the clocks of those who arrive; a release leaves a clock at its address, an acquire joins it, a
 * fence makes relaxed accesses do so. Lanes of a warp are ordered by barriers and bar.warp.sync. Fences and accesses
 * of scope .cta or .cluster order nothing here.
 *
 * Strong accesses (.relaxed and stronger) do not race with each other, with one exception: a lost update. A store
 * that changes a word whose last store is unordered, by a warp that has not loaded the word since.
 *
 * Bulk copies and wgmma access memory through the async proxy. In kernels that have such, a clock has four parts,
 * each with a word per warp:
 *
 *   the clock | completed copies of the warp | the clock up to which stores to shared memory are visible to the async
 *   proxy | the same of global memory
 *
 * fence.proxy.async copies the first part to the last two, and joins carry these on: the fence may be anywhere
 * between a store and the copy that depends on it. Lanes of a warp have one clock, so that a fence by one lane
 * counts for all; a fence for shared memory counts for that of all blocks.
 *
 * The accesses of a copy are those of a warp of its own, whose clock is the number of copies that the warp has
 * issued: the mbarrier releases that number, so that the issuing warp must wait, too. Copies of a warp are assumed
 * to complete in order. A copy that overwrites what threads have read needs a barrier in between, but no proxy
 * fence: pipelines of copies do without in practice. */
#include <string.h>

#include "emulator.h"

enum { SEVERAL = LANES, ALL_BYTES = 15 }; /* lanes; bytes of a word */
enum { PARTS = 4 };                       /* of a clock in a kernel that uses the async proxy */

typedef struct LastAccess {
	uint32_t warp; /* 1 + number in the grid; of a copy, + all warps; 0: none */
	uint32_t clock, syncs, at, step;
	uint8_t lane, bytes; /* bytes: of the word, a bit each */
	bool atomic;
} LastAccess;
typedef struct ShadowWord {
	LastAccess write, read;
	uint32_t *readers; /* clock of the last read by each of Shadow.warps, then by their copies; NULL: one reader */
	uint64_t seen;     /* warps that have loaded the last store by a strong load: a bit each, modulo 64 */
	bool stored;       /* the last write was a strong store that changed it */
	bool narrow;       /* some accesses were of single bytes: `readers` is not used, since they may be of other bytes */
} ShadowWord;
/* Shadow memory, in pages: most words of large allocations are never accessed. */
enum { PAGE_WORDS = 256 };
struct Shadow {
	const char *what;      /* in messages */
	uint32_t first, warps; /* warps that may access it: all, or those of a cluster */
	uint32_t readers;      /* length of ShadowWord.readers: warps, or twice as many if copies read, too */
	bool shared;
	uint32_t *free;      /* free list of readers arrays; the first words of each are the link */
	ShadowWord *page[1]; /* NULL: none of its words was accessed */
};

/* Clocks that releases left, by address. */
typedef struct ReleasedClock {
	struct ReleasedClock *next;
	uint64_t address;
	uint32_t clock[1];
} ReleasedClock;
enum { RELEASE_BUCKETS = 256 };

static uint32_t *clock_new(Grid *g) { return arena_alloc(&g->arena, g->clock_words, sizeof(uint32_t)); }

static void clock_join(const Grid *g, uint32_t *to, const uint32_t *from)
{
	for (uint32_t i = 0; i < g->clock_words; i++)
		to[i] = max_u32(to[i], from[i]);
}

static uint32_t *copies_of(const Grid *g, uint32_t *clock) { return clock + g->warps; }

static uint32_t *fenced_of(const Grid *g, uint32_t *clock, bool shared) { return clock + (shared ? 2 : 3) * g->warps; }

void races_start(Grid *g)
{
	if (!g->races)
		return;
	for (uint64_t i = 0; i < g->e->allocations; i++)
		g->e->allocation[i].shadow = NULL; /* the launch before has ended before this one began */
	g->clock_words = g->k->async ? PARTS * g->warps : g->warps;
	for (uint32_t i = 0; i < g->warps; i++) {
		Warp *w = &g->warp[i];
		w->race.clock = clock_new(g);
		w->race.seen = clock_new(g);
		w->race.fenced = clock_new(g);
		w->race.clock[i] = 1;
	}
	g->released = arena_alloc(&g->arena, RELEASE_BUCKETS, sizeof *g->released);
}

/* ---- accesses ---- */

static bool ordered(const Warp *w, uint32_t lane, const LastAccess *before)
{
	if (before->warp - 1 != w->of_grid)
		return w->race.clock[before->warp - 1] >= before->clock;
	return before->lane == lane || before->syncs < w->race.syncs;
}

uint32_t line_of(const Grid *g, uint32_t at)
{
	uint32_t line = 1;

	for (uint32_t i = 0; i < at; i++)
		line += g->k->of->src.text[i] == '\n';
	return line;
}

_Noreturn static void race(Grid *g, const Warp *w, uint32_t lane, const LastAccess *a, const char *what, bool wrote,
                           uint64_t at)
{
	const Warp *v = &g->warp[(a->warp - 1) % g->warps];

	grid_fail(g, w, lane,
	          "a race: nothing orders this access to the %s at %llu after the %s in line %u by block %u, warp %u", what,
	          (unsigned long long)at, wrote ? "write" : "read", line_of(g, a->at), v->block->number, v->number);
}

/* An access through the async proxy: the last write by a thread must be visible to it. */
static void check_proxy(Grid *g, const Warp *w, uint32_t lane, const LastAccess *a, const Shadow *m, uint64_t at)
{
	if (!a->warp || a->warp > g->warps || fenced_of(g, w->race.clock, m->shared)[a->warp - 1] >= a->clock)
		return;
	const Warp *v = &g->warp[a->warp - 1];
	grid_fail(g, w, lane,
	          "a race: no fence.proxy.async lies between this %s and the write in line %u by block %u, warp %u, to the "
	          "%s at %llu",
	          g->now->op == OP_CP_BULK ? "copy" : "product", line_of(g, a->at), v->block->number, v->number, m->what,
	          (unsigned long long)at);
}

/* Index in ShadowWord.readers. */
static uint32_t reader_of(const Grid *g, const Shadow *m, uint32_t who)
{
	return who < g->warps ? who - m->first : who - g->warps - m->first + m->warps;
}

static uint32_t *readers_new(Grid *g, Shadow *m)
{
	enum { LINK = sizeof(void *) / sizeof(uint32_t) };
	uint32_t *r = m->free;

	if (!r)
		return arena_alloc(&g->arena, max_u32(m->readers, LINK), sizeof *r);
	memcpy(&m->free, r, sizeof r);
	memset(r, 0, m->readers * sizeof *r);
	return r;
}

static void readers_free(Shadow *m, uint32_t *r)
{
	if (!r)
		return;
	memcpy(r, &m->free, sizeof r);
	m->free = r;
}

static void check_readers(Grid *g, Warp *w, uint32_t lane, uint8_t bytes, const Shadow *m, ShadowWord *s, uint64_t at)
{
	if (s->read.warp && s->read.bytes & bytes && !ordered(w, lane, &s->read))
		race(g, w, lane, &s->read, m->what, false, at);
	for (uint32_t i = 0; s->readers && !s->narrow && i < m->readers; i++) {
		uint32_t who = m->first + (i < m->warps ? i : i - m->warps + g->warps);
		if (who != w->of_grid && s->readers[i] > w->race.clock[who]) {
			LastAccess a = s->read;
			a.warp = who + 1;
			race(g, w, lane, &a, m->what, false, at);
		}
	}
}

static void record_read(Grid *g, Warp *w, Shadow *m, ShadowWord *s, LastAccess now)
{
	LastAccess *r = &s->read;

	if (r->warp && r->warp != now.warp && !ordered(w, now.lane, r) && !s->readers) {
		s->readers = readers_new(g, m);
		s->readers[reader_of(g, m, r->warp - 1)] = r->clock;
	}
	if (s->readers)
		s->readers[reader_of(g, m, now.warp - 1)] = now.clock;
	if (r->warp == now.warp && r->syncs == now.syncs && r->lane != now.lane)
		now.lane = SEVERAL;
	*r = now;
}

Shadow *shadow_new(Grid *g, const Warp *w, uint64_t bytes, bool shared)
{
	uint64_t words = bytes / 4 + 1;
	Shadow *m = arena_alloc(&g->arena, sizeof *m + words / PAGE_WORDS * sizeof *m->page, 1);
	uint32_t cluster = g->cluster * g->block_warps;

	m->what = shared ? "shared word" : "global word";
	m->first = shared ? w->of_grid / cluster * cluster : 0;
	m->warps = shared ? cluster : g->warps;
	m->readers = g->k->async ? 2 * m->warps : m->warps;
	m->shared = shared;
	return m;
}

static ShadowWord *shadow_word(Grid *g, Shadow *m, uint64_t word)
{
	ShadowWord **page = &m->page[word / PAGE_WORDS];

	if (!*page)
		*page = arena_alloc(&g->arena, PAGE_WORDS, sizeof(ShadowWord));
	return &(*page)[word % PAGE_WORDS];
}

static LastAccess access_now(const Grid *g, const Warp *w)
{
	return (LastAccess){ .warp = w->of_grid + 1,
		                 .clock = w->race.clock[w->of_grid],
		                 .syncs = w->race.syncs,
		                 .at = g->now->at,
		                 .step = (uint32_t)g->executed,
		                 .bytes = ALL_BYTES };
}

void races_access(Grid *g, Warp *w, uint32_t lane, Shadow *m, uint64_t word, uint8_t bytes, Access how)
{
	ShadowWord *s = shadow_word(g, m, word);
	LastAccess now = access_now(g, w);
	bool same_step = s->write.warp == now.warp && s->write.step == now.step; /* access.c compares the values */

	if (how == ACCESS_BULK_READ || how == ACCESS_BULK_WRITE) {
		now.warp += g->warps;
		now.clock = w->race.bulks;
	}
	now.lane = (uint8_t)lane;
	now.bytes = bytes;
	now.atomic = how == ACCESS_ATOMIC || how == ACCESS_ATOMIC_READ || how == ACCESS_ATOMIC_STORE;
	s->narrow |= bytes != ALL_BYTES;
	if (s->write.warp && s->write.bytes & bytes && !(s->write.atomic && now.atomic) && !same_step &&
	    !ordered(w, lane, &s->write))
		race(g, w, lane, &s->write, m->what, true, word * 4);
	if (how == ACCESS_ATOMIC_STORE && s->stored && !same_step && !(s->seen >> w->of_grid % 64 & 1) &&
	    !ordered(w, lane, &s->write))
		race(g, w, lane, &s->write, m->what, true, word * 4);
	if (how == ACCESS_ATOMIC_READ)
		s->seen |= (uint64_t)1 << w->of_grid % 64;
	if (how >= ACCESS_PRODUCT)
		check_proxy(g, w, lane, &s->write, m, word * 4);
	if (how == ACCESS_READ || how == ACCESS_PRODUCT || how == ACCESS_BULK_READ) {
		record_read(g, w, m, s, now);
	} else if (how != ACCESS_ATOMIC_READ) {
		check_readers(g, w, lane, bytes, m, s, word * 4);
		s->write = now;
		s->stored = how == ACCESS_ATOMIC_STORE;
		s->seen = 0;
		s->read.warp = 0;
		readers_free(m, s->readers);
		s->readers = NULL;
	}
}

/* races_access for weak loads of whole words at offsets `at`: the common case. */
void races_load(Grid *g, Warp *w, uint32_t mask, Shadow *m, const uint64_t at[LANES], uint32_t width)
{
	LastAccess now = access_now(g, w);

	for (uint32_t l = 0; l < LANES; l++)
		for (uint64_t word = at[l] / 4; mask >> l & 1 && word < at[l] / 4 + width; word++) {
			ShadowWord *s = shadow_word(g, m, word);
			now.lane = (uint8_t)l;
			if (s->write.warp && !ordered(w, l, &s->write))
				race(g, w, l, &s->write, m->what, true, word * 4);
			record_read(g, w, m, s, now);
		}
}

/* ---- synchronization ---- */

/* NULL: no release at this address. */
static ReleasedClock *released_find(const Grid *g, uint64_t address)
{
	for (ReleasedClock *r = g->released[(address >> 2) % RELEASE_BUCKETS]; r; r = r->next)
		if (r->address == address)
			return r;
	return NULL;
}

static ReleasedClock *released_new(Grid *g, uint64_t address)
{
	ReleasedClock **bucket = &g->released[(address >> 2) % RELEASE_BUCKETS];
	ReleasedClock *r = arena_alloc(&g->arena, sizeof *r + g->clock_words * sizeof *r->clock, 1);
	r->address = address;
	r->next = *bucket;
	return *bucket = r;
}

/* A strong store or an atomic of scope .gpu or .sys. replaces: a store; an atomic continues the release sequence. */
void races_release(Grid *g, Warp *w, uint64_t address, bool release, bool replaces)
{
	ReleasedClock *r = released_find(g, address);

	if (!r && !release && !w->race.has_fenced)
		return;
	if (!r)
		r = released_new(g, address);
	if (replaces)
		memset(r->clock, 0, g->clock_words * sizeof *r->clock);
	if (release) {
		clock_join(g, r->clock, w->race.clock);
		w->race.clock[w->of_grid]++;
	} else if (w->race.has_fenced) {
		clock_join(g, r->clock, w->race.fenced);
	}
}

void races_acquire(Grid *g, Warp *w, uint64_t address, bool acquire)
{
	const ReleasedClock *r = released_find(g, address);

	if (r)
		clock_join(g, acquire ? w->race.clock : w->race.seen, r->clock);
}

void races_fence(Grid *g, Warp *w)
{
	if (!g->races)
		return;
	clock_join(g, w->race.clock, w->race.seen);
	memcpy(w->race.fenced, w->race.clock, g->clock_words * sizeof *w->race.fenced);
	w->race.has_fenced = true;
	w->race.clock[w->of_grid]++;
}

void races_arrive(Grid *g, Warp *w, uint32_t **clock)
{
	if (!g->races)
		return;
	if (!*clock)
		*clock = clock_new(g);
	clock_join(g, *clock, w->race.clock);
	w->race.clock[w->of_grid]++;
}

void races_leave(Grid *g, Warp *w, const uint32_t *clock)
{
	if (!g->races)
		return;
	clock_join(g, w->race.clock, clock);
	w->race.syncs++;
}

void races_barrier_reset(Grid *g, uint32_t *clock)
{
	if (g->races && clock)
		memset(clock, 0, g->clock_words * sizeof *clock);
}

void races_warp_sync(Warp *w) { w->race.syncs++; }

/* ---- async proxy ---- */

void races_proxy_fence(Grid *g, Warp *w, uint32_t spaces)
{
	if (!g->races || !g->k->async)
		return;
	if (spaces & FENCE_SHARED)
		memcpy(fenced_of(g, w->race.clock, true), w->race.clock, g->warps * sizeof *w->race.clock);
	if (spaces & FENCE_GLOBAL)
		memcpy(fenced_of(g, w->race.clock, false), w->race.clock, g->warps * sizeof *w->race.clock);
	w->race.clock[w->of_grid]++;
}

/* Beside the clocks of both phases, that of mbarrier.init: copies count at the mbarrier through the async proxy. */
static uint64_t made_at(const uint8_t *bar) { return (uintptr_t)bar + 2; }

void races_bar_made(Grid *g, const Warp *w, const uint8_t *bar)
{
	if (!g->races || !g->k->async)
		return;
	ReleasedClock *r = released_find(g, made_at(bar));
	if (!r)
		r = released_new(g, made_at(bar));
	memset(r->clock, 0, g->clock_words * sizeof *r->clock);
	r->clock[w->of_grid] = w->race.clock[w->of_grid];
}

void races_bulk_begin(Grid *g, Warp *w, Bulk *b)
{
	if (!g->races)
		return;
	const ReleasedClock *r = released_find(g, made_at(b->bar));
	const uint32_t *fenced = fenced_of(g, w->race.clock, true);
	for (uint32_t i = 0; r && i < g->warps; i++)
		if (r->clock[i] > fenced[i])
			grid_fail(g, w, b->lane, "a race: no fence.proxy.async lies between this copy and mbarrier.init");
	w->race.bulks++;
}

void races_bulk_issued(Grid *g, Warp *w, Bulk *b)
{
	if (!g->races)
		return;
	if (!b->clock)
		b->clock = clock_new(g);
	memcpy(b->clock, w->race.clock, g->clock_words * sizeof *b->clock);
	copies_of(g, b->clock)[w->of_grid] = w->race.bulks;
	w->race.clock[w->of_grid]++;
}

void races_bulk_landed(Grid *g, const Bulk *b, uint64_t address, bool replaces)
{
	ReleasedClock *r = released_find(g, address);

	if (!r)
		r = released_new(g, address);
	if (replaces)
		memset(r->clock, 0, g->clock_words * sizeof *r->clock);
	clock_join(g, r->clock, b->clock);
}
