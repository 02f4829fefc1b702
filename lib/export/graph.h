/* SPDX-License-Identifier: MIT */
/* A graph of ONNX that is being written: onnx.c, and onnx_exact.c, its form with the sums of predict. */
#ifndef GRAPH_H
#define GRAPH_H

#include "export.h"

enum { TYPE_FLOAT = 1, TYPE_INT64 = 7, TYPE_BOOL = 9, TYPE_DOUBLE = 11 }; /* TensorProto.DataType */

typedef struct Slice { /* units that are a tensor */
	Unit first;
	uint32_t count;
	const char *tensor;
} Slice;

typedef struct Graph {
	Ctx *cx;
	const Writing *w;
	const Net *net;
	Buf node, initializer, input, output;
	Slice *slice; /* in the order of their units, once computed */
	uint32_t slices;
	uint32_t names;
	uint64_t sources; /* onnx_exact.c: of all spans */
} Graph;

/* ---- onnx.c ---- */

const char *named(Graph *g, const char *fmt, ...) PRINTF_LIKE(2, 3);
void put_tensor(Graph *g, const char *name, int type, const void *v, size_t bytes, const uint64_t *dim, int dims);
typedef struct Attribute {
	const char *name;
	int64_t value;
} Attribute;
/* Lists of names and attributes end with NULL. */
void put_node(Graph *g, const char *type, const char *const *inputs, const char *const *outputs, const Attribute *a);
/* A node with one output, which it returns. */
const char *op(Graph *g, const char *type, const char *const *inputs, const Attribute *a);
const char *cast(Graph *g, const char *x, int type);
const Slice *slice_of(const Graph *g, Unit u);
#define INPUTS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define WITH(...)   ((const Attribute[]){ __VA_ARGS__, { 0 } })

/* ---- onnx_exact.c ---- */

const char *exact_sums(Graph *g, const Span *s);             /* net inputs of a span, of its slices */
const char *exact_function(Graph *g, const char *x, int fn); /* NULL: of this function the plain form is near enough */

#endif
