/* SPDX-License-Identifier: MIT */
/* bf16: tiles: networks whose weights do not fit into shared memory (fp32: tiles.c). In: bf16 rows and weights in
 * global memory. Out: rows in fp32 and bf16, where later steps read them; the update. Must hold: sums begin with their
 * start and add 16 sources, or rows, at a time, in order; slices and leaves are added as doc/arithmetic.md says.
 *
 * A block computes a tile of rows by columns. Operands are streamed in chunks of depth 64 through a pipeline of
 * stages in shared memory (cp.async), with rows an odd multiple of 16 bytes apart. Cycles of 16 sources, for 64 x 64
 * with 8 warps of 2 x 2 tiles: 8 x 12 of shared memory, 2 x 4 x 6.4 of tensor cores, 4 KB of L2. */
#include <stdlib.h>
#include <string.h>

#include "bf16_emit.h"
#include "units.h"

/* COPIES: of a thread to a stage, for one operand; SETS: sums of subtrees of leaves. */
enum { DEEP = 64, MOST_STAGES = 6, LEAST_STAGES = 3, MOST_COPIES = 8, MOST_SETS = 4 };

/* ---- plan ---- */

bool is_operand(const DeviceStep *s, uint32_t access)
{
	return s->kind == STEP_GRADIENT || (s->kind == STEP_PRODUCT && !access);
}

bool floats_later(const Kernel *k, uint32_t i, uint32_t buf, uint32_t col, uint32_t count)
{
	for (uint32_t n = i + 1; n < k->s->list->gradient; n++) {
		Access a[8];
		uint32_t all = step_access(k, &k->s->step[n], a);
		for (uint32_t x = 0; x < all; x++)
			if (!a[x].writes && !is_operand(&k->s->step[n], x) && a[x].buf == buf && a[x].col < col + count &&
			    col < a[x].col + a[x].count)
				return true;
	}
	return false;
}

static void use(uint16_t *map, uint32_t col, uint32_t count)
{
	for (uint32_t i = col / COLUMN_BLOCK; count && i <= (col + count - 1) / COLUMN_BLOCK; i++)
		map[i] = 0;
}

/* Columns of a block's rows: those that steps between tiles read, or write for others. */
const char *bf16_tiles_columns(Kernel *k, uint32_t number)
{
	const DeviceStep *s = &k->s->step[number];
	Bf16 *h = k->bf16;
	Access a[8];
	uint32_t n = step_access(k, s, a);

	if (s->kind == STEP_PRODUCT && s->b != k->s->job->zero && (s->a_col % 8 || s->a > BUF_DELTA))
		return "columns that are not aligned";
	if (s->kind == STEP_GRADIENT && (s->a_col % 8 || s->c_col % 8 || s->a > BUF_DELTA || s->c > BUF_DELTA))
		return "columns that are not aligned";
	if (s->kind == STEP_PRODUCT && (s->c_col % 16 || (s->cols % 16 && !s->to_end)))
		return "columns that are not aligned";
	if (!is_row_step(k, number) || s->kind == STEP_ONE)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		bool operand = is_operand(s, i) && s->b != k->s->job->zero;
		if (operand)
			use(h->map[a[i].buf], a[i].col, (uint32_t)round_up(a[i].count, 16));
		else if (!a[i].writes || s->kind != STEP_PRODUCT || floats_later(k, number, a[i].buf, a[i].col, a[i].count))
			use(k->map[a[i].buf], a[i].col, a[i].count);
		if (a[i].writes && a[i].buf < BF16_BUFS && operand_later(k, number, a[i].buf, a[i].col, a[i].count))
			use(h->map[a[i].buf], a[i].col, a[i].count);
	}
	return NULL;
}

/* A block has `down` x `across` warps with `high` x `wide` tiles of 16 x 8 each. */
static uint32_t tile_rows(const Tile *t) { return t->high * t->down * 16; }
static uint32_t tile_cols(const Tile *t) { return t->wide * t->across * 8; }

