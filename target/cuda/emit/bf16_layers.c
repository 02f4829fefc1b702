/* SPDX-License-Identifier: MIT */
/* bf16: fused layers: forward and backward pass of a network with one hidden layer. In: inputs of rows, bf16 weights.
 * Out: bf16 activations and deltas, for gradients; deferred rows, for scores.
 *
 * A warp takes 16 rows through all layers in registers: accumulators of one product have the layout of the operand
 * fragments of the next. Stored is only what gradients and scores read, and what warps that share rows exchange.
 * A warpgroup takes 64 rows, by wgmma (bf16_warpgroups.c). */
#include "bf16_emit.h"
#include "units.h"

enum { MOST_SPLIT = 4 };

/* Steps of a network with one hidden layer. */
typedef struct Layers {
	const DeviceStep *hidden, *outputs, *errors, *back;
	uint32_t number[3]; /* of the three products, among steps */
} Layers;
/* Rows of a warp: 16. */
typedef struct WarpRows {
	Reg row, real[2];   /* of the lane: its first row; P: its rows, 8 apart, are rows of the chunk */
	Reg base, bf16_row; /* first row of the warp; address of the lane's first row in bf16 */
} WarpRows;
/* A warp's share of the tiles of a product, if several warps have the same rows. */
typedef struct Tiles {
	Reg first;            /* may be a constant */
	uint32_t most, tiles; /* most: the largest value of first */
	Reg col;              /* the lane's first column */
} Tiles;
static bool layers_find(const Kernel *k, Layers *t)
{
	uint32_t products = 0;

	for (uint32_t i = 0; i < k->s->list->gradient; i++)
		switch (k->s->step[i].kind) {
		case STEP_PRODUCT:
			if (products == 3)
				return false;
			t->number[products++] = i;
			break;
		case STEP_LOAD:
		case STEP_MARK:
		case STEP_ONE:
		case STEP_ERRORS:
		case STEP_SCORES:
		case STEP_CODES: break;
		default: return false;
		}
	if (products != 3)
		return false;
	t->hidden = &k->s->step[t->number[0]];
	t->outputs = &k->s->step[t->number[1]];
	t->back = &k->s->step[t->number[2]];
	t->errors = deferred_errors(k, t->outputs);
	return true;
}

static bool is_chained(const DeviceStep *s, uint32_t buf, const DeviceStep *from)
{
	return s->a == buf && s->a_col == from->c_col && s->depth == from->cols;
}

static bool layers_fit(const Kernel *k, const Layers *t)
{
	const float *zero = k->s->job->zero;
	const DeviceStep *all[] = { t->hidden, t->outputs, t->back };

	for (uint32_t i = 0; i < 3; i++)
		if (all[i]->b == zero || !all[i]->start || all[i]->keeps_net || (all[i]->cols % 2 && !k->s->warpgroups) ||
		    all[i]->cols > 8 * TILES_WIDE || ceil_div(all[i]->depth, 16) > STEPS_KNOWN)
			return false;
	return t->hidden->after == AFTER_UNITS && !deferred_errors(k, t->hidden) && t->errors &&
	       t->errors->c == BUF_DELTA && t->outputs->cols <= 4 * TILES_WIDE && t->back->after == AFTER_DELTAS &&
	       t->back->c == BUF_DELTA && is_chained(t->outputs, BUF_ACT, t->hidden) &&
	       is_chained(t->back, BUF_DELTA, t->outputs) && t->back->c_col == t->hidden->c_col &&
	       t->back->cols == t->hidden->cols;
}

bool bf16_fuses_layers(const Kernel *k)
{
	Layers t;

	return k->deferred_scores && !k->s->test && !k->s->tiled && layers_find(k, &t) && layers_fit(k, &t);
}

/* wgmma: steps of sums begin at multiples of 8 rows or columns of weights. */
bool bf16_can_use_warpgroups(const Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t threads = (WARPGROUPS + 1) * WARPGROUP_THREADS;
	Layers t;

	return s->threads == threads && k->bf16->fuses_layers && k->bf16->bits && s->leaf_rows > WARPGROUP_ROWS &&
	       layers_find(k, &t) && bit_columns(k, t.hidden->a, t.hidden->a_col) && warpgroup_gradients_fit(k);
}

static uint32_t tiles_across(const DeviceStep *s) { return (uint32_t)ceil_div(s->cols, 8); }

