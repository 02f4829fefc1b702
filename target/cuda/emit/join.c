/* SPDX-License-Identifier: MIT */
/* Sums of any number of leaves, the norm of the gradient, the sum that waits for its update. In: sums of leaves. Out:
 * totals. Must hold: leaves join as doc/arithmetic.md says, like carries of a binary counter, and what is left at the
 * end from the last one down. */
#include "emit.h"

JoinLevels join_begin(Kernel *k, uint32_t type, Reg is_double)
{
	JoinLevels l = { .type = type, .is_double = is_double, .count = op1(k->e, REG_R, "mov.u32", imm(0)) };

	for (uint32_t i = 0; i < JOIN_LEVELS; i++)
		l.level[i] = reg(k->e, type);
	return l;
}

static Reg sum_of(Kernel *k, const JoinLevels *l, Reg a, Reg b)
{
	if (l->type == REG_D)
		return add_field(k->e, a, b, l->is_double);
	return op2(k->e, l->type, l->type == REG_F ? "add.rn.ftz.f32" : "add.rn.f64", a, b);
}

static void copy_to(Kernel *k, const JoinLevels *l, Reg to, Reg from)
{
	ins(k->e, l->type == REG_F ? "mov.f32 $, $" : l->type == REG_D ? "mov.u64 $, $" : "mov.f64 $, $", to, from);
}

void join_add(Kernel *k, const JoinLevels *l, Reg x)
{
	Emit *e = k->e;
	uint32_t done = label(e);

	for (uint32_t i = 0; i < JOIN_LEVELS; i++) {
		uint32_t bit = 1u << i, full = label(e);
		if (i + 1 < JOIN_LEVELS)
			ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", l->count, imm(bit)), imm(0)),
			    full);
		copy_to(k, l, l->level[i], x);
		ins(e, "bra L#", done);
		label_here(e, full);
		if (i + 1 < JOIN_LEVELS)
			copy_to(k, l, x, sum_of(k, l, l->level[i], x));
	}
	label_here(e, done);
	ins(e, "add.u32 $, $, 1", l->count, l->count);
}

Reg join_end(Kernel *k, const JoinLevels *l)
{
	Emit *e = k->e;
	Reg all = reg(e, l->type), any = op2(e, REG_P, "setp.ne.u32", imm(0), imm(0));

	for (uint32_t i = 0; i < JOIN_LEVELS; i++) {
		Reg has = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", l->count, imm(1u << i)), imm(0));
		uint32_t end = if_begin(e, has), first = label(e), next = label(e);
		ins(e, "@!$ bra L#", any, first);
		copy_to(k, l, all, sum_of(k, l, l->level[i], all));
		ins(e, "bra L#", next);
		label_here(e, first);
		copy_to(k, l, all, l->level[i]);
		label_here(e, next);
		ins(e, "or.pred $, $, $", any, any, has);
		if_end(e, end);
	}
	return all;
}

/* ---- sums ---- */

static uint64_t sum_bytes(const Kernel *k) { return k->s->job->floats * 4; }

/* count sums of a place, `bytes` apart. */
static Reg join_some(Kernel *k, Reg from, Reg count)
{
	Emit *e = k->e;
	JoinLevels levels = join_begin(k, REG_F, imm(0));
	Reg at = op1(e, REG_D, "mov.u64", from);
	Loop l = loop_begin(e, imm(0), count, 1);

	join_add(k, &levels, load(e, REG_F, "ld.global.f32", at, 0));
	ins(e, "mov.u64 $, $", at, place_at(e, at, sum_bytes(k)));
	loop_end(e, &l);
	return join_end(k, &levels);
}

/* More leaves than sums: waves of them became subtrees. */
static bool has_waves(const Kernel *k) { return k->s->leaves[0] > k->s->job->sums; }

static Reg stack_place(Kernel *k, Reg from)
{
	return op2(k->e, REG_D, "add.u64", POINTER(k, stack), op2(k->e, REG_D, "sub.u64", from, POINTER(k, sum)));
}

