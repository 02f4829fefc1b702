/* SPDX-License-Identifier: MIT */
/* One example of target ref: forward over its steps, scores, errors back, gradients.
 *
 * In: a Program with the places of the example's steps. Out: outputs of units, the tally, a sum of gradients. */
#include <math.h>
#include <string.h>

#include "ref.h"

/* ---- noise ---- */

static bool is_noisy(const Program *p, const Group *g, int place) { return p->noisy && g->noise[place].kind; }

/* Values of some units of a group, v[u] of unit u. */
static void disturb(const Program *p, const Group *g, const Span *s, int place, const Place *at, double *v)
{
	if (!is_noisy(p, g, place))
		return;
	uint64_t key = noise_key(p->opt, p->update, place, (uint32_t)(g - p->net->group));
	for (Unit u = s->first; u < s->first + s->count; u++)
		v[u] = noise_apply(&g->noise[place], noise_word(key, at->at, at->tick, u - g->first), v[u]);
}

static void disturb_outputs(const Program *p, const Group *g, const Span *s, const Place *at, double *out)
{
	disturb(p, g, s, NOISE_AT_OUTPUT, at, out);
	disturb(p, g, s, NOISE_AT_DROPOUT, at, out);
}

void ref_begin(Program *p, bool noisy, uint64_t update)
{
	const Net *net = p->net;

	p->noisy = noisy;
	p->update = update;
	p->used = noisy && p->disturbed ? p->disturbed : p->w;
	if (p->used == p->w)
		return;
	uint64_t key = noise_key(p->opt, update, NOISE_AT_WEIGHT, 0);
	for (Unit u = 0; u < net->units; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			const Noise *n = &net_block(net, u, i)->noise;
			p->disturbed[i] = p->w[i];
			if (n->kind)
				p->disturbed[i] = noise_apply(n, noise_weight_word(key, net->tie ? net->tie[i] : i), p->w[i]);
		}
}

/* ---- forward ---- */

static void take_inputs(Program *p, const Place *at, double *out)
{
	const float *x = p->x;

	data_x(p->data, at->at, p->x);
	if (at->tick >= p->ticks.inputs_end)
		memset(p->x, 0, p->net->inputs * sizeof *p->x);
	out[0] = 1; /* the true unit */
	for (uint32_t k = 0; k < p->net->groups; k++) {
		const Group *g = &p->net->group[k];
		for (uint32_t j = 0; g->role == ROLE_INPUT && j < g->size; j++)
			out[g->first + j] = *x++;
		if (p->noisy && g->role == ROLE_INPUT)
			disturb_outputs(p, g, &(Span){ .first = g->first, .count = g->size }, at, out);
	}
}

/* before: the outputs of the case before, NULL at the start of a sequence. */
static void take_contexts(const Net *net, const double *before, double *out)
{
	for (uint32_t k = 0; k < net->copies; k++) {
		const Group *from = &net->group[net->copy[k].from_group], *to = &net->group[net->copy[k].to_group];
		for (uint32_t j = 0; j < to->size; j++)
			out[to->first + j] = before ? before[from->first + j] : to->exact_start;
	}
}

static double weighted_sum(const Program *p, Unit u, const double *out)
{
	const Net *net = p->net;
	double sum = 0;

	for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++)
		sum += p->used[i] * out[net_source(net, u, i)];
	return sum;
}

/* Subtracting the largest sum does not change the result, but keeps the powers finite. */
static void softmax(const Span *s, const double *in, double *out)
{
	double largest = in[s->first], total = 0;

	for (Unit u = s->first; u < s->first + s->count; u++)
		largest = in[u] > largest ? in[u] : largest;
	for (Unit u = s->first; u < s->first + s->count; u++)
		total += out[u] = unit_fns[FN_SOFTMAX].value(in[u] - largest);
	for (Unit u = s->first; u < s->first + s->count; u++)
		out[u] /= total;
}

/* v moves from its value of the step before towards its new one, by dt. */
static void integrate(const Program *p, const Span *s, uint64_t t, const double *before, double start, double *v)
{
	double dt = group_dt(s->group, p->opt), *raw = p->raw + t * p->net->units;

	for (Unit u = s->first; u < s->first + s->count; u++) {
		double last = t ? before[u] : start;
		raw[u] = v[u];
		v[u] = last + dt * (raw[u] - last);
	}
}

/* Outputs of step t before their noise. */
static double *clean_at(const Program *p, uint64_t t) { return (p->noisy ? p->clean : p->out) + t * p->net->units; }

/* Weighted sums, or errors with respect to them. */
static void amplify(const Span *s, double *v)
{
	for (Unit u = s->first; s->group->gain != 1 && u < s->first + s->count; u++)
		v[u] *= s->group->gain;
}

