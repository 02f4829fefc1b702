/* SPDX-License-Identifier: MIT */
/* microprop gf11: commands of the 1989 machine; the library writes the report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const Option options[] = {
	{ "machine", "FILE", "the machine: a file, or one of gf11, gf11-356, gf11-ring, gf11-banks16; default gf11" },
	{ "cases", "N", "model, sweep, evaluate, updates, disks, diagnose: cases in an epoch; default 12022" },
	{ "procs", "RANGE",
	  "numbers of processors: N, FROM..TO, FROM..TO:STEP, FROM..TO:xFACTOR, several with commas between; efficiency, "
	  "sweep, evaluate, run and diagnose: one number" },
	{ "sum", "HOW",
	  "model, sweep, disks, diagnose: summation method of weight changes, ring, tree, pipelined or halving; default "
	  "tree. table1, calibrate, updates: only these rows" },
	{ "compiler", "HOW",
	  "sweep, efficiency, disks, diagnose: 1989, as the report describes it, or best; default 1989. table1: 1989 "
	  "leaves out best mode. sums, updates, evaluate: only this one" },
	{ "sigmoid", "HOW", "the sigmoid of the compiled program: table or power2; default table" },
	{ "bundle", "N", "weights per bundle, approximately; default: chosen by the compiler, near 1000" },
	{ "update", "N", "weights per update call; default: chosen by the compiler" },
	{ "group", "N", "sweep, efficiency: cases in a group at most; 1: the loop of figure 6; default: as many as fit" },
	{ "ring", "HOW",
	  "table1, sweep, calibrate: steps of a ring of the 1989 compiler cut into calls where that hides latencies, or "
	  "all in one call (whole); default cut" },
	{ "tree", "HOW",
	  "table1, sweep, calibrate, efficiency, pooling: DRAM moves of the 1989 compiler's tree update before and after "
	  "its sums (apart), or overlapped; default apart" },
	{ "sensitivity", NULL,
	  "calibrate: Table 1 for every value of every assumption, or of those named, instead of a fit" },
	{ "extended", NULL,
	  "table1: also the cycles of the update for every summation method, and the crossover points between methods" },
	{ "printed", NULL, "model: the equations as printed, errors included" },
	{ "whole", NULL, "model: every processor has whole cases" },
	{ "simulate", NULL,
	  "model: simulated cycles beside the model's; run: execute the recorded calls directly, without microcode" },
	{ "traced", NULL, "run: cycle by cycle" },
	{ "execute", NULL, "table1: also compute values; the cycles are the same" },
	{ "threads", "N", "table1, run: executing threads; default 1, for run one for each CPU" },
	{ "net", "FILE.topo", "sweep: the network; default 203-60-26 (NETtalk). sums: only this one" },
	{ "out", "PATH",
	  "figures: the folder; default figures. sums, evaluate, pooling, calibrate --sensitivity: a folder for figures. "
	  "calibrate: a machine file to write" },
	{ "csv", NULL, "sweep: print comma-separated values" },
	{ "small-layers", "HOW",
	  "sweep, efficiency: sums over links as chains (straight), as trees (tree), or as trees where the chain is the "
	  "bound (auto); default auto" },
	{ "units", "RANGE", "small: units of the small layer; default 1..12,14,16,20,24,28,32" },
	{ "routines", NULL, "efficiency: of the library routines" },
	{ "level", "N", "search effort for shorter schedules: 0 none, each level eight times as long; default 1" },
	{ "operations", NULL, "microcode: print the operations in program order, as schedule reads them" },
	{ "set", "PLACE=VALUES",
	  "run, debug: words before the call, such as sram:100=1.5,2,3, sram:b1+0..7=0, dram:4000=7i, reg:4=0x3f800000; "
	  "of all processors, or of some: sram:100@3=1, sram:100@0..7=1; may be repeated" },
	{ "show", "PLACE",
	  "run: print these words after the call, such as sram:200..207, reg:0..7, cond:0, dram:b2+0..3@5; :int or :hex "
	  "behind it for words that are no floats; may be repeated" },
	{ "fill", "HOW", "run, debug: other memory, random (the default) or zero; tables are there in any case" },
	{ "base", "N=ADDRESS",
	  "run, debug: a relocation register; default: regions that do not overlap, behind the tables; may be repeated" },
	{ "route", "K=SPEC",
	  "run, debug: configuration K of the switch, as for switch; default: 0 exchanges with the neighbour, K sends K "
	  "processors further; may be repeated" },
	{ "svg", "FILE",
	  "schedule, microcode: draw units by cycles; trace: the pipeline; switch: the crossbars and routes; steps: the "
	  "sum; sweep: speed by the first parameter" },
	{ "dependences", NULL,
	  "schedule, microcode: draw also an arrow from each operation to those that read its result" },
	{ "kanata", "FILE", "trace: write a pipeline trace for Konata" },
	{ "chrome", "FILE", "trace: write a trace for Perfetto or chrome://tracing" },
	{ "dead", "PART",
	  "switch: a dead part, crossbar:STAGE:N, link:STAGE:N:M or port:P, with stages input, middle and output; may be "
	  "repeated" },
	{ "paths", NULL, "switch: with --json also the receiver of every port and the middle crossbar on the way" },
	{ "routine", "N", "program: print the scheduled lines of this routine" },
	{ "timeline", NULL, "program: what the cycles of an epoch are for, in the order of time" },
	{ "fault", "SPEC",
	  "diagnose: an injected fault, dead:PROC, stuck:PROC:reg|sram|dram:ADDR:BIT[:0|1], alu:PROC:RATE, port:PORT, "
	  "misroute:PORT:RATE, crossbar:STAGE:N, link:STAGE:N:M, flip:RATE, or a file with one fault per line; may be "
	  "repeated" },
	{ "fault-seed", "N", "diagnose: random seed; default 1" },
	{ "trials", "N", "diagnose: instead, N machines with one random permanent fault each" },
	{ "trials-of", "WHAT", "diagnose: trials with faults of processors or of the switch; default processors" },
	{ "json", NULL, "print one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop gf11 table1", "the report's Table 1 beside simulated epochs" },
	{ "microprop gf11 model examples/letters.topo --sum ring --procs 8..512:x2",
	  "the performance model of section 6.1" },
	{ "microprop gf11 sweep alu-latency=1..50:7 procs=128,512", "effect of machine parameters" },
	{ "microprop gf11 evaluate --out figures", "effect of every feature of the machine, on three networks" },
	{ "microprop gf11 disks --compiler best", "when the disks are the bottleneck" },
	{ "microprop gf11 sums", "summation methods compared, for 8 to 566 processors" },
	{ "microprop gf11 updates --compiler best --procs 566", "cost of quickprop and the range check" },
	{ "microprop gf11 figures --out figures", "figures 1 to 12 and Table 1 extended, as SVG and CSV" },
	{ "microprop gf11 efficiency --routines", "schedule length of every routine against lower bounds" },
	{ "microprop gf11 small --units 1..12", "small layers: straight code against trees" },
	{ "microprop gf11 microcode matrix-vector", "scheduled lines, one column per unit" },
	{ "microprop gf11 microcode dot >dot.mc && microprop gf11 run dot.mc", "text of microcode, assembled and run" },
	{ "microprop gf11 schedule examples/axpy.ops >axpy.mc", "your own operations become microcode" },
	{ "microprop gf11 run axpy.mc --set sram:100=1.5,2,3 --set sram:300=2 --show sram:200..202",
	  "values in, values out" },
	{ "microprop gf11 ops alu", "operations of the ALU" },
	{ "microprop gf11 debug axpy.mc --procs 4 --set sram:100=1.5,2,3", "cycle by cycle, at a prompt" },
	{ "microprop gf11 run forward --traced", "cycle by cycle; the checksum is that of a run without --traced" },
	{ "microprop gf11 trace forward --chrome forward.json", "every operation with its latency, for Perfetto" },
	{ "microprop gf11 switch random:7:500 --dead link:input:3:5", "500 random routes around a dead link" },
	{ "microprop gf11 diagnose --fault stuck:77:sram:1200:3 --fault link:input:3:5", "two faults, found and bypassed" },
	{ "microprop gf11 machine gf11-ring", "all parameters of a machine with their provenance" },
	{ NULL, NULL },
};

int tool_run(Args *a, const char *target, const char *verb)
{
	const char **words = args_alloc(a, (size_t)a->argc + 1, sizeof *words);
	int count = 0;
	words[count++] = verb ? verb : a->operand[0];
	for (int i = 1; i < a->operands; i++)
		words[count++] = a->operand[i];
	for (size_t i = 0; i < a->givens; i++) {
		const Given *g = &a->given[i];
		size_t size = strlen(g->name) + strlen(g->value) + sizeof "--=";
		char *word = args_alloc(a, size, 1);
		if (g->flag && g->value[0] == '0')
			continue;
		snprintf(word, size, g->flag ? "--%s" : "--%s=%s", g->name, g->value);
		words[count++] = word;
	}
	mp_tool *tool;
	working_start(words[0]);
	mp_status status = mp_tool_run(&tool, target, count, words, show_lines, stdout, NULL);
	working_end();
	int rc = after_tool(tool, status);
	mp_tool_close(tool);
	return rc;
}

/* ---- gf11 debug ---- */

