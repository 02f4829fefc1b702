/* SPDX-License-Identifier: MIT */
/* columns: the kernel for batches of one leaf, of a network with index lists and one layer of hidden units. In bf16,
 * inputs are bits, and half_columns.c says what is different.
 *
 *   steps of the device --columns.c--> Columns: who has what --rows.c, gradient.c, side.c, tallies.c--> text
 *
 * A cluster of blocks trains together. Each has some columns of hidden units: their weights from the inputs, their
 * weights to the outputs and the rule state of both stay in its shared memory for the whole job, so that the gradient
 * is summed and the rule applied where the weights are. Each block also has some rows of the batch, whose outputs and
 * errors it computes with a copy of all weights to the outputs. What crosses blocks in an update:
 *
 *   ACT     activations             columns of all rows -> the block of the row
 *   WEIGHTS weights to outputs      those who have them -> all blocks, for the next update
 *   FROM    bf16: weights from inputs                   -> blocks with the same columns, for the next update
 *   GROUP   activations             columns of all rows -> blocks that form their gradient
 *   DELTA   deltas of outputs       rows of a block -> blocks that form their gradient
 *   HIDDEN  deltas of hidden units  rows of a block -> the block of the column
 *   ROWS    errors and verdicts     rows of a block -> the block that forms the tally
 *   JUDGED  errors are numbers or not                   all blocks -> the last one
 *   SUMMED  the tally of an update                      blocks that form tallies -> the last one
 *   TALLIED the update may be made, or the job stops    the last block -> all
 *
 * Rows are cut into two parts where there are warps enough: a team of warps takes each through the passes, one team
 * behind the other, so that chains of sums over the first rows begin while the passes of the others are computed. Each
 * block has rows of both.
 *
 * The gradient of weights to outputs is cut into groups of hidden units by groups of outputs, one for each block, which
 * keeps these weights and their state. Where rows are cut, the warps that form it begin the next update without the
 * others, which do not wait for them either. What is sent are stores or, for GROUP, copies of the device, which count
 * at a barrier of the other block, or arrivals. These are barriers in shared memory (mbarrier); nothing else orders
 * blocks between the beginning and the end of a job. Four warps of a block are side warps, which do what needs no
 * worker: one copies the cases of the next update and looks up tables of later ones; one forms errors and verdicts of
 * the block's rows; one, in the first blocks, forms tallies, each of some updates, since the chain of its sums takes
 * longer than an update; one, in the last block, joins tallies and tells all whether the job goes on. In bf16, one that
 * would have nothing to do (the last one; in the last block the one before it) makes the block's weights to outputs. In
 * a block, LATE says that outputs are there for verdicts, READ that these are formed. */
#ifndef COLUMNS_H
#define COLUMNS_H

#include "half_emit.h"

typedef struct ColumnsShape {
	uint32_t threads, shared;
} ColumnsShape;
/* NULL, or why not. image: bytes of lists by input of a leaf in Job.images */
const char *columns_text(const EmitSource *s, uint32_t image, Arena *a, Buf *out, ColumnsShape *shape);

uint32_t columns_each(uint32_t hidden, uint32_t blocks); /* of a block: a multiple of 4 */

/* ---- columns.c: the plan ------------------------------------------------------------------------------ */

enum { MOST_TURNS = 16 }; /* rows of a lane or thread, at most */
enum { MOST_COLUMNS = 32, MOST_CLUSTER = 16 };
enum { DENSE_ROUNDS = 16 };                                          /* weights to outputs of a thread, at most */
enum { MOST_PARTS = 2 };                                             /* of the rows */
enum { RING = 32 };                                                  /* rows of chains that are under way */
enum { CHAIN_TURN = 128 };                                           /* rows of a turn, whose end waits for loads */
enum { SIDE_COPY, SIDE_JUDGE, SIDE_TALLY, SIDE_DECIDE, SIDE_WARPS }; /* warps, after those of the workers */
enum { MOST_TALLIES = 4 };                                           /* that are formed at a time */
enum { LANES_READ = 8 };                                             /* of 16 bytes each, in a cycle of shared memory */
enum {
	BAR_ACT,                          /* these four: one for each part */
	BAR_GROUP = BAR_ACT + MOST_PARTS, /* two of each, which alternate */
	BAR_DELTA = BAR_GROUP + 2 * MOST_PARTS,
	BAR_HIDDEN = BAR_DELTA + MOST_PARTS,
	BAR_WEIGHTS = BAR_HIDDEN + MOST_PARTS,
	BAR_FROM, /* bf16: also counts the warps of the block */
	BAR_JUDGED,
	BAR_TALLIED,                /* two, which alternate */
	BAR_LATE = BAR_TALLIED + 2, /* likewise */
	BAR_READ = BAR_LATE + 2,    /* likewise */
	BAR_ROWS = BAR_READ + 2,
	BAR_SUMMED, /* one for each tally */
	BARS = BAR_SUMMED + MOST_TALLIES
};
/* barriers of some warps of a block; of three, one for each part */
enum {
	NAMED_END = 1,
	NAMED_ACT,
	NAMED_OUTPUTS = NAMED_ACT + MOST_PARTS,
	NAMED_TURNED = NAMED_OUTPUTS + MOST_PARTS,
	NAMED_FIRST = NAMED_TURNED + MOST_PARTS,
	NAMED_BIAS = NAMED_TURNED, /* of warps that sum deltas */
	NAMED_WORDS = NAMED_ACT    /* bf16 */
};

