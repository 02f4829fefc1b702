/* SPDX-License-Identifier: MIT */
/* Back-propagation on the GF11 (sections 3 to 6 of the report): a Plan becomes memory addresses, routines and the
 * host's program of calls.
 *
 *   Plan --layout--> addresses --compile--> routines in the controller --drive: the host calls them--> weights,
 *   cycles
 *
 * Every processor holds the whole network and its own cases; they meet only in the update. */
#ifndef GF11_NET_H
#define GF11_NET_H

#include "gf11_sim.h"
#include "target.h"

/* ---- options.c: the target's own options -------------------------------------------------------- */

typedef struct Gf11Options {
#include "option_fields.inc"
#include "options.def"
} Gf11Options;
extern const OptionTable gf11_options;
static inline Gf11Options *gf11_own(const Options *o) { return options_of(o, &gf11_options); }

/* ---- compile.c: a network for the machine ------------------------------------------------------- */

/* how weight changes meet: sections 4.4.1, 4.4.2, 10.2 */
enum { SUM_RING, SUM_TREE, SUM_PIPELINED, SUM_HALVING, SUMS };
enum { SIGMOID_TABLE, SIGMOID_POWER2 }; /* section 4.3 */
enum { COMPILER_1989, COMPILER_BEST };
enum { SMALL_AUTO, SMALL_STRAIGHT, SMALL_TREE, SMALLS }; /* sums of layers with few units: section 10.3 */
enum { DISKS_OFF, DISKS_AUTO, DISKS_ON };
extern const char *const disks_names[3];
/* Steps of a ring cut into calls where that hides latencies, or always in one call; DRAM moves of the tree's update
 * before and after its sums, or overlapped with them. */
enum { RING_CUT, RING_WHOLE, RING_KINDS };
enum { TREE_APART, TREE_OVERLAPPED, TREE_KINDS };
extern const char *const ring_names[RING_KINDS], *const tree_names[TREE_KINDS];
extern const char *const sum_names[SUMS], *const sigmoid_names[2], *const compiler_names[2], *const small_names[SMALLS];

/* Sequences of the largest batch, for recurrent networks. */
typedef struct BpSequences {
	const uint64_t *length;
	uint64_t count;
	uint32_t lanes; /* a processor has memory for so many of them side by side, */
	uint64_t steps; /* and for so many cases of each, or more */
} BpSequences;

#define STREAM_ALWAYS ((uint64_t)INT64_MAX) /* BpOptions.data: more than any memory holds */
typedef struct BpOptions {
	uint32_t procs;       /* 0: all of the machine */
	const uint16_t *port; /* [procs] which ones; NULL: the first */
	int sum, sigmoid, compiler, small;
	uint32_t bundle; /* weights in a bundle at most; 0: about 1000, chosen by the compiler */
	uint32_t update; /* weights in an update call; 0: chosen by the compiler */
	uint32_t group;  /* cases in a group at most; 0: as many as fit into SRAM. 1: the loop of figure 6 */
	int ring, tree;  /* compiler 1989: RING_..., TREE_... */
	uint32_t threads;
	const BpSequences *sequences; /* NULL: every case stands for itself */
	struct Faults *faults;        /* NULL: none */
	/* DISKS_OFF; DISKS_AUTO: it fails if not all of the data fit into DRAM; DISKS_ON: data come from disks */
	int disks;
	uint64_t data; /* cases of all the data, where a batch is not all; 0: it is */
	bool traced;
	const Switch *known;   /* whose dead parts no configuration may use; NULL: none is dead */
	const uint16_t *alone; /* [ports] every configuration is this one instead; NULL: those of the program */
	bool dry;      /* calls are counted, nothing is executed: bp_new sets controller.dry before it loads routines */
	bool estimate; /* and routines get no microcode: their length is estimated (the performance model) */
	struct RangeLog *log; /* where the range check counts; NULL: a log of its own */
	/* schedules shared with other programs of the same context; NULL: bp_new makes one of its own */
	ScheduleCache *cache;
} BpOptions;

/* ---- bundles.c: links cut into bundles, units into chunks --------------------------------------- */

/* A link as the routines see it. */
typedef struct BpLink {
	Unit source, target;
	uint64_t link;
} BpLink;

/* A bundle: links of some sources to some targets of one level, as one routine for the way forward and one for the
 * way back. Bundles that look the same from their own bases share routines (section 9). */