static Tiles tiles_of_share(Kernel *k, const DeviceStep *s, Reg share, uint32_t split)
{
	uint32_t each = (uint32_t)ceil_div(tiles_across(s), split);
	Tiles t = { .first = mul(k->e, share, each), .most = each * (split - 1), .tiles = each };

	t.col = add(k->e, k->bf16->col_of_lane, mul(k->e, t.first, 8));
	return t;
}

/* Address of the weights' fragments, for these tiles and from column 8 first of them on. */
static Reg weights_place(Kernel *k, const DeviceStep *s, const Tiles *t, uint32_t first)
{
	const Bf16Region *w = bf16_region(k, s);
	uint32_t tile = s->by_depth ? 16 : 8 * w->pitch;
	Reg lanes = add(k->e, ldmatrix_offset(k, w->pitch, !s->by_depth), mul(k->e, t->first, tile));

	return add(k->e, add(k->e, k->memory, lanes), imm(w->at + tile * first));
}

/* Sums begin with weights from the true unit, or 0. */
static void sums_start(Kernel *k, const DeviceStep *s, const Tiles *t, uint32_t first, uint32_t tiles, Reg (*sum)[4])
{
	Emit *e = k->e;
	bool zero = s->start == k->s->job->zero;
	Reg at = mad(e, t->col, 4, k->memory), start[2] = { imm_f(0), imm_f(0) };

	for (uint32_t j = 0; j < tiles; j++) {
		if (zero && k->bf16->warpgroups) { /* the first wgmma sets them */
			for (uint32_t i = 0; i < 4; i++)
				sum[j][i] = reg(e, REG_F);
			continue;
		}
		if (!zero)
			two_load(e, start, at, weight_at(k, s->start) + 32 * (first + j));
		for (uint32_t i = 0; i < 4; i++)
			sum[j][i] = op1(e, REG_F, "mov.f32", start[i % 2]);
	}
}

/* Operands in shared memory: address of the warp's fragments. */
static Reg rows_place(Kernel *k, const DeviceStep *s, const WarpRows *x)
{
	return add(k->e, add(k->e, mad(k->e, x->base, k->bf16->row, k->memory), k->bf16->ldmatrix[0]),
	           imm(k->bf16->at_rows + bf16_column(k, s->a, s->a_col)));
}

/* a: operands in registers, [tiles][2 rows] pairs of columns; NULL: those in shared memory */
static void layer_multiply(Kernel *k, const DeviceStep *s, const WarpRows *x, Reg (*a)[2], const Tiles *t,
                           uint32_t first, uint32_t tiles, Reg (*sum)[4])
{
	Reg b = weights_place(k, s, t, first), f[4], rows = a ? b : rows_place(k, s, x);
	uint32_t pitch = bf16_region(k, s)->pitch;

	for (uint32_t step = 0; step < ceil_div(s->depth, 16); step++) {
		Reg fa[4];
		uint32_t at = s->by_depth ? 16 * step * pitch : 32 * step;
		if (!a)
			fragments_load(k, fa, 4, false, rows, 32 * step);
		for (uint32_t i = 0; a && i < 4; i++)
			fa[i] = a[2 * step + i / 2][i % 2];
		for (uint32_t j = 0; j < tiles; j += 2) {
			uint32_t some = min_u32(2, tiles - j);
			fragments_load(k, f, 2 * some, s->by_depth, b, at + (s->by_depth ? 16 * j : 8 * j * pitch));
			for (uint32_t n = 0; n < some; n++)
				multiply_add(k->e, sum[j + n], fa, f + 2 * n, NULL);
		}
	}
}

