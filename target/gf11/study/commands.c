/* SPDX-License-Identifier: MIT */
/* Commands of the GF11: microprop gf11 machine | efficiency | schedule | microcode | trace | run | switch | bench, and
 * more. In: a command's name, operands and options. Out: a report as text, CSV or one JSON object.
 *
 * `option_rows` lists the options, `commands` the commands; most are in files of their own. Every report ends with the
 * simulated cycles, the processors and the time taken here; in text as a comment. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gf11_study.h"

/* ---- reports ---- */

Table report_table(const CommandRun *c, const Column *column, size_t columns)
{
	return (Table){ .column = column, .columns = (uint32_t)columns, .text = c->text, .json = c->json, .csv = c->csv };
}

Table json_table(const CommandRun *c, const Column *column, size_t columns)
{
	return (Table){ .column = column, .columns = (uint32_t)columns, .json = c->json };
}

Table text_table(const CommandRun *c, const Column *column, size_t columns)
{
	return (Table){ .column = column, .columns = (uint32_t)columns, .text = c->text };
}

void report_end(const CommandRun *c, uint64_t cycles, double rate)
{
	uint64_t processors = c->used ? c->used : (uint64_t)c->m->processors;
	double simulated = c->simulated > 0 ? c->simulated : 1e-9 * c->m->clock * (double)cycles,
		   seconds = clock_seconds() - c->began;
	double times = rate > 0 ? rate * 1e-9 * c->m->clock / (double)processors : simulated / seconds;
	buf_printf(c->text,
	           "# %" PRIu64 " simulated cycles, %" PRIu64 " processors, %.6g simulated seconds, %.3f s on this "
	           "computer, %.3g times real time\n",
	           cycles, processors, simulated, seconds, times);
	jw_count(c->json, "simulated_cycles", cycles);
	jw_count(c->json, "processors", processors);
	jw_real(c->json, "simulated_seconds", NULL, simulated);
	jw_real(c->json, "host_seconds", "%.6f", seconds);
	if (rate > 0)
		jw_real(c->json, "processor_cycles_per_second", NULL, rate);
	jw_real(c->json, "times_real_time", "%.4g", times);
}

/* ---- failures inside a report ---- */

const char *attempt(Ctx *cx, void (*body)(void *arg), void *arg)
{
	jmp_buf here, *outer = cx->edge;
	size_t start = cx->message_count;
	cx->edge = &here;
	if (setjmp(here) == 0) {
		body(arg);
		cx->edge = outer;
		return NULL;
	}
	cx->edge = outer;
	if (cx->status == MP_NO_MEMORY)
		longjmp(*outer, 1);
	size_t first = start;
	while (first + 1 < cx->message_count && cx->message[first].shown.severity != MP_ERROR)
		first++;
	const char *text = cx->message[first].shown.text, *why = arena_copy(&cx->scratch, text, strlen(text));
	messages_drop(cx, start);
	cx->errors = 0;
	cx->status = MP_OK;
	return why;
}

void svg_write(const CommandRun *c, const Buf *svg)
{
	OutFile *f = file_create(c->cx, &c->cx->scratch, c->svg);
	file_write(f, svg->s, svg->len);
	file_commit(c->cx, f);
	jw_text(c->json, "svg", c->svg);
}

/* ---- efficiency, switch, machine ---- */

static void run_efficiency(CommandRun *c)
{
	if (c->routines && c->operands)
		fail(c->cx, MP_BAD_INPUT, "leave one of the two out", "efficiency of %s, or of --routines?", c->operand[0]);
	(c->routines ? run_routines : run_networks)(c);
}

static void run_switch(CommandRun *c)
{
	Buf svg = { .arena = &c->cx->scratch };
	c->failure =
		switch_command(c->cx, c->m, c->operand[0], c->dead, c->deads, c->paths, c->json, c->text, c->svg ? &svg : NULL);
	c->remedy = "route less, or use a machine whose switch can carry it";
	if (svg.len)
		svg_write(c, &svg);
	report_end(c, 0, 0);
}

/* What follows from the parameters; a Gbyte of memory is 2^30 bytes, one of a disk 10^9, as in the report. */
static void machine_derived(const CommandRun *c)
{
	const Machine *m = c->m;
	double procs = (double)m->processors, peak = procs / m->clock / (double)m->alu_interval;
	double memory = procs * 4 * (double)(m->sram + m->dram) / (1 << 30), store = 1e-9 * m->clock * (double)m->microcode;
	double disks = 1e-3 * m->disk_capacity * machine_disks(m);
	buf_printf(c->text,
	           "# peak %.2f Gigaflops; %.3f Gbytes of memory, %.4g Gbytes of disks; the control store lasts %.4f s\n",
	           peak, memory, disks, store);
	jw_real(c->json, "peak_gigaflops", "%.6g", peak);
	jw_real(c->json, "memory_gbytes", "%.6g", memory);
	jw_real(c->json, "disk_gbytes", "%.6g", disks);
	jw_real(c->json, "microcode_seconds", "%.6g", store);
}

