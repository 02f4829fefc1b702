/* SPDX-License-Identifier: MIT */
/* The update. In: sums of leaves, or the gradient of a weight in a register. Out: weights in both forms, rule state.
 * The formula of a rule is a list of operations: one instruction or two for each. */
#include "bf16_emit.h"

enum { PREPARED_PANELS = 8 };

static Reg number_load(Kernel *k, uint32_t p)
{
	if (k->bf16 && k->bf16->side_warps)
		return load(k->e, REG_G, "ld.shared.f64", add(k->e, k->memory, k->bf16->params_offset),
		            k->bf16->at_params + p * 8);
	return load(k->e, REG_G, "ld.global.nc.f64", k->param, p * 8);
}

void rule_numbers_load(Kernel *k, RuleNumbers *n)
{
	const Formula *f = k->s->formula;

	_Static_assert(P_COUNT <= 64, "bits of a word");
	*n = (RuleNumbers){ .rate = number_load(k, P_RATE), .has = (uint64_t)1 << P_RATE };
	for (uint32_t i = 0; i < f->ops; i++)
		if (f->op[i].op == OP_PARAM && f->op[i].a != P_RATE) {
			n->wide[f->op[i].a] = number_load(k, f->op[i].a);
			n->has |= (uint64_t)1 << f->op[i].a;
		}
}

RuleNumbers rule_numbers_kept(Kernel *k, Reg at, uint32_t offset)
{
	const Formula *f = k->s->formula;
	RuleNumbers n = { .rate = load(k->e, REG_G, "ld.shared.f64", at, offset + 8 * P_RATE) };

	for (uint32_t i = 0; i < f->ops; i++)
		if (f->op[i].op == OP_PARAM && f->op[i].a != P_RATE)
			n.wide[f->op[i].a] = load(k->e, REG_G, "ld.shared.f64", at, offset + 8 * f->op[i].a);
	return n;
}

void rule_numbers_take(Kernel *k, RuleNumbers *n)
{
	Emit *e = k->e;
	const Formula *f = k->s->formula;

	for (uint32_t i = 0; i < f->ops; i++) {
		uint32_t p = f->op[i].a;
		if (f->op[i].op != OP_PARAM || p == P_RATE)
			continue;
		n->param[p] =
			p == P_CLIP && k->s->job->needs_norm ? norm_factor(k) : op1(e, REG_F, "cvt.rn.f32.f64", n->wide[p]);
	}
}

void rule_numbers(Kernel *k, RuleNumbers *n)
{
	rule_numbers_load(k, n);
	rule_numbers_take(k, n);
}

/* Where weights from `from` on are kept in shared memory; number: of one of them. False: they are not. */
static bool kept_place(Kernel *k, const float *from, Reg number, Reg *at)
{
	const WeightRegion *r = k->kept ? region_of(k, from) : NULL;

	if (r)
		*at = add(k->e, mad(k->e, number, 4, k->memory), imm(weight_at(k, from)));
	return r != NULL;
}

/* Where variable v of a formula is: 1 the weight, 2 and so on its state. R: in shared memory. */
Reg variable_at(Kernel *k, uint32_t v, const DevicePanel *p, Reg place_of)
{
	Reg kept;

	if (v == 1 && kept_place(k, k->s->job->w + p->at, place_of, &kept))
		return kept;
	Reg base = v == 1 ? POINTER(k, w) : pointer(k, offsetof(Job, state) + (v - 2) * sizeof(float *));

	return place(k->e, place_at(k->e, base, p->at * 4), place_of, 4);
}

static Reg truth(Emit *e, Reg p) { return op3(e, REG_F, "selp.f32", imm_f(1), imm_f(0), p); }
static Reg chosen(Emit *e, const char *test, Reg a, Reg b)
{
	return op3(e, REG_F, "selp.f32", a, b, op2(e, REG_P, test, a, b));
}

