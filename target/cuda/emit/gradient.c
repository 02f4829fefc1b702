/* SPDX-License-Identifier: MIT */
/* The gradient of a leaf. In: activations and deltas of all its rows. Out: sums of weight changes in global memory, or
 * the update itself. Blocks of a team have ranges of each matrix. Must hold: rows are summed in order.
 *
 * Columns that a block needs come to shared memory first, as [row][quads of a part]; where a team is one block, its
 * rows are there already. Rows past the last are 0 and lists end with a row of -0: adding these changes nothing.
 * Inputs are taken by rank: those that most cases have come first, so that adjacent threads have lists of a length. */
#include <assert.h>
#include <string.h>

#include "emit.h"

enum { AHEAD = 8, MOST_HIGH = 8 }; /* rows that loops read ahead; rows of a thread */

/* ---- plan ---- */

/* Of index lists: ranks of all inputs and of the true unit. */
static uint32_t matrix_rows(const Kernel *k, const DeviceStep *s)
{
	return s->kind == STEP_GRADIENT_INDEX ? k->s->job->data.inputs + 1 : s->depth;
}
static uint32_t matrix_quads(const DeviceStep *s) { return (uint32_t)ceil_div(s->cols, 4); }
static uint32_t a_quads(const DeviceStep *s, const GradientCut *c)
{
	return s->kind == STEP_GRADIENT ? (uint32_t)ceil_div(c->rows, 4) : 0;
}

/* The cut with the least to load and to compute: a quad of 512 rows takes 128 cycles to load, a task of a row by a quad
 * 16 cycles of a multiprocessor. */
static void cut_choose(const Kernel *k, const DeviceStep *s, GradientCut *best)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t down = 1; down <= k->s->team_blocks; down++) {
		GradientCut c = { .down = down, .across = min_u32(k->s->team_blocks / down, matrix_quads(s)) };
		c.rows = (uint32_t)ceil_div(matrix_rows(k, s), down);
		if (down > 1 && s->kind == STEP_GRADIENT)
			c.rows = (uint32_t)round_up(c.rows, MOST_HIGH); /* no thread has rows of two ranges */
		c.quads = (uint32_t)ceil_div(matrix_quads(s), c.across);
		uint64_t cost = 128 * (uint64_t)(a_quads(s, &c) + c.quads) + 16 * (uint64_t)c.rows * c.quads;
		if (cost < least) {
			least = cost;
			*best = c;
		}
	}
}

static uint32_t tasks_of(const GradientCut *c) { return (uint32_t)ceil_div(c->rows, c->high) * c->quads; }

/* Rows of a thread; for each row of the leaf it adds a quad for each, and loads these rows and a quad, which take a
 * cycle of shared memory for every eight lanes and one for a pair of rows of a warp. */
static uint32_t high_choose(const GradientCut *c, uint32_t most)
{
	uint32_t best = MOST_HIGH;
	double least = 0;

	for (uint32_t high = 1; high <= MOST_HIGH; high *= 2) {
		GradientCut d = *c;
		d.high = high;
		uint32_t warps = (tasks_of(&d) + 31) / 32, loads = high < 4 ? 2 : 1 + high / 4, each = (warps + 3) / 4;
		double adds = (high * 4 + loads + 0.5) * (each == 1 ? 1 / 0.7 : each / 0.95);
		double memory = tasks_of(&d) / 8.0 * (high < 4 ? 1 : loads) + (high < 4 ? warps : 0);
		double cost = memory > adds ? memory : adds;
		if (warps <= most && (!least || cost < least)) {
			least = cost;
			best = high;
		}
	}
	return best;
}

