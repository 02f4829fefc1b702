/* SPDX-License-Identifier: MIT */
/* Restarts of a tiny network with few seeds: a group of threads, part of a warp, per seed. In and out: as of lanes.c,
 * with the same bits.
 *
 * A thread computes a case. Then it sums the gradient of some links over all cases, in order, and updates these
 * links. Activations, deltas and new weights are exchanged through shared memory. A group without a seed goes on, for
 * the barriers of its warp, until no group of the warp has one. */
#include <assert.h>
#include <string.h>

#include "lanes.h"

enum { MIN_GROUP = 8, MAX_GROUP = 32 };

uint32_t group_threads(const LaneSource *s)
{
	uint32_t threads = MIN_GROUP;

	while (threads < s->cases && threads < MAX_GROUP)
		threads *= 2;
	return s->cases <= threads ? threads : 0;
}

/* ---- memory of a group ---- */

typedef struct GroupPlan {
	uint32_t threads;            /* of a group */
	uint32_t row;                /* bytes of a value of all cases; adjacent rows begin in different banks */
	uint32_t *delta, *act;       /* [units] offsets of rows in the memory of the group; of inputs, of the block */
	uint32_t ones, errors;       /* offsets of rows in the memory of the group */
	uint32_t w;                  /* offset of weights there */
	uint32_t bytes, block_bytes; /* memory of a group; of a block, before its groups */
	uint32_t slots;              /* links of a thread */
	uint32_t own_slots;          /* the first of them, whose sources are not inputs */
	GroupLink *link;             /* [slots][threads] */
} GroupPlan;

/* Adds links whose sources are inputs, or those whose are not, padded to whole slots. */
static void slots_add(GroupPlan *p, const LaneSource *s, bool inputs)
{
	uint32_t n = p->slots * p->threads;

	for (uint32_t i = 0; i < s->computed; i++) {
		Unit u = s->unit[i].unit;
		for (uint64_t l = s->net->row[u]; l < s->net->row[u + 1]; l++) {
			Unit from = net_source(s->net, u, l);
			const Block *b = net_block(s->net, u, l);
			if (is_input(s, from) != inputs)
				continue;
			p->link[n++] = (GroupLink){ .delta = p->delta[u],
				                        .source = from ? p->act[from] : p->ones,
				                        .to = p->w + (uint32_t)l * 4,
				                        .at = (uint32_t)l * 4,
				                        .rate = (float)(s->param[P_RATE] * (double)b->rate),
				                        .updated = !b->frozen };
		}
	}
	for (; n % p->threads; n++)
		p->link[n] = (GroupLink){ .delta = p->ones, .source = inputs ? 0 : p->ones, .to = p->w };
	p->slots = n / p->threads;
}

static uint32_t take(uint32_t *bytes, uint32_t more)
{
	uint32_t at = *bytes;

	*bytes += more;
	return at;
}

static GroupPlan *group_plan(const LaneSource *s)
{
	Arena *a = &s->cx->scratch;
	GroupPlan *p = NEW(a, 1, GroupPlan);

	p->threads = group_threads(s);
	p->row = (p->threads + 4) * 4;
	p->delta = NEW(a, s->net->units + 1, uint32_t);
	p->act = NEW(a, s->net->units + 1, uint32_t);
	for (uint32_t i = 0; i < s->net->inputs; i++)
		p->act[s->input[i]] = take(&p->block_bytes, p->row);
	p->ones = take(&p->bytes, p->row);
	p->errors = take(&p->bytes, p->row);
	for (uint32_t i = 0; i < s->computed; i++) {
		p->delta[s->unit[i].unit] = take(&p->bytes, p->row);
		p->act[s->unit[i].unit] = take(&p->bytes, p->row);
	}
	p->w = take(&p->bytes, pitch(s) * 4);
	p->link = NEW(a, s->net->links + (uint64_t)2 * p->threads, GroupLink);
	slots_add(p, s, false);
	p->own_slots = p->slots;
	slots_add(p, s, true);
	return p;
}

