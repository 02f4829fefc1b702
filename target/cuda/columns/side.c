/* SPDX-License-Identifier: MIT */
/* Side warps of every block. SIDE_PREFETCH: in: tables of the schedule; out: index lists and targets in shared memory,
 * one update ahead. SIDE_SCORE: in: outputs; out: errors and scores of rows, in the block that forms the tally. Must
 * hold: cases are overwritten only when nothing reads them any more. */
#include "columns.h"

/* What SIDE_PREFETCH has loaded of later updates. */
typedef struct Ahead {
	Reg cycle;                 /* number of the next update in the cycle */
	Reg number[MAX_LANE_ROWS]; /* of the next update: cases of all rows, of this lane */
	Reg own[MAX_LANE_ROWS];    /* of the next update: cases of the block's rows, of this lane */
	Reg rows, param;           /* of the next update */
	Reg after, cases;          /* of the update after it: rows; number of its first case (D) */
} Ahead;

Reg next_in_cycle(Columns *c, Reg x)
{
	Emit *e = c->k->e;
	Reg next = add(e, x, imm(1)), cycle = param_load(e, REG_R, offsetof(Job, updates_cycle));

	return op3(e, REG_R, "selp.u32", next, imm(0), less(e, next, cycle));
}

/* ---- tables ---- */

/* Update, leaf and chunk have the same number: an update has one leaf, of one chunk. */
void chunk_load(Columns *c, Reg number, Reg rows, Reg cases)
{
	Kernel *k = c->k;
	Reg chunk = place(k->e, POINTER(k, chunk), number, sizeof(DeviceChunk));

	ins(k->e, "ld.global.nc.u32 $, [$+#]", rows, chunk, (uint32_t)offsetof(DeviceChunk, rows));
	ins(k->e, "ld.global.nc.u64 $, [$+#]", cases, chunk, (uint32_t)offsetof(DeviceChunk, cases));
}

static void param_number_load(Columns *c, Reg number, Reg param)
{
	Kernel *k = c->k;
	Reg update = place(k->e, POINTER(k, update), number, sizeof(DeviceUpdate));

	ins(k->e, "ld.global.nc.u32 $, [$+#]", param, update, (uint32_t)offsetof(DeviceUpdate, param));
}

/* Starts loads of case numbers; 0 past the last row. */
static void numbers_load(Columns *c, const Ahead *a, Reg cases, Reg rows)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg from = op2(e, REG_D, "add.u64", op2(e, REG_D, "shl.b64", cases, imm(2)), POINTER(k, cases));

	for (uint32_t t = 0; t < c->lane_rows + c->lane_block_rows; t++) {
		bool own = t >= c->lane_rows;
		Reg to = own ? a->own[t - c->lane_rows] : a->number[t];
		Reg row = add(e, c->reg.lane, imm(32 * (own ? t - c->lane_rows : t)));
		row = own ? batch_row(c, row) : row;
		ins(e, "mov.u32 $, 0", to);
		ins(e, "@$ ld.global.nc.u32 $, [$]", less(e, row, rows), to, place(e, from, row, 4));
	}
}

/* ---- asynchronous copies: cp.async ---- */

static Reg case_of(Columns *c, Reg number) { return op2(c->k->e, REG_R, "and.b32", number, imm(ROW_CASE)); }

/* Index lists by row (CSR). */
static void lists_copy(Columns *c, const Ahead *a, Reg to)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	Reg lists = POINTER(k, data.short_list);

	for (uint32_t t = 0; t < c->lane_rows; t++) {
		Reg row = add(e, c->reg.lane, imm(32 * t)), is = less(e, row, imm(c->rows)), at = mad(e, row, c->list_row, to);
		Reg from = place(e, lists, case_of(c, a->number[t]), c->list_row);
		for (uint32_t q = 0; q < c->list_row; q += 16)
			ins(e, "@$ cp.async.cg.shared.global [$+#], [$+#], 16", is, at, c->smem.csr + q, from, q);
	}
}

/* bf16: inputs as bits, by row. */
static void bits_copy(Columns *c, const Ahead *a, Reg to)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t bytes = k->s->job->data.bits_row * 4;

	for (uint32_t t = 0; t < c->lane_rows; t++) {
		Reg row = add(e, c->reg.lane, imm(32 * t)), at = mad(e, row, k->bf16->bits_row, to);
		Reg from = place(e, POINTER(k, data.bits), case_of(c, a->number[t]), bytes);
		for (uint32_t q = 0; q < bytes; q += 16)
			ins(e, "cp.async.cg.shared.global [$+#], [$+#], 16", at, k->bf16->at_bits + q, from, q);
	}
}

