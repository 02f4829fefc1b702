/* SPDX-License-Identifier: MIT */
/* The update rule as microcode. In: the formula of rules.def, and what the network needs of it: decay, factors,
 * frozen weights. Out: the code of one weight, recorded once; routines record it again for each of their weights.
 *
 *   fma         a product and a sum, each rounded
 *   a / b       a times the reciprocal of b: table and two steps (mathlib.c); see quotient() for its ends
 *   sqrt        a guess from the bits and three steps
 *   min, max, ?: and sign   comparison and select (section 4.3)
 *
 * What is the same for all weights (rate, mu / (1 + mu), ...) the host works out, in double, and writes behind the
 * tables. Where weights have factors the rate is not: it is a product in each.
 *
 * What must hold: words of the weight are loaded again for each use, and compared again for each select, so that
 * few registers and condition codes are held while others wait; all stores come last. */
#include <assert.h>
#include <math.h>

#include "gf11_sum.h"

enum { HIDDEN_BIT = 0x00800000, ROOT_GUESS = 0x5f3759df, ROOT_STEPS = 3 };
#define HUGE_DIVISOR 0x1p126f

typedef struct Fixed {
	uint32_t bits;
	Reg reg;
} Fixed; /* a constant in a register */
typedef struct Writer {
	const Bp *b;
	SumRule *r;
	Gen *g;
	Constants constants;
	Reg value[MAX_OPS];
	bool there[MAX_OPS];
	Reg word[SUM_UNIFORMS];
	Fixed fixed[16];
	uint32_t fixeds;
	Reg zero, sign; /* for the mask of frozen weights */
	const bool *masked;
	uint32_t selects; /* by a mask, in the order they are written; NULL: none */
} Writer;

static const Op *op_at(const Writer *w, uint32_t i) { return &w->r->formula.op[i]; }

/* ---- what is the same for all weights ---- */

static int operands(const Op *o)
{
	switch (o->op) {
	case OP_CONST:
	case OP_PARAM:
	case OP_LOAD: return 0;
	case OP_NEG:
	case OP_ABS:
	case OP_SQRT: return 1;
	case OP_FMA:
	case OP_SELECT: return 3;
	default: return 2;
	}
}

static void uniforms_find(const Bp *b, SumRule *r)
{
	for (uint32_t i = 0; i < r->formula.ops; i++) {
		const Op *o = &r->formula.op[i];
		const uint8_t from[] = { o->a, o->b, o->c };
		r->uniform[i] = o->op != OP_LOAD && o->op != OP_STORE && !(o->op == OP_PARAM && o->a == P_RATE && b->factor);
		r->fixed[i] = r->uniform[i] && o->op != OP_PARAM;
		for (int k = 0; r->uniform[i] && k < operands(o); k++) {
			r->uniform[i] &= r->uniform[from[k]];
			r->fixed[i] &= r->fixed[from[k]];
		}
	}
}

static double uniform_value(const SumRule *r, const Update *u, uint32_t i)
{
	const Op *o = &r->formula.op[i];
	const uint8_t from[] = { o->a, o->b, o->c };
	double v[3] = { 0 };
	const int count = operands(o);
	assert(count <= (int)COUNT(from));
	for (int k = 0; k < count; k++)
		v[k] = uniform_value(r, u, from[k]);
	switch (o->op) {
	case OP_CONST: return o->value;
	case OP_PARAM: return u ? u->param[o->a] : 0;
	case OP_ADD: return v[0] + v[1];
	case OP_SUB: return v[0] - v[1];
	case OP_MUL: return v[0] * v[1];
	case OP_DIV: return v[0] / v[1];
	case OP_FMA: return fma(v[0], v[1], v[2]);
	case OP_NEG: return -v[0];
	case OP_ABS: return fabs(v[0]);
	case OP_SQRT: return sqrt(v[0]);
	case OP_MIN: return v[0] < v[1] ? v[0] : v[1];
	case OP_MAX: return v[0] > v[1] ? v[0] : v[1];
	case OP_LT: return v[0] < v[1];
	case OP_LE: return v[0] <= v[1];
	default: return v[0] != 0 ? v[1] : v[2];
	}
}

