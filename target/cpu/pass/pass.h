/* SPDX-License-Identifier: MIT */
/* cpu: networks on this computer's own vector units.
 *
 *   Plan --layout.c--> Layout (parts, panels) --lower.c--> List of steps --steps.c--> gradient --update.c--> weights
 *                                                          batch.c: leaves of a batch over threads
 *
 * Cases are rows. A row holds every unit of the network in a column of its own; units that are computed alike are
 * adjacent and are called a part. Weights from a range of columns to a part are a panel: a small dense matrix. What a
 * pass does with a panel is one Product (kern.h), and everything between products is element by element. So the order
 * in which a sum is formed is the order of columns, which is canonical, or of rows, which is that of the batch:
 * nothing here depends on the instruction set, on threads, or on how rows are cut into chunks.
 *
 * When data is bound, passes are lowered to a list of steps: kernel calls with all their arguments but the rows and
 * the thread's share (Slice). */
#ifndef PASS_H
#define PASS_H

#include "monitor.h"
#include "isa.h"
#include "flush.h"
#include "cpu_layout.h"

/* ---- options.c: options of this target ---------------------------------------------------------- */

enum { PRECISION_FP32, PRECISION_BF16 };
enum { INPUT_AUTO, INPUT_DENSE, INPUT_INDEX };
typedef struct CpuOptions {
#include "option_fields.inc"
#include "options.def"
} CpuOptions;
extern const OptionTable cpu_options;
static inline CpuOptions *cpu_own(const Options *o) { return options_of(o, &cpu_options); }

enum { MAX_THREADS = 4096 };

/* ---- rows of cases that a thread works on ------------------------------------------------------- */

/* Row buffers, [capacity][cols] each. ROW_DELTA holds errors, then deltas; ROW_NET net inputs, for unit functions
 * whose slope needs them; ROW_ERROR the error against the targets of output units that also have targets; ROW_HELD, of
 * groups that integrate, the error of what they integrate; ROW_CLEAN outputs before their noise. */
enum { ROW_ACT, ROW_DELTA, ROW_NET, ROW_ERROR, ROW_HELD, ROW_CLEAN, ROW_BUFFERS, ROW_NONE = ROW_BUFFERS };
typedef struct RowSpace {
	uint32_t capacity;       /* rows */
	float *row[ROW_BUFFERS]; /* NULL: not needed */
	float *y;                /* [rows][targets] */
	float *near;             /* the same, as run_near makes them; NULL: no group has radii */
	float *scaled;           /* [rows] weights of cases times the factor on the error of a group */
	float *out;              /* [rows][outputs, padded], where outputs are not one part */
	float *weight, *error;   /* [rows] weights and errors of the cases */
	uint8_t *verdict;        /* [rows] VERDICT_... */
	const uint32_t **index;  /* [rows] index lists in the data, */
	const float **values;    /* their values, if the data has some, */
	uint32_t *lengths;       /* and their lengths */
} RowSpace;

/* The cases in the rows, and where their inputs and targets are. */
typedef struct Chunk {
	uint64_t *cases;   /* [capacity] case of the data in each row */
	TickRow *tick;     /* [capacity] NULL: the network does not settle */
	uint32_t *begin;   /* [capacity + 1] first rows of examples */
	uint32_t *step;    /* [capacity] rows by time step: first cases of all sequences, second cases, ... */
	uint32_t *step_at; /* [capacity + 1] where each time step begins there */
	bool *carried;     /* [capacity] do errors flow from the next row to this one? Not from another sequence or block of
	                    * steps */
	uint32_t *case_at; /* [capacity] NULL likewise; rows that are first ticks of cases */
	uint32_t capacity;
	const struct Masks *masks; /* NULL: no unit is removed */
	/* up to here constant while a run trains; a guard verifies it (cpu_tables) */
	uint32_t examples, steps;
	uint32_t cases_at;         /* how many case_at has */
	bool contiguous;           /* in the data */
	const float *inputs;       /* NULL: copied to ROW_ACT; else in the data, of row 0 if contiguous, else of case 0 */
	const float *target;       /* of row 0: y, or in the data; */
	const uint64_t *target_at; /* NULL, or the case of each row, and target is that of case 0 */
	const InputRows *by_input; /* NULL, or the index lists transposed */
} Chunk;

