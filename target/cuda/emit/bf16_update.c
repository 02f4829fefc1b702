/* SPDX-License-Identifier: MIT */
/* bf16: the update. In: sums of slices in global memory or, for single_block, sums of tiles as a warp has them. Out:
 * weights in fp32 and bf16, rule state; of single_block also in shared memory (kept). Must hold: slices of a leaf are
 * added one after the other, leaves as doc/arithmetic.md says; bf16 weights from the true unit are 0, as sums start
 * with them. */
#include "bf16_emit.h"

/* The sum of all slices of all leaves. from: address of the first; slice: rows of a slice */
Reg bf16_join(Kernel *k, Reg from, uint32_t leaves, uint32_t slice)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	JoinKnown j = { .depth = 0 };
	uint32_t slices = (uint32_t)ceil_div(s->leaf_rows, slice);
	uint64_t floats = s->job->floats;

	for (uint32_t n = 0; n < leaves; n++) {
		Reg base = place_at(e, from, (uint64_t)n * BF16_SLICES * floats * 4);
		Reg sum = load(e, REG_F, "ld.global.f32", base, 0);
		for (uint32_t i = 1; i < slices; i++)
			sum = op2(e, REG_F, "add.rn.ftz.f32", sum,
			          load(e, REG_F, "ld.global.f32", place_at(e, base, i * floats * 4), 0));
		known_add(e, &j, sum);
	}
	return known_end(e, &j);
}

static Reg is_bias(Emit *e, const DevicePanel *p, Reg row, Reg col)
{
	return same(e, p->bias_across ? col : row, imm(p->bias));
}

/* single_block: also updates its weights in shared memory: bf16, and the row that sums start with. */
static void shared_weight_store(Kernel *k, const DevicePanel *p, Reg row, Reg col, Reg w, Reg rounded)
{
	Emit *e = k->e;
	const Job *j = k->s->job;

	if (!k->bf16 || !k->bf16->single_block)
		return;
	for (uint32_t i = 0; i < k->bf16->regions; i++) {
		const Bf16Region *r = &k->bf16->region[i];
		if (r->from == p->at) /* a row that products lack is the true unit's */
			ins(e, "@$ st.shared.u16 [$+#], $", less(e, row, imm(r->rows)),
			    mad(e, row, r->pitch, mad(e, col, 2, k->memory)), r->at, rounded);
	}
	if (p->bias == NO_BIAS)
		return;
	const float *start = p->bias_across ? j->copies + p->copy + (uint64_t)p->bias * p->copy_row
	                                    : j->w + p->at + (uint64_t)p->bias * p->row;
	const WeightRegion *s = region_of(k, start);
	if (s)
		ins(e, "@$ st.shared.f32 [$+#], $", is_bias(e, p, row, col), mad(e, p->bias_across ? row : col, 4, k->memory),
		    s->at, w);
}

/* The other forms of a weight: bf16; the row that sums start with. */
void bf16_weight(Kernel *k, const DevicePanel *p, Reg row, Reg col, Reg place_of, Reg w)
{
	Emit *e = k->e;
	Reg value = w, rounded;

	if (p->bias != NO_BIAS) {
		Reg bias = is_bias(e, p, row, col);
		value = op3(e, REG_F, "selp.f32", imm_f(0), w, bias);
		if (p->bias_across && p->copy != NO_COPY)
			ins(e, "@$ st.global.f32 [$], $", bias,
			    place(e, place_at(e, POINTER(k, copies), (p->copy + (uint64_t)p->bias * p->copy_row) * 4), row, 4), w);
	}
	rounded = op1(e, REG_H, "cvt.rn.bf16.f32", value);
	ins(e, "st.global.u16 [$], $", place(e, place_at(e, POINTER(k, half), p->at * 2), place_of, 2), rounded);
	shared_weight_store(k, p, row, col, w, rounded);
}

/* ---- pairs of weights in global memory ---- */

/* Weight by weight, where they differ in their link class. */
static void weights_apply(Kernel *k, const RuleNumbers *n, const DevicePanel *p, const RulePairs *q)
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < q->count; i++) {
		const RulePair *x = &q->pair[i];
		uint32_t none = if_begin(e, x->real);
		for (uint32_t c = 0; c < 2; c++)
			rule_apply(k, n, p, x->row, add(e, x->col, imm(c)), add(e, x->at, imm(c)), x->g[c]);
		if_end(e, none);
	}
}