void rule_words(const SumRule *r, const Update *u, Cell *word)
{
	for (uint32_t i = 0; i < r->words; i++)
		word[i] = (Cell){ .f = (float)uniform_value(r, u, r->word[i]) };
}

static Reg fixed_bits(Writer *w, uint32_t bits)
{
	for (uint32_t i = 0; i < w->fixeds; i++)
		if (w->fixed[i].bits == bits)
			return w->fixed[i].reg;
	Reg reg = g_const_bits(w->g, bits);
	if (w->fixeds < COUNT(w->fixed))
		w->fixed[w->fixeds++] = (Fixed){ bits, reg };
	return reg;
}

static Reg fixed_value(Writer *w, float value) { return fixed_bits(w, ((Cell){ .f = value }).u); }

/* The word that holds op i for all weights. */
static Reg uniform_word(Writer *w, uint32_t i)
{
	SumRule *r = w->r;
	uint32_t k = 0;
	while (k < r->words && r->word[k] != i)
		k++;
	if (k < r->words)
		return w->word[k];
	if (k == SUM_UNIFORMS)
		fail(w->b->cx, MP_FAILED, "raise SUM_UNIFORMS in target/gf11/sum/gf11_sum.h",
		     "rule %s has more than %d numbers of its update", r->rule->name, SUM_UNIFORMS);
	r->word[r->words++] = (uint8_t)i;
	return w->word[k] = g_load(w->g, sum_word(WORD_RULE + k));
}

/* Parameters that the code takes as they are, in the order of their names. */
static void params_load(Writer *w)
{
	const SumRule *r = w->r;
	for (uint32_t p = 0; p < P_COUNT; p++)
		for (uint32_t i = 0; i < r->formula.ops; i++) {
			const Op *o = op_at(w, i);
			bool used = false;
			for (uint32_t k = i + 1; k < r->formula.ops; k++) {
				const Op *by = op_at(w, k);
				const uint8_t from[] = { by->a, by->b, by->c };
				for (int n = 0; n < operands(by) && !r->uniform[k]; n++)
					used |= by->op != OP_STORE && from[n] == i;
			}
			if (o->op == OP_PARAM && o->a == p && used && !(p == P_DECAY && !(w->b->decay > 0)))
				uniform_word(w, i);
		}
}

/* ---- operations ---- */

static Reg value(Writer *w, uint32_t i);

/* a where the condition holds, else b. Condition codes are few: where one would wait for a or b it becomes a mask,
 * all ones or zero, in a register. */
static Reg select_by(Writer *w, Cond condition, Reg a, Reg b)
{
	Gen *g = w->g;
	if (!w->masked || !w->masked[w->selects++])
		return g_select(g, condition, a, b);
	Reg zero = fixed_bits(w, 0), ones = fixed_bits(w, UINT32_MAX);
	if (a == zero)
		return g_op(g, GOP_AND, b, g_select(g, condition, zero, ones));
	Reg mask = g_select(g, condition, ones, zero);
	if (b == zero)
		return g_op(g, GOP_AND, a, mask);
	Reg differ = g_op(g, GOP_XOR, a, b);
	return g_op(g, GOP_XOR, b, g_op(g, GOP_AND, differ, mask));
}

/* Divisors nearer to zero than any normal number count as the normal one with the same fraction, those of 2^126 and
 * more as infinite; no number stays none. */
static Reg quotient(Writer *w, Reg a, Reg b)
{
	Gen *g = w->g;
	Reg low = fixed_value(w, 0x1p-126f), high = fixed_value(w, HUGE_DIVISOR), hidden = fixed_bits(w, HIDDEN_BIT);
	Reg zero = fixed_bits(w, 0), raised = g_op(g, GOP_OR, b, hidden), size = g_op(g, GOP_FABS, b, 0);
	Cond tiny = g_compare(g, GOP_FLT_LT, size, low);
	Reg divisor = select_by(w, tiny, raised, b);
	Reg r = reciprocal(&w->constants, divisor);
	Cond huge = g_compare(g, GOP_FLT_LE, high, g_op(g, GOP_FABS, b, 0));
	return g_fmul(g, a, select_by(w, huge, zero, r));
}

