/* SPDX-License-Identifier: MIT */
/* Networks of ONNX.  In: a file with Gemm, MatMul, Add, Concat and activations.  Out: its units and links.
 *
 * A tensor of the graph is a list of units, or constant.  Gemm and MatMul make units, which are linear until an
 * activation follows: it becomes their function.  Reshape, Flatten, Identity and Dropout change nothing.  Every other
 * node is named: an error, or with --lossy left out, if no output needs it. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "message.h"

enum { MODEL_GRAPH = 7, MODEL_META = 14, GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_F = 2, ATTRIBUTE_I = 3, ATTRIBUTE_T = 5 };
enum {
	TENSOR_DIMS = 1,
	TENSOR_TYPE = 2,
	TENSOR_FLOATS = 4,
	TENSOR_NAME = 8,
	TENSOR_RAW = 9,
	TENSOR_DOUBLES = 10,
	TENSOR_EXTERNAL = 13,
	TENSOR_LOCATION = 14
};
enum { TYPE_FLOAT = 1, TYPE_DOUBLE = 11 };
enum { MOST_DIMS = 4, MOST_INPUTS = 64, MOST_UNITS = 1000000, MOST_WEIGHTS = 20000000 };

typedef struct Array { /* constant: its bytes in the file */
	int type;
	uint64_t dim[MOST_DIMS], count;
	int dims;
	Message raw;
	bool whole; /* it has as many numbers as its shape says */
	Loc at;
} Array;

typedef struct Value {
	const char *name;
	const Array *array; /* constant, or */
	uint32_t *unit;     /* [units]; neither: nothing that is known here */
	uint64_t units;
	bool linear; /* its units have no function yet, and nothing has read them */
	bool spent;  /* its units have become those of a later value */
} Value;

typedef struct Node {
	const char *op, *input[MOST_INPUTS], *output;
	uint32_t inputs;
	int64_t axis, trans_a, trans_b;
	float alpha, beta;
	const Array *value;
	Loc at;
} Node;

typedef struct Graph {
	const Old *o;
	Ctx *cx;
	Dict names; /* of values */
	Value *value;
	uint64_t value_cap;
	OldNet net;
	uint32_t softmaxes;
	uint64_t joined; /* units of all Concat */
} Graph;

/* ---- values ------------------------------------------------------------------------------------- */

static Value *value_of(Graph *g, const char *name)
{
	uint32_t before = g->names.count, i = dict_add(&g->names, (Text){ name, (uint32_t)strlen(name) });
	if (i == before) {
		g->value = arena_reserve(&g->cx->scratch, g->value, before, &g->value_cap, sizeof *g->value);
		g->value[i] = (Value){ .name = name };
	}
	return &g->value[i];
}

static Value *value_need(Graph *g, const Node *n, uint32_t input, bool units)
{
	const char *name = input < n->inputs ? n->input[input] : "";
	Value *v = value_of(g, name);
	if (v->spent)
		fail_at(g->cx, n->at, "sums that are read twice, as they are and after an activation, are not read",
		        "'%.40s' is read by %s after another node", name, n->op);
	if (units ? !v->unit : !v->array)
		fail_at(g->cx, n->at, "networks of Gemm, MatMul, Add, Concat and activations are read",
		        "input %u of %s, '%.40s', is not %s", input, n->op, name, units ? "made of units" : "a constant");
	return v;
}

static uint32_t unit_add(Graph *g, int role, int fn, Loc at)
{
	OldNet *n = &g->net;
	if (n->units >= MOST_UNITS)
		fail_at(g->cx, at, "make it smaller", "the network has more than %d units", MOST_UNITS);
	n->unit = arena_reserve(&g->cx->scratch, n->unit, n->units, &n->unit_cap, sizeof *n->unit);
	n->unit[n->units] = (OldUnit){ .role = role, .fn = fn, .at = at };
	return (uint32_t)n->units++;
}

