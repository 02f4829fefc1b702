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

enum { AHEAD = 8, MOST_HIGH = 8, MOST_PIECE = 96 }; /* rows that loops read ahead; rows of a thread, of a piece */

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
		c.across = (uint32_t)ceil_div(matrix_quads(s), c.quads); /* no range is empty: operands of none are staged */
		uint64_t cost = 128 * (uint64_t)(a_quads(s, &c) + c.quads) + 16 * (uint64_t)c.rows * c.quads;
		if (cost < least) {
			least = cost;
			*best = c;
		}
	}
}

static uint32_t groups_of(const GradientCut *c) { return (uint32_t)ceil_div(c->rows, c->high); }
static uint32_t tasks_of(const GradientCut *c) { return c->panels * c->each; }

/* Threads for rows by quads. Eight quads or fewer that all lanes of a warp read take two cycles of shared memory,
 * sixteen take four; with lists, where every row is another one, 16 lanes should have one row. */
static void cut_panels(GradientCut *c, bool list)
{
	enum { PANEL = 8 };
	uint32_t power = 1;

	while (power < c->quads)
		power *= 2;
	c->panels = list ? 1 : (uint32_t)ceil_div(c->quads, PANEL);
	c->panel = (uint32_t)ceil_div(c->quads, c->panels);
	if (list && power <= 32 && power - c->quads <= power / 8)
		c->panel = power;
	c->each = groups_of(c) * c->panel;
	if (c->panels > 1)
		c->each = (uint32_t)round_up(c->each, 32);
}

/* Cycles for a row of the leaf, measured on an H200: a thread adds a quad for each of its rows, and loads these and a
 * quad. A warp waits for what it loads, and for others that load. */
static double row_cost(const GradientCut *c)
{
	uint32_t warps = (uint32_t)ceil_div(tasks_of(c), 32), loads = c->high < 4 ? 2 : 1 + c->high / 4;
	double each = c->high < 8 ? 1.15 : 1.7;

	return 11 + each * (c->high * 4 + loads) * (double)ceil_div(warps, 4) + 2.5 * (warps - 1);
}

/* Rows of a thread, by at most so many warps. busy: cycles that others take anyway; then as many as that allows, so
 * that little is loaded. */
static void high_choose(GradientCut *c, uint32_t most, double busy)
{
	GradientCut best = *c;
	double least = 0;

	for (uint32_t high = 1; high <= MOST_HIGH; high *= 2) {
		GradientCut d = *c;
		d.high = high;
		cut_panels(&d, false);
		double cost = row_cost(&d);
		bool fits = ceil_div(tasks_of(&d), 32) <= most;
		if ((fits && (!least || cost < least || cost < busy)) || (!least && high == MOST_HIGH)) {
			least = cost;
			best = d;
		}
	}
	*c = best;
}