enum { LONGEST_COMMAND = 4000 };

/* Complains about a byte that has no place in a command; true: it was one. */
static bool byte_refused(int c, size_t len)
{
	bool control = (c < ' ' && c != '\t' && c != '\r') || c == 127;
	if (control)
		complain("write commands as plain text, one a line", "byte 0x%02x is not text", (unsigned)c);
	else if (len == LONGEST_COMMAND - 1)
		complain("help lists the commands", "a command has at most %d bytes", LONGEST_COMMAND - 1);
	return control || len == LONGEST_COMMAND - 1;
}

/* A line without its end; false at the end of the input. A line that is no command is left out at a terminal, and ends
 * a pipe, which may have no end of its own. */
static bool line_read(char line[LONGEST_COMMAND], int *rc)
{
	size_t len = 0;
	int c;
	while ((c = getchar()) != EOF && c != '\n') {
		if (!byte_refused(c, len)) {
			line[len++] = (char)c;
			continue;
		}
		*rc = EXIT_USAGE;
		if (!isatty(STDIN_FILENO))
			return false;
		while (c != EOF && c != '\n')
			c = getchar();
		len = 0;
	}
	line[len] = '\0';
	line[strcspn(line, "\r")] = '\0';
	return c != EOF || len;
}

static bool is_quit(const char *line)
{
	line += strspn(line, " \t");
	size_t len = strcspn(line, " \t");
	return len && strncmp("quit", line, len) == 0;
}

