/* SPDX-License-Identifier: MIT */
/* Gradients of index lists. In: lists by input, deltas of all rows of the leaf in shared memory. Out: sums of the
 * deltas of the rows that have an input, in order; where one block has all lists, the update itself.
 *
 * 16 lanes or so have a list, each of them a quad of columns; or 32 lanes, with two columns each, so that the
 * longest list takes half the time. Lists come by rank, the longest first. Warps of a block that has all of them
 * take one after the other; weights and state of the next are loaded while rows are added. */
#include "emit.h"

/* Rows of a group of a list by input: 16-bit numbers, two in a register. wide: columns of a lane */
typedef struct Group {
	Reg pair[4], x[LIST_PAD][4];
	uint32_t wide;
} Group;

static Group group_new(Emit *e, uint32_t wide)
{
	Group g = { .wide = wide };

	for (uint32_t i = 0; i < 4; i++)
		g.pair[i] = reg(e, REG_R);
	for (uint32_t m = 0; m < LIST_PAD; m++)
		for (uint32_t i = 0; i < wide; i++)
			g.x[m][i] = reg(e, REG_F);
	return g;
}

static void group_numbers(Kernel *k, const Group *g, Reg at, uint32_t offset)
{
	ins(k->e, "ld.shared.v4.u32 {$, $, $, $}, [$+#]", g->pair[0], g->pair[1], g->pair[2], g->pair[3], at, offset);
}

static void group_load(Kernel *k, const Group *g, const GradientPart *p)
{
	Emit *e = k->e;

	for (uint32_t m = 0; m < LIST_PAD; m++) {
		Reg row = m % 2 ? op2(e, REG_R, "shr.u32", g->pair[m / 2], imm(16))
		                : op2(e, REG_R, "and.b32", g->pair[m / 2], imm(0xffff));
		floats_load(e, false, g->x[m], g->wide, mad(e, row, p->b_row, p->b), 0);
	}
}

static void group_add(Emit *e, const Group *g, const GradientPart *p)
{
	for (uint32_t m = 0; m < LIST_PAD; m++)
		for (uint32_t n = 0; n < g->wide; n++)
			ins(e, "add.rn.ftz.f32 $, $, $", p->sum[0][n], g->x[m][n], p->sum[0][n]);
}

Reg list_word(Kernel *k, Reg input)
{
	return load(k->e, REG_R, "ld.shared.u32", mad(k->e, input, 4, k->memory), k->at_csc_start);
}

/* A list on its way. */
struct ListRows {
	Reg at, left; /* numbers of its rows; groups */
	Group g[2];
};

/* word: as cases.c makes it */
static ListRows rows_new(Kernel *k, uint32_t wide, Reg word)
{
	Emit *e = k->e;
	ListRows l = { reg(e, REG_R), op2(e, REG_R, "shr.u32", word, imm(16)), { group_new(e, wide), group_new(e, wide) } };
	Reg first = op2(e, REG_R, "and.b32", word, imm(0xffff));

	ins(e, "add.u32 $, $, #", l.at, mad(e, first, 2 * LIST_PAD, k->memory), k->at_csc);
	return l;
}

static void rows_numbers(Kernel *k, const ListRows *l)
{
	group_numbers(k, &l->g[0], l->at, 0);
	group_numbers(k, &l->g[1], l->at, 2 * LIST_PAD);
}

/* One group is loaded while the other is added, and the numbers of the next; numbers past the last group are those of
 * another list, and not used. */
static void groups_add(Kernel *k, const GradientPart *p, const ListRows *l, bool begun)
{
	Emit *e = k->e;
	uint32_t bytes = 2 * LIST_PAD, top = label(e), last[2] = { label(e), label(e) };
	Reg at = l->at, left = l->left;
	const Group *g = l->g;

	uint32_t done = unless_begin(e, same(e, left, imm(0)));
	if (!begun)
		rows_numbers(k, l);
	group_load(k, &g[0], p);
	label_here(e, top);
	for (uint32_t i = 0; i < 2; i++) {
		ins(e, "@$ bra L#", same(e, left, imm(i + 1)), last[i]);
		group_load(k, &g[!i], p);
		group_numbers(k, &g[i], at, (i + 2) * bytes);
		group_add(e, &g[i], p);
	}
	ins(e, "add.u32 $, $, #", at, at, 2 * bytes);
	ins(e, "sub.u32 $, $, 2", left, left);
	ins(e, "bra L#", top);
	for (uint32_t i = 0; i < 2; i++) {
		label_here(e, last[i]);
		group_add(e, &g[i], p);
		if (!i)
			ins(e, "bra L#", done);
	}
	if_end(e, done);
}

