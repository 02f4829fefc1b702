/* SPDX-License-Identifier: MIT */
/* Leaves of a batch over threads. In: a batch of the bound data. Out: its sum of weight changes, or outputs, and a
 * tally.
 *
 * Each thread takes a contiguous run of leaves, all runs of one length, in rows of its own, and keeps sums of whole
 * subtrees; the sums of threads join at the end as the tree says. Leaves that are left over are computed by all
 * threads together, as a team: of each chunk of rows every thread takes some forward and backward, and then some of
 * the weights. Must hold: both give the same bits, for neither cuts a sum. */
#include <stdatomic.h>
#include <string.h>

#include "half.h"
#include "system.h"

enum { TEAM_WORK = 2000000 }; /* links times rows, below which waking a thread does not pay */

typedef struct Job {
	Program *p;
	const Batch *b;
	const List *list;
	uint32_t leaves;
	uint32_t first, last;   /* leaves to compute; */
	uint32_t threads, team; /* those before `team` by threads, a run each; the others by a team */
	bool partial;           /* leaves of a batch that comes in several calls: sums stay on the stack of thread 0 */
	const StopFlag *stop;
	_Atomic bool stopped;
	bool learn;
	double *out;        /* testing: for outputs, or NULL; */
	uint64_t out_first; /* the first case of these */
} Job;

static Job job_of(Program *p, const Batch *b, uint32_t first, uint32_t last, const StopFlag *stop, bool learn)
{
	noise_begin(p, learn, b->update);
	return (Job){ .p = p,
		          .b = b,
		          .list = learn ? &p->bound->learn : &p->bound->test,
		          .leaves = leaf_count(b->count),
		          .first = first,
		          .last = last,
		          .stop = stop,
		          .learn = learn };
}

/* ---- chunks ---- */

static uint64_t example_at(const Batch *b, uint64_t i) { return b->example ? b->example[i] : b->first + i; }

/* Cases from i on, where each is an example. */
static uint32_t take_cases(Chunk *c, const Batch *b, uint64_t *i, uint64_t end, uint32_t most)
{
	uint32_t rows = (uint32_t)min_u64(end - *i, most);

	for (uint32_t m = 0; m < rows; m++) {
		c->begin[m] = m;
		c->cases[m] = example_at(b, *i + m);
	}
	c->examples = rows;
	*i += rows;
	return rows;
}

/* A row for each tick of a case, from `row` on; returns the next. */
static uint32_t take_ticks(const Program *p, Chunk *c, uint64_t i, uint32_t row)
{
	uint32_t ticks = ticks_case(&p->bound->ticks, p->bound->data, i);

	for (uint32_t k = 0; k < ticks; k++, row++) {
		c->cases[row] = i;
		if (p->net->settles)
			c->tick[row] = (TickRow){ k, k + 1 == ticks };
	}
	return row;
}

static uint32_t take_sequences(const Program *p, Chunk *c, const Batch *b, uint64_t *i, uint64_t end, uint32_t most)
{
	uint32_t rows = 0;

	c->examples = 0;
	while (*i < end && rows < most) {
		uint64_t first, count;
		run_example(p->net, p->bound->data, example_at(b, *i), &first, &count);
		if (rows && rows + ticks_example(&p->bound->ticks, p->bound->data, first, count) > most)
			break;
		c->begin[c->examples++] = rows;
		for (uint64_t k = 0; k < count; k++)
			rows = take_ticks(p, c, first + k, rows);
		++*i;
	}
	return rows;
}

uint32_t take_examples(const Program *p, Space *s, const Batch *b, uint64_t *i, uint64_t end, uint32_t most)
{
	bool single = !p->net->timed && !p->bound->data->seq;
	uint32_t rows = single ? take_cases(&s->chunk, b, i, end, most) : take_sequences(p, &s->chunk, b, i, end, most);

	s->chunk.begin[s->chunk.examples] = rows;
	chunk_locate(p, s, rows);
	return rows;
}

/* Prefetch this thread's share of the next chunk, which starts at example i. The leaf ends at `end`; then comes the
 * next leaf, or the next batch. */
