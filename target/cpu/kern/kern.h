/* SPDX-License-Identifier: MIT */
/* Kernels of the cpu target: what does all the arithmetic, once for each kind of vector unit.
 *
 * The kernels are written once (the .inc files of this folder) in words of sixteen floats, and built three times:
 *
 *   vec_generic.h, vec_avx2.h, vec_avx512.h     sixteen floats, and what can be done to them
 *   product.inc, ..., small.inc                  the kernels; kernels.inc lists them
 *   generic.c, avx2.c, avx512.c                 one of the first, all of the second: one Kern
 *
 * Every lane is one chain of correctly rounded operations in an order that the arguments alone decide, so all three
 * give the same bits. Rows are rows of cases. Columns are counted in full sixteens: rows are as long as cols
 * rounded up to a multiple of LANES says, kernels may compute and write all of it, and what lies past cols means
 * nothing. No kernel needs alignment, but cache lines like it. Tiny numbers count as zero: whoever calls has set
 * the CPU so. */
#ifndef KERN_H
#define KERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target.h"
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
	bool turned; /* b[k][n] is b[n * b_row + k], and b_at is NULL: strips of b are turned when their turn comes */
	const float *start; /* start_row 0: the same row for all */
	size_t start_row;
	float *c; /* may be start */
	size_t c_row;
	const uint32_t *at;   /* NULL, or the numbers of the rows of a and c (and start, unless start_row is 0) */
	const uint64_t *a_at; /* NULL, or those of a alone, and then `at` is NULL */
	const uint64_t *b_at; /* NULL, or b[k][n] is b[b_at[k] * b_row + n] */
	bool far;   /* rows of a (a_step 1) come from memory: those of a tile are called while the one before is computed */
	bool c_far; /* found by the kernel: c does not stay in L2, so its lines are called where a tile begins */
} Product;

/* The same lists by input: which rows have it, in order. */
/* end: of its rows, which begin where those before it end */
typedef struct InputRun {
	uint32_t source, end;
} InputRun;
typedef struct InputRows {
	uint32_t runs;
	const InputRun *run; /* [runs] all inputs, those with few rows first */
	const uint16_t *row;
	const float *value; /* NULL: all ones */
} InputRows;

/* Inputs as index lists, a list for each row: c[m] = start[m] + value b[index] + ...; and the gradient of it. */
typedef struct Lists {
	uint32_t rows, cols;
	const uint32_t *const *index; /* [rows] ascending */
	const float *const *value;    /* [rows], NULL: all ones */
	const uint32_t *count;        /* [rows] */
	uint32_t low, high;           /* only indices from low to high - 1 count; low stands in row 0 of b or sum */
	const float *b;               /* forward: weights, by source */
	size_t b_row;
	const float *start;
	size_t start_row;
	float *c;
	size_t c_row;
	bool sigmoid;       /* c is the sigmoid of it */
	const uint32_t *at; /* NULL, or the numbers of the rows of c (and start); index, value and count have them too */
	const float *delta; /* gradient: sum[index][n] = delta[m][n] value + sum[index][n], rows in order */
	size_t delta_row;
	float *sum;
	size_t sum_row;
	const InputRows *by_input; /* NULL, or index, value and count are not looked at, */
	bool fresh;                /* and sums may begin at zero */
} Lists;

/* Who sums over which links. Forward that is the targets of some links, each over its sources; backward the
 * sources. */
typedef struct LinkSums {
	uint32_t *strip, strips; /* columns that links read, by sixteens: where each begins, ascending */
	uint32_t *slot; /* [links] what a link reads: column slot % 16 of strip slot / 16; readable in full sixteens */
	/* columns that sums go to, ascending; what else lies in their sixteens stays, or becomes 0 */
	uint32_t *unit, units;
	uint64_t *first; /* [units + 1] links of unit u are first[u] .. first[u + 1] - 1 */
	uint32_t *order; /* [links] where their weights stand; NULL: in this order */
} LinkSums;

/* Links one by one: c[m][unit] = start + in[m][...] w + ... in the order of the links. */
enum { LINK_ROWS = 64 }; /* that are worked on at once */
typedef struct Links {
	const LinkSums *of;
	uint32_t rows;
	const uint32_t *at;  /* NULL, or the numbers of the rows */
	size_t row;          /* floats from one row to the next */
	const float *in, *w; /* in, c: of column 0 */
	float *c;
	bool go_on;  /* sums begin with what stands in c; else at 0 */
	float *room; /* [strips][LANES][LINK_ROWS] */
} Links;

/* Their gradients: sum[k] = delta[m][to[k]] act[m][...] + sum[k], rows in order, k from first to end - 1, full
 * sixteens. */
