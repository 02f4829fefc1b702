/* SPDX-License-Identifier: MIT */
/* bf16: an update. In: the plan. Out: its text, between the barriers of train.c.
 *
 * A block of a team has slices of its leaf: rows forward and backward, then the gradient of these rows alone, which
 * goes to global memory. So teams have no barrier: sums of slices meet in the update. Where one block has all slices of
 * the one leaf, its sums stay in registers and become the update. */
#include "half_emit.h"

/* Rows and cases of a leaf. Returns its address. */
static Reg leaf_find(Kernel *k, Reg update)
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

/* Rows row0 .. of those below end: block_rows at most. */
static void chunk_rows(Kernel *k, Reg row0, Reg end)
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
	half_inputs(k);
	half_pads(k);
	targets_stage(k);
	if (staged)
		if_end(e, same_leaf);
}

/* By threads from `first` on, as many as there are rows, or a part of them. */
static void judge_some(Kernel *k, uint32_t first)
{
	uint32_t threads = k->block_rows, most = k->s->threads - first;

	if (threads > most)
		threads = threads % 64 == 0 && most >= 64 ? 64 : 32;
	uint32_t end = if_begin(k->e, less(k->e, k->tid, imm(first + threads)));
	judge_rows(k, first, threads);
	if_end(k->e, end);
}

static void verdicts(Kernel *k)
{
	if (k->judged)
		judge_some(k, 0);
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
	half_steps(k, 0, k->s->list->gradient);
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
		half_changes(k, chunk);
	spent(k, SPENT_GRADIENT);
	barrier_block(k->e);
}

/* Rows of a slice: those of the kind of update. */
static Reg slice_rows(Kernel *k, Reg leaves)
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
	Half *h = k->half;
	uint32_t longest = max_u32(s->slice[0], s->kinds_of_leaves > 1 ? s->slice[1] : 0), all = most_slices(s);
	uint32_t chunks = (uint32_t)ceil_div(min_u32(longest, s->leaf_rows), k->block_rows);
	Reg rows = slice_rows(k, leaves);

	Loop l = loop_begin(e, k->member, imm(all), s->team_blocks);
	h->slice = l.i;
	h->first = rows.type == REG_INT ? mul(e, l.i, rows.n) : op2(e, REG_R, "mul.lo.u32", l.i, rows);
	Reg end = op2(e, REG_R, "min.u32", add(e, h->first, rows), k->rows);
	half_sums_begin(k);
	Loop c = { .i = imm(0) };
	if (chunks > 1)
		c = loop_count(e, chunks);
	chunk_rows(k, mad(e, c.i, k->block_rows, h->first), end);
	chunk_stage(k, leaf, NULL);
	chunk_emit(k, c.i);
	if (chunks > 1)
		loop_end(e, &c);
	half_sums_end(k);
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

void half_leaf(Kernel *k, Reg update, Reg leaves, const Barriers *b)
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
void half_prefetch(Kernel *k, Reg update, Reg staged)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Half *h = k->half;
	bool some = s->kinds_of_leaves > 1; /* teams may have none */

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

/* Gradients by some warps, verdicts by the others, if these are enough. */
static void changes_emit(Kernel *k)
{
	Emit *e = k->e;
	const Half *h = k->half;
	uint32_t warps = k->s->threads / 32, least = k->judged ? k->block_rows / 32 : warps / 2;

	if (h->rounds > 1 || h->tasks + least > warps || !has_step(k, STEP_SCORES)) {
		verdicts(k);
		spent(k, SPENT_KINDS + 28);
		half_changes(k, imm(0));
		return;
	}
	uint32_t others = label(e), end = label(e);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", k->tid, imm(32 * h->tasks)), others);
	half_changes(k, imm(0));
	ins(e, "bra L#", end);
	label_here(e, others);
	if (k->judged)
		judge_some(k, 32 * h->tasks);
	else
		scores_emit(k, has_step(k, STEP_CODES), 32 * h->tasks, k->s->threads - 32 * h->tasks);
	label_here(e, end);
}

/* Rows and cases of this leaf stay known until its tally is formed; those of the next replace them before. */
void half_update(Kernel *k, Reg update, Reg next, Reg staged, const Barriers *b)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Half *h = k->half;
	Kernel now = *k;
	uint32_t last = s->teams * s->team_blocks - 1;

	half_sums_begin(k);
	rows_emit(k);
	changes_emit(k);
	spent(k, SPENT_GRADIENT);
	if (!h->deferred)
		tallies_emit(k, update, b, false);
	half_sums_end(k);
	spent(k, SPENT_TEAM_AFTER);
	barrier_arrive(k, &b->grid);
	now.rows = op1(e, REG_R, "mov.u32", k->rows);
	now.cases = op1(e, REG_D, "mov.u64", k->cases);
	Reg leaves = op1(e, REG_R, "mov.u32", h->leaves);
	half_prefetch(k, next, staged);
	spent(k, SPENT_KINDS + 27);
	barrier_wait(k, &b->grid);
	spent(k, SPENT_GRID);
	uint32_t tally = label(e), end = label(e);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", k->tid, imm(k->workers)), tally);
	if (!needs_pending(s))
		update_joined(k, leaves, false);
	ins(e, "bra L#", end);
	label_here(e, tally);
	uint32_t other = if_begin(e, same(e, k->block, imm(last)));
	if (h->deferred) {
		tally_leaf(&now, imm(1));
		ins(e, "bar.warp.sync 0xffffffff");
	}
	tally_update(k, update);
	if_end(e, other);
	label_here(e, end);
	if (needs_pending(s))
		leaves_finish(k, leaves, &b->grid);
	spent(k, SPENT_UPDATE);
	barrier_all(k, &b->grid);
	spent(k, SPENT_GRID_AFTER);
}

/* One leaf, all of it in this block. */
void half_direct(Kernel *k, Reg update, Reg staged, const Barriers *b)
{
	Emit *e = k->e;
	RuleNumbers n;
	Reg leaf = leaf_find(k, update);
	uint32_t chunks = (uint32_t)ceil_div(k->s->leaf_rows, k->block_rows);

	rule_numbers(k, &n);
	k->numbers = &n;
	k->half->first = imm(0);
	half_sums_begin(k);
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
	half_sums_end(k);
	spent(k, SPENT_UPDATE);
	k->numbers = NULL;
	barrier_block(e);
	spent(k, SPENT_GRID_AFTER);
}