typedef struct Scratch {
	float *codes; /* for codes_right */
	size_t codes_size;
	float *links; /* [layout->link_scratch] transposed rows for single links */
	float *bias;  /* a row of sums of bias weights */
	float *x;     /* [inputs] of one case, where they are not one part */
} Scratch;

enum { MAX_SUMS = 32 }; /* more than twice 1 + log2(MAX_LEAVES) */
/* A sum of weight changes, and its checksum while it is not in use. */
typedef struct Sum {
	float *v;
	uint64_t checksum;
} Sum;
typedef struct SumStack {
	Sum sum[MAX_SUMS]; /* [floats] each */
	uint32_t capacity, depth;
	uint32_t touched; /* sums from this one on have not been written to */
} SumStack;

typedef struct Space {
	RowSpace rows; /* from here to Chunk.examples constant while a run trains */
	Scratch scratch;
	struct HalfSpace *half; /* with bf16: half.h */
	Chunk chunk;
	SumStack sums;
	bool untouched;    /* rows are allocated, but not yet written to by the thread that uses them */
	float max_change;  /* of an update, by this thread: Monitor.max_change, */
	uint64_t checksum; /* and its part of the checksum of the sum that was used */
} Space;

/* Units that are removed, by networks, of which rows may be copies. */
typedef struct Masks {
	uint32_t *network; /* [rows] */
	float *factor;     /* [networks][cols] 0: removed; else 1 */
	bool *part;        /* [parts] units of it are removed in some network */
} Masks;

/* ---- the list of steps -------------------------------------------------------------------------- */

/* All that a step is given at run time. */
typedef struct Slice {
	uint32_t first, rows;
	const uint32_t *at;       /* NULL, or the numbers of the rows; first is 0 then */
	uint32_t time;            /* of the rows in their sequences, where there are time steps */
	uint32_t pair;            /* 0, or ticks alternate between two blocks of so many rows each */
	uint32_t thread, threads; /* gradient: thread i of n computes its share of the weights, */
	bool fresh;               /* sets the sum, or else adds to it */
	float *sum;
} Slice;

typedef struct Step Step;
typedef void StepFn(const Program *p, Space *s, const Step *st, const Slice *r);
struct Step {
	StepFn *run;
	const Part *part;
	const Panel *panel;
	uint8_t a, c;          /* ROW_... that a kernel reads and writes, */
	uint32_t a_col, c_col; /* and from which column on */
	bool from_data;        /* a: inputs, which may be read from the data */
	/* where ticks alternate between blocks of rows: sums begin with those in ROW_DELTA of block 0; a is that of
	 * block 0, or of the tick before, there in column a_before, and zero in the first tick */
	bool held, constant, before, zero;
	uint32_t a_before;
	union { /* arguments; pointers into rows are filled in at run time */
		Product product;
		Lists lists;
		struct {
			const LinkSums *links;
			const float *link_weights;
		};
		struct {
			const Noise *noise;
			int place; /* NOISE_AT_... */
		};
		struct {
			Errors errors;
			Scores scores;
			float error_scale;
			bool near; /* targets are those of run_near */
		};
		float offset; /* deltas: added to the slope; gain: the factor */
		struct {
			float dt, start; /* of groups that integrate */
			bool carried;    /* errors of the next row are added */
		};
	};
};

/* Steps of a stage run one after the other for all rows, or for each time step in order, or in reverse. Of settling
 * networks, for the first ticks of cases alone, or for the ticks of a case that have targets, case by case; or for each
 * tick of all cases, whose rows alternate between two blocks: no tick but the last one is kept. */
enum { EACH_ROW, EACH_TIME, EACH_TIME_BACK, EACH_CASE, EACH_TARGET, EACH_TICK };
typedef struct Stage {
	const char *name;
	int each;
	uint32_t first, end;
} Stage;
enum { MAX_STAGES = 12 };
typedef struct List {
	Step *step;
	uint32_t steps, stages;
	Stage stage[MAX_STAGES];
	uint32_t backward, gradient; /* stages that these begin with */
} List;

