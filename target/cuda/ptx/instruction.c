/* SPDX-License-Identifier: MIT */
/* Instruction decoder. In: tokens up to ';'. Out: an Insn more in the kernel. Must hold: its registers have the
 * width and kind that ptxas requires. */
#include <stdio.h>
#include <string.h>

#include "emulator.h"

const AluRow alu_rows[OP_ALU_END] = {
#define OP(id, names, d, a, b, c, value) { names, T_##d, T_##a, T_##b, T_##c },
#include "ops.def"
#undef OP
};

void alu_names_make(Parser *p)
{
	for (uint32_t op = 0; op < OP_ALU_END; op++)
		for (const char *s = alu_rows[op].names; *s;) {
			Token t = { s, (uint32_t)strcspn(s, " ") };
			uint32_t h = hash_token(t);
			p->op_name = arena_reserve(&p->cx->scratch, p->op_name, p->op_names, &p->op_name_cap, sizeof *p->op_name);
			p->op_name[p->op_names++] = (AluName){ t, (uint16_t)op, p->op_bucket[h] };
			p->op_bucket[h] = (uint32_t)p->op_names;
			s += t.len + (s[t.len] == ' ');
		}
}

static bool alu_find(const Parser *p, Token t, uint16_t *op)
{
	for (uint32_t i = p->op_bucket[hash_token(t)]; i; i = p->op_name[i - 1].chain)
		if (p->op_name[i - 1].name.len == t.len && memcmp(p->op_name[i - 1].name.s, t.s, t.len) == 0) {
			*op = p->op_name[i - 1].op;
			return true;
		}
	return false;
}

/* ---- parts of a mnemonic: st.release.gpu.global.v4.f32 ---- */

typedef struct Parts {
	Token whole, part[12];
	uint32_t count, at;
} Parts;

static Parts split(Parser *p, Token t)
{
	Parts s = { .whole = t };

	for (uint32_t i = 0, from = 0; i <= t.len; i++)
		if (i == t.len || (t.s[i] == '.' && i)) {
			if (s.count == COUNT(s.part))
				parse_fail(p, t, NULL, "an instruction with so many parts is not known");
			s.part[s.count++] = (Token){ t.s + from, i - from };
			from = i + 1;
		}
	s.at = 1;
	return s;
}

static bool part_take(Parts *s, const char *name)
{
	if (s->at < s->count && ptx_is(s->part[s->at], name))
		return s->at++, true;
	return false;
}

static int part_of(Parts *s, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (part_take(s, names[i]))
			return i;
	return -1;
}

_Noreturn static void unknown(Parser *p, const Parts *s)
{
	Token t = s->whole;
	const char *remedy = NULL;

	if ((ptx_is(s->part[0], "add") || ptx_is(s->part[0], "mul") || ptx_is(s->part[0], "sub")) && s->count > 1 &&
	    s->part[s->count - 1].s[0] == 'f')
		remedy = "write .rn: without it ptxas may contract a multiplication and an addition to one fma";
	parse_fail(p, t, remedy, "instruction %.*s is not known", (int)min_u32(t.len, 60), t.s);
}

static Type last_type(Parser *p, Parts *s)
{
	Type t = s->at + 1 == s->count ? type_named(s->part[s->at].s, s->part[s->at].len) : T_NONE;

	if (!t)
		unknown(p, s);
	s->at++;
	return t;
}

static void parts_end(Parser *p, const Parts *s)
{
	if (s->at != s->count)
		unknown(p, s);
}

/* ---- decoders, by kind of instruction ---- */

static void alu_operands(Parser *p, Insn *i)
{
	const AluRow *r = &alu_rows[i->op];

	i->d[i->results++] = take_register(p, r->d, false);
	ptx_expect(p, ",");
	add_source(p, i, r->a);
	if (r->b)
		add_source(p, i, r->b);
	if (r->c)
		add_source(p, i, r->c);
	if (i->op == OP_LOP3 || i->op == OP_BFI_B32) {
		ptx_expect(p, ",");
		i->offset = (int64_t)take_immediate(p, T_U32);
	}
}