ListRows *list_rows_begin(Kernel *k, uint32_t wide, Reg word)
{
	ListRows *l = NEW(&k->s->cx->scratch, 1, ListRows);

	*l = rows_new(k, wide, word);
	rows_numbers(k, l);
	return l;
}

void list_rows_end(Kernel *k, const ListRows *l, const GradientPart *p) { groups_add(k, p, l, true); }

void list_rows_add(Kernel *k, uint32_t wide, const GradientPart *p)
{
	ListRows l = rows_new(k, wide, p->word);

	groups_add(k, p, &l, false);
}

/* ---- turns ----
 *
 * Where a block has all lists, its warps share them. A turn of a warp is as many lists as it has lanes for, of nearly
 * equal length. Who has which is found out when lists are made: the longest come first (sorted, or by rank), each turn
 * for the warp with the least to do. In shared memory, for each list: first group | row of the matrix << 16, groups |
 * groups of the turn << 16 | quarters of its last groups that are padding in all its lists << TURN_LACKS; a turn of no
 * groups is the last; then, as 16-bit numbers, the turn that follows each turn, and the first one of each warp. */
enum { LIST_BYTES = 8, NO_ROW = 0xffff, TURN_COST = 1 }; /* TURN_COST: of a turn itself, in groups */
enum { QUARTERS = 4, QUARTER = LIST_PAD / QUARTERS, TURN_LACKS = 29 };

static uint32_t lists_of_turn(const GradientCut *c) { return 32 / c->panel; }
static uint32_t turn_warps(const GradientCut *c) { return (c->threads - c->totals_threads) / 32; }
static uint32_t turns_of(const Kernel *k, const GradientCut *c)
{
	return (uint32_t)ceil_div(k->s->job->data.inputs, lists_of_turn(c));
}

static uint32_t follow_at(const Kernel *k, const GradientCut *c)
{
	return k->at_turns + (turns_of(k, c) + 1) * lists_of_turn(c) * LIST_BYTES;
}

/* The gradient that has such turns; NO_STEP: none. */
static uint32_t turns_gradient(const Kernel *k)
{
	const EmitSource *s = k->s;
	uint32_t only = NO_STEP;

	for (uint32_t i = 0; i < s->list->steps - s->list->gradient; i++) {
		const DeviceStep *g = &s->step[s->list->gradient + i];
		const DevicePanel *p = &s->panel[g->panel];
		const GradientCut *c = &k->cut[i];
		if (c->inlined)
			continue;
		if (only != NO_STEP || g->kind != STEP_GRADIENT_INDEX || p->kind || !rule_in_quads(g, p) || c->high != 1 ||
		    c->wide != 4 || 32 % c->panel || c->down != 1 || c->totals_threads >= c->threads)
			return NO_STEP;
		only = i;
	}
	return only;
}

/* Part of the plan, after gradients are cut. */
void plan_turns(Kernel *k)
{
	const EmitSource *s = k->s;
	bool direct = s->solo && s->kinds_of_leaves == 1 && s->leaves[0] == 1 && !needs_pending(s) && !s->test;

	k->turns = direct && k->overlaid && !k->next_at && s->job->data.from ? turns_gradient(k) : NO_STEP;
}

/* Room for turns, whatever the cut is. */
uint32_t turns_bytes(const Kernel *k)
{
	uint32_t lists = k->s->job->data.inputs + 2 * 32;

	return k->s->solo ? lists * LIST_BYTES + (lists + k->s->threads / 32) * 2 : 0;
}

static uint32_t pads_at(const Kernel *k) { return k->at_info + INFO_PADS; }

/* A group of rows of -0. By one thread */
void list_pads(Kernel *k)
{
	uint32_t two = k->csc_pad << 16 | k->csc_pad;

	ins(k->e, "st.shared.v4.u32 [$+#], {#, #, #, #}", k->memory, pads_at(k), two, two, two, two);
}

