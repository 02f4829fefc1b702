/* SPDX-License-Identifier: MIT */
/* The NETtalk corpus; what stands behind a zero byte, if there is one, is a list of words to pick. */
#include "fuzz.h"

static void read_all(Ctx *cx, const Src *s)
{
	const char *zero = memchr(s->text, 0, s->len);
	Src corpus = { .name = "fuzz.data", .text = s->text, .len = zero ? (size_t)(zero - s->text) : s->len };
	Data *d = read_nettalk(cx, &corpus, NULL);
	float x[NETTALK_INPUTS], y[NETTALK_TARGETS];
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, x);
		data_y(d, i, y);
	}
	if (!zero)
		return;
	Src list = { .name = "fuzz.list", .text = zero + 1, .len = s->len - corpus.len - 1 };
	const Word known[] = { { "aback", "xb@k-", "0>1<<", 5 }, { "abate", "xbet-", "0>1<<", 5 } };
	uint64_t picked;
	nettalk_pick(cx, &list, known, COUNT(known), &picked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_all, data, size);
	return 0;
}
