/* SPDX-License-Identifier: MIT */
/* Leaves of a batch over threads. In: a batch of the bound data. Out: its sum of weight changes, or outputs, and a
 * tally.
 *
 * Each thread takes a contiguous run of leaves, all runs of one length, in rows of its own, and keeps sums of whole
 * subtrees; what is left to join at the end joins as the tree says. For leaves that do not come out even the
 * threads are a team: of each chunk of rows everyone takes some forward and backward, and then some of the weights.
 * Must hold: both give the same bits, for neither cuts a sum. */
#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <xxhash.h>

#include "half.h"
#include "fast.h"

enum { TEAM_WORK = 2000000 }; /* links times rows, below which waking a thread does not pay */

typedef struct Job {
	Program *p;
	const Batch *b;
	uint32_t leaves;
	uint32_t first, last; /* leaves that are done here */
	/* so many threads have a run each of those before `team`; all of them together do the others */
	uint32_t threads, team;
	const volatile int *stop;
	_Atomic bool stopped;
	bool learn;
	double *out;        /* testing: where outputs go, or NULL, */
	uint64_t out_first; /* and which case is the first */
} Job;

/* ---- chunks ---- */

static uint64_t example_at(const Batch *b, uint64_t i) { return b->example ? b->example[i] : b->first + i; }

/* Cases from i on, where each is an example. */
static uint32_t take_cases(Space *s, const Batch *b, uint64_t *i, uint64_t end)
{
	uint32_t rows = (uint32_t)(end - *i < s->chunk ? end - *i : s->chunk);

	for (uint32_t m = 0; m < rows; m++) {
		s->begin[m] = m;
		s->cases[m] = example_at(b, *i + m);
	}
	s->examples = rows;
	*i += rows;
	return rows;
}

static uint32_t take_sequences(const Program *p, Space *s, const Batch *b, uint64_t *i, uint64_t end)
{
	uint32_t rows = 0, most = s->chunk;

	s->examples = 0;
	while (*i < end && rows < most) {
		uint64_t first, count;
		run_example(p->net, p->data, example_at(b, *i), &first, &count);
		if (rows && rows + count > most)
			break;
		s->begin[s->examples++] = rows;
		for (uint64_t k = 0; k < count; k++)
			s->cases[rows++] = first + k;
		++*i;
	}
	return rows;
}

/* Takes examples from i on, as many as have room; returns the rows. */
static uint32_t take_examples(const Program *p, Space *s, const Batch *b, uint64_t *i, uint64_t end)
{
	bool single = !p->net->copies && !p->data->seq;
	uint32_t rows = single ? take_cases(s, b, i, end) : take_sequences(p, s, b, i, end);

	s->begin[s->examples] = rows;
	rows_find(p, s, rows);
	return rows;
}

/* The chunk before example i is in hand: the one from there on gets under way, or what thread `thread` of n will
 * take of it. The leaf ends at `end`; then comes the next, or the next batch. */
static void look_ahead(const Program *p, Space *s, const Batch *b, uint64_t i, uint64_t end, uint32_t thread,
                       uint32_t n)
{
	uint64_t left = i < end ? end - i : b->count + b->more - i, count = left < s->chunk ? left : s->chunk;
	uint64_t first = count * thread / n, last = count * (thread + 1) / n;

	if (!p->half && !p->index && p->longest == 1)
		rows_ahead(p, b->example ? b->example + i + first : NULL, b->first + i + first, last - first);
}

/* Rows of examples first .. end - 1 by step. */
static void make_steps(Space *s, uint32_t first, uint32_t end)
{
	uint32_t *at = s->step_at, steps = 0;

	for (uint32_t e = first; e < end; e++)
		if (s->begin[e + 1] - s->begin[e] > steps)
			steps = s->begin[e + 1] - s->begin[e];
	memset(at, 0, (steps + 1) * sizeof *at);
	for (uint32_t e = first; e < end; e++)
		at[s->begin[e + 1] - s->begin[e]]++; /* how many have just so many cases */
	uint32_t longer = 0, row = s->begin[end] - s->begin[first];
	for (uint32_t t = steps + 1; t-- > 0;) { /* at step t there are those that have more than t */
		uint32_t just = at[t];
		row -= longer;
		at[t] = row;
		longer += just;
	}
	s->steps = steps;
	for (uint32_t e = first; e < end; e++)
		for (uint32_t t = 0; t < s->begin[e + 1] - s->begin[e]; t++)
			s->step[at[t]++] = s->begin[e] + t;
	for (uint32_t t = steps; t > 0; t--)
		at[t] = at[t - 1];
	at[0] = 0;
}

