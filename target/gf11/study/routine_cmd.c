/* SPDX-License-Identifier: MIT */
/* microprop gf11 efficiency --routines | microcode | schedule | trace | run. In: the name of a library routine, a file
 * of microcode or of operations. Out: quality of the schedule, microcode, a trace, the result of a run. Each routine
 * runs once: reported cycles are simulated ones. */
#include <inttypes.h>
#include <string.h>

#include "gf11_study.h"

static Routine *operand_make(const CommandRun *c)
{
	return routine_open(c->cx, c->m, c->operand[0], (int)c->level, NULL);
}

static uint64_t account_cycles(const Controller *k) { return k->account.cycles + k->account.call_cycles; }

static uint64_t run_once(Runner *w, const Routine *r)
{
	Controller *k = runner_load(w, r);
	controller_call(k, 0);
	return account_cycles(k);
}

static Runner *runner_whole(const CommandRun *c) { return runner_new(c->cx, c->m, (uint32_t)c->m->processors, 1); }

/* ---- efficiency ---- */

/* For a file of microcode the bounds are not known: nothing was recorded. */
enum { ROUTINE_COLUMNS = 16 };
static const Column routine_columns[ROUTINE_COLUMNS] = {
	{ "name", "routine", .width = -15 },
	{ "operations", "operations", .width = 10 },
	{ "cycles", "cycles", .width = 7 },
	{ "bound", "bound", .width = 7 },
	{ "percent_of_bound", "% of it ", 9, "%.2f", .exact = "%.2f" },
	{ "seed_metric", "report's %", 10, "%.1f", "%.4f", .percent = true },
	{ "in_order", "in order %", 10, "%.1f", "%.4f", .percent = true },
	{ "registers", "registers", .width = 9 },
	{ "spills", "spills", .width = 6 },
	{ .key = "optimal" },
	{ .key = "bound_resource" },
	{ .key = "bound_path" },
	{ .key = "bound_hrt" },
	{ "seconds", NULL, .exact = "%.6f" },
	{ "checked", "checked", .width = -8 },
	{ .title = "" },
};

static void routine_cells(const Routine *r, const char *about, TableCell *cell)
{
	const Report *p = &r->report;
	const TableCell all[ROUTINE_COLUMNS] = {
		tc_text(r->name),
		tc_count(p->operations),
		tc_count(p->cycles),
		tc_count(p->bound),
		tc_marked(tc_real(100.0 * p->bound / p->cycles), p->optimal ? '*' : ' '),
		tc_real(p->report_measure),
		p->in_order ? tc_real(p->report_measure * p->cycles / p->in_order) : tc_none(),
		tc_count(p->registers),
		tc_count(p->spills),
		tc_flag(p->optimal),
		tc_count(p->bound_resource),
		tc_count(p->bound_path),
		tc_count(p->bound_hrt),
		tc_real(p->seconds),
		tc_flag(p->checked),
		tc_text(about),
	};
	memcpy(cell, all, sizeof all);
	for (int i = 3; i < 14 && !r->code; i++)
		cell[i] = tc_none();
}

static void routine_json(const CommandRun *c, const Routine *r)
{
	TableCell cell[ROUTINE_COLUMNS];
	const Table t = json_table(c, routine_columns, ROUTINE_COLUMNS);
	routine_cells(r, NULL, cell);
	jw_start(c->json, "routine", '{');
	table_members(&t, cell);
	jw_end(c->json, '}');
}

typedef struct Row {
	const CommandRun *c;
	const RoutineDef *def;
	Runner *w;
	const Routine *r;
	uint64_t cycles;
	const char *error; /* NULL: made and run */
} Row;

static void row_make(void *arg)
{
	Row *row = arg;
	row->r = routine_make(row->c->cx, row->c->m, row->def, (int)row->c->level);
	row->cycles = run_once(row->w, row->r);
}

/* Strips the routine's name, which the row already has, from the message. */
static const char *row_error(const Row *row)
{
	size_t len = strlen(row->def->name);
	bool named = strncmp(row->error, row->def->name, len) == 0 && strncmp(row->error + len, ": ", 2) == 0;
	return row->error + (named ? len + 2 : 0);
}