static void prefetch_chunk(const Program *p, const Batch *b, uint64_t i, uint64_t end, uint32_t most, const Slice *r)
{
	uint64_t count = min_u64(i < end ? end - i : b->count + b->next_count - i, most);
	uint64_t first = count * r->thread / r->threads, last = count * (r->thread + 1) / r->threads;

	if (!p->half && !p->bound->index && p->bound->longest == 1)
		cases_prefetch(p->bound->data, b->example ? b->example + i + first : NULL, b->first + i + first, last - first);
}

void make_time_steps(const Program *p, Chunk *c, uint32_t first, uint32_t end)
{
	const TickPlan *ticks = &p->bound->ticks;
	uint32_t *at = c->step_at, steps = 0;

	c->cases_at = 0;
	for (uint32_t m = c->begin[first]; c->tick && m < c->begin[end]; m++)
		if (c->tick[m].number == 0)
			c->case_at[c->cases_at++] = m;
	for (uint32_t e = first; e < end; e++)
		steps = max_u32(steps, c->begin[e + 1] - c->begin[e]);
	memset(at, 0, (steps + 1) * sizeof *at);
	for (uint32_t e = first; e < end; e++)
		at[c->begin[e + 1] - c->begin[e]]++; /* number of examples by length */
	uint32_t longer = 0, row = c->begin[end] - c->begin[first];
	for (uint32_t t = steps + 1; t-- > 0;) { /* time step t has the examples that are longer than t */
		uint32_t just = at[t];
		row -= longer;
		at[t] = row;
		longer += just;
	}
	c->steps = steps;
	for (uint32_t e = first; e < end; e++)
		for (uint32_t t = 0, n = c->begin[e + 1] - c->begin[e]; t < n; t++) {
			c->step[at[t]++] = c->begin[e] + t;
			c->carried[c->begin[e] + t] = t + 1 < n && ticks_carry(ticks, t);
		}
	for (uint32_t t = steps; t > 0; t--)
		at[t] = at[t - 1];
	at[0] = 0;
}

/* Tally and outputs of all rows. */
static void rows_result(const Job *j, const Space *s, uint32_t rows, Tally *t)
{
	const Program *p = j->p;
	const Chunk *c = &s->chunk;
	uint32_t width = p->watched.count ? p->watched.count : p->net->outputs;
	bool last = !p->watched.count || p->watched_tick == LAST_TICK;

	rows_tally(p, s, 0, rows, t);
	for (uint32_t m = 0; j->out && m < rows; m++)
		if (!c->tick || (last ? c->tick[m].last : c->tick[m].number == p->watched_tick))
			row_outputs(p, s, m, j->out + (c->cases[m] - j->out_first) * width);
	for (uint32_t m = 0; p->watched_cases && !j->learn && m < rows; m++)
		rows_tally(p, s, m, 1, &p->watched_cases[c->cases[m]]);
}

/* Around the work of a thread. */
static unsigned thread_enter(const Program *p)
{
	if (p->half)
		p->half->kern->enter();
	return cpu_enter();
}

static void thread_leave(const Program *p, unsigned before)
{
	cpu_leave(before);
	if (p->half)
		p->half->kern->leave();
}

/* ---- leaves of a thread ---- */

static void run_leaf(Job *j, Space *s, uint32_t leaf, float *sum)
{
	const Program *p = j->p;
	const List *list = j->list;
	uint32_t most = p->bound->chunk;
	uint64_t i, count;

	if (leaf + 1 < j->last && !j->b->example) {
		leaf_range(j->b->count, j->leaves, leaf + 1, &i, &count);
		data_prefetch(p->bound->data, j->b->first + i, count);
	}
	leaf_range(j->b->count, j->leaves, leaf, &i, &count);
	p->tally[leaf] = (Tally){ 0 };
	for (uint64_t end = i + count, first = i; i < end;) {
		Slice r = { .threads = 1, .fresh = i == first, .sum = sum };
		if (*j->stop)
			atomic_store(&j->stopped, true);
		if (atomic_load(&j->stopped))
			return;
		r.rows = take_examples(p, s, j->b, &i, end, most);
		prefetch_chunk(p, j->b, i, end, most, &r);
		if (p->net->timed)
			make_time_steps(p, &s->chunk, 0, s->chunk.examples);
		steps_run(p, s, list, 0, list->gradient, &r);
		if (j->learn)
			s->chunk.by_input = by_input_rows(p, s, r.rows);
		steps_run(p, s, list, list->gradient, list->stages, &r);
		rows_result(j, s, r.rows, &p->tally[leaf]);
	}
}

