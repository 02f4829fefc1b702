/* SPDX-License-Identifier: MIT */
/* microprop gf11 evaluate. In: networks, a machine. Out: the effect of each feature of the machine (section 11): an
 * epoch with only that feature changed, for both compilers, as speed relative to the standard machine; sorted by
 * effect; also as a tornado chart.
 *
 * Every figure is a simulated epoch, call by call. The summation method suits the machine: 1989 a tree, on a single
 * ring pipelined; best mode the fastest of all. A variant that is not possible is a row with the reason. Schedules are
 * heuristic: if a more capable machine gets a slower program, it runs the program of the less capable one. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gf11_study.h"

enum { COMPILERS = 2, MAX_SETS = 2 };
enum { RING = 1 << SUM_RING, TREE = 1 << SUM_TREE, PIPELINED = 1 << SUM_PIPELINED, HALVING = 1 << SUM_HALVING };

typedef struct Set {
	const char *name;
	double value;
} Set; /* a machine parameter */
typedef struct Variant {
	const char *feature, *value;
	Set set[MAX_SETS];
	unsigned methods; /* summation methods allowed; 0: those that suit the machine */
	double times;     /* factor for the number of processors; 0: unchanged */
	bool power2;      /* sigmoid by powers of two instead of the table */
} Variant;

/* Variants of a feature are adjacent; the first row is the standard machine. */
static const Variant variants[] = {
	{ "base", "", .times = 0 },
	{ "interconnection", "ring", .set = { { "ring-only", 1 } } },
	{ "interconnection", "ring, fixed", .set = { { "ring-only", 1 }, { "fixed-address", 1 } }, .power2 = true },
	{ "addresses", "fixed", .set = { { "fixed-address", 1 } }, .power2 = true },
	{ "sigmoid", "power2", .power2 = true },
	{ "summing", "ring", .methods = RING },
	{ "summing", "tree", .methods = TREE },
	{ "summing", "pipelined", .methods = PIPELINED },
	{ "summing", "halving", .methods = HALVING },
	{ "processors", "/4", .times = 0.25 },
	{ "processors", "/2", .times = 0.5 },
	{ "processors", "x2", .times = 2 },
	{ "registers", "64", .set = { { "registers", 64 } } },
	{ "registers", "128", .set = { { "registers", 128 } } },
	{ "registers", "512", .set = { { "registers", 512 } } },
	{ "pipeline depth", "1", .set = { { "alu-latency", 1 } } },
	{ "pipeline depth", "10", .set = { { "alu-latency", 10 } } },
	{ "pipeline depth", "50", .set = { { "alu-latency", 50 } } },
	{ "arithmetic", "half", .set = { { "alu-interval", 2 } } },
	{ "SRAM size", "4K", .set = { { "sram", 4096 } } },
	{ "SRAM size", "8K", .set = { { "sram", 8192 } } },
	{ "SRAM size", "64K", .set = { { "sram", 65536 } } },
	{ "SRAM size", "512K", .set = { { "sram", 524288 } } },
	{ "SRAM latency", "1", .set = { { "sram-latency", 1 }, { "lookup-latency", 2 } } },
	{ "SRAM latency", "16", .set = { { "sram-latency", 16 }, { "lookup-latency", 24 } } },
	{ "SRAM interval", "2", .set = { { "sram-interval", 2 } } },
	{ "DRAM interval", "1", .set = { { "dram-interval", 1 } } },
	{ "DRAM interval", "2", .set = { { "dram-interval", 2 } } },
	{ "DRAM interval", "8", .set = { { "dram-interval", 8 } } },
	{ "DRAM banks", "1", .set = { { "dram-banks", 1 } } },
	{ "DRAM banks", "2", .set = { { "dram-banks", 2 } } },
	{ "DRAM banks", "16", .set = { { "dram-banks", 16 } } },
	{ "banks and interval", "2, 8", .set = { { "dram-banks", 2 }, { "dram-interval", 8 } } },
	{ "banks and interval", "8, 2", .set = { { "dram-banks", 8 }, { "dram-interval", 2 } } },
	{ "banks and interval", "16, 1", .set = { { "dram-banks", 16 }, { "dram-interval", 1 } } },
	{ "DRAM latency", "4", .set = { { "dram-latency", 4 } } },
	{ "DRAM latency", "64", .set = { { "dram-latency", 64 } } },
	{ "switch interval", "1", .set = { { "switch-interval", 1 } } },
	{ "switch interval", "2", .set = { { "switch-interval", 2 } } },
	{ "switch interval", "8", .set = { { "switch-interval", 8 } } },
	{ "switch latency", "4", .set = { { "switch-latency", 4 } } },
	{ "switch latency", "80", .set = { { "switch-latency", 80 } } },
	{ "host call", "0", .set = { { "host-call", 0 } } },
	{ "host call", "1000", .set = { { "host-call", 1000 } } },
	{ "block", "5K", .set = { { "block", 5120 } } },
	{ "block", "80K", .set = { { "block", 81920 } } },
	{ "condition codes", "2", .set = { { "conditions", 2 } } },
};
enum { VARIANTS = COUNT(variants) };

