/* SPDX-License-Identifier: MIT */
/* bf16: updates where threads have different work. In: the plan. Out: the text of an update, between the barriers of
 * train.c.
 *
 * SIDE_THREADS of them copy the cases of the next chunk and form errors, verdicts and tallies. Copies of cases are in
 * two places by turns, numbers of updates too. Barriers: CASES_THERE before a chunk, for which side threads only
 * arrive; ROWS_THERE after its rows; ROWS_JUDGED before deferred rows are overwritten, for which they only arrive. Must
 * hold: the gradient of a chunk reads its cases, so that the next but one comes after ROWS_THERE of the next. */
#include <stddef.h>

#include "bf16_emit.h"

static uint32_t chunks_of(const Kernel *k)
{
	return k->bf16->once ? 1 : (uint32_t)ceil_div(k->s->leaf_rows, k->block_rows);
}

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

static uint32_t computing(const Kernel *k) { return k->s->threads - SIDE_THREADS; }

static Kernel side_of(const Kernel *k) { return part_of_threads(k, computing(k), SIDE_THREADS); }

static void cases_turn(Kernel *k)
{
	Reg at = k->bf16->cases_offset;

	ins(k->e, "sub.u32 $, #, $", at, k->bf16->cases_bytes, at);
}

static void numbers_turn(Kernel *k)
{
	Reg at = k->bf16->numbers_offset;

	ins(k->e, "sub.u32 $, #, $", at, NUMBERS_BYTES, at);
}

/* Rows of a chunk of the leaf, or of the block's slice of it. */
static void part_rows(Kernel *k, Reg chunk)
{
	Emit *e = k->e;

	if (!k->bf16->once) {
		chunk_rows(k, mul(e, chunk, k->block_rows), k->rows);
		return;
	}
	Reg rows = slice_rows(k, k->bf16->leaves);
	Reg first = rows.type == REG_INT ? mul(e, k->member, rows.n) : op2(e, REG_R, "mul.lo.u32", k->member, rows);
	chunk_rows(k, first, op2(e, REG_R, "min.u32", add(e, first, rows), k->rows));
}

/* Chunk `chunk` of the leaf that is at hand in k, under way to where offset says. */
static void ahead_stage(Kernel *k, Reg chunk, Reg offset)
{
	Emit *e = k->e;
	Kernel to = *k;

	to.memory = add(e, k->memory, offset);
	part_rows(&to, chunk);
	bf16_inputs(&to);
	targets_stage(&to);
	ins(e, "@$ st.shared.v4.u32 [$+#], {$, $, $, $}", same(e, to.tid, imm(0)), to.memory, k->bf16->at_count, to.my_rows,
	    k->bf16->ahead[3], k->bf16->leaves, to.rows);
}

/* The leaf of an update, and its numbers, under way to where offset says. A team that has no leaf in it has one without
 * rows. */
static void ahead_find(Kernel *k, Reg update, Reg offset)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;
	Reg param = load(e, REG_R, "ld.global.nc.u32", update, offsetof(DeviceUpdate, param));
	uint32_t none = 0;

	ins(e, "ld.global.nc.u8 $, [$+#]", h->ahead[3], update, (uint32_t)offsetof(DeviceUpdate, ends_epoch));
	if (k->s->kinds_of_leaves > 1) {
		ins(e, "ld.global.nc.u32 $, [$+#]", h->leaves, update, (uint32_t)offsetof(DeviceUpdate, leaves));
		ins(e, "mov.u32 $, 0", k->rows);
		none = if_begin(e, less(e, k->leaf_number, h->leaves));
	}
	leaf_find(k, update);
	if (k->s->kinds_of_leaves > 1)
		if_end(e, none);
	ins(e, "@$ cp.async.ca.shared.global [$+#], [$], 8", less(e, k->tid, imm(P_COUNT)),
	    mad(e, k->tid, 8, add(e, k->memory, offset)), h->at_numbers,
	    place(e, place(e, POINTER(k, param), param, P_COUNT * 8), k->tid, 8));
	if (h->grouped)
		ins(e, "@$ st.shared.u32 [$+#], $", same(e, k->tid, imm(0)), add(e, k->memory, offset),
		    h->at_numbers + P_COUNT * 8, h->ahead[3]);
}