const GroupLink *group_links(const LaneSource *s, uint32_t *count)
{
	const GroupPlan *p = group_plan(s);

	*count = p->slots * p->threads;
	return p->link;
}

/* ---- registers ---- */

/* A link of a thread. */
typedef struct Slot {
	Reg delta, source, to, at, rate; /* as in GroupLink; offsets are addresses */
	bool some;                       /* some threads have padding or a frozen link here */
	Reg updated;                     /* as in GroupLink, if `some` */
	Reg w, state[MAX_STATE], g;
} Slot;

typedef struct Groups {
	Lanes k;
	const GroupPlan *p;
	Slot *slot;
	Reg block, group; /* addresses in shared memory */
	Reg lane;         /* of the warp */
	Reg member;       /* number in the group */
	Reg leader;       /* lane of the group's first thread */
	Reg mine;         /* address of the thread's case in the first row */
	Reg idle;         /* P: the group has no seed */
	Reg target_class; /* of the case */
	Reg has;          /* P: the thread has a case */
} Groups;

static bool all_update(const GroupPlan *p, uint32_t slot)
{
	bool all = true;

	for (uint32_t i = 0; i < p->threads; i++)
		all &= p->link[slot * p->threads + i].updated != 0;
	return all;
}

static Reg zeros(Emit *e, uint32_t type)
{
	Reg r = reg(e, type);

	ins(e, type == REG_F ? "mov.f32 $, 0f00000000" : "mov.u32 $, 0", r);
	return r;
}

static void slots_load(Groups *t)
{
	Emit *e = t->k.e;
	const GroupPlan *p = t->p;
	Reg at = place(e, param_load(e, REG_D, offsetof(LaneJob, link)), t->member, sizeof(GroupLink));

	t->slot = NEW(&t->k.s->cx->scratch, p->slots + 1, Slot);
	for (uint32_t i = 0; i < p->slots; i++) {
		Slot *s = &t->slot[i];
		uint32_t from = i * p->threads * (uint32_t)sizeof(GroupLink);
		Reg base = i < p->own_slots ? t->group : t->block;
		s->delta =
			add(e, t->group, load(e, REG_R, "ld.global.nc.u32", at, from + (uint32_t)offsetof(GroupLink, delta)));
		s->source = add(e, base, load(e, REG_R, "ld.global.nc.u32", at, from + (uint32_t)offsetof(GroupLink, source)));
		s->to = add(e, t->group, load(e, REG_R, "ld.global.nc.u32", at, from + (uint32_t)offsetof(GroupLink, to)));
		s->at = load(e, REG_R, "ld.global.nc.u32", at, from + (uint32_t)offsetof(GroupLink, at));
		s->rate = load(e, REG_F, "ld.global.nc.f32", at, from + (uint32_t)offsetof(GroupLink, rate));
		s->some = !all_update(p, i);
		if (s->some)
			s->updated = load(e, REG_R, "ld.global.nc.u32", at, from + (uint32_t)offsetof(GroupLink, updated));
		s->w = zeros(e, REG_F);
		s->g = reg(e, REG_F);
		for (uint32_t v = 0; v < t->k.s->states; v++)
			s->state[v] = zeros(e, REG_F);
	}
}

