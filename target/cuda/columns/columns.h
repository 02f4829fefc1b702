/* SPDX-License-Identifier: MIT */
/* columns: the kernel for batches of one leaf of a network with one hidden layer and index lists, or in bf16 with
 * inputs of 0 and 1 (bf16_columns.c). A persistent kernel of one cluster: all weights and rule state stay in shared
 * memory.
 *
 *   steps of the device --columns.c--> Columns: plan --rows.c, gradient.c, side.c, tallies.c--> text
 *
 * Each block has some columns of hidden units: their input weights and rule state, so that the gradient is summed
 * and the rule applied where the weights are. Each block also has some rows of the batch: it computes their outputs
 * and errors with a copy of all output weights. The gradient of output weights is divided into groups of hidden
 * units by groups of outputs; each block has a group, with master weights and rule state, and sends new weights to
 * all.
 *
 * Blocks exchange data by remote stores (st.async) and bulk copies to shared memory, which count at an mbarrier of
 * the receiver, or by arrivals there. Nothing else orders blocks between the beginning and the end of a job. In an
 * update:
 *
 *   ACT       activations                columns of all rows -> the block of the row
 *   OUTPUT_W  output weights             each group -> all blocks, for the next update
 *   INPUT_W   bf16: input weights        -> blocks with the same columns, for the next update
 *   GROUP     activations                columns of all rows -> blocks of the unit group
 *   DELTA     deltas of outputs          rows of a block -> blocks of the output group
 *   HIDDEN    deltas of hidden units     rows of a block -> the block of the column
 *   SCORES    errors and scores of rows  rows of a block -> the block that forms the tally
 *   CHECKED   is some error not finite?  all blocks -> the last one
 *   TALLY     the tally of an update     blocks that form tallies -> the last one
 *   GO        make the update, or stop   the last block -> all
 *
 * and in a block: OUTPUTS, outputs may be scored; SCORED, targets and outputs may be overwritten.
 *
 * Warps are specialized. Workers compute. If there are enough of them, the rows have two parts, each computed by
 * half of the workers, one part behind the other: chains of sums over the first rows begin while the second half is
 * in its passes. The warps that form the gradient of output weights go on with the next update without waiting for
 * the others. Four side warps do what is not on the critical path: SIDE_PREFETCH copies cases of the next update;
 * SIDE_SCORE scores the block's rows; SIDE_TALLY, in the first tally_blocks blocks, forms the tally of every
 * tally_blocks-th update, since its chain of sums takes longer than an update; SIDE_DECIDE, in the last block, joins
 * tallies and decides whether the job goes on. bf16: the one of the last two that would be idle in a block updates
 * the block's output weights. */
#ifndef COLUMNS_H
#define COLUMNS_H

#include "bf16_emit.h"

typedef struct ColumnsShape {
	uint32_t threads, shared;
} ColumnsShape;
/* NULL, or why the kernel does not cover the job. csc_bytes: index lists by input of a leaf, in Job.images */
const char *columns_text(const EmitSource *s, uint32_t csc_bytes, Arena *a, Buf *out, ColumnsShape *shape);

uint32_t columns_each(uint32_t hidden, uint32_t blocks); /* hidden units of a block: a multiple of 4 */

/* ---- columns.c: the plan ------------------------------------------------------------------------------ */

