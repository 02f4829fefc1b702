/* SPDX-License-Identifier: MIT */
/* Shuffles examples on the device. In: seeds, epochs, the order of blocks of examples. Out: the text of a kernel that
 * shuffles the examples of every block like order_at of lib/base/random.c. A thread has one block at a time, as 16-bit
 * numbers in shared memory. */
#include "lanes.h"

/* Fisher-Yates, inside-out: element i becomes element j, for a random j <= i, and element j becomes i. */
static void block_shuffle(Emit *e, Reg mine, Reg size, Reg block, Reg epoch, Reg seed)
{
	Reg low = op1(e, REG_R, "cvt.u32.u64", seed);
	Reg high = op1(e, REG_R, "cvt.u32.u64", op2(e, REG_D, "shr.u64", seed, imm(32)));
	Loop l = loop_begin(e, imm(0), size, 1);
	Reg c[4] = { op1(e, REG_R, "mov.u32", l.i), add(e, block, imm(1)), op1(e, REG_R, "mov.u32", imm(STREAM_SHUFFLE)),
		         op1(e, REG_R, "mov.u32", epoch) };

	philox_words(e, c, low, high);
	Reg j = op2(e, REG_R, "mul.hi.u32", c[1], add(e, l.i, imm(1))), to = mad(e, l.i, 2, mine),
		from = mad(e, j, 2, mine);
	Reg other = op1(e, REG_R, "mov.u32", imm(0));
	ins(e, "@$ ld.shared.u16 $, [$]", op2(e, REG_P, "setp.ne.u32", j, l.i), other, from);
	ins(e, "st.shared.u16 [$], $", to, other);
	ins(e, "st.shared.u16 [$], $", from, l.i);
	loop_end(e, &l);
}

void orders_text(uint32_t threads, Arena *a, Buf *out)
{
	Emit *e = NEW(a, 1, Emit);

	e->text.arena = a;
	Reg tid = special_register(e, "%tid.x"), grid = special_register(e, "%nctaid.x"),
		number = special_register(e, "%ctaid.x");
	Reg blocks = param_load(e, REG_R, offsetof(OrderJob, blocks)),
		tasks = param_load(e, REG_R, offsetof(OrderJob, tasks));
	Reg mine = mad(e, tid, 2 * SHUFFLE_BLOCK, special_register(e, "memory")), i = reg(e, REG_R);
	uint32_t top = label(e), done = label(e);

	ins(e, "mov.u32 $, $", i, mad(e, number, threads, tid));
	label_here(e, top);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", i, tasks), done);
	Reg epoch_number = op2(e, REG_R, "div.u32", i, blocks);
	Reg block = place(e, param_load(e, REG_D, offsetof(OrderJob, block)), i, sizeof(OrderBlock));
	Reg epoch = place(e, param_load(e, REG_D, offsetof(OrderJob, epoch)), epoch_number, sizeof(OrderEpoch));
	Reg first = load(e, REG_R, "ld.global.nc.u32", block, offsetof(OrderBlock, first));
	Reg at = load(e, REG_R, "ld.global.nc.u32", block, offsetof(OrderBlock, at));
	Reg size = load(e, REG_R, "ld.global.nc.u32", block, offsetof(OrderBlock, size));
	block_shuffle(e, mine, size, op2(e, REG_R, "shr.u32", first, imm(12)),
	              load(e, REG_R, "ld.global.nc.u32", epoch, offsetof(OrderEpoch, number)),
	              load(e, REG_D, "ld.global.nc.u64", epoch, offsetof(OrderEpoch, seed)));
	Reg start = load(e, REG_D, "ld.global.nc.u64", epoch, offsetof(OrderEpoch, at));
	Reg to = op2(e, REG_D, "add.u64", param_load(e, REG_D, offsetof(OrderJob, to)), start);
	to = place(e, to, at, 4);
	Loop l = loop_begin(e, imm(0), size, 1);
	Reg x = load(e, REG_R, "ld.shared.u16", mad(e, l.i, 2, mine), 0);
	ins(e, "st.global.u32 [$], $", place(e, to, l.i, 4), add(e, first, x));
	loop_end(e, &l);
	ins(e, "add.u32 $, $, $", i, i, mul(e, grid, threads));
	ins(e, "bra L#", top);
	label_here(e, done);
	ins(e, "ret");
	kernel_wrap(e, out, sizeof(OrderJob), threads, 0);
}