static void link_add(Graph *g, uint32_t from, uint32_t to, double weight, Loc at)
{
	OldNet *n = &g->net;
	if (n->links >= MOST_WEIGHTS)
		fail_at(g->cx, at, "train it here instead", "the network has more than %d weights", MOST_WEIGHTS);
	n->link = arena_reserve(&g->cx->scratch, n->link, n->links, &n->link_cap, sizeof *n->link);
	n->link[n->links++] = (OldLink){ .from = from, .to = to, .weight = weight, .at = at };
}

static uint32_t *units_new(Graph *g, uint64_t count, int role, int fn, Loc at)
{
	uint32_t *unit = NEW(&g->cx->scratch, count, uint32_t);
	for (uint64_t i = 0; i < count; i++)
		unit[i] = unit_add(g, role, fn, at);
	return unit;
}

static double number_at(Graph *g, const Array *a, uint64_t i)
{
	const char *p = a->raw.src->text + a->raw.at;
	double v;
	float f;
	if (a->type == TYPE_DOUBLE) {
		memcpy(&v, p + i * sizeof v, sizeof v);
	} else {
		memcpy(&f, p + i * sizeof f, sizeof f);
		v = (double)f;
	}
	if (!isfinite(v) || !isfinite((float)v))
		fail_at(g->cx, (Loc){ a->raw.src, a->raw.at + i * (a->type == TYPE_DOUBLE ? 8 : 4) }, "train it anew",
		        "a weight is not a finite number");
	return v;
}

/* ---- the file ----------------------------------------------------------------------------------- */

static void array_dim(Array *a, const Message *m, const MessageField *f, uint64_t dim)
{
	if (a->dims == MOST_DIMS)
		fail_at(m->cx, f->loc, "weights have one or two dimensions", "a tensor of more than %d dimensions", MOST_DIMS);
	if (dim > MAX_LINKS || a->count * dim > MAX_LINKS)
		fail_at(m->cx, f->loc, "is the file complete? export it anew", "a tensor cannot be as large as this");
	a->count *= dim;
	a->dim[a->dims++] = dim;
}

static Array *read_array(Message m, const char **name)
{
	Array *a = NEW(&m.cx->scratch, 1, Array);
	MessageField f;
	*a = (Array){ .count = 1, .at = { m.src, m.at } };
	*name = "";
	while (message_next(&m, &f)) {
		uint64_t v;
		if (f.number == TENSOR_DIMS && f.wire == WIRE_VARINT)
			array_dim(a, &m, &f, f.value);
		else if (f.number == TENSOR_DIMS && f.wire == WIRE_BYTES)
			while (message_varint(&f.bytes, &v))
				array_dim(a, &m, &f, v);
		else if (f.number == TENSOR_TYPE)
			a->type = (int)(f.value & 0xff);
		else if (f.number == TENSOR_NAME)
			*name = message_text(&f, &m, "the name of a tensor");
		else if ((f.number == TENSOR_RAW || f.number == TENSOR_FLOATS || f.number == TENSOR_DOUBLES) &&
		         f.wire == WIRE_BYTES)
			a->raw = f.bytes;
		else if (f.number == TENSOR_EXTERNAL || (f.number == TENSOR_LOCATION && f.value))
			fail_at(m.cx, f.loc, "save it as one file: onnx.save(model, path)", "weights are in another file");
	}
	uint64_t each = a->type == TYPE_DOUBLE ? sizeof(double) : sizeof(float);
	a->whole = (a->type == TYPE_FLOAT || a->type == TYPE_DOUBLE) && a->raw.end - a->raw.at == a->count * each;
	return a;
}

