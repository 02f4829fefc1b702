/* SPDX-License-Identifier: MIT */
/* Sums of any number of leaves, the norm of the gradient, the sum that waits for its update. In: sums of leaves. Out:
 * totals. Must hold: leaves join as doc/arithmetic.md says, like carries of a binary counter, and what is left at the
 * end from the last one down. */
#include <assert.h>

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

static void known_join(Emit *e, JoinKnown *j)
{
	Reg *to = &j->level[--j->depth - 1], x = j->level[j->depth];

	*to = to->type == REG_D ? add_field(e, *to, x, j->is_double) : op2(e, REG_F, "add.rn.ftz.f32", *to, x);
}

void known_add(Emit *e, JoinKnown *j, Reg x)
{
	assert(j->depth <= JOIN_LEVELS);
	j->level[j->depth++] = x;
	for (uint32_t bits = j->count++; bits & 1; bits >>= 1)
		known_join(e, j);
}

Reg known_end(Emit *e, JoinKnown *j)
{
	assert(j->depth);
	while (j->depth > 1)
		known_join(e, j);
	return j->level[0];
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
	ins(e, "mov.f32 $, 0f00000000", x); /* the first level adds it, and drops the sum */
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

/* ---- Job.posted: every word of a sum is its own flag ----
 *
 * No barrier of the grid stands between gradients and the update: gradients store each word once, and the thread of a
 * place loads the words of all leaves until none is NO_SUM, a NaN that no arithmetic gives.
 *
 * Two copies of the sums alternate. The thread that loads a word is the one that resets it, after it has arrived at the
 * barrier that ends update n, so before it arrives at that of n + 1, which all blocks wait for before they store sums
 * of n + 2 to the same word. */

/* Words that a thread waits for at a time: a subtree of leaves. */
enum { WORDS_AT_ONCE = 32 };

static uint32_t sum_offset(const Kernel *k, uint32_t leaf) { return leaf * (uint32_t)k->s->job->floats * 4; }

/* Every panel has one gradient, which stores all of its rows and columns. */
bool sums_complete(const Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t found = 0;

	for (uint32_t i = 0; i < s->job->panels; i++)
		for (uint32_t n = s->list->gradient; n < s->list->steps; n++) {
			const DeviceStep *g = &s->step[n];
			const DevicePanel *p = &s->panel[i];
			uint64_t rows = (uint64_t)g->depth + (g->kind == STEP_GRADIENT_INDEX && g->bias);
			if (g->panel != i)
				continue;
			if (p->kind || g->at != p->at || g->sum_row != p->row || g->cols < p->cols || rows * p->row != p->size ||
			    g->kind == STEP_GRADIENT_LINKS)
				return false;
			found++;
		}
	return found == s->job->panels && found == s->list->steps - s->list->gradient;
}

Reg sums_at(Kernel *k)
{
	Emit *e = k->e;

	if (!k->posts)
		return POINTER(k, sum);
	Reg odd = op2(e, REG_R, "and.b32", op1(e, REG_R, "cvt.u32.u64", k->number), imm(1));
	return place(e, POINTER(k, posted), odd, sum_offset(k, k->s->leaves[0]));
}

/* By pairs: a chain would take as many latencies as there are words. */
static Reg largest(Emit *e, const Reg *word, uint32_t count)
{
	uint32_t half = count / 2;

	return count == 1 ? word[0]
	                  : op2(e, REG_R, "max.u32", largest(e, word, half), largest(e, word + half, count - half));
}

/* Sums of a place, of `count` leaves from `first` on. All loads are under way together; those that came too early are
 * repeated, so that little is asked of memory while others are late. */
static void posted_wait(Kernel *k, Reg from, uint32_t first, uint32_t count, Reg word[WORDS_AT_ONCE])
{
	Emit *e = k->e;
	uint32_t top = label(e), done = label(e);
	Reg polls = op1(e, REG_R, "mov.u32", imm(0));

	for (uint32_t i = 0; i < count; i++)
		word[i] = load(e, REG_R, "ld.relaxed.gpu.global.u32", from, sum_offset(k, first + i));
	label_here(e, top);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", largest(e, word, count), imm(NO_SUM)), done);
	for (uint32_t i = 0; i < count; i++)
		ins(e, "@$ ld.relaxed.gpu.global.u32 $, [$+#]", same(e, word[i], imm(NO_SUM)), word[i], from,
		    sum_offset(k, first + i));
	polls_count(k, polls, top);
	label_here(e, done);
}

Reg posted_sum(Kernel *k, Reg from)
{
	Emit *e = k->e;
	Reg word[WORDS_AT_ONCE];
	JoinKnown j = { .depth = 0 };
	uint32_t leaves = k->s->leaves[0];

	for (uint32_t n = 0; n < leaves; n++) {
		if (n % WORDS_AT_ONCE == 0)
			posted_wait(k, from, n, min_u32(WORDS_AT_ONCE, leaves - n), word);
		known_add(e, &j, op1(e, REG_F, "mov.b32", word[n % WORDS_AT_ONCE]));
	}
	return known_end(e, &j);
}

void posted_reset(Kernel *k)
{
	Emit *e = k->e;
	Reg sums = sums_at(k);

	for (uint32_t i = 0; i < k->s->job->panels; i++) {
		const DevicePanel *p = &k->s->panel[i];
		Loop l = loop_begin(e, first_place(k, i), imm((uint32_t)p->size), places_at_once(k));
		Reg at = place(e, place_at(e, sums, p->at * 4), l.i, 4);
		uint32_t none = if_begin(e, less(e, modulo(e, l.i, p->row, divide(e, l.i, p->row)), imm(p->cols)));
		for (uint32_t n = 0; n < k->s->leaves[0]; n++)
			ins(e, "st.relaxed.gpu.global.u32 [$+#], #", at, sum_offset(k, n), NO_SUM);
		if_end(e, none);
		loop_end(e, &l);
	}
}