static double tile_cost(const Tile *t, uint64_t rows, uint64_t cols, uint64_t depth, uint32_t blocks)
{
	uint32_t warps = t->down * t->across;
	double waves = (double)ceil_div(ceil_div(rows, tile_rows(t)) * ceil_div(cols, tile_cols(t)), blocks);
	double shared = warps * (t->high * 4.0 + t->wide * 2.0), tensor = (warps + 3) / 4 * t->high * t->wide * 6.4;
	double memory = (tile_rows(t) + tile_cols(t)) * 32 / 40.0, most = shared > tensor ? shared : tensor;

	most = memory > most ? memory : most;
	return waves * ((double)ceil_div(depth, 16) * ((most > 50 ? most : 50) + 15) + 2000);
}

static Tile tile_choose(uint64_t rows, uint64_t cols, uint64_t depth, uint32_t blocks, uint32_t warps)
{
	Tile best = { 0 };
	double least = 0;

	for (uint32_t high = 1; high <= 2; high *= 2)
		for (uint32_t wide = 1; wide <= 4; wide *= 2)
			for (uint32_t down = 1; down <= 4; down *= 2)
				for (uint32_t across = 1; across <= 8; across *= 2) {
					Tile t = { .high = high, .wide = wide, .down = down, .across = across };
					if (down * across > warps || tile_cols(&t) < 16)
						continue;
					double cost = tile_cost(&t, rows, cols, depth, blocks);
					if (!least || cost < least) {
						least = cost;
						best = t;
					}
				}
	return best;
}

/* Bytes from one row of an operand to the next in shared memory. */
static uint32_t row_pitch(uint32_t elements) { return (elements / 8 | 1) * 16; }

/* A stage of the pipeline: rows of both operands, and elements of a row. */
typedef struct Stage {
	uint32_t a_rows, a_cols, b_rows, b_cols, a_bytes, bytes;
} Stage;

static Stage stage_of(const DeviceStep *s, const Tile *t)
{
	bool gradient = s->kind == STEP_GRADIENT;
	Stage p = { .a_rows = gradient ? DEEP : tile_rows(t),
		        .a_cols = gradient ? tile_rows(t) : DEEP,
		        .b_rows = gradient || s->by_depth ? DEEP : tile_cols(t),
		        .b_cols = gradient || s->by_depth ? tile_cols(t) : DEEP };

	p.a_bytes = p.a_rows * row_pitch(p.a_cols);
	p.bytes = p.a_bytes + p.b_rows * row_pitch(p.b_cols);
	return p;
}

uint32_t bf16_tiles_plan(Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t most = 0;

	k->tile = NEW(&s->cx->scratch, s->list->steps + 1, Tile);
	for (uint32_t i = 0; i < s->list->steps; i++) {
		const DeviceStep *d = &s->step[i];
		bool gradient = d->kind == STEP_GRADIENT;
		if (!gradient && !is_wide(d))
			continue;
		k->tile[i] = gradient ? tile_choose(d->depth, d->cols, s->batch_rows, s->team_blocks, s->threads / 32)
		                      : tile_choose(s->batch_rows, d->cols, d->depth, s->team_blocks, s->threads / 32);
		Stage p = stage_of(d, &k->tile[i]);
		if (ceil_div(p.a_rows * p.a_cols / 8, s->threads) + ceil_div(p.b_rows * p.b_cols / 8, s->threads) > MOST_COPIES)
			return UINT32_MAX / 4;
		uint32_t stages = (s->shared - min_u32(s->shared, k->at_rows)) / p.bytes;
		k->tile[i].ring = max_u32(LEAST_STAGES, min_u32(stages, MOST_STAGES));
		most = max_u32(most, p.bytes * k->tile[i].ring);
	}
	return most;
}

/* ---- rows in global memory ---- */

const InputColumns *input_of(const Kernel *k, uint32_t buf, uint32_t col)
{
	for (uint32_t i = 0; buf == BUF_ACT && i < k->s->job->input_columns; i++) {
		const InputColumns *in = &k->s->input[i];
		if (col >= in->col && col < in->col + in->halves)
			return in;
	}
	return NULL;
}