/* Stores two columns of tile j, row 8 r, rounded; 0 past the last column. */
static Reg pair_store(Kernel *k, const DeviceStep *s, const WarpRows *x, const Tiles *t, uint32_t buf, uint32_t j,
                      uint32_t r, const Reg v[2])
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	Reg pair = bf16_pair(e, v[0], v[1]), has = x->real[r],
		at = h->warpgroups ? x->bf16_row : mad(e, t->col, 2, x->bf16_row);
	uint32_t offset = bf16_column(k, buf, s->c_col) + 8 * r * h->row + bf16_tile_stride(k) * j;
	bool last = 8 * (t->most + j + 1) > s->cols;

	if (h->warpgroups && buf == BUF_DELTA && s->after == AFTER_UNITS) /* gradients read rows past the last */
		pair = op3(e, REG_R, "selp.u32", pair, imm(0), has);
	if (last) {
		Reg inside = less(e, add(e, t->col, imm(8 * j)), imm(s->cols));
		pair = op3(e, REG_R, "selp.u32", pair, imm(0), inside);
		has = h->warpgroups ? inside : op2(e, REG_P, "and.pred", has, inside);
	}
	if (s->cols % 2 && j == s->cols / 8) { /* warpgroups: after the last activation comes the true unit's */
		Reg own = op2(e, REG_R, "and.b32", pair, imm(0xffff));
		if (buf == BUF_ACT)
			own = op2(e, REG_R, "or.b32", own, imm(0x3f800000));
		pair = op3(e, REG_R, "selp.u32", own, pair, same(e, t->col, imm(s->cols % 8 - 1)));
	}
	if (h->warpgroups && !last)
		ins(e, "st.shared.u32 [$+#], $", at, offset, pair);
	else
		ins(e, "@$ st.shared.u32 [$+#], $", has, at, offset, pair);
	return pair;
}

static void hidden_products(Kernel *k, const Layers *t, const WarpRows *x, const Tiles *some, Sums *sums)
{
	const DeviceStep *s = t->hidden;
	Bf16Task task = { .high = 1, .wide = some->tiles };
	Reg fa[TILES_HIGH][2][4];
	const InputColumns *bits = bit_columns(k, s->a, s->a_col);

	sums_start(k, s, some, 0, some->tiles, sums->sum);
	Reg a = bits ? bits_row_at(k, bits, x->base) : rows_place(k, s, x), b = weights_place(k, s, some, 0);
	for (uint32_t step = 0; step < ceil_div(s->depth, 16); step++)
		bf16_product_step(k, s, &task, a, b, bf16_region(k, s)->pitch, step, fa, sums);
}

/* Outputs from net inputs. out: NULL; warpgroups: sums of the next product, issued as its operands become ready */
static void hidden_outputs(Kernel *k, const Layers *t, const WarpRows *x, const Tiles *some, Sums *sums, Reg (*pair)[2],
                           Sums *out)
{
	const DeviceStep *s = t->hidden;

	for (uint32_t j = 0; j < some->tiles; j++) {
		Reg *v = sums->sum[j];
		for (uint32_t i = 0; i < 4; i++)
			v[i] = unit_value(k->e, s->fn, v[i]);
		for (uint32_t r = 0; r < 2; r++)
			pair[j][r] = pair_store(k, s, x, some, BUF_ACT, j, r, v + 2 * r);
		if (out && (j % 2 || j + 1 == some->tiles))
			wgmma_step(k, t->outputs, j / 2, pair, tiles_across(t->outputs), out->sum);
	}
}

static Sums outputs_begin(Kernel *k, const Layers *t, const WarpRows *x, const Tiles *some)
{
	Sums sums = { .row = x->row, .col = some->col, .has_targets = k->bf16->y_bits };

	for (uint32_t r = 0; r < 2 && sums.has_targets; r++) /* while products are in flight */
		sums.target[r] = bf16_target_word(k, &sums, r);
	sums_start(k, t->outputs, some, 0, some->tiles, sums.sum);
	return sums;
}

static void output_deltas(Kernel *k, const Layers *t, const WarpRows *x, const Tiles *some, Sums *sums, Reg (*pair)[2])
{
	for (uint32_t i = 0; i < 2 * some->tiles; i++) {
		uint32_t j = i / 2, r = i % 2;
		bf16_outputs(k, t->outputs, t->errors, sums, r, j, x->real[r], sums->sum[j] + 2 * r);
		pair[j][r] = pair_store(k, t->outputs, x, some, BUF_DELTA, j, r, sums->sum[j] + 2 * r);
	}
}

