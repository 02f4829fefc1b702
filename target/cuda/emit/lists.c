/* SPDX-License-Identifier: MIT */
/* Gradients of index lists. In: lists by input, deltas of all rows of the leaf in shared memory. Out: sums of the
 * deltas of the rows that have an input, in order; where one block has all lists, the update itself.
 *
 * 16 lanes or so have a list, each of them a quad of columns. Lists come by rank, the longest first. Warps of a block
 * that has all of them take one after the other; weights and state of the next are loaded while rows are added. */
#include "emit.h"

/* Rows of a group of a list by input: 16-bit numbers, two in a register. */
typedef struct Group {
	Reg pair[4], x[LIST_PAD][4];
} Group;

static Group group_new(Emit *e)
{
	Group g;

	for (uint32_t i = 0; i < 4; i++)
		g.pair[i] = reg(e, REG_R);
	for (uint32_t m = 0; m < LIST_PAD; m++)
		for (uint32_t i = 0; i < 4; i++)
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
		load_quad_to(e, "shared", g->x[m], mad(e, row, p->b_row, p->b), 0);
	}
}

static void group_add(Emit *e, const Group *g, const GradientPart *p)
{
	for (uint32_t m = 0; m < LIST_PAD; m++)
		for (uint32_t n = 0; n < 4; n++)
			ins(e, "add.rn.ftz.f32 $, $, $", p->sum[0][n], g->x[m][n], p->sum[0][n]);
}

static Reg list_word(Kernel *k, Reg input)
{
	return load(k->e, REG_R, "ld.shared.u32", mad(k->e, input, 4, k->memory), k->at_csc_start);
}

/* One group is loaded while the other is added, and the numbers of the next; numbers past the last group are those of
 * another list, and not used. word: as cases.c makes it */