Reg bf16_buffer(Kernel *k, uint32_t buf, uint32_t col)
{
	return place_at(k->e, pointer(k, offsetof(Job, half_buf) + buf * sizeof(uint16_t *)), (uint64_t)col * 2);
}

static RowSource source_of(Kernel *k, uint32_t buf, uint32_t col)
{
	const InputColumns *in = input_of(k, buf, col);
	const Job *j = k->s->job;

	if (in)
		return (RowSource){ place_at(k->e, POINTER(k, data.xh), (uint64_t)(in->half + col - in->col) * 2),
			                j->data.xh_row * 2, true };
	return (RowSource){ bf16_buffer(k, buf, col), j->cols * 2, false };
}

/* A warp's part of a tile. */
typedef struct WarpTile {
	Reg works, row, col; /* works: P, the tile has a part for it; row, col: its first, in the tile */
	Reg a, b;            /* addresses of its fragments in the first stage */
	uint32_t a_pitch, b_pitch;
	bool a_across, b_across; /* rows in the stage are the depth: fragments are transposed */
} WarpTile;

static WarpTile warp_begin(Kernel *k, const DeviceStep *s, const Tile *t)
{
	Emit *e = k->e;
	Stage p = stage_of(s, t);
	bool gradient = s->kind == STEP_GRADIENT;
	WarpTile w = { .works = less(e, k->bf16->warp, imm(t->down * t->across)),
		           .a_pitch = row_pitch(p.a_cols),
		           .b_pitch = row_pitch(p.b_cols),
		           .a_across = gradient,
		           .b_across = gradient || s->by_depth };
	Reg down = divide(e, k->bf16->warp, t->across), across = modulo(e, k->bf16->warp, t->across, down);
	Reg base = ring_base(k);

	w.row = mul(e, down, 16 * t->high);
	w.col = mul(e, across, 8 * t->wide);
	w.a = mad(e, w.row, w.a_across ? 2 : w.a_pitch, add(e, base, ldmatrix_offset(k, w.a_pitch, w.a_across)));
	w.b = mad(e, w.col, w.b_across ? 2 : w.b_pitch, add(e, base, ldmatrix_offset(k, w.b_pitch, !w.b_across)));
	w.b = add(e, w.b, imm(p.a_bytes));
	return w;
}

/* 16 sources or rows of a stage. */
static void warp_step(Kernel *k, const Tile *t, const WarpTile *w, Reg a, Reg b, uint32_t step, Reg (*sum)[4])
{
	Reg fa[2][4], fb[4][2];

	for (uint32_t h = 0; h < t->high; h++)
		fragments_load(k, fa[h], 4, w->a_across, a,
		               w->a_across ? 16 * step * w->a_pitch + 32 * h : 16 * h * w->a_pitch + 32 * step);
	for (uint32_t j = 0; j < t->wide; j += 2)
		fragments_load(k, fb[j], t->wide > 1 ? 4 : 2, w->b_across, b,
		               w->b_across ? 16 * step * w->b_pitch + 16 * j : 8 * j * w->b_pitch + 32 * step);
	for (uint32_t h = 0; h < t->high; h++)
		for (uint32_t j = 0; j < t->wide; j++)
			multiply_add(k->e, sum[h * t->wide + j], fa[h], fb[j], NULL);
}

/* ---- products ---- */

/* A thread's copies of 16 bytes to each stage. */
typedef struct Copy {
	Reg from, to, valid, deep; /* deep: its source in the chunk */
	uint32_t step;             /* bytes in global memory from one chunk to the next */
	bool zeros;                /* sources past the last are 0 */
} Copy;
typedef struct Copies {
	Copy copy[2 * MOST_COPIES];
	uint32_t count;
} Copies;

