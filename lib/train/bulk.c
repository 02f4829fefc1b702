/* SPDX-License-Identifier: MIT */
/* Updates that a target does in one go. In: where a run stands, and how many updates may pass before somebody wants
 * to know. Out: what the target's hook `updates` takes: the numbers of each update, the examples in the order of
 * their epochs; and how many it did.
 *
 * What they need is worked out a little at a time: a look at the clock between two goes must not come too late. */
#include <string.h>

#include "train.h"

enum { UPDATES_AT_ONCE = 4096 }; /* at most; and so many examples, if their order has to be worked out */

static uint64_t lesser(uint64_t a, uint64_t b) { return a < b ? a : b; }

void many_init(Many *m, Arena *a) { m->example = m->order->shuffled ? NEW(a, UPDATES_AT_ONCE, uint64_t) : NULL; }

uint64_t updates_left(uint64_t examples, uint64_t batch, uint64_t done)
{
	return (examples - done + batch - 1) / batch;
}

uint64_t many_most(Many *m, const Position *at, uint64_t epochs)
{
	const Options *o = m->opt;
	m->same = o->schedule == SCHEDULE_CONSTANT && o->warmup <= (double)at->epoch && !rules[o->rule].needs_count;
	uint64_t n = m->same ? UPDATES_AT_ONCE : OTHERS_AT_ONCE;

	n = lesser(n, updates_left(m->examples, m->batch, at->done) +
	                  (lesser(epochs, EPOCHS_AT_ONCE) - 1) * updates_left(m->examples, m->batch, 0));
	return m->example ? lesser(n, UPDATES_AT_ONCE / m->batch) : n;
}

/* Their numbers and their examples. */
static void fill(Many *m, const Position *at, uint64_t updates)
{
	uint64_t epoch = at->epoch, done = at->done, examples = 0;

	for (uint64_t k = 0; k < updates; k++) {
		uint64_t count = lesser(m->batch, m->examples - done);
		if (!k || !m->same)
			update_fill(m->opt, at->updates + 1 + k, (double)epoch + (double)done / (double)m->examples,
			            (double)count / (double)m->examples, &m->update[k]);
		if (m->example)
			order_epoch(m->order, epoch);
		for (uint64_t i = 0; m->example && i < count; i++)
			m->example[examples++] = order_at(m->order, done + i);
		done += count;
		epoch += done == m->examples;
		done = done == m->examples ? 0 : done;
	}
	memset(m->tally, 0, sizeof m->tally);
	m->tally[0] = at->tally;
}

uint64_t many_do(Many *m, const Position *at, uint64_t updates)
{
	fill(m, at, updates);
	return m->target->run_updates(m->program, &(Updates){ .examples = m->examples,
	                                                      .batch = m->batch,
	                                                      .done = at->done,
	                                                      .count = updates,
	                                                      .example = m->example,
	                                                      .update = m->update,
	                                                      .same = m->same,
	                                                      .until = m->until,
	                                                      .stop = m->stop,
	                                                      .tally = m->tally });
}