/* Loads data of the thread's case; stores rows that are the same in every epoch. */
static void case_load_once(Groups *t)
{
	Emit *e = t->k.e;
	const LaneSource *s = t->k.s;
	Reg c = op2(e, REG_R, "min.u32", t->member, imm((uint32_t)s->cases - 1));
	Reg x = place(e, param_load(e, REG_D, offsetof(LaneJob, x)), c, s->net->inputs * 4);
	Reg y = place(e, param_load(e, REG_D, offsetof(LaneJob, y)), c, s->net->outputs * 4);
	Reg column = add(e, t->block, mul(e, t->member, 4));

	for (uint32_t i = 0; i < s->net->inputs; i++) {
		Reg value = load(e, REG_F, "ld.global.nc.f32", x, 4 * i);
		t->k.act[s->input[i]] = value;
		uint32_t other = if_begin(e, same(e, t->group, add(e, t->block, imm(t->p->block_bytes))));
		ins(e, "st.shared.f32 [$+#], $", column, t->p->act[s->input[i]], value);
		if_end(e, other);
	}
	for (uint32_t n = 0; n < s->net->outputs; n++)
		t->k.y[n] = load(e, REG_F, "ld.global.nc.f32", y, 4 * n);
	t->target_class =
		load(e, REG_R, "ld.global.nc.u32", place(e, param_load(e, REG_D, offsetof(LaneJob, target_class)), c, 4), 0);
	ins(e, "st.shared.f32 [$+#], 0f3f800000", t->mine, t->p->ones);
	t->has = less(e, t->member, imm((uint32_t)s->cases));
	barrier_block(e);
}

/* ---- an epoch ---- */

static void case_pass(Groups *t)
{
	Lanes *k = &t->k;
	Emit *e = k->e;
	const LaneSource *s = k->s;

	if (k->constant) {
		k->nonzero = NEW(&s->cx->scratch, s->net->units + 1, Reg);
		for (uint32_t i = 0; i < s->net->inputs; i++)
			k->nonzero[s->input[i]] = op2(e, REG_P, "setp.neu.f32", k->act[s->input[i]], imm_f(0));
	}
	lane_forward(k, false);
	lane_forward(k, true);
	Reg error = errors_lane(k);
	for (uint32_t i = s->computed; i-- > 0;)
		if (s->unit[i].output < 0)
			unit_backward(k, &s->unit[i]);
	ins(e, "st.shared.f32 [$+#], $", t->mine, t->p->errors, error);
	for (uint32_t i = 0; i < s->computed; i++) {
		Unit u = s->unit[i].unit;
		ins(e, "st.shared.f32 [$+#], $", t->mine, t->p->delta[u], k->delta[u]);
		if (k->out[u] < k->out[u + 1])
			ins(e, "st.shared.f32 [$+#], $", t->mine, t->p->act[u], k->act[u]);
	}
	ins(e, "bar.warp.sync 0xffffffff");
}

static Reg lanes_where(Groups *t, Reg p)
{
	Emit *e = t->k.e;
	Reg mask = reg(e, REG_R), own = op2(e, REG_P, "and.pred", p, t->has);

	ins(e, "vote.sync.ballot.b32 $, $, 0xffffffff", mask, own);
	mask = op2(e, REG_R, "shr.u32", mask, t->leader);
	if (t->p->threads < 32)
		mask = op2(e, REG_R, "and.b32", mask, imm((1u << t->p->threads) - 1));
	return op1(e, REG_R, "popc.b32", mask);
}

/* Loads a row: a value of all cases. */
static void row_load(Groups *t, Reg at, uint32_t offset, Reg *value)
{
	for (uint32_t c = 0; c < t->k.s->cases; c += 4)
		load_quad(t->k.e, "shared", value + c, at, offset + 4 * c);
}

static void tallies(Groups *t)
{
	Lanes *k = &t->k;
	Emit *e = k->e;
	Reg error[MAX_GROUP] = { { 0, 0 } };

	ins(e, "mov.u32 $, $", k->within, lanes_where(t, within_lane(k)));
	ins(e, "mov.u32 $, $", k->right, lanes_where(t, right_lane(k, t->target_class)));
	row_load(t, t->group, t->p->errors, error);
	ins(e, "mov.f64 $, 0d0000000000000000", k->error);
	for (uint32_t c = 0; c < k->s->cases; c++)
		ins(e, "add.rn.f64 $, $, $", k->error, k->error, op1(e, REG_G, "cvt.f64.f32", error[c]));
}

