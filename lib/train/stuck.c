/* SPDX-License-Identifier: MIT */
/* Has a run learnt anything?  In: the network, weights and data at its end.  Out: a note that says what is wrong and
 * what to try, if the error is no better than that of guessing the mean, or stopped moving far from zero.
 *
 * The cost is small: one pass over the targets, and a forward pass, in double precision, over a few cases. */
#include <math.h>
#include <string.h>

#include "loop.h"

enum {
	LEAST_EPOCHS = 30, /* of a run that is judged */
	MOST_TARGETS = 1 << 20,
	MOST_LINKS = 1 << 18,
	SAMPLE = 64, /* cases of the forward pass */
};

/* Of always answering with the mean of every target: mean per case. */
static double guess_error(Ctx *cx, const ErrorFn *e, const Data *d)
{
	uint64_t cases = min_u64(d->cases, MOST_TARGETS / d->targets + 1);
	double *mean = NEW(&cx->scratch, d->targets, double), error = 0;
	uint64_t *count = NEW(&cx->scratch, d->targets, uint64_t);
	float *y = NEW(&cx->scratch, d->targets, float);
	for (int pass = 0; pass < 2; pass++) {
		for (uint64_t i = 0; i < cases; i++) {
			data_y(d, i, y);
			for (uint32_t k = 0; k < d->targets; k++) {
				if (isnan(y[k]))
					continue;
				count[k] += !pass;
				if (pass)
					error += e->value(mean[k] / (double)count[k], y[k]);
				else
					mean[k] += y[k];
			}
		}
	}
	return error / (double)cases;
}

/* Lowest and highest activation of every unit over some cases. */
typedef struct Seen {
	double *low, *high;
} Seen;

static void forward(const Run *r, const double *w, double *act)
{
	const Net *net = r->net;
	const Plan *plan = r->plan;
	for (uint32_t i = 0; i < plan->spans; i++) {
		Span s = plan->span[i];
		const Group *g = s.group;
		double sum = 0;
		for (Unit u = s.first; u < s.first + s.count; u++) {
			double x = 0;
			for (uint64_t l = net->row[u]; l < net->row[u + 1]; l++)
				x += w[l] * act[net_source(net, u, l)];
			sum += act[u] = unit_fns[g->fn].value(x);
		}
		for (Unit u = s.first; g->fn == FN_SOFTMAX && u < s.first + s.count; u++)
			act[u] /= sum;
	}
}

static void inputs_put(const Net *net, const float *x, double *act)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < net->groups; i++)
		for (uint32_t j = 0; net->group[i].role == ROLE_INPUT && j < net->group[i].size; j++)
			act[net->group[i].first + j] = x[k++];
}

static Seen look(Run *r, const Data *d)
{
	Ctx *cx = &r->cx;
	const Net *net = r->net;
	uint64_t cases = min_u64(d->cases, SAMPLE);
	double *w = NEW(&cx->scratch, net->links, double), *act = NEW(&cx->scratch, net->units, double);
	float *x = NEW(&cx->scratch, d->inputs, float);
	Seen seen = { NEW(&cx->scratch, net->units, double), NEW(&cx->scratch, net->units, double) };
	r->target->get(r->program, 0, 0, ALL_LINKS, w);
	act[0] = 1;
	for (uint64_t i = 0; i < cases; i++) {
		data_x(d, i * (d->cases / cases), x);
		inputs_put(net, x, act);
		forward(r, w, act);
		for (Unit u = 0; u < net->units; u++) {
			seen.low[u] = i ? fmin(seen.low[u], act[u]) : act[u];
			seen.high[u] = i ? fmax(seen.high[u], act[u]) : act[u];
		}
	}
	return seen;
}

/* A unit whose slope is next to zero for every case: it does not learn. */
static bool is_flat(const Group *g, double low, double high)
{
	const UnitFn *f = &unit_fns[g->fn];
	double margin = 0.02 * (f->high - f->low);
	if (g->fn == FN_RELU)
		return high <= 0;
	return isfinite(margin) && g->fn != FN_GAUSSIAN && (high < f->low + margin || low > f->high - margin);
}

typedef struct Finding {
	uint64_t hidden, flat; /* hidden units; those that do not learn */
	bool relu;             /* all of them are */
	bool constant;         /* outputs are the same for every case */
} Finding;

static Finding find(Run *r, const Data *d)
{
	const Net *net = r->net;
	Finding f = { .relu = true, .constant = d->cases > 1 };
	Seen seen = look(r, d);
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		for (Unit u = g->first; u < g->first + g->size; u++) {
			if (g->role == ROLE_OUTPUT)
				f.constant &= seen.high[u] - seen.low[u] < 1e-4 * (1 + fabs(seen.high[u]));
			if (g->role != ROLE_HIDDEN)
				continue;
			f.hidden++;
			f.flat += is_flat(g, seen.low[u], seen.high[u]);
			f.relu &= g->fn == FN_RELU;
		}
	}
	return f;
}

/* Change of the error over the last tenth of the run, relative to it. */
static double movement(const Run *r)
{
	uint32_t last = r->points - 1, first = last - r->points / 10;
	double low = INFINITY, high = 0;
	for (uint32_t i = first; i <= last; i++) {
		low = fmin(low, r->history[i].error);
		high = fmax(high, r->history[i].error);
	}
	return high > 0 ? (high - low) / high : 0;
}

void note_stuck(Loop *l)
{
	Run *r = l->r;
	Ctx *cx = &r->cx;
	const Data *d = l->data;
	double error = r->report.error;
	if (r->report.solved || r->seed || r->ranks || r->target->simulator || r->net->copies || r->net->shaped ||
	    d->weight || !d->targets || r->at.epoch < LEAST_EPOCHS || r->points < LEAST_EPOCHS ||
	    r->net->links > MOST_LINKS)
		return;
	double guess = guess_error(cx, &error_fns[r->opt.error], d);
	bool still = movement(r) < 1e-4;
	if (guess <= 0 || error < (still ? 0.5 : 0.98) * guess)
		return;
	Finding f = find(r, d);
	const char *remedy =
		"try rule adam with rate 0.003 and batch 32, scale the inputs (--scale zscore), or another seed";
	Buf why = { .arena = &cx->scratch };
	if (f.hidden && f.flat * 10 > f.hidden * 9) {
		buf_printf(&why, ": %llu of %llu hidden units %s for every case", (unsigned long long)f.flat,
		           (unsigned long long)f.hidden, f.relu ? "are zero" : "are saturated");
		remedy = "scale the inputs (--scale zscore), lower the rate, or start from smaller weights (weights fan-in)";
	} else if (f.constant) {
		buf_puts(&why, ": the outputs are the same for every case");
	} else if (still) {
		buf_puts(&why, ", and it no longer changes");
	}
	note(cx, remedy, "the error is %.4g, guessing the mean would give %.4g%s", error, guess, why.s ? why.s : "");
}
