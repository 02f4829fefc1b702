/* SPDX-License-Identifier: MIT */
/* Functions of one value per processor as instruction sequences: sigmoids, reciprocal, polynomial, sum.
 * In: a recorder or simulator, registers.  Out: the register of the result.
 *
 * No divide, no branch: data-dependent choices use select and tables (section 4.3 of the report).  On a machine without
 * indexed addressing, powers and reciprocals are computed from exponent bits.  NaN propagates.  Routines call these for
 * many values at once, which fills the pipelines.
 * Must hold: at most one instruction function per argument list; C does not specify the order of evaluation, and a
 * recording must not depend on the compiler. */
#include "gf11_code.h"

static Addr table(uint32_t off) { return (Addr){ 0, off }; }

Reg constant(Constants *c, int k)
{
	if (!c->there[k]) {
		c->reg[k] = g_load(c->g, table(TABLE_CONSTANT + (uint32_t)k));
		c->there[k] = true;
	}
	return c->reg[k];
}

static Reg look_up(Gen *g, uint32_t off, Reg index)
{
	g_index_limit(g, 0, TABLE_WORDS);
	return g_lookup(g, table(off), index);
}

static Reg clamp(Gen *g, Reg x, Reg low, Reg high)
{
	Cond above = g_compare(g, GOP_FLT_LT, high, x), below = g_compare(g, GOP_FLT_LT, x, low);
	return g_select(g, below, low, g_select(g, above, high, x));
}

Reg sigmoid_by_table(Constants *c, Reg x)
{
	Gen *g = c->g;
	Reg low = constant(c, K_SIGMOID_LOW), high = constant(c, K_SIGMOID_HIGH);
	Reg scale = constant(c, K_SIGMOID_SCALE), middle = constant(c, K_SIGMOID_MIDDLE);
	Reg place = g_fadd(g, g_fmul(g, clamp(g, x, low, high), scale), middle); /* 0 .. 255 */
	Reg index = g_op(g, GOP_FIX, place, 0);
	Reg part = g_fsub(g, place, g_op(g, GOP_FLOOR, place, 0));
	Reg value = look_up(g, TABLE_SIGMOID, index), rise = look_up(g, TABLE_RISE, index);
	return g_fadd(g, value, g_fmul(g, part, rise));
}

/* No indexed addressing: estimates without a table. */
static bool fixed(const Constants *c) { return gen_machine(c->g)->fixed_address == NO_INDEX; }

static Reg guess_by_table(Constants *c, Reg x)
{
	Gen *g = c->g;
	Reg shift = constant(c, K_MANTISSA_SHIFT), mask = constant(c, K_MANTISSA_MASK);
	Reg above = constant(c, K_SIGN_EXPONENT);
	constant(c, K_ONE); /* hoist the loads that the Newton steps need */
	constant(c, K_BELOW_TWO);
	Reg index = g_op(g, GOP_AND, g_op(g, GOP_SHR, x, shift), mask);
	Reg scale = g_op(g, GOP_AND, x, above);
	return g_op(g, GOP_ISUB, look_up(g, TABLE_RECIPROCAL, index), scale);
}

/* r (2 - x r) */
static Reg newton(Constants *c, Reg x, Reg r)
{
	Reg two = constant(c, K_BELOW_TWO);
	return g_fmul(c->g, r, g_fsub(c->g, two, g_fmul(c->g, x, r)));
}

/* A float's bits approximate its logarithm, so subtracting them from a constant approximates the reciprocal within
 * 1/19; one more Newton step makes that 1/390. */
static Reg guess_by_bits(Constants *c, Reg x)
{
	Reg bits = constant(c, K_RECIPROCAL_BITS);
	return newton(c, x, g_op(c->g, GOP_ISUB, bits, x));
}

/* The estimate is within 1/256; r (2 - x r) squares the error.  With slightly less than 2 the result is too small by
 * more than its three roundings: x r is then below 1, where floats are denser.  The second step adds the rest as a
 * small correction: one more operation, but the rounding of 2 - x r stays out of the result.  Measured over all 2^23
 * mantissas: at most 0.991 ulp; with exactly 2, 1.25. */
Reg reciprocal(Constants *c, Reg x)
{
	Gen *g = c->g;
	Reg r = newton(c, x, (fixed(c) ? guess_by_bits : guess_by_table)(c, x)), one = constant(c, K_ONE);
	Reg rest = g_fsub(g, one, g_fmul(g, x, r));
	return g_fadd(g, r, g_fmul(g, r, rest));
}

Reg polynomial(Gen *g, const Reg *coefficient, uint32_t degree, Reg x)
{
	Reg sum = coefficient[degree];
	for (uint32_t i = degree; i-- > 0;)
		sum = g_fadd(g, g_fmul(g, sum, x), coefficient[i]);
	return sum;
}

/* 2^y = 2^floor(y) (2^h)^2 with h = (y - floor(y)) / 2, for y between K_POWER_LOW and K_POWER_HIGH. */
Reg power_of_two(Constants *c, Reg y)
{
	Gen *g = c->g;
	Reg half = constant(c, K_HALF), first = constant(c, fixed(c) ? K_EXPONENT_BIAS : K_POWER_FIRST);
	Reg whole = g_op(g, GOP_FLOOR, y, 0);
	Reg index = g_op(g, GOP_FIX, g_fadd(g, whole, first), 0);
	/* 2^h for h in [0, 0.5]. */
	Reg h = g_fmul(g, g_fsub(g, y, whole), half);
	enum { DEGREE = 5 };
	Reg coefficient[DEGREE + 1];
	coefficient[0] = constant(c, K_ONE);
	for (int i = 1; i <= DEGREE; i++)
		coefficient[i] = constant(c, K_POWER_1 + i - 1);
	Reg root = polynomial(c->g, coefficient, DEGREE, h);
	Reg part = g_fmul(g, root, root);
	Reg power = fixed(c) ? g_op(g, GOP_SHL, index, constant(c, K_EXPONENT_SHIFT)) : look_up(g, TABLE_POWER, index);
	return g_fmul(g, power, part);
}

Reg sigmoid_by_powers(Constants *c, Reg x)
{
	Gen *g = c->g;
	Reg low = constant(c, K_POWER_LOW), high = constant(c, K_POWER_HIGH), one = constant(c, K_ONE);
	Reg y = clamp(g, g_op(g, GOP_FNEG, x, 0), low, high);
	return reciprocal(c, g_fadd(g, one, power_of_two(c, y)));
}

Reg sum_tree(Gen *g, const Reg *v, uint32_t count)
{
	if (count == 1)
		return v[0];
	uint32_t left = (count + 1) / 2;
	Reg a = sum_tree(g, v, left), b = sum_tree(g, v + left, count - left);
	return g_fadd(g, a, b);
}
