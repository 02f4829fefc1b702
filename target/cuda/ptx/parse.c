/* SPDX-License-Identifier: MIT */
/* PTX text to kernels. In: a text. Out: kernels with decoded instructions, arrays of the module. Must hold: what is not
 * known is an error at its place; registers and labels are local to a kernel; labels are resolved at its end. */
#include <stdio.h>
#include <string.h>

#include "emulator.h"

/* ---- tokens: words with their dots and ::, single characters ---- */

void parse_fail(Parser *p, Token at, const char *remedy, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fail_at(p->cx, (Loc){ &p->m->src, (size_t)(at.s - p->m->src.text) }, remedy, "%s", text);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
	       c == '%' || c == '$';
}

static void skip_blanks(Parser *p)
{
	while (p->p < p->end) {
		if (*p->p == ' ' || *p->p == '\t' || *p->p == '\n' || *p->p == '\r') {
			p->p++;
		} else if (p->end - p->p > 1 && p->p[0] == '/' && p->p[1] == '/') {
			while (p->p < p->end && *p->p != '\n')
				p->p++;
		} else if (p->end - p->p > 1 && p->p[0] == '/' && p->p[1] == '*') {
			const char *from = p->p;
			for (p->p += 2; p->end - p->p > 1 && !(p->p[0] == '*' && p->p[1] == '/'); p->p++)
				;
			if (p->end - p->p < 2)
				parse_fail(p, (Token){ from, 2 }, "close it with */", "comment without an end");
			p->p += 2;
		} else {
			return;
		}
	}
}

void ptx_next(Parser *p)
{
	skip_blanks(p);
	const char *s = p->p;
	if (s == p->end) {
		p->now = (Token){ s, 0 };
		return;
	}
	while (p->p < p->end && (is_word(*p->p) || (*p->p == ':' && p->end - p->p > 1 && p->p[1] == ':') ||
	                         (*p->p == ':' && p->p > s && p->p[-1] == ':')))
		p->p++;
	if (p->p == s)
		p->p++;
	p->now = (Token){ s, (uint32_t)(p->p - s) };
}

bool ptx_is(Token t, const char *s) { return strlen(s) == t.len && memcmp(t.s, s, t.len) == 0; }

bool ptx_take(Parser *p, const char *s)
{
	if (!ptx_is(p->now, s))
		return false;
	ptx_next(p);
	return true;
}

void ptx_expect(Parser *p, const char *s)
{
	if (!ptx_take(p, s))
		parse_fail(p, p->now, NULL, "expected '%s'", s);
}

static Token take_word(Parser *p, const char *what)
{
	Token t = p->now;

	if (!t.len || !is_word(*t.s))
		parse_fail(p, t, NULL, "expected %s", what);
	ptx_next(p);
	return t;
}

bool ptx_whole(Token t, uint64_t *v)
{
	uint64_t base = 10, n = 0;
	uint32_t i = 0;

	if (t.len > 2 && t.s[0] == '0' && (t.s[1] == 'x' || t.s[1] == 'X'))
		base = 16, i = 2;
	if (i == t.len)
		return false;
	if (t.s[t.len - 1] == 'U' && t.len > i + 1)
		t.len--;
	for (; i < t.len; i++) {
		char c = t.s[i];
		uint64_t digit = c >= '0' && c <= '9'   ? (uint64_t)(c - '0')
		                 : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a' + 10)
		                 : c >= 'A' && c <= 'F' ? (uint64_t)(c - 'A' + 10)
		                                        : 16;
		if (digit >= base || n > (UINT64_MAX - digit) / base)
			return false;
		n = n * base + digit;
	}
	*v = n;
	return true;
}

static uint64_t take_whole(Parser *p, const char *what, uint64_t most)
{
	Token t = p->now;
	uint64_t v;

	if (!ptx_whole(t, &v) || v > most)
		parse_fail(p, t, NULL, "expected %s, at most %llu", what, (unsigned long long)most);
	ptx_next(p);
	return v;
}

/* ---- names ---- */

uint32_t hash_token(Token t)
{
	uint32_t h = 2166136261u;

	for (uint32_t i = 0; i < t.len; i++)
		h = (h ^ (uint8_t)t.s[i]) * 16777619u;
	return (h ^ h >> 13) % BUCKETS;
}

static bool same_name(Token a, Token b) { return a.len == b.len && memcmp(a.s, b.s, a.len) == 0; }