void formula_values(Emit *e, const Formula *f, const RuleNumbers *n, Reg rate, Reg variable[2 + MAX_STATE])
{
	Reg v[MAX_OPS];

	for (uint32_t i = 0; i < f->ops; i++) {
		const Op *o = &f->op[i];
		switch (o->op) {
		case OP_CONST: v[i] = op1(e, REG_F, "mov.f32", imm_f((float)o->value)); break;
		case OP_PARAM: v[i] = o->a == P_RATE ? rate : n->param[o->a]; break;
		case OP_LOAD: v[i] = variable[o->a]; break;
		case OP_STORE: variable[o->a] = v[o->b]; break;
		case OP_ADD: v[i] = op2(e, REG_F, "add.rn.ftz.f32", v[o->a], v[o->b]); break;
		case OP_SUB: v[i] = op2(e, REG_F, "sub.rn.ftz.f32", v[o->a], v[o->b]); break;
		case OP_MUL: v[i] = op2(e, REG_F, "mul.rn.ftz.f32", v[o->a], v[o->b]); break;
		case OP_DIV: v[i] = op2(e, REG_F, "div.rn.ftz.f32", v[o->a], v[o->b]); break;
		case OP_FMA: v[i] = op3(e, REG_F, "fma.rn.ftz.f32", v[o->a], v[o->b], v[o->c]); break;
		case OP_NEG: v[i] = op1(e, REG_F, "neg.f32", v[o->a]); break;
		case OP_ABS: v[i] = op1(e, REG_F, "abs.f32", v[o->a]); break;
		case OP_SQRT: v[i] = op1(e, REG_F, "sqrt.rn.ftz.f32", v[o->a]); break;
		case OP_MIN: v[i] = chosen(e, "setp.lt.ftz.f32", v[o->a], v[o->b]); break;
		case OP_MAX: v[i] = chosen(e, "setp.gt.ftz.f32", v[o->a], v[o->b]); break;
		case OP_LT: v[i] = truth(e, op2(e, REG_P, "setp.lt.ftz.f32", v[o->a], v[o->b])); break;
		case OP_LE: v[i] = truth(e, op2(e, REG_P, "setp.le.ftz.f32", v[o->a], v[o->b])); break;
		case OP_SELECT:
			v[i] = op3(e, REG_F, "selp.f32", v[o->c], v[o->b], op2(e, REG_P, "setp.eq.ftz.f32", v[o->a], imm_f(0)));
			break;
		}
	}
}

uint32_t formula_uses(const Formula *f, uint32_t op)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < f->ops; i++)
		if (f->op[i].op == op)
			bits |= 1u << f->op[i].a;
	return bits & ~1u;
}

static bool uses_decay(const Kernel *k)
{
	const Formula *f = k->s->formula;

	for (uint32_t i = 0; i < f->ops; i++)
		if (f->op[i].op == OP_PARAM && f->op[i].a == P_DECAY)
			return true;
	return false;
}

static bool is_limited(const LinkClass *c)
{
	return c->low > -(double)__builtin_inff() || c->high < (double)__builtin_inff();
}

PlaceNumbers known_numbers(Kernel *k, const RuleNumbers *n, const LinkClass *c)
{
	Emit *e = k->e;
	PlaceNumbers p = { .n = *n, .limited = is_limited(c), .low = imm_f((float)c->low), .high = imm_f((float)c->high) };

	p.rate = op1(e, REG_F, "cvt.rn.f32.f64",
	             c->rate == 1 ? n->rate : op2(e, REG_G, "mul.rn.f64", n->rate, literal(e, c->rate)));
	if (c->decay >= 0 && uses_decay(k))
		p.n.param[P_DECAY] = op1(e, REG_F, "mov.f32", imm_f((float)c->decay));
	return p;
}

static Reg class_number(Emit *e, Reg at, size_t field)
{
	return op1(e, REG_F, "cvt.rn.f32.f64", load(e, REG_G, "ld.global.nc.f64", at, (uint32_t)field));
}

/* Of a place that has its own class. */
static PlaceNumbers own_numbers(Kernel *k, const RuleNumbers *n, Reg kind)
{
	Emit *e = k->e;
	Reg at = place(e, POINTER(k, factor), kind, sizeof(LinkClass));
	PlaceNumbers p = { .n = *n };
	bool decays = false;

	for (uint32_t i = 0; i < k->s->factors; i++) {
		p.limited |= is_limited(&k->s->factor[i]);
		decays |= k->s->factor[i].decay >= 0;
	}
	Reg factor = load(e, REG_G, "ld.global.nc.f64", at, offsetof(LinkClass, rate));
	p.rate = op1(e, REG_F, "cvt.rn.f32.f64", op2(e, REG_G, "mul.rn.f64", n->rate, factor));
	if (decays && uses_decay(k)) {
		Reg decay = class_number(e, at, offsetof(LinkClass, decay));
		p.n.param[P_DECAY] =
			op3(e, REG_F, "selp.f32", decay, n->param[P_DECAY], op2(e, REG_P, "setp.ge.ftz.f32", decay, imm_f(0)));
	}
	if (p.limited) {
		p.low = class_number(e, at, offsetof(LinkClass, low));
		p.high = class_number(e, at, offsetof(LinkClass, high));
	}
	return p;
}

