/* SPDX-License-Identifier: MIT */
/* bf16: the plan: form of an update, layout of shared memory. In: steps. Out: struct Bf16; columns of rows in bf16 and
 * in fp32; text that loads weights and inputs.
 *
 * Operands of products and gradients are bf16 rows, beside the fp32 rows that other steps read. The length of a row is
 * an odd multiple of 16 bytes, so that the eight rows of an ldmatrix are in different banks. Must hold: padding columns
 * of an operand are 0, or finite numbers of other units times 0; deltas of padding rows are 0. */
#include <assert.h>
#include <string.h>

#include "bf16_emit.h"

/* Rows of a chunk; SPARE: bytes that fragments read past the last row, at most. */
enum { MOST_ROWS = 128, LEAST_ROWS = 32, SPARE = 512 };

static uint32_t odd_16s(uint32_t bytes) { return (uint32_t)(ceil_div(bytes, 16) | 1) * 16; }
static uint32_t row_bytes(const Bf16 *h, uint32_t bytes) { return h->warpgroups ? bytes : odd_16s(bytes); }

/* ---- columns ---- */

static void use_bf16(Bf16 *h, uint32_t buf, uint32_t col, uint32_t count)
{
	count = (uint32_t)round_up(count, 16);
	for (uint32_t i = col / COLUMN_BLOCK; i <= (col + count - 1) / COLUMN_BLOCK; i++)
		h->map[buf][i] = 0;
}

static void use_floats(Kernel *k, uint32_t buf, uint32_t col, uint32_t count)
{
	for (uint32_t i = col / COLUMN_BLOCK; count && i <= (col + count - 1) / COLUMN_BLOCK; i++)
		k->map[buf][i] = 0;
}

static bool is_product(const Kernel *k, const DeviceStep *s)
{
	return s->kind == STEP_PRODUCT && s->b != k->s->job->zero;
}

/* Operands are bf16. Other columns that steps read, and those that steps other than products write, are fp32. */
static const char *step_plan(Kernel *k, const DeviceStep *s)
{
	Bf16 *h = k->bf16;
	Access a[8];
	uint32_t n = step_access(k, s, a);

	if (s->kind == STEP_GRADIENT) {
		if (s->a_col % 8 || s->c_col % 8 || s->a > BUF_DELTA || s->c > BUF_DELTA)
			return "columns that are not aligned";
		if (!bit_columns(k, s->a, s->a_col))
			use_bf16(h, s->a, s->a_col, s->depth);
		if (!bit_columns(k, s->c, s->c_col))
			use_bf16(h, s->c, s->c_col, s->cols);
		return NULL;
	}
	if (is_product(k, s)) {
		if (s->a_col % 8 || s->a > BUF_DELTA)
			return "columns that are not aligned";
		if (!bit_columns(k, s->a, s->a_col))
			use_bf16(h, s->a, s->a_col, s->depth);
	}
	if (s->kind == STEP_PRODUCT && s->c_col % 8)
		return "columns that are not aligned";
	for (uint32_t i = 0; i < n && s->kind != STEP_ONE; i++) {
		bool operand = is_product(k, s) && !i;
		bool stored = s->kind == STEP_PRODUCT && a[i].writes;
		if (!operand && !stored && !k->bf16->fuses_layers)
			use_floats(k, a[i].buf, a[i].col, a[i].count);
	}
	return NULL;
}

static const char *columns_plan(Kernel *k)
{
	const EmitSource *s = k->s;
	Bf16 *h = k->bf16;
	uint32_t blocks = (uint32_t)ceil_div(s->job->cols, COLUMN_BLOCK) + 2, floats = 0, rounded = 0;

	for (int b = 0; b < BUFS; b++) {
		k->map[b] = NEW(&s->cx->scratch, blocks, uint16_t);
		memset(k->map[b], 0xff, blocks * sizeof **k->map);
	}
	for (int b = 0; b < BF16_BUFS; b++) {
		h->map[b] = NEW(&s->cx->scratch, blocks, uint16_t);
		memset(h->map[b], 0xff, blocks * sizeof **h->map);
	}
	for (uint32_t i = 0; i < s->list->steps; i++) {
		const char *why = s->tiled ? bf16_tiles_columns(k, i) : step_plan(k, &s->step[i]);
		if (why)
			return why;
	}
	for (uint32_t i = 0; i < s->job->outputs && !k->deferred_scores; i++)
		use_floats(k, BUF_ACT, s->output[i], 1);
	for (uint32_t b = 0; b < BUFS; b++)
		for (uint32_t i = 0; i < blocks; i++)
			if (k->map[b][i] != NO_BLOCK)
				k->map[b][i] = (uint16_t)floats++;
	for (uint32_t b = 0; b < BF16_BUFS; b++)
		for (uint32_t i = 0; i < blocks; i++)
			if (h->map[b][i] != NO_BLOCK)
				h->map[b][i] = (uint16_t)rounded++;
	k->row = (floats * COLUMN_BLOCK + 4) * 4;
	h->row = row_bytes(h, rounded * COLUMN_BLOCK * 2);
	return NULL;
}