typedef struct BpBundle {
	uint32_t level;
	uint32_t first, links, words; /* place of its first weight; how many; words up to the next bundle's first */
	Unit source, target;          /* units its routine's addresses start from */
	bool input;                   /* sources are inputs or true only: no error goes back */
	const BpLink *link;           /* [links] by source, then by target: the order of its weights */
	const bool *opens;            /* [links] the first one to its target: its net input starts here */
	const bool *ends, *ends_back; /* [links] the last one of a tree of its target's net input, of its source's error */
	uint32_t levels, levels_back; /* of these trees at most; 0: all sums are chains */
	uint32_t forward, backward;   /* numbers in the controller */
	/* likewise: DRAM moves of its weights, of weights and changes, of changes back */
	uint32_t fetch, fetch_both, flush;
} BpBundle;

/* Units of one level whose outputs and errors one routine computes. */
typedef struct BpUnit {
	Unit unit;
	int fn;
	int32_t output; /* its place among the outputs, -1: none */
	bool linked;    /* has incoming links */
	bool direct;    /* the slope of the error function cancels its own: output minus target is what is left */
	bool final;     /* and there is no other error, for it has no outgoing links */
} BpUnit;
typedef struct BpChunk {
	uint32_t level;
	Unit first; /* unit its routines' addresses start from */
	const BpUnit *unit;
	uint32_t units;
	uint32_t slope;                /* place of its first slope word, of gaussian units */
	uint32_t activate, unit_error; /* numbers in the controller */
	bool has_error;                /* there is something to do in unit_error */
} BpChunk;

/* ---- memory_map.c: where everything lies -------------------------------------------------------- */

/* Processor memory. SRAM: tables, the summed error, caches of weights and weight changes, then a group of cases:
 * for each `units` outputs, net inputs (errors on the way back) of the computed ones, its targets, its weight,
 * perhaps its flag; at the end room for spilled words. DRAM: cases, weights, weight changes, rule state: an array
 * for each state of the rule. Weights lie in the order of the bundles: place[link]. Every array begins at a
 * multiple of dram_banks, and so does every bundle in it: words between bundles are zero and stay so. Factors
 * follow the states. */
typedef struct Layout {
	uint32_t units; /* with the true unit */
	uint32_t outputs;
	/* SRAM */
	uint32_t total;                                   /* one word: summed squared error of the processor */
	uint32_t weight_cache, change_cache, cache_words; /* cache_words each */
	uint32_t scratch, scratch_words;                  /* for update routines: the caches; at least MIN_SCRATCH words */
	bool resident; /* the caches hold all weights: they are fetched once an update, not once a group */
	uint32_t cases, case_words, group; /* first case of a group, words of a case, cases in a group */
	uint32_t tick_words;               /* words of a case for each of its ticks, one after the other */
	uint32_t stride, case_step;        /* word f of case i of a group lies at cases + f * stride + i * case_step */
	uint32_t case_out, case_net, case_target, case_weight, case_slope; /* first words of each kind in a case */
	/* of networks with copies: 0 at the start of a sequence; a word for rings of copies */
	uint32_t case_flag, case_aside;
	uint32_t case_kept; /* of groups that integrate: a word for each unit */
	uint32_t spill;     /* from here on the scheduler's */
	/* DRAM */
	uint32_t data, slots; /* first case, cases it can hold */
	/* buffers for cases, one after the other; two: `data` alternates between them (disks) */
	uint32_t data_buffers, buffer_words;
	uint32_t disk_near; /* SRAM: words on their way from disks */
	/* so many cases stand side by side, word k of each (inputs, targets, weight, flag) data_step words from word k
	 * - 1, in a block of data_words */
	uint32_t data_side, data_step, data_words;
	uint32_t weights, changes, states, factors; /* first words; factors: only if there are any */
	uint32_t words;    /* of each of these arrays, with the words between bundles; a multiple of dram_banks */
	uint32_t dram_end; /* first word not used */
} Layout;
enum { MIN_SCRATCH = 1024, SPILL_WORDS = 32 };

/* A pair of the copy list, as words of a case: to = from, or start at the start of a sequence. */
typedef struct BpCopy {
	uint32_t from, to;
	float start;
} BpCopy;

