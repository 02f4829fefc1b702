/* SPDX-License-Identifier: MIT */
/* The kernel: a run of updates in one launch. In: the plan. Out: the text.
 *
 * Barriers: of a block between steps; of a team before the gradient, which reads rows of all its blocks; of the grid
 * before the update, which reads sums of all leaves, and after it, unless sums and weights are posted (join.c). */
#include <stdlib.h>

#include "bf16_emit.h"

/* ---- cycles ---- */

void spent(Kernel *k, uint32_t on)
{
	Emit *e = k->e;

	if (!k->times_steps) /* all would wait for the thread that reads the clock */
		return;
	uint32_t end = if_begin(e, same(e, k->tid, imm(0)));
	Reg now = reg(e, REG_D), last = load(e, REG_D, "ld.shared.u64", k->memory, k->at_cycles);
	ins(e, "mov.u64 $, %clock64", now);
	Reg sum = load(e, REG_D, "ld.shared.u64", k->memory, k->at_cycles + 8 + 8 * on);
	ins(e, "st.shared.u64 [$+#], $", k->memory, k->at_cycles + 8 + 8 * on,
	    op2(e, REG_D, "add.u64", sum, op2(e, REG_D, "sub.u64", now, last)));
	ins(e, "st.shared.u64 [$+#], $", k->memory, k->at_cycles, now);
	if_end(e, end);
}

void spent_begin(Kernel *k)
{
	Emit *e = k->e;

	if (!k->times_steps)
		return;
	uint32_t end = if_begin(e, same(e, k->tid, imm(0)));
	Reg now = reg(e, REG_D);

	ins(e, "mov.u64 $, %clock64", now);
	ins(e, "st.shared.u64 [$+#], $", k->memory, k->at_cycles, now);
	if_end(e, end);
}

void ranks_stage(Kernel *k)
{
	Emit *e = k->e;
	Loop l = loop_begin(e, k->tid, imm(k->s->job->data.inputs), k->s->threads);
	Reg input = load(e, REG_R, "ld.global.nc.u32", place(e, POINTER(k, data.rank), l.i, 4), 0);

	ins(e, "st.shared.u32 [$+#], $", mad(e, l.i, 4, k->memory), k->at_rank, input);
	loop_end(e, &l);
}

void spent_store(Kernel *k)
{
	Emit *e = k->e;

	if (!k->times_steps)
		return;
	Reg kinds = imm(SPENT_KINDS + STEPS_TIMED), result = POINTER(k, result);
	barrier_block(e);
	uint32_t end = if_begin(e, same(e, k->block, imm(0)));
	Loop l = loop_begin(e, k->tid, kinds, k->s->threads);
	Reg cycles = load(e, REG_D, "ld.shared.u64", mad(e, l.i, 8, k->memory), k->at_cycles + 8);
	ins(e, "st.global.u64 [$+#], $", place(e, result, l.i, 8), (uint32_t)offsetof(JobResult, cycles), cycles);
	loop_end(e, &l);
	if_end(e, end);
}

/* ---- barriers: writes of a block before it arrives are visible to blocks that have waited ---- */

enum { MOST_POLLS = 1 << 24 };

Barrier barrier_new(Kernel *k, Reg counter, uint32_t blocks, bool cluster)
{
	Barrier b = { .counter = counter, .turn = reg(k->e, REG_R), .blocks = blocks, .cluster = cluster };

	ins(k->e, "mov.u32 $, 0", b.turn);
	return b;
}

void barrier_turn(Kernel *k, const Barrier *b)
{
	Emit *e = k->e;

	if (b->times)
		ins(e, "mad.lo.u32 $, $, #, #", b->turn, op1(e, REG_R, "cvt.u32.u64", k->number), b->times * b->blocks,
		    ++*b->signals * b->blocks + b->before);
	else
		ins(e, "add.u32 $, $, #", b->turn, b->turn, b->blocks);
}

/* By one thread, of those that have met. */
void barrier_signal(Kernel *k, const Barrier *b)
{
	Emit *e = k->e;

	barrier_turn(k, b);
	if (b->blocks == 1)
		return;
	uint32_t end = if_begin(e, same(e, k->tid, imm(k->signals)));
	/* A fence of both kinds would also discard what the multiprocessor has in its cache. */
	ins(e, "red.release.gpu.global.add.u32 [$], 1", b->counter);
	if_end(e, end);
}