bool has_floats(const Kernel *k, uint32_t buf, uint32_t col)
{
	return !k->bf16 || k->map[buf][col / COLUMN_BLOCK] != NO_BLOCK;
}

bool has_bf16(const Kernel *k, uint32_t buf, uint32_t col)
{
	return buf < BF16_BUFS && k->bf16->map[buf][col / COLUMN_BLOCK] != NO_BLOCK;
}

uint32_t bf16_column(const Kernel *k, uint32_t buf, uint32_t col)
{
	uint32_t at = k->bf16->map[buf][col / COLUMN_BLOCK] * COLUMN_BLOCK + col % COLUMN_BLOCK;

	assert(has_bf16(k, buf, col));
	return k->bf16->warpgroups ? at / 8 * bf16_tile_stride(k) + at % 8 * 2 : at * 2;
}

uint32_t bf16_tile_stride(const Kernel *k) { return k->bf16->warpgroups ? 128 : 16; }

/* ---- weights ---- */

static const char *regions_plan(Kernel *k)
{
	const EmitSource *s = k->s;
	Bf16 *h = k->bf16;

	for (uint32_t i = 0; i < s->list->gradient; i++) {
		const DeviceStep *d = &s->step[i];
		if (d->kind != STEP_PRODUCT || !is_row_step(k, i))
			continue;
		if (d->start && d->start != s->job->zero && !region_of(k, d->start)) {
			if (k->regions == WEIGHT_REGIONS)
				return "weights";
			k->region[k->regions++] =
				(WeightRegion){ .from = d->start, .row = (uint32_t)round_up(d->cols, 4), .rows = 1 };
		}
		if (!is_product(k, d) || bf16_region(k, d))
			continue;
		if (h->regions == WEIGHT_REGIONS || d->half_row % 8 || d->half_at % 8)
			return "weights";
		h->region[h->regions++] = (Bf16Region){ .from = d->half_at,
			                                    .row = d->half_row,
			                                    .rows = d->by_depth ? d->depth : d->cols,
			                                    .pitch = odd_16s(d->half_row * 2) };
		h->region[h->regions - 1].space = (uint32_t)round_up(h->region[h->regions - 1].rows, 16);
		if (h->warpgroups)
			warpgroup_region(&h->region[h->regions - 1], !d->by_depth);
	}
	return NULL;
}

const Bf16Region *bf16_region(const Kernel *k, const DeviceStep *s)
{
	for (uint32_t i = 0; i < k->bf16->regions; i++)
		if (k->bf16->region[i].from == s->half_at)
			return &k->bf16->region[i];
	return NULL;
}

/* ---- memory ---- */

uint32_t shared_take(Kernel *k, uint64_t bytes)
{
	uint32_t at = k->bytes;

	k->bytes = (uint32_t)min_u64(k->bytes + round_up(bytes, 16), UINT32_MAX / 2);
	return at;
}

