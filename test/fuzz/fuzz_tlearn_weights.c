/* SPDX-License-Identifier: MIT */
/* Weights of tlearn for a small network: what is accepted has a weight for every link. */
#include "fuzz.h"

static void read_weights(Ctx *cx, const Src *s)
{
	fuzz_weights_file(cx, s, "tlearn",
	                  "NODES:\nnodes = 2\ninputs = 1\noutputs = 1\noutput node is 2\nCONNECTIONS:\ngroups = 0\n"
	                  "1 from i1\n2 from 1\n1-2 from 0\n1 from 2\n");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_weights, data, size);
	return 0;
}
