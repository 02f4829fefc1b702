/* SPDX-License-Identifier: MIT */
/* Kernels of the cpu target: all the arithmetic, compiled once for each instruction set.
 *
 * The kernels are written once (the .inc files of this folder) in terms of vectors of 16 floats, and built once for
 * each kind of vector unit of a machine:
 *
 *   vec_generic.h, vec_neon.h, vec_avx2.h, vec_avx512.h     vectors of 16 floats, and operations on them
 *   product.inc, ..., seeds.inc                             the kernels; kernels.inc lists them
 *   generic.c, neon.c, avx2.c, avx512.c                     one of the first, all of the second: one Kern
 *
 * Every lane is one chain of correctly rounded operations in an order that only the arguments determine, so all give
 * the same bits. Rows are rows of cases. Rows are padded to full vectors: kernels may compute and write all of the
 * padding, and its contents have no meaning. No kernel needs alignment, but cache lines like it. Kernels run between
 * cpu_enter and cpu_leave: subnormal numbers count as zero (flush.h). */
#ifndef KERN_H
#define KERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formula.h"
#include "tally.h"
#include "units.h"
#include "util.h"
#include "checksum.h"
#include "small.h"

enum { LANES = 16 };

/* c[m][n] = start[m][n] + a[m][0] b[0][n] + a[m][1] b[1][n] + ..., each element one chain of fused multiply-adds in
 * this order. All three passes are of this form:
 *
 *                rows m        columns n       depth k         a                  b
 *   forward      cases         target units    source units    outputs            weights, by source
 *   backward     cases         source units    target units    deltas             weights, by target
 *   gradient     target units  source units    cases           deltas             outputs
 *   or           source units  target units    cases           outputs            deltas */
typedef struct Product {
	uint32_t rows, cols, depth;
	const float *a; /* a[m][k] is a[m * a_row + k * a_step] */
	size_t a_row, a_step;
	const float *b; /* b[k][n] is b[k * b_row + n] */
	size_t b_row;
	bool transposed;    /* b[k][n] is b[n * b_row + k], and b_at is NULL: strips of b are transposed before use */
	const float *start; /* start_row 0: the same row for all */
	size_t start_row;
	float *c; /* may be start */
	size_t c_row;
	const uint32_t *at;   /* NULL, or the numbers of the rows of a and c (and start, unless start_row is 0) */
	const uint64_t *a_at; /* NULL, or those of a alone, and then `at` is NULL */
	const uint64_t *b_at; /* NULL, or b[k][n] is b[b_at[k] * b_row + n] */
	bool far;             /* rows of a (a_step 1) are in memory: prefetch those of the next tile */
	bool c_far;           /* set by the kernel: c does not stay in L2, prefetch it where a tile begins */
} Product;

/* Index lists transposed: for each input the rows that have it, in order. */
typedef struct InputRun {
	uint32_t source, end; /* end of its rows, which begin where those of the run before end */
} InputRun;
typedef struct InputRows {
	uint32_t runs;
	const InputRun *run; /* [runs] all inputs, those with few rows first */
	const uint16_t *row;
	const float *value; /* NULL: all ones */
} InputRows;

/* Inputs as index lists (CSR), a list for each row: c[m] = start[m] + value b[index] + ...; and its gradient. */
typedef struct Lists {
	uint32_t rows, cols;
	const uint32_t *const *index; /* [rows] ascending */
	const float *const *value;    /* [rows], NULL: all ones */
	const uint32_t *count;        /* [rows] */
	uint32_t low, high;           /* only indices low .. high - 1 count; low is row 0 of b or sum */
	const float *b;               /* forward: weights, by source */
	size_t b_row;
	const float *start;
	size_t start_row;
	float *c;
	size_t c_row;
	bool sigmoid;       /* c is the sigmoid of it */
	const uint32_t *at; /* NULL, or the numbers of the rows of c (and start), index, value and count */
	const float *delta; /* gradient: sum[index][n] = delta[m][n] value + sum[index][n], rows in order */
	size_t delta_row;
	float *sum;
	size_t sum_row;
	const InputRows *by_input; /* NULL, or used instead of index, value and count, */
	bool fresh;                /* and sums start at zero */
} Lists;

