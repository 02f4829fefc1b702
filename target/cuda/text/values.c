/* SPDX-License-Identifier: MIT */
/* Unit functions, errors and noise. In: registers. Out: registers with results; the operations of target cpu, in its
 * order, since its own text is traced. */
#include "vec_ptx.h"

#include "kern.h"
#include "noise_values.h"
#include "units.h"
#include "values.inc"

/* v_sigmoid_from without its multiplication by 1. */
static V short_quotient(V x, V e)
{
	V one = v_set(1), d = v_add(e, one), y = v_near_one_over(e, d);
	V rest = v_mls(d, y, one), q = { x.e, op1(x.e, REG_F, "mov.f32", y.r) };

	ins(x.e, "@$ mul.rn.ftz.f32 $, $, $", v_lt(x, v_set(0)).r, q.r, e.r, y.r);
	return v_fma(q, rest, q);
}

/* v_sigmoid in two or three instructions less, with the same bits. e^-r * 2^n is an addition to the exponent: n is
 * at least -126, and where the exponent becomes 0, instructions with .ftz read 0, like the flushed product. WHOLE -
 * 127 rounds like WHOLE: no product is midway between whole numbers. A NaN, 0x7fffffff, becomes a large number, of
 * which the quotient is a NaN again. */
static V short_sigmoid(V x)
{
	V whole = v_set(WHOLE - 127), a = v_two(v_abs(x), v_set(87.5f), REG_F, "min.NaN.ftz.f32");
	V z = v_mla(a, v_set(-LN2_INVERSE), whole), n = v_sub(z, whole);
	V r = v_mla(n, v_set(LN2_HIGH), a);
	V e = i_float(i_add(v_bits(v_series(sigmoid_series, 6, r)), i_shl23(v_bits(z))));

	return x.e->busy ? short_quotient(x, e) : v_sigmoid_from(x, e);
}

/* Approximate, to some units in the last place: four instructions instead of some 25. */
static Reg near_sigmoid(Emit *e, Reg x)
{
	Reg power = op1(e, REG_F, "ex2.approx.ftz.f32", op2(e, REG_F, "mul.rn.ftz.f32", x, imm_f(-0x1.715476p+0f)));

	return op1(e, REG_F, "rcp.approx.ftz.f32", op2(e, REG_F, "add.rn.ftz.f32", power, imm_f(1)));
}

Reg unit_value(Emit *e, uint32_t fn, Reg x)
{
	V v = { e, x };

	switch (fn) {
	case FN_SIGMOID: return e->near ? near_sigmoid(e, x) : short_sigmoid(v).r;
	case FN_TANH: return v_tanh(v).r;
	case FN_RELU: return v_relu(v).r;
	case FN_GAUSSIAN: return v_gaussian(v).r;
	case FN_SIGMOID2: return v_sigmoid2(v).r;
	case FN_ELLIOTT: return v_elliott(v).r;
	case FN_SOFTSIGN: return v_softsign(v).r;
	case FN_STEPWISE: return v_stepwise(v).r;
	case FN_STEPWISE_TANH: return v_stepwise_tanh(v).r;
	}
	return x;
}

Reg unit_slope(Emit *e, uint32_t fn, Reg net, Reg out)
{
	V n = { e, net }, o = { e, out };

	switch (fn) {
	case FN_SIGMOID: return v_sigmoid_slope(n, o).r;
	case FN_TANH: return v_tanh_slope(n, o).r;
	case FN_RELU: return v_relu_slope(n, o).r;
	case FN_GAUSSIAN: return v_gaussian_slope(n, o).r;
	case FN_SIGMOID2: return v_sigmoid2_slope(n, o).r;
	case FN_ELLIOTT: return v_elliott_slope(n, o).r;
	case FN_SOFTSIGN: return v_softsign_slope(n, o).r;
	case FN_STEPWISE: return v_stepwise_slope(n, o).r;
	case FN_STEPWISE_TANH: return v_stepwise_tanh_slope(n, o).r;
	}
	return v_linear_slope(n, o).r;
}

Reg exp_value(Emit *e, Reg x) { return v_exp((V){ e, x }).r; }
float least_output(void) { return LEAST; }

Reg softmax_part(Emit *e, Reg out, Reg net, Reg largest)
{
	return softmax_output((V){ e, out }, (V){ e, net }, (V){ e, largest }).r;
}