/* ---- program ------------------------------------------------------------------------------------ */

typedef struct Codes Codes;
enum { KNOWN_CODES = 2 }; /* tables that are kept: training and test data may have different ones, and alternate */

/* All that was derived from some data. */
typedef struct Bound {
	const Data *of;   /* as given; NULL: nothing is bound here, or making it failed */
	Arena arena;      /* of all that follows, */
	Arena work;       /* and that passes write to */
	const Data *data; /* with index lists made of dense inputs where option input says so */
	bool index;       /* inputs are index lists */
	TickPlan ticks;
	Scorer scorer;
	Codes *codes;              /* NULL: it has none */
	uint64_t longest;          /* cases of its longest example */
	uint32_t chunk, team_rows; /* rows that a thread takes at a time, and a team, in the rows of space 0 */
	List learn, test, online;
	struct TinyRun *tiny;       /* NULL: the network is not small enough, or the data */
	struct ByInput *by_input;   /* NULL: index lists are used by case only */
	struct KeptHalves *kept;    /* NULL: rounded inputs are not kept */
	struct DamagedRun *damaged; /* NULL: no damaged copy was evaluated yet */
} Bound;
enum { BOUND_NOW, BOUND_BEFORE, BOUNDS };

/* The sum of weight changes for the next update. */
typedef struct Pending {
	float *v; /* [floats] */
	uint64_t checksum;
	bool full;
	Sum *lent;      /* NULL, or v is the array of this sum, and */
	float *spare;   /* this is the one of its own */
	bool untouched; /* its own has not been written to */
} Pending;

/* Weights with the noise of an update. */
typedef struct NoisyWeights {
	float *w, *copies; /* as of Program */
	uint32_t *link;    /* [floats] numbers of links */
} NoisyWeights;

/* Tied links, by place: the sum of one is added to that of the other, which goes to both. */
typedef struct Tie {
	uint64_t from, to;
} Tie;

struct Program { /* constant while data is bound, up to `bound` */
	const Net *net;
	const Plan *plan;
	const Options *opt; /* of the run: some may change while it trains */
	const Rule *rule;
	Formula formula;
	int isa;
	const Kern *kern;
	Layout *layout;
	float *w, *state[MAX_STATE]; /* [floats] */
	float *copies;               /* [copy_floats] transposed weights */
	float *zero;                 /* a row of zeros, as long as any row of cases or weights */
	struct Monitor *monitor;     /* NULL: no guard */
	struct Halves *half;         /* NULL: all is fp32; else half.h */
	NoisyWeights *noisy;         /* NULL: no weight has noise */
	Tie *tie;                    /* [ties] */
	uint64_t ties;
	struct Online *online; /* NULL: the network or an option is not for it */
	Pool *pool;            /* NULL: one thread */
	uint32_t threads;
	Space *space;         /* [threads] */
	Tally *tally;         /* [MAX_LEAVES] */
	Bound *bound;         /* NULL: no data yet; else bounds[BOUND_NOW] */
	Bound bounds[BOUNDS]; /* of the data that is bound, and of the one before if they alternate */
	Codes *known[KNOWN_CODES];
	Pending pending;
	uint64_t noise_update; /* updates before this pass, for its noise; */
	bool noise_made;       /* and noisy has its weights */
	bool awake;            /* the last batch was shared by all threads */
	Span watched;          /* units whose activations a test gives; count 0: outputs */
	uint32_t watched_tick;
	Tally *watched_cases; /* NULL: a test does not give tallies of cases */
};

/* ---- space.c: buffers --------------------------------------------------------------------------- */

