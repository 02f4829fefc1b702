/* SPDX-License-Identifier: MIT */
/* A machine stands in a context of its own, so that its memory can go before the run ends. In: a context, what is
 * to be done with a machine. Out: it is done; or it failed, and what was said there is said by the context outside. */
#include "gf11_machine.h"

/* What fails inside must not leave through the edge outside, for nobody would find its message. */
Status subcontext_run(Ctx *own, void (*body)(Ctx *own, void *arg), void *arg)
{
	jmp_buf edge;
	own->edge = &edge;
	own->status = MP_OK;
	if (setjmp(edge) == 0)
		body(own, arg);
	own->edge = NULL;
	arena_free(&own->scratch);
	return own->status;
}

void subcontext_messages(Ctx *cx, Ctx *own)
{
	cx->messages.arena = &cx->keep;
	buf_puts(&cx->messages, ctx_messages(own));
	if (own->messages.s)
		own->messages.s[own->messages.len = 0] = '\0';
}

void subcontext_fail(Ctx *cx, Ctx *own, Status status)
{
	if (status == MP_NO_MEMORY) {
		ctx_free(own);
		fail(cx, status, "use fewer processors, or less data", "out of memory for the simulated machine");
	}
	subcontext_messages(cx, own);
	ctx_free(own);
	fail_recorded(cx, status);
}

static void own_end(void *own) { ctx_free(own); }

/* The context goes with the scratch of cx even if memory outside runs out while body is at work. */
void with_subcontext(Ctx *cx, void (*body)(Ctx *own, void *arg), void *arg)
{
	Ctx *own = NEW(&cx->scratch, 1, Ctx);
	ctx_init(own, &cx->alloc);
	arena_defer(&cx->scratch, own_end, own);
	Status s = subcontext_run(own, body, arg);
	if (s != MP_OK)
		subcontext_fail(cx, own, s);
	subcontext_messages(cx, own);
	ctx_free(own);
}
