/* SPDX-License-Identifier: MIT */
/* Messages by MPI. A module built once for each installed MPI and loaded in a job of that MPI (open.c), so that the
 * program itself does not link against one.
 *
 * Errors of MPI end the job (MPI_ERRORS_ARE_FATAL). Waiting spins, then yields, then sleeps: ranks may share a core. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm.h"

enum { SPINS = 2000, FEW_SPINS = 10, YIELDS = 2000 };
enum { MOST_BYTES = 1 << 30 }; /* of a message: counts are int */

typedef struct Mpi {
	MPI_Request *request;
	int requests, capacity;
	char name[MPI_MAX_LIBRARY_VERSION_STRING];
	uint64_t spins; /* before it yields; few where ranks share cores */
	bool ucx;       /* MPICH over UCX */
	bool hosts;     /* ranks are on several hosts, by its launcher */
	int launcher;   /* descriptor to it; -1: none */
	Comm comm;
} Mpi;

static Mpi mpi;

static void pause_for(uint64_t tries)
{
	if (tries < mpi.spins)
		return;
	if (tries < mpi.spins + YIELDS)
		sched_yield();
	else
		nanosleep(&(struct timespec){ .tv_nsec = tries < mpi.spins + 2 * YIELDS ? 20000 : 500000 }, NULL);
}

static void finish(MPI_Request *r, int count)
{
	int done = 0;

	for (uint64_t tries = 0; !done; tries++) {
		MPI_Testall(count, r, &done, MPI_STATUSES_IGNORE);
		if (!done)
			pause_for(tries);
	}
}

static MPI_Request *next_request(Mpi *m)
{
	if (m->requests == m->capacity) {
		m->capacity = m->capacity ? 2 * m->capacity : 64;
		m->request = realloc(m->request, (size_t)m->capacity * sizeof *m->request);
		if (!m->request)
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return &m->request[m->requests++];
}

static void mpi_send(void *self, const void *from, size_t bytes, uint32_t to)
{
	for (size_t done = 0, some; done < bytes; done += some) {
		some = bytes - done < MOST_BYTES ? bytes - done : MOST_BYTES;
		MPI_Isend((const char *)from + done, (int)some, MPI_BYTE, (int)to, 0, MPI_COMM_WORLD, next_request(self));
	}
}

static void mpi_receive(void *self, void *to, size_t bytes, uint32_t from)
{
	for (size_t done = 0, some; done < bytes; done += some) {
		some = bytes - done < MOST_BYTES ? bytes - done : MOST_BYTES;
		MPI_Irecv((char *)to + done, (int)some, MPI_BYTE, (int)from, 0, MPI_COMM_WORLD, next_request(self));
	}
}

static void mpi_wait(void *self)
{
	Mpi *m = self;

	finish(m->request, m->requests);
	m->requests = 0;
}

static void mpi_allgather(void *self, const void *own, size_t bytes, void *all)
{
	MPI_Request r;

	(void)self;
	MPI_Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD, &r);
	finish(&r, 1);
}

static void mpi_broadcast(void *self, void *bytes, size_t count, uint32_t from)
{
	(void)self;
	for (size_t done = 0, some; done < count; done += some) {
		MPI_Request r;
		some = count - done < MOST_BYTES ? count - done : MOST_BYTES;
		MPI_Ibcast((char *)bytes + done, (int)some, MPI_BYTE, (int)from, MPI_COMM_WORLD, &r);
		finish(&r, 1);
	}
}

