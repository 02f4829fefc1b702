/* SPDX-License-Identifier: MIT */
/* The gradient of a leaf. In: activations and deltas of all its rows. Out: sums of weight changes in global memory, or
 * the update itself. Blocks of a team have ranges of each matrix. Must hold: rows are summed in order.
 *
 * Columns that a block needs come to shared memory first, as [row][quads of a part]; where a team is one block, its
 * rows are there already. Rows past the last are 0 and lists end with a row of -0: adding these changes nothing.
 * Weights from the true unit are sums of deltas: totals, a thread for each column.
 * Inputs are taken by rank: those that most cases have come first, so that adjacent threads have lists of a length. */
#include <assert.h>
#include <string.h>

#include "emit.h"

/* ---- of all workers ---- */

void workers_barrier(Kernel *k) { ins(k->e, "bar.sync #, #", k->meets, k->workers); }

/* Of a team of one block: rows past the last, and the row of -0. */
static void local_pads(Kernel *k)
{
	Emit *e = k->e;

	for (uint32_t i = 0, q = 0; i < k->exchanges; q + 1 < k->exchanged[i].quads ? q++ : (i++, q = 0)) {
		uint32_t to = k->at_rows + column_at(k, k->exchanged[i].buf, k->exchanged[i].col + 4 * q);
		Reg row = add(e, k->rows, k->tid);
		uint32_t end = if_begin(e, less(e, row, imm(k->piece)));
		uint32_t some = if_begin(e, less(e, k->tid, imm(ROWS_TURN)));
		ins(e, "st.shared.v4.f32 [$+#], {0f00000000, 0f00000000, 0f00000000, 0f00000000}",
		    mad(e, row, k->row, k->memory), to);
		if_end(e, some);
		if_end(e, end);
		uint32_t last = if_begin(e, same(e, k->tid, imm(ROWS_TURN)));
		ins(e, "st.shared.v4.f32 [$+#], {0f80000000, 0f80000000, 0f80000000, 0f80000000}", k->memory,
		    to + k->csc_pad * k->row);
		if_end(e, last);
	}
}

/* ---- sums ---- */

static void and_also(Emit *e, GradientPart *p, Reg what) { p->is_mine = op2(e, REG_P, "and.pred", p->is_mine, what); }

void part_ranked(Kernel *k, const DeviceStep *s, GradientPart *p, Reg rank)
{
	Emit *e = k->e;
	Reg is_rank = less(e, rank, imm(k->s->job->data.inputs)), at = op3(e, REG_R, "selp.u32", rank, imm(0), is_rank);

	p->input = load(e, REG_R, "ld.shared.u32", mad(e, at, 4, k->memory), k->at_rank);
	p->i = op2(e, REG_R, "sub.u32", p->input, imm(s->low));
	and_also(e, p, is_rank);
	and_also(e, p, less(e, p->i, imm(s->depth)));
}

static uint32_t totals_each(const GradientCut *c)
{
	return (uint32_t)ceil_div(c->totals, max_u32(c->totals_threads, 1));
}

/* Of the first range of a matrix's other side. */
static void totals_begin(Kernel *k, const DeviceStep *s, const GradientCut *c, GradientPart *p)
{
	Emit *e = k->e;
	Range r = range_of(k, c);
	bool dense = s->kind == STEP_GRADIENT;
	Reg thread = op2(e, REG_R, "sub.u32", k->tid, imm(c->totals_first)), first = mul(e, r.quad, 4);
	Reg is = op2(e, REG_P, "and.pred", r.is_mine, same(e, dense ? r.across : r.down, imm(0)));
	uint32_t at = dense ? c->at_a : c->at_b;

	is = op2(e, REG_P, "and.pred", is, less(e, thread, imm(c->totals_threads)));
	if (k->local)
		at = k->at_rows + (dense ? column_at(k, s->a, s->a_col) : column_at(k, BUF_DELTA, s->c_col));
	p->total_at = add(e, mad(e, k->local ? add(e, thread, dense ? r.row : first) : thread, 4, k->memory), imm(at));
	assert(totals_each(c) <= MOST_TOTALS);
	for (uint32_t i = 0; i < totals_each(c); i++) {
		Reg n = add(e, thread, imm(i * c->totals_threads));
		p->total_row[i] = dense ? add(e, r.row, n) : imm(s->depth);
		p->total_col[i] = dense ? imm(s->cols - 1) : add(e, first, n);
		Reg past = less(e, dense ? p->total_row[i] : p->total_col[i], imm(dense ? s->depth : s->cols));
		p->is_total[i] = op2(e, REG_P, "and.pred", is, op2(e, REG_P, "and.pred", past, less(e, n, imm(c->totals))));
		p->total[i] = op1(e, REG_F, "mov.f32", imm_f(0));
	}
}

