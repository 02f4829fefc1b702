/* SPDX-License-Identifier: MIT */
/* lanes: kernels of restarts. A tiny network has a thread per seed (lanes.c) or several (groups.c); the text of both
 * has the network as constants. orders.c: shuffles examples on the device, for networks with a block per seed. */
#ifndef LANES_H
#define LANES_H

#include "emit.h"
#include "net.h"

/* ---- lanes.c ---- */

/* A unit that is computed. Sources precede their targets. */
typedef struct LaneUnit {
	uint32_t unit, part;
	int fn;
	int32_t output; /* number of the output; -1: none */
	bool matched;   /* error and unit function match: output - target is the delta */
} LaneUnit;

/* What a kernel is generated from. */
typedef struct LaneSource {
	Ctx *cx;
	const struct Net *net;
	const LaneUnit *unit; /* [computed] */
	uint32_t computed;
	const uint32_t *input; /* [inputs] units */
	/* data */
	const float *x, *y; /* dense rows; all targets are known */
	uint64_t cases;
	const uint32_t *target_class; /* [cases] first largest target; of a single target, whether it is above the middle */
	bool binary;                  /* targets are 0 or 1 */
	/* rule */
	const Formula *formula;
	uint32_t states;
	double param[P_COUNT];
	double start[MAX_STATE]; /* initial rule state, before a block's factor */
	/* error */
	int error; /* ERR_SQUARED, or ERR_CROSS_ENTROPY of sigmoid units */
	float offset, threshold, middle;
	/* a seed ends when */
	uint32_t end_right, end_within; /* so many cases are; UINT32_MAX: never */
	double until_error;             /* the mean error is below; NaN: never */
	uint32_t most_epochs;           /* epochs were made; 0: never */
	/* block */
	uint32_t threads, shared; /* shared: bytes, at most */
} LaneSource;

/* What the host and these kernels exchange. A launch stops when so many seeds have ended; it hands over the others:
 * they are the list of the next launch. Results are in the order in which seeds end. Rows of weights are padded to
 * quads. */
enum { LANES_MAKE, LANES_TRAIN };
typedef struct LaneResult {
	double error; /* of the last epoch */
	uint32_t epochs;
	uint32_t right, within; /* cases, of the last epoch */
	uint32_t number;        /* of the seed */
} LaneResult;
typedef struct LaneJob {
	uint32_t mode;   /* LANES_ */
	uint32_t count;  /* seeds */
	uint32_t stride; /* seed i is first + i * stride */
	uint32_t stop;   /* seeds that have ended when the launch stops */
	uint64_t first;
	float *w, *state;      /* [count][links], [count][states][links] of seeds that were handed over */
	uint32_t *epoch;       /* [count] of seeds that were handed over */
	float *end_w;          /* [count][links] by number of the result */
	LaneResult *result;    /* [count] */
	uint32_t *next;        /* counter: first seed that was not taken yet */
	uint32_t *ended;       /* counter: seeds that have ended */
	const uint32_t *list;  /* seeds that the launch before handed over */
	uint32_t *list_count;  /* of them */
	uint32_t *list_taken;  /* counter: those taken after the first of every thread */
	uint32_t *handed_over; /* list for the next launch */
	uint32_t *handed_over_count;
	const double *range;          /* [links][2] of initial weights: lowest, width */
	const uint32_t *rows;         /* as sparse_rows makes them */
	const float *start;           /* [states][links] initial rule state */
	const struct GroupLink *link; /* as group_links makes them */
	const float *x, *y;
	const uint32_t *target_class;
} LaneJob;
void lanes_text(const LaneSource *s, Arena *a, Buf *out, uint32_t *shared);

/* ---- sparse.c ---- */

typedef struct SparsePlan {
	uint32_t ones;              /* inputs of each case that are 1; others are 0 */
	bool *input;                /* [units] it is an input */
	uint64_t *first;            /* [units] first link from an input; NO_LINKS: none */
	Unit *unit;                 /* [units] units with such links */
	uint32_t units, quads;      /* how many, and quads of them */
	uint32_t row_words;         /* of the table of cases */
	uint32_t at_w, at_g, bytes; /* shared memory: weights, gradients, all */
} SparsePlan;
#define NO_LINKS UINT64_MAX
enum { SPARSE_WORK = 256 };                                            /* links times cases: nothing is gained below */
const SparsePlan *sparse_plan(const LaneSource *s);                    /* NULL: not for this data */
const uint32_t *sparse_rows(const LaneSource *s, const SparsePlan *p); /* [cases][row_words] */

/* ---- groups.c ---- */