Reg join_leaves(Kernel *k, Reg from, Reg leaves)
{
	Emit *e = k->e;
	uint32_t sums = k->s->job->sums;

	if (!has_waves(k))
		return join_some(k, from, leaves);
	Reg waves = divide(e, add(e, leaves, imm(sums - 1)), sums), x = reg(e, REG_F), at = stack_place(k, from);
	uint32_t one = if_begin(e, same(e, waves, imm(1))), end = label(e);
	ins(e, "mov.f32 $, $", x, join_some(k, from, leaves));
	ins(e, "bra L#", end);
	if_end(e, one);
	Reg any = op2(e, REG_P, "setp.ne.u32", imm(0), imm(0));
	for (uint32_t i = 0; i < JOIN_LEVELS; i++) {
		Reg has = op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", waves, imm(1u << i)), imm(0));
		uint32_t past = if_begin(e, has);
		Reg level = load(e, REG_F, "ld.global.f32", place_at(e, at, i * sum_bytes(k)), 0);
		Reg sum = op2(e, REG_F, "add.rn.ftz.f32", level, x);
		ins(e, "selp.f32 $, $, $, $", x, sum, level, any);
		ins(e, "or.pred $, $, $", any, any, has);
		if_end(e, past);
	}
	label_here(e, end);
	return x;
}

/* for all places of a sum, by all blocks */
static Loop places_begin(Kernel *k)
{
	Emit *e = k->e;
	uint32_t all = k->s->teams * k->s->team_blocks * k->s->threads;

	return loop_begin(e, mad(e, k->block, k->s->threads, k->tid), imm((uint32_t)k->s->job->floats), all);
}

void wave_join(Kernel *k, Reg wave, Reg leaves)
{
	Emit *e = k->e;
	Loop l = places_begin(k);
	Reg from = place(e, POINTER(k, sum), l.i, 4), x = join_some(k, from, leaves), at = stack_place(k, from);
	uint32_t done = label(e);

	for (uint32_t i = 0; i < JOIN_LEVELS; i++) {
		uint32_t full = label(e);
		Reg to = place_at(e, at, i * sum_bytes(k));
		ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", op2(e, REG_R, "and.b32", wave, imm(1u << i)), imm(0)), full);
		ins(e, "st.global.f32 [$], $", to, x);
		ins(e, "bra L#", done);
		label_here(e, full);
		ins(e, "add.rn.ftz.f32 $, $, $", x, load(e, REG_F, "ld.global.f32", to, 0), x);
	}
	label_here(e, done);
	loop_end(e, &l);
}

static void pending_add(Kernel *k, Reg leaves)
{
	Emit *e = k->e;
	Reg full = reg(e, REG_R);

	remark(e, "the sum that waits");
	ins(e, "ld.param.u8 $, [job+#]", full, (uint32_t)offsetof(Job, pending_full));
	Reg is_full = op2(e, REG_P, "setp.ne.u32", full, imm(0));
	Loop l = places_begin(k);
	Reg x = place_sum(k, place(e, POINTER(k, sum), l.i, 4), leaves), to = place(e, POINTER(k, pending), l.i, 4);
	Reg sum = op2(e, REG_F, "add.rn.ftz.f32", load(e, REG_F, "ld.global.f32", to, 0), x);
	ins(e, "st.global.f32 [$], $", to, op3(e, REG_F, "selp.f32", sum, x, is_full));
	loop_end(e, &l);
}

/* ---- the norm ---- */

/* Squares of the links of a leaf, in canonical order. */
static void norm_squares(Kernel *k)
{
	Emit *e = k->e;
	uint32_t leaves = k->s->norm_leaves, all = k->s->teams * k->s->team_blocks * k->s->threads;
	uint32_t size = (uint32_t)(k->s->job->links / leaves), longer = (uint32_t)(k->s->job->links % leaves);
	Reg zero = literal(e, 0);

	remark(e, "squares of the gradient");
	Loop l = loop_begin(e, mad(e, k->block, k->s->threads, k->tid), imm(leaves), all);
	Reg first = add(e, mul(e, l.i, size), op2(e, REG_R, "min.u32", l.i, imm(longer)));
	Reg count = add(e, imm(size), op3(e, REG_R, "selp.u32", imm(1), imm(0), less(e, l.i, imm(longer))));
	Reg sum = literal(e, 0), pending = POINTER(k, pending), places = POINTER(k, place);
	Loop n = loop_begin(e, first, add(e, first, count), 1);
	Reg at = load(e, REG_D, "ld.global.nc.u64", place(e, places, n.i, 8), 0), none = reg(e, REG_D);
	ins(e, "mov.u64 $, 0xffffffffffffffff", none);
	Reg frozen = op2(e, REG_P, "setp.eq.u64", at, none), from = reg(e, REG_D);
	ins(e, "selp.b64 $, 0, $, $", from, op2(e, REG_D, "shl.b64", at, imm(2)), frozen);
	Reg g = load(e, REG_F, "ld.global.f32", op2(e, REG_D, "add.u64", pending, from), 0);
	Reg x = op3(e, REG_G, "selp.f64", zero, op1(e, REG_G, "cvt.f64.f32", g), frozen);
	ins(e, "add.rn.f64 $, $, $", sum, sum, op2(e, REG_G, "mul.rn.f64", x, x));
	loop_end(e, &n);
	ins(e, "st.global.f64 [$], $", place(e, POINTER(k, norm), l.i, 8), sum);
	loop_end(e, &l);
}

