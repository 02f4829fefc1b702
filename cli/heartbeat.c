/* SPDX-License-Identifier: MIT */
/* Signs of life: what launch and the processes it starts tell each other, by a file that both see.
 *
 *     Beat                the number of the attempt, by launch; the last signs of life and the exit status, by the
 *                         processes
 *     a byte for a rank   which holds a lock on it as long as it lives
 *
 * Must hold: when an attempt begins, nobody of an earlier one is left who could write a file. Launch ends whoever
 * still holds a lock, and writes the new number while it holds all of them; a process that comes late finds another
 * number than its own, and ends.
 *
 * A process that reads data comes to no update for a long time. Until rank 0 comes to one, a thread gives signs of
 * life, as long as the process reads bytes or touches new pages: one that hangs does neither, nor does one that
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

static const char writable[] = "set TMPDIR to a folder that can be written and has room";

static struct flock lock_of(off_t first, off_t count)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = count };
}

/* ---- a process that is watched ---- */

static long own_rank(void)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK" };
	for (size_t i = 0; i < COUNT(names); i++)
		if (getenv(names[i]))
			return atol(getenv(names[i]));
	return 0;
}

/* Bytes that the process has read, but for *own, and pages that it has touched for the first time. */
static uint64_t work_done(uint64_t *own)
{
	struct rusage use = { 0 };
	char text[512];
	int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC); /* not everywhere; then pages have to do */
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	uint64_t bytes = n > 0 && !strncmp(text, "rchar: ", 7) ? strtoull(text + 7, NULL, 10) - *own : 0;
	*own += n > 0 ? (uint64_t)n : 0;
	if (fd >= 0)
		close(fd);
	getrusage(RUSAGE_SELF, &use);
	return bytes + (uint64_t)use.ru_minflt + (uint64_t)use.ru_majflt;
}

enum { LOOK_MS = 100, LOOK_WORK = 16 }; /* less than that is what happens while one waits */

static void *watch_loading(void *arg)
{
	int beat = (int)(intptr_t)arg;
	Beat b = { 0 };
	uint64_t own = 0, seen = work_done(&own);
	while (pread(beat, &b, sizeof b, 0) == sizeof b && !b.step) {
		own += sizeof b;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_MS * 1000000L }, NULL);
		uint64_t now = work_done(&own);
		if (now > seen + LOOK_WORK)
			beat_sign(beat);
		seen = now;
	}
	return NULL;
}

/* Without it loading has to be done within the deadline. */
static void watch_start(int beat)
{
	pthread_t thread;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that trains */
	if (!pthread_create(&thread, NULL, watch_loading, (void *)(intptr_t)beat))
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int beat_join(int *beat)
{
	const char *path = getenv("MICROPROP_HEARTBEAT"), *attempt = getenv("MICROPROP_ATTEMPT");
	*beat = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (*beat < 0 && path && attempt && own_rank() == 0) {
		complain("start launch where rank 0 runs, or set TMPDIR to a folder that both see",
		         "launch wants a sign of life in %s, which is not here: %s", path, strerror(errno));
		return EXIT_USAGE;
	}
	if (*beat < 0)
		return EXIT_DONE;
	struct flock lock = lock_of((off_t)sizeof(Beat) + own_rank(), 1);
	Beat b;
	fcntl(*beat, F_SETLKW, &lock); /* a file system without locks is no reason not to train */
	if (attempt && pread(*beat, &b, sizeof b, 0) == sizeof b && b.attempt != strtoul(attempt, NULL, 10)) {
		complain(NULL, "attempt %s is over", attempt);
		return EXIT_FAILED;
	}
	beat_sign(*beat);
	watch_start(*beat);
	return EXIT_DONE;
}

static void put_time(int beat, size_t at)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t sign = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (beat >= 0 && pwrite(beat, &sign, sizeof sign, (off_t)at) < 0)
		return; /* launch will miss it, and start anew */
}

void beat_sign(int beat) { put_time(beat, offsetof(Beat, sign)); }

void beat_step(int beat)
{
	put_time(beat, offsetof(Beat, step));
	beat_sign(beat);
}

static void put_word(int beat, uint32_t word, size_t at)
{
	if (beat >= 0 && pwrite(beat, &word, sizeof word, (off_t)at) < 0)
		return; /* then its own exit status has to do */
}

void beat_end(int beat, int rc) { put_word(beat, (uint32_t)rc + 1, offsetof(Beat, ended)); }

void beat_diverged(int beat) { put_word(beat, 1, offsetof(Beat, diverged)); }

/* ---- launch ---- */

/* A name of its own: processes of another host or container may have the same number, and see the same folder. */
bool beat_make(char *path, size_t room)
{
	const char *folder = getenv("TMPDIR");
	char number[32];
	int suffix = snprintf(number, sizeof number, "-%ld", (long)getpid());
	snprintf(path, room, "%s/microprop-beat-XXXXXX%s", folder && *folder ? folder : "/tmp", number);
	int fd = mkstemps(path, suffix);
	if (fd < 0)
		complain(writable, "cannot make a file %s: %s", path, strerror(errno));
	else
		close(fd);
	return fd >= 0;
}

Beat beat_look(const char *path)
{
	Beat b = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC); /* anew each time: over a network that is what makes it look */
	if (fd >= 0 && pread(fd, &b, sizeof b, 0) != sizeof b)
		b = (Beat){ 0 };
	if (fd >= 0)
		close(fd);
	return b;
}

/* Over a network the holder may be a number of another host. */
static bool is_microprop(pid_t pid)
{
	char link[64], own[PATH_MAX], other[PATH_MAX];
	snprintf(link, sizeof link, "/proc/%ld/exe", (long)pid);
	ssize_t n = readlink("/proc/self/exe", own, sizeof own), m = readlink(link, other, sizeof other);
	return n > 0 && n == m && !memcmp(own, other, (size_t)n);
}

/* Ends those who hold locks.  False: after so many seconds one still does. */
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

bool beat_begin(const char *path, uint32_t attempt, double seconds)
{
	Beat b = { .attempt = attempt };
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool good = fd >= 0;
	if (good && !locks_take(fd, seconds)) {
		complain("end it, then start launch again, with --resume and the last checkpoint",
		         "a process of the attempt before lives on and could write over files of the next");
		good = false;
	} else if (!good || pwrite(fd, &b, sizeof b, 0) != sizeof b) {
		complain(writable, "cannot write %s: %s", path, strerror(errno));
		good = false;
	}
	if (fd >= 0)
		close(fd);
	return good;
}
