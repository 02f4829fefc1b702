/* SPDX-License-Identifier: MIT */
/* emit: the kernel for one network, as PTX text.
 *
 *   steps of the device --plan.c--> Kernel: tiles, shared memory --train.c and the others--> text
 *
 * All sizes are constants of the text. Rows of cases, weights, index lists and targets are in shared memory; what other
 * blocks need goes through global memory. C functions here are named after the code that they emit: a function that
 * emits a loop nest reads like the loop nest. */
#ifndef EMIT_H
#define EMIT_H

#include "base.h"
#include "job.h"
#include "ptx_text.h"

/* ---- plan.c: what the kernel is made of --------------------------------------------------------- */

/* What the host knows of a network and of the work, with constants for everything that does not change. */
typedef struct EmitSource {
	Ctx *cx;
	const Job *job;         /* pointers of the device */
	const DeviceList *list; /* its steps are on the host: */
	const DeviceStep *step;
	const DevicePanel *panel; /* on the host */
	const LinkClass *factor;  /* by number */
	uint32_t factors;
	uint32_t step_variable; /* of the formula: the last change of a weight, which limits correct; 0: there is none */
	const NoisyPanel *noisy_panel; /* on the host */
	const NoiseClass *noise_class; /* by number; */
	uint32_t noise_classes;
	const Formula *formula;
	const InputColumns *input;
	const uint32_t *ones; /* columns that are always 1 */
	uint32_t one_columns;
	uint32_t kinds_of_leaves;         /* 1, or 2: the last batch of an epoch has another number */
	uint32_t leaves[2];               /* of an update */
	uint32_t teams, team_blocks;      /* shape */
	uint32_t leaf_rows, list_longest; /* rows of the longest leaf; longest index list, */
	bool lists_full;                  /* which has as many numbers as all others */
	uint32_t batch_rows;              /* of an update, at most */
	bool tiled;                       /* as tiles.c has it */
	bool general;                     /* rows in global memory: general.c */
	uint32_t mode;                    /* JOB_ */
	const uint32_t *output;           /* [outputs] columns, on the host */
	uint32_t norm_leaves;             /* that the squares of the gradient are summed in */
	const CodeSum *code_sum;          /* tables of code words, on the host: */
	const CodeElement *code_element;
	uint32_t code_longest;    /* elements of a sum at most, */
	float code_twice;         /* which are all taken this many times; 0: they differ */
	bool code_bits;           /* words are 0s and 1s, 64 at most */
	uint32_t threads, shared; /* of a block; shared: bytes */
	uint32_t copies;          /* floats of Job.copies */
	bool test;                /* no gradient, no update */
	bool bf16;                /* products in bf16, */
	bool adds_side_warps;     /* SIDE_THREADS of the threads are side warps, */
	bool warpgroups;          /* or products are those of warpgroups */
	uint32_t slice[2];        /* bf16: rows of a slice, for each kind of leaves */
	bool images;              /* lists by input of all leaves are in Job.images: */
	bool makes_images;        /* the kernel that makes them */
	bool solo;                /* every team is one block and has a network of its own */
	uint32_t cluster;         /* 0, or blocks of the only team, which have a barrier of their own */
	bool bulk;                /* the device copies pieces of memory that count at a barrier: bulk_copy */
} EmitSource;
/* Networks of their own: tallies of so many epochs each; weights and their copies follow each other so many floats
 * apart. */
enum { SOLO_EPOCHS = 64 };
const char *step_words(uint32_t kind); /* why a shape does not cover a step */
uint64_t solo_floats(const Job *j);
uint64_t solo_copies(uint64_t copies);

/* Is the sum of all leaves stored before the rule is applied, if it is? */
static inline bool needs_pending(const EmitSource *s)
{
	return s->mode == JOB_SUM || s->mode == JOB_APPLY ||
	       (s->mode == JOB_UPDATE && (s->job->needs_norm || s->job->ties));
}

/* Weights in shared memory: rows of `row` floats, as in global memory. */
typedef struct WeightRegion {
	const float *from;
	uint32_t row, rows, at; /* at: bytes in shared memory */
	bool padded;            /* a row of -0 follows, which index lists are filled up with */
} WeightRegion;
enum { WEIGHT_REGIONS = 64 };

/* Columns of a row buffer that blocks of a team read: exchange.c. */
typedef struct Exchange {
	uint32_t buf, col, quads;
	uint32_t part; /* quads of a part */
	uint64_t at;   /* bytes in the exchange of a team */
} Exchange;

/* The part of a gradient that a block computes: rows of the matrix cut into `down` ranges, quads into `across`. */
typedef struct GradientCut {
	uint32_t down, across, rows, quads; /* rows, quads: of a range at most */
	uint32_t high, wide;                /* rows and columns that a thread has; wide: 4, or 2 if it is ahead */
	bool blocks;                        /* four lanes have two by two tiles */
	uint32_t panel, all;                /* without blocks: lanes that have a row; all: threads */
	uint32_t run;                       /* 0, or tiles that a block of the team has, of all of the matrix in one row */
	uint32_t first, threads, rounds;    /* first: thread that its tasks begin with */
	uint32_t at_a, at_b;                /* operands in shared memory: rows of a part, one after the other, */
	uint32_t from_a, from_b;            /* from these regions of the exchange */
	uint32_t totals;                    /* of a range: weights from the true unit, which are sums of deltas: */
	uint32_t totals_first, totals_threads;
	bool ahead;    /* its operands are there before the backward pass ends: own threads compute it meanwhile */
	bool inlined;  /* each chunk of rows is added while it is there: nothing is exchanged or staged */
	bool straight; /* one operand is staged from the inputs of cases, from column x on: */
	bool across_x; /* that of columns; else that of rows */
	uint32_t x;
} GradientCut;
enum { MOST_GRADIENTS = 32, MOST_EXCHANGES = 2 * MOST_GRADIENTS };

/* Where pieces of operands are staged in turns by copies of the device. */
typedef struct Ring {
	uint32_t at_bars; /* in shared memory: barriers of each place */
	Reg next;         /* of the next piece: bytes to its barriers; their parity in bit 31. One register is kept */
} Ring;

