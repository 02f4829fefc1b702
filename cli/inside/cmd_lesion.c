/* SPDX-License-Identifier: MIT */
/* lesion: performance of a damaged network. */
#include "inside.h"

static const Option options[] = {
	{ "units", "GROUPS",
	  "places: remove units of these groups, several with commas between; default the hidden groups" },
	{ "links", "'A->B'", "places: remove links from group A to group B, several with commas between; A may be true" },
	{ "share", "RANGE",
	  "shares of the units or links that are removed: X, FROM..TO:STEP, several with commas between; default "
	  "0..1:0.1" },
	{ "repeats", "N", "damaged networks for each place and share, chosen at random; default 20" },
	{ "noise", NULL,
	  "add Gaussian noise to the weights instead, of units to those of the links that lead out; --share is its "
	  "standard "
	  "deviation, in standard deviations of the weights of the place, and may exceed 1" },
	{ "seed", "N", "of the random choice; default 1" },
	{ "sets", "NAME=CASES,...",
	  "measure sets of cases apart: numbers of cases, from 1 (first=1..10), or patterns of their names (regular=reg*), "
	  "several with | between" },
	{ "measure", "right|within|error", "what the figure shows; default right, or within where no guess is right" },
	{ "svg", "FILE", "draw the curves with their confidence bands into this file" },
	{ "csv", "FILE", "write the table to this CSV file" },
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
	{ "microprop lesion net.topo net.safetensors words.npz --units hidden --svg lesion.svg",
	  "20 networks for each tenth of the hidden units removed" },
	{ "microprop lesion net.topo net.safetensors words.npz --units hidden --links 'hidden->out' --repeats 100 --json",
	  "two places; mean, standard deviation and n for programs" },
	{ "microprop lesion net.topo net.safetensors words.npz --sets 'regular=reg*,exception=exc*' --csv lesion.csv",
	  "two sets of cases" },
	{ "microprop lesion net.topo net.safetensors words.npz --noise --share 0..2:0.25", "noise on weights" },
	{ NULL, NULL },
};

static int lesion_run(Args *a)
{
	Session s = { 0 };
	int rc = study_open(a, &s);
	if (!rc)
		rc = study_run(a, &s, "lesion");
	session_close(&s);
	return rc;
}

const Command lesion_command = {
	.name = "lesion",
	.operands = "MODEL [DATA]",
	.least = 1,
	.most = 3,
	.summary = "performance of a damaged network",
	.about =
		"Damages copies of the network of MODEL, a file that train saved, or of FILE.topo WEIGHTS in its place, and "
		"measures each on DATA, default the test data that the topology file names: for every place and share the mean "
		"over repeats, its standard deviation, and (--json, --csv, the figure) the confidence interval of the mean at "
		"95 %.\n\n"
		"A removed unit sends 0, also from contexts that are copies of it; a removed output counts as 0; a removed "
		"link "
		"has the weight 0. The damage of a repeat grows with the share: what a share removes, larger ones do, too. "
		"Results depend on --seed, not on threads. Settling networks are measured at the last tick of a case.",
	.group = groups,
	.example = examples,
	.run = lesion_run,
};
