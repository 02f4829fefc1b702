/* SPDX-License-Identifier: MIT */
/* Networks whose weights do not fit into shared memory. Products with many weights, and all gradients, are cut into
 * tiles of rows by columns over all blocks; operands stream through a ring of pieces in shared memory. Other steps run
 * on a block's rows, as rows.c has them, between those. All blocks are one team, also for several leaves: their sums
 * join in registers. Rows are in global memory. Must hold: every sum is one chain in the order of its sources, or rows.
 *
 * A thread has `high` rows by `wide` quads of a tile; `across` threads side by side, `down` below each other. */
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "units.h"

enum { DEPTH_PIECE = 32, ROW_PIECE = 32, LEAST_RING = 3, MOST_RING = 8, WIDE_WEIGHTS = 16384, MOST_COPIES = 8 };

/* ---- plan ---- */

bool is_wide(const DeviceStep *s) { return s->kind == STEP_PRODUCT && s->depth * s->cols >= WIDE_WEIGHTS; }

/* Cycles of a multiprocessor for one source, or row: shared memory gives 16 bytes to 8 threads in one, a warp adds a
 * quad in four on its quarter of the multiprocessor, L2 gives some 40 bytes. */
static double tile_cost(const Tile *t, uint64_t rows, uint64_t quads, uint64_t depth, uint32_t blocks, bool gradient)
{
	uint32_t threads = t->across * t->down, warps = (threads + 31) / 32;
	uint32_t all_rows = t->high * t->down, all_quads = t->wide * t->across;
	double waves = (double)ceil_div(ceil_div(rows, all_rows) * ceil_div(quads, all_quads), blocks);
	double shared = threads * (t->high / 4.0 + t->wide) / 8, adds = (warps + 3) / 4 * (t->high * t->wide * 6.4 + 8);
	double memory = (all_rows + 4.0 * all_quads) * 4 / 40, most = gradient ? 14 : 12;

	most = shared > most ? shared : most;
	most = adds > most ? adds : most;
	most = memory > most ? memory : most;
	return waves * ((double)depth * (most + 0.1 * (shared + adds + memory)) + 3000);
}

static Tile tile_choose(uint64_t rows, uint64_t quads, uint64_t depth, uint32_t blocks, uint32_t threads, bool gradient)
{
	static const uint32_t sides[] = { 2, 4, 8, 16, 32 };
	Tile best = { 0 };
	double least = 0;
	const char *wanted = getenv(gradient ? "MICROPROP_CUDA_GRADIENT_TILE" : "MICROPROP_CUDA_PRODUCT_TILE");

	if (wanted && rows * quads > 1024 && strlen(wanted) == 4 && strspn(wanted, "0123456789") == 4) {
		/* for experiments: four digits, the last two powers of two */
		best = (Tile){ .high = (uint32_t)(wanted[0] - '0'), .wide = (uint32_t)(wanted[1] - '0') };
		best.across = 1u << (wanted[2] - '0');
		best.down = 1u << (wanted[3] - '0');
		return best;
	}

	for (uint32_t a = 0; a < COUNT(sides); a++)
		for (uint32_t d = 0; d < COUNT(sides); d++)
			for (uint32_t high = gradient ? 4 : 1; high <= 4; high *= 2) {
				Tile t = { .high = high, .wide = 1, .across = sides[a], .down = sides[d] };
				uint32_t all = t.across * t.down, piece = gradient ? ROW_PIECE : DEPTH_PIECE;
				uint32_t copies = (t.high * t.down / 4 + t.wide * t.across) * piece / threads;
				if (all > threads || all < 32 || copies > MOST_COPIES || (gradient && t.high * t.down % 4))
					continue;
				double cost = tile_cost(&t, rows, quads, depth, blocks, gradient);
				if (!least || cost < least) {
					least = cost;
					best = t;
				}
			}
	return best;
}

static uint32_t tile_rows(const Tile *t) { return t->high * t->down; }
static uint32_t tile_quads(const Tile *t) { return t->wide * t->across; }

/* Bytes of a piece: rows of a, then rows of b. */
static uint32_t a_bytes(const Tile *t, bool gradient)
{
	return gradient ? ROW_PIECE * tile_rows(t) * 4 : tile_rows(t) * (DEPTH_PIECE + 4) * 4;
}
static uint32_t piece_bytes(const Tile *t, bool gradient)
{
	return a_bytes(t, gradient) + (gradient ? ROW_PIECE : DEPTH_PIECE) * tile_quads(t) * 16;
}