enum { MAX_PARTS = 2, MAX_COLUMNS = 32, MAX_CLUSTER = 16, MAX_TALLY_BLOCKS = 4 };
enum { MAX_LANE_ROWS = 16 };  /* rows of a worker, or of a lane of a side warp */
enum { MAX_WARP_TILES = 16 }; /* tiles of output weights of a warp */
enum { CHAIN_AHEAD = 32 };    /* rows whose operands are loaded ahead in sums over rows: software pipeline */
enum { CHAIN_UNROLL = 128 };  /* rows of an iteration: at its end the compiler waits for all loads */
enum { SIDE_PREFETCH, SIDE_SCORE, SIDE_TALLY, SIDE_DECIDE, SIDE_WARPS }; /* after the workers */
enum { LANES_READ = 8 };                                                 /* 16-byte loads of shared memory in a cycle */
/* mbarriers. "Two": they alternate by parity of the update (alternate_bar). */
enum {
	BAR_ACT,                         /* one for each part, as the next three */
	BAR_GROUP = BAR_ACT + MAX_PARTS, /* two */
	BAR_DELTA = BAR_GROUP + 2 * MAX_PARTS,
	BAR_HIDDEN = BAR_DELTA + MAX_PARTS,
	BAR_OUTPUT_W = BAR_HIDDEN + MAX_PARTS,
	BAR_INPUT_W, /* bf16: also counts the warps of the block */
	BAR_CHECKED,
	BAR_GO,                       /* two */
	BAR_OUTPUTS = BAR_GO + 2,     /* two */
	BAR_SCORED = BAR_OUTPUTS + 2, /* two */
	BAR_SCORES = BAR_SCORED + 2,
	BAR_TALLY, /* one for each block that forms tallies */
	BARS = BAR_TALLY + MAX_TALLY_BLOCKS
};
/* Named barriers of a block, for some of its warps. */
enum {
	NAMED_END = 1, /* of an update */
	NAMED_ACT,     /* one for each part, as the next two */
	NAMED_OUTPUTS = NAMED_ACT + MAX_PARTS,
	NAMED_TRANSPOSED = NAMED_OUTPUTS + MAX_PARTS,
	NAMED_FIRST = NAMED_TRANSPOSED + MAX_PARTS, /* the second part may begin */
	NAMED_BIAS = NAMED_TRANSPOSED,              /* fp32: warps that sum deltas */
	NAMED_WORDS = NAMED_ACT                     /* bf16: transposed inputs are there */
};

/* The steps that the kernel computes, of one hidden layer. */
typedef struct ColumnSteps {
	const DeviceStep *hidden;  /* net inputs of hidden units: index lists; bf16: bits */
	const DeviceStep *outputs; /* net inputs of outputs */
	const DeviceStep *errors;
	const DeviceStep *back; /* deltas of hidden units */
	const DeviceStep *input_gradient, *output_gradient;
	uint32_t hidden_fn; /* unit function */
} ColumnSteps;

/* Offsets in shared memory, and distances there: bytes. Each is at 16 bytes, cases at 128. */
typedef struct ColumnSmem {
	uint32_t bars;  /* [BARS] mbarriers */
	uint32_t bad;   /* last block: [MAX_CLUSTER] words, not 0 if some error of the block's rows is not finite */
	uint32_t stop;  /* [1 + stop_words][2] words: the job stops; by parity of the update */
	uint32_t ended; /* a word: no more rows come to be tallied */
	/* input weights, of the block's columns: [input][quad of columns][copy][4]; then the true unit, then a row of -0 */
	uint32_t input_w, input_w_row;
	uint32_t input_state, input_state_size; /* rule state: variable v is (v - 1) * size behind: [input][column] */
	/* output weights: all, two of them, by parity of the update: [unit][output], quads of units in different banks */
	uint32_t output_w, output_w_size, unit_row, unit_quad_row;
	uint32_t group_w, group_w_size; /* those of the block's group, with their rule state: [variable][slot][output] */
	uint32_t act, act_quad;         /* activations of the block's rows: [quad of units][row][4] */
	uint32_t delta, delta_row;      /* deltas of outputs, of the block's rows */
	uint32_t act_t, act_t_size;     /* activations of the group's units, two of them, by parity: [unit][row of all] */
	uint32_t delta_t;               /* deltas of the group's outputs: [output][row of all] */
	uint32_t column;                /* act_t, delta_t: distance of columns */
	uint32_t part_column;  /* act_t, delta_t: distance of parts of a column, with a gap for loads that run ahead */
	uint32_t hidden_delta; /* deltas of the block's columns: [row of all][column] */
	uint32_t hidden_pad;   /* rows there; a row of -0 follows, then a gap for loads that run ahead */
	uint32_t bias_sum;     /* sums of deltas of one part, from warp to warp */
	/* cases of an update; those of the next one follow, cases_size behind */
	uint32_t cases, cases_size;
	uint32_t count;    /* rows */
	uint32_t params;   /* [P_COUNT] doubles */
	uint32_t csr, csc; /* index lists by row, by input */
} ColumnSmem;

/* Registers of a thread. All but `rows` and `update` are derived again in each update: registers_derive. */
typedef struct ColumnRegs {
	Reg warp, lane;
	Reg first_column;             /* of the block */
	Reg has_columns;              /* P: the last blocks may have none */
	Reg part;                     /* of rows, that the warp computes */
	Reg part_warp, part_thread;   /* numbers among those of the part */
	Reg first_row;                /* of the part, in the block */
	Reg unit_group, output_group; /* of output weights, that the block trains */
	Reg update;                   /* number in the job */
	Reg parity;                   /* of the update: selects double buffers, phase of most barriers */
	Reg pair_parity;              /* of pairs of updates: phase of barriers that alternate */
	Reg cases;                    /* shared memory of the cases of this update: k->memory, or cases_size behind */
	Reg rows;                     /* of the update */
	Reg tally_block;              /* which forms the tally of the update */
} ColumnRegs;

