/* SPDX-License-Identifier: MIT */
/* Signs of life: the seconds that a command has taken, on a terminal, from the second on; a note after a second in
 * which a pipe, a device or standard input gave nothing: a FIFO without a writer looks like a program that hangs.
 * In: the name of the command, or of what is about to be opened.  Must hold: the handlers make async-signal-safe calls
 * only; the system calls that they interrupt are restarted. */
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "microprop/text.h"

enum { WORKING_AFTER = 2 }; /* seconds */
enum { BUSY_MS = 100 };     /* of CPU time: the program reads or computes, it does not wait */

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

/* ---- seconds ---- */

static struct {
	char line[64];
	size_t name; /* bytes of it before the number */
	unsigned seconds;
} working;

static void tick_handler(int unused)
{
	(void)unused;
	char *end = working.line + sizeof working.line - 1, *p = end;
	static const char after[] = " s\033[K";
	p -= sizeof after - 1;
	memcpy(p, after, sizeof after - 1);
	for (unsigned n = working.seconds++; n || p[0] == ' '; n /= 10)
		*--p = (char)('0' + n % 10);
	if (write(STDERR_FILENO, working.line, working.name) < 0 || write(STDERR_FILENO, p, (size_t)(end - p)) < 0)
		return;
}

void working_start(const char *name)
{
	working.seconds = screen_of(STDERR_FILENO).moves ? WORKING_AFTER : 0;
	if (!working.seconds)
		return;
	int n = snprintf(working.line, sizeof working.line, "\r%.20s: ", name);
	working.name = (size_t)n;
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = tick_handler, .sa_flags = SA_RESTART }, NULL);
	setitimer(ITIMER_REAL,
	          &(struct itimerval){ .it_value = { .tv_sec = WORKING_AFTER }, .it_interval = { .tv_sec = 1 } }, NULL);
}

void working_end(void)
{
	if (!working.seconds)
		return;
	waiting_end();
	static const char clear[] = "\r\033[K";
	if (working.seconds > WORKING_AFTER && write(STDERR_FILENO, clear, sizeof clear - 1) < 0)
		return;
	working.seconds = 0;
}