static void read_attribute(Message m, Node *n)
{
	MessageField f, value = { 0 };
	const char *name = "", *unused;
	while (message_next(&m, &f)) {
		if (f.number == ATTRIBUTE_NAME)
			name = message_text(&f, &m, "the name of an attribute");
		else if (f.number == ATTRIBUTE_F || f.number == ATTRIBUTE_I || f.number == ATTRIBUTE_T)
			value = f;
	}
	float number;
	uint32_t bits = (uint32_t)value.value;
	memcpy(&number, &bits, sizeof number);
	if (value.number == ATTRIBUTE_I) {
		int64_t i = (int64_t)value.value;
		n->axis = strcmp(name, "axis") == 0 ? i : n->axis;
		n->trans_a = strcmp(name, "transA") == 0 ? i : n->trans_a;
		n->trans_b = strcmp(name, "transB") == 0 ? i : n->trans_b;
	} else if (value.number == ATTRIBUTE_F) {
		n->alpha = strcmp(name, "alpha") == 0 ? number : n->alpha;
		n->beta = strcmp(name, "beta") == 0 ? number : n->beta;
	} else if (value.number == ATTRIBUTE_T && value.wire == WIRE_BYTES && strcmp(name, "value") == 0) {
		n->value = read_array(value.bytes, &unused);
	}
}

static Node read_node(Message m)
{
	Node n = { .op = "", .output = "", .alpha = 1, .beta = 1, .axis = INT64_MIN, .at = { m.src, m.at } };
	MessageField f;
	while (message_next(&m, &f)) {
		if (f.number == NODE_INPUT) {
			if (n.inputs == MOST_INPUTS)
				fail_at(m.cx, f.loc, "concatenate fewer tensors", "a node has more than %d inputs", MOST_INPUTS);
			n.input[n.inputs++] = message_text(&f, &m, "the name of an input");
		} else if (f.number == NODE_OUTPUT && !*n.output) {
			n.output = message_text(&f, &m, "the name of an output");
		} else if (f.number == NODE_OP) {
			n.op = message_text(&f, &m, "the type of a node");
		} else if (f.number == NODE_ATTRIBUTE) {
			message_need(&f, &m, WIRE_BYTES, "an attribute");
			read_attribute(f.bytes, &n);
		}
	}
	return n;
}

/* A field of a message that is itself a message; false: there is none. */
static bool inner(Message m, uint32_t number, Message *found)
{
	MessageField f;
	bool any = false;
	while (message_next(&m, &f)) {
		if (f.number == number && f.wire == WIRE_BYTES) {
			*found = f.bytes;
			any = true;
		}
	}
	return any;
}

/* Name and units of an input or output: the product of its dimensions but the first, the batch; 0: not known. */
static uint64_t read_shape(Message m, const char **name)
{
	Message scan = m, type, tensor, shape;
	MessageField f, d;
	uint64_t units = 1;
	uint32_t dims = 0;
	*name = "";
	while (message_next(&scan, &f))
		if (f.number == 1)
			*name = message_text(&f, &m, "the name of a tensor");
	if (!inner(m, 2, &type) || !inner(type, 1, &tensor) || !inner(tensor, 2, &shape))
		return 0;
	while (message_next(&shape, &f)) {
		uint64_t size = 0;
		if (f.number != 1 || f.wire != WIRE_BYTES)
			continue;
		while (message_next(&f.bytes, &d))
			size = d.number == 1 && d.wire == WIRE_VARINT ? d.value : size;
		if (dims++)
			units = size > MAX_UNITS ? MAX_UNITS + 1ull : min_u64(units * size, MAX_UNITS + 1ull);
	}
	return dims > 1 ? units : 0;
}

/* ---- nodes -------------------------------------------------------------------------------------- */

static void put_units(Graph *g, const Node *n, uint32_t *unit, uint64_t units, bool linear)
{
	Value *v = value_of(g, n->output);
	v->array = NULL;
	v->unit = unit;
	v->units = units;
	v->linear = linear;
}

/* Its units belong to another value from now on. */
static void value_spend(Graph *g, const char *name)
{
	Value *v = value_of(g, name);
	v->unit = NULL;
	v->spent = true;
}

