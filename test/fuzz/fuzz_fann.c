/* SPDX-License-Identifier: MIT */
/* Data of FANN: what is accepted must be whole, every case can be read. */
#include "fuzz.h"

static void read_all(Ctx *cx, const Src *s) { fuzz_cases(cx, read_fann(cx, s, &(DataOptions){ .lossy = false })); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_all, data, size);
	return 0;
}