static const Symbol *symbol_named(const Parser *p, Token name)
{
	for (uint32_t i = p->symbol_bucket[hash_token(name)]; i; i = p->symbol[i - 1].chain)
		if (same_name(p->symbol[i - 1].name, name))
			return &p->symbol[i - 1];
	return NULL;
}

/* A name, or a number after the name of a range: %r12 of %r<20>. */
const Symbol *symbol_find(const Parser *p, Token name, uint32_t *number)
{
	const Symbol *s = symbol_named(p, name);
	Token prefix = name;
	uint64_t n;

	*number = 0;
	if (s)
		return s->count ? NULL : s;
	while (prefix.len && prefix.s[prefix.len - 1] >= '0' && prefix.s[prefix.len - 1] <= '9')
		prefix.len--;
	while (prefix.len < name.len) {
		Token digits = { name.s + prefix.len, name.len - prefix.len };
		s = symbol_named(p, prefix);
		if (s && s->count && ptx_whole(digits, &n) && n < s->count && (digits.len == 1 || *digits.s != '0')) {
			*number = (uint32_t)n;
			return s;
		}
		prefix.len++;
	}
	return NULL;
}

static void symbol_add(Parser *p, Symbol s)
{
	s.hash = hash_token(s.name);
	s.chain = p->symbol_bucket[s.hash];
	p->symbol = arena_reserve(&p->cx->scratch, p->symbol, p->symbols, &p->symbol_cap, sizeof *p->symbol);
	p->symbol[p->symbols++] = s;
	p->symbol_bucket[s.hash] = (uint32_t)p->symbols;
}

static void symbols_drop(Parser *p, uint64_t from)
{
	while (p->symbols > from) {
		const Symbol *s = &p->symbol[--p->symbols];
		p->symbol_bucket[s->hash] = s->chain;
	}
}

Label *label_find(Parser *p, Token name)
{
	uint32_t h = hash_token(name);

	for (uint32_t i = p->label_bucket[h]; i; i = p->label[i - 1].chain)
		if (same_name(p->label[i - 1].name, name))
			return &p->label[i - 1];
	p->label = arena_reserve(&p->cx->scratch, p->label, p->labels, &p->label_cap, sizeof *p->label);
	p->label[p->labels++] = (Label){ .name = name, .pc = NO_PC, .chain = p->label_bucket[h] };
	p->label_bucket[h] = (uint32_t)p->labels;
	return &p->label[p->labels - 1];
}

/* ---- types ---- */

static const struct {
	const char *name;
	uint32_t bytes;
} types[] = {
	[T_NONE] = { "", 0 },   [T_PRED] = { "pred", 0 }, [T_B8] = { "b8", 1 },   [T_U8] = { "u8", 1 },
	[T_S8] = { "s8", 1 },   [T_B16] = { "b16", 2 },   [T_U16] = { "u16", 2 }, [T_S16] = { "s16", 2 },
	[T_B32] = { "b32", 4 }, [T_U32] = { "u32", 4 },   [T_S32] = { "s32", 4 }, [T_F32] = { "f32", 4 },
	[T_B64] = { "b64", 8 }, [T_U64] = { "u64", 8 },   [T_S64] = { "s64", 8 }, [T_F64] = { "f64", 8 },
};

uint32_t type_bytes(Type t) { return types[t].bytes; }
bool type_is_float(Type t) { return t == T_F32 || t == T_F64; }
const char *type_name(Type t) { return types[t].name; }

Type type_named(const char *s, size_t len)
{
	for (uint32_t i = T_PRED; i < COUNT(types); i++)
		if (strlen(types[i].name) == len && memcmp(types[i].name, s, len) == 0)
			return (Type)i;
	return T_NONE;
}

static Type take_type(Parser *p)
{
	Token t = p->now;
	Type type = t.len > 1 && *t.s == '.' ? type_named(t.s + 1, t.len - 1) : T_NONE;

	if (!type)
		parse_fail(p, t, "use .b8 to .f64 or .pred", "expected a type");
	ptx_next(p);
	return type;
}

/* ---- declarations ---- */