/* A weight that left its limits; the last step, which some rules remember, is the one that was made. */
static void limit_weight(Kernel *k, const PlaceNumbers *p, Reg variable[2 + MAX_STATE])
{
	Emit *e = k->e;
	Reg w = variable[1], within = op3(e, REG_F, "selp.f32", p->high, w, op2(e, REG_P, "setp.gt.ftz.f32", w, p->high));
	uint32_t step = k->s->step_variable;

	within = op3(e, REG_F, "selp.f32", p->low, within, op2(e, REG_P, "setp.lt.ftz.f32", w, p->low));
	Reg left = op2(e, REG_P, "setp.neu.ftz.f32", within, w);
	if (step) {
		Reg back = op2(e, REG_F, "sub.rn.ftz.f32", within, w);
		Reg made = op2(e, REG_F, "add.rn.ftz.f32", variable[step], back);
		variable[step] = op3(e, REG_F, "selp.f32", made, variable[step], left);
	}
	variable[1] = op3(e, REG_F, "selp.f32", within, w, left);
}

void place_values(Kernel *k, const PlaceNumbers *p, Reg variable[2 + MAX_STATE])
{
	formula_values(k->e, k->s->formula, &p->n, p->rate, variable);
	if (p->limited)
		limit_weight(k, p, variable);
}

static const char *memory_of(Reg at, const char *shared, const char *global)
{
	return at.type == REG_R ? shared : global;
}

/* Of a weight in the transposed form. */
static Reg copy_at(Kernel *k, const DevicePanel *p, Reg col, Reg row)
{
	Emit *e = k->e;
	Reg kept;

	if (kept_place(k, k->s->job->copies + p->copy, mad(e, col, p->copy_row, row), &kept))
		return kept;
	return place(e, place(e, place_at(e, POINTER(k, copies), p->copy * 4), col, p->copy_row * 4), row, 4);
}

/* A weight and its state: addresses, values. */
typedef struct Place {
	Reg at[2 + MAX_STATE], value[2 + MAX_STATE];
} Place;

/* only: NULL, or a predicate */
static void place_load(Kernel *k, const DevicePanel *p, Reg place_of, const Reg *only, Place *v)
{
	Emit *e = k->e;
	uint32_t loads = formula_uses(k->s->formula, OP_LOAD), stores = formula_uses(k->s->formula, OP_STORE);

	for (uint32_t i = 1; i < COUNT(v->at); i++)
		if ((loads | stores) >> i & 1)
			v->at[i] = variable_at(k, i, p, place_of);
	for (uint32_t i = 1; i < COUNT(v->at); i++) {
		v->value[i] = reg(e, REG_F);
		if (!(loads >> i & 1))
			continue;
		if (only)
			ins(e, "mov.f32 $, 0f00000000", v->value[i]);
		const char *text = only ? memory_of(v->at[i], "@$ ld.shared.f32 $, [$]", "@$ ld.global.f32 $, [$]")
		                        : memory_of(v->at[i], "ld.shared.f32 $, [$]", "ld.global.f32 $, [$]");
		ins(e, text, only ? *only : v->value[i], only ? v->value[i] : v->at[i], v->at[i]);
	}
}

/* Returns the new weight. */
static Reg formula_emit(Kernel *k, const PlaceNumbers *n, Reg g, const Place *v)
{
	uint32_t stores = formula_uses(k->s->formula, OP_STORE);
	Reg variable[2 + MAX_STATE] = { g };

	for (uint32_t i = 1; i < COUNT(variable); i++)
		variable[i] = v->value[i];
	place_values(k, n, variable);
	for (uint32_t i = 1; i < COUNT(variable); i++)
		if (stores >> i & 1)
			ins(k->e, memory_of(v->at[i], "st.shared.f32 [$], $", "st.global.f32 [$], $"), v->at[i], variable[i]);
	return variable[1];
}

