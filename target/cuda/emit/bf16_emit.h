/* SPDX-License-Identifier: MIT */
/* bf16: products and gradients by tensor cores. For files of emit that take part in it, and columns/.
 *
 *   bf16_plan.c     which columns and weights are bf16, where they are in shared memory
 *   bf16_rows.c     forward and backward pass, layer by layer; inputs of one bit each; bf16_layers.c: all layers fused
 *   bf16_gradient.c gradient of a slice; bf16_update.c: the rule; bf16_train.c: an update
 *   bf16_side.c, bf16_warpgroups.c     warp specialization; wgmma
 *   bf16_tiles.c    weights that do not fit into shared memory */
#ifndef BF16_EMIT_H
#define BF16_EMIT_H

#include "emit.h"

/* Named barriers (bar.sync), besides 0 (all threads) and 1. */
enum {
	NAMED_CASES = 2,    /* cases of a chunk are loaded */
	NAMED_ROWS = 3,     /* the chunk is through the passes */
	NAMED_SIDE = 4,     /* side warps only */
	NAMED_SCORED = 5,   /* deferred rows may be overwritten */
	NAMED_ROW_TILE = 6, /* and the next ones: warps that share 16 rows, one barrier for each such set */
	NAMED_TALLIED = 15, /* the tally of the update is stored */
	/* with warpgroups */
	NAMED_ROWS_READ = 6, /* gradients have read rows */
	NAMED_WEIGHTS = 7,   /* weights are updated */
	NAMED_GROUP_ROWS = 8 /* NAMED_ROWS without side warps */
};
enum { BF16_BUFS = BUF_DELTA + 1 }; /* activations and deltas are operands */

/* bf16 weights of a panel in shared memory. */
typedef struct Bf16Region {
	uint64_t from;      /* in Job.half */
	uint32_t row, rows; /* of the panel; row: elements */
	uint32_t space;     /* rows in shared memory */
	uint32_t pitch, at; /* bytes */
	bool by_target;     /* warpgroups: a row of the panel has the weights of one target */
} Bf16Region;

/* Tasks of a matrix: a warp has `high` tiles of 16 rows by `wide` tiles of 8 columns, and there are down x across. */
typedef struct Bf16Task {
	uint32_t high, wide, down, across;
	uint32_t first; /* gradients: number of the first task among those of all gradients */
} Bf16Task;

/* fp32 weights of a panel and their rule state in shared memory, with rows of `pitch` bytes. If swizzled, adjacent 32
 * bytes are exchanged in rows whose number has bit 1, so that pairs of columns of eight rows are in different banks. */
typedef struct KeptPanel {
	uint32_t at[2 + MAX_STATE], pitch; /* bytes; at: by variable */
	bool swizzled;
} KeptPanel;

