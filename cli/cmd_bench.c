/* SPDX-License-Identifier: MIT */
/* microprop bench: training speed of a target on this computer. */
#include "cli.h"

static const Option options[] = {
	{ "only", "WORK[:BATCH]", "cpu, cuda: only this work, such as nettalk, nettalk:512, 8-3-8, mlp784 or elman" },
	{ "threads", "N", "threads to use; default: cpu 1 and one for each CPU, gf11 one for each CPU" },
	{ "rounds", "N", "cpu, cuda: rounds of measurement; default 5" },
	{ "precision", "P", "cuda: fp32 or bf16; default fp32" },
	{ "list", NULL, "cpu: list kernels, threads and works without measuring" },
	{ "machine", "FILE", "gf11: the machine, a file or the name of one; default gf11" },
	{ "sum", "HOW", "gf11: epochs with this summation method only: ring, tree, pipelined or halving" },
	{ "json", NULL, "print one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop bench", "connections per second of this computer, and its ceilings" },
	{ "microprop bench --only nettalk:512 --threads 1", "one work, one thread" },
	{ "MICROPROP_ISA=avx2 microprop bench --json", "with other kernels than the best available; for programs" },
	{ "microprop bench --list", "available kernels and works" },
	{ "microprop bench cuda --only nettalk", "a GPU beside one core" },
	{ "microprop bench gf11", "cycles per second of the simulated machine, relative to the real one" },
	{ NULL, NULL },
};

static int bench_run(Args *a) { return tool_run(a, a->operands ? a->operand[0] : "cpu", "bench"); }

const Command bench_command = {
	.name = "bench",
	.operands = "[TARGET]",
	.least = 0,
	.most = 1,
	.summary = "training speed of a target on this computer",
	.about =
		"Measures a target on this computer; without a target, cpu.\n\n"
		"For cpu: million connections per second (MCPS: connections times cases or ticks, forward, backward and update "
		"together) of "
		"training six networks on synthetic data: nettalk (203-60-26, 12,022 cases), 8-3-8, mlp784 "
		"(784-512-512-10) "
		"elman (26-64-26, 1,000 sequences of about 50 cases), reading (100-100-61-20-100) and settling, the same "
		"with links back, in 8 ticks: a tick costs what a case does if both have the same MCPS. Beside them stand the "
		"ceilings of the computer, "
		"measured in "
		"the same run: multiply-adds and bf16 tile products from registers, copying in memory. Everything is "
		"measured for a "
		"fifth of a second in every round, alternately; best, median and worst round are printed. "
		"The share of the ceiling counts the arithmetic of dense work, so index lists, which skip most of it, can "
		"exceed "
		"100 %. The row for Table 2 of the report is nettalk, full batch, dense, fp32. "
		"MICROPROP_ISA=generic, neon, avx2, avx512 or amx selects other kernels than the best available.\n\n"
		"For cuda: the same networks on a GPU, in 10^12 connections times cases per second (TCPS), with the time of an "
		"update and the ratio to one core of this computer, measured alternately.\n\n"
		"For gf11: the executor: processor-cycles per second of all processors "
		"on the routine of weighted sums, relative to the real machine. "
		"It runs for a second; the rate is that of "
		"the best tenth of it, least disturbed by other load. Then training epochs of best mode (Table 1: 203-60-26, "
		"12,022 cases, all processors) with every summation method, each for a second and at least five epochs: "
		"simulated time, the best and the median time here, and simulated over best time.",
	.group = groups,
	.example = examples,
	.run = bench_run,
};
