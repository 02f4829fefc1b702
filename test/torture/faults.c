/* SPDX-License-Identifier: MIT */
/* Preloaded into a command (LD_PRELOAD): clocks that jump, and a network between ranks that is slow or fails.
 *
 * FAULTS_CLOCK=SEED         one reading in eight jumps: the time of day by up to an hour either way, others forward
 * FAULTS_NET=delay:MS:SEED  one call in four on a TCP socket waits for up to MS milliseconds
 * FAULTS_NET=drop:N         the connection of call number N of a process ends
 * FAULTS_NET=partition:N    call number N of a process and all after it send nothing and receive nothing
 * FAULTS_ONCE=FILE          drop and partition happen to the one process that makes this file */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* ---- clocks ---- */

static _Atomic uint64_t readings;
static _Atomic long offset[2]; /* seconds: of the time of day, of other clocks */

int clock_gettime(clockid_t id, struct timespec *t)
{
	static int (*real)(clockid_t, struct timespec *);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	int result = real(id, t);
	const char *seed = getenv("FAULTS_CLOCK");
	if (result || !seed || id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID)
		return result;
	uint64_t random = mix(strtoull(seed, NULL, 10) * 0x9e3779b97f4a7c15 + atomic_fetch_add(&readings, 1));
	bool of_day = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
	long jump = (long)(random >> 8 & 0xffffff) % 3600;
	if (random % 8 == 0 && of_day)
		atomic_store(&offset[0], random >> 40 & 1 ? jump : -jump);
	else if (random % 8 == 0)
		atomic_fetch_add(&offset[1], jump);
	t->tv_sec += atomic_load(&offset[!of_day]);
	return 0;
}

/* ---- network ---- */

static _Atomic long number;
static atomic_bool silent;

static bool is_tcp(int fd)
{
	struct sockaddr_storage a;
	socklen_t size = sizeof a;
	return getpeername(fd, (struct sockaddr *)&a, &size) == 0 && (a.ss_family == AF_INET || a.ss_family == AF_INET6);
}

static bool is_chosen(void)
{
	const char *once = getenv("FAULTS_ONCE");
	int fd = once ? open(once, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) : -1;
	if (fd >= 0)
		close(fd);
	return !once || fd >= 0;
}

/* True: this call must not happen, and errno says why. */
static bool disturb(int fd)
{
	const char *how = getenv("FAULTS_NET");
	if (!how || !is_tcp(fd))
		return false;
	long n = atomic_fetch_add(&number, 1) + 1;
	long first = atol(strchr(how, ':') + 1);
	const char *second = strchr(strchr(how, ':') + 1, ':');
	if (*how == 'd' && how[1] == 'e') {
		uint64_t random = mix((second ? strtoull(second + 1, NULL, 10) : 1) + (uint64_t)n);
		if (random % 4 == 0)
			usleep((useconds_t)(random >> 8) % (useconds_t)(1000 * first + 1));
		return false;
	}
	if (n == first && is_chosen()) {
		if (*how == 'p')
			atomic_store(&silent, true);
		else
			shutdown(fd, SHUT_RDWR);
	}
	if (atomic_load(&silent))
		errno = EAGAIN;
	return atomic_load(&silent);
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
	static ssize_t (*real)(int, const struct iovec *, int);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "writev");
	return disturb(fd) ? -1 : real(fd, v, n);
}

ssize_t readv(int fd, const struct iovec *v, int n)
{
	static ssize_t (*real)(int, const struct iovec *, int);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "readv");
	return disturb(fd) ? -1 : real(fd, v, n);
}

ssize_t send(int fd, const void *from, size_t n, int flags)
{
	static ssize_t (*real)(int, const void *, size_t, int);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "send");
	return disturb(fd) ? -1 : real(fd, from, n, flags);
}

ssize_t recv(int fd, void *to, size_t n, int flags)
{
	static ssize_t (*real)(int, void *, size_t, int);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "recv");
	return disturb(fd) ? -1 : real(fd, to, n, flags);
}

ssize_t read(int fd, void *to, size_t n)
{
	static ssize_t (*real)(int, void *, size_t);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "read");
	return disturb(fd) ? -1 : real(fd, to, n);
}

ssize_t write(int fd, const void *from, size_t n)
{
	static ssize_t (*real)(int, const void *, size_t);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "write");
	return disturb(fd) ? -1 : real(fd, from, n);
}
