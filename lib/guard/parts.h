/* SPDX-License-Identifier: MIT */
/* What the files of a guard share: state and snapshots (state.c), checksums of data (data.c), leaves that two ranks
 * compute (ranks.c), memory that nothing writes to (tables.c), rollback (rollback.c). */
#ifndef PARTS_H
#define PARTS_H

#include "guard.h"

/* ---- state.c ---- */

/* A recent snapshot, and those from the start of this pass over the data and of the previous one; latest first. */
enum { SNAPSHOT_RECENT, SNAPSHOT_PASS, SNAPSHOT_PREVIOUS, SNAPSHOTS };
typedef struct Snapshot {
	bool valid;
	Position at, best_at;
	uint64_t position_hash;
	uint8_t *bytes; /* all regions, one after the other */
	uint64_t *checksum;
	void *best; /* with keep-best */
	uint64_t best_hash;
} Snapshot;

typedef struct State {
	Run *r;
	Arena *arena;
	Region region[MOST_REGIONS];
	uint32_t regions;
	uint64_t bytes, blocks; /* of all regions */
	uint64_t *checksum;     /* [blocks] expected */
	uint64_t best_hash;     /* of r->best_weights and r->best_at, with keep-best */
	Snapshot snapshot[SNAPSHOTS];
} State;

bool state_locate(State *s); /* finds the regions; true: they have moved, so there are no checksums or snapshots */
uint64_t block_checksum(const Run *r, const void *at, uint64_t bytes); /* by the target, if it can */
void state_checksum(State *s);
/* NULL: matches its checksums; else what does not.  found: checksums computed before, or NULL */
const char *state_mismatch(const State *s, const uint64_t *found);
uint64_t best_hash(const Run *r, const void *weights, const Position *at); /* 0: no weights are kept */
void snapshot_take(State *s, int which);                                   /* the state has its checksums */
/* The latest valid snapshot, from `newest` on; -1: there is none, or a rank gives up. Ranks choose together. */
int snapshot_choose(State *s, int newest, bool *give_up, uint64_t *corrupted);
void snapshot_restore(State *s, int which);

/* ---- data.c ---- */

typedef struct DataChecksums DataChecksums;
DataChecksums *data_checksums_new(Arena *a, const Data *d, Run *r); /* of no case yet */
/* Adds those of these cases; returns how many blocks had none. */
uint64_t data_checksums_add(DataChecksums *s, const Data *d, uint64_t first, uint64_t end);
/* NULL: examples first .. first + count - 1 (count 0: everything) match their checksums. Else what did not; it was
 * repaired, and *repaired counts, or this fails; repaired NULL: nothing is repaired. */
const char *data_mismatch(DataChecksums *s, const Data *d, const Net *net, uint64_t first, uint64_t count,
                          uint64_t *repaired);
/* The single bit of a block whose flip would change the checksum like this, if there is one. */
bool flipped_bit(uint64_t bytes, uint64_t expected, uint64_t found, uint64_t *bit);

/* ---- tables.c ---- */

typedef struct Table {
	Region is;
	uint64_t *checksum; /* of each block */
	uint8_t *copy;
} Table;
typedef struct Tables {
	Run *r;
	Arena arena; /* of all that follows */
	Table *table;
	uint64_t count, capacity, hash; /* hash: of table */
} Tables;

void tables_clear(Tables *t, Run *r);
void table_add(void *tables, Region r); /* nothing writes to it from tables_checksum on */
void tables_add_arena(Tables *t, const char *name, const Arena *a);
void tables_checksum(Tables *t); /* of all that were added */
/* NULL: all match their checksums. Else what did not; it was repaired, and *repaired counts blocks, or this fails. */
const char *tables_mismatch(Tables *t, uint64_t *repaired);

/* ---- ranks.c ---- */

typedef struct Computed { /* one computation of a leaf */
	uint64_t checksum;
	int32_t core;
	uint32_t intact; /* state and data match their checksums */
} Computed;
typedef struct Pair {
	bool differs;              /* the results of the two ranks */
	uint32_t leaf, rank;       /* rank: the other one */
	Computed own[2], other[2]; /* the second, if they differ */
} Pair;
enum { PAIR_OWN, PAIR_THEIRS, PAIRS }; /* a leaf of this rank, with the next; a leaf of the previous rank */
typedef bool PairFn(void *guard, const Batch *b, uint32_t leaf);

uint32_t rank_leaf(const Run *r, const Batch *b, uint32_t rank, uint64_t update); /* to compare; or NO_LEAF */
/* Collective.  readable: the leaf's cases are valid; intact: state and data match their checksums. */
void pairs_compare(Run *r, const Batch *b, const Monitor *m, uint64_t update, PairFn *readable, PairFn *intact,
                   void *guard, Pair pair[PAIRS]);
const char *pair_fault(Arena *a, const Pair *p, bool is_own); /* NULL: none, or the other rank reports it */

/* ---- guard.c ---- */

typedef struct Budget {
	double cost, last; /* of the last time, and when that was */
} Budget;

struct Guard {
	Run *r;
	int level;
	Arena own;   /* all memory of one call of run_train, */
	Arena fixed; /* but that of data checksums */
	Monitor monitor;
	GuardCount count;

	State state;
	bool checksummed; /* state.checksum is that of the current state */
	bool fused;       /* updates compute Monitor.before and Monitor.after */
	Position at;      /* expected */

	const Data *bound;
	DataChecksums *data;
	Order *order;
	Region loop;
	Tables tables;
	bool options_changed; /* tables change when data is next bound */
	uint64_t batch_count; /* examples of the current batch */
	bool in_pass;         /* blocks of examples are verified before their first batch, */
	uint64_t pass_epoch;  /* in this epoch; */
	uint64_t entered;     /* number of blocks verified */

	bool neighbours;  /* the leaf of this batch is compared with the next rank's result */
	Pair pair[PAIRS]; /* the results */

	Budget checks, snapshots, passes, leaves, outliers, saves;
	double error, change; /* decaying maxima */
	bool has_maxima;
	struct {
		uint64_t update;   /* 0: none */
		uint64_t replayed; /* the last one */
		double error;
		float change;
		double began; /* the rollback */
	} outlier;
	uint64_t furthest;        /* update */
	uint32_t attempts, notes; /* faults since `furthest` grew; notes given */
};

/* ---- rollback.c ---- */

/* Rolls back, alone or with all ranks in their next exchange; fault: its cause, NULL: an outlier is to be replayed.
 * Returns ROLLED_BACK. */
Status guard_roll_back(Guard *g, int newest, const char *fault);
Status guard_fault(Guard *g, uint64_t *count, int newest, const char *fault); /* counts it and rolls back */
void guard_roll_back_ranks(void *guard, const char *mismatch);                /* RankObserver: after an exchange */

#endif
