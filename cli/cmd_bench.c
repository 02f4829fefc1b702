/* SPDX-License-Identifier: MIT */
/* bench: the name of a target comes in; how fast it works here goes out. */
#include "cli.h"

static const Option options[] = {
	{ "only", "WORK[:BATCH]", "cpu: measure this alone, as nettalk, nettalk:512, 8-3-8, mlp784 or elman" },
	{ "threads", "N", "threads to use; default: cpu 1 and one for each CPU, gf11 one for each CPU" },
	{ "rounds", "N", "cpu: how often everything is measured; default 5" },
	{ "list", NULL, "cpu: say what kernels, threads and works there are, and measure nothing" },
	{ "machine", "FILE", "gf11: the machine, a file or the name of one; default gf11" },
	{ "json", NULL, "print one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop bench", "connections a second of this computer, and its ceilings" },
	{ "microprop bench --only nettalk:512 --threads 1", "one work, one thread" },
	{ "MICROPROP_ISA=avx2 microprop bench --json", "with other kernels than the best there are; for programs" },
	{ "microprop bench --list", "kernels that run here, works that are measured" },
	{ "microprop bench gf11", "cycles a second of the simulated machine, and times its real speed" },
	{ NULL, NULL },
};

static int bench_run(Args *a) { return tool_run(a, a->operands ? a->operand[0] : "cpu", "bench"); }

const Command bench_command = {
	.name = "bench",
	.operands = "[TARGET]",
	.least = 0,
	.most = 1,
	.summary = "how fast a target works here",
	.about = "Measures a target on this computer; without a target, cpu.\n\n"
			 "For cpu: million connections per second (MCPS: connections times cases, forward, backward and update "
			 "together) of "
			 "training networks of four shapes on made-up data: nettalk (203-60-26, 12,022 cases), 8-3-8, mlp784 "
			 "(784-512-512-10) "
			 "and elman (26-64-26, 1,000 sequences of about 50 cases). Beside them stand the ceilings of the computer, "
			 "measured in "
			 "the same run: multiply-adds and bf16 tile products from registers, copying in memory. Everything is "
			 "measured for a "
			 "fifth of a second in every round, in turns; best, median and worst round are printed. "
			 "The share of the ceiling counts the arithmetic of dense work, so index lists, which leave most of it "
			 "out, can pass "
			 "100 %. The row for Table 2 of the report is that of nettalk, pooled, dense, fp32. "
			 "MICROPROP_ISA=generic, avx2, avx512 or amx chooses other kernels than the best there are.\n\n"
			 "For gf11: the executor: processor-cycles a second of all processors "
			 "on the routine that forms weighted sums, and how many times faster that is than the machine itself was. "
			 "It runs for a second; the rate is that of "
			 "the best tenth of it, which other work on the computer disturbs least.",
	.group = groups,
	.example = examples,
	.run = bench_run,
};
