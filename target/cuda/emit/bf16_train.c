/* SPDX-License-Identifier: MIT */
/* bf16: an update. In: the plan. Out: its text, between the barriers of train.c.
 *
 * A block of a team has slices of its leaf: rows forward and backward, then the gradient of these rows alone, which
 * goes to global memory. So teams have no barrier: sums of slices meet in the update. Where one block has all slices of
 * the one leaf, its sums stay in registers and become the update. */
#include <stdlib.h>
#include <string.h>

#include "bf16_emit.h"
#include "units.h"

Reg leaf_find(Kernel *k, Reg update)
{
	Emit *e = k->e;
	Reg leaf = load(e, REG_D, "ld.global.nc.u64", update, offsetof(DeviceUpdate, leaf));

	leaf = op2(e, REG_D, "add.u64", leaf, op1(e, REG_D, "cvt.u64.u32", k->leaf_number));
	leaf = op2(e, REG_D, "add.u64", op2(e, REG_D, "mul.lo.u64", leaf, imm(sizeof(DeviceLeaf))), POINTER(k, leaf));
	Reg chunk = load(e, REG_D, "ld.global.nc.u64", leaf, offsetof(DeviceLeaf, chunk));
	chunk = op2(e, REG_D, "add.u64", op2(e, REG_D, "mul.lo.u64", chunk, imm(sizeof(DeviceChunk))), POINTER(k, chunk));
	Reg cases = load(e, REG_D, "ld.global.nc.u64", chunk, offsetof(DeviceChunk, cases));
	ins(e, "ld.global.nc.u32 $, [$+#]", k->rows, chunk, (uint32_t)offsetof(DeviceChunk, rows));
	ins(e, "add.u64 $, $, $", k->cases, op2(e, REG_D, "shl.b64", cases, imm(2)), POINTER(k, cases));
	return leaf;
}

void chunk_rows(Kernel *k, Reg row0, Reg end)
{
	Emit *e = k->e;
	Reg left = op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", end, row0), row0);

	ins(e, "mov.u32 $, $", k->row0, row0);
	ins(e, "min.u32 $, $, #", k->my_rows, left, k->block_rows);
}

/* What the chunk's rows need, under way. staged: NULL, or the leaf whose rows are there already. */
static void chunk_stage(Kernel *k, Reg leaf, const Reg *staged)
{
	Emit *e = k->e;
	uint32_t same_leaf = staged ? unless_begin(e, op2(e, REG_P, "setp.eq.u64", leaf, *staged)) : 0;

	if (staged)
		ins(e, "mov.u64 $, $", *staged, leaf);
	bf16_inputs_stage(k);
	bf16_pads_clear(k);
	targets_stage(k);
	if (staged)
		if_end(e, same_leaf);
}

/* By threads from `first` on, as many as there are rows, or a part of them. */
static void score_some(Kernel *k, uint32_t first)
{
	uint32_t threads = k->block_rows, most = k->s->threads - first;

	if (threads > most)
		threads = threads % 64 == 0 && most >= 64 ? 64 : 32;
	uint32_t end = if_begin(k->e, less(k->e, k->tid, imm(first + threads)));
	deferred_score_rows(k, first, threads);
	if_end(k->e, end);
}

static void verdicts(Kernel *k)
{
	if (k->deferred_scores)
		score_some(k, 0);
	else
		verdicts_emit(k);
}

/* Rows of the chunk forward and backward. */
static void rows_emit(Kernel *k)
{
	Emit *e = k->e;

	ins(e, "cp.async.wait_all");
	barrier_block(e);
	spent(k, SPENT_KINDS + 0);
	bf16_steps(k, 0, k->s->list->gradient);
	spent(k, SPENT_ROWS);
	if (k->s->test)
		outputs_store(k);
}

static void chunk_emit(Kernel *k, Reg chunk)
{
	rows_emit(k);
	verdicts(k);
	spent(k, SPENT_KINDS + 28);
	if (!k->s->test)
		bf16_sums_add(k, chunk);
	spent(k, SPENT_GRADIENT);
	barrier_block(k->e);
}

Reg slice_rows(Kernel *k, Reg leaves)
{
	const EmitSource *s = k->s;

	if (s->kinds_of_leaves == 1 || s->slice[0] == s->slice[1])
		return imm(s->slice[0]);
	return op3(k->e, REG_R, "selp.u32", imm(s->slice[0]), imm(s->slice[1]), same(k->e, leaves, imm(s->leaves[0])));
}

