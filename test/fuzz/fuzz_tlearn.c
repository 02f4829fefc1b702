/* SPDX-License-Identifier: MIT */
/* Data of tlearn: what is accepted must be whole, every case can be read. */
#include "fuzz.h"

static void read_all(Ctx *cx, const Src *s)
{
	fuzz_cases(cx, read_tlearn(cx, s, &(DataOptions){ .groups = s->len & 1 ? "a:3>b:2" : NULL }));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_all, data, size);
	return 0;
}
