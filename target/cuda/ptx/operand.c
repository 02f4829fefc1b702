/* SPDX-License-Identifier: MIT */
/* Operands of an instruction. In: tokens. Out: slots of registers and constants, addresses. Must hold: a register
 * has the width and kind that ptxas requires; equal constants of a kernel share a slot. */
#include <string.h>

#include "emulator.h"

uint32_t constant_slot(Parser *p, uint64_t v, bool wide)
{
	Kernel *k = p->kernel;
	uint32_t h = (uint32_t)((v * 0x9e3779b97f4a7c15u + wide) >> 40) % BUCKETS, slots = wide ? 2 : 1;
	uint64_t at = k->constants, cap = k->constant_cap;

	for (uint32_t i = p->constant_bucket[h]; i; i = p->constant[i - 1].chain)
		if (p->constant[i - 1].value == v && p->constant[i - 1].wide == wide)
			return p->constant[i - 1].slot;
	if (at + slots > cap) {
		k->constant_cap = max_u64(2 * cap, 64);
		k->constant = arena_grow(&p->m->arena, k->constant, cap, k->constant_cap, LANES * sizeof *k->constant);
	}
	for (uint64_t i = 0; i < LANES; i++) {
		if (wide)
			memcpy(k->constant + at * LANES + 2 * i, &v, sizeof v);
		else
			k->constant[at * LANES + i] = (uint32_t)v;
	}
	k->constants += slots;
	p->constant = arena_reserve(&p->cx->scratch, p->constant, p->constants, &p->constants_cap, sizeof *p->constant);
	p->constant[p->constants++] = (ConstantName){ v, wide, CONSTANT | (uint32_t)at, p->constant_bucket[h] };
	p->constant_bucket[h] = (uint32_t)p->constants;
	return CONSTANT | (uint32_t)at;
}

/* As ptxas: sizes are equal; untyped (.b) fits all, floats and integers do not fit each other. */
static bool fits(Type reg, Type t)
{
	if (t == T_PRED || reg == T_PRED)
		return reg == t;
	if (type_bytes(reg) != type_bytes(t))
		return false;
	bool untyped = reg == T_B16 || reg == T_B32 || reg == T_B64 || t == T_B16 || t == T_B32 || t == T_B64;
	return untyped || type_is_float(reg) == type_is_float(t);
}

bool register_find(Parser *p, Token t, Type *type, uint32_t *slot)
{
	uint32_t number;
	const Symbol *s = symbol_find(p, t, &number);

	if (!s || s->kind != SYM_REG)
		return false;
	*type = (Type)s->type;
	*slot = s->slot + number * (type_bytes((Type)s->type) == 8 ? 2 : 1);
	return true;
}

/* at_least: registers of loads and stores may be wider than the type. */
uint32_t take_register(Parser *p, Type t, bool at_least)
{
	Token at = p->now;
	Type type;
	uint32_t slot;

	if (!register_find(p, at, &type, &slot))
		parse_fail(p, at, NULL, "expected a register: '%.*s' is none", (int)min_u32(at.len, 40), at.s);
	bool wider = at_least && type != T_PRED && !type_is_float(type) && type_bytes(type) <= 4 &&
	             type_bytes(type) >= type_bytes(t) && !type_is_float(t);
	if (!fits(type, t) && !wider)
		parse_fail(p, at, NULL, "register %.*s is .%s, the instruction takes .%s", (int)min_u32(at.len, 40), at.s,
		           type_name(type), type_name(t));
	ptx_next(p);
	return slot;
}

static bool float_literal(Token t, Type type, uint64_t *v)
{
	char hex[20] = "0x";
	uint32_t digits = type_bytes(type) * 2;
	char letter = digits == 8 ? 'f' : 'd';

	if (t.len != digits + 2 || t.s[0] != '0' || (t.s[1] | 32) != letter)
		return false;
	memcpy(hex + 2, t.s + 2, digits);
	return ptx_whole((Token){ hex, digits + 2 }, v);
}

