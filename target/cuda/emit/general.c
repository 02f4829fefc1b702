/* SPDX-License-Identifier: MIT */
/* The general kernel: any network, any number of leaves, sequences, all kinds of jobs. Rows are in global memory, as
 * [teams][row_capacity][BUFS][cols], weights are read from there, too. In: the plan. Out: an update.
 *
 * A leaf is processed in chunks of rows. Blocks of a team take rows of a chunk, or whole sequences where there are
 * contexts; then weights. Barriers of the team are before the gradient and after it. */
#include <string.h>

#include "emit.h"
#include "net.h"

const char *row_space(const Kernel *k, const char *shared)
{
	if (!k->s->general)
		return shared;
	return shared[0] == '@' ? "@$ st.global.f32 [$+#], $" : "ld.global.f32";
}

/* ---- rows ---- */

Reg row_number(Kernel *k, Reg m)
{
	if (k->list.type == REG_D)
		return load(k->e, REG_R, "ld.global.nc.u32", place(k->e, k->list, m, 4), 0);
	return add(k->e, k->first_row, m);
}

Reg row_address(Kernel *k, Reg row) { return place(k->e, k->base, row, k->row); }

Reg row_flags(Kernel *k, Reg row) { return load(k->e, REG_R, "ld.global.nc.u32", place(k->e, k->cases, row, 4), 0); }

Reg has_flag(Kernel *k, Reg flags, uint32_t flag)
{
	return op2(k->e, REG_P, "setp.ne.u32", op2(k->e, REG_R, "and.b32", flags, imm(flag)), imm(0));
}

Reg target_address(Kernel *k, Reg row)
{
	Emit *e = k->e;
	Reg flags = row_flags(k, row), number = op2(e, REG_R, "and.b32", flags, imm(ROW_CASE));
	Reg y = place(e, POINTER(k, data.y), number, k->s->job->data.targets * 4), none = POINTER(k, no_targets);

	return op3(e, REG_D, "selp.b64", none, y, has_flag(k, flags, ROW_NO_TARGETS));
}

/* The team's rows. */
void general_begin(Kernel *k)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Reg team_rows = reg(e, REG_D);

	ins(e, "mul.wide.u32 $, $, #", team_rows, k->team, s->job->row_capacity);
	k->base = op3(e, REG_D, "mad.lo.u64", team_rows, imm(k->row), POINTER(k, buf));
	k->row0 = imm(0);
}

/* Byte 4 n of a row of outputs becomes that of the column of output n, where `has` holds. */
void general_column(Kernel *k, Reg has, Reg column)
{
	Emit *e = k->e;

	ins(e, "@$ ld.global.nc.u32 $, [$]", has, column, place(e, POINTER(k, output), column, 1));
	ins(e, "@$ shl.b32 $, $, 2", has, column, column);
}

/* ---- a chunk ---- */

typedef struct ChunkRegs {
	Reg fresh;          /* P: it is the first of its leaf */
	Reg slice;          /* with contexts: address of the block's slice */
	Reg steps, step_at; /* of it: time steps; address of where they begin */
	Reg first, rows;    /* of the block */
} ChunkRegs;

