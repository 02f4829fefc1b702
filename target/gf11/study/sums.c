/* SPDX-License-Identifier: MIT */
/* microprop gf11 sums. In: networks, numbers of processors. Out: what an update costs by each way of summing,
 * cycles for each weight; which way is best; and from how many processors on (sections 4.4 and 10.2).
 *
 * The cost of an update is its cycles and the host's time for its calls: nothing else of an epoch depends on the
 * way of summing. A way that falls back to another for want of weights has no cost of its own. */
#include <inttypes.h>
#include <math.h>

#include "gf11_study.h"

enum { CASES_EACH = 24 }; /* of a processor, as NETtalk has on 512 */

/* pipelined/1 has one word of each processor on its way, as section 10.2 tells it; pipelined has as many side by
 * side as hide the latency of switch and adder. */
const SumMethod sum_methods[SUM_METHODS] = {
	{ "ring", SUM_RING, 0 },
	{ "tree", SUM_TREE, 0 },
	{ "pipelined", SUM_PIPELINED, 0 },
	{ "halving", SUM_HALVING, 0 },
	{ "pipelined/1", SUM_PIPELINED, 1 },
};

/* ---- costs ---- */

static SumCost cost_of(const EpochSpec *s)
{
	double cycles = (double)(s->e.update + s->e.update_calls * (uint64_t)s->m->host_call);
	bool there = !s->why && s->e.sum == s->o.sum;
	return (SumCost){ there ? cycles : NAN, s->e.update, s->e.update_calls, s->e.total, s->why };
}

/* By all ways of `mask`, bit i for sum_methods[i]. */
static void costs_fill(const Call *c, const Plan *plan, int compiler, uint32_t procs, unsigned mask, SumCost *cost)
{
	EpochSpec s[SUM_METHODS];
	uint32_t count = 0, of[SUM_METHODS];
	for (uint32_t i = 0; i < SUM_METHODS; i++) {
		cost[i] = (SumCost){ .cycles = NAN };
		if (!(mask >> i & 1))
			continue;
		s[count] = epoch_spec(c, plan, (uint64_t)CASES_EACH * procs);
		s[count].o.compiler = compiler;
		s[count].o.procs = procs;
		s[count].o.sum = sum_methods[i].sum;
		s[count].o.update = sum_methods[i].update;
		of[count++] = i;
	}
	epochs_apart(c->cx, s, count);
	for (uint32_t i = 0; i < count; i++)
		cost[of[i]] = cost_of(&s[i]);
}

/* Over the switch, for each weight. */
static double sum_transfers(int sum, uint32_t procs)
{
	if (sum == SUM_PIPELINED || sum == SUM_HALVING)
		return 2.0 * (procs - 1) / procs;
	return sum_steps(sum, procs);
}

/* ---- from how many processors on ---- */

/* -1: a takes less; 1: b does; 0: neither, or one of them is not to be had. */
static int compare(const SumCost *cost, int a, int b)
{
	return cost[a].cycles < cost[b].cycles ? -1 : cost[a].cycles > cost[b].cycles ? 1 : 0;
}

/* The order changes between low and high: the first number of processors of the new order. */
static uint32_t bisect(const Call *c, const Plan *plan, int compiler, uint32_t low, uint32_t high, const SumPair *p,
                       int order)
{
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		SumCost cost[SUM_METHODS];
		costs_fill(c, plan, compiler, middle, 1u << p->a | 1u << p->b, cost);
		if (compare(cost, p->a, p->b) == order)
			low = middle;
		else
			high = middle;
	}
	return high;
}

static const SumPair pairs[] = {
	{ SUM_RING, SUM_TREE },
	{ SUM_TREE, SUM_PIPELINED },
	{ SUM_TREE, SUM_HALVING },
	{ SUM_PIPELINED, SUM_HALVING },
};

/* Few processors one by one, then twice as many each time. */
static uint32_t next_procs(uint32_t procs, uint32_t all)
{
	uint32_t next = procs < 8 ? procs + 1 : 2 * procs;
	return procs >= all ? 0 : next < all ? next : all;
}

/* The first order that there is counts as a crossing, too. */
uint32_t crossings_find(const Call *c, const Plan *plan, int compiler, Crossing *out)
{
	const uint32_t all = (uint32_t)c->m->processors;
	uint32_t count = 0, before[COUNT(pairs)] = { 0 };
	int order[COUNT(pairs)] = { 0 };
	for (uint32_t procs = 2; procs; procs = next_procs(procs, all)) {
		SumCost cost[SUM_METHODS];
		costs_fill(c, plan, compiler, procs, (1u << SUMS) - 1, cost);
		for (size_t i = 0; i < COUNT(pairs); i++) {
			const SumPair *p = &pairs[i];
			int now = compare(cost, p->a, p->b);
			if (now && now != order[i] && count < MOST_CROSSINGS) {
				uint32_t at = order[i] ? bisect(c, plan, compiler, before[i], procs, p, order[i]) : procs;
				out[count++] = (Crossing){ now < 0 ? p->a : p->b, now < 0 ? p->b : p->a, at };
			}
			order[i] = now ? now : order[i];
			before[i] = now ? procs : before[i];
		}
	}
	return count;
}