/* Copies of what chunks have of cases use registers of their own: others are those of the chunk at hand. */
static Kernel ahead_of(Kernel *k)
{
	Kernel a = *k;

	a.rows = k->bf16->ahead[0];
	a.row0 = k->bf16->ahead[1];
	a.my_rows = k->bf16->ahead[2];
	a.cases = k->bf16->ahead_cases;
	return a;
}

/* Threads that copy, of all side threads: where they have one slice of an update, others form verdicts meanwhile, if
 * these are few, and the last warp tallies. */
typedef struct Copying {
	uint32_t first, threads;
} Copying;

static Copying copying(const Kernel *k)
{
	if (!k->bf16->once)
		return (Copying){ 0, SIDE_THREADS };
	uint32_t first = 2 * k->block_rows <= SIDE_THREADS ? k->block_rows : 0;
	return (Copying){ first, SIDE_THREADS - TALLY_WARP - first };
}

static void meet(Kernel *k, uint32_t barrier, uint32_t threads) { ins(k->e, "bar.sync #, #", barrier, threads); }

static void side_arrive(Kernel *k, uint32_t barrier, uint32_t threads)
{
	ins(k->e, "bar.arrive #, #", barrier, threads);
}

/* Those that wait for cases, and those that copy them. Of warpgroups, those without rows meet others later (ROWS_FREE),
 * as they end gradients later. */
static uint32_t cases_threads(const Kernel *k)
{
	return (k->bf16->grouped ? group_rows_threads(k) : computing(k)) + copying(k).threads;
}

/* By those that copy. */
static void cases_arrive(Kernel *k)
{
	ins(k->e, "cp.async.wait_all");
	side_arrive(k, CASES_THERE, cases_threads(k));
}

static uint32_t all_scored_threads(const Kernel *k) { return SIDE_THREADS + bf16_scored_threads(k); }

void bf16_side_begin(Kernel *k, Reg update)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;
	Copying c = copying(k);

	h->cases_offset = op1(e, REG_R, "mov.u32", imm(0));
	h->numbers_offset = op1(e, REG_R, "mov.u32", imm(0));
	if (h->grouped)
		h->turn = op1(e, REG_R, "mov.u32", imm(0));
	for (int i = 0; i < 4; i++)
		h->ahead[i] = reg(e, REG_R);
	h->ends = op1(e, REG_R, "mov.u32", imm(0));
	h->rows = reg(e, REG_R);
	h->ahead_cases = reg(e, REG_D);
	ins(e, "mov.u32 $, #", h->leaves, k->s->leaves[0]);
	if (h->once)
		ins(e, "mov.u32 $, $", k->leaf_number, k->team);
	uint32_t end = unless_begin(e, less(e, k->tid, imm(computing(k))));
	Reg own = op2(e, REG_R, "sub.u32", k->tid, imm(computing(k) + c.first));
	uint32_t other = if_begin(e, less(e, own, imm(c.threads)));
	Kernel side = part_of_threads(k, computing(k) + c.first, c.threads), ahead = ahead_of(&side);
	ahead_find(&ahead, update, h->numbers_offset);
	ahead_stage(&ahead, imm(0), h->cases_offset);
	cases_arrive(k);
	if_end(e, other);
	if (h->direct)
		side_arrive(k, ROWS_JUDGED, all_scored_threads(k));
	if (h->grouped)
		side_arrive(k, ROWS_FREE, k->s->threads);
	if_end(e, end);
}

/* ---- one leaf, all of it in this block ---- */

/* Warpgroups: the part of side threads in the gradient of a chunk; after the last, the rule, with numbers of the update
 * at hand. */