uint32_t tiles_plan(Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t most = 0, blocks = s->team_blocks;

	k->tile = NEW(&s->cx->scratch, s->list->steps + 1, Tile);
	for (uint32_t i = 0; i < s->list->steps; i++) {
		const DeviceStep *d = &s->step[i];
		bool gradient = d->kind == STEP_GRADIENT;
		if (!gradient && !is_wide(d))
			continue;
		uint64_t quads = ceil_div(d->cols, 4);
		k->tile[i] = gradient ? tile_choose(d->depth, quads, s->batch_rows, blocks, s->threads, true)
		                      : tile_choose(s->batch_rows, quads, d->depth, blocks, s->threads, false);
		uint32_t bytes = piece_bytes(&k->tile[i], gradient),
				 ring = (s->shared - min_u32(s->shared, k->at_rows)) / bytes;
		k->tile[i].ring = max_u32(LEAST_RING, min_u32(ring, MOST_RING));
		most = max_u32(most, bytes * k->tile[i].ring);
	}
	return most;
}

/* ---- rows in global memory ---- */

static bool is_input(const Kernel *k, uint32_t buf, uint32_t col)
{
	const InputColumns *in = &k->s->input[0];

	return buf == BUF_ACT && col >= in->col && col < in->col + in->count;
}

static RowSource source_of(Kernel *k, uint32_t buf, uint32_t col)
{
	const Job *j = k->s->job;

	if (is_input(k, buf, col)) {
		uint32_t input = col - k->s->input[0].col + k->s->input[0].input;
		return (RowSource){ place_at(k->e, POINTER(k, data.x), (uint64_t)input * 4), j->data.x_row * 4, true };
	}
	return (RowSource){ float_buffer(k, buf, col), j->cols * 4, false };
}

/* ---- copies ---- */

/* A thread's copies of 16 bytes to each piece of the ring. */
typedef struct Copy {
	Reg from, to, valid; /* valid: of this tile */
	Reg index;           /* source, or row, in the piece */
} Copy;
typedef struct Copies {
	Copy copy[2 * MOST_COPIES];
	uint32_t count;
} Copies;

static Reg global(Emit *e, Reg from) /* one that changes */
{
	Reg d = reg(e, REG_D);

	ins(e, "mov.u64 $, $", d, from);
	return d;
}

/* ---- products ---- */

static void product_copies(Kernel *k, const DeviceStep *s, const Tile *t, const TileAt *at, Reg weights, Copies *c)
{
	Emit *e = k->e;
	uint32_t a_tasks = tile_rows(t) * DEPTH_PIECE / 4, b_tasks = tile_quads(t) * DEPTH_PIECE, threads = k->s->threads;
	RowSource from = source_of(k, s->a, s->a_col);
	Reg last = add(e, k->rows, imm(UINT32_MAX));

	c->count = 0;
	for (uint32_t i = 0; i < ceil_div(a_tasks, threads); i++) {
		Copy *x = &c->copy[c->count++];
		Reg task = add(e, k->tid, imm(i * threads)), row = divide(e, task, DEPTH_PIECE / 4);
		Reg quad = modulo(e, task, DEPTH_PIECE / 4, row);
		Reg real = op2(e, REG_R, "min.u32", add(e, at->row, row), last);
		x->index = mul(e, quad, 4);
		x->valid = less(e, task, imm(a_tasks));
		x->from = global(e, place(e, row_place(k, &from, real), quad, 16));
		x->to = add(e, mad(e, row, (DEPTH_PIECE + 4) * 4, mad(e, quad, 16, ring_base(k))), imm(0));
	}
	for (uint32_t i = 0; i < ceil_div(b_tasks, threads); i++) {
		Copy *x = &c->copy[c->count++];
		Reg task = add(e, k->tid, imm(i * threads)), line = divide(e, task, tile_quads(t));
		Reg quad = modulo(e, task, tile_quads(t), line), col = add(e, at->col, quad);
		x->index = line;
		x->valid =
			op2(e, REG_P, "and.pred", less(e, task, imm(b_tasks)), less(e, col, imm((uint32_t)ceil_div(s->cols, 4))));
		x->from = global(e, place(e, place(e, weights, line, s->b_row * 4), col, 16));
		x->to = add(e, mad(e, line, tile_quads(t) * 16, mad(e, quad, 16, ring_base(k))), imm(a_bytes(t, false)));
	}
}

