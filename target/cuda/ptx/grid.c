/* SPDX-License-Identifier: MIT */
/* A launch: blocks, warps, the warp scheduler, block and cluster barriers. In: a kernel, its parameters. Out:
 * memory. Must hold: a warp is in Grid.ready exactly while it can run. */
#include <stdio.h>
#include <string.h>

#include "emulator.h"

void grid_fail(Grid *g, const Warp *w, uint32_t lane, const char *fmt, ...)
{
	char text[300], who[100] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (w && lane < LANES)
		snprintf(who, sizeof who, " (block %u, thread %u)", w->block->number, w->number * LANES + lane);
	else if (w)
		snprintf(who, sizeof who, " (block %u, warp %u)", w->block->number, w->number);
	floats_leave(&g->caller);
	fail_at(g->cx, (Loc){ &g->k->of->src, g->now->at }, NULL, "kernel %s, seed %llu: %s%s", g->k->name,
	        (unsigned long long)g->e->opt.seed, text, who);
}

uint64_t grid_random(Grid *g)
{
	uint64_t x = g->random += 0x9e3779b97f4a7c15u; /* splitmix64 */

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* ---- ready warps ---- */

void warp_ready(Grid *g, Warp *w)
{
	w->state = WARP_READY;
	g->ready[g->ready_count++] = w->of_grid;
}

void warp_unready(Grid *g, const Warp *w)
{
	for (uint32_t i = 0; i < g->ready_count; i++)
		if (g->ready[i] == w->of_grid) {
			memmove(g->ready + i, g->ready + i + 1, (g->ready_count - i - 1) * sizeof *g->ready);
			g->ready_count--;
			return;
		}
}

/* ---- barriers ---- */

static void fill(Warp *w, uint32_t slot, uint32_t value, uint32_t mask)
{
	for (uint32_t l = 0; l < LANES; l++)
		if (mask >> l & 1)
			w->reg[(uint64_t)slot * LANES + l] = value;
	w->defined[slot] |= mask;
}

static void red_result(const Barrier *b, Warp *w, const Insn *i)
{
	uint32_t *pred = w->reg + (uint64_t)i->d[0] * LANES, value = i->sub == B_AND ? b->all : b->any;

	if (i->sub == B_POPC) {
		fill(w, i->d[0], b->popc, w->live);
		return;
	}
	*pred = (*pred & ~w->live) | (value ? w->live : 0);
	w->defined[i->d[0]] |= w->live;
}

static void block_barrier_release(Grid *g, Block *block, Barrier *b)
{
	for (uint32_t k = 0; k < g->block_warps; k++)
		if (b->waiting >> k & 1) {
			Warp *w = &block->warp[k];
			const Insn *i = &g->k->code[w->pc - 1];
			if (i->sub >= B_POPC)
				red_result(b, w, i);
			races_leave(g, w, b->clock);
			warp_ready(g, w);
		}
	b->arrived = b->waiting = b->popc = 0;
	races_barrier_reset(g, b->clock);
	g->idle = 0;
}

static void barrier_check(Grid *g, Block *block, Barrier *b)
{
	uint32_t expected = b->expected ? b->expected : block->live * LANES;

	if (b->arrived && b->arrived >= expected)
		block_barrier_release(g, block, b);
}

/* ---- clusters ---- */

/* Completes the phase when all live warps of the cluster have arrived. */
static void cluster_check(Grid *g, uint32_t number)
{
	Cluster *c = &g->clusters[number];
	uint32_t live = 0, first = number * g->cluster, ended = c->phase;

	for (uint32_t i = first; i < first + g->cluster; i++)
		live += g->block[i].live;
	if (!c->arrived || c->arrived < live)
		return;
	c->phase++;
	c->arrived = 0;
	races_barrier_reset(g, c->clock[c->phase % 2]); /* all warps have passed the phase before */
	for (uint32_t i = first * g->block_warps; i < (first + g->cluster) * g->block_warps; i++) {
		Warp *w = &g->warp[i];
		if (w->state == WARP_WAITS && w->waits_at == BARRIERS && w->phase == ended) {
			races_leave(g, w, c->clock[ended % 2]);
			w->phase = 0;
			warp_ready(g, w);
		}
	}
	g->idle = 0;
}

void cluster_arrive(Grid *g, Warp *w)
{
	uint32_t number = w->block->number / g->cluster;
	Cluster *c = &g->clusters[number];

	if (w->phase)
		grid_fail(g, w, NO_LANE, "the warp arrives at the barrier of its cluster again without having waited");
	w->phase = c->phase;
	c->arrived++;
	races_arrive(g, w, &c->clock[c->phase % 2]);
	cluster_check(g, number);
}

void cluster_wait(Grid *g, Warp *w)
{
	const Cluster *c = &g->clusters[w->block->number / g->cluster];

	if (!w->phase)
		grid_fail(g, w, NO_LANE, "the warp waits at the barrier of its cluster without having arrived");
	if (c->phase != w->phase) {
		races_leave(g, w, c->clock[w->phase % 2]);
		w->phase = 0;
		return;
	}
	w->state = WARP_WAITS;
	w->waits_at = BARRIERS;
	warp_unready(g, w);
}

/* A warp has ended. */
void barrier_recheck(Grid *g, Block *block)
{
	for (uint32_t i = 0; i < BARRIERS; i++)
		barrier_check(g, block, &block->barrier[i]);
	cluster_check(g, block->number / g->cluster);
}

void block_barrier_arrive(Grid *g, Warp *w, const Insn *i, uint32_t number, uint32_t count, uint32_t pred,
                          uint32_t mask)
{
	Barrier *b = &w->block->barrier[number];

	if (!b->arrived) {
		b->expected = count;
		b->all = true;
		b->any = false;
	} else if (b->expected != count) {
		grid_fail(g, w, NO_LANE, "barrier %u is for %u threads here, for %u elsewhere", number, count, b->expected);
	}
	b->arrived += LANES;
	b->popc += (uint32_t)__builtin_popcount(pred & mask);
	b->any |= (pred & mask) != 0;
	b->all &= (pred & mask) == mask;
	races_arrive(g, w, &b->clock);
	if (i->sub != B_ARRIVE) {
		b->waiting |= 1u << w->number;
		w->state = WARP_WAITS;
		w->waits_at = number;
		warp_unready(g, w);
	}
	barrier_check(g, w->block, b);
}

/* ---- starting ---- */

static void fill_specials(const Grid *g, Warp *w)
{
	for (uint32_t l = 0; l < LANES; l++) {
		uint32_t bit = 1u << l;
		uint32_t value[SR_COUNT] = {
			[SR_TID] = w->number * LANES + l,
			[SR_NTID] = g->threads,
			[SR_CTAID] = w->block->number,
			[SR_NCTAID] = g->blocks,
			[SR_LANE] = l,
			[SR_WARP] = w->number,
			[SR_NWARP] = g->block_warps,
			[SR_ZERO] = 0,
			[SR_ONE] = 1,
			[SR_MASK_EQ] = bit,
			[SR_MASK_LT] = bit - 1,
			[SR_MASK_LE] = bit | (bit - 1),
			[SR_MASK_GT] = ~(bit | (bit - 1)),
			[SR_MASK_GE] = ~(bit - 1),
			[SR_DYNAMIC] = g->dynamic,
		};
		for (uint32_t i = 0; i < SR_COUNT; i++)
			if (g->k->special[i] != NO_SLOT)
				fill(w, g->k->special[i], value[i], bit);
	}
}

static void warp_start(Grid *g, Block *b, uint32_t number)
{
	Warp *w = &b->warp[number];
	uint32_t threads = min_u32(g->threads - number * LANES, LANES);

	w->block = b;
	w->number = number;
	w->of_grid = b->number * g->block_warps + number;
	w->live = w->active = threads == LANES ? UINT32_MAX : (1u << threads) - 1;
	w->next_pc = NO_PC;
	w->reg = arena_alloc(&g->arena, (uint64_t)g->k->slots + 2, LANES * sizeof *w->reg);
	w->defined = arena_alloc(&g->arena, (uint64_t)g->k->slots + 2, sizeof *w->defined);
	w->local = arena_alloc(&g->arena, (uint64_t)g->k->local * LANES + 1, 1);
	fill_specials(g, w);
	warp_ready(g, w);
}

static void check_launch(const Emulator *e, const Kernel *k, const Launch *l)
{
	if (!l->blocks || l->blocks > 1 << 16 || !l->threads || l->threads > MAX_WARPS * LANES)
		fail(e->cx, MP_FAILED, NULL, "kernel %s: a launch of %u blocks of %u threads", k->name, l->blocks, l->threads);
	if (k->threads && (k->threads_exact ? l->threads != k->threads : l->threads > k->threads))
		fail(e->cx, MP_FAILED, NULL, "kernel %s: %u threads where the text allows %u", k->name, l->threads, k->threads);
	if (k->shared + (uint64_t)l->shared > 227 * 1024)
		fail(e->cx, MP_FAILED, NULL, "kernel %s: %llu bytes of shared memory", k->name,
		     (unsigned long long)k->shared + l->shared);
	if (l->cluster > 16 || (l->cluster > 1 && l->blocks % l->cluster))
		fail(e->cx, MP_FAILED, NULL, "kernel %s: %u blocks in clusters of %u", k->name, l->blocks, l->cluster);
}

static void grid_start(Grid *g, const Launch *l)
{
	const Kernel *k = g->k;

	g->dynamic = (uint32_t)round_up(k->shared, 128);
	g->shared_bytes = l->shared ? g->dynamic + l->shared : k->shared;
	g->param = arena_alloc(&g->arena, (uint64_t)k->param_bytes + 16, 1);
	for (uint64_t i = 0; i < k->params; i++)
		memcpy(g->param + k->param[i].at, l->param[i], k->param[i].bytes);
	g->warp = NEW(&g->arena, g->warps, Warp);
	g->block = NEW(&g->arena, g->blocks, Block);
	g->clusters = NEW(&g->arena, g->blocks / g->cluster, Cluster);
	for (uint32_t i = 0; i < g->blocks / g->cluster; i++)
		g->clusters[i].phase = 1;
	g->ready = NEW(&g->arena, g->warps, uint32_t);
	for (uint32_t i = 0; i < g->blocks; i++) {
		Block *b = &g->block[i];
		b->number = i;
		b->live = g->block_warps;
		b->warp = g->warp + (uint64_t)i * g->block_warps;
		b->shared = arena_alloc(&g->arena, (uint64_t)g->shared_bytes + 16, 1);
		b->word = arena_alloc(&g->arena, (uint64_t)g->shared_bytes / 4 + 16, 1);
		memset(b->shared, 0xff, g->shared_bytes);
		for (uint32_t n = 0; n < g->block_warps; n++)
			warp_start(g, b, n);
	}
	races_start(g);
}

/* ---- running ---- */

_Noreturn static void deadlock(Grid *g)
{
	for (uint32_t i = 0; i < g->warps; i++) {
		const Warp *w = &g->warp[i];
		if (w->state != WARP_WAITS)
			continue;
		g->now = &g->k->code[w->pc - 1];
		if (w->waits_at == BARRIERS)
			grid_fail(g, w, NO_LANE, "the barrier of the cluster waits for ever: %u warps are there",
			          g->clusters[w->block->number / g->cluster].arrived);
		const Barrier *b = &w->block->barrier[w->waits_at];
		grid_fail(g, w, NO_LANE, "barrier %u waits for ever: %u threads of %u are there", w->waits_at, b->arrived,
		          b->expected ? b->expected : w->block->live * LANES);
	}
	floats_leave(&g->caller);
	fail(g->cx, MP_FAILED, NULL, "kernel %s: nothing can run", g->k->name);
}

/* Scheduler. Seed 0: round robin, a warp runs until it waits or polls. Others: a random warp runs for 1 to 64
 * instructions, sometimes for many. */
static void grid_run(Grid *g)
{
	enum { LONG = 1 << 12 };
	uint32_t next = 0, left = g->warps;

	while (left) {
		if (!g->ready_count)
			deadlock(g);
		if (g->bulks)
			bulk_step(g);
		uint64_t r = g->e->opt.seed ? grid_random(g) : 0;
		if (g->e->opt.seed)
			next = (uint32_t)((r >> 32) % g->ready_count);
		else if (next >= g->ready_count)
			next = 0;
		Warp *w = &g->warp[g->ready[next]];
		g->budget = !g->e->opt.seed || r % 8 == 0 ? LONG : 1 + (r >> 8) % 64;
		warp_run(g, w);
		left -= w->state == WARP_DONE;
		next += w->state == WARP_READY;
	}
}

void grid_end(Grid *g) { arena_free(&g->arena); }

void emulator_launch(Emulator *e, const Kernel *k, const Launch *l)
{
	Grid *g = &e->running;

	check_launch(e, k, l);
	grid_end(g); /* of a launch that failed */
	*g = (Grid){ .e = e, .cx = e->cx, .k = k, .arena = { .cx = e->cx } };
	g->blocks = l->blocks;
	g->threads = l->threads;
	g->cluster = max_u32(l->cluster, 1);
	g->block_warps = (uint32_t)ceil_div(l->threads, LANES);
	g->warps = g->blocks * g->block_warps;
	g->random = e->opt.seed * 0x2545f4914f6cdd1du + e->launches++;
	g->idle_most = e->opt.idle ? e->opt.idle : IDLE_MOST;
	g->races = e->opt.races;
	g->ahead = e->opt.ahead;
	grid_start(g, l);
	floats_enter(&g->caller);
	grid_run(g);
	floats_leave(&g->caller);
	e->executed += g->executed;
	grid_end(g);
}