static void mpi_allreduce(void *self, float *v, size_t n)
{
	(void)self;
	for (size_t done = 0, some; done < n; done += some) {
		some = n - done < MOST_BYTES ? n - done : MOST_BYTES;
		MPI_Allreduce(MPI_IN_PLACE, v + done, (int)some, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	}
}

/* MPICH before 4.2, over UCX and TCP: in MPI_Finalize a rank closes its connections, which the others must acknowledge;
 * but ranks that have done so wait in a barrier of the launcher without progress, and the job hangs, every second time
 * with three ranks (pmodels/mpich pull request 6596). So where ranks are on several hosts a rank only sends finalize to
 * the launcher, Hydra; all ranks have passed our barrier by then, and connections end with the process. */
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40200000
enum { PATIENCE_MS = 10000 };

/* A line from the launcher, without its newline; false: none came in time. */
static bool line_read(int from, char *line, size_t capacity)
{
	for (size_t length = 0; length < capacity; length++) {
		struct pollfd ready = { .fd = from, .events = POLLIN };
		int some;
		do
			some = poll(&ready, 1, PATIENCE_MS);
		while (some < 0 && errno == EINTR);
		if (some <= 0 || read(from, line + length, 1) != 1)
			return false;
		if (line[length] == '\n') {
			line[length] = '\0';
			return true;
		}
	}
	return false;
}

/* By the protocol PMI 1 of Hydra.  False: not acknowledged. */
static bool finalize_by_launcher(const Mpi *m)
{
	static const char end[] = "cmd=finalize\n", acknowledged[] = "cmd=finalize_ack";
	char answer[256];

	if (!m->ucx || !m->hosts || !getenv("HYDI_CONTROL_FD") || m->launcher < 0)
		return false;
	return write(m->launcher, end, sizeof end - 1) == sizeof end - 1 && line_read(m->launcher, answer, sizeof answer) &&
	       strncmp(answer, acknowledged, sizeof acknowledged - 1) == 0;
}
#else
static bool finalize_by_launcher(const Mpi *m)
{
	(void)m;
	return false;
}
#endif

static void mpi_finalize(void *self)
{
	MPI_Request r;

	MPI_Ibarrier(MPI_COMM_WORLD, &r); /* MPI_Finalize would spin */
	finish(&r, 1);
	if (!finalize_by_launcher(self))
		MPI_Finalize();
}

static void mpi_abort(void *self, int code)
{
	(void)self;
	MPI_Abort(MPI_COMM_WORLD, code);
}

/* By Hydra; MPIR_CVAR_NOLOCAL makes one host count as several. */
static bool on_several_hosts(const CommJob *job)
{
#ifdef MPICH_NUMVERSION
	return job->local && (getenv("MPIR_CVAR_NOLOCAL") || job->local < job->size);
#else
	(void)job;
	return false;
#endif
}

/* Joins the job; NULL if it cannot.
 * Rendezvous of UCX is off: with four ranks that exchange long messages at 100 Mbit/s, sums took 147 ms with it, 82 ms
 * without. */
__attribute__((visibility("default"))) const Comm *microprop_comm(uint32_t version, const CommJob *job)
{
	int rank, size, length, given;

	if (version != COMM_VERSION)
		return NULL;
	mpi.hosts = on_several_hosts(job);
	mpi.launcher = job->contact;
	mpi.spins = job->local > sysconf(_SC_NPROCESSORS_ONLN) ? FEW_SPINS : SPINS;
	if (mpi.hosts)
		setenv("UCX_RNDV_THRESH", "inf", 0);
	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS)
		return NULL;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_library_version(mpi.name, &length);
	mpi.ucx = strstr(mpi.name, "ch4:ucx") != NULL;
	for (char *s = mpi.name; *s; s++) /* Open MPI's is long */
		if (*s == ',' || *s == '\n')
			*s = '\0';
		else if (*s == '\t')
			*s = ' ';
	mpi.comm = (Comm){ .rank = (uint32_t)rank,
		               .size = (uint32_t)size,
		               .name = mpi.name,
		               .self = &mpi,
		               .send = mpi_send,
		               .receive = mpi_receive,
		               .wait = mpi_wait,
		               .allgather = mpi_allgather,
		               .broadcast = mpi_broadcast,
		               .allreduce = mpi_allreduce,
		               .finalize = mpi_finalize,
		               .abort = mpi_abort };
	return &mpi.comm;
}
