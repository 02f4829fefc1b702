/* SPDX-License-Identifier: MIT */
/* bf16: inputs that are all 0 or 1. In: a bit for each input of a row. Out: the fragments that tensor cores multiply,
 * those of rows and of 0 and 1 in bf16, made in registers. Must hold: bits of a word are where bit_place puts them.
 *
 * A row takes 32 bytes where 203 inputs in bf16 take 416, and fragments take no bandwidth of shared memory. Gradients
 * need words of an input, a bit for each of 32 rows: bits_turn makes them, squares of 32 x 32 bits at a time. */
#include <stdlib.h>
#include "half_emit.h"

enum { SQUARE = 32, ONE = 0x3f80, SPARE = 256 }; /* ONE: 1 in bf16; SPARE: bytes that tiles read past the last input */

/* ---- plan ---- */

const InputColumns *bits_of(const Kernel *k, uint32_t buf, uint32_t col)
{
	return k->half->bits ? input_of(k, buf, col) : NULL;
}

/* All that steps read of inputs begins with the first column of a part. */
void bits_plan(Kernel *k)
{
	const EmitSource *s = k->s;

	k->half->bits = false;
	k->half->bits_row = k->half->transposed_row = 0;
	if (!s->job->data.bits_row || s->tiled)
		return;
	for (uint32_t i = 0; i < s->list->steps; i++) {
		const DeviceStep *d = &s->step[i];
		Access a[8];
		uint32_t n = d->kind == STEP_ONE || d->kind == STEP_LOAD ? 0 : step_access(k, d, a);
		for (uint32_t x = 0; x < n; x++) {
			const InputColumns *in = input_of(k, a[x].buf, a[x].col);
			bool operand = d->kind == STEP_GRADIENT || (d->kind == STEP_PRODUCT && !x);
			if (in && (!operand || a[x].col != in->col))
				return;
		}
	}
	k->half->bits = true;
	k->half->bits_row = (s->job->data.bits_row * 4 / 16 | 1) * 16;
	k->half->transposed_row = s->job->data.bits_row * SQUARE * 4;
}

uint64_t bits_bytes(const Kernel *k, uint32_t rows) { return (uint64_t)k->half->bits_row * rows; }

uint64_t transposed_bytes(const Kernel *k, uint32_t rows)
{
	return k->half->bits && !k->s->test ? ceil_div(rows, SQUARE) * k->half->transposed_row + SPARE : 0;
}

/* ---- rows ---- */

/* Of the chunk, under way. */
void bits_stage(Kernel *k)
{
	Emit *e = k->e;
	const Half *h = k->half;
	uint32_t each = k->s->job->data.bits_row / 4;

	remark(e, "inputs, a bit each");
	Loop l = loop_begin(e, k->tid, mul(e, k->my_rows, each), k->s->threads);
	Reg row = divide(e, l.i, each), part = modulo(e, l.i, each, row), number = reg(e, REG_R);
	case_load(k, number, add(e, k->row0, row), less(e, row, k->my_rows));
	ins(e, "cp.async.cg.shared.global [$+#], [$], 16", mad(e, row, h->bits_row, mad(e, part, 16, k->memory)),
	    h->at_bits, place(e, place(e, POINTER(k, data.bits), number, each * 16), part, 16));
	loop_end(e, &l);
}

/* Where bit `place` of a word is: column of 32. */
static Reg place_column(Emit *e, Reg place)
{
	Reg pair = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", place, imm(1)), imm(6));
	Reg eight = op2(e, REG_R, "shl.b32", op2(e, REG_R, "and.b32", place, imm(3)), imm(3));

	return add(e, add(e, pair, eight), op2(e, REG_R, "shr.u32", place, imm(4)));
}

/* Bit j of lane i becomes bit i of lane j. */
static Reg square_turn(Kernel *k, Reg x)
{
	static const uint32_t low[] = { 0x0000ffff, 0x00ff00ff, 0x0f0f0f0f, 0x33333333, 0x55555555 };
	Emit *e = k->e;

	for (uint32_t d = 16, i = 0; d; d /= 2, i++) {
		Reg upper = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", k->half->lane, imm(d)), imm(0));
		Reg kept = op3(e, REG_R, "selp.u32", imm(~low[i]), imm(low[i]), upper), y = lanes_xor(e, x, d);
		y = op3(e, REG_R, "shf.l.wrap.b32", y, y, op3(e, REG_R, "selp.u32", imm(32 - d), imm(d), upper));
		y = op2(e, REG_R, "and.b32", y, op1(e, REG_R, "not.b32", kept));
		x = op2(e, REG_R, "or.b32", op2(e, REG_R, "and.b32", x, kept), y);
	}
	return x;
}

/* Words of inputs from words of rows, a square for each warp from `first` on. */
void bits_turn(Kernel *k, uint32_t first)
{
	Emit *e = k->e;
	const Half *h = k->half;
	uint32_t words = k->s->job->data.bits_row, squares = (uint32_t)ceil_div(k->block_rows, SQUARE) * words;

	if (!h->bits || k->s->test)
		return;
	remark(e, "words of inputs");
	uint32_t there = 0;
	if (h->once) {
		there = unless_begin(e, op2(e, REG_P, "setp.eq.u64", h->staged, h->transposed));
		ins(e, "mov.u64 $, $", h->transposed, h->staged);
	}
	Reg col = place_column(e, h->lane);
	Loop l = loop_begin(e, add(e, h->warp, imm(-first)), imm(squares), k->s->threads / 32 - first);
	Reg down = divide(e, l.i, words), word = modulo(e, l.i, words, down);
	Reg row = op2(e, REG_R, "min.u32", mad(e, down, SQUARE, col), imm(k->block_rows - 1));
	Reg x = load(e, REG_R, "ld.shared.u32", mad(e, row, h->bits_row, mad(e, word, 4, cases_memory(k))), h->at_bits);
	ins(e, "st.shared.u32 [$+#], $", mad(e, l.i, SQUARE * 4, mad(e, col, 4, k->memory)), h->at_transposed,
	    square_turn(k, x));
	loop_end(e, &l);
	if (h->once)
		if_end(e, there);
}

/* ---- fragments ---- */

static Reg pair_of_bits(Emit *e, Reg x, uint32_t pair)
{
	Reg both = op2(e, REG_R, "and.b32", x, imm(0x00010001u << pair));

	return op2(e, REG_R, "mul.lo.u32", both, imm(ONE >> pair));
}

/* 32 of what is summed, for two steps, of the `count` tiles of 8 columns or rows that the lane's words are of. */
void bits_fragments(Kernel *k, const Reg *word, uint32_t count, Reg f[2][4])
{
	for (uint32_t r = 0; r < count; r++) {
		Reg x = op2(k->e, REG_R, "shr.u32", word[r], k->half->bits_shift);
		for (uint32_t pair = 0; pair < 4; pair++)
			f[pair / 2][pair % 2 * count + r] = pair_of_bits(k->e, x, pair);
	}
}

/* Address of the lane's words: of row `row` of a product. */
Reg bits_row_at(Kernel *k, const InputColumns *in, Reg row)
{
	const Half *h = k->half;

	return add(k->e, mad(k->e, add(k->e, row, h->row_of_lane), h->bits_row, cases_memory(k)),
	           imm(h->at_bits + 4 * in->word));
}

/* Of input `input` of the part, for the first rows. */
Reg bits_input_at(Kernel *k, const InputColumns *in, Reg input)
{
	const Half *h = k->half;

	return add(k->e, mad(k->e, add(k->e, input, h->row_of_lane), 4, k->memory), imm(h->at_transposed + 128 * in->word));
}
