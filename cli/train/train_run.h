/* SPDX-License-Identifier: MIT */
/* A run of `microprop train`, for the files of this folder. */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include "cli.h"

typedef struct Train {
	Session s;
	Session all; /* tables: trained once more on all rows */
	Args *args;
	TableRun table;
	const mp_metrics *metrics; /* tables: of the rows held out, else of all */
	const char *data, *test;   /* names */
	uint64_t words;
	uint64_t restarts; /* 0: not asked for */
	bool json;
	bool speaks; /* rank 0 of a job: prints reports and writes files */
	Progress progress;
	RunDir dir;
	Epochs epochs;
	Viewer *viewer;    /* the page; NULL: none */
	Norms *norms;      /* NULL: not asked for */
	double ticked;     /* when the last checkpoint was due */
	int failed;        /* exit status of what went wrong while reporting */
	const char *saved; /* file the final weights are in */
} Train;

bool stopped_by_signal(void);
int train_result(Train *t); /* result.c: prints it; an exit status */

#endif