/* Piece `number` to its place in the ring; nothing, if there is no such piece. left: sources from it on. */
static void product_issue(Kernel *k, const DeviceStep *s, const Tile *t, const Copies *c, Reg slot, Reg left)
{
	Emit *e = k->e;
	uint32_t a_copies = (uint32_t)ceil_div(tile_rows(t) * DEPTH_PIECE / 4, k->s->threads);

	for (uint32_t i = 0; i < c->count; i++) {
		const Copy *x = &c->copy[i];
		Reg some = op2(e, REG_P, "setp.lt.s32", x->index, left);
		ins(e, "@$ cp.async.cg.shared.global [$], [$], 16", op2(e, REG_P, "and.pred", some, x->valid),
		    add(e, x->to, slot), x->from);
		ins(e, "add.u64 $, $, #", x->from, x->from, i < a_copies ? DEPTH_PIECE * 4 : DEPTH_PIECE * s->b_row * 4);
	}
	ins(e, "cp.async.commit_group");
}

static void sum_add(Emit *e, Reg sum[4], Reg a, const Reg b[4])
{
	for (uint32_t n = 0; n < 4; n++)
		ins(e, "fma.rn.ftz.f32 $, $, $, $", sum[n], a, b[n], sum[n]);
}

typedef struct Sums {
	Reg sum[8][2][4]; /* [high][wide] */
} Sums;

/* Operands of four sources. */
typedef struct Sources {
	Reg x[8][4], w[4][2][4];
} Sources;

static void sources_load(Kernel *k, const Tile *t, Reg a, Reg b, uint32_t d, uint32_t some, Sources *o)
{
	uint32_t row = (DEPTH_PIECE + 4) * 4, line = tile_quads(t) * 16;

	for (uint32_t h = 0; h < t->high; h++)
		load_quad(k->e, "shared", o->x[h], a, h * t->down * row + d * 4);
	for (uint32_t i = 0; i < some; i++)
		for (uint32_t j = 0; j < t->wide; j++)
			load_quad(k->e, "shared", o->w[i][j], b, (d + i) * line + j * t->across * 16);
}

/* Sources of a piece, `depth` of them: four are loaded while those before are added. a, b: addresses of the thread's
 * first row and quad in it. */
static void product_piece(Kernel *k, const Tile *t, Reg a, Reg b, uint32_t depth, Sums *s)
{
	Sources o[2];

	sources_load(k, t, a, b, 0, min_u32(4, depth), &o[0]);
	for (uint32_t d = 0; d < depth; d += 4) {
		Sources *now = &o[d / 4 % 2];
		if (d + 4 < depth)
			sources_load(k, t, a, b, d + 4, min_u32(4, depth - d - 4), &o[(d / 4 + 1) % 2]);
		for (uint32_t i = 0; i < min_u32(4, depth - d); i++)
			for (uint32_t h = 0; h < t->high; h++)
				for (uint32_t j = 0; j < t->wide; j++)
					sum_add(k->e, s->sum[h][j], now->x[h][i], now->w[i][j]);
	}
}

/* A quad of a row in global memory: all of it, or of the last quad the columns that there are. */
static void store_global(Kernel *k, Reg at, Reg quad, uint32_t cols, const Reg v[4])
{
	Emit *e = k->e;
	uint32_t last = (cols - 1) / 4, rest = cols - last * 4;

	if (rest == 4) {
		store_quad(e, "global", at, 0, v);
		return;
	}
	uint32_t partial = if_begin(e, same(e, quad, imm(last))), done = label(e);
	for (uint32_t i = 0; i < rest; i++)
		ins(e, "st.global.f32 [$+#], $", at, 4 * i, v[i]);
	ins(e, "bra L#", done);
	if_end(e, partial);
	store_quad(e, "global", at, 0, v);
	label_here(e, done);
}