void barrier_arrive(Kernel *k, const Barrier *b)
{
	barrier_block(k->e); /* clusters: threads of the block may go on before those of others are there */
	if (b->cluster)
		ins(k->e, "barrier.cluster.arrive.release.aligned");
	else
		barrier_signal(k, b);
}

void cluster_meet(Kernel *k) { ins(k->e, "barrier.cluster.wait.acquire.aligned"); }

void polls_count(Kernel *k, Reg polls, uint32_t top)
{
	Emit *e = k->e;

	ins(e, "add.u32 $, $, 1", polls, polls);
	ins(e, "@$ bra L#", less(e, polls, imm(MOST_POLLS)), top);
	ins(e, "trap"); /* some block has failed */
}

void barrier_poll(Kernel *k, const Barrier *b)
{
	Emit *e = k->e;
	uint32_t top = label(e), done = label(e);

	if (b->blocks == 1)
		return;
	Reg polls = reg(e, REG_R), count = reg(e, REG_R), left = reg(e, REG_R);
	ins(e, "mov.u32 $, 0", polls);
	label_here(e, top);
	ins(e, "ld.acquire.gpu.global.u32 $, [$]", count, b->counter);
	ins(e, "sub.s32 $, $, $", left, count, b->turn);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.s32", left, imm(0)), done);
	polls_count(k, polls, top);
	label_here(e, done);
}

void teams_poll(Kernel *k, const Barrier *team)
{
	Emit *e = k->e;
	Reg first = place_at(e, POINTER(k, barrier), 4);
	Loop l = loop_begin(e, op2(e, REG_R, "and.b32", k->tid, imm(31)), imm(k->s->teams), 32);
	Barrier b = *team;
	uint32_t each = team->times * team->blocks;

	b.counter = place(e, first, l.i, TEAM_BARRIERS * 4);
	b.turn = mad(e, op1(e, REG_R, "cvt.u32.u64", k->number), each, imm(each));
	barrier_poll(k, &b);
	loop_end(e, &l);
	ins(e, "bar.warp.sync 0xffffffff");
}

/* threads: those of the block that wait, all or the workers. */
static void threads_wait(Kernel *k, const Barrier *b, uint32_t threads)
{
	if (b->cluster)
		cluster_meet(k);
	if (b->blocks == 1 || b->cluster)
		return;
	uint32_t end = if_begin(k->e, same(k->e, k->tid, imm(0)));
	barrier_poll(k, b);
	if_end(k->e, end);
	if (threads == k->s->threads)
		barrier_block(k->e);
	else
		workers_barrier(k);
}

void barrier_wait(Kernel *k, const Barrier *b) { threads_wait(k, b, k->s->threads); }
void workers_wait(Kernel *k, const Barrier *b) { threads_wait(k, b, k->workers); }

void barrier_all(Kernel *k, const Barrier *b)
{
	barrier_arrive(k, b);
	barrier_wait(k, b);
}

/* ---- the beginning ---- */

static Reg special(Emit *e, const char *name)
{
	Reg r = reg(e, REG_R);

	buf_printf(&e->text, "\tmov.u32 %%r%u, %s;\n", r.n, name);
	return r;
}

static void memory_clear(Kernel *k)
{
	Emit *e = k->e;

	Loop l = loop_begin(e, mul(e, k->tid, 16), imm(k->bytes), k->s->threads * 16);
	ins(e, "st.shared.v4.f32 [$], {0f00000000, 0f00000000, 0f00000000, 0f00000000}", add(e, l.i, k->memory));
	loop_end(e, &l);
	barrier_block(e);
}

/* Of a row: it is 0. */
static uint32_t codes_padding(const Kernel *k) { return k->s->general ? column_at(k, BUF_HELD, 0) : k->row - 16; }

/* Code words: where each sum starts, and the columns of its elements in bytes from the first output on, filled up with
 * the padding of a row, which is 0. */
