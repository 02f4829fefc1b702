/* SPDX-License-Identifier: MIT */
/* What a routine does, as far as faults ask: made once from its microwords. */
#ifndef FOOTPRINT_H
#define FOOTPRINT_H

#include "gf11_sim.h"

/* A word of memory that is named in the code, under its relocation register. */
typedef struct WordUse {
	bool far;
	uint16_t base;
	uint32_t off;
	uint32_t reads_end;           /* the cycle after it was read last; 0: never */
	uint32_t writes, first_write; /* how often it is written, and in which cycle first */
} WordUse;
/* Words of SRAM that lookups and puts may lead to: the first of a register; words 0: anywhere. */
typedef struct Indexed {
	uint16_t base;
	bool put;
	uint32_t words;
} Indexed;
typedef struct ConfigUse {
	uint32_t configuration, times, first;
} ConfigUse; /* of the switch; first: line */

typedef struct Footprint {
	uint32_t alu;                  /* operations of the ALU */
	uint64_t registers[4096 / 64]; /* written */
	WordUse *word;
	uint32_t words; /* by far, base, off */
	Indexed *indexed;
	uint32_t indexes;
	ConfigUse *use;
	uint32_t uses;
	uint32_t written; /* of the words */
	bool puts;
} Footprint;
Footprint *footprint_make(Ctx *cx, const Machine *m, const Routine *r); /* in keep */

/* One word of memory in one call, through whichever registers. */
typedef struct WordAccess {
	uint32_t reads_end, writes, first_write;
	bool looked_up, put;
} WordAccess;
WordAccess footprint_access(const Footprint *f, const Machine *m, const uint32_t *base, bool far, uint32_t addr);

#endif
