/* SPDX-License-Identifier: MIT */
/* Library of routines: each a C function that calls instruction functions, and a row of the table at the end.
 * In: a recorder or simulator, and the sizes of the row.  Out: the routine's instructions.
 *
 * Arrays are contiguous from relocation register BASE_SRAM on, in the order given above each routine; the tables of
 * tables.c are at the start of SRAM.  Loop order (section 6.2.1): accumulators stay in registers, and successive
 * additions to one accumulator are far apart, to hide the latency. */
#include <string.h>

#include "gf11_code.h"

enum { MAX_VALUES = 256 }; /* values in registers at once, at most */

static Addr data(uint32_t off) { return (Addr){ BASE_SRAM, off }; }

static void load_all(Gen *g, Reg *reg, uint32_t off, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		reg[i] = g_load(g, data(off + i));
}

static void store_all(Gen *g, uint32_t off, const Reg *reg, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		g_store(g, data(off + i), reg[i]);
}

/* ---- unit functions and arithmetic: x [n], result [n] ---- */

static void map_each(Gen *g, uint32_t n, Reg (*function)(Constants *c, Reg x))
{
	Constants c = { .g = g };
	Reg out[MAX_VALUES];
	for (uint32_t i = 0; i < n; i++)
		out[i] = function(&c, g_load(g, data(i)));
	store_all(g, n, out, n);
}

static void make_sigmoid_table(Gen *g, const uint32_t *size) { map_each(g, size[0], sigmoid_by_table); }

static void make_sigmoid_powers(Gen *g, const uint32_t *size) { map_each(g, size[0], sigmoid_by_powers); }

static void make_reciprocal(Gen *g, const uint32_t *size) { map_each(g, size[0], reciprocal); }

/* Coefficients [degree + 1], x [n], result [n]. */
static void make_polynomial(Gen *g, const uint32_t *size)
{
	uint32_t degree = size[0], n = size[1];
	Reg coefficient[MAX_VALUES], out[MAX_VALUES];
	load_all(g, coefficient, 0, degree + 1);
	for (uint32_t i = 0; i < n; i++)
		out[i] = polynomial(g, coefficient, degree, g_load(g, data(degree + 1 + i)));
	store_all(g, degree + 1 + n, out, n);
}

/* ---- vectors ---- */

/* a [n], b [n], result [1].  Tree sum: a single accumulator would take n latencies (section 10.3). */
static void make_dot(Gen *g, const uint32_t *size)
{
	uint32_t n = size[0];
	Reg product[MAX_VALUES];
	for (uint32_t i = 0; i < n; i++) {
		Reg a = g_load(g, data(i)), b = g_load(g, data(n + i));
		product[i] = g_fmul(g, a, b);
	}
	g_store(g, data(2 * n), sum_tree(g, product, n));
}

/* Matrix [n n] by rows, x [n], result [n].  Column by column: n independent accumulators. */
static void make_matrix_vector(Gen *g, const uint32_t *size)
{
	uint32_t n = size[0];
	Reg x[MAX_VALUES], sum[MAX_VALUES];
	load_all(g, x, n * n, n);
	for (uint32_t column = 0; column < n; column++) {
		for (uint32_t row = 0; row < n; row++) {
			Reg product = g_fmul(g, g_load(g, data(row * n + column)), x[column]);
			sum[row] = column ? g_fadd(g, sum[row], product) : product;
		}
	}
	store_all(g, n * n + n, sum, n);
}

/* a [n], b [n], result [n]. */
static void make_vector_add(Gen *g, const uint32_t *size)
{
	uint32_t n = size[0];
	Reg sum[MAX_VALUES];
	for (uint32_t i = 0; i < n; i++) {
		Reg a = g_load(g, data(i)), b = g_load(g, data(n + i));
		sum[i] = g_fadd(g, a, b);
	}
	store_all(g, 2 * n, sum, n);
}

/* v [n], result [1]. */
static void make_vector_sum(Gen *g, const uint32_t *size)
{
	Reg v[MAX_VALUES];
	load_all(g, v, 0, size[0]);
	g_store(g, data(size[0]), sum_tree(g, v, size[0]));
}

/* ---- memory ---- */

/* Indices [n], table [t], result [n]: gather with per-processor indices. */
static void make_look_up(Gen *g, const uint32_t *size)
{
	uint32_t n = size[0], t = size[1];
	Reg word[MAX_VALUES];
	g_index_limit(g, BASE_SRAM, n + t);
	for (uint32_t i = 0; i < n; i++)
		word[i] = g_lookup(g, data(n), g_load(g, data(i)));
	store_all(g, n + t, word, n);
}

/* Indices [n], words [n], table [t]: scatter with per-processor indices; the last write wins. */
static void make_scatter(Gen *g, const uint32_t *size)
{
	uint32_t n = size[0];
	Reg index[MAX_VALUES], word[MAX_VALUES];
	g_index_limit(g, BASE_SRAM, 2 * n + size[1]);
	load_all(g, index, 0, n);
	load_all(g, word, n, n);
	for (uint32_t i = 0; i < n; i++)
		g_put(g, data(2 * n), index[i], word[i]);
}

