/* SPDX-License-Identifier: MIT */
/* Weight changes summed over the processors, and the update.
 *
 *   sum_compile  a method records its routines and lists the calls of an update, each with its pointers
 *   sum_update   the host makes these calls
 *
 * Tree and ring take chunks of weights: every processor ends with the total of each and updates all weights.
 * Pipelined ring and halving take rows of weights, of which each processor owns some: the owner alone gets the total,
 * keeps the rule state, updates, and broadcasts the new weight. */
#ifndef GF11_SUM_H
#define GF11_SUM_H

#include "gf11_net.h"

/* ---- sum.c, range.c: the update, as other modules use it ---- */

/* Records, schedules, checks and loads the routines of the summing method; sets b->summing. */
void sum_compile(Bp *b);
/* Sums weight changes over all processors, updates weights and rule state with the numbers of the update, the
 * factors of weights and decay, zeroes the changes. */
void sum_update(Bp *b, const Update *u);
void sum_words_as(Bp *b, uint32_t proc);     /* from the next update on all act as this one: for diagnosis */
uint32_t sum_steps(int sum, uint32_t procs); /* switch transfers a weight takes */
/* Where states and factor of the weight at `place` of the arrays stand in DRAM: in every processor; or in its owner
 * alone, which also has a copy of the weight of its own, that the host has to write as well. */
typedef struct SumHome {
	bool everywhere;
	uint32_t proc, state[MAX_STATE], weight, factor;
} SumHome;
SumHome sum_home(const Bp *b, uint32_t place);
/* What the range check caught, by processor and link.  Counts by link stop when there are more than 2^16 of them; those
 * by processor, and all, do not. */
typedef struct RangeSlot {
	uint64_t key, count;
} RangeSlot;
typedef struct RangeLog {
	uint64_t caught, *of_proc;
	RangeSlot *slot;
} RangeLog;
RangeLog *range_log_new(Arena *a, uint32_t procs);
uint64_t range_count(const RangeLog *log, uint32_t proc, uint64_t link);
void range_report(const RangeLog *log, uint32_t procs, Buf *json); /* members */

/* ---- weights.c: the host reads and writes weights ---- */

void bp_weights_write(Bp *b, int which, const double *v); /* 0 weights, 1 changes, 2.. rule state: to every processor */
void bp_weights_read(const Bp *b, int which, uint32_t proc, double *v);
/* links first .. first + count - 1 */
void bp_weights_some(const Bp *b, int which, uint32_t proc, uint64_t first, uint64_t count, double *v);
void bp_weights_align(Bp *b);             /* weights and rule state of processor 0 to all processors */
void bp_gradient(const Bp *b, double *v); /* changes summed over all processors, in double: for checks */

/* ---- what the methods share ---- */

/* Relocation registers: scratch in SRAM; weights, changes and rule state in DRAM; buffers of a row in SRAM;
 * bits of the range check in DRAM. */
enum { SUM_AT = 1, SUM_WEIGHTS, SUM_CHANGES, SUM_STATES, SUM_BUFFER, SUM_FLAGS = SUM_BUFFER + 4, SUM_BASES };

/* Words that the host keeps behind the tables of each processor: parameters of the update, as the rule uses them;
 * zero; the processor's number, and that less the number of processors; then flags, all ones or zero: it has a
 * leftover for buddy, it is one, bits of its number; for the range check the limit, and what is not zero if
 * anything was overflow. */
enum {
	SUM_UNIFORMS = 16,
	WORD_RULE = 0,
	WORD_ZERO = SUM_UNIFORMS,
	WORD_SELF,
	WORD_WRAPPED,
	WORD_BUDDY,
	WORD_LEFTOVER,
	WORD_BIT,
	MOST_LEVELS = 16,
	WORD_LIMIT = WORD_BIT + MOST_LEVELS,
	WORD_CAUGHT,
	SUM_WORDS
};
enum { SUM_WORDS_AT = TABLE_WORDS - SUM_WORDS };
enum { SLACK = 700 }; /* lines that a routine takes to fill and to drain */

