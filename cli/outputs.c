/* SPDX-License-Identifier: MIT */
/* Output files, checked before the work starts for what would only fail at its end: a folder that does not exist or
 * cannot be written, a folder in place of a file, standard output that carries the result; and for what must not
 * happen: a file that is read, or is no model, in place of a model.  Also text files that are written as a whole. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

const char *remedy_for(int reason, const char *otherwise)
{
	return reason == EMFILE || reason == ENFILE ? "close other files and programs, or raise the limit: ulimit -n 1024"
	                                            : otherwise;
}

static int refuse(const char *option, const char *path, const char *remedy, int reason)
{
	complain(remedy_for(reason, remedy), "--%s: cannot write %s: %s", option, path, strerror(reason));
	return EXIT_USAGE;
}

/* A new file is put beside the old one and takes its place: the folder must let us. */
static int folder_check(const char *option, const char *path, const char *folder)
{
	struct stat st;
	int reason = stat(folder, &st) ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
	if (reason == ENOTDIR)
		return refuse(option, path, "a part of the path is a file; check the path", reason);
	if (reason)
		return refuse(option, path, "make the folder first, or choose another", reason);
	if (access(folder, W_OK | X_OK))
		return refuse(option, path, "choose a folder that you may write", errno);
	return EXIT_DONE;
}

/* The folder that holds `path`; the text is cut in place. */
static const char *folder_of(char *path)
{
	char *slash = strrchr(path, '/');
	if (!slash)
		return ".";
	slash[slash == path] = '\0';
	return path;
}

/* By any of its names; the null device takes everything and carries nothing. */
static bool is_standard_output(const char *path, const struct stat *st)
{
	struct stat out, null;
	if (!strcmp(path, "-"))
		return true;
	if (!st || fstat(STDOUT_FILENO, &out) || out.st_dev != st->st_dev || out.st_ino != st->st_ino)
		return false;
	return stat("/dev/null", &null) || null.st_dev != out.st_dev || null.st_ino != out.st_ino;
}

int output_check(Args *a, const char *option)
{
	const char *path = args_text(a, option);
	return path ? output_path_check(a, option, path) : EXIT_DONE;
}

int output_path_check(Args *a, const char *option, const char *path)
{
	struct stat st;
	char real[PATH_MAX];
	bool exists = stat(path, &st) == 0;
	if (!*path)
		return refuse(option, "''", "name a file", ENOENT);
	if (is_standard_output(path, exists ? &st : NULL)) {
		complain("name a file", "--%s: standard output already carries the result", option);
		return EXIT_USAGE;
	}
	if (exists && S_ISDIR(st.st_mode))
		return refuse(option, path, "name a file in it", EISDIR);
	if (exists && access(path, W_OK))
		return refuse(option, path, "choose another file, or make this one writable", errno);
	if (exists && !S_ISREG(st.st_mode))
		return EXIT_DONE; /* devices and pipes are written as they are */
	if (exists && output_inputs_check(a, option, path))
		return EXIT_USAGE;
	const char *place = exists && realpath(path, real) ? real : path;
	return folder_check(option, path, folder_of(args_copy(a, place)));
}

/* Safetensors: eight bytes of length, then a JSON object. */
int model_output_check(Args *a, const char *path)
{
	char head[9];
	struct stat st;
	if (!path || args_flag(a, "force") || stat(path, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return EXIT_DONE;
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(head, 1, sizeof head, f) : 0;
	if (f)
		fclose(f);
	if (n == sizeof head && head[8] == '{')
		return EXIT_DONE;
	complain("name another file, or overwrite this one with --force", "--save: %s is no safetensors file", path);
	return EXIT_USAGE;
}

int folder_output_check(Args *a, const char *option)
{
	const char *path = args_text(a, option);
	if (!path)
		return EXIT_DONE;
	if (!*path)
		return refuse(option, "''", "name a folder", ENOENT);
	struct stat st;
	char *at = args_copy(a, path);
	for (size_t n = strlen(at); n > 1 && at[n - 1] == '/'; n--)
		at[n - 1] = '\0';
	const char *folder = at; /* the nearest that is there: those below it will be made */
	while (folder == at && stat(folder, &st) && errno == ENOENT)
		folder = folder_of(at);
	return folder_check(option, path, folder);
}

bool text_begin(TextFile *t)
{
	*t = (TextFile){ 0 };
	t->f = open_memstream(&t->text, &t->len);
	if (!t->f)
		complain(NULL, "out of memory");
	return t->f;
}

int text_end(TextFile *t, mp_run *run, const char *path)
{
	bool failed = ferror(t->f);
	failed = fclose(t->f) || failed;
	if (failed)
		complain(NULL, "out of memory for the text of %s", path);
	int rc = failed ? EXIT_FAILED : after_step(run, mp_run_write_text(run, path, t->text, t->len));
	free(t->text);
	return rc;
}