static void bias_add(Graph *g, const Node *n, const Value *to, const Array *a, double factor)
{
	if (!a->whole || (a->count != 1 && a->count != to->units))
		fail_at(g->cx, a->at, "it is [units] of float32 or float64",
		        "%" PRIu64 " numbers cannot be added to %" PRIu64 " units by %s", a->count, to->units, n->op);
	for (uint64_t i = 0; i < to->units; i++) {
		OldUnit *u = &g->net.unit[to->unit[i]];
		u->biased = true;
		u->bias += factor * number_at(g, a, a->count == 1 ? 0 : i);
	}
}

static void do_product(Graph *g, const Node *n)
{
	bool gemm = strcmp(n->op, "Gemm") == 0;
	Value from = *value_need(g, n, 0, true);
	const Array *w = value_need(g, n, 1, false)->array;
	bool transposed = gemm && n->trans_b;
	if (gemm && n->trans_a)
		fail_at(g->cx, n->at, "export it with cases as rows", "Gemm transposes the cases");
	if (w->dims != 2 || !w->whole)
		fail_at(g->cx, w->at, "it is [sources, units] of float32 or float64", "the weights of %s are not a matrix",
		        n->op);
	uint64_t sources = w->dim[transposed], units = w->dim[!transposed];
	if (sources != from.units || !units)
		fail_at(g->cx, n->at, "is the file complete? export it anew",
		        "%s multiplies %" PRIu64 " units with weights for %" PRIu64, n->op, from.units, sources);
	value_of(g, from.name)->linear = false;
	uint32_t *unit = units_new(g, units, ROLE_HIDDEN, FN_LINEAR, n->at);
	for (uint64_t j = 0; j < units; j++)
		for (uint64_t i = 0; i < sources; i++)
			link_add(g, from.unit[i], unit[j],
			         (double)(gemm ? n->alpha : 1) * number_at(g, w, transposed ? j * sources + i : i * units + j),
			         w->at);
	put_units(g, n, unit, units, true);
	if (gemm && n->inputs > 2 && *n->input[2]) {
		const Array *bias = value_need(g, n, 2, false)->array;
		bias_add(g, n, value_of(g, n->output), bias, (double)n->beta);
	}
}

/* Units of b, which are side by side and read by nothing, become those of a. */
static void units_merge(Graph *g, const Value *a, const Value *b)
{
	OldNet *n = &g->net;
	for (uint64_t i = n->links; i-- > 0;) {
		OldLink *l = &n->link[i];
		if (l->to >= b->unit[0] && l->to - b->unit[0] < b->units)
			l->to = a->unit[l->to - b->unit[0]];
	}
	for (uint64_t i = 0; i < b->units; i++) {
		OldUnit *to = &n->unit[a->unit[i]], *from = &n->unit[b->unit[i]];
		to->biased |= from->biased;
		to->bias += from->bias;
	}
	if (b->unit[0] + b->units == n->units)
		n->units -= b->units;
	value_spend(g, b->name);
}

/* Of a tensor and a constant, or of two sums, whose links then lead to the same units. */
static void do_add(Graph *g, const Node *n)
{
	Value a = *value_of(g, n->inputs > 0 ? n->input[0] : ""), b = *value_of(g, n->inputs > 1 ? n->input[1] : "");
	if ((a.array && b.unit) || (a.unit && b.unit && a.unit[0] > b.unit[0])) { /* the later units become the earlier */
		Value swap = a;
		a = b;
		b = swap;
	}
	if (!a.unit || !a.linear || !(b.array || (b.unit && b.linear && b.units == a.units && b.unit != a.unit)))
		fail_at(g->cx, n->at, "networks of Gemm, MatMul, Add, Concat and activations are read",
		        "Add is read of a Gemm or MatMul and a constant, or of two of them");
	if (b.array)
		bias_add(g, n, &a, b.array, 1);
	else
		units_merge(g, &a, &b);
	value_spend(g, a.name);
	put_units(g, n, a.unit, a.units, true);
}