/* Those of a thread's run; after the last of them come the team's. */
static void thread_leaves(const Job *j, uint32_t thread, uint32_t *first, uint32_t *end)
{
	uint64_t leaves = j->team - j->first;

	if (thread >= j->threads) {
		*first = j->team;
		*end = j->last;
		return;
	}
	*first = j->first + (uint32_t)(leaves * thread / j->threads);
	*end = j->first + (uint32_t)(leaves * (thread + 1) / j->threads);
}

/* Each leaf's sum goes on top of the thread's stack and joins those below with which it completes a subtree. */
static void leaves_work(void *arg, uint32_t thread)
{
	Job *j = arg;
	const Program *p = j->p;
	Space *s = &p->space[thread];
	unsigned before = thread_enter(p);
	uint32_t first, end;

	thread_leaves(j, thread, &first, &end);
	if (!j->partial || first == 0)
		s->sums.depth = 0;
	for (uint32_t leaf = first; leaf < end && !(j->partial && j->stopped); leaf++) {
		Sum *sum = j->learn ? sum_next(p, &s->sums) : NULL;
		s->sums.depth += j->learn;
		run_leaf(j, s, leaf, sum ? sum->v : NULL);
		if (!j->learn)
			continue;
		leaf_done(p, leaf, sum, thread, sched_getcpu());
		for (uint32_t joins = leaf_joins_from(leaf, j->leaves, j->partial ? 0 : first); joins; joins--)
			sums_join_top(p, &s->sums);
	}
	thread_leave(p, before);
}

/* ---- a team ---- */

/* The rows of space 0 with the thread's own chunk and scratch; half: room for such a view of its halves. */
static Space team_view(const Program *p, uint32_t thread, HalfSpace *half)
{
	Space view = { .rows = p->space[0].rows,
		           .chunk = p->space[thread].chunk,
		           .scratch = p->space[thread].scratch }; /* not its sums: thread 0 changes them meanwhile */

	if (p->half) {
		*half = *p->space[thread].half;
		half->x = p->space[0].half->x;
		view.half = half;
	}
	return view;
}

/* Every thread knows which rows the chunk has, and takes some of them forward and backward. */
static uint32_t team_forward(Job *j, Space *view, uint64_t *i, uint64_t end, const Slice *share)
{
	Program *p = j->p;
	Chunk *c = &view->chunk;
	uint32_t most = p->bound->team_rows, rows = take_examples(p, view, j->b, i, end, most);
	uint32_t first = (uint32_t)((uint64_t)c->examples * share->thread / share->threads);
	uint32_t last = (uint32_t)((uint64_t)c->examples * (share->thread + 1) / share->threads);
	Slice r = { .first = c->begin[first], .rows = c->begin[last] - c->begin[first] };

	if (p->net->timed)
		make_time_steps(p, c, first, last);
	prefetch_chunk(p, j->b, *i, end, most, share);
	steps_run(p, view, j->list, 0, j->list->gradient, &r);
	return rows;
}

/* Each thread's examples; then each thread's weights. Two barriers: all rows are complete before the gradient reads
 * them, and read before the next chunk overwrites them. */
