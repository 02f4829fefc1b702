/* SPDX-License-Identifier: MIT */
/* ONNX.  In: a Model.  Out: a file of opset 13, IR version 7, that onnxruntime and other programs run.
 *
 * The units of a span are a tensor [N, count]: its net inputs, then the unit function.  Net inputs have the bits of
 * predict (onnx_exact.c), or, in the plain form, are a Gemm over the tensors that hold the sources, side by side
 * (Concat), with zeros where there is no link.  Input x is a case as columns.c has it; scale and categories
 * are computed in the graph, in double precision.  Outputs: y and, of a classifier, label, the index of the best guess.
 * A network with contexts computes one step: each context is an input state/NAME, and an output next/NAME that is given
 * to it with the next case; their first values are in the metadata. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph.h"

enum { OPSET = 13, IR_VERSION = 7 };
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_META = 14 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_I = 3, ATTRIBUTE_TYPE = 20, ATTRIBUTE_INT = 2 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
#define MOST_BYTES 2000000000u /* of a protocol buffer */

const char *named(Graph *g, const char *fmt, ...)
{
	Buf b = { .arena = &g->cx->scratch };
	va_list ap;
	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	return b.s;
}

/* ---- messages ----------------------------------------------------------------------------------- */

void put_tensor(Graph *g, const char *name, int type, const void *v, size_t bytes, const uint64_t *dim, int dims)
{
	Buf t = { .arena = &g->cx->scratch };
	for (int i = 0; i < dims; i++)
		pb_varint(&t, TENSOR_DIMS, dim[i]);
	pb_varint(&t, TENSOR_TYPE, (uint64_t)type);
	pb_text(&t, TENSOR_NAME, name);
	pb_bytes(&t, TENSOR_RAW, v, bytes);
	pb_message(&g->initializer, GRAPH_INITIALIZER, &t);
}

static const char *constant(Graph *g, float v)
{
	const char *name = named(g, "const/%u", g->names++);
	put_tensor(g, name, TYPE_FLOAT, &v, sizeof v, NULL, 0);
	return name;
}

static const char *doubles(Graph *g, const char *name, const double *v, uint64_t n)
{
	put_tensor(g, name, TYPE_DOUBLE, v, n * sizeof *v, &n, 1);
	return name;
}

static void put_value(Graph *g, Buf *into, int field, const char *name, int type, uint32_t columns)
{
	Buf dim = { .arena = &g->cx->scratch }, shape = dim, tensor = dim, of = dim, value = dim, n = dim;
	pb_text(&n, 2, "N"); /* dim_param */
	pb_message(&shape, 1, &n);
	if (columns) {
		pb_varint(&dim, 1, columns);
		pb_message(&shape, 1, &dim);
	}
	pb_varint(&tensor, 1, (uint64_t)type);
	pb_message(&tensor, 2, &shape);
	pb_message(&of, 1, &tensor);
	pb_text(&value, 1, name);
	pb_message(&value, 2, &of);
	pb_message(into, field, &value);
}

void put_node(Graph *g, const char *type, const char *const *inputs, const char *const *outputs, const Attribute *a)
{
	Buf node = { .arena = &g->cx->scratch };
	for (; *inputs; inputs++)
		pb_text(&node, NODE_INPUT, *inputs);
	for (; *outputs; outputs++)
		pb_text(&node, NODE_OUTPUT, *outputs);
	pb_text(&node, NODE_OP, type);
	for (; a && a->name; a++) {
		Buf b = { .arena = &g->cx->scratch };
		pb_text(&b, ATTRIBUTE_NAME, a->name);
		pb_varint(&b, ATTRIBUTE_I, (uint64_t)a->value);
		pb_varint(&b, ATTRIBUTE_TYPE, ATTRIBUTE_INT);
		pb_message(&node, NODE_ATTRIBUTE, &b);
	}
	pb_message(&g->node, GRAPH_NODE, &node);
}

static const char *op_as(Graph *g, const char *out, const char *type, const char *const *inputs, const Attribute *a)
{
	put_node(g, type, inputs, INPUTS(out), a);
	return out;
}

const char *op(Graph *g, const char *type, const char *const *inputs, const Attribute *a)
{
	return op_as(g, named(g, "t/%u", g->names++), type, inputs, a);
}

