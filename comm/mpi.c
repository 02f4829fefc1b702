/* SPDX-License-Identifier: MIT */
/* Messages by MPI. A module of its own, built once for each MPI there is and loaded when a process finds itself in
 * a job of that MPI (open.c), so that the program itself needs none.
 *
 * In: bytes, ranks.  Out: bytes.  Errors of MPI end the job, as is its custom.
 * Waiting is polite: ranks may have to share a core, and one that waits long sleeps. */
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
	int requests, room;
	char name[MPI_MAX_LIBRARY_VERSION_STRING];
	uint64_t spins; /* before it lets others have the core; few where ranks have to share cores */
	bool ucx;       /* MPICH over UCX */
	bool apart;     /* and its launcher says that ranks are on several hosts */
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
	if (m->requests == m->room) {
		m->room = m->room ? 2 * m->room : 64;
		m->request = realloc(m->request, (size_t)m->room * sizeof *m->request);
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

static void mpi_gather(void *self, const void *own, size_t bytes, void *all)
{
	MPI_Request r;

	(void)self;
	MPI_Iallgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD, &r);
	finish(&r, 1);
}

static void mpi_spread(void *self, void *bytes, size_t count, uint32_t from)
{
	(void)self;
	for (size_t done = 0, some; done < count; done += some) {
		MPI_Request r;
		some = count - done < MOST_BYTES ? count - done : MOST_BYTES;
		MPI_Ibcast((char *)bytes + done, (int)some, MPI_BYTE, (int)from, MPI_COMM_WORLD, &r);
		finish(&r, 1);
	}
}

static void mpi_add(void *self, float *v, size_t n)
{
	(void)self;
	for (size_t done = 0, some; done < n; done += some) {
		some = n - done < MOST_BYTES ? n - done : MOST_BYTES;
		MPI_Allreduce(MPI_IN_PLACE, v + done, (int)some, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	}
}

/* MPICH before 4.2, over UCX and TCP: in MPI_Finalize a rank closes its connections, for which the others have to
 * answer; but those that are done with it sit in a barrier of the launcher and answer no more, and the job hangs,
 * every second time with three ranks (pmodels/mpich pull request 6596). So where ranks are on several hosts such a
 * rank only tells the launcher, Hydra, that it has ended well; everyone has come by then, and connections go with
 * the process. */
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40200000
enum { PATIENCE_MS = 10000 };

/* The number of an open file that the launcher has left in the environment, or -1. */
static int file_named(const char *variable)
{
	const char *text = getenv(variable);
	char *end = NULL;
	long number = text ? strtol(text, &end, 10) : -1;

	return text && end != text && !*end && number >= 0 && number <= INT_MAX && fcntl((int)number, F_GETFD) >= 0
	           ? (int)number
	           : -1;
}

/* A line from the launcher, without its end; false: it says nothing, or does not speak in lines. */
static bool line_read(int from, char *line, size_t room)
{
	for (size_t length = 0; length < room; length++) {
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

/* In the words of PMI 1, which Hydra speaks to a program of this MPICH.  False: it has not understood. */
static bool ends_by_itself(const Mpi *m)
{
	static const char end[] = "cmd=finalize\n", understood[] = "cmd=finalize_ack";
	int launcher = file_named("PMI_FD");
	char answer[256];

	if (!m->ucx || !m->apart || !getenv("HYDI_CONTROL_FD") || launcher < 0)
		return false;
	return write(launcher, end, sizeof end - 1) == sizeof end - 1 && line_read(launcher, answer, sizeof answer) &&
	       strncmp(answer, understood, sizeof understood - 1) == 0;
}
#else
static bool ends_by_itself(const Mpi *m)
{
	(void)m;
	return false;
}
#endif

static void mpi_end(void *self)
{
	MPI_Request r;

	MPI_Ibarrier(MPI_COMM_WORLD, &r); /* finalizing waits less politely */
	finish(&r, 1);
	if (!ends_by_itself(self))
		MPI_Finalize();
}

static void mpi_kill(void *self, int code)
{
	(void)self;
	MPI_Abort(MPI_COMM_WORLD, code);
}

/* Ranks of this host outnumber its cores, as their launcher counts them. */
static bool cores_are_shared(void)
{
	const char *open_mpi = getenv("OMPI_COMM_WORLD_LOCAL_SIZE"),
			   *here = open_mpi ? open_mpi : getenv("MPI_LOCALNRANKS");

	return here && atol(here) > sysconf(_SC_NPROCESSORS_ONLN);
}

/* As Hydra says it; an option of MPICH makes one host count as many. */
static bool ranks_are_apart(void)
{
	const char *here = getenv("MPI_LOCALNRANKS"), *all = getenv("PMI_SIZE");

	return here && all && (getenv("MPIR_CVAR_NOLOCAL") || atol(here) < atol(all));
}

/* Joins the job; NULL if that cannot be.
 * UCX asks before it sends a long message, and with four ranks that exchange such at 100 Mbit/s sums took 147 ms
 * so, 82 ms without. */
__attribute__((visibility("default"))) const Comm *microprop_comm(uint32_t version)
{
	int rank, size, length, given;

	mpi.apart = ranks_are_apart();
	mpi.spins = cores_are_shared() ? FEW_SPINS : SPINS;
	if (mpi.apart)
		setenv("UCX_RNDV_THRESH", "inf", 0);
	if (version != COMM_VERSION || MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS)
		return NULL;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_library_version(mpi.name, &length);
	mpi.ucx = strstr(mpi.name, "ch4:ucx") != NULL;
	for (char *s = mpi.name; *s; s++) /* Open MPI's has its whole address */
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
		               .gather = mpi_gather,
		               .spread = mpi_spread,
		               .add = mpi_add,
		               .end = mpi_end,
		               .kill = mpi_kill };
	return &mpi.comm;
}
