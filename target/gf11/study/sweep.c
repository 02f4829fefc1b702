/* SPDX-License-Identifier: MIT */
/* microprop gf11 sweep. In: machine parameters or compiler options, each with its values. Out: a simulated epoch for
 * every combination, as a table, CSV or JSON (section 11). */
#include <math.h>
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

/* ---- the picture ---- */

enum { MAX_LINES = 24, MOST_TICKS = 10 };

/* The parameter along the axis: the first number with more than one value. */
static uint32_t axis_of(const CommandRun *c, const Sweep *s)
{
	uint32_t i = 0;
	while (i < c->operands && (s[i].names || s[i].count < 2))
		i++;
	if (i == c->operands)
		fail(c->cx, MP_BAD_INPUT, "sweep over several values of a number, such as procs=8..512:x2",
		     "--svg has no axis: no number with several values is swept");
	return i;
}

/* "sum ring, bundle 500": the other parameters of a line. */
static const char *line_label(const CommandRun *c, const Sweep *s, uint32_t axis, const uint32_t *at)
{
	Buf b = { .arena = &c->cx->scratch };
	for (uint32_t i = 0; i < c->operands; i++) {
		double v = s[i].value[at[i]];
		if (i == axis || s[i].count < 2)
			continue;
		buf_printf(&b, "%s%s ", b.len ? ", " : "", s[i].name);
		if (s[i].names)
			buf_puts(&b, s[i].names[(int)v]);
		else
			buf_printf(&b, "%.6g", v);
	}
	return b.len ? b.s : "simulated";
}

/* mcps: of every combination in the order of `advance`; NaN: it failed. */
static void sweep_svg(const CommandRun *c, const Sweep *s, const double *mcps, uint64_t runs)
{
	uint32_t axis = axis_of(c, s), points = s[axis].count, at[MAX_OPERANDS] = { 0 }, filled = 0;
	uint64_t lines = runs / points;
	if (lines > MAX_LINES)
		fail(c->cx, MP_BAD_INPUT, "sweep over fewer values of the other parameters",
		     "--svg would have %llu lines, more than %d", (unsigned long long)lines, MAX_LINES);
	Series *line = NEW(&c->cx->scratch, lines, Series);
	const double *x = s[axis].value;
	double low = x[0], high = x[0], top = 0;
	for (uint32_t i = 0; i < points; i++) {
		low = x[i] < low ? x[i] : low;
		high = x[i] > high ? x[i] : high;
	}
	uint64_t run = 0;
	do {
		uint64_t number = 0; /* of the line: the combination without the axis */
		for (uint32_t i = 0; i < c->operands; i++)
			number = i == axis ? number : number * s[i].count + at[i];
		Series *l = &line[number];
		if (!l->y) {
			*l = (Series){ line_label(c, s, axis, at),
				           plot_colours[filled % PLOT_COLOURS],
				           filled / PLOT_COLOURS % 2 ? MARK_DASHES : MARK_LINE,
				           x,
				           NEW(&c->cx->scratch, points, double),
				           points };
			filled++;
		}
		((double *)l->y)[at[axis]] = mcps[run];
		top = mcps[run] > top ? mcps[run] : top;
		run++;
	} while (advance(c, s, at));
	double x_tick[AXIS_TICKS], y_tick[AXIS_TICKS], *log_tick = NEW(&c->cx->scratch, points, double);
	Plot p = { .title = "simulated speed", .series = line, .count = (uint32_t)lines, .corner = LEGEND_BELOW };
	p.x.label = s[axis].row && *s[axis].row->unit ? draw_label(c->cx, "%s (%s)", s[axis].name, s[axis].row->unit)
	                                              : s[axis].name;
	axis_nice(&p.x, low, high, x_tick);
	if (low > 0 && high / low >= 20) {
		uint32_t step = (points + MOST_TICKS - 1) / MOST_TICKS, ticks = 0;
		for (uint32_t i = 0; i < points; i += step)
			log_tick[ticks++] = x[i];
		p.x = (Axis){ p.x.label, low, high, true, log_tick, ticks };
	}
	axis_nice(&p.y, 0, top, y_tick);
	p.y.label = "MCPS";
	Buf svg = { .arena = &c->cx->scratch };
	plot_svg(&p, &svg);
	svg_write(c, &svg);
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
	double *mcps = NEW(&c->cx->scratch, runs, double);
	uint64_t run = 0;
	if (c->svg)
		axis_of(c, s);
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
		mcps[run++] = spec.why ? NAN : spec.e.mcps;
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
	if (c->svg)
		sweep_svg(c, s, mcps, runs);
	report_end(c, cycles, 0);
}
