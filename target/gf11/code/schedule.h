/* SPDX-License-Identifier: MIT */
/* Shared by the passes of the scheduler.
 *
 *   Code --source--> Source --depend--> DepGraph --list, exact--> cycle of each node --allocate--> physical registers
 *           spill ---^                    \--bound--> lower bounds */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "gf11_code.h"

#define NONE UINT32_MAX /* no node, no web, not recorded */

/* ---- priority queue: binary heap of keys, the largest first ---------------------------------------- */

typedef struct KeyHeap {
	uint64_t *key;
	uint32_t count;
} KeyHeap;

static inline void heap_push(KeyHeap *q, uint64_t key)
{
	uint32_t at = q->count++;
	while (at && key > q->key[(at - 1) / 2]) {
		q->key[at] = q->key[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	q->key[at] = key;
}

static inline uint64_t heap_pop(KeyHeap *q)
{
	uint64_t top = q->key[0], key = q->key[--q->count];
	uint32_t at = 0;
	for (uint32_t child; (child = 2 * at + 1) < q->count; at = child) {
		child += child + 1 < q->count && q->key[child + 1] > q->key[child];
		if (q->key[child] <= key)
			break;
		q->key[at] = q->key[child];
	}
	q->key[at] = key;
	return top;
}

/* ---- source ------------------------------------------------------------------------------------- */

/* Recorded code in the order of the passes; spilling inserts operations, reordering permutes them. */
typedef struct Source {
	const char *name;
	Rec *rec;
	uint32_t *origin; /* number in Code; NONE: spill operation */
	uint32_t recs, regs, conds;
	bool overlap, prescheduled;  /* overlap: regions under different bases may alias; prescheduled: as in Code */
	const uint32_t *index_limit; /* as in Code */
	uint32_t spills;
} Source;

/* ---- depend.c: dependence graph ----------------------------------------------------------------- */

enum { RES_ALU, RES_PORT, RES_SRAM, RES_DRAM, RES_SWITCH, RES_BANK }; /* RES_BANK + b: bank b */
enum { MAX_USES = 3 };
typedef struct ResourceUse {
	uint8_t resource;
	int32_t at, busy;
} ResourceUse;          /* occupied in cycles issue + at .. issue + at + busy - 1 */
typedef struct Timing { /* latency and reservation table of an operation */
	uint8_t unit, form;
	uint8_t uses;
	ResourceUse use[MAX_USES]; /* RES_BANK: the bank of its address */
	int32_t latency, span;     /* span: until the result is written and all resources are free */
} Timing;

/* A web is a set of values that must share one register (or condition code): a result and the masked moves that
 * modify it.  Its live range extends from the first write-back to the last read or write-back. */
typedef struct Web {
	uint32_t first, last, refs;
	bool cond;
} Web; /* first and last node that reference it; number of references */

/* Nodes are in topological order.  A node without an operation is a join: it merges many edges and uses no resource. */
typedef struct DepNode {
	uint32_t rec; /* in the source; NONE: join */
	uint8_t op;
	uint8_t bank;
	uint32_t dst, from[3]; /* webs of result, a, b and condition */
	uint32_t read[3];      /* webs of from without duplicates and without dst */
} DepNode;
typedef struct DepEdge {
	uint32_t node;
	int32_t delay;
} DepEdge; /* issue(to) >= issue(from) + delay; delay may be negative */

typedef struct DepGraph {
	const Machine *m;
	const Source *source;
	Timing timing[GOPS + 1]; /* [GOPS]: a join */
	DepNode *node;
	uint32_t nodes;
	DepEdge *in, *out;
	uint32_t *in_at, *out_at; /* [nodes + 1] */
	Web *web;
	uint32_t webs;
	uint32_t webs_of[2];          /* registers, conditions */
	uint32_t dead[2];             /* webs without a reader */
	int32_t *head, *tail;         /* critical path lengths: to issue; from issue to the end of the routine */
	int32_t *res_head, *res_tail; /* the same with resource conflicts of predecessors or successors: bound.c */
} DepGraph;

Source *source_new(Arena *a, const Code *code);
DepGraph *graph_build(Ctx *cx, Arena *a, const Machine *m, const Source *source);
static inline const Timing *node_timing(const DepGraph *g, uint32_t node)
{
	return &g->timing[g->node[node].op < GOPS ? g->node[node].op : GOPS];
}
int32_t graph_length(const DepGraph *g, const int32_t *time);

/* ---- bound.c ------------------------------------------------------------------------------------ */

typedef struct Bounds {
	int32_t resource, path, hrt, best;
} Bounds;
Bounds bound_graph(Arena *a, DepGraph *g); /* fills res_head and res_tail */

void report_count(const Code *code, Report *r); /* operations, arithmetic, transfers */
void report_bounds(const Bounds *b, Report *r);

/* ---- list.c: list scheduling -------------------------------------------------------------------- */

typedef struct Trial {
	bool backward;           /* schedules from the last cycle to the first */
	const int64_t *priority; /* [nodes] larger first */
	int32_t limit[2];        /* registers and conditions live or in flight, at most */
	uint32_t window;         /* nodes further ahead of program order than this obey the reserve */
	int32_t reserve[2];      /* registers and conditions kept free for nodes in the window */
	int32_t max_length;      /* abandon longer schedules */
} Trial;
typedef struct ListScheduler ListScheduler;
ListScheduler *list_new(Arena *a, const DepGraph *g);
/* Issue cycles of all nodes; program order must obey the limits.  False: abandoned. */
bool list_schedule(ListScheduler *l, const Trial *t, int32_t *time);
uint32_t list_placed(const ListScheduler *l);           /* operations issued in the last trial */
void serial_schedule(const DepGraph *g, int32_t *time); /* no overlap at all: always feasible */

/* ---- allocate.c: register allocation ------------------------------------------------------------ */

typedef struct Allocator Allocator; /* working memory, allocated once */
Allocator *allocator_new(Arena *a, const DepGraph *g);
/* Peak register pressure: in program order, or in a schedule. */
void pressure_ordered(Allocator *p, int32_t peak[2]);
void pressure_scheduled(Allocator *p, const int32_t *time, int32_t peak[2]);
/* Physical registers of webs, in phys[]; uses no more than pressure_scheduled. */
void allocate_registers(Allocator *p, const int32_t *time, uint32_t *phys);

/* ---- spill.c: reordering and spilling ----------------------------------------------------------- */

/* Source reordered for low register pressure: close to recorded order, or depth-first. */
Source *source_reorder(Arena *a, const DepGraph *g, bool deep);
/* NONE, or an operation whose index may alias spill slots: then nothing can be spilled. */
uint32_t source_unbounded_index(const Source *s);
/* Spills until program order needs at most `limit` (>= 3) registers.  NULL: SRAM has too few free words. */
Source *source_spill(Arena *a, const Machine *m, const Source *s, uint32_t limit);

/* ---- exact.c: exhaustive search ----------------------------------------------------------------- */

enum { EXACT_NODES = 48 }; /* larger blocks are not searched */
typedef struct Exact {
	bool complete;
	uint64_t steps;
} Exact;
/* Shortens `time` towards `bound` within about `limit` steps; complete: nothing shorter exists. */
Exact exact_search(Arena *a, const DepGraph *g, Allocator *p, int32_t bound, int32_t *time, uint64_t limit);

#endif
