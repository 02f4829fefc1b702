/* SPDX-License-Identifier: MIT */
/* bf16: products and gradients by tensor cores. Included by the files of emit that have a part in it. */
#ifndef BF16_EMIT_H
#define BF16_EMIT_H

#include "emit.h"

/* Barriers of threads that do what no update waits for, and of others. */
enum { CASES_THERE = 2, ROWS_THERE = 3, SIDE_MEET = 4, ROWS_JUDGED = 5, SIDES_MEET = 6, TALLIED = 15 };
/* Of warpgroups: gradients have read rows, weights are new. */
enum { ROWS_FREE = 6, GROUP_WEIGHTS = 7, GROUP_ROWS_THERE = 8 };
enum { BF16_BUFS = BUF_DELTA + 1 }; /* activations and deltas are operands */

/* Rounded weights in shared memory: rows of a panel. */
typedef struct Bf16Region {
	uint64_t from;      /* in Job.half */
	uint32_t row, rows; /* row: halves */
	uint32_t space;     /* rows in shared memory, */
	uint32_t pitch, at; /* bytes */
	bool by_target;     /* grouped: a row of the panel has the weights of one target */
} Bf16Region;

/* A warp has `high` tiles of 16 rows by `wide` tiles of 8 columns. */
typedef struct Bf16Task {
	uint32_t high, wide, down, across; /* down, across: tasks */
	uint32_t first;                    /* of a gradient: its first warp in all rounds */
} Bf16Task;

/* Weights of a panel and their state in shared memory: rows of floats. If swizzled, 32 bytes and the next change places
 * in rows whose number has bit 1, so that pairs of columns of eight rows lie in different banks. */
typedef struct KeptPanel {
	uint32_t at[2 + MAX_STATE], pitch; /* bytes */
	bool swizzled;
} KeptPanel;

typedef struct Bf16 {
	uint16_t *map[BF16_BUFS]; /* as Kernel.map */
	uint32_t row, at_rows;    /* bytes */
	Bf16Region region[WEIGHT_REGIONS];
	uint32_t regions;
	bool bits;                                                 /* inputs are 0 or 1, a bit each */
	uint32_t bits_row, transposed_row, at_bits, at_transposed; /* bytes; transposed_row: words of inputs for 32 rows */
	Bf16Task task[MOST_GRADIENTS];
	uint32_t cases_bytes, at_count,
		at_numbers;                  /* apart: targets and so on of a chunk, of which there are two; its rows;
	                                             * the numbers of the update */
	uint32_t warps;                  /* that compute gradients, */
	uint32_t tasks;                  /* of all of them together, */
	uint32_t rounds;                 /* in which each warp takes one task at most */
	bool y_bits;                     /* targets of a row are the bits of a word */
	bool kept;                       /* direct: weights and rule state are in shared memory, */
	KeptPanel panel[MOST_GRADIENTS]; /* by number of their gradient */
	bool through;                    /* a warp takes its rows through all steps: there are no floats of rows */
	bool apart;                      /* copies, verdicts and tallies have warps of their own: SIDE_THREADS threads */
	bool grouped;                    /* products and gradients of warpgroups; rows and weights are tiles of 8 x 8 */
	bool direct;                     /* one block has all rows of the one leaf: the gradient is the update */
	bool once;          /* a block has one slice of an update at most: that of the next one comes while others arrive */
	uint32_t sum_tiles; /* 0, or sums of slices are in global memory as warps have them: tiles of all gradients */
	uint32_t at_parts;  /* 0, or bytes in shared memory: sums of leaves meet there */
	/* registers */
	Reg tiles_base;                           /* grouped: address of shared memory, in units of 16 bytes */
	Reg warp, lane, row_of_lane, col_of_lane; /* of sums of a tile: row, and the first of two columns */
	Reg place[2];                             /* lane_place for rows */
	Reg bits_shift;                           /* where the lane's bits of a word begin */
	Reg first, slice;                         /* row that the slice begins with; its number */
	Reg staged, transposed;                   /* once: leaf whose rows are there; whose words of inputs are: D */
	Reg leaves;                               /* of the update whose rows are there */
	Reg numbers_offset;        /* apart: bytes to the numbers of the update; of side threads: of the next one */
	Reg cases_offset;          /* apart: bytes to the cases of the chunk at hand */
	Reg ahead[4], ahead_cases; /* rows, row0, my_rows, ends, cases of the chunk that comes next */
	Reg ends, rows;            /* apart: the update ends an epoch; once: rows of the leaf */
	Reg (*sum)[4];             /* [tiles of a warp] gradients that are kept while rows come in chunks */
	Reg turn;                  /* grouped: chunks that a warpgroup has ended, of two updates */
} Bf16;

/* ---- bf16_plan.c ---- */

