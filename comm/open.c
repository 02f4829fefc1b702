/* SPDX-License-Identifier: MIT */
/* Detects whether a launcher started this process in a job, and loads the message-passing module.
 *
 * In: environment variables of launchers.  Out: a Comm, or NULL where there is no job of more than one process.
 * Modules are beside the program, or where it was installed; MICROPROP_COMM names another. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "open.h"

/* Variables with the size of the job, and the MPI whose launcher sets them. */
static const struct {
	const char *variable, *module;
} launchers[] = {
	{ "OMPI_COMM_WORLD_SIZE", "openmpi" },
	{ "PMI_SIZE", "mpich" },
	{ "PMIX_SIZE", "openmpi" },
};

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

static void *module_open(Ctx *cx, const char *name)
{
	const char *named = getenv("MICROPROP_COMM"), *path = named ? named : module_find(cx, name);
	return path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL; /* global: Open MPI has plugins */
}

const Comm *comm_open(Ctx *cx)
{
	for (size_t i = 0; i < COUNT(launchers); i++) {
		const char *size = getenv(launchers[i].variable);
		if (!size)
			continue;
		if (strcmp(size, "1") == 0)
			return NULL;
		void *module = module_open(cx, launchers[i].module);
		if (!module)
			fail(cx, MP_BAD_INPUT, "build it where that MPI is installed, or set MICROPROP_COMM to the module",
			     "this is a job of %s processes, but there is no module microprop-%s.so%s%s", size, launchers[i].module,
			     getenv("MICROPROP_COMM") ? ": " : "", getenv("MICROPROP_COMM") ? dlerror() : "");
		CommFn *join;
		*(void **)&join = dlsym(module, "microprop_comm");
		const Comm *comm = join ? join(COMM_VERSION) : NULL;
		if (!comm)
			fail(cx, MP_BAD_INPUT, "build module and program together", "microprop-%s.so is not for this program",
			     launchers[i].module);
		return comm;
	}
	return NULL;
}
