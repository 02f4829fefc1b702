/* SPDX-License-Identifier: MIT */
/* The end of an epoch: count it, check the weights, measure the error on test data, keep the best weights. */
#include <math.h>

#include "loop.h"

_Noreturn void diverged(Loop *l, uint64_t epoch)
{
	loop_finish(l->r);
	run_diverged(l->r, l->data, epoch, updates_left(l->examples, l->batch, 0));
}

void check_error(Loop *l, const Tally *t)
{
	if (!isfinite(t->error))
		diverged(l, l->r->at.epoch + 1);
}

/* Weights that are not finite may be due to silent corruption: an observer is asked first. */
static Status check_finite(Loop *l)
{
	Run *r = l->r;
	if (run_finite(r))
		return MP_OK;
	TRY(l->observer->before_export(r->guard));
	diverged(l, r->at.epoch + (r->at.done > 0));
}

static bool finite_due(const Loop *l) { return !l->r->seed && l->r->at.epoch % l->finite_every == 0; }

/* Neither data set changes until the run ends: a caller's report function may save, but not change them. */
static void rebind(Run *r, const Data *d)
{
	(r->target->rebind ? r->target->rebind : r->target->bind)(&r->cx, r->program, d);
}

/* Is never stopped half-way: its result decides which epoch was best, and a resumed run could not know it. */
static Status measure(Loop *l, Tally *t)
{
	static const StopFlag never = 0;
	Run *r = l->r;
	uint64_t examples = run_examples(r->net, l->test);
	Status s;

	rebind(r, l->test);
	*t = (Tally){ 0 };
	if (r->ranks)
		s = ranks_batch(r, &(Batch){ .count = examples }, false, &never, t);
	else
		s = r->target->evaluate(r->program, 0, examples, &never, NULL, t);
	rebind(r, l->data);
	return s == ROLLED_BACK ? s : MP_OK;
}

static Status note_best(Loop *l)
{
	Run *r = l->r;
	double e = l->test ? r->report.test_error : r->report.error;
	r->report.best = e < r->at.best;
	if (!r->report.best)
		return MP_OK;
	r->at.best = e;
	r->at.best_epoch = r->report.best_epoch = r->at.epoch;
	if (!r->opt.keep_best)
		return MP_OK;
	if (!finite_due(l))
		TRY(check_finite(l));
	for (uint64_t i = 0; i < r->net->links; i += CHUNK_LINKS) {
		r->target->get(r->program, 0, i, CHUNK_LINKS, l->chunk);
		best_put(r, i, net_chunk(r->net, i, CHUNK_LINKS), l->chunk);
	}
	r->best_at = r->at;
	return MP_OK;
}

Status epoch_end(Loop *l, double rate, bool finite, bool counted)
{
	Run *r = l->r;
	Position *at = &r->at;
	at->last = at->tally;
	at->tally = (Tally){ 0 };
	at->done = 0;
	at->epoch++;
	l->batches.prefetched = 0;
	if (l->test || r->opt.keep_best)
		TRY(l->observer->before_export(r->guard));
	if (!finite && finite_due(l))
		TRY(check_finite(l));
	if (l->test)
		TRY(measure(l, &at->test));
	report_fill(r, l->data, rate);
	r->report.solved = until_reached(&l->until, &at->last);
	TRY(note_best(l));
	report_note(r, counted);
	l->observer->after_epoch(r->guard);
	return MP_OK;
}