/* SRAM in [n], out [n]; DRAM the same: `in` is fetched, `out` flushed. */
static void make_block_move(Gen *g, const uint32_t *size)
{
	for (uint32_t i = 0; i < size[0]; i++) {
		g_fetch(g, data(i), (Addr){ BASE_DRAM, i });
		g_flush(g, (Addr){ BASE_DRAM, size[0] + i }, data(size[0] + i));
	}
}

/* ---- the switch ---- */

/* Mask [1], words [n]: each processor sends its words to its buddy through configuration 0 and replaces them by the
 * received ones where the mask is positive. */
static void make_exchange(Gen *g, const uint32_t *size)
{
	uint32_t n = size[0];
	Constants c = { .g = g };
	Reg word[MAX_VALUES], zero = constant(&c, K_ZERO);
	Cond takes = g_compare(g, GOP_INT_LT, zero, g_load(g, data(0)));
	for (uint32_t i = 0; i < n; i++) {
		word[i] = g_load(g, data(1 + i));
		g_move_masked(g, word[i], takes, g_xfer(g, 0, word[i]));
	}
	store_all(g, 1, word, n);
}

/* ---- bundles of weights between `sources` and `units` ---- */

/* Outputs of the sources, net inputs of the units, weights by source. */
static void make_forward(Gen *g, const uint32_t *size)
{
	uint32_t sources = size[0], units = size[1];
	Reg out[MAX_VALUES], net[MAX_VALUES];
	load_all(g, out, 0, sources);
	load_all(g, net, sources, units);
	for (uint32_t s = 0; s < sources; s++)
		for (uint32_t u = 0; u < units; u++) {
			Reg weight = g_load(g, data(sources + units + s * units + u));
			net[u] = g_fadd(g, net[u], g_fmul(g, weight, out[s]));
		}
	store_all(g, sources, net, units);
}

/* Gradient of one weight: += error of the unit * output of the source. */
static void change_weight(Gen *g, uint32_t off, Reg error, Reg out)
{
	Reg change = g_load(g, data(off));
	g_store(g, data(off), g_fadd(g, change, g_fmul(g, error, out)));
}

/* Outputs of the sources, errors of the units, errors of the sources, weights by source, gradients by source.
 * By unit, so that additions to the error of one source are `sources` links apart (section 6.2.1). */
static void make_backward(Gen *g, const uint32_t *size)
{
	uint32_t sources = size[0], units = size[1], weights = 2 * sources + units, changes = weights + sources * units;
	Reg out[MAX_VALUES], error[MAX_VALUES], back[MAX_VALUES];
	load_all(g, out, 0, sources);
	load_all(g, error, sources, units);
	load_all(g, back, sources + units, sources);
	for (uint32_t u = 0; u < units; u++)
		for (uint32_t s = 0; s < sources; s++) {
			Reg weight = g_load(g, data(weights + s * units + u));
			back[s] = g_fadd(g, back[s], g_fmul(g, weight, error[u]));
			change_weight(g, changes + s * units + u, error[u], out[s]);
		}
	store_all(g, sources + units, back, sources);
}

/* Input layer, whose sources need no error: outputs, errors of the units, gradients by source. */
static void make_backward_input(Gen *g, const uint32_t *size)
{
	uint32_t sources = size[0], units = size[1];
	Reg out[MAX_VALUES], error[MAX_VALUES];
	load_all(g, out, 0, sources);
	load_all(g, error, sources, units);
	for (uint32_t u = 0; u < units; u++)
		for (uint32_t s = 0; s < sources; s++)
			change_weight(g, sources + units + s * units + u, error[u], out[s]);
}

/* ---- without a cache (section 5): weights, and changes, in DRAM ---- */

static Reg uncached(Gen *g, uint32_t near, uint32_t far)
{
	g_fetch(g, data(near), (Addr){ BASE_DRAM, far });
	return g_load(g, data(near));
}

/* SRAM: outputs, net inputs, a word for each weight; DRAM: weights by source.  A transfer for two operations: 50 %. */
static void make_forward_uncached(Gen *g, const uint32_t *size)
{
	uint32_t sources = size[0], units = size[1];
	Reg out[MAX_VALUES], net[MAX_VALUES];
	load_all(g, out, 0, sources);
	load_all(g, net, sources, units);
	for (uint32_t s = 0; s < sources; s++)
		for (uint32_t u = 0; u < units; u++) {
			Reg weight = uncached(g, sources + units + s * units + u, s * units + u);
			net[u] = g_fadd(g, net[u], g_fmul(g, weight, out[s]));
		}
	store_all(g, sources, net, units);
}

