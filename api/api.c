/* SPDX-License-Identifier: MIT */
/* The edge: every public call that can fail goes through api_call. */
#include "api.h"

#include <locale.h>
#include <string.h>

typedef struct Handle {
	Ctx cx;
} Handle;

Status api_call(Ctx *cx, void (*body)(void *arg), void *arg)
{
	jmp_buf here, *outer = cx->edge;
	Arena scratch = cx->scratch;
	int errors = cx->errors;
	/* Numbers in files have a decimal point, whatever the program around us chose for its users. */
	locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), theirs = uselocale(plain);
	if (!outer && cx->messages.s) {
		cx->messages.len = 0;
		cx->messages.s[0] = '\0';
	}
	cx->scratch = (Arena){ .cx = cx };
	cx->errors = 0;
	cx->starved = false;
	cx->status = MP_OK;
	cx->edge = &here;
	if (setjmp(here) == 0)
		body(arg);
	Status status = cx->status;
	arena_free(&cx->scratch);
	cx->scratch = scratch;
	cx->edge = outer;
	if (outer) {
		cx->errors = errors;
		cx->status = MP_OK;
	}
	uselocale(theirs);
	freelocale(plain);
	return status;
}

void *api_handle(size_t size, const Alloc *alloc)
{
	Ctx cx;
	ctx_init(&cx, alloc);
	Handle *h = cx.alloc.resize(cx.alloc.user, NULL, 0, size);
	if (!h)
		return NULL;
	memset(h, 0, size);
	ctx_init(&h->cx, alloc);
	return h;
}

void api_close(void *handle, size_t size)
{
	Handle *h = handle;
	if (!h)
		return;
	Alloc alloc = h->cx.alloc;
	ctx_free(&h->cx);
	alloc.resize(alloc.user, h, size, 0);
}

const char *mp_version(void) { return MP_VERSION; }

const mp_option *mp_option_at(size_t i) { return option_at(i); }
