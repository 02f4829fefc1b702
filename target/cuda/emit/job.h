/* SPDX-License-Identifier: MIT */
/* What the host and kernels exchange: one Job, the parameter of a kernel, and its tables in memory of the device.
 *
 * A grid of blocks runs a job of several updates. Blocks form teams of equal size; a team computes one leaf at a time:
 * each of its blocks takes some rows forward and backward, then some of the weights for the gradient. All blocks
 * together add the sums of the leaves and update the weights. Steps are those of target cpu (lower.c translates them),
 * so every sum has the order of doc/arithmetic.md.
 *
 * Pointers are addresses of the device. */
#ifndef JOB_H
#define JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formula.h"
#include "tally.h"

enum {
	STEP_LOAD,     /* copies inputs to the rows */
	STEP_SCATTER,  /* the same from index lists */
	STEP_MARK,     /* notes in masks which rows have an input */
	STEP_PRODUCT,  /* c = start + a b */
	STEP_INDEX,    /* the same with index lists for a */
	STEP_LINKS,    /* sums over single links */
	STEP_UNITS,    /* outputs from net inputs */
	STEP_ONE,      /* the column of ones after a part */
	STEP_CONTEXTS, /* contexts from the row before */
	STEP_INTEGRATE,
	STEP_NOISE,  /* random numbers, or dropout */
	STEP_GAIN,   /* a factor on net inputs, or deltas */
	STEP_NEAR,   /* targets that errors count from, of groups with radii */
	STEP_ERRORS, /* errors of a row, slopes of each output */
	STEP_SCORES, /* verdict on a row */
	STEP_CODES,  /* it uses a code table */
	STEP_ZERO,
	STEP_COPY_ERROR,
	STEP_ADD_ERROR,
	STEP_CARRY, /* errors of contexts in the next row */
	STEP_INTEGRATE_BACK,
	STEP_DELTAS,
	STEP_GRADIENT,
	STEP_GRADIENT_INDEX,
	STEP_GRADIENT_LINKS,
	STEP_KINDS
};

/* Row buffers: those of target cpu. Column 0 is the true unit's: only BUF_ACT uses it. Few networks have the last two:
 * outputs before their noise, and targets as STEP_NEAR makes them, in the columns of their outputs. */
enum { BUF_ACT, BUF_DELTA, BUF_NET, BUF_ERROR, BUF_HELD, BUF_CLEAN, BUF_NEAR, BUFS };

/* A step that is fused with the product before it: fn is its unit function. */
enum { AFTER_NOTHING, AFTER_UNITS, AFTER_DELTAS };

typedef struct DeviceStep {
	uint8_t kind, a, c; /* BUF_ that it reads and writes */
	uint8_t fn, error;
	bool sigmoid, ones, bias, first, go_on, matched, deltas, keeps_net, wide, known_net, carried;
	uint8_t after; /* AFTER_ of the sums of a product */
	uint32_t a_col, c_col, cols, depth, low, b_row;
	uint32_t y;              /* number of the first output of a part */
	const float *b;          /* weights */
	const float *start;      /* NULL: sums continue those in c; else a row for all */
	float offset, dt, begin; /* begin: what is integrated begins with this; offset: also the factor of a gain */
	uint8_t noise, noise_at; /* NOISE_ kind, and where */
	float amount, scale;     /* of noise; scale: of what dropout leaves; on errors */
	uint32_t group;          /* of noise; low: the first of its units */
	bool near;               /* errors count from the targets in BUF_NEAR */
	double radius, zero_radius;
	uint32_t sum_row;
	uint64_t at;    /* gradient: of its weights in a sum, */
	uint32_t panel; /* and their number in Job.panel */
	/* single links: columns, first links of units, places of weights; carry: columns of contexts */
	const uint32_t *col, *unit, *order, *to;
	const uint64_t *link;
	uint32_t units;
	uint64_t links;
	/* bf16: weights of a product, where they are in Job.half, whose rows are those of the depth or of columns */
	uint64_t half_at;
	uint32_t half_row;
	bool by_depth, to_end; /* to_end: its last column is that of a part */
} DeviceStep;