/* The largest x of a turn's lists, which adjacent lanes have. */
static void turn_most(Emit *e, const GradientCut *c, Reg x)
{
	for (uint32_t n = 1; n < lists_of_turn(c); n *= 2)
		ins(e, "max.u32 $, $, $", x, x, lanes_xor(e, x, n));
}

/* Quarters that are padding in group number `most` of all lists of the turn: those of a turn of empty lists are all. */
static Reg turn_lacks(Kernel *k, const GradientCut *c, Reg word, Reg groups, Reg most)
{
	Emit *e = k->e;
	Reg last = add(e, op2(e, REG_R, "and.b32", word, imm(0xffff)), op2(e, REG_R, "sub.u32", most, imm(1)));
	Reg at = mad(e, last, 2 * LIST_PAD, k->memory), is = same(e, groups, most),
		filled = op1(e, REG_R, "mov.u32", imm(0));

	for (uint32_t q = 0; q < QUARTERS; q++) {
		Reg row = op1(e, REG_R, "mov.u32", imm(k->csc_pad));
		ins(e, "@$ ld.shared.u16 $, [$+#]", is, row, at, k->at_csc + 2 * QUARTER * q);
		ins(e, "@$ mov.u32 $, #", op2(e, REG_P, "setp.ne.u32", row, imm(k->csc_pad)), filled, q + 1);
	}
	turn_most(e, c, filled);
	return op2(e, REG_R, "sub.u32", imm(QUARTERS), filled);
}

/* Groups of a turn, from the second word of one of its lists. */
static Reg turn_groups(Emit *e, Reg word)
{
	return op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", word, imm(16)), imm((1 << (TURN_LACKS - 16)) - 1));
}

/* Where images are made, which is done once for many updates; else inputs come by rank. */
bool turns_sorted(const Kernel *k) { return k->s->makes_images && k->turns != NO_STEP; }
uint32_t lengths_bytes(const Kernel *k) { return k->s->solo && k->s->images ? 2 * 4 * k->s->job->data.inputs : 0; }
static uint32_t sorted_at(const Kernel *k) { return lengths_at(k) + 4 * k->s->job->data.inputs; }

/* Inputs by the lengths of their lists in this leaf, the longest first, so that lists of a turn need little padding. */
static void turns_sort(Kernel *k)
{
	Emit *e = k->e;
	uint32_t inputs = k->s->job->data.inputs;
	Loop l = loop_begin(e, k->tid, imm(inputs), k->s->threads);
	Reg own = load(e, REG_R, "ld.shared.u32", mad(e, l.i, 4, k->memory), lengths_at(k));
	Reg longer = op1(e, REG_R, "mov.u32", imm(0));
	Loop o = loop_begin(e, imm(0), imm(inputs), 1);
	Reg other = load(e, REG_R, "ld.shared.u32", mad(e, o.i, 4, k->memory), lengths_at(k));
	Reg is = op2(e, REG_P, "and.pred", same(e, other, own), less(e, o.i, l.i));

	is = op2(e, REG_P, "or.pred", is, op2(e, REG_P, "setp.gt.u32", other, own));
	ins(e, "@$ add.u32 $, $, 1", is, longer, longer);
	loop_end(e, &o);
	ins(e, "st.shared.u32 [$+#], $", mad(e, longer, 4, k->memory), sorted_at(k), l.i);
	loop_end(e, &l);
}

