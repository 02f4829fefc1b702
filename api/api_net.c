/* SPDX-License-Identifier: MIT */
/* Public calls on networks. */
#include <string.h>

#include "api.h"
#include "formats.h"
#include "legacy.h"
#include "microprop/import.h"

typedef struct OpenArgs {
	mp_net *net;
	const char *path, *text, *name;
	const mp_import *import; /* NULL: a topology file, a model, or the network of an older simulator */
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
	const Plan none = { 0 }, *plan = &none;
	if (!net->open)
		plan = plan_make(cx, net, &(Caps){ .target = "none", .lanes = 1 });
	n->group = NEW(&cx->keep, net->groups, mp_group_info);
	for (uint32_t i = 0; i < net->groups; i++) {
		const Group *g = &net->group[i];
		n->group[i] = (mp_group_info){ sizeof *n->group,    g->name, unit_fns[g->fn].name,
			                           role_names[g->role], g->size, group_settings(&cx->keep, g) };
	}
	n->block = NEW(&cx->keep, net->blocks, mp_block_info);
	for (uint32_t i = 0; i < net->blocks; i++) {
		const Block *b = &net->block[i];
		n->block[i] = (mp_block_info){ sizeof *n->block,
			                           end_name(&cx->keep, net, b, false),
			                           end_name(&cx->keep, net, b, true),
			                           link_kinds[b->kind],
			                           b->links,
			                           b->frozen,
			                           block_settings(&cx->keep, net, b) };
	}
	int model = n->info.model;
	n->info = (mp_net_info){ .size = sizeof n->info,
		                     .model = model,
		                     .name = net->name,
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
		                     .open = net->open,
		                     .weights = net->weights != NULL,
		                     .data_options = &net->data_how,
		                     .test_options = &net->test_how };
}

static Net *import_net(Ctx *cx, const Src *src, const mp_import *given)
{
	mp_import own = { 0 };
	if (given && !api_take(&own, sizeof own, given))
		fail(cx, MP_BAD_INPUT, "set mp_import.size to sizeof(mp_import), and the rest to 0",
		     "these options are not of this version of the library");
	return old_read(cx, src, &(OldOptions){ .format = own.format, .lossy = own.lossy, .weights = own.weights });
}

/* A file that is no network gets one sentence. */
static _Noreturn void no_network(Ctx *cx, const Src *src)
{
	const char *data = data_looks(src);
	Loc at = { src, 0 };
	if (data)
		fail_at(cx, at, "name the network first, then the data", "this is data (format %s), not a network", data);
	fail_at(cx, at,
	        "networks are topology files (lines such as 'group hidden 20'), models (.safetensors), and files of SNNS "
	        "(.net), FANN (.net), LENS (.in) and tlearn (.cf)",
	        "this is not a network");
}

static void open_body(void *arg)
{
	OpenArgs *a = arg;
	Ctx *cx = &a->net->cx;
	const Src *src, *model = NULL;
	if (a->path) {
		src = src_open(cx, &cx->keep, a->path);
		model = checkpoint_topology(cx, &cx->keep, src);
	} else {
		Src *own = NEW(&cx->keep, 1, Src);
		own->name = arena_copy(&cx->keep, a->name, strlen(a->name));
		own->len = strlen(a->text);
		own->text = arena_copy(&cx->keep, a->text, own->len);
		src = own;
	}
	bool old = a->import || (a->path && !model && old_looks(src));
	if (a->path && !old && !model && !net_looks(src))
		no_network(cx, src);
	a->net->net = old ? import_net(cx, src, a->import) : net_read(cx, model ? model : src, DEFAULTS_NEWEST);
	a->net->info.model = model || a->net->net->weights;
	fill_info(a->net);
}