static const char *const float_names[] = { "add", "sub", "mul", "div", "fma", "sqrt", "min", "max", "neg", "abs" };

static bool parse_float(Parser *p, Insn *i, Parts *s)
{
	int op = -1;

	if (!ptx_is(s->part[s->count - 1], "f32"))
		return false;
	for (uint32_t k = 0; k < COUNT(float_names); k++)
		if (ptx_is(s->part[0], float_names[k]))
			op = (int)k;
	if (op < 0 || (op <= F_SQRT && !part_take(s, "rn")))
		return false;
	if ((op == F_MIN || op == F_MAX) && part_take(s, "NaN"))
		op += F_MIN_NAN - F_MIN;
	i->op = OP_FLOAT;
	i->sub = (uint8_t)op;
	i->ftz = part_take(s, "ftz");
	i->type = (uint8_t)last_type(p, s);
	i->d[i->results++] = take_register(p, T_F32, false);
	ptx_expect(p, ",");
	int operands = op == F_FMA ? 3 : op == F_SQRT || op == F_NEG || op == F_ABS ? 1 : 2;
	for (int k = 0; k < operands; k++)
		add_source(p, i, T_F32);
	return true;
}

static void parse_setp(Parser *p, Insn *i, Parts *s)
{
	static const char *const names[] = { "eq", "ne", "lt", "le", "gt", "ge", "num", "nan" };
	static const char *const unsigned_names[] = { "lo", "ls", "hi", "hs" };
	static const char *const unordered[] = { "equ", "neu", "ltu", "leu", "gtu", "geu" };
	static const char *const joins[] = { "and", "or", "xor" };
	int c = part_of(s, names, COUNT(names)), low = c < 0 ? part_of(s, unsigned_names, COUNT(unsigned_names)) : -1;
	int u = c < 0 && low < 0 ? part_of(s, unordered, COUNT(unordered)) : -1, join = part_of(s, joins, COUNT(joins));

	i->op = OP_SETP;
	i->ftz = part_take(s, "ftz");
	Type t = last_type(p, s);
	i->type = (uint8_t)t;
	bool is_float = type_is_float(t), is_bits = t == T_B32 || t == T_B64 || t == T_B16;
	bool is_unsigned = t == T_U32 || t == T_U64 || t == T_U16;
	if ((c < 0 && low < 0 && u < 0) || (u >= 0 && !is_float) || (c >= C_NUM && !is_float) ||
	    (low >= 0 && !is_unsigned) || (is_bits && c > C_NE) || type_bytes(t) < 2 || (i->ftz && t != T_F32))
		unknown(p, s);
	i->sub = (uint8_t)(c >= 0 ? c : low >= 0 ? C_LT + low : C_UNORDERED + u);
	i->combine = join < 0 ? 0 : (uint8_t)(P_AND + join);
	i->d[i->results++] = take_register(p, T_PRED, false);
	if (ptx_take(p, "|"))
		i->d[i->results++] = take_register(p, T_PRED, false);
	ptx_expect(p, ",");
	add_source(p, i, t);
	add_source(p, i, t);
	if (i->combine) {
		ptx_expect(p, ",");
		i->last_not = ptx_take(p, "!");
		i->a[i->sources++] = take_source(p, T_PRED);
	}
}

static void parse_selp(Parser *p, Insn *i, Parts *s)
{
	Type t = last_type(p, s);

	i->op = OP_SELP;
	i->type = (uint8_t)t;
	if (type_bytes(t) < 2)
		unknown(p, s);
	i->d[i->results++] = take_register(p, t, false);
	ptx_expect(p, ",");
	add_source(p, i, t);
	add_source(p, i, t);
	add_source(p, i, T_PRED);
}

static bool parse_pred(Parser *p, Insn *i, Parts *s)
{
	static const char *const names[] = { "mov.pred", "not.pred", "and.pred", "or.pred", "xor.pred" };

	for (uint32_t k = 0; k < COUNT(names); k++)
		if (ptx_is(s->whole, names[k])) {
			i->op = OP_PRED;
			i->sub = (uint8_t)k;
			i->d[i->results++] = take_register(p, T_PRED, false);
			ptx_expect(p, ",");
			add_source(p, i, T_PRED);
			if (k >= P_AND)
				add_source(p, i, T_PRED);
			return true;
		}
	return false;
}

