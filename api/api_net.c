/* SPDX-License-Identifier: MIT */
/* Public calls on networks. */
#include <string.h>

#include "api.h"

typedef struct OpenArgs {
	mp_net *net;
	const char *path, *text, *name;
} OpenArgs;

static const char *end_name(Arena *a, const Net *net, const Block *b, bool to)
{
	char text[160];
	Buf name = { .arena = a, .s = text, .cap = sizeof text };
	block_print_end(net, b, to, &name);
	return arena_copy(a, name.s, name.len);
}

static void fill_info(mp_net *n)
{
	Ctx *cx = &n->cx;
	const Net *net = n->net;
	Plan *plan = plan_make(cx, net, &(Caps){ .target = "none", .lanes = 1 });
	mp_group_info *g = NEW(&cx->keep, net->groups, mp_group_info);
	for (uint32_t i = 0; i < net->groups; i++)
		g[i] = (mp_group_info){ net->group[i].name, unit_fns[net->group[i].fn].name, role_names[net->group[i].role],
			                    net->group[i].size };
	mp_block_info *b = NEW(&cx->keep, net->blocks, mp_block_info);
	for (uint32_t i = 0; i < net->blocks; i++) {
		const Block *k = &net->block[i];
		b[i] = (mp_block_info){ end_name(&cx->keep, net, k, false), end_name(&cx->keep, net, k, true),
			                    link_kinds[k->kind], k->links, k->frozen };
	}
	n->info = (mp_net_info){ .name = net->name,
		                     .groups = net->groups,
		                     .blocks = net->blocks,
		                     .copies = net->copies,
		                     .units = net->units - 1,
		                     .inputs = net->inputs,
		                     .outputs = net->outputs,
		                     .levels = plan->levels,
		                     .connections = plan->W,
		                     .input_connections = plan->Wi,
		                     .fingerprint = net->fingerprint,
		                     .data = net->data,
		                     .test = net->test,
		                     .group = g,
		                     .block = b };
}

static void open_body(void *arg)
{
	OpenArgs *a = arg;
	Ctx *cx = &a->net->cx;
	Src *src;
	if (a->path) {
		src = src_open(cx, &cx->keep, a->path);
	} else {
		src = NEW(&cx->keep, 1, Src);
		src->name = arena_copy(&cx->keep, a->name, strlen(a->name));
		src->len = strlen(a->text);
		src->text = arena_copy(&cx->keep, a->text, src->len);
	}
	a->net->net = net_parse(cx, src);
	fill_info(a->net);
}

static mp_status net_new(mp_net **net, OpenArgs *a, const mp_allocator *alloc)
{
	*net = a->net = api_handle(sizeof **net, alloc);
	if (!*net)
		return MP_NO_MEMORY;
	mp_status s = api_call(&(*net)->cx, open_body, a);
	if (s != MP_OK)
		(*net)->net = NULL;
	return s;
}

mp_status mp_net_open(mp_net **net, const char *path, const mp_allocator *alloc)
{
	return net_new(net, &(OpenArgs){ .path = path }, alloc);
}

mp_status mp_net_parse(mp_net **net, const char *text, const char *name, const mp_allocator *alloc)
{
	return net_new(net, &(OpenArgs){ .text = text, .name = name }, alloc);
}

void mp_net_close(mp_net *net) { api_close(net, sizeof *net); }

const char *mp_net_messages(const mp_net *net) { return net ? ctx_messages(&net->cx) : "error: out of memory\n"; }

const mp_net_info *mp_net_get_info(const mp_net *net) { return &net->info; }

/* ---- printing a stage ---- */

typedef struct PrintArgs {
	mp_net *net;
	mp_run *run; /* plans and compiles, with memory of its own */
	const char *stage;
	mp_write_fn *write;
	void *user;
} PrintArgs;

static void run_body(void *arg) { run_start(arg); }

static void print_body(void *arg)
{
	PrintArgs *a = arg;
	Ctx *cx = &a->net->cx;
	Buf out = { .arena = &cx->scratch };
	bool net = strcmp(a->stage, "net") == 0, plan = strcmp(a->stage, "plan") == 0;
	if (!net && !plan && strcmp(a->stage, "program") != 0)
		fail(cx, MP_BAD_INPUT, "the stages are net, plan and program", "there is no stage '%s'", a->stage);
	if (net) {
		net_print(a->net->net, &out);
	} else {
		Status s = api_call(&a->run->cx, run_body, a->run);
		if (s != MP_OK) {
			buf_puts(&cx->messages, ctx_messages(&a->run->cx));
			cx->status = s;
			return;
		}
		if (plan)
			plan_print(a->run->plan, &out);
		else
			a->run->target->print(a->run->program, &out);
	}
	a->write(a->user, out.s, out.len);
}

mp_status mp_net_print(mp_net *net, const char *stage, const char *target, mp_write_fn *write, void *user)
{
	PrintArgs a = { .net = net, .stage = stage, .write = write, .user = user };
	mp_status s = mp_run_new(&a.run, net, &net->cx.alloc);
	if (s == MP_OK && target)
		a.run->opt.target = target;
	net->cx.messages.arena = &net->cx.keep;
	if (s == MP_OK)
		s = api_call(&net->cx, print_body, &a);
	mp_run_close(a.run);
	return s;
}