typedef struct Columns {
	Kernel *k; /* what functions of emit need: rows, targets, deferred scores of the block */
	ColumnSteps step;
	const DevicePanel *input_panel, *output_panel;
	uint32_t blocks, inputs, hidden, outputs;
	uint32_t hidden_quads, output_quads;
	uint32_t block_cols, block_quads; /* hidden columns of a block, and quads of them */
	bool keeps[2 + MAX_STATE];        /* variables of the formula that are kept for each weight */
	/* rows: divided into parts; each block has a share of every part */
	uint32_t rows;                       /* of all blocks, padded */
	uint32_t parts;                      /* 1 or 2 */
	uint32_t part_rows, part_block_rows; /* of a part: in all blocks, in one */
	uint32_t workers, warps;             /* threads and warps that are no side warps */
	uint32_t part_warps;                 /* warps that compute a part */
	uint32_t pass_warps;                 /* of a part: the first ones, which compute outputs */
	uint32_t thread_rows, thread_cols;   /* register tile of a thread in products: rows, outputs */
	uint32_t worker_rows;                /* hidden units: rows of a thread */
	uint32_t lane_rows, lane_block_rows; /* of a lane of a side warp: of all rows, of the block's */
	/* gradient of output weights: groups of hidden units by groups of outputs, one for each block */
	uint32_t unit_groups, output_groups;
	uint32_t group_units, group_outputs;     /* of a group; outputs: full quads */
	uint32_t group_slots;                    /* group_units, or one more if the true unit needs it */
	uint32_t bias_group, bias_slot;          /* where the true unit is; NO_BIAS: nowhere */
	uint32_t gradient_first, gradient_warps; /* warps that compute it */
	uint32_t output_w_bytes;                 /* of all output weights, as they are sent */
	uint32_t input_w_copies;                 /* of each input weight, against bank conflicts of random reads */
	uint32_t csc_bytes, list_row;            /* bytes: lists by input of an update; a list by row */
	uint32_t tally_blocks;                   /* blocks that form tallies: one of every tally_blocks-th update each */
	ColumnSmem smem;
	ColumnRegs reg;
	uint32_t done;            /* label: the end of the job */
	struct Bf16Columns *bf16; /* bf16; NULL: fp32 */
} Columns;

Reg cluster_address(Columns *c, Reg rank, Reg at);  /* of shared memory `at` in another block (mapa) */
Reg unit_address(Columns *c, Reg unit, Reg parity); /* of a unit's output weights; the true unit is the last */
Reg valid_units(Columns *c, Reg group);             /* hidden units of a group */
/* Place of a lane in a warp tile, 8 by 4. Four adjacent lanes have 2 by 2: of the quads that they load, two may differ
 * without a bank conflict. */
enum { LANES_DOWN = 8, LANES_ACROSS = 4 };
Reg lane_down(Columns *c);
Reg lane_across(Columns *c);
Reg in_warps(Columns *c, uint32_t first, uint32_t count); /* P */
Reg next_cases(Columns *c);                               /* shared memory of the cases of the next update */
void update_begin(Columns *c);                            /* loads the number of rows */
Reg batch_row(Columns *c, Reg within);                    /* of a row of the block: its number in the batch */
Reg rows_in(Columns *c, Reg first, uint32_t most);        /* rows from this one on, at most so many */
Reg part_bar(Columns *c, uint32_t bar);                   /* of the warp's part */
Reg group_bar(Columns *c, Reg part);                      /* GROUP; its phase is pair_parity */
bool gradient_runs_ahead(const Columns *c); /* the end of an update does not wait for the output gradient's warps */
void registers_derive(Columns *c);          /* from the thread and the update */
typedef struct UpdateLoop {
	uint32_t top;
} UpdateLoop;
Reg updates_load(Columns *c); /* of the job */
UpdateLoop updates_begin(Columns *c);
void updates_end(Columns *c, const UpdateLoop *l);
Kernel *update_kernel(Columns *c); /* a view for functions of emit: cases of this update */