static void part_begin(Kernel *k, const DeviceStep *s, const GradientCut *c, uint32_t round, GradientPart *p)
{
	Emit *e = k->e;
	Range r = range_of(k, c);
	Reg thread = op2(e, REG_R, "sub.u32", k->tid, imm(c->first));   /* a large number if it is before the first */
	Reg number = add(e, thread, imm(round * c->threads)), group, q; /* q: in the range */
	uint32_t b = s->kind == STEP_GRADIENT ? s->c : BUF_DELTA, adjacent = high_first(c);

	Reg tile = c->run ? mad(e, k->member, c->run, number) : number;
	if (c->blocks) {
		uint32_t down = (uint32_t)ceil_div(cut_groups(c), 2), across = (uint32_t)ceil_div(cut_columns(c), 2);
		Reg block = op2(e, REG_R, "shr.u32", tile, imm(2)), odd = op2(e, REG_R, "and.b32", tile, imm(1));
		Reg low = op2(e, REG_R, "shr.u32", op2(e, REG_R, "and.b32", tile, imm(2)), imm(1));
		Reg outer = divide(e, block, c->run ? down : across), inner = modulo(e, block, c->run ? down : across, outer);
		if (c->run) { /* down and up again: blocks of a warp then meet in no bank */
			Reg back = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", outer, imm(1)), imm(0));
			inner = op3(e, REG_R, "selp.u32", op2(e, REG_R, "sub.u32", imm(down - 1), inner), inner, back);
		}
		group = mad(e, c->run ? inner : outer, 2, low);
		q = mad(e, c->run ? outer : inner, 2, odd);
		if (c->run)
			q = op2(e, REG_R, "sub.u32", q, r.quad);
	} else {
		group = divide(e, tile, c->panel);
		q = modulo(e, tile, c->panel, group);
	}
	Reg row = mul(e, group, adjacent), other = mad(e, group, c->high - adjacent, imm(cut_groups(c) * adjacent));

	p->is_mine = op2(e, REG_P, "and.pred", r.is_mine, less(e, thread, imm(c->threads)));
	and_also(e, p, less(e, number, imm(cut_tasks(c))));
	if (c->blocks && cut_groups(c) % 2)
		and_also(e, p, less(e, group, imm(cut_groups(c))));
	uint32_t in_quad = 4 / c->wide;
	if (!c->run && (c->blocks ? cut_columns(c) % 2 : c->panel > cut_columns(c)))
		and_also(e, p, less(e, q, imm(cut_columns(c))));
	p->q = mad(e, r.quad, in_quad, q);
	and_also(e, p, less(e, p->q, imm(matrix_quads(k, s) * in_quad)));
	if (s->kind == STEP_GRADIENT_INDEX) {
		part_ranked(k, s, p, mad(e, row, c->down, r.down));
		p->word = list_word(k, p->input);
	} else {
		p->i = add(e, r.row, row);
		p->other_i = add(e, r.row, other);
		and_also(e, p, less(e, p->i, imm(s->depth)));
	}
	for (uint32_t h = 0; h < c->high; h++)
		for (uint32_t n = 0; n < c->wide; n++)
			p->sum[h][n] = op1(e, REG_F, "mov.f32", imm_f(0));
	p->a_row = p->b_row = k->row;
	if (k->local || c->inlined) {
		p->b = add(e, mad(e, p->q, 16, k->memory), imm(k->at_rows + column_at(k, b, s->c_col)));
		p->a = s->kind == STEP_GRADIENT
		           ? add(e, mad(e, p->i, 4, k->memory), imm(k->at_rows + column_at(k, s->a, s->a_col)))
		           : p->b;
	} else {
		p->a_row = a_quads(s, c) * 16;
		p->b_row = c->quads * 16;
		p->a = add(e, mad(e, row, 4, k->memory), imm(c->at_a));
		p->other_a = add(e, mad(e, other, 4, k->memory), imm(c->at_a));
		p->b = add(e, mad(e, q, c->wide * 4, k->memory), imm(c->at_b));
	}
	if (c->totals && round == 0)
		totals_begin(k, s, c, p);
}

/* ---- dense ---- */

/* What the rows of some turn are loaded to. */
typedef struct RowPair {
	Reg a[GRADIENT_HIGH], b[4];
} RowPair;

static RowPair pair_new(Emit *e)
{
	RowPair p;

	for (uint32_t i = 0; i < GRADIENT_HIGH; i++)
		p.a[i] = reg(e, REG_F);
	for (uint32_t i = 0; i < 4; i++)
		p.b[i] = reg(e, REG_F);
	return p;
}

/* Adjacent floats: a power of two. in_order: the assembler keeps such loads in the order of the text. */
void floats_load(Emit *e, bool in_order, const Reg *to, uint32_t count, Reg at, uint32_t offset)
{
	for (uint32_t i = 0; i + 4 <= count; i += 4)
		load_quad_to(e, in_order ? "volatile.shared" : "shared", to + i, at, offset + 4 * i);
	if (count == 2)
		ins(e, in_order ? "ld.volatile.shared.v2.f32 {$, $}, [$+#]" : "ld.shared.v2.f32 {$, $}, [$+#]", to[0], to[1],
		    at, offset);
	if (count == 1)
		ins(e, in_order ? "ld.volatile.shared.f32 $, [$+#]" : "ld.shared.f32 $, [$+#]", to[0], at, offset);
}

/* Where the operands of a thread are, in the first row of a turn. */
typedef struct RowPlace {
	Reg a, other, b;
	bool in_order;
} RowPlace;

static void pair_load(Kernel *k, const GradientCut *c, const GradientPart *part, const RowPlace *at, uint32_t m,
                      const RowPair *p)
{
	Emit *e = k->e;
	uint32_t adjacent = high_first(c);

	floats_load(e, at->in_order, p->b, c->wide, at->b, m * part->b_row);
	floats_load(e, at->in_order, p->a, adjacent, at->a, m * part->a_row);
	floats_load(e, at->in_order, p->a + adjacent, c->high - adjacent, at->other, m * part->a_row);
}

