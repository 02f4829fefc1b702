/* SPDX-License-Identifier: MIT */
/* Bulk updates: several in one call of the target. In: where a run stands, how many updates may pass before a report,
 * a tick or the end is due. Out: the arguments of Target.run_updates (numbers of each update, examples in the order of
 * their epochs), and how many it did.
 *
 * Calls last some hundredths of a second: the clock is read between them, for reports, ticks and the end, and a target
 * may lose time at their ends. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "loop.h"

enum { FIRST_UPDATES = 16, MOST_UPDATES = 1 << 14 }; /* of the first call; of any */
enum { MOST_EXAMPLES = 4096 };                       /* that are shuffled, if the target says nothing else */
enum { FEW_EPOCHS = 64 };                            /* at most, unless a call takes as long as some epochs */
enum { MOST_THREADS = 8 };                           /* that make orders of examples */
enum { FEW_DIFFERENT = 64, MANY_DIFFERENT = 2048 };  /* updates whose numbers differ, likewise */

/* Examples of updates that follow each other in one epoch. */
struct OrderPart {
	uint64_t epoch, first, count, at; /* at: in Bulk.example */
};

static uint64_t bulk_examples(const Bulk *m)
{
	Caps caps;

	m->target->caps(&caps);
	return caps.bulk;
}

static uint64_t most_examples(const Bulk *m)
{
	uint64_t some = bulk_examples(m);

	return some ? some : MOST_EXAMPLES;
}

Pool *bulk_pool(Ctx *cx, const Target *t, const Options *o)
{
	Caps caps;
	uint32_t threads = min_u32(MOST_THREADS, o->threads ? (uint32_t)o->threads : pool_cores() / 2);

	t->caps(&caps);
	return caps.bulk && threads > 1 ? pool_new(cx, threads) : NULL;
}

static void orders_init(Bulk *m, Arena *a)
{
	m->threads = m->pool ? pool_threads(m->pool) : 1;
	m->orders = NEW(a, m->threads, Order *);
	m->orders[0] = m->order;
	for (uint32_t i = 1; i < m->threads; i++)
		m->orders[i] = order_new(a, m->order->examples, m->order->seed, true);
	m->part = NEW(a, BULK_EPOCHS, OrderPart);
	m->example = arena_alloc_raw(a, most_examples(m), sizeof *m->example);
}

/* Nothing but a report and some points of the history shows how many cases are right. */
static bool needs_few_counts(const Bulk *m)
{
	const Until *u = m->until;

	return bulk_examples(m) && isnan(u->error) && isnan(u->right) && isnan(u->within);
}

void bulk_init(Bulk *m, Arena *a)
{
	if (m->order->shuffled)
		orders_init(m, a);
	m->call_updates = FIRST_UPDATES;
	m->few_counts = needs_few_counts(m);
	m->different = bulk_examples(m) ? MANY_DIFFERENT : FEW_DIFFERENT;
	m->update = NEW(a, m->different, Update);
}

void bulk_adapt(Bulk *m, uint64_t updates, double seconds)
{
	const double short_call = 0.03, long_call = 0.06;

	if (seconds > long_call)
		m->call_updates = max_u64(m->call_updates / 2, 1);
	else if (seconds < short_call && updates > m->call_updates / 2)
		m->call_updates = min_u64(2 * m->call_updates, MOST_UPDATES);
}

uint64_t updates_left(uint64_t examples, uint64_t batch, uint64_t done) { return ceil_div(examples - done, batch); }

uint64_t bulk_limit(Bulk *m, const Position *at, uint64_t epochs)
{
	const Options *o = m->opt;
	m->same = o->schedule == SCHEDULE_CONSTANT && o->warmup <= (double)at->epoch && !rules[o->rule].needs_count;
	uint64_t n = min_u64(m->call_updates, m->same ? MOST_UPDATES : m->different);

	epochs = min_u64(epochs, bulk_examples(m) ? BULK_EPOCHS : FEW_EPOCHS);
	if (m->example)
		n = min_u64(n, most_examples(m) / m->batch);
	/* up to the end of an epoch, if it reaches one: whole epochs need no schedule of their own */
	uint64_t left = updates_left(m->examples, m->batch, at->done), each = updates_left(m->examples, m->batch, 0);
	return n < left ? n : left + min_u64((n - left) / each, epochs - 1) * each;
}

/* The next update's number of examples, of an epoch of which *done are used. */
static uint64_t advance(const Bulk *m, uint64_t *epoch, uint64_t *done)
{
	uint64_t count = min_u64(m->batch, m->examples - *done);

	*done += count;
	*epoch += *done == m->examples;
	*done = *done == m->examples ? 0 : *done;
	return count;
}