static void codes_stage(Kernel *k)
{
	Emit *e = k->e;
	const DeviceData *d = &k->s->job->data;
	uint32_t longest = k->s->code_longest, padding = codes_padding(k);

	if (k->s->job->output_col)
		padding -= column_at(k, BUF_ACT, k->s->job->output_col);

	Loop l = loop_begin(e, k->tid, imm(d->part_count[0] + d->part_count[1]), k->s->threads);
	Reg sum = place(e, POINTER(k, data.sums), l.i, sizeof(CodeSum)), element = POINTER(k, data.element);
	ins(e, "st.shared.f64 [$+#], $", mad(e, l.i, 8, k->memory), k->at_codes,
	    load(e, REG_G, "ld.global.nc.f64", sum, 0));
	Reg first = load(e, REG_R, "ld.global.nc.u32", sum, offsetof(CodeSum, first));
	Reg count = load(e, REG_R, "ld.global.nc.u32", sum, offsetof(CodeSum, count));
	for (uint32_t i = 0; i < longest; i++) {
		Reg column = op1(e, REG_R, "mov.u32", imm(padding / 4)), has = less(e, imm(i), count);
		ins(e, "@$ ld.global.nc.u32 $, [$]", has, column,
		    place(e, element, add(e, first, imm(i)), sizeof(CodeElement)));
		ins(e, "shl.b32 $, $, 2", column, column);
		if (!k->s->job->output_col && k->s->general)
			general_column(k, has, column);
		else if (!k->s->job->output_col)
			ins(e, "@$ ld.shared.u32 $, [$+#]", has, column, add(e, k->memory, column), k->at_outputs);
		ins(e, "st.shared.u32 [$+#], $", mad(e, l.i, longest * 4, k->memory), k->at_elements + 4 * i, column);
	}
	loop_end(e, &l);
}

/* Where outputs are in a row, if they are not adjacent. */
static void outputs_stage(Kernel *k)
{
	Emit *e = k->e;
	uint32_t end = if_begin(e, same(e, k->tid, imm(0)));

	for (uint32_t n = 0; n < k->s->job->outputs; n++)
		ins(e, "st.shared.u32 [$+#], #", k->memory, k->at_outputs + 4 * n, column_at(k, BUF_ACT, k->s->output[n]));
	if_end(e, end);
	barrier_block(e);
}

/* Rows of -0 after weights of index lists. */
static void weights_pad(Kernel *k)
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < k->regions; i++) {
		const WeightRegion *r = &k->region[i];
		if (!r->padded)
			continue;
		Loop l = loop_begin(e, k->tid, imm(r->row), k->s->threads);
		ins(e, "st.shared.f32 [$+#], 0f80000000", mad(e, l.i, 4, k->memory), r->at + r->row * r->rows * 4);
		loop_end(e, &l);
	}
}

/* Lists of rows that are computed in vain are empty. */
static void lists_pad(Kernel *k)
{
	Emit *e = k->e;

	if (k->s->job->data.from && !k->s->general) {
		Loop l = loop_begin(e, k->tid, imm(8 * k->list_row / 4), k->s->threads);
		ins(e, "st.shared.u32 [$+#], #", mad(e, l.i, 4, k->memory), k->at_lists + k->s->leaf_rows * k->list_row,
		    rows_full(k) ? 0 : UINT32_MAX);
		loop_end(e, &l);
	}
}

/* Tables of code words; ranks of inputs. */
static void constants_stage(Kernel *k)
{
	Emit *e = k->e;
	const DeviceData *d = &k->s->job->data;

	if (!k->overlaid)
		lists_pad(k);
	if (!k->overlaid && !k->restaged)
		weights_pad(k);
	if (!k->s->job->output_col && !k->s->general && !k->deferred_scores)
		outputs_stage(k);
	if (k->has_codes)
		codes_stage(k);
	if (k->bulk)
		bulk_bars(k);
	if (d->from && !k->s->test && !k->s->general)
		ranks_stage(k);
	spent_begin(k);
	if (k->overlaid && k->turns != NO_STEP) {
		uint32_t end = if_begin(e, same(e, k->tid, imm(0)));
		list_pads(k);
		if_end(e, end);
	}
	barrier_block(e);
}

/* One leaf, by the only team: the gradient is the update. */
static bool is_direct_update(const EmitSource *s)
{
	return !s->test && (s->teams == 1 || s->solo) && s->kinds_of_leaves == 1 && s->leaves[0] == 1 && !needs_pending(s);
}

