/* SPDX-License-Identifier: MIT */
/* The table of tools, and the public calls that run them. In: the tool's name and arguments. Out: text, through the
 * caller's function. */
#include <string.h>

#include "api.h"
#include "microprop/tool.h"

struct mp_tool {
	Ctx cx;
};

typedef void ToolFn(Ctx *cx, int argc, const char *const *argv, Buf *out);
extern ToolFn cpu_tool, cuda_tool, gf11_tool, cluster_tool;

static const struct {
	const char *name;
	ToolFn *run;
} tools[] = {
	{ "cpu", cpu_tool },
#ifndef MP_NO_CUDA
	{ "cuda", cuda_tool },
#endif
	{ "gf11", gf11_tool },
	{ "cluster", cluster_tool },
};

typedef struct ToolArgs {
	mp_tool *tool;
	const char *name;
	int argc;
	const char *const *argv;
	Buf out; /* in keep: the report outlives a call that fails */
} ToolArgs;

static void tool_body(void *arg)
{
	ToolArgs *a = arg;
	Ctx *cx = &a->tool->cx;
	Buf names = { .arena = &cx->scratch };

	buf_puts(&names, "targets with commands are:");
	for (size_t i = 0; i < COUNT(tools); i++) {
		buf_printf(&names, "%s %s", i ? "," : "", tools[i].name);
		if (strcmp(tools[i].name, a->name) == 0) {
			tools[i].run(cx, a->argc, a->argv, &a->out);
			return;
		}
	}
	fail(cx, MP_BAD_INPUT, names.s, "target '%s' has no commands", a->name);
}

mp_status mp_tool_run(mp_tool **tool, const char *name, int argc, const char *const *argv, mp_write_fn *write,
                      void *user, const mp_allocator *alloc)
{
	mp_status status = api_handle((void **)tool, sizeof **tool, alloc);
	if (status != MP_OK)
		return status;
	ToolArgs a = { *tool, name, argc, argv, { .arena = &(*tool)->cx.keep } };
	status = api_call(&(*tool)->cx, tool_body, &a);
	if (a.out.len)
		write(user, a.out.s, a.out.len);
	return status;
}

void mp_tool_close(mp_tool *tool) { api_close(tool, sizeof *tool); }

const char *mp_tool_messages(const mp_tool *tool) { return api_messages(tool); }