static const Special specials[] = {
	{ "%tid.x", SR_TID },           { "%ntid.x", SR_NTID },         { "%ctaid.x", SR_CTAID },
	{ "%nctaid.x", SR_NCTAID },     { "%laneid", SR_LANE },         { "%warpid", SR_WARP },
	{ "%nwarpid", SR_NWARP },       { "%tid.y", SR_ZERO },          { "%tid.z", SR_ZERO },
	{ "%ctaid.y", SR_ZERO },        { "%ctaid.z", SR_ZERO },        { "%ntid.y", SR_ONE },
	{ "%ntid.z", SR_ONE },          { "%nctaid.y", SR_ONE },        { "%nctaid.z", SR_ONE },
	{ "%lanemask_eq", SR_MASK_EQ }, { "%lanemask_lt", SR_MASK_LT }, { "%lanemask_le", SR_MASK_LE },
	{ "%lanemask_gt", SR_MASK_GT }, { "%lanemask_ge", SR_MASK_GE }, { "%smid", SR_CTAID },
	{ "%nsmid", SR_NCTAID },
};

static bool parse_special(Parser *p, Insn *i, Type t)
{
	Token at = p->now;
	bool is64 = ptx_is(at, "%clock64") || ptx_is(at, "%globaltimer");

	for (uint32_t k = 0; k < COUNT(specials); k++)
		if (ptx_is(at, specials[k].name)) {
			if (t != T_U32 && t != T_B32 && t != T_S32)
				parse_fail(p, at, "use mov.u32", "special register of 32 bits");
			ptx_next(p);
			i->a[i->sources++] = special_slot(p, specials[k].which);
			return true;
		}
	if (!is64 && !ptx_is(at, "%clock"))
		return false;
	if (type_bytes(t) != (is64 ? 8u : 4u))
		parse_fail(p, at, NULL, "special register of %d bits", is64 ? 64 : 32);
	ptx_next(p);
	i->op = OP_CLOCK;
	i->type = (uint8_t)t;
	return true;
}

static void parse_mov(Parser *p, Insn *i, Parts *s)
{
	Type t = last_type(p, s);
	uint32_t number;
	uint16_t op;

	i->type = (uint8_t)t;
	if (!alu_find(p, s->whole, &op))
		unknown(p, s);
	Type half = t == T_B64 ? T_B32 : T_B16;
	bool splits = t == T_B64 || t == T_B32;
	if (splits && ptx_is(p->now, "{")) {
		i->op = OP_UNPACK;
		i->results = (uint8_t)take_list(p, i->d, 2, half, true, false);
		ptx_expect(p, ",");
		add_source(p, i, t);
		if (i->results != 2)
			parse_fail(p, s->whole, NULL, "expected two halves");
		return;
	}
	i->d[i->results++] = take_register(p, t, false);
	ptx_expect(p, ",");
	if (splits && ptx_is(p->now, "{")) {
		i->op = OP_PACK;
		i->sources = (uint8_t)take_list(p, i->a, 2, half, false, false);
		if (i->sources != 2)
			parse_fail(p, s->whole, NULL, "expected two halves");
		return;
	}
	i->op = op;
	const Symbol *symbol = symbol_find(p, p->now, &number);
	if (symbol && symbol->kind != SYM_REG && symbol->kind != SYM_PARAM) {
		bool wide = symbol->kind == SYM_GLOBAL || symbol->kind == SYM_CONST;
		if (type_bytes(t) != (wide ? 8u : 4u) || type_is_float(t))
			parse_fail(p, p->now, "use mov.u32 for .shared and .local, mov.u64 for .global", "an address of %d bits",
			           wide ? 64 : 32);
		i->a[i->sources++] =
			symbol->value == UINT64_MAX ? special_slot(p, SR_DYNAMIC) : constant_slot(p, symbol->value, wide);
		ptx_next(p);
	} else if (!parse_special(p, i, t)) {
		add_source(p, i, t);
	}
}