static void memory_plan(Kernel *k, uint32_t rows)
{
	const EmitSource *s = k->s;
	Bf16 *h = k->bf16;
	const DeviceData *d = &s->job->data;
	uint64_t words = d->code_count && !k->deferred_scores ? d->part_count[0] + d->part_count[1] : 0;

	k->block_rows = k->row_space = rows;
	k->bytes = 0;
	k->at_info = shared_take(k, 64);
	k->at_cycles = shared_take(k, 8 * (1 + SPENT_KINDS + STEPS_TIMED));
	k->at_outputs = shared_take(k, s->job->output_col || k->deferred_scores ? 0 : s->job->outputs * 4);
	k->at_codes = shared_take(k, words * 8);
	k->at_elements = shared_take(k, words * s->code_longest * 4);
	k->has_codes = words != 0;
	for (uint32_t i = 0; i < h->regions; i++)
		h->region[i].at = shared_take(k, h->region[i].space * (uint64_t)h->region[i].pitch);
	for (uint32_t i = 0; i < k->regions; i++)
		k->region[i].at = shared_take(k, round_up(k->region[i].row, 16) * 4 + 64);
	k->target_row = h->y_bits ? 4 : (uint32_t)(d->targets | 1) * 4;
	k->deferred_row = k->deferred_scores ? (deferred_at(k, NULL, false) / 16 | 1) * 16 : 0;
	k->at_deferred = shared_take(k, (uint64_t)k->deferred_row * rows);
	uint32_t first = k->bytes;
	k->at_targets = shared_take(k, (uint64_t)k->target_row * rows + 16); /* quads are read */
	k->at_own = shared_take(k, d->code_count ? rows * sizeof(CodeOwn) : 0);
	h->at_bits = shared_take(k, bits_bytes(k, rows));
	h->at_count = shared_take(k, h->side_warps ? 16 : 0);
	h->cases_bytes = k->bytes - first;
	shared_take(k, h->side_warps ? h->cases_bytes : 0);
	h->at_params = shared_take(k, h->side_warps ? 2 * PARAMS_BYTES : 0);
	h->at_transposed = shared_take(k, transposed_bytes(k, rows));
	k->at_rows = shared_take(k, h->warpgroups ? 0 : (uint64_t)k->row * rows + SPARE); /* warpgroups have no fp32 rows */
	h->at_rows = shared_take(k, (uint64_t)h->row * rows + (h->warpgroups ? WARPGROUP_SPARE : SPARE));
	if (h->warpgroups)
		warpgroup_kept_plan(k);
	else if (h->kept)
		bf16_kept_plan(k);
	k->at_staged = k->at_mask = k->bytes;
}

/* Rows of a chunk: at most those of a slice; of a test, those of a block. */
static uint32_t rows_wanted(const EmitSource *s)
{
	uint32_t most = 0, least = s->warpgroups ? WARPGROUP_ROWS : LEAST_ROWS;

	for (uint32_t i = 0; i < s->kinds_of_leaves; i++)
		most = max_u32(most, s->slice[i]);
	if (s->test)
		most = (uint32_t)ceil_div(s->leaf_rows, s->team_blocks);
	else if (s->team_blocks == 1)
		most = s->leaf_rows;
	return min_u32(MOST_ROWS, (uint32_t)round_up(max_u32(1, min_u32(most, s->leaf_rows)), least));
}

/* Rows of a block and pipelines of tiles share memory, as they are used one after the other. */
static const char *tiled_plan(Kernel *k)
{
	const EmitSource *s = k->s;

	for (uint32_t i = 0; i < s->kinds_of_leaves && !s->test; i++)
		if (s->leaves[i] > 4)
			return "leaves";
	if (s->test && s->list->gradient && is_wide(&s->step[s->list->gradient - 1]))
		return "outputs";
	uint32_t rows = (uint32_t)min_u64(MOST_ROWS, round_up(ceil_div(s->batch_rows, s->team_blocks), 16));
	for (;; rows = (uint32_t)round_up(rows / 2, 16)) {
		memory_plan(k, rows);
		uint32_t bytes = k->bytes - k->at_rows, cases = (uint32_t)round_up((uint64_t)s->batch_rows * 4, 128);
		k->at_cases = k->at_rows;
		k->at_rows += cases;
		k->bf16->at_rows += cases;
		k->bytes = k->at_rows + max_u32(bytes, bf16_tiles_plan(k));
		if (k->bytes <= s->shared || rows == 16)
			return k->bytes > s->shared ? "shared memory" : NULL;
	}
}