/* One thread. The factor goes behind the squares. */
static void norm_join(Kernel *k)
{
	Emit *e = k->e;
	uint32_t leaves = k->s->norm_leaves, first = if_begin(e, same(e, k->block, imm(0)));
	uint32_t end = if_begin(e, same(e, k->tid, imm(0)));
	JoinLevels levels = join_begin(k, REG_G, imm(0));
	Reg norm = POINTER(k, norm), one = literal(e, 1);
	Loop l = loop_count(e, leaves);

	join_add(k, &levels, load(e, REG_G, "ld.global.f64", place(e, norm, l.i, 8), 0));
	loop_end(e, &l);
	Reg x = op1(e, REG_G, "sqrt.rn.f64", join_end(k, &levels));
	Reg large = op2(e, REG_P, "setp.ge.f64", x, one); /* not: less than 1, or no number */
	x = op2(e, REG_G, "div.rn.f64", one, op3(e, REG_G, "selp.f64", x, one, large));
	x = op1(e, REG_G, "cvt.f64.f32", op1(e, REG_F, "cvt.rn.f32.f64", x));
	ins(e, "st.global.f64 [$], $", place(e, norm, imm(leaves), 8), x);
	if_end(e, end);
	if_end(e, first);
}

Reg norm_factor(Kernel *k)
{
	Emit *e = k->e;
	Reg at = place(e, POINTER(k, norm), imm(k->s->norm_leaves), 8);

	return op1(e, REG_F, "cvt.rn.f32.f64", load(e, REG_G, "ld.global.f64", at, 0));
}

/* ---- ties ---- */

/* Tied weights have one sum: a thread adds those of its links in their order, and gives it to all. */
static void ties_add(Kernel *k)
{
	Emit *e = k->e;
	uint32_t all = k->s->teams * k->s->team_blocks * k->s->threads;
	Reg ties = POINTER(k, tie), tied = POINTER(k, tied), pending = POINTER(k, pending);

	remark(e, "tied weights");
	Loop l = loop_begin(e, mad(e, k->block, k->s->threads, k->tid), imm(k->s->job->ties), all);
	Reg tie = place(e, ties, l.i, sizeof(DeviceTie)),
		to = load(e, REG_D, "ld.global.nc.u64", tie, offsetof(DeviceTie, to));
	Reg first = place(e, tied, load(e, REG_R, "ld.global.nc.u32", tie, offsetof(DeviceTie, first)), 8);
	Reg count = load(e, REG_R, "ld.global.nc.u32", tie, offsetof(DeviceTie, count)),
		at = op3(e, REG_D, "mad.lo.u64", to, imm(4), pending);
	Reg sum = load(e, REG_F, "ld.global.f32", at, 0);
	for (int turn = 0; turn < 2; turn++) {
		Loop n = loop_begin(e, imm(0), count, 1);
		Reg from = load(e, REG_D, "ld.global.nc.u64", place(e, first, n.i, 8), 0);
		from = op3(e, REG_D, "mad.lo.u64", from, imm(4), pending);
		if (turn)
			ins(e, "st.global.f32 [$], $", from, sum);
		else
			ins(e, "add.rn.ftz.f32 $, $, $", sum, sum, load(e, REG_F, "ld.global.f32", from, 0));
		loop_end(e, &n);
	}
	ins(e, "st.global.f32 [$], $", at, sum);
	loop_end(e, &l);
}

void leaves_finish(Kernel *k, Reg leaves, const Barrier *grid)
{
	const EmitSource *s = k->s;
	bool applies = s->mode == JOB_UPDATE || s->mode == JOB_APPLY, pending = needs_pending(s);

	if (pending && s->mode != JOB_APPLY) {
		pending_add(k, leaves);
		barrier_all(k, grid);
	}
	if (applies && s->job->ties) {
		ties_add(k);
		barrier_all(k, grid);
	}
	if (applies && s->job->needs_norm) {
		norm_squares(k);
		barrier_all(k, grid);
		norm_join(k);
		barrier_all(k, grid);
	}
	if (!applies)
		return;
	uint32_t end = if_begin(k->e, less(k->e, k->tid, imm(k->workers)));
	update_joined(k, leaves, pending);
	if_end(k->e, end);
}