/* -1: no scope. */
static int scope_take(Insn *i, Parts *s)
{
	static const char *const names[] = { "cta", "cluster", "gpu", "sys" };
	int scope = part_of(s, names, COUNT(names));

	i->local_scope = scope == 0 || scope == 1;
	return scope;
}

/* .relaxed and the like need a scope. .volatile, which GPUs take as .relaxed.sys, is weak here: kernels use it to keep
 * loads in order, and nothing may rely on it between warps. */
static void parse_order(Parser *p, Insn *i, Parts *s)
{
	static const char *const names[] = { "weak", "relaxed", "acquire", "release", "acq_rel", "volatile" };
	int o = part_of(s, names, COUNT(names));
	bool strong = o > 0 && o < 5;

	i->order = (uint8_t)(strong ? o : O_WEAK);
	if (strong && scope_take(i, s) < 0)
		unknown(p, s);
}

const char *const space_names[SPACES] = { "param", "shared", "global", "local", "const" };

static bool parse_space(Parts *s, Insn *i)
{
	int k = part_of(s, space_names, COUNT(space_names));

	i->remote = k < 0 && part_take(s, "shared::cluster");
	if (i->remote || (k < 0 && part_take(s, "shared::cta")))
		k = IN_SHARED;
	if (k >= 0)
		i->space = (uint8_t)k;
	return k >= 0;
}

/* st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [a], { ... }, [mbarrier] */
static void parse_store_async(Parser *p, Insn *i, Parts *s)
{
	i->op = OP_STORE_ASYNC;
	if (!parse_space(s, i) || !i->remote || !part_take(s, "mbarrier::complete_tx::bytes"))
		unknown(p, s);
	i->width = part_take(s, "v2") ? 2 : part_take(s, "v4") ? 4 : 1;
	Type t = last_type(p, s);
	if (type_bytes(t) != 4)
		unknown(p, s);
	i->type = (uint8_t)t;
	take_address(p, i, IN_SHARED);
	i->target = (uint32_t)i->offset;
	ptx_expect(p, ",");
	if (i->width > 1)
		i->sources += (uint8_t)take_list(p, i->a + 1, 4, t, false, false);
	else
		i->a[i->sources++] = take_source(p, t);
	if (i->sources != 1 + i->width)
		parse_fail(p, s->whole, NULL, "expected %u registers", i->width);
	ptx_expect(p, ",");
	take_address(p, i, IN_SHARED);
}

/* mbarrier: waits by parity; arrivals return no state. */
static void parse_mbarrier(Parser *p, Insn *i, Parts *s)
{
	static const char *const names[] = { "init", "arrive", "try_wait" };
	static const uint8_t ops[] = { M_INIT, M_ARRIVE, M_WAIT };
	int op = part_of(s, names, COUNT(names));

	if (op < 0)
		unknown(p, s);
	i->op = OP_MBARRIER;
	i->sub = op == 1 && part_take(s, "expect_tx") ? M_EXPECT : ops[op];
	if (i->sub == M_WAIT && !part_take(s, "parity"))
		unknown(p, s);
	if (part_take(s, i->sub == M_WAIT ? "acquire" : "release") && !part_take(s, "cluster"))
		unknown(p, s);
	if (!parse_space(s, i) || i->space != IN_SHARED || last_type(p, s) != T_B64)
		unknown(p, s);
	if (i->sub == M_WAIT) {
		i->d[i->results++] = take_register(p, T_PRED, false);
		ptx_expect(p, ",");
	} else if (i->sub != M_INIT) {
		ptx_expect(p, "_");
		ptx_expect(p, ",");
	}
	take_address(p, i, IN_SHARED);
	if (i->sub != M_ARRIVE)
		add_source(p, i, T_U32);
}