typedef struct Columns {
	Kernel *k; /* what functions of emit need: rows, targets, late rows of the block */
	const DeviceStep *index, *out, *errors, *back, *lists, *dense; /* steps */
	const DevicePanel *from, *to;                                  /* weights from inputs, weights to outputs */
	uint32_t hidden_fn;
	uint32_t blocks, inputs, hidden, outputs;
	uint32_t quads, own_quads, own; /* of hidden columns: all, of a block; own: columns of a block */
	uint32_t output_quads;
	uint32_t rows;                        /* that there is room for, in all blocks: a multiple of 4 for each */
	uint32_t workers, warps;              /* threads that compute, and their warps */
	uint32_t down, across;                /* groups of hidden units, of outputs */
	uint32_t slots, group_outputs;        /* of a group: hidden units and perhaps the true one; outputs, full quads */
	uint32_t group_units;                 /* the same without the true one */
	uint32_t bias_group, bias_slot;       /* where the true unit is */
	uint32_t parts, team_warps;           /* of rows; warps for each */
	uint32_t part_rows, part_block;       /* of a part: rows, in all blocks and in one */
	uint32_t high, wide;                  /* of a thread, in products: rows; outputs */
	uint32_t dense_first, dense_warps;    /* that form the gradient of weights to outputs: senders of the last team */
	uint32_t pass_warps;                  /* of a team, that compute outputs: its first ones */
	uint32_t turns, all_turns, own_turns; /* rows of a worker; of a lane of a side warp: all, and the block's */
	uint32_t image, list_row;             /* bytes */
	uint32_t tallies;                     /* blocks that form them */
	uint32_t to_bytes;                    /* of all weights to outputs */
	/* bytes in shared memory */
	uint32_t at_bars, at_bad, at_stop, at_ended, at_from, from_copies, from_row, at_from_state, from_size, at_to,
		unit_row, quad_row, at_to_bias, at_own, own_size;
	uint32_t at_act, act_quad, at_delta, delta_row, at_act_t, act_t_size, at_delta_t, to_size, pitch, at_hidden,
		hidden_pad, at_bias;
	uint32_t part_pitch; /* of rows by column: from part to part, with a gap for what is loaded ahead */
	uint32_t at_cases, cases_size, at_count, at_numbers, at_lists, at_image; /* of one update; the next one's follow */
	bool state[2 + MAX_STATE]; /* of the formula: what is kept of a weight */
	/* registers */
	Reg warp, lane, first_column, has_columns;
	Reg part, team_warp, team_thread; /* of the thread */
	Reg base;                         /* first row of the part, in the block */
	Reg row_group, output_group;      /* of the gradient of weights to outputs */
	Reg parity;                       /* 0 or 1: of the update */
	Reg second;                       /* of pairs of updates */
	Reg now;                          /* shared memory of the cases of this update */
	Reg rows_now;                     /* of the update */
	Reg turn;                         /* the block that forms the tally of the update */
	Reg update;                       /* its number in the job */
	uint32_t done;                    /* label */
	struct HalfColumns *half;         /* bf16; NULL: floats */
} Columns;

Reg remote(Columns *c, Reg rank, Reg at);         /* address `at` of shared memory, in another block */
Reg unit_place(Columns *c, Reg unit, Reg parity); /* address of its weights to outputs; the true unit is the last */
Reg valid_units(Columns *c, Reg group);           /* hidden units of a group */
/* Place of a lane in a tile of a warp, 8 by 4. Four lanes side by side have 2 by 2: of quads that they read, two may be
 * different, or shared memory takes twice as long. */
