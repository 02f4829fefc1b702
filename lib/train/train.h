/* SPDX-License-Identifier: MIT */
/* train: the loop. */
#ifndef TRAIN_H
#define TRAIN_H

#include "run.h"

/* ---- train.c ---- */

Status run_train(Run *r, const Data *data, const Data *test, mp_report_fn *fn, void *user);
void run_test(Run *r, const Data *data, mp_result *result, double *outputs);

/* ---- bulk.c ---- */

/* Updates that a target does in one go: what many.c keeps for those who ask for them. */

enum { EPOCHS_AT_ONCE = 64, OTHERS_AT_ONCE = 64 }; /* at most; updates that differ */
typedef struct Many {
	const Target *target;
	Program *program;
	const Options *opt;
	uint64_t examples, batch;
	Order *order;
	const Until *until;
	const volatile int *stop;
	uint64_t *example; /* if shuffled: of all updates; NULL: in their order */
	bool same;         /* all updates have the numbers of the first */
	Update update[OTHERS_AT_ONCE];
	Tally tally[EPOCHS_AT_ONCE]; /* of each epoch */
} Many;
void many_init(Many *m, Arena *a);                                /* all above `example` is there */
uint64_t many_most(Many *m, const Position *at, uint64_t epochs); /* updates, up to the end of so many epochs */
uint64_t many_do(Many *m, const Position *at, uint64_t updates);  /* how many were done; 0: none can be, in this way */
/* of an epoch, when so many examples are done */
uint64_t updates_left(uint64_t examples, uint64_t batch, uint64_t done);

#endif