/* Sums over single links: of their targets over sources (forward), or of sources over targets (backward). */
typedef struct LinkSums {
	uint32_t *strip, strips; /* vectors of columns that links read: first columns, ascending */
	uint32_t *slot;          /* [links] read by a link: column slot % 16 of strip slot / 16; readable in full vectors */
	/* columns that sums go to, ascending; other columns of the same vectors are unchanged, or become 0 */
	uint32_t *unit, units;
	uint64_t *first; /* [units + 1] links of unit u are first[u] .. first[u + 1] - 1 */
	uint32_t *order; /* [links] places of their weights; NULL: in this order */
} LinkSums;

/* c[m][unit] = start + in[m][...] w + ... in the order of the links. */
enum { LINK_ROWS = 64 }; /* that are computed at once */
typedef struct Links {
	const LinkSums *of;
	uint32_t rows;
	const uint32_t *at;  /* NULL, or the numbers of the rows */
	size_t row;          /* floats from one row to the next */
	const float *in, *w; /* in, c: of column 0 */
	float *c;
	bool go_on;     /* sums start with c; else at 0 */
	float *scratch; /* [strips][LANES][LINK_ROWS] */
} Links;

/* Their gradients: sum[k] = delta[m][to[k]] act[m][...] + sum[k], rows in order, k from first to end - 1, full
 * vectors. */
typedef struct LinkGradient {
	const LinkSums *of; /* forward */
	uint32_t rows;
	size_t row;
	const float *act, *delta; /* act: of column 0; delta: of the first target */
	const uint32_t *to;       /* [links] numbers of targets, ascending */
	const uint16_t *begins;   /* of each vector of links: bit i is set if link i has another target than link i - 1 */
	uint64_t first, end;
	float *sum;
	float *scratch; /* [strips + vectors of targets][LANES][LANES] */
} LinkGradient;

/* Some columns of some rows: net inputs, activations or errors of adjacent units. */
typedef struct Rows {
	uint32_t rows, cols;
	const uint32_t *at; /* NULL, or the numbers of the rows */
	size_t row;         /* from one row to the next */
} Rows;

/* Outputs against targets, for one output group.  Per case and output, with y not NaN (else nothing):
 * back = weight * slope of the error, or, matched, weight * (o - y) (softmax: weight * (o * sum of the
 * row's y - y)); value[m] += weight * error summed over the row. */
typedef struct Errors {
	Rows of;   /* of out and back */
	int error; /* ERR_... */
	int fn;    /* FN_... of the units */
	const float *out;
	const float *y; /* [rows][y_row], row m of it is the m-th case, also with `at`; NaN: no target */
	size_t y_row;
	const uint64_t *y_at; /* NULL, or the row of y of each case */
	const float *weight;  /* [rows] or NULL */
	float *back;          /* NULL: not wanted */
	const float *net;     /* of the units: for slopes of gaussian, for errors that are logarithms; NULL: unknown */
	bool deltas;          /* back is a delta: times the slope of the units, plus offset */
	float offset;
	float *value; /* [rows] */
	float *made;  /* outcomes: net inputs, overwritten by outputs; the same as out */
} Errors;

/* Right and within, over rows of all outputs: lib/run/score.c defines them. */
typedef struct Scores {
	Rows of;
	const float *out;
	const float *y;
	size_t y_row;
	const uint64_t *y_at; /* as of Errors */
	float threshold, middle;
	bool right;       /* RIGHT is computed here */
	uint8_t *verdict; /* [rows] SCORED | RIGHT | WITHIN */
} Scores;
enum { VERDICT_SCORED = 1, VERDICT_RIGHT = 2, VERDICT_WITHIN = 4 };
enum { OUTCOME_COLS = 4 * LANES };

/* Weights after a single case, whose gradient is the product of a and b, by the rule of momentum. */
typedef struct Outer {
	uint32_t rows, cols;
	const float *a;        /* [rows], NULL: all ones */
	const float *b;        /* [cols] */
	const uint32_t *index; /* NULL, or row i of a is row index[i] - low of the weights */
	uint32_t low;
	bool bias; /* there is one row more, number `sources`, whose a is 1 */
	uint32_t sources;
	float *w, *step;
	size_t row;
	float rate, momentum, decay;
} Outer;