/* All lists, and how long turns are. */
static void turns_lists(Kernel *k, const DeviceStep *s, const GradientCut *c)
{
	Emit *e = k->e;
	uint32_t each = lists_of_turn(c), all = turns_of(k, c), inputs = k->s->job->data.inputs;
	Loop l = loop_count(e, (uint32_t)ceil_div((all + 1) * each, k->s->threads)); /* equal: lanes exchange */
	Reg rank = mad(e, l.i, k->s->threads, k->tid), is = less(e, rank, imm(inputs)), most = reg(e, REG_R);
	Reg input = load(e, REG_R, "ld.shared.u32", mad(e, op3(e, REG_R, "selp.u32", rank, imm(0), is), 4, k->memory),
	                 turns_sorted(k) ? sorted_at(k) : k->at_rank);
	Reg word = list_word(k, input), row = op2(e, REG_R, "sub.u32", input, imm(s->low));

	is = op2(e, REG_P, "and.pred", is, less(e, row, imm(s->depth)));
	row = op3(e, REG_R, "selp.u32", row, imm(NO_ROW), is);
	Reg groups = op3(e, REG_R, "selp.u32", op2(e, REG_R, "shr.u32", word, imm(16)), imm(0), is);
	ins(e, "max.u32 $, $, 1", most, groups);
	turn_most(e, c, most);
	Reg lacks = op2(e, REG_R, "shl.b32", turn_lacks(k, c, word, groups, most), imm(TURN_LACKS));
	most = op3(e, REG_R, "selp.u32", most, imm(0), less(e, rank, imm(all * each)));
	Reg first =
		op2(e, REG_R, "or.b32", op2(e, REG_R, "and.b32", word, imm(0xffff)), op2(e, REG_R, "shl.b32", row, imm(16)));
	uint32_t past = if_begin(e, less(e, rank, imm((all + 1) * each)));
	ins(e, "st.shared.v2.u32 [$+#], {$, $}", mad(e, rank, LIST_BYTES, k->memory), k->at_turns, first,
	    op2(e, REG_R, "or.b32", op2(e, REG_R, "or.b32", groups, lacks), op2(e, REG_R, "shl.b32", most, imm(16))));
	if_end(e, past);
	loop_end(e, &l);
}

/* Words of lists by input are there. With barriers */
void turns_make(Kernel *k)
{
	Emit *e = k->e;

	if (k->turns == NO_STEP)
		return;
	const GradientCut *c = &k->cut[k->turns];
	uint32_t all = turns_of(k, c), bytes = lists_of_turn(c) * LIST_BYTES;
	remark(e, "%u turns of %u lists, %u warps", all, lists_of_turn(c), turn_warps(c));
	barrier_block(e);
	if (turns_sorted(k)) {
		turns_sort(k);
		barrier_block(e);
	}
	turns_lists(k, &k->s->step[k->s->list->gradient + k->turns], c);
	barrier_block(e);
	uint32_t others = if_begin(e, less(e, k->tid, imm(32)));
	Reg load_of = op1(e, REG_R, "mov.u32", k->tid), last = add(e, k->tid, imm(all)), best = reg(e, REG_R);
	Reg is = less(e, k->tid, imm(turn_warps(c))), half = reg(e, REG_H), most = reg(e, REG_R);
	ins(e, "ld.shared.u32 $, [$+#]", most, k->memory, k->at_turns + 4);
	Loop l = loop_begin(e, imm(0), imm(all), 1);
	Reg cost = add(e, turn_groups(e, most), imm(TURN_COST));
	ins(e, "ld.shared.u32 $, [$+#]", most, mad(e, l.i, bytes, k->memory), k->at_turns + bytes + 4);
	ins(e, "redux.sync.min.u32 $, $, 0xffffffff", best, op3(e, REG_R, "selp.u32", load_of, imm(UINT32_MAX), is));
	Reg mine = same(e, best, load_of);
	ins(e, "cvt.u16.u32 $, $", half, l.i);
	ins(e, "@$ st.shared.u16 [$+#], $", mine, mad(e, last, 2, k->memory), follow_at(k, c), half);
	ins(e, "@$ mov.u32 $, $", mine, last, l.i);
	ins(e, "@$ add.u32 $, $, $", mine, load_of, load_of, op2(e, REG_R, "shl.b32", cost, imm(5)));
	loop_end(e, &l);
	ins(e, "cvt.u16.u32 $, $", half, op1(e, REG_R, "mov.u32", imm(all)));
	ins(e, "@$ st.shared.u16 [$+#], $", is, mad(e, last, 2, k->memory), follow_at(k, c), half);
	if_end(e, others);
}

/* A quarter of a group: rows whose numbers are in a register. */
typedef struct Quarter {
	Reg x[QUARTER][4], is; /* is: P, whether it has rows */
} Quarter;

static Quarter quarter_new(Emit *e)
{
	Quarter q = { .is = reg(e, REG_P) };

	for (uint32_t m = 0; m < QUARTER; m++)
		for (uint32_t i = 0; i < 4; i++)
			q.x[m][i] = reg(e, REG_F);
	return q;
}

