/* SPDX-License-Identifier: MIT */
/* microprop gf11 updates. In: a network, numbers of processors. Out: the cost of each update rule per weight; what each
 * rule, and the range check of section 8, adds to an epoch with momentum, for every summation method. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gf11_study.h"

enum { PLAIN, CHECKED, FIRST_RULE, MAX_VARIANTS = 16 }; /* momentum; with the check; then other rules */

typedef struct Variant {
	const char *name;
	Options opt;
} Variant;
typedef struct Study {
	const Plan *plan;
	uint64_t cases;
	Variant variant[MAX_VARIANTS];
	uint32_t variants;
	uint64_t cycles; /* simulated */
} Study;
typedef struct Row {
	int compiler, sum;
	uint32_t procs;
	Epoch e[MAX_VARIANTS];
} Row; /* .total 0: not available */

static void variant_add(Study *s, const char *name, int64_t rule, double range)
{
	Variant *v = &s->variant[s->variants++];
	*v = (Variant){ name, s->plan->net->options };
	v->opt.rule = rule;
	gf11_own(&v->opt)->range_check = range;
}

/* ---- one weight ---- */

static void rules_print(const CommandRun *c, const Study *s)
{
	static const Column columns[] = {
		{ "rule", "rule", .width = -16 },          { "operations", "operations", .width = 10 },
		{ "transfers", "transfers", .width = 10 }, { "moves", "moves", .width = 10 },
		{ "cycles", "cycles", .width = 10 },
	};
	Table t = report_table(c, columns, COUNT(columns));
	buf_puts(c->text, "# per weight: operations, transfers between registers and SRAM, DRAM moves (ring, tree), cycles "
	                  "after its sum\n");
	table_start(&t, "rules");
	for (uint32_t i = 0; i < s->variants; i++) {
		if (i == CHECKED)
			continue;
		BpSum summing = { 0 };
		Bp b = { .cx = c->cx, .m = c->m, .rule = &rules[s->variant[i].opt.rule], .summing = &summing };
		const SumRule *r = rule_make(&b);
		table_row(&t, (TableCell[]){ tc_text(s->variant[i].name), tc_count(r->alu), tc_count(r->port),
		                             tc_count(chunk_moves(&b)), tc_count((uint64_t)r->length) });
	}
	table_end(&t);
	buf_puts(c->text, "\n");
}

/* ---- epochs ---- */

/* In percent of the epoch with momentum and without the check; NaN: not available. */
static double added(const Row *row, uint32_t i)
{
	double plain = (double)row->e[PLAIN].total, with = (double)row->e[i].total;
	return plain > 0 && with > 0 ? 100 * (with - plain) / plain : NAN;
}

enum { ROW_HEAD = 4, EACH = 5 }; /* columns: of the row, of a variant */

static uint32_t columns_make(const Study *s, Column *column)
{
	static const Column head[] = { { "compiler", "compiler", .width = -8 },
		                           { "procs", "procs", .width = 5 },
		                           { "sum", "sum", .width = -10 },
		                           { .title = "epoch", .width = 12 } };
	memcpy(column, head, sizeof head);
	for (uint32_t i = 0; i < s->variants; i++) {
		const char *name = s->variant[i].name;
		const Column each[EACH] = {
			{ "epoch", NULL, .object = name },
			{ "update", i == PLAIN ? "update" : NULL, 12, .object = name },
			{ "calls", NULL, .object = name },
			{ "percent", NULL, .exact = "%.4f", .object = name },
			{ NULL, i == PLAIN ? NULL : name, (int)strlen(name) + 1, .format = "%+.2f" },
		};
		memcpy(column + ROW_HEAD + EACH * i, each, sizeof each);
	}
	return ROW_HEAD + EACH * s->variants;
}

/* ---- the command ---- */

void run_updates(CommandRun *c)
{
	Study s = { .plan = plan_open(c->cx, c->operands ? c->operand[0] : NULL),
		        .cases = c->cases ? c->cases : NETTALK_CASES };
	int only = c->compiler ? choice_read(c->cx, "--compiler", c->compiler, compiler_names, 2) : -1;
	int only_sum = c->sum ? choice_read(c->cx, "--sum", c->sum, sum_names, SUMS) : -1;
	double *procs;
	uint32_t count = procs_or(c, (const double[]){ 8, 64, 512 }, 3, &procs);
	variant_add(&s, "momentum", 0, 0);
	variant_add(&s, "range-check", 0, 1);
	for (uint32_t i = 1; i < rule_count && s.variants < MAX_VARIANTS; i++)
		if (!rules[i].needs_norm)
			variant_add(&s, rules[i].name, i, 0);
	rules_print(c, &s);
	buf_printf(c->text,
	           "# %s: %" PRIu64 " weights, %" PRIu64 " cases; cycles of an epoch and of its update with momentum; "
	           "what the range check, or\n# another rule, adds to the epoch, in percent\n",
	           text_escaped(c->text->arena, s.plan->net->name), s.plan->W, s.cases);
	Column column[ROW_HEAD + EACH * MAX_VARIANTS];
	Table t = report_table(c, column, columns_make(&s, column));
	table_start(&t, "rows");
	for (uint32_t i = 0; i < 2 * count * SUMS; i++) {
		Row row = { .compiler = (int)(i / SUMS / count),
			        .sum = (int)(i % SUMS),
			        .procs = (uint32_t)procs[i / SUMS % count] };
		if ((only >= 0 && row.compiler != only) || (only_sum >= 0 && row.sum != only_sum))
			continue;
		EpochSpec spec[MAX_VARIANTS];
		for (uint32_t k = 0; k < s.variants; k++) {
			spec[k] = epoch_of(c, s.plan, s.cases, row.compiler, row.procs, row.sum);
			spec[k].opt = &s.variant[k].opt;
		}
		epochs_isolated(c->cx, spec, s.variants);
		for (uint32_t k = 0; k < s.variants; k++) {
			bool used = !spec[k].why && spec[k].e.sum == row.sum;
			row.e[k] = used ? spec[k].e : (Epoch){ 0 };
			s.cycles += spec[k].why ? 0 : spec[k].e.total;
		}
		if (row.e[PLAIN].total) {
			TableCell cell[ROW_HEAD + EACH * MAX_VARIANTS] = { tc_text(compiler_names[row.compiler]),
				                                               tc_count(row.procs), tc_text(sum_names[row.sum]),
				                                               tc_count(row.e[PLAIN].total) };
			for (uint32_t j = 0; j < s.variants; j++) {
				const Epoch *e = &row.e[j];
				TableCell *to = cell + ROW_HEAD + EACH * j;
				if (!e->total)
					continue;
				to[0] = tc_count(e->total);
				to[1] = tc_count(e->update);
				to[2] = tc_count(e->update_calls);
				to[3] = to[4] = tc_real(added(&row, j));
			}
			table_row(&t, cell);
		}
	}
	table_end(&t);
	report_end(c, s.cycles, 0);
}
