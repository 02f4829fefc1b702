/* SPDX-License-Identifier: MIT */
/* Shared by all fuzz targets: a context to which failing input unwinds. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats.h"
#include "legacy.h"
#include "old.h"
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

/* What is accepted must be whole: every case can be read. */
static inline void fuzz_cases(Ctx *cx, const Data *d)
{
	float *x = NEW(&cx->scratch, d->inputs, float), *y = NEW(&cx->scratch, d->targets, float);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, x);
		data_y(d, i, y);
	}
}

/* The network of an older simulator has a finite weight for every link. */
static inline void fuzz_weights(const Net *net)
{
	double all = 0;
	for (uint64_t i = 0; i < net->links; i++)
		all += net->weights[i] - net->weights[i];
	if (all != 0)
		__builtin_trap();
}

/* The bytes as a file of weights of a network of an older simulator. */
static inline void fuzz_weights_file(Ctx *cx, const Src *s, const char *format, const char *network)
{
	char path[] = "/tmp/fuzz-weights-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	if (!f)
		__builtin_trap();
	fwrite(s->text, 1, s->len, f);
	fclose(f);
	Src net = { .name = "fuzz-network", .text = network, .len = strlen(network) };
	jmp_buf *outer = cx->edge, here;
	volatile bool accepted = false;
	cx->edge = &here;
	if (setjmp(here) == 0) {
		fuzz_weights(old_read(cx, &net, &(OldOptions){ .format = format, .weights = path }));
		accepted = true;
	}
	unlink(path);
	cx->edge = outer;
	if (!accepted)
		longjmp(*outer, 1);
}

#endif
