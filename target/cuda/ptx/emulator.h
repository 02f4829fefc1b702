/* SPDX-License-Identifier: MIT */
/* The inside of the simulator: decoded instructions, the parser, the state of a running grid. */
#ifndef EMULATOR_H
#define EMULATOR_H

#include <fenv.h>
#include <math.h>

#include "ptx.h"

enum { LANES = 32, MAX_WARPS = 32, BARRIERS = 16, MAX_SOURCES = 10, MAX_RESULTS = 4 };

/* ---- instructions ----------------------------------------------------------------------------------- */

typedef enum Type {
	T_NONE,
	T_PRED,
	T_B8,
	T_U8,
	T_S8,
	T_B16,
	T_U16,
	T_S16,
	T_B32,
	T_U32,
	T_S32,
	T_F32,
	T_B64,
	T_U64,
	T_S64,
	T_F64
} Type;
uint32_t type_bytes(Type t); /* of memory; 0: T_PRED, T_NONE */
bool type_is_float(Type t);
Type type_named(const char *s, size_t len); /* "u32"; T_NONE: no type */
const char *type_name(Type t);

/* ALU operations are the rows of ops.def; f32 arithmetic is apart, since .ftz and NaNs need care (floats.c). */
typedef enum Op {
#define OP(id, ...) OP_##id,
#include "ops.def"
#undef OP
	OP_ALU_END,
	OP_FLOAT = OP_ALU_END, /* Insn.sub: FloatOp */
	OP_SETP,               /* sub: Compare; combine: with the third operand */
	OP_SELP,
	OP_PRED, /* sub: a PredOp */
	OP_PACK, /* mov of { } */
	OP_UNPACK,
	OP_CLOCK,
	OP_LOAD,
	OP_STORE,
	OP_ATOMIC,   /* sub: an AtomicOp; no result: red */
	OP_CP_ASYNC, /* cp.async */
	OP_CP_COMMIT,
	OP_CP_WAIT,         /* offset: groups that may be pending; -1: none, not even uncommitted copies */
	OP_NOP,             /* prefetch, wgmma.fence */
	OP_BARRIER,         /* sub: a BarrierKind */
	OP_CLUSTER_BARRIER, /* sub: B_ARRIVE, or B_SYNC: waits */
	OP_MBARRIER,        /* sub: an MbarrierOp */
	OP_STORE_ASYNC,     /* st.async; target: offset of the first address */
	OP_CP_BULK,         /* cp.async.bulk; target: likewise */
	OP_PROXY_FENCE,     /* sub: spaces, a FENCE_ bit each */
	OP_WARP_SYNC,
	OP_FENCE,
	OP_SHUFFLE, /* sub: a ShuffleKind */
	OP_VOTE,    /* sub: a VoteKind */
	OP_MATCH,
	OP_REDUX, /* sub: an AtomicOp */
	OP_MMA,
	OP_LDMATRIX, /* sub: transposed; width: matrices */
	OP_WGMMA,    /* width: tiles of 8 columns; list: registers of sums; offset: adds to them */
	OP_WGMMA_COMMIT,
	OP_WGMMA_WAIT, /* offset: groups that may be pending */
	OP_BRANCH,
	OP_EXIT,
	OP_TRAP,
	OP_SLEEP
} Op;

typedef enum FloatOp {
	F_ADD,
	F_SUB,
	F_MUL,
	F_DIV,
	F_FMA,
	F_SQRT,
	F_MIN,
	F_MAX,
	F_NEG,
	F_ABS,
	F_MIN_NAN,
	F_MAX_NAN
} FloatOp;
/* Unordered ones (equ, ...): C_UNORDERED + the ordered one. */
typedef enum Compare { C_EQ, C_NE, C_LT, C_LE, C_GT, C_GE, C_NUM, C_NAN, C_UNORDERED } Compare;
typedef enum PredOp { P_MOV, P_NOT, P_AND, P_OR, P_XOR } PredOp;
typedef enum AtomicOp { A_ADD, A_AND, A_OR, A_XOR, A_MIN, A_MAX, A_EXCH, A_CAS, A_INC, A_DEC } AtomicOp;
typedef enum BarrierKind { B_SYNC, B_ARRIVE, B_POPC, B_AND, B_OR } BarrierKind;
typedef enum MbarrierOp { M_INIT, M_ARRIVE, M_EXPECT, M_WAIT } MbarrierOp;
typedef enum ShuffleKind { S_IDX, S_UP, S_DOWN, S_BFLY } ShuffleKind;
typedef enum VoteKind { V_BALLOT, V_ANY, V_ALL, V_UNI } VoteKind;
enum { FENCE_SHARED = 1, FENCE_GLOBAL = 2 };
typedef enum Space { IN_PARAM, IN_SHARED, IN_GLOBAL, IN_LOCAL, IN_CONST, SPACES } Space;
extern const char *const space_names[SPACES]; /* instruction.c */
typedef enum MemoryOrder { O_WEAK, O_RELAXED, O_ACQUIRE, O_RELEASE, O_ACQ_REL } MemoryOrder;