static void product_copies(Kernel *k, const DeviceStep *s, const Tile *t, const TileAt *at, Copies *c)
{
	Emit *e = k->e;
	Stage p = stage_of(s, t);
	uint32_t a_tasks = p.a_rows * (DEEP / 8), b_each = p.b_cols / 8, b_tasks = p.b_rows * b_each;
	RowSource from = source_of(k, s->a, s->a_col);
	Reg last = add(e, k->rows, imm(UINT32_MAX)), base = ring_base(k);
	Reg weights = place_at(e, POINTER(k, half), s->half_at * 2);

	c->count = 0;
	for (uint32_t i = 0; i < ceil_div(a_tasks, k->s->threads); i++) {
		Copy *x = &c->copy[c->count++];
		Reg task = add(e, k->tid, imm(i * k->s->threads)), row = divide(e, task, DEEP / 8);
		Reg part = modulo(e, task, DEEP / 8, row);
		Reg real = op2(e, REG_R, "min.u32", add(e, at->row, row), last);
		x->deep = mul(e, part, 8);
		x->valid = less(e, task, imm(a_tasks));
		x->from = op1(e, REG_D, "mov.u64", place(e, row_place(k, &from, real), part, 16));
		x->to = mad(e, row, row_pitch(DEEP), mad(e, part, 16, base));
		x->step = DEEP * 2;
		x->zeros = false;
	}
	for (uint32_t i = 0; i < ceil_div(b_tasks, k->s->threads); i++) {
		Copy *x = &c->copy[c->count++];
		Reg task = add(e, k->tid, imm(i * k->s->threads)), row = divide(e, task, b_each);
		Reg part = modulo(e, task, b_each, row), col;
		uint32_t pitch = row_pitch(p.b_cols);
		x->to = add(e, mad(e, row, pitch, mad(e, part, 16, base)), imm(p.a_bytes));
		if (s->by_depth) {
			col = add(e, at->col, mul(e, part, 8));
			x->deep = row;
			x->from = op1(e, REG_D, "mov.u64", place(e, place(e, weights, row, s->half_row * 2), col, 2));
			x->step = DEEP * s->half_row * 2;
		} else {
			col = add(e, at->col, row);
			x->deep = mul(e, part, 8);
			x->from = op1(e, REG_D, "mov.u64", place(e, place(e, weights, col, s->half_row * 2), part, 16));
			x->step = DEEP * 2;
		}
		uint32_t cols = s->by_depth ? (uint32_t)round_up(s->cols, 8) : s->cols;
		x->valid = op2(e, REG_P, "and.pred", less(e, task, imm(b_tasks)), less(e, col, imm(cols)));
		x->zeros = true;
	}
}

/* Copies of a chunk to the stage at `slot`, in flight. left: sources from this chunk on. The last 16 sources are read
 * whole, so what they lack is padded. */
static void product_issue(Kernel *k, const Copies *c, Reg slot, Reg left)
{
	Emit *e = k->e;
	Reg full = op2(e, REG_R, "and.b32", add(e, left, imm(15)), imm(~15u));

	for (uint32_t i = 0; i < c->count; i++) {
		const Copy *x = &c->copy[i];
		Reg needed = op2(e, REG_P, "and.pred", op2(e, REG_P, "setp.lt.s32", x->deep, full), x->valid);
		if (x->zeros) { /* weights of sources past the last are 0 */
			Reg bytes = op3(e, REG_R, "selp.u32", imm(16), imm(0), op2(e, REG_P, "setp.lt.s32", x->deep, left));
			ins(e, "@$ cp.async.cg.shared.global [$], [$], 16, $", needed, add(e, x->to, slot), x->from, bytes);
		} else {
			ins(e, "@$ cp.async.cg.shared.global [$], [$], 16", needed, add(e, x->to, slot), x->from);
		}
		ins(e, "add.u64 $, $, #", x->from, x->from, x->step);
	}
	ins(e, "cp.async.commit_group");
}

/* Two sums of a lane: tile i, row 8 r. */
typedef struct LanePair {
	Reg row, col, real;
	Reg floats, bf16; /* offsets in buffers, from the first column of the product on */
} LanePair;

