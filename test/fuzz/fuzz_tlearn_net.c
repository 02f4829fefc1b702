/* SPDX-License-Identifier: MIT */
/* Networks of tlearn: what is accepted is a network. */
#include "fuzz.h"

static void read_net(Ctx *cx, const Src *s)
{
	const Net *net = old_read(cx, s, &(OldOptions){ .format = "tlearn", .lossy = s->len & 1 });
	if (!net->links || net->weights)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_net, data, size);
	return 0;
}