static void kernel_begin(Kernel *k)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;

	k->memory = special(e, "memory");
	k->tid = special(e, "%tid.x");
	k->knows_warp = (s->solo && !k->bf16) || k->bulk;
	if (k->knows_warp) {
		k->warp = reg(e, REG_R);
		ins(e, "shfl.sync.idx.b32 $, $, 0, 31, 0xffffffff", k->warp, op2(e, REG_R, "shr.u32", k->tid, imm(5)));
	}
	k->block = special(e, "%ctaid.x");
	k->team = divide(e, k->block, s->team_blocks);
	k->member = modulo(e, k->block, s->team_blocks, k->team);
	k->rows = reg(e, REG_R);
	k->row0 = reg(e, REG_R);
	k->my_rows = reg(e, REG_R);
	k->first_row = reg(e, REG_R);
	k->end_row = reg(e, REG_R);
	k->cases = reg(e, REG_D);
	k->leaf_number = reg(e, REG_R);
	k->param = reg(e, REG_D);
	k->regular = k->restaged && !is_direct_update(s) && !s->test && !needs_pending(s) && !s->general && !s->tiled &&
	             !k->bf16 && s->kinds_of_leaves == 1 && s->leaves[0] == s->teams;
	k->posts = k->regular && can_post(k);
	memory_clear(k);
	constants_stage(k);
	Reg first = mul(e, k->team, s->job->row_capacity);
	k->row_error = place(e, POINTER(k, row_error), first, 4);
	k->verdict = place(e, POINTER(k, verdict), first, 1);
	if (s->general)
		general_begin(k);
	else if (k->bf16)
		bf16_begin(k);
	else if (s->tiled)
		ones_store(k); /* a barrier of the grid comes before they are read */
	else
		k->exchange = reg(e, REG_D);
	if (!s->general && !k->bf16 && !s->tiled && !k->posts)
		exchange_begin(k);
}

/* ---- updates ---- */

/* Is what an update needs found beside the gradient of the one before? */
static bool in_steps(const Kernel *k) { return k->s->solo && k->next_steps && k->turns != NO_STEP; }

/* One leaf, by the only team: the gradient is the update. Cases of the next one are loaded while others arrive. */
static void update_direct(Kernel *k, Reg update, Reg next, Reg staged, Coming *coming, const Barriers *b)
{
	RuleNumbers n;
	LeafFound found;

	if (in_steps(k)) {
		coming_begin(k, &n, coming);
	} else {
		if (k->s->solo) /* while weights are under way */
			found = leaf_locate(k, next);
		rule_numbers(k, &n);
	}
	k->numbers = &n;
	leaf_emit(k, update, staged, b, true);
	k->numbers = NULL;
	if (k->coming)
		found = coming_leaf(k);
	k->coming = NULL;
	barrier_arrive(k, &b->grid);
	leaf_begin(k, next, staged, k->s->solo ? &found : NULL);
	spent(k, SPENT_KINDS + 27);
	barrier_wait(k, &b->grid);
	spent(k, SPENT_GRID_AFTER);
}

/* The tally of the update, by the last warp of the last block. */
static void tallies_join(Kernel *k, Reg update, const Barriers *b)
{
	Emit *e = k->e;
	uint32_t other = if_begin(e, same(e, k->block, imm(k->s->teams * k->s->team_blocks - 1)));
	uint32_t before = unless_begin(e, less(e, k->tid, imm(k->s->threads - TALLY_WARP)));

	if (k->posts)
		barrier_poll(k, &b->tallied);
	tally_update(k, update);
	if_end(e, before);
	if_end(e, other);
}

static void update_leaves(Kernel *k, Reg update, Reg staged, const Barriers *b)
{
	Emit *e = k->e;
	Reg leaves = load(e, REG_R, "ld.global.nc.u32", update, offsetof(DeviceUpdate, leaves));
	Loop l = loop_begin(e, k->team, leaves, k->s->teams);

	ins(e, "mov.u32 $, $", k->leaf_number, l.i);
	if (k->bf16)
		bf16_leaf(k, update, leaves, b);
	else
		leaf_emit(k, update, staged, b, false);
	barrier_block(e);
	loop_end(e, &l);
	barrier_arrive(k, &b->grid);
	if (k->prefetches) { /* inputs of the leaf that the team has had */
		uint32_t none = if_begin(e, less(e, k->team, leaves));
		inputs_stage(k);
		if_end(e, none);
	}
	ins(e, "cp.async.commit_group"); /* of inputs, which need not be there yet */
	ins(e, "cp.async.wait_group 1"); /* a team without a leaf has not waited for its weights */
	if (!k->s->test && !needs_pending(k->s))
		update_prepare(k);
	barrier_wait(k, &b->grid);
	spent(k, SPENT_GRID);
	uint32_t tally = label(e), end = label(e);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", k->tid, imm(k->workers)), tally);
	if (!k->s->test && !needs_pending(k->s))
		update_joined(k, leaves, false);
	ins(e, "bra L#", end);
	label_here(e, tally);
	if (!tallies_early(k))
		tallies_join(k, update, b);
	label_here(e, end);
	if (needs_pending(k->s))
		leaves_finish(k, leaves, &b->grid);
	spent(k, SPENT_UPDATE);
	barrier_all(k, &b->grid);
	spent(k, SPENT_GRID_AFTER);
}

