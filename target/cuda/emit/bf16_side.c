/* SPDX-License-Identifier: MIT */
/* bf16: updates with side warps (warp specialization). In: the plan. Out: the text of an update, between the barriers
 * of train.c.
 *
 * SIDE_THREADS threads load the cases of the next chunk and compute scores and tallies; the other threads of the block
 * are workers. Cases and parameters of updates have double buffers. Workers wait at NAMED_CASES before a chunk and at
 * NAMED_SCORED before they overwrite deferred rows; side warps only arrive at both. All meet at NAMED_ROWS after the
 * passes of a chunk. Must hold: the gradient of a chunk reads its cases, so its buffer is overwritten only after
 * NAMED_ROWS of the next chunk. */
#include <stddef.h>

#include "bf16_emit.h"

static uint32_t chunks_of(const Kernel *k)
{
	return k->bf16->single_slice ? 1 : (uint32_t)ceil_div(k->s->leaf_rows, k->block_rows);
}

/* A view of the kernel for some of the threads. */
static Kernel part_of_threads(const Kernel *k, uint32_t first, uint32_t threads)
{
	Kernel part = *k;
	EmitSource *s = NEW(&k->s->cx->scratch, 1, EmitSource);

	*s = *k->s;
	s->threads = threads;
	part.s = s;
	part.workers = threads;
	part.signals = 0;
	if (first)
		part.tid = op2(k->e, REG_R, "sub.u32", k->tid, imm(first));
	return part;
}

static uint32_t worker_threads(const Kernel *k) { return k->s->threads - SIDE_THREADS; }

static Kernel side_of(const Kernel *k) { return part_of_threads(k, worker_threads(k), SIDE_THREADS); }

static void cases_swap(Kernel *k)
{
	Reg at = k->bf16->cases_offset;

	ins(k->e, "sub.u32 $, #, $", at, k->bf16->cases_bytes, at);
}

static void params_swap(Kernel *k)
{
	Reg at = k->bf16->params_offset;

	ins(k->e, "sub.u32 $, #, $", at, PARAMS_BYTES, at);
}

/* Rows of a chunk of the leaf; single_slice: of the block's slice. */
static void chunk_rows_find(Kernel *k, Reg chunk)
{
	Emit *e = k->e;

	if (!k->bf16->single_slice) {
		chunk_rows(k, mul(e, chunk, k->block_rows), k->rows);
		return;
	}
	Reg rows = slice_rows(k, k->bf16->leaves);
	Reg first = rows.type == REG_INT ? mul(e, k->member, rows.n) : op2(e, REG_R, "mul.lo.u32", k->member, rows);
	chunk_rows(k, first, op2(e, REG_R, "min.u32", add(e, first, rows), k->rows));
}

/* Cases of a chunk of the leaf that k has, to the buffer at `offset`: copies in flight. */
static void next_stage(Kernel *k, Reg chunk, Reg offset)
{
	Emit *e = k->e;
	Kernel to = *k;

	to.memory = add(e, k->memory, offset);
	chunk_rows_find(&to, chunk);
	bf16_inputs_stage(&to);
	targets_stage(&to);
	ins(e, "@$ st.shared.v4.u32 [$+#], {$, $, $, $}", same(e, to.tid, imm(0)), to.memory, k->bf16->at_count, to.my_rows,
	    k->bf16->next.ends, k->bf16->leaves, to.rows);
}

/* The leaf of an update; copies of its parameters to the buffer at `offset`, in flight. A team without a leaf has one
 * of no rows. */
static void next_find(Kernel *k, Reg update, Reg offset)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;
	Reg param = load(e, REG_R, "ld.global.nc.u32", update, offsetof(DeviceUpdate, param));
	uint32_t none = 0;

	ins(e, "ld.global.nc.u8 $, [$+#]", h->next.ends, update, (uint32_t)offsetof(DeviceUpdate, ends_epoch));
	if (k->s->kinds_of_leaves > 1) {
		ins(e, "ld.global.nc.u32 $, [$+#]", h->leaves, update, (uint32_t)offsetof(DeviceUpdate, leaves));
		ins(e, "mov.u32 $, 0", k->rows);
		none = if_begin(e, less(e, k->leaf_number, h->leaves));
	}
	leaf_find(k, update);
	if (k->s->kinds_of_leaves > 1)
		if_end(e, none);
	ins(e, "@$ cp.async.ca.shared.global [$+#], [$], 8", less(e, k->tid, imm(P_COUNT)),
	    mad(e, k->tid, 8, add(e, k->memory, offset)), h->at_params,
	    place(e, place(e, POINTER(k, param), param, P_COUNT * 8), k->tid, 8));
	if (h->warpgroups)
		ins(e, "@$ st.shared.u32 [$+#], $", same(e, k->tid, imm(0)), add(e, k->memory, offset),
		    h->at_params + P_COUNT * 8, h->next.ends);
}