typedef struct Bf16 {
	/* the form of an update */
	bool fuses_layers; /* a warp takes its rows through all layers in registers: there are no fp32 rows */
	bool single_block; /* one block has all rows of the only leaf: its gradient is that of the update */
	bool single_slice; /* a block has one slice at most: the next one is loaded while blocks wait for each other */
	bool side_warps;   /* SIDE_THREADS threads load cases, score and tally: warp specialization */
	bool warpgroups;   /* products and gradients by wgmma; rows and weights are core matrices of 8 x 8 */
	/* rows in shared memory */
	uint16_t *map[BF16_BUFS]; /* as Kernel.map */
	uint32_t row, at_rows;    /* bytes */
	bool y_bits;              /* targets of a row are the bits of a word */
	/* inputs of one bit each: words of rows; transposed, words of inputs */
	bool bits;
	uint32_t bits_row, at_bits;             /* bytes */
	uint32_t transposed_row, at_transposed; /* bytes; a row: words of all inputs, for 32 rows */
	/* weights in shared memory */
	Bf16Region region[WEIGHT_REGIONS];
	uint32_t regions;
	bool kept;                       /* single_block: fp32 weights and rule state stay there, too: */
	KeptPanel panel[MOST_GRADIENTS]; /* by number of the gradient */
	/* gradients */
	Bf16Task task[MOST_GRADIENTS];
	uint32_t warps;     /* that compute them */
	uint32_t tasks;     /* of all gradients */
	uint32_t rounds;    /* in each of which a warp takes one task at most */
	uint32_t sum_tiles; /* 0, or tiles of all gradients: sums of slices are in global memory tile by tile */
	uint32_t at_parts;  /* 0, or shared memory that sums of subtrees of leaves are exchanged in */
	/* side warps: double buffers */
	uint32_t cases_bytes; /* of a chunk: bits, targets and so on; the next chunk's follow */
	uint32_t at_count;    /* its rows; does its update end an epoch; leaves; rows of the leaf */
	uint32_t at_params;   /* parameters of the update; PARAMS_BYTES later those of the next one */

	/* registers: of the lane */
	Reg warp, lane;
	Reg row_of_lane, col_of_lane; /* in a tile of sums: first row, first of two columns */
	Reg ldmatrix[2];              /* ldmatrix_offset in rows: not transposed; transposed */
	Reg bits_shift;               /* of a word: the first bit that the lane expands */
	Reg wgmma_base;               /* warpgroups: address of shared memory as descriptors have it, in 16 bytes */
	/* of the slice */
	Reg leaves;                       /* of its update */
	Reg first, slice;                 /* its first row; its number in the leaf */
	Reg staged_leaf, transposed_leaf; /* single_slice: whose rows are loaded; whose bits are transposed: D */
	Reg (*sum)[4];                    /* [tiles of a warp] gradients */
	/* side warps */
	Reg params_offset, cases_offset; /* bytes to the buffer in use; side warps: params_offset of the next update */
	Reg ends, rows;                  /* of the chunk in use: does the update end an epoch; rows of the leaf */
	struct {
		Reg rows, row0, my_rows, ends, cases;
	} next;          /* the chunk being loaded */
	Reg chunks_done; /* warpgroups: chunks that this one has ended, in two updates */
} Bf16;

static inline uint32_t gradient_steps(const Kernel *k) { return k->s->list->steps - k->s->list->gradient; }
static inline const DeviceStep *nth_gradient(const Kernel *k, uint32_t i)
{
	return &k->s->step[k->s->list->gradient + i];
}
static inline const DevicePanel *gradient_panel(const Kernel *k, uint32_t i)
{
	return &k->s->panel[nth_gradient(k, i)->panel];
}
/* Variables that the rule loads or stores: bits, as of formula_uses. */
static inline uint32_t formula_variables(const Kernel *k)
{
	return formula_uses(k->s->formula, OP_LOAD) | formula_uses(k->s->formula, OP_STORE);
}

/* ---- bf16_plan.c ---- */

uint32_t shared_take(Kernel *k, uint64_t bytes);
const Bf16Region *bf16_region(const Kernel *k, const DeviceStep *s);
uint32_t bf16_column(const Kernel *k, uint32_t buf, uint32_t col); /* bytes in a row; warpgroups: in eight rows */
uint32_t bf16_tile_stride(const Kernel *k);                        /* bytes between tiles of 8 columns */
/* Offset of the row that a lane names in an ldmatrix of four 8 x 8 matrices: rows 0 - 15 of 8 columns, then of the next
 * 8; or, `across`, 16 columns of rows 0 - 7, then of rows 8 - 15. */
Reg ldmatrix_offset(Kernel *k, uint32_t pitch, bool across);
void bf16_inputs_stage(Kernel *k); /* of the chunk's rows, in flight */
void bf16_pads_clear(Kernel *k);
Reg y_bit(Emit *e, Reg word, uint32_t n);  /* a target, from the word */
Reg cases_memory(Kernel *k);               /* base of at_targets, at_own, at_deferred and at_bits */
Reg bf16_pair(Emit *e, Reg low, Reg high); /* two adjacent columns, rounded */

