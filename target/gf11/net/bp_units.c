/* SPDX-License-Identifier: MIT */
/* Routines of the units, for one case or some: outputs from net inputs, errors of the outputs, errors with respect to
 * the net inputs from those with respect to the outputs.
 * In: some units of one level.  Out: recorded code whose addresses start from the first of them.
 *
 * A unit's net input and its error share a word: once the output is there the net input is not needed, but for the
 * slope of gaussian units, which is kept in a word of its own.  What must hold: a missing target (NaN) is replaced by
 * select before it enters a sum. */
#include "gf11_net.h"

#define LOG2_E 1.44269504088896340736f
#define LN_2   0.69314718055994530942f

typedef struct Maker {
	const Bp *b;
	const BpChunk *k;
	Constants c;
	Reg number[8];
	float value[8];
	uint32_t numbers; /* constants of the microword made so far */
	uint32_t i;       /* case at hand */
	uint32_t slopes;
} Maker;

static Addr at(uint16_t base, uint32_t off) { return (Addr){ base, off }; }

static Reg number(Maker *m, float value)
{
	for (uint32_t i = 0; i < m->numbers; i++)
		if (m->value[i] == value)
			return m->number[i];
	m->value[m->numbers] = value;
	return m->number[m->numbers++] = g_const(m->c.g, value);
}

/* Word f, counted from where the relocation register points, of the case at hand. */
static Addr word(const Maker *m, uint16_t base, uint32_t f)
{
	return at(base, f * m->b->at.stride + m->i * m->b->at.case_step);
}

static Addr net_of(const Maker *m, const BpUnit *u)
{
	return word(m, BP_NET, m->b->net_word[u->unit] - m->b->net_word[m->k->first]);
}

static Addr out_of(const Maker *m, const BpUnit *u) { return word(m, BP_OUT, u->unit - m->k->first); }

static Addr target_of(const Maker *m, const BpUnit *u)
{
	return word(m, BP_CASE, m->b->at.case_target + (uint32_t)u->output);
}

/* ---- outputs ---- */

static Reg sigmoid(Maker *m, Reg x)
{
	if (m->b->o.sigmoid == SIGMOID_TABLE)
		return sigmoid_by_table(&m->c, x);
	Reg scale = number(m, LOG2_E);
	return sigmoid_by_powers(&m->c, g_fmul(m->c.g, x, scale));
}

/* e^x for x <= 0. */
static Reg power(Maker *m, Reg x)
{
	Gen *g = m->c.g;
	Reg low = constant(&m->c, K_POWER_LOW), y = g_fmul(g, x, number(m, LOG2_E));
	Cond below = g_compare(g, GOP_FLT_LT, y, low);
	return power_of_two(&m->c, g_select(g, below, low, y));
}

/* 2 s(2 x) - 1 */
static Reg tanh_of(Maker *m, Reg x)
{
	Gen *g = m->c.g;
	Reg s = sigmoid(m, g_fadd(g, x, x)), one = constant(&m->c, K_ONE);
	return g_fsub(g, g_fadd(g, s, s), one);
}

static Reg relu_of(Maker *m, Reg x)
{
	Reg zero = constant(&m->c, K_ZERO);
	Cond negative = g_compare(m->c.g, GOP_FLT_LE, x, zero);
	return g_select(m->c.g, negative, zero, x);
}

/* -2 x e^(-x^2) goes to the unit's slope word. */
static Reg gaussian_of(Maker *m, Reg x)
{
	Gen *g = m->c.g;
	Reg square = g_fmul(g, x, x), value = power(m, g_op(g, GOP_FNEG, square, 0));
	Reg twice = g_op(g, GOP_FNEG, g_fadd(g, x, x), 0);
	g_store(g, word(m, BP_SLOPE, m->slopes++), g_fmul(g, twice, value));
	return value;
}

static Reg linear_of(Maker *m, Reg x)
{
	(void)m;
	return x;
}
static Reg sigmoid2_of(Maker *m, Reg x) { return sigmoid_by_powers(&m->c, x); }

static Reg (*const value_of[FN_COUNT])(Maker *m, Reg x) = {
	[FN_SIGMOID] = sigmoid, [FN_TANH] = tanh_of,         [FN_LINEAR] = linear_of,
	[FN_RELU] = relu_of,    [FN_GAUSSIAN] = gaussian_of, [FN_SIGMOID2] = sigmoid2_of,
};

static Reg net_input(Maker *m, const BpUnit *u)
{
	return u->linked ? g_load(m->c.g, net_of(m, u)) : constant(&m->c, K_ZERO);
}

/* A sum over all units of a group: of one case it would be a chain as long as the group (section 10.3). */
static Tree group_sum(const Maker *m) { return (Tree){ .chain = m->b->o.small == SMALL_STRAIGHT }; }

static Reg larger(Gen *g, Reg a, Reg b)
{
	Cond less = g_compare(g, GOP_FLT_LT, a, b);
	return g_select(g, less, b, a);
}

