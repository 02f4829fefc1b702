/* SPDX-License-Identifier: MIT */
/* microprop gf11 updates. In: a network, numbers of processors. Out: what an update rule takes of the machine for
 * each weight; what each rule, and the range check of section 8, adds to an epoch with momentum, by every way of
 * summing. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gf11_study.h"

enum { PLAIN, CHECKED, FIRST_RULE, MOST_VARIANTS = 16 }; /* momentum; with the check; then other rules */

typedef struct Variant {
	const char *name;
	Options opt;
} Variant;
typedef struct Study {
	const Plan *plan;
	uint64_t cases;
	Variant variant[MOST_VARIANTS];
	uint32_t variants;
	uint64_t cycles; /* simulated */
} Study;
typedef struct Row {
	int compiler, sum;
	uint32_t procs;
	Epoch e[MOST_VARIANTS];
} Row; /* .total 0: not to be had */

static void variant_add(Study *s, const char *name, int64_t rule, double range)
{
	Variant *v = &s->variant[s->variants++];
	*v = (Variant){ name, s->plan->net->options };
	v->opt.rule = rule;
	gf11_own(&v->opt)->range_check = range;
}

static void variants_fill(Study *s)
{
	variant_add(s, "momentum", 0, 0);
	variant_add(s, "range-check", 0, 1);
	for (uint32_t i = 1; i < rule_count && s->variants < MOST_VARIANTS; i++)
		if (!rules[i].needs_norm)
			variant_add(s, rules[i].name, i, 0);
}

/* ---- one weight ---- */

typedef struct Taken {
	uint32_t operations, port, moves;
	int64_t cycles;
} Taken;

static Taken rule_takes(const Call *c, const Rule *rule)
{
	BpSum summing = { 0 };
	Bp b = { .cx = c->cx, .m = c->m, .rule = rule, .summing = &summing };
	const SumRule *r = rule_make(&b);
	return (Taken){ r->alu, r->port, chunk_moves(&b), r->length };
}

static void rules_text(const Call *c, const Study *s)
{
	buf_puts(
		c->out,
		"# for each weight: operations, transfers between registers and SRAM, DRAM moves (ring, tree), cycles from its "
		"total on\n");
	buf_printf(c->out, "%-16s %10s %10s %10s %10s\n", "rule", "operations", "transfers", "moves", "cycles");
	for (uint32_t i = 0; i < s->variants; i++) {
		if (i == CHECKED)
			continue;
		Taken t = rule_takes(c, &rules[s->variant[i].opt.rule]);
		buf_printf(c->out, "%-16s %10u %10u %10u %10" PRId64 "\n", s->variant[i].name, t.operations, t.port, t.moves,
		           t.cycles);
	}
	buf_puts(c->out, "\n");
}

static void rules_json(const Call *c, const Study *s)
{
	buf_puts(c->out, "\"rules\": [");
	for (uint32_t i = 0; i < s->variants; i++) {
		if (i == CHECKED)
			continue;
		Taken t = rule_takes(c, &rules[s->variant[i].opt.rule]);
		buf_printf(c->out,
		           "%s{\"rule\": \"%s\", \"operations\": %u, \"transfers\": %u, \"moves\": %u, \"cycles\": %" PRId64
		           "}",
		           i ? ", " : "", s->variant[i].name, t.operations, t.port, t.moves, t.cycles);
	}
	buf_puts(c->out, "], ");
}

/* ---- epochs ---- */

static void row_fill(const Call *c, Study *s, Row *row)
{
	EpochSpec spec[MOST_VARIANTS];
	for (uint32_t i = 0; i < s->variants; i++) {
		spec[i] = epoch_spec(c, s->plan, s->cases);
		spec[i].opt = &s->variant[i].opt;
		spec[i].o.compiler = row->compiler;
		spec[i].o.procs = row->procs;
		spec[i].o.sum = row->sum;
	}
	epochs_apart(c->cx, spec, s->variants);
	for (uint32_t i = 0; i < s->variants; i++) {
		bool there = !spec[i].why && spec[i].e.sum == row->sum;
		row->e[i] = there ? spec[i].e : (Epoch){ 0 };
		s->cycles += spec[i].why ? 0 : spec[i].e.total;
	}
}