static void run_machine(CommandRun *c)
{
	machine_print(c->m, c->text);
	jw_start(c->json, "parameters", '{');
	for (size_t i = 0; i < machine_row_count; i++) {
		const MachineRow *row = &machine_rows[i];
		const void *field = (const char *)c->m + row->offset;
		jw_start(c->json, row->name, '{');
		jw_real(c->json, "value", "%.12g", row->real ? *(const double *)field : (double)*(const int64_t *)field);
		jw_text(c->json, "unit", row->unit);
		jw_text(c->json, "from", c->m->from[i].text);
		jw_end(c->json, '}');
	}
	jw_end(c->json, '}');
	machine_derived(c);
	report_end(c, 0, 0);
}

/* The command line reads commands of the debugger itself. */
static void run_debug(CommandRun *c)
{
	fail(c->cx, MP_BAD_INPUT, "call mp_gf11_open and mp_gf11_debug", "debug reads commands, which a report cannot");
}

/* ---- tables and arguments ---- */

typedef struct OptionRow {
	const char *name;
	enum { IS_FLAG, IS_TEXT, IS_COUNT, IS_POSITIVE, IS_LIST } kind;
	size_t at;     /* in CommandRun */
	uint64_t most; /* IS_COUNT, IS_POSITIVE; IS_LIST: offset of the list's length in CommandRun */
} OptionRow;
static const OptionRow option_rows[] = {
	/* the first two are options of all commands */
	{ "machine", IS_TEXT, offsetof(CommandRun, machine), 0 },
	{ "json", IS_FLAG, offsetof(CommandRun, as_json), 0 },
	{ "routines", IS_FLAG, offsetof(CommandRun, routines), 0 },
	{ "small-layers", IS_TEXT, offsetof(CommandRun, small), 0 },
	{ "units", IS_TEXT, offsetof(CommandRun, units), 0 },
	{ "level", IS_COUNT, offsetof(CommandRun, level), 9 },
	{ "kanata", IS_TEXT, offsetof(CommandRun, kanata), 0 },
	{ "chrome", IS_TEXT, offsetof(CommandRun, chrome), 0 },
	{ "dead", IS_LIST, offsetof(CommandRun, dead), offsetof(CommandRun, deads) },
	{ "fault", IS_LIST, offsetof(CommandRun, fault), offsetof(CommandRun, faults) },
	{ "fault-seed", IS_COUNT, offsetof(CommandRun, fault_seed), UINT64_MAX },
	{ "threads", IS_COUNT, offsetof(CommandRun, threads), MAX_THREADS },
	{ "procs", IS_TEXT, offsetof(CommandRun, procs), 0 },
	{ "traced", IS_FLAG, offsetof(CommandRun, traced), 0 },
	{ "simulate", IS_FLAG, offsetof(CommandRun, simulate), 0 },
	{ "cases", IS_POSITIVE, offsetof(CommandRun, cases), 100000000 },
	{ "sum", IS_TEXT, offsetof(CommandRun, sum), 0 },
	{ "compiler", IS_TEXT, offsetof(CommandRun, compiler), 0 },
	{ "sigmoid", IS_TEXT, offsetof(CommandRun, sigmoid), 0 },
	{ "bundle", IS_COUNT, offsetof(CommandRun, bundle), 100000 },
	{ "update", IS_COUNT, offsetof(CommandRun, update), 100000 },
	{ "group", IS_COUNT, offsetof(CommandRun, group), 100000 },
	{ "ring", IS_TEXT, offsetof(CommandRun, ring), 0 },
	{ "tree", IS_TEXT, offsetof(CommandRun, tree), 0 },
	{ "sensitivity", IS_FLAG, offsetof(CommandRun, sensitivity), 0 },
	{ "printed", IS_FLAG, offsetof(CommandRun, printed), 0 },
	{ "whole", IS_FLAG, offsetof(CommandRun, whole), 0 },
	{ "execute", IS_FLAG, offsetof(CommandRun, execute), 0 },
	{ "net", IS_TEXT, offsetof(CommandRun, net), 0 },
	{ "out", IS_TEXT, offsetof(CommandRun, write), 0 },
	{ "csv", IS_FLAG, offsetof(CommandRun, as_csv), 0 },
	{ "extended", IS_FLAG, offsetof(CommandRun, extended), 0 },
	{ "set", IS_LIST, offsetof(CommandRun, set), offsetof(CommandRun, sets) },
	{ "show", IS_LIST, offsetof(CommandRun, show), offsetof(CommandRun, shows) },
	{ "base", IS_LIST, offsetof(CommandRun, base), offsetof(CommandRun, bases) },
	{ "route", IS_LIST, offsetof(CommandRun, route), offsetof(CommandRun, routes) },
	{ "fill", IS_TEXT, offsetof(CommandRun, fill), 0 },
	{ "svg", IS_TEXT, offsetof(CommandRun, svg), 0 },
	{ "dependences", IS_FLAG, offsetof(CommandRun, dependences), 0 },
	{ "operations", IS_FLAG, offsetof(CommandRun, operations), 0 },
	{ "routine", IS_TEXT, offsetof(CommandRun, routine), 0 },
	{ "paths", IS_FLAG, offsetof(CommandRun, paths), 0 },
	{ "timeline", IS_FLAG, offsetof(CommandRun, timeline), 0 },
	{ "trials", IS_COUNT, offsetof(CommandRun, trials), 1000000 },
	{ "trials-of", IS_TEXT, offsetof(CommandRun, trials_of), 0 },
};