static void pair_add(Emit *e, const GradientCut *c, const RowPair *r, const GradientPart *p)
{
	for (uint32_t h = 0; h < c->high; h++)
		for (uint32_t i = 0; i < c->wide; i++) { /* back and forth, as rows.c does */
			uint32_t n = h % 2 ? c->wide - 1 - i : i;
			ins(e, "fma.rn.ftz.f32 $, $, $, $", p->sum[h][n], r->a[h], r->b[n], p->sum[h][n]);
		}
}

/* Rows of a turn of inlined gradients: the assembler waits at its end for what was loaded. Chunks have full turns. */
uint32_t inlined_turn(const Kernel *k) { return k->block_rows % BULK_TURN ? ROWS_TURN : BULK_TURN; }

/* Rows of a piece, some in a turn. Where others use the scheduler meanwhile, they are loaded and then added: fewest
 * registers, and fewest instructions that wait for a bank of them. Else some are loaded while those before are
 * added; in long turns where the device copies pieces, as only multiply-adds are left to wait for loads. These loads
 * stay in order: one warp of a scheduler adds, and the assembler then finds registers for sums and operands that meet
 * in fewer banks. */
static void dense_rows(Kernel *k, const GradientCut *c, const GradientPart *p, Reg rows, Reg offset)
{
	Emit *e = k->e;
	enum { MOST = 8 };
	bool plain = c->high >= 4 && !c->inlined && !k->numbers, two = high_first(c) < c->high;
	uint32_t some = plain ? MOST : c->high >= 8 ? 2 : c->high >= 4 ? 4 : MOST, turn = plain ? MOST : ROWS_TURN;
	if (plain && in_ring(k)) {
		plain = false;
		some = c->high >= 8 ? 2 : 4;
		turn = BULK_TURN;
	}
	if (c->inlined)
		turn = inlined_turn(k);
	RowPair pair[2][MOST];
	RowPlace at = { reg(e, REG_R), reg(e, REG_R), reg(e, REG_R), turn == BULK_TURN && !c->inlined };

	ins(e, "add.u32 $, $, $", at.a, p->a, offset);
	ins(e, "add.u32 $, $, $", at.b, p->b, offset);
	if (two)
		ins(e, "add.u32 $, $, $", at.other, p->other_a, offset);
	for (uint32_t m = 0; m < (plain ? 1 : 2) * some; m++)
		pair[m / some][m % some] = pair_new(e);
	for (uint32_t m = 0; m < some && !plain; m++)
		pair_load(k, c, p, &at, m, &pair[0][m]);
	Loop l = loop_begin(e, imm(0), rows, turn);
	for (uint32_t part = 0; part < turn / some; part++) { /* an even number, if it is not plain */
		uint32_t next = plain ? 0 : part + 1, to = plain ? 0 : (part + 1) % 2;
		for (uint32_t m = 0; m < some; m++)
			pair_load(k, c, p, &at, next * some + m, &pair[to][m]);
		for (uint32_t m = 0; m < some; m++)
			pair_add(e, c, &pair[part % 2][m], p);
	}
	ins(e, "add.u32 $, $, #", at.a, at.a, turn * p->a_row);
	ins(e, "add.u32 $, $, #", at.b, at.b, turn * p->b_row);
	if (two)
		ins(e, "add.u32 $, $, #", at.other, at.other, turn * p->a_row);
	loop_end(e, &l);
}

/* Columns of deltas, added up as dense_rows adds products. */
static void total_rows(Kernel *k, const DeviceStep *s, const GradientCut *c, const GradientPart *p, uint32_t n,
                       Reg rows, Reg offset)
{
	Emit *e = k->e;
	uint32_t row = s->kind == STEP_GRADIENT ? p->a_row : p->b_row, first = n * c->totals_threads * 4;
	Reg at = add(e, add(e, p->total_at, offset), imm(first)), x[2][READ_AHEAD], from = reg(e, REG_R);

	ins(e, "mov.u32 $, $", from, at);
	for (uint32_t m = 0; m < 2 * READ_AHEAD; m++)
		x[m / READ_AHEAD][m % READ_AHEAD] = reg(e, REG_F);
	for (uint32_t m = 0; m < READ_AHEAD; m++)
		ins(e, "ld.shared.f32 $, [$+#]", x[0][m], from, m * row);
	Loop l = loop_begin(e, imm(0), rows, ROWS_TURN);
	for (uint32_t part = 0; part < ROWS_TURN / READ_AHEAD; part++) {
		for (uint32_t m = 0; m < READ_AHEAD; m++)
			ins(e, "ld.shared.f32 $, [$+#]", x[(part + 1) % 2][m], from, ((part + 1) * READ_AHEAD + m) * row);
		for (uint32_t m = 0; m < READ_AHEAD; m++)
			ins(e, "add.rn.ftz.f32 $, $, $", p->total[n], p->total[n], x[part % 2][m]);
	}
	ins(e, "add.u32 $, $, #", from, from, ROWS_TURN * row);
	loop_end(e, &l);
}

static void totals_rows(Kernel *k, const DeviceStep *s, const GradientCut *c, const GradientPart *p, Reg rows,
                        Reg offset)
{
	for (uint32_t n = 0; n < totals_each(c); n++) {
		uint32_t end = if_begin(k->e, p->is_total[n]);
		total_rows(k, s, c, p, n, rows, offset);
		if_end(k->e, end);
	}
}