/* The chunk being loaded has registers of its own. */
static Kernel next_of(Kernel *k)
{
	Kernel a = *k;

	a.rows = k->bf16->next.rows;
	a.row0 = k->bf16->next.row0;
	a.my_rows = k->bf16->next.my_rows;
	a.cases = k->bf16->next.cases;
	return a;
}

/* Side threads that load cases: all; with one slice of an update, the last warp tallies, and if few threads score,
 * these do not load. */
typedef struct Loaders {
	uint32_t first, threads;
} Loaders;

static Loaders loaders(const Kernel *k)
{
	if (!k->bf16->single_slice)
		return (Loaders){ 0, SIDE_THREADS };
	uint32_t first = 2 * k->block_rows <= SIDE_THREADS ? k->block_rows : 0;
	return (Loaders){ first, SIDE_THREADS - TALLY_WARP - first };
}

static void bar_sync(Kernel *k, uint32_t barrier, uint32_t threads) { ins(k->e, "bar.sync #, #", barrier, threads); }

static void bar_arrive(Kernel *k, uint32_t barrier, uint32_t threads)
{
	ins(k->e, "bar.arrive #, #", barrier, threads);
}

/* Threads that wait for cases, and those that load them. Warpgroups without rows end gradients later, so they
 * synchronize later (NAMED_ROWS_READ). */
static uint32_t cases_threads(const Kernel *k)
{
	return (k->bf16->warpgroups ? warpgroup_row_threads(k) : worker_threads(k)) + loaders(k).threads;
}

/* By those that load. */
static void cases_arrive(Kernel *k)
{
	ins(k->e, "cp.async.wait_all");
	bar_arrive(k, NAMED_CASES, cases_threads(k));
}

/* Of the barrier NAMED_SCORED. */
static uint32_t scored_threads(const Kernel *k) { return SIDE_THREADS + bf16_scored_threads(k); }

static uint32_t score_threads(const Kernel *k) { return min_u32(SIDE_THREADS, k->block_rows); }

void bf16_side_begin(Kernel *k, Reg update)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;
	Loaders c = loaders(k);

	h->cases_offset = op1(e, REG_R, "mov.u32", imm(0));
	h->params_offset = op1(e, REG_R, "mov.u32", imm(0));
	if (h->warpgroups)
		h->chunks_done = op1(e, REG_R, "mov.u32", imm(0));
	h->next.rows = reg(e, REG_R);
	h->next.row0 = reg(e, REG_R);
	h->next.my_rows = reg(e, REG_R);
	h->next.ends = reg(e, REG_R);
	h->ends = op1(e, REG_R, "mov.u32", imm(0));
	h->rows = reg(e, REG_R);
	h->next.cases = reg(e, REG_D);
	ins(e, "mov.u32 $, #", h->leaves, k->s->leaves[0]);
	if (h->single_slice)
		ins(e, "mov.u32 $, $", k->leaf_number, k->team);
	uint32_t end = unless_begin(e, less(e, k->tid, imm(worker_threads(k))));
	Reg own = op2(e, REG_R, "sub.u32", k->tid, imm(worker_threads(k) + c.first));
	uint32_t other = if_begin(e, less(e, own, imm(c.threads)));
	Kernel side = part_of_threads(k, worker_threads(k) + c.first, c.threads), loader = next_of(&side);
	next_find(&loader, update, h->params_offset);
	next_stage(&loader, imm(0), h->cases_offset);
	cases_arrive(k);
	if_end(e, other);
	if (h->single_block)
		bar_arrive(k, NAMED_SCORED, scored_threads(k));
	if (h->warpgroups)
		bar_arrive(k, NAMED_ROWS_READ, k->s->threads);
	if_end(e, end);
}

/* ---- single_block: one leaf, all of it in this block ---- */

/* Warpgroups: the side warps' part of the gradient of a chunk; after the last chunk, the rule, with the parameters of
 * the update in use (params_offset is that of the next one). */
