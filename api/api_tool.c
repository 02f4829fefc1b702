/* SPDX-License-Identifier: MIT */
/* Commands of a target: a name and words come in, text goes out through the caller's function. */
#include "api.h"

struct mp_tool {
	Ctx cx;
};

typedef struct ToolArgs {
	mp_tool *tool;
	const char *target;
	int argc;
	const char *const *argv;
	Buf out; /* in keep: it outlives a call that fails */
} ToolArgs;

static void tool_body(void *arg)
{
	ToolArgs *a = arg;
	Ctx *cx = &a->tool->cx;
	ToolFn *run = target_tool(a->target);
	if (!run)
		fail(cx, MP_BAD_INPUT, target_tool_names(&cx->scratch), "target '%s' has no commands", a->target);
	run(cx, a->argc, a->argv, &a->out);
}

mp_status mp_tool_run(mp_tool **tool, const char *target, int argc, const char *const *argv, mp_write_fn *write,
                      void *user, const mp_allocator *alloc)
{
	*tool = api_handle(sizeof **tool, alloc);
	if (!*tool)
		return MP_NO_MEMORY;
	ToolArgs a = { *tool, target, argc, argv, { .arena = &(*tool)->cx.keep } };
	mp_status status = api_call(&(*tool)->cx, tool_body, &a);
	if (a.out.len)
		write(user, a.out.s, a.out.len);
	return status;
}

void mp_tool_close(mp_tool *tool) { api_close(tool, sizeof *tool); }

const char *mp_tool_messages(const mp_tool *tool) { return tool ? ctx_messages(&tool->cx) : "error: out of memory\n"; }
