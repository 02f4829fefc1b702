/* SPDX-License-Identifier: MIT */
/* wgmma.mma_async.m64nNk16, bf16 operands, f32 sums. In: a in registers or, like b, in shared memory. Out: d = a b +
 * d.
 *
 * Operands in shared memory are 8 x 8 core matrices of 128 bytes, without swizzling. The descriptor has the distance
 * of adjacent ones: LEADING bytes along the depth, STRIDE bytes across. Each warp of the warpgroup has 16 of the 64
 * rows and executes on its own. Sums are rounded as those of mma (mma.c). Until wgmma.wait_group their registers
 * count as never written. Operands are read at issue: a store by another warp between issue and wait is not seen. */
#include <string.h>

#include "emulator.h"

enum { SIDE = 8, DEPTH = 16, WARP_ROWS = 16, TILE_BYTES = 128, GROUP_WARPS = 4, MAX_TILES = 32 };
enum { IN_REGISTERS = 1, A_TRANSPOSED = 2, B_TRANSPOSED = 4 }; /* Insn.sub */

/* ---- parsing ---- */

static bool shape_take(Token t, uint32_t *tiles)
{
	static const char before[] = "wgmma.mma_async.sync.aligned.m64n", after[] = "k16.f32.bf16.bf16";
	uint64_t n;
	Token number = { t.s + strlen(before), 0 };

	if (t.len <= strlen(before) + strlen(after) || memcmp(t.s, before, strlen(before)) != 0 ||
	    memcmp(t.s + t.len - strlen(after), after, strlen(after)) != 0)
		return false;
	number.len = t.len - (uint32_t)(strlen(before) + strlen(after));
	if (!ptx_whole(number, &n) || !n || n % SIDE || n > SIDE * MAX_TILES)
		return false;
	*tiles = (uint32_t)n / SIDE;
	return true;
}

static uint32_t flag(Parser *p)
{
	Token at = p->now;
	uint64_t v;

	ptx_expect(p, ",");
	at = p->now;
	if (!ptx_whole(at, &v) || v > 1)
		parse_fail(p, at, NULL, "expected 0 or 1");
	ptx_next(p);
	return (uint32_t)v;
}

/* d, a, b, keep, sign of a, sign of b[, transposed a], transposed b */
static void parse_product(Parser *p, Insn *i, uint32_t tiles)
{
	Token at = p->now;
	uint32_t *sum = NEW(&p->m->arena, 4 * (size_t)tiles, uint32_t);

	i->op = OP_WGMMA;
	p->kernel->async = true;
	i->width = (uint8_t)tiles;
	i->list = sum;
	take_registers(p, sum, 4 * tiles, T_F32, true);
	ptx_expect(p, ",");
	if (ptx_is(p->now, "{")) {
		i->sub |= IN_REGISTERS;
		i->sources = (uint8_t)take_list(p, i->a, 4, T_B32, false, false);
		if (i->sources != 4)
			parse_fail(p, at, NULL, "expected 4 registers of the first operand");
	} else {
		add_source(p, i, T_B64);
	}
	add_source(p, i, T_B64);
	i->offset = flag(p);
	if (!flag(p) || !flag(p))
		parse_fail(p, at, NULL, "operands with their signs changed are not known");
	if (!(i->sub & IN_REGISTERS) && flag(p))
		i->sub |= A_TRANSPOSED;
	if (flag(p))
		i->sub |= B_TRANSPOSED;
}

bool wgmma_parse(Parser *p, Insn *i, Token name)
{
	uint32_t tiles;

	if (shape_take(name, &tiles)) {
		parse_product(p, i, tiles);
	} else if (ptx_is(name, "wgmma.fence.sync.aligned")) {
		i->op = OP_NOP;
	} else if (ptx_is(name, "wgmma.commit_group.sync.aligned")) {
		i->op = OP_WGMMA_COMMIT;
	} else if (ptx_is(name, "wgmma.wait_group.sync.aligned")) {
		i->op = OP_WGMMA_WAIT;
		i->offset = (int64_t)take_immediate(p, T_U32);
	} else {
		return false;
	}
	return true;
}

/* ---- pending sums ---- */

static bool is_pending(const Warp *w, uint32_t slot, uint64_t *at)
{
	for (*at = 0; *at < w->pending_sums; ++*at)
		if (w->pending_sum[*at].slot == slot)
			return true;
	return false;
}

static void sum_begin(Grid *g, Warp *w, uint32_t slot)
{
	uint64_t at;

	if (!is_pending(w, slot, &at)) {
		w->pending_sum =
			arena_reserve(&g->arena, w->pending_sum, w->pending_sums, &w->pending_sum_cap, sizeof *w->pending_sum);
		w->pending_sums++;
	}
	w->pending_sum[at] = (PendingSum){ slot, w->wgmma_group };
	w->defined[slot] = 0;
}

void wgmma_commit(Warp *w) { w->wgmma_group++; }