/* Does a block have one slice at most, in one chunk? */
static void single_slice_plan(Kernel *k)
{
	const EmitSource *s = k->s;
	bool single = !s->test && !k->bf16->single_block;

	for (uint32_t i = 0; i < s->kinds_of_leaves; i++) {
		uint32_t rows = min_u32(s->slice[i], s->leaf_rows);
		single &= s->leaves[i] <= s->teams && ceil_div(s->leaf_rows, s->slice[i]) <= s->team_blocks;
		single &= rows <= k->block_rows;
	}
	k->bf16->single_slice = single;
	if (single && !k->s->adds_side_warps && update_in_parts(k) && k->bytes + parts_bytes(k) <= s->shared)
		k->bf16->at_parts = shared_take(k, parts_bytes(k));
}

/* As many rows of a chunk as fit into shared memory. */
static bool rows_plan(Kernel *k)
{
	uint32_t rows = rows_wanted(k->s);

	for (memory_plan(k, rows); k->bytes > k->s->shared && rows > LEAST_ROWS;)
		memory_plan(k, rows = rows > 64 ? 64 : LEAST_ROWS);
	return k->bytes <= k->s->shared;
}

static bool only_products(const Kernel *k)
{
	for (uint32_t i = 0; i < k->s->list->gradient; i++)
		switch (k->s->step[i].kind) {
		case STEP_LOAD:
		case STEP_MARK:
		case STEP_ONE:
		case STEP_PRODUCT:
		case STEP_ERRORS:
		case STEP_SCORES:
		case STEP_CODES: break;
		default: return false;
		}
	return true;
}

/* Do weights of a panel differ in their link class? They are updated in global memory then. */
static bool panels_differ(const Kernel *k)
{
	for (uint32_t i = 0; i < k->s->job->panels; i++)
		if (k->s->panel[i].kind)
			return true;
	return false;
}

static bool can_have_side_warps(const Kernel *k)
{
	const EmitSource *s = k->s;

	return s->threads >= 2 * SIDE_THREADS && k->deferred_scores && k->bf16->bits && only_products(k) &&
	       !s->job->data.weight && !needs_pending(s);
}

static bool single_block_fits(Kernel *k, bool kept, bool side_warps)
{
	Bf16 *h = k->bf16;

	h->kept = kept;
	h->side_warps = side_warps;
	h->warps = (k->s->threads - (side_warps ? SIDE_THREADS : 0)) / 32;
	h->rounds = 1;
	if ((kept && panels_differ(k)) || (side_warps && !can_have_side_warps(k)))
		return false;
	if (!h->warpgroups)
		bf16_gradient_plan(k);
	memory_plan(k, rows_wanted(k->s));
	return h->rounds == 1 && k->bytes <= k->s->shared;
}

/* Sums stay in registers. If threads and memory suffice, there are side warps and weights stay in shared memory; the
 * first form that fits is taken. */
static bool single_block_plan(Kernel *k)
{
	Bf16 *h = k->bf16;

	if (k->s->adds_side_warps)
		return false;
	if (h->warpgroups)
		return h->single_block = single_block_fits(k, true, true);
	for (int way = 3; way; way--)
		if (single_block_fits(k, way & 2, way & 1))
			return h->single_block = true;
	h->kept = h->side_warps = false;
	h->warps = k->s->threads / 32;
	bf16_gradient_plan(k);
	return h->single_block = h->rounds == 1 && rows_plan(k);
}

/* One slice at most, with additional side warps. */
static bool side_warps_plan(Kernel *k)
{
	Bf16 *h = k->bf16;

	h->side_warps = true;
	k->workers = k->s->threads - SIDE_THREADS;
	h->warps = k->workers / 32;
	bf16_gradient_plan(k);
	if (h->rounds > 1 || !rows_plan(k))
		return false;
	single_slice_plan(k);
	return h->single_slice && tile_sums_plan(k);
}