static void parse_registers(Parser *p)
{
	Token at = p->now;
	Type type = take_type(p);
	uint32_t slots = type_bytes(type) == 8 ? 2 : 1;

	if (type == T_B8 || type == T_U8 || type == T_S8)
		parse_fail(p, at, "use .b16", "registers have 16 bits or more");
	do {
		Symbol s = { .name = take_word(p, "the name of a register"), .kind = SYM_REG, .type = (uint8_t)type };
		uint64_t count = 1;
		s.slot = p->kernel->slots;
		if (ptx_take(p, "<")) {
			count = s.count = (uint32_t)take_whole(p, "how many registers", 1 << 20);
			ptx_expect(p, ">");
		}
		if (p->kernel->slots + count * slots > 1 << 22)
			parse_fail(p, s.name, NULL, "too many registers");
		p->registers =
			arena_reserve(&p->cx->scratch, p->registers, p->register_runs, &p->register_cap, sizeof *p->registers);
		p->registers[p->register_runs++] = (Registers){ type, s.slot, (uint32_t)count };
		p->kernel->slots += (uint32_t)count * slots;
		if (count)
			symbol_add(p, s);
	} while (ptx_take(p, ","));
	ptx_expect(p, ";");
}

static uint64_t take_alignment(Parser *p, uint64_t natural)
{
	Token at = p->now;
	uint64_t n;

	if (!ptx_take(p, ".align"))
		return natural;
	n = take_whole(p, "an alignment", 1 << 12);
	if (!n || (n & (n - 1)))
		parse_fail(p, at, NULL, "an alignment is a power of two");
	return n;
}

typedef struct Array {
	Token name;
	Type type;
	uint64_t align, bytes;
	bool open; /* [] */
} Array;

static Array take_array(Parser *p)
{
	Array a = { .align = 0 };
	uint64_t align = take_alignment(p, 0);

	a.type = take_type(p);
	if (!type_bytes(a.type))
		parse_fail(p, p->now, NULL, "predicates are registers");
	a.align = align ? align : type_bytes(a.type);
	a.bytes = type_bytes(a.type);
	a.name = take_word(p, "the name of an array");
	if (ptx_take(p, "[")) {
		a.open = ptx_is(p->now, "]");
		a.bytes *= a.open ? 0 : take_whole(p, "the length of an array", 1 << 28);
		ptx_expect(p, "]");
	}
	return a;
}

static void fill_array(Parser *p, const Array *a, uint8_t *to)
{
	uint64_t size = type_bytes(a->type), at = 0, v;
	bool brace = ptx_take(p, "{");

	do {
		Token t = p->now;
		bool negative = ptx_take(p, "-");
		Token number = p->now;
		if (number.len > 2 && number.s[0] == '0' && (number.s[1] == 'f' || number.s[1] == 'd')) {
			char hex[32];
			snprintf(hex, sizeof hex, "0x%.*s", (int)min_u32(number.len - 2, 20), number.s + 2);
			if (number.len != 2 + 2 * size || !ptx_whole((Token){ hex, (uint32_t)strlen(hex) }, &v))
				parse_fail(p, t, NULL, "expected a number of %llu bytes", (unsigned long long)size);
		} else if (!ptx_whole(number, &v)) {
			parse_fail(p, t, NULL, "expected a number");
		}
		ptx_next(p);
		if (at + size > a->bytes)
			parse_fail(p, t, NULL, "more numbers than the array has elements");
		v = negative ? 0 - v : v;
		memcpy(to + at, &v, size);
		at += size;
	} while (ptx_take(p, ","));
	if (brace)
		ptx_expect(p, "}");
}

static void parse_global(Parser *p, SymbolKind kind)
{
	Array a = take_array(p);
	Global *g = NEW(&p->m->arena, 1, Global);

	if (a.open || !a.bytes)
		parse_fail(p, a.name, NULL, "an array of the module needs a length");
	g->at = allocation_add(p->m->emulator, a.bytes, kind == SYM_CONST);
	if (!g->at)
		parse_fail(p, a.name, NULL, "no memory of the device is left");
	g->next = p->m->global;
	p->m->global = g;
	memset(g->at, 0, a.bytes);
	if (ptx_take(p, "="))
		fill_array(p, &a, g->at);
	ptx_expect(p, ";");
	symbol_add(p, (Symbol){ .name = a.name, .kind = (uint8_t)kind, .value = (uintptr_t)g->at });
}

/* Extern arrays (dynamic shared memory) begin where static ones end, which is not known yet: their address is a special
 * register, SR_DYNAMIC, written at launch. */
