/* SPDX-License-Identifier: MIT */
/* Restarts of tiny networks: what their kernels have in common. */
#ifndef LANES_H
#define LANES_H

#include "emit.h"
#include "net.h"

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
	bool constant; /* data is part of the text, or as if it were: what is multiplied by 0 is left out */
	Reg *nonzero;  /* NULL, or [units] of inputs: P */
} Lanes;

static inline uint32_t pitch(const LaneSource *s) { return (uint32_t)round_up(s->net->links, 4); }
Reg param_d(Emit *e, size_t field); /* of the LaneJob */
Reg param_r(Emit *e, size_t field);
Reg special_register(Emit *e, const char *name);
Lanes lanes_begin(const LaneSource *s, Arena *a); /* registers of weights and of numbers of the seed */
void lane_forward(Lanes *k, bool outputs);
Reg errors_lane(Lanes *k); /* of the case; deltas of outputs */
typedef struct LaneVerdict {
	Reg within, right; /* P */
} LaneVerdict;
LaneVerdict verdict_lane(Lanes *k, Reg top);
void unit_backward(Lanes *k, const LaneUnit *u);
RuleNumbers lane_numbers(Lanes *k);
Reg lane_ends(Lanes *k); /* P: does the seed end here? */
Reg row_of(Lanes *k, size_t field, Reg number, uint32_t rows);
void seed_store(Lanes *k);
Reg seed_number(Lanes *k, Reg i); /* of number i of the list, or a new one; a number that is too large: none */
Reg list_next(Lanes *k);          /* number in the list that no thread has begun */

#endif