/* The same with packed weights and a sum over their rows formed in the same pass, so that they come from the cache
 * once, not twice: errors of the sources, c = start + a w with the weights before the update; or, where the next case
 * is known, its net inputs, c = start + next w with the weights after it. */
typedef struct OuterBlock {
	const Outer *of; /* without w, step, row, index, bias */
	/* for each vector of columns [rows][2][LANES]: weights and their last changes; zeros after the last column */
	float *block;
	size_t stride;     /* floats from one vector of columns to the next */
	bool finite;       /* all weights are finite */
	const float *next; /* [rows] the a of the next case; NULL: errors of the sources */
	const float *start;
	float *c; /* [cols] may be start */
} OuterBlock;

/* One row times a transposed matrix: c[n] = start[n] + a[0] b[n][0] + a[1] b[n][1] + ... */
typedef struct RowProduct {
	uint32_t cols, depth;
	const float *a, *b;
	size_t row, stride; /* of b: floats from one n to the next; from one vector of k to the next */
	bool full;          /* n is padded to full vectors, too */
	bool sigmoid;       /* c is the sigmoid of it */
	const float *start;
	float *c; /* may be start */
} RowProduct;

/* Rows of weights from inputs that are mostly zero, updated lazily: updates of a row are deferred from one case with
 * its input to the next. The first deferred update has that case's gradient; the others, without decay, nothing but
 * momentum. */
typedef struct Lazy {
	uint32_t *seen; /* [rows] updates that a row has had; NULL: rows are never lazy */
	float *input;   /* [rows] its input in the first deferred update; 0: that has no gradient */
	uint32_t *list; /* [rows] scratch: those with a deferred gradient */
	/* [slots][width] deltas of update u are in slot u % slots; if ones, times the rate */
	float *delta;
	float *rate;           /* [slots] */
	uint32_t slots, width; /* slots: a power of two */
	bool ones;             /* inputs are 0 or 1 */
} Lazy;

/* Rows that get all updates before `now`; then sums over them, as of Lists. */
typedef struct LazyRows {
	const Lazy *lazy;
	const uint32_t *index; /* NULL: rows 0, 1, ...; else row i is row index[i] - low */
	uint32_t count, low, cols, now;
	uint32_t sources; /* rows in all */
	float *w, *step;
	size_t row;
	float momentum;
	const float *value; /* [count], NULL: all ones */
	const float *start;
	float *c;     /* NULL: no sums */
	bool sigmoid; /* c is the sigmoid of them */
} LazyRows;

/* Deltas of update `now`, which rows may defer.  Bias weights are never deferred. */
typedef struct Defer {
	const Lazy *lazy;
	uint32_t cols, now;
	const float *delta;
	float *w, *step; /* bias weights; NULL: there are none */
	float rate, momentum;
} Defer;

/* Some columns of code words, without duplicates, by their nonzero elements. */
typedef struct CodeWords {
	uint32_t count;
	const uint32_t *first;  /* [count + 1] those of word k are first[k] .. first[k + 1] - 1 */
	const uint32_t *column; /* of an element, */
	const float *twice;     /* and twice its value; NULL: all are 1 */
	const float *start;     /* [count] minus the sum of squares of its elements */
} CodeWords;

/* How near LANES rows of outputs are to words: start + 2 o c, larger is nearer. */
typedef struct NearPart {
	const CodeWords *words;
	float *near;                      /* [words][LANES] a lane for each row */
	float most[LANES], second[LANES]; /* the largest two of a lane */
} NearPart;
typedef struct Near {
	uint32_t cols, parts;
	const float *out[LANES]; /* readable in full vectors */
	float *scratch;          /* [cols, padded][LANES] */
	NearPart of[2];
} Near;
enum { MOST_ONES = 63 };   /* columns that fit into a word of bits, less one: */
#define NO_ONES UINT64_MAX /* the row has more than zeros and ones */

/* Noise of the values of adjacent units, from number `first` of their group on: amount times a random number is added;
 * or dropout: values are times scale, or 0 with probability amount. */
