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

#include "gf11.h"

enum { LANES = 64, ROW_BYTES = LANES * 4 };
enum { AHEAD = 12 };              /* chains ask for memory so many terms before: their list has so many more */
#define NONE UINT32_MAX

/* Row off of space 0, the slots of the block, or of another space: memory from a relocation register on. */
typedef struct Place { uint32_t off, space; } Place;

/* Besides the ALU operations of ops.def and LOAD and STORE, which are copies: */
enum {
	KOP_CHAIN = GOPS,         /* dst <- a + x1 * y1 + x2 * y2 + ..., rounded after each step as fmul and fadd do */
	KOP_LOOKUP,               /* dst <- sram[base + k + a] */
	KOP_PUT                   /* sram[base + k + b] <- a */
};
typedef struct Term { Place x, y; } Term;
typedef struct Inst {
	uint8_t op;
	uint16_t base;            /* relocation register of KOP_LOOKUP, KOP_PUT */
	uint32_t first, terms;    /* KOP_CHAIN */
	Cell k;
	Place dst, a, b, c;       /* c: condition */
} Inst;

/* A transfer through the switch: slot dst of lane l <- slot src of the lane whose word lies at from[l] words from
 * row src of block 0; -1: 0. */
typedef struct Transfer { uint32_t dst, src; const int32_t *from; } Transfer;

/* Instructions that a block runs by itself, then transfers, for which all blocks have to be there. */
typedef struct Stage { uint32_t inst, insts, transfer, transfers; } Stage;

typedef struct Sequence {
	Inst *inst;         uint32_t insts;
	Term *term;         uint32_t terms;
	Transfer *transfer; uint32_t transfers;
	Stage *stage;       uint32_t stages;
} Sequence;

typedef struct Space {            /* offsets used; reach: the last, with what is known of indices */
	bool far, written;
	uint16_t base;
	uint32_t low, high, reach;
} Space;

struct Prepared {
	const char *name;
	uint32_t spill_low;       /* what is relocated in SRAM must lie below */
	Space *space; uint32_t spaces;  /* [0] stands for the slots */
	Sequence *apart;          /* right where words of different relocation registers are different words */
	Sequence *safe;           /* right always */
};

/* ---- translate.c: data flow of a routine ----------------------------------------------------------------------- */

/* One operation, in the order of the times at which operations read, or, where they write memory or a masked register,
 * arrive.  So each reads what stands before it, and memory is read and written in this order. */
typedef struct Node {
	uint8_t op;               /* GOP_...; LOAD and STORE of either memory, a masked move as SELECT */
	bool far;                 /* LOAD, STORE: of DRAM */
	uint32_t in[3];           /* nodes a, b, condition; NONE */
	Addr addr;
	Cell k;
	uint32_t word;            /* LOAD, STORE: number of the word of memory, equal for equal addresses */
} Node;

typedef struct Flow {
	Ctx *cx;
	const Processors *p;
	const Routine *r;
	Node *node;   uint32_t nodes;
	uint32_t words;           /* different words of memory */
	Space *space; uint32_t spaces;
	uint32_t *space_of;       /* [2 * relocations] by far, base */
	int32_t **from;           /* [configurations] tables of Transfer, made when needed */
} Flow;
Flow *flow_make(Ctx *cx, const Processors *p, const Routine *r); /* in scratch, but `space` and `from` in keep */

/* ---- fuse.c: order, chains, slots ------------------------------------------------------------------------------ */

/* apart: words of different relocation registers are different.  fuse: join operations, else one by one in their
 * order. NULL if the processors have not slots enough, which cannot happen one by one. */
Sequence *sequence_make(Flow *f, bool apart, bool fuse);

/* ---- exec_kern.c ----------------------------------------------------------------------------------------------- */

enum { MAX_SPACES = 2 * 256 + 1 };
typedef struct Frame {            /* what a block runs in */
	char *space[MAX_SPACES];
	const uint32_t *base;
	uint32_t *sram;           /* of the block's first lane */
	uint32_t lanes, words;    /* of a row of memory; of SRAM */
} Frame;
typedef void KernelFn(const Sequence *s, const Stage *st, const Frame *f);
typedef struct Kernel { const char *name; KernelFn *run; } Kernel;
extern const Kernel kernels[];    /* best first; each gives the same bits */
extern const uint32_t kernel_count;
bool kernel_runs(uint32_t kernel); /* on this CPU */

/* ---- pool.c: threads that wait for work ------------------------------------------------------------------------ */

typedef void PoolFn(void *arg, uint32_t thread);
typedef struct Pool Pool;
Pool *pool_new(Ctx *cx, uint32_t threads);                   /* joined when cx->keep goes; fewer if need be */
uint32_t pool_threads(const Pool *p);
void pool_run(Pool *p, PoolFn *fn, void *arg);               /* fn(arg, i) for all i, on this thread and the others */
void pool_barrier(Pool *p);                                  /* inside fn: all have come */

/* ---- execute.c ------------------------------------------------------------------------------------------------- */

static inline uint32_t *block_row(const Processors *p, uint32_t block, uint32_t slot)
{
	return p->reg + ((size_t)block * p->slots + slot) * LANES;
}

void execute_with(Processors *p, const Sequence *s, const Prepared *r, const uint32_t *base, uint32_t kernel);

#endif
