/* SPDX-License-Identifier: MIT */
/* C files.  In: a Model.  Out: NAME.c and NAME.h, C99 without allocation or a library, whose outputs have the bits of
 * `predict`: the steps of the Recipe as calls of the functions of runtime.h. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "export.h"

typedef struct Out {
	const Writing *w;
	const Recipe *r;
	const Columns *c;
	const char *id, *upper; /* the name that everything begins with */
	Buf source, header;
	bool timed, int8;
} Out;

/* Sections of runtime.h that a unit function needs, in their order. */
static const struct {
	int fn;
	const char *sections, *call;
} functions[] = {
	{ FN_SIGMOID, " bits magnitude series over_one_and sigmoid ", "sigmoid" },
	{ FN_TANH, " bits magnitude series over_one_and tanh ", "hyperbolic" },
	{ FN_RELU, " relu ", "relu" },
	{ FN_SOFTMAX, " bits series softmax ", "softmax" },
	{ FN_GAUSSIAN, " bits magnitude series gaussian ", "gaussian" },
	{ FN_SIGMOID2, " bits magnitude series over_one_and sigmoid2 ", "sigmoid2" },
	{ FN_ELLIOTT, " bits magnitude softsign elliott ", "elliott" },
	{ FN_SOFTSIGN, " bits magnitude softsign softsigns ", "softsign" },
	{ FN_STEPWISE, " steps ", "steps" },
	{ FN_STEPWISE_TANH, " steps ", "steps" },
};

static size_t function_at(int fn)
{
	size_t i = 0;
	while (i < COUNT(functions) && functions[i].fn != fn)
		i++;
	assert(i < COUNT(functions)); /* a unit function without a row here */
	return i;
}

/* ---- the parts of runtime.h that are needed ----------------------------------------------------- */

static bool needs(const Out *o, const char *section, size_t len)
{
	Buf word = { .arena = &o->w->cx->scratch };
	buf_printf(&word, " %.*s ", (int)len, section);
	if (strcmp(word.s, " base ") == 0)
		return true;
	for (uint32_t i = 0; i < o->r->works; i++) {
		const Work *w = &o->r->work[i];
		const char *of = w->kind == WORK_UNITS       ? functions[function_at(w->fn)].sections
		                 : w->kind == WORK_DENSE     ? (o->int8 ? " int8 " : " dense ")
		                 : w->kind == WORK_LINKS     ? " links "
		                 : w->kind == WORK_INTEGRATE ? " integrate "
		                                             : "";
		if (strstr(of, word.s))
			return true;
	}
	return false;
}

static void put_runtime(Out *o)
{
	static const char mark[] = "/* section: ";
	size_t len;
	const char *text = runtime_text("runtime.h", &len), *p = strstr(text, mark);
	while (p) {
		const char *name = p + strlen(mark), *body = strchr(name, '\n'), *next = strstr(body, mark);
		if (next && needs(o, name, (size_t)(strchr(name, ' ') - name)))
			buf_add(&o->source, body + 1, (size_t)(next - body - 1));
		p = next;
	}
}

/* ---- numbers ------------------------------------------------------------------------------------- */

static void put_float(Buf *b, float v) { buf_printf(b, v == 0 ? "0" : "%af", (double)v); }

static void put_floats(Out *o, const char *name, const float *v, uint64_t n)
{
	buf_printf(&o->source, "static const float %s[] = {", name);
	for (uint64_t i = 0; i < n; i++) {
		buf_puts(&o->source, i % 8 ? " " : "\n\t");
		put_float(&o->source, v[i]);
		buf_puts(&o->source, ",");
	}
	buf_puts(&o->source, "\n};\n");
}

static void put_ints(Out *o, const char *type, const char *name, const int32_t *v, uint64_t n)
{
	buf_printf(&o->source, "static const %s %s[] = {", type, name);
	for (uint64_t i = 0; i < n; i++)
		buf_printf(&o->source, "%s%" PRId32 ",", i % 24 ? " " : "\n\t", v[i]);
	buf_puts(&o->source, "\n};\n");
}