enum { RUN_ROWS, RUN_TIME, RUN_TIME_BACK };
typedef struct DeviceStage {
	uint32_t each, first, end;
} DeviceStage;
enum { DEVICE_STAGES = 16 };
typedef struct DeviceList {
	const DeviceStep *step;
	DeviceStage stage[DEVICE_STAGES];
	uint32_t stages, gradient; /* gradient: first step of it; it is no stage */
	uint32_t steps;
} DeviceList;

/* Columns to fill from the inputs of a case. */
typedef struct InputColumns {
	uint32_t col, input, count;
	uint32_t half, halves; /* bf16: in DeviceData.xh, with the 1 after them and filled up to full 16s */
	uint32_t word;         /* first in a row of DeviceData.bits */
} InputColumns;
typedef struct ContextColumn {
	uint32_t to, from;
	float start;
} ContextColumn;

/* A matrix or list of weights in the update. */
typedef struct DevicePanel {
	uint64_t at, size;   /* places */
	uint32_t row, cols;  /* row: floats; cols: those of them that are weights */
	uint64_t copy;       /* of the transposed form; NO_COPY: there is none */
	uint32_t copy_row;   /* floats */
	uint32_t factor;     /* number of its LinkClass */
	const uint8_t *kind; /* NULL, or that of every place; NO_LINK: unused or frozen */
	uint32_t bias;       /* number of the row, or column, of weights from the true unit; NO_BIAS: there is none */
	bool bias_across;    /* it is a column */
} DevicePanel;
#define NO_BIAS UINT32_MAX
/* What links have in common: factor on the rate; decay (-1: the run's) and limits. */
typedef struct LinkClass {
	double rate, decay, low, high;
} LinkClass;
/* Weights of a panel that noise is added to. */
typedef struct NoisyPanel {
	uint64_t at, size;
	uint32_t row, cols;
	uint64_t copy;
	uint32_t copy_row;
} NoisyPanel;
typedef struct NoiseClass {
	int kind;
	float amount;
} NoiseClass;
/* Places of tied weights: a sum, and those that are added to it and get it, in the order of links. */
typedef struct DeviceTie {
	uint64_t to;
	uint32_t first, count; /* in Job.tied */
} DeviceTie;
/* A row of a network with noise. */
typedef struct RowNumber {
	uint64_t number; /* of its case in the data */
	uint32_t tick, unused;
} RowNumber;
#define NO_COPY UINT64_MAX
enum { NO_LINK = 255 };

/* Code words, as target/cpu/pass/codes.c cuts them into parts: sums of start + twice the output in a column tell which
 * is nearest, if they differ by more than a margin. */
typedef struct CodeElement {
	uint32_t output;
	float twice;
} CodeElement;
typedef struct CodeSum {
	double start;
	uint32_t first, count; /* elements */
} CodeSum;
/* The word that the target of a case is, and its number in each part. */
typedef struct CodeOwn {
	uint32_t word, number[2];
	uint32_t near; /* it is none, but this one is nearest */
} CodeOwn;

enum { NO_INPUT = 0xffff };
/* Where column c of 32 is in a word: so that the pairs of columns that a lane gives to a tensor core are 16 bits apart,
 * those of its four pairs after each other. */