static void do_function(Graph *g, const Node *n, int fn)
{
	Value from = *value_need(g, n, 0, true);
	uint32_t *unit = from.unit;
	if (fn == FN_SOFTMAX && g->softmaxes++)
		fail_at(g->cx, n->at, "only one is read", "there are several nodes of type Softmax");
	if (!from.linear) { /* of something that has a function already: units of their own */
		unit = units_new(g, from.units, ROLE_HIDDEN, fn, n->at);
		for (uint64_t i = 0; i < from.units; i++)
			link_add(g, from.unit[i], unit[i], 1, n->at);
	}
	for (uint64_t i = 0; i < from.units; i++)
		g->net.unit[unit[i]].fn = fn;
	if (from.linear)
		value_spend(g, from.name);
	put_units(g, n, unit, from.units, false);
}

static void do_concat(Graph *g, const Node *n)
{
	uint64_t units = 0;
	if (n->axis != 1 && n->axis != -1)
		fail_at(g->cx, n->at, "axis 1 joins units", "Concat of axis %" PRId64 " joins cases", n->axis);
	for (uint32_t i = 0; i < n->inputs; i++)
		units += value_need(g, n, i, true)->units;
	g->joined += units;
	if (g->joined > 8 * MOST_UNITS)
		fail_at(g->cx, n->at, "make it smaller", "nodes of type Concat join more than %d units", 8 * MOST_UNITS);
	uint32_t *unit = NEW(&g->cx->scratch, units, uint32_t);
	units = 0;
	for (uint32_t i = 0; i < n->inputs; i++) {
		Value *v = value_need(g, n, i, true);
		memcpy(unit + units, v->unit, v->units * sizeof *unit);
		units += v->units;
		v->linear = false;
	}
	put_units(g, n, unit, units, false);
}

static void do_same(Graph *g, const Node *n)
{
	Value from = *value_of(g, n->inputs ? n->input[0] : "");
	if (from.unit) {
		if (from.linear)
			value_spend(g, from.name);
		put_units(g, n, from.unit, from.units, from.linear);
	} else {
		value_of(g, n->output)->array = from.array;
	}
}

static const struct {
	const char *op;
	int fn;
} functions[] = {
	{ "Sigmoid", FN_SIGMOID }, { "Tanh", FN_TANH },         { "Relu", FN_RELU },
	{ "Softmax", FN_SOFTMAX }, { "Softsign", FN_SOFTSIGN },
};
static const char *const same[] = { "Identity", "Flatten", "Reshape", "Dropout" };

static void do_node(Graph *g, const Node *n)
{
	for (size_t i = 0; i < COUNT(functions); i++) {
		if (strcmp(n->op, functions[i].op) == 0) {
			do_function(g, n, functions[i].fn);
			return;
		}
	}
	for (size_t i = 0; i < COUNT(same); i++) {
		if (strcmp(n->op, same[i]) == 0) {
			do_same(g, n);
			return;
		}
	}
	if (strcmp(n->op, "Gemm") == 0 || strcmp(n->op, "MatMul") == 0)
		do_product(g, n);
	else if (strcmp(n->op, "Add") == 0)
		do_add(g, n);
	else if (strcmp(n->op, "Concat") == 0)
		do_concat(g, n);
	else if (strcmp(n->op, "Constant") == 0 && n->value)
		value_of(g, n->output)->array = n->value;
	else
		old_lost(g->o, n->at, "a node of type %.40s", *n->op ? n->op : "?");
}

/* ---- the network -------------------------------------------------------------------------------- */

static void do_inputs(Graph *g, Message m)
{
	MessageField f;
	while (message_next(&m, &f)) {
		const char *name;
		if (f.number != GRAPH_INPUT)
			continue;
		message_need(&f, &m, WIRE_BYTES, "an input");
		uint64_t units = read_shape(f.bytes, &name);
		if (value_of(g, name)->array)
			continue; /* an initializer */
		if (!units || units > MOST_UNITS)
			fail_at(g->cx, f.loc, "its shape is [N, inputs], with a number of inputs", "input '%.40s' has no size",
			        name);
		Value *v = value_of(g, name);
		v->unit = units_new(g, units, ROLE_INPUT, FN_LINEAR, f.loc);
		v->units = units;
	}
}

