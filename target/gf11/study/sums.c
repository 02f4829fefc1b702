/* SPDX-License-Identifier: MIT */
/* microprop gf11 sums. In: networks, numbers of processors. Out: cycles of an update per weight for each summation
 * method, the best method, and the crossover points (sections 4.4 and 10.2).
 *
 * The cost of an update is its cycles and the host's time for its calls: no other part of an epoch depends on the
 * summation method. A method that falls back to another because there are too few weights has no cost. */
#include <inttypes.h>
#include <math.h>

#include "gf11_study.h"

enum { CASES_EACH = 24 }; /* per processor, as NETtalk on 512 */

/* pipelined/1 keeps one word per processor in flight, as in section 10.2; pipelined keeps enough in flight to hide the
 * latency of switch and adder. */
const SumMethod sum_methods[SUM_METHODS] = {
	{ "ring", SUM_RING, 0 },
	{ "tree", SUM_TREE, 0 },
	{ "pipelined", SUM_PIPELINED, 0 },
	{ "halving", SUM_HALVING, 0 },
	{ "pipelined/1", SUM_PIPELINED, 1 },
};

const char put_note[] =
	"# pipelined, and halving unless P is a power of two, store at per-processor addresses (put): an "
	"assumption of ours,\n# not in the report; fixed-address 2 leaves it out\n";

/* ---- costs ---- */

static SumCost cost_of(const EpochSpec *s)
{
	double cycles = (double)(s->e.update + s->e.update_calls * (uint64_t)s->m->host_call);
	bool used = !s->why && s->e.sum == s->o.sum;
	return (SumCost){ used ? cycles : NAN, s->e.update, s->e.update_calls, s->e.total, s->why };
}

/* Of the methods in `mask`, bit i for sum_methods[i]. */
static void costs_fill(const CommandRun *c, const Plan *plan, int compiler, uint32_t procs, unsigned mask,
                       SumCost *cost)
{
	EpochSpec s[SUM_METHODS];
	uint32_t count = 0, of[SUM_METHODS];
	for (uint32_t i = 0; i < SUM_METHODS; i++) {
		cost[i] = (SumCost){ .cycles = NAN };
		if (!(mask >> i & 1))
			continue;
		s[count] = epoch_of(c, plan, (uint64_t)CASES_EACH * procs, compiler, procs, sum_methods[i].sum);
		s[count].o.update = sum_methods[i].update;
		of[count++] = i;
	}
	epochs_isolated(c->cx, s, count);
	for (uint32_t i = 0; i < count; i++)
		cost[of[i]] = cost_of(&s[i]);
}

/* Switch transfers per weight. */
static double sum_transfers(int sum, uint32_t procs)
{
	if (sum == SUM_PIPELINED || sum == SUM_HALVING)
		return 2.0 * (procs - 1) / procs;
	return sum_steps(sum, procs);
}

/* ---- crossover points ---- */

/* -1: a takes less; 1: b does; 0: equal, or one is not available. */
static int compare(const SumCost *cost, int a, int b)
{
	return cost[a].cycles < cost[b].cycles ? -1 : cost[a].cycles > cost[b].cycles ? 1 : 0;
}

/* The order changes between low and high: the first number of processors with the new order. */
static uint32_t bisect(const CommandRun *c, const Plan *plan, int compiler, uint32_t low, uint32_t high,
                       const SumPair *p, int order)
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

/* Up to 8 one by one, then doubling. */
static uint32_t next_procs(uint32_t procs, uint32_t all)
{
	uint32_t next = procs < 8 ? procs + 1 : 2 * procs;
	return procs >= all ? 0 : next < all ? next : all;
}

/* The first known order counts as a crossing, too. */
uint32_t crossings_find(const CommandRun *c, const Plan *plan, int compiler, Crossing *out)
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
			if (now && now != order[i] && count < MAX_CROSSINGS) {
				uint32_t at = order[i] ? bisect(c, plan, compiler, before[i], procs, p, order[i]) : procs;
				out[count++] = (Crossing){ now < 0 ? p->a : p->b, now < 0 ? p->b : p->a, at };
			}
			order[i] = now ? now : order[i];
			before[i] = now ? procs : before[i];
		}
	}
	return count;
}

void crossings_print(const CommandRun *c, const Crossing *x, uint32_t count, bool text)
{
	static const Column columns[] = { { .key = "faster" }, { .key = "slower" }, { .key = "from" } };
	Table t = json_table(c, columns, COUNT(columns));
	table_start(&t, "crossovers");
	for (uint32_t i = 0; i < count; i++) {
		const char *faster = sum_names[x[i].faster], *slower = sum_names[x[i].slower];
		table_row(&t, (TableCell[]){ tc_text(faster), tc_text(slower), tc_count(x[i].from) });
		if (text)
			buf_printf(c->text, "# from %u processors on, %s takes less than %s\n", x[i].from, faster, slower);
	}
	table_end(&t);
}

/* ---- one network, one compiler ---- */