static void put_weights(Out *o)
{
	const Recipe *r = o->r;
	if (o->int8) {
		int32_t *wide = NEW(&o->w->cx->scratch, r->weights8, int32_t);
		for (uint64_t i = 0; i < r->weights8; i++)
			wide[i] = r->weight8[i];
		if (r->weights8)
			put_ints(o, "int8_t", "weight8", wide, r->weights8);
		if (r->scales)
			put_floats(o, "scale", r->scale, r->scales);
		uint64_t n = 0; /* weights from the true unit stay as they are */
		float *start = NEW(&o->w->cx->scratch, r->net->units, float);
		for (uint32_t i = 0; i < r->works; i++) {
			Work *w = &r->work[i];
			if (w->kind != WORK_START)
				continue;
			memcpy(start + n, r->weight + w->at, w->count * sizeof *start);
			w->at = n;
			n += w->count;
		}
		put_floats(o, "weight", start, n);
	} else {
		put_floats(o, "weight", r->weight, r->weights);
	}
	if (r->links) {
		put_floats(o, "link_weight", r->link, r->links);
		put_ints(o, "int32_t", "link_from", r->from, r->links);
		put_ints(o, "int32_t", "link_row", r->row, r->rows);
	}
	for (int fn = FN_STEPWISE; fn <= FN_STEPWISE_TANH; fn++) {
		float table[19];
		bool used = false;
		for (uint32_t i = 0; i < r->works; i++)
			used |= r->work[i].kind == WORK_UNITS && r->work[i].fn == fn;
		steps_table(fn, table);
		if (used)
			put_floats(o, unit_fns[fn].name, table, COUNT(table));
	}
	buf_puts(&o->source, "\n");
}

/* ---- a tick ------------------------------------------------------------------------------------- */

static void put_work(Out *o, const Work *w)
{
	Buf *b = &o->source;
	switch (w->kind) {
	case WORK_START: {
		const Group *g = net_group(o->r->net, w->first);
		buf_printf(b, "\n\t/* %s", g->name);
		if (w->count < g->size)
			buf_printf(b, "[%u:%u]", w->first - g->first, w->first - g->first + w->count - 1);
		buf_printf(b, " */\n\tmemcpy(u + %u, weight + %zu, %u * sizeof *u);\n", w->first, w->at, w->count);
		break;
	}
	case WORK_DENSE:
		if (o->int8) {
			buf_printf(b, "\tdense8(u + %u, %u, u + %u, %u, ", w->first, w->count, w->from, w->sources);
			put_float(b, 127 / w->range);
			buf_printf(b, ", weight8 + %zu, scale + %zu, q);\n", w->at8, w->scale_at);
		} else {
			buf_printf(b, "\tdense(u + %u, %u, u + %u, %u, weight + %zu);\n", w->first, w->count, w->from, w->sources,
			           w->at);
		}
		break;
	case WORK_LINKS:
		buf_printf(b, "\tlinks(u, %u, %u, link_row + %zu, link_from, link_weight);\n", w->first, w->count, w->at);
		break;
	case WORK_UNITS:
		buf_printf(b, "\t%s(u + %u, %u", functions[function_at(w->fn)].call, w->first, w->count);
		if (w->fn == FN_STEPWISE || w->fn == FN_STEPWISE_TANH)
			buf_printf(b, ", %s", unit_fns[w->fn].name);
		buf_puts(b, ");\n");
		break;
	default:
		buf_printf(b, "\tintegrate(u + %u, s->last + %u, %u, ", w->first, w->state, w->count);
		put_float(b, w->dt);
		buf_puts(b, ");\n");
	}
}

static void put_copies(Out *o, bool before)
{
	for (uint32_t i = 0; i < o->r->remembers; i++) {
		const Remember *m = &o->r->remember[i];
		if (m->from == m->to)
			continue;
		if (before)
			buf_printf(&o->source, "\tmemcpy(u + %u, s->last + %u, %u * sizeof *u);\n", m->to, m->state, m->count);
		else
			buf_printf(&o->source, "\tmemcpy(s->last + %u, u + %u, %u * sizeof *u);\n", m->state, m->from, m->count);
	}
}

static void put_inputs(Out *o, bool cut)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < o->r->net->groups; i++) {
		const Group *g = &o->r->net->group[i];
		if (g->role != ROLE_INPUT)
			continue;
		buf_printf(&o->source, "\tfor (i = 0; i < %u; i++)\n\t\tu[%u + i] = ", g->size, g->first);
		buf_printf(&o->source, cut ? "x ? flushed(x[%u + i]) : 0;\n" : "flushed(x[%u + i]);\n", n);
		n += g->size;
	}
}

