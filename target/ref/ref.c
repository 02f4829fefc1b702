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

#include "ref.h"

extern const Target target_ref;

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

static void ref_print(Ctx *cx, Program *p, const Data *data, Buf *out)
{
	(void)cx;
	(void)data;
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
	ref_begin(p, true, b->update);
	for (uint32_t leaf = first; leaf < last; leaf++) {
		double *sum = push_empty(p);
		part[depth++] = (Tally){ 0 };
		leaf_range(b->count, leaves, leaf, &begin, &count);
		for (uint64_t i = begin; i < begin + count; i++) {
			if (*stop) {
				p->depth = 0;
				return MP_STOPPED;
			}
			ref_learn(p, take_places(p, b->example ? b->example[i] : b->first + i), sum, &part[depth - 1]);
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
		ref_forward(p, t);
		ref_score(p, t, tally);
		if (p->watched_cases)
			ref_score(p, t, &p->watched_cases[p->place[t].at]);
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

	ref_begin(p, p->opt->noise, NO_UPDATE);
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