static bool is_step(const char *line)
{
	line += strspn(line, " \t");
	return *line == 's' || *line == 'w';
}

/* One command; json: one object a line instead of text. */
static mp_status debug_command(mp_gf11 *g, const char *command, bool json)
{
	if (!json) {
		mp_status status = mp_gf11_debug(g, command, show_lines, stdout);
		fflush(stdout);
		return status;
	}
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	mp_status status = f ? mp_gf11_debug(g, command, show_lines, f) : MP_NO_MEMORY;
	if (f)
		fclose(f);
	Json j = { .f = stdout };
	json_open(&j, NULL, '{');
	json_text(&j, "command", command);
	json_text(&j, "text", text ? text : "");
	if (status != MP_OK)
		json_text(&j, "error", mp_gf11_get_messages(g));
	json_count(&j, "cycle", mp_gf11_get_info(g)->cycle);
	json_bool(&j, "ended", mp_gf11_get_info(g)->ended);
	json_end(&j);
	fflush(stdout);
	free(text);
	return status;
}

/* Commands come from the terminal or a pipe; from a pipe they are echoed, so that the output reads like a session. */
static int debug_loop(mp_gf11 *g, bool json)
{
	bool echo = !isatty(STDIN_FILENO);
	char line[LONGEST_COMMAND], *again = NULL;
	int rc = EXIT_DONE;
	for (;;) {
		if (!json)
			show(stdout, "(cycle %llu) ", (unsigned long long)mp_gf11_get_info(g)->cycle);
		fflush(stdout);
		bool more = line_read(line, &rc), quit = more && is_quit(line);
		if (!json && (echo || !more))
			show(stdout, "%s\n", more ? line : "");
		if (!more || quit)
			break;
		const char *command = line[strspn(line, " \t")] ? line : again ? again : "";
		mp_status status = debug_command(g, command, json);
		if (status != MP_OK)
			rc = json ? EXIT_USAGE : after_gf11(g, status);
		else if (command == line && is_step(line)) {
			free(again);
			again = strdup(line);
		}
	}
	free(again);
	return echo ? rc : EXIT_DONE;
}