void crossings_json(const Call *c, const Crossing *x, uint32_t count)
{
	buf_puts(c->out, "[");
	for (uint32_t i = 0; i < count; i++)
		buf_printf(c->out, "%s{\"faster\": \"%s\", \"slower\": \"%s\", \"from\": %u}", i ? ", " : "",
		           sum_names[x[i].faster], sum_names[x[i].slower], x[i].from);
	buf_puts(c->out, "]");
}

void crossings_text(const Call *c, const Crossing *x, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		buf_printf(c->out, "# from %u processors on, %s takes less than %s\n", x[i].from, sum_names[x[i].faster],
		           sum_names[x[i].slower]);
}

/* ---- one network, one compiler ---- */

typedef struct Study {
	const Plan *plan;
	int compiler;
	double *procs;
	uint32_t count;
	SumCost (*cost)[SUM_METHODS]; /* [count] */
	Crossing crossing[MOST_CROSSINGS];
	uint32_t crossings;
	uint64_t cycles; /* simulated */
} Study;

static int best_of(const SumCost *cost)
{
	int best = -1;
	for (int i = 0; i < SUM_METHODS; i++)
		if (isfinite(cost[i].cycles) && (best < 0 || cost[i].cycles < cost[best].cycles))
			best = i;
	return best;
}

static void study_make(const Call *c, Study *s)
{
	s->cost = arena_alloc(&c->cx->keep, s->count, sizeof *s->cost);
	for (uint32_t i = 0; i < s->count; i++) {
		costs_fill(c, s->plan, s->compiler, (uint32_t)s->procs[i], (1u << SUM_METHODS) - 1, s->cost[i]);
		for (int k = 0; k < SUM_METHODS; k++)
			s->cycles += s->cost[i][k].epoch;
	}
	s->crossings = crossings_find(c, s->plan, s->compiler, s->crossing);
}

static void study_text(const Call *c, const Study *s)
{
	double W = (double)s->plan->W, interval = (double)c->m->switch_interval;
	buf_printf(c->out,
	           "# %s: %.0f weights, compiler %s; cycles of the update for each weight, the host's calls with them\n",
	           s->plan->net->name, W, compiler_names[s->compiler]);
	buf_printf(c->out, "%5s", "procs");
	for (int k = 0; k < SUM_METHODS; k++)
		buf_printf(c->out, " %12s", sum_methods[k].name);
	buf_printf(c->out, "   switch alone: %4s %9s\n", "tree", "pipelined");
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t procs = (uint32_t)s->procs[i];
		int best = best_of(s->cost[i]);
		buf_printf(c->out, "%5u", procs);
		for (int k = 0; k < SUM_METHODS; k++) {
			if (isfinite(s->cost[i][k].cycles))
				buf_printf(c->out, " %11.2f%c", s->cost[i][k].cycles / W, k == best ? '*' : ' ');
			else
				buf_printf(c->out, " %11s ", "-");
		}
		buf_printf(c->out, "                 %4.0f %9.2f\n", interval * sum_transfers(SUM_TREE, procs),
		           interval * sum_transfers(SUM_PIPELINED, procs));
	}
	crossings_text(c, s->crossing, s->crossings);
	buf_puts(c->out, "\n");
}

static void study_json(const Call *c, const Study *s, bool first)
{
	double W = (double)s->plan->W, interval = (double)c->m->switch_interval;
	buf_puts(c->out, first ? "{\"network\": " : ", {\"network\": ");
	json_put(c->out, s->plan->net->name);
	buf_printf(c->out, ", \"weights\": %.0f, \"compiler\": \"%s\", \"rows\": [", W, compiler_names[s->compiler]);
	for (uint32_t i = 0, shown = 0; i < s->count * SUM_METHODS; i++) {
		const SumCost *cost = &s->cost[i / SUM_METHODS][i % SUM_METHODS];
		const SumMethod *method = &sum_methods[i % SUM_METHODS];
		uint32_t procs = (uint32_t)s->procs[i / SUM_METHODS];
		double ideal = interval * sum_transfers(method->sum, procs);
		if (!isfinite(cost->cycles))
			continue;
		buf_printf(c->out,
		           "%s{\"procs\": %u, \"sum\": \"%s\", \"update\": %" PRIu64 ", \"calls\": %" PRIu64
		           ", \"cycles_per_weight\": %.4f, \"switch_per_weight\": %.4f, \"overhead\": %.4f, \"best\": %s}",
		           shown++ ? ", " : "", procs, method->name, cost->update, cost->calls, cost->cycles / W, ideal,
		           ideal > 0 ? cost->cycles / W / ideal : 0,
		           (int)(i % SUM_METHODS) == best_of(s->cost[i / SUM_METHODS]) ? "true" : "false");
	}
	buf_puts(c->out, "], \"crossovers\": ");
	crossings_json(c, s->crossing, s->crossings);
	buf_puts(c->out, "}");
}

