/* SPDX-License-Identifier: MIT */
/* Training on a table without a topology file: what is in it is found out, a network is made for it, some rows are held
 * out, and the model is saved beside. */
#include <errno.h>
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

static int write_topology(const char *path, const char *text)
{
	FILE *f = fopen(path, "wxe");
	bool failed = !f || fputs(text, f) < 0;
	int error = errno;
	if ((f && fclose(f)) || failed) {
		complain("choose a file that does not exist yet, in a folder that you may write",
		         "--write-topo: cannot write %s: %s", path, strerror(error));
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

/* The network, made for the table as it was cut; file: where its text is written, NULL: nowhere. */
static int table_net(TableRun *t, Args *a, Session *s, const char *file)
{
	TextOut out = { 0 };
	int rc = after_table(
		t->table, mp_table_topology(t->table, &(mp_topology){ sizeof(mp_topology), args_text(a, "hidden"), NULL },
	                                text_append, &out));
	if (!rc && !out.text)
		rc = EXIT_FAILED;
	if (!rc && file)
		rc = write_topology(file, out.text);
	if (!rc) {
		mp_status status = mp_net_parse(&s->net, out.text, mp_table_get_info(t->table)->name, NULL);
		rc = after_net(s->net, status);
	}
	free(out.text);
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
	int rc = table_net(t, a, s, NULL);
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
	return t->stopped && t->stopped();
}

static int table_try(TableRun *t, Args *a, Session *s, uint64_t seed, Trial *trial)
{
	*trial = (Trial){ NAN, NAN, 0 };
	int rc = table_run(t, a, s, seed);
	if (rc)
		return rc;
	mp_status status = mp_run_train(s->run, s->data, s->test, trial_report, t);
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
		if (rc)
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

int table_restarts(TableRun *t, Args *a, const Session *from, uint64_t count)
{
	uint64_t first = 1;
	double best = NAN;
	if (!args_count(a, "seed", &first))
		return EXIT_USAGE;
	t->seed = first;
	for (uint64_t i = 0; i < count; i++) {
		Session s = { .data = from->data, .test = from->test };
		Trial trial;
		int rc = table_try(t, a, &s, first + i, &trial);
		s.data = s.test = NULL; /* they stay open */
		session_close(&s);
		if (rc)
			return rc;
		if (!isnan(trial.loss) && !(trial.loss >= best)) {
			best = trial.loss;
			t->seed = first + i;
		}
	}
	return EXIT_DONE;
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
	qsort(sorted, n, sizeof *sorted, by_count);
	return n ? (sorted[(n - 1) / 2] + sorted[n / 2]) / 2 : 0;
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
	uint64_t epochs = rc ? 0 : median_epoch(t);
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
	rc = t->folds ? table_folds(t, a, cut) : EXIT_DONE;
	if (rc)
		return rc;
	t->refit = share > 0 && !args_flag(a, "no-refit") && !args_text(a, "run") && !args_text(a, "load") &&
	           !args_text(a, "resume") && mp_table_get_info(t->table)->rows <= REFIT_ROWS;
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
		rc = table_net(t, a, s, args_text(a, "write-topo"));
	if (!rc && !args_flag(a, "quiet") && !args_flag(a, "json"))
		table_say(t, s, test);
	return rc;
}
