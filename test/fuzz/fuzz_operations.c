/* SPDX-License-Identifier: MIT */
/* Operations as text, and the comments of listings: whatever is accepted prints as text that reads back as the same
 * print; short programs can be scheduled, pass the checker, and their listing reads back too. */
#include "fuzz.h"

#include "gf11_sim.h"

enum { SHORT = 60 };

static Code *read_back(Ctx *cx, const Machine *m, const char *text)
{
	Src *src = NEW(&cx->keep, 1, Src);
	*src = (Src){ .name = "print", .text = text, .len = strlen(text) };
	return operations_parse(cx, m, src);
}

static char *print(Ctx *cx, const Machine *m, const Code *code)
{
	Buf out = { .arena = &cx->keep };
	operations_print(m, code, &out);
	return out.s;
}

static void read_twice(Ctx *cx, const Src *src)
{
	const Machine *m = machine_open(cx, "gf11");
	Code *code = operations_parse(cx, m, src);
	char *text = print(cx, m, code);
	const Routine *r = code->recs <= SHORT ? schedule(cx, m, code, &(ScheduleOptions){ .level = 0 }) : NULL;
	jmp_buf edge;
	if (setjmp(edge) != 0)
		__builtin_trap(); /* a print must be readable */
	cx->edge = &edge;
	if (strcmp(print(cx, m, read_back(cx, m, text)), text) != 0)
		__builtin_trap();
	if (!r)
		return;
	Buf listing = { .arena = &cx->keep };
	microcode_print(m, r, &listing);
	if (check_routine(cx, m, r) || read_back(cx, m, listing.s)->recs != code->recs)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(read_twice, data, size);
	return 0;
}