/* Every threads-th of the parts: each epoch has an order of its own. */
static void parts_copy(void *of, uint32_t thread)
{
	const Bulk *m = of;

	for (uint64_t i = thread; i < m->parts; i += m->threads) {
		order_epoch(m->orders[thread], m->part[i].epoch);
		order_copy(m->orders[thread], m->part[i].first, m->part[i].count, m->example + m->part[i].at);
	}
}

/* Updates.prepare: a target may ask for some examples while it computes with others. */
static void examples_prepare(void *of, uint64_t updates)
{
	Bulk *m = of;

	m->parts = 0;
	for (; m->prepared < updates; m->prepared++) {
		OrderPart *p = m->part + m->parts;
		uint64_t epoch = m->epoch, first = m->done, count = advance(m, &m->epoch, &m->done);
		assert(m->parts < BULK_EPOCHS || p[-1].epoch == epoch);
		if (m->parts && p[-1].epoch == epoch)
			p[-1].count += count;
		else
			m->part[m->parts++] = (OrderPart){ epoch, first, count, m->prepared_examples };
		m->prepared_examples += count;
	}
	if (m->parts > 1 && m->threads > 1)
		pool_run(m->pool, parts_copy, m);
	else
		parts_copy(m, 0);
}

static void fill(Bulk *m, const Position *at, uint64_t updates)
{
	uint64_t epoch = at->epoch, done = at->done;

	for (uint64_t k = 0; k < (m->same ? 1 : updates); k++) {
		double passed = (double)epoch + (double)done / (double)m->examples;
		uint64_t count = advance(m, &epoch, &done);
		update_fill(m->opt, at->updates + 1 + k, passed, (double)count / (double)m->examples, &m->update[k]);
	}
	m->prepared = m->prepared_examples = 0;
	m->epoch = at->epoch;
	m->done = at->done;
	memset(m->tally, 0, sizeof m->tally);
	m->tally[0] = at->tally;
}

uint64_t bulk_run(Bulk *m, const Position *at, uint64_t updates)
{
	fill(m, at, updates);
	return m->target->run_updates(m->program, &(Updates){ .examples = m->examples,
	                                                      .batch = m->batch,
	                                                      .done = at->done,
	                                                      .count = updates,
	                                                      .before = at->updates,
	                                                      .example = m->example,
	                                                      .prepare = m->example ? examples_prepare : NULL,
	                                                      .of = m,
	                                                      .update = m->update,
	                                                      .same = m->same,
	                                                      .until = m->until,
	                                                      .stop = m->stop,
	                                                      .tally = m->tally,
	                                                      .epoch = at->epoch,
	                                                      .few_counts = m->few_counts });
}

/* ---- in the training loop ---- */

/* Updates that may pass before a report, a tick or the end is due. */
static uint64_t updates_due(Loop *l)
{
	const Options *o = &l->r->opt;
	const Position *at = &l->r->at;
	uint64_t epochs = BULK_EPOCHS;

	if (o->epochs)
		epochs = min_u64(epochs, (uint64_t)o->epochs - at->epoch);
	if (o->report)
		epochs = min_u64(epochs, (uint64_t)o->report - at->epoch % (uint64_t)o->report);
	if (l->test || o->keep_best || (!o->report && report_due(l))) /* stop at the end of this epoch */
		epochs = 1;
	uint64_t n = bulk_limit(&l->updates, at, epochs);
	if (o->updates)
		n = min_u64(n, (uint64_t)o->updates - at->updates);
	if (l->r->tick && l->r->tick_seconds <= 0) /* after every one */
		n = min_u64(n, 1);
	return n;
}

bool bulk_updates(Loop *l, Update *u)
{
	Position *at = &l->r->at;
	uint64_t count = l->bulk ? updates_due(l) : 0;

	if (!count)
		return false;
	l->timed_until = training_clock(l->r);
	order_epoch(l->batches.order, at->epoch);
	batches_prefetch(&l->batches, at->done);
	double began = l->timed_until;
	uint64_t done = bulk_run(&l->updates, at, count), left = done;
	count_time(l);
	bulk_adapt(&l->updates, done, l->timed_until - began);
	l->bulk = done > 0;
	for (const Tally *t = l->updates.tally; left; t++) {
		uint64_t of_epoch = updates_left(l->examples, l->batch, at->done), some = min_u64(left, of_epoch);
		left -= some;
		*u = l->updates.update[l->updates.same ? 0 : done - left - 1];
		at->updates += some;
		at->tally = *t;
		check_error(l, t);
		if (some == of_epoch)
			epoch_end(l, u->param[P_RATE], left > 0, /* without an observer, it does not roll back */
			          !left || !l->updates.few_counts || epoch_counted(at->epoch + 1));
		else
			at->done += some * l->batch;
	}
	return done > 0;
}