/* The rule for a pair. If the second column is padding, its gradient is 0. */
static void pair_values(Kernel *k, const PlaceNumbers *n, const DevicePanel *p, const RulePair *x,
                        Reg value[2 + MAX_STATE][2], Reg infinite)
{
	Emit *e = k->e;

	for (uint32_t c = 0; c < 2; c++) {
		Reg g = x->g[c];
		if (c && p->cols % 2)
			g = op3(e, REG_F, "selp.f32", g, imm_f(0), less(e, add(e, x->col, imm(1)), imm(p->cols)));
		Reg variable[2 + MAX_STATE] = { g };
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			variable[v] = value[v][c];
		place_values(k, n, variable);
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			value[v][c] = variable[v];
		Reg none = op2(e, REG_F, "sub.rn.ftz.f32", variable[1], variable[1]);
		Reg bad = op2(e, REG_P, "and.pred", op2(e, REG_P, "setp.neu.ftz.f32", none, imm_f(0)), x->real);
		ins(e, "or.pred $, $, $", infinite, infinite, bad);
	}
}

/* The other forms of a pair of weights, as bf16_weight. */
static void pair_forms(Kernel *k, const DevicePanel *p, const RulePair *x, const Reg w[2])
{
	Emit *e = k->e;
	Reg value[2] = { w[0], w[1] };

	for (uint32_t c = 0; c < 2 && p->bias != NO_BIAS; c++) {
		Reg col = add(e, x->col, imm(c)), bias = is_bias(e, p, x->row, col);
		value[c] = op3(e, REG_F, "selp.f32", imm_f(0), w[c], bias);
		if (p->bias_across && p->copy != NO_COPY)
			ins(e, "@$ st.global.f32 [$], $", op2(e, REG_P, "and.pred", bias, x->real),
			    place(e, place_at(e, POINTER(k, copies), (p->copy + (uint64_t)p->bias * p->copy_row) * 4), x->row, 4),
			    w[c]);
	}
	if (p->cols % 2)
		value[1] = op3(e, REG_F, "selp.f32", value[1], imm_f(0), less(e, add(e, x->col, imm(1)), imm(p->cols)));
	Reg rounded = bf16_pair(e, value[0], value[1]);
	ins(e, "@$ st.global.u32 [$], $", x->real, place(e, place_at(e, POINTER(k, half), p->at * 2), x->at, 2), rounded);
}

/* The weight and its state, of a pair. */
typedef struct Variables {
	Reg at[2 + MAX_STATE], value[2 + MAX_STATE][2];
} Variables;

/* Loads of all pairs come first, so that they overlap. */
static void pairs_apply(Kernel *k, const RuleNumbers *n, const DevicePanel *p, const RulePairs *q)
{
	Emit *e = k->e;
	const Formula *f = k->s->formula;
	uint32_t loads = formula_uses(f, OP_LOAD), stores = formula_uses(f, OP_STORE);
	Variables *x = NEW(&k->s->cx->scratch, q->count, Variables);

	if (p->kind) {
		weights_apply(k, n, p, q);
		return;
	}
	PlaceNumbers own = known_numbers(k, n, &k->s->factor[p->factor]);
	Reg infinite = op2(e, REG_P, "setp.ne.u32", imm(0), imm(0));
	for (uint32_t i = 0; i < q->count; i++)
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++) {
			if (!((loads | stores) >> v & 1))
				continue;
			x[i].at[v] = variable_at(k, v, p, q->pair[i].at);
			x[i].value[v][0] = op1(e, REG_F, "mov.f32", imm_f(0));
			x[i].value[v][1] = op1(e, REG_F, "mov.f32", imm_f(0));
			if (loads >> v & 1)
				ins(e, "@$ ld.global.v2.f32 {$, $}, [$]", q->pair[i].real, x[i].value[v][0], x[i].value[v][1],
				    x[i].at[v]);
		}
	for (uint32_t i = 0; i < q->count; i++) {
		pair_values(k, &own, p, &q->pair[i], x[i].value, infinite);
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			if (stores >> v & 1)
				ins(e, "@$ st.global.v2.f32 [$], {$, $}", q->pair[i].real, x[i].at[v], x[i].value[v][0],
				    x[i].value[v][1]);
		pair_forms(k, p, &q->pair[i], x[i].value[1]);
	}
	infinite_check(k, infinite);
}