static void parse_shared(Parser *p, bool is_extern)
{
	Array a = take_array(p);
	uint32_t *used = p->kernel ? &p->kernel->shared : &p->shared;
	uint64_t at = round_up(*used, a.align);

	if (a.open != is_extern)
		parse_fail(p, a.name, "write .extern .shared name[]; or .shared name[N];",
		           "a shared array is extern or has a length");
	ptx_expect(p, ";");
	if (is_extern) {
		symbol_add(p, (Symbol){ .name = a.name, .kind = SYM_SHARED, .count = 0, .value = UINT64_MAX });
		return;
	}
	if (at + a.bytes > 1 << 18)
		parse_fail(p, a.name, NULL, "more than 256 KB of shared memory");
	*used = (uint32_t)(at + a.bytes);
	symbol_add(p, (Symbol){ .name = a.name, .kind = SYM_SHARED, .value = at });
}

static void parse_local(Parser *p)
{
	Array a = take_array(p);
	uint64_t at = round_up(p->kernel->local, a.align);

	if (a.open || at + a.bytes > 1 << 19)
		parse_fail(p, a.name, NULL, "a local array needs a length, 512 KB at most");
	ptx_expect(p, ";");
	p->kernel->local = (uint32_t)(at + a.bytes);
	symbol_add(p, (Symbol){ .name = a.name, .kind = SYM_LOCAL, .value = at });
}

/* ---- kernels ---- */

static void parse_param(Parser *p)
{
	Kernel *k = p->kernel;

	ptx_expect(p, ".param");
	Array a = take_array(p);
	if (a.open || a.bytes > 4096)
		parse_fail(p, a.name, NULL, "a parameter has at most 4096 bytes");
	k->param = arena_reserve(&p->m->arena, k->param, k->params, &k->param_cap, sizeof *k->param);
	uint32_t at = (uint32_t)round_up(k->param_bytes, a.align);
	k->param[k->params++] = (KernelParam){ arena_copy(&p->m->arena, a.name.s, a.name.len), at, (uint32_t)a.bytes };
	k->param_bytes = at + (uint32_t)a.bytes;
	if (k->param_bytes > 4096)
		parse_fail(p, a.name, NULL, "parameters have at most 4096 bytes in all");
	symbol_add(p, (Symbol){ .name = a.name, .kind = SYM_PARAM, .value = at });
}

static void parse_limits(Parser *p)
{
	for (;;) {
		bool most = ptx_is(p->now, ".maxntid"), exact = ptx_is(p->now, ".reqntid");
		if (most || exact) {
			ptx_next(p);
			p->kernel->threads = (uint32_t)take_whole(p, "a number of threads", 1024);
			p->kernel->threads_exact = exact;
			while (ptx_take(p, ","))
				if (take_whole(p, "1", 1) != 1)
					parse_fail(p, p->now, NULL, "blocks have one dimension");
		} else if (ptx_take(p, ".minnctapersm") || ptx_take(p, ".maxnreg") || ptx_take(p, ".maxclusterrank")) {
			take_whole(p, "a number", 1024);
		} else if (ptx_take(p, ".explicitcluster")) {
			continue;
		} else if (ptx_take(p, ".reqnctapercluster")) {
			take_whole(p, "a number of blocks", 16);
			while (ptx_take(p, ","))
				take_whole(p, "1", 1);
		} else {
			return;
		}
	}
}

static void parse_body(Parser *p)
{
	uint64_t outside = p->symbols;

	for (;;) {
		Token t = p->now;
		if (!t.len)
			parse_fail(p, t, "close it with }", "the kernel has no end");
		if (ptx_take(p, "}"))
			break;
		if (ptx_take(p, "{"))
			parse_body(p);
		else if (ptx_take(p, ".reg"))
			parse_registers(p);
		else if (ptx_take(p, ".shared"))
			parse_shared(p, false);
		else if (ptx_take(p, ".local"))
			parse_local(p);
		else if (ptx_take(p, ".pragma"))
			while (!ptx_take(p, ";")) {
				if (!p->now.len)
					parse_fail(p, t, NULL, ".pragma without ;");
				ptx_next(p);
			}
		else
			instruction_parse(p);
	}
	symbols_drop(p, outside);
}

static void resolve_labels(Parser *p)
{
	Kernel *k = p->kernel;

	for (uint64_t i = 0; i < p->labels; i++)
		if (p->label[i].pc == NO_PC)
			parse_fail(p, p->label[i].name, NULL, "no label %.*s in this kernel",
			           (int)min_u32(p->label[i].name.len, 60), p->label[i].name.s);
	for (uint64_t i = 0; i < k->length; i++)
		if (k->code[i].op == OP_BRANCH)
			k->code[i].target = p->label[k->code[i].target].pc;
}

