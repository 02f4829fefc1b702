/* SPDX-License-Identifier: MIT */
/* bf16: sums of slices, the rule, rounded weights. In: sums of slices in global memory, or gradients in registers. Out:
 * weights as floats and rounded, rule state. Must hold: slices of a leaf are added one after the other, leaves as
 * doc/arithmetic.md says; rounded weights of the true unit are 0, for sums begin with them. */
#include "half_emit.h"

/* All sums of a place: of `kind` leaves. from: address of the first. */
Reg half_join(Kernel *k, Reg from, uint32_t kind)
{
	Emit *e = k->e;
	const EmitSource *s = k->s;
	Reg stack[JOIN_LEVELS + 1];
	uint32_t depth = 0, slices = (uint32_t)ceil_div(s->leaf_rows, s->slice[kind]);
	uint64_t floats = s->job->floats;

	for (uint32_t n = 0; n < s->leaves[kind]; n++) {
		Reg base = place_at(e, from, (uint64_t)n * HALF_SLICES * floats * 4);
		Reg sum = load(e, REG_F, "ld.global.f32", base, 0);
		for (uint32_t i = 1; i < slices; i++)
			sum = op2(e, REG_F, "add.rn.ftz.f32", sum,
			          load(e, REG_F, "ld.global.f32", place_at(e, base, i * floats * 4), 0));
		stack[depth++] = sum;
		for (uint32_t l = 0; n >> l & 1; l++, depth--)
			stack[depth - 2] = op2(e, REG_F, "add.rn.ftz.f32", stack[depth - 2], stack[depth - 1]);
	}
	for (; depth > 1; depth--)
		stack[depth - 2] = op2(e, REG_F, "add.rn.ftz.f32", stack[depth - 2], stack[depth - 1]);
	return stack[0];
}

static Reg is_bias(Emit *e, const DevicePanel *p, Reg row, Reg col)
{
	return same(e, p->bias_across ? col : row, imm(p->bias));
}

/* Where one block has all of the network, its weights in shared memory are updated, too: rounded ones of a place, and
 * the row that sums begin with. pair: two columns; real: NULL, or whether they are weights. */
static void weights_here(Kernel *k, const DevicePanel *p, Reg row, Reg col, const Reg *w, Reg half, bool pair, Reg real)
{
	Emit *e = k->e;
	const Job *j = k->s->job;

	if (!k->half || !k->half->direct)
		return;
	for (uint32_t i = 0; i < k->half->regions; i++) {
		const HalfRegion *r = &k->half->region[i];
		if (r->from == p->at) /* a row past those of products is that of the true unit */
			ins(e, pair ? "@$ st.shared.u32 [$+#], $" : "@$ st.shared.u16 [$+#], $",
			    op2(e, REG_P, "and.pred", real, less(e, row, imm(r->rows))),
			    mad(e, row, r->pitch, mad(e, col, 2, k->memory)), r->at, half);
	}
	if (p->bias == NO_BIAS)
		return;
	const float *start = p->bias_across ? j->copies + p->copy + (uint64_t)p->bias * p->copy_row
	                                    : j->w + p->at + (uint64_t)p->bias * p->row;
	const WeightRegion *s = region_of(k, start);
	for (uint32_t c = 0; c < 1u + pair && s; c++) {
		Reg own = add(e, col, imm(c)), bias = op2(e, REG_P, "and.pred", real, is_bias(e, p, row, own));
		if (c)
			bias = op2(e, REG_P, "and.pred", bias, less(e, own, imm(p->cols)));
		ins(e, "@$ st.shared.f32 [$+#], $", bias, mad(e, p->bias_across ? row : own, 4, k->memory), s->at, w[c]);
	}
}

/* What the forms of a weight have besides its float: the rounded one; the row that sums begin with. */
void half_weight(Kernel *k, const DevicePanel *p, Reg row, Reg col, Reg place_of, Reg w)
{
	Emit *e = k->e;
	Reg value = w, half;

	if (p->bias != NO_BIAS) {
		Reg bias = is_bias(e, p, row, col);
		value = op3(e, REG_F, "selp.f32", imm_f(0), w, bias);
		if (p->bias_across && p->copy != NO_COPY)
			ins(e, "@$ st.global.f32 [$], $", bias,
			    place(e, place_at(e, POINTER(k, copies), (p->copy + (uint64_t)p->bias * p->copy_row) * 4), row, 4), w);
	}
	half = op1(e, REG_H, "cvt.rn.bf16.f32", value);
	ins(e, "st.global.u16 [$], $", place(e, place_at(e, POINTER(k, half), p->at * 2), place_of, 2), half);
	weights_here(k, p, row, col, &w, half, false, op2(e, REG_P, "setp.eq.u32", imm(0), imm(0)));
}

/* One by one, where places differ in their factor. */
static void pairs_apart(Kernel *k, const RuleNumbers *n, const DevicePanel *p, const RulePairs *q)
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

/* A pair whose second column is past the last has a gradient of 0 there, and what it stores is padding. */
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
	Reg half = half_pair(e, value[0], value[1]);
	ins(e, "@$ st.global.u32 [$], $", x->real, place(e, place_at(e, POINTER(k, half), p->at * 2), x->at, 2), half);
	weights_here(k, p, x->row, x->col, w, half, true, x->real);
}

/* The weight and its state, of a pair. */
typedef struct Variables {
	Reg at[2 + MAX_STATE], value[2 + MAX_STATE][2];
} Variables;

/* Loads of all come first, so that they are under way together. */
static void pairs_apply(Kernel *k, const RuleNumbers *n, const DevicePanel *p, const RulePairs *q)
{
	Emit *e = k->e;
	const Formula *f = k->s->formula;
	uint32_t loads = formula_uses(f, OP_LOAD), stores = formula_uses(f, OP_STORE);
	Variables *x = NEW(&k->s->cx->scratch, q->count, Variables);

	if (p->kind) {
		pairs_apart(k, n, p, q);
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

/* As many at a time as there are registers for. */
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