static void put_tick(Out *o)
{
	Buf *b = &o->source;
	bool cut = o->r->ticks.inputs_end < o->r->ticks.each;
	buf_printf(b, "static COMPUTES void tick(%s%sconst float *x, float *u)\n{\n\tint i;\n", o->timed ? o->id : "",
	           o->timed ? "_state *s, " : "");
	if (o->int8)
		buf_printf(b, "\tint8_t q[%u];\n", o->r->widest ? o->r->widest : 1);
	buf_puts(b, "\n");
	put_inputs(o, cut);
	put_copies(o, true);
	for (uint32_t i = 0; i < o->r->works; i++)
		put_work(o, &o->r->work[i]);
	put_copies(o, false);
	buf_puts(b, "}\n\n");
}

/* ---- a case ------------------------------------------------------------------------------------- */

static const char *number_type(const Out *o) { return o->c->table ? "double" : "float"; }

static void put_exact(Buf *b, double v) { buf_printf(b, v == 0 ? "0" : "%a", v); }

/* Input units of a case with a scale, or of a table. */
static void put_encode(Out *o)
{
	Buf *b = &o->source;
	uint32_t inputs = o->r->net->inputs;
	const Columns *c = o->c;
	buf_printf(b,
	           "/* Input units: %s. */\nstatic const struct {\n\tint column;%s\n\tdouble offset, factor%s;\n} feed[] "
	           "= {\n",
	           c->table ? "numbers, (x - offset) * factor; kind 1, is it the category?; kind 2, is it missing?"
	                    : "(x - offset) * factor",
	           c->table ? " int kind, category, wide;" : "", c->table ? ", fill" : "");
	for (uint32_t i = 0; i < inputs; i++) {
		const Feed *f = &c->feed[i];
		buf_printf(b, "\t{ %u, ", f->column);
		if (c->table)
			buf_printf(b, "%d, %u, %d, ",
			           f->kind == FEED_CATEGORY  ? 1
			           : f->kind == FEED_MISSING ? 2
			                                     : 0,
			           f->category, f->wide);
		put_exact(b, f->offset);
		buf_puts(b, ", ");
		put_exact(b, f->factor);
		if (c->table) {
			buf_puts(b, ", ");
			put_exact(b, f->fill);
		}
		buf_puts(b, " },\n");
	}
	buf_printf(b,
	           "};\n\nstatic void encode(const %s *row, float *x)\n{\n\tint i;\n\n\tfor (i = 0; i < %u; i++) {\n"
	           "\t\tdouble v = (double)row[feed[i].column];\n",
	           number_type(o), inputs);
	if (c->table)
		buf_puts(b, "\t\tif (!feed[i].wide)\n\t\t\tv = (double)(float)v;\n"
		            "\t\tif (feed[i].kind == 1)\n\t\t\tx[i] = v == feed[i].category;\n"
		            "\t\telse if (feed[i].kind == 2)\n\t\t\tx[i] = v != v;\n"
		            "\t\telse if (v != v)\n\t\t\tx[i] = (float)feed[i].fill;\n\t\telse\n\t");
	buf_puts(b, "\t\tx[i] = (float)((v - feed[i].offset) * feed[i].factor);\n\t}\n}\n\n");
}

static void put_outputs(Out *o)
{
	Buf *b = &o->source;
	uint32_t n = 0;
	for (uint32_t i = 0; i < o->r->net->groups; i++) {
		const Group *g = &o->r->net->group[i];
		if (g->role != ROLE_OUTPUT)
			continue;
		buf_printf(b, "\tfor (i = 0; i < %u; i++)\n\t\ty[%u + i] = ", g->size, n);
		if (o->c->offset) {
			buf_printf(b, "(double)u[%u + i] / target_factor[%u + i] + target_offset[%u + i];\n", g->first, n, n);
		} else {
			buf_printf(b, "u[%u + i];\n", g->first);
		}
		n += g->size;
	}
}

static void put_doubles(Out *o, const char *name, const double *v, uint32_t n)
{
	buf_printf(&o->source, "static const double %s[] = {", name);
	for (uint32_t i = 0; i < n; i++) {
		buf_puts(&o->source, i % 8 ? " " : "\n\t");
		put_exact(&o->source, v[i]);
		buf_puts(&o->source, ",");
	}
	buf_puts(&o->source, "\n};\n");
}

static void put_prototype(const Out *o, Buf *b)
{
	const char *t = number_type(o);
	buf_printf(b, "void %s_%s(%s%sconst %s x[%s_INPUTS], %s y[%s_OUTPUTS])", o->id, o->timed ? "step" : "predict",
	           o->timed ? o->id : "", o->timed ? "_state *s, " : "", t, o->upper, t, o->upper);
}