static void groups_add(Kernel *k, const GradientPart *p, Reg word)
{
	Emit *e = k->e;
	uint32_t bytes = 2 * LIST_PAD, top = label(e), last[2] = { label(e), label(e) };
	Reg at = reg(e, REG_R), left = op2(e, REG_R, "shr.u32", word, imm(16));
	Group g[2] = { group_new(e), group_new(e) };

	ins(e, "add.u32 $, $, #", at, mad(e, op2(e, REG_R, "and.b32", word, imm(0xffff)), bytes, k->memory), k->at_csc);
	uint32_t done = unless_begin(e, same(e, left, imm(0)));
	group_numbers(k, &g[0], at, 0);
	group_numbers(k, &g[1], at, bytes);
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

void list_rows_add(Kernel *k, const GradientPart *p) { groups_add(k, p, list_word(k, p->input)); }

/* ---- lists one after the other ---- */

static uint32_t lists_of_warp(const GradientCut *c) { return 32 / c->panel; }

bool lists_queued(const Kernel *k, const DeviceStep *s, const GradientCut *c)
{
	const DevicePanel *p = &k->s->panel[s->panel];

	return s->kind == STEP_GRADIENT_INDEX && k->overlaid && k->numbers && !p->kind && rule_in_quads(s, p) &&
	       c->high == 1 && c->panels == 1 && 32 % c->panel == 0 && c->down == 1 && c->totals_threads < c->threads &&
	       !k->next_at;
}

static Reg warp_of(Kernel *k) { return op2(k->e, REG_R, "shr.u32", k->tid, imm(5)); }

/* Of a task of a warp. */
static Reg rank_of(Kernel *k, const GradientCut *c, Reg slot)
{
	Reg lane = op2(k->e, REG_R, "and.b32", k->tid, imm(31));

	return mad(k->e, slot, lists_of_warp(c), divide(k->e, lane, c->panel));
}

static ListTask list_load(Kernel *k, const DeviceStep *s, const GradientPart *p, Reg rank)
{
	Emit *e = k->e;
	GradientPart own = { .is_mine = p->is_mine };
	ListTask t;

	part_ranked(k, s, &own, rank);
	t.row = op3(e, REG_R, "selp.u32", own.i, imm(UINT32_MAX), own.is_mine); /* past the last: nothing is stored */
	t.word = op3(e, REG_R, "selp.u32", list_word(k, own.input), imm(0), own.is_mine);
	t.quads = NEW(&k->s->cx->scratch, 1, RuleQuads);
	*t.quads = (RuleQuads){ .row = t.row, .quad = p->q, .rows = 1 };
	rule_quads_load(k, &k->s->panel[s->panel], s->depth + s->bias, t.quads);
	return t;
}

ListTask lists_first(Kernel *k, const DeviceStep *s, const GradientCut *c, GradientPart *p)
{
	Emit *e = k->e;
	Reg lane = op2(e, REG_R, "and.b32", k->tid, imm(31));

	*p = (GradientPart){ .q = modulo(e, lane, c->panel, divide(e, lane, c->panel)), .b_row = c->quads * 16 };
	p->is_mine = less(e, p->q, imm(c->quads));
	p->b = add(e, mad(e, p->q, 16, k->memory), imm(c->at_b));
	for (uint32_t i = 0; i < 4; i++)
		p->sum[0][i] = op1(e, REG_F, "mov.f32", imm_f(0));
	return list_load(k, s, p, rank_of(k, c, warp_of(k)));
}

static void list_apply(Kernel *k, const DeviceStep *s, const GradientPart *p, const ListTask *t)
{
	RuleQuads q = *t->quads;

	q.row = t->row;
	for (uint32_t i = 0; i < 4; i++)
		q.g[0][i] = p->sum[0][i];
	rule_quads(k, k->numbers, &k->s->panel[s->panel], s->depth + s->bias, &q);
}

/* Each task is one that no warp has, the longest first. Weights and state of the next are loaded meanwhile, and the
 * number of the one after it is fetched. */
void lists_add(Kernel *k, const DeviceStep *s, const GradientCut *c, const GradientPart *p, const ListTask *first)
{
	Emit *e = k->e;
	uint32_t warps = (c->threads - c->totals_threads) / 32, top = label(e);
	uint32_t all = (uint32_t)ceil_div(k->s->job->data.inputs, lists_of_warp(c));
	Reg leads = same(e, op2(e, REG_R, "and.b32", k->tid, imm(31)), imm(0));
	Reg slot = op1(e, REG_R, "mov.u32", warp_of(k)), next_slot = add(e, slot, imm(warps)), ticket = reg(e, REG_R);
	ListTask now = { op1(e, REG_R, "mov.u32", first->row), op1(e, REG_R, "mov.u32", first->word),
		             NEW(&k->s->cx->scratch, 1, RuleQuads) };

	*now.quads = *first->quads;
	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		for (uint32_t i = 0; i < 4 && now.quads->loaded >> v & 1; i++)
			now.quads->value[v][0][i] = op1(e, REG_F, "mov.f32", first->quads->value[v][0][i]);
	label_here(e, top);
	ins(e, "mov.u32 $, 0", ticket);
	ins(e, "@$ atom.shared.add.u32 $, [$+#], 1", leads, ticket, k->memory, k->at_info + INFO_LISTS);
	ins(e, "bar.warp.sync 0xffffffff");
	ListTask next = list_load(k, s, p, rank_of(k, c, next_slot));
	for (uint32_t i = 0; i < 4; i++)
		ins(e, "mov.f32 $, 0f00000000", p->sum[0][i]);
	groups_add(k, p, now.word);
	list_apply(k, s, p, &now);
	ins(e, "mov.u32 $, $", now.row, next.row);
	ins(e, "mov.u32 $, $", now.word, next.word);
	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		for (uint32_t i = 0; i < 4 && now.quads->loaded >> v & 1; i++)
			ins(e, "mov.f32 $, $", now.quads->value[v][0][i], next.quads->value[v][0][i]);
	ins(e, "mov.u32 $, $", slot, next_slot);
	ins(e, "bar.warp.sync 0xffffffff");
	ins(e, "shfl.sync.idx.b32 $, $, 0, 31, 0xffffffff", next_slot, ticket);
	ins(e, "add.u32 $, $, #", next_slot, next_slot, 2 * warps);
	ins(e, "@$ bra L#", less(e, slot, imm(all)), top);
}
