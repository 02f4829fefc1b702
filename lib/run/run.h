/* SPDX-License-Identifier: MIT */
/* run: one network being trained: its program, its position, its reports. */
#ifndef RUN_H
#define RUN_H

#include "target.h"

bool until_reached(const Until *u, const struct Tally *t); /* report.c */

/* Position of a run: all that resuming needs besides weights and rule state. */
typedef struct Position {
	uint64_t epoch;       /* finished epochs */
	uint64_t cases, data; /* of the training data: number, checksum */
	uint64_t done;        /* examples of the current epoch already used */
	uint64_t updates;
	Tally tally; /* of the current epoch so far */
	double best; /* lowest error so far (on test data, if given): for keep-best and patience */
	uint64_t best_epoch;
	double seconds;   /* of training passes, over all resumptions */
	double simulated; /* the same on the clock of a simulated machine, if the target is one */
	Tally last;       /* of the last finished epoch */
	Tally test;       /* last measurement on test data */
} Position;

/* Option target auto: to be chosen when there is data; chosen, and no data is bound yet. */
typedef enum TargetFrom { TARGET_GIVEN, TARGET_OPEN, TARGET_CHOSEN } TargetFrom;

struct mp_run { /* the public handle */
	Ctx cx;
	const Net *net;
	Options opt;
	const Target *target; /* NULL until the run has started */
	TargetFrom target_from;
	Plan *plan;
	Program *program;
	Position at;
	Scale scale; /* of the data it was trained on, in keep; goes into the weights file, as do the classes */
	const char *const *classes;
	uint32_t class_count;
	const char *schema;           /* of the table it was trained on (lib/table), as JSON; NULL: none */
	struct Schema *parsed_schema; /* api: of the text schema_of */
	const char *schema_of;
	struct Metrics *kept_metrics; /* of the model when it was saved (lib/table); NULL: not known */
	struct Measurement *measured; /* api: the last measurement; NULL: none */
	int saved_error; /* error function of the weights file, -1: none; mp_run_test uses it unless error_set */
	bool error_set;  /* option error was set */
	mp_report report;
	StopFlag stop;                     /* set by mp_run_stop, also from a signal handler */
	struct BackgroundSave *background; /* NULL: no background save was started */
	mp_tick_fn *tick;
	void *tick_user;
	double tick_seconds;                                                /* tick NULL: no ticks */
	struct Guard *guard;                                                /* NULL: option guard is off */
	void (*test_hook)(void *user, int hook, void *sum, uint64_t bytes); /* monitor.h */
	void *test_hook_user;
	struct Ranks *job;     /* NULL: not part of a job */
	struct Ranks *ranks;   /* that share every batch; NULL: this process trains alone */
	mp_point history[512]; /* thinned out as it fills: every stride-th epoch */
	uint32_t points;
	uint64_t stride;
	Buf text; /* result of mp_run_get */
	/* with option keep-best: weights of the best epoch, float or (Target.f64) double; and its Position */
	void *best_weights;
	Position best_at;
	Pool *order_pool;     /* NULL, or threads that make orders of examples */
	bool diverged;        /* weights that were to be saved are not finite */
	bool training;        /* until its last report: no other data may be bound */
	bool seed;            /* one of many restarts: whether weights are finite is checked at the end only */
	char fingerprint[33]; /* of the weights, when training ended */
	mp_restarts restarts; /* count 0: no such call */
	const mp_seed *seeds; /* [restarts.done] */
};

/* ---- observers of the training loop ---- */

/* An observer has restored the weights and the Position of an earlier update. Never leaves run_train. */
#define ROLLED_BACK ((Status)100)
#define TRY(step)                   \
	do {                            \
		Status try_status = (step); \
		if (try_status != MP_OK)    \
			return try_status;      \
	} while (0)

/* Calls of the training loop, in their order. Each returns MP_OK or ROLLED_BACK, or fails. */
typedef struct Observer {
	Status (*begin_epoch)(void *self);
	Status (*before_update)(void *self); /* the Position is about to be used */
	Status (*before_batch)(void *self, const Batch *b);
	Status (*after_sum)(void *self, const Batch *b);   /* the gradient of the batch is complete */
	Status (*after_apply)(void *self, const Tally *t); /* weights are updated, the Position is that of the next */
	Status (*before_export)(void *self);               /* weights are about to be evaluated or kept */
	Status (*before_save)(void *self);                 /* weights may be about to be saved: a tick */
	void (*after_epoch)(void *self);                   /* the Position has changed */
	Status (*before_end)(void *self);
} Observer;

/* ---- run.c ---- */

int run_error(const Run *r); /* the error function to measure by: that which loaded weights were trained with */
void run_check_error(Ctx *cx, const Net *net,
                     int error); /* fails if the outputs are not those that it is defined for */
void run_start(Run *r); /* plan, compile, initial weights: once; target auto is cpu, if target_choose has not chosen */
bool run_can_move(const Run *r, const char *target); /* to a target with the same bits */
void run_move(Run *r);                               /* a run that has started goes on with the target of its options */
void run_first_weights(Ctx *cx, const Net *net, const Target *target, Program *program, uint64_t seed);
void run_occupy(Run *r); /* sets `training` until the public call ends; fails if it is set */
void run_check_data(Ctx *cx, const Net *net, const Data *d, bool labelled); /* fails unless sizes fit */
/* fails if a target is outside the range of its error function */
void run_check_targets(Ctx *cx, const Net *net, const Options *o, const Data *d);
const ErrorFn *run_domain(const Net *net, int error); /* of all targets; NULL: groups have their own */
void run_check_training(Run *r, const Data *d);       /* and targets are in the domain of the error function */
uint64_t best_bytes(const Run *r);                    /* of r->best_weights */
void best_put(Run *r, uint64_t first, uint64_t count, const double *w);
double best_weight(const Run *r, uint64_t link);
void run_fingerprint(Run *r, char out[33]); /* of the current weights */

/* ---- choose.c: target auto ---- */

bool target_is_auto(const Options *o);
/* Sets the option, with a note; a run that has begun moves. seeds: 0, or so many restarts. */
void target_choose(Run *r, const Data *data, uint64_t seeds);
/* Calls fn, which makes the target ready to train. If auto has chosen it, what it fails for becomes a note, and target
 * cpu is made ready instead. */
void target_begin(Run *r, void (*fn)(void *arg), void *arg);

/* ---- report.c: reports and history ------------------------------------------------------------- */

void report_fill(Run *r, const Data *data, double rate); /* r->report, from r->at */
void report_note(Run *r, bool counted);                  /* appends r->report to the history; counted: it has counts */
void report_note_last(Run *r);                           /* the last epoch of a run has counts */

/* ---- finite.c: divergence ---------------------- ------------------------------------------------ */

bool weights_finite(const double *w, uint64_t n);
bool run_finite(Run *r); /* all weights are */
uint64_t epochs_between_checks(const Net *net, const Data *d);
/* fails: in this epoch, of `updates` updates */
_Noreturn void run_diverged(Run *r, const Data *d, uint64_t epoch, uint64_t updates);

#endif
