/* SPDX-License-Identifier: MIT */
/* microprop gf11 efficiency --routines | microcode | trace | run. In: the name of a library routine, or a file of
 * microcode. Out: quality of the schedule, microcode, a trace, the result of a run. Each routine runs once: reported
 * cycles are simulated ones. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "gf11_study.h"

/* ---- routines: recorded, scheduled, checked; or read from a file and checked ---- */

void routine_names(Buf *out)
{
	buf_puts(out, "the routines are:");
	for (size_t i = 0; i < routine_def_count; i++)
		buf_printf(out, " %s", routine_defs[i].name);
}

Routine *routine_make(const CommandRun *c, const RoutineDef *def)
{
	const ScheduleOptions o = { .level = (int)c->level };
	Routine *r = schedule(c->cx, c->m, routine_record(c->cx, c->m, def), &o);
	const char *fault = check_routine(c->cx, c->m, r);
	if (fault)
		fail(c->cx, MP_FAILED, "this is a fault of the scheduler, please report it",
		     "%s: the schedule breaks a rule of the machine: %s", def->name, fault);
	r->report.checked = true;
	r->report.in_order = bound_in_order(c->cx, c->m, r->code);
	r->update = def->update;
	if (def->update)
		r->report.report_measure = (double)(c->m->switch_interval * r->report.transfers) / r->report.cycles;
	return r;
}

static Routine *operand_make(const CommandRun *c)
{
	const char *name = c->operand[0];
	const RoutineDef *def = routine_find(name);
	if (def)
		return routine_make(c, def);
	if (strpbrk(name, "./") || strcmp(name, "-") == 0 || access(name, R_OK) == 0) {
		Routine *r = microcode_parse(c->cx, c->m, src_open(c->cx, &c->cx->keep, name));
		const char *fault = check_routine(c->cx, c->m, r);
		if (fault)
			fail(c->cx, MP_BAD_INPUT, "change the microcode, or take the machine it was made for with --machine",
			     "%s breaks a rule of the machine %s: %s", name, c->m->name, fault);
		r->report.checked = true;
		r->report.cycles = routine_cycles(c->m, r);
		for (uint32_t t = 0; t < r->lines; t++)
			for (uint32_t unit = 0; unit < UNITS; unit++)
				r->report.operations += r->line[t].slot[unit].op != GOP_NONE;
		return r;
	}
	Buf names = { .arena = &c->cx->scratch };
	routine_names(&names);
	fail(c->cx, MP_BAD_INPUT, names.s, "there is no routine '%s', and no such file", name);
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
	row->r = routine_make(row->c, row->def);
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

void run_microcode(CommandRun *c)
{
	size_t len;
	const Routine *r = operand_make(c);
	const char *text = text_make(c, r, &len);
	buf_add(c->text, text, len);
	buf_puts(c->text, "\n# assembles back to the same words\n");
	routine_json(c, r);
	jw_text(c->json, "microcode", text);
	jw_flag(c->json, "assembles_back", true);
	report_end(c, run_once(runner_whole(c), r), 0);
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
	if (!c->kanata && !c->chrome)
		fail(c->cx, MP_BAD_INPUT, "write --kanata FILE (opens in Konata) or --chrome FILE (opens in Perfetto)",
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
	report_end(c, account_cycles(k), 0);
}

/* ---- run ---- */

/* Executes the recorded calls directly: no microcode, no cycles. */
static void simulate(const CommandRun *c, const Runner *w, const Controller *k, const RoutineDef *def)
{
	Gen *g = gen_simulate(c->cx, w->p, k->base);
	def->make(g, def->size);
	gen_end(g);
}

void run_run(CommandRun *c)
{
	const char *mode = c->simulate ? "simulated" : c->traced ? "traced" : "fast";
	const RoutineDef *def = routine_find(c->operand[0]);
	if (c->simulate && c->traced)
		fail(c->cx, MP_BAD_INPUT, "leave one of the two out", "is it to run --traced or to --simulate?");
	const Routine *r = operand_make(c);
	if (c->simulate && !def)
		fail(c->cx, MP_BAD_INPUT, "leave --simulate out, or name a routine of the library",
		     "%s is microcode: it has no recorded calls that could be executed at once", c->operand[0]);
	c->used = procs_one(c);
	Runner *w = runner_new(c->cx, c->m, c->used, threads_of(c));
	Controller *k = runner_load(w, r);
	runner_fill(w, k);
	k->traced = c->traced;
	double start = clock_seconds();
	if (c->simulate)
		simulate(c, w, k, def);
	else
		controller_call(k, 0);
	double took = clock_seconds() - start;
	const Account *a = &k->account;
	Buf checksum = { .arena = &c->cx->scratch };
	buf_printf(&checksum, "%016" PRIx64, runner_checksum(w));
	buf_printf(c->text, "%s on %s, %s, %u thread%s\n", r->name, c->m->name, mode, w->p->threads,
	           w->p->threads == 1 ? "" : "s");
	account_print(k, took, c->text);
	buf_printf(c->text, "checksum of memory    %s\n", checksum.s);
	routine_json(c, r);
	jw_text(c->json, "mode", mode);
	jw_count(c->json, "threads", w->p->threads);
	jw_count(c->json, "calls", a->calls);
	jw_count(c->json, "routine_cycles", a->cycles);
	jw_count(c->json, "call_cycles", a->call_cycles);
	jw_count(c->json, "host_words", a->host_words);
	jw_real(c->json, "host_word_seconds", NULL, a->host_seconds);
	jw_real(c->json, "execution_seconds", "%.6f", took);
	jw_text(c->json, "checksum", checksum.s);
	report_end(c, account_cycles(k), 0);
}