static void put_guess(const Out *o, Buf *b)
{
	if (o->c->classes)
		buf_printf(b, "int %s_guess(const %s y[%s_OUTPUTS])", o->id, number_type(o), o->upper);
	else
		buf_printf(b, "int %s_guess(const %s *y)", o->id, number_type(o));
}

static void put_predict(Out *o)
{
	Buf *b = &o->source;
	const Recipe *r = o->r;
	bool encodes = o->c->scaled || o->c->table, cut = r->ticks.inputs_end < r->ticks.each;
	if (encodes)
		put_encode(o);
	if (o->c->offset) {
		put_doubles(o, "target_offset", o->c->offset, r->net->outputs);
		put_doubles(o, "target_factor", o->c->factor, r->net->outputs);
		buf_puts(b, "\n");
	}
	if (o->timed) {
		buf_printf(b, "void %s_reset(%s_state *s)\n{\n\tint i;\n\n", o->id, o->id);
		for (uint32_t i = 0; i < r->remembers; i++) {
			const Remember *m = &r->remember[i];
			buf_printf(b, "\tfor (i = 0; i < %u; i++)\n\t\ts->last[%u + i] = ", m->count, m->state);
			put_float(b, m->start);
			buf_puts(b, ";\n");
		}
		buf_puts(b, "}\n\n");
	}
	put_prototype(o, b);
	buf_printf(b, "\n{\n\tfloat u[%u];\n", r->net->units);
	if (encodes)
		buf_printf(b, "\tfloat units[%u];\n", r->net->inputs);
	buf_printf(b, "\tint i%s;\n\n", r->ticks.each > 1 ? ", t" : "");
	if (encodes)
		buf_puts(b, "\tencode(x, units);\n");
	buf_puts(b, "\t{\n\t\tFLUSH_BEGIN;\n");
	const char *x = encodes ? "units" : "x", *s = o->timed ? "s, " : "";
	if (r->ticks.each == 1)
		buf_printf(b, "\t\ttick(%s%s, u);\n", s, x);
	else if (cut)
		buf_printf(b, "\t\tfor (t = 0; t < %u; t++)\n\t\t\ttick(%st < %u ? %s : 0, u);\n", r->ticks.each, s,
		           r->ticks.inputs_end, x);
	else
		buf_printf(b, "\t\tfor (t = 0; t < %u; t++)\n\t\t\ttick(%s%s, u);\n", r->ticks.each, s, x);
	buf_puts(b, "\t\tFLUSH_END;\n\t}\n");
	put_outputs(o);
	buf_puts(b, "}\n");
	if (o->c->classes || o->c->bits) {
		buf_puts(b, "\n");
		put_guess(o, b);
		buf_puts(b, "\n{\n");
		if (o->c->classes)
			buf_printf(b,
			           "\tint i, best = 0;\n\n\tfor (i = 1; i < %u; i++)\n\t\tbest = y[i] > y[best] ? i : best;\n"
			           "\treturn best;\n}\n",
			           r->net->outputs);
		else
			buf_puts(b, "\treturn *y >= 0.5;\n}\n");
	}
}

/* ---- the files ---------------------------------------------------------------------------------- */

/* A string of C: other bytes than printable ASCII are octal. */
static void put_string(Buf *b, const char *text)
{
	buf_puts(b, "\"");
	for (const char *p = text; *p; p++) {
		if (*p == '"' || *p == '\\' || *p == '?' || (unsigned char)*p < ' ' || (unsigned char)*p > '~')
			buf_printf(b, "\\%03o", (unsigned char)*p);
		else
			buf_add(b, p, 1);
	}
	buf_puts(b, "\"");
}

/* In a comment: nothing that could end it. */
static const char *commented(const Out *o, const char *text)
{
	char *copy = arena_copy(&o->w->cx->scratch, text, strlen(text));
	for (char *p = copy; *p; p++)
		if (*p == '*' || *p == '/' || *p == '\\' || *p == '?' || (unsigned char)*p < ' ' || (unsigned char)*p > '~')
			*p = '_';
	return copy;
}