static void parse_memory(Parser *p, Insn *i, Parts *s)
{
	static const char *const hints[] = { "ca",
		                                 "cg",
		                                 "cs",
		                                 "lu",
		                                 "cv",
		                                 "wb",
		                                 "wt",
		                                 "nc",
		                                 "L1::no_allocate",
		                                 "L1::evict_last",
		                                 "L1::evict_first",
		                                 "L2::64B",
		                                 "L2::128B",
		                                 "L2::256B" };
	bool load = ptx_is(s->part[0], "ld");

	if (!load && part_take(s, "async")) {
		parse_store_async(p, i, s);
		return;
	}
	i->op = load ? OP_LOAD : OP_STORE;
	parse_order(p, i, s);
	if (!parse_space(s, i) || (i->order == O_ACQUIRE && !load) || (i->order == O_RELEASE && load) ||
	    i->order == O_ACQ_REL || (!load && (i->space == IN_PARAM || i->space == IN_CONST)))
		unknown(p, s);
	while (part_of(s, hints, COUNT(hints)) >= 0)
		;
	i->width = part_take(s, "v2") ? 2 : part_take(s, "v4") ? 4 : 1;
	Type t = last_type(p, s);
	if (t == T_PRED || type_bytes(t) * i->width > 16)
		unknown(p, s);
	i->type = (uint8_t)t;
	if (load) {
		if (i->width == 1)
			i->d[i->results++] = take_register(p, t, true);
		else
			i->results = (uint8_t)take_list(p, i->d, 4, t, true, true);
		ptx_expect(p, ",");
		take_address(p, i, (Space)i->space);
		if (i->results != i->width)
			parse_fail(p, s->whole, NULL, "expected %u registers", i->width);
		return;
	}
	take_address(p, i, (Space)i->space);
	ptx_expect(p, ",");
	if (i->width > 1) {
		i->sources += (uint8_t)take_list(p, i->a + 1, 4, t, false, false);
	} else {
		Type type;
		uint32_t slot;
		i->a[i->sources++] = register_find(p, p->now, &type, &slot) ? take_register(p, t, true)
		                                                            : take_source(p, type_bytes(t) < 2 ? T_B16 : t);
	}
	if (i->sources != 1 + i->width)
		parse_fail(p, s->whole, NULL, "expected %u registers", i->width);
}

static const char *const atomic_names[] = { "add", "and", "or", "xor", "min", "max", "exch", "cas", "inc", "dec" };

static void parse_atomic(Parser *p, Insn *i, Parts *s)
{
	bool red = ptx_is(s->part[0], "red");

	i->op = OP_ATOMIC;
	parse_order(p, i, s);
	if (i->order == O_WEAK) {
		i->order = O_RELAXED;
		scope_take(i, s); /* default: .gpu */
	}
	if (!parse_space(s, i) || (i->space != IN_SHARED && i->space != IN_GLOBAL))
		unknown(p, s);
	int op = part_of(s, atomic_names, COUNT(atomic_names));
	Type t = last_type(p, s);
	if (type_is_float(t))
		parse_fail(p, s->whole, "sum in a fixed order",
		           "the result of an atomic sum of floats depends on the schedule");
	bool bits = t == T_B32 || t == T_B64, wants_bits = (op >= A_AND && op <= A_XOR) || op == A_EXCH || op == A_CAS;
	if (op < 0 || type_bytes(t) < 4 || bits != wants_bits || (op == A_ADD && t == T_S64) ||
	    (op >= A_INC && t != T_U32) || (red && (op == A_EXCH || op == A_CAS)))
		unknown(p, s);
	i->sub = (uint8_t)op;
	i->type = (uint8_t)t;
	if (!red) {
		i->d[i->results++] = take_register(p, t, false);
		ptx_expect(p, ",");
	}
	take_address(p, i, (Space)i->space);
	add_source(p, i, t);
	if (op == A_CAS)
		add_source(p, i, t);
}