static void run_rows(const Job *j, Space *s, uint32_t first, uint32_t rows)
{
	Program *p = j->p;
	bool labelled = p->data->targets != 0;

	rows_load(p, s, first, rows, labelled);
	s->late = j->learn && labelled && rows_late(p);
	rows_forward(p, s, first, rows);
	if (labelled)
		rows_score(p, s, first, rows, j->learn);
	if (j->learn)
		rows_backward(p, s, first, rows);
}

static void give_outputs(const Job *j, const Space *s, uint32_t rows)
{
	for (uint32_t m = 0; j->out && m < rows; m++)
		rows_outputs(j->p, s, m, j->out + (s->cases[m] - j->out_first) * j->p->net->outputs);
}

static void tally_rows(const Job *j, const Space *s, uint32_t rows, Tally *t)
{
	if (j->p->data->targets)
		rows_tally(s, 0, rows, t);
	else
		t->cases += rows;
}

/* ---- a leaf on one thread ---- */

static void run_leaf(Job *j, Space *s, uint32_t leaf, float *sum)
{
	Program *p = j->p;
	Tally *t = &p->tally[leaf];
	uint64_t i, count;

	if (leaf + 1 < j->last && !j->b->example) {
		leaf_range(j->b->count, j->leaves, leaf + 1, &i, &count);
		data_prefetch(p->data, j->b->first + i, count);
	}
	leaf_range(j->b->count, j->leaves, leaf, &i, &count);
	*t = (Tally){ 0 };
	for (uint64_t end = i + count, first = i; i < end;) {
		bool fresh = i == first;
		if (*j->stop)
			atomic_store(&j->stopped, true);
		if (atomic_load(&j->stopped))
			return;
		uint32_t rows = take_examples(p, s, j->b, &i, end);
		look_ahead(p, s, j->b, i, end, 0, 1);
		if (p->net->copies)
			make_steps(s, 0, s->examples);
		run_rows(j, s, 0, rows);
		if (j->learn) {
			s->by_input = by_input_rows(p, s, rows);
			rows_gradient(p, s, rows, fresh, 0, 1, sum);
		}
		tally_rows(j, s, rows, t);
		give_outputs(j, s, rows);
	}
}

/* ---- sums at rest ---- */

uint64_t seal_run(const Program *p, const float *v, uint64_t at, uint64_t n)
{
	enum { FLOATS = CHECKSUM_BLOCK / sizeof(float) };
	uint64_t seal = 0;

	for (uint64_t end = at + n, next; at < end; at = next) {
		next = (at / FLOATS + 1) * FLOATS;
		next = next < end ? next : end;
		seal += checksum_block_factor(at / FLOATS) *
		        p->kern->seal(v + at, (next - at) * sizeof *v, (uint32_t)(at % FLOATS / CHECKSUM_WORDS));
	}
	return seal;
}

static uint64_t seal_sum(const Program *p, const float *v) { return seal_run(p, v, 0, p->layout->room); }

static void check_sum(const Program *p, const float *v, uint64_t seal)
{
	if (p->watch && p->watch->sums && seal_sum(p, v) != seal)
		__atomic_fetch_add(&p->watch->broken, 1, __ATOMIC_RELAXED);
}

void pending_seal(Program *p) { p->pending_seal = p->watch && p->watch->sums ? seal_sum(p, p->pending) : 0; }