static void put_columns(Out *o)
{
	Buf *b = &o->header;
	const Columns *c = o->c;
	if (!c->name)
		return;
	buf_puts(b, "\n/* A case:\n");
	for (uint32_t i = 0; i < c->count; i++) {
		buf_printf(b, " *   x[%u] %s", i, commented(o, c->name[i]));
		for (uint32_t k = 0; c->field && c->field[i]->kind == VALUE_CATEGORY && k < c->field[i]->categories; k++)
			buf_printf(b, "%s %u %s", k ? "," : ":", k, commented(o, c->field[i]->category[k]));
		buf_puts(b, "\n");
	}
	buf_puts(b, c->table ? " * NAN: a missing value; -1: a category that training has not seen. */\n" : " */\n");
}

static void put_header(Out *o)
{
	Buf *b = &o->header;
	const Recipe *r = o->r;
	buf_printf(
		b, "/* %s: %u input%s, %u output%s.  Made by microprop %s; weights %s%s. */\n#ifndef %s_H\n#define %s_H\n\n",
		o->id, o->c->count, o->c->count == 1 ? "" : "s", r->net->outputs, r->net->outputs == 1 ? "" : "s", MP_VERSION,
		o->w->m->fingerprint, o->int8 ? ", in 8 bits" : "", o->upper, o->upper);
	buf_puts(b, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
	buf_printf(b, "enum { %s_INPUTS = %u, %s_OUTPUTS = %u };\n", o->upper, o->c->count, o->upper, r->net->outputs);
	put_columns(o);
	if (o->c->target) {
		buf_printf(b, "\n/* %s */\nextern const char *const %s_names[%s_OUTPUTS];\n",
		           o->c->classes ? "Classes, in the order of the outputs." : "Targets, in the order of the outputs.",
		           o->id, o->upper);
	}
	if (o->timed)
		buf_printf(b,
		           "\n/* What one case leaves to the next of its sequence. */\ntypedef struct %s_state {\n\tfloat "
		           "last[%u];\n} %s_state;\nvoid %s_reset(%s_state *s); /* before the first case of a sequence */\n",
		           o->id, r->states, o->id, o->id, o->id);
	buf_puts(b, "\n/* Outputs y of a case x. */\n");
	put_prototype(o, b);
	buf_puts(b, ";\n");
	if (o->c->classes || o->c->bits) {
		put_guess(o, b);
		buf_puts(b, o->c->classes ? "; /* the class with the largest output */\n" : "; /* 0 or 1, of an output */\n");
	}
	buf_puts(b, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

static const char *upper_of(Arena *a, const char *id)
{
	char *s = arena_copy(a, id, strlen(id));
	for (char *p = s; *p; p++)
		if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p - 'a' + 'A');
	return s;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

void c_write(const Writing *w)
{
	Ctx *cx = w->cx;
	Recipe *r = recipe_make(cx, &cx->scratch, w->m);
	Out o = { .w = w,
		      .r = r,
		      .c = w->columns,
		      .id = w->m->name,
		      .upper = upper_of(&cx->scratch, w->m->name),
		      .source = { .arena = &cx->scratch },
		      .header = { .arena = &cx->scratch },
		      .timed = w->m->net->timed,
		      .int8 = w->o->calibration != NULL };
	if (o.int8)
		recipe_quantize(cx, r, w->o->calibration, &w->o->loss);
	Buf header = { .arena = &cx->scratch };
	size_t len = strlen(w->path);
	bool ends = len > 2 && strcmp(w->path + len - 2, ".c") == 0;
	buf_printf(&header, "%.*s.h", (int)(ends ? len - 2 : len), w->path);
	put_header(&o);
	buf_printf(
		&o.source,
		"/* %s: made by microprop %s.  C99; no allocation, no library.  Outputs have the same bits with every\n"
		" * compiler and on every machine; -O2 -march=native is fast, -ffast-math is refused. */\n#include \"%s\"\n\n",
		o.id, MP_VERSION, base_name(header.s));
	put_runtime(&o);
	put_weights(&o);
	put_tick(&o);
	put_predict(&o);
	if (o.c->target) {
		buf_printf(&o.source, "\nconst char *const %s_names[] = {\n", o.id);
		for (uint32_t i = 0; i < r->net->outputs; i++) {
			buf_puts(&o.source, "\t");
			put_string(&o.source, o.c->target[i]);
			buf_puts(&o.source, ",\n");
		}
		buf_puts(&o.source, "};\n");
	}
	text_file(cx, header.s, &o.header);
	text_file(cx, w->path, &o.source);
	w->o->second = arena_copy(&cx->keep, header.s, header.len);
}