/* A link that a thread updates. Offsets: bytes. */
typedef struct GroupLink {
	uint32_t delta;  /* in the memory of the group: deltas of its target, of all cases */
	uint32_t source; /* activations of its source; of an input, in the memory of the block */
	uint32_t to;     /* in the memory of the group: its weight */
	uint32_t at;     /* in a row of weights in global memory */
	float rate;
	uint32_t updated; /* 0: frozen, or padding */
} GroupLink;
uint32_t group_threads(const LaneSource *s);                        /* of a seed; 0: there is no such kernel */
const GroupLink *group_links(const LaneSource *s, uint32_t *count); /* [slots][threads of a seed] */
void groups_text(const LaneSource *s, Arena *a, Buf *out, uint32_t *shared);

/* ---- emission, of both kernels ---- */

typedef struct Lanes {
	const LaneSource *s;
	Emit *e;
	/* registers of the seed */
	Reg *w, *g, *state[MAX_STATE]; /* [links] weights, gradients, rule state; padded to quads */
	Reg seed, epoch;
	Reg error, right, within; /* of the epoch */
	/* registers of the current case */
	Reg *act, *net, *delta; /* [units] */
	Reg *y;                 /* [outputs] */
	Reg *nonzero;           /* [units] of inputs: P; NULL: see `constant` */
	/* of the kernel */
	Reg list_count; /* of the LaneJob */
	Reg threads;    /* of the grid; or groups */
	/* links by source, then by target: those of unit u from out[u] on */
	uint32_t *out, *out_to;
	uint64_t *out_link;
	bool constant;    /* data is constant in the text: products with 0 are left out (so groups.c skips them, too) */
	bool counts_late; /* a case within the threshold is right: `right` is counted in the last epoch only */
	Reg is_last;      /* P: this is the last epoch */
	/* cases in a loop: sparse.c */
	const SparsePlan *sparse; /* NULL: not used */
	Reg table;                /* address of the table of cases */
	Reg quads_at;             /* address of the thread's quads */
	Reg *input_at;            /* [ones] addresses of the case's inputs */
	Reg *input_w;             /* [ones][quads][4] their weights */
} Lanes;

static inline uint32_t pitch(const LaneSource *s) { return (uint32_t)round_up(s->net->links, 4); }
bool is_input(const LaneSource *s, Unit u);
Lanes lanes_begin(const LaneSource *s, Arena *a);
void lane_forward(Lanes *k, bool outputs);  /* outputs, or the other units */
Reg errors_lane(Lanes *k);                  /* of the case; also makes deltas of outputs */
Reg within_lane(Lanes *k);                  /* P */
Reg right_lane(Lanes *k, Reg target_class); /* P */
void unit_backward(Lanes *k, const LaneUnit *u);
RuleNumbers lane_numbers(Lanes *k);
/* Returns the new weight. */
Reg link_update(Lanes *k, Unit u, uint64_t l, const RuleNumbers *n, Reg g, Reg w);
void sparse_begin(Lanes *k, Reg tid);
void sparse_put(Lanes *k); /* input weights: registers to shared memory, */
void sparse_get(Lanes *k); /* and back */
Reg sparse_case(Lanes *k, Reg c);
Reg sparse_forward(Lanes *k, Unit u, Reg sum);
void sparse_gradient(Lanes *k);
void sparse_update(Lanes *k, const RuleNumbers *numbers);
Reg lane_ends(Lanes *k); /* P: does the seed end here? */
Reg row_of(Lanes *k, size_t field, Reg number, uint32_t rows);
void seed_store(Lanes *k);
Reg seed_number(Lanes *k, Reg i); /* entry i of the list; past its end, a new seed; >= LaneJob.count: none is left */
Reg list_next(Lanes *k);          /* next entry of the list (work queue) */

/* ---- orders.c ---- */

/* The order of an epoch of a network. */
typedef struct OrderEpoch {
	uint64_t seed;
	uint64_t at;     /* bytes from OrderJob.to on */
	uint32_t number; /* of the epoch */
	uint32_t unused;
} OrderEpoch;
/* Adjacent examples that are shuffled. */
typedef struct OrderBlock {
	uint32_t first; /* example */
	uint32_t at;    /* place in the epoch */
	uint32_t size;
	uint32_t unused;
} OrderBlock;
typedef struct OrderJob {
	uint32_t tasks;  /* blocks of all epochs */
	uint32_t blocks; /* of an epoch */
	const OrderEpoch *epoch;
	const OrderBlock *block; /* [epochs][blocks] */
	uint32_t *to;
} OrderJob;
void orders_text(uint32_t threads, Arena *a, Buf *out); /* needs 2 * SHUFFLE_BLOCK bytes of shared memory per thread */

#endif
