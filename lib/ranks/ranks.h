/* SPDX-License-Identifier: MIT */
/* ranks: processes that share the leaves of every batch, or the seeds of a search.  start.c, meeting.c, reduce.c,
 * seeds.c. */
#ifndef RANKS_H
#define RANKS_H

#include "comm.h"
#include "run.h"

/* ---- options.c ---- */

enum { ALLREDUCE_EXACT, ALLREDUCE_MPI };
typedef struct RanksOptions {
#include "option_fields.inc"
#include "options.def"
} RanksOptions;
extern const OptionTable ranks_options;

/* ---- messages ---- */

/* What a message is about; LEAVE and ROLLBACK replace any other.  MIXED: ranks have sent different kinds. */
enum {
	MSG_FILE = 1,
	MSG_SAME,
	MSG_START,
	MSG_BATCH,
	MSG_SEEDS,
	MSG_END,
	MSG_SNAPSHOT,
	MSG_ROLLBACK,
	MSG_LEAVE,
	MSG_MIXED
};
/* The first that differs is reported: those that others depend on come first. */
enum {
	MATCH_FILE,
	MATCH_OPTION,
	MATCH_NET,
	MATCH_RESTARTS,
	MATCH_OPTIONS,
	MATCH_DATA,
	MATCH_TEST,
	MATCH_WEIGHTS,
	MATCHES
};
enum { VALIDATE_DATA, VALIDATE_TEST, VALIDATES };
enum { VOTES = 4 }; /* different checksums that a message can hold */
typedef struct Vote {
	uint64_t checksum;
	uint32_t ranks, first; /* how many have it; the first of them */
	uint64_t update;       /* of a snapshot */
} Vote;
typedef struct Message {                 /* of one rank, or merged, of ranks first .. end - 1 */
	int32_t kind, status, stop, stopped; /* status: the worst; stop, stopped: of any */
	uint32_t first, end;
	uint32_t culprit;     /* the first rank that leaves, requests a rollback or differs from rank 0; or UINT32_MAX */
	int32_t leave_status; /* of the culprit */
	int32_t mismatch;     /* MATCH_... in which it differs */
	uint32_t leaves;      /* of the batch */
	uint32_t tallies;
	double seconds;          /* of the first rank */
	uint32_t due;            /* tasks of guards that are due, by the clock of the first rank */
	int32_t snapshot;        /* with MSG_ROLLBACK: the latest that will do; text: the reason, or empty */
	uint64_t match[MATCHES]; /* of the first rank; must be the same on all */
	Vote vote[VOTES];        /* of guards: checksums of weights or snapshots */
	union {
		Tally tally[MOST_SUMS]; /* of the maximal subtrees of the ranks' leaves */
		char text[1000];
		Validation validation[VALIDATES];
	};
} Message;

/* What a guard contributes to the exchanges of a batch. */
typedef struct RankObserver {
	Status (*before_vote)(void *self, Message *own);     /* adds vote[0] and due; or ROLLED_BACK, with all ranks */
	void (*roll_back)(void *self, const char *mismatch); /* a rank has requested it, or votes mismatch */
	void (*after_reduce)(void *self, const Batch *b);    /* all ranks have the sum of the batch */
} RankObserver;

typedef struct Ranks {
	const Comm *comm;
	Message own, all; /* of this rank, and merged */
	const RankObserver *observer;
	void *observer_self;
	bool ended;     /* all ranks know that the job ends: no more messages */
	bool root_only; /* rank 0 trains, the others wait */
	bool stop;      /* as all have agreed */
	uint32_t due;   /* Message.due of rank 0 */
	double seconds; /* of training, by the clock of rank 0 */
	bool mpi_sum;   /* sums by the MPI library, in its own order */
	float *received;
	uint64_t capacity;                     /* floats of `received`: sums of other ranks */
	uint64_t sent;                         /* bytes, of sums */
	uint64_t *programs;                    /* [size] checksums of the ranks' programs */
	uint32_t counted_leaves, counted_sums; /* sums of all ranks, for this number of leaves */
} Ranks;

/* ---- meeting.c ---- */

