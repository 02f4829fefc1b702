/* SPDX-License-Identifier: MIT */
/* cpu: networks on this computer's own vector units.
 *
 *   Plan --layout.c--> Layout (parts, panels) --run.c--> sums of weight changes --update.c--> weights
 *                                                  batch.c: leaves over threads
 *
 * Cases are rows. A row holds every unit of the network in a column of its own; units that are computed alike stand
 * side by side and are called a part. Weights from a run of columns to a part are a panel: a small dense matrix.
 * What a pass does with a panel is one Product (kern/kern.h), and everything between products is element by
 * element. So the order in which a sum is formed is the order of columns, which is canonical, or of rows, which is
 * that of the batch: nothing here depends on the kind of vectors, on threads, or on how rows are cut into chunks. */
#ifndef PASS_H
#define PASS_H

#include "watch.h"
#include "isa.h"
#include "cpu_layout.h"

enum { PRECISION_FP32, PRECISION_BF16 };
enum { INPUT_AUTO, INPUT_DENSE, INPUT_INDEX };
typedef struct CpuOptions {
#include "option_fields.inc"
#include "options.def"
} CpuOptions;
extern const OptionTable cpu_options;
static inline CpuOptions *cpu_own(const Options *o) { return options_of(o, &cpu_options); }

typedef struct Codes Codes;
enum { KNOWN_CODES = 2 }; /* tables that are kept: training and test data may have different ones, and take turns */
typedef struct Sum {
	float *v;
	uint64_t seal;
} Sum; /* of weight changes, and what sealed it when it came to rest */

enum { MAX_THREADS = 4096 };
enum { MAX_SUMS = 32 }; /* of weight changes in a worker's hands: more than twice 1 + log2(MAX_LEAVES) */

/* ---- program ------------------------------------------------------------------------------------ */

/* Rows of cases that a thread works on, taken once.  Arrays of rows are [rows][cols] unless it says otherwise. */
typedef struct Space {
	uint32_t rows;          /* there is room for so many */
	uint32_t chunk;         /* and of the data bound now so many are taken at a time */
	float *act, *err, *net; /* outputs; errors, then deltas; net inputs, where a unit function wants them back */
	float *own;             /* where an output unit has targets of its own: the error it makes itself */
	float *y;               /* [rows][targets] */
	float *out;             /* [rows][outputs, padded], where outputs are not one part */
	float *room;            /* for codes_right */
	size_t rooms;
	float *weight, *value;     /* [rows] weights and errors of the cases */
	uint8_t *verdict;          /* [rows] VERDICT_... */
	const uint32_t **index;    /* [rows] index lists: where they are, */
	const float **values;      /* and their values, if the data has some; */
	uint32_t *lengths;         /* and how long */
	const InputRows *by_input; /* NULL, or the same by input */
	bool in_turn;              /* cases of the rows stand side by side in the data */
	/* NULL, or inputs are read where they stand in the data: those of row 0 if in turn, else of case 0 */
	const float *direct;
	bool late;                 /* the outputs are made with their scores, not before */
	const float *target;       /* of row 0: y, or where they stand in the data, */
	const uint64_t *target_at; /* and there NULL or which they are */
	float *links;              /* [link_room] rows that are turned for links one by one */
	float *bias;               /* a row of sums for the true unit's weights */
	float *x;                  /* [inputs] of one case, where they are not one part */
	uint64_t *cases;           /* [rows] which case of the data a row is */
	uint32_t *begin;           /* [rows + 1] first rows of the examples in hand */
	uint32_t examples;
	uint32_t *step;    /* [rows] rows in the order of steps: first cases of all sequences, second cases, ... */
	uint32_t *step_at; /* [rows + 1] where each step begins there */
	uint32_t steps;
	/* of cases, begin, step, step_at and list there is room for so many rows: those of a team, too */
	uint32_t steps_room;
	struct HalfSpace *half; /* with bf16: half.h */
	Sum sum[MAX_SUMS];      /* [room] each: a stack */
	uint32_t sums, depth;
	float reach;      /* of an update, by this thread: Watch.reach, */
	uint64_t summed;  /* and its part of the seal of the sum that was used */
	bool fresh;       /* nobody has written to its rows yet, */
	uint32_t touched; /* nor to sums from this one on */
} Space;