uint32_t take(Columns *c, uint64_t bytes); /* allocates shared memory */
void plan_sizes(Columns *c);               /* of the network and the cluster */
void plan_lane_rows(Columns *c);           /* needs the rows of a block */
void plan_cases_begin(Columns *c);         /* memory of side warps; then cases begin, */
void plan_cases_end(Columns *c);           /* and end with targets and deferred outputs; doubles them */
uint32_t plan_states(const Columns *c);    /* variables of a weight besides itself */

/* ---- sync.c ---- */

Reg bar_address(Columns *c, uint32_t bar);
void bars_begin(Columns *c);                              /* mbarrier.init, by one thread */
void bar_expect(Columns *c, uint32_t bar, Reg bytes);     /* by one thread */
void bar_arrive_remote(Columns *c, Reg at, Reg rank);     /* at address `at` of a block */
void bar_arrive_warp(Columns *c, Reg at);                 /* of this block: one arrival for a warp */
Reg alternate_bar(Columns *c, uint32_t bar);              /* of two that alternate; its phase is pair_parity */
void bar_poll(Columns *c, Reg at, Reg parity, Reg ended); /* to label `done` if the word at `ended` is set */
void bar_wait(Columns *c, Reg at, Reg parity);            /* for writes to shared memory of this block */
void bar_wait_acquire(Columns *c, Reg at, Reg parity);    /* for writes anywhere: acquire.cluster */
/* Remote stores (st.async) that count at a barrier; to and bar are cluster addresses. is: P, or an integer: always */
void word_send(Columns *c, Reg to, Reg word, Reg bar);
void words_send(Columns *c, Reg is, Reg to, uint32_t offset, const Reg *v, uint32_t count, Reg bar); /* 1 or 2 */
void quad_send(Columns *c, Reg is, Reg to, uint32_t offset, const Reg v[4], Reg bar);
/* A bulk copy of shared memory. If other threads wrote it, this one has synchronized with them and fenced (bulk_fence):
 * the proxy fence may be anywhere between the write and the copy. */
void bulk_send(Columns *c, Reg to, Reg from, uint32_t bytes, Reg bar);
void cluster_sync(Columns *c);
void warps_sync(Columns *c, Reg named, uint32_t warps);   /* bar.sync */
void warps_arrive(Columns *c, Reg named, uint32_t warps); /* bar.arrive */
void go_wait(Columns *c);                                 /* GO: to label `done` if the job stops before this update */
uint32_t stop_words(const Columns *c); /* bf16: the word of GO is also sent with so many HIDDEN, to wait only once */

/* ---- rows.c ---- */

void hidden_emit(Columns *c);                                      /* activations of the block's columns, all rows */
void outputs_emit(Columns *c);                                     /* outputs and deltas of the block's rows */
void activations_send(Columns *c, uint32_t first, uint32_t warps); /* to unit groups; by these warps of a part */
void deltas_send(Columns *c, uint32_t first, uint32_t warps);      /* of outputs, to output groups; likewise */
void hidden_deltas_emit(Columns *c, uint32_t warps);               /* of the block's rows; by the first of a part */

/* ---- gradient.c ---- */

void weights_move(Columns *c, bool out);                    /* from global memory to shared memory, or back */
PlaceNumbers params_load(Columns *c, const DevicePanel *p); /* parameters of the update, for the weights of a panel */
/* Four adjacent weights and their state: variable v is (v - 1) * size bytes behind `at`. v[1]: the weights */
typedef struct RuleQuad {
	Reg weight, at;
	uint32_t size;
	Reg v[2 + MAX_STATE][4];
} RuleQuad;
void quad_load(Columns *c, RuleQuad *q);
void quad_rule(Columns *c, const PlaceNumbers *n, const Reg g[4], RuleQuad *q);
void quad_put(Columns *c, const RuleQuad *q);
void quad_update(Columns *c, const PlaceNumbers *n, const Reg g[4], RuleQuad *q); /* all three */
void output_weights_emit(Columns *c); /* by gradient_warps, which leave if the job stops, as do the others */
void input_weights_emit(Columns *c);

/* ---- side.c ---- */

void prefetch_first(Columns *c); /* everything of the first update */
void prefetch_loop(Columns *c);  /* loops over updates, by a side warp */
void score_loop(Columns *c);
Reg next_in_cycle(Columns *c, Reg cycle);                     /* number of the next update in the cycle */
void chunk_load(Columns *c, Reg number, Reg rows, Reg cases); /* of an update; cases: D */

/* ---- bf16_columns.c: bf16 ---- */

