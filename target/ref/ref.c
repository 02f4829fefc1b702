/* SPDX-License-Identifier: MIT */
/* ref: the oracle.  Evaluates the network directly, in double precision, one case after the other.
 *
 * In: a Plan, of which only the order of units is used, options and data.  Out: errors, gradients, weights.
 * Nothing here is done for speed: it is the specification of all targets, and shares no code with any.
 *
 * One example is a sequence of cases, most often of one.  It goes forward over all its cases, keeping what every
 * unit was at each; then backward from the last case to the first, which leaves a delta for every unit at each; then
 * each weight collects delta times source output, over the cases in order.  With `bptt copy` nothing flows back
 * through a copy.  With `bptt full` what a context unit would like to be changed by is added to the error of its
 * source one case earlier; with `bptt N`, if both are in the same block of N steps.
 *
 * A settling network takes several steps for each case: its ticks.  Errors of all ticks count; whether a case is right,
 * and its outputs, are those of its last tick.
 *
 * Noise disturbs inputs, weighted sums, outputs and weights in training, and in tests if option noise says so.  Slopes
 * are those of the outputs before their noise.  Tied links have one weight: their gradients are added to that of the
 * link they are tied to, in the order of links, and all get the sum. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "monitor.h"

extern const Target target_ref;

enum { TILE = 64, MAX_SUMS = 16 }; /* links of an update at a time; sums: at most 2 + log2(MAX_LEAVES) */

typedef struct Place { /* of a step */
	uint64_t at;       /* case */
	uint32_t tick;     /* of the case */
	bool last;         /* of its ticks */
} Place;

struct Program {
	const Net *net;
	const Plan *plan;
	const Options *opt; /* the run's own: some may change during a run */
	const Rule *rule;
	Formula formula;
	double *w;                /* [links] */
	const double *used;       /* w, or in passes with noise of weights: */
	double *disturbed;        /* [links] NULL: there is no such noise */
	double *state[MAX_STATE]; /* [links] each */
	uint8_t *frozen;          /* [links] */
	uint8_t *uncounted;       /* [links] frozen, or tied: not part of the length of a gradient */

	const Data *data; /* bound */
	Span watched;     /* units whose activations evaluate gives; count 0: outputs */
	uint32_t watched_tick;
	Tally *watched_cases; /* NULL: evaluate does not give tallies of cases */
	Scorer scorer;
	float *x, *y; /* one case of the data */
	double *o;    /* its outputs, side by side, */
	Logs *logs;   /* and their logarithms, */
	bool by_logs; /* if an error is made of them */

	/* One example: a row of units for each step, which is a case or a tick of it. */
	TickPlan ticks;
	uint64_t steps;            /* capacity */
	Place *place;              /* [steps] */
	double *in, *out, *delta;  /* weighted sum, output, error with respect to the weighted sum */
	double *raw;               /* groups that integrate: the sum, or the output, that they move towards */
	double *clean;             /* outputs before their noise */
	bool noisy;                /* this pass has noise, */
	uint64_t update;           /* after so many updates */
	double *err, *err_after;   /* error with respect to the output: of this step and of the next one */
	double *held, *held_after; /* groups that integrate: with respect to what they integrate */

	/* Sums of gradients, a stack: at the bottom earlier batches, above them subtrees of this one. */
	double *sum[MAX_SUMS];       /* [links] each */
	uint32_t sums, depth, below; /* how many there are, in use, and in use before the batch began */
	double value[MAX_OPS][TILE]; /* of an update's formula */
};

static void ref_caps(Caps *caps) { *caps = (Caps){ .target = "ref", .lanes = 1, .bundle = 0 }; }