/* What was made of some data, so that it need not be made again when its turn comes: what a program has of the data
 * that is bound. */
typedef struct Bound {
	const Data *of;   /* as it was given; NULL: none, or not all of it is there */
	Arena arena;      /* where all this is, */
	const Data *data; /* also index lists that were made of dense inputs */
	bool index;
	Scorer scorer;
	Codes *codes; /* among those known */
	uint64_t longest;
	uint32_t chunk, team_rows;
	struct TinyRun *tiny;
	struct ByInput *by_input;
	struct KeptHalves *kept;
} Bound;
enum { BOUND_NOW, BOUND_BEFORE, BOUNDS };

struct Program {
	const Net *net;
	const Plan *plan;
	const Options *opt; /* the run's own: what may change during a run, changes here too */
	const Rule *rule;
	Formula formula;
	int isa;
	const Kern *kern;
	Layout *layout;
	float *w, *state[MAX_STATE]; /* [room] */
	float *copies;               /* [copies] other forms of the weights */
	float *zero;                 /* a row of zeros, as long as any */
	float *pending;              /* [room] the sum of weight changes that waits for an update, */
	uint64_t pending_seal;       /* and its seal */
	Sum *lent;                   /* NULL, or whose array that is: nobody else needs it until the next batch */
	float *spare;                /* if so, the array it would have otherwise; */
	bool fresh;                  /* nobody has written to that yet */
	struct Watch *watch;         /* NULL: nobody guards this run */
	bool has_pending;

	Bound bound[BOUNDS]; /* of the data that is bound, and of the data before if they take turns */
	struct Halves *half; /* NULL: all is fp32; else half.h */

	const Data *data; /* bound */
	bool index;       /* its inputs are index lists */
	Scorer scorer;
	Codes *codes;              /* NULL: it has none */
	Codes *known[KNOWN_CODES]; /* the last there were */
	uint64_t longest;          /* cases of its longest example */
	Pool *pool;                /* NULL: one thread */
	bool awake;                /* the last batch was work for all its threads */
	uint32_t threads;
	uint32_t team_rows;       /* that a team takes at a time: they are those of the first space */
	Space *space;             /* [threads] */
	Tally *tally;             /* [MAX_LEAVES] */
	struct Online *online;    /* NULL: not in this way */
	struct TinyRun *tiny;     /* NULL: not in this way */
	struct ByInput *by_input; /* NULL: index lists are by case alone */
};

/* ---- target.c: the hooks, and what all share ---------------------------------------------------- */

/* and, after all states, the zeros, then with bf16 the rounded weights */
enum { REGION_WEIGHTS, REGION_COPIES, REGION_STATE };
uint32_t cpu_regions(Program *p, Region *r); /* as Target.regions */
float *floats_take(Arena *a, size_t n);      /* zeroed, on a cache line, in full sixteens */
/* turned: it is the other form, and the pass has to turn it */
typedef struct Form {
	const float *w;
	size_t row;
	bool turned;
} Form;
Form form_by_source(const Program *p, const Panel *panel);
Form form_by_target(const Program *p, const Panel *panel);

/* ---- by_input.c: index lists by input ----------------------------------------------------------- */

struct ByInput *by_input_make(Arena *a, const Program *p); /* NULL: they would not be worth their room */
/* of the rows in hand; NULL: there are none */
const InputRows *by_input_rows(const Program *p, const Space *s, uint32_t rows);

/* ---- run.c: rows of cases forward and backward -------------------------------------------------- */