/* The address of row `high` of a pair. */
static Reg pair_row(Kernel *k, Reg pair, uint32_t high, const GradientPart *p)
{
	Emit *e = k->e;

	if (p->b_row < 256) /* numbers of 16 bits by those of 8 bits: one of the two products is 0 */
		return op3(e, REG_R, "dp2a.lo.u32.u32", pair, imm(high ? p->b_row << 8 : p->b_row), p->b);
	return mad(e, op2(e, REG_R, high ? "shr.u32" : "and.b32", pair, imm(high ? 16 : 0xffff)), p->b_row, p->b);
}

static void quarter_load(Kernel *k, const Quarter *q, Reg pair, const GradientPart *p, Reg is)
{
	for (uint32_t m = 0; m < QUARTER; m++)
		ins(k->e, "@$ ld.shared.v4.f32 {$, $, $, $}, [$]", is, q->x[m][0], q->x[m][1], q->x[m][2], q->x[m][3],
		    pair_row(k, pair, m, p));
}

static void quarter_add(Emit *e, const Quarter *q, const GradientPart *p)
{
	for (uint32_t m = 0; m < QUARTER; m++)
		for (uint32_t n = 0; n < 4; n++)
			ins(e, "@$ add.rn.ftz.f32 $, $, $", q->is, p->sum[0][n], q->x[m][n], p->sum[0][n]);
}

/* Where a warp is. Numbers of rows are loaded two groups before these are added, rows one group before. Groups of three
 * turns may be on their way then, each with weights and state of its own. */
enum { TURN_SETS = 3 };
/* Of a group: is it the last of a turn, and how many quarters does it lack (IS_LAST + these), or is there none? */
enum { NOT_LAST, IS_LAST, IS_END = IS_LAST + QUARTERS + 1 };
struct ListWalk {
	Reg at, groups, left; /* numbers of the group at hand; groups of the list and of the turn that are left */
	Reg next[2], follow;  /* words of the next turn's list; the turn after it */
	Reg ends;             /* what the last group of the turn is */
	Reg last[3], row[3];  /* of three groups, the last of which is the one at hand */
	Reg pair[QUARTERS];
	Quarter quarter[QUARTERS];
	RuleQuads *quads[TURN_SETS]; /* weights and state of this list and of the next ones */
};

/* Does quarter n of such a group have rows? */
static void quarter_is(Emit *e, const ListWalk *w, uint32_t n, Reg last)
{
	ins(e, "setp.lt.u32 $, $, #", w->quarter[n].is, last, IS_LAST + QUARTERS - n);
}

static void walk_look(Kernel *k, const GradientCut *c, const ListWalk *w)
{
	Emit *e = k->e;
	Reg list = divide(e, op2(e, REG_R, "and.b32", k->tid, imm(31)), c->panel);
	Reg at = mad(e, w->follow, lists_of_turn(c) * LIST_BYTES, mad(e, list, LIST_BYTES, k->memory));

	ins(e, "ld.shared.v2.u32 {$, $}, [$+#]", w->next[0], w->next[1], at, k->at_turns);
	ins(e, "ld.shared.u16 $, [$+#]", w->follow, mad(e, w->follow, 2, k->memory), follow_at(k, c));
}

/* The next group, and numbers of its rows. A turn that begins loads its weights and state to quads[set]. */
static void walk_on(Kernel *k, const DeviceStep *s, const GradientCut *c, const ListWalk *w, uint32_t set)
{
	Emit *e = k->e;
	uint32_t more = label(e), have = label(e);
	Reg pads = add(e, k->memory, imm(pads_at(k)));

	ins(e, "sub.u32 $, $, 1", w->left, w->left);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", w->left, imm(0)), more);
	ins(e, "and.b32 $, $, 0xffff", w->groups, w->next[1]);
	ins(e, "mov.u32 $, $", w->left, turn_groups(e, w->next[1]));
	ins(e, "add.u32 $, $, #", w->ends, op2(e, REG_R, "shr.u32", w->next[1], imm(TURN_LACKS)), IS_LAST);
	ins(e, "shr.u32 $, $, 16", w->row[2], w->next[0]);
	Reg first = mad(e, op2(e, REG_R, "and.b32", w->next[0], imm(0xffff)), 2 * LIST_PAD, k->memory);
	ins(e, "selp.u32 $, $, $, $", w->at, pads, add(e, first, imm(k->at_csc)), same(e, w->groups, imm(0)));
	walk_look(k, c, w);
	RuleQuads q = *w->quads[set];
	q.row = w->row[2];
	rule_quads_load(k, &k->s->panel[s->panel], s->depth + s->bias, &q);
	ins(e, "bra L#", have);
	label_here(e, more);
	ins(e, "sub.u32 $, $, 1", w->groups, w->groups);
	ins(e, "selp.u32 $, $, $, $", w->at, add(e, w->at, imm(2 * LIST_PAD)), pads,
	    op2(e, REG_P, "setp.gt.s32", w->groups, imm(0)));
	label_here(e, have);
	ins(e, "selp.u32 $, $, #, $", w->last[2], w->ends, NOT_LAST, same(e, w->left, imm(1)));
	ins(e, "selp.u32 $, #, $, $", w->last[2], IS_END, w->last[2], same(e, w->left, imm(0)));
	ins(e, "ld.shared.v4.u32 {$, $, $, $}, [$]", w->pair[0], w->pair[1], w->pair[2], w->pair[3], w->at);
}