/* In percent of the epoch with momentum and without the check; NaN: one of them is not to be had. */
static double added(const Row *row, uint32_t i)
{
	double plain = (double)row->e[PLAIN].total, with = (double)row->e[i].total;
	return plain > 0 && with > 0 ? 100 * (with - plain) / plain : NAN;
}

static void row_text(const Call *c, const Study *s, const Row *row)
{
	buf_printf(c->out, "%-8s %5u %-10s %12" PRIu64 " %12" PRIu64, compiler_names[row->compiler], row->procs,
	           sum_names[row->sum], row->e[PLAIN].total, row->e[PLAIN].update);
	for (uint32_t i = CHECKED; i < s->variants; i++) {
		int width = (int)strlen(s->variant[i].name) + 1;
		if (isfinite(added(row, i)))
			buf_printf(c->out, " %+*.2f", width, added(row, i));
		else
			buf_printf(c->out, " %*s", width, "-");
	}
	buf_puts(c->out, "\n");
}

static void row_json(const Call *c, const Study *s, const Row *row, bool first)
{
	buf_printf(c->out, "%s{\"compiler\": \"%s\", \"procs\": %u, \"sum\": \"%s\"", first ? "" : ", ",
	           compiler_names[row->compiler], row->procs, sum_names[row->sum]);
	for (uint32_t i = 0; i < s->variants; i++)
		if (row->e[i].total)
			buf_printf(c->out,
			           ", \"%s\": {\"epoch\": %" PRIu64 ", \"update\": %" PRIu64 ", \"calls\": %" PRIu64
			           ", \"percent\": %.4f}",
			           s->variant[i].name, row->e[i].total, row->e[i].update, row->e[i].update_calls, added(row, i));
	buf_puts(c->out, "}");
}

static void head_text(const Call *c, const Study *s)
{
	buf_printf(c->out,
	           "# %s: %.0f weights, %" PRIu64
	           " cases; cycles of an epoch and of its update with momentum; what the range check, or "
	           "another rule,\n# adds to the epoch, in percent\n",
	           s->plan->net->name, (double)s->plan->W, s->cases);
	buf_printf(c->out, "%-8s %5s %-10s %12s %12s", "compiler", "procs", "sum", "epoch", "update");
	for (uint32_t i = CHECKED; i < s->variants; i++)
		buf_printf(c->out, " %*s", (int)strlen(s->variant[i].name) + 1, s->variant[i].name);
	buf_puts(c->out, "\n");
}

/* ---- the command ---- */

/* Those of --procs; default a few, and all of the machine. */
static uint32_t procs_wanted(const Call *c, double **procs)
{
	static const double few[] = { 8, 64, 512 };
	uint32_t count = 0;
	if (c->procs)
		return procs_read(c, procs);
	*procs = NEW(&c->cx->scratch, COUNT(few) + 1, double);
	while (count < COUNT(few) && few[count] < (double)c->m->processors) {
		(*procs)[count] = few[count];
		count++;
	}
	(*procs)[count++] = (double)c->m->processors;
	return count;
}

void run_updates(Call *c)
{
	Study s = { .plan = plan_open(c->cx, c->operands ? c->operand[0] : NULL),
		        .cases = c->cases ? c->cases : NETTALK_CASES };
	int only = c->compiler ? choice_read(c->cx, "--compiler", c->compiler, compiler_names, 2) : -1;
	int only_sum = c->sum ? choice_read(c->cx, "--sum", c->sum, sum_names, SUMS) : -1;
	double *procs;
	uint32_t count = procs_wanted(c, &procs), rows = 0;
	variants_fill(&s);
	if (c->json) {
		json_begin(c);
		rules_json(c, &s);
		buf_puts(c->out, "\"rows\": [");
	} else {
		rules_text(c, &s);
		head_text(c, &s);
	}
	for (uint32_t i = 0; i < 2 * count * SUMS; i++) {
		Row row = { .compiler = (int)(i / SUMS / count),
			        .sum = (int)(i % SUMS),
			        .procs = (uint32_t)procs[i / SUMS % count] };
		if ((only >= 0 && row.compiler != only) || (only_sum >= 0 && row.sum != only_sum))
			continue;
		row_fill(c, &s, &row);
		if (!row.e[PLAIN].total)
			continue;
		if (c->json)
			row_json(c, &s, &row, !rows);
		else
			row_text(c, &s, &row);
		rows++;
	}
	buf_puts(c->out, c->json ? "], " : "");
	report_end(c, s.cycles, 0);
}
