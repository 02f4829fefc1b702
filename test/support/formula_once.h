/* SPDX-License-Identifier: MIT */
/* The formula of an update rule, worked out for one weight in double. */
#ifndef FORMULA_ONCE_H
#define FORMULA_ONCE_H

#include <math.h>

#include "test.h"

/* One weight in double, as the comment on Op says. */
static inline void formula_once(const Formula *f, const double *param, double variable[2 + MAX_STATE])
{
	double v[MAX_OPS];
	for (uint32_t i = 0; i < f->ops; i++) {
		const Op *o = &f->op[i];
		double a = o->a < i ? v[o->a] : 0, b = o->b < i ? v[o->b] : 0, c = o->c < i ? v[o->c] : 0;
		switch (o->op) {
		case OP_CONST: v[i] = o->value; break;
		case OP_PARAM: v[i] = param[o->a]; break;
		case OP_LOAD: v[i] = variable[o->a]; break;
		case OP_STORE: v[i] = variable[o->a] = b; break;
		case OP_ADD: v[i] = a + b; break;
		case OP_SUB: v[i] = a - b; break;
		case OP_MUL: v[i] = a * b; break;
		case OP_DIV: v[i] = a / b; break;
		case OP_FMA: v[i] = fma(a, b, c); break;
		case OP_NEG: v[i] = -a; break;
		case OP_ABS: v[i] = fabs(a); break;
		case OP_SQRT: v[i] = sqrt(a); break;
		case OP_MIN: v[i] = a < b ? a : b; break;
		case OP_MAX: v[i] = a > b ? a : b; break;
		case OP_LT: v[i] = a < b; break;
		case OP_LE: v[i] = a <= b; break;
		case OP_SELECT: v[i] = a != 0 ? b : c; break;
		default: assert_true(false);
		}
	}
}

#endif
