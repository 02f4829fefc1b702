/* SPDX-License-Identifier: MIT */
/* Topology files: whatever is accepted can be planned, and its print reads back as the same print.
 * Left out: large numbers (memory and time, not faults) and includes (the fuzzer would open files). */
#include "fuzz.h"

enum { MOST_DIGITS = 2, MOST_BYTES = 2000 };

static char *print(Ctx *cx, const Src *src)
{
	Caps caps = { .target = "fuzz", .lanes = 1, .bundle = 10 };
	Buf out = { .arena = &cx->keep }, plan = { .arena = &cx->keep };
	Net *net = net_read(cx, src, DEFAULTS_NEWEST);
	if (net->open)
		net = net_resolve(cx, net, 5, 3);
	plan_print(plan_make(cx, net, &caps), &plan);
	net_print(net, &out);
	double *w = NEW(&cx->keep, net->links, double);
	net_weights(net, 1, 0, ALL_LINKS, w);
	return out.s;
}

static void read_twice(Ctx *cx, const Src *src)
{
	char *text = print(cx, src);
	jmp_buf edge;
	if (setjmp(edge) != 0)
		__builtin_trap(); /* a print must be readable */
	cx->edge = &edge;
	Src again = { .name = "print", .text = text, .len = strlen(text) };
	if (strcmp(print(cx, &again), text) != 0)
		__builtin_trap();
}

static bool is_small(const uint8_t *data, size_t size)
{
	static const char *const years[] = { "defaults 1989", "defaults 2026" };
	size_t digits = 0;
	for (size_t i = 0; i < size; i++) {
		for (size_t k = 0; k < COUNT(years); k++)
			if (size - i > strlen(years[k]) && memcmp(data + i, years[k], strlen(years[k])) == 0)
				i += strlen(years[k]); /* digits that make nothing large */
		digits = data[i] >= '0' && data[i] <= '9' ? digits + 1 : 0;
		if (digits > MOST_DIGITS || (size - i >= 7 && memcmp(data + i, "include", 7) == 0))
			return false;
	}
	return size <= MOST_BYTES;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (is_small(data, size))
		fuzz_run(read_twice, data, size);
	return 0;
}
