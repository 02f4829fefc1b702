/* SPDX-License-Identifier: MIT */
/* Commands of the GF11: parsed arguments, reports, the performance model and simulated epochs. */
#ifndef GF11_STUDY_H
#define GF11_STUDY_H

#include "gf11_bench.h"
#include "gf11_sum.h"
#include "plot.h"

/* ---- model.c: the performance model of section 6.1 ---- */

typedef struct ModelInput {
	double W, Wi, U, C, P;   /* weights, those of the input layer, units, cases, processors */
	double ticks;            /* of a case */
	double B, M;             /* weights in a bundle, free words of SRAM */
	double clock;            /* ns of a cycle */
	double dram, exchange;   /* cycles between two DRAM transfers, two switch transfers: 4 in the report */
	double host_call, calls; /* cycles of a call, calls a case takes; 0: as in the report, which has no such term */
	int sum;
	bool printed; /* the equations as printed, errors included */
	bool whole;   /* a processor has whole cases, ceil(C / P), in whole groups */
} ModelInput;
/* cycles per epoch */
typedef struct ModelOutput {
	double forward, backward, units, memory, communication, host, total, mcps; /* units: model_program alone */
} ModelOutput;
void model_input(ModelInput *in, const Plan *plan, const Machine *m, uint64_t cases); /* all but P, sum and the flags */
ModelOutput model_epoch(const ModelInput *in);
double model_optimum(const ModelInput *in); /* number of processors in closed form */
/* the best integer number of processors in 1 .. most */
uint32_t model_search(const ModelInput *in, uint32_t most);
double model_ticks(const Plan *plan); /* of a case; 1: it does not settle */
double model_flops(const Plan *plan); /* operations per connection: Megaflops are so many times MCPS, section 7.2 */
double model_limit(const Plan *plan, const Machine *m, double procs); /* MCPS if every cycle adds or multiplies */

/* ---- timeline.c: an epoch in the order of time ---- */

enum { TIMELINE_PARTS = 5 };

typedef struct Stretch {
	size_t part;
	uint64_t calls, cycles;
} Stretch; /* adjacent calls for the same purpose */
typedef struct Timeline {
	Bp *b;
	uint64_t seen[TIMELINE_PARTS]; /* cycles of each part, so far */
	uint64_t waiting;              /* calls that no part has grown by yet */
	Stretch *stretch;
	uint64_t count, capacity;
} Timeline;
typedef struct CommandRun CommandRun;
void timeline_start(Timeline *t, Bp *b);
void timeline_end(Timeline *t);
void timeline_print(const CommandRun *c, const Timeline *t);

/* ---- epoch.c: a simulated epoch ---- */

/* Cycles of one pass over all cases and one update; the parts add up to the total. host = calls * host_call of the
 * machine. */
typedef struct Epoch {
	uint64_t forward, backward, units, moves, update, host, total;
	uint64_t receive, wait;       /* transfers from disks, stalls on disks */
	uint64_t bytes, carried;      /* from disks: all; those transferred while other routines run */
	uint64_t part;                /* from disks: cases in memory at a time */
	uint64_t calls, update_calls; /* update_calls: those of the update among them */
	/* operations of each processor; choices: compares, selects and masked moves; own: reads and writes at
	 * per-processor addresses */
	uint64_t adds, multiplies, choices, own;
	int64_t sum;          /* the summation method used */
	double seconds, mcps; /* simulated time */
} Epoch;
typedef struct EpochSpec {
	const Plan *plan;
	const Options *opt;
	const Machine *m;
	BpOptions o; /* dry: cycles counted, values not computed */
	uint64_t cases;
	Epoch e;            /* out, set by epochs_isolated */
	const char *why;    /* out: NULL, or why the simulation failed */
	Timeline *timeline; /* out; NULL: not asked for */
} EpochSpec;
Epoch epoch_simulate(Ctx *cx, const EpochSpec *s, Bp **made); /* made: out, the program; may be NULL */
double mcps_of(const Plan *plan, const Machine *m, uint64_t cases, double cycles);
/* The program as compiled, each routine as long as a list schedule with registers without limit. */
ModelOutput model_program(Ctx *cx, EpochSpec *s);

/* ---- commands.c ---- */

enum { MAX_PARTS = 64, MAX_THREADS = 256, MAX_OPERANDS = 16 };

typedef struct CommandDef CommandDef;
/* A command being run: its arguments and its report, which is written as text and as JSON; one of them is printed. */
struct CommandRun {
	Ctx *cx;
	const CommandDef *def;
	Buf *text;
	JsonWriter *json;
	Buf *csv; /* NULL: not requested */
	const char *operand[MAX_OPERANDS];
	uint32_t operands;
	/* NULL: not given */
	const char *machine, *kanata, *chrome, *procs, *sum, *compiler, *small, *units, *sigmoid, *net, *write, *ring,
		*tree;
	const char *dead[MAX_PARTS];
	size_t deads;
	const char *fault[MAX_PARTS];
	size_t faults;
	const char *set[MAX_PARTS], *show[MAX_PARTS], *base[MAX_PARTS], *route[MAX_PARTS];
	size_t sets, shows, bases, routes;
	const char *fill, *svg, *routine;
	bool operations, dependences, paths, timeline;
	uint64_t fault_seed; /* 1 if not given */
	const char *trials_of;
	uint64_t level, threads, cases, bundle, update, group, trials;
	bool as_json, as_csv, extended, sensitivity, routines, printed, whole, simulate, execute, traced;
	const Machine *m;
	ScheduleCache *cache; /* of all programs that the command compiles */
	double began;
	uint32_t used;                /* processors simulated; 0: all of the machine */
	double simulated;             /* seconds, if machines differ; 0: cycles at the clock of m */
	const char *failure, *remedy; /* the command fails with this after the report is printed; NULL: it succeeds */
};

