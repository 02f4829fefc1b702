/* SPDX-License-Identifier: MIT */
/* The training loop: epochs of batches, each a gradient summed over leaves and one update.
 *
 * In: a Run (network, options), training data, test data or NULL. Out: weights in the Run's program, a Position from
 * which the run resumes with the same bits, reports. A batch that is interrupted is discarded, so that resuming
 * repeats it: between updates no state is incomplete.
 *
 * A guard observes the loop (Observer, run.h). Any step may return ROLLED_BACK: the weights and the Position are then
 * those of an earlier update, and the loop goes on from there. */
#include <math.h>
#include <string.h>

#include "loop.h"

/* One update: sum the gradients of a batch, apply the rule once. */
static Status update(Loop *l, Update *u)
{
	Run *r = l->r;
	Position *at = &r->at;
	Tally t = { 0 };

	TRY(l->observer->before_update(r->guard));
	Batch b = batches_next(&l->batches, at->done);
	b.update = at->updates;
	uint64_t cycles = simulated_cycles(r);
	TRY(l->observer->before_batch(r->guard, &b));
	TRY(r->ranks ? ranks_batch(r, &b, true, &r->stop, &t)
	             : r->target->accumulate(r->program, &b, 0, leaf_count(b.count), &r->stop, &t));
	update_fill(&r->opt, at->updates + 1, (double)at->epoch + (double)at->done / (double)l->examples,
	            (double)b.count / (double)l->examples, u);
	TRY(l->observer->after_sum(r->guard, &b));
	if (ticks_deferred(r))
		TRY(tick(l));
	r->target->apply(r->program, u);
	count_time(l);
	count_simulated(r, simulated_cycles(r) - cycles);
	at->updates++;
	at->done += b.count;
	tally_add(&at->tally, &t);
	TRY(l->observer->after_apply(r->guard, &t));
	check_error(l, &t);
	if (at->done < l->examples && !ticks_deferred(r)) /* else when the epoch is complete */
		TRY(tick(l));
	return MP_OK;
}

/* The rest of an epoch, or up to where the run ends. */
static Status epoch(Loop *l, Update *u)
{
	Position *at = &l->r->at;

	TRY(l->observer->begin_epoch(l->r->guard));
	batches_epoch(&l->batches, at->epoch, at->done);
	l->timed_until = training_clock(l->r);
	while (at->done < l->examples) {
		TRY(update(l, u));
		if (at->done < l->examples && end_reason(l))
			return MP_OK;
	}
	TRY(l->observer->before_update(l->r->guard));
	return epoch_end(l, u->param[P_RATE], false, true);
}

static Status last_report(Loop *l, double rate, const char *reason)
{
	Run *r = l->r;
	bool interrupted = strcmp(reason, "signal") == 0;

	report_fill(r, l->data, rate);
	r->report.stopped_by = reason;
	report_note_last(r);
	if (!run_finite(r))
		diverged(l, r->at.epoch + (r->at.done > 0));
	run_fingerprint(r, r->fingerprint);
	r->report.fingerprint = r->fingerprint;
	if (!interrupted)
		note_stuck(l);
	r->training = false;
	give_report(l);
	loop_finish(r);
	r->stop = 0;
	return interrupted ? MP_STOPPED : MP_OK;
}

Status run_train(Run *r, const Data *data, const Data *test, mp_report_fn *fn, void *user)
{
	Loop *l = NEW(&r->cx.scratch, 1, Loop); /* not on the stack, which no guard verifies */
	Update u;

	*l = (Loop){ .r = r, .fn = fn, .user = user, .reported = -INFINITY };
	loop_start(l, data, test);
	l->ticked = training_clock(r);
	if (r->job && r->job->root_only && r->job->comm->rank)
		return MP_OK;
	update_fill(&r->opt, r->at.updates + 1, (double)r->at.epoch, 0, &u);
	r->report = (mp_report){ .size = sizeof r->report };
	report_fill(r, l->data, u.param[P_RATE]);
	r->report.solved = r->at.epoch && until_reached(&l->until, &r->at.last);
	const char *end = end_reason(l);
	while (!end) {
		Status s = bulk_updates(l, &u) ? MP_OK : epoch(l, &u);
		bool whole = s == MP_OK && r->at.done == 0;
		if (s == ROLLED_BACK)
			continue;
		if (s == MP_FAILED) {
			loop_finish(r);
			return s;
		}
		end = s == MP_STOPPED ? "signal" : end_reason(l);
		if (end && l->observer->before_end(r->guard) == ROLLED_BACK) {
			r->report.solved = 0;
			end = NULL;
			continue;
		}
		if (whole && !end && report_due(l))
			give_report(l);
		if (!end && !ticks_deferred(r))
			tick(l); /* if it rolls back, the next epoch goes on from there */
		if (!end && must_stop(r))
			end = "signal";
	}
	return last_report(l, u.param[P_RATE], end);
}