typedef struct LinkGradient {
	const LinkSums *of; /* forward */
	uint32_t rows;
	size_t row;
	const float *act, *delta; /* act: of column 0; delta: of the first target */
	const uint32_t *to;       /* [links] numbers of targets, ascending */
	const uint16_t *begins;   /* of sixteen links: bit i says that the i-th has another target than the one before */
	uint64_t first, end;
	float *sum;
	float *room; /* [strips and sixteens of targets][LANES][LANES] */
} LinkGradient;

/* Some columns of some rows: net inputs, outputs or errors of one span of units. */
typedef struct Rows {
	uint32_t rows, cols;
	const uint32_t *at; /* NULL, or the numbers of the rows */
	size_t row;         /* from one row to the next */
} Rows;

/* Outputs against targets, for one output group.  Per case and output, with y not NaN (else nothing):
 * what goes back is weight * slope of the error, or, matched, weight * (o - y) (softmax: weight * (o * sum of the
 * row's y - y)); value[m] += weight * error summed over the row. */
typedef struct Errors {
	Rows of;   /* of out and back */
	int error; /* ERR_... */
	int fn;    /* FN_... of the units */
	const float *out;
	const float *y; /* [rows][y_row], row m of it is the m-th case, whatever `at` says; NaN: no target */
	size_t y_row;
	const uint64_t *y_at; /* NULL, or which row of y a case's is */
	const float *weight;  /* [rows] or NULL */
	float *back;          /* NULL: not wanted */
	const float *net;     /* of the units, for gaussian alone */
	bool deltas;          /* what goes back is made a delta: times the slope of the units, plus offset */
	float offset;
	float *value; /* [rows] */
	float *made;  /* outcomes: net inputs, which become outputs; the same as out */
} Errors;