uint32_t update_meets(const Kernel *k) { return k->prefetches ? k->s->threads : k->workers + 32; }

/* Inputs of the next rows: if the device copies them, by threads that have no weights to update. */
static void prefetch_beside(Kernel *k)
{
	Kernel rest = *k;
	EmitSource source = *k->s;

	if (k->bulk_rows) {
		source.threads = k->s->threads - k->workers;
		rest.s = &source;
		rest.tid = op2(k->e, REG_R, "sub.u32", k->tid, imm(k->workers));
	}
	inputs_stage(&rest);
}

/* No barrier of the grid between gradients and the update, nor after it (join.c). Words of this update are reset: a
 * warp beside the gradient has seen that all blocks have passed their rows (others_emit), and a barrier of the block
 * orders that before the stores of the workers. Where all threads meet there, as inputs are prefetched over operands of
 * gradients, a warp that has no more to update waits for the next weights at once. */
static void update_posted(Kernel *k, Reg update, Reg staged, const Barriers *b, uint32_t ended)
{
	Emit *e = k->e;
	uint32_t others = label(e), end = label(e);

	ins(e, "mov.u32 $, $", k->leaf_number, k->team);
	leaf_emit(k, update, staged, b, false);
	ins(e, "@$ bra L#", is_from(k, k->workers), others);
	update_prepare(k);
	ins(e, "bar.sync #, #", UPDATE_BEGINS, update_meets(k));
	ins(e, "@$ bra L#", ended_before(k), ended);
	if (k->prefetches && !k->bulk_rows)
		inputs_stage(k);
	spent(k, SPENT_GRID);
	update_joined(k, imm(k->s->leaves[0]), false);
	posted_reset(k);
	spent(k, SPENT_UPDATE);
	ins(e, "bra L#", end);
	label_here(e, others);
	if (k->prefetches)
		ins(e, "bar.sync #, #", UPDATE_BEGINS, update_meets(k));
	ins(e, "@$ bra L#", ended_before(k), ended);
	if (!tallies_early(k))
		tallies_join(k, update, b);
	if (k->prefetches)
		prefetch_beside(k);
	label_here(e, end);
	if (k->prefetches) /* lanes that have their sums do not run ahead of those that thread 0 is among */
		ins(e, "bar.warp.sync 0xffffffff");
	else
		barrier_block(e);
	spent(k, SPENT_GRID_AFTER);
}

/* Leaves the loop of updates. */
static void stop_check(Kernel *k, Reg update, uint32_t done)
{
	Emit *e = k->e;
	Reg result = POINTER(k, result);
	Reg stop = load(e, REG_R, "ld.relaxed.gpu.global.u32", result, offsetof(JobResult, stop));
	Reg infinite = load(e, REG_R, "ld.relaxed.gpu.global.u32", result, offsetof(JobResult, infinite));
	Reg ends = load(e, REG_R, "ld.global.nc.u8", update, offsetof(DeviceUpdate, ends_epoch));

	bool ahead = k->regular || (k->bf16 && k->bf16->single_slice && !k->bf16->side_warps);
	if (ahead) { /* under way while the next update begins */
		weights_stage(k);
		if (k->bf16)
			bf16_weights_stage(k);
	}
	infinite = op3(e, REG_R, "selp.u32", infinite, imm(0), op2(e, REG_P, "setp.ne.u32", ends, imm(0)));
	stop = op2(e, REG_R, "or.b32", stop, infinite);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", stop, imm(0)), done);
}