typedef struct Study {
	const Plan *plan;
	int compiler;
	double *procs;
	uint32_t count;
	SumCost (*cost)[SUM_METHODS]; /* [count] */
	Crossing crossing[MAX_CROSSINGS];
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

/* One row for each number of processors, a column for each method. */
static void study_text(const CommandRun *c, const Study *s)
{
	double W = (double)s->plan->W, interval = (double)c->m->switch_interval;
	Column column[SUM_METHODS + 3] = { { .title = "procs", .width = 5 } };
	Table t = text_table(c, column, COUNT(column));
	for (int k = 0; k < SUM_METHODS; k++)
		column[1 + k] = (Column){ .title = sum_methods[k].name, .width = 12, .format = "%.2f" };
	column[SUM_METHODS + 1] = (Column){ .title = "switch alone: tree", .width = 20, .format = "%.0f" };
	column[SUM_METHODS + 2] = (Column){ .title = "pipelined", .width = 9, .format = "%.2f" };
	buf_printf(c->text, "# %s: %.0f weights, compiler %s; cycles of an update per weight, host calls included\n",
	           text_escaped(c->text->arena, s->plan->net->name), W, compiler_names[s->compiler]);
	table_start(&t, NULL);
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t procs = (uint32_t)s->procs[i];
		TableCell cell[COUNT(column)] = { tc_count(procs) };
		for (int k = 0; k < SUM_METHODS; k++)
			cell[1 + k] = tc_marked(tc_real(s->cost[i][k].cycles / W), k == best_of(s->cost[i]) ? '*' : ' ');
		cell[SUM_METHODS + 1] = tc_real(interval * sum_transfers(SUM_TREE, procs));
		cell[SUM_METHODS + 2] = tc_real(interval * sum_transfers(SUM_PIPELINED, procs));
		table_row(&t, cell);
	}
}

static void study_print(const CommandRun *c, const Study *s)
{
	static const Column columns[] = {
		{ .key = "procs" },
		{ .key = "sum" },
		{ .key = "update" },
		{ .key = "calls" },
		{ "cycles_per_weight", .exact = "%.4f" },
		{ "switch_per_weight", .exact = "%.4f" },
		{ "overhead", .exact = "%.4f" },
		{ .key = "best" },
	};
	Table t = json_table(c, columns, COUNT(columns));
	double W = (double)s->plan->W, interval = (double)c->m->switch_interval;
	study_text(c, s);
	jw_start(c->json, NULL, '{');
	jw_text(c->json, "network", s->plan->net->name);
	jw_count(c->json, "weights", s->plan->W);
	jw_text(c->json, "compiler", compiler_names[s->compiler]);
	table_start(&t, "rows");
	for (uint32_t i = 0; i < s->count * SUM_METHODS; i++) {
		const SumCost *cost = &s->cost[i / SUM_METHODS][i % SUM_METHODS];
		const SumMethod *method = &sum_methods[i % SUM_METHODS];
		uint32_t procs = (uint32_t)s->procs[i / SUM_METHODS];
		double each = cost->cycles / W, ideal = interval * sum_transfers(method->sum, procs);
		bool best = (int)(i % SUM_METHODS) == best_of(s->cost[i / SUM_METHODS]);
		if (isfinite(cost->cycles))
			table_row(&t, (TableCell[]){ tc_count(procs), tc_text(method->name), tc_count(cost->update),
			                             tc_count(cost->calls), tc_real(each), tc_real(ideal),
			                             tc_real(ideal > 0 ? each / ideal : 0), tc_flag(best) });
	}
	table_end(&t);
	crossings_print(c, s->crossing, s->crossings, true);
	jw_end(c->json, '}');
	buf_puts(c->text, "\n");
}

/* ---- drawing ---- */

/* Solid: best mode; dashed: 1989, the tree and one word at a time. */
static void draw(const CommandRun *c, const Study *old, const Study *new)
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
	buf_printf(&title, "Summation: cycles of an update per weight, %.0f weights", (double)new->plan->W);
	buf_printf(&name, "summing-%.0f", (double)new->plan->W);
	const Plot plot = {
		.title = title.s,
		.series = series,
		.count = COUNT(series),
		.x = { "Processors", 7, 600, true, x_tick, COUNT(x_tick) },
		.y = { "Cycles per weight", 4, 2500, true, y_tick + 2, COUNT(y_tick) - 2 },
	};
	plot_svg(&plot, &svg);
	figure_write(c, name.s, "svg", &svg);
}

/* ---- the command ---- */

/* Tiny; NETtalk; about 100,000 weights. */
static uint32_t networks_open(const CommandRun *c, const Plan **plan)
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

void run_sums(CommandRun *c)
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
		Study *one = &s[studies++];
		*one = (Study){ .plan = plan[i / 2], .compiler = compiler, .procs = procs, .count = count };
		one->cost = arena_alloc(&c->cx->keep, one->count, sizeof *one->cost);
		for (uint32_t j = 0; j < one->count; j++) {
			costs_fill(c, one->plan, one->compiler, (uint32_t)one->procs[j], (1u << SUM_METHODS) - 1, one->cost[j]);
			for (int k = 0; k < SUM_METHODS; k++)
				one->cycles += one->cost[j][k].epoch;
		}
		one->crossings = crossings_find(c, one->plan, one->compiler, one->crossing);
		cycles += one->cycles;
	}
	jw_start(c->json, "studies", '[');
	for (uint32_t i = 0; i < studies; i++)
		study_print(c, &s[i]);
	jw_end(c->json, ']');
	if (c->write) {
		jw_start(c->json, "files", '[');
		for (uint32_t i = 0; i < studies; i += 2)
			draw(c, &s[i], &s[i + 1]);
		jw_end(c->json, ']');
	}
	buf_puts(c->text, put_note);
	report_end(c, cycles, 0);
}
