/* SPDX-License-Identifier: MIT */
/* microprop bench: works to measure, what this computer could do at most, the command. */
#ifndef BENCH_H
#define BENCH_H

#include "isa.h"
#include "ceiling.h"

/* ---- ceiling.c: what the machine could do at most ----------------------------------------------- */

typedef struct Cpus {
	uint32_t count;
	int *number;
} Cpus; /* that this process may use; number NULL: not known which */
Cpus cpus_here(Ctx *cx);
CeilingFn *ceiling_of(int isa); /* of fp32 multiply-adds; amx: of tile products */
/* Each a few hundredths of a second; threads are pinned to CPUs of their own. */
double ceiling_gflops(Ctx *cx, const Cpus *c, uint32_t threads, CeilingFn *fn);
double ceiling_copy(Ctx *cx, const Cpus *c, uint32_t threads); /* GB/s, read and written counted; 0: no memory */

/* ---- works.c: networks to train, and training them for a while ---------------------------------- */

typedef struct Work {
	const char *name, *shape; /* as in --only; in words */
	const char *text;         /* the network */
	uint64_t examples;
	double rate; /* for a batch of 1 */
	Data *(*make)(Ctx *cx, const struct Work *w, bool index);
} Work;
typedef struct Spec {
	const Work *work;
	const char *batch;
	bool index;
} Spec;
extern const Spec specs[];
extern const uint32_t spec_count;

/* A network that is being trained: all that a run has, and what came out of it so far. */
typedef struct Row {
	const Spec *spec;
	bool bf16;
	uint32_t threads;
	int isa;
	const Net *net;
	const Data *data;
	Options opt;
	Program *program;
	uint64_t examples, batch; /* of an epoch, of an update */
	uint64_t *order;          /* [examples], and of as many epochs; NULL: as they stand */
	uint64_t epochs;          /* that may go in one go; 0: an epoch is too long for that */
	uint64_t done, updates;   /* examples of this epoch, updates since the start */
	double *mcps;             /* [rounds] */
} Row;
void row_start(Ctx *cx, Row *r);          /* spec, data, bf16 and threads are set */
double row_round(Row *r, double seconds); /* trains for about so long; MCPS */
double row_flops(const Row *r);           /* for a connection and case */

/* ---- bench.c ------------------------------------------------------------------------------------ */

void cpu_tool(Ctx *cx, int argc, const char *const *argv, Buf *out);

#endif
