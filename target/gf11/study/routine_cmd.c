/* SPDX-License-Identifier: MIT */
/* microprop gf11 efficiency --routines | microcode | trace | run | bench.  In: the name of a routine of the library, or
 * a file of microcode.  Out: how well it is scheduled, its lines, a trace, what running it gives, how fast it runs.
 * All but bench run each routine once, so that the cycles they report have been simulated. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "gf11_study.h"

static const char *const truth[] = { "false", "true" };

/* ---- routines: recorded, scheduled, checked; or read from a file and checked ---- */

void routine_names(Buf *out)
{
	buf_puts(out, "the routines are:");
	for (size_t i = 0; i < routine_def_count; i++)
		buf_printf(out, " %s", routine_defs[i].name);
}

static Routine *routine_make(const Call *c, const RoutineDef *def)
{
	const ScheduleOptions o = { .level = (int)c->level };
	Routine *r = schedule(c->cx, c->m, routine_record(c->cx, c->m, def), &o);
	const char *fault = check_routine(c->cx, c->m, r);
	if (fault)
		fail(c->cx, MP_FAILED, "this is a fault of the scheduler, please report it",
		     "%s: the schedule breaks a rule of the machine: %s", def->name, fault);
	r->report.checked = true;
	r->update = def->update;
	if (def->update)
		r->report.report_measure = (double)(c->m->switch_interval * r->report.transfers) / r->report.cycles;
	return r;
}

static Routine *file_make(const Call *c, const char *path)
{
	Routine *r = microcode_parse(c->cx, c->m, src_open(c->cx, &c->cx->keep, path));
	const char *fault = check_routine(c->cx, c->m, r);
	if (fault)
		fail(c->cx, MP_BAD_INPUT, "change the microcode, or take the machine it was made for with --machine",
		     "%s breaks a rule of the machine %s: %s", path, c->m->name, fault);
	r->report.checked = true;
	r->report.cycles = routine_cycles(c->m, r);
	for (uint32_t t = 0; t < r->lines; t++)
		for (uint32_t unit = 0; unit < UNITS; unit++)
			r->report.operations += r->line[t].slot[unit].op != GOP_NONE;
	return r;
}

