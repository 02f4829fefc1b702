/* SPDX-License-Identifier: MIT */
/* protect: training on a machine with faults (section 10.4 of the report).
 *
 *   data_check.c   checksums of the training data: mismatching cases are loaded again
 *   memory_file.c  training data kept in memory between runs
 *   copy.c         snapshots of weights and rule state in processor memory
 *   share.c        an array distributed over the processors, and gathered again
 *   average.c      mean of the plausible weights, the same bits on all processors; drift
 *   protect.c      policy: when each of these runs, and its notes
 *
 * Everything that processors do here is microcode, recorded, scheduled, checked and called like that of the update; its
 * cycles are accounted for. The host reads one word of each processor, and more of those that report a fault. */
#ifndef GF11_PROTECT_H
#define GF11_PROTECT_H

#include "gf11_sum.h"

enum { AGREE_HOST, AGREE_AVERAGE, AGREE_NEVER };
enum { PLACE_OWN, PLACE_SPREAD };

/* Relocation registers: scratch in SRAM; source, destination and checksums in DRAM. */
enum { PROTECT_AT = 1, PROTECT_FROM, PROTECT_INTO, PROTECT_SUMS, PROTECT_BASES };

/* Words of scratch: fault counter; partial checksums, a pair per column; expected checksums with their verdict, per
 * column; then data of the routine. A column is a case, or a copy. */
enum { NEAR_COUNT = 0, NEAR_PARTIAL = 4, EXPECTED_X = 0, EXPECTED_B, EXPECTED_TWICE, VERDICT, EXPECTED_WORDS };

/* Host state that survives the replacement of one machine by another. */
enum { LAST_ERRORS = 5 };
typedef struct Guard {
	uint64_t epochs, cases; /* finished; cases of the present one */
	uint64_t updates;
	double worst; /* largest error per case of this epoch's batches */
	double error[LAST_ERRORS];
	uint32_t errors;                                /* of the last plausible epochs; their number */
	uint64_t checks, bad_cases, bad_tables, reused; /* of data */
	uint64_t copies, rollbacks, accepted; /* accepted: jumps that recurred after rollback, hence part of the training */
	uint64_t averages, unreasonable;      /* words excluded from averages */
	uint64_t cycles;                      /* cycles of all this, calls included */
	uint32_t notes;                       /* printed */
} Guard;

/* ---- data_check.c ---- */

typedef struct SumPair {
	uint32_t x, b;
} SumPair;
SumPair sums_of(const uint32_t *word, uint32_t words); /* expected by the processors */
/* Checksums that a routine accumulates, several in parallel to fill the pipeline. */
enum { MOST_WAYS = 8, MOST_SUMMED = (1 << 15) - 1 };
typedef struct Sums {
	Gen *g;
	uint32_t ways, added;
	Reg shift16, x[MOST_WAYS], b[MOST_WAYS];
} Sums;
Sums sums_open(Gen *g, uint32_t columns, Reg shift16); /* shift16: a register that holds 16 */
void sums_add(Sums *s, Reg word, Reg number);          /* number: 1, 2, ... */
void sums_end(Sums *s, Reg *x, Reg *b);
Cond sums_match(Gen *g, Addr expected, Reg x, Reg b);

typedef struct DataCheck {
	uint32_t sums, stride;       /* DRAM: expected sums and verdicts; of a group of columns to the next */
	uint32_t width, groups;      /* columns that one routine takes; groups of them in a block of cases */
	uint32_t parts, *routine[2]; /* [parts] for a whole group, for the last one */
	uint32_t tables, *table;     /* [tables] routines over the tables in SRAM */
	uint32_t restore;            /* routine: what else stays in SRAM */
} DataCheck;

/* ---- copy.c ---- */

/* A region of words to copy. VOTE: all processors hold the same words, up to rounding. ALONE: each holds its own, and a
 * damaged copy is restored as zeros; NEEDED: a damaged copy invalidates the snapshot. */
enum { REGION_VOTE, REGION_ALONE, REGION_NEEDED };
typedef struct Region {
	uint32_t at, words, how, copy, sums;
} Region; /* copy, sums: from the start of a copy */
enum { MOST_REGIONS = 2 + MAX_STATE, COPIES = 2 };
enum { COPY_NONE, COPY_NEW, COPY_GOOD };
typedef struct Jump {
	bool weight;
	double value;
} Jump; /* of the largest weight, or the error of a case */
typedef struct CopyRoutine {
	uint32_t words, how;
	bool save;
	uint32_t routine;
} CopyRoutine;

/* ---- share.c ---- */

/* Distribution of an array: slot j of each row of `slots` words belongs to processor (j + shift) mod P, which stores it
 * as word j / P of the row's `own` words. */
typedef struct Shares {
	uint32_t slots, rows, shift, own;
} Shares;
typedef struct ShareRoutine {
	bool take;
	uint32_t slots, parts, *routine;
} ShareRoutine;
typedef struct Shared {
	uint32_t array, kept;
} Shared; /* an array and where it is kept, in DRAM */