/* Side by side where threads are enough for all; else one after the other. */
static void threads_divide(Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t steps = s->list->steps - s->list->gradient, warps = k->workers / 32, lists = 0, used = 0, inlined = 0;
	const DeviceStep *g = s->step + s->list->gradient;

	for (uint32_t i = 0; i < steps; i++) {
		lists += g[i].kind == STEP_GRADIENT_INDEX;
		inlined += k->cut[i].inlined;
	}
	uint32_t most = lists && !k->overlaid ? warps / 2 : warps, share = warps / 2 / max_u32(inlined, 1);
	for (uint32_t i = 0; i < steps; i++) {
		GradientCut *c = &k->cut[i];
		c->high = g[i].kind == STEP_GRADIENT ? high_choose(c, c->inlined ? share : most) : 1;
		if (c->inlined) { /* side by side; others give verdicts */
			c->first = k->inliners;
			c->threads = (uint32_t)round_up(tasks_of(c), 32);
			c->rounds = 1;
			k->inliners += c->threads;
			continue;
		}
		c->first = used * 32;
		if (g[i].kind == STEP_GRADIENT)
			used += (uint32_t)ceil_div(tasks_of(c), 32);
	}
	for (uint32_t i = 0; i < steps; i++) {
		GradientCut *c = &k->cut[i];
		bool list = g[i].kind == STEP_GRADIENT_INDEX;
		if (c->inlined)
			continue;
		if (used > most || k->overlaid) {
			c->first = 0;
			c->threads = k->workers;
		} else {
			c->first = list ? used * 32 : c->first;
			c->threads = list ? k->workers - used * 32 : (uint32_t)round_up(tasks_of(c), 32);
		}
		c->rounds = (uint32_t)ceil_div(tasks_of(c), c->threads);
	}
	assert(k->inliners <= k->workers); /* workers store what they have added */
}

/* Operands in shared memory, of as many rows at a time as there is room for. */
static void plan_staging(Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t steps = s->list->steps - s->list->gradient, quads = 0, widest = 0;
	uint32_t all = (uint32_t)round_up(s->leaf_rows, ROWS_TURN);
	const DeviceStep *g = s->step + s->list->gradient;

	for (uint32_t i = 0; i < steps; i++) {
		uint32_t own = k->cut[i].inlined ? 0 : a_quads(&g[i], &k->cut[i]) + k->cut[i].quads;
		quads = k->overlaid ? max_u32(quads, own) : quads + own;
		widest = max_u32(widest, own);
	}
	if (!quads)
		return;
	uint32_t fits = (s->shared - min_u32(s->shared, k->at_staged + AHEAD * 16 * widest)) / (quads * 16);
	fits = fits > 1 ? (fits - 1) / ROWS_TURN * ROWS_TURN : 0;
	if (fits < all && (s->job->data.from || fits < 2 * ROWS_TURN)) {
		k->bytes = UINT32_MAX; /* no room */
		return;
	}
	k->piece = min_u32(fits, all);
	uint32_t at = k->at_staged, quad = (k->piece + 1) * 16; /* a row of -0 follows */
	for (uint32_t i = 0; i < steps; i++) {
		if (k->cut[i].inlined)
			continue;
		if (k->overlaid)
			at = k->at_staged;
		k->cut[i].at_a = at;
		k->cut[i].at_b = at += a_quads(&g[i], &k->cut[i]) * quad;
		at += k->cut[i].quads * quad;
		k->bytes = max_u32(k->bytes, at + AHEAD * 16 * widest);
	}
}

/* Dense ones that few threads are enough for, where rows come in chunks: half of the workers have at least one warp for
 * each. */
void gradient_inline(Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t threads = 0, warps = 0;

	for (uint32_t i = 0; i < s->list->steps - s->list->gradient; i++) {
		const DeviceStep *g = &s->step[s->list->gradient + i];
		uint32_t tasks = (uint32_t)(ceil_div(g->depth, MOST_HIGH) * ceil_div(g->cols, 4));
		uint32_t own = (uint32_t)ceil_div(tasks, 32);
		bool pads = ceil_div(max_u32(g->depth, g->cols), 4) <= s->threads / ROWS_TURN; /* one quad for each thread */
		k->cut[i].inlined = k->overlaid && g->kind == STEP_GRADIENT && threads + tasks <= k->workers / 4 &&
		                    warps + own <= k->workers / 64 && pads;
		threads += k->cut[i].inlined ? tasks : 0;
		warps += k->cut[i].inlined ? own : 0;
	}
}

void gradient_ranges(Kernel *k)
{
	const EmitSource *s = k->s;

	for (uint32_t i = 0; i < s->list->steps - s->list->gradient; i++) {
		bool inlined = k->cut[i].inlined;
		cut_choose(k, &s->step[s->list->gradient + i], &k->cut[i]);
		k->cut[i].inlined = inlined;
	}
}

