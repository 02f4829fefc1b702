/* SPDX-License-Identifier: MIT */
/* Machine files: whatever is accepted prints as a file that reads back as the same print.
 * Left out: bases that are paths (the fuzzer would open files). */
#include "gf11_sim.h"
#include "fuzz.h"

static char *print(Ctx *cx, const Src *src)
{
	Buf out = { .arena = &cx->keep };
	machine_print(machine_parse(cx, src), &out);
	return strchr(out.s, '\n'); /* without its name */
}

static void read_twice(Ctx *cx, const Src *src)
{
	char *text = print(cx, src);
	jmp_buf edge;
	if (setjmp(edge) != 0)
		__builtin_trap();
	cx->edge = &edge;
	Src again = { .name = "print", .text = text, .len = strlen(text) };
	if (strcmp(print(cx, &again), text) != 0)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!memchr(data, '/', size))
		fuzz_run(read_twice, data, size);
	return 0;
}
