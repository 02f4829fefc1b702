/* SPDX-License-Identifier: MIT */
/* Shared by all cmocka programs: headers in the right order, setjmp for failing calls, an allocator that counts. */
#ifndef TEST_H
#define TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#undef fail /* cmocka's; the library has functions of these names */
#undef run_test

#include "microprop/background.h"
#include "microprop/build.h"
#include "microprop/data.h"
#include "microprop/job.h"
#include "run.h"

/* Runs body(cx, arg) with a place to unwind to; returns its status. */
static inline Status guarded(Ctx *cx, void (*body)(Ctx *, void *), void *arg)
{
	jmp_buf edge;
	cx->edge = &edge;
	cx->status = MP_OK;
	if (setjmp(edge) == 0)
		body(cx, arg);
	cx->edge = NULL;
	return cx->status;
}

/* A network with the defaults that expected results were computed with. */
static inline mp_status net_parse_1989(mp_net **net, const char *text, const char *name, const mp_allocator *alloc)
{
	static const char first[] = "defaults 1989\n";
	char *both = malloc(sizeof first + strlen(text));
	assert_non_null(both);
	strcat(strcpy(both, first), text);
	mp_status s = mp_net_parse(net, both, name, alloc);
	free(both);
	return s;
}

/* An allocator that counts live blocks and fails the n-th request.  It never grows in place, so blocks always move. */
typedef struct Meter {
	long live, calls, fail_at;
	size_t bytes, most;
} Meter; /* most: peak of bytes */

static inline void *meter_resize(void *user, void *old, size_t old_size, size_t new_size)
{
	Meter *m = user;
	if (new_size == 0) {
		m->live -= old != NULL;
		m->bytes -= old_size;
		free(old);
		return NULL;
	}
	if (++m->calls == m->fail_at)
		return NULL;
	m->live += old == NULL;
	m->bytes += new_size - old_size;
	m->most = m->bytes > m->most ? m->bytes : m->most;
	char *p = malloc(new_size);
	assert_non_null(p);
	if (old)
		memcpy(p, old, old_size < new_size ? old_size : new_size);
	free(old);
	return p;
}

#endif
