/* SPDX-License-Identifier: MIT */
/* The tables of targets, of options and of commands: adding a target is a row in each and a folder in target/. */
#include <string.h>

#include "api.h"
#include "ranks.h"

extern const Target target_cpu, target_ref, target_gf11;
extern const OptionTable cpu_options, gf11_options;
extern ToolFn cpu_tool, gf11_tool, cluster_tool;

const Target *const target_table[] = { &target_cpu, &target_ref, &target_gf11, NULL };
const OptionTable *const option_tables[] = { &general_options, &gf11_options, &cpu_options, &ranks_options, NULL };

static const struct {
	const char *name;
	ToolFn *run;
} tools[] = {
	{ "cpu", cpu_tool },
	{ "gf11", gf11_tool },
	{ "cluster", cluster_tool },
};

ToolFn *target_tool(const char *name)
{
	for (size_t i = 0; i < COUNT(tools); i++)
		if (strcmp(tools[i].name, name) == 0)
			return tools[i].run;
	return NULL;
}

const char *target_tool_names(Arena *a)
{
	Buf b = { .arena = a };
	buf_puts(&b, "targets with commands are:");
	for (size_t i = 0; i < COUNT(tools); i++)
		buf_printf(&b, "%s %s", i ? "," : "", tools[i].name);
	return b.s;
}
