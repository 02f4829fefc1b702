/* SPDX-License-Identifier: MIT */
/* Operations: ops.def as tables, and evaluation of ALU operations.
 * Must hold: the meaning of an operation is written once, in ops.def. */
#include <string.h>

#include "cell.h"

const char *const unit_names[UNITS] = {
	[UNIT_ALU] = "alu",
	[UNIT_PORT] = "port",
	[UNIT_DRAM] = "dram",
	[UNIT_SWITCH] = "switch",
};

const FormInfo forms[FORMS] = {
	[FORM_RR] = { .uses = USES_DST | USES_A | USES_B },
	[FORM_R] = { .uses = USES_DST | USES_A },
	[FORM_CMP] = { .uses = WRITES_CC | USES_A | USES_B },
	[FORM_SELECT] = { .uses = USES_DST | READS_CC | USES_A | USES_B },
	[FORM_MASKED] = { .uses = USES_DST | READS_CC | USES_A },
	[FORM_IMM] = { .uses = USES_DST | USES_K },
	[FORM_LOAD] = { USES_DST | USES_MEM, AT_START, AT_START, { { .is = true } } },
	[FORM_STORE] = { USES_MEM | USES_A, AT_START, AT_START, { { .is = true, .write = true } } },
	[FORM_LOOKUP] = { USES_DST | USES_MEM | USES_A, AT_START | AT_NEXT, AT_START, { { .is = true, .indexed = true } } },
	[FORM_PUT] = { USES_MEM | USES_A | USES_B,
	               AT_START | AT_NEXT,
	               AT_NEXT,
	               { { .is = true, .write = true, .indexed = true } } },
	[FORM_FETCH] = { USES_MEM | USES_FAR, 0, AT_LAST, { { .is = true, .dram = true }, { .is = true, .write = true } } },
	[FORM_FLUSH] = { USES_MEM | USES_FAR,
	                 0,
	                 AT_START,
	                 { { .is = true }, { .is = true, .write = true, .dram = true } } },
	[FORM_XFER] = { USES_DST | USES_K | USES_A, AT_START | AT_LAST, 0, { { 0 } } },
};

const OpInfo ops[GOPS] = {
#define OP(NAME, name, unit, form, latency, meaning, about) \
	[GOP_##NAME] = { name, #meaning, about, UNIT_##unit, FORM_##form, offsetof(Machine, latency) },
#include "ops.def"
};

int64_t op_latency(const Machine *m, int op)
{
	return *(const int64_t *)(const void *)((const char *)m + ops[op].latency);
}

int op_find(const char *name, size_t len)
{
	for (int op = 0; op < GOPS; op++)
		if (strlen(ops[op].name) == len && memcmp(ops[op].name, name, len) == 0)
			return op;
	return -1;
}

/* ---- meanings ----------------------------------------------------------------------------------- */

Cell op_value(int op, Cell a, Cell b, bool cc, Cell k)
{
	switch (op) {
/* clang-format off */
#define OP(NAME, name, unit, form, latency, meaning, about) case GOP_##NAME: return CELL(meaning);
/* clang-format on */
#include "ops.def"
	}
	return a;
}

void op_values(int op, const uint32_t *as, const uint32_t *bs, const uint32_t *conditions, Cell k, uint32_t count,
               uint32_t *out)
{
	switch (op) {
#define OP(NAME, name, unit, form, latency, meaning, about) \
	case GOP_##NAME:                                        \
		for (uint32_t i = 0; i < count; i++) {              \
			Cell a = { .u = as[i] }, b = { .u = bs[i] };    \
			bool cc = conditions[i];                        \
			(void)a, (void)b, (void)cc;                     \
			out[i] = CELL(meaning).u;                       \
		}                                                   \
		break;
#include "ops.def"
	}
}