static LanePair lane_pair(Kernel *k, const DeviceStep *s, const Tile *t, Reg row0, Reg col0, uint32_t i, uint32_t r)
{
	Emit *e = k->e;
	LanePair p = { .row = add(e, row0, imm(16 * (i / t->wide) + 8 * r)), .col = add(e, col0, imm(8 * (i % t->wide))) };

	p.real = op2(e, REG_P, "and.pred", less(e, p.row, k->rows), less(e, p.col, imm(s->cols)));
	p.floats = mad(e, p.row, k->s->job->cols * 4, mul(e, p.col, 4));
	p.bf16 = mad(e, p.row, k->s->job->cols * 2, mul(e, p.col, 2));
	return p;
}

static void pair_load(Kernel *k, const LanePair *p, Reg base, Reg v[2])
{
	Emit *e = k->e;

	v[0] = op1(e, REG_F, "mov.f32", imm_f(0));
	v[1] = op1(e, REG_F, "mov.f32", imm_f(0));
	ins(e, "@$ ld.global.v2.f32 {$, $}, [$]", p->real, v[0], v[1], place(e, base, p->floats, 1));
}

/* Columns past the last are padding, except the first one, which may be that of the true unit. */
static void pair_store(Kernel *k, uint32_t number, uint32_t buf, const LanePair *p, const Reg v[2])
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	bool floats = floats_later(k, number, buf, s->c_col, s->cols);
	bool bf16 = buf < BF16_BUFS && operand_later(k, number, buf, s->c_col, s->cols);

	if (floats)
		ins(e, "@$ st.global.v2.f32 [$], {$, $}", p->real, place(e, float_buffer(k, buf, s->c_col), p->floats, 1), v[0],
		    v[1]);
	if (!bf16)
		return;
	Reg to = place(e, bf16_buffer(k, buf, s->c_col), p->bf16, 1), two = bf16_pair(e, v[0], v[1]);
	if (s->cols % 2 == 0) {
		ins(e, "@$ st.global.u32 [$], $", p->real, to, two);
		return;
	}
	for (uint32_t i = 0; i < 2; i++) {
		Reg has = op2(e, REG_P, "and.pred", p->real, less(e, add(e, p->col, imm(i)), imm(s->cols)));
		ins(e, "@$ st.global.u16 [$+#], $", has, to, 2 * i, op1(e, REG_H, "cvt.rn.bf16.f32", v[i]));
	}
}

static void product_begin(Kernel *k, const DeviceStep *s, const Tile *t, Reg row0, Reg col0, Reg (*sum)[4])
{
	Emit *e = k->e;
	const float *zero = k->s->job->zero;

	for (uint32_t i = 0; i < t->high * t->wide; i++)
		for (uint32_t r = 0; r < 2; r++) {
			LanePair p = lane_pair(k, s, t, row0, col0, i, r);
			Reg v[2] = { imm_f(0), imm_f(0) };
			if (!s->start) {
				pair_load(k, &p, float_buffer(k, s->c, s->c_col), v);
			} else if (s->start != zero) {
				v[0] = op1(e, REG_F, "mov.f32", imm_f(0));
				v[1] = op1(e, REG_F, "mov.f32", imm_f(0));
				ins(e, "@$ ld.global.v2.f32 {$, $}, [$]", less(e, p.col, imm(s->cols)), v[0], v[1],
				    place(e, weight_place(k, s->start), p.col, 4));
			}
			for (uint32_t n = 0; n < 2; n++)
				ins(e, "mov.f32 $, $", sum[i][2 * r + n], v[n]);
		}
}