/* A few tiles at a time, as sums of gradients and activations take most registers. */
static void hidden_deltas(Kernel *k, const Layers *t, const WarpRows *x, const Tiles *some, Reg (*a)[2],
                          const Sums *out)
{
	Emit *e = k->e;
	const DeviceStep *s = t->back;
	uint32_t at_once = k->bf16->warpgroups ? TILES_WIDE : 4;

	for (uint32_t first = 0; first < some->tiles; first += at_once) {
		uint32_t tiles = min_u32(at_once, some->tiles - first);
		Reg sum[TILES_WIDE][4];
		sums_start(k, s, some, first, tiles, sum);
		if (k->bf16->warpgroups)
			wgmma_from_registers(k, s, a, tiles, sum);
		else
			layer_multiply(k, s, x, a, some, first, tiles, sum);
		for (uint32_t i = 0; i < 2 * tiles; i++) {
			uint32_t j = i / 2, r = i % 2;
			Reg v[2];
			for (uint32_t n = 0; n < 2; n++) {
				Reg o = out->sum[first + j][2 * r + n], slope = slope_offset(e, s, unit_slope(e, s->fn, o, o));
				v[n] = op2(e, REG_F, "mul.rn.ftz.f32", sum[j][2 * r + n], slope);
			}
			pair_store(k, s, x, some, BUF_DELTA, first + j, r, v);
		}
	}
}

static WarpRows warp_rows(Kernel *k, Reg base)
{
	Emit *e = k->e;
	WarpRows x = { .base = base, .row = add(e, base, k->bf16->row_of_lane) };

	for (uint32_t r = 0; r < 2; r++)
		x.real[r] = less(e, add(e, x.row, imm(8 * r)), k->my_rows);
	Reg own = k->bf16->warpgroups ? mad(e, base, k->bf16->row, mul(e, k->bf16->lane, 4)) : mul(e, x.row, k->bf16->row);
	x.bf16_row = add(e, add(e, own, k->memory), imm(k->bf16->at_rows));
	return x;
}

/* May so many warps share rows? All of their tiles are read; up to the next full 16 columns there are some. */
static bool splits(const DeviceStep *s, uint32_t split)
{
	return ceil_div(tiles_across(s), split) * split * 8 <= round_up(s->cols, 16);
}

/* Warps that share 16 rows. */
static uint32_t warps_split(const Kernel *k, const Layers *t, uint32_t warps)
{
	if (k->bf16->warpgroups)
		return 1;
	for (uint32_t split = k->s->adds_side_warps ? MOST_SPLIT : 2; split > 1; split /= 2)
		if (k->block_rows / 16 * split <= warps && splits(t->hidden, split) && splits(t->outputs, split))
			return split;
	return 1;
}

/* Without a loop, only warps that have rows write deferred rows, and wait between two layers. */
uint32_t bf16_scored_threads(const Kernel *k)
{
	uint32_t warps = k->bf16->warps, tiles = k->block_rows / 16;
	Layers t;

	if (k->bf16->fuses_layers && tiles <= warps && layers_find(k, &t))
		return 32 * tiles * warps_split(k, &t, warps);
	return 32 * warps;
}

void scores_wait(Kernel *k)
{
	if (k->bf16->side_warps && k->bf16->single_block)
		ins(k->e, "bar.sync #, #", NAMED_SCORED, bf16_scored_threads(k) + SIDE_THREADS);
}

/* Warps that share rows. */
static void split_sync(Kernel *k, Reg tile, uint32_t split)
{
	if (split > 1)
		ins(k->e, "bar.sync $, #", add(k->e, tile, imm(NAMED_ROW_TILE)), 32 * split);
}

static void pairs_clear(Kernel *k, Reg (*pair)[2])
{
	Reg none = op1(k->e, REG_R, "mov.u32", imm(0));

	for (uint32_t i = 0; i < 4 * TILES_WIDE; i++)
		pair[i / 2][i % 2] = none; /* past the last tile */
}

static void warp_layers(Kernel *k, const Layers *t, const WarpRows *x, Reg tile, Reg share, uint32_t split, bool waits)
{
	Reg act[2 * TILES_WIDE][2], delta[2 * TILES_WIDE][2];
	Tiles hidden = tiles_of_share(k, t->hidden, share, split), outputs = tiles_of_share(k, t->outputs, share, split);
	Sums sums, out;

	pairs_clear(k, act);
	pairs_clear(k, delta);
	hidden_products(k, t, x, &hidden, &sums);
	hidden_outputs(k, t, x, &hidden, &sums, act, NULL);
	split_sync(k, tile, split);
	if (waits)
		scores_wait(k);
	out = outputs_begin(k, t, x, &outputs);
	layer_multiply(k, t->outputs, x, split > 1 ? NULL : act, &outputs, 0, outputs.tiles, out.sum);
	output_deltas(k, t, x, &outputs, &out, delta);
	split_sync(k, tile, split);
	hidden_deltas(k, t, x, &hidden, split > 1 ? NULL : delta, &sums);
}

