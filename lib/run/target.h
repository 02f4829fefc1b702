/* SPDX-License-Identifier: MIT */
/* target: the interface of a machine that trains, and what the library provides for it: rules, leaves, scores. */
#ifndef TARGET_H
#define TARGET_H

#include "data.h"
#include "formula.h"
#include "tally.h"
#include "microprop/restarts.h"

/* ---- rules.c, formula.c: update rules, one table (rules.def) ------------------------------------ */

extern const char *const param_names[P_COUNT];

typedef struct Rule {
	const char *name, *about, *formula;
	int states;
	const char *state[MAX_STATE]; /* names, as in checkpoints: state.<name> */
	size_t start[MAX_STATE];      /* offset in Options of the number a state starts at; 0: at zero */
	bool needs_norm;              /* P_CLIP = 1 / max(1, length of the gradient) */
	bool needs_count;             /* P_FIX1 and P_FIX2 change with every update */
} Rule;
extern const Rule rules[];
extern const uint32_t rule_count;

void formula_parse(Ctx *cx, const Rule *rule, Formula *f); /* fails on a bad table: a test parses every rule */
/* of a weight whose block has this rate factor */
double rule_start(const Rule *rule, int state, const Options *o, double factor);
void formula_print(const Rule *rule, const Formula *f, Buf *out);
/* Euclidean norm of a gradient, in leaf-tree order over link numbers. The function gives links first .. first + count
 * - 1: zero where they are frozen. */
typedef void GradientFn(const void *arg, uint64_t first, uint64_t count, double *g);
double rule_length(GradientFn *gradient, const void *arg, uint64_t n);
double rule_norm(const double *g, const uint8_t *frozen, uint64_t n); /* of an array; frozen NULL: none is */

/* What one update needs besides the gradient: filled by the trainer from options, schedule and update count. */
typedef struct Update {
	const Rule *rule;
	double param[P_COUNT];
} Update;
/* `update` counts from 1; `epochs` have passed when it begins, and `share` of one passes with it: for schedules. */
void update_fill(const Options *o, uint64_t update, double epochs, double share, Update *u);
/* Did older versions of target cpu compute the rule of these options with other numbers? */
bool rule_numbers_changed(const Options *o);

/* ---- leaves.c: leaves of a batch, and the tree of partial sums ------------------------------------- */

enum { LEAF_EXAMPLES = 512, MAX_LEAVES = 4096 };
uint32_t leaf_count(uint64_t examples);
void leaf_range(uint64_t examples, uint32_t leaves, uint32_t leaf, uint64_t *first, uint64_t *count);
uint32_t leaf_split(uint32_t n); /* of n > 1 leaves, those of the left subtree */
/* of sums that begin at leaf `first` or later */
uint32_t leaf_joins_from(uint32_t leaf, uint32_t leaves, uint32_t first);
uint32_t leaf_joins(uint32_t leaf, uint32_t leaves); /* joins of the two topmost partial sums due after this leaf */

/* ---- noise.c: random numbers that disturb values ------------------------------------------------- */

enum { NOISE_UNITS = 64 };   /* whose numbers are made together */
#define NO_UPDATE UINT64_MAX /* in place of the number of updates, where noise is on in a test */
uint64_t noise_key(const Options *o, uint64_t update, int place, uint32_t group); /* place: NOISE_AT_... */
/* of unit `unit` of its group, at a tick of case i; of a link: the one that it is tied to, if it is */
uint32_t noise_word(uint64_t key, uint64_t i, uint32_t tick, uint32_t unit);
uint32_t noise_weight_word(uint64_t key, uint64_t link);
double noise_value(int kind, uint32_t word); /* a normal deviate, or a number from -1 to 1 */
double noise_apply(const Noise *n, uint32_t word, double v);

/* ---- score.c: error and shares of a case -------------------------------------------------------- */

typedef struct Scorer {
	const ErrorFn *err; /* of groups that state none */
	const Net *net;     /* NULL: no output group has settings of its own */
	const Group *group; /* NULL, or all outputs are those of this group */
	double threshold;
	uint32_t targets;
	double middle; /* a single output is right on the target's side of this: 0 if any target is below 0, else 0.5 */
	const double *codes;
	uint32_t code_count;
} Scorer;
void scorer_init(Scorer *s, const Options *o, const Data *d);
void scorer_shape(Scorer *s, const Net *net); /* output groups may have settings of their own */
/* logs: of the outputs; NULL: not known, or the error does not need them. */
void score_case(const Scorer *s, const double *out, const Logs *logs, const float *target, double weight, Tally *t);
void tally_add(Tally *into, const Tally *t);
double tally_mean(const Tally *t); /* error of a scored case, one of weight 2 counting twice; 0 if there is none */
/* of leaves first .. end - 1, a subtree, in tree order */
Tally tally_leaves(const Tally *leaf, uint32_t first, uint32_t end);
/* The code word nearest to `out` (Euclid; the first on ties) over elements whose target is not NaN; target NULL:
 * over all. */
