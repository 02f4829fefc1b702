/* SPDX-License-Identifier: MIT */
/* A run directory: everything about a training run in one folder.
 *
 *     args.json           what was run: files and all options
 *     metrics.jsonl       a line per report
 *     last.safetensors    checkpoint
 *     best.safetensors    weights of the best epoch so far
 *
 * Reports come in; both safetensors files are written at an interval while training goes on, at the end and at a
 * signal.  What cannot be written is said and tried again; training goes on, and the exit status tells.  Nothing is
 * written before the first report, so that a run that is refused leaves what is there alone.  Symbolic links and
 * devices in the folder are refused: what is written stays in it.  A resumed run goes on
 * with metrics.jsonl where its checkpoint stands, so that a run that was killed and resumed leaves the same lines as
 * one that was not; a run that was killed before its first checkpoint is begun again.  While a run goes on it holds a
 * lock on metrics.jsonl, so that no other one writes there. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

enum { SAVE_EVERY = 10 }; /* seconds, unless the user says otherwise */

static char *path_join(Args *a, const char *folder, const char *name)
{
	size_t n = strlen(folder) + strlen(name) + 2;
	char *path = args_alloc(a, n, 1);
	snprintf(path, n, "%s/%s", folder, name);
	return path;
}

static int file_failed(const char *path, const char *doing)
{
	complain(remedy_for(errno, "check that the folder can be written and has free space"), "cannot %s %s: %s", doing,
	         path, strerror(errno));
	return EXIT_FAILED;
}

int folders_make(Args *a, const char *path)
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
	if (o->type == MP_OPTION_FLAG && value && (!strcmp(value, "on") || !strcmp(value, "off")))
		json_bool(j, o->name, !strcmp(value, "on"));
	else if (number && !strpbrk(value, ".eExX"))
		json_count(j, o->name, strtoull(value, NULL, 10));
	else if (number)
		json_number(j, o->name, v);
	else
		json_text(j, o->name, value);
}

void rundir_args(const RunDir *d, FILE *f)
{
	const Args *a = d->args;
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
}

static int args_write(const RunDir *d, const char *path)
{
	TextFile f;
	if (!text_begin(&f))
		return EXIT_FAILED;
	rundir_args(d, f.f);
	return text_end(&f, d->session->run, path);
}

/* Where lines after `epoch`, or a line cut short by a crash, begin. */
static off_t metrics_end(FILE *f, uint64_t epoch)
{
	static const char key[] = "{\"epoch\": ";
	char line[16 << 10]; /* none of ours is as long */
	off_t end = 0;
	for (size_t n; fgets(line, sizeof line, f); end += (off_t)n) {
		n = strlen(line);
		if (!n || line[n - 1] != '\n' || strncmp(line, key, sizeof key - 1))
			break;
		if (strtoull(line + sizeof key - 1, NULL, 10) > epoch)
			break;
	}
	return end;
}

/* Locked; -1: failed.  A file system without locks is no reason not to train. */
static int metrics_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		close(fd);
		errno = EWOULDBLOCK;
		return -1;
	}
	return fd;
}

/* Truncates it to the epochs of the checkpoint. */
static bool metrics_cut(int fd, bool resumed, uint64_t epoch)
{
	int copy = resumed ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	FILE *f = copy >= 0 ? fdopen(copy, "re") : NULL;
	off_t end = f ? metrics_end(f, epoch) : 0;
	if (f)
		fclose(f);
	else if (copy >= 0)
		close(copy);
	return (f || !resumed) && ftruncate(fd, end) == 0;
}

/* Appends a whole line or nothing. */
static bool metrics_append(int fd, const char *line, size_t len)
{
	off_t before = lseek(fd, 0, SEEK_END);
	ssize_t n = write(fd, line, len);
	if (n == (ssize_t)len)
		return true;
	int reason = n < 0 ? errno : ENOSPC;
	if (before < 0 || ftruncate(fd, before))
		reason = errno;
	errno = reason;
	return false;
}