static void side_gradient(Kernel *side, Reg is_last)
{
	Emit *e = side->e;
	Kernel part = *side;
	RuleNumbers n;

	group_slices(&part, GROUP_SIDE);
	side_arrive(side, ROWS_FREE, (GROUPS + 1) * GROUP_THREADS);
	uint32_t more = if_begin(e, is_last);
	numbers_turn(&part);
	rule_numbers(&part, &n);
	numbers_turn(&part);
	part.numbers = &n;
	group_apply(&part, GROUP_SIDE);
	side_arrive(side, GROUP_WEIGHTS, (GROUPS + 1) * GROUP_THREADS);
	if_end(e, more);
}

static void side_emit(Kernel *k, Reg update, Reg next)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;
	uint32_t all = k->s->threads, chunks = chunks_of(k);
	Kernel side = side_of(k), ahead = ahead_of(&side);

	ins(e, "mov.u32 $, $", side.rows, ahead.rows);
	ins(e, "mov.u64 $, $", side.cases, ahead.cases);
	ins(e, "mov.u32 $, $", h->ends, h->ahead[3]);
	if (h->grouped)
		group_sums_begin(k, GROUP_SIDE);
	Loop l = loop_count(e, chunks);
	Reg other = op2(e, REG_R, "sub.u32", imm(h->cases_bytes), h->cases_offset);
	part_rows(&side, l.i);
	meet(k, SIDE_MEET, SIDE_THREADS); /* verdicts on the chunk before are there */
	if (chunks == 1)                  /* numbers of the update before are read until its weights are there */
		meet(k, ROWS_THERE, all);
	Reg after = add(e, l.i, imm(1));
	uint32_t same_leaf = if_begin(e, same(e, after, imm(chunks)));
	ins(e, "mov.u32 $, 0", after);
	numbers_turn(k);
	ahead_find(&ahead, next, h->numbers_offset);
	if_end(e, same_leaf);
	ahead_stage(&ahead, after, other);
	if (chunks > 1)
		meet(k, ROWS_THERE, all);
	cases_arrive(k);
	if (h->grouped)
		side_gradient(&side, same(e, l.i, imm(chunks - 1)));
	uint32_t threads = min_u32(SIDE_THREADS, k->block_rows), idle = if_begin(e, less(e, side.tid, imm(threads)));
	deferred_score_rows(&side, 0, threads);
	if_end(e, idle);
	side_arrive(k, ROWS_JUDGED, all_scored_threads(k));
	cases_turn(k);
	loop_end(e, &l);
	meet(k, SIDE_MEET, SIDE_THREADS);
	uint32_t early = unless_begin(e, less(e, side.tid, imm(SIDE_THREADS - TALLY_WARP)));
	tally_leaf(&side, imm(1));
	ins(e, "bar.warp.sync 0xffffffff");
	tally_update(&side, update);
	if_end(e, early);
}

/* Rows of the chunk, and so on: its cases are there. */
void chunk_known(Kernel *k)
{
	const Bf16 *h = k->bf16;

	if (h->grouped) /* others need not be live */
		ins(k->e, "ld.shared.u32 $, [$+#]", k->my_rows, cases_memory(k), h->at_count);
	else
		ins(k->e, "ld.shared.v4.u32 {$, $, $, $}, [$+#]", k->my_rows, h->ends, h->leaves, h->rows, cases_memory(k),
		    h->at_count);
}

void cases_wait(Kernel *k)
{
	meet(k, CASES_THERE, cases_threads(k));
	chunk_known(k);
}

static uint32_t scoring(const Kernel *k) { return min_u32(SIDE_THREADS, k->block_rows); }

/* Rows of the chunk forward and backward, when its cases are there. */
static void apart_rows(Kernel *k, Kernel *part)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;

	if (!h->grouped) /* else rows do */
		cases_wait(k);
	bf16_pads(part);
	if (h->once) { /* weights; several warps may read pads */
		ins(e, "cp.async.wait_all");
		barrier_block(e);
	}
	spent(k, SPENT_TEAM);
	bf16_steps(part, 0, k->s->list->gradient);
	spent(k, SPENT_ROWS);
	if (h->grouped) { /* side threads are not waited for */
		side_arrive(k, ROWS_THERE, k->s->threads);
		meet(k, GROUP_ROWS_THERE, computing(k));
	} else {
		meet(k, ROWS_THERE, k->s->threads);
	}
	spent(k, SPENT_TEAM_AFTER);
}