void run_routines(CommandRun *c)
{
	uint64_t cycles = 0;
	uint32_t failed = 0;
	Runner *w = runner_whole(c);
	Table t = report_table(c, routine_columns, ROUTINE_COLUMNS);
	table_start(&t, "routines");
	for (size_t i = 0; i < routine_def_count; i++) {
		Row row = { .c = c, .def = &routine_defs[i], .w = w };
		row.error = attempt(c->cx, row_make, &row);
		failed += row.error != NULL;
		cycles += row.cycles;
		TableCell cell[ROUTINE_COLUMNS] = { tc_text(row.def->name) };
		if (!row.error)
			routine_cells(row.r, row.def->about, cell);
		table_row_failed(&t, cell, row.error ? 1 : t.columns, "error", row.error ? row_error(&row) : NULL);
	}
	table_end(&t);
	buf_puts(c->text, "\n# bound: no schedule is shorter; *: proven that none is shorter than this one\n"
	                  "# report's %: cycles that issue an add or a multiply; for exchanges, those the switch needs "
	                  "(section 6.2.2)\n");
	report_end(c, cycles, 0);
	if (failed) {
		Buf why = { .arena = &c->cx->scratch };
		buf_printf(&why, "%u of %zu routines do not run on %s", failed, routine_def_count, c->m->name);
		c->failure = why.s;
		c->remedy = "see the report, and use a machine file with more of what is short";
	}
}

/* ---- microcode, trace ---- */

static bool address_same(Addr a, Addr b) { return a.base == b.base && a.off == b.off; }

static bool micro_same(const Micro *a, const Micro *b)
{
	unsigned uses = a->op == GOP_NONE ? 0 : forms[ops[a->op].form].uses;
	return a->op == b->op && (!(uses & USES_DST) || a->dst == b->dst) && (!(uses & USES_A) || a->a == b->a) &&
	       (!(uses & USES_B) || a->b == b->b) && (!(uses & (READS_CC | WRITES_CC)) || a->cc == b->cc) &&
	       (!(uses & USES_MEM) || address_same(a->mem, b->mem)) &&
	       (!(uses & USES_FAR) || address_same(a->far, b->far)) && (!(uses & USES_K) || a->k.u == b->k.u) &&
	       (a->op == GOP_NONE || a->rec == b->rec);
}

/* Text of a routine, checked to assemble back to the same words. */
static const char *text_make(const CommandRun *c, const Routine *r, size_t *len)
{
	Buf text = { .arena = &c->cx->keep };
	microcode_print(c->m, r, &text);
	const Src src = { .name = "microcode", .text = text.s, .len = text.len };
	const Routine *again = microcode_parse(c->cx, c->m, &src);
	bool same = again->lines == r->lines && again->update == r->update;
	for (uint32_t t = 0; same && t < r->lines; t++)
		for (uint32_t unit = 0; unit < UNITS; unit++)
			same &= micro_same(&r->line[t].slot[unit], &again->line[t].slot[unit]);
	if (!same)
		fail(c->cx, MP_FAILED, "this is a fault of the assembler, please report it",
		     "%s: the text does not assemble back to the same words", r->name);
	*len = text.len;
	return text.s;
}

static void draw_schedule(const CommandRun *c, const Routine *r)
{
	Buf svg = { .arena = &c->cx->scratch };
	if (!c->svg && c->dependences)
		fail(c->cx, MP_BAD_INPUT, "name a file with --svg", "--dependences are drawn where?");
	if (!c->svg)
		return;
	schedule_svg(c->cx, c->m, r, c->dependences, &svg);
	svg_write(c, &svg);
}

/* The operations that a routine was scheduled from, in program order. */
static void print_operations(CommandRun *c)
{
	const RoutineDef *def = routine_find(c->operand[0]);
	const Code *code = def ? routine_record(c->cx, c->m, def)
	                       : operations_parse(c->cx, c->m, src_open(c->cx, &c->cx->keep, c->operand[0]));
	Buf text = { .arena = &c->cx->scratch };
	operations_print(c->m, code, &text);
	buf_add(c->text, text.s, text.len);
	jw_text(c->json, "name", code->name);
	jw_text(c->json, "operations", text.s);
}