/* A thread has `high` rows by `wide` quads of a tile, which has `across` by `down` threads. */
typedef struct Tile {
	uint32_t high, wide, across, down;
	uint32_t ring; /* pieces in shared memory */
} Tile;

/* Columns of a row that a step reads or writes. */
typedef struct Access {
	uint32_t buf, col, count;
	bool writes;
} Access;

enum { COLUMN_BLOCK = 16, LIST_PAD = 8, ROWS_TURN = 16, BULK_TURN = 32 };
/* ROWS_TURN: rows of a turn of gradient loops; BULK_TURN: of those that read ahead, whose operands the device copies */
/* In Kernel.at_info, behind groups of lists by input: a group of rows of -0; Kernel.counted; posts: has the update
 * before ended the job, was it the last of an epoch. */
enum { INFO_PADS = 16, INFO_COUNTED = 48, INFO_STOPS = 52, INFO_ENDS = 56 };

typedef struct Kernel {
	const EmitSource *s;
	Emit *e;
	uint32_t chunks;     /* that a block processes its rows in, one after the other, */
	uint32_t block_rows; /* of this many rows at most */
	uint32_t row_space;  /* rows in shared memory: some more */
	uint32_t row;        /* bytes */
	uint16_t *map[BUFS]; /* [column blocks] block in a row; NO_BLOCK: not there */
	WeightRegion region[WEIGHT_REGIONS];
	uint32_t regions;
	uint32_t list_row; /* bytes of an index list: 16-bit numbers */
	uint32_t csc_pad;  /* row that lists by input are filled up with */
	Exchange exchanged[MOST_EXCHANGES];
	uint32_t exchanges;
	uint32_t *fused;      /* [steps] of a product: the errors step whose deltas it computes; else NO_STEP */
	bool deferred_scores; /* errors and verdicts are formed late, a thread for each row: deferred_score.c */
	uint32_t deferred_row, at_deferred; /* bytes; outputs and net inputs that they are formed from */
	uint32_t tiles;                     /* of matrices so far */
	Tile *tile;                         /* [steps] tiled: of wide products and of gradients */
	GradientCut cut[MOST_GRADIENTS];    /* of the steps of the gradient, in order */
	bool local;                         /* a team is one block: the gradient reads its rows */
	bool overlaid;        /* operands of a gradient, one after the other, are staged over weights, lists and targets */
	bool restaged;        /* they are staged over weights, which every leaf loads again */
	bool kept;            /* not over weights, which stay where they are, and nowhere else, until the job ends */
	uint32_t workers;     /* threads that compute gradients and updates; the others form errors, verdicts, tallies */
	uint32_t turns;       /* gradient whose index lists warps share; NO_STEP: none */
	uint32_t inliners;    /* threads that add inlined gradients while others give verdicts */
	uint32_t ahead_steps; /* 0, or steps after which operands of gradients that are ahead are there; */
	uint32_t ahead_threads; /* the first ones, which compute these */
	bool is_ahead;          /* what is being emitted is theirs */
	uint32_t meets;         /* number of the barrier that workers meet at */
	uint32_t signals;       /* thread that arrives for the block */
	uint32_t last;          /* step whose parts others compute while gradients are added; NO_STEP: none */
	uint32_t next_steps;    /* steps of the next chunk that they compute then; 0: none. Rows have two places for */
	uint32_t flipped;       /* activations, so many bytes apart */
	Reg flip;               /* bytes to those of the chunk at hand: 0, or the like */
	bool y_bits;            /* targets of a row are the bits of a word; those of all rows of the leaf are there */
	uint32_t at_sums;       /* of inlined gradients, while others use the registers */
	uint32_t piece;         /* rows that are staged at a time, a multiple of ROWS_TURN; */
	uint32_t first_piece;   /* of the first piece, if they are in a ring */
	uint32_t next_at;       /* bytes to where the next piece is staged meanwhile; 0: there is only one */
	uint32_t places;        /* where pieces are staged in turns */
	uint32_t stagers;       /* the first of the workers that stage pieces and do nothing else; 0: all stage them */
	bool bulk;              /* one thread stages them, by copies of the device: */
	Ring ring, ahead_ring;  /* of gradients that are not ahead, and of those that are: */
	uint32_t ahead_piece, ahead_next, ahead_places; /* like piece, next_at, places; ahead_places 0: there is none */
	const struct Barrier *awaits;                   /* NULL, or what copies of operands wait for */
	bool bulk_rows;                                 /* inputs of rows are copied that way too: */
	uint32_t at_rows_bar;                           /* the barrier that counts them, */
	Reg rows_parity;                                /* and its parity */
	bool regular;    /* every team has a leaf in every update, and all updates are alike */
	bool posts;      /* and no barrier of the grid stands in the way of an update: join.c */
	Reg number;      /* updates of the job that have begun before this one: D */
	bool early;      /* inputs of rows are loaded when a leaf begins, */
	bool prefetches; /* or, if it is the same in every update, after the gradient */
	/* bytes in shared memory */
	uint32_t at_record; /* two of them: Coming */
	uint32_t at_outputs, at_info, at_cycles, at_rank, at_cases, at_lists, at_csc_start, at_csc, csc_capacity, at_turns,
		at_targets, at_codes, at_elements, at_own, at_doubles, at_scores, at_rows, at_staged, at_ahead, at_mask, bytes;
	uint32_t target_row; /* bytes */
	bool has_codes;      /* tables of code words are there */
	/* registers of the kernel */
	Reg memory, tid, block, team, member;
	bool knows_warp;
	Reg warp;               /* if knows_warp: its number, which the assembler knows to be the same in its lanes */
	Reg rows, row0;         /* rows of the leaf, first row of the block */
	Reg my_rows;            /* rows of the block */
	Reg first_row, end_row; /* the same of all its chunks */
	Reg cases;              /* global address of the cases of the leaf */
	Reg exchange;           /* global address of this team's exchanged columns */
	Reg row_error, verdict; /* of this team */
	Reg leaf_number;        /* in the update */
	Reg param;              /* global address of the numbers of the update */
	Reg update_number;      /* general, with noise: updates before this one: type D */
	Reg base;               /* general: address of the team's first row, */
	Reg list;               /* of the numbers of rows, if not all are processed: type D; */
	Reg time;               /* time step of these: type R; all begin a sequence: 0 */
	struct Coming *coming;  /* NULL, or what is loaded step by step for the next leaf: leaf.c */
	Reg verdicts_asked;     /* P: networks of their own: the update needs verdicts of rows */
	Reg counted;            /* R: others: 1, if it does, */
	enum { COUNTED_GLOBAL, COUNTED_REGISTER, COUNTED_SHARED } counted_in; /* once it is loaded or staged */
	struct RuleNumbers *numbers; /* NULL: gradients are stored as sums of the leaf; else the rule is applied at once */
	struct Prepared *prepared;   /* what update_prepare has loaded; NULL: nothing */
	bool times_steps;            /* thread 0 counts cycles of each step */
	bool sends_scores;           /* error and verdict of a row are sent to shared memory of the cluster: */
	Reg scores_to, scores_bar;   /* address of the first row's pair, and of the barrier that counts the bytes; */
	Reg bad;                     /* P, set where the error of a row is no finite number; */
	void (*on_bad)(void *of, Reg bad); /* NULL, or what to do when it is known, before verdicts if possible */
	void *on_bad_arg;
	struct Bf16 *bf16; /* NULL: fp32 */
} Kernel;
#define NO_BLOCK UINT16_MAX
#define NO_STEP  UINT32_MAX