/* Index lists by input (CSC), prebuilt. */
static void image_copy(Columns *c, Reg number, Reg to)
{
	Emit *e = c->k->e;
	Reg from = place(e, POINTER(c->k, images), number, c->csc_bytes);
	Loop l = loop_begin(e, mul(e, c->reg.lane, 16), imm(c->csc_bytes), 32 * 16);

	ins(e, "cp.async.cg.shared.global [$+#], [$], 16", add(e, to, l.i), c->smem.csc, place(e, from, l.i, 1));
	loop_end(e, &l);
}

/* Targets and code words of the block's rows. */
static void targets_copy(Columns *c, const Ahead *a, Reg to, Reg rows)
{
	Kernel *k = c->k;
	Emit *e = k->e;
	uint32_t targets = k->s->job->data.targets;

	for (uint32_t t = 0; t < c->lane_block_rows; t++) {
		Reg own = add(e, c->reg.lane, imm(32 * t)), number = case_of(c, a->own[t]);
		Reg is = op2(e, REG_P, "and.pred", less(e, own, imm(k->block_rows)), less(e, batch_row(c, own), rows));
		uint32_t past = if_begin(e, is);
		Reg at = add(e, mad(e, own, k->target_row, to), imm(k->at_targets));
		bool words = k->bf16 && k->bf16->y_bits;
		Reg from =
			words ? place(e, POINTER(k, data.y_bits), number, 4) : place(e, POINTER(k, data.y), number, 4 * targets);
		for (uint32_t i = 0; i < (words ? 1 : targets); i++)
			ins(e, "cp.async.ca.shared.global [$+#], [$+#], 4", at, 4 * i, from, 4 * i);
		if (k->s->job->data.code_count)
			ins(e, "cp.async.cg.shared.global [$+#], [$], 16", mad(e, own, sizeof(CodeOwn), to), k->at_own,
			    place(e, POINTER(k, data.own), number, sizeof(CodeOwn)));
		if_end(e, past);
	}
}

/* Inputs of an update: scores do not read them. */
static void inputs_copy(Columns *c, const Ahead *a, Reg to)
{
	remark(c->k->e, "inputs of an update");
	if (c->bf16) {
		bits_copy(c, a, to);
	} else {
		image_copy(c, a->cycle, to);
		lists_copy(c, a, to);
	}
}

/* The rest: targets, parameters of the rule, the number of rows. */
static void rest_copy(Columns *c, const Ahead *a, Reg to)
{
	Kernel *k = c->k;
	Emit *e = k->e;

	remark(e, "targets of an update");
	targets_copy(c, a, to, a->rows);
	uint32_t past = if_begin(e, less(e, c->reg.lane, imm(P_COUNT)));
	ins(e, "cp.async.ca.shared.global [$+#], [$], 8", mad(e, c->reg.lane, 8, to), c->smem.params,
	    place(e, place(e, POINTER(k, param), a->param, P_COUNT * 8), c->reg.lane, 8));
	if_end(e, past);
	uint32_t other = if_begin(e, same(e, c->reg.lane, imm(0)));
	ins(e, "st.shared.u32 [$+#], $", to, c->smem.count, a->rows);
	if_end(e, other);
}

static Ahead ahead_new(Columns *c)
{
	Emit *e = c->k->e;
	Ahead a = { .cycle = op1(e, REG_R, "mov.u32", imm(0)), .rows = reg(e, REG_R), .param = reg(e, REG_R) };

	a.after = reg(e, REG_R);
	a.cases = reg(e, REG_D);
	for (uint32_t t = 0; t < MAX_LANE_ROWS; t++) {
		a.number[t] = reg(e, REG_R);
		a.own[t] = reg(e, REG_R);
	}
	return a;
}

/* Loads tables of update `cycle`, which its copies need, and of the one after it. */
static void tables_load(Columns *c, const Ahead *a)
{
	Reg cases = reg(c->k->e, REG_D);

	chunk_load(c, a->cycle, a->rows, cases);
	param_number_load(c, a->cycle, a->param);
	chunk_load(c, next_in_cycle(c, a->cycle), a->after, a->cases);
	numbers_load(c, a, cases, a->rows);
}

void prefetch_first(Columns *c)
{
	Emit *e = c->k->e;
	Ahead a = ahead_new(c);
	uint32_t other = if_begin(e, same(e, c->reg.warp, imm(c->warps)));

	tables_load(c, &a);
	inputs_copy(c, &a, c->reg.cases);
	rest_copy(c, &a, c->reg.cases);
	ins(e, "cp.async.wait_all");
	if_end(e, other);
}