/* Operands are slots of the register file. A slot is 32 words, one per lane; a 64-bit value has two adjacent slots. A
 * predicate is one word of its slot: a bit per lane. Slots with bit CONSTANT are the kernel's, others the warp's. */
enum { CONSTANT = 1 << 29, NO_SLOT = 1 << 30 };
typedef struct Insn {
	uint16_t op;
	uint8_t sub, type, space, order; /* order: MemoryOrder */
	uint8_t width;                   /* elements of a vector */
	uint8_t results;                 /* used of d */
	uint8_t sources;                 /* used of a */
	uint8_t combine;                 /* setp: PredOp P_AND, P_OR, P_XOR; 0: none */
	bool ftz;
	bool guard_not;   /* @!p */
	bool local_scope; /* .cta or .cluster: orders nothing beyond */
	bool last_not;    /* the source that is a predicate is negated */
	bool remote;      /* shared::cluster: shared memory of any block of the cluster */
	bool leaves_poll; /* a branch that leaves a loop that polls */
	uint32_t guard;   /* slot of the predicate; NO_SLOT: always executed */
	uint32_t d[MAX_RESULTS], a[MAX_SOURCES];
	uint32_t *list;  /* wgmma: slots that are results and sources */
	int64_t offset;  /* of an address; or an immediate of the instruction */
	uint32_t target; /* of a branch: pc */
	uint32_t at;     /* in the text */
} Insn;

typedef struct AluRow {
	const char *names; /* mnemonics, separated by blanks */
	Type d, a, b, c;   /* of the result, of operands */
} AluRow;
extern const AluRow alu_rows[OP_ALU_END];

/* Special registers that do not change: slots of a warp, written when it starts. */
typedef struct Special {
	const char *name;
	uint32_t which;
} Special;
enum {
	SR_TID,
	SR_NTID,
	SR_CTAID,
	SR_NCTAID,
	SR_LANE,
	SR_WARP,
	SR_NWARP,
	SR_ZERO,
	SR_ONE,
	SR_MASK_EQ,
	SR_MASK_LT,
	SR_MASK_LE,
	SR_MASK_GT,
	SR_MASK_GE,
	SR_DYNAMIC,
	SR_COUNT
};

typedef struct KernelParam {
	char *name;
	uint32_t at, bytes;
} KernelParam;

struct Kernel {
	Kernel *next;
	const Module *of;
	char *name;
	Insn *code;
	uint64_t length, code_cap;
	KernelParam *param;
	uint64_t params, param_cap;
	uint32_t param_bytes;
	uint32_t slots;             /* of a warp */
	uint32_t special[SR_COUNT]; /* slots of special registers; NO_SLOT: not used */
	uint32_t *constant;         /* [constants][LANES] */
	uint64_t constants, constant_cap;
	uint32_t shared;  /* bytes of static shared memory; dynamic shared memory follows */
	uint32_t local;   /* bytes of local memory of a thread */
	uint32_t threads; /* .maxntid or .reqntid; 0: any */
	bool threads_exact;
	bool async; /* has cp.async.bulk or wgmma, which access memory through the async proxy */
};

/* An array of the module: .global or .const. */
typedef struct Global {
	struct Global *next;
	uint8_t *at;
} Global;

struct Module {
	Module *next;
	Emulator *emulator;
	Arena arena;
	Src src;
	Kernel *kernel;
	Global *global;
};