const char *bf16_plan(Kernel *k)
{
	const EmitSource *s = k->s;

	k->bf16 = NEW(&s->cx->scratch, 1, Bf16);
	k->bf16->warpgroups = k->e->grouped = s->warpgroups;
	k->workers = s->threads - TALLY_WARP;
	k->e->near = true;
	k->chunks = 1;
	k->overlaid = k->local = false;
	k->regions = k->exchanges = 0;
	plan_deferred_scores(k);
	bits_plan(k);
	k->bf16->fuses_layers = bf16_fuses_layers(k);
	k->bf16->y_bits = k->bf16->fuses_layers && s->job->data.y_bits && s->job->outputs <= 32;
	bool alone = !s->test && !s->adds_side_warps && s->team_blocks == 1 && (s->teams == 1 || s->solo) &&
	             s->kinds_of_leaves == 1 && s->leaves[0] == 1 && !needs_pending(s);
	if (s->warpgroups && (!alone || !bf16_can_use_warpgroups(k)))
		return "warpgroups";
	const char *why = columns_plan(k);
	if (!why)
		why = regions_plan(k);
	if (why)
		return why;
	if (s->tiled)
		return tiled_plan(k);
	if (s->adds_side_warps && !can_have_side_warps(k))
		return "side threads";
	if (alone && single_block_plan(k))
		return NULL;
	if (s->warpgroups)
		return "warpgroups";
	if (s->solo)
		return "sums of changes";
	if (s->adds_side_warps)
		return side_warps_plan(k) ? NULL : "side threads";
	if (!rows_plan(k))
		return "shared memory";
	k->bf16->warps = k->workers / 32; /* the last warp forms tallies meanwhile */
	if (!s->test)
		bf16_gradient_plan(k);
	if (!s->test && s->team_blocks == 1) /* chunks must not be longer than slices */
		memory_plan(k, min_u32(k->block_rows, max_u32(s->slice[0], s->slice[1])));
	single_slice_plan(k);
	return NULL;
}

/* ---- registers and constant columns ---- */

void bf16_begin(Kernel *k)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;

	h->warp = op2(e, REG_R, "shr.u32", k->tid, imm(5));
	h->lane = op2(e, REG_R, "and.b32", k->tid, imm(31));
	h->row_of_lane = op2(e, REG_R, "shr.u32", h->lane, imm(2));
	h->col_of_lane = op2(e, REG_R, "shl.b32", op2(e, REG_R, "and.b32", k->tid, imm(3)), imm(1));
	h->leaves = reg(e, REG_R);
	h->first = reg(e, REG_R);
	h->transposed_leaf = reg(e, REG_D);
	ins(e, "mov.u64 $, 0", h->transposed_leaf);
	if (h->warpgroups)
		warpgroups_begin(k);
	h->ldmatrix[0] = ldmatrix_offset(k, h->row, false);
	h->ldmatrix[1] = ldmatrix_offset(k, h->row, true);
	h->bits_shift = op2(e, REG_R, "shl.b32", op2(e, REG_R, "and.b32", k->tid, imm(3)), imm(2));
	if (k->s->tiled)
		bf16_ones(k); /* a barrier of the grid comes before they are read */
	for (uint32_t i = 0; i < k->s->one_columns; i++) {
		uint32_t col = k->s->ones[i];
		if (!has_bf16(k, BUF_ACT, col) || k->s->tiled)
			continue;
		Loop l = loop_begin(e, k->tid, imm(k->block_rows), k->s->threads);
		Reg one = reg(e, REG_H);
		ins(e, "mov.u16 $, 0x3f80", one);
		Reg row = h->warpgroups ? core_matrix_offset(e, h->row, l.i, imm(0)) : mul(e, l.i, h->row);
		ins(e, "st.shared.u16 [$+#], $", add(e, row, k->memory), h->at_rows + bf16_column(k, BUF_ACT, col), one);
		loop_end(e, &l);
	}
	barrier_block(e);
}

Reg ldmatrix_offset(Kernel *k, uint32_t pitch, bool across)
{
	Emit *e = k->e;
	Reg lane = k->bf16->lane;

	if (!across)
		return mad(e, op2(e, REG_R, "and.b32", lane, imm(15)), pitch,
		           op2(e, REG_R, "shl.b32", op2(e, REG_R, "shr.u32", lane, imm(4)), imm(4)));
	Reg row = add(e, op2(e, REG_R, "and.b32", lane, imm(7)),
	              op2(e, REG_R, "shl.b32", op2(e, REG_R, "shr.u32", lane, imm(4)), imm(3)));
	Reg col = op2(e, REG_R, "shl.b32", op2(e, REG_R, "and.b32", lane, imm(8)), imm(1));
	return mad(e, row, pitch, col);
}

/* ---- loads ---- */

