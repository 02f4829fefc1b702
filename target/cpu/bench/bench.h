/* SPDX-License-Identifier: MIT */
/* microprop bench: networks to train, ceilings of this computer, the command. */
#ifndef BENCH_H
#define BENCH_H

#include "isa.h"
#include "target.h"
#include "ceiling.h"

/* ---- ceiling.c: peak rates of this computer ----------------------------------------------------- */

/* CPUs that this process may use. */
typedef struct Cpus {
	uint32_t count;
	int *number; /* NULL: unknown */
} Cpus;
Cpus cpus_here(Ctx *cx);
CeilingFn *ceiling_of(int isa); /* of fp32 multiply-adds; amx: of tile products */
/* Each takes some 20 ms; every thread is pinned to a CPU. */
double ceiling_gflops(Ctx *cx, const Cpus *c, uint32_t threads, CeilingFn *fn);
double ceiling_copy(Ctx *cx, const Cpus *c, uint32_t threads); /* GB/s, reads plus writes; 0: no memory */

/* ---- works.c: networks to train, and training them for a while ---------------------------------- */

typedef struct Work {
	const char *name, *shape; /* for --only; for people */
	const char *text;         /* the network */
	uint64_t examples;
	double rate; /* for a batch of 1 */
	Data *(*make)(Ctx *cx, const struct Work *w, bool index);
} Work;
typedef struct Spec {
	const Work *work;
	const char *batch;
	bool index;
	bool gpu_only; /* too slow, or of no interest, on a CPU */
} Spec;
extern const Spec specs[];
extern const uint32_t spec_count;

/* A network in training and its measurements. */
typedef struct Row {
	const Spec *spec;
	const Target *target;
	bool bf16;
	uint32_t threads;
	int isa;
	const Net *net;
	const Data *data;
	Options opt;
	Program *program;
	uint64_t examples, batch; /* of an epoch, of an update */
	uint64_t *order;          /* [epochs or 1][examples]; NULL: file order */
	uint64_t epochs, at_once; /* of a bulk update: 0: an epoch is too long; examples, at most */
	uint64_t done, updates;   /* examples of this epoch, updates since the start */
	double *mcps;             /* [rounds] */
} Row;
void row_start(Ctx *cx, Row *r);          /* spec, target, data, bf16 and threads are set */
double row_round(Row *r, double seconds); /* trains for about this long; MCPS */
double row_flops(const Row *r);           /* for a connection and case */

/* Does --only, WORK or WORK:BATCH, select it? NULL selects all. */
bool spec_selected(const char *only, bool gpu, const Spec *s);
void only_check(Ctx *cx, const char *only, bool gpu); /* fails if it selects nothing */
int rate_order(const void *a, const void *b);         /* for qsort */

/* ---- bench.c ------------------------------------------------------------------------------------ */

void cpu_tool(Ctx *cx, int argc, const char *const *argv, Buf *out);

#endif
