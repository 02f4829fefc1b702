/* SPDX-License-Identifier: MIT */
/* Training on a table without a topology file: what is in it is found out, a network is made for it, some rows are held
 * out, and the model is saved beside. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

enum {
	FEW_ROWS = 20,     /* below this no rows are held out */
	REFIT_ROWS = 2000, /* above this a fifth of the rows adds little */
	REFIT_FOLDS = 5,
};
#define HOLD_OUT 0.2

int after_table(const mp_table *table, mp_status status)
{
	const char *messages = mp_table_messages(table);
	show_lines(stderr, messages, strlen(messages));
	return status == MP_OK ? EXIT_DONE : status == MP_BAD_INPUT ? EXIT_USAGE : EXIT_FAILED;
}

bool table_model(mp_run *run)
{
	const mp_column *c = mp_run_get_column(run, 0);
	return c && !c->plain;
}

bool is_table(const char *path)
{
	static const char *const suffixes[] = { ".csv", ".tsv", ".npz", ".npy", ".idx", ".idx.gz", ".txt", ".data" };
	size_t n = strlen(path);
	if (!strncmp(path, "make:", 5) || strstr(path, "-ubyte"))
		return true;
	for (size_t i = 0; i < COUNT(suffixes); i++) {
		size_t len = strlen(suffixes[i]);
		if (n > len && !strcasecmp(path + n - len, suffixes[i]))
			return true;
	}
	return false;
}

/* iris.csv, ../x/iris.csv and make:xor become iris.safetensors and xor.safetensors in the current folder. */
static char *model_name(Args *a, const char *path)
{
	const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path;
	if (!strncmp(from, "make:", 5))
		from += 5;
	char *name = args_alloc(a, strlen(from) + sizeof ".safetensors", 1);
	strcpy(name, from);
	for (char *p = name; *p; p++)
		*p = *p == ':' ? '-' : *p;
	char *dot = strrchr(name, '.');
	if (dot && dot > name)
		*dot = '\0';
	return strcat(name, ".safetensors");
}

int table_model_file(Args *a, const char *path, const char **file)
{
	const char *save = args_text(a, "save");
	*file = NULL;
	if (args_flag(a, "no-save")) {
		if (!save)
			return EXIT_DONE;
		complain("leave one of them out", "--save and --no-save exclude each other");
		return EXIT_USAGE;
	}
	if (!save && !strcmp(path, "-")) {
		complain("name it with --save, or keep nothing with --no-save", "the model of standard input has no name");
		return EXIT_USAGE;
	}
	*file = save ? save : model_name(a, path);
	if (!save && !args_flag(a, "force") && !access(*file, F_OK)) {
		complain("overwrite it with --force, choose another with --save, or keep nothing with --no-save",
		         "%s exists already", *file);
		return EXIT_USAGE;
	}
	if (mp_job_rank(a->job) > 0) /* rank 0 writes it */
		return EXIT_DONE;
	int rc = output_path_check(a, "save", *file);
	return rc ? rc : model_output_check(a, *file);
}

/* The text of a topology file for the table as it was cut. */
static int topology_text(TableRun *t, Args *a, TextOut *out)
{
	mp_topology network = { sizeof network, args_text(a, "hidden"), NULL };
	int rc = after_table(t->table, mp_table_topology(t->table, &network, text_append, out));
	return !rc && !out->text ? EXIT_FAILED : rc;
}

static int table_net(TableRun *t, Args *a, Session *s)
{
	TextOut out = { 0 };
	int rc = topology_text(t, a, &out);
	if (!rc) {
		mp_status status = mp_net_parse(&s->net, out.text, mp_table_get_info(t->table)->name, NULL);
		rc = after_net(s->net, status);
	}
	free(out.text);
	return rc;
}

/* ---- the topology as a file ---- */

/* In a list of columns: by its name, or by its number where the name would be read as something else. */
static void column_put(FILE *f, const mp_column *c, uint32_t i)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.- ";
	size_t n = strlen(c->name);
	bool named = n && strspn(c->name, plain) == n && c->name[n - 1] != ' ' && strspn(c->name, "0123456789.- ") == 0;
	if (named)
		fputs(c->name, f);
	else
		fprintf(f, "%u", i + 1);
}

static void columns_put(FILE *f, mp_table *table, const char *option, const char *role)
{
	const mp_column *c;
	uint32_t n = 0;
	for (uint32_t i = 0; (c = mp_table_get_column(table, i)); i++) {
		if (strcmp(c->role, role))
			continue;
		if (!n++)
			fprintf(f, " %s \"", option);
		else
			fputc(',', f);
		column_put(f, c, i);
	}
	fputs(n ? "\"" : "", f);
}

