/* SPDX-License-Identifier: MIT */
/* Examples of LENS, binary: what is accepted must be whole, every case can be read. */
#include "fuzz.h"

static void read_all(Ctx *cx, const Src *s)
{
	fuzz_cases(cx, read_lens_binary(cx, s, &(DataOptions){ .lossy = s->len & 1 }));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_all, data, size);
	return 0;
}