/* x r with r near 1 / sqrt(x), r (3 - x r r) / 2 being nearer; zero gives zero. x is zero or more; numbers below
 * the normal ones give less than they should, infinity gives no number. */
static Reg square_root(Writer *w, Reg x)
{
	Gen *g = w->g;
	Reg one = fixed_bits(w, 1), guess = fixed_bits(w, ROOT_GUESS);
	Reg half = fixed_value(w, 0.5f), more = fixed_value(w, 1.5f);
	Reg r = g_op(g, GOP_ISUB, guess, g_op(g, GOP_SHR, x, one)), low = g_fmul(g, half, x);
	for (int i = 0; i < ROOT_STEPS; i++)
		r = g_fmul(g, r, g_fsub(g, more, g_fmul(g, g_fmul(g, low, r), r)));
	return g_fmul(g, x, r);
}

/* Product first: what waits for the total comes later. */
static Reg fused(Writer *w, const Op *o)
{
	const Op *c = op_at(w, o->c);
	if (op_at(w, o->a)->op == OP_PARAM && op_at(w, o->a)->a == P_DECAY && !(w->b->decay > 0))
		return value(w, o->c);
	Reg y = value(w, o->b), x = value(w, o->a), product = g_fmul(w->g, x, y);
	if (c->op == OP_NEG && !w->r->uniform[o->c])
		return g_fsub(w->g, product, value(w, c->a));
	return g_fadd(w->g, value(w, o->c), product);
}

static bool compares(int op) { return op == OP_LT || op == OP_LE; }

/* a where the condition holds, else b. */
static Reg chosen(Writer *w, uint32_t condition, Reg a, Reg b)
{
	const Op *o = op_at(w, condition);
	if (!compares(o->op) || w->r->uniform[condition]) {
		Reg given = value(w, condition), zero = fixed_bits(w, 0);
		Cond none = g_compare(w->g, GOP_FLT_EQ, given, zero);
		return select_by(w, none, b, a);
	}
	Reg x = value(w, o->a), y = value(w, o->b);
	Cond holds = g_compare(w->g, o->op == OP_LT ? GOP_FLT_LT : GOP_FLT_LE, x, y);
	return select_by(w, holds, a, b);
}

static Reg smaller(Writer *w, const Op *o, bool larger)
{
	Reg a = value(w, o->a), b = value(w, o->b);
	Cond first = larger ? g_compare(w->g, GOP_FLT_LT, b, a) : g_compare(w->g, GOP_FLT_LT, a, b);
	return select_by(w, first, a, b);
}

static Reg binary(Writer *w, const Op *o)
{
	static const uint8_t gop[OP_COUNT] = { [OP_ADD] = GOP_FADD, [OP_SUB] = GOP_FSUB, [OP_MUL] = GOP_FMUL };
	Reg b = value(w, o->b), a = value(w, o->a);
	return o->op == OP_DIV ? quotient(w, a, b) : g_op(w->g, gop[o->op], a, b);
}

static Reg own_rate(Writer *w, uint32_t i)
{
	Reg rate = uniform_word(w, i);
	return g_fmul(w->g, rate, g_load(w->g, (Addr){ RULE_PLACE, RULE_FACTOR }));
}

static Reg operation(Writer *w, uint32_t i)
{
	const Op *o = op_at(w, i);
	switch (o->op) {
	case OP_PARAM: return own_rate(w, i);
	case OP_FMA: return fused(w, o);
	case OP_NEG: return g_op(w->g, GOP_FNEG, value(w, o->a), 0);
	case OP_ABS: return g_op(w->g, GOP_FABS, value(w, o->a), 0);
	case OP_SQRT: return square_root(w, value(w, o->a));
	case OP_MIN: return smaller(w, o, false);
	case OP_MAX: return smaller(w, o, true);
	case OP_LT:
	case OP_LE: {
		Reg one = fixed_value(w, 1), zero = fixed_bits(w, 0);
		return chosen(w, i, one, zero);
	}
	case OP_SELECT: {
		Reg no = value(w, o->c), yes = value(w, o->b);
		return chosen(w, o->a, yes, no);
	}
	default: return binary(w, o);
	}
}