/* Networks of their own stop at the end of an epoch only; ends: it is one. */
static void epoch_check(Kernel *k, Reg update, Reg ends, uint32_t done)
{
	uint32_t inside = if_begin(k->e, op2(k->e, REG_P, "setp.ne.u32", ends, imm(0)));

	stop_check(k, update, done);
	if_end(k->e, inside);
}

/* Tallies are formed beside the next update. */
static void apart_check(Kernel *k, Reg update, uint32_t done, Reg i, Reg in_cycle)
{
	Emit *e = k->e;
	uint32_t inside = k->s->solo ? if_begin(e, op2(e, REG_P, "setp.ne.u32", k->bf16->ends, imm(0))) : 0;
	bool counts = k->bf16->warpgroups; /* warpgroups that compute do not count updates */

	if (counts)
		ins(e, "@$ st.shared.v2.u64 [$+#], {$, $}", same(e, k->tid, imm(k->s->threads - SIDE_THREADS)), k->memory,
		    k->at_info + 16, i, in_cycle);
	barrier_block(e);
	if (counts) {
		ins(e, "ld.shared.v2.u64 {$, $}, [$+#]", i, in_cycle, k->memory, k->at_info + 16);
		update = op2(e, REG_D, "add.u64", op2(e, REG_D, "mul.lo.u64", in_cycle, imm(sizeof(DeviceUpdate))),
		             POINTER(k, update));
	}
	if (!k->bf16->single_slice) /* else it is asked in the next one */
		stop_check(k, update, done);
	if (k->s->solo)
		if_end(e, inside);
}

/* The number in the cycle after this one. */
static Reg next_number(Kernel *k, Reg in_cycle, Reg cycle)
{
	Emit *e = k->e;
	Reg next = op2(e, REG_D, "add.u64", in_cycle, imm(1)), first = reg(e, REG_D);

	ins(e, "mov.u64 $, 0", first);
	return op3(e, REG_D, "selp.b64", next, first, op2(e, REG_P, "setp.lt.u64", next, cycle));
}

static Reg update_at(Kernel *k, Reg in_cycle)
{
	Reg at = op2(k->e, REG_D, "mul.lo.u64", in_cycle, imm(sizeof(DeviceUpdate)));

	return op2(k->e, REG_D, "add.u64", at, POINTER(k, update));
}

static Reg next_update(Kernel *k, Reg in_cycle, Reg cycle) { return update_at(k, next_number(k, in_cycle, cycle)); }

/* Records of an update, of which i have begun before, and of the next one. */
static Coming coming_records(Kernel *k, Reg i, Reg in_cycle, Reg cycle)
{
	Emit *e = k->e;
	Reg odd = op2(e, REG_R, "and.b32", op1(e, REG_R, "cvt.u32.u64", i), imm(1)),
		at = add(e, k->memory, imm(k->at_record));
	Reg next = next_number(k, in_cycle, cycle);
	Coming c = { .record = mad(e, odd, record_bytes(), at),
		         .other = mad(e, op2(e, REG_R, "xor.b32", odd, imm(1)), record_bytes(), at),
		         .update = update_at(k, next),
		         .after = next_update(k, next, cycle) };

	return c;
}

/* Turns are made of the number of the update: signals of each barrier in an update are known. */
static void barriers_count(const Kernel *k, Barriers *b, uint32_t signals[5])
{
	Barrier *all[] = { &b->team, &b->scored, &b->grid, &b->ahead, &b->tallied };

	for (uint32_t i = 0; i < COUNT(all); i++) {
		all[i]->times = all[i] == &b->grid && !k->posts ? 2 : 1;
		all[i]->signals = &signals[i];
	}
}