static void parse_copy(Parser *p, Insn *i, Parts *s)
{
	if (bulk_parse(p, i, s->whole))
		return;
	if (part_take(s, "async") && part_take(s, "commit_group")) {
		i->op = OP_CP_COMMIT;
	} else if (part_take(s, "wait_all")) {
		i->op = OP_CP_WAIT;
		i->offset = -1;
	} else if (part_take(s, "wait_group")) {
		i->op = OP_CP_WAIT;
		i->offset = (int64_t)take_immediate(p, T_U32);
	} else {
		bool cg = part_take(s, "cg"), ca = !cg && part_take(s, "ca");
		if ((!ca && !cg) || !(part_take(s, "shared") || part_take(s, "shared::cta")) || !part_take(s, "global"))
			unknown(p, s);
		if (!part_take(s, "L2::128B"))
			part_take(s, "L2::256B");
		i->op = OP_CP_ASYNC;
		Token at = p->now;
		take_address(p, i, IN_SHARED);
		if (i->offset < 0)
			parse_fail(p, at, NULL, "a negative offset from shared memory");
		uint32_t to_offset = (uint32_t)i->offset;
		ptx_expect(p, ",");
		take_address(p, i, IN_GLOBAL);
		i->target = to_offset;
		ptx_expect(p, ",");
		i->width = (uint8_t)take_immediate(p, T_U32);
		if (i->width != 16 && (cg || (i->width != 4 && i->width != 8)))
			parse_fail(p, at, "4, 8 or 16 with .ca, 16 with .cg", "a copy of %u bytes", i->width);
		if (ptx_is(p->now, ","))
			add_source(p, i, T_U32);
	}
	parts_end(p, s);
}

static void parse_barrier(Parser *p, Insn *i, Parts *s)
{
	part_take(s, "cta");
	i->op = OP_BARRIER;
	if (part_take(s, "cluster")) {
		i->op = OP_CLUSTER_BARRIER;
		i->sub = part_take(s, "arrive") ? B_ARRIVE : B_SYNC;
		if (i->sub == B_SYNC && !part_take(s, "wait"))
			unknown(p, s);
		if (!part_take(s, i->sub == B_ARRIVE ? "release" : "acquire") || !part_take(s, "aligned"))
			unknown(p, s);
		parts_end(p, s);
		return;
	}
	if (part_take(s, "warp")) {
		if (!part_take(s, "sync"))
			unknown(p, s);
		i->op = OP_WARP_SYNC;
		add_source(p, i, T_U32);
	} else if (part_take(s, "sync") || part_take(s, "arrive")) {
		i->sub = ptx_is(s->part[s->at - 1], "arrive") ? B_ARRIVE : B_SYNC;
		part_take(s, "aligned");
		add_source(p, i, T_U32);
		if (ptx_is(p->now, ","))
			add_source(p, i, T_U32);
		else if (i->sub == B_ARRIVE)
			parse_fail(p, p->now, NULL, "bar.arrive needs a number of threads");
	} else if (part_take(s, "red")) {
		static const char *const names[] = { "popc", "and", "or" };
		int op = part_of(s, names, COUNT(names));
		part_take(s, "aligned");
		Type t = op < 0 ? T_NONE : last_type(p, s);
		if (t != (op == 0 ? T_U32 : T_PRED))
			unknown(p, s);
		i->sub = (uint8_t)(B_POPC + op);
		i->d[i->results++] = take_register(p, t, false);
		ptx_expect(p, ",");
		i->a[1] = NO_SLOT;
		i->a[i->sources++] = take_source(p, T_U32);
		ptx_expect(p, ",");
		Type type;
		uint32_t slot;
		if (!ptx_is(p->now, "!") &&
		    (!register_find(p, p->now, &type, &slot) || type != T_PRED)) { /* a number of threads, then the predicate */
			i->a[i->sources++] = take_source(p, T_U32);
			ptx_expect(p, ",");
		}
		i->last_not = ptx_take(p, "!");
		i->a[i->sources++] = take_source(p, T_PRED);
	} else {
		unknown(p, s);
	}
	parts_end(p, s);
}

static void parse_shuffle(Parser *p, Insn *i, Parts *s)
{
	static const char *const names[] = { "idx", "up", "down", "bfly" };
	bool sync = part_take(s, "sync");
	int op = part_of(s, names, COUNT(names));

	if (!sync || op < 0 || last_type(p, s) != T_B32)
		unknown(p, s);
	i->op = OP_SHUFFLE;
	i->sub = (uint8_t)op;
	i->d[i->results++] = take_register(p, T_B32, false);
	if (ptx_take(p, "|"))
		i->d[i->results++] = take_register(p, T_PRED, false);
	ptx_expect(p, ",");
	add_source(p, i, T_B32);
	for (int k = 0; k < 3; k++)
		add_source(p, i, T_U32);
}