#define FILL_A "#dbe9f6"
#define FILL_B "#fde3cf"
#define FILL_C "#d9f0e3"
#define FILL_0 "#f4f4f4"
const char *draw_label(Ctx *cx, const char *fmt, ...) PRINTF_LIKE(2, 3); /* text of a drawing, in scratch */

struct CommandDef {
	const char *name, *operand; /* in brackets: optional; NULL: none */
	uint32_t most;              /* operands */
	const char *options;        /* besides machine and json; with blanks around each */
	void (*run)(CommandRun *c);
};

/* Runs one command: argv[0] is its name, operands and options (--name=value, --flag) follow. The report goes to `out`,
 * or the command fails; or both, if the report says what failed. */
void gf11_tool(Ctx *cx, int argc, const char *const *argv, Buf *out);
Table report_table(const CommandRun *c, const Column *column, size_t columns); /* text, JSON and, if requested, CSV */
Table json_table(const CommandRun *c, const Column *column, size_t columns);   /* JSON and CSV alone */
Table text_table(const CommandRun *c, const Column *column, size_t columns);
/* The last lines of every report: what was simulated, how long the whole command took. `rate`: processor-cycles
 * executed in a second, where that was measured; 0: from cycles and the command's time. */
void report_end(const CommandRun *c, uint64_t cycles, double rate);
/* Calls body(arg). NULL, or the message of its failure, in scratch; its messages are discarded. Out of memory is passed
 * on. */
const char *attempt(Ctx *cx, void (*body)(void *arg), void *arg);
uint64_t whole_number(const CommandRun *c, const char *option, const char *value, uint64_t least, uint64_t most);
uint32_t threads_of(const CommandRun *c); /* --threads; default one for each CPU */

/* ---- routine_cmd.c: commands that make and run routines ---- */

void run_routines(CommandRun *c); /* efficiency --routines */
void run_schedule(CommandRun *c);

/* ---- program_cmd.c ------------------------------------------------------------------------------- */

void run_program(CommandRun *c);
void run_ops(CommandRun *c);
void run_microcode(CommandRun *c);
void run_trace(CommandRun *c);
void run_run(CommandRun *c);

/* ---- bench_cmd.c: executor speed ---- */

void run_bench(CommandRun *c);

/* ---- net_args.c: arguments of the back-propagation commands ---- */

enum { NETTALK_CASES = 12022 };
const Plan *plan_open(Ctx *cx, const char *path); /* of a file; NULL: NETtalk's network, section 6.3 */
const Plan *plan_layers(Ctx *cx, uint32_t inputs, uint32_t hidden, uint32_t outputs); /* fully connected, with biases */
bool plan_is_nettalk(const Plan *plan, uint64_t cases);
int choice_read(Ctx *cx, const char *option, const char *word, const char *const *names, int count);
/* --procs; default the usual ones below the machine's number, and all; of procs_read: those of Table 1. */
uint32_t procs_or(const CommandRun *c, const double *usual, uint32_t most, double **value);
uint32_t procs_read(const CommandRun *c, double **value);
uint32_t procs_one(const CommandRun *c);        /* --procs as one number; default all */
BpOptions compile_options(const CommandRun *c); /* sum, compiler, sigmoid, bundle, update, threads; dry */
EpochSpec epoch_spec(const CommandRun *c, const Plan *plan, uint64_t cases); /* with compile_options */
EpochSpec epoch_of(const CommandRun *c, const Plan *plan, uint64_t cases, int compiler, uint32_t procs, int sum);
/* Simulates epochs in a sub-context, freed on return: a program of the machine is large. Identical code is scheduled
 * once. */
void epochs_isolated(Ctx *cx, EpochSpec *s, uint32_t count);
Epoch epoch_isolated(Ctx *cx, EpochSpec *s); /* one epoch, or it fails */

/* ---- model_cmd.c ---- */

void run_model(CommandRun *c);
void run_networks(CommandRun *c); /* efficiency without --routines */

/* ---- sums.c: summation methods compared ---- */

