/* SPDX-License-Identifier: MIT */
/* Weights of LENS for a small network: what is accepted has a weight for every link. */
#include "fuzz.h"

static void read_weights(Ctx *cx, const Src *s) { fuzz_weights_file(cx, s, "lens", "addNet xor 2 3 1\n"); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_weights, data, size);
	return 0;
}