/* NULL, or why the kernel cannot be made this way. */
const char *kernel_plan(Kernel *k, const EmitSource *s);
uint32_t column_at(const Kernel *k, uint32_t buf, uint32_t col);         /* bytes in a row */
uint32_t column_of(const Kernel *k, uint32_t buf, uint32_t col);         /* the same, or 0 if rows do not have it */
const WeightRegion *region_of(const Kernel *k, const float *from);       /* that has it; NULL: none */
uint32_t weight_at(const Kernel *k, const float *from);                  /* bytes in shared memory */
uint32_t step_access(const Kernel *k, const DeviceStep *s, Access a[8]); /* returns how many */
Reg pointer(const Kernel *k, size_t field);                              /* a pointer of the Job */
#define POINTER(k, field) pointer(k, offsetof(Job, field))

Reg weight_place(Kernel *k, const float *from); /* its address in global memory */

/* ---- exchange.c ---------------------------------------------------------------------------------- */

bool plan_exchange(Kernel *k);                                /* false: columns that are not aligned */
uint64_t exchange_bytes(const Kernel *k);                     /* of a team */
void exchange_begin(Kernel *k);                               /* of this update, or of all: Kernel.exchange */
uint32_t result_buffer(const Kernel *k, const DeviceStep *s); /* of a product: where its results are */
bool is_direct(const Kernel *k, const DeviceStep *s);         /* it stores them for other blocks itself, */
bool only_exchanged(const Kernel *k, const DeviceStep *s);    /* and does not store them anywhere else */
/* Columns of a product, and what is no one's of the last quad. */
uint32_t padded_columns(const Kernel *k, const DeviceStep *s);
bool stored_direct(const Kernel *k, uint32_t buf, uint32_t col);
Reg exchange_address(Kernel *k, uint32_t region, Reg part, Reg row);
/* Where a thread stores quad `quad` of a product, from row `row` of the block on. */
typedef struct Outward {
	uint32_t regions, pitch[MOST_EXCHANGES];
	Reg at[MOST_EXCHANGES], has[MOST_EXCHANGES]; /* has: P, */
	bool all[MOST_EXCHANGES];                    /* unless all threads have one */
} Outward;
void outward_begin(Kernel *k, const DeviceStep *s, Reg quad, Reg row, Outward *o);
void outward_store(Kernel *k, const Outward *o, Reg row, uint32_t rows, const Reg v[4]); /* rows: after that row */
void rows_exchange(Kernel *k,
                   bool ahead); /* what steps have not stored themselves, for gradients that are ahead or not */
uint32_t last_writer(const Kernel *k, uint32_t buf, uint32_t col,
                     uint32_t count); /* a step before the gradient, or NO_STEP */
/* Which range of the matrix the block has. Of ranks, it has every down-th. */
typedef struct Range {
	Reg down, across; /* number of the range, */
	Reg row, quad;    /* its first row and quad */
	Reg is_mine;      /* some blocks have none */
} Range;
Range range_of(Kernel *k, const GradientCut *c);
bool gradient_takes(const Kernel *k, uint32_t gradient); /* the threads at hand compute it */
/* Operands of gradients first .. end - 1 to shared memory, `offset` bytes behind the first piece; under way. Rows
 * row0 .. row0 + rows - 1: inputs of cases, what was exchanged. By k->workers threads */
void inputs_parts_stage(Kernel *k, uint32_t first, uint32_t end, Reg row0, Reg rows, Reg offset);
void piece_stage(Kernel *k, uint32_t first, uint32_t end, Reg row0, Reg rows, Reg offset);

/* Copies by the device: one piece of memory, 16 bytes or a multiple, by one thread. It counts at a barrier in shared
 * memory, which some thread tells how many bytes to expect. */
