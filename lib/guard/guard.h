/* SPDX-License-Identifier: MIT */
/* guard: detects silent data corruption during training, reports it and rolls the run back to a snapshot.
 *
 * Memory that should not change gets a checksum when it is written, verified when it is used (base/checksum.h). */
#ifndef GUARD_H
#define GUARD_H

#include "monitor.h"

typedef struct Guard Guard;

/* What was found and done, for tests. */
typedef struct GuardCount {
	uint64_t state, sums, data, leaves, outliers, position, snapshots, tables, order, best; /* faults, by where */
	uint64_t repaired;                          /* bits of data, blocks of tables */
	uint64_t rollbacks, replays;                /* replays: of outliers that came out the same, so were no faults */
	uint64_t checks, recomputed, taken, passes; /* of the state; leaves; snapshots; passes over the data */
	uint64_t data_blocks;                       /* that have a checksum */
} GuardCount;

/* NULL: option guard is off. The data is bound. batch: this rank reads only its own cases of such batches; 0: it reads
 * everything.  loop: numbers of the caller that stay as they are. */
Guard *guard_begin(Run *r, const Data *data, Order *order, uint64_t batch, const Region *loop);
void guard_options_changed(Guard *g); /* by a call of the caller's report function; g may be NULL */
extern const Observer guard_observer; /* of a Guard, for the training loop */
const GuardCount *guard_count(const Guard *g);
/* For tests: where snapshots are, recent first, three at most; all tables. */
uint32_t guard_snapshots(const Guard *g, Region *r);
uint64_t guard_tables(const Guard *g, Region *r, uint64_t most); /* returns how many there are */

#endif