static Reg leaf_sums(Kernel *k, const DeviceStep *s)
{
	Emit *e = k->e;
	Reg leaf = op2(e, REG_D, "mul.wide.u32", k->leaf_number, imm((uint32_t)k->s->job->floats * 4));

	return place_at(e, op2(e, REG_D, "add.u64", sums_at(k), leaf), s->at * 4);
}

static void totals_end(Kernel *k, const DeviceStep *s, const GradientCut *c, const GradientPart *p)
{
	Emit *e = k->e;

	for (uint32_t n = 0; n < totals_each(c); n++) {
		Reg row = add(e, p->total_row[n], imm(0)), col = add(e, p->total_col[n], imm(0));
		uint32_t end = if_begin(e, p->is_total[n]);
		Reg at = row.type == REG_INT ? add(e, col, imm(row.n * s->sum_row)) : mad(e, row, s->sum_row, col);
		if (k->numbers)
			rule_apply(k, k->numbers, &k->s->panel[s->panel], row, col, at, p->total[n]);
		else
			ins(e, k->posts ? "st.relaxed.gpu.global.f32 [$], $" : "st.global.f32 [$], $",
			    place(e, leaf_sums(k, s), at, 4), p->total[n]);
		if_end(e, end);
	}
}

/* ---- results ---- */

bool rule_in_quads(const DeviceStep *s, const DevicePanel *p)
{
	return p->row == s->sum_row && p->row % 4 == 0 && p->at % 4 == 0;
}

/* Of an address that is a multiple of more. */
static Reg zero_bits(Kernel *k)
{
	return op2(k->e, REG_R, "and.b32", op1(k->e, REG_R, "cvt.u32.u64", POINTER(k, sum)), imm(3));
}

/* values: NULL, or registers with weights and state. */
static void part_end(Kernel *k, const DeviceStep *s, const GradientCut *c, const GradientPart *p,
                     const RuleQuads *values)
{
	Emit *e = k->e;
	const DevicePanel *panel = &k->s->panel[s->panel];
	uint32_t end = if_begin(e, p->is_mine);
	assert((c->wide == 4 && high_first(c) == c->high) || !k->numbers);
	bool quads = k->numbers && rule_in_quads(s, panel);
	/* 0, which the assembler cannot know: sums and what is stored of them are other registers. Four that are stored
	 * together have adjacent numbers, as those loaded together: sums would meet the operands they are added to in one
	 * bank. */
	Reg none = k->numbers ? imm(0) : zero_bits(k);

	if (quads) {
		RuleQuads *q = NEW(&k->s->cx->scratch, 1, RuleQuads);
		*q = values ? *values : (RuleQuads){ .row = p->i, .quad = p->q, .rows = c->high };
		memcpy(q->g, p->sum, c->high * sizeof *q->g);
		rule_quads(k, k->numbers, panel, s->depth, q);
	}
	for (uint32_t h = 0; h < c->high && !quads; h++) {
		uint32_t adjacent = high_first(c);
		Reg i = h < adjacent ? add(e, p->i, imm(h)) : add(e, p->other_i, imm(h - adjacent)), n = mul(e, p->q, c->wide);
		uint32_t past = if_begin(e, less(e, i, imm(s->depth)));
		Reg at = mad(e, i, s->sum_row, n);
		if (k->numbers && !quads) {
			for (uint32_t x = 0; x < 4; x++)
				rule_apply(k, k->numbers, &k->s->panel[s->panel], i, add(e, n, imm(x)), add(e, at, imm(x)),
				           p->sum[h][x]);
		} else {
			Reg to = leaf_sums(k, s), v[4];
			for (uint32_t x = 0; x < c->wide; x++)
				v[x] = op2(e, REG_R, "or.b32", op1(e, REG_R, "mov.b32", p->sum[h][x]), none);
			if (c->wide == 2)
				ins(e, k->posts ? "st.relaxed.gpu.global.v2.u32 [$], {$, $}" : "st.global.v2.u32 [$], {$, $}",
				    place(e, to, at, 4), v[0], v[1]);
			else
				ins(e,
				    k->posts ? "st.relaxed.gpu.global.v4.u32 [$], {$, $, $, $}" : "st.global.v4.u32 [$], {$, $, $, $}",
				    place(e, to, at, 4), v[0], v[1], v[2], v[3]);
		}
		if_end(e, past);
	}
	if_end(e, end);
}

static void gradient_rows(Kernel *k, const DeviceStep *s, const GradientCut *c, const GradientPart *p, Reg rows,
                          Reg offset)
{
	uint32_t end = if_begin(k->e, p->is_mine);

	if (s->kind == STEP_GRADIENT)
		dense_rows(k, c, p, rows, offset);
	else
		list_rows_add(k, c->wide, p);
	if_end(k->e, end);
}

/* Rows of gradients first .. end - 1, whose operands are there. */
static void parts_add(Kernel *k, uint32_t first, uint32_t end, uint32_t round, GradientPart *part, Reg rows, Reg offset)
{
	const DeviceStep *g = k->s->step + k->s->list->gradient;

	for (uint32_t i = first; i < end; i++)
		if (gradient_takes(k, i) && round < k->cut[i].rounds) {
			if (k->cut[i].totals && round == 0)
				totals_rows(k, &g[i], &k->cut[i], &part[i], rows, offset);
			gradient_rows(k, &g[i], &k->cut[i], &part[i], rows, offset);
		}
}

/* Pieces of rows of gradients first .. end - 1, which have two places. Of a thread: it stages them, or adds them, or
 * both. One barrier for each: then that piece is there, and the one before it has been added. */