/* ---- drawing ---- */

/* Best mode in full lines; dashes: the tree and one word at a time, as in 1989. */
static void draw(const Call *c, const Study *old, const Study *new, bool *first)
{
	static const double x_tick[] = { 8, 16, 32, 64, 128, 256, 512 },
						y_tick[] = { 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000 };
	static const struct {
		const char *label, *colour;
		bool old;
		int method;
	} line[] = {
		{ "ring", PLOT_BLACK, false, 0 },       { "tree", PLOT_BLUE, false, 1 },
		{ "pipelined", PLOT_ORANGE, false, 2 }, { "halving", PLOT_GREEN, false, 3 },
		{ "tree, 1989", PLOT_BLUE, true, 1 },   { "pipelined, a word at a time, 1989", PLOT_ORANGE, true, 4 },
	};
	Arena *a = &c->cx->scratch;
	Series series[COUNT(line)];
	Buf title = { .arena = a }, svg = { .arena = a }, name = { .arena = a };
	for (size_t k = 0; k < COUNT(line); k++) {
		const Study *s = line[k].old ? old : new;
		double *y = NEW(a, s->count, double);
		for (uint32_t i = 0; i < s->count; i++)
			y[i] = s->cost[i][line[k].method].cycles / (double)s->plan->W;
		series[k] =
			(Series){ line[k].label, line[k].colour, line[k].old ? MARK_DASHES : MARK_LINE, s->procs, y, s->count };
	}
	buf_printf(&title, "Summing: cycles of an update for each of %.0f weights", (double)new->plan->W);
	buf_printf(&name, "summing-%.0f", (double)new->plan->W);
	const Plot plot = {
		.title = title.s,
		.series = series,
		.count = COUNT(series),
		.x = { "Processors", 7, 600, true, x_tick, COUNT(x_tick) },
		.y = { "Cycles for each weight", 4, 2500, true, y_tick + 2, COUNT(y_tick) - 2 },
	};
	plot_svg(&plot, &svg);
	figure_write(c, name.s, "svg", &svg, first);
}

/* ---- the command ---- */

/* Tiny: eight units, three, eight; NETtalk; a hundred thousand weights. */
static uint32_t networks_open(const Call *c, const Plan **plan)
{
	static const uint32_t shape[][3] = { { 8, 3, 8 }, { 203, 60, 26 }, { 784, 120, 10 } };
	if (c->net) {
		plan[0] = plan_open(c->cx, c->net);
		return 1;
	}
	for (size_t i = 0; i < COUNT(shape); i++)
		plan[i] = plan_layers(c->cx, shape[i][0], shape[i][1], shape[i][2]);
	return COUNT(shape);
}

void run_sums(Call *c)
{
	const Plan *plan[3];
	uint32_t networks = networks_open(c, plan), studies = 0;
	uint64_t cycles = 0;
	double *procs;
	uint32_t count = procs_read(c, &procs);
	int only = c->compiler ? choice_read(c->cx, "--compiler", c->compiler, compiler_names, 2) : -1;
	Study *s = NEW(&c->cx->keep, 2 * networks, Study);
	if (c->write && only >= 0)
		fail(c->cx, MP_BAD_INPUT, "leave --compiler out", "figures show both compilers");
	if (c->write)
		folder_make(c);
	for (uint32_t i = 0; i < 2 * networks; i++) {
		int compiler = i % 2 ? COMPILER_BEST : COMPILER_1989;
		if (only >= 0 && compiler != only)
			continue;
		s[studies] = (Study){ .plan = plan[i / 2], .compiler = compiler, .procs = procs, .count = count };
		study_make(c, &s[studies]);
		cycles += s[studies++].cycles;
	}
	if (c->json) {
		json_begin(c);
		buf_puts(c->out, "\"studies\": [");
	}
	for (uint32_t i = 0; i < studies; i++) {
		if (c->json)
			study_json(c, &s[i], i == 0);
		else
			study_text(c, &s[i]);
	}
	buf_puts(c->out, c->json ? "], " : "");
	if (c->write) {
		bool first = figures_begin(c);
		for (uint32_t i = 0; i < studies; i += 2)
			draw(c, &s[i], &s[i + 1], &first);
		figures_end(c);
	}
	report_end(c, cycles, 0);
}
