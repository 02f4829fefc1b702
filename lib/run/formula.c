/* SPDX-License-Identifier: MIT */
/* The formula of an update rule, from its text in rules.def to straight-line code.
 *
 *     rule    = assign { ";" assign } [ ";" ]
 *     assign  = name "=" select
 *     select  = compare [ "?" select ":" select ]
 *     compare = sum [ ( "<" | "<=" | ">" | ">=" ) sum ]
 *     sum     = term { ( "+" | "-" ) term }
 *     term    = unary { ( "*" | "/" ) unary }
 *     unary   = "-" unary | primary
 *     primary = number | name | function "(" select { "," select } ")" | "(" select ")"
 *
 * In: a Rule.  Out: a Formula: every op a value, made from values before it.  Must hold: an assignment to w or to state
 * stores it; to any other name, it names the value from there on; a name that was assigned means its new value.  Each
 * variable is loaded once at most, and equal ops are one. */
#include <string.h>

#include "run.h"

enum { MAX_NAMES = 64 };

typedef struct Name {
	const char *s;
	size_t len;
	uint8_t value;
} Name; /* a value that has a name by now */

typedef struct Parser {
	Ctx *cx;
	const Rule *rule;
	const char *at; /* the next character */
	Formula *f;
	Name name[MAX_NAMES];
	int names;
} Parser;

/* Functions that are one op, and how ops are written by formula_print. */
/* clang-format off: a table */
static const struct {
	const char *name, *print;
	int args;
} op_table[OP_COUNT] = {
	[OP_ADD] = { NULL, "v%u + v%u", 2 },
	[OP_SUB] = { NULL, "v%u - v%u", 2 },
	[OP_MUL] = { NULL, "v%u * v%u", 2 },
	[OP_DIV] = { NULL, "v%u / v%u", 2 },
	[OP_FMA] = { "fma", "fma(v%u, v%u, v%u)", 3 },
	[OP_NEG] = { NULL, "-v%u", 1 },
	[OP_ABS] = { "abs", "abs(v%u)", 1 },
	[OP_SQRT] = { "sqrt", "sqrt(v%u)", 1 },
	[OP_MIN] = { "min", "min(v%u, v%u)", 2 },
	[OP_MAX] = { "max", "max(v%u, v%u)", 2 },
	[OP_LT] = { NULL, "v%u < v%u", 2 },
	[OP_LE] = { NULL, "v%u <= v%u", 2 },
	[OP_SELECT] = { NULL, "v%u ? v%u : v%u", 3 },
};
/* clang-format on */

static uint8_t select_(Parser *p);

static _Noreturn void wrong(Parser *p, const char *what)
{
	fail(p->cx, MP_FAILED, "correct the formula in lib/rules.def", "rule %s, character %d of its formula: %s",
	     p->rule->name, (int)(p->at - p->rule->formula) + 1, what);
}

/* ---- ops and names ---- */

static uint8_t emit(Parser *p, int op, uint8_t a, uint8_t b, uint8_t c, double value)
{
	Formula *f = p->f;

	for (uint32_t i = 0; i < f->ops; i++) {
		const Op *o = &f->op[i];
		if (o->op == op && op != OP_STORE && o->a == a && o->b == b && o->c == c && o->value == value)
			return (uint8_t)i;
	}
	if (f->ops == MAX_OPS)
		wrong(p, "too many operations");
	f->op[f->ops] = (Op){ .op = (uint8_t)op, .a = a, .b = b, .c = c, .value = value };
	return (uint8_t)f->ops++;
}

static uint8_t constant(Parser *p, double value) { return emit(p, OP_CONST, 0, 0, 0, value); }

static bool same(const char *name, const char *s, size_t len)
{
	return name && strlen(name) == len && memcmp(name, s, len) == 0;
}

/* 0 g, 1 w, 2.. state; -1 if it is none of these. */
static int variable(const Rule *rule, const char *s, size_t len)
{
	if (len == 1 && (*s == 'g' || *s == 'w'))
		return *s == 'w';
	for (int i = 0; i < rule->states; i++)
		if (same(rule->state[i], s, len))
			return i + 2;
	return -1;
}

static void bind_name(Parser *p, const char *s, size_t len, uint8_t value)
{
	if (p->names == MAX_NAMES)
		wrong(p, "too many names");
	p->name[p->names++] = (Name){ s, len, value };
}

static uint8_t name_value(Parser *p, const char *s, size_t len)
{
	int v = variable(p->rule, s, len);

	for (int i = p->names - 1; i >= 0; i--)
		if (p->name[i].len == len && memcmp(p->name[i].s, s, len) == 0)
			return p->name[i].value;
	if (v >= 0)
		return emit(p, OP_LOAD, (uint8_t)v, 0, 0, 0);
	for (int i = 0; i < P_COUNT; i++)
		if (same(param_names[i], s, len))
			return emit(p, OP_PARAM, (uint8_t)i, 0, 0, 0);
	wrong(p, "unknown name before this");
}

/* ---- text ---- */

static void skip_space(Parser *p)
{
	while (*p->at == ' ' || *p->at == '\n' || *p->at == '\t')
		p->at++;
}

/* Takes the word if it stands here. */
static bool accept(Parser *p, const char *word)
{
	size_t len = strlen(word);

	skip_space(p);
	if (strncmp(p->at, word, len) != 0)
		return false;
	p->at += len;
	return true;
}

