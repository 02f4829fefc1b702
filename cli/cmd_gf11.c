/* SPDX-License-Identifier: MIT */
/* gf11: a command of the 1989 machine comes in; what the library reports about it goes out. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const Option options[] = {
	{ "machine", "FILE", "the machine: a file, or one of gf11, gf11-356, gf11-ring, gf11-banks16; default gf11" },
	{ "routines", NULL, "efficiency: of the routines of the library" },
	{ "level", "N", "how long to search for shorter schedules: 0 not at all, each level eight times as long; default 1" },
	{ "kanata", "FILE", "trace: write a pipeline trace for Konata" },
	{ "chrome", "FILE", "trace: write a trace for Perfetto or chrome://tracing" },
	{ "dead", "PART", "switch: what does not work, crossbar:STAGE:N, link:STAGE:N:M or port:P, with stages input, middle "
	  "and output; may be given again" },
	{ "json", NULL, "print one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop gf11 efficiency --routines", "how near to the best possible every routine comes" },
	{ "microprop gf11 microcode matrix-vector", "scheduled lines, one column per unit" },
	{ "microprop gf11 trace forward --chrome forward.json", "every operation with its latency, for Perfetto" },
	{ "microprop gf11 switch random:7:500 --dead link:input:3:5", "500 random routes around a dead link" },
	{ "microprop gf11 machine gf11-ring", "all parameters of a machine and where they come from" },
	{ NULL, NULL },
};

static void piece_write(void *user, const char *text, size_t len)
{
	fwrite(text, 1, len, user);
}

int tool_run(Args *a, const char *target, const char *verb)
{
	const char **words = args_alloc(a, (size_t)a->argc + 1, sizeof *words);
	int count = 0;
	words[count++] = verb ? verb : a->operand[0];
	for (int i = 1; i < a->operands; i++)
		words[count++] = a->operand[i];
	for (size_t i = 0; i < a->givens; i++) {
		const Given *g = &a->given[i];
		size_t room = strlen(g->name) + strlen(g->value) + sizeof "--=";
		char *word = args_alloc(a, room, 1);
		if (g->flag && g->value[0] == '0')
			continue;
		snprintf(word, room, g->flag ? "--%s" : "--%s=%s", g->name, g->value);
		words[count++] = word;
	}
	mp_tool *tool;
	mp_status status = mp_tool_run(&tool, target, count, words, piece_write, stdout, NULL);
	int rc = after_tool(tool, status);
	mp_tool_close(tool);
	return rc;
}

static int gf11_run(Args *a)
{
	return tool_run(a, "gf11", NULL);
}

const Command gf11_command = {
	.name = "gf11",
	.operands = "COMMAND [WHAT]",
	.least = 1,
	.most = 2,
	.summary = "the 1989 machine: microcode, switch",
	.about = "Looks at the GF11, the machine of the 1989 report, cycle by cycle. The commands:\n\n"
	         "efficiency: schedules the routines of the library and compares their length with lower bounds that no "
	         "schedule can beat.\n\n"
	         "microcode ROUTINE: prints the scheduled lines of a routine.\n\n"
	         "trace ROUTINE: writes a trace of it for a viewer.\n\n"
	         "switch ring|tree:K|random:SEED[:ROUTES]|FILE: sets the three stages of crossbars for a permutation, verifies the "
	         "setting by tokens and draws it; random:1..10000 does so for many and times them. A file has lines of two "
	         "numbers, from and to.\n\n"
	         "machine [FILE]: prints every parameter of a machine with its provenance.",
	.group = groups,
	.example = examples,
	.run = gf11_run,
};
