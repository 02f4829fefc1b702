/* SPDX-License-Identifier: MIT */
/* Contexts: memory, messages and the setjmp that failing unwinds to.
 *
 * A sub-context has all three of its own, so that its memory can be freed before the outer context's, or a thread can
 * use it.  A failure inside must not unwind to the outer setjmp: the sub-context's message would be lost.
 * subcontext_messages and subcontext_fail hand both on. */
#include <assert.h>

#include "base.h"

Status subcontext_run(Ctx *own, CtxFn *fn, void *arg)
{
	jmp_buf edge;
	assert(!own->edge);
	own->edge = &edge;
	own->status = MP_OK;
	own->errors = 0;
	if (setjmp(edge) == 0)
		fn(own, arg);
	own->edge = NULL;
	arena_free(&own->scratch);
	return own->status;
}

Status caught(Ctx *cx, void (*fn)(void *arg), void *arg)
{
	jmp_buf here, *outer = cx->edge;
	int errors = cx->errors;
	cx->edge = &here;
	cx->status = MP_OK;
	if (setjmp(here) == 0)
		fn(arg);
	Status status = cx->status;
	cx->edge = outer;
	cx->errors = errors;
	cx->status = MP_OK;
	return status;
}

void subcontext_messages(Ctx *cx, Ctx *own) { messages_move(cx, own); }

void subcontext_fail(Ctx *cx, Ctx *own, Status status)
{
	if (status == MP_NO_MEMORY) {
		ctx_free(own);
		fail(cx, status, "use a smaller network or less data, or a machine with more memory", "out of memory");
	}
	subcontext_messages(cx, own);
	ctx_free(own);
	fail_recorded(cx, status);
}

static void own_free(void *own) { ctx_free(own); }

/* Freed with the scratch of cx even if memory outside runs out while fn is running. */
void with_subcontext(Ctx *cx, CtxFn *fn, void *arg)
{
	Ctx *own = NEW(&cx->scratch, 1, Ctx);
	ctx_init(own, &cx->alloc);
	arena_defer(&cx->scratch, own_free, own);
	Status s = subcontext_run(own, fn, arg);
	if (s != MP_OK)
		subcontext_fail(cx, own, s);
	subcontext_messages(cx, own);
	ctx_free(own);
}
