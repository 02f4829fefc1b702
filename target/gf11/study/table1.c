/* SPDX-License-Identifier: MIT */
/* microprop gf11 table1 and calibrate. In: a machine. Out: the report's Table 1 beside simulated epochs of the same
 * network, the same by every way of summing in best mode, and the one constant of the machine that nobody knows and
 * that is fitted to three of its cells.
 *
 * Every simulated figure counts the cycles of the compiled program, call by call; the model of section 6.1 stands
 * beside it and has no part in it. */
#include <inttypes.h>
#include <math.h>

#include "gf11_study.h"

/* Table 1 as printed.  The 512 rows were timed while results were wrong (section 6.3). */
const Cell1 table1[] = {
	{ 8, SUM_TREE, 26, false },    { 16, SUM_TREE, 55, true },     { 32, SUM_TREE, 112, false },
	{ 64, SUM_TREE, 216, true },   { 128, SUM_TREE, 415, false },  { 256, SUM_TREE, 753, true },
	{ 356, SUM_TREE, 901, false }, { 512, SUM_TREE, 1231, false }, { 8, SUM_RING, 26, false },
	{ 16, SUM_RING, 53, false },   { 32, SUM_RING, 107, false },   { 64, SUM_RING, 170, false },
	{ 128, SUM_RING, 222, false }, { 256, SUM_RING, 180, false },  { 512, SUM_RING, 84, false },
};
const uint32_t table1_cells = COUNT(table1);

const uint32_t best_procs[BEST_ROWS] = { 8, 16, 32, 64, 128, 256, 356, 512, 566 };
enum { CELLS = COUNT(table1) };

typedef struct Table1 {
	const Plan *plan;
	bool shown[CELLS]; /* --sum chooses */
	Epoch sim[CELLS];
	double model[CELLS], model_host[CELLS];
	BestTable best; /* no rows: not computed */
	Crossing crossing[MOST_CROSSINGS];
	uint32_t crossings;
	uint64_t cycles; /* simulated in all */
} Table1;

double table1_mcps(uint32_t procs, int sum)
{
	for (uint32_t i = 0; i < CELLS; i++)
		if (table1[i].procs == procs && table1[i].sum == sum)
			return table1[i].mcps;
	return 0;
}

static double error_percent(double mcps, const Cell1 *cell) { return 100 * (mcps / cell->mcps - 1); }

/* Nothing in the report explains the ring at 512, so it is shown and not judged by. */
static bool judged(const Cell1 *cell) { return !cell->fitted && !(cell->sum == SUM_RING && cell->procs == 512); }

static const char *remark(const Cell1 *cell)
{
	return cell->fitted ? "  fitted" : judged(cell) ? "" : "  not judged by";
}

static double mean_error(const Table1 *t, const double *mcps)
{
	double sum = 0, count = 0;
	for (uint32_t i = 0; i < CELLS; i++) {
		if (t->shown[i] && judged(&table1[i])) {
			sum += fabs(error_percent(mcps[i], &table1[i]));
			count++;
		}
	}
	return count > 0 ? sum / count : 0;
}

static void simulate_cells(const Call *c, Table1 *t)
{
	EpochSpec s = epoch_spec(c, t->plan, NETTALK_CASES);
	int chosen = s.o.sum;
	ModelInput in;
	s.o.compiler = COMPILER_1989;
	model_input(&in, t->plan, c->m, NETTALK_CASES);
	for (uint32_t i = 0; i < CELLS; i++) {
		t->shown[i] = !c->sum || table1[i].sum == chosen;
		if (!t->shown[i])
			continue;
		s.o.procs = table1[i].procs;
		s.o.sum = table1[i].sum;
		t->sim[i] = epoch_apart(c->cx, &s);
		t->cycles += t->sim[i].total;
		ModelInput with = in, bare;
		with.P = table1[i].procs;
		with.sum = table1[i].sum;
		bare = with;
		bare.host_call = 0;
		t->model[i] = model_epoch(&bare).mcps;
		t->model_host[i] = model_epoch(&with).mcps;
	}
}

/* A cell that cannot be compiled is left out of the table, and said at its end. */
static void best_take(Call *c, BestTable *t, uint32_t row, const EpochSpec *s)
{
	t->cell[row][s->o.sum] = s->e;
	t->cycles += s->e.total;
	if (s->why) {
		Buf b = { .arena = &c->cx->scratch };
		buf_printf(&b, "best mode, sum %s, %u processors: %s", sum_names[s->o.sum], s->o.procs, s->why);
		c->failure = b.s;
		c->remedy = "the other cells are right";
	}
}