uint32_t code_nearest(const double *codes, uint32_t count, uint32_t width, const double *out, const float *target);

/* ---- the data of a run: run.c ---- */

uint64_t run_examples(const Net *net, const Data *d); /* data_examples, but 1 for copies without boundaries, */
void run_example(const Net *net, const Data *d, uint64_t example, uint64_t *first, uint64_t *count); /* and its cases */

/* ---- ticks.c: the cases of a settling network over time ---- */

/* A case lasts some ticks: rows of a sequence with the same inputs and targets. One, if the network does not settle. */
typedef struct TickPlan {
	uint32_t each; /* of a case, unless the data says otherwise */
	bool settles;
	uint32_t targets_from; /* first tick that has targets, counted from 0; */
	uint32_t inputs_end;   /* and the first without inputs */
	uint32_t block;        /* errors flow back in blocks of so many steps; 0: of any length */
} TickPlan;
TickPlan ticks_make(const Net *net, const Options *o);
uint64_t ticks_example(const TickPlan *t, const Data *d, uint64_t first, uint64_t count); /* of some cases */
uint32_t ticks_case(const TickPlan *t, const Data *d, uint64_t i);
uint32_t ticks_longest(const TickPlan *t, const Data *d); /* of any case */
/* Do errors flow from the step after `step` to this one? */
static inline bool ticks_carry(const TickPlan *t, uint64_t step) { return !t->block || (step + 1) % t->block; }
bool ticks_constant(const TickPlan *t, const Data *d);       /* inputs last as long as their cases */
void ticks_check(Ctx *cx, const Net *net, const Options *o); /* fails if options do not fit the network */

/* ---- targets ---- */

typedef struct mp_run Run;
struct Region;  /* monitor.h */
struct Monitor; /* monitor.h */

typedef struct Batch {
	const uint64_t *example; /* NULL: first, first + 1, ... */
	uint64_t first, count;
	uint64_t next_count; /* examples of the next batch, which follow in the same order; 0: not known */
	uint64_t update;     /* how many came before: for noise */
} Batch;

/* Updates for Target.run_updates, within one epoch or across several. The target stops early after an epoch that
 * reaches `until`, after an update whose error is not finite, and at the end of an epoch whose weights are not; or it
 * does nothing, and running update by update finds where that begins. It may also do fewer updates, up to the end of an
 * epoch if it has reached one, and is called again. */
typedef struct Updates {
	uint64_t examples, batch; /* of an epoch; of an update: the last of an epoch has the rest */
	uint64_t done;            /* examples of the first epoch that came before */
	uint64_t count;           /* updates, at most */
	uint64_t before;          /* updates before the first: for noise */
	const uint64_t *example;  /* NULL: file order; else the examples of all updates, one after the other, */
	void (*prepare)(void *of,
	                uint64_t updates); /* which this makes, of so many from the first on; NULL: they are there */
	void *of;
	const Update *update; /* [count] */
	bool same;            /* there is only one, for all */
	const Until *until;
	const StopFlag *stop;
	Tally *tally;    /* of each epoch: added to */
	uint64_t epoch;  /* how many came before the first one */
	bool few_counts; /* right and within are read of the last epoch that it ends, and of those of epoch_counted */
} Updates;
/* Is the epoch of this number, from 1 on, one whose counts are always formed? 32 are, while the number doubles. */
bool epoch_counted(uint64_t number); /* report.c */

/* The contribution of one rank to a batch: sums and tallies of its leaves. */
enum { MOST_SUMS = 2 * 12 }; /* maximal subtrees of any range of up to MAX_LEAVES leaves */
typedef struct Share {
	float *sum[MOST_SUMS]; /* [floats] of each of these subtrees, in order */
	uint32_t sums;
	uint64_t floats;    /* a multiple of 16 */
	float *total;       /* [floats] where the sum of the whole batch goes */
	const Tally *tally; /* by leaf number; of this rank's leaves */
} Share;

typedef struct Program Program;   /* compiled plan, private to the target */
typedef struct Restarts Restarts; /* many seeds: below */

/* What is to be trained, for TimeHooks.predict. Rows are cases, one for each tick. */
typedef struct TrainingWork {
	const Net *net;
	const Options *opt;
	const Data *data;
	double rows, operations; /* of an epoch; floating-point ones of a row */
	double steps;            /* rows of the longest example, which are computed one after the other */
	uint64_t batch, updates; /* examples of an update; of an epoch */
	uint64_t seeds;          /* networks to train: restarts, */
	bool together;           /* which a target may train side by side */
} TrainingWork;
/* Floating-point operations of a row. data: NULL, or index lists of it skip inputs that are 0. */
double row_operations(const Net *net, const Data *data);
uint64_t example_rows(const Net *net, const TickPlan *ticks, const Data *data); /* of the longest */
typedef struct Prediction {
	double start, epoch; /* seconds: once, and for an epoch of all seeds */
	const char *why_not; /* not NULL: the target cannot train this */
} Prediction;

