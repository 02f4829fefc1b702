/* SPDX-License-Identifier: MIT */
/* Interface between the library and its message-passing modules (comm/). */
#ifndef COMM_H
#define COMM_H

#include <stddef.h>
#include <stdint.h>

enum { COMM_VERSION = 2 };

/* Messages between the processes of a job; comm/ has one of these for each message-passing library. send and receive
 * are non-blocking; wait completes all of them. An error of the library ends the job. */
typedef struct Comm {
	uint32_t rank, size;
	const char *name; /* of the library */
	void *self;
	void (*send)(void *self, const void *from, size_t bytes, uint32_t to);
	void (*receive)(void *self, void *to, size_t bytes, uint32_t from);
	void (*wait)(void *self);
	void (*allgather)(void *self, const void *own, size_t bytes, void *all); /* all: [size][bytes] */
	void (*broadcast)(void *self, void *bytes, size_t count, uint32_t from);
	void (*allreduce)(void *self, float *v, size_t n); /* sum, in the library's order */
	void (*finalize)(void *self);                      /* collective */
	void (*abort)(void *self, int code);               /* ends all processes of the job */
} Comm;

/* The job as its launcher describes it. */
typedef struct CommJob {
	uint32_t size, local; /* ranks; those on this host, 0: unknown */
	int contact;          /* descriptor to the launcher; -1: none */
} CommJob;

/* A module exports this function as microprop_comm: joins the job; NULL: it cannot, or has another version of this
 * file. */
typedef const Comm *CommFn(uint32_t version, const CommJob *job);

#endif