/* ratio NaN: not available; program: index of the variant whose program runs */
typedef struct Result {
	Epoch e;
	double ratio;
	const char *why;
	uint32_t program;
	const Machine *m;
} Result;

typedef struct Feature {
	const char *name;
	uint32_t first, count;
	double effect;
} Feature; /* a range of variants */
/* Lowest and highest ratio to the base; value "": the base itself. */
typedef struct Extremes {
	double low, high;
	const char *low_value, *high_value;
} Extremes;

typedef struct Trial {
	const Plan *plan;
	const char *why; /* reason for this network */
	uint64_t cases;
	Result result[COMPILERS][VARIANTS];
	Feature feature[VARIANTS];
	uint32_t features; /* sorted by effect */
} Trial;

/* ---- one epoch ---- */

typedef struct Change {
	const CommandRun *c;
	const Variant *v;
	uint32_t *procs;
	const Machine *m;
} Change;

/* More processors than the machine has need a larger switch of the same kind. */
static void processors_times(Machine *m, double times, uint32_t *procs)
{
	*procs = (uint32_t)fmax(1, floor(*procs * times));
	if (*procs <= m->processors)
		return;
	m->processors = *procs;
	while (m->crossbar * m->crossbar < m->processors + m->disks)
		m->crossbar++;
	m->switch_ports = m->crossbar * m->crossbar;
}

static void change_make(void *arg)
{
	Change *k = arg;
	Machine *m = NEW(&k->c->cx->keep, 1, Machine);
	*m = *k->c->m;
	for (size_t i = 0; i < MAX_SETS && k->v->set[i].name; i++)
		machine_put(m, machine_row(k->v->set[i].name), k->v->set[i].value);
	if (k->v->times > 0)
		processors_times(m, k->v->times, k->procs);
	k->m = machine_checked(k->c->cx, m);
}

static unsigned methods_for(const Machine *m, int compiler)
{
	if (m->ring_only)
		return m->fixed_address ? RING : compiler == COMPILER_1989 ? PIPELINED : RING | PIPELINED;
	return compiler == COMPILER_1989 ? TREE : TREE | PIPELINED | HALVING;
}

static void variant_run(const CommandRun *c, const Trial *t, int compiler, const Variant *v, Result *r)
{
	EpochSpec s[SUMS];
	uint32_t count = 0, procs = procs_one(c);
	Change k = { c, v, &procs, NULL };
	r->why = attempt(c->cx, change_make, &k);
	if (r->why)
		return;
	unsigned methods = v->methods ? v->methods : methods_for(k.m, compiler);
	for (int sum = 0; sum < SUMS; sum++) {
		if (!(methods >> sum & 1))
			continue;
		s[count] = epoch_of(c, t->plan, t->cases, compiler, procs, sum);
		s[count].m = k.m;
		s[count++].o.sigmoid = v->power2 ? SIGMOID_POWER2 : SIGMOID_TABLE;
	}
	epochs_isolated(c->cx, s, count);
	r->m = k.m;
	/* The fastest; a method that fell back to another counts as the other. */
	for (uint32_t i = 0; i < count; i++) {
		bool done = !s[i].why && (!v->methods || s[i].e.sum == s[i].o.sum);
		if (done && (!r->e.total || s[i].e.total < r->e.total))
			r->e = s[i].e;
		else if (!done && !r->why)
			r->why = s[i].why ? s[i].why : "there are too few weights or processors for this method";
	}
	if (r->e.total)
		r->why = NULL;
}