typedef struct Bp {
	Ctx *cx;
	const Plan *plan;
	const Net *net;
	const Options *opt;
	const Gf11Options *gf11;
	const Rule *rule; /* of the updates */
	BpOptions o;
	const Machine *m;
	Switch *sw;
	Processors *p;
	Controller *c;
	ScheduleCache *cache;
	Layout at;
	uint32_t *place;      /* [links] word of a link in the weight arrays */
	const float *factor;  /* [Layout.words] on the rate of the weight there, less than zero: frozen; NULL: all 1 */
	float decay;          /* share of a weight that is added to its gradient */
	float range;          /* total weight changes beyond this are faults; 0: no check */
	struct RangeLog *log; /* of these */
	uint32_t *net_word;   /* [units] where a unit's net input stands among those of a case */
	Unit *input, *output; /* [inputs], [outputs] their units, in the order of the data */
	BpBundle *bundle;
	uint32_t bundles; /* forward order */
	BpChunk *chunk;
	uint32_t chunks;                       /* likewise */
	uint32_t slopes;                       /* gaussian units: a word each in a case */
	uint32_t *output_error, output_errors; /* routines: errors of the outputs of a case, summed error */
	uint32_t *fetch_case, fetch_cases;     /* routines: a case from DRAM */
	BpCopy *copy;
	uint32_t copies;                 /* in this order */
	uint32_t *copy_call, copy_calls; /* routines: contexts from the case before */
	TickPlan ticks;                  /* of a settling network; else one */
	uint32_t tick;                   /* that is computed */
	bool *back;                      /* [units] errors go back to it */
	struct BpTicks *settling;        /* bp_ticks.c's own; NULL: the network does not settle */
	/* compile.c: routines that exceed the microcode store; NULL when all are loaded */
	struct Overflow {
		const Routine **routine;
		uint32_t routines;
	} * overflow;
	uint32_t clear;        /* routine: summed error is zero */
	struct BpSum *summing; /* sum.c's own */
	struct BpBest *best;   /* best.c's own; NULL: compiled as in 1989 */
	struct BpDisk *disk;   /* disk.c's own; NULL: the host loads the data */
	bool changes_start;    /* the first pass of an epoch starts changes at zero: the update need not clear them */
	bool started;          /* it has been; what stands in the changes is of this epoch */
	/* What is loaded. */
	uint64_t loaded;    /* cases, padding among them */
	uint32_t *lanes;    /* [slots / group] lanes that a case stands in, at each step; NULL: in all of them */
	uint64_t processed; /* cases, padding included: by all processors */
	/* [ticks with targets][slots * procs * outputs] outputs of the loaded cases, of the last pass */
	float *result;
	/* Where the cycles went: with the host's calls they add up to the controller's account. */
	uint64_t cycles_forward, cycles_units, cycles_backward, cycles_moves, cycles_update;
	/* of routines that only receive from disks; in which nothing runs: not the controller's */
	uint64_t cycles_receive, cycles_wait;
	double compile_seconds;
	const StopFlag *stop; /* NULL, or looked at after every group of cases: not 0 ends the pass there */
} Bp;

/* Plans and compiles everything; fails with the number that exceeds a limit (section 9: DRAM, SRAM, microcode,
 * registers). cases: the most that are loaded at once, over all processors. */
Bp *bp_new(Ctx *cx, const Plan *plan, const Options *opt, const Machine *m, const BpOptions *o, uint64_t cases);
void bundles_make(Bp *b); /* bundle, chunk, place, factor and Layout.words */
/* The same with bundles for so many cases in a call, of `lines` lines each at most. */
void bundles_make_for(Bp *b, uint32_t cases, uint32_t lines);
/* Its links by target, then by source, as numbers of its weights (section 6.2.1); in scratch. */
uint32_t *bundle_by_target(const Bp *b, const BpBundle *n);
/* Different sources or targets of a bundle, in order; in scratch. */
typedef struct Ends {
	Unit *unit;
	uint32_t units, *number;
} Ends; /* number: [net units] of a unit among them */
Ends bundle_ends(const Bp *b, const BpBundle *n, bool sources);
void layout_make(Bp *b, uint64_t cases_per_processor);
void layout_case(Bp *b);             /* what there is in a case */
uint32_t layout_data(const Bp *b);   /* words of a case's data: inputs, targets, weight, flag */
uint64_t layout_arrays(const Bp *b); /* words of DRAM that a weight takes */
/* can a group have so many, and do weights stay in SRAM then? */
bool layout_fits(const Bp *b, uint32_t cases, bool *resident);
uint32_t layout_ends(Bp *b); /* both ends of SRAM: tables, spilled words; the first free word */
void layout_dram(Bp *b, uint64_t cases_per_processor); /* DRAM; needs words and data_... */
uint64_t layout_blocks(const Bp *b, uint64_t blocks);  /* so many blocks of cases, or what fits twice, for disks */
/* Schedules (equal code once), checks and loads a recorded routine; its number in the controller. */
uint32_t bp_load(Bp *b, Code *code);
Routine *bp_schedule(const Bp *b, Code *code); /* equal code once; may be longer than a block */
uint32_t bp_load_routine(Bp *b, Routine *r);
/* DRAM moves that fit into one routine, a multiple of dram_banks. */
uint32_t moves_a_call(const Machine *m);
bool bundles_alike(const Bp *b, const BpBundle *x, const BpBundle *y); /* the same code, from their own bases */