/* What lies past the weights of a row is not computed but happens: it depends on how the leaf was cut into chunks. */
static uint64_t seal_leaf(const Program *p, float *v)
{
	for (const Panel *q = p->layout->panel; q < p->layout->panel + p->layout->panels; q++) {
		uint64_t cols = q->list ? q->list->links : q->by_source ? q->targets : q->sources + q->bias;
		for (float *row = v + q->at, *end = row + panel_size(q); row < end; row += q->row)
			memset(row + cols, 0, (q->row - cols) * sizeof *row);
	}
	return seal_sum(p, v);
}

/* What a leaf comes to: the same bits wherever it is computed. */
static uint64_t leaf_word(uint64_t sum, const Tally *t) { return XXH3_64bits_withSeed(t, sizeof *t, sum); }

static void leaf_made(Job *j, uint32_t leaf, Sum *sum, uint32_t thread, int core)
{
	const Program *p = j->p;
	Watch *w = p->watch;

	if (!w || !w->sums)
		return;
	watch_moment(w, MOMENT_MADE, sum->v, p->layout->room * sizeof *sum->v);
	sum->seal = seal_leaf(p, sum->v);
	if (leaf == w->leaf) {
		w->made = leaf_word(sum->seal, &p->tally[leaf]);
		w->core = core;
		w->thread = thread;
	}
	watch_moment(w, MOMENT_RESTS, sum->v, p->layout->room * sizeof *sum->v);
}

/* The next sum, by the thread that will use it: so its pages lie near it, and those that are never needed are never
 * there. */
static Sum *next_sum(const Program *p, Space *s)
{
	Sum *sum = &s->sum[s->depth];

	assert(s->depth < s->sums);
	if (s->depth == s->touched) {
		memset(sum->v, 0, (p->layout->room + LANES) * sizeof *sum->v);
		s->touched++;
	}
	return sum;
}

static void learn_leaf(Job *j, Space *s, uint32_t leaf)
{
	Sum *sum = next_sum(j->p, s);

	s->depth++;
	run_leaf(j, s, leaf, sum->v);
	leaf_made(j, leaf, sum, (uint32_t)(s - j->p->space), sched_getcpu());
}

/* A piece at a time, so that it is in the cache while it is sealed. */
static void join_sealed(const Program *p, Sum *into, const Sum *from)
{
	uint64_t step = CHECKSUM_BLOCK / sizeof(float), a = 0, b = 0, joined = 0;

	for (uint64_t at = 0, n; at < p->layout->room; at += n) {
		n = p->layout->room - at < step ? p->layout->room - at : step;
		a += seal_run(p, into->v, at, n);
		b += seal_run(p, from->v, at, n);
		p->kern->add(into->v + at, from->v + at, n);
		joined += seal_run(p, into->v, at, n);
	}
	if (a != into->seal || b != from->seal)
		__atomic_fetch_add(&p->watch->broken, 1, __ATOMIC_RELAXED);
	into->seal = joined;
}

static void join_sums(const Program *p, Sum *into, const Sum *from)
{
	if (p->watch && p->watch->sums)
		join_sealed(p, into, from);
	else
		p->kern->add(into->v, from->v, p->layout->room);
}

static void join_top(const Program *p, Space *s)
{
	s->depth--;
	join_sums(p, &s->sum[s->depth - 1], &s->sum[s->depth]);
}

/* ---- the tree ---- */

