/* SPDX-License-Identifier: MIT */
/* Instructions as text. In: calls in program order. Out: lines of PTX. The caller declares registers at the end, when
 * their number is known. */
#include <stdarg.h>
#include <string.h>

#include "ptx_text.h"

static const char type_letters[REG_TYPES] = { 'r', 'd', 'f', 'g', 'p', 'h' };

Reg reg(Emit *e, uint32_t type) { return (Reg){ type, e->used[type]++ }; }

Reg imm_f(float value)
{
	Reg r = { REG_FLOAT, 0 };

	memcpy(&r.n, &value, sizeof r.n);
	return r;
}

static void put_reg(Emit *e, Reg r)
{
	if (r.type == REG_INT)
		buf_printf(&e->text, "%u", r.n);
	else if (r.type == REG_FLOAT)
		buf_printf(&e->text, "0f%08X", r.n);
	else
		buf_printf(&e->text, "%%%c%u", type_letters[r.type], r.n);
}

void ins(Emit *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_puts(&e->text, "\t");
	for (const char *p = fmt; *p; p++) {
		if (*p == '$')
			put_reg(e, va_arg(ap, Reg));
		else if (*p == '#')
			buf_printf(&e->text, "%u", va_arg(ap, uint32_t));
		else
			buf_add(&e->text, p, 1);
	}
	buf_puts(&e->text, ";\n");
	va_end(ap);
}

static Reg op(Emit *e, uint32_t type, const char *name, uint32_t count, const Reg *from)
{
	Reg d = reg(e, type);

	buf_printf(&e->text, "\t%s ", name);
	put_reg(e, d);
	for (uint32_t i = 0; i < count; i++) {
		buf_puts(&e->text, ", ");
		put_reg(e, from[i]);
	}
	buf_puts(&e->text, ";\n");
	return d;
}

Reg op1(Emit *e, uint32_t type, const char *name, Reg a) { return op(e, type, name, 1, &a); }
Reg op2(Emit *e, uint32_t type, const char *name, Reg a, Reg b) { return op(e, type, name, 2, (Reg[]){ a, b }); }
Reg op3(Emit *e, uint32_t type, const char *name, Reg a, Reg b, Reg c)
{
	return op(e, type, name, 3, (Reg[]){ a, b, c });
}

void remark(Emit *e, const char *fmt, ...)
{
	va_list ap;

	buf_puts(&e->text, "\t// ");
	va_start(ap, fmt);
	buf_vprintf(&e->text, fmt, ap);
	va_end(ap);
	buf_puts(&e->text, "\n");
}

Reg literal(Emit *e, double value)
{
	Reg d = reg(e, REG_G);
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	buf_puts(&e->text, "\tmov.f64 ");
	put_reg(e, d);
	buf_printf(&e->text, ", 0d%016llX;\n", (unsigned long long)bits);
	return d;
}

Reg special_register(Emit *e, const char *name)
{
	Reg r = reg(e, REG_R);

	buf_printf(&e->text, "\tmov.u32 %%r%u, %s;\n", r.n, name);
	return r;
}

Reg param_load(Emit *e, uint32_t type, size_t field)
{
	Reg r = reg(e, type);

	ins(e, type == REG_D ? "ld.param.u64 $, [job+#]" : "ld.param.u32 $, [job+#]", r, (uint32_t)field);
	return r;
}

/* ---- control ---- */

uint32_t label(Emit *e) { return e->labels++; }
void label_here(Emit *e, uint32_t l) { buf_printf(&e->text, "L%u:\n", l); }

uint32_t if_begin(Emit *e, Reg p)
{
	uint32_t end = label(e);

	ins(e, "@!$ bra L#", p, end);
	return end;
}

uint32_t unless_begin(Emit *e, Reg p)
{
	uint32_t end = label(e);

	ins(e, "@$ bra L#", p, end);
	return end;
}

Loop loop_begin(Emit *e, Reg first, Reg end, uint32_t step)
{
	Loop l = { .i = reg(e, REG_R), .end = end, .top = label(e), .done = label(e), .step = step };

	ins(e, "mov.u32 $, $", l.i, first);
	ins(e, "@$ bra L#", op2(e, REG_P, "setp.ge.u32", l.i, end), l.done);
	label_here(e, l.top);
	return l;
}

Loop loop_count(Emit *e, uint32_t count) { return loop_until(e, imm(count), 1); }

Loop loop_until(Emit *e, Reg end, uint32_t step)
{
	Loop l = { .i = reg(e, REG_R), .end = end, .top = label(e), .step = step, .counted = true };

	ins(e, "mov.u32 $, 0", l.i);
	label_here(e, l.top);
	return l;
}

void loop_end(Emit *e, const Loop *l)
{
	ins(e, "add.u32 $, $, #", l->i, l->i, l->step);
	ins(e, "@$ bra L#", less(e, l->i, l->end), l->top);
	if (!l->counted)
		label_here(e, l->done);
}

/* ---- integers ---- */

Reg add(Emit *e, Reg a, Reg b)
{
	if (a.type == REG_INT && b.type == REG_INT)
		return imm(a.n + b.n);
	if (b.type == REG_INT && !b.n)
		return a;
	if (a.type == REG_INT && !a.n)
		return b;
	return a.type == REG_INT ? op2(e, REG_R, "add.u32", b, a) : op2(e, REG_R, "add.u32", a, b);
}