/* Without an operand: the routines of the library. */
static void routines_list(CommandRun *c)
{
	static const Column columns[] = { { "name", "routine", .width = -18 },
		                              { "about", "what it computes", .width = -1 } };
	const Table t = report_table(c, columns, COUNT(columns));
	table_start(&t, "routines");
	for (size_t i = 0; i < routine_def_count; i++)
		table_row(&t, (const TableCell[]){ tc_text(routine_defs[i].name), tc_text(routine_defs[i].about) });
	table_end(&t);
}

void run_microcode(CommandRun *c)
{
	size_t len;
	if (!c->operands || c->operations) {
		(c->operands ? print_operations : routines_list)(c);
		return;
	}
	const Routine *r = operand_make(c);
	const char *text = text_make(c, r, &len);
	buf_add(c->text, text, len);
	buf_puts(c->text, "\n# assembles back to the same words\n");
	routine_json(c, r);
	jw_text(c->json, "microcode", text);
	jw_flag(c->json, "assembles_back", true);
	draw_schedule(c, r);
	report_end(c, run_once(runner_whole(c), r), 0);
}

void run_schedule(CommandRun *c)
{
	size_t len;
	Code *code = operations_parse(c->cx, c->m, src_open(c->cx, &c->cx->keep, c->operand[0]));
	const Routine *r = routine_schedule(c->cx, c->m, code, (int)c->level);
	const char *text = text_make(c, r, &len);
	const Report *p = &r->report;
	buf_add(c->text, text, len);
	buf_printf(c->text, "\n# %u operations in %u cycles; in program order they would take %u\n", p->operations,
	           p->cycles, p->in_order);
	buf_printf(c->text,
	           p->optimal ? "# no schedule is shorter\n"
	                      : "# no schedule is shorter than %u cycles; --level %u searches longer\n",
	           p->bound, (unsigned)min_u64(c->level + 1, 9));
	buf_puts(c->text, "# checked: it obeys every rule of the machine and computes what the operations say\n");
	routine_json(c, r);
	jw_text(c->json, "microcode", text);
	jw_flag(c->json, "assembles_back", true);
	draw_schedule(c, r);
}

static void issue_count(void *user, const TraceEvent *e)
{
	(void)e;
	++*(uint64_t *)user;
}

void run_trace(CommandRun *c)
{
	const struct {
		const char *name, *path;
		void (*write)(Ctx *, const Machine *, const Routine *, const char *);
	} traces[] = {
		{ "kanata", c->kanata, trace_kanata },
		{ "chrome", c->chrome, trace_chrome },
	};
	if (!c->kanata && !c->chrome && !c->svg)
		fail(c->cx, MP_BAD_INPUT,
		     "write --kanata FILE (opens in Konata), --chrome FILE (opens in Perfetto) or --svg FILE (a picture)",
		     "trace to where?");
	const Routine *r = operand_make(c);
	Controller *k = runner_load(runner_whole(c), r);
	uint64_t issued = 0;
	k->traced = true;
	k->trace = issue_count;
	k->trace_user = &issued;
	controller_call(k, 0);
	buf_printf(c->text, "%s: %" PRIu64 " operations issued in %" PRIu64 " cycles\n", r->name, issued,
	           k->account.cycles);
	routine_json(c, r);
	jw_count(c->json, "issued", issued);
	for (size_t i = 0; i < COUNT(traces); i++) {
		if (!traces[i].path)
			continue;
		traces[i].write(c->cx, c->m, r, traces[i].path);
		jw_text(c->json, traces[i].name, traces[i].path);
		buf_printf(c->text, "wrote %s\n", text_escaped(c->text->arena, traces[i].path));
	}
	if (c->svg) {
		Buf svg = { .arena = &c->cx->scratch };
		pipeline_svg(c->cx, c->m, r, &svg);
		svg_write(c, &svg);
		buf_printf(c->text, "wrote %s\n", text_escaped(c->text->arena, c->svg));
	}
	report_end(c, account_cycles(k), 0);
}

/* ---- run ---- */

/* Executes the recorded calls directly: no microcode, no cycles. */
static void simulate(const CommandRun *c, const Workbench *b, const RoutineDef *def)
{
	Gen *g = gen_simulate(c->cx, b->w->p, b->k->base);
	if (def)
		def->make(g, def->size);
	else
		gen_replay(g, b->r->code);
	gen_end(g);
}