static const CommandDef commands[] = {
	{ "machine", "[FILE]", 1, " ", run_machine },
	{ "table1", NULL, 0, " sum compiler extended execute threads bundle update ring tree sigmoid ", run_table1 },
	{ "table2", NULL, 0, " ", run_table2 },
	{ "small", NULL, 0, " units cases sigmoid bundle ", run_small },
	{ "figures", "[N]", MAX_OPERANDS, " out bundle update sigmoid ", run_figures },
	{ "model", "FILE.topo", 1, " cases procs sum compiler printed whole simulate bundle update sigmoid ", run_model },
	{ "sweep", "NAME=FROM..TO", MAX_OPERANDS,
	  " net cases procs sum compiler small-layers sigmoid bundle update group ring tree csv svg ", run_sweep },
	{ "evaluate", "[FILE.topo]", MAX_OPERANDS, " cases procs compiler out ", run_evaluate },
	{ "sums", NULL, 0, " net procs compiler out ", run_sums },
	{ "updates", "[FILE.topo]", 1, " cases procs sum compiler sigmoid bundle ", run_updates },
	{ "calibrate", "[NAME]", MAX_OPERANDS, " sum out bundle update ring tree sigmoid sensitivity ", run_calibrate },
	{ "pooling", "[FILE.topo]", 1, " procs sum compiler sigmoid bundle update tree out ", run_pooling },
	{ "report", NULL, 0, " ", run_report },
	{ "disks", "[FILE.topo]", 1, " cases procs sum compiler sigmoid bundle update ", run_disks },
	{ "efficiency", "[FILE.topo]", 1, " routines level procs compiler small-layers sigmoid bundle update group tree ",
	  run_efficiency },
	{ "program", "[FILE.topo]", 1,
	  " cases procs sum compiler small-layers sigmoid bundle update group ring tree routine timeline ", run_program },
	{ "ops", "[NAME]", MAX_OPERANDS, " ", run_ops },
	{ "schedule", "FILE|-", 1, " level svg dependences ", run_schedule },
	{ "microcode", "[ROUTINE|FILE]", 1, " level operations svg dependences ", run_microcode },
	{ "trace", "ROUTINE|FILE", 1, " level kanata chrome svg ", run_trace },
	{ "run", "ROUTINE|FILE", 1, " level procs traced threads simulate set show base route fill ", run_run },
	{ "debug", "ROUTINE|FILE", 1, " level procs set base route fill ", run_debug },
	{ "steps", "ring|tree|pipelined", 1, " procs svg ", run_steps },
	{ "switch", "ring|tree:K|random:SEED|broadcast:PORT|FILE", 1, " dead paths svg ", run_switch },
	{ "diagnose", "[FILE.topo]", 1,
	  " cases procs sum compiler sigmoid bundle update threads fault fault-seed trials trials-of ", run_diagnose },
	{ "bench", NULL, 0, " threads sum ", run_bench },
};

uint64_t whole_number(const CommandRun *c, const char *option, const char *value, uint64_t least, uint64_t most)
{
	char *end;
	unsigned long long n = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end || n < least || n > most) {
		Buf remedy = { .arena = &c->cx->scratch };
		buf_printf(&remedy, "write a whole number from %" PRIu64 " to %" PRIu64, least, most);
		fail(c->cx, MP_BAD_INPUT, remedy.s, "--%s cannot be '%s'", option, value);
	}
	return n;
}

uint32_t threads_of(const CommandRun *c)
{
	uint32_t cores = pool_cores();
	return c->threads ? (uint32_t)c->threads : cores < MAX_THREADS ? cores : MAX_THREADS;
}

static bool option_fits(const CommandDef *v, const OptionRow *row)
{
	size_t len = strlen(row->name);
	for (const char *at = v->options; (at = strstr(at, row->name)); at += len)
		if (at[-1] == ' ' && at[len] == ' ')
			return true;
	return row < option_rows + 2;
}

