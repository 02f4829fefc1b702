/* SPDX-License-Identifier: MIT */
/* Memory and register footprint of a routine, for fault injection; made once from its microwords. */
#ifndef FOOTPRINT_H
#define FOOTPRINT_H

#include "gf11_sim.h"

/* A directly addressed memory word. */
typedef struct WordUse {
	bool far;
	uint16_t base;
	uint32_t off;
	uint32_t reads_end;           /* cycle after the last read; 0: never read */
	uint32_t writes, first_write; /* number of writes; cycle of the first */
} WordUse;
/* SRAM words that indexed accesses may reach: the first `words` of a base; 0: any. */
typedef struct Indexed {
	uint16_t base;
	bool put;
	uint32_t words;
} Indexed;
typedef struct ConfigUse {
	uint32_t configuration, times, first;
} ConfigUse; /* switch configuration; first: line of its first use */

typedef struct Footprint {
	uint32_t alu;                  /* number of ALU operations */
	uint64_t registers[4096 / 64]; /* written */
	WordUse *word;
	uint32_t words; /* sorted by far, base, off */
	Indexed *indexed;
	uint32_t indexes;
	ConfigUse *use;
	uint32_t uses;
	uint32_t written; /* number of words with writes */
	bool puts;
} Footprint;
Footprint *footprint_make(Ctx *cx, const Machine *m, const Routine *r); /* in keep */

/* Accesses to one memory word in one call, over all relocation registers. */
typedef struct WordAccess {
	uint32_t reads_end, writes, first_write;
	bool looked_up, put;
} WordAccess;
WordAccess footprint_access(const Footprint *f, const Machine *m, const uint32_t *base, bool far, uint32_t addr);

#endif
