/* SPDX-License-Identifier: MIT */
/* What fp32 and bf16 tiles have in common (tiles.c, bf16_tiles.c): tiles of a matrix over blocks, rows of operands in
 * global memory, copies of rows to a ring of pieces in shared memory; an update, for which all blocks are one team:
 * wide products and gradients are cut over all blocks, steps between them are computed by each block on rows of its
 * own. */
#include "bf16_emit.h"

TileAt tile_begin(Kernel *k, uint64_t rows, uint64_t cols, uint32_t tile_rows, uint32_t tile_cols)
{
	Emit *e = k->e;
	uint32_t across = (uint32_t)ceil_div(cols, tile_cols), down = (uint32_t)ceil_div(rows, tile_rows);
	uint32_t blocks = k->s->team_blocks;
	Reg first = add(e, k->block, imm((blocks - k->tiles % blocks) % blocks));
	first = op3(e, REG_R, "selp.u32", op2(e, REG_R, "sub.u32", first, imm(blocks)), first,
	            op2(e, REG_P, "setp.ge.u32", first, imm(blocks)));
	TileAt at = { .loop = loop_begin(e, first, imm(across * down), blocks) };
	k->tiles += across * down; /* blocks that have no tile of this matrix begin with the next one */
	Reg line = divide(e, at.loop.i, across);

	at.row = mul(e, line, tile_rows);
	at.col = mul(e, modulo(e, at.loop.i, across, line), tile_cols);
	return at;
}

LeafRows leaf_rows(Kernel *k, uint32_t leaves, uint32_t leaf)
{
	Emit *e = k->e;
	Reg size = divide(e, k->rows, leaves), longer = modulo(e, k->rows, leaves, size);
	Reg one = op3(e, REG_R, "selp.u32", imm(1), imm(0), less(e, imm(leaf), longer));

	return (LeafRows){ add(e, mul(e, size, leaf), op2(e, REG_R, "min.u32", longer, imm(leaf))), add(e, size, one) };
}

Reg row_place(Kernel *k, const RowSource *s, Reg row)
{
	Emit *e = k->e;
	Reg number = s->data ? load(e, REG_R, "ld.shared.u32", mad(e, row, 4, k->memory), k->at_cases) : row;

	return place(e, s->base, number, s->row);
}

Reg float_buffer(Kernel *k, uint32_t buf, uint32_t col)
{
	return place_at(k->e, pointer(k, offsetof(Job, buf) + buf * sizeof(float *)), (uint64_t)col * 4);
}

Reg ring_base(Kernel *k) { return add(k->e, k->memory, imm(k->at_rows)); }

void ring_advance(Emit *e, const Tile *t, Reg slot, uint32_t bytes)
{
	ins(e, "add.u32 $, $, #", slot, slot, bytes);
	ins(e, "@$ mov.u32 $, 0", op2(e, REG_P, "setp.eq.u32", slot, imm(t->ring * bytes)), slot);
}

void rows_issue(Kernel *k, const RowSource from[2], const RowCopy *copy, uint32_t copies, Reg slot, Reg first, Reg end)
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < copies; i++) {
		const RowCopy *x = &copy[i];
		Reg row = add(e, first, x->row), is_row = less(e, row, end);
		Reg real = op3(e, REG_R, "selp.u32", row, imm(0), is_row);
		Reg bytes = op3(e, REG_R, "selp.u32", imm(16), imm(0), is_row);
		ins(e, "@$ cp.async.cg.shared.global [$], [$], 16, $", x->valid, add(e, x->to, slot),
		    place(e, row_place(k, &from[x->is_b], real), x->column, 1), bytes);
	}
	ins(e, "cp.async.commit_group");
}

/* ---- an update ---- */

/* All rows of the update: cases of its leaves follow each other. */
static void batch_begin(Kernel *k, Reg update, Reg leaves)
{
	Emit *e = k->e;
	Reg leaf = load(e, REG_D, "ld.global.nc.u64", update, offsetof(DeviceUpdate, leaf));
	Reg all = op1(e, REG_R, "mov.u32", imm(0));

	leaf = op2(e, REG_D, "add.u64", op2(e, REG_D, "mul.lo.u64", leaf, imm(sizeof(DeviceLeaf))), POINTER(k, leaf));
	Loop l = loop_begin(e, imm(0), leaves, 1);
	Reg chunk =
		load(e, REG_D, "ld.global.nc.u64", place(e, leaf, l.i, sizeof(DeviceLeaf)), offsetof(DeviceLeaf, chunk));
	chunk = op2(e, REG_D, "add.u64", op2(e, REG_D, "mul.lo.u64", chunk, imm(sizeof(DeviceChunk))), POINTER(k, chunk));
	ins(e, "add.u32 $, $, $", all, all, load(e, REG_R, "ld.global.nc.u32", chunk, offsetof(DeviceChunk, rows)));
	uint32_t first = if_begin(e, same(e, l.i, imm(0)));
	Reg cases = load(e, REG_D, "ld.global.nc.u64", chunk, offsetof(DeviceChunk, cases));
	ins(e, "add.u64 $, $, $", k->cases, op2(e, REG_D, "shl.b64", cases, imm(2)), POINTER(k, cases));
	if_end(e, first);
	loop_end(e, &l);
	ins(e, "mov.u32 $, $", k->rows, all);
	Reg product = op2(e, REG_R, "mul.lo.u32", k->rows, k->block);
	uint32_t blocks = k->s->team_blocks;
	ins(e, "mov.u32 $, $", k->row0, divide(e, product, blocks));
	ins(e, "sub.u32 $, $, $", k->my_rows, divide(e, op2(e, REG_R, "add.u32", product, k->rows), blocks), k->row0);
	Loop c = loop_begin(e, k->tid, k->rows, k->s->threads);
	Reg number = reg(e, REG_R);
	case_load(k, number, c.i, less(e, c.i, k->rows));
	ins(e, "st.shared.u32 [$+#], $", mad(e, c.i, 4, k->memory), k->at_cases, number);
	loop_end(e, &c);
	if (!k->bf16)
		targets_stage(k);
	ins(e, "cp.async.wait_all");
	barrier_block(e);
}