void bulk_copy(Kernel *k, Reg to, Reg from, Reg bytes, Reg bar);
void bulk_expect(Kernel *k, Reg bar, Reg bytes);
void bulk_wait(Kernel *k, Reg bar, Reg parity);
/* Accesses that came before come before copies: to shared memory, also to global memory (which waits for stores). */
void bulk_fence(Kernel *k, bool global);
void bulk_begin(Kernel *k);     /* what does not change while the leaf is the same */
Reg rows_bar(Kernel *k);        /* counts inputs of rows; */
void bulk_rows_wait(Kernel *k); /* cases.c */
enum { MOST_PLACES = 8 };
enum { BAR_FULL, BAR_ADDED, PLACE_BARS };
bool rings(const Kernel *k);            /* gradients of inputs: the device may stage pieces of operands, */
bool in_ring(const Kernel *k);          /* and does so, of those at hand */
uint32_t bars_bytes(const Kernel *k);   /* of a ring */
void bulk_bars(Kernel *k);              /* when the kernel begins */
Reg place_bar(Kernel *k, uint32_t bar); /* of the place at hand: a barrier, */
Reg place_parity(Kernel *k);            /* the parity of both, */
Reg place_offset(Kernel *k);            /* bytes behind the first place */
void place_free(Kernel *k);             /* a warp has added its piece: the next one */
Loop pieces_begin(Kernel *k);           /* over pieces: piece_row of l.i is the first row of one */
Reg piece_row(Kernel *k, Reg i);
Reg ring_rows(Kernel *k, Reg row); /* of the piece that begins with this row: full turns */
void ring_before(Kernel *k);       /* inputs of the first piece, before what k->awaits is there */
void ring_copy(Kernel *k);         /* all pieces, by thread k->stagers */

/* ---- general.c: rows in global memory, whatever the network is ------------------------------------------ */

const char *row_space(const Kernel *k, const char *shared); /* the same instruction for the memory of rows */
Reg row_number(Kernel *k, Reg m);                           /* row m of those that are processed */
Reg row_address(Kernel *k, Reg row);
Reg target_address(Kernel *k, Reg row);
void general_begin(Kernel *k);
void general_column(Kernel *k, Reg has, Reg column);
struct Barriers;
void update_general(Kernel *k, Reg update, const struct Barriers *b);

/* ---- steps.c: its steps ---- */

void general_steps(Kernel *k, uint32_t first, uint32_t end);
void general_gradient(Kernel *k, Reg fresh); /* of the chunk in the team's rows */
Reg row_flags(Kernel *k, Reg row);           /* and the number of its case */
Reg has_flag(Kernel *k, Reg flags, uint32_t flag);
NoiseKey noise_key_emit(Kernel *k, uint32_t at, uint32_t group); /* of this update; at: NOISE_AT_ */

/* ---- join.c: sums of leaves, the norm, what waits ------------------------------------------------- */

/* A number of levels in registers that sums join in, like carries of a binary counter. */
typedef struct JoinLevels {
	Reg level[JOIN_LEVELS];
	Reg count;
	uint32_t type;
	Reg is_double; /* type D: lanes that hold doubles */
} JoinLevels;
JoinLevels join_begin(Kernel *k, uint32_t type, Reg is_double);
void join_add(Kernel *k, const JoinLevels *l, Reg x); /* x is overwritten */
Reg join_end(Kernel *k, const JoinLevels *l);
/* The same, where the number of sums is known: no register has the count. */
typedef struct JoinKnown {
	Reg level[JOIN_LEVELS + 1];
	uint32_t depth, count;
	Reg is_double; /* as of JoinLevels */
} JoinKnown;
void known_add(Emit *e, JoinKnown *j, Reg x);
Reg known_end(Emit *e, JoinKnown *j);
Reg join_leaves(Kernel *k, Reg from, Reg leaves); /* of the sums of a place, from its first on */
void wave_join(Kernel *k, Reg wave, Reg leaves);  /* more leaves than sums: these become a subtree */
/* The update after the sums of leaves, with barriers of the grid. */
struct Barrier;
void leaves_finish(Kernel *k, Reg leaves, const struct Barrier *grid);
Reg norm_factor(Kernel *k);
/* Sums and weights whose words are their own flags: Job.posted. */

bool can_post(const Kernel *k); /* all weights are updated by sums of gradients */
uint64_t posted_bytes(const Kernel *k);
Reg sums_at(Kernel *k);              /* those of this update: of the first leaf */
Reg posted_sum(Kernel *k, Reg from); /* of a place, from its first sum on: waits for those of all leaves */
/* A new weight, for the passes of the next update. */
void weight_post(Kernel *k, const DevicePanel *p, Reg row, Reg col, Reg place_of, Reg w);
void weights_receive(Kernel *k);
void posted_reset(Kernel *k); /* by the workers: words of this update */
Reg number_is_odd(Kernel *k); /* 1 or 0: of two buffers that alternate, the one of this update */
void posted_begin(Kernel *k, struct Barrier *grid);
/* Blocks begin an update before they know whether the one before was the last of the job. */
void flag_set(Kernel *k, Reg only, size_t field);          /* of JobResult, if only (P) */
void update_signal(Kernel *k, const struct Barrier *grid); /* the block has ended the update before; by one thread */
void update_before_wait(Kernel *k, const struct Barrier *grid);                  /* for all blocks; by one thread */
void end_check(Kernel *k, Reg update, const struct Barrier *grid, bool signals); /* by thread k->workers */
Reg ended_before(Kernel *k); /* P: it was. By threads that have met with that one */

/* ---- cases.c: index lists, inputs, targets, weights ----------------------------------------------- */

/* A leaf: its number in Job.leaf (D), address, cases, rows; the case of the row of this thread's number. */
typedef struct LeafFound {
	Reg index, leaf, cases, rows, own;
	bool knows_case;
} LeafFound;
/* Of a leaf: k->cases, k->rows, ... are set; to shared memory, with barriers. */
void cases_stage(Kernel *k, const LeafFound *f);
void image_make(Kernel *k, Reg index); /* lists by input of a leaf, to Job.images */
uint32_t image_bytes(const Kernel *k);
bool rows_full(const Kernel *k); /* no number of a row's list is NO_INPUT: pads are input 0 */
/* Weights of the inputs that lists of rows name: a quad of their columns. */
typedef struct ListWeights {
	const DeviceStep *s;
	const WeightRegion *r;
	Reg base;   /* address of the quad in the first row of weights */
	bool bytes; /* the number of a row is a byte of its address, after */
	Reg quad;   /* the byte that the quad is at */
} ListWeights;
ListWeights list_weights(Kernel *k, const DeviceStep *s, Reg quad);
void list_weights_load(Kernel *k, const ListWeights *l, Reg pair, uint32_t high, Reg w[4]); /* of one of two numbers */
void targets_stage(Kernel *k);                                                              /* of the block's rows */
void inputs_stage(Kernel *k); /* of the block's rows, under way */

