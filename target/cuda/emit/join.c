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

/* ---- sums and weights whose words are their own flags (Job.posted) ----
 *
 * No barrier of the grid stands between gradients and the update, or between the update and the passes of the next one:
 * a word is stored once, and its reader loads it until it is not NO_SUM, a NaN that no arithmetic gives.
 *
 * Of sums and of weights two buffers alternate. The thread that owns a place (first_place) resets its words:
 * - sums of update n, which it alone loads, after it has them. Blocks store sums of n + 2 to the same words after they
 *   have seen (teams_poll) that all blocks arrived at the barrier of their team in n + 1.
 * - weights of update n, which all blocks load, after it has seen that all blocks arrived at the barrier of their team
 *   in n. It stores those of n + 2 itself; others load them after they have seen its arrival in n + 1.
 * Rows that blocks of a team exchange also have two buffers, for the same reason. */

Reg number_is_odd(Kernel *k) { return op2(k->e, REG_R, "and.b32", op1(k->e, REG_R, "cvt.u32.u64", k->number), imm(1)); }

static uint64_t weights_floats(const Kernel *k) { return k->s->job->floats + k->s->copies; }
static uint64_t sums_bytes(const Kernel *k) { return k->s->leaves[0] * k->s->job->floats * sizeof(float); }

uint64_t posted_bytes(const Kernel *k) { return 2 * (sums_bytes(k) + weights_floats(k) * sizeof(float)); }

/* Weights that the passes of an update read (next: of the one after it). */
static Reg weights_at(Kernel *k, bool next)
{
	Emit *e = k->e;
	Reg odd = number_is_odd(k);

	if (next)
		odd = op2(e, REG_R, "xor.b32", odd, imm(1));
	return place(e, place_at(e, POINTER(k, posted), 2 * sums_bytes(k)), odd,
	             (uint32_t)(weights_floats(k) * sizeof(float)));
}

/* Bytes of a weight, or of a transposed one, in such a buffer. */
static uint64_t weight_offset(const Kernel *k, const float *from)
{
	const Job *j = k->s->job;
	bool copy = from >= j->copies && from < j->copies + k->s->copies;

	assert(copy || (from >= j->w && from < j->w + j->floats));
	return (copy ? j->floats + (uint64_t)(from - j->copies) : (uint64_t)(from - j->w)) * sizeof(float);
}

/* Are all weights of passes among those that updates store? */
static bool weights_complete(const Kernel *k)
{
	const Job *j = k->s->job;

	for (uint32_t i = 0; i < k->regions; i++) {
		const float *from = k->region[i].from, *end = from + (size_t)k->region[i].row * k->region[i].rows;
		bool copies = from >= j->copies && end <= j->copies + k->s->copies;
		if (!copies && !(from >= j->w && end <= j->w + j->floats))
			return false;
	}
	return j->floats % 4 == 0 && k->s->copies % 4 == 0;
}

/* Words that a thread waits for at a time: a subtree of leaves. */
enum { WORDS_AT_ONCE = 32 };

static uint32_t sum_offset(const Kernel *k, uint32_t leaf) { return leaf * (uint32_t)k->s->job->floats * 4; }

/* Every panel has one gradient, which stores all of its rows and columns. */
static bool sums_complete(const Kernel *k)
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

bool can_post(const Kernel *k)
{
	return k->s->team_blocks > 1 && k->chunks == 1 && !k->inliners && !k->overlaid && sums_complete(k) &&
	       weights_complete(k);
}

