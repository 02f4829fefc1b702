/* SPDX-License-Identifier: MIT */
/* mbarriers of each block. OUTPUTS, SCORED and TALLY count arrivals, the others bytes that other blocks store. A
 * phase is an update, so that its parity is enough for a wait; columns.h lists what the barriers announce.
 *
 * Must hold: nothing that belongs to a later phase reaches a barrier before this phase is complete. The argument:
 *
 * DELTA: every block sends deltas of outputs in every update, after it has declared the bytes that it expects, and
 * after activations. OUTPUT_W: blocks with output weights wait for the deltas of all before they send new weights,
 * and all blocks wait for these before they send deltas of the next update. The prefetching warp waits for the
 * deltas of all before its block ends the update. The gradient's warps may still be adding then: they arrived at the
 * end before, when they had read what belongs to the update, and begin the next one when the first part has begun
 * it.
 *
 * GROUP of the next update may arrive meanwhile, so there are two; that of the update after next follows deltas of
 * the next one, which their block sends after it has passed its activations. CHECKED comes after GO, which depends
 * on it. GO of the update after next comes after all blocks have passed this one: workers and the prefetching warp
 * pass it before OUTPUTS of the next update, which CHECKED of that update depends on. OUTPUTS and SCORED likewise:
 * workers wait until the next cases are there; these, or their targets, are copied after the scores of the update
 * before.
 *
 * What is stored must have been read: activations of groups, and output weights, are double buffered by the parity
 * of the update.
 *
 * bf16: INPUT_W of an update counts the block's warps, when they have updated their weights, and the bytes that
 * blocks with the same columns send. The latter have used the old weights: their rows have come back as deltas or,
 * if they have no rows, they have sent their slice sums. All warps wait for INPUT_W before the next update, so that
 * shared memory of a block belongs to one update at a time. DELTA is expected by the one warp that waits for it. If
 * two warps divide a tile, the word of GO is also sent with HIDDEN, so that they wait once; then a block sends
 * CHECKED when HIDDEN of this update is complete. */
#include "columns.h"

enum { MAX_POLLS = 1 << 24 };

Reg bar_address(Columns *c, uint32_t bar) { return add(c->k->e, c->k->memory, imm(c->smem.bars + 8 * bar)); }

void bars_begin(Columns *c)
{
	for (uint32_t i = 0; i < BARS; i++)
		ins(c->k->e, "mbarrier.init.shared.b64 [$], #", bar_address(c, i),
		    i >= BAR_OUTPUTS && i < BAR_OUTPUTS + 2 ? c->pass_warps * c->parts
		    : i == BAR_INPUT_W                      ? c->warps + 1
		                                            : 1);
}

void bar_expect(Columns *c, uint32_t bar, Reg bytes)
{
	ins(c->k->e, "mbarrier.arrive.expect_tx.shared.b64 _, [$], $", bar_address(c, bar), bytes);
}

void bar_arrive_remote(Columns *c, Reg at, Reg rank)
{
	ins(c->k->e, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$]", cluster_address(c, rank, at));
}

void bar_arrive_warp(Columns *c, Reg at)
{
	Emit *e = c->k->e;

	ins(e, "bar.warp.sync 0xffffffff");
	uint32_t other = if_begin(e, same(e, c->reg.lane, imm(0)));
	ins(e, "mbarrier.arrive.shared.b64 _, [$]", at);
	if_end(e, other);
}

Reg alternate_bar(Columns *c, uint32_t bar) { return mad(c->k->e, c->reg.parity, 8, bar_address(c, bar)); }

enum WaitScope { WAIT_SHARED, WAIT_CLUSTER };

/* A wait for writes to shared memory needs no acquire.cluster, which would invalidate L1, where spilled registers
 * are. */