static void slot_gradient(Groups *t, uint32_t i)
{
	Emit *e = t->k.e;
	Slot *s = &t->slot[i];
	Reg delta[MAX_GROUP] = { { 0, 0 } }, x[MAX_GROUP] = { { 0, 0 } };
	bool leaves_out = t->k.constant && i >= t->p->own_slots;

	row_load(t, s->delta, 0, delta);
	row_load(t, s->source, 0, x);
	ins(e, "mov.f32 $, 0f00000000", s->g);
	for (uint32_t c = 0; c < t->k.s->cases; c++)
		if (leaves_out)
			ins(e, "@$ fma.rn.ftz.f32 $, $, $, $", op2(e, REG_P, "setp.neu.f32", x[c], imm_f(0)), s->g, delta[c], x[c],
			    s->g);
		else
			ins(e, "fma.rn.ftz.f32 $, $, $, $", s->g, delta[c], x[c], s->g);
}

static void slot_update(Groups *t, uint32_t i, const RuleNumbers *n)
{
	Emit *e = t->k.e;
	Slot *s = &t->slot[i];
	Reg variable[2 + MAX_STATE] = { s->g, s->w };
	uint32_t none = 0;

	if (s->some)
		none = unless_begin(e, same(e, s->updated, imm(0)));
	for (uint32_t v = 0; v < t->k.s->states; v++)
		variable[2 + v] = s->state[v];
	formula_values(e, t->k.s->formula, n, s->rate, variable);
	ins(e, "mov.f32 $, $", s->w, variable[1]);
	for (uint32_t v = 0; v < t->k.s->states; v++)
		ins(e, "mov.f32 $, $", s->state[v], variable[2 + v]);
	ins(e, "st.shared.f32 [$], $", s->to, s->w);
	if (s->some)
		if_end(e, none);
}

static void weights_load(Groups *t)
{
	ins(t->k.e, "bar.warp.sync 0xffffffff");
	for (uint32_t l = 0; l < pitch(t->k.s); l += 4)
		load_quad_to(t->k.e, "shared", t->k.w + l, t->group, t->p->w + 4 * l);
}

static void group_epoch(Groups *t)
{
	case_pass(t);
	for (uint32_t i = 0; i < t->p->slots; i++)
		slot_gradient(t, i);
	tallies(t);
	RuleNumbers n = lane_numbers(&t->k);
	for (uint32_t i = 0; i < t->p->slots; i++)
		slot_update(t, i, &n);
	weights_load(t);
	ins(t->k.e, "add.u32 $, $, 1", t->k.epoch, t->k.epoch);
}

/* ---- seeds ---- */

/* Groups that ask for a seed get entry i of the list, or the next one (i: an integer), or become idle. */
static void group_take(Groups *t, Reg i, Reg asks)
{
	Lanes *k = &t->k;
	Emit *e = k->e;
	const LaneSource *s = k->s;
	Reg number = op1(e, REG_R, "mov.u32", imm(0));
	uint32_t others = if_begin(e, op2(e, REG_P, "and.pred", asks, same(e, t->lane, t->leader)));

	if (i.type == REG_INT)
		i = list_next(k);
	ins(e, "mov.u32 $, $", number, seed_number(k, i));
	if_end(e, others);
	ins(e, "shfl.sync.idx.b32 $, $, $, 31, 0xffffffff", number, number, t->leader);
	uint32_t goes_on = if_begin(e, asks);
	ins(e, "setp.ge.u32 $, $, $", t->idle, number, param_load(e, REG_R, offsetof(LaneJob, count)));
	ins(e, "selp.u32 $, 0, $, $", k->seed, number, t->idle);
	Reg w = row_of(k, offsetof(LaneJob, w), k->seed, 1);
	Reg state = row_of(k, offsetof(LaneJob, state), k->seed, s->states);
	ins(e, "ld.global.u32 $, [$]", k->epoch, place(e, param_load(e, REG_D, offsetof(LaneJob, epoch)), k->seed, 4));
	for (uint32_t n = 0; n < t->p->slots; n++) {
		Slot *slot = &t->slot[n];
		ins(e, "ld.global.f32 $, [$]", slot->w, place(e, w, slot->at, 1));
		for (uint32_t v = 0; v < s->states; v++)
			ins(e, "ld.global.f32 $, [$+#]", slot->state[v], place(e, state, slot->at, 1), v * pitch(s) * 4);
	}
	Loop l = loop_begin(e, t->member, imm(pitch(s) / 4), t->p->threads);
	Reg q[4], offset = mul(e, l.i, 16);
	load_quad(e, "global", q, place(e, w, offset, 1), 0);
	store_quad(e, "shared", add(e, t->group, offset), t->p->w, q);
	loop_end(e, &l);
	if_end(e, goes_on);
	weights_load(t);
}

