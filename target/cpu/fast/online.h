/* SPDX-License-Identifier: MIT */
/* What online.c and online_steps.c share: the state of online learning, and the steps of a case.
 *
 * Where the weights of a panel are:
 *
 *   panel                         after online_flush       between cases (`active`)
 *   errors go back through it     in p->w                  in packed.block
 *   sums formed in its update     in p->w                  in packed.block if the next case is known, else in p->w
 *   from index lists              in p->w                  in p->w, each row as of update lazy.seen[row]
 *   all others                    in p->w                  in p->w
 *
 * Transposed copies are up to date only if not `active`. */
#ifndef ONLINE_H
#define ONLINE_H

#include "fast.h"

/* A panel's weights in packed order, where an update and a sum over them are one pass (OuterBlock of kern.h). */
typedef struct Packed {
	float *block;           /* NULL: never packed */
	float *bias;            /* NULL, or by target: [2][targets, padded] bias weights and their last changes, in rows */
	uint32_t rows, vectors; /* rows of a vector of columns, by target a multiple of LANES; vectors */
	bool ahead;             /* the update forms sums of the next case; else errors of this one's sources */
	bool active;            /* the weights are there now */
	bool finite;            /* all weights are finite; false: not known */
} Packed;

/* A kernel call with all its arguments but those that change from case to case. */
typedef struct OnlineStep OnlineStep;
struct OnlineStep {
	void (*run)(const Program *p, OnlineStep *st);
	const Step *of;
	uint32_t panel;
	const Part *part;
	Outer outer; /* learns: rate, momentum, decay are set when an update changes them */
	bool learns;
	union {
		Product product;
		Lists lists;
		LazyRows lazy;
		struct {
			Defer defer;
			const LazyRows *listed; /* of the forward step: the rows of the case's list */
		};
		struct {
			Errors errors;
			Scores scores;
		};
		RowProduct row_product;
		OuterBlock block;
		struct {
			Rows rows;
			const float *net, *act;
			float *out;
		};
	};
};

struct Online {
	Packed *packed;   /* [panels] */
	Lazy *lazy;       /* [panels] */
	OnlineStep *step; /* [forwards] of the forward pass and scores, then [backwards] of errors and weights */
	uint32_t forwards, backwards;
	double param[P_COUNT]; /* of the update that steps are set for, */
	bool set;              /* if they are */
	bool in_place;         /* inputs may be read in the data */
	uint32_t now;          /* updates so far */
	uint64_t next, begun;  /* the next case; the one whose sums are formed already; NO_CASE: none */
	bool waiting;          /* a case in row 0 of space 0 waits for its update */
	bool active;           /* packed weights are in use, transposed copies out of date */
	bool deferred;         /* some updates may be deferred */
};

void packed_move(const Program *p, uint32_t i, bool there);        /* to packed order, or back to p->w */
void lazy_flush(const Program *p, uint32_t i, bool with_gradient); /* all rows, or those with a deferred gradient */

/* ---- online_steps.c ---- */

uint32_t online_steps_most(const Layout *l);

#endif