/* As many at once as registers suffice for. */
void rule_pairs(Kernel *k, const RuleNumbers *n, const DevicePanel *p, const RulePairs *q)
{
	enum { AT_ONCE = 8 };

	for (uint32_t first = 0; first < q->count; first += AT_ONCE) {
		RulePairs some = { .count = min_u32(AT_ONCE, q->count - first) };
		for (uint32_t i = 0; i < some.count; i++)
			some.pair[i] = q->pair[first + i];
		pairs_apply(k, n, p, &some);
	}
}

/* ---- sums of slices as tiles ----
 *
 * A warp adds a tile of 16 x 8 weights over four leaves: a part, which is a subtree of the tree of leaves. Sums of
 * parts go through shared memory to the first of these warps, which adds them and applies the rule. */

enum { TILE_LEAVES = 4, TILE_BYTES = 512, MOST_TILE_PANELS = 4 };

SumTiles sum_tiles(const Kernel *k, uint32_t gradient)
{
	SumTiles t = { 0 };

	for (uint32_t i = 0; i <= gradient; i++) {
		const DeviceStep *g = nth_gradient(k, i);
		t.first += t.count;
		t.across = (uint32_t)ceil_div(g->cols, 8);
		t.count = (uint32_t)ceil_div(g->depth, 16) * t.across;
	}
	return t;
}

static uint32_t most_leaves(const EmitSource *s)
{
	return max_u32(s->leaves[0], s->kinds_of_leaves > 1 ? s->leaves[1] : 0);
}

static uint32_t slices_at_most(const EmitSource *s)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < s->kinds_of_leaves; i++)
		most = max_u32(most, (uint32_t)ceil_div(s->leaf_rows, s->slice[i]));
	return most;
}

static uint32_t tile_parts(const EmitSource *s) { return (uint32_t)ceil_div(most_leaves(s), TILE_LEAVES); }

bool tile_sums_plan(Kernel *k)
{
	const EmitSource *s = k->s;
	const Job *j = s->job;
	uint32_t parts = tile_parts(s), warps = k->workers / 32, blocks = s->teams * s->team_blocks;
	SumTiles last = sum_tiles(k, gradient_steps(k) - 1);
	uint64_t tiles = last.first + last.count;

	for (uint32_t i = 0; i < j->panels; i++)
		if (s->panel[i].kind)
			return false;
	k->bf16->at_parts = k->bytes;
	if (parts > 1)
		shared_take(k, (uint64_t)k->workers * 16);
	k->bf16->sum_tiles = (uint32_t)tiles;
	return gradient_steps(k) <= MOST_TILE_PANELS && parts <= warps && tiles <= (uint64_t)warps / parts * blocks &&
	       most_leaves(s) * slices_at_most(s) * tiles * TILE_BYTES / 4 <= j->sums * BF16_SLICES * j->floats &&
	       k->bytes <= s->shared;
}

Reg tile_sum_address(Kernel *k, Reg leaf, Reg slice, Reg tile)
{
	Emit *e = k->e;
	Reg number = mad(e, mad(e, leaf, slices_at_most(k->s), slice), k->bf16->sum_tiles, tile);
	Reg at = op3(e, REG_D, "mad.wide.u32", number, imm(TILE_BYTES), POINTER(k, sum));

	return place(e, at, k->bf16->lane, 16);
}

struct TilesPrefetch {
	RuleNumbers numbers;
	Reg part, strip, tile; /* of the warp: its part, its tile in the block, number of the tile */
	Reg leads, has;        /* P: it applies the rule; its tile exists */
	struct {
		RulePair pair[2];
		Variables v[2];
		Reg is; /* P: the tile is of this panel */
	} panel[MOST_TILE_PANELS];
};

/* Loads weights and state of a lane's two pairs, in rows 8 apart. */
static void panel_prepare(Kernel *k, struct TilesPrefetch *a, uint32_t i)
{
	Emit *e = k->e;
	const DeviceStep *g = nth_gradient(k, i);
	const DevicePanel *p = gradient_panel(k, i);
	uint32_t loads = formula_uses(k->s->formula, OP_LOAD), used = formula_variables(k);
	SumTiles t = sum_tiles(k, i);
	Reg own = add(e, a->tile, imm(0u - t.first)), down = divide(e, own, t.across);
	Reg row = mad(e, down, 16, k->bf16->row_of_lane);
	Reg col = mad(e, modulo(e, own, t.across, down), 8, k->bf16->col_of_lane);

	a->panel[i].is = op2(e, REG_P, "and.pred", less(e, own, imm(t.count)), a->leads);
	for (uint32_t q = 0; q < 2; q++) {
		RulePair *x = &a->panel[i].pair[q];
		Variables *v = &a->panel[i].v[q];
		x->row = add(e, row, imm(8 * q));
		x->col = col;
		x->at = mad(e, x->row, p->row, col);
		x->real = op2(e, REG_P, "and.pred", less(e, x->row, imm(g->depth)), less(e, col, imm(g->cols)));
		x->real = op2(e, REG_P, "and.pred", x->real, a->panel[i].is);
		for (uint32_t n = 1; n < 2 + MAX_STATE; n++) {
			if (!(used >> n & 1))
				continue;
			v->at[n] = variable_at(k, n, p, x->at);
			for (uint32_t c = 0; c < 2; c++)
				v->value[n][c] = op1(e, REG_F, "mov.f32", imm_f(0));
			if (loads >> n & 1)
				ins(e, "@$ ld.global.v2.f32 {$, $}, [$]", x->real, v->value[n][0], v->value[n][1], v->at[n]);
		}
	}
}

