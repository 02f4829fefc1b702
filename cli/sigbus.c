/* SPDX-License-Identifier: MIT */
/* SIGBUS: a mapped file was truncated while in use. Prints a message with the file's name; exit status 1. Must hold:
 * only async-signal-safe calls; a signal of another cause gets the default action. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum { LINE = PATH_MAX + 128 }; /* of /proc/self/maps: "7f00-7f10 r--p 0 08:01 12 /path" */

static int original_stderr =
	STDERR_FILENO; /* stderr as at the start of the program: ranks other than 0 redirect it later */

static uintptr_t hex_read(const char **s)
{
	static const char digits[] = "0123456789abcdef";
	uintptr_t v = 0;
	for (const char *digit; **s && (digit = strchr(digits, **s)) != NULL; ++*s)
		v = v * 16 + (uintptr_t)(digit - digits);
	return v;
}

/* The file of a line, if it lies where `at` is; else NULL. */
static const char *line_file(const char *line, uintptr_t at)
{
	uintptr_t begin = hex_read(&line);
	line += *line == '-';
	uintptr_t end = hex_read(&line);
	return begin <= at && at < end ? strchr(line, '/') : NULL;
}

/* Read byte by byte, into a fixed buffer: the program is about to end. */
static const char *mapped_file(uintptr_t at, char line[LINE])
{
	const char *file = NULL;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	for (char c; !file && fd >= 0 && read(fd, &c, 1) == 1;) {
		line[n] = c == '\n' ? '\0' : c;
		if (c == '\n')
			file = line_file(line, at);
		n = c == '\n' ? 0 : n < LINE - 2 ? n + 1 : n;
	}
	return file;
}

static void put(const char *s)
{
	for (ssize_t n; *s && (n = write(original_stderr, s, strlen(s))) > 0;)
		s += n;
}

static void sigbus_handler(int number, siginfo_t *info, void *unused)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;
	static char line[LINE];
	(void)unused;
	while (atomic_flag_test_and_set(&reported))
		pause(); /* another thread reports it, and ends the process */
	const char *file = info->si_code == BUS_ADRERR ? mapped_file((uintptr_t)info->si_addr, line) : NULL;
	if (!file) {
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	put(isatty(original_stderr) ? "\r\033[K" : "");
	put("error: ");
	put(file);
	put(" was truncated while in use, or its disk has a fault\n"
	    "  restore the whole file, and replace it only by renaming a new one; --resume continues from a checkpoint\n");
	_exit(EXIT_FAILED);
}

void sigbus_watch(void)
{
	struct sigaction on = { .sa_sigaction = sigbus_handler, .sa_flags = SA_SIGINFO };
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	original_stderr = fd >= 0 ? fd : original_stderr;
	sigaction(SIGBUS, &on, NULL);
}
