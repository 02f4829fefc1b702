/* SPDX-License-Identifier: MIT */
/* When a run ends, and what its caller hears of it: reports after epochs, ticks between updates. */
#include <math.h>

#include "loop.h"

/* Ranks end together: by what they agreed on, not by a signal that only one of them has received. */
bool must_stop(const Run *r) { return r->ranks ? r->ranks->stop : r->stop; }

const char *end_reason(const Loop *l)
{
	const Run *r = l->r;
	const Options *o = &r->opt;
	double seconds = r->ranks ? r->ranks->seconds : r->at.seconds;
	if (r->report.solved)
		return "until";
	if (o->epochs && r->at.epoch >= (uint64_t)o->epochs)
		return "epochs";
	if (o->updates && r->at.updates >= (uint64_t)o->updates)
		return "updates";
	if (o->time > 0 && seconds >= o->time)
		return "time";
	if (o->patience && r->at.epoch - r->at.best_epoch >= (uint64_t)o->patience)
		return "patience";
	return must_stop(r) ? "signal" : NULL;
}

/* Epochs 1 to 32, then 16 until their number has doubled, and so on: a curve even of a run of milliseconds. */
static bool on_curve(uint64_t epoch)
{
	uint64_t step = 1;
	while (epoch / step > 32)
		step *= 2;
	return epoch % step == 0;
}

bool report_due(const Loop *l)
{
	const Options *o = &l->r->opt;
	if (o->report)
		return l->r->at.epoch % (uint64_t)o->report == 0;
	if (l->timed_until - l->reported >= 0.1)
		return true;
	return (l->test || o->keep_best) && on_curve(l->r->at.epoch); /* such a run stops after every epoch */
}

static bool is_root(const Run *r) { return !r->ranks || r->ranks->comm->rank == 0; }

/* Differences are seconds of work: stands still while the target compiles a kernel. */
double training_clock(const Run *r)
{
	const TimeHooks *t = r->target->time;

	return clock_seconds() - (t && t->compile ? t->compile(r->program) : 0);
}

void give_report(Loop *l)
{
	l->reported = training_clock(l->r);
	if (is_root(l->r) && l->fn && l->fn(l->user, l->r, &l->r->report) != 0)
		l->r->stop = 1;
}

uint64_t simulated_cycles(const Run *r) { return r->target->simulator ? r->target->simulator->cycles(r->program) : 0; }

/* Position.simulated is always a whole number of cycles times the seconds of one, rounded once: the sum does not depend
 * on where a run was interrupted. */
void count_simulated(Run *r, uint64_t cycles)
{
	if (!r->target->simulator)
		return;
	double cycle = r->target->simulator->cycle(r->program);
	r->at.simulated = cycle * (round(r->at.simulated / cycle) + (double)cycles);
}

void count_time(Loop *l)
{
	double now = training_clock(l->r);
	l->r->at.seconds += now - l->timed_until;
	l->timed_until = now;
}

/* Guarded ranks must exchange messages before they know that the last update is worth saving. */
bool ticks_deferred(const Run *r) { return r->ranks && r->guard; }

/* The time it takes is not part of training. */
Status tick(Loop *l)
{
	Run *r = l->r;
	if (!r->tick || !is_root(r) || l->timed_until - l->ticked < r->tick_seconds)
		return MP_OK;
	if (ticks_deferred(r))
		count_time(l);
	l->ticked = l->timed_until;
	TRY(l->observer->before_save(r->guard)); /* a tick may save the weights */
	if (r->tick(r->tick_user, r) != 0)
		r->stop = 1;
	if (r->diverged && !r->seed)
		diverged(l, r->at.epoch + (r->at.done > 0));
	l->timed_until = training_clock(r);
	return MP_OK;
}