/* weights: those whose bits it leaves, from place `first` on; 0: it leaves none, or those of rows. */
typedef struct SumCall {
	uint32_t routine, base[SUM_BASES], first, weights;
} SumCall;

/* A row: `blocks` times a word for each processor.  Its last few slots stay empty where otherwise rows would not
 * begin at a multiple of dram_banks. */
typedef struct Rows {
	uint32_t blocks, words, rows; /* weights in a row; rows */
	uint32_t own;                 /* words from what a processor owns of a row to the next: blocks, rounded up */
	uint32_t shift;               /* slot i of a block belongs to processor i + shift */
} Rows;

typedef struct Known {
	uint64_t key;
	uint32_t routine;
} Known;

typedef struct BpSum {
	int sum; /* as done: rows need three processors, and weights enough */
	SumCall *call;
	uint32_t calls, capacity;
	uint32_t procs;
	uint32_t levels, leftovers;                  /* whole powers of two in the processors; processors beyond */
	uint32_t up[MOST_LEVELS], down[MOST_LEVELS]; /* configurations of the switch: of each level; tree: up alone */
	uint32_t ring, to_buddy, from_buddy;
	Rows rows;
	Known known[64];
	uint32_t knowns;  /* routines made, by what sets them apart */
	bool borrows;     /* words of the cases are used as well */
	uint32_t restore; /* routine: puts back what must stand there */
	bool frozen;      /* some weights are */
	struct SumRule *rule;
	uint32_t flags;    /* DRAM: bits of the range check, of rows */
	uint64_t *link_at; /* [Layout.words] link of a weight by its place; UINT64_MAX: none; for the range check */
	bool alike;
	uint32_t as; /* alike: every processor gets this one's number */
	bool written;
	Cell word[SUM_UNIFORMS]; /* what the processors know of the update */
} BpSum;

/* ---- sum.c ---- */

static inline uint32_t round_to(uint32_t words, uint32_t unit) { return (uint32_t)round_up(words, unit); }
uint32_t sum_lines(const Bp *b);                        /* of a routine, to plan with */
Addr sum_word(uint32_t word);                           /* WORD_... */
void sum_words_write(Bp *b);                            /* what processors know of themselves, if they do not yet */
Code *sum_code(Gen *g, bool timed);                     /* ends a recording; timed: about as it will run */
uint32_t sum_load_routine(Bp *b, Routine *r);           /* checked, loaded; no longer than a block */
uint32_t sum_load(Bp *b, Code *code);                   /* scheduled, checked, loaded */
void sum_call(Bp *b, const SumCall *call);              /* one more in an update */
uint32_t sum_shift(Bp *b, uint32_t procs, uint32_t by); /* configuration: i sends to (i + by) mod procs */
uint32_t sum_exchange(Bp *b, uint32_t bit);             /* configuration: i sends to i ^ bit */
Addr sum_factor(const Bp *b, uint32_t i);               /* in DRAM, under SUM_STATES: of the i-th weight from there */
Addr sum_state(const Bp *b, int state, uint32_t i);     /* likewise; chunks */

/* ---- rule.c, weight.c: the rule for one weight ---- */

/* The code of one weight. Its words stand under base RULE_PLACE: g, which is the total, w and states as the formula
 * counts variables, then the factor. */
