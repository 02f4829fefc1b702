/* SPDX-License-Identifier: MIT */
/* lanes: kernels that only restarts need. Tiny networks have a thread for each seed, or several (teams.c), and the text
 * of both is for the network at hand; larger ones shuffle examples of all seeds on the device (orders.c). */
#ifndef LANES_H
#define LANES_H

#include "emit.h"
#include "net.h"

/* ---- lanes.c: restarts of a tiny network --------------------------------------------------------------- */

/* A unit that is computed; sources come before targets. */
typedef struct LaneUnit {
	uint32_t unit, part;
	int fn;
	int32_t output; /* its number, or -1 */
	bool matched;   /* error and unit function match: output - target is the delta */
} LaneUnit;

typedef struct LaneSource {
	Ctx *cx;
	const struct Net *net;
	const Formula *formula;
	uint32_t states;
	double param[P_COUNT],
		start[MAX_STATE]; /* of the rule; start: of its state, to be multiplied by a block's factor */
	const LaneUnit *unit;
	uint32_t computed;
	const uint32_t *input; /* [inputs] units */
	const float *x, *y;    /* dense rows; all targets are known */
	const uint32_t
		*top; /* [cases] number of the first largest target; of a single one, whether it is above the middle */
	uint64_t cases;
	int error; /* ERR_SQUARED, or ERR_CROSS_ENTROPY of sigmoid units */
	bool binary;
	float offset, threshold, middle;
	uint32_t least_right, least_within; /* cases that end a seed; UINT32_MAX: no number does */
	double until_error;                 /* NaN: none */
	uint32_t most_epochs;               /* 0: any number */
	uint32_t threads, shared;           /* of a block; bytes */
} LaneSource;

/* What the host and these kernels exchange. Seeds are handed over between launches: one that has not ended when a
 * launch stops is in its list, the next launch goes on with it. Results are in the order in which seeds have ended. */
enum { LANES_MAKE, LANES_TRAIN };
typedef struct LaneResult {
	double error;                           /* of the last epoch, */
	uint32_t epochs, right, within, number; /* number: of the seed */
} LaneResult;
typedef struct LaneJob {
	uint32_t mode, count, stride, stop; /* count: of seeds; stop: when so many have ended */
	uint64_t first;                     /* seed i is first + i * stride */
	float *w, *state;                   /* [count][links, filled up to quads], [count][states][the same] */
	uint32_t *epoch;                    /* [count] of seeds that were handed over */
	float *end_w;                       /* [count][links, filled up to quads] by number of the result */
	LaneResult *result;                 /* [count] */
	uint32_t *next, *ended;             /* seed that no thread has begun; how many have ended */
	const uint32_t *list;               /* seeds that go on; */
	uint32_t *listed, *taken;           /* how many; those of them that were begun after the first of every thread */
	uint32_t *handed, *handed_count;    /* seeds that are handed over */
	const double *range;                /* [links, filled up][2] of initial weights: lowest, width */
	const uint32_t *rows;               /* as sparse_rows makes them */
	const float *start;                 /* [states][links, filled up] of the state of the rule */
	const struct TeamLink *link;        /* as team_links makes them */
	const float *x, *y;
	const uint32_t *top;
} LaneJob;
void lanes_text(const LaneSource *s, Arena *a, Buf *out, uint32_t *shared);

/* ---- sparse.c: cases in a loop ---- */

typedef struct SparsePlan {
	uint32_t ones;              /* inputs of every case that are 1; others are 0 */
	bool *input;                /* [units] it is one */
	uint64_t *first;            /* [units] its first link from an input; NO_LINKS: it has none */
	Unit *unit;                 /* [units] that have such links */
	uint32_t units, quads;      /* quads: of these units */
	uint32_t row_words;         /* of the table */
	uint32_t at_w, at_g, bytes; /* of shared memory */
} SparsePlan;
#define NO_LINKS UINT64_MAX
enum { SPARSE_WORK = 256 };                         /* links times cases, below which nothing is gained */
const SparsePlan *sparse_plan(const LaneSource *s); /* NULL: not for this data */
const uint32_t *sparse_rows(const LaneSource *s, const SparsePlan *p); /* [cases][row_words] */