/* Offsets in shared memory, and distances there: bytes. Tiles of fp32 are fragments: [lane][4]. */
typedef struct Bf16Smem {
	uint32_t input_w, input_w_row;            /* bf16 input weights of the block's columns: [input][column] */
	uint32_t hidden_start;                    /* weights from the true unit: initial values of sums */
	uint32_t input_master, input_master_size; /* fp32 tiles of the block's inputs: [variable][tile] */
	uint32_t prefix;                          /* sums of the first slices, from warp to warp */
	uint32_t output_w, output_w_size;         /* bf16 output weights, two of them, by parity of the update */
	uint32_t output_w_tile, output_start;     /* there: distance of tiles of 8 units; weights from the true unit */
	uint32_t block_master, block_master_size; /* fp32 tiles of the block's output weights: [variable][tile] */
	uint32_t act;                             /* activations of the block's rows: fp32 tiles of 16 by 8 */
	uint32_t act_bf16, act_row;               /* the same in bf16: [row][unit] */
	uint32_t delta_bf16, delta_row;           /* deltas of outputs: [row][output] */
	uint32_t hidden_delta, hidden_delta_row;  /* deltas of the block's columns: [row of all][column] */
	uint32_t slice_sums;                      /* gradients of the block's tiles: [slice][tile] */
} Bf16Smem;

/* Weights are tiles of 16 rows by 8 columns, as a warp has their gradient: input weights of inputs by columns, output
 * weights of outputs by units. */
typedef struct Bf16Columns {
	const InputColumns *input;
	uint32_t shares;                   /* blocks that have the same columns; each has a share of the rows and inputs */
	uint32_t col_tiles;                /* of a block's columns */
	uint32_t input_tiles;              /* of all inputs */
	uint32_t block_input_tiles;        /* of a block's share of them */
	uint32_t input_rows;               /* inputs, and the true unit */
	uint32_t tile_warps;               /* warps that divide the slices of a tile of input weights: 1 or 2 */
	bool once;                         /* hidden units: a warp has 16 rows, or none */
	uint32_t output_tiles, unit_tiles; /* of output weights: down, across */
	uint32_t block_tiles;              /* of output weights, of a block at most */
	uint32_t slices;                   /* of all rows: 32 each */
	uint32_t row_tiles;                /* of a block's rows: 16 each */
	uint32_t row_warps;                /* warps that share a tile of rows */
	uint32_t output_w_bytes;           /* new output weights that a block gets in an update */
	Bf16Smem smem;
	Reg group, share; /* registers: which columns; which share */
} Bf16Columns;

uint32_t bf16_columns_each(uint32_t hidden, uint32_t blocks); /* of a block: a multiple of 8 */
const char *bf16_columns_plan(Columns *c);
void bf16_columns_begin(Columns *c);
void bf16_registers(Columns *c); /* bf16 part of registers_derive */
void bf16_weights_move(Columns *c, bool out);
void bf16_workers(Columns *c);
void bf16_input_w_wait(Columns *c);             /* input weights of this update are there */
Reg bf16_first_tile(Columns *c);                /* of input weights: number of the block's first tile */
Reg bf16_block_tile(Columns *c, uint32_t slot); /* of output weights: number of the block's tile */

enum { SLICES_KEPT = 8 }; /* whose sums a warp has in registers */
enum { BF16_CHAINS = 7 }; /* tiles that two warps divide, at most: each needs a named barrier */

/* ---- bf16_passes.c ---- */

void bf16_hidden(Columns *c); /* activations of the block's columns */
void bf16_rows_pass(Columns *c);
void bf16_transpose_inputs(Columns *c); /* bits of inputs, for the gradient; by warps without rows */

/* ---- bf16_weights.c ---- */

void bf16_slice_sums(Columns *c, uint32_t first, uint32_t warps); /* output gradient, to the blocks of the tiles */
void bf16_output_weights_loop(Columns *c);                        /* the block's output weights: loop of a side warp */
/* Input weights: gradient and rule. Each warp has all slices of its tiles; or two warps divide the slices of a tile: a
 * warp without rows, which may begin before all deltas have arrived, has the first half, one with rows the rest. */
void bf16_input_weights(Columns *c);
struct InputTiles *bf16_input_begin(Columns *c, uint32_t half);
void bf16_input_first(Columns *c, const struct InputTiles *x);
void bf16_input_second(Columns *c);

/* ---- tallies.c ---- */

void tally_loop(Columns *c);
void decide_loop(Columns *c);

#endif
