/* SPDX-License-Identifier: MIT */
/* Compact form of a routine: made by translate.c and fuse.c, run by exec_kern.c, distributed over threads by execute.c.
 *
 *   Routine --translate--> Flow (data flow without timing) --fuse--> Sequence --kernel--> values
 *
 * Processors are processed in blocks of LANES, or in half blocks where threads share one.  A row is one word of each
 * processor of a block.  A RowRef names a row
 * of the block's slots or of memory, relocated at the call.  Any operand and any result may be either, so loads and
 * stores are folded into the operations that use them. */
#ifndef EXECUTE_H
#define EXECUTE_H

#include <pthread.h>
#include <stdatomic.h>

#include "gf11_sim.h"

enum { ROW_BYTES = LANES * 4 };
#define NONE UINT32_MAX

/* space 0: slot `off` of the block; other spaces: row `off` of memory, relative to a relocation register */
typedef struct RowRef {
	uint32_t off, space;
} RowRef;

/* Besides the ALU operations of ops.def and LOAD and STORE, which copy a row: */
enum {
	KOP_CHAIN = GOPS, /* dst <- a + x1 * y1 + x2 * y2 + ..., rounded after each operation like fmul and fadd */
	KOP_LOOKUP,       /* dst <- sram[base + k + a] */
	KOP_PUT           /* sram[base + k + b] <- a */
};
typedef struct Term {
	RowRef x, y;
} Term;
typedef struct Inst {
	uint8_t op;
	uint16_t base;                 /* relocation register of KOP_LOOKUP, KOP_PUT */
	uint32_t first, terms;         /* KOP_CHAIN */
	uint32_t prefetch, prefetches; /* range of rows to prefetch */
	Cell k;
	RowRef dst, a, b, c; /* c: condition */
} Inst;

/* A switch configuration as a gather: lane l receives the word at offset from[l] of the row of block 0; -1: it
 * receives 0. For vectors, the same by strips of STRIP lanes: strip s selects its words from the aligned source
 * strips part[first[s]] .. part[first[s + 1] - 1]. */
enum { STRIP = 16 };
typedef struct StripSource {
	int32_t from;
	uint16_t lanes;
} StripSource; /* lanes: bit mask of the lanes that take their word from there */
/* part [lanes]; disk [disks]: receiving lane, or -1; NULL: no disk sends */
typedef struct SwitchRoute {
	int32_t *from;
	uint32_t *first;
	StripSource *part;
	int32_t *disk;
} SwitchRoute;

/* Transfer through the switch: dst of all lanes <- src gathered by the route, plus `add` of the same lane; NONE: no
 * add. */
/* taken: words consumed of each disk before it */
typedef struct Transfer {
	uint32_t dst, src, add;
	const SwitchRoute *route;
	uint32_t taken;
} Transfer;

/* Instructions that a block executes independently, then transfers after a barrier.  Other blocks may still read the
 * slots sent while a block executes the next stage, so its instructions must not write those slots. */
typedef struct Stage {
	uint32_t inst, insts, transfer, transfers;
} Stage;

typedef struct Sequence {
	Inst *inst;
	uint32_t insts;
	Term *term;
	uint32_t terms;
	Transfer *transfer;
	uint32_t transfers;
	Stage *stage;
	uint32_t stages;
	RowRef *prefetch;
	uint32_t prefetches;
} Sequence;

typedef struct Space { /* offsets used; last: the highest, including index limits */
	bool far, written;
	uint16_t base;
	uint32_t low, high, last;
} Space;

struct Prepared {
	const char *name;
	uint32_t spill_low; /* relocated SRAM regions must end below */
	Space *space;
	uint32_t spaces;     /* [0]: the slots */
	Sequence *no_alias;  /* valid if regions of different relocation registers are disjoint */
	Sequence *may_alias; /* always valid */
	SwitchRoute **route;
	uint32_t routes; /* by configuration; NULL: unused */
};

