/* SPDX-License-Identifier: MIT */
/* Weights of LENS for a small network: what is accepted has a weight for every link. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuzz.h"

static void read_weights(Ctx *cx, const Src *s)
{
	static const char script[] = "addNet xor 2 3 1\n";
	char path[] = "/tmp/fuzz-weights-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	if (!f)
		__builtin_trap();
	fwrite(s->text, 1, s->len, f);
	fclose(f);
	Src net_file = { .name = "fuzz.in", .text = script, .len = sizeof script - 1 };
	OldOptions opt = { .format = "lens", .weights = path };
	jmp_buf *outer = cx->edge, here;
	cx->edge = &here;
	if (setjmp(here) == 0) {
		fuzz_weights(old_read(cx, &net_file, &opt));
		unlink(path);
		cx->edge = outer;
		return;
	}
	unlink(path);
	cx->edge = outer;
	longjmp(*outer, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_weights, data, size);
	return 0;
}
