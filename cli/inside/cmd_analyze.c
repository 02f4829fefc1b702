/* SPDX-License-Identifier: MIT */
/* analyze: what the units of a group have learnt. */
#include "inside.h"

static const Option options[] = {
	{ "group", "NAME", "the group; default the first hidden one" },
	{ "distance", "euclidean|correlation|cosine", "between activations of two cases; default euclidean" },
	{ "average", "name|target", "compare means over cases of the same name, or the same target, instead of cases" },
	{ "sets", "NAME=CASES,...",
	  "sets of cases, for colours and --contrast: numbers of cases, from 1 (first=1..10), or patterns of their names "
	  "(regular=reg*), several with | between" },
	{ "contrast", "A,B", "compare the mean activations of two sets; default the two, if there are two" },
	{ "top", "N", "strongest links and cases listed of each unit; default 5" },
	{ "figures", "DIR",
	  "draw figures into this folder, as SVG: tree, pca, mds, activations, contribution and contrast" },
	{ "csv", "FILE", "write a line for each case: components, scaling, activations" },
	{ "distances", "FILE", "write the distances to this CSV file" },
	{ "json", NULL, "print one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup groups[] = {
	{ "Options", options, NULL },
	{ "Measuring", NULL, " target error threshold threads " },
	{ "Reading data", data_reading, NULL },
	{ NULL, NULL, NULL },
};

static const Example examples[] = {
	{ "microprop analyze net.topo net.safetensors words.npz --group hidden", "clusters, components, units" },
	{ "microprop analyze net.topo net.safetensors words.npz --average target --figures figures",
	  "mean activations of each target, with figures" },
	{ "microprop analyze net.topo net.safetensors words.npz --sets 'regular=reg*,exception=exc*' --json",
	  "the contrast between two sets of cases" },
	{ NULL, NULL },
};

static int analyze_run(Args *a)
{
	Session s = { 0 };
	const char *figures = args_text(a, "figures");
	int rc = folder_output_check(a, "figures");
	if (!rc)
		rc = output_check(a, "distances");
	if (!rc)
		rc = study_open(a, &s);
	if (!rc && figures)
		rc = folders_make(a, figures);
	if (!rc)
		rc = study_run(a, &s, "analyze");
	session_close(&s);
	return rc;
}

const Command analyze_command = {
	.name = "analyze",
	.operands = "MODEL [DATA]",
	.least = 1,
	.most = 3,
	.summary = "what the units of a group have learnt",
	.about =
		"Runs DATA through the network of MODEL, a file that train saved, or of FILE.topo WEIGHTS in its place, and "
		"compares the activations of a group between cases: distances, the tree of clusters (average linkage), "
		"principal "
		"components, multidimensional scaling (classical). Of each unit: its strongest links, the cases that activate "
		"it "
		"most, and its contribution: the change of the error when it is removed.\n\n"
		"At most 2,000 cases are compared with one another; of more, compare means (--average). Components and scaling "
		"need at most 512 units or cases.",
	.group = groups,
	.example = examples,
	.run = analyze_run,
};