static void groups_train(Groups *t, Reg number)
{
	Lanes *k = &t->k;
	Emit *e = k->e;
	uint32_t begun = label(e), top = label(e), done = label(e);
	Reg any = reg(e, REG_P), always = op2(e, REG_P, "setp.eq.u32", imm(0), imm(0));

	k->list_count = load(e, REG_R, "ld.global.nc.u32", param_load(e, REG_D, offsetof(LaneJob, list_count)), 0);
	group_take(t, number, always);
	label_here(e, begun);
	ins(e, "vote.sync.all.pred $, $, 0xffffffff", any, t->idle);
	ins(e, "@$ bra L#", any, done);
	label_here(e, top);
	group_epoch(t);
	Reg ends = op2(e, REG_P, "and.pred", lane_ends(k), op1(e, REG_P, "not.pred", t->idle));
	ins(e, "vote.sync.any.pred $, $, 0xffffffff", any, ends);
	ins(e, "@!$ bra L#", any, top);
	uint32_t open = if_begin(e, op2(e, REG_P, "and.pred", ends, same(e, t->lane, t->leader)));
	seed_store(k);
	if_end(e, open);
	ins(e, "bar.warp.sync 0xffffffff");
	group_take(t, imm(0), ends);
	ins(e, "bra L#", begun);
	label_here(e, done);
}

void groups_text(const LaneSource *s, Arena *a, Buf *out, uint32_t *shared)
{
	Groups t = { .k = lanes_begin(s, a), .p = group_plan(s) };
	Emit *e = t.k.e;
	uint32_t threads = t.p->threads, groups = s->threads / threads, of_warp = 32 / threads;
	Reg tid = special_register(e, "%tid.x"), block = special_register(e, "%ctaid.x");
	Reg blocks = special_register(e, "%nctaid.x"), warp = op2(e, REG_R, "shr.u32", tid, imm(5));

	assert(s->threads % 32 == 0);
	t.block = special_register(e, "memory");
	t.lane = op2(e, REG_R, "and.b32", tid, imm(31));
	t.member = op2(e, REG_R, "and.b32", tid, imm(threads - 1));
	t.leader = op2(e, REG_R, "sub.u32", t.lane, t.member);
	Reg own = divide(e, tid, threads);
	t.group = add(e, mad(e, own, t.p->bytes, t.block), imm(t.p->block_bytes));
	t.mine = mad(e, t.member, 4, t.group);
	t.idle = reg(e, REG_P);
	t.k.threads = mul(e, blocks, groups);
	case_load_once(&t);
	slots_load(&t);
	Reg number = mad(e, op3(e, REG_R, "mad.lo.u32", warp, blocks, block), of_warp, divide(e, t.lane, threads));
	groups_train(&t, number);
	ins(e, "ret");
	*shared = t.p->block_bytes + groups * t.p->bytes;
	kernel_wrap(e, out, sizeof(LaneJob), s->threads, 0);
}