/* ---- shape.c: sums over links as chains or as trees --------------------------------------------- */

enum { MOST_TREE = 16, TREE_LEVELS = 32 };
/* A sum that grows: values in a row are added in pairs, pairs in pairs; the rest, smaller ones first, at the end. */
typedef struct Tree {
	Reg part[TREE_LEVELS];
	uint32_t count;
	bool chain;                        /* one after the other instead */
	Reg (*join)(Gen *g, Reg a, Reg b); /* NULL: the sum of two */
} Tree;
void tree_add(Gen *g, Tree *t, Reg x);
Reg tree_end(Gen *g, Tree *t); /* the sum of all since it was empty; it is empty again */

/* Links of some targets, by source: [links] the number of the tree that takes its product on the way forward; the
 * last one of its tree of this target, forward; the last one of its tree of this source, back. */
typedef struct Shape {
	uint32_t *tree;
	bool *ends, *ends_back;
	uint32_t levels, levels_back;
} Shape;
Shape shape_of(const Bp *b, const BpLink *link, uint64_t count); /* in scratch */

/* ---- bp_routines.c, bp_units.c: routines as C functions over Gen -------------------------------- */

/* Relocation registers. CASE: the case. OUT: output of the bundle's or chunk's first unit; BACK: error of the
 * bundle's first source; NET: net input or error of the first target. NEAR: weights and changes in SRAM, FAR: in
 * DRAM. SLOPE: slope words of a chunk. Those from NEXT_WEIGHTS on: see bp_routines.c. */
enum {
	BP_CASE = 1,
	BP_OUT,
	BP_BACK,
	BP_NET,
	BP_NEAR_WEIGHTS,
	BP_NEAR_CHANGES,
	BP_FAR_WEIGHTS,
	BP_FAR_CHANGES,
	BP_SLOPE,
	BP_NEXT_WEIGHTS,
	BP_NEXT_CHANGES,
	BP_FAR_BACK,
	BP_NEAR_DATA,
	BP_FAR_DATA,
	BP_FAR_TARGETS,
	BP_BASES
};
/* Compiler best: of all cases of a group, with the moves of the next call. */
Code *record_forward(const Bp *b, uint32_t bundle);
Code *record_backward(const Bp *b, uint32_t bundle);
enum { MOVE_WEIGHTS = 1, MOVE_CHANGES = 2, MOVE_BACK = 4 }; /* fetch weights, fetch changes, flush changes */
Code *record_move(const Bp *b, unsigned what, uint32_t words);
Code *record_fetch_case(const Bp *b, uint32_t first, uint32_t count); /* words of a case's data */
Code *record_clear(const Bp *b);
/* For so many cases that stand one after the other.  record_unit_error: NULL if there is nothing to do. */
Code *record_activate(const Bp *b, const BpChunk *k, uint32_t cases);
Code *record_unit_error(const Bp *b, const BpChunk *k, uint32_t cases);
Code *record_output_error(const Bp *b, const BpUnit *unit, uint32_t units, uint32_t cases);

/* ---- bp_copies.c: what a recurrent network remembers -------------------------------------------- */

static inline bool bp_remembers(const Net *net) { return net->copies && !net->settles; }
void copies_list(Bp *b);                             /* copy, copies: a word is read by all before it is written */
uint32_t copies_a_call(const Bp *b, uint32_t first); /* pairs that one routine takes, from `first` on */
Code *record_copies(const Bp *b, uint32_t first, uint32_t cases); /* of cases side by side; FAR_DATA: their data */