/* v: NULL, or what was loaded before. */
static void place_apply(Kernel *k, const RuleNumbers *n, const DevicePanel *p, Reg row, Reg col, Reg place_of, Reg g,
                        const Place *v)
{
	Emit *e = k->e;
	uint32_t past = if_begin(e, less(e, col, imm(p->cols))), unused = 0;
	PlaceNumbers own;
	Place mine;

	if (p->kind) {
		Reg kinds = reg(e, REG_D);
		uint32_t number = (uint32_t)(p - k->s->panel);
		ins(e, "ld.global.u64 $, [$+#]", kinds, POINTER(k, panel),
		    (uint32_t)(number * sizeof(DevicePanel) + offsetof(DevicePanel, kind)));
		Reg kind = load(e, REG_R, "ld.global.nc.u8", place(e, kinds, place_of, 1), 0);
		unused = unless_begin(e, same(e, kind, imm(NO_LINK)));
		own = own_numbers(k, n, kind);
	} else {
		own = known_numbers(k, n, &k->s->factor[p->factor]);
	}
	if (!v)
		place_load(k, p, place_of, NULL, &mine);
	Reg w = formula_emit(k, &own, g, v ? v : &mine), none = op2(e, REG_F, "sub.rn.ftz.f32", w, w);
	infinite_check(k, op2(e, REG_P, "setp.neu.ftz.f32", none, imm_f(0)));
	if (k->s->bf16)
		bf16_weight(k, p, row, col, place_of, w);
	else if (p->copy != NO_COPY) {
		Reg to = copy_at(k, p, col, row);
		ins(e, memory_of(to, "st.shared.f32 [$], $", "st.global.f32 [$], $"), to, w);
	}
	if (k->posts)
		weight_post(k, p, row, col, place_of, w);
	if (p->kind)
		if_end(e, unused);
	if_end(e, past);
}

void rule_apply(Kernel *k, const RuleNumbers *n, const DevicePanel *p, Reg row, Reg col, Reg place_of, Reg g)
{
	place_apply(k, n, p, row, col, place_of, g, NULL);
}

/* ---- quads ---- */

void infinite_check(Kernel *k, Reg p) { flag_set(k, p, offsetof(JobResult, infinite)); }

/* Columns past the last have no gradient, so that what is there stays finite. */
static void mask_columns(Emit *e, const DevicePanel *p, RuleQuads *q)
{
	Reg col = op2(e, REG_R, "shl.b32", q->quad, imm(2));

	for (uint32_t i = 0; i < 4 && p->cols % 4; i++) {
		Reg real = less(e, add(e, col, imm(i)), imm(p->cols));
		for (uint32_t h = 0; h < q->rows; h++)
			q->g[h][i] = op3(e, REG_F, "selp.f32", q->g[h][i], imm_f(0), real);
	}
}

/* Column i of four rows, adjacent in the transposed form; of the last rows, those that there are. is: P */
static void copy_column(Kernel *k, const RuleQuads *q, uint32_t h, const Reg (*w)[4], const Reg *real,
                        uint32_t all_rows, uint32_t i, Reg at, Reg is)
{
	Emit *e = k->e;
	uint32_t rest = all_rows % 4;

	ins(e, memory_of(at, "@$ st.shared.v4.f32 [$], {$, $, $, $}", "@$ st.global.v4.f32 [$], {$, $, $, $}"),
	    op2(e, REG_P, "and.pred", is, real[h + 3]), at, w[h][i], w[h + 1][i], w[h + 2][i], w[h + 3][i]);
	Reg last = op2(e, REG_P, "and.pred", is, same(e, add(e, q->row, imm(h)), imm(all_rows - rest)));
	if (rest >= 2)
		ins(e, memory_of(at, "@$ st.shared.v2.f32 [$], {$, $}", "@$ st.global.v2.f32 [$], {$, $}"), last, at, w[h][i],
		    w[h + 1][i]);
	if (rest % 2)
		ins(e, memory_of(at, "@$ st.shared.f32 [$+#], $", "@$ st.global.f32 [$+#], $"), last, at, 4 * (rest - 1),
		    w[h + rest - 1][i]);
}

/* Four rows of a quad, as rows of the transposed form. */
static void copy_quads(Kernel *k, const DevicePanel *p, const RuleQuads *q, uint32_t h, const Reg (*w)[4],
                       const Reg *real, uint32_t all_rows)
{
	Emit *e = k->e;
	Reg col = op2(e, REG_R, "shl.b32", q->quad, imm(2));
	bool together = q->aligned && p->copy % 4 == 0 && p->copy_row % 4 == 0;

	for (uint32_t i = 0; i < 4; i++) {
		Reg c = add(e, col, imm(i)), at = copy_at(k, p, c, add(e, q->row, imm(h))), is = less(e, c, imm(p->cols));
		if (together)
			copy_column(k, q, h, w, real, all_rows, i, at, is);
		for (uint32_t r = 0; r < 4 && h + r < q->rows && !together; r++)
			ins(e, memory_of(at, "@$ st.shared.f32 [$+#], $", "@$ st.global.f32 [$+#], $"),
			    op2(e, REG_P, "and.pred", is, real[h + r]), at, 4 * r, w[h + r][i]);
	}
}