void wgmma_wait(Warp *w, uint32_t left)
{
	uint64_t kept = 0;

	for (uint64_t i = 0; i < w->pending_sums; i++) {
		PendingSum f = w->pending_sum[i];
		if ((uint64_t)f.group + left < w->wgmma_group)
			w->defined[f.slot] = UINT32_MAX;
		else
			w->pending_sum[kept++] = f;
	}
	w->pending_sums = kept;
}

/* ---- products ---- */

static double half_at(const uint8_t *at)
{
	uint16_t half;

	memcpy(&half, at, sizeof half);
	return bf16_value(half, 0);
}

static uint64_t descriptor(Grid *g, const Warp *w, uint32_t slot)
{
	uint64_t first = 0;

	for (uint32_t l = 0; l < LANES; l++) {
		uint64_t v = lane_wide(g, w, slot, l);
		if (l && v != first)
			grid_fail(g, w, l, "the descriptor is not the same in all lanes");
		first = v;
	}
	if (first >> 46)
		grid_fail(g, w, 0, "a descriptor of swizzled tiles is not known");
	return first;
}

/* Loads 8 rows (or columns) of an operand, from 8 * eight on: [8][DEPTH]. transposed: a row of a core matrix has one
 * depth */
static void eight_load(Grid *g, Warp *w, uint64_t from, uint32_t eight, bool transposed, double (*x)[DEPTH])
{
	uint32_t start = (uint32_t)(from & 0x3fff) << 4, leading = (uint32_t)(from >> 16 & 0x3fff) << 4;
	uint32_t stride = (uint32_t)(from >> 32 & 0x3fff) << 4;

	for (uint32_t i = 0; i < 2 * SIDE; i++) { /* rows of two tiles */
		uint32_t deep = i / SIDE, row = i % SIDE;
		const uint8_t *at =
			shared_read(g, w, start + eight * stride + deep * leading + 16 * row, i, 16, ACCESS_PRODUCT);
		for (uint32_t c = 0; c < SIDE; c++)
			if (transposed)
				x[c][SIDE * deep + row] = half_at(at + 2 * (uint64_t)c);
			else
				x[row][SIDE * deep + c] = half_at(at + 2 * (uint64_t)c);
	}
}

static void rows_load(Grid *g, Warp *w, const Insn *i, double (*a)[DEPTH])
{
	if (!(i->sub & IN_REGISTERS)) {
		uint64_t from = descriptor(g, w, i->a[0]);
		uint32_t first = w->number % GROUP_WARPS * (WARP_ROWS / SIDE);
		for (uint32_t n = 0; n < WARP_ROWS / SIDE; n++)
			eight_load(g, w, from, first + n, i->sub & A_TRANSPOSED, a + (uint64_t)SIDE * n);
		return;
	}
	for (uint32_t k = 0; k < 4; k++)
		for (uint32_t l = 0; l < LANES; l++) {
			uint32_t two = lane_value(g, w, i->a[k], l);
			double *to = &a[l / 4 + SIDE * (k % 2)][2 * (l % 4) + SIDE * (k / 2)];
			uint8_t bytes[4];
			memcpy(bytes, &two, sizeof bytes);
			to[0] = half_at(bytes);
			to[1] = half_at(bytes + 2);
		}
}

/* Sums of a tile of 8 columns. */
static void tile_add(Grid *g, Warp *w, const Insn *i, uint32_t tile, double (*a)[DEPTH], double (*b)[DEPTH])
{
	for (uint32_t k = 0; k < 4; k++) {
		uint32_t slot = i->list[4 * tile + k], *sums = w->reg + (uint64_t)slot * LANES;
		uint64_t at;
		if (i->offset && w->defined[slot] != UINT32_MAX && !is_pending(w, slot, &at))
			grid_fail(g, w, NO_LANE, "a sum that the product adds to was never written");
		for (uint32_t l = 0; l < LANES; l++) {
			const double *x = a[l / 4 + SIDE * (k / 2)], *y = b[2 * (l % 4) + k % 2];
			float f;
			memcpy(&f, &sums[l], sizeof f);
			double sum = i->offset ? (double)f : 0;
			for (uint32_t n = 0; n < DEPTH; n++)
				sum += x[n] * y[n];
			f = float_of_double(sum, false);
			memcpy(&sums[l], &f, sizeof f);
		}
		sum_begin(g, w, slot);
	}
}

void wgmma_execute(Grid *g, Warp *w, const Insn *i, uint32_t mask)
{
	double a[WARP_ROWS][DEPTH], b[SIDE][DEPTH];

	if (mask != UINT32_MAX)
		grid_fail(g, w, NO_LANE, "only lanes 0x%08x of the warp execute it, and all must", mask);
	uint64_t from = descriptor(g, w, i->a[i->sources - 1]);
	rows_load(g, w, i, a);
	for (uint32_t t = 0; t < i->width; t++) {
		eight_load(g, w, from, t, i->sub & B_TRANSPOSED, b);
		tile_add(g, w, i, t, a, b);
	}
}
