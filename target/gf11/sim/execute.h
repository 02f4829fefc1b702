/* SPDX-License-Identifier: MIT */
/* The compact form of a routine: what translate.c and fuse.c make, exec_kern.c runs and execute.c spreads over
 * threads.
 *
 *   Routine --translate--> Flow (what each operation reads, no time left) --fuse--> Sequence --kernel--> values
 *
 * Processors are taken in blocks of LANES.  A row is one word of each processor of a block.  A place names a row: of
 * the slots of the block or of memory, relocated at the call.  Any operand and any
 * result may be either, so loads and stores disappear into the operations that use them. */
#ifndef EXECUTE_H
#define EXECUTE_H

#include <pthread.h>
#include <stdatomic.h>

#include "gf11_sim.h"

enum { ROW_BYTES = LANES * 4 };
#define NONE UINT32_MAX

/* Row off of space 0, the slots of the block, or of another space: memory from a relocation register on. */
typedef struct RowRef {
	uint32_t off, space;
} RowRef;

/* Besides the ALU operations of ops.def and LOAD and STORE, which are copies: */
enum {
	KOP_CHAIN = GOPS, /* dst <- a + x1 * y1 + x2 * y2 + ..., rounded after each step as fmul and fadd do */
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
	uint32_t prefetch, prefetches; /* rows to ask for */
	Cell k;
	RowRef dst, a, b, c; /* c: condition */
} Inst;

/* A configuration of the switch, as all lanes of all blocks see it: the word that lane l receives lies from[l]
 * words from the row of block 0; -1: it receives 0. For vectors, the same by STRIP lanes side by side: strip s
 * takes some of the words of each of part[first[s]] .. part[first[s + 1] - 1], which are STRIP side by side, too. */
enum { STRIP = 16, STRIPS = LANES / STRIP };
typedef struct StripSource {
	int32_t from;
	uint16_t lanes;
} StripSource; /* lanes: bits of those that find their word there */
/* part [lanes]; disk [disks] the lane that gets its word, or -1; NULL: no disk sends */
typedef struct SwitchRoute {
	int32_t *from;
	uint32_t *first;
	StripSource *part;
	int32_t *disk;
} SwitchRoute;

/* A transfer through the switch: slot dst of all lanes <- slot src of those that the route names, plus slot add of
 * their own; NONE: nothing is added. */
/* taken: of each disk before it */
typedef struct Transfer {
	uint32_t dst, src, add;
	const SwitchRoute *route;
	uint32_t taken;
} Transfer;

/* Instructions that a block runs by itself, then transfers, for which all blocks have to be there. Others may still
 * read what they send when a block is at the instructions of the next stage: so these write to no slot that was
 * sent. */
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

typedef struct Space { /* offsets used; reach: the last, with what is known of indices */
	bool far, written;
	uint16_t base;
	uint32_t low, high, last;
} Space;

struct Prepared {
	const char *name;
	uint32_t spill_low; /* what is relocated in SRAM must lie below */
	Space *space;
	uint32_t spaces;     /* [0] stands for the slots */
	Sequence *no_alias;  /* right where words of different relocation registers are different words */
	Sequence *may_alias; /* right always */
	SwitchRoute **route;
	uint32_t routes; /* by configuration; NULL: not used */
};

/* ---- translate.c: data flow of a routine -------------------------------------------------------- */

/* One operation, in the order of the times at which operations read, or, where they write memory or a masked register,
 * arrive.  So each reads what stands before it, and memory is read and written in this order. */
typedef struct FlowNode {
	uint8_t op;     /* GOP_...; LOAD and STORE of either memory, a masked move as SELECT */
	bool far;       /* LOAD, STORE: of DRAM */
	uint32_t in[3]; /* nodes a, b, condition; NONE */
	Addr addr;
	Cell k;
	/* LOAD, STORE: number of the word of memory, equal for equal addresses; XFER: words taken of each disk before
	 * it, NONE: it takes none */
	uint32_t word;
} FlowNode;

typedef struct Flow {
	Ctx *cx;
	const Processors *p;
	const Routine *r;
	FlowNode *node;
	uint32_t nodes;
	uint32_t words; /* different words of memory */
	uint32_t taken; /* words of each disk */
	Space *space;
	uint32_t spaces;
	uint32_t *space_of;  /* [2 * relocations] by far, base */
	SwitchRoute **route; /* [configurations] made when needed */
} Flow;
Flow *flow_make(Ctx *cx, const Processors *p, const Routine *r); /* in scratch, but `space` and routes in keep */
void route_fill(const Processors *p, uint32_t configuration, SwitchRoute *r);

/* ---- fuse.c: order, chains, slots --------------------------------------------------------------- */

/* no_alias: words of different relocation registers are different.  fuse: join operations, else one by one in their
 * order. NULL if the processors have not slots enough, which cannot happen one by one. */
Sequence *sequence_make(Flow *f, bool no_alias, bool fuse);

/* ---- ahead.c: rows asked for before they are needed --------------------------------------------- */

void sequence_prefetch(Ctx *cx, Sequence *s);

/* ---- exec_kern.c -------------------------------------------------------------------------------- */

enum { MAX_SPACES = 2 * 256 + 1 };
typedef struct Frame { /* what a block runs in */
	char *space[MAX_SPACES];
	const uint32_t *base;
	uint32_t *sram;        /* of the block's first lane */
	uint32_t lanes, words; /* of a row of memory; of SRAM */
} Frame;
typedef void KernelFn(const Sequence *s, const Stage *st, const Frame *f);
typedef void SendFn(const Processors *p, const Transfer *t, uint32_t count, uint32_t block); /* all of one route */
typedef struct Kernel {
	const char *name;
	KernelFn *run;
	SendFn *send;
} Kernel;
extern const Kernel kernels[]; /* best first; each gives the same bits */
extern const uint32_t kernel_count;
bool kernel_runs(uint32_t kernel); /* on this CPU */

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
                          const uint32_t *base); /* with the sequence that is right for these registers */
/* Calls without transfers, one after the other; a block runs all of them while its memory is in the cache. */
void execute_calls(Processors *p, const PreparedCall *call, uint32_t count);
void controller_flush(Controller *c);                     /* control.c: calls put off are done */
void controller_enqueue(Controller *c, uint32_t routine); /* control.c: done, or put off if that may be */
void execute_with(Processors *p, const Sequence *s, const Prepared *r, const uint32_t *base, uint32_t kernel);

#endif