/* The largest net input is taken off first, as everywhere.  Powers pass through the units' output words: a group may be
 * larger than the register file. */
static void softmax_of(Maker *m)
{
	Gen *g = m->c.g;
	const BpUnit *unit = m->k->unit;
	uint32_t units = m->k->units;
	Tree most = group_sum(m), total = group_sum(m);
	most.join = larger;
	for (uint32_t i = 0; i < units; i++)
		tree_add(g, &most, net_input(m, &unit[i]));
	Reg largest = tree_end(g, &most);
	for (uint32_t i = 0; i < units; i++) {
		Reg x = net_input(m, &unit[i]), e = power(m, g_fsub(g, x, largest));
		tree_add(g, &total, e);
		g_store(g, out_of(m, &unit[i]), e);
	}
	Reg part = reciprocal(&m->c, tree_end(g, &total));
	for (uint32_t i = 0; i < units; i++)
		g_store(g, out_of(m, &unit[i]), g_fmul(g, g_load(g, out_of(m, &unit[i])), part));
}

static void activate_case(Maker *m)
{
	Gen *g = m->c.g;
	const BpChunk *k = m->k;
	if (k->unit[0].fn == FN_SOFTMAX)
		softmax_of(m);
	else
		for (uint32_t i = 0; i < k->units; i++) {
			Reg x = net_input(m, &k->unit[i]);
			g_store(g, out_of(m, &k->unit[i]), value_of[k->unit[i].fn](m, x));
		}
	for (uint32_t i = 0; i < k->units; i++)
		g_store(g, net_of(m, &k->unit[i]), constant(&m->c, K_ZERO));
}

/* Outputs; errors start at zero. */
Code *record_activate(const Bp *b, const BpChunk *k, uint32_t cases)
{
	Maker m = { .b = b, .k = k, .c.g = gen_record(b->cx, b->m, "activate") };
	for (m.i = 0; m.i < cases; m.i++, m.slopes = 0)
		activate_case(&m);
	return gen_end(m.c.g);
}

/* ---- errors of the outputs ---- */

/* Output minus target, zero where there is no target. */
static Reg difference(Maker *m, const BpUnit *u)
{
	Gen *g = m->c.g;
	Reg target = g_load(g, target_of(m, u));
	Reg out = g_load(g, word(m, BP_CASE, m->b->at.case_out + u->unit)), zero = constant(&m->c, K_ZERO);
	Cond there = g_compare(g, GOP_FLT_EQ, target, target);
	return g_select(g, there, g_fsub(g, out, target), zero);
}

/* Sum of the targets that are there, of a softmax group. */
static Reg target_total(Maker *m, const BpUnit *unit, uint32_t units)
{
	Gen *g = m->c.g;
	Reg zero = constant(&m->c, K_ZERO);
	Tree total = group_sum(m);
	tree_add(g, &total, zero);
	for (uint32_t i = 0; i < units; i++) {
		Reg target = g_load(g, target_of(m, &unit[i]));
		Cond there = g_compare(g, GOP_FLT_EQ, target, target);
		tree_add(g, &total, g_select(g, there, target, zero));
	}
	return tree_end(g, &total);
}

/* What a matched error function leaves, before the weight of the case. */
static Reg direct_error(Maker *m, const BpUnit *u, Reg total)
{
	Gen *g = m->c.g;
	if (u->fn == FN_SIGMOID2)
		return g_fmul(g, difference(m, u), number(m, LN_2));
	if (u->fn != FN_SOFTMAX)
		return difference(m, u);
	Reg target = g_load(g, target_of(m, u));
	Reg out = g_load(g, word(m, BP_CASE, m->b->at.case_out + u->unit)), zero = constant(&m->c, K_ZERO);
	Cond there = g_compare(g, GOP_FLT_EQ, target, target);
	Reg wanted = g_select(g, there, target, zero);
	return g_fsub(g, g_fmul(g, out, total), wanted);
}

enum { LANES_OF_SUM = 16 }; /* sums of squares side by side, to fill the pipeline (section 10.3) */

/* Errors of some outputs; returns the sum of the squares of all differences. */
static Reg output_error_case(Maker *m, const BpUnit *unit, uint32_t units)
{
	Gen *g = m->c.g;
	const Layout *l = &m->b->at;
	bool softmax = unit[0].fn == FN_SOFTMAX && unit[0].direct;
	Reg weight = g_load(g, word(m, BP_CASE, l->case_weight)), sum[LANES_OF_SUM];
	Reg total = softmax ? target_total(m, unit, units) : 0;
	for (uint32_t i = 0; i < units; i++) {
		Reg d = difference(m, &unit[i]), error = g_fmul(g, d, weight);
		Reg square = g_fmul(g, error, d);
		sum[i % LANES_OF_SUM] = i < LANES_OF_SUM ? square : g_fadd(g, sum[i % LANES_OF_SUM], square);
		if (unit[i].final && (softmax || unit[i].fn == FN_SIGMOID2))
			error = g_fmul(g, direct_error(m, &unit[i], total), weight);
		if (unit[i].final || !unit[i].direct)
			g_store(g, word(m, BP_CASE, l->case_net + m->b->net_word[unit[i].unit]), error);
	}
	return sum_tree(g, sum, units < LANES_OF_SUM ? units : LANES_OF_SUM);
}