static void product_end(Kernel *k, uint32_t number, const Tile *t, Reg row0, Reg col0, Reg (*sum)[4])
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];

	for (uint32_t i = 0; i < t->high * t->wide; i++)
		for (uint32_t r = 0; r < 2; r++) {
			LanePair p = lane_pair(k, s, t, row0, col0, i, r);
			Reg v[2] = { sum[i][2 * r], sum[i][2 * r + 1] }, out[2], net[2];
			if (s->after == AFTER_UNITS) {
				if (s->c != BUF_ACT)
					pair_store(k, number, s->c, &p, v);
				for (uint32_t n = 0; n < 2; n++)
					v[n] = unit_value(e, s->fn, v[n]);
			} else if (s->after == AFTER_DELTAS) {
				pair_load(k, &p, float_buffer(k, BUF_ACT, s->c_col), out);
				if (s->keeps_net)
					pair_load(k, &p, float_buffer(k, BUF_NET, s->c_col), net);
				for (uint32_t n = 0; n < 2; n++) {
					Reg slope = unit_slope(e, s->fn, s->keeps_net ? net[n] : out[n], out[n]);
					slope = op2(e, REG_F, "add.rn.ftz.f32", slope, imm_f(s->offset));
					v[n] = op2(e, REG_F, "mul.rn.ftz.f32", v[n], slope);
				}
			}
			pair_store(k, number, s->after == AFTER_UNITS ? BUF_ACT : s->c, &p, v);
		}
}

void bf16_product_tiles(Kernel *k, uint32_t number)
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	const Tile *t = &k->tile[number];
	uint32_t bytes = stage_of(s, t).bytes, full = s->depth / DEEP, rest = (uint32_t)ceil_div(s->depth % DEEP, 16);
	Reg sum[8][4];
	Copies copies;

	remark(e, "product %u x %u, bf16: %u x %u warps with %u x 16 rows by %u x 8", s->depth, s->cols, t->down, t->across,
	       t->high, t->wide);
	k->tiles = 0;
	WarpTile w = warp_begin(k, s, t);
	TileAt at = tile_begin(k, k->s->batch_rows, s->cols, tile_rows(t), tile_cols(t));
	uint32_t past = if_begin(e, less(e, at.row, k->rows));
	product_copies(k, s, t, &at, &copies);
	Reg left = op1(e, REG_R, "mov.u32", imm(s->depth)), put = op1(e, REG_R, "mov.u32", imm(0));
	Reg get = op1(e, REG_R, "mov.u32", imm(0));
	for (uint32_t i = 0; i + 1 < t->ring; i++) {
		product_issue(k, &copies, put, left);
		ins(e, "sub.s32 $, $, #", left, left, (uint32_t)DEEP);
		ring_advance(e, t, put, bytes);
	}
	mma_sums_new(e, sum, t->high * t->wide);
	Reg row0 = add(e, add(e, at.row, w.row), k->bf16->row_of_lane),
		col0 = add(e, add(e, at.col, w.col), k->bf16->col_of_lane);
	product_begin(k, s, t, row0, col0, sum);
	for (uint32_t part = 0; part < 2; part++) { /* full chunks, then the rest */
		uint32_t steps = part ? rest : DEEP / 16;
		if (part ? !rest : !full)
			continue;
		Loop l = { 0 };
		if (!part)
			l = loop_count(e, full);
		ins(e, "cp.async.wait_group #", t->ring - 2);
		barrier_block(e);
		product_issue(k, &copies, put, left);
		ins(e, "sub.s32 $, $, #", left, left, (uint32_t)DEEP);
		ring_advance(e, t, put, bytes);
		uint32_t idle = if_begin(e, w.works);
		Reg a = add(e, w.a, get), b = add(e, w.b, get);
		for (uint32_t step = 0; step < steps; step++)
			warp_step(k, t, &w, a, b, step, sum);
		if_end(e, idle);
		ring_advance(e, t, get, bytes);
		if (!part)
			loop_end(e, &l);
	}
	ins(e, "cp.async.wait_all");
	uint32_t idle = if_begin(e, w.works);
	product_end(k, number, t, row0, col0, sum);
	if_end(e, idle);
	barrier_block(e); /* all stages are free */
	if_end(e, past);
	loop_end(e, &at.loop);
}

/* ---- gradients ---- */

