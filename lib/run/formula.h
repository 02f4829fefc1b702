/* SPDX-License-Identifier: MIT */
/* Update rules as straight-line code (formula.c).  A header of its own, since the kernels of target cpu need nothing
 * else of a run. */
#ifndef FORMULA_H
#define FORMULA_H

#include <stdint.h>

/* A rule is a few assignments over g (gradient), w (weight), its own per-weight state and named numbers of the
 * update (rate, momentum, ...). They are parsed once into straight-line code that ref evaluates in double; cpu
 * makes a vector sweep of it and gf11 microcode. */
enum {
	OP_CONST,
	OP_PARAM,
	OP_LOAD,
	OP_STORE,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_DIV,
	OP_FMA,
	OP_NEG,
	OP_ABS,
	OP_SQRT,
	OP_MIN,
	OP_MAX,
	OP_LT,
	OP_LE,
	OP_SELECT,
	OP_COUNT
};
/* result of op i is value i; a, b, c are earlier values; LOAD/STORE: a = variable (0 g, 1 w, 2.. state), STORE: b =
 * value; PARAM: a = index into Update.param; SELECT: a ? b : c */
typedef struct Op {
	uint8_t op;
	uint8_t a, b, c;
	double value;
} Op;
enum { MAX_OPS = 96, MAX_STATE = 3 };
typedef struct Formula {
	Op op[MAX_OPS];
	uint32_t ops;
} Formula;

enum {
	P_RATE,
	P_MOMENTUM,
	P_DECAY,
	P_CLIP,
	P_BETA1,
	P_BETA2,
	P_FIX1,
	P_FIX2,
	P_EPSILON,
	P_MU,
	P_UP,
	P_DOWN,
	P_STEP_MIN,
	P_STEP_MAX,
	P_KAPPA,
	P_PHI,
	P_THETA,
	P_SHARE,  /* 1 - theta */
	P_SHARE1, /* 1 - beta1 */
	P_SHARE2, /* 1 - beta2 */
	P_SHRINK, /* mu / (1 + mu) */
	P_COUNT
};

#endif
