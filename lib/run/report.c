/* SPDX-License-Identifier: MIT */
/* Reports of a run. In: its Position, with tallies of the last epoch and test. Out: mp_report, points of its history,
 * whether `until` is reached. */
#include <math.h>

#include "run.h"

/* Connections computed for so many cases: a link is computed at every tick. */
static double connections(const Run *r, const Data *data, uint64_t cases)
{
	TickPlan ticks = ticks_make(r->net, &r->opt);
	double each = (double)ticks_example(&ticks, data, 0, data->cases) / (double)data->cases;
	return (double)r->net->links * ((double)cases * each);
}

/* In millions a second. */
static double speed(double connections, double seconds) { return seconds > 0 ? connections / seconds / 1e6 : 0; }

void report_fill(Run *r, const Data *data, double rate)
{
	mp_report *p = &r->report;
	const Position *at = &r->at;
	const Tally *t = at->epoch ? &at->last : &at->tally;
	double seen = connections(r, data, at->epoch * data->cases + at->tally.cases);
	p->target = r->target->name;
	p->connections = r->net->links;
	p->cases = data->cases;
	p->epoch = at->epoch;
	p->epochs = (uint64_t)r->opt.epochs;
	p->updates = at->updates;
	p->total_error = t->error;
	p->error = tally_mean(t);
	p->right = share_of(t->right, t->scored);
	p->within = share_of(t->within, t->scored);
	p->tested = at->test.cases > 0;
	p->test_total_error = at->test.error;
	p->test_error = tally_mean(&at->test);
	p->test_right = share_of(at->test.right, at->test.scored);
	p->test_within = share_of(at->test.within, at->test.scored);
	p->rate = rate;
	p->seconds = at->seconds;
	p->mcps = speed(seen, at->seconds);
	p->simulated_seconds = at->simulated;
	p->simulated_mcps = speed(seen, at->simulated);
}

bool until_reached(const Until *u, const Tally *t)
{
	/* NaN: false */
	return share_of(t->within, t->scored) >= u->within || share_of(t->right, t->scored) >= u->right ||
	       tally_mean(t) < u->error;
}

bool epoch_counted(uint64_t number)
{
	uint64_t every = 1;

	while (number / every >= 64)
		every *= 2;
	return number % every == 0;
}

/* When the history is full, every other point is dropped and the stride doubles. */
void report_note(Run *r, bool counted)
{
	if (r->points == COUNT(r->history)) {
		for (uint32_t i = 0; i < r->points / 2; i++)
			r->history[i] = r->history[2 * i + 1];
		r->points /= 2;
		r->stride *= 2;
	}
	if (r->at.epoch % r->stride)
		return;
	const mp_report *p = &r->report;
	while (r->points && r->history[r->points - 1].epoch >= p->epoch) /* noted before a rollback */
		r->points--;
	r->history[r->points++] =
		(mp_point){ sizeof(mp_point), p->epoch, p->error, counted ? p->right : NAN, p->test_error, p->test_right };
}

void report_note_last(Run *r)
{
	mp_point *last = r->points ? &r->history[r->points - 1] : NULL;

	if (last && last->epoch == r->at.epoch)
		last->right = r->report.right;
}