/* All ways of summing with so many processors together: they have most of their code in common. */
void best_simulate(Call *c, const Plan *plan, BestTable *t)
{
	int chosen = call_options(c).sum;
	for (; t->rows < BEST_ROWS && best_procs[t->rows] <= c->m->processors; t->rows++) {
		EpochSpec s[SUMS];
		uint32_t count = 0;
		for (int sum = 0; sum < SUMS; sum++) {
			if (c->sum && sum != chosen)
				continue;
			s[count] = epoch_spec(c, plan, NETTALK_CASES);
			s[count].o.compiler = COMPILER_BEST;
			s[count].o.procs = best_procs[t->rows];
			s[count++].o.sum = sum;
		}
		epochs_apart(c->cx, s, count);
		for (uint32_t i = 0; i < count; i++)
			best_take(c, t, t->rows, &s[i]);
	}
}

static void check_size(const Call *c)
{
	if (c->m->processors < 512)
		fail(c->cx, MP_BAD_INPUT, "use a machine of 512 processors or more, such as gf11",
		     "Table 1 goes up to 512 processors; %s has %lld", c->m->name, (long long)c->m->processors);
}

static double mean_of(const Table1 *t)
{
	double mcps[CELLS];
	for (uint32_t i = 0; i < CELLS; i++)
		mcps[i] = t->sim[i].mcps;
	return mean_error(t, mcps);
}

/* ---- table1 extended: what the update takes by every way of summing ---- */

static int fastest(const Epoch *cell)
{
	int best = -1;
	for (int sum = 0; sum < SUMS; sum++)
		if (cell[sum].total && (best < 0 || cell[sum].total < cell[best].total))
			best = sum;
	return best;
}

static void extended_json(const Call *c, const Table1 *t)
{
	buf_puts(c->out, "\"extended\": {\"rows\": [");
	for (uint32_t i = 0, shown = 0; i < t->best.rows * SUMS; i++) {
		const Epoch *cell = t->best.cell[i / SUMS], *e = &cell[i % SUMS];
		if (!e->total)
			continue;
		buf_printf(c->out,
		           "%s{\"procs\": %u, \"sum\": \"%s\", \"mcps\": %.6g, \"update\": %" PRIu64
		           ", \"update_calls\": %" PRIu64 ", \"update_cycles_per_weight\": %.4f, \"best\": %s}",
		           shown++ ? ", " : "", best_procs[i / SUMS], sum_names[i % SUMS], e->mcps, e->update, e->update_calls,
		           (double)e->update / (double)t->plan->W, (int)(i % SUMS) == fastest(cell) ? "true" : "false");
	}
	buf_puts(c->out, "], \"crossovers\": ");
	crossings_json(c, t->crossing, t->crossings);
	buf_puts(c->out, "}, ");
}

static void extended_text(const Call *c, const Table1 *t)
{
	buf_printf(c->out, "\n%5s", "procs");
	for (int sum = 0; sum < SUMS; sum++)
		buf_printf(c->out, " %10s", sum_names[sum]);
	buf_puts(c->out, "    (--compiler best, cycles of the update; *: the fastest)\n");
	for (uint32_t i = 0; i < t->best.rows; i++) {
		const Epoch *cell = t->best.cell[i];
		buf_printf(c->out, "%5u", best_procs[i]);
		for (int sum = 0; sum < SUMS; sum++) {
			if (cell[sum].total)
				buf_printf(c->out, " %9" PRIu64 "%c", cell[sum].update, sum == fastest(cell) ? '*' : ' ');
			else
				buf_printf(c->out, " %9s ", "-");
		}
		buf_puts(c->out, "\n");
	}
	crossings_text(c, t->crossing, t->crossings);
}

/* ---- table1 ---- */