struct TilesPrefetch *tiles_prefetch(Kernel *k)
{
	Emit *e = k->e;
	struct TilesPrefetch *a = NEW(&k->s->cx->scratch, 1, struct TilesPrefetch);
	uint32_t parts = tile_parts(k->s), strips = k->workers / 32 / parts;

	rule_numbers(k, &a->numbers);
	a->part = divide(e, k->bf16->warp, strips);
	a->strip = modulo(e, k->bf16->warp, strips, a->part);
	a->tile = mad(e, a->strip, k->s->teams * k->s->team_blocks, k->block);
	a->has = op2(e, REG_P, "and.pred", less(e, a->tile, imm(k->bf16->sum_tiles)), less(e, a->part, imm(parts)));
	a->leads = op2(e, REG_P, "and.pred", a->has, same(e, a->part, imm(0)));
	for (uint32_t i = 0; i < gradient_steps(k); i++)
		panel_prepare(k, a, i);
	return a;
}

static void quads_add(Emit *e, Reg to[4], const Reg from[4])
{
	for (uint32_t i = 0; i < 4; i++)
		to[i] = op2(e, REG_F, "add.rn.ftz.f32", to[i], from[i]);
}

/* Sums are added like carries of a binary counter; at the end, the rest from the last one down. */
typedef struct QuadStack {
	Reg quad[JOIN_LEVELS + 1][4];
	uint32_t depth;
} QuadStack;

static void stack_add(Emit *e, QuadStack *s, uint32_t n)
{
	for (s->depth++; n & 1; n >>= 1, s->depth--)
		quads_add(e, s->quad[s->depth - 2], s->quad[s->depth - 1]);
}

static void stack_end(Emit *e, QuadStack *s)
{
	for (; s->depth > 1; s->depth--)
		quads_add(e, s->quad[s->depth - 2], s->quad[s->depth - 1]);
}

/* The sum of a part that has so many leaves. Loads come first, so that they overlap. */
static void part_join(Kernel *k, const struct TilesPrefetch *a, uint32_t leaves, uint32_t slice, const Reg sum[4])
{
	Emit *e = k->e;
	uint32_t slices = (uint32_t)ceil_div(k->s->leaf_rows, slice), all = slices_at_most(k->s);
	Reg from = tile_sum_address(k, mul(e, a->part, TILE_LEAVES), imm(0), a->tile), (*x)[4];
	QuadStack s = { .depth = 0 };

	x = (Reg(*)[4])NEW(&k->s->cx->scratch, 4 * (size_t)leaves * slices, Reg);
	for (uint32_t i = 0; i < leaves * slices; i++)
		load_quad(e, "global", x[i],
		          place_at(e, from, (uint64_t)(i / slices * all + i % slices) * k->bf16->sum_tiles * TILE_BYTES), 0);
	for (uint32_t n = 0; n < leaves; n++) {
		Reg(*of)[4] = x + n * slices;
		for (uint32_t i = 1; i < slices; i++)
			quads_add(e, of[0], of[i]);
		for (uint32_t c = 0; c < 4; c++)
			s.quad[s.depth][c] = of[0][c];
		stack_add(e, &s, n);
	}
	stack_end(e, &s);
	for (uint32_t c = 0; c < 4; c++)
		ins(e, "mov.f32 $, $", sum[c], s.quad[0][c]);
}

