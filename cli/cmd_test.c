/* SPDX-License-Identifier: MIT */
/* test and predict: error and accuracy of a trained network, or its outputs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static const Option test_options[] = {
	{ "outputs", "FILE", "write the outputs of every case to this .npy file" },
	{ "cases", "[=FILE]",
	  "every case: target, guess, whether it is right, probabilities or residual, error; FILE: .csv, or text" },
	{ "figures", "DIR",
	  "draw figures into this folder, as SVG: confusion, roc and calibration of classes, predicted against true of "
	  "numbers" },
	{ "csv", "FILE", "write the metrics to this CSV file: a line for each, also for each class and pair of classes" },
	{ "words-file", "FILE", "nettalk: take the words of this list, first pronunciation of each" },
	{ "json", NULL, "print the result as one JSON object" },
	{ NULL, NULL, NULL },
};

static const Option predict_options[] = {
	{ "output", "FILE", "write to this file instead of stdout: .npy, .csv, or rows of text" },
	{ "guess", NULL, "the best guess of every case: class, code word or number of the largest output" },
	{ "words-file", "FILE", "nettalk: take the words of this list, first pronunciation of each" },
	{ "json", NULL, "print everything as one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup test_groups[] = {
	{ "Options", test_options, NULL },
	{ "Measuring", NULL, " target error threshold procs sigmoid machine threads " },
	{ "Reading data", data_reading, NULL },
	{ NULL, NULL, NULL },
};

static const OptionGroup predict_groups[] = {
	{ "Options", predict_options, NULL },
	{ "Running", NULL, " target procs sigmoid machine threads " },
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

static const Example predict_examples[] = {
	{ "microprop predict iris.safetensors new.csv", "a model needs nothing else" },
	{ "microprop predict net.topo net.safetensors new.csv", "a row of outputs per case" },
	{ "echo 0 1 | microprop predict examples/xor.topo xor.safetensors -", "cases from standard input" },
	{ "microprop predict net.topo net.safetensors new.csv --output out.csv --guess", "a table with the best guesses" },
	{ NULL, NULL },
};

/* Net and weights: FILE.topo WEIGHTS, or one MODEL that holds both.  *data: the operand after them, NULL if there is
 * none.  The data is then read with the classes of the weights file. */
static int weights_open(Session *s, const Args *a, mp_data_options *reading, const char **data)
{
	int rc = session_net(s, a->operand[0]);
	if (rc)
		return rc;
	bool model = mp_net_get_info(s->net)->model;
	int after = model ? 1 : 2;
	if (a->operands < after || a->operands > after + 1) {
		const char *cases = args_text(a, "cases");
		complain(cases && !*cases ? "write --cases=FILE if the cases go to a file"
		                          : "write: microprop test MODEL DATA, or: microprop test FILE.topo WEIGHTS DATA",
		         model ? "%s is a model: only data can follow" : "the weights for %s are missing", a->operand[0]);
		return EXIT_USAGE;
	}
	*data = a->operands > after ? a->operand[after] : NULL;
	rc = session_resolve(s, NULL, a->operand[after - 1]);
	if (!rc)
		rc = session_run(s);
	if (!rc)
		rc = session_set(s, a);
	if (!rc)
		rc = after_run(s->run, mp_run_load(s->run, a->operand[after - 1]));
	if (!rc)
		reading->classes = mp_run_get_classes(s->run, &reading->class_count);
	return rc;
}

/* Only data with targets can be measured. */
static int cases_count(Session *s, uint64_t *cases)
{
	const mp_data_info *info;
	const mp_column *c;
	int rc = after_data(s->data, mp_data_get_info(s->data, &info));
	if (rc)
		return rc;
	*cases = info->cases;
	uint32_t i = 0;
	while ((c = mp_run_get_column(s->run, i)) && strcmp(c->role, "target"))
		i++;
	if (!info->targets)
		complain("give data with targets, or see its outputs with: microprop predict",
		         c ? "%s has no targets to measure by (the network was trained on '%s')"
		           : "%s has no targets to measure by",
		         info->name, c ? c->name : "");
	return info->targets ? EXIT_DONE : EXIT_USAGE;
}

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
		json_real(&j, "error", r->error);
		json_real(&j, "total_error", r->total_error);
		json_real(&j, "right", r->right);
		json_real(&j, "within", r->within);
		json_real(&j, "seconds", r->seconds);
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
		rc = weights_open(s, a, &reading, &data);
	if (rc)
		return rc;
	const mp_net_info *net = mp_net_get_info(s->net);
	data = data ? data : net->test ? net->test : net->data;
	if (!data) {
		complain("write: microprop test FILE.topo WEIGHTS DATA", "%s names no data to test on", a->operand[0]);
		return EXIT_USAGE;
	}
	session_reading_file(net->test_options, net->test, data, &reading);
	session_reading_file(net->data_options, net->data, data, &reading);
	reading.scale = NULL; /* the weights have theirs */
	if ((rc = session_data_for(s, data, &reading)) || (rc = cases_count(s, &cases)))
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