/* Sets k->rows, k->cases. */
static ChunkRegs chunk_begin(Kernel *k, Reg chunk)
{
	Emit *e = k->e;
	uint32_t blocks = k->s->team_blocks;
	ChunkRegs c = { .first = reg(e, REG_R), .rows = reg(e, REG_R) };
	Reg cases = load(e, REG_D, "ld.global.nc.u64", chunk, offsetof(DeviceChunk, cases));
	Reg fresh = load(e, REG_R, "ld.global.nc.u8", chunk, offsetof(DeviceChunk, fresh));

	ins(e, "ld.global.nc.u32 $, [$+#]", k->rows, chunk, (uint32_t)offsetof(DeviceChunk, rows));
	ins(e, "add.u64 $, $, $", k->cases, op2(e, REG_D, "shl.b64", cases, imm(2)), POINTER(k, cases));
	c.fresh = op2(e, REG_P, "setp.ne.u32", fresh, imm(0));
	if (!k->s->job->timed) {
		Reg product = op2(e, REG_R, "mul.lo.u32", k->rows, k->member);
		ins(e, "mov.u32 $, $", c.first, divide(e, product, blocks));
		ins(e, "sub.u32 $, $, $", c.rows, divide(e, op2(e, REG_R, "add.u32", product, k->rows), blocks), c.first);
		return c;
	}
	Reg number = load(e, REG_D, "ld.global.nc.u64", chunk, offsetof(DeviceChunk, slice));
	number = op2(e, REG_D, "add.u64", number, op1(e, REG_D, "cvt.u64.u32", k->member));
	c.slice = op3(e, REG_D, "mad.lo.u64", number, imm(sizeof(DeviceSlice)), POINTER(k, slice));
	ins(e, "ld.global.nc.u32 $, [$+#]", c.first, c.slice, (uint32_t)offsetof(DeviceSlice, first));
	ins(e, "ld.global.nc.u32 $, [$+#]", c.rows, c.slice, (uint32_t)offsetof(DeviceSlice, rows));
	c.steps = load(e, REG_R, "ld.global.nc.u32", c.slice, offsetof(DeviceSlice, steps));
	Reg at = load(e, REG_D, "ld.global.nc.u64", c.slice, offsetof(DeviceSlice, step_at));
	c.step_at = op3(e, REG_D, "mad.lo.u64", at, imm(4), POINTER(k, step_at));
	return c;
}

/* Columns of ones in the block's rows. */
static void ones_fill(Kernel *k, const ChunkRegs *c)
{
	Emit *e = k->e;
	Loop l = loop_begin(e, k->tid, c->rows, k->s->threads);
	Reg at = row_address(k, add(e, c->first, l.i));

	for (uint32_t i = 0; i < k->s->one_columns; i++)
		ins(e, "st.global.f32 [$+#], 0f3F800000", at, column_at(k, BUF_ACT, k->s->ones[i]));
	if (k->has_codes) /* padding of sums of code words */
		ins(e, "st.global.f32 [$+#], 0f00000000", at, column_at(k, BUF_HELD, 0));
	loop_end(e, &l);
	barrier_block(e);
}

/* Steps of a stage for each time step, from the first or from the last on. */
static void stage_in_time(Kernel *k, const DeviceStage *g, const ChunkRegs *c)
{
	Emit *e = k->e;
	Loop l = loop_begin(e, imm(0), c->steps, 1);

	k->time = l.i;
	if (g->each == RUN_TIME_BACK)
		k->time = op2(e, REG_R, "sub.u32", add(e, c->steps, imm(UINT32_MAX)), l.i);
	Reg at = place(e, c->step_at, k->time, 4), begin = load(e, REG_R, "ld.global.nc.u32", at, 0);
	k->my_rows = op2(e, REG_R, "sub.u32", load(e, REG_R, "ld.global.nc.u32", at, 4), begin);
	k->list = place(e, POINTER(k, step_row), begin, 4);
	general_steps(k, g->first, g->end);
	k->list = imm(0);
	loop_end(e, &l);
}

static void chunk_rows(Kernel *k, const ChunkRegs *c)
{
	Emit *e = k->e;
	const DeviceList *list = k->s->list;
	uint32_t none = if_begin(e, op2(e, REG_P, "setp.ne.u32", c->rows, imm(0)));

	k->list = k->time = imm(0);
	k->first_row = c->first;
	ones_fill(k, c);
	for (uint32_t i = 0; i < list->stages; i++) {
		const DeviceStage *g = &list->stage[i];
		k->my_rows = c->rows;
		if (g->each == RUN_ROWS)
			general_steps(k, g->first, g->end);
		else
			stage_in_time(k, g, c);
	}
	if_end(e, none);
}

