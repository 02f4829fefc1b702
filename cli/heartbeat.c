/* SPDX-License-Identifier: MIT */
/* Heartbeats: what launch and the processes it starts tell each other, by a file that both see.
 *
 *     Heartbeat           number of the attempt, written by launch; last heartbeats and exit status, by the processes
 *     one byte per rank   locked by the process of that rank while it lives
 *
 * Must hold: when an attempt begins, no process of an earlier one is left that could write a file. Launch kills the
 * holders of locks, and writes the new number while it holds all locks; a process that starts late finds another
 * number than its own, and exits.
 *
 * While a process reads data there are no updates for a long time. Until the first update of rank 0, a thread sends
 * heartbeats as long as the process reads bytes or touches new pages: one that hangs does neither, nor does one that
 * waits for another. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static const char writable[] = "set TMPDIR to a folder that can be written and has free space";

static struct flock lock_of(off_t first, off_t count)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = count };
}

/* ---- a process that is watched ---- */

/* Bytes that the process has read, without *own (those read here), plus pages touched for the first time. */
static uint64_t work_done(uint64_t *own)
{
	struct rusage use = { 0 };
	char text[512];
	int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC); /* may be absent; then pages alone count */
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	uint64_t bytes = n > 0 && !strncmp(text, "rchar: ", 7) ? strtoull(text + 7, NULL, 10) - *own : 0;
	*own += n > 0 ? (uint64_t)n : 0;
	if (fd >= 0)
		close(fd);
	getrusage(RUSAGE_SELF, &use);
	return bytes + (uint64_t)use.ru_minflt + (uint64_t)use.ru_majflt;
}

enum { POLL_MS = 100, POLL_WORK = 16 }; /* less work than that also happens while waiting */

static void *watch_loading(void *arg)
{
	int heartbeat = (int)(intptr_t)arg;
	Heartbeat b = { 0 };
	uint64_t own = 0, seen = work_done(&own);
	while (pread(heartbeat, &b, sizeof b, 0) == sizeof b && !b.step) {
		own += sizeof b;
		nanosleep(&(struct timespec){ .tv_nsec = POLL_MS * 1000000L }, NULL);
		uint64_t now = work_done(&own);
		if (now > seen + POLL_WORK)
			heartbeat_send(heartbeat);
		seen = now;
	}
	return NULL;
}

/* If the thread cannot be started, loading must finish within the deadline. */
static void watch_start(int heartbeat)
{
	pthread_t thread;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that trains */
	if (!pthread_create(&thread, NULL, watch_loading, (void *)(intptr_t)heartbeat))
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int heartbeat_join(int *heartbeat)
{
	const char *path = getenv("MICROPROP_HEARTBEAT"), *attempt = getenv("MICROPROP_ATTEMPT");
	*heartbeat = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (*heartbeat < 0 && path && attempt && mp_job_launched_rank() == 0) {
		complain("start launch where rank 0 runs, or set TMPDIR to a folder that both see",
		         "launch wants a heartbeat in %s, which cannot be opened: %s", path, strerror(errno));
		return EXIT_USAGE;
	}
	if (*heartbeat < 0)
		return EXIT_DONE;
	struct flock lock = lock_of((off_t)(sizeof(Heartbeat) + mp_job_launched_rank()), 1);
	Heartbeat b;
	fcntl(*heartbeat, F_SETLKW, &lock); /* a file system without locks is no reason not to train */
	if (attempt && pread(*heartbeat, &b, sizeof b, 0) == sizeof b && b.attempt != strtoul(attempt, NULL, 10)) {
		complain(NULL, "attempt %s is over", attempt);
		return EXIT_FAILED;
	}
	heartbeat_send(*heartbeat);
	watch_start(*heartbeat);
	return EXIT_DONE;
}

static void put_time(int heartbeat, size_t at)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (heartbeat >= 0 && pwrite(heartbeat, &time, sizeof time, (off_t)at) < 0)
		return; /* launch will miss it, and restart */
}

void heartbeat_send(int heartbeat) { put_time(heartbeat, offsetof(Heartbeat, alive)); }

void heartbeat_step(int heartbeat)
{
	put_time(heartbeat, offsetof(Heartbeat, step));
	heartbeat_send(heartbeat);
}

static void put_number(int heartbeat, uint32_t number, size_t at)
{
	if (heartbeat >= 0 && pwrite(heartbeat, &number, sizeof number, (off_t)at) < 0)
		return; /* launch then uses the exit status alone */
}

void heartbeat_end(int heartbeat, int rc) { put_number(heartbeat, (uint32_t)rc + 1, offsetof(Heartbeat, ended)); }

void heartbeat_diverged(int heartbeat) { put_number(heartbeat, 1, offsetof(Heartbeat, diverged)); }

/* ---- launch ---- */

/* The name has the time, too: a process of another host or container may have the same PID and see the same folder. */
bool heartbeat_create(char *path, size_t size)
{
	const char *folder = getenv("TMPDIR");
	int fd = -1;

	for (int i = 0; fd < 0 && i < 100 && (i == 0 || errno == EEXIST); i++) {
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		snprintf(path, size, "%s/microprop-heartbeat-%lld.%09ld-%ld", folder && *folder ? folder : "/tmp",
		         (long long)now.tv_sec, now.tv_nsec, (long)getpid());
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		complain(remedy_for(errno, writable), "cannot make a file %s: %s", path, strerror(errno));
	else
		close(fd);
	return fd >= 0;
}

Heartbeat heartbeat_read(const char *path)
{
	Heartbeat b = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC); /* reopened each time: a network file system may cache until then */
	if (fd >= 0 && pread(fd, &b, sizeof b, 0) != sizeof b)
		b = (Heartbeat){ 0 };
	if (fd >= 0)
		close(fd);
	return b;
}

/* On a network file system the holder may be a PID of another host. */
static bool is_microprop(pid_t pid)
{
	char link[64], own[PATH_MAX], other[PATH_MAX];
	snprintf(link, sizeof link, "/proc/%ld/exe", (long)pid);
	ssize_t n = readlink("/proc/self/exe", own, sizeof own), m = readlink(link, other, sizeof other);
	return n > 0 && n == m && !memcmp(own, other, (size_t)n);
}

/* Kills the holders of locks.  False: after `seconds` one is still held. */
static bool locks_take(int fd, double seconds)
{
	for (double began = wall_clock();;) {
		struct flock lock = lock_of(0, 0), holder = lock;
		if (!fcntl(fd, F_SETLK, &lock) || (errno != EAGAIN && errno != EACCES))
			return true;
		if (!fcntl(fd, F_GETLK, &holder) && holder.l_type != F_UNLCK && is_microprop(holder.l_pid))
			kill(holder.l_pid, SIGKILL);
		if (wall_clock() - began > seconds)
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = 20000000L }, NULL);
	}
}

bool heartbeat_begin(const char *path, uint32_t attempt, double seconds)
{
	Heartbeat b = { .attempt = attempt };
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool good = fd >= 0;
	if (good && !locks_take(fd, seconds)) {
		complain("end it, then start launch again, with --resume and the last checkpoint",
		         "a process of the last attempt is still running and could overwrite files of the next");
		good = false;
	} else if (!good || pwrite(fd, &b, sizeof b, 0) != sizeof b) {
		complain(remedy_for(errno, writable), "cannot write %s: %s", path, strerror(errno));
		good = false;
	}
	if (fd >= 0)
		close(fd);
	return good;
}
