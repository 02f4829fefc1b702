/* SPDX-License-Identifier: MIT */
/* A grid of blocks, emulated. A header of its own, since the kernel and the library use some names differently. */
#ifndef EMULATE_H
#define EMULATE_H

#include "base.h"
#include "job.h"

void emulate_grid(Arena *a, const Job *job, uint32_t blocks, uint32_t threads, uint64_t seed);

#endif
