/* SPDX-License-Identifier: MIT */
/* What the launcher of a job has put into the environment: one table of its variables, one parser. A value that is not
 * a plain number in range is taken as absent: variables may be left over, or anything. */
#include <fcntl.h>
#include <stdlib.h>

#include "base.h"

/* contact: the descriptor by which processes talk to it.  The first row whose variable is set counts. */
static const struct {
	const char *module, *size, *rank, *local, *contact;
} launchers[] = {
	{ "openmpi", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL },
	{ "mpich", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "PMI_FD" },
	{ "openmpi", "PMIX_SIZE", "PMIX_RANK", NULL, NULL },
	{ NULL, NULL, NULL, "SLURM_NTASKS_PER_NODE", NULL },
};

enum { MOST = 1 << 20 }; /* processes; descriptors */

/* Decimal digits alone, 0 .. MOST; else -1. */
static int32_t number_in(const char *variable)
{
	const char *text = variable ? getenv(variable) : NULL;
	int32_t v = 0;

	if (!text || !*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		v = v * 10 + (*text - '0');
		if (v > MOST)
			return -1;
	}
	return v;
}

/* NULL: nothing could answer there. */
static bool contact_is_open(const char *variable)
{
	int32_t fd = number_in(variable);

	return !variable || !getenv(variable) || (fd >= 0 && fcntl(fd, F_GETFD) >= 0);
}

bool launcher_job(LaunchedJob *job)
{
	for (size_t i = 0; i < COUNT(launchers); i++) {
		int32_t size = number_in(launchers[i].size), rank = number_in(launchers[i].rank),
				local = number_in(launchers[i].local);
		if (size < 1 || rank < 0 || rank >= size || !contact_is_open(launchers[i].contact))
			continue;
		*job = (LaunchedJob){ .module = launchers[i].module,
			                  .variable = launchers[i].size,
			                  .size = (uint32_t)size,
			                  .rank = (uint32_t)rank,
			                  .local = local > 0 && local <= size ? (uint32_t)local : 0,
			                  .contact = number_in(launchers[i].contact) };
		return size > 1;
	}
	*job = (LaunchedJob){ .contact = -1 };
	return false;
}

uint32_t launcher_local_ranks(void)
{
	for (size_t i = 0; i < COUNT(launchers); i++) {
		int32_t local = number_in(launchers[i].local);
		if (local > 0)
			return (uint32_t)local;
	}
	return 1;
}