static mp_status net_new(mp_net **net, OpenArgs *a, const mp_allocator *alloc)
{
	mp_status s = api_handle((void **)net, sizeof **net, alloc);
	if (s != MP_OK)
		return s;
	a->net = *net;
	s = api_call(&(*net)->cx, open_body, a);
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

mp_status mp_net_import(mp_net **net, const char *path, const mp_import *how, const mp_allocator *alloc)
{
	return net_new(net, &(OpenArgs){ .path = path, .import = how ? how : &(mp_import){ .size = sizeof(mp_import) } },
	               alloc);
}

typedef struct SaveArgs {
	mp_net *net;
	const char *path;
} SaveArgs;

static void save_body(void *arg)
{
	SaveArgs *a = arg;
	Ctx *cx = &a->net->cx;
	if (!a->net->net)
		fail(cx, MP_BAD_INPUT, "check what mp_net_open returned", "this network could not be read");
	OutFile *f = file_create(cx, &cx->scratch, a->path);
	file_write(f, a->net->net->src->text, a->net->net->src->len);
	file_commit(cx, f);
}

mp_status mp_net_save(mp_net *net, const char *path) { return api_call(&net->cx, save_body, &(SaveArgs){ net, path }); }

typedef struct ResolveArgs {
	mp_net *net;
	const mp_data *data;
	const char *weights;
} ResolveArgs;

static void resolve_body(void *arg)
{
	ResolveArgs *a = arg;
	mp_net *n = a->net;
	if (!n->net)
		fail(&n->cx, MP_BAD_INPUT, "check what mp_net_open returned", "this network could not be read");
	if (!n->net->open)
		return;
	uint32_t inputs, outputs;
	if (a->data) {
		const Data *d = data_readable(&n->cx, a->data);
		inputs = d->inputs;
		outputs = d->targets;
	} else if (!a->weights) {
		net_open_fail(&n->cx, n->net);
	} else {
		weights_sizes(&n->cx, a->weights, n->net, &inputs, &outputs);
	}
	n->net = net_resolve(&n->cx, n->net, inputs, outputs);
	fill_info(n);
}

mp_status mp_net_resolve(mp_net *net, const mp_data *data, const char *weights)
{
	return api_call(&net->cx, resolve_body, &(ResolveArgs){ net, data, weights });
}

void mp_net_close(mp_net *net) { api_close(net, sizeof *net); }

const char *mp_net_messages(const mp_net *net) { return api_messages(net); }

const mp_error *mp_net_get_error(const mp_net *net, size_t i) { return api_error(net, i); }

const mp_net_info *mp_net_get_info(const mp_net *net) { return &net->info; }

const mp_group_info *mp_net_get_group(const mp_net *net, uint32_t i)
{
	return i < net->info.groups ? &net->group[i] : NULL;
}

const mp_block_info *mp_net_get_block(const mp_net *net, uint32_t i)
{
	return i < net->info.blocks ? &net->block[i] : NULL;
}

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
	if (a->net->net->open)
		net_open_fail(cx, a->net->net);
	if (net) {
		net_print(a->net->net, &out);
	} else {
		Status s = api_call(&a->run->cx, run_body, a->run);
		if (s != MP_OK) {
			messages_move(cx, &a->run->cx);
			cx->status = s;
			return;
		}
		if (plan)
			plan_print(a->run->plan, &out);
		else
			a->run->target->print(&a->run->cx, a->run->program, NULL, &out);
	}
	a->write(a->user, out.s, out.len);
}

mp_status mp_net_print(mp_net *net, const char *stage, const char *target, mp_write_fn *write, void *user)
{
	PrintArgs a = { .net = net, .stage = stage, .write = write, .user = user };
	mp_allocator same = { sizeof same, net->cx.alloc.resize, net->cx.alloc.user };
	bool open = net->net && net->net->open;
	mp_status s = open ? MP_OK : mp_run_new(&a.run, net, &same);
	if (s == MP_OK && target && !open)
		a.run->opt.target = target;
	if (s == MP_OK)
		s = api_call(&net->cx, print_body, &a);
	mp_run_close(a.run);
	return s;
}