enum { LANES_DOWN = 8, LANES_ACROSS = 4 };
Reg lane_down(Columns *c);
Reg lane_across(Columns *c);
Reg in_warps(Columns *c, uint32_t first, uint32_t count); /* P */
Reg other_cases(Columns *c);                              /* shared memory of the cases of the next update */
void update_begin(Columns *c);                            /* rows of this update */
Reg batch_row(Columns *c, Reg within);                    /* of a row of the block: its number in the batch */
Reg rows_in(Columns *c, Reg first, uint32_t most);        /* rows from this one on, at most so many */
Reg part_bar(Columns *c, uint32_t bar);                   /* of the thread's part */
Reg group_bar(Columns *c, Reg part);                      /* GROUP; its parity is `second` */
bool dense_goes_on(const Columns *c);                     /* the end of an update does not wait for the dense warps */
void places_derive(Columns *c);                           /* registers that follow from the thread and the update */
typedef struct UpdateLoop {
	uint32_t top;
} UpdateLoop;
Reg updates_load(Columns *c); /* of the job */
UpdateLoop updates_begin(Columns *c);
void updates_end(Columns *c, const UpdateLoop *l);
Kernel *update_kernel(Columns *c); /* as functions of emit see it: cases of this update */

uint32_t take(Columns *c, uint64_t bytes); /* of shared memory */
void plan_sizes(Columns *c);               /* of the network and the cluster */
void plan_row_turns(Columns *c);           /* of rows: those of a block are known */
void plan_cases_begin(Columns *c);         /* what side warps have, and what cases of an update begin with; */
void plan_cases_end(Columns *c);           /* with targets and outputs; twice */
uint32_t plan_states(const Columns *c);    /* variables of a weight besides itself */

/* ---- sync.c ---- */

Reg bar_at(Columns *c, uint32_t bar);                     /* address */
void bars_begin(Columns *c);                              /* by one thread */
void bar_expect(Columns *c, uint32_t bar, Reg bytes);     /* by one thread */
void bar_arrive(Columns *c, Reg at, Reg rank);            /* at address `at` of a block */
void bar_tell(Columns *c, Reg at);                        /* of this block: a warp */
Reg turn_bar(Columns *c, uint32_t bar);                   /* of two that alternate; its parity is `second` */
void bar_poll(Columns *c, Reg at, Reg parity, Reg ended); /* leaves if a word is set */
void bar_wait(Columns *c, Reg at, Reg parity);            /* for what is in shared memory of the block, */
void bar_wait_all(Columns *c, Reg at, Reg parity);        /* or elsewhere */
/* Stores elsewhere that count at a barrier; addresses of the cluster. is: P */
void word_send(Columns *c, Reg to, Reg word, Reg bar);
void words_send(Columns *c, Reg is, Reg to, uint32_t offset, const Reg *v, uint32_t count, Reg bar); /* 1 or 2 */
void quad_send(Columns *c, Reg is, Reg to, uint32_t offset, const Reg v[4], Reg bar);
/* Bytes that others have stored before a barrier, after which this thread has fenced (bulk_fence): a fence of proxies
 * may stand anywhere between the store and the copy. */
void bulk_send(Columns *c, Reg to, Reg from, uint32_t bytes, Reg bar);
void cluster_sync(Columns *c);
void meet(Columns *c, Reg named, uint32_t warps);
void tell(Columns *c, Reg named, uint32_t warps); /* that others meet */
void tallied_wait(Columns *c);                    /* leaves if the job stops before this update */
uint32_t stop_words(const Columns *c);            /* bf16: the word of TALLIED also comes with so many HIDDEN */

/* ---- rows.c ---- */

void hidden_emit(Columns *c);                                  /* activations of the block's columns, all rows */
void outputs_emit(Columns *c);                                 /* outputs and deltas of the block's rows, all columns */
void columns_send(Columns *c, uint32_t first, uint32_t warps); /* activations, to groups; by these warps of a team */
void deltas_send(Columns *c, uint32_t first, uint32_t warps);  /* of outputs, to groups; likewise */
void errors_back(Columns *c, uint32_t warps);                  /* deltas of hidden units; by the first of a team */

/* ---- gradient.c ---- */