static inline uint32_t bit_place(uint32_t c) { return c / 2 % 4 * 4 + c / 8 + c % 2 * 16; }
typedef struct DeviceData {
	const float *x; /* [cases][x_row]; NULL: index lists */
	uint32_t x_row, inputs, targets;
	const uint16_t *xh; /* bf16: [cases][xh_row] inputs, also of index lists, which are rows of 0 and 1 then */
	uint32_t xh_row;
	const uint32_t
		*bits;         /* bf16: NULL, or the same where all inputs are 0 or 1: [cases][bits_row], bit_place in words */
	uint32_t bits_row; /* a multiple of 4 */
	const uint64_t *from; /* [cases + 1] index lists */
	const uint32_t *index;
	const float *value;
	const uint16_t *short_list; /* [cases][short_row] the same, filled up with NO_INPUT */
	uint32_t short_row;
	const uint32_t *rank;   /* [inputs] those that most cases have come first */
	const float *y;         /* [cases][targets] NaN: none */
	const uint32_t *y_bits; /* NULL, or [cases] the same, where all targets are 0 or 1 and fewer than 33 */
	const float *weight;
	const double *codes;
	uint32_t code_count;
	const CodeOwn *own;     /* [cases] */
	const CodeSum *sums;    /* of the first part, then of the second */
	uint32_t part_count[2]; /* sums of each */
	const CodeElement *element;
	double code_largest;   /* square of the longest word */
	double largest_output; /* absolute; or infinite */
	double code_unit;      /* rounding of sums: words of bits are exact */
} DeviceData;

/* Rows of a chunk that a block takes, where sequences must not be cut. */
typedef struct DeviceSlice {
	uint32_t first, rows, steps;
	uint64_t step_at; /* in Job.step_at: where each time step begins in Job.step_row, steps + 1 numbers */
} DeviceSlice;
/* Whole examples of a leaf, as many as there are rows for. */
typedef struct DeviceChunk {
	uint64_t cases; /* of its rows, in Job.cases */
	uint32_t rows;
	bool fresh;     /* the first of its leaf */
	uint64_t slice; /* in Job.slice, one for each block of a team; with contexts only */
} DeviceChunk;
typedef struct DeviceLeaf {
	uint64_t chunk;
	uint32_t chunks;
} DeviceLeaf;
typedef struct DeviceUpdate {
	uint64_t leaf; /* in Job.leaf */
	uint32_t leaves;
	uint32_t param; /* in Job.param */
	bool ends_epoch;
} DeviceUpdate;

/* What a job leaves for the host. Cycles are those of the first thread, by what they were spent on. */
enum {
	SPENT_ROWS,
	SPENT_TEAM,
	SPENT_GRADIENT,
	SPENT_TEAM_AFTER,
	SPENT_GRID,
	SPENT_UPDATE,
	SPENT_GRID_AFTER,
	SPENT_KINDS
};
enum { STEPS_TIMED = 32 };
typedef struct JobResult {
	uint64_t cycles[SPENT_KINDS];
	uint64_t step_cycles[STEPS_TIMED]; /* of the first steps, in a kernel compiled with TIME_STEPS */
	uint64_t done;                     /* updates */
	uint32_t stop;                     /* 0, or not: of kernels that post, by the number of an update (join.c) */
	uint32_t infinite;                 /* likewise: some weight is not finite */
	uint32_t epoch;
} JobResult;

enum { JOB_UPDATE, JOB_SUM, JOB_APPLY, JOB_TEST };
/* Flags of a row, in its case number: errors of the next row do not reach it; it has no targets; no inputs; it is not
 * the last tick of its case; a test does not give its activations. */
#define ROW_CUT         0x80000000u
#define ROW_NO_TARGETS  0x40000000u
#define ROW_NO_INPUTS   0x20000000u
#define ROW_NOT_LAST    0x10000000u
#define ROW_NOT_WATCHED 0x08000000u
#define ROW_CASE        0x07ffffffu
enum { JOIN_LEVELS = 13 }; /* 1 + log2 of the most leaves */

enum { TEAM_BARRIERS = 3 };
#define NO_SUM 0xffffffffu /* bits of a float that no arithmetic gives: NaNs of a GPU are 0x7fffffff */