/* Columns of ones, where rows have them and a step reads them. */
void one_emit(Kernel *k, uint32_t col);
void ones_emit(Kernel *k);
void all_ones(Kernel *k);           /* also those of STEP_ONE: where steps are computed ahead */
bool load_is_done(const Kernel *k); /* STEP_LOAD has nothing to do */

void case_load(Kernel *k, Reg number, Reg row, Reg is_row); /* the case of a row of the leaf; 0 if it is none */
void weights_stage(Kernel *k);                              /* copies under way: cp.async */
void weights_store(Kernel *k);                              /* what stays in shared memory, to global memory */

/* ---- rows.c: steps of the forward and backward pass ------------------------------------------------ */

void steps_emit(Kernel *k, uint32_t first, uint32_t end); /* of a row; with barriers */

void row_step(Kernel *k, const DeviceStep *s);
uint32_t product_warps(const Kernel *k, const DeviceStep *s); /* a product in parts, each of which a warp computes */
uint32_t product_adds(const Kernel *k, const DeviceStep *s);  /* of a thread */
void product_part(Kernel *k, const DeviceStep *s, Reg warp);
uint32_t index_warps(const Kernel *k, const DeviceStep *s); /* the same of index lists */
void index_part(Kernel *k, const DeviceStep *s, Reg warp);
Reg leaf_row(Kernel *k, Reg row);               /* a row of the chunk, of those of the leaf */
Reg target_word(Kernel *k, Reg row);            /* of a row of the chunk, if targets are bits */
uint32_t flips(const Kernel *k, uint32_t buf);  /* bytes of rows; 0: this buffer has one place */
Reg row_flip(Kernel *k, Reg row, uint32_t buf); /* address of a row, for columns of this buffer */

/* ---- score.c: errors and verdicts ------------------------------------------------------------------ */

void errors_emit(Kernel *k, const DeviceStep *s);
void softmax_emit(Kernel *k, const DeviceStep *s);
void softmax_deltas_emit(Kernel *k, const DeviceStep *s);
void scores_emit(Kernel *k, bool codes, uint32_t first, uint32_t threads); /* by these threads */

Reg slope_offset(Emit *e, const DeviceStep *s, Reg slope); /* with the offset that options state */
/* What an output passes back. known: it has a target, P, or an integer: always; weight: of the case; total: of targets,
 * where errors need it */
Reg output_delta(Emit *e, const DeviceStep *s, const ErrorOf *of, Reg known, Reg weight, Reg total);
double code_margin(const Job *j, double unit); /* of sums of code words; unit: their rounding */
typedef struct Best {                          /* the largest of some values, the first of equals */
	Reg value, at;
} Best;
Best best_begin(Emit *e);
void best_of(Emit *e, const Best *b, Reg value, Reg at, Reg valid);
Reg param_f(Kernel *k, size_t field); /* a float of the Job */
Reg zero_float(Emit *e);
Reg is_number(Emit *e, Reg x);

/* ---- deferred_score.c: the same late, a thread for each row ----------------------------------------- */

void plan_deferred_scores(Kernel *k);
const DeviceStep *deferred_errors(const Kernel *k, const DeviceStep *s);      /* those of a product; NULL: none */
const DeviceStep *deferred_deltas(const Kernel *k, const DeviceStep *errors); /* the step after them; NULL: none */
bool is_deferred(const Kernel *k, const DeviceStep *s);                       /* it is part of that product */
uint32_t deferred_at(const Kernel *k, const DeviceStep *errors,
                     bool net); /* bytes in a deferred row; NULL: past the last */
void deferred_score_rows(Kernel *k, uint32_t first, uint32_t threads); /* by these threads: whole warps */
/* Does the update need verdicts? Ahead of them, by threads that give them; or by one of the block, a barrier ahead. */
void counted_load(Kernel *k, Reg number);
void counted_stage(Kernel *k);
void deferred_score_row(Kernel *k, Reg row); /* a whole warp; rows of lanes */

/* ---- tally.c ---------------------------------------------------------------------------------------- */

void tally_leaf(Kernel *k, Reg fresh);    /* one warp; fresh: P, or an integer: always */
uint64_t tally_bytes(const Kernel *k);    /* of shared memory, which make it faster; 0: they do not */
void tally_update(Kernel *k, Reg update); /* one warp: joins tallies of leaves; update: its address */
typedef struct TallyPrefetch {
	Reg lane, epoch, done, leaves, ends, to, field, is_field; /* field: of the epoch's tally, by lanes */
	Reg first;                                                /* tally of the first leaf, or 0 */
} TallyPrefetch;
/* The same in two parts: what is known before leaves are tallied, and the rest. */
TallyPrefetch tally_prefetch(Kernel *k, Reg update);
void tally_finish(Kernel *k, const TallyPrefetch *a);
/* P: may the tally of an epoch end the job? No error is below 0, no share above 1. */
Reg tally_decides(Kernel *k);

/* ---- gradient_plan.c: who computes gradients ------------------------------------------------------ */

void gradient_inline(Kernel *k);                    /* which gradients are inlined; part of the plan, */
void gradient_ranges(Kernel *k);                    /* how matrices are cut; */
bool any_straight(const Kernel *k);                 /* the gradient reads inputs of cases */
void gradient_cut(Kernel *k);                       /* who computes them, where operands are */
uint32_t inlined_high(const Kernel *k);             /* rows of a thread of inlined ones, at most */
bool plans_ahead(const Kernel *k, uint32_t region); /* a gradient that is ahead reads this part of the exchange */
uint32_t matrix_cols(const Kernel *k, const DeviceStep *s); /* that are cut; the true unit's may be apart */
uint32_t matrix_quads(const Kernel *k, const DeviceStep *s);
uint32_t a_quads(const DeviceStep *s, const GradientCut *c); /* of a row of its other operand */
uint32_t cut_groups(const GradientCut *c);
uint32_t cut_columns(const GradientCut *c); /* quads, or parts of them */
uint32_t cut_tasks(const GradientCut *c);   /* threads that it needs */
/* The first rows of a thread are adjacent, so that one instruction loads them: `high`, or the largest power of two
 * below it. Others follow those of all threads. */
