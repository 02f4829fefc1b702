/* SPDX-License-Identifier: MIT */
/* Results of SNNS: what is accepted must be whole, every case can be read. */
#include "fuzz.h"

static void read_all(Ctx *cx, const Src *s)
{
	fuzz_cases(cx, read_snns_results(cx, s, &(DataOptions){ .lossy = false }, data_open));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_all, data, size);
	return 0;
}