/* Relative names in a topology file start at its folder. NULL: the name cannot be written. */
static const char *data_name(Args *a, const char *topology, const char *table)
{
	char real[PATH_MAX];
	if (strpbrk(table, "\"\\\n"))
		return NULL;
	if (!strncmp(table, "make:", 5) || table[0] == '/' || !strchr(topology, '/'))
		return table;
	return realpath(table, real) && !strpbrk(real, "\"\\\n") ? args_copy(a, real) : NULL;
}

/* A text file, of which options choose columns. */
static bool has_columns(const char *name)
{
	static const char *const others[] = { ".npz", ".npy", ".idx", ".idx.gz", "-ubyte", "-ubyte.gz" };
	bool text = strncmp(name, "make:", 5) != 0;
	for (size_t i = 0; i < COUNT(others); i++)
		text = text && !ends_with(name, others[i]);
	return text;
}

/* The data line, or why there is none. */
static void data_put(FILE *f, Args *a, mp_table *table, const char *name)
{
	const mp_column *c;
	const char *encoded = NULL; /* how, where a data line cannot say it */
	const char *scale = "none";
	bool unused = false;
	for (uint32_t i = 0; (c = mp_table_get_column(table, i)); i++) {
		bool input = !strcmp(c->role, "input");
		unused = unused || !strcmp(c->role, "unused") || !strcmp(c->role, "fold");
		if (input && c->kind && !strcmp(c->kind, "category"))
			encoded = "inputs are categories, one of n units each";
		else if (input && c->indicator)
			encoded = "inputs have missing values, with a unit that marks them";
		if (input && (c->offset != 0 || c->factor != 1))
			scale = c->offset == 0 && !strcmp(scale, "none") ? "range" : "zscore";
	}
	if (args_text(a, "scale"))
		scale = args_text(a, "scale");
	if (encoded || !name) {
		fprintf(f, "# There is no data line: %s.\n",
		        encoded ? encoded : "the table has no name that can be written here");
		if (encoded)
			fputs(
				"# Data for this network has such columns encoded already; microprop train TABLE does it by itself.\n",
				f);
		return;
	}
	fprintf(f, "data \"%s\"", name);
	if (has_columns(name)) {
		if (unused)
			columns_put(f, table, "inputs", "input");
		columns_put(f, table, "targets", "target");
		if (!strcmp(mp_table_get_info(table)->task, "classes"))
			columns_put(f, table, "labels", "target");
		columns_put(f, table, "weight", "weight");
		columns_put(f, table, "sequence", "sequence");
		columns_put(f, table, "names", "name");
	}
	fprintf(f, strcmp(scale, "none") ? " scale %s\n" : "\n", scale);
}

/* For all rows: no early stopping, as a topology file holds no rows out. */
static int write_topology(TableRun *t, Args *a, const char *file, const char *table)
{
	mp_cut all = { .size = sizeof all };
	mp_data *data = NULL, *none = NULL;
	TextOut out = { 0 };
	int rc = after_table(t->table, mp_table_cut(t->table, &all, &data, &none));
	if (!rc)
		rc = topology_text(t, a, &out);
	FILE *f = rc ? NULL : fopen(file, "wxe");
	int error = errno;
	if (f) {
		fputs(out.text, f);
		data_put(f, a, t->table, strcmp(table, "-") ? data_name(a, file, table) : NULL);
		if (!strcmp(mp_table_get_info(t->table)->task, "regression"))
			fputs("# Targets are taken as they are; microprop train TABLE scales them to mean 0 and deviation 1.\n", f);
		fputs("# For early stopping give test data: --test FILE --patience 50 --keep-best --epochs 1000\n", f);
	}
	bool failed = !f || ferror(f);
	failed = (f && fclose(f)) || failed;
	if (!rc && failed) {
		complain("choose a file that does not exist yet, in a folder that you may write",
		         "--write-topo: cannot write %s: %s", file, strerror(f ? EIO : error));
		rc = EXIT_USAGE;
	}
	free(out.text);
	mp_data_close(data);
	mp_data_close(none);
	return rc;
}