typedef struct Job {
	uint32_t mode; /* JOB_ */
	uint32_t teams, team_blocks;
	uint32_t row_capacity, cols, mask_words;
	uint32_t input_columns, contexts, panels, outputs, states;
	bool timed;              /* sequences must not be cut */
	const float *no_targets; /* a row of NaNs */
	DeviceList list;
	DeviceData data;
	float threshold, middle;
	const float *criteria; /* NULL, or [outputs] thresholds */
	bool right_here, needs_norm;
	const InputColumns *input;
	const ContextColumn *context;
	const uint32_t *ones; /* columns that are always 1 */
	uint32_t one_columns;
	const uint32_t *output; /* [outputs] columns */
	uint32_t output_col;    /* the first of them, if they are adjacent; else 0 */
	const DevicePanel *panel;
	const LinkClass *factor;
	const uint64_t *place; /* [links] of weights in canonical order; NO_COPY: frozen. For the norm of the gradient */
	uint64_t links;
	uint64_t floats; /* of a sum */
	float *w, *copies, *state[MAX_STATE];
	float *noisy, *noisy_copies; /* NULL, or weights and copies with the noise of an update */
	const NoisyPanel *noisy_panel;
	uint32_t noisy_panels;
	const uint8_t *noise_class;  /* [floats] by place; NO_LINK: no noise */
	const uint32_t *noise_link;  /* [floats] number of the link */
	uint64_t seed, first_update; /* for noise: of the run; updates before this job */
	bool noise;                  /* passes have noise; */
	const RowNumber *numbers;    /* by row then, as cases are */
	const DeviceTie *tie;        /* [ties] */
	uint32_t ties;
	const uint64_t *tied;
	uint16_t *half;        /* bf16: [floats] weights rounded; 0 at places of the true unit's and of none */
	const float *zero;     /* a row of zeros */
	uint32_t bufs;         /* that there are: BUF_CLEAN, or more */
	float *buf[BUFS];      /* [teams][row_capacity][cols] each */
	uint16_t *half_buf[2]; /* bf16: activations and deltas rounded, as buf */
	float *row_error;      /* [teams][row_capacity] */
	uint8_t *verdict;      /* [teams][row_capacity] */
	uint32_t *mask;        /* [teams][inputs][mask_words] which rows have an input */
	float *sum;            /* [sums][floats]; of a leaf it is the one of its number modulo sums */
	uint32_t sums;         /* a power of two */
	float *stack;          /* [JOIN_LEVELS][floats] sums of complete subtrees of `sums` leaves */
	float *posted;         /* [2][leaves][floats] sums of the leaves, [2][floats + copies] weights, of two updates each;
	                        * NO_SUM: not there yet */
	float *pending;        /* [floats] */
	bool pending_full;
	Tally *leaf_tally; /* [leaves of an update] */
	double *norm;      /* [leaves of all links], and the result */
	float *out;        /* test: NULL, or [cases from out_first on][watched] */
	uint64_t out_first;
	const uint32_t *watched; /* columns that go there */
	uint32_t watched_count;
	float *exchange;   /* [teams] columns of rows, for generated kernels */
	uint32_t *barrier; /* [2 + TEAM_BARRIERS teams] of the grid and of teams, of tallies; all zero when a job begins */
	const uint32_t *cases, *step_at, *step_row;
	const DeviceSlice *slice;
	const DeviceChunk *chunk;
	const DeviceLeaf *leaf;
	const DeviceUpdate *update;      /* [updates] */
	uint64_t updates, updates_cycle; /* update i is that of number i % updates_cycle */
	const double *param;             /* [][P_COUNT] */
	Tally *tally;                    /* of epochs */
	double until_error, until_right, until_within;
	const uint8_t *counted; /* [updates] 1: verdicts are asked for; */
	uint64_t verdicts_from; /* networks of their own: they are from the update of this number on */
	JobResult *result;
	uint8_t *images; /* [leaves] index lists by input, as shared memory has them; NULL: kernels make them */
	uint32_t leaves; /* of all updates of the cycle */
	uint64_t network_cases,
		network_params; /* a network for each team: bytes from one's cases or params to the next's */
} Job;

#endif