/* By warpgroups: update after update, up to the end of an epoch. Updates are counted by side threads alone: registers
 * of others that are not used in every chunk would be in L2. */
static void groups_compute(Kernel *k)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;
	uint32_t chunks = chunks_of(k), update = label(e), chunk = label(e);
	Kernel part = part_of_threads(k, 0, computing(k));
	Reg numbers = h->numbers_offset;
	RuleNumbers n;

	e->meeting = computing(k);
	label_here(e, update);
	group_sums_begin(&part, GROUP_ANY);
	label_here(e, chunk);
	apart_rows(k, &part);
	group_slices(&part, GROUP_ANY);
	spent(k, SPENT_GRADIENT);
	cases_turn(k);
	ins(e, "add.u32 $, $, 1", h->turn, h->turn);
	Reg first = same(e, h->turn, imm(chunks)), second = same(e, h->turn, imm(2 * chunks));
	ins(e, "@!$ bra L#", op2(e, REG_P, "or.pred", first, second), chunk);
	ins(e, "@$ mov.u32 $, 0", second, h->turn);
	h->numbers_offset = op3(e, REG_R, "selp.u32", imm(0), imm(NUMBERS_BYTES), first);
	rule_numbers(&part, &n);
	Reg ends = load(e, REG_R, "ld.shared.u32", add(e, k->memory, h->numbers_offset), h->at_numbers + P_COUNT * 8);
	h->numbers_offset = numbers;
	part.numbers = &n;
	group_apply(&part, GROUP_ANY);
	meet(k, GROUP_WEIGHTS, k->s->threads);
	spent(k, SPENT_UPDATE);
	ins(e, "@$ bra L#", same(e, ends, imm(0)), update);
	ins(e, "mov.u32 $, $", h->ends, ends);
	e->meeting = 0;
}

static void apart_compute(Kernel *k)
{
	Emit *e = k->e;
	Kernel part = part_of_threads(k, 0, computing(k));
	RuleNumbers n;

	e->meeting = computing(k);
	bf16_sums_begin(&part);
	Loop l = loop_count(e, chunks_of(k));
	apart_rows(k, &part);
	bf16_sums_add(&part, imm(0));
	barrier_block(e);
	spent(k, SPENT_GRADIENT);
	cases_turn(k);
	loop_end(e, &l);
	rule_numbers(&part, &n);
	numbers_turn(k);
	part.numbers = &n;
	bf16_sums_end(&part);
	barrier_block(e);
	spent(k, SPENT_UPDATE);
	e->meeting = 0;
}

/* ---- one slice at most, its sums meet those of others ---- */

/* Leaves the loop of updates if the one before was to be the last: asked by one thread of each block, for requests of
 * all warps of all blocks to one place take thousands of cycles; known before weights are updated again. */
static void stop_ask(Kernel *k, const Kernel *side)
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
	meet(k, SIDE_MEET, SIDE_THREADS);
}

static Reg stop_known(Kernel *k)
{
	return op2(k->e, REG_P, "setp.ne.u32", load(k->e, REG_R, "ld.shared.u32", k->memory, k->at_info), imm(0));
}

static void side_stop(Kernel *k, uint32_t done)
{
	Emit *e = k->e;
	uint32_t go_on = if_begin(e, stop_known(k));

	side_arrive(k, ROWS_THERE, k->s->threads); /* others wait for them there */
	ins(e, "bra L#", done);
	if_end(e, go_on);
}

