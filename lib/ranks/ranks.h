/* SPDX-License-Identifier: MIT */
/* ranks.c: processes that share the leaves of every batch. */
#ifndef RANKS_H
#define RANKS_H

#include "comm.h"
#include "run.h"

enum { ALLREDUCE_EXACT, ALLREDUCE_MPI };
typedef struct RanksOptions {
#include "option_fields.inc"
#include "options.def"
} RanksOptions;
extern const OptionTable ranks_options;

/* What everyone says when they meet. Whoever leaves says so instead: the others know, and nobody waits for ever.
 * What some ranks in a row say is one of these again, so a meeting takes a few steps, however many come. */
enum { SAY_FILE = 1, SAY_START, SAY_BATCH, SAY_END, SAY_COPIES, SAY_BACK, SAY_LEAVE, SAY_MIXED };
enum { SAME_FILE, SAME_NET, SAME_OPTIONS, SAME_DATA, SAME_TEST, SAME_WEIGHTS, SAMES };
enum { LOOK_DATA, LOOK_TEST, LOOKS };
enum { VOTES = 4 }; /* different words that are told apart */
typedef struct Vote {
	uint64_t word;
	uint32_t ranks, first;
	uint64_t update;
} Vote; /* update: of a copy */
typedef struct Saying {
	int32_t kind, status, stop, stopped; /* status: the worst; stop, stopped: of any */
	uint32_t first, end;                 /* the ranks that say it */
	uint32_t odd; /* the first that leaves, goes back, or says something else than the first of all; if there is one */
	int32_t odd_status, odd_same; /* what it leaves with; SAME_... */
	uint32_t leaves;              /* of the batch */
	uint32_t tallies;
	double seconds;       /* of the first */
	uint32_t due;         /* guard_due, of the first */
	int32_t back;         /* with SAY_BACK: the latest copy that will do; text: why, or nothing */
	uint64_t same[SAMES]; /* what must be the same everywhere, of the first */
	Vote vote[VOTES];     /* and of guards: guard_word, or a copy's */
	union {
		Tally tally[MOST_SUMS];
		char text[1000];
		Validation look[LOOKS];
	};
} Saying;

typedef struct Ranks {
	const Comm *comm;
	Saying own;     /* what is said */
	Saying all;     /* and by all together */
	bool gone;      /* someone has left */
	bool alone;     /* rank 0 trains, the others wait */
	bool stop;      /* as all have agreed */
	bool back;      /* all have gone back, in the last meeting */
	uint32_t due;   /* what rank 0 has said of it */
	double seconds; /* of training, by the clock of rank 0 */
	bool library;   /* sums as the library makes them */
	float *inbox;
	uint64_t room;                         /* parts of others' sums */
	uint64_t sent;                         /* bytes, of sums */
	uint64_t *programs;                    /* [size] as they greet each other */
	uint32_t counted_leaves, counted_sums; /* all_sums of so many leaves */
} Ranks;

Ranks *ranks_new(Ctx *cx, const Comm *comm); /* in keep */
/* Before all else: fails, on all ranks, if one is another program.  own: stands for this one; 0: it cannot be read. */
void ranks_greet(Ctx *cx, Ranks *k, uint64_t own);
/* Says `own`, hears `all`; fails, naming the rank and what it said, if one of them has left. True: one says that
 * all have to go back. */
bool ranks_meet(Ctx *cx, Ranks *k, int kind);
void ranks_back(Ctx *cx, Ranks *k, int copy, const char *why); /* says so, wherever the others meet */
bool ranks_gather(Run *r, Saying own, int kind); /* meets in the course of training.  True: all have gone back */
/* those of [low, high), a subtree each */
void tallies_own(Saying *w, const Tally *leaf, uint32_t first, uint32_t end, uint32_t low, uint32_t high);
void ranks_same(Ctx *cx, Ranks *k); /* after a meeting: fails, naming what differs on which rank */
/* The same, of data: `of` is what all ranks together saw of it. */
void ranks_look(Ctx *cx, Ranks *k, int which, const Data *d, const ErrorFn *e, Validation *of);
void ranks_leave(Ranks *k, int status, const char *text); /* says so, unless someone else did */
/* Leaves of a rank: as many as the others have, within a thirty-second, and such that few subtrees are cut. */
void rank_leaves(uint32_t leaves, uint32_t ranks, uint32_t rank, uint32_t *first, uint32_t *last);
/* Examples of a rank in batch number i of data that is gone through in its order. */
void rank_examples(const Ranks *k, uint64_t examples, uint64_t batch, uint64_t i, uint64_t *first, uint64_t *end);
/* And their cases, in data of that network; false: there are none. */
bool rank_cases(const Ranks *k, const Net *net, const Data *d, uint64_t batch, uint64_t i, uint64_t *first,
                uint64_t *end);
uint32_t subtree_count(uint32_t leaves, uint32_t first, uint32_t last); /* largest ones that lie in [first, last) */
enum { WAY_TOGETHER, WAY_HALVING, WAY_PARTS, RANK_WAYS };
int ranks_way(uint64_t floats, uint32_t sums, uint32_t leaves, uint32_t ranks); /* in which sums travel */
/* where that part of a sum begins; parts: the end */
uint64_t part_first(uint64_t floats, uint32_t part, uint32_t parts);
void ranks_room(Ctx *cx, Ranks *k, uint64_t floats, uint64_t examples); /* takes what sums of such batches need */
void ranks_sum(Run *r, Share *s, uint32_t leaves);                      /* of all ranks, to s->total */
/* One batch, by all ranks: the pending sum and the tally are those of one process. */
Status ranks_batch(Run *r, const Batch *b, bool learn, const volatile int *stop, Tally *t);

#endif