/* Places of the quads, and whether there are such. */
static void quads_places(Kernel *k, const DevicePanel *p, uint32_t all_rows, const RuleQuads *q, uint32_t variables,
                         Reg at[][8], Reg real[8])
{
	Emit *e = k->e;
	Reg is_quad = less(e, q->quad, imm((uint32_t)ceil_div(p->cols, 4)));

	for (uint32_t h = 0; h < q->rows; h++) {
		Reg row = add(e, q->row, imm(h)), e_place = mad(e, row, p->row, op2(e, REG_R, "shl.b32", q->quad, imm(2)));
		real[h] = op2(e, REG_P, "and.pred", is_quad, less(e, row, imm(all_rows)));
		for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
			if (variables >> v & 1)
				at[v][h] = variable_at(k, v, p, e_place);
	}
}

void rule_quads_new(Kernel *k, RuleQuads *q)
{
	q->loaded = formula_uses(k->s->formula, OP_LOAD);
	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		for (uint32_t i = 0; i < 4 * q->rows && q->loaded >> v & 1; i++)
			q->value[v][i / 4][i % 4] = reg(k->e, REG_F);
}

void rule_quads_load(Kernel *k, const DevicePanel *p, uint32_t all_rows, const RuleQuads *q)
{
	Emit *e = k->e;
	Reg at[2 + MAX_STATE][8], real[8];

	quads_places(k, p, all_rows, q, q->loaded, at, real);
	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		for (uint32_t h = 0; h < q->rows && q->loaded >> v & 1; h++) {
			const Reg *to = q->value[v][h];
			for (uint32_t i = 0; i < 4; i++)
				ins(e, "mov.f32 $, 0f00000000", to[i]);
			ins(e,
			    memory_of(at[v][h], "@$ ld.shared.v4.f32 {$, $, $, $}, [$]", "@$ ld.global.v4.f32 {$, $, $, $}, [$]"),
			    real[h], to[0], to[1], to[2], to[3], at[v][h]);
		}
}

/* Loads of all rows come first, so that they are under way together. */
void rule_quads(Kernel *k, const RuleNumbers *n, const DevicePanel *p, uint32_t all_rows, RuleQuads *q)
{
	Emit *e = k->e;
	uint32_t stores = formula_uses(k->s->formula, OP_STORE);
	Reg at[2 + MAX_STATE][8], real[8];

	if (p->kind) { /* places differ */
		for (uint32_t h = 0; h < q->rows; h++) {
			Reg row = add(e, q->row, imm(h)), col = op2(e, REG_R, "shl.b32", q->quad, imm(2));
			uint32_t past = if_begin(e, less(e, row, imm(all_rows)));
			for (uint32_t i = 0; i < 4; i++)
				rule_apply(k, n, p, row, add(e, col, imm(i)), add(e, mad(e, row, p->row, col), imm(i)), q->g[h][i]);
			if_end(e, past);
		}
		return;
	}
	mask_columns(e, p, q);
	PlaceNumbers own = q->numbers ? *q->numbers : known_numbers(k, n, &k->s->factor[p->factor]);
	if (!q->loaded) {
		rule_quads_new(k, q);
		rule_quads_load(k, p, all_rows, q);
	}
	quads_places(k, p, all_rows, q, stores, at, real);
	Reg infinite = op2(e, REG_P, "setp.ne.u32", imm(0), imm(0));
	for (uint32_t h = 0; h < q->rows; h++)
		for (uint32_t i = 0; i < 4; i++) {
			Reg variable[2 + MAX_STATE] = { q->g[h][i] };
			for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
				variable[v] = q->value[v][h][i];
			place_values(k, &own, variable);
			for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
				q->value[v][h][i] = variable[v];
			Reg none = op2(e, REG_F, "sub.rn.ftz.f32", variable[1], variable[1]);
			Reg bad = op2(e, REG_P, "and.pred", op2(e, REG_P, "setp.neu.ftz.f32", none, imm_f(0)), real[h]);
			ins(e, "or.pred $, $, $", infinite, infinite, bad);
		}
	for (uint32_t v = 1; v < 2 + MAX_STATE; v++)
		for (uint32_t h = 0; h < q->rows && stores >> v & 1; h++)
			ins(e,
			    memory_of(at[v][h], "@$ st.shared.v4.f32 [$], {$, $, $, $}", "@$ st.global.v4.f32 [$], {$, $, $, $}"),
			    real[h], at[v][h], q->value[v][h][0], q->value[v][h][1], q->value[v][h][2], q->value[v][h][3]);
	infinite_check(k, infinite);
	for (uint32_t h = 0; h < q->rows && p->copy != NO_COPY; h += 4)
		copy_quads(k, p, q, h, (const Reg(*)[4])q->value[1], real, all_rows);
}

/* ---- sums of leaves ---- */