/* ---- bp_ticks.c: networks that settle ----------------------------------------------------------- */

uint32_t ticks_kept(const Bp *b); /* units that integrate */
void ticks_plan(Bp *b);           /* ticks, back, settling: before bundles are made */
void ticks_load(Bp *b);           /* routines, after all others of a pass */
/* First word of a tick in a case, from Layout.cases on. */
static inline uint32_t tick_at(const Bp *b, uint32_t tick) { return tick * b->at.tick_words * b->at.stride; }
/* Of the tick at hand and so many cases: after its inputs came; around the units of a chunk; after its last level. */
void ticks_begin(Bp *b, uint32_t count);
void ticks_activate(Bp *b, uint32_t chunk, bool after, uint32_t count);
void ticks_end(Bp *b, uint32_t count);
void ticks_carry_back(Bp *b, uint32_t count); /* on the way back: errors of the tick after this one */
void ticks_unit_error(Bp *b, uint32_t chunk, bool after, uint32_t count);

/* ---- best.c: the same, better than in 1989 ------------------------------------- */

/* Bundles are cut so that one call takes a whole group of cases, and meanwhile fetches what the next call needs. */
/* inputs that a bundle is the first to use, by place in the data */
typedef struct BpFresh {
	uint32_t *input, inputs;
} BpFresh;
/* a routine for `each` cases, and one for those left over */
typedef struct BpCalls {
	uint32_t routine[2], each;
} BpCalls;
/* What a routine for some cases is recorded from: a chunk, outputs, copies or what a tick needs. */
typedef struct UnitsCode {
	Code *(*record)(const struct UnitsCode *u, uint32_t cases);
	const Bp *b;
	const BpChunk *k;
	const BpUnit *unit;
	uint32_t units, first; /* outputs; copies from this one on */
	int kind;              /* bp_ticks.c */
} UnitsCode;
/* Equal shares of a group, multiples of `unit` cases. False: there is nothing to do. */
bool best_calls(Bp *b, BpCalls *c, const UnitsCode *u, uint64_t unit);
typedef struct BpBest {
	uint32_t lines;                 /* that a call should keep to */
	uint32_t block;                 /* DRAM: data of the group at hand */
	bool start;                     /* this pass is the first of an epoch: changes are cleared */
	uint32_t nowhere;               /* DRAM that changes are cleared in instead where they must stay */
	uint32_t weight[2], change[2];  /* caches in SRAM: of bundle i is number i mod 2 */
	BpFresh *fresh;                 /* [bundles] */
	Routine **forward, **backward;  /* [bundles] */
	uint32_t *open, opens;          /* routines: first weights and inputs fetched */
	uint32_t close;                 /* routine: last changes flushed */
	uint32_t reopen;                /* routine: weights and changes of the last bundle, for another tick back */
	BpCalls *activate, *unit_error; /* [chunks] */
	BpCalls *output_error;          /* [Bp.output_errors] */
	BpCalls *copies;                /* [Bp.copy_calls] */
} BpBest;
void best_plan(Bp *b, uint64_t slots); /* bundles, chunks, layout */
/* can a group have so many, and do weights stay in SRAM then? */
bool best_fits(const Bp *b, uint32_t cases, bool *resident);
void best_load(Bp *b); /* all routines */
/* Calls of a group: cases from `first` on come; bundle n forward and back; units of a chunk, or (k NULL) of outputs. */
void best_open(Bp *b, uint32_t first);
void best_forward(Bp *b, uint32_t n);
void best_backward(Bp *b, uint32_t n);
void best_reopen(Bp *b);
void best_units(Bp *b, const BpChunk *k, const BpCalls *c);
/* Moves from number *first on, as many as one routine holds; *first: where the next continues, 0: there is none. */
Code *record_best_open(const Bp *b, uint32_t *first);
/* Outputs that one routine takes the errors of: those from `first` on, in the order of the data. */
uint32_t output_error_units(const Bp *b, const BpUnit *unit, uint32_t first);
BpUnit *output_units(const Bp *b);                           /* [outputs] in scratch */
void bp_call(Bp *b, uint32_t routine, uint64_t *cycles);     /* calls it and books its cycles */
void bp_take_outputs(Bp *b, uint32_t first, uint32_t count); /* of the cases in SRAM, `first` of all, to b->result */