static int interval_check(RunDir *d, Args *a)
{
	const char *every = args_text(a, "every");
	char *end = NULL;
	d->every = every ? strtod(every, &end) : SAVE_EVERY;
	d->keep = 1;
	if (!args_count(a, "keep", &d->keep))
		return EXIT_USAGE;
	if (every && (end == every || *end || !(d->every > 0 && d->every < 1e9))) {
		complain("give seconds, for example 60 or 0.5", "--every: '%s' is no time between checkpoints", every);
		return EXIT_USAGE;
	}
	if (d->keep < 1 || d->keep > 1000) {
		complain("give a number from 1 to 1000", "--keep: %s checkpoints", args_text(a, "keep"));
		return EXIT_USAGE;
	}
	d->file = d->path ? d->last : every ? args_text(a, "save") : NULL;
	if (d->file || (!every && !args_text(a, "keep")))
		return EXIT_DONE;
	complain("give --run DIR or --save FILE too", "--every and --keep say when checkpoints are written, but not where");
	return EXIT_USAGE;
}

static int file_check(const char *path)
{
	struct stat st;
	if (lstat(path, &st) || S_ISREG(st.st_mode))
		return EXIT_DONE;
	complain("remove it, or choose another folder", "--run: %s is %s, not a file", path,
	         S_ISLNK(st.st_mode)   ? "a symbolic link"
	         : S_ISDIR(st.st_mode) ? "a folder"
	                               : "a device or a pipe");
	return EXIT_USAGE;
}

/* What is written to the folder stays in it: a link would lead elsewhere. */
static int plain_check(const RunDir *d)
{
	static const char *const names[] = { "args.json", "metrics.jsonl", "last.safetensors", "best.safetensors" };
	int rc = EXIT_DONE;
	for (size_t i = 0; i < COUNT(names) && !rc; i++)
		rc = file_check(path_join(d->args, d->path, names[i]));
	DIR *list = opendir(d->path);
	for (const struct dirent *e; list && !rc && (e = readdir(list));)
		if (!strncmp(e->d_name, "epoch-", 6) || !strncmp(e->d_name, "outputs-", 8))
			rc = file_check(path_join(d->args, d->path, e->d_name));
	if (list)
		closedir(list);
	return rc;
}

/* A new run does not write over another. */
static int empty_check(const RunDir *d)
{
	if (d->resumed || access(d->last, F_OK))
		return EXIT_DONE;
	size_t size = strlen(d->last) + 60;
	char *remedy = args_alloc(d->args, size, 1);
	snprintf(remedy, size, "choose another folder, or continue with --resume %s", d->last);
	complain(remedy, "--run: %s already holds a run", d->path);
	return EXIT_USAGE;
}

int rundir_check(RunDir *d, Args *a)
{
	d->path = args_text(a, "run");
	d->args = a;
	if (!d->path)
		return interval_check(d, a);
	d->resumed = args_text(a, "resume");
	d->last = path_join(a, d->path, "last.safetensors");
	d->best = path_join(a, d->path, "best.safetensors");
	int rc = plain_check(d);
	if (!rc)
		rc = empty_check(d);
	if (!rc)
		rc = interval_check(d, a);
	return rc ? rc : folder_output_check(a, "run");
}

int rundir_prepare(RunDir *d, Session *s, const char *data, const char *test)
{
	if (!d->path)
		return EXIT_DONE;
	d->session = s;
	d->data = data;
	d->test = test;
	d->better = !d->resumed;
	d->epoch = mp_run_get_report(s->run)->epoch;
	return after_run(s->run, mp_run_set(s->run, "keep-best", "1"));
}

/* Makes the folder and its first files, once.  Another run may have started there since the check. */
static int rundir_start(RunDir *d)
{
	if (d->started)
		return EXIT_DONE;
	const char *metrics = path_join(d->args, d->path, "metrics.jsonl");
	int rc = folders_make(d->args, d->path);
	if (!rc)
		rc = plain_check(d);
	if (rc)
		return rc;
	int fd = metrics_open(metrics);
	if (fd < 0 && errno == EWOULDBLOCK) {
		complain("wait for it, or choose another folder", "another run is writing to %s", d->path);
		return EXIT_USAGE;
	}
	rc = fd < 0 ? file_failed(metrics, "write") : empty_check(d);
	if (!rc && !metrics_cut(fd, d->resumed, d->epoch))
		rc = file_failed(metrics, "write");
	if (rc && fd >= 0)
		close(fd);
	if (rc)
		return rc;
	d->started = true;
	d->metrics = fd;
	return args_write(d, path_join(d->args, d->path, "args.json"));
}