/* ---- by feature ---- */

static bool compiler_shown(const CommandRun *c, int compiler)
{
	return !c->compiler || choice_read(c->cx, "--compiler", c->compiler, compiler_names, 2) == compiler;
}

static Extremes range_of(const Trial *t, int compiler, const Feature *f)
{
	Extremes r = { 1, 1, "", "" };
	for (uint32_t i = f->first; i < f->first + f->count; i++) {
		double ratio = t->result[compiler][i].ratio;
		if (ratio < r.low) {
			r.low = ratio;
			r.low_value = variants[i].value;
		}
		if (ratio > r.high) {
			r.high = ratio;
			r.high_value = variants[i].value;
		}
	}
	return r;
}

/* Parameters whose increase (more) or decrease keeps every schedule valid: a program runs in as many cycles.
 * Latencies are excluded: code may read the old word until the new one arrives. */
static const struct {
	size_t at;
	bool more;
} easing[] = {
	{ offsetof(Machine, registers), true },      { offsetof(Machine, conditions), true },
	{ offsetof(Machine, sram), true },           { offsetof(Machine, block), true },
	{ offsetof(Machine, microcode), true },      { offsetof(Machine, alu_interval), false },
	{ offsetof(Machine, sram_interval), false }, { offsetof(Machine, dram_interval), false },
	{ offsetof(Machine, dram_busy), false },     { offsetof(Machine, switch_interval), false },
};

static bool eases(const Machine *base, const Machine *m)
{
	bool more = false;
	for (size_t i = 0; i < machine_row_count; i++) {
		size_t at = machine_rows[i].offset, k = 0;
		if (memcmp((const char *)base + at, (const char *)m + at, sizeof(int64_t)) == 0)
			continue;
		while (k < COUNT(easing) && easing[k].at != at)
			k++;
		if (k == COUNT(easing))
			return false;
		int64_t was = *(const int64_t *)((const char *)base + at), is = *(const int64_t *)((const char *)m + at);
		if (easing[k].more ? is < was : is > was)
			return false;
		more = true;
	}
	return more;
}

/* Differs from the base by its machine alone. */
static bool is_plain(const Variant *v) { return !v->methods && !v->power2 && !(v->times > 0); }

/* A more capable machine runs the program of another variant if its own is slower. */
static void take_programs(Result *result)
{
	Result own[VARIANTS];
	memcpy(own, result, sizeof own);
	for (uint32_t i = 0; i < VARIANTS; i++) {
		for (uint32_t j = 0; j < VARIANTS; j++) {
			bool runs =
				is_plain(&variants[i]) && is_plain(&variants[j]) && own[i].m && own[j].m && eases(own[j].m, own[i].m);
			if (!runs || !own[j].e.total || (result[i].e.total && result[i].e.total <= own[j].e.total))
				continue;
			result[i].e = own[j].e;
			result[i].program = j;
			result[i].why = NULL;
		}
	}
}