enum { RULE_PLACE = 1, RULE_FACTOR = 2 + MAX_STATE };
typedef struct SumRule {
	const Rule *rule;
	Formula formula;
	bool uniform[MAX_OPS], fixed[MAX_OPS]; /* the same for all weights; always the same */
	uint8_t word[SUM_UNIFORMS];
	uint32_t words; /* ops of the formula that the host works out */
	Code *code;
	Reg total, keeps; /* that it starts from; the first that the last act makes */
	uint8_t *act;
	uint32_t acts;      /* [recs] */
	int64_t length;     /* cycles from the total to what is stored */
	uint32_t alu, port; /* cycles of both for a weight */
	bool looks_up;
} SumRule;
SumRule *rule_make(const Bp *b);
/* [selects] in the order of the code, whether one waits long after its condition; NULL: it has none. */
bool *rule_waits(const Bp *b, const SumRule *r);
void rule_plan(const Bp *b, SumRule *r);                        /* what follows from the code */
void rule_words(const SumRule *r, const Update *u, Cell *word); /* [words] for the processors */
int64_t rule_time(const Bp *b, uint32_t act);                   /* cycles after the total, of an act */
/* What all weights of a routine share, in registers; then a weight, whose words are in SRAM. */
typedef struct Rates {
	const SumRule *rule;
	Reg *shared;
	Cond *cond;
} Rates;
typedef struct Kept {
	Addr weight, state[MAX_STATE], factor;
} Kept;
Rates sum_rates(Gen *g, const Bp *b);
Reg *weight_open(const Bp *b, const Rates *r, Reg total); /* its registers */
void weight_act(Gen *g, const Rates *r, const Kept *k, Reg *reg, uint32_t act);
void weight_update(Gen *g, const Bp *b, const Rates *r, const Kept *k, Reg total); /* all acts */

/* ---- range.c: totals out of range become zero; nothing if there is no such check ---- */

/* 32 weights: bits that are joined so far */
typedef struct RangeGroup {
	Reg part[6];
	uint32_t parts, count;
} RangeGroup;
typedef struct Range {
	Gen *g;
	bool on, apart; /* apart: parts of words stay in SRAM, for range_join in a later code */
	uint32_t weights;
	Addr near, far; /* words of bits in SRAM and in DRAM */
	Reg limit, zero, caught;
	RangeGroup *group;
} Range;
bool range_checked(const Bp *b);
uint32_t range_words(const Bp *b, uint32_t weights); /* of bits for so many, a multiple of dram_banks */
int64_t range_time(const Bp *b);                     /* cycles from a total to the checked one */
uint32_t range_alu(const Bp *b);                     /* operations for a weight */
Range range_open(Gen *g, const Bp *b, uint32_t weights, Addr near, Addr far);
Reg range_check(Range *r, Reg total, uint32_t i); /* of weight i; each is checked once, in any order */
void range_close(const Range *r);                 /* all are */
void range_join(Range *r);                        /* of parts that another range left in SRAM */
uint32_t range_room(Bp *b, uint32_t words);       /* of DRAM, from here on */
void range_prepare(Bp *b);                        /* before an update */
void range_collect(Bp *b);                        /* after one */

/* ---- acts.c: what is recorded, in the order of the time at which it can be done ---- */

/* The scheduler looks ahead only so far, so long codes are recorded about as they will run: acts are planned with the
 * cycle they should start in, then recorded by these. */
typedef struct Act {
	int64_t at;
	uint32_t number;
	uint16_t what, step;
	uint32_t level, i;
} Act;
typedef struct Acts {
	Arena *arena;
	Act *act;
	uint32_t acts, capacity;
} Acts;
void acts_add(Acts *a, int64_t at, Act act);
void acts_sort(Acts *a); /* those of one cycle as they were added */

/* ---- chunk.c ---- */

/* Weights of a call, all in one routine or in several parts of it. */
typedef struct Chunk {
	Gen *g;
	const Bp *b;
	const BpSum *s;
	uint32_t n;
	Rates rates;
	Range range;
	Cond buddy, leftover;       /* tree */
	Reg *sum, *other, **weight; /* [n] sums so far; what is on its way; registers of a weight that is updated */
} Chunk;
/* Makes the routines that are called one after the other for a chunk of n weights, in scratch; how many. */
typedef uint32_t ChunkFn(Bp *b, uint32_t n, Routine ***routine);
void chunks_compile(Bp *b, uint32_t n, ChunkFn *make);
uint32_t chunk_words(const Bp *b); /* of scratch for each weight */
/* Moves of DRAM for each weight: change, weight and states come, the change becomes zero, states and weight go;
 * then a factor comes, if there are any. */
uint32_t chunk_moves(const Bp *b);
uint32_t chunk_lines(const Bp *b, uint32_t steps); /* cycles of a weight that takes so many steps */
/* Weights in a chunk: as the user says or the routine's length allows, when each takes `lines` lines and `words`
 * words of scratch; `most` at most (0: as many as fit). */
