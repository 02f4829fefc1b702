/* SPDX-License-Identifier: MIT */
/* Target ref inside: a program, and how its files divide.
 *
 *   ref.c    compiling, data, batches, tests, updates, hooks
 *   pass.c   one example: forward, score, backward, gradients */
#ifndef REF_H
#define REF_H

#include "monitor.h"

enum { TILE = 64, MAX_SUMS = 16 }; /* links of an update at a time; sums: at most 2 + log2(MAX_LEAVES) */

typedef struct Place { /* of a step */
	uint64_t at;       /* case */
	uint32_t tick;     /* of the case */
	bool last;         /* of its ticks */
} Place;

struct Program {
	const Net *net;
	const Plan *plan;
	const Options *opt; /* the run's own: some may change during a run */
	const Rule *rule;
	Formula formula;
	double *w;                /* [links] */
	const double *used;       /* w, or in passes with noise of weights: */
	double *disturbed;        /* [links] NULL: there is no such noise */
	double *state[MAX_STATE]; /* [links] each */
	uint8_t *frozen;          /* [links] */
	uint8_t *uncounted;       /* [links] frozen, or tied: not part of the length of a gradient */

	const Data *data; /* bound */
	Span watched;     /* units whose activations evaluate gives; count 0: outputs */
	uint32_t watched_tick;
	Tally *watched_cases; /* NULL: evaluate does not give tallies of cases */
	Scorer scorer;
	float *x, *y; /* one case of the data */
	double *o;    /* its outputs, side by side, */
	Logs *logs;   /* and their logarithms, */
	bool by_logs; /* if an error is made of them */

	/* One example: a row of units for each step, which is a case or a tick of it. */
	TickPlan ticks;
	uint64_t steps;            /* capacity */
	Place *place;              /* [steps] */
	double *in, *out, *delta;  /* weighted sum, output, error with respect to the weighted sum */
	double *raw;               /* groups that integrate: the sum, or the output, that they move towards */
	double *clean;             /* outputs before their noise */
	bool noisy;                /* this pass has noise, */
	uint64_t update;           /* after so many updates */
	double *err, *err_after;   /* error with respect to the output: of this step and of the next one */
	double *held, *held_after; /* groups that integrate: with respect to what they integrate */

	/* Sums of gradients, a stack: at the bottom earlier batches, above them subtrees of this one. */
	double *sum[MAX_SUMS];       /* [links] each */
	uint32_t sums, depth, below; /* how many there are, in use, and in use before the batch began */
	double value[MAX_OPS][TILE]; /* of an update's formula */
};

/* ---- pass.c ---- */

void ref_begin(Program *p, bool noisy, uint64_t update); /* weights of a pass, the same for all its cases */
void ref_forward(Program *p, uint64_t t);                /* step t of the example whose places are set */
void ref_score(Program *p, uint64_t t, Tally *tally);
/* All steps of the example whose places are set, forward and back: adds its gradient to sum. */
void ref_learn(Program *p, uint64_t steps, double *sum, Tally *tally);

#endif
