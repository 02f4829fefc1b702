/* SPDX-License-Identifier: MIT */
/* A mapped file that is cut short while it is in use. In: the signal that reading past its new end makes. Out: a
 * sentence with the file's name, and exit status 1. Must hold: nothing here but what a signal handler may call; a
 * signal of another cause is left to the system, which ends the program as ever. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum { LINE = PATH_MAX + 128 }; /* of /proc/self/maps: "7f00-7f10 r--p 0 08:01 12 /path" */

static int talk = STDERR_FILENO; /* as it was when the program began: of ranks other than 0 it is taken away later */

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

/* Byte by byte: that is all the room it takes, and nobody waits for it again. */
static const char *mapped_file(uintptr_t at, char line[LINE])
{
	const char *file = NULL;
	int fd = open("/proc/self/maps", O_RDONLY);
	size_t n = 0;
	for (char c; !file && fd >= 0 && read(fd, &c, 1) == 1;) {
		line[n] = c == '\n' ? '\0' : c;
		if (c == '\n')
			file = line_file(line, at);
		n = c == '\n' ? 0 : n < LINE - 2 ? n + 1 : n;
	}
	return file;
}

static void say(const char *s)
{
	for (ssize_t n; *s && (n = write(talk, s, strlen(s))) > 0;)
		s += n;
}

static void fault_end(int number, siginfo_t *info, void *unused)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	static char line[LINE];
	(void)unused;
	while (atomic_flag_test_and_set(&said))
		pause(); /* another thread is at it, and ends all of them */
	const char *file = info->si_code == BUS_ADRERR ? mapped_file((uintptr_t)info->si_addr, line) : NULL;
	if (!file) {
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	say(isatty(talk) ? "\r\033[K" : "");
	say("error: ");
	say(file);
	say(" was cut short while it was in use, or its disk has a fault\n"
	    "  put the whole file back, and change it only by renaming a new one; --resume goes on from a checkpoint\n");
	_exit(EXIT_FAILED);
}

void fault_watch(void)
{
	struct sigaction on = { .sa_sigaction = fault_end, .sa_flags = SA_SIGINFO };
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	talk = fd >= 0 ? fd : talk;
	sigaction(SIGBUS, &on, NULL);
}