static void table_say(const TableRun *t, const Session *s, const char *test)
{
	const mp_table_info *info = mp_table_get_info(t->table);
	const mp_net_info *net = mp_net_get_info(s->net);
	show_lines(stderr, info->decisions, strlen(info->decisions));
	if (t->held_out && test)
		show(stderr, "held out: %s of %s, for early stopping and for the figures below; change with --test\n",
		     format_things(t->held_out, "row").s, test);
	else if (t->held_out)
		show(stderr,
		     "held out: %s of %s (%.3g %%), for early stopping and for the figures below; change with --holdout\n",
		     format_things(t->held_out, "row").s, format_count(info->rows).s,
		     100.0 * (double)t->held_out / (double)info->rows);
	else
		show(stderr, "held out: nothing, so that the figures are those of the training data\n");
	show(stderr, "network:");
	for (uint32_t i = 0; i < net->groups; i++) {
		const mp_group_info *g = mp_net_get_group(s->net, i);
		show(stderr, "%s%u %s", i ? ", " : " ", g->units, i ? g->function : "inputs");
	}
	show(stderr, "; change with --hidden, or write it to a file with --write-topo\n");
}

/* ---- several networks on one table ---- */

typedef struct Trial {
	double score;        /* accuracy or R2 of the rows held out */
	double loss;         /* log loss or root mean squared error */
	uint64_t best_epoch; /* 0: it diverged, and the others are NaN */
} Trial;

static int set_count(Session *s, const char *option, uint64_t value)
{
	char number[24];
	snprintf(number, sizeof number, "%llu", (unsigned long long)value);
	return after_run(s->run, mp_run_set(s->run, option, number));
}

/* A network and a run of its own for data cut already. */
static int table_run(TableRun *t, Args *a, Session *s, uint64_t seed)
{
	int rc = table_net(t, a, s);
	if (!rc)
		rc = session_run(s);
	if (!rc)
		rc = session_set(s, a);
	return rc ? rc : set_count(s, "seed", seed);
}

static int trial_report(void *user, mp_run *run, const mp_report *r)
{
	const TableRun *t = user;
	(void)run, (void)r;
	return t->stopped();
}

static int table_try(TableRun *t, Args *a, Session *s, uint64_t seed, Trial *trial)
{
	*trial = (Trial){ NAN, NAN, 0 };
	int rc = table_run(t, a, s, seed);
	if (rc)
		return rc;
	t->watch(s->run);
	mp_status status = mp_run_train(s->run, s->data, s->test, trial_report, t);
	t->watch(NULL);
	if (status != MP_OK)
		return status == MP_FAILED || status == MP_STOPPED ? EXIT_DONE : after_run(s->run, status);
	const mp_metrics *m = mp_run_use_best(s->run) == MP_OK ? mp_run_measure(s->run, s->test ? s->test : s->data) : NULL;
	if (!m)
		return after_run(s->run, MP_FAILED);
	trial->score = m->classes || !strcmp(m->kind, "bits") ? m->accuracy : m->r2;
	trial->loss = isnan(m->rmse) ? isnan(m->log_loss) ? 1 - m->accuracy : m->log_loss : m->rmse;
	trial->best_epoch = mp_run_get_report(s->run)->best_epoch;
	return EXIT_DONE;
}

static int table_folds(TableRun *t, Args *a, mp_cut cut)
{
	double sum = 0, squares = 0;
	for (uint32_t i = 0; i < t->folds; i++) {
		Session s = { 0 };
		Trial trial = { 0 };
		cut.folds = t->folds;
		cut.fold = i;
		int rc = after_table(t->table, mp_table_cut(t->table, &cut, &s.data, &s.test));
		if (!rc)
			rc = table_try(t, a, &s, cut.seed, &trial);
		session_close(&s);
		if (t->stopped()) /* no mean without all of them */
			t->folds = 0;
		if (rc || !t->folds)
			return rc;
		sum += t->fold_score[i] = trial.score;
		t->fold_epochs[i] = trial.best_epoch;
	}
	t->fold_mean = sum / t->folds;
	for (uint32_t i = 0; i < t->folds; i++)
		squares += (t->fold_score[i] - t->fold_mean) * (t->fold_score[i] - t->fold_mean);
	t->fold_sd = sqrt(squares / t->folds);
	return EXIT_DONE;
}

int table_restarts(TableRun *t, Args *a, Session *s, uint64_t count)
{
	uint64_t first = 1;
	double least = NAN;
	Session best = { 0 };
	int rc = args_count(a, "seed", &first) ? EXIT_DONE : EXIT_USAGE;
	t->seed = first;
	for (uint64_t i = 0; !rc && i < count && !t->stopped(); i++) {
		Session one = { .data = s->data, .test = s->test };
		Trial trial;
		rc = table_try(t, a, &one, first + i, &trial);
		one.data = one.test = NULL; /* they stay open */
		t->seeds += !rc && !t->stopped();
		if (!rc && !isnan(trial.loss) && !(trial.loss >= least)) {
			Session before = best;
			best = one;
			one = before;
			least = trial.loss;
			t->seed = first + i;
		}
		session_close(&one);
	}
	if (t->stopped() && best.run) {
		Session before = { .net = s->net, .run = s->run };
		s->net = best.net;
		s->run = best.run;
		best = before;
	}
	session_close(&best);
	return rc;
}

