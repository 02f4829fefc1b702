/* SPDX-License-Identifier: MIT */
/* Divergence. In: a run whose rate may be too high. Out: whether its weights are finite, and the message if they are
 * not.
 *
 * The message names the epoch, not the update at which it was detected: an infinite weight shows in the next case of
 * dense inputs, but of sparse ones only in a case that has its input. Both check the weights after the epoch, and give
 * the same message. */
#include <math.h>

#include "run.h"

enum { SMALL_NET = 1 << 17, LARGE_CASES = 2048 };

bool weights_finite(const double *w, uint64_t n)
{
	double zero = 0; /* NaN, if one is not finite */

	for (uint64_t i = 0; i < n; i++)
		zero += w[i] - w[i];
	return zero == 0;
}

/* A target's false may be due to padding: confirm by reading the weights. */
bool run_finite(Run *r)
{
	double some[512];

	if (r->target->finite && r->target->finite(r->program))
		return true;
	for (uint64_t i = 0; i < r->net->links; i += COUNT(some)) {
		r->target->get(r->program, 0, i, COUNT(some), some);
		if (!weights_finite(some, net_chunk(r->net, i, COUNT(some))))
			return false;
	}
	return true;
}

/* Weights that exceed the caches are checked after every LARGE_CASES cases only. */
uint64_t epochs_between_checks(const Net *net, const Data *d)
{
	return net->links <= SMALL_NET ? 1 : (LARGE_CASES - 1) / d->cases + 1;
}

/* The updates of an epoch, in words. */
static const char *updates_text(Arena *a, uint64_t epoch, uint64_t updates)
{
	Buf b = { .arena = a };

	if (updates == 1)
		buf_printf(&b, "update %llu", (unsigned long long)epoch);
	else
		buf_printf(&b, "updates %llu to %llu", (unsigned long long)((epoch - 1) * updates + 1),
		           (unsigned long long)(epoch * updates));
	return b.s;
}

_Noreturn void run_diverged(Run *r, const Data *d, uint64_t epoch, uint64_t updates)
{
	Ctx *cx = &r->cx;
	mp_data_info info;
	unsigned long long number = epoch;
	const char *when = updates_text(&cx->scratch, epoch, updates);

	r->report.stopped_by = "diverged";
	if (option_is_set(&cx->scratch, &r->opt, "fault"))
		fail(cx, MP_FAILED, "--fault-log FILE shows which words were wrong before that",
		     "the error or a weight is not finite in epoch %llu, %s: most likely a fault has made it so", number, when);
	data_describe(cx, d, &info);
	double reach = fmax(fabs(info.min), fabs(info.max));
	if (reach > 100)
		fail(cx, MP_FAILED, "scale them: 'microprop data IN OUT --scale zscore'",
		     "the error or a weight is not finite in epoch %llu, %s: inputs reach %g", number, when, reach);
	fail(
		cx, MP_FAILED,
		"try a tenth of the rate, a smaller momentum, smaller initial weights, or rule doug, which limits the gradient",
		"the error or a weight is not finite in epoch %llu, %s: the rate %g is likely too high", number, when,
		r->opt.rate);
}