static Routine *operand_make(const Call *c)
{
	const char *name = c->operand[0];
	const RoutineDef *def = routine_find(name);
	if (def)
		return routine_make(c, def);
	if (strpbrk(name, "./") || strcmp(name, "-") == 0 || access(name, R_OK) == 0)
		return file_make(c, name);
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

static Runner *runner_whole(const Call *c) { return runner_new(c->cx, c->m, (uint32_t)c->m->processors, 1); }

/* ---- efficiency ---- */

static double percent_of_bound(const Report *r) { return 100.0 * r->bound / r->cycles; }

/* A file says nothing about what was recorded, so there are no bounds for it. */
static void routine_json(Buf *out, const Routine *r)
{
	const Report *p = &r->report;
	buf_puts(out, "{\"name\": ");
	json_put(out, r->name);
	buf_printf(out, ", \"operations\": %u, \"cycles\": %u, ", p->operations, p->cycles);
	if (r->code)
		buf_printf(out,
		           "\"bound\": %u, \"percent_of_bound\": %.2f, \"seed_metric\": %.4f, \"registers\": %u, "
		           "\"spills\": %u, \"optimal\": %s, \"bound_resource\": %u, \"bound_path\": %u, \"bound_hrt\": %u, "
		           "\"seconds\": %.6f, ",
		           p->bound, percent_of_bound(p), p->report_measure, p->registers, p->spills, truth[p->optimal],
		           p->bound_resource, p->bound_path, p->bound_hrt, p->seconds);
	buf_printf(out, "\"checked\": %s", truth[p->checked]);
	buf_puts(out, "}");
}

typedef struct Row {
	const Call *c;
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

/* Messages begin with the routine's name, which its row has already. */
static const char *row_error(const Row *row)
{
	size_t len = strlen(row->def->name);
	bool named = strncmp(row->error, row->def->name, len) == 0 && strncmp(row->error + len, ": ", 2) == 0;
	return row->error + (named ? len + 2 : 0);
}

static void row_json(Buf *out, const Row *row)
{
	if (!row->error) {
		routine_json(out, row->r);
		return;
	}
	buf_puts(out, "{\"name\": ");
	json_put(out, row->def->name);
	buf_puts(out, ", \"error\": ");
	json_put(out, row_error(row));
	buf_puts(out, "}");
}

static void row_text(Buf *out, const Row *row)
{
	const Report *p = row->error ? NULL : &row->r->report;
	if (!p)
		buf_printf(out, "%-15s %s\n", row->def->name, row_error(row));
	else
		buf_printf(out, "%-15s %10u %7u %7u %8.2f%s %6.1f %9u %6u  %-7s  %s\n", row->def->name, p->operations,
		           p->cycles, p->bound, percent_of_bound(p), p->optimal ? "*" : " ", 100 * p->report_measure,
		           p->registers, p->spills, p->checked ? "yes" : "no", row->def->about);
}

static void efficiency_head(const Call *c)
{
	if (c->json) {
		json_begin(c);
		buf_puts(c->out, "\"routines\": [");
	} else {
		buf_printf(c->out, "%-15s %10s %7s %7s %9s %6s %9s %6s  %s\n", "routine", "operations", "cycles", "bound",
		           "% of it ", "seed %", "registers", "spills", "checked");
	}
}

void run_routines(Call *c)
{
	uint64_t cycles = 0;
	uint32_t failed = 0;
	Runner *w = runner_whole(c);
	efficiency_head(c);
	for (size_t i = 0; i < routine_def_count; i++) {
		Row row = { .c = c, .def = &routine_defs[i], .w = w };
		row.error = attempt(c->cx, row_make, &row);
		failed += row.error != NULL;
		cycles += row.cycles;
		buf_puts(c->out, c->json && i ? ", " : "");
		(c->json ? row_json : row_text)(c->out, &row);
	}
	buf_puts(c->out, c->json ? "], "
	                         : "\n# bound: no schedule is shorter; *: proven that none is shorter than this one\n"
	                           "# seed %: cycles that issue an add or a multiply; for exchanges, those the switch "
	                           "needs (section 6.2.2)\n");
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

/* Text of a routine that has been read again and gave the same words. */
static const char *text_make(const Call *c, const Routine *r, size_t *len)
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

void run_microcode(Call *c)
{
	size_t len;
	const Routine *r = operand_make(c);
	const char *text = text_make(c, r, &len);
	if (c->json) {
		json_begin(c);
		buf_puts(c->out, "\"routine\": ");
		routine_json(c->out, r);
		buf_puts(c->out, ", \"microcode\": ");
		json_put(c->out, text);
		buf_puts(c->out, ", \"assembles_back\": true, ");
	} else {
		buf_add(c->out, text, len);
		buf_puts(c->out, "\n# assembles back to the same words\n");
	}
	report_end(c, run_once(runner_whole(c), r), 0);
}

static void issue_count(void *user, const TraceEvent *e)
{
	(void)e;
	++*(uint64_t *)user;
}

void run_trace(Call *c)
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
	if (c->json) {
		json_begin(c);
		buf_puts(c->out, "\"routine\": ");
		routine_json(c->out, r);
		buf_printf(c->out, ", \"issued\": %" PRIu64 ", ", issued);
	} else {
		buf_printf(c->out, "%s: %" PRIu64 " operations issued in %" PRIu64 " cycles\n", r->name, issued,
		           k->account.cycles);
	}
	for (size_t i = 0; i < COUNT(traces); i++) {
		if (!traces[i].path)
			continue;
		traces[i].write(c->cx, c->m, r, traces[i].path);
		if (c->json) {
			buf_printf(c->out, "\"%s\": ", traces[i].name);
			json_put(c->out, traces[i].path);
			buf_puts(c->out, ", ");
		} else {
			buf_printf(c->out, "wrote %s\n", traces[i].path);
		}
	}
	report_end(c, account_cycles(k), 0);
}

/* ---- run ---- */

/* The recorded calls, executed at once: no microcode, no cycles. */
static void simulate(const Call *c, const Runner *w, const Controller *k, const RoutineDef *def)
{
	Gen *g = gen_simulate(c->cx, w->p, k->base);
	def->make(g, def->size);
	gen_end(g);
}

static void run_json(const Call *c, const Routine *r, const char *mode, const Runner *w, const Account *a, double took)
{
	json_begin(c);
	buf_puts(c->out, "\"routine\": ");
	routine_json(c->out, r);
	buf_printf(c->out,
	           ", \"mode\": \"%s\", \"threads\": %u, \"calls\": %" PRIu64 ", \"routine_cycles\": %" PRIu64
	           ", \"call_cycles\": %" PRIu64 ", \"host_words\": %" PRIu64 ", \"host_word_seconds\": %.6g, "
	           "\"execution_seconds\": %.6f, \"checksum\": \"%016" PRIx64 "\", ",
	           mode, w->p->threads, a->calls, a->cycles, a->call_cycles, a->host_words, a->host_seconds, took,
	           runner_checksum(w));
}

static void run_text(const Call *c, const Routine *r, const char *mode, const Runner *w, const Controller *k,
                     double took)
{
	buf_printf(c->out, "%s on %s, %s, %u thread%s\n", r->name, c->m->name, mode, w->p->threads,
	           w->p->threads == 1 ? "" : "s");
	account_print(k, took, c->out);
	buf_printf(c->out, "checksum of memory    %016" PRIx64 "\n", runner_checksum(w));
}

void run_run(Call *c)
{
	const char *mode = c->simulate ? "simulated" : c->traced ? "traced" : "fast";
	const RoutineDef *def = routine_find(c->operand[0]);
	if (c->simulate && c->traced)
		fail(c->cx, MP_BAD_INPUT, "leave one of the two out", "is it to run --traced or to --simulate?");
	const Routine *r = operand_make(c);
	if (c->simulate && !def)
		fail(c->cx, MP_BAD_INPUT, "leave --simulate out, or name a routine of the library",
		     "%s is microcode: it has no recorded calls that could be executed at once", c->operand[0]);
	c->used = c->procs ? (uint32_t)whole_number(c, "procs", c->procs, 1, (uint64_t)c->m->processors)
	                   : (uint32_t)c->m->processors;
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
	if (c->json)
		run_json(c, r, mode, w, &k->account, took);
	else
		run_text(c, r, mode, w, k, took);
	report_end(c, account_cycles(k), 0);
}

/* ---- bench ---- */

void run_bench(Call *c)
{
	uint32_t threads = threads_of(c);
	c->level = 0; /* another cycle less makes no difference here */
	const Routine *r = routine_make(c, routine_find("forward"));
	Measured b = execute_measure(c->cx, c->m, r, (uint32_t)c->m->processors, threads, 1);
	if (c->json) {
		json_begin(c);
		buf_printf(c->out, "\"routine\": \"%s\", \"cycles\": %u, \"threads\": %u, \"kernel\": ", r->name,
		           r->report.cycles, threads);
		json_put(c->out, kernel_name());
		buf_puts(c->out, ", \"rate_of\": \"best tenth\", ");
	} else {
		buf_printf(c->out, "%s on %s: %.3g billion processor-cycles a second in the best tenth of the time\n", r->name,
		           c->m->name, b.rate / 1e9);
		buf_printf(c->out, "the machine itself makes %.3g billion; on average it was %.3g here\n",
		           (double)c->m->processors / c->m->clock,
		           (double)b.cycles * (double)c->m->processors / b.seconds / 1e9);
		buf_printf(c->out, "%u thread%s, kernels for %s\n", threads, threads == 1 ? "" : "s", kernel_name());
	}
	report_end(c, b.cycles, b.rate);
}