typedef struct Pieces {
	uint32_t first, end, round;
	GradientPart *part;
	bool stages, adds;
} Pieces;

/* Of the piece that begins with this row; 0: it is past the last one. */
static Reg rows_of_piece(Kernel *k, Reg row)
{
	Emit *e = k->e;
	Reg left = op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", k->rows, row), row);

	return op2(e, REG_R, "min.u32", left, imm(k->piece));
}

/* The piece from row `row` on, which is past the last one in the end; at: bytes to its place. */
static void piece_begin(Kernel *k, const Pieces *s, Reg row, Reg at, bool has_inputs)
{
	Reg rows = rows_of_piece(k, row);

	if (!has_inputs)
		inputs_parts_stage(k, s->first, s->end, row, rows, at);
	piece_stage(k, s->first, s->end, row, rows, at);
}

/* all: the workers, of which those at hand may be a part. */
static void pieces_pass(Kernel *k, const Kernel *all, const Pieces *s)
{
	Emit *e = k->e;
	Kernel workers = *all;
	Reg at = op1(e, REG_R, "mov.u32", imm(0)), other = op1(e, REG_R, "mov.u32", imm(k->next_at));

	if (s->stages)
		piece_begin(k, s, imm(0), imm(0), k->stagers != 0);
	Loop l = loop_begin(e, imm(0), k->rows, k->piece);
	if (s->stages)
		ins(e, "cp.async.wait_all");
	workers_barrier(&workers);
	spent(k, SPENT_KINDS + 29);
	if (s->stages)
		piece_begin(k, s, add(e, l.i, imm(k->piece)), other, false);
	if (s->adds) {
		parts_add(k, s->first, s->end, s->round, s->part, rows_of_piece(k, l.i), at);
		spent(k, SPENT_KINDS + 30);
	}
	ins(e, "sub.u32 $, #, $", at, k->next_at, at);
	ins(e, "sub.u32 $, #, $", other, k->next_at, other);
	loop_end(e, &l);
}

static Kernel stagers_of(Kernel *k)
{
	Kernel s = *k;

	s.tid = op2(k->e, REG_R, "sub.u32", k->tid, imm(k->stagers));
	s.workers = k->workers - k->stagers;
	s.times_steps = false;
	return s;
}

/* ---- a dense gradient over the pieces of a ring ---- */

enum { ROWS_AHEAD = 2 }; /* rows whose operands are loaded while those before are added */

static void piece_wait(Kernel *k, const GradientPart *p, const RowPlace *at)
{
	Emit *e = k->e;
	Reg offset = place_offset(k);

	bulk_wait(k, place_bar(k, BAR_FULL), place_parity(k));
	ins(e, "add.u32 $, $, $", at->a, p->a, offset);
	ins(e, "add.u32 $, $, $", at->b, p->b, offset);
	ins(e, "add.u32 $, $, $", at->other, p->other_a, offset);
}

/* Sums of columns 0 and 2 get registers of odd numbers, those of 1 and 3 of even ones: a quad that is loaded has its
 * columns the other way round, and a bank of registers delivers one of them a cycle. The assembler takes adjacent
 * registers for what a load names together; this one is never executed. */
void sums_alternate(Kernel *k, Reg sum[][4], uint32_t high)
{
	Emit *e = k->e;
	Reg never = op2(e, REG_P, "setp.ne.u32", zero_bits(k), imm(0));

	for (uint32_t h = 0; h < high; h++)
		ins(e, "@$ ld.volatile.shared.v4.f32 {$, $, $, $}, [$]", never, sum[h][1], sum[h][0], sum[h][3], sum[h][2],
		    k->memory);
}

/* BULK_TURN rows. Added are those from ROWS_AHEAD before the first on. */
static void ring_turn(Kernel *k, const GradientCut *c, const GradientPart *p, const RowPlace *at,
                      RowPair pair[][ROWS_AHEAD])
{
	Emit *e = k->e;

	for (uint32_t n = 0; n < BULK_TURN / ROWS_AHEAD; n++) { /* an even number */
		for (uint32_t m = 0; m < ROWS_AHEAD; m++)
			pair_load(k, c, p, at, n * ROWS_AHEAD + m, &pair[n % 2][m]);
		for (uint32_t m = 0; m < ROWS_AHEAD; m++)
			pair_add(e, c, &pair[(n + 1) % 2][m], p);
	}
	ins(e, "add.u32 $, $, #", at->a, at->a, BULK_TURN * p->a_row);
	ins(e, "add.u32 $, $, #", at->b, at->b, BULK_TURN * p->b_row);
	ins(e, "add.u32 $, $, #", at->other, at->other, BULK_TURN * p->a_row);
}

/* Loads are ahead of multiply-adds also from one piece to the next: nothing drains between pieces; before the first
 * row, products of 0 are added. All lanes of a warp take part; those without a tile read that of thread 0. Loads stay
 * in order: see dense_rows. */