static void warpgroup_side(Kernel *side, Reg is_last)
{
	Emit *e = side->e;
	Kernel part = *side;
	RuleNumbers n;

	warpgroup_gradient(&part, WARPGROUP_SIDE);
	bar_arrive(side, NAMED_ROWS_READ, (WARPGROUPS + 1) * WARPGROUP_THREADS);
	uint32_t more = if_begin(e, is_last);
	params_swap(&part);
	rule_numbers(&part, &n);
	params_swap(&part);
	part.numbers = &n;
	warpgroup_apply(&part, WARPGROUP_SIDE);
	bar_arrive(side, NAMED_WEIGHTS, (WARPGROUPS + 1) * WARPGROUP_THREADS);
	if_end(e, more);
}

static void single_block_side(Kernel *k, Reg update, Reg next)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;
	uint32_t all = k->s->threads, chunks = chunks_of(k);
	Kernel side = side_of(k), loader = next_of(&side);

	ins(e, "mov.u32 $, $", side.rows, loader.rows);
	ins(e, "mov.u64 $, $", side.cases, loader.cases);
	ins(e, "mov.u32 $, $", h->ends, h->next.ends);
	if (h->warpgroups)
		warpgroup_sums_begin(k, WARPGROUP_SIDE);
	Loop l = loop_count(e, chunks);
	Reg other = op2(e, REG_R, "sub.u32", imm(h->cases_bytes), h->cases_offset);
	chunk_rows_find(&side, l.i);
	bar_sync(k, NAMED_SIDE, SIDE_THREADS); /* the previous chunk is scored */
	if (chunks == 1)                       /* the previous update reads its parameters until its weights are stored */
		bar_sync(k, NAMED_ROWS, all);
	Reg after = add(e, l.i, imm(1));
	uint32_t same_leaf = if_begin(e, same(e, after, imm(chunks)));
	ins(e, "mov.u32 $, 0", after);
	params_swap(k);
	next_find(&loader, next, h->params_offset);
	if_end(e, same_leaf);
	next_stage(&loader, after, other);
	if (chunks > 1)
		bar_sync(k, NAMED_ROWS, all);
	cases_arrive(k);
	if (h->warpgroups)
		warpgroup_side(&side, same(e, l.i, imm(chunks - 1)));
	uint32_t threads = score_threads(k), idle = if_begin(e, less(e, side.tid, imm(threads)));
	deferred_score_rows(&side, 0, threads);
	if_end(e, idle);
	bar_arrive(k, NAMED_SCORED, scored_threads(k));
	cases_swap(k);
	loop_end(e, &l);
	bar_sync(k, NAMED_SIDE, SIDE_THREADS);
	uint32_t early = unless_begin(e, less(e, side.tid, imm(SIDE_THREADS - TALLY_WARP)));
	tally_leaf(&side, imm(1));
	ins(e, "bar.warp.sync 0xffffffff");
	tally_update(&side, update);
	if_end(e, early);
}

/* When its cases are loaded. */
void chunk_counts_load(Kernel *k)
{
	const Bf16 *h = k->bf16;

	if (h->warpgroups) /* the other registers need not be live */
		ins(k->e, "ld.shared.u32 $, [$+#]", k->my_rows, cases_memory(k), h->at_count);
	else
		ins(k->e, "ld.shared.v4.u32 {$, $, $, $}, [$+#]", k->my_rows, h->ends, h->leaves, h->rows, cases_memory(k),
		    h->at_count);
}

void cases_wait(Kernel *k)
{
	bar_sync(k, NAMED_CASES, cases_threads(k));
	chunk_counts_load(k);
}

/* Forward and backward pass of the chunk, when its cases are loaded. */
static void worker_rows(Kernel *k, Kernel *part)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;

	if (!h->warpgroups) /* else bf16_layers waits */
		cases_wait(k);
	bf16_pads_clear(part);
	if (h->single_slice) { /* weights are loaded; several warps may read pads */
		ins(e, "cp.async.wait_all");
		barrier_block(e);
	}
	spent(k, SPENT_TEAM);
	bf16_steps(part, 0, k->s->list->gradient);
	spent(k, SPENT_ROWS);
	if (h->warpgroups) { /* without a wait for side warps */
		bar_arrive(k, NAMED_ROWS, k->s->threads);
		bar_sync(k, NAMED_GROUP_ROWS, worker_threads(k));
	} else {
		bar_sync(k, NAMED_ROWS, k->s->threads);
	}
	spent(k, SPENT_TEAM_AFTER);
}

/* Loops over updates up to the end of an epoch. Only side warps count updates: registers of workers that are not used
 * in every chunk would be spilled. */