static Program *ref_compile(Ctx *cx, const Plan *plan, const Options *opt)
{
	const Net *net = plan->net;
	Program *p = NEW(&cx->keep, 1, Program);

	p->net = net;
	p->plan = plan;
	p->opt = opt;
	p->rule = &rules[opt->rule];
	formula_parse(cx, p->rule, &p->formula);
	p->w = NEW(&cx->keep, net->links, double);
	p->used = p->w;
	for (uint32_t i = 0; i < net->blocks; i++)
		if (net->block[i].noise.kind && !p->disturbed)
			p->disturbed = NEW(&cx->keep, net->links, double);
	p->frozen = NEW(&cx->keep, net->links, uint8_t);
	p->uncounted = NEW(&cx->keep, net->links, uint8_t);
	for (int k = 0; k < p->rule->states; k++)
		p->state[k] = NEW(&cx->keep, net->links, double);
	for (Unit u = 0; u < net->units; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			const Block *b = net_block(net, u, i);
			p->frozen[i] = b->frozen;
			p->uncounted[i] = b->frozen || (net->tie && net->tie[i] != i);
			for (int k = 0; k < p->rule->states; k++)
				p->state[k][i] = rule_start(p->rule, k, opt, b->exact_rate);
		}
	p->x = NEW(&cx->keep, net->inputs, float);
	p->y = NEW(&cx->keep, net->outputs, float);
	p->o = NEW(&cx->keep, net->outputs, double);
	p->logs = NEW(&cx->keep, net->outputs, Logs);
	p->err = NEW(&cx->keep, net->units, double);
	p->err_after = NEW(&cx->keep, net->units, double);
	p->held = NEW(&cx->keep, net->units, double);
	p->held_after = NEW(&cx->keep, net->units, double);
	p->ticks = ticks_make(net, opt);
	return p;
}

/* ---- printing ---- */

static void print_span(const Net *net, const Span *s, Buf *out)
{
	const Group *g = s->group;
	uint32_t first = s->first - g->first;
	uint64_t links = net->row[s->first + s->count] - net->row[s->first];

	buf_printf(out, "\t%s[%u:%u]  %s of %llu links\n", g->name, first, first + s->count - 1, unit_fns[g->fn].name,
	           (unsigned long long)links);
}

static void ref_print(const Program *p, Buf *out)
{
	const Net *net = p->net;
	const Plan *plan = p->plan;

	buf_printf(out, "program ref: the network itself, in double precision, one case after the other\n");
	if (net->settles)
		buf_printf(out, "each case in %u ticks\n", p->ticks.each);
	buf_printf(out, "forward\n");
	for (uint32_t i = 0; i < net->copies; i++)
		buf_printf(out, "\t%s = %s of the %s before\n", net->group[net->copy[i].to_group].name,
		           net->group[net->copy[i].from_group].name, net->settles ? "tick" : "case");
	for (uint32_t i = 0; i < plan->levels; i++)
		for (uint32_t k = 0; k < plan->level[i].spans; k++)
			print_span(net, &plan->span[plan->level[i].span + k], out);
	buf_printf(out, "backward\n\terror %s, the same in reverse%s\n", error_fns[p->opt->error].name,
	           !net->timed                 ? ""
	           : p->opt->bptt != BPTT_COPY ? ", back through time"
	                                       : ", truncated at the copy");
	if (p->opt->bptt > BPTT_COPY)
		buf_printf(out, "\tin blocks of %lld steps\n", (long long)p->opt->bptt);
	buf_printf(out, "update %s, for each of %llu links\n", p->rule->name, (unsigned long long)net->links);
	formula_print(p->rule, &p->formula, out);
}

/* ---- data ---- */

/* The cases of an example.  A network that remembers, and data without boundaries: all cases are one sequence. */
static void example_cases(const Program *p, const Data *d, uint64_t example, uint64_t *first, uint64_t *count)
{
	if (p->net->copies && !p->net->settles && !d->seq) {
		*first = 0;
		*count = d->cases;
	} else {
		data_example(d, example, first, count);
	}
}

static uint64_t longest_example(const Program *p, const Data *d, uint64_t examples)
{
	uint64_t longest = 0, first, count;

	for (uint64_t e = 0; e < examples; e++) {
		example_cases(p, d, e, &first, &count);
		count = ticks_example(&p->ticks, d, first, count);
		longest = count > longest ? count : longest;
	}
	return longest;
}

static uint32_t sums_needed(uint64_t examples)
{
	uint32_t leaves = leaf_count(examples), sums = 2;

	for (uint32_t n = 1; n < leaves; n *= 2)
		sums++;
	assert(sums <= MAX_SUMS);
	return sums;
}

