/* SPDX-License-Identifier: MIT */
/* predict: outputs of a trained network, or activations of any of its groups. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "microprop/inside.h"
#include "microprop/predict.h"

static const Option predict_options[] = {
	{ "output", "FILE", "write to this file instead of stdout: .npy, .csv, or rows of text" },
	{ "group", "NAME", "activations of this group instead of outputs: input, hidden, context or output" },
	{ "tick", "N", "with --group, of a settling network: at this tick of each case, from 1; default the last" },
	{ "guess", NULL, "the best guess of every case: class, code word or number of the largest output" },
	{ "words-file", "FILE", "nettalk: take the words of this list, first pronunciation of each" },
	{ "json", NULL, "print everything as one JSON object" },
	{ NULL, NULL, NULL },
};

static const OptionGroup predict_groups[] = {
	{ "Options", predict_options, NULL },
	{ "Running", NULL, " target noise seed ticks intervals dt inputs-until procs sigmoid machine threads " },
	{ "Reading data", data_reading, NULL },
	{ NULL, NULL, NULL },
};

static const Example predict_examples[] = {
	{ "microprop predict iris.safetensors new.csv", "a model needs nothing else" },
	{ "microprop predict net.topo net.safetensors new.csv", "a row of outputs per case" },
	{ "echo 0 1 | microprop predict examples/xor.topo xor.safetensors -", "cases from standard input" },
	{ "microprop predict net.topo net.safetensors new.csv --output out.csv --guess", "a table with the best guesses" },
	{ "microprop predict net.topo net.safetensors new.csv --group hidden --output hidden.npy",
	  "activations of hidden units" },
	{ NULL, NULL },
};

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
	bool bits;                  /* of several targets of 0 and 1: a guess for each */
	char number[32];            /* the last guess, where it has not */
	uint64_t tick;              /* 0: the last */
	const char *group;          /* NULL: outputs; else activations of this group */
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

/* Of several targets of 0 and 1. */
static int bit_guess(double output) { return output >= 0.5; }

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
	fputs(t->guess && !t->bits ? ",guess" : "", f);
	for (uint32_t k = 0; t->guess && t->bits && k < t->width; k++) {
		fputs(",guess.", f);
		csv_put(f, t->name[k]);
	}
	fputc('\n', f);
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
		for (uint32_t k = 0; t->guess && t->bits && k < t->width; k++)
			fprintf(f, ",%d", bit_guess(row[k]));
		if (t->guess && !t->bits) {
			fputc(',', f);
			csv_put(f, best_guess(t, row));
		}
		fputc('\n', f);
	}
}

/* Columns with their names; the guess first, where outputs are classes. */
static bool has_columns(const Table *t) { return t->model && (!t->guess || t->bits); }

static void text_head(const Table *t, FILE *f)
{
	if (!has_columns(t))
		return;
	fprintf(f, t->named ? "%-20s " : "", "name");
	fprintf(f, t->classes ? "%-16s" : "", "guess");
	for (uint32_t k = 0; k < t->width; k++)
		show(f, " %11.11s", t->name[k]);
	fputc('\n', f);
}

static void text_row(Table *t, FILE *f, uint64_t i, const double *row)
{
	if (t->named)
		show(f, "%-20s ", mp_data_get_name(t->data, i));
	if (has_columns(t)) {
		if (t->classes)
			show(f, "%-16s", best_guess(t, row));
		for (uint32_t k = 0; k < t->width; k++)
			fprintf(f, t->guess ? " %11g" : " %11.6g", t->guess ? bit_guess(row[k]) : row[k]);
	} else if (t->guess) {
		show(f, "%s", best_guess(t, row));
	} else {
		for (uint32_t k = 0; k < t->width; k++)
			fprintf(f, "%s%11.6g", k ? " " : "", row[k]);
	}
	fputc('\n', f);
}