static Reg value(Writer *w, uint32_t i)
{
	const Op *o = op_at(w, i);
	if (w->r->fixed[i])
		return fixed_value(w, (float)uniform_value(w->r, NULL, i));
	if (w->r->uniform[i])
		return uniform_word(w, i);
	if (o->op == OP_LOAD && o->a)
		return g_load(w->g, (Addr){ RULE_PLACE, o->a });
	if (!w->there[i])
		w->value[i] = o->op == OP_LOAD ? w->r->total : operation(w, i);
	w->there[i] = true;
	return w->value[i];
}

/* ---- the end: what is stored ---- */

/* The word there where the mask is all ones, else the new one. */
static Reg stays(Gen *g, Reg mask, Addr old, Reg new)
{
	Reg differ = g_op(g, GOP_XOR, new, g_load(g, old));
	return g_op(g, GOP_XOR, new, g_op(g, GOP_AND, differ, mask));
}

/* Frozen weights stay, by a mask made of the factor's sign: condition codes are few, and comparisons that run ahead
 * would take them all. last: new value of each variable of the formula. */
static void keep(Writer *w, Reg *last)
{
	uint32_t states = (uint32_t)w->r->rule->states;
	Gen *g = w->g;
	w->r->keeps = UINT32_MAX;
	if (w->b->summing->frozen) {
		w->r->keeps = g_load(g, (Addr){ RULE_PLACE, RULE_FACTOR });
		Reg mask = g_op(g, GOP_ISUB, w->zero, g_op(g, GOP_SHR, w->r->keeps, w->sign));
		for (uint32_t k = 0; k <= states; k++) {
			uint32_t v = k < states ? k + 2 : 1; /* states, then the weight */
			last[v] = stays(g, mask, (Addr){ RULE_PLACE, v }, last[v]);
		}
	}
	for (uint32_t k = 0; k <= states; k++) {
		uint32_t v = k < states ? k + 2 : 1;
		g_store(g, (Addr){ RULE_PLACE, v }, last[v]);
	}
}

/* ---- the whole ---- */

static void rule_write(const Bp *b, SumRule *r, const bool *masked)
{
	Writer w = { .b = b, .r = r, .g = gen_record(b->cx, b->m, b->rule->name), .masked = masked };
	Reg last[2 + MAX_STATE] = { 0 };
	uint32_t stored = 0;
	r->words = 0;
	w.constants.g = w.g;
	r->total = g_load(w.g, (Addr){ RULE_PLACE, 0 });
	params_load(&w);
	if (b->summing->frozen) {
		w.zero = g_load(w.g, sum_word(WORD_ZERO));
		w.sign = g_const_bits(w.g, 31);
	}
	for (uint32_t i = 0; i < r->formula.ops; i++) {
		const Op *o = op_at(&w, i);
		if (o->op != OP_STORE)
			continue;
		last[o->a] = value(&w, o->b);
		stored |= 1u << o->a;
	}
	assert(stored == (4u << b->rule->states) - 2); /* the weight and each state get a value in every rule */
	keep(&w, last);
	r->code = gen_end(w.g);
}

/* Written twice: how long each condition waits shows when all is written. */
SumRule *rule_make(const Bp *b)
{
	SumRule *r = NEW(&b->cx->keep, 1, SumRule);
	r->rule = b->rule;
	formula_parse(b->cx, b->rule, &r->formula);
	uniforms_find(b, r);
	rule_write(b, r, NULL);
	const bool *masked = rule_waits(b, r);
	if (masked)
		rule_write(b, r, masked);
	rule_plan(b, r);
	return r;
}