static uint32_t given_all(Args *a, const char *name, const char ***list)
{
	uint32_t count = 0;
	*list = args_alloc(a, a->givens + 1, sizeof **list);
	for (size_t i = 0; i < a->givens; i++)
		if (!strcmp(a->given[i].name, name))
			(*list)[count++] = a->given[i].value;
	return count;
}

/* A whole number up to `most`; -1: it is none, message shown. */
static long number_of(const Args *a, const char *name, long least, long most, long absent)
{
	const char *text = args_text(a, name);
	char *end = NULL;
	long n = text ? strtol(text, &end, 10) : absent;
	if (text && (end == text || *end || n < least || n > most)) {
		char remedy[80];
		snprintf(remedy, sizeof remedy, "write a whole number from %ld to %ld", least, most);
		complain(remedy, "--%s cannot be '%s'", name, text);
		return -1;
	}
	return n;
}

static int debug_run(Args *a)
{
	static const char taken[] = " machine procs level set base route fill json ";
	const char **set, **base, **route, *fill = args_text(a, "fill");
	for (size_t i = 0; i < a->givens; i++)
		if (!strstr(taken, a->given[i].name)) {
			complain("its options are: --machine --procs --level --set --base --route --fill --json",
			         "debug has no option '--%s'", a->given[i].name);
			return EXIT_USAGE;
		}
	if (a->operands != 2) {
		complain("write: debug ROUTINE|FILE", "debug needs one operand");
		return EXIT_USAGE;
	}
	if (!strcmp(a->operand[1], "-")) {
		complain("write the routine to a file first", "commands come from standard input: the routine cannot");
		return EXIT_USAGE;
	}
	if (fill && strcmp(fill, "zero") != 0 && strcmp(fill, "random") != 0) {
		complain("write one of: random zero", "--fill cannot be '%s'", fill);
		return EXIT_USAGE;
	}
	long procs = number_of(a, "procs", 1, 4096, 0), level = number_of(a, "level", 0, 9, 1);
	if (procs < 0 || level < 0)
		return EXIT_USAGE;
	mp_gf11_options o = { .size = sizeof o,
		                  .machine = args_text(a, "machine"),
		                  .processors = (uint32_t)procs,
		                  .level = level ? (int)level : -1,
		                  .zero = fill && fill[0] == 'z' };
	o.sets = given_all(a, "set", &set);
	o.bases = given_all(a, "base", &base);
	o.routes = given_all(a, "route", &route);
	o.set = set;
	o.base = base;
	o.route = route;
	mp_gf11 *g;
	mp_status status = mp_gf11_open(&g, a->operand[1], NULL, &o, NULL);
	int rc = status == MP_OK ? EXIT_DONE : after_gf11(g, status);
	if (status == MP_OK) {
		const mp_gf11_info *info = mp_gf11_get_info(g);
		bool json = args_flag(a, "json");
		if (!json)
			show(stdout, "%s: %u operations in %u cycles, %u processors; help lists the commands\n", info->name,
			     info->issues, info->cycles, info->processors);
		rc = debug_loop(g, json);
	}
	mp_gf11_close(g);
	return rc;
}

static int gf11_run(Args *a) { return strcmp(a->operand[0], "debug") == 0 ? debug_run(a) : tool_run(a, "gf11", NULL); }