static uint64_t trial_run(const CommandRun *c, Trial *t)
{
	uint64_t cycles = 0;
	for (int compiler = 0; compiler < COMPILERS; compiler++) {
		Result *result = t->result[compiler];
		for (uint32_t i = 0; i < VARIANTS; i++) {
			result[i] = (Result){ .ratio = NAN, .program = i };
			if (compiler_shown(c, compiler))
				variant_run(c, t, compiler, &variants[i], &result[i]);
			cycles += result[i].e.total;
		}
		take_programs(result);
		for (uint32_t i = 0; i < VARIANTS; i++)
			if (result[i].e.total && result[0].e.total)
				result[i].ratio = result[i].e.mcps / result[0].e.mcps;
	}
	/* Stable insertion sort by effect, strongest first. */
	for (uint32_t i = 1; i < VARIANTS; i++) {
		if (t->features && strcmp(t->feature[t->features - 1].name, variants[i].feature) == 0)
			t->feature[t->features - 1].count++;
		else
			t->feature[t->features++] = (Feature){ variants[i].feature, i, 1, 0 };
	}
	for (uint32_t i = 0; i < t->features; i++) {
		Feature f = t->feature[i];
		for (int compiler = 0; compiler < COMPILERS; compiler++) {
			Extremes r = range_of(t, compiler, &f);
			f.effect = fmax(f.effect, r.high / r.low);
		}
		uint32_t at = i;
		for (; at > 0 && t->feature[at - 1].effect < f.effect; at--)
			t->feature[at] = t->feature[at - 1];
		t->feature[at] = f;
	}
	return cycles;
}

/* ---- text ---- */

static double percent(uint64_t part, uint64_t whole) { return 100 * share_of(part, whole); }

static void base_text(const CommandRun *c, const Result *r, int compiler)
{
	const Epoch *e = &r->e;
	uint64_t work = e->total - e->host;
	if (r->why) {
		buf_printf(c->text, "# %s: %s\n", compiler_names[compiler], r->why);
		return;
	}
	buf_printf(c->text,
	           "# %s: %.1f MCPS, sum %s; cycles: forward %.1f %%, backward %.1f, units %.1f, memory %.1f, update %.1f, "
	           "host %.1f;\n#   of the processors' cycles %.1f %% add, %.1f multiply, %.2f select; %.2f look up\n",
	           compiler_names[compiler], e->mcps, sum_names[e->sum], percent(e->forward, e->total),
	           percent(e->backward, e->total), percent(e->units, e->total), percent(e->moves, e->total),
	           percent(e->update, e->total), percent(e->host, e->total), percent(e->adds, work),
	           percent(e->multiplies, work), percent(e->choices, work), percent(e->own, work));
}

/* A row for each variant, three columns for each compiler. */
static void trial_text(const CommandRun *c, const Trial *t, uint32_t procs)
{
	enum { HEAD = 2, EACH = 3 };
	Column column[HEAD + EACH * COMPILERS + 1] = { { .title = "feature", .width = -18 },
		                                           { .title = "value", .width = -11 } };
	Table table = text_table(c, column, HEAD);
	buf_printf(c->text, "# %s: %" PRIu64 " weights, %" PRIu64 " cases, %u processors; %s\n",
	           text_escaped(c->text->arena, t->plan->net->name), t->plan->W, t->cases, procs, t->why);
	for (int compiler = 0; compiler < COMPILERS; compiler++) {
		if (!compiler_shown(c, compiler))
			continue;
		base_text(c, &t->result[compiler][0], compiler);
		column[table.columns++] = (Column){ .title = compiler_names[compiler], .width = 9, .format = "%.1f" };
		column[table.columns++] = (Column){ .title = "ratio", .width = 7, .format = "%.3f" };
		column[table.columns++] = (Column){ .title = "sum", .width = -9 };
	}
	column[table.columns++] = (Column){ .title = "" };
	table_start(&table, NULL);
	for (uint32_t k = 0; k < t->features; k++) {
		const Feature *f = &t->feature[k];
		for (uint32_t i = f->first; i < f->first + f->count; i++) {
			TableCell cell[COUNT(column)] = { tc_text(i == f->first ? f->name : ""), tc_text(variants[i].value) };
			Buf why = { .arena = &c->cx->scratch };
			uint32_t n = HEAD;
			buf_puts(&why, "");
			for (int compiler = 0; compiler < COMPILERS; compiler++) {
				const Result *r = &t->result[compiler][i];
				if (!compiler_shown(c, compiler))
					continue;
				cell[n++] = r->e.total ? tc_real(r->e.mcps) : tc_none();
				cell[n++] = r->e.total ? tc_real(r->ratio) : tc_none();
				cell[n++] = r->e.total ? tc_text(sum_names[r->e.sum]) : tc_none();
				if (r->why)
					buf_printf(&why, " %s: %s", compiler_names[compiler], r->why);
			}
			cell[n] = tc_text(why.s);
			table_row(&table, cell);
		}
	}
	buf_puts(c->text, "\n");
}

