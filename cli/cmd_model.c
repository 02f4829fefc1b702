/* SPDX-License-Identifier: MIT */
/* model: predicted time of training a network on a cluster. */
#include "cli.h"

static const Option options[] = {
	{ "cluster", "FILE", "the cluster: a file, or one of ethernet, loopback; default ethernet" },
	{ "ranks", "RANGE",
	  "numbers of ranks, 1 to 4096: N, FROM..TO, FROM..TO:STEP, FROM..TO:xFACTOR, several with commas between; of "
	  "more than 64 the powers of two, both ends and the best are shown; default 1..4096:x2" },
	{ "batch", "all|N", "examples of an update, several with commas between; default all, and some smaller ones" },
	{ "cases", "N", "cases in an epoch; default those of the data" },
	{ "threads", "N", "threads of a rank; default 1" },
	{ "json", NULL, "print one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop model examples/letters.topo --ranks 1..4096", "how many computers on Ethernet would help" },
	{ "microprop model examples/letters.topo --cases 10000000 --batch all,4096",
	  "with more data; all of it for each update, or some" },
	{ "microprop model net.topo data.npz --cluster my.cluster --json", "your network, data and cluster; for programs" },
	{ NULL, NULL },
};

static int model_run(Args *a) { return tool_run(a, "cluster", NULL); }

const Command model_command = {
	.name = "model",
	.operands = "FILE.topo [DATA]",
	.least = 1,
	.most = 2,
	.summary = "what training on a cluster would take",
	.about =
		"Predicts the seconds of an epoch for numbers of ranks (mpirun -n N microprop train), by phase: compute, of "
		"the rank with most leaves; reduce, the sums of gradients sent between ranks; vote, the agreement of all "
		"ranks before an update; update. Then speed-up, efficiency, MCPS (million connections per second) and the "
		"best number of ranks.\n\n"
		"Latency, bandwidth and the like come from a cluster file (doc/machine.md). The rates of a rank are measured "
		"here for about a second, with target cpu, on the data or else on random cases, unless the cluster file gives "
		"them. Leaves and sums are divided among ranks as in training.\n\n"
		"The model of the GF11 is: microprop gf11 model.",
	.group = groups,
	.example = examples,
	.run = model_run,
};
