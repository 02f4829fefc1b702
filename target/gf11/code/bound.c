/* SPDX-License-Identifier: MIT */
/* Lower bounds on the length of a block.
 * In: the dependence graph.  Out: three bounds and their maximum.
 *
 *   resource  all uses of one resource in sequence, plus the shortest tail
 *   path      critical path
 *   hrt       head, resource, tail: for any set S of uses of one resource, min head + (|S| - 1) x busy + min tail.  The
 *             maximum over all S is the length of Jackson's preemptive schedule: always run the available use with
 *             the longest tail.
 *
 * Heads and tails of hrt are critical paths that include resource conflicts among the predecessors (successors) of each
 * node (Langevin and Cerny): a product of two loaded words starts one cycle after their latency. */
#include <stdlib.h>
#include <string.h>

#include "schedule.h"

typedef struct HrtJob {
	int32_t head, tail, left;
} HrtJob; /* tail: from the start of the use; left: remaining cycles */
typedef struct JobHeap {
	HrtJob *job;
	uint32_t jobs;
	KeyHeap waiting; /* longest tail first: (tail - INT32_MIN) << 32 | job */
} JobHeap;

static int job_order(const void *x, const void *y)
{
	const HrtJob *a = x, *b = y;
	return a->head != b->head ? (a->head < b->head ? -1 : 1) : (a->tail < b->tail) - (a->tail > b->tail);
}

/* Jackson's preemptive schedule of jobs that take `busy` cycles each. */
static int32_t jackson(JobHeap *q, int32_t busy)
{
	qsort(q->job, q->jobs, sizeof *q->job, job_order);
	int32_t now = q->job[0].head, length = INT32_MIN;
	q->waiting.count = 0;
	for (uint32_t next = 0; next < q->jobs || q->waiting.count;) {
		if (!q->waiting.count && q->job[next].head > now)
			now = q->job[next].head;
		for (; next < q->jobs && q->job[next].head <= now; next++)
			heap_push(&q->waiting, (uint64_t)((int64_t)q->job[next].tail - INT32_MIN) << 32 | next);
		HrtJob *j = &q->job[(uint32_t)q->waiting.key[0]];
		int32_t run = j->left;
		if (next < q->jobs && q->job[next].head - now < run)
			run = q->job[next].head - now;
		now += run;
		j->left -= run;
		if (j->left)
			continue;
		if (now - busy + j->tail > length)
			length = now - busy + j->tail;
		heap_pop(&q->waiting);
	}
	return length;
}

/* ---- heads and tails with resource conflicts ----------------------------------------------------- */

/* Delays the issue of a node until its predecessors on one resource can complete (Jackson); with edges reversed, the
 * same for successors.  *far holds the critical path on entry. */
static void resource_delay(const DepGraph *g, JobHeap *q, const DepEdge *edge, uint32_t edges, const int32_t *other,
                           bool ahead, int32_t *far)
{
	for (uint32_t resource = 0; resource < RES_BANK; resource++) {
		q->jobs = 0;
		for (uint32_t e = 0; e < edges; e++) {
			const Timing *s = node_timing(g, edge[e].node);
			if (!s->uses || s->use[0].resource != resource)
				continue;
			int32_t path = other[edge[e].node];
			q->job[q->jobs++] = ahead ? (HrtJob){ path, edge[e].delay, s->use[0].busy }
			                          : (HrtJob){ edge[e].delay, path, s->use[0].busy };
		}
		if (q->jobs < 2)
			continue;
		int32_t wait = jackson(q, q->job[0].left);
		*far = wait > *far ? wait : *far;
	}
}

/* ---- bounds ------------------------------------------------------------------------------------- */

static void jobs_collect(const DepGraph *g, uint32_t resource, const int32_t *head, const int32_t *tail, JobHeap *q)
{
	q->jobs = 0;
	for (uint32_t i = 0; i < g->nodes; i++) {
		const Timing *s = node_timing(g, i);
		for (int k = 0; k < s->uses; k++) {
			const ResourceUse *u = &s->use[k];
			if ((u->resource == RES_BANK ? (uint32_t)RES_BANK + g->node[i].bank : u->resource) == resource)
				q->job[q->jobs++] = (HrtJob){ head[i] + u->at, tail[i] - u->at, u->busy };
		}
	}
}

static int32_t resource_bound(const JobHeap *q, int32_t busy)
{
	int32_t least = INT32_MAX;
	for (uint32_t i = 0; i < q->jobs; i++)
		least = q->job[i].tail < least ? q->job[i].tail : least;
	return (int32_t)(q->jobs - 1) * busy + least;
}