/* inputs of one bit each */
enum { SQUARES_AT_ONCE = 4 };
void bits_plan(Kernel *k);
bool has_transposed_bits(const Kernel *k);                                    /* gradients read words of inputs */
uint64_t bits_bytes(const Kernel *k, uint32_t rows);                          /* in shared memory: words of rows, */
uint64_t transposed_bytes(const Kernel *k, uint32_t rows);                    /* of inputs */
const InputColumns *bit_columns(const Kernel *k, uint32_t buf, uint32_t col); /* NULL: columns are not bits */
void bits_stage(Kernel *k);                                                   /* of the chunk's rows, in flight */
Reg bit_column(Emit *e, Reg place);                                           /* inverse of bit_place */
void squares_transpose(Kernel *k, Reg *x, uint32_t count);                    /* 32 x 32: a word in each lane */
/* By warps from `first` on, `most` squares of each at once (SQUARES_AT_ONCE at most). Rows are loaded. */
void bits_transpose(Kernel *k, uint32_t first, uint32_t most);
/* Fragments of two steps from words: of `count` tiles of 8 rows (2) or columns (1). */
void bits_fragments(Kernel *k, const Reg *word, uint32_t count, Reg f[2][4]);
Reg bits_row_at(Kernel *k, const InputColumns *in, Reg row);     /* address of the lane's word of a row, */
Reg bits_input_at(Kernel *k, const InputColumns *in, Reg input); /* of an input, for the first 32 rows */
/* Fragments of gradients without transposed words: a lane takes four of its inputs from a half of each of two words. */
typedef struct BitsInputs {
	Reg at, half, shift; /* address of words; prmt selector of the half; first of the lane's bits there */
} BitsInputs;
/* From input `input` on, a multiple of 8: up to the end of its word, or whole words. */
BitsInputs bits_inputs(Kernel *k, const InputColumns *in, Reg input);
/* Fragments of rows `row` .. row + 15 of `count` tiles of 8 inputs from tile `first` on: first 8 rows; the others. */
void bits_rows(Kernel *k, const BitsInputs *x, uint32_t row, uint32_t first, uint32_t count, Reg (*f)[2]);

/* ---- bf16_rows.c ---- */

enum { TILES_HIGH = 4, TILES_WIDE = 8, WARP_TILES = 16 }; /* tiles of a warp, at most */
enum { STEPS_KNOWN = 16 };                                /* steps of 16 sources that are unrolled */
void fragments_load(Kernel *k, Reg *f, uint32_t matrices, bool transposed, Reg at, uint32_t offset); /* ldmatrix */
void two_load(Emit *e, Reg v[2], Reg at, uint32_t offset); /* floats of shared memory */
void multiply_add(Emit *e, const Reg sum[4], const Reg a[4], const Reg b[2], const Reg *start); /* mma */
/* Accumulators: of a tile of 16 x 8, a lane has two columns of two rows 8 apart. */
void mma_sums_new(Emit *e, Reg (*sum)[4], uint32_t tiles);
void mma_sums_fill(Emit *e, Reg (*sum)[4], uint32_t tiles, Reg value);
void mma_sums_add(Emit *e, Reg (*to)[4], Reg (*from)[4], uint32_t tiles);
void mma_zeros_new(Emit *e, Reg zero[4]); /* a tile of 0 that sums may begin with */
/* Sums of a product that a warp has. */
typedef struct Sums {
	Reg sum[WARP_TILES][4]; /* [high][wide] */
	Reg row, col;           /* of the lane's first sum: row of the chunk, column of the product */
	bool has_targets;       /* they are bits, and loaded: */
	Reg target[2];          /* of the lane's rows, 8 apart, from its first column on */
} Sums;
Reg bf16_target_word(Kernel *k, const Sums *x, uint32_t r); /* what Sums.target has */
/* Outputs and deltas of two columns of tile j, row 8 r, from their net inputs v; stores deferred rows. */
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
uint32_t bf16_scored_threads(const Kernel *k); /* side warps: that wait for NAMED_SCORED */
void scores_wait(Kernel *k);
void bf16_layers(Kernel *k);

/* ---- bf16_side.c ---- */

enum { PARAMS_BYTES = P_COUNT * 8 + 8 }; /* of an update; then: does it end an epoch? */
void cases_wait(Kernel *k);              /* by warps that have rows */
void chunk_counts_load(Kernel *k);       /* of the chunk in use */

/* ---- bf16_warpgroups.c ---- */

/* SPARE: bytes that products read past the last row. WARPGROUPS compute rows and gradients, one more is the side warps.
 * ANY: the text is for all WARPGROUPS. */