Reg error_value(Emit *e, const ErrorOf *of)
{
	V o = { e, of->out }, net = { e, of->net }, y = { e, of->y };
	int kind = !of->known_net          ? SIDES_OUTPUT
	           : of->fn == FN_SIGMOID2 ? SIDES_SIGMOID2
	           : of->fn == FN_SOFTMAX  ? SIDES_SOFTMAX
	                                   : SIDES_OUTPUT;

	if (of->error == ERR_SQUARED)
		return v_sub(o, y).r;
	if (of->error == ERR_CROSS_ENTROPY && of->known_net && of->fn == FN_SIGMOID)
		return v_cross_sigmoid(o, net, y).r;
	if (kind == SIDES_SOFTMAX)
		o = softmax_output(o, net, (V){ e, of->largest });
	Sides sides = sides_of(kind, o, net);
	sides.net.e = e; /* a constant has none */
	if (kind == SIDES_SOFTMAX)
		sides.rest = v_select((M){ e, of->is_top }, (V){ e, of->rest }, sides.rest);
	return of->error == ERR_CROSS_ENTROPY ? v_cross_value(sides, y).r : v_divergence_value(sides, y).r;
}

/* Derivative of the error by the output, which has a target. total: sum of the row's targets */
Reg error_slope(Emit *e, const ErrorOf *of, Reg total)
{
	V o = { e, of->out }, y = { e, of->y };

	if (of->error == ERR_DIVERGENCE)
		return v_fma(o, (V){ e, total }, v_neg(y)).r;
	return of->error == ERR_CROSS_ENTROPY && of->fn != FN_SIGMOID ? v_cross_slope(o, y).r : v_sub(o, y).r;
}

/* ---- noise ---- */

void philox_words(Emit *e, Reg c[4], Reg low, Reg high)
{
	for (int round = 0; round < 10; round++) {
		Reg a = op2(e, REG_R, "mul.lo.u32", c[0], imm(0xD2511F53u)),
			b = op2(e, REG_R, "mul.lo.u32", c[2], imm(0xCD9E8D57u));
		Reg over = op2(e, REG_R, "mul.hi.u32", c[0], imm(0xD2511F53u)),
			under = op2(e, REG_R, "mul.hi.u32", c[2], imm(0xCD9E8D57u));
		c[0] = op2(e, REG_R, "xor.b32", op2(e, REG_R, "xor.b32", under, c[1]), low);
		c[1] = b;
		c[2] = op2(e, REG_R, "xor.b32", op2(e, REG_R, "xor.b32", over, c[3]), high);
		c[3] = a;
		low = op2(e, REG_R, "add.u32", low, imm(0x9E3779B9u));
		high = op2(e, REG_R, "add.u32", high, imm(0xBB67AE85u));
	}
}

static void halves_of(Emit *e, Reg x, Reg half[2])
{
	half[0] = reg(e, REG_R);
	half[1] = reg(e, REG_R);
	ins(e, "mov.b64 {$, $}, $", half[0], half[1], x);
}

NoiseKey noise_key_of(Emit *e, Reg seed, Reg update, uint32_t stream, uint32_t group)
{
	Reg key[2], number[2];

	halves_of(e, seed, key);
	halves_of(e, update, number);
	Reg c[4] = { number[0], number[1], op1(e, REG_R, "mov.u32", imm(stream)), op1(e, REG_R, "mov.u32", imm(group)) };
	philox_words(e, c, key[0], key[1]);
	return (NoiseKey){ c[0], c[1] };
}

Reg noise_word_of(Emit *e, NoiseKey key, Reg number, Reg tick, Reg unit)
{
	Reg word = op2(e, REG_R, "and.b32", op2(e, REG_R, "shr.u32", unit, imm(4)), imm(3)), half[2];
	Reg lane = op2(e, REG_R, "and.b32", unit, imm(15)), block = op2(e, REG_R, "shr.u32", unit, imm(6));

	halves_of(e, number, half);
	Reg c[4] = { mad(e, block, 16, lane), half[0], half[1], tick };
	philox_words(e, c, key.low, key.high);
	for (uint32_t i = 1; i < 4; i++)
		c[0] = op3(e, REG_R, "selp.b32", c[i], c[0], same(e, word, imm(i)));
	return c[0];
}

Reg noise_link_word(Emit *e, NoiseKey key, Reg link)
{
	Reg zero = op1(e, REG_R, "mov.u32", imm(0)), c[4] = { link, zero, zero, zero };

	philox_words(e, c, key.low, key.high);
	return c[0];
}

Reg noise_applied(Emit *e, int kind, float amount, float scale, Reg word, Reg value)
{
	V x = { e, value }, z = v_noise(kind, (I){ e, word }, v_set(amount), v_set(scale));

	return kind == NOISE_KIND_DROPOUT ? v_mul(x, z).r : v_fma(v_set(amount), z, x).r;
}