static bool is_poll(const Insn *i)
{
	bool ordered = i->order == O_RELAXED || i->order == O_ACQUIRE;

	return (i->op == OP_LOAD && ordered && i->space == IN_GLOBAL) || (i->op == OP_MBARRIER && i->sub == M_WAIT);
}

/* Innermost loops that poll: branches that leave them. */
static void find_polls(Kernel *k)
{
	uint64_t last = 0; /* after the backward branch before */

	for (uint64_t end = 0; end < k->length; end++) {
		const Insn *back = &k->code[end];
		if (back->op != OP_BRANCH || back->target > end)
			continue;
		bool polls = false;
		for (uint64_t i = back->target; i < end && back->target >= last; i++)
			polls |= is_poll(&k->code[i]);
		for (uint64_t i = back->target; i < end && polls; i++)
			k->code[i].leaves_poll = k->code[i].op == OP_BRANCH && k->code[i].target > end;
		last = end + 1;
	}
}

static void parse_entry(Parser *p)
{
	Kernel *k = NEW(&p->m->arena, 1, Kernel);
	uint64_t outside = p->symbols;
	Token name = take_word(p, "the name of a kernel");

	k->of = p->m;
	k->name = arena_copy(&p->m->arena, name.s, name.len);
	k->next = p->m->kernel;
	k->shared = p->shared;
	for (int i = 0; i < SR_COUNT; i++)
		k->special[i] = NO_SLOT;
	if (emulator_kernel(p->m, k->name))
		parse_fail(p, name, NULL, "two kernels of this name");
	p->kernel = k;
	p->labels = p->constants = p->register_runs = 0;
	memset(p->label_bucket, 0, sizeof p->label_bucket);
	memset(p->constant_bucket, 0, sizeof p->constant_bucket);
	if (ptx_take(p, "(") && !ptx_take(p, ")")) {
		do
			parse_param(p);
		while (ptx_take(p, ","));
		ptx_expect(p, ")");
	}
	parse_limits(p);
	ptx_expect(p, "{");
	parse_body(p);
	resolve_labels(p);
	find_polls(p->kernel);
	symbols_drop(p, outside);
	p->kernel = NULL;
	p->m->kernel = k;
	k->code = arena_reserve(&p->m->arena, k->code, k->length, &k->code_cap, sizeof *k->code);
	k->code[k->length++] = (Insn){ .op = OP_EXIT, .guard = NO_SLOT, .at = (uint32_t)(p->now.s - p->m->src.text) };
	registers_allocate(k, &p->cx->scratch, p->registers, p->register_runs);
}

static void parse_top(Parser *p)
{
	Token t = p->now;

	if (ptx_take(p, ".version")) {
		if (ptx_next(p), p->now.len && *p->now.s == ';')
			parse_fail(p, t, NULL, "no ; after .version");
	} else if (ptx_take(p, ".target")) {
		do
			take_word(p, "an architecture, as sm_80");
		while (ptx_take(p, ","));
	} else if (ptx_take(p, ".address_size")) {
		if (take_whole(p, "64", 64) != 64)
			parse_fail(p, t, NULL, "addresses have 64 bits");
	} else if (ptx_take(p, ".visible") || ptx_take(p, ".weak")) {
		/* the linking of what follows */
	} else if (ptx_take(p, ".entry")) {
		parse_entry(p);
	} else if (ptx_take(p, ".extern")) {
		ptx_expect(p, ".shared");
		parse_shared(p, true);
	} else if (ptx_take(p, ".shared")) {
		parse_shared(p, false);
	} else if (ptx_take(p, ".global")) {
		parse_global(p, SYM_GLOBAL);
	} else if (ptx_take(p, ".const")) {
		parse_global(p, SYM_CONST);
	} else {
		parse_fail(p, t, NULL, "no declaration begins with '%.*s'", (int)min_u32(t.len, 40), t.s);
	}
}

void module_parse(Module *m)
{
	Parser *p = NEW(&m->emulator->cx->scratch, 1, Parser);

	p->m = m;
	p->cx = m->emulator->cx;
	p->p = m->src.text;
	p->end = p->p + m->src.len;
	alu_names_make(p);
	ptx_next(p);
	while (p->now.len)
		parse_top(p);
	if (!m->kernel)
		parse_fail(p, p->now, NULL, "the text has no .entry");
}