static int by_count(const void *a, const void *b)
{
	const uint64_t *p = a, *q = b;
	return (*p > *q) - (*p < *q);
}

/* Median of the folds that did not diverge; 0: all did. */
static uint64_t median_epoch(const TableRun *t)
{
	uint64_t sorted[MOST_TABLE_FOLDS];
	uint32_t n = 0;
	for (uint32_t i = 0; i < t->folds; i++)
		if (t->fold_epochs[i])
			sorted[n++] = t->fold_epochs[i];
	if (!n)
		return 0;
	qsort(sorted, n, sizeof *sorted, by_count);
	return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

static int table_cut_of(Args *a, mp_cut *cut)
{
	*cut = (mp_cut){ .size = sizeof *cut, .seed = 1, .stratify = 1, .balance = args_flag(a, "balance") };
	return args_count(a, "seed", &cut->seed) ? EXIT_DONE : EXIT_USAGE;
}

int table_refit(TableRun *t, Args *a, Session *all)
{
	static const char *const off[] = { "patience", "keep-best" }; /* no rows are held out */
	mp_cut cut;
	int rc = table_cut_of(a, &cut);
	if (!rc && !t->folds) {
		t->folds = REFIT_FOLDS;
		rc = table_folds(t, a, cut);
	}
	uint64_t epochs = rc || t->stopped() ? 0 : median_epoch(t);
	if (!epochs)
		return rc;
	rc = after_table(t->table, mp_table_cut(t->table, &cut, &all->data, &all->test));
	if (!rc)
		rc = table_run(t, a, all, t->seed ? t->seed : cut.seed);
	for (size_t i = 0; i < COUNT(off) && !rc; i++)
		rc = set_count(all, off[i], 0);
	if (!rc)
		rc = set_count(all, "epochs", epochs);
	t->refit_epochs = rc ? 0 : epochs;
	return rc;
}

int train_table_open(TableRun *t, Args *a, Session *s, const char *path, const char *test)
{
	mp_data_options reading;
	double share = HOLD_OUT;
	mp_cut cut;
	const char *given = args_text(a, "holdout");
	char *end = NULL;
	if (!session_reading(a, true, &reading) || table_cut_of(a, &cut))
		return EXIT_USAGE;
	if (given && (share = strtod(given, &end), *end || !*given || !(share >= 0 && share < 1))) {
		complain("give a share from 0 up, less than 1, such as 0.2", "--holdout cannot be '%.40s'", given);
		return EXIT_USAGE;
	}
	reading.scale = args_text(a, "scale");
	mp_status status = mp_table_open(&t->table, path, &reading, args_text(a, "task"), NULL);
	int rc = after_table(t->table, status);
	if (rc)
		return rc;
	reading.scale = NULL; /* other files are scaled as the table is */
	if (test || (!given && mp_table_get_info(t->table)->rows < FEW_ROWS))
		share = 0;
	uint64_t folds = 0;
	if (!args_count(a, "folds", &folds))
		return EXIT_USAGE;
	if (args_text(a, "folds") && (folds < 2 || folds > MOST_TABLE_FOLDS)) {
		complain("give 2 to 100", "--folds cannot be %llu", (unsigned long long)folds);
		return EXIT_USAGE;
	}
	t->folds = folds ? (uint32_t)folds : mp_table_get_info(t->table)->folds;
	t->refit = share > 0 && !args_flag(a, "no-refit") && !args_text(a, "run") && !args_text(a, "load") &&
	           !args_text(a, "resume") && mp_table_get_info(t->table)->rows <= REFIT_ROWS;
	if (args_text(a, "write-topo") && mp_job_rank(a->job) == 0)
		rc = write_topology(t, a, args_text(a, "write-topo"), path);
	if (rc)
		return rc;
	cut.share = share;
	rc = after_table(t->table, mp_table_cut(t->table, &cut, &s->data, &s->test));
	if (!rc && test) {
		status = mp_table_encode(t->table, test, &reading, &s->test);
		rc = after_data(s->test, status);
	}
	const mp_data_info *info;
	if (!rc && s->test)
		rc = after_data(s->test, mp_data_get_info(s->test, &info));
	if (!rc && s->test)
		t->held_out = info->cases;
	if (!rc)
		rc = table_net(t, a, s);
	if (!rc && !args_flag(a, "quiet") && !args_flag(a, "json"))
		table_say(t, s, test);
	cut.share = 0;
	return rc || !t->folds ? rc : table_folds(t, a, cut);
}
