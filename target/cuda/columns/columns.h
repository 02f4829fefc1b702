/* SPDX-License-Identifier: MIT */
/* columns: the kernel for batches of one leaf, of a network with index lists and one layer of hidden units.
 *
 *   steps of the device --columns.c--> Columns: who has what, shared memory --rows.c, gradient.c, side.c--> text
 *
 * A cluster of blocks trains together. Each has some columns of hidden units: their weights from the inputs, their
 * weights to the outputs and the rule state of both stay in its shared memory for the whole job, so that the gradient
 * is summed and the rule applied where the weights are. Each block also has some rows of the batch, whose outputs and
 * errors it computes with a copy of all weights to the outputs. What crosses blocks in an update:
 *
 *   ACT     activations             columns of all rows -> the block of the row
 *           weights to outputs      those who have them -> all blocks, for the next update
 *   GROUP   activations             columns of all rows -> blocks that form their gradient
 *   DELTA   deltas of outputs       rows of a block -> blocks that form their gradient
 *   HIDDEN  deltas of hidden units  rows of a block -> the block of the column
 *   JUDGED  errors of rows are there                    all blocks -> the last one
 *   TALLIED the update may be made, or the job stops    the last block -> all
 *
 * The gradient of weights to outputs is cut into groups of hidden units by groups of outputs, one for each block, which
 * keeps these weights and their state. What is sent are stores that count at a barrier of the other block, or arrivals.
 * These are barriers in shared memory (mbarrier); nothing else orders blocks between the beginning and the end of a
 * job. Two warps of a block are side warps, which do what needs no worker: one copies the cases of the next update and
 * looks up tables of later ones, then forms errors and verdicts of the block's rows; one, in the last block, forms
 * tallies. */
#ifndef COLUMNS_H
#define COLUMNS_H

#include "emit.h"

typedef struct ColumnsShape {
	uint32_t threads, shared;
	uint64_t exchange; /* bytes of Job.exchange */
} ColumnsShape;
/* NULL, or why not. image: bytes of lists by input of a leaf in Job.images */
const char *columns_text(const EmitSource *s, uint32_t image, Arena *a, Buf *out, ColumnsShape *shape);

uint32_t columns_each(uint32_t hidden, uint32_t blocks); /* of a block: a multiple of 4 */

/* ---- columns.c: the plan ------------------------------------------------------------------------------ */

enum { MOST_TURNS = 16 }; /* rows of a lane or thread, at most */
enum { MOST_COLUMNS = 32, MOST_CLUSTER = 16 };
enum { DENSE_ROUNDS = 16 }; /* weights to outputs of a thread, at most */
enum { SIDE_WARPS = 2 };    /* warps, after those of the workers */
enum {
	BAR_ACT,
	BAR_GROUP,
	BAR_DELTA,
	BAR_HIDDEN,
	BAR_JUDGED,
	BAR_TALLIED,
	BARS = BAR_TALLIED + 2
};                                                             /* TALLIED: they alternate */
enum { NAMED_OUTPUTS = 1, NAMED_DENSE, NAMED_END, NAMED_ACT }; /* barriers of some warps of a block */

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
	uint32_t dense_warps;                 /* that form the gradient of weights to outputs: the first ones */
	uint32_t pass_first, pass_warps;      /* that compute outputs, and errors of hidden units */
	uint32_t store_warps;                 /* that send activations to groups, and deltas of outputs: the first ones */
	uint32_t turns, all_turns, own_turns; /* rows of a worker; of a lane of a side warp: all, and the block's */
	uint32_t image, list_row;             /* bytes */
	uint32_t to_bytes;                    /* of all weights to outputs */
	/* bytes in shared memory */
	uint32_t at_bars, at_bad, at_stop, at_rank, at_from, from_size, at_to, unit_row, quad_row, at_to_bias, at_own,
		own_size;
	uint32_t at_act, act_row, at_delta, delta_row, at_column, at_act_t, act_t_size, at_delta_t, to_size, pitch,
		at_hidden, hidden_pad;
	uint32_t at_cases, cases_size, at_count, at_numbers, at_lists, at_image; /* of one update; the next one's follow */
	uint64_t at_errors, at_verdicts; /* in the exchange: after deltas by output */
	bool state[2 + MAX_STATE];       /* of the formula: what is kept of a weight */
	/* registers */
	Reg warp, lane, first_column, has_columns;
	Reg row_group, output_group; /* of the gradient of weights to outputs */
	Reg parity;                  /* 0 or 1: of the update */
	Reg second;                  /* of pairs of updates */
	Reg now;                     /* shared memory of the cases of this update */
	Reg rows_now;                /* of the update */
	Reg exchange;                /* D */
	uint32_t done;               /* label */
} Columns;

Reg remote(Columns *c, Reg rank, Reg at);         /* address `at` of shared memory, in another block */
Reg unit_place(Columns *c, Reg unit, Reg parity); /* address of its weights to outputs; the true unit is the last */
Reg valid_units(Columns *c, Reg group);           /* hidden units of a group */
Reg in_warps(Columns *c, uint32_t first, uint32_t count); /* P */
Reg other_cases(Columns *c);                              /* shared memory of the cases of the next update */
void update_begin(Columns *c);                            /* rows of this update */
void turn_over(Columns *c);                               /* to the next update */
Kernel *update_kernel(Columns *c,
                      Reg parity); /* as functions of emit see it: cases of this update, errors of a parity */

/* ---- sync.c ---- */

Reg bar_at(Columns *c, uint32_t bar);                 /* address */
void bars_begin(Columns *c);                          /* by one thread */
void bar_expect(Columns *c, uint32_t bar, Reg bytes); /* by one thread */
void bar_arrive(Columns *c, Reg at, Reg rank);        /* at address `at` of a block */
void bar_wait(Columns *c, Reg at, Reg parity);
void quad_send(Columns *c, Reg is, Reg to, uint32_t offset, const Reg v[4], Reg bar); /* addresses of the cluster */
void cluster_sync(Columns *c);
void meet(Columns *c, uint32_t named, uint32_t warps);
void tallied_wait(Columns *c); /* leaves if the job stops before this update */

/* ---- rows.c ---- */

void hidden_emit(Columns *c);  /* activations of the block's columns, all rows */
void outputs_emit(Columns *c); /* outputs and deltas of the block's rows, all columns */
void columns_send(Columns *c); /* activations, to groups; by store_warps, as deltas_send */
void deltas_send(Columns *c);  /* of outputs, to groups */
void errors_back(Columns *c);  /* deltas of hidden units */

/* ---- gradient.c ---- */

void weights_move(Columns *c, bool out); /* from global memory, or back */
void dense_emit(Columns *c);             /* by the dense warps; both leave if the job stops */
void lists_emit(Columns *c);

/* ---- side.c ---- */

void side_begin(Columns *c); /* everything of the first update */
void side_emit(Columns *c);  /* their loops of updates */
void tally_emit(Columns *c);

#endif