static void table1_json(const Call *c, const Table1 *t)
{
	json_begin(c);
	buf_puts(c->out, "\"rows\": [");
	for (uint32_t i = 0, shown = 0; i < CELLS; i++) {
		const Cell1 *cell = &table1[i];
		if (!t->shown[i])
			continue;
		buf_printf(c->out,
		           "%s{\"procs\": %u, \"sum\": \"%s\", \"paper\": %g, \"sim1989\": %.6g, \"error_pct\": %.3f, "
		           "\"model\": %.6g, \"model_with_host\": %.6g, \"limit\": %.6g, \"cycles\": %" PRIu64
		           ", \"fitted\": %s}",
		           shown++ ? ", " : "", cell->procs, sum_names[cell->sum], cell->mcps, t->sim[i].mcps,
		           error_percent(t->sim[i].mcps, cell), t->model[i], t->model_host[i],
		           model_limit(t->plan, c->m, cell->procs), t->sim[i].total, cell->fitted ? "true" : "false");
	}
	buf_puts(c->out, "], \"best\": [");
	for (uint32_t i = 0, shown = 0; i < t->best.rows * SUMS; i++) {
		uint32_t procs = best_procs[i / SUMS];
		const Epoch *e = &t->best.cell[i / SUMS][i % SUMS];
		if (!e->total)
			continue;
		buf_printf(c->out,
		           "%s{\"procs\": %u, \"sum\": \"%s\", \"mcps\": %.6g, \"percent_of_limit\": %.2f, "
		           "\"cycles\": %" PRIu64 "}",
		           shown++ ? ", " : "", procs, sum_names[i % SUMS], e->mcps,
		           100 * e->mcps / model_limit(t->plan, c->m, procs), e->total);
	}
	buf_puts(c->out, "], ");
	extended_json(c, t);
	buf_printf(c->out, "\"mean_abs_error_pct\": %.3f, ", mean_of(t));
}

static void best_text(const Call *c, const Table1 *t)
{
	const BestTable *best = &t->best;
	if (best->rows) {
		buf_printf(c->out, "\n%5s", "procs");
		for (int sum = 0; sum < SUMS; sum++)
			buf_printf(c->out, " %10s     %%", sum_names[sum]);
		buf_puts(c->out, "   limit    (--compiler best)\n");
	}
	for (uint32_t i = 0; i < best->rows; i++) {
		double limit = model_limit(t->plan, c->m, best_procs[i]);
		buf_printf(c->out, "%5u", best_procs[i]);
		for (int sum = 0; sum < SUMS; sum++) {
			const Epoch *e = &best->cell[i][sum];
			if (e->total)
				buf_printf(c->out, " %10.1f %5.1f", e->mcps, 100 * e->mcps / limit);
			else
				buf_printf(c->out, " %10s %5s", "-", "-");
		}
		buf_printf(c->out, " %7.0f\n", limit);
	}
}

static void table1_text(const Call *c, const Table1 *t)
{
	buf_puts(c->out,
	         "# Millions of connections per second: 203-60-26 (NETtalk), 12,022 cases, one update an epoch\n\n");
	buf_printf(c->out, "%5s %5s %7s %8s %8s %8s %7s\n", "procs", "sum", "paper", "1989", "error %", "model", "limit");
	for (uint32_t i = 0; i < CELLS; i++) {
		const Cell1 *cell = &table1[i];
		if (!t->shown[i])
			continue;
		if (i && t->shown[i - 1] && cell->sum != cell[-1].sum)
			buf_puts(c->out, "\n");
		buf_printf(c->out, "%5u %5s %7g %8.1f %8.1f %8.1f %7.0f%s\n", cell->procs, sum_names[cell->sum], cell->mcps,
		           t->sim[i].mcps, error_percent(t->sim[i].mcps, cell), t->model[i],
		           model_limit(t->plan, c->m, cell->procs), remark(cell));
	}
	best_text(c, t);
	if (c->extended)
		extended_text(c, t);
	buf_printf(c->out,
	           "\n# mean absolute error of the cells that nothing was fitted to, ring at 512 left out: %.1f %%\n",
	           mean_of(t));
	buf_puts(c->out, "# 1989: every cycle of the program that the authors describe; model: section 6.1, corrected\n"
	                 "# limit: every processor adds or multiplies in every cycle\n");
}

void run_table1(Call *c)
{
	Table1 *t = NEW(&c->cx->keep, 1, Table1);
	bool best = !c->compiler || choice_read(c->cx, "--compiler", c->compiler, compiler_names, 2) == COMPILER_BEST;
	check_size(c);
	t->plan = plan_open(c->cx, NULL);
	simulate_cells(c, t);
	if (best)
		best_simulate(c, t->plan, &t->best);
	if (best && (c->extended || c->json))
		t->crossings = crossings_find(c, t->plan, COMPILER_BEST, t->crossing);
	(c->json ? table1_json : table1_text)(c, t);
	report_end(c, t->cycles + t->best.cycles, 0);
}

/* ---- calibrate ---- */

static double mcps_with(const Call *c, const Table1 *t, uint32_t i, double host_call)
{
	const Epoch *e = &t->sim[i];
	return mcps_of(t->plan, c->m, NETTALK_CASES, (double)(e->total - e->host) + host_call * (double)e->calls);
}