enum { SUM_METHODS = SUMS + 1, MAX_CROSSINGS = 32 };
typedef struct SumMethod {
	const char *name;
	int sum;
	uint32_t update;
} SumMethod;                                     /* update: as in BpOptions */
extern const char put_note[];                    /* what pipelined and halving assume */
extern const SumMethod sum_methods[SUM_METHODS]; /* the first SUMS as sum_names has them */
typedef struct SumCost {
	double cycles;                 /* of an update, host calls included; NaN: not available */
	uint64_t update, calls, epoch; /* cycles without calls; calls; cycles of an epoch */
	const char *why;               /* NULL, or why it is not available */
} SumCost;
typedef struct SumPair {
	int a, b;
} SumPair;
/* From `from` processors on, one method is faster than another. */
typedef struct Crossing {
	int faster, slower;
	uint32_t from;
} Crossing;
/* Compared at 2, 3 ... 8, 16, 32 ... processors; bisection where the order at two of these differs. out:
 * [MAX_CROSSINGS]. */
uint32_t crossings_find(const CommandRun *c, const Plan *plan, int compiler, Crossing *out);
void crossings_print(const CommandRun *c, const Crossing *x, uint32_t count, bool text); /* JSON always */
void run_sums(CommandRun *c);
void run_updates(CommandRun *c); /* updates.c: rules and range check */

/* ---- table1.c: Table 1, and the constant fitted to it; table2.c: Table 2 ---- */

typedef struct Table1Cell {
	uint32_t procs;
	int sum;
	double mcps;
	bool fitted;
} Table1Cell;
extern const Table1Cell table1[]; /* as printed; fitted: calibrate uses it */
extern const uint32_t table1_cells;
enum { TABLE1_CELLS = 15 };
/* percent: simulated against printed; means of absolute values over all cells, over those not fitted */
typedef struct Table1Errors {
	double percent[TABLE1_CELLS], all, unfitted, host_call;
} Table1Errors;
/* sim: [TABLE1_CELLS], of the 1989 compiler */
void table1_simulate(const CommandRun *c, const Plan *plan, const Machine *m, const BpOptions *o, Epoch *sim);
double table1_rate(const Plan *plan, const Machine *m, const Epoch *e, double host_call); /* MCPS */
int64_t table1_fit(const Plan *plan, const Machine *m, const Epoch *sim);                 /* host call, cycles */
Table1Errors table1_errors(const Plan *plan, const Machine *m, const Epoch *sim, double host_call);
double table1_mcps(uint32_t procs, int sum); /* 0: the report has no such cell */
enum { BEST_ROWS = 9 };
extern const uint32_t best_procs[BEST_ROWS];
/* Table 1 in best mode: NETtalk's network, every summation method; .total 0: not requested, or not possible. */
typedef struct BestTable {
	Epoch cell[BEST_ROWS][SUMS];
	uint32_t rows;
	uint64_t cycles;
} BestTable;
void best_simulate(CommandRun *c, const Plan *plan, BestTable *t);
void run_table1(CommandRun *c);
void run_calibrate(CommandRun *c);
void run_table2(CommandRun *c);

/* ---- sensitivity.c: Table 1 by assumption; pooling.c: speed by cases per update; report_cmd.c: statements ---- */

void run_sensitivity(CommandRun *c);
void run_pooling(CommandRun *c);
void run_report(CommandRun *c);

/* ---- sweep.c, figures.c, small_cmd.c ---- */

void run_sweep(CommandRun *c);
void run_disks(CommandRun *c);                             /* disk_cmd.c */
const Machine *machine_checked(Ctx *cx, const Machine *m); /* fails if a file of these values would be refused */
void run_small(CommandRun *c);
void run_figures(CommandRun *c);
enum { DRAWINGS = 8 };
bool figure_wanted(const CommandRun *c, uint32_t number); /* by the operands; none: all */
void drawings_make(const CommandRun *c, Buf *svg);        /* drawings.c; [DRAWINGS] */
void drawings_write(const CommandRun *c, const Buf *svg); /* those that are not empty */
void run_evaluate(CommandRun *c);                         /* evaluate.c */
void svg_write(const CommandRun *c, const Buf *svg);      /* the file of --svg */
/* drawings.c: a compiled program of the compiler of 1989; steps.c: its sum, drawn step by step */
Bp *small_program(const CommandRun *c, const Plan *plan, BpOptions o, uint64_t cases);
void steps_svg(const CommandRun *c, const char *title, int sum, uint32_t procs, Buf *b);
void run_steps(CommandRun *c);
/* switch_svg.c: crossbars, links and routes; one of set and fan is NULL. */
void switch_svg(Ctx *cx, const Switch *s, const char *title, const Setting *set, const Fan *fan, Buf *out);
/* Files in the folder of --out. */
void folder_make(const CommandRun *c);
void figure_write(const CommandRun *c, const char *name, const char *ending, const Buf *text);

/* ---- switch_cmd.c ---- */

/* microprop gf11 switch; spec as above, or random:FIRST..LAST[:ROUTES] for all these seeds. NULL, or why it failed, in
 * scratch. JSON: members of the object that is open. svg: NULL, or where it is drawn. */
const char *switch_command(Ctx *cx, const Machine *m, const char *spec, const char *const *dead, size_t deads,
                           bool paths, JsonWriter *json, Buf *text, Buf *svg);

/* ---- diagnose_cmd.c ---- */

void run_diagnose(CommandRun *c);

#endif