/* Activations that a test gives. */
static void watched_store(Kernel *k)
{
	Emit *e = k->e;
	Reg out = POINTER(k, out), first = POINTER(k, out_first), count = reg(e, REG_R), n = reg(e, REG_R);
	uint32_t none = unless_begin(e, op2(e, REG_P, "setp.eq.u64", out, imm(0)));

	ins(e, "ld.param.u32 $, [job+#]", count, (uint32_t)offsetof(Job, watched_count));
	Loop l = loop_begin(e, mad(e, k->member, k->workers, k->tid), op2(e, REG_R, "mul.lo.u32", k->rows, count),
	                    k->s->team_blocks * k->workers);
	Reg row = op2(e, REG_R, "div.u32", l.i, count), flags = row_flags(k, row);
	ins(e, "rem.u32 $, $, $", n, l.i, count);
	uint32_t end = unless_begin(e, has_flag(k, flags, ROW_NOT_WATCHED));
	Reg number = op1(e, REG_D, "cvt.u64.u32", op2(e, REG_R, "and.b32", flags, imm(ROW_CASE)));
	Reg col = load(e, REG_R, "ld.global.nc.u32", place(e, POINTER(k, watched), n, 4), 0);
	Reg value = load(e, REG_F, "ld.global.f32", place(e, row_address(k, row), col, 4), column_at(k, BUF_ACT, 0));
	Reg at = op2(e, REG_D, "mul.lo.u64", op2(e, REG_D, "sub.u64", number, first), op1(e, REG_D, "cvt.u64.u32", count));
	at = op2(e, REG_D, "add.u64", at, op1(e, REG_D, "cvt.u64.u32", n));
	ins(e, "st.global.f32 [$], $", op3(e, REG_D, "mad.lo.u64", at, imm(4), out), value);
	if_end(e, end);
	loop_end(e, &l);
	if_end(e, none);
}

/* Which rows have an input: none yet. */
static void masks_clear(Kernel *k, const Barriers *b)
{
	Emit *e = k->e;
	uint32_t words = k->s->job->data.inputs * k->s->job->mask_words, all = k->s->team_blocks * k->s->threads;

	if (!has_step(k, STEP_MARK))
		return;
	Reg mask = place(e, POINTER(k, mask), k->team, 4 * words);
	Loop l = loop_begin(e, mad(e, k->member, k->s->threads, k->tid), imm(words), all);
	ins(e, "st.global.u32 [$], 0", place(e, mask, l.i, 4));
	loop_end(e, &l);
	barrier_all(k, &b->team);
}

static void chunk_emit(Kernel *k, Reg chunk, const Barriers *b)
{
	Emit *e = k->e;
	ChunkRegs c = chunk_begin(k, chunk);

	masks_clear(k, b);
	chunk_rows(k, &c);
	spent(k, SPENT_ROWS);
	barrier_all(k, &b->team);
	spent(k, SPENT_TEAM);
	uint32_t tally = label(e), end = label(e);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", k->tid, imm(k->workers)), tally);
	if (k->s->test)
		watched_store(k);
	else
		general_gradient(k, c.fresh);
	ins(e, "bra L#", end);
	label_here(e, tally);
	uint32_t other = if_begin(e, same(e, k->member, imm(k->s->team_blocks - 1)));
	tally_leaf(k, c.fresh);
	if_end(e, other);
	label_here(e, end);
	spent(k, SPENT_GRADIENT);
	barrier_all(k, &b->team);
	spent(k, SPENT_TEAM_AFTER);
}

/* ---- leaves ---- */

static void leaf_general(Kernel *k, Reg leaf, const Barriers *b)
{
	Emit *e = k->e;
	Reg chunk = load(e, REG_D, "ld.global.nc.u64", leaf, offsetof(DeviceLeaf, chunk));
	Reg chunks = load(e, REG_R, "ld.global.nc.u32", leaf, offsetof(DeviceLeaf, chunks));

	chunk = op3(e, REG_D, "mad.lo.u64", chunk, imm(sizeof(DeviceChunk)), POINTER(k, chunk));
	Loop l = loop_begin(e, imm(0), chunks, 1);
	chunk_emit(k, place(e, chunk, l.i, sizeof(DeviceChunk)), b);
	loop_end(e, &l);
}