const char *cast(Graph *g, const char *x, int type) { return op(g, "Cast", INPUTS(x), WITH({ "to", type })); }

/* ---- units as tensors --------------------------------------------------------------------------- */

static void slice_add(Graph *g, Unit first, uint32_t count, const char *tensor)
{
	uint32_t i = g->slices++;
	for (; i && g->slice[i - 1].first > first; i--)
		g->slice[i] = g->slice[i - 1];
	g->slice[i] = (Slice){ first, count, tensor };
}

const Slice *slice_of(const Graph *g, Unit u)
{
	uint32_t low = 0, high = g->slices;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (g->slice[middle].first <= u)
			low = middle;
		else
			high = middle;
	}
	return &g->slice[low];
}

static const char *joined(Graph *g, const char *const *tensor, uint32_t count)
{
	return count == 1 ? tensor[0] : op(g, "Concat", tensor, WITH({ "axis", 1 }));
}

/* The units of a group. */
static const char *group_tensor(Graph *g, const Group *of)
{
	const char **tensor = NEW(&g->cx->scratch, (size_t)g->slices + 1, const char *);
	uint32_t n = 0;
	for (uint32_t i = 0; i < g->slices; i++)
		if (g->slice[i].first >= of->first && g->slice[i].first < of->first + of->size)
			tensor[n++] = g->slice[i].tensor;
	return joined(g, tensor, n);
}

static const char *span_name(Graph *g, const Span *s)
{
	Unit first = s->first - s->group->first;
	return s->count == s->group->size ? s->group->name
	                                  : named(g, "%s[%u:%u]", s->group->name, first, first + s->count - 1);
}

/* ---- unit functions ----------------------------------------------------------------------------- */

static const char *put_steps(Graph *g, const char *x, int fn)
{
	float s[19];
	steps_table(fn, s);
	const char *y = constant(g, s[17]);
	for (int i = 0; i < STEP_POINTS; i++) {
		const char *point = constant(g, s[i]), *line = NULL;
		if (i + 1 < STEP_POINTS) {
			const char *rise = op(g, "Mul", INPUTS(op(g, "Sub", INPUTS(x, point), NULL), constant(g, s[12 + i])), NULL);
			line = op(g, "Add", INPUTS(rise, constant(g, s[6 + i])), NULL);
		} else {
			line = constant(g, s[18]);
		}
		y = op(g, "Where", INPUTS(op(g, "Less", INPUTS(x, point), NULL), y, line), NULL);
	}
	return y;
}

static const char *put_function(Graph *g, const char *x, int fn)
{
	const char *y = g->w->o->plain ? NULL : exact_function(g, x, fn);
	if (y)
		return y;
	switch (fn) {
	case FN_SIGMOID: return op(g, "Sigmoid", INPUTS(x), NULL);
	case FN_TANH: return op(g, "Tanh", INPUTS(x), NULL);
	case FN_RELU: return op(g, "Relu", INPUTS(x), NULL);
	case FN_SOFTMAX: return op(g, "Softmax", INPUTS(x), WITH({ "axis", 1 }));
	case FN_GAUSSIAN:
		y = op(g, "Neg", INPUTS(op(g, "Mul", INPUTS(x, x), NULL)), NULL);
		return op(g, "Exp", INPUTS(y), NULL);
	case FN_SIGMOID2: return op(g, "Sigmoid", INPUTS(op(g, "Mul", INPUTS(x, constant(g, 0x1.62e430p-1f)), NULL)), NULL);
	case FN_SOFTSIGN: return op(g, "Softsign", INPUTS(x), NULL);
	case FN_ELLIOTT:
		y = op(g, "Mul", INPUTS(op(g, "Softsign", INPUTS(x), NULL), constant(g, 0.5f)), NULL);
		return op(g, "Add", INPUTS(y, constant(g, 0.5f)), NULL);
	case FN_STEPWISE:
	case FN_STEPWISE_TANH: return put_steps(g, x, fn);
	default: return x;
	}
}

/* ---- sums --------------------------------------------------------------------------------------- */

