/* SPDX-License-Identifier: MIT */
/* Barriers between blocks. In: a counter in global memory, or a cluster. Must hold: what a block has written before it
 * arrives is there for whoever has waited. */
#include "emit.h"

enum { MOST_POLLS = 1 << 24 };

Barrier barrier_new(Kernel *k, Reg counter, uint32_t blocks, bool cluster)
{
	Barrier b = { counter, reg(k->e, REG_R), blocks, cluster };

	ins(k->e, "mov.u32 $, 0", b.turn);
	return b;
}

/* By one thread, of those that have met. */
void barrier_signal(Kernel *k, const Barrier *b)
{
	Emit *e = k->e;

	ins(e, "add.u32 $, $, #", b->turn, b->turn, b->blocks);
	if (b->blocks == 1)
		return;
	uint32_t end = if_begin(e, same(e, k->tid, imm(k->workers))); /* its warp has the least to do */
	ins(e, "fence.acq_rel.gpu");
	ins(e, "red.relaxed.gpu.global.add.u32 [$], 1", b->counter);
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
	ins(e, "add.u32 $, $, 1", polls, polls);
	ins(e, "@$ bra L#", less(e, polls, imm(MOST_POLLS)), top);
	ins(e, "trap"); /* some block has failed */
	label_here(e, done);
}

void barrier_wait(Kernel *k, const Barrier *b)
{
	if (b->cluster)
		cluster_meet(k);
	if (b->blocks == 1 || b->cluster)
		return;
	uint32_t end = if_begin(k->e, same(k->e, k->tid, imm(0)));
	barrier_poll(k, b);
	if_end(k->e, end);
	barrier_block(k->e);
}

/* The same for those that compute the gradient. */
void workers_wait(Kernel *k, const Barrier *b)
{
	if (b->cluster)
		cluster_meet(k);
	if (b->blocks == 1 || b->cluster)
		return;
	uint32_t end = if_begin(k->e, same(k->e, k->tid, imm(0)));
	barrier_poll(k, b);
	if_end(k->e, end);
	ins(k->e, "bar.sync 1, #", k->workers);
}

void barrier_all(Kernel *k, const Barrier *b)
{
	barrier_arrive(k, b);
	barrier_wait(k, b);
}