Reg sums_at(Kernel *k)
{
	Emit *e = k->e;

	if (!k->posts)
		return POINTER(k, sum);
	return place(e, POINTER(k, posted), number_is_odd(k), (uint32_t)sums_bytes(k));
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

/* A weight that was loaded may be the NaN that is NO_SUM: another one. */
static Reg posted_weight(Emit *e, Reg w)
{
	return op2(e, REG_R, "min.u32", op1(e, REG_R, "mov.b32", w), imm(NO_SUM - 1));
}

void weight_post(Kernel *k, const DevicePanel *p, Reg row, Reg col, Reg place_of, Reg weight)
{
	Emit *e = k->e;
	Reg at = weights_at(k, true), w = posted_weight(e, weight);

	ins(e, "st.relaxed.gpu.global.u32 [$], $", place(e, place_at(e, at, p->at * 4), place_of, 4), w);
	if (p->copy != NO_COPY)
		ins(e, "st.relaxed.gpu.global.u32 [$], $",
		    place(e, place(e, place_at(e, at, (k->s->job->floats + p->copy) * 4), col, p->copy_row * 4), row, 4), w);
}

/* 16 bytes of weights that a thread loads; has: P, not for all threads. */
typedef struct PostedQuad {
	Reg from, to, has, word[4];
	uint32_t from_offset, to_offset;
	bool partial;
} PostedQuad;

static void quad_load(Emit *e, const PostedQuad *q, Reg only)
{
	ins(e, "@$ ld.relaxed.gpu.global.v4.u32 {$, $, $, $}, [$+#]", only, q->word[0], q->word[1], q->word[2], q->word[3],
	    q->from, q->from_offset);
}

/* Those that came too early are loaded again. */
static void quads_wait(Kernel *k, PostedQuad *q, uint32_t count)
{
	Emit *e = k->e;
	uint32_t top = label(e), done = label(e);
	Reg polls = op1(e, REG_R, "mov.u32", imm(0)), word[WORDS_AT_ONCE];

	assert(4 * count <= WORDS_AT_ONCE);
	for (uint32_t n = 0; n < count; n++)
		for (uint32_t i = 0; i < 4; i++)
			word[4 * n + i] = q[n].word[i] = op1(e, REG_R, "mov.u32", imm(0));
	for (uint32_t n = 0; n < count; n++)
		quad_load(e, &q[n], q[n].partial ? q[n].has : op2(e, REG_P, "setp.eq.u32", polls, imm(0)));
	label_here(e, top);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", largest(e, word, 4 * count), imm(NO_SUM)), done);
	for (uint32_t n = 0; n < count; n++)
		quad_load(e, &q[n], same(e, largest(e, q[n].word, 4), imm(NO_SUM)));
	polls_count(k, polls, top);
	label_here(e, done);
	for (uint32_t n = 0; n < count; n++) {
		const Reg *w = q[n].word;
		if (q[n].partial)
			ins(e, "@$ st.shared.v4.u32 [$+#], {$, $, $, $}", q[n].has, q[n].to, q[n].to_offset, w[0], w[1], w[2],
			    w[3]);
		else
			ins(e, "st.shared.v4.u32 [$+#], {$, $, $, $}", q[n].to, q[n].to_offset, w[0], w[1], w[2], w[3]);
	}
}

/* Quads of a region, of which each thread has every k->s->threads-th. from, to: its first one of the first region. */
static uint32_t region_quads(Kernel *k, const WeightRegion *r, Reg from, Reg to, PostedQuad *q)
{
	uint32_t quads = r->row * r->rows / 4, threads = k->s->threads, count = (uint32_t)ceil_div(quads, threads);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t left = quads - i * threads, at = i * threads * 16;
		q[i] = (PostedQuad){ .from = from, .to = to, .partial = left < threads };
		q[i].from_offset = (uint32_t)weight_offset(k, r->from) + at;
		q[i].to_offset = r->at + at;
		if (q[i].partial)
			q[i].has = less(k->e, k->tid, imm(left));
	}
	return count;
}

/* To shared memory, by all threads. They wait for one quad each before they load the others: all weights of all blocks,
 * again and again, would be more than the cache delivers. */
void weights_receive(Kernel *k)
{
	uint32_t all = 0, count = 0;
	Reg from = place(k->e, weights_at(k, false), k->tid, 16), to = mad(k->e, k->tid, 16, k->memory);

	remark(k->e, "weights");
	for (uint32_t i = 0; i < k->regions; i++)
		all += (uint32_t)ceil_div(k->region[i].row * k->region[i].rows / 4, k->s->threads);
	PostedQuad *q = NEW(&k->s->cx->scratch, all, PostedQuad);
	for (uint32_t i = 0; i < k->regions; i++)
		count += region_quads(k, &k->region[i], from, to, q + count);
	for (uint32_t i = 0, some = 1; i < all; i += some, some = min_u32(WORDS_AT_ONCE / 4, all - i))
		quads_wait(k, q + i, some);
}

/* Words of the places that a worker owns: sums of the leaves, weights in both forms. */
static void sums_reset(Kernel *k, Reg sums, const DevicePanel *p, Reg place_of)
{
	Reg at = place(k->e, place_at(k->e, sums, p->at * 4), place_of, 4);

	for (uint32_t n = 0; n < k->s->leaves[0]; n++)
		ins(k->e, "st.relaxed.gpu.global.u32 [$+#], #", at, sum_offset(k, n), NO_SUM);
}

static void weights_reset(Kernel *k, Reg weights, const DevicePanel *p, Reg row, Reg col, Reg place_of)
{
	Emit *e = k->e;
	Reg copies = place_at(e, weights, (k->s->job->floats + p->copy) * 4);

	ins(e, "st.relaxed.gpu.global.u32 [$], #", place(e, place_at(e, weights, p->at * 4), place_of, 4), NO_SUM);
	if (p->copy != NO_COPY)
		ins(e, "st.relaxed.gpu.global.u32 [$], #", place(e, place(e, copies, col, p->copy_row * 4), row, 4), NO_SUM);
}

static void owned_reset(Kernel *k, const Reg *sums, uint32_t buffers, const Reg *weights)
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < k->s->job->panels; i++) {
		const DevicePanel *p = &k->s->panel[i];
		Loop l = loop_begin(e, first_place(k, i), imm((uint32_t)p->size), places_at_once(k));
		Reg row = divide(e, l.i, p->row), col = modulo(e, l.i, p->row, row);
		uint32_t none = if_begin(e, less(e, col, imm(p->cols)));
		for (uint32_t n = 0; n < buffers; n++)
			sums_reset(k, sums[n], p, l.i);
		if (weights)
			weights_reset(k, *weights, p, row, col, l.i);
		if_end(e, none);
		loop_end(e, &l);
	}
}

