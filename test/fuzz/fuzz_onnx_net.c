/* SPDX-License-Identifier: MIT */
/* Networks of ONNX: what is accepted has a weight for every link. */
#include "fuzz.h"

static void read_net(Ctx *cx, const Src *s)
{
	fuzz_weights(old_read(cx, s, &(OldOptions){ .format = "onnx", .lossy = s->len & 1 }));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_net, data, size);
	return 0;
}
