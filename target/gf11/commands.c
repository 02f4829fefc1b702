/* SPDX-License-Identifier: MIT */
/* Commands of the GF11: microprop gf11 machine | efficiency | microcode | trace | switch | bench.
 * In: a command's name, operands and options.  Out: a report as text or as one JSON object.
 *
 * The table at the end lists the commands, the one before it their options.  A text ends with a comment that says
 * how many cycles were simulated, of how many processors, and what that took here. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gf11.h"

enum { MOST_DEAD = 64, MOST_THREADS = 256 };

typedef struct Verb Verb;
typedef struct Call {
	Ctx *cx;
	Buf *out;
	const Verb *verb;
	const char *operand;                                 /* NULL: not given */
	const char *machine, *kanata, *chrome;
	const char *dead[MOST_DEAD]; size_t deads;
	uint64_t level, threads;
	bool json, routines;
	const Machine *m;
	double began;
} Call;

struct Verb {
	const char *name, *operand;                          /* what the operand is; NULL: takes none */
	const char *options;                                 /* besides machine and json; with blanks around each */
	void (*run)(Call *c);
};

static double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the end of every report ---- */

/* `rate`: processor-cycles executed in a second; 0: nothing was executed. */
static void report_end(const Call *c, uint64_t cycles, double rate)
{
	double real = 1e9 / c->m->clock * (double)c->m->processors, seconds = seconds_now() - c->began;
	if (c->json) {
		buf_printf(c->out, "\"simulated_cycles\": %" PRIu64 ", \"processors\": %" PRId64 ", \"host_seconds\": %.6f",
		           cycles, c->m->processors, seconds);
		if (rate > 0)
			buf_printf(c->out, ", \"processor_cycles_per_second\": %.6g, \"times_real_time\": %.4g", rate,
			           rate / real);
		buf_puts(c->out, "}\n");
		return;
	}
	buf_printf(c->out, "# %" PRIu64 " simulated cycles, %" PRId64 " processors, %.3f s on this computer", cycles,
	           c->m->processors, seconds);
	if (rate > 0)
		buf_printf(c->out, ", %.2f times real time", rate / real);
	buf_puts(c->out, "\n");
}

static void json_begin(const Call *c)
{
	buf_puts(c->out, "{\"machine\": ");
	json_put(c->out, c->m->name);
	buf_puts(c->out, ", ");
}

/* ---- routines: recorded, scheduled, checked ---- */

static const RoutineDef *operand_routine(const Call *c)
{
	const RoutineDef *def = routine_find(c->operand);
	if (def)
		return def;
	Buf names = { .arena = &c->cx->scratch };
	buf_puts(&names, "the routines are:");
	for (size_t i = 0; i < routine_def_count; i++)
		buf_printf(&names, " %s", routine_defs[i].name);
	fail(c->cx, MP_BAD_INPUT, names.s, "there is no routine '%s'", c->operand);
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
		r->report.seed_metric = (double)(c->m->switch_interval * r->report.transfers) / r->report.cycles;
	return r;
}

static double percent_of_bound(const Report *r)
{
	return 100.0 * r->bound / r->cycles;
}

/* ---- efficiency ---- */

static void efficiency_json(Buf *out, const Routine *r)
{
	static const char *const truth[] = { "false", "true" };
	const Report *p = &r->report;
	buf_puts(out, "{\"name\": ");
	json_put(out, r->name);
	buf_printf(out, ", \"operations\": %u, \"cycles\": %u, \"bound\": %u, \"percent_of_bound\": %.2f, "
	           "\"seed_metric\": %.4f, ", p->operations, p->cycles, p->bound, percent_of_bound(p), p->seed_metric);
	buf_printf(out, "\"registers\": %u, \"spills\": %u, \"checked\": %s, \"optimal\": %s, ", p->registers, p->spills,
	           truth[p->checked], truth[p->optimal]);
	buf_printf(out, "\"bound_resource\": %u, \"bound_path\": %u, \"bound_hrt\": %u, \"seconds\": %.6f}",
	           p->bound_resource, p->bound_path, p->bound_hrt, p->seconds);
}

static void efficiency_text(Buf *out, const Routine *r, const RoutineDef *def)
{
	const Report *p = &r->report;
	buf_printf(out, "%-15s %10u %7u %7u %8.2f%s %6.1f %9u %6u  %-7s  %s\n", r->name, p->operations, p->cycles, p->bound,
	           percent_of_bound(p), p->optimal ? "*" : " ", 100 * p->seed_metric, p->registers, p->spills,
	           p->checked ? "yes" : "no", def->about);
}