float *floats_take(Arena *a, size_t n);            /* zeroed, on a cache line, in full vectors */
void weights_take(Ctx *cx, Program *p, Layout *l); /* not yet cleared */
void weights_clear(Program *p, int which);         /* 0 weights and their copies, 1.. rule state */
void weights_drop(Ctx *cx, const Program *p, int which);
void copies_drop(Ctx *cx, const Program *p); /* and the pending sum */
uint32_t longest_row(const Layout *l);
void space_take(Ctx *cx, Program *p, Bound *b);      /* for the data of b; sets longest, chunk, team_rows */
void space_grow(Ctx *cx, Program *p, uint32_t rows); /* of thread 0: for so many rows at least */
uint64_t rows_mend(Program *p);                      /* constants set right, of GuardHooks.tables */

/* ---- lower.c: the list of steps ----------------------------------------------------------------- */

/* online: nothing is fused yet; damaged: a test with masks; rolled: the same, without keeping ticks */
enum { LOWER_TEST, LOWER_LEARN, LOWER_ONLINE, LOWER_DAMAGED, LOWER_ROLLED };
List lower(Arena *a, const Program *p, const Bound *b, int kind);
/* Weights in the form that a pass needs. transposed: it is the other one, and the kernel transposes it. */
typedef struct Form {
	const float *w;
	size_t row;
	bool transposed;
} Form;
Form form_by_source(const Program *p, const Panel *panel);
Form form_by_target(const Program *p, const Panel *panel);
bool reads_index(const Program *p, const Bound *b, const Panel *panel); /* from index lists, not from rows */
bool can_roll(const Program *p, const Bound *b);                        /* is LOWER_ROLLED possible? */

/* ---- print.c ------------------------------------------------------------------------------------ */

void step_print(const Program *p, const Bound *b, const Step *st, const char *name, Buf *out); /* name NULL: its own */
void list_print(const Program *p, const Bound *b, const List *list, Buf *out);

/* ---- load.c: cases of the bound data ------------------------------------------------------------ */

void case_prefetch(const Data *d, uint64_t i);
/* the first cases of those that come next: example[0] ... or first ...; products prefetch the others */
void cases_prefetch(const Data *d, const uint64_t *example, uint64_t first, uint64_t count);
void chunk_locate(const Program *p, Space *s, uint32_t rows); /* what can be read in place; by chunk->cases */
void rows_load(const Program *p, Space *s, uint32_t first, uint32_t rows, bool targets);
void row_load(const Program *p, Space *s, bool in_place, bool targets); /* the case of row 0, located and loaded */

/* ---- steps.c: what steps do --------------------------------------------------------------------- */

StepFn run_load, run_product, run_product_bf16, run_back_bf16, run_index, run_links, run_links_back, run_units, run_one,
	run_contexts, run_gather, run_errors, run_scores, run_outcomes, run_codes, run_zero, run_copy_error, run_carry,
	run_spread, run_integrate, run_integrate_back, run_deltas, run_add_error, run_mask, run_starts;
bool group_contiguous(const Layout *l, const Group *g); /* are its columns adjacent? */
void steps_run(const Program *p, Space *s, const List *list, uint32_t stage, uint32_t end, const Slice *r);
float *row_at(const Program *p, const Space *s, int buffer, const Slice *r, uint32_t col);
/* of the targets of row `first`; *at: NULL, or the cases of the rows, and the result is that of case 0 */
const float *targets_at(const Program *p, const Space *s, uint32_t first, const uint64_t **at);
void rows_tally(const Program *p, const Space *s, uint32_t first, uint32_t rows, Tally *t);
void row_outputs(const Program *p, const Space *s, uint32_t row, double *out); /* or what is watched */

/* ---- noise.c ------------------------------------------------------------------------------------ */

StepFn run_noise, run_gain, run_near, run_within;
void noisy_take(Ctx *cx, Program *p); /* for its layout */
Program noisy_view(const Program *p); /* whose weights are those with noise */
/* A pass begins: its update, and with noise of weights, these. */
void noise_begin(Program *p, bool learn, uint64_t update);

/* ---- gradient.c --------------------------------------------------------------------------------- */

StepFn run_gradient, run_gradient_bf16, run_gradient_index, run_gradient_links;

/* ---- by_input.c: transposed index lists --------------------------------------------------------- */