void module_parse(Module *m); /* parse.c */

/* ---- parse.c ---- */

typedef struct Token {
	const char *s;
	uint32_t len; /* 0: the end of the text */
} Token;
typedef enum SymbolKind { SYM_REG, SYM_SHARED, SYM_GLOBAL, SYM_LOCAL, SYM_PARAM, SYM_CONST } SymbolKind;
typedef struct Symbol {
	Token name;
	uint8_t kind, type;
	uint32_t slot;  /* SYM_REG: of the first register */
	uint32_t count; /* SYM_REG: %x<count>; 0: a single register */
	uint64_t value; /* address or offset */
	uint32_t chain, hash;
} Symbol;
typedef struct Label {
	Token name;
	uint32_t pc; /* NO_PC: not defined yet */
	uint32_t chain;
} Label;
enum { BUCKETS = 4096, NO_PC = INT32_MAX };
typedef struct Parser {
	Module *m;
	Ctx *cx;
	const char *p, *end;
	Token now;      /* next token */
	Kernel *kernel; /* that is being parsed; NULL: module level */
	Symbol *symbol;
	uint64_t symbols, symbol_cap;
	uint32_t symbol_bucket[BUCKETS]; /* index + 1 */
	Label *label;
	uint64_t labels, label_cap;
	uint32_t label_bucket[BUCKETS];
	uint32_t constant_bucket[BUCKETS];
	struct ConstantName *constant;
	uint64_t constants, constants_cap;
	uint32_t shared;             /* module's static bytes */
	struct Registers *registers; /* of the kernel */
	uint64_t register_runs, register_cap;
	uint32_t op_bucket[BUCKETS]; /* names of the ALU rows */
	struct AluName *op_name;
	uint64_t op_names, op_name_cap;
} Parser;
typedef struct Registers { /* of one declaration, %x<count>: adjacent slots */
	Type type;
	uint32_t slot, count;
} Registers;
typedef struct ConstantName {
	uint64_t value;
	bool wide;
	uint32_t slot, chain;
} ConstantName;
typedef struct AluName {
	Token name;
	uint16_t op;
	uint32_t chain;
} AluName;
_Noreturn void parse_fail(Parser *p, Token at, const char *remedy, const char *fmt, ...) PRINTF_LIKE(4, 5);
void ptx_next(Parser *p);
bool ptx_is(Token t, const char *s);
bool ptx_take(Parser *p, const char *s);
void ptx_expect(Parser *p, const char *s);
bool ptx_whole(Token t, uint64_t *v); /* an integer, decimal or 0x */
const Symbol *symbol_find(const Parser *p, Token name, uint32_t *number);
Label *label_find(Parser *p, Token name);
uint32_t hash_token(Token t);
void instruction_parse(Parser *p);

/* ---- operand.c ---- */
uint32_t constant_slot(Parser *p, uint64_t v, bool wide);
bool register_find(Parser *p, Token t, Type *type, uint32_t *slot);
/* at_least: may be wider than the type, as for loads and stores. */
uint32_t take_register(Parser *p, Type t, bool at_least);
uint64_t take_immediate(Parser *p, Type t);
uint32_t take_source(Parser *p, Type t);
void add_source(Parser *p, Insn *i, Type t); /* with the comma before it, except before the first */
uint32_t special_slot(Parser *p, uint32_t which);
void take_address(Parser *p, Insn *i, Space space); /* a source and the offset */
/* { a, b }: returns the number of elements. result: _ is allowed, as NO_SLOT */
uint32_t take_list(Parser *p, uint32_t *slot, uint32_t most, Type t, bool result, bool at_least);
void take_registers(Parser *p, uint32_t *slot, uint32_t count, Type t,
                    bool result); /* exactly `count`, none of them _ */
void alu_names_make(Parser *p);

/* ---- registers.c ---- */
void registers_allocate(Kernel *k, Arena *a, const Registers *all, uint64_t count); /* all: declarations; a: scratch */

/* ---- state of a running grid ---- */

typedef enum WarpState { WARP_READY, WARP_WAITS, WARP_DONE } WarpState;