/* Rows of threads, of the largest dense gradient first. most: warps; share: of an inlined one. */
static void highs_choose(Kernel *k, uint32_t most, uint32_t share)
{
	const DeviceStep *g = k->s->step + k->s->list->gradient;
	uint32_t steps = k->s->list->steps - k->s->list->gradient, largest = 0, size = 0;

	for (uint32_t i = 0; i < steps; i++) {
		GradientCut *c = &k->cut[i];
		c->high = 1;
		cut_panels(c, g[i].kind == STEP_GRADIENT_INDEX);
		if (g[i].kind == STEP_GRADIENT && !c->inlined && tasks_of(c) > size) {
			largest = i;
			size = tasks_of(c);
		}
	}
	if (size)
		high_choose(&k->cut[largest], most, 0);
	for (uint32_t i = 0; i < steps; i++)
		if (g[i].kind == STEP_GRADIENT && k->cut[i].inlined)
			high_choose(&k->cut[i], share, 0);
		else if (g[i].kind == STEP_GRADIENT && i != largest)
			high_choose(&k->cut[i], most, k->overlaid ? 0 : row_cost(&k->cut[largest]));
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
	uint32_t most = lists && !k->overlaid ? warps / 2 : warps;
	highs_choose(k, most, warps / 2 / max_u32(inlined, 1));
	for (uint32_t i = 0; i < steps; i++) {
		GradientCut *c = &k->cut[i];
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
	uint32_t ahead = AHEAD * 16 * widest, room = s->shared - min_u32(s->shared, k->at_staged + ahead);
	k->next_at = 0;
	k->piece = all;
	if (room / (quads * 16) < all + 1) { /* two pieces, of which one is staged while the other is added */
		uint32_t fits = (room - min_u32(room, ahead)) / 2 / (quads * 16);
		k->piece = min_u32((fits - min_u32(fits, 1)) / ROWS_TURN * ROWS_TURN, MOST_PIECE);
		k->next_at = quads * (k->piece + 1) * 16 + ahead;
	}
	if (!k->piece || (k->next_at && s->job->data.from)) {
		k->bytes = UINT32_MAX; /* no room */
		return;
	}
	uint32_t at = k->at_staged, quad = (k->piece + 1) * 16; /* a row of -0 follows */
	for (uint32_t i = 0; i < steps; i++) {
		if (k->cut[i].inlined)
			continue;
		if (k->overlaid)
			at = k->at_staged;
		k->cut[i].at_a = at;
		k->cut[i].at_b = at += a_quads(&g[i], &k->cut[i]) * quad;
		at += k->cut[i].quads * quad;
		k->bytes = max_u32(k->bytes, at + k->next_at + ahead);
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
		GradientCut d = { .rows = g->depth, .quads = matrix_quads(g), .high = MOST_HIGH };
		cut_panels(&d, false);
		uint32_t tasks = tasks_of(&d), own = (uint32_t)ceil_div(tasks, 32);
		bool pads = ceil_div(max_u32(g->depth, g->cols), 4) <= s->threads / ROWS_TURN; /* one quad for each thread */
		k->cut[i].inlined = k->overlaid && g->kind == STEP_GRADIENT && threads + tasks <= k->workers / 4 &&
		                    warps + own <= k->workers / 64 && pads;
		threads += k->cut[i].inlined ? tasks : 0;
		warps += k->cut[i].inlined ? own : 0;
	}
}

/* Does the data have these columns of rows as they are? The last input is followed by a 1. */
static bool find_inputs(const Kernel *k, const DeviceStep *g, GradientCut *c)
{
	const Job *j = k->s->job;

	for (uint32_t i = 0; i < j->input_columns && g->kind == STEP_GRADIENT && g->a == BUF_ACT && j->data.x; i++) {
		const InputColumns *in = &k->s->input[i];
		uint32_t count = in->count + (in->input + in->count == j->data.inputs), past = g->a_col - in->col;
		if (g->a_col < in->col || past + g->depth > count || (in->input + past) % 4)
			continue;
		c->x = in->input + past;
		return true;
	}
	return false;
}

void gradient_ranges(Kernel *k)
{
	const EmitSource *s = k->s;

	for (uint32_t i = 0; i < s->list->steps - s->list->gradient; i++) {
		const DeviceStep *g = &s->step[s->list->gradient + i];
		bool inlined = k->cut[i].inlined;
		cut_choose(k, g, &k->cut[i]);
		k->cut[i].inlined = inlined;
		k->cut[i].straight = !inlined && !k->local && !s->test && find_inputs(k, g, &k->cut[i]);
	}
}

bool any_straight(const Kernel *k)
{
	for (uint32_t i = 0; i < k->s->list->steps - k->s->list->gradient && !k->s->tiled; i++)
		if (k->cut[i].straight)
			return true;
	return false;
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
	if (s->job->data.from) {
		uint32_t masks = s->job->data.inputs * ((uint32_t)ceil_div(s->leaf_rows, 32) | 1) * 4;
		k->bytes = max_u32(k->bytes, k->at_mask + (uint32_t)round_up(masks, 16));
	}
}

/* ---- staging ---- */

static void workers_barrier(Kernel *k) { ins(k->e, "bar.sync 1, #", k->workers); }

/* Rows of zeros up to a full turn of rows. */
static void rows_pad(Kernel *k, uint32_t bytes, Reg to, Reg rows)
{
	Emit *e = k->e;
	Reg full = op2(e, REG_R, "and.b32", add(e, rows, imm(ROWS_TURN - 1)), imm(~(uint32_t)(ROWS_TURN - 1)));
	Loop pad = loop_begin(e, add(e, mul(e, rows, bytes), mul(e, k->tid, 16)), mul(e, full, bytes), k->workers * 16);

	ins(e, "st.shared.v4.f32 [$], {0f00000000, 0f00000000, 0f00000000, 0f00000000}", add(e, to, pad.i));
	loop_end(e, &pad);
}

/* Rows row0 .. row0 + rows - 1 of a part, which are one piece of memory. */
static void part_stage(Kernel *k, uint32_t region, Reg part, Reg to, Reg row0, Reg rows)
{
	Emit *e = k->e;
	uint32_t bytes = k->exchanged[region].part * 16, turn = k->workers * 16, most = k->piece * bytes;
	Reg from = place(e, exchange_address(k, region, part, row0), k->tid, 16), at = mad(e, k->tid, 16, to);
	Reg mine = reg(e, REG_R); /* bytes from this thread's first quad to the end; not positive: none */

	ins(e, "sub.s32 $, $, $", mine, mul(e, rows, bytes), mul(e, k->tid, 16));
	for (uint32_t done = 0; done < most; done += turn)
		ins(e, "@$ cp.async.cg.shared.global [$+#], [$+#], 16", op2(e, REG_P, "setp.gt.s32", mine, imm(done)), at, done,
		    from, done);
	rows_pad(k, bytes, to, rows);
}

/* The same of inputs of cases; row: the first of the part in the matrix. */
static void inputs_part_stage(Kernel *k, const GradientCut *c, Reg row, Reg to, Reg row0, Reg rows)
{
	Emit *e = k->e;
	enum { UNROLLED = 8 };
	const DeviceData *d = &k->s->job->data;
	uint32_t quads = (uint32_t)ceil_div(c->rows, 4), all = k->piece * quads;
	Reg first = add(e, op2(e, REG_R, "shr.u32", add(e, row, imm(0)), imm(2)), imm(c->x / 4)), x = POINTER(k, data.x);

	for (uint32_t begin = 0; begin < all; begin += k->workers * UNROLLED) {
		Reg number[UNROLLED], quad[UNROLLED], is[UNROLLED], at[UNROLLED];
		uint32_t n = (uint32_t)min_u64(ceil_div(all - begin, k->workers), UNROLLED);
		for (uint32_t i = 0; i < n; i++) {
			Reg task = add(e, k->tid, imm(begin + i * k->workers)), own = divide(e, task, quads);
			quad[i] = add(e, first, modulo(e, task, quads, own));
			is[i] = op2(e, REG_P, "and.pred", less(e, own, rows), less(e, quad[i], imm(d->x_row / 4)));
			at[i] = mad(e, task, 16, to);
			number[i] = op1(e, REG_R, "mov.u32", imm(0));
			ins(e, "@$ ld.shared.u32 $, [$+#]", is[i], number[i], mad(e, add(e, row0, own), 4, k->memory), k->at_cases);
		}
		for (uint32_t i = 0; i < n; i++)
			ins(e, "@$ cp.async.cg.shared.global [$], [$], 16", is[i], at[i],
			    place(e, place(e, x, number[i], d->x_row * 4), quad[i], 16));
	}
	rows_pad(k, quads * 16, to, rows);
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

/* Operands of gradients begin .. end_step - 1, `offset` bytes behind those of the first piece; under way. */
static void piece_stage(Kernel *k, uint32_t begin, uint32_t end_step, Reg row0, Reg rows, Reg offset)
{
	const EmitSource *s = k->s;
	Emit *e = k->e;

	for (uint32_t i = s->list->gradient + begin; i < s->list->gradient + end_step; i++) {
		const DeviceStep *g = &s->step[i];
		const GradientCut *c = &k->cut[i - s->list->gradient];
		Range r = range_of(k, c);
		uint32_t end = if_begin(e, r.is_mine);
		Reg a = add(e, add(e, k->memory, imm(c->at_a)), offset), b = add(e, add(e, k->memory, imm(c->at_b)), offset);
		if (c->straight)
			inputs_part_stage(k, c, r.row, a, row0, rows);
		else if (g->kind == STEP_GRADIENT)
			part_stage(k, c->from_a, r.down, a, row0, rows);
		part_stage(k, c->from_b, r.across, b, row0, rows);
		if (g->kind == STEP_GRADIENT_INDEX)
			pads_stage(k, c);
		if_end(e, end);
	}
	ins(e, "cp.async.commit_group");
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
	Reg panel = c->panels > 1 ? divide(e, number, c->each) : imm(0);
	Reg own = c->panels > 1 ? modulo(e, number, c->each, panel) : number;
	Reg group = divide(e, own, c->panel), row = mul(e, group, c->high);
	Reg quad = mad(e, panel, c->panel, modulo(e, own, c->panel, group));
	uint32_t b = s->kind == STEP_GRADIENT ? s->c : BUF_DELTA;

	p->is_mine = op2(e, REG_P, "and.pred", r.is_mine, less(e, thread, imm(c->threads)));
	and_also(e, p, less(e, number, imm(tasks_of(c))));
	if (groups_of(c) * c->panel < c->each)
		and_also(e, p, less(e, group, imm(groups_of(c))));
	if (c->panels * c->panel > c->quads)
		and_also(e, p, less(e, quad, imm(c->quads)));
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
	} else {
		p->a_row = a_quads(s, c) * 16;
		p->b_row = c->quads * 16;
		p->a = add(e, mad(e, row, 4, k->memory), imm(c->at_a));
		p->b = add(e, mad(e, quad, 16, k->memory), imm(c->at_b));
	}
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
	if (c->high == 2)
		ins(e, "ld.shared.v2.f32 {$, $}, [$+#]", p->a[0], p->a[1], a, offset);
	if (c->high == 1)
		ins(e, "ld.shared.f32 $, [$+#]", p->a[0], a, offset);
}

static void pair_add(Emit *e, const GradientCut *c, const RowPair *r, const Part *p)
{
	for (uint32_t h = 0; h < c->high; h++)
		for (uint32_t n = 0; n < 4; n++)
			ins(e, "fma.rn.ftz.f32 $, $, $, $", p->sum[h][n], r->a[h], r->b[n], p->sum[h][n]);
}

/* Rows of a piece, ROWS_TURN at a time: some are loaded while those before are added. */
static void dense_rows(Kernel *k, const GradientCut *c, const Part *p, Reg rows, Reg offset)
{
	Emit *e = k->e;
	enum { MOST = 8 };
	uint32_t ahead = c->high >= 8 ? 2 : c->high >= 4 ? 4 : MOST, parts = ROWS_TURN / ahead; /* an even number */
	RowPair pair[2][MOST];
	Reg a = reg(e, REG_R), b = reg(e, REG_R);

	ins(e, "add.u32 $, $, $", a, p->a, offset);
	ins(e, "add.u32 $, $, $", b, p->b, offset);
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

static void gradient_rows(Kernel *k, const DeviceStep *s, const GradientCut *c, const Part *p, Reg rows, Reg offset)
{
	uint32_t end = if_begin(k->e, p->is_mine);

	if (s->kind == STEP_GRADIENT)
		dense_rows(k, c, p, rows, offset);
	else
		list_rows(k, p);
	if_end(k->e, end);
}

/* Rows of gradients first .. end - 1, whose operands are there. */
static void parts_add(Kernel *k, uint32_t first, uint32_t end, uint32_t round, Part *part, Reg rows, Reg offset)
{
	const DeviceStep *g = k->s->step + k->s->list->gradient;

	for (uint32_t i = first; i < end; i++)
		if (round < k->cut[i].rounds)
			gradient_rows(k, &g[i], &k->cut[i], &part[i], rows, offset);
}

/* In pieces of rows: the next one is staged while the last is added. */
static void pieces_add(Kernel *k, uint32_t first, uint32_t end, uint32_t round, Part *part)
{
	Emit *e = k->e;
	Reg offset = op1(e, REG_R, "mov.u32", imm(0)), other = op1(e, REG_R, "mov.u32", imm(k->next_at));

	piece_stage(k, first, end, imm(0), op2(e, REG_R, "min.u32", k->rows, imm(k->piece)), imm(0));
	Loop l = loop_begin(e, imm(0), k->rows, k->piece);
	Reg next = add(e, l.i, imm(k->piece)), left = op2(e, REG_R, "sub.u32", k->rows, l.i);
	Reg after = op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", k->rows, next), next);
	piece_stage(k, first, end, next, op2(e, REG_R, "min.u32", after, imm(k->piece)), other);
	ins(e, "cp.async.wait_group 1");
	workers_barrier(k);
	spent(k, SPENT_KINDS + 29);
	parts_add(k, first, end, round, part, op2(e, REG_R, "min.u32", left, imm(k->piece)), offset);
	spent(k, SPENT_KINDS + 30);
	workers_barrier(k);
	ins(e, "sub.u32 $, #, $", offset, k->next_at, offset);
	ins(e, "sub.u32 $, #, $", other, k->next_at, other);
	loop_end(e, &l);
}

/* Gradients first .. end - 1: operands of all of them are staged together. before: others were there before. */
static void gradients_emit(Kernel *k, uint32_t first, uint32_t end, uint32_t before)
{
	const EmitSource *s = k->s;
	Emit *e = k->e;
	uint32_t rounds = 1;
	const DeviceStep *g = s->step + s->list->gradient;
	Part *part = NEW(&s->cx->scratch, end, Part);

	for (uint32_t i = first; i < end; i++)
		rounds = max_u32(rounds, k->cut[i].rounds);
	remark(e, "gradient: %u rounds, pieces of %u rows", rounds, k->piece);
	for (uint32_t i = first; i < end; i++)
		remark(e, "  %u threads have %u rows by 4", k->cut[i].threads, k->cut[i].high);
	for (uint32_t round = 0; round < rounds; round++) {
		for (uint32_t i = first; i < end; i++)
			if (round < k->cut[i].rounds)
				part_begin(k, &g[i], &k->cut[i], round, &part[i]);
		if (before && round == 0)
			workers_barrier(k); /* what was there is no longer needed */
		if (k->next_at) {
			pieces_add(k, first, end, round, part);
		} else {
			if (!k->local && round == 0) {
				piece_stage(k, first, end, imm(0), k->rows, imm(0));
				ins(e, "cp.async.wait_all");
				workers_barrier(k);
				spent(k, SPENT_KINDS + 29);
			}
			parts_add(k, first, end, round, part, k->rows, imm(0));
		}
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
			gradient_rows(k, &k->s->step[k->s->list->gradient + i], &k->cut[i], &k->part[i], k->my_rows, imm(0));
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
