/* SPDX-License-Identifier: MIT */
/* ONNX with the sums of predict.  In: a span, or its net inputs.  Out: nodes that compute them link by link in
 * canonical order, every step in double precision and rounded to float32.
 *
 * A product and a sum in double, rounded once more, are a fused multiply-add but for one case in 2^29.  Sigmoid and
 * tanh are the polynomials of target cpu (functions.h there); other functions are rounded once. */
#include <string.h>

#include "graph.h"

enum { MOST_SOURCES = 4096 }; /* onnxruntime takes seconds to load a graph of four times as many nodes, then minutes */

static const char *scalar(Graph *g, double v)
{
	const char *name = named(g, "const/%u", g->names++);
	put_tensor(g, name, TYPE_DOUBLE, &v, sizeof v, NULL, 0);
	return name;
}

/* Tensors below are of doubles that are float32 numbers. */
static const char *rounded(Graph *g, const char *x) { return cast(g, cast(g, x, TYPE_FLOAT), TYPE_DOUBLE); }
static const char *apply(Graph *g, const char *type, const char *a, const char *b)
{
	return op(g, type, INPUTS(a, b), NULL);
}
static const char *add(Graph *g, const char *a, const char *b) { return rounded(g, apply(g, "Add", a, b)); }
static const char *sub(Graph *g, const char *a, const char *b) { return rounded(g, apply(g, "Sub", a, b)); }
static const char *mul(Graph *g, const char *a, const char *b) { return rounded(g, apply(g, "Mul", a, b)); }
static const char *fused(Graph *g, const char *a, const char *b, const char *c)
{
	return add(g, apply(g, "Mul", a, b), c);
}
static const char *negative(Graph *g, const char *a) { return op(g, "Neg", INPUTS(a), NULL); }

/* The units of a slice, each a tensor [N, 1]. */
static const char *const *columns_of(Graph *g, const Slice *s)
{
	const char **column = NEW(&g->cx->scratch, (size_t)s->count + 1, const char *);
	const char *all = cast(g, s->tensor, TYPE_DOUBLE);
	if (s->count == 1) {
		column[0] = all;
		return column;
	}
	for (uint32_t i = 0; i < s->count; i++)
		column[i] = named(g, "t/%u", g->names++);
	put_node(g, "Split", INPUTS(all), column, WITH({ "axis", 1 }));
	return column;
}

const char *exact_sums(Graph *g, const Span *s)
{
	const Net *net = g->net;
	Arena *scratch = &g->cx->scratch;
	bool *used = NEW(scratch, net->units, bool);
	uint32_t *row = NEW(scratch, net->units, uint32_t);
	uint32_t sources = 0;
	for (Unit u = s->first; u < s->first + s->count; u++)
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++)
			used[net_source(net, u, l)] = true;
	for (Unit u = 1; u < net->units; u++)
		if (used[u])
			row[u] = sources++;
	g->sources += sources;
	if (g->sources > MOST_SOURCES)
		fail(g->cx, MP_BAD_INPUT, "add --plain: matrix products, and outputs within some 1e-6 of predict",
		     "with sums in the order of predict %s is too long a graph: links from more than %d units", net->name,
		     MOST_SOURCES);
	double *weight = NEW(scratch, (uint64_t)sources * s->count, double), *bias = NEW(scratch, s->count, double);
	for (uint32_t j = 0; j < s->count; j++) {
		Unit u = s->first + j;
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
			Unit from = net_source(net, u, l);
			*(from ? &weight[(uint64_t)row[from] * s->count + j] : &bias[j]) = (double)(float)g->w->m->w[l];
		}
	}
	const uint64_t shape[] = { 1, s->count };
	const char *sum = named(g, "%s/%u/bias", s->group->name, s->first), *const *column = NULL;
	put_tensor(g, sum, TYPE_DOUBLE, bias, s->count * sizeof *bias, shape, 2);
	const Slice *last = NULL;
	for (Unit u = 1; u < net->units; u++) {
		if (!used[u])
			continue;
		const Slice *p = slice_of(g, u);
		assert(p);
		column = p == last ? column : columns_of(g, p);
		last = p;
		const char *w = named(g, "%s/%u/weight/%u", s->group->name, s->first, u);
		put_tensor(g, w, TYPE_DOUBLE, &weight[(uint64_t)row[u] * s->count], s->count * sizeof *weight, shape, 2);
		sum = fused(g, column[u - p->first], w, sum);
	}
	if (!sources) /* one row for each case */
		sum = apply(g, "Add", apply(g, "Mul", columns_of(g, &g->slice[0])[0], scalar(g, 0)), sum);
	return cast(g, sum, TYPE_FLOAT);
}