/* In waves of as many as there are sums. */
static void leaves_emit(Kernel *k, Reg update, Reg leaves, const Barriers *b)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	bool waves = !s->test && s->leaves[0] > s->job->sums;
	uint32_t most = waves ? s->job->sums : UINT32_MAX / 2;
	Reg leaf = load(e, REG_D, "ld.global.nc.u64", update, offsetof(DeviceUpdate, leaf));

	leaf = op3(e, REG_D, "mad.lo.u64", leaf, imm(sizeof(DeviceLeaf)), POINTER(k, leaf));
	Loop w = loop_begin(e, imm(0), leaves, most);
	Reg end = op2(e, REG_R, "min.u32", leaves, add(e, w.i, imm(most)));
	Loop l = loop_begin(e, add(e, w.i, k->team), end, s->teams);
	ins(e, "mov.u32 $, $", k->leaf_number, l.i);
	leaf_general(k, place(e, leaf, l.i, sizeof(DeviceLeaf)), b);
	loop_end(e, &l);
	barrier_all(k, &b->grid);
	spent(k, SPENT_GRID);
	if (waves) {
		uint32_t one = if_begin(e, op2(e, REG_P, "setp.gt.u32", leaves, imm(most)));
		wave_join(k, divide(e, w.i, most), op2(e, REG_R, "sub.u32", end, w.i));
		barrier_all(k, &b->grid);
		if_end(e, one);
	}
	loop_end(e, &w);
}

/* ---- weights with noise ---- */

/* For every place its weight, with the noise of the update where its link has some; in both forms. */
static void weights_disturb(Kernel *k, const Barrier *grid)
{
	Emit *e = k->e;
	const Job *j = k->s->job;
	uint32_t all = k->s->teams * k->s->team_blocks * k->s->threads;
	NoiseKey key = noise_key_emit(k, NOISE_AT_WEIGHT, 0);

	remark(e, "noise of weights");
	for (uint32_t i = 0; i < j->noisy_panels; i++) {
		const NoisyPanel *p = &k->s->noisy_panel[i];
		Loop l = loop_begin(e, mad(e, k->block, k->s->threads, k->tid), imm((uint32_t)p->size), all);
		Reg w = op1(e, REG_F, "mov.f32",
		            load(e, REG_F, "ld.global.f32", place(e, place_at(e, POINTER(k, w), p->at * 4), l.i, 4), 0));
		Reg number =
			load(e, REG_R, "ld.global.nc.u8", place(e, place_at(e, POINTER(k, noise_class), p->at), l.i, 1), 0);
		uint32_t none = unless_begin(e, same(e, number, imm(NO_LINK)));
		Reg link =
			load(e, REG_R, "ld.global.nc.u32", place(e, place_at(e, POINTER(k, noise_link), p->at * 4), l.i, 4), 0);
		Reg word = noise_link_word(e, key, link);
		for (uint32_t c = 0; c < k->s->noise_classes; c++) {
			uint32_t other = if_begin(e, same(e, number, imm(c)));
			ins(e, "mov.f32 $, $", w,
			    noise_applied(e, k->s->noise_class[c].kind, k->s->noise_class[c].amount, 1, word, w));
			if_end(e, other);
		}
		if_end(e, none);
		ins(e, "st.global.f32 [$], $", place(e, place_at(e, POINTER(k, noisy), p->at * 4), l.i, 4), w);
		if (p->copy != NO_COPY) {
			Reg row = divide(e, l.i, p->row), col = modulo(e, l.i, p->row, row);
			uint32_t past = if_begin(e, less(e, col, imm(p->cols)));
			Reg to = place(e, place_at(e, POINTER(k, noisy_copies), p->copy * 4), col, p->copy_row * 4);
			ins(e, "st.global.f32 [$], $", place(e, to, row, 4), w);
			if_end(e, past);
		}
		loop_end(e, &l);
	}
	barrier_all(k, grid);
}

void update_general(Kernel *k, Reg update, const Barriers *b)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Reg leaves = load(e, REG_R, "ld.global.nc.u32", update, offsetof(DeviceUpdate, leaves));

	if (s->mode != JOB_APPLY) {
		if (s->job->noisy)
			weights_disturb(k, &b->grid);
		leaves_emit(k, update, leaves, b);
		uint32_t last = if_begin(e, same(e, k->block, imm(s->teams * s->team_blocks - 1)));
		uint32_t tally = if_begin(e, op2(e, REG_P, "setp.ge.u32", k->tid, imm(k->workers)));
		tally_update(k, update);
		if_end(e, tally);
		if_end(e, last);
	}
	leaves_finish(k, leaves, &b->grid);
	spent(k, SPENT_UPDATE);
	barrier_all(k, &b->grid);
	spent(k, SPENT_GRID_AFTER);
}