static void ref_bind(Ctx *cx, Program *p, const Data *data)
{
	p->ticks = ticks_make(p->net, p->opt);
	uint64_t examples = run_examples(p->net, data), steps = longest_example(p, data, examples);
	size_t units = p->net->units;

	if (steps > p->steps) {
		p->place = arena_grow(&cx->keep, p->place, p->steps, steps, sizeof *p->place);
		p->in = arena_grow(&cx->keep, p->in, p->steps * units, steps * units, sizeof(double));
		p->out = arena_grow(&cx->keep, p->out, p->steps * units, steps * units, sizeof(double));
		p->raw = arena_grow(&cx->keep, p->raw, p->steps * units, steps * units, sizeof(double));
		p->clean = arena_grow(&cx->keep, p->clean, p->steps * units, steps * units, sizeof(double));
		p->delta = arena_grow(&cx->keep, p->delta, p->steps * units, steps * units, sizeof(double));
		p->steps = steps;
	}
	for (uint32_t need = sums_needed(examples); p->sums < need; p->sums++)
		p->sum[p->sums] = NEW(&cx->keep, p->net->links, double);
	p->data = data;
	scorer_init(&p->scorer, p->opt, data);
	scorer_shape(&p->scorer, p->net);
	p->by_logs = false;
	for (const Group *g = p->net->group; g < p->net->group + p->net->groups; g++)
		p->by_logs |= g->role == ROLE_OUTPUT && error_fns[group_error(g, p->opt->error)].from_logs;
}

/* Fills the places of an example's steps; returns how many these are. */
static uint64_t take_places(Program *p, uint64_t example)
{
	uint64_t first, count, steps = 0;

	example_cases(p, p->data, example, &first, &count);
	for (uint64_t i = first; i < first + count; i++) {
		uint32_t ticks = ticks_case(&p->ticks, p->data, i);
		for (uint32_t k = 0; k < ticks; k++)
			p->place[steps++] = (Place){ i, k, k + 1 == ticks };
	}
	return steps;
}

/* ---- noise ---- */

static bool is_noisy(const Program *p, const Group *g, int place) { return p->noisy && g->noise[place].kind; }

/* Values of some units of a group, v[u] of unit u. */
static void disturb(const Program *p, const Group *g, const Span *s, int place, const Place *at, double *v)
{
	uint64_t key = noise_key(p->opt, p->update, place, (uint32_t)(g - p->net->group));

	for (Unit u = s->first; is_noisy(p, g, place) && u < s->first + s->count; u++)
		v[u] = noise_apply(&g->noise[place], noise_word(key, at->at, at->tick, u - g->first), v[u]);
}

static void disturb_outputs(const Program *p, const Group *g, const Span *s, const Place *at, double *out)
{
	disturb(p, g, s, NOISE_AT_OUTPUT, at, out);
	disturb(p, g, s, NOISE_AT_DROPOUT, at, out);
}