static void parse_vote(Parser *p, Insn *i, Parts *s)
{
	static const char *const names[] = { "ballot", "any", "all", "uni" };
	bool sync = part_take(s, "sync");
	int op = part_of(s, names, COUNT(names));
	Type t = op < 0 ? T_NONE : last_type(p, s);

	if (!sync || op < 0 || t != (op == V_BALLOT ? T_B32 : T_PRED))
		unknown(p, s);
	i->op = OP_VOTE;
	i->sub = (uint8_t)op;
	i->d[i->results++] = take_register(p, t, false);
	ptx_expect(p, ",");
	i->last_not = ptx_take(p, "!");
	add_source(p, i, T_PRED);
	add_source(p, i, T_U32);
}

static void parse_warp_sum(Parser *p, Insn *i, Parts *s)
{
	bool match = ptx_is(s->part[0], "match");

	if (match) {
		if (!part_take(s, "any") || !part_take(s, "sync") || last_type(p, s) != T_B32)
			unknown(p, s);
		i->op = OP_MATCH;
	} else {
		bool sync = part_take(s, "sync");
		int op = part_of(s, atomic_names, A_EXCH);
		Type t = last_type(p, s);
		if (!sync || op < 0 || type_bytes(t) != 4 || type_is_float(t))
			unknown(p, s);
		i->op = OP_REDUX;
		i->sub = (uint8_t)op;
		i->type = (uint8_t)t;
	}
	i->d[i->results++] = take_register(p, T_B32, false);
	ptx_expect(p, ",");
	add_source(p, i, T_B32);
	add_source(p, i, T_U32);
}

/* A fragment: registers in braces, all results or all sources. */
static void take_fragment(Parser *p, Insn *i, uint32_t count, Type t, bool result)
{
	take_registers(p, result ? i->d : i->a + i->sources, count, t, result);
	if (result)
		i->results = (uint8_t)count;
	else
		i->sources += (uint8_t)count;
}