enum { WARPGROUP_THREADS = 128, WARPGROUP_ROWS = 64, WARPGROUP_SPARE = 1024 };
enum { WARPGROUPS = 3, WARPGROUP_ANY = 0, WARPGROUP_SIDE = WARPGROUPS };
bool warpgroup_gradients_fit(const Kernel *k);
uint32_t warpgroup_row_threads(const Kernel *k); /* of warpgroups that have rows of a chunk */
void warpgroup_region(Bf16Region *r, bool by_target);
void warpgroup_kept_plan(Kernel *k); /* takes shared memory */
void warpgroup_kept_move(Kernel *k, bool out);
void warpgroup_weights_move(Kernel *k, bool out);
Reg core_matrix_offset(Emit *e, uint32_t pitch, Reg row, Reg col); /* pitch: bytes of a row of the matrix */
void warpgroups_begin(Kernel *k);
void async_proxy_fence(Kernel *k); /* between stores to shared memory and the barrier before products that read them */
/* Products of the warpgroup's 64 rows, added to sums. Operands are bits, at `row` of the lane; or in registers. */
void wgmma_from_bits(Kernel *k, const DeviceStep *s, Reg row, uint32_t tiles, Reg (*sum)[4]);
void wgmma_from_registers(Kernel *k, const DeviceStep *s, Reg (*a)[2], uint32_t tiles, Reg (*sum)[4]);
/* The same by steps of 16 sources, which are in flight until the wait. */
void wgmma_step(Kernel *k, const DeviceStep *s, uint32_t step, Reg (*a)[2], uint32_t tiles, Reg (*sum)[4]);
void wgmma_wait_all(Kernel *k);
/* Gradients. group: ANY or SIDE */
void warpgroup_sums_begin(Kernel *k, uint32_t group);
void warpgroup_gradient(Kernel *k, uint32_t group); /* of the chunk in use */
void warpgroup_apply(Kernel *k, uint32_t group);
void rows_read_wait(Kernel *k); /* before rows are overwritten */

/* ---- bf16_gradient.c ---- */

void bf16_gradient_plan(Kernel *k);
void bf16_sums_begin(Kernel *k);          /* of a slice; single_block: of the leaf */
void bf16_sums_add(Kernel *k, Reg chunk); /* of a chunk of rows; chunk: its number in the slice */
void bf16_sums_end(Kernel *k);

/* ---- bf16_update.c ---- */

/* Tiles of a gradient: numbers of them among those of all gradients; a row has `across`. */
typedef struct SumTiles {
	uint32_t first, count, across;
} SumTiles;
SumTiles sum_tiles(const Kernel *k, uint32_t gradient);
bool tile_sums_plan(Kernel *k); /* false: too many tiles, or too little memory */
Reg tile_sum_address(Kernel *k, Reg leaf, Reg slice, Reg tile);
struct TilesPrefetch;
struct TilesPrefetch *tiles_prefetch(Kernel *k); /* weights and state, before sums are complete */
void tiles_update(Kernel *k, const struct TilesPrefetch *a, Reg leaves);

void bf16_kept_plan(Kernel *k); /* takes shared memory */
void bf16_kept_move(Kernel *k, bool out);

/* ---- bf16_tiles.c ---- */

const char *bf16_tiles_columns(Kernel *k, uint32_t step); /* NULL, or why not */
uint32_t bf16_tiles_plan(Kernel *k);                      /* bytes of pipelines */
void bf16_product_tiles(Kernel *k, uint32_t step);
void bf16_gradient_tiles(Kernel *k, Reg leaves);
Reg bf16_buffer(Kernel *k, uint32_t buf, uint32_t col);                    /* bf16 rows, from this column on */
const InputColumns *input_of(const Kernel *k, uint32_t buf, uint32_t col); /* NULL: columns are no inputs */
bool is_operand(const DeviceStep *s, uint32_t access);                     /* of a product or gradient: rounded */
/* Does a step after step i read these columns as floats? */
bool floats_later(const Kernel *k, uint32_t i, uint32_t buf, uint32_t col, uint32_t count);

/* ---- bf16_train.c ---- */

void bf16_ones(Kernel *k);
Reg leaf_find(Kernel *k, Reg update);          /* rows and cases of a leaf; returns its address */
void chunk_rows(Kernel *k, Reg row0, Reg end); /* rows row0 .. of those below end: block_rows at most */
Reg slice_rows(Kernel *k, Reg leaves);         /* rows of a slice in an update of so many leaves */
/* The tally of the leaf, by one warp of the last block of each team; then, in the last block of all, of the update.
 * now: the leaf */
void tallies_form(Kernel *k, Kernel *now, Reg update, Reg leaves, const Barriers *b);
void bf16_phase(Kernel *k, uint32_t first, uint32_t end, bool scores, bool codes);

#endif
