/* SPDX-License-Identifier: MIT */
/* A run directory: everything about a training run in one folder.
 *
 *     args.json           what was run: files and all options
 *     metrics.jsonl       a line per report
 *     last.safetensors    checkpoint
 *     best.safetensors    weights of the best epoch so far
 *
 * Reports come in; both safetensors files are written every ten seconds, at the end and at a signal.  Nothing is
 * written before the first report, so that a run that is refused leaves what is there alone.  A resumed run goes on
 * with metrics.jsonl where its checkpoint stands, so that a run that was killed and resumed leaves the same lines as
 * one that was not. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

enum { SAVE_EVERY = 10 };                         /* seconds */

static char *path_join(Args *a, const char *folder, const char *name)
{
	size_t n = strlen(folder) + strlen(name) + 2;
	char *path = args_alloc(a, n, 1);
	snprintf(path, n, "%s/%s", folder, name);
	return path;
}

static int file_failed(const char *path, const char *doing)
{
	complain("check that the folder can be written and has room", "cannot %s %s: %s", doing, path, strerror(errno));
	return EXIT_FAILED;
}

/* Makes the folder and those above it. */
static int folder_make(Args *a, const char *path)
{
	char *p = path_join(a, path, "");
	for (char *slash = strchr(p + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(p, 0777) && errno != EEXIST)
			return file_failed(p, "make folder");
		*slash = '/';
	}
	return EXIT_DONE;
}

/* A number or a word as the option's text has it: 0.1, "all"; flags that are on or off become true or false. */
static void json_option(Json *j, const mp_option *o, const char *value)
{
	char *end = NULL;
	double v = value ? strtod(value, &end) : 0;
	bool number = value && isdigit((unsigned char)value[0]) && end && !*end;
	if (!o->argument && value && (!strcmp(value, "on") || !strcmp(value, "off")))
		json_bool(j, o->name, !strcmp(value, "on"));
	else if (number && !strpbrk(value, ".eExX"))
		json_count(j, o->name, strtoull(value, NULL, 10));
	else if (number)
		json_real(j, o->name, v);
	else
		json_text(j, o->name, value);
}

static int args_write(const RunDir *d, const char *path)
{
	const Args *a = d->args;
	FILE *f = fopen(path, "w");
	if (!f)
		return file_failed(path, "write");
	Json j = { .f = f, .lines = true };
	json_open(&j, NULL, '{');
	json_text(&j, "version", mp_version());
	json_open(&j, "arguments", '[');
	for (int i = 1; i < a->argc; i++)
		json_text(&j, NULL, a->argv[i]);
	json_close(&j, ']');
	json_text(&j, "topology", a->operand[0]);
	json_text(&j, "network", mp_net_get_info(d->session->net)->fingerprint);
	json_text(&j, "data", d->data);
	json_text(&j, "test", d->test);
	static const char *const files[] = { "load", "resume", "save" };
	for (size_t i = 0; i < COUNT(files); i++)
		json_text(&j, files[i], args_text(a, files[i]));
	json_open(&j, "options", '{');
	const mp_option *o;
	for (size_t i = 0; (o = mp_option_at(i)); i++)
		json_option(&j, o, mp_run_get(d->session->run, o->name));
	json_close(&j, '}');
	json_end(&j);
	bool failed = ferror(f);
	return fclose(f) || failed ? file_failed(path, "write") : EXIT_DONE;
}

/* Where lines after `epoch`, or a line cut short by a crash, begin. */
static off_t metrics_end(FILE *f, uint64_t epoch)
{
	static const char key[] = "{\"epoch\": ";
	char *line = NULL;
	size_t size = 0;
	off_t end = 0;
	for (ssize_t n; (n = getline(&line, &size, f)) > 0; end += n) {
		if (line[n - 1] != '\n' || strncmp(line, key, sizeof key - 1))
			break;
		if (strtoull(line + sizeof key - 1, NULL, 10) > epoch)
			break;
	}
	free(line);
	return end;
}

static FILE *metrics_open(const char *path, bool resumed, uint64_t epoch)
{
	FILE *f = resumed ? fopen(path, "r+") : NULL;
	if (!f)
		return fopen(path, "w");
	off_t end = metrics_end(f, epoch);
	if (ftruncate(fileno(f), end) == 0 && fseeko(f, end, SEEK_SET) == 0)
		return f;
	fclose(f);
	return NULL;
}