/* ---- JSON, CSV, SVG ---- */

static const Column row_columns[] = {
	{ .key = "network" },    { .key = "compiler" }, { .key = "feature" },       { .key = "value" },
	{ .key = "sum" },        { .key = "mcps" },     { .key = "program_of" },    { "ratio", .exact = "%.5g" },
	{ .key = "cycles" },     { .key = "forward" },  { .key = "backward" },      { .key = "units" },
	{ .key = "memory" },     { .key = "update" },   { .key = "host" },          { .key = "adds" },
	{ .key = "multiplies" }, { .key = "choices" },  { .key = "own_addresses" },
};

static const Column csv_columns[] = {
	{ .key = "network" }, { .key = "compiler" }, { .key = "feature" },         { .key = "value" },
	{ .key = "sum" },     { .key = "mcps" },     { "ratio", .exact = "%.5g" }, { .key = "cycles" },
};

static void row_print(const CommandRun *c, const Table *table, const Table *csv, const Trial *t, int compiler,
                      uint32_t i)
{
	const Result *r = &t->result[compiler][i];
	const Epoch *e = &r->e;
	Buf program = { .arena = &c->cx->scratch };
	buf_printf(&program, "%s %s", variants[r->program].feature, variants[r->program].value);
	const TableCell cell[COUNT(row_columns)] = {
		tc_text(t->plan->net->name),
		tc_text(compiler_names[compiler]),
		tc_text(variants[i].feature),
		tc_text(variants[i].value),
		tc_text(sum_names[e->sum]),
		tc_real(e->mcps),
		r->program != i ? tc_text(program.s) : tc_none(),
		isfinite(r->ratio) ? tc_real(r->ratio) : tc_none(),
		tc_count(e->total),
		tc_count(e->forward),
		tc_count(e->backward),
		tc_count(e->units),
		tc_count(e->moves),
		tc_count(e->update),
		tc_count(e->host),
		tc_count(e->adds),
		tc_count(e->multiplies),
		tc_count(e->choices),
		tc_count(e->own),
	};
	table_row_failed(table, cell, e->total ? table->columns : 4, "error", e->total ? NULL : r->why);
	if (e->total)
		table_row(csv, (TableCell[]){ cell[0], cell[1], cell[2], cell[3], cell[4], cell[5], cell[7], cell[8] });
}

/* Rows of all trials to JSON and to csv. */
static void rows_print(const CommandRun *c, const Trial *t, uint32_t trials, Buf *csv)
{
	Table table = json_table(c, row_columns, COUNT(row_columns));
	const Table brief = { .column = csv_columns, .columns = COUNT(csv_columns), .csv = csv };
	table_start(&table, "rows");
	table_start(&brief, NULL);
	for (uint32_t i = 0; i < trials * COMPILERS * VARIANTS; i++) {
		int compiler = (int)(i / VARIANTS % COMPILERS);
		if (compiler_shown(c, compiler))
			row_print(c, &table, &brief, &t[i / (COMPILERS * VARIANTS)], compiler, i % VARIANTS);
	}
	table_end(&table);
}

static void tornado_print(const CommandRun *c, const Trial *t, uint32_t trials)
{
	static const Column columns[] = {
		{ .key = "network" },   { .key = "compiler" },       { .key = "feature" },    { "low", .exact = "%.5g" },
		{ .key = "low_value" }, { "high", .exact = "%.5g" }, { .key = "high_value" },
	};
	Table table = json_table(c, columns, COUNT(columns));
	table_start(&table, "tornado");
	for (uint32_t n = 0; n < trials * COMPILERS; n++) {
		const Trial *v = &t[n / COMPILERS];
		int compiler = (int)(n % COMPILERS);
		for (uint32_t k = 0; k < v->features && compiler_shown(c, compiler); k++) {
			Extremes r = range_of(v, compiler, &v->feature[k]);
			table_row(&table, (TableCell[]){ tc_text(v->plan->net->name), tc_text(compiler_names[compiler]),
			                                 tc_text(v->feature[k].name), tc_real(r.low), tc_text(r.low_value),
			                                 tc_real(r.high), tc_text(r.high_value) });
		}
	}
	table_end(&table);
}

