/* SPDX-License-Identifier: MIT */
/* Tables: a CSV file of any content goes all the way to a network for it, or is refused.  What is accepted must hold
 * together: finite cases of both parts, a schema that survives being written, which encodes the same file, and a
 * topology that parses. */
#include <math.h>

#include "fuzz.h"
#include "table.h"

static void check_cases(Ctx *cx, const Data *d)
{
	float *x = NEW(&cx->scratch, d->inputs, float);
	for (uint64_t i = 0; i < d->cases; i++) {
		data_x(d, i, x);
		for (uint32_t k = 0; k < d->inputs; k++)
			if (!isfinite(x[k]))
				__builtin_trap();
	}
}

static void learn(Ctx *cx, const Src *src)
{
	const DataOptions opt = { 0 };
	const Src file = { .name = "fuzz.csv", .text = src->text, .len = src->len };
	const Frame *t = table_csv(cx, &file, &opt, NULL);
	Schema *s = schema_infer(cx, t, &(InferOptions){ TASK_NONE, -1, NULL });
	const uint8_t *part = table_cut(cx, t, s, &(Cut){ .share = 0.2, .seed = 1, .stratify = true });
	schema_fit(cx, s, t, part);
	const Data *d = table_encode(cx, t, s, part, PART_TRAIN);
	check_cases(cx, d);
	const Schema *again = schema_parse(cx, (Loc){ 0 }, d->schema);
	if (again->inputs != s->inputs || again->targets != s->targets)
		__builtin_trap();
	const Data *whole = table_encode(cx, table_csv(cx, &file, &opt, again), again, NULL, 0);
	if (whole->cases != t->rows || whole->inputs != d->inputs)
		__builtin_trap();
	check_cases(cx, whole);
	Buf topology = { .arena = &cx->keep };
	topology_print(cx, s, &(NetworkFor){ .data = "fuzz", .cases = d->cases }, &topology);
	net_parse(cx, &(Src){ .name = "fuzz.topo", .text = topology.s, .len = topology.len }, DEFAULTS_NEWEST);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_run(learn, data, size);
	return 0;
}