static void team_work(void *arg, uint32_t thread)
{
	Job *j = arg;
	Program *p = j->p;
	SumStack *sums = &p->space[0].sums;
	HalfSpace half;
	Space view = team_view(p, thread, &half);
	unsigned before = thread_enter(p);

	for (uint32_t leaf = j->team; leaf < j->last; leaf++) {
		uint64_t i, count;
		leaf_range(j->b->count, j->leaves, leaf, &i, &count);
		for (uint64_t end = i + count, begin = i; i < end;) {
			Slice r = { .thread = thread, .threads = p->threads, .fresh = i == begin };
			r.rows = team_forward(j, &view, &i, end, &r);
			if (thread == 0) {
				if (j->learn)
					sum_next(p, sums);
				if (*j->stop)
					atomic_store(&j->stopped, true);
			}
			pool_barrier(p->pool);
			if (atomic_load(&j->stopped))
				goto out;
			r.sum = sums->sum[sums->depth].v;
			steps_run(p, &view, j->list, j->list->gradient, j->list->stages, &r);
			if (thread == 0) {
				p->tally[leaf] = r.fresh ? (Tally){ 0 } : p->tally[leaf];
				rows_result(j, &view, r.rows, &p->tally[leaf]);
			}
			pool_barrier(p->pool);
		}
		if (thread == 0 && j->learn) {
			leaf_done(p, leaf, &sums->sum[sums->depth++], 0, -1);
			for (uint32_t joins = leaf_joins_from(leaf, j->leaves, j->team); joins; joins--)
				sums_join_top(p, sums);
		}
	}
out:
	thread_leave(p, before);
}

/* ---- batches ---- */

/* Work of one leaf: links times rows. */
static double leaf_work(const Job *j)
{
	const Program *p = j->p;

	return (double)j->b->count / j->leaves * (double)p->bound->longest * (double)p->net->links;
}

/* Is the job worth waking threads? If not, leaves_work(j, 0) does all of it. */
static bool is_shared(Job *j)
{
	j->threads = 1;
	j->team = j->last;
	j->p->awake = j->p->threads > 1 && !j->partial && leaf_work(j) * (j->last - j->first) >= TEAM_WORK;
	return j->p->awake;
}

/* All threads have the same number of leaves, and a team computes those that are left; if these are too small for
 * that, and many, some threads have one more. */
static void run_threads(Job *j)
{
	Program *p = j->p;
	uint32_t leaves = j->last - j->first;
	double each = leaf_work(j);

	if (each >= TEAM_WORK || leaves < 4 * p->threads)
		j->team -= leaves % p->threads;
	j->threads = j->team > j->first ? p->threads : 0;
	p->space[0].sums.depth = 0;
	if (j->threads)
		pool_run(p->pool, leaves_work, j);
	if (j->team < j->last && !j->stopped)
		pool_run(p->pool, team_work, j);
}

/* Joins the sums of threads, which are in the order of leaves, with the team's above those of thread 0. next: how
 * many of each thread have been used. */
static Sum *join_threads(Job *j, uint32_t *next, uint32_t first, uint32_t end)
{
	uint32_t thread = 0, low, high;

	for (thread_leaves(j, 0, &low, &high); first >= high; thread_leaves(j, thread, &low, &high))
		thread++;
	if (thread == j->threads)
		thread = 0;
	if (end <= high)
		return &j->p->space[thread].sums.sum[next[thread]++];
	uint32_t middle = first + leaf_split(end - first);
	Sum *a = join_threads(j, next, first, middle), *b = join_threads(j, next, middle, end);
	sums_join(j->p, a, b);
	return a;
}

Status batch_learn(Program *p, const Batch *b, uint32_t first, uint32_t last, const StopFlag *stop, Tally *t)
{
	Job j = job_of(p, b, first, last, stop, true);
	uint32_t next[MAX_THREADS];

	j.partial = first || last < j.leaves;
	if (p->pending.full)
		pending_own(p);
	if (is_shared(&j))
		run_threads(&j);
	else
		leaves_work(&j, 0);
	if (j.stopped) {
		p->pending.full = false;
		return MP_STOPPED;
	}
	unsigned before = cpu_enter();
	memset(next, 0, p->threads * sizeof *next);
	if (!j.partial)
		pending_add(p, join_threads(&j, next, 0, j.leaves));
	else if (last == j.leaves)
		pending_add(p, &p->space[0].sums.sum[0]);
	cpu_leave(before);
	for (uint32_t leaf = first; j.partial && leaf < last; leaf++)
		tally_add(t, &p->tally[leaf]);
	if (!j.partial) {
		Tally all = tally_leaves(p->tally, 0, j.leaves);
		tally_add(t, &all);
	}
	return MP_OK;
}