static uint32_t gradient_copies(Kernel *k, const DeviceStep *s, const Tile *t, const TileAt *at, RowCopy *copy)
{
	Emit *e = k->e;
	Stage p = stage_of(s, t);
	uint32_t count = 0, threads = k->s->threads;
	Reg base = ring_base(k);

	for (uint32_t b = 0; b < 2; b++) {
		uint32_t each = (b ? p.b_cols : p.a_cols) / 8, tasks = each * DEEP;
		for (uint32_t i = 0; i < ceil_div(tasks, threads); i++) {
			RowCopy *x = &copy[count++];
			Reg task = add(e, k->tid, imm(i * threads)), part;
			x->is_b = b;
			x->row = divide(e, task, each);
			part = modulo(e, task, each, x->row);
			Reg col = add(e, b ? at->col : at->row, mul(e, part, 8));
			uint32_t most = (uint32_t)round_up(b ? s->cols : s->depth, 8);
			x->valid = op2(e, REG_P, "and.pred", less(e, task, imm(tasks)), less(e, col, imm(most)));
			x->column = mul(e, col, 2);
			x->to = add(e, mad(e, x->row, row_pitch(8 * each), mad(e, part, 16, base)), imm(b ? p.a_bytes : 0));
		}
	}
	return count;
}

/* A chunk has two slices of 32 rows, or is half of one of 128 (slice: rows). Sums of a complete slice are added to
 * those of the leaf. */
static void chunk_add(Kernel *k, const Tile *t, const WarpTile *w, Reg get, uint32_t slice, Reg row, Reg (*part)[4],
                      Reg (*sum)[4])
{
	Emit *e = k->e;
	uint32_t tiles = t->high * t->wide;
	Reg a = add(e, w->a, get), b = add(e, w->b, get);

	for (uint32_t step = 0; step < DEEP / 16; step++) {
		warp_step(k, t, w, a, b, step, part);
		if (slice <= DEEP && (step + 1) * 16 % slice == 0) {
			mma_sums_add(e, sum, part, tiles);
			mma_sums_fill(e, part, tiles, imm_f(0));
		}
	}
	if (slice > DEEP) {
		Reg next = op2(e, REG_R, "and.b32", add(e, row, imm(DEEP)), imm(slice - 1));
		uint32_t more = unless_begin(e, op2(e, REG_P, "setp.ne.u32", next, imm(0)));
		mma_sums_add(e, sum, part, tiles);
		mma_sums_fill(e, part, tiles, imm_f(0));
		if_end(e, more);
	}
}

/* The sum of a leaf. A slice that its end cuts short is added there; -0, the start of the sum, changes nothing. */
static void gradient_leaf(Kernel *k, const DeviceStep *s, const Tile *t, const WarpTile *w, const RowCopy *copy,
                          uint32_t copies, uint32_t slice, LeafRows leaf, Reg (*sum)[4])
{
	Emit *e = k->e;
	uint32_t bytes = stage_of(s, t).bytes, tiles = t->high * t->wide;
	RowSource from[2] = { source_of(k, s->a, s->a_col), source_of(k, s->c, s->c_col) };
	Reg put = op1(e, REG_R, "mov.u32", imm(0)), get = op1(e, REG_R, "mov.u32", imm(0));
	Reg next = op1(e, REG_R, "mov.u32", leaf.first), end = add(e, leaf.first, leaf.count), part[8][4];

	mma_sums_new(e, part, tiles);
	mma_sums_fill(e, part, tiles, imm_f(0));
	mma_sums_fill(e, sum, tiles, imm_f(-0.0f));
	for (uint32_t i = 0; i + 1 < t->ring; i++) {
		rows_issue(k, from, copy, copies, put, next, end);
		ins(e, "add.u32 $, $, #", next, next, (uint32_t)DEEP);
		ring_advance(e, t, put, bytes);
	}
	Loop l = loop_begin(e, imm(0), leaf.count, DEEP);
	ins(e, "cp.async.wait_group #", t->ring - 2);
	barrier_block(e);
	rows_issue(k, from, copy, copies, put, next, end);
	ins(e, "add.u32 $, $, #", next, next, (uint32_t)DEEP);
	ring_advance(e, t, put, bytes);
	uint32_t idle = if_begin(e, w->works);
	chunk_add(k, t, w, get, slice, l.i, part, sum);
	if_end(e, idle);
	ring_advance(e, t, get, bytes);
	loop_end(e, &l);
	if (slice > DEEP) { /* the last slice ends in its first half */
		Reg rest = op2(e, REG_R, "and.b32", add(e, leaf.count, imm(UINT32_MAX)), imm(slice - 1));
		uint32_t none = if_begin(e, less(e, rest, imm(DEEP)));
		mma_sums_add(e, sum, part, tiles);
		if_end(e, none);
	}
	ins(e, "cp.async.wait_all");
	barrier_block(e); /* all stages are free */
}

