/* SPDX-License-Identifier: MIT */
/* bench: the name of a target comes in; how fast it works here goes out. */
#include "cli.h"

static const Option options[] = {
	{ "threads", "N", "threads to use; default: one for each CPU" },
	{ "machine", "FILE", "gf11: the machine, a file or the name of one; default gf11" },
	{ "json", NULL, "print one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop bench gf11", "cycles a second of the simulated machine, and times its real speed" },
	{ NULL, NULL },
};

static int bench_run(Args *a)
{
	return tool_run(a, a->operand[0], "bench");
}

const Command bench_command = {
	.name = "bench",
	.operands = "TARGET",
	.least = 1,
	.most = 1,
	.summary = "how fast a target works here",
	.about = "Measures a target on this computer. For gf11 that is the executor: processor-cycles a second of all processors "
	         "on the routine that forms weighted sums, and how many times faster that is than the machine itself was. It runs for a second; the rate is that of "
	         "the best tenth of it, which other work on the computer disturbs least.",
	.group = groups,
	.example = examples,
	.run = bench_run,
};
