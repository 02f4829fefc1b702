/* SPDX-License-Identifier: MIT */
/* The text form: whatever is accepted can be described, and written and read again with the same cases. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "fuzz.h"

static void same(const Data *a, const Data *b, Ctx *cx)
{
	float *p = NEW(&cx->scratch, a->inputs + a->targets, float);
	float *q = NEW(&cx->scratch, a->inputs + a->targets, float);
	if (a->cases != b->cases || a->inputs != b->inputs || a->targets != b->targets || a->sequences != b->sequences)
		__builtin_trap();
	for (uint64_t i = 0; i < a->cases && i < 50; i++) {
		data_x(a, i, p), data_y(a, i, p + a->inputs);
		data_x(b, i, q), data_y(b, i, q + b->inputs);
		for (uint32_t k = 0; k < a->inputs + a->targets; k++)
			if (p[k] != q[k] && !(isnan(p[k]) && isnan(q[k])))
				__builtin_trap();
	}
}

static void read_write(Ctx *cx, const Src *s)
{
	Data *d = read_text(cx, s, NULL);
	mp_data_info info;
	char path[64];
	data_describe(cx, d, &info);
	snprintf(path, sizeof path, "/tmp/microprop-fuzz-%ld.txt", (long)getpid());
	write_text(cx, d, path);
	Src *again = src_open(cx, &cx->keep, path);
	unlink(path);
	same(d, read_text(cx, again, NULL), cx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_write, data, size);
	return 0;
}
