/* SPDX-License-Identifier: MIT */
/* microprop gf11 table2. In: a machine. Out: the report's Table 2, then the simulated machine and this computer. */
#include "formats.h"
#include "gf11_study.h"

static const struct {
	const char *machine;
	double mcps;
} printed[] = {
	{ "microVax", 0.008 }, { "Sun 3/75", 0.01 }, { "Vax 780", 0.027 },  { "Sun 3/160/FPA", 0.034 },
	{ "Ridge 32", 0.05 },  { "DEC 8600", 0.06 }, { "Convex C-1", 1.8 }, { "16K CM-1", 2.6 },
	{ "Cray-2", 7 },       { "64K CM", 13 },     { "CM-2", 40 },        { "Warp", 20 },
	{ "GF11", 901 },
};

/* Targets measured on this computer. */
static const char *const measured[] = { "ref", "cpu" };

static const Column columns[] = {
	{ "machine", "machine", .width = -38 },
	{ "mcps", "MCPS", .width = 10 },
	{ "from", .title = "source" },
};

static void row(const Table *t, const char *machine, double mcps, const char *from)
{
	table_row(t, (TableCell[]){ tc_text(machine), tc_real(mcps), tc_text(from) });
}

/* Training passes over the letters, leaf by leaf, for about a second. */
static double rate_here(const CommandRun *c, const Target *target)
{
	enum { SECONDS = 1 };
	const Plan *shape = plan_open(c->cx, NULL);
	const Data *data = data_open(c->cx, "make:letters", NULL);
	const StopFlag stop = 0;
	const Batch batch = { .count = data->cases };
	uint32_t leaves = leaf_count(data->cases);
	uint64_t done = 0, first, count;
	Tally tally = { 0 };
	Options opt = shape->net->options;
	Update update;
	Caps caps;
	opt.threads = 1;
	opt.rate = 1e-4; /* weights stay small: saturated units would change the work */
	target->caps(&caps);
	Plan *plan = plan_make(c->cx, shape->net, &caps);
	double *weights = NEW(&c->cx->scratch, plan->W, double);
	Program *p = target->compile(c->cx, plan, &opt);
	net_weights(plan->net, 1, 0, ALL_LINKS, weights);
	target->bind(c->cx, p, data);
	target->set(p, 0, 0, ALL_LINKS, weights);
	update_fill(&opt, 1, 0, 1, &update);
	double began = clock_seconds(), seconds = 0;
	while (seconds < SECONDS) {
		for (uint32_t i = 0; i < leaves && seconds < SECONDS; i++) {
			target->accumulate(p, &batch, i, i + 1, &stop, &tally);
			leaf_range(data->cases, leaves, i, &first, &count);
			done += count;
			seconds = clock_seconds() - began;
		}
		if (seconds < SECONDS)
			target->apply(p, &update);
	}
	return 1e-6 * (double)plan->W * (double)done / seconds;
}

static uint64_t simulated_row(const CommandRun *c, const Table *t, uint32_t procs, int compiler, int sum)
{
	EpochSpec s = epoch_of(c, plan_open(c->cx, NULL), NETTALK_CASES, compiler, procs, sum);
	Buf name = { .arena = &c->cx->scratch };
	Epoch e = epoch_isolated(c->cx, &s);
	buf_printf(&name, "GF11, %u processors, %s, %s", procs, sum_names[sum], compiler_names[compiler]);
	row(t, name.s, e.mcps, "simulated");
	return e.total;
}

void run_table2(CommandRun *c)
{
	uint64_t cycles = 0;
	uint32_t all = (uint32_t)c->m->processors;
	Table table = report_table(c, columns, COUNT(columns)), *t = &table;
	table_start(t, "rows");
	for (size_t i = 0; i < COUNT(printed); i++)
		row(t, printed[i].machine, printed[i].mcps, "report, Table 2");
	row(t, "CM-2, Singer's program, at least", 400, "report, section 7.2, estimated");
	row(t, "CM-2, Singer's program, at most", 650, "report, section 7.2, estimated");
	if (all > 356)
		cycles += simulated_row(c, t, 356, COMPILER_1989, SUM_TREE);
	cycles += simulated_row(c, t, all, COMPILER_1989, SUM_TREE);
	cycles += simulated_row(c, t, all, COMPILER_BEST, SUM_PIPELINED);
	for (size_t i = 0; i < COUNT(measured); i++) {
		const Target *target = target_find(measured[i]);
		Buf name = { .arena = &c->cx->scratch };
		if (!target)
			continue;
		buf_printf(&name, "this computer, one thread, %s", target->name);
		row(t, name.s, rate_here(c, target), "measured now");
	}
	table_end(t);
	report_end(c, cycles, 0);
}
