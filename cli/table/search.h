/* SPDX-License-Identifier: MIT */
/* A search for the settings of a network: trials, folds, successive halving.  Used by cmd_tune.c. */
#ifndef SEARCH_H
#define SEARCH_H

#include "cli.h"

enum { PARAMETERS = 6, MOST_FOLDS = 32 };

/* One parameter of the space: its name and the values it may have, as options take them. */
typedef struct Parameter {
	const char *name;
	const char *const *value; /* ends with NULL */
} Parameter;
extern const Parameter space[PARAMETERS]; /* hidden, function, rule, rate, batch, decay */

typedef struct Trial {
	uint32_t number;
	uint8_t choice[PARAMETERS]; /* index of the value of each parameter */
	uint32_t rung;              /* the last that it was evaluated at, from 0 */
	double score[MOST_FOLDS];   /* at that rung: accuracy or R2; NaN: it diverged */
	double loss[MOST_FOLDS];    /* log loss or root mean squared error: decides between equal scores */
	double epochs[MOST_FOLDS];  /* of the best epoch */
} Trial;

/* Cases of one fold, encoded with the scales of its training part. */
typedef struct Fold {
	mp_data *train, *test;
	char *network[64]; /* topology texts by hidden size and function; NULL: not made yet */
} Fold;

typedef struct Search {
	mp_table *table;
	Fold fold[MOST_FOLDS];
	uint32_t folds;
	uint64_t seed;
	uint32_t threads;
	bool regression;
	Trial *trial; /* [trials] sorted after each rung: best first; after a signal there may be none */
	uint32_t trials;
	double deadline;  /* no trial begins after this moment; 0: none */
	FILE *log;        /* NULL: none */
	uint64_t trained; /* networks */
	/* After each trial, one at a time; best: mean score so far of this rung, NaN: none. And after each rung. */
	void (*trial_done)(void *user, const struct Search *s, uint32_t rung, uint32_t done, uint32_t of, double best);
	void (*progress)(void *user, const struct Search *s, uint32_t rung, uint32_t done, uint32_t of);
	bool (*stopped)(void); /* by a signal: the trials that are done count */
	void *user;
} Search;

void trial_draw(Trial *t, uint64_t seed, uint32_t number);
double trial_score(const Search *s, const Trial *t);     /* mean over the folds */
double trial_deviation(const Search *s, const Trial *t); /* standard deviation over the folds */
double trial_epochs(const Search *s, const Trial *t);    /* median over the folds */
const char *trial_value(const Trial *t, uint32_t parameter);
/* Makes the folds. */
int search_begin(Search *s, Args *a);
/* All rungs: every rung keeps the best third and gives them three times the epochs. */
int search_run(Search *s, Args *a);
void search_end(Search *s);
/* A network with these settings for the table as it is cut now. */
int trial_topology(mp_table *table, const Trial *t, char **text);
int trial_options(mp_run *run, const Trial *t, uint64_t seed, double epochs, bool tested);

#endif