void weights_move(Columns *c, bool out); /* from global memory, or back */
PlaceNumbers rule_begin(Columns *c, const DevicePanel *p);
/* Four weights side by side, and their state: variable v is (v - 1) * size bytes behind `at`. v[1]: the weights */
typedef struct RuleQuad {
	Reg weight, at;
	uint32_t size;
	Reg v[2 + MAX_STATE][4];
} RuleQuad;
void quad_load(Columns *c, RuleQuad *q);
void quad_rule(Columns *c, const PlaceNumbers *n, const Reg g[4], RuleQuad *q);
void quad_keep(Columns *c, const RuleQuad *q);
void rule_quad(Columns *c, const PlaceNumbers *n, const Reg g[4], RuleQuad *q); /* all three */
void dense_emit(Columns *c); /* by the dense warps; both leave if the job stops */
void lists_emit(Columns *c);

/* ---- side.c ---- */

void side_begin(Columns *c); /* everything of the first update */
void copy_emit(Columns *c);  /* their loops of updates */
void judge_emit(Columns *c);
Reg advanced(Columns *c, Reg cycle);                          /* number of the next update in the cycle */
void chunk_load(Columns *c, Reg number, Reg rows, Reg cases); /* of an update; cases: D */

/* ---- half_columns.c: bf16 ---- */

/* Weights from inputs and their rounded forms are tiles of 16 inputs by 8 columns, as a warp has their gradient; those
 * to outputs are tiles too, each of which a block has. */
typedef struct HalfColumns {
	const InputColumns *in;
	uint32_t shares;                /* blocks that have the same columns, and some of rows and inputs each */
	uint32_t tiles, down, own_down; /* of weights from inputs: across and down, and down of a block; */
	uint32_t chain;                 /* warps that have the slices of a tile: 1 or 2 */
	bool once;                      /* a warp has 16 rows at most, for activations */
	uint32_t to_down, to_across;    /* tiles of weights to outputs, of which a block has */
	uint32_t own_tiles;             /* so many at most */
	uint32_t slices, row_tiles;     /* of all rows; tiles of 16 rows of a block, */
	uint32_t split;                 /* which so many warps share */
	uint32_t from_rows, sent_bytes; /* inputs, and the true unit; new weights to outputs */
	/* bytes in shared memory */
	uint32_t at_from, from_pitch, at_start, at_master, master_size, at_prefix, at_to, to_tile, to_start, to_size,
		at_own, own_size;
	uint32_t at_act, at_act_h, act_pitch, at_delta_h, delta_pitch, at_hidden, hidden_pitch, at_sums;
	Reg group, share; /* of columns; which of its blocks */
} HalfColumns;

uint32_t half_columns_each(uint32_t hidden, uint32_t blocks); /* of a block: a multiple of 8 */
const char *half_columns_plan(Columns *c);
void half_columns_begin(Columns *c);
void half_places(Columns *c); /* registers that functions of bf16 need */
void half_weights_move(Columns *c, bool out);
void half_workers(Columns *c);
void half_from_wait(Columns *c);          /* weights from inputs, of this update, are there */
Reg half_first(Columns *c);               /* of weights from inputs: number of the block's first tile, down */
Reg half_tile(Columns *c, uint32_t slot); /* of weights to outputs: number of the block's tile */

enum { SLICES_KEPT = 8 }; /* whose sums a warp keeps apart */
enum { HALF_CHAINS = 7 }; /* tiles that two warps have, at most: each has a barrier */

/* ---- half_passes.c ---- */

void half_hidden(Columns *c); /* activations of the block's columns */
void half_rows_pass(Columns *c);
void half_turn(Columns *c); /* words of inputs, by warps that have no rows */

/* ---- half_changes.c ---- */

void half_dense(Columns *c, uint32_t first, uint32_t warps); /* sums of the block's slices, to blocks of tiles */
void half_to_emit(Columns *c); /* loop of updates of a side warp: the block's weights to outputs */
/* Weights from inputs: their gradient and the rule. All by each warp; or, of a tile, the first half of the slices by a
 * warp without rows, which may begin before deltas are there, and the rest by one with rows. */
void half_from(Columns *c);
struct FromTiles *half_from_begin(Columns *c, uint32_t half);
void half_from_first(Columns *c, const struct FromTiles *x);
void half_from_second(Columns *c);

/* ---- tallies.c ---- */

void tally_emit(Columns *c);
void decide_emit(Columns *c);

#endif