static void ring_dense(Kernel *k, const GradientCut *c, const GradientPart *part)
{
	Emit *e = k->e;
	GradientPart p = *part;
	RowPlace at = { reg(e, REG_R), reg(e, REG_R), reg(e, REG_R), true };
	RowPair pair[2][ROWS_AHEAD];

	p.a = op3(e, REG_R, "selp.u32", p.a, add(e, k->memory, imm(c->at_a)), p.is_mine);
	p.other_a = op3(e, REG_R, "selp.u32", p.other_a, add(e, k->memory, imm(c->at_a)), p.is_mine);
	p.b = op3(e, REG_R, "selp.u32", p.b, add(e, k->memory, imm(c->at_b)), p.is_mine);
	for (uint32_t m = 0; m < ROWS_AHEAD; m++) {
		pair[0][m] = pair_new(e);
		pair[1][m] = pair_new(e);
		for (uint32_t h = 0; h < c->high; h++)
			ins(e, "mov.f32 $, 0f00000000", pair[1][m].a[h]);
		for (uint32_t i = 0; i < c->wide; i++)
			ins(e, "mov.f32 $, 0f00000000", pair[1][m].b[i]);
	}
	if (c->wide == 4)
		sums_alternate(k, p.sum, c->high);
	Loop pieces = pieces_begin(k);
	piece_wait(k, &p, &at);
	spent(k, SPENT_KINDS + 29);
	Loop turns = loop_until(e, ring_rows(k, piece_row(k, pieces.i)), BULK_TURN);
	ring_turn(k, c, &p, &at, pair);
	loop_end(e, &turns);
	place_free(k); /* its last rows are in registers */
	loop_end(e, &pieces);
	for (uint32_t m = 0; m < ROWS_AHEAD; m++)
		pair_add(e, c, &pair[1][m], &p);
	spent(k, SPENT_KINDS + 30);
}

/* The only dense gradient of a ring, if its threads have nothing else to do there; else NULL. */
static const GradientCut *ring_alone(const Kernel *k, const Pieces *s, uint32_t *number)
{
	const GradientCut *found = NULL;

	for (uint32_t i = s->first; i < s->end; i++) {
		const GradientCut *c = &k->cut[i];
		if (!gradient_takes(k, i))
			continue;
		if (found || s->round || c->rounds > 1 || k->s->step[k->s->list->gradient + i].kind != STEP_GRADIENT)
			return NULL;
		found = c;
		*number = i;
	}
	bool apart = found && (!found->totals || found->totals_first >= found->first + found->threads ||
	                       found->totals_first + found->totals_threads <= found->first);
	return apart && found->first % 32 == 0 && found->threads % 32 == 0 ? found : NULL;
}

/* Pieces that the device copies. */
static void ring_pieces(Kernel *k, const Pieces *s, const GradientCut *alone, uint32_t number)
{
	Emit *e = k->e;
	Loop l = pieces_begin(k);

	bulk_wait(k, place_bar(k, BAR_FULL), place_parity(k));
	spent(k, SPENT_KINDS + 29);
	Reg rows = ring_rows(k, piece_row(k, l.i)), offset = place_offset(k);
	if (!alone)
		parts_add(k, s->first, s->end, s->round, s->part, rows, offset);
	else if (alone->totals)
		totals_rows(k, &k->s->step[k->s->list->gradient + number], alone, &s->part[number], rows, offset);
	spent(k, SPENT_KINDS + 30);
	place_free(k);
	loop_end(e, &l);
}

static void ring_add(Kernel *k, const Pieces *s)
{
	Emit *e = k->e;
	uint32_t number = 0;
	const GradientCut *alone = ring_alone(k, s, &number);

	if (!alone) {
		ring_pieces(k, s, NULL, 0);
		return;
	}
	uint32_t rest = label(e), end = label(e);
	if (alone->first)
		ins(e, "@!$ bra L#", is_from(k, alone->first), rest);
	ins(e, "@$ bra L#", is_from(k, alone->first + alone->threads), rest);
	ins(e, "@!$ bra L#", range_of(k, alone).is_mine, rest);
	ring_dense(k, alone, &s->part[number]);
	ins(e, "bra L#", end);
	label_here(e, rest);
	ring_pieces(k, s, alone, number);
	label_here(e, end);
}

/* Inputs of the first piece are staged before other blocks have their rows. */
void gradient_before(Kernel *k)
{
	Emit *e = k->e;

	if (!k->stagers || !k->next_at || !any_straight(k))
		return;
	if (in_ring(k)) {
		ring_before(k);
		return;
	}
	uint32_t none = if_begin(e, op2(e, REG_P, "setp.ge.u32", k->tid, imm(k->stagers)));
	Kernel stagers = stagers_of(k);
	inputs_parts_stage(&stagers, 0, k->s->list->steps - k->s->list->gradient, imm(0), rows_of_piece(k, imm(0)), imm(0));
	if_end(e, none);
}

static void pieces_add(Kernel *k, uint32_t first, uint32_t end, uint32_t round, GradientPart *part)
{
	Emit *e = k->e;
	Pieces s = { first, end, round, part, true, !k->stagers };

	if (in_ring(k)) {
		uint32_t other = unless_begin(e, is_from(k, k->stagers));
		ring_add(k, &s);
		if_end(e, other);
		ring_copy(k);
		return;
	}
	if (!k->stagers) {
		pieces_pass(k, k, &s);
		return;
	}
	uint32_t adders = label(e), done = label(e);
	Kernel stagers = stagers_of(k);
	ins(e, "@$ bra L#", less(e, k->tid, imm(k->stagers)), adders);
	pieces_pass(&stagers, k, &s);
	ins(e, "bra L#", done);
	label_here(e, adders);
	s.stages = false;
	s.adds = true;
	pieces_pass(k, k, &s);
	label_here(e, done);
}