void posted_reset(Kernel *k)
{
	Reg sums = sums_at(k), weights = weights_at(k, false);

	owned_reset(k, &sums, 1, &weights);
}

/* Both buffers of weights: with padding, which no update stores. */
static void weights_fill(Kernel *k, size_t field, uint64_t at, uint64_t floats)
{
	Emit *e = k->e;
	uint32_t all = k->s->teams * k->s->team_blocks * k->s->threads;
	Reg to = place_at(e, weights_at(k, false), at * 4);
	Loop l = loop_begin(e, mad(e, k->block, k->s->threads, k->tid), imm((uint32_t)floats), all);
	Reg w = posted_weight(e, load(e, REG_F, "ld.global.f32", place(e, pointer(k, field), l.i, 4), 0));

	for (uint32_t i = 0; i < 2; i++)
		ins(e, "st.relaxed.gpu.global.u32 [$], $", place(e, place_at(e, to, i * weights_floats(k) * 4), l.i, 4), w);
	loop_end(e, &l);
}

void posted_begin(Kernel *k, Barrier *grid)
{
	Reg sums[2] = { sums_at(k) }, next = weights_at(k, true);

	sums[1] = place_at(k->e, sums[0], sums_bytes(k));
	weights_fill(k, offsetof(Job, w), 0, k->s->job->floats);
	weights_fill(k, offsetof(Job, copies), k->s->job->floats, k->s->copies);
	uint32_t worker = if_begin(k->e, less(k->e, k->tid, imm(k->workers)));
	owned_reset(k, sums, 2, NULL);
	if_end(k->e, worker);
	barrier_all(k, grid);
	grid->before = grid->blocks;
	worker = if_begin(k->e, less(k->e, k->tid, imm(k->workers)));
	owned_reset(k, NULL, 0, &next);
	if_end(k->e, worker);
}

/* ---- flags of a job: the number of the first update that sets one, from the largest number down; 0: none ---- */

static Reg number_flag(Kernel *k)
{
	return op2(k->e, REG_R, "sub.u32", imm(UINT32_MAX), op1(k->e, REG_R, "cvt.u32.u64", k->number));
}

/* field: of JobResult. only: P */
void flag_set(Kernel *k, Reg only, size_t field)
{
	Emit *e = k->e;

	if (k->posts)
		ins(e, "@$ red.relaxed.gpu.global.max.u32 [$+#], $", only, POINTER(k, result), (uint32_t)field, number_flag(k));
	else
		ins(e, "@$ st.relaxed.gpu.global.u32 [$+#], 1", only, POINTER(k, result), (uint32_t)field);
}

/* P: by an update before this one. Others may be ahead, and have set it in this one. */
static Reg flag_before(Kernel *k, size_t field)
{
	Reg flag = load(k->e, REG_R, "ld.relaxed.gpu.global.u32", POINTER(k, result), (uint32_t)field);

	return op2(k->e, REG_P, "setp.gt.u32", flag, number_flag(k));
}

/* All blocks begin this update. By one thread, after the first barrier of the block in the update. */
void update_signal(Kernel *k, const Barrier *grid)
{
	ins(k->e, "red.release.gpu.global.add.u32 [$], 1", grid->counter);
}

void update_before_wait(Kernel *k, const Barrier *grid)
{
	Barrier b = *grid;

	b.turn = mad(k->e, op1(k->e, REG_R, "cvt.u32.u64", k->number), b.blocks, imm(b.before + b.blocks));
	barrier_poll(k, &b);
}

/* Has the update before ended the job? By one thread. */
static void end_look(Kernel *k, Reg update, const Barrier *grid)
{
	Emit *e = k->e;
	Reg stops = reg(e, REG_P);

	update_before_wait(k, grid);
	Reg stop = flag_before(k, offsetof(JobResult, stop)), infinite = flag_before(k, offsetof(JobResult, infinite));
	Reg ended = load(e, REG_R, "ld.shared.u32", k->memory, k->at_info + INFO_ENDS);
	ins(e, "st.shared.u32 [$+#], $", k->memory, k->at_info + INFO_ENDS,
	    load(e, REG_R, "ld.global.nc.u8", update, offsetof(DeviceUpdate, ends_epoch)));
	ins(e, "and.pred $, $, $", infinite, infinite, op2(e, REG_P, "setp.ne.u32", ended, imm(0)));
	ins(e, "or.pred $, $, $", stops, stop, infinite);
	ins(e, "st.shared.u32 [$+#], $", k->memory, k->at_info + INFO_STOPS,
	    op3(e, REG_R, "selp.u32", imm(1), imm(0), stops));
}

Reg ended_before(Kernel *k)
{
	return op2(k->e, REG_P, "setp.ne.u32", load(k->e, REG_R, "ld.shared.u32", k->memory, k->at_info + INFO_STOPS),
	           imm(0));
}

void end_check(Kernel *k, Reg update, const Barrier *grid, bool signals)
{
	uint32_t one = if_begin(k->e, same(k->e, k->tid, imm(k->workers)));

	if (signals)
		update_signal(k, grid);
	end_look(k, update, grid);
	if_end(k->e, one);
}