/* Sums of the largest subtrees of the leaves computed here, in their order. */
static void collect_sums(Job *j, uint32_t *next, uint32_t first, uint32_t end, Share *out)
{
	if (end <= j->first || first >= j->last)
		return;
	if (first >= j->first && end <= j->last) {
		Sum *sum = join_threads(j, next, first, end);
		sum_check(j->p, sum);
		out->sum[out->sums++] = sum->v;
		return;
	}
	uint32_t middle = first + leaf_split(end - first);
	collect_sums(j, next, first, middle, out);
	collect_sums(j, next, middle, end, out);
}

Status batch_share(Program *p, const Batch *b, uint32_t first, uint32_t last, bool learn, const StopFlag *stop,
                   Share *out)
{
	Job j = job_of(p, b, first, last, stop, learn);
	uint32_t next[MAX_THREADS];

	pending_own(p);
	pending_touch(p);
	out->sums = 0;
	out->tally = p->tally;
	out->total = p->pending.v;
	out->floats = p->layout->floats;
	if (first == last)
		return MP_OK;
	if (is_shared(&j))
		run_threads(&j);
	else
		leaves_work(&j, 0);
	if (j.stopped)
		return MP_STOPPED;
	unsigned before = cpu_enter();
	memset(next, 0, p->threads * sizeof *next);
	if (learn)
		collect_sums(&j, next, 0, j.leaves, out);
	cpu_leave(before);
	return MP_OK;
}

Status batch_test(Program *p, uint64_t first, uint64_t count, const StopFlag *stop, double *out, Tally *t)
{
	Batch b = { .first = first, .count = count };
	Job j = job_of(p, &b, 0, leaf_count(count), stop, false);
	uint64_t unused;

	if (!count)
		return MP_OK;
	j.out = out;
	run_example(p->net, p->bound->data, first, &j.out_first, &unused);
	if (is_shared(&j))
		run_threads(&j);
	else
		leaves_work(&j, 0);
	if (j.stopped)
		return MP_STOPPED;
	Tally all = tally_leaves(p->tally, 0, j.leaves);
	tally_add(t, &all);
	return MP_OK;
}

/* ---- recomputing a leaf ---- */

typedef struct Recompute {
	Job j;
	uint32_t leaf, thread;
	uint64_t checksum;
	int core;
} Recompute;

/* The rows and sums of space 0 are free: the batch waits for its update. */
static void recompute_work(void *arg, uint32_t thread)
{
	Recompute *a = arg;
	Program *p = a->j.p;
	Space *s = &p->space[0];

	if (thread != a->thread)
		return;
	unsigned before = thread_enter(p);
	Tally first = p->tally[a->leaf];
	run_leaf(&a->j, s, a->leaf, s->sums.sum[0].v);
	a->checksum = leaf_checksum(p, s->sums.sum[0].v, &p->tally[a->leaf]);
	a->core = sched_getcpu();
	p->tally[a->leaf] = first;
	thread_leave(p, before);
}

/* Moves this thread to the next core that it may use. */
static void change_core(void)
{
	cpu_set_t all, one;
	int core = sched_getcpu();

	if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < 2 || core < 0)
		return;
	do
		core = (core + 1) % CPU_SETSIZE;
	while (!CPU_ISSET(core, &all));
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	sched_setaffinity(0, sizeof one, &one);
}

uint64_t batch_recompute(Program *p, const Batch *b, uint32_t leaf, uint32_t attempt, int *core)
{
	static const StopFlag never = 0;
	Recompute a = { .j = job_of(p, b, leaf, leaf + 1, &never, true), .leaf = leaf };
	cpu_set_t all;

	a.j.threads = 1;
	pending_own(p);
	if (p->threads > 1) {
		a.thread = (p->monitor->leaf_thread + 1 + attempt) % p->threads;
		pool_run(p->pool, recompute_work, &a);
	} else {
		bool known = sched_getaffinity(0, sizeof all, &all) == 0;
		change_core();
		recompute_work(&a, 0);
		if (known)
			sched_setaffinity(0, sizeof all, &all);
	}
	*core = a.core;
	return a.checksum;
}
