/* SPDX-License-Identifier: MIT */
/* The error of a softmax row from its net inputs alone, in double precision: softmax_row_error of lib/net/units.c and
 * the functions of lib/base/arith.c, operation by operation. Few rows need it, so one lane computes it, in loops. */
#include "ptx_text.h"
#include "units.h"

/* As in lib/base/arith.c. */
#define LN2_HIGH    6.93147180369123816490e-01
#define LN2_LOW     1.90821492927058770002e-10
#define LN2_INVERSE 1.44269504088896338700e+00
#define SQRT2       1.41421356237309504880

static Reg plus(Emit *e, Reg a, Reg b) { return op2(e, REG_G, "add.rn.f64", a, b); }
static Reg minus(Emit *e, Reg a, Reg b) { return op2(e, REG_G, "sub.rn.f64", a, b); }
static Reg product(Emit *e, Reg a, Reg b) { return op2(e, REG_G, "mul.rn.f64", a, b); }
static Reg quotient(Emit *e, Reg a, Reg b) { return op2(e, REG_G, "div.rn.f64", a, b); }
static Reg negative(Emit *e, Reg a) { return op1(e, REG_G, "neg.f64", a); }
static Reg is_more(Emit *e, Reg a, Reg b) { return op2(e, REG_P, "setp.gt.f64", a, b); }
static Reg either(Emit *e, Reg p, Reg a, Reg b) { return op3(e, REG_G, "selp.f64", a, b, p); }

static Reg horner(Emit *e, const double *c, int count, Reg x)
{
	Reg sum = literal(e, c[count - 1]);

	for (int i = count - 2; i >= 0; i--)
		sum = plus(e, product(e, sum, x), literal(e, c[i]));
	return sum;
}

static Reg power_of_two(Emit *e, Reg k)
{
	Reg bits = op2(e, REG_D, "shl.b64", op1(e, REG_D, "cvt.u64.u32", add(e, k, imm(1023))), imm(52));

	return op1(e, REG_G, "mov.b64", bits);
}

static Reg exp_double(Emit *e, Reg x)
{
	static const double inverse_factorial[] = {
		1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,      1.0 / 720,       1.0 / 5040,
		1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
	};
	Reg most = literal(e, 710), least = literal(e, -746), over = is_more(e, x, most), under = is_more(e, least, x);
	Reg in = either(e, under, least, either(e, over, most, x));
	Reg k = op1(e, REG_R, "cvt.rmi.s32.f64", plus(e, product(e, in, literal(e, LN2_INVERSE)), literal(e, 0.5)));
	Reg whole = op1(e, REG_G, "cvt.rn.f64.s32", k), high = minus(e, in, product(e, whole, literal(e, LN2_HIGH)));
	Reg low = product(e, whole, literal(e, LN2_LOW)), r = minus(e, high, low), rest = minus(e, minus(e, high, r), low);
	Reg tail = product(e, product(e, r, r), horner(e, inverse_factorial, COUNT(inverse_factorial), r));
	Reg y = plus(e, literal(e, 1), plus(e, r, plus(e, rest, tail)));
	Reg half = op2(e, REG_R, "shr.s32", add(e, k, op2(e, REG_R, "shr.u32", k, imm(31))), imm(1));

	y = product(e, product(e, y, power_of_two(e, half)), power_of_two(e, op2(e, REG_R, "sub.s32", k, half)));
	y = either(e, over, literal(e, __builtin_inf()), either(e, under, literal(e, 0), y));
	return either(e, op2(e, REG_P, "setp.neu.f64", x, x), x, y);
}

static Reg log_double(Emit *e, Reg x)
{
	static const double c[] = {
		2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23,
	};
	Reg zero = literal(e, 0), tiny = is_more(e, literal(e, 0x1p-1022), x);
	Reg shifted = either(e, tiny, product(e, x, literal(e, 0x1p54)), x), bits = op1(e, REG_D, "mov.b64", shifted);
	Reg k = op1(e, REG_R, "cvt.u32.u64", op2(e, REG_D, "shr.u64", bits, imm(52)));
	k = op2(e, REG_R, "sub.u32", k, op3(e, REG_R, "selp.u32", imm(1023 + 54), imm(1023), tiny));
	Reg mantissa = op2(e, REG_D, "shr.u64", op2(e, REG_D, "shl.b64", bits, imm(12)), imm(12));
	Reg one = op1(e, REG_D, "mov.b64", literal(e, 1)),
		m = op1(e, REG_G, "mov.b64", op2(e, REG_D, "or.b64", mantissa, one));
	Reg large = is_more(e, m, literal(e, SQRT2));
	m = either(e, large, product(e, m, literal(e, 0.5)), m);
	k = add(e, k, op3(e, REG_R, "selp.u32", imm(1), imm(0), large));
	Reg f = minus(e, m, literal(e, 1)), s = quotient(e, f, plus(e, literal(e, 2), f)), z = product(e, s, s);
	Reg half = product(e, product(e, literal(e, 0.5), f), f), r = product(e, z, horner(e, c, COUNT(c), z));
	Reg whole = op1(e, REG_G, "cvt.rn.f64.s32", k);
	Reg inner = plus(e, product(e, s, plus(e, half, r)), product(e, whole, literal(e, LN2_LOW)));
	Reg y = minus(e, product(e, whole, literal(e, LN2_HIGH)), minus(e, minus(e, half, inner), f));

	y = either(e, op2(e, REG_P, "setp.eq.f64", x, zero), literal(e, -__builtin_inf()), y);
	y = either(e, is_more(e, zero, x), literal(e, __builtin_nan("")), y);
	Reg itself = op2(e, REG_P, "or.pred", op2(e, REG_P, "setp.neu.f64", x, x),
	                 op2(e, REG_P, "setp.eq.f64", x, literal(e, __builtin_inf())));
	return either(e, itself, x, y);
}