/* Right and within, over rows of all outputs: see lib/score.c for what they mean. */
typedef struct Scores {
	Rows of;
	const float *out;
	const float *y;
	size_t y_row;
	const uint64_t *y_at; /* as of Errors */
	float threshold, middle;
	bool right;       /* is it asked for here? */
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

/* The same with weights in an order of their own, and a sum over its rows formed meanwhile, so that these come from
 * the cache once, not twice: of errors that go back, c = start + a w with the weights as they were; or, where the
 * next case is known, of what goes into its targets, c = start + next w with the weights as they become. */
typedef struct OuterBlock {
	const Outer *of; /* but for w, step, row, index, bias, */
	/* instead of which: sixteens of columns, in each the rows, of each [2][LANES] weights and last changes; zeros
	 * past the last column, which stay */
	float *block;
	size_t sixteen;    /* floats from one sixteen of columns to the next */
	bool finite;       /* all weights are finite */
	const float *next; /* [rows] the a of the next case; NULL: errors go back */
	const float *start;
	float *c; /* [cols] may be start */
} OuterBlock;

/* A product of one row with a matrix that stands the other way: c[n] = start[n] + a[0] b[n][0] + a[1] b[n][1] + ... */
typedef struct Turned {
	uint32_t cols, depth;
	const float *a, *b;
	/* of b: floats from one n to the next; from one sixteen of k to the next, which stand side by side */
	size_t row, sixteen;
	bool full;    /* there are full sixteens of n, too */
	bool sigmoid; /* c is the sigmoid of it */
	const float *start;
	float *c; /* may be start */
} Turned;

/* Rows of weights from inputs that are mostly zero. A row is left alone from one case with its input to the next:
 * it owes that case's gradient, and after it, without decay, nothing but the last change goes on in it. */
typedef struct Lag {
	uint32_t *stamp; /* [rows] how many updates a row has seen; NULL: rows are never late */
	float *owed;     /* [rows] its input in the first update that it has not seen; 0: none is owed */
	uint32_t *owing; /* [rows] room for a list of those that owe */
	/* [slots][room] deltas of update u stand in slot u % slots; if ones, times the rate, ready to be added */
	float *delta;
	float *rate;          /* [slots] */
	uint32_t slots, room; /* slots: a power of two */
	bool ones;            /* inputs are 0 or 1 */
} Lag;

/* Rows that see all updates before `now`; then sums over them, as of Lists. */
typedef struct Late {
	const Lag *lag;
	const uint32_t *index; /* NULL: rows 0, 1, ...; else row i is row index[i] - low */
	uint32_t count, low, cols, now;
	uint32_t sources; /* rows that there are */
	float *w, *step;
	size_t row;
	float momentum;
	const float *value; /* [count], NULL: all ones */
	const float *start;
	float *c;     /* NULL: no sums */
	bool sigmoid; /* c is the sigmoid of them */
} Late;

/* Deltas of update `now`, for rows to be late with.  The true unit's weights are never late. */
typedef struct Owe {
	const Lag *lag;
	uint32_t cols, now;
	const float *delta;
	float *w, *step; /* the true unit's; NULL: there are none */
	float rate, momentum;
} Owe;

/* Some columns of code words: the different ones there are, by their elements that are not zero. */
typedef struct CodeWords {
	uint32_t count;
	const uint32_t *first;  /* [count + 1] those of word k are first[k] .. first[k + 1] - 1 */
	const uint32_t *column; /* where an element stands, */
	const float *twice;     /* and twice what it is; NULL: all are 1 */
	const float *start;     /* [count] the squares of its elements, below zero */
} CodeWords;

/* How near sixteen rows of outputs are to words: start + 2 o c, the more the nearer. */
typedef struct NearPart {
	const CodeWords *words;
	float *near;                      /* [words][LANES] a lane for each row */
	float most[LANES], second[LANES]; /* the largest two of a lane */
} NearPart;
typedef struct Near {
	uint32_t cols, parts;
	const float *out[LANES]; /* readable in full sixteens */
	float *room;             /* [cols in full sixteens][LANES] */
	NearPart of[2];
} Near;
enum { MOST_ONES = 63 };   /* columns that fit into a word of bits, less one: */
#define NO_ONES UINT64_MAX /* the row has more than zeros and ones */

/* One update of n weights, n a multiple of LANES, all of one block. */
typedef struct Sweep {
	const Formula *formula;
	float param[P_COUNT];           /* the rate is the block's own */
	const float *own;               /* NULL, or instead of param: [P_COUNT][LANES], for each lane its own */
	float *variable[2 + MAX_STATE]; /* g, w, state */
	const uint32_t *real;           /* NULL, or a bit for each: those without one keep weight and state */
	size_t n;
	float *reach; /* NULL, or it becomes the largest |g| if it is not yet; infinite: some g is no number */
} Sweep;

typedef struct Kern {
	const char *name;
	void (*product)(const Product *p);
	void (*lists_forward)(const Lists *l);
	void (*lists_gradient)(const Lists *l);
	void (*links)(const Links *l);
	void (*links_gradient)(const LinkGradient *l);
	void (*units)(const Rows *r, int fn, const float *net, float *out); /* out may be net */
	/* err becomes err * (slope + offset); net is looked at by gaussian alone. */
	void (*deltas)(const Rows *r, int fn, float offset, const float *net, const float *out, float *err);
	void (*errors)(const Errors *e);
	void (*scores)(const Scores *s);
	/* Units, errors and scores at once, for rows of 2 to OUTCOME_COLS sigmoids with squared errors that are made
	 * deltas, without case weights. One after the other these take half as long again: one row's verdict waits
	 * while the next one's sigmoids go on. */
	void (*outcomes)(const Errors *e, const Scores *s);
	void (*near)(Near *n);
	/* which targets of a row are 1; or NO_ONES */
	void (*ones)(uint32_t rows, uint32_t cols, const float *y, size_t y_row, uint64_t *ones);
	void (*update)(const Sweep *s);
	void (*outer)(const Outer *o);
	bool (*outer_block)(const OuterBlock *h); /* with next: is all of c finite, and with it all weights? */
	bool (*turned)(const Turned *t);          /* is every sum finite, and with it b? */
	void (*late)(const Late *l);
	void (*owe)(const Owe *o);
	void (*tiny)(const Tiny *t, const Sweep *s, Tally *tally); /* adds to the tally */
	/* an update after each batch */
	void (*tiny_steps)(const TinySteps *t, const Sweep *s, const TinyOrder *o, Tally *tally);
	void (*small_load)(const SmallNet *s, uint32_t vectors, uint64_t first, const uint32_t *lane);
	void (*seeds_pass)(const SmallNet *s, uint32_t cases, bool fresh, float *sum, LaneTally *t);
	uint32_t (*seeds_due)(const LaneTally *t, const LaneLimits *e); /* lane i is bit i */
	bool (*finite)(const float *v, size_t n);                       /* are all of them?  n a multiple of LANES */
	void (*add)(float *into, const float *from, size_t n);          /* n a multiple of LANES */
	/* seal.h: rows of a piece from `row` on, the last may be cut */
	uint64_t (*seal)(const void *at, size_t bytes, uint32_t row);
	void (*transpose)(uint32_t rows, uint32_t cols, const float *from, size_t from_row, float *to, size_t to_row);
} Kern;

extern const Kern kern_generic, kern_avx2, kern_avx512;

#endif