uint32_t high_first(const GradientCut *c);

/* ---- gradient.c --------------------------------------------------------------------------------- */

/* Rows that loops read ahead; of a thread at most: rows, weights from the true unit. */
enum { READ_AHEAD = 8, GRADIENT_HIGH = 8, MOST_TOTALS = 16 };
void inlined_begin(Kernel *k);
void inlined_rows(Kernel *k); /* of a chunk; by threads below k->inliners */
void inlined_pads(Kernel *k);
uint32_t inlined_turn(const Kernel *k);
void sums_alternate(Kernel *k, Reg sum[][4], uint32_t high); /* of a tile, before a loop adds products to them */
void gradient_emit(Kernel *k);
void gradient_before(Kernel *k); /* what it loads before rows of other blocks are there; by the workers */
void workers_barrier(Kernel *k);
void floats_load(Emit *e, bool in_order, const Reg *to, uint32_t count, Reg at, uint32_t offset);
/* A thread's part of a matrix: rows i .. i + high - 1 by the q-th `wide` columns, and their sums. */
typedef struct GradientPart {
	Reg i, q, is_mine;
	Reg other_i;     /* of rows after the first adjacent ones */
	Reg input, word; /* index lists: of its list */
	Reg sum[GRADIENT_HIGH][4];
	Reg a, b;              /* addresses in row 0 of the piece */
	Reg other_a;           /* of the other rows */
	uint32_t a_row, b_row; /* bytes of a row of operands */
	/* totals: every totals_threads-th of those of the range */
	Reg total[MOST_TOTALS], is_total[MOST_TOTALS], total_row[MOST_TOTALS], total_col[MOST_TOTALS], total_at;
} GradientPart;
void part_ranked(Kernel *k, const DeviceStep *s, GradientPart *p, Reg rank); /* the input of a rank, its row */
bool rule_in_quads(const DeviceStep *s, const DevicePanel *p);               /* the rule may be applied to quads */

/* ---- update.c: the rule -------------------------------------------------------------------------- */

typedef struct RuleNumbers RuleNumbers;
struct RuleNumbers {
	Reg param[P_COUNT]; /* as floats */
	Reg rate;           /* G */
	Reg wide[P_COUNT];  /* G: what the floats are made from */
	uint64_t has;       /* which of them there are, the rate among them: bits */
};
void rule_numbers(Kernel *k, RuleNumbers *n);
void rule_numbers_load(Kernel *k, RuleNumbers *n); /* the same in two parts: loads, which are under way then, */
void rule_numbers_take(Kernel *k, RuleNumbers *n);
RuleNumbers rule_numbers_kept(Kernel *k, Reg at, uint32_t offset); /* as rule_numbers_load, from shared memory */
/* The operations on values in registers. variable: 0 the gradient, 1 the weight, 2 and so on its state; what the
 * formula stores replaces them. */
void formula_values(Emit *e, const Formula *f, const RuleNumbers *n, Reg rate, Reg variable[2 + MAX_STATE]);
/* A place of panel p: row and col are its own, e = row * p->row + col. */
void rule_apply(Kernel *k, const RuleNumbers *n, const DevicePanel *p, Reg row, Reg col, Reg place_of, Reg g);
uint32_t formula_uses(const Formula *f, uint32_t op); /* variables: bit 1 the weight, bit 2 and so on its state */
Reg variable_at(Kernel *k, uint32_t v, const DevicePanel *p, Reg place_of); /* its address */
void infinite_check(Kernel *k, Reg p);
/* Numbers of a place, by its class: those of the update, the rate, limits (constants or of type F). */
typedef struct PlaceNumbers {
	RuleNumbers n;
	Reg rate, low, high;
	bool limited;
} PlaceNumbers;
PlaceNumbers known_numbers(Kernel *k, const RuleNumbers *n, const LinkClass *c);
void place_values(Kernel *k, const PlaceNumbers *p, Reg variable[2 + MAX_STATE]); /* as formula_values, with limits */
/* Rows row .. row + rows - 1 of a matrix, all in one quad of columns. */
typedef struct RuleQuads {
	Reg row, quad, g[8][4];
	uint32_t rows;
	uint32_t loaded; /* variables that were loaded before, as bits: */
	Reg value[2 + MAX_STATE][8][4];
	const PlaceNumbers *numbers; /* NULL, or those of the panel's class */
	bool aligned;                /* the first row is a multiple of 4, as are the rows */
} RuleQuads;
void rule_quads_new(Kernel *k, RuleQuads *q); /* registers for weights and state, */
void rule_quads_load(Kernel *k, const DevicePanel *p, uint32_t all_rows, const RuleQuads *q); /* which it loads */
void rule_quads(Kernel *k, const RuleNumbers *n, const DevicePanel *p, uint32_t all_rows, RuleQuads *q);
/* ---- lists.c: gradients of index lists ---- */

typedef struct ListWalk ListWalk;                                    /* a warp on its way through lists */
Reg list_word(Kernel *k, Reg input);                                 /* as cases.c makes it */
void list_rows_add(Kernel *k, uint32_t wide, const GradientPart *p); /* wide: columns of a lane */
/* The same in two steps: numbers of the first rows are loaded; rows are there, and added. Numbers of two groups are
 * read even if the list is empty. */