/* Only the traced run keeps registers and conditions where they can be set and seen. */
static bool needs_registers(const CommandRun *c, const Place *show, const Workbench *b)
{
	bool needed = false;
	for (size_t i = 0; i < c->shows + c->sets; i++) {
		int memory = i < c->shows ? show[i].memory : b->set[i - c->shows].place.memory;
		needed |= memory == IN_REG || memory == PLACE_COND;
	}
	return needed;
}

static void show_places(const CommandRun *c, Workbench *b, const Place *show)
{
	if (!c->shows)
		return;
	jw_start(c->json, "show", '[');
	for (size_t i = 0; i < c->shows; i++)
		bench_show(b, &show[i], c->text, c->json);
	jw_end(c->json, ']');
}

void run_run(CommandRun *c)
{
	static const char *const fills[] = { "random", "zero" };
	const RoutineDef *def = routine_find(c->operand[0]);
	if (c->simulate && c->traced)
		fail(c->cx, MP_BAD_INPUT, "leave one of the two out", "is it to run --traced or to --simulate?");
	c->used = procs_one(c);
	Place *show = NEW(&c->cx->scratch, c->shows + 1, Place);
	for (size_t i = 0; i < c->shows; i++)
		show[i] = place_read(c->cx, c->m, c->used, "--show", c->show[i]);
	const WorkbenchSpec spec = { .m = c->m,
		                         .procs = c->used,
		                         .threads = threads_of(c),
		                         .level = (int)c->level,
		                         .zero = c->fill && choice_read(c->cx, "--fill", c->fill, fills, 2) == 1,
		                         .set = c->set,
		                         .base = c->base,
		                         .route = c->route,
		                         .sets = c->sets,
		                         .bases = c->bases,
		                         .routes = c->routes };
	Workbench *b = bench_open(c->cx, c->operand[0], NULL, &spec);
	const Routine *r = b->r;
	Controller *k = b->k;
	bool registers = needs_registers(c, show, b);
	if (c->simulate && !r->code)
		fail(c->cx, MP_BAD_INPUT, "leave --simulate out, or name a routine of the library or a file of operations",
		     "%s is microcode: it has no recorded calls that could be executed at once", c->operand[0]);
	if (c->simulate && registers)
		fail(c->cx, MP_BAD_INPUT, "leave --simulate out, or show memory only",
		     "recorded calls executed directly use no registers of the machine");
	k->traced = c->traced || registers;
	const char *mode = c->simulate ? "simulated" : k->traced ? "traced" : "fast";
	double start = clock_seconds();
	if (c->simulate)
		simulate(c, b, def);
	else
		controller_call(k, 0);
	double took = clock_seconds() - start;
	const Account *a = &k->account;
	Buf checksum = { .arena = &c->cx->scratch };
	buf_printf(&checksum, "%016" PRIx64, runner_checksum(b->w));
	routine_json(c, r);
	jw_text(c->json, "mode", mode);
	jw_count(c->json, "threads", b->w->p->threads);
	jw_count(c->json, "calls", a->calls);
	jw_count(c->json, "routine_cycles", a->cycles);
	jw_count(c->json, "call_cycles", a->call_cycles);
	jw_count(c->json, "host_words", a->host_words);
	jw_real(c->json, "host_word_seconds", NULL, a->host_seconds);
	jw_real(c->json, "execution_seconds", "%.6f", took);
	jw_text(c->json, "checksum", checksum.s);
	if (c->shows) {
		Buf none = { .arena = &c->cx->scratch }, *text = c->text;
		buf_printf(c->text, "%s on %s: ", r->name, c->m->name);
		if (c->simulate)
			buf_puts(c->text, "executed in program order\n");
		else
			buf_printf(c->text, "%" PRIu64 " cycles\n", a->cycles);
		show_places(c, b, show);
		c->text = &none; /* values are the whole report */
		report_end(c, account_cycles(k), 0);
		c->text = text;
		return;
	}
	buf_printf(c->text, "%s on %s, %s, %u thread%s\n", r->name, c->m->name, mode, b->w->p->threads,
	           b->w->p->threads == 1 ? "" : "s");
	account_print(k, took, c->text);
	buf_printf(c->text, "checksum of memory    %s\n", checksum.s);
	report_end(c, account_cycles(k), 0);
}