/* A pending cp.async. */
typedef struct Copy {
	uint32_t to, bytes;
	uint32_t zeros; /* bytes that are zero-filled after those */
	uint64_t from;
	uint8_t lane;
	bool read;      /* source was read at issue, into data; else it is read at completion */
	uint32_t group; /* commit group of the lane */
	uint32_t at;    /* instruction in the text */
	uint8_t data[16];
} Copy;

/* A register that a pending wgmma will write. */
typedef struct PendingSum {
	uint32_t slot, group;
} PendingSum;

typedef struct Block Block;
typedef struct Shadow Shadow;
typedef struct Warp {
	Block *block;
	uint32_t number;  /* in the block */
	uint32_t of_grid; /* in the grid */
	uint8_t state;    /* WARP_ */
	/* control */
	uint32_t pc;             /* of active lanes */
	uint32_t next_pc;        /* lowest of the other lanes, where they reconverge; NO_PC: not divergent */
	uint32_t active;         /* mask: lanes at pc */
	uint32_t live;           /* mask: lanes that have not exited */
	uint32_t lane_pc[LANES]; /* of lanes that are not active */
	uint32_t ahead;          /* mask: lanes that have left a loop that polls, and run before the others; 0: none */
	uint32_t waits_at;       /* number of a barrier; BARRIERS: the cluster barrier */
	uint32_t phase;          /* of the cluster barrier, that the warp has arrived in; 0: none */
	/* registers and local memory */
	uint32_t *reg;     /* [slots][LANES] */
	uint32_t *defined; /* [slots] a bit per lane */
	uint8_t *local;
	/* cp.async */
	uint32_t copy_group[LANES]; /* groups that each lane has committed */
	Copy *copy;
	uint64_t copies, copy_cap;
	/* wgmma */
	uint32_t wgmma_group; /* groups committed */
	PendingSum *pending_sum;
	uint64_t pending_sums, pending_sum_cap;
	struct {
		uint32_t *clock;  /* [Grid.clock_words] vector clock */
		uint32_t *seen;   /* clocks read by relaxed loads; a fence acquires them */
		uint32_t *fenced; /* clock at the last fence; relaxed stores release it */
		bool has_fenced;
		uint32_t syncs; /* clock of the lanes among each other */
		uint32_t bulks; /* bulk copies issued */
	} race;             /* only if Grid.races */
} Warp;

typedef struct Barrier {
	uint32_t arrived, expected; /* threads; expected 0: all of the block */
	uint32_t waiting;           /* mask of warps */
	uint32_t popc;
	bool all, any;
	uint32_t *clock;
} Barrier;

struct Block {
	uint32_t number;
	uint8_t *shared;
	uint8_t *word;  /* state of each word of shared memory */
	Shadow *shadow; /* races: NULL before the first access */
	Barrier barrier[BARRIERS];
	Warp *warp;
	uint32_t live; /* warps */
};
enum { REMOTE_SHIFT = 24 };                         /* of addresses of a cluster: ranks are above */
enum { WORD_DEFINED = 0xf, WORD_IN_FLIGHT = 0x10 }; /* WORD_DEFINED: a bit for each byte */

/* A cluster barrier: arrive and wait. */
typedef struct Cluster {
	uint32_t phase, arrived; /* phase: from 1; arrived: warps, in this phase */
	uint32_t *clock[2];      /* of odd and even phases */
} Cluster;

/* A pending cp.async.bulk. */
typedef struct Bulk {
	Warp *by;
	const Insn *insn;
	const uint8_t *from;
	uint8_t *data; /* [capacity] the source at issue */
	uint32_t bytes, capacity;
	Block *source; /* NULL: global memory */
	Block *block;  /* destination: offset `to` of its shared memory */
	uint32_t to;
	uint32_t polled; /* polls of its mbarrier that failed */
	uint8_t lane;
	uint8_t *bar;
	uint32_t *clock; /* races: what its completion releases */
} Bulk;

typedef struct Allocation {
	uint8_t *at;
	uint64_t bytes, taken;
	bool constant;
	Shadow *shadow; /* races: NULL before the first access */
} Allocation;