static void run_efficiency(Call *c)
{
	uint64_t cycles = 0;
	if (!c->routines)
		fail(c->cx, MP_BAD_INPUT, "write --routines for the routines of the library", "efficiency of what?");
	if (c->json) {
		json_begin(c);
		buf_puts(c->out, "\"routines\": [");
	} else {
		buf_printf(c->out, "%-15s %10s %7s %7s %9s %6s %9s %6s  %s\n", "routine", "operations", "cycles", "bound", "% of it ",
		           "seed %", "registers", "spills", "checked");
	}
	for (size_t i = 0; i < routine_def_count; i++) {
		const Routine *r = routine_make(c, &routine_defs[i]);
		cycles += r->report.cycles;
		if (c->json) {
			buf_puts(c->out, i ? ", " : "");
			efficiency_json(c->out, r);
		} else {
			efficiency_text(c->out, r, &routine_defs[i]);
		}
	}
	buf_puts(c->out, c->json ? "], " :
	         "\n# bound: no schedule is shorter; *: proven that none is shorter than this one\n"
	         "# seed %: cycles that issue an add or a multiply; for exchanges, those the switch needs (section 6.2.2)\n");
	report_end(c, cycles, 0);
}

/* ---- microcode, trace ---- */

static void run_microcode(Call *c)
{
	const Routine *r = routine_make(c, operand_routine(c));
	if (c->json) {
		Buf text = { .arena = &c->cx->scratch };
		microcode_print(c->m, r, &text);
		json_begin(c);
		buf_puts(c->out, "\"routine\": ");
		efficiency_json(c->out, r);
		buf_puts(c->out, ", \"microcode\": ");
		json_put(c->out, text.s);
		buf_puts(c->out, ", ");
	} else {
		microcode_print(c->m, r, c->out);
	}
	report_end(c, r->report.cycles, 0);
}

static void run_trace(Call *c)
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
	const Routine *r = routine_make(c, operand_routine(c));
	if (c->json) {
		json_begin(c);
		buf_puts(c->out, "\"routine\": ");
		efficiency_json(c->out, r);
		buf_puts(c->out, ", ");
	} else {
		buf_printf(c->out, "%s: %u operations in %u cycles\n", r->name, r->report.operations, r->report.cycles);
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
	report_end(c, r->report.cycles, 0);
}

/* ---- switch, machine ---- */

static void run_switch(Call *c)
{
	switch_command(c->cx, c->m, c->operand, c->dead, c->deads, c->json, c->out);
	if (!c->json)
		report_end(c, 0, 0);
}

static void run_machine(Call *c)
{
	if (!c->json) {
		machine_print(c->m, c->out);
		return;
	}
	json_begin(c);
	buf_puts(c->out, "\"parameters\": {");
	for (size_t i = 0; i < machine_row_count; i++) {
		const MachineRow *row = &machine_rows[i];
		const void *field = (const char *)c->m + row->offset;
		double value = row->real ? *(const double *)field : (double)*(const int64_t *)field;
		buf_printf(c->out, "%s\"%s\": %.12g", i ? ", " : "", row->name, value);
	}
	buf_puts(c->out, "}}\n");
}

/* ---- bench ---- */

static void run_bench(Call *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t threads = c->threads ? (uint32_t)c->threads : cpus > 0 && cpus < MOST_THREADS ? (uint32_t)cpus : 1;
	c->level = 0;                                        /* another cycle less makes no difference here */
	const Routine *r = routine_make(c, routine_find("forward"));
	double rate = execute_bench(c->cx, c->m, r, (uint32_t)c->m->processors, threads, 1);
	if (c->json) {
		json_begin(c);
		buf_printf(c->out, "\"routine\": \"%s\", \"cycles\": %u, \"threads\": %u, \"kernel\": ", r->name,
		           r->report.cycles, threads);
		json_put(c->out, kernel_name());
		buf_puts(c->out, ", ");
	} else {
		buf_printf(c->out, "%s on %s: %.3g billion processor-cycles a second; the machine itself makes %.3g\n",
		           r->name, c->m->name, rate / 1e9, (double)c->m->processors / c->m->clock);
		buf_printf(c->out, "%u thread%s, kernels for %s\n", threads, threads == 1 ? "" : "s", kernel_name());
	}
	report_end(c, r->report.cycles, rate);
}

/* ---- tables and arguments ---- */

typedef struct OptionRow {
	const char *name;
	enum { IS_FLAG, IS_TEXT, IS_COUNT, IS_LIST } kind;
	size_t at;                                           /* in Call */
	uint64_t most;                                       /* IS_COUNT */
} OptionRow;
static const OptionRow option_rows[] = {                    /* the first two go with all commands */
	{ "machine", IS_TEXT, offsetof(Call, machine), 0 },
	{ "json", IS_FLAG, offsetof(Call, json), 0 },
	{ "routines", IS_FLAG, offsetof(Call, routines), 0 },
	{ "level", IS_COUNT, offsetof(Call, level), 9 },
	{ "kanata", IS_TEXT, offsetof(Call, kanata), 0 },
	{ "chrome", IS_TEXT, offsetof(Call, chrome), 0 },
	{ "dead", IS_LIST, offsetof(Call, dead), 0 },
	{ "threads", IS_COUNT, offsetof(Call, threads), MOST_THREADS },
};

