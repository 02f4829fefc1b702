/* SPDX-License-Identifier: MIT */
/* IDX: the first byte says how long the file of labels is that follows it, 0 for none; the rest is the file of
 * cases. */
#include "fuzz.h"

static void read_all(Ctx *cx, const Src *s)
{
	size_t n = s->len ? (uint8_t)s->text[0] : 0;
	if (n + 1 > s->len)
		return;
	Src labels = { .name = "fuzz-labels.idx", .text = s->text + 1, .len = n, .binary = true };
	Src images = { .name = "fuzz.idx", .text = s->text + 1 + n, .len = s->len - 1 - n, .binary = true };
	Data *d = idx_data(cx, &images, n ? &labels : NULL, NULL);
	float *x = NEW(&cx->scratch, d->inputs, float), *y = NEW(&cx->scratch, d->targets, float);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, x);
		data_y(d, i, y);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_all, data, size);
	return 0;
}