/* What is known of a group is known of another one then. */
static void walk_shift(Emit *e, const ListWalk *w, uint32_t to, uint32_t from)
{
	ins(e, "mov.u32 $, $", w->last[to], w->last[from]);
	ins(e, "mov.u32 $, $", w->row[to], w->row[from]);
}

/* Everything of the first turn but its rows. */
ListWalk *lists_first(Kernel *k, const DeviceStep *s, const GradientCut *c, GradientPart *p)
{
	Emit *e = k->e;
	Reg lane = op2(e, REG_R, "and.b32", k->tid, imm(31)), warp = op2(e, REG_R, "shr.u32", k->tid, imm(5));
	ListWalk *w = NEW(&k->s->cx->scratch, 1, ListWalk);
	Reg *numbers[] = { &w->at,     &w->groups,  &w->left,    &w->next[0], &w->next[1], &w->follow,
		               &w->ends,   &w->last[0], &w->last[1], &w->last[2], &w->row[0],  &w->row[1],
		               &w->row[2], &w->pair[0], &w->pair[1], &w->pair[2], &w->pair[3] };

	for (uint32_t i = 0; i < COUNT(numbers); i++)
		*numbers[i] = reg(e, REG_R);
	*p = (GradientPart){ .q = modulo(e, lane, c->panel, divide(e, lane, c->panel)), .b_row = c->quads * 16 };
	p->b = add(e, mad(e, p->q, 16, k->memory), imm(c->at_b));
	for (uint32_t i = 0; i < 4; i++)
		p->sum[0][i] = op1(e, REG_F, "mov.f32", imm_f(0));
	for (uint32_t i = 0; i < QUARTERS; i++)
		w->quarter[i] = quarter_new(e);
	for (uint32_t i = 0; i < TURN_SETS; i++) {
		w->quads[i] = NEW(&k->s->cx->scratch, 1, RuleQuads);
		*w->quads[i] = (RuleQuads){ .quad = p->q, .rows = 1 };
		rule_quads_new(k, w->quads[i]);
	}
	warp = op2(e, REG_R, "min.u32", warp, imm(turn_warps(c) - 1)); /* others have none, and look at it in vain */
	ins(e, "ld.shared.u16 $, [$+#]", w->follow, mad(e, add(e, warp, imm(turns_of(k, c))), 2, k->memory),
	    follow_at(k, c));
	walk_look(k, c, w);
	ins(e, "mov.u32 $, 1", w->left);
	walk_on(k, s, c, w, 0);
	walk_shift(e, w, 0, 2);
	return w;
}

static void list_apply(Kernel *k, const DeviceStep *s, const GradientPart *p, const ListWalk *w, uint32_t set,
                       const PlaceNumbers *n)
{
	RuleQuads q = *w->quads[set];

	q.row = w->row[0];
	q.numbers = n;
	for (uint32_t i = 0; i < 4; i++)
		q.g[0][i] = p->sum[0][i];
	rule_quads(k, k->numbers, &k->s->panel[s->panel], s->depth + s->bias, &q);
	for (uint32_t i = 0; i < 4; i++)
		ins(k->e, "mov.f32 $, 0f00000000", p->sum[0][i]);
}

/* Lists of a warp, one turn after the other: groups follow each other as if they were of one list. The group after the
 * next one may begin a turn: the next, or the one after that if this group is the last of its own. */
