/* SPDX-License-Identifier: MIT */
/* What fp32 and bf16 tiles have in common (tiles.c, half_tiles.c): tiles of a matrix over blocks, rows of operands in
 * global memory, copies of rows to a ring of pieces in shared memory. */
#include "emit.h"

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