enum { NOISE_KIND_GAUSSIAN = 1, NOISE_KIND_UNIFORM, NOISE_KIND_DROPOUT }; /* as NOISE_... of net.h */
typedef struct TickRow {                                                  /* of a settling network */
	uint32_t number;                                                      /* of the tick of its case, from 0 */
	bool last;
} TickRow;
typedef struct NoiseRows {
	Rows of;
	const float *in;
	float *out;            /* may be in */
	const uint64_t *cases; /* by row, as tick is; */
	const TickRow *tick;   /* NULL: all 0 */
	uint32_t first;
	int kind;
	float amount, scale;
	uint64_t key;
} NoiseRows;
/* The same of weights, a multiple of LANES; real: as of Sweep, others in `out` are unchanged. */
typedef struct NoiseWeights {
	const float *w;
	float *out;
	const uint32_t *link; /* number of each */
	const uint32_t *real;
	size_t n;
	int kind;
	float amount;
	uint64_t key;
} NoiseWeights;

/* One update of n weights, a multiple of LANES, all of one block. */
typedef struct Sweep {
	const Formula *formula;
	float param[P_COUNT];           /* the rate is the block's own */
	const float *own;               /* NULL, or instead of param: [P_COUNT][LANES], by lane */
	float *variable[2 + MAX_STATE]; /* g, w, state */
	const uint32_t *real;           /* NULL, or a bit for each: those without it keep weight and state */
	size_t n;
	float *reach; /* NULL, or raised to the largest |g|; infinite: some g is NaN */
} Sweep;

typedef struct Kern {
	const char *name;
	void (*product)(const Product *p);
	void (*lists_forward)(const Lists *l);
	void (*lists_gradient)(const Lists *l);
	void (*links)(const Links *l);
	void (*links_gradient)(const LinkGradient *l);
	void (*units)(const Rows *r, int fn, const float *net, float *out); /* out may be net */
	/* act[m] becomes act[m] times row which[m] of mask, whose rows are as long; where which is NULL, row 0. */
	void (*mask)(const Rows *r, const float *mask, const uint32_t *which, float *act);
	/* err becomes err * (slope + offset); net is read for gaussian only. */
	void (*deltas)(const Rows *r, int fn, float offset, const float *net, const float *out, float *err);
	void (*errors)(const Errors *e);
	void (*scores)(const Scores *s);
	/* Units, errors and scores fused, for rows of 2 to OUTCOME_COLS sigmoids with squared errors that are made
	 * deltas, without case weights. Separately these take 1.5 times as long: the verdict of a row overlaps with the
	 * sigmoids of the next. */
	void (*outcomes)(const Errors *e, const Scores *s);
	void (*near)(Near *n);
	/* which targets of a row are 1; or NO_ONES */
	void (*ones)(uint32_t rows, uint32_t cols, const float *y, size_t y_row, uint64_t *ones);
	void (*noise)(const NoiseRows *n);
	void (*noise_weights)(const NoiseWeights *n);
	void (*update)(const Sweep *s);
	void (*outer)(const Outer *o);
	bool (*outer_block)(const OuterBlock *h); /* with next: is all of c finite, and with it all weights? */
	bool (*row_product)(const RowProduct *t); /* is every sum finite, and with it b? */
	void (*lazy_rows)(const LazyRows *l);
	void (*defer)(const Defer *o);
	void (*tiny)(const Tiny *t, const Sweep *s, Tally *tally); /* adds to the tally */
	/* an update after each batch */
	void (*tiny_steps)(const TinySteps *t, const Sweep *s, const TinyOrder *o, Tally *tally);
	void (*small_load)(const SmallNet *s, uint32_t vectors, uint64_t first, const uint32_t *lane);
	void (*seeds_pass)(const SmallNet *s, uint32_t cases, bool fresh, float *sum, LaneTally *t);
	uint32_t (*seeds_due)(const LaneTally *t, const LaneLimits *e); /* lane i is bit i */
	bool (*finite)(const float *v, size_t n);                       /* are all of them?  n a multiple of LANES */
	void (*add)(float *into, const float *from, size_t n);          /* n a multiple of LANES */
	/* checksum.h: rows of a piece from `row` on, the last may be cut */
	uint64_t (*checksum)(const void *at, size_t bytes, uint32_t row);
	void (*transpose)(uint32_t rows, uint32_t cols, const float *from, size_t from_row, float *to, size_t to_row);
} Kern;

extern const Kern kern_generic, kern_neon, kern_avx2, kern_avx512; /* those of this machine (isa.h) */

#endif