static void parts_join(Kernel *k, const struct TilesPrefetch *a, Reg leaves, const Reg sum[4])
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < k->s->kinds_of_leaves; i++) {
		uint32_t all = k->s->leaves[i], full = all / TILE_LEAVES, rest = all % TILE_LEAVES;
		uint32_t other = if_begin(e, same(e, leaves, imm(all)));
		if (full) {
			uint32_t none = if_begin(e, less(e, a->part, imm(full)));
			part_join(k, a, TILE_LEAVES, k->s->slice[i], sum);
			if_end(e, none);
		}
		if (rest) {
			uint32_t none = if_begin(e, same(e, a->part, imm(full)));
			part_join(k, a, rest, k->s->slice[i], sum);
			if_end(e, none);
		}
		if_end(e, other);
	}
}

/* Sums of parts, through shared memory to the leading warp. */
static void parts_add(Kernel *k, const struct TilesPrefetch *a, Reg leaves, const Reg sum[4])
{
	Emit *e = k->e;
	uint32_t strips = k->workers / 32 / tile_parts(k->s);
	Reg at = mad(e, a->strip, TILE_BYTES, mad(e, k->bf16->lane, 16, k->memory));

	store_quad(e, "shared", mad(e, a->part, strips * TILE_BYTES, at), k->bf16->at_parts, sum);
	ins(e, "bar.sync 1, #", k->workers);
	uint32_t others = if_begin(e, a->leads);
	for (uint32_t i = 0; i < k->s->kinds_of_leaves; i++) {
		uint32_t other = if_begin(e, same(e, leaves, imm(k->s->leaves[i])));
		QuadStack s = { .depth = 0 };
		for (uint32_t n = 0; n < ceil_div(k->s->leaves[i], TILE_LEAVES); n++) {
			load_quad(e, "shared", s.quad[s.depth], at, k->bf16->at_parts + n * strips * TILE_BYTES);
			stack_add(e, &s, n);
		}
		stack_end(e, &s);
		for (uint32_t c = 0; c < 4; c++)
			ins(e, "mov.f32 $, $", sum[c], s.quad[0][c]);
		if_end(e, other);
	}
	if_end(e, others);
}

static void panel_apply(Kernel *k, const struct TilesPrefetch *a, uint32_t i, const Reg sum[4])
{
	Emit *e = k->e;
	const DevicePanel *p = gradient_panel(k, i);
	uint32_t stores = formula_uses(k->s->formula, OP_STORE), end = if_begin(e, a->panel[i].is);
	PlaceNumbers own = known_numbers(k, &a->numbers, &k->s->factor[p->factor]);
	Reg infinite = op2(e, REG_P, "setp.ne.u32", imm(0), imm(0));

	for (uint32_t q = 0; q < 2; q++) {
		RulePair x = a->panel[i].pair[q];
		Variables v = a->panel[i].v[q];
		x.g[0] = sum[2 * q];
		x.g[1] = sum[2 * q + 1];
		pair_values(k, &own, p, &x, v.value, infinite);
		for (uint32_t n = 1; n < 2 + MAX_STATE; n++)
			if (stores >> n & 1)
				ins(e, "@$ st.global.v2.f32 [$], {$, $}", x.real, v.at[n], v.value[n][0], v.value[n][1]);
		pair_forms(k, p, &x, v.value[1]);
	}
	infinite_check(k, infinite);
	if_end(e, end);
}

void tiles_update(Kernel *k, const struct TilesPrefetch *a, Reg leaves)
{
	Emit *e = k->e;
	uint32_t parts = tile_parts(k->s), none;
	Reg sum[4];

	remark(e, "sums of leaves by %u warps, and the rule", parts);
	for (uint32_t i = 0; i < 4; i++)
		sum[i] = op1(e, REG_F, "mov.f32", imm_f(0));
	none = if_begin(e, a->has);
	parts_join(k, a, leaves, sum);
	if_end(e, none);
	if (parts > 1)
		parts_add(k, a, leaves, sum);
	for (uint32_t i = 0; i < gradient_steps(k); i++)
		panel_apply(k, a, i, sum);
}

/* ---- weights and state that stay in shared memory ---- */

void bf16_kept_plan(Kernel *k)
{
	for (uint32_t i = 0; i < gradient_steps(k); i++) {
		const DevicePanel *p = gradient_panel(k, i);
		KeptPanel *to = &k->bf16->panel[i];
		to->swizzled = p->row * 4 % 128 == 64;
		to->pitch = p->row * 4 + (to->swizzled ? 0 : 32);
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			if (formula_variables(k) >> v & 1)
				to->at[v] = shared_take(k, p->size / p->row * to->pitch);
	}
}