void lists_add(Kernel *k, const DeviceStep *s, const GradientCut *c, const GradientPart *p, const ListWalk *w)
{
	Emit *e = k->e;
	uint32_t top[TURN_SETS] = { label(e), label(e), label(e) }, done = label(e);
	PlaceNumbers numbers = known_numbers(k, k->numbers, &k->s->factor[k->s->panel[s->panel].factor]);
	Reg always =
		same(e, imm(0), imm(0)); /* registers that only a predicate defines would be live in all of the update */

	for (uint32_t i = 0; i < QUARTERS; i++) {
		quarter_is(e, w, i, w->last[0]);
		quarter_load(k, &w->quarter[i], w->pair[i], p, always);
	}
	walk_on(k, s, c, w, 1);
	walk_shift(e, w, 1, 2);
	ins(e, "@$ bra L#", same(e, w->last[0], imm(IS_END)), done);
	for (uint32_t set = 0; set < TURN_SETS; set++) {
		uint32_t ends = label(e);
		label_here(e, top[set]);
		for (uint32_t i = 0; i < QUARTERS; i++) {
			quarter_add(e, &w->quarter[i], p);
			quarter_is(e, w, i, w->last[1]);
			quarter_load(k, &w->quarter[i], w->pair[i], p, w->quarter[i].is);
		}
		ins(e, "@$ bra L#", op2(e, REG_P, "setp.ne.u32", w->last[0], imm(NOT_LAST)), ends);
		walk_on(k, s, c, w, (set + 1) % TURN_SETS);
		walk_shift(e, w, 0, 1);
		walk_shift(e, w, 1, 2);
		ins(e, "bra L#", top[set]);
		label_here(e, ends);
		walk_on(k, s, c, w, (set + 2) % TURN_SETS);
		list_apply(k, s, p, w, set, &numbers);
		walk_shift(e, w, 0, 1);
		walk_shift(e, w, 1, 2);
		ins(e, "@$ bra L#", same(e, w->last[0], imm(IS_END)), done);
	}
	ins(e, "bra L#", top[0]);
	label_here(e, done);
}

/* ---- totals ---- */

/* Column `offset` bytes after the first, of all rows: a chain of additions whose operands other warps keep waiting. So
 * they are loaded far ahead. */
void total_far_ahead(Kernel *k, const GradientPart *p, uint32_t n, uint32_t offset)
{
	enum { TURNS = 4 };
	Emit *e = k->e;
	Reg x[TURNS][ROWS_TURN], from = reg(e, REG_R), left = reg(e, REG_R);
	uint32_t top = label(e), done = label(e);

	ins(e, "add.u32 $, $, #", from, p->total_at, offset);
	ins(e, "shr.u32 $, $, #", left, add(e, k->rows, imm(ROWS_TURN - 1)), 4);
	for (uint32_t t = 0; t < TURNS; t++)
		for (uint32_t m = 0; m < ROWS_TURN; m++) {
			x[t][m] = op1(e, REG_F, "mov.f32", imm_f(0));
			if (t + 1 < TURNS)
				ins(e, "@$ ld.shared.f32 $, [$+#]", op2(e, REG_P, "setp.gt.u32", left, imm(t)), x[t][m], from,
				    (t * ROWS_TURN + m) * p->b_row);
		}
	label_here(e, top);
	for (uint32_t t = 0; t < TURNS; t++) {
		Reg more = op2(e, REG_P, "setp.gt.u32", left, imm(TURNS - 1));
		ins(e, "@$ bra L#", same(e, left, imm(0)), done);
		for (uint32_t m = 0; m < ROWS_TURN; m++)
			ins(e, "@$ ld.shared.f32 $, [$+#]", more, x[(t + TURNS - 1) % TURNS][m], from,
			    ((t + TURNS - 1) * ROWS_TURN + m) * p->b_row);
		for (uint32_t m = 0; m < ROWS_TURN; m++)
			ins(e, "add.rn.ftz.f32 $, $, $", p->total[n], p->total[n], x[t][m]);
		ins(e, "sub.u32 $, $, 1", left, left);
	}
	ins(e, "add.u32 $, $, #", from, from, TURNS * ROWS_TURN * p->b_row);
	ins(e, "bra L#", top);
	label_here(e, done);
}
