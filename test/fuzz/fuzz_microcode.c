/* SPDX-License-Identifier: MIT */
/* Microcode as text: whatever is accepted can be checked, and its print reads back as the same print. */
#include "fuzz.h"

#include "gf11_sim.h"

static char *print(Ctx *cx, const Machine *m, const Src *src)
{
	const Routine *r = microcode_parse(cx, m, src);
	Buf out = { .arena = &cx->keep };
	microcode_print(m, r, &out);
	check_routine(cx, m, r);
	return out.s;
}

static void read_twice(Ctx *cx, const Src *src)
{
	const Machine *m = machine_open(cx, "gf11");
	char *text = print(cx, m, src);
	jmp_buf edge;
	if (setjmp(edge) != 0)
		__builtin_trap(); /* a print must be readable */
	cx->edge = &edge;
	Src again = { .name = "print", .text = text, .len = strlen(text) };
	if (strcmp(print(cx, m, &again), text) != 0)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_twice, data, size);
	return 0;
}
