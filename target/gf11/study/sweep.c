/* SPDX-License-Identifier: MIT */
/* microprop gf11 sweep. In: machine parameters or compiler options, each with its values. Out: a simulated epoch for
 * every combination, as a table, CSV or JSON (section 11). */
#include <string.h>

#include "gf11_study.h"

enum { MAX_RUNS = 10000 };

typedef struct Sweep {
	const char *name;
	const MachineRow *row;    /* of the machine; NULL: an option */
	size_t at;                /* in BpOptions */
	const char *const *names; /* choices; NULL: a number */
	double *value;
	uint32_t count;
} Sweep;

typedef struct Swept {
	const char *name;
	size_t at;
	const char *const *names;
	int choices;
	double most;
} Swept;
static const Swept swept[] = {
	{ "procs", offsetof(BpOptions, procs), NULL, 0, 4096 },
	{ "bundle", offsetof(BpOptions, bundle), NULL, 0, 100000 },
	{ "update", offsetof(BpOptions, update), NULL, 0, 100000 },
	{ "group", offsetof(BpOptions, group), NULL, 0, 100000 },
	{ "ring", offsetof(BpOptions, ring), ring_names, RING_KINDS, 0 },
	{ "tree", offsetof(BpOptions, tree), tree_names, TREE_KINDS, 0 },
	{ "sum", offsetof(BpOptions, sum), sum_names, SUMS, 0 },
	{ "sigmoid", offsetof(BpOptions, sigmoid), sigmoid_names, 2, 0 },
	{ "compiler", offsetof(BpOptions, compiler), compiler_names, 2, 0 },
	{ "small-layers", offsetof(BpOptions, small), small_names, SMALLS, 0 },
};

/* ---- operands ---- */

static Sweep sweep_read(Ctx *cx, const char *word)
{
	const char *equals = strchr(word, '=');
	if (!equals || equals == word || !equals[1])
		fail(cx, MP_BAD_INPUT, "write NAME=FROM..TO, for instance alu-latency=5..25:5 or sum=tree,ring",
		     "'%s' does not say what to sweep over which values", word);
	Sweep s = { .name = arena_copy(&cx->scratch, word, (size_t)(equals - word)) };
	for (size_t i = 0; i < COUNT(swept); i++) {
		if (strcmp(swept[i].name, s.name) != 0)
			continue;
		const MachineRow row = { .low = 1, .high = swept[i].most };
		s.at = swept[i].at;
		s.names = swept[i].names;
		if (s.names) {
			s.value = NEW(&cx->scratch, strlen(equals), double);
			for (const char *p = equals + 1; p;) {
				const char *comma = strchr(p, ',');
				const char *one = arena_copy(&cx->scratch, p, comma ? (size_t)(comma - p) : strlen(p));
				s.value[s.count++] = choice_read(cx, s.name, one, s.names, swept[i].choices);
				p = comma ? comma + 1 : NULL;
			}
		} else
			s.count = range_read(cx, s.name, equals + 1, &row, &s.value);
		return s;
	}
	s.row = machine_row(s.name);
	if (s.row) {
		s.count = range_read(cx, s.name, equals + 1, s.row, &s.value);
		return s;
	}
	Buf list = { .arena = &cx->scratch };
	buf_puts(&list, "what can be swept:");
	for (size_t i = 0; i < COUNT(swept); i++)
		buf_printf(&list, " %s", swept[i].name);
	for (size_t i = 0; i < machine_row_count; i++)
		buf_printf(&list, " %s", machine_rows[i].name);
	fail(cx, MP_BAD_INPUT, list.s, "there is no parameter '%s'", s.name);
}

/* ---- one combination ---- */

/* The parser of machine files refuses inconsistent values. */
const Machine *machine_checked(Ctx *cx, const Machine *m)
{
	Buf text = { .arena = &cx->keep };
	Src *src = NEW(&cx->keep, 1, Src);
	machine_print(m, &text);
	*src = (Src){ .name = m->name, .text = text.s, .len = text.len };
	return machine_parse(cx, src);
}