/* A leaf after the other. */
static Reg leaves_sum(Kernel *k, Reg from, uint32_t leaves)
{
	Emit *e = k->e;
	JoinKnown j = { .depth = 0 };

	for (uint32_t n = 0; n < leaves; n++) {
		Reg sum = load(e, REG_F, "ld.global.f32", from, 0);
		from = place_at(e, from, (uint32_t)k->s->job->floats * 4);
		known_add(e, &j, sum);
	}
	return known_end(e, &j);
}

Reg place_sum(Kernel *k, Reg from, Reg leaves)
{
	Emit *e = k->e;
	Reg g = reg(e, REG_F);

	if (k->posts)
		return posted_sum(k, from);
	if (k->s->general)
		return join_leaves(k, from, leaves);
	for (uint32_t i = 0; i < k->s->kinds_of_leaves; i++) {
		uint32_t other = if_begin(e, same(e, leaves, imm(k->s->leaves[i])));
		ins(e, "mov.f32 $, $", g,
		    k->bf16 ? bf16_join(k, from, k->s->leaves[i], k->s->slice[i]) : leaves_sum(k, from, k->s->leaves[i]));
		if_end(e, other);
	}
	return g;
}

/* A warp has 32 adjacent places; warps of different blocks follow each other, so that all blocks have some. Places of a
 * panel begin with the warp after those of the panel before: sums of several take as long as those of one. */
Reg first_place(Kernel *k, uint32_t panel)
{
	Emit *e = k->e;
	Reg warp = op2(e, REG_R, "shr.u32", k->tid, imm(5)), lane = op2(e, REG_R, "and.b32", k->tid, imm(31));
	uint32_t warps = max_u32(k->workers / 32, 1), before = 0, blocks = k->s->teams * k->s->team_blocks;

	for (uint32_t i = 0; i < panel; i++)
		before += (uint32_t)ceil_div(k->s->panel[i].size, 32 * blocks);
	before %= warps;
	if (before)
		warp = op3(e, REG_R, "selp.u32", add(e, warp, imm(warps - before)), op2(e, REG_R, "sub.u32", warp, imm(before)),
		           less(e, warp, imm(before)));
	return mad(e, mad(e, warp, blocks, k->block), 32, lane);
}

uint32_t places_at_once(const Kernel *k) { return k->s->teams * k->s->team_blocks * k->workers; }

static void update_place(Kernel *k, const RuleNumbers *n, const DevicePanel *p, Reg i, Reg leaves, bool pending,
                         const Place *v)
{
	Emit *e = k->e;
	Reg row = divide(e, i, p->row), col = modulo(e, i, p->row, row), g = reg(e, REG_F);
	Reg from = place(e, place_at(e, pending ? POINTER(k, pending) : sums_at(k), p->at * 4), i, 4);
	uint32_t none = k->posts ? if_begin(e, less(e, col, imm(p->cols))) : 0; /* no sum of padding is stored */

	if (pending)
		g = load(e, REG_F, "ld.global.f32", from, 0);
	else
		ins(e, "mov.f32 $, $", g, place_sum(k, from, leaves));
	place_apply(k, n, p, row, col, i, g, v);
	if (k->posts)
		if_end(e, none);
}

static void update_panel(Kernel *k, const RuleNumbers *n, const DevicePanel *p, Reg leaves, bool pending)
{
	uint32_t number = (uint32_t)(p - k->s->panel);
	Loop l = loop_begin(k->e, first_place(k, number), imm((uint32_t)p->size), places_at_once(k));

	update_place(k, n, p, l.i, leaves, pending, NULL);
	loop_end(k->e, &l);
}

/* What is loaded while the sums of other blocks are still to come: a place of each matrix, where threads are enough. */
struct Prepared {
	RuleNumbers numbers;
	struct {
		Place v;
		Reg i, is_mine;
		bool is; /* else the panel is not prepared */
	} panel[PREPARED_PANELS];
};

void update_prepare(Kernel *k)
{
	Emit *e = k->e;
	struct Prepared *o = NEW(&k->s->cx->scratch, 1, struct Prepared);

	k->prepared = o;
	rule_numbers(k, &o->numbers);
	for (uint32_t i = 0; i < min_u32(k->s->job->panels, PREPARED_PANELS); i++) {
		const DevicePanel *p = &k->s->panel[i];
		o->panel[i].is = !p->kind && p->size <= places_at_once(k);
		if (!o->panel[i].is)
			continue;
		Reg at = o->panel[i].i = first_place(k, i);
		o->panel[i].is_mine =
			op2(e, REG_P, "and.pred", less(e, at, imm((uint32_t)p->size)), less(e, k->tid, imm(k->workers)));
		place_load(k, p, at, &o->panel[i].is_mine, &o->panel[i].v);
	}
}