/* part: of gradients from 0 on. */
static void parts_begin(Kernel *k, uint32_t first, uint32_t end, uint32_t round, GradientPart *part)
{
	const DeviceStep *g = k->s->step + k->s->list->gradient;

	for (uint32_t i = first; i < end; i++)
		if (gradient_takes(k, i) && round < k->cut[i].rounds)
			part_begin(k, &g[i], &k->cut[i], round, &part[i]);
}

/* Gradients first .. end - 1: operands of all of them are staged together. before: others were there before. Where all
 * rows are staged at once, rounds are prepared while these are under way: of lists, that is a chain of loads. */
static void gradients_emit(Kernel *k, uint32_t first, uint32_t end, uint32_t before)
{
	enum { MOST_ROUNDS = 8 };
	const EmitSource *s = k->s;
	Emit *e = k->e;
	uint32_t rounds = 1;
	const DeviceStep *g = s->step + s->list->gradient;

	for (uint32_t i = first; i < end; i++)
		rounds = max_u32(rounds, gradient_takes(k, i) ? k->cut[i].rounds : 1);
	bool early = !k->next_at && !k->local && rounds <= MOST_ROUNDS;
	GradientPart *part = NEW(&s->cx->scratch, end * rounds, GradientPart);
	remark(e, "gradient: %u rounds, pieces of %u rows", rounds, k->piece);
	for (uint32_t i = first; i < end; i++)
		if (gradient_takes(k, i))
			remark(e, "  %u threads have %u rows by %u", k->cut[i].threads, k->cut[i].high, k->cut[i].wide);
	if (before)
		workers_barrier(k); /* what was there is no longer needed */
	if (!k->local && !k->next_at) {
		inputs_parts_stage(k, first, end, imm(0), k->rows, imm(0));
		piece_stage(k, first, end, imm(0), k->rows, imm(0));
	}
	for (uint32_t round = 0; round < rounds && early; round++)
		parts_begin(k, first, end, round, part + (size_t)round * end);
	for (uint32_t round = 0; round < rounds; round++) {
		GradientPart *now = part + (size_t)round * end;
		if (!early)
			parts_begin(k, first, end, round, now);
		if (round && k->next_at)
			workers_barrier(k);
		if (!k->local && !k->next_at && round == 0) {
			ins(e, "cp.async.wait_all");
			workers_barrier(k);
			spent(k, SPENT_KINDS + 29);
		}
		if (k->next_at)
			pieces_add(k, first, end, round, now);
		else
			parts_add(k, first, end, round, now, k->rows, imm(0));
		spent(k, SPENT_KINDS + 30);
		for (uint32_t i = first; i < end; i++)
			if (gradient_takes(k, i) && round < k->cut[i].rounds) {
				part_end(k, &g[i], &k->cut[i], &now[i], NULL);
				if (k->cut[i].totals && round == 0)
					totals_end(k, &g[i], &k->cut[i], &now[i]);
			}
		spent(k, SPENT_KINDS + 31);
	}
}

/* ---- inlined ---- */

/* Where sums of a thread are between chunks: a quad of each row, those of all threads side by side. */
static Reg sums_place(Kernel *k) { return add(k->e, mad(k->e, k->tid, 16, k->memory), imm(k->at_sums)); }

static void sums_load(Kernel *k, const GradientCut *c, GradientPart *p)
{
	Reg at = sums_place(k);

	for (uint32_t h = 0; h < c->high; h++)
		load_quad_to(k->e, "shared", p->sum[h], at, h * k->inliners * 16);
}

static void sums_store(Kernel *k, const GradientCut *c, const GradientPart *p)
{
	Reg at = sums_place(k);

	for (uint32_t h = 0; h < c->high; h++)
		store_quad(k->e, "shared", at, h * k->inliners * 16, p->sum[h]);
}

/* All sums are 0. By threads below k->inliners */
void inlined_begin(Kernel *k)
{
	Emit *e = k->e;
	uint32_t end = if_begin(e, less(e, k->tid, imm(k->inliners)));

	for (uint32_t h = 0; h < inlined_high(k); h++)
		ins(e, "st.shared.v4.f32 [$+#], {0f00000000, 0f00000000, 0f00000000, 0f00000000}", sums_place(k),
		    h * k->inliners * 16);
	if_end(e, end);
}

/* A row of each 16 threads, if it is before the end. */
static void pads_store(Kernel *k, Reg row, Reg end)
{
	Emit *e = k->e;
	uint32_t steps = k->s->list->steps - k->s->list->gradient;
	Reg quads = op2(e, REG_R, "shr.u32", k->tid, imm(4)), at = mad(e, row, k->row, mad(e, quads, 16, k->memory));

	for (uint32_t i = 0; i < steps; i++) {
		const DeviceStep *g = &k->s->step[k->s->list->gradient + i];
		for (uint32_t side = 0; side < 2 && k->cut[i].inlined; side++) {
			uint32_t buf = side ? g->c : g->a, col = side ? g->c_col : g->a_col;
			uint32_t count = (uint32_t)ceil_div(side ? g->cols : g->depth, 4);
			assert(count <= k->s->threads / ROWS_TURN);
			Reg is = op2(e, REG_P, "and.pred", less(e, row, end), less(e, quads, imm(count)));
			ins(e, "@$ st.shared.v4.f32 [$+#], {0f00000000, 0f00000000, 0f00000000, 0f00000000}", is,
			    row_flip(k, at, buf), k->at_rows + column_at(k, buf, col));
		}
	}
}