/* All work on rows first .. first + rows - 1 of the space; those of a network that remembers, on the examples in
 * hand. */
void case_fetch(const Data *d, uint64_t i);                /* from memory into the cache, without waiting for it */
void rows_find(const Program *p, Space *s, uint32_t rows); /* what need not be loaded, for all that are in hand */
void rows_load(const Program *p, Space *s, uint32_t first, uint32_t rows, bool targets); /* what s->cases says */
/* These cases come next, example[0] ... or first ...: calls the first of them into the cache. */
void rows_ahead(const Program *p, const uint64_t *example, uint64_t first, uint64_t count);
void rows_forward(const Program *p, Space *s, uint32_t first, uint32_t rows);
bool rows_late(const Program *p); /* may a learning pass make the outputs with their scores? */
/* Where the sums of a part begin: with the true unit's weights, or at zero; *k skips the panel that has nothing
 * else. */
const float *first_weights(const Program *p, const Part *t, uint32_t *k);
/* Row 0 of a case alone: s->cases[0] is loaded; how it is scored, but for its targets, which may stand elsewhere
 * (false: by rows_score). */
void row_load(const Program *p, Space *s, bool in_place, bool targets);
bool row_scoring(const Program *p, Space *s, Errors *e, Scores *scores);
void rows_score(const Program *p, Space *s, uint32_t first, uint32_t rows, bool back); /* back: errors of outputs too */
void rows_backward(const Program *p, Space *s, uint32_t first, uint32_t rows);
void rows_tally(const Space *s, uint32_t first, uint32_t rows, Tally *t);
void rows_outputs(const Program *p, const Space *s, uint32_t row, double *out);
/* Adds to sum, or sets it where it is fresh.  Thread i of n takes its share of the weights. */
void rows_gradient(const Program *p, const Space *s, uint32_t rows, bool fresh, uint32_t i, uint32_t n, float *sum);

/* ---- space.c ------------------------------------------------------------------------------------ */

void space_take(Ctx *cx, Program *p); /* buffers for the data that is bound */

/* ---- batch.c: leaves of a batch over threads ---------------------------------------------------- */

Status batch_learn(Program *p, const Batch *b, uint32_t first, uint32_t last, const volatile int *stop, Tally *t);
Status batch_share(Program *p, const Batch *b, uint32_t first, uint32_t last, bool learn, const volatile int *stop,
                   Share *out);
uint64_t batch_again(Program *p, const Batch *b, uint32_t leaf, uint32_t turn, int *core); /* as Target.again */
void pending_seal(Program *p); /* it rests from now, if sums are watched */
/* numbers of a sum from `at` on: parts add up */
uint64_t seal_run(const Program *p, const float *v, uint64_t at, uint64_t n);
void batch_sum(Program *p); /* the case that waits for its update becomes a sum of weight changes after all */
Status batch_test(Program *p, uint64_t first, uint64_t count, const volatile int *stop, double *out, Tally *t);

/* ---- update.c ----------------------------------------------------------------------------------- */

void update_apply(Program *p, const Update *u);
void update_copies(Program *p); /* other forms of all weights, after they were set */

/* ---- codes.c: is a code word nearer than the target's own? -------------------------------------- */

/* one of those known, or a new one among them; NULL: the data has none */
Codes *codes_make(Ctx *cx, Codes *known[KNOWN_CODES], const Data *d);
size_t codes_room(const Codes *c); /* so many floats are needed for it */
typedef struct CodesArgs {
	const Scorer *scorer;
	const Kern *kern;
	double most; /* what no output exceeds, or infinite */
	uint32_t rows;
	const float *out, *y; /* y: [rows][targets] */
	size_t row;
	float *room;
	uint8_t *verdict; /* [rows] VERDICT_RIGHT is added where it is so */
} CodesArgs;
void codes_right(const Codes *c, const CodesArgs *a);

#endif