static uint32_t most_slices(const EmitSource *s)
{
	uint32_t least = s->slice[0];

	if (s->kinds_of_leaves > 1)
		least = min_u32(least, s->slice[1]);
	return (uint32_t)ceil_div(s->leaf_rows, least);
}

/* The slices of a leaf that the block has. */
static void slices_emit(Kernel *k, Reg leaves, Reg leaf)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Bf16 *h = k->bf16;
	uint32_t longest = max_u32(s->slice[0], s->kinds_of_leaves > 1 ? s->slice[1] : 0), all = most_slices(s);
	uint32_t chunks = (uint32_t)ceil_div(min_u32(longest, s->leaf_rows), k->block_rows);
	Reg rows = slice_rows(k, leaves);

	Loop l = loop_begin(e, k->member, imm(all), s->team_blocks);
	h->slice = l.i;
	h->first = rows.type == REG_INT ? mul(e, l.i, rows.n) : op2(e, REG_R, "mul.lo.u32", l.i, rows);
	Reg end = op2(e, REG_R, "min.u32", add(e, h->first, rows), k->rows);
	bf16_sums_begin(k);
	Loop c = { .i = imm(0) };
	if (chunks > 1)
		c = loop_count(e, chunks);
	chunk_rows(k, mad(e, c.i, k->block_rows, h->first), end);
	chunk_stage(k, leaf, NULL);
	chunk_emit(k, c.i);
	if (chunks > 1)
		loop_end(e, &c);
	bf16_sums_end(k);
	loop_end(e, &l);
}

static void tests_emit(Kernel *k, Reg leaf)
{
	Emit *e = k->e;
	uint32_t rows = k->block_rows;
	Loop l = loop_begin(e, mul(e, k->member, rows), k->rows, rows * k->s->team_blocks);

	chunk_rows(k, l.i, k->rows);
	chunk_stage(k, leaf, NULL);
	chunk_emit(k, imm(0));
	loop_end(e, &l);
}

/* By the last warp: others go on. */
static void tallies_emit(Kernel *k, Reg update, const Barriers *b, bool direct)
{
	Emit *e = k->e;

	barrier_arrive(k, &b->scored);
	uint32_t worker = if_begin(e, op2(e, REG_P, "setp.ge.u32", k->tid, imm(k->workers)));
	uint32_t other = if_begin(e, same(e, k->member, imm(k->s->team_blocks - 1)));
	barrier_poll(k, &b->scored);
	tally_leaf(k, imm(1));
	if (direct) {
		ins(e, "bar.warp.sync 0xffffffff");
		tally_update(k, update);
	}
	if_end(e, other);
	if_end(e, worker);
}

void bf16_leaf(Kernel *k, Reg update, Reg leaves, const Barriers *b)
{
	Reg leaf = leaf_find(k, update);

	if (k->s->test)
		tests_emit(k, leaf);
	else
		slices_emit(k, leaves, leaf);
	tallies_emit(k, update, b, false);
}

/* ---- one slice at most ---- */

/* The block's slice of an update, under way: inputs and targets, if they are not there already. A team that has no leaf
 * in it has a slice without rows. */
void bf16_prefetch(Kernel *k, Reg update, Reg staged)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Bf16 *h = k->bf16;
	bool some = s->kinds_of_leaves > 1; /* teams may have none */

	h->staged_leaf = staged;
	if (some)
		ins(e, "ld.global.nc.u32 $, [$+#]", h->leaves, update, (uint32_t)offsetof(DeviceUpdate, leaves));
	else
		ins(e, "mov.u32 $, #", h->leaves, s->leaves[0]);
	ins(e, "mov.u32 $, $", k->leaf_number, k->team);
	Reg rows = slice_rows(k, h->leaves), leaf = reg(e, REG_D);
	h->slice = k->member;
	ins(e, "mov.u32 $, 0", k->rows);
	ins(e, "mov.u32 $, 0", k->my_rows);
	ins(e, "mov.u32 $, $", h->first,
	    rows.type == REG_INT ? mul(e, k->member, rows.n) : op2(e, REG_R, "mul.lo.u32", k->member, rows));
	uint32_t none = some ? if_begin(e, less(e, k->team, h->leaves)) : 0;
	ins(e, "mov.u64 $, $", leaf, leaf_find(k, update));
	chunk_rows(k, h->first, op2(e, REG_R, "min.u32", add(e, h->first, rows), k->rows));
	chunk_stage(k, leaf, &staged);
	if (some)
		if_end(e, none);
}