uint64_t take_immediate(Parser *p, Type t)
{
	Token at = p->now;
	bool negative = ptx_take(p, "-");
	uint64_t v, bits = 8 * type_bytes(t);

	if (!negative && (type_is_float(t) || t == T_B32 || t == T_B64) && float_literal(at, t, &v)) {
		ptx_next(p);
		return v;
	}
	if (type_is_float(t))
		parse_fail(p, at, "write 0fXXXXXXXX or 0dXXXXXXXXXXXXXXXX", "expected a .%s register or literal", type_name(t));
	if (!ptx_whole(p->now, &v))
		parse_fail(p, at, NULL, "expected a .%s register or a number: '%.*s' is none", type_name(t),
		           (int)min_u32(at.len, 40), at.s);
	if (bits < 64 && v >> bits && !(negative && v <= (uint64_t)1 << (bits - 1)))
		parse_fail(p, at, NULL, "a number of %llu bits is too large for .%s", (unsigned long long)bits, type_name(t));
	ptx_next(p);
	v = negative ? 0 - v : v;
	return bits < 64 ? v & (((uint64_t)1 << bits) - 1) : v;
}

uint32_t take_source(Parser *p, Type t)
{
	Type type;
	uint32_t slot;

	if (register_find(p, p->now, &type, &slot))
		return take_register(p, t, false);
	if (t == T_PRED)
		parse_fail(p, p->now, NULL, "expected a predicate");
	return constant_slot(p, take_immediate(p, t), type_bytes(t) == 8);
}

void add_source(Parser *p, Insn *i, Type t)
{
	if (i->sources)
		ptx_expect(p, ",");
	i->a[i->sources++] = take_source(p, t);
}

uint32_t special_slot(Parser *p, uint32_t which)
{
	uint32_t *slot = &p->kernel->special[which];

	if (*slot == NO_SLOT)
		*slot = p->kernel->slots++;
	return *slot;
}

/* [reg], [reg+imm], [name], [name+imm]: a slot and an offset. */
void take_address(Parser *p, Insn *i, Space space)
{
	static const SymbolKind kinds[] = { SYM_PARAM, SYM_SHARED, SYM_GLOBAL, SYM_LOCAL, SYM_CONST };
	Token at;
	uint32_t number;
	uint64_t v;

	ptx_expect(p, "[");
	at = p->now;
	const Symbol *s = symbol_find(p, at, &number);
	bool wide = space == IN_GLOBAL || space == IN_CONST;
	i->offset = 0;
	if (s && s->kind == SYM_REG) {
		Type type = (Type)s->type;
		if (space == IN_PARAM || type == T_PRED || type_is_float(type) || type_bytes(type) != (wide ? 8u : 4u))
			parse_fail(p, at, NULL, "an address of .%s is in a register of %d bits", space_names[space],
			           wide ? 64 : 32);
		i->a[i->sources++] = take_register(p, wide ? T_B64 : T_B32, false);
	} else if (s && s->kind == kinds[space]) {
		ptx_next(p);
		if (s->value == UINT64_MAX)
			i->a[i->sources++] = special_slot(p, SR_DYNAMIC);
		else
			i->a[i->sources++] = constant_slot(p, s->value, wide);
	} else if (ptx_whole(at, &v) && space == IN_SHARED) {
		ptx_next(p);
		i->a[i->sources++] = constant_slot(p, v, wide);
	} else {
		parse_fail(p, at, NULL, "expected an address of .%s: a register or the name of an array", space_names[space]);
	}
	if (ptx_take(p, "+")) {
		bool negative = ptx_take(p, "-");
		if (!ptx_whole(p->now, &v) || v > INT32_MAX)
			parse_fail(p, p->now, NULL, "expected an offset of 32 bits");
		i->offset = negative ? -(int64_t)v : (int64_t)v;
		ptx_next(p);
	}
	ptx_expect(p, "]");
}

uint32_t take_list(Parser *p, uint32_t *slot, uint32_t most, Type t, bool result, bool at_least)
{
	uint32_t n = 0;

	ptx_expect(p, "{");
	do {
		if (n == most)
			parse_fail(p, p->now, NULL, "more than %u elements", most);
		if (result && ptx_take(p, "_"))
			slot[n++] = NO_SLOT;
		else if (result)
			slot[n++] = take_register(p, t, at_least);
		else
			slot[n++] = take_source(p, t);
	} while (ptx_take(p, ","));
	ptx_expect(p, "}");
	return n;
}

void take_registers(Parser *p, uint32_t *slot, uint32_t count, Type t, bool result)
{
	Token at = p->now;

	if (take_list(p, slot, count, t, result, false) != count)
		parse_fail(p, at, NULL, "expected %u registers", count);
	for (uint32_t i = 0; i < count; i++)
		if (slot[i] == NO_SLOT)
			parse_fail(p, at, "name one that nothing reads", "every result here needs a register");
}