/* ---- translate.c: data flow of a routine -------------------------------------------------------- */

/* One operation.  Nodes are in the order in which operations read, or, for memory writes and masked moves, are written
 * back: each reads values of earlier nodes, and memory is accessed in this order. */
typedef struct FlowNode {
	uint8_t op;     /* GOP_...; LOAD and STORE for both memories, SELECT for a masked move */
	bool far;       /* LOAD, STORE: of DRAM */
	uint32_t in[3]; /* nodes a, b, condition; NONE */
	Addr addr;
	Cell k;
	/* LOAD, STORE: number of the memory word, equal for equal addresses; XFER: words consumed of each disk before it,
	 * NONE: it consumes none */
	uint32_t word;
} FlowNode;

typedef struct Flow {
	Ctx *cx;
	const Processors *p;
	const Routine *r;
	FlowNode *node;
	uint32_t nodes;
	uint32_t words; /* distinct memory words */
	uint32_t taken; /* words consumed of each disk */
	Space *space;
	uint32_t spaces;
	uint32_t *space_of;  /* [2 * relocations] by base and far */
	SwitchRoute **route; /* [configurations] created on demand */
} Flow;
Flow *flow_make(Ctx *cx, const Processors *p, const Routine *r); /* in scratch, except space and routes (keep) */
void route_fill(const Processors *p, uint32_t configuration, SwitchRoute *r);

/* ---- fuse.c: fused sequences ------------------------------------------------------------------- */

/* no_alias: regions of different relocation registers are disjoint.  window: transfers that are ordered together; 0: no
 * operations are fused, all are executed in order.  NULL: not enough slots, which cannot happen with window 0. */
Sequence *sequence_make(Flow *f, bool no_alias, uint32_t window);

/* ---- prefetch.c: software prefetch --------------------------------------------------------------- */

void sequence_prefetch(Ctx *cx, Sequence *s);

/* ---- exec_kern.c -------------------------------------------------------------------------------- */

enum { MAX_SPACES = 2 * 256 + 1 };
enum { HALF = LANES / 2 };
typedef struct Frame { /* execution environment of a block, or of one half */
	char *space[MAX_SPACES];
	const uint32_t *base;
	uint32_t *sram;        /* of the first lane */
	uint32_t lanes, words; /* lanes of a memory row; words of SRAM */
} Frame;
typedef void KernelFn(const Sequence *s, const Stage *st, const Frame *f, uint32_t count); /* lanes: LANES or HALF */
/* Transfers of one route to the lanes from `lane` on, LANES or HALF. */
typedef void SendFn(const Processors *p, const Transfer *t, uint32_t transfers, uint32_t lane, uint32_t count);
typedef struct Kernel {
	const char *name;
	KernelFn *run;
	SendFn *send;
} Kernel;
extern const Kernel kernels[]; /* best first; bit-identical results */
extern const uint32_t kernel_count;
bool kernel_runs(uint32_t kernel); /* on this CPU */
uint32_t kernel_best(void);        /* the first that runs */

/* ---- execute.c ---------------------------------------------------------------------------------- */

static inline uint32_t *block_row(const Processors *p, uint32_t block, uint32_t slot)
{
	return p->reg + ((size_t)block * p->slots + slot) * LANES;
}

typedef struct PreparedCall {
	const Prepared *r;
	const Sequence *s;
	const uint32_t *base;
} PreparedCall;
PreparedCall execute_call(const Prepared *r,
                          const uint32_t *base); /* selects the sequence that is valid for these bases */
/* Calls without transfers; each block runs all of them while its memory is cached. */
void execute_calls(Processors *p, const PreparedCall *call, uint32_t count);
void controller_flush(Controller *c);                     /* control.c: executes deferred calls */
void controller_enqueue(Controller *c, uint32_t routine); /* control.c: executes, or defers if possible */
void execute_with(Processors *p, const Sequence *s, const Prepared *r, const uint32_t *base, uint32_t kernel);

#endif