static const Verb verbs[] = {
	{ "machine", "[FILE]", "", run_machine },
	{ "efficiency", NULL, " routines level ", run_efficiency },
	{ "microcode", "ROUTINE", " level ", run_microcode },
	{ "trace", "ROUTINE", " level kanata chrome ", run_trace },
	{ "switch", "ring|tree:K|random:SEED|FILE", " dead ", run_switch },
	{ "bench", NULL, " threads ", run_bench },
};

static uint64_t count_read(const Call *c, const OptionRow *row, const char *value)
{
	char *end;
	unsigned long long n = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end || n > row->most) {
		Buf remedy = { .arena = &c->cx->scratch };
		buf_printf(&remedy, "write a whole number from 0 to %" PRIu64, row->most);
		fail(c->cx, MP_BAD_INPUT, remedy.s, "--%s cannot be '%s'", row->name, value);
	}
	return n;
}

static bool option_fits(const Verb *v, const OptionRow *row)
{
	const char *at = strstr(v->options, row->name);
	size_t len = strlen(row->name);
	return row < option_rows + 2 || (at && at[-1] == ' ' && at[len] == ' ');
}

static const OptionRow *option_row(const Call *c, const char *word, size_t len)
{
	Buf fit = { .arena = &c->cx->scratch };
	buf_puts(&fit, "its options are:");
	for (size_t i = 0; i < COUNT(option_rows); i++) {
		const OptionRow *row = &option_rows[i];
		if (!option_fits(c->verb, row))
			continue;
		if (strlen(row->name) == len && memcmp(row->name, word, len) == 0)
			return row;
		buf_printf(&fit, " --%s", row->name);
	}
	fail(c->cx, MP_BAD_INPUT, fit.s, "%s has no option '--%.*s'", c->verb->name, (int)len, word);
}

/* Word without its dashes: name, or name=value. */
static void option_take(Call *c, const char *word)
{
	const char *equals = strchr(word, '=');
	const OptionRow *row = option_row(c, word, equals ? (size_t)(equals - word) : strlen(word));
	void *field = (char *)c + row->at;
	if ((row->kind == IS_FLAG) != !equals)
		fail(c->cx, MP_BAD_INPUT, row->kind == IS_FLAG ? "write it without =" : "write it after =",
		     row->kind == IS_FLAG ? "--%s takes no value" : "--%s needs a value", row->name);
	if (row->kind == IS_FLAG)
		*(bool *)field = true;
	else if (row->kind == IS_TEXT)
		*(const char **)field = equals + 1;
	else if (row->kind == IS_COUNT)
		*(uint64_t *)field = count_read(c, row, equals + 1);
	else if (c->deads < MOST_DEAD)
		c->dead[c->deads++] = equals + 1;
	else
		fail(c->cx, MP_BAD_INPUT, "name fewer", "more than %d dead parts", MOST_DEAD);
}

static const Verb *verb_find(Ctx *cx, const char *name)
{
	const char *names[COUNT(verbs)];
	Buf list = { .arena = &cx->scratch };
	buf_puts(&list, "commands are:");
	for (size_t i = 0; i < COUNT(verbs); i++) {
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
		names[i] = verbs[i].name;
		buf_printf(&list, " %s", verbs[i].name);
	}
	const char *near = nearest_name(name, names, COUNT(names));
	fail(cx, MP_BAD_INPUT, list.s, near ? "gf11 has no command '%s'; did you mean '%s'?" : "gf11 has no command '%s'",
	     name, near);
}

static const char *usage(Arena *a, const Verb *v)
{
	Buf b = { .arena = a };
	buf_printf(&b, "write: %s %s", v->name, v->operand ? v->operand : "and options");
	return b.s;
}

static void operand_take(Call *c, const char *word)
{
	if (!c->verb->operand || c->operand)
		fail(c->cx, MP_BAD_INPUT, usage(&c->cx->scratch, c->verb), "'%s' is one operand too many for %s", word,
		     c->verb->name);
	c->operand = word;
}

void gf11_tool(Ctx *cx, int argc, const char *const *argv, Buf *out)
{
	if (argc < 1)
		fail(cx, MP_BAD_INPUT, "name a command", "gf11 does what?");
	Call c = { .cx = cx, .out = out, .verb = verb_find(cx, argv[0]), .level = 1, .began = seconds_now() };
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) == 0)
			option_take(&c, argv[i] + 2);
		else
			operand_take(&c, argv[i]);
	}
	bool file = c.verb->run == run_machine;              /* its operand is the machine itself */
	if (c.verb->operand && !c.operand && !file)
		fail(cx, MP_BAD_INPUT, usage(&cx->scratch, c.verb), "%s needs an operand", c.verb->name);
	const char *name = file && c.operand ? c.operand : c.machine;
	c.m = machine_open(cx, name ? name : "gf11");
	c.verb->run(&c);
}