static void updates_emit(Kernel *k)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Reg barriers = POINTER(k, barrier);
	Reg team = place(e, place_at(e, barriers, 4), k->team, TEAM_BARRIERS * 4);
	bool cluster = s->cluster != 0;
	Barriers b = { barrier_new(k, team, s->team_blocks, cluster),
		           barrier_new(k, place_at(e, team, 4), s->team_blocks, false),
		           barrier_new(k, barriers, s->solo ? 1 : s->teams * s->team_blocks, cluster),
		           barrier_new(k, place_at(e, team, 8), s->team_blocks, false),
		           barrier_new(k, place_at(e, barriers, 4 + 4 * TEAM_BARRIERS * s->teams), s->teams, false) };
	uint32_t signals[5] = { 0 };
	Reg i = reg(e, REG_D), in_cycle = reg(e, REG_D), updates = POINTER(k, updates), cycle = POINTER(k, updates_cycle);
	Reg staged = reg(e, REG_D);
	k->number = i;
	bool direct = is_direct_update(s);
	uint32_t top = label(e), done = label(e), ended = label(e), idle = label(e);

	k->prefetches = k->early && k->restaged && !direct;
	k->bulk_rows = k->bulk && k->prefetches && s->kinds_of_leaves == 1 && s->leaves[0] == s->teams;
	ins(e, "mov.u64 $, 0", staged);
	ins(e, "mov.u64 $, 0", i);
	if (k->posts)
		posted_begin(k, &b.grid);
	if (k->regular) {
		barriers_count(k, &b, signals);
		if (!k->posts)
			weights_stage(k);
	}
	ins(e, "mov.u64 $, 0", in_cycle);
	ins(e, "mov.u32 $, 0", k->leaf_number);
	if (s->solo) { /* there is no seed for it, or it has ended */
		Reg stop = load(e, REG_R, "ld.global.u32", POINTER(k, result), offsetof(JobResult, stop));
		ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", stop, imm(0)), idle);
	}
	if (direct && !s->tiled && !s->general && !k->bf16)
		leaf_begin(k, POINTER(k, update), staged, NULL);
	if (k->kept) {
		weights_stage(k);
		weights_pad(k);
	}
	if (k->bf16 && k->bf16->single_slice && !k->bf16->side_warps) {
		bf16_prefetch(k, POINTER(k, update), staged);
		weights_stage(k);
		bf16_weights_stage(k);
	}
	if (k->bf16 && (k->bf16->single_block || k->bf16->side_warps)) {
		weights_stage(k);
		bf16_weights_stage(k);
		bf16_kept_move(k, false);
		if (k->bf16->side_warps)
			bf16_side_begin(k, POINTER(k, update));
		ins(e, "cp.async.wait_all");
		if (k->bf16->warpgroups)
			async_proxy_fence(k);
		barrier_block(e);
	}
	Coming coming = { 0 };
	bool found = direct && in_steps(k);
	if (found)
		coming_find(k, POINTER(k, update), next_update(k, in_cycle, cycle), add(e, k->memory, imm(k->at_record)));
	label_here(e, top);
	Reg update =
		op2(e, REG_D, "add.u64", op2(e, REG_D, "mul.lo.u64", in_cycle, imm(sizeof(DeviceUpdate))), POINTER(k, update));
	if (found)
		coming = coming_records(k, i, in_cycle, cycle);
	if (s->solo)
		k->verdicts_asked = op2(e, REG_P, "setp.ge.u64", i, POINTER(k, verdicts_from));
	if (!s->test && !(k->bf16 && k->bf16->side_warps) && !found) {
		Reg param = load(e, REG_R, "ld.global.nc.u32", update, offsetof(DeviceUpdate, param));
		ins(e, "mov.u64 $, $", k->param, place(e, POINTER(k, param), param, P_COUNT * 8));
	}
	Reg ends = s->solo && !k->bf16 && !found
	               ? load(e, REG_R, "ld.global.nc.u8", update, offsetof(DeviceUpdate, ends_epoch))
	               : imm(0);
	bool early = k->kept || k->regular || (k->bf16 && (k->bf16->single_block || k->bf16->single_slice));
	if (k->posts) {
		exchange_begin(k);
		weights_receive(k);
	} else if (!early) { /* else they are there, or under way */
		weights_stage(k);
		if (k->bf16)
			bf16_weights_stage(k);
	}
	if (k->overlaid)
		lists_pad(k);
	if (!k->kept && (k->overlaid || k->restaged))
		weights_pad(k);
	if (s->general && s->job->noise) {
		k->update_number = reg(e, REG_D);
		ins(e, "add.u64 $, $, $", k->update_number, POINTER(k, first_update), i);
	}
	if (s->general)
		update_general(k, update, &b);
	else if (s->tiled)
		update_tiled(k, update, &b);
	else if (k->bf16 && k->bf16->side_warps)
		bf16_side_update(k, update, next_update(k, in_cycle, cycle), &b, done);
	else if (k->bf16 && k->bf16->single_block)
		bf16_single_block(k, update, staged, &b);
	else if (k->bf16 && k->bf16->single_slice)
		bf16_update(k, update, next_update(k, in_cycle, cycle), staged, &b);
	else if (k->bf16)
		update_leaves(k, update, staged, &b);
	else if (direct)
		update_direct(k, update, next_update(k, in_cycle, cycle), staged, &coming, &b);
	else if (k->posts)
		update_posted(k, update, staged, &b, ended);
	else
		update_leaves(k, update, staged, &b);
	if (k->bf16 && k->bf16->side_warps)
		apart_check(k, update, done, i, in_cycle);
	else if (s->solo && !k->bf16)
		epoch_check(k, update, found ? coming_ends(k, coming.record) : ends, done);
	else if (!k->posts)
		stop_check(k, update, done);
	ins(e, "add.u64 $, $, 1", i, i);
	ins(e, "add.u64 $, $, 1", in_cycle, in_cycle);
	ins(e, "@$ mov.u64 $, 0", op2(e, REG_P, "setp.ge.u64", in_cycle, cycle), in_cycle);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.lt.u64", i, updates), top);
	label_here(e, done);
	if (k->regular)
		ins(e, "cp.async.wait_all");
	if (k->bulk_rows) /* inputs of the next update: no block ends while copies write to its memory */
		bulk_rows_wait(k);
	label_here(e, ended);
	if (k->bf16 && k->bf16->single_block)
		bf16_weights_store(k);
	if (k->kept) {
		barrier_block(e);
		weights_store(k);
	}
	label_here(e, idle);
}