/* ---- predict ---- */

/* Reads the data one way; NULL: its inputs do not fit the net. */
static mp_data *cases_try(const Session *s, const char *path, const mp_data_options *reading)
{
	const mp_data_info *info;
	mp_data *data = NULL;
	if (!strcmp(path, "-"))
		lseek(STDIN_FILENO, 0, SEEK_SET);
	waiting_start(path);
	mp_status status = mp_data_open_for(&data, path, s->run, reading, NULL);
	waiting_end();
	if (status == MP_OK && mp_data_get_info(data, &info) == MP_OK && info->inputs == mp_net_get_info(s->net)->inputs)
		return data;
	mp_data_close(data);
	return NULL;
}

/* Cases may have targets or not: rows as wide as the net's inputs have none.  So the data is read as unlabelled first,
 * then with the targets it has, then with targets of any kind, as they are not used. */
static int cases_open(Session *s, const char *path, const mp_data_options *reading)
{
	char last[24];
	mp_data_options bare = *reading, any = *reading;
	bare.unlabelled = 1;
	if (bare.inputs)
		bare.targets = bare.labels = NULL;
	snprintf(last, sizeof last, "%llu", 1ull + mp_net_get_info(s->net)->inputs);
	any.classes = NULL;
	any.labels = reading->targets ? reading->targets : reading->labels ? reading->labels : last;
	if (table_model(s->run)) /* trained on a table: its columns are found by name */
		return session_data_for(s, path, reading);
	const mp_data_options *const ways[] = { &bare, reading, &any };
	for (size_t i = 0; i < COUNT(ways) && !s->data; i++)
		s->data = cases_try(s, path, ways[i]);
	if (s->data) /* notes about columns, if they have names */
		return mp_run_get_column(s->run, 0) ? after_data(s->data, MP_OK) : EXIT_DONE;
	if (!strcmp(path, "-"))
		lseek(STDIN_FILENO, 0, SEEK_SET);
	return session_data_for(s, path, reading); /* for its messages */
}

/* A pipe takes the place of standard input; *path becomes "-". */
static int pipe_open(const char **path)
{
	struct stat st;
	if (!strcmp(*path, "-") || stat(*path, &st) || !S_ISFIFO(st.st_mode))
		return EXIT_DONE;
	waiting_start(*path);
	int fd = open(*path, O_RDONLY | O_CLOEXEC);
	waiting_end();
	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0) {
		complain(NULL, "cannot open %s: %s", *path, strerror(errno));
		return EXIT_USAGE;
	}
	close(fd);
	*path = "-";
	return EXIT_DONE;
}

