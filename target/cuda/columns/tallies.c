/* SPDX-License-Identifier: MIT */
/* Side warps that form tallies and decide whether the job goes on. In: errors and scores of rows. Out: tallies of
 * epochs; GO, for all blocks, before each update.
 *
 * The chain of sums of a tally takes longer than an update: blocks alternate, and the last block joins their tallies
 * in order. An update waits for a tally only at the end of an epoch, if it may end the job. Must hold: scores of an
 * update are sent after those of the update before at the same place were summed; GO implies it. */
#include "columns.h"

/* SIDE_TALLY: every tally_blocks-th update. */
void tally_loop(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t other = if_begin(e, less(e, k->member, imm(c->tally_blocks))), top = label(e), end = label(e);
	Reg i = op1(e, REG_R, "mov.u32", k->member), cycle = op1(e, REG_R, "mov.u32", imm(0)), updates = updates_load(c);
	Reg rows = reg(e, REG_R), cases = reg(e, REG_D), phase = op1(e, REG_R, "mov.u32", imm(0)),
		ended = add(e, k->memory, imm(c->smem.ended));

	Loop l = loop_begin(e, imm(0), k->member, 1);
	ins(e, "mov.u32 $, $", cycle, next_in_cycle(c, cycle));
	loop_end(e, &l);
	label_here(e, top);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", i, updates), end);
	chunk_load(c, cycle, rows, cases);
	uint32_t first = if_begin(e, same(e, c->reg.lane, imm(0)));
	bar_expect(c, BAR_SCORES, mul(e, rows, 8));
	if_end(e, first);
	bar_poll(c, bar_address(c, BAR_SCORES), phase, ended);
	Kernel *one = update_kernel(c);
	one->memory = k->memory;
	one->rows = rows;
	one->leaf_number = k->member;
	tally_leaf(one, imm(1));
	ins(e, "bar.warp.sync 0xffffffff");
	uint32_t some = if_begin(e, same(e, c->reg.lane, imm(0)));
	bar_arrive_remote(c, mad(e, k->member, 8, bar_address(c, BAR_TALLY)), imm(c->blocks - 1));
	if_end(e, some);
	ins(e, "bar.warp.sync 0xffffffff");
	for (uint32_t n = 0; n < c->tally_blocks; n++)
		ins(e, "mov.u32 $, $", cycle, next_in_cycle(c, cycle));
	ins(e, "add.u32 $, $, #", i, i, c->tally_blocks);
	ins(e, "xor.b32 $, $, 1", phase, phase);
	ins(e, "bra L#", top);
	label_here(e, end);
	if_end(e, other);
}

/* ---- the last block ---- */

/* GO: all blocks make the update, or none. */
static void go_send(Columns *c, Reg stop)
{
	Emit *e = c->k->e;
	uint32_t none = if_begin(e, less(e, c->reg.lane, imm(c->blocks)));
	Reg flag = add(e, mad(e, c->reg.parity, 4, c->k->memory), imm(c->smem.stop));

	word_send(c, cluster_address(c, c->reg.lane, flag), op1(e, REG_R, "mov.u32", stop),
	          cluster_address(c, c->reg.lane, alternate_bar(c, BAR_GO)));
	for (uint32_t i = 0; i < stop_words(c); i++)
		word_send(c, cluster_address(c, c->reg.lane, add(e, flag, imm(8 * (1 + i)))), op1(e, REG_R, "mov.u32", stop),
		          cluster_address(c, c->reg.lane, bar_address(c, BAR_HIDDEN + i)));
	if_end(e, none);
	ins(e, "bar.warp.sync 0xffffffff");
}

/* Ends the loops of blocks that form tallies. */
static void end_send(Columns *c)
{
	Emit *e = c->k->e;
	uint32_t none = if_begin(e, less(e, c->reg.lane, imm(c->tally_blocks)));

	ins(e, "st.relaxed.cluster.shared::cluster.u32 [$], 1",
	    cluster_address(c, c->reg.lane, add(e, c->k->memory, imm(c->smem.ended))));
	if_end(e, none);
}

/* The first tally that was not joined yet. */
typedef struct Joined {
	Reg next, cycle; /* its number in the job, in the cycle */
} Joined;

/* Joins the tallies of all updates before `end`. */
static void tallies_join(Columns *c, const Joined *j, Reg end)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Loop l = loop_begin(e, j->next, end, 1);
	Reg round = divide(e, l.i, c->tally_blocks), slot = modulo(e, l.i, c->tally_blocks, round);

	TallyPrefetch ahead = tally_prefetch(k, place(e, POINTER(k, update), j->cycle, sizeof(DeviceUpdate)));
	ahead.first = slot;
	bar_wait_acquire(c, mad(e, slot, 8, bar_address(c, BAR_TALLY)), op2(e, REG_R, "and.b32", round, imm(1)));
	tally_finish(k, &ahead);
	ins(e, "bar.warp.sync 0xffffffff");
	ins(e, "mov.u32 $, $", j->cycle, next_in_cycle(c, j->cycle));
	loop_end(e, &l);
	ins(e, "max.u32 $, $, $", j->next, j->next, end);
}