/* Where bytes `at` of a row are in it: the swizzle exchanges adjacent 32 bytes. */
static Reg kept_byte(Emit *e, const KeptPanel *p, Reg row, Reg at)
{
	if (!p->swizzled)
		return at;
	Reg other = op2(e, REG_R, "and.b32", op2(e, REG_R, "shl.b32", row, imm(4)), imm(32));
	return op2(e, REG_R, "xor.b32", at, other);
}

/* Between global and shared memory, 16 bytes a thread. */
void bf16_kept_move(Kernel *k, bool out)
{
	Emit *e = k->e;

	if (k->bf16->warpgroups) {
		warpgroup_kept_move(k, out);
		return;
	}
	for (uint32_t i = 0; k->bf16->kept && i < gradient_steps(k); i++) {
		const DevicePanel *p = gradient_panel(k, i);
		const KeptPanel *to = &k->bf16->panel[i];
		uint32_t each = p->row / 4;
		Loop l = loop_begin(e, k->tid, imm((uint32_t)(p->size / 4)), k->s->threads);
		Reg row = divide(e, l.i, each), part = mul(e, modulo(e, l.i, each, row), 16);
		Reg here = add(e, mad(e, row, to->pitch, k->memory), kept_byte(e, to, row, part));
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++) {
			if (!(formula_variables(k) >> v & 1))
				continue;
			Reg there = variable_at(k, v, p, mul(e, l.i, 4)), q[4];
			if (out) {
				load_quad(e, "shared", q, here, to->at[v]);
				store_quad(e, "global", there, 0, q);
			} else {
				ins(e, "cp.async.cg.shared.global [$+#], [$], 16", here, to->at[v], there);
			}
		}
		loop_end(e, &l);
	}
}

/* ---- the rule ---- */

/* Weight by weight, where they differ in their link class. */
static void tile_weights_apply(Kernel *k, const RuleNumbers *n, const DevicePanel *p, const RuleTiles *q)
{
	Emit *e = k->e;

	for (uint32_t i = 0; i < 4 * q->high * q->wide; i++) {
		uint32_t tile = i / 4;
		Reg row = add(e, q->row, imm(16 * (tile / q->wide) + 8 * (i / 2 % 2)));
		Reg col = add(e, q->col, imm(8 * (tile % q->wide) + i % 2));
		uint32_t none = if_begin(e, less(e, row, imm(q->depth)));
		rule_apply(k, n, p, row, col, mad(e, row, p->row, col), q->sum[tile][i % 4]);
		if_end(e, none);
	}
}

/* Where the lane's first weight is: with its state; in bf16 in shared memory, if products read it there. */
typedef struct TilePlaces {
	Reg at[2 + MAX_STATE]; /* in global memory, unless kept: */
	const KeptPanel *kept;
	Reg kept_at[2]; /* of even and of odd tiles */
	const Bf16Region *region;
	Reg bf16;
	Reg row[8], row_here[8], col[8], second[8]; /* P: rows of the panel, of the region, columns, second ones exist */
} TilePlaces;

static TilePlaces tile_places(Kernel *k, const DevicePanel *p, const RuleTiles *q)
{
	Emit *e = k->e;
	uint32_t used = formula_variables(k);
	TilePlaces t = { .region = NULL };
	Reg first = mad(e, q->row, p->row, q->col);

	for (uint32_t i = 0; i < k->bf16->regions; i++)
		if (k->bf16->region[i].from == p->at)
			t.region = &k->bf16->region[i];
	for (uint32_t v = 1; v < 2 + MAX_STATE && !k->bf16->kept; v++)
		if (used >> v & 1)
			t.at[v] = variable_at(k, v, p, first);
	if (k->bf16->kept) {
		t.kept = &k->bf16->panel[q->number];
		for (uint32_t i = 0; i < 2; i++)
			t.kept_at[i] = add(e, mad(e, q->row, t.kept->pitch, k->memory),
			                   kept_byte(e, t.kept, q->row, mad(e, q->col, 4, imm(32 * i))));
	}
	if (t.region)
		t.bf16 = add(e, mad(e, q->row, t.region->pitch, mad(e, q->col, 2, k->memory)), imm(t.region->at));
	for (uint32_t r = 0; r < 2 * q->high; r++) {
		t.row[r] = less(e, q->row, imm(q->depth - min_u32(q->depth, 8 * r)));
		t.row_here[r] = t.row[r];
		if (t.region && t.region->rows != q->depth) /* a row that products lack is the true unit's */
			t.row_here[r] = less(e, q->row, imm(t.region->rows - min_u32(t.region->rows, 8 * r)));
	}
	for (uint32_t j = 0; j < q->wide; j++) {
		t.col[j] = less(e, q->col, imm(p->cols - min_u32(p->cols, 8 * j)));
		if (p->cols % 2)
			t.second[j] = less(e, add(e, q->col, imm(8 * j + 1)), imm(p->cols));
	}
	return t;
}

