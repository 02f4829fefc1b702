/* SPDX-License-Identifier: MIT */
/* bf16: inputs that are all 0 or 1, one bit each. In: words of rows, a bit for each of 32 inputs where bit_place puts
 * it. Out: operand fragments of 0 and 1 in bf16, made in registers.
 *
 * A row takes 32 bytes where 203 inputs in bf16 take 416, and fragments take no bandwidth of shared memory. Products
 * need words of rows. Gradients need the bits of one input in 32 rows: bits_transpose makes such words, by squares of
 * 32 x 32 bits; or a lane selects its bits from words of rows (bits_rows). */
#include "bf16_emit.h"

/* ONE: 1 in bf16; SPARE: bytes that tiles read past the last input; WORD: inputs of a word. */
enum { SQUARE = 32, ONE = 0x3f80, SPARE = 256, WORD = 32 };

const InputColumns *bit_columns(const Kernel *k, uint32_t buf, uint32_t col)
{
	return k->bf16->bits ? input_of(k, buf, col) : NULL;
}

/* Steps must read inputs as operands only, and from the first column of a part on. */
void bits_plan(Kernel *k)
{
	const EmitSource *s = k->s;

	k->bf16->bits = false;
	k->bf16->bits_row = k->bf16->transposed_row = 0;
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
	k->bf16->bits = true;
	k->bf16->bits_row = s->job->data.bits_row * 4;
	if (!k->bf16->warpgroups) /* against bank conflicts; warpgroups have too few loads to be worth the memory */
		k->bf16->bits_row = (k->bf16->bits_row / 16 | 1) * 16;
	k->bf16->transposed_row = s->job->data.bits_row * SQUARE * 4;
}

/* With additional side warps, gradients read words of rows. */
bool has_transposed_bits(const Kernel *k) { return k->bf16->bits && !k->s->test && !k->s->adds_side_warps; }

uint64_t bits_bytes(const Kernel *k, uint32_t rows) { return (uint64_t)k->bf16->bits_row * rows; }

uint64_t transposed_bytes(const Kernel *k, uint32_t rows)
{
	return has_transposed_bits(k) ? ceil_div(rows, SQUARE) * k->bf16->transposed_row + SPARE : 0;
}

void bits_stage(Kernel *k)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	uint32_t each = k->s->job->data.bits_row / 4;

	remark(e, "inputs, a bit each");
	Loop l = loop_begin(e, k->tid, mul(e, k->my_rows, each), k->s->threads);
	Reg row = divide(e, l.i, each), part = modulo(e, l.i, each, row), number = reg(e, REG_R);
	case_load(k, number, add(e, k->row0, row), less(e, row, k->my_rows));
	ins(e, "cp.async.cg.shared.global [$+#], [$], 16", mad(e, row, h->bits_row, mad(e, part, 16, k->memory)),
	    h->at_bits, place(e, place(e, POINTER(k, data.bits), number, each * 16), part, 16));
	loop_end(e, &l);
}

Reg bit_column(Emit *e, Reg place)
{
	Reg pair = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", place, imm(1)), imm(6));
	Reg eight = op2(e, REG_R, "shl.b32", op2(e, REG_R, "and.b32", place, imm(3)), imm(3));

	return add(e, add(e, pair, eight), op2(e, REG_R, "shr.u32", place, imm(4)));
}

void squares_transpose(Kernel *k, Reg *x, uint32_t count)
{
	static const uint32_t low[] = { 0x0000ffff, 0x00ff00ff, 0x0f0f0f0f, 0x33333333, 0x55555555 };
	Emit *e = k->e;

	for (uint32_t d = 16, i = 0; d; d /= 2, i++) {
		Reg upper = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", k->bf16->lane, imm(d)), imm(0));
		Reg kept = op3(e, REG_R, "selp.u32", imm(~low[i]), imm(low[i]), upper);
		Reg shift = op3(e, REG_R, "selp.u32", imm(32 - d), imm(d), upper), changed = op1(e, REG_R, "not.b32", kept);
		Reg y[SQUARES_AT_ONCE];
		for (uint32_t n = 0; n < count; n++)
			y[n] = lanes_xor(e, x[n], d);
		for (uint32_t n = 0; n < count; n++) {
			Reg z = op2(e, REG_R, "and.b32", op3(e, REG_R, "shf.l.wrap.b32", y[n], y[n], shift), changed);
			x[n] = op2(e, REG_R, "or.b32", op2(e, REG_R, "and.b32", x[n], kept), z);
		}
	}
}