/* ---- warpgroups ---- */

/* Rows of a warpgroup, whose sums have their start. The rows of the previous chunk are overwritten once gradients have
 * read them. */
static void warpgroup_layers(Kernel *k, const Layers *t, const WarpRows *x, const Tiles *hidden, Sums *sums)
{
	Reg act[2 * TILES_WIDE][2], delta[2 * TILES_WIDE][2];
	Tiles outputs = tiles_of_share(k, t->outputs, imm(0), 1);
	const InputColumns *bits = bit_columns(k, t->hidden->a, t->hidden->a_col);

	pairs_clear(k, act);
	pairs_clear(k, delta);
	wgmma_from_bits(k, t->hidden, bits_row_at(k, bits, x->base), hidden->tiles, sums->sum);
	rows_read_wait(k);
	Sums out = outputs_begin(k, t, x, &outputs);
	hidden_outputs(k, t, x, hidden, sums, act, &out);
	scores_wait(k);
	wgmma_wait_all(k);
	output_deltas(k, t, x, &outputs, &out, delta);
	hidden_deltas(k, t, x, hidden, delta, sums);
}

/* 64 rows each; the warpgroup without rows transposes bits, once gradients have read the previous ones. */
static void warpgroups_layers(Kernel *k)
{
	Emit *e = k->e;
	uint32_t warps = warpgroup_row_threads(k) / 32, others = label(e), end = label(e);
	Layers t;
	Sums sums;

	if (!layers_find(k, &t))
		return;
	remark(e, "64 rows of a warpgroup through all layers");
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", k->bf16->warp, imm(warps)), others);
	Tiles hidden = tiles_of_share(k, t.hidden, imm(0), 1);
	sums_start(k, t.hidden, &hidden, 0, hidden.tiles, sums.sum); /* needs no cases */
	cases_wait(k);
	Reg base = mul(e, k->bf16->warp, 16), first = op2(e, REG_R, "and.b32", base, imm(0u - WARPGROUP_ROWS));
	uint32_t past = if_begin(e, less(e, first, k->my_rows));
	WarpRows x = warp_rows(k, base);
	warpgroup_layers(k, &t, &x, &hidden, &sums);
	ins(e, "bra L#", end);
	if_end(e, past);
	rows_read_wait(k);
	scores_wait(k); /* the barrier counts warps without rows, too */
	ins(e, "bra L#", end);
	label_here(e, others);
	rows_read_wait(k);
	chunk_counts_load(k);
	bits_transpose(k, warps, SQUARES_AT_ONCE);
	label_here(e, end);
	async_proxy_fence(k);
}

/* ---- the rows of a chunk ---- */

/* Warps without rows transpose bits meanwhile. */
void bf16_layers(Kernel *k)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	uint32_t tiles = k->block_rows / 16, warps = k->s->threads / 32, others = label(e), end = label(e);
	bool loops = tiles > warps;
	Layers t;

	if (h->warpgroups) {
		warpgroups_layers(k);
		return;
	}
	if (!layers_find(k, &t))
		return;
	uint32_t split = warps_split(k, &t, warps);
	remark(e, "16 rows of %u warps through all layers", split);
	if (loops)
		scores_wait(k);
	if (tiles * split >= warps)
		bits_transpose(k, 0, 1);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", h->warp, imm(tiles * split)), others);
	Loop l = { 0 };
	if (loops)
		l = loop_begin(e, h->warp, imm(tiles), warps);
	Reg tile = loops ? l.i : divide(e, h->warp, split), share = imm(0);
	if (split > 1)
		share = modulo(e, h->warp, split, tile);
	Reg base = mul(e, tile, 16);
	uint32_t past = if_begin(e, less(e, base, k->my_rows));
	WarpRows x = warp_rows(k, base);
	warp_layers(k, &t, &x, tile, share, split, !loops);
	if (!loops)
		ins(e, "bra L#", end);
	if_end(e, past);
	if (!loops)
		scores_wait(k); /* the barrier counts warps without rows, too */
	if (loops)
		loop_end(e, &l);
	ins(e, "bra L#", end);
	label_here(e, others);
	if (tiles * split < warps)
		bits_transpose(k, tiles * split, 1);
	label_here(e, end);
}
