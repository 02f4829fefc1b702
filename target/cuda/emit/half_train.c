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

/* Rows of the chunk forward and backward; leaf: of which rows are there already if it is the one that was staged. */
static void chunk_emit(Kernel *k, Reg chunk, Reg leaf, Reg staged, bool once)
{
	Emit *e = k->e;
	uint32_t same_leaf = once ? unless_begin(e, op2(e, REG_P, "setp.eq.u64", leaf, staged)) : 0;

	if (once)
		ins(e, "mov.u64 $, $", staged, leaf);
	half_inputs(k);
	half_pads(k);
	targets_stage(k);
	if (once)
		if_end(e, same_leaf);
	ins(e, "cp.async.wait_all");
	barrier_block(e);
	spent(k, SPENT_KINDS + 0);
	half_steps(k, 0, k->s->list->gradient);
	spent(k, SPENT_ROWS);
	if (k->s->test)
		outputs_store(k);
	verdicts_emit(k);
	spent(k, SPENT_KINDS + 28);
	if (!k->s->test)
		half_changes(k, chunk);
	spent(k, SPENT_GRADIENT);
	barrier_block(e);
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
static void slices_emit(Kernel *k, Reg leaves, Reg leaf, Reg staged)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Half *h = k->half;
	uint32_t longest = max_u32(s->slice[0], s->kinds_of_leaves > 1 ? s->slice[1] : 0), all = most_slices(s);
	uint32_t chunks = (uint32_t)ceil_div(min_u32(longest, s->leaf_rows), k->block_rows);
	bool once = s->leaves[0] <= s->teams && (s->kinds_of_leaves == 1 || s->leaves[1] <= s->teams) &&
	            all <= s->team_blocks && chunks == 1;
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
	chunk_emit(k, c.i, leaf, staged, once);
	if (chunks > 1)
		loop_end(e, &c);
	half_sums_end(k);
	loop_end(e, &l);
}

static void tests_emit(Kernel *k, Reg leaf, Reg staged)
{
	Emit *e = k->e;
	uint32_t rows = k->block_rows;
	Loop l = loop_begin(e, mul(e, k->member, rows), k->rows, rows * k->s->team_blocks);

	chunk_rows(k, l.i, k->rows);
	chunk_emit(k, imm(0), leaf, staged, false);
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

void half_leaf(Kernel *k, Reg update, Reg leaves, Reg staged, const Barriers *b)
{
	Reg leaf = leaf_find(k, update);

	if (k->s->test)
		tests_emit(k, leaf, staged);
	else
		slices_emit(k, leaves, leaf, staged);
	tallies_emit(k, update, b, false);
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
		chunk_emit(k, imm(0), leaf, staged, true);
	} else {
		Loop l = loop_begin(e, imm(0), k->rows, k->block_rows);
		chunk_rows(k, l.i, k->rows);
		chunk_emit(k, imm(0), leaf, staged, false);
		loop_end(e, &l);
	}
	half_sums_end(k);
	spent(k, SPENT_UPDATE);
	tallies_emit(k, update, b, true);
	k->numbers = NULL;
	barrier_block(e);
	spent(k, SPENT_GRID_AFTER);
}
