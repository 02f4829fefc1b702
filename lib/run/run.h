/* SPDX-License-Identifier: MIT */
/* run: one network being trained: its program, where it stands, what is reported of it. */
#ifndef RUN_H
#define RUN_H

#include "target.h"

bool until_reached(const Until *u, const struct Tally *t); /* report.c */

/* Where a run stands: all that resuming needs besides weights and rule state. */
typedef struct Position {
	uint64_t epoch;       /* finished epochs */
	uint64_t cases, data; /* of the data it trains on: how many, checksum */
	uint64_t done;        /* examples of the current epoch already used */
	uint64_t updates;
	Tally tally; /* of the current epoch so far */
	double best; /* best value of what `best` and patience watch (error; of the test data if given) */
	uint64_t best_epoch;
	double seconds;   /* of training passes, over all resumptions */
	double simulated; /* the same on the clock of a simulated machine, if the target is one */
	Tally last;       /* of the last finished epoch */
	Tally test;       /* last measurement on test data */
} Position;

struct mp_run { /* the public handle */
	Ctx cx;
	const Net *net;
	Options opt;
	const Target *target; /* NULL until the run has started */
	Plan *plan;
	Program *program;
	Position at;
	Scale scale; /* of the data it was trained on, in keep; goes into the weights file, as do the classes */
	const char *const *classes;
	uint32_t class_count;
	int saved_error; /* error function of the weights file, -1: none; what testing measures unless told otherwise */
	bool error_set;  /* told */
	mp_report report;
	volatile int stop;                 /* set by mp_run_stop, also from a signal handler */
	struct BackgroundSave *background; /* NULL: nothing was saved so */
	mp_tick_fn *tick;
	void *tick_user;
	double tick_seconds;                                                /* tick NULL: nobody wants to know */
	struct Guard *guard;                                                /* NULL: nobody looks for silent corruption */
	void (*test_hook)(void *user, int hook, void *sum, uint64_t bytes); /* monitor.h */
	void *test_hook_user;
	struct Ranks *job;     /* NULL: there is none */
	struct Ranks *ranks;   /* those that share the work; NULL: this process trains alone */
	mp_point history[512]; /* thinned out as it fills: every stride-th epoch */
	uint32_t points;
	uint64_t stride;
	Buf text; /* what mp_run_get was printed into */
	/* with option keep-best: those of the best epoch, float or, of a target with f64, double; and where that was */
	void *best_weights;
	Position best_at;
	bool diverged;        /* weights that were to be saved are not finite */
	bool training;        /* until its last report: other data cannot be bound */
	bool seed;            /* one of many: its weights are looked at when it ends, as those of the others are */
	char fingerprint[33]; /* of the weights, when training ended */
	mp_restarts restarts; /* count 0: no such call */
};

/* ---- run.c ---- */

void run_start(Run *r); /* plan, compile, initial weights: once */
void run_first_weights(Ctx *cx, const Net *net, const Target *target, Program *program, uint64_t seed);
void run_occupy(Run *r); /* sets `training` until the public call ends; fails if it is set */
void run_check_data(Ctx *cx, const Net *net, const Data *d, bool labelled); /* sizes fit, or it fails */
void run_check_training(Run *r, const Data *d); /* and targets are what the error function takes */
uint64_t best_bytes(const Run *r);              /* of r->best_weights */
void best_put(Run *r, uint64_t first, uint64_t count, const double *w);
double best_weight(const Run *r, uint64_t link);
void run_fingerprint(Run *r, char out[33]); /* of the weights it has */

/* ---- report.c: what is said about a run --------------------------------------------------------- */

void report_fill(Run *r, const Data *data, double rate); /* r->report, from r->at */
void report_note(Run *r);                                /* it becomes a point of the history */

/* ---- finite.c: numbers that are no longer finite ------------------------------------------------ */

bool weights_finite(const double *w, uint64_t n);
bool run_finite(Run *r); /* are all weights? */
uint64_t epochs_between_looks(const Net *net, const Data *d);
/* in this epoch, each of so many updates */
_Noreturn void run_diverged(Run *r, const Data *d, uint64_t epoch, uint64_t updates);

#endif