/* Instructions of one square depend on each other; those of several overlap. */
void bits_transpose(Kernel *k, uint32_t first, uint32_t most)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	uint32_t words = k->s->job->data.bits_row, squares = (uint32_t)ceil_div(k->block_rows, SQUARE) * words;
	uint32_t warps = k->s->threads / 32 - first, each = min_u32(most, max_u32(1, squares / warps));

	if (!has_transposed_bits(k))
		return;
	remark(e, "words of inputs");
	uint32_t done = 0;
	if (h->single_slice) {
		done = unless_begin(e, op2(e, REG_P, "setp.eq.u64", h->staged_leaf, h->transposed_leaf));
		ins(e, "mov.u64 $, $", h->transposed_leaf, h->staged_leaf);
	}
	Reg col = bit_column(e, h->lane), x[SQUARES_AT_ONCE], number[SQUARES_AT_ONCE];
	Loop l = loop_begin(e, add(e, h->warp, imm(-first)), imm(squares), warps * each);
	for (uint32_t i = 0; i < each; i++) {
		number[i] = i ? add(e, l.i, imm(i * warps)) : l.i;
		Reg at = i ? op2(e, REG_R, "min.u32", number[i], imm(squares - 1)) : number[i];
		Reg down = divide(e, at, words), word = modulo(e, at, words, down);
		Reg row = op2(e, REG_R, "min.u32", mad(e, down, SQUARE, col), imm(k->block_rows - 1));
		x[i] = load(e, REG_R, "ld.shared.u32", mad(e, row, h->bits_row, mad(e, word, 4, cases_memory(k))), h->at_bits);
	}
	for (uint32_t i = 0; i < each; i++)
		squares_transpose(k, x + i, 1);
	for (uint32_t i = 0; i < each; i++) {
		uint32_t past = i ? if_begin(e, less(e, number[i], imm(squares))) : 0;
		ins(e, "st.shared.u32 [$+#], $", mad(e, number[i], SQUARE * 4, mad(e, col, 4, k->memory)), h->at_transposed,
		    x[i]);
		if (i)
			if_end(e, past);
	}
	loop_end(e, &l);
	if (h->single_slice)
		if_end(e, done);
}

static Reg pair_of_bits(Emit *e, Reg x, uint32_t pair)
{
	Reg both = op2(e, REG_R, "and.b32", x, imm(0x00010001u << pair));

	return op2(e, REG_R, "mul.lo.u32", both, imm(ONE >> pair));
}

void bits_fragments(Kernel *k, const Reg *word, uint32_t count, Reg f[2][4])
{
	for (uint32_t r = 0; r < count; r++) {
		Reg x = op2(k->e, REG_R, "shr.u32", word[r], k->bf16->bits_shift);
		for (uint32_t pair = 0; pair < 4; pair++)
			f[pair / 2][pair % 2 * count + r] = pair_of_bits(k->e, x, pair);
	}
}

Reg bits_row_at(Kernel *k, const InputColumns *in, Reg row)
{
	const Bf16 *h = k->bf16;

	return add(k->e, mad(k->e, add(k->e, row, h->row_of_lane), h->bits_row, cases_memory(k)),
	           imm(h->at_bits + 4 * in->word));
}

Reg bits_input_at(Kernel *k, const InputColumns *in, Reg input)
{
	const Bf16 *h = k->bf16;

	return add(k->e, mad(k->e, add(k->e, input, h->row_of_lane), 4, k->memory), imm(h->at_transposed + 128 * in->word));
}

BitsInputs bits_inputs(Kernel *k, const InputColumns *in, Reg input)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	Reg odd = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", h->row_of_lane, imm(1)), imm(0));
	Reg word = op2(e, REG_R, "shr.u32", input, imm(5)), tile = op2(e, REG_R, "and.b32", divide(e, input, 8), imm(3));
	BitsInputs x = { .half = op3(e, REG_R, "selp.u32", imm(0x7632), imm(0x5410), odd), .at = reg(e, REG_R) };

	x.shift = mad(e, op2(e, REG_R, "shr.u32", h->row_of_lane, imm(1)), 4, tile); /* bit_place */
	ins(e, "add.u32 $, $, #", x.at, mad(e, h->col_of_lane, h->bits_row, mad(e, word, 4, cases_memory(k))),
	    h->at_bits + 4 * in->word);
	return x;
}

void bits_rows(Kernel *k, const BitsInputs *x, uint32_t row, uint32_t first, uint32_t count, Reg (*f)[2])
{
	Emit *e = k->e;

	for (uint32_t t = 0, end; t < count; t = end)
		for (uint32_t r = 0; r < 2; r++) {
			uint32_t word = (first + t) / (WORD / 8);
			Reg two[2];
			for (uint32_t i = 0; i < 2; i++)
				two[i] = load(e, REG_R, "ld.shared.u32", x->at, (row + 8 * r + i) * k->bf16->bits_row + 4 * word);
			Reg both = op2(e, REG_R, "shr.u32", op3(e, REG_R, "prmt.b32", two[0], two[1], x->half), x->shift);
			for (end = t; end < count && (first + end) / (WORD / 8) == word; end++)
				f[end][r] = pair_of_bits(e, both, (first + end) % (WORD / 8));
		}
}
