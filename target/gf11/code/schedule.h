/* SPDX-License-Identifier: MIT */
/* What the files of the scheduler share.
 *
 *   Code --source--> Source --depend--> DepGraph --list, exact--> cycle of each node --allocate--> physical registers
 *           spill ---^                    \--bound--> lower bounds
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "gf11_code.h"

#define NONE UINT32_MAX /* no node, no web, not recorded */

/* Recorded code in the order the passes work in; spilling adds to it, reordering permutes it. */
typedef struct Source {
	const char *name;
	Rec *rec;
	uint32_t *origin; /* number in Code; NONE: moves a spilled word */
	uint32_t recs, regs, conds;
	bool overlap, prescheduled;  /* regions under different bases may meet; as in Code */
	const uint32_t *index_limit; /* of Code */
	uint32_t spills;
} Source;

/* ---- depend.c: who waits for whom --------------------------------------------------------------- */

enum { RES_ALU, RES_PORT, RES_SRAM, RES_DRAM, RES_SWITCH, RES_BANK }; /* RES_BANK + b: bank b */
enum { MAX_USES = 3 };
typedef struct ResourceUse {
	uint8_t resource;
	int32_t at, busy;
} ResourceUse;          /* takes it from issue + at on, busy cycles */
typedef struct Timing { /* an operation on one machine */
	uint8_t unit, form;
	uint8_t uses;
	ResourceUse use[MAX_USES]; /* RES_BANK stands for the bank of the address */
	int32_t latency, span;     /* span: until its result is there and its parts are free */
} Timing;

/* A web is all that must share one register (or condition code): a result, and what masked moves make of it.  Its place
 * is taken from the cycle the first result arrives to the last read or arrival. */
typedef struct Web {
	uint32_t first, last, refs;
	bool cond;
} Web; /* nodes that touch it */

/* Nodes are numbered so that edges go up.  One without an operation joins many edges into one: it takes nothing. */
typedef struct DepNode {
	uint32_t rec; /* of the source; NONE: a join */
	uint8_t op;
	uint8_t bank;
	uint32_t dst, from[3]; /* webs of result, a, b and condition */
	uint32_t read[3];      /* those of from, each once, and none that is dst too */
} DepNode;
typedef struct DepEdge {
	uint32_t node;
	int32_t delay;
} DepEdge; /* issue(to) >= issue(from) + delay; may be negative */

typedef struct DepGraph {
	const Machine *m;
	const Source *source;
	Timing timing[GOPS + 1]; /* the last one: a join */
	DepNode *node;
	uint32_t nodes;
	DepEdge *in, *out;
	uint32_t *in_at, *out_at; /* [nodes + 1] */
	Web *web;
	uint32_t webs;
	uint32_t webs_of[2];          /* registers, conditions */
	uint32_t dead[2];             /* webs that nobody reads */
	int32_t *head, *tail;         /* longest path to issue; from issue to the end of the routine */
	int32_t *res_head, *res_tail; /* the same, with waiting for one resource on the way: bound.c */
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

/* ---- list.c: one schedule by priorities --------------------------------------------------------- */

typedef struct Trial {
	bool backward;           /* from the end towards the beginning */
	const int64_t *priority; /* [nodes] larger first */
	int32_t limit[2];        /* registers and conditions in use or on their way at most */
	uint32_t window;         /* nodes that run ahead further than this in their order */
	int32_t reserve[2];      /* leave so many places free */
	int32_t max_length;      /* give up when it gets longer than this */
} Trial;
typedef struct ListScheduler ListScheduler;
ListScheduler *list_new(Arena *a, const DepGraph *g);
/* Cycles of all nodes; the order of nodes itself must keep within the limits.  False: it gave up. */
bool list_schedule(ListScheduler *l, const Trial *t, int32_t *time);
uint32_t list_placed(const ListScheduler *l);           /* operations, of the last trial: all, unless it gave up */
void serial_schedule(const DepGraph *g, int32_t *time); /* one after the other: the last resort */

/* ---- allocate.c: registers and conditions ------------------------------------------------------- */

typedef struct Allocator Allocator; /* working memory, taken once */
Allocator *allocator_new(Arena *a, const DepGraph *g);
/* The most places in use at once: with the nodes in their order one after the other, or in this schedule. */
void pressure_ordered(Allocator *p, int32_t most[2]);
void pressure_scheduled(Allocator *p, const int32_t *time, int32_t most[2]);
/* Physical numbers of webs, in place[]; as few as pressure_scheduled says. */
void allocate_registers(Allocator *p, const int32_t *time, uint32_t *place);

/* ---- spill.c: fewer words at once --------------------------------------------------------------- */

/* The source in an order that needs few places at once: along the recorded one, or deep, one result after the other. */
Source *source_reorder(Arena *a, const DepGraph *g, bool deep);
/* NONE, or an operation whose index might lead to spilled words: then nothing can be spilled. */
uint32_t source_unbounded_index(const Source *s);
/* With words moved to SRAM and back so that no more than `limit` registers, three at least, are needed in its order.
 * NULL: SRAM has no room for them. */
Source *source_spill(Arena *a, const Machine *m, const Source *s, uint32_t limit);

/* ---- exact.c: complete search ------------------------------------------------------------------- */

enum { EXACT_NODES = 48 }; /* larger blocks are not tried */
typedef struct Exact {
	bool complete;
	uint64_t steps;
} Exact;
/* Improves `time` down to `bound` if it can, in about `limit` steps; complete: nothing shorter exists. */
Exact exact_search(Arena *a, const DepGraph *g, Allocator *p, int32_t bound, int32_t *time, uint64_t limit);

#endif
