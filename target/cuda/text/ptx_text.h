/* SPDX-License-Identifier: MIT */
/* text: an emitter of PTX text: virtual registers, loops, unit functions. C functions emit what they are named after
 * and return the register that will have the result. */
#ifndef PTX_TEXT_H
#define PTX_TEXT_H

#include "base.h"

/* ---- text.c: registers, instructions, loops ------------------------------------------------------- */

/* An operand: a virtual register of some type, or a constant. */
enum { REG_R, REG_D, REG_F, REG_G, REG_P, REG_H, REG_TYPES, REG_INT = REG_TYPES, REG_FLOAT };
typedef struct Reg {
	uint32_t type; /* REG_ */
	uint32_t n;    /* its number; of a constant, the value or its bits */
} Reg;

typedef struct Emit {
	Buf text;
	uint32_t used[REG_TYPES], labels;
	bool binary;      /* targets are 0 or 1: vec_ptx.h leaves out code that others need */
	uint32_t meeting; /* barrier_block is for so many threads, from the first on; 0: for all */
	bool grouped;     /* uses wgmma: compute capability 9.0a */
	bool near;        /* bf16: sigmoids by ex2.approx and rcp.approx */
	bool busy;        /* the kernel is bound by issue slots: sigmoids of one instruction less */
} Emit;

Reg reg(Emit *e, uint32_t type); /* a new register: R .b32, D .b64, F .f32, G .f64, P .pred, H .b16 */
static inline Reg imm(uint32_t value) { return (Reg){ REG_INT, value }; }
Reg imm_f(float value);
/* One instruction. In fmt, $ stands for a Reg, # for a uint32_t. */
void ins(Emit *e, const char *fmt, ...);
Reg op1(Emit *e, uint32_t type, const char *name, Reg a); /* returns a new register with the result */
Reg op2(Emit *e, uint32_t type, const char *name, Reg a, Reg b);
Reg op3(Emit *e, uint32_t type, const char *name, Reg a, Reg b, Reg c);
void remark(Emit *e, const char *fmt, ...) PRINTF_LIKE(2, 3); /* a comment */
uint32_t label(Emit *e);
void label_here(Emit *e, uint32_t l);
Reg literal(Emit *e, double value);                   /* of type G */
Reg special_register(Emit *e, const char *name);      /* 32 bits: "%tid.x", or the address of "memory" */
Reg param_load(Emit *e, uint32_t type, size_t field); /* R or D: a field of the kernel's parameter */

/* if (p) { ... } and if (!p) { ... }: end where the returned label is put. */
uint32_t if_begin(Emit *e, Reg p);
uint32_t unless_begin(Emit *e, Reg p);
#define if_end label_here

/* for (i = first; i < end; i += step) */
typedef struct Loop {
	Reg i, end;
	uint32_t top, done, step;
	bool counted; /* at least one iteration: tested at the end only */
} Loop;
Loop loop_begin(Emit *e, Reg first, Reg end, uint32_t step);
Loop loop_count(Emit *e, uint32_t count);         /* count > 0 iterations */
Loop loop_until(Emit *e, Reg end, uint32_t step); /* from 0 to end > 0 */
void loop_end(Emit *e, const Loop *l);

/* Unsigned integers. Constants are folded. */
Reg add(Emit *e, Reg a, Reg b);
Reg mul(Emit *e, Reg a, uint32_t b);
Reg mad(Emit *e, Reg a, uint32_t b, Reg c);
Reg divide(Emit *e, Reg a, uint32_t b); /* b: a constant */
Reg modulo(Emit *e, Reg a, uint32_t b, Reg quotient);
Reg less(Emit *e, Reg a, Reg b);                         /* P */
Reg same(Emit *e, Reg a, Reg b);                         /* P */
Reg place(Emit *e, Reg base, Reg index, uint32_t bytes); /* global address base + index * bytes */
Reg place_at(Emit *e, Reg base, uint64_t bytes);         /* base + a constant */

/* Memory. space: "shared" or "global", perhaps with a cache operator. Quads: 16 bytes. */
void load_quad(Emit *e, const char *space, Reg q[4], Reg at, uint32_t offset);
void load_quad_to(Emit *e, const char *space, const Reg q[4], Reg at, uint32_t offset); /* into q */
void store_quad(Emit *e, const char *space, Reg at, uint32_t offset, const Reg q[4]);
Reg load(Emit *e, uint32_t type, const char *how, Reg at, uint32_t offset); /* how: "ld.shared.f32" */
void quad_move(Emit *e, Reg here, Reg there, bool out); /* from shared to global memory; or back: cp.async */
void barrier_block(Emit *e);
Reg address_add(Emit *e, Reg at, Reg bytes);   /* of shared memory (R) or global (D) */
Reg lanes_xor(Emit *e, Reg x, uint32_t lanes); /* the value of another lane */

/* ---- values.c: unit functions, errors, noise: those of target cpu, traced through vec_ptx.h -------------- */

Reg unit_value(Emit *e, uint32_t fn, Reg x);
Reg unit_slope(Emit *e, uint32_t fn, Reg net, Reg out);
Reg exp_value(Emit *e, Reg x);
/* An output whose error is formed. */
typedef struct ErrorOf {
	uint32_t fn, error; /* FN_, ERR_ */
	bool known_net;     /* net has the net input */
	Reg out, net, y;    /* y: target */
	/* softmax */
	Reg largest;      /* net input of the row */
	Reg is_top, rest; /* P: this output is the largest one: `rest` replaces 1 - out */
} ErrorOf;
Reg error_value(Emit *e, const ErrorOf *of);
Reg error_slope(Emit *e, const ErrorOf *of, Reg total);
typedef struct NoiseKey {
	Reg low, high;
} NoiseKey;
/* Philox 4x32-10: the words replace the counter c. */
void philox_words(Emit *e, Reg c[4], Reg low, Reg high);
/* As noise_key, noise_word and noise_weight_word of lib/run/noise.c. seed, update, number: type D */
NoiseKey noise_key_of(Emit *e, Reg seed, Reg update, uint32_t stream, uint32_t group);
Reg noise_word_of(Emit *e, NoiseKey key, Reg number, Reg tick, Reg unit);
Reg noise_link_word(Emit *e, NoiseKey key, Reg link);
Reg noise_applied(Emit *e, int kind, float amount, float scale, Reg word, Reg value);
Reg softmax_part(Emit *e, Reg out, Reg net, Reg largest); /* softmax_output of target cpu */
float least_output(void); /* errors of smaller outputs come from net inputs alone: softmax_far */

/* ---- doubles.c -------------------------------------------------------------------------------------- */

/* A row of softmax units. */
typedef struct SoftmaxRow {
	uint32_t cols, error;
	const char *load;     /* "ld.shared.f32" */
	Reg row, y;           /* addresses of the row, of its targets */
	uint32_t net, target; /* offsets there: first net input, first target */
} SoftmaxRow;
Reg softmax_far(Emit *e, const SoftmaxRow *s); /* the row's error, by one lane, from net inputs alone */

#endif