/* Tensors that hold sources of a span, side by side; *columns of them all.  at[i]: where the i-th begins. */
static const char *put_sources(Graph *g, const Span *s, uint32_t *at, uint64_t *columns)
{
	const Net *net = g->net;
	bool *used = NEW(&g->cx->scratch, g->slices, bool);
	const char **tensor = NEW(&g->cx->scratch, (size_t)g->slices + 1, const char *);
	uint32_t n = 0;
	for (Unit u = s->first; u < s->first + s->count; u++) {
		if (u > s->first && net_same_sources(net, u, u - 1))
			continue;
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++)
			if (net_source(net, u, l))
				used[slice_of(g, net_source(net, u, l)) - g->slice] = true;
	}
	*columns = 0;
	for (uint32_t i = 0; i < g->slices; i++) {
		at[i] = (uint32_t)*columns;
		if (used[i] || (i + 1 == g->slices && !n)) { /* none: weights of zero from any */
			tensor[n++] = g->slice[i].tensor;
			*columns += g->slice[i].count;
		}
	}
	return joined(g, tensor, n);
}

static void put_span(Graph *g, const Span *s)
{
	const Net *net = g->net;
	Arena *scratch = &g->cx->scratch;
	if (!g->w->o->plain) {
		slice_add(g, s->first, s->count, put_function(g, exact_sums(g, s), s->group->fn));
		return;
	}
	uint32_t *at = NEW(scratch, g->slices, uint32_t);
	uint64_t columns;
	const char *from = put_sources(g, s, at, &columns), *name = span_name(g, s);
	if (columns * s->count > MOST_BYTES / sizeof(float))
		fail(g->cx, MP_BAD_INPUT, "export OUT.c, or keep it as .safetensors",
		     "ONNX has no sparse links, and with zeros for those that are missing group '%s' would take %" PRIu64 " MB",
		     s->group->name, columns * s->count * sizeof(float) / 1000000);
	float *weight = NEW(scratch, columns * s->count, float), *bias = NEW(scratch, s->count, float);
	for (uint32_t j = 0; j < s->count; j++) {
		Unit u = s->first + j;
		for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++) {
			Unit source = net_source(net, u, l);
			if (!source) {
				bias[j] = (float)g->w->m->w[l];
				continue;
			}
			const Slice *p = slice_of(g, source);
			weight[j * columns + at[p - g->slice] + (source - p->first)] = (float)g->w->m->w[l];
		}
	}
	const char *w = named(g, "%s/weight", name), *b = named(g, "%s/bias", name);
	put_tensor(g, w, TYPE_FLOAT, weight, columns * s->count * sizeof *weight, (uint64_t[]){ s->count, columns }, 2);
	put_tensor(g, b, TYPE_FLOAT, bias, s->count * sizeof *bias, (uint64_t[]){ s->count }, 1);
	const char *sum = op(g, "Gemm", INPUTS(from, w, b), WITH({ "transB", 1 }));
	slice_add(g, s->first, s->count, put_function(g, sum, s->group->fn));
}

/* ---- inputs ------------------------------------------------------------------------------------- */

/* A constant for each input unit. */
static const char *put_masks(Graph *g, const char *name, int kind)
{
	uint64_t n = g->net->inputs;
	uint8_t *mask = NEW(&g->cx->scratch, n, uint8_t);
	bool any = false;
	for (uint64_t i = 0; i < n; i++)
		any |= mask[i] = g->w->columns->feed[i].kind == kind;
	if (!any)
		return NULL;
	put_tensor(g, name, TYPE_BOOL, mask, n, &n, 1);
	return name;
}