/* Rows past the last of the chunk, to the end of a turn, are 0. */
void inlined_pads(Kernel *k)
{
	Emit *e = k->e;
	uint32_t turn = inlined_turn(k);
	Reg row = add(e, k->my_rows, op2(e, REG_R, "and.b32", k->tid, imm(ROWS_TURN - 1)));
	Reg end = op2(e, REG_R, "and.b32", add(e, k->my_rows, imm(turn - 1)), imm(~(turn - 1)));

	for (uint32_t i = 0; i < turn; i += ROWS_TURN)
		pads_store(k, add(e, row, imm(i)), end);
}

void inlined_rows(Kernel *k)
{
	for (uint32_t i = 0; i < k->s->list->steps - k->s->list->gradient; i++) {
		const DeviceStep *g = &k->s->step[k->s->list->gradient + i];
		if (!k->cut[i].inlined)
			continue;
		GradientPart now;
		part_begin(k, g, &k->cut[i], 0, &now);
		uint32_t none = if_begin(k->e, now.is_mine);
		now.a = row_flip(k, now.a, g->a);
		now.b = row_flip(k, now.b, g->c);
		sums_load(k, &k->cut[i], &now);
		dense_rows(k, &k->cut[i], &now, k->my_rows, imm(0));
		sums_store(k, &k->cut[i], &now);
		if_end(k->e, none);
	}
}

/* Inlined gradients after the last chunk. */
typedef struct InlinedEnd {
	GradientPart part[MOST_GRADIENTS];
	RuleQuads *values[MOST_GRADIENTS]; /* weights and state on their way; NULL: they are not */
} InlinedEnd;

static InlinedEnd *inlined_prepare(Kernel *k)
{
	InlinedEnd *o = NEW(&k->s->cx->scratch, 1, InlinedEnd);

	for (uint32_t i = 0; i < k->s->list->steps - k->s->list->gradient; i++) {
		const DeviceStep *g = &k->s->step[k->s->list->gradient + i];
		const DevicePanel *panel = &k->s->panel[g->panel];
		if (!k->cut[i].inlined)
			continue;
		part_begin(k, g, &k->cut[i], 0, &o->part[i]);
		if (!k->numbers || panel->kind || !rule_in_quads(g, panel))
			continue;
		o->values[i] = NEW(&k->s->cx->scratch, 1, RuleQuads);
		*o->values[i] = (RuleQuads){ .row = o->part[i].i, .quad = o->part[i].q, .rows = k->cut[i].high };
		o->values[i]->aligned = k->cut[i].down == 1 && k->cut[i].high % 4 == 0;
		rule_quads_new(k, o->values[i]);
		rule_quads_load(k, panel, g->depth, o->values[i]); /* all threads: else registers would be kept for others */
	}
	return o;
}

/* Sums of inlined gradients become the update, or sums of the leaf. */
static void inlined_end(Kernel *k, InlinedEnd *o)
{
	for (uint32_t i = 0; i < k->s->list->steps - k->s->list->gradient; i++) {
		if (!k->cut[i].inlined)
			continue;
		uint32_t none = if_begin(k->e, o->part[i].is_mine);
		sums_load(k, &k->cut[i], &o->part[i]);
		part_end(k, &k->s->step[k->s->list->gradient + i], &k->cut[i], &o->part[i], o->values[i]);
		if_end(k->e, none);
	}
}

/* The only gradient that is not inlined, by index lists that warps take from a queue. */
static void lists_alone(Kernel *k, uint32_t i)
{
	const DeviceStep *g = &k->s->step[k->s->list->gradient + i];
	const GradientCut *c = &k->cut[i];
	uint32_t totals = label(k->e), end = label(k->e);
	GradientPart part;

	assert(!c->totals || c->totals_first == c->threads - c->totals_threads);
	remark(k->e, "gradient by index lists: %u threads, of which %u have sums of deltas", c->threads, c->totals_threads);
	InlinedEnd *inlined = inlined_prepare(k); /* before many copies, which these would wait for */
	piece_stage(k, i, i + 1, imm(0), k->rows, imm(0));
	inlined_end(k, inlined); /* while operands are under way */
	ListWalk *walk = lists_first(k, g, c, &part);
	ins(k->e, "cp.async.wait_all");
	workers_barrier(k);
	spent(k, SPENT_KINDS + 29);
	coming_case(k);
	ins(k->e, "@$ bra L#", is_from(k, c->threads - c->totals_threads), totals);
	lists_add(k, g, c, &part, walk);
	ins(k->e, "bra L#", end);
	label_here(k->e, totals);
	if (c->totals) {
		totals_begin(k, g, c, &part);
		for (uint32_t n = 0; n < totals_each(c); n++) {
			uint32_t none = if_begin(k->e, part.is_total[n]);
			total_far_ahead(k, &part, n, n * c->totals_threads * 4);
			if_end(k->e, none);
		}
		totals_end(k, g, c, &part);
	}
	label_here(k->e, end);
	spent(k, SPENT_KINDS + 30);
}

void gradient_emit(Kernel *k)
{
	uint32_t steps = k->s->list->steps - k->s->list->gradient;

	if (k->local) {
		local_pads(k);
		workers_barrier(k);
	}
	if (!k->overlaid) {
		gradients_emit(k, 0, steps, 0);
		return;
	}
	if (k->turns != NO_STEP && k->numbers) {
		lists_alone(k, k->turns);
		return;
	}
	inlined_end(k, inlined_prepare(k));
	for (uint32_t i = 0, before = 0; i < steps; i++)
		if (!k->cut[i].inlined)
			gradients_emit(k, i, i + 1, before++);
}