/* Not 0 if some error of this update is not finite. */
static Reg bad_load(Columns *c)
{
	Emit *e = c->k->e;
	Reg bad = op1(e, REG_R, "mov.u32", imm(0)), any = reg(e, REG_R), is = less(e, c->reg.lane, imm(c->blocks));

	ins(e, "@$ ld.shared.u32 $, [$+#]", is, bad, mad(e, c->reg.lane, 4, c->k->memory), c->smem.bad);
	ins(e, "vote.sync.ballot.b32 $, $, 0xffffffff", any, op2(e, REG_P, "setp.ne.u32", bad, imm(0)));
	return any;
}

/* SIDE_DECIDE: an update may be made if all errors of the one before were finite. At the end of an epoch whose tally
 * may end the job, it waits for that tally. */
void decide_loop(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t top = label(e), go = label(e), next = label(e), stops = label(e), last = label(e);
	Reg i = c->reg.update, updates = updates_load(c), cycle = op1(e, REG_R, "mov.u32", imm(0));
	Reg ends = op1(e, REG_R, "mov.u32", imm(0)), result = POINTER(k, result);
	Joined joined = { op1(e, REG_R, "mov.u32", imm(0)), op1(e, REG_R, "mov.u32", imm(0)) };

	uint32_t other = if_begin(e, same(e, k->member, imm(c->blocks - 1)));
	label_here(e, top);
	registers_derive(c);
	ins(e, "@$ bra L#", same(e, i, imm(0)), go);
	uint32_t first = if_begin(e, same(e, c->reg.lane, imm(0)));
	bar_expect(c, BAR_CHECKED, imm(4 * c->blocks));
	if_end(e, first);
	bar_wait(c, bar_address(c, BAR_CHECKED), op2(e, REG_R, "xor.b32", c->reg.parity, imm(1)));
	Reg bad = bad_load(c), is_last = op2(e, REG_P, "setp.ge.u32", i, updates);
	Reg waits = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "or.b32", bad, ends), imm(0));
	waits = op2(e, REG_P, "or.pred", waits, is_last);
	ins(e, "@!$ bra L#", waits, go);
	Reg joins = op2(e, REG_P, "setp.ne.u32", bad, imm(0));
	joins = op2(e, REG_P, "or.pred", op2(e, REG_P, "or.pred", joins, is_last), tally_decides(c->k));
	uint32_t later = if_begin(e, joins);
	tallies_join(c, &joined, i);
	if_end(e, later);
	ins(e, "@$ bra L#", is_last, last);
	/* all weights of the update before were made: it is known whether they are finite */
	for (uint32_t p = 0; p < c->parts; p++)
		bar_wait(c, bar_address(c, BAR_DELTA + p), c->reg.parity);
	Reg stop = load(e, REG_R, "ld.relaxed.gpu.global.u32", result, offsetof(JobResult, stop));
	Reg infinite = load(e, REG_R, "ld.relaxed.gpu.global.u32", result, offsetof(JobResult, infinite));
	infinite = op3(e, REG_R, "selp.u32", infinite, imm(0), op2(e, REG_P, "setp.ne.u32", ends, imm(0)));
	stop = op2(e, REG_R, "or.b32", op2(e, REG_R, "or.b32", stop, infinite), bad);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", stop, imm(0)), stops);
	label_here(e, go);
	go_send(c, imm(0));
	/* scores of update i + 1 overwrite those of i + 1 - tally_blocks */
	Reg end = add(e, i, imm(2));
	tallies_join(c, &joined,
	             op2(e, REG_R, "sub.u32", op2(e, REG_R, "max.u32", end, imm(c->tally_blocks)), imm(c->tally_blocks)));
	label_here(e, next);
	ins(e, "ld.global.nc.u8 $, [$+#]", ends, place(e, POINTER(k, update), cycle, sizeof(DeviceUpdate)),
	    (uint32_t)offsetof(DeviceUpdate, ends_epoch));
	ins(e, "mov.u32 $, $", cycle, next_in_cycle(c, cycle));
	ins(e, "add.u32 $, $, 1", i, i);
	ins(e, "bra L#", top);
	label_here(e, stops);
	go_send(c, imm(1));
	end_send(c);
	label_here(e, last);
	if_end(e, other);
}