static void polls_emit(Columns *c, Reg at, Reg parity, Reg ended, enum WaitScope scope)
{
	static const char *const wait[] = { "mbarrier.try_wait.parity.shared.b64 $, [$], $",
		                                "mbarrier.try_wait.parity.acquire.cluster.shared.b64 $, [$], $" };
	Emit *e = c->k->e;
	uint32_t top = label(e), done = label(e);
	Reg polls = op1(e, REG_R, "mov.u32", imm(0)), is = reg(e, REG_P);

	label_here(e, top);
	ins(e, wait[scope], is, at, parity);
	ins(e, "@$ bra L#", is, done);
	if (ended.type == REG_R)
		ins(e, "@$ bra L#",
		    op2(e, REG_P, "setp.ne.u32", load(e, REG_R, "ld.relaxed.cluster.shared.u32", ended, 0), imm(0)), c->done);
	ins(e, "add.u32 $, $, 1", polls, polls);
	ins(e, "@$ bra L#", less(e, polls, imm(MAX_POLLS)), top);
	ins(e, "trap"); /* another block has failed */
	label_here(e, done);
	ins(e, "bar.warp.sync 0xffffffff");
}

void bar_wait(Columns *c, Reg at, Reg parity) { polls_emit(c, at, parity, imm(0), WAIT_SHARED); }

void bar_wait_acquire(Columns *c, Reg at, Reg parity) { polls_emit(c, at, parity, imm(0), WAIT_CLUSTER); }

void bar_poll(Columns *c, Reg at, Reg parity, Reg ended) { polls_emit(c, at, parity, ended, WAIT_SHARED); }

void quad_send(Columns *c, Reg is, Reg to, uint32_t offset, const Reg v[4], Reg bar)
{
	if (is.type != REG_P) {
		ins(c->k->e, "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [$+#], {$, $, $, $}, [$]", to,
		    offset, v[0], v[1], v[2], v[3], bar);
		return;
	}
	ins(c->k->e, "@$ st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [$+#], {$, $, $, $}, [$]", is, to,
	    offset, v[0], v[1], v[2], v[3], bar);
}

void words_send(Columns *c, Reg is, Reg to, uint32_t offset, const Reg *v, uint32_t count, Reg bar)
{
	if (is.type != REG_P && count == 1)
		ins(c->k->e, "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$+#], $, [$]", to, offset, v[0], bar);
	else if (is.type != REG_P)
		ins(c->k->e, "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [$+#], {$, $}, [$]", to, offset,
		    v[0], v[1], bar);
	else if (count == 1)
		ins(c->k->e, "@$ st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$+#], $, [$]", is, to, offset, v[0],
		    bar);
	else
		ins(c->k->e, "@$ st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [$+#], {$, $}, [$]", is, to,
		    offset, v[0], v[1], bar);
}

void word_send(Columns *c, Reg to, Reg word, Reg bar)
{
	ins(c->k->e, "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$], $, [$]", to, word, bar);
}

void bulk_send(Columns *c, Reg to, Reg from, uint32_t bytes, Reg bar)
{
	ins(c->k->e, "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$], [$], $, [$]", to, from,
	    op1(c->k->e, REG_R, "mov.u32", imm(bytes)), bar);
}

void cluster_sync(Columns *c)
{
	ins(c->k->e, "barrier.cluster.arrive.release.aligned");
	ins(c->k->e, "barrier.cluster.wait.acquire.aligned");
}

Reg part_bar(Columns *c, uint32_t bar) { return mad(c->k->e, c->reg.part, 8, bar_address(c, bar)); }

Reg group_bar(Columns *c, Reg part)
{
	return mad(c->k->e, c->reg.parity, 8 * MAX_PARTS, mad(c->k->e, part, 8, bar_address(c, BAR_GROUP)));
}

void warps_sync(Columns *c, Reg named, uint32_t warps) { ins(c->k->e, "bar.sync $, #", named, warps * 32); }

void warps_arrive(Columns *c, Reg named, uint32_t warps) { ins(c->k->e, "bar.arrive $, #", named, warps * 32); }

uint32_t stop_words(const Columns *c) { return c->bf16 && c->bf16->tile_warps > 1 ? c->bf16->tile_warps : 0; }

void go_wait(Columns *c)
{
	Emit *e = c->k->e;
	Reg memory = c->k->memory;

	bar_wait(c, alternate_bar(c, BAR_GO), c->reg.pair_parity);
	Reg stop = load(e, REG_R, "ld.shared.u32", mad(e, c->reg.parity, 4, memory), c->smem.stop);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", stop, imm(0)), c->done);
}