void gradient_cut(Kernel *k)
{
	const EmitSource *s = k->s;

	k->inliners = 0;
	threads_divide(k);
	k->piece = (uint32_t)round_up(s->leaf_rows, ROWS_TURN);
	k->csc_pad = k->local ? k->row_space - 1 : k->piece;
	if (k->local || k->inliners)
		k->bytes += ROWS_TURN * k->row;
	if (!k->local)
		plan_staging(k);
	if (s->job->data.from)
		k->bytes = max_u32(k->bytes, k->at_mask + s->job->data.inputs * ((uint32_t)ceil_div(s->leaf_rows, 32) | 1) * 4);
}

/* ---- staging ---- */

static void workers_barrier(Kernel *k) { ins(k->e, "bar.sync 1, #", k->workers); }

/* Rows row0 .. row0 + rows - 1 of a part, which are one piece of memory; up to a full turn of rows, 0. */
static void part_stage(Kernel *k, uint32_t region, Reg part, uint32_t to, Reg row0, Reg rows)
{
	Emit *e = k->e;
	uint32_t bytes = k->exchanged[region].part * 16, turn = k->workers * 16, most = k->piece * bytes;
	Reg from = place(e, exchange_address(k, region, part, row0), k->tid, 16), at = mad(e, k->tid, 16, k->memory);
	Reg all = mul(e, rows, bytes),
		full = op2(e, REG_R, "and.b32", add(e, rows, imm(ROWS_TURN - 1)), imm(~(uint32_t)(ROWS_TURN - 1)));
	Reg mine = reg(e, REG_R); /* bytes from this thread's first quad to the end; not positive: none */

	ins(e, "sub.s32 $, $, $", mine, all, mul(e, k->tid, 16));
	for (uint32_t done = 0; done < most; done += turn)
		ins(e, "@$ cp.async.cg.shared.global [$+#], [$+#], 16", op2(e, REG_P, "setp.gt.s32", mine, imm(done)), at,
		    to + done, from, done);
	Loop pad = loop_begin(e, add(e, all, mul(e, k->tid, 16)), mul(e, full, bytes), turn);
	ins(e, "st.shared.v4.f32 [$+#], {0f00000000, 0f00000000, 0f00000000, 0f00000000}", add(e, k->memory, pad.i), to);
	loop_end(e, &pad);
}

/* The row of -0 that lists are filled up with. */
static void pads_stage(Kernel *k, const GradientCut *c)
{
	Emit *e = k->e;
	Loop l = loop_begin(e, k->tid, imm(c->quads), k->workers);

	ins(e, "st.shared.v4.f32 [$+#], {0f80000000, 0f80000000, 0f80000000, 0f80000000}", mad(e, l.i, 16, k->memory),
	    c->at_b + k->csc_pad * c->quads * 16);
	loop_end(e, &l);
}

/* Which range of the matrix the block has. Of ranks, it has every down-th. */
typedef struct Range {
	Reg down, across; /* number of the range, */
	Reg row, quad;    /* its first row and quad */
	Reg is_mine;      /* some blocks have none */
} Range;

static Range range_of(Kernel *k, const GradientCut *c)
{
	Emit *e = k->e;
	Reg down = divide(e, k->member, c->across), across = modulo(e, k->member, c->across, down);

	return (Range){ down, across, mul(e, down, c->rows), mul(e, across, c->quads), less(e, down, imm(c->down)) };
}

/* Operands of gradients begin .. end_step - 1. */
static void piece_stage(Kernel *k, uint32_t begin, uint32_t end_step, Reg row0, Reg rows)
{
	const EmitSource *s = k->s;
	Emit *e = k->e;

	for (uint32_t i = s->list->gradient + begin; i < s->list->gradient + end_step; i++) {
		const DeviceStep *g = &s->step[i];
		const GradientCut *c = &k->cut[i - s->list->gradient];
		Range r = range_of(k, c);
		uint32_t end = if_begin(e, r.is_mine);
		if (g->kind == STEP_GRADIENT)
			part_stage(k, c->from_a, r.down, c->at_a, row0, rows);
		part_stage(k, c->from_b, r.across, c->at_b, row0, rows);
		if (g->kind == STEP_GRADIENT_INDEX)
			pads_stage(k, c);
		if_end(e, end);
	}
	ins(e, "cp.async.wait_all");
}

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