uint32_t chunk_size(const Bp *b, uint32_t lines, uint32_t words, uint32_t most);
Chunk chunk_open(const Bp *b, const char *name, uint32_t n);
enum { MOVE_CHANGE_IN, MOVE_WEIGHT_IN, MOVE_STATE_IN, MOVE_ZERO, MOVE_STATE_OUT, MOVE_WEIGHT_OUT, MOVE_FACTOR_IN };
void chunk_moves_all(const Chunk *c, int first, int last); /* those from MOVE_... to MOVE_..., one after the other */
Reg chunk_change(const Chunk *c, uint32_t i);
void chunk_rates(Chunk *c);              /* before updates */
void chunk_range(Chunk *c);              /* the range check alone */
void chunk_update(Chunk *c, uint32_t i); /* totals are in sum; range_close when all are done */
/* All in one code, sums, moves and updates overlapped: `step` is called for each step and weight, `latency` cycles
 * apart for the same weight. */
typedef void StepFn(Chunk *c, uint32_t step, uint32_t i);
void chunk_together(Chunk *c, StepFn *fn, uint32_t steps, int64_t latency);

/* ---- rows.c ---- */

enum { MOST_BLOCKS = 64 };
/* Rows of so many blocks; false if processors are too few, or weights, for what owners keep to fit. */
bool rows_make(const Bp *b, uint32_t blocks, uint32_t shift, Rows *r);
uint32_t rows_room(const Bp *b);              /* words of SRAM for their buffers */
uint32_t row_words(const Bp *b, int64_t row); /* weights in it; 0: there is no such row */
Code *record_true_units(const Bp *b);         /* their outputs, of all cases of a group */
void rows_borrow(Bp *b, uint32_t words);      /* so many words of SRAM are used */
/* The routine with this key; recorded if it is new. */
typedef Code *RecordFn(Bp *b, const void *what);
uint32_t rows_routine(Bp *b, uint64_t key, RecordFn *record, const void *what);
uint32_t rows_kept(const Bp *b); /* words that an owner keeps of each of its weights */
/* What an owner keeps of a row, in SRAM: weights, then states, then factors, each `own` words. */
Kept near_words(const Bp *b, Addr at, uint32_t block);
void own_fetch(Gen *g, const Bp *b, uint32_t row, Addr at); /* of a row, to near_words */
/* totals of its blocks; new words go back */
void own_update(Gen *g, const Bp *b, uint32_t row, Addr at, const Reg *total);
/* Slot (number of the processor + i) mod procs of a block that begins at `mem` is at mem + i + what index_after
 * gives. */
typedef struct Index {
	Reg self, wrapped;
} Index;
Index index_load(Gen *g);
Reg index_after(Gen *g, const BpSum *s, Index x, uint32_t i);
/* DRAM moves in small portions between other operations, dram_banks words at a time. */
typedef struct Move {
	Addr near, far;
	uint32_t words, done;
	bool fetch, zero;
} Move;
typedef struct Moves {
	Gen *g;
	uint32_t unit;
	Move move[4];
	uint32_t moves;
} Moves;
Moves moves_new(Gen *g, const Machine *m);
void moves_fetch(Moves *m, Addr near, Addr far, uint32_t words);
void moves_flush(Moves *m, Addr far, Addr near, uint32_t words);
void moves_zero(Moves *m, const Bp *b, Addr far, uint32_t words);
void moves_skip(Moves *m, uint32_t part, uint32_t whole);    /* the first part / whole of each is done elsewhere */
void moves_advance(Moves *m, uint32_t part, uint32_t whole); /* until part / whole of each is done */

/* ---- tree.c, ring.c, pipelined.c, halving.c ---- */

void tree_compile(Bp *b);
void ring_compile(Bp *b);
bool pipelined_fits(const Bp *b);
void pipelined_compile(Bp *b);
bool halving_fits(const Bp *b);
void halving_compile(Bp *b);

#endif