int rundir_check(RunDir *d, Args *a)
{
	static const char *const marks[] = { "args.json", "metrics.jsonl" };
	d->path = args_text(a, "run");
	if (!d->path)
		return EXIT_DONE;
	d->args = a;
	d->resumed = args_text(a, "resume");
	d->last = path_join(a, d->path, "last.safetensors");
	d->best = path_join(a, d->path, "best.safetensors");
	for (size_t i = 0; i < COUNT(marks) && !d->resumed; i++) {
		if (access(path_join(a, d->path, marks[i]), F_OK))
			continue;
		size_t room = strlen(d->last) + 60;
		char *remedy = args_alloc(a, room, 1);
		snprintf(remedy, room, "choose another folder, or go on with --resume %s", d->last);
		complain(remedy, "--run: %s already holds a run", d->path);
		return EXIT_USAGE;
	}
	return folder_output_check(a, "run");
}

int rundir_prepare(RunDir *d, Session *s, const char *data, const char *test)
{
	if (!d->path)
		return EXIT_DONE;
	d->session = s;
	d->data = data;
	d->test = test;
	d->saved = wall_clock();
	d->better = !d->resumed;
	d->epoch = mp_run_get_report(s->run)->epoch;
	return after_run(s->run, mp_run_set(s->run, "keep-best", "1"));
}

/* Makes the folder and its first files, once. */
static int rundir_start(RunDir *d)
{
	if (d->metrics)
		return EXIT_DONE;
	int rc = folder_make(d->args, d->path);
	if (!rc)
		rc = args_write(d, path_join(d->args, d->path, "args.json"));
	if (rc)
		return rc;
	const char *metrics = path_join(d->args, d->path, "metrics.jsonl");
	d->metrics = metrics_open(metrics, d->resumed, d->epoch);
	return d->metrics ? EXIT_DONE : file_failed(metrics, "write");
}

void json_report(Json *j, const mp_report *r)
{
	json_count(j, "updates", r->updates);
	json_real(j, "error", r->error);
	json_real(j, "total_error", r->total_error);
	json_real(j, "right", r->right);
	json_real(j, "within", r->within);
	if (r->tested) {
		json_real(j, "test_error", r->test_error);
		json_real(j, "test_total_error", r->test_total_error);
		json_real(j, "test_right", r->test_right);
		json_real(j, "test_within", r->test_within);
	}
	json_real(j, "rate", r->rate);
	json_real(j, "seconds", r->seconds);
	json_real(j, "mcps", r->mcps);
	if (r->simulated_seconds > 0) {
		json_real(j, "simulated_seconds", r->simulated_seconds);
		json_real(j, "simulated_mcps", r->simulated_mcps);
	}
}

static int metrics_line(RunDir *d, const mp_report *r)
{
	if (r->epoch <= d->epoch)                          /* a run that was stopped reports its last epoch again */
		return EXIT_DONE;
	d->epoch = r->epoch;
	Json j = { .f = d->metrics };
	json_open(&j, NULL, '{');
	json_count(&j, "epoch", r->epoch);
	json_report(&j, r);
	json_end(&j);
	return fflush(d->metrics) ? file_failed(d->path, "write metrics.jsonl in") : EXIT_DONE;
}

/* Inside a report messages are the training's: they are shown at its end, those of a save only if it failed. */
static int saved(mp_run *run, mp_status status)
{
	return status == MP_OK ? EXIT_DONE : after_run(run, status);
}

int rundir_save(RunDir *d, mp_run *run)
{
	int rc = rundir_start(d);
	if (!rc)
		rc = saved(run, mp_run_save(run, d->last));
	d->saved = wall_clock();
	if (rc || !d->better)
		return rc;
	mp_status status = mp_run_save_best(run, d->best);
	return status == MP_BAD_INPUT ? EXIT_DONE : saved(run, status);    /* none was better: the old file stays */
}

int rundir_report(RunDir *d, mp_run *run, const mp_report *r)
{
	if (!d->path)
		return EXIT_DONE;
	int rc = rundir_start(d);
	if (!rc)
		rc = metrics_line(d, r);
	d->better = d->better || r->best || r->stopped_by;
	if (!rc && !r->stopped_by && wall_clock() - d->saved >= SAVE_EVERY)
		rc = rundir_save(d, run);
	return rc;
}

int rundir_close(RunDir *d)
{
	int rc = d->metrics && fclose(d->metrics) ? file_failed(d->path, "write metrics.jsonl in") : EXIT_DONE;
	d->metrics = NULL;
	return rc;
}