static void product_store(Kernel *k, const DeviceStep *s, Reg row, Reg quad, Reg v[4])
{
	Emit *e = k->e;
	Reg offset = mad(e, row, k->s->job->cols * 4, mul(e, quad, 16));
	Reg c = place(e, float_buffer(k, s->c, s->c_col), offset, 1);

	if (s->after == AFTER_UNITS) {
		if (s->c != BUF_ACT)
			store_global(k, c, quad, s->cols, v);
		for (uint32_t i = 0; i < 4; i++)
			v[i] = unit_value(e, s->fn, v[i]);
		c = place(e, float_buffer(k, BUF_ACT, s->c_col), offset, 1);
	} else if (s->after == AFTER_DELTAS) {
		Reg out[4], net[4];
		load_quad(e, "global", out, place(e, float_buffer(k, BUF_ACT, s->c_col), offset, 1), 0);
		if (s->keeps_net)
			load_quad(e, "global", net, place(e, float_buffer(k, BUF_NET, s->c_col), offset, 1), 0);
		for (uint32_t i = 0; i < 4; i++) {
			Reg slope = unit_slope(e, s->fn, s->keeps_net ? net[i] : out[i], out[i]);
			slope = op2(e, REG_F, "add.rn.ftz.f32", slope, imm_f(s->offset));
			v[i] = op2(e, REG_F, "mul.rn.ftz.f32", v[i], slope);
		}
	}
	store_global(k, c, quad, s->cols, v);
}

/* What sums begin with: a row for all, zeros, or what is there. */
static void product_start(Kernel *k, const DeviceStep *s, const Tile *t, const TileAt *at, Reg down, Reg across,
                          Sums *sums)
{
	Emit *e = k->e;
	const float *zero = k->s->job->zero;

	for (uint32_t j = 0; j < t->wide; j++) {
		Reg quad = add(e, add(e, at->col, across), imm(j * t->across)), start[4];
		quad = op2(e, REG_R, "min.u32", quad, imm((s->cols - 1) / 4));
		if (s->start && s->start != zero)
			load_quad(e, "global", start, place(e, weight_place(k, s->start), quad, 16), 0);
		for (uint32_t h = 0; h < t->high; h++) {
			Reg row = add(e, add(e, at->row, down), imm(h * t->down));
			row = op2(e, REG_R, "min.u32", row, add(e, k->rows, imm(UINT32_MAX)));
			if (!s->start)
				load_quad(
					e, "global", sums->sum[h][j],
					place(e, float_buffer(k, s->c, s->c_col), mad(e, row, k->s->job->cols * 4, mul(e, quad, 16)), 1),
					0);
			for (uint32_t i = 0; i < 4 && s->start; i++)
				sums->sum[h][j][i] = op1(e, REG_F, "mov.f32", s->start == zero ? imm_f(0) : start[i]);
		}
	}
}

