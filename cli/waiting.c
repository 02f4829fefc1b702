/* SPDX-License-Identifier: MIT */
/* A note after a second in which a pipe, a device or standard input gave nothing: a FIFO without a writer looks like a
 * program that hangs.  In: the name of what is about to be opened.  Must hold: the handler makes async-signal-safe
 * calls only; the system calls that it interrupts are restarted. */
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "microprop/text.h"

enum { BUSY_MS = 100 }; /* of CPU time: the program reads or computes, it does not wait */

static struct {
	char text[4400]; /* an escaped name has at most four times 1,024 bytes, and its length */
	size_t len;
	struct timespec cpu;
} waiting;

static void collect(void *unused, const char *text, size_t len)
{
	(void)unused;
	len = len < sizeof waiting.text - waiting.len ? len : sizeof waiting.text - waiting.len;
	memcpy(waiting.text + waiting.len, text, len);
	waiting.len += len;
}

static void alarm_handler(int unused)
{
	struct timespec now;
	(void)unused;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	long long ms = (now.tv_sec - waiting.cpu.tv_sec) * 1000LL + (now.tv_nsec - waiting.cpu.tv_nsec) / 1000000;
	if (ms < BUSY_MS && write(STDERR_FILENO, waiting.text, waiting.len) < 0)
		return;
}

void waiting_start(const char *path)
{
	struct stat st;
	bool standard = !strcmp(path, "-");
	if ((standard ? fstat(STDIN_FILENO, &st) : stat(path, &st)) || S_ISREG(st.st_mode))
		return;
	static const char before[] = "note: waiting for data from ", after[] = "\n";
	const char *name = standard ? "standard input" : path;
	waiting.len = 0;
	collect(NULL, before, sizeof before - 1);
	mp_text_write(name, strlen(name), MP_TEXT_SHOWN, collect, NULL);
	collect(NULL, after, sizeof after - 1);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &waiting.cpu);
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = alarm_handler, .sa_flags = SA_RESTART }, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ .it_value = { .tv_sec = 1 } }, NULL);
}

void waiting_end(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){ .it_value = { 0 } }, NULL);
	signal(SIGALRM, SIG_DFL);
}
