/* SPDX-License-Identifier: MIT */
/* Accesses that nothing orders: not compared yet. */
#include "warp.h"

void races_start(Grid *g) { (void)g; }

void races_touch(Grid *g, Warp *w, uint32_t lane, struct Shadow **shadow, uint64_t words, uint64_t word, Access how,
                 const char *where)
{
	(void)g, (void)w, (void)lane, (void)shadow, (void)words, (void)word, (void)how, (void)where;
}

void races_release(Grid *g, Warp *w, uint64_t address, bool release) { (void)g, (void)w, (void)address, (void)release; }
void races_acquire(Grid *g, Warp *w, uint64_t address, bool acquire) { (void)g, (void)w, (void)address, (void)acquire; }
void races_fence(Grid *g, Warp *w) { (void)g, (void)w; }
void races_arrive(Grid *g, Warp *w, Barrier *b) { (void)g, (void)w, (void)b; }
void races_leave(Grid *g, Warp *w, const Barrier *b) { (void)g, (void)w, (void)b; }
void races_warp_sync(Grid *g, Warp *w) { (void)g, (void)w; }
void races_barrier_reset(Grid *g, Barrier *b) { (void)g, (void)b; }