void product_tiles(Kernel *k, uint32_t number)
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	const Tile *t = &k->tile[number];
	uint32_t bytes = piece_bytes(t, false), full = s->depth / DEPTH_PIECE, rest = s->depth % DEPTH_PIECE;
	Reg down = divide(e, k->tid, t->across), across = modulo(e, k->tid, t->across, down);
	Reg works = less(e, k->tid, imm(t->across * t->down)), weights = weight_place(k, s->b);
	Copies copies;
	Sums sums;

	remark(e, "product %u x %u: a thread has %u rows by %u quads, a tile %u x %u threads", s->depth, s->cols, t->high,
	       t->wide, t->down, t->across);
	k->tiles = 0;
	TileAt at = tile_begin(k, k->s->batch_rows, ceil_div(s->cols, 4), tile_rows(t), tile_quads(t));
	uint32_t past = if_begin(e, less(e, at.row, k->rows));
	product_copies(k, s, t, &at, weights, &copies);
	Reg left = op1(e, REG_R, "mov.u32", imm(s->depth)), put = op1(e, REG_R, "mov.u32", imm(0));
	Reg get = op1(e, REG_R, "mov.u32", imm(0));
	for (uint32_t i = 0; i + 1 < t->ring; i++) {
		product_issue(k, s, t, &copies, put, left);
		ins(e, "sub.s32 $, $, #", left, left, (uint32_t)DEPTH_PIECE);
		ring_advance(e, t, put, bytes);
	}
	product_start(k, s, t, &at, down, across, &sums);
	Reg a = add(e, mad(e, down, (DEPTH_PIECE + 4) * 4, ring_base(k)), imm(0));
	Reg b = add(e, mad(e, across, 16, ring_base(k)), imm(a_bytes(t, false)));
	if (full) {
		Loop l = loop_count(e, full);
		ins(e, "cp.async.wait_group #", t->ring - 2);
		barrier_block(e);
		product_issue(k, s, t, &copies, put, left);
		ins(e, "sub.s32 $, $, #", left, left, (uint32_t)DEPTH_PIECE);
		ring_advance(e, t, put, bytes);
		uint32_t idle = if_begin(e, works);
		product_piece(k, t, add(e, a, get), add(e, b, get), DEPTH_PIECE, &sums);
		if_end(e, idle);
		ring_advance(e, t, get, bytes);
		loop_end(e, &l);
	}
	ins(e, "cp.async.wait_all");
	barrier_block(e);
	uint32_t idle = if_begin(e, works);
	if (rest)
		product_piece(k, t, add(e, a, get), add(e, b, get), rest, &sums);
	for (uint32_t h = 0; h < t->high; h++)
		for (uint32_t j = 0; j < t->wide; j++) {
			Reg row = add(e, add(e, at.row, down), imm(h * t->down));
			Reg quad = add(e, add(e, at.col, across), imm(j * t->across));
			Reg real =
				op2(e, REG_P, "and.pred", less(e, row, k->rows), less(e, quad, imm((uint32_t)ceil_div(s->cols, 4))));
			uint32_t none = if_begin(e, real);
			product_store(k, s, row, quad, sums.sum[h][j]);
			if_end(e, none);
		}
	if_end(e, idle);
	barrier_block(e); /* the ring is free */
	if_end(e, past);
	loop_end(e, &at.loop);
}

/* ---- gradients ---- */

static uint32_t gradient_copies(Kernel *k, const DeviceStep *s, const Tile *t, const TileAt *at, RowCopy *copy)
{
	Emit *e = k->e;
	uint32_t a_quads = tile_rows(t) / 4, b_quads = tile_quads(t), threads = k->s->threads, count = 0;
	Reg a_first = op2(e, REG_R, "shr.u32", at->row, imm(2));

	for (uint32_t b = 0; b < 2; b++) {
		uint32_t quads = b ? b_quads : a_quads, tasks = quads * ROW_PIECE;
		for (uint32_t i = 0; i < ceil_div(tasks, threads); i++) {
			RowCopy *x = &copy[count++];
			Reg task = add(e, k->tid, imm(i * threads)), quad;
			x->is_b = b;
			x->row = divide(e, task, quads);
			quad = modulo(e, task, quads, x->row);
			Reg col = add(e, b ? at->col : a_first, quad);
			uint32_t most = (uint32_t)ceil_div(b ? s->cols : s->depth, 4);
			x->valid = op2(e, REG_P, "and.pred", less(e, task, imm(tasks)), less(e, col, imm(most)));
			x->column = mul(e, col, 16);
			x->to = add(e, mad(e, task, 16, ring_base(k)), imm(b ? a_bytes(t, true) : 0));
		}
	}
	return count;
}

/* Rows of a piece: some are loaded before those that come first are added. */
static void gradient_piece(Kernel *k, const Tile *t, Reg a, Reg b, Sums *s)
{
	Emit *e = k->e;
	enum { MOST_AHEAD = 4 };
	uint32_t row = tile_rows(t) * 4, line = tile_quads(t) * 16, ahead = t->high * t->wide > 8 ? 2 : MOST_AHEAD;
	Reg x[MOST_AHEAD + 1][8], y[MOST_AHEAD + 1][2][4];

	for (uint32_t m = 0; m < ROW_PIECE + ahead; m++) {
		uint32_t in = m % (ahead + 1), out = (m + 1) % (ahead + 1); /* out: that of row m - ahead */
		if (m < ROW_PIECE) {
			for (uint32_t h = 0; h < t->high; h += 4)
				load_quad(e, "shared", x[in] + h, a, m * row + h * 4);
			for (uint32_t j = 0; j < t->wide; j++)
				load_quad(e, "shared", y[in][j], b, m * line + j * t->across * 16);
		}
		for (uint32_t h = 0; h < t->high && m >= ahead; h++)
			for (uint32_t j = 0; j < t->wide; j++)
				sum_add(e, s->sum[h][j], x[out][h], y[out][j]);
	}
}