static void do_outputs(Graph *g, Message m)
{
	MessageField f;
	uint32_t next = 0;
	while (message_next(&m, &f)) {
		const char *name;
		if (f.number != GRAPH_OUTPUT)
			continue;
		message_need(&f, &m, WIRE_BYTES, "an output");
		read_shape(f.bytes, &name);
		const Value *v = value_of(g, name);
		if (!v->unit) {
			old_lost(g->o, f.loc, "output '%.40s', which is not made of units", name);
			continue;
		}
		for (uint64_t i = 0; i < v->units; i++) {
			OldUnit *u = &g->net.unit[v->unit[i]];
			if (u->role == ROLE_INPUT || v->unit[i] < next)
				fail_at(g->cx, f.loc, "outputs are units that are computed, each once, in their order",
				        "output '%.40s' %s", name, u->role == ROLE_INPUT ? "has inputs" : "has units in another order");
			u->role = ROLE_OUTPUT;
			next = v->unit[i] + 1;
		}
	}
}

static void do_graph(Graph *g, Message m)
{
	Message scan = m;
	MessageField f;
	const char *name;
	while (message_next(&scan, &f)) {
		if (f.number != GRAPH_INITIALIZER)
			continue;
		message_need(&f, &m, WIRE_BYTES, "an initializer");
		const Array *a = read_array(f.bytes, &name);
		value_of(g, name)->array = a;
	}
	do_inputs(g, m);
	scan = m;
	while (message_next(&scan, &f)) {
		if (f.number != GRAPH_NODE)
			continue;
		message_need(&f, &m, WIRE_BYTES, "a node");
		Node n = read_node(f.bytes);
		do_node(g, &n);
	}
	do_outputs(g, m);
	check_errors(g->cx);
}

/* Files that `microprop export` wrote without --plain say so in their metadata: every link is several nodes. */
static void refuse_sums_of_predict(Message m)
{
	static const char entry[] = "\n\4sums\22\27in the order of predict"; /* key, value */
	MessageField f;
	for (Message scan = m; message_next(&scan, &f);)
		if (f.number == MODEL_META && f.wire == WIRE_BYTES && f.bytes.end - f.bytes.at == sizeof entry - 1 &&
		    memcmp(m.src->text + f.bytes.at, entry, sizeof entry - 1) == 0)
			fail(m.cx, MP_BAD_INPUT, "export it with --plain, or use the file that it was exported from",
			     "%s has a node for each step of predict, and is not read as a network", m.src->name);
}

/* By the name, or by the first two fields: the version, then another of a model. */
bool onnx_looks(const Src *src)
{
	static const char tags[] = "\x12\x1a\x22\x28\x32\x3a\x42\x72";
	size_t n = strlen(src->name);
	if (n > 5 && strcmp(src->name + n - 5, ".onnx") == 0)
		return true;
	return src->len > 16 && src->text[0] == 8 && src->text[1] > 0 && src->text[1] < 32 && src->text[2] &&
	       strchr(tags, src->text[2]);
}

Net *onnx_read(const Old *o)
{
	Src *src = NEW(&o->cx->keep, 1, Src);
	*src = *o->src;
	src->binary = true;
	Old own = { o->cx, src, o->opt };
	Graph g = { .o = &own, .cx = o->cx, .names = { .arena = &o->cx->scratch } };
	Message all = { o->cx, src, 0, src->len }, graph;
	if (!inner(all, MODEL_GRAPH, &graph))
		fail_at(o->cx, (Loc){ src, 0 }, "is it a file of ONNX?", "the file holds no graph");
	refuse_sums_of_predict(all);
	do_graph(&g, graph);
	g.net.title = "# from ONNX\n";
	g.net.train = "";
	return old_build(&own, &g.net);
}