/* Weights from the true unit: to the row that sums start with; their bf16 is 0. */
static void tiles_bias(Kernel *k, const DevicePanel *p, const RuleTiles *q, const TilePlaces *t)
{
	Emit *e = k->e;
	const Job *j = k->s->job;

	if (p->bias == NO_BIAS)
		return;
	const float *start = p->bias_across ? j->copies + p->copy + (uint64_t)p->bias * p->copy_row
	                                    : j->w + p->at + (uint64_t)p->bias * p->row;
	const WeightRegion *s = region_of(k, start);
	Reg own = p->bias_across ? q->col : q->row;
	uint32_t past = p->bias_across ? 8 * q->wide : 16 * q->high; /* of the warp's tiles; lanes begin in the first 8 */
	Reg near = less(e, op2(e, REG_R, "sub.u32", imm(p->bias), op2(e, REG_R, "and.b32", own, imm(~7u))), imm(past));
	uint32_t none = if_begin(e, near);
	for (uint32_t i = 0; i < 4 * q->high * q->wide; i++) {
		uint32_t tile = i / 4, down = tile / q->wide * 2 + i / 2 % 2, across = tile % q->wide;
		uint32_t place_of = p->bias_across ? 8 * across + i % 2 : 8 * down;
		Reg is = op2(e, REG_P, "and.pred", same(e, own, imm(p->bias - place_of)), t->row[down]);
		if (!p->bias_across)
			is = op2(e, REG_P, "and.pred", is, i % 2 && p->cols % 2 ? t->second[across] : t->col[across]);
		if (p->bias < place_of)
			continue;
		Reg to = p->bias_across ? add(e, q->row, imm(8 * down)) : add(e, q->col, imm(8 * across + i % 2));
		if (s)
			ins(e, "@$ st.shared.f32 [$+#], $", is, mad(e, to, 4, k->memory), s->at, q->sum[tile][i % 4]);
		if (t->region) {
			Reg here = op2(e, REG_P, "and.pred", is, t->row_here[down]), zero = reg(e, REG_H);
			ins(e, "mov.u16 $, 0", zero);
			ins(e, "@$ st.shared.u16 [$+#], $", here, t->bf16, 8 * down * t->region->pitch + 16 * across + 2 * (i % 2),
			    zero);
		}
	}
	if_end(e, none);
}

/* The rule for a pair. If the second column is padding, its gradient is 0. */
static void pair_apply(Kernel *k, const PlaceNumbers *n, const RuleTiles *q, const TilePlaces *t, uint32_t pair,
                       Reg value[2 + MAX_STATE][2], Reg finite)
{
	Emit *e = k->e;
	uint32_t tile = pair / 2, down = tile / q->wide * 2 + pair % 2, across = tile % q->wide;
	Reg *sum = q->sum[tile] + pair % 2 * 2, real = op2(e, REG_P, "and.pred", t->row[down], t->col[across]);

	for (uint32_t c = 0; c < 2; c++) {
		Reg variable[2 + MAX_STATE] = { sum[c] };
		if (c && t->second[across].type == REG_P)
			variable[0] = op3(e, REG_F, "selp.f32", sum[c], imm_f(0), t->second[across]);
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			variable[v] = value[v][c];
		place_values(k, n, variable);
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			value[v][c] = variable[v];
		ins(e, "mov.f32 $, $", sum[c], variable[1]);
		ins(e, "@$ fma.rn.ftz.f32 $, $, 0f00000000, $", real, finite, variable[1], finite);
	}
	if (!t->region)
		return;
	Reg rounded = bf16_pair(e, sum[0], sum[1]), here = op2(e, REG_P, "and.pred", t->row_here[down], t->col[across]);
	if (t->second[across].type == REG_P)
		rounded = op3(e, REG_R, "selp.u32", rounded, op2(e, REG_R, "and.b32", rounded, imm(0xffff)), t->second[across]);
	ins(e, "@$ st.shared.u32 [$+#], $", here, t->bf16, 8 * down * t->region->pitch + 16 * across, rounded);
}

