/* SPDX-License-Identifier: MIT */
/* Examples of LENS, binary: what is accepted must be whole, every case can be read. */
#include "fuzz.h"

static void read_all(Ctx *cx, const Src *s)
{
	Data *d = read_lens_binary(cx, s, &(DataOptions){ .lossy = s->len & 1 });
	float *x = NEW(&cx->scratch, d->inputs, float), *y = NEW(&cx->scratch, d->targets, float);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, x);
		data_y(d, i, y);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_all, data, size);
	return 0;
}