/* 16 bytes a thread, in flight. */
static void region_stage(Kernel *k, const Bf16Region *r)
{
	Emit *e = k->e;
	uint32_t each = r->row / 8, all = r->rows * each;
	Reg from = place_at(e, POINTER(k, half), r->from * 2);
	Loop l = loop_begin(e, k->tid, imm(all), k->s->threads);
	Reg row = divide(e, l.i, each), part = modulo(e, l.i, each, row);

	ins(e, "cp.async.cg.shared.global [$+#], [$], 16", mad(e, row, r->pitch, mad(e, part, 16, k->memory)), r->at,
	    place(e, from, l.i, 16));
	loop_end(e, &l);
}

void bf16_weights_stage(Kernel *k)
{
	remark(k->e, "rounded weights");
	if (k->bf16->warpgroups) {
		warpgroup_weights_move(k, false);
		return;
	}
	for (uint32_t i = 0; i < k->bf16->regions; i++)
		region_stage(k, &k->bf16->region[i]);
}

void bf16_inputs_stage(Kernel *k)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	const DeviceData *d = &k->s->job->data;

	if (h->bits) {
		bits_stage(k);
		return;
	}
	remark(e, "rounded inputs");
	for (uint32_t i = 0; i < k->s->job->input_columns; i++) {
		const InputColumns *in = &k->s->input[i];
		uint32_t each = in->halves / 8;
		if (!has_bf16(k, BUF_ACT, in->col))
			continue;
		Loop l = loop_begin(e, k->tid, mul(e, k->my_rows, each), k->s->threads);
		Reg row = divide(e, l.i, each), part = modulo(e, l.i, each, row), number = reg(e, REG_R);
		case_load(k, number, add(e, k->row0, row), less(e, row, k->my_rows));
		Reg from = place(e, place(e, POINTER(k, data.xh), number, d->xh_row * 2), part, 16);
		ins(e, "cp.async.cg.shared.global [$+#], [$+#], 16", mad(e, row, h->row, mad(e, part, 16, k->memory)),
		    h->at_rows + bf16_column(k, BUF_ACT, in->col), from, in->half * 2);
		loop_end(e, &l);
	}
}

/* Deltas of padding rows up to the next full 32, which gradients read, become 0. */
void bf16_pads_clear(Kernel *k)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	uint32_t first = UINT32_MAX, blocks = 0, all = (uint32_t)ceil_div(k->s->job->cols, COLUMN_BLOCK);

	for (uint32_t i = 0; i < all; i++)
		if (h->map[BUF_DELTA][i] != NO_BLOCK) { /* they are adjacent */
			first = min_u32(first, h->map[BUF_DELTA][i]);
			blocks++;
		}
	if (!blocks || k->s->test || h->warpgroups) /* warpgroups store all rows */
		return;
	Reg end = op2(e, REG_R, "and.b32", add(e, k->my_rows, imm(31)), imm(~31u));
	Reg rows = op2(e, REG_R, "sub.u32", end, k->my_rows);
	Loop l = loop_begin(e, k->tid, mul(e, rows, 2 * blocks), k->s->threads);
	Reg row = divide(e, l.i, 2 * blocks), part = modulo(e, l.i, 2 * blocks, row);
	ins(e, "st.shared.v4.u32 [$+#], {0, 0, 0, 0}", mad(e, add(e, k->my_rows, row), h->row, mad(e, part, 16, k->memory)),
	    h->at_rows + first * COLUMN_BLOCK * 2);
	loop_end(e, &l);
}

Reg y_bit(Emit *e, Reg word, uint32_t n)
{
	Reg is = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", word, imm(1u << n)), imm(0));

	return op3(e, REG_F, "selp.f32", imm_f(1), imm_f(0), is);
}

Reg cases_memory(Kernel *k) { return k->bf16->side_warps ? add(k->e, k->memory, k->bf16->cases_offset) : k->memory; }

Reg bf16_pair(Emit *e, Reg low, Reg high) { return op2(e, REG_R, "cvt.rn.bf16x2.f32", high, low); }

void bf16_store(Kernel *k, Reg row, Reg column, uint32_t buf, uint32_t col, Reg value, Reg stores)
{
	Emit *e = k->e;
	Reg rounded = op1(e, REG_H, "cvt.rn.bf16.f32", value);

	ins(e, "@$ st.shared.u16 [$+#], $", stores, mad(e, row, k->bf16->row, mad(e, column, 2, k->memory)),
	    k->bf16->at_rows + bf16_column(k, buf, col), rounded);
}
