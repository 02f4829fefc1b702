/* SPDX-License-Identifier: MIT */
/* The public handles, and the edge between them and the library. */
#ifndef API_H
#define API_H

#include "store.h"
#include "train.h"

struct mp_net {
	Ctx cx;
	Net *net; /* NULL if reading failed */
	mp_net_info info;
};

struct mp_data {
	Ctx cx;
	Data *data; /* NULL if reading failed */
	mp_data_info info;
	Buf text; /* what the last name or guess was printed into */
};

/* Calls body(arg) so that whatever fails under it unwinds to here, the setjmp of every public call. Messages are
 * those of this call and scratch memory goes when it ends, unless it was made from inside another call on the same
 * handle (a report function that saves). */
Status api_call(Ctx *cx, void (*body)(void *arg), void *arg);

/* api_run.c: the data, NULL of NULL; fails if it could not be read. */
const Data *data_readable(Ctx *cx, const mp_data *d);

/* Memory for a handle, zeroed, with its Ctx (the first member) ready; NULL if there is none. */
void *api_handle(size_t size, const Alloc *alloc);
void api_close(void *handle, size_t size);

#endif
