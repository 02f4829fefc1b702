/* SPDX-License-Identifier: MIT */
/* Faster ways for batches of one case and for small networks. */
#ifndef FAST_H
#define FAST_H

#include "pass.h"

/* ---- online.c: batches of one case -------------------------------------------------------------- */

typedef struct Online Online;
#define NO_CASE UINT64_MAX
Online *online_make(Ctx *cx, const Program *p); /* for the layout; NULL: the network or an option is not for it */
bool online_accepts(const Program *p, const Batch *b);
void online_forward(Program *p, const Batch *b, Tally *t); /* the case then waits for its update */
bool online_waits(const Program *p);
void online_forget(Program *p);   /* drop the case that waits */
void online_gradient(Program *p); /* it becomes the pending sum; after online_flush */
void online_apply(Program *p, const Update *u);
uint64_t online_updates(Program *p, const Updates *s); /* as Target.run_updates */
void online_flush(const Program *p);                   /* deferred updates; all weights are in p->w then */
bool online_finite(const Program *p);                  /* are packed weights?  No update is deferred after that */
void online_steps_make(Program *p);                    /* online_steps.c: when data is bound */
void online_print(const Program *p, Buf *out);

/* ---- tiny.c: whole epochs of networks with at most 16 computed units ---------------------------- */

enum { TINY_CASES = 1 << 15 }; /* at most */
typedef struct TinyRun TinyRun;
TinyRun *tiny_make(Ctx *cx, Arena *a, const Program *p);         /* for the data bound; NULL: does not fit */
uint64_t tiny_updates(Program *p, TinyRun *r, const Updates *s); /* as Target.run_updates */

/* ---- tiny_steps.c: the same networks, batches of few cases -------------------------------------- */

/* lane_of: by unit.  NULL: does not fit. */
TinySteps *tiny_steps_make(Ctx *cx, Arena *a, const Program *p, bool momentum, const uint8_t *lane_of);

/* ---- restarts.c: many seeds, one in each lane --------------------------------------------------- */

bool cpu_restarts(Ctx *cx, Program *p, Restarts *all); /* as Target.restarts */
/* As far as it is known before a program is compiled: are they trained that way? */
bool lanes_suit(const Net *net, const Options *o, const Data *d, uint64_t seeds);

#endif