void tallies_form(Kernel *k, Kernel *now, Reg update, Reg leaves, const Barriers *b)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Barrier tallied = { .counter = place_at(e, POINTER(k, barrier), 4), .turn = b->team.turn, .blocks = s->teams };
	uint32_t other = if_begin(e, same(e, k->member, imm(s->team_blocks - 1)));
	TallyPrefetch ahead = tally_prefetch(k, update);

	barrier_poll(k, &b->scored);
	uint32_t none = if_begin(e, less(e, k->team, leaves));
	tally_leaf(now, imm(1));
	if_end(e, none);
	ins(e, "bar.warp.sync 0xffffffff");
	barrier_signal(k, &tallied);
	uint32_t before = if_begin(e, same(e, k->block, imm(s->teams * s->team_blocks - 1)));
	barrier_poll(k, &tallied);
	tally_finish(k, &ahead);
	if_end(e, before);
	if_end(e, other);
}

/* Gradients by some warps, verdicts by the others, if these are enough. */
static void changes_emit(Kernel *k)
{
	Emit *e = k->e;
	const Bf16 *h = k->bf16;
	uint32_t warps = k->s->threads / 32, least = k->deferred_scores ? k->block_rows / 32 : warps / 2;

	if (h->rounds > 1 || h->tasks + least > warps || !has_step(k, STEP_SCORES)) {
		verdicts(k);
		spent(k, SPENT_KINDS + 28);
		bf16_sums_add(k, imm(0));
		return;
	}
	uint32_t others = label(e), end = label(e);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", k->tid, imm(32 * h->tasks)), others);
	bf16_sums_add(k, imm(0));
	ins(e, "bra L#", end);
	label_here(e, others);
	if (k->deferred_scores)
		score_some(k, 32 * h->tasks);
	else
		scores_emit(k, has_step(k, STEP_CODES), 32 * h->tasks, k->s->threads - 32 * h->tasks);
	label_here(e, end);
}

/* Rows and cases of this leaf stay known until its tally is formed; those of the next replace them before. */
void bf16_update(Kernel *k, Reg update, Reg next, Reg staged, const Barriers *b)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Bf16 *h = k->bf16;
	Kernel now = *k;

	bf16_sums_begin(k);
	rows_emit(k);
	changes_emit(k);
	spent(k, SPENT_GRADIENT);
	bf16_sums_end(k);
	spent(k, SPENT_TEAM_AFTER);
	barrier_arrive(k, &b->grid);
	now.rows = op1(e, REG_R, "mov.u32", k->rows);
	now.cases = op1(e, REG_D, "mov.u64", k->cases);
	Reg leaves = op1(e, REG_R, "mov.u32", h->leaves);
	barrier_signal(k, &b->scored);
	uint32_t same_update = unless_begin(e, op2(e, REG_P, "setp.eq.u64", next, update));
	bf16_prefetch(k, next, staged);
	if_end(e, same_update);
	struct PartsAhead *ahead = h->at_parts ? parts_prepare(k) : NULL;
	spent(k, SPENT_KINDS + 27);
	uint32_t tally = label(e), end = label(e);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", k->tid, imm(k->workers)), tally);
	workers_wait(k, &b->grid);
	spent(k, SPENT_GRID);
	if (ahead)
		update_parts(k, ahead, h->at_parts, leaves);
	else if (!needs_pending(s))
		update_joined(k, leaves, false);
	ins(e, "bra L#", end);
	label_here(e, tally);
	tallies_form(k, &now, update, leaves, b);
	if (b->grid.cluster)
		cluster_meet(k); /* all threads wait before they arrive again */
	else if (needs_pending(s))
		barrier_poll(k, &b->grid);
	label_here(e, end);
	if (needs_pending(s))
		leaves_finish(k, leaves, &b->grid);
	spent(k, SPENT_UPDATE);
	barrier_all(k, &b->grid);
	spent(k, SPENT_GRID_AFTER);
}

/* ---- one leaf, all of it in this block, which has too few warps for threads apart ---- */