typedef struct Combination {
	const CommandRun *c;
	const Sweep *s;
	const uint32_t *at;
	EpochSpec *spec;
} Combination;

static void combine(void *arg)
{
	const Combination *k = arg;
	const CommandRun *c = k->c;
	Machine m = *c->m;
	for (uint32_t i = 0; i < c->operands; i++) {
		const Sweep *s = &k->s[i];
		double v = s->value[k->at[i]];
		void *field = (char *)&k->spec->o + s->at;
		if (s->row)
			machine_put(&m, s->row, v);
		else if (s->names)
			*(int *)field = (int)v;
		else
			*(uint32_t *)field = (uint32_t)v;
	}
	k->spec->m = machine_checked(c->cx, &m);
}

/* ---- output ---- */

enum { PARTS = 8 };
static const Column part_columns[PARTS] = {
	{ "forward", "forward", .width = 11 }, { "backward", "backward", .width = 11 }, { "units", "units", .width = 11 },
	{ "memory", "memory", .width = 11 },   { "update", "update", .width = 11 },     { "host", "host", .width = 11 },
	{ "cycles", "cycles", .width = 11 },   { "mcps", "MCPS", 9, .format = "%.5g" },
};

static uint32_t columns_make(const CommandRun *c, const Sweep *s, Column *column)
{
	for (uint32_t i = 0; i < c->operands; i++)
		column[i] = (Column){ s[i].name, s[i].name, 12, "%.10g", .exact = "%.10g" };
	memcpy(column + c->operands, part_columns, sizeof part_columns);
	return c->operands + PARTS;
}

/* The next combination; the last parameter varies fastest. False: there is none. */
static bool advance(const CommandRun *c, const Sweep *s, uint32_t *at)
{
	for (uint32_t i = c->operands; i-- > 0; at[i] = 0)
		if (++at[i] < s[i].count)
			return true;
	return false;
}

void run_sweep(CommandRun *c)
{
	Sweep s[MAX_OPERANDS];
	uint32_t at[MAX_OPERANDS] = { 0 };
	uint64_t runs = 1, failed = 0, cycles = 0;
	const Plan *plan = plan_open(c->cx, c->net);
	Column column[MAX_OPERANDS + PARTS];
	for (uint32_t i = 0; i < c->operands; i++) {
		s[i] = sweep_read(c->cx, c->operand[i]);
		runs *= s[i].count;
		if (runs > MAX_RUNS)
			fail(c->cx, MP_BAD_INPUT, "sweep over fewer values", "more than %d combinations", MAX_RUNS);
	}
	Table t = report_table(c, column, columns_make(c, s, column));
	table_start(&t, "rows");
	do {
		EpochSpec spec = epoch_spec(c, plan, c->cases ? c->cases : NETTALK_CASES);
		Combination k = { c, s, at, &spec };
		if (c->procs)
			spec.o.procs = procs_one(c);
		spec.why = attempt(c->cx, combine, &k);
		if (!spec.why)
			epochs_isolated(c->cx, &spec, 1);
		failed += spec.why != NULL;
		cycles += spec.e.total;
		c->simulated += spec.why ? 0 : spec.e.seconds;
		const Epoch *e = &spec.e;
		TableCell cell[MAX_OPERANDS + PARTS], *part = cell + c->operands;
		const uint64_t parts[] = { e->forward, e->backward, e->units, e->moves, e->update, e->host, e->total };
		for (uint32_t j = 0; j < c->operands; j++) {
			double v = s[j].value[at[j]];
			cell[j] = s[j].names ? tc_text(s[j].names[(int)v]) : tc_real(v);
		}
		for (size_t j = 0; j < COUNT(parts); j++)
			part[j] = tc_count(parts[j]);
		part[COUNT(parts)] = tc_real(e->mcps);
		table_row_failed(&t, cell, spec.why ? c->operands : t.columns, "error", spec.why);
		if (failed == runs)
			fail(c->cx, MP_BAD_INPUT, "sweep over other values", "no combination works: %s", spec.why);
	} while (advance(c, s, at));
	table_end(&t);
	report_end(c, cycles, 0);
}