static void single_block_warpgroups(Kernel *k)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;
	uint32_t chunks = chunks_of(k), update = label(e), chunk = label(e);
	Kernel part = part_of_threads(k, 0, worker_threads(k));
	Reg numbers = h->params_offset;
	RuleNumbers n;

	e->meeting = worker_threads(k);
	label_here(e, update);
	warpgroup_sums_begin(&part, WARPGROUP_ANY);
	label_here(e, chunk);
	worker_rows(k, &part);
	warpgroup_gradient(&part, WARPGROUP_ANY);
	spent(k, SPENT_GRADIENT);
	cases_swap(k);
	ins(e, "add.u32 $, $, 1", h->chunks_done, h->chunks_done);
	Reg first = same(e, h->chunks_done, imm(chunks)), second = same(e, h->chunks_done, imm(2 * chunks));
	ins(e, "@!$ bra L#", op2(e, REG_P, "or.pred", first, second), chunk);
	ins(e, "@$ mov.u32 $, 0", second, h->chunks_done);
	h->params_offset = op3(e, REG_R, "selp.u32", imm(0), imm(PARAMS_BYTES), first);
	rule_numbers(&part, &n);
	Reg ends = load(e, REG_R, "ld.shared.u32", add(e, k->memory, h->params_offset), h->at_params + P_COUNT * 8);
	h->params_offset = numbers;
	part.numbers = &n;
	warpgroup_apply(&part, WARPGROUP_ANY);
	bar_sync(k, NAMED_WEIGHTS, k->s->threads);
	spent(k, SPENT_UPDATE);
	ins(e, "@$ bra L#", same(e, ends, imm(0)), update);
	ins(e, "mov.u32 $, $", h->ends, ends);
	e->meeting = 0;
}

static void single_block_workers(Kernel *k)
{
	Emit *e = k->e;
	Kernel part = part_of_threads(k, 0, worker_threads(k));
	RuleNumbers n;

	e->meeting = worker_threads(k);
	bf16_sums_begin(&part);
	Loop l = loop_count(e, chunks_of(k));
	worker_rows(k, &part);
	bf16_sums_add(&part, imm(0));
	barrier_block(e);
	spent(k, SPENT_GRADIENT);
	cases_swap(k);
	loop_end(e, &l);
	rule_numbers(&part, &n);
	params_swap(k);
	part.numbers = &n;
	bf16_sums_end(&part);
	barrier_block(e);
	spent(k, SPENT_UPDATE);
	e->meeting = 0;
}

/* ---- single_slice: its sums are added to those of other blocks ---- */

/* Did the previous update end the job? One thread of each block loads the answer: loads of one address by all warps of
 * all blocks take thousands of cycles. It is known before weights are updated again. */
static void stop_load(Kernel *k, const Kernel *side)
{
	Emit *e = k->e;
	Reg result = POINTER(k, result);
	uint32_t other = if_begin(e, same(e, side->tid, imm(0)));
	Reg stop = load(e, REG_R, "ld.relaxed.gpu.global.u32", result, offsetof(JobResult, stop));
	Reg infinite = load(e, REG_R, "ld.relaxed.gpu.global.u32", result, offsetof(JobResult, infinite));
	Reg ended = op2(e, REG_P, "setp.ne.u32", k->bf16->ends, imm(0));

	infinite = op3(e, REG_R, "selp.u32", infinite, imm(0), ended);
	ins(e, "st.shared.u32 [$+#], $", k->memory, k->at_info, op2(e, REG_R, "or.b32", stop, infinite));
	if_end(e, other);
	bar_sync(k, NAMED_SIDE, SIDE_THREADS);
}

static Reg stop_known(Kernel *k)
{
	return op2(k->e, REG_P, "setp.ne.u32", load(k->e, REG_R, "ld.shared.u32", k->memory, k->at_info), imm(0));
}

/* Leaves the loop of updates if the job has ended. */
static void side_stop(Kernel *k, uint32_t done)
{
	Emit *e = k->e;
	uint32_t go_on = if_begin(e, stop_known(k));

	bar_arrive(k, NAMED_ROWS, k->s->threads); /* workers wait there */
	ins(e, "bra L#", done);
	if_end(e, go_on);
}

/* Cases of the next update, to the free buffer: in flight. */
static void next_load(Kernel *k, Reg next, Reg to)
{
	Loaders c = loaders(k);
	Kernel copy = part_of_threads(k, worker_threads(k) + c.first, c.threads), loader = next_of(&copy);

	next_find(&loader, next, k->bf16->params_offset);
	next_stage(&loader, imm(0), to);
}