static void table_text(Table *t, FILE *f)
{
	text_head(t, f);
	for (uint64_t i = 0; i < t->cases; i++)
		text_row(t, f, i, &t->outputs[i * t->width]);
}

static void table_json(Table *t, const char *file)
{
	Json j = { .f = stdout };
	json_open(&j, NULL, '{');
	json_count(&j, "cases", t->cases);
	if (t->group)
		json_text(&j, "group", t->group);
	json_text(&j, t->group ? "activations_file" : "outputs_file", file);
	json_open(&j, t->group ? "activations" : "outputs", '[');
	for (uint64_t i = 0; i < t->cases && !file; i++) {
		json_open(&j, NULL, '[');
		for (uint32_t k = 0; k < t->width; k++)
			json_number(&j, NULL, t->outputs[i * t->width + k]);
		json_close(&j, ']');
	}
	json_close(&j, ']');
	if (t->name) {
		json_open(&j, "names", '[');
		for (uint32_t k = 0; k < t->width; k++)
			json_text(&j, NULL, t->name[k]);
		json_close(&j, ']');
	}
	if (!t->group)
		json_open(&j, "guesses", '[');
	for (uint64_t i = 0; i < t->cases && t->guess; i++) {
		const double *row = &t->outputs[i * t->width];
		if (!t->bits) {
			json_text(&j, NULL, best_guess(t, row));
			continue;
		}
		json_open(&j, NULL, '[');
		for (uint32_t k = 0; k < t->width; k++)
			json_count(&j, NULL, (uint64_t)bit_guess(row[k]));
		json_close(&j, ']');
	}
	if (!t->group)
		json_close(&j, ']');
	json_end(&j);
}