static Reg log_of_one_and(Emit *e, Reg x)
{
	Reg one = literal(e, 1), sum = plus(e, one, x), ratio = quotient(e, x, minus(e, sum, one));

	return either(e, op2(e, REG_P, "setp.eq.f64", sum, one), x, product(e, log_double(e, sum), ratio));
}

static Reg softplus(Emit *e, Reg x)
{
	Reg zero = literal(e, 0), log = log_of_one_and(e, exp_double(e, negative(e, op1(e, REG_G, "abs.f64", x))));

	return plus(e, either(e, is_more(e, x, zero), x, zero), log);
}

static Reg net_at(Emit *e, const SoftmaxRow *s, Reg i)
{
	return op1(e, REG_G, "cvt.f64.f32", load(e, REG_F, s->load, address_add(e, s->row, mul(e, i, 4)), s->net));
}

static Reg error_from_logs(Emit *e, uint32_t error, Reg out, Reg ln_out, Reg ln_rest, Reg y)
{
	Reg zero = literal(e, 0), one = literal(e, 1), wanted = is_more(e, y, zero), open = is_more(e, one, y);
	Reg term = product(e, y, minus(e, log_double(e, y), ln_out));

	if (error == ERR_DIVERGENCE)
		return either(e, wanted, term, zero);
	Reg rest = minus(e, one, y), other = product(e, rest, minus(e, log_double(e, rest), ln_rest));
	Reg sum = either(e, wanted, plus(e, zero, term), zero);
	sum = either(e, open, plus(e, sum, other), sum);
	Reg none = op2(e, REG_P, "and.pred", op2(e, REG_P, "setp.eq.f64", out, y), op2(e, REG_P, "and.pred", wanted, open));
	return either(e, op2(e, REG_P, "or.pred", none, is_more(e, zero, sum)), zero, sum);
}

Reg softmax_far(Emit *e, const SoftmaxRow *s)
{
	Reg low = literal(e, -__builtin_inf()), largest = literal(e, -__builtin_inf()), second = low, sum = literal(e, 0);
	Reg top = op1(e, REG_R, "mov.u32", imm(0));

	Loop a = loop_count(e, s->cols);
	Reg x = net_at(e, s, a.i), first = same(e, a.i, imm(0));
	Reg more = op2(e, REG_P, "or.pred", first, is_more(e, x, largest));
	Reg next = either(e, first, second, largest), runner = is_more(e, x, second);
	ins(e, "@!$ selp.f64 $, $, $, $", more, second, x, second, runner);
	ins(e, "@$ mov.f64 $, $", more, second, next);
	ins(e, "@$ mov.f64 $, $", more, largest, x);
	ins(e, "@$ mov.u32 $, $", more, top, a.i);
	loop_end(e, &a);
	Loop b = loop_count(e, s->cols);
	Reg term = exp_double(e, minus(e, net_at(e, s, b.i), second));
	ins(e, "@$ add.rn.f64 $, $, $", op2(e, REG_P, "setp.ne.u32", b.i, top), sum, sum, term);
	loop_end(e, &b);
	Reg distance = s->cols > 1 ? minus(e, minus(e, largest, second), log_double(e, sum))
	                           : negative(e, log_double(e, literal(e, 0x1p-115)));
	Reg ln_sum = softplus(e, negative(e, distance)), total = literal(e, 0);
	Loop c = loop_count(e, s->cols);
	Reg is_top = same(e, c.i, top), net = net_at(e, s, c.i);
	Reg ln_out = either(e, is_top, negative(e, ln_sum), minus(e, minus(e, net, largest), ln_sum)),
		out = exp_double(e, ln_out);
	Reg ln_rest = either(e, is_top, minus(e, negative(e, distance), ln_sum), log_of_one_and(e, negative(e, out)));
	Reg target = load(e, REG_F, s->load, address_add(e, s->y, mul(e, c.i, 4)), s->target);
	Reg known = op2(e, REG_P, "setp.eq.ftz.f32", target, target);
	Reg error = error_from_logs(e, s->error, out, ln_out, ln_rest, op1(e, REG_G, "cvt.f64.f32", target));
	ins(e, "@$ add.rn.f64 $, $, $", known, total, total, error);
	loop_end(e, &c);
	return op1(e, REG_F, "cvt.rn.f32.f64", total);
}
