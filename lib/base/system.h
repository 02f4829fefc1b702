/* SPDX-License-Identifier: MIT */
/* Stand-ins for calls beyond POSIX, where a system (musl without extensions, macOS, the BSDs) has none of that name:
 * hints about pages do nothing, cores are unknown. */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>

#ifndef MADV_DONTNEED
#define MADV_DONTNEED        4
#define MADV_WILLNEED        3
#define madvise(at, len, is) ((void)(at), (void)(len), (void)(is))
#endif
#ifndef MADV_HUGEPAGE
#define MADV_HUGEPAGE 0 /* MADV_NORMAL */
#endif
#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

#ifndef CPU_SETSIZE
#define CPU_SETSIZE 1
typedef struct cpu_set_t {
	char none;
} cpu_set_t;
#define CPU_ZERO(set)        ((set)->none = 0)
#define CPU_SET(core, set)   ((void)(core), (void)(set))
#define CPU_ISSET(core, set) ((void)(core), (void)(set), 1)
#define CPU_COUNT(set)       ((void)(set), 0)
static inline int sched_getcpu(void) { return -1; }
static inline int sched_getaffinity(int process, size_t size, cpu_set_t *set)
{
	(void)process, (void)size, (void)set;
	return -1;
}
static inline int sched_setaffinity(int process, size_t size, const cpu_set_t *set)
{
	(void)process, (void)size, (void)set;
	return -1;
}
static inline int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
	(void)thread, (void)size, (void)set;
	return -1;
}
#endif

#if defined __APPLE__ /* has no [ADV] option of POSIX */
#include <sys/stat.h>
#include <unistd.h>
#define POSIX_FADV_DONTNEED                  0
#define posix_fadvise(fd, from, len, advice) ((void)(fd), (void)(advice))
static inline int posix_fallocate(int fd, off_t from, off_t len)
{
	struct stat st;
	return fstat(fd, &st) || (st.st_size < from + len && ftruncate(fd, from + len)) ? EIO : 0;
}
#endif

#ifndef _GNU_SOURCE
char *realpath(const char *restrict path, char *restrict resolved); /* POSIX; headers may hide it */
#endif

#endif
