/* SPDX-License-Identifier: MIT */
/* train: the training loop, bulk updates, evaluation. */
#ifndef TRAIN_H
#define TRAIN_H

#include "run.h"

Status run_train(Run *r, const Data *data, const Data *test, mp_report_fn *fn, void *user); /* train.c */
void run_test(Run *r, const Data *data, mp_result *result, double *outputs);                /* evaluate.c */
const Data *data_scaled(Run *r, const Data *d); /* start.c: by the scale of the data that the run was trained on */
/* Activations of a group at a tick, counted from 0, [cases * units]; fails if the target does not give them. */
void run_activations(Run *r, const Data *data, const Group *g, uint32_t tick, double *out);

/* ---- bulk.c: several updates in one call of the target ---- */

enum { BULK_EPOCHS = 2048 }; /* of a call, at most */
typedef struct OrderPart OrderPart;
typedef struct Bulk {
	const Target *target;
	Program *program;
	const Options *opt;
	uint64_t examples, batch;
	Order *order;
	const Until *until;
	const StopFlag *stop;
	Pool *pool;            /* NULL: one thread makes orders of examples */
	uint64_t call_updates; /* at most, as long calls have taken so far */
	uint64_t *example;     /* of all updates, if shuffled; NULL: in file order */
	uint32_t threads;      /* that make orders of epochs, */
	Order **orders;        /* [threads] each with its own, */
	OrderPart *part;       /* [parts] these now */
	uint64_t parts;
	uint64_t prepared, prepared_examples, epoch, done; /* updates whose examples are there; where the next begins */
	bool same;                                         /* all updates have the numbers of the first */
	uint64_t different;                                /* updates of a call whose numbers differ, at most */
	Update *update;                                    /* [different] */
	bool few_counts;                                   /* as in Updates */
	Tally tally[BULK_EPOCHS];                          /* of each epoch */
} Bulk;
/* Threads for orders of examples; NULL: the target is slower than one. A GPU takes less time for an epoch. */
Pool *bulk_pool(Ctx *cx, const Target *t, const Options *o);
void bulk_init(Bulk *m, Arena *a);                                 /* fields above `call_updates` are set */
void bulk_adapt(Bulk *m, uint64_t updates, double seconds);        /* of the last call */
uint64_t bulk_limit(Bulk *m, const Position *at, uint64_t epochs); /* updates, up to the end of so many epochs */
uint64_t bulk_run(Bulk *m, const Position *at, uint64_t updates);  /* how many were done; 0: not supported for these */
/* of an epoch, of which `done` examples are used */
uint64_t updates_left(uint64_t examples, uint64_t batch, uint64_t done);

#endif