Ranks *ranks_new(Ctx *cx, const Comm *comm); /* in keep */
/* Comes first: fails, on all ranks, if one runs another program.  own: its checksum; 0: it cannot be read. */
void ranks_check_program(Ctx *cx, Ranks *k, uint64_t own);
/* Sends k->own, merges all into k->all. Fails, with the rank and its reason, if one has left. True: a rank requests
 * a rollback. */
bool ranks_exchange(Ctx *cx, Ranks *k, int kind);
void ranks_request_rollback(Ctx *cx, Ranks *k, int snapshot, const char *reason); /* in place of any exchange */
void ranks_check_match(Ctx *cx, Ranks *k); /* after an exchange: fails, naming what differs on which rank */
void ranks_check_option(Ctx *cx, Ranks *k, const char *option); /* the same for MATCH_OPTION, by its name */
/* After MSG_START: fails if a rank has found the data invalid; *of: what all ranks together found. */
void ranks_check_data(Ctx *cx, Ranks *k, int which, const Data *d, const ErrorFn *e, Validation *of);
void ranks_leave(Ranks *k, int status, const char *text); /* sends LEAVE, unless the job ends anyway */

/* ---- start.c ---- */

/* Fails unless all ranks do the same work. Returns the checksum of the training data; *data and *test are replaced by
 * copies with what all ranks together found in them.  Where a batch is one leaf, or the target does not support ranks,
 * rank 0 trains alone (root_only). */
uint64_t ranks_prepare(Run *r, const Data **data, const Data **test, uint64_t batch, bool shuffled);
void ranks_match_run(Run *r);                                      /* network and options, to the message */
void ranks_begin(Run *r, uint64_t examples, uint64_t batch);       /* the data is bound: allocate; sets r->ranks */
bool ranks_read_all(const Ranks *k, const Data *d, bool shuffled); /* every rank reads all cases of it */

/* ---- seeds.c ---- */

/* Fails unless all ranks train the same seeds; each gets its share of them. */
void ranks_share_seeds(Run *r, Restarts *all, const Data *data, const Data *test);
bool ranks_gather_seeds(Run *r, Restarts *all); /* results of all ranks; true: one of them was stopped */

/* ---- reduce.c ---- */

/* Leaves of a rank: equal shares within a thirty-second, cut where few subtrees are split. */
void rank_leaves(uint32_t leaves, uint32_t ranks, uint32_t rank, uint32_t *first, uint32_t *last);
/* Examples of a rank in batch number i of data in file order. */
void rank_examples(const Ranks *k, uint64_t examples, uint64_t batch, uint64_t i, uint64_t *first, uint64_t *end);
/* And their cases, in data of that network; false: there are none. */
bool rank_cases(const Ranks *k, const Net *net, const Data *d, uint64_t batch, uint64_t i, uint64_t *first,
                uint64_t *end);
uint32_t subtree_count(uint32_t leaves, uint32_t first, uint32_t last); /* maximal subtrees within [first, last) */
/* Adds tallies of the maximal subtrees within [low, high) to the message. */
void own_tallies(Message *m, const Tally *leaf, uint32_t first, uint32_t end, uint32_t low, uint32_t high);
enum { REDUCE_GATHER, REDUCE_HALVING, REDUCE_SCATTER, REDUCES };
int reduce_algorithm(uint64_t floats, uint32_t sums, uint32_t leaves, uint32_t ranks);
/* First float of a slice of a sum; slice == slices: its end. */
uint64_t slice_first(uint64_t floats, uint32_t slice, uint32_t slices);
void ranks_reserve(Ctx *cx, Ranks *k, uint64_t floats, uint64_t examples); /* for batches of so many examples */
void ranks_allreduce(Run *r, Share *s, uint32_t leaves);                   /* of all ranks, to s->total */
/* An exchange in the course of training, in which guards vote. */
Status ranks_vote(Run *r, Message own, int kind);
/* One batch by all ranks: pending sum and tally have the bits of one process. */
Status ranks_batch(Run *r, const Batch *b, bool learn, const StopFlag *stop, Tally *t);

#endif
