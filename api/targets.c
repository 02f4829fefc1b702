/* SPDX-License-Identifier: MIT */
/* The table of targets: adding one is a line here and a folder in target/. */
#include <string.h>

#include "lib.h"

extern const Target target_ref;

static const Target *const targets[] = { &target_ref };

const Target *target_find(const char *name)
{
	for (size_t i = 0; i < COUNT(targets); i++)
		if (strcmp(targets[i]->name, name) == 0)
			return targets[i];
	return NULL;
}

const char *target_names(Arena *a)
{
	Buf b = { .arena = a };
	buf_puts(&b, "the targets here are:");
	for (size_t i = 0; i < COUNT(targets); i++)
		buf_printf(&b, "%s %s", i ? "," : "", targets[i]->name);
	return b.s;
}