/* The sum of a leaf, for a tile. */
static void gradient_leaf(Kernel *k, const DeviceStep *s, const Tile *t, const RowCopy *copy, uint32_t copies,
                          LeafRows leaf, Sums *sums)
{
	Emit *e = k->e;
	uint32_t bytes = piece_bytes(t, true);
	RowSource from[2] = { source_of(k, s->a, s->a_col), source_of(k, s->c, s->c_col) };
	Reg down = divide(e, k->tid, t->across), across = modulo(e, k->tid, t->across, down);
	Reg works = less(e, k->tid, imm(t->across * t->down)), end = add(e, leaf.first, leaf.count);
	Reg put = op1(e, REG_R, "mov.u32", imm(0)), get = op1(e, REG_R, "mov.u32", imm(0));
	Reg next = op1(e, REG_R, "mov.u32", leaf.first);

	for (uint32_t h = 0; h < t->high; h++)
		for (uint32_t j = 0; j < t->wide; j++)
			for (uint32_t n = 0; n < 4; n++)
				sums->sum[h][j][n] = op1(e, REG_F, "mov.f32", imm_f(0));
	for (uint32_t i = 0; i + 1 < t->ring; i++) {
		rows_issue(k, from, copy, copies, put, next, end);
		ins(e, "add.u32 $, $, #", next, next, (uint32_t)ROW_PIECE);
		ring_advance(e, t, put, bytes);
	}
	Reg a = mad(e, down, t->high * 4, ring_base(k));
	Reg b = add(e, mad(e, across, 16, ring_base(k)), imm(a_bytes(t, true)));
	Loop l = loop_begin(e, imm(0), leaf.count, ROW_PIECE);
	ins(e, "cp.async.wait_group #", t->ring - 2);
	barrier_block(e);
	rows_issue(k, from, copy, copies, put, next, end);
	ins(e, "add.u32 $, $, #", next, next, (uint32_t)ROW_PIECE);
	ring_advance(e, t, put, bytes);
	uint32_t idle = if_begin(e, works);
	gradient_piece(k, t, add(e, a, get), add(e, b, get), sums);
	if_end(e, idle);
	ring_advance(e, t, get, bytes);
	loop_end(e, &l);
	ins(e, "cp.async.wait_all");
	barrier_block(e); /* the ring is free */
}

static void sums_join(Emit *e, const Tile *t, Sums *a, const Sums *b)
{
	for (uint32_t h = 0; h < t->high; h++)
		for (uint32_t j = 0; j < t->wide; j++)
			for (uint32_t n = 0; n < 4; n++)
				a->sum[h][j][n] = op2(e, REG_F, "add.rn.ftz.f32", a->sum[h][j][n], b->sum[h][j][n]);
}

static void gradient_step(Kernel *k, uint32_t number, uint32_t leaves)
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	const Tile *t = &k->tile[number];
	Sums stack[8];
	uint32_t depth = 0;
	RowCopy copy[2 * MOST_COPIES];

	remark(e, "gradient %u x %u: a thread has %u rows by %u quads, a tile %u x %u threads", s->depth, s->cols, t->high,
	       t->wide, t->down, t->across);
	TileAt at = tile_begin(k, s->depth, ceil_div(s->cols, 4), tile_rows(t), tile_quads(t));
	uint32_t copies = gradient_copies(k, s, t, &at, copy);
	for (uint32_t n = 0; n < leaves; n++) {
		gradient_leaf(k, s, t, copy, copies, leaf_rows(k, leaves, n), &stack[depth++]);
		for (uint32_t l = 0; n >> l & 1; l++, depth--)
			sums_join(e, t, &stack[depth - 2], &stack[depth - 1]);
	}
	for (; depth > 1; depth--)
		sums_join(e, t, &stack[depth - 2], &stack[depth - 1]);
	Reg down = divide(e, k->tid, t->across), across = modulo(e, k->tid, t->across, down);
	uint32_t idle = if_begin(e, less(e, k->tid, imm(t->across * t->down)));
	for (uint32_t j = 0; j < t->wide; j++) {
		RuleQuads q = { .row = add(e, at.row, mul(e, down, t->high)),
			            .quad = add(e, add(e, at.col, across), imm(j * t->across)),
			            .rows = t->high };
		for (uint32_t h = 0; h < t->high; h++)
			memcpy(q.g[h], stack[0].sum[h][j], sizeof q.g[h]);
		rule_quads(k, k->numbers, &k->s->panel[s->panel], s->depth, &q);
	}
	if_end(e, idle);
	loop_end(e, &at.loop);
}

