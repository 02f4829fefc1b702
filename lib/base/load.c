/* SPDX-License-Identifier: MIT */
/* Shared libraries that are loaded while the program runs: drivers and MPI.
 *
 * In: a path. Out: a handle, or NULL and why. A program that is linked statically (MP_STATIC) loads none. */
#include "base.h"

#ifdef MP_STATIC

void *library_open(const char *path, bool global, const char **why)
{
	(void)path;
	(void)global;
	*why = "this program is linked statically and loads no library; use one that is linked dynamically";
	return NULL;
}

void *library_symbol(void *library, const char *name)
{
	(void)library;
	(void)name;
	return NULL;
}

void library_close(void *library) { (void)library; }

#else
#include <dlfcn.h>

void *library_open(const char *path, bool global, const char **why)
{
	void *library = dlopen(path, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
	*why = library ? NULL : dlerror();
	return library;
}

void *library_symbol(void *library, const char *name) { return dlsym(library, name); }
void library_close(void *library) { dlclose(library); }

#endif