/* Optional tables of a target: NULL where it does not support them. */

#define LAST_TICK UINT32_MAX

typedef struct RankHooks { /* batches shared by several processes */
	/* Sums and tallies of leaves [first, last); learn false: tallies only. */
	Status (*partial_sums)(Program *p, const Batch *b, uint32_t first, uint32_t last, bool learn, const StopFlag *stop,
	                       Share *out);
	void (*add)(Program *p, float *into, const float *from, uint64_t floats); /* as leaf sums join; multiple of 16 */
	uint64_t (*sum_floats)(const Program *p);                                 /* length of a sum */
	void (*use_total)(Program *p); /* Share.total is complete: it becomes the pending sum */
} RankHooks;

typedef struct GuardHooks {                            /* detection of silent data corruption: monitor.h */
	uint32_t (*regions)(Program *p, struct Region *r); /* memory that only updates write to; returns their number */
	/* Discard the pending sum and report to m from now on; m NULL: report nothing. */
	void (*attach)(Program *p, struct Monitor *m);
	/* * Checksum of a leaf (Monitor.leaf_checksum), computed on another core, which depends on `attempt`. */
	uint64_t (*recompute)(Program *p, const Batch *b, uint32_t leaf, uint32_t attempt, int *core);
	const Data *(*bound_data)(const Program *p);                            /* * as passes read it */
	uint64_t (*checksum)(const Program *p, const void *at, uint64_t bytes); /* * checksum_of, faster */
	/* * Calls fn, if not NULL, for all memory that nothing writes to while the data is bound. Sets constants right that
	 * lie among memory that passes write to; returns how many were not. */
	uint64_t (*tables)(Program *p, void (*fn)(void *arg, struct Region r), void *arg);
	bool fused_checksums; /* apply computes Monitor.before and Monitor.after */
} GuardHooks;

typedef struct RestartHooks { /* many seeds at once */
	/* Trains all seeds on the bound data, each with the bits of a run of its own. False: not supported for this
	 * network, data or options; nothing was done. */
	bool (*run)(Ctx *cx, Program *p, Restarts *all);
} RestartHooks;

typedef struct SimulatorHooks {                  /* a simulated machine */
	uint64_t (*cycles)(const Program *p);        /* of the machine's clock, so far */
	double (*cycle)(const Program *p);           /* seconds of one */
	void (*report)(const Program *p, Buf *json); /* figures of the run: members of a JSON object, or nothing */
	void (*finish)(Ctx *cx, Program *p);         /* training has ended, successfully or not: write logs */
	bool faults;                                 /* option fault can inject faults */
} SimulatorHooks;

/* Damaged copies of a network. Units that are removed send 0, and count as 0 where they are outputs. */
typedef struct Damages {
	uint32_t count;         /* networks */
	const uint8_t *removed; /* [count][units] which units are; none of them is an input */
	uint64_t links;         /* of a single network: so many weights are others */
	const uint64_t *link;   /* [links] */
	const double *weight;   /* [links] */
} Damages;

typedef struct TimeHooks {
	/* For target auto; all that have it give the bits of target cpu. */
	void (*predict)(Ctx *cx, const TrainingWork *w, Prediction *p);
	/* * Seconds spent so far on kernels that are compiled when their first work comes: no time of training. */
	double (*compile)(const Program *p);
} TimeHooks;

/* What evaluate gives besides outputs and the tally of all cases. */
typedef struct WatchHooks {
	/* From now on `out` of evaluate takes the activations of these units, none of them an input, at this tick of each
	 * case, counted from 0, in place of the outputs; count 0: the outputs again. Nothing is written for cases that
	 * have fewer ticks. */
	void (*units)(Program *p, Span units, uint32_t tick);
	/* * From now on evaluate also adds the tally of each case to tally[case]; NULL: no longer. */
	void (*cases)(Program *p, Tally *tally);
	/* * Evaluates all cases by damaged copies of the network: adds to tally[network][case] or, where out is not NULL,
	 * sets out[network][case][output]. Bits are those of evaluate with such weights. False: not supported here;
	 * nothing was done. */
	bool (*damaged)(Ctx *cx, Program *p, const Damages *d, Tally *tally, double *out);
} WatchHooks;

/* A machine that can train: a folder in target/ with this one const struct, and a line in api/targets.c.  Hooks marked
 * with * may be NULL. */
