/* SPDX-License-Identifier: MIT */
/* npy: whatever is accepted can be described and cut in two. */
#include "fuzz.h"

static void read_use(Ctx *cx, const Src *s)
{
	Src binary = *s;
	mp_data_info info;
	binary.binary = true;
	Data *d = read_npy(cx, &binary, &(DataOptions){ .first = s->len % 5 });
	data_describe(cx, d, &info);
	if (d->cases > 1)
		data_split(cx, d, 0.5, 1, true);
	if (d->cases * d->inputs < 100000)
		data_scale_fit(cx, d, SCALE_ZSCORE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_use, data, size);
	return 0;
}