const Bf16Region *bf16_region(const Kernel *k, const DeviceStep *s);
uint32_t bf16_column(const Kernel *k, uint32_t buf, uint32_t col); /* bytes in a row, or in eight rows if grouped */
uint32_t bf16_across(const Kernel *k);                             /* bytes between tiles of 8 columns */
Reg lane_place(Kernel *k, uint32_t pitch, bool across);
void bf16_inputs(Kernel *k);
void bf16_pads(Kernel *k);
uint32_t shared_take(Kernel *k, uint64_t bytes);
Reg y_bit(Emit *e, Reg word, uint32_t n); /* a target, from its word */
Reg cases_memory(Kernel *k);              /* that at_targets, at_own, at_deferred and at_bits count from */
Reg bf16_pair(Emit *e, Reg low, Reg high);

/* ---- bf16_gradient.c: inputs that are bits ---- */

void bits_plan(Kernel *k);
uint64_t transposed_bytes(const Kernel *k, uint32_t rows);
uint64_t bits_bytes(const Kernel *k, uint32_t rows);                      /* in shared memory */
const InputColumns *bits_of(const Kernel *k, uint32_t buf, uint32_t col); /* NULL: columns are no bits */
void bits_stage(Kernel *k);
Reg place_column(Emit *e, Reg place); /* where bit `place` of a word is: column of 32 */
enum { SQUARES_TURNED = 4 };
void squares_turn(Kernel *k, Reg *x, uint32_t count); /* of each, bit j of lane i becomes bit i of lane j */
enum { TURNED_AT_ONCE = 4 };
void bits_turn(Kernel *k, uint32_t first, uint32_t most); /* for gradients; rows are there. most: TURNED_AT_ONCE */
void bits_fragments(Kernel *k, const Reg *word, uint32_t count, Reg f[2][4]); /* count: 2 of rows, 1 of columns */
Reg bits_row_at(Kernel *k, const InputColumns *in, Reg row);
Reg bits_input_at(Kernel *k, const InputColumns *in, Reg input);
bool is_turned(const Kernel *k); /* words of inputs are made for gradients */
/* Of a lane: address of its words, which half of them and which bits its inputs are. */
typedef struct BitsInputs {
	Reg at, half, shift;
} BitsInputs;
BitsInputs bits_inputs(Kernel *k, const InputColumns *in, Reg input);
void bits_rows(Kernel *k, const BitsInputs *x, uint32_t row, uint32_t first, uint32_t count, Reg (*f)[2]);

/* ---- bf16_rows.c ---- */

enum { TILES_HIGH = 4, TILES_WIDE = 8, WARP_TILES = 16, STEPS_KNOWN = 16 }; /* tiles of a warp; steps of 16 sources */
void fragments_load(Kernel *k, Reg *f, uint32_t matrices, bool transposed, Reg at, uint32_t offset);
void two_load(Emit *e, Reg v[2], Reg at, uint32_t offset); /* floats of shared memory */
void multiply_add(Emit *e, const Reg sum[4], const Reg a[4], const Reg b[2], const Reg *start);
/* Sums of a product that a warp has. */
typedef struct Sums {
	Reg sum[WARP_TILES][4]; /* [high][wide] */
	Reg row, col;           /* of the lane's first sum: row of the chunk, column of the product */
	bool has_targets;       /* they are bits, and loaded: */
	Reg target[2];          /* of the lane's rows, 8 apart, from its first column on */
} Sums;
Reg bf16_targets(Kernel *k, const Sums *x, uint32_t r); /* the same */
/* Outputs and deltas of two columns of tile j, row 8 r, from their net inputs v; deferred rows are stored. */
void bf16_outputs(Kernel *k, const DeviceStep *s, const DeviceStep *errors, const Sums *x, uint32_t r, uint32_t j,
                  Reg real, Reg v[2]);
/* A step of 16 sources. pitch: of weights; fa: fragments of rows, made for two steps where inputs are bits */
void bf16_product_step(Kernel *k, const DeviceStep *s, const Bf16Task *t, Reg a, Reg b, uint32_t pitch, uint32_t step,
                       Reg fa[TILES_HIGH][2][4], Sums *x);
void bf16_steps(Kernel *k, uint32_t first, uint32_t end);
/* Does a step after step i have these columns as an operand before another writes them? */
bool operand_later(const Kernel *k, uint32_t i, uint32_t buf, uint32_t col, uint32_t count);

/* ---- bf16_layers.c ---- */

bool bf16_fuses_layers(const Kernel *k);
bool bf16_can_use_warpgroups(const Kernel *k);
uint32_t bf16_scored_threads(const Kernel *k); /* apart: that wait for ROWS_JUDGED */
void scores_wait(Kernel *k);
void bf16_layers(Kernel *k);

/* ---- bf16_side.c ---- */

void cases_wait(Kernel *k); /* by those that have rows */
void chunk_known(Kernel *k);
enum { NUMBERS_BYTES = P_COUNT * 8 + 8 }; /* of an update, then: does it end an epoch? */