/* Tallies are stored before the block arrives at the barrier that ends the update. */
static void single_slice_side(Kernel *k, Reg update, Reg next, const Barriers *b, uint32_t done)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;
	uint32_t threads = score_threads(k);
	Loaders c = loaders(k);
	Kernel side = side_of(k);

	counted_load(&side, k->number);
	stop_load(k, &side);
	side_stop(k, done);
	if (b->grid.cluster)
		ins(e, "barrier.cluster.arrive.release.aligned");
	ins(e, "ld.shared.v4.u32 {$, $, $, $}, [$+#]", k->my_rows, h->ends, h->leaves, k->rows, cases_memory(k),
	    h->at_count);
	Reg leaves = op1(e, REG_R, "mov.u32", h->leaves);
	chunk_rows_find(&side, imm(0));
	params_swap(k);
	Reg copies = less(e, add(e, side.tid, imm(0u - c.first)), imm(c.threads));
	uint32_t rest = if_begin(e, copies);
	next_load(k, next, op2(e, REG_R, "sub.u32", imm(h->cases_bytes), h->cases_offset));
	if_end(e, rest);
	bar_sync(k, NAMED_ROWS, k->s->threads);
	uint32_t others = if_begin(e, copies);
	cases_arrive(k); /* not before workers have passed NAMED_CASES of this update */
	if_end(e, others);
	uint32_t idle = if_begin(e, less(e, side.tid, imm(threads)));
	deferred_score_rows(&side, 0, threads);
	bar_sync(k, NAMED_SCORED, threads);
	if_end(e, idle);
	cases_swap(k);
	if (k->s->team_blocks == 1)
		bar_sync(k, NAMED_SIDE, SIDE_THREADS); /* b->scored has one block: its signal is empty */
	barrier_signal(&side, &b->scored);
	side.signals = SIDE_THREADS - TALLY_WARP;
	uint32_t early = unless_begin(e, less(e, side.tid, imm(side.signals)));
	tallies_form(&side, &side, update, leaves, b);
	if_end(e, early);
	if (!b->grid.cluster) {
		bar_arrive(k, NAMED_TALLIED, k->s->threads);
		return;
	}
	cluster_meet(k);
	ins(e, "barrier.cluster.arrive.release.aligned");
	cluster_meet(k);
}

static void single_slice_workers(Kernel *k, const Barriers *b, uint32_t done)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;
	Kernel part = part_of_threads(k, 0, worker_threads(k));

	e->meeting = worker_threads(k);
	worker_rows(k, &part);
	ins(e, "@$ bra L#", stop_known(k), done);
	h->first = imm(0);
	h->slice = k->member;
	part.rows = k->my_rows;
	bf16_sums_begin(&part);
	bf16_sums_add(&part, imm(0));
	spent(k, SPENT_GRADIENT);
	bf16_sums_end(&part);
	spent(k, SPENT_KINDS + 27);
	barrier_arrive(&part, &b->grid);
	struct TilesPrefetch *prefetch = tiles_prefetch(&part);
	cases_swap(k);
	params_swap(k);
	workers_wait(&part, &b->grid);
	spent(k, SPENT_GRID);
	tiles_update(&part, prefetch, h->leaves);
	spent(k, SPENT_UPDATE);
	if (!b->grid.cluster)
		bar_sync(k, NAMED_TALLIED, k->s->threads);
	barrier_all(&part, &b->grid);
	spent(k, SPENT_GRID_AFTER);
	weights_stage(&part); /* in flight while the next update begins */
	bf16_weights_stage(&part);
	e->meeting = 0;
}

/* Seeds stop at the end of an epoch only; otherwise all wait for the tally of every update. */
void bf16_side_update(Kernel *k, Reg update, Reg next, const Barriers *b, uint32_t done)
{
	Emit *e = k->e;
	uint32_t others = label(e), end = label(e);

	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", k->tid, imm(worker_threads(k))), others);
	if (k->bf16->single_slice)
		single_slice_workers(k, b, done);
	else if (k->bf16->warpgroups)
		single_block_warpgroups(k);
	else
		single_block_workers(k);
	ins(e, "bra L#", end);
	label_here(e, others);
	if (k->bf16->single_slice)
		single_slice_side(k, update, next, b, done);
	else
		single_block_side(k, update, next);
	label_here(e, end);
}