static int table_write(Session *s, Table *t, const char *path)
{
	if (ends_with(path, ".npy")) {
		mp_status status = mp_run_write_matrix(s->run, path, t->outputs, t->cases, t->width);
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

/* Units of a group: hidden[0], hidden[1], ... Zero units: there is no such group, and the library says so. */
static void name_units(Session *s, Args *a, Table *t)
{
	const mp_group_info *g;
	t->width = 0;
	for (uint32_t i = 0; (g = mp_net_get_group(s->net, i)); i++)
		if (!strcmp(g->name, t->group))
			t->width = g->units;
	t->name = args_alloc(a, t->width, sizeof *t->name);
	for (uint32_t k = 0; k < t->width; k++) {
		size_t size = strlen(t->group) + 16;
		char *name = args_alloc(a, size, 1);
		snprintf(name, size, "%s[%u]", t->group, k);
		t->name[k] = name;
	}
}

static int outputs_take(Session *s, Args *a, Table *t)
{
	double *v = args_alloc(a, t->cases * t->width, sizeof *v);
	t->outputs = v;
	if (t->group)
		return after_run(s->run, mp_run_activations(s->run, s->data, t->group, (uint32_t)t->tick, v));
	int rc = after_run(s->run, mp_run_test(s->run, s->data, NULL, v));
	for (uint64_t i = 0; t->model && i < t->cases * t->width; i++)
		v[i] = mp_run_decode(s->run, (uint32_t)(i % t->width), v[i]);
	return rc;
}

/* What the rows of s->data look like. */
static int table_make(Session *s, Args *a, const mp_data_options *reading, Table *t)
{
	const mp_data_info *info;
	int rc = after_data(s->data, mp_data_get_info(s->data, &info));
	if (rc)
		return rc;
	uint32_t width = mp_net_get_info(s->net)->outputs;
	*t = (Table){ .data = s->data,
		          .cases = info->cases,
		          .width = width,
		          .named = info->named,
		          .guess = args_flag(a, "guess"),
		          .targets = info->targets == width,
		          .group = args_text(a, "group") };
	if (!args_count(a, "tick", &t->tick))
		return EXIT_USAGE;
	if (args_text(a, "tick") && (!t->group || t->tick < 1 || t->tick > UINT32_MAX)) {
		complain("write --group NAME --tick N, with N from 1 on",
		         t->group ? "--tick cannot be %s" : "--tick %s is of --group", args_text(a, "tick"));
		return EXIT_USAGE;
	}
	if (t->group) {
		name_units(s, a, t);
	} else {
		t->classes = reading->class_count == width ? reading->classes : NULL;
		name_outputs(s, a, t);
	}
	const char *task = mp_run_get_task(s->run);
	t->bits = t->model && t->name && width > 1 && task && !strcmp(task, "binary");
	return EXIT_DONE;
}

/* ---- a line in, a line out ---- */

/* Fields of a line; *numbers: all are. */
static uint32_t fields_of(const char *line, size_t len, bool *numbers)
{
	static const char between[] = ",; \t\r\n";
	uint32_t fields = 0;
	*numbers = true;
	for (size_t i = 0; i < len;) {
		size_t start = i;
		while (i < len && !strchr(between, line[i]))
			i++;
		fields += i > start;
		for (; start < i; start++)
			*numbers = *numbers && strchr("0123456789+-.eE", line[start]);
		i++;
	}
	return fields;
}

static bool contains(const char *line, size_t len, const char *word)
{
	size_t n = strlen(word);
	for (size_t i = 0; i + n <= len; i++)
		if (!memcmp(line + i, word, n))
			return true;
	return false;
}

/* Every input column of the model is a word of the line. */
static bool names_columns(mp_run *run, const char *line, size_t len)
{
	const mp_column *c;
	for (uint32_t i = 0; (c = mp_run_get_column(run, i)); i++)
		if (!strcmp(c->role, "input") && !contains(line, len, c->name))
			return false;
	return true;
}

/* Cases can be computed as they come if each is a line by itself: numbers, as many as the network has inputs, or rows
 * of a table whose header names its columns; of a network with contexts, if it can be computed step by step.  *header:
 * the first line is one.  *p: made where it is needed to know. */
static bool line_by_line(Session *s, const Args *a, Lines *l, mp_predictor **p, bool *header)
{
	static const char *const whole[] = { "output", "group", "json", "words-file" };
	bool numbers;
	for (size_t i = 0; i < COUNT(whole); i++)
		if (args_text(a, whole[i]) || args_flag(a, whole[i]))
			return false;
	for (const Option *o = data_reading; o->name; o++)
		if (args_text(a, o->name))
			return false;
	const mp_net_info *net = mp_net_get_info(s->net);
	const char *first = l->text + l->head;
	size_t len = l->head_end - l->head;
	uint32_t fields = fields_of(first, len, &numbers);
	*header = !numbers;
	if (net->copies) { /* a case depends on those before */
		const mp_column *c;
		for (uint32_t i = 0; (c = mp_run_get_column(s->run, i)); i++)
			if (!strcmp(c->role, "sequence"))
				return false;
		if (mp_predictor_new(p, s->run, NULL) != MP_OK || mp_predictor_reset(*p) != MP_OK)
			return false;
		l->sequences = true;
	}
	if (table_model(s->run))
		return names_columns(s->run, first, len);
	return numbers && fields == net->inputs;
}

/* Outputs of the cases that have come. */
static int stream_some(Session *s, mp_predictor *p, Table *t, double *row)
{
	uint32_t inputs = mp_net_get_info(s->net)->inputs;
	const mp_data_info *info;
	int rc = after_data(s->data, mp_data_get_info(s->data, &info));
	if (!rc && info->inputs != inputs)
		rc = after_run(s->run, mp_run_test(s->run, s->data, NULL, row)); /* for its message */
	t->data = s->data;
	for (uint64_t i = 0; !rc && i < info->cases; i++) {
		mp_data_get_case(s->data, i, mp_predictor_inputs(p), NULL);
		const double *out = mp_predictor_step(p);
		for (uint32_t k = 0; k < t->width; k++)
			row[k] = t->model ? mp_run_decode(s->run, k, out[k]) : out[k];
		text_row(t, stdout, i, row);
	}
	return rc;
}

/* Notes were shown with the first cases. */
static int cases_more(Session *s, const mp_data_options *reading)
{
	mp_data_options bare = *reading;
	bare.unlabelled = !table_model(s->run);
	mp_status status = mp_data_open_for(&s->data, "-", s->run, &bare, NULL);
	return status == MP_OK ? EXIT_DONE : after_data(s->data, status);
}

static int stream(Session *s, Args *a, const mp_data_options *reading, Lines *l, mp_predictor *p, bool header)
{
	Table t = { 0 };
	int rc = EXIT_DONE;
	double *row = args_alloc(a, mp_net_get_info(s->net)->outputs, sizeof *row);
	if (!p && mp_predictor_new(&p, s->run, NULL) != MP_OK) {
		show_lines(stderr, mp_predictor_messages(p), strlen(mp_predictor_messages(p)));
		rc = EXIT_FAILED;
	}
	while (!rc && lines_next(l, header)) {
		rc = t.data ? cases_more(s, reading) : cases_open(s, "-", reading);
		if (!rc && !t.data) {
			rc = table_make(s, a, reading, &t);
			text_head(&t, stdout);
		}
		if (!rc && l->begins)
			mp_predictor_reset(p);
		if (!rc)
			rc = stream_some(s, p, &t, row);
		if (rc && l->first > 1 + (uint64_t)header)
			show(stderr, "note: line %u there is line %llu of the input\n", 1 + header, (unsigned long long)l->first);
		mp_data_close(s->data);
		s->data = NULL;
		if (fflush(stdout))
			break; /* main reports it */
	}
	mp_predictor_close(p);
	return rc;
}

static int predict_steps(Session *s, Args *a)
{
	mp_data_options reading;
	if (!session_reading(a, true, &reading))
		return EXIT_USAGE;
	const char *path = NULL, *file = args_text(a, "output");
	int rc = output_check(a, "output");
	if (!rc && args_text(a, "group") && args_flag(a, "guess")) {
		complain("leave one of them out", "--guess is about outputs, not about the activations of --group");
		rc = EXIT_USAGE;
	}
	if (!rc)
		rc = session_weights(s, a, &reading, &path);
	path = path ? path : "-";
	if (!rc)
		rc = pipe_open(&path);
	if (!rc && !strcmp(path, "-")) {
		Lines lines;
		bool header = false;
		mp_predictor *p = NULL;
		if (lines_open(&lines) && line_by_line(s, a, &lines, &p, &header)) {
			reading.scale = NULL;
			reading.format = header ? NULL : "text";
			rc = stream(s, a, &reading, &lines, p, header);
			lines_close(&lines);
			return rc;
		}
		mp_predictor_close(p);
		rc = lines_whole(&lines);
	}
	if (!rc) {
		const mp_net_info *net = mp_net_get_info(s->net);
		session_reading_file(net->data_options, net->data, path, &reading);
		reading.scale = NULL; /* the weights have theirs */
		rc = cases_open(s, path, &reading);
	}
	Table t;
	if (!rc)
		rc = table_make(s, a, &reading, &t);
	if (!rc)
		rc = outputs_take(s, a, &t);
	if (!rc && file)
		rc = table_write(s, &t, file);
	if (rc)
		return rc;
	if (args_flag(a, "json"))
		table_json(&t, file);
	else if (file)
		show(stdout, "%s of %s written to %s\n", t.group ? "activations" : "outputs", format_things(t.cases, "case").s,
		     file);
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
		"input; cases that are lines of numbers, or rows of a table below its header, are computed as they come, "
		"and the output of each is written at once, so that predict can be a co-process. Contexts keep their values "
		"from "
		"line to line; a blank line begins a sequence.\n\n"
		"With --group, rows are the activations of that group for every case, in the order of its units: inputs as the "
		"network gets them, contexts as they were when the case was computed.",
	.group = predict_groups,
	.example = predict_examples,
	.run = predict_run,
};
