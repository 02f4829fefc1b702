/* SPDX-License-Identifier: MIT */
/* What the files of the training loop share. */
#ifndef LOOP_H
#define LOOP_H

#include "guard.h"
#include "ranks.h"
#include "train.h"

/* ---- batches.c: the examples of each batch ---- */

typedef struct Batches {
	const Data *data;
	Order *order;
	uint64_t examples, batch; /* of an epoch, of an update */
	bool prefetch;            /* the data is mapped: read blocks of examples ahead */
	uint64_t prefetched;      /* blocks, in this epoch */
} Batches;

void batches_init(Batches *b, Arena *a);
void batches_epoch(Batches *b, uint64_t epoch, uint64_t done); /* goes on there, with `done` examples used before */
void batches_prefetch(Batches *b, uint64_t done);
Batch batches_next(Batches *b, uint64_t done);

/* ---- one call of run_train ---- */

typedef struct Loop {
	Run *r;
	const Data *data, *test; /* as scaled, and as ranks have validated them */
	uint64_t examples, batch;
	const Observer *observer; /* of r->guard */
	Until until;
	mp_report_fn *fn;
	void *user;
	uint64_t finite_every; /* epochs between two checks that weights are finite */
	double *chunk;         /* of weights, with keep-best */
	Batches batches;       /* a guard verifies what stands before Batches.prefetched */
	double reported;       /* when the last report was given */
	double timed_until;    /* up to here, time is part of Position.seconds */
	double ticked;         /* when the last tick was */
	bool bulk;             /* the target may do several updates in one call: */
	Bulk updates;
} Loop;

void loop_start(Loop *l, const Data *data, const Data *test); /* start.c */
void loop_finish(Run *r);                                     /* a simulator writes its logs */
void check_idle(Run *r);                                      /* fails while the run trains */

bool bulk_updates(Loop *l, Update *u); /* bulk.c: some updates in one call; false: the target cannot do them */

/* ---- epoch.c ---- */

/* Count, evaluate and note it. finite: its weights are; counted: so are its right cases */
Status epoch_end(Loop *l, double rate, bool finite, bool counted);
void check_error(Loop *l, const Tally *t); /* fails unless it is finite, before its epoch is counted */
_Noreturn void diverged(Loop *l, uint64_t epoch);

void note_stuck(Loop *l); /* stuck.c: a note if the run has learnt nothing */

/* ---- notify.c ---- */

bool must_stop(const Run *r);
const char *end_reason(const Loop *l); /* why the run ends now, or NULL */
bool report_due(const Loop *l);
double training_clock(const Run *r);
void give_report(Loop *l);
uint64_t simulated_cycles(const Run *r);       /* so far; 0: the target is not a simulated machine */
void count_simulated(Run *r, uint64_t cycles); /* so many more */
void count_time(Loop *l);                      /* since it was last counted: one clock read an update */
bool ticks_deferred(const Run *r);             /* ticks come before the next update is applied, not after this one */
Status tick(Loop *l);

#endif