/* ---- teams.c: the same for few seeds, with several threads for each ----------------------------------- */

/* A link that a thread has: bytes in the memory of its team; bytes of its row of weights; factor on the rate. */
typedef struct TeamLink {
	uint32_t delta, source, to, at;
	float rate;
	uint32_t updated; /* it is a link, and not frozen */
} TeamLink;
uint32_t team_threads(const LaneSource *s);                       /* of a seed; 0: there is no such kernel */
const TeamLink *team_links(const LaneSource *s, uint32_t *count); /* [slots][threads of a seed] */
void teams_text(const LaneSource *s, Arena *a, Buf *out, uint32_t *shared);

/* ---- what both have in common ---- */

typedef struct Lanes {
	const LaneSource *s;
	Emit *e;
	Reg *w, *g, *state[MAX_STATE]; /* [links], filled up to quads */
	Reg *act, *net, *delta;        /* [units] of the case at hand */
	Reg *y;                        /* [outputs] */
	Reg error, right, within, epoch, seed;
	Reg listed, threads; /* seeds that go on; threads of the grid, or teams */
	uint64_t *out_link;  /* links by source, then by target: those of unit u from out[u] on */
	uint32_t *out, *out_to;
	bool constant;            /* data is part of the text, or as if it were: what is multiplied by 0 is left out */
	Reg *nonzero;             /* NULL, or [units] of inputs: P */
	const SparsePlan *sparse; /* NULL: cases are no loop of this kind */
	Reg table, mine;          /* addresses: of the table of cases, of the thread's quads */
	Reg *in_at, *in_w;        /* of the case at hand: [ones] addresses, [ones][quads][4] weights */
	bool right_late; /* where all cases are within the threshold they are right; others count in the last epoch: */
	Reg is_last;     /* P */
} Lanes;

static inline uint32_t pitch(const LaneSource *s) { return (uint32_t)round_up(s->net->links, 4); }
bool is_input(const LaneSource *s, Unit u);
Lanes lanes_begin(const LaneSource *s, Arena *a); /* registers of weights and of numbers of the seed */
void lane_forward(Lanes *k, bool outputs);
Reg errors_lane(Lanes *k); /* of the case; deltas of outputs */
Reg within_lane(Lanes *k); /* P */
Reg right_lane(Lanes *k, Reg top);
void unit_backward(Lanes *k, const LaneUnit *u);
RuleNumbers lane_numbers(Lanes *k);
/* Returns the new weight. */
Reg link_update(Lanes *k, Unit u, uint64_t l, const RuleNumbers *n, Reg g, Reg w);
void sparse_begin(Lanes *k, Reg tid);
void sparse_put(Lanes *k); /* weights of registers to shared memory, */
void sparse_get(Lanes *k); /* and back */
Reg sparse_case(Lanes *k, Reg c);
Reg sparse_forward(Lanes *k, Unit u, Reg sum);
void sparse_gradient(Lanes *k);
void sparse_update(Lanes *k, const RuleNumbers *numbers);
Reg lane_ends(Lanes *k); /* P: does the seed end here? */
Reg row_of(Lanes *k, size_t field, Reg number, uint32_t rows);
void seed_store(Lanes *k);
Reg seed_number(Lanes *k, Reg i); /* of number i of the list, or a new one; a number that is too large: none */
Reg list_next(Lanes *k);          /* number in the list that no thread has begun */

/* ---- orders.c: orders of examples of many networks ------------------------------------------------------ */

/* An epoch of a network: bytes from Job.to on. A block of examples: the first of them, their place in the epoch. */
typedef struct OrderEpoch {
	uint64_t seed, at;
	uint32_t number, unused;
} OrderEpoch;
typedef struct OrderBlock {
	uint32_t first, at, size, unused;
} OrderBlock;
typedef struct OrderJob {
	uint32_t tasks, blocks; /* blocks: of an epoch */
	const OrderEpoch *epoch;
	const OrderBlock *block; /* [epochs][blocks] */
	uint32_t *to;
} OrderJob;
void orders_text(uint32_t threads, Arena *a, Buf *out); /* a thread has 2 * SHUFFLE_BLOCK bytes of shared memory */

#endif