/* A thread's part of a matrix: rows i .. i + high - 1 by quad q, and their sums. */
typedef struct Part {
	Reg i, q, is_mine;
	Reg input; /* index lists */
	Reg sum[MOST_HIGH][4];
	Reg a, b;              /* addresses in row 0 of the piece */
	uint32_t a_row, b_row; /* bytes of a row of operands */
} Part;

static void and_also(Emit *e, Part *p, Reg what) { p->is_mine = op2(e, REG_P, "and.pred", p->is_mine, what); }

/* The input of a rank, and its row of the matrix. */
static void part_ranked(Kernel *k, const DeviceStep *s, Part *p, Reg rank)
{
	Emit *e = k->e;
	uint32_t inputs = k->s->job->data.inputs;
	Reg is_rank = less(e, rank, imm(inputs + 1)), at = op3(e, REG_R, "selp.u32", rank, imm(0), is_rank);

	p->input = load(e, REG_R, "ld.shared.u32", mad(e, at, 4, k->memory), k->at_rank);
	Reg is_true = same(e, p->input, imm(inputs)), own = op2(e, REG_R, "sub.u32", p->input, imm(s->low));
	and_also(e, p, is_rank);
	p->i = op3(e, REG_R, "selp.u32", imm(s->depth), own, is_true);
	Reg is_own = less(e, own, imm(s->depth));
	if (s->bias)
		is_own = op2(e, REG_P, "or.pred", is_own, is_true);
	and_also(e, p, is_own);
}

static void part_begin(Kernel *k, const DeviceStep *s, const GradientCut *c, uint32_t round, Part *p)
{
	Emit *e = k->e;
	Range r = range_of(k, c);
	Reg thread = op2(e, REG_R, "sub.u32", k->tid, imm(c->first)); /* a large number if it is before the first */
	Reg number = add(e, thread, imm(round * c->threads));
	Reg group = divide(e, number, c->quads), quad = modulo(e, number, c->quads, group), row = mul(e, group, c->high);
	uint32_t b = s->kind == STEP_GRADIENT ? s->c : BUF_DELTA;

	p->is_mine = op2(e, REG_P, "and.pred", r.is_mine, less(e, thread, imm(c->threads)));
	and_also(e, p, less(e, number, imm(tasks_of(c))));
	p->q = add(e, r.quad, quad);
	and_also(e, p, less(e, p->q, imm(matrix_quads(s))));
	if (s->kind == STEP_GRADIENT_INDEX) {
		part_ranked(k, s, p, mad(e, row, c->down, r.down));
	} else {
		p->i = add(e, r.row, row);
		and_also(e, p, less(e, p->i, imm(s->depth)));
	}
	for (uint32_t h = 0; h < c->high; h++)
		for (uint32_t n = 0; n < 4; n++)
			p->sum[h][n] = op1(e, REG_F, "mov.f32", imm_f(0));
	p->a_row = p->b_row = k->row;
	if (k->local || c->inlined) {
		p->b = add(e, mad(e, p->q, 16, k->memory), imm(k->at_rows + column_at(k, b, s->c_col)));
		p->a = s->kind == STEP_GRADIENT
		           ? add(e, mad(e, p->i, 4, k->memory), imm(k->at_rows + column_at(k, s->a, s->a_col)))
		           : p->b;
		return;
	}
	p->a_row = a_quads(s, c) * 16;
	p->b_row = c->quads * 16;
	p->a = add(e, mad(e, row, 4, k->memory), imm(c->at_a));
	p->b = add(e, mad(e, quad, 16, k->memory), imm(c->at_b));
}

/* ---- dense ---- */

/* What the rows of some turn are loaded to. */
typedef struct RowPair {
	Reg a[MOST_HIGH], b[4];
} RowPair;

static RowPair pair_new(Emit *e)
{
	RowPair p;

	for (uint32_t i = 0; i < MOST_HIGH; i++)
		p.a[i] = reg(e, REG_F);
	for (uint32_t i = 0; i < 4; i++)
		p.b[i] = reg(e, REG_F);
	return p;
}