static void expect(Parser *p, const char *word, const char *what)
{
	if (!accept(p, word))
		wrong(p, what);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/* The length of the name that stands here, 0 if there is none. */
static size_t name_length(Parser *p)
{
	size_t len = 0;

	skip_space(p);
	if (is_letter(*p->at))
		while (is_letter(p->at[len]) || is_digit(p->at[len]))
			len++;
	return len;
}

/* Digits with at most one point: few enough that both parts of the quotient are exact. */
static double number(Parser *p)
{
	double digits = 0, scale = 1;

	while (is_digit(*p->at))
		digits = digits * 10 + (*p->at++ - '0');
	if (*p->at == '.')
		for (p->at++; is_digit(*p->at); scale *= 10)
			digits = digits * 10 + (*p->at++ - '0');
	return digits / scale;
}

/* ---- the grammar, one function per rule ---- */

/* sign(x): 1, 0 or -1. */
static uint8_t sign(Parser *p, uint8_t x)
{
	uint8_t zero = constant(p, 0), one = constant(p, 1), minus = constant(p, -1);
	uint8_t below = emit(p, OP_SELECT, emit(p, OP_LT, x, zero, 0, 0), minus, zero, 0);

	return emit(p, OP_SELECT, emit(p, OP_LT, zero, x, 0, 0), one, below, 0);
}

static uint8_t call(Parser *p, const char *s, size_t len)
{
	bool is_sign = same("sign", s, len);
	uint8_t arg[3] = { 0 };
	int op = 0, args = 1;

	while (!is_sign && op < OP_COUNT && !same(op_table[op].name, s, len))
		op++;
	if (op == OP_COUNT)
		wrong(p, "unknown function before this");
	if (!is_sign)
		args = op_table[op].args;
	for (int i = 0; i < args; i++) {
		if (i)
			expect(p, ",", "',' and another argument expected");
		arg[i] = select_(p);
	}
	expect(p, ")", "')' expected");
	return is_sign ? sign(p, arg[0]) : emit(p, op, arg[0], arg[1], arg[2], 0);
}

static uint8_t primary(Parser *p)
{
	size_t len = name_length(p);

	if (len) {
		const char *s = p->at;
		p->at += len;
		return accept(p, "(") ? call(p, s, len) : name_value(p, s, len);
	}
	if (is_digit(*p->at))
		return constant(p, number(p));
	expect(p, "(", "number, name or '(' expected");
	uint8_t v = select_(p);
	expect(p, ")", "')' expected");
	return v;
}

static uint8_t unary(Parser *p) { return accept(p, "-") ? emit(p, OP_NEG, unary(p), 0, 0, 0) : primary(p); }

static uint8_t term(Parser *p)
{
	uint8_t v = unary(p);

	for (;;) {
		if (accept(p, "*"))
			v = emit(p, OP_MUL, v, unary(p), 0, 0);
		else if (accept(p, "/"))
			v = emit(p, OP_DIV, v, unary(p), 0, 0);
		else
			return v;
	}
}

static uint8_t sum(Parser *p)
{
	uint8_t v = term(p);

	for (;;) {
		if (accept(p, "+"))
			v = emit(p, OP_ADD, v, term(p), 0, 0);
		else if (accept(p, "-"))
			v = emit(p, OP_SUB, v, term(p), 0, 0);
		else
			return v;
	}
}

static uint8_t compare(Parser *p)
{
	uint8_t v = sum(p);

	if (accept(p, "<="))
		return emit(p, OP_LE, v, sum(p), 0, 0);
	if (accept(p, "<"))
		return emit(p, OP_LT, v, sum(p), 0, 0);
	if (accept(p, ">="))
		return emit(p, OP_LE, sum(p), v, 0, 0);
	if (accept(p, ">"))
		return emit(p, OP_LT, sum(p), v, 0, 0);
	return v;
}

static uint8_t select_(Parser *p)
{
	uint8_t v = compare(p);

	if (!accept(p, "?"))
		return v;
	uint8_t yes = select_(p);
	expect(p, ":", "':' expected");
	return emit(p, OP_SELECT, v, yes, select_(p), 0);
}

static void assign(Parser *p)
{
	size_t len = name_length(p);
	const char *s = p->at;

	if (!len)
		wrong(p, "name expected");
	p->at += len;
	expect(p, "=", "'=' expected");
	uint8_t value = select_(p);
	int v = variable(p->rule, s, len);
	if (v > 0)
		emit(p, OP_STORE, (uint8_t)v, value, 0, 0);
	bind_name(p, s, len, value);
}

void formula_parse(Ctx *cx, const Rule *rule, Formula *f)
{
	Parser p = { .cx = cx, .rule = rule, .at = rule->formula, .f = f };

	f->ops = 0;
	do
		assign(&p);
	while (accept(&p, ";") && (skip_space(&p), *p.at));
	if (*p.at)
		wrong(&p, "';' or the end expected");
}

/* ---- printing ---- */

static const char *variable_name(const Rule *rule, int v) { return v == 0 ? "g" : v == 1 ? "w" : rule->state[v - 2]; }

void formula_print(const Rule *rule, const Formula *f, Buf *out)
{
	for (uint32_t i = 0; i < f->ops; i++) {
		const Op *o = &f->op[i];
		if (o->op == OP_STORE) {
			buf_printf(out, "\t%s = v%u\n", variable_name(rule, o->a), o->b);
			continue;
		}
		buf_printf(out, "\tv%u = ", i);
		if (o->op == OP_CONST)
			buf_printf(out, "%g", o->value);
		else if (o->op == OP_PARAM)
			buf_puts(out, param_names[o->a]);
		else if (o->op == OP_LOAD)
			buf_puts(out, variable_name(rule, o->a));
		else
			buf_printf(out, op_table[o->op].print, o->a, o->b, o->c);
		buf_puts(out, "\n");
	}
}
