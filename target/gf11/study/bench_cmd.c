/* SPDX-License-Identifier: MIT */
/* microprop bench gf11. In: a machine, a number of threads. Out: how fast this computer simulates it: the routine of
 * weighted sums alone, and training epochs of best mode with every summation method, relative to real time.
 *
 * Epochs are those of Table 1 with values: 203-60-26, 12,022 cases, one update, all processors. Compiling and loading
 * are not timed. */
#include <stdlib.h>

#include "formats.h"
#include "gf11_study.h"

enum { FEWEST_EPOCHS = 5 };

typedef struct EpochTimes {
	uint64_t cycles; /* of one epoch */
	uint32_t epochs;
	double simulated, best, median; /* seconds of one epoch: of the machine; here */
} EpochTimes;

typedef struct EpochBench {
	const CommandRun *c;
	const Plan *plan;
	const Data *data;
	uint32_t threads;
	EpochTimes times[SUMS];
} EpochBench;

static int compare_seconds(const void *x, const void *y)
{
	const double *a = x, *b = y;
	return (*a > *b) - (*a < *b);
}

/* The first epoch maps memory: not timed. */
static EpochTimes epochs_time(const EpochBench *k, Bp *b, const Update *u)
{
	enum { SECONDS = 1, MOST = 1000 };
	double took[MOST], start = 0, sum = 0;
	EpochTimes t = { 0 };
	for (uint32_t i = 0; i <= FEWEST_EPOCHS || (sum < SECONDS && t.epochs < MOST); i++) {
		uint64_t before = bp_cycles(b);
		start = clock_seconds();
		bp_accumulate(b);
		sum_update(b, u);
		if (!i)
			continue;
		sum += took[t.epochs++] = clock_seconds() - start;
		t.cycles = bp_cycles(b) - before;
	}
	qsort(took, t.epochs, sizeof *took, compare_seconds);
	t.simulated = 1e-9 * k->c->m->clock * (double)t.cycles;
	t.best = took[0];
	t.median = took[t.epochs / 2];
	return t;
}

static void epochs_bench(Ctx *own, void *arg)
{
	EpochBench *k = arg;
	ScheduleCache *cache = schedule_cache_new(own);
	Options opt = k->plan->net->options;
	Update u;
	double *weights = NEW(&own->scratch, k->plan->W, double);
	net_weights(k->plan->net, 1, 0, ALL_LINKS, weights);
	opt.rate = 1e-4; /* weights stay small: saturated units would make denormal numbers */
	update_fill(&opt, 1, 0, 0, &u);
	int chosen = compile_options(k->c).sum;
	for (int sum = 0; sum < SUMS; sum++) {
		if (k->c->sum && sum != chosen)
			continue;
		EpochSpec s = epoch_of(k->c, k->plan, k->data->cases, COMPILER_BEST, (uint32_t)k->c->m->processors, sum);
		s.o.cache = cache;
		s.o.threads = k->threads;
		s.o.dry = false;
		Bp *b = bp_new(own, s.plan, &opt, s.m, &s.o, s.cases);
		if (!b->summing)
			sum_compile(b);
		bp_weights_write(b, 0, weights);
		bp_load_cases(b, k->data, NULL, s.cases);
		k->times[sum] = epochs_time(k, b, &u);
	}
}

static void epochs_print(const CommandRun *c, const EpochTimes *times)
{
	static const Column columns[] = {
		{ "sum", "sum", .width = 9 },
		{ "cycles", "cycles", .width = 9 },
		{ "simulated_ms", "simulated ms", 12, "%.1f", .exact = "%.6g" },
		{ "host_ms", "best ms", 8, "%.1f", .exact = "%.6g" },
		{ "median_ms", "median", 8, "%.1f", .exact = "%.6g" },
		{ "measured", "measured", .width = 8 },
		{ "times_real_time", "times real time", 15, "%.2f", .exact = "%.4g" },
	};
	Table table = report_table(c, columns, COUNT(columns));
	buf_printf(c->text, "\nepochs of best mode, 203-60-26, 12,022 cases\n");
	table_start(&table, "epochs");
	for (int sum = 0; sum < SUMS; sum++) {
		const EpochTimes *t = &times[sum];
		if (!t->epochs)
			continue;
		table_row(&table, (TableCell[]){ tc_text(sum_names[sum]), tc_count(t->cycles), tc_real(1e3 * t->simulated),
		                                 tc_real(1e3 * t->best), tc_real(1e3 * t->median), tc_count(t->epochs),
		                                 tc_real(t->simulated / t->best) });
	}
	table_end(&table);
}

void run_bench(CommandRun *c)
{
	uint32_t threads = threads_of(c);
	c->level = 0; /* schedule length does not matter here */
	const Routine *r = routine_make(c->cx, c->m, routine_find("forward"), (int)c->level);
	Measured b = execute_measure(c->cx, c->m, r, (uint32_t)c->m->processors, threads, 1);
	buf_printf(c->text, "%s on %s: %.3g billion processor-cycles per second in the best tenth of the time\n", r->name,
	           c->m->name, b.rate / 1e9);
	buf_printf(c->text, "the machine itself makes %.3g billion; on average it was %.3g here\n",
	           (double)c->m->processors / c->m->clock, (double)b.cycles * (double)c->m->processors / b.seconds / 1e9);
	buf_printf(c->text, "%u thread%s, kernels for %s\n", threads, threads == 1 ? "" : "s", kernel_name());
	jw_text(c->json, "routine", r->name);
	jw_count(c->json, "cycles", r->report.cycles);
	jw_count(c->json, "threads", threads);
	jw_text(c->json, "kernel", kernel_name());
	jw_text(c->json, "rate_of", "best tenth");
	EpochBench k = {
		.c = c, .plan = plan_open(c->cx, NULL), .data = data_open(c->cx, "make:letters", NULL), .threads = threads
	};
	with_subcontext(c->cx, epochs_bench, &k);
	epochs_print(c, k.times);
	report_end(c, b.cycles, b.rate);
}