void update_joined(Kernel *k, Reg leaves, bool pending)
{
	const struct Prepared *o = k->prepared;
	RuleNumbers n;

	remark(k->e, "sums of leaves, and the rule");
	if (o)
		n = o->numbers;
	else
		rule_numbers(k, &n);
	for (uint32_t i = 0; i < k->s->job->panels; i++) {
		const DevicePanel *p = &k->s->panel[i];
		if (!o || i >= PREPARED_PANELS || !o->panel[i].is) {
			update_panel(k, &n, p, leaves, pending);
			continue;
		}
		uint32_t end = if_begin(k->e, o->panel[i].is_mine);
		update_place(k, &n, p, o->panel[i].i, leaves, pending, &o->panel[i].v);
		if_end(k->e, end);
	}
	k->prepared = NULL;
}

/* ---- bf16: sums of leaves by several warps ---- */

/* Eight leaves are a subtree of the tree of leaves. A warp adds those of 32 places, another one the next eight; sums of
 * subtrees meet in shared memory, where one of these warps joins them and applies the rule. */
enum { PART_LEAVES = 8, ROUNDS_AHEAD = 2 };

static uint32_t parts_of(uint32_t leaves) { return (uint32_t)ceil_div(leaves, PART_LEAVES); }

typedef struct Parts {
	uint32_t parts, strips, rounds; /* strips: of 32 places, that a block has at a time */
	Reg part, strip, lane;          /* of the warp; strip: its number in the block */
} Parts;

static Parts parts_find(Kernel *k)
{
	Emit *e = k->e;
	uint32_t most = 1, warps = k->workers / 32, blocks = k->s->teams * k->s->team_blocks;

	for (uint32_t i = 0; i < k->s->kinds_of_leaves; i++)
		most = max_u32(most, parts_of(k->s->leaves[i]));
	Parts p = { .parts = min_u32(most, warps) };
	p.strips = warps / p.parts;
	p.rounds = (uint32_t)ceil_div(ceil_div(k->s->job->floats, 32), p.strips * blocks);
	p.part = divide(e, k->bf16->warp, p.strips);
	p.strip = modulo(e, k->bf16->warp, p.strips, p.part);
	p.lane = k->bf16->lane;
	return p;
}

static Reg part_place(Kernel *k, const Parts *p, uint32_t round)
{
	uint32_t blocks = k->s->teams * k->s->team_blocks;
	Reg strip = add(k->e, p->strip, imm(round * p->strips));

	return mad(k->e, mad(k->e, strip, blocks, k->block), 32, p->lane);
}

/* What the rule needs of its place, before sums are there. */
struct PartsAhead {
	Parts p;
	RuleNumbers numbers;
	Place v[ROUNDS_AHEAD][PREPARED_PANELS];
};

bool update_in_parts(const Kernel *k)
{
	const EmitSource *s = k->s;
	bool plain = s->job->panels <= PREPARED_PANELS && !needs_pending(s) && k->workers >= 32;

	for (uint32_t i = 0; i < s->job->panels; i++)
		plain &= !s->panel[i].kind;
	for (uint32_t i = 0; i < s->kinds_of_leaves; i++)
		plain &= parts_of(s->leaves[i]) <= k->workers / 32;
	return plain;
}

uint32_t parts_bytes(const Kernel *k) { return k->workers * 4; }

struct PartsAhead *parts_prepare(Kernel *k)
{
	Emit *e = k->e;
	struct PartsAhead *o = NEW(&k->s->cx->scratch, 1, struct PartsAhead);

	rule_numbers(k, &o->numbers);
	o->p = parts_find(k);
	Reg leads = same(e, o->p.part, imm(0));
	for (uint32_t round = 0; round < min_u32(o->p.rounds, ROUNDS_AHEAD); round++) {
		Reg i = part_place(k, &o->p, round);
		for (uint32_t n = 0; n < k->s->job->panels; n++) {
			const DevicePanel *p = &k->s->panel[n];
			Reg own = add(e, i, imm(0u - (uint32_t)p->at)), is = less(e, own, imm((uint32_t)p->size));
			Reg mine = op2(e, REG_P, "and.pred", is, leads);
			place_load(k, p, own, &mine, &o->v[round][n]);
		}
	}
	return o;
}