static void forward_span(const Program *p, const Span *s, uint64_t t, double *in, double *out)
{
	const Group *g = s->group;
	size_t units = p->net->units;
	double *clean = clean_at(p, t);

	for (Unit u = s->first; u < s->first + s->count; u++)
		in[u] = weighted_sum(p, u, out);
	if (p->noisy)
		disturb(p, g, s, NOISE_AT_NET, &p->place[t], in);
	amplify(s, in);
	if (g->integrate == INTEGRATE_INPUT)
		integrate(p, s, t, t ? in - units : NULL, 0, in);
	if (g->fn == FN_SOFTMAX)
		softmax(s, in, out);
	else
		for (Unit u = s->first; u < s->first + s->count; u++)
			out[u] = unit_fns[g->fn].value(in[u]);
	if (g->integrate == INTEGRATE_OUTPUT)
		integrate(p, s, t, t ? clean - units : NULL, g->exact_start, out);
	if (!p->noisy)
		return;
	memcpy(clean + s->first, out + s->first, s->count * sizeof *clean);
	disturb_outputs(p, g, s, &p->place[t], out);
}

void ref_forward(Program *p, uint64_t t)
{
	const Plan *plan = p->plan;
	size_t units = p->net->units;
	double *in = p->in + t * units, *out = p->out + t * units;

	take_inputs(p, &p->place[t], out);
	take_contexts(p->net, t ? out - units : NULL, out);
	for (uint32_t k = 0; k < plan->levels; k++)
		for (uint32_t j = 0; j < plan->level[k].spans; j++)
			forward_span(p, &plan->span[plan->level[k].span + j], t, in, out);
}

static void take_outputs(const Net *net, const double *out, double *o)
{
	for (uint32_t k = 0; k < net->groups; k++) {
		const Group *g = &net->group[k];
		for (uint32_t j = 0; g->role == ROLE_OUTPUT && j < g->size; j++)
			*o++ = out[g->first + j];
	}
}

static void take_logs(const Net *net, const double *in, const double *out, Logs *logs)
{
	for (uint32_t k = 0; k < net->groups; k++) {
		const Group *g = &net->group[k];
		if (g->role != ROLE_OUTPUT)
			continue;
		group_logs(g->integrate == INTEGRATE_OUTPUT ? FN_GAUSSIAN : g->fn, g->size, in + g->first, out + g->first,
		           logs);
		logs += g->size;
	}
}

static double case_weight(const Data *d, uint64_t i) { return d->weight ? d->weight[i] : 1; }

/* NaN at ticks before those that have targets. */
static void take_targets(Program *p, const Place *at)
{
	data_y(p->data, at->at, p->y);
	for (uint32_t j = 0; at->tick < p->ticks.targets_from && j < p->net->outputs; j++)
		p->y[j] = NAN;
}

void ref_score(Program *p, uint64_t t, Tally *tally)
{
	const Place *at = &p->place[t];
	Tally own = { 0 }; /* of a tick before the last: only its error counts */

	take_outputs(p->net, p->out + t * p->net->units, p->o);
	if (p->data->targets)
		take_targets(p, at);
	if (p->by_logs)
		take_logs(p->net, p->in + t * p->net->units, p->out + t * p->net->units, p->logs);
	score_case(&p->scorer, p->o, p->by_logs ? p->logs : NULL, p->y, case_weight(p->data, at->at),
	           at->last ? tally : &own);
	tally->error += own.error;
}

/* ---- backward ---- */

/* An output group: the slope of the error goes into err; where it cancels the slope of the unit function, what is
 * left, output minus target (softmax: output times the sum of all targets, minus target), goes straight into delta. */
static void output_slopes(Program *p, const Group *g, const float *y, double weight, const double *out, double *delta)
{
	const ErrorFn *e = &error_fns[group_error(g, p->opt->error)];
	bool matched = e->matched == g->fn && g->integrate != INTEGRATE_OUTPUT && !is_noisy(p, g, NOISE_AT_OUTPUT) &&
	               !is_noisy(p, g, NOISE_AT_DROPOUT);
	bool radius = group_has_radius(g);
	double total = 0;

	weight *= g->error_scale;
	for (uint32_t j = 0; j < g->size; j++) {
		double near = radius ? target_near(g, out[g->first + j], y[j]) : y[j];
		total += isnan(near) ? 0 : near;
	}
	for (uint32_t j = 0; j < g->size; j++) {
		Unit u = g->first + j;
		double near = radius ? target_near(g, out[u], y[j]) : y[j];
		if (matched && g->fn == FN_SOFTMAX)
			delta[u] = weight * (out[u] * total - (isnan(near) ? 0 : near));
		else if (matched && !isnan(near))
			delta[u] = weight * (out[u] - near);
		else if (!isnan(near))
			p->err[u] += weight * e->slope(out[u], near);
	}
}