void json_report(Json *j, const mp_report *r)
{
	json_count(j, "updates", r->updates);
	json_number(j, "error", r->error);
	json_number(j, "total_error", r->total_error);
	json_number(j, "right", r->right);
	json_number(j, "within", r->within);
	if (r->tested) {
		json_number(j, "test_error", r->test_error);
		json_number(j, "test_total_error", r->test_total_error);
		json_number(j, "test_right", r->test_right);
		json_number(j, "test_within", r->test_within);
	}
	json_number(j, "rate", r->rate);
	json_number(j, "seconds", r->seconds);
	json_number(j, "mcps", r->mcps);
	if (r->simulated_seconds > 0) {
		json_number(j, "simulated_seconds", r->simulated_seconds);
		json_number(j, "simulated_mcps", r->simulated_mcps);
	}
}

bool report_line(TextFile *f, const mp_report *r, const Norms *n)
{
	if (!text_begin(f))
		return false;
	Json j = { .f = f->f };
	json_open(&j, NULL, '{');
	json_count(&j, "epoch", r->epoch);
	json_report(&j, r);
	json_norms(&j, n);
	json_end(&j);
	if (!fclose(f->f))
		return true;
	free(f->text);
	return false;
}

static int metrics_line(RunDir *d, const mp_report *r)
{
	if (r->epoch <= d->epoch) /* a run that was stopped reports its last epoch again */
		return EXIT_DONE;
	d->epoch = r->epoch;
	TextFile f;
	if (!report_line(&f, r, d->norms))
		return EXIT_FAILED;
	bool written = metrics_append(d->metrics, f.text, f.len);
	free(f.text);
	return written ? EXIT_DONE : file_failed(d->path, "write metrics.jsonl in");
}

int rundir_save(RunDir *d, mp_run *run)
{
	int rc = rundir_start(d);
	mp_run_save_wait(run); /* a failed one is repeated now, with its message */
	if (!rc)
		rc = after_step(run, mp_run_save(run, d->last));
	return rc || !d->better ? rc : rundir_keep(d, run);
}

int rundir_keep(RunDir *d, mp_run *run)
{
	int rc = rundir_start(d);
	if (rc)
		return rc;
	mp_status status = mp_run_save_best(run, d->best);
	return status == MP_BAD_INPUT ? EXIT_DONE : after_step(run, status); /* no better epoch: the old file stays */
}

int rundir_report(RunDir *d, mp_run *run, const mp_report *r)
{
	(void)run;
	if (!d->path)
		return EXIT_DONE;
	int rc = rundir_start(d);
	if (rc)
		return rc;
	if (!d->incomplete && metrics_line(d, r)) {
		d->incomplete = true;
		show(stderr, "  training goes on without it\n");
	}
	d->better = d->better || r->best || r->stopped_by;
	return EXIT_DONE;
}

static void training_goes_on(const char *messages, double every)
{
	show_lines(stderr, messages, strlen(messages));
	show(stderr, "  training goes on; it is retried every %g s\n", every);
}

/* A disk may be full for hours: one message per failure, not one per attempt. */
int rundir_tick(RunDir *d, mp_run *run)
{
	int rc = d->path ? rundir_start(d) : EXIT_DONE;
	if (rc)
		return rc == EXIT_USAGE ? rc : EXIT_DONE;
	mp_status status = mp_run_save_background(run, d->file, d->path && d->better ? d->best : NULL, (unsigned)d->keep);
	if (status != MP_OK && !d->failing)
		training_goes_on(mp_run_save_messages(run), d->every);
	d->failing = status != MP_OK;
	return EXIT_DONE;
}

int rundir_close(RunDir *d)
{
	int rc = d->incomplete ? EXIT_FAILED : EXIT_DONE;
	if (d->started && close(d->metrics) && !d->incomplete)
		rc = file_failed(d->path, "write metrics.jsonl in");
	d->started = false;
	return rc;
}
