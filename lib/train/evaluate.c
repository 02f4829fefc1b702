/* SPDX-License-Identifier: MIT */
/* The error of a network on data, and its outputs, without training. */
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
		targets_check(cx, &own, &seen);
	int error = r->opt.error;
	r->opt.error = own.error;
	r->target->bind(cx, r->program, &seen);
	Tally t = { 0 };
	double start = clock_seconds();
	Status s = r->target->evaluate(r->program, 0, run_examples(r->net, &seen), &r->stop, outputs, &t);
	r->opt.error = error;
	if (s != MP_OK)
		fail(cx, s, NULL, "stopped");
	if (result)
		*result = (mp_result){ .cases = seen.cases,
			                   .total_error = t.error,
			                   .seconds = clock_seconds() - start,
			                   .error = tally_mean(&t),
			                   .right = share_of(t.right, t.scored),
			                   .within = share_of(t.within, t.scored) };
}
