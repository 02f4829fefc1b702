/* SPDX-License-Identifier: MIT */
/* Time in settling networks.  In: a network, options, data.  Out: how many ticks a case has, and which of them have
 * inputs and targets.  Data is not repeated: rows of several ticks refer to one case. */
#include "run.h"

TickPlan ticks_make(const Net *net, const Options *o)
{
	uint32_t block = o->bptt == BPTT_FULL ? 0 : (uint32_t)o->bptt;
	if (!net->settles)
		return (TickPlan){ .each = 1, .inputs_end = UINT32_MAX, .block = block };
	return (TickPlan){ .each = (uint32_t)(o->ticks * o->intervals),
		               .settles = true,
		               .targets_from = (uint32_t)o->targets_from - 1,
		               .inputs_end = o->inputs_until ? (uint32_t)o->inputs_until : UINT32_MAX,
		               .block = block };
}

uint32_t ticks_case(const TickPlan *t, const Data *d, uint64_t i)
{
	return t->settles && d->ticks && d->ticks[i] ? d->ticks[i] : t->each;
}

uint64_t ticks_example(const TickPlan *t, const Data *d, uint64_t first, uint64_t count)
{
	uint64_t ticks = 0;
	if (!t->settles || !d->ticks)
		return count * t->each;
	for (uint64_t i = first; i < first + count; i++)
		ticks += ticks_case(t, d, i);
	return ticks;
}

uint32_t ticks_longest(const TickPlan *t, const Data *d)
{
	uint32_t most = 0;
	if (!t->settles || !d->ticks)
		return t->each;
	for (uint64_t i = 0; i < d->cases; i++)
		most = max_u32(most, ticks_case(t, d, i));
	return most;
}

bool ticks_constant(const TickPlan *t, const Data *d)
{
	return t->inputs_end == UINT32_MAX || (!d->ticks && t->inputs_end >= t->each);
}

/* The file decides whether a network settles, and in which order: links mean something else then. */
void ticks_check(Ctx *cx, const Net *net, const Options *o)
{
	if (!net->settles && o->ticks * o->intervals > 1)
		fail(cx, MP_BAD_INPUT, "write it into the file: train ticks 8",
		     "%s does not settle: the number of its ticks cannot be set on a command line", net->name);
	if (o->settle != net->options.settle)
		fail(cx, MP_BAD_INPUT, "write it into the file: train settle synchronous",
		     "what links read is part of the network: settle cannot be set on a command line");
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		double dt = group_dt(g, o);
		if (g->integrate && !(dt > 0 && dt <= 1))
			fail_at(cx, g->at, "dt is above 0, at most 1: that of the network times that of the group",
			        "'%s' would integrate with a dt of %g", g->name, dt);
		if (g->integrate == INTEGRATE_OUTPUT && g->role == ROLE_OUTPUT && o->error == ERR_DIVERGENCE)
			fail_at(cx, g->at, "write integrate input, or train with error cross-entropy or squared",
			        "error divergence is for softmax outputs as they are: '%s' integrates its output", g->name);
	}
}
