/* SPDX-License-Identifier: MIT */
/* The vector type of target cpu's kernels as PTX registers: an operation emits an instruction. functions.h and
 * values.inc of target cpu, included after this, become emitters of the same operations in the same order. A V has
 * the Emit that it belongs to; constants have NULL. */
#ifndef VEC_H
#define VEC_H

#include <string.h>

#include "ptx_text.h"

#define VEC_TOGETHER 1
typedef struct V {
	Emit *e;
	Reg r;
} V;
typedef V I; /* bits */
typedef V M; /* a predicate */

static inline Emit *text_of(V a, V b) { return a.e ? a.e : b.e; }
static inline V v_one(V a, uint32_t type, const char *name) { return (V){ a.e, op1(a.e, type, name, a.r) }; }
static inline V v_two(V a, V b, uint32_t type, const char *name)
{
	Emit *e = text_of(a, b);

	return (V){ e, op2(e, type, name, a.r, b.r) };
}
static inline V v_three(V a, V b, V c, uint32_t type, const char *name)
{
	Emit *e = a.e ? a.e : text_of(b, c);

	return (V){ e, op3(e, type, name, a.r, b.r, c.r) };
}

static inline V v_set(float x) { return (V){ NULL, imm_f(x) }; }
static inline V v_add(V a, V b) { return v_two(a, b, REG_F, "add.rn.ftz.f32"); }
static inline V v_sub(V a, V b) { return v_two(a, b, REG_F, "sub.rn.ftz.f32"); }
static inline V v_mul(V a, V b) { return v_two(a, b, REG_F, "mul.rn.ftz.f32"); }
static inline V v_div(V a, V b) { return v_two(a, b, REG_F, "div.rn.ftz.f32"); }
static inline V v_fma(V a, V b, V c) { return v_three(a, b, c, REG_F, "fma.rn.ftz.f32"); }
static inline V v_neg(V a)
{
	return a.e ? v_one(a, REG_F, "neg.f32") : (V){ NULL, { REG_FLOAT, a.r.n ^ 0x80000000u } };
}
static inline V v_abs(V a) { return v_one(a, REG_F, "abs.f32"); }
static inline V v_fnma(V a, V b, V c) { return v_fma(v_neg(a), b, c); }
static inline V v_mla(V a, V b, V c) { return v_fma(a, b, c); }
static inline V v_mls(V a, V b, V c) { return v_fnma(a, b, c); }
static inline V v_scale(V a, V b) { return v_mul(a, b); }
static inline M v_lt(V a, V b) { return v_two(a, b, REG_P, "setp.lt.ftz.f32"); }
static inline M v_le(V a, V b) { return v_two(a, b, REG_P, "setp.le.ftz.f32"); }
static inline M v_eq(V a, V b) { return v_two(a, b, REG_P, "setp.eq.ftz.f32"); }
static inline M v_nan(V a) { return v_two(a, a, REG_P, "setp.neu.ftz.f32"); }
static inline V v_sqrt(V a) { return v_one(a, REG_F, "sqrt.rn.ftz.f32"); }
static inline V v_select(M m, V a, V b) { return (V){ m.e, op3(m.e, REG_F, "selp.f32", a.r, b.r, m.r) }; }
static inline V v_min(V a, V b) { return v_select(v_lt(a, b), a, b); }
static inline V v_max(V a, V b) { return v_select(v_lt(b, a), a, b); }
static inline M m_or(M a, M b) { return v_two(a, b, REG_P, "or.pred"); }
/* Used where target cpu asks whether all targets of a vector are 0 or 1. */
static inline uint32_t m_bits(M m)
{
	assert(m.e);
	return m.e->binary ? 0xffff : 0;
}
static inline I v_bits(V a) { return v_one(a, REG_R, "mov.b32"); }
static inline I i_set(int32_t x) { return (I){ NULL, { REG_INT, (uint32_t)x } }; }
static inline V i_float(I a) { return a.e ? v_one(a, REG_F, "mov.b32") : (V){ NULL, { REG_FLOAT, a.r.n } }; }
static inline V i_value(I a) { return v_one(a, REG_F, "cvt.rn.f32.s32"); }
static inline I i_sub(I a, I b) { return v_two(a, b, REG_R, "sub.s32"); }
static inline I i_add(I a, I b) { return v_two(a, b, REG_R, "add.s32"); }
static inline I i_shr9(I a) { return v_two(a, i_set(9), REG_R, "shr.u32"); }
static inline I i_shl23(I a) { return v_two(a, i_set(23), REG_R, "shl.b32"); }
static inline I i_sar23(I a) { return v_two(a, i_set(23), REG_R, "shr.s32"); }
static inline V v_sign_from(V a, V b)
{
	I low = v_two(v_bits(a), i_set(0x7fffffff), REG_R, "and.b32");
	I high = v_two(v_bits(b), i_set((int32_t)0x80000000), REG_R, "and.b32");

	return i_float(v_two(low, high, REG_R, "or.b32"));
}
static inline V v_or_one(V x, V e) { return v_select(v_lt(x, v_set(0)), e, v_set(1)); }
static inline V v_times_power(V a, V n, V z)
{
	(void)n;
	return v_mul(a, i_float(i_shl23(v_bits(z))));
}

#endif