typedef struct ListRows ListRows;
ListRows *list_rows_begin(Kernel *k, uint32_t wide, Reg word);
void list_rows_end(Kernel *k, const ListRows *l, const GradientPart *p);
void total_far_ahead(Kernel *k, const GradientPart *p, uint32_t n, uint32_t offset);
ListWalk *lists_first(Kernel *k, const DeviceStep *s, const GradientCut *c, GradientPart *p); /* loads the first */
void lists_add(Kernel *k, const DeviceStep *s, const GradientCut *c, const GradientPart *p, const ListWalk *w);
void list_pads(Kernel *k);  /* what all lists are filled up with */
void plan_turns(Kernel *k); /* may warps share lists? */
uint32_t turns_bytes(const Kernel *k);
void turns_make(Kernel *k);              /* who has which list */
bool turns_sorted(const Kernel *k);      /* inputs are sorted by the lengths of their lists, */
uint32_t lengths_at(const Kernel *k);    /* which cases.c leaves here, behind masks: a place for each, */
uint32_t lengths_bytes(const Kernel *k); /* and for the sorted inputs */
uint32_t masks_bytes(const Kernel *k);

/* ---- update.c: sums ---- */

/* Sums of all leaves, or what waits; then the rule. */
void update_joined(Kernel *k, Reg leaves, bool pending);
Reg first_place(Kernel *k, uint32_t panel); /* of a thread; the next ones follow places_at_once later */
uint32_t places_at_once(const Kernel *k);
void update_prepare(Kernel *k);                      /* before a barrier: loads what the update does not wait for */
Reg place_sum(Kernel *k, Reg from, Reg leaves);      /* of a place, from its first sum on */
Reg add_field(Emit *e, Reg a, Reg b, Reg is_double); /* tally.c */

/* ---- bf16_*.c: bf16 by tensor cores --------------------------------------------------------------- */

/* Leaves are cut into slices, whose sums are added one after the other: of 128 rows, or of 32 where the update has one
 * leaf, so that a single leaf is divided among more blocks. */
enum { BF16_SLICES = 16 };
/* Threads of a block that do what no update waits for, besides the usual ones, if EmitSource.adds_side_warps. */
enum { SIDE_THREADS = 128 };
static inline uint32_t bf16_slice_rows(uint32_t leaves) { return leaves > 1 ? 128 : 32; }

struct Barriers;
const char *bf16_plan(Kernel *k);
void bf16_begin(Kernel *k);
bool has_floats(const Kernel *k, uint32_t buf, uint32_t col); /* are these columns there as floats? */
bool has_bf16(const Kernel *k, uint32_t buf, uint32_t col);
/* Column col + column of a row, rounded. */
void bf16_store(Kernel *k, Reg row, Reg column, uint32_t buf, uint32_t col, Reg value, Reg stores);
void bf16_weights_stage(Kernel *k);
void bf16_leaf(Kernel *k, Reg update, Reg leaves, const struct Barriers *b);
void bf16_prefetch(Kernel *k, Reg update, Reg staged);
void bf16_update(Kernel *k, Reg update, Reg next, Reg staged, const struct Barriers *b);
void bf16_single_block(Kernel *k, Reg update, Reg staged, const struct Barriers *b);
void bf16_side_update(Kernel *k, Reg update, Reg next, const struct Barriers *b, uint32_t done); /* done: a label */
void bf16_side_begin(Kernel *k, Reg update); /* before the first update */
Reg bf16_join(Kernel *k, Reg from, uint32_t leaves, uint32_t slice);
/* update.c: sums of leaves by several warps */
struct PartsAhead;
bool update_in_parts(const Kernel *k);
uint32_t parts_bytes(const Kernel *k); /* in shared memory */
struct PartsAhead *parts_prepare(Kernel *k);
void update_parts(Kernel *k, struct PartsAhead *o, uint32_t at, Reg leaves);
void bf16_weight(Kernel *k, const DevicePanel *p, Reg row, Reg col, Reg place_of, Reg w);
/* Pairs of adjacent places of a panel: row, first column, place; real: the first is a weight. */
typedef struct RulePair {
	Reg row, col, at, real, g[2];
} RulePair;
typedef struct RulePairs {
	RulePair pair[32];
	uint32_t count;
} RulePairs;
void rule_pairs(Kernel *k, const RuleNumbers *n, const DevicePanel *p, const RulePairs *q);
/* Sums of a lane: high x wide tiles of 16 rows x 8 columns of a panel, `depth` rows of which are weights. */
typedef struct RuleTiles {
	Reg row, col;                       /* of the first; wide columns begin with a multiple of 8 */
	uint32_t high, wide, depth, number; /* number: of the gradient */
	Reg (*sum)[4];                      /* overwritten with new weights */
} RuleTiles;
void rule_tiles(Kernel *k, const RuleNumbers *n, const DevicePanel *p, const RuleTiles *q);
void bf16_weights_store(Kernel *k);

/* ---- ring.c: what tiles of fp32 and bf16 have in common ------------------------------------------------- */

/* Tiles of a matrix of rows by columns (of quads, or of single ones) over blocks: a loop, which the caller ends. */
typedef struct TileAt {
	Reg row, col; /* first of the tile */
	Loop loop;
} TileAt;
TileAt tile_begin(Kernel *k, uint64_t rows, uint64_t cols, uint32_t tile_rows, uint32_t tile_cols);

typedef struct LeafRows {
	Reg first, count;
} LeafRows;
LeafRows leaf_rows(Kernel *k, uint32_t leaves, uint32_t leaf);

/* Columns of rows: of a buffer, or of the data. */
typedef struct RowSource {
	Reg base;
	uint32_t row; /* bytes */
	bool data;
} RowSource;
Reg row_place(Kernel *k, const RowSource *s, Reg row);
Reg float_buffer(Kernel *k, uint32_t buf, uint32_t col); /* rows of floats, from this column on */

/* A thread's copies of 16 bytes of rows: their columns are the same in all pieces. */
typedef struct RowCopy {
	Reg row, column, to, valid; /* row in a piece; column: bytes; valid: of this tile */
	bool is_b;
} RowCopy;
/* Rows first .. of a leaf that ends at `end`; those past it are 0. */
void rows_issue(Kernel *k, const RowSource from[2], const RowCopy *copy, uint32_t copies, Reg slot, Reg first, Reg end);
Reg ring_base(Kernel *k);
void ring_advance(Emit *e, const Tile *t, Reg slot, uint32_t bytes); /* to the next piece, of so many bytes */