static void draw(const CommandRun *c, const Trial *t, uint32_t number)
{
	Arena *a = &c->cx->scratch;
	Buf title = { .arena = a }, svg = { .arena = a }, name = { .arena = a };
	TornadoBar *bar = NEW(a, t->features, TornadoBar);
	for (uint32_t k = 0; k < t->features; k++) {
		bar[k].label = t->feature[k].name;
		for (int compiler = 0; compiler < COMPILERS; compiler++) {
			Extremes r = range_of(t, compiler, &t->feature[k]);
			bar[k].end[compiler] = (TornadoEnd){ r.low, r.high, r.low_value, r.high_value };
		}
	}
	buf_printf(&title, "Effect of machine features: %s", t->plan->net->name);
	buf_printf(&name, "tornado-%u", number + 1);
	const Tornado tornado = { title.s,
		                      "Speed relative to the standard machine",
		                      { "compiler 1989", "compiler best" },
		                      { PLOT_ORANGE, PLOT_BLUE },
		                      bar,
		                      t->features };
	tornado_svg(&tornado, &svg);
	figure_write(c, name.s, "svg", &svg);
}

/* ---- the command ---- */

static const struct {
	uint32_t shape[3];
	uint64_t cases;
	const char *why;
} usual[] = {
	{ { 203, 60, 26 }, NETTALK_CASES, "NETtalk, the report's own" },
	{ { 784, 120, 10 }, 60000, "many weights, so that few cases fit beside them; and a small output layer" },
	{ { 64, 8, 64 }, 20000, "a small layer, which does not fill the pipeline, and few weights" },
};

static uint32_t trials_open(const CommandRun *c, Trial **out)
{
	uint32_t count = c->operands ? c->operands : COUNT(usual);
	Trial *t = *out = NEW(&c->cx->keep, count, Trial);
	for (uint32_t i = 0; i < count; i++) {
		if (c->operands)
			t[i] = (Trial){ .plan = plan_open(c->cx, c->operand[i]), .why = "as asked for", .cases = NETTALK_CASES };
		else
			t[i] = (Trial){ .plan = plan_layers(c->cx, usual[i].shape[0], usual[i].shape[1], usual[i].shape[2]),
				            .why = usual[i].why,
				            .cases = usual[i].cases };
		if (c->cases)
			t[i].cases = c->cases;
	}
	return count;
}

void run_evaluate(CommandRun *c)
{
	Trial *t;
	uint32_t trials = trials_open(c, &t), procs = procs_one(c);
	uint64_t cycles = 0;
	if (c->write)
		folder_make(c);
	for (uint32_t i = 0; i < trials; i++)
		cycles += trial_run(c, &t[i]);
	Buf csv = { .arena = &c->cx->scratch };
	static const Column columns[] = {
		{ .key = "network" }, { .key = "weights" }, { .key = "cases" }, { .key = "why" }
	};
	Table table = json_table(c, columns, COUNT(columns));
	jw_count(c->json, "procs", procs);
	table_start(&table, "networks");
	for (uint32_t n = 0; n < trials; n++) {
		table_row(&table, (TableCell[]){ tc_text(t[n].plan->net->name), tc_count(t[n].plan->W), tc_count(t[n].cases),
		                                 tc_text(t[n].why) });
		trial_text(c, &t[n], procs);
	}
	table_end(&table);
	rows_print(c, t, trials, &csv);
	tornado_print(c, t, trials);
	if (c->write) {
		jw_start(c->json, "files", '[');
		figure_write(c, "evaluate", "csv", &csv);
		for (uint32_t i = 0; i < trials; i++)
			draw(c, &t[i], i);
		jw_end(c->json, ']');
	}
	report_end(c, cycles, 0);
}