/* Columns of a table as input units: (x - offset) * factor of numbers, one of n for categories. */
static const char *put_columns(Graph *g, const char *x)
{
	const Columns *c = g->w->columns;
	uint64_t n = g->net->inputs;
	Arena *scratch = &g->cx->scratch;
	double *offset = NEW(scratch, n, double), *factor = NEW(scratch, n, double), *fill = NEW(scratch, n, double),
		   *category = NEW(scratch, n, double);
	int64_t *column = NEW(scratch, n, int64_t);
	bool moved = n != c->count;
	for (uint64_t i = 0; i < n; i++) {
		const Feed *f = &c->feed[i];
		offset[i] = f->offset;
		factor[i] = f->factor;
		fill[i] = f->fill;
		category[i] = f->category;
		column[i] = f->column;
		moved |= f->column != i;
	}
	if (!c->wide)
		x = cast(g, x, TYPE_DOUBLE);
	if (moved) {
		put_tensor(g, "feed/column", TYPE_INT64, column, n * sizeof *column, &n, 1);
		x = op(g, "Gather", INPUTS(x, "feed/column"), WITH({ "axis", 1 }));
	}
	const char *y = op(g, "Sub", INPUTS(x, doubles(g, "feed/offset", offset, n)), NULL);
	y = op(g, "Mul", INPUTS(y, doubles(g, "feed/factor", factor, n)), NULL);
	if (c->table) {
		const char *missing = op(g, "IsNaN", INPUTS(x), NULL);
		const char *categories = put_masks(g, "feed/categories", FEED_CATEGORY);
		const char *indicators = put_masks(g, "feed/indicators", FEED_MISSING);
		y = op(g, "Where", INPUTS(missing, doubles(g, "feed/fill", fill, n), y), NULL);
		if (categories) {
			const char *is = op(g, "Equal", INPUTS(x, doubles(g, "feed/category", category, n)), NULL);
			y = op(g, "Where", INPUTS(categories, cast(g, is, TYPE_DOUBLE), y), NULL);
		}
		if (indicators)
			y = op(g, "Where", INPUTS(indicators, cast(g, missing, TYPE_DOUBLE), y), NULL);
	}
	return cast(g, y, TYPE_FLOAT);
}

static void put_inputs(Graph *g)
{
	const Columns *c = g->w->columns;
	const Net *net = g->net;
	const char *x = "x";
	uint32_t at = 0;
	put_value(g, &g->input, GRAPH_INPUT, x, c->wide ? TYPE_DOUBLE : TYPE_FLOAT, c->count);
	if (c->scaled || c->table)
		x = put_columns(g, x);
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *of = &net->group[i];
		if (of->role == ROLE_CONTEXT) {
			const char *state = named(g, "state/%s", of->name);
			put_value(g, &g->input, GRAPH_INPUT, state, TYPE_FLOAT, of->size);
			slice_add(g, of->first, of->size, state);
		}
		if (of->role != ROLE_INPUT)
			continue;
		const char *part = x;
		if (of->size < net->inputs) {
			int64_t ends[] = { at, (int64_t)at + of->size, 1 };
			const char *first = named(g, "%s/first", of->name), *end = named(g, "%s/end", of->name),
					   *axis = named(g, "%s/axis", of->name);
			put_tensor(g, first, TYPE_INT64, &ends[0], sizeof *ends, (uint64_t[]){ 1 }, 1);
			put_tensor(g, end, TYPE_INT64, &ends[1], sizeof *ends, (uint64_t[]){ 1 }, 1);
			put_tensor(g, axis, TYPE_INT64, &ends[2], sizeof *ends, (uint64_t[]){ 1 }, 1);
			part = op(g, "Slice", INPUTS(x, first, end, axis), NULL);
		}
		slice_add(g, of->first, of->size, part);
		at += of->size;
	}
}

/* ---- outputs ------------------------------------------------------------------------------------ */

static void put_outputs(Graph *g)
{
	const Columns *c = g->w->columns;
	const Net *net = g->net;
	const char **tensor = NEW(&g->cx->scratch, (size_t)net->groups + 1, const char *), *y;
	uint32_t n = 0;
	for (uint32_t i = 0; i < net->groups; i++)
		if (net->group[i].role == ROLE_OUTPUT)
			tensor[n++] = group_tensor(g, &net->group[i]);
	y = joined(g, tensor, n);
	if (c->offset) {
		y = op(g, "Div", INPUTS(cast(g, y, TYPE_DOUBLE), doubles(g, "target/factor", c->factor, net->outputs)), NULL);
		y = cast(g, op(g, "Add", INPUTS(y, doubles(g, "target/offset", c->offset, net->outputs)), NULL), TYPE_FLOAT);
	}
	op_as(g, "y", "Identity", INPUTS(y), NULL);
	put_value(g, &g->output, GRAPH_OUTPUT, "y", TYPE_FLOAT, net->outputs);
	if (c->classes && net->outputs > 1) {
		op_as(g, "label", "ArgMax", INPUTS("y"), WITH({ "axis", 1 }, { "keepdims", 0 }));
		put_value(g, &g->output, GRAPH_OUTPUT, "label", TYPE_INT64, 0);
	} else if (c->bits || c->classes) {
		const char *below = op(g, "Less", INPUTS("y", constant(g, 0.5f)), NULL);
		op_as(g, "label", "Cast", INPUTS(op(g, "Not", INPUTS(below), NULL)), WITH({ "to", TYPE_INT64 }));
		put_value(g, &g->output, GRAPH_OUTPUT, "label", TYPE_INT64, net->outputs);
	}
	for (uint32_t i = 0; i < net->copies; i++) {
		const Group *from = &net->group[net->copy[i].from_group], *to = &net->group[net->copy[i].to_group];
		const char *next = op_as(g, named(g, "next/%s", to->name), "Identity", INPUTS(group_tensor(g, from)), NULL);
		put_value(g, &g->output, GRAPH_OUTPUT, next, TYPE_FLOAT, to->size);
	}
}