static void output_errors(Program *p, const Place *at, const double *out, double *delta)
{
	const float *y = p->y;

	take_targets(p, at);
	for (uint32_t k = 0; k < p->net->groups; k++) {
		const Group *g = &p->net->group[k];
		if (g->role != ROLE_OUTPUT)
			continue;
		output_slopes(p, g, y, case_weight(p->data, at->at), out, delta);
		y += g->size;
	}
}

/* Errors of context units of the next case go to their sources. */
static void errors_from_after(Program *p)
{
	const Net *net = p->net;

	for (uint32_t k = 0; k < net->copies; k++) {
		const Group *from = &net->group[net->copy[k].from_group], *to = &net->group[net->copy[k].to_group];
		for (uint32_t j = 0; j < to->size; j++)
			p->err[from->first + j] += p->err_after[to->first + j];
	}
}

static void softmax_deltas(const Span *s, const double *err, const double *out, double *delta)
{
	double mean = 0;

	for (Unit u = s->first; u < s->first + s->count; u++)
		mean += out[u] * err[u];
	for (Unit u = s->first; u < s->first + s->count; u++)
		delta[u] += out[u] * (err[u] - mean);
}

/* v: the errors of what a group integrates.  A share of them comes from the new value, the rest from the one before. */
static void integrate_back(Program *p, const Span *s, bool carried, double *v)
{
	double dt = group_dt(s->group, p->opt);

	for (Unit u = s->first; u < s->first + s->count; u++) {
		p->held[u] = v[u] + (carried ? (1 - dt) * p->held_after[u] : 0);
		v[u] = dt * p->held[u];
	}
}

/* carried: errors of the step after are added to those of this one. */
static void backward_span(Program *p, const Span *s, uint64_t t, bool carried)
{
	const Net *net = p->net;
	const Group *g = s->group;
	int fn = g->fn;
	double offset = fn == FN_SIGMOID ? p->opt->prime_offset : 0;
	const double *in = p->in + t * net->units;
	const double *out = g->integrate == INTEGRATE_OUTPUT ? p->raw + t * net->units : clean_at(p, t);
	double *delta = p->delta + t * net->units;

	if (p->noisy)
		disturb(p, g, s, NOISE_AT_DROPOUT, &p->place[t], p->err);
	if (g->integrate == INTEGRATE_OUTPUT)
		integrate_back(p, s, carried, p->err);
	if (fn == FN_SOFTMAX)
		softmax_deltas(s, p->err, out, delta);
	else
		for (Unit u = s->first; u < s->first + s->count; u++)
			delta[u] += p->err[u] * (unit_fns[fn].slope(in[u], out[u]) + offset);
	if (g->integrate == INTEGRATE_INPUT)
		integrate_back(p, s, carried, delta);
	amplify(s, delta);
	for (Unit u = s->first; u < s->first + s->count; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++)
			p->err[net_source(net, u, i)] += p->used[i] * delta[u];
}

static void swap(double **a, double **b)
{
	double *other = *a;

	*a = *b;
	*b = other;
}

/* Step t of an example of `steps`. */
static void backward(Program *p, uint64_t t, uint64_t steps)
{
	const Plan *plan = p->plan;
	size_t units = p->net->units;
	const double *out = p->out + t * units;
	double *delta = p->delta + t * units;
	bool carried = t + 1 < steps && ticks_carry(&p->ticks, t);

	swap(&p->err, &p->err_after);
	swap(&p->held, &p->held_after);
	memset(p->err, 0, units * sizeof *p->err);
	memset(delta, 0, units * sizeof *delta);
	if (carried)
		errors_from_after(p);
	output_errors(p, &p->place[t], out, delta);
	for (uint32_t k = plan->levels; k-- > 0;)
		for (uint32_t j = 0; j < plan->level[k].spans; j++)
			backward_span(p, &plan->span[plan->level[k].span + j], t, carried);
}

static void collect(Program *p, uint64_t t, double *sum)
{
	const Net *net = p->net;
	const double *out = p->out + t * net->units, *delta = p->delta + t * net->units;

	for (Unit u = 0; u < net->units; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++)
			sum[i] += delta[u] * out[net_source(net, u, i)];
}

void ref_learn(Program *p, uint64_t steps, double *sum, Tally *tally)
{
	for (uint64_t t = 0; t < steps; t++) {
		ref_forward(p, t);
		ref_score(p, t, tally);
	}
	for (uint64_t t = steps; t-- > 0;)
		backward(p, t, steps);
	for (uint64_t t = 0; t < steps; t++)
		collect(p, t, sum);
}
