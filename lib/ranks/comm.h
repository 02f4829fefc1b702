/* SPDX-License-Identifier: MIT */
/* Between the library and the modules that pass its messages (comm/). */
#ifndef COMM_H
#define COMM_H

#include <stddef.h>
#include <stdint.h>

enum { COMM_VERSION = 1 };

/* Messages between the processes of a job; comm/ has one of these for each message-passing library. Sends and
 * receives only begin; wait ends all of them. What a library cannot do ends the job. */
typedef struct Comm {
	uint32_t rank, size;
	const char *name; /* of the library */
	void *self;
	void (*send)(void *self, const void *from, size_t bytes, uint32_t to);
	void (*receive)(void *self, void *to, size_t bytes, uint32_t from);
	void (*wait)(void *self);
	/* all [size][bytes] of everyone, to everyone */
	void (*gather)(void *self, const void *own, size_t bytes, void *all);
	void (*spread)(void *self, void *bytes, size_t count, uint32_t from); /* from one to all */
	void (*add)(void *self, float *v, size_t n); /* the library's own sum, in whatever order it likes */
	void (*end)(void *self);                     /* everyone has to come */
	void (*kill)(void *self, int code);          /* ends the whole job at once */
} Comm;

/* What a module is asked for, by the name microprop_comm: joins the job; NULL if that cannot be, or for another
 * version of this file. */
typedef const Comm *CommFn(uint32_t version);

#endif