/* ---- tiles.c: weights that do not fit into shared memory ---------------------------------------------- */

bool is_wide(const DeviceStep *s); /* a product in tiles */
/* Steps of a block's rows. A column of ones after a wide product is there already. */
bool is_row_step(const Kernel *k, uint32_t step);
uint32_t tiles_plan(Kernel *k); /* fills k->tile; bytes that its pieces need */
void product_tiles(Kernel *k, uint32_t step);
void gradient_tiles(Kernel *k, Reg leaves);                         /* and the update */
void phase_move(Kernel *k, uint32_t first, uint32_t end, bool out); /* rows that steps need, or have written */
void ones_store(Kernel *k);

/* ---- leaf.c ---------------------------------------------------------------------------------------- */

LeafFound leaf_locate(Kernel *k, Reg update);
/* What an update needs, found while the one before adds its gradient, by threads that have none: a record in shared
 * memory. */
typedef struct Coming {
	LeafFound leaf; /* the next one */
	RuleNumbers *numbers;
	Reg record, other; /* of this update, of the next one: */
	Reg update, after; /* its address, and that of the one after it */
} Coming;
uint32_t record_bytes(void);
void coming_find(Kernel *k, Reg update, Reg next, Reg record); /* of an update; next: the one after it */
void coming_begin(Kernel *k, RuleNumbers *n, Coming *c);
void coming_rule(Kernel *k);            /* numbers of the rule, */
void coming_case(Kernel *k);            /* the case of this thread's row of the next leaf, */
LeafFound coming_leaf(Kernel *k);       /* the next leaf, */
Reg coming_ends(Kernel *k, Reg record); /* and whether the epoch ends */
/* Cases of leaf k->leaf_number to shared memory. staged: D, the leaf that is there; found: NULL, or this leaf */
void leaf_begin(Kernel *k, Reg update, Reg staged, const LeafFound *found);
struct Barriers;
/* Full batches with dense inputs: gradients take as long as both passes, so that tallies can be formed beside them.
 * With index lists, what makes those faster costs 5 %. */
bool gradients_are_long(const Kernel *k);
bool tallies_early(const Kernel *k); /* tallies of leaves are joined beside the gradient */
void leaf_emit(Kernel *k, Reg update, Reg staged, const struct Barriers *b, bool direct); /* direct: it is the update */
void images_emit(Kernel *k); /* lists by input of all leaves of a job, for a kernel that has others in every update */

/* ---- train.c: the kernel -------------------------------------------------------------------------- */

/* The text of a kernel: declarations around instructions. param: bytes of its parameter */
/* cluster: 0 none, 1 the barrier of any, more: blocks of it, with barriers in their shared memory too */
void kernel_wrap(const Emit *e, Buf *out, size_t param, uint32_t threads, uint32_t cluster);
typedef struct Barrier {
	Reg counter; /* address */
	Reg turn;    /* arrivals that the next wait is for */
	uint32_t blocks;
	bool cluster;      /* the hardware's, of all threads of the cluster: neither counter nor turn */
	uint32_t times;    /* 0, or of an update: turn is then made of its number, and no register is kept for it; */
	uint32_t *signals; /* how many of them were emitted */
	uint32_t before;   /* before the first update */
} Barrier;
/* What blocks of a leaf wait for: rows of the team; its verdicts, for tallies; the grid; operands of gradients that are
 * ahead; tallies of all leaves. */
typedef struct Barriers {
	Barrier team, scored, grid, ahead, tallied;
} Barriers;
Barrier barrier_new(Kernel *k, Reg counter, uint32_t blocks, bool cluster);
void barrier_turn(Kernel *k, const Barrier *b);              /* the next one */
void barrier_signal(Kernel *k, const Barrier *b);            /* one thread, for those of the block that have met */
void workers_wait(Kernel *k, const Barrier *b);              /* those that compute the gradient */
void cluster_meet(Kernel *k);                                /* the others, before they arrive again */
void update_tiled(Kernel *k, Reg update, const Barriers *b); /* ring.c */
void barrier_arrive(Kernel *k, const Barrier *b);            /* what the block has written is there for others */
void barrier_poll(Kernel *k, const Barrier *b);              /* by one warp or thread */
/* Number of the barrier between gradients and the update of Kernel.posts. All meet where inputs are prefetched, over
 * rows that gradients have read; else only workers and the warp that has seen that they may reset weights, which has
 * given its verdicts: tallies may end beside the update. */
enum { UPDATE_BEGINS = 5 };
uint32_t update_meets(const Kernel *k);
void polls_count(Kernel *k, Reg polls, uint32_t top); /* polls again, from this label on; but not for ever */
void teams_poll(Kernel *k, const Barrier *team);      /* by one warp: those of all teams */
void outputs_store(Kernel *k);                        /* of a test */
void barrier_wait(Kernel *k, const Barrier *b);
void barrier_all(Kernel *k, const Barrier *b); /* both */
bool has_step(const Kernel *k, uint32_t kind);
Reg is_from(Kernel *k, uint32_t thread); /* P: its number is not below this one */
void verdicts_emit(Kernel *k);
void ranks_stage(Kernel *k); /* inputs by rank, to shared memory */
void spent_begin(Kernel *k);
void spent(Kernel *k, uint32_t on); /* cycles of thread 0 since the last call: SPENT_ kinds, then steps */
void spent_store(Kernel *k);
/* The last threads of a block, which form tallies; those from Kernel.workers on may be more, with rows to judge. */
enum { TALLY_WARP = 32 };
/* NULL, or why not. shared: bytes of a block; exchange: of a team */
const char *kernel_text(const EmitSource *s, Arena *a, Buf *out, uint32_t *shared, uint64_t *exchange, uint64_t *posted,
                        uint32_t *image); /* posted: of Job.posted; image: of a leaf in Job.images */

#endif
