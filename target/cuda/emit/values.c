/* SPDX-License-Identifier: MIT */
/* Unit functions and errors. In: registers. Out: the instructions that target cpu executes, in its order, since its own
 * text emits them. */
#include "vec_ptx.h"

#include "units.h"
#include "values.inc"

Reg unit_value(Emit *e, uint32_t fn, Reg x)
{
	V v = { e, x };

	switch (fn) {
	case FN_SIGMOID: return v_sigmoid(v).r;
	case FN_TANH: return v_tanh(v).r;
	case FN_RELU: return v_relu(v).r;
	case FN_GAUSSIAN: return v_gaussian(v).r;
	case FN_SIGMOID2: return v_sigmoid2(v).r;
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
	sides.net.e = e; /* it may be a constant */
	if (kind == SIDES_SOFTMAX)
		sides.rest = v_select((M){ e, of->is_top }, (V){ e, of->rest }, sides.rest);
	return of->error == ERR_CROSS_ENTROPY ? v_cross_value(sides, y).r : v_divergence_value(sides, y).r;
}

/* Of outputs that have a target. total: of all targets of the row. */
Reg error_slope(Emit *e, const ErrorOf *of, Reg total)
{
	V o = { e, of->out }, y = { e, of->y };

	if (of->error == ERR_DIVERGENCE)
		return v_fma(o, (V){ e, total }, v_neg(y)).r;
	return of->error == ERR_CROSS_ENTROPY && of->fn != FN_SIGMOID ? v_cross_slope(o, y).r : v_sub(o, y).r;
}