void gradient_tiles(Kernel *k, Reg leaves)
{
	const EmitSource *s = k->s;

	for (uint32_t kind = 0; kind < s->kinds_of_leaves; kind++) {
		uint32_t other = if_begin(k->e, same(k->e, leaves, imm(s->leaves[kind])));
		k->tiles = 0;
		for (uint32_t i = s->list->gradient; i < s->list->steps; i++) {
			gradient_step(k, i, s->leaves[kind]);
			spent(k, SPENT_KINDS + min_u32(1 + i, 27));
		}
		if_end(k->e, other);
	}
}

/* ---- rows of a block, from and to global memory ---- */

/* Columns that the steps first .. end - 1 read before they write them, or write, as quads. */
static void phase_quads(const Kernel *k, uint32_t first, uint32_t end, bool *read, bool *written)
{
	uint32_t cols = k->s->job->cols / 4 + 4;

	memset(read, 0, (size_t)BUFS * cols);
	memset(written, 0, (size_t)BUFS * cols);
	for (uint32_t i = first; i < end; i++) {
		Access access[8];
		uint32_t n = step_access(k, &k->s->step[i], access);
		for (uint32_t a = 0; a < n; a++)
			for (uint32_t q = access[a].col / 4; q < (access[a].col + access[a].count + 3) / 4; q++) {
				uint32_t at = access[a].buf * cols + q;
				if (access[a].writes)
					written[at] = true;
				else if (!written[at])
					read[at] = true;
			}
	}
}

/* A run of adjacent quads of the block's rows, between shared and global memory. */
static void quads_move(Kernel *k, uint32_t buf, uint32_t col, uint32_t quads, bool out)
{
	Emit *e = k->e;
	Loop l = loop_begin(e, k->tid, imm(k->block_rows * quads), k->s->threads);
	Reg row = divide(e, l.i, quads), quad = modulo(e, l.i, quads, row);
	uint32_t end = if_begin(e, less(e, row, k->my_rows));
	Reg here = add(e, mad(e, row, k->row, mad(e, quad, 16, k->memory)), imm(k->at_rows + column_at(k, buf, col)));
	Reg there =
		place(e, float_buffer(k, buf, col), mad(e, add(e, k->row0, row), k->s->job->cols * 4, mul(e, quad, 16)), 1);

	quad_move(e, here, there, out);
	if_end(e, end);
	loop_end(e, &l);
}

void phase_move(Kernel *k, uint32_t first, uint32_t end, bool out)
{
	uint32_t cols = k->s->job->cols / 4 + 4;
	bool *read = NEW(&k->s->cx->scratch, (size_t)BUFS * cols, bool),
		 *written = NEW(&k->s->cx->scratch, (size_t)BUFS * cols, bool);

	phase_quads(k, first, end, read, written);
	const bool *which = out ? written : read;
	for (uint32_t b = 0; b < BUFS; b++)
		for (uint32_t q = 0, run; q < cols; q += run) {
			for (run = 1; q + run < cols && which[b * cols + q + run] == which[b * cols + q];)
				run++;
			if (which[b * cols + q])
				quads_move(k, b, 4 * q, run, out);
		}
	if (!out)
		ins(k->e, "cp.async.wait_all");
	barrier_block(k->e);
}

/* Columns that are always 1, of rows in global memory. */
void ones_store(Kernel *k)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;

	for (uint32_t i = 0; i < s->one_columns; i++) {
		Reg first = mad(e, k->block, s->threads, k->tid);
		Loop l = loop_begin(e, first, imm(s->batch_rows), s->team_blocks * s->threads);
		ins(e, "st.global.f32 [$], 0f3F800000", place(e, float_buffer(k, BUF_ACT, s->ones[i]), l.i, s->job->cols * 4));
		loop_end(e, &l);
	}
}
