/* SPDX-License-Identifier: MIT */
/* bf16: products and gradients by tensor cores. Included by the files of emit that have a part in it. */
#ifndef HALF_EMIT_H
#define HALF_EMIT_H

#include "emit.h"

enum { HALF_BUFS = BUF_DELTA + 1 }; /* activations and deltas are operands */

/* Rounded weights in shared memory: rows of a panel. */
typedef struct HalfRegion {
	uint64_t from;      /* in Job.half */
	uint32_t row, rows; /* row: halves */
	uint32_t pitch, at; /* bytes in shared memory */
} HalfRegion;

/* A warp has `high` tiles of 16 rows by `wide` tiles of 8 columns. */
typedef struct HalfTask {
	uint32_t high, wide, down, across; /* down, across: tasks */
	uint32_t first;                    /* of a gradient: its first warp in all rounds */
} HalfTask;

typedef struct Half {
	uint16_t *map[HALF_BUFS]; /* as Kernel.map */
	uint32_t row, at_rows;    /* bytes */
	HalfRegion region[WEIGHT_REGIONS];
	uint32_t regions;
	HalfTask task[MOST_GRADIENTS];
	uint32_t warps;  /* that compute gradients, */
	uint32_t tasks;  /* of all of them together, */
	uint32_t rounds; /* in which each warp takes one task at most */
	bool direct;     /* one block has all rows of the one leaf: the gradient is the update */
	bool once;       /* a block has one slice of an update at most: that of the next one comes while others arrive */
	bool deferred;   /* there is one leaf: its tally is formed beside the update */
	/* registers */
	Reg warp, lane, row_of_lane, col_of_lane; /* of sums of a tile: row, and the first of two columns */
	Reg place[2];                             /* lane_place for rows */
	Reg first, slice;                         /* row that the slice begins with; its number */
	Reg leaves;                               /* of the update whose rows are there */
	Reg (*sum)[4];                            /* [tiles of a warp] gradients that are kept while rows come in chunks */
} Half;

/* ---- half.c ---- */

const HalfRegion *half_region(const Kernel *k, const DeviceStep *s);
uint32_t half_column(const Kernel *k, uint32_t buf, uint32_t col); /* bytes in a row */
Reg lane_place(Kernel *k, uint32_t pitch, bool across);
void half_inputs(Kernel *k);
void half_pads(Kernel *k);
Reg half_pair(Emit *e, Reg low, Reg high);

/* ---- half_rows.c ---- */

void fragments_load(Kernel *k, Reg *f, uint32_t matrices, bool transposed, Reg at, uint32_t offset);
void multiply_add(Emit *e, const Reg sum[4], const Reg a[4], const Reg b[2], const Reg *start);
void half_steps(Kernel *k, uint32_t first, uint32_t end);
/* Does a step after step i have these columns as an operand before another writes them? */
bool operand_later(const Kernel *k, uint32_t i, uint32_t buf, uint32_t col, uint32_t count);

/* ---- half_gradient.c ---- */

void half_gradient_plan(Kernel *k);
void half_sums_begin(Kernel *k);         /* of a slice, or of a leaf */
void half_changes(Kernel *k, Reg chunk); /* of a chunk of rows; chunk: its number in the slice */
void half_sums_end(Kernel *k);

/* ---- half_tiles.c ---- */

const char *half_tiles_columns(Kernel *k, uint32_t step); /* NULL, or what is wrong */
uint32_t half_tiles_plan(Kernel *k);                      /* bytes of the rings */
void half_product_tiles(Kernel *k, uint32_t step);
void half_gradient_tiles(Kernel *k, Reg leaves);
Reg half_buffer(Kernel *k, uint32_t buf, uint32_t col);  /* rows of rounded values, from this column on; */
Reg float_buffer(Kernel *k, uint32_t buf, uint32_t col); /* of floats */
const InputColumns *input_of(const Kernel *k, uint32_t buf, uint32_t col); /* NULL: none */
bool is_operand(const DeviceStep *s, uint32_t access);                     /* of a product or gradient: rounded */
/* Does a step after step i read these columns as floats? */
bool floats_later(const Kernel *k, uint32_t i, uint32_t buf, uint32_t col, uint32_t count);

/* ---- half_phase.c ---- */

void half_ones(Kernel *k);
void half_phase(Kernel *k, uint32_t first, uint32_t end, bool scores, bool codes);

#endif
