/* SPDX-License-Identifier: MIT */
/* test: error and accuracy of a trained network. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const Option test_options[] = {
	{ "outputs", "FILE", "write the outputs of every case to this .npy file" },
	{ "cases", "[=FILE]",
	  "every case: target, guess, whether it is right, probabilities or residual, rival (the best guess but one), "
	  "error, "
	  "also of each output group, and reaction time (first tick within the threshold); FILE: .csv, or text" },
	{ "figures", "DIR",
	  "draw figures into this folder, as SVG: confusion, roc and calibration of classes, predicted against true of "
	  "numbers" },
	{ "csv", "FILE", "write the metrics to this CSV file: a line for each, also for each class and pair of classes" },
	{ "words-file", "FILE", "nettalk: take the words of this list, first pronunciation of each" },
	{ "json", NULL, "print the result as one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup test_groups[] = {
	{ "Options", test_options, NULL },
	{ "Measuring", NULL,
	  " target error threshold criterion-from noise seed ticks intervals dt targets-from inputs-until procs sigmoid "
	  "machine "
	  "threads " },
	{ "Reading data", data_reading, NULL },
	{ NULL, NULL, NULL },
};

static const Example test_examples[] = {
	{ "microprop test iris.safetensors new.csv", "metrics of a model on other data" },
	{ "microprop test iris.safetensors new.csv --cases=cases.csv --figures figures",
	  "every case, a confusion matrix, ROC curves, a reliability diagram" },
	{ "microprop test net.topo net.safetensors held-out.npz",
	  "error, accuracy (right) and share within the threshold" },
	{ "microprop test net.topo net.safetensors cases.csv --outputs out.npy --json", "outputs for other programs" },
	{ NULL, NULL },
};

enum { MOST_FIGURES = 20 };
typedef struct TestFiles {
	const char *outputs, *cases, *csv, *figures; /* NULL: not asked for; cases "": not into a file */
	char drawn[MOST_FIGURES][32];                /* files of figures */
	size_t figure_count;
	Args *args;
} TestFiles;

static void figure_add(void *f, const char *text, size_t len) { fwrite(text, 1, len, f); }

/* One figure; no file where the targets have none of this kind. */
static int figure_write(TestFiles *files, mp_run *run, const char *kind, uint32_t target, bool several)
{
	TextFile f;
	char path[4096], *name = files->drawn[files->figure_count];
	if (!text_begin(&f))
		return EXIT_FAILED;
	int rc = after_run(run, mp_run_figure(run, kind, target, figure_add, f.f));
	if (rc || fflush(f.f) || !f.len) {
		fclose(f.f);
		free(f.text);
		return rc;
	}
	snprintf(name, sizeof *files->drawn, several ? "%s-%u.svg" : "%s.svg", kind, target + 1);
	files->figure_count++;
	snprintf(path, sizeof path, "%s/%s", files->figures, name);
	return text_end(&f, run, path);
}

static int figures_write(TestFiles *files, const Cases *c)
{
	static const char *const kinds[] = { "confusion", "roc", "calibration" };
	uint32_t outputs = 1;
	int rc = folders_make(files->args, files->figures);
	for (size_t i = 0; !rc && i < COUNT(kinds); i++)
		rc = figure_write(files, c->run, kinds[i], 0, false);
	const mp_data_info *info;
	if (!rc && mp_data_get_info(c->data, &info) == MP_OK)
		outputs = info->targets;
	for (uint32_t i = 0; !rc && i < outputs && files->figure_count < MOST_FIGURES; i++)
		rc = figure_write(files, c->run, "predicted", i, outputs > 1);
	return rc;
}

static int test_files(TestFiles *files, const Cases *c)
{
	TextFile f;
	int rc = EXIT_DONE;
	if (files->cases && *files->cases) {
		if (!text_begin(&f))
			return EXIT_FAILED;
		(ends_with(files->cases, ".csv") ? cases_csv : cases_text)(c, f.f);
		rc = text_end(&f, c->run, files->cases);
	}
	if (!rc && files->csv) {
		if (!text_begin(&f))
			return EXIT_FAILED;
		metrics_csv(c->run, c->metrics, f.f);
		rc = text_end(&f, c->run, files->csv);
	}
	return rc || !files->figures ? rc : figures_write(files, c);
}