static void pair_load(Kernel *k, const GradientCut *c, const Part *part, Reg a, Reg b, uint32_t m, const RowPair *p)
{
	Emit *e = k->e;
	uint32_t offset = m * part->a_row;

	load_quad_to(e, "shared", p->b, b, m * part->b_row);
	for (uint32_t h = 0; h < c->high && c->high >= 4; h += 4)
		load_quad_to(e, "shared", p->a + h, a, offset + 4 * h);
	for (uint32_t h = 0; h < c->high && c->high < 4; h++)
		ins(e, "ld.shared.f32 $, [$+#]", p->a[h], a, offset + 4 * h);
}

static void pair_add(Emit *e, const GradientCut *c, const RowPair *r, const Part *p)
{
	for (uint32_t h = 0; h < c->high; h++)
		for (uint32_t n = 0; n < 4; n++)
			ins(e, "fma.rn.ftz.f32 $, $, $, $", p->sum[h][n], r->a[h], r->b[n], p->sum[h][n]);
}

/* Rows of a piece, ROWS_TURN at a time: some are loaded while those before are added. */
static void dense_rows(Kernel *k, const GradientCut *c, const Part *p, Reg rows)
{
	Emit *e = k->e;
	enum { MOST = 8 };
	uint32_t ahead = c->high >= 8 ? 2 : c->high >= 4 ? 4 : MOST, parts = ROWS_TURN / ahead; /* an even number */
	RowPair pair[2][MOST];
	Reg a = reg(e, REG_R), b = reg(e, REG_R);

	ins(e, "mov.u32 $, $", a, p->a);
	ins(e, "mov.u32 $, $", b, p->b);
	for (uint32_t m = 0; m < 2 * ahead; m++)
		pair[m / ahead][m % ahead] = pair_new(e);
	for (uint32_t m = 0; m < ahead; m++)
		pair_load(k, c, p, a, b, m, &pair[0][m]);
	Loop l = loop_begin(e, imm(0), rows, ROWS_TURN);
	for (uint32_t part = 0; part < parts; part++) {
		for (uint32_t m = 0; m < ahead; m++)
			pair_load(k, c, p, a, b, (part + 1) * ahead + m, &pair[(part + 1) % 2][m]);
		for (uint32_t m = 0; m < ahead; m++)
			pair_add(e, c, &pair[part % 2][m], p);
	}
	ins(e, "add.u32 $, $, #", a, a, ROWS_TURN * p->a_row);
	ins(e, "add.u32 $, $, #", b, b, ROWS_TURN * p->b_row);
	loop_end(e, &l);
}

/* ---- index lists ---- */

/* Rows of a group of a list by input: 16-bit numbers, two in a register. */
typedef struct Group {
	Reg pair[4], x[LIST_PAD][4];
} Group;

static Group group_new(Emit *e)
{
	Group g;

	for (uint32_t i = 0; i < 4; i++)
		g.pair[i] = reg(e, REG_R);
	for (uint32_t m = 0; m < LIST_PAD; m++)
		for (uint32_t i = 0; i < 4; i++)
			g.x[m][i] = reg(e, REG_F);
	return g;
}

static void group_numbers(Kernel *k, const Group *g, Reg at, uint32_t offset)
{
	ins(k->e, "ld.shared.v4.u32 {$, $, $, $}, [$+#]", g->pair[0], g->pair[1], g->pair[2], g->pair[3], at, offset);
}

static void group_load(Kernel *k, const Group *g, const Part *p)
{
	Emit *e = k->e;

	for (uint32_t m = 0; m < LIST_PAD; m++) {
		Reg row = m % 2 ? op2(e, REG_R, "shr.u32", g->pair[m / 2], imm(16))
		                : op2(e, REG_R, "and.b32", g->pair[m / 2], imm(0xffff));
		load_quad_to(e, "shared", g->x[m], mad(e, row, p->b_row, p->b), 0);
	}
}

static void group_add(Emit *e, const Group *g, const Part *p)
{
	for (uint32_t m = 0; m < LIST_PAD; m++)
		for (uint32_t n = 0; n < 4; n++)
			ins(e, "add.rn.ftz.f32 $, $, $", p->sum[0][n], g->x[m][n], p->sum[0][n]);
}

/* One group is loaded while the other is added, and the numbers of the next; groups past the last are those of another
 * list, and not added. */