/* Loads of several pairs come first, so that they overlap. */
void rule_tiles(Kernel *k, const RuleNumbers *n, const DevicePanel *p, const RuleTiles *q)
{
	enum { AT_ONCE = 8 };
	Emit *e = k->e;
	const Formula *f = k->s->formula;
	uint32_t loads = formula_uses(f, OP_LOAD), stores = formula_uses(f, OP_STORE), all = 2 * q->high * q->wide;

	if (p->kind) {
		tile_weights_apply(k, n, p, q);
		return;
	}
	TilePlaces t = tile_places(k, p, q);
	PlaceNumbers own = known_numbers(k, n, &k->s->factor[p->factor]);
	Reg finite = zero_float(e), value[AT_ONCE][2 + MAX_STATE][2];
	for (uint32_t first = 0; first < all; first += AT_ONCE) {
		for (uint32_t moves = 0; moves < 3; moves++) /* loads, the rule, stores */
			for (uint32_t i = 0; i < AT_ONCE && first + i < all; i++) {
				uint32_t tile = (first + i) / 2, down = tile / q->wide * 2 + (first + i) % 2, across = tile % q->wide;
				uint32_t at = (8 * down * p->row + 8 * across) * 4;
				if (t.kept)
					at = 8 * down * t.kept->pitch + across / 2 * 64;
				Reg real = op2(e, REG_P, "and.pred", t.row[down], t.col[across]);
				if (moves == 1)
					pair_apply(k, &own, q, &t, first + i, value[i], finite);
				for (uint32_t v = 1; v < 2 + MAX_STATE; v++) {
					Reg *x = value[i][v];
					if (!moves && ((loads | stores) >> v & 1))
						for (uint32_t c = 0; c < 2; c++)
							x[c] = op1(e, REG_F, "mov.f32", imm_f(0));
					uint32_t here = t.kept ? at + t.kept->at[v] : at;
					Reg from = t.kept ? t.kept_at[across % 2] : t.at[v];
					if (!moves && (loads >> v & 1))
						ins(e, t.kept ? "@$ ld.shared.v2.f32 {$, $}, [$+#]" : "@$ ld.global.v2.f32 {$, $}, [$+#]", real,
						    x[0], x[1], from, here);
					if (moves == 2 && (stores >> v & 1))
						ins(e, t.kept ? "@$ st.shared.v2.f32 [$+#], {$, $}" : "@$ st.global.v2.f32 [$+#], {$, $}", real,
						    from, here, x[0], x[1]);
				}
			}
	}
	infinite_check(k, op2(e, REG_P, "setp.neu.ftz.f32", finite, finite));
	tiles_bias(k, p, q, &t);
}

/* ---- the end of a job ---- */

/* Weights that updates have changed in shared memory only: bf16, kept, and transposed ones from the true unit. */
void bf16_weights_store(Kernel *k)
{
	Emit *e = k->e;
	const Job *j = k->s->job;

	barrier_block(e);
	bf16_kept_move(k, true);
	if (k->bf16->warpgroups)
		warpgroup_weights_move(k, true);
	for (uint32_t i = 0; i < k->bf16->regions && !k->bf16->warpgroups; i++) {
		const Bf16Region *r = &k->bf16->region[i];
		uint32_t each = r->row / 2;
		Reg to = place_at(e, POINTER(k, half), r->from * 2);
		Loop l = loop_begin(e, k->tid, imm(r->rows * each), k->s->threads);
		Reg row = divide(e, l.i, each), part = modulo(e, l.i, each, row);
		Reg two = load(e, REG_R, "ld.shared.u32", mad(e, row, r->pitch, mad(e, part, 4, k->memory)), r->at);
		ins(e, "st.global.u32 [$], $", place(e, to, l.i, 4), two);
		loop_end(e, &l);
	}
	for (uint32_t i = 0; i < j->panels; i++) {
		const DevicePanel *p = &k->s->panel[i];
		if (p->bias == NO_BIAS || !p->bias_across || p->copy == NO_COPY)
			continue;
		const WeightRegion *r = region_of(k, j->copies + p->copy + (uint64_t)p->bias * p->copy_row);
		if (!r)
			continue;
		Loop l = loop_begin(e, k->tid, imm(r->row), k->s->threads);
		Reg w = load(e, REG_F, "ld.shared.f32", mad(e, l.i, 4, k->memory), r->at);
		ins(e, "st.global.f32 [$], $", place(e, weight_place(k, r->from), l.i, 4), w);
		loop_end(e, &l);
	}
}
