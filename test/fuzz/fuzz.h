/* SPDX-License-Identifier: MIT */
/* Shared by all fuzz targets: a context to which failing input unwinds. */
#ifndef FUZZ_H
#define FUZZ_H

#include <string.h>

#include "run.h"

/* Runs fn on the bytes as a file called "fuzz".  True if it was accepted; a refusal must come with a message. */
static inline bool fuzz_run(void (*fn)(Ctx *, const Src *), const uint8_t *data, size_t size)
{
	Ctx cx;
	jmp_buf edge;
	volatile bool accepted = false;
	ctx_init(&cx, NULL);
	cx.edge = &edge;
	if (setjmp(edge) == 0) {
		Src *src = NEW(&cx.keep, 1, Src);
		src->name = "fuzz";
		src->text = arena_copy(&cx.keep, (const char *)data, size);
		src->len = size;
		fn(&cx, src);
		accepted = true;
	} else if (!*ctx_messages(&cx)) {
		__builtin_trap();
	}
	ctx_free(&cx);
	return accepted;
}

#endif