typedef struct Protect {
	Bp *b;
	Guard *guard;
	uint32_t dram_end; /* first word of DRAM that is free */
	uint32_t clear;    /* routine: no faults counted */
	uint32_t ring;     /* configuration: to the right */
	/* An exchange in steps of 1, 2, 4 ... processors; on a machine with a ring alone, that many times round. */
	uint32_t levels, hop[MOST_LEVELS];
	bool checks, copies, averages, spread;
	/* data */
	DataCheck data;
	const char *memory; /* file with the cases of an earlier run, or NULL */
	const Data *loaded;
	const uint64_t *cases;
	uint64_t count;   /* loaded cases */
	bool unknown;     /* contents not yet verified */
	uint64_t checked; /* epoch of the last check */
	/* weights and rule state */
	Shared shared[1 + MAX_STATE];
	uint32_t shareds;
	Shares shares;
	ShareRoutine share[8];
	uint32_t share_routines;
	/* copies */
	Region region[MOST_REGIONS];
	uint32_t regions;
	uint32_t chunk; /* words that have a checksum together */
	CopyRoutine copy[16];
	uint32_t copy_routines;
	uint32_t place[COPIES];
	uint8_t state[COPIES]; /* first words in DRAM; COPY_... */
	double error[COPIES];  /* of a case, with the weights of a good copy */
	uint32_t largest[2];   /* routines: of a chunk, of the rest */
	uint32_t newest;       /* newest good copy */
	bool begun;            /* the first one has been made */
	uint32_t tries;        /* rollbacks since a copy became good */
	Jump rejected;         /* cause of the last rollback */
	double reached;        /* largest weight after the last plausible epoch */
	bool older_tried;
	/* average */
	uint32_t average_words, average[2], sane; /* routines: of a chunk, of the rest; of state that only owners hold */
	uint32_t third[2]; /* configurations, or steps of the ring: to processors a third of all away */
} Protect;

/* ---- protect.c ---- */

/* As the options require; NULL: none. Call after sum_compile. Fails if DRAM is full. */
Protect *protect_new(Bp *b, const Gf11Options *opt, Guard *guard);
/* Cases about to be used; `there`: they are the ones loaded last and may be verified. True: no loading is needed. Else
 * the caller loads them and calls protect_loaded. */
bool protect_finds(Protect *t, const Data *d, const uint64_t *cases, uint64_t count, bool there);
void protect_loaded(Protect *t, bool disks);
void protect_begin(Protect *t); /* before the first pass of a batch */
/* After the last pass of a batch: false if its error is plausible. Else the weights were restored from a snapshot, and
 * the batch must be repeated from zero weight changes. Fails when no snapshot is left. */
bool protect_again(Protect *t, const Tally *batch);
void protect_updated(Protect *t, uint64_t cases); /* after an update; cases: of its batch */
typedef struct Drift {
	double largest, mean;
} Drift; /* |w - w of processor 0| over weights and processors */
Drift protect_drift(const Bp *b);
void protect_report(const Gf11Options *opt, const Guard *guard, const Bp *b, Buf *json);
/* Shared inside the module. */
uint32_t protect_reserve(Protect *t, uint64_t words); /* allocates words of DRAM; returns the address */
uint32_t protect_buffer(const Protect *t);            /* first free word of scratch */
Addr near_word(uint32_t word);                        /* in scratch */
void protect_call(Protect *t, uint32_t routine, uint32_t from, uint32_t into, uint32_t sums);
/* Faults that a processor counted; the first one, or procs. */
uint32_t protect_count(Protect *t, uint32_t proc);
void protect_clear(Protect *t);
bool protect_may_note(Protect *t); /* counts a note; false: the limit is reached */
/* Rule state: how many arrays; the first word of one, which all have or owners keep; of a weight. */
uint32_t state_count(const Bp *b);
uint32_t state_word(const SumHome *home, uint32_t state);
uint32_t state_first(const Bp *b, uint32_t state);
Reg protect_hop(Gen *g, const Protect *t, uint32_t level, Reg v);
uint32_t protect_hops(const Protect *t); /* transfers of all levels */

/* ---- data_check.c ---- */

void data_check_make(Protect *t);
void data_sums_write(Protect *t);            /* expected ones, of what is to be loaded */
uint64_t check_data(Protect *t, bool first); /* reloads mismatching cases; returns their number */

/* ---- memory_file.c ---- */

/* maps the first words of DRAM to this file */
void memory_keep(Ctx *cx, Processors *p, const char *path, uint64_t words);

/* ---- copy.c ---- */

void copies_make(Protect *t);
void copy_save(Protect *t, uint32_t copy);
bool copy_restore(Protect *t, uint32_t copy); /* false: the snapshot is invalid */
/* Largest weight, median over processors, so that a corrupt minority does not count. Infinite: NaN. */
double largest_weight(Protect *t);

/* ---- share.c ---- */

void shares_make(Protect *t);
void shares_take(Protect *t, const Shared *s); /* scatter: from the array, which all hold, to the owners */
void shares_give(Protect *t, const Shared *s); /* gather: back to all */

/* ---- average.c ---- */

void average_make(Protect *t);
void average_all(Protect *t);

#endif