static const char *series(Graph *g, const float *c, int count, const char *x)
{
	const char *sum = scalar(g, (double)c[count - 1]);
	for (int i = count - 2; i >= 0; i--)
		sum = fused(g, sum, x, scalar(g, (double)c[i]));
	return sum;
}

static const char *over_one_and(Graph *g, const char *p, const char *e, bool exact)
{
	const char *one = scalar(g, 1), *d = add(g, e, one);
	const char *y = fused(g, scalar(g, (double)(32 / 99.0f)), e, scalar(g, (double)(-80 / 99.0f)));
	y = fused(g, y, e, scalar(g, (double)(98 / 99.0f)));
	y = fused(g, y, fused(g, negative(g, d), y, one), y);
	const char *q = mul(g, p, y);
	return fused(g, q, exact ? fused(g, negative(g, e), y, sub(g, one, y)) : fused(g, negative(g, d), y, one), q);
}

#define LN2_HIGH    0x1.62e430p-1
#define LN2_INVERSE 0x1.715476p+0
#define WHOLE       (0x1.8p23 + 127)

static const char *sigmoid(Graph *g, const char *x)
{
	static const float c[] = { 1, -0x1.fffff6p-1f, 0x1.fffdc4p-2f, -0x1.555a6ep-3f, 0x1.573b0cp-5f, -0x1.0fa7aap-7f };
	const char *whole = scalar(g, WHOLE), *a = apply(g, "Min", op(g, "Abs", INPUTS(x), NULL), scalar(g, 88));
	const char *n = sub(g, fused(g, a, scalar(g, -LN2_INVERSE), whole), whole);
	const char *r = fused(g, n, scalar(g, LN2_HIGH), a);
	const char *e = mul(g, series(g, c, 6, r), apply(g, "Pow", scalar(g, 2), n));
	const char *below = apply(g, "Less", x, scalar(g, 0));
	return over_one_and(g, op(g, "Where", INPUTS(below, e, scalar(g, 1)), NULL), e, false);
}

static const char *hyperbolic(Graph *g, const char *x)
{
	static const float c[] = { 2, -0x1.fffffep+0f, 0x1.55547ep+0f, -0x1.555652p-1f, 0x1.123d48p-2f, -0x1.6c16a6p-4f };
	const char *one = scalar(g, 1), *whole = scalar(g, WHOLE);
	const char *a = apply(g, "Min", op(g, "Abs", INPUTS(x), NULL), scalar(g, 20));
	const char *n = sub(g, fused(g, a, scalar(g, -2 * LN2_INVERSE), whole), whole);
	const char *r = fused(g, n, scalar(g, LN2_HIGH / 2), a), *power = apply(g, "Pow", scalar(g, 2), n);
	const char *m = fused(g, power, mul(g, r, series(g, c, 6, r)), sub(g, one, power));
	return apply(g, "Mul", op(g, "Sign", INPUTS(x), NULL), over_one_and(g, m, sub(g, one, m), true));
}

const char *exact_function(Graph *g, const char *x, int fn)
{
	if (fn != FN_SIGMOID && fn != FN_TANH)
		return NULL;
	x = cast(g, x, TYPE_DOUBLE);
	return cast(g, fn == FN_SIGMOID ? sigmoid(g, x) : hyperbolic(g, x), TYPE_FLOAT);
}