typedef struct Grid {
	Emulator *e;
	Ctx *cx;
	const Kernel *k;
	Arena arena; /* freed when the launch ends */
	/* launch */
	uint32_t blocks, warps, threads; /* of the grid, of the grid, of a block */
	uint32_t block_warps;
	uint32_t cluster;      /* blocks of a cluster; 1: none */
	uint32_t shared_bytes; /* of a block */
	uint32_t dynamic;      /* where dynamic shared memory begins */
	uint8_t *param;
	/* state */
	Block *block;
	Cluster *clusters;
	Warp *warp; /* [warps] */
	Bulk *bulk; /* [bulks] pending; entries from there to bulks_made keep their memory for reuse */
	uint64_t bulks, bulks_made, bulk_cap;
	/* scheduler */
	uint32_t *ready, ready_count; /* warps that can run */
	uint64_t random;
	uint64_t budget;          /* instructions until another warp runs */
	uint64_t executed;        /* instructions */
	uint64_t idle, idle_most; /* instructions since memory changed; limit */
	const Insn *now;          /* executing: for messages */
	Allocation *last;         /* accessed last: lookup cache */
	fenv_t caller;            /* floating-point environment to restore */
	/* data races */
	bool races, ahead;
	uint32_t clock_words;            /* of a vector clock */
	struct ReleasedClock **released; /* clocks that releases left, by address */
} Grid;

_Noreturn void grid_fail(Grid *g, const Warp *w, uint32_t lane, const char *fmt, ...) PRINTF_LIKE(4, 5);
enum { NO_LANE = LANES };
uint64_t grid_random(Grid *g);
void warp_run(Grid *g, Warp *w); /* execute.c: until the budget is used up, the warp waits or has ended */
void block_barrier_arrive(Grid *g, Warp *w, const Insn *i, uint32_t number, uint32_t count, uint32_t pred,
                          uint32_t mask);
void barrier_recheck(Grid *g, Block *b); /* a warp has ended */
void cluster_arrive(Grid *g, Warp *w);
void cluster_wait(Grid *g, Warp *w);
void warp_ready(Grid *g, Warp *w);
void warp_unready(Grid *g, const Warp *w);

/* The lanes of an operand: a slot of the warp, or a constant. */
static inline const uint32_t *operand_lanes(const Grid *g, const Warp *w, uint32_t slot)
{
	return slot & CONSTANT ? g->k->constant + (uint64_t)(slot & ~(uint32_t)CONSTANT) * LANES
	                       : w->reg + (uint64_t)slot * LANES;
}

/* ---- access.c ---- */
typedef enum Access {
	ACCESS_READ,
	ACCESS_WRITE,
	ACCESS_ATOMIC_READ,
	ACCESS_ATOMIC,
	ACCESS_ATOMIC_STORE, /* changes the word: a flag, which must not be lost */
	ACCESS_PRODUCT,      /* a read by wgmma */
	ACCESS_BULK_READ,    /* of the source of a bulk copy */
	ACCESS_BULK_WRITE    /* of its destination */
} Access;
void access_load(Grid *g, Warp *w, const Insn *i, uint32_t mask);
void access_store(Grid *g, Warp *w, const Insn *i, uint32_t mask);
void access_atomic(Grid *g, Warp *w, const Insn *i, uint32_t mask);
void access_copy(Grid *g, Warp *w, const Insn *i, uint32_t mask);
void access_commit(Warp *w, uint32_t mask);
void access_wait(Grid *g, Warp *w, int64_t left, uint32_t mask);
void access_matrices(Grid *g, Warp *w, const Insn *i, uint32_t mask); /* ldmatrix */
/* Memory that a lane accesses; the access is checked and recorded. Shared memory is of any block if Insn.remote. */
uint8_t *shared_place(Grid *g, Warp *w, const Insn *i, uint32_t lane, uint32_t bytes, Access how);
const uint8_t *shared_read(Grid *g, Warp *w, uint32_t address, uint32_t lane, uint32_t bytes, Access how);
/* Global memory that a bulk copy reads: address in `slot`, plus `offset`. */
const uint8_t *global_place(Grid *g, Warp *w, uint32_t slot, int64_t offset, uint32_t lane, uint32_t bytes);
Block *block_at(Grid *g, const Warp *w, uint32_t address, uint32_t lane); /* that has this shared address */
uint32_t lane_value(const Grid *g, const Warp *w, uint32_t slot, uint32_t lane);
uint64_t lane_wide(const Grid *g, const Warp *w, uint32_t slot, uint32_t lane);
uint64_t atomic_apply(AtomicOp op, Type t, uint64_t old, uint64_t b, uint64_t c);

