/* SPDX-License-Identifier: MIT */
/* The error of a network on data, and its outputs, without training. */
#include <math.h>

#include "loop.h"

void run_test(Run *r, const Data *data, mp_result *result, double *outputs)
{
	Ctx *cx = &r->cx;
	bool labelled = result && data->targets;
	check_idle(r);
	run_check_data(cx, r->net, data, labelled);
	run_start(r);
	Data seen = *data_scaled(r, data);
	if (!labelled)
		seen.targets = 0;
	Options own = r->opt;
	own.error = run_error(r);
	if (labelled)
		run_check_targets(cx, r->net, &own, &seen);
	int error = r->opt.error;
	r->opt.error = own.error;
	r->target->bind(cx, r->program, &seen);
	Tally t = { 0 };
	double start = training_clock(r);
	Status s = r->target->evaluate(r->program, 0, run_examples(r->net, &seen), &r->stop, outputs, &t);
	r->opt.error = error;
	if (s != MP_OK)
		fail(cx, s, NULL, "stopped");
	if (result)
		*result = (mp_result){ .cases = seen.cases,
			                   .total_error = t.error,
			                   .seconds = training_clock(r) - start,
			                   .error = tally_mean(&t),
			                   .right = share_of(t.right, t.scored),
			                   .within = share_of(t.within, t.scored) };
}

static void watch_over(void *run)
{
	Run *r = run;
	r->target->watch->units(r->program, (Span){ 0 }, LAST_TICK);
}

/* Inputs are those of the data, as the network gets them: a target need not keep them. */
static void take_inputs(Run *r, const Data *seen, const Group *g, uint32_t tick, double *out)
{
	float *x = NEW(&r->cx.scratch, seen->inputs, float);
	TickPlan ticks = ticks_make(r->net, &r->opt);
	uint32_t first = 0;
	for (const Group *h = r->net->group; h < g; h++)
		first += h->role == ROLE_INPUT ? h->size : 0;
	for (uint64_t i = 0; i < seen->cases; i++, out += g->size) {
		uint32_t last = ticks_case(&ticks, seen, i) - 1, at = tick == LAST_TICK ? last : tick;
		data_x(seen, i, x);
		for (uint32_t k = 0; at <= last && k < g->size; k++)
			out[k] = at < ticks.inputs_end ? (double)x[first + k] : 0;
	}
}

void run_activations(Run *r, const Data *data, const Group *g, uint32_t tick, double *out)
{
	Ctx *cx = &r->cx;
	TickPlan ticks = ticks_make(r->net, &r->opt);
	uint32_t most = ticks_longest(&ticks, data);
	if (tick != LAST_TICK && tick >= most)
		fail(cx, MP_BAD_INPUT, "ticks count from 1; see them with: microprop show",
		     "there is no tick %llu: a case of %s has %s%u tick%s", tick + 1ull, r->net->name,
		     data->ticks && ticks.settles ? "at most " : "", most, most == 1 ? "" : "s");
	for (uint64_t i = 0; tick != LAST_TICK && i < data->cases * g->size; i++)
		out[i] = (double)NAN;
	if (g->role == ROLE_INPUT) {
		check_idle(r);
		run_check_data(cx, r->net, data, false);
		take_inputs(r, data_scaled(r, data), g, tick, out);
		return;
	}
	run_start(r);
	if (!r->target->watch)
		fail(cx, MP_BAD_INPUT, "use target cpu or ref", "target %s does not give activations of '%s'", r->target->name,
		     g->name);
	r->target->watch->units(r->program, (Span){ g->first, g->size, g }, tick);
	arena_defer(&cx->scratch, watch_over, r);
	run_test(r, data, NULL, out);
	watch_over(r);
}
