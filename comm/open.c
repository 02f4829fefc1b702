/* SPDX-License-Identifier: MIT */
/* Detects whether a launcher started this process in a job, and loads the message-passing module.
 *
 * In: environment variables of launchers.  Out: a Comm, or NULL where there is no job of more than one process.
 * Modules are beside the program, or where it was installed; MICROPROP_COMM names another. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "open.h"

/* Its path, in scratch; NULL: not in this folder. */
static const char *module_in(Ctx *cx, const char *folder, size_t length, const char *name)
{
	Buf path = { .arena = &cx->scratch };
	buf_add(&path, folder, length);
	buf_printf(&path, "/microprop-%s.so", name);
	return access(path.s, R_OK) == 0 ? path.s : NULL;
}

static const char *module_find(Ctx *cx, const char *name)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n < 0 ? 0 : n] = '\0';
	char *end = strrchr(self, '/');
	const char *path = end ? module_in(cx, self, (size_t)(end - self), name) : NULL;
	return path ? path : module_in(cx, COMM_FOLDER, strlen(COMM_FOLDER), name);
}

bool comm_found(Ctx *cx, const char *name) { return module_find(cx, name) != NULL; }

static void *module_open(Ctx *cx, const char *name, const char **why)
{
	const char *named = getenv("MICROPROP_COMM"), *path = named ? named : module_find(cx, name);
	*why = "there is no such file";
	return path || !LOADS_LIBRARIES ? library_open(path, true, why) : NULL; /* global: Open MPI has plugins */
}

/* Other than MPI says: variables are left over, or the launcher is of another MPI. */
static _Noreturn void fail_other_size(Ctx *cx, const LaunchedJob *job, const Comm *comm)
{
	uint32_t found = comm->size;
	comm->finalize(comm->self);
	fail(cx, MP_BAD_INPUT, "unset it, or start all processes with the mpirun of that MPI",
	     "%s says that this is a job of %u processes, but MPI (microprop-%s.so) finds %u", job->variable, job->size,
	     job->module, found);
}

const Comm *comm_open(Ctx *cx)
{
	LaunchedJob job;
	if (!launcher_job(&job))
		return NULL;
	const char *why;
	void *module = module_open(cx, job.module, &why);
	if (!module)
		fail(cx, MP_BAD_INPUT,
		     LOADS_LIBRARIES ? "build it where that MPI is installed, or set MICROPROP_COMM to the module"
		                     : "start one process, which needs no MPI; it uses all cores",
		     "this is a job of %u processes (%s), but module microprop-%s.so cannot be loaded: %s", job.size,
		     job.variable, job.module, why);
	CommFn *join;
	*(void **)&join = library_symbol(module, "microprop_comm");
	const Comm *comm = join ? join(COMM_VERSION, &(CommJob){ job.size, job.local, job.contact }) : NULL;
	if (!comm)
		fail(cx, MP_BAD_INPUT, "build module and program together", "microprop-%s.so is not for this program",
		     job.module);
	if (comm->size != job.size)
		fail_other_size(cx, &job, comm);
	return comm;
}
