/* SPDX-License-Identifier: MIT */
/* Any bytes as a file of weights and as a checkpoint.  A checksum in our place is made right first: the fuzzer could
 * not guess it, and what it guards must hold without it. */
#include <xxhash.h>

#include "fuzz.h"

#include "store.h"

static const char topology[] = "group a 3 input\ngroup h 3 tanh\ngroup c 3 context\ngroup o 2 output\n"
							   "connect a, true -> h\nconnect c -> h one-to-one\nconnect h[0:1] -> o\n"
							   "connect h[2] -> o[1]\nconnect true -> o[0]\ncopy h -> c start 0.5\n";

static void seal(char *text, size_t len)
{
	static const char start[] = "{\"__metadata__\":{\"checksum\":\"", digits[] = "0123456789abcdef";
	enum { AT = 8 + sizeof start - 1 };
	if (len < AT + 32 || memcmp(text + 8, start, sizeof start - 1) != 0)
		return;
	memset(text + AT, '0', 32);
	XXH128_canonical_t sum;
	XXH128_canonicalFromHash(&sum, XXH3_128bits(text, len));
	for (int i = 0; i < 16; i++) {
		text[AT + 2 * i] = digits[sum.digest[i] >> 4];
		text[AT + 2 * i + 1] = digits[sum.digest[i] & 15];
	}
}

static void load(Ctx *cx, const Net *net, const Src *src, bool resume)
{
	Run run = { .net = net, .opt = net->options };
	jmp_buf edge;
	ctx_init(&run.cx, &cx->alloc);
	run.cx.edge = &edge;
	if (setjmp(edge) == 0)
		checkpoint_read(&run, src, resume);
	else if (!*ctx_messages(&run.cx))
		__builtin_trap();
	ctx_free(&run.cx);
}

static void both(Ctx *cx, const Src *src)
{
	Src text = { .name = "fuzz.topo", .text = topology, .len = sizeof topology - 1 };
	Src file = {
		.name = src->name, .text = arena_copy(&cx->keep, src->text, src->len), .len = src->len, .binary = true
	};
	Net *net = net_parse(cx, &text, DEFAULTS_1989);
	seal((char *)file.text, file.len);
	load(cx, net, &file, false);
	load(cx, net, &file, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(both, data, size);
	return 0;
}