/* Steps between wide products, on the block's rows. */
static void phase_emit(Kernel *k, uint32_t first, uint32_t end)
{
	bool scores = false, codes = false;

	for (uint32_t i = first; i < end; i++) {
		scores |= k->s->step[i].kind == STEP_SCORES;
		codes |= k->s->step[i].kind == STEP_CODES;
	}
	if (k->bf16) {
		bf16_phase(k, first, end, scores, codes);
		return;
	}
	phase_move(k, first, end, false);
	steps_emit(k, first, end);
	phase_move(k, first, end, true);
	uint32_t none = if_begin(k->e, less(k->e, k->tid, imm(k->workers)));
	if (scores)
		scores_emit(k, codes, 0, k->workers);
	if_end(k->e, none);
	barrier_block(k->e);
}

/* Tallies of all leaves, by one warp of the last block. */
static void tallies_emit(Kernel *k, Reg update, Reg leaves)
{
	Emit *e = k->e;
	Kernel one = *k;
	Reg first = op1(e, REG_R, "mov.u32", imm(0)), size = reg(e, REG_R), longer = reg(e, REG_R);

	ins(e, "div.u32 $, $, $", size, k->rows, leaves);
	ins(e, "sub.u32 $, $, $", longer, k->rows, op2(e, REG_R, "mul.lo.u32", size, leaves));
	Loop l = loop_begin(e, imm(0), leaves, 1);
	one.leaf_number = l.i;
	one.rows = add(e, size, op3(e, REG_R, "selp.u32", imm(1), imm(0), less(e, l.i, longer)));
	one.row_error = place(e, k->row_error, first, 4);
	one.verdict = place(e, k->verdict, first, 1);
	one.cases = place(e, k->cases, first, 4);
	tally_leaf(&one, imm(1));
	ins(e, "add.u32 $, $, $", first, first, one.rows);
	loop_end(e, &l);
	ins(e, "bar.warp.sync 0xffffffff");
	tally_update(k, update);
}

static bool is_phase(const Kernel *k, uint32_t i)
{
	const DeviceStep *s = &k->s->step[i];

	return !is_wide(s) && s->kind != STEP_LOAD && s->kind != STEP_ONE && s->kind != STEP_MARK;
}

void update_tiled(Kernel *k, Reg update, const Barriers *b)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Reg leaves = load(e, REG_R, "ld.global.nc.u32", update, offsetof(DeviceUpdate, leaves));
	RuleNumbers n;

	if (!s->test)
		rule_numbers(k, &n);
	batch_begin(k, update, leaves);
	spent(k, SPENT_KINDS);
	for (uint32_t i = 0, end; i < s->list->gradient; i = end) {
		end = i + 1;
		if (is_wide(&s->step[i])) {
			if (k->bf16)
				bf16_product_tiles(k, i);
			else
				product_tiles(k, i);
		} else if (is_phase(k, i)) {
			while (end < s->list->gradient && !is_wide(&s->step[end]))
				end++;
			phase_emit(k, i, end);
		} else {
			continue;
		}
		spent(k, SPENT_ROWS);
		barrier_arrive(k, &b->grid);
		barrier_wait(k, &b->grid);
		spent(k, SPENT_TEAM);
	}
	/* the last block's part of the gradient is the smallest: one of its warps forms tallies before */
	uint32_t last = if_begin(e, same(e, k->block, imm(s->team_blocks - 1)));
	uint32_t other = if_begin(e, op2(e, REG_P, "setp.ge.u32", k->tid, imm(k->workers)));
	tallies_emit(k, update, leaves);
	if_end(e, other);
	if_end(e, last);
	k->numbers = &n;
	if (k->bf16 && !s->test)
		bf16_gradient_tiles(k, leaves);
	else if (!s->test)
		gradient_tiles(k, leaves);
	k->numbers = NULL;
	spent(k, SPENT_GRADIENT);
	barrier_arrive(k, &b->grid);
	barrier_wait(k, &b->grid);
	spent(k, SPENT_GRID_AFTER);
}
