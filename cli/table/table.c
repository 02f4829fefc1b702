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

enum { FEW_ROWS = 20 }; /* below this no rows are held out */
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
	*file = save ? save : model_name(a, path);
	if (!save && !args_flag(a, "force") && !access(*file, F_OK)) {
		complain("overwrite it with --force, choose another with --save, or keep nothing with --no-save",
		         "%s exists already", *file);
		return EXIT_USAGE;
	}
	return EXIT_DONE;
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

static void table_say(const TableRun *t, const Session *s, double share)
{
	const mp_table_info *info = mp_table_get_info(t->table);
	const mp_net_info *net = mp_net_get_info(s->net);
	show_lines(stderr, info->decisions, strlen(info->decisions));
	if (t->held_out)
		show(stderr,
		     "held out: %s of %s (%g %%), for early stopping and for the figures below; change with --holdout\n",
		     format_things(t->held_out, "row").s, format_count(info->rows).s, share * 100);
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

/* Trains a network of its own on data cut already; *score: accuracy or R2 of the rows held out, *loss: log loss or
 * root mean squared error.  NaN where it diverged. */
static int table_try(TableRun *t, Args *a, Session *s, uint64_t seed, double *score, double *loss)
{
	char number[24];
	snprintf(number, sizeof number, "%llu", (unsigned long long)seed);
	*score = *loss = NAN;
	int rc = table_net(t, a, s, NULL);
	if (!rc)
		rc = session_run(s);
	if (!rc)
		rc = session_set(s, a);
	if (!rc)
		rc = after_run(s->run, mp_run_set(s->run, "seed", number));
	if (rc)
		return rc;
	mp_status status = mp_run_train(s->run, s->data, s->test, NULL, NULL);
	if (status != MP_OK)
		return status == MP_FAILED ? EXIT_DONE : after_run(s->run, status);
	const mp_metrics *m = mp_run_use_best(s->run) == MP_OK ? mp_run_measure(s->run, s->test ? s->test : s->data) : NULL;
	if (!m)
		return after_run(s->run, MP_FAILED);
	*score = m->classes || !strcmp(m->kind, "bits") ? m->accuracy : m->r2;
	*loss = isnan(m->rmse) ? isnan(m->log_loss) ? 1 - m->accuracy : m->log_loss : m->rmse;
	return EXIT_DONE;
}

static int table_folds(TableRun *t, Args *a, mp_cut cut)
{
	double sum = 0, squares = 0, loss;
	for (uint32_t i = 0; i < t->folds; i++) {
		Session s = { 0 };
		cut.folds = t->folds;
		cut.fold = i;
		int rc = after_table(t->table, mp_table_cut(t->table, &cut, &s.data, &s.test));
		if (!rc)
			rc = table_try(t, a, &s, cut.seed, &t->fold_score[i], &loss);
		session_close(&s);
		if (rc)
			return rc;
		sum += t->fold_score[i];
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
		double score, loss;
		int rc = table_try(t, a, &s, first + i, &score, &loss);
		s.data = s.test = NULL; /* they stay open */
		session_close(&s);
		if (rc)
			return rc;
		if (!isnan(loss) && !(loss >= best)) {
			best = loss;
			t->seed = first + i;
		}
	}
	return EXIT_DONE;
}

int train_table_open(TableRun *t, Args *a, Session *s, const char *path, const char *test)
{
	mp_data_options reading;
	double share = HOLD_OUT;
	uint64_t seed = 1;
	const char *given = args_text(a, "holdout");
	char *end = NULL;
	if (!session_reading(a, true, &reading) || !args_count(a, "seed", &seed))
		return EXIT_USAGE;
	if (given && (share = strtod(given, &end), *end || !*given || !(share >= 0 && share < 1))) {
		complain("give a share from 0 up, less than 1, such as 0.2", "--holdout cannot be '%.40s'", given);
		return EXIT_USAGE;
	}
	mp_status status = mp_table_open(&t->table, path, &reading, args_text(a, "task"), NULL);
	int rc = after_table(t->table, status);
	if (rc)
		return rc;
	if (test || (!given && mp_table_get_info(t->table)->rows < FEW_ROWS))
		share = 0;
	mp_cut cut = { .size = sizeof cut, .seed = seed, .stratify = 1, .balance = args_flag(a, "balance") };
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
		table_say(t, s, share);
	return rc;
}