void prefetch_loop(Columns *c)
{
	Emit *e = c->k->e;
	Ahead a = ahead_new(c);

	ins(e, "mov.u32 $, $", a.cycle, next_in_cycle(c, a.cycle));
	tables_load(c, &a);
	if (c->bf16)
		inputs_copy(c, &a, next_cases(c));
	UpdateLoop l = updates_begin(c);
	if (!c->bf16)
		inputs_copy(c, &a, next_cases(c));
	rest_copy(c, &a, next_cases(c));
	/* advance: tables of the update after the next one, and of the one after that */
	ins(e, "mov.u32 $, $", a.rows, a.after);
	numbers_load(c, &a, a.cases, a.rows);
	ins(e, "mov.u32 $, $", a.cycle, next_in_cycle(c, a.cycle));
	param_number_load(c, a.cycle, a.param);
	chunk_load(c, next_in_cycle(c, a.cycle), a.after, a.cases);
	ins(e, "cp.async.wait_all");
	if (c->bf16)
		warps_arrive(c, imm(NAMED_OUTPUTS), c->warps + 1);
	go_wait(c);
	if (c->bf16)
		warps_arrive(c, imm(NAMED_TRANSPOSED), c->warps + 1);
	for (uint32_t p = 0; p < c->parts && !c->bf16; p++) /* no block is an update behind: sync.c */
		bar_wait(c, bar_address(c, BAR_DELTA + p), c->reg.parity);
	warps_sync(c, imm(NAMED_END), c->warps + (c->bf16 ? 2 : 1));
	if (c->bf16)
		inputs_copy(c, &a, c->reg.cases); /* of the update after the next one; its targets come after SCORED */
	bar_wait(c, alternate_bar(c, BAR_SCORED), c->reg.pair_parity); /* targets may be overwritten */
	updates_end(c, &l);
}

/* ---- scores ---- */

/* CHECKED: tells the last block whether the error of some row of this block is not finite. */
static void checked_send(void *of, Reg bad)
{
	Columns *c = of;
	Emit *e = c->k->e;
	Reg any = reg(e, REG_R), last = imm(c->blocks - 1);

	for (uint32_t i = 0; i < stop_words(c); i++) /* the GO that follows also counts at HIDDEN: of the next phase */
		bar_wait(c, bar_address(c, BAR_HIDDEN + i), c->reg.parity);
	ins(e, "vote.sync.ballot.b32 $, $, 0xffffffff", any, bad);
	uint32_t other = if_begin(e, same(e, c->reg.lane, imm(0)));
	Reg to = add(e, mad(e, c->k->member, 4, c->k->memory), imm(c->smem.bad));
	word_send(c, cluster_address(c, last, to), any, cluster_address(c, last, bar_address(c, BAR_CHECKED)));
	if_end(e, other);
}

void score_loop(Columns *c)
{
	Kernel *k = c->k;
	Emit *e = k->e;

	UpdateLoop l = updates_begin(c);
	counted_load(k, op1(e, REG_D, "cvt.u64.u32", c->reg.update));
	bar_wait(c, alternate_bar(c, BAR_OUTPUTS), c->reg.pair_parity);
	update_begin(c);
	go_wait(c);
	Kernel *one = update_kernel(c);
	one->sends_scores = true;
	one->bad = op2(e, REG_P, "setp.ne.u32", imm(0), imm(0));
	one->scores_to = cluster_address(c, c->reg.tally_block, add(e, k->memory, imm(k->at_scores)));
	one->scores_bar = cluster_address(c, c->reg.tally_block, bar_address(c, BAR_SCORES));
	for (uint32_t t = 0; t < c->lane_block_rows; t++) {
		Reg within = add(e, c->reg.lane, imm(32 * t)), row = batch_row(c, within);
		one->row0 = op2(e, REG_R, "sub.u32", row, within);
		one->my_rows = op3(e, REG_R, "selp.u32", imm(k->block_rows), imm(0), less(e, row, c->reg.rows));
		if (c->bf16 && t + 1 == c->lane_block_rows) {
			one->on_bad = checked_send;
			one->on_bad_arg = c;
		}
		deferred_score_row(one, within);
	}
	if (!c->bf16)
		checked_send(c, one->bad);
	bar_arrive_warp(c, alternate_bar(c, BAR_SCORED));
	updates_end(c, &l);
}
