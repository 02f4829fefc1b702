/* SPDX-License-Identifier: MIT */
/* Networks of FANN: what is accepted has a weight for every link. */
#include "fuzz.h"
#include "legacy.h"

static void read_net(Ctx *cx, const Src *s)
{
	const Net *net = old_read(cx, s, &(OldOptions){ .format = "fann", .lossy = s->len & 1 });
	double all = 0;
	for (uint64_t i = 0; i < net->links; i++)
		all += net->weights[i] - net->weights[i];
	if (all != 0)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_net, data, size);
	return 0;
}