/* Cases of the next update, under way: the places of those before are free. */
static void once_copy(Kernel *k, Reg next, Reg to)
{
	Copying c = copying(k);
	Kernel copy = part_of_threads(k, computing(k) + c.first, c.threads), ahead = ahead_of(&copy);

	ahead_find(&ahead, next, k->bf16->numbers_offset);
	ahead_stage(&ahead, imm(0), to);
}

/* Tallies are there before the block arrives at the barrier that ends the update. */
static void once_side(Kernel *k, Reg update, Reg next, const Barriers *b, uint32_t done)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;
	uint32_t threads = scoring(k);
	Copying c = copying(k);
	Kernel side = side_of(k);

	counted_load(&side, k->number);
	stop_ask(k, &side);
	side_stop(k, done);
	if (b->grid.cluster)
		ins(e, "barrier.cluster.arrive.release.aligned");
	ins(e, "ld.shared.v4.u32 {$, $, $, $}, [$+#]", k->my_rows, h->ends, h->leaves, k->rows, cases_memory(k),
	    h->at_count);
	Reg leaves = op1(e, REG_R, "mov.u32", h->leaves);
	part_rows(&side, imm(0));
	numbers_turn(k);
	Reg copies = less(e, add(e, side.tid, imm(0u - c.first)), imm(c.threads));
	uint32_t rest = if_begin(e, copies);
	once_copy(k, next, op2(e, REG_R, "sub.u32", imm(h->cases_bytes), h->cases_offset));
	if_end(e, rest);
	meet(k, ROWS_THERE, k->s->threads);
	uint32_t others = if_begin(e, copies);
	cases_arrive(k); /* not before others have met for the cases at hand */
	if_end(e, others);
	uint32_t idle = if_begin(e, less(e, side.tid, imm(threads)));
	deferred_score_rows(&side, 0, threads);
	meet(k, ROWS_JUDGED, threads);
	if_end(e, idle);
	cases_turn(k);
	if (k->s->team_blocks == 1)
		meet(k, SIDE_MEET, SIDE_THREADS); /* no signal is needed */
	barrier_signal(&side, &b->scored);
	side.signals = SIDE_THREADS - TALLY_WARP;
	uint32_t early = unless_begin(e, less(e, side.tid, imm(side.signals)));
	tallies_form(&side, &side, update, leaves, b);
	if_end(e, early);
	if (!b->grid.cluster) {
		side_arrive(k, TALLIED, k->s->threads);
		return;
	}
	cluster_meet(k);
	ins(e, "barrier.cluster.arrive.release.aligned");
	cluster_meet(k);
}

static void once_compute(Kernel *k, const Barriers *b, uint32_t done)
{
	Emit *e = k->e;
	Bf16 *h = k->bf16;
	Kernel part = part_of_threads(k, 0, computing(k));

	e->meeting = computing(k);
	apart_rows(k, &part);
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
	struct TilesAhead *ahead = tiles_prepare(&part);
	cases_turn(k);
	numbers_turn(k);
	workers_wait(&part, &b->grid);
	spent(k, SPENT_GRID);
	tiles_update(&part, ahead, h->leaves);
	spent(k, SPENT_UPDATE);
	if (!b->grid.cluster)
		meet(k, TALLIED, k->s->threads);
	barrier_all(&part, &b->grid);
	spent(k, SPENT_GRID_AFTER);
	weights_stage(&part); /* under way while the next update begins */
	bf16_weights(&part);
	e->meeting = 0;
}

/* Networks of their own stop at the end of an epoch; else all wait for the tally of every update. */
void bf16_side_update(Kernel *k, Reg update, Reg next, const Barriers *b, uint32_t done)
{
	Emit *e = k->e;
	uint32_t others = label(e), end = label(e);

	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", k->tid, imm(computing(k))), others);
	if (k->bf16->once)
		once_compute(k, b, done);
	else if (k->bf16->grouped)
		groups_compute(k);
	else
		apart_compute(k);
	ins(e, "bra L#", end);
	label_here(e, others);
	if (k->bf16->once)
		once_side(k, update, next, b, done);
	else
		side_emit(k, update, next);
	label_here(e, end);
}