void bf16_single_block(Kernel *k, Reg update, Reg staged, const Barriers *b)
{
	Emit *e = k->e;
	RuleNumbers n;
	Reg leaf = leaf_find(k, update);
	uint32_t chunks = (uint32_t)ceil_div(k->s->leaf_rows, k->block_rows);

	rule_numbers(k, &n);
	k->numbers = &n;
	k->bf16->first = imm(0);
	bf16_sums_begin(k);
	if (chunks == 1) {
		chunk_rows(k, imm(0), k->rows);
		chunk_stage(k, leaf, &staged);
		chunk_emit(k, imm(0));
	} else {
		Loop l = loop_begin(e, imm(0), k->rows, k->block_rows);
		chunk_rows(k, l.i, k->rows);
		chunk_stage(k, leaf, NULL);
		chunk_emit(k, imm(0));
		loop_end(e, &l);
	}
	tallies_emit(k, update, b, true);
	bf16_sums_end(k);
	spent(k, SPENT_UPDATE);
	k->numbers = NULL;
	barrier_block(e);
	spent(k, SPENT_GRID_AFTER);
}

/* ---- steps between tiles, on rows of a block ----
 *
 * In: rows in global memory, rounded or as floats. Out: what these steps write, there too. Rows come in chunks. */

/* Which blocks of 16 columns steps first .. end - 1 read before they write them, or write for later ones. */
typedef struct Moves {
	bool *floats[BUFS], *halves[BF16_BUFS];
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
		if (b < BF16_BUFS)
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
				if (out && buf < BF16_BUFS && operand_later(k, end - 1, buf, col, count))
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

	quad_move(e, here, there, out);
	loop_end(e, &l);
}

static void rows_move(Kernel *k, uint32_t first, uint32_t end, bool out)
{
	uint32_t blocks = (uint32_t)ceil_div(k->s->job->cols, COLUMN_BLOCK), cols = k->s->job->cols;
	Moves m = moves_of(k, first, end, out);

	for (uint32_t b = 0; b < BUFS + BF16_BUFS; b++) {
		bool half = b >= BUFS;
		uint32_t buf = half ? b - BUFS : b, bytes = half ? 2 : 4;
		const bool *which = half ? m.halves[buf] : m.floats[buf];
		for (uint32_t i = 0, run; i < blocks; i += run) {
			for (run = 1; i + run < blocks && which[i + run] == which[i];)
				run++;
			if (!which[i])
				continue;
			uint32_t col = i * COLUMN_BLOCK;
			blocks_move(k, half ? bf16_buffer(k, buf, col) : float_buffer(k, buf, col),
			            half ? k->bf16->at_rows + bf16_column(k, buf, col) : k->at_rows + column_at(k, buf, col),
			            half ? k->bf16->row : k->row, cols * bytes, run * COLUMN_BLOCK * bytes / 16, out);
		}
	}
}

/* What tiles left there is no number. */
static void rows_clear(Kernel *k)
{
	Emit *e = k->e;
	uint32_t bytes = k->bf16->at_rows + k->bf16->row * k->block_rows - k->at_rows;
	Loop l = loop_begin(e, k->tid, imm((uint32_t)ceil_div(bytes, 16)), k->s->threads);

	ins(e, "st.shared.v4.u32 [$+#], {0, 0, 0, 0}", mad(e, l.i, 16, k->memory), k->at_rows);
	loop_end(e, &l);
	barrier_block(e);
}

static void phase_rows(Kernel *k, uint32_t first, uint32_t end, bool scores, bool codes)
{
	Emit *e = k->e;

	rows_clear(k);
	bf16_inputs_stage(k);
	targets_stage(k);
	rows_move(k, first, end, false);
	ins(e, "cp.async.wait_all");
	barrier_block(e);
	bf16_steps(k, first, end);
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
void bf16_phase(Kernel *k, uint32_t first, uint32_t end, bool scores, bool codes)
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
void bf16_ones(Kernel *k)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;

	for (uint32_t i = 0; i < s->one_columns; i++) {
		Reg first = mad(e, k->block, s->threads, k->tid), one = reg(e, REG_H);
		Loop l = loop_begin(e, first, imm(s->batch_rows), s->team_blocks * s->threads);
		ins(e, "mov.u16 $, 0x3f80", one);
		ins(e, "st.global.u16 [$], $", place(e, bf16_buffer(k, BUF_ACT, s->ones[i]), l.i, s->job->cols * 2), one);
		loop_end(e, &l);
	}
}