/* ---- bp_print.c --------------------------------------------------------------------------------- */

void bp_print(const Bp *b, Buf *out); /* in words */

/* ---- drive.c: the host's program ---------------------------------------------------------------- */

/* Case data to the processors; not part of the simulated time, as in the report. Case i of the batch (number
 * cases[i] of the data; cases NULL: i) goes to processor i mod procs. Without CASE_GOES_ON it is the start of a
 * sequence; with it, case i - group * procs is the one before. */
#define CASE_GOES_ON ((uint64_t)1 << 63)
#define NO_CASE      UINT64_MAX /* padding: zeros that count nothing */
void bp_load_cases(Bp *b, const Data *d, const uint64_t *cases, uint64_t count);
/* Blocks of data_side cases for each processor, of such a list, into memory in which the first block begins: word w of
 * processor i at memory[w * lanes + i]. */
void bp_write_cases(Bp *b, const Data *d, const uint64_t *cases, uint64_t count, uint64_t first, uint64_t blocks,
                    uint32_t *memory);
/* [layout_data] of one; place: as in cases */
void bp_case_words(const Bp *b, const Data *d, uint64_t place, float *word);
void bp_case_write(Bp *b, uint64_t i, const float *word);     /* these, as case i of those loaded */
void bp_loaded(Bp *b, const uint64_t *cases, uint64_t count); /* that they are there */
/* Forward and backward over the loaded cases: weight changes added up in each processor, outputs to b->result. */
void bp_accumulate(Bp *b);
/* Forward only: outputs to b->result. */
void bp_forward(Bp *b);
/* Of loaded case i, after either of these, in the tick-th of those that have targets. */
const float *bp_outputs_at(const Bp *b, uint64_t i, uint32_t tick);
const float *bp_outputs(const Bp *b, uint64_t i); /* in the first of these */
double bp_total_error(const Bp *b); /* summed squared error of the last bp_accumulate, as processors have it */
uint64_t bp_cycles(const Bp *b);    /* all simulated cycles so far, calls with them */

/* ---- sequences.c: sequences over processors ----------------------------------------------------- */

typedef struct Packer Packer;
Packer *packer_new(Arena *a, uint64_t sequences); /* for so many at once */
uint64_t packer_capacity(const Packer *k);        /* how many that is */
uint64_t *packer_lengths(Packer *k);              /* buffer for their lengths, until sequences_arrange */
typedef struct BpPlace {
	uint64_t bin, begin;
} BpPlace; /* lane bin / procs of processor bin mod procs; step */
/* lane_steps: of all lanes together */
typedef struct BpPacked {
	const BpPlace *place;
	uint64_t steps, lane_steps;
} BpPacked;
BpPacked sequences_pack(Packer *k, const uint64_t *length, uint64_t count, uint32_t procs, uint32_t lanes);
/* How many of them a processor takes side by side.  This says in which order it adds up, so it depends on them, the
 * network and the options only, not on what else fits into memory. */
uint32_t sequences_lanes(const Bp *b, const BpSequences *s);
uint32_t sequences_side(const Bp *b);  /* these, or what options ask for */
uint64_t sequences_steps(const Bp *b); /* cases of a lane that memory holds; needs group and words */
/* Examples of the batch from `begin` on, at most `count`, in so many lanes and steps: what to load, and where in it
 * their cases are, in the order of the batch. Returns how many examples fit. */
typedef struct BpArranged {
	uint32_t lanes;
	uint64_t steps;          /* in: not more than there are */
	uint64_t *wanted, slots; /* [lanes of the machine * steps * procs] as bp_load_cases takes them; how many */
	uint64_t *slot, cases;   /* [cases] their numbers in these; how many */
} BpArranged;
uint64_t sequences_arrange(Packer *k, const Bp *b, const Data *d, const Batch *batch, uint64_t begin, uint64_t count,
                           BpArranged *to);

/* ---- weave.c, disk.c: disks --------------------------------------------------------------------- */

/* Disks (section 10.1): training data that come through the switch while the processors train.
 *
 *   cases of a part --image--> words on the disks --receiving routines--> a data buffer in DRAM
 *
 * Disk d sends to processor d, and every processor passes on what it got to the one `disks` further: in so many
 * steps as there are processors for each disk a row, a word for every one of them, is where it belongs. So one
 * configuration of the switch does for all, no word takes an ALU operation, and in every transfer all disks
 * work. A routine receives whole blocks of DISK rows; the order of words is the same in all of them, so the disks
 * need not know which routine takes them. */

