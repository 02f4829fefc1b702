/* SPDX-License-Identifier: MIT */
/* bf16: steps between tiles, on rows of a block. In: rows in global memory, rounded or as floats. Out: what these steps
 * write, there too. Rows come to shared memory in chunks. */
#include <stdlib.h>
#include <string.h>
#include "half_emit.h"
#include "units.h"

/* Which blocks of 16 columns steps first .. end - 1 read before they write them, or write for later ones. */
typedef struct Moves {
	bool *floats[BUFS], *halves[HALF_BUFS];
} Moves;

static void mark(bool *which, uint32_t col, uint32_t count, bool value)
{
	for (uint32_t i = col / COLUMN_BLOCK; count && i <= (col + count - 1) / COLUMN_BLOCK; i++)
		which[i] = value;
}

static Moves moves_of(Kernel *k, uint32_t first, uint32_t end, bool out)
{
	uint32_t blocks = (uint32_t)ceil_div(k->s->job->cols, COLUMN_BLOCK) + 2;
	Moves m;
	bool *written[BUFS];

	for (uint32_t b = 0; b < BUFS; b++) {
		m.floats[b] = NEW(&k->s->cx->scratch, blocks, bool);
		written[b] = NEW(&k->s->cx->scratch, blocks, bool);
		if (b < HALF_BUFS)
			m.halves[b] = NEW(&k->s->cx->scratch, blocks, bool);
	}
	for (uint32_t i = first; i < end; i++) {
		const DeviceStep *s = &k->s->step[i];
		Access a[8];
		uint32_t n = s->kind == STEP_ONE ? 0 : step_access(k, s, a);
		for (uint32_t x = 0; x < n; x++) {
			uint32_t buf = a[x].buf, col = a[x].col, count = a[x].count;
			if (a[x].writes) {
				mark(written[buf], col, count, true);
				if (out && floats_later(k, end - 1, buf, col, count))
					mark(m.floats[buf], col, count, true);
				if (out && buf < HALF_BUFS && operand_later(k, end - 1, buf, col, count))
					mark(m.halves[buf], col, count, true);
			} else if (!out && !written[buf][col / COLUMN_BLOCK]) {
				bool operand = is_operand(s, x);
				if (operand && !input_of(k, buf, col) && s->b != k->s->job->zero)
					mark(m.halves[buf], col, count, true);
				if (!operand)
					mark(m.floats[buf], col, count, true);
			}
		}
	}
	return m;
}

/* A run of blocks of the block's rows. parts: of 16 bytes */
static void blocks_move(Kernel *k, Reg global, uint32_t here_at, uint32_t here_row, uint32_t there_row, uint32_t parts,
                        bool out)
{
	Emit *e = k->e;
	Loop l = loop_begin(e, k->tid, mul(e, k->my_rows, parts), k->s->threads);
	Reg row = divide(e, l.i, parts), part = modulo(e, l.i, parts, row);
	Reg here = add(e, mad(e, row, here_row, mad(e, part, 16, k->memory)), imm(here_at));
	Reg there = place(e, place(e, global, add(e, k->row0, row), there_row), part, 16);

	if (out) {
		Reg v[4];
		load_quad(e, "shared", v, here, 0);
		store_quad(e, "global", there, 0, v);
	} else {
		ins(e, "cp.async.cg.shared.global [$], [$], 16", here, there);
	}
	loop_end(e, &l);
}

static void rows_move(Kernel *k, uint32_t first, uint32_t end, bool out)
{
	uint32_t blocks = (uint32_t)ceil_div(k->s->job->cols, COLUMN_BLOCK), cols = k->s->job->cols;
	Moves m = moves_of(k, first, end, out);

	for (uint32_t b = 0; b < BUFS + HALF_BUFS; b++) {
		bool half = b >= BUFS;
		uint32_t buf = half ? b - BUFS : b, bytes = half ? 2 : 4;
		const bool *which = half ? m.halves[buf] : m.floats[buf];
		for (uint32_t i = 0, run; i < blocks; i += run) {
			for (run = 1; i + run < blocks && which[i + run] == which[i];)
				run++;
			if (!which[i])
				continue;
			uint32_t col = i * COLUMN_BLOCK;
			blocks_move(k, half ? half_buffer(k, buf, col) : float_buffer(k, buf, col),
			            half ? k->half->at_rows + half_column(k, buf, col) : k->at_rows + column_at(k, buf, col),
			            half ? k->half->row : k->row, cols * bytes, run * COLUMN_BLOCK * bytes / 16, out);
		}
	}
}

/* What tiles left there is no number. */
static void rows_clear(Kernel *k)
{
	Emit *e = k->e;
	uint32_t bytes = k->half->at_rows + k->half->row * k->block_rows - k->at_rows;
	Loop l = loop_begin(e, k->tid, imm((uint32_t)ceil_div(bytes, 16)), k->s->threads);

	ins(e, "st.shared.v4.u32 [$+#], {0, 0, 0, 0}", mad(e, l.i, 16, k->memory), k->at_rows);
	loop_end(e, &l);
	barrier_block(e);
}

static void phase_rows(Kernel *k, uint32_t first, uint32_t end, bool scores, bool codes)
{
	Emit *e = k->e;

	rows_clear(k);
	half_inputs(k);
	targets_stage(k);
	rows_move(k, first, end, false);
	ins(e, "cp.async.wait_all");
	barrier_block(e);
	half_steps(k, first, end);
	rows_move(k, first, end, true);
	if (k->s->test && end == k->s->list->gradient)
		outputs_store(k);
	uint32_t none = if_begin(e, less(e, k->tid, imm(k->workers)));
	if (scores)
		scores_emit(k, codes, 0, k->workers);
	if_end(e, none);
	barrier_block(e);
}

/* As many rows at a time as there is room for. */
void half_phase(Kernel *k, uint32_t first, uint32_t end, bool scores, bool codes)
{
	Emit *e = k->e;
	uint32_t most = (uint32_t)ceil_div(k->s->batch_rows, k->s->team_blocks);

	if (most <= k->block_rows) {
		phase_rows(k, first, end, scores, codes);
		return;
	}
	Reg row0 = op1(e, REG_R, "mov.u32", k->row0), rows = op1(e, REG_R, "mov.u32", k->my_rows);
	Reg past = add(e, row0, rows);
	Loop l = loop_begin(e, row0, past, k->block_rows);
	ins(e, "mov.u32 $, $", k->row0, l.i);
	ins(e, "min.u32 $, $, #", k->my_rows, op2(e, REG_R, "sub.u32", past, l.i), k->block_rows);
	phase_rows(k, first, end, scores, codes);
	loop_end(e, &l);
	ins(e, "mov.u32 $, $", k->row0, row0);
	ins(e, "mov.u32 $, $", k->my_rows, rows);
}

/* Columns that are always 1, of rows in global memory. */
void half_ones(Kernel *k)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;

	for (uint32_t i = 0; i < s->one_columns; i++) {
		Reg first = mad(e, k->block, s->threads, k->tid), one = reg(e, REG_H);
		Loop l = loop_begin(e, first, imm(s->batch_rows), s->team_blocks * s->threads);
		ins(e, "mov.u16 $, 0x3f80", one);
		ins(e, "st.global.u16 [$], $", place(e, half_buffer(k, BUF_ACT, s->ones[i]), l.i, s->job->cols * 2), one);
		loop_end(e, &l);
	}
}
