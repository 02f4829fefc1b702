/* SPDX-License-Identifier: MIT */
/* The tables of targets and of options: adding a target is a row in each and a folder in target/. */
#include "api.h"
#include "ranks.h"

extern const Target target_cpu, target_ref, target_cuda, target_gf11;
extern const OptionTable cpu_options, cuda_options, gf11_options;

const Target *const target_table[] = {
	&target_cpu,  &target_ref,
#ifndef MP_NO_CUDA
	&target_cuda,
#endif
	&target_gf11, NULL,
};
const OptionTable *const option_tables[] = {
	&general_options, &gf11_options, &cpu_options,
#ifndef MP_NO_CUDA
	&cuda_options,
#endif
	&ranks_options,   NULL,
};

void cpu_describe(Ctx *cx, Buf *json);

void targets_describe(Ctx *cx, Buf *json)
{
	cpu_describe(cx, json);
	buf_puts(json, ", \"targets\": [");
	for (int i = 0; target_table[i]; i++)
		buf_printf(json, "%s\"%s\"", i ? ", " : "", target_table[i]->name);
	buf_puts(json, "]");
}