enum { BP_DISK = BP_SLOPE }; /* relocation register: where rows go in DRAM.  That of units: bundles do not use it */

/* ---- weave.c: receiving, in between what a routine does ----------------------------------------- */

typedef struct Chain {
	uint32_t configuration;
	uint32_t steps;   /* transfers of a row */
	uint32_t side;    /* rows of a block, which are under way together; a multiple of dram_banks */
	uint32_t near;    /* 2 * side words of SRAM */
	uint32_t spacing; /* cycles from one transfer to the next, at least */
} Chain;
uint32_t chain_side(const Machine *m);
typedef struct Woven {
	Routine *routine;
	uint32_t rows; /* received */
	double need;   /* words that each disk must have ready when it begins, if it reads `rate` words a cycle */
} Woven;
/* The routine, receiving as many rows besides, up to `most`, as its length and idle slots allow; routine NULL if
 * that is none. Base NULL: one that does nothing but receive, as fast as it can. */
Woven weave(Ctx *cx, const Machine *m, const Chain *c, const Routine *base, uint32_t most, double rate);

/* ---- disk.c ------------------------------------------------------------------------------------- */

typedef struct DiskAccount {
	/* received; words that the disks sent, including those without a receiver; bytes that arrived */
	uint64_t rows, words, bytes;
	uint64_t carried;         /* rows received during routines that do something else */
	uint64_t load, load_wait; /* cycles until parts were there that were not ordered before; waiting in them */
	uint64_t wait, receive;   /* cycles: all waiting; of routines that only receive */
	uint64_t aside;           /* cycles while it was paused */
	uint64_t cycles;          /* of the whole program */
} DiskAccount;

enum { ALONE = 4 }; /* routines that only receive */
typedef struct BpDisk {
	uint32_t disks, *disk; /* that are used, and which of the machine */
	Chain chain;
	double rate;         /* words a cycle, each */
	double buffer, full; /* words that each holds; so many are left to routines that receive besides */
	Woven alone[ALONE];
	uint32_t alone_routine[ALONE]; /* that only receive: many rows first, one block last */
	Woven *carrier;
	uint32_t *carrier_routine, carriers; /* [routines] which receive besides; rows 0: none */
	bool *tried;                         /* [routines] to make such */
	/* The part on its way. */
	const Data *data;
	uint64_t *cases, count, room;
	bool ordered;
	uint64_t ordered_at;        /* there is one; since this cycle */
	uint32_t to;                /* first word in DRAM */
	uint64_t blocks, rows, got; /* blocks of cases; rows, of which it got so many */
	uint32_t *image;
	uint64_t image_block; /* memory of all processors for one block of cases */
	uint32_t *words;      /* of a call */
	double ready, unread; /* words of each disk: read and not sent; not read, at */
	uint64_t clock;       /* this cycle */
	bool paused;          /* time that passes is not counted */
	/* How long a part takes. */
	uint64_t learning, began; /* cases of the present one, 0: there is none; when it began, waiting not counted */
	double pace;              /* cycles of a case in the part before; 0: not known */
	DiskAccount account;
} BpDisk;

void disk_compile(Bp *b); /* after all other routines; sets b->disk if there is to be one */
/* A part (as for bp_load_cases) starts on its way into the data buffer that is not in use. */
void disk_order(Bp *b, const Data *d, const uint64_t *cases, uint64_t count);
void disk_order_rows(Bp *b, uint64_t rows); /* so many words for each processor, where nothing is executed */
bool disk_ordered(const Bp *b, const Data *d, const uint64_t *cases, uint64_t count); /* is this part on its way? */
void disk_take(Bp *b); /* waits until it is there; it is the one to train on */
void disk_pause(Bp *b, bool pause);
uint32_t disk_carrier(Bp *b, uint32_t routine);                   /* the routine to call in its place */
void disk_between(Bp *b);                                         /* after a call: receives, if that is late */
DiskAccount disk_account(const Bp *b, const DiskAccount *before); /* so far, with that of programs before it */
bool disk_is_limit(const DiskAccount *a);                         /* did processors wait, but for the first part? */
void disk_print(const Bp *b, Buf *out);
void disk_report(const Bp *b, const DiskAccount *before, Buf *json); /* members of an object */

#endif
