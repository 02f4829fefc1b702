/* SPDX-License-Identifier: MIT */
/* Any text as the schema and as the metrics of a model.  What is accepted prints as text that reads back alike. */
#include "fuzz.h"

#include "table.h"

static void schema(Ctx *cx, const Src *src)
{
	Buf first = { .arena = &cx->keep }, second = { .arena = &cx->keep };
	schema_print(schema_parse(cx, (Loc){ src, 0 }, src->text), &first);
	schema_print(schema_parse(cx, (Loc){ src, 0 }, first.s), &second);
	if (strcmp(first.s, second.s) != 0)
		__builtin_trap();
}

static void metrics(Ctx *cx, const Src *src)
{
	Buf first = { .arena = &cx->keep }, second = { .arena = &cx->keep };
	metrics_print(metrics_parse(cx, (Loc){ src, 0 }, src->text, 2), &first);
	metrics_print(metrics_parse(cx, (Loc){ src, 0 }, first.s, 2), &second);
	if (strcmp(first.s, second.s) != 0)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(schema, data, size);
	fuzz_run(metrics, data, size);
	return 0;
}