/* ---- ops ---- */

/* What memory and switch operations do; the others are expressions of ops.def. */
static const char *meaning_of(int op)
{
	static const char *const moves[FORMS] = {
		[FORM_LOAD] = "dst = sram[m]",         [FORM_STORE] = "sram[m] = a",       [FORM_LOOKUP] = "dst = sram[m + a]",
		[FORM_PUT] = "sram[m + b] = a",        [FORM_FETCH] = "sram[m] = dram[f]", [FORM_FLUSH] = "dram[f] = sram[m]",
		[FORM_XFER] = "dst = a of the sender",
	};
	const char *meaning = ops[op].meaning;
	return moves[ops[op].form] ? moves[ops[op].form] : strncmp(meaning, "cell_", 5) == 0 ? meaning + 5 : meaning;
}

static const char *form_name(int form)
{
	static const char *const names[FORMS] = {
		[FORM_RR] = "RR",         [FORM_R] = "R",     [FORM_CMP] = "CMP",     [FORM_SELECT] = "SELECT",
		[FORM_MASKED] = "MASKED", [FORM_IMM] = "IMM", [FORM_LOAD] = "LOAD",   [FORM_STORE] = "STORE",
		[FORM_LOOKUP] = "LOOKUP", [FORM_PUT] = "PUT", [FORM_FETCH] = "FETCH", [FORM_FLUSH] = "FLUSH",
		[FORM_XFER] = "XFER",
	};
	return names[form];
}

static const char *latency_name(int op)
{
	for (size_t i = 0; i < machine_row_count; i++)
		if (machine_rows[i].offset == ops[op].latency)
			return machine_rows[i].name;
	return NULL;
}

static bool op_wanted(const CommandRun *c, int op)
{
	for (uint32_t i = 0; i < c->operands; i++)
		if (strcmp(c->operand[i], ops[op].name) == 0 || strcmp(c->operand[i], unit_names[ops[op].unit]) == 0)
			return true;
	return !c->operands;
}

static void check_wanted(const CommandRun *c)
{
	const char *names[GOPS + UNITS];
	for (int i = 0; i < GOPS + UNITS; i++)
		names[i] = i < GOPS ? ops[i].name : unit_names[i - GOPS];
	for (uint32_t i = 0; i < c->operands; i++) {
		size_t k = 0;
		while (k < COUNT(names) && strcmp(c->operand[i], names[k]) != 0)
			k++;
		const char *near = k < COUNT(names) ? NULL : nearest_name(c->operand[i], names, COUNT(names));
		if (k == COUNT(names))
			fail(c->cx, MP_BAD_INPUT, "gf11 ops lists all of them; alu, port, dram and switch are the units",
			     near ? "there is no operation or unit '%s'; did you mean '%s'?" : "there is no operation or unit '%s'",
			     c->operand[i], near);
	}
}

void run_ops(CommandRun *c)
{
	static const Column columns[] = {
		{ "name", "name", .width = -7 },
		{ "operation", "form", .width = -29 },
		{ "unit", "unit", .width = -7 },
		{ "latency", "cycles ", .width = 7 },
		{ "meaning", "meaning", .width = -23 },
		{ "about", "", .width = -8 },
		{ .key = "form" },
		{ .key = "latency_parameter" },
	};
	check_wanted(c);
	Table t = report_table(c, columns, COUNT(columns));
	table_start(&t, "ops");
	for (int op = 0; op < GOPS; op++) {
		Buf form = { .arena = &c->cx->scratch };
		op_example(op, &form);
		const TableCell cell[COUNT(columns)] = {
			tc_text(ops[op].name),
			tc_text(form.s),
			tc_text(unit_names[ops[op].unit]),
			tc_count((uint64_t)op_latency(c->m, op)),
			tc_text(meaning_of(op)),
			tc_text(ops[op].about),
			tc_text(form_name(ops[op].form)),
			tc_text(latency_name(op)),
		};
		if (op_wanted(c, op))
			table_row(&t, cell);
	}
	table_end(&t);
	buf_puts(c->text, "\n# v registers, w conditions, s[100] SRAM, d[4000] DRAM, k0 a configuration of the switch\n"
	                  "# cycles: from issue until the result can be read; .f float, .i int32, .u uint32 of a word\n");
}