static void learn_subtree(Job *j, Space *s, uint32_t first, uint32_t end)
{
	if (end - first == 1) {
		learn_leaf(j, s, first);
		return;
	}
	uint32_t middle = first + leaf_split(end - first);
	learn_subtree(j, s, first, middle);
	learn_subtree(j, s, middle, end);
	join_top(j->p, s);
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

/* The largest subtrees that lie in the thread's leaves. */
static void learn_own(Job *j, Space *s, uint32_t thread, uint32_t first, uint32_t end)
{
	uint32_t low, high;

	thread_leaves(j, thread, &low, &high);
	if (end <= low || first >= high)
		return;
	if (first >= low && end <= high) {
		learn_subtree(j, s, first, end);
		return;
	}
	uint32_t middle = first + leaf_split(end - first);
	learn_own(j, s, thread, first, middle);
	learn_own(j, s, thread, middle, end);
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

static void leaves_work(void *arg, uint32_t thread)
{
	Job *j = arg;
	Space *s = &j->p->space[thread];
	unsigned before = thread_enter(j->p);

	s->depth = 0;
	if (j->learn) {
		learn_own(j, s, thread, 0, j->leaves);
	} else {
		uint32_t first, end;
		thread_leaves(j, thread, &first, &end);
		for (; first < end; first++)
			run_leaf(j, s, first, NULL);
	}
	thread_leave(j->p, before);
}

/* Joins what threads left; their sums stand in the order of leaves, with the team's above those of thread 0. next:
 * how many of each are used. */
static Sum *join_threads(Job *j, uint32_t *next, uint32_t first, uint32_t end)
{
	uint32_t thread = 0, low, high;

	for (thread_leaves(j, 0, &low, &high); first >= high; thread_leaves(j, thread, &low, &high))
		thread++;
	if (thread == j->threads)
		thread = 0;
	if (end <= high)
		return &j->p->space[thread].sum[next[thread]++];
	uint32_t middle = first + leaf_split(end - first);
	Sum *a = join_threads(j, next, first, middle), *b = join_threads(j, next, middle, end);
	join_sums(j->p, a, b);
	return a;
}

/* ---- a team ---- */

/* A view of the team's rows with all that is one's own. */
static Space team_view(const Program *p, uint32_t thread)
{
	const Space *own = &p->space[thread];
	Space view = p->space[0];

	view.chunk = p->team_rows;
	view.cases = own->cases;
	view.begin = own->begin;
	view.step = own->step;
	view.step_at = own->step_at;
	view.room = own->room;
	view.x = own->x;
	view.bias = own->bias;
	view.links = own->links;
	return view;
}

/* Everybody knows which rows the chunk has, and takes some of them forward and back. */
static uint32_t team_forward(Job *j, Space *view, uint32_t thread, uint64_t *i, uint64_t end)
{
	Program *p = j->p;
	uint32_t rows = take_examples(p, view, j->b, i, end);
	uint32_t first = (uint32_t)((uint64_t)view->examples * thread / p->threads);
	uint32_t last = (uint32_t)((uint64_t)view->examples * (thread + 1) / p->threads);

	if (p->net->copies)
		make_steps(view, first, last);
	look_ahead(p, view, j->b, *i, end, thread, p->threads);
	run_rows(j, view, view->begin[first], view->begin[last] - view->begin[first]);
	return rows;
}

/* Each one's examples; then each one's weights. They meet twice: all rows must be there for the sums, and nobody
 * goes on to the next rows while these are needed. */
static void team_work(void *arg, uint32_t thread)
{
	Job *j = arg;
	Program *p = j->p;
	Space *team = &p->space[0], view = team_view(p, thread);
	HalfSpace half; /* inputs of the team, a scratch of one's own */
	unsigned before = thread_enter(p);

	if (p->half) {
		half = *p->space[thread].half;
		half.x = team->half->x;
		view.half = &half;
	}
	for (uint32_t leaf = j->team; leaf < j->last; leaf++) {
		uint64_t i, count;
		leaf_range(j->b->count, j->leaves, leaf, &i, &count);
		for (uint64_t end = i + count, begin = i; i < end;) {
			bool fresh = i == begin;
			uint32_t rows = team_forward(j, &view, thread, &i, end);
			if (thread == 0) {
				if (j->learn)
					next_sum(p, team);
				if (*j->stop)
					atomic_store(&j->stopped, true);
			}
			pool_barrier(p->pool);
			if (atomic_load(&j->stopped))
				goto out;
			if (j->learn)
				rows_gradient(p, &view, rows, fresh, thread, p->threads, team->sum[team->depth].v);
			if (thread == 0) {
				p->tally[leaf] = fresh ? (Tally){ 0 } : p->tally[leaf];
				tally_rows(j, &view, rows, &p->tally[leaf]);
				give_outputs(j, &view, rows);
			}
			pool_barrier(p->pool);
		}
		if (thread == 0 && j->learn) {
			leaf_made(j, leaf, &team->sum[team->depth++], 0, -1);
			for (uint32_t joins = leaf_joins_from(leaf, j->leaves, j->team); joins; joins--)
				join_top(p, team);
		}
	}
out:
	thread_leave(p, before);
}

/* ---- batches ---- */

/* Everyone has the same number of leaves, and a team does those that are left; if these are too small for that, and
 * many, some have one more. */
static void run_job(Job *j)
{
	Program *p = j->p;
	uint32_t leaves = j->last - j->first;
	double each = (double)j->b->count / j->leaves * (double)p->longest * (double)p->net->links;

	j->threads = 1;
	j->team = j->last;
	p->awake = p->threads > 1 && each * leaves >= TEAM_WORK;
	if (!p->awake) {
		leaves_work(j, 0);
		return;
	}
	if (each >= TEAM_WORK || leaves < 4 * p->threads)
		j->team -= leaves % p->threads;
	j->threads = j->team > j->first ? p->threads : 0;
	p->space[0].depth = 0;
	if (j->threads)
		pool_run(p->pool, leaves_work, j);
	if (j->team < j->last && !j->stopped)
		pool_run(p->pool, team_work, j);
}

/* The array of its own that the sum that waits has, or would have, is written to. */
static void pending_touch(Program *p, float *own)
{
	if (p->fresh)
		memset(own, 0, (p->layout->room + LANES) * sizeof *own);
	p->fresh = false;
}

/* The sum that waits has an array of its own: threads are going to use theirs. */
static void pending_apart(Program *p)
{
	if (!p->lent)
		return;
	pending_touch(p, p->spare);
	p->lent->v = p->spare;
	p->lent = NULL;
	p->spare = NULL;
}

/* The sum that waits grows by the batch's, or becomes it. Its array stays where it is: most often it is used, and
 * done with, before anybody sums again, and one array less is ever written to. */
static void take_sum(Program *p, Sum *sum)
{
	if (p->has_pending) {
		Sum pending = { p->pending, p->pending_seal };
		join_sums(p, &pending, sum);
		p->pending_seal = pending.seal;
		return;
	}
	if (!p->lent)
		p->spare = p->pending;
	p->lent = sum;
	p->pending = sum->v;
	p->pending_seal = sum->seal;
	p->has_pending = true;
}

/* Some leaves of a batch that comes in several calls, in order: thread 0 alone keeps the stack of sums. */
static Status learn_some(Job *j, uint32_t first, uint32_t last, Tally *t)
{
	Program *p = j->p;
	Space *s = &p->space[0];
	unsigned before = thread_enter(p);

	if (first == 0)
		s->depth = 0;
	for (uint32_t leaf = first; leaf < last && !j->stopped; leaf++) {
		learn_leaf(j, s, leaf);
		for (uint32_t joins = leaf_joins(leaf, j->leaves); joins; joins--)
			join_top(p, s);
		tally_add(t, &p->tally[leaf]);
	}
	if (j->stopped)
		p->has_pending = false;
	else if (last == j->leaves)
		take_sum(p, &s->sum[0]);
	thread_leave(p, before);
	return j->stopped ? MP_STOPPED : MP_OK;
}

Status batch_learn(Program *p, const Batch *b, uint32_t first, uint32_t last, const volatile int *stop, Tally *t)
{
	Job j = {
		.p = p, .b = b, .leaves = leaf_count(b->count), .first = first, .last = last, .stop = stop, .learn = true
	};
	uint32_t next[MAX_THREADS];

	if (p->has_pending)
		pending_apart(p);
	if (first || last < j.leaves)
		return learn_some(&j, first, last, t);
	run_job(&j);
	if (j.stopped) {
		p->has_pending = false;
		return MP_STOPPED;
	}
	unsigned before = cpu_enter();
	memset(next, 0, p->threads * sizeof *next);
	take_sum(p, join_threads(&j, next, 0, j.leaves));
	cpu_leave(before);
	Tally all = tally_leaves(p->tally, 0, j.leaves);
	tally_add(t, &all);
	return MP_OK;
}

/* Sums of the largest subtrees that lie in the leaves done here, in their order. */
static void collect_sums(Job *j, uint32_t *next, uint32_t first, uint32_t end, Share *out)
{
	if (end <= j->first || first >= j->last)
		return;
	if (first >= j->first && end <= j->last) {
		Sum *sum = join_threads(j, next, first, end);
		check_sum(j->p, sum->v, sum->seal);
		out->sum[out->sums++] = sum->v;
		return;
	}
	uint32_t middle = first + leaf_split(end - first);
	collect_sums(j, next, first, middle, out);
	collect_sums(j, next, middle, end, out);
}

Status batch_share(Program *p, const Batch *b, uint32_t first, uint32_t last, bool learn, const volatile int *stop,
                   Share *out)
{
	Job j = {
		.p = p, .b = b, .leaves = leaf_count(b->count), .first = first, .last = last, .stop = stop, .learn = learn
	};
	uint32_t next[MAX_THREADS];

	pending_apart(p);
	pending_touch(p, p->pending);
	out->sums = 0;
	out->tally = p->tally;
	out->total = p->pending;
	out->floats = p->layout->room;
	if (first == last)
		return MP_OK;
	run_job(&j);
	if (j.stopped)
		return MP_STOPPED;
	unsigned before = cpu_enter();
	memset(next, 0, p->threads * sizeof *next);
	if (learn)
		collect_sums(&j, next, 0, j.leaves, out);
	cpu_leave(before);
	return MP_OK;
}

/* ---- a leaf once more ---- */

typedef struct Again {
	Job j;
	uint32_t leaf, thread;
	uint64_t word;
	int core;
} Again;

/* The first thread's rows and sums are free: the batch waits for its update. */
static void again_work(void *arg, uint32_t thread)
{
	Again *a = arg;
	Program *p = a->j.p;
	Space *s = &p->space[0];

	if (thread != a->thread)
		return;
	unsigned before = thread_enter(p);
	Tally first = p->tally[a->leaf];
	run_leaf(&a->j, s, a->leaf, s->sum[0].v);
	a->word = leaf_word(seal_leaf(p, s->sum[0].v), &p->tally[a->leaf]);
	a->core = sched_getcpu();
	p->tally[a->leaf] = first;
	thread_leave(p, before);
}

/* The core after the one this thread is on, if it may use others. */
static void go_elsewhere(void)
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

uint64_t batch_again(Program *p, const Batch *b, uint32_t leaf, uint32_t turn, int *core)
{
	static const volatile int never = 0;
	Again a = { .j = { .p = p,
		               .b = b,
		               .leaves = leaf_count(b->count),
		               .first = leaf,
		               .last = leaf + 1,
		               .stop = &never,
		               .learn = true,
		               .threads = 1 },
		        .leaf = leaf };
	cpu_set_t all;

	pending_apart(p);
	if (p->threads > 1) {
		a.thread = (p->watch->thread + 1 + turn) % p->threads;
		pool_run(p->pool, again_work, &a);
	} else {
		bool bound = sched_getaffinity(0, sizeof all, &all) == 0;
		go_elsewhere();
		again_work(&a, 0);
		if (bound)
			sched_setaffinity(0, sizeof all, &all);
	}
	*core = a.core;
	return a.word;
}

void batch_sum(Program *p)
{
	unsigned before = cpu_enter();

	online_settle(p);
	if (!p->lent)
		pending_touch(p, p->pending);
	rows_backward(p, &p->space[0], 0, 1);
	rows_gradient(p, &p->space[0], 1, true, 0, 1, p->pending);
	p->has_pending = true;
	pending_seal(p);
	online_forget(p);
	cpu_leave(before);
}

Status batch_test(Program *p, uint64_t first, uint64_t count, const volatile int *stop, double *out, Tally *t)
{
	Batch b = { .first = first, .count = count };
	Job j = { .p = p, .b = &b, .leaves = leaf_count(count), .last = leaf_count(count), .stop = stop, .out = out };
	uint64_t unused;

	if (!count)
		return MP_OK;
	run_example(p->net, p->data, first, &j.out_first, &unused);
	run_job(&j);
	if (j.stopped)
		return MP_STOPPED;
	Tally all = tally_leaves(p->tally, 0, j.leaves);
	tally_add(t, &all);
	return MP_OK;
}