Bounds bound_graph(Arena *arena, DepGraph *g)
{
	Bounds b = { 0 };
	size_t capacity = MAX_USES * (size_t)g->nodes + g->in_at[g->nodes] + 1;
	JobHeap q = { .job = NEW(arena, capacity, HrtJob), .waiting.key = NEW(arena, capacity, uint64_t) };
	/* Heads and tails with resource conflicts. */
	g->res_head = NEW(arena, g->nodes, int32_t);
	g->res_tail = NEW(arena, g->nodes, int32_t);
	for (uint32_t i = 0; i < g->nodes; i++) {
		const DepEdge *in = &g->in[g->in_at[i]];
		uint32_t edges = g->in_at[i + 1] - g->in_at[i];
		for (uint32_t e = 0; e < edges; e++)
			if (g->res_head[in[e].node] + in[e].delay > g->res_head[i])
				g->res_head[i] = g->res_head[in[e].node] + in[e].delay;
		if (edges > 1)
			resource_delay(g, &q, in, edges, g->res_head, true, &g->res_head[i]);
	}
	for (uint32_t i = g->nodes; i-- > 0;) {
		const DepEdge *out = &g->out[g->out_at[i]];
		uint32_t edges = g->out_at[i + 1] - g->out_at[i];
		g->res_tail[i] = node_timing(g, i)->span;
		for (uint32_t e = 0; e < edges; e++)
			if (g->res_tail[out[e].node] + out[e].delay > g->res_tail[i])
				g->res_tail[i] = g->res_tail[out[e].node] + out[e].delay;
		if (edges > 1)
			resource_delay(g, &q, out, edges, g->res_tail, false, &g->res_tail[i]);
	}
	int32_t *none = NEW(arena, g->nodes, int32_t), *span = NEW(arena, g->nodes, int32_t);
	bool dram = false;
	for (uint32_t i = 0; i < g->nodes; i++) {
		span[i] = node_timing(g, i)->span;
		b.path = max_i32(b.path, g->head[i] + g->tail[i]);
		dram |= node_timing(g, i)->unit == UNIT_DRAM;
	}
	uint32_t resources = RES_BANK + (dram ? (uint32_t)g->m->dram_banks : 0);
	for (uint32_t r = 0; r < resources; r++) {
		jobs_collect(g, r, none, span, &q);
		if (!q.jobs)
			continue;
		int32_t busy = q.job[0].left;
		b.resource = max_i32(b.resource, resource_bound(&q, busy));
		jobs_collect(g, r, g->res_head, g->res_tail, &q);
		b.hrt = max_i32(b.hrt, jackson(&q, busy));
	}
	b.best = max_i32(max_i32(b.resource, b.path), b.hrt);
	return b;
}

void report_count(const Code *code, Report *r)
{
	r->operations = code->recs;
	r->arithmetic = r->transfers = 0;
	for (uint32_t i = 0; i < code->recs; i++) {
		int op = code->rec[i].op;
		r->arithmetic +=
			op == GOP_FADD || op == GOP_FSUB || op == GOP_FMUL || op == GOP_IADD || op == GOP_ISUB || op == GOP_IMUL;
		r->transfers += ops[code->rec[i].op].unit == UNIT_SWITCH;
	}
}

void report_bounds(const Bounds *b, Report *r)
{
	r->bound = (uint32_t)b->best;
	r->bound_resource = (uint32_t)b->resource;
	r->bound_path = (uint32_t)b->path;
	r->bound_hrt = (uint32_t)b->hrt;
}

void bound_fill(Ctx *cx, const Machine *m, const Code *code, Report *r)
{
	Arena *arena = &cx->scratch;
	Bounds b = bound_graph(arena, graph_build(cx, arena, m, source_new(arena, code)));
	report_count(code, r);
	report_bounds(&b, r);
}

static uint32_t resource_of(const DepGraph *g, uint32_t node, uint32_t k)
{
	const ResourceUse *u = &node_timing(g, node)->use[k];
	return u->resource == RES_BANK ? (uint32_t)RES_BANK + g->node[node].bank : u->resource;
}

uint32_t bound_in_order(Ctx *cx, const Machine *m, const Code *code)
{
	Arena *a = &cx->scratch;
	DepGraph *g = graph_build(cx, a, m, source_new(a, code));
	int32_t *issue = NEW(a, g->nodes, int32_t), *free = NEW(a, RES_BANK + (size_t)m->dram_banks, int32_t);
	int32_t now = 0, end = 0;
	for (uint32_t i = 0; i < g->nodes; i++) {
		const Timing *t = node_timing(g, i);
		int32_t at = g->node[i].rec == NONE ? 0 : now;
		for (uint32_t e = g->in_at[i]; e < g->in_at[i + 1]; e++)
			at = max_i32(at, issue[g->in[e].node] + g->in[e].delay);
		for (uint32_t k = 0; k < t->uses; k++)
			at = max_i32(at, free[resource_of(g, i, k)] - t->use[k].at);
		for (uint32_t k = 0; k < t->uses; k++)
			free[resource_of(g, i, k)] = at + t->use[k].at + t->use[k].busy;
		issue[i] = at;
		now = g->node[i].rec == NONE ? now : at;
		end = max_i32(end, at + t->span);
	}
	return (uint32_t)end;
}