/* ---- the file ----------------------------------------------------------------------------------- */

static void put_meta(Graph *g, Buf *model, const char *key, const char *value)
{
	Buf entry = { .arena = &g->cx->scratch };
	pb_text(&entry, 1, key);
	pb_text(&entry, 2, value);
	pb_message(model, MODEL_META, &entry);
}

static void put_metas(Graph *g, Buf *model)
{
	const Columns *c = g->w->columns;
	Buf about = { .arena = &g->cx->scratch }, names = about, start = about;
	columns_describe(c, g->w->m, &about);
	put_meta(g, model, "microprop", about.s);
	put_meta(g, model, "sums", g->w->o->plain ? "matrix products" : "in the order of predict");
	if (c->target) {
		JsonWriter j = { .out = &names };
		jw_start(&j, NULL, '[');
		for (uint32_t i = 0; i < g->net->outputs; i++)
			jw_text(&j, NULL, c->target[i]);
		jw_end(&j, ']');
		put_meta(g, model, c->classes ? "classes" : "targets", names.s);
	}
	if (g->net->copies) {
		JsonWriter j = { .out = &start };
		jw_start(&j, NULL, '{');
		for (uint32_t i = 0; i < g->net->copies; i++) {
			const Group *to = &g->net->group[g->net->copy[i].to_group];
			jw_real(&j, named(g, "state/%s", to->name), "%.9g", (double)to->start);
		}
		jw_end(&j, '}');
		put_meta(g, model, "start", start.s);
	}
}

void onnx_write(const Writing *w)
{
	Ctx *cx = w->cx;
	const Net *net = w->m->net;
	if (net->settles)
		fail(cx, MP_BAD_INPUT, "export OUT.c or OUT.js", "%s settles over ticks, for which ONNX has no short form",
		     net->name);
	const Plan *plan = plan_make(cx, net, &(Caps){ .target = "export", .lanes = 1 });
	Buf empty = { .arena = &cx->scratch }, model = empty, graph = empty, opset = empty;
	Graph g = { .cx = cx, .w = w, .net = net, .node = empty, .initializer = empty, .input = empty, .output = empty };
	g.slice = NEW(&cx->scratch, (size_t)plan->spans + net->groups, Slice);
	put_inputs(&g);
	for (uint32_t i = 0; i < plan->spans; i++)
		put_span(&g, &plan->span[i]);
	put_outputs(&g);
	buf_add(&graph, g.node.s, g.node.len);
	pb_text(&graph, GRAPH_NAME, w->m->name);
	buf_add(&graph, g.initializer.s, g.initializer.len);
	buf_add(&graph, g.input.s, g.input.len);
	buf_add(&graph, g.output.s, g.output.len);
	pb_varint(&model, MODEL_IR, IR_VERSION);
	pb_text(&model, MODEL_PRODUCER, "microprop");
	pb_text(&model, MODEL_VERSION, MP_VERSION);
	pb_message(&model, MODEL_GRAPH, &graph);
	pb_text(&opset, 1, "");
	pb_varint(&opset, 2, OPSET);
	pb_message(&model, MODEL_OPSET, &opset);
	put_metas(&g, &model);
	if (model.len > MOST_BYTES)
		fail(cx, MP_BAD_INPUT, "export OUT.c, or keep it as .safetensors",
		     "this network takes %zu MB, and a file of ONNX holds 2,000 at most", model.len / 1000000);
	text_file(cx, w->path, &model);
}