static void list_rows(Kernel *k, const Part *p)
{
	Emit *e = k->e;
	uint32_t bytes = 2 * LIST_PAD;
	Reg word = load(e, REG_R, "ld.shared.u32", mad(e, p->input, 4, k->memory), k->at_csc_start), at = reg(e, REG_R);
	Reg left = op2(e, REG_R, "shr.u32", word, imm(16));
	Group g[2] = { group_new(e), group_new(e) };

	ins(e, "add.u32 $, $, #", at, mad(e, op2(e, REG_R, "and.b32", word, imm(0xffff)), bytes, k->memory), k->at_csc);
	uint32_t done = unless_begin(e, same(e, left, imm(0))), top = label(e);
	group_numbers(k, &g[0], at, 0);
	group_numbers(k, &g[1], at, bytes);
	group_load(k, &g[0], p);
	label_here(e, top);
	group_load(k, &g[1], p);
	group_numbers(k, &g[0], at, 2 * bytes);
	group_add(e, &g[0], p);
	ins(e, "@$ bra L#", same(e, left, imm(1)), done);
	group_load(k, &g[0], p);
	group_numbers(k, &g[1], at, 3 * bytes);
	group_add(e, &g[1], p);
	ins(e, "add.u32 $, $, #", at, at, 2 * bytes);
	ins(e, "sub.u32 $, $, 2", left, left);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", left, imm(0)), top);
	if_end(e, done);
}

/* ---- results ---- */

static void part_end(Kernel *k, const DeviceStep *s, const GradientCut *c, const Part *p)
{
	Emit *e = k->e;
	const DevicePanel *panel = &k->s->panel[s->panel];
	uint32_t end = if_begin(e, p->is_mine);
	bool quads = k->numbers && panel->row == s->sum_row && panel->row % 4 == 0 && panel->at % 4 == 0;

	if (quads) {
		RuleQuads *q = NEW(&k->s->cx->scratch, 1, RuleQuads);
		*q = (RuleQuads){ .row = p->i, .quad = p->q, .rows = c->high };
		memcpy(q->g, p->sum, c->high * sizeof *q->g);
		rule_quads(k, k->numbers, panel, s->depth + s->bias, q);
	}
	for (uint32_t h = 0; h < c->high && !quads; h++) {
		Reg i = add(e, p->i, imm(h)), n = op2(e, REG_R, "shl.b32", p->q, imm(2));
		uint32_t past = if_begin(e, less(e, i, imm(s->depth + s->bias)));
		Reg at = mad(e, i, s->sum_row, n);
		if (k->numbers && !quads) {
			for (uint32_t x = 0; x < 4; x++)
				rule_apply(k, k->numbers, &k->s->panel[s->panel], i, add(e, n, imm(x)), add(e, at, imm(x)),
				           p->sum[h][x]);
		} else {
			Reg leaf = op2(e, REG_D, "mul.wide.u32", k->leaf_number, imm((uint32_t)k->s->job->floats * 4));
			Reg to = place_at(e, op2(e, REG_D, "add.u64", POINTER(k, sum), leaf), s->at * 4);
			store_quad(e, "global", place(e, to, at, 4), 0, p->sum[h]);
		}
		if_end(e, past);
	}
	if_end(e, end);
}

static void gradient_rows(Kernel *k, const DeviceStep *s, const GradientCut *c, const Part *p, Reg rows)
{
	uint32_t end = if_begin(k->e, p->is_mine);

	if (s->kind == STEP_GRADIENT)
		dense_rows(k, c, p, rows);
	else
		list_rows(k, p);
	if_end(k->e, end);
}