/* Sum of squares of the logarithms of simulated over printed. */
static double misfit(const Call *c, const Table1 *t, double host_call)
{
	double sum = 0;
	for (uint32_t i = 0; i < CELLS; i++) {
		if (table1[i].fitted) {
			double off = arith_log(mcps_with(c, t, i, host_call) / table1[i].mcps);
			sum += off * off;
		}
	}
	return sum;
}

/* More cycles a call make every cell slower, so the misfit falls and then rises. */
static int64_t fit(const Call *c, const Table1 *t)
{
	int64_t low = 0, high = 1000000;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if (misfit(c, t, (double)middle) <= misfit(c, t, (double)(middle + 1)))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static const Machine *machine_with(const Call *c, int64_t host_call)
{
	Machine *m = NEW(&c->cx->keep, 1, Machine);
	Provenance *from = NEW(&c->cx->keep, machine_row_count, Provenance);
	*m = *c->m;
	m->host_call = host_call;
	for (size_t i = 0; i < machine_row_count; i++) {
		from[i] = m->from[i];
		if (machine_rows[i].offset == offsetof(Machine, host_call))
			from[i] = (Provenance){ FROM_ASSUMED, "assumed (calibrated)" };
	}
	m->from = from;
	return m;
}

static void machine_write(const Call *c, const Machine *m)
{
	Buf text = { .arena = &c->cx->scratch };
	OutFile *f = file_create(c->cx, &c->cx->scratch, c->write);
	machine_print(m, &text);
	file_write(f, text.s, text.len);
	file_commit(c->cx, f);
}

static void calibrate_json(const Call *c, const Table1 *t, int64_t host_call, const double *mcps)
{
	json_begin(c);
	buf_printf(c->out, "\"host_call\": %" PRId64 ", \"was\": %" PRId64 ", \"rows\": [", host_call, c->m->host_call);
	for (uint32_t i = 0, shown = 0; i < CELLS; i++)
		if (t->shown[i])
			buf_printf(c->out,
			           "%s{\"procs\": %u, \"sum\": \"%s\", \"paper\": %g, \"sim1989\": %.6g, \"error_pct\": %.3f, "
			           "\"calls\": %" PRIu64 ", \"fitted\": %s}",
			           shown++ ? ", " : "", table1[i].procs, sum_names[table1[i].sum], table1[i].mcps, mcps[i],
			           error_percent(mcps[i], &table1[i]), t->sim[i].calls, table1[i].fitted ? "true" : "false");
	buf_printf(c->out, "], \"mean_abs_error_pct\": %.3f, ", mean_error(t, mcps));
}

static void calibrate_text(const Call *c, const Table1 *t, int64_t host_call, const double *mcps)
{
	buf_printf(c->out, "host-call %" PRId64 " cycles fits Table 1 best (%s has %" PRId64 ")\n\n", host_call, c->m->name,
	           c->m->host_call);
	buf_printf(c->out, "%5s %5s %7s %8s %8s %9s\n", "procs", "sum", "paper", "1989", "error %", "calls");
	for (uint32_t i = 0; i < CELLS; i++)
		if (t->shown[i])
			buf_printf(c->out, "%5u %5s %7g %8.1f %8.1f %9" PRIu64 "%s\n", table1[i].procs, sum_names[table1[i].sum],
			           table1[i].mcps, mcps[i], error_percent(mcps[i], &table1[i]), t->sim[i].calls,
			           remark(&table1[i]));
	buf_printf(c->out,
	           "\n# mean absolute error of the cells that nothing was fitted to, ring at 512 left out: %.1f %%\n",
	           mean_error(t, mcps));
}

void run_calibrate(Call *c)
{
	Table1 *t = NEW(&c->cx->keep, 1, Table1);
	double mcps[CELLS];
	check_size(c);
	t->plan = plan_open(c->cx, NULL);
	if (c->sum && choice_read(c->cx, "--sum", c->sum, sum_names, SUMS) != SUM_TREE)
		fail(c->cx, MP_BAD_INPUT, "write --sum tree, or leave it out", "the constant is fitted to cells of the tree");
	simulate_cells(c, t);
	int64_t host_call = fit(c, t);
	for (uint32_t i = 0; i < CELLS; i++)
		mcps[i] = t->shown[i] ? mcps_with(c, t, i, (double)host_call) : 0;
	(c->json ? calibrate_json : calibrate_text)(c, t, host_call, mcps);
	if (c->write)
		machine_write(c, machine_with(c, host_call));
	if (c->write && !c->json)
		buf_printf(c->out, "wrote %s\n", c->write);
	report_end(c, t->cycles, 0);
}
