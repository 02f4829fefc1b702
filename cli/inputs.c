/* SPDX-License-Identifier: MIT */
/* Files to be read: pipes as files, tables by what they begin with, and a refusal to write over them. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

int pipe_open(const char **path)
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

int input_spool(const char *head, size_t len)
{
	char block[65536];
	struct stat st;
	bool device = fstat(STDIN_FILENO, &st) == 0 && S_ISCHR(st.st_mode) && !isatty(STDIN_FILENO);
	/* what the library would not read of a stream is not copied either (doc/data.md) */
	const char *set = getenv("MICROPROP_MEMORY"); /* for tests */
	uint64_t memory =
		set ? strtoull(set, NULL, 10) : (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t limit = device ? 1 << 26 : memory / 8 < 1 << 30 ? memory / 8 : 1 << 30, all = 0;
	FILE *f = tmpfile();
	ssize_t n = 0;
	bool failed = !f || (len && fwrite(head, 1, len, f) != len);
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

/* ---- tables by their content ---- */

/* The next line that is neither blank nor a comment, without blanks before it; NULL: none. *at: after it. */
static char *line_next(char **at)
{
	while (**at) {
		char *line = *at + strspn(*at, " \r\n\t"), *end = line + strcspn(line, "\r\n");
		*at = *end ? end + 1 : end;
		*end = '\0';
		if (*line && *line != '#')
			return line;
	}
	return NULL;
}

static uint32_t count_of(const char *line, char c)
{
	uint32_t n = 0;
	for (; *line; line++)
		n += *line == c;
	return n;
}

static bool is_statement(const char *line)
{
	static const char *const words[] = { "group", "connect", "copy", "train", "data", "test", "include", "defaults" };
	size_t n = strcspn(line, " \t");
	for (size_t i = 0; line[n] && i < COUNT(words); i++)
		if (n == strlen(words[i]) && !strncmp(line, words[i], n))
			return true;
	return false;
}

/* Two lines with the same number of separators, or numbers with blanks between. */
static bool text_is_table(char *text)
{
	static const char separators[] = ",;\t";
	char *at = text + (strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3);
	const char *first = line_next(&at), *second = line_next(&at);
	if (!first || is_statement(first))
		return false;
	for (const char *c = separators; *c && second; c++)
		if (count_of(first, *c) && count_of(first, *c) == count_of(second, *c))
			return true;
	return first[strspn(first, "0123456789+-.eE \t")] == '\0' && (isdigit((unsigned char)*first) || *first == '-');
}

bool holds_table(const char *path)
{
	static const char *const magic[] = { "\x93NUMPY", "PK\3\4", "\x1f\x8b" }; /* npy, npz, compressed idx */
	char head[8192];
	struct stat st;
	bool standard = !strcmp(path, "-");
	if ((standard ? fstat(STDIN_FILENO, &st) : stat(path, &st)) || !S_ISREG(st.st_mode))
		return false;
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head - 1, 0);
	if (fd >= 0 && !standard)
		close(fd);
	if (n < 4)
		return false;
	head[n] = '\0';
	for (size_t i = 0; i < COUNT(magic); i++)
		if (!strncmp(head, magic[i], strlen(magic[i])))
			return true;
	if (!head[0] && !head[1] && head[2] >= 8 && head[2] <= 14 && head[3] > 0 && head[3] <= 8)
		return true; /* idx: two zeros, type, dimensions */
	return !memchr(head, 0, (size_t)n) && text_is_table(head);
}

int table_refuse(const Args *a)
{
	static const char *const names[] = { ".csv", ".tsv", ".npz", ".npy", ".idx" };
	const char *path = a->operand[0];
	bool table = !strncmp(path, "make:", 5) || holds_table(path);
	for (size_t i = 0; i < COUNT(names); i++)
		table = table || ends_with(path, names[i]);
	if (!table)
		return EXIT_DONE;
	char usage[1200];
	if (!strcmp(a->command->name, "show"))
		snprintf(usage, sizeof usage, "write: microprop data %.1000s, or train a model on it first", path);
	else
		snprintf(usage, sizeof usage, "write: microprop %s MODEL %.1000s", a->command->name, path);
	complain(usage, "%s is a table, neither a model nor a topology file", path);
	return EXIT_USAGE;
}

/* ---- files that are read must not be written ---- */

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;
	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino && S_ISREG(x.st_mode);
}

int overwrite_check(const char *input, const char *output)
{
	if (!same_file(input, output))
		return EXIT_DONE;
	complain("name another file", "%s would be overwritten: it is the file to read", output);
	return EXIT_USAGE;
}

int output_inputs_check(const Args *a, const char *option, const char *output)
{
	/* a checkpoint may be loaded and then saved to: the last two are not for --save */
	static const char *const options[] = { "test", "partner", "words-file", "load", "resume" };
	size_t count = COUNT(options) - (strcmp(option, "save") ? 0 : 2);
	int rc = EXIT_DONE;
	for (int i = 0; !rc && i < a->operands; i++)
		rc = overwrite_check(a->operand[i], output);
	for (size_t i = 0; !rc && i < count; i++)
		rc = args_text(a, options[i]) ? overwrite_check(args_text(a, options[i]), output) : EXIT_DONE;
	return rc;
}

int input_outputs_check(const Args *a, const char *input)
{
	static const char *const options[] = { "save", "svg", "output",     "outputs",   "cases",
		                                   "csv",  "log", "write-topo", "fault-log", "distances" };
	int rc = EXIT_DONE;
	for (size_t i = 0; !rc && input && i < COUNT(options); i++)
		rc = args_text(a, options[i]) ? overwrite_check(input, args_text(a, options[i])) : EXIT_DONE;
	return rc;
}