/* Weights of a pass, the same for all its cases. */
static void begin_pass(Program *p, bool noisy, uint64_t update)
{
	const Net *net = p->net;
	uint64_t key = noise_key(p->opt, update, NOISE_AT_WEIGHT, 0);

	p->noisy = noisy;
	p->update = update;
	p->used = noisy && p->disturbed ? p->disturbed : p->w;
	for (Unit u = 0; p->used != p->w && u < net->units; u++)
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
		if (g->role == ROLE_INPUT)
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

static void forward_span(const Program *p, const Span *s, uint64_t t, double *in, double *out)
{
	const Group *g = s->group;
	size_t units = p->net->units;
	double *clean = p->clean + t * units;

	for (Unit u = s->first; u < s->first + s->count; u++)
		in[u] = weighted_sum(p, u, out);
	disturb(p, g, s, NOISE_AT_NET, &p->place[t], in);
	for (Unit u = s->first; u < s->first + s->count; u++)
		in[u] *= g->gain;
	if (g->integrate == INTEGRATE_INPUT)
		integrate(p, s, t, t ? in - units : NULL, 0, in);
	if (g->fn == FN_SOFTMAX)
		softmax(s, in, out);
	else
		for (Unit u = s->first; u < s->first + s->count; u++)
			out[u] = unit_fns[g->fn].value(in[u]);
	if (g->integrate == INTEGRATE_OUTPUT)
		integrate(p, s, t, t ? clean - units : NULL, g->exact_start, out);
	memcpy(clean + s->first, out + s->first, s->count * sizeof *clean);
	disturb_outputs(p, g, s, &p->place[t], out);
}

/* Step t of an example. */
static void forward(Program *p, uint64_t t)
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

static void score(Program *p, uint64_t t, Tally *tally)
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
	double total = 0;

	weight *= g->error_scale;
	for (uint32_t j = 0; j < g->size; j++) {
		double near = group_has_radius(g) ? target_near(g, out[g->first + j], y[j]) : y[j];
		total += isnan(near) ? 0 : near;
	}
	for (uint32_t j = 0; j < g->size; j++) {
		Unit u = g->first + j;
		double near = group_has_radius(g) ? target_near(g, out[u], y[j]) : y[j];
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
	const double *out = (g->integrate == INTEGRATE_OUTPUT ? p->raw : p->clean) + t * net->units;
	double *delta = p->delta + t * net->units;

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
	for (Unit u = s->first; u < s->first + s->count; u++)
		delta[u] *= g->gain;
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

static void learn_example(Program *p, uint64_t example, double *sum, Tally *tally)
{
	uint64_t steps = take_places(p, example);

	for (uint64_t t = 0; t < steps; t++) {
		forward(p, t);
		score(p, t, tally);
	}
	for (uint64_t t = steps; t-- > 0;)
		backward(p, t, steps);
	for (uint64_t t = 0; t < steps; t++)
		collect(p, t, sum);
}

/* ---- batches ---- */

/* Topmost sum onto the one below it. */
static void join(Program *p)
{
	const double *top = p->sum[p->depth - 1];
	double *into = p->sum[p->depth - 2];

	for (uint64_t i = 0; i < p->net->links; i++)
		into[i] += top[i];
	p->depth--;
}

static double *push_empty(Program *p)
{
	assert(p->depth < p->sums);
	return memset(p->sum[p->depth++], 0, p->net->links * sizeof(double));
}

/* Joins due after a leaf; the tally of a call that starts at a later leaf has fewer parts than the batch has sums. */
static void tally_join(Tally *part, uint32_t *depth, uint32_t joins)
{
	for (; joins && *depth > 1; joins--, --*depth)
		tally_add(&part[*depth - 2], &part[*depth - 1]);
}

/* Leaves come in order, from 0; a batch may come in several calls. */
static Status ref_accumulate(Program *p, const Batch *b, uint32_t first, uint32_t last, const StopFlag *stop, Tally *t)
{
	uint32_t leaves = leaf_count(b->count), depth = 0;
	Tally part[MAX_SUMS];
	uint64_t begin, count;

	if (first == 0)
		p->below = p->depth;
	begin_pass(p, true, b->update);
	for (uint32_t leaf = first; leaf < last; leaf++) {
		double *sum = push_empty(p);
		part[depth++] = (Tally){ 0 };
		leaf_range(b->count, leaves, leaf, &begin, &count);
		for (uint64_t i = begin; i < begin + count; i++) {
			if (*stop) {
				p->depth = 0;
				return MP_STOPPED;
			}
			learn_example(p, b->example ? b->example[i] : b->first + i, sum, &part[depth - 1]);
		}
		uint32_t joins = leaf_joins(leaf, leaves);
		tally_join(part, &depth, joins);
		for (; joins; joins--)
			join(p);
	}
	if (last == leaves && p->below)
		join(p);
	while (depth)
		tally_add(t, &part[--depth]);
	return MP_OK;
}

static uint32_t result_count(const Program *p) { return p->watched.count ? p->watched.count : p->net->outputs; }

/* Outputs, or what is watched, of step t. */
static void take_result(const Program *p, uint64_t t, double *out)
{
	const double *from = p->watched.count ? p->out + t * p->net->units + p->watched.first : p->o;

	memcpy(out, from, result_count(p) * sizeof *out);
}

static void ref_watch(Program *p, Span units, uint32_t tick)
{
	p->watched = units;
	p->watched_tick = tick;
}

static void ref_watch_cases(Program *p, Tally *tally) { p->watched_cases = tally; }

static bool gives_result(const Program *p, const Place *at)
{
	return p->watched.count && p->watched_tick != LAST_TICK ? at->tick == p->watched_tick : at->last;
}

/* Returns the place for the next outputs, if they are wanted. */
static double *test_example(Program *p, uint64_t example, double *out, Tally *tally)
{
	uint64_t steps = take_places(p, example);

	for (uint64_t t = 0; t < steps; t++) {
		forward(p, t);
		score(p, t, tally);
		if (p->watched_cases)
			score(p, t, &p->watched_cases[p->place[t].at]);
		if (out && gives_result(p, &p->place[t]))
			take_result(p, t, out);
		if (out && p->place[t].last)
			out += result_count(p);
	}
	return out;
}

static Status ref_evaluate(Program *p, uint64_t first, uint64_t count, const StopFlag *stop, double *out, Tally *t)
{
	uint32_t leaves = leaf_count(count), depth = 0;
	Tally part[MAX_SUMS];
	uint64_t begin, size;

	begin_pass(p, p->opt->noise, NO_UPDATE);
	for (uint32_t leaf = 0; leaf < leaves; leaf++) {
		part[depth++] = (Tally){ 0 };
		leaf_range(count, leaves, leaf, &begin, &size);
		for (uint64_t i = begin; i < begin + size; i++) {
			if (*stop)
				return MP_STOPPED;
			out = test_example(p, first + i, out, &part[depth - 1]);
		}
		tally_join(part, &depth, leaf_joins(leaf, leaves));
	}
	while (depth)
		tally_add(t, &part[--depth]);
	return MP_OK;
}

/* ---- updates ---- */

/* The rate times the factor of each link's block, or the decay: the block's own, if it has one. */
static void link_params(const Net *net, int which, double number, uint64_t first, uint32_t n, double *v)
{
	Unit u = net_target(net, first);

	for (uint64_t i = first; i < first + n; i++) {
		while (i >= net->row[u + 1])
			u++;
		const Block *b = net_block(net, u, i);
		v[i - first] = which == P_RATE ? number * b->exact_rate : b->decay < 0 ? number : b->decay;
	}
}

/* Weights outside the limits of their blocks are set to these; what a rule remembers as its last step becomes the step
 * that was made. */
static void limit_weights(Program *p)
{
	const Net *net = p->net;

	for (Unit u = 0; u < net->units; u++)
		for (uint64_t i = net->row[u]; i < net->row[u + 1]; i++) {
			const Block *b = net_block(net, u, i);
			double within = fmin(fmax(p->w[i], b->limit[0]), b->limit[1]);
			if (within == p->w[i] || p->frozen[i])
				continue;
			for (int k = 0; k < p->rule->states; k++)
				if (strcmp(p->rule->state[k], "step") == 0)
					p->state[k][i] += within - p->w[i];
			p->w[i] = within;
		}
}

static void tie_gradients(Program *p)
{
	const uint64_t *tie = p->net->tie;

	for (uint64_t i = 0; tie && i < p->net->links; i++)
		if (tie[i] != i)
			p->sum[0][tie[i]] += p->sum[0][i];
	for (uint64_t i = 0; tie && i < p->net->links; i++)
		p->sum[0][i] = p->sum[0][tie[i]];
}

/* One op of the formula for links first .. first + n - 1. */
static void update_op(Program *p, uint32_t i, const double *param, uint64_t first, uint32_t n)
{
	const Op *o = &p->formula.op[i];
	double *v = p->value[i];
	const double *a = p->value[o->a], *b = p->value[o->b], *c = p->value[o->c];
	double *const variable[] = { p->sum[0], p->w, p->state[0], p->state[1], p->state[2] };

#define EACH(expression)             \
	for (uint32_t j = 0; j < n; j++) \
		v[j] = expression;           \
	break
	switch (o->op) {
	case OP_CONST: EACH(o->value);
	case OP_PARAM:
		if (o->a == P_RATE || o->a == P_DECAY) {
			link_params(p->net, o->a, param[o->a], first, n, v);
			break;
		}
		EACH(param[o->a]);
	case OP_LOAD: EACH(variable[o->a][first + j]);
	case OP_ADD: EACH(a[j] + b[j]);
	case OP_SUB: EACH(a[j] - b[j]);
	case OP_MUL: EACH(a[j] * b[j]);
	case OP_DIV: EACH(a[j] / b[j]);
	case OP_FMA: EACH(fma(a[j], b[j], c[j]));
	case OP_NEG: EACH(-a[j]);
	case OP_ABS: EACH(fabs(a[j]));
	case OP_SQRT: EACH(sqrt(a[j]));
	case OP_MIN: EACH(a[j] < b[j] ? a[j] : b[j]);
	case OP_MAX: EACH(a[j] > b[j] ? a[j] : b[j]);
	case OP_LT: EACH(a[j] < b[j]);
	case OP_LE: EACH(a[j] <= b[j]);
	case OP_SELECT: EACH(a[j] != 0 ? b[j] : c[j]);
	case OP_STORE:
		for (uint32_t j = 0; j < n; j++)
			if (!p->frozen[first + j])
				variable[o->a][first + j] = b[j];
	}
#undef EACH
}

static void ref_apply(Program *p, const Update *u)
{
	uint64_t links = p->net->links;
	double param[P_COUNT];

	if (!p->depth)
		return;
	assert(p->depth == 1 && u->rule == p->rule);
	memcpy(param, u->param, sizeof param);
	tie_gradients(p);
	if (p->rule->needs_norm)
		param[P_CLIP] = 1 / fmax(1, rule_norm(p->sum[0], p->uncounted, links));
	for (uint64_t first = 0; first < links; first += TILE)
		for (uint32_t i = 0; i < p->formula.ops; i++)
			update_op(p, i, param, first, links - first < TILE ? (uint32_t)(links - first) : TILE);
	if (p->net->shaped)
		limit_weights(p);
	p->depth = 0;
}

static void ref_get(const Program *p, int which, uint64_t first, uint64_t count, double *v)
{
	memcpy(v, (which ? p->state[which - 1] : p->w) + first, net_chunk(p->net, first, count) * sizeof *v);
}

static void ref_set(Program *p, int which, uint64_t first, uint64_t count, const double *v)
{
	memcpy((which ? p->state[which - 1] : p->w) + first, v, net_chunk(p->net, first, count) * sizeof *v);
}

static void ref_gradient(const Program *p, double *v)
{
	memset(v, 0, p->net->links * sizeof *v);
	for (uint32_t k = p->depth; k-- > 0;)
		for (uint64_t i = 0; i < p->net->links; i++)
			v[i] += p->sum[k][i];
}

static uint32_t ref_regions(Program *p, Region *r)
{
	uint32_t n = 0;

	r[n++] = (Region){ "weights", p->w, p->net->links * sizeof *p->w };
	for (int k = 0; k < p->rule->states; k++)
		r[n++] = (Region){ p->rule->state[k], p->state[k], p->net->links * sizeof *p->state[k] };
	return n;
}

static void ref_attach(Program *p, Monitor *w)
{
	(void)w;
	p->depth = 0;
}

static const GuardHooks guard_hooks = { .regions = ref_regions, .attach = ref_attach };

static const WatchHooks ref_watches = { .units = ref_watch, .cases = ref_watch_cases };

const Target target_ref = {
	.name = "ref",
	.about = "double precision, evaluates the network directly: the oracle",
	.f64 = true,
	.caps = ref_caps,
	.compile = ref_compile,
	.print = ref_print,
	.bind = ref_bind,
	.accumulate = ref_accumulate,
	.apply = ref_apply,
	.evaluate = ref_evaluate,
	.watch = &ref_watches,
	.get = ref_get,
	.set = ref_set,
	.gradient = ref_gradient,
	.guard = &guard_hooks,
};