/* Gradients first .. end - 1: operands of all of them are staged together. before: others were there before. */
static void gradients_emit(Kernel *k, uint32_t first, uint32_t end, uint32_t before)
{
	const EmitSource *s = k->s;
	Emit *e = k->e;
	uint32_t pieces = (uint32_t)ceil_div(s->leaf_rows, k->piece), rounds = 1;
	const DeviceStep *g = s->step + s->list->gradient;
	Part *part = NEW(&s->cx->scratch, end, Part);

	for (uint32_t i = first; i < end; i++)
		rounds = max_u32(rounds, k->cut[i].rounds);
	remark(e, "gradient: %u rounds, %u pieces of %u rows", rounds, pieces, k->piece);
	for (uint32_t round = 0; round < rounds; round++) {
		for (uint32_t i = first; i < end; i++)
			if (round < k->cut[i].rounds)
				part_begin(k, &g[i], &k->cut[i], round, &part[i]);
		Loop l = { 0 };
		Reg rows = k->rows;
		if (pieces > 1) {
			l = loop_begin(e, imm(0), k->rows, k->piece);
			rows = op2(e, REG_R, "min.u32", op2(e, REG_R, "sub.u32", k->rows, l.i), imm(k->piece));
		}
		if (!k->local && (pieces > 1 || round == 0)) {
			if (pieces > 1 || before)
				workers_barrier(k); /* what was there is no longer needed */
			piece_stage(k, first, end, pieces > 1 ? l.i : imm(0), rows);
			workers_barrier(k);
			spent(k, SPENT_KINDS + 29);
		}
		for (uint32_t i = first; i < end; i++)
			if (round < k->cut[i].rounds)
				gradient_rows(k, &g[i], &k->cut[i], &part[i], rows);
		if (pieces > 1)
			loop_end(e, &l);
		spent(k, SPENT_KINDS + 30);
		for (uint32_t i = first; i < end; i++)
			if (round < k->cut[i].rounds)
				part_end(k, &g[i], &k->cut[i], &part[i]);
		spent(k, SPENT_KINDS + 31);
	}
}

/* ---- inlined ---- */

void inlined_begin(Kernel *k)
{
	uint32_t steps = k->s->list->steps - k->s->list->gradient;

	k->part = NEW(&k->s->cx->scratch, steps, Part);
	for (uint32_t i = 0; i < steps; i++)
		if (k->cut[i].inlined)
			part_begin(k, &k->s->step[k->s->list->gradient + i], &k->cut[i], 0, &k->part[i]);
}

/* Rows past the last of the chunk are 0. */
void inlined_pads(Kernel *k)
{
	Emit *e = k->e;
	uint32_t steps = k->s->list->steps - k->s->list->gradient;
	Reg quads = op2(e, REG_R, "shr.u32", k->tid, imm(4)), rest = op2(e, REG_R, "and.b32", k->tid, imm(ROWS_TURN - 1));
	Reg row = add(e, k->my_rows, rest), at = mad(e, row, k->row, mad(e, quads, 16, k->memory));
	Reg end = op2(e, REG_R, "and.b32", add(e, k->my_rows, imm(ROWS_TURN - 1)), imm(~(uint32_t)(ROWS_TURN - 1)));

	for (uint32_t i = 0; i < steps; i++) {
		const DeviceStep *g = &k->s->step[k->s->list->gradient + i];
		for (uint32_t side = 0; side < 2 && k->cut[i].inlined; side++) {
			uint32_t buf = side ? g->c : g->a, col = side ? g->c_col : g->a_col;
			uint32_t count = (uint32_t)ceil_div(side ? g->cols : g->depth, 4);
			assert(count <= k->s->threads / ROWS_TURN);
			Reg is = op2(e, REG_P, "and.pred", less(e, row, end), less(e, quads, imm(count)));
			ins(e, "@$ st.shared.v4.f32 [$+#], {0f00000000, 0f00000000, 0f00000000, 0f00000000}", is, at,
			    k->at_rows + column_at(k, buf, col));
		}
	}
}

void inlined_rows(Kernel *k)
{
	for (uint32_t i = 0; i < k->s->list->steps - k->s->list->gradient; i++)
		if (k->cut[i].inlined)
			gradient_rows(k, &k->s->step[k->s->list->gradient + i], &k->cut[i], &k->part[i], k->my_rows);
}

void gradient_emit(Kernel *k)
{
	uint32_t steps = k->s->list->steps - k->s->list->gradient;

	if (k->local) {
		local_pads(k);
		workers_barrier(k);
	}
	for (uint32_t i = 0, before = 0; i < steps && k->overlaid; i++)
		if (k->cut[i].inlined) {
			part_end(k, &k->s->step[k->s->list->gradient + i], &k->cut[i], &k->part[i]);
		} else {
			gradients_emit(k, i, i + 1, before);
			before++;
		}
	if (!k->overlaid)
		gradients_emit(k, 0, steps, 0);
}