struct ByInput *by_input_make(const Program *p, Bound *b); /* NULL: not worth their memory */
const InputRows *by_input_rows(const Program *p, const Space *s,
                               uint32_t rows); /* of the chunk; NULL: there are none */
void by_input_forget(const Program *p);        /* all are made anew: the data was corrupted */

/* ---- sums.c: checksums and joins of sums -------------------------------------------------------- */

/* of floats from `at` on; checksums of ranges add up */
uint64_t sum_checksum(const Program *p, const float *v, uint64_t at, uint64_t n);
void sum_check(const Program *p, const Sum *sum);
uint64_t leaf_checksum(const Program *p, float *v, const Tally *t);
void leaf_done(const Program *p, uint32_t leaf, Sum *sum, uint32_t thread, int core);
Sum *sum_next(const Program *p, SumStack *s);
void sums_join(const Program *p, Sum *into, const Sum *from);
void sums_join_top(const Program *p, SumStack *s);
void pending_own(Program *p); /* it gets an array of its own: threads are going to use theirs */
void pending_touch(Program *p);
void pending_add(Program *p, Sum *sum);
void pending_checksum(Program *p);

/* ---- batch.c: leaves of a batch over threads ---------------------------------------------------- */

Status batch_learn(Program *p, const Batch *b, uint32_t first, uint32_t last, const StopFlag *stop, Tally *t);
Status batch_share(Program *p, const Batch *b, uint32_t first, uint32_t last, bool learn, const StopFlag *stop,
                   Share *out);
uint64_t batch_recompute(Program *p, const Batch *b, uint32_t leaf, uint32_t attempt,
                         int *core); /* as GuardHooks.recompute */
Status batch_test(Program *p, uint64_t first, uint64_t count, const StopFlag *stop, double *out, Tally *t);
/* Takes examples of the batch from i on, at most `most` rows of them, or one; returns the rows. */
uint32_t take_examples(const Program *p, Space *s, const Batch *b, uint64_t *i, uint64_t end, uint32_t most);
void make_time_steps(const Program *p, Chunk *c, uint32_t first,
                     uint32_t end); /* rows of these examples by time step */

/* ---- damaged.c ---------------------------------------------------------------------------------- */

bool damaged_run(Ctx *cx, Program *p, const Damages *d, Tally *tally, double *out); /* as WatchHooks.damaged */

/* ---- update.c ----------------------------------------------------------------------------------- */

/* and, after all states, the zeros, then with bf16 the rounded weights */
enum { REGION_WEIGHTS, REGION_COPIES, REGION_STATE };
uint32_t update_regions(const Program *p, Region *r);
void update_apply(Program *p, const Update *u);
void ties_take(Ctx *cx, Program *p);  /* for its layout */
void update_copies(const Program *p); /* transposed copies of all weights, after they were set */

/* ---- codes.c: is a code word nearer than the target's own? -------------------------------------- */

/* one of those known, or a new one among them; NULL: the data has none */
Codes *codes_make(Ctx *cx, Codes *known[KNOWN_CODES], const Data *d);
size_t codes_scratch(const Codes *c); /* floats */
typedef struct CodesArgs {
	const Scorer *scorer;
	const Kern *kern;
	double most; /* largest absolute output, or infinite */
	uint32_t rows;
	const float *out, *y; /* y: [rows][targets] */
	size_t row;
	float *scratch;
	uint8_t *verdict; /* [rows] VERDICT_RIGHT is added where it is so */
} CodesArgs;
void codes_right(const Codes *c, const CodesArgs *a);
/* For other targets. Words are all pairs of those of two parts, or those of one. */
enum { CODE_PARTS = 2 };
uint32_t codes_parts(const Codes *c);
const CodeWords *codes_words(const Codes *c, uint32_t part);
uint32_t codes_number(const Codes *c, uint32_t part, uint32_t word); /* of a word in a part */
/* the word that the target is; *near: it is none, but this one is nearest */
uint32_t codes_own(const Codes *c, const double *words, const float *y, bool *near);
double codes_largest(const Codes *c); /* square of the longest word */

#endif