/* ---- text ---- */

static void declare_registers(const Emit *e, Buf *out)
{
	static const char *const types[REG_TYPES] = { "b32 %r", "b64 %d", "f32 %f", "f64 %g", "pred %p", "b16 %h" };

	for (int i = 0; i < REG_TYPES; i++)
		if (e->used[i])
			buf_printf(out, "\t.reg .%s<%u>;\n", types[i], e->used[i]);
}

void kernel_wrap(const Emit *e, Buf *out, size_t param, uint32_t threads, uint32_t cluster)
{
	buf_puts(out, e->grouped    ? ".version 8.0\n.target sm_90a\n"
	              : cluster > 1 ? ".version 8.1\n.target sm_90\n"
	              : cluster     ? ".version 8.0\n.target sm_90\n"
	                            : ".version 7.1\n.target sm_80\n");
	buf_printf(out,
	           ".address_size 64\n.extern .shared .align 16 .b8 memory[];\n"
	           ".visible .entry microprop_train(.param .align 8 .b8 job[%zu])\n",
	           param);
	if (cluster > 1)
		buf_printf(out, ".explicitcluster\n.reqnctapercluster %u, 1, 1\n", cluster);
	buf_printf(out, ".maxntid %u, 1, 1\n.minnctapersm 1\n{\n", threads);
	declare_registers(e, out);
	buf_add(out, e->text.s, e->text.len);
	buf_puts(out, "}\n");
}

const char *kernel_text(const EmitSource *s, Arena *a, Buf *out, uint32_t *shared, uint64_t *exchange, uint64_t *posted,
                        uint32_t *image)
{
	Kernel *k = NEW(a, 1, Kernel);
	Emit *e = NEW(a, 1, Emit);
	const char *why;

	k->e = e;
	e->text.arena = a;
	k->times_steps = getenv("MICROPROP_CUDA_TIME") != NULL;
	e->busy = s->solo;
	why = kernel_plan(k, s);
	if (why)
		return why;
	k->meets = 1;
	k->signals = k->workers; /* its warp has the least to do */
	kernel_begin(k);
	if (s->makes_images) {
		images_emit(k);
	} else {
		updates_emit(k);
		spent_store(k);
	}
	ins(e, "ret");
	buf_printf(out, "// %s: %u blocks of %u threads, %u bytes of shared memory\n",
	           s->general ? "general"
	           : s->tiled ? "tiles"
	                      : "resident",
	           s->teams * s->team_blocks, s->threads, k->bytes);
	kernel_wrap(e, out, sizeof(Job), s->threads, s->cluster || k->bulk);
	*shared = k->bytes;
	*image = s->images ? image_bytes(k) : 0;
	*posted = k->posts ? posted_bytes(k) : 0;
	*exchange = s->tiled || k->bf16 ? 0 : exchange_bytes(k);
	return NULL;
}