static void test_show(const Session *s, const mp_result *r, const Cases *c, const TestFiles *files, bool json)
{
	const mp_metrics *m = c->metrics;
	bool listed = files->cases && !*files->cases;
	if (json) {
		Json j = { .f = stdout };
		json_open(&j, NULL, '{');
		json_count(&j, "cases", r->cases);
		json_number(&j, "error", r->error);
		json_number(&j, "total_error", r->total_error);
		json_number(&j, "right", r->right);
		json_number(&j, "within", r->within);
		json_number(&j, "seconds", r->seconds);
		json_text(&j, "outputs_file", files->outputs);
		if (files->cases && *files->cases)
			json_text(&j, "cases_file", files->cases);
		if (files->figures) {
			json_text(&j, "figures_folder", files->figures);
			json_open(&j, "figures", '[');
			for (size_t i = 0; i < files->figure_count; i++)
				json_text(&j, NULL, files->drawn[i]);
			json_close(&j, ']');
		}
		metrics_json(&j, s->run, m);
		columns_json(&j, s->run);
		json_number(&j, "holdout_cases", NAN); /* as train has it: all cases are measured */
		if (listed)
			cases_json(c, &j);
		json_end(&j);
		return;
	}
	show(stdout, "%s: %s\n\n", mp_net_get_info(s->net)->name, format_things(r->cases, "case").s);
	show(stdout, "error        %12s\n", format_real(r->error).s);
	if (!table_model(s->run)) {
		show(stdout, "total error  %12s\n", format_real(r->total_error).s);
		if (right_counts(s->net, s->data))
			show(stdout, "right        %12s\n", format_share(r->right).s);
		show(stdout, "within       %12s\n", format_share(r->within).s);
	}
	metrics_show(s->run, m);
	show(stdout, "\n");
	if (listed) {
		cases_text(c, stdout);
		show(stdout, "\n");
	}
	show(stdout, "measured in %s\n", format_time(r->seconds).s);
	const char *const written[][2] = { { "outputs", files->outputs },
		                               { "cases", listed ? NULL : files->cases },
		                               { "metrics", files->csv } };
	for (size_t i = 0; i < COUNT(written); i++)
		if (written[i][1])
			show(stdout, "%s written to %s\n", written[i][0], written[i][1]);
	if (files->figures)
		show(stdout, files->figure_count ? "drawn in %s:" : "nothing to draw in %s", files->figures);
	for (size_t i = 0; i < files->figure_count; i++)
		show(stdout, "%s %s", i ? "," : "", files->drawn[i]);
	show(stdout, files->figures ? "\n" : "");
}

static int test_steps(Session *s, Args *a)
{
	mp_data_options reading;
	TestFiles files = { args_text(a, "outputs"), args_text(a, "cases"), args_text(a, "csv"), args_text(a, "figures"),
		                .args = a };
	double *outputs = NULL;
	uint64_t cases = 0;
	mp_result result = { .size = sizeof result };
	if (!session_reading(a, true, &reading))
		return EXIT_USAGE;
	const char *data = NULL;
	int rc = output_check(a, "outputs");
	if (!rc && files.cases && *files.cases)
		rc = output_check(a, "cases");
	if (!rc)
		rc = output_check(a, "csv");
	if (!rc)
		rc = folder_output_check(a, "figures");
	if (!rc)
		rc = session_weights(s, a, &reading, &data);
	if (rc)
		return rc;
	const mp_net_info *net = mp_net_get_info(s->net);
	if ((rc = session_cases(s, a, data, &reading, &cases)))
		return rc;
	if (files.outputs)
		outputs = args_alloc(a, cases * net->outputs, sizeof *outputs);
	rc = after_run(s->run, mp_run_test(s->run, s->data, &result, outputs));
	if (!rc && files.outputs)
		rc = after_run(s->run, mp_run_write_outputs(s->run, files.outputs, outputs, cases));
	if (rc)
		return rc;
	const mp_metrics *metrics = mp_run_measure(s->run, s->data);
	if (!metrics)
		return after_run(s->run, MP_FAILED);
	Cases measured = { s->run, s->data, metrics };
	if ((rc = test_files(&files, &measured)))
		return rc;
	test_show(s, &result, &measured, &files, args_flag(a, "json"));
	return EXIT_DONE;
}

static int test_run(Args *a)
{
	Session s = { 0 };
	int rc = test_steps(&s, a);
	session_close(&s);
	return rc;
}

const Command test_command = {
	.name = "test",
	.operands = "MODEL [DATA]",
	.least = 1,
	.most = 3,
	.summary = "measure a trained network",
	.about =
		"Runs DATA through the network of MODEL, a file that train saved, and prints the metrics that fit its targets. "
		"FILE.topo WEIGHTS in place of MODEL takes a topology file and a file of weights; then DATA may be left out: "
		"it "
		"is the test data the topology file names, or its training data. Columns of a table are found by name.\n\n"
		"Prints the mean error per case, the accuracy (right: share of cases whose best "
		"guess is the target), and the share of cases whose outputs are all within the threshold of their targets.",
	.group = test_groups,
	.example = test_examples,
	.run = test_run,
};