typedef struct Target {
	const char *name, *about;
	bool f64; /* weights are double: files hold F64 */
	/* * Targets with the same word here give the same bits: a run may go on with another of them. */
	const char *(*bits)(const Options *o);
	void (*caps)(Caps *caps);
	Program *(*compile)(Ctx *cx, const Plan *plan, const Options *opt);
	/* data: NULL, or what it is printed for. The machine need not be there. */
	void (*print)(Ctx *cx, Program *p, const Data *data, Buf *out);
	/* Data to train or test on from now; allocates the buffers it needs. */
	void (*bind)(Ctx *cx, Program *p, const Data *data);
	/* * Bind data that alternates with other data: neither has changed since it was last bound, so buffers prepared
	 * then may be used.  NULL: bind does it. */
	void (*rebind)(Ctx *cx, Program *p, const Data *data);
	/* Forward and backward over leaves [first, last) of the batch, added to the pending sum; *stop ends it early. */
	Status (*accumulate)(Program *p, const Batch *b, uint32_t first, uint32_t last, const StopFlag *stop, Tally *t);
	void (*apply)(Program *p, const Update *u); /* update the weights by the pending sum, and clear it */
	/* * Bulk: accumulate and apply for several updates. Returns how many were done; 0: not supported for these. */
	uint64_t (*run_updates)(Program *p, const Updates *s);
	/* Forward only: tally and, where out is not NULL, outputs [count * outputs] of examples' cases in order. */
	Status (*evaluate)(Program *p, uint64_t first_example, uint64_t count, const StopFlag *stop, double *out, Tally *t);
	/* 0 weights, 1.. rule state; canonical order, links first .. first + count - 1, or ALL_LINKS from first on. After
	 * a partial set, the rest up to the last link must follow before the values are used. */
	void (*get)(const Program *p, int which, uint64_t first, uint64_t count, double *v);
	void (*set)(Program *p, int which, uint64_t first, uint64_t count, const double *v);
	void (*gradient)(const Program *p, double *v); /* the pending sum, for checks */
	/* * All weights are finite. False may be wrong (padding may hold NaN): confirm by get. True is never wrong. */
	bool (*finite)(const Program *p);
	const RankHooks *ranks;
	const GuardHooks *guard;
	const RestartHooks *restarts;
	const SimulatorHooks *simulator;
	const WatchHooks *watch;
	const TimeHooks *time;
} Target;

extern const Target *const target_table[];   /* api/targets.c; NULL after the last */
const Target *target_find(const char *name); /* api/targets.c: the table; NULL if no such */
const char *target_names(Arena *a);          /* "the targets here are: cpu, ref, cuda, gf11" */

/* ---- restarts.c: many seeds of one network ------------------------------------------------------ */

struct Restarts {
	uint64_t first, count; /* seeds */
	uint32_t rank, ranks;  /* this process trains the seeds whose number is rank, modulo ranks */
	uint64_t own;          /* how many these are */
	mp_seed *seed;         /* [count] results, by seed; one that has not ended has no fingerprint and has not failed */
	uint64_t next;         /* of its own, the next to begin: threads change this and the four below atomically */
	uint64_t ended, solved, failed, epochs;
	Run *run;
	mp_restarts_fn *fn; /* may be NULL */
	void *user;
	double began, reported;
	uint64_t parallel; /* seeds that the target trains at a time */
	const char *note;  /* NULL, or how they are trained, where users should know */
};

/* Starts the run; allocates results in keep. ranks: processes that are to share the seeds. */
void restarts_init(Restarts *all, Run *r, uint64_t count, uint32_t ranks, const Data *data, const Data *test);
void restarts_share(Restarts *all, uint32_t rank,
                    uint32_t ranks);   /* before any seed begins: which of them are its own */
bool restarts_ended(const mp_seed *s); /* it has a result */
bool restarts_take(Restarts *all,
                   uint64_t *number); /* the next seed to begin, from 0; false: none, or a stop was requested */
/* The same of several, with numbers `ranks` apart: how many, at most `most`. */
uint64_t restarts_take_some(Restarts *all, uint64_t most, uint64_t *first);
void restarts_end(Restarts *all, uint64_t number, const mp_seed *result);
void restarts_count(Restarts *all, const uint64_t *number, uint64_t count); /* the same, of results that are stored */
void restarts_report(Restarts *all);              /* calls fn if that is due, on the caller's thread */
void restarts_sum(Restarts *all, uint64_t cases); /* run->restarts, from all results */
void run_restart(Run *r, uint64_t seed);          /* resets the run to the start of this seed */
/* Whether a seed ends here; fills solved, epochs, error, right, within.  The tally is that of its last full epoch. */
bool seed_ends(const Options *o, const Until *u, const Tally *t, uint64_t epoch, uint64_t updates, mp_seed *result);

#endif