/* ---- bf16_warpgroups.c: products of warpgroups ---- */

enum { GROUP_THREADS = 128, GROUP_ROWS = 64, GROUP_SPARE = 1024 }; /* spare: bytes that tiles are read past rows */
bool group_gradients_fit(const Kernel *k);
uint32_t group_rows_threads(const Kernel *k); /* of warpgroups that have rows of a chunk */
void group_region(Bf16Region *r, bool by_target);
void group_kept_plan(Kernel *k); /* takes memory */
void group_kept_move(Kernel *k, bool out);
void group_halves_move(Kernel *k, bool out);
Reg tiled_place(Emit *e, uint32_t pitch, Reg row, Reg col); /* bytes to a number of a matrix of tiles; pitch: of rows */
void groups_begin(Kernel *k);
void groups_publish(Kernel *k); /* stores to shared memory, for products after the next barrier */
/* Of the warpgroup's 64 rows, added to sums: inputs are bits, at `row` of the lane; operands are those of a warp. */
void group_inputs(Kernel *k, const DeviceStep *s, Reg row, uint32_t tiles, Reg (*sum)[4]);
void group_operands(Kernel *k, const DeviceStep *s, Reg (*a)[2], uint32_t tiles, Reg (*sum)[4]);
/* The same in steps of 16 operands, under way until the end. */
void group_step(Kernel *k, const DeviceStep *s, uint32_t step, Reg (*a)[2], uint32_t tiles, Reg (*sum)[4]);
void group_end(Kernel *k);
/* Gradients: what a warpgroup has of them. */
enum {
	GROUPS = 3,
	GROUP_ANY = 0,
	GROUP_SIDE = GROUPS
}; /* GROUP_ANY: of those that compute, which have the same code */
void group_sums_begin(Kernel *k, uint32_t group);
void group_slices(Kernel *k, uint32_t group); /* of the chunk at hand */
void group_apply(Kernel *k, uint32_t group);
void rows_wait(Kernel *k); /* gradients have read the rows before */

/* ---- bf16_gradient.c ---- */

void bf16_gradient_plan(Kernel *k);
void bf16_kept_plan(Kernel *k); /* takes memory */
void bf16_kept_move(Kernel *k, bool out);
void bf16_sums_begin(Kernel *k);          /* of a slice, or of a leaf */
void bf16_sums_add(Kernel *k, Reg chunk); /* of a chunk of rows; chunk: its number in the slice */
void bf16_sums_end(Kernel *k);

/* ---- bf16_update.c ---- */

/* Tiles of a gradient: numbers of them in all gradients, and across. */
typedef struct SumTiles {
	uint32_t first, count, across;
} SumTiles;
SumTiles sum_tiles(const Kernel *k, uint32_t gradient);
bool tiles_plan_sums(Kernel *k);                        /* false: there are too many, or too little memory for them */
Reg tile_sum(Kernel *k, Reg leaf, Reg slice, Reg tile); /* address of the lane's sums */
struct TilesAhead;
struct TilesAhead *tiles_prepare(Kernel *k); /* before sums are there */
void tiles_update(Kernel *k, const struct TilesAhead *a, Reg leaves);

/* ---- bf16_tiles.c ---- */

const char *bf16_tiles_columns(Kernel *k, uint32_t step); /* NULL, or what is wrong */
uint32_t bf16_tiles_plan(Kernel *k);                      /* bytes of the rings */
void bf16_product_tiles(Kernel *k, uint32_t step);
void bf16_gradient_tiles(Kernel *k, Reg leaves);
Reg bf16_buffer(Kernel *k, uint32_t buf, uint32_t col); /* rows of rounded values, from this column on */
const InputColumns *input_of(const Kernel *k, uint32_t buf, uint32_t col); /* NULL: none */
bool is_operand(const DeviceStep *s, uint32_t access);                     /* of a product or gradient: rounded */
/* Does a step after step i read these columns as floats? */
bool floats_later(const Kernel *k, uint32_t i, uint32_t buf, uint32_t col, uint32_t count);

/* ---- bf16_train.c ---- */

void bf16_ones(Kernel *k);
Reg leaf_find(Kernel *k, Reg update);          /* rows and cases of a leaf; returns its address */
void chunk_rows(Kernel *k, Reg row0, Reg end); /* rows row0 .. of those below end: block_rows at most */
Reg slice_rows(Kernel *k, Reg leaves);         /* rows of a slice: those of the kind of update */
/* Tallies are formed by one warp of the last block of each team, which waits for no sums: that of its leaf, then, in
 * the last block of all, that of the update. now: the leaf */
void tallies_form(Kernel *k, Kernel *now, Reg update, Reg leaves, const Barriers *b);
void bf16_phase(Kernel *k, uint32_t first, uint32_t end, bool scores, bool codes);

#endif