/* ---- mbarrier.c ---- */
void mbarrier_execute(Grid *g, Warp *w, const Insn *i, uint32_t mask);
void store_async_execute(Grid *g, Warp *w, const Insn *i, uint32_t mask);
void mbarrier_bytes(Grid *g, const Bulk *b); /* complete_tx of a bulk copy */

/* ---- bulk.c ---- */
bool bulk_parse(Parser *p, Insn *i, Token name); /* false: it is another instruction */
void bulk_execute(Grid *g, Warp *w, const Insn *i, uint32_t mask);
const Bulk *bulk_to(const Grid *g, const Block *b, uint64_t address); /* pending copy to this word; NULL: none */
void bulk_polled(Grid *g, const uint8_t *bar);                        /* a poll failed */
void bulk_step(Grid *g);                                              /* between runs of warps */
void bulk_block_ended(Grid *g, const Block *b);

/* ---- mma.c ---- */
void mma_execute(Grid *g, Warp *w, const Insn *i, uint32_t mask);
double bf16_value(uint32_t two, uint32_t which); /* of the two in a word */

/* ---- wgmma.c ---- */
bool wgmma_parse(Parser *p, Insn *i, Token name); /* false: it is another instruction */
void wgmma_execute(Grid *g, Warp *w, const Insn *i, uint32_t mask);
void wgmma_commit(Warp *w);
void wgmma_wait(Warp *w, uint32_t left);

/* ---- floats.c ---- */
void floats_apply(FloatOp op, bool ftz, uint32_t *d, const uint32_t *a, const uint32_t *b, const uint32_t *c);
double two_to_the(double x);
float float_flush(float x);
float float_of_double(double x, bool ftz);
double fma_double(double a, double b, double c);
void floats_enter(fenv_t *caller); /* IEEE arithmetic without flushing; saves the environment */
void floats_leave(const fenv_t *caller);

/* ---- emulator.c ---- */
struct Emulator {
	Ctx *cx;
	EmulatorOptions opt;
	Arena memory;
	Allocation *allocation; /* by address */
	uint64_t allocations, allocation_cap, used;
	uint64_t executed, launches;
	Grid running;
	Module *module;
};
void grid_end(Grid *g);                                           /* grid.c */
Allocation *allocation_find(const Emulator *e, uint64_t address); /* NULL: none holds it */
uint8_t *allocation_add(Emulator *e, uint64_t bytes, bool constant);

/* ---- races.c ---- */
void races_start(Grid *g);
Shadow *shadow_new(Grid *g, const Warp *w, uint64_t bytes, bool shared); /* of shared memory that this warp accesses */
void races_access(Grid *g, Warp *w, uint32_t lane, Shadow *m, uint64_t word, uint8_t bytes, Access how);
void races_load(Grid *g, Warp *w, uint32_t mask, Shadow *m, const uint64_t at[LANES], uint32_t width);
void races_release(Grid *g, Warp *w, uint64_t address, bool release, bool replaces);
void races_bulk_begin(Grid *g, Warp *w, Bulk *b);  /* the accesses of a copy come next, */
void races_bulk_issued(Grid *g, Warp *w, Bulk *b); /* or were all */
void races_bulk_landed(Grid *g, const Bulk *b, uint64_t address, bool replaces);
void races_bar_made(Grid *g, const Warp *w, const uint8_t *bar);
void races_proxy_fence(Grid *g, Warp *w, uint32_t spaces);
void races_acquire(Grid *g, Warp *w, uint64_t address, bool acquire);
void races_fence(Grid *g, Warp *w);
void races_arrive(Grid *g, Warp *w, uint32_t **clock); /* of a barrier; NULL: none yet */
void races_leave(Grid *g, Warp *w, const uint32_t *clock);
void races_warp_sync(Warp *w);
uint32_t line_of(const Grid *g, uint32_t at); /* in the text */
void races_barrier_reset(Grid *g, uint32_t *clock);

#endif