/* Standard input becomes a file that can be read twice. */
static int input_spool(void)
{
	char block[65536];
	struct stat st;
	bool device = fstat(STDIN_FILENO, &st) == 0 && S_ISCHR(st.st_mode) && !isatty(STDIN_FILENO);
	/* what the library would not read is not copied either */
	uint64_t limit = device ? 1 << 26 : (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2,
			 all = 0;
	FILE *f = tmpfile();
	ssize_t n = 0;
	bool failed = !f;
	waiting_start("-");
	while (f && !failed && all <= limit && (n = read(STDIN_FILENO, block, sizeof block)) > 0) {
		failed = fwrite(block, 1, (size_t)n, f) != (size_t)n;
		all += (uint64_t)n;
	}
	waiting_end();
	if (f && all > limit) {
		fclose(f);
		complain("save it to a file and name that", "standard input has more than %llu bytes",
		         (unsigned long long)limit);
		return EXIT_USAGE;
	}
	failed = !f || failed || n < 0 || fflush(f) || dup2(fileno(f), STDIN_FILENO) < 0;
	failed = failed || lseek(STDIN_FILENO, 0, SEEK_SET) < 0;
	int error = errno;
	if (f)
		fclose(f);
	if (failed)
		complain("check that the folder for temporary files (/tmp) has free space", "cannot read standard input: %s",
		         strerror(error));
	return failed ? EXIT_FAILED : EXIT_DONE;
}

typedef struct Table {
	mp_data *data;
	const double *outputs;
	uint64_t cases;
	uint32_t width;
	bool named, guess;
	const char *const *classes; /* what the outputs stand for; NULL: no classes, or not known */
	bool targets;               /* the data has some, and so knows what its codes are called */
	const char **name;          /* [width] of the outputs: classes or targets; NULL: not known */
	bool model;                 /* trained on a table */
	char number[32];            /* the last guess, where it has not */
} Table;

static const char *best_guess(Table *t, const double *row)
{
	uint32_t best = 0;
	if (t->model && !t->classes && t->width == 1 && row[0] >= 0 && row[0] <= 1)
		return row[0] >= 0.5 ? "1" : "0";
	if (t->targets && !t->classes)
		return mp_data_get_guess(t->data, row);
	for (uint32_t k = 1; k < t->width; k++)
		best = row[k] > row[best] ? k : best;
	if (t->classes)
		return t->classes[best];
	if (t->width > 1)
		snprintf(t->number, sizeof t->number, "%u", best);
	else
		snprintf(t->number, sizeof t->number, "%g", row[0]);
	return t->number;
}

static void table_csv(Table *t, FILE *f)
{
	fputs(t->named ? "name," : "", f);
	for (uint32_t k = 0; k < t->width; k++) {
		fputs(k ? "," : "", f);
		if (t->name)
			csv_put(f, t->name[k]);
		else
			fprintf(f, "out%u", k);
	}
	fputs(t->guess ? ",guess\n" : "\n", f);
	for (uint64_t i = 0; i < t->cases; i++) {
		const double *row = &t->outputs[i * t->width];
		if (t->named) {
			csv_put(f, mp_data_get_name(t->data, i));
			fputc(',', f);
		}
		for (uint32_t k = 0; k < t->width; k++) {
			fputs(k ? "," : "", f);
			number_print(f, row[k]);
		}
		if (t->guess) {
			fputc(',', f);
			csv_put(f, best_guess(t, row));
		}
		fputc('\n', f);
	}
}

/* Columns with their names; the guess first, where outputs are classes. */
static void model_text(Table *t, FILE *f)
{
	fprintf(f, t->named ? "%-20s " : "", "name");
	fprintf(f, t->classes ? "%-16s" : "", "guess");
	for (uint32_t k = 0; k < t->width; k++)
		show(f, " %11.11s", t->name[k]);
	fputc('\n', f);
	for (uint64_t i = 0; i < t->cases; i++) {
		const double *row = &t->outputs[i * t->width];
		if (t->named)
			show(f, "%-20s ", mp_data_get_name(t->data, i));
		if (t->classes)
			show(f, "%-16s", best_guess(t, row));
		for (uint32_t k = 0; k < t->width; k++)
			fprintf(f, " %11.6g", row[k]);
		fputc('\n', f);
	}
}

static void table_text(Table *t, FILE *f)
{
	if (t->model && !t->guess) {
		model_text(t, f);
		return;
	}
	for (uint64_t i = 0; i < t->cases; i++) {
		const double *row = &t->outputs[i * t->width];
		if (t->named)
			show(f, "%-20s ", mp_data_get_name(t->data, i));
		if (t->guess)
			show(f, "%s", best_guess(t, row));
		for (uint32_t k = 0; k < t->width && !t->guess; k++)
			fprintf(f, "%s%11.6g", k ? " " : "", row[k]);
		fputc('\n', f);
	}
}

static void table_json(Table *t, const char *file)
{
	Json j = { .f = stdout };
	json_open(&j, NULL, '{');
	json_count(&j, "cases", t->cases);
	json_text(&j, "outputs_file", file);
	json_open(&j, "outputs", '[');
	for (uint64_t i = 0; i < t->cases && !file; i++) {
		json_open(&j, NULL, '[');
		for (uint32_t k = 0; k < t->width; k++)
			json_real(&j, NULL, t->outputs[i * t->width + k]);
		json_close(&j, ']');
	}
	json_close(&j, ']');
	if (t->name) {
		json_open(&j, "names", '[');
		for (uint32_t k = 0; k < t->width; k++)
			json_text(&j, NULL, t->name[k]);
		json_close(&j, ']');
	}
	json_open(&j, "guesses", '[');
	for (uint64_t i = 0; i < t->cases && t->guess; i++)
		json_text(&j, NULL, best_guess(t, &t->outputs[i * t->width]));
	json_close(&j, ']');
	json_end(&j);
}

static int table_write(Session *s, Table *t, const char *path)
{
	if (ends_with(path, ".npy")) {
		mp_status status = mp_run_write_outputs(s->run, path, t->outputs, t->cases);
		return after_run(s->run, status);
	}
	TextFile f;
	if (!text_begin(&f))
		return EXIT_FAILED;
	(ends_with(path, ".csv") ? table_csv : table_text)(t, f.f);
	return text_end(&f, s->run, path);
}

/* Classes, or the target columns of the table that the network was trained on. */
static void name_outputs(Session *s, Args *a, Table *t)
{
	const mp_column *c;
	uint32_t n = 0;
	t->model = table_model(s->run);
	if (!t->classes && !t->model)
		return;
	t->name = args_alloc(a, t->width, sizeof *t->name);
	for (uint32_t k = 0; t->classes && k < t->width; k++)
		t->name[k] = t->classes[k];
	for (uint32_t i = 0; !t->classes && n < t->width && (c = mp_run_get_column(s->run, i)); i++)
		if (!strcmp(c->role, "target"))
			t->name[n++] = c->name;
}

static int predict_steps(Session *s, Args *a)
{
	mp_data_options reading;
	if (!session_reading(a, true, &reading))
		return EXIT_USAGE;
	const char *path = NULL, *file = args_text(a, "output");
	int rc = output_check(a, "output");
	if (!rc)
		rc = weights_open(s, a, &reading, &path);
	path = path ? path : "-";
	if (!rc)
		rc = pipe_open(&path);
	if (!rc && !strcmp(path, "-"))
		rc = input_spool();
	if (!rc) {
		const mp_net_info *net = mp_net_get_info(s->net);
		session_reading_file(net->data_options, net->data, path, &reading);
		reading.scale = NULL; /* the weights have theirs */
		rc = cases_open(s, path, &reading);
	}
	if (rc)
		return rc;
	const mp_data_info *info;
	if ((rc = after_data(s->data, mp_data_get_info(s->data, &info))))
		return rc;
	uint32_t width = mp_net_get_info(s->net)->outputs;
	double *outputs = args_alloc(a, info->cases * width, sizeof *outputs);
	Table t = { .data = s->data,
		        .outputs = outputs,
		        .cases = info->cases,
		        .width = width,
		        .named = info->named,
		        .guess = args_flag(a, "guess"),
		        .targets = info->targets == width };
	if (reading.class_count == width)
		t.classes = reading.classes;
	name_outputs(s, a, &t);
	rc = after_run(s->run, mp_run_test(s->run, s->data, NULL, outputs));
	for (uint64_t i = 0; t.model && i < t.cases * width; i++)
		outputs[i] = mp_run_decode(s->run, (uint32_t)(i % width), outputs[i]);
	if (!rc && file)
		rc = table_write(s, &t, file);
	if (rc)
		return rc;
	if (args_flag(a, "json"))
		table_json(&t, file);
	else if (file)
		show(stdout, "outputs of %s written to %s\n", format_things(t.cases, "case").s, file);
	else
		table_text(&t, stdout);
	return EXIT_DONE;
}

static int predict_run(Args *a)
{
	Session s = { 0 };
	int rc = predict_steps(&s, a);
	session_close(&s);
	return rc;
}

const Command predict_command = {
	.name = "predict",
	.operands = "MODEL [DATA|-]",
	.least = 1,
	.most = 3,
	.summary = "outputs for unlabelled cases",
	.about =
		"Runs cases through the network of MODEL, a file that train saved, or of FILE.topo WEIGHTS in its place, and "
		"prints the outputs, a row per case: probabilities of classes, numbers in the units of the table. DATA "
		"needs no targets; if it has some they are not used. '-', or no DATA, reads CSV or text from standard "
		"input.",
	.group = predict_groups,
	.example = predict_examples,
	.run = predict_run,
};