/* mma.m16n8k16, bf16 operands, f32 sums: no other shape. */
static void parse_mma(Parser *p, Insn *i, Parts *s)
{
	static const struct {
		uint32_t count;
		Type t;
	} source[] = { { 4, T_B32 }, { 2, T_B32 }, { 4, T_F32 } };

	if (!ptx_is(s->whole, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"))
		unknown(p, s);
	i->op = OP_MMA;
	take_fragment(p, i, 4, T_F32, true);
	for (uint32_t k = 0; k < COUNT(source); k++) {
		ptx_expect(p, ",");
		take_fragment(p, i, source[k].count, source[k].t, false);
	}
}

/* ldmatrix: 8 by 8 matrices of 16-bit elements; groups of 8 lanes have the addresses of their rows. */
static void parse_ldmatrix(Parser *p, Insn *i, Parts *s)
{
	static const char *const counts[] = { "x1", "x2", "x4" };
	bool known = part_take(s, "sync") && part_take(s, "aligned") && part_take(s, "m8n8");
	int count = known ? part_of(s, counts, COUNT(counts)) : -1;

	i->sub = part_take(s, "trans");
	if (count < 0 || !(part_take(s, "shared") || part_take(s, "shared::cta")) || last_type(p, s) != T_B16)
		unknown(p, s);
	i->op = OP_LDMATRIX;
	i->space = IN_SHARED;
	i->width = (uint8_t)(1 << count);
	take_fragment(p, i, i->width, T_B32, true);
	ptx_expect(p, ",");
	take_address(p, i, IN_SHARED);
}

static void parse_group(Parser *p, Insn *i, Parts *s)
{
	if (!wgmma_parse(p, i, s->whole))
		unknown(p, s);
}

static void parse_branch(Parser *p, Insn *i, Parts *s)
{
	part_take(s, "uni");
	parts_end(p, s);
	i->op = OP_BRANCH;
	if (!p->now.len || ptx_is(p->now, ";"))
		parse_fail(p, p->now, NULL, "expected a label");
	i->target = (uint32_t)(label_find(p, p->now) - p->label);
	ptx_next(p);
}

static void parse_fence(Parser *p, Insn *i, Parts *s)
{
	static const char *const levels[] = { "cta", "cluster", "gpu", "sys", "gl" };
	bool fence = ptx_is(s->part[0], "fence");

	if (fence && part_take(s, "proxy")) {
		if (!part_take(s, "async"))
			unknown(p, s);
		i->op = OP_PROXY_FENCE;
		i->sub = part_take(s, "global")                                           ? FENCE_GLOBAL
		         : part_take(s, "shared::cta") || part_take(s, "shared::cluster") ? FENCE_SHARED
		                                                                          : FENCE_SHARED | FENCE_GLOBAL;
		parts_end(p, s);
		return;
	}
	if (fence && !part_take(s, "acq_rel"))
		part_take(s, "sc");
	int level = part_of(s, levels, fence ? 4 : COUNT(levels));
	if (level < 0 || s->at != s->count)
		unknown(p, s);
	i->local_scope = level < 2;
	i->op = OP_FENCE;
}

static void parse_prefetch(Parser *p, Insn *i, Parts *s)
{
	if (!part_take(s, "global") || !(part_take(s, "L1") || part_take(s, "L2")))
		unknown(p, s);
	parts_end(p, s);
	i->op = OP_NOP;
	take_address(p, i, IN_GLOBAL);
}

static void parse_sleep(Parser *p, Insn *i, Parts *s)
{
	if (last_type(p, s) != T_U32)
		unknown(p, s);
	i->op = OP_SLEEP;
	add_source(p, i, T_U32);
}

static void parse_end(Parser *p, Insn *i, Parts *s)
{
	parts_end(p, s);
	i->op = ptx_is(s->whole, "trap") ? OP_TRAP : OP_EXIT;
}

static const struct {
	const char *name;
	void (*parse)(Parser *p, Insn *i, Parts *s);
} kinds[] = {
	{ "setp", parse_setp },         { "selp", parse_selp },      { "mov", parse_mov },
	{ "ld", parse_memory },         { "st", parse_memory },      { "atom", parse_atomic },
	{ "red", parse_atomic },        { "cp", parse_copy },        { "bar", parse_barrier },
	{ "barrier", parse_barrier },   { "shfl", parse_shuffle },   { "vote", parse_vote },
	{ "match", parse_warp_sum },    { "redux", parse_warp_sum }, { "bra", parse_branch },
	{ "membar", parse_fence },      { "fence", parse_fence },    { "prefetch", parse_prefetch },
	{ "nanosleep", parse_sleep },   { "exit", parse_end },       { "ret", parse_end },
	{ "trap", parse_end },          { "mma", parse_mma },        { "ldmatrix", parse_ldmatrix },
	{ "mbarrier", parse_mbarrier }, { "wgmma", parse_group },
};

static void parse_operation(Parser *p, Insn *i, Parts *s)
{
	if (parse_pred(p, i, s))
		return;
	for (uint32_t k = 0; k < COUNT(kinds); k++)
		if (ptx_is(s->part[0], kinds[k].name)) {
			kinds[k].parse(p, i, s);
			return;
		}
	if (alu_find(p, s->whole, &i->op)) {
		alu_operands(p, i);
		return;
	}
	if (!parse_float(p, i, s))
		unknown(p, s);
}

void instruction_parse(Parser *p)
{
	Kernel *k = p->kernel;
	Insn i = { .guard = NO_SLOT, .at = (uint32_t)(p->now.s - p->m->src.text) };
	bool guarded = ptx_take(p, "@");

	if (guarded) {
		i.guard_not = ptx_take(p, "!");
		i.guard = take_register(p, T_PRED, false);
	}
	Token name = p->now;
	ptx_next(p);
	if (!guarded && ptx_take(p, ":")) {
		Label *l = label_find(p, name);
		if (l->pc != NO_PC)
			parse_fail(p, name, NULL, "two labels of this name");
		l->pc = (uint32_t)k->length;
		return;
	}
	Parts s = split(p, name);
	parse_operation(p, &i, &s);
	ptx_expect(p, ";");
	k->code = arena_reserve(&p->m->arena, k->code, k->length, &k->code_cap, sizeof *k->code);
	k->code[k->length++] = i;
}
