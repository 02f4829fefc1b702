/* SPDX-License-Identifier: MIT */
/* What online.c and calls.c share: the state of online learning, and the list of calls that a case is.
 *
 * Where the weights of a panel stand:
 *
 *   panel                          between online_settle and the next case while cases come one by one (`alone`)
 *   errors go back through it      in p->w                                    in own.block
 *   sums are formed in its update  in p->w in own.block if the next case is known, else in p->w (own.moved)
 *   from index lists               in p->w in p->w, each row as of update lag.stamp[row]
 *   all others                     in p->w                                    in p->w
 *
 * Copies in another form are up to date only if not `alone`. */
#ifndef ONLINE_H
#define ONLINE_H

#include "fast.h"

/* A panel's weights in an order of their own, where an update and a sum over them are one pass (OuterBlock of
 * kern/kern.h). */
typedef struct Own {
	float *block; /* NULL: they stay where they are */
	float *bias;  /* NULL, or by target: [2][targets, padded] the true unit's weights and last changes, in rows */
	uint32_t rows, sixteens; /* of a sixteen of columns, by target in full sixteens; how many of these */
	bool ahead;              /* sums of the next case are formed in the update, else errors that go back */
	bool moved;              /* they stand there now */
	bool finite;             /* no weight is infinite or no number, as far as we know */
} Own;

/* A call of a kernel, with all its arguments but those that change from case to case. */
typedef struct Call Call;
struct Call {
	void (*run)(Program *p, Call *c);
	uint32_t panel;
	const Part *part;
	Outer outer; /* learns: rate, momentum, decay are set with every update that has others */
	bool learns;
	union {
		Product product;
		Lists lists;
		Late late;
		struct {
			Owe owe;
			const Late *listed;
		}; /* listed: of the case's list, forward */
		struct {
			Errors errors;
			Scores scores;
		};
		Turned turned;
		OuterBlock block;
		struct {
			Rows rows;
			const float *net, *act;
			float *out;
		};
	};
};

struct Online {
	Own *own;   /* [panels] */
	Lag *lag;   /* [panels] */
	Call *call; /* [forwards] of a case forward, then [backwards] of errors and weights */
	uint32_t forwards, backwards;
	double param[P_COUNT]; /* of the update that calls are set for */
	bool set;              /* they are */
	bool in_place;         /* inputs may be read where they stand in the data */
	uint32_t now;          /* updates so far */
	uint64_t next, known;  /* the case after the one in hand; the one whose sums are begun; NO_CASE: none */
	bool waiting;          /* a case waits for its update: it stands in row 0 of the first space */
	bool alone; /* cases come one by one: weights that errors go back through stand elsewhere, copies are out of date */
	bool behind; /* some rows may be late */
};

void own_move(Program *p, uint32_t i, bool there); /* to the order of its own, or back */
void catch_up(Program *p, uint32_t i, bool owing); /* all rows of a panel that may be late, or those that owe */
uint32_t calls_most(const Layout *l);

#endif
