/* SPDX-License-Identifier: MIT */
/* Products with operands rounded to bf16, for --precision bf16: what run.c calls in place of the products of floats. */
#ifndef HALF_H
#define HALF_H

#include "pass.h"
#include "amx.h"

/* Inputs of some data. */
typedef struct KeptHalves {
	Half *x;        /* [cases][x_row] */
	uint8_t *known; /* [cases] which of them have been rounded */
	uint64_t bytes; /* of x: no more than may be kept */
} KeptHalves;

/* Of a program. */
typedef struct Halves {
	const HalfKern *kern;
	Half *w;                       /* tiles of the weights of all panels, */
	size_t room;                   /* numbers in all */
	size_t *by_source, *by_target; /* [panels] where those of a panel begin, for forward and backward */
	uint32_t *x_at;                /* [parts] inputs have rows of their own, as halves: where a part begins there */
	uint32_t x_row;
} Halves;

/* Of a thread; of a team, x is that of the team. */
typedef struct HalfSpace {
	Half *x; /* [rows][x_row] inputs, */
	Half *scratch;
	float *row;       /* [inputs] of one case */
	const Half *rows; /* inputs: x, unless they can be used where they are kept; all above is constant */
} HalfSpace;

Halves *halves_make(Ctx *cx, const Layout *l, int isa);
/* when weights are new; thread i of n, its share */
void halves_weights(const Program *p, const Halves *h, uint32_t i, uint32_t n);
/* for the data bound; NULL: they would take too much */
KeptHalves *halves_keep(Arena *a, const Program *p, const Halves *h);
HalfSpace *half_take(Ctx *cx, const Program *p, const Halves *h, uint32_t rows); /* for this many cases */
/* before cases are loaded */
void half_find(const Program *p, const Halves *h, HalfSpace *t, const uint64_t *cases, bool contiguous);
void half_load(const Program *p, const Halves *h, const HalfSpace *t, const uint64_t *cases, uint32_t first,
               uint32_t rows);

/* As kern->product. `panel` says whose weights b is. first: row of the space that row 0 of the product is. from: of
 * a gradient by source, the source that row 0 is; its depth is cases, from row 0 of the space on. */
void half_forward(const Program *p, const Halves *h, const HalfSpace *t, const Panel *panel, uint32_t first,
                  const Product *q);
void half_backward(const Program *p, const Halves *h, const HalfSpace *t, const Panel *panel, const Product *q);
void half_gradient(const Program *p, const Halves *h, const HalfSpace *t, const Panel *panel, uint32_t from,
                   const Product *q);

#endif