/* SRAM as for backward; DRAM: weights by unit, changes by unit.  Three transfers for four operations: 33 %. */
static void make_backward_uncached(Gen *g, const uint32_t *size)
{
	uint32_t sources = size[0], units = size[1], links = sources * units, weights = 2 * sources + units;
	Reg out[MAX_VALUES], error[MAX_VALUES], back[MAX_VALUES];
	load_all(g, out, 0, sources);
	load_all(g, error, sources, units);
	load_all(g, back, sources + units, sources);
	for (uint32_t u = 0; u < units; u++)
		for (uint32_t s = 0; s < sources; s++) {
			uint32_t i = u * sources + s, near = weights + links + i;
			Reg weight = uncached(g, weights + i, i), change = uncached(g, near, links + i);
			back[s] = g_fadd(g, back[s], g_fmul(g, weight, error[u]));
			g_store(g, data(near), g_fadd(g, change, g_fmul(g, error[u], out[s])));
			g_flush(g, (Addr){ BASE_DRAM, links + i }, data(near));
		}
	store_all(g, sources + units, back, sources);
}

/* ---- first attempts (section 6.2.1): what the report says was improved ---- */

/* As forward, but outputs and net inputs are loaded, and net inputs stored, for each weight; unit by unit. */
static void make_forward_first(Gen *g, const uint32_t *size)
{
	uint32_t sources = size[0], units = size[1];
	for (uint32_t u = 0; u < units; u++)
		for (uint32_t s = 0; s < sources; s++) {
			Reg weight = g_load(g, data(sources + units + s * units + u)), out = g_load(g, data(s));
			Reg net = g_load(g, data(sources + u));
			g_store(g, data(sources + u), g_fadd(g, net, g_fmul(g, weight, out)));
		}
}

/* As backward, but by source: all additions to the error of one source follow each other. */
static void make_backward_first(Gen *g, const uint32_t *size)
{
	uint32_t sources = size[0], units = size[1], weights = 2 * sources + units, changes = weights + sources * units;
	Reg error[MAX_VALUES];
	load_all(g, error, sources, units);
	for (uint32_t s = 0; s < sources; s++) {
		Reg out = g_load(g, data(s)), back = g_load(g, data(sources + units + s));
		for (uint32_t u = 0; u < units; u++) {
			Reg weight = g_load(g, data(weights + s * units + u));
			back = g_fadd(g, back, g_fmul(g, weight, error[u]));
			change_weight(g, changes + s * units + u, error[u], out);
		}
		g_store(g, data(sources + units + s), back);
	}
}

/* ---- the table ---- */

const RoutineDef routine_defs[] = {
	{ "forward", "weighted sums of a bundle: 17 sources, 60 units", make_forward, { 17, 60 }, false },
	{ "backward", "errors and weight changes of the same bundle", make_backward, { 17, 60 }, false },
	{ "backward-input", "weight changes alone, for the input layer", make_backward_input, { 17, 60 }, false },
	{ "sigmoid-table", "1 / (1 + e^-x) of 60 units, by table", make_sigmoid_table, { 60 }, false },
	{ "sigmoid-powers", "1 / (1 + 2^-x) of 60 units, by powers of two", make_sigmoid_powers, { 60 }, false },
	{ "reciprocal", "of 60 values", make_reciprocal, { 60 }, false },
	{ "polynomial", "of degree 7 at 60 points", make_polynomial, { 7, 60 }, false },
	{ "dot", "dot product of 128 elements", make_dot, { 128 }, false },
	{ "matrix-vector", "12 x 12 matrix by vector", make_matrix_vector, { 12 }, false },
	{ "vector-add", "sum of two vectors of 128 elements", make_vector_add, { 128 }, false },
	{ "vector-sum", "sum of the 128 elements of a vector", make_vector_sum, { 128 }, false },
	{ "look-up", "gather of 64 words, per-processor indices", make_look_up, { 64, 128 }, false },
	{ "scatter", "scatter of 64 words, per-processor indices", make_scatter, { 64, 128 }, false },
	{ "block-move", "128 words from DRAM to SRAM, 128 back", make_block_move, { 128 }, false },
	{ "exchange", "masked exchange of 64 words with the buddy", make_exchange, { 64 }, true },
	{ "forward-uncached", "forward, each weight from DRAM (section 5)", make_forward_uncached, { 17, 60 }, false },
	{ "backward-uncached", "backward, each weight and change in DRAM", make_backward_uncached, { 17, 60 }, false },
	{ "forward-first", "forward, net inputs not kept in registers", make_forward_first, { 17, 60 }, false },
	{ "backward-first", "backward, ordered by source", make_backward_first, { 17, 60 }, false },
};
const size_t routine_def_count = COUNT(routine_defs);

const RoutineDef *routine_find(const char *name)
{
	for (size_t i = 0; i < COUNT(routine_defs); i++)
		if (strcmp(routine_defs[i].name, name) == 0)
			return &routine_defs[i];
	return NULL;
}

Code *routine_record(Ctx *cx, const Machine *m, const RoutineDef *def)
{
	Gen *g = gen_record(cx, m, def->name);
	def->make(g, def->size);
	Code *code = gen_end(g);
	code->update = def->update;
	return code;
}