/* Half the squares are added to the processor's total. */
Code *record_output_error(const Bp *b, const BpUnit *unit, uint32_t units, uint32_t cases)
{
	Maker m = { .b = b, .c.g = gen_record(b->cx, b->m, "output error") };
	Gen *g = m.c.g;
	Reg half = constant(&m.c, K_HALF), total = g_load(g, at(0, b->at.total));
	for (m.i = 0; m.i < cases; m.i++)
		total = g_fadd(g, total, g_fmul(g, half, output_error_case(&m, unit, units)));
	g_store(g, at(0, b->at.total), total);
	return gen_end(g);
}

/* ---- errors with respect to the net inputs ---- */

static Reg logistic_slope(Maker *m, Reg out)
{
	Reg one = constant(&m->c, K_ONE);
	return g_fmul(m->c.g, out, g_fsub(m->c.g, one, out));
}

static Reg slope_sigmoid(Maker *m, Reg out)
{
	float offset = (float)m->b->opt->prime_offset;
	Reg slope = logistic_slope(m, out);
	return offset > 0 ? g_fadd(m->c.g, slope, number(m, offset)) : slope;
}

static Reg slope_sigmoid2(Maker *m, Reg out)
{
	Reg slope = logistic_slope(m, out);
	return g_fmul(m->c.g, slope, number(m, LN_2));
}

static Reg slope_tanh(Maker *m, Reg out)
{
	Reg one = constant(&m->c, K_ONE);
	return g_fsub(m->c.g, one, g_fmul(m->c.g, out, out));
}

static Reg slope_relu(Maker *m, Reg out)
{
	Reg zero = constant(&m->c, K_ZERO), one = constant(&m->c, K_ONE);
	Cond on = g_compare(m->c.g, GOP_FLT_LT, zero, out);
	return g_select(m->c.g, on, one, zero);
}

static Reg slope_gaussian(Maker *m, Reg out)
{
	(void)out;
	return g_load(m->c.g, word(m, BP_SLOPE, m->slopes++));
}

static Reg (*const slope_of[FN_COUNT])(Maker *m, Reg out) = {
	[FN_SIGMOID] = slope_sigmoid,   [FN_TANH] = slope_tanh,         [FN_RELU] = slope_relu,
	[FN_GAUSSIAN] = slope_gaussian, [FN_SIGMOID2] = slope_sigmoid2,
};

/* Plus what a matched error function leaves. */
static void delta_store(Maker *m, const BpUnit *u, Reg delta, Reg total)
{
	Gen *g = m->c.g;
	if (u->direct) {
		Reg direct = direct_error(m, u, total), weight = g_load(g, word(m, BP_CASE, m->b->at.case_weight));
		delta = g_fadd(g, delta, g_fmul(g, direct, weight));
	}
	g_store(g, net_of(m, u), delta);
}

static void softmax_error(Maker *m)
{
	Gen *g = m->c.g;
	const BpChunk *k = m->k;
	Reg total = k->unit[0].direct ? target_total(m, k->unit, k->units) : 0;
	Tree products = group_sum(m);
	for (uint32_t i = 0; i < k->units; i++) {
		Reg out = g_load(g, out_of(m, &k->unit[i])), error = g_load(g, net_of(m, &k->unit[i]));
		tree_add(g, &products, g_fmul(g, out, error));
	}
	Reg mean = tree_end(g, &products);
	for (uint32_t i = 0; i < k->units; i++) {
		Reg out = g_load(g, out_of(m, &k->unit[i])), error = g_load(g, net_of(m, &k->unit[i]));
		delta_store(m, &k->unit[i], g_fmul(g, out, g_fsub(g, error, mean)), total);
	}
}

static void unit_error_case(Maker *m)
{
	Gen *g = m->c.g;
	const BpChunk *k = m->k;
	bool softmax = k->unit[0].fn == FN_SOFTMAX;
	if (softmax && !k->unit[0].final)
		softmax_error(m);
	for (uint32_t i = 0; !softmax && i < k->units; i++) {
		const BpUnit *u = &k->unit[i];
		if (u->final || (u->fn == FN_LINEAR && !u->direct))
			continue;
		Reg error = g_load(g, net_of(m, u));
		if (slope_of[u->fn])
			error = g_fmul(g, error, slope_of[u->fn](m, g_load(g, out_of(m, u))));
		delta_store(m, u, error, 0);
	}
}

Code *record_unit_error(const Bp *b, const BpChunk *k, uint32_t cases)
{
	Maker m = { .b = b, .k = k, .c.g = gen_record(b->cx, b->m, "unit error") };
	for (m.i = 0; m.i < cases; m.i++, m.slopes = 0)
		unit_error_case(&m);
	Code *code = gen_end(m.c.g);
	return code->recs ? code : NULL;
}