static void gradient_step(Kernel *k, uint32_t number, uint32_t kind)
{
	Emit *e = k->e;
	const DeviceStep *s = &k->s->step[number];
	const Tile *t = &k->tile[number];
	uint32_t depth = 0, leaves = k->s->leaves[kind], tiles = t->high * t->wide;
	Reg stack[MOST_SETS][8][4];
	RowCopy copy[2 * MOST_COPIES];

	remark(e, "gradient %u x %u, bf16: %u x %u warps with %u x 16 rows by %u x 8", s->depth, s->cols, t->down,
	       t->across, t->high, t->wide);
	for (uint32_t i = 0; i < MOST_SETS; i++)
		mma_sums_new(e, stack[i], tiles);
	WarpTile w = warp_begin(k, s, t);
	TileAt at = tile_begin(k, s->depth, s->cols, tile_rows(t), tile_cols(t));
	uint32_t copies = gradient_copies(k, s, t, &at, copy);
	for (uint32_t n = 0; n < leaves; n++) {
		gradient_leaf(k, s, t, &w, copy, copies, k->s->slice[kind], leaf_rows(k, leaves, n), stack[depth++]);
		for (uint32_t l = 0; n >> l & 1; l++, depth--)
			mma_sums_add(e, stack[depth - 2], stack[depth - 1], tiles);
	}
	for (; depth > 1; depth--)
		mma_sums_add(e, stack[depth - 2], stack[depth - 1], tiles);
	uint32_t idle = if_begin(e, w.works);
	RulePairs pairs = { .count = 2 * tiles };
	for (uint32_t i = 0; i < tiles; i++)
		for (uint32_t r = 0; r < 2; r++) {
			Reg row = add(e, add(e, at.row, w.row), add(e, k->bf16->row_of_lane, imm(16 * (i / t->wide) + 8 * r)));
			Reg col = add(e, add(e, at.col, w.col), add(e, k->bf16->col_of_lane, imm(8 * (i % t->wide))));
			Reg real = op2(e, REG_P, "and.pred", less(e, row, imm(s->depth)), less(e, col, imm(s->cols)));
			pairs.pair[2 * i + r] = (RulePair){
				row, col, mad(e, row, s->sum_row, col), real, { stack[0][i][2 * r], stack[0][i][2 * r + 1] }
			};
		}
	rule_pairs(k, k->numbers, &k->s->panel[s->panel], &pairs);
	if_end(e, idle);
	loop_end(e, &at.loop);
}

void bf16_gradient_tiles(Kernel *k, Reg leaves)
{
	const EmitSource *s = k->s;

	for (uint32_t kind = 0; kind < s->kinds_of_leaves; kind++) {
		uint32_t other = if_begin(k->e, same(k->e, leaves, imm(s->leaves[kind])));
		k->tiles = 0;
		for (uint32_t i = s->list->gradient; i < s->list->steps; i++) {
			gradient_step(k, i, kind);
			spent(k, SPENT_KINDS + min_u32(1 + i, 27));
		}
		if_end(k->e, other);
	}
}