static const OptionRow *option_row(const CommandRun *c, const char *word, size_t len)
{
	Buf fit = { .arena = &c->cx->scratch };
	buf_puts(&fit, "its options are:");
	for (size_t i = 0; i < COUNT(option_rows); i++) {
		const OptionRow *row = &option_rows[i];
		if (!option_fits(c->def, row))
			continue;
		if (strlen(row->name) == len && memcmp(row->name, word, len) == 0)
			return row;
		buf_printf(&fit, " --%s", row->name);
	}
	fail(c->cx, MP_BAD_INPUT, fit.s, "%s has no option '--%.*s'", c->def->name, (int)len, word);
}

/* word: name or name=value, without the dashes. */
static void option_take(CommandRun *c, const char *word)
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
	else if (row->kind == IS_COUNT || row->kind == IS_POSITIVE)
		*(uint64_t *)field = whole_number(c, row->name, equals + 1, row->kind == IS_POSITIVE, row->most);
	else {
		const char *value = equals + 1;
		const char **list = (const char **)((char *)c + row->at);
		size_t *count = (size_t *)((char *)c + row->most);
		if (*count == MAX_PARTS)
			fail(c->cx, MP_BAD_INPUT, "name fewer", "--%s is given more than %d times", row->name, MAX_PARTS);
		list[(*count)++] = value;
	}
}

static const CommandDef *command_find(Ctx *cx, const char *name)
{
	const char *names[COUNT(commands)];
	Buf list = { .arena = &cx->scratch };
	buf_puts(&list, "commands are:");
	for (size_t i = 0; i < COUNT(commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
		names[i] = commands[i].name;
		buf_printf(&list, " %s", commands[i].name);
	}
	const char *near = nearest_name(name, names, COUNT(names));
	fail(cx, MP_BAD_INPUT, list.s, near ? "gf11 has no command '%s'; did you mean '%s'?" : "gf11 has no command '%s'",
	     name, near);
}

static const char *usage(Arena *a, const CommandDef *v)
{
	Buf b = { .arena = a };
	buf_printf(&b, "write: %s %s", v->name, v->operand ? v->operand : "and options");
	if (v->operand && strstr(v->operand, "ROUTINE")) {
		buf_puts(&b, "; ");
		routine_names(&b);
	}
	return b.s;
}

/* The operand of `machine` is the machine itself. */
static const char *machine_name(const CommandRun *c)
{
	const char *file = c->def->run == run_machine ? c->operand[0] : NULL;
	if (file && c->machine)
		fail(c->cx, MP_BAD_INPUT, "write one of the two", "which machine, '%s' or --machine '%s'?", file, c->machine);
	return file ? file : c->machine ? c->machine : "gf11";
}

/* A report is printed completely or not at all; if it reports a failure, before the message. */
/* For programs: name, operand, and the options besides machine and json, with tabs between. */
static void list_commands(Buf *out)
{
	for (size_t i = 0; i < COUNT(commands); i++)
		buf_printf(out, "%s\t%s\t%s\n", commands[i].name, commands[i].operand ? commands[i].operand : "",
		           commands[i].options);
}

void gf11_tool(Ctx *cx, int argc, const char *const *argv, Buf *out)
{
	if (argc < 1)
		fail(cx, MP_BAD_INPUT, "name a command", "gf11 does what?");
	if (strcmp(argv[0], "commands") == 0) {
		list_commands(out);
		return;
	}
	Buf text = { .arena = out->arena }, json = text, csv = text;
	JsonWriter writer = { .out = &json };
	CommandRun c = { .cx = cx,
		             .text = &text,
		             .json = &writer,
		             .def = command_find(cx, argv[0]),
		             .level = 1,
		             .fault_seed = 1,
		             .began = clock_seconds() };
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) == 0)
			option_take(&c, argv[i] + 2);
		else {
			const char *word = argv[i];
			if (c.operands == c.def->most)
				fail(c.cx, MP_BAD_INPUT, usage(&c.cx->scratch, c.def), "'%s' is one operand too many for %s", word,
				     c.def->name);
			c.operand[c.operands++] = word;
		}
	}
	if (c.def->operand && c.def->operand[0] != '[' && !c.operands)
		fail(cx, MP_BAD_INPUT, usage(&cx->scratch, c.def), "%s needs an operand", c.def->name);
	c.m = machine_open(cx, machine_name(&c));
	c.csv = c.as_csv ? &csv : NULL;
	jw_start(&writer, NULL, '{');
	jw_text(&writer, "machine", c.m->name);
	c.def->run(&c);
	jw_end(&writer, '}');
	buf_puts(&json, "\n");
	*out = c.as_json ? json : c.as_csv ? csv : text;
	if (c.failure)
		fail(cx, MP_FAILED, c.remedy, "%s", c.failure);
}