/* Sum of the leaves of a part, for each kind of update. */
static Reg part_sum(Kernel *k, const Parts *p, Reg from, Reg leaves)
{
	Emit *e = k->e;
	Reg g = zero_float(e);

	for (uint32_t i = 0; i < k->s->kinds_of_leaves; i++) {
		uint32_t other = if_begin(e, same(e, leaves, imm(k->s->leaves[i]))), all = k->s->leaves[i];
		for (uint32_t part = 0; part < parts_of(all); part++) {
			bool last = part + 1 == parts_of(all), full = all % PART_LEAVES == 0;
			if (part && !(last && !full)) /* as the first */
				continue;
			uint32_t count = min_u32(PART_LEAVES, all - part * PART_LEAVES), end = parts_of(all) - (full ? 0 : 1);
			Reg mine = part || (!part && end == 0) ? same(e, p->part, imm(part)) : less(e, p->part, imm(end));
			uint32_t none = if_begin(e, mine);
			Reg first = place(e, from, p->part, (uint32_t)(PART_LEAVES * BF16_SLICES * k->s->job->floats * 4));
			ins(e, "mov.f32 $, $", g, bf16_join(k, first, count, k->s->slice[i]));
			if_end(e, none);
		}
		if_end(e, other);
	}
	return g;
}

static Reg parts_total(Kernel *k, Reg at, uint32_t pitch, Reg leaves)
{
	Emit *e = k->e;
	Reg g = reg(e, REG_F);

	for (uint32_t i = 0; i < k->s->kinds_of_leaves; i++) {
		uint32_t other = if_begin(e, same(e, leaves, imm(k->s->leaves[i])));
		JoinKnown j = { .depth = 0 };
		for (uint32_t n = 0; n < parts_of(k->s->leaves[i]); n++)
			known_add(e, &j, load(e, REG_F, "ld.shared.f32", at, n * pitch));
		ins(e, "mov.f32 $, $", g, known_end(e, &j));
		if_end(e, other);
	}
	return g;
}

/* The rule, for a place of some panel. */
static void part_apply(Kernel *k, const struct PartsAhead *o, uint32_t round, Reg i, Reg g)
{
	Emit *e = k->e;

	for (uint32_t n = 0; n < k->s->job->panels; n++) {
		const DevicePanel *q = &k->s->panel[n];
		Reg own = add(e, i, imm(0u - (uint32_t)q->at));
		uint32_t outside = if_begin(e, less(e, own, imm((uint32_t)q->size)));
		Reg row = divide(e, own, q->row), col = modulo(e, own, q->row, row);
		place_apply(k, &o->numbers, q, row, col, own, g, round < ROUNDS_AHEAD ? &o->v[round][n] : NULL);
		if_end(e, outside);
	}
}

static Reg part_begin(Kernel *k, const struct PartsAhead *o, Reg i, Reg leaves)
{
	Emit *e = k->e;
	Reg g = zero_float(e);
	uint32_t none = if_begin(e, less(e, i, imm((uint32_t)k->s->job->floats)));

	ins(e, "mov.f32 $, $", g, part_sum(k, &o->p, place(e, POINTER(k, sum), i, 4), leaves));
	if_end(e, none);
	return g;
}

/* By the workers. at: bytes in shared memory, parts_bytes. Sums of some rounds are formed before the first rule is
 * applied, so that loads are under way together. */
void update_parts(Kernel *k, struct PartsAhead *o, uint32_t at, Reg leaves)
{
	Emit *e = k->e;
	const Parts *p = &o->p;
	uint32_t pitch = p->strips * 128, together = p->parts > 1 ? 1 : ROUNDS_AHEAD;
	Reg here = mad(e, p->strip, 128, mad(e, p->lane, 4, k->memory)), i[ROUNDS_AHEAD], g[ROUNDS_AHEAD];

	remark(e, "sums of leaves by %u warps, and the rule", p->parts);
	for (uint32_t first = 0; first < p->rounds; first += together) {
		uint32_t some = min_u32(together, p->rounds - first);
		for (uint32_t n = 0; n < some; n++)
			g[n] = part_begin(k, o, i[n] = part_place(k, p, first + n), leaves);
		if (p->parts > 1) {
			ins(e, "st.shared.f32 [$+#], $", mad(e, p->part, pitch, here), at, g[0]);
			workers_barrier(k);
		}
		uint32_t other = if_begin(e, same(e, p->part, imm(0)));
		if (p->parts > 1)
			g[0] = parts_total(k, add(e, here, imm(at)), pitch, leaves);
		for (uint32_t n = 0; n < some; n++)
			part_apply(k, o, first + n, i[n], g[n]);
		if_end(e, other);
		if (p->parts > 1 && first + 1 < p->rounds)
			workers_barrier(k);
	}
}