Reg mul(Emit *e, Reg a, uint32_t b)
{
	if (a.type == REG_INT || b == 0)
		return imm(a.type == REG_INT ? a.n * b : 0);
	return b == 1 ? a : op2(e, REG_R, "mul.lo.u32", a, imm(b));
}

Reg mad(Emit *e, Reg a, uint32_t b, Reg c)
{
	if (a.type == REG_INT || b <= 1 || (c.type == REG_INT && !c.n))
		return add(e, mul(e, a, b), c);
	return op3(e, REG_R, "mad.lo.u32", a, imm(b), c);
}

/* By multiplication (Granlund and Montgomery 1994), exact for all 32 bits. ptxas would convert to float and back. */
Reg divide(Emit *e, Reg a, uint32_t b)
{
	uint32_t shift = 31 - (uint32_t)__builtin_clz(b);
	uint64_t power = (uint64_t)1 << (32 + shift), down = power / b;

	if (a.type == REG_INT)
		return imm(a.n / b);
	if (b == 1)
		return a;
	if ((b & (b - 1)) == 0)
		return op2(e, REG_R, "shr.u32", a, imm(shift));
	if (b - power % b < (uint64_t)1 << shift) /* the factor may be rounded up */
		return op2(e, REG_R, "shr.u32", op2(e, REG_R, "mul.hi.u32", a, imm((uint32_t)down + 1)), imm(shift));
	Reg factor = reg(e, REG_D);
	ins(e, "mov.u64 $, #", factor, (uint32_t)down);
	Reg wide = op3(e, REG_D, "mad.wide.u32", a, imm((uint32_t)down), factor); /* (a + 1) * the factor rounded down */
	return op1(e, REG_R, "cvt.u32.u64", op2(e, REG_D, "shr.u64", wide, imm(32 + shift)));
}

Reg modulo(Emit *e, Reg a, uint32_t b, Reg quotient)
{
	if (b == 1)
		return imm(0);
	if (a.type == REG_INT)
		return imm(a.n % b);
	return op2(e, REG_R, "sub.u32", a, mul(e, quotient, b));
}

Reg less(Emit *e, Reg a, Reg b) { return op2(e, REG_P, "setp.lt.u32", a, b); }
Reg same(Emit *e, Reg a, Reg b) { return op2(e, REG_P, "setp.eq.u32", a, b); }

Reg place(Emit *e, Reg base, Reg index, uint32_t bytes)
{
	if (index.type == REG_INT)
		return place_at(e, base, (uint64_t)index.n * bytes);
	return op3(e, REG_D, "mad.wide.u32", index, imm(bytes), base);
}

Reg place_at(Emit *e, Reg base, uint64_t bytes)
{
	Reg d = base;

	for (; bytes; bytes -= min_u64(bytes, 1u << 30))
		d = op2(e, REG_D, "add.u64", d, imm((uint32_t)min_u64(bytes, 1u << 30)));
	return d;
}

/* ---- memory ---- */

void load_quad(Emit *e, const char *space, Reg q[4], Reg at, uint32_t offset)
{
	for (int i = 0; i < 4; i++)
		q[i] = reg(e, REG_F);
	load_quad_to(e, space, q, at, offset);
}

void load_quad_to(Emit *e, const char *space, const Reg q[4], Reg at, uint32_t offset)
{
	buf_printf(&e->text, "\tld.%s.v4.f32 {", space);
	for (int i = 0; i < 4; i++) {
		buf_puts(&e->text, i ? ", " : "");
		put_reg(e, q[i]);
	}
	buf_puts(&e->text, "}, [");
	put_reg(e, at);
	buf_printf(&e->text, "+%u];\n", offset);
}

void store_quad(Emit *e, const char *space, Reg at, uint32_t offset, const Reg q[4])
{
	buf_printf(&e->text, "\tst.%s.v4.f32 [", space);
	put_reg(e, at);
	buf_printf(&e->text, "+%u], {", offset);
	for (int i = 0; i < 4; i++) {
		buf_puts(&e->text, i ? ", " : "");
		put_reg(e, q[i]);
	}
	buf_puts(&e->text, "};\n");
}

Reg load(Emit *e, uint32_t type, const char *how, Reg at, uint32_t offset)
{
	Reg d = reg(e, type);

	buf_printf(&e->text, "\t%s ", how);
	put_reg(e, d);
	buf_puts(&e->text, ", [");
	put_reg(e, at);
	buf_printf(&e->text, "+%u];\n", offset);
	return d;
}

Reg address_add(Emit *e, Reg at, Reg bytes) { return at.type == REG_D ? place(e, at, bytes, 1) : add(e, at, bytes); }

void quad_move(Emit *e, Reg here, Reg there, bool out)
{
	Reg v[4];

	if (!out) {
		ins(e, "cp.async.cg.shared.global [$], [$], 16", here, there);
		return;
	}
	load_quad(e, "shared", v, here, 0);
	store_quad(e, "global", there, 0, v);
}

void barrier_block(Emit *e)
{
	if (e->meeting)
		ins(e, "bar.sync 1, #", e->meeting);
	else
		ins(e, "bar.sync 0");
}

Reg lanes_xor(Emit *e, Reg x, uint32_t lanes)
{
	Reg bits = x.type == REG_F ? op1(e, REG_R, "mov.b32", x) : x, d = reg(e, REG_R);

	ins(e, "shfl.sync.bfly.b32 $, $, #, 31, 0xffffffff", d, bits, lanes);
	return x.type == REG_F ? op1(e, REG_F, "mov.b32", d) : d;
}