const Command gf11_command = {
	.name = "gf11",
	.operands = "COMMAND [WHAT...]",
	.least = 1,
	.most = 17,
	.summary = "the 1989 machine: Table 1, figures, model, microcode, switch",
	.about =
		"Simulates the GF11, the machine of the 1989 report, cycle by cycle. The commands:\n\n"
		"table1: the report's Table 1 beside simulated epochs, the model of section 6.1 and the arithmetic limit.\n\n"
		"table2: the report's Table 2, with the simulated machine and this computer below it.\n\n"
		"small: the gain of tree sums over straight code for layers of few units, with both compilers (section 10.3); "
		"--cases is per processor, default 24.\n\n"
		"figures [N...]: the report's figures, all or those named, as SVG and, where they have data, as CSV; and Table "
		"1 "
		"with every summation method.\n\n"
		"model FILE.topo: the performance model: computation, memory traffic, communication, host calls, the best "
		"number of processors.\n\n"
		"sweep NAME=RANGE...: a simulated epoch for every combination of values of machine parameters or of procs, "
		"sum, bundle, update, sigmoid, compiler, small-layers.\n\n"
		"sums: summation methods compared: cycles of the update per weight for three networks, the best method, and "
		"the crossover points.\n\n"
		"updates [FILE.topo]: the cost of each update rule per weight, and what a rule, or option range-check (section "
		"8), adds to an epoch with momentum, for every summation method.\n\n"
		"evaluate [FILE.topo...]: the effect of each feature of the machine (section 11): simulated epochs with one "
		"feature changed, sorted by effect; default three different networks.\n\n"
		"disks [FILE.topo]: cases streamed from the disks: the bandwidth needed and achieved, when the disks are the "
		"bottleneck.\n\n"
		"calibrate [NAME...]: fits the cost of a host call to three cells of Table 1; with --sensitivity, the table "
		"for every value of what the report leaves open.\n\n"
		"pooling [FILE.topo]: speed by cases per update, beside the estimates of sections 7.1 and 7.2.\n\n"
		"report: the statements of the report, each with a verdict and the command that shows it; errata of the "
		"print.\n\n"
		"efficiency [FILE.topo]: share of useful cycles in compiled routines (the report's measure), by network; with "
		"--routines, schedules the library routines and compares their length with lower bounds.\n\n"
		"ops [NAME...]: every operation of a processor, or those named, or of a unit: form, unit, latency, meaning.\n\n"
		"schedule FILE|-: operations in program order, one a line, like fadd v0, v1 -> v2, become a scheduled, checked "
		"routine, printed as microcode. A listing of microcode can be the file: its comments are such operations.\n\n"
		"program [FILE.topo]: the routines of a compiled network and their calls in an epoch; with --timeline, "
		"the epoch in the order of time.\n\n"
		"microcode [ROUTINE|FILE]: prints a routine as scheduled; checks and prints a file of microcode; schedules one "
		"of operations. Without an operand it lists the routines.\n\n"
		"run ROUTINE|FILE: runs it, with values of --set in memory that is pseudo-random otherwise, and prints those "
		"of "
		"--show; without --show the time by part and a checksum of memory, which is the same fast, traced, simulated, "
		"and on any number of threads.\n\n"
		"debug ROUTINE|FILE: runs it a cycle, a word or up to a write at a time and shows registers, memory, "
		"operations in flight, the switch; reads commands, help lists them.\n\n"
		"trace ROUTINE|FILE: writes a trace for a viewer, or draws the pipeline.\n\n"
		"switch ring|tree:K|random:SEED[:ROUTES]|broadcast:PORT|FILE: sets the three stages of crossbars for a "
		"permutation, verifies and draws it; random:FIRST..LAST[:ROUTES] routes and times many seeds. A file has lines "
		"of two numbers, from and to; a port may send to several.\n\n"
		"steps ring|tree|pipelined: a sum over a few processors step by step, whose changes each has; --procs, default "
		"5.\n\n"
		"diagnose [FILE.topo]: tests processors and switch as training does before it starts; reports the approved "
		"processors, the faults found, and how they compare with the injected ones. Default network 203-60-26.\n\n"
		"machine [FILE]: prints every parameter of a machine with its provenance.\n\n"
		"Reports end with the simulated cycles and the seconds taken here.",
	.group = groups,
	.example = examples,
	.run = gf11_run,
	.tool = "gf11",
};
